"""Which view of an index is meant: the branch that a folder is on, read from `.git` without git."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

DETACHED = "detached HEAD"
NO_REPOSITORY = "no repository"
UNKNOWN = "unknown branch"
"""Names that no branch can have: they have a space."""

_HEADS = "refs/heads/"


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
    if (repository.common / "reftable").exists():
        return False
    return not (repository.common / _HEADS / name).is_file() and name not in _packed(repository.common)


def _git_of(path: Path) -> Path | None:
    """The folder that has HEAD: `.git` itself, or what is written in it if it is a file."""
    if path.is_dir():
        return path if (path / "HEAD").exists() or (path / "HEAD").is_symlink() else None
    said = _text(path)
    if not said.startswith("gitdir:"):
        return None
    git = Path(os.path.realpath(path.parent / said.removeprefix("gitdir:").strip()))
    return git if git.is_dir() else None


def _common_of(git: Path) -> Path:
    said = _text(git / "commondir").strip()
    return Path(os.path.realpath(git / said)) if said else git


def _branch(git: Path) -> str:
    head = git / "HEAD"
    if head.is_symlink():  # as git did it long ago
        said = os.readlink(head)
    else:
        said = _text(head).strip()
        if not said.startswith("ref:"):
            return DETACHED if said else UNKNOWN
        said = said.removeprefix("ref:").strip()
    if not said.startswith(_HEADS) or said == f"{_HEADS}.invalid":  # what a reftable has in its stead
        return UNKNOWN
    return said.removeprefix(_HEADS)


def _packed(common: Path) -> frozenset[str]:
    return frozenset(_packed_heads(_text(common / "packed-refs")))


def _packed_heads(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        name = line.partition(" ")[2]
        if name.startswith(_HEADS):
            yield name.removeprefix(_HEADS)


def _text(path: Path) -> str:
    with suppress(OSError):
        return os.fsdecode(path.read_bytes())
    return ""
