"""Full-text search of an index: order of writes, damage, full disks, read-only folders, and scores after deletions."""

import json
import os
import random
import re
import shutil
import signal
import sqlite3
import zlib
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import pytest
import tantivy
from hypothesis import given
from hypothesis import strategies as st

from index.test_store import many, paths, postings_of, unprivileged
from ripwrap import RipwrapError, sync
from ripwrap.index import Index
from ripwrap.index.storage.database import APPLICATION_ID
from ripwrap.index.storage.engine import EngineFolder, RebuildError, engine_errors
from ripwrap.index.storage.files import NAME
from ripwrap.index.storage.postings import MIN_WASTE, filling_lengths, next_length
from support import forks
from support.effort import some
from support.replacing import replace_file

Plant = Callable[..., Path]

pytestmark = [pytest.mark.slow, pytest.mark.loops("asyncio")]  # about tantivy and files, not Pythons or loops

QUERIES = ("cookies of number 7", "Shop7", "jar")


@pytest.fixture
async def index(plant: Plant, home: Path, anyio_backend: str) -> AsyncIterator[Index]:
    async with Index(plant({"a.py": "def cookies(): ...\n", "b.md": "# Cookies\n"}), location=home) as index:
        yield index


def answers(root: Path, home: Path, *, refresh: bool = True) -> list[list[str]]:
    with sync.Index(root, location=home) as index:
        return [
            [found.model_dump_json() for found in index.search(query, limit=None, refresh=refresh)] for query in QUERIES
        ]


def documents_of(home: Path) -> int:
    """Return the number of documents in full-text search, including those that the database lacks."""
    return tantivy.Index.open(str(postings_of(home))).searcher().num_docs


KILLED = """
import os, signal, sys
from ripwrap import sync
index = sync.Index(sys.argv[1], location=sys.argv[2])
left = int(sys.argv[3])
def trace(statement):
    global left
    if statement in ("BEGIN IMMEDIATE", "COMMIT", "DELETE FROM stale"):
        print(statement, flush=True)
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
index._store.run(lambda database: database.set_trace_callback(trace))
index.refresh()
"""


def killed_at(number: int, root: Path, home: Path) -> list[str]:
    """Kill a refresh before its n-th statement that begins or ends a write; return these statements up to it."""
    done = forks.run(["-c", str(root), str(home), str(number)], KILLED, cwd=root, env=os.environ)
    assert done.returncode in (0, -signal.SIGKILL) and done.stderr == ""
    return done.stdout.splitlines() if done.returncode else []


@pytest.mark.posix
def test_writer_killed_at_each_step_leaves_an_index_that_the_next_refresh_repairs(plant: Plant, tmp_path: Path) -> None:
    root, home, new = plant({"a.py": "cookies\n", "b.py": "jar of cookies\n"}), tmp_path / "home", tmp_path / "new"
    answers(root, home)
    (root / "b.py").unlink()
    plant({"a.py": "cookies and a jar\n", "c.py": "cookies\n"})
    after = answers(root, new)
    killed: list[str] = []
    while True:
        copy = shutil.copytree(home, tmp_path / f"home-{len(killed)}")
        statements = killed_at(len(killed) + 1, root, copy)
        if not statements:
            break
        killed.append(statements[-1])
        with sync.Index(root, location=copy) as index:
            assert index.check().ok
        with sync.Index(root, location=copy) as index:  # without chunks of files that have changed
            found = {(one.path, one.text) for one in index.search("cookies jar", limit=None, refresh=False)}
        assert found <= {("a.py", "cookies and a jar\n"), ("c.py", "cookies\n")}
        assert answers(root, copy) == after
        assert documents_of(copy) == documents_of(new)
    assert killed == ["BEGIN IMMEDIATE", "DELETE FROM stale", "COMMIT"] * 2


@pytest.mark.posix
def test_documents_of_a_killed_writer_are_removed_even_if_no_file_has_changed(plant: Plant, home: Path) -> None:
    root = plant({"a.py": "cookies\n"})
    before, documents = answers(root, home), documents_of(home)
    plant({"b.py": "cookies and a jar\n"})
    assert killed_at(3, root, home)[-1] == "COMMIT"
    (root / "b.py").unlink()
    assert documents_of(home) > documents
    assert answers(root, home, refresh=False) == before
    assert answers(root, home) == before
    assert documents_of(home) == documents


@pytest.mark.posix
def test_deletions_file_of_a_killed_writer_does_not_break_the_next_commit(plant: Plant, tmp_path: Path) -> None:
    """tantivy writes a file of deletions, then the list of files. The next commit uses the same file name."""
    root, home, copy = plant(many(3)), tmp_path / "home", tmp_path / "copy"
    answers(root, home)
    plant({"src/1.py": "cookies\n"})
    assert killed_at(4, root, home)[-1] == "BEGIN IMMEDIATE"  # documents were added, but none was deleted
    shutil.copytree(home, copy)
    after = answers(root, home)
    (deletions,) = postings_of(home).glob("*.del")
    for name in (deletions.name, ".managed.json"):
        shutil.copyfile(postings_of(home) / name, postings_of(copy) / name)
    assert answers(root, copy) == after
    assert documents_of(copy) == documents_of(home)


@pytest.mark.posix
def test_prune_removes_documents_of_a_killed_writer(plant: Plant, home: Path) -> None:
    root = plant({"a.py": "cookies\n"})
    answers(root, home)
    documents = documents_of(home)
    plant({"b.py": "cookies and a jar\n"})
    assert killed_at(3, root, home)[-1] == "COMMIT"
    assert documents_of(home) > documents
    with sync.Index(root, location=home) as index:
        assert index.check().ok
        index.prune()
        assert index.check().ok
    assert documents_of(home) == documents


def test_size_of_an_index_counts_full_text_search(plant: Plant, home: Path) -> None:
    with sync.Index(plant({"a.py": "cookies\n"}), location=home) as index:
        index.refresh()
        before, files = index.status().bytes, list(postings_of(home).iterdir())
        (postings_of(home) / "meta.json").write_bytes((postings_of(home) / "meta.json").read_bytes() + b" " * 1000)
        assert index.status().bytes == before + 1000
        assert before > sum(file.stat().st_size for file in files) > 1000


WRITE_ALL = """
import os, sys
from pathlib import Path
from ripwrap import sync
root = Path(sys.argv[1])
def write(number):
    with sync.Index(root, location=sys.argv[2]) as index:
        for round in range(12):
            (root / f"{number}.py").write_text(f"jar = 'cookies {round} of {number}'\\n" * (round + 1))
            assert [found.path for found in index.search("jar", limit=None) if found.path.startswith(str(number))]
children = []
for number in range(3):
    if (pid := os.fork()) == 0:
        write(number)
        sys.exit()
    children.append(pid)
for pid in children:
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@pytest.mark.posix
def test_processes_that_change_files_and_search_at_once_raise_nothing(plant: Plant, home: Path) -> None:
    root = plant(many(20))
    done = forks.run(["-c", str(root), str(home)], WRITE_ALL, cwd=root, env=os.environ)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n" * 3, "")
    with sync.Index(root, location=home) as index:
        index.refresh()
        assert index.check().ok
    assert answers(root, home) == answers(root, home.with_name("new"))


def test_search_while_another_process_removes_documents_returns_the_old_or_new_state(
    plant: Plant, tmp_path: Path
) -> None:
    root, home = plant({"a.py": "cookies\n", "b.py": "jar of cookies\n"}), tmp_path / "home"
    before, elsewhere = answers(root, home), tmp_path / "b.py"
    (root / "b.py").rename(elsewhere)
    plant({"c.py": "jar\n"})
    after = answers(root, tmp_path / "new")
    elsewhere.rename(root / "b.py")
    number, seen = 0, set[str]()
    while True:
        number += 1
        copy = shutil.copytree(home, tmp_path / f"home-{number}")
        left = number

        def write(statement: str) -> None:
            nonlocal left
            left -= "FROM postings" in statement or statement in ("BEGIN", "ROLLBACK")
            if left == 0:
                left -= 1
                with sync.Index(root, location=copy) as writer:  # noqa: B023 - it is called in this round
                    (root / "b.py").rename(elsewhere)
                    writer.refresh()
                    elsewhere.rename(root / "b.py")  # results need the text of the file

        with sync.Index(root, location=copy) as index:
            index._store.run(lambda database: database.set_trace_callback(write))
            during = [found.model_dump_json() for found in index.search("jar", limit=None, refresh=False)]
        if left > 0:
            break
        assert during in (before[2], after[2])
        seen.add("before" if during == before[2] else "after")
    assert number > 3 and seen == {"before", "after"}


def with_checksum(payload: bytes) -> bytes:
    footer = json.dumps(
        {"version": {"major": 0, "minor": 27, "patch": 0, "index_format_version": 7}, "crc": zlib.crc32(payload)}
    ).encode()
    return payload + footer + len(footer).to_bytes(4, "little") + (1337).to_bytes(4, "little")


def segment(folder: Path, kind: str) -> Path:
    return next(folder.glob(f"*.{kind}"))


def newer(folder: Path) -> None:
    for file in folder.glob("*.*"):
        if b'"index_format_version":7' in (content := file.read_bytes()):
            replace_file(file, content.replace(b'"index_format_version":7', b'"index_format_version":9'))


def of_another_schema(folder: Path) -> None:
    meta = folder / "meta.json"
    meta.write_text(meta.read_text().replace('"words"', '"text"'))


def truncate(file: Path) -> None:
    replace_file(file, file.read_bytes()[: file.stat().st_size // 2])


def spoil(file: Path) -> None:
    with file.open("r+b") as opened:  # not truncated; see `replace_file()`
        (first,) = opened.read(1)
        opened.seek(0)
        opened.write(bytes([first ^ 1]))


def damage_segment(how: Callable[[Path], object], kind: str, folder: Path) -> None:
    how(segment(folder, kind))


HOW: dict[Callable[[Path], object], tuple[str, ...]] = {
    os.unlink: ("fast", "pos"),
    truncate: ("fieldnorm", "store"),
    spoil: ("idx", "term"),
}
DAMAGE: dict[str, Callable[[Path], object]] = {
    "no directory": shutil.rmtree,
    "no list": lambda folder: (folder / "meta.json").unlink(),
    "junk list": lambda folder: (folder / "meta.json").write_bytes(b"\xa5" * 100),
    "list of another kind": lambda folder: (folder / "meta.json").write_text("[1]"),
    "list of files elsewhere": lambda folder: (folder / "meta.json").write_text(
        json.dumps({"segments": [{"segment_id": "../../../precious", "deletes": None}]})
    ),
    "empty list": lambda folder: (folder / "meta.json").write_text(
        json.dumps(json.loads((folder / "meta.json").read_text()) | {"segments": []})
    ),
    "newer format": newer,
    "another schema": of_another_schema,
    "junk that has its checksum": lambda folder: replace_file(segment(folder, "term"), with_checksum(b"\xa5" * 999)),
    **{f"{how.__name__} {kind}": partial(damage_segment, how, kind) for how, kinds in HOW.items() for kind in kinds},
}


@pytest.mark.anyio
@pytest.mark.parametrize("damage", some(DAMAGE, 6))
async def test_damaged_full_text_search_is_rebuilt_with_one_log_line(
    index: Index, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    expected = [found.model_dump_json() for found in await index.search("cookies")]
    for when in ("open", "closed"):
        if when == "closed":
            await index.aclose()
        DAMAGE[damage](postings_of(index.location))
        health = await index.check()
        assert not health.ok
        assert "".join(health.messages).endswith("; refresh() rebuilds it and keeps the embeddings.")
        caplog.clear()
        assert [found.model_dump_json() for found in await index.search("cookies")] == expected
        assert [record.message for record in caplog.records if "is rebuilt: " in record.message] == [
            record.message for record in caplog.records
        ]
        assert len(caplog.records) == 1
        assert (await index.check()).ok
        assert len(list(index.location.glob("postings-*"))) == 1


@pytest.mark.anyio
async def test_damage_that_only_a_check_finds_is_repaired_by_the_next_refresh(index: Index) -> None:
    await index.refresh()
    file = segment(postings_of(index.location), "idx")
    before = file.stat()
    spoil(file)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert not (await index.check()).ok
    await index.refresh()
    assert (await index.check()).ok


@pytest.mark.anyio
async def test_check_of_unreadable_full_text_search_does_not_advise_a_rebuild(index: Index) -> None:
    await index.refresh()
    meta = postings_of(index.location) / "meta.json"
    meta.unlink()
    meta.mkdir()  # cannot be read as a file
    (message,) = (await index.check()).messages
    assert message.startswith("The index failed the check: could not read the index ")
    assert "rebuild" not in message


@pytest.mark.anyio
async def test_damage_is_not_repaired_without_a_refresh(index: Index) -> None:
    await index.refresh()
    spoil(segment(postings_of(index.location), "idx"))
    with pytest.raises(RipwrapError, match=r"there is no index of .* refresh\(\) makes it"):
        await index.search("cookies", refresh=False)
    assert await paths(index) == {"a.py", "b.md"}


@pytest.mark.anyio
async def test_rebuild_of_full_text_search_keeps_vectors(index: Index) -> None:
    await index.refresh()
    index._store.run(lambda database: database.execute("INSERT INTO vec VALUES (x'00', 'model', x'0000')"))
    spoil(segment(postings_of(index.location), "idx"))
    await index.refresh()
    assert index._store.run(lambda database: database.execute("SELECT count(*) FROM vec").fetchone()) == (1,)


@pytest.mark.anyio
async def test_rebuild_keeps_files_of_other_programs_in_the_directory(index: Index) -> None:
    await index.refresh()
    folder = postings_of(index.location)
    (folder / "notes.txt").write_text("precious")
    await index.refresh(rebuild=True)
    assert await paths(index) == {"a.py", "b.md"}
    assert (folder / "notes.txt").read_text() == "precious"
    assert (await index.check()).ok


@pytest.mark.anyio
async def test_directories_with_other_names_are_not_removed(index: Index) -> None:
    for name in ("postings", "postings-notes", "postings-0123456789abcdeg"):
        (index.location / name).mkdir(parents=True)
        (index.location / name / "meta.json").write_text("precious")
    left = index.location / "postings-0123456789abcdef"
    left.mkdir()
    (left / "meta.json").write_text("of a process that was killed")
    assert await paths(index) == {"a.py", "b.md"}
    await index.refresh(rebuild=True)
    assert not left.exists()
    for name in ("postings", "postings-notes", "postings-0123456789abcdeg"):
        assert (index.location / name / "meta.json").read_text() == "precious"


@pytest.mark.posix
@pytest.mark.anyio
async def test_link_in_place_of_the_directory_is_not_followed(index: Index, tmp_path: Path) -> None:
    await index.refresh()
    await index.aclose()
    folder = postings_of(index.location)
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    for call in (index.refresh, index.check, index.prune):
        with pytest.raises(RipwrapError, match=r"postings-.* is a symbolic link, .* remove it, or pass another"):
            await call()
    folder.unlink()
    assert await paths(index) == {"a.py", "b.md"}
    assert list((tmp_path / "elsewhere").glob("*.idx"))


OLD_TABLES = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE chunk (id INTEGER PRIMARY KEY, blob INTEGER NOT NULL, text NOT NULL)",
    "CREATE VIRTUAL TABLE fts USING fts5(path, body, content='')",
    "INSERT INTO meta VALUES ('schema', '2'), ('chunker', 'windows 1')",
    "INSERT INTO fts (rowid, path, body) VALUES (1, 'a.py', 'cookies')",
)


@pytest.mark.anyio
async def test_index_of_the_old_format_is_rebuilt_with_one_log_line(
    index: Index, caplog: pytest.LogCaptureFixture
) -> None:
    index.location.mkdir()
    database = sqlite3.connect(index.location / NAME, isolation_level=None)
    for statement in OLD_TABLES:
        database.execute(statement)
    database.close()
    assert (await index.status()).outdated
    assert await paths(index) == {"a.py", "b.md"}
    (record,) = caplog.records
    assert record.message.endswith("is rebuilt: its tables have version 2 instead of 6")


FULL = """
import random, resource, sys
from pathlib import Path
from ripwrap import RipwrapError, sync
sys.dont_write_bytecode = True
root, home = map(Path, sys.argv[1:3])
chance = random.Random(3)
with sync.Index(root, location=home, chunker="windows") as index:
    index.refresh()
    words = [f"{chance.randrange(10**9):x}" for _ in range(20_000)]
    (root / "new.txt").write_text("cookies\\n" + "\\n".join(words))
    before = {file.name for file in home.rglob("*")}
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), most))
    for _ in range(2):
        try:
            index.refresh()
        except RipwrapError as error:
            print(error)
    print(sorted({file.name for file in home.rglob("*")} - before))
    print((home / "index.sqlite3-wal").stat().st_size)
    print([found.path for found in index.search("cookies", refresh=False)])
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    print([found.path for found in index.search("cookies")], index.check().ok)
"""


@pytest.mark.posix
@pytest.mark.parametrize("size", [20_000, 75_000, 180_000])
def test_full_disk_raises_one_error_and_keeps_the_old_state(plant: Plant, home: Path, size: int) -> None:
    """Simulate a full disk with a limit on file sizes, which a file of tantivy reaches first.

    The files of the unfinished refresh are removed, and the log is emptied. Python must not write
    truncated bytecode of modules under the limit, which breaks later tests.
    """
    root = plant({"a.py": "def cookies(): ...\n"})
    done = forks.run(["-c", str(root), str(home), str(size)], FULL, cwd=root, env=os.environ)
    assert done.returncode == 0, done.stderr
    *errors, left, log, old, new = done.stdout.splitlines()
    assert left == "[]"
    assert log == "0" or size < 100_000  # with such a limit, the log cannot be written into the database either
    assert len(errors) == 2 and errors[0] == errors[1]
    assert re.fullmatch(r"could not use the index .*: .*; .*pass another location=.*", errors[0])
    assert old == "['a.py']" and new == "['a.py', 'new.txt'] True"


WRITE_TOO_MUCH = """
import random, resource, sys
from pathlib import Path
from ripwrap import RipwrapError
sys.dont_write_bytecode = True
from ripwrap.index.storage.engine import EngineFolder, engine_errors
import tantivy
schema = tantivy.SchemaBuilder().add_text_field("words", tokenizer_name="raw").build()
folder = EngineFolder(Path(sys.argv[1]), lambda: schema, {})
folder.make()
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 10**9))
writer = folder.writer(1)
try:
    with engine_errors(folder.path, writing=True):
        for number in range(100_000):
            writer.add_document(tantivy.Document(words=f"word {number}"))
        writer.commit()
except RipwrapError as error:
    print(error)
folder.abandon(writer)
resource.setrlimit(resource.RLIMIT_FSIZE, (10**9, 10**9))
writer = folder.writer(1)
writer.commit()
print(folder.searcher().num_docs)
"""


@pytest.mark.posix
def test_error_of_tantivy_names_the_limit_that_is_its_cause(tmp_path: Path) -> None:
    done = forks.run(["-c", str(tmp_path / "words")], WRITE_TOO_MUCH, cwd=tmp_path, env=os.environ)
    assert done.returncode == 0, done.stderr
    error, count = done.stdout.splitlines()
    assert re.fullmatch(
        rf"could not use the index {tmp_path}/words: "
        r"(File too large|tantivy could not write); the limit of the size of files \(ulimit -f\) is reached; "
        "raise the limit, or pass another location=",
        error,
    )
    assert count == "0"


@pytest.mark.posix
def test_read_only_directory_is_searched_through_links(plant: Plant, home: Path) -> None:
    """tantivy needs write access to open a directory, because it locks a file there."""
    root = plant({"a.py": "cookies\n", "b.py": "cookies of a jar\n"})
    answers(root, home)
    (root / "b.py").unlink()
    answers(root, home)
    folder = postings_of(home)
    for file in (*folder.iterdir(), home / NAME):
        file.chmod(0o444)
    for one in (folder, home):
        one.chmod(0o555)
    try:
        assert unprivileged(root, home, sync.resolve().path) == ["['a.py']", "['a.py']"]
    finally:
        home.chmod(0o755)
    plant({"new.py": "cookies and more\n"})
    (home / NAME).chmod(0o644)
    refused, old = unprivileged(root, home, sync.resolve().path)
    folder.chmod(0o755)
    assert re.fullmatch(
        r"RipwrapError could not use the index .*postings-.*: Permission denied; make its directory writable, or pass "
        r"another location=",
        refused,
    )
    assert old == "['a.py']"


@pytest.mark.posix
def test_unreadable_directory_raises_and_is_not_rebuilt(plant: Plant, home: Path) -> None:
    root = plant({"a.py": "cookies\n"})
    answers(root, home)
    folder = postings_of(home)
    folder.chmod(0)
    try:
        for said in unprivileged(root, home, sync.resolve().path):
            assert re.fullmatch(
                r"RipwrapError could not read the index .*: Permission denied; make it readable, or pass .*", said
            )
    finally:
        folder.chmod(0o700)
    assert postings_of(home) == folder
    assert unprivileged(root, home, sync.resolve().path) == ["['a.py']", "['a.py']"]


OPEN_TOO_MUCH = """
import resource, sys
from pathlib import Path
from ripwrap import RipwrapError
from ripwrap.index.storage.engine import EngineFolder, engine_errors
import tantivy
schema = tantivy.SchemaBuilder().add_text_field("words", tokenizer_name="raw").build()
folder = EngineFolder(Path(sys.argv[1]), lambda: schema, {})
folder.make()
resource.setrlimit(resource.RLIMIT_NOFILE, (3, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
try:
    folder.searcher()
except RipwrapError as error:
    print(error)
try:
    with engine_errors(folder.path, writing=True):
        open(sys.argv[1] + "/new", "w")
except RipwrapError as error:
    print(error)
"""


@pytest.mark.posix
def test_error_of_too_many_open_files_advises_to_close_files_only(tmp_path: Path) -> None:
    done = forks.run(["-c", str(tmp_path / "words")], OPEN_TOO_MUCH, cwd=tmp_path, env=os.environ)
    assert done.returncode == 0, done.stderr
    limit = "the limit of the number of open files (ulimit -n) is reached"
    why = f"Too many open files; {limit}; raise the limit, or end programs, and try again"
    assert done.stdout.splitlines() == [
        f"could not read the index {tmp_path}/words/meta.json: {why}",
        f"could not use the index {tmp_path}/words: {why}",
    ]


@pytest.mark.skipif(os.name == "nt", reason="Windows removes no file that is open")
def test_directory_that_is_removed_during_a_write_is_created_again(tmp_path: Path) -> None:
    """Another process may rebuild the index; this is not reported as a full disk."""
    schema = tantivy.SchemaBuilder().add_text_field("words", tokenizer_name="raw").build()
    folder = EngineFolder(tmp_path / "words", lambda: schema, {})
    folder.make()
    writer = folder.writer(1)
    shutil.rmtree(folder.path)
    with pytest.raises(RebuildError), engine_errors(folder.path, writing=True):
        writer.add_document(tantivy.Document(words="word"))
        writer.commit()
        writer.wait_merging_threads()
    folder.abandon(writer)


def test_abandoned_write_removes_only_what_it_has_left(tmp_path: Path) -> None:
    """Not the files of the last commit, not the lock of another writer, and no file of others."""
    schema = tantivy.SchemaBuilder().add_text_field("words", tokenizer_name="raw").build()
    folder = EngineFolder(tmp_path / "words", lambda: schema, {})
    folder.make()
    writer = folder.writer(1)
    writer.add_document(tantivy.Document(words="word"))
    writer.commit()
    writer.wait_merging_threads()
    writer = folder.writer(1)
    locks = {".tantivy-writer.lock", ".tantivy-meta.lock"}
    for name in (*locks, "notes.txt"):
        (folder.path / name).touch()
    kept = {file.name for file in folder.path.iterdir()}
    (folder.path / f"{'0' * 32}.idx").write_text("left")
    writer.add_document(tantivy.Document(words="another word"))
    folder.abandon(writer)
    assert {file.name for file in folder.path.iterdir()} | locks == kept | locks
    assert (folder.path / ".tantivy-meta.lock").exists()
    assert folder.searcher().num_docs == 1


@pytest.mark.anyio
async def test_rebuild_leaves_a_directory_that_another_process_writes(index: Index) -> None:
    """The other process adds files during the removal, so the directory cannot be removed."""
    await index.refresh()
    (old,) = index.location.glob("postings-*")
    (old / ".tmpabcdef").mkdir()  # a directory with a name of tantivy, which cannot be removed as a file
    await index.refresh(rebuild=True)
    assert await paths(index) == {"a.py", "b.md"}
    (old / ".tmpabcdef").rmdir()
    await index.refresh(rebuild=True)
    assert not old.exists()


@given(st.lists(st.integers(0, 2_000), max_size=60))
def test_filling_documents_keep_the_mean_length_constant(lengths: list[int]) -> None:
    stored = [next_length(length) for length in lengths]
    assert all(0 <= new - old <= old // 8 for new, old in zip(stored, lengths, strict=True))
    every = [*stored, *filling_lengths(stored)]
    assert sum(every) == 112 * len(every)
    assert every == [next_length(length) for length in every]


def test_tantivy_does_not_round_the_stored_lengths(tmp_path: Path) -> None:
    """tantivy rounds lengths down: the score changes exactly at the lengths that `next_length()` returns."""
    schema = tantivy.SchemaBuilder().add_text_field("words", tokenizer_name="whitespace", index_option="freq").build()
    index = tantivy.Index(schema)
    writer = index.writer(15_000_000, 1)
    for length in range(1, 700):
        writer.add_document(tantivy.Document(words="word" + " filler" * (length - 1)))
    writer.commit()
    index.reload()
    query = tantivy.Query.term_query(schema, "words", "word", "freq")
    scores = [0.0] * 700
    for score, address in index.searcher().search(query, limit=700).hits:
        scores[address.doc + 1] = score
    first = [length for length in range(2, 700) if scores[length] < scores[length - 1]]
    assert first == [length for length in range(2, 700) if next_length(length) == length]


@pytest.mark.timeout(300)
def test_scores_after_many_edits_equal_those_of_a_new_index(plant: Plant, home: Path) -> None:
    """Merges of segments with deleted documents round the lengths of the other documents."""
    chance = random.Random(5)
    words = ["cookies", "jar", "Shop7", "number", "get_cookie", "setCookie", "parse", "the", "of", "lid", "7", "größe"]

    def content() -> str:
        return "\n".join(
            " ".join(chance.choices(words, k=chance.randrange(1, 20))) for _ in range(chance.randrange(1, 300))
        )

    root = plant({f"{number}.txt": content() for number in range(12)})
    merged = False
    for _ in range(25):
        plant({f"{chance.randrange(16)}.txt": content() for _ in range(chance.randrange(1, 4))})
        (root / f"{chance.randrange(16)}.txt").unlink(missing_ok=True)
        last = len(list(postings_of(home).glob("*.idx"))) if home.exists() else 0
        with sync.Index(root, location=home) as index:
            index.refresh()
        merged = merged or len(list(postings_of(home).glob("*.idx"))) < last
    assert merged
    assert answers(root, home) == answers(root, home.with_name("new"))


@pytest.mark.timeout(300)
def test_index_with_many_deleted_documents_is_rebuilt(
    plant: Plant, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def content(version: int) -> str:
        return f"cookies of number {version}\n" * 4_000  # some 100 chunks

    root = plant({f"{one}.txt": content(0) for one in range(7)})
    with sync.Index(root, location=home, chunker="windows") as index:
        index._store.postings.min_waste = MIN_WASTE // 10
        index.refresh()
        first = postings_of(home)
        for version in (1, 2, 3):  # tantivy removes segments without remaining documents
            plant({f"{one}.txt": content(version) for one in range(7 - version)})
            index.refresh()
        assert "is rebuilt: its full-text index has too many deleted documents" in caplog.text
        assert index.check().ok
    assert postings_of(home) != first
    assert answers(root, home) == answers(root, home.with_name("new"))
