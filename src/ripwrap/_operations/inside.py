"""Search files, and then inside of archives, notebooks and documents.

A search has two parts. First, rg searches the files. Then the members of archives and the texts of notebooks and
documents, called items, are written to temporary files, and rg searches these.
"""

import os
import time
from collections.abc import AsyncGenerator, Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, Never, Protocol, TypeVar, cast

from ripwrap._operations.files import files_request
from ripwrap._operations.grep import GrepRequest, refuse_beside, result_of
from ripwrap._operations.pagination import files_in_path_order
from ripwrap._operations.search import messages_request, search_request, sum_summaries
from ripwrap._operations.streaming import StreamRequest, run_stream, run_stream_blocking
from ripwrap._operations.streams import PageAnswer, SourceMatchAnswer, SourceMessageAnswer, item_command
from ripwrap._overlay import refuse_overlay
from ripwrap._ripgrep.batches import ItemAnswer, ItemCommand, stream_items, stream_items_blocking
from ripwrap._ripgrep.command import Command
from ripwrap._ripgrep.decoder import PathDecoder
from ripwrap._ripgrep.host import RgHost
from ripwrap._ripgrep.listing_collector import ListingCollector
from ripwrap._ripgrep.page_collector import MatchCollector, PageRequest
from ripwrap._ripgrep.runner import Runner, Step
from ripwrap.binary.cache import folder, why_untrusted
from ripwrap.binary.resolver import Rg
from ripwrap.models import End, Match, Message, Stats, Summary
from ripwrap.options import FileOptions, SearchOptions, StrPath, check_limit, check_timeout
from ripwrap.results import GrepResult
from ripwrap.sources.archives import ArchiveSource, check_inside, format_of, is_document
from ripwrap.sources.base import Source
from ripwrap.sources.reading import DocumentReader
from ripwrap.sources.texts import TextCache

T = TypeVar("T", Match, Message)

_OF_MEMBERS = ("glob", "iglob", "glob_case_insensitive", "type", "type_not", "type_add", "type_clear", "max_filesize")
"""Options that choose the members of archives, and documents; they do not choose the archives themselves."""

_OF_FILES = ("sort", "sortr", "threads", "ignore_file", "max_depth")
"""Options that choose or sort files on the disk; the search inside of files leaves them out."""

_NO_LIMIT = 2**62


@dataclass(frozen=True, slots=True)
class InsidePart:
    """Second part of a search, which searches the items inside of files.

    Attributes:
        listing: Request that lists the files that may be archives or documents.
        command: Command that searches the items inside of these files.
        formats: Formats to search inside of, such as `zip`, as `check_inside()` returns them.
        follow: True if symbolic links are followed.
        named: Normalized paths that the caller passed.
    """

    listing: StreamRequest[str]
    command: ItemCommand
    formats: tuple[str, ...]
    follow: bool
    named: frozenset[str]

    def source(self, listed: Iterable[str], until: float | None = None) -> ArchiveSource:
        """Return the source of the items inside of the listed files, in path order.

        Args:
            listed: Paths of the files that `listing` found.
            until: Time, as `time.monotonic()` gives it, after which no more documents are read; `None` is no limit.
        """
        paths = sorted((path for path in listed if format_of(path, self.formats)), key=lambda path: path.split(os.sep))
        reader = DocumentReader(document_cache(), until=until)
        cwd = self.listing.command.cwd
        return ArchiveSource(cwd, paths, self.formats, follow=self.follow, named=self.named, reader=reader)

    def is_searched_inside(self, path: str | None) -> bool:
        """Return True if a path is a document. The texts in a document are searched, but its bytes are not."""
        return path is not None and is_document(path, self.formats)


@dataclass(frozen=True, slots=True)
class InsideRequest(Generic[T]):
    """Checked arguments of `search(inside=…)` or `search_messages(inside=…)`.

    Attributes:
        files: Request of the search of the files.
        part: Search inside of the files.
        answer: Function that takes a limit and a source, and returns the converter of rg's output for the items.
        limit: Maximum number of matches; `None` is no limit.
    """

    files: StreamRequest[T]
    part: InsidePart
    answer: Callable[[int | None, Source], ItemAnswer[T]]
    limit: int | None


def inside_request(
    pattern: str | Sequence[str],
    cwd: StrPath,
    paths: StrPath | Iterable[StrPath],
    limit: int | None,
    options: SearchOptions,
    inside: str | Iterable[str],
    on: RgHost | None,
) -> InsideRequest[Match]:
    """Check the arguments, and return the request of `search(inside=…)`.

    Raises:
        ValueError: A format is unknown or needs a package, or `on` is given.
    """
    several, formats, first = _check(paths, inside, limit, on)
    files = search_request(pattern, cwd, several, first, options)
    part = inside_part(files.command, cwd, several, options, formats)
    return InsideRequest(files, part, SourceMatchAnswer, limit)


def messages_inside_request(
    pattern: str | Sequence[str],
    cwd: StrPath,
    paths: StrPath | Iterable[StrPath],
    limit: int | None,
    options: SearchOptions,
    inside: str | Iterable[str],
    on: RgHost | None,
) -> InsideRequest[Message]:
    """Check the arguments as `inside_request()` does, and return the request of `search_messages(inside=…)`."""
    several, formats, first = _check(paths, inside, limit, on)
    files = messages_request(pattern, cwd, several, first, options)
    part = inside_part(files.command, cwd, several, options, formats)
    return InsideRequest(files, part, SourceMessageAnswer, limit)


def _check(
    paths: StrPath | Iterable[StrPath], inside: str | Iterable[str], limit: int | None, on: object
) -> tuple[tuple[StrPath, ...], tuple[str, ...], int | None]:
    """Check the arguments, and return the paths, the formats, and the limit for the search of the files."""
    refuse_beside("inside", "on", on)
    formats = check_inside(inside)
    several = (paths,) if isinstance(paths, (str, os.PathLike)) else tuple(paths)
    # rg's matches in the bytes of documents are dropped, so they must not count for the limit.
    has_documents = any(is_document(f"x.{name}", formats) or name == "ipynb-outputs" for name in formats)
    return several, formats, None if has_documents and check_limit(limit) else check_limit(limit)


def inside_part(
    command: Command,
    cwd: StrPath,
    paths: Iterable[StrPath],
    options: SearchOptions,
    formats: tuple[str, ...],
    denied: Sequence[str] = (),
) -> InsidePart:
    """Return the second part of a search, which searches the items inside of files.

    Args:
        command: Command that searches the files.
        cwd: Directory to search.
        paths: Paths to search.
        options: Options of the search.
        formats: Formats, as `check_inside()` returns them.
        denied: Values of `iglob` that exclude archives and directories, too: rg does not enter these directories.
    """
    refuse_overlay("A search inside of files")
    several = tuple(paths)
    given = cast("Mapping[str, Any]", options)
    listing = {name: value for name, value in given.items() if name in FileOptions.__annotations__}
    listing = {name: value for name, value in listing.items() if name not in _OF_MEMBERS}
    if denied:
        listing["iglob"] = [*denied]
    members = {name: value for name, value in given.items() if name not in _OF_FILES}
    return InsidePart(
        files_request(cwd, several, None, cast("FileOptions", listing)),
        item_command(command.patterns, cast("SearchOptions", members)),
        formats,
        bool(given.get("follow", True)),
        frozenset(os.path.normpath(os.fspath(path)) for path in several),
    )


def document_cache() -> TextCache | None:
    """Return the cache of the texts of documents; `None` if other users may write to it."""
    path = folder()
    return None if why_untrusted(path) else TextCache(path / "documents")


async def run_inside(request: InsideRequest[T], rg: Rg) -> AsyncGenerator[T]:
    """Search files, then inside of them, and yield the results. Raise what `stream()` and `stream_items()` raise."""
    left, before = request.limit, _Before()
    if left == 0:
        return
    async with aclosing(run_stream(request.files, rg)) as in_files:
        async for message in in_files:
            if isinstance(message, Summary):
                before.summary = message
            elif request.part.is_searched_inside(message.path):
                before.leave_out(message)
            else:
                left = left if left is None or message.type != "match" else left - 1
                yield message
                if left == 0:
                    return
    async with aclosing(run_stream(request.part.listing, rg)) as listed:
        source = request.part.source([path async for path in listed])
    items = stream_items(request.part.command, source, request.answer(left, source), rg)
    async with aclosing(items) as in_members:
        async for message in in_members:
            yield before.add_to(message)


def run_inside_blocking(request: InsideRequest[T], rg: Rg, timeout: float | None) -> Generator[T]:
    """Search files and then inside of them like `run_inside()`, but blocking."""
    check_timeout(timeout)
    return _run_inside_blocking(request, rg, timeout)


def _run_inside_blocking(request: InsideRequest[T], rg: Rg, timeout: float | None) -> Generator[T]:
    deadline = None if timeout is None else time.monotonic() + timeout

    def seconds() -> float | None:
        return None if deadline is None else max(0.0, deadline - time.monotonic())

    left, before = request.limit, _Before()
    if left == 0:
        return
    with closing(run_stream_blocking(request.files, rg, seconds())) as in_files:
        for message in in_files:
            if isinstance(message, Summary):
                before.summary = message
            elif request.part.is_searched_inside(message.path):
                before.leave_out(message)
            else:
                left = left if left is None or message.type != "match" else left - 1
                yield message
                if left == 0:
                    return
    with closing(run_stream_blocking(request.part.listing, rg, seconds())) as listed:
        source = request.part.source(list(listed), deadline)
    items = stream_items_blocking(request.part.command, source, request.answer(left, source), rg, seconds())
    with closing(items) as in_members:
        for message in in_members:
            yield before.add_to(message)


class _Before:
    """Summary of the first search (of the files), which is added to the summary of the second search (inside of files).

    Attributes:
        summary: rg's summary of the first search; `None` until it is known, and always `None` if only matches are
            yielded.
    """

    def __init__(self) -> None:
        self.summary: Summary | None = None
        self._left_out: list[Stats] = []

    def leave_out(self, message: object) -> None:
        """Store the counts of a message that is an `End`; ignore other messages. The message is about a document.

        The first search also reads the bytes of documents, which do not count. So `add_to()` subtracts these counts.
        """
        if isinstance(message, End):
            self._left_out.append(message.stats)

    def add_to(self, message: T) -> T:
        """Return a message unchanged; if it is the summary of the second search, return the sum of both summaries."""
        if not isinstance(message, Summary) or self.summary is None:
            return message
        return cast("T", self._total(self.summary, message))

    def _total(self, before: Summary, summary: Summary) -> Summary:
        counts = before.stats.model_dump(exclude={"elapsed"})
        fewer = {name: count - sum(getattr(one, name) for one in self._left_out) for name, count in counts.items()}
        files = before.model_copy(update={"stats": before.stats.model_copy(update=fewer)})
        known = {
            "errors": (*before.errors, *summary.errors),
            "dropped_records": before.dropped_records + summary.dropped_records,
        }
        return (sum_summaries(files, summary) or summary).model_copy(update=known)


@dataclass(frozen=True, slots=True)
class GrepInsideRequest:
    """Checked arguments of `grep(inside=…)`."""

    grep: GrepRequest
    part: InsidePart


def grep_inside_request(request: GrepRequest, inside: str | Iterable[str]) -> GrepInsideRequest:
    """Check the arguments, and return the request of `grep(inside=…)`.

    Raises:
        ValueError: A format is unknown or needs a package, or an option does not apply.
    """
    request.refuse_extras("inside")
    paths = (request.paths,) if isinstance(request.paths, (str, os.PathLike)) else tuple(request.paths)
    formats = check_inside(inside)
    return GrepInsideRequest(request, inside_part(request.command, request.root, paths, request.options, formats))


async def run_grep_inside(run: Runner, request: GrepInsideRequest) -> GrepResult:
    """Search files and then inside of them, and return a page of the matches of both searches."""
    grep, part = request.grep, request.part
    page, until = grep.page, None if grep.timeout is None else time.monotonic() + grep.timeout

    def allowed(path: bytes) -> bool:
        return not part.is_searched_inside(os.fsdecode(path))

    found = await run.collect(Step(grep.command, lambda: MatchCollector(page, allowed), grep.timeout))
    files = await files_in_path_order(run, page, found.blocks())
    answer = PageAnswer(rest_of(page, found.matches, sum(len(file.matches) for file in files), len(files)))
    source = await run_items(run, part, answer, until)
    more = await files_in_path_order(run, answer.page, answer.collector.blocks())
    errors = *sorted(found.end.path_errors(), key=lambda error: error.path or ""), *source.errors
    return result_of(
        grep, _Total(page, (found, answer.collector)), (*files, *map(answer.names.rename_file, more)), errors
    )


def rest_of(page: PageRequest, matches: int, shown: int, files: int) -> PageRequest:
    """Return the request for the rest of a page, which a second search fills.

    Args:
        page: Page of the matches of both searches together.
        matches: Number of matches of the first search.
        shown: Number of these matches on the page.
        files: Number of files with these matches on the page.
    """
    return replace(
        page,
        offset=max(0, page.offset - matches),
        max_matches=page.max_matches - shown,
        max_files=page.max_files - files,
    )


class Collecting(ItemAnswer[Never], Protocol):
    """Converter of rg's output that collects matches, and yields nothing.

    Attributes:
        collector: Collector of the matches.
    """

    @property
    def collector(self) -> MatchCollector:
        """Collector of the matches."""
        ...


async def run_items(
    run: Runner,
    part: InsidePart,
    answer: Collecting,
    until: float | None,
    allowed: Callable[[str], bool] | None = None,
    wrap: Callable[[Source], Source] = lambda source: source,
) -> Source:
    """Search inside of files, and return the source that was searched.

    Args:
        run: Runner of the search.
        part: Search inside of files.
        answer: Converter of rg's output, which collects the matches.
        until: Time, as `time.monotonic()` gives it, at which the search stops; `None` is no limit.
        allowed: Function that returns True for a file that may be opened; `None` allows all.
        wrap: Function that takes the source and returns another source to search instead.
    """
    seconds = None if until is None else max(0.0, until - time.monotonic())
    collector = partial(ListingCollector[str], PathDecoder(), _NO_LIMIT, allowed=allowed)
    listed = await run.collect(Step(part.listing.command, collector, seconds))
    source = wrap(part.source(listed.every(), until))
    seconds = None if until is None else max(0.0, until - time.monotonic())
    timed_out = await run.collect_items(part.command, source, answer, seconds)
    answer.collector.timed_out = timed_out or listed.timed_out
    return source


class _Total(MatchCollector):
    """Collector whose counts are the sums of the counts of several collectors."""

    def __init__(self, page: PageRequest, parts: Collection[MatchCollector]) -> None:
        super().__init__(page)
        self._parts = parts
        self.matches = sum(part.matches for part in parts)
        self.files = sum(part.files for part in parts)
        self.binary = sum(part.binary for part in parts)
        self.timed_out = any(part.timed_out for part in parts)

    @property
    def dropped(self) -> Mapping[str, int]:
        return {path: number for part in self._parts for path, number in part.dropped.items()}

    @property
    def dropped_records(self) -> int:
        return sum(part.dropped_records for part in self._parts)
