"""Search and list the files of a git revision, without a checkout."""

import os
import time
from collections.abc import AsyncGenerator, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ripwrap._concurrency import countdown
from ripwrap._operations.grep import GrepRequest, refuse_beside
from ripwrap._operations.search import MessageAnswer
from ripwrap._operations.streaming import StreamRequest
from ripwrap._places.items import ARGUMENTS, ItemPlace, in_items
from ripwrap._ripgrep.command import Command, files_command, search_command, several_paths
from ripwrap._ripgrep.host import RgHost
from ripwrap._ripgrep.query import Query
from ripwrap._ripgrep.runner import AsyncRunner, BlockingRunner, Runner, run_blocking
from ripwrap._ripgrep.spool import OverdueError
from ripwrap.binary.resolver import Rg
from ripwrap.models import Message
from ripwrap.options import Directories, FileOptions, SearchOptions, StrPath, check_limit, check_timeout
from ripwrap.sources.git import RevisionSource, check_revision, size_limit


def grep_revision_request(request: GrepRequest, rev: str, repositories: Directories | None = None) -> GrepRequest:
    """Check the arguments; return the request of `grep(rev=…)`.

    Raises:
        ValueError: `rev` is empty or begins with a dash, a path is outside of `cwd`, or an option does not apply to a
            revision.
        TypeError: `rev` is not a str.
    """
    request.refuse_extras("rev")
    command = revision_command(request.query, request.root, request.paths, rev, repositories, request.options)
    return replace(request, command=command)


def messages_revision_request(
    pattern: str | Sequence[str],
    cwd: StrPath,
    paths: StrPath | Iterable[StrPath],
    rev: str,
    repositories: Directories | None,
    limit: int | None,
    options: SearchOptions,
) -> StreamRequest[Message]:
    """Check the arguments, and return the request of a search of a revision that yields all messages of rg."""
    command = revision_command(pattern, cwd, paths, rev, repositories, options)
    return StreamRequest(command, partial(MessageAnswer, check_limit(limit)))


def revision_command(
    pattern: str | Sequence[str],
    cwd: StrPath,
    paths: StrPath | Iterable[StrPath],
    rev: str,
    repositories: Directories | None,
    options: SearchOptions,
) -> Command:
    """Return the command that searches the files of a git revision."""
    opens = partial(revision_source, cwd, rev, several_paths(paths), repositories, options)
    query = search_command(pattern, os.path.abspath(cwd), (), options, arguments=ARGUMENTS)
    return in_items(query, ItemPlace(opens, opens().roots))


def revision_source(
    cwd: StrPath,
    rev: str,
    paths: StrPath | Iterable[StrPath],
    repositories: Directories | None,
    options: SearchOptions,
) -> RevisionSource:
    """Return the source that reads the files of a git revision."""
    several = (paths,) if isinstance(paths, (str, os.PathLike)) else tuple(paths)
    cwd, limit = os.path.abspath(cwd), size_limit(options)
    return RevisionSource(cwd, check_revision(rev), several, repositories=repositories, max_filesize=limit)


@dataclass(frozen=True, slots=True)
class RevisionListing:
    """Checked arguments of `files(rev=…)`, which lists the files of a git revision."""

    query: Query
    place: ItemPlace
    source: RevisionSource
    limit: int | None


def listing_request(
    cwd: StrPath,
    paths: StrPath | Iterable[StrPath],
    rev: str,
    repositories: Directories | None,
    limit: int | None,
    options: FileOptions,
    on: RgHost | None,
) -> RevisionListing:
    """Check the arguments, and return the request of `files(rev=…)`; raise what `grep_revision_request()` raises."""
    refuse_beside("rev", "on", on)
    source = revision_source(cwd, rev, paths, repositories, {})
    place = ItemPlace(tuple, source.roots)
    return RevisionListing(in_items(files_command(cwd, (), options), place), place, source, check_limit(limit))


async def run_revision_listing(request: RevisionListing, rg: Rg) -> AsyncGenerator[str]:
    """Yield the paths of the files of a git revision."""
    for name in await _names(AsyncRunner(rg), request):
        yield name


def run_revision_listing_blocking(request: RevisionListing, rg: Rg, timeout: float | None) -> Generator[str]:
    """Yield the paths of the files of a git revision, blocking."""
    return _listed_blocking(request, rg, check_timeout(timeout))


def _listed_blocking(request: RevisionListing, rg: Rg, timeout: float | None) -> Generator[str]:
    try:
        yield from run_blocking(_names(BlockingRunner(rg, timeout=timeout), request, timeout))
    except OverdueError as error:
        raise TimeoutError(
            f"git did not list all files within timeout={timeout} seconds and was stopped; allow more time"
        ) from error


async def _names(run: Runner, request: RevisionListing, seconds: float | None = None) -> Sequence[str]:
    """Return the names of the items that a search would read."""
    if request.limit == 0:
        return ()
    left, source = countdown(seconds), request.source
    source.selects = await request.place.selects(replace(request.query, place=None), run, seconds)
    source.deadline = None if seconds is None else time.monotonic() + (left() or 0)

    def names() -> list[str]:
        try:
            return list(source.names())
        except TimeoutError as error:
            raise OverdueError(*error.args) from error
        finally:
            source.close()

    return (await run.call(names))[: request.limit]
