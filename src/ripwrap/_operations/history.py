"""Search all versions of the files in the history of a git repository."""

import os
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from typing import ClassVar, Unpack

from pydantic import BaseModel

from ripwrap._operations.search import SearchAnswer, refuse_context
from ripwrap._ripgrep.command import search_query
from ripwrap._ripgrep.named_paths import must_exist
from ripwrap._ripgrep.stream import StreamRequest, run_stream
from ripwrap.binary.resolver import Rg
from ripwrap.errors import named_paths
from ripwrap.models import HistoryMatch
from ripwrap.options import Directories, SearchOptions, StrPath, check_limit
from ripwrap.places.inside import history_source
from ripwrap.places.items import ItemPlace, in_items

ARGUMENTS = ("pattern", "cwd", "paths", "rev", "since", "repositories", "limit", "rg")


@named_paths
def search_history(
    pattern: str | Sequence[str],
    *,
    cwd: StrPath | None = ".",
    paths: StrPath | Iterable[StrPath] | None = (),
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
        rev: The newest commit, such as a branch or tag; the ancestors of this commit are also searched. `--all` is
            all branches, tags, other refs and stashes.
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
        FileNotFoundError: `cwd` does not exist, or it or one of `paths` never existed in the history. (With `since`,
            that is no error.)
        AccessDeniedError: The repository leads out of `repositories`.
        SearchError: git cannot be started, or git or rg fails; or there are more than a million commits and versions
            of files.
    """
    refuse_context("search_history()", options)
    query = must_exist(search_query(pattern, os.path.abspath(cwd or os.curdir), paths, options, arguments=ARGUMENTS))
    roots = history_source(query, rev, since, repositories).roots
    versions = ItemPlace(lambda: history_source(query, rev, since, repositories), roots)
    return run_stream(StreamRequest(in_items(query, versions), HistoryAnswer(check_limit(limit))), rg)


class HistoryAnswer(SearchAnswer[HistoryMatch]):
    """Answer that yields the matches, each with the commits and paths of its version of the file."""

    kinds = ("match",)
    models: ClassVar[Mapping[str, type[BaseModel]]] = {"match": HistoryMatch}
