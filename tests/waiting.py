"""Waiting for what a busy machine may need a while for; never for ever."""

import time
from collections.abc import Callable

import anyio

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
