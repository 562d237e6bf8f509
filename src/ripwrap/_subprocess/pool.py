"""Pool of worker processes that share the work of one call. Threads, as many as processes, send the requests."""

import os
import queue
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import Context, copy_context
from itertools import islice
from typing import TypeVar

from ripwrap._concurrency import CANCELLED, Cancellation, thread_errors
from ripwrap._subprocess.worker import WorkerProcess

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
                    pending.append((key, _submit(threads, context.copy(), run, key)))
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


def _submit(threads: ThreadPoolExecutor, context: Context, run: Callable[[K], T], key: K) -> Future[T]:
    try:
        with thread_errors():
            return threads.submit(context.run, run, key)
    except RuntimeError as error:  # the pool was closed
        raise TimeoutError("the call was cancelled") from error
