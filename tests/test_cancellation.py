"""Cancelled at whatever await, an operation leaves nothing behind."""

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
from ripwrap._rg import process
from waiting import until

Operation = Callable[..., Coroutine[Any, Any, int]]
Children = Callable[[], list[psutil.Process]]

MOST = 500  # Awaits; an operation has fewer.


@types.coroutine
def stepped(operation: Coroutine[Any, Any, int], step: Callable[[int], None]) -> Generator[Any, Any, int]:
    """Run a coroutine; whenever it is about to wait, tell `step` for the how many-th time."""
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
        except BaseException as error:  # noqa: BLE001 - it goes where it was meant to go
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
    return len((await ripwrap.tree_text(**options)).splitlines())


async def a_ranking(**options: Any) -> int:
    return len(await ripwrap.rank("needles", **options))


async def a_pattern_that_is_none(**options: Any) -> int:
    with suppress(PatternError):
        async for _ in ripwrap.search("(", **options):
            pass
    return 3


async def a_type_that_is_none(**options: Any) -> int:
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
    a_pattern_that_is_none,
    a_type_that_is_none,
]


@pytest.fixture(params=["polling", "threads"])
def reading(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_POLLS_PIPES", request.param == "polling")


@pytest.fixture
def corpus(plant: Callable[..., Path]) -> Path:
    return plant({"a": "needle\n", "b": "needle\nother\n", "c": "a needle\n"})


async def until_it_is_too_late(attempt: Callable[[int], Awaitable[bool]]) -> int:
    """Attempt for 1, 2, 3, … until that many awaits are not reached."""
    for at in range(1, MOST):
        if not await attempt(at):
            return at
    raise AssertionError(f"more than {MOST} awaits")


async def is_reached(at: int, operation: Coroutine[Any, Any, int]) -> bool:
    """Cancel an operation at its `at`-th await; whether it has so many."""
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
async def test_a_cancelled_scope_leaves_nothing_whichever_await_it_meets(
    operation: Operation, corpus: Path, children: Children
) -> None:
    rg = await ripwrap.binary.resolve()

    async def attempt(at: int) -> bool:
        reached = await is_reached(at, operation(cwd=corpus, rg=rg))
        assert children() == []
        return reached

    assert await until_it_is_too_late(attempt) > 1


@pytest.mark.usefixtures("reading", "leaks_nothing")
@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.__name__)
@pytest.mark.fact(32)
def test_a_cancelled_asyncio_task_leaves_nothing_whichever_await_it_meets_even_if_cancelled_again(
    operation: Operation, times: int, corpus: Path, children: Children
) -> None:
    async def attempt(at: int) -> bool:
        reached = False

        def step(count: int) -> None:
            nonlocal reached
            if at <= count < at + times:
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
        assert await until_it_is_too_late(attempt) > 1

    rg = sync.resolve()
    asyncio.run(main())


@pytest.mark.anyio
@pytest.mark.usefixtures("leaks_nothing")
async def test_a_first_use_leaves_nothing_whichever_await_is_cancelled(
    corpus: Path, tmp_path: Path, children: Children
) -> None:
    """It asks rg for its version in a worker thread, which ends by itself."""
    found = await ripwrap.binary.resolve()

    async def attempt(at: int) -> bool:
        new = tmp_path / f"rg-{at}"
        os.symlink(found.path, new)
        reached = await is_reached(at, a_page(cwd=corpus, rg=new))
        await until(lambda: children() == [])
        return reached

    assert await until_it_is_too_late(attempt) > 1


@pytest.mark.anyio
@pytest.mark.usefixtures("leaks_nothing")
async def test_time_that_is_over_at_any_moment_leaves_nothing(corpus: Path, children: Children) -> None:
    rg = await ripwrap.binary.resolve()
    for microseconds in range(0, 20_000, 250):
        with anyio.move_on_after(microseconds / 1_000_000):
            await everything(cwd=corpus, rg=rg)
        assert children() == []
        found = await ripwrap.grep("needle", cwd=corpus, rg=rg, timeout=microseconds / 1_000_000)
        assert found.total_matches == 3 or found.stop_reason == "timeout"
        assert children() == []
