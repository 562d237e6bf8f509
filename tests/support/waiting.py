"""Waits with a generous limit for conditions that take longer on a busy machine."""

import itertools
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import anyio
import anyio.lowlevel

T = TypeVar("T")

_SECONDS = 60

TIMEOUTS = (0.5, 2, 8, 32)
"""Timeouts in seconds, to be tried in turn by tests in which something must happen before the timeout."""


async def until(condition: Callable[[], object]) -> None:
    """Wait until the condition holds."""
    with anyio.fail_after(_SECONDS):
        while not condition():  # noqa: ASYNC110 - no event reports the condition
            await anyio.sleep(0.002)


def until_blocking(condition: Callable[[], T]) -> T:
    """Wait as `until()` does, in blocking code; return the value of the condition."""
    give_up = time.monotonic() + _SECONDS
    while not (value := condition()):
        assert time.monotonic() < give_up
        time.sleep(0.002)
    return value


@asynccontextmanager
async def counting_checkpoints() -> AsyncIterator["itertools.count[int]"]:
    """Count the checkpoints of another task; `next()` returns the count and adds one."""
    checkpoints = itertools.count()

    async def run_checkpoints() -> None:
        for _ in checkpoints:
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group:
        group.start_soon(run_checkpoints)
        yield checkpoints
        group.cancel_scope.cancel()
