"""Run one target after another: `python fuzz/run.py FOLDER [SECONDS]`; `nox -s fuzz` installs what it needs.

FOLDER stores findings and the corpus of each target. The next run continues with that corpus.
"""

import re
import subprocess
import sys
from pathlib import Path

_HERE = Path(__file__).parent
_TARGETS = {"decoders": 8192, "stderr": 8192, "archives": 8192}  # with the maximum size of an input, in bytes
_SECONDS = 60
_LIMITS = ("-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1")  # for one input: 10 seconds, 2 GB
_GRACE = 120  # more seconds for a target, which first runs its whole corpus; then it counts as stuck


def _run(target: str, folder: Path, seconds: int) -> bool:
    """Run a target and print its result; return True if it has no finding."""
    corpus, log = folder / target, folder / f"{target}.log"
    corpus.mkdir(parents=True, exist_ok=True)
    script = [sys.executable, str(_HERE / f"{target}.py")]
    options = [f"-max_total_time={seconds}", f"-max_len={_TARGETS[target]}", f"-artifact_prefix={folder}/{target}-"]
    with log.open("wb") as written:
        try:
            code = subprocess.run(
                [*script, str(corpus), *options, *_LIMITS],
                stdin=subprocess.DEVNULL,
                stdout=written,
                stderr=written,
                timeout=seconds + _GRACE,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            code = None
    said = log.read_text(errors="replace")
    runs = re.search(r"^stat::number_of_executed_units: (\d+)", said, re.MULTILINE)
    reached = re.findall(r"cov: (\d+) ft: (\d+)", said)
    if code == 0 and runs and reached:
        covered, features = reached[-1]
        print(f"{target}: {runs[1]} executions, {covered} edges, {features} features, no finding", flush=True)
        return True
    found = re.search(r"Test unit written to (\S+)", said)
    print(said[-4000:])
    ended = "did not end" if code is None else f"ended with {code}"
    again = f"; to run it again: {' '.join(script)} {found[1]}" if found else ""
    print(f"{target}: FINDING: it {ended}, see {log}{again}", flush=True)
    return False


def main() -> int:
    """Run all targets; return 1 if one has a finding."""
    folder = Path(sys.argv[1]).resolve()
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else _SECONDS
    clean = [_run(target, folder, seconds) for target in _TARGETS]
    return 0 if all(clean) else 1


if __name__ == "__main__":
    sys.exit(main())
