"""Worker processes that run code of this package. They answer requests, and end when their parent ends.

The process is a new Python that imports one module. A process of `multiprocessing` would import the caller's main
module again, and run a script without `if __name__ == "__main__"` twice. Only a frozen program has no Python to start:
it starts itself, and `multiprocessing.freeze_support()`, which it must call, runs the code.
"""

import io
import os
import pickle
import queue
import signal
import struct
import subprocess
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from contextvars import copy_context
from itertools import islice
from typing import IO, TypeVar

from ripwrap._system.concurrency import CANCELLED, Cancellation, defer_interrupts, thread_errors
from ripwrap._system.subprocess import Popen, kill, start, wait_for_exit

if sys.platform != "win32":
    import resource

MAX_MEMORY_BYTES = 448 << 20
"""Maximum size of the memory that the process writes to, in bytes, on systems that can limit it (Linux)."""

MAX_ADDRESS_BYTES = 2 << 30
"""Maximum size of the address space of the process in bytes, on systems that can limit it."""

MAX_ANSWER_BYTES = 128 << 20
"""Maximum size of an answer in bytes. The process may be under the control of hostile source code."""

_START_TIMEOUT = 30.0
_ALARM_MARGIN = 60.0
"""Seconds between the idle timeout and the alarm with which the process ends itself, if its parent has not ended it.

The time is long, so that the alarm never ends a process while it works on a request.
"""
_POLL_INTERVAL = 0.05
"""Seconds between two checks for a timeout or cancellation."""
_COUNT = struct.Struct(">I")
_SIZE = struct.Struct(">Q")
_MAX_PARTS = 16
_MAX_READ_BYTES = 1 << 18
_END_TIMEOUT = 1.0
"""Seconds to wait for the exit code of a process that ended, or closed its stdout, before it was ready."""
_READY = [b"ready"]
_IS_WORKER = "_RIPWRAP_WORKER"
"""Environment variable of a worker process. A process that has it starts no worker process: it may be a frozen program
that does not know that it was started as one, and would start itself without end.
"""
_FREEZE_SUPPORT = "a frozen program must call multiprocessing.freeze_support() at the beginning of its main module"
_INHERITED_VARIABLES = frozenset(
    (
        *("PATH", "PYTHONHOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT"),  # to start Python
        *("PROCESSOR_ARCHITECTURE", "PROCESSOR_ARCHITEW6432"),  # for `platform.machine()`, which selects a grammar
        *("LANG", "TMPDIR", "TEMP", "TMP"),
        *("HOME", "USERPROFILE", "XDG_CACHE_HOME", "SEMBLE_GRAMMARS_CACHE_DIR"),  # to unpack grammars
        "_MEIPASS2",  # of PyInstaller before 6.10; see `_INHERITED_PREFIXES`
    )
)
"""Environment variables that the process inherits. Other variables may hold secrets. The process does not inherit them,
because hostile source code may take control of a parser.
"""
_INHERITED_PREFIXES = ("LC_", "_PYI_", "NUITKA_")  # a frozen program finds what it has unpacked by the last two


class StartError(Exception):
    """Error for a worker process that could not be started; the message says why."""


class WorkerProcess:
    """A worker process, with a thread that ends it when it is idle.

    The process is started for the first request. If it ends, the next request starts it again. It ends in five cases:
    `close()` or `kill()` is called, the process that started it ends, it has no work for `idle` seconds, an answer
    takes too long, or the task that waits for an answer is cancelled (`CANCELLED`). A lock lets one thread use the
    process at a time. After a fork, the forked child starts its own worker process.

    The thread that ends the process refers to this object, so the object is not garbage collected. The owner of the
    object must call `kill()` in a finalizer.
    """

    def __init__(self, code: str, seconds: float, idle: float) -> None:
        """Set the limits; the process is started for the first request."""
        self._code = code
        self._seconds = seconds
        self._idle = idle
        self._lock = threading.RLock()  # the garbage collector may call `kill()` while this thread holds it
        self._process: Popen | None = None
        self._ended = threading.Event()
        self._used = 0.0
        _WORKERS.add(self)

    def request(self, parts: Sequence[bytes], seconds: float | None = None) -> list[bytes] | None:
        """Return the answer to a request, or `None` if the process crashed, or was ended at the time limit."""
        with self._lock:
            try:
                # The worker may have died, e.g. for lack of memory. If this process was stopped (SIGSTOP), the thread
                # that ends an idle worker is late, and the worker's own alarm may end it soon.
                late = time.monotonic() - self._used > self._idle
                if self._process is not None and (late or self._process.poll() is not None):
                    self.close()
                if self._process is None:
                    self._start()
                answer = self._exchange(parts, self._seconds if seconds is None else seconds)
            except BaseException:  # after Ctrl-C, the answer may still be in the pipe, so do not reuse the process
                self.close()
                raise
            if answer is None:
                self.close()
                CANCELLED.get().check()
            self._used = time.monotonic()
            return answer

    def close(self) -> None:
        """End the process after the current request."""
        with self._lock:
            process, self._process = self._process, None
            self._ended.set()
            if process is not None:
                kill(process)
                _close_pipes(process)
                process.wait()

    def kill(self) -> None:
        """End the process at once, even while a daemon thread waits for an answer."""
        if (process := self._process) is not None:
            kill(process)
        self.close()

    def abandon(self) -> None:
        """Drop the reference to the process; called in a forked child, because the process belongs to the parent."""
        # New locks, because the copied ones may be held by a thread that the fork did not copy.
        self._lock, self._ended = threading.RLock(), threading.Event()
        process, self._process = self._process, None
        if process is not None:
            process.returncode = 0  # so that `Popen` does not wait for it
            _close_pipes(process)

    def _start(self) -> None:
        environment = {
            name: value
            for name, value in os.environ.items()
            if name in _INHERITED_VARIABLES or name.startswith(_INHERITED_PREFIXES)
        }
        environment |= {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), _IS_WORKER: "1"}
        argv, pipe, nothing = _argv(self._code), subprocess.PIPE, subprocess.DEVNULL
        try:
            # The process has its own process group, so that a terminal's Ctrl-C does not end it; otherwise the current
            # file would be reported as unreadable. The pipes have no buffers, because a forked child would write the
            # buffered bytes again.
            with defer_interrupts():
                self._process = start(argv, stdin=pipe, stdout=pipe, stderr=nothing, env=environment)
        except OSError as error:
            raise StartError(f"{sys.executable} cannot be started: {error.strerror}") from error
        if _is_frozen() and self._process.stdin is not None:
            with suppress(OSError):  # it has ended; the exchange that follows says so
                _write_all(self._process.stdin, pickle.dumps({}) + pickle.dumps(_FrozenWorker(self._code)))
        if self._exchange(None, _START_TIMEOUT) != _READY:
            code = wait_for_exit(self._process, _END_TIMEOUT)  # a frozen program may be running its main module instead
            CANCELLED.get().check()
            why = "it did not answer" if code is None else f"it ended with exit code {code}"
            raise StartError(f"{why}; {_FREEZE_SUPPORT}" if _is_frozen() else why)
        self._used, self._ended = time.monotonic(), threading.Event()
        # A daemon thread, so that the program can end without waiting for it.
        idle = threading.Thread(
            target=self._close_when_idle, args=(self._ended,), name="ripwrap-worker-idle", daemon=True
        )
        with thread_errors():
            idle.start()

    def _close_when_idle(self, ended: threading.Event) -> None:
        while not ended.wait(max(self._used + self._idle - time.monotonic(), 0)):
            with self._lock:
                if not ended.is_set() and time.monotonic() - self._used >= self._idle:
                    self.close()

    def _exchange(self, request: Sequence[bytes] | None, seconds: float) -> list[bytes] | None:
        """Send a request and return the answer, or `None` if the process ends; on a timeout or cancellation, kill it.

        If `request` is `None`, send nothing, and return the first message of the process, which says that it is ready.
        """
        # Reads and writes of pipes block, and on Windows they cannot have a time limit. So a thread watches the clock
        # and kills the process, which ends them.
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            return None
        done, cancelled = threading.Event(), CANCELLED.get()

        def watch() -> None:
            until = time.monotonic() + seconds
            while not done.wait(_POLL_INTERVAL):
                if cancelled.is_set() or time.monotonic() > until:
                    kill(process)
                    return

        thread = threading.Thread(target=watch, name="ripwrap-worker-watch")
        with thread_errors():
            thread.start()
        try:
            if request is not None:
                _write(process.stdin, request)
            return _read(process.stdout, MAX_ANSWER_BYTES)
        except OSError:
            return None
        finally:
            done.set()
            thread.join()


_WORKERS: "weakref.WeakSet[WorkerProcess]" = weakref.WeakSet()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=lambda: deque(map(WorkerProcess.abandon, list(_WORKERS)), 0))


def _close_pipes(process: Popen) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def serve_requests(answer: Callable[[list[bytes]], Sequence[bytes]], seconds: float, idle: float) -> None:
    """Answer the requests that a `WorkerProcess` sends to stdin, until stdin ends; runs in the worker process."""
    if sys.platform != "win32":
        limits = ((resource.RLIMIT_DATA, MAX_MEMORY_BYTES), (resource.RLIMIT_AS, MAX_ADDRESS_BYTES))
        for limit, most in limits:
            with suppress(OSError, ValueError):  # a lower limit is already set
                resource.setrlimit(limit, (most, resource.getrlimit(limit)[1]))
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    found: Sequence[bytes] = _READY
    while True:
        _write(answers, found)
        answers.flush()
        _set_alarm(idle + _ALARM_MARGIN)
        request = _read(requests)
        if request is None:
            return
        _set_alarm(2 * seconds)
        found = answer(request)


def _set_alarm(seconds: float) -> None:
    """Let the system end this process after some seconds, even while a parser runs; replace an earlier alarm."""
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_REAL, seconds)


def is_python() -> bool:
    """Return True if `sys.executable` is Python. In a frozen program it is the program, and it may be unknown."""
    return bool(sys.executable) and not _is_frozen()


def _is_frozen() -> bool:
    return bool(getattr(sys, "frozen", False))


def _argv(code: str) -> list[str]:
    """Return the command of a process that runs code."""
    if os.environ.get(_IS_WORKER):
        raise StartError(f"this process is itself a worker process, which starts no other; {_FREEZE_SUPPORT}")
    if not sys.executable:
        raise StartError("sys.executable, the path of Python, is empty; set it to the path of a Python")
    if not _is_frozen():
        return [sys.executable, "-P", "-c", code]
    if sys.platform == "win32":
        raise StartError("a frozen program cannot start it on Windows")
    from multiprocessing import spawn  # late, and here: PyInstaller then adds what `freeze_support()` needs

    return spawn.get_command_line(pipe_handle=0)


class _FrozenWorker:
    """Program of a worker process of a frozen program, which `multiprocessing.freeze_support()` runs.

    That function reads from the descriptor `pipe_handle` two pickles, as `multiprocessing.spawn` describes: settings of
    the process, and an object whose `_bootstrap()` it calls. A real `Process` would also need a resource tracker, which
    is one more copy of the program.
    """

    def __init__(self, code: str) -> None:
        self._code = code

    def _bootstrap(self, parent_sentinel: int) -> int:
        os.dup2(parent_sentinel, 0)  # a copy of stdin, which `freeze_support()` has closed
        os.close(parent_sentinel)
        exec(self._code, {})  # noqa: S102 - as `python -c` does
        return 0


def _write(stream: IO[bytes], parts: Sequence[bytes]) -> None:
    header = [_COUNT.pack(len(parts)), *(_SIZE.pack(len(part)) for part in parts)]
    for data in (b"".join(header), *parts):
        _write_all(stream, data)


def _write_all(stream: IO[bytes], data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[stream.write(rest) :]


def _read(stream: IO[bytes], most: int | None = None) -> list[bytes] | None:
    """Return the parts of a message."""
    header = _read_bytes(stream, _COUNT.size)
    if header is None or (count := _COUNT.unpack(header)[0]) > _MAX_PARTS:
        return None
    packed = _read_bytes(stream, count * _SIZE.size)
    if packed is None:
        return None
    sizes = [size for (size,) in _SIZE.iter_unpack(packed)]
    if most is not None and sum(sizes) > most:
        return None
    parts: list[bytes] = []
    for size in sizes:
        part = _read_bytes(stream, size)
        if part is None:
            return None
        parts.append(part)
    return parts


def _read_bytes(stream: IO[bytes], size: int) -> bytes | None:
    """Return `size` bytes, or `None` if the stream has fewer."""
    found = io.BytesIO()  # its value is no copy
    while size:
        part = stream.read(min(size, _MAX_READ_BYTES))
        if not part:
            return None
        found.write(part)
        size -= len(part)
    return found.getvalue()


K = TypeVar("K")
T = TypeVar("T")

MAX_PROCESSES = 4
"""Default maximum number of processes; with more processes, the process that starts them would be the bottleneck."""

_WAIT_SECONDS = 0.05


def usable_cpus() -> int:
    """Return the number of CPUs that this process may use, but at most `MAX_PROCESSES`."""
    # On systems without affinity, such as macOS, all CPUs are usable.
    affinity = getattr(os, "sched_getaffinity", None)
    usable = os.cpu_count() or 1 if affinity is None else len(affinity(0))
    return min(usable, MAX_PROCESSES)


class WorkerPool:
    """Pool of worker processes that answer several requests at a time."""

    def __init__(self, code: str, count: int, seconds: float, idle: float) -> None:
        """Set the number of processes and their limits; see `WorkerProcess`."""
        self.workers = [WorkerProcess(code, seconds, idle) for _ in range(count)]
        for worker in self.workers:
            weakref.finalize(self, worker.kill)  # the finalizer is also called when the interpreter ends
        self._ended = Cancellation()
        self._threads: ThreadPoolExecutor | None = None

    def close(self) -> None:
        """End the processes and their threads at once."""
        self._ended.set()  # ends the process of a running request, even while that process starts
        # `map()` also does this at its end, but the thread of a cancelled task may leave its iterator open.
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in self.workers:
            worker.kill()

    def map(
        self, work: Callable[[WorkerProcess, K], T], keys: Iterable[K], count: int | None = None
    ) -> Generator[tuple[K, T]]:
        """Call `work` with each key, several at a time, and yield each key with its result, in the order of `keys`.

        The processes end with the iterator, so call this method only once.
        """
        used = self.workers[:count]
        free: queue.LifoQueue[WorkerProcess] = queue.LifoQueue()  # so that few requests start few processes
        for worker in reversed(used):
            free.put(worker)

        def run(key: K) -> T:
            self._ended.check()
            worker = free.get()
            try:
                return work(worker, key)
            finally:
                free.put(worker)

        context = copy_context()
        context.run(CANCELLED.set, self._ended)
        waiting = iter(keys)
        pending: deque[tuple[K, Future[T]]] = deque()
        threads = self._threads = ThreadPoolExecutor(len(used), "ripwrap-worker")
        try:
            while True:
                for key in islice(waiting, 2 * len(used) - len(pending)):
                    try:
                        with thread_errors():
                            pending.append((key, threads.submit(context.copy().run, run, key)))
                    except RuntimeError as error:  # the pool was closed
                        raise TimeoutError("the call was cancelled") from error
                if not pending:
                    return
                key, future = pending.popleft()
                CANCELLED.get().check()
                while not wait([future], _WAIT_SECONDS).done:  # Windows delivers a Ctrl-C only between two waits
                    CANCELLED.get().check()
                yield key, future.result()
        finally:
            self.close()
            threads.shutdown()
