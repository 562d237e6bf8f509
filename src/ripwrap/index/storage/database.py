"""Connections to the SQLite database of an index, transactions, and codes of errors.

A statement whose rows are not all read is closed explicitly. Otherwise, on PyPy, it would stay active, and SQLite would
not commit.
"""

import functools
import re
import sqlite3
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from ripwrap._system.concurrency import CANCELLED

_MAX_VARIABLES = 500
"""Maximum number of values of an SQL statement; SQLite before 3.32 allows 999 (https://www.sqlite.org/limits.html)."""
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
            if database.execute("PRAGMA page_count").fetchone() == (0,):  # a new file has the id from the start
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
    except UnicodeDecodeError as error:  # SQLite's message quotes a damaged text of the schema
        database.close()
        raise DamageError(f"{error}") from error
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
    """Raise `TimeoutError` if the caller of the index is cancelled."""
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
    for at in range(0, len(values), _MAX_VARIABLES):
        check()
        some = values[at : at + _MAX_VARIABLES]
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


SCHEMA_VERSION = 6
"""Version of the tables; version 2 had full-text search in SQLite, and version 4 had checksums of rows."""

MARK_KEY = "mark"
"""Key of the ownership mark in the table `meta`; see `files.py`."""

SENT_KEY = "sent "
"""Prefix of the keys of rows in the table `meta` that count the texts and characters sent to a model."""

IS_SENT = f"substr(key, 1, {len(SENT_KEY)}) = '{SENT_KEY}'"
"""SQL condition for the rows of the table `meta` whose keys begin with `SENT_KEY`."""

_DECLARATIONS = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    # A view is a directory, on a branch, with the options that choose its files. `generation` is a random number that
    # changes with each refresh that writes; `changed` is the time of that refresh, in nanoseconds since 1970. `stamps`
    # is the digest of the paths and stamps of all its files in `tree`: a refresh that computes the same digest has
    # nothing to do. `root` and `name`, and
    # the paths and symbols below, have no type, so that SQLite stores text and bytes as they are
    # (https://sqlite.org/datatype3.html#determination_of_column_affinity).
    """CREATE TABLE view (
        id INTEGER PRIMARY KEY, root, options TEXT NOT NULL, name, generation INTEGER NOT NULL,
        changed INTEGER NOT NULL, stamps BLOB, UNIQUE (root, options, name)
    )""",
    # The content of a file, with the path of the file. Branches with the same content at the same path share the row.
    # With AUTOINCREMENT, here and below, no number is used twice (https://sqlite.org/autoinc.html), so that a document
    # of a removed row is never mistaken for the document of another row. `trigrams` is 1 if the content has a
    # document of trigrams, -1 if it never gets such a document, NULL if the content was not read yet. `names` has the
    # compressed names that the chunks define; with them, the rows in `definition` are found and deleted. `code` has
    # the compressed definitions of the file, with their lines; it is empty if they are not known.
    """CREATE TABLE blob (
        id INTEGER PRIMARY KEY AUTOINCREMENT, path, digest BLOB NOT NULL, trigrams INTEGER, names BLOB NOT NULL,
        code BLOB NOT NULL, UNIQUE (path, digest)
    )""",
    "CREATE INDEX blob_trigrams ON blob (trigrams)",
    # The directory of trigrams, a random number that changes with its documents, and their number.
    "CREATE TABLE trigrams (folder TEXT NOT NULL, state INTEGER NOT NULL, documents INTEGER NOT NULL)",
    # The chunks of a content have consecutive numbers. `start` and `size` are numbers of characters, `line` and `last`
    # the numbers of the first and last line. `symbol` is the name of the definition that the chunk is or belongs to, if
    # known. The text is not stored. Symbols and paths that are not UTF-8 are stored as bytes.
    """CREATE TABLE chunk (
        id INTEGER PRIMARY KEY AUTOINCREMENT, blob INTEGER NOT NULL, start INTEGER NOT NULL, size INTEGER NOT NULL,
        line INTEGER NOT NULL, last INTEGER NOT NULL, digest BLOB NOT NULL, symbol
    )""",
    "CREATE INDEX chunk_blob ON chunk (blob, start)",
    # The names that chunks define. There is no index on `chunk`, because it would be as large as the table.
    "CREATE TABLE definition (name TEXT NOT NULL, chunk INTEGER NOT NULL, PRIMARY KEY (name, chunk)) WITHOUT ROWID",
    # The directory of full-text search, a random number that changes with its documents, and their number.
    "CREATE TABLE postings (folder TEXT NOT NULL, state INTEGER NOT NULL, documents INTEGER NOT NULL)",
    # A removed content, whose documents are still in full-text search; see `postings.py`.
    "CREATE TABLE stale (blob INTEGER PRIMARY KEY)",
    # A file of a view. `blob` is NULL if the file is left out. `note` says why ('binary', 'unreadable'), or that only
    # its beginning is indexed ('cut').
    """CREATE TABLE tree (
        view INTEGER NOT NULL, path, blob INTEGER, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
        ctime_ns INTEGER NOT NULL, note TEXT, PRIMARY KEY (view, path)
    ) WITHOUT ROWID""",
    "CREATE INDEX tree_blob ON tree (blob)",
    "CREATE INDEX tree_note ON tree (view, note) WHERE note IS NOT NULL",
    # A vector of a text by a model. Its key is the digest of the text, so that equal chunks share it.
    "CREATE TABLE vec (digest BLOB NOT NULL, model TEXT NOT NULL, v BLOB NOT NULL, PRIMARY KEY (model, digest))",
    # The number of values in a vector of a model. `generation` is a random number that changes with the vectors.
    "CREATE TABLE model (name TEXT PRIMARY KEY, dimension INTEGER NOT NULL, generation INTEGER NOT NULL) WITHOUT ROWID",
)
_TABLES = tuple(
    re.sub(r"(\w+) INTEGER NOT NULL", r"\g<0> CHECK (typeof(\1) = 'integer')", table) for table in _DECLARATIONS
)
"""SQL of the tables. With the constraints, `PRAGMA quick_check` reports a number that has become a text."""
_CONTENT_TABLES = ("view", "blob", "chunk", "definition", "tree", "trigrams")


def read_versions(database: Connection) -> dict[str, str] | None:
    """Return the versions of the code that made the content of the database, such as the version of the chunker.

    The result is `None` if the database is new, or not an index. It is empty if the table `meta`, which has the
    versions, is missing or was declared in another way.
    """
    if database.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID or is_empty(database):
        return None
    found = database.execute("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = 'meta'").fetchone()
    if found is None or found[0] != _TABLES[0]:
        return {}
    statement = f"SELECT key, value FROM meta WHERE key <> ? AND NOT {IS_SENT}"  # noqa: S608 - a constant
    rows = database.execute(statement, (MARK_KEY,)).fetchall()
    return {own_text(key): own_text(value) for key, value in rows}


def is_empty(database: Connection) -> bool:
    """Return True if a database has no tables."""
    return not database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]


def mark_of(database: Connection) -> str:
    """Return the ownership mark in a database (see `files.py`); empty if there is none."""
    found = database.execute("SELECT value FROM meta WHERE key = ?", (MARK_KEY,)).fetchone()
    return "" if found is None else str(found[0])


def shape_of(database: Connection) -> "frozenset[tuple[object, ...]]":
    """Return the schema of a database: tables (SQLite's own included), indexes, triggers and views."""
    rows = database.execute("SELECT type, name, tbl_name, sql FROM sqlite_master LIMIT 100")
    return frozenset(rows.fetchall())


@functools.cache
def expected_shape() -> "frozenset[tuple[object, ...]]":
    """Return the schema that an index must have."""
    database = sqlite3.connect(":memory:", isolation_level=None)
    try:
        create_tables(database)
        return shape_of(database)
    finally:
        database.close()


def versions_of(database: Connection) -> dict[str, str]:
    """Return the versions like `read_versions()`, but an empty map if the database is new, or not an index."""
    return read_versions(database) or {}


def create_tables(database: Connection) -> None:
    """Create the tables of an index in an empty database."""
    database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    for table in _TABLES:
        database.execute(table)


def clear_content(database: Connection) -> None:
    """Delete all content except embeddings, which depend only on a text and a model.

    Deleted data is overwritten, because it may come from files that are no longer indexed.
    """
    database.execute("PRAGMA secure_delete = ON").close()
    for table in _CONTENT_TABLES:
        database.execute(f"DELETE FROM {table}")  # noqa: S608 - a constant
