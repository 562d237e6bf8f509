"""Which view of an index is meant: the branch that a folder is on, read from `.git` without git.

Whoever made the folder has made its `.git`, too, perhaps to do harm: only so much of regular files is read, what does
not end and what nobody writes to is never waited for, and what cannot be read says nothing.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

DETACHED = "detached HEAD"
NO_REPOSITORY = "no repository"
UNKNOWN = "unknown branch"
"""Names that no branch can have: they have a space."""

_HEADS = "refs/heads/"
_MOST = 64 << 10
"""Bytes of a file that has one line."""
_MOST_PACKED = 16 << 20
_WITHOUT_WAITING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository that a folder belongs to.

    Attributes:
        top: The folder that has `.git`.
        git: What has `HEAD`: `.git`, or of a worktree its own folder.
        common: What has the branches, the same for all worktrees.
    """

    top: Path
    git: Path
    common: Path


def repository_of(root: Path) -> Repository | None:
    """The repository that a folder belongs to, which is a real path."""
    for top in (root, *root.parents):
        git = _git_of(top / ".git")
        if git is not None:
            return Repository(top, git, _common_of(git))
    return None


def view_of(root: Path) -> str:
    """The name of the view that a folder has now."""
    repository = repository_of(root)
    return NO_REPOSITORY if repository is None else _branch(repository.git)


def key_of(root: Path) -> str:
    """What tells folders apart that share no index: the same for a folder in all worktrees of a repository."""
    repository = repository_of(root)
    if repository is None:
        return str(root)
    return f"{repository.common}\0{root.relative_to(repository.top)}"


def is_gone(root: Path, name: str) -> bool:
    """Whether a folder, or the branch of it that a view is for, is no more; if that cannot be told, it is not."""
    if not root.is_dir():
        return True
    repository = repository_of(root)
    if name == view_of(root) or (repository is not None and name in (DETACHED, UNKNOWN)):
        return False
    if repository is None or name == NO_REPOSITORY:
        return True
    if os.path.lexists(repository.common / "reftable"):
        return False
    if os.path.isfile(repository.common / _HEADS / name):
        return False
    packed = _packed(repository.common)
    return packed is not None and name not in packed


def _git_of(path: Path) -> Path | None:
    """The folder that has HEAD: `.git` itself, or what is written in it if it is a file."""
    # Of os.path, as these say `False` of a path that is too long, or has a NUL, or may not be looked at.
    git: Path | None = path
    if not os.path.isdir(path):
        said = _text(path)
        if not said.startswith("gitdir:"):
            return None
        git = _at(path.parent, said.removeprefix("gitdir:").strip())
    return git if git is not None and os.path.lexists(git / "HEAD") else None


def _common_of(git: Path) -> Path:
    said = _text(git / "commondir").strip()
    return (_at(git, said) if said else None) or git


def _at(folder: Path, said: str) -> Path | None:
    with suppress(OSError, ValueError):  # the latter of a NUL
        return Path(os.path.realpath(folder / said))
    return None


def _branch(git: Path) -> str:
    head = git / "HEAD"
    said = _linked(head)  # as git did it long ago
    if said is None:
        said = _text(head).strip()
        if not said.startswith("ref:"):
            return DETACHED if said else UNKNOWN
        said = said.removeprefix("ref:").strip()
    if not said.startswith(_HEADS) or said == f"{_HEADS}.invalid":  # what a reftable has in its stead
        return UNKNOWN
    if any(letter <= " " or letter == "\x7f" for letter in said):  # no branch has a name like this
        return UNKNOWN
    return said.removeprefix(_HEADS)


def _linked(path: Path) -> str | None:
    with suppress(OSError):
        return os.readlink(path)
    return None


def _packed(common: Path) -> frozenset[str] | None:
    """The branches that have no file of their own, or `None` if they cannot be told."""
    try:
        return frozenset(_packed_heads(os.fsdecode(_read(common / "packed-refs", _MOST_PACKED))))
    except FileNotFoundError:
        return frozenset()
    except (OSError, ValueError):
        return None


def _packed_heads(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        name = line.partition(" ")[2]
        if name.startswith(_HEADS):
            yield name.removeprefix(_HEADS)


def _text(path: Path) -> str:
    with suppress(OSError, ValueError):
        return os.fsdecode(_read(path, _MOST))
    return ""


def _read(path: Path, most: int) -> bytes:
    """What is in a regular file, or in one that a link leads to, as in a working tree that shares its `.git`.

    Raises:
        OSError: It cannot be read.
        ValueError: It is no regular file, or larger, or its path has a NUL.
    """
    _check_regular(os.stat(path))  # before it is opened, which does something to a device
    descriptor = os.open(path, os.O_RDONLY | _WITHOUT_WAITING)
    with open(descriptor, "rb") as file:
        _check_regular(os.fstat(descriptor))  # it may be another one by now
        content = file.read(most + 1) or b""  # `None` if it would have to be waited for
    if len(content) > most:
        raise ValueError("too large")
    return content


def _check_regular(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("not a regular file")
