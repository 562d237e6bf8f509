"""Find the files that earlier commits changed whose messages are similar to a query; no I/O."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from ripwrap._ranking.word_query import MAX_WORD_CHARS, WordQuery, rough_stem, stems_of

_SIMILAR = 20
"""Number of commits, the most similar ones, whose files count."""
_BM25_K1, _BM25_B = 1.2, 0.75
_WORD = re.compile(r"\w+")


class _Commit(NamedTuple):
    paths: Sequence[str]
    words: int


class CommitMessages:
    """Messages of commits, which are searched for the words of queries."""

    def __init__(self, commits: Iterable[tuple[str, Sequence[str]]]) -> None:
        """Read the commits: the message of each, and the paths of the files that it changed."""
        self._commits: list[_Commit] = []
        self._having: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        for message, paths in commits:
            words = (word for word in _WORD.findall(message) if len(word) <= MAX_WORD_CHARS)
            stems = Counter(chain.from_iterable(map(stems_of, words)))
            for stem, number in stems.items():
                self._having[stem].append((len(self._commits), number))
            self._commits.append(_Commit(paths, stems.total()))

    def evidence(self, query: WordQuery) -> Mapping[str, float]:
        """Return the paths that similar commits changed, each with a value from 0 to 1.

        A commit counts by BM25 of its message, divided by the square root of the number of its files.
        """
        total = len(self._commits)
        mean = sum(commit.words for commit in self._commits) / total if total else 0.0
        scores: defaultdict[int, float] = defaultdict(float)
        for stem in dict.fromkeys(map(rough_stem, query.words)):
            having = self._having.get(stem, ())
            rarity = math.log(1 + (total - len(having) + 0.5) / (len(having) + 0.5))
            for place, number in having:
                often = _BM25_K1 * (1 - _BM25_B + _BM25_B * self._commits[place].words / mean)
                scores[place] += rarity * number * (_BM25_K1 + 1) / (number + often)
        values: defaultdict[str, float] = defaultdict(float)
        for place in sorted(scores, key=lambda place: (-scores[place], place))[:_SIMILAR]:
            paths = self._commits[place].paths
            for path in paths:
                values[path] += scores[place] / math.sqrt(len(paths))
        highest = max(values.values(), default=1.0)
        return {path: value / highest for path, value in values.items()}
