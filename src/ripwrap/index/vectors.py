"""Vectors as bytes and as a matrix, and the nearest of them; needs numpy, of the extra `vectors`.

A vector is kept as a normalised row of float16, little-endian: half the bytes, and cosines right to about 0.001. The
rows are the truth. What usearch builds of them, where there are very many, can be thrown away at any time.
"""

import functools
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

Matrix: TypeAlias = npt.NDArray[np.float32]
Halves: TypeAlias = npt.NDArray[np.float16]
Ids: TypeAlias = npt.NDArray[np.int64]

MANY = 200_000
"""Above as many vectors, an approximate search is worth its index."""

_BLOCK = 4096  # Rows that are widened at a time: 4 MiB at 256 numbers each.
_KEPT = 256 * 1024 * 1024  # Bytes of float32 that an exact search keeps, for queries that take a tenth of the time.
_OVERSAMPLE = 8  # Candidates of usearch for each neighbour that is wanted; their cosines are then made exact.
_REMOVED = 0.2  # With more of an index gone than this share, a new one is smaller and better.
_MAX_DIMENSION = 65_536


def matrix(rows: object, count: int, dimension: int | None = None) -> Matrix:
    """What an embedder answered, as `count` normalised rows; a row of zeros stays one.

    Args:
        rows: Anything.
        count: How many there should be.
        dimension: How long each should be, if that is known.

    Raises:
        ValueError: It is something else, or has numbers that are none (NaN, infinity).
    """
    try:
        found = np.asarray(rows)
    except ValueError as error:
        raise ValueError("vectors of different lengths, or no vectors") from error
    if found.dtype.kind not in "fiu" or found.ndim != 2:
        raise ValueError("no list of vectors of numbers" if count else "something where nothing was asked for")
    if found.shape[0] != count:
        raise ValueError(f"{found.shape[0]} vectors for {count} texts")
    if not 0 < found.shape[1] <= _MAX_DIMENSION:
        raise ValueError(f"vectors of {found.shape[1]} numbers")
    if dimension is not None and found.shape[1] != dimension:
        raise ValueError(f"vectors of {found.shape[1]} numbers instead of {dimension}")
    if not np.isfinite(found).all():
        raise ValueError("vectors with NaN or infinity in them")
    return normalised(found)


def normalised(rows: npt.NDArray[Any]) -> Matrix:
    """Each row with a length of 1, however long or short it was; one of zeros stays as it is."""
    wide = rows.astype(np.float64)
    largest = np.abs(wide).max(axis=1, keepdims=True, initial=0.0)
    wide /= np.where(largest > 0, largest, 1.0)  # or the squares of very large numbers are infinite, of small ones 0
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))[:, None]
    wide /= np.where(lengths > 0, lengths, 1.0)
    return wide.astype(np.float32)


def pack(rows: npt.NDArray[Any]) -> list[bytes]:
    """Each row of a normalised matrix as it is stored."""
    return [row.tobytes() for row in np.ascontiguousarray(rows, dtype="<f2")]


def unpack(blobs: Sequence[bytes], dimension: int) -> Halves:
    """Stored rows as a matrix, in the same order.

    Raises:
        ValueError: One of them has another length: the database is damaged, or of another model.
    """
    for number, blob in enumerate(blobs):
        if len(blob) != 2 * dimension:
            raise ValueError(f"vector {number} has {len(blob)} bytes instead of {2 * dimension}; rebuild the index")
    found = np.frombuffer(b"".join(blobs), dtype="<f2").reshape(len(blobs), dimension)
    return found.astype(np.float16, copy=False)


def widen(rows: npt.NDArray[Any]) -> Matrix:
    """The same numbers as float32."""
    if rows.dtype != np.float16:
        return rows.astype(np.float32, copy=False)
    wide = np.empty(rows.shape, np.float32)
    bits = np.ascontiguousarray(rows).view(np.uint16)
    for start in range(0, len(rows), _BLOCK):
        # numpy takes twice as long where it converts by itself; every number of 16 bits is in the table.
        np.take(_every_half(), bits[start : start + _BLOCK], out=wide[start : start + _BLOCK], mode="clip")
    return wide


@functools.cache
def _every_half() -> Matrix:
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)


def nearest(rows: npt.NDArray[Any], query: npt.NDArray[Any], k: int) -> tuple[Ids, Matrix]:
    """The `k` rows that are most like a query, by exact cosine: row numbers and cosines, the best first.

    Of rows that are alike, the first is the better. Of float16 only a block is widened at a time.

    Args:
        rows: Normalised, float16 or float32.
        query: One vector, normalised.
        k: How many; fewer come if there are fewer.
    """
    wanted = widen(query)
    numbers, scores = np.empty(0, np.int64), np.empty(0, np.float32)
    if k < 1:
        return numbers, scores
    step = _BLOCK if rows.dtype == np.float16 else 16 * _BLOCK  # nothing to widen, and fewer calls
    for start in range(0, len(rows), step):
        block = widen(rows[start : start + step]) @ wanted
        here = np.arange(len(block))
        if len(block) > k:
            # All that are as good as the last are kept, so that of equals the first wins, wherever it is.
            here = np.flatnonzero(block >= np.partition(block, -k)[-k])
        numbers = np.concatenate([numbers, here + start])
        scores = np.concatenate([scores, block[here]])
        best = np.argsort(-scores, kind="stable")[:k]
        numbers, scores = numbers[best], scores[best]
    return numbers, scores


class Neighbours(Protocol):
    """What finds the vectors that are most like one."""

    @property
    def note(self) -> str:
        """How it finds them, and, if that is not as it should be, why."""
        ...

    def search(self, query: npt.NDArray[Any], k: int) -> list[tuple[int, float]]:
        """Ids and cosines, the best first."""
        ...


class Exact:
    """Every vector is looked at; as float32, unless those would take more than 256 MiB."""

    def __init__(self, ids: Ids, rows: npt.NDArray[Any], *, note: str = "") -> None:
        self._ids = ids
        self._rows = widen(rows) if rows.size * 4 <= _KEPT else rows
        self.note: str = note or f"exact, {len(ids)} vectors"

    def search(self, query: npt.NDArray[Any], k: int) -> list[tuple[int, float]]:
        """Ids and cosines, the best first."""
        numbers, scores = nearest(self._rows, query, k)
        return list(zip(self._ids[numbers].tolist(), scores.tolist(), strict=True))


class Approximate:
    """usearch names candidates out of a graph, their cosines are then exact. Needs the package `usearch`.

    The graph follows the rows: `follow()` adds those that it lacks and takes out those that are gone. It may be kept in
    a file; one that is missing, broken or of another dimension is made anew, which takes minutes for a million rows.
    """

    def __init__(self, ids: Ids, rows: npt.NDArray[Any], *, file: Path | None = None) -> None:
        self._file = file
        self._dimension = rows.shape[1]
        self._graph = self._load()
        self.follow(ids, rows)

    @property
    def note(self) -> str:
        """How neighbours are found."""
        return f"approximate (usearch), {len(self._ids)} vectors"

    def follow(self, ids: Ids, rows: npt.NDArray[Any]) -> None:
        """Have the graph know these rows and no others; the file, if there is one, is replaced at once or not at all.

        Args:
            ids: A number for each row, by which it is the same row the next time; each once.
            rows: Normalised.
        """
        order = np.argsort(ids, kind="stable")
        self._ids, self._rows = ids[order], rows[order]
        known: Ids = self._graph.keys[:].astype(np.int64) if len(self._graph) else np.empty(0, np.int64)
        gone = np.setdiff1d(known, self._ids)
        if len(gone) > _REMOVED * len(known):
            self._graph, known, gone = self._empty(), known[:0], gone[:0]
        new = np.flatnonzero(~np.isin(self._ids, known))
        if len(gone):
            self._graph.remove(gone.astype(np.uint64))
        if len(new):
            self._graph.add(self._ids[new].astype(np.uint64), self._rows[new])
        if len(new) or len(gone):
            self._save()

    def search(self, query: npt.NDArray[Any], k: int) -> list[tuple[int, float]]:
        """Ids and cosines, the best first."""
        if k < 1 or not len(self._ids):
            return []
        found = self._graph.search(query.astype(np.float16), max(k * _OVERSAMPLE, 64))
        candidates = np.sort(np.asarray(found.keys).astype(np.int64))
        places = np.minimum(np.searchsorted(self._ids, candidates), len(self._ids) - 1)
        here = self._ids[places] == candidates
        return Exact(candidates[here], self._rows[places[here]]).search(query, k)

    def _empty(self) -> Any:
        usearch = import_module("usearch.index")
        # Half of its default: built in 60 % of the time, and the same neighbours found.
        return usearch.Index(ndim=self._dimension, metric="ip", dtype="f16", expansion_add=64)

    def _load(self) -> Any:
        graph = self._empty()
        if self._file is not None and self._file.exists():
            # What usearch raises for a broken file is not documented.
            with suppress(Exception):
                read = self._empty()
                read.load(str(self._file))
                if read.ndim == self._dimension:
                    graph = read
        return graph

    def _save(self) -> None:
        if self._file is None:
            return
        with NamedTemporaryFile(dir=self._file.parent, prefix=f"{self._file.name}.", delete=False) as made:
            staged = Path(made.name)
        try:
            self._graph.save(str(staged))
            staged.replace(self._file)
        finally:
            staged.unlink(missing_ok=True)


def neighbours(ids: Ids, rows: npt.NDArray[Any], *, file: Path | None = None, many: int = MANY) -> Neighbours:
    """What searches these rows: exactly, or, if there are more than `many`, approximately and with an index.

    Where usearch is not installed the search is exact all the same, and its `note` says so.

    Args:
        ids: A number for each row, by which it is the same row the next time; each once.
        rows: Normalised.
        file: Where the approximate index may be kept.
        many: Above as many rows there is one.

    Raises:
        ValueError: There are not as many ids as rows, or one is there twice.
    """
    if len(ids) != len(rows) or len(np.unique(ids)) != len(ids):
        raise ValueError(f"each row needs an id of its own: {len(ids)} ids for {len(rows)} rows")
    if len(ids) <= many:
        return Exact(ids, rows)
    if find_spec("usearch") is None:
        how = 'pip install "ripwrap[vectors]"'
        return Exact(ids, rows, note=f"exact, {len(ids)} vectors: slow, because usearch is not installed ({how})")
    return Approximate(ids, rows, file=file)
