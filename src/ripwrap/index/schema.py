"""The tables of an index, by which a database is known as one, and the versions of what made its content."""

import functools
from typing import TYPE_CHECKING

from ripwrap._fts import TABLE
from ripwrap.index.database import APPLICATION

if TYPE_CHECKING:
    from sqlite3 import Connection

SCHEMA = 2
"""The version of the tables."""

MARK = "mark"
"""The key in `meta` of what says who made it."""

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


def found_versions(database: "Connection") -> dict[str, str] | None:
    """What content was made by; `None` in a database that is not ours, or is new."""
    if database.execute("PRAGMA application_id").fetchone()[0] != APPLICATION or is_empty(database):
        return None
    if not _has_meta(database):
        return {}
    return dict(database.execute("SELECT key, value FROM meta WHERE key <> ?", (MARK,)).fetchall())


def is_empty(database: "Connection") -> bool:
    """Whether it has no tables."""
    return not database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]


def _has_meta(database: "Connection") -> bool:
    """Whether its `meta` is the table that it is in ours, which is all that is known before it is read."""
    found = database.execute("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = 'meta'").fetchone()
    return found is not None and found[0] == _TABLES[0]


def mark_of(database: "Connection") -> str:
    """What says who made it; empty where nothing does."""
    found = database.execute("SELECT value FROM meta WHERE key = ?", (MARK,)).fetchone()
    return "" if found is None else str(found[0])


def shape_of(database: "Connection") -> "frozenset[tuple[object, ...]]":
    """All that is in a database: its tables, those that are a part of FTS5's, indexes, triggers and views."""
    rows = database.execute("SELECT type, name, tbl_name, sql FROM sqlite_master LIMIT 100")
    return frozenset(rows.fetchall())


@functools.cache
def shape() -> "frozenset[tuple[object, ...]]":
    """All that is in ours."""
    import sqlite3

    database = sqlite3.connect(":memory:", isolation_level=None)
    try:
        make(database)
        return shape_of(database)
    finally:
        database.close()


def versions_of(database: "Connection") -> dict[str, str]:
    """What content was made by."""
    return found_versions(database) or {}


def make(database: "Connection") -> None:
    """Make the tables."""
    database.execute(f"PRAGMA application_id = {APPLICATION}")
    for table in _TABLES:
        database.execute(table)


def clear(database: "Connection") -> None:
    """Remove all content but embeddings, which are of a text wherever it stands."""
    for table in _CONTENT:
        database.execute(f"DELETE FROM {table}")  # noqa: S608 - a name of ours
    database.execute("INSERT INTO fts(fts) VALUES ('delete-all')")
    # The tokenizer's name may be another one now.
    database.execute("DROP TABLE fts")
    for table in _TABLES[_TABLES.index(TABLE) :]:
        database.execute(table)
