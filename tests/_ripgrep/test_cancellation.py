"""Cancellation at every await: an operation leaves no process, descriptor or thread behind."""

import asyncio
import functools
import os
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

import ripwrap
from ripwrap import PatternError, UnknownTypeError, sync
from support.effort import times

pytestmark = [pytest.mark.slow, pytest.mark.python]

Operation = Callable[..., Coroutine[Any, Any, int]]
Children = Callable[[], list[psutil.Process]]

MOST = 500  # more awaits than any operation has


@types.coroutine
def stepped(operation: Coroutine[Any, Any, int], step: Callable[[int], None]) -> Generator[Any, Any, int]:
    """Run a coroutine, and before its n-th await call `step(n)`."""
    resume: Callable[[], Any] = functools.partial(operation.send, None)
    count = 0
    while True:
        try:
            awaited = resume()
        except StopIteration as end:
            return int(end.value)
        count += 1
        step(count)
        try:
            sent = yield awaited
        except BaseException as error:  # noqa: BLE001 - it is thrown into the operation
            resume = functools.partial(operation.throw, error)
        else:
            resume = functools.partial(operation.send, sent)


async def everything(**options: Any) -> int:
    async with aclosing(ripwrap.search("needle", **options)) as matches:
        return len([match async for match in matches])


async def a_first_match(**options: Any) -> int:
    async with aclosing(ripwrap.search("needle", **options)) as matches:
        async for _ in matches:
            break
    return 3


async def a_limit(**options: Any) -> int:
    return 2 + len([path async for path in ripwrap.files_with_matches("needle", limit=1, **options)])


async def a_page(**options: Any) -> int:
    return (await ripwrap.grep("needle", **options)).total_matches


async def an_explanation(**options: Any) -> int:
    result = await ripwrap.grep("NEEDLE", explain=True, **options)
    return 3 if "ignore_case=True" in result.message else 0


async def a_tree(**options: Any) -> int:
    return len((await ripwrap.tree_text(**options)).entries)


async def a_ranking(**options: Any) -> int:
    return len(await ripwrap.rank("needles", **options))


async def an_invalid_pattern(**options: Any) -> int:
    with suppress(PatternError):
        async for _ in ripwrap.search("(", **options):
            pass
    return 3


async def an_unknown_type(**options: Any) -> int:
    with suppress(UnknownTypeError):
        await ripwrap.grep("needle", type="pyton", **options)
    return 3


OPERATIONS: list[Operation] = [
    everything,
    a_first_match,
    a_limit,
    a_page,
    an_explanation,
    a_tree,
    a_ranking,
    an_invalid_pattern,
    an_unknown_type,
]


@pytest.fixture
def corpus(plant: Callable[..., Path]) -> Path:
    return plant({"a": "needle\n", "b": "needle\nother\n", "c": "a needle\n"})


async def attempt_every_await(attempt: Callable[[int], Awaitable[bool]]) -> int:
    """Call `attempt` with 1, 2, 3, … until the operation ends before that await; return its number."""
    for at in range(1, MOST):
        if not await attempt(at):
            return at
    raise AssertionError(f"more than {MOST} awaits")


async def cancel_at_await(at: int, operation: Coroutine[Any, Any, int]) -> bool:
    """Cancel an operation at its `at`-th await; return False if it ends before."""
    reached = False

    def step(count: int) -> None:
        nonlocal reached
        if count == at:
            reached = True
            scope.cancel()

    with anyio.CancelScope() as scope:
        assert await stepped(operation, step) == 3
    return reached


@pytest.mark.anyio
@pytest.mark.usefixtures("reading", "leaks_nothing")
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.__name__)
@pytest.mark.fact(32)
async def test_scope_cancelled_at_any_await_leaves_nothing(
    operation: Operation, corpus: Path, children: Children
) -> None:
    rg = await ripwrap.binary.resolve()

    async def attempt(at: int) -> bool:
        reached = await cancel_at_await(at, operation(cwd=corpus, rg=rg))
        assert children() == []
        return reached

    assert await attempt_every_await(attempt) > 1


@pytest.mark.usefixtures("reading", "leaks_nothing")
@pytest.mark.parametrize("again", [1, 3])
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.__name__)
@pytest.mark.fact(32)
def test_asyncio_task_cancelled_repeatedly_at_any_await_leaves_nothing(
    operation: Operation, again: int, corpus: Path, children: Children
) -> None:
    async def attempt(at: int) -> bool:
        reached = False

        def step(count: int) -> None:
            nonlocal reached
            if at <= count < at + again:
                reached = True
                task.cancel()

        async def operate() -> int:
            return await stepped(operation(cwd=corpus, rg=rg), step)

        task = asyncio.ensure_future(operate())
        with suppress(asyncio.CancelledError):
            assert await task == 3
        assert children() == []
        return reached

    async def main() -> None:
        assert await attempt_every_await(attempt) > 1

    rg = sync.resolve()
    asyncio.run(main())


@pytest.mark.posix
@pytest.mark.anyio
@pytest.mark.usefixtures("leaks_nothing")
async def test_first_use_cancelled_at_any_await_leaves_no_process(
    corpus: Path, tmp_path: Path, children: Children
) -> None:
    """Cancel while a worker thread reads rg's version; that thread ends by itself."""
    found = await ripwrap.binary.resolve()

    async def attempt(at: int) -> bool:
        new = tmp_path / f"rg-{at}"
        os.symlink(found.path, new)
        reached = await cancel_at_await(at, a_page(cwd=corpus, rg=new))
        assert children() == []
        return reached

    assert await attempt_every_await(attempt) > 1


@pytest.mark.anyio
@pytest.mark.usefixtures("leaks_nothing")
async def test_timeout_at_any_moment_leaves_nothing(corpus: Path, children: Children) -> None:
    rg = await ripwrap.binary.resolve()
    for microseconds in range(0, 20_000, times(800, 250)):
        with anyio.move_on_after(microseconds / 1_000_000):
            await everything(cwd=corpus, rg=rg)
        assert children() == []
        found = await ripwrap.grep("needle", cwd=corpus, rg=rg, timeout=microseconds / 1_000_000)
        assert found.total_matches == 3 or found.stop_reason == "timeout"
        assert children() == []
