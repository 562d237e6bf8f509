"""The vectors of a view in memory, and the chunks that are most like one.

They follow the database: of a file that has changed, what it had is taken out, and what it has is read. All else stays
where it is.
"""

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from ripwrap._fts import portions
from ripwrap._ranking.score import POOL
from ripwrap.index.database import check
from ripwrap.index.kept import Content, contents_of, model_of, ordered, vectors_of
from ripwrap.index.query import Pool
from ripwrap.index.store import vectors_file

if TYPE_CHECKING:
    from sqlite3 import Connection

    from ripwrap.index.vectors import Approximate, Matrix, Rows

_LOGGER = logging.getLogger("ripwrap")

_Place: TypeAlias = tuple[bool, bytes, int, int]
"""Whether its path is not UTF-8, its path, its start, and its number: a chunk, in the order of the files."""

_State: TypeAlias = tuple[int, int | None, int]


@dataclass(frozen=True, slots=True)
class _Graph:
    """What very many vectors of a view are searched by, and the texts that its numbers mean."""

    view: int
    approximate: "Approximate"
    texts: dict[int, bytes]


class Loaded:
    """The vectors of the view that was asked for last; for one thread at a time."""

    def __init__(self, model: str, folder: Path) -> None:
        """Nothing is loaded yet.

        Args:
            model: Whose vectors.
            folder: What may keep what very many are searched by.
        """
        self._model, self._folder = model, folder
        self._slow = False
        self._state: _State | None = None
        self._contents: dict[Content, list[tuple[int, bytes]]] = {}
        self._places: dict[bytes, list[_Place]] = {}
        self._lacking: set[bytes] = set()
        self._rows: Rows | None = None
        self._graph: _Graph | None = None

    def pool(self, database: "Connection", number: int, wanted: "Matrix") -> Pool | None:
        """The chunks of a view that are most like a vector, the best first; `None` if there are no vectors like it.

        Args:
            database: The index, in a transaction.
            number: The view's.
            wanted: The vector, normalised.
        """
        dimension, generation = model_of(database, self._model)
        if dimension is None or dimension != len(wanted):  # another process has changed it since
            return None
        (view,) = database.execute("SELECT generation FROM view WHERE id = ?", (number,)).fetchone()
        if self._state != (state := (number, generation, view)):
            try:
                self._follow(database, number, dimension)
            except BaseException:  # by half
                self._clear()
                raise
            self._state = state
        if self._rows is None or not len(self._rows):
            return None
        found = self._nearest(self._rows, wanted)
        found.sort(key=lambda entry: (-entry[1], min(self._places[entry[0]])))
        pool: list[tuple[int, float]] = []
        for digest, cosine in found:
            if len(pool) >= POOL:
                break
            pool += [(chunk, cosine) for *_, chunk in sorted(self._places[digest])]
        return pool[:POOL]

    def _clear(self) -> None:
        self._contents, self._places, self._lacking = {}, {}, set()
        self._state = self._rows = self._graph = None

    def _follow(self, database: "Connection", number: int, dimension: int) -> None:
        from ripwrap.index.vectors import Rows

        if self._rows is None or self._rows.dimension != dimension:
            self._clear()
            self._rows = Rows(dimension)
        contents = contents_of(database, number)
        for content in self._contents.keys() - contents:
            self._take_out(content, self._rows)
        new = {content[-1]: content for content in contents - self._contents.keys()}
        chunks: dict[int, list[tuple[int, bytes]]] = {blob: [] for blob in new}
        for some in portions(list(new)):
            check()
            marks = ",".join("?" * len(some))
            statement = f"SELECT blob, start, digest FROM chunk WHERE blob IN ({marks}) ORDER BY blob, start, id"  # noqa: S608
            for blob, start, digest in database.execute(statement, some):
                chunks[blob].append((start, digest))
        for blob, content in new.items():
            self._put_in(content, chunks[blob])
        check()
        self._rows.add(found := vectors_of(database, self._model, dimension, self._lacking))
        self._lacking -= found.keys()
        self._graph = self._graph_of(self._rows, number)

    def _take_out(self, content: Content, rows: "Rows") -> None:
        for place, digest in self._placed(content, self._contents.pop(content)):
            self._places[digest].remove(place)
            if not self._places[digest]:
                del self._places[digest]
                self._lacking.discard(digest)
                rows.remove(digest)

    def _put_in(self, content: Content, chunks: list[tuple[int, bytes]]) -> None:
        self._contents[content] = chunks
        for place, digest in self._placed(content, chunks):
            if digest not in self._places:
                self._places[digest] = []
                self._lacking.add(digest)
            self._places[digest].append(place)

    @staticmethod
    def _placed(content: Content, chunks: list[tuple[int, bytes]]) -> Iterator[tuple[_Place, bytes]]:
        path = ordered(content[0])
        for chunk, (start, digest) in enumerate(chunks, content[2] or 0):
            yield (*path, start, chunk), digest

    def _graph_of(self, rows: "Rows", number: int) -> "_Graph | None":
        """What finds the nearest of very many; `None` if each is to be looked at."""
        from ripwrap.index import vectors

        if len(rows) <= vectors.MANY:
            return None
        if find_spec("usearch") is None:
            if not self._slow:
                self._slow = True
                how = 'pip install "ripwrap[vectors]"'
                _LOGGER.warning("each query looks at all %d vectors, because usearch is missing: %s", len(rows), how)
            return None
        ids, matrix, texts = rows.numbered()
        if self._graph is not None and self._graph.view == number:
            self._graph.approximate.follow(ids, matrix)
            return replace(self._graph, texts=texts)
        file = vectors_file(self._folder, number, self._model) if os.access(self._folder, os.W_OK) else None
        return _Graph(number, vectors.Approximate(ids, matrix, file=file), texts)

    def _nearest(self, rows: "Rows", wanted: "Matrix") -> list[tuple[bytes, float]]:
        if self._graph is None:
            return rows.search(wanted, POOL)
        found = self._graph.approximate.search(wanted, POOL)
        return [(self._graph.texts[number], cosine) for number, cosine in found if cosine > 0]
