"""Processes that split the files of a large refresh: the same index as without them, whatever happens to them."""

import logging
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import anyio
import psutil
import pytest

from ripwrap import sync
from ripwrap._code.outline import CodeNames
from ripwrap._code.treesitter.merge import chunker_version, syntax_chunks
from ripwrap._code.treesitter.parser import is_supported
from ripwrap._code.treesitter.worker import CodeReader, Source
from ripwrap._ranking import document
from ripwrap._ranking.document import SourceText
from ripwrap._system.subprocess.worker import StartError, WorkerProcess
from ripwrap.index import Index, Progress, RefreshResult, search
from ripwrap.index.refresh import refresh
from ripwrap.index.splitting import (
    _BATCH_BYTES,
    MIN_BYTES,
    WINDOW_CHUNKER,
    Chunker,
    SplitRequest,
    Splitter,
    split_file,
    words_of,
    words_of_chunks,
)
from ripwrap.index.storage.postings import Postings
from ripwrap.index.storage.store import Store
from ripwrap.index.storage.tables import View
from support.parsers import running
from support.waiting import until_blocking

Plant = Callable[..., Path]

CODE = "class Basket:\n    def addItem(self, item): ...\n\n\nMAX_ITEMS = 9\n\n"
ODD: dict[str | bytes, str | bytes] = {
    "a.py": CODE,
    "b/long.py": CODE * 200,
    b"caf\xe9.txt": "a name that is not UTF-8\n",
    "c.h": b"/* caf\xe9 */\nstatic int find_basket(void)\n{\n}\n" * 50,
    "empty": "",
    "blank": "\n\n \n",
    "utf16.txt": "\ufeffclass Wide:\n    größe = 1\n".encode("utf-16-le"),
    "japanese.md": "# カートに追加する\n\n商品を追加します。\n",
    "picture.png": b"\x89PNG\0\0\0",
    "large.txt": "a basket and nothing else\n" * 50_000,
    **{f"many/{number}.py": f"{CODE}# {number}\n" for number in range(100)},  # enough for reports of progress
    "private \ue000.txt": "\ue000 basket \x01 \x85 \u2028 end\n",
}
"""Files of all kinds: the last is about characters that end a line for some functions."""


def build(
    root: Path,
    location: Path,
    processes: int,
    progress: Callable[[Progress], object] | None = None,
    chunker: Chunker = WINDOW_CHUNKER,
) -> RefreshResult:
    """Refresh an index with processes, however small the directory."""
    paths = sorted(os.path.relpath(os.path.join(at, name), root) for at, _, names in os.walk(root) for name in names)
    store = Store(location, {"chunker": chunker.version})
    view, splitter = View(str(root), "main", '["--"]'), Splitter(chunker, processes, least=0)
    try:
        done = store.run(lambda database: refresh(database, store, view, paths, splitter, None, progress, insist=True))
    finally:
        store.close()
    assert done is not None
    return done


def content(location: Path) -> tuple[dict[str, list[tuple[object, ...]]], dict[str, list[tuple[int, float]]]]:
    """Return the rows of an index, without random numbers and times, and the chunks of words, with their scores."""
    database = sqlite3.connect(location / "index.sqlite3", isolation_level=None)
    rows = {
        table: database.execute(f"SELECT {columns} FROM {table} ORDER BY 1, 2").fetchall()
        for table, columns in {
            "blob": "id, path, digest, trigrams, names, code",
            "chunk": "id, blob, start, size, line, last, digest, symbol",
            "definition": "name, chunk",
            "tree": "path, view, blob, size, mtime_ns, ctime_ns, note",
            "view": "root, options, name, stamps",
        }.items()
    }
    with Postings(location).reading(database) as reader:
        words = ("basket", "item", "add", "größe", "追加", "caf", "end", "static", "png", "long")
        scores = {word: sorted(reader.match({word: 1.0}).best(5_000)) for word in words}
    database.close()
    return rows, scores


def workers() -> list[psutil.Process]:
    """Return the processes of this one that split files."""
    return running("index.splitting")


@pytest.fixture
def odd(plant: Plant) -> Path:
    """Make a folder of all kinds of files, one of them with a name that is not UTF-8."""
    root = plant(ODD)
    time.sleep(0.1)  # the stamp of a file that was written a moment before is not stored
    return root


@pytest.mark.slow
@pytest.mark.usefixtures("leaks_nothing")
def test_index_is_the_same_with_processes(odd: Path, tmp_path: Path) -> None:
    """All rows, byte for byte, and all scores are those of a build in one process."""
    seen: set[int] = set()
    alone = build(odd, tmp_path / "alone", 0, lambda _: seen.update(child.pid for child in workers()))
    assert seen == set()
    shared = build(odd, tmp_path / "shared", 2, lambda _: seen.update(child.pid for child in workers()))
    assert shared.model_copy(update={"seconds": 0}) == alone.model_copy(update={"seconds": 0})
    assert content(tmp_path / "shared") == content(tmp_path / "alone")
    assert len(content(tmp_path / "alone")[0]["chunk"]) > 1_000
    assert seen and workers() == []


@pytest.mark.extra
@pytest.mark.slow
def test_index_of_definitions_is_the_same_with_processes(odd: Path, tmp_path: Path) -> None:
    pytest.importorskip("semble_grammars")
    syntax = Chunker(chunker_version(), syntax_chunks)
    build(odd, tmp_path / "alone", 0, chunker=syntax)
    build(odd, tmp_path / "shared", 2, chunker=syntax)
    alone = content(tmp_path / "alone")
    assert content(tmp_path / "shared") == alone
    assert any("Basket" in str(row) for row in alone[0]["chunk"])


@pytest.mark.extra
@pytest.mark.slow
def test_search_takes_the_definitions_of_unchanged_files_from_the_index(
    odd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A parser finds the same definitions; it reads again only a file that has changed."""
    pytest.importorskip("semble_grammars")
    for sample in (Path(__file__).parents[1] / "data" / "sections").iterdir():
        (odd / sample.name).write_bytes(sample.read_bytes() + b"# caf\xe9 \r\n")
    parsed: list[str] = []
    ask = CodeReader.names_of

    def names_of(self: CodeReader, sources: Sequence[Source], seconds: float) -> Iterator[CodeNames | None]:
        parsed.extend(source.path for source in sources)
        return ask(self, sources, seconds)

    monkeypatch.setattr(CodeReader, "names_of", names_of)
    with sync.Index(odd, location=tmp_path / "index", workers=0) as index:
        index.refresh()
        for query in ("Basket", "add an item to the basket", "class Shop add"):
            found = index.search(query, refresh=False, limit=40)
            assert found and {path for path in parsed if is_supported(path, (odd / path).read_text("latin-1"))} == set()
            with monkeypatch.context() as patch:
                patch.setattr(search, "code_of", lambda *_: None)
                patch.setattr(document, "_KNOWN", {})
                assert index.search(query, refresh=False, limit=40) == found
            assert parsed
            parsed.clear()
        (odd / "a.py").write_text(f"import os\n\n\n{CODE}" * 9)
        assert "a.py" in {one.path for one in index.search("Basket", limit=40)} and parsed == []


@pytest.mark.slow
def test_known_content_is_read_and_not_split(odd: Path, tmp_path: Path) -> None:
    first = split_file(str(odd), SplitRequest("a.py", ()), follow=False, chunker=WINDOW_CHUNKER)
    again = split_file(str(odd), SplitRequest("a.py", (first.digest,)), follow=False, chunker=WINDOW_CHUNKER)
    assert first.text is not None and again == first._replace(text=None)
    build(odd, tmp_path / "index", 2)
    before = content(tmp_path / "index")[0]
    for file in odd.rglob("*"):
        os.utime(file, (9, 9))
    done = build(odd, tmp_path / "index", 2)
    assert (done.added, done.changed, done.removed, done.chunks) == (0, 0, 0, 0)
    after = content(tmp_path / "index")[0]
    assert before["chunk"] == after["chunk"] and before["tree"] != after["tree"]


@pytest.mark.slow
def test_files_of_a_killed_process_are_split_by_this_one(odd: Path, tmp_path: Path) -> None:
    many = {f"m{number}.py": f"{CODE * 60}# {number}\n" for number in range(260)}
    for name, text in many.items():
        (odd / name).write_text(text)
    time.sleep(0.1)
    killed: list[int] = []

    def kill(_: Progress) -> None:
        for child in workers():
            child.kill()
            killed.append(child.pid)

    build(odd, tmp_path / "alone", 0)
    build(odd, tmp_path / "shared", 2, kill)
    assert content(tmp_path / "shared") == content(tmp_path / "alone")
    assert killed and workers() == []


@pytest.mark.slow
@pytest.mark.parametrize("broken", ["missing", "frozen"])
def test_system_without_processes_builds_the_same_index(
    broken: str, odd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "ripwrap")
    build(odd, tmp_path / "alone", 0)
    if broken == "missing":
        monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))
    else:  # `sys.executable` is the program itself, which must not be started again
        marker = tmp_path / "started"
        program = tmp_path / "program"
        program.write_text(f"#!/bin/sh\ntouch {marker}\n")
        program.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(program))
        monkeypatch.setattr(sys, "frozen", True, raising=False)
    build(odd, tmp_path / "shared", 2)
    assert content(tmp_path / "shared") == content(tmp_path / "alone")
    assert not (tmp_path / "started").exists()
    logged = [message for message in caplog.messages if "could not start worker processes" in message]
    assert len(logged) == (broken == "missing")


@pytest.mark.slow
def test_process_of_another_version_is_not_used() -> None:
    """The package may have been upgraded since this process started."""
    worker = WorkerProcess("from ripwrap.index.splitting import serve; serve(['0', '0', 'windows 3'])", 60, 60)
    with pytest.raises(StartError, match=r"it ended with exit code 1"):
        worker.request([b"[]"])


def test_number_of_processes_is_checked(plant: Plant) -> None:
    with pytest.raises(ValueError, match=r"workers must be 0 or more, got -1"):
        Index(plant({}), workers=-1)
    wrong: Iterable[object] = ("2", 1.5, True)
    for one in wrong:
        with pytest.raises(TypeError, match=r"workers must be an int of 0 or more, or None; got"):
            Index(plant({}), workers=one)  # type: ignore[arg-type]


def of_size(size: int) -> dict[str, str]:
    text = CODE * 100
    return {f"m{number}.py": f"# {number}\n{text}" for number in range(size // len(text) + 1)}


LEAST = MIN_BYTES // 4
"""Size from which the tests below start processes: more than a batch for each of two."""


@pytest.fixture
def large(plant: Plant) -> Path:
    """Make a folder with enough text for processes."""
    assert LEAST > 2 * _BATCH_BYTES
    return plant(of_size(LEAST))


@pytest.mark.slow
def test_small_refresh_starts_no_process(plant: Plant, tmp_path: Path) -> None:
    large = plant(of_size(MIN_BYTES))
    seen: list[int] = []
    with sync.Index(large, location=tmp_path / "index", chunker="windows", workers=2) as index:
        index.refresh(on_progress=lambda _: seen.append(len(workers())))
        assert max(seen) == 2 and workers() == []
        seen.clear()
        (large / "m1.py").write_text("changed = 1\n")
        assert index.refresh(on_progress=lambda _: seen.append(len(workers()))).changed == 1
        assert max(seen) == 0


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.loops("asyncio")
async def test_cancelled_refresh_leaves_no_process(large: Path, tmp_path: Path) -> None:
    seen = anyio.Event()
    async with Index(large, location=tmp_path / "index", chunker="windows", workers=2) as index:
        index._splitter = replace(index._splitter, least=LEAST)

        def report(_: Progress) -> None:
            if workers():
                anyio.from_thread.run_sync(seen.set)

        async with anyio.create_task_group() as group:
            group.start_soon(lambda: index.refresh(on_progress=report))
            await seen.wait()
            group.cancel_scope.cancel()
        assert workers() == []
        index._splitter = replace(index._splitter, processes=0)  # which are slow to start
        done = await index.refresh()
        assert done.added == len(os.listdir(large))
        assert (await index.check()).ok


SCRIPT = """
import os, signal, sys
from dataclasses import replace
import psutil
from ripwrap import sync

def report(progress):
    children = psutil.Process().children()
    if len(children) >= 2 and progress.chunks:
        print(*(child.pid for child in children), flush=True)
        os.kill(os.getpid(), getattr(signal, sys.argv[3]))

print("once", flush=True)
with sync.Index(sys.argv[1], location=sys.argv[2], chunker="windows", workers=2) as index:
    index._splitter = replace(index._splitter, least=int(sys.argv[4]))
    try:
        index.refresh(on_progress=report)
    except KeyboardInterrupt:
        print("interrupted", len(psutil.Process().children()), flush=True)
"""
"""Script without `if __name__ == "__main__"`, which a signal stops while it builds an index."""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
@pytest.mark.parametrize("stop", ["SIGINT", "SIGKILL"])
def test_stopped_script_leaves_no_process(stop: str, large: Path, tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    ran = subprocess.run(
        [sys.executable, script, large, tmp_path / "index", stop, str(LEAST)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=env,
    )
    once, pids, *rest = ran.stdout.splitlines()
    assert once == "once" and len(pids.split()) == 2
    if stop == "SIGINT":
        assert (rest, ran.stderr, ran.returncode) == (["interrupted 0"], "", 0)
    else:
        assert (rest, ran.returncode) == ([], -signal.SIGKILL)
    until_blocking(lambda: not any(psutil.pid_exists(int(pid)) for pid in pids.split()))
    with sync.Index(large, location=tmp_path / "index", chunker="windows", workers=0) as index:
        assert index.refresh().added == len(os.listdir(large))
        assert index.check().ok


@pytest.mark.parametrize(
    "texts",
    [
        [],
        ["", " \n"],
        ["def getResponse(self):", "C# and c++\n", "  HTTPServer_v2\n\n"],
        ["İstanbul e", "\u0301clair", "ΟΔΟΣ", "Σ", "日本語", "語", "a\xa0b"],
        ["x\2y", "z"],
        ["a \udcff b", "é"],
    ],
)
def test_words_of_chunks_are_those_of_each_chunk(texts: list[str]) -> None:
    """Chunks are split into words together; nothing may join or part at their borders."""
    source = SourceText("a.py", "".join(texts), exact="\udcff" not in "".join(texts))
    found = words_of_chunks(source, texts)
    assert found == [" ".join(words_of(source.readable(text)).split()) for text in texts]
