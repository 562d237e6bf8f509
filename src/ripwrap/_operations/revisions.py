"""Search and list the files of a git revision, without a checkout."""

import os
from collections.abc import AsyncGenerator, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from ripwrap._operations.grep import GrepRequest, refuse_beside
from ripwrap._operations.streams import (
    ARGUMENTS,
    GrepInRequest,
    ItemRequest,
    item_command,
    messages_in_request,
    run_grep_in,
    run_grep_in_blocking,
)
from ripwrap._ripgrep.batches import ItemCommand, list_items, list_items_blocking
from ripwrap._ripgrep.command import files_command
from ripwrap._ripgrep.host import RgHost
from ripwrap.binary.resolver import Rg
from ripwrap.models import Message
from ripwrap.options import Directories, FileOptions, SearchOptions, StrPath, check_limit, check_timeout
from ripwrap.results import GrepResult
from ripwrap.sources.git import RevisionSource, check_revision, size_limit


@dataclass(frozen=True, slots=True)
class RevisionListing:
    """Checked arguments of `files(rev=…)`, which lists the files of a git revision."""

    command: ItemCommand
    source: RevisionSource
    limit: int | None


async def run_grep_revision(request: GrepRequest, rev: str, repositories: Directories | None, rg: Rg) -> GrepResult:
    """Search the files of a git revision, and return the page of matches."""
    return await run_grep_in(*grep_revision_request(request, rev, repositories), rg)


def run_grep_revision_blocking(request: GrepRequest, rev: str, repositories: Directories | None, rg: Rg) -> GrepResult:
    """Search the files of a git revision, and return the page of matches, blocking."""
    return run_grep_in_blocking(*grep_revision_request(request, rev, repositories), rg)


def grep_revision_request(
    request: GrepRequest, rev: str, repositories: Directories | None = None
) -> tuple[GrepInRequest, RevisionSource]:
    """Check the arguments; return the request of `grep(rev=…)`, and the source of the files of the revision.

    Raises:
        ValueError: `rev` is empty or begins with a dash, a path is outside of `cwd`, or an option does not apply to a
            revision.
        TypeError: `rev` is not a str.
    """
    request.refuse_extras("rev")
    source = revision_source(request.root, rev, request.paths, repositories, request.options)
    command = item_command(request.query, request.options, ARGUMENTS, source.roots)
    return GrepInRequest(request, command, request.root), source


def messages_revision_request(
    pattern: str | Sequence[str],
    cwd: StrPath,
    paths: StrPath | Iterable[StrPath],
    rev: str,
    repositories: Directories | None,
    limit: int | None,
    options: SearchOptions,
) -> ItemRequest[Message]:
    """Check the arguments, and return the request of a search of a revision that yields all messages of rg."""
    source = revision_source(cwd, rev, paths, repositories, options)
    return messages_in_request(pattern, source, limit, options, source.roots)


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
    files_command(cwd, (), options)  # raises an error for an option that `files()` does not have
    command = item_command("", cast("SearchOptions", options), ARGUMENTS, source.roots)
    return RevisionListing(command, source, check_limit(limit))


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


def run_revision_listing(request: RevisionListing, rg: Rg) -> AsyncGenerator[str]:
    """Yield the paths of the files of a git revision."""
    return list_items(request.command, request.source, request.limit, rg)


def run_revision_listing_blocking(request: RevisionListing, rg: Rg, timeout: float | None) -> Generator[str]:
    """Yield the paths of the files of a git revision, blocking."""
    return list_items_blocking(request.command, request.source, request.limit, rg, check_timeout(timeout))
