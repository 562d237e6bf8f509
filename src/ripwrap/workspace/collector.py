"""Collect the matches of a tool call: the first match of every file, then the second match of every file, and so on."""

import os

from ripwrap._ripgrep.page_collector import MatchCollector, PageRequest
from ripwrap._ripgrep.round_robin import RoundRobinCollector
from ripwrap.workspace.scope import PathFilter, ReportProgress


class RoundRobinMatchCollector(RoundRobinCollector, MatchCollector):
    """Collector that takes the first match of every file, then the second, and so on, and reports progress."""

    def __init__(self, page_request: PageRequest, allowed: PathFilter | None, progress: ReportProgress | None) -> None:
        super().__init__(page_request, None if allowed is None else lambda path: allowed(os.fsdecode(path)))
        self._progress = progress

    def feed(self, chunk: bytes) -> None:
        """Process a chunk of rg's output, and report the number of matches so far."""
        super().feed(chunk)
        if self._progress is not None:
            self._progress(self.matches)
