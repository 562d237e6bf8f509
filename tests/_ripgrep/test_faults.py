"""Faults of rg: a consumer gets rg's output, then the end or one clear error, and nothing is left behind.

Each fault of `fake_rg` meets streams and collected results, async and blocking.
"""

import asyncio
import gc
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, closing, nullcontext, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import psutil
import pytest

import ripwrap
from ripwrap import BinaryError, DecodeError, PatternError, RipwrapError, SearchError, sync
from ripwrap._ripgrep import process
from ripwrap._ripgrep.exit_status import MAX_STDERR
from ripwrap.binary import probe
from ripwrap.testing.behaviors import MATCH, PERMISSION_DENIED
from support import fake_rg
from support.waiting import TIMEOUTS, counting_checkpoints, until, until_blocking

pytestmark = pytest.mark.slow

StandIn = Callable[..., Path]
Children = Callable[[], list[psutil.Process]]

APIS = ["asyncio", "trio", "sync"]

NOISY = "pour(PERMISSION_DENIED * 1000, 100, 2); say(BEGIN, MATCH, SUMMARY); sys.exit(2)"

# For each fault: the number of matches that a stream yields, and the error after them, if any. grep() counts as many
# matches or raises the same error.
ENDING: dict[str, tuple[int, type[Exception] | None, str]] = {
    "slow()": (5, None, ""),
    "a_byte_at_a_time()": (2, None, ""),
    NOISY: (1, None, ""),
    "killed()": (1, SearchError, "killed by signal 11"),
    "fails(0, '')": (1, SearchError, "exit code 0"),
    "fails(2, '')": (1, SearchError, "exit code 2"),
    "fails(101, '')": (1, SearchError, "exit code 101"),
    "truncated()": (1, RipwrapError, "not a message|exit code 0"),
    "a_record_too_long()": (2, None, ""),
    "garbage(b'Segmentation fault')": (1, DecodeError, "not a message"),
    "garbage(bytes(range(11, 256)))": (1, DecodeError, "not a message"),
    "garbage(b'[' * 100_000)": (1, DecodeError, "not a message"),
    "garbage(MATCH.replace('1', '1.5').encode())": (1, DecodeError, "malformed"),
    "no_newline_at_the_end()": (1, None, ""),
    "lingers(BEGIN, MATCH, SUMMARY)": (1, None, ""),
    "lingers(BEGIN, MATCH)": (1, SearchError, "did not exit"),
    "with_a_grandchild()": (1, None, ""),
    "with_a_grandchild(BEGIN, MATCH, MATCH)": (3, None, ""),
    "leaves_a_grandchild_behind()": (1, None, ""),
}
# Faults after which rg does not end by itself; True if it writes a match first.
ENDLESS = {
    "an_endless_record()": True,
    "endless()": True,
    "silent()": True,
    "mute()": False,
    "ignores_signals()": True,
    "stopped()": True,
}

IDLE = ("AnyIO worker", "Trio thread")  # event loops keep idle worker threads for a while
OURS = str(Path(ripwrap.__file__).parent)


def busy(but: Collection[threading.Thread]) -> list[str]:
    """Return the stack frames in ripwrap's code of all other threads, except some."""
    ignored = {threading.get_ident(), *(thread.ident for thread in but if thread.is_alive())}
    others = (frame for thread, frame in sys._current_frames().items() if thread not in ignored)
    stacks = (traceback.extract_stack(frame) for frame in others)
    return [str(frame) for stack in stacks for frame in stack if frame.filename.startswith(OURS)]


def alive(pid: int) -> bool:
    """Return True if a process still runs; a zombie does not."""
    with suppress(psutil.NoSuchProcess):
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    return False


@pytest.fixture(autouse=True)
def leaves_nothing(leaks_nothing: None, folder: Path) -> Iterator[None]:
    """Check that no child, grandchild, descriptor or thread is left."""
    threads = set(threading.enumerate())
    yield
    until_blocking(lambda: busy(but=threads) == [])  # older threads belong to other tests
    left = set(threading.enumerate()) - threads
    assert {thread.name for thread in left if not thread.name.startswith(IDLE)} == set()
    if (grandchild := folder / "grandchild").exists():
        until_blocking(lambda: not alive(int(grandchild.read_text())))


def stream(api: str, consume: Callable[[ripwrap.Match], object], rg: Path, cwd: Path) -> None:

    async def take() -> None:
        async with aclosing(ripwrap.search("x", rg=rg, cwd=cwd)) as matches:
            async for match in matches:
                consume(match)

    if api == "sync":
        for match in sync.search("x", rg=rg, cwd=cwd):
            consume(match)
    else:
        anyio.run(take, backend=api)


def collect(api: str, rg: Path, cwd: Path, **options: Any) -> ripwrap.GrepResult:
    async def take() -> ripwrap.GrepResult:
        return await ripwrap.grep("x", rg=rg, cwd=cwd, **options)

    return sync.grep("x", rg=rg, cwd=cwd, **options) if api == "sync" else anyio.run(take, backend=api)


@pytest.mark.parametrize("fault", ENDING)
class TestFaultThatEnds:
    @pytest.mark.parametrize("api", APIS)
    def test_stream_yields_all_matches_before_the_end_or_error(
        self, stand_in: StandIn, folder: Path, fault: str, api: str
    ) -> None:
        matches, error, says = ENDING[fault]
        seen: list[Any] = []
        if error is None:
            stream(api, seen.append, stand_in(fault), folder)
        else:
            with pytest.raises(error, match=says):
                stream(api, seen.append, stand_in(fault), folder)
        assert [match.lines for match in seen] == ["x\n"] * matches

    def test_collected_result_is_complete_or_raises(self, stand_in: StandIn, folder: Path, fault: str) -> None:
        matches, error, says = ENDING[fault]
        if error is None:
            assert collect("asyncio", stand_in(fault), folder).total_matches == matches
        else:
            with pytest.raises(error, match=says):
                collect("asyncio", stand_in(fault), folder)


@pytest.mark.fact(26)
@pytest.mark.parametrize("api", APIS)
def test_stderr_is_kept_up_to_a_limit(stand_in: StandIn, folder: Path, api: str) -> None:
    fault = "noisy()" if api == "sync" else NOISY  # 100 MB, or 4 MB
    assert len(PERMISSION_DENIED) * 100_000 > 2 * MAX_STDERR
    errors = collect(api, stand_in(fault), folder).errors
    assert (errors[0].path, errors[0].kind) == ("d", "denied")
    assert sum(len(PERMISSION_DENIED) for error in errors if error.path) <= MAX_STDERR
    assert errors[-1].message == f"further errors are not shown: rg wrote more than {MAX_STDERR} bytes of errors"


@pytest.mark.fact(11)
@pytest.mark.parametrize("api", APIS)
def test_record_that_is_too_long_is_dropped_and_counted(stand_in: StandIn, folder: Path, api: str) -> None:
    result = collect(api, stand_in("a_record_too_long()"), folder)
    assert (result.total_matches, result.dropped_records, result.exact) == (2, 1, False)


@pytest.mark.python
@pytest.mark.anyio
@pytest.mark.parametrize("fault", ENDLESS)
class TestFaultThatNeverEnds:
    async def test_timeout_of_a_collected_result_ends_rg(self, stand_in: StandIn, folder: Path, fault: str) -> None:
        result = await ripwrap.grep("x", rg=stand_in(fault), cwd=folder, timeout=0.3)
        assert (result.stop_reason, result.exact, result.truncated) == ("timeout", False, True)

    async def test_cancelling_a_stream_ends_rg(
        self, stand_in: StandIn, folder: Path, fault: str, children: Children
    ) -> None:
        rg = await ripwrap.binary.resolve(stand_in(fault))
        async with anyio.create_task_group() as group:
            group.start_soon(consume_until_cancelled, rg, folder, group.cancel_scope if ENDLESS[fault] else None)
            if not ENDLESS[fault]:
                await until(children)
                group.cancel_scope.cancel()
        assert children() == []

    async def test_cancelling_a_collected_result_ends_rg(
        self, stand_in: StandIn, folder: Path, fault: str, children: Children
    ) -> None:
        rg = await ripwrap.binary.resolve(stand_in(fault))
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: ripwrap.grep("x", rg=rg, cwd=folder, timeout=None))
            await until(children)
            group.cancel_scope.cancel()
        assert children() == []


async def consume_until_cancelled(rg: ripwrap.RgBinary, cwd: Path, scope: anyio.CancelScope | None) -> None:
    """Consume matches; cancel the scope, if one is given, at the first match."""
    async with aclosing(ripwrap.search("x", rg=rg, cwd=cwd)) as matches:
        async for _ in matches:
            if scope:
                scope.cancel()
        raise AssertionError("rg has ended by itself")


@pytest.mark.python
class TestFaultThatNeverEndsBlocking:
    @pytest.mark.parametrize("fault", ENDLESS)
    def test_timeout_of_a_stream_or_result_ends_rg(self, stand_in: StandIn, folder: Path, fault: str) -> None:
        with pytest.raises(TimeoutError, match=r"timeout=0.3 seconds"):
            for _ in sync.search("x", rg=stand_in(fault), cwd=folder, timeout=0.3):
                pass
        assert sync.grep("x", rg=stand_in(fault), cwd=folder, timeout=0.3).stop_reason == "timeout"

    @pytest.mark.parametrize("fault", [fault for fault, says_something in ENDLESS.items() if says_something])
    def test_closing_or_deleting_the_generator_ends_rg(self, stand_in: StandIn, folder: Path, fault: str) -> None:
        with closing(sync.search("x", rg=stand_in(fault), cwd=folder)) as matches:
            assert next(matches).lines == "x\n"
        matches = sync.search("x", rg=stand_in(fault), cwd=folder)
        next(matches)
        del matches
        gc.collect()


# The same for listings, which have no summary: the number of paths, and the error that follows.
LISTINGS: dict[str, tuple[int, type[Exception] | None, str]] = {
    "list_files(2)": (2, None, ""),
    "list_files(2); sys.exit(1)": (2, SearchError, "exit code 1"),
    "list_files(1); os.write(1, b'half')": (1, DecodeError, "incomplete"),
    "list_files(1); os.kill(os.getpid(), 11)": (1, SearchError, "killed by signal 11"),
    "list_files(1); sys.exit(2)": (1, SearchError, "exit code 2"),
    "list_files(1); os.write(2, b'rg: ./broken: No such fi'); sys.exit(2)": (
        1,
        SearchError,
        "No such fi",
    ),  # a full disk
    "list_files(1); sys.exit(101)": (1, SearchError, "exit code 101"),
    "list_files(1); pour(b'x' * 65_536, 400)": (1, DecodeError, "a path longer than"),
    "list_files(1); lingers()": (1, SearchError, "did not exit"),
    "list_files(1); pour(PERMISSION_DENIED, 60_000, 2); sys.exit(2)": (1, None, ""),
    "list_files(1); goes_on_as_another(1.5)": (2, None, ""),
}


@pytest.mark.parametrize("api", ["trio", "sync"])
@pytest.mark.parametrize("fault", LISTINGS)
def test_listing_is_complete_or_raises(stand_in: StandIn, folder: Path, fault: str, api: str) -> None:
    paths, error, says = LISTINGS[fault]
    seen: list[str] = []
    rg = stand_in(fault)

    async def take() -> None:
        async with aclosing(ripwrap.files(rg=rg, cwd=folder)) as listing:
            async for path in listing:
                seen.append(path)  # noqa: PERF401 - what comes before an error counts

    def take_blocking() -> None:
        for path in sync.files(rg=rg, cwd=folder):
            seen.append(path)  # noqa: PERF402

    with pytest.raises(error, match=says) if error else nullcontext():
        take_blocking() if api == "sync" else anyio.run(take, backend=api)
    assert seen == ["a"] * paths


@pytest.mark.python
@pytest.mark.parametrize("api", APIS)
def test_process_that_holds_the_pipe_does_not_hide_an_error(stand_in: StandIn, folder: Path, api: str) -> None:
    rg = stand_in("os.write(2, b'rg: regex parse error: (\\n'); holds_the_pipe(); sys.exit(2)")
    try:
        with pytest.raises(PatternError):
            collect(api, rg, folder)
        os.kill(int((folder / "grandchild").read_text()), signal.SIGKILL)
        with pytest.raises(PatternError):
            stream(api, lambda _: None, rg, folder)
    finally:
        os.kill(int((folder / "grandchild").read_text()), signal.SIGKILL)


@pytest.mark.python
@pytest.mark.parametrize("api", APIS)
def test_timeout_does_not_hide_an_error_of_rg(
    stand_in: StandIn, folder: Path, api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process.SETTINGS, "stall_seconds", 60)
    rg = stand_in("os.write(2, b'rg: regex parse error: (\\n'); holds_the_pipe(); sys.exit(2)")
    for timeout in TIMEOUTS[1:]:
        found = None
        try:
            found = collect(api, rg, folder, timeout=timeout)
        except PatternError:
            break
        finally:
            with suppress(FileNotFoundError):
                os.kill(int((folder / "grandchild").read_text()), signal.SIGKILL)
                (folder / "grandchild").unlink()
    assert found is None


@pytest.mark.python
@pytest.mark.anyio
async def test_reading_stderr_needs_no_free_default_worker_thread(stand_in: StandIn, folder: Path) -> None:
    """Read a long stderr in a thread while all of anyio's default threads are taken."""
    rg = await ripwrap.binary.resolve(stand_in("pour(PERMISSION_DENIED, 3000, 2); say(SUMMARY); sys.exit(2)"))
    everyone = anyio.to_thread.current_default_thread_limiter()
    borrowers = [object() for _ in range(int(everyone.total_tokens))]
    for borrower in borrowers:
        everyone.acquire_on_behalf_of_nowait(borrower)
    with anyio.fail_after(20):
        assert len((await ripwrap.grep("x", rg=rg, cwd=folder)).errors) == 3000
    for borrower in borrowers:
        everyone.release_on_behalf_of(borrower)


@pytest.mark.python
@pytest.mark.parametrize("fault", ["holds_the_pipe()", "list_files(1); holds_the_pipe()"])
def test_timeout_ends_a_listing_if_another_process_keeps_its_pipe_open(
    stand_in: StandIn, folder: Path, fault: str
) -> None:
    """Let rg exit with 0. A listing has no summary: only the end of the pipe shows that it is complete."""
    try:
        with pytest.raises(TimeoutError):
            list(sync.files(rg=stand_in(fault), cwd=folder, timeout=4))
    finally:
        os.kill(int((folder / "grandchild").read_text()), signal.SIGKILL)


@pytest.mark.python
@pytest.mark.parametrize("api", APIS)
def test_process_that_holds_the_pipe_is_not_waited_for(stand_in: StandIn, folder: Path, api: str) -> None:
    seen: list[Any] = []
    try:
        assert collect(api, stand_in("with_a_daemon()"), folder).total_matches == 1
        os.kill(int((folder / "grandchild").read_text()), signal.SIGKILL)
        stream(api, seen.append, stand_in("with_a_daemon()"), folder)
        assert len(seen) == 1
    finally:
        os.kill(int((folder / "grandchild").read_text()), signal.SIGKILL)


@pytest.mark.python
@pytest.mark.usefixtures("leaks_nothing")
@pytest.mark.anyio
async def test_cancelling_a_version_query_ends_the_program(folder: Path, tmp_path: Path, children: Children) -> None:
    """Cancel the first use, which reads rg's version in a worker thread."""
    rg = fake_rg.write(tmp_path / "hangs", "mute()", says=None)
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: ripwrap.grep("x", rg=rg, cwd=folder))
        await until(children)
        group.cancel_scope.cancel()
    assert children() == []


@pytest.mark.python
@pytest.mark.usefixtures("leaks_nothing")
@pytest.mark.parametrize("again", [False, True])
def test_cancelling_the_asyncio_task_of_a_version_query_ends_the_program(
    folder: Path, tmp_path: Path, children: Children, again: bool
) -> None:
    """The task is cancelled again while it waits for the end of the program."""
    rg = fake_rg.write(tmp_path / "hangs", "mute()", says=None)

    async def main() -> None:
        task = asyncio.ensure_future(ripwrap.grep("x", rg=rg, cwd=folder))
        await until(children)
        task.cancel()
        if again:
            await asyncio.sleep(0)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert children() == []

    asyncio.run(main())


@pytest.mark.python
@pytest.mark.usefixtures("leaks_nothing")
@pytest.mark.parametrize("api", APIS)
def test_ctrl_c_ends_the_program_of_a_version_query(folder: Path, tmp_path: Path, children: Children, api: str) -> None:
    """Interrupt the first use, which reads rg's version."""
    rg = fake_rg.write(tmp_path / "hangs", "mute()", says=None)

    def interrupt() -> None:
        until_blocking(children)
        os.kill(os.getpid(), signal.SIGINT)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(interrupt)
        with pytest.raises(KeyboardInterrupt):
            collect(api, rg, folder)
        assert children() == []


# Programs that are run with `--version`: the exit code and version, or the error.
PROGRAMS: dict[str, tuple[int, tuple[int, ...] | None] | str] = {
    "os.fork() or time.sleep(3600); print('ripgrep 15.2.0')": (0, (15, 2, 0)),  # a child keeps its stdout open
    "print('ripgrep 15.2.0', flush=True); time.sleep(3600)": "^the program did not end within 3 seconds$",
    "pour(b'x' * 65_536, sys.maxsize)": "^the program wrote more than 64 KiB$",
    "pour(b'x' * 65_536, sys.maxsize, 2)": "^the program wrote more than 64 KiB$",
    "os.kill(os.getpid(), 9)": (-9, None),
    "sys.exit(1)": (1, None),
}


@pytest.mark.parametrize("body", PROGRAMS)
def test_version_query_leaves_no_process(tmp_path: Path, body: str) -> None:
    path = fake_rg.write(tmp_path / "odd", body, says=None)
    outcome = PROGRAMS[body]
    if isinstance(outcome, str):
        with pytest.raises(TimeoutError, match=outcome):
            probe.ask(str(path), "--version", seconds=3)
    else:
        returncode, printed, _ = probe.ask(str(path), "--version")
        assert (returncode, probe.parse_version(printed)) == outcome

    def left() -> list[psutil.Process]:
        return [one for one in psutil.process_iter(["cmdline"]) if str(path) in (one.info["cmdline"] or ())]

    until_blocking(lambda: left() == [])  # on a busy machine, a killed process needs a moment to end


def test_failed_version_query_is_not_cached(tmp_path: Path, folder: Path) -> None:
    body = f"if os.path.exists({str(folder)!r} + '/bad'): sys.exit(1)\nprint('ripgrep 15.2.0')"
    rg = fake_rg.write(tmp_path / "rg", body, says=None)
    (folder / "bad").touch()
    binary = ripwrap.RgBinary(str(rg), "argument")
    with pytest.raises(BinaryError, match="exit code 1"):
        _ = binary.version
    (folder / "bad").unlink()
    assert binary.version == (15, 2, 0)


@pytest.mark.python
@pytest.mark.anyio
async def test_other_tasks_run_between_chunks(stand_in: StandIn, folder: Path) -> None:
    """Count the checkpoints of another task while rg writes without pause; a chunk is at most the size of the pipe."""
    matches = 50_000
    stream = ripwrap.search("x", rg=stand_in("endless()"), cwd=folder, limit=matches)
    async with counting_checkpoints() as checkpoints, aclosing(stream):
        async for _ in stream:
            pass
    assert next(checkpoints) >= matches * len(MATCH) // 65_536


@pytest.mark.python
@pytest.mark.parametrize("api", APIS)
def test_rg_waits_for_a_slow_consumer(stand_in: StandIn, folder: Path, api: str) -> None:
    body = "say(BEGIN)\nfor written in range(10**9):\n    open('written', 'w').write(str(written)); say(*[MATCH] * 100)"

    def has_written() -> int:
        return int((folder / "written").read_text() or 0)

    def consume(match: ripwrap.Match) -> None:
        before = -1
        while before != (before := has_written()):
            time.sleep(0.2)  # an rg that does not wait would write megabytes in this time
        assert has_written() < 100
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        stream(api, consume, stand_in(body), folder)
