"""Whatever rg does, its consumer gets what it said, one clear error, and nothing is left (design, 6).

Each fault of `fake_rg` meets both ways to read (a stream, a collected answer) in each colour.
"""

import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing, closing, suppress
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

import fake_rg
import ripwrap
from ripwrap import DecodeError, RipwrapError, SearchError, sync
from ripwrap._rg.stderr import MAX_STDERR

StandIn = Callable[..., Path]
Children = Callable[[], list[psutil.Process]]

COLOURS = ["asyncio", "trio", "sync"]

# The fault, how many matches a stream gives, and what it raises then; grep() gives as many, or raises the same.
ENDING: dict[str, tuple[int, type[Exception] | None, str]] = {
    "slow()": (5, None, ""),
    "a_byte_at_a_time()": (2, None, ""),
    "noisy()": (1, None, ""),
    "killed()": (1, SearchError, "killed by signal 11"),
    "killed(9)": (1, SearchError, "killed by signal 9"),
    "exits_halfway(0)": (1, SearchError, "exit code 0"),
    "exits_halfway(1)": (1, SearchError, "exit code 1"),
    "exits_halfway(2)": (1, SearchError, "exit code 2"),
    "exits_halfway(101)": (1, SearchError, "exit code 101"),
    "half_a_record()": (1, RipwrapError, "not a message|exit code 0"),
    "a_record_too_long()": (2, None, ""),
    "junk(b'Segmentation fault')": (1, DecodeError, "not a message"),
    "junk(bytes(range(11, 256)))": (1, DecodeError, "not a message"),
    "junk(b'[' * 100_000)": (1, DecodeError, "not a message"),
    "junk(MATCH.replace('1', '1.5').encode())": (1, DecodeError, "malformed"),
    "no_newline_at_the_end()": (1, None, ""),
    "lingers(BEGIN, MATCH, SUMMARY)": (1, None, ""),
    "lingers(BEGIN, MATCH)": (1, SearchError, "did not exit"),
    "with_a_grandchild()": (1, None, ""),
    "with_a_grandchild(BEGIN, MATCH, MATCH)": (3, None, ""),
    "leaves_a_grandchild_behind()": (1, None, ""),
}
# Those that do not end by themselves, and whether something comes before.
ENDLESS = {
    "an_endless_record()": True,
    "endless()": True,
    "silent()": True,
    "mute()": False,
    "ignores_signals()": True,
    "stopped()": True,
}

IDLE = ("AnyIO worker", "Trio thread")  # The loops keep their workers for a while.


def until(condition: Callable[[], bool]) -> None:
    """Wait for what a busy machine may need a while for."""
    give_up = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.001)


def alive(pid: int) -> bool:
    """Whether a process still runs: a zombie only waits to be reaped, by whoever inherits it."""
    with suppress(psutil.NoSuchProcess):
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    return False


@pytest.fixture(autouse=True)
def leaves_nothing(leaks_nothing: None, folder: Path) -> Iterator[None]:
    """No child, no descriptor, no thread, and no process of a process."""
    threads = set(threading.enumerate())
    yield
    left = set(threading.enumerate()) - threads
    assert {thread.name for thread in left if not thread.name.startswith(IDLE)} == set()
    if (grandchild := folder / "grandchild").exists():
        until(lambda: not alive(int(grandchild.read_text())))


def stream(colour: str, consume: Callable[[ripwrap.Match], object], rg: Path, cwd: Path) -> None:

    async def take() -> None:
        async with aclosing(ripwrap.search("x", rg=rg, cwd=cwd)) as matches:
            async for match in matches:
                consume(match)

    if colour == "sync":
        for match in sync.search("x", rg=rg, cwd=cwd):
            consume(match)
    else:
        anyio.run(take, backend=colour)


def collect(colour: str, rg: Path, cwd: Path, **options: Any) -> ripwrap.GrepResult:
    async def take() -> ripwrap.GrepResult:
        return await ripwrap.grep("x", rg=rg, cwd=cwd, **options)

    return sync.grep("x", rg=rg, cwd=cwd, **options) if colour == "sync" else anyio.run(take, backend=colour)


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("fault", ENDING)
class TestAnRgThatEnds:
    def test_gives_a_stream_all_that_it_said(self, stand_in: StandIn, folder: Path, fault: str, colour: str) -> None:
        matches, error, says = ENDING[fault]
        seen: list[Any] = []
        if error is None:
            stream(colour, seen.append, stand_in(fault), folder)
        else:
            with pytest.raises(error, match=says):
                stream(colour, seen.append, stand_in(fault), folder)
        assert [match.lines for match in seen] == ["x\n"] * matches

    def test_gives_a_whole_answer_or_none(self, stand_in: StandIn, folder: Path, fault: str, colour: str) -> None:
        matches, error, says = ENDING[fault]
        if error is None:
            assert collect(colour, stand_in(fault), folder).total_matches == matches
        else:
            with pytest.raises(error, match=says):
                collect(colour, stand_in(fault), folder)


@pytest.mark.fact(26)
@pytest.mark.parametrize("colour", COLOURS)
def test_a_torrent_on_stderr_is_kept_up_to_a_bound(stand_in: StandIn, folder: Path, colour: str) -> None:
    errors = collect(colour, stand_in("noisy()"), folder).errors
    assert (errors[0].path, errors[0].kind) == ("d", "denied")
    assert sum(len(fake_rg.PERMISSION_DENIED) for error in errors if error.path) <= MAX_STDERR
    assert errors[-1].message == f"more errors are left out: rg wrote over {MAX_STDERR} bytes of them"


@pytest.mark.fact(11)
@pytest.mark.parametrize("colour", COLOURS)
def test_a_record_that_is_too_long_is_counted(stand_in: StandIn, folder: Path, colour: str) -> None:
    result = collect(colour, stand_in("a_record_too_long()"), folder)
    assert (result.total_matches, result.dropped_records, result.exact) == (2, 1, False)


@pytest.mark.anyio
@pytest.mark.parametrize("fault", ENDLESS)
class TestAnRgThatDoesNotEnd:
    async def test_is_ended_with_the_time_of_a_collected_answer(
        self, stand_in: StandIn, folder: Path, fault: str
    ) -> None:
        result = await ripwrap.grep("x", rg=stand_in(fault), cwd=folder, timeout=0.3)
        assert (result.stop_reason, result.exact, result.truncated) == ("timeout", False, True)

    async def test_is_ended_with_its_consumer(
        self, stand_in: StandIn, folder: Path, fault: str, children: Children
    ) -> None:
        rg = await ripwrap.binary.resolve(stand_in(fault))
        async with anyio.create_task_group() as group:
            group.start_soon(consume_until_cancelled, rg, folder, group.cancel_scope if ENDLESS[fault] else None)
            if not ENDLESS[fault]:
                await started(children)
                group.cancel_scope.cancel()

    async def test_is_ended_by_a_cancellation_of_what_waits_for_it(
        self, stand_in: StandIn, folder: Path, fault: str, children: Children
    ) -> None:
        rg = await ripwrap.binary.resolve(stand_in(fault))
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: ripwrap.grep("x", rg=rg, cwd=folder, timeout=None))
            await started(children)
            group.cancel_scope.cancel()


async def started(children: Children) -> None:
    """Wait until there is a child."""
    with anyio.fail_after(10):
        while not children():  # noqa: ASYNC110 - nothing tells us when
            await anyio.sleep(0.001)


async def consume_until_cancelled(rg: ripwrap.RgBinary, cwd: Path, scope: anyio.CancelScope | None) -> None:
    """Cancel the scope, if there is one, at the first match, and go on."""
    async with aclosing(ripwrap.search("x", rg=rg, cwd=cwd)) as matches:
        async for _ in matches:
            if scope:
                scope.cancel()
        raise AssertionError("rg has ended by itself")


@pytest.mark.parametrize("fault", ENDLESS)
class TestAnRgThatDoesNotEndBlocking:
    def test_is_ended_with_its_time(self, stand_in: StandIn, folder: Path, fault: str) -> None:
        with pytest.raises(TimeoutError, match=r"timeout=0.3 seconds"):
            for _ in sync.search("x", rg=stand_in(fault), cwd=folder, timeout=0.3):
                pass
        assert sync.grep("x", rg=stand_in(fault), cwd=folder, timeout=0.3).stop_reason == "timeout"

    def test_is_ended_with_its_generator(self, stand_in: StandIn, folder: Path, fault: str) -> None:
        if ENDLESS[fault]:  # or there is nothing to wait for
            with closing(sync.search("x", rg=stand_in(fault), cwd=folder)) as matches:
                assert next(matches).lines == "x\n"
            matches = sync.search("x", rg=stand_in(fault), cwd=folder)
            next(matches)
            del matches
            gc.collect()


@pytest.mark.parametrize("colour", COLOURS)
def test_a_stranger_who_holds_the_pipe_is_not_waited_for(stand_in: StandIn, folder: Path, colour: str) -> None:
    try:
        assert collect(colour, stand_in("with_a_daemon()"), folder).total_matches == 1
    finally:
        os.kill(int((folder / "grandchild").read_text()), signal.SIGKILL)


@pytest.mark.parametrize("colour", COLOURS)
def test_what_came_before_the_time_was_over_is_kept(stand_in: StandIn, folder: Path, colour: str) -> None:
    result = collect(colour, stand_in("silent()"), folder, timeout=3)
    assert (result.total_matches, result.stop_reason) == (1, "timeout")


@pytest.mark.parametrize("colour", COLOURS)
def test_an_exception_of_the_consumer_ends_rg(stand_in: StandIn, folder: Path, colour: str) -> None:
    def consume(match: ripwrap.Match) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        stream(colour, consume, stand_in("endless()"), folder)


@pytest.mark.anyio
async def test_a_program_that_does_not_say_its_version_is_ended_when_nobody_waits_for_it_any_more(
    folder: Path, tmp_path: Path, children: Children
) -> None:
    """Asking for it is what a first use does, in a worker thread."""
    rg = fake_rg.write(tmp_path / "hangs", "mute()", says="")
    rg.write_text(rg.read_text().replace("'--version' in sys.argv", "False"))
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: ripwrap.grep("x", rg=rg, cwd=folder))
        await started(children)
        group.cancel_scope.cancel()
    until(lambda: children() == [])  # the thread is not waited for
