"""The file that an index is: its tables, its transactions, and what happens when it is damaged.

One SQLite database in WAL mode. A refresh is one transaction, so that whoever reads has the state before or after it,
also when the process that writes is killed. A connection is used by one thread at a time, which is a worker thread
where a loop waits. What is in the file can be made again: if it is damaged, or of another version, that is logged, and
it is made anew. What is not ours is never touched.
"""

import errno
import functools
import hashlib
import logging
import os
import secrets
import stat
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ripwrap._fts import TABLE, wanting
from ripwrap._text import shown
from ripwrap.binary import cache
from ripwrap.binary.probe import CANCELLED
from ripwrap.errors import RipwrapError

if TYPE_CHECKING:
    import sqlite3
    from sqlite3 import Connection

SCHEMA = 2
"""The version of the tables."""

NAME = "index.sqlite3"
_LOCK = "index.lock"
_IGNORE = ".gitignore"
_FILES = (NAME, f"{NAME}-wal", f"{NAME}-shm")
_VECTORS = "vectors-"
_MARK = "mark"

_OURS = 0x72697077
"""In the database's header: `ripw`."""

_TABLES = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    # A view is a folder, on a branch, with the options that choose its files. `generation` is another number after
    # each refresh that wrote something; `changed` is when that was, in nanoseconds.
    """CREATE TABLE view (
        id INTEGER PRIMARY KEY, root, options TEXT NOT NULL, name, generation INTEGER NOT NULL,
        changed INTEGER NOT NULL, UNIQUE (root, options, name)
    )""",
    # The content of a file, under a name: what two branches have in common is there once.
    "CREATE TABLE blob (id INTEGER PRIMARY KEY, path, digest BLOB NOT NULL, UNIQUE (path, digest))",
    # `start` is the offset of its first character, `line` its line, `symbol` the definition that it is or is a part of,
    # if that is known. Texts and paths that are not UTF-8 are bytes.
    """CREATE TABLE chunk (
        id INTEGER PRIMARY KEY, blob INTEGER NOT NULL, start INTEGER NOT NULL, line INTEGER NOT NULL,
        digest BLOB NOT NULL, text NOT NULL, symbol
    )""",
    "CREATE INDEX chunk_blob ON chunk (blob, start)",
    # `blob` is NULL of a file that is left out; `note` says why, or that not all of it is in.
    """CREATE TABLE tree (
        view INTEGER NOT NULL, path, blob INTEGER, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
        ctime_ns INTEGER NOT NULL, note TEXT, PRIMARY KEY (view, path)
    ) WITHOUT ROWID""",
    "CREATE INDEX tree_blob ON tree (blob)",
    # An embedding of a chunk's content, by which model: known wherever that content turns up again.
    "CREATE TABLE vec (digest BLOB NOT NULL, model TEXT NOT NULL, v BLOB NOT NULL, PRIMARY KEY (model, digest))",
    # How many numbers a model's vectors have; `generation` is another number whenever there are others.
    "CREATE TABLE model (name TEXT PRIMARY KEY, dimension INTEGER NOT NULL, generation INTEGER NOT NULL) WITHOUT ROWID",
    TABLE,
    "INSERT INTO fts(fts, rank) VALUES ('hashsize', 33554432)",  # larger pieces to be merged: half the time
)
_CONTENT = ("view", "blob", "chunk", "tree")

_TRUST = "PRAGMA trusted_schema = OFF"  # A repository may have brought it along.
_CACHE = "PRAGMA cache_size = -32768"  # KiB
_LOG = "PRAGMA journal_size_limit = 4194304"  # Bytes of the log that are kept for the next time.
_BUSY = 5_000  # Milliseconds that a statement may wait for another process's, which is short.
_PATIENCE = 300.0  # Seconds to wait for another writer.
_LOCKED = 30.0  # Seconds to wait for another process to open or throw away the file.

_LOGGER = logging.getLogger("ripwrap")

_MARKS: dict[Path, str] = {}
"""Marks of this process alone, by the index's folder, where none can be kept in the user's cache."""

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

    def __init__(self, folder: Path, versions: Mapping[str, str], *, ignored: bool = False) -> None:
        """Know where it is; nothing is opened or made.

        Args:
            folder: Where it is, or will be.
            versions: What content is made by, such as the chunker; if it differs, content is made anew.
            ignored: Whether the folder is in the project: git and rg shall ignore it, and what is in there is used only
                if this user made it there, because a repository may have brought it along.
        """
        self.folder = folder
        self.path: Path = folder / NAME
        self.versions: dict[str, str] = {"schema": str(SCHEMA), **versions}
        self._ignored = ignored
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
        try:
            import sqlite3
        except ModuleNotFoundError as error:  # a Python that was built without it
            raise RipwrapError(wanting(error)) from error

        with self._mine():
            for _ in range(3):
                try:
                    return call(self._opened())
                except sqlite3.Error as error:
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
            RipwrapError: It, or a file beside it, is a link.
        """
        if not self.path.exists():
            return None
        self._check_links()
        database = self._connection(make=False)
        try:
            if self._ignored and self._doubt(database, _versions(database)):
                return None
            return call(database)
        finally:
            database.close()

    def size(self) -> int:
        """Bytes on disk."""
        sizes = 0
        for name in (NAME, f"{NAME}-wal"):
            with suppress(OSError):
                sizes += (self.folder / name).stat().st_size
        return sizes

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
        if self._database is not None and self._identity != self._seen():
            self._close()
        if self._database is None:
            with self._locked():
                self._identity = self._seen()
                self._database = self._connection(make=True)
                self._identity = self._seen()
        self._prepare(self._database)
        return self._database

    def _connection(self, *, make: bool) -> "Connection":
        """A connection; one that only reads where nothing can be written, without a look at others."""
        import sqlite3

        uri = self.path.absolute().as_uri()
        for mode in ("rwc" if make else "rw", "ro", "ro&immutable=1"):
            if make:
                self._read_only = mode != "rwc"
            try:
                database = _connect(f"{uri}?mode={mode}", log=mode == "rwc")
            except sqlite3.Error as error:
                if not (_code(error) in _READ_ONLY and mode != "ro&immutable=1" and self.path.exists()):
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
        versions = _versions(database)
        if self._checked and versions == self.versions:
            return
        if versions is None:
            if database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                raise _not_ours(self.path)
        elif doubt := self._doubt(database, versions):
            raise _StaleError(doubt)
        if versions != self.versions:
            with writing(database):
                self._fill(database)
        self._checked = True

    def _fill(self, database: "Connection") -> None:
        """Make the tables, or clear them of what was made by other versions, unless another process just did."""
        versions = _versions(database)
        if versions is None:
            _make(database)
            self._remove_vectors()
            mark = _new_mark(self.folder) if self._ignored else ""
        elif doubt := self._doubt(database, versions):
            raise _StaleError(doubt)
        elif versions == self.versions:
            return
        else:
            _LOGGER.info("the index in %s is of another chunker or tokenizer; made anew", self.folder)
            _clear(database)
            mark = _mark_of(database)
        database.execute("DELETE FROM meta")
        database.executemany("INSERT INTO meta VALUES (?, ?)", self.versions.items())
        if mark:
            database.execute("INSERT INTO meta VALUES (?, ?)", (_MARK, mark))

    def _doubt(self, database: "Connection", versions: dict[str, str] | None) -> str:
        """Why what is in the file is not to be used, or empty; versions of content are another question."""
        found = (versions or {}).get("schema")
        if found is not None and found != str(SCHEMA):
            return f"its tables are of version {found}, and {SCHEMA} is ours"
        if _shape_of(database) != _shape():
            return "it has other tables than ours, or triggers or views"
        if self._ignored:
            mark = _mark_of(database)  # before the other one, which is written first
            if not mark or mark != _known_mark(self.folder):
                return "nothing tells that this user made it there"
        return ""

    def _remove_vectors(self) -> None:
        """Remove what was made of other tables; it is made again if it is needed."""
        for file in self.folder.glob(f"{_VECTORS}*"):
            with suppress(OSError):
                file.unlink()

    @contextmanager
    def _locked(self) -> Generator[None]:
        """While no other process opens the file or throws it away."""
        self._make_folder()
        from filelock import FileLock, Timeout  # only where an index is used

        lock = FileLock(self.folder / _LOCK)
        try:
            lock.acquire(timeout=_LOCKED)
        except Timeout as error:
            raise RipwrapError(f"{lock.lock_file} is held by another process for over {_LOCKED:.0f} seconds") from error
        except OSError:  # a folder that cannot be written to: nobody throws anything away in there
            yield
            return
        try:
            yield
        finally:
            lock.release()

    def _check_links(self) -> None:
        """Raise if what a repository brought along leads elsewhere: what is there is not ours to write or remove."""
        files = [self.folder / name for name in (_LOCK, *_FILES)]
        if self._ignored:
            files = [self.folder, self.folder / _IGNORE, *files]
        with suppress(OSError):  # no such folder
            files += [self.folder / name for name in os.listdir(self.folder) if name.startswith(_VECTORS)]
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

    def _make_folder(self) -> None:
        self._check_links()
        try:
            _made(self.folder)
            if self._ignored:
                with suppress(FileExistsError):
                    _write_new(self.folder / _IGNORE, "*\n", 0o666)
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
            try:
                self._remove_vectors()
                for name in _FILES:
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
            _BUSY_CODE: "another process uses it all the time; try again",
            _LOCKED_CODE: "another process uses it all the time; try again",
            _FULL: "there is no space left; make some, or pass another location=",
            _READONLY: "it cannot be written to; pass another location=, or refresh=False for what is in there",
            _CANNOT_OPEN: "it cannot be opened; is its folder one to write to? Pass another location= if not",
        }.get(_code(error), "pass another location=, or remove it: all of it can be made again")
        return RipwrapError(f"the index {shown(str(self.path))}: {error}: {said}")


_BUSY_CODE, _LOCKED_CODE, _READONLY, _IO, _CORRUPT, _FULL, _CANNOT_OPEN, _NOT_A_DATABASE = 5, 6, 8, 10, 11, 13, 14, 26
_READ_ONLY = {_READONLY, _CANNOT_OPEN}


def _connect(uri: str, *, log: bool) -> "Connection":
    """A connection that has been read from; if it may write, with a log."""
    import sqlite3

    database = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=_BUSY / 1000)
    try:
        if log:
            database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute(_TRUST)
        database.execute(_CACHE)
        database.execute(_LOG)
        database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        database.close()
        raise
    return database


def _code(error: "sqlite3.Error") -> int:
    return getattr(error, "sqlite_errorcode", 1) & 0xFF


def is_damage(error: "sqlite3.Error") -> bool:
    """Whether an error says that the file is not sound, or that tables are missing in it."""
    import sqlite3

    if _code(error) in (_CORRUPT, _NOT_A_DATABASE):
        return True
    return isinstance(error, sqlite3.OperationalError) and str(error).startswith(("no such table", "no such column"))


def _not_ours(path: Path) -> RipwrapError:
    return RipwrapError(f"{shown(str(path))} is a database of another program; pass another location=")


def check() -> None:
    """Raise if nobody waits any more."""
    if CANCELLED.get().is_set():
        raise TimeoutError("nobody waits for this index any more")


@contextmanager
def writing(database: "Connection") -> Generator[None]:
    """One transaction, which is the only one that writes; what raises in it leaves the old state.

    Raises:
        sqlite3.OperationalError: Another process has been writing for five minutes.
        TimeoutError: Nobody waits any more.
    """
    _begin(database)
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:  # some errors end it
            database.execute("ROLLBACK")
        raise


@contextmanager
def reading(database: "Connection") -> Generator[None]:
    """What is read in it is of one state."""
    database.execute("BEGIN")
    try:
        yield
    finally:
        if database.in_transaction:
            database.execute("ROLLBACK")


def checkpoint(database: "Connection") -> None:
    """Empty the log of what was written, unless somebody reads it now; the last one who closes does it, too."""
    database.execute("PRAGMA busy_timeout = 50")
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.execute(f"PRAGMA busy_timeout = {_BUSY}")


def _begin(database: "Connection") -> None:
    import sqlite3

    deadline = time.monotonic() + _PATIENCE
    database.execute("PRAGMA busy_timeout = 50")
    try:
        while True:
            check()
            try:
                database.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if _code(error) != _BUSY_CODE or time.monotonic() > deadline:
                    raise
            else:
                return
    finally:
        database.execute(f"PRAGMA busy_timeout = {_BUSY}")


def _versions(database: "Connection") -> dict[str, str] | None:
    """What content was made by; `None` in a database that is not ours, or is new."""
    if database.execute("PRAGMA application_id").fetchone()[0] != _OURS:
        return None
    if not _has_meta(database):
        return {}
    return dict(database.execute("SELECT key, value FROM meta WHERE key <> ?", (_MARK,)).fetchall())


def _has_meta(database: "Connection") -> bool:
    """Whether its `meta` is the table that it is in ours, which is all that is known before it is read."""
    found = database.execute("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = 'meta'").fetchone()
    return found is not None and found[0] == _TABLES[0]


def _mark_of(database: "Connection") -> str:
    """What says who made it; empty where nothing does."""
    found = database.execute("SELECT value FROM meta WHERE key = ?", (_MARK,)).fetchone()
    return "" if found is None else str(found[0])


def _shape_of(database: "Connection") -> "frozenset[tuple[object, ...]]":
    """All that is in a database: its tables, those that are a part of FTS5's, indexes, triggers and views."""
    rows = database.execute("SELECT type, name, tbl_name, sql FROM sqlite_master LIMIT 100")
    return frozenset(rows.fetchall())


@functools.cache
def _shape() -> "frozenset[tuple[object, ...]]":
    """All that is in ours."""
    import sqlite3

    database = sqlite3.connect(":memory:", isolation_level=None)
    try:
        _make(database)
        return _shape_of(database)
    finally:
        database.close()


def _mark_file(folder: Path) -> tuple[Path, str]:
    """Where the user's cache has the mark of an index, and why it is not to be used, or empty."""
    store = cache.folder()
    marks = store / "index" / "marks"
    why = next((why for one in (store, marks.parent, marks) if (why := cache.distrust(one))), "")
    return marks / hashlib.blake2b(os.fsencode(folder), digest_size=16).hexdigest(), why


def _known_mark(folder: Path) -> str:
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


def _new_mark(folder: Path) -> str:
    """A new mark, which the user's cache keeps, or, if it cannot, this process."""
    folder = folder.absolute()
    mark = secrets.token_hex(16)
    file, why = _mark_file(folder)
    if not why:
        try:
            for one in (file.parents[2], file.parents[1], file.parent):
                _made(one)
            fresh = file.with_name(f"{file.name}-{mark}")
            try:
                _write_new(fresh, mark, 0o600)
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


def _write_new(path: Path, text: str, mode: int) -> None:
    """Write a file that is not there yet, also not as a link."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(path, flags, mode), "w") as file:
        file.write(text)


def versions_of(database: "Connection") -> dict[str, str]:
    """What content was made by."""
    return _versions(database) or {}


def _make(database: "Connection") -> None:
    database.execute(f"PRAGMA application_id = {_OURS}")
    for table in _TABLES:
        database.execute(table)


def _clear(database: "Connection") -> None:
    """Remove all content but embeddings, which are of a text wherever it stands."""
    for table in _CONTENT:
        database.execute(f"DELETE FROM {table}")  # noqa: S608 - a name of ours
    database.execute("INSERT INTO fts(fts) VALUES ('delete-all')")
    # The tokenizer's name may be another one now.
    database.execute("DROP TABLE fts")
    for table in _TABLES[_TABLES.index(TABLE) :]:
        database.execute(table)


def stored(text: str) -> str | bytes:
    """A text or path as it is kept: bytes if it is not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogateescape")
    return text


def restored(value: str | bytes) -> str:
    """The reverse of `stored()`: what is not UTF-8 is lone surrogates."""
    return value if isinstance(value, str) else value.decode("utf-8", "surrogateescape")


def _made(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for this user alone whatever the umask is."""
    missing: list[Path] = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for one in reversed(missing):
        one.mkdir(mode=0o700, exist_ok=True)
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "it is not a directory", str(folder))
