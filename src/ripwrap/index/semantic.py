"""The vectors of an index: what has none is embedded, batch by batch, and the chunks that are most like a query found.

A batch is a transaction of its own, after the one of the files: whoever is killed or cancelled loses the batches that
are under way. Nothing is asked of an embedder while the database is held.
"""

import hashlib
import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeAlias

import anyio

from ripwrap._ranking.score import POOL
from ripwrap._text import raw_bytes, text_of
from ripwrap.binary.resolver import in_thread
from ripwrap.errors import EmbeddingError
from ripwrap.index.embed import Embedded, Embedder, Failed, Limits, embed_all, embed_query, limits_of, provider_of
from ripwrap.index.health import LACKING
from ripwrap.index.models import EmbedReason, NotEmbedded
from ripwrap.index.query import Pool, Vectors, portions
from ripwrap.index.rows import View, generation_of, number_of
from ripwrap.index.store import Store, check, reading, restored, writing

if TYPE_CHECKING:
    from sqlite3 import Connection

    from ripwrap.index.vectors import Halves, Matrix, Neighbours

COOL = 30.0
"""Seconds after a failure in which a search does not ask again; `refresh()` does."""

_PORTION = 4_096  # Texts in memory at a time.
_LOOK = 0.05  # Seconds between two looks at whether another task is done.
_HURRY = Limits(tries=2, max_pause=2, timeout=20, give_up=1)
_SAYS: dict[EmbedReason, str] = {
    "setup": "cannot be used",
    "refused": "has refused",
    "rejected": "does not take this query",
    "unavailable": "does not answer",
    "garbage": "answers with garbage",
}

_LOGGER = logging.getLogger("ripwrap")

Tell: TypeAlias = Callable[[int, int], object]
"""Told how many texts of how many are embedded, in a worker thread."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of texts without a vector.

    Attributes:
        embedded: How many have one now.
        failed: Those that have none, by reason.
    """

    embedded: int = 0
    failed: tuple[NotEmbedded, ...] = ()


@dataclass(frozen=True, slots=True)
class _Lacking:
    """Texts of a view that have no vector, each by its digest, with a chunk that has it; and how long vectors are."""

    chunks: dict[bytes, int]
    dimension: int | None
    state: tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class _Loaded:
    """The vectors of a view in memory: a row for each text, and the chunks that have it."""

    state: tuple[int, int | None, int]
    places: dict[bytes, int]
    rows: "Halves"
    chunks: dict[int, list[int]]
    neighbours: "Neighbours"


class Semantic:
    """An embedder and an index.

    Attributes:
        embedder: The embedder.
    """

    def __init__(self, store: Store, view: Callable[[], View], embedder: Embedder, weight: float | None) -> None:
        """Nothing is asked or loaded yet.

        Args:
            store: The index.
            view: Says which view is meant.
            embedder: What makes vectors.
            weight: What vectors say of what they and words say; `None` decides by the query.

        Raises:
            EmbeddingError: numpy is missing.
            ValueError: The weight is not from 0 to 1.
        """
        if weight is not None and not 0 <= weight <= 1:
            raise ValueError(f"hybrid_weight should be from 0 to 1, not {weight}")
        if find_spec("numpy") is None:
            message = f'{embedder.name} cannot be used: it needs the package numpy: pip install "ripwrap[vectors]"'
            raise EmbeddingError(message, provider=provider_of(embedder))
        self.embedder = embedder
        self._declared = embedder.dimension  # and not what it learns of answers
        self._store, self._view, self._weight = store, view, weight
        self._turn = threading.Lock()
        self._complete: tuple[int | None, int | None] | None = None
        self._rejected: set[bytes] = set()
        self._failed: tuple[float, EmbeddingError] | None = None
        self._loaded: _Loaded | None = None

    async def embed(self, tell: Tell | None, *, patient: bool) -> Outcome:
        """Embed the texts of the view that lack a vector; one task at a time.

        Args:
            tell: Told how far it is.
            patient: Whether to try as often as the embedder's limits say. If not, it is tried a moment, and not at all
                shortly after it has failed.
        """
        while not self._turn.acquire(blocking=False):
            if not patient:  # a refresh is at it
                return Outcome()
            await anyio.sleep(_LOOK)
        try:
            return await self._embed(tell, patient=patient)
        finally:
            self._turn.release()

    async def vectors_for(self, query: str) -> Vectors:
        """What ranking is to know of vectors for a query."""
        if self._weight == 0:
            return Vectors(None, 0, "they weigh nothing")
        dimension = await in_thread(lambda: self._store.run(lambda database: _model(database, self.embedder.name)[0]))
        if dimension is None:
            return Vectors(None, self._weight)
        if (error := self._lately()) is None:
            try:
                wanted = await embed_query(self.embedder, query, limits=self._hurried(), dimension=dimension)
            except EmbeddingError as failed:
                _LOGGER.warning("words alone answer a query: %s", failed)
                self._note(failed)
                error = failed
            else:
                self._failed = None
                return Vectors(partial(self._pool, wanted), self._weight)
        return Vectors(None, self._weight, f"{self.embedder.name} {_SAYS[error.reason]}")

    async def _embed(self, tell: Tell | None, *, patient: bool) -> Outcome:
        lacking = await in_thread(lambda: self._store.run(self._lacking))
        wanted = {digest: chunk for digest, chunk in lacking.chunks.items() if patient or digest not in self._rejected}
        if not wanted:
            if not lacking.chunks:
                self._complete = lacking.state
            return Outcome()
        failures = _Failures()
        if not patient and (error := self._lately()) is not None:
            return Outcome(0, failures.told(error, len(wanted)))
        done = _Done(self._store, self.embedder.name, len(wanted), tell)
        stopped = await self._portions(list(wanted.values()), lacking.dimension, done, failures, patient=patient)
        self._failed = None
        if stopped is not None:
            self._note(stopped)
        self._rejected |= failures.rejected
        told = failures.told(stopped, len(wanted) - done.embedded - failures.count)
        for one in told:
            _LOGGER.warning("%d texts have no vector yet: %s", one.texts, one.message)
        return Outcome(done.embedded, told)

    async def _portions(
        self, chunks: Sequence[int], dimension: int | None, done: "_Done", failures: "_Failures", *, patient: bool
    ) -> EmbeddingError | None:
        """Embed chunks; the error after which nothing more was tried."""
        limits = limits_of(self.embedder) if patient else self._hurried()
        for at in range(0, len(chunks), _PORTION):
            texts = await in_thread(partial(self._store.run, partial(_texts, chunks[at : at + _PORTION])))
            async with embed_all(self.embedder, texts, limits=limits, dimension=dimension) as batches:
                async for batch in batches:
                    dimension = batch.vectors.shape[1]
                    await in_thread(partial(done.keep, batch))
            failures.add(batches.failed)
            if batches.stopped is not None:
                return batches.stopped
        return None

    def _hurried(self) -> Limits:
        limits = limits_of(self.embedder)
        return replace(
            limits,
            tries=min(limits.tries, _HURRY.tries),
            max_pause=min(limits.max_pause, _HURRY.max_pause),
            timeout=min(limits.timeout, _HURRY.timeout),
            give_up=_HURRY.give_up,
        )

    def _note(self, error: EmbeddingError) -> None:
        if error.reason != "rejected":  # which says something of one text alone
            self._failed = time.monotonic(), error

    def _lately(self) -> EmbeddingError | None:
        """The error of an embedder that has failed a moment ago."""
        if self._failed is None or time.monotonic() - self._failed[0] > COOL:
            return None
        return self._failed[1]

    def _lacking(self, database: "Connection") -> _Lacking:
        """What is to be embedded; vectors of another length than the embedder's are thrown away first."""
        view, name, wanted = self._view(), self.embedder.name, self._declared
        dimension, generation = _model(database, name)
        if None not in (wanted, dimension) and wanted != dimension:
            _LOGGER.warning("%s has vectors of %s numbers, which were %s: made anew", name, wanted, dimension)
            with writing(database):
                database.execute("DELETE FROM vec WHERE model = ?", (name,))
                database.execute("DELETE FROM model WHERE name = ?", (name,))
            dimension, generation = None, None
        with reading(database):
            state = generation_of(database, view), generation
            if state == self._complete:
                return _Lacking({}, dimension, state)
            rows = database.execute(
                f"SELECT chunk.digest, chunk.id {LACKING} ORDER BY tree.path, chunk.start",
                (number_of(database, view), name, 2 * (dimension or 0)),
            )
            found: dict[bytes, int] = {}
            for digest, chunk in rows:
                found.setdefault(digest, chunk)
        return _Lacking(found, dimension, state)

    def _pool(self, wanted: "Matrix", database: "Connection", number: int) -> Pool | None:
        """The chunks of a view that are most like a vector; `None` if there are no vectors."""
        loaded = self._load(database, number)
        if loaded is None:
            return None
        pool: list[tuple[int, float]] = []
        for text, cosine in loaded.neighbours.search(wanted, POOL):
            if cosine <= 0 or len(pool) >= POOL:
                break
            pool += [(chunk, cosine) for chunk in loaded.chunks[text]]
        return pool[:POOL]

    def _load(self, database: "Connection", number: int) -> _Loaded | None:
        """The vectors of a view; those that were in memory before are not read again."""
        name = self.embedder.name
        dimension, model = _model(database, name)
        if dimension is None:
            return None
        (view,) = database.execute("SELECT generation FROM view WHERE id = ?", (number,)).fetchone()
        before, state = self._loaded, (number, model, view)
        if before is not None and before.state == state:
            return before
        chunks: dict[bytes, list[int]] = {}
        for digest, chunk in database.execute(_CHUNKS, (number,)):
            chunks.setdefault(digest, []).append(chunk)
        places = before.places if before is not None and before.rows.shape[1] == dimension else {}
        new: dict[bytes, bytes] = {}
        for some in portions([digest for digest in chunks if digest not in places]):
            check()
            statement = f"{_VECTORS} AND digest IN ({','.join('?' * len(some))})"
            new.update(database.execute(statement, (name, 2 * dimension, *some)))
        self._loaded = self._made(state, chunks, new, dimension, before if places else None)
        return self._loaded

    def _made(
        self,
        state: tuple[int, int | None, int],
        chunks: dict[bytes, list[int]],
        new: dict[bytes, bytes],
        dimension: int,
        before: _Loaded | None,
    ) -> _Loaded | None:
        import numpy as np

        from ripwrap.index.vectors import neighbours, unpack

        old = {} if before is None else before.places
        digests = [digest for digest in chunks if digest in old or digest in new]
        if not digests:
            return None
        added = [digest for digest in digests if digest not in old]
        read = unpack([new[digest] for digest in added], dimension)
        at = {digest: place for place, digest in enumerate(added, len(old))}
        every = read if before is None else np.concatenate([before.rows, read])
        rows = every[[old[digest] if digest in old else at[digest] for digest in digests]]
        # A text has the same number the next time, which an index in a file builds upon.
        ids = np.array([int.from_bytes(digest[:8]) >> 1 for digest in digests], np.int64)
        named = hashlib.blake2b(self.embedder.name.encode(), digest_size=8).hexdigest()
        file = self._store.folder / f"vectors-{state[0]}-{named}.usearch"
        return _Loaded(
            state=state,
            places={digest: place for place, digest in enumerate(digests)},
            rows=rows,
            chunks={number: chunks[digest] for number, digest in zip(ids.tolist(), digests, strict=True)},
            neighbours=neighbours(ids, rows, file=file if os.access(self._store.folder, os.W_OK) else None),
        )


# In the order of path and place, so that it does not matter in which order files came into the index.
_CHUNKS = (
    "SELECT chunk.digest, chunk.id FROM tree CROSS JOIN chunk ON chunk.blob = tree.blob WHERE tree.view = ?"
    " ORDER BY tree.path, chunk.start"
)
_VECTORS = "SELECT digest, v FROM vec WHERE model = ? AND length(v) = ?"


class _Done:
    """Keeps batches, and counts them."""

    def __init__(self, store: Store, model: str, total: int, tell: Tell | None) -> None:
        self.embedded = 0
        self._store, self._model, self._total, self._tell = store, model, total, tell

    def keep(self, batch: Embedded[bytes]) -> None:
        self._store.run(partial(self._write, batch))
        self.embedded += len(batch.keys)
        if self._tell is not None:
            self._tell(self.embedded, self._total)

    def _write(self, batch: Embedded[bytes], database: "Connection") -> None:
        from ripwrap.index.vectors import pack

        length = batch.vectors.shape[1]
        with writing(database):
            dimension, _ = _model(database, self._model)
            if dimension not in (None, length):  # by another process, a moment ago
                message = f"{self._model} answered with vectors of {length} numbers instead of {dimension}"
                raise EmbeddingError(message, provider=self._model.partition(":")[0], reason="garbage")
            database.execute(
                "INSERT OR REPLACE INTO model (name, dimension, generation) VALUES (?, ?, ?)",
                (self._model, length, secrets.randbits(62)),
            )
            database.executemany(
                "INSERT OR REPLACE INTO vec (digest, model, v) VALUES (?, ?, ?)",
                ((digest, self._model, v) for digest, v in zip(batch.keys, pack(batch.vectors), strict=True)),
            )


class _Failures:
    """Texts without vectors, by reason."""

    def __init__(self) -> None:
        self.count = 0
        self.rejected: set[bytes] = set()
        self._by_reason: dict[EmbedReason, tuple[int, str]] = {}

    def add(self, failed: Sequence[Failed[bytes]]) -> None:
        for one in failed:
            self._add(one.error, len(one.keys))
            if one.error.reason == "rejected":
                self.rejected.update(one.keys)

    def told(self, stopped: EmbeddingError | None, untried: int) -> tuple[NotEmbedded, ...]:
        """All of them; what was not tried has the reason for which it was not."""
        if stopped is not None and untried > 0:
            self._add(stopped, untried)
        return tuple(
            NotEmbedded(reason=reason, texts=count, message=message)
            for reason, (count, message) in self._by_reason.items()
        )

    def _add(self, error: EmbeddingError, texts: int) -> None:
        count, message = self._by_reason.get(error.reason, (0, f"{error}"))
        self._by_reason[error.reason] = count + texts, message
        self.count += texts


def _model(database: "Connection", name: str) -> tuple[int | None, int | None]:
    """How long a model's vectors are, and what changes with them; `None` if it has none."""
    row = database.execute("SELECT dimension, generation FROM model WHERE name = ?", (name,)).fetchone()
    return (None, None) if row is None else (int(row[0]), int(row[1]))


def _texts(numbers: Sequence[int], database: "Connection") -> list[tuple[bytes, str]]:
    """The texts of some chunks by digest; of a chunk that is no more there is none."""
    texts: dict[bytes, str] = {}
    for some in portions(numbers):
        statement = f"SELECT digest, text FROM chunk WHERE id IN ({','.join('?' * len(some))})"  # noqa: S608 - marks
        for digest, kept in database.execute(statement, some):
            texts[digest] = kept if isinstance(kept, str) else text_of(raw_bytes(restored(kept)))
    return list(texts.items())
