"""Measure how near words that are consecutive in a query are to each other in a text; no I/O."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise

from ripwrap._ranking.word_query import is_unspaced, rough_stem, to_nfc

_NEAR_CHARS = 24
"""Maximum number of characters between two words that count as near each other."""


class Proximity:
    """Counter of pairs of words that are consecutive in a query and near each other in a text."""

    def __init__(self, words: Sequence[str], worths: Mapping[str, float]) -> None:
        """Compile the words of a query, which have these weights, to a pattern."""
        roots = [rough_stem(word) for word in words]
        self._pairs: dict[tuple[str, str], tuple[float, str]] = {}
        for (first, second), (root, next_root) in zip(pairwise(words), pairwise(roots), strict=True):
            if root != next_root:
                worth = min(worths[first], worths[second])
                self._pairs[root, next_root] = worth, f'has "{first}" near "{second}"'
        self._every = sum(worth for worth, _ in self._pairs.values())
        longest_first = sorted(set(roots), key=lambda root: (-len(root), root))
        any_root = f"({'|'.join(map(re.escape, longest_first))})"
        # Words of a script without blanks overlap: they are pairs of characters.
        self._roots = re.compile(f"(?={any_root})" if any(map(is_unspaced, roots)) else any_root)

    def of(self, text: str) -> tuple[float, list[str]]:
        """Return how near the words are to each other in a text, from 0 to 1, and the reasons for this number."""
        if not self._pairs:
            return 0.0, []
        text = to_nfc(text)
        lower = text.lower()
        if len(lower) != len(text):  # a few letters become two letters in lower case, which would shift offsets
            text = lower
        found = [
            (one.start(1), one.end(1), one[1])
            for one in self._roots.finditer(lower)
            if _begins_word(text, one.start(1)) or is_unspaced(one[1])
        ]
        counts: dict[tuple[str, str], float] = defaultdict(float)
        for number, (_, end, root) in enumerate(found):
            seen = set[str]()
            for start, _, later in found[number + 1 : number + 1 + len(root) + _NEAR_CHARS]:
                if start - end > _NEAR_CHARS:
                    break
                if later not in seen:
                    seen.add(later)
                    counts[root, later] += 1
                    counts[later, root] += 0.5
        near, reasons = 0.0, list[str]()
        for pair, (worth, reason) in self._pairs.items():
            if count := counts.get(pair):
                near += worth * count / (count + 1)
                reasons.append(reason)
        return near / self._every, reasons


def _begins_word(text: str, at: int) -> bool:
    """Return True if a word, or a part of an identifier, begins at the index `at` of a text."""
    before, here = text[at - 1 : at], text[at]
    if not before.isalnum():
        return True
    return here.isupper() and (not before.isupper() or text[at + 1 : at + 2].islower())
