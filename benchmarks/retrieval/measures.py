"""Measures of the quality of answers, and budgets for them; no I/O."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from retrieval.clock import Timing, percentile
from retrieval.methods import Result
from retrieval.queries import Query

MAX_TOKENS = 2_000
"""Tokens of the answer that recall considers."""
CHARS_PER_TOKEN = 4

_CUTOFF = 10
"""Number of files that NDCG considers."""


@dataclass(frozen=True)
class Score:
    """Quality of the answer to one query; "relevant" files and lines are those of the annotation.

    Attributes:
        ndcg: NDCG@10, the normalized discounted cumulative gain: 1 if all relevant files come first, less if they come
            later (https://en.wikipedia.org/wiki/Discounted_cumulative_gain).
        hit: 1 if a relevant file is among the first five files, otherwise 0.
        rr: Reciprocal rank: 1 divided by the rank of the first relevant file; 0 if there is none.
        recall: Share of the relevant files in the first 2,000 tokens.
        lines: Share of the relevant lines in the first 2,000 tokens; `None` if the annotation has no lines.
        timing: Timing of the query.
        place: Rank of the first result that has the first relevant line of a file, such as the line of a `def`; 0 if no
            result has it, `None` if the annotation has no lines.
    """

    ndcg: float
    hit: float
    rr: float
    recall: float
    lines: float | None
    timing: Timing
    place: int | None = None


@dataclass(frozen=True)
class Budget:
    """Limit for a figure of one method.

    Attributes:
        method: Name of the method.
        metric: Column of the table.
        limit: Lower limit, or upper limit in seconds if the column is a time.
        corpus: Corpus of the queries; empty for the queries of all corpora.
    """

    method: str
    metric: str
    limit: float
    corpus: str = ""


BUDGETS = (
    Budget("index-free", "NDCG@10", 0.885),
    Budget("index-free", "NDCG@10", 0.74, "docstrings"),
    Budget("index-free", "recall", 0.96),
    Budget("index-free", "CPU p50", 0.15, "cpython"),
    Budget("index", "NDCG@10", 0.885),
    Budget("index", "NDCG@10", 0.74, "docstrings"),
    Budget("index", "recall", 0.96),
    Budget("index", "CPU p50", 0.008, "cpython"),
    Budget("index+syntax", "recall", 0.96),
    Budget("hybrid", "recall", 0.96),
)
COLUMNS = ("NDCG@10", "Hit@5", "MRR", "recall", "lines", "p50", "p95", "CPU p50")
PEERS = ("rg-words", "semble")
"""Methods that are not ripwrap's."""
TIMES = ("p50", "p95", "CPU p50")


def score(results: Sequence[Result], query: Query, timing: Timing) -> Score:
    """Score the results of a query; the rank of a file is that of its first result."""
    files = list(dict.fromkeys(result.path for result in results))
    ranks = [rank for rank, path in enumerate(files, 1) if path in query.answers]
    gain = sum(1 / math.log2(rank + 1) for rank in ranks if rank <= _CUTOFF)
    best = sum(1 / math.log2(rank + 1) for rank in range(1, min(len(query.answers), _CUTOFF) + 1))
    first = list(_first_tokens(results))
    return Score(
        ndcg=gain / best,
        hit=float(bool(ranks) and ranks[0] <= 5),
        rr=1 / ranks[0] if ranks else 0.0,
        recall=len({result.path for result in first} & set(query.answers)) / len(query.answers),
        lines=_recall_of_lines(first, query.lines) if query.lines else None,
        timing=timing,
        place=_place_of_lines(results, query.lines) if query.lines else None,
    )


def _place_of_lines(results: Sequence[Result], relevant: Mapping[str, tuple[int, int]]) -> int:
    begins = {(path, first) for path, (first, _) in relevant.items()}
    has = (any(path == result.path and line in result.lines for path, line in begins) for result in results)
    return next((rank for rank, found in enumerate(has, 1) if found), 0)


def _first_tokens(results: Iterable[Result]) -> Iterator[Result]:
    """Yield the results whose texts are completely in the first `MAX_TOKENS` tokens."""
    left = MAX_TOKENS * CHARS_PER_TOKEN
    for result in results:
        left -= len(result.text)
        if left < 0:
            return
        yield result


def _recall_of_lines(results: Sequence[Result], relevant: Mapping[str, tuple[int, int]]) -> float:
    """Return the share of the relevant lines that the results have."""
    lines = {(path, number) for path, (first, last) in relevant.items() for number in range(first, last + 1)}
    return len(lines & {(result.path, number) for result in results for number in result.lines}) / len(lines)


def row(scores: Sequence[Score]) -> dict[str, float]:
    """Return the columns of the table for the scores of several queries."""
    timings = [one.timing for one in scores]
    places = [one.place for one in scores if one.place is not None]
    return {
        "NDCG@10": fmean(one.ndcg for one in scores),
        "Hit@1": fmean(one.rr == 1 for one in scores),
        "Hit@5": fmean(one.hit for one in scores),
        "Hit@10": fmean(one.rr >= 1 / 10 for one in scores),
        "line@5": _share_within(places, 5),
        "line@10": _share_within(places, 10),
        "MRR": fmean(one.rr for one in scores),
        "recall": fmean(one.recall for one in scores),
        "lines": fmean(known) if (known := [one.lines for one in scores if one.lines is not None]) else math.nan,
        "p50": percentile(timings).wall,
        "p95": percentile(timings, 0.95).wall,
        "CPU p50": percentile(timings).cpu,
    }


def _share_within(places: Sequence[int], number: int) -> float:
    return fmean(0 < place <= number for place in places) if places else math.nan


def verdicts(rows: Mapping[str, Mapping[str, Mapping[str, float]]]) -> list[tuple[str, bool]]:
    """Return the text of each budget, and True if it is met.

    Args:
        rows: Columns of the table by method and corpus; the corpus "all" has the queries of several.
    """
    judged: list[tuple[str, bool]] = []
    for budget in BUDGETS:
        figures = rows.get(budget.method, {}).get(budget.corpus or "all")
        if figures is not None:
            figure, at_least = figures[budget.metric], budget.metric not in TIMES
            met = figure >= budget.limit if at_least else figure <= budget.limit
            limit = f"{budget.limit}" if at_least else f"{budget.limit * 1000:.0f} ms"
            where = f" on {budget.corpus}" if budget.corpus else ""
            judged.append((f"{budget.method}: {budget.metric}{where} {'≥' if at_least else '≤'} {limit}", met))
    words = rows.get("rg-words", {})
    for method, corpora in rows.items():
        for corpus, figures in corpora.items():
            if method not in PEERS and corpus in words:
                worse = figures["NDCG@10"] < words[corpus]["NDCG@10"]
                if worse or corpus == "all":
                    where = "" if corpus == "all" else f" on {corpus}"
                    judged.append((f"{method}: NDCG@10 not below that of rg-words{where}", not worse))
    return judged
