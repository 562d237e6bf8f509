"""When a call of `Repositories` ends, end the tasks that it runs in the processes of an executor.

An executor does not interrupt a running task, even if the future of the task is cancelled. So each call has a file, the
lease, which the calling process touches as long as the call runs. Each task watches this file. The task and its rg end
if the file is removed, because the call has then ended. They also end if the file is not touched for `LEASE_SECONDS`,
because the calling process has then ended or hangs.

A worker on another machine sees the file only if the directory is shared. A worker of Dask also checks whether Dask has
cancelled the task. Any other worker that does not see the file ends a task only at the time limit of the task.
"""

import os
import socket
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import anyio

from ripwrap._concurrency import defer_interrupts

LEASE_SECONDS = 15.0
"""Seconds without a touch of the file, after which a task assumes that the calling process has ended."""
_TOUCH_INTERVAL = 1.0
_WATCH_INTERVAL = 0.1


@dataclass(frozen=True, slots=True)
class Lease:
    """File that exists as long as a call runs."""

    path: str
    host: str


@asynccontextmanager
async def hold_lease(folder: str | None = None) -> AsyncGenerator[Lease]:
    """Make the file of a call, touch it while the block runs, and remove it at the end."""
    where = tempfile.gettempdir() if folder is None else folder
    with defer_interrupts():
        descriptor, path = tempfile.mkstemp(prefix="ripwrap-lease-", dir=where)
        os.close(descriptor)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_touch, path)
            try:
                yield Lease(path, socket.gethostname())
            finally:
                group.cancel_scope.cancel()
    finally:
        with suppress(OSError):
            os.unlink(path)


async def _touch(path: str) -> None:
    while True:
        await anyio.sleep(_TOUCH_INTERVAL)
        with suppress(OSError):
            os.utime(path)


async def wait_for_lease(lease: Lease, seconds: float = LEASE_SECONDS) -> None:
    """Wait until the call has ended. On another machine that cannot see the file of the call, wait for ever."""
    if _touched(lease) is None and lease.host != socket.gethostname():
        await anyio.sleep_forever()
    # Compare modification times only with each other: the clock of a file server may differ from the local one.
    last, since = _touched(lease), time.monotonic()
    while last is not None and time.monotonic() - since < seconds:
        await anyio.sleep(_WATCH_INTERVAL)
        touched = _touched(lease)
        if touched != last:
            last, since = touched, time.monotonic()


async def wait_for_cancellation(is_cancelled: Callable[[], bool]) -> None:
    """Call `is_cancelled` repeatedly, and return when it returns True."""
    while not is_cancelled():  # noqa: ASYNC110 - Dask sets no event
        await anyio.sleep(_WATCH_INTERVAL)


def dask_cancellation() -> Callable[[], bool] | None:
    """Return a function that returns True if this task of Dask was cancelled or has ended.

    Outside of a task of Dask, return `None`.

    A running task that was cancelled has the state `cancelled` until it ends
    (https://distributed.dask.org/en/stable/worker-state.html, "Task states").
    """
    distributed: Any = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        worker = distributed.get_worker()
    except ValueError:  # this is not a thread of a worker
        return None
    key = worker.get_current_task()

    def is_cancelled() -> bool:
        state = worker.state.tasks.get(key)
        return state is None or state.state == "cancelled"

    return is_cancelled


def _touched(lease: Lease) -> int | None:
    try:
        return os.stat(lease.path).st_mtime_ns
    except FileNotFoundError:
        return None
    except OSError:
        return 0  # a file server that does not answer for a moment
