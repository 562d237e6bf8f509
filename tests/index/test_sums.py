"""Each check of the rows of an index finds the damage that only this check can find."""

import os
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ripwrap import sync
from ripwrap.index.storage.database import DamageError, is_damage, last_id, read_versions
from ripwrap.index.storage.files import NAME
from ripwrap.index.storage.sums import RowChecks, check_count, names_of, sum_of_view

Plant = Callable[..., Path]
Check = Callable[[RowChecks, sqlite3.Connection], object]

TREE = {"a.py": "class CookieJar:\n    lid = 1\n", "b.md": "# Cookies\n", "binary.dat": "cookie\0\n"}


@pytest.fixture
def database(plant: Plant, tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """Connection to the database of an index with trigrams."""
    with sync.Index(plant(TREE), location=tmp_path / "home", workers=0) as index:
        index.refresh()
        index.grep("CookieJar")
    with closing(_connect(tmp_path)) as database:
        yield database


@pytest.fixture
def checks(tmp_path: Path) -> RowChecks:
    return RowChecks(tmp_path / "home" / NAME)


def _connect(tmp_path: Path) -> sqlite3.Connection:
    return sqlite3.connect(tmp_path / "home" / NAME, isolation_level=None)


def _view(checks: RowChecks, database: sqlite3.Connection) -> None:
    checks.check_view(database, 1)


def _list(checks: RowChecks, database: sqlite3.Connection) -> None:
    checks.check_view(database, None)


def _blobs(checks: RowChecks, database: sqlite3.Connection) -> None:
    checks.check_blobs(database, [1, 2])


def _chunks(checks: RowChecks, database: sqlite3.Connection) -> None:
    checks.check_chunks(database, [1, 2])


def _everything(checks: RowChecks, database: sqlite3.Connection) -> None:
    checks.check_everything(database)


def _count(_: RowChecks, database: sqlite3.Connection) -> None:
    check_count(database)


def _last_chunk(_: RowChecks, database: sqlite3.Connection) -> None:
    last_id(database, "chunk")


def _versions(_: RowChecks, database: sqlite3.Connection) -> None:
    read_versions(database)


CASES: list[tuple[Check, str, str]] = [
    (_list, "UPDATE view SET changed = changed + 1", "the lists of files do not have the stored checksums"),
    (_list, "UPDATE view SET root = -1", "the lists of files do not have the stored checksums"),
    (_list, "UPDATE view SET name = 'other'", "the lists of files do not have the stored checksums"),
    (_list, "UPDATE view SET sum = NULL", "the lists of files do not have the stored checksums"),
    (_list, "DELETE FROM view", "files belong to no list"),
    (
        _view,
        "UPDATE view SET sum = substr(sum, 1, 16)",
        "the list of its files does not have the stored checksum",
    ),
    (_view, "UPDATE tree SET size = size + 1", "the list of its files does not have the stored checksum"),
    (_view, "UPDATE tree SET size = 'many'", "a row of a file has a value of another type"),
    (_view, "UPDATE tree SET path = 5 WHERE path = 'a.py'", "a text has another type"),
    (_view, "DELETE FROM blob WHERE path = 'b.md'", r"the content of b\.md is missing"),
    (_view, "UPDATE blob SET path = 'c.md' WHERE path = 'b.md'", r"the content of b\.md is missing"),
    (_view, "UPDATE blob SET trigrams = -trigrams - 1", "the marks of contents with trigrams are wrong"),
    (_blobs, "DELETE FROM blob WHERE path = 'b.md'", "the content of a file is missing"),
    (_blobs, "UPDATE chunk SET last = last + 1", r"the rows of a\.py do not have the stored checksum"),
    (_blobs, "UPDATE blob SET digest = x'00'", r"the rows of a\.py do not have the stored checksum"),
    (_blobs, "UPDATE blob SET path = 5 WHERE path = 'a.py'", "a text has another type"),
    (_chunks, "DELETE FROM chunk WHERE id = 2", "chunks are missing"),
    (_chunks, "UPDATE chunk SET start = start + 1", r"the rows of a\.py do not have the stored checksum"),
    (_list, "INSERT INTO tree SELECT 99, path, blob, size, 0, 0, note FROM tree", "files belong to no list"),
    (_everything, "UPDATE chunk SET line = line + 1", r"the rows of a\.py do not have the stored checksum"),
    (_everything, "DELETE FROM definition", "the names that files define are incomplete"),
    (_everything, "UPDATE definition SET chunk = 2", "the names that files define are incomplete"),
    (_everything, "UPDATE postings SET documents = documents + 1", "different numbers of chunks"),
    (_count, "UPDATE postings SET documents = documents + 1", "different numbers of chunks"),
    (_versions, "UPDATE meta SET value = x'ff' WHERE key = 'chunker'", "a text has another type"),
    (_last_chunk, "UPDATE sqlite_sequence SET seq = 1 WHERE name = 'chunk'", "the last id of a table is wrong"),
    (_last_chunk, "UPDATE sqlite_sequence SET seq = 'x' WHERE name = 'chunk'", "a number has another type"),
]


@pytest.mark.parametrize(("check", "statement", "why"), CASES, ids=[f"{one[0].__name__}-{one[1]}" for one in CASES])
def test_damage_is_found(
    database: sqlite3.Connection, checks: RowChecks, check: Check, statement: str, why: str
) -> None:
    check(RowChecks(Path()), database)
    database.execute(statement)
    with pytest.raises(DamageError, match=f"{why}$"):
        check(checks, database)


def _empty_index(database: sqlite3.Connection, tmp_path: Path, index: str) -> None:
    """Remove all rows from an index of a table."""
    (made,) = database.execute("SELECT sql FROM sqlite_master WHERE name = ?", (index,)).fetchone()
    empty = f"{made.partition(' WHERE ')[0]} WHERE 0"
    for sql, statement in ((empty, f"REINDEX {index}"), (made, "SELECT 1")):
        database.execute("PRAGMA writable_schema = ON")
        database.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (sql, index))
        with closing(_connect(tmp_path)) as other:  # it reads the declaration
            other.execute(statement)


@pytest.mark.parametrize(
    ("index", "why"),
    [
        ("tree_note", "the list of files with notes is incomplete"),
        ("blob_trigrams", "the marks of contents with trigrams are wrong"),
    ],
)
def test_index_of_sqlite_without_a_row_is_found(
    database: sqlite3.Connection, checks: RowChecks, tmp_path: Path, index: str, why: str
) -> None:
    """A statement that reads such an index does not see the row, and a statement that reads the table does."""
    _empty_index(database, tmp_path, index)
    with closing(_connect(tmp_path)) as other, pytest.raises(DamageError, match=why):
        checks.check_view(other, 1)


def test_search_finds_files_that_an_index_of_sqlite_has_lost(
    plant: Plant, database: sqlite3.Connection, tmp_path: Path
) -> None:
    """The checksum of a view is made from the table `tree`, so searches read this table."""
    _empty_index(database, tmp_path, "tree_blob")
    with sync.Index(plant({}), location=tmp_path / "home", workers=0) as index:
        found = {hit.path for query in ("CookieJar", "cookies", "b.md") for hit in index.search(query, refresh=False)}
    assert found == {"a.py", "b.md"}


@pytest.mark.parametrize("names", [b"junk", zlib.compress(b"\xff"), 5])
def test_damaged_list_of_names_is_found(names: Any) -> None:
    assert names_of(b"") == ()
    with pytest.raises(DamageError, match="a list of names is damaged"):
        names_of(names)


def test_missing_view_has_no_checksum(database: sqlite3.Connection) -> None:
    with pytest.raises(DamageError, match="a list of its files is missing"):
        sum_of_view(database, 99, [])


def test_rows_are_compared_once_and_again_after_a_change(
    database: sqlite3.Connection, checks: RowChecks, tmp_path: Path
) -> None:
    """The cases in which the file may have other rows: another process, another program, and another connection."""
    for check in (_view, _blobs):
        check(checks, database)
    with closing(_connect(tmp_path)) as other:
        other.execute("UPDATE tree SET size = size + 1")  # in the write-ahead log, so the file stays as it is
        with pytest.raises(DamageError):
            _view(checks, database)
        other.execute("UPDATE tree SET size = size - 1")
    _view(checks, database)
    database.execute("UPDATE tree SET size = size + 1")
    _view(checks, database)  # the rows that this process writes have a right checksum
    with pytest.raises(DamageError):
        _everything(checks, database)
    database.execute("UPDATE tree SET size = size - 1")
    _view(checks, database)
    database.execute("UPDATE tree SET size = size + 1")
    os.utime(tmp_path / "home" / NAME, ns=(1, 1))
    with pytest.raises(DamageError):
        _view(checks, database)


def test_rows_are_compared_on_each_connection(tmp_path: Path, database: sqlite3.Connection, checks: RowChecks) -> None:
    with closing(_connect(tmp_path)) as first, closing(_connect(tmp_path)) as second:
        _view(checks, first)
        database.execute("UPDATE tree SET size = size + 1")
        with pytest.raises(DamageError):
            _view(checks, second)


def test_error_in_a_call_rebuilds_the_index_only_if_rows_are_damaged(
    plant: Plant, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A damaged value may have any type, and so cause any error."""
    with sync.Index(plant(TREE), location=tmp_path / "home", workers=0) as index:
        index.refresh()

        def fail(database: sqlite3.Connection) -> int:
            if database.execute("SELECT count(*) FROM blob").fetchone()[0]:
                raise TypeError("not supported between instances")
            return 0

        with pytest.raises(TypeError, match="not supported"):
            index._store.run(fail)
        with closing(_connect(tmp_path)) as database:
            database.execute("UPDATE chunk SET line = 'x'")
        assert index._store.run(fail) == 0
    (record,) = caplog.records
    assert record.message.endswith("is rebuilt: it is damaged (the rows of a.py do not have the stored checksum)")


def test_file_that_is_shorter_than_its_header_says_is_damaged() -> None:
    """SQLite calls it an error of the disk; only the extended code tells."""
    error = sqlite3.OperationalError("disk I/O error")
    assert not is_damage(error)
    error.sqlite_errorcode = 522  # SQLITE_IOERR_SHORT_READ
    assert is_damage(error)
