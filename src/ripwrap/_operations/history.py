"""Search all versions of the files in the history of a git repository."""

import os
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from typing import Any, Unpack, cast

from ripwrap._operations.streams import ItemRequest, NamingAnswer, item_command, run_items
from ripwrap._ripgrep.decoder import Record
from ripwrap._ripgrep.exit_status import Exit
from ripwrap.binary.resolver import Rg
from ripwrap.models import HistoryMatch
from ripwrap.options import Directories, SearchOptions, StrPath, check_limit
from ripwrap.sources.dates import check_date
from ripwrap.sources.git import BlobName, HistorySource, check_revision, size_limit

ARGUMENTS = ("pattern", "cwd", "paths", "rev", "since", "repositories", "limit", "rg")


def search_history(
    pattern: str | Sequence[str],
    *,
    cwd: StrPath = ".",
    paths: StrPath | Iterable[StrPath] = (),
    rev: str = "HEAD",
    since: str | None = None,
    repositories: Directories | None = None,
    limit: int | None = None,
    rg: Rg = None,
    **options: Unpack[SearchOptions],
) -> AsyncGenerator[HistoryMatch]:
    """Search every version of the files in a git history, and yield each matching line.

    Each version (blob) is searched once, even if many commits and paths have the version. The newest versions come
    first. `HistoryMatch.first` is the commit that introduced the version, `last` is the newest commit that had the
    version, and `paths` are all paths of the version. Nothing is checked out or fetched. Versions that are missing in a
    partial clone are logged as warnings, and so are versions of more than 256 MiB if `max_filesize` is not given. `git`
    must be in PATH. The configuration of the repository has no effect. But its `.git` may lead to any other repository
    that the user can read; pass `repositories` if you did not make it.

    Args:
        pattern: A regular expression (https://docs.rs/regex), or several, any of which may match.
        cwd: A directory of a repository. Files outside of `cwd` are not searched, and paths are relative to `cwd`.
        paths: Files or directories whose history is searched, also if they no longer exist. Empty is all of `cwd`.
        rev: The newest commit, such as a branch or tag; the ancestors of this commit are also searched.
        since: Search only versions that a commit after this date introduced. The date is in a form that
            `git log --since` accepts, such as `2024-01-31`.
        repositories: Directories in which the repository must be, as in `grep()`; `None` allows all.
        limit: Maximum number of matches.
        rg: The rg to run: a path, or a bare name to find in PATH; `None` finds one.
        **options: rg's flags, as in `search_in()`. Globs and types choose versions by their paths, and ignore files
            have no effect.

    Raises:
        pydantic.ValidationError: An option is unknown or ill-typed.
        ValueError: `cwd` is not in a repository, `rev` is not a revision of the repository, or a path is outside of
            `cwd`. `search_in()` lists further causes.
        FileNotFoundError: `cwd` does not exist, or none of `paths` ever existed. (With `since`, a missing path is no
            error.)
        AccessDeniedError: The repository leads out of `repositories`.
        SearchError: git cannot be started, or git or rg fails; or there are more than a million commits and versions
            of files.
    """
    return run_items(history_request(pattern, cwd, paths, rev, since, repositories, limit, options), rg)


def history_request(
    pattern: str | Sequence[str],
    cwd: StrPath,
    paths: StrPath | Iterable[StrPath],
    rev: str,
    since: str | None,
    repositories: Directories | None,
    limit: int | None,
    options: SearchOptions,
) -> ItemRequest[HistoryMatch]:
    """Check the arguments, and return the request of `search_history()`."""
    several = (paths,) if isinstance(paths, (str, os.PathLike)) else tuple(paths)
    where, size = os.path.abspath(cwd), size_limit(options)
    source = HistorySource(
        where, check_revision(rev), check_date(since), several, repositories=repositories, max_filesize=size
    )
    command = item_command(pattern, options, ARGUMENTS, source.roots)
    checked = check_limit(limit)
    return ItemRequest(command, lambda: _HistoryAnswer(checked, source), source)


class _HistoryAnswer(NamingAnswer):
    """Decoder of rg's output that yields the matches, each with the commits and paths of its version of the file."""

    kinds = ("match",)

    def __init__(self, limit: int | None, source: HistorySource) -> None:
        super().__init__(limit)
        self._source = source

    def feed(self, chunk: bytes) -> Iterator[HistoryMatch]:
        return map(_with_history, self._feed(chunk))

    def end_run(self, end: Exit) -> Iterator[HistoryMatch]:
        return map(_with_history, self._end_run(end))

    def finish(self, end: Exit) -> Iterator[HistoryMatch]:
        end.warn((*self._source.errors, *self._too_long()))
        return iter(())


def _with_history(match: Record) -> HistoryMatch:
    name = cast("BlobName", match.path)
    blob = name.blob
    known: dict[str, Any] = {**dict(match), "path": str(name), "blob": blob.oid, "paths": tuple(blob.paths)}
    return HistoryMatch(**known, first=blob.first, last=blob.last)
