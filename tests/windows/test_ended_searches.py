"""A search that is ended early or by its timeout leaves no process, even if a launcher runs rg."""

import gc
import signal
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, closing, suppress
from typing import Any

import anyio
import psutil
import pytest

import ripwrap
from ripwrap import sync
from support.waiting import until
from windows.conftest import StandIn

DOES = {
    "silent": ("silent", ""),
    "endless": ("endless", ""),
    "launcher of a silent rg": ("launch", "silent"),
    "launcher of an endless rg": ("launch", "endless"),
}
Found = AsyncGenerator[Any]


async def leave_loop(found: Found) -> None:
    async for _ in found:
        break


async def close(found: Found) -> None:
    async with aclosing(found):
        await anext(found)


async def cancel(found: Found) -> None:
    async def read() -> None:
        async for _ in found:
            reading.set()

    reading = anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(read)
        await reading.wait()
        await anyio.sleep(0.1)  # until the task waits for output of a silent rg
        group.cancel_scope.cancel()


async def raise_an_exception(found: Found) -> None:
    with suppress(LookupError):
        async for _ in found:
            raise LookupError


async def time_out(found: Found) -> None:
    with anyio.move_on_after(0.5) as scope:
        async for _ in found:
            pass
    assert scope.cancelled_caught


@pytest.mark.anyio
@pytest.mark.filterwarnings("ignore:.*aclosing:ResourceWarning")  # trio warns about a garbage-collected generator
@pytest.mark.parametrize("does", DOES)
@pytest.mark.parametrize("leave", [leave_loop, close, cancel, raise_an_exception, time_out])
async def test_async_search_that_is_ended_early_leaves_no_process(
    leave: Callable[[Found], Any], does: str, stand_in: StandIn, anyio_backend_name: str
) -> None:
    rg = stand_in.does(*DOES[does])
    with stand_in.gone_after(f"{leave.__name__}, {anyio_backend_name}"):
        await leave(ripwrap.search("x", rg=rg))
        gc.collect()
        await until(lambda: stand_in.running() == set())  # a task of the loop closes a garbage-collected generator


def leave_blocking_loop(rg: Any) -> None:
    for _ in sync.search("x", rg=rg):
        break


def close_blocking(rg: Any) -> None:
    with closing(sync.search("x", rg=rg)) as found:
        next(found)


def raise_blocking(rg: Any) -> None:
    with suppress(LookupError):
        for _ in sync.search("x", rg=rg):
            raise LookupError


def interrupt_blocking(rg: Any) -> None:
    """Raise SIGINT in another thread, as Windows does for Ctrl-C."""
    threading.Timer(0.5, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        for _ in sync.search("x", rg=rg):
            pass


def time_out_blocking(rg: Any) -> None:
    with pytest.raises(TimeoutError, match=r"timeout=1\.5 seconds"):
        for _ in sync.search("x", rg=rg, timeout=1.5):
            pass


def time_out_page(rg: Any) -> None:
    assert sync.grep("x", rg=rg, timeout=1.5).stop_reason == "timeout"


BLOCKING = [
    leave_blocking_loop, close_blocking, raise_blocking, interrupt_blocking, time_out_blocking, time_out_page,
]  # fmt: skip


@pytest.mark.parametrize("does", DOES)
@pytest.mark.parametrize("leave", BLOCKING)
def test_blocking_search_that_is_ended_early_leaves_no_process(
    leave: Callable[[Any], None], does: str, stand_in: StandIn
) -> None:
    rg = stand_in.does(*DOES[does])
    with stand_in.gone_after(f"{leave.__name__}, blocking"):
        leave(rg)


@pytest.mark.anyio
async def test_search_leaves_no_handle(stand_in: StandIn) -> None:
    async def search() -> None:
        await close(ripwrap.search("x", rg=rg))
        close_blocking(rg)

    rg = stand_in.does("silent")
    me: Any = psutil.Process()
    for _ in range(3):  # creates the handles of modules, threads and caches
        await search()
    gc.collect()
    before = me.num_handles()
    for _ in range(10):
        await search()
    gc.collect()
    assert me.num_handles() < before + 10


def test_garbage_collected_search_ends_its_processes(stand_in: StandIn) -> None:
    found: Generator[Any] = sync.search("x", rg=stand_in.does("launch", "silent"))
    next(found)
    assert len(stand_in.running()) == 2
    with stand_in.gone_after("collection, blocking"):
        del found
        gc.collect()
