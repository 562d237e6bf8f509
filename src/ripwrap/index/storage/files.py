"""Names of the files of an index, and checks that protect the files of others: did this user make the index?

A cloned repository may contain a `.ripwrap` directory with a hostile or wrong database (SQLite's advice for such files:
https://sqlite.org/security.html). So the process that creates an index writes a random mark into the index and into the
user's cache. No other user can guess the mark. An index inside a project is used only if its mark is in the cache;
otherwise it is rebuilt.
"""

import errno
import hashlib
import logging
import os
import re
import secrets
import sqlite3
import stat
from collections.abc import Container
from contextlib import suppress
from pathlib import Path

from ripwrap._system.concurrency import opened, replace_file
from ripwrap._text import shown
from ripwrap.binary import cache
from ripwrap.errors import RipwrapError
from ripwrap.index.storage.database import empty_database, is_index_header
from ripwrap.index.storage.engine import files_in, location_error, remove_folder
from ripwrap.index.storage.postings import POSTINGS_NAME

_LOGGER = logging.getLogger("ripwrap")

_PROCESS_MARKS: dict[Path, str] = {}
"""Ownership marks that the user's cache cannot store, by the directory of the index; this process keeps them in memory.
"""


def _mark_file(folder: Path) -> tuple[Path, str]:
    """Return the file in the user's cache for the ownership mark of an index, and why not to use it, or ''."""
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


FOLDER = ".ripwrap"
"""Name of the directory of an index within a project; all files in it belong to the index."""

NAME = "index.sqlite3"
LOCK_NAME = "index.lock"
_IGNORE = ".gitignore"
_FILES = (NAME, f"{NAME}-journal", f"{NAME}-wal", f"{NAME}-shm")
_VECTORS = re.compile(r"vectors-(\d+)-[0-9a-f]{16}\.usearch(\.\w+)?")
"""Pattern of the names of files in which usearch stores graphs, to search in vectors. The number is the id of the view.
A missing graph is rebuilt from the tables when it is needed.
"""
_PROCESS_ID = re.compile(rb"\d+\s")  # content of a lock file on systems without file locks
_BEGINNINGS = {
    f"{NAME}-journal": re.compile(rb"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7|\0{8}"),
    f"{NAME}-wal": re.compile(rb"\x37\x7f\x06[\x82\x83]"),
    f"{NAME}-shm": re.compile(rb"\x18\xe2\x2d\0|\0\x2d\xe2\x18|\0{4}"),
}
"""Patterns of the first bytes of the files that SQLite writes beside a database, and that a killed process leaves."""
_GRAPH = re.compile(rb".{4}(?!\0\0)..\0\0", re.DOTALL)  # usearch: number of vectors, size of a vector in bytes
_OWN = "|".join([*map(re.escape, (*_FILES, LOCK_NAME)), _VECTORS.pattern, rf"{POSTINGS_NAME.pattern}[\\/].*"])


class IndexFiles:
    """The files of one index."""

    def __init__(self, folder: Path, *, in_project: bool, named: bool) -> None:
        self.folder = folder
        self.database: Path = folder / NAME
        self.lock: Path = folder / LOCK_NAME
        self.in_project = in_project
        self._named = named

    def size(self) -> int:
        """Return the size on disk, in bytes, of the files that `remove()` removes."""
        sizes = 0
        for name in (*_FILES, *self._vector_files()):
            with suppress(OSError):
                sizes += (self.folder / name).stat().st_size
        for folder in self._postings():
            for file in files_in(folder):
                with suppress(OSError):
                    sizes += file.stat(follow_symlinks=False).st_size
        return sizes

    def remove_vectors(self, keep: Container[int] = ()) -> None:
        """Remove the files with search graphs of vectors. A graph is rebuilt from the database when it is needed."""
        for name in self._vector_files():
            found = _VECTORS.fullmatch(name)
            if found is not None and int(found[1]) not in keep:
                with suppress(OSError):
                    (self.folder / name).unlink()

    def check(self) -> None:
        """Check that no path of the index is a link, or a file of another program."""
        files = [self.folder / name for name in (LOCK_NAME, *_FILES)]
        folders = [self.folder, *self._postings()]
        if self.in_project:
            files = [self.folder, self.folder / _IGNORE, *files]
        files += [self.folder / name for name in self._vector_files()] + folders[1:]
        for file in files:
            try:
                mode = file.lstat().st_mode
            except OSError:
                continue
            if stat.S_ISLNK(mode):
                raise location_error(
                    f"{shown(str(file))} is a symbolic link, which an index does not follow; remove it, or "
                )
            if file not in folders and not stat.S_ISREG(mode):
                raise location_error(f"{shown(str(file))} is not a regular file; remove it, or ")

        if self._named or (self.in_project and not known_mark(self.folder)):
            self._check_content()

    def _check_content(self) -> None:
        header = _start_of(self.database)
        lost = not any(header) and self._postings()  # after a power failure, a file may have NUL bytes in place of text
        if header and not lost and not is_index_header(header):
            raise foreign_file_error(self.database)
        beginnings = {LOCK_NAME: _PROCESS_ID}
        if is_blank(self.database):  # without a database, the other files may belong to another program
            beginnings |= _BEGINNINGS | dict.fromkeys(self._vector_files(), _GRAPH)
        for name, beginning in beginnings.items():
            if (start := _start_of(self.folder / name)) and not beginning.match(start):
                raise foreign_file_error(self.folder / name)

    def _vector_files(self) -> list[str]:
        return [file.name for file in files_in(self.folder) if _VECTORS.fullmatch(file.name)]

    def _postings(self) -> list[Path]:
        return [self.folder / one.name for one in files_in(self.folder) if POSTINGS_NAME.fullmatch(one.name)]

    def make_folder(self) -> None:
        """Make the directory of the index, if it is missing."""
        self.check()
        try:
            make_private_folder(self.folder)
            if self.in_project:
                with suppress(FileExistsError):
                    write_new_file(self.folder / _IGNORE, "*\n", 0o666)
        except OSError as error:
            if self.database.exists():
                return
            raise location_error(
                f"could not make the directory {shown(str(self.folder))} for an index: {error.strerror}; "
            ) from error

    def remove(self, why: str) -> None:
        """Remove the database, the graphs of vectors, and the directories of full-text search and trigrams.

        Windows does not remove a file that another process has open. The database is then emptied instead.
        """
        try:
            self.remove_vectors()
            for name in _FILES:  # the database first: the other files are useless without it
                (self.folder / name).unlink(missing_ok=True)
            for folder in self._postings():
                with suppress(OSError):  # another process writes, or (on Windows) reads; a later refresh removes it
                    remove_folder(folder)
        except PermissionError as error:
            try:
                empty_database(self.database)
            except sqlite3.Error:
                raise self._removal_error(why, error) from error
        except OSError as error:
            raise self._removal_error(why, error) from error

    def _removal_error(self, why: str, error: OSError) -> RipwrapError:
        return location_error(
            f"the index {shown(str(self.database))} must be rebuilt, because {why}, but the file cannot be removed: "
            f"{error.strerror}; end the programs that use the file and remove it, or "
        )


def vectors_file(folder: Path, view: int, model: str) -> Path:
    """Return the path of the search graph for the vectors that a model made for a view; the file may be missing."""
    digest = hashlib.blake2b(model.encode(), digest_size=8).hexdigest()
    return folder / f"vectors-{view}-{digest}.usearch"


def own_files(folder: Path, root: Path) -> re.Pattern[str] | None:
    """Return a regular expression that matches the relative paths of an index's own files."""
    if not folder.is_relative_to(root):
        return None
    if folder == root:
        return re.compile(_OWN)
    below = re.escape(os.path.join(os.path.relpath(folder, root), ""))
    return re.compile(below + (".*" if folder.name == FOLDER else f"({_OWN})"), re.DOTALL)


def foreign_file_error(path: Path) -> RipwrapError:
    """Return the error for a file that does not belong to an index, or is damaged."""
    return location_error(
        f"{shown(str(path))} is not a file of a ripwrap index, or is damaged. It is left untouched; remove it, or "
    )


def is_blank(path: Path) -> bool:
    """Return True if a file is empty or does not exist."""
    try:
        return not path.stat().st_size
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _start_of(path: Path) -> bytes:
    """Return the first hundred bytes of a file; empty if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(100)
    except OSError:
        return b""
