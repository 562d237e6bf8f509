"""Damage of an index that SQLite reports is repaired with one log line; a rebuild repairs all damage."""

import logging
import os
import shutil
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from random import Random

import pytest

from ripwrap import sync
from ripwrap.binary import RgBinary
from ripwrap.index.storage.database import DamageError, is_damage
from ripwrap.index.storage.tables import code_of
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


def _damage_bytes(file: Path, chance: Random) -> str:
    raw = bytearray(file.read_bytes())
    at = chance.randrange(len(raw))
    for offset in range(chance.choice([1, 1, 1, 8, 64])):
        raw[(at + offset) % len(raw)] = chance.randrange(256)
    file.write_bytes(raw)
    return f"bytes at {at}"


@pytest.mark.slow
@pytest.mark.stress
@pytest.mark.timeout(1500)
def test_damaged_bytes_raise_no_error_and_a_rebuild_repairs_them(
    plant: Plant, rg: RgBinary, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Damage that SQLite reports is repaired at once, with one log line; a rebuild repairs all damage."""
    root, sound, home = plant(TREE), tmp_path / "sound", tmp_path / "home"
    _age(root)
    with _open(root, sound, rg) as index:
        index.refresh()
        expected = {name: run() for name, run in _operations(index).items()}
    caplog.set_level(logging.WARNING, "ripwrap")
    wrong: list[tuple[int, str, object]] = []
    for seed in range(times(6, 500)):
        chance = Random(seed)
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(sound, home)
        caplog.clear()
        what = _damage_bytes(home / NAME, chance)
        try:
            with _open(root, home, rg) as index:
                for _, run in chance.sample([*_operations(index).items()], len(expected)):
                    run()
                index.check()
                index.refresh(rebuild=True)
                assert index.check().ok
                found = {name: run() for name, run in _operations(index).items()}
        except Exception as error:  # noqa: BLE001 - all errors are wrong
            wrong.append((seed, what, f"{type(error).__name__}: {error}"))
            continue
        wrong += [(seed, what, name) for name in found if found[name] != expected[name]]
        logged = [record.message for record in caplog.records if "rebuilt" in record.message]
        if len(logged) > 1:
            wrong.append((seed, what, logged))
    assert "\n".join(map(str, wrong)) == ""


def test_definitions_that_unpack_to_too_much_are_damage() -> None:
    found = zlib.compress(b" " * 16_000_000 + b"[[], true, []]")
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE TABLE blob (id, code)")
        database.execute("INSERT INTO blob VALUES (1, ?)", (found,))
        with pytest.raises(DamageError):
            code_of(database, 1, "a.py", "x")


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("UPDATE meta SET value = x'ff' WHERE key = 'chunker'", "a text has another type"),
        ("UPDATE tree SET path = 5 WHERE path = 'README.md'", "a text has another type"),
        ("UPDATE view SET generation = 'x'", "a number has another type"),
        ("UPDATE sqlite_sequence SET seq = 1 WHERE name = 'chunk'", "the last id of a table is wrong"),
        ("UPDATE sqlite_sequence SET seq = 'x' WHERE name = 'chunk'", "a number has another type"),
        ("UPDATE blob SET names = x'ff'", "a list of names is damaged"),
        ("UPDATE blob SET code = x'ff'", "a list of definitions is damaged"),
        ("UPDATE blob SET code = x'78018b0600005c005c'", "a list of definitions is damaged"),
        ("UPDATE chunk SET line = 'x'", "CHECK constraint failed in chunk"),
    ],
)
def test_values_that_ripwrap_never_writes_are_damage(
    plant: Plant, rg: RgBinary, tmp_path: Path, caplog: pytest.LogCaptureFixture, statement: str, why: str
) -> None:
    root, home = plant(TREE), tmp_path / "home"
    with _open(root, home, rg) as index:
        index.refresh()
    with closing(sqlite3.connect(home / NAME, isolation_level=None)) as database:
        database.execute("PRAGMA ignore_check_constraints = ON")
        database.execute(statement)
    plant({"new.py": "class CookieJar:\n    pass\n"})
    (root / "README.md").unlink()
    with _open(root, home, rg) as index:
        assert {"shop/cookies.py", "new.py"} <= {found.path for found in index.search("CookieJar")}
        assert index.check().ok
    (record,) = [record for record in caplog.records if "is rebuilt" in record.message]
    assert record.message.endswith(f"is rebuilt: it is damaged ({why})")


def _age(root: Path) -> None:
    """Make the files old, so that their times tell whether they have changed."""
    for file in root.rglob("*"):
        os.utime(file, (1_700_000_000, 1_700_000_000))


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
        database.execute("PRAGMA ignore_check_constraints = ON")
        database.execute(statement)
    database.close()
    with _open(root, home, rg) as index:
        index.status()
        index.check()
        assert index.search("CookieJar") == expected
        index.refresh(rebuild=True)
        assert index.status().built and index.check().ok


def test_error_in_a_call_rebuilds_the_index_only_if_sqlite_finds_damage(
    plant: Plant, rg: RgBinary, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root, home = plant(TREE), tmp_path / "home"

    def fail(database: sqlite3.Connection) -> int:
        if database.execute("SELECT count(*) FROM blob").fetchone()[0]:
            raise TypeError("not supported between instances")
        return 0

    with _open(root, home, rg) as index:
        index.refresh()
        with pytest.raises(TypeError, match="not supported"):
            index._store.run(fail)
    raw = bytearray((home / NAME).read_bytes())
    raw[-4096:] = b"\xa5" * 4096
    (home / NAME).write_bytes(raw)
    with _open(root, home, rg) as index:
        assert index._store.run(fail) == 0
    assert len([record for record in caplog.records if "is rebuilt: it is damaged" in record.message]) == 1


def test_file_that_is_shorter_than_its_header_says_is_damaged() -> None:
    """SQLite calls it an error of the disk; only the extended code tells."""
    error = sqlite3.OperationalError("disk I/O error")
    assert not is_damage(error)
    error.sqlite_errorcode = 522  # SQLITE_IOERR_SHORT_READ
    assert is_damage(error)


@pytest.mark.parametrize("damaged", [b"no\xffe", b"n\xdcte"])
def test_message_of_sqlite_with_damaged_text_is_damage(
    plant: Plant, rg: RgBinary, tmp_path: Path, caplog: pytest.LogCaptureFixture, damaged: bytes
) -> None:
    """Python cannot decode such a message, and raises `UnicodeDecodeError` instead of SQLite's error."""
    root, home = plant(TREE), tmp_path / "home"
    with _open(root, home, rg) as index:
        index.refresh()
    raw = (home / NAME).read_bytes()
    assert b"WHERE note IS NOT NULL" in raw
    (home / NAME).write_bytes(raw.replace(b"WHERE note IS", b"WHERE " + damaged + b" IS"))
    with _open(root, home, rg) as index:
        assert not index.check().ok and not index.status().built
        assert index.search("CookieJar")[0].path == "shop/cookies.py"
    assert len([record for record in caplog.records if "is rebuilt: it is damaged" in record.message]) == 1
