"""Convert vectors to bytes and to a matrix, and find the nearest vectors; needs numpy (extra `vectors`).

A vector is stored as a normalised row of float16, little-endian. This takes half the bytes of float32, and cosines are
accurate to about 0.001. For very many vectors, usearch builds a search graph from the rows; the graph can be deleted at
any time.
"""

import functools
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ripwrap._system.concurrency import defer_interrupts, replace_file
from ripwrap._text import plural

Matrix: TypeAlias = npt.NDArray[np.float32]
Halves: TypeAlias = npt.NDArray[np.float16]
Ids: TypeAlias = npt.NDArray[np.int64]

MAX_EXACT_VECTORS = 200_000
"""Number of vectors above which a search uses usearch's graph (an approximate search), because this saves time."""

BLOCK_ROWS = 4096
"""Number of rows that are converted to float32 at a time: 4 MiB for rows of 256 numbers."""

MAX_FLOAT32_BYTES = 256 * 1024 * 1024
"""Maximum size of a matrix of float32 in bytes. A larger matrix is kept as float16, and a query takes ten times as
long.
"""

_COSINE_ERROR = 1e-4  # largest error of a cosine that is computed in float32
_COSINE_DECIMALS = 9  # further decimals are noise, in which equal rows would differ
_GROWTH_DIVISOR = 16  # a matrix grows by 1/16 of its rows or more, so that not each new row copies the matrix
_CANDIDATES_PER_RESULT = 8  # usearch returns 8 candidates for each result; exact cosines select the best
_MAX_REMOVED_SHARE = 0.2  # above this share of removed rows, the graph is built from scratch
_MAX_DIMENSION = 65_536
_MIN_CENTRED_ROWS = 100  # with fewer vectors, the mean would be too similar to the nearest vectors


def to_matrix(rows: object, count: int) -> Matrix:
    """Return the answer of an embedder as a matrix; each row is scaled to a length of 1, except a row of zeros."""
    try:
        found = np.asarray(rows)
    except ValueError as error:
        raise ValueError("vectors of different lengths, or no vectors") from error
    if found.dtype.kind not in "fiu" or found.ndim != 2:
        raise ValueError("data that is not a list of vectors of numbers" if count else "vectors for 0 texts")
    if found.shape[0] != count:
        raise ValueError(f"{plural(found.shape[0], 'vector')} for {plural(count, 'text')}")
    if not 0 < found.shape[1] <= _MAX_DIMENSION:
        raise ValueError(f"vectors of {found.shape[1]} numbers (allowed: 1 to {_MAX_DIMENSION})")
    if not np.isfinite(found).all():
        raise ValueError("vectors with NaN or infinity in them")
    return normalise(found)


def normalise(rows: npt.NDArray[Any]) -> Matrix:
    """Return the rows scaled to a length of 1; a row of zeros stays as it is."""
    wide = rows.astype(np.float64)
    largest = np.abs(wide).max(axis=1, keepdims=True, initial=0.0)
    wide /= np.where(largest > 0, largest, 1.0)  # avoids squares that overflow or become 0
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))[:, None]
    wide /= np.where(lengths > 0, lengths, 1.0)
    return wide.astype(np.float32)


def pack(rows: npt.NDArray[Any]) -> list[bytes]:
    """Convert each row of a normalised matrix to the bytes that the index stores (float16)."""
    return [row.tobytes() for row in np.ascontiguousarray(rows, dtype="<f2")]


def unpack(blobs: Sequence[bytes], dimension: int) -> Halves:
    """Convert the stored bytes of rows to a matrix, in the same order."""
    for number, blob in enumerate(blobs):
        if len(blob) != 2 * dimension:
            raise ValueError(f"vector {number} has {len(blob)} bytes instead of {2 * dimension}; rebuild the index")
    found = np.frombuffer(b"".join(blobs), dtype="<f2").reshape(len(blobs), dimension)
    return found.astype(np.float16, copy=False)


def widen(rows: npt.NDArray[Any]) -> Matrix:
    """Convert a matrix to float32; a matrix of float16 is converted with a table, which is faster."""
    if rows.dtype != np.float16:
        return rows.astype(np.float32, copy=False)
    wide = np.empty(rows.shape, np.float32)
    bits = np.ascontiguousarray(rows).view(np.uint16)
    for start in range(0, len(rows), BLOCK_ROWS):
        # A table of all 65,536 numbers takes half the time of numpy's conversion.
        np.take(_float16_table(), bits[start : start + BLOCK_ROWS], out=wide[start : start + BLOCK_ROWS], mode="clip")
    return wide


@functools.cache
def _float16_table() -> Matrix:
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)


def find_nearest(
    rows: npt.NDArray[Any], query: npt.NDArray[Any], k: int, *, block: int = BLOCK_ROWS
) -> tuple[Ids, npt.NDArray[np.float64]]:
    """Return the row numbers and cosines of the `k` rows nearest to a query.

    All rows that are as near as the `k`-th nearest row are returned, so there may be more than `k`. The result is
    sorted by row number. Two equal rows always get exactly the same cosine, wherever they are in the matrix. A matrix
    of float16 is converted to float32 block by block.
    """
    wanted = widen(query)
    if k < 1 or not len(rows):
        return np.empty(0, np.int64), np.empty(0, np.float64)
    near = np.empty(len(rows), np.float32)
    step = block if rows.dtype == np.float16 else len(rows)
    for start in range(0, len(rows), step):
        np.matmul(widen(rows[start : start + step]), wanted, out=near[start : start + step])
    numbers = np.arange(len(rows))
    if len(rows) > k:
        numbers = np.flatnonzero(near >= np.partition(near, -k)[-k] - _COSINE_ERROR)
    cosines = np.einsum("ij,j->i", rows[numbers].astype(np.float64), wanted.astype(np.float64)).round(_COSINE_DECIMALS)
    if len(numbers) > k:
        here = cosines >= np.partition(cosines, -k)[-k]
        numbers, cosines = numbers[here], cosines[here]
    return numbers, cosines


class Rows:
    """Map from digests of texts to their vectors, which are rows of one matrix.

    The matrix is float32, or float16 if float32 would take more than 256 MiB. A removed row has only zeros until a new
    vector is stored in it.
    """

    def __init__(self, dimension: int, *, max_float32_bytes: int = MAX_FLOAT32_BYTES) -> None:
        self.dimension: int = dimension
        self._max_float32_bytes = max_float32_bytes
        self._positions: dict[bytes, int] = {}
        self._digests: list[bytes] = []
        self._free: list[int] = []
        self._matrix: npt.NDArray[Any] = np.zeros((0, dimension), np.float32)
        self._sum: npt.NDArray[np.float64] = np.zeros(dimension)

    def __len__(self) -> int:
        return len(self._positions)

    def __contains__(self, digest: bytes) -> bool:
        return digest in self._positions

    def add(self, stored: Mapping[bytes, bytes]) -> None:
        """Add vectors in their stored form, by the digests of their texts. The map must not have these digests yet."""
        read = unpack(list(stored.values()), self.dimension)
        while len(self._free) < len(stored):
            self._grow(len(stored) - len(self._free))
        positions = [self._free.pop() for _ in stored]
        self._matrix[positions] = widen(read) if self._matrix.dtype == np.float32 else read
        # Numbers of float16 are multiples of 2^-24, so this sum is exact, whatever the order of additions and removals.
        self._sum += read.sum(axis=0, dtype=np.float64)
        for position, digest in zip(positions, stored, strict=True):
            self._positions[digest] = position
            self._digests[position] = digest

    def remove(self, digest: bytes) -> None:
        """Remove the embedding of a text, if there is one."""
        position = self._positions.pop(digest, None)
        if position is not None:
            self._sum -= self._matrix[position]
            self._matrix[position] = 0
            self._free.append(position)

    def centre(self, query: npt.NDArray[Any]) -> Matrix:
        """Subtract the mean of all rows from a query; return the normalised difference.

        This removes what all vectors have in common, because the vectors of all code are similar, in some models more
        than in others (Ethayarajh, How Contextual are Contextualized Word Representations?,
        https://aclanthology.org/D19-1006/). With fewer than 100 rows, return the query itself.
        """
        if len(self) < _MIN_CENTRED_ROWS:
            return widen(query)
        centred: Matrix = normalise((query - self._sum / len(self))[None])[0]
        return centred

    def search(self, query: npt.NDArray[Any], k: int) -> list[tuple[bytes, float]]:
        """Return the digests and cosines of the `k` nearest rows, except rows whose cosine is 0 or less.

        See `find_nearest()` for rows with equal cosines.
        """
        numbers, cosines = find_nearest(self._matrix, query, k)
        like = cosines > 0
        return [
            (self._digests[position], cosine)
            for position, cosine in zip(numbers[like].tolist(), cosines[like].tolist(), strict=True)
        ]

    def export(self) -> tuple[Ids, npt.NDArray[Any], dict[int, bytes]]:
        """Return a permanent id for each text, the rows in the same order, and a map from ids to the texts' digests."""
        texts = {int.from_bytes(digest[:8]) >> 1: digest for digest in self._positions}
        positions = [self._positions[digest] for digest in texts.values()]
        return np.fromiter(texts, np.int64, len(texts)), self._matrix[positions].astype(np.float16), texts

    def _grow(self, by: int) -> None:
        before = len(self._digests)
        size = before + max(by, before // _GROWTH_DIVISOR)
        kind = np.float32 if size * self.dimension * 4 <= self._max_float32_bytes else np.float16
        matrix = np.zeros((size, self.dimension), kind)
        matrix[:before] = self._matrix
        self._matrix = matrix
        self._digests += [b""] * (size - before)
        self._free = [*range(size - 1, before - 1, -1), *self._free]


class Approximate:
    """Approximate search in very many vectors; needs the package `usearch` (extra `usearch`).

    usearch finds candidates in a graph (HNSW, https://arxiv.org/abs/1603.09320). Their cosines are then computed
    exactly from the rows, so that they are the same as in the result of `find_nearest()`. But the graph may miss some
    of the nearest vectors.

    `follow()` adds new rows to the graph and removes deleted rows. The graph may be stored in a file. If the file is
    missing, broken or of another dimension, the graph is rebuilt, which takes minutes for a million rows.
    """

    def __init__(self, ids: Ids, rows: npt.NDArray[Any], *, file: Path | None = None) -> None:
        self._file = file
        self._dimension = rows.shape[1]
        self._graph = self._load()
        self.follow(ids, rows)

    def follow(self, ids: Ids, rows: npt.NDArray[Any]) -> None:
        """Update the graph, so that it has exactly the given rows.

        If the graph changes and has a file, replace the file atomically.
        """
        order = np.argsort(ids, kind="stable")
        self._ids, self._rows = ids[order], rows[order]
        known: Ids = self._graph.keys[:].astype(np.int64) if len(self._graph) else np.empty(0, np.int64)
        gone = np.setdiff1d(known, self._ids)
        if len(gone) > _MAX_REMOVED_SHARE * len(known):
            self._graph, known, gone = self._empty(), known[:0], gone[:0]
        new = np.flatnonzero(~np.isin(self._ids, known))
        if len(gone):
            self._graph.remove(gone.astype(np.uint64))
        if len(new):
            self._graph.add(self._ids[new].astype(np.uint64), self._rows[new])
        if len(new) or len(gone):
            self._save()

    def search(self, query: npt.NDArray[Any], k: int) -> list[tuple[int, float]]:
        """Return the ids and cosines of the `k` nearest of the rows that the graph finds; see `find_nearest()`."""
        if k < 1 or not len(self._ids):
            return []
        found = self._graph.search(query.astype(np.float16), max(k * _CANDIDATES_PER_RESULT, 64))
        candidates = np.sort(np.asarray(found.keys).astype(np.int64))
        positions = np.minimum(np.searchsorted(self._ids, candidates), len(self._ids) - 1)
        here = self._ids[positions] == candidates
        numbers, cosines = find_nearest(self._rows[positions[here]], query, k)
        return list(zip(candidates[here][numbers].tolist(), cosines.tolist(), strict=True))

    def _empty(self) -> Any:
        usearch = import_module("usearch.index")
        # With half of the default expansion, the graph is built in 60 % of the time, and finds the same neighbours.
        return usearch.Index(ndim=self._dimension, metric="ip", dtype="f16", expansion_add=64)

    def _load(self) -> Any:
        graph = self._empty()
        if self._file is not None and self._file.exists():
            # usearch does not document what it raises for a broken file.
            with suppress(Exception):
                read = self._empty()
                read.load(str(self._file))
                if read.ndim == self._dimension:
                    graph = read
        return graph

    def _save(self) -> None:
        if self._file is None:
            return
        with (
            defer_interrupts(),
            NamedTemporaryFile(dir=self._file.parent, prefix=f"{self._file.name}.", delete=False) as made,
        ):
            staged = Path(made.name)
        try:
            self._graph.save(str(staged))
            replace_file(staged, self._file)
        finally:
            staged.unlink(missing_ok=True)
