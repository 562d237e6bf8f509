"""Texts to vectors, by whatever embedder: batches, several at a time, paced, tried again, and checked before use.

    async with embed_all(embedder, items) as batches:
        async for done in batches:
            store(done.keys, done.vectors)
    print(batches.failed)

What failed is in `failed` and nowhere else: it has no vector yet, and the next refresh asks for it again.
"""

import random
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from ripwrap.errors import EmbeddingError
from ripwrap.index.embed import Embedder, Limits, limits_of, provider_of

if TYPE_CHECKING:
    from ripwrap.index.vectors import Matrix

K = TypeVar("K")


class LengthError(EmbeddingError):
    """Vectors are of another length than those that there are.

    Attributes:
        length: How many numbers one has.
    """

    def __init__(self, message: str, *, provider: str, length: int) -> None:
        super().__init__(message, provider=provider, reason="garbage")
        self.length: int = length


@dataclass(frozen=True, slots=True)
class Embedded(Generic[K]):
    """A batch that is done.

    Attributes:
        keys: As they were given.
        vectors: A normalised row of float32 for each.
    """

    keys: tuple[K, ...]
    vectors: "Matrix"


@dataclass(frozen=True, slots=True)
class Failed(Generic[K]):
    """Keys without vectors.

    Attributes:
        keys: As they were given.
        error: Why.
    """

    keys: tuple[K, ...]
    error: EmbeddingError


@dataclass(slots=True)
class _Pace:
    """When the next request may start; all workers of a run share it."""

    delay: float
    _free_at: float = 0.0
    _lock: anyio.Lock = field(default_factory=anyio.Lock)

    async def turn(self) -> None:
        async with self._lock:
            while (wait := self._free_at - anyio.current_time()) > 0:  # noqa: ASYNC110 - `hold()` may have moved it
                await anyio.sleep(wait)
            self._free_at = anyio.current_time() + self.delay

    def hold(self, seconds: float) -> None:
        self._free_at = max(self._free_at, anyio.current_time() + seconds)


@dataclass(slots=True)
class _Asker:
    """One embedder, asked as its limits say."""

    embedder: Embedder
    limits: Limits
    dimension: int | None = None

    def __post_init__(self) -> None:
        self._pace = _Pace(self.limits.delay)

    _pace: _Pace = field(init=False)

    async def ask(self, texts: Sequence[str], *, query: bool) -> "Matrix":
        """Checked vectors, after a few tries if need be.

        Raises:
            EmbeddingError: The last try's.
        """
        texts = [text[: self.limits.text_chars] for text in texts]
        for tried in range(1, self.limits.tries + 1):
            await self._pace.turn()
            try:
                return self._checked(await self._answer(texts, query), len(texts))
            except EmbeddingError as error:
                if error.reason != "unavailable":
                    raise
                asked = error.retry_after or 0.0
                if tried == self.limits.tries or asked > self.limits.max_pause:
                    raise _exhausted(error, tried, self.limits) from error
                pause = max(asked, self._pause(tried))
                if error.status == 429 or asked:
                    self._pace.hold(pause)  # it means the others too
                else:
                    await anyio.sleep(pause)
        raise AssertionError("unreachable: the last try returns or raises")

    async def _answer(self, texts: Sequence[str], query: bool) -> Any:
        try:
            with anyio.fail_after(self.limits.timeout):
                return await self.embedder.embed(texts, query=query)
        except TimeoutError as error:
            message = f"{self.embedder.name} did not answer within {self.limits.timeout:g} seconds"
            raise EmbeddingError(message, provider=provider_of(self.embedder), reason="unavailable") from error

    def _pause(self, tried: int) -> float:
        jitter = random.uniform(1, 1.5)  # noqa: S311 - it guards nothing
        return min(self.limits.pause * 2.0 ** (tried - 1) * jitter, self.limits.max_pause)

    def _checked(self, answer: Any, count: int) -> "Matrix":
        from ripwrap.index import vectors

        name, provider = self.embedder.name, provider_of(self.embedder)
        try:
            found = vectors.matrix(answer, count)
        except ValueError as error:
            message = f"{name} answered with {error}; nothing of that is kept"
            raise EmbeddingError(message, provider=provider, reason="garbage") from error
        expected, length = self.dimension or self.embedder.dimension, found.shape[1]
        if expected not in (None, length):
            message = f"{name} answered with vectors of {length} numbers instead of {expected}; nothing of that is kept"
            raise LengthError(message, provider=provider, length=length)
        self.dimension = length
        return found


class Batches(Generic[K]):
    """A run of `embed_all()`: an iterator of what is done, and, after it, what is not.

    Attributes:
        embedded: How many keys have been given out with their vectors.
        failed: Those that have none, and why.
        stopped: The error after which nothing more was tried; `None` if everything was.
    """

    def __init__(self, asker: _Asker, items: Iterable[tuple[K, str]]) -> None:
        self.embedded: int = 0
        self.failed: list[Failed[K]] = []
        self.stopped: EmbeddingError | None = None
        self._asker = asker
        self._waiting = sliced(items, asker.limits)
        self._in_a_row = 0
        self._broken: Exception | None = None
        self._send: MemoryObjectSendStream[Embedded[K]]
        self._receive: MemoryObjectReceiveStream[Embedded[K]]
        self._send, self._receive = anyio.create_memory_object_stream[Embedded[K]](0)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Embedded[K]:
        try:
            done = await self._receive.receive()
        except anyio.EndOfStream:
            if self._broken is not None:
                raise self._broken from None
            raise StopAsyncIteration from None
        self.embedded += len(done.keys)
        return done

    async def run(self) -> None:
        """Ask for everything; ends when all is given out."""
        async with self._send, anyio.create_task_group() as tasks:
            for _ in range(self._asker.limits.concurrency):
                tasks.start_soon(self._work, tasks.cancel_scope)

    def close(self) -> None:
        """Nobody takes anything any more."""
        self._receive.close()
        self._send.close()

    async def _work(self, all_of_us: anyio.CancelScope) -> None:
        try:
            while self.stopped is None and (batch := next(self._waiting, None)) is not None:
                await self._batch(*batch)
        except Exception as error:  # noqa: BLE001 - of the items or an embedder; the iteration raises it
            self._broken = self._broken or error
            all_of_us.cancel()

    async def _batch(self, keys: tuple[K, ...], texts: tuple[str, ...]) -> None:
        try:
            vectors = await self._asker.ask(texts, query=False)
        except EmbeddingError as error:
            if error.reason == "rejected" and len(keys) > 1:  # by one of them, perhaps: the others shall not pay
                half = len(keys) // 2
                await self._batch(keys[:half], texts[:half])
                await self._batch(keys[half:], texts[half:])
            else:
                self._note(keys, error)
        else:
            self._in_a_row = 0
            await self._send.send(Embedded(keys, vectors))

    def _note(self, keys: tuple[K, ...], error: EmbeddingError) -> None:
        self.failed.append(Failed(keys, error))
        self._in_a_row += error.reason != "rejected"
        if error.reason in ("setup", "refused") or self._in_a_row >= self._asker.limits.give_up:
            self.stopped = self.stopped or error


@asynccontextmanager
async def embed_all(
    embedder: Embedder, items: Iterable[tuple[K, str]], *, limits: Limits | None = None, dimension: int | None = None
) -> AsyncGenerator[Batches[K]]:
    """Embed keyed texts; iterate over what is given, which has the batches as they are done, in any order.

    A batch that nobody has taken yet holds its worker back, so what is stored is never far behind. Left early, by
    `break`, an error or cancellation, the requests under way are dropped, and nothing is left running. Of a text that
    the provider rejects, only that one fails. After a refusal, or several failures in a row, nothing more is tried:
    `Batches.stopped` says why, and the items that were not taken are not asked for.

    Args:
        embedder: What makes vectors.
        items: Keys and texts; read only as they are needed.
        limits: How it is asked; as it wants to be if not given.
        dimension: How long the vectors are that this index has already; those of others fail with a `LengthError`.
    """
    batches = Batches(_Asker(embedder, limits or limits_of(embedder), dimension), items)
    raised: Exception | None = None
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(batches.run)
            try:
                yield batches
            except Exception as error:  # noqa: BLE001 - raised below, where no task group wraps it
                raised = error
            tasks.cancel_scope.cancel()
    finally:
        batches.close()
    if raised is not None:
        raise raised


async def embed_query(
    embedder: Embedder, query: str, *, limits: Limits | None = None, dimension: int | None = None
) -> "Matrix":
    """The vector of what is searched for, normalised: one row.

    Raises:
        EmbeddingError: There is none.
    """
    asker = _Asker(embedder, limits or limits_of(embedder), dimension)
    found: Matrix = (await asker.ask([query], query=True))[0]
    return found


def sliced(items: Iterable[tuple[K, str]], limits: Limits) -> Iterator[tuple[tuple[K, ...], tuple[str, ...]]]:
    """Batches of keys and texts, in order, as large as the limits allow; each has at least one."""
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


def _exhausted(error: EmbeddingError, tried: int, limits: Limits) -> EmbeddingError:
    said = f"tried {tried} times" if tried > 1 else "tried once"
    if error.retry_after is not None and error.retry_after > limits.max_pause:
        said += f"; it asks to wait {error.retry_after:g} seconds, and max_pause is {limits.max_pause:g}"
    return EmbeddingError(
        f"{error} ({said})",
        provider=error.provider,
        reason=error.reason,
        status=error.status,
        retry_after=error.retry_after,
    )
