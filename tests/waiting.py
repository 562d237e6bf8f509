"""Waiting for what a busy machine may need a while for; never for ever."""

import itertools
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel

_SECONDS = 20


async def until(condition: Callable[[], object]) -> None:
    """Wait until it holds."""
    with anyio.fail_after(_SECONDS):
        while not condition():  # noqa: ASYNC110 - nothing tells us when
            await anyio.sleep(0.002)


def until_blocking(condition: Callable[[], object]) -> None:
    """As `until()`, blocking."""
    give_up = time.monotonic() + _SECONDS
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.002)


@asynccontextmanager
async def counting_turns() -> AsyncIterator["itertools.count[int]"]:
    """How often another task has had its turn: `next()` says it, and counts as one."""
    turns = itertools.count()

    async def take_turns() -> None:
        for _ in turns:
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group:
        group.start_soon(take_turns)
        yield turns
        group.cancel_scope.cancel()
