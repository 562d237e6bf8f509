"""The database that an index is: a connection to it, its transactions, and what its errors say."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ripwrap.binary.probe import CANCELLED

if TYPE_CHECKING:
    import sqlite3
    from sqlite3 import Connection

APPLICATION: int = 0x72697077
"""In the header of a database of ours: `ripw`."""

BUSY: int = 5
LOCKED: int = 6
READONLY: int = 8
INTERRUPT: int = 9
CORRUPT: int = 11
FULL: int = 13
CANNOT_OPEN: int = 14
NOT_A_DATABASE: int = 26
"""SQLite's codes of errors."""

_TRUST = "PRAGMA trusted_schema = OFF"  # A repository may have brought it along.
_CACHE = "PRAGMA cache_size = -32768"  # KiB
_LOG = "PRAGMA journal_size_limit = 4194304"  # Bytes of the log that are kept for the next time.
_WAIT = 5_000  # Milliseconds that a statement may wait for another process's, which is short.
_PATIENCE = 300.0  # Seconds to wait for another writer.
_STEPS = 20_000  # Of SQLite's machine, some milliseconds, after which a statement sees that nobody waits any more.
_MISSING = ("no such table", "no such column", "invalid fts5 file format")
_MAGIC = b"SQLite format 3\0"


def connect(uri: str, *, log: bool) -> "Connection":
    """A connection that has been read from; if it may write, with a log."""
    import sqlite3

    database = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=_WAIT / 1000)
    try:
        _watch(database)
        if log:
            if not database.execute("PRAGMA page_count").fetchone()[0]:  # so that its header says at once whose it is
                database.execute(f"PRAGMA application_id = {APPLICATION}")
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


def is_ours(header: bytes) -> bool:
    """Whether the first hundred bytes of a file say that it is an index."""
    return header.startswith(_MAGIC) and header[68:72] == APPLICATION.to_bytes(4)


def code_of(error: "sqlite3.Error") -> int:
    """SQLite's code of an error."""
    return getattr(error, "sqlite_errorcode", 1) & 0xFF


def is_damage(error: "sqlite3.Error") -> bool:
    """Whether an error says that the file is not sound, or that tables are missing in it."""
    import sqlite3

    if code_of(error) in (CORRUPT, NOT_A_DATABASE):
        return True
    return isinstance(error, sqlite3.OperationalError) and str(error).startswith(_MISSING)


def check() -> None:
    """Raise if nobody waits any more."""
    if CANCELLED.get().is_set():
        raise TimeoutError("nobody waits for this index any more")


def check_error(error: "sqlite3.Error") -> None:
    """Raise what ended a statement early: nobody waits any more, or Ctrl-C, which sqlite3 drops in a handler."""
    check()
    if code_of(error) == INTERRUPT:
        raise KeyboardInterrupt from error


def _watch(database: "Connection") -> None:
    """Have statements end early, as errors, once nobody waits any more."""
    database.set_progress_handler(lambda: CANCELLED.get().is_set(), _STEPS)


@contextmanager
def _whole(database: "Connection") -> Generator[None]:
    """What is executed in it is not ended early: a COMMIT might be done by then, and said to have failed."""
    database.set_progress_handler(None, 0)
    try:
        yield
    finally:
        _watch(database)


@contextmanager
def writing(database: "Connection") -> Generator[None]:
    """One transaction, which is the only one that writes; what raises in it leaves the old state.

    Raises:
        sqlite3.OperationalError: Another process has been writing for five minutes.
        TimeoutError: Nobody waits any more.
    """
    with _whole(database):
        _begin(database)
    try:
        yield
        with _whole(database):
            database.execute("COMMIT")
    except BaseException:
        _roll_back(database)
        raise


@contextmanager
def reading(database: "Connection") -> Generator[None]:
    """What is read in it is of one state."""
    with _whole(database):
        database.execute("BEGIN")
    try:
        yield
    finally:
        _roll_back(database)


def _roll_back(database: "Connection") -> None:
    with _whole(database):
        if database.in_transaction:  # some errors end it
            database.execute("ROLLBACK")


def checkpoint(database: "Connection") -> None:
    """Empty the log of what was written, unless somebody reads it now; the last one who closes does it, too."""
    with _whole(database):
        database.execute("PRAGMA busy_timeout = 50")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.execute(f"PRAGMA busy_timeout = {_WAIT}")


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
                if code_of(error) != BUSY or time.monotonic() > deadline:
                    raise
            else:
                return
    finally:
        database.execute(f"PRAGMA busy_timeout = {_WAIT}")


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
