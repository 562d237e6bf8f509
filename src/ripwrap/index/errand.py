"""A coroutine that needs asyncio, run for a caller on whatever loop: in a worker thread, in a loop that ends with it.

The providers' packages are written for asyncio, and their clients belong to the loop that they were first used in. Here
trio works as asyncio does, every `anyio.run()` works anew, and nothing outlives the call. A cancelled caller has the
coroutine cancelled, and waits until it is gone.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

import anyio
import anyio.lowlevel

T = TypeVar("T")


async def run_in_asyncio(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """What a coroutine returns or raises."""
    errand = _Errand(work)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(errand.cancelled_with_me)
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(errand.run)
        tasks.cancel_scope.cancel()
    await anyio.lowlevel.checkpoint_if_cancelled()  # asyncio has not said so yet where a cancelled task ended the wait
    return errand.result()


class _Errand(Generic[T]):
    def __init__(self, work: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._work = work
        self._lock = threading.Lock()
        self._cancelled = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[T] | None = None
        self._result: T
        self._error: BaseException | None = None

    async def cancelled_with_me(self) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            self._cancel()

    def run(self) -> None:
        """In the worker thread; raises nothing."""
        loop = asyncio.new_event_loop()
        try:
            task = loop.create_task(self._work())
            with self._lock:
                self._loop, self._task = loop, task
                if self._cancelled:
                    task.cancel()
            self._result = loop.run_until_complete(task)
        except BaseException as error:  # noqa: BLE001 - `result()` raises it, in the caller's thread
            self._error = error
        finally:
            with self._lock:
                self._loop = None
            _wind_up(loop)

    def result(self) -> T:
        if self._error is None:
            return self._result
        if isinstance(self._error, asyncio.CancelledError):  # which a caller on trio would not understand
            raise RuntimeError("cancelled from within") from self._error
        raise self._error

    def _cancel(self) -> None:
        with self._lock:
            self._cancelled = True
            if self._loop is not None and self._task is not None:
                self._loop.call_soon_threadsafe(self._task.cancel)


def _wind_up(loop: asyncio.AbstractEventLoop) -> None:
    """End what the coroutine left, but wait for no thread of its executor, in which a name may still be looked up."""
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
