"""Cache the vectors of a view (the files of a branch) in memory, and find the chunks that are most similar to a query.

When the database changes, only the vectors of changed files are replaced.
"""

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from ripwrap._ranking.scoring import POOL_SIZE
from ripwrap.index.embeddings.storage import IndexedContent, contents_of, path_key, vectors_of
from ripwrap.index.models import Pool
from ripwrap.index.storage.database import check, select_in
from ripwrap.index.storage.files import vectors_file
from ripwrap.index.storage.packages import Connection
from ripwrap.index.storage.tables import model_of

if TYPE_CHECKING:
    from ripwrap.index.embeddings.vectors import Approximate, Matrix, Rows

_LOGGER = logging.getLogger("ripwrap")

_ChunkKey: TypeAlias = tuple[bool, bytes, int, int]
"""Sort key of a chunk: (True if the path is not UTF-8, path, start of the chunk, id of the chunk)."""

_State: TypeAlias = tuple[int, int | None, int]


@dataclass(frozen=True, slots=True)
class _Graph:
    """Graph for approximate searches in the vectors of a view, with a map from ids in the graph to digests of texts."""

    view: int
    approximate: "Approximate"
    texts: dict[int, bytes]


class VectorCache:
    """Cache of the vectors of the view (the files of a branch) that was searched last.

    One thread at a time may use the object.
    """

    def __init__(self, model: str, folder: Path) -> None:
        """Start with an empty cache; `folder` is the directory for the file of the search graph."""
        self._model, self._folder = model, folder
        self._warned_slow = False
        self._state: _State | None = None
        self._contents: dict[IndexedContent, list[tuple[int, bytes]]] = {}
        self._chunk_keys: dict[bytes, list[_ChunkKey]] = {}
        self._missing: set[bytes] = set()
        self._rows: Rows | None = None
        self._graph: _Graph | None = None

    def pool(self, database: Connection, number: int, wanted: "Matrix") -> Pool | None:
        """Return the chunks of one view (the files of a branch) that are most similar to a query, the best first.

        Return `None` if the view has no vectors, or if the stored vectors have another length than `wanted`.
        """
        dimension, generation = model_of(database, self._model)
        if dimension is None or dimension != len(wanted):  # another process has changed the dimension
            return None
        (view,) = database.execute("SELECT generation FROM view WHERE id = ?", (number,)).fetchone()
        if self._state != (state := (number, generation, view)):
            try:
                self._follow(database, number, dimension)
            except BaseException:  # the cache is only half updated
                self._clear()
                raise
            self._state = state
        if self._rows is None or not len(self._rows):
            return None
        found = self._nearest(self._rows, self._rows.centre(wanted))
        found.sort(key=lambda entry: (-entry[1], min(self._chunk_keys[entry[0]])))
        pool: list[tuple[int, float]] = []
        for digest, cosine in found:
            if len(pool) >= POOL_SIZE:
                break
            pool += [(chunk, cosine) for *_, chunk in sorted(self._chunk_keys[digest])]
        return pool[:POOL_SIZE]

    def _clear(self) -> None:
        self._contents, self._chunk_keys, self._missing = {}, {}, set()
        self._state = self._rows = self._graph = None

    def _follow(self, database: Connection, number: int, dimension: int) -> None:
        from ripwrap.index.embeddings.vectors import Rows  # late: numpy

        if self._rows is None or self._rows.dimension != dimension:
            self._clear()
            self._rows = Rows(dimension)
        contents = contents_of(database, number)
        for content in self._contents.keys() - contents:
            self._remove(content, self._rows)
        new = {content[-1]: content for content in contents - self._contents.keys()}
        chunks: dict[int, list[tuple[int, bytes]]] = {blob: [] for blob in new}
        statement = "SELECT blob, start, digest FROM chunk WHERE blob IN ({}) ORDER BY blob, start, id"
        for blob, start, digest in select_in(database, statement, list(new)):
            chunks[blob].append((start, digest))
        for blob, content in new.items():
            self._add(content, chunks[blob])
        check()
        self._rows.add(found := vectors_of(database, self._model, dimension, self._missing))
        self._missing -= found.keys()
        self._graph = self._graph_of(self._rows, number)

    def _remove(self, content: IndexedContent, rows: "Rows") -> None:
        for key, digest in self._keyed(content, self._contents.pop(content)):
            self._chunk_keys[digest].remove(key)
            if not self._chunk_keys[digest]:
                del self._chunk_keys[digest]
                self._missing.discard(digest)
                rows.remove(digest)

    def _add(self, content: IndexedContent, chunks: list[tuple[int, bytes]]) -> None:
        self._contents[content] = chunks
        for key, digest in self._keyed(content, chunks):
            if digest not in self._chunk_keys:
                self._chunk_keys[digest] = []
                self._missing.add(digest)
            self._chunk_keys[digest].append(key)

    @staticmethod
    def _keyed(content: IndexedContent, chunks: list[tuple[int, bytes]]) -> Iterator[tuple[_ChunkKey, bytes]]:
        path = path_key(content[0])
        for chunk, (start, digest) in enumerate(chunks, content[2] or 0):
            yield (*path, start, chunk), digest

    def _graph_of(self, rows: "Rows", number: int) -> "_Graph | None":
        """Return the graph for approximate search; `None` if there are few vectors, or usearch is not installed."""
        from ripwrap.index.embeddings import vectors  # late: numpy

        if len(rows) <= vectors.MAX_EXACT_VECTORS:
            return None
        if find_spec("usearch") is None:
            if not self._warned_slow:
                self._warned_slow = True
                how = 'pip install "ripwrap[usearch]"'
                _LOGGER.warning(
                    "each query is compared with all %d embeddings, because usearch is missing: %s", len(rows), how
                )
            return None
        ids, matrix, texts = rows.export()
        if self._graph is not None and self._graph.view == number:
            self._graph.approximate.follow(ids, matrix)
            return replace(self._graph, texts=texts)
        file = vectors_file(self._folder, number, self._model) if os.access(self._folder, os.W_OK) else None
        return _Graph(number, vectors.Approximate(ids, matrix, file=file), texts)

    def _nearest(self, rows: "Rows", wanted: "Matrix") -> list[tuple[bytes, float]]:
        if self._graph is None:
            return rows.search(wanted, POOL_SIZE)
        found = self._graph.approximate.search(wanted, POOL_SIZE)
        return [(self._graph.texts[number], cosine) for number, cosine in found if cosine > 0]
