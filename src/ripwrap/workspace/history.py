"""Commits of the roots, whose messages say which files answer a question; for `codebase_search`."""

import threading
import time
from collections.abc import Mapping
from contextlib import closing
from typing import NamedTuple

from ripwrap._concurrency import CANCELLED
from ripwrap._ranking.history import CommitMessages
from ripwrap._ranking.scoring import NO_EVIDENCE
from ripwrap._ranking.word_query import WordQuery
from ripwrap.errors import RipwrapError
from ripwrap.options import Directories
from ripwrap.sources.git_changes import ChangeReader

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
        """Set the limits.

        Args:
            repositories: Directories in which repositories must be, with all directories that they use.
            timeout: Time limit of a call in seconds, of which a quarter is used at most; `None` is no limit.
        """
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
