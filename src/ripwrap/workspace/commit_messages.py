"""Commits of the roots, whose messages say which files answer a question; for `codebase_search`."""

import math
import re
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from itertools import chain
from typing import NamedTuple

from ripwrap._ranking.scoring import NO_EVIDENCE
from ripwrap._ranking.word_query import MAX_WORD_CHARS, WordQuery, rough_stem, stems_of
from ripwrap._system.concurrency import CANCELLED
from ripwrap.errors import RipwrapError
from ripwrap.options import Directories
from ripwrap.sources.git_history import ChangeReader

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


MAX_SECONDS = 1.0
"""Maximum number of seconds for reading the commits of a root; older commits than those that were read do not count."""
MAX_CHARS = 8_000_000
"""Number of characters of messages and paths after which no older commit is read."""
RETRY_SECONDS = 60.0
"""Seconds after which a root is tried again whose commits could not be read."""


class _KnownCommits(NamedTuple):
    """Messages of the commits up to `tip`; without a tip, the commits could not be read at the time `tried`."""

    tip: bytes
    messages: CommitMessages
    tried: float


class CommitHistory:
    """Messages of the last commits of each root, read once for each commit that is checked out; any thread may use it.

    A root without a git repository, or whose repository cannot be read, has no messages: they are only evidence.
    """

    def __init__(self, repositories: Directories, timeout: float | None) -> None:
        """Set where repositories may be, and the time limit of a call, of which a quarter is used at most."""
        self._repositories = repositories
        self._seconds = MAX_SECONDS if timeout is None else min(MAX_SECONDS, timeout / 4)
        self._known: dict[str, _KnownCommits] = {}
        self._lock = threading.Lock()

    def evidence(self, root: str, query: WordQuery) -> Mapping[str, float]:
        """Return the paths below a root that similar commits changed, each with a value from 0 to 1."""
        now = time.monotonic()
        with self._lock:
            known = self._known.get(root)
        if known is not None and not known.tip and now - known.tried < RETRY_SECONDS:
            return NO_EVIDENCE
        try:
            with CANCELLED.get().child(), ChangeReader(root, self._repositories, now + self._seconds) as reader:
                tip = reader.tip()
                if known is None or known.tip != tip:
                    known = _KnownCommits(tip, _messages(reader), now)
        except (ValueError, OSError, RipwrapError):  # TimeoutError and InterruptedError are OSErrors
            known = _KnownCommits(b"", CommitMessages(()), now)
        with self._lock:
            self._known[root] = known
        return known.messages.evidence(query)


def _messages(reader: ChangeReader) -> CommitMessages:
    """Read the messages until the deadline, the newest first."""
    found: list[tuple[str, tuple[str, ...]]] = []
    left = MAX_CHARS
    try:
        with closing(reader.changes()) as changes:  # closing it ends git
            for change in changes:
                CANCELLED.get().check()
                found.append(change)
                left -= len(change.message) + sum(map(len, change.paths))
                if left < 0:
                    break
    except TimeoutError:
        CANCELLED.get().check()
    return CommitMessages(found)
