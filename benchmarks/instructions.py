"""How many instructions a decoded match takes, counted by callgrind, which neither load nor clock changes.

`python benchmarks/instructions.py [--peers=PYTHON]`, best by `python -m nox -s instructions`.
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

from corpora import valgrind
from decode import PER_CHUNK
from peers import left_out

_PROGRAM = Path(__file__).parent / "decode.py"
_FEW, _MANY = 20, 80  # chunks; what a start takes is in both


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
    """Instructions for each match."""
    return round((_count(python, name, _MANY) - _count(python, name, _FEW)) / ((_MANY - _FEW) * PER_CHUNK))


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", metavar="PYTHON", help="the Python of an environment that has rpygrep")
    arguments = parser.parse_args()
    print(f"Python {sys.version.split()[0]}, instructions for each decoded match of 250 bytes with one submatch")
    print(f"ripwrap  {per_match(sys.executable, 'ripwrap'):>8,}", flush=True)
    if arguments.peers and (why := left_out(arguments.peers).get("rpygrep")):
        print(f"rpygrep  LEFT OUT: {why}")
    elif arguments.peers:
        print(f"rpygrep  {per_match(arguments.peers, 'rpygrep'):>8,}")


if __name__ == "__main__":
    main()
