"""Recognise files of version control, which ripwrap never writes: their contents run programs and lead to other files.

A hook, or `core.fsmonitor` in `.git/config`, runs a program at the next `git status`. A `.git` file names another
directory as the repository. A file system may have several spellings of a name, so names are compared as git compares
them (`is_ntfs_dotgit()` and `is_hfs_dotgit()` in git's `path.c` and `utf8.c`), on every system.
"""

import errno
import os
import re
import unicodedata
from pathlib import PurePath

NAMES = (".git", ".jj", ".hg", ".svn", ".ripwrap")
"""Names of files and directories of version control, and of ripwrap's own index."""

_DATA = frozenset({"branches", "hooks", "info", "logs", "modules", "objects", "refs", "reftable", "worktrees"})
"""Names of directories in the directory of a repository that have git's own data, so that no worktree is in them."""

# NTFS and FAT have short names such as `GIT~1` for `.git`.
_SHORT_NAME = re.compile(rf"(?:{'|'.join(name[1:7] for name in NAMES)})~[0-9]+")
# Characters that a file system may ignore in names: HFS+ ignores some of these, and ext4 with `casefold` ignored all
# default-ignorable characters of Unicode (DerivedCoreProperties.txt).
_IGNORED = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def is_protected_name(name: str) -> bool:
    """Return True if a file system may take a part of a path for one of `NAMES`."""
    plain = _plain(name)
    return plain in NAMES or _SHORT_NAME.fullmatch(plain) is not None


def _plain(name: str) -> str:
    """Return a part of a path as all its spellings are compared."""
    folded = unicodedata.normalize("NFD", _IGNORED.sub("", name)).casefold()
    # NTFS ignores dots and spaces at the end of a name; a colon begins the name of a stream, as in `.git::$DATA`.
    return folded.partition(":")[0].rstrip(". ")


def why_protected(path: str) -> str:
    """Return the reason why a file must not be written; empty if it may be written."""
    for part in re.split(r"[/\\]", path):
        if is_protected_name(part):
            return f"nothing is written to or below {part}, because programs run what is in it; change the file by hand"
    if folder := _git_directory(path):
        return f"nothing is written to {folder}, the directory of a git repository; change the file by hand"
    return ""


def refuse_protected(path: str) -> None:
    """Raise `PermissionError` if a file must not be written; see `why_protected()`."""
    if reason := why_protected(path):
        raise PermissionError(errno.EPERM, reason, path)


def _git_directory(path: str) -> str:
    """Return the directory that has git's data and contains a file, such as a bare repository; empty if there is none.

    A directory below it that has a `.git`, as `git worktree add` makes it, does not belong to git's data, unless it is
    in a directory such as `hooks`, where somebody could put a `.git` so that hooks are written.
    """
    found = ""
    for folder in map(str, reversed(PurePath(path).parents)):
        if _is_git_directory(folder):
            found = folder
        elif found and os.path.lexists(os.path.join(folder, ".git")) and not _is_data(folder, found):
            found = ""
    return found


def _is_data(folder: str, repository: str) -> bool:
    return _plain(os.path.relpath(folder, repository).split(os.sep)[0]) in _DATA


def _is_git_directory(folder: str) -> bool:
    """Return True for a directory that git accepts as the directory of a repository or of a linked worktree.

    `is_git_directory()` in git's `setup.c` looks for the same files.
    """

    def has(*names: str) -> bool:
        return all(os.path.lexists(os.path.join(folder, name)) for name in names)

    return has("HEAD") and (has("objects", "refs") or has("commondir"))
