"""Check that this user made the index inside a project, and that the index did not come with the repository.

A cloned repository may contain a `.ripwrap` directory with a hostile or wrong database (SQLite's advice for such files:
https://sqlite.org/security.html). So the process that creates an index writes a random mark into the index and into the
user's cache. No other user can guess the mark. An index inside a project is used only if its mark is in the cache;
otherwise it is rebuilt.
"""

import errno
import hashlib
import logging
import os
import secrets
from pathlib import Path

from ripwrap._concurrency import opened, replace_file
from ripwrap._text import shown
from ripwrap.binary import cache

_LOGGER = logging.getLogger("ripwrap")

_PROCESS_MARKS: dict[Path, str] = {}
"""Ownership marks that the user's cache cannot store, by the directory of the index; this process keeps them in memory.
"""


def _mark_file(folder: Path) -> tuple[Path, str]:
    """Return the file in the user's cache for the ownership mark of an index in `folder`, and the reason not to use it.

    The reason is an empty string if the file may be used.
    """
    store = cache.folder()
    marks = store / "index" / "marks"
    why = next((why for one in (store, marks.parent, marks) if (why := cache.why_untrusted(one))), "")
    return marks / hashlib.blake2b(os.fsencode(folder), digest_size=16).hexdigest(), why


def known_mark(folder: Path) -> str:
    """Return the ownership mark of an index in `folder`, from this process or from the user's cache.

    The result is empty if there is no mark, or if the cache cannot be read or trusted.
    """
    folder = folder.absolute()
    if here := _PROCESS_MARKS.get(folder):
        return here
    file, why = _mark_file(folder)
    if why:
        return ""
    try:
        return file.read_text("ascii")
    except (OSError, ValueError):
        return ""


def make_mark(folder: Path) -> str:
    """Make an ownership mark for an index in `folder`, and return it.

    The mark is stored in the user's cache or, if that is impossible, in this process.
    """
    folder = folder.absolute()
    mark = secrets.token_hex(16)
    file, why = _mark_file(folder)
    if not why:
        try:
            for one in (file.parents[2], file.parents[1], file.parent):
                make_private_folder(one)
            fresh = file.with_name(f"{file.name}-{mark}")
            try:
                write_new_file(fresh, mark, 0o600)
                replace_file(fresh, file)
            finally:
                fresh.unlink(missing_ok=True)
        except OSError as error:
            why = f"{shown(str(error.filename or file))}: {error.strerror}"
        else:
            _PROCESS_MARKS.pop(folder, None)
            return mark
    _PROCESS_MARKS[folder] = mark
    _LOGGER.warning(
        "could not write the ownership mark of the index in %s (the proof that this user made it) to the cache %s, "
        "so each process rebuilds the index: %s; correct this, or set RIPWRAP_CACHE_DIR to another directory",
        shown(str(folder)),
        shown(str(cache.folder())),
        why,
    )
    return mark


def write_new_file(path: Path, text: str, mode: int) -> None:
    """Write a text to a new file; raise `FileExistsError` if the path exists, even as a symbolic link."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    with opened(lambda: os.open(path, flags, mode)) as descriptor, open(descriptor, "w", closefd=False) as file:
        file.write(text)


def make_private_folder(folder: Path) -> None:
    """Make a directory and its missing parents, with mode 0700."""
    missing: list[Path] = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for one in reversed(missing):
        one.mkdir(mode=0o700, exist_ok=True)
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "it is not a directory", str(folder))
