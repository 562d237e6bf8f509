"""Paths of a caller in a git repository; no I/O."""

import errno
import os
from collections.abc import Sequence

from ripwrap._text import shown
from ripwrap.errors import Hint, HintedText
from ripwrap.options import StrPath

_MAX_NAMED = 100
"""Maximum number of paths in an error."""


def holds(root: str, name: str) -> bool:
    """Return True if a file is at a path, or below it."""
    return root in (os.curdir, name) or name.startswith(f"{root}/")


def missing_path_error(rev: str, paths: Sequence[str]) -> FileNotFoundError:
    """Return the error for paths that a revision does not have."""
    text = HintedText(f"no such path in {rev}; check ", Hint("paths", kind="correct"))
    return FileNotFoundError(errno.ENOENT, text, ", ".join(map(shown, paths[:_MAX_NAMED])))


def relative_path(cwd: str, path: StrPath) -> str:
    """Return a path relative to `cwd`, with `/` as separator."""
    text = os.fspath(path)
    if not text:
        raise ValueError("a path is empty; pass '.' for the directory itself")
    try:
        relative = os.path.normpath(os.path.relpath(text, cwd) if os.path.isabs(text) else text).replace(os.sep, "/")
    except ValueError:  # on another drive of Windows
        relative = ".."
    if relative == ".." or relative.startswith("../"):
        raise ValueError(
            HintedText(
                f"the path {shown(text)} is outside of {shown(cwd)}, the only directory that ",
                Hint("rev"),
                " searches; check ",
                Hint("cwd", kind="correct"),
            )
        )
    return relative
