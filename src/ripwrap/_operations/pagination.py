"""Decode the part of rg's output that belongs to a page of matches, and find it in two runs if matches are many.

Collect a page faster if a search has very many matches: count all matches, then search only the page's files.

rg writes the context of every match, but a page needs the context of few matches. So if many matches come in a short
time (a dense search), rg is stopped. A second run of rg, with `--count`, finds the exact totals and the files of the
page, and a third run, with context, searches these files. The result is the same as with a single run. If the result
could differ, a single run is used.
"""

import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias, TypeVar

from pydantic import BaseModel

from ripwrap._ripgrep.command import in_paths
from ripwrap._ripgrep.decoder import LARGE_RECORD, CountDecoder, MessageDecoder
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.page_collector import (
    Block,
    FirstMatches,
    MatchCollector,
    PageRequest,
    RoundRobinCollector,
    is_text,
    shares,
)
from ripwrap._ripgrep.protocols import Runner, Step
from ripwrap._ripgrep.query import Query
from ripwrap._system.concurrency import countdown
from ripwrap.models import Context, End
from ripwrap.options import SearchOptions, check_limit
from ripwrap.results import FileMatches, GrepMatch

Records: TypeAlias = Sequence[tuple[bool, bytes]]

_CHECKPOINT_INTERVAL = 200
"""Number of matches that are decoded before other tasks may run."""

_SHOWN_SUBMATCHES = 20_000
"""Maximum number of submatches of a large match in the answer of a tool. Its text has fewer characters by default."""

_MODELS: dict[str, type[BaseModel]] = {"match": GrepMatch, "context": Context, "end": End}


def make_page_request(
    offset: int | None, limit: int | None, max_files: int | None, options: SearchOptions
) -> PageRequest:
    """Check the arguments that choose a page of matches, and return the request of the page."""
    if offset is None:
        raise TypeError("offset must be an int, got None")
    if options.get("passthru"):
        raise ValueError(
            "passthru returns every line of every file; stream them with search_messages(), or leave passthru out"
        )
    both = options.get("context") or 0
    before, after = options.get("before_context"), options.get("after_context")
    check_limit(offset, "offset")
    limit, max_files = check_limit(limit), check_limit(max_files, "max_files")
    return PageRequest(
        offset=offset,
        max_matches=sys.maxsize if limit is None else limit,
        max_files=sys.maxsize if max_files is None else max_files,
        before=both if before is None else before,
        after=both if after is None else after,
        max_count=options.get("max_count"),
    )


async def files_in_path_order(run: Runner, page: PageRequest, blocks: Iterable[Block]) -> tuple[FileMatches, ...]:
    """Decode the matches of a page, and return its files in path order; other tasks may run in between."""
    decoder = MessageDecoder(models=_MODELS)
    files: list[FileMatches] = []
    decoded = 0
    for block, skip, taken in on_page(page, blocks):
        files.append(await _file(run, decoder, page, block, skip, taken))
        decoded += taken
        if decoded >= _CHECKPOINT_INTERVAL:
            decoded = 0
            await run.checkpoint()
    return tuple(files)


def on_page(page: PageRequest, blocks: Iterable[Block]) -> Iterator[tuple[Block, int, int]]:
    """Yield the blocks of the files on a page, given the blocks of all files in path order."""
    skip, left, files = page.offset, page.max_matches, 0
    for block in blocks:
        if skip >= block.matches:
            skip -= block.matches
        elif left and files < page.max_files:
            taken = min(left, block.matches - skip)
            yield block, skip, taken
            skip, left, files = 0, left - taken, files + 1


async def files_round_robin(run: Runner, page: PageRequest, found: RoundRobinCollector) -> tuple[FileMatches, ...]:
    """Decode a page that takes one match of each file, then a second match of each file, and so on; return its files.

    The result also has files without a match on the page; their `matches` are empty. A match of more than a MiB has
    its first submatches only, because a tool never shows so much text.
    """
    decoder = MessageDecoder(models=_MODELS, max_submatches=_SHOWN_SUBMATCHES)
    blocks = found.blocks()
    counts = [block.matches for block in blocks]
    skipped, ends = shares(counts, page.offset), shares(counts, page.end)
    pages: dict[int, FileMatches] = {}
    for block, first, last in zip(blocks, skipped, ends, strict=True):
        if last > first:
            pages[block.number] = await _file(run, decoder, page, block, first, last - first)
            await run.checkpoint()
    return tuple(
        pages.get(number) or FileMatches(path=os.fsdecode(path), matches=(), total_matches=count)
        for path, count, number in found.named()
    )


async def _file(
    run: Runner, decoder: MessageDecoder, page: PageRequest, block: Block, skip: int, taken: int
) -> FileMatches:
    positions = [index for index, (is_match, _) in enumerate(block.records) if is_match][skip : skip + taken]
    # Each context line belongs to one match. Of the lines between two matches, the first match gets at most
    # `page.after` lines, and the second match gets the rest. A match of another page becomes context.
    ends = [*positions[1:], len(block.records)]
    head = block.records[max(positions[0] - page.before, 0) : positions[0]]
    matches: list[GrepMatch] = []
    for number, (position, end) in enumerate(zip(positions, ends, strict=True), 1):
        tail = min(position + 1 + page.after, end)
        lines = block.records[position], head, block.records[position + 1 : tail]
        if sum(len(record) for _, record in (lines[0], *head, *lines[2])) > LARGE_RECORD:
            matches.append(await run.call(partial(_match, decoder, *lines)))
        else:
            matches.append(_match(decoder, *lines))
        head = block.records[tail:end]
        if number % _CHECKPOINT_INTERVAL == 0:
            await run.checkpoint()
    return FileMatches(
        path=os.fsdecode(block.path),
        matches=tuple(matches),
        total_matches=block.matches,
        binary_offset=None if is_text(block.end) else _decoded(decoder, [(False, block.end)])[0].binary_offset,
    )


def _match(decoder: MessageDecoder, record: tuple[bool, bytes], before: Records, after: Records) -> GrepMatch:
    match: GrepMatch = _decoded(decoder, [record])[0]
    if before or after:
        return match.model_copy(update={"before": _contexts(decoder, before), "after": _contexts(decoder, after)})
    return match


def _contexts(decoder: MessageDecoder, records: Records) -> tuple[Context, ...]:
    """Decode context lines. A match that is not on the page, or is beyond `max_count`, becomes context."""
    contexts: list[Context] = []
    for line in _decoded(decoder, records):
        if not isinstance(line, Context):
            kept = {name: getattr(line, name) for name in ("path", "lines", "line_number", "absolute_offset")}
            contexts.append(FurtherMatch(**kept, submatches=()))
        else:
            contexts.append(line)
    return tuple(contexts)


class FurtherMatch(Context, frozen=True):
    """Match that is not on the page, but in the context of one that is. It equals the `Context` with its values."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Context) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((self.path, self.absolute_offset))

    def __repr_name__(self) -> str:
        return Context.__name__


def _decoded(decoder: MessageDecoder, records: Records) -> list[Any]:
    plain = [record for _, record in records]
    return list(decoder.decode_large(plain) if sum(map(len, plain)) > LARGE_RECORD else decoder.decode(plain))


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
    """Collect the page of a search, and count all matches, in one run of rg or in several."""
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
