"""Random damage of the rows and bytes of an index changes no answer and raises no error.

The index is rebuilt with one log line.
"""

import logging
import os
import shutil
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

import pytest

from ripwrap import sync
from ripwrap.binary import RgBinary
from support.effort import times

Plant = Callable[..., Path]

NAME = "index.sqlite3"
TREE = {
    "shop/cookies.py": "class CookieJar:\n    def store(self, cookie):\n        self.jar = cookie\n",
    "shop/cart.py": "def total(items):\n    # a cookie is no item\n    return sum(items)\n" + "x = 'cookie jar'\n" * 90,
    "shop/copy.py": "def total(items):\n    # a cookie is no item\n    return sum(items)\n",
    "shop/gr\u00f6\u00dfe.py": "def gr\u00f6\u00dfe(cookie):\n    return 'jar'\n",
    "README.md": "# Shop\n\nIt sells cookies in a jar.\n",
    "binary.dat": "cookie\0jar\n",
    "package.json": '{"name": "shop"}\n',
    "empty.py": "",
    "utf16.txt": "\ufeffcookie jar\n".encode("utf-16-le"),
}
QUERIES = ("how are cookies stored", "CookieJar", "total", "package.json", "cookie jar")
PATTERNS = ("cookie jar", "is no (item|jar)", "c.okie")


def _operations(index: sync.Index) -> dict[str, Callable[[], object]]:
    found: dict[str, Callable[[], object]] = {
        f"search {query}": partial(index.search, query, limit=None) for query in QUERIES
    }
    found |= {f"grep {one}": partial(_grep, index, one) for one in PATTERNS}
    return found | {"refresh": partial(_refresh, index), "status": partial(_status, index)}


def _grep(index: sync.Index, pattern: str) -> list[str]:
    return sorted(map(repr, index.grep(pattern).matches))


def _refresh(index: sync.Index) -> object:
    done = index.refresh()
    return done.skipped, done.cut


def _status(index: sync.Index) -> object:
    """Return the status; a damaged index is no status, but the advice to rebuild it."""
    status = index.status()
    if not status.views:
        assert not status.built
        return None
    return status.files, status.chunks, [(one.files, one.chunks, one.gone) for one in status.views if one.current]


def _open(root: Path, home: Path, rg: RgBinary) -> sync.Index:
    return sync.Index(root, location=home, rg=rg.path, chunker="windows", workers=0)


def _other_value(chance: Random, old: object) -> object:
    if isinstance(old, int) and chance.random() < 0.5:
        return old + chance.choice([-1, 1, 7, -100, 2**33])
    if isinstance(old, str) and old and chance.random() < 0.5:
        return old[:-1] + chr(ord(old[-1]) ^ 1)
    if isinstance(old, bytes) and old and chance.random() < 0.5:
        return bytes([old[0] ^ 1]) + old[1:]
    return chance.choice([None, 0, -1, 1, 2**62, -(2**62), 1.5, "x", "", b"\xff\xfe", b"", str(old), str(old).encode()])


def _damage_row(database: sqlite3.Connection, chance: Random) -> str:
    """Change, delete or copy a random row of a random table; return what was done."""
    tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")]
    table = chance.choice([name for name in tables if database.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchone()])
    cursor = database.execute(f"SELECT * FROM {table}")
    columns = [column for column, *_ in cursor.description]
    row = chance.choice(cursor.fetchall())
    where = " AND ".join(f"{column} IS ?" for column in columns)
    if chance.random() < 0.15:
        database.execute(f"DELETE FROM {table} WHERE {where}", row)
        return f"DELETE {table} {row}"
    column = chance.choice(columns)
    value = _other_value(chance, row[columns.index(column)])
    database.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (value, *row))
    return f"{table}.{column} = {value!r} in {row}"


def _damage_bytes(file: Path, chance: Random) -> str:
    raw = bytearray(file.read_bytes())
    at = chance.randrange(len(raw))
    for offset in range(chance.choice([1, 1, 1, 8, 64])):
        raw[(at + offset) % len(raw)] = chance.randrange(256)
    file.write_bytes(raw)
    return f"bytes at {at}"


def _damage(file: Path, chance: Random) -> str:
    if chance.random() < 0.3:
        return _damage_bytes(file, chance)
    database = sqlite3.connect(file, isolation_level=None)
    try:
        while True:
            try:
                return _damage_row(database, chance)
            except sqlite3.IntegrityError:
                continue  # SQLite does not store this value
    finally:
        database.close()


@pytest.mark.slow
@pytest.mark.stress
@pytest.mark.timeout(1500)
def test_random_damage_of_the_index_changes_no_answer(
    plant: Plant, rg: RgBinary, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root, sound, home = plant(TREE), tmp_path / "sound", tmp_path / "home"
    _age(root)
    with _open(root, sound, rg) as index:
        index.refresh()
        expected = {name: run() for name, run in _operations(index).items()}
    caplog.set_level(logging.WARNING, "ripwrap")
    wrong: list[tuple[int, str, object]] = []
    for seed in range(times(15, 500)):
        chance = Random(seed)
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(sound, home)
        caplog.clear()
        what = _damage(home / NAME, chance)
        try:
            with _open(root, home, rg) as index:
                found = {name: run() for name, run in _shuffled(chance, _operations(index))}
                if not (checked := index.check()).ok:  # no answer needed the damaged row
                    assert [message for message in checked.messages if "is damaged" in message]
                    index.refresh(rebuild=True)
                assert index.check().ok
        except Exception as error:  # noqa: BLE001 - all errors are wrong
            wrong.append((seed, what, f"{type(error).__name__}: {error}"))
            continue
        wrong += [(seed, what, name) for name in found if found[name] not in (expected[name], None)]
        logged = [record.message for record in caplog.records if "rebuilt" in record.message]
        if len(logged) > 1 or any(one is None for one in found.values()) > len(logged):
            wrong.append((seed, what, logged))
    assert "\n".join(map(str, wrong)) == ""


def _shuffled(chance: Random, operations: dict[str, Callable[[], object]]) -> list[tuple[str, Callable[[], object]]]:
    return chance.sample([*operations.items()], len(operations))


def _age(root: Path) -> None:
    """Make the files old, so that their times tell whether they have changed."""
    for file in root.rglob("*"):
        os.utime(file, (1_700_000_000, 1_700_000_000))


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE chunk SET start = start + 4, at = at + 4",
        "UPDATE chunk SET line = line + 1",
        "UPDATE tree SET blob = NULL WHERE path = 'README.md'",
        "UPDATE definition SET name = 'other' WHERE name = 'CookieJar'",
        "UPDATE blob SET trigrams = -trigrams + 1",
    ],
)
def test_changed_values_change_no_answer(
    plant: Plant, rg: RgBinary, tmp_path: Path, caplog: pytest.LogCaptureFixture, statement: str
) -> None:
    root, home = plant(TREE), tmp_path / "home"
    _age(root)
    with _open(root, home, rg) as index:
        index.refresh()
        expected = {name: run() for name, run in _operations(index).items() if name != "refresh"}
    with sqlite3.connect(home / NAME) as database:
        database.execute(statement)
    database.close()
    with _open(root, home, rg) as index:
        assert {name: run() for name, run in _operations(index).items() if name != "refresh"} == expected
    assert len([record for record in caplog.records if "is rebuilt: it is damaged" in record.message]) == 1


@pytest.mark.slow
@pytest.mark.parametrize("damaged", [0, 18, 60, "first page", "file"])
def test_damaged_header_is_rebuilt(
    plant: Plant, rg: RgBinary, tmp_path: Path, caplog: pytest.LogCaptureFixture, damaged: int | str
) -> None:
    """A byte of the header has changed, or has become NUL with its whole page, as after a power failure."""
    root, home = plant(TREE), tmp_path / "home"
    with _open(root, home, rg) as index:
        index.refresh()
        expected = {name: run() for name, run in _operations(index).items() if name not in ("refresh", "status")}
    raw = bytearray((home / NAME).read_bytes())
    if isinstance(damaged, int):
        raw[damaged] ^= 255
    else:
        raw[: 4096 if damaged == "first page" else None] = bytes(4096 if damaged == "first page" else len(raw))
    (home / NAME).write_bytes(raw)
    with _open(root, home, rg) as index:
        assert {
            name: run() for name, run in _operations(index).items() if name not in ("refresh", "status")
        } == expected
    logged = len([record for record in caplog.records if "is rebuilt: it is damaged" in record.message])
    assert logged == 1 or (logged == 0 and isinstance(damaged, int))  # SQLite does not use every byte


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE view SET root = -1",
        "UPDATE view SET name = 1.5",
        "UPDATE view SET options = x'ff00'",
        "INSERT INTO model VALUES (x'ff00', 3, 1)",
        "INSERT INTO model VALUES ('static:m', 'many', 1)",
        "INSERT INTO model VALUES ('static:m', x'00', 1)",
    ],
)
def test_damaged_name_of_a_view_raises_no_error(plant: Plant, rg: RgBinary, tmp_path: Path, statement: str) -> None:
    root, home = plant(TREE), tmp_path / "home"
    with _open(root, home, rg) as index:
        expected = index.search("CookieJar")
    with sqlite3.connect(home / NAME) as database:
        database.execute(statement)
    database.close()
    with _open(root, home, rg) as index:
        index.status()
        index.check()
        assert index.search("CookieJar") == expected
        index.refresh(rebuild=True)
        assert index.status().built and index.check().ok
