"""Limit on the number of rg processes that run at once."""

import os
import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import psutil
import pytest

import ripwrap
from ripwrap import RgBinary, UnknownTypeError, limit_processes, sync
from ripwrap._ripgrep import process
from ripwrap._system import concurrency as _concurrency
from ripwrap.testing.behaviors import SUMMARY
from support.waiting import until

Children = Callable[[], list[psutil.Process]]
Plant = Callable[..., Path]

# A stand-in for rg that counts its running processes by their folders.
COUNTING = f"""#!/bin/sh
mkdir running/$$
ls running | wc -l >> most
sleep 0.05
rmdir running/$$
case "$*" in
*--version*) echo ripgrep 15.2.0;;
*--type-list*) echo 'python: *.py';;
*--type=pyton*) echo 'rg: unrecognized file type: pyton' >&2; exit 2;;
*--json*) echo '{SUMMARY}'; exit 1;;
*) exit 1;;
esac
"""
MANY = 12


@pytest.fixture(autouse=True)
def restored_limit(leaks_nothing: None) -> Iterator[None]:
    total = process.SLOTS.total
    yield
    limit_processes(total)


@pytest.fixture
def counting(needs_posix: None, tmp_path: Path, folder: Path) -> RgBinary:
    (folder / "running").mkdir()
    rg = tmp_path / "counting"
    rg.write_text(COUNTING)
    rg.chmod(0o755)
    return RgBinary(str(rg), "argument")


def most(folder: Path) -> int:
    """Return the largest number of processes that ran at once; check that all of them ran."""
    seen = (folder / "most").read_text().split()
    assert len(seen) >= MANY
    return max(map(int, seen))


async def many(call: Callable[[], Any]) -> None:
    async with anyio.create_task_group() as group:
        for _ in range(MANY):
            group.start_soon(call)


def many_threads(call: Callable[[], Any]) -> None:
    with ThreadPoolExecutor(MANY) as pool:
        list(pool.map(lambda _: call(), range(MANY)))


async def an_unknown_type(**options: Any) -> None:
    with pytest.raises(UnknownTypeError, match="Did you mean python"):
        await ripwrap.grep("x", type="pyton", **options)


def an_unknown_type_blocking(**options: Any) -> None:
    with pytest.raises(UnknownTypeError, match="Did you mean python"):
        sync.grep("x", type="pyton", **options)


COLLECTING: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "grep": (partial(ripwrap.grep, "x"), partial(sync.grep, "x")),
    "a version": (partial(ripwrap.grep, "x", replace="y"), partial(sync.grep, "x", replace="y")),
    "an unknown type": (an_unknown_type, an_unknown_type_blocking),
    "tree_text": (ripwrap.tree_text, sync.tree_text),
    "file_types": (lambda cwd, rg: ripwrap.file_types(rg=rg), lambda cwd, rg: sync.file_types(rg=rg)),
}


def test_default_limit_is_the_cpu_count_and_at_least_4() -> None:
    assert process.SLOTS.total == max(4, os.cpu_count() or 0)


@pytest.mark.slow
@pytest.mark.python
@pytest.mark.parametrize("what", COLLECTING)
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_concurrent_tasks_stay_within_the_process_limit(
    counting: RgBinary, folder: Path, what: str, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    limit_processes(3)
    anyio.run(many, partial(COLLECTING[what][0], cwd=folder, rg=counting), backend=backend)
    # rg's version is read before a slot is taken, by a few tasks at a time.
    assert 3 <= most(folder) <= (3 + _concurrency.MAX_THREADS if what == "a version" else 3)


@pytest.mark.slow
@pytest.mark.python
@pytest.mark.parametrize(
    "what", [what for what in COLLECTING if what != "a version"]
)  # the version is read in the caller's own thread
def test_concurrent_threads_share_the_process_limit(
    counting: RgBinary, folder: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    limit_processes(3)
    many_threads(partial(COLLECTING[what][1], cwd=folder, rg=counting))
    assert most(folder) == 3


@pytest.mark.slow
def test_limit_of_1_runs_threads_one_after_another(counting: RgBinary, folder: Path) -> None:
    limit_processes(1)
    many_threads(partial(sync.grep, "x", cwd=folder, rg=counting))
    assert most(folder) == 1


@pytest.mark.slow
def test_raised_limit_applies_to_waiting_threads(counting: RgBinary, folder: Path) -> None:
    limit_processes(1)
    raiser = threading.Timer(0.2, limit_processes, [MANY])
    raiser.start()
    many_threads(partial(sync.grep, "x", cwd=folder, rg=counting))
    raiser.join()
    assert most(folder) > 1


@pytest.mark.slow
@pytest.mark.python
@pytest.mark.anyio
async def test_raised_limit_applies_to_waiting_tasks(counting: RgBinary, folder: Path) -> None:
    limit_processes(1)
    async with anyio.create_task_group() as group:
        for _ in range(MANY):
            group.start_soon(partial(ripwrap.grep, "x", cwd=folder, rg=counting))
        await until((folder / "most").exists)
        limit_processes(MANY)
    assert most(folder) > 1


@pytest.mark.parametrize("wrong", [0, -1])
def test_limit_below_1_is_rejected(wrong: int) -> None:
    with pytest.raises(ValueError, match="number must be"):
        limit_processes(wrong)


@pytest.mark.parametrize("wrong", ["4", 1.5, True, None])
def test_limit_that_is_not_an_int_is_rejected(wrong: Any) -> None:
    with pytest.raises(TypeError, match="number must be an int"):
        limit_processes(wrong)


@pytest.mark.slow
@pytest.mark.anyio
async def test_async_stream_takes_no_slot_so_nested_calls_do_not_deadlock(plant: Plant) -> None:
    limit_processes(1)
    folder = plant({"a": "needle\nneedle\n", "b": "needle\n"})
    with anyio.fail_after(20):
        async with (
            aclosing(ripwrap.search("needle", cwd=folder)) as outer,
            aclosing(ripwrap.tree(cwd=folder)) as entries,
        ):
            await anext(entries)
            async for match in outer:
                assert (await ripwrap.grep("needle", cwd=folder, paths=match.path or "")).total_matches
                assert "py" in await ripwrap.file_types()
                assert str(await ripwrap.tree_text(cwd=folder)) == "a\nb"
                assert [path async for path in ripwrap.files(cwd=folder, sort="path")] == ["a", "b"]


def test_nested_call_in_a_thread_that_holds_a_slot_takes_no_second_one(plant: Plant) -> None:
    """Call like a signal handler or log handler, which runs in the middle of another call of the same thread."""
    limit_processes(1)
    folder = plant({"a": "needle\n"})
    with process.SLOTS.held(None):
        assert sync.grep("needle", cwd=folder).total_matches == 1
        assert process.SLOTS._running == 1
    assert process.SLOTS._running == 0


@pytest.mark.slow
def test_blocking_stream_takes_no_slot_so_nested_calls_do_not_deadlock(plant: Plant) -> None:
    limit_processes(1)
    folder = plant({"a": "needle\nneedle\n", "b": "needle\n"})
    for match in sync.search("needle", cwd=folder, timeout=30):
        assert sync.grep("needle", cwd=folder, paths=match.path or "").total_matches
        assert "py" in sync.file_types()
        for _ in sync.tree(cwd=folder):
            assert str(sync.tree_text(cwd=folder)) == "a\nb"


@pytest.mark.slow
@pytest.mark.anyio
async def test_wait_for_a_slot_can_be_cancelled_and_does_not_use_the_timeout(
    plant: Plant, stand_in: Callable[..., Path], children: Children
) -> None:
    limit_processes(1)
    folder = plant({"a": "needle\n"})
    late: list[ripwrap.GrepResult] = []
    hanging = await ripwrap.binary.resolve(stand_in("mute()"))

    async def wait() -> None:
        late.append(await ripwrap.grep("needle", cwd=folder, timeout=10))

    async with anyio.create_task_group() as group:
        group.start_soon(lambda: ripwrap.grep("x", cwd=folder, rg=hanging, timeout=None))
        await until(lambda: len(children()) == 1)
        with anyio.move_on_after(0.2) as scope:
            await wait()
        assert scope.cancelled_caught
        assert late == []
        assert len(children()) == 1, "the one that runs"
        group.cancel_scope.cancel()
    await wait()
    assert [result.total_matches for result in late] == [1], "nobody has kept the turn"


@pytest.mark.slow
@pytest.mark.anyio
async def test_cancelled_wait_for_a_slot_takes_no_slot() -> None:
    limit_processes(1)
    chance = random.Random(1)
    for _ in range(50):
        scopes: list[anyio.CancelScope] = []
        taken: list[bool] = []

        async def hold_slot(
            cancellable: bool, scopes: list[anyio.CancelScope] = scopes, taken: list[bool] = taken
        ) -> None:
            with anyio.CancelScope() as scope:
                if cancellable:
                    scopes.append(scope)
                async with process.slot():
                    taken.append(cancellable)
                    await anyio.lowlevel.checkpoint()
                    for some in chance.sample(scopes, min(3, len(scopes))):
                        some.cancel()

        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                for number in range(20):
                    group.start_soon(hold_slot, number % 2 == 0)
        assert taken.count(False) == 10, "all that were not cancelled have had theirs"


@pytest.mark.slow  # a call of four seconds
def test_blocking_wait_for_a_slot_uses_the_timeout(plant: Plant, stand_in: Callable[..., Path]) -> None:
    limit_processes(1)
    folder = plant({"a": "needle\n"})
    slow = threading.Thread(target=sync.grep, args=["x"], kwargs={"cwd": folder, "rg": stand_in("slow(200)")})
    slow.start()
    anyio.run(until, lambda: process.SLOTS._running == 1)
    result = sync.grep("needle", cwd=folder, timeout=0.5)
    assert (result.total_matches, result.stop_reason) == (0, "timeout")
    assert sync.grep("needle", cwd=folder, timeout=60).total_matches == 1
    slow.join()
