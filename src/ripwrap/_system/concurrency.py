"""Run work in worker threads, with cancellation; delay Ctrl-C; hold locks; replace files; warn of deprecated names."""

import inspect
import itertools
import mmap
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import NoReturn, Protocol, TypeVar

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar

from ripwrap._system.windows import IS_WINDOWS
from ripwrap.errors import RipwrapError

if sys.platform != "win32":
    import resource

T = TypeVar("T")

OVERDUE = "the call took more than"
"""Beginning of the error of a call that was stopped at its time limit."""


class Cancellation(threading.Event):
    """Event that tells a worker thread to end its work.

    The event is set when the task that waits for the thread is cancelled, or at the time limit of a blocking call. No
    timer sets it at the limit, because a timer needs a thread: `is_set()` and `wait()` look at the clock.
    """

    def __init__(self, timeout: float | None = None) -> None:
        super().__init__()
        self.timeout = timeout
        self.has_child = False
        self._left = countdown(timeout)

    def is_set(self) -> bool:
        """Return True if the event is set, or the time limit is reached."""
        return super().is_set() or self._left() == 0

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the event is set or the time limit is reached, for at most `timeout` seconds."""
        times = [one for one in (timeout, self._left()) if one is not None]
        super().wait(min(times, default=None))
        return self.is_set()

    def check(self, outcome: str = "") -> None:
        """Raise `TimeoutError` if the event is set; `outcome` is a clause such as `, and no file was changed`."""
        if not self.is_set():
            return
        if self.timeout is None:
            raise TimeoutError(f"the call was cancelled{outcome}")
        raise TimeoutError(f"{OVERDUE} timeout={self.timeout} seconds{outcome}; allow more time")

    @contextmanager
    def child(self) -> Generator[None]:
        """Mark a `with` block that runs a child process.

        If the task that waits for the thread is cancelled, the task waits up to `CHILD_SECONDS` for the end of the
        block.
        """
        self.has_child = True  # before the check, so that a task that sets the event after the check sees the child
        try:
            self.check()
            yield
        finally:
            self.has_child = False


def poll_intervals(seconds: float, longest: float = 0.02) -> Iterator[float]:
    """Yield pauses in seconds: first 0.1 ms, then twice the previous pause, up to `longest`; stop after `seconds`."""
    deadline = time.monotonic() + seconds
    pause = 0.0001
    while time.monotonic() < deadline:
        yield pause
        pause = min(2 * pause, longest)


def countdown(seconds: float | None) -> Callable[[], float | None]:
    """Start a time limit, and return a function that returns the seconds left, 0 or more; `None` is no limit."""
    if seconds is None:
        return lambda: None
    until = time.monotonic() + seconds
    return lambda: max(0.0, until - time.monotonic())


CANCELLED: ContextVar[Cancellation] = ContextVar("ripwrap_cancelled", default=Cancellation())  # noqa: B039
"""`Cancellation` of the call that this thread runs. Outside of such a call, it is an event that is never set."""

CHILD_SECONDS = 1.0
"""Maximum number of seconds that a cancelled task waits for its worker thread to end a child process."""

MAX_THREADS = 4
"""Maximum number of calls of `in_thread()` at a time in an event loop. A call ends when its task is cancelled, even if
its thread still runs.
"""

LOCK_POLL_INTERVAL = 0.05
"""Seconds between two attempts to take a lock."""

_LOOP_PACKAGES = frozenset({"ripwrap", "asyncio", "anyio", "trio", "uvloop"})

_LIMITER: "RunVar[anyio.CapacityLimiter]" = RunVar("ripwrap_threads")


_DESCRIPTORS = 8
"""Number of files that a call may open at a time. A process that cannot open as many has reached its limit."""
_SMALL_FILE_BYTES = 1 << 30
"""A lower limit of the size of files is named as the cause of a failed write."""


def lacks_memory(size: int) -> bool:
    """Return True if a limit of this process (`ulimit -v`) leaves no room for `size` bytes.

    Code in Rust ends the process when it gets no memory, so it must be asked before.
    """
    if sys.platform == "win32" or resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        return False
    try:
        mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except OSError:
        return True
    return False


def reached_limit(memory: int = 1 << 24) -> str:
    """Return the limit of the system that this process has reached, found out by trying; empty if there is none."""
    opened_files: list[int] = []
    try:
        opened_files.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(_DESCRIPTORS))
    except OSError:
        return "the number of open files (ulimit -n)"
    finally:
        for descriptor in opened_files:
            os.close(descriptor)
    if lacks_memory(memory):
        return "memory (ulimit -v)"
    try:
        threading.Thread(target=int).start()
    except RuntimeError:
        return "the number of processes and threads (ulimit -u)"
    if sys.platform != "win32" and 0 <= resource.getrlimit(resource.RLIMIT_FSIZE)[0] < _SMALL_FILE_BYTES:
        return "the size of files (ulimit -f)"
    return ""


@contextmanager
def thread_errors() -> Generator[None]:
    """Translate the error of a thread that the system does not start into one that names the limit."""
    try:
        yield
    except RuntimeError as error:
        if "start new thread" not in str(error):
            raise
        limit = f"the limit of {reached_limit() or 'memory or threads'} is reached"
        raise RipwrapError(
            f"could not start a thread: {limit}; raise the limit, or end programs, and try again"
        ) from error


def refuse_copy(self: object) -> NoReturn:
    """Raise the error of `pickle` and `copy` for an object that holds locks and open files, as its `__reduce__`."""
    name = type(self).__name__
    raise TypeError(
        f"{name} objects cannot be pickled or copied, because they hold locks and open files; make another {name} "
        "with the same arguments, also in another process"
    )


def warn_deprecated(message: str) -> None:
    """Warn of a deprecated name. The warning points at the nearest caller that is not in ripwrap or in the event loop.

    A coroutine that `asyncio.run()` runs is called by frames of asyncio, which are skipped. By default, Python shows a
    `DeprecationWarning` only if it points at `__main__`; pytest and unittest show all of them
    (https://docs.python.org/3/library/warnings.html#default-warning-filter).
    """
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _LOOP_PACKAGES:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, DeprecationWarning, stacklevel=level)


async def in_thread(call: Callable[[], T]) -> T:
    """Call a function in a worker thread, and return its result.

    If the task is cancelled, the `CANCELLED` event of the thread is set. The task then waits up to `CHILD_SECONDS` for
    the end of a child process that the thread runs (`Cancellation.child()`), but not for the end of the thread.

    At most `MAX_THREADS` calls run at a time. So if many calls begin at once, most of them find the results of the
    first calls in a cache.
    """
    limiter = _LIMITER.get(None)
    if limiter is None:
        limiter = anyio.CapacityLimiter(MAX_THREADS)
        _LIMITER.set(limiter)
    cancelled = Cancellation()

    def run() -> T:
        CANCELLED.set(cancelled)  # in the thread's own context
        return call()

    # Each thread has a separate limiter. On trio, an abandoned thread holds its token until it ends
    # (trio.to_thread.run_sync, "limiter"), and later calls must not wait for a thread that hangs.
    async with limiter:
        try:
            with thread_errors():
                return await anyio.to_thread.run_sync(run, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1))
        except BaseException:
            cancelled.set()
            # If asyncio cancels the task again, the rest of the wait blocks the event loop.
            pauses = itertools.takewhile(lambda _: cancelled.has_child, poll_intervals(CHILD_SECONDS))
            try:
                with anyio.CancelScope(shield=True):
                    for pause in pauses:
                        await anyio.sleep(pause)
            finally:
                for pause in pauses:
                    time.sleep(pause)  # noqa: ASYNC251
            raise


async def in_thread_to_end(call: Callable[[], T]) -> T:
    """Call a function in a worker thread, and wait until it has returned or raised, even if the task is cancelled."""
    cancelled = Cancellation()
    outcome: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        CANCELLED.set(cancelled)  # in the thread's own context
        try:
            outcome.append(call())
        except BaseException as error:  # noqa: BLE001 - raised below, outside of the task group's exception group
            errors.append(error)

    async def shielded(ended: anyio.Event) -> None:
        with anyio.CancelScope(shield=True):
            try:
                await anyio.to_thread.run_sync(run, limiter=anyio.CapacityLimiter(1))
            except RuntimeError as error:  # there is no thread
                errors.append(error)
        ended.set()

    # A second cancellation of an asyncio task interrupts even a shielded wait. So the thread runs in a separate task,
    # for which the task group waits in any case.
    async with anyio.create_task_group() as tasks:
        ended = anyio.Event()
        tasks.start_soon(shielded, ended)
        try:
            await ended.wait()
        finally:
            cancelled.set()
    if errors:
        with thread_errors():
            raise errors[0]
    return outcome[0]


@contextmanager
def defer_interrupts() -> Generator[None]:
    """Delay Ctrl-C until the end of the `with` block, in which the caller makes something and notes how to release it.

    Python raises `KeyboardInterrupt` after any call, also between the call that opens a file or starts a child and the
    assignment of its result; then nobody can close it (docs/explanation/guarantees.md). Only the main thread receives
    Ctrl-C, and only if Python handles the signal.
    """
    handler = signal.getsignal(signal.SIGINT)
    waiting: list[tuple[int, FrameType | None]] = []
    try:
        if callable(handler):
            signal.signal(signal.SIGINT, lambda number, frame: waiting.append((number, frame)))
    except ValueError:  # not the main thread
        handler = None
    try:
        yield
    finally:
        if callable(handler):
            signal.signal(signal.SIGINT, handler)
            for number, frame in waiting:
                handler(number, frame)


@contextmanager
def opened(descriptor: Callable[[], int]) -> Generator[int]:
    """Open a descriptor, and close it at the end of the `with` block: exactly once, whenever Ctrl-C comes."""
    number = -1
    try:
        with defer_interrupts():
            number = descriptor()
        yield number
    finally:
        if number >= 0:
            os.close(number)  # in C: Ctrl-C may come before the first line of any other function


class AnyLock(Protocol):
    """A lock for threads (`threading.Lock`) or for processes (`ProcessLock`)."""

    def acquire(self, *, timeout: float) -> bool:
        """Take the lock, and return True; return False if this takes more than `timeout` seconds."""
        ...

    def release(self) -> None:
        """Release the lock."""
        ...


class ProcessLock:
    """A lock on a file. Of all locks on one file, in all threads and processes, only one can be held at a time."""

    def __init__(self, path: Path, *, if_writable: bool = False) -> None:
        """Set the lock's file, which is created when the lock is first acquired."""
        from filelock import FileLock  # late: few calls take a lock

        self._lock = FileLock(path, thread_local=False)
        self._if_writable = if_writable

    def acquire(self, *, timeout: float) -> bool:
        """Take the lock, and return True; return False if this takes more than `timeout` seconds."""
        from filelock import Timeout  # late, too

        try:
            self._lock.acquire(timeout=timeout)
        except Timeout:  # a subclass of OSError
            return False
        except OSError:
            if not self._if_writable:
                raise
        return True

    def release(self) -> None:
        """Release the lock."""
        with defer_interrupts():
            self._lock.release()


@contextmanager
def hold_lock(lock: AnyLock, check: Callable[[], object]) -> Generator[None]:
    """Hold a lock. While waiting for it, call `check` repeatedly; an exception from `check` ends the wait."""
    held = False
    try:
        while not held:
            with defer_interrupts():
                held = lock.acquire(timeout=LOCK_POLL_INTERVAL)
            if not held:
                check()
        yield
    finally:
        if held:
            lock.release()


@asynccontextmanager
async def hold_lock_async(lock: AnyLock, *, wait: bool) -> AsyncGenerator[bool]:
    """Hold a lock in a task; the task can be cancelled while it waits for the lock."""
    while not (held := lock.acquire(timeout=0)) and wait:  # noqa: ASYNC110 - other processes set no event
        await anyio.sleep(LOCK_POLL_INTERVAL)
    try:
        yield held
    finally:
        if held:
            lock.release()


def replace_file(
    source: Path, target: Path, *, windows: bool = IS_WINDOWS, replace: Callable[[Path, Path], object] = os.replace
) -> None:
    """Rename a file or directory to `target`, and replace an existing file of that name.

    On Windows, a rename fails while a virus scanner has the new file open, or another process has the old file open.
    So on Windows, if permission is denied, retry for ten seconds.
    """
    for pause in (0.01 * 2**n for n in range(10)):
        try:
            replace(source, target)
        except PermissionError:
            if not windows:
                raise
            time.sleep(pause)
        else:
            return
    replace(source, target)
