"""Vectors as bytes and as a matrix, and the nearest of them; needs numpy, of the extra `vectors`.

A vector is kept as a normalised row of float16, little-endian: half the bytes, and cosines right to about 0.001. The
rows are the truth. What usearch builds of them, where there are very many, can be thrown away at any time.
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

Matrix: TypeAlias = npt.NDArray[np.float32]
Halves: TypeAlias = npt.NDArray[np.float16]
Ids: TypeAlias = npt.NDArray[np.int64]

MANY = 200_000
"""Above as many vectors, an approximate search is worth its index."""

_BLOCK = 4096  # Rows that are widened at a time: 4 MiB at 256 numbers each.
_KEPT = 256 * 1024 * 1024  # Bytes of float32 that are kept, for queries that take a tenth of the time.
_INEXACT = 1e-4  # What a cosine of float32 numbers may be wrong by.
_DECIMALS = 9  # Of a cosine; what is below is noise, in which equal rows would differ.
_SPARE = 16  # One row more for each so many, so that few that come do not have all copied.
_OVERSAMPLE = 8  # Candidates of usearch for each neighbour that is wanted; their cosines are then made exact.
_REMOVED = 0.2  # With more of an index gone than this share, a new one is smaller and better.
_MAX_DIMENSION = 65_536


def matrix(rows: object, count: int) -> Matrix:
    """What an embedder answered, as `count` normalised rows; a row of zeros stays one.

    Args:
        rows: Anything.
        count: How many there should be.

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


def nearest(rows: npt.NDArray[Any], query: npt.NDArray[Any], k: int) -> tuple[Ids, npt.NDArray[np.float64]]:
    """The `k` rows that are most like a query, and all that are as good as the last of them: numbers and cosines.

    They are in the order of their numbers. A cosine depends on its row alone, and not on where that is. Of float16 only
    a block is widened at a time.

    Args:
        rows: Normalised, float16 or float32.
        query: One vector, normalised.
        k: How many; fewer come if there are fewer.
    """
    wanted = widen(query)
    if k < 1 or not len(rows):
        return np.empty(0, np.int64), np.empty(0, np.float64)
    near = np.empty(len(rows), np.float32)
    step = _BLOCK if rows.dtype == np.float16 else len(rows)
    for start in range(0, len(rows), step):
        np.matmul(widen(rows[start : start + step]), wanted, out=near[start : start + step])
    numbers = np.arange(len(rows))
    if len(rows) > k:
        numbers = np.flatnonzero(near >= np.partition(near, -k)[-k] - _INEXACT)
    cosines = np.einsum("ij,j->i", rows[numbers].astype(np.float64), wanted.astype(np.float64)).round(_DECIMALS)
    if len(numbers) > k:
        here = cosines >= np.partition(cosines, -k)[-k]
        numbers, cosines = numbers[here], cosines[here]
    return numbers, cosines


class Rows:
    """Vectors by the digest of their text, in one matrix that follows what there is.

    As float32, unless those would take more than 256 MiB. What is taken out leaves a row of zeros to the next that
    comes.
    """

    def __init__(self, dimension: int) -> None:
        self.dimension: int = dimension
        self._places: dict[bytes, int] = {}
        self._digests: list[bytes] = []
        self._free: list[int] = []
        self._matrix: npt.NDArray[Any] = np.zeros((0, dimension), np.float32)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, digest: bytes) -> bool:
        return digest in self._places

    def add(self, stored: Mapping[bytes, bytes]) -> None:
        """Take in vectors as they are stored, of texts that have none here."""
        read = unpack(list(stored.values()), self.dimension)
        while len(self._free) < len(stored):
            self._grow(len(stored) - len(self._free))
        places = [self._free.pop() for _ in stored]
        self._matrix[places] = widen(read) if self._matrix.dtype == np.float32 else read
        for place, digest in zip(places, stored, strict=True):
            self._places[digest] = place
            self._digests[place] = digest

    def remove(self, digest: bytes) -> None:
        """Take out the vector of a text, if it is here."""
        place = self._places.pop(digest, None)
        if place is not None:
            self._matrix[place] = 0
            self._free.append(place)

    def search(self, query: npt.NDArray[Any], k: int) -> list[tuple[bytes, float]]:
        """The nearest, as `nearest()` has them, of those that are like the query at all."""
        numbers, cosines = nearest(self._matrix, query, k)
        like = cosines > 0
        return [
            (self._digests[place], cosine)
            for place, cosine in zip(numbers[like].tolist(), cosines[like].tolist(), strict=True)
        ]

    def numbered(self) -> tuple[Ids, npt.NDArray[Any], dict[int, bytes]]:
        """Numbers by which a text is the same the next time, each with its row; and whose they are."""
        texts = {int.from_bytes(digest[:8]) >> 1: digest for digest in self._places}
        places = [self._places[digest] for digest in texts.values()]
        return np.fromiter(texts, np.int64, len(texts)), self._matrix[places].astype(np.float16), texts

    def _grow(self, by: int) -> None:
        before = len(self._digests)
        size = before + max(by, before // _SPARE)
        kind = np.float32 if size * self.dimension * 4 <= _KEPT else np.float16
        matrix = np.zeros((size, self.dimension), kind)
        matrix[:before] = self._matrix
        self._matrix = matrix
        self._digests += [b""] * (size - before)
        self._free = [*range(size - 1, before - 1, -1), *self._free]


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
        """Ids and cosines, as `nearest()` has them."""
        if k < 1 or not len(self._ids):
            return []
        found = self._graph.search(query.astype(np.float16), max(k * _OVERSAMPLE, 64))
        candidates = np.sort(np.asarray(found.keys).astype(np.int64))
        places = np.minimum(np.searchsorted(self._ids, candidates), len(self._ids) - 1)
        here = self._ids[places] == candidates
        numbers, cosines = nearest(self._rows[places[here]], query, k)
        return list(zip(candidates[here][numbers].tolist(), cosines.tolist(), strict=True))

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
