"""Search files, and the members of the archives among them."""

import os
import time
from collections.abc import AsyncGenerator, Generator, Iterable, Mapping, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass
from typing import Any, cast

from ripwrap._operations.files import files_request
from ripwrap._operations.search import search_request
from ripwrap._operations.streaming import StreamRequest, run_stream, run_stream_blocking
from ripwrap._operations.streams import SourceMatchAnswer, item_command
from ripwrap._ripgrep.batches import ItemCommand, stream_items, stream_items_blocking
from ripwrap._ripgrep.host import RgHost
from ripwrap.binary.resolver import Rg
from ripwrap.errors import Hint, HintedText
from ripwrap.models import Match
from ripwrap.options import FileOptions, SearchOptions, StrPath, check_limit, check_timeout
from ripwrap.sources.archives import ArchiveSource, check_inside, format_of
from ripwrap.sources.base import Inside

_OF_MEMBERS = ("glob", "iglob", "glob_case_insensitive", "type", "type_not", "type_add", "type_clear", "max_filesize")
"""Options that choose members, and not the archives that have them."""

_OF_FILES = ("sort", "sortr", "threads", "ignore_file", "max_depth")
"""Options that choose or sort files on the disk."""


@dataclass(frozen=True, slots=True)
class InsideRequest:
    """A checked call of `search(inside=…)`.

    Attributes:
        files: Search of the files.
        listing: List of the files that may be archives.
        command: Command for the members.
        inside: Formats.
        limit: Maximum number of matches; `None` is no limit.
        follow: True if links are followed.
    """

    files: StreamRequest[Match]
    listing: StreamRequest[str]
    command: ItemCommand
    inside: tuple[Inside, ...]
    limit: int | None
    follow: bool

    def source(self, listed: Iterable[str]) -> ArchiveSource:
        """Return the members of the archives among the listed files, in path order."""
        paths = sorted((path for path in listed if format_of(path, self.inside)), key=lambda path: path.split("/"))
        return ArchiveSource(self.listing.command.cwd, paths, self.inside, follow=self.follow)


def inside_request(
    pattern: str | Sequence[str],
    cwd: StrPath,
    paths: StrPath | Iterable[StrPath],
    limit: int | None,
    options: SearchOptions,
    inside: str | Iterable[str],
    on: RgHost | None,
) -> InsideRequest:
    """Return the checked request of `search(inside=…)`.

    Raises:
        ValueError: A format is unknown, or `on` is given.
    """
    if on is not None:
        raise ValueError(HintedText(Hint("on", kind="omit"), " does not apply to ", Hint("inside"), "; leave it out"))
    formats = check_inside(inside)
    several = (paths,) if isinstance(paths, (str, os.PathLike)) else tuple(paths)
    files = search_request(pattern, cwd, several, limit, options)
    given = cast("Mapping[str, Any]", options)
    listing = {name: value for name, value in given.items() if name in FileOptions.__annotations__}
    listing = {name: value for name, value in listing.items() if name not in _OF_MEMBERS}
    members = {name: value for name, value in given.items() if name not in _OF_FILES}
    return InsideRequest(
        files,
        files_request(cwd, several, None, cast("FileOptions", listing)),
        item_command(files.command.patterns, cast("SearchOptions", members)),
        formats,
        check_limit(limit),
        bool(given.get("follow", True)),
    )


async def run_inside(request: InsideRequest, rg: Rg) -> AsyncGenerator[Match]:
    """Search files and then the members of archives; raise what `stream()` and `stream_items()` raise."""
    left = request.limit
    async with aclosing(run_stream(request.files, rg)) as in_files:
        async for match in in_files:
            left = None if left is None else left - 1
            yield match
    if left == 0:
        return
    async with aclosing(run_stream(request.listing, rg)) as listed:
        source = request.source([path async for path in listed])
    async with aclosing(stream_items(request.command, source, SourceMatchAnswer(left, source), rg)) as in_members:
        async for match in in_members:
            yield match


def run_inside_blocking(request: InsideRequest, rg: Rg, timeout: float | None) -> Generator[Match]:
    """Do what `run_inside()` does, blocking."""
    check_timeout(timeout)
    return _run_inside_blocking(request, rg, timeout)


def _run_inside_blocking(request: InsideRequest, rg: Rg, timeout: float | None) -> Generator[Match]:
    deadline = None if timeout is None else time.monotonic() + timeout

    def seconds() -> float | None:
        return None if deadline is None else max(0.0, deadline - time.monotonic())

    left = request.limit
    with closing(run_stream_blocking(request.files, rg, seconds())) as in_files:
        for match in in_files:
            left = None if left is None else left - 1
            yield match
    if left == 0:
        return
    with closing(run_stream_blocking(request.listing, rg, seconds())) as listed:
        source = request.source(list(listed))
    answer = SourceMatchAnswer(left, source)
    with closing(stream_items_blocking(request.command, source, answer, rg, seconds())) as in_members:
        yield from in_members
