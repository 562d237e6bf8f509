"""The index with syntax chunks and vectors: texts that are sent, vectors that are stored, and fallbacks."""

import os
import re
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numpy")
pytest.importorskip("pydantic_ai")
pytest.importorskip("openai")
pytest.importorskip("tokenizers")
pytest.importorskip("wordllama")
pytest.importorskip("tree_sitter")
pytest.importorskip("semble_grammars")

import anyio
import numpy as np
import psutil

from retrieval.queries import Corpus, Query
from retrieval.run import measure_method
from ripwrap import EmbeddingError, RankedChunk, RipwrapError, sync
from ripwrap._code.treesitter.worker import CodeReader
from ripwrap.index import Index, Progress
from ripwrap.index.embeddings import vectors as vector_search
from ripwrap.index.embeddings.hybrid import MAX_TEXTS_PER_SEARCH
from ripwrap.index.embeddings.protocol import Embedder, Limits
from ripwrap.index.embeddings.registry import embedder
from ripwrap.index.embeddings.storage import QueryCache
from ripwrap.index.storage.files import NAME
from support.embeddings import DIMENSION, Behaviour, Plain, Provider, hang_up, say, serving, vectors
from support.parsers import FATAL, parsers, with_little_memory
from support.waiting import until, until_blocking

pytestmark = [
    pytest.mark.extra,
    pytest.mark.slow,
    pytest.mark.usefixtures("one_certificate"),
    pytest.mark.loops("asyncio"),
]

Plant = Callable[..., Path]

MODEL = "openai:text-embedding-3-small"
QUICK = Limits(concurrency=1, delay=0, batch=2, tries=2, pause=0.005, max_pause=1, timeout=20)
"""Default file options of an index with an embedder."""

SHOP = """\
import os


class Shop:
    def put(self, item):
        self.items.append(item)


def bill(shop):
    total = sum(shop.prices)
    total += shop.tax
    return total
"""


# Most of the indexes have files of text, because an index of code starts a parser process.


def files(number: int, of: str = "alpha") -> dict[str, str]:
    return {f"{of}{one}.txt": f"{of} number{one}\n" for one in range(number)}


@pytest.fixture
def openai(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> Embedder:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key-0123456789")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
    return embedder(MODEL, limits=QUICK)


class Meaning:
    """Embedder with one dimension for each of three groups of synonyms."""

    THINGS = ("cookie|biscuit", "shop|store|market", "bill|invoice")
    limits = Limits(delay=0)

    def __init__(self, name: str = "test:meaning", dimension: int = 3) -> None:
        self.name = name
        self.dimension: int | None = dimension
        self.texts: list[str] = []
        self.queries: list[str] = []

    async def embed(self, texts: Sequence[str], *, query: bool) -> list[list[float]]:
        (self.queries if query else self.texts).extend(texts)
        await anyio.lowlevel.checkpoint()
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        found = [float(len(re.findall(thing, text.lower()))) for thing in self.THINGS]
        return [*found, *[0.0] * ((self.dimension or 3) - len(found))]


def sent(provider: Provider) -> list[str]:
    return [text for asked in provider.asked for text in asked.texts]


def rows(index: Index, statement: str = "SELECT count(*) FROM vec") -> Any:
    database = sqlite3.connect(index.location / NAME)
    try:
        return database.execute(statement).fetchone()[0]
    finally:
        database.close()


def graphs(home: Path) -> list[Path]:
    return list(home.glob("*.usearch"))


def branch(root: Path, name: str) -> None:
    (root / ".git/refs/heads").mkdir(parents=True, exist_ok=True)
    (root / ".git/refs/heads" / name).write_text("0" * 40 + "\n")
    (root / ".git/HEAD").write_text(f"ref: refs/heads/{name}\n")


def answered_by_words(places: Sequence[RankedChunk]) -> bool:
    """Return True if the search used no vectors; check that all results give that reason, or none does."""
    said = [any(reason.startswith("without embeddings: ") for reason in place.reasons) for place in places]
    assert len(set(said)) == 1
    return said[0]


# Chunks at definitions


@pytest.mark.anyio
async def test_search_returns_a_definition_with_its_symbol(plant: Plant, home: Path) -> None:
    async with Index(plant({"shop.py": SHOP}), location=home, chunker="syntax") as index:
        first = (await index.search("total of the prices"))[0]
        assert (first.start_line, first.end_line, first.symbol) == (9, 12, "bill")
        assert first.text == SHOP[SHOP.index("def bill") :]
        assert "syntax" in (await index.status()).chunker
    async with Index(index.root, location=home, chunker="windows") as index:
        assert (await index.search("total of the prices"))[0].start_line == 1


@pytest.mark.anyio
async def test_hostile_source_is_indexed_in_windows_without_affecting_others(plant: Plant, home: Path) -> None:
    async with Index(plant({"b.py": "x = 1\n"}), location=home, chunker="syntax") as index:
        await index.refresh()
        (parser,) = parsers()
        with_little_memory(parser)
        plant({"a.py": FATAL, "shop.py": SHOP})
        done = await index.refresh()
        assert (done.added, done.skipped) == (2, ())
        assert parsers() != [parser]
        assert (await index.search("bill"))[0].symbol == "bill"
        assert (await index.check()).ok
    assert parsers() == []


@pytest.mark.anyio
async def test_parser_process_ends_with_the_index(plant: Plant, home: Path) -> None:
    index = Index(plant({"shop.py": SHOP}), location=home, chunker="syntax")
    await index.refresh()
    assert len(parsers()) == 1
    await index.aclose()
    assert parsers() == []
    plant({"more.py": SHOP})
    await index.refresh()
    assert len(parsers()) == 1
    del index  # without closing it
    until_blocking(lambda: parsers() == [])


@pytest.mark.anyio
async def test_one_parser_process_serves_two_refreshes(plant: Plant, home: Path) -> None:
    async with Index(plant({"shop.py": SHOP}), location=home, chunker="syntax") as index:
        await index.refresh()
        first = parsers()
        plant({"shop.py": SHOP.replace("bill", "pay")})
        assert (await index.search("pay"))[0].symbol == "pay"
        assert len(first) == 1 and parsers() == first


@pytest.mark.loops("asyncio", "trio")
@pytest.mark.anyio
async def test_cancelled_refresh_ends_the_parser_and_keeps_the_old_state(plant: Plant, home: Path) -> None:
    index = Index(plant({"shop.py": SHOP}), location=home, chunker="syntax")
    await index.refresh()
    (stopped,) = parsers()
    plant({"more.py": SHOP.replace("bill", "pay")})
    stopped.suspend()  # simulates a hang
    try:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(index.refresh)
                # This thread waits for the parser's answer.
                await until(lambda: any("worker-watch" in thread.name for thread in threading.enumerate()))
                scope.cancel()
        await until(lambda: parsers() == [])
    finally:
        with suppress(psutil.NoSuchProcess):
            stopped.kill()
    assert [place.path for place in await index.search("pay", refresh=False)] == []
    assert (await index.search("pay"))[0].symbol == "pay"
    await index.aclose()


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
def test_parser_process_ends_with_its_killed_parent(plant: Plant, home: Path) -> None:
    program = """
        import sys, anyio
        from ripwrap.index import Index
        index = Index(sys.argv[1], location=sys.argv[2], chunker="syntax")
        anyio.run(index.refresh)
        print("done", flush=True)
        sys.stdin.read()
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(plant({"shop.py": SHOP})), str(home)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None and running.stdout.readline() == "done\n"
        (parser,) = psutil.Process(running.pid).children()
        running.kill()
        until_blocking(lambda: not parser.is_running() or parser.status() == psutil.STATUS_ZOMBIE)


def test_parser_process_that_cannot_start_raises(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for program in (tmp_path / "nowhere", Path("/bin/false")):
        monkeypatch.setattr(sys, "executable", str(program))
        with (
            closing(CodeReader()) as chunker,
            pytest.raises(RipwrapError, match=r"does not work: .*: pass chunker='windows'"),
        ):
            chunker.chunks_of("a.py", SHOP)
        assert parsers() == []


def test_chunker_syntax_raises_if_it_is_not_installed(plant: Plant, home: Path) -> None:
    program = """
        import sys
        sys.modules["semble_grammars"] = None
        from ripwrap.index import Index
        for chunker in ("auto", "syntax"):
            try:
                print(Index(sys.argv[1], location=sys.argv[2], chunker=chunker)._chunker.version)
            except Exception as error:
                print(type(error).__name__, error)
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(plant({})), str(home)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=50)
    chunker, error = ran.stdout.splitlines()
    assert chunker == "windows 4"
    assert error.startswith(
        "MissingPackageError definitions in code need tree-sitter 0.26.1 or later and semble-grammars: pip install "
    )
    assert error.endswith('[code]"')


def test_unknown_chunker_raises() -> None:
    with pytest.raises(ValueError, match="chunker must be 'auto', 'syntax' or 'windows', got 'lines'"):
        Index(chunker="lines")  # type: ignore[arg-type]


# Texts that are sent


@pytest.mark.anyio
async def test_equal_texts_of_files_and_branches_are_sent_once(
    plant: Plant, home: Path, openai: Embedder, provider: Provider
) -> None:
    root = plant({"a.txt": "alpha\n", "copy.txt": "alpha\n", "b.txt": "beta\n", "blank.txt": " \n\n"})
    branch(root, "main")
    async with Index(root, location=home, embedder=openai) as index:
        done = await index.refresh()
        assert (done.embedded, done.failed) == (2, ())
        assert sent(provider) == ["alpha\n", "beta\n"]
        branch(root, "other")
        plant({"c.txt": "gamma\n", "again.txt": "beta\n"})
        assert (await index.refresh()).embedded == 1
        branch(root, "main")
        os.utime(root / "a.txt", ns=(1, 1))
        (root / "b.txt").rename(root / "moved.txt")
        assert (await index.refresh()).embedded == 0
    async with Index(root, location=home, embedder=openai) as index:
        assert (await index.refresh()).embedded == 0
        assert (await index.status()).lacking == 0
    assert sent(provider) == ["alpha\n", "beta\n", "gamma\n"]


@pytest.mark.anyio
async def test_each_model_keeps_its_vectors_and_embeds_only_missing_texts(
    plant: Plant, home: Path, openai: Embedder, provider: Provider
) -> None:
    root = plant(files(3))
    other = embedder("openai:text-embedding-3-large", limits=QUICK)
    async with Index(root, location=home, embedder=openai) as index:
        await index.refresh()
    async with Index(root, location=home, embedder=other) as index:
        assert (await index.status()).lacking == 3
        assert (await index.refresh()).embedded == 3
        plant({"new.txt": "new\n"})
        assert (await index.refresh()).embedded == 1
    async with Index(root, location=home, embedder=openai) as index:
        assert (await index.refresh()).embedded == 1
    assert Counter(asked.body["model"] for asked in provider.asked for _ in asked.texts) == {
        "text-embedding-3-small": 4,
        "text-embedding-3-large": 4,
    }


@pytest.mark.anyio
async def test_another_chunker_sends_only_new_texts(
    plant: Plant, home: Path, openai: Embedder, provider: Provider
) -> None:
    root = plant({"a.txt": "alpha\n", "shop.py": SHOP})
    async with Index(root, location=home, embedder=openai, chunker="windows") as index:
        await index.refresh()
        assert sent(provider) == ["alpha\n", SHOP]
    provider.asked.clear()
    async with Index(root, location=home, embedder=openai, chunker="syntax") as index:
        assert (await index.refresh()).added == 2
        assert "alpha\n" not in sent(provider) and SHOP[SHOP.index("def bill") :] in sent(provider)
        assert (await index.prune()).vectors == 1


@pytest.mark.anyio
async def test_status_names_the_destination_and_counts_texts_to_send(
    plant: Plant, home: Path, openai: Embedder, provider: Provider
) -> None:
    async with Index(plant(files(3)), location=home, embedder=openai) as index:
        before = await index.status()
        assert (before.model, before.dimension, before.lacking) == (MODEL, None, 0)
        assert len(before.sent) == 1 and f"is sent to {provider.url}/v1, on this machine" in before.sent[0]
        assert provider.asked == []
        await index.refresh()
        plant({"new.txt": "new\n"})
        async with Index(index.root, location=home) as words:
            assert (await words.refresh()).embedded == 0
            status = await words.status()
            assert (status.model, status.dimension, status.lacking, status.sent) == (None, None, 0, ())
        status = await index.status()
        assert (status.dimension, status.lacking) == (DIMENSION, 1)


@pytest.mark.parametrize(
    ("named", "says"),
    [
        ("opnai:x", "unknown embedder 'opnai:x'; did you mean 'openai'"),
        ("openai:text-embedding-3-small", "needs a key: set OPENAI_API_KEY"),
    ],
)
def test_unknown_embedder_and_missing_key_raise(named: str, says: str) -> None:
    with pytest.raises(EmbeddingError, match=says):
        Index(embedder=named)


def test_invalid_hybrid_weight_is_rejected() -> None:
    """`"0.5"` raised Python's error about `<=`."""
    for weight in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="hybrid_weight must be from 0 to 1"):
            Index(embedder=Meaning(), hybrid_weight=weight)
    wrong: list[Any] = ["0.5", True]
    for value in wrong:
        says = f"^hybrid_weight must be a number from 0 to 1, or None; got {value!r}$"
        with pytest.raises(TypeError, match=says):
            Index(embedder=Meaning(), hybrid_weight=value)
        with pytest.raises(TypeError, match=says):
            sync.Index().search("word", hybrid_weight=value)
    with pytest.raises(ValueError, match="pass embedder="):
        Index(hybrid_weight=0.5)
    with pytest.raises(TypeError, match="a name or an Embedder, got int"):
        Index(embedder=1)  # type: ignore[arg-type]


# Search by words and vectors


@pytest.mark.anyio
async def test_chunk_without_a_query_word_is_found_by_meaning(plant: Plant, home: Path) -> None:
    root = plant({"a.py": "def keep_biscuit(): ...\n", "b.py": "def other(): ...\n", "c.py": "def cookies(): ...\n"})
    meaning = Meaning()
    async with Index(root, location=home, embedder=meaning, chunker="windows") as index:
        places = await index.search("cookie jar")
        assert [place.path for place in places] == ["c.py", "a.py"]
        assert [reason for reason in places[1].reasons if "BM25" not in reason] == ["cosine 1.00"]
        assert meaning.queries == ["cookie jar"]
        assert not answered_by_words(places)
    async with Index(root, location=home, chunker="windows") as index:
        assert [place.path for place in await index.search("cookie jar")] == ["c.py"]


@pytest.mark.anyio
async def test_weight_1_shows_the_chunk_whose_meaning_is_like_the_query(plant: Plant, home: Path) -> None:
    root = plant({"a.py": "def jar(shop):\n" + "    x = 1\n" * 100 + "\n\ndef food():\n" + "    biscuit\n" * 9})
    for weight, text in ((0.34, "def jar"), (1, "biscuit")):
        async with Index(root, location=home, chunker="windows", embedder=Meaning(), hybrid_weight=weight) as index:
            assert text in (await index.search("jar of cookie"))[0].text


@pytest.mark.anyio
async def test_weight_of_a_query_overrides_that_of_the_index(plant: Plant, home: Path) -> None:
    """0 sends neither the query nor texts; `None` is the weight of the index."""
    root = plant({"a.txt": "biscuit\n", "b.txt": "jar\n"})
    meaning = Meaning()
    async with Index(root, location=home, embedder=meaning, hybrid_weight=1) as index:
        places = await index.search("jar of cookie", hybrid_weight=0)
        assert [place.path for place in places] == ["b.txt"] and answered_by_words(places)
        assert (meaning.queries, meaning.texts) == ([], [])
        assert [place.path for place in await index.search("jar of cookie")] == ["a.txt"]
        both = await index.search("jar of cookie", hybrid_weight=0.5)
        assert {place.path for place in both} == {"a.txt", "b.txt"}
        assert [place.path for place in await index.search("jar of cookie", hybrid_weight=1)] == ["a.txt"]
        for weight in (-0.1, 1.1, float("nan")):
            with pytest.raises(ValueError, match="hybrid_weight must be from 0 to 1"):
                await index.search("jar", hybrid_weight=weight)
    with sync.Index(root, location=home, embedder=meaning, hybrid_weight=0) as blocking:
        assert [place.path for place in blocking.search("jar of cookie")] == ["b.txt"]
        assert [place.path for place in blocking.search("jar of cookie", hybrid_weight=1)] == ["a.txt"]
    with sync.Index(root, location=home) as words:
        assert [place.path for place in words.search("jar of cookie", hybrid_weight=0)] == ["b.txt"]
        with pytest.raises(ValueError, match="hybrid_weight needs an embedder; pass embedder="):
            words.search("jar of cookie", hybrid_weight=0.5)


@pytest.mark.anyio
async def test_same_query_is_embedded_once_in_a_process(
    plant: Plant, home: Path, openai: Embedder, provider: Provider
) -> None:
    """Even with another weight, after an edit, or with another index of the same model."""
    root = plant({"a.txt": "alpha beta\n"})
    async with Index(root, location=home, embedder=openai) as index:
        await index.search("alpha")
        asked = len(provider.asked)
        first = await index.search("alpha", hybrid_weight=0.5)
        assert first == await index.search("alpha", hybrid_weight=0.5) and not answered_by_words(first)
        async with Index(root, location=home, embedder=embedder(MODEL, limits=QUICK)) as other:
            await other.search("alpha")
        assert len(provider.asked) == asked
        provider.behaviours += [say(500)] * 9
        assert not answered_by_words(await index.search("alpha"))  # from the cache, since the provider fails now
        assert len(provider.asked) == asked
        assert answered_by_words(await index.search("beta"))
        assert len(provider.asked) > asked


def test_query_cache_is_bounded_and_keyed_by_model_address_and_text() -> None:
    """The least recently used query is dropped."""
    cache = QueryCache(size=2)
    here, there = ("m:x", None, "q"), ("m:x", "http://there", "q")
    cache.add(here, np.ones(3, np.float32))
    cache.add(there, np.zeros(3, np.float32))
    assert cache.get(here, 3) is not None
    cache.add(("m:x", None, "other"), np.ones(3, np.float32))
    assert cache.get(there, 3) is None and cache.get(here, 3) is not None
    assert cache.get(here, 4) is None  # a vector of another length


@pytest.mark.anyio
async def test_hybrid_search_after_any_change_equals_a_rebuilt_index(plant: Plant, home: Path) -> None:
    root = plant({"a.txt": "biscuit\n", "b.txt": "store\n" * 3, "c/d.txt": "bill\n"})

    async def answer(index: Index) -> list[str]:
        return [
            place.model_dump_json()
            for query in ("cookie", "market bill", "invoice")
            for place in await index.search(query, limit=None)
        ]

    async with Index(root, location=home, embedder=Meaning()) as index:
        changes: list[Callable[[], object]] = [
            lambda: plant({"e.txt": "cookie\n", "copy.txt": "biscuit\n"}),
            lambda: (root / "a.txt").rename(root / "z.txt"),
            lambda: plant({"b.txt": "market\n"}),
            (root / "c/d.txt").unlink,
            lambda: branch(root, "other"),
        ]
        for number, change in enumerate(changes):
            await answer(index)
            change()
            async with Index(root, location=home / f"{number}", embedder=Meaning()) as new:
                assert await answer(index) == await answer(new)
        assert (await index.check()).ok


@pytest.mark.anyio
async def test_graph_file_of_many_vectors_can_be_deleted(
    plant: Plant, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_search, "MAX_EXACT_VECTORS", 2)
    root = plant({"a.txt": "biscuit\n", "b.txt": "store\n", "c.txt": "bill\n"})
    branch(root, "main")
    async with Index(root, location=home, embedder=Meaning()) as index:
        assert [place.path for place in await index.search("cookie")] == ["a.txt"]
        (file,) = graphs(home)
        file.write_bytes(b"broken")
        plant({"d.txt": "cookies and biscuits\n", "e.txt": "none\n"})
        assert {place.path for place in await index.search("cookie")} == {"a.txt", "d.txt"}
        await index.prune()
        assert file.exists()
        branch(root, "other")
        await index.refresh()
        (root / ".git/refs/heads/main").unlink()
        await index.prune()
        assert graphs(home) == []
        assert {place.path for place in await index.search("cookie")} == {"a.txt", "d.txt"}


@pytest.mark.anyio
async def test_missing_usearch_means_exact_search_and_one_warning(
    plant: Plant, home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(vector_search, "MAX_EXACT_VECTORS", 2)
    monkeypatch.setitem(sys.modules, "usearch", None)
    root = plant({"a.txt": "biscuit\n", "b.txt": "store\n", "c.txt": "bill\n"})
    async with Index(root, location=home, embedder=Meaning()) as index:
        assert [place.path for place in await index.search("cookie")] == ["a.txt"]
        plant({"d.txt": "cookies and biscuits\n"})
        assert {place.path for place in await index.search("cookie")} == {"a.txt", "d.txt"}
    said = 'each query is compared with all 3 embeddings, because usearch is missing: pip install "ripwrap[usearch]"'
    assert [record.getMessage() for record in caplog.records if "usearch" in record.getMessage()] == [said]
    assert graphs(home) == []


@pytest.mark.anyio
async def test_only_new_vectors_are_read_after_a_change(plant: Plant, home: Path) -> None:
    root = plant({f"{number}.txt": f"biscuit {number}\n" for number in range(20)} | {"copy.txt": "biscuit 3\n"})
    branch(root, "main")
    asked: list[str] = []
    async with Index(root, location=home, embedder=Meaning()) as index:
        await index.search("cookie")

        def traced(database: sqlite3.Connection) -> None:
            database.set_trace_callback(asked.append)

        index._store.run(traced)
        plant({"new.txt": "biscuit new\n"})
        (root / "3.txt").unlink()
        branch(root, "other")
        found = {place.path for place in await index.search("cookie", limit=None)}
        assert {"new.txt", "copy.txt"} <= found and "3.txt" not in found
    (vectors_read,) = [statement for statement in asked if "SELECT digest, v FROM vec" in statement]
    assert vectors_read.count("x'") + vectors_read.count("X'") == 1


@pytest.mark.anyio
async def test_vectors_removed_by_another_process_are_embedded_again(plant: Plant, home: Path) -> None:
    root = plant({"a.txt": "biscuit\n", "b.txt": "store\n"})
    meaning = Meaning()
    async with Index(root, location=home, embedder=meaning) as index:
        assert [place.path for place in await index.search("market")] == ["b.txt"]
        assert (await index.refresh()).embedded == 0
        (root / "b.txt").unlink()
        async with Index(root, location=home) as other:
            await other.refresh()
            assert (await other.prune()).vectors == 1
        plant({"b.txt": "store\n"})
        assert (await index.refresh()).embedded == 1
        assert [place.path for place in await index.search("market")] == ["b.txt"]
    assert meaning.texts == ["biscuit\n", "store\n", "store\n"]


# Vectors of another length


@pytest.mark.anyio
@pytest.mark.parametrize("texts", [1, 12])
async def test_refresh_embeds_all_texts_again_if_the_vector_length_changes(
    texts: int, plant: Plant, home: Path, openai: Embedder, provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    root = plant(files(9))
    async with Index(root, location=home, embedder=openai) as index:
        await index.refresh()
        provider.dimension = 5
        plant(files(texts, "new"))
        provider.asked.clear()
        done = await index.refresh()
        assert (done.embedded, done.failed) == (9 + texts, ())
        assert "returns vectors of 5 numbers, not 8 as before; all texts are embedded again" in caplog.text
        assert max(Counter(sent(provider)).values()) == 2
        status = await index.status()
        assert (status.dimension, status.lacking, rows(index)) == (5, 0, 9 + texts)
        assert (await index.check()).ok
        assert not answered_by_words(await index.search("alpha"))
        provider.asked.clear()
        assert (await index.refresh()).embedded == 0
        assert sent(provider) == []


@pytest.mark.anyio
@pytest.mark.parametrize("later", [False, True])
async def test_query_vector_of_another_length_falls_back_to_words(
    later: bool, plant: Plant, home: Path, openai: Embedder, provider: Provider
) -> None:
    root = plant(files(5))
    async with Index(root, location=home, embedder=openai) as index:
        await index.refresh()
        provider.dimension = 5
        places = await index.search("alpha")
        assert answered_by_words(places)
        said = "returns vectors of another length now; the next refresh embeds all texts again"
        assert f"without embeddings: {MODEL} {said}" in places[0].reasons
        assert rows(index) == 4  # one was removed, so that the next refresh embeds it
        async with Index(root, location=home, embedder=embedder(MODEL, limits=QUICK)) as other:
            done = await (other if later else index).refresh()
        assert (done.embedded, done.failed) == (5, ())
        assert not answered_by_words(await (other if later else index).search("alpha"))
        await other.aclose()


@pytest.mark.anyio
async def test_single_answer_of_another_length_removes_no_vectors(
    plant: Plant, home: Path, openai: Embedder, provider: Provider
) -> None:
    root = plant(files(4))
    async with Index(root, location=home, embedder=openai) as index:
        await index.refresh()
        plant({"new.txt": "new\n"})
        provider.behaviours = [vectors([[1.0] * 5])]
        done = await index.refresh()
        assert (done.embedded, [(one.reason, one.texts) for one in done.failed]) == (0, [("garbage", 1)])
        assert rows(index) == 4
        assert (await index.refresh()).embedded == 1


@pytest.mark.anyio
async def test_provider_that_alternates_lengths_fails_after_one_switch(
    plant: Plant, home: Path, openai: Embedder, provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    root = plant(files(6))
    async with Index(root, location=home, embedder=openai) as index:
        await index.refresh()
        for number in range(6):
            provider.dimension = 5 if number % 2 == 0 else DIMENSION
            plant({f"new{number}.txt": f"new {number}\n"})
            done = await index.refresh()
        assert [one.reason for one in done.failed] == ["garbage"]
        assert "vectors of 8 numbers instead of 5" in done.failed[0].message
        assert "alternates between vectors of 5 and of 8 numbers, and now returns the latter; the stored" in caplog.text
        assert Counter(sent(provider))["alpha number0\n"] == 2

    class ByTurns(Meaning):
        """Embedder whose answers alternate between vectors of two lengths."""

        asked = 0

        async def embed(self, texts: Sequence[str], *, query: bool) -> list[list[float]]:
            self.asked += 1
            self.dimension = 3 + self.asked % 2
            return await super().embed(texts, query=query)

    model = ByTurns()
    async with Index(root, location=home, embedder=model) as index:
        await index.refresh()
        for number in range(3):
            before = model.asked
            plant({"more.txt": f"more {number}\n"})
            done = await index.refresh()
            assert model.asked - before == 2
            assert [(one.reason, one.texts) for one in done.failed] == [("garbage", 1)]
        assert len(model.texts) == 12 + 2 * 3


@pytest.mark.anyio
async def test_query_vector_is_not_compared_with_another_length(plant: Plant, home: Path) -> None:
    root = plant({"a.txt": "biscuit\n", "b.txt": "cookie\n"})
    meaning = Meaning()
    async with Index(root, location=home, embedder=meaning) as index:
        await index.refresh()
        embed = meaning.embed

        async def meanwhile(texts: Sequence[str], *, query: bool) -> list[list[float]]:
            found = await embed(texts, query=query)
            async with Index(root, location=home, embedder=Meaning(dimension=5)) as other:
                await other.refresh()
            return found

        meaning.embed = meanwhile  # type: ignore[method-assign]
        assert answered_by_words(await index.search("cookie"))


# Providers that misbehave

BAD: dict[str, Behaviour] = {
    "500": say(500, {"error": {"message": "out of order"}}),
    "429": say(429, {"error": {"message": "slow down"}}, Retry_After="30"),
    "401": say(401, {"error": {"message": "who are you"}}),
    "hang up": hang_up,
    "not JSON": say(200, b"<html>", kind="text/html"),
    "NaN": say(200, b'{"object":"list","model":"m","data":[{"object":"embedding","index":0,"embedding":[NaN]}]}'),
    "too few": vectors([]),
}


@pytest.mark.anyio
@pytest.mark.parametrize("bad", BAD)
async def test_search_uses_only_words_from_a_failure_of_the_provider_until_the_next_refresh(
    bad: str, plant: Plant, home: Path, openai: Embedder, provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    provider.behaviours = [BAD[bad]] * 100
    async with Index(plant(files(3)), location=home, embedder=openai) as index:
        assert answered_by_words(await index.search("alpha"))
        assert "3 texts have no embedding yet: " in caplog.text
        asked = len(provider.asked)
        assert answered_by_words(await index.search("number1"))  # a provider that has just failed gets no request
        assert len(provider.asked) == asked
        done = await index.refresh()  # a refresh sends a request
        assert len(provider.asked) > asked
        assert done.embedded == 0 and sum(failed.texts for failed in done.failed) == 3
        assert all(failed.message.startswith(MODEL) for failed in done.failed)
        assert (await index.status()).lacking == 3 and rows(index) == 0
        provider.behaviours = []
        done = await index.refresh()
        assert (done.embedded, done.failed) == (3, ())
        assert not answered_by_words(await index.search("alpha"))


@pytest.mark.anyio
async def test_vectors_received_before_a_provider_fails_are_kept(
    plant: Plant, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key-0123456789")
    with serving(Provider()) as first:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{first.url}/v1")
        model = embedder(MODEL, limits=QUICK)
        first.rejects = "number1\n"
        async with Index(plant(files(12)), location=home, embedder=model) as index:

            def dies(progress: Progress) -> None:
                if progress.embedded >= 4:
                    first.behaviours = [hang_up] * 100

            done = await index.refresh(dies)
            assert 4 <= done.embedded < 11  # those that were under way, too, and not all
            reasons = {failed.reason: failed.texts for failed in done.failed}
            assert reasons["rejected"] == 1
            assert reasons["unavailable"] == 12 - done.embedded - 1
            kept = rows(index)
            assert kept == done.embedded
            first.behaviours, first.rejects = [], ""
            first.asked.clear()
            assert (await index.refresh()).embedded == 12 - kept
            assert len(sent(first)) == 12 - kept


@pytest.mark.anyio
async def test_rejected_text_is_sent_again_by_refresh_and_not_by_search(
    plant: Plant, home: Path, openai: Embedder, provider: Provider
) -> None:
    provider.rejects = "number1\n"
    async with Index(plant(files(4)), location=home, embedder=openai) as index:
        done = await index.refresh()
        assert (done.embedded, [(one.reason, one.texts) for one in done.failed]) == (3, [("rejected", 1)])
        provider.asked.clear()
        assert not answered_by_words(await index.search("alpha"))
        assert sent(provider) == ["alpha"]
        assert (await index.refresh()).failed == done.failed


@pytest.mark.anyio
async def test_failed_embedder_is_tried_again_after_a_while(
    plant: Plant, home: Path, openai: Embedder, provider: Provider
) -> None:
    provider.behaviours = [say(401, {}), say(401, {})]
    async with Index(plant(files(1)), location=home, embedder=openai) as index:
        assert answered_by_words(await index.search("alpha"))
        assert answered_by_words(await index.search("alpha"))
        assert len(provider.asked) == 1
    impatient = embedder(MODEL, limits=replace(QUICK, retry_search_after=0))
    async with Index(index.root, location=home, embedder=impatient) as index:
        assert answered_by_words(await index.search("alpha"))
        assert not answered_by_words(await index.search("alpha"))


@pytest.mark.loops("asyncio", "trio")
@pytest.mark.anyio
async def test_slow_provider_blocks_no_reader_or_writer(
    plant: Plant, home: Path, openai: Embedder, provider: Provider
) -> None:
    provider.behaviours = [provider.waits]
    async with Index(plant(files(2)), location=home, embedder=openai) as index:
        async with anyio.create_task_group() as group:
            group.start_soon(index.refresh)
            await until(lambda: provider.asked)
            plant({"new.txt": "new\n"})
            async with Index(index.root, location=home) as other:
                assert [place.path for place in await other.search("new")] == ["new.txt"]
            assert (await index.status()).lacking == 3
            provider.released.set()
        assert (await index.refresh()).embedded == 1


# Interrupted refreshes


@pytest.mark.loops("asyncio", "trio")
@pytest.mark.anyio
async def test_progress_counts_embedded_texts_and_can_end_the_refresh(
    plant: Plant, home: Path, openai: Embedder, provider: Provider
) -> None:
    told: list[Progress] = []
    async with Index(plant(files(6)), location=home, embedder=openai) as index:

        def hear(progress: Progress) -> None:
            told.append(progress)
            if progress.embedded == 4:
                raise LookupError("enough")

        with pytest.raises(LookupError, match="enough"):
            await index.refresh(hear)
        assert [(one.files, one.embedded, one.to_embed) for one in told[1:]] == [(6, 0, 0), (6, 2, 6), (6, 4, 6)]
        assert rows(index) == 4
        assert (await index.refresh()).embedded == 2


@pytest.mark.loops("asyncio", "trio")
@pytest.mark.anyio
async def test_cancelled_refresh_keeps_finished_batches(
    plant: Plant, home: Path, openai: Embedder, provider: Provider
) -> None:
    async with Index(plant(files(12)), location=home, embedder=openai) as index:
        second: list[Progress] = []

        def hear(progress: Progress) -> None:
            if progress.embedded:
                provider.behaviours = [provider.waits] * 100
                second.append(progress)

        async with anyio.create_task_group() as group:
            group.start_soon(index.refresh, hear)
            await until(lambda: second)
            group.cancel_scope.cancel()
        kept = rows(index)
        assert 2 <= kept <= 4
        provider.behaviours = []
        provider.asked.clear()
        assert (await index.refresh()).embedded == 12 - kept
        assert len(set(sent(provider))) == 12 - kept
        assert (await index.check()).ok


EMBED = """
    import sys, anyio
    from ripwrap.index import Index
    from support.embeddings import Plain
    print(anyio.run(Index(sys.argv[1], location=sys.argv[2], embedder=Plain(sys.argv[3])).refresh).failed)
"""


def embedding(root: Path, home: Path, provider: Provider) -> "subprocess.Popen[str]":
    """Start a process that embeds a folder; without the client of OpenAI, whose import takes a second."""
    command = [sys.executable, "-c", textwrap.dedent(EMBED), str(root), str(home), provider.url]
    there = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=there, start_new_session=True)


def test_concurrent_processes_send_each_text_once(plant: Plant, home: Path, provider: Provider) -> None:
    root = plant(files(40))
    provider.slowly = 0.02
    both = [embedding(root, home, provider) for _ in range(2)]
    said = [one.communicate(timeout=50)[0] for one in both]
    assert said == ["()\n", "()\n"]
    assert max(Counter(sent(provider)).values()) == 1

    async def look() -> None:
        async with Index(root, location=home, embedder=Plain(provider.url)) as index:
            provider.asked.clear()
            assert (await index.refresh()).embedded == 0
            assert rows(index) == 40 and (await index.check()).ok

    anyio.run(look)


@pytest.mark.loops("asyncio", "trio")
@pytest.mark.anyio
async def test_search_does_not_wait_for_another_index_that_embeds(plant: Plant, home: Path) -> None:
    asked: list[bool] = []
    silent, meaning = Silent(), Meaning()
    silent.asked = lambda: asked.append(True)  # type: ignore[method-assign]
    root = plant({"a.txt": "cookie\n"})
    async with (
        Index(root, location=home, embedder=silent) as one,
        Index(root, location=home, embedder=meaning) as other,
    ):
        await other.refresh()
        plant({"b.txt": "biscuit\n", "c.txt": "bill\n"})
        async with anyio.create_task_group() as group:
            group.start_soon(one.refresh)
            await until(lambda: asked)
            (place,) = await other.search("cookie")
            assert "2 texts have no embedding yet; refresh() embeds them" in place.reasons
            with anyio.move_on_after(0.2) as scope:
                await other.refresh()
            assert scope.cancelled_caught
            group.cancel_scope.cancel()
        assert meaning.texts == ["cookie\n"]
        assert (await other.refresh()).embedded == 2


@pytest.mark.anyio
async def test_search_embeds_few_texts_and_reports_how_many_are_left(plant: Plant, home: Path) -> None:
    meaning = Meaning()
    root = plant(files(2 * MAX_TEXTS_PER_SEARCH + 2, "cookie"))
    async with Index(root, location=home, embedder=meaning) as index:
        for left in (MAX_TEXTS_PER_SEARCH + 2, 2):
            places = await index.search("cookie")
            assert len(meaning.texts) == 2 * MAX_TEXTS_PER_SEARCH + 2 - left
            for place in places:
                assert f"{left} texts have no embedding yet; refresh() embeds them" in place.reasons
        assert (await index.refresh()).embedded == 2
        places = await index.search("cookie")
        assert not any("no embedding yet" in reason for place in places for reason in place.reasons)


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
def test_killed_refresh_loses_only_unfinished_batches(plant: Plant, home: Path, provider: Provider) -> None:
    def asked(number: int) -> bool:
        return len(provider.asked) >= number

    root = plant(files(60))
    provider.slowly = 0.02
    with embedding(root, home, provider) as running:
        until_blocking(partial(asked, 8))
        os.killpg(running.pid, signal.SIGKILL)

    async def resume() -> None:
        async with Index(root, location=home, embedder=Plain(provider.url)) as index:
            assert (await index.check()).ok
            kept = rows(index)
            assert (await index.refresh()).embedded == 60 - kept
            assert kept > 0 and rows(index) == 60
            # It loses at most three batches of two texts: two in progress, and one that was not stored yet.
            assert len(sent(provider)) <= 60 + 6
            assert not answered_by_words(await index.search("alpha"))
            assert (await index.check()).ok

    anyio.run(resume)


# Blocking


def test_blocking_hybrid_search_works_inside_and_outside_a_loop(plant: Plant, home: Path) -> None:
    root = plant({"a.txt": "biscuit\n", "b.txt": "store\n"})
    with sync.Index(root, location=home, embedder=Meaning()) as index:

        def first() -> str:
            return index.search("cookie")[0].path

        async def around() -> list[str]:
            return [first(), await anyio.to_thread.run_sync(first)]

        done = index.refresh()
        assert (done.embedded, done.failed) == (2, ())
        assert [first(), *anyio.run(around), *anyio.run(around, backend="trio")] == ["a.txt"] * 5
        assert (index.status().model, index.status().lacking) == ("test:meaning", 0)


def test_concurrent_threads_send_each_text_once(plant: Plant, home: Path) -> None:
    meaning = Meaning()
    with (
        sync.Index(plant({"a.txt": "biscuit\n"}), location=home, embedder=meaning) as index,
        ThreadPoolExecutor(6) as threads,
    ):
        found = list(threads.map(lambda _: index.search("cookie"), range(12)))
        assert {place.path for places in found for place in places} == {"a.txt"}
        assert index.refresh().embedded == 0 and index.status().lacking == 0
    assert meaning.texts == ["biscuit\n"]


class Silent(Meaning):
    """Embedder that does not answer until `speaks` is set."""

    speaks = False

    def asked(self) -> None: ...

    async def embed(self, texts: Sequence[str], *, query: bool) -> list[list[float]]:
        self.asked()
        if not self.speaks:
            await anyio.sleep_forever()
        return await super().embed(texts, query=query)


def test_timeout_ends_a_slow_embedder_and_keeps_the_files(plant: Plant, home: Path) -> None:
    asked: list[bool] = []
    silent = Silent()
    silent.asked = lambda: asked.append(True)  # type: ignore[method-assign]
    with sync.Index(plant({"a.txt": "biscuit\n"}), location=home, embedder=silent) as index:
        before = threading.active_count()
        while len(asked) < 2:  # no lock is left; a busy machine may need more than one timeout
            with pytest.raises(TimeoutError, match="the call took more than timeout=1 seconds"):
                index.refresh(timeout=1)
        until_blocking(lambda: threading.active_count() <= before)
        assert (index.status().files, index.status().lacking) == (1, 1)
        silent.speaks = True
        assert index.refresh(timeout=20).embedded == 1


@pytest.mark.posix
def test_ctrl_c_ends_a_refresh_that_waits_for_an_embedder(plant: Plant, home: Path) -> None:
    program = """
        import sys, threading, time
        import anyio
        from ripwrap import sync
        class Silent:
            name, dimension = "test:silent", 3
            async def embed(self, texts, *, query):
                print("asked", flush=True)
                await anyio.sleep_forever()
        index = sync.Index(sys.argv[1], location=sys.argv[2], chunker="windows", embedder=Silent())
        try:
            index.refresh()
        except KeyboardInterrupt:
            while threading.active_count() > 1:  # threads that were asked to end need a moment
                time.sleep(0.01)
            print("interrupted")
    """
    command = [
        sys.executable,
        "-W",
        "error",
        "-c",
        textwrap.dedent(program),
        str(plant({"a.txt": "biscuit\n"})),
        str(home),
    ]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as running:
        assert running.stdout is not None and running.stdout.readline() == "asked\n"
        os.killpg(running.pid, signal.SIGINT)
        stdout, stderr = running.communicate(timeout=50)
    assert (stdout, stderr) == ("interrupted\n", "")


def test_timeout_of_a_blocking_refresh_ends_the_parser(plant: Plant, home: Path) -> None:
    with sync.Index(plant({"shop.py": SHOP}), location=home, chunker="syntax") as index:
        index.refresh()
        (stopped,) = parsers()
        plant({"more.py": SHOP.replace("bill", "pay")})
        stopped.suspend()  # simulates a hang
        try:
            while parsers():  # a busy machine may need more than one timeout
                with pytest.raises(TimeoutError, match="the call took more than timeout=1 seconds"):
                    index.refresh(timeout=1)
        finally:
            with suppress(psutil.NoSuchProcess):
                stopped.kill()
        assert index.search("pay", refresh=False) == []
        assert index.search("pay")[0].symbol == "pay"
    assert parsers() == []


# Stored vectors


@pytest.mark.anyio
async def test_vectors_of_a_wrong_size_are_detected_and_rebuilt(plant: Plant, home: Path) -> None:
    root = plant({"a.txt": "biscuit\n", "b.txt": "store\n"})
    async with Index(root, location=home, embedder=Meaning()) as index:
        await index.refresh()
        database = sqlite3.connect(home / NAME)
        with database:
            database.execute("UPDATE vec SET v = x'0000' WHERE digest = (SELECT min(digest) FROM vec)")
        database.close()
    async with Index(root, location=home, embedder=Meaning()) as index:
        health = await index.check()
        assert not health.ok and "Some embeddings in the index have the wrong size" in health.messages[0]
        assert (await index.status()).lacking == 1
        await index.search("cookie", refresh=False)
        assert (await index.refresh()).embedded == 1
        assert (await index.check()).ok


@pytest.mark.anyio
async def test_prune_keeps_vectors_of_all_models_for_existing_texts(plant: Plant, home: Path) -> None:
    root = plant({"a.txt": "biscuit\n", "b.txt": "store\n"})
    for name in ("test:one", "test:two"):
        async with Index(root, location=home, embedder=Meaning(name)) as index:
            await index.refresh()
    (root / "b.txt").unlink()
    async with Index(root, location=home) as index:
        await index.refresh()
        assert rows(index) == 4
        assert (await index.prune()).vectors == 2
        assert rows(index, "SELECT count(DISTINCT model) FROM vec") == 2
        assert (await index.check()).ok


@pytest.mark.loops("asyncio", "trio")
@pytest.mark.anyio
async def test_concurrent_tasks_send_each_text_once(plant: Plant, home: Path) -> None:
    meaning = Meaning()
    async with Index(plant({"a.txt": "biscuit\n"}), location=home, embedder=meaning) as index:
        await index.status()
        async with anyio.create_task_group() as group:
            for _ in range(6):
                group.start_soon(index.search, "cookie")
    assert meaning.texts == ["biscuit\n"]


def test_hybrid_index_works_in_one_event_loop_after_another(plant: Plant, home: Path) -> None:
    index = Index(plant({"a.txt": "biscuit\n"}), location=home, embedder=Meaning())
    for backend in ("asyncio", "trio", "asyncio"):
        assert anyio.run(index.search, "cookie", backend=backend)[0].path == "a.txt"
    anyio.run(index.aclose)


def test_offline_embedder_works_without_a_network(plant: Plant, home: Path) -> None:
    root = plant({"a.txt": "def bake_biscuits(): ...\n", "b.txt": "def connect_socket(): ...\n"})
    program = """
        import sys, anyio
        def refuse(event, arguments):
            if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname"):
                raise OSError("no network here")
        sys.addaudithook(refuse)
        from ripwrap.index import Index
        async def main():
            async with Index(sys.argv[1], location=sys.argv[2], embedder="wordllama") as index:
                print((await index.refresh()).embedded, (await index.status()).sent)
                print([place.path for place in await index.search("cookie recipe")][0])
        anyio.run(main)
    """
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(program), str(root), str(home)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=50)
    said = "wordllama:l2_supercat_256: runs on this machine, in this process; nothing is sent."
    assert ran.stdout.splitlines() == [f"2 ({said!r},)", "a.txt"], ran.stderr


@pytest.mark.parametrize("method", ["index+syntax", "hybrid"])
def test_benchmark_methods_with_extras_rank_the_relevant_file_first(method: str, plant: Plant) -> None:
    root = plant({"jar.py": "class Jar:\n    cookie = 1\n", "b.py": "cookie = 1\n", "c.py": "x = 1\n"})
    _, (first,) = measure_method(Corpus("shop", root, (Query("cookie jar", ("jar.py",), ""),)), method, rounds=1)
    assert (first.ndcg, first.hit, first.rr, first.recall) == (1, 1, 1, 1)


@pytest.mark.posix
@pytest.mark.anyio
async def test_hidden_files_and_link_targets_outside_the_root_are_not_sent(
    plant: Plant, home: Path, provider: Provider, openai: Embedder, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "key.txt").write_text("PRIVATE KEY cookie\n")
    root = plant({"a.txt": "cookie = 1\n", ".env": "TOKEN = cookie\n"})
    (root / "docs").symlink_to(tmp_path / "outside")
    async with Index(root, location=home, embedder=openai) as index:
        assert (await index.refresh()).added == 1
        assert [place.path for place in await index.search("cookie")] == ["a.txt"]
    assert not any(secret in text for text in sent(provider) for secret in ("TOKEN", "PRIVATE"))
