"""Frozen models of the results from many roots. Each result has the name of its root."""

import errno
import os
from collections.abc import Iterator
from itertools import chain
from typing import Literal, TypeAlias

from ripwrap._display.diff import grep_lines
from ripwrap._text import FsPath, Text, plural, shown
from ripwrap.models import Context, Match, Model, PathError
from ripwrap.results import FileMatches, RankedChunk

FailureKind: TypeAlias = Literal["missing", "denied", "timeout", "incomplete", "lost", "other"]


class Root(Model, frozen=True):
    """Directory that is searched, with a name.

    Attributes:
        name: Name, which no other root of the same `Repositories` has.
        path: Absolute path.
    """

    name: FsPath
    path: FsPath


class Worker(Model, frozen=True):
    """Process that has searched a root for an executor.

    Attributes:
        host: Name of the machine on which the process runs.
        pid: Id of the process.
        rg: Path of the rg that it runs.
        rg_version: Version of this rg, e.g. `15.2.0`.
    """

    host: str
    pid: int
    rg: FsPath
    rg_version: str


class RootError(Model, frozen=True):
    """Failure of a root. It is returned and not raised, so that the search of the other roots continues.

    Attributes:
        root: Name of the root.
        kind: `missing` (no such directory), `denied` (no permission), `timeout`, `incomplete` (only the paths in
            `paths` could not be read), `lost` (the worker ended), or `other`.
        error: Name of the class of the error, e.g. `FileNotFoundError`.
        message: Text of the error.
        paths: Paths in the root that could not be read.
        attempts: Number of times that the search of the root was started; more than 1 only if a worker was lost.
        worker: Process in which the search failed; `None` without an executor, or if the process was lost or had no
            rg.
    """

    type: Literal["error"] = "error"
    root: FsPath
    kind: FailureKind
    error: str
    message: Text
    paths: tuple[PathError, ...] = ()
    attempts: int = 1
    worker: Worker | None = None

    def __str__(self) -> str:
        """Return the name of the root and the message."""
        return f"{shown(self.root)}: {shown(self.message, lines=True)}"


class RootMatch(Match, frozen=True):
    """Match in a root; its `path` is relative to the root.

    Attributes:
        root: Name of the root.
    """

    root: FsPath

    @property
    def _printed_path(self) -> str:
        return os.path.join(self.root, self.path)


class RootFile(Model, frozen=True):
    """File in a root.

    Attributes:
        root: Name of the root.
        path: Path, relative to the root.
    """

    type: Literal["file"] = "file"
    root: FsPath
    path: FsPath

    def __str__(self) -> str:
        """Return the path with the name of the root before it."""
        return shown(os.path.join(self.root, self.path))


class RootCount(Model, frozen=True):
    """Number of matching lines in a root.

    Attributes:
        root: Name of the root.
        count: Number of matching lines.
        files: Number of files with a matching line.
        worker: Process that counted the lines; `None` without an executor.
    """

    type: Literal["count"] = "count"
    root: FsPath
    count: int
    files: int
    worker: Worker | None = None

    def __str__(self) -> str:
        """Return `root:count`."""
        return f"{shown(self.root)}:{self.count}"


class RootMatches(Model, frozen=True):
    """Matches of one root on a page.

    Attributes:
        root: Name of the root.
        directory: Absolute path of the root.
        files: Files with matches on the page, in the order of `rg --sort=path`.
        total_matches: Number of matches in the root; a lower bound if not `exact`.
        files_matched: Number of files with a match in the root; a lower bound if not `exact`.
        exact: True if rg searched the whole root, and no match was left out for being larger than 20 MiB.
        worker: Process that searched the root; `None` without an executor, and for a root in several shards.
    """

    root: FsPath
    directory: FsPath
    files: tuple[FileMatches, ...]
    total_matches: int
    files_matched: int
    exact: bool
    worker: Worker | None = None

    def __len__(self) -> int:
        """Return the number of matches on the page."""
        return sum(len(file.matches) for file in self.files)

    def __str__(self) -> str:
        """Return the page as grep writes it, with the name of the root before the paths."""
        return "\n".join(grep_lines(_named_files(self)))


def _named_files(root: RootMatches) -> Iterator[tuple[str, Iterator[Match | Context]]]:
    return ((os.path.join(root.root, file.path), file.lines()) for file in root.files)


class RepositoriesResult(Model, frozen=True):
    """Page of matches in many roots, as `Repositories.grep()` returns it, with the number of all matches.

    `len()` is the number of matches on the page, and iteration goes over `roots`. The result is true if any root has a
    match, even if no match is on the page. `str()` has lines `root/path:line:text`, followed by `message`.

    Attributes:
        query: Pattern, or patterns.
        roots: Roots with matches on the page, in the order of `Repositories.roots`.
        total_matches: Number of matches in all roots; a lower bound if not `exact`.
        files_matched: Number of files with a match; a lower bound if not `exact`.
        roots_matched: Number of roots with a match.
        roots_searched: Number of roots that were searched; roots that failed completely are not counted.
        exact: True if the numbers are final: all roots were searched to their end.
        truncated: True if there are matches that are not on the page, or may be, because the result is not `exact`.
        errors: Failures of roots, in the order of `Repositories.roots`.
        message: Summary of the result in one or two sentences.
    """

    query: str | tuple[str, ...]
    roots: tuple[RootMatches, ...]
    total_matches: int
    files_matched: int
    roots_matched: int
    roots_searched: int
    exact: bool
    truncated: bool
    errors: tuple[RootError, ...]
    message: str

    def __len__(self) -> int:
        """Return the number of matches on the page."""
        return sum(map(len, self.roots))

    def __bool__(self) -> bool:
        """Return True if any root has a match."""
        return self.total_matches > 0

    # See `GrepResult.__iter__()`.
    def __iter__(self) -> Iterator[RootMatches]:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        """Iterate over the roots of the page."""
        return iter(self.roots)

    def __str__(self) -> str:
        """Return the page as grep writes it, with the names of the roots before the paths, then the message."""
        files = chain.from_iterable(map(_named_files, self.roots))
        return "\n".join((*grep_lines(files), shown(self.message, lines=True)))


class RootChunk(RankedChunk, frozen=True):
    """Result of `Repositories.rank()`: a few lines of a file; its `path` is relative to the root.

    Attributes:
        root: Name of the root.
    """

    root: FsPath


class RepositoriesRanking(Model, frozen=True):
    """Answer of `Repositories.rank()`; `len()` and iteration apply to `chunks`.

    Attributes:
        chunks: Chunks of all roots, best first.
        errors: Failures of roots, in the order of `Repositories.roots`.
    """

    chunks: tuple[RootChunk, ...]
    errors: tuple[RootError, ...] = ()

    def __len__(self) -> int:
        """Return the number of chunks."""
        return len(self.chunks)

    # See `GrepResult.__iter__()`.
    def __iter__(self) -> Iterator[RootChunk]:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        """Iterate over the chunks."""
        return iter(self.chunks)


_DIRECTORY_TEXTS = {
    errno.ENOENT: "the directory does not exist",
    errno.ENOTDIR: "not a directory",
    errno.EACCES: "the directory cannot be entered; change its permissions",
}


def root_error(root: str, error: BaseException, *, worker: Worker | None = None) -> RootError:
    """Return the `RootError` for an exception."""
    kind: FailureKind = "other"
    if isinstance(error, TimeoutError):
        kind = "timeout"
    elif isinstance(error, (FileNotFoundError, NotADirectoryError)):
        kind = "missing"
    elif isinstance(error, PermissionError):
        kind = "denied"
    text = _DIRECTORY_TEXTS.get(error.errno or 0, "") if isinstance(error, OSError) else ""
    return RootError(
        root=root,
        kind=kind,
        error=type(error).__name__,
        message=text or str(error) or type(error).__name__,
        worker=worker,
    )


def incomplete_error(root: str, errors: tuple[PathError, ...], worker: Worker | None = None) -> RootError | None:
    """Return the `RootError` for paths that could not be read; `None` if `errors` is empty or has only broken links."""
    failed = tuple(error for error in errors if not error.harmless)
    if not failed:
        return None
    message = f"{plural(len(failed), 'path')} could not be read, the first: {failed[0]}"
    return RootError(root=root, kind="incomplete", error="PathError", message=message, paths=failed, worker=worker)
