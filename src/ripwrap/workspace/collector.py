"""Collect the matches of a tool call: the first match of every file, then the second match of every file, and so on."""

import os
from collections import Counter

from ripwrap._ripgrep.page_collector import MatchCollector, PageRequest
from ripwrap._ripgrep.round_robin import RoundRobinCollector
from ripwrap.results import FileMatches
from ripwrap.workspace.scope import PathFilter, ReportProgress


class RoundRobinMatchCollector(RoundRobinCollector, MatchCollector):
    """Collector that takes the first match of every file, then the second, and so on, and reports progress.

    rg joins matches over several lines into one record if no line is between them, and `count` counts each of them
    (rg-facts 17). A page consists of records, and `hits` has the numbers that `count` has.
    """

    def __init__(
        self,
        page_request: PageRequest,
        allowed: PathFilter | None,
        progress: ReportProgress | None,
        *,
        joined: bool = False,
    ) -> None:
        """Set the page and the filters; `joined` is True if a record may have several matches."""
        super().__init__(page_request, None if allowed is None else lambda path: allowed(os.fsdecode(path)))
        self._progress = progress
        self._counts_together = not joined
        self._hits = Counter[str]()

    @property
    def hits(self) -> int:
        """Number of matches so far, also of those that rg joins."""
        return self.matches if self._counts_together else self._hits.total()

    def hits_of(self, file: FileMatches) -> int:
        """Return the number of matches in a file, also of those that rg joins."""
        return file.total_matches if self._counts_together else self._hits[file.path]

    def feed(self, chunk: bytes) -> None:
        """Process a chunk of rg's output, and report the number of matches so far."""
        super().feed(chunk)
        if self._progress is not None:
            self._progress(self.matches)

    def _match(self, record: bytes) -> None:
        before = self.matches
        super()._match(record)
        if not self._counts_together and self.matches > before and self._path is not None:
            # In a JSON string, the quotes of this text would have backslashes.
            self._hits[os.fsdecode(self._path)] += max(1, record.count(b'},"start":'))
