"""SQLite's full-text search: chunks in, the pool of those that answer a query best out; with and without an index."""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ripwrap._ranking.score import PATH_WEIGHT, POOL
from ripwrap._ranking.tokens import TOKENIZE, Query, spread
from ripwrap.errors import RipwrapError

if TYPE_CHECKING:
    from sqlite3 import Connection

TABLE = f"CREATE VIRTUAL TABLE fts USING fts5(path, body, content='', tokenize='{TOKENIZE}')"
"""Contentless: the text is elsewhere. `detail` stays full, because phrases and BM25 need it."""

Placed: TypeAlias = "Callable[[Collection[int]], Mapping[int, tuple[Any, int]]]"
"""Gives, of rows, those that count, each with what tells its file and with its place in that; these have an order."""

T = TypeVar("T")

DEPTH = 4
"""How many times the pool is looked through for files that are not in it: in a large index, more has found nothing."""

_MOST = 5_000  # Rows after which equally good ones are taken as they come.
_VARIABLES = 500  # Of one statement; some SQLites take no more than 999.
_LOGGER = logging.getLogger("ripwrap")
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
    named = spread(path)
    rows = ((number, named, spread(text)) for number, text in enumerate(texts, row))
    database.executemany("INSERT INTO fts(rowid, path, body) VALUES (?, ?, ?)", rows)


def pool_of(database: "Connection", query: Query, placed: Placed, depth: int = DEPTH) -> list[tuple[int, float]]:
    """The rows that are to be ranked, each with its BM25.

    They are the best ones, the best one of each further file, so that none fills the pool, and those that may define a
    symbol of the query. Equal ones are in the order of their places.

    Args:
        database: What has the table.
        query: What is asked for.
        placed: Where rows are; those that it leaves out do not count.
        depth: How many times the pool is looked through for files that are not in it.
    """
    pool = _best(database, query, placed, depth * POOL)
    if query.definitions:
        known = {row for row, _ in pool}
        statement = "SELECT rowid FROM fts WHERE fts MATCH ?"
        places = placed([row for (row,) in database.execute(statement, (query.definitions,)) if row not in known])
        for some in portions(sorted(places, key=places.__getitem__)[:POOL]):
            # The plus keeps SQLite from asking for one row after another: each would count all words anew.
            statement = f"{BM25} AND +rowid IN ({','.join('?' * len(some))})"
            pool += database.execute(statement, (query.match, *some)).fetchall()
    return pool


def _best(database: "Connection", query: Query, placed: Placed, wanted: int) -> list[tuple[int, float]]:
    """The best rows, and the best one of each further file."""
    while True:
        statement = BM25 + " ORDER BY score DESC, rowid LIMIT ?"
        rows = database.execute(statement, (query.match, wanted)).fetchall()
        scores: dict[int, float] = dict(rows)
        places = placed(scores)
        # Enough, if what is not known is worse than what is wanted; or if so many are equally good that nobody cares.
        better = sum(scores[row] > rows[-1][1] for row in places)
        if len(rows) < wanted or better >= POOL or (len(rows) >= _MOST and len(places) >= POOL):
            order = sorted(places, key=lambda row: (-scores[row], places[row]))
            best, files = order[:POOL], {places[row][0] for row in order[:POOL]}
            for row in order[POOL:]:
                if places[row][0] not in files:
                    files.add(places[row][0])
                    best.append(row)
            return [(row, scores[row]) for row in best]
        wanted *= 4


def portions(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    """As many at a time as a statement may name."""
    for at in range(0, len(rows), _VARIABLES):
        yield rows[at : at + _VARIABLES]


def warn(query: Query) -> None:
    """Log what of a query is not looked for."""
    if query.remark:
        _LOGGER.warning("%s", query.remark)
