"""The file that an index is: how it is opened and closed, and what happens when it is damaged.

One SQLite database in WAL mode. A refresh is one transaction, so that whoever reads has the state before or after it,
also when the process that writes is killed. A connection is used by one thread at a time, which is a worker thread
where a loop waits. What is in the file can be made again: if it is damaged, or of another version, that is logged, and
it is made anew. What is not ours is never touched.
"""

import hashlib
import logging
import os
import re
import stat
import threading
import time
from collections.abc import Callable, Container, Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ripwrap._fts import wanting
from ripwrap._text import shown
from ripwrap.errors import RipwrapError
from ripwrap.index.database import (
    BUSY,
    CANNOT_OPEN,
    FULL,
    LOCKED,
    READONLY,
    check,
    check_error,
    code_of,
    connect,
    is_damage,
    is_ours,
    writing,
)
from ripwrap.index.marks import known_mark, made, new_mark, write_new
from ripwrap.index.schema import MARK, SCHEMA, clear, found_versions, is_empty, make, mark_of, shape, shape_of

if TYPE_CHECKING:
    import sqlite3
    from sqlite3 import Connection

FOLDER = ".ripwrap"
"""Where a project has its index, if it is to have it; all in there is ours."""

NAME = "index.sqlite3"
_LOCK = "index.lock"
_IGNORE = ".gitignore"
_FILES = (NAME, f"{NAME}-journal", f"{NAME}-wal", f"{NAME}-shm")
_VECTORS = re.compile(r"vectors-(\d+)-[0-9a-f]{16}\.usearch(\.\w+)?")
"""What is made of the tables, for the view of that number, and made again if it is needed."""
_PROCESS = re.compile(rb"\d+\s")  # What a lock's file has where the system has no locks.
_BEGINNINGS = {
    f"{NAME}-journal": re.compile(rb"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7|\0{8}"),
    f"{NAME}-wal": re.compile(rb"\x37\x7f\x06[\x82\x83]"),
    f"{NAME}-shm": re.compile(rb"\x18\xe2\x2d\0|\0\x2d\xe2\x18|\0{4}"),
}
"""What SQLite's files begin with that a killed process, or who removed the database alone, has left behind."""
_GRAPH = re.compile(rb".{4}(?!\0\0)..\0\0", re.DOTALL)  # usearch's: how many vectors, of how many bytes.
_OWN = "|".join([*map(re.escape, (*_FILES, _LOCK)), _VECTORS.pattern])

_LOCKED = 30.0  # Seconds to wait for another process to open or throw away the file.

_LOGGER = logging.getLogger("ripwrap")

T = TypeVar("T")


class _StaleError(Exception):
    """The file is of another version, and is to be made anew; the message says why."""


class Store:
    """The file of an index, opened when it is first used, for any number of threads.

    Attributes:
        folder: Where it is.
        path: The file.
        versions: What content is made by.
    """

    def __init__(
        self, folder: Path, versions: Mapping[str, str], *, ignored: bool = False, named: bool = False
    ) -> None:
        """Know where it is; nothing is opened or made.

        Args:
            folder: Where it is, or will be.
            versions: What content is made by, such as the chunker; if it differs, content is made anew.
            ignored: Whether the folder is in the project: git and rg shall ignore it, and what is in there is used only
                if this user made it there, because a repository may have brought it along.
            named: Whether the folder was named by somebody who may have other files in there.
        """
        self.folder = folder
        self.path: Path = folder / NAME
        self.versions: dict[str, str] = {"schema": str(SCHEMA), **versions}
        self._ignored = ignored
        self._named = named
        self._turn = threading.Lock()
        self._database: Connection | None = None
        self._identity: tuple[int, int, int] | None = None
        self._checked = False
        self._read_only = False
        self._told = False

    def run(self, call: "Callable[[Connection], T]") -> T:
        """Call it with the database, one call at a time; a damaged one is thrown away first, and the call made again.

        Raises:
            RipwrapError: The database cannot be opened or written to, there is no space, or it is not ours.
            TimeoutError: Nobody waits for it any more.
        """
        return self._tried(lambda: call(self._opened()))

    def tend(self, call: "Callable[[Connection], T]") -> T | None:
        """As `run()`, but content that was made by other versions is left alone; `None`, and no file, if there is none.

        Raises:
            RipwrapError: As `run()`.
            TimeoutError: Nobody waits for it any more.
        """

        def tended() -> T | None:
            self._check_files()
            if _is_blank(self.path):
                return None
            database = self._connected()
            return call(database) if self._is_made(database, found_versions(database)) else None

        return self._tried(tended)

    def _tried(self, call: Callable[[], T]) -> T:
        try:
            import sqlite3
        except ModuleNotFoundError as error:  # a Python that was built without it
            raise RipwrapError(wanting(error)) from error

        with self._mine():
            for _ in range(3):
                try:
                    return call()
                except sqlite3.Error as error:
                    check_error(error)
                    if self._read_only or not is_damage(error):
                        self._close()
                        raise self._explained(error) from error
                    self._discard(f"it is damaged ({error})")
                except _StaleError as error:
                    if self._read_only:
                        self._close()
                        raise RipwrapError(
                            f"the index {shown(str(self.path))} is to be made anew, because {error}, but it cannot be "
                            "written to; pass another location="
                        ) from error
                    self._discard(str(error))
        raise RipwrapError(f"{shown(str(self.path))} is damaged again whenever it is made; is the disk sound?")

    def look(self, call: "Callable[[Connection], T]") -> T | None:
        """Call it with the database as it is, on a connection of its own; `None` if there is none to be trusted.

        Nothing is made or mended, and nobody is waited for: it can be called while a refresh is running.

        Raises:
            sqlite3.Error: What is wrong with it.
            RipwrapError: It, or a file beside it, is a link, or it is not ours.
            TimeoutError: Nobody waits for it any more.
        """
        import sqlite3

        if not self.path.exists():
            return None
        self._check_files()
        database = self._connection(make=False)
        try:
            versions = found_versions(database)
            if versions is None and not is_empty(database):
                raise _not_ours(self.path)
            if versions is None or (self._ignored and self.doubt(database, versions)):
                return None
            return call(database)
        except sqlite3.Error as error:
            check_error(error)
            raise
        finally:
            database.close()

    def throw_away(self) -> None:
        """Remove the file with all that is in it; whoever uses it next makes it anew.

        Raises:
            RipwrapError: It cannot be removed, or is not ours.
            TimeoutError: Nobody waits for it any more.
        """
        with self._mine():
            self._close()
            with self._locked():
                self._remove("that was asked for")

    def size(self) -> int:
        """Bytes on disk."""
        sizes = 0
        for name in (NAME, f"{NAME}-wal"):
            with suppress(OSError):
                sizes += (self.folder / name).stat().st_size
        return sizes

    def remove_vectors(self, but: Container[int] = ()) -> None:
        """Remove what was made of the tables; it is made again if it is needed.

        Args:
            but: The views whose files are kept.
        """
        for name in self._made_of_tables():
            found = _VECTORS.fullmatch(name)
            if found is not None and int(found[1]) not in but:
                with suppress(OSError):
                    (self.folder / name).unlink()

    def close(self) -> None:
        """Close it; it is opened again if it is used again."""
        with self._turn:
            self._close()

    def __del__(self) -> None:
        self._close()

    @contextmanager
    def _mine(self) -> Generator[None]:
        while not self._turn.acquire(timeout=0.05):
            check()
        try:
            check()
            yield
        finally:
            self._turn.release()

    def _seen(self) -> tuple[int, int, int] | None:
        """What tells the file from one that another process put in its place, and this process from its parent."""
        try:
            state = os.stat(self.path)
        except OSError:
            return None
        return os.getpid(), state.st_dev, state.st_ino

    def _opened(self) -> "Connection":
        database = self._connected()
        self._prepare(database)
        return database

    def _connected(self) -> "Connection":
        if self._database is not None and self._identity != self._seen():
            self._close()
        if self._database is None:
            with self._locked():
                self._identity = self._seen()
                self._database = self._connection(make=True)
                self._identity = self._seen()
        return self._database

    def _connection(self, *, make: bool) -> "Connection":
        """A connection; one that only reads where nothing can be written, without a look at others."""
        import sqlite3

        uri = self.path.absolute().as_uri()
        for mode in ("rwc" if make else "rw", "ro", "ro&immutable=1"):
            if make:
                self._read_only = mode != "rwc"
            try:
                database = connect(f"{uri}?mode={mode}", log=mode == "rwc")
            except sqlite3.Error as error:
                if not (code_of(error) in (READONLY, CANNOT_OPEN) and mode != "ro&immutable=1" and self.path.exists()):
                    raise
            else:
                if mode == "ro&immutable=1" and not self._told:
                    self._told = True
                    _LOGGER.warning(
                        "the index in %s can only be read, and without what others write meanwhile: it may be old",
                        shown(str(self.folder)),
                    )
                return database
        raise AssertionError("the last mode returns or raises")

    def _prepare(self, database: "Connection") -> None:
        """Make what is missing; raises if the file is to be made anew."""
        versions = found_versions(database)
        if self._checked and versions == self.versions:
            return
        self._is_made(database, versions)
        if versions != self.versions:
            if self._read_only:
                raise _StaleError("it was made by another chunker or tokenizer")
            with writing(database):
                self._fill(database)
        self._checked = True

    def _is_made(self, database: "Connection", versions: dict[str, str] | None) -> bool:
        """Whether it has tables; raises if they are not ours, or to be made anew."""
        if versions is None:
            if not is_empty(database):
                raise _not_ours(self.path)
            return False
        if doubt := self.doubt(database, versions):
            raise _StaleError(doubt)
        return True

    def _fill(self, database: "Connection") -> None:
        """Make the tables, or clear them of what was made by other versions, unless another process just did."""
        versions = found_versions(database)
        if versions is None:
            make(database)
            self.remove_vectors()
            mark = new_mark(self.folder) if self._ignored else ""
        elif doubt := self.doubt(database, versions):
            raise _StaleError(doubt)
        elif versions == self.versions:
            return
        else:
            _LOGGER.info("the index in %s is of another chunker or tokenizer; made anew", self.folder)
            clear(database)
            mark = mark_of(database)
        database.execute("DELETE FROM meta")
        database.executemany("INSERT INTO meta VALUES (?, ?)", self.versions.items())
        if mark:
            database.execute("INSERT INTO meta VALUES (?, ?)", (MARK, mark))

    def doubt(self, database: "Connection", versions: dict[str, str] | None) -> str:
        """Why what is in the file is not to be used, or empty; versions of content are another question."""
        found = (versions or {}).get("schema")
        if found is not None and found != str(SCHEMA):
            return f"its tables are of version {found}, and {SCHEMA} is ours"
        if shape_of(database) != shape():
            return "it has other tables than ours, or triggers or views"
        if self._ignored:
            mark = mark_of(database)  # before the other one, which is written first
            if not mark or mark != known_mark(self.folder):
                return "nothing tells that this user made it there"
        return ""

    @contextmanager
    def _locked(self) -> Generator[None]:
        """While no other process opens the file or throws it away."""
        self._make_folder()
        from filelock import FileLock, Timeout  # only where an index is used

        lock = FileLock(self.folder / _LOCK)
        deadline = time.monotonic() + _LOCKED
        while True:
            check()
            try:
                lock.acquire(timeout=0.05)
            except Timeout as error:
                if time.monotonic() > deadline:
                    said = f"{lock.lock_file} is held by another process for over {_LOCKED:.0f} seconds"
                    raise RipwrapError(said) from error
            except OSError:  # a folder that cannot be written to: nobody throws anything away in there
                yield
                return
            else:
                break
        try:
            yield
        finally:
            lock.release()

    def _check_files(self) -> None:
        """Raise if what is in the place of our files is not ours to write or remove: a link, or somebody's file."""
        files = [self.folder / name for name in (_LOCK, *_FILES)]
        if self._ignored:
            files = [self.folder, self.folder / _IGNORE, *files]
        files += [self.folder / name for name in self._made_of_tables()]
        for file in files:
            try:
                mode = file.lstat().st_mode
            except OSError:
                continue
            if stat.S_ISLNK(mode):
                raise RipwrapError(
                    f"{shown(str(file))} is a symbolic link, and an index is neither kept in nor read from where one "
                    "leads; remove it, or pass another location="
                )
            if file != self.folder and not stat.S_ISREG(mode):
                raise RipwrapError(
                    f"{shown(str(file))}, a file of the index, is no regular file; remove it, or pass another location="
                )

        if self._named or (self._ignored and not known_mark(self.folder)):
            self._check_content()

    def _check_content(self) -> None:
        if (header := _start_of(self.path)) and not is_ours(header):
            raise _not_ours(self.path)
        ours = {_LOCK: _PROCESS}
        if _is_blank(self.path):  # or what is beside it belongs to it
            ours |= _BEGINNINGS | dict.fromkeys(self._made_of_tables(), _GRAPH)
        for name, beginning in ours.items():
            if (said := _start_of(self.folder / name)) and not beginning.match(said):
                raise _not_ours(self.folder / name)

    def _made_of_tables(self) -> list[str]:
        with suppress(OSError):  # no such folder
            return [name for name in os.listdir(self.folder) if _VECTORS.fullmatch(name)]
        return []

    def _make_folder(self) -> None:
        self._check_files()
        try:
            made(self.folder)
            if self._ignored:
                with suppress(FileExistsError):
                    write_new(self.folder / _IGNORE, "*\n", 0o666)
        except OSError as error:
            if self.path.exists():
                return
            raise RipwrapError(
                f"an index cannot be kept in {shown(str(self.folder))}: {error.strerror}; pass another location="
            ) from error

    def _discard(self, why: str) -> None:
        """Throw the file away, unless another process has put a new one in its place."""
        seen = self._identity
        self._close()
        with self._locked():
            if seen is not None and seen != self._seen():
                return
            _LOGGER.warning("the index in %s is made anew: %s", shown(str(self.folder)), why, extra={"mended": True})
            self._remove(why)

    def _remove(self, why: str) -> None:
        try:
            self.remove_vectors()
            for name in _FILES:  # the database first: without it, the others are nothing
                (self.folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise RipwrapError(
                f"{shown(str(self.path))} is to be made anew, because {why}, but cannot be removed: "
                f"{error.strerror}; remove it, or pass another location="
            ) from error

    def _close(self) -> None:
        if (database := getattr(self, "_database", None)) is not None:
            self._database = None
            self._checked = False
            database.close()

    def _explained(self, error: "sqlite3.Error") -> RipwrapError:
        if "no such module" in str(error):
            return RipwrapError(wanting(error))
        said = {
            BUSY: "another process uses it all the time; try again",
            LOCKED: "another process uses it all the time; try again",
            FULL: "there is no space left; make some, or pass another location=",
            READONLY: "it cannot be written to; pass another location=, or refresh=False for what is in there",
            CANNOT_OPEN: "it cannot be opened; is its folder one to write to? Pass another location= if not",
        }.get(code_of(error), "pass another location=, or remove it: all of it can be made again")
        return RipwrapError(f"the index {shown(str(self.path))}: {error}: {said}")


def vectors_file(folder: Path, view: int, model: str) -> Path:
    """What may keep what the vectors of a view, by a model, are searched by."""
    named = hashlib.blake2b(model.encode(), digest_size=8).hexdigest()
    return folder / f"vectors-{view}-{named}.usearch"


def own_files(folder: Path, root: Path) -> re.Pattern[str] | None:
    """What an index's own files match whole, by their paths relative to a root.

    Args:
        folder: The folder that has the index, and maybe others' files, too, unless it is called `.ripwrap`.
        root: The root.

    Returns:
        `None` if none of them is below the root.
    """
    if not folder.is_relative_to(root):
        return None
    if folder == root:
        return re.compile(_OWN)
    below = re.escape(os.path.join(os.path.relpath(folder, root), ""))
    return re.compile(below + (".*" if folder.name == FOLDER else f"({_OWN})"), re.DOTALL)


def _not_ours(path: Path) -> RipwrapError:
    return RipwrapError(
        f"{shown(str(path))} is no file of an index, or its beginning is damaged, and it is left as it is, because it "
        "may be yours or another program's; remove it, or pass another location="
    )


def _is_blank(path: Path) -> bool:
    """Whether there is no such file, or nothing in it."""
    try:
        return not path.stat().st_size
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _start_of(path: Path) -> bytes:
    """The first hundred bytes of a file; of one that cannot be read none."""
    try:
        with path.open("rb") as file:
            return file.read(100)
    except OSError:
        return b""
