"""Tables of an index, and versions of the code that made its content.

A database is recognised by its application id, then by its whole schema. Triggers, views or other tables in a
downloaded file could run an attacker's SQL, so a file with any other schema is rebuilt
(https://sqlite.org/security.html).
"""

import functools

from ripwrap.index.storage.database import APPLICATION_ID, own_text
from ripwrap.index.storage.packages import Connection, sqlite3

SCHEMA_VERSION = 4
"""Version of the tables; version 2 had full-text search in SQLite, and version 3 had no checksums."""

MARK_KEY = "mark"
"""Key of the ownership mark in the table `meta`; see `ownership.py`."""

SENT_KEY = "sent "
"""Prefix of the keys of rows in the table `meta` that count the texts and characters sent to a model."""

IS_SENT = f"substr(key, 1, {len(SENT_KEY)}) = '{SENT_KEY}'"
"""SQL condition for the rows of the table `meta` whose keys begin with `SENT_KEY`."""

_TABLES = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    # A view is a directory, on a branch, with the options that choose its files. `generation` is a random number that
    # changes with each refresh that writes; `changed` is the time of that refresh, in nanoseconds since 1970. `stamps`
    # is the digest of the paths and stamps of all its files in `tree`: a refresh that computes the same digest has
    # nothing to do. `sum` is the checksum of this row and of the rows in `tree`; see `sums.py`. `root` and `name`, and
    # the paths and symbols below, have no type, so that SQLite stores text and bytes as they are
    # (https://sqlite.org/datatype3.html#determination_of_column_affinity).
    """CREATE TABLE view (
        id INTEGER PRIMARY KEY, root, options TEXT NOT NULL, name, generation INTEGER NOT NULL,
        changed INTEGER NOT NULL, stamps BLOB, sum BLOB, UNIQUE (root, options, name)
    )""",
    # The content of a file, with the path of the file. Branches with the same content at the same path share the row.
    # With AUTOINCREMENT, here and below, no number is used twice (https://sqlite.org/autoinc.html), so that a document
    # of a removed row is never mistaken for the document of another row. `trigrams` is the id if the content has a
    # document of trigrams, the negative id if it never gets such a document, NULL if the content was not read yet; see
    # `trigrams.py`. `names` has the compressed names that the chunks define; with them, the rows in `definition` are
    # compared, found and deleted. `sum` is the checksum of this row and of the rows in `chunk`; see `sums.py`.
    """CREATE TABLE blob (
        id INTEGER PRIMARY KEY AUTOINCREMENT, path, digest BLOB NOT NULL, trigrams INTEGER, names BLOB NOT NULL,
        sum BLOB NOT NULL, UNIQUE (path, digest)
    )""",
    "CREATE INDEX blob_trigrams ON blob (trigrams)",
    # The directory of trigrams, a random number that changes with its documents, and their number.
    "CREATE TABLE trigrams (folder TEXT NOT NULL, state INTEGER NOT NULL, documents INTEGER NOT NULL)",
    # The chunks of a content have consecutive numbers. `start`, `at` and `size` are a `Span`. `line` and `last` are the
    # numbers of the first and last line. `symbol` is the name of the definition that the chunk is or belongs to, if
    # known. The text is not stored. Symbols and paths that are not UTF-8 are stored as
    # bytes.
    """CREATE TABLE chunk (
        id INTEGER PRIMARY KEY AUTOINCREMENT, blob INTEGER NOT NULL, start INTEGER NOT NULL, at INTEGER,
        size INTEGER NOT NULL, line INTEGER NOT NULL, last INTEGER NOT NULL, digest BLOB NOT NULL, symbol
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
_CONTENT_TABLES = ("view", "blob", "chunk", "definition", "tree", "trigrams")


def read_versions(database: Connection) -> dict[str, str] | None:
    """Return the versions of the code that made the content of the database, such as the version of the chunker.

    The result is `None` if the database is new, or not an index. It is empty if the table `meta`, which has the
    versions, is missing or was declared in another way.
    """
    if database.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID or is_empty(database):
        return None
    if not _has_meta(database):
        return {}
    statement = f"SELECT key, value FROM meta WHERE key <> ? AND NOT {IS_SENT}"  # noqa: S608 - a constant
    rows = database.execute(statement, (MARK_KEY,)).fetchall()
    return {own_text(key): own_text(value) for key, value in rows}


def is_empty(database: Connection) -> bool:
    """Return True if a database has no tables."""
    return not database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]


def _has_meta(database: Connection) -> bool:
    """Return True if the table `meta` is declared as in `_TABLES`; otherwise it must not be read."""
    found = database.execute("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = 'meta'").fetchone()
    return found is not None and found[0] == _TABLES[0]


def mark_of(database: Connection) -> str:
    """Return the ownership mark in a database (see `ownership.py`); empty if there is none."""
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
