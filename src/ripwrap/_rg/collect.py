"""The two loops, asynchronous and blocking, that run rg to its end, or to the end of its time, and keep what it said.

What to run is told by a plan: a generator that is sent the outcome of each step, and so is the same for both colours.
"""

import math
import threading
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import anyio
import anyio.lowlevel

from ripwrap._rg.argv import Command
from ripwrap._rg.exit import Exit
from ripwrap._rg.limiter import turn, turn_blocking
from ripwrap._rg.process import AsyncChild, BlockingChild
from ripwrap._rg.stream import able, able_blocking, single_threaded, with_suggestions, with_suggestions_blocking
from ripwrap.binary.probe import CANCELLED, RgBinary
from ripwrap.binary.resolver import Rg, in_thread
from ripwrap.errors import RipwrapError, UnknownTypeError


class Collector(Protocol):
    """What takes in rg's bytes.

    Attributes:
        ended: Whether rg has said all that it had to say.
    """

    ended: bool

    def feed(self, chunk: bytes) -> None:
        """Take in what rg has written."""
        ...

    def finish(self, end: Exit, *, timed_out: bool) -> None:
        """Take note of the end; raises if rg failed."""
        ...


C = TypeVar("C", bound=Collector)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Step(Generic[C]):
    """One rg to run.

    Attributes:
        command: What it shall do.
        collector: Makes what takes in its bytes.
        timeout: After how many seconds of its turn it is ended; `None` is never.
    """

    command: Command
    collector: Callable[[], C]
    timeout: float | None


@dataclass(frozen=True, slots=True)
class Work:
    """Something else that takes its time, such as reading files.

    Attributes:
        call: Does it; in a worker thread where a loop waits. It is told to end by `CANCELLED`.
        timeout: After how many seconds it is told so, the wait for its turn among them; `None` is never.
        turn: What a task holds meanwhile, so that those that wait for each other take no thread; threads do not ask.
    """

    call: Callable[[], Any]
    timeout: float | None = None
    turn: Callable[[], anyio.Lock] | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """Something else that waits for others, such as servers.

    Attributes:
        call: Does it, in the caller's loop; blocking, in one of its own, in a thread.
        timeout: After how many seconds it is cancelled; `None` is never.
    """

    call: Callable[[], Awaitable[Any]]
    timeout: float | None = None


Plan: TypeAlias = Generator[Step[Any] | Work | Ask | None, Any, T]
"""What to run, step by step; a step that fails raises its error in the plan. `None` lets others have their turn.

What a step is sent is its collector, done, or what its call returned.
"""

_TOLD = (RipwrapError, TimeoutError)
"""What a step raises in its plan."""


def within(plan: Plan[T], seconds: float | None, turn: Callable[[], anyio.Lock] | None) -> Plan[T]:
    """A plan with a time of its own, for all of its steps together.

    Args:
        plan: The plan.
        seconds: How long it may take; `None` is for ever.
        turn: See `Work`.

    Raises:
        TimeoutError: The time is over.
    """
    deadline = math.inf if seconds is None else time.monotonic() + seconds
    over = TimeoutError(f"it was not done within timeout={seconds} seconds")
    with closing(plan):
        try:
            step = next(plan)
            while True:
                left = None if seconds is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    step = plan.throw(over)
                    continue
                if isinstance(step, Step):
                    step = replace(step, timeout=left if step.timeout is None else min(left or math.inf, step.timeout))
                elif isinstance(step, Work):
                    step = replace(step, timeout=left, turn=turn)
                elif isinstance(step, Ask):
                    step = replace(step, timeout=left)
                try:
                    done = yield step
                except _TOLD as error:
                    late = isinstance(error, TimeoutError) and time.monotonic() >= deadline
                    step = plan.throw(over if late else error)
                    continue
                # What rg has said until then is not all.
                late = isinstance(step, Step) and time.monotonic() >= deadline
                step = plan.throw(over) if late else plan.send(done)
        except StopIteration as end:
            result: T = end.value
            return result


async def carry_out(plan: Plan[T], rg: Rg) -> T:
    """The result of a plan; other tasks run between chunks.

    Raises what `ripwrap._rg.stream.stream()` does, unless the plan takes it.
    """
    with closing(plan):
        try:
            step = next(plan)
            while True:
                try:
                    done = await _done(step, rg)
                except _TOLD as error:
                    step = plan.throw(error)
                else:
                    step = plan.send(done)
        except StopIteration as end:
            result: T = end.value
            return result


def carry_out_blocking(plan: Plan[T], rg: Rg) -> T:
    """As `carry_out()`, blocking."""
    with closing(plan):
        try:
            step = next(plan)
            while True:
                try:
                    done = _done_blocking(step, rg)
                except _TOLD as error:
                    step = plan.throw(error)
                else:
                    step = plan.send(done)
        except StopIteration as end:
            result: T = end.value
            return result


async def _done(step: Step[Any] | Work | Ask | None, rg: Rg) -> Any:
    if step is None:
        return await anyio.lowlevel.checkpoint()
    if isinstance(step, Ask):
        return await _asked(step)
    if isinstance(step, Work):
        with anyio.fail_after(step.timeout):
            async with nullcontext() if step.turn is None else step.turn():
                return await in_thread(step.call)
    return await _collected(step, rg)


def _done_blocking(step: Step[Any] | Work | Ask | None, rg: Rg) -> Any:
    if step is None:
        return None
    if isinstance(step, Ask):
        from anyio.from_thread import start_blocking_portal  # only then: three milliseconds

        # In a thread, because this one may have a loop; what interrupts this one cancels it.
        with start_blocking_portal() as portal:
            return portal.call(_asked, step)
    if isinstance(step, Work):
        return step.call() if step.timeout is None else _timed(step.call, step.timeout)
    return _collected_blocking(step, rg)


async def _asked(step: Ask) -> Any:
    with anyio.fail_after(step.timeout):
        return await step.call()


def _timed(call: Callable[[], T], seconds: float) -> T:
    """What it returns; it is told to end when its time is over."""
    over = threading.Event()
    timer = threading.Timer(seconds, over.set)
    timer.daemon = True
    before = CANCELLED.set(over)
    timer.start()
    try:
        return call()
    finally:
        timer.cancel()
        CANCELLED.reset(before)


async def _collected(step: Step[C], rg: Rg) -> C:
    await anyio.lowlevel.checkpoint()  # so that many that begin at once keep the loop from others for less
    binary = await able(step.command, rg)
    async with turn():
        collector, end, timed_out = await _run(step, binary)
        try:
            collector.finish(end, timed_out=timed_out)
        except UnknownTypeError:
            raise await with_suggestions(end, binary) from None
    return collector


async def _run(step: Step[C], binary: RgBinary) -> tuple[C, Exit, bool]:
    attempt = step.command
    deadline = math.inf if step.timeout is None else anyio.current_time() + step.timeout
    while True:
        collector = step.collector()
        async with AsyncChild(binary, attempt) as child:
            with anyio.CancelScope(deadline=deadline) as scope:
                while chunk := await child.read(whole=collector.ended):
                    collector.feed(chunk)
            if scope.cancelled_caught:
                child.kill()
            end = await child.wait()
        if scope.cancelled_caught or attempt is not step.command or not end.out_of_threads:
            return collector, end, scope.cancelled_caught
        attempt = single_threaded(step.command)


def _collected_blocking(step: Step[C], rg: Rg) -> C:
    # Installing rg has a time of its own, as in the asynchronous twin.
    binary = able_blocking(step.command, rg, None)
    with turn_blocking():
        collector, end, timed_out = _run_blocking(step, binary)
        try:
            collector.finish(end, timed_out=timed_out)
        except UnknownTypeError:
            raise with_suggestions_blocking(end, binary) from None
    return collector


def _run_blocking(step: Step[C], binary: RgBinary) -> tuple[C, Exit, bool]:
    begun = time.monotonic()
    attempt = step.command
    while True:
        collector = step.collector()
        with BlockingChild(binary, attempt, step.timeout, begun) as child:
            while chunk := child.read(whole=collector.ended):
                collector.feed(chunk)
            end = child.end()
        if child.timed_out or attempt is not step.command or not end.out_of_threads:
            return collector, end, child.timed_out
        attempt = single_threaded(step.command)
