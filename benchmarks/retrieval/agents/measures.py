"""Count the relevant lines in the first tokens of answers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from retrieval.agents.policies import shown_lines
from retrieval.agents.questions import Question
from retrieval.measures import CHARS_PER_TOKEN

BUDGETS = (2_000, 8_000)
"""Numbers of tokens of answers that an agent reads."""


@dataclass(frozen=True)
class Lines:
    """Relevant lines in the first tokens of the answers to a question; or means of several questions.

    Attributes:
        share: Share of the relevant lines that are shown, from 0 to 1.
        tokens: Tokens of the answers, at most the budget.
        calls: Number of calls, including the call in whose answer the budget ends.
    """

    share: float
    tokens: float
    calls: float


def tokens_of(text: str) -> float:
    """Return the number of tokens of a text: a quarter of its characters."""
    return len(text) / CHARS_PER_TOKEN


def count_lines(answers: Iterable[str], question: Question, budget: int) -> Lines:
    """Count the relevant lines in the first `budget` tokens of answers; a line that is cut does not count."""
    left, calls = budget * CHARS_PER_TOKEN, 0
    found: set[tuple[str, int]] = set()
    for answer in answers:
        calls += 1
        whole = answer if len(answer) <= left else answer[: left + 1].rpartition("\n")[0]
        found |= {(line.path, line.number) for line in shown_lines(whole)} & question.lines
        left -= len(answer)
        if left <= 0:
            break
    return Lines(len(found) / len(question.lines), budget - max(left, 0) / CHARS_PER_TOKEN, calls)


def mean(figures: Sequence[Lines]) -> Lines:
    """Return the means of the figures of several questions."""
    return Lines(
        fmean(one.share for one in figures), fmean(one.tokens for one in figures), fmean(one.calls for one in figures)
    )
