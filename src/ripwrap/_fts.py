"""SQLite's full-text search: chunks in, the pool of those that answer a query best out; with and without an index."""

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING

from ripwrap._ranking.score import PATH_WEIGHT, POOL
from ripwrap._ranking.tokens import TOKENIZE, Query, split_humps
from ripwrap.errors import RipwrapError

if TYPE_CHECKING:
    from sqlite3 import Connection

TABLE = f"CREATE VIRTUAL TABLE fts USING fts5(path, body, content='', tokenize='{TOKENIZE}')"
"""Contentless: the text is elsewhere. `detail` stays full, because phrases and BM25 need it."""

_DEPTH = 20  # How many times the pool is looked through for files that are not in it.
BM25 = f"SELECT rowid, -bm25(fts, {PATH_WEIGHT}, 1.0) AS score FROM fts WHERE fts MATCH ?"  # noqa: S608 - a number of ours
"""Rows that match, each with its BM25; a condition or an order may follow."""


def memory() -> "Connection":
    """A database in memory that has the table, for one thread.

    Raises:
        RipwrapError: This Python has no SQLite, or one without FTS5.
    """
    try:
        import sqlite3  # only now: it takes some milliseconds
    except ModuleNotFoundError as error:  # a Python that was built without it
        raise RipwrapError(wanting(error)) from error
    database = sqlite3.connect(":memory:", isolation_level=None)
    try:
        database.execute(TABLE)
        database.execute("BEGIN")
    except sqlite3.OperationalError as error:
        database.close()
        raise RipwrapError(wanting(error)) from error
    return database


def wanting(error: Exception) -> str:
    """What to say of a Python without SQLite, or one without FTS5."""
    return f"ranking needs SQLite with its full-text search FTS5, which this Python lacks: {error}; use another Python"


def store(database: "Connection", row: int, path: str, texts: Iterable[str]) -> None:
    """Put the chunks of a file into the table, in rows from this one on."""
    named = split_humps(path)
    rows = ((number, named, split_humps(text)) for number, text in enumerate(texts, row))
    database.executemany("INSERT INTO fts(rowid, path, body) VALUES (?, ?, ?)", rows)


def pool_of(
    database: "Connection", query: Query, file_of: Callable[[int], Hashable], most: int = POOL
) -> list[tuple[int, float]]:
    """The rows that are to be ranked, each with its BM25.

    They are the best ones, the best one of each further file, so that none fills the pool, and those that may define a
    symbol.
    """
    best = BM25 + " ORDER BY score DESC, rowid LIMIT ?"
    rows: list[tuple[int, float]] = database.execute(best, (query.match, _DEPTH * most)).fetchall()
    pool, further = rows[:most], rows[most:]
    files = {file_of(row) for row, _ in pool}
    for row, score in further:
        if (file := file_of(row)) not in files:
            files.add(file)
            pool.append((row, score))
    if query.definitions:
        known = {row for row, _ in pool}
        defining = "SELECT rowid FROM fts WHERE fts MATCH ? ORDER BY rowid LIMIT ?"
        for (row,) in database.execute(defining, (query.definitions, most)).fetchall():
            if row not in known:
                pool += database.execute(BM25 + " AND rowid = ?", (query.match, row)).fetchall()
    return pool
