"""Measure ranked search: `python benchmarks/retrieval/run.py DIR`, where DIR has annotated queries.

DIR has `repos.json`, a JSON file of annotations for each repository that it lists, and `cpython.tsv`. Each line of
`cpython.tsv` is a query, a tab, and the relevant files of the standard library. Packages are downloaded from PyPI and
npm once and stored in the user's cache.
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
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from textwrap import fill

sys.path.append(str(Path(__file__).parent.parent))

from retrieval.clock import Timing, percentile, timed
from retrieval.issues.corpus import ISSUES
from retrieval.large import Figures, parse_figures, section
from retrieval.measures import CHARS_PER_TOKEN, COLUMNS, MAX_TOKENS, TIMES, Score, row, score, verdicts
from retrieval.methods import METHODS, Result, semble_model
from retrieval.needles import evenly
from retrieval.packages import NPM, WHEELS, UnavailableError
from retrieval.queries import DOCSTRINGS, GIVEN, LIBRARY, Corpus
from retrieval.sets import SETS, corpora_of, rows_of, shown_lines
from retrieval.sets import report as sets_report
from retrieval.upkeep import CONFIGURATIONS, UpkeepFigures, measure_upkeep
from retrieval.upkeep import table as upkeep_table
from ripwrap import sync
from ripwrap._code.treesitter.merge import window_chunks

_LAST = {"all": 1, DOCSTRINGS: 2}
"""Corpora at the end of the table, by position."""
_HEAD = Path(__file__).parent / "head.md"


def measure_method(corpus: Corpus, name: str, rounds: int) -> tuple[float, list[Score]]:
    """Run all queries of a corpus with one method.

    Returns:
        Seconds to create the method, and the score of each query; its timing is the median of the rounds.
    """
    start = time.perf_counter()
    method = METHODS[name](corpus.root)
    creation = time.perf_counter() - start
    method.answer(corpus.queries[0].text)  # one-time work, such as imports, does not count
    scores: list[Score] = []
    for query in corpus.queries:
        results: list[Result] = []
        timings: list[Timing] = []
        for _ in range(rounds):
            results, timing = timed(partial(method.answer, query.text))
            timings.append(timing)
        scores.append(score(results, query, percentile(timings)))
    return creation, scores


def size_text(root: Path) -> str:
    """Describe the size of a corpus: files, text and chunks."""
    files = [root / path for path in sync.files(cwd=root)]
    texts = [raw.decode("utf-8", "replace") for raw in (file.read_bytes() for file in files) if b"\0" not in raw]
    chunks = sum(1 for text in texts for _ in window_chunks(text))
    return f"{len(files):,} files, {sum(map(len, texts)) / 1e6:.1f} MB of text, {chunks:,} chunks"


def table(rows: dict[str, dict[str, dict[str, float]]]) -> str:
    """Return the figures as a Markdown table."""
    lines = [
        f"| corpus | method | {' | '.join(COLUMNS)} |",
        f"|---|---|{'---:|' * len(COLUMNS)}",
    ]
    for corpus in next(iter(rows.values())):
        for method, figures in rows.items():
            shown = (_cell(column, figures[corpus][column]) for column in COLUMNS)
            lines.append(f"| {corpus} | {method} | {' | '.join(shown)} |")
    return "\n".join(lines)


def _position(corpus: tuple[str, list[Score]]) -> int:
    return _LAST.get(corpus[0], 0)


def _cell(column: str, figure: float) -> str:
    if column in TIMES:
        return f"{figure * 1000:.0f} ms"
    return "" if math.isnan(figure) else f"{figure:.3f}"


def report(
    rows: dict[str, dict[str, dict[str, float]]],
    upkeep: dict[str, UpkeepFigures],
    large: Figures | None,
    rounds: int,
    *,
    with_budgets: bool,
) -> str:
    """Return all figures as Markdown."""
    binary = sync.resolve()
    pins = ", ".join((*WHEELS.values(), *NPM.values(), f"{LIBRARY} {platform.python_version()}"))
    parts = [
        fill(
            f"The machine has rg {'.'.join(map(str, binary.version))}, {os.cpu_count()} CPUs and the system "
            f"{platform.platform()}. The versions of the corpora are {pins}."
            + (f" {semble_model()[1]}" if "semble" in rows else ""),
            100,
            break_on_hyphens=False,
        ),
        fill(
            "The table has a row for each corpus and method. NDCG@10 is 1 if all relevant files come first, and less "
            "if they come later. Hit@5 is the share of the queries with a relevant file among the first five files. "
            "MRR is the mean of 1 divided by the rank of the first relevant file. Recall is the share of the relevant "
            f"files that are in the first {MAX_TOKENS:,} tokens of an answer ({CHARS_PER_TOKEN} characters each). "
            "Lines is the share of the relevant lines that are in these tokens, for the queries with annotated lines. "
            "p50 is the median of the times of the queries, p95 is their 95th percentile, and CPU p50 is the median of "
            "the CPU times. Each "
            f"query ran {rounds} times, and its median time counts.",
            100,
        ),
        table(rows),
    ]
    if upkeep:
        parts += [
            fill(
                f"The next table has the upkeep of an index of {LIBRARY}. Its rows are the ways to split files into "
                "chunks: `windows` by lines, `syntax` at definitions, and `syntax, wordllama` at definitions, with "
                "embeddings. The columns are: the time of the build; the megabytes of text that the build indexed in "
                "a second of CPU time; the times of a refresh without a change (no-op), after an edit of one file, and "
                "after a switch of branches; the median time of a query; and the size of the index. The last row has "
                "the goals for `windows`.",
                100,
                break_on_hyphens=False,
            ),
            upkeep_table(upkeep),
        ]
    if large is not None:
        parts.append(section(large))
    if with_budgets:
        parts.append("Goals for the methods in the first table, for the corpus `all` unless another one is named:")
        parts.append("\n".join(f"- {'met' if met else '**MISSED**'}: {budget}" for budget, met in verdicts(rows)))
    return "\n\n".join(parts)


def _measure_large() -> Figures:
    """Measure in a separate process, so that its peak memory is that of the build."""
    command = [sys.executable, str(Path(__file__).with_name("large.py"))]
    return parse_figures(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


@dataclass
class Measured:
    """Figures of the queries.

    Attributes:
        scores: Scores by method and corpus, of the annotated queries and of docstrings.
        by_set: Scores by method and row of the table of sets.
        lines: Shares of the relevant lines of issues that `codebase_search` shows, by number of tokens.
        upkeep: Figures of the index of the standard library.
    """

    scores: dict[str, dict[str, list[Score]]]
    by_set: dict[str, dict[str, list[Score]]]
    lines: dict[int, list[float]]
    upkeep: dict[str, UpkeepFigures]

    @classmethod
    def none_yet(cls, methods: Iterable[str]) -> "Measured":
        """Return figures to add to."""
        by_corpus, by_set = ({name: defaultdict[str, list[Score]](list) for name in methods} for _ in range(2))
        return cls({**by_corpus}, {**by_set}, defaultdict(list), {})

    def add(self, corpus: Corpus, methods: Iterable[str], rounds: int) -> None:
        """Run the queries of a corpus with some methods; queries of the sets that are not annotated run once."""
        annotated = corpus.check in (GIVEN, DOCSTRINGS)
        for name in methods:
            creation, of_corpus = measure_method(corpus, name, rounds if annotated else 1)
            for of_row, one in rows_of(corpus, of_corpus):
                self.by_set[name][of_row].append(one)
            if annotated:
                self.scores[name][corpus.name] = of_corpus
            if corpus.check == GIVEN:
                self.scores[name]["all"] += of_corpus
            if creation > 0.01:
                print(f"  created {name} in {creation:.2f} s", file=sys.stderr, flush=True)
        if corpus.check == ISSUES:
            for budget, shares in shown_lines(corpus).items():
                self.lines[budget] += shares


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder of the annotations")
    methods = "methods to compare [default: all]"
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), help=methods)
    parser.add_argument("--corpora", nargs="+", metavar="NAME", help="corpora to search [default: all]")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), help="sets of queries [default: all]")
    parser.add_argument("--queries", type=int, metavar="N", help="at most N queries of each corpus [default: all]")
    rounds = "number of runs of each annotated query and docstring [default: 3]"
    parser.add_argument("--rounds", type=int, default=3, help=rounds)
    parser.add_argument("--no-upkeep", action="store_true", help="do not measure the upkeep of an index")
    parser.add_argument("--large", action="store_true", help="also measure an index of the Linux sources (minutes)")
    parser.add_argument("--page", type=Path, metavar="FILE", help="file to write as Markdown")
    parser.add_argument("--json", type=Path, metavar="FILE", help="file for the figures of the first table")
    return parser


def _measure(arguments: argparse.Namespace) -> Measured:
    """Run the queries that the arguments name.

    Raises:
        UnavailableError: A package cannot be downloaded, lacks an annotated file, or its tests do not run.
    """
    measured = Measured.none_yet(arguments.methods)
    for whole in corpora_of(arguments.folder, arguments.sets):
        if arguments.corpora and whole.name not in arguments.corpora:
            continue
        corpus = replace(whole, queries=evenly(whole.queries, arguments.queries or len(whole.queries)))
        about = f"{len(corpus.queries)} queries, {size_text(corpus.root)}"
        print(f"{corpus.name}: {about}", file=sys.stderr, flush=True)
        measured.add(corpus, arguments.methods, arguments.rounds)
        if corpus.name == LIBRARY and not arguments.no_upkeep:
            texts = [query.text for query in corpus.queries]
            figures = {name: measure_upkeep(corpus.root, name, texts, arguments.rounds) for name in CONFIGURATIONS}
            measured.upkeep.update(figures)
    return measured


def main() -> int:
    """Run the benchmark, print the figures, and write the files that the arguments name."""
    parser = _parser()
    arguments = parser.parse_args()
    try:
        measured = _measure(arguments)
    except UnavailableError as error:
        parser.error(str(error))
    rows = {
        name: {corpus: row(of_corpus) for corpus, of_corpus in sorted(of_method.items(), key=_position)}
        for name, of_method in measured.scores.items()
    }
    large = _measure_large() if arguments.large else None
    whole = arguments.corpora is None and {GIVEN, DOCSTRINGS} <= {*arguments.sets}
    text = report(rows, measured.upkeep, large, arguments.rounds, with_budgets=whole)
    text += f"\n\n{sets_report(measured.by_set, measured.lines)}"
    print(text)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    if arguments.page:
        arguments.page.write_text(_HEAD.read_text() + text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
