"""Run rg to its end or time limit, and collect its output: in a task (async) or in a thread (blocking).

An operation is a coroutine. It gets a `Runner` as its argument, and awaits the methods of the runner. With an
`AsyncRunner`, the coroutine is suspended as usual. The methods of a `BlockingRunner` block and never suspend, so
`run_blocking()` gets the result from one `send()` (9 µs). `DeadlineRunner` wraps another runner, and applies one time
limit to all calls together.
"""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import AsyncExitStack, ExitStack, contextmanager, nullcontext, suppress
from contextvars import copy_context
from dataclasses import replace
from typing import Any, TypeVar, cast

import anyio
import anyio.lowlevel

from ripwrap._ripgrep.decoder import LARGE_RECORD, FileTypes, decode_types
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.host import INSTALL_THERE
from ripwrap._ripgrep.named_paths import check_end, check_named, check_named_blocking
from ripwrap._ripgrep.page_collector import refuse_failure
from ripwrap._ripgrep.place import Part, Plan
from ripwrap._ripgrep.planning import AsyncRuns, BlockingRuns, plan
from ripwrap._ripgrep.process import (
    SLOTS,
    AsyncChild,
    AsyncOutput,
    BlockingChild,
    BlockingOutput,
    check_cwd,
    parse_stderr,
    slot,
)
from ripwrap._ripgrep.progress import Meter
from ripwrap._ripgrep.protocols import Collector, Lock, OrderedCollector, Runner, Step
from ripwrap._ripgrep.query import Query
from ripwrap._ripgrep.spool import OverdueError
from ripwrap._system.concurrency import CANCELLED, Cancellation, countdown, in_thread, in_thread_to_end
from ripwrap.binary.probe import RgBinary, format_version
from ripwrap.binary.resolver import Rg, find, resolve
from ripwrap.errors import CapabilityError, DownloadFailedError, Hint, HintedText, SearchError, UnknownTypeError

SUGGESTION_SECONDS = 2.0
"""Time limit in seconds for listing the file types, for the suggestions in an error about an unknown type."""


FIND_SECONDS = 0.2
"""Seconds for finding an rg, even if a call has less time."""


class RgTimeoutError(TimeoutError):
    """Error for an rg that was not found or installed in the time limit of a call."""


async def find_usable_rg(query: Query, rg: Rg, seconds: float | None = None) -> RgBinary:
    """Return an rg that can run the query; raise what `run_stream()` raises, and `RgTimeoutError` after `seconds`."""
    if (host := query.on) is not None:
        binary = await in_thread(lambda: host.find(rg, timeout=seconds))
    else:
        check_cwd(query.cwd)
        # An rg that is there is found, however short the time limit is.
        found: RgBinary | None = None
        with anyio.move_on_after(None if seconds is None else max(seconds, FIND_SECONDS)):
            found = await resolve(rg)
        if found is None:
            raise _late(seconds or 0)
        binary = found
    if query.needs:
        await in_thread(lambda: _check_needs(query, binary))
    return binary


def find_usable_rg_blocking(query: Query, rg: Rg, timeout: float | None) -> RgBinary:
    """Return an rg that can run the query, blocking; raise `RgTimeoutError` if installing rg takes too long."""
    if query.on is not None:
        binary = query.on.find(rg, timeout=timeout)
    else:
        check_cwd(query.cwd)
        begun = time.monotonic()
        try:
            binary = find(rg, timeout=timeout)
        except DownloadFailedError as error:
            if timeout is not None and time.monotonic() - begun >= timeout:
                raise _late(timeout) from error
            raise
    _check_needs(query, binary)
    return binary


def _late(seconds: float) -> RgTimeoutError:
    return RgTimeoutError(
        f"rg was not installed within timeout={seconds:.4g} seconds; allow more time, or install rg first"
    )


async def with_suggestions(end: Exit, binary: RgBinary) -> SearchError:
    """Return the error for an unknown type, with similar types if rg lists its types within `SUGGESTION_SECONDS`."""
    types: FileTypes = {}
    with suppress(SearchError), anyio.move_on_after(SUGGESTION_SECONDS):
        async with AsyncChild(binary, end.query.types()) as child:
            chunks: list[bytes] = []
            while chunk := await child.read():
                chunks.append(chunk)
            types = _types(chunks, await child.wait())
    return end.failure(types)


def with_suggestions_blocking(end: Exit, binary: RgBinary) -> SearchError:
    """Return the error for an unknown type, blocking; see `with_suggestions()`."""
    types: FileTypes = {}
    query, begun = end.query.types(), time.monotonic()
    with suppress(SearchError, TimeoutError), BlockingChild(binary, query, SUGGESTION_SECONDS, begun) as child:
        types = _types(list(iter(child.read, b"")), child.wait())
    return end.failure(types)


def _types(chunks: list[bytes], end: Exit) -> FileTypes:
    refuse_failure(end)
    return decode_types(b"".join(chunks))


def _check_needs(query: Query, binary: RgBinary) -> None:
    place = "" if query.on is None else f"on {query.on}, "
    for option, since in query.needs:
        if binary.version < since:
            function = option.removesuffix("()") if option.endswith("()") else None
            leave_out = ("Leave ", Hint(option, kind="omit"), " out, or use a newer rg: ")
            raise CapabilityError(
                HintedText(
                    Hint(option, kind="correct") if function is None else Hint(kind="call", target=function),
                    f" needs rg {format_version(since)} or later: {place}{binary.path} is "
                    f"{format_version(binary.version)}",
                ),
                hint=HintedText(
                    *(leave_out if function is None else ("Use a newer rg: ",)),
                    Hint(kind="install", target="ripwrap[bin]") if query.on is None else INSTALL_THERE,
                    ".",
                ),
            )


C = TypeVar("C", bound=Collector)
T = TypeVar("T")


class _RgRunner(ABC):
    """Base class of the runners that start rg."""

    def __init__(self, rg: Rg, *, meter: Meter | None = None) -> None:
        """Set the rg to run, and the meter that reports the progress; `None` reports no progress."""
        self._rg = rg
        self._meter = meter

    async def collect(self, step: Step[C]) -> C:
        """Run rg; see `Runner`."""
        await self.checkpoint()  # let other tasks run between calls that start together
        left = countdown(step.timeout)
        if step.timeout is not None:
            # With one thread, rg fills large blocks before it writes (rg-facts 21).
            alone = step.query.options.get("threads") == 1 or step.query.sort_key != "none"
            step = replace(step, query=replace(step.query, flushed=alone))
        if step.install:
            binary = await self._find(step.query, step.timeout)
        else:
            binary = await self.call(lambda: _find_installed(step.query, self._rg))
        if step.query.is_plain:
            planned = Plan((Part(step.query),))
        else:
            planned = await plan(step.query, cast("Runner", self), left())
        if planned.end is not None:
            collector = step.collector()
            collector.finish(planned.end, timed_out=True)
            return collector
        meter = self._meter if step.metered else None
        collector, end, timed_out = await self._run(step, left(), binary, planned, meter)
        if not timed_out and not _is_full(collector):
            check_end(step.query, end)
        collector.finish(end, timed_out=timed_out or planned.late)
        return collector

    @abstractmethod
    async def call(self, work: Callable[[], T], *, seconds: float | None = None, lock: "Lock | None" = None) -> T:
        """Call a function that blocks; see `Runner`."""

    @abstractmethod
    async def checkpoint(self) -> None:
        """Let other tasks run."""

    @abstractmethod
    async def _find(self, query: Query, seconds: float | None) -> RgBinary:
        """Return an rg that can run the query; raise `TimeoutError` if it is not installed in time."""

    @abstractmethod
    async def _run(
        self, step: Step[C], seconds: float | None, binary: RgBinary, plan: Plan, meter: Meter | None
    ) -> tuple[C, Exit, bool]:
        """Run rg for each part of the plan; `seconds` are left for the step, with the wait for a slot.

        Return the collector, the exit of all runs, and True if the time limit was reached.
        """


class AsyncRunner(_RgRunner):
    """Runner for async tasks, on asyncio and trio; other tasks run between two chunks of rg's output."""

    async def _find(self, query: Query, seconds: float | None) -> RgBinary:
        await check_named(query)
        return await find_usable_rg(query, self._rg, seconds)

    async def _run(
        self, step: Step[C], seconds: float | None, binary: RgBinary, plan: Plan, meter: Meter | None
    ) -> tuple[C, Exit, bool]:
        deadline = math.inf if seconds is None else anyio.current_time() + seconds
        async with AsyncRuns(plan, binary, ordered=step.query.streamed) as runs, AsyncExitStack() as slots:
            if plan.parts:  # an iterable of items may search, too, and would wait for a slot forever
                with anyio.CancelScope(deadline=deadline) as waiting:
                    await slots.enter_async_context(slot())
                if waiting.cancelled_caught:
                    return step.collector(), runs.end(step.query), True
            collector = _begin(step, meter)
            while await _ask(runs, slots, deadline):
                part, started = runs.next()
                if part.in_order and isinstance(collector, OrderedCollector):
                    collector.begin_ordered()
                async with started as child:
                    is_late = await _read(child, collector, meter, deadline)
                    end = await child.wait()
                if _is_full(collector):
                    runs.add(end)
                    break
                if not is_late and runs.retry(end, everything=True):
                    collector = _begin(step, meter)
                    continue
                runs.add(end)
                if is_late and not end.panicked and (runs.unfinished or not end.partial):
                    await parse_stderr(end)
                    return collector, runs.end(step.query), True
                try:
                    collector.end_run(end)
                except UnknownTypeError:
                    raise await with_suggestions(end, binary) from None
        end = runs.end(step.query)
        await parse_stderr(end)
        return collector, end, _is_late(runs.error)

    async def call(self, work: Callable[[], T], *, seconds: float | None = None, lock: "Lock | None" = None) -> T:
        """Call a function in a worker thread; see `Runner`."""
        with anyio.fail_after(seconds):
            async with nullcontext() if lock is None else lock():
                return await in_thread(work)

    async def call_to_end(self, work: Callable[[], T], *, seconds: float | None = None) -> T:
        """Call a function in a worker thread; see `Runner`."""
        with anyio.fail_after(seconds):
            return await in_thread_to_end(work)

    async def wait(self, work: Callable[[], Awaitable[T]], *, seconds: float | None = None) -> T:
        """Await an awaitable in this event loop; see `Runner`."""
        return await _wait(work, seconds)

    async def checkpoint(self) -> None:
        """Let other tasks run."""
        await anyio.lowlevel.checkpoint()


class BlockingRunner(_RgRunner):
    """Runner for blocking calls: its methods are coroutines that block the thread and never suspend."""

    def __init__(self, rg: Rg, *, timeout: float | None = None, meter: Meter | None = None) -> None:
        """Set the rg to run, the seconds for installing it (`None` is two minutes), and the meter for the progress."""
        super().__init__(rg, meter=meter)
        self._install_timeout = timeout

    async def _find(self, query: Query, seconds: float | None) -> RgBinary:
        check_named_blocking(query)
        return find_usable_rg_blocking(query, self._rg, self._install_timeout if seconds is None else seconds)

    async def _run(
        self, step: Step[C], seconds: float | None, binary: RgBinary, plan: Plan, meter: Meter | None
    ) -> tuple[C, Exit, bool]:
        begun = time.monotonic()
        made = BlockingRuns(plan, binary, seconds, begun, ordered=step.query.streamed)
        with made as runs, ExitStack() as slots:
            if plan.parts and not slots.enter_context(SLOTS.held(seconds)):
                return step.collector(), runs.end(step.query), True
            collector = _begin(step, meter)
            while _ask_blocking(runs, slots):
                part, started = runs.next()
                if part.in_order and isinstance(collector, OrderedCollector):
                    collector.begin_ordered()
                with started as child:
                    _read_blocking(child, collector, meter)
                    end = child.end()
                if _is_full(collector):
                    runs.add(end)
                    break
                if not child.timed_out and runs.retry(end, everything=True):
                    collector = _begin(step, meter)
                    continue
                runs.add(end)
                if child.timed_out and (runs.unfinished or not end.partial):
                    return collector, runs.end(step.query), True
                try:
                    collector.end_run(end)
                except UnknownTypeError:
                    raise with_suggestions_blocking(end, binary) from None
        return collector, runs.end(step.query), _is_late(runs.error)

    async def call(
        self,
        work: Callable[[], T],
        *,
        seconds: float | None = None,
        lock: "Lock | None" = None,  # noqa: ARG002 - a blocking call has a thread of its own
    ) -> T:
        """Call a function in this thread, with a `CANCELLED` that is set after `seconds`; see `Runner`."""
        if seconds is None:
            return work()
        context = copy_context()  # which ends with the call, also if Ctrl-C comes between two lines
        context.run(CANCELLED.set, Cancellation(seconds))
        return context.run(work)

    async def call_to_end(self, work: Callable[[], T], *, seconds: float | None = None) -> T:
        """Call a function in this thread; see `Runner`."""
        return await self.call(work, seconds=seconds)

    async def wait(self, work: Callable[[], Awaitable[T]], *, seconds: float | None = None) -> T:
        """Await an awaitable in a new event loop; see `Runner`."""
        from anyio.from_thread import start_blocking_portal  # late: the import takes three milliseconds

        # The loop runs in another thread, because this thread may already have one. An exception in this thread, such
        # as Ctrl-C, cancels the work in that loop.
        with start_blocking_portal() as portal:
            return portal.call(_wait, work, seconds)

    async def checkpoint(self) -> None:
        """Do nothing, because a thread has no other tasks to run."""


class DeadlineRunner:
    """Runner that wraps another runner, and limits the total time of all calls."""

    def __init__(self, runner: Runner, seconds: float | None, lock: "Lock | None" = None) -> None:
        self._runner = runner
        self._seconds = seconds
        self._deadline = math.inf if seconds is None else time.monotonic() + seconds
        self._lock = lock

    async def collect(self, step: Step[C]) -> C:
        """Run rg; see `Runner`. Raise `TimeoutError` at the time limit of all calls together."""
        with self._within(step.timeout) as seconds:
            collector = await self._runner.collect(replace(step, timeout=seconds))
        self._left()
        return collector

    async def call(self, work: Callable[[], T], *, seconds: float | None = None, lock: "Lock | None" = None) -> T:
        """Call a function that blocks; see `Runner`."""
        with self._within(seconds) as left:
            return await self._runner.call(work, seconds=left, lock=lock or self._lock)

    async def call_to_end(self, work: Callable[[], T], *, seconds: float | None = None) -> T:
        """Call a function that blocks, and wait until it has ended, even after a cancellation; see `Runner`."""
        with self._within(seconds) as left:
            return await self._runner.call_to_end(work, seconds=left)

    async def wait(self, work: Callable[[], Awaitable[T]], *, seconds: float | None = None) -> T:
        """Await an awaitable; see `Runner`."""
        with self._within(seconds) as left:
            return await self._runner.wait(work, seconds=left)

    async def checkpoint(self) -> None:
        """Let other tasks run; raise `TimeoutError` if no time is left."""
        self._left()
        await self._runner.checkpoint()

    def _left(self) -> float | None:
        """Return the seconds until the time limit, or `None` without a limit."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise self._over()
        return None if self._seconds is None else left

    @contextmanager
    def _within(self, seconds: float | None) -> Generator[float | None]:
        """Yield the seconds until the sooner limit; a `TimeoutError` at the limit of all calls names that limit."""
        left = self._left()
        try:
            yield seconds if left is None else left if seconds is None else min(left, seconds)
        except TimeoutError as error:
            if time.monotonic() >= self._deadline:
                raise self._over() from error
            raise

    def _over(self) -> TimeoutError:
        return TimeoutError(f"the call took more than timeout={self._seconds} seconds; allow more time")


def run_blocking(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that awaits nothing but methods of a `BlockingRunner`."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise RuntimeError(f"{coroutine!r} was suspended; it may only await methods of its runner")


def _find_installed(query: Query, rg: Rg) -> RgBinary:
    """Return an rg of this machine that can run the query; blocking, but for the time of a look-up only."""
    check_named_blocking(query)
    check_cwd(query.cwd)
    binary = find(rg, install=False)
    _check_needs(query, binary)
    return binary


async def _wait(work: Callable[[], Awaitable[T]], seconds: float | None) -> T:
    with anyio.fail_after(seconds):
        return await work()


def _is_full(collector: Collector) -> bool:
    """Return True if a collector needs no more output, so that rg is ended."""
    return bool(getattr(collector, "full", False))


def _begin(step: Step[C], meter: Meter | None) -> C:
    if meter is not None:
        meter.begin_run()
    return step.collector()


async def _read(child: AsyncChild | AsyncOutput, collector: Collector, meter: Meter | None, deadline: float) -> bool:
    """Read rg's output until the collector is full. Kill rg then, or at the deadline; at this, return True."""
    with anyio.CancelScope(deadline=deadline) as scope:
        while not _is_full(collector) and (chunk := await child.read(whole=collector.ended)):
            if getattr(collector, "pending", 0) > LARGE_RECORD:  # decoding it takes long
                await in_thread_to_end(lambda: collector.feed(chunk))
            else:
                collector.feed(chunk)
            if meter is not None:
                meter.feed(chunk, collector)
    if scope.cancelled_caught or _is_full(collector):
        child.kill()
    return scope.cancelled_caught


async def _ask(runs: AsyncRuns, slots: AsyncExitStack, deadline: float) -> bool:
    """Return True if there is a run to read; ask for further runs, until the deadline, without holding a slot."""
    if runs.asks:
        await slots.aclose()
        with anyio.CancelScope(deadline=deadline) as scope:
            await runs.ask()
        if scope.cancelled_caught:
            runs.error = OverdueError()
            return False
    return bool(runs.pending)


def _read_blocking(child: BlockingChild | BlockingOutput, collector: Collector, meter: Meter | None) -> None:
    """Read rg's output until the collector is full, and kill rg then; at the time limit, the child kills it."""
    while not _is_full(collector) and (chunk := child.read(whole=collector.ended)):
        collector.feed(chunk)
        if meter is not None:
            meter.feed(chunk, collector)
    if _is_full(collector):
        child.kill()


def _ask_blocking(runs: BlockingRuns, slots: ExitStack) -> bool:
    if runs.asks:
        slots.close()
        run_blocking(runs.ask())
    return bool(runs.pending)


def _is_late(error: Exception | None) -> bool:
    """Return True if the items of a search were not all read in time; raise any other error of its place."""
    if error is not None and not isinstance(error, OverdueError):
        raise error
    return error is not None
