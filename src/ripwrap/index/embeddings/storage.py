"""Store embeddings in the database, cache the vectors of a view, and find the most similar chunks.

When the database changes, only the vectors of changed files are replaced.
"""

import logging
import os
import secrets
import threading
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from sqlite3 import Connection
from typing import TYPE_CHECKING, TypeAlias

from ripwrap._ranking.scoring import POOL_SIZE
from ripwrap._text import raw_bytes, text_of
from ripwrap.index.embeddings.batching import Embedded, LengthError
from ripwrap.index.models import Pool
from ripwrap.index.storage.database import check, select_in, write_transaction
from ripwrap.index.storage.files import vectors_file
from ripwrap.index.storage.tables import WITHOUT_VECTOR, EmbeddingModel, View, indexed_file, model_of, number_of

if TYPE_CHECKING:
    from ripwrap.index.embeddings.vectors import Approximate, Matrix, Rows


_CONTENTS = (
    "SELECT tree.path, blob.digest, (SELECT id FROM chunk WHERE blob = tree.blob ORDER BY start LIMIT 1), tree.blob"
    " FROM tree CROSS JOIN blob ON blob.id = tree.blob WHERE tree.view = ?"
)

_SELECT_MISSING = (
    f"SELECT chunk.digest, chunk.id, chunk.blob {WITHOUT_VECTOR} AND tree.blob IN ({{}})"
    " ORDER BY tree.path, chunk.start"
)

_CHUNKS = (
    "SELECT chunk.digest, chunk.start, chunk.size, blob.path, blob.digest, tree.size, tree.mtime_ns,"
    " tree.ctime_ns FROM chunk CROSS JOIN blob ON blob.id = chunk.blob"
    " CROSS JOIN tree ON tree.view = ? AND tree.path = blob.path AND tree.blob = blob.id WHERE chunk.id IN ({})"
    " ORDER BY blob.id, chunk.start"
)

IndexedContent: TypeAlias = tuple[str | bytes, bytes, int | None, int]
"""Content of a file: path, digest, id of the first chunk (the other chunks have the ids after it; `None` without
chunks), and id of the content. If two such values are equal, their chunks are equal, too.
"""


@dataclass(slots=True)
class Complete:
    """Record of the files whose texts all have embeddings of a model; valid until embeddings of the model change."""

    generation: int | None = None
    contents: set[IndexedContent] = field(default_factory=set[IndexedContent])
    view: int | None = None


def contents_of(database: Connection, number: int | None) -> set[IndexedContent]:
    """Return a `IndexedContent` tuple for each file of a view: its path, its digest and its ids, but not its text.

    A view is the files of a directory on a branch. The set is empty if `number`, the id of the view, is `None`.
    """
    return set(database.execute(_CONTENTS, (number,)))


def find_missing(
    database: Connection, number: int | None, model: str, dimension: int | None, complete: Complete
) -> dict[bytes, int]:
    """Find the texts of a view that have no embedding; map the digest of each text to the id of a chunk with this text.

    The texts are sorted by path and, within a file, by line.
    """
    contents = contents_of(database, number)
    complete.contents &= contents
    new = sorted(contents - complete.contents, key=lambda content: path_key(content[0]))
    found: dict[bytes, int] = {}
    incomplete: set[int] = set()
    blobs, before = [content[-1] for content in new], (number, model, 2 * (dimension or 0))
    for digest, chunk, blob in select_in(database, _SELECT_MISSING, blobs, before):
        found.setdefault(digest, chunk)
        incomplete.add(blob)
    complete.contents.update(content for content in new if content[-1] not in incomplete)
    return found


def texts_of(database: Connection, view: View, chunks: Sequence[int]) -> list[tuple[bytes, str]]:
    """Return the digest and text of each chunk in `chunks`, a list of ids.

    Deleted chunks, and chunks of changed files, are skipped.
    """
    texts: dict[bytes, str] = {}
    rows = select_in(database, _CHUNKS, chunks, (number_of(database, view),))
    for (path, of_file, *stamp), of_chunks in groupby(rows, itemgetter(3, 4, 5, 6, 7)):
        check()
        file = indexed_file(view, path, of_file, tuple(stamp))
        for digest, start, size in map(itemgetter(0, 1, 2), of_chunks):
            if (text := file.text(start, size)) is not None:
                texts[digest] = text_of(raw_bytes(text))
    return list(texts.items())


def vectors_of(database: Connection, model: str, dimension: int, digests: Collection[bytes]) -> dict[bytes, bytes]:
    """Map digests of texts to the stored bytes of their vectors; skip vectors that do not have `dimension` numbers."""
    statement = "SELECT digest, v FROM vec WHERE model = ? AND length(v) = ? AND digest IN ({})"
    return dict(select_in(database, statement, list(digests), (model, 2 * dimension)))


def store_batch(
    database: Connection, model: str, batch: Embedded[bytes], *, replace: bool = False
) -> tuple[EmbeddingModel, EmbeddingModel]:
    """Store the vectors of a batch; return the model's row (dimension and generation) before and after."""
    from ripwrap.index.embeddings.vectors import pack  # late: numpy

    length = batch.vectors.shape[1]
    with write_transaction(database):
        before = model_of(database, model)
        if before.dimension not in (None, length):
            if not replace:  # another process has just stored vectors of the other length
                message = (
                    f"{model} answered with vectors of {length} numbers, but another process has stored vectors of "
                    f"{before.dimension}; use the same model settings in all processes"
                )
                raise LengthError(message, provider=model.partition(":")[0], length=length)
            _drop_model(database, model)
        now = EmbeddingModel(length, secrets.randbits(62))
        database.execute("INSERT OR REPLACE INTO model (name, dimension, generation) VALUES (?, ?, ?)", (model, *now))
        database.executemany(
            "INSERT OR REPLACE INTO vec (digest, model, v) VALUES (?, ?, ?)",
            ((digest, model, v) for digest, v in zip(batch.keys, pack(batch.vectors), strict=True)),
        )
    return before, now


def drop_model(database: Connection, model: str, dimension: int) -> None:
    """Delete all embeddings of a model if its vectors have `dimension` numbers."""
    with write_transaction(database):
        if model_of(database, model).dimension == dimension:
            _drop_model(database, model)


def drop_one(database: Connection, number: int | None, model: str) -> None:
    """Delete the embedding of one text of a view.

    The next refresh must then embed this text, and so notices that the embedder returns vectors of a new length.
    """
    statement = (
        "SELECT chunk.digest FROM tree CROSS JOIN chunk ON chunk.blob = tree.blob WHERE tree.view = ?"
        " AND EXISTS (SELECT 1 FROM vec WHERE vec.model = ? AND vec.digest = chunk.digest) LIMIT 1"
    )
    with write_transaction(database):
        row: tuple[bytes] | None = database.execute(statement, (number, model)).fetchone()
        if row is not None:
            database.execute("DELETE FROM vec WHERE digest = ? AND model = ?", (*row, model))
            database.execute("UPDATE model SET generation = ? WHERE name = ?", (secrets.randbits(62), model))


def _drop_model(database: Connection, model: str) -> None:
    database.execute("DELETE FROM vec WHERE model = ?", (model,))
    database.execute("DELETE FROM model WHERE name = ?", (model,))


def path_key(path: str | bytes) -> tuple[bool, bytes]:
    """Return the sort key of a path in SQLite's order: by bytes; paths that are not UTF-8 come last."""
    return isinstance(path, bytes), path if isinstance(path, bytes) else path.encode()


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
            for key, digest in self._keyed(content, self._contents.pop(content)):
                self._chunk_keys[digest].remove(key)
                if not self._chunk_keys[digest]:
                    del self._chunk_keys[digest]
                    self._missing.discard(digest)
                    self._rows.remove(digest)
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


MAX_QUERIES = 64
"""Maximum number of cached queries; an embedding takes a few kilobytes."""

QueryKey: TypeAlias = tuple[str, str | None, str]
"""Key of a cached query: name of the model, address of its server, and text of the query."""


class QueryCache:
    """Cache of the vectors of at most `size` queries. The query whose last use is the oldest is dropped first."""

    def __init__(self, size: int = MAX_QUERIES) -> None:
        self._size = size
        self._vectors: dict[QueryKey, Matrix] = {}  # in the order of use
        self._lock = threading.Lock()

    def get(self, key: QueryKey, dimension: int) -> "Matrix | None":
        """Return the cached embedding of a query; `None` if it is not cached, or if its length is not `dimension`."""
        with self._lock:
            vector = self._vectors.pop(key, None)
            if vector is None or len(vector) != dimension:
                return None
            self._vectors[key] = vector
            return vector

    def add(self, key: QueryKey, vector: "Matrix") -> None:
        """Add the embedding of a query to the cache."""
        with self._lock:
            self._vectors.pop(key, None)
            self._vectors[key] = vector
            if len(self._vectors) > self._size:
                del self._vectors[next(iter(self._vectors))]

    def clear(self) -> None:
        """Remove all embeddings from the cache."""
        with self._lock:
            self._vectors.clear()


QUERIES = QueryCache()
"""Cache that all indexes of this process share."""
