"""Embed the texts of an index batch by batch, and find the chunks that are most similar to a query.

A refresh first writes the files in one transaction. Then each batch of embeddings is stored in its own transaction. If
a process is killed, only its unfinished batches are lost. The database is not locked during a request to an embedder.
One process embeds at a time, because each request may cost money.
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
from sqlite3 import Connection
from typing import TYPE_CHECKING, TypeAlias

from ripwrap._system.concurrency import ProcessLock, hold_lock_async, in_thread
from ripwrap._text import in_seconds, plural
from ripwrap.errors import EmbeddingError, EmbedReason, Hint, HintedText, RipwrapError
from ripwrap.index.embeddings.batching import Embedded, Failed, LengthError, SentCounter, embed_all, embed_query
from ripwrap.index.embeddings.protocol import Embedder, Limits, describe, limits_of, provider_of
from ripwrap.index.embeddings.storage import (
    QUERIES,
    Complete,
    VectorCache,
    drop_model,
    drop_one,
    find_missing,
    store_batch,
    texts_of,
)
from ripwrap.index.models import EmbedderInfo, EmbeddingFailure, VectorSearch
from ripwrap.index.storage.database import read_transaction, write_transaction
from ripwrap.index.storage.files import vectors_file
from ripwrap.index.storage.store import Store
from ripwrap.index.storage.tables import View, add_sent, generation_of, model_of, number_of

if TYPE_CHECKING:
    from ripwrap.index.embeddings.vectors import Matrix

MAX_TEXTS_PER_SEARCH = 128
"""Maximum number of texts that a search embeds before it answers; `refresh()` embeds all texts."""

_TEXTS_IN_MEMORY = 4_096
SEARCH_LIMITS = Limits(tries=2, max_pause=2, timeout=20, give_up=1)
REASON_TEXTS: dict[EmbedReason, str] = {
    "setup": "cannot be used",
    "refused": "refuses requests",
    "rejected": "rejects this query",
    "unavailable": "does not answer",
    "garbage": "returned an invalid answer",
}
CHANGED_LENGTH_TEXT = "returns vectors of another length now; the next refresh embeds all texts again"
CHANGED_LENGTH_LOG = "%s returns vectors of %d numbers, not %d as before; all texts are embedded again"

_LOGGER = logging.getLogger("ripwrap")

EmbedProgress: TypeAlias = Callable[[int, int], object]
"""Function that is called in a worker thread with two numbers: the texts embedded so far, and all texts to embed."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a call that embedded the texts that had no embedding."""

    embedded: int = 0
    failed: tuple[EmbeddingFailure, ...] = ()


@dataclass(frozen=True, slots=True)
class _Missing:
    """Texts that have no embedding."""

    chunks: dict[bytes, int]
    dimension: int | None


class HybridSearch:
    """Part of an index that embeds texts with one embedder, and searches with the embeddings."""

    def __init__(self, store: Store, view: Callable[[], View], embedder: Embedder, weight: float | None) -> None:
        """Configure the embeddings; nothing is embedded or loaded yet."""
        if find_spec("numpy") is None:
            install = Hint(kind="install", target="ripwrap[vectors]")
            message = f"{embedder.name} cannot be used: it needs the package numpy: {install}"
            raise EmbeddingError(message, provider=provider_of(embedder))
        self.embedder = embedder
        self.weight: float | None = weight
        self._declared = embedder.dimension  # the length that the embedder declares, before any answer
        self._store, self._view = store, view
        self._lock = threading.Lock()
        self._complete = Complete()
        self._dropped_dimensions: set[int] = set()
        self._rejected: set[bytes] = set()
        self._missing = 0  # texts of the view that had no embedding when they were last counted
        self._failed: tuple[float, EmbeddingError] | None = None
        self._cache = VectorCache(embedder.name, store.folder)
        self._sent = SentCounter()

    def info(self) -> EmbedderInfo:
        """Return the facts about the embedder that the status of the index shows."""
        destination = str(describe(self.embedder))
        return EmbedderInfo(self.embedder.name, self.embedder.dimension, destination, self._sent.sent)

    async def embed(self, progress: EmbedProgress | None, *, patient: bool) -> Outcome:
        """Embed the texts of the branch that have no embedding; only one task of one process does so at a time."""
        async with hold_lock_async(self._lock, wait=patient) as first:
            if not first or not (await self._find_missing()).chunks:  # another task embeds, or no text is missing
                return Outcome()
            graph = vectors_file(self._store.folder, 0, self.embedder.name)
            async with hold_lock_async(ProcessLock(Path(f"{graph}.lock"), if_writable=True), wait=patient) as held:
                if not held:
                    return Outcome()
                try:
                    return await self._embed(progress, patient=patient, renew=patient)
                finally:
                    await in_thread(self.store_sent)

    async def vectors_for(self, query: str, weight: float | None) -> VectorSearch:
        """Embed a query, or take its embedding from the cache.

        Return a `VectorSearch`: the function that searches with the embedding, or the reason why there is no such
        function.
        """
        if weight == 0:
            return VectorSearch(None, 0, "their weight is 0")
        model = await in_thread(lambda: self._store.run(lambda database: model_of(database, self.embedder.name)))
        if model.dimension is None:
            recent = self._recent_failure()
            return VectorSearch(None, weight, "" if recent is None else self._why_unavailable(recent))
        key = (self.embedder.name, describe(self.embedder).url, query)
        wanted = QUERIES.get(key, model.dimension)
        if wanted is None:
            try:
                wanted = await self._embed_query(query, model.dimension)
            except EmbeddingError as error:
                return VectorSearch(None, weight, self._why_unavailable(error))
            finally:
                await in_thread(self.store_sent)
            QUERIES.add(key, wanted)
        return VectorSearch(partial(self._cache.pool, wanted=wanted), weight, incomplete=self._why_incomplete())

    def _why_incomplete(self) -> str:
        missing = self._missing
        if not missing:
            return ""
        verb, them = ("has", "it") if missing == 1 else ("have", "them")
        makes = Hint(kind="call", target="refresh")
        return HintedText(f"{plural(missing, 'text')} {verb} no embedding yet; ", makes, f" embeds {them}")

    def give_up(self, seconds: float, weight: float | None) -> VectorSearch:
        """Store an error, because the embedder took too long; return a `VectorSearch` without a function.

        For the next `Limits.retry_search_after` seconds, searches then do not ask the embedder.
        """
        error = EmbeddingError(
            f"{self.embedder.name} took more than {seconds:g} seconds",
            provider=provider_of(self.embedder),
            reason="unavailable",
        )
        self._note(error)
        return VectorSearch(None, weight, f"{self.embedder.name} did not answer within {in_seconds(seconds)}")

    def _why_unavailable(self, error: EmbeddingError) -> str:
        says = CHANGED_LENGTH_TEXT if isinstance(error, LengthError) else REASON_TEXTS[error.reason]
        return f"{self.embedder.name} {says}"

    async def _embed_query(self, query: str, dimension: int) -> "Matrix":
        """Return the embedding of a query."""
        if (recent := self._recent_failure()) is not None:
            raise recent.with_traceback(None)  # otherwise its traceback would grow with each search
        try:
            found = await embed_query(
                self.embedder, query, limits=self._search_limits(), dimension=dimension, counter=self._sent
            )
        except EmbeddingError as error:
            _LOGGER.warning("a query is searched by words only: %s", error)
            self._note(error)
            if isinstance(error, LengthError):
                await in_thread(self._drop_one)
            raise
        self._failed = None
        return found

    async def _find_missing(self) -> _Missing:
        every = await in_thread(lambda: self._store.run(self._select_missing))
        self._missing = len(every.chunks)
        return every

    async def _embed(self, progress: EmbedProgress | None, *, patient: bool, renew: bool) -> Outcome:
        every = await self._find_missing()
        wanted = every.chunks
        if not patient:
            tried = ((digest, chunk) for digest, chunk in wanted.items() if digest not in self._rejected)
            wanted = dict(islice(tried, MAX_TEXTS_PER_SEARCH))
        if not wanted:
            return Outcome()
        failures = _Failures()
        if not patient and (error := self._recent_failure()) is not None:
            return Outcome(0, failures.results(error, len(wanted)))
        done = _Done(len(wanted), progress)
        stopped = await self._embed_chunks(list(wanted.values()), every.dimension, done, failures, patient=patient)
        if renew and not done.embedded and (renewed := await self._follow_new_length(every, failures)):
            outcome = await self._embed(progress, patient=patient, renew=False)
            return replace(outcome, embedded=renewed + outcome.embedded)
        self._failed = None
        if stopped is not None:
            self._note(stopped)
        self._rejected |= failures.rejected
        told = failures.results(stopped, len(wanted) - done.embedded - failures.count)
        for one in told:
            have = "has" if one.texts == 1 else "have"
            _LOGGER.warning("%s %s no embedding yet: %s", plural(one.texts, "text"), have, one.message)
        return Outcome(done.embedded, told)

    async def _embed_chunks(
        self, chunks: Sequence[int], dimension: int | None, done: "_Done", failures: "_Failures", *, patient: bool
    ) -> EmbeddingError | None:
        """Embed the texts of chunks; return the error that ended the call early, or `None` if all texts were tried."""
        limits = limits_of(self.embedder) if patient else self._search_limits()
        for at in range(0, len(chunks), _TEXTS_IN_MEMORY):
            texts = await in_thread(partial(self._texts, chunks[at : at + _TEXTS_IN_MEMORY]))
            async with embed_all(
                self.embedder, texts, limits=limits, dimension=dimension, counter=self._sent
            ) as batches:
                async for batch in batches:
                    dimension = batch.vectors.shape[1]
                    try:
                        await in_thread(partial(self._store_batch, batch, done))
                    except LengthError as error:  # another process has stored vectors of a different length
                        failures.add([Failed(batch.keys, error)])
                        return error
            failures.add(batches.failed)
            if batches.stopped is not None:
                return batches.stopped
        return None

    async def _follow_new_length(self, wanted: _Missing, failures: "_Failures") -> int:
        """Delete all stored vectors if the embedder now returns vectors of a different length.

        First, one batch is embedded again to confirm the new length. But if vectors of the new length were deleted
        before, the stored vectors are kept: an embedder that alternates between two lengths must not embed all texts
        again and again, because this costs money.
        """
        name, failed, before = self.embedder.name, failures.with_other_length(), wanted.dimension
        if failed is None or before is None:
            return 0
        length, keys = failed
        if length == before or self.embedder.dimension not in (None, length):
            return 0
        if length in self._dropped_dimensions:
            _LOGGER.warning(
                "%s alternates between vectors of %d and of %d numbers, and now returns the latter; "
                "the stored embeddings are kept",
                name,
                before,
                length,
            )
            return 0
        chunks = [wanted.chunks[digest] for digest in keys]
        texts = await in_thread(lambda: self._texts(chunks))
        async with embed_all(self.embedder, texts, dimension=length, counter=self._sent) as batches:
            async for batch in batches:
                _LOGGER.warning(CHANGED_LENGTH_LOG, name, length, before)
                await in_thread(partial(self._store.run, partial(store_batch, model=name, batch=batch, replace=True)))
                self._dropped_dimensions.add(before)
        return batches.embedded

    def _search_limits(self) -> Limits:
        limits = limits_of(self.embedder)
        return replace(
            limits,
            tries=min(limits.tries, SEARCH_LIMITS.tries),
            max_pause=min(limits.max_pause, SEARCH_LIMITS.max_pause),
            timeout=min(limits.timeout, SEARCH_LIMITS.timeout),
            give_up=SEARCH_LIMITS.give_up,
        )

    def _note(self, error: EmbeddingError) -> None:
        if error.reason != "rejected":  # a rejection says nothing about other texts
            bare = type(error).__new__(
                type(error), *error.args
            )  # without the traceback, whose frames refer to this object
            vars(bare).update(vars(error))
            self._failed = time.monotonic(), bare

    def _recent_failure(self) -> EmbeddingError | None:
        """Return the last error of the embedder, if it is recent; otherwise `None`."""
        pause = limits_of(self.embedder).retry_search_after
        if self._failed is None or time.monotonic() - self._failed[0] >= pause:
            return None
        return self._failed[1]

    def _select_missing(self, database: Connection) -> _Missing:
        """Select the texts that have no embedding; first delete all vectors if the embedder declares another length."""
        view, name, declared = self._view(), self.embedder.name, self._declared
        model = model_of(database, name)
        if declared is not None and model.dimension is not None and declared != model.dimension:
            _LOGGER.warning(
                CHANGED_LENGTH_LOG,
                name,
                declared,
                model.dimension,
            )
            drop_model(database, name, model.dimension)
        self._declared = None  # from now on, only the answers of the embedder tell the length
        with read_transaction(database):
            model, generation = model_of(database, name), generation_of(database, view)
            if self._complete.generation != model.generation:
                self._complete = Complete(model.generation)
            elif generation is not None and generation == self._complete.view:
                return _Missing({}, model.dimension)
            found = find_missing(database, number_of(database, view), name, model.dimension, self._complete)
            self._complete.view = None if found else generation
        return _Missing(found, model.dimension)

    def _texts(self, chunks: Sequence[int]) -> list[tuple[bytes, str]]:
        view = self._view()
        return self._store.run(lambda database: texts_of(database, view, chunks))

    def _store_batch(self, batch: Embedded[bytes], done: "_Done") -> None:
        self._store.run(lambda database: self._write(batch, database))
        self.store_sent()
        self._missing -= len(batch.keys)
        done.add(len(batch.keys))

    def _write(self, batch: Embedded[bytes], database: Connection) -> None:
        before, now = store_batch(database, self.embedder.name, batch)
        if before.generation == self._complete.generation:
            self._complete.generation = now.generation

    def store_sent(self) -> None:
        """Store the numbers of sent texts and characters, unless the model runs in this process.

        If the index is read-only or locked, a later call stores the numbers.
        """
        sent = self._sent.take()
        if not any(sent) or describe(self.embedder).is_in_process:
            return

        def add(database: Connection) -> None:
            with write_transaction(database, patience=0):
                add_sent(database, self.embedder.name, sent)

        try:
            self._store.run(add)
        except (RipwrapError, TimeoutError):
            self._sent.add(sent)

    def _drop_one(self) -> None:
        """Delete a vector, so that the next refresh in any process embeds its text again and notices the new length."""
        view, name = self._view(), self.embedder.name
        with suppress(RipwrapError):  # a read-only index is not refreshed either
            self._store.run(lambda database: drop_one(database, number_of(database, view), name))


@dataclass(slots=True)
class _Done:
    """Counter of embedded texts, which reports progress."""

    total: int
    progress: EmbedProgress | None
    embedded: int = 0

    def add(self, texts: int) -> None:
        self.embedded += texts
        if self.progress is not None:
            self.progress(self.embedded, self.total)


class _Failures:
    """Texts that could not be embedded, by reason."""

    def __init__(self) -> None:
        self.count = 0
        self.rejected: set[bytes] = set()
        self._by_length: dict[int, tuple[bytes, ...]] = {}
        self._by_reason: dict[EmbedReason, tuple[int, str]] = {}

    def add(self, failed: Sequence[Failed[bytes]]) -> None:
        for one in failed:
            self._add(one.error, len(one.keys))
            if one.error.reason == "rejected":
                self.rejected.update(one.keys)
            if isinstance(one.error, LengthError):
                self._by_length.setdefault(one.error.length, one.keys)

    def with_other_length(self) -> tuple[int, tuple[bytes, ...]] | None:
        """Return the new length of vectors and the first texts that have it; `None` unless there is exactly one."""
        return next(iter(self._by_length.items())) if len(self._by_length) == 1 else None

    def results(self, stopped: EmbeddingError | None, untried: int) -> tuple[EmbeddingFailure, ...]:
        """Return all failures, by reason; if `stopped` is an error, the `untried` texts count as failed with it."""
        if stopped is not None and untried > 0:
            self._add(stopped, untried)
        return tuple(
            EmbeddingFailure(reason=reason, texts=count, message=message)
            for reason, (count, message) in self._by_reason.items()
        )

    def _add(self, error: EmbeddingError, texts: int) -> None:
        count, message = self._by_reason.get(error.reason, (0, f"{error}"))
        self._by_reason[error.reason] = count + texts, message
        self.count += texts
