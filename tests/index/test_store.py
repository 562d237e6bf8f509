"""The database of an index: killed writers, concurrent processes, damage, foreign files and read-only folders."""

import logging
import os
import random
import shutil
import signal
import sqlite3
import struct
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

import ripwrap
from _ripgrep.test_cancellation import attempt_every_await, cancel_at_await
from ripwrap import RipwrapError
from ripwrap._system.concurrency import CANCELLED, Cancellation, in_thread
from ripwrap.binary import RgBinary
from ripwrap.index import Index, Progress, PruneResult, RefreshResult
from ripwrap.index.storage.database import SCHEMA_VERSION, read_transaction, write_transaction
from ripwrap.index.storage.files import NAME
from support import forks
from support.effort import times
from support.shop import held
from support.waiting import until

Plant = Callable[..., Path]

pytestmark = [pytest.mark.slow, pytest.mark.loops("asyncio")]  # about SQLite and files, not Pythons or loops

REFRESH = """
import sys, anyio
from ripwrap.index import Index
async def main(times=1):
    async with Index(sys.argv[1], location=sys.argv[2]) as index:
        for _ in range(times):
            print((await index.refresh()).chunks, flush=True)
"""

END_AFTER = """
import signal, time
begun = time.monotonic()
signal.setitimer(signal.ITIMER_REAL, float(sys.argv[3]))  # the signal ends the process at any moment
anyio.run(main)
signal.setitimer(signal.ITIMER_REAL, 0)
print(time.monotonic() - begun)
"""

END_AT_CREATION = """
import os, signal, time
writer = os.getpid()
if not os.fork():
    while not (os.path.exists(sys.argv[3]) and os.path.getsize(sys.argv[3])) and os.getppid() == writer:
        time.sleep(0.001)
    os.kill(writer, signal.SIGKILL)
    os._exit(0)
anyio.run(main)
"""

TWO_AT_ONCE = """
import os
other = os.fork()
anyio.run(main, 2)
if other:
    assert os.waitpid(other, 0)[1] == 0
"""

QUERIES = ("cookies of number 7", "Shop7", "where is shop_3 defined")


@pytest.fixture
async def index(plant: Plant, home: Path, anyio_backend: str) -> AsyncIterator[Index]:
    async with Index(plant({"a.py": "def cookies(): ...\n", "b.md": "# Cookies\n"}), location=home) as index:
        yield index


@pytest.fixture
async def kept(plant: Plant, own_cache: Path, anyio_backend: str) -> AsyncIterator[Index]:
    """Yield an index in the user's cache, where no other program has files."""
    async with Index(plant({"a.py": "def cookies(): ...\n", "b.md": "# Cookies\n"})) as index:
        assert index.location.is_relative_to(own_cache)
        yield index


def many(number: int, version: int = 0) -> dict[str, str]:
    return {
        f"src/{one}.py": f"class Shop{one}:\n"
        + f"    def shop_{one}(self): return 'cookies of number {version}'\n" * 60
        for one in range(number)
    }


def refresh_elsewhere(code: str, *arguments: object) -> "subprocess.CompletedProcess[str]":
    """Refresh in another process."""
    return forks.run(["-c", *map(str, arguments)], REFRESH + code, cwd=Path(__file__).parent, env=os.environ)


async def answers(root: Path, home: Path) -> list[list[str]]:
    async with Index(root, location=home) as index:
        return [[place.model_dump_json() for place in await index.search(query, limit=None)] for query in QUERIES]


def empty(folder: Path) -> None:
    """Remove everything in a folder."""
    shutil.rmtree(folder)
    folder.mkdir()


async def paths(index: Index, query: str = "cookies", *, refresh: bool = True) -> set[str]:
    return {place.path for place in await index.search(query, refresh=refresh)}


@pytest.mark.posix
@pytest.mark.slow
@pytest.mark.stress
@pytest.mark.timeout(times(120, 1500))
def test_writer_killed_at_any_moment_loses_only_its_refresh(plant: Plant, tmp_path: Path) -> None:
    chance = random.Random(9)
    home = tmp_path / "home"
    took = 0.5
    attempt = killed = 0
    while killed < times(2, 100):
        attempt += 1
        root = plant(many(30, attempt))
        done = refresh_elsewhere(END_AFTER, root, home, max(0.001, chance.uniform(0, took)))
        assert done.returncode in (0, -signal.SIGALRM) and done.stderr == ""
        if done.returncode == 0:
            took = min(took, float(done.stdout.split()[-1]))
        killed += done.returncode != 0

        async def sound(root: Path = root) -> None:
            async with Index(root, location=home) as index:
                health = await index.check()
                assert health.ok, health
                if (await index.status()).built:
                    await index.search(QUERIES[0], refresh=False)

        anyio.run(sound)
        assert anyio.run(answers, root, home) == anyio.run(answers, root, tmp_path / f"new-{attempt}")


@pytest.mark.posix
@pytest.mark.slow
def test_concurrent_processes_chunk_each_file_once(plant: Plant, home: Path) -> None:
    root = plant(many(400))
    done = refresh_elsewhere(TWO_AT_ONCE, root, home)
    assert (done.returncode, done.stderr) == (0, "")
    chunks = [int(line) for line in done.stdout.splitlines()]
    assert sorted(chunks)[:-1] == [0, 0, 0] and max(chunks) > 400


@pytest.mark.slow
@pytest.mark.loops("asyncio", "trio")
@pytest.mark.anyio
async def test_reader_sees_the_old_state_while_another_writes(index: Index, plant: Plant) -> None:
    await index.refresh()
    plant({"new.py": "cookies\n"})
    async with Index(index.root, location=index.location) as reader:
        assert await paths(reader, refresh=False) == {"a.py", "b.md"}
        middle, on = threading.Event(), threading.Event()

        def hold(progress: Progress) -> None:
            middle.set()
            assert on.wait(20)

        async with anyio.create_task_group() as group:
            group.start_soon(index.refresh, hold)
            await until(middle.is_set)
            assert await paths(reader, refresh=False) == {"a.py", "b.md"}
            assert (await index.status()).files == 2
            assert (await index.check()).ok
            group.start_soon(reader.refresh)  # waits for the lock
            on.set()
        assert await paths(reader, refresh=False) == {"a.py", "b.md", "new.py"}


@pytest.mark.anyio
async def test_refresh_lists_again_if_another_process_wrote_meanwhile(
    index: Index, plant: Plant, rg: RgBinary, stand_in: Plant, tmp_path: Path
) -> None:
    await index.refresh()
    results: list[RefreshResult] = []
    pausing = stand_in(f"pauses({rg.path!r}, {str(tmp_path)!r})")
    async with Index(index.root, location=index.location, rg=pausing) as other:

        async def refresh() -> None:
            results.append(await other.refresh())

        async with anyio.create_task_group() as group:
            group.start_soon(refresh)
            await until((tmp_path / "listed").exists)
            plant({"new.py": "cookies\n"})
            await index.refresh()
            (tmp_path / "go").touch()
        assert len((tmp_path / "listed").read_text()) == 2
        assert [(one.added, one.removed) for one in results] == [(0, 0)]
        assert await paths(other, refresh=False) == {"a.py", "b.md", "new.py"}


@pytest.mark.slow
@pytest.mark.stress
@pytest.mark.anyio
async def test_truncated_database_is_rebuilt(kept: Index, plant: Plant, caplog: pytest.LogCaptureFixture) -> None:
    plant(many(30))
    expected = await paths(kept)
    await kept.aclose()
    whole = (kept.location / NAME).read_bytes()
    chance = random.Random(4)
    for at in [0, 1, 99, 100, 4096, *(chance.randrange(len(whole)) for _ in range(times(1, 15)))]:
        (kept.location / NAME).write_bytes(whole[:at])
        assert await paths(kept) == expected
        assert (await kept.check()).ok
        await kept.aclose()
    assert "is rebuilt: it is damaged" in caplog.text


@pytest.mark.slow
@pytest.mark.stress
@pytest.mark.timeout(300)
@pytest.mark.anyio
async def test_damaged_page_is_detected_and_changes_no_result(kept: Index, plant: Plant) -> None:
    plant(many(30))
    expected = await paths(kept)
    await kept.aclose()
    whole = (kept.location / NAME).read_bytes()
    for page in range(0, len(whole) // 4096, times(7, 1)):
        junk = whole[: page * 4096] + b"\xa5" * 4096 + whole[(page + 1) * 4096 :]
        (kept.location / NAME).write_bytes(junk)
        assert not (await kept.check()).ok
        assert await paths(kept) == expected
        await kept.aclose()


@pytest.mark.anyio
@pytest.mark.parametrize("content", [b"", b"this is no database" * 1000, b"SQLite format 3\0" + b"\xff" * 8000])
async def test_invalid_database_in_the_cache_is_rebuilt(kept: Index, content: bytes) -> None:
    kept.location.mkdir(parents=True)
    (kept.location / NAME).write_bytes(content)
    assert (await kept.check()).ok is (not content)
    assert not (await kept.status()).built
    assert await paths(kept) == {"a.py", "b.md"}
    assert (await kept.check()).ok


@pytest.mark.anyio
async def test_database_damaged_while_open_is_rebuilt(index: Index, plant: Plant) -> None:
    plant(many(30))
    expected = await paths(index)
    await index.aclose()
    await index.status()
    with (index.location / NAME).open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * 40_000)
    assert not (await index.check()).ok
    assert await paths(index) == expected


@pytest.mark.anyio
async def test_database_deleted_while_open_is_rebuilt(index: Index) -> None:
    await index.refresh()
    empty(index.location)
    assert await paths(index) == {"a.py", "b.md"}
    async with Index(index.root, location=index.location) as other:
        assert (await other.refresh()).chunks == 0


@pytest.mark.anyio
async def test_database_with_a_newer_schema_is_rebuilt(index: Index, caplog: pytest.LogCaptureFixture) -> None:
    await index.refresh()
    await index.aclose()
    database = sqlite3.connect(index.location / NAME)
    with database:
        database.execute("UPDATE meta SET value = '99' WHERE key = 'schema'")
        database.execute("DROP TABLE tree")
    database.close()
    why = f"its tables have version 99 instead of {SCHEMA_VERSION}"
    assert (await index.check()).messages == (f"The index cannot be used, because {why}; refresh() rebuilds it.",)
    assert await paths(index) == {"a.py", "b.md"}
    assert f"is rebuilt: its tables have version 99 instead of {SCHEMA_VERSION}" in caplog.text


def tables(*statements: str) -> bytes:
    """Return the bytes of another program's database."""
    database = sqlite3.connect(":memory:")
    for statement in ("CREATE TABLE precious (thing)", *statements):
        database.execute(statement)
    try:
        return database.serialize()
    finally:
        database.close()


FOREIGN = {
    "notes": b"my notes about indexes\n",
    "letter": b"S",
    "long": b"this is no database" * 1000,
    "junk": b"SQLite format 3\0" + b"\xff" * 8000,
    "database": tables(),
    "program": tables("PRAGMA application_id = 42"),
}


async def check_left_untouched(index: Index, files: dict[str, bytes]) -> None:
    """Check that every use raises for a foreign file and that no file is changed or removed."""
    index.location.mkdir(exist_ok=True)
    for name, content in files.items():
        (index.location / name).write_bytes(content)
    calls: list[Callable[[], Awaitable[object]]] = [index.refresh, lambda: index.search("word"), index.prune]
    for call in [*calls, index.status, index.check] if NAME in files else calls:
        with pytest.raises(RipwrapError, match=r"is left untouched; remove it, or pass another location="):
            await call()
    await index.aclose()
    assert {file.name: file.read_bytes() for file in index.location.iterdir()} == files


@pytest.mark.anyio
@pytest.mark.parametrize("content", FOREIGN)
async def test_foreign_file_at_a_named_location_is_left_untouched(index: Index, content: str) -> None:
    await check_left_untouched(index, {NAME: FOREIGN[content]})
    (index.location / NAME).unlink()
    if content not in ("letter", "junk"):
        await check_left_untouched(index, {"index.lock": FOREIGN[content]})
        (index.location / "index.lock").unlink()
    assert await paths(index) == {"a.py", "b.md"}


@pytest.mark.anyio
@pytest.mark.parametrize(
    "name", [f"{NAME}-wal", f"{NAME}-journal", f"{NAME}-shm", "vectors-1-0123456789abcdef.usearch"]
)
async def test_foreign_file_next_to_the_database_is_left_untouched(index: Index, name: str) -> None:
    await check_left_untouched(index, {name: FOREIGN["notes"]})
    await check_left_untouched(index, {name: FOREIGN["notes"], NAME: b""})
    (index.location / name).unlink()
    assert await paths(index) == {"a.py", "b.md"}


@pytest.mark.anyio
async def test_leftover_journal_files_of_an_index_are_recognised(index: Index, home: Path) -> None:
    await index.refresh()
    files = {name: (home / name).read_bytes() for name in (f"{NAME}-wal", f"{NAME}-shm")}
    await index.aclose()
    writer = sqlite3.connect(home / NAME, isolation_level=None)
    writer.execute("PRAGMA journal_mode = DELETE")
    writer.execute("BEGIN")
    writer.execute("PRAGMA cache_size = 1")  # makes SQLite write before it commits
    writer.execute("INSERT INTO vec SELECT randomblob(9), 'model', randomblob(9999) FROM chunk")
    files[f"{NAME}-journal"] = (home / f"{NAME}-journal").read_bytes()
    writer.close()
    files["vectors-1-0123456789abcdef.usearch"] = struct.pack("<II", 3, 16) + b"\0<" * 24 + b"usearch"
    for name, content in files.items():
        empty(home)
        assert content
        (home / name).write_bytes(content)
        assert await paths(index) == {"a.py", "b.md"}
        await index.aclose()


@pytest.mark.anyio
async def test_foreign_file_that_replaces_an_open_index_is_left_untouched(index: Index) -> None:
    await index.refresh()
    (index.location / "notes").write_bytes(FOREIGN["notes"])
    (index.location / "notes").replace(index.location / NAME)
    for _ in range(2):
        with pytest.raises(RipwrapError, match="is left untouched"):
            await index.search("cookies")
        await index.aclose()
    assert (index.location / NAME).read_bytes() == FOREIGN["notes"]


@pytest.mark.anyio
@pytest.mark.parametrize("content", FOREIGN)
async def test_foreign_file_shipped_in_a_repository_is_left_untouched(
    plant: Plant, own_cache: Path, content: str
) -> None:
    root = plant({"a": "word\n"})
    async with Index(root, location="project") as index:
        await check_left_untouched(index, {NAME: FOREIGN[content]})
        (index.location / NAME).unlink()
        await index.refresh()
        await index.aclose()
        if content not in ("database", "program"):  # others count as a damaged index of this user
            (index.location / NAME).write_bytes(FOREIGN[content])
            assert await paths(index, "word") == {"a"}


def junk_at_the_end(file: Path) -> None:
    whole = file.read_bytes()
    file.write_bytes(whole[:-4096] + b"\xa5" * 4096)


def postings_of(home: Path) -> Path:
    """Return the directory of full-text search of an index."""
    (found,) = home.glob("postings-*")
    return found


UNUSED_CONTENTS = "INSERT INTO blob (path, digest, names, code) VALUES ('x', x'00', x'', x'')"
DAMAGE: dict[str, tuple[str | Callable[[Path], None], str]] = {
    "chunks of nothing": ("INSERT INTO chunk VALUES (99, 99, 0, 4, 1, 1, x'00', NULL)", "rebuild"),
    "fewer chunks": ("DELETE FROM chunk WHERE id = 1", "rebuild"),
    "a count of words": ("UPDATE postings SET documents = 1", "refresh"),
    "words of other contents": ("UPDATE postings SET folder = 'postings-0123456789abcdef'", "refresh"),
    "a page": (junk_at_the_end, "rebuild"),
    "a whole table": ("DROP TABLE vec", "refresh"),
    "a trigger": ("CREATE TRIGGER evil AFTER INSERT ON tree BEGIN SELECT 1; END", "refresh"),
    "a chunker": ("UPDATE meta SET value = 'other' WHERE key = 'chunker'", "refresh"),
    "vectors": ("INSERT INTO vec VALUES (x'00', 'model', x'0000')", "prune"),
    "unused contents": (UNUSED_CONTENTS, "prune"),
}


@pytest.mark.anyio
@pytest.mark.parametrize("damage", DAMAGE)
async def test_remedy_named_by_check_repairs_the_index(index: Index, plant: Plant, damage: str) -> None:
    plant(many(3))
    expected = await index.search("cookies", limit=None)
    await index.aclose()
    how, remedy = DAMAGE[damage]
    if isinstance(how, str):
        connection = sqlite3.connect(index.location / NAME, isolation_level=None)
        connection.execute(how)
        connection.close()
    else:
        how(index.location / NAME)
    health, status = await index.check(), await index.status()
    assert status.built or status.messages == health.messages
    assert health.ok is (damage in ("unused contents", "a chunker"))
    said = " ".join(health.messages)
    assert [word for word in ("refresh(rebuild=True)", "refresh() rebuilds it", "prune()") if word in said] == [
        {"rebuild": "refresh(rebuild=True)", "refresh": "refresh() rebuilds it", "prune": "prune()"}[remedy]
    ]
    if remedy == "prune":
        await index.prune()
    else:
        await index.refresh(rebuild=remedy == "rebuild")
    health = await index.check()
    assert (health.ok, health.messages) == (True, ())
    assert await index.search("cookies", limit=None) == expected


@pytest.fixture
def files_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse to remove files of a database, as Windows does while another process has them open."""
    real = Path.unlink

    def unlink(path: Path, missing_ok: bool = False) -> None:
        if path.name.startswith(NAME):
            raise PermissionError(13, "used by another process", str(path))
        real(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink)


@pytest.mark.anyio
@pytest.mark.usefixtures("files_in_use")
async def test_index_that_another_process_has_open_can_be_rebuilt(index: Index, plant: Plant, home: Path) -> None:
    await index.refresh()
    async with Index(index.root, location=home) as other:
        assert await paths(other) == {"a.py", "b.md"}
        plant({"c.py": "cookies\n"})
        assert (await index.refresh(rebuild=True)).added == 3
        assert await paths(other, refresh=False) == {"a.py", "b.md", "c.py"}
        plant({"d.py": "more cookies\n"})
        assert "d.py" in await paths(other)
    assert (await index.check()).ok


@pytest.mark.anyio
@pytest.mark.usefixtures("files_in_use")
async def test_damaged_index_that_another_process_has_open_is_rebuilt(index: Index, home: Path) -> None:
    await index.refresh()
    async with Index(index.root, location=home) as other:
        await paths(other)
        connection = sqlite3.connect(home / NAME)
        connection.execute("DROP TABLE tree")
        connection.commit()
        connection.close()
        assert await paths(index) == {"a.py", "b.md"}
        assert await paths(other) == {"a.py", "b.md"}


@pytest.mark.anyio
@pytest.mark.usefixtures("files_in_use")
async def test_error_for_an_index_that_cannot_be_removed_says_what_to_do(index: Index, home: Path) -> None:
    await index.refresh()
    await index.aclose()
    with (home / NAME).open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 3000)
    with pytest.raises(RipwrapError, match="cannot be removed: used by another process; end the programs"):
        await index.refresh(rebuild=True)


@pytest.mark.anyio
async def test_index_works_while_old_cursors_are_not_collected(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """On PyPy, a cursor exists until the garbage collector runs."""
    cursors: list[sqlite3.Cursor] = []

    class Connection(sqlite3.Connection):
        def execute(self, *arguments: Any) -> sqlite3.Cursor:
            cursors.append(super().execute(*arguments))
            return cursors[-1]

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Connection))
    assert (await index.refresh()).added == 2
    assert (await index.refresh(rebuild=True)).added == 2
    assert await paths(index) == {"a.py", "b.md"}
    assert cursors


@pytest.mark.anyio
async def test_rebuild_starts_from_an_empty_index(index: Index, plant: Plant, home: Path) -> None:
    assert (await index.refresh(rebuild=True)).added == 2
    assert (await index.refresh()).added == 0
    async with Index(index.root, location=home) as other:
        await other.search("cookies")
        (home / "vectors-1-00112233445566aa.usearch").write_bytes(b"old")
        (home / "vectors-notes.md").write_bytes(b"mine")
        plant({"c.py": "cookies\n"})
        done = await index.refresh(rebuild=True)
        assert (done.added, done.unchanged, done.chunks) == (3, 0, 3)
        assert sorted(name for name in os.listdir(home) if "vectors" in name) == ["vectors-notes.md"]
        assert await paths(other, refresh=False) == {"a.py", "b.md", "c.py"}
        plant({"d.py": "more cookies\n"})
        assert "d.py" in await paths(other)
        await index.aclose()
    assert "d.py" in await paths(index, refresh=False)
    assert (await index.check()).ok
    index.root.rename(index.root.with_name("moved"))
    with pytest.raises(FileNotFoundError):
        await index.refresh(rebuild=True)
    assert (home / NAME).exists()
    index.root.with_name("moved").rename(index.root)
    assert await paths(index, refresh=False) == {"a.py", "b.md", "c.py", "d.py"}


@pytest.mark.anyio
async def test_prune_keeps_chunks_of_another_chunker(index: Index, home: Path) -> None:
    await index.refresh()
    await index.aclose()
    connection = sqlite3.connect(home / NAME, isolation_level=None)
    connection.execute("UPDATE meta SET value = 'other-1' WHERE key = 'chunker'")
    connection.execute("INSERT INTO vec SELECT digest, 'model', x'0000' FROM chunk")
    connection.execute("INSERT INTO vec VALUES (x'00', 'model', x'0000')")
    connection.execute("INSERT INTO model VALUES ('model', 1, 0)")
    collected = await index.prune()
    assert (collected.views, collected.blobs, collected.chunks, collected.vectors) == ((), 0, 0, 1)
    counts = "SELECT (SELECT count(*) FROM tree), (SELECT count(*) FROM chunk), (SELECT count(*) FROM vec)"
    assert connection.execute(counts).fetchone() == (2, 2, 2)
    assert (await index.refresh()).added == 2
    assert connection.execute(counts).fetchone() == (2, 2, 2)
    connection.close()


@pytest.mark.anyio
async def test_prune_creates_no_index(kept: Index, index: Index) -> None:
    nothing = PruneResult(views=(), blobs=0, chunks=0, vectors=0, bytes=0)
    for one in (kept, index):
        assert await one.prune() == nothing
        assert not one.location.exists()
    index.location.mkdir()
    (index.location / NAME).touch()
    assert await index.prune() == nothing
    assert {file.name: file.stat().st_size for file in index.location.iterdir()} == {NAME: 0}
    assert (await index.refresh()).added == 2
    await index.aclose()
    with (index.location / NAME).open("r+b") as file:
        file.truncate(5000)
    assert await index.prune() == nothing
    assert not (index.location / NAME).exists()


@pytest.mark.anyio
async def test_database_of_another_program_in_the_cache_is_left_untouched(kept: Index) -> None:
    kept.location.mkdir(parents=True)
    (kept.location / NAME).write_bytes(FOREIGN["program"])
    calls: list[Callable[[], Awaitable[object]]] = [kept.refresh, kept.status, kept.check]
    for call in calls:
        with pytest.raises(RipwrapError, match="is left untouched"):
            await call()
    database = sqlite3.connect(kept.location / NAME)
    assert database.execute("SELECT name FROM sqlite_master").fetchall() == [("precious",)]
    database.close()


@pytest.mark.anyio
async def test_truncated_database_at_a_named_location_is_rebuilt(index: Index) -> None:
    expected = await paths(index)
    await index.aclose()
    whole = (index.location / NAME).read_bytes()
    for at in (0, 100, 5000, len(whole) - 1):
        (index.location / NAME).write_bytes(whole[:at])
        assert await paths(index) == expected
        assert (await index.check()).ok
        await index.aclose()


@pytest.mark.posix
def test_database_of_a_writer_killed_at_its_creation_is_recognised(plant: Plant, home: Path) -> None:
    done = refresh_elsewhere(END_AT_CREATION, plant(many(60)), home, home / NAME)
    assert done.returncode == -signal.SIGKILL
    assert anyio.run(answers, plant({}), home)


@pytest.mark.anyio
async def test_location_that_is_a_file_raises(plant: Plant, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    async with Index(plant({"a": "word\n"}), location=tmp_path / "file") as index:
        with pytest.raises(RipwrapError, match=r"could not make the directory .*file.*; pass another location="):
            await index.refresh()
    assert (tmp_path / "file").read_text() == "precious"


@pytest.mark.posix
@pytest.mark.anyio
async def test_link_shipped_in_a_repository_is_not_followed(plant: Plant, tmp_path: Path) -> None:
    root, elsewhere = plant({"a": "word\n"}), tmp_path / "elsewhere"
    os.mkdir(elsewhere)
    os.symlink(elsewhere, root / ".ripwrap")
    async with Index(root, location="project") as index:
        calls: list[Callable[[], Awaitable[object]]] = [index.refresh, index.prune]
        for call in calls:
            with pytest.raises(RipwrapError, match=r"is a symbolic link, .* remove it, or pass another location="):
                await call()
    os.unlink(root / ".ripwrap")
    os.mkdir(root / ".ripwrap")
    (elsewhere / "precious").write_text("precious")
    os.symlink(elsewhere / "precious", root / ".ripwrap" / NAME)
    async with Index(root, location="project") as index:
        calls = [index.refresh, index.prune, index.status, index.check]
        for call in calls:
            with pytest.raises(RipwrapError, match=r"is a symbolic link, .* remove it, or pass another location="):
                await call()
    assert os.listdir(elsewhere) == ["precious"]
    assert (elsewhere / "precious").read_text() == "precious"


@pytest.mark.posix
@pytest.mark.anyio
@pytest.mark.parametrize(
    "name", [".gitignore", "index.lock", f"{NAME}-wal", f"{NAME}-shm", "vectors-1-00112233445566aa.usearch"]
)
async def test_link_next_to_the_database_raises_and_is_not_followed(plant: Plant, tmp_path: Path, name: str) -> None:
    root, precious = plant({"a": "word\n"}), tmp_path / "precious"
    precious.write_text("precious")
    (root / ".ripwrap").mkdir()
    for target in (precious, tmp_path / "new"):
        (root / ".ripwrap" / name).symlink_to(target)
        async with Index(root, location="project") as index:
            with pytest.raises(
                RipwrapError, match=rf"{name} is a symbolic link, .* remove it, or pass another location="
            ):
                await index.refresh()
        (root / ".ripwrap" / name).unlink()
    assert precious.read_text() == "precious"
    assert not (tmp_path / "new").exists() and os.listdir(root / ".ripwrap") == []


@pytest.mark.anyio
async def test_database_path_that_is_a_folder_raises(plant: Plant) -> None:
    root = plant({"a": "word\n"})
    (root / ".ripwrap" / NAME).mkdir(parents=True)
    async with Index(root, location="project") as index:
        with pytest.raises(RipwrapError, match="is not a regular file; remove it"):
            await index.refresh()


@pytest.mark.anyio
async def test_existing_gitignore_is_kept(plant: Plant, own_cache: Path) -> None:
    root = plant({"a": "word\n"})
    (root / ".ripwrap").mkdir()
    (root / ".ripwrap/.gitignore").write_text("mine\n")
    async with Index(root, location="project") as index:
        await index.refresh()
    assert (root / ".ripwrap/.gitignore").read_text() == "mine\n"


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RIPWRAP_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def change(root: Path, *statements: str) -> None:
    database = sqlite3.connect(root / ".ripwrap" / NAME, isolation_level=None)
    for statement in statements:
        database.execute(statement)
    database.close()


LIE = "UPDATE chunk SET symbol = 'a lie'"


async def search_project(root: Path) -> tuple[bool, str, bool]:
    """Search an index in the project; return whether it was built before, the result, and whether it is built after."""
    async with Index(root, location="project") as index:
        before = (await index.status()).built
        found = [place.symbol or place.text for place in await index.search("cookies")]
        return before, "".join(found).strip(), (await index.status()).built


@pytest.mark.anyio
async def test_index_shipped_in_a_repository_is_rebuilt(
    plant: Plant, own_cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    root = plant({"a": "cookies\n"})
    monkeypatch.setenv("RIPWRAP_CACHE_DIR", str(own_cache.with_name("theirs")))
    await search_project(root)
    change(root, LIE)
    (root / ".ripwrap/vectors-1-00112233445566aa.usearch").write_text("a lie")
    monkeypatch.setenv("RIPWRAP_CACHE_DIR", str(own_cache))
    assert await search_project(root) == (False, "cookies", True)
    assert not (root / ".ripwrap/vectors-1-00112233445566aa.usearch").exists()
    assert "is rebuilt: this user's cache has no proof (ownership mark) that this user made it" in caplog.text
    caplog.clear()
    change(root, LIE)  # a change by this user is allowed
    assert await search_project(root) == (True, "a lie", True)
    change(root, "DELETE FROM meta WHERE key = 'mark'")
    assert await search_project(root) == (False, "cookies", True)
    (mark,) = (own_cache / "index/marks").iterdir()
    mark.write_text("")
    change(root, "UPDATE meta SET value = '' WHERE key = 'mark'")
    assert await search_project(root) == (False, "cookies", True)
    assert os.listdir(mark.parent) == [mark.name]


@pytest.mark.anyio
@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TRIGGER evil AFTER INSERT ON tree BEGIN UPDATE chunk SET symbol = 'a lie'; END"],
        ["CREATE VIEW evil AS SELECT 1"],
        ["CREATE TABLE evil (x)"],
        ["DROP INDEX tree_blob"],
        ["ALTER TABLE meta RENAME TO other", "CREATE VIEW meta AS SELECT * FROM other"],
        [
            "DROP TABLE meta",
            "CREATE VIEW meta AS WITH RECURSIVE n(key, x) AS (SELECT 1, 1 UNION ALL SELECT * FROM n) SELECT * FROM n",
        ],
    ],
)
async def test_index_with_a_foreign_schema_is_rebuilt(
    plant: Plant, own_cache: Path, statements: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    root = plant({"a": "cookies\n"})
    await search_project(root)
    change(root, LIE, *statements)
    with anyio.fail_after(20):
        assert await search_project(root) == (False, "cookies", True)
    assert "is rebuilt: its tables differ from the tables of an index, or it has triggers or views" in caplog.text


@pytest.mark.anyio
async def test_rebuild_for_another_chunker_keeps_the_owner(plant: Plant, own_cache: Path) -> None:
    root = plant({"a": "cookies\n"})
    await search_project(root)
    change(root, "UPDATE meta SET value = 'other' WHERE key = 'chunker'")
    assert await search_project(root) == (True, "cookies", True)
    change(root, LIE)
    assert await search_project(root) == (True, "a lie", True)


@pytest.mark.posix
@pytest.mark.anyio
async def test_each_process_rebuilds_a_project_index_without_a_cache(
    plant: Plant, own_cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = plant({"a": "cookies\n"})
    (own_cache.parent / "cache").write_text("no folder")
    assert await search_project(root) == (False, "cookies", True)
    assert "could not write the ownership mark of the index in " in caplog.text
    change(root, LIE)
    assert await search_project(root) == (True, "a lie", True)
    code = """
import sys
from ripwrap import sync
index = sync.Index(sys.argv[1], location="project")
print(index.status().built, (found := index.search("cookies")[0]).symbol or found.text, end="")
"""
    done = forks.run(["-c", str(root)], code, cwd=root, env=os.environ)
    assert (done.returncode, done.stdout) == (0, "False cookies\n")


@pytest.mark.loops("asyncio", "trio")
@pytest.mark.anyio
async def test_waiting_searches_leave_threads_to_other_tasks(index: Index, plant: Plant) -> None:
    await index.refresh()
    plant({"new.py": "cookies\n"})
    with held(index.location) as other:
        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(index.search, "cookies")
            with anyio.fail_after(20):
                assert len(await ripwrap.rank("cookies", cwd=index.root)) == 3
            other.execute("ROLLBACK")


UNPRIVILEGED = """
import sys, anyio
from ripwrap import RipwrapError
from ripwrap.index import Index
async def main():
    async with Index(sys.argv[1], location=sys.argv[2], rg=sys.argv[3]) as index:
        for refresh in (True, False):
            try:
                print([place.path for place in await index.search("cookies", refresh=refresh)])
            except RipwrapError as error:
                print(type(error).__name__, error)
anyio.run(main)
"""


def unprivileged(*arguments: object) -> list[str]:
    """Return the output of searches with and without a refresh, run without root's right to write anywhere."""
    argv, cwd = ["-c", *map(str, arguments)], Path(__file__).parent
    done = forks.run(argv, UNPRIVILEGED, cwd=cwd, env=os.environ, launcher=forks.UNPRIVILEGED)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.posix
@pytest.mark.parametrize(
    ("mode", "of_file", "change"),
    [
        (0o555, 0o444, {"a.py": "cakes\n"}),
        (0o555, 0o644, {"b.bin": "text"}),
        (0o755, 0o444, {"c.py": "cookies\n"}),
        (0o555, 0o444, {}),
    ],
)
def test_read_only_index_is_searched_while_nothing_has_changed(
    plant: Plant, home: Path, mode: int, of_file: int, change: dict[str | bytes, str | bytes]
) -> None:
    root = plant({"a.py": "cookies\n", "b.bin": b"cookies\0", "gone.py": "cookies\n"})
    rg = ripwrap.sync.resolve().path

    async def make() -> None:
        async with Index(root, location=home) as index:
            # A file that has just been changed is read again by the next refresh, since it may change without a new
            # timestamp. The files say so for an hour, so that the test does not depend on the time that it takes.
            soon = time.time_ns() + 3_600_000_000_000
            for name in ("a.py", "b.bin"):
                os.utime(root / name, ns=(soon, soon))
            await index.refresh()
            assert (-1,) in index._store.run(sizes)
            (root / "gone.py").unlink()
            await index.refresh()
            assert (-1,) in index._store.run(sizes)

    def sizes(database: sqlite3.Connection) -> list[tuple[int]]:
        return database.execute("SELECT size FROM tree").fetchall()

    anyio.run(make)
    (home / NAME).chmod(of_file)
    home.chmod(mode)
    os.utime(root / "a.py", ns=(1, 1))
    plant({"b.py": "secret\n"})
    (root / "b.py").chmod(0)  # unreadable files are skipped, with or without this index
    answers = unprivileged(root, home, rg)
    (root / "b.py").unlink()
    plant(change) if change else (root / "a.py").unlink()
    refused, old = unprivileged(root, home, rg)
    home.chmod(0o755)
    assert answers == ["['a.py']", "['a.py']"]
    assert refused.startswith("RipwrapError could not use the index ") and "database; pass another" in refused
    unchanged = bool(change) and "a.py" not in change
    assert "refresh=False" in refused and old == ("['a.py']" if unchanged else "[]")


@pytest.mark.posix
def test_unwritable_location_raises_with_a_hint(plant: Plant, home: Path) -> None:
    root = plant({"a.py": "cookies\n"})
    rg = ripwrap.sync.resolve().path
    home.mkdir()
    home.chmod(0o555)
    try:
        refreshed, old = unprivileged(root, home, rg)
        assert (
            refreshed.startswith("RipwrapError could not use the index ")
            and "pass another location=" in refreshed.lower()
        )
        assert old.startswith("RipwrapError there is no index of ")
        refreshed, old = unprivileged(root, home / "below", rg)
        assert "could not make the directory" in refreshed and "Permission denied" in refreshed
        assert old.startswith("RipwrapError there is no index of ")
    finally:
        home.chmod(0o755)


@pytest.mark.anyio
async def test_read_only_database_is_never_rebuilt(
    kept: Index, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await kept.refresh()
    await kept.aclose()
    real, modes = sqlite3.connect, list[str]()

    def connect(address: str, **options: bool) -> sqlite3.Connection:
        modes.append(address.partition("?mode=")[2])
        if modes[-1] in refused:
            error = sqlite3.OperationalError("unable to open database file")
            error.sqlite_errorcode = 14
            raise error
        return real(address, **options)  # type: ignore[call-overload, no-any-return]

    refused = {"rwc", "rw"}
    monkeypatch.setattr(sqlite3, "connect", connect)
    assert await paths(kept, refresh=False) == {"a.py", "b.md"}
    assert modes[:2] == ["rwc", "ro"]
    await kept.aclose()
    refused.add("ro")
    modes.clear()
    for _ in range(2):
        assert await paths(kept, refresh=False) == {"a.py", "b.md"}
        await kept.aclose()
    assert modes == ["rwc", "ro", "ro&immutable=1"] * 2
    assert caplog.text.count("is read-only; changes by other processes") == 1
    monkeypatch.undo()
    change = "UPDATE meta SET value = '99' WHERE key = '{}'"
    for key, said in (
        ("chunker", "because it was made by another chunker"),
        ("schema", "because its tables have version 99"),
        ("", "file is not a database"),
    ):
        if key:
            database = sqlite3.connect(kept.location / NAME, isolation_level=None)
            database.execute(change.format(key))
            database.close()
        else:
            (kept.location / NAME).write_bytes(b"this is no database" * 1000)
        whole = (kept.location / NAME).read_bytes()
        monkeypatch.setattr(sqlite3, "connect", connect)
        with pytest.raises(RipwrapError, match=said):
            await kept.refresh()
        monkeypatch.undo()
        assert (kept.location / NAME).read_bytes() == whole


@pytest.mark.anyio
async def test_full_disk_keeps_the_old_state(index: Index, plant: Plant) -> None:
    await index.refresh()

    def limit(database: sqlite3.Connection) -> None:
        pages = database.execute("PRAGMA page_count").fetchone()[0]
        database.execute(f"PRAGMA max_page_count = {pages}")

    index._store.run(limit)
    plant(many(100))
    with pytest.raises(RipwrapError, match=r"database or disk is full; free some space"):
        await index.refresh()
    assert await paths(index, refresh=False) == {"a.py", "b.md"}
    assert len(await paths(index)) == 10  # a new connection has no such limit


@pytest.mark.loops("asyncio", "trio")
@pytest.mark.anyio
async def test_wait_for_a_busy_writer_ends_with_an_error(index: Index, plant: Plant) -> None:
    await index.refresh()
    plant({"new.py": "cookies\n"})

    def write(connection: sqlite3.Connection) -> None:
        with write_transaction(connection, patience=0.2):
            raise AssertionError("it was begun")

    with held(index.location):
        with pytest.raises(RipwrapError, match="another process is using it"):
            index._store.run(write)
        assert await paths(index, refresh=False) == {"a.py", "b.md"}
        with anyio.move_on_after(0.3) as scope:
            await index.refresh()
        assert scope.cancelled_caught
    assert await paths(index) == {"a.py", "b.md", "new.py"}


@pytest.mark.loops("asyncio", "trio")
@pytest.mark.anyio
async def test_refresh_cancelled_at_any_await_keeps_the_old_state(index: Index, plant: Plant) -> None:
    await index.refresh()

    async def refreshed() -> int:
        await index.refresh()
        return 3

    async def attempt(at: int) -> bool:
        plant({"new.py": f"cookies and word{at}\n"})
        reached = await cancel_at_await(at, refreshed())
        old = await index.search(f"word{at - 1} word{at}", refresh=False)
        assert len(old) <= 1 + (at == 1)
        assert [place.path for place in await index.search(f"word{at}")] == ["new.py"]
        assert await index.search(f"word{at - 1}") == []
        return reached

    assert await attempt_every_await(attempt) > 3
    assert (await index.check()).ok


@pytest.mark.anyio
async def test_refresh_cancelled_while_writing_keeps_the_old_state(index: Index, plant: Plant) -> None:
    await index.refresh()
    plant(many(200))
    middle = threading.Event()

    def told(progress: Progress) -> None:
        if progress.files:
            middle.set()

    async with anyio.create_task_group() as group:

        async def refresh() -> None:
            await index.refresh(told)
            raise AssertionError("it was not cancelled")

        group.start_soon(refresh)
        await until(middle.is_set)
        group.cancel_scope.cancel()
    assert await paths(index, refresh=False) == {"a.py", "b.md"}
    assert (await index.refresh()).added == 200


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


@pytest.mark.loops("asyncio", "trio")
@pytest.mark.anyio
async def test_cancelled_statement_is_interrupted(index: Index, plant: Plant) -> None:
    await index.refresh()
    plant({"new.py": "cookies\n"})
    begun = threading.Event()

    def read(database: sqlite3.Connection) -> None:
        begun.set()
        database.execute(ENDLESS).fetchone()

    def write(database: sqlite3.Connection) -> None:
        with write_transaction(database):
            database.execute("DELETE FROM chunk")
            begun.set()
            database.execute(f"INSERT INTO chunk (digest) {ENDLESS}")

    calls: list[Callable[[], object]] = [
        partial(index._store.run, read),
        partial(index._store.run, write),
        partial(index._store.read_only, read),
    ]
    for call in calls:
        begun.clear()
        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                group.start_soon(in_thread, call)
                await until(begun.is_set)
                group.cancel_scope.cancel()
            assert await paths(index, refresh=False) == {"a.py", "b.md"}
        over = Cancellation()
        token = CANCELLED.set(over)
        try:
            threading.Timer(0.05, over.set).start()
            with pytest.raises(TimeoutError, match="the call of the index was cancelled"):
                call()
        finally:
            CANCELLED.reset(token)
    assert await paths(index) == {"a.py", "b.md", "new.py"}
    assert (await index.check()).ok


@pytest.mark.loops("asyncio", "trio")
@pytest.mark.anyio
async def test_transaction_reported_as_timed_out_is_not_committed(home: Path, plant: Plant) -> None:
    over = Cancellation()

    def cancel(connection: sqlite3.Connection) -> None:
        """Cancel, and interrupt the next statement at its first step if interrupts are allowed."""
        over.set()
        connection.set_progress_handler(over.is_set, 1)

    def write(connection: sqlite3.Connection) -> None:
        with write_transaction(connection):
            connection.execute("DELETE FROM view")
            cancel(connection)

    def read(connection: sqlite3.Connection) -> None:
        with read_transaction(connection):
            cancel(connection)

    def wait(connection: sqlite3.Connection) -> None:
        cancel(connection)
        with write_transaction(connection):
            raise AssertionError("it was begun")

    async with Index(plant({"a": "word\n"}), location=home) as index:
        await index.refresh()
        for call, fails in ((read, False), (wait, True), (write, False)):
            over.clear()
            token = CANCELLED.set(over)
            try:
                with pytest.raises(TimeoutError) if fails else nullcontext():
                    index._store.run(call)
            finally:
                CANCELLED.reset(token)
            assert index._store.run(lambda connection: connection.in_transaction) is False
            assert (await index.status()).built is (call is not write)


@pytest.mark.posix
def test_index_can_be_used_in_a_forked_process(plant: Plant, home: Path) -> None:
    code = """
import os, sys, anyio
from ripwrap.index import Index
index = Index(sys.argv[1], location=sys.argv[2])
anyio.run(index.refresh)
if (pid := os.fork()) == 0:
    places = anyio.run(index.search, "cookies")
    os._exit(len(places))
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
assert len(anyio.run(index.search, "cookies")) == 1
"""
    root = plant({"a.py": "cookies\n"})
    done = forks.run(["-c", str(root), str(home)], code, cwd=root, env=os.environ)
    assert done.returncode == 0, done.stderr


@pytest.mark.loops("asyncio", "trio")
@pytest.mark.anyio
async def test_garbage_collected_index_is_closed_without_a_warning(plant: Plant, home: Path) -> None:
    index = Index(plant({"a": "word\n"}), location=home)
    await index.refresh()
    del index


def test_ordinary_use_logs_nothing(plant: Plant, home: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ripwrap")
    index = Index(plant({"a": "word\n"}), location=home)
    for _ in range(2):
        anyio.run(index.search, "word")
    assert caplog.records == []
    anyio.run(index.aclose)
