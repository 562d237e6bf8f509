"""Run rg to its end or time limit, and collect its output, for tasks that await and threads that block.

An operation is a coroutine that is passed a `Runner` and awaits its methods. `AsyncRunner` suspends it as any coroutine
does. The methods of `BlockingRunner` block and never suspend, so `run_blocking()` has the result after one `send()`
(9 µs). `DeadlineRunner` wraps another runner and gives all its calls one time limit.
"""

import math
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

import anyio
import anyio.lowlevel

from ripwrap._concurrency import CANCELLED, Cancellation, in_thread
from ripwrap._ripgrep.command import Command
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.limiter import blocking_slot, slot
from ripwrap._ripgrep.process import AsyncChild, BlockingChild, parse_stderr
from ripwrap._ripgrep.stream import (
    Runs,
    find_usable_rg,
    find_usable_rg_blocking,
    with_suggestions,
    with_suggestions_blocking,
)
from ripwrap.binary.probe import RgBinary
from ripwrap.binary.resolver import Rg
from ripwrap.errors import UnknownTypeError


class Collector(Protocol):
    """Consumer of rg's output.

    Attributes:
        ended: True if rg has written its last message.
    """

    ended: bool

    def feed(self, chunk: bytes) -> None:
        """Process a chunk of rg's output."""
        ...

    def end_run(self, end: Exit) -> None:
        """Process the end of a run that was not stopped; raise if rg failed. Another run may follow."""
        ...

    def finish(self, end: Exit, *, timed_out: bool) -> None:
        """Process the end of the last run.

        Args:
            end: Combined exit of all runs that were started.
            timed_out: True if the last run was stopped at the time limit.
        """
        ...


C = TypeVar("C", bound=Collector)
T = TypeVar("T")
Lock = Callable[[], anyio.Lock]


@dataclass(frozen=True, slots=True)
class Step(Generic[C]):
    """One run of rg, or several runs one after another that are collected as one.

    Attributes:
        command: Command of rg.
        collector: Function that makes the collector of the output; called again if rg has to be started again.
        timeout: Seconds after which rg is stopped, from the moment when it has its slot; `None` is no limit.
        then: Further commands of the same search, for other paths.
    """

    command: Command
    collector: Callable[[], C]
    timeout: float | None
    then: tuple[Command, ...] = ()


class Runner(Protocol):
    """Object that runs the slow parts of an operation: rg, blocking calls and requests."""

    async def collect(self, step: Step[C]) -> C:
        """Run rg and return the collector of its output.

        Raises what `ripwrap._ripgrep.stream.stream()` raises.
        """
        ...

    async def call(self, work: Callable[[], T], *, seconds: float | None = None, lock: Lock | None = None) -> T:
        """Call a function that blocks, such as one that reads files; an async runner calls it in a worker thread.

        Args:
            work: Function to call. It ends early when `CANCELLED` is set.
            seconds: Time limit, including the wait for `lock`, after which `CANCELLED` is set; `None` is no limit.
            lock: Function that returns the lock to hold during the call. Tasks that wait for it take no thread.

        Raises:
            TimeoutError: The time limit was reached.
        """
        ...

    async def wait(self, work: Callable[[], Awaitable[T]], *, seconds: float | None = None) -> T:
        """Await an awaitable, such as a request to a server; a blocking runner starts a loop for it.

        Args:
            work: Function that makes the awaitable.
            seconds: Time limit after which it is cancelled; `None` is no limit.

        Raises:
            TimeoutError: The time limit was reached.
        """
        ...

    async def checkpoint(self) -> None:
        """Let other tasks run."""
        ...


class AsyncRunner:
    """Runner for tasks, on asyncio and trio; other tasks run between chunks."""

    def __init__(self, rg: Rg) -> None:
        self._rg = rg

    async def collect(self, step: Step[C]) -> C:
        """Run rg; see `Runner`."""
        await anyio.lowlevel.checkpoint()  # let other tasks run between calls that start together
        binary = await find_usable_rg(step.command, self._rg)
        async with slot():
            collector, end, timed_out = await _run(step, binary)
            await parse_stderr(end)
            _finish(collector, end, timed_out=timed_out)
        return collector

    async def call(self, work: Callable[[], T], *, seconds: float | None = None, lock: Lock | None = None) -> T:
        """Call in a worker thread; see `Runner`."""
        with anyio.fail_after(seconds):
            async with nullcontext() if lock is None else lock():
                return await in_thread(work)

    async def wait(self, work: Callable[[], Awaitable[T]], *, seconds: float | None = None) -> T:
        """Await in this loop; see `Runner`."""
        return await _wait(work, seconds)

    async def checkpoint(self) -> None:
        """Let other tasks run."""
        await anyio.lowlevel.checkpoint()


class BlockingRunner:
    """Runner for threads: its methods are coroutines that block the thread and never suspend."""

    def __init__(self, rg: Rg, *, timeout: float | None = None) -> None:
        """Set the rg to run, and the seconds for installing rg if there is none (`None` is two minutes)."""
        self._rg = rg
        self._install_timeout = timeout

    async def collect(self, step: Step[C]) -> C:
        """Run rg; see `Runner`."""
        binary = find_usable_rg_blocking(step.command, self._rg, self._install_timeout)
        with blocking_slot():
            collector, end, timed_out = _run_blocking(step, binary)
            _finish(collector, end, timed_out=timed_out)
        return collector

    async def call(
        self,
        work: Callable[[], T],
        *,
        seconds: float | None = None,
        lock: Lock | None = None,  # noqa: ARG002 - threads wait where they are
    ) -> T:
        """Call in this thread; see `Runner`."""
        return work() if seconds is None else _call_within(work, seconds)

    async def wait(self, work: Callable[[], Awaitable[T]], *, seconds: float | None = None) -> T:
        """Await in a new event loop; see `Runner`."""
        from anyio.from_thread import start_blocking_portal  # late: it takes three milliseconds

        # The loop runs in another thread, because this thread may already have a loop. An exception here, such as
        # Ctrl-C, cancels the work in it.
        with start_blocking_portal() as portal:
            return portal.call(_wait, work, seconds)

    async def checkpoint(self) -> None:
        """Do nothing: the system runs other threads anyway."""


class DeadlineRunner:
    """Runner that wraps another one and gives all its calls together one time limit."""

    def __init__(self, runner: Runner, seconds: float | None, lock: Lock | None = None) -> None:
        """Start the clock.

        Args:
            runner: Runner to wrap.
            seconds: Time limit of all calls together; `None` is no limit.
            lock: See `Runner.call()`.
        """
        self._runner = runner
        self._seconds = seconds
        self._deadline = math.inf if seconds is None else time.monotonic() + seconds
        self._lock = lock

    async def collect(self, step: Step[C]) -> C:
        """Run rg; see `Runner`. Raise `TimeoutError` at the time limit, because the output is then incomplete."""
        timeout = self._sooner(step.timeout)
        with self._named():
            collector = await self._runner.collect(replace(step, timeout=timeout))
        self._left()
        return collector

    async def call(self, work: Callable[[], T], *, seconds: float | None = None, lock: Lock | None = None) -> T:
        """Call a function that blocks; see `Runner`."""
        seconds = self._sooner(seconds)
        with self._named():
            return await self._runner.call(work, seconds=seconds, lock=lock or self._lock)

    async def wait(self, work: Callable[[], Awaitable[T]], *, seconds: float | None = None) -> T:
        """Await an awaitable; see `Runner`."""
        seconds = self._sooner(seconds)
        with self._named():
            return await self._runner.wait(work, seconds=seconds)

    async def checkpoint(self) -> None:
        """Let other tasks run."""
        self._left()
        await self._runner.checkpoint()

    def _left(self) -> float | None:
        """Return the seconds that are left, or `None` without a limit.

        Raises:
            TimeoutError: No time is left.
        """
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise self._over()
        return None if self._seconds is None else left

    def _sooner(self, seconds: float | None) -> float | None:
        left = self._left()
        return seconds if left is None else left if seconds is None else min(left, seconds)

    @contextmanager
    def _named(self) -> Generator[None]:
        """Replace a `TimeoutError` about the limit of a step, after the deadline, by one about the whole limit."""
        try:
            yield
        except TimeoutError as error:
            if time.monotonic() >= self._deadline:
                raise self._over() from error
            raise

    def _over(self) -> TimeoutError:
        return TimeoutError(f"the call took more than timeout={self._seconds} seconds; allow more time")


def run_blocking(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that awaits nothing but a `BlockingRunner`.

    Raises:
        RuntimeError: The coroutine was suspended, because it awaited something else.
    """
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise RuntimeError(f"{coroutine!r} suspended; it may await only its runner")


async def _wait(work: Callable[[], Awaitable[T]], seconds: float | None) -> T:
    with anyio.fail_after(seconds):
        return await work()


def _call_within(work: Callable[[], T], seconds: float) -> T:
    """Call in this thread, and set `CANCELLED` after `seconds`."""
    over = Cancellation()
    timer = threading.Timer(seconds, over.set)
    timer.daemon = True
    before = CANCELLED.set(over)
    timer.start()
    try:
        return work()
    finally:
        timer.cancel()
        CANCELLED.reset(before)


def _finish(collector: Collector, end: Exit, *, timed_out: bool) -> None:
    if not timed_out:
        end.check_paths()
    collector.finish(end, timed_out=timed_out)


async def _run(step: Step[C], binary: RgBinary) -> tuple[C, Exit, bool]:
    deadline = math.inf if step.timeout is None else anyio.current_time() + step.timeout
    runs, collector = Runs(step.command, step.then), step.collector()
    while runs.pending:
        async with AsyncChild(binary, runs.pending[0]) as child:
            with anyio.CancelScope(deadline=deadline) as scope:
                while chunk := await child.read(whole=collector.ended):
                    collector.feed(chunk)
            if scope.cancelled_caught:
                child.kill()
            end = await child.wait()
        if not scope.cancelled_caught and runs.retry(end, everything=True):
            collector = step.collector()
            continue
        runs.add(end)
        if scope.cancelled_caught and (runs.pending or not end.partial):
            return collector, runs.end, True
        try:
            collector.end_run(end)
        except UnknownTypeError:
            raise await with_suggestions(end, binary) from None
    return collector, runs.end, False


def _run_blocking(step: Step[C], binary: RgBinary) -> tuple[C, Exit, bool]:
    begun = time.monotonic()
    runs, collector = Runs(step.command, step.then), step.collector()
    while runs.pending:
        with BlockingChild(binary, runs.pending[0], step.timeout, begun) as child:
            while chunk := child.read(whole=collector.ended):
                collector.feed(chunk)
            end = child.end()
        if not child.timed_out and runs.retry(end, everything=True):
            collector = step.collector()
            continue
        runs.add(end)
        if child.timed_out and (runs.pending or not end.partial):
            return collector, runs.end, True
        try:
            collector.end_run(end)
        except UnknownTypeError:
            raise with_suggestions_blocking(end, binary) from None
    return collector, runs.end, False
