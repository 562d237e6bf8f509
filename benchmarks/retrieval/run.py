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
from functools import partial
from pathlib import Path
from textwrap import fill

sys.path.append(str(Path(__file__).parent.parent))

from retrieval.clock import Timing, percentile, timed
from retrieval.large import Figures, parse_figures, section
from retrieval.measures import CHARS_PER_TOKEN, COLUMNS, MAX_TOKENS, TIMES, Score, row, score, verdicts
from retrieval.methods import METHODS, Result
from retrieval.queries import DOCSTRINGS, LIBRARY, NPM, WHEELS, Corpus, UnavailableError, corpora
from retrieval.upkeep import CONFIGURATIONS, UpkeepFigures, measure_upkeep
from retrieval.upkeep import table as upkeep_table
from ripwrap import sync
from ripwrap._code.windows import window_chunks

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
            f"{platform.platform()}. The versions of the corpora are {pins}.",
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


def main() -> int:
    """Run the benchmark, print the figures, and write the files that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder of the annotations")
    methods = "methods to compare [default: all]"
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), help=methods)
    parser.add_argument("--corpora", nargs="+", metavar="NAME", help="corpora to search [default: all]")
    parser.add_argument("--rounds", type=int, default=3, help="number of runs of each query [default: 3]")
    parser.add_argument("--no-upkeep", action="store_true", help="do not measure the upkeep of an index")
    parser.add_argument("--large", action="store_true", help="also measure an index of the Linux sources (minutes)")
    parser.add_argument("--page", type=Path, metavar="FILE", help="file to write as Markdown")
    parser.add_argument("--json", type=Path, metavar="FILE", help="file for the figures of the first table")
    arguments = parser.parse_args()
    scores: dict[str, dict[str, list[Score]]] = {name: defaultdict(list) for name in arguments.methods}
    upkeep: dict[str, UpkeepFigures] = {}
    try:
        for corpus in corpora(arguments.folder):
            if arguments.corpora and corpus.name not in arguments.corpora:
                continue
            about = f"{len(corpus.queries)} queries, {size_text(corpus.root)}"
            print(f"{corpus.name}: {about}", file=sys.stderr, flush=True)
            for name in arguments.methods:
                creation, of_corpus = measure_method(corpus, name, arguments.rounds)
                scores[name][corpus.name] = of_corpus
                if corpus.name != DOCSTRINGS:
                    scores[name]["all"] += of_corpus
                if creation > 0.01:
                    print(f"  created {name} in {creation:.2f} s", file=sys.stderr, flush=True)
            if corpus.name == LIBRARY and not arguments.no_upkeep:
                texts = [query.text for query in corpus.queries]
                upkeep = {name: measure_upkeep(corpus.root, name, texts, arguments.rounds) for name in CONFIGURATIONS}
    except UnavailableError as error:
        parser.error(str(error))
    rows = {
        name: {corpus: row(of_corpus) for corpus, of_corpus in sorted(of_method.items(), key=_position)}
        for name, of_method in scores.items()
    }
    large = _measure_large() if arguments.large else None
    text = report(rows, upkeep, large, arguments.rounds, with_budgets=not arguments.corpora)
    print(text)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    if arguments.page:
        arguments.page.write_text(_HEAD.read_text() + text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
