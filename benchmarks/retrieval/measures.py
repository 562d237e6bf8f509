"""How good an answer is, and what the budgets say of all of them: pure."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

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
        seconds: How long it took.
    """

    ndcg: float
    hit: float
    rr: float
    recall: float
    seconds: float


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
    Budget("index-free", "p50", 0.2, "cpython"),
    Budget("index", "NDCG@10", 0.885),
    Budget("index", "NDCG@10", 0.74, "docstrings"),
    Budget("index", "recall", 0.96),
    Budget("index", "p50", 0.02, "cpython"),
    Budget("index+syntax", "recall", 0.96),
    Budget("hybrid", "recall", 0.96),
)
COLUMNS = ("NDCG@10", "Hit@5", "MRR", "recall", "p50", "p95")
TIMES = ("p50", "p95")


def measured(places: Iterable[tuple[str, str]], answers: Sequence[str], seconds: float) -> Measured:
    """What is to be said of an answer: paths, each with the text that is shown of it; a file counts once."""
    shown = list(places)
    files = list(dict.fromkeys(path for path, _ in shown))
    found = [number for number, path in enumerate(files, 1) if path in answers]
    gained = sum(1 / math.log2(number + 1) for number in found if number <= _FIRST)
    best = sum(1 / math.log2(number + 1) for number in range(1, min(len(answers), _FIRST) + 1))
    return Measured(
        ndcg=gained / best,
        hit=float(bool(found) and found[0] <= 5),
        rr=1 / found[0] if found else 0.0,
        recall=len(_read(shown) & set(answers)) / len(answers),
        seconds=seconds,
    )


def _read(places: Iterable[tuple[str, str]]) -> set[str]:
    """The files of which something is shown within the first tokens; what is cut off there is not read."""
    left, files = TOKENS * CHARACTERS, set[str]()
    for path, text in places:
        left -= len(text)
        if left < 0:
            break
        files.add(path)
    return files


def row(results: Sequence[Measured]) -> dict[str, float]:
    """The columns for some queries."""
    seconds = sorted(one.seconds for one in results)
    return {
        "NDCG@10": fmean(one.ndcg for one in results),
        "Hit@5": fmean(one.hit for one in results),
        "MRR": fmean(one.rr for one in results),
        "recall": fmean(one.recall for one in results),
        "p50": seconds[(len(seconds) - 1) // 2],
        "p95": seconds[math.ceil(len(seconds) * 0.95) - 1],
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
