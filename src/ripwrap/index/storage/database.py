"""Connections to the SQLite database of an index, transactions, and codes of errors.

A statement whose rows are not all read is closed explicitly. Otherwise, on PyPy, it would stay active, and SQLite would
not commit.
"""

import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ripwrap._concurrency import CANCELLED
from ripwrap._ranking.fts import batches
from ripwrap.index.storage.packages import Connection, sqlite3

APPLICATION_ID: int = 0x72697077
"""Application id in the header of a database: `ripw` (https://sqlite.org/fileformat.html)."""

BUSY: int = 5
LOCKED: int = 6
READONLY: int = 8
INTERRUPT: int = 9
IO_ERROR: int = 10
CORRUPT: int = 11
FULL: int = 13
CANNOT_OPEN: int = 14
TOO_BIG: int = 18
CONSTRAINT: int = 19
MISMATCH: int = 20
FORMAT: int = 24
NOT_A_DATABASE: int = 26
"""Result codes of SQLite: https://sqlite.org/rescode.html."""

_NO_TRUSTED_SCHEMA = "PRAGMA trusted_schema = OFF"  # the file may have been made by an attacker
_CACHE_SIZE = "PRAGMA cache_size = -32768"  # KiB, because it is negative
_LOG_SIZE_LIMIT = "PRAGMA journal_size_limit = 4194304"  # bytes that stay on disk after a checkpoint
_BUSY_TIMEOUT_MS = 5_000  # time that a statement waits for the short locks of other processes
WRITE_LOCK_TIMEOUT = 300.0  # seconds to wait for another writer
_INSTRUCTIONS_PER_CHECK = 20_000
"""Number of instructions of SQLite's virtual machine between two checks for cancellation: a few milliseconds."""

_DAMAGE_CODES = (CORRUPT, NOT_A_DATABASE, TOO_BIG, CONSTRAINT, MISMATCH, FORMAT)
_SHORT_READ = 522
"""Extended result code of SQLite for a file that is shorter than its header says."""
_DAMAGE_MESSAGES = (
    "no such table",
    "no such column",
    "no such index",
    "Could not decode to UTF-8",
    "unsupported file format",
    "integer overflow",
)
"""Beginnings of the messages of errors without a code of their own, which a sound index never causes."""


def connect(uri: str, *, log: bool) -> Connection:
    """Open a connection and read from it once, so that a damaged file raises an error now and not later."""
    database = sqlite3.connect(
        uri, uri=True, isolation_level=None, check_same_thread=False, timeout=_BUSY_TIMEOUT_MS / 1000
    )
    try:
        _set_progress_handler(database)
        if log:
            if not database.execute("PRAGMA page_count").fetchone()[
                0
            ]:  # set the id now, so that the header of a new file has it from the start
                database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            # With a write-ahead log, readers see the state before a running transaction: https://sqlite.org/wal.html.
            database.execute("PRAGMA journal_mode = WAL").close()
        # NORMAL is safe with a write-ahead log: a power loss may undo the last transactions, but the next refresh
        # repeats them.
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute(_NO_TRUSTED_SCHEMA)
        database.execute(_CACHE_SIZE)
        database.execute(_LOG_SIZE_LIMIT).close()
        database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        database.close()
        raise
    return database


def is_index_header(header: bytes) -> bool:
    """Return True if the first hundred bytes of a file show that the file is, or was, the database of an index.

    Only the id of the program counts, because the other bytes may be damaged (https://sqlite.org/fileformat2.html).
    """
    return header[68:72] == APPLICATION_ID.to_bytes(4)


def code_of(error: "sqlite3.Error") -> int:
    """Return SQLite's primary result code of an error, such as `BUSY`."""
    return getattr(error, "sqlite_errorcode", 1) & 0xFF


class DamageError(Exception):
    """Error for a database whose rows are damaged; the message says which rows."""


def is_damage(error: "sqlite3.Error") -> bool:
    """Return True if an error means that the database is damaged, or that tables or columns are missing."""
    if code_of(error) in _DAMAGE_CODES or getattr(error, "sqlite_errorcode", 0) == _SHORT_READ:
        return True
    return isinstance(error, sqlite3.OperationalError) and str(error).startswith(_DAMAGE_MESSAGES)


def check() -> None:
    """Raise an error if the caller of the index is cancelled; otherwise do nothing.

    Raises:
        TimeoutError: The caller is cancelled.
    """
    if CANCELLED.get().is_set():
        raise TimeoutError("the call of the index was cancelled")


def check_error(error: "sqlite3.Error") -> None:
    """If SQLite interrupted a statement, raise the exception that is the reason; otherwise do nothing."""
    check()
    if code_of(error) == INTERRUPT:
        raise KeyboardInterrupt from error


def _set_progress_handler(database: Connection) -> None:
    """Make SQLite end a running statement with an error when the caller is cancelled."""
    database.set_progress_handler(lambda: CANCELLED.get().is_set(), _INSTRUCTIONS_PER_CHECK)


@contextmanager
def _uninterrupted(database: Connection) -> Generator[None]:
    """Run the block without interruption, because an interrupted COMMIT may succeed and still raise an error."""
    database.set_progress_handler(None, 0)
    try:
        yield
    finally:
        _set_progress_handler(database)


@contextmanager
def write_transaction(database: Connection, *, patience: float = WRITE_LOCK_TIMEOUT) -> Generator[None]:
    """Hold a write transaction; roll it back if the block raises an error.

    Only one write transaction can exist at a time.
    """
    with _uninterrupted(database):
        _begin_write(database, patience)
    try:
        yield
        with _uninterrupted(database):
            database.execute("COMMIT")
    except BaseException:
        _roll_back(database)
        raise


@contextmanager
def read_transaction(database: Connection) -> Generator[None]:
    """Hold a read transaction: all reads in the block see the same state of the database."""
    with _uninterrupted(database):
        database.execute("BEGIN")
    try:
        yield
    finally:
        _roll_back(database)


def _roll_back(database: Connection) -> None:
    with _uninterrupted(database):
        if database.in_transaction:  # SQLite rolls back by itself after some errors
            database.execute("ROLLBACK")


def checkpoint(database: Connection) -> None:
    """Write the write-ahead log into the database file, and empty the log, unless another process reads the log.

    SQLite also empties the log when the last process closes the database.
    """
    with _uninterrupted(database):
        database.execute("PRAGMA busy_timeout = 50").close()
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)").close()
        database.execute(f"PRAGMA busy_timeout = {_BUSY_TIMEOUT_MS}").close()


def _begin_write(database: Connection, patience: float) -> None:
    """Begin a write transaction; wait for the transactions of other processes.

    IMMEDIATE takes the write lock at the beginning. A transaction that first reads and then writes may fail with BUSY,
    and waiting does not help (https://sqlite.org/lang_transaction.html). SQLite's own wait cannot be cancelled, so this
    function uses short waits and repeats them.
    """
    deadline = time.monotonic() + patience
    database.execute("PRAGMA busy_timeout = 50").close()
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
        database.execute(f"PRAGMA busy_timeout = {_BUSY_TIMEOUT_MS}").close()


def empty_database(path: Path) -> None:
    """Empty a database without deleting its file; other connections see an ordinary change."""
    database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None)
    try:
        # DROP is not used, because it reads the pages of a table, which may be damaged: https://sqlite.org/pragma.html
        database.execute("PRAGMA writable_schema = ON").close()
        database.execute("DELETE FROM sqlite_master")
        database.execute("PRAGMA writable_schema = OFF").close()
        database.execute("VACUUM")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)").close()
    finally:
        database.close()


def encode_text(text: str) -> str | bytes:
    """Return a text or path as the database stores it: as a str or, if it has bytes that are not UTF-8, as bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogateescape")
    return text


def decode_text(value: str | bytes) -> str:
    """Return a text or path that the database has stored; bytes that are not UTF-8 become lone surrogates."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if not isinstance(value, str):  # a damaged value may be a number
        raise DamageError("a text has another type")
    return value


def select_in(
    database: Connection, statement: str, values: Sequence[Any], before: Sequence[Any] = ()
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a statement with a list of values, in batches, because SQLite limits the length of the list."""
    for some in batches(values):
        check()
        yield from database.execute(statement.format(",".join("?" * len(some))), (*before, *some))


def own_text(value: object) -> str:
    """Return a stored text that ripwrap has chosen, such as a version: it is never stored as bytes."""
    if not isinstance(value, str):
        raise DamageError("a text has another type")
    return value


def to_integer(value: object) -> int:
    """Return a stored number."""
    if not isinstance(value, int):
        raise DamageError("a number has another type")
    return value


def last_id(database: Connection, table: str) -> int:
    """Return the highest id that a row of a table ever had; 0 if it had no row."""
    statement = f"SELECT (SELECT seq FROM sqlite_sequence WHERE name = ?), (SELECT max(id) FROM {table})"  # noqa: S608
    last, highest = database.execute(statement, (table,)).fetchone()
    found = 0 if last is None else to_integer(last)
    if found < (highest or 0):
        raise DamageError("the last id of a table is wrong")
    return found
