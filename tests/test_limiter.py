"""How many rg run at a time."""

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
from fake_rg import SUMMARY
from ripwrap import RgBinary, UnknownTypeError, limit_processes, sync
from ripwrap._rg import limiter
from ripwrap.binary import resolver
from waiting import until

Children = Callable[[], list[psutil.Process]]
Plant = Callable[..., Path]

# How many run is told by how many folders there are.
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
MANY = 24


@pytest.fixture(autouse=True)
def as_before(leaks_nothing: None) -> Iterator[None]:
    total = limiter._TURNS.total
    yield
    limit_processes(total)


@pytest.fixture
def counting(tmp_path: Path, folder: Path) -> RgBinary:
    (folder / "running").mkdir()
    rg = tmp_path / "counting"
    rg.write_text(COUNTING)
    rg.chmod(0o755)
    return RgBinary(str(rg), "argument")


def most(folder: Path) -> int:
    """How many ran side by side; each of the many is there."""
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


def test_the_default_is_the_number_of_cpus_but_at_least_4() -> None:
    assert limiter._TURNS.total == max(4, os.cpu_count() or 0)


@pytest.mark.parametrize("what", COLLECTING)
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_no_more_run_at_a_time_than_may(
    counting: RgBinary, folder: Path, what: str, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    limit_processes(3)
    anyio.run(many, partial(COLLECTING[what][0], cwd=folder, rg=counting), backend=backend)
    # A version is asked for before the turn, by a few tasks at a time.
    assert 3 <= most(folder) <= (3 + resolver._THREADS if what == "a version" else 3)


@pytest.mark.parametrize(
    "what", [what for what in COLLECTING if what != "a version"]
)  # that is asked for in the caller's own thread
def test_threads_count_together(counting: RgBinary, folder: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    limit_processes(3)
    many_threads(partial(COLLECTING[what][1], cwd=folder, rg=counting))
    assert most(folder) == 3


def test_one_at_a_time_is_one_after_another(counting: RgBinary, folder: Path) -> None:
    limit_processes(1)
    many_threads(partial(sync.grep, "x", cwd=folder, rg=counting))
    assert most(folder) == 1


def test_the_number_may_grow_while_threads_wait(counting: RgBinary, folder: Path) -> None:
    limit_processes(1)
    raiser = threading.Timer(0.2, limit_processes, [MANY])
    raiser.start()
    many_threads(partial(sync.grep, "x", cwd=folder, rg=counting))
    raiser.join()
    assert most(folder) > 1


@pytest.mark.anyio
async def test_the_number_may_grow_while_tasks_wait(counting: RgBinary, folder: Path) -> None:
    limit_processes(1)
    async with anyio.create_task_group() as group:
        for _ in range(MANY):
            group.start_soon(partial(ripwrap.grep, "x", cwd=folder, rg=counting))
        await until((folder / "most").exists)
        limit_processes(MANY)
    assert most(folder) > 1


@pytest.mark.parametrize("wrong", [0, -1])
def test_less_than_one_is_refused(wrong: int) -> None:
    with pytest.raises(ValueError, match="number should be"):
        limit_processes(wrong)


@pytest.mark.parametrize("wrong", ["4", 1.5, True, None])
def test_what_is_no_whole_number_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="number should be an int"):
        limit_processes(wrong)


@pytest.mark.anyio
async def test_a_stream_does_not_count_so_that_what_is_nested_never_waits_for_itself(plant: Plant) -> None:
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
                assert await ripwrap.tree_text(cwd=folder) == "a\nb"
                assert [path async for path in ripwrap.files(cwd=folder, sort="path")] == ["a", "b"]


def test_a_thread_that_has_a_turn_needs_no_other(plant: Plant) -> None:
    """As a handler of signals or of logs, which runs in the midst of a call."""
    limit_processes(1)
    folder = plant({"a": "needle\n"})
    with limiter.turn_blocking():
        assert sync.grep("needle", cwd=folder).total_matches == 1
        assert limiter._TURNS._running == 1
    assert limiter._TURNS._running == 0


def test_nor_in_one_thread(plant: Plant) -> None:
    limit_processes(1)
    folder = plant({"a": "needle\nneedle\n", "b": "needle\n"})
    for match in sync.search("needle", cwd=folder, timeout=30):
        assert sync.grep("needle", cwd=folder, paths=match.path or "").total_matches
        assert "py" in sync.file_types()
        for _ in sync.tree(cwd=folder):
            assert sync.tree_text(cwd=folder) == "a\nb"


@pytest.mark.anyio
async def test_waiting_takes_nothing_off_the_time_and_can_be_cancelled(
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


@pytest.mark.anyio
async def test_a_wait_that_is_cancelled_takes_nobodys_turn() -> None:
    limit_processes(1)
    chance = random.Random(1)
    for _ in range(50):
        scopes: list[anyio.CancelScope] = []
        taken: list[bool] = []

        async def take_turns(
            cancellable: bool, scopes: list[anyio.CancelScope] = scopes, taken: list[bool] = taken
        ) -> None:
            with anyio.CancelScope() as scope:
                if cancellable:
                    scopes.append(scope)
                async with limiter.turn():
                    taken.append(cancellable)
                    await anyio.lowlevel.checkpoint()
                    for some in chance.sample(scopes, min(3, len(scopes))):
                        some.cancel()

        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                for place in range(20):
                    group.start_soon(take_turns, place % 2 == 0)
        assert taken.count(False) == 10, "all that were not cancelled have had theirs"


def test_a_wait_is_none_of_the_time(plant: Plant, stand_in: Callable[..., Path]) -> None:
    limit_processes(1)
    folder = plant({"a": "needle\n"})
    slow = threading.Thread(target=sync.grep, args=["x"], kwargs={"cwd": folder, "rg": stand_in("slow(200)")})
    slow.start()
    anyio.run(until, lambda: limiter._TURNS._running == 1)
    result = sync.grep("needle", cwd=folder, timeout=3)  # the other takes four seconds
    slow.join()
    assert (result.total_matches, result.stop_reason) == (1, "end")
