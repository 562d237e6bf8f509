"""Read files out of git without a checkout: the files of a revision. `git_history` reads all versions of files.

A revision is never read as an option, and each path in git's output ends with a NUL. A repository may be a bomb: a few
kilobytes can expand to millions of paths, or to a blob of many gigabytes. So the sizes of blobs are asked for before
they are read, large blobs are copied to a temporary file, and the number of paths and commits has a maximum.

First and last commits of the versions of files, from the changes between commits and their parents.

The commits come from the newest to the oldest, and no commit comes before one of its children. So the newest commit
with a version is either the tip, or it has a child without the version; then the change from it to the child removes
the version. The change is known for each parent of a merge, because the parents need not have the same files.
"""

import errno
import heapq
import io
import os
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from types import MappingProxyType
from typing import TypeVar, cast

from ripwrap._system.concurrency import CANCELLED
from ripwrap._system.subprocess import open_temporary_file
from ripwrap._text import plural, shown
from ripwrap.errors import Hint, HintedText, SearchError
from ripwrap.models import PathError, PathErrorKind
from ripwrap.options import Directories, StrPath
from ripwrap.sources.base import Item, NamedSource, Source
from ripwrap.sources.git_process import (
    MAX_RECORD_BYTES,
    Git,
    GitOutput,
    holds,
    missing_path_error,
    read_object,
    relative_path,
)
from ripwrap.sources.repository import real_directories

REGULAR = "100"
"""Beginning of the modes of regular files."""


class Lifetimes:
    """Newest and oldest commits of versions."""

    def __init__(self) -> None:
        self.first: dict[str, str] = {}
        self.last: dict[str, str] = {}
        self.waiting: int = 0
        self._waiting: dict[str, set[str]] = {}

    def reach(self, commit: str) -> None:
        """Go on to the next commit."""
        versions = self._waiting.pop(commit, set[str]())
        self.waiting -= len(versions)
        for version in versions:
            self.last.setdefault(version, commit)

    def add(self, version: str, commit: str) -> None:
        """Store that a commit has a version that one of its parents does not have."""
        self.last.setdefault(version, commit)

    def remove(self, version: str, parent: str) -> None:
        """Store that a commit has a version that its child, if there is one, does not have."""
        versions = self._waiting.setdefault(parent, set())
        if version not in self.last and version not in versions:
            versions.add(version)
            self.waiting += 1


class Diffs:
    """Changes of files, as `git diff-tree --stdin --always --raw -z` prints them for pairs of commits."""

    def __init__(self, records: Iterator[bytes]) -> None:
        self._records = records
        self._head = next(records, b"")

    def changes(self, commit: str) -> Iterator[tuple[str, str, bytes]]:
        """Yield the removed version, the added version and the path of each change of the next pair of commits.

        A version is empty if it is none of a regular file. The iterator must be exhausted before the next one.
        """
        if self._head.decode() != commit:
            raise SearchError("git ended early")
        self._head = b""
        for record in self._records:
            if not record.startswith(b":"):
                self._head = record
                return
            path = next(self._records, b"")
            old_mode, mode, old, new, _ = record[1:].decode().split(" ")
            removed = old if old_mode.startswith(REGULAR) else ""
            added = new if mode.startswith(REGULAR) else ""
            if removed != added:  # otherwise only the mode differs
                yield removed, added, path


T = TypeVar("T")
N = TypeVar("N", bound=str)

MAX_BLOB_BYTES = 256 << 20
"""Maximum size in bytes of a file of a revision, unless the caller passes `max_filesize`."""

MAX_ENTRIES = 1_000_000
"""Maximum number of files of a revision, and of commits and versions of files in a history."""

MAX_NAMES_BYTES = 256 << 20
"""Maximum size in bytes of all paths of a revision, or of all paths and subjects of commits in a history."""

MAX_ERRORS = 1000
"""Maximum number of errors about files of a revision or history. Further errors are only counted."""

_CHUNK_FILES = 4096
"""Number of files whose sizes are asked for together, and of paths that are sorted at once."""

_MAX_RESTARTS = 20
"""Maximum number of files at which git may end with an error; after that the search ends."""

_SUBMODULE = "160000"
"""Mode of a submodule. The mode of a regular file begins with 100, and that of a link with 120."""

_MAX_TARGET_BYTES = 4096
"""Number of bytes of the target of a link that an error shows."""

_OTHER_TYPE = "but the object dereferences to"
"""Part of the error that `git rev-parse` prints if an object has a wrong type, such as a tree in place of a commit."""

_FIELDS = 3
"""Number of fields in the head of an object in the output of `git cat-file`; a missing object has two."""

LONG_NAME = f"its path is longer than {MAX_RECORD_BYTES} bytes"


class Budget:
    """Counter of what is kept of git's output; it raises an error at the maximum."""

    def __init__(self, what: str, *arguments: str) -> None:
        """Set the noun for what is counted, and the names of the arguments with which the caller can select less."""
        self._what = what
        self._arguments = arguments
        self._count = 0
        self._size = 0

    def take(self, size: int) -> None:
        """Count one thing with a name of `size` bytes."""
        self._count += 1
        self._size += size
        self.check()

    def check(self, more: int = 0) -> None:
        """Raise `SearchError` if there are too many things, with `more` things that are not counted."""
        if self._count + more > MAX_ENTRIES or self._size > MAX_NAMES_BYTES:
            hints = [part for name in self._arguments for part in (" or ", Hint(name, kind="correct"))][1:]
            limits = f"{plural(MAX_ENTRIES, self._what)}, or names of more than {plural(MAX_NAMES_BYTES, 'byte')}"
            raise SearchError(HintedText(f"more than {limits}; select fewer with ", *hints))


def check_revision(rev: str) -> str:
    """Check a revision and return it."""
    if not isinstance(rev, str):
        raise TypeError(f"rev must be a str, got {type(rev).__name__}")
    if not rev or rev.startswith(("-", "^")) or "\0" in rev or rev != rev.strip():
        raise ValueError(
            HintedText(
                Hint("rev", kind="correct"), f" must be a revision of git, such as 'v1.2' or 'main~3', got {rev!r}"
            )
        )
    return rev


class GitSource(Source):
    """Base class of sources that read files out of git: of a revision, or of a history."""

    def __init__(
        self,
        cwd: str,
        rev: str,
        paths: Sequence[StrPath],
        repositories: Directories | None,
        max_filesize: int | None,
        below: str = "",
    ) -> None:
        super().__init__()
        self._cwd = cwd
        self._below = below and f"{below}/"
        self._rev = rev
        self._max_filesize = max_filesize
        self.roots: tuple[str, ...] = tuple(relative_path(cwd, path) for path in paths)
        allowed = None if repositories is None else real_directories(repositories)
        folder = os.path.join(cwd, below)
        self._git = Git(folder, allowed, MAX_BLOB_BYTES if max_filesize is None else max(max_filesize, MAX_BLOB_BYTES))
        self._failures = 0

    def close(self) -> None:
        """End git."""
        self._git.close()

    def _open(self, kind: str) -> str:
        """Check the repository, and return the id of the object of this kind (commit, tree) that the revision names."""
        self._git.deadline = self.deadline
        self._git.open()
        try:
            # In two steps, because after `:/message` and `main:src` git would read `^{commit}` as part of the name.
            found = self._git.read("rev-parse", "--verify", "--quiet", self._rev).decode().strip()
            found = self._git.read("rev-parse", "--verify", "--quiet", f"{found}^{{{kind}}}").decode().strip()
        except SearchError as error:
            if error.returncode is None:  # git could not be started
                raise
            stderr = "" if _OTHER_TYPE in error.stderr else error.stderr.strip()
        else:
            return found
        if stderr:
            raise SearchError(f"git could not read the revision {self._rev!r}: {stderr}")
        raise ValueError(
            HintedText(
                Hint("rev", kind="correct"),
                f" is not a revision of the repository in {shown(self._cwd)}: {self._rev!r}; pass a commit, branch or ",
                "tag",
            )
        )

    def _check_cwd(self, tree: str) -> None:
        """Raise `FileNotFoundError` if a tree does not have the directory; git would read no file, without an error."""
        prefix = self._git.read("rev-parse", "--show-prefix").removesuffix(b"\n").rstrip(b"/")
        try:
            kind = self._git.read("cat-file", "-t", f"{tree}:{os.fsdecode(prefix)}").strip() if prefix else b"tree"
        except SearchError as error:
            if error.returncode is None:  # git could not be started
                raise
            kind = b""
        if kind != b"tree":
            text = HintedText(f"no such directory in {self._rev}; check ", Hint("cwd", kind="correct"))
            raise FileNotFoundError(errno.ENOENT, text, self._cwd)

    def _selected(self, paths: Sequence[str]) -> list[str]:
        """Return paths as git gets them, relative to the directory of the repository; none is everything."""
        selected = [f"{path}/".removeprefix(self._below).rstrip("/") or os.curdir for path in paths]
        return [] if os.curdir in selected else selected

    def _tree(self, tree: str, paths: Sequence[str]) -> Iterator[tuple[str, str, bytes]]:
        """Yield the mode, the id and the path of each file in a tree, and in the trees below."""
        budget = Budget("file", "paths")
        with self._git.lines("ls-tree", "-r", "-z", "--", tree, *self._selected(paths)) as output:
            for record in output.records():
                budget.take(0)
                about, _, path = record.partition(b"\t")
                mode, _, oid = about.decode().split(" ")
                if len(path) > MAX_RECORD_BYTES:
                    self._fail(f"{os.fsdecode(path[:100])}…", LONG_NAME)
                else:
                    yield mode, oid, os.fsencode(self._below) + path

    def _read(self, files: Iterable[tuple[str, str]]) -> Iterator[Item]:
        """Yield the name and the content of each file, which is given by its name and its id in git.

        A content of more than `HELD_BYTES` is an open file, which is closed when the next item is read.
        """
        for chunk in self._fitting(files):
            contents = self._objects("--batch", [oid for _, oid in chunk], read_object)
            for (name, oid), content in zip(chunk, contents, strict=True):
                if content is None or isinstance(content, Exception):
                    self._fail_object(name, oid, content)
                elif isinstance(content, bytes):
                    yield name, content
                else:
                    with content:
                        yield name, cast("bytes", content)

    def _names(self, files: Iterable[tuple[N, str]]) -> Iterator[N]:
        """Yield the names of the files that are small enough; all names if the caller sets no `max_filesize`."""
        if self._max_filesize is None:
            return (name for name, _ in files)
        return (name for chunk in self._fitting(files) for name, _ in chunk)

    def _fitting(self, files: Iterable[tuple[N, str]]) -> Iterator[list[tuple[N, str]]]:
        files = iter(files)
        while chunk := list(islice(files, _CHUNK_FILES)):
            sizes = self._objects("--batch-check", [oid for _, oid in chunk], lambda _, size: size)
            yield [(name, oid) for (name, oid), size in zip(chunk, sizes, strict=True) if self._fits(name, oid, size)]

    def _fits(self, name: str, oid: str, size: "int | Exception | None") -> bool:
        """Return True if a file is to be read; record an error for a file that is too large or cannot be read."""
        if not isinstance(size, int):
            self._fail_object(name, oid, size)
            return False
        most = self._max_filesize
        if most is not None and name not in self.roots:  # as in rg, `max_filesize` is not for files in `paths`
            return size <= most
        most = max(most or 0, MAX_BLOB_BYTES)
        if size > most:
            limit = plural(most, "byte")
            self._fail(name, f"not searched: larger than {limit}; pass a larger max_filesize, or search a checkout")
        return size <= most

    def _objects(
        self, option: str, oids: Sequence[str], take: Callable[[GitOutput, int], T]
    ) -> Iterator[T | Exception | None]:
        """Yield what `take` returns for each object; `None` if it is missing, an error if git cannot read it.

        git ends at an object that needs too much memory, for example, and is started again for the next object.
        """
        at = 0
        while at < len(oids):
            failure: Exception = SearchError("git ended early")
            try:
                with open_temporary_file() as ids:
                    ids.write("".join(f"{oid}\n" for oid in oids[at:]).encode())
                    ids.seek(0)
                    with self._git.lines("cat-file", option, "--buffer", stdin=ids) as output:
                        while at < len(oids) and (head := output.stdout.readline(MAX_RECORD_BYTES).split()):
                            found = take(output, int(head[2])) if len(head) == _FIELDS else None
                            at += 1
                            yield found
            except (SearchError, MemoryError) as error:
                failure = error
            if at < len(oids):
                self._failures += 1
                if self._failures > _MAX_RESTARTS:
                    raise failure
                at += 1
                yield failure

    def _fail_object(self, name: str, oid: str, error: Exception | None) -> None:
        if error is None:
            about = (
                f"the repository does not have the object {oid[:12]}; if it is a partial clone, clone it again without "
                "--filter"
            )
            self._fail(name, about, "missing")
        elif isinstance(error, MemoryError):
            self._fail(name, "not searched: reading it needed too much memory")
        else:
            self._fail(name, f"not searched: {error}")

    def _fail(self, name: str | None, message: str, kind: PathErrorKind = "other") -> None:
        """Record an error for a file; after `MAX_ERRORS` errors, only record that there are more."""
        if len(self.errors) < MAX_ERRORS:
            self.errors.append(PathError(path=name, kind=kind, message=message))
        elif len(self.errors) == MAX_ERRORS:
            said = f"more than {plural(MAX_ERRORS, 'file')} could not be read; the others are not named"
            self.errors.append(PathError(path=None, kind="other", message=said))


class RevisionSource(GitSource, NamedSource):
    """Source of the regular files that a revision has below a directory, in path order.

    Links are left out. Submodules and missing objects become errors, and so do files larger than `MAX_BLOB_BYTES`.
    """

    def __init__(
        self,
        cwd: str,
        rev: str,
        paths: Sequence[StrPath] = (),
        *,
        commits_only: bool = False,
        repositories: Directories | None = None,
        max_filesize: int | None = None,
        must_exist: bool = False,
        texts: Mapping[str, bytes | None] = MappingProxyType({}),
        below: str = "",
    ) -> None:
        """Choose the files; git runs when they are read.

        Without `commits_only`, `rev` may also be the tree of a subdirectory, such as `main:src`. Files larger than
        `max_filesize` are left out; without it, each file larger than `MAX_BLOB_BYTES` is an error. A missing path is
        an error of the source, or is raised with `must_exist`, or if all are missing. `texts` will replace files, by
        their names: a path with a text exists, and one with `None` not. `below` is the directory of the repository,
        relative to `cwd` and above all `paths`.
        """
        super().__init__(cwd, rev, paths, repositories, max_filesize, below)
        self._kind = "commit" if commits_only else "tree"
        self._must_exist = must_exist
        self._texts = texts

    def __iter__(self) -> Iterator[Item]:
        return self._read(self._entries())

    def find(self) -> tuple[str, str, str]:
        """Return the commit, and the kind of the only path with a detail about it.

        The kind is `file`, `tree`, `link` (with its target), `submodule` (with its commit), or empty if there is none.
        """
        commit = self._open(self._kind)
        (path,) = self._selected(self.roots) or [""]
        if not path:
            self._check_cwd(commit)
            return commit, "tree", ""
        mode, _, rest = self._git.read("ls-tree", "-z", "--", commit, path).partition(b"\t")[0].decode().partition(" ")
        oid = rest.rpartition(" ")[2]
        if mode == _SUBMODULE:
            return commit, "submodule", oid
        if mode.startswith("12"):
            return commit, "link", os.fsdecode(self._git.read("cat-file", "blob", oid)[:_MAX_TARGET_BYTES])
        return commit, mode and ("file" if mode.startswith(REGULAR) else "tree"), ""

    def open_commit(self) -> str:
        """Return the commit that the revision names."""
        return self._open("commit")

    def names(self) -> Iterator[str]:
        """Yield the paths of the selected files."""
        return self._names(self._entries())

    def _entries(self) -> Iterator[tuple[str, str]]:
        """Yield the path and the id of each selected file, in path order."""
        tree = self._open(self._kind)
        sorted_parts: list[list[bytes]] = [[]]
        budget = Budget("file", "paths")
        unseen, is_empty = set(self.roots), True
        for mode, oid, path in self._tree(tree, self.roots):
            name = os.fsdecode(path)
            named = next((root for root in self.roots if holds(root, name)), "")
            if self.roots and not named:
                continue
            is_empty = False
            unseen -= {root for root in unseen if holds(root, name)}
            if mode == _SUBMODULE:
                about_it = (
                    f"a submodule at commit {oid[:12]}, whose files are not searched; search the directory of the "
                    "submodule separately"
                )
                self._fail(name, about_it)
            elif name == named and not mode.startswith(REGULAR):
                self._fail(name, "a link, which is not followed in a revision; pass the path that it leads to")
            elif mode.startswith(REGULAR) and (name == named or self.selects(name)):
                budget.take(len(path))
                # One text for the path and the id needs less memory than two. No path has a NUL.
                sorted_parts[-1].append(path.replace(b"/", b"\0") + b"\0\0" + oid.encode())
                if len(sorted_parts[-1]) == _CHUNK_FILES:
                    # Sorting all files at once would hold the GIL, and with it an event loop in another thread.
                    sorted_parts[-1].sort()
                    sorted_parts.append([])
        self._check_paths(tree, unseen, is_empty=is_empty)
        sorted_parts[-1].sort()
        for entry in heapq.merge(*sorted_parts):
            key, _, oid_bytes = entry.rpartition(b"\0\0")
            yield os.fsdecode(key.replace(b"\0", b"/")), oid_bytes.decode()

    def _check_paths(self, tree: str, unseen: Collection[str], *, is_empty: bool) -> None:
        """Raise an error, or record errors, for the paths that do not exist."""
        written = [name for name, text in self._texts.items() if text is not None]
        missing = [
            root
            for root in self.roots
            if (root in unseen or root in self._texts) and not any(holds(root, name) for name in written)
        ]
        if missing or (is_empty and not written):
            self._check_cwd(tree)
        if missing and (self._must_exist or len(missing) == len(self.roots)):
            raise missing_path_error(self._rev, missing)
        for path in missing:
            self._fail(path, f"no such path in {self._rev}", "missing")


@dataclass(frozen=True, slots=True)
class RevisionTree:
    """Files of a commit, below a root or below a repository in it."""

    cwd: str
    commit: str
    below: str
    repositories: tuple[str, ...]
    is_file: bool = False

    def source(self, paths: Sequence[str], timeout: float | None = None) -> RevisionSource:
        """Return the source of the files at or below paths."""
        source = RevisionSource(
            self.cwd, self.commit, paths, commits_only=True, repositories=self.repositories, below=self.below
        )
        source.deadline = None if timeout is None else time.monotonic() + timeout
        return source

    def resolve(self, rev: str, timeout: float | None) -> str:
        """Return the commit that another revision names."""
        with closing(replace(self, commit=rev).source((), timeout)) as source:
            return source.open_commit()

    def git(self, max_bytes: int) -> Git:
        """Return the runner of git in the repository."""
        return Git(os.path.join(self.cwd, self.below), self.repositories, max_bytes)

    def files(self, paths: Sequence[str], timeout: float | None) -> Generator[tuple[str, io.BufferedReader]]:
        """Yield the name of each file at or below paths, and the file, open for reading bytes until the next one."""
        with CANCELLED.get().child(), closing(self.source(paths, timeout)) as source:
            for name, content in source:
                file = io.BytesIO(content) if isinstance(content, bytes) else content
                yield name, io.BufferedReader(cast("io.RawIOBase", file))
            if source.errors and len(paths) == 1:
                raise ValueError(str(source.errors[0]))

    @contextmanager
    def open(self, path: str, timeout: float | None) -> Generator[io.BufferedReader]:
        """Open a file for reading bytes."""
        with closing(self.files((path,), timeout)) as files:
            for _, file in files:
                yield file
                return
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def names(self, paths: Sequence[str], timeout: float | None, errors: list[PathError]) -> Iterator[str]:
        """Yield the paths of the files at or below paths, in path order, and add what cannot be listed to `errors`."""
        with CANCELLED.get().child(), closing(self.source(paths, timeout)) as source:
            yield from (name.replace("/", os.sep) for name in source.names())
            errors += source.errors
