"""All sets of queries, side by side: the annotated queries, and four sets that the ranking was not tuned to."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from textwrap import fill

from retrieval.agents.measures import BUDGETS
from retrieval.agents.questions import Folder, with_lines
from retrieval.agents.run import measure_policy
from retrieval.history import BASE, COMMITS, LAST, commits
from retrieval.issues.corpus import ELSEWHERE, IN_TRACEBACK, ISSUES, RECIPES, issues
from retrieval.measures import TIMES, Score, row
from retrieval.needles import FOLDERS, NEEDLES, needles
from retrieval.packages import SDISTS
from retrieval.queries import DOCSTRINGS, GIVEN, Corpus, corpora

TITLES = f"{ISSUES}, title only"
SETS = (GIVEN, DOCSTRINGS, COMMITS, NEEDLES, ISSUES)
"""Sets of queries that can be chosen."""

Scores = Mapping[str, Mapping[str, Sequence[Score]]]
"""Scores by method and row of the table."""

_ROWS = (*SETS[:-1], ISSUES, f"{ISSUES}, {IN_TRACEBACK}", f"{ISSUES}, {ELSEWHERE}", TITLES)
_COLUMNS = ("NDCG@10", "Hit@1", "Hit@5", "Hit@10", "line@5", "line@10", "CPU p50")
_POLICY = "codebase_search"


def corpora_of(annotations: Path, sets: Iterable[str]) -> Iterator[Corpus]:
    """Yield the corpora of some sets.

    Raises:
        UnavailableError: A package or a revision is missing, or the tests of a package do not run.
    """
    if {GIVEN, DOCSTRINGS} & set(sets):
        yield from (corpus for corpus in corpora(annotations) if corpus.check in sets)
    if COMMITS in sets:
        yield commits()
    if NEEDLES in sets:
        yield from needles()
    if ISSUES in sets:
        for corpus in issues():
            yield corpus
            titles = tuple(replace(query, text=query.text.split("\n")[0], category=TITLES) for query in corpus.queries)
            yield replace(corpus, name=f"{corpus.name}, title only", queries=titles, check=TITLES)


def rows_of(corpus: Corpus, scores: Sequence[Score]) -> Iterator[tuple[str, Score]]:
    """Yield each score with the rows of the table in which it counts."""
    for query, score in zip(corpus.queries, scores, strict=True):
        yield corpus.check, score
        if corpus.check == ISSUES:
            yield f"{ISSUES}, {query.category}", score


def table(scores: Scores) -> str:
    """Return the figures of each set and method as a Markdown table."""
    lines = [f"| queries | number | method | {' | '.join(_COLUMNS)} |", f"|---|---:|---|{'---:|' * len(_COLUMNS)}"]
    for name in _ROWS:
        for method, of_method in scores.items():
            if of_row := of_method.get(name):
                figures = row(of_row)
                cells = (_cell(column, figures[column]) for column in _COLUMNS)
                lines.append(f"| {name} | {len(of_row)} | {method} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(column: str, figure: float) -> str:
    if column in TIMES:
        return f"{figure * 1000:.0f} ms"
    return "" if figure != figure else f"{figure:.3f}"


def shown_lines(corpus: Corpus) -> dict[int, list[float]]:
    """Return the share of the relevant lines that `codebase_search` shows for each query, by the number of tokens."""
    folder = Folder(corpus.name, corpus.root, with_lines(corpus))
    return {budget: [one.share for one in measure_policy(folder, _POLICY, budget)] for budget in BUDGETS}


def report(scores: Scores, lines: Mapping[int, Sequence[float]]) -> str:
    """Return all figures as Markdown.

    Args:
        scores: Scores of the queries.
        lines: Shares of the relevant lines of issues, by number of tokens.
    """
    packages = ", ".join(SDISTS[name] for name in sorted({*FOLDERS, *json.loads(RECIPES.read_text())}))
    parts = [
        "## All sets of queries",
        _wrap(
            "The next table has all sets of queries side by side. Hit@1, Hit@5 and Hit@10 are the shares of the "
            "queries with a relevant file among the first one, five and ten files. line@5 and line@10 are the shares "
            "with the first relevant line, such as that of a `def`, among the first five and ten results. `commits` "
            f"searches revision {BASE} of ripwrap, and asks for commits up to {LAST}. The packages of `needles` and "
            f"`issues` are {packages}. Each query of `commits`, `needles` and `issues` ran once."
        ),
        table(scores),
    ]
    if lines:
        shares = " and ".join(f"{fmean(lines[budget]):.3f} in {budget:,} tokens" for budget in BUDGETS)
        parts.append(
            _wrap(f"Share of the relevant lines of `{ISSUES}` that `{_POLICY}` shows, without an index: {shares}.")
        )
    return "\n\n".join(parts)


def _wrap(text: str) -> str:
    return fill(text, 100, break_on_hyphens=False, break_long_words=False)
