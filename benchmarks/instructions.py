"""Count the CPU instructions for each decoded match with callgrind; other load does not change the result.

Run `python benchmarks/instructions.py [--peers=PYTHON]`, or `python -m nox -s instructions`, which installs all that
the script needs.
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

from corpora import valgrind
from decode import PER_CHUNK
from peers import import_errors

_PROGRAM = Path(__file__).parent / "decode.py"
_FEW, _MANY = 20, 80  # numbers of chunks; the difference of the two counts excludes the start of the interpreter


def _count(python: str, name: str, chunks: int) -> int:
    program, needs = valgrind()
    done = subprocess.run(
        [program, "--tool=callgrind", "--callgrind-out-file=/dev/null", python, str(_PROGRAM), name, str(chunks)],
        env={**os.environ, **needs, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    found = re.search(r"Collected : (\d+)", done.stderr)
    assert found, done.stderr
    return int(found[1])


def per_match(python: str, name: str) -> int:
    """Return the number of instructions for each match; a first run compiles the modules, which is not counted."""
    subprocess.run([python, str(_PROGRAM), name, "1"], capture_output=True, check=True)
    return round((_count(python, name, _MANY) - _count(python, name, _FEW)) / ((_MANY - _FEW) * PER_CHUNK))


def main() -> None:
    """Count instructions, and print them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", metavar="PYTHON", help="the Python of an environment that has rpygrep")
    arguments = parser.parse_args()
    print(f"Python {sys.version.split()[0]}, instructions for each decoded match of 250 bytes with one submatch")
    for name in ("ripwrap", "columns"):
        print(f"{name:8} {per_match(sys.executable, name):>8,}", flush=True)
    if arguments.peers and (why := import_errors(arguments.peers).get("rpygrep")):
        print(f"rpygrep  SKIPPED: {why}")
    elif arguments.peers:
        print(f"rpygrep  {per_match(arguments.peers, 'rpygrep'):>8,}")


if __name__ == "__main__":
    main()
