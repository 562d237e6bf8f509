"""Files of commits whose messages are similar to a query, against BM25 as a reader would write it."""

import math
import random
import re
from collections import Counter

import pytest

from ripwrap._ranking.word_query import parse_query, rough_stem
from ripwrap.workspace.commit_messages import CommitMessages
from support.effort import times

WORDS = (
    *("cookie", "jar", "lid", "open", "close", "tin", "rust"),
    *("parser", "token", "expired", "session", "retry", "socket"),
)


def expected(commits: list[tuple[str, list[str]]], query: str) -> dict[str, float]:
    """Return the evidence: BM25 of the 20 most similar messages, by the square root of the number of files."""
    texts = [Counter(rough_stem(word) for word in re.findall(r"\w+", message.lower())) for message, _ in commits]
    mean = sum(text.total() for text in texts) / len(texts)
    scores: list[tuple[float, int]] = []
    for place, text in enumerate(texts):
        score = 0.0
        for stem in {rough_stem(word) for word in parse_query(query).words}:
            having = sum(stem in one for one in texts)
            rarity = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
            score += rarity * text[stem] * 2.2 / (text[stem] + 1.2 * (0.25 + 0.75 * text.total() / mean))
        if score:
            scores.append((-score, place))
    values: Counter[str] = Counter()
    for score, place in sorted(scores)[:20]:
        for path in commits[place][1]:
            values[path] += -score / math.sqrt(len(commits[place][1]))  # type: ignore[assignment]
    return {path: value / max(values.values()) for path, value in values.items()}


@pytest.mark.parametrize("seed", range(times(20, 300)))
def test_evidence_is_that_of_the_formula(seed: int) -> None:
    chosen = random.Random(seed)
    paths = [f"src/{word}.py" for word in WORDS]
    commits = [
        (" ".join(chosen.choices(WORDS, k=chosen.randint(1, 12))), chosen.sample(paths, chosen.randint(1, 5)))
        for _ in range(chosen.randint(1, 60))
    ]
    query = " ".join(chosen.sample(WORDS, 3))
    evidence = CommitMessages(commits).evidence(parse_query(query))
    assert evidence == pytest.approx(expected(commits, query))
    assert all(0 < value <= 1 for value in evidence.values())


@pytest.mark.parametrize("commits", [[], [("", ["a"])], [("!", ["a"])], [("y" * 10_000, ["a"])]])
def test_messages_without_words_are_no_evidence(commits: list[tuple[str, list[str]]]) -> None:
    assert CommitMessages(commits).evidence(parse_query("cookie")) == {}
