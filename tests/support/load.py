"""Load scenarios of any size, each of which checks a guarantee.

`test_load.py` runs them with small sizes, `stress.py` with large ones.
"""

import asyncio
import functools
import gc
import itertools
import os
import random
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import psutil

import ripwrap
from ripwrap import sync
from ripwrap._ripgrep import process
from support import fake_rg

FLAT = 16  # megabytes of memory that a stream of small records may take, for any length
LINES = 2000  # lines of the dense file: more than a pipe holds, so that rg has to wait for its consumer

_ME = psutil.Process()
_EARLIER: set[psutil.Process] = set()
"""Children that were there before the scenario, such as the server of `support.forks`."""


def _children(*, recursive: bool = False) -> list[psutil.Process]:
    return [child for child in _ME.children(recursive=recursive) if child not in _EARLIER]


@dataclass
class Row:
    """Result of a scenario: a row of the table.

    Attributes:
        guarantee: Guarantee that is checked.
        tries: Number of attempts.
        failures: Descriptions of broken guarantees.
        reap: Longest time until the rg of a search that was ended early had exited, in seconds.
        memory: Largest growth of memory since the start, in megabytes.
        fds: Largest growth of the number of file descriptors.
        lag: Longest time for which the event loop was blocked, in seconds.
        children: Largest number of child processes.
    """

    guarantee: str
    tries: int = 0
    failures: list[str] = field(default_factory=list[str])
    reap: float | None = None
    memory: float = 0
    fds: int = 0
    lag: float | None = None
    children: int = 0

    def check(self, holds: bool, what: str) -> None:
        """Record a failure unless `holds` is true."""
        if not holds:
            self.failures.append(what)

    @contextmanager
    def leaving(self) -> Iterator[None]:
        """Record the time of a block that ends a search early."""
        begun = time.monotonic()
        yield
        self.took(time.monotonic() - begun)

    def took(self, seconds: float) -> None:
        """Record the time until an rg had exited."""
        self.reap = max(self.reap or 0, seconds)

    @asynccontextmanager
    async def lagging(self) -> AsyncIterator[None]:
        """Record the longest time that another task has to wait during a block."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._tick)
            yield
            group.cancel_scope.cancel()

    async def _tick(self) -> None:
        while True:
            begun = time.monotonic()
            await anyio.sleep(0.001)
            self.lag = max(self.lag or 0, time.monotonic() - begun - 0.001)


@contextmanager
def scenario(guarantee: str) -> Iterator[Row]:
    """Yield a row, measure this process during the block, and check for leaks at the end."""
    row = Row(guarantee)
    gc.collect()
    memory, fds = _ME.memory_info().rss, _ME.num_fds()
    _EARLIER.clear()
    _EARLIER.update(_ME.children(recursive=True))
    ended = threading.Event()

    def watch() -> None:
        for look in itertools.count():
            if ended.wait(0.02):
                return
            row.memory = max(row.memory, (_ME.memory_info().rss - memory) / 1e6)
            row.fds = max(row.fds, _ME.num_fds() - fds)
            if look % 10 == 0:  # less often, because the call is slow and blocks the event loop
                row.children = max(row.children, len(_children()))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield row
    except Exception as error:  # noqa: BLE001 - an error is a failure, and the others go on
        row.failures.append(repr(error))
    finally:
        ended.set()
        watcher.join()
    gc.collect()
    row.check(_children(recursive=True) == [], "a process is left")
    row.check(_ME.num_fds() <= fds, f"{_ME.num_fds() - fds} file descriptors are left")


@contextmanager
def corpus(lines: int = LINES) -> Iterator[Path]:
    """Yield a folder with a dense file, some small files, and a FIFO without a writer, on which rg waits."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "dense").write_text("needle\n" * lines)
        for number in range(10):
            (folder / f"small{number}").write_text("needle\nother\n" * 3)
        os.mkfifo(folder / "fifo")
        yield folder


def concurrent_greps(number: int, api: str) -> Row:
    """Start all greps at once; a limited number of rg may run at a time."""
    with corpus() as folder, scenario(f"{number} grep() at once, a bounded number of rg, {api}") as row:

        async def one() -> None:
            found = await ripwrap.grep("needle", cwd=folder, limit=5, timeout=None, glob="!fifo")
            row.check((found.total_matches, found.exact) == (LINES + 30, True), f"grep() gave {found.total_matches}")
            row.tries += 1

        async def main() -> None:
            async with row.lagging(), anyio.create_task_group() as group:
                for _ in range(number):
                    group.start_soon(one)
                    await anyio.lowlevel.checkpoint()  # so that the tasks start one by one

        anyio.run(main, backend=api)
        row.check(row.children <= process.SLOTS.total, f"{row.children} rg at a time")
    return row


def suspended_streams(number: int, api: str) -> Row:
    """Suspend open streams and resume each of them where it stopped."""
    with corpus() as folder, scenario(f"{number} suspended streams side by side, {api}") as row:

        async def main() -> None:
            streams = [ripwrap.search("needle", cwd=folder, paths="dense") for _ in range(number)]
            async with row.lagging():
                for stream in streams:
                    await anext(stream)
                running = len(await anyio.to_thread.run_sync(_children))
                row.check(running == number, f"{running} rg run")
                for turn in range(10):
                    for stream in streams:
                        match = await anext(stream)
                        row.check(match.line_number == turn + 2, f"line {match.line_number} came out of turn")
                for place, stream in enumerate(streams):
                    if place % 2:
                        left = LINES - 11
                        async for _ in stream:
                            left -= 1
                        row.check(left == 0, f"{left} matches are missing")
                    else:
                        with row.leaving():
                            await stream.aclose()
                    row.tries += 1

        anyio.run(main, backend=api)
    return row


def many_searches(number: int, api: str) -> Row:
    """Run searches one after another and end them in different ways; nothing may leak."""
    with corpus() as folder, scenario(f"{number} searches leak nothing, {api}") as row:

        async def main() -> None:
            async with row.lagging():
                for place in range(number):
                    await _one_of_many(row, folder, place)
                    row.tries += 1

        if api == "sync":
            for place in range(number):
                _one_of_many_blocking(row, folder, place)
                row.tries += 1
        else:
            anyio.run(main, backend=api)
    return row


async def _one_of_many(row: Row, folder: Path, place: int) -> None:
    match place % 5:
        case 0:
            matches = [match async for match in ripwrap.search("needle", cwd=folder, paths=["small1", "small2"])]
            row.check(len(matches) == 6, f"{len(matches)} matches")
        case 1:
            stream = ripwrap.search("needle", cwd=folder, paths=["dense", "fifo"], threads=1)
            await anext(stream)
            with row.leaving():
                await stream.aclose()
        case 2:
            row.check(len([path async for path in ripwrap.files(cwd=folder, limit=3)]) == 3, "not three paths")
        case 3:
            with suppress(ripwrap.PatternError):
                async for _ in ripwrap.search("(", cwd=folder, paths="small1"):
                    row.check(False, "nothing was wrong")
        case _:
            with anyio.move_on_after(random.uniform(0, 0.01)):
                await ripwrap.grep("needle", cwd=folder, paths=["dense", "fifo"], timeout=None)


def _one_of_many_blocking(row: Row, folder: Path, place: int) -> None:
    match place % 4:
        case 0:
            found = list(sync.search("needle", cwd=folder, paths=["small1", "small2"]))
            row.check(len(found) == 6, f"{len(found)} matches")
        case 1:
            stream = sync.search("needle", cwd=folder, paths=["dense", "fifo"], threads=1)
            next(stream)
            with row.leaving():
                stream.close()
        case 2:
            result = sync.grep("needle", cwd=folder, paths=["dense", "fifo"], threads=1, timeout=0.01)
            row.check(result.stop_reason == "timeout", "no timeout")
        case _:
            row.check(len(list(sync.files(cwd=folder, limit=3))) == 3, "not three paths")


def long_stream(matches: int, api: str) -> Row:
    """Read a long stream with constant memory while other tasks run."""
    with corpus(matches) as folder, scenario(f"memory is flat over {matches:,} matches, {api}") as row:
        options: dict[str, Any] = {"cwd": folder, "paths": "dense"}

        async def main() -> None:
            async with row.lagging(), aclosing(ripwrap.search("needle", **options)) as stream:
                async for _ in stream:
                    row.tries += 1

        if api == "sync":
            for _ in sync.search("needle", **options):
                row.tries += 1
        else:
            anyio.run(main, backend=api)
        row.check(row.tries == matches, f"{row.tries} matches came")
        row.check(row.memory <= FLAT, f"{row.memory:.0f} MB")
    return row


def leaving(number: int, api: str) -> Row:
    """End a busy stream early in every way: break, exception, cancellation, or no reference to it."""
    with corpus() as folder, scenario(f"rg exits when a search is ended early, {api}") as row:
        options: dict[str, Any] = {"cwd": folder, "paths": ["dense", "fifo"], "threads": 1}

        async def main() -> None:
            ways = [_break, _raise, _cancel, *([_lose, _cancel_task] if api == "asyncio" else [])]
            for place in range(number):
                await ways[place % len(ways)](row, functools.partial(ripwrap.search, "needle", **options))
                row.check(_children() == [], f"{ways[place % len(ways)].__name__} has left a process")
                row.tries += 1

        if api == "sync":
            for place in range(number):
                stream = sync.search("needle", **options)
                next(stream)
                with row.leaving(), suppress(ZeroDivisionError):
                    if place % 3 == 0:
                        stream.close()
                    elif place % 3 == 1:
                        stream.throw(ZeroDivisionError())
                    else:
                        del stream
                        gc.collect()
                row.check(_children() == [], "a process is left")
                row.tries += 1
        else:
            anyio.run(main, backend=api)
    return row


Search = Callable[[], Any]


async def _break(row: Row, search: Search) -> None:
    stream = search()
    await anext(stream)
    with row.leaving():
        await stream.aclose()


async def _raise(row: Row, search: Search) -> None:
    stream = search()
    await anext(stream)
    with row.leaving(), suppress(ZeroDivisionError):
        await stream.athrow(ZeroDivisionError())


async def _cancel(row: Row, search: Search) -> None:
    with anyio.CancelScope() as scope:
        async with aclosing(search()) as stream:
            await anext(stream)
            begun = time.monotonic()
            scope.cancel()
            async for _ in stream:
                pass
    row.took(time.monotonic() - begun)


async def _cancel_task(row: Row, search: Search) -> None:
    began = asyncio.Event()

    async def consume() -> None:
        async with aclosing(search()) as stream:
            async for _ in stream:
                began.set()
                await asyncio.sleep(0)

    task = asyncio.ensure_future(consume())
    await began.wait()
    with row.leaving():
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _lose(row: Row, search: Search) -> None:
    """Delete a stream without closing it, as a bare `break` does; the event loop's hooks end its rg."""
    stream = search()
    await anext(stream)
    (child,) = _children()
    with row.leaving():
        del stream
        gc.collect()
        while child.is_running():  # noqa: ASYNC110 - no event reports the end
            await asyncio.sleep(0.001)


FAULTS = ("silent()", "endless()", "an_endless_record()", "ignores_signals()", "stopped()", "with_a_grandchild()")


def faults(number: int, api: str) -> Row:
    """Close streams of an rg that does not end by itself."""
    with corpus() as folder, scenario(f"an rg that misbehaves is ended, {api}") as row:
        programs = [
            fake_rg.write(folder / f"fake{place}", f"os.chdir({str(folder)!r}); {fault}")
            for place, fault in enumerate(FAULTS)
        ]
        binaries = [sync.resolve(program) for program in programs]

        async def main() -> None:
            for place in range(number):
                (folder / "grandchild").unlink(missing_ok=True)
                stream = ripwrap.search("x", cwd=folder, rg=binaries[place % len(binaries)])
                await anext(stream)
                with row.leaving():
                    await stream.aclose()
                row.check(_children() == [], f"{FAULTS[place % len(FAULTS)]} is not ended")
                row.tries += 1

        if api == "sync":
            for place in range(number):
                (folder / "grandchild").unlink(missing_ok=True)
                stream = sync.search("x", cwd=folder, rg=binaries[place % len(binaries)])
                next(stream)
                with row.leaving():
                    stream.close()
                row.check(_children() == [], f"{FAULTS[place % len(FAULTS)]} is not ended")
                row.tries += 1
        else:
            anyio.run(main, backend=api)
    return row


def timeouts(number: int, api: str) -> Row:
    """Check that `grep()` returns at its timeout."""
    with corpus() as folder, scenario(f"grep() ends with its timeout, {api}") as row:
        options: dict[str, Any] = {"cwd": folder, "paths": ["dense", "fifo"], "threads": 1}

        def judge(result: ripwrap.GrepResult, taken: float, timeout: float) -> None:
            row.took(taken - timeout)
            row.check(result.stop_reason == "timeout", f"it ended with {result.stop_reason}")
            row.tries += 1

        async def main() -> None:
            async with row.lagging():
                for place in range(number):
                    begun, timeout = time.monotonic(), 0.02 * (place % 5)
                    judge(await ripwrap.grep("needle", timeout=timeout, **options), time.monotonic() - begun, timeout)

        if api == "sync":
            for place in range(number):
                begun, timeout = time.monotonic(), 0.02 * (place % 5)
                judge(sync.grep("needle", timeout=timeout, **options), time.monotonic() - begun, timeout)
        else:
            anyio.run(main, backend=api)
    return row


def threads(number: int, api: str) -> Row:
    """Search in 32 threads at once; each must get its own results."""
    with corpus() as folder, scenario(f"32 threads, {number} calls, {api}") as row:
        lock = threading.Lock()

        def work(place: int) -> None:
            if place % 2:
                found = sync.grep("needle", cwd=folder, glob="small*").total_matches
            else:
                found = len(list(sync.search("needle", cwd=folder, glob="small*")))
            with lock:
                row.check(found == 30, f"{found} matches")
                row.tries += 1

        with ThreadPoolExecutor(32) as pool:
            list(pool.map(work, range(number)))
    return row


# Each scenario with its size in the tests, its size in the stress test, and its APIs.
SCENARIOS: list[tuple[Callable[[int, str], Row], int, int, tuple[str, ...]]] = [
    (concurrent_greps, 16, 500, ("asyncio", "trio")),
    (suspended_streams, 10, 500, ("asyncio", "trio")),
    (many_searches, 15, 10_000, ("asyncio", "trio", "sync")),
    (long_stream, 10_000, 2_000_000, ("asyncio", "trio", "sync")),
    (leaving, 6, 500, ("asyncio", "trio", "sync")),
    (faults, 6, 120, ("asyncio", "trio", "sync")),
    (timeouts, 5, 200, ("asyncio", "trio", "sync")),
    (threads, 32, 2000, ("sync",)),
]
