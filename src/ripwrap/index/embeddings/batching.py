"""Embed many texts in batches: send several requests at a time, limit their rate, retry, and check each answer.

    async with embed_all(embedder, items) as batches:
        async for done in batches:
            store(done.keys, done.vectors)
    print(batches.failed)

`items` are pairs of a key and a text. `failed` has the keys of the texts that could not be embedded; the next refresh
of the index tries them again.

Each retry waits twice as long as the retry before it, with random jitter, so that several clients do not retry at the
same moment (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/). A provider may ask for a longer
pause with Retry-After (RFC 9110, section 10.2.3). After status 429 (RFC 6585, section 4) all workers pause.
"""

import random
import threading
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from ripwrap.errors import EmbeddingError
from ripwrap.index.embeddings.protocol import Embedder, Limits, limits_of, provider_of
from ripwrap.index.storage.tables import Sent

if TYPE_CHECKING:
    from ripwrap.index.embeddings.vectors import Matrix

K = TypeVar("K")


class LengthError(EmbeddingError):
    """Error for vectors that are not as long as the stored vectors, or not as long as the embedder declares."""

    def __init__(self, message: str, *, provider: str, length: int) -> None:
        super().__init__(message, provider=provider, reason="garbage")
        self.length: int = length


class SentCounter:
    """Counter of the texts and characters that were sent to an embedder; several threads may add to it."""

    def __init__(self) -> None:
        self._sent = Sent()
        self._lock = threading.Lock()

    @property
    def sent(self) -> Sent:
        """Numbers of texts and characters that were sent since the last `take()`."""
        return self._sent

    def add(self, sent: Sent) -> None:
        """Add the numbers of texts and characters of one request."""
        with self._lock:
            self._sent = self._sent.plus(sent)

    def take(self) -> Sent:
        """Return the numbers of texts and characters, and set both to zero."""
        with self._lock:
            sent, self._sent = self._sent, Sent()
            return sent


@dataclass(frozen=True, slots=True)
class Embedded(Generic[K]):
    """Batch of texts that were embedded: their keys and vectors."""

    keys: tuple[K, ...]
    vectors: "Matrix"


@dataclass(frozen=True, slots=True)
class Failed(Generic[K]):
    """Texts that could not be embedded."""

    keys: tuple[K, ...]
    error: EmbeddingError


@dataclass(slots=True)
class _Pace:
    """Limiter of the rate of requests, which all workers of one call of `embed_all()` share."""

    delay: float
    _free_at: float = 0.0
    _lock: anyio.Lock = field(default_factory=anyio.Lock)

    async def slot(self) -> None:
        """Wait until the next request may start."""
        async with self._lock:
            while (wait := self._free_at - anyio.current_time()) > 0:  # noqa: ASYNC110 - `hold()` may change it meanwhile
                await anyio.sleep(wait)
            self._free_at = anyio.current_time() + self.delay

    def hold(self, seconds: float) -> None:
        """Let no request start in the next `seconds`."""
        self._free_at = max(self._free_at, anyio.current_time() + seconds)


@dataclass(slots=True)
class _Requester:
    """Sender of requests to an embedder. It delays, counts and retries the requests, and checks the answers."""

    embedder: Embedder
    limits: Limits
    dimension: int | None = None
    counter: SentCounter = field(default_factory=SentCounter)

    def __post_init__(self) -> None:
        self._pace = _Pace(self.limits.delay)

    _pace: _Pace = field(init=False)

    async def embed(self, texts: Sequence[str], *, query: bool) -> "Matrix":
        """Return the vectors of texts, after a check of the answer; retry while the embedder is unavailable."""
        texts = [text[: self.limits.text_chars] for text in texts]
        for attempt in range(1, self.limits.tries + 1):
            await self._pace.slot()
            self.counter.add(Sent(len(texts), sum(map(len, texts))))
            try:
                return self._check_vectors(await self._request(texts, query), len(texts))
            except EmbeddingError as error:
                if error.reason != "unavailable":
                    raise
                requested = error.retry_after or 0.0
                if attempt == self.limits.tries or requested > self.limits.max_pause:
                    raise _exhausted_error(error, attempt, self.limits) from error
                jitter = random.uniform(1, 1.5)  # noqa: S311 - no secret
                backoff = self.limits.pause * 2.0 ** (attempt - 1) * jitter
                pause = max(requested, min(backoff, self.limits.max_pause))
                if error.status == 429 or requested:
                    self._pace.hold(pause)  # the provider asks all workers to wait
                else:
                    await anyio.sleep(pause)
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _request(self, texts: Sequence[str], query: bool) -> Any:
        try:
            with anyio.fail_after(self.limits.timeout):
                return await self.embedder.embed(texts, query=query)
        except TimeoutError as error:
            message = (
                f"{self.embedder.name} did not answer within {self.limits.timeout:g} seconds; check that it can be "
                "reached, or allow refresh() more time with Limits(timeout=…)"
            )
            raise EmbeddingError(message, provider=provider_of(self.embedder), reason="unavailable") from error

    def _check_vectors(self, answer: Any, count: int) -> "Matrix":
        from ripwrap.index.embeddings import vectors  # late: numpy

        name, provider = self.embedder.name, provider_of(self.embedder)
        try:
            found = vectors.to_matrix(answer, count)
        except ValueError as error:
            message = f"{name} answered with {error}; the answer is dropped"
            raise EmbeddingError(message, provider=provider, reason="garbage") from error
        expected, length = self.dimension or self.embedder.dimension, found.shape[1]
        if expected not in (None, length):
            message = f"{name} answered with vectors of {length} numbers instead of {expected}; the answer is dropped"
            raise LengthError(message, provider=provider, length=length)
        self.dimension = length
        return found


class TextBatches(Generic[K]):
    """Iterator over the batches of one call of `embed_all()`, in the order in which they finish."""

    def __init__(self, requester: _Requester, items: Iterable[tuple[K, str]]) -> None:
        self.embedded: int = 0
        self.failed: list[Failed[K]] = []
        self.stopped: EmbeddingError | None = None
        self._requester = requester
        self._remaining = split_into_batches(items, requester.limits)
        self._failures_in_a_row = 0
        self._error: Exception | None = None
        self._send: MemoryObjectSendStream[Embedded[K]]
        self._receive: MemoryObjectReceiveStream[Embedded[K]]
        self._send, self._receive = anyio.create_memory_object_stream[Embedded[K]](0)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Embedded[K]:
        try:
            done = await self._receive.receive()
        except anyio.EndOfStream:
            if self._error is not None:
                raise self._error from None
            raise StopAsyncIteration from None
        self.embedded += len(done.keys)
        return done

    async def run(self) -> None:
        """Embed the texts of all items; return when the caller has taken the last batch."""
        async with self._send, anyio.create_task_group() as tasks:
            for _ in range(self._requester.limits.concurrency):
                tasks.start_soon(self._work, tasks.cancel_scope)

    def close(self) -> None:
        """Close both ends of the stream, so that waiting workers end."""
        self._receive.close()
        self._send.close()

    async def _work(self, scope: anyio.CancelScope) -> None:
        try:
            while self.stopped is None and (batch := next(self._remaining, None)) is not None:
                await self._embed_batch(*batch)
        except Exception as error:  # noqa: BLE001 - the iteration raises an error of the items or the embedder
            self._error = self._error or error
            scope.cancel()

    async def _embed_batch(self, keys: tuple[K, ...], texts: tuple[str, ...]) -> None:
        try:
            vectors = await self._requester.embed(texts, query=False)
        except EmbeddingError as error:
            if error.reason == "rejected" and len(keys) > 1:  # split the batch in half, to find the rejected text
                half = len(keys) // 2
                await self._embed_batch(keys[:half], texts[:half])
                await self._embed_batch(keys[half:], texts[half:])
            else:
                self._note(keys, error)
        else:
            self._failures_in_a_row = 0
            await self._send.send(Embedded(keys, vectors))

    def _note(self, keys: tuple[K, ...], error: EmbeddingError) -> None:
        self.failed.append(Failed(keys, error))
        self._failures_in_a_row += error.reason != "rejected"
        if error.reason in ("setup", "refused") or self._failures_in_a_row >= self._requester.limits.give_up:
            self.stopped = self.stopped or error


@asynccontextmanager
async def embed_all(
    embedder: Embedder,
    items: Iterable[tuple[K, str]],
    *,
    limits: Limits | None = None,
    dimension: int | None = None,
    counter: SentCounter | None = None,
) -> AsyncGenerator[TextBatches[K]]:
    """Embed texts in batches; yield an iterator over the finished batches, in the order in which they finish.

    A worker waits until the caller takes its batch, so that only few vectors can be lost before they are stored. If the
    `async with` block ends early (`break`, an error, cancellation), open requests are cancelled. If the provider
    rejects a text, only this text fails, and not the rest of its batch. If the provider refuses a request, or several
    batches fail in a row, the iteration ends: no more items are read, and `TextBatches.stopped` has the error.
    """
    requester = _Requester(embedder, limits or limits_of(embedder), dimension, counter or SentCounter())
    batches = TextBatches(requester, items)
    raised: Exception | None = None
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(batches.run)
            try:
                yield batches
            except Exception as error:  # noqa: BLE001 - raised below, outside the task group, which would wrap it
                raised = error
            tasks.cancel_scope.cancel()
    finally:
        batches.close()
    if raised is not None:
        raise raised


async def embed_query(
    embedder: Embedder,
    query: str,
    *,
    limits: Limits | None = None,
    dimension: int | None = None,
    counter: SentCounter | None = None,
) -> "Matrix":
    """Return the vector of a query, scaled to a length of 1; `embed_all()` explains the keyword arguments."""
    requester = _Requester(embedder, limits or limits_of(embedder), dimension, counter or SentCounter())
    found: Matrix = (await requester.embed([query], query=True))[0]
    return found


def split_into_batches(
    items: Iterable[tuple[K, str]], limits: Limits
) -> Iterator[tuple[tuple[K, ...], tuple[str, ...]]]:
    """Split items into batches of keys and texts, in order, as large as the limits allow and never empty."""
    keys: list[K] = []
    texts: list[str] = []
    size = 0
    for key, text in items:
        length = min(len(text), limits.text_chars)
        if keys and (len(keys) == limits.batch or size + length > limits.batch_chars):
            yield tuple(keys), tuple(texts)
            keys, texts, size = [], [], 0
        keys.append(key)
        texts.append(text)
        size += length
    if keys:
        yield tuple(keys), tuple(texts)


def _exhausted_error(error: EmbeddingError, attempt: int, limits: Limits) -> EmbeddingError:
    attempts = f"tried {attempt} times" if attempt > 1 else "tried once"
    if error.retry_after is not None and error.retry_after > limits.max_pause:
        attempts += (
            f"; the provider asks to wait {error.retry_after:g} seconds, but the longest wait is "
            f"{limits.max_pause:g} seconds; try again later"
        )
    return EmbeddingError(
        f"{error} ({attempts})",
        provider=error.provider,
        reason=error.reason,
        status=error.status,
        retry_after=error.retry_after,
    )
