"""Base of the async and the blocking `Repositories`: roots, checked arguments, and the tasks of each operation."""

import glob
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Generic, Self, TypedDict, TypeVar

from ripwrap._operations.rank import FileTerms
from ripwrap._ranking.word_query import WordQuery
from ripwrap._ripgrep.command import search_query
from ripwrap._text import shown
from ripwrap.binary.probe import RgBinary
from ripwrap.binary.resolver import Rg
from ripwrap.errors import named_paths
from ripwrap.options import VISIBLE_FILES, FileOptions, SearchOptions, StrPath, check_limit, check_number, check_timeout
from ripwrap.places.where import refuse_places
from ripwrap.repositories.collectors import TermsCollector
from ripwrap.repositories.models import Root, RootError, Worker
from ripwrap.repositories.requests import ReadRequest, RootRequest, RootTask
from ripwrap.repositories.scheduler import AnyExecutor, Arrival, OnRootsEnded, RootOrder, Schedule

_LOGGER = logging.getLogger("ripwrap")


def find_roots(places: Iterable[StrPath | Root], only: Sequence[str] = (), exclude: Sequence[str] = ()) -> list[Root]:
    """Return the roots for paths and globs, without duplicates, in the given order; the roots of a glob in path order.

    A path that exists is not read as a glob. A directory that does not exist is returned, too; its search then reports
    that it is missing. A `Root` keeps its name. The name of any other root is the last part of its path. If several
    names are equal, further parts of the paths are added until the names differ.
    """
    named: dict[str, str] = {}
    paths: dict[str, None] = {}
    for place in places:
        if isinstance(place, Root):
            named[os.path.abspath(place.path)] = place.name
            paths[os.path.abspath(place.path)] = None
        else:
            paths.update(dict.fromkeys(_expand(place)))
    if not paths:
        raise ValueError("no roots given; pass directories, or globs such as 'src/*'")
    if repeated := [name for name, number in Counter(named.values()).items() if number > 1]:
        raise ValueError(f"two roots have the name {repeated[0]!r}; give each root a different name")
    names = _names([path for path in paths if path not in named], set(named.values())) | named
    roots = [Root(name=names[path], path=path) for path in paths]
    kept = [root for root in roots if (not only or _matches(root, only)) and not _matches(root, exclude)]
    if not kept:
        given = f"only={list(only)!r} and exclude={list(exclude)!r}"
        raise ValueError(f"{given} leave out all roots ({len(roots)}); change one of these globs")
    return kept


def git_repositories(directory: StrPath, max_depth: int | None = None) -> Iterator[str]:
    """Yield the git repositories in a directory, in path order; skip repositories inside of another repository."""
    top = absolute_path(directory)
    os.scandir(top).close()

    def warn(error: OSError) -> None:
        _LOGGER.warning("%s could not be read: %s", shown(str(error.filename)), error.strerror)

    for folder, folders, files in os.walk(top, onerror=warn):
        if ".git" in folders or ".git" in files:
            yield folder
            folders.clear()
        depth = 0 if folder == top else os.path.relpath(folder, top).count(os.sep) + 1
        if max_depth is not None and depth >= max_depth:
            folders.clear()
        folders.sort()


def _expand(place: StrPath) -> list[str]:
    path = absolute_path(place)
    if not glob.has_magic(path) or os.path.lexists(path):
        return [path]
    found = sorted(os.path.abspath(match) for match in glob.iglob(path, recursive=True) if os.path.isdir(match))
    if not found:
        raise FileNotFoundError(f"no directory matches {os.fspath(place)!r}; correct the glob")
    return found


def absolute_path(place: StrPath) -> str:
    """Return the absolute path of a root; `~` is the home of the user."""
    text = os.fspath(place)
    if not isinstance(text, str):
        raise TypeError(f"a root must be a str or os.PathLike[str], got {type(place).__name__}")
    if not text:
        raise ValueError("the path of a root is empty; pass '.' for the current directory")
    if "\0" in text:
        raise ValueError("a NUL character cannot be part of the path of a root; remove it")
    return os.path.abspath(os.path.expanduser(text))


def _names(paths: Iterable[str], taken: set[str]) -> dict[str, str]:
    """Map each path to a name: the last part, with as many earlier parts as it needs to differ from other names."""
    names: dict[str, str] = {}
    left, parts = list(paths), 1
    while left:
        ends = {path: _end(path, parts) for path in left}
        often = Counter(ends.values())
        names |= {path: end for path, end in ends.items() if (often[end] == 1 and end not in taken) or end == path}
        left = [path for path in left if path not in names]
        parts += 1
    return names


def _end(path: str, parts: int) -> str:
    """Return the last `parts` parts of a path; the whole path if it has no more parts, or ends with a separator."""
    split = path.split(os.sep)
    return os.sep.join(split[-parts:]) if parts < len(split) and split[-1] else path


def _matches(root: Root, globs: Sequence[str]) -> bool:
    """Return True if a glob matches the name or path of a root; on Windows, slashes match backslashes."""
    texts = [text.replace(os.sep, "/") for text in (root.name, root.path)]
    return any(fnmatchcase(text, one.replace(os.sep, "/")) for text in texts for one in globs)


if TYPE_CHECKING:
    from ripwrap.index.base import ChunkerName
    from ripwrap.index.embeddings.protocol import Embedder
else:
    ChunkerName, Embedder = str, Any  # annotations can be evaluated without loading the index

ARGUMENTS = ("pattern", "per_root", "limit", "order", "timeout", "on_progress")
"""Arguments that the operations take besides the options. An error about a misspelled option may suggest one of these.
"""

T = TypeVar("T")
Out = TypeVar("Out")


class IndexSettings(TypedDict, total=False):
    """Settings of the indexes of all roots; see `Index`."""

    chunker: ChunkerName
    embedder: "str | Embedder | None"
    hybrid_weight: float | None
    workers: int | None


class BaseRepositories:
    """Base class of `ripwrap.Repositories` and its blocking twin: it holds the roots and the settings of searches."""

    @named_paths
    def __init__(
        self,
        *roots: StrPath | Root,
        only: str | Sequence[str] = (),
        exclude: str | Sequence[str] = (),
        executor: AnyExecutor | None = None,
        concurrency: int | None = None,
        retries: int = 2,
        rg: Rg = None,
        lease_folder: StrPath | None = None,
    ) -> None:
        """Find the roots; nothing is searched yet.

        Args:
            roots: Directories, globs such as `src/*` (which match directories), or `Root` objects with your own names.
                If a directory does not exist, each operation reports it.
            only: Globs of the names or absolute paths of the roots to keep; empty keeps all.
            exclude: Globs of the names or absolute paths of the roots to leave out.
            executor: A `concurrent.futures.Executor` that searches the roots, or a function that makes one. The
                function is called again if its executor breaks. An executor that the function made is shut down at the
                end of the operation. With `None`, this process runs rg itself.
            concurrency: Maximum number of roots that are searched at a time. `None` is the limit of
                `limit_processes()`. With an executor, `None` is 32, because the executor limits its workers itself.
            retries: Number of times that a root is sent to the executor again after its worker was lost.
            rg: The rg to run: a path, or a bare name to find in PATH. `None` finds an rg; with an executor, each worker
                finds one.
            lease_folder: Directory for a small file that exists as long as an operation with an executor runs. When the
                file is removed, workers that can see the directory end their rg. `None` is the directory for temporary
                files, which only workers on this machine can see.

        Raises:
            ValueError: No root is given, a path is empty or has a NUL, `only` and `exclude` leave no root, two roots
                have the same name, or a number is too small.
            FileNotFoundError: No directory matches a glob.
            TypeError: A root, number or executor is of a wrong type.
        """
        kept, left_out = ((one,) if isinstance(one, str) else tuple(one) for one in (only, exclude))
        self._roots = tuple(find_roots(roots, kept, left_out))
        self._plan = Schedule(
            executor=executor,
            concurrency=None if concurrency is None else check_number(concurrency, "concurrency"),
            retries=check_number(retries, "retries", 0),
            rg=rg,
            lease_folder=None if lease_folder is None else os.fspath(lease_folder),
        )
        if executor is not None and not callable(executor) and not isinstance(executor, Executor):
            raise TypeError(
                "executor must be a concurrent.futures.Executor, or a function that makes one, got "
                f"{type(executor).__name__}"
            )

    @classmethod
    def below(cls, directory: StrPath, *, max_depth: int | None = None, **settings: Any) -> Self:
        """Return `Repositories` of all git repositories in a directory; skip a repository inside of another repository.

        A repository is a directory with an entry `.git`. The name of a repository is its path relative to `directory`;
        if `directory` itself is a repository, the name is the last part of its path. Links are not followed.
        Directories that cannot be read are logged as warnings.

        Raises:
            FileNotFoundError, NotADirectoryError, PermissionError: The directory cannot be listed.
            ValueError: The directory has no repository.
        """
        top = absolute_path(directory)
        found = [
            Root(name=os.path.basename(path) if path == top else os.path.relpath(path, top), path=path)
            for path in git_repositories(top, max_depth)
        ]
        if not found:
            deeper = "" if max_depth is None else ", or a larger max_depth"
            raise ValueError(f"there is no git repository in {top}; pass another directory{deeper}")
        return cls(*found, **settings)

    @classmethod
    def from_file(cls, file: StrPath, **settings: Any) -> Self:
        """Return `Repositories` of the roots in a file: each line is a path or glob, relative to the file's directory.

        `~` at the beginning of a line is the home of the user. Empty lines, and lines that begin with `#`, are skipped.
        """
        path = absolute_path(file)
        with open(path, encoding="utf-8", errors="surrogateescape") as text:
            lines = [line.rstrip("\r\n") for line in text]
        found = [
            os.path.join(glob.escape(os.path.dirname(path)) if glob.has_magic(line) else os.path.dirname(path), line)
            for line in (os.path.expanduser(line) for line in lines if line.strip() and not line.startswith("#"))
        ]
        if not found:
            raise ValueError(f"{shown(path)} names no root; write the path of a directory on each line")
        return cls(*found, **settings)

    @property
    def roots(self) -> tuple[Root, ...]:
        """Roots with their names, in the given order; the roots of a glob are in path order."""
        return self._roots

    def __len__(self) -> int:
        """Return the number of roots."""
        return len(self._roots)

    def __iter__(self) -> Iterator[Root]:
        """Iterate over the roots."""
        return iter(self._roots)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self._roots)} roots)"

    def _tasks(self, request: RootRequest[T], timeout: float | None = None) -> list[RootTask[T]]:
        """Return a task for each root."""
        refuse_places("Repositories")
        rg = self._plan.rg
        name = rg.path if isinstance(rg, RgBinary) else None if rg is None else os.fspath(rg)
        return [RootTask(root, request, name, check_timeout(timeout)) for root in self._roots]


@dataclass(slots=True)
class Question(Generic[T, Out]):
    """Call of `search()`, `files()` or `count()`, with checked arguments."""

    tasks: list[RootTask[T]]
    convert: Callable[[str, T, Worker | None], Out]
    left: int | None
    order: RootOrder
    on_progress: OnRootsEnded | None

    def __post_init__(self) -> None:
        check_limit(self.left)
        if self.order not in ("arrival", "root"):
            raise ValueError(f"order must be 'arrival' or 'root', got {self.order!r}")

    def result(self, arrival: Arrival[T]) -> Out | RootError | None:
        """Convert a message about a task to the result or failure for the caller; return `None` for an end message."""
        item = arrival.item
        if item is None or isinstance(item, RootError):
            return item
        if self.left is not None:
            self.left -= 1
        return self.convert(self.tasks[arrival.number].root.name, item, arrival.worker)


@dataclass(slots=True)
class TermsQuestion:
    """Call of `rank()`, with checked arguments."""

    tasks: list[RootTask[FileTerms]]
    terms: TermsCollector
    query: WordQuery
    limit: int | None
    options: FileOptions

    def read_tasks(self, chosen: Sequence[str]) -> list[RootTask[tuple[str, bytes]]]:
        """Return a task for each root that has chosen files; the task reads these files."""
        files: dict[str, list[str]] = {}
        for key in chosen:
            root, path = self.terms.place(key)
            files.setdefault(root.name, []).append(path)
        options: FileOptions = {**VISIBLE_FILES, **self.options}
        return [
            RootTask(task.root, ReadRequest(tuple(files[task.root.name]), options), task.rg)
            for task in self.tasks
            if task.root.name in files
        ]

    def in_order(self, chosen: Sequence[str], contents: Mapping[tuple[str, str], bytes]) -> Iterator[tuple[str, bytes]]:
        """Yield the key and the content of each chosen file that was read, in the order of `chosen`."""
        for key in chosen:
            root, path = self.terms.place(key)
            if (root.name, path) in contents:
                yield key, contents[root.name, path]


def check_search(pattern: str | Sequence[str], options: SearchOptions) -> tuple[str, ...]:
    """Check the patterns and the options, and return the patterns."""
    if options.get("passthru"):
        raise ValueError("passthru returns every line of every file; leave passthru out")
    return search_query(pattern, os.curdir, (), options, arguments=ARGUMENTS).patterns
