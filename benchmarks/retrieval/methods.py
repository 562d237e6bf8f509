"""The methods that are compared: each is made for a folder, and then asked."""

import atexit
import re
import shutil
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Literal, Protocol

from ripwrap import sync
from ripwrap._ranking.query import parse_query
from ripwrap._ripgrep.command import words_command
from ripwrap._ripgrep.runner import BlockingRunner, Step, run_blocking
from ripwrap._ripgrep.term_counts import TermCounts
from ripwrap.results import RankedChunk

PLACES = 10  # What `rank()` gives if nothing is said.


@dataclass(frozen=True)
class Place:
    """What a method gives to read.

    Attributes:
        path: The file.
        text: What is shown of it.
        lines: The numbers of the lines that are shown.
    """

    path: str
    text: str
    lines: Collection[int]

    @classmethod
    def of(cls, found: RankedChunk) -> "Place":
        """The place of a result."""
        return cls(found.path, found.text, range(found.start_line, found.end_line + 1))


class Method(Protocol):
    """A way to answer, made for one folder."""

    def answer(self, query: str) -> list[Place]:
        """The places that answer a query, the best first."""
        ...


class RgWords:
    """rg with the query's words, any of which may match, and files by how many of them they have, then by how often.

    What is shown of a file are the lines that match, as rg shows them.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def answer(self, query: str) -> list[Place]:
        """See `Method`."""
        words = parse_query(query).words
        pattern = rf"(?i)\b(?:{'|'.join(map(re.escape, words))})\b"
        command = words_command(pattern, self._root, (), {}, 1_000_000)
        step = Step(command, partial(TermCounts, lambda hit: (hit.lower(),)), None)
        hits = run_blocking(BlockingRunner(None).collect(step))
        order = sorted(hits.files, key=lambda path: (-len(hits.files[path]), -sum(hits.files[path].values()), path))
        return [self._place(path, re.compile(pattern)) for path in order[:PLACES]]

    def _place(self, path: str, pattern: re.Pattern[str]) -> Place:
        lines = enumerate((self._root / path).read_text("utf-8", "replace").split("\n"), 1)
        found = {number: line for number, line in lines if pattern.search(line)}
        return Place(path, "\n".join(found.values()), found.keys())


class IndexFree:
    """`ripwrap.sync.rank()`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def answer(self, query: str) -> list[Place]:
        """See `Method`."""
        return [Place.of(found) for found in sync.rank(query, cwd=self._root, limit=PLACES)]


class WithIndex:
    """`ripwrap.index.Index`, made when this is, and not refreshed before a question."""

    def __init__(self, root: Path, *, chunker: Literal["syntax", "windows"], embedder: str | None = None) -> None:
        home = mkdtemp()
        atexit.register(shutil.rmtree, home)
        self._index = sync.Index(root, location=home, chunker=chunker, embedder=embedder)
        self._index.refresh()

    def answer(self, query: str) -> list[Place]:
        """See `Method`."""
        return [Place.of(found) for found in self._index.search(query, limit=PLACES, refresh=False)]


METHODS: dict[str, Callable[[Path], Method]] = {
    "rg-words": RgWords,
    "index-free": IndexFree,
    "index": partial(WithIndex, chunker="windows"),
    "index+syntax": partial(WithIndex, chunker="syntax"),
    "hybrid": partial(WithIndex, chunker="syntax", embedder="wordllama"),
}
"""By the name that the table has; making one may take its time, which is shown, too."""
