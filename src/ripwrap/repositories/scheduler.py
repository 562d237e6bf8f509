"""Search many roots at once, in this process or on the workers of an executor, and pass the results to one consumer.

The consumer is the caller that reads the results. An event loop in a separate thread runs the requests. It searches a
limited number of roots at a time, and pauses while `BUFFER` results wait for the consumer. So memory and processes are
bounded, and the consumer may be a task or a thread. While the generator that the consumer iterates over is suspended,
this generator has no open task group.
"""

from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import AsyncExitStack, ExitStack, aclosing, suppress
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from ripwrap._ripgrep.process import slot
from ripwrap.binary.resolver import Rg
from ripwrap.errors import BinaryError, CapabilityError
from ripwrap.repositories.models import RootError, Worker, incomplete_error, root_error
from ripwrap.repositories.requests import (
    QUESTION_ERRORS,
    ROOT_ERRORS,
    Lease,
    ResultPage,
    RootTask,
    fail_after,
    hold_lease,
    run_task,
)

BUFFER = 256
"""Maximum number of results that wait for the consumer; with `order="root"`, the maximum for each running root."""

EXECUTOR_TASKS = 32
"""Maximum number of roots that are sent to an executor at a time, unless the caller sets another number."""

RootOrder: TypeAlias = Literal["arrival", "root"]
AnyExecutor: TypeAlias = Executor | Callable[[], Executor]
OnRootsEnded: TypeAlias = Callable[[int, int], object]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Arrival(Generic[T]):
    """Message about a task: a result, a failure, or the end of the task."""

    number: int
    item: T | RootError | None
    worker: Worker | None = None


@dataclass(frozen=True, slots=True)
class Schedule:
    """Settings for running requests."""

    executor: AnyExecutor | None = None
    concurrency: int | None = None
    retries: int = 2
    rg: Rg = None
    lease_folder: str | None = None


class _LostError(Exception):
    """Error if the worker of a task was lost, or if the task could not be sent."""


class _Executors:
    """Executor of one call. If it breaks, and the caller gave a function that makes executors, it is replaced."""

    def __init__(self, given: AnyExecutor) -> None:
        self._given = given
        self._executor: Executor | None = None
        self._made: list[Executor] = []
        self._lock = anyio.Lock()

    async def get(self) -> Executor:
        """Return the executor for the next task."""
        if isinstance(self._given, Executor):
            return self._given
        async with self._lock:
            if self._executor is None:
                made = await _in_thread(self._given)
                if not isinstance(made, Executor):
                    raise TypeError(f"executor() must return a concurrent.futures.Executor, got {type(made).__name__}")
                self._made.append(made)
                self._executor = made
            return self._executor

    def discard(self, broken: Executor) -> None:
        """Drop a broken executor, so that the next task makes another executor."""
        if self._executor is broken:
            self._executor = None

    def close(self) -> None:
        """Shut down the executors that this object has made; do not wait for their tasks."""
        for executor in self._made:
            executor.shutdown(wait=False)  # Dask's executor has no `cancel_futures`; each task cancels its own future


@dataclass(slots=True)
class _ScheduledRun(Generic[T]):
    """Run of all tasks of one call of an operation."""

    tasks: Iterator[RootTask[T]]
    plan: Schedule
    order: RootOrder
    output: MemoryObjectSendStream[Arrival[T] | Exception]
    executors: _Executors | None = None
    lease: Lease | None = None

    async def run(self) -> None:
        """Run all tasks, and send their results. If an error ends the call, send the error as the last item."""
        async with self.output:
            error: BaseException | None = None
            try:
                async with AsyncExitStack() as stack:
                    if self.plan.executor is not None:
                        self.executors = _Executors(self.plan.executor)
                        stack.callback(self.executors.close)
                        self.lease = await stack.enter_async_context(hold_lease(self.plan.lease_folder))
                    await self._run_all()
            except* Exception as group:  # noqa: BLE001 - the consumer raises the first
                error = group
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            if isinstance(error, Exception):
                await self.output.send(error)

    async def _run_all(self) -> None:
        concurrency = self.plan.concurrency
        if concurrency is None:
            concurrency = int(slot().total_tokens) if self.executors is None else EXECUTOR_TASKS
        slots = anyio.Semaphore(concurrency)
        async with anyio.create_task_group() as group:
            turn = anyio.Event()
            turn.set()
            for number, task in enumerate(self.tasks):
                await slots.acquire()
                before, turn = turn, anyio.Event()
                group.start_soon(self._run_one, number, task, slots, before, turn)

    async def _run_one(
        self, number: int, task: RootTask[T], slots: anyio.Semaphore, before: anyio.Event, after: anyio.Event
    ) -> None:
        """Run a task, and send its results and its end."""
        run = self._run_here if self.executors is None else self._run_there
        if self.order == "arrival":
            await run(number, task, self.output)
        else:
            output, results = anyio.create_memory_object_stream[Arrival[T] | Exception](BUFFER)
            with results:
                async with anyio.create_task_group() as group:
                    group.start_soon(self._forward, results, before)
                    with output:
                        await run(number, task, output)
        await self.output.send(Arrival(number, None))
        after.set()
        slots.release()

    async def _forward(self, results: MemoryObjectReceiveStream[Arrival[T] | Exception], before: anyio.Event) -> None:
        await before.wait()
        async for arrival in results:
            await self.output.send(arrival)

    async def _run_here(self, number: int, task: RootTask[T], output: "_ArrivalStream[T]") -> None:
        name = task.root.name
        try:
            with fail_after(task.timeout) as scope:
                async with aclosing(task.request.stream(task.root.path, self.plan.rg)) as parts:
                    async for found in parts:
                        begun = anyio.current_time()
                        await _send(output, number, ResultPage(found.items, incomplete_error(name, found.errors)))
                        scope.deadline += anyio.current_time() - begun  # do not count waiting for the consumer
        except (*QUESTION_ERRORS, BinaryError, CapabilityError):  # no root can be searched
            raise
        except ROOT_ERRORS as error:
            await output.send(Arrival(number, root_error(name, error)))

    async def _run_there(self, number: int, task: RootTask[T], output: "_ArrivalStream[T]") -> None:
        attempts, left = 1, self.plan.retries
        task = replace(task, lease=self.lease)
        while True:
            try:
                page = await self._ask(task)
            except QUESTION_ERRORS:
                raise
            except _LostError as error:
                if left:
                    left, attempts = left - 1, attempts + 1
                    task = replace(task, attempt=attempts)
                    continue
                cause = error.args[0]
                what = str(cause) or "no reason given"
                advice = ""
                if isinstance(cause, BrokenExecutor) and isinstance(self.plan.executor, Executor):
                    advice = "; pass a function that makes an executor, to replace a broken one"
                message = f"the worker was lost: {what}{advice}"
                page = ResultPage(
                    error=RootError(root=task.root.name, kind="lost", error=type(cause).__name__, message=message)
                )
            if page.error is not None:
                page = replace(page, error=page.error.model_copy(update={"attempts": attempts}))
            await _send(output, number, page)
            if page.next_offset is None:
                return
            task = replace(task, offset=page.next_offset)

    async def _ask(self, task: RootTask[T]) -> ResultPage[T]:
        """Send a task to the executor, and wait for its page."""
        executors = self.executors
        if executors is None:
            raise RuntimeError("there is no executor")
        executor = await executors.get()
        future: Future[ResultPage[Any]] | None = None
        try:
            # Submit in a thread, because an executor may start processes or even run the task itself.
            future = await _in_thread(lambda: executor.submit(run_task, task))
            return await _wait(future)
        except QUESTION_ERRORS:
            raise
        except Exception as error:  # an executor may raise errors of its own types, such as Dask's KilledWorker
            if isinstance(error, BrokenExecutor):
                executors.discard(executor)
            raise _LostError(error) from error
        finally:
            if future is not None:
                future.cancel()


_ArrivalStream: TypeAlias = MemoryObjectSendStream[Arrival[T] | Exception]


async def _send(output: _ArrivalStream[T], number: int, page: ResultPage[T]) -> None:
    for item in page.items:
        await output.send(Arrival(number, item, page.worker))
    if page.error is not None:
        await output.send(Arrival(number, page.error, page.worker))


async def _wait(future: Future[T]) -> T:
    """Return the result of a future.

    `asyncio.wrap_future()` is not used, because it raises the same error for a cancelled future and a cancelled task.
    """
    import asyncio  # late: only calls with an executor need it

    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def wake(_: Future[T]) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(done.set)

    future.add_done_callback(wake)
    await done.wait()
    return future.result()


async def _in_thread(call: Callable[[], T]) -> T:
    return await anyio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1))


class _Inbox(Generic[T]):
    """Queue of the results of a call that runs in a separate thread; the consumer of the call takes the results."""

    def __init__(self, tasks: Iterable[RootTask[T]], plan: Schedule, order: RootOrder) -> None:
        self._stack = ExitStack()
        self._portal = self._stack.enter_context(anyio.from_thread.start_blocking_portal("asyncio"))
        sent, self._received = self._portal.call(lambda: anyio.create_memory_object_stream[Any](BUFFER))
        self._run: Future[None] = self._portal.start_task_soon(_ScheduledRun(iter(tasks), plan, order, sent).run)

    def take(self) -> list[Arrival[T]]:
        """Wait for results, and return all results that have arrived; return an empty list after the last result."""
        arrived: list[Arrival[T]] = []
        for item in self._portal.call(self._take):
            if isinstance(item, Exception):
                raise item
            arrived.append(item)
        return arrived

    async def _take(self) -> list[Arrival[T] | Exception]:
        try:
            items = [await self._received.receive()]
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            return []
        with suppress(anyio.WouldBlock, anyio.EndOfStream):
            while not isinstance(items[-1], Exception):
                items.append(self._received.receive_nowait())
        return items

    def close(self) -> None:
        """End the call and each rg that it runs in this process. Workers end their rg because the lease is removed."""
        self._run.cancel()
        with suppress(RuntimeError):
            self._portal.call(self._received.close)
        self._stack.close()


async def arrivals(tasks: Iterable[RootTask[T]], plan: Schedule, order: RootOrder) -> AsyncGenerator[Arrival[T]]:
    """Run tasks; yield their results and failures, and a message at the end of each task."""
    inbox: _Inbox[T] = _Inbox(tasks, plan, order)
    try:
        while arrived := await _in_thread(inbox.take):
            for arrival in arrived:
                yield arrival
    finally:
        with anyio.CancelScope(shield=True):
            await _in_thread(inbox.close)


def arrivals_blocking(tasks: Iterable[RootTask[T]], plan: Schedule, order: RootOrder) -> Generator[Arrival[T]]:
    """Run tasks and yield the same messages as `arrivals()`, blocking."""
    inbox: _Inbox[T] = _Inbox(tasks, plan, order)
    try:
        while arrived := inbox.take():
            yield from arrived
    finally:
        inbox.close()
