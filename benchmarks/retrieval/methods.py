"""Methods of search to compare: each is created for a folder, and then answers queries."""

import atexit
import re
import shutil
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Literal, Protocol

from ripwrap import sync
from ripwrap._ranking.word_query import parse_query
from ripwrap._ripgrep.command import words_query
from ripwrap._ripgrep.page_collector import TermCounts
from ripwrap._ripgrep.protocols import Step
from ripwrap._ripgrep.runner import BlockingRunner, run_blocking
from ripwrap.index.embeddings.registry import load_wordllama
from ripwrap.results import RankedChunk

LIMIT = 10  # the default of `rank()`


@dataclass(frozen=True)
class Result:
    """Part of a file that a method returns for a query.

    Attributes:
        path: Path of the file.
        text: Text of the part.
        lines: Numbers of its lines.
    """

    path: str
    text: str
    lines: Collection[int]

    @classmethod
    def from_chunk(cls, chunk: RankedChunk) -> "Result":
        """Convert a chunk that ripwrap has ranked."""
        return cls(chunk.path, chunk.text, range(chunk.start_line, chunk.end_line + 1))


class Method(Protocol):
    """Method of search in one folder."""

    def answer(self, query: str) -> list[Result]:
        """Return the results of a query, the best first."""
        ...


class RgWords:
    """Search with rg for any word of the query.

    Files are sorted by the number of different words in them, then by the number of matches. The text of a result has
    the matching lines, as rg prints them.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def answer(self, query: str) -> list[Result]:
        """Implement `Method.answer()`."""
        words = parse_query(query).words
        pattern = rf"(?i)\b(?:{'|'.join(map(re.escape, words))})\b"
        command = words_query(pattern, self._root, (), {}, 1_000_000)
        step = Step(command, partial(TermCounts, lambda hit: (hit.lower(),)), None)
        hits = run_blocking(BlockingRunner(None).collect(step))
        order = sorted(hits.files, key=lambda path: (-len(hits.files[path]), -sum(hits.files[path].values()), path))
        return [self._result(path, re.compile(pattern)) for path in order[:LIMIT]]

    def _result(self, path: str, pattern: re.Pattern[str]) -> Result:
        lines = enumerate((self._root / path).read_text("utf-8", "replace").split("\n"), 1)
        found = {number: line for number, line in lines if pattern.search(line)}
        return Result(path, "\n".join(found.values()), found.keys())


class IndexFree:
    """Search with `ripwrap.sync.rank()`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def answer(self, query: str) -> list[Result]:
        """Implement `Method.answer()`."""
        return [Result.from_chunk(chunk) for chunk in sync.rank(query, cwd=self._root, limit=LIMIT)]


class WithIndex:
    """Search with `ripwrap.sync.Index`, which is built on creation and not refreshed before queries."""

    def __init__(self, root: Path, *, chunker: Literal["syntax", "windows"], embedder: str | None = None) -> None:
        self._index = sync.Index(root, location=_temporary(), chunker=chunker, embedder=embedder)
        self._index.refresh()

    def answer(self, query: str) -> list[Result]:
        """Implement `Method.answer()`."""
        return [Result.from_chunk(chunk) for chunk in self._index.search(query, limit=LIMIT, refresh=False)]


@cache
def semble_model() -> tuple[str | None, str]:
    """Return a model for semble, `None` for its own one, and a sentence that says which semble and model it is.

    semble downloads its own model. Without that model, semble gets the embeddings of wordllama, which a wheel has.
    """
    release = f"semble {version('semble')}"
    try:
        _, name = import_module("semble.index.dense").load_model()
    except OSError:
        folder = _temporary()
        tokenizer, vectors = load_wordllama()
        import_module("model2vec").StaticModel(vectors, tokenizer, normalize=True).save_pretrained(folder)
        return folder, f"{release} had the embeddings of wordllama, because its own could not be downloaded."
    return None, f"{release} had the embeddings {name}."


class Semble:
    """Search with semble (https://pypi.org/project/semble), whose index is built on creation."""

    def __init__(self, root: Path) -> None:
        self._index: Any = import_module("semble").SembleIndex.from_path(root, model_path=semble_model()[0])

    def answer(self, query: str) -> list[Result]:
        """Implement `Method.answer()`."""
        chunks = (found.chunk for found in self._index.search(query, top_k=LIMIT))
        return [Result(one.file_path, one.content, range(one.start_line, one.end_line + 1)) for one in chunks]


def _temporary() -> str:
    folder = mkdtemp()
    atexit.register(shutil.rmtree, folder)
    return folder


METHODS: dict[str, Callable[[Path], Method]] = {
    "rg-words": RgWords,
    "index-free": IndexFree,
    "index": partial(WithIndex, chunker="windows"),
    "index+syntax": partial(WithIndex, chunker="syntax"),
    "hybrid": partial(WithIndex, chunker="syntax", embedder="wordllama"),
    "semble": Semble,
}
"""Methods by their names in the table; creating one may take long, and is measured."""
