"""Measure ranked search: `python benchmarks/retrieval/run.py DIR`, where DIR has annotations.

DIR holds `repos.json`, a JSON file of annotations for each repository in it, and `cpython.tsv` (a query, a tab, and the
files of the standard library that answer it, in each line). Packages are fetched from PyPI and npm and kept.
"""

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import time
from collections import defaultdict
from functools import partial
from pathlib import Path
from textwrap import fill

sys.path.append(str(Path(__file__).parent.parent))

from retrieval.clock import Took, middle, took
from retrieval.judged import DOCSTRINGS, LIBRARY, NPM, WHEELS, Corpus, UnavailableError, corpora
from retrieval.large import Figures, loaded, section
from retrieval.measures import CHARACTERS, COLUMNS, TIMES, TOKENS, Measured, measured, row, verdicts
from retrieval.methods import METHODS, Place
from retrieval.upkeep import WAYS, Kept, kept
from retrieval.upkeep import table as upkeep_table
from ripwrap import sync
from ripwrap._code.windows import window_chunks

_LAST = {"all": 1, DOCSTRINGS: 2}
_HEAD = Path(__file__).parent / "head.md"


def ask(corpus: Corpus, name: str, rounds: int) -> tuple[float, list[Measured]]:
    """How long a method took to be made for a corpus, and what became of each query, in the median of the rounds."""
    begun = time.perf_counter()
    method = METHODS[name](corpus.root)
    made = time.perf_counter() - begun
    method.answer(corpus.queries[0].text)  # one-time loading does not count
    results: list[Measured] = []
    for query in corpus.queries:
        places: list[Place] = []
        calls: list[Took] = []
        for _ in range(rounds):
            places, one = took(partial(method.answer, query.text))
            calls.append(one)
        results.append(measured(places, query, middle(calls)))
    return made, results


def size(root: Path) -> str:
    """How much a corpus is."""
    files = [root / path for path in sync.files(cwd=root)]
    texts = [raw.decode("utf-8", "replace") for raw in (file.read_bytes() for file in files) if b"\0" not in raw]
    chunks = sum(1 for text in texts for _ in window_chunks(text))
    return f"{len(files):,} files, {sum(map(len, texts)) / 1e6:.1f} MB of text, {chunks:,} chunks"


def table(rows: dict[str, dict[str, dict[str, float]]]) -> str:
    """The figures, as Markdown."""
    lines = [
        f"| corpus | method | {' | '.join(COLUMNS)} |",
        f"|---|---|{'---:|' * len(COLUMNS)}",
    ]
    for corpus in next(iter(rows.values())):
        for method, figures in rows.items():
            shown = (_cell(column, figures[corpus][column]) for column in COLUMNS)
            lines.append(f"| {corpus} | {method} | {' | '.join(shown)} |")
    return "\n".join(lines)


def _cell(column: str, figure: float) -> str:
    if column in TIMES:
        return f"{figure * 1000:.0f} ms"
    return "" if math.isnan(figure) else f"{figure:.3f}"


def report(
    rows: dict[str, dict[str, dict[str, float]]],
    upkeep: dict[str, Kept],
    large: Figures | None,
    rounds: int,
    *,
    judged: bool,
) -> str:
    """All that was measured, as Markdown."""
    binary = sync.resolve()
    pins = ", ".join((*WHEELS.values(), *NPM.values(), f"{LIBRARY} {platform.python_version()}"))
    parts = [
        fill(
            f"rg {'.'.join(map(str, binary.version))}, {os.cpu_count()} CPUs, {platform.platform()}; {pins}.",
            100,
            break_on_hyphens=False,
        ),
        fill(
            f"Recall of files, and of the lines that answer a query where these are known, is within the first "
            f"{TOKENS:,} tokens of {CHARACTERS} characters. Times are medians of {rounds}.",
            100,
        ),
        table(rows),
    ]
    if upkeep:
        parts += [
            f"Upkeep of an index of {LIBRARY}: build, refresh without a change, after an edit, after a branch switch.",
            upkeep_table(upkeep),
        ]
    if large is not None:
        parts.append(section(large))
    if judged:
        parts.append("\n".join(f"- {'met' if met else '**MISSED**'}: {said}" for said, met in verdicts(rows)))
    return "\n\n".join(parts)


def _measure_large() -> Figures:
    """Measure in a process of its own, whose memory is that of the build."""
    command = [sys.executable, str(Path(__file__).with_name("large.py"))]
    return loaded(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def main() -> int:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR", help="the folder with the annotations")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), help="which to compare")
    parser.add_argument("--corpora", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--rounds", type=int, default=3, help="how often each query is asked")
    parser.add_argument("--no-upkeep", action="store_true", help="leave the second table out")
    parser.add_argument("--large", action="store_true", help="also an index of Linux' sources, which takes minutes")
    parser.add_argument("--page", type=Path, metavar="FILE", help="where to keep all of it as Markdown")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to keep the figures")
    arguments = parser.parse_args()
    results: dict[str, dict[str, list[Measured]]] = {name: defaultdict(list) for name in arguments.methods}
    upkeep: dict[str, Kept] = {}
    try:
        for corpus in corpora(arguments.folder):
            if arguments.corpora and corpus.name not in arguments.corpora:
                continue
            print(f"{corpus.name}: {len(corpus.queries)} queries, {size(corpus.root)}", file=sys.stderr, flush=True)
            for name in arguments.methods:
                made, asked = ask(corpus, name, arguments.rounds)
                results[name][corpus.name] = asked
                if corpus.name != DOCSTRINGS:
                    results[name]["all"] += asked
                if made > 0.01:
                    print(f"  {name} was made in {made:.2f} s", file=sys.stderr, flush=True)
            if corpus.name == LIBRARY and not arguments.no_upkeep:
                asked_of = [query.text for query in corpus.queries]
                upkeep = {way: kept(corpus.root, way, asked_of, arguments.rounds) for way in WAYS}
    except UnavailableError as error:
        parser.error(str(error))
    rows = {
        name: {corpus: row(asked) for corpus, asked in sorted(of_method.items(), key=lambda one: _LAST.get(one[0], 0))}
        for name, of_method in results.items()
    }
    large = _measure_large() if arguments.large else None
    said = report(rows, upkeep, large, arguments.rounds, judged=not arguments.corpora)
    print(said)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    if arguments.page:
        arguments.page.write_text(_HEAD.read_text() + said + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
