"""The vectors of an index: what has none is embedded, batch by batch, and the chunks that are most like a query found.

A batch is a transaction of its own, after the one of the files: whoever is killed or cancelled loses the batches that
are under way. Nothing is asked of an embedder while the database is held. One process asks at a time, because texts may
have to be paid for.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import anyio

from ripwrap.binary.resolver import in_thread
from ripwrap.errors import EmbeddingError, EmbedReason, RipwrapError
from ripwrap.index.batches import Embedded, Failed, LengthError, embed_all, embed_query
from ripwrap.index.database import reading
from ripwrap.index.embed import Embedder, Limits, limits_of, provider_of
from ripwrap.index.kept import Complete, doubt, forget, keep, lacking, model_of, texts_of
from ripwrap.index.loaded import Loaded
from ripwrap.index.models import NotEmbedded
from ripwrap.index.query import Vectors
from ripwrap.index.rows import View, generation_of, number_of
from ripwrap.index.store import Store, vectors_file

if TYPE_CHECKING:
    from sqlite3 import Connection

    from filelock import BaseFileLock

COOL = 30.0
"""Seconds after a failure in which a search does not ask again; `refresh()` does."""

MOMENT = 128
"""How many texts a search embeds before it answers; `refresh()` does the others."""

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
_LENGTH = "has vectors of another length now; the next refresh makes all anew"

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
class _Wanted:
    """Texts that have no vector, each by its digest, with a chunk that has it; and how long vectors are."""

    chunks: dict[bytes, int]
    dimension: int | None


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
            weight: What vectors say of what they and words say, from 0 to 1; `None` decides by the query.

        Raises:
            EmbeddingError: numpy is missing.
        """
        if find_spec("numpy") is None:
            message = f'{embedder.name} cannot be used: it needs the package numpy: pip install "ripwrap[vectors]"'
            raise EmbeddingError(message, provider=provider_of(embedder))
        self.embedder = embedder
        self._declared = embedder.dimension  # and not what it learns of answers
        self._store, self._view, self._weight = store, view, weight
        self._turn = threading.Lock()
        self._complete = Complete()
        self._thrown_away: set[int] = set()
        self._rejected: set[bytes] = set()
        self._left = 0  # texts of the view that lack a vector, as far as that is known
        self._failed: tuple[float, EmbeddingError] | None = None
        self._loaded = Loaded(embedder.name, store.folder)

    async def embed(self, tell: Tell | None, *, patient: bool) -> Outcome:
        """Embed the texts of the view that lack a vector; one task at a time, of all processes.

        Args:
            tell: Told how far it is.
            patient: Whether to wait for others, embed all, and try as often as the embedder's limits say. If not, the
                first `MOMENT` are tried a moment, and none while others are at it, or shortly after it has failed.
        """
        while not self._turn.acquire(blocking=False):
            if not patient:  # a refresh is at it
                return Outcome()
            await anyio.sleep(_LOOK)
        try:
            if not (await self._looked()).chunks:
                return Outcome()
            lock = _lock_of(self._store.folder, self.embedder.name)
            try:
                while not _taken(lock):
                    if not patient:
                        return Outcome()
                    await anyio.sleep(_LOOK)
                return await self._embed(tell, patient=patient, renew=patient)
            finally:
                lock.release()
        finally:
            self._turn.release()

    async def vectors_for(self, query: str) -> Vectors:
        """What ranking is to know of vectors for a query."""
        if self._weight == 0:
            return Vectors(None, 0, "they weigh nothing")
        model = await in_thread(lambda: self._store.run(lambda database: model_of(database, self.embedder.name)))
        if model.dimension is None:
            return Vectors(None, self._weight)
        if (error := self._lately()) is None:
            try:
                wanted = await embed_query(self.embedder, query, limits=self._hurried(), dimension=model.dimension)
            except EmbeddingError as failed:
                _LOGGER.warning("words alone answer a query: %s", failed)
                self._note(failed)
                error = failed
                if isinstance(error, LengthError):
                    await in_thread(self._doubt)
            else:
                self._failed = None
                lacking = f"{self._left} texts have no vector yet; refresh() makes them" if self._left else ""
                pool = partial(self._loaded.pool, wanted=wanted)
                return Vectors(pool, self._weight, lacking=lacking)
        says = _LENGTH if isinstance(error, LengthError) else _SAYS[error.reason]
        return Vectors(None, self._weight, f"{self.embedder.name} {says}")

    async def _looked(self) -> "_Wanted":
        every = await in_thread(lambda: self._store.run(self._lacking))
        self._left = len(every.chunks)
        return every

    async def _embed(self, tell: Tell | None, *, patient: bool, renew: bool) -> Outcome:
        every = await self._looked()
        wanted = every.chunks
        if not patient:
            tried = ((digest, chunk) for digest, chunk in wanted.items() if digest not in self._rejected)
            wanted = dict(islice(tried, MOMENT))
        if not wanted:
            return Outcome()
        failures = _Failures()
        if not patient and (error := self._lately()) is not None:
            return Outcome(0, failures.told(error, len(wanted)))
        done = _Done(len(wanted), tell)
        stopped = await self._portions(list(wanted.values()), every.dimension, done, failures, patient=patient)
        if renew and not done.embedded and (renewed := await self._renewed(every, failures)):
            outcome = await self._embed(tell, patient=patient, renew=False)
            return replace(outcome, embedded=renewed + outcome.embedded)
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
            texts = await in_thread(partial(self._texts, chunks[at : at + _PORTION]))
            async with embed_all(self.embedder, texts, limits=limits, dimension=dimension) as batches:
                async for batch in batches:
                    dimension = batch.vectors.shape[1]
                    try:
                        await in_thread(partial(self._kept, batch, done))
                    except LengthError as error:  # another process has had others meanwhile
                        failures.add([Failed(batch.keys, error)])
                        return error
            failures.add(batches.failed)
            if batches.stopped is not None:
                return batches.stopped
        return None

    async def _renewed(self, wanted: _Wanted, failures: "_Failures") -> int:
        """How many texts have vectors of another length now, for which all others were thrown away.

        The embedder is asked once more for a batch, to see whether it stays with that length. To one that was thrown
        away before it does not go back, so that nobody pays again and again for one that has two.
        """
        name, failed, before = self.embedder.name, failures.of_another_length(), wanted.dimension
        if failed is None or before is None:
            return 0
        length = failed.error.length
        if length == before or self.embedder.dimension not in (None, length):
            return 0
        if length in self._thrown_away:
            _LOGGER.warning("%s goes from vectors of %d numbers back to %d: it is not followed", name, before, length)
            return 0
        chunks = [wanted.chunks[digest] for digest in failed.keys]
        texts = await in_thread(partial(self._texts, chunks))
        async with embed_all(self.embedder, texts, dimension=length) as batches:
            async for batch in batches:
                _LOGGER.warning("%s has vectors of %d numbers, which were %d: made anew", name, length, before)
                await in_thread(partial(self._store.run, partial(keep, model=name, batch=batch, anew=True)))
                self._thrown_away.add(before)
        return batches.embedded

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

    def _lacking(self, database: "Connection") -> _Wanted:
        """What is to be embedded; vectors of another length than the embedder says are thrown away first."""
        view, name, declared = self._view(), self.embedder.name, self._declared
        model = model_of(database, name)
        if declared is not None and model.dimension is not None and declared != model.dimension:
            _LOGGER.warning("%s has vectors of %d numbers, which were %d: made anew", name, declared, model.dimension)
            forget(database, name, model.dimension)
        self._declared = None  # it is known by what it answers now
        with reading(database):
            model, generation = model_of(database, name), generation_of(database, view)
            if self._complete.generation != model.generation:
                self._complete = Complete(model.generation)
            elif generation is not None and generation == self._complete.view:
                return _Wanted({}, model.dimension)
            found = lacking(database, number_of(database, view), name, model.dimension, self._complete)
            self._complete.view = None if found else generation
        return _Wanted(found, model.dimension)

    def _texts(self, chunks: Sequence[int]) -> list[tuple[bytes, str]]:
        return self._store.run(lambda database: texts_of(database, chunks))

    def _kept(self, batch: Embedded[bytes], done: "_Done") -> None:
        self._store.run(partial(self._keep, batch))
        self._left -= len(batch.keys)
        done.add(len(batch.keys))

    def _keep(self, batch: Embedded[bytes], database: "Connection") -> None:
        before, now = keep(database, self.embedder.name, batch)
        if before.generation == self._complete.generation:
            self._complete.generation = now.generation

    def _doubt(self) -> None:
        """See to it that the next refresh asks for a text, whoever makes it."""
        view, name = self._view(), self.embedder.name
        with suppress(RipwrapError):  # nobody may write there, and nobody then refreshes it
            self._store.run(lambda database: doubt(database, number_of(database, view), name))


def _lock_of(folder: Path, model: str) -> "BaseFileLock":
    """What a process holds while it embeds for a model, called as what is made of the tables, which is ours."""
    from filelock import FileLock

    return FileLock(f"{vectors_file(folder, 0, model)}.lock", thread_local=False)


def _taken(lock: "BaseFileLock") -> bool:
    """Whether nobody else has it; it waits for nobody."""
    from filelock import Timeout

    try:
        lock.acquire(blocking=False)
    except Timeout:
        return False
    except OSError:  # a folder that cannot be written to: no vectors are kept in there
        return True
    return True


@dataclass(slots=True)
class _Done:
    """How many texts of how many have vectors, and who is told."""

    total: int
    tell: Tell | None
    embedded: int = 0

    def add(self, texts: int) -> None:
        self.embedded += texts
        if self.tell is not None:
            self.tell(self.embedded, self.total)


@dataclass(frozen=True, slots=True)
class _Longer:
    """Texts whose vectors were of another length than those that there are."""

    keys: tuple[bytes, ...]
    error: LengthError


class _Failures:
    """Texts without vectors, by reason."""

    def __init__(self) -> None:
        self.count = 0
        self.rejected: set[bytes] = set()
        self._others: list[_Longer] = []
        self._by_reason: dict[EmbedReason, tuple[int, str]] = {}

    def add(self, failed: Sequence[Failed[bytes]]) -> None:
        for one in failed:
            self._add(one.error, len(one.keys))
            if one.error.reason == "rejected":
                self.rejected.update(one.keys)
            if isinstance(one.error, LengthError):
                self._others.append(_Longer(one.keys, one.error))

    def of_another_length(self) -> _Longer | None:
        """The first texts whose vectors were; `None` if there are none, or of several lengths."""
        lengths = {one.error.length for one in self._others}
        return self._others[0] if len(lengths) == 1 else None

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
