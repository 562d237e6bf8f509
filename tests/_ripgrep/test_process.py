"""The lifetime of an rg process: it never outlives its consumer, in async and blocking code."""

import asyncio
import gc
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import aclosing, closing, contextmanager, suppress
from pathlib import Path

import anyio
import anyio.lowlevel
import psutil
import pytest

import ripwrap
from ripwrap import BinaryError, BinaryNotFoundError, CapabilityError, Match, SearchError, sync
from ripwrap._ripgrep import process
from ripwrap.binary import RgBinary
from support.paths import native
from support.waiting import TIMEOUTS, until, until_blocking

Children = Callable[[], list[psutil.Process]]
StandIn = Callable[..., Path]
RunningIn = Callable[[Path], list[psutil.Process]]
Plant = Callable[..., Path]


@pytest.fixture
def endless(needs_posix: None, plant: Plant, leaks_nothing: None) -> Callable[..., AsyncGenerator[Match]]:
    """Search with more output than a pipe holds, and then a FIFO without a writer: rg does not end by itself."""
    folder = plant({"dense": "needle\n" * 20_000})  # 3 MB of JSON
    os.mkfifo(folder / "fifo")
    return lambda **options: ripwrap.search("needle", cwd=folder, paths=["dense", "fifo"], threads=1, **options)


@pytest.fixture
def stuck(needs_posix: None, plant: Plant, leaks_nothing: None) -> Callable[..., AsyncGenerator[Match]]:
    """A search that yields one match and then waits for ever for a FIFO."""
    folder = plant({"sparse": "needle\n"})
    os.mkfifo(folder / "fifo")
    return lambda **options: ripwrap.search("needle", cwd=folder, paths=["sparse", "fifo"], threads=1, **options)


async def none_left(children: Children) -> None:
    """Check that no child process is left, after a single checkpoint."""
    await anyio.lowlevel.checkpoint()
    assert children() == []


def alive(process: psutil.Process) -> bool:
    """Return True if a process still runs; a zombie does not."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@pytest.mark.posix
@pytest.mark.anyio
@pytest.mark.usefixtures("reading")
@pytest.mark.parametrize("how", ["endless", "stuck"])
@pytest.mark.fact(30)
class TestLeaving:
    @pytest.fixture
    def searching(self, how: str, request: pytest.FixtureRequest) -> Callable[..., AsyncGenerator[Match]]:
        return request.getfixturevalue(how)  # type: ignore[no-any-return]

    async def test_aclose_ends_rg(self, searching: Callable[..., AsyncGenerator[Match]], children: Children) -> None:
        matches = searching()
        assert (await anext(matches)).lines == "needle\n"
        assert len(children()) == 1
        await matches.aclose()
        await none_left(children)

    async def test_break_ends_rg(self, searching: Callable[..., AsyncGenerator[Match]], children: Children) -> None:
        async with aclosing(searching()) as matches:
            async for _ in matches:
                assert len(children()) == 1
                break
        await none_left(children)

    async def test_an_exception_of_the_consumer_ends_rg(
        self, searching: Callable[..., AsyncGenerator[Match]], children: Children
    ) -> None:
        with pytest.raises(ZeroDivisionError):
            async with aclosing(searching()) as matches:
                async for _ in matches:
                    1 / 0  # noqa: B018
        await none_left(children)

    async def test_cancellation_ends_rg(
        self, searching: Callable[..., AsyncGenerator[Match]], children: Children
    ) -> None:
        seen = 0
        with anyio.CancelScope() as scope:
            async with aclosing(searching()) as matches:
                async for _ in matches:
                    seen += 1
                    scope.cancel()
        assert scope.cancelled_caught
        assert seen >= 1
        await none_left(children)

    @pytest.mark.python
    @pytest.mark.slow
    async def test_a_timeout_of_the_caller_ends_rg(
        self, searching: Callable[..., AsyncGenerator[Match]], children: Children
    ) -> None:
        with anyio.move_on_after(0.3) as scope:
            async with aclosing(searching()) as matches:
                async for _ in matches:
                    pass
                raise AssertionError("rg ended by itself")
        assert scope.cancelled_caught
        await none_left(children)

    @pytest.mark.fact(34)
    async def test_limit_ends_rg_before_the_last_match_is_yielded(
        self, searching: Callable[..., AsyncGenerator[Match]], children: Children
    ) -> None:
        async with aclosing(searching(limit=1)) as matches:
            await anext(matches)
            await until(lambda: not any(map(alive, children())))
            with pytest.raises(StopAsyncIteration):
                await anext(matches)
            assert children() == []

    @pytest.mark.slow
    async def test_closing_one_search_leaves_another_running(
        self, searching: Callable[..., AsyncGenerator[Match]], children: Children
    ) -> None:
        one, other = searching(), searching()
        await anext(one)
        await anext(other)
        await one.aclose()
        assert len(children()) == 1
        await other.aclose()
        await none_left(children)


@pytest.mark.posix
@pytest.mark.parametrize("how", ["endless", "stuck"])
@pytest.mark.fact(32)
def test_cancelling_an_asyncio_task_twice_ends_rg(how: str, request: pytest.FixtureRequest, children: Children) -> None:
    searching = request.getfixturevalue(how)

    async def consume() -> None:
        async with aclosing(searching()) as matches:
            async for _ in matches:
                await asyncio.sleep(0)

    async def cancel_twice() -> None:
        task = asyncio.ensure_future(consume())
        await until(lambda: len(children()) == 1)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()  # while rg is being reaped
        with pytest.raises(asyncio.CancelledError):
            await task
        await none_left(children)

    asyncio.run(cancel_twice())


@pytest.mark.posix
@pytest.mark.anyio
@pytest.mark.parametrize("how", ["endless", "stuck"])
@pytest.mark.fact(31)
async def test_break_without_aclosing_ends_rg(
    how: str, request: pytest.FixtureRequest, children: Children, anyio_backend: str
) -> None:
    searching = request.getfixturevalue(how)

    async def leave() -> None:
        async for _ in searching():
            break

    if anyio_backend == "trio":
        with pytest.warns(ResourceWarning, match="aclosing"):  # trio warns about a missing aclosing()
            await leave()
            await until(lambda: not children())
    else:
        await leave()
        await until(lambda: not children())  # asyncio closes the generator in a task


@pytest.mark.parametrize("how", ["endless", "stuck"])
class TestLeavingBlocking:
    @pytest.fixture
    def searching(
        self, needs_posix: None, how: str, plant: Plant, leaks_nothing: None
    ) -> Callable[..., Generator[Match]]:
        folder = plant({"file": "needle\n" * (20_000 if how == "endless" else 1)})
        os.mkfifo(folder / "fifo")
        return lambda **options: sync.search("needle", cwd=folder, paths=["file", "fifo"], threads=1, **options)

    def test_closing_ends_rg(self, searching: Callable[..., Generator[Match]], children: Children) -> None:
        with closing(searching()) as matches:
            assert next(matches).lines == "needle\n"
            assert len(children()) == 1
        assert children() == []

    def test_break_ends_rg(self, searching: Callable[..., Generator[Match]], children: Children) -> None:
        for _ in searching():
            break
        assert children() == []

    def test_an_exception_ends_rg(self, searching: Callable[..., Generator[Match]], children: Children) -> None:
        matches = searching()
        next(matches)
        with pytest.raises(ZeroDivisionError):
            matches.throw(ZeroDivisionError())
        assert children() == []

    def test_a_limit_ends_rg(self, searching: Callable[..., Generator[Match]], children: Children) -> None:
        with closing(searching(limit=1)) as matches:
            next(matches)
            until_blocking(lambda: not any(map(alive, children())))
            assert list(matches) == []
        assert children() == []

    @pytest.mark.slow
    def test_timeout_yields_the_matches_found_and_ends_rg(
        self, searching: Callable[..., Generator[Match]], children: Children
    ) -> None:
        for timeout in TIMEOUTS:
            seen = 0
            with pytest.raises(TimeoutError, match=rf"timeout={timeout:g} seconds"):
                for _ in searching(timeout=timeout):
                    seen += 1
            if seen:
                break
        assert seen >= 1
        assert children() == []


@pytest.mark.slow
@pytest.mark.python
@pytest.mark.usefixtures("reading", "leaks_nothing")
def test_slow_consumer_gets_the_matches_found_before_the_timeout(plant: Plant) -> None:
    folder = plant({"file": "needle\n" * 200_000})
    for timeout in TIMEOUTS:
        matches = sync.search("needle", cwd=folder, timeout=timeout)
        with suppress(TimeoutError):
            next(matches)
            break
    time.sleep(timeout + 0.1)
    seen = 1
    with pytest.raises(TimeoutError):
        for _ in matches:
            seen += 1
    assert 1 < seen < 200_000


@pytest.mark.parametrize(
    ("timeout", "kind"), [(-1, ValueError), (float("nan"), ValueError), ("5", TypeError), (True, TypeError)]
)
def test_invalid_timeout_is_rejected_at_the_call(timeout: float, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="timeout must be"):
        sync.search("x", timeout=timeout)
    with pytest.raises(kind, match="timeout must be"):
        sync.tree(timeout=timeout)


@pytest.mark.parametrize("timeout", [float("inf"), 1e9, None])
def test_timeout_may_be_infinite_or_none(plant: Plant, timeout: float | None) -> None:
    assert len(list(sync.search("needle", cwd=plant({"a": "needle\n"}), timeout=timeout))) == 1


@pytest.mark.fact(35)
class TestLaunchers:
    """Scripts that start rg as a child instead of becoming it, as some package managers install."""

    @pytest.fixture
    def launcher(self, tmp_path: Path) -> Path:
        path = tmp_path / "launcher"
        path.write_text(f'#!/bin/sh\n"{sync.resolve().path}" "$@"\n')
        path.chmod(0o755)
        return path

    @pytest.mark.anyio
    async def test_closing_a_stream_ends_the_rg_of_a_launcher(
        self, launcher: Path, blocked: Path, running_in: RunningIn
    ) -> None:
        async with aclosing(
            ripwrap.search("needle", cwd=blocked, paths=["file", "fifo"], threads=1, rg=launcher)
        ) as matches:
            await anext(matches)
            assert len(running_in(blocked)) == 1
        await until(lambda: running_in(blocked) == [])

    def test_timeout_ends_the_rg_of_a_launcher(self, launcher: Path, blocked: Path, running_in: RunningIn) -> None:
        with pytest.raises(TimeoutError):
            list(sync.search("needle", cwd=blocked, paths=["file", "fifo"], threads=1, rg=launcher, timeout=1))
        anyio.run(until, lambda: running_in(blocked) == [])


@pytest.mark.anyio
@pytest.mark.fact(33)
@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
async def test_unkillable_rg_is_abandoned_with_a_warning(
    stuck: Callable[..., AsyncGenerator[Match]],
    children: Children,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Do not deliver the signal to rg, as in uninterruptible sleep."""
    monkeypatch.setattr(process.SETTINGS, "reap_seconds", 0.01)
    with monkeypatch.context() as patch:
        patch.setattr(os, "killpg", lambda group, number: None)
        matches = stuck()
        await anext(matches)
        await matches.aclose()
    assert "has not ended" in caplog.text
    (rg,) = children()
    rg.kill()
    rg.wait(60)


IGNORING = """
import signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
from ripwrap import GlobError, PatternError, UnknownTypeError, sync
for kind, call in (
    (PatternError, lambda: sync.search("(")),
    (UnknownTypeError, lambda: sync.files(type="nope")),
    (GlobError, lambda: sync.tree(glob="a[")),
):
    try:
        print("nothing was raised, but", list(call()))
    except kind:
        pass
print([match.path for match in sync.search("needle")], list(sync.files()), list(sync.files(glob="*.none")))
"""


@pytest.mark.slow
@pytest.mark.python
def test_ignored_sigchld_does_not_hide_errors_of_rg(plant: Plant) -> None:
    """Ignore SIGCHLD, so that Python loses the exit code and reports 0."""
    folder = plant({"a": "needle\n"})
    done = subprocess.run([sys.executable, "-c", IGNORING], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout == "['a'] ['a'] []\n"


def test_unexpired_timeout_does_not_change_the_matches(plant: Plant, leaks_nothing: None) -> None:
    folder = plant({"a": "needle\n"})
    assert list(sync.search("needle", cwd=folder, timeout=30)) == list(sync.search("needle", cwd=folder))


@pytest.mark.posix
@pytest.mark.fact(31)
def test_garbage_collector_ends_the_rg_of_a_closed_loop(
    plant: Plant, leaks_nothing: None, children: Children, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process.SETTINGS, "reap_seconds", 30)  # on a busy machine, a killed rg may need more than one
    folder = plant({"file": "needle\n"})
    os.mkfifo(folder / "fifo")
    sync.resolve()  # otherwise a thread finds rg, and that of an anyio before 4.14 keeps the task
    matches = ripwrap.search("needle", cwd=folder, paths=["file", "fifo"], threads=1)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(anext(matches))
    loop.close()  # without shutdown_asyncgens(), so that no loop closes the generator
    del matches
    gc.collect()
    assert children() == []


SCRIPT = """
import asyncio, os, sys, trio
import ripwrap

async def main():
    global matches
    matches = ripwrap.search("needle", cwd=sys.argv[1], paths=["file", "fifo"], threads=1)
    await anext(matches)

{runner}(main{call})
"""
RUNNERS = {"asyncio": ("asyncio.run", "()"), "trio": ("trio.run", "")}


def script(folder: Path, backend: str) -> "subprocess.Popen[bytes]":
    runner, call = RUNNERS[backend]
    text = SCRIPT.format(runner=runner, call=call)
    return subprocess.Popen(
        [sys.executable, "-c", text, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


@pytest.fixture
def blocked(needs_posix: None, plant: Plant) -> Path:
    folder = plant({"file": "needle\n"})
    os.mkfifo(folder / "fifo")
    return folder


@pytest.mark.slow
@pytest.mark.python
@pytest.mark.parametrize("backend", RUNNERS)
@pytest.mark.fact(31)
def test_program_that_exits_with_a_suspended_search_leaves_no_rg(
    blocked: Path, backend: str, running_in: RunningIn
) -> None:
    with script(blocked, backend) as program:
        _, stderr = program.communicate(timeout=30)
    assert (program.returncode, stderr) == (0, b"")
    assert running_in(blocked) == []


def answers(stand_in: Path, api: str) -> list[Match]:
    """Return all matches of a stand-in through the blocking or the async API."""
    if api == "sync":
        return list(sync.search("x", rg=stand_in))

    async def collect() -> list[Match]:
        return [match async for match in ripwrap.search("x", rg=stand_in)]

    return anyio.run(collect, backend=api)


@pytest.mark.usefixtures("leaks_nothing")
@pytest.mark.parametrize("api", ["asyncio", "trio", "sync"])
class TestMisbehaviour:
    def test_rg_killed_by_a_signal_raises_and_names_the_signal(self, stand_in: StandIn, api: str) -> None:
        rg = stand_in("killed(9)")
        with pytest.raises(SearchError, match="killed by signal 9") as caught:
            answers(rg, api)
        assert caught.value.returncode == -9
        assert caught.value.argv[0] == str(rg)

    @pytest.mark.slow
    def test_unknown_exit_code_raises_with_rgs_stderr(self, stand_in: StandIn, api: str) -> None:
        rg = stand_in("print('who knows', file=sys.stderr); fails(3, '')")
        with pytest.raises(SearchError, match="who knows") as caught:
            answers(rg, api)
        assert (caught.value.returncode, caught.value.stderr) == (3, "who knows\n")

    @pytest.mark.fact(28)
    def test_exit_without_a_summary_raises(self, stand_in: StandIn, api: str) -> None:
        with pytest.raises(SearchError, match="exit code 0 and no message"):
            answers(stand_in(""), api)
        with pytest.raises(SearchError, match="exit code 1 and no message"):
            answers(stand_in("sys.exit(1)"), api)

    @pytest.mark.slow
    @pytest.mark.fact(2)
    def test_stdin_is_closed_and_ripgrep_variables_are_not_inherited(
        self, stand_in: StandIn, api: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("RIPGREP_CONFIG_PATH", "/evil")
        monkeypatch.setenv("RIPGREP_INDEX_PATH", "/evil")
        rg = stand_in(
            "assert sys.stdin.read() == ''\n"
            "assert not [name for name in os.environ if name.startswith('RIPGREP_')]\n"
            "assert sys.argv[1] == '--no-config' and sys.argv[-2:] == ['--', '.']\n"
            "assert 'PATH' in os.environ\n"
            "say(SUMMARY)"
        )
        assert answers(rg, api) == []


def blocking(rg: "str | Path | RgBinary | None" = None, **options: object) -> list[Match]:
    return list(sync.search("x", rg=rg, **options))  # type: ignore[call-overload]


@pytest.mark.fact(7)
def test_missing_cwd_and_missing_rg_raise_different_errors(folder: Path, leaks_nothing: None) -> None:
    with pytest.raises(FileNotFoundError, match="cwd does not exist") as missing:
        blocking(cwd=folder / "nowhere", rg=folder / "no-rg-either")
    assert missing.value.filename == str(folder / "nowhere")
    (folder / "file").touch()
    with pytest.raises(NotADirectoryError, match="paths=") as wrong:
        blocking(cwd=folder / "file")
    assert wrong.value.filename == str(folder / "file")
    with pytest.raises(BinaryError, match="no such file"):
        blocking(cwd=folder, rg=folder / "no-rg")


def test_relative_cwd_is_resolved_at_the_call(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = plant({"a/x": "needle\n", "b/y": "needle\n", "a/c/z": "needle\n"})
    monkeypatch.chdir(folder / "a")
    here, below = sync.search("needle", sort="path"), sync.search("needle", cwd="c")
    monkeypatch.chdir(folder / "b")
    assert [match.path for match in here] == [native("c/z"), "x"]
    assert [match.path for match in below] == ["z"]
    with pytest.raises(FileNotFoundError, match="cwd does not exist"):
        blocking(cwd="")


@pytest.mark.posix
def test_root_of_a_grep_result_is_resolved_at_the_call(
    plant: Plant, monkeypatch: pytest.MonkeyPatch, children: Children
) -> None:
    folder = plant({"a/x": "needle\n", "b/y": "needle\n"})
    os.mkfifo(folder / "a" / "fifo")

    async def main(seconds: float) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(search, seconds)
            await until(children)
            monkeypatch.chdir(folder / "b")

    async def search(seconds: float) -> None:
        results.append(await ripwrap.grep("needle", paths=["x", "fifo"], threads=2, timeout=seconds))

    results: list[ripwrap.GrepResult] = []
    for timeout in TIMEOUTS:
        monkeypatch.chdir(folder / "a")
        anyio.run(main, timeout)
        if results[-1].total_matches:
            break
    assert (results[-1].root, results[-1].total_matches) == (str(folder / "a"), 1)


@pytest.mark.posix
def test_deleted_current_directory_raises_instead_of_no_matches(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "gone").mkdir()
    monkeypatch.chdir(folder / "gone")
    (folder / "gone").rmdir()
    for call in (blocking, lambda: list(sync.files()), lambda: sync.grep("x"), sync.tree_text):
        with pytest.raises(FileNotFoundError, match="the current directory was deleted"):
            call()


def test_rg_that_vanished_or_does_not_start_raises_binary_error(folder: Path, leaks_nothing: None) -> None:
    with pytest.raises(BinaryNotFoundError, match="does not exist"):
        blocking(rg=RgBinary(str(folder / "gone"), "argument"))
    (folder / "rg").write_bytes(b"\x7fELF is no program")
    (folder / "rg").chmod(0o755)
    with pytest.raises(BinaryError, match="cannot be run"):
        blocking(rg=folder / "rg")
    with pytest.raises(BinaryError, match="could not start"):
        blocking(rg=RgBinary(str(folder / "rg"), "argument"))


@contextmanager
def free_descriptors(count: int) -> Iterator[None]:
    """Leave this number of file descriptors free, regardless of those that are open; POSIX only."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
    try:
        with suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        for _ in range(count):
            os.close(taken.pop())
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for descriptor in taken:
            os.close(descriptor)


@pytest.mark.posix
def test_descriptor_and_temp_folder_errors_do_not_blame_rg(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocking(cwd=folder)  # imports all modules before descriptors are scarce
    with free_descriptors(2), pytest.raises(SearchError, match="Too many open files") as caught:
        blocking(cwd=folder)
    assert "rg=" not in str(caught.value)
    (folder / "first-use").symlink_to(sync.resolve().path)
    with free_descriptors(2), pytest.raises(SearchError, match="Too many open files"):
        blocking(cwd=folder, rg=folder / "first-use")
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "none"))
    with pytest.raises(SearchError, match="set TMPDIR"):
        blocking(cwd=folder)


@pytest.mark.posix
@pytest.mark.fact(7)
def test_too_long_command_line_raises_a_clear_error(folder: Path, leaks_nothing: None) -> None:
    with pytest.raises(SearchError, match="too long") as caught:
        blocking(cwd=folder, glob=["x" * 200_000])
    assert caught.value.returncode is None


def test_limit_0_starts_no_process(folder: Path) -> None:
    assert blocking(limit=0, rg=folder / "no-rg", cwd=folder / "nowhere") == []


def test_replace_is_rejected_for_rg_before_15(stand_in: StandIn) -> None:
    with pytest.raises(CapabilityError, match="needs rg 15"):
        blocking(rg=stand_in("", "ripgrep 14.1.1"), replace="y")
    with pytest.raises(BinaryError, match="not ripgrep"):
        blocking(rg=stand_in("", "grep 3.8"), replace="y")


def test_errors_survive_pickling() -> None:
    error = pickle.loads(pickle.dumps(SearchError("text", argv=["rg"], returncode=2, stderr="why")))
    assert (str(error), error.argv, error.returncode, error.stderr) == ("text", ("rg",), 2, "why")


def test_too_long_command_line_on_windows_is_not_reported_as_missing_rg(tmp_path: Path) -> None:
    error = FileNotFoundError(2, "The filename or extension is too long")
    error.winerror = 206  # type: ignore[attr-defined, unused-ignore]
    argv = ("rg.exe", "x" * 40_000)
    raised = process.start_error(error, argv, str(tmp_path))
    assert isinstance(raised, SearchError)
    assert str(raised).startswith("the command line is too long for this system (40006 characters)")
    missing = FileNotFoundError(2, "No such file or directory")
    assert isinstance(process.start_error(missing, argv, str(tmp_path)), BinaryNotFoundError)
