"""What tells that this user made an index in a project's own folder, and no repository brought it along.

It is a random mark, which the index has and the user's cache, too.
"""

import errno
import hashlib
import logging
import os
import secrets
from pathlib import Path

from ripwrap._text import shown
from ripwrap.binary import cache

_LOGGER = logging.getLogger("ripwrap")

_MARKS: dict[Path, str] = {}
"""Marks of this process alone, by the index's folder, where none can be kept in the user's cache."""


def _mark_file(folder: Path) -> tuple[Path, str]:
    """Where the user's cache has the mark of an index, and why it is not to be used, or empty."""
    store = cache.folder()
    marks = store / "index" / "marks"
    why = next((why for one in (store, marks.parent, marks) if (why := cache.distrust(one))), "")
    return marks / hashlib.blake2b(os.fsencode(folder), digest_size=16).hexdigest(), why


def known_mark(folder: Path) -> str:
    """The mark of the index that this user made in a folder; empty if there is none, or none to be trusted."""
    folder = folder.absolute()
    if here := _MARKS.get(folder):
        return here
    file, why = _mark_file(folder)
    if why:
        return ""
    try:
        return file.read_text("ascii")
    except (OSError, ValueError):
        return ""


def new_mark(folder: Path) -> str:
    """A new mark, which the user's cache keeps, or, if it cannot, this process."""
    folder = folder.absolute()
    mark = secrets.token_hex(16)
    file, why = _mark_file(folder)
    if not why:
        try:
            for one in (file.parents[2], file.parents[1], file.parent):
                made(one)
            fresh = file.with_name(f"{file.name}-{mark}")
            try:
                write_new(fresh, mark, 0o600)
                fresh.replace(file)
            finally:
                fresh.unlink(missing_ok=True)
        except OSError as error:
            why = str(error.strerror)
        else:
            _MARKS.pop(folder, None)
            return mark
    _MARKS[folder] = mark
    _LOGGER.warning(
        "each process makes the index in %s anew, because the cache %s cannot keep who made it: %s",
        shown(str(folder)),
        shown(str(cache.folder())),
        why,
    )
    return mark


def write_new(path: Path, text: str, mode: int) -> None:
    """Write a file that is not there yet, also not as a link."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(path, flags, mode), "w") as file:
        file.write(text)


def made(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for this user alone whatever the umask is."""
    missing: list[Path] = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for one in reversed(missing):
        one.mkdir(mode=0o700, exist_ok=True)
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "it is not a directory", str(folder))
