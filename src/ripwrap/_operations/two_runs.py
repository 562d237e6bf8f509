"""Collect a page faster if a search has very many matches: count all matches, then search only the page's files.

rg writes the context of every match, but a page needs the context of few matches. So if many matches come in a short
time (a dense search), rg is stopped. A second run of rg, with `--count`, finds the exact totals and the files of the
page, and a third run, with context, searches these files. The result is the same as with a single run. If the result
could differ, a single run is used (docs/explanation/architecture.md).
"""

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from ripwrap._concurrency import countdown
from ripwrap._operations.pagination import on_page
from ripwrap._ripgrep.command import in_paths
from ripwrap._ripgrep.decoder import CountDecoder
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.page_collector import FirstMatches, MatchCollector, PageRequest, is_text
from ripwrap._ripgrep.protocols import Runner, Step
from ripwrap._ripgrep.query import Query

MAX_PAGE = 1000
"""Maximum number of matches of a page that is collected in several runs."""

MAX_PATHS = 10
"""Maximum number of searched directories for which several runs may collect a page."""

C = TypeVar("C", bound=MatchCollector)

_CONTEXT = ("context", "before_context", "after_context", "passthru")
# With these options, `rg --count` may count other things than the records of rg's JSON, or too much (rg-facts 51), or
# rg searches a file that is named as a path differently from a file in a directory (rg-facts 20).
_OTHER_COUNTS = ("multiline", "max_count", "invert_match", "null_data", "binary", "text", "stop_on_nonmatch", "mmap")
_STATS = re.compile(rb"\n(\d+) matched lines\n(\d+) files contained matches\n")


@dataclass(frozen=True, slots=True)
class Density:
    """Condition under which a search is dense, so that its matches are counted first."""

    matches: int = 4096
    per_second: float = 100_000


class _DenseSearchError(Exception):
    """Error that stops the first run of rg, because the search is dense."""

    def __init__(self, collector: "_FirstCollector") -> None:
        super().__init__()
        self.collector = collector


class _FirstCollector(MatchCollector):
    """Collector of the first run of rg. If the search is dense, the collector stops rg by raising an error."""

    def __init__(self, page: PageRequest, density: Density) -> None:
        super().__init__(page)
        self._begun = time.monotonic()
        self._per_second = density.per_second
        self._check_at = page.max_matches + density.matches
        self._checked = False

    def feed(self, chunk: bytes) -> None:
        """Process a chunk of rg's output."""
        super().feed(chunk)
        if self._checked or self.matches < self._check_at:
            return
        self._checked = True
        is_dense = self.matches >= self._per_second * (time.monotonic() - self._begun)
        if is_dense and not (self.binary or self.dropped_records or self.ended):
            raise _DenseSearchError(self)


class _CountCollector(MatchCollector):
    """Collector of the number of matches of each file. It keeps the files of the page, but no matched lines."""

    def __init__(self, page: PageRequest) -> None:
        super().__init__(page)
        self.complete: bool = False
        self._decoder = CountDecoder()

    def feed(self, chunk: bytes) -> None:
        """Process a chunk of rg's output; raise `DecodeError` if it is malformed."""
        for path, count in self._decoder.split(chunk):
            self._add_file(path, count)

    def end_run(self, end: Exit) -> None:
        """Compare the counts with rg's statistics, and set `complete`."""
        stats = _STATS.search(self._decoder.rest)
        self.complete = end.ended and stats is not None and (int(stats[1]), int(stats[2])) == (self.matches, self.files)


async def collect_page(
    run: Runner, query: Query, page: PageRequest, seconds: float | None, density: Density
) -> MatchCollector:
    """Collect the page of a search, and count all matches, in one run of rg or in several.

    Of a query whose results are streamed, only the first matches are collected, in the order in which rg sorts them.
    """
    if query.streamed:
        return await run.collect(Step(query, lambda: _first_matches(query, page), seconds))
    if not _allows_two_runs(query, page):
        return await run.collect(Step(query, lambda: MatchCollector(page), seconds))
    left = countdown(seconds)
    try:
        return await run.collect(Step(query, lambda: _FirstCollector(page, density), left()))
    except _DenseSearchError as dense:
        first = dense.collector
    found = await _collect_counted(run, query, page, left)
    if found is None:
        found = await run.collect(Step(query, lambda: MatchCollector(page), left()))
    if not found.timed_out or (found.matches >= first.matches and not isinstance(found, _CountCollector)):
        return found
    first.matches, first.files = max(first.matches, found.matches), max(first.files, found.files)
    first.finish(found.end, timed_out=True)
    return first


def _first_matches(query: Query, page: PageRequest) -> FirstMatches:
    collector = FirstMatches(page)
    if query.sort_key != "none":
        collector.begin_ordered()
    return collector


async def _collect_counted(
    run: Runner, query: Query, page: PageRequest, left: Callable[[], float | None]
) -> MatchCollector | None:
    """Count all matches, then search the files of the page, and return a collector with the counts and the page.

    Return `None` if a file with a match is binary, a file of the page has changed between the runs, or a record was
    too long. If the time limit was reached, the returned collector has only the counts so far.
    """
    counting = replace(query.without(*_CONTEXT), mode="count", stats=True)
    counts = await run.collect(Step(counting, lambda: _CountCollector(page), left()))
    if counts.timed_out:
        return counts
    if not counts.complete:
        return None
    blocks = [*on_page(page, counts.blocks())]
    if not blocks:
        return counts
    most = max(skip + taken for _, skip, taken in blocks) + 1  # one more, to see if a file has more matches now
    part = replace(page, offset=blocks[0][1], max_files=len(blocks), max_count=most)
    # If few files are named, rg uses memory maps, and then takes other files for binary (rg-facts 20).
    paths = [os.fsdecode(block.path) for block, _, _ in blocks]
    query = in_paths(query.with_(max_count=most, mmap=False), paths)
    try:
        found = await run.collect(Step(query, lambda: MatchCollector(part), left()))
    except FileNotFoundError:
        return None
    if found.timed_out:
        counts.timed_out = True
        return counts
    searched = {block.path: block for block in found.blocks()}
    for block, _, _ in blocks:
        now = searched.get(block.path)
        if now is None or now.matches != min(block.matches, most) or not is_text(now.end) or found.dropped_records:
            return None
        block.records, block.end = now.records, now.end
    return counts


def _allows_two_runs(query: Query, page: PageRequest) -> bool:
    """Return True if several runs have the same result as one run, unless files change or are binary."""
    options = query.options
    return (
        page.max_matches <= MAX_PAGE
        and query.on is None
        and query.is_plain
        and not any(options.get(name, False) is not False for name in _OTHER_COUNTS)
        and len(query.paths) <= MAX_PATHS
        and all(os.path.isdir(os.path.join(query.cwd, path)) for path in query.paths)
    )
