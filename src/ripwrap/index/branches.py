"""Read the current branch of a directory from `.git`, without running git.

For each branch, an index has a view: a record of the files of the branch. The view has the name of the branch.

The page https://git-scm.com/docs/gitrepository-layout describes `.git`. A downloaded directory may have a hostile
`.git`. So only regular files are read, up to a maximum size. A pipe or device is never opened. An unreadable file is
treated as empty; but if `packed-refs` cannot be read, the branch of a view counts as existing.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ripwrap._concurrency import opened
from ripwrap._windows import IS_WINDOWS, is_foreign_path

DETACHED = "detached HEAD"
NO_REPOSITORY = "no repository"
UNKNOWN = "unknown branch"
"""Names of views for which there is no branch, or no known branch. No branch has a space in its name."""

_HEADS = "refs/heads/"
_MAX_SMALL_FILE_BYTES = 64 << 10
"""Maximum size in bytes of files that have only one line."""
_MAX_PACKED_REFS_BYTES = 16 << 20
_OPEN_FLAGS = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


@dataclass(frozen=True, slots=True)
class GitRepository:
    """Git repository that a directory belongs to."""

    top: Path
    git: Path
    common: Path


def repository_of(root: Path) -> GitRepository | None:
    """Return the repository that contains a directory, given as a real path; `None` if there is none."""
    for top in (root, *root.parents):
        git = _git_of(top / ".git")
        if git is not None:
            return GitRepository(top, git, _common_of(git))
    return None


def view_of(root: Path) -> str:
    """Return the name of the current view of a directory: its branch.

    If there is no branch, or it is not known, return `DETACHED`, `NO_REPOSITORY` or `UNKNOWN`.
    """
    repository = repository_of(root)
    return NO_REPOSITORY if repository is None else _read_branch(repository.git)


def key_of(root: Path) -> str:
    """Return a text that identifies the index of a directory. All worktrees of a repository have the same text."""
    repository = repository_of(root)
    if repository is None:
        return str(root)
    return f"{repository.common}\0{root.relative_to(repository.top)}"


def is_gone(root: Path, name: str) -> bool:
    """Return True if the directory or the branch of a view does not exist any more; False if this cannot be found out.

    Also return True if the directory became a part of a repository after the view was made, or is no longer a part of a
    repository.
    """
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
    packed = _read_packed_branches(repository.common)
    return packed is not None and name not in packed


def _git_of(path: Path) -> Path | None:
    """Return the directory with HEAD: `.git`, or the directory that a file `.git` names; `None` if there is none."""
    # For a path that is too long, has a NUL or is forbidden, os.path's functions return False, and Path's raise.
    git: Path | None = path
    if not os.path.isdir(path):
        text = _read_text(path)
        if not text.startswith("gitdir:"):
            return None
        git = resolve_link(path.parent, text.removeprefix("gitdir:").strip())
    return git if git is not None and os.path.lexists(git / "HEAD") else None


def _common_of(git: Path) -> Path:
    text = _read_text(git / "commondir").strip()
    return (resolve_link(git, text) if text else None) or git


def resolve_link(folder: Path, text: str, *, windows: bool = IS_WINDOWS) -> Path | None:
    """Return the directory that a file `.git` or `commondir` names; `None` if the path is invalid.

    On Windows, a path on another computer is also invalid.
    """
    if windows and is_foreign_path(text, [folder.anchor]):
        return None
    with suppress(OSError, ValueError):  # ValueError: the path has a NUL
        return Path(os.path.realpath(folder / text))
    return None


def _read_branch(git: Path) -> str:
    head = git / "HEAD"
    text = _read_link(head)  # with core.preferSymlinkRefs, HEAD is a link: git-config(1)
    if text is None:
        text = _read_text(head).strip()
        if not text.startswith("ref:"):
            return DETACHED if text else UNKNOWN
        text = text.removeprefix("ref:").strip()
    if not text.startswith(_HEADS) or text == f"{_HEADS}.invalid":  # HEAD has `.invalid` in a repository with reftables
        return UNKNOWN
    # git refuses such names: git-check-ref-format(1). The name becomes a part of a path.
    if any(letter <= " " or letter in "\x7f\\:" for letter in text) or "//" in text or ".." in text:
        return UNKNOWN
    return text.removeprefix(_HEADS)


def _read_link(path: Path) -> str | None:
    with suppress(OSError):
        return os.readlink(path)
    return None


def _read_packed_branches(common: Path) -> frozenset[str] | None:
    """Return the branches that the file `packed-refs` lists, empty if it is missing; `None` if it cannot be read."""
    try:
        return frozenset(_parse_packed_refs(os.fsdecode(_read(common / "packed-refs", _MAX_PACKED_REFS_BYTES))))
    except FileNotFoundError:
        return frozenset()
    except (OSError, ValueError):
        return None


def _parse_packed_refs(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        name = line.rstrip("\r").partition(" ")[2]
        if name.startswith(_HEADS):
            yield name.removeprefix(_HEADS)


def _read_text(path: Path) -> str:
    with suppress(OSError, ValueError):
        return os.fsdecode(_read(path, _MAX_SMALL_FILE_BYTES))
    return ""


def _read(path: Path, max_bytes: int) -> bytes:
    """Return the content of a regular file; links are followed, because `.git` may be a link."""
    _check_regular(os.stat(path))  # before opening, because opening a device may have side effects
    with (
        opened(lambda: os.open(path, os.O_RDONLY | _OPEN_FLAGS)) as descriptor,
        open(descriptor, "rb", closefd=False) as file,
    ):
        _check_regular(os.fstat(descriptor))  # the file may have been replaced since the check
        content = file.read(max_bytes + 1) or b""  # `None` if the read would block
    if len(content) > max_bytes:
        raise ValueError("too large")
    return content


def _check_regular(state: os.stat_result) -> None:
    if not stat.S_ISREG(state.st_mode):
        raise ValueError("not a regular file")
