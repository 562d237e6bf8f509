"""Store chunks in SQLite's full-text search (FTS5), and select the pool: the chunks to rank for a query."""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ripwrap._ranking.scoring import PATH_WEIGHT, POOL_SIZE
from ripwrap._ranking.word_query import TOKENIZE, WordQuery, fts_text
from ripwrap.errors import RipwrapError

if TYPE_CHECKING:
    from sqlite3 import Connection

FTS_TABLE = f"CREATE VIRTUAL TABLE fts USING fts5(path, body, content='', tokenize='{TOKENIZE}')"
"""SQL statement that creates the table `fts`, in which chunks are searched.

The table is contentless: it does not store the text. The option `detail` has its default value, `full`, because phrases
and BM25 of a contentless table need it (https://www.sqlite.org/fts5.html#the_detail_option).
"""

LocateRows: TypeAlias = "Callable[[Collection[int]], Mapping[int, tuple[Any, int, Any]]]"
"""Function that takes ids of rows, and maps each id to the key of the row's file, the row's place in the file, and a
key of its text, which equal texts share.

The tuples can be sorted. Rows of files that are not searched are not in the map.
"""

T = TypeVar("T")

POOL_DEPTH = 4
"""Number of rows, as a multiple of `POOL_SIZE`, that `best_rows()` requests first, to find the best rows of many files.

Larger values gave no better results.
"""

_MAX_TIED_ROWS = 5_000
"""Maximum number of rows for which `best_rows()` looks for further rows with the same score as the last row."""
_MAX_SQL_VARIABLES = 500
"""Maximum number of variables of an SQL statement; SQLite before 3.32 allows 999 (https://www.sqlite.org/limits.html).
"""
_LOGGER = logging.getLogger("ripwrap")
SELECT_BM25 = f"SELECT rowid, -bm25(fts, {PATH_WEIGHT}, 1.0) AS score FROM fts WHERE fts MATCH ?"  # noqa: S608 - a constant
"""SQL statement that selects the rows that match, with their BM25. A condition or `ORDER BY` can be appended.

The statement reverses the sign of `bm25()`, which returns a negative number, and a lower number for a better match
(https://www.sqlite.org/fts5.html#the_bm25_function).
"""


def open_memory_database() -> "Connection":
    """Open a database in memory with the table `fts`, for use in one thread."""
    try:
        import sqlite3  # late: it takes some milliseconds
    except ModuleNotFoundError as error:  # a Python that was built without SQLite
        raise RipwrapError(missing_fts5_text(error)) from error
    database = sqlite3.connect(":memory:", isolation_level=None)
    try:
        database.execute(FTS_TABLE)
        database.execute("BEGIN")
    except sqlite3.OperationalError as error:
        database.close()
        raise RipwrapError(missing_fts5_text(error)) from error
    return database


def missing_fts5_text(error: Exception) -> str:
    """Return the error text for a Python without SQLite or without FTS5."""
    return (
        f"ranking needs SQLite with its full-text search FTS5, which this Python does not have: {error}; "
        "use a Python that has it"
    )


def insert_chunks(database: "Connection", row: int, path: str, texts: Iterable[str]) -> None:
    """Insert the texts of the chunks of a file into the table `fts`; `row` is the id of the first row."""
    named = fts_text(path)
    rows = ((number, named, fts_text(text)) for number, text in enumerate(texts, row))
    database.executemany("INSERT INTO fts(rowid, path, body) VALUES (?, ?, ?)", rows)


def bm25_pool(
    database: "Connection", query: WordQuery, locate: LocateRows, depth: int = POOL_DEPTH
) -> list[tuple[int, float]]:
    """Return the rows of the chunks to rank (the pool), each with its BM25.

    The pool has the `POOL_SIZE` rows with the highest BM25. It also has the best row of each additional file that is
    found among the best `depth * POOL_SIZE` rows, and at most `POOL_SIZE` rows that may define a symbol of the query.
    Of rows with equal BM25, the earlier row (by file, then by place in the file) is the better one.
    """
    statement = SELECT_BM25 + " ORDER BY score DESC, rowid LIMIT ?"
    pool = best_rows(
        lambda wanted: database.execute(statement, (query.match, wanted)).fetchall(), locate, depth * POOL_SIZE
    )
    if query.definitions:
        known = {row for row, _ in pool}
        statement = "SELECT rowid FROM fts WHERE fts MATCH ?"
        positions = locate([row for (row,) in database.execute(statement, (query.definitions,)) if row not in known])
        for some in batches(sorted(positions, key=positions.__getitem__)[:POOL_SIZE]):
            # Without the unary plus, SQLite looks up one rowid after the other. Each lookup would start the full-text
            # query again, and count all of its words (https://www.sqlite.org/optoverview.html, "unary +").
            statement = f"{SELECT_BM25} AND +rowid IN ({','.join('?' * len(some))})"
            pool += database.execute(statement, (query.match, *some)).fetchall()
    return pool


def best_rows(
    search: Callable[[int], list[tuple[int, float]]], locate: LocateRows, wanted: int = POOL_DEPTH * POOL_SIZE
) -> list[tuple[int, float]]:
    """Return all rows of the `POOL_SIZE` texts with the highest BM25, and then the best row of each further file."""
    # BM25 is computed for the whole table. Then `locate` leaves out rows of files that are not searched, and positions
    # decide the order of rows with equal scores. So search for the `wanted` best rows first. Rows that were not found
    # may have the same score as the last row. If fewer than POOL_SIZE texts of the remaining rows have a better score
    # than the last row, search again for four times as many rows.
    while True:
        rows = search(wanted)
        scores: dict[int, float] = dict(rows)
        positions = locate(scores)
        better = len({text for row, (_, _, text) in positions.items() if scores[row] > rows[-1][1]})
        if len(rows) < wanted or better >= POOL_SIZE or (len(rows) >= _MAX_TIED_ROWS and len(positions) >= POOL_SIZE):
            order = sorted(positions, key=lambda row: (-scores[row], positions[row]))
            best, files, texts = list[int](), set[Any](), set[Any]()
            for row in order:
                file, _, text = positions[row]
                if text in texts or len(texts) < POOL_SIZE:
                    texts.add(text)
                elif file in files:
                    continue
                files.add(file)
                best.append(row)
            return [(row, scores[row]) for row in best]
        wanted *= 4


def batches(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    """Split a sequence into batches, each small enough for the variables of one SQL statement."""
    for at in range(0, len(rows), _MAX_SQL_VARIABLES):
        yield rows[at : at + _MAX_SQL_VARIABLES]


def log_remark(query: WordQuery) -> None:
    """Log a warning if some words of a query are not searched, because the query is too long."""
    if query.remark:
        _LOGGER.warning("%s", query.remark)
