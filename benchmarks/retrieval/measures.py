"""How good an answer is, and what the budgets say of all of them: pure."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from retrieval.clock import Took, middle
from retrieval.judged import Judged
from retrieval.methods import Place

TOKENS = 2_000
CHARACTERS = 4
"""A token is so many characters."""

_FIRST = 10


@dataclass(frozen=True)
class Measured:
    """What became of one query.

    Attributes:
        ndcg: NDCG@10: the share of what the best order would gain, a place gaining less the later it comes.
        hit: Whether an answer is among the first five files.
        rr: One divided by the place of the first answer; 0 if there is none.
        recall: The share of the answers in what the first 2,000 tokens show.
        lines: The share of the lines that answer it in what the first 2,000 tokens show; `None` if they are not known.
        took: How long it took.
    """

    ndcg: float
    hit: float
    rr: float
    recall: float
    lines: float | None
    took: Took


@dataclass(frozen=True)
class Budget:
    """A promise about all queries, or about those of one corpus.

    Attributes:
        method: Whose.
        metric: The column.
        limit: What it should be at least, or, if it is a time in seconds, at most.
        corpus: Whose queries; all if empty.
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
TIMES = ("p50", "p95", "CPU p50")


def measured(places: Iterable[Place], query: Judged, took: Took) -> Measured:
    """What is to be said of an answer; a file counts once."""
    shown = list(places)
    files = list(dict.fromkeys(place.path for place in shown))
    found = [number for number, path in enumerate(files, 1) if path in query.answers]
    gained = sum(1 / math.log2(number + 1) for number in found if number <= _FIRST)
    best = sum(1 / math.log2(number + 1) for number in range(1, min(len(query.answers), _FIRST) + 1))
    read = list(_read(shown))
    return Measured(
        ndcg=gained / best,
        hit=float(bool(found) and found[0] <= 5),
        rr=1 / found[0] if found else 0.0,
        recall=len({place.path for place in read} & set(query.answers)) / len(query.answers),
        lines=_lines(read, query.lines) if query.lines else None,
        took=took,
    )


def _read(places: Iterable[Place]) -> Iterator[Place]:
    """The places of which all is shown within the first tokens; what is cut off there is not read."""
    left = TOKENS * CHARACTERS
    for place in places:
        left -= len(place.text)
        if left < 0:
            return
        yield place


def _lines(read: Sequence[Place], wanted: Mapping[str, tuple[int, int]]) -> float:
    """The share of the lines that answer a query in what is read."""
    answers = {(path, number) for path, (first, last) in wanted.items() for number in range(first, last + 1)}
    return len(answers & {(place.path, number) for place in read for number in place.lines}) / len(answers)


def row(results: Sequence[Measured]) -> dict[str, float]:
    """The columns for some queries."""
    took = [one.took for one in results]
    return {
        "NDCG@10": fmean(one.ndcg for one in results),
        "Hit@5": fmean(one.hit for one in results),
        "MRR": fmean(one.rr for one in results),
        "recall": fmean(one.recall for one in results),
        "lines": fmean(known) if (known := [one.lines for one in results if one.lines is not None]) else math.nan,
        "p50": middle(took).wall,
        "p95": middle(took, 0.95).wall,
        "CPU p50": middle(took).cpu,
    }


def verdicts(rows: Mapping[str, Mapping[str, Mapping[str, float]]]) -> list[tuple[str, bool]]:
    """What each budget says, and whether it is kept; `rows` by method and corpus, "all" among them."""
    judged: list[tuple[str, bool]] = []
    for budget in BUDGETS:
        figures = rows.get(budget.method, {}).get(budget.corpus or "all")
        if figures is not None:
            figure, least = figures[budget.metric], budget.metric not in TIMES
            kept = figure >= budget.limit if least else figure <= budget.limit
            said = f"{budget.limit}" if least else f"{budget.limit * 1000:.0f} ms"
            where = f" on {budget.corpus}" if budget.corpus else ""
            judged.append((f"{budget.method}: {budget.metric}{where} {'≥' if least else '≤'} {said}", kept))
    words = rows.get("rg-words", {})
    for method, corpora in rows.items():
        for corpus, figures in corpora.items():
            if method != "rg-words" and corpus in words:
                worse = figures["NDCG@10"] < words[corpus]["NDCG@10"]
                if worse or corpus == "all":
                    judged.append((f"{method}: NDCG@10 not below rg-words, {corpus}", not worse))
    return judged
