"""Find the roots to search, and give them names."""

import glob
import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from ripwrap._text import shown
from ripwrap.options import StrPath
from ripwrap.repositories.models import Root

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
    """Yield the git repositories in a directory, in path order; skip repositories inside of another repository.

    A directory with an entry `.git` is a repository. The entry may be a file (in a worktree or submodule). Links are
    not followed. Directories that cannot be read are logged as warnings.
    """
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


def read_roots(file: StrPath) -> list[str]:
    """Return the paths and globs in a file: one on each line, relative to the directory of the file.

    `~` at the beginning of a line is the home of the user. Empty lines and lines that begin with `#` are skipped.
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
    return found


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
