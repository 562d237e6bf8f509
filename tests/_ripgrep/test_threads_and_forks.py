"""Many threads at once, a process that forks, and Ctrl-C in a program."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

import ripwrap
from ripwrap import sync
from support import fake_rg, forks
from support.waiting import until_blocking

pytestmark = [pytest.mark.slow, pytest.mark.python]

Plant = Callable[..., Path]
RunningIn = Callable[[Path], list[psutil.Process]]

THREADS = 32


@pytest.fixture
def corpus(plant: Plant) -> Path:
    return plant({f"{number:02}": f"needle {number}\n" * (number + 1) for number in range(40)})


class TestThreads:
    @pytest.mark.usefixtures("leaks_nothing")
    def test_concurrent_threads_get_separate_results(self, corpus: Path) -> None:
        together = threading.Barrier(THREADS)

        def work(number: int) -> tuple[list[str], int, list[str], list[str]]:
            together.wait()
            pattern = rf"needle {number}\b"
            return (
                [match.lines for match in sync.search(pattern, cwd=corpus)],
                sync.grep(pattern, cwd=corpus, limit=1).total_matches,
                list(sync.files_with_matches(pattern, cwd=corpus)),
                sorted(sync.files(cwd=corpus)),
            )

        everything = [f"{number:02}" for number in range(40)]
        with ThreadPoolExecutor(THREADS) as pool:
            for number, answer in enumerate(pool.map(work, range(THREADS))):
                wanted = ([f"needle {number}\n"] * (number + 1), number + 1, [f"{number:02}"], everything)
                assert answer == wanted

    @pytest.mark.usefixtures("leaks_nothing")
    @pytest.mark.parametrize("backend", ["asyncio", "trio"])
    def test_each_thread_can_run_an_event_loop(self, corpus: Path, backend: str) -> None:
        def work(number: int) -> int:
            async def grep() -> int:
                return (await ripwrap.grep(rf"needle {number}\b", cwd=corpus)).total_matches

            return anyio.run(grep, backend=backend)

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(work, range(16))) == list(range(1, 17))

    @pytest.mark.usefixtures("leaks_nothing")
    def test_stream_can_be_finished_by_another_thread(self, corpus: Path) -> None:
        matches = sync.search("needle", cwd=corpus)
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(next, matches).result()
        rest = list(matches)
        assert len([first, *rest]) == sum(range(1, 41))


HEAD = "import asyncio, contextlib, gc, multiprocessing, os, sys, threading, time, ripwrap\nfrom ripwrap import sync\n"


def program(body: str, folder: Path) -> "subprocess.Popen[str]":
    """Start a Python program that imports `ripwrap`, with `folder` as its current directory."""
    # Python warns about forking a process that has threads, which these programs do.
    options = ["-W", "error", "-W", "ignore:This process:DeprecationWarning"]
    return subprocess.Popen(
        [sys.executable, *options, "-c", HEAD + textwrap.dedent(body)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def printed(body: str, folder: Path) -> str:
    with program(body, folder) as running:
        stdout, stderr = running.communicate(timeout=50)
    assert (running.returncode, stderr) == (0, "")
    return stdout


def forked(body: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run the same program as a fork of a process that has imported `ripwrap`."""
    allowed = "import warnings; warnings.filterwarnings('ignore', 'This process', DeprecationWarning)\n"
    return forks.run(["-c"], allowed + HEAD + textwrap.dedent(body), cwd=folder, env=os.environ)


# Ways for a forked process to end while it has a search that its parent started.
ENDS = {
    "as programs do": "sys.exit()",
    "at once": "os._exit(0)",
    "after it has closed the search": "matches.close(); sys.exit()",
    "after it has lost the search": "del matches; gc.collect(); sys.exit()",
}


class TestForks:
    @pytest.mark.posix
    @pytest.mark.parametrize("end", ENDS)
    def test_exiting_child_does_not_end_a_search_of_its_parent(self, plant: Plant, end: str) -> None:
        folder = plant({"dense": "needle\n" * 5_000})  # more than a pipe holds, so that rg still runs
        body = f"""
            matches = sync.search("needle")
            next(matches)
            if not os.fork():
                {ENDS[end]}
            os.wait()
            print(1 + len(list(matches)))
            """
        done = forked(body, folder)
        assert (done.returncode, done.stdout, done.stderr) == (0, "5000\n", "")

    @pytest.mark.posix
    @pytest.mark.parametrize(
        "end",
        [
            # Since Python 3.14, a forked child has no running event loop, so `asyncio.run()` cannot return in it.
            pytest.param("return", marks=pytest.mark.skipif(sys.version_info >= (3, 14), reason="CPython 3.14")),
            "os._exit(0)",
        ],
    )
    def test_exiting_child_does_not_end_an_async_search_of_its_parent(self, plant: Plant, end: str) -> None:
        folder = plant({"dense": "needle\n" * 5_000})
        body = f"""
            async def main():
                matches = ripwrap.search("needle")
                await anext(matches)
                if not os.fork():
                    {end}
                os.wait()
                print(1 + len([match async for match in matches]))
            asyncio.run(main())
            """
        done = forked(body, folder)
        assert (done.returncode, done.stdout, done.stderr) == (0, "5000\n", "")

    @pytest.mark.posix
    def test_forked_child_can_search_while_parent_threads_hold_slots(self, corpus: Path, running_in: RunningIn) -> None:
        os.mkfifo(corpus / "fifo")
        body = """
            ripwrap.limit_processes(2)
            for _ in range(5):  # two that never end, and three that wait
                threading.Thread(target=sync.grep, args=["x"], kwargs={"paths": "fifo", "timeout": 8}).start()
            time.sleep(1)
            if not os.fork():
                print(sync.grep("^needle 7$", max_count=1, timeout=5).total_matches)
                print(asyncio.run(ripwrap.grep("^needle 3$", max_count=1, timeout=5)).total_matches)
                sys.stdout.flush()
                os._exit(0)
            print(os.wait()[1])
            sys.stdout.flush()
            os.killpg(os.getpid(), 9)
            """
        with program(body, corpus) as running:
            assert running.stdout is not None
            assert running.stdout.read() == "1\n1\n0\n"
        for left in running_in(corpus):  # the parent was killed, so it did not end this rg
            left.kill()

    @pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
    def test_process_pool_can_search(self, corpus: Path, method: str) -> None:
        (corpus / "work.py").write_text(
            "from ripwrap import sync\n"
            "def work(number):\n"
            "    return sync.grep(f'^needle {number}$', glob='!*.py').total_matches\n"
        )
        body = f"""
            sys.path.insert(0, "")
            sys.dont_write_bytecode = True
            from work import work
            if __name__ == "__main__":
                assert work(1) == 2
                with multiprocessing.get_context({method!r}).Pool(2) as pool:
                    print(*pool.map(work, range(10)))
            """
        assert printed(body, corpus) == "1 2 3 4 5 6 7 8 9 10\n"


STREAM = """
async def stream():
    async with contextlib.aclosing(ripwrap.search("needle", paths=["file", "fifo"], threads=1)) as matches:
        async for _ in matches:
            open("found", "w").close()
"""
CTRL_C: dict[str, str] = {
    "a blocking stream": """
        for _ in sync.search("needle", paths=["file", "fifo"], threads=1):
            open("found", "w").close()
        """,
    "a blocking stream with a time": """
        for _ in sync.search("needle", paths=["file", "fifo"], threads=1, timeout=600):
            open("found", "w").close()
        """,
    "a stream of asyncio": f"{STREAM}asyncio.run(stream())",
    "a stream of trio": f"{STREAM}import trio; trio.run(stream)",
    "a collected answer": 'open("found", "w").close(); sync.grep("needle", paths="fifo", timeout=600)',
    "a collected answer of a task": """
        open("found", "w").close()
        asyncio.run(ripwrap.grep("needle", paths="fifo", timeout=600))
        """,
    "a wait for a turn": """
        ripwrap.limit_processes(1)
        def hold():
            with contextlib.suppress(Exception):  # its rg is ended when the program ends
                sync.grep("x", paths="fifo", timeout=600)
        threading.Thread(target=hold, daemon=True).start()
        time.sleep(0.5)
        open("found", "w").close()
        sync.grep("needle", paths="fifo", timeout=600)
        """,
}


@pytest.mark.posix
@pytest.mark.fact(35)
@pytest.mark.parametrize("what", CTRL_C)
def test_ctrl_c_ends_a_waiting_search_and_its_rg(plant: Plant, running_in: RunningIn, what: str) -> None:
    folder = plant({"file": "needle\n"})
    os.mkfifo(folder / "fifo")
    body = "try:\n" + textwrap.indent(textwrap.dedent(CTRL_C[what]), "    ")
    body += "\nexcept KeyboardInterrupt:\n    print('interrupted'); sys.exit(77)"
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(forked, "os.setsid()\n" + body, folder)
        until_blocking((folder / "found").exists)
        [rg] = until_blocking(lambda: running_in(folder))
        os.killpg(rg.ppid(), signal.SIGINT)  # as a terminal does
        done = running.result(timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (77, "interrupted\n", "")
    until_blocking(lambda: running_in(folder) == [])


async def matches_in_a_pipe() -> list[ripwrap.Match]:
    return [match async for match in ripwrap.search("needle", paths="fifo")]


STARTING: dict[str, Callable[[Path], object]] = {
    "a blocking stream": lambda _: list(sync.search("needle", paths="fifo")),
    "a collected answer": lambda _: sync.grep("needle", paths="fifo"),
    "asyncio": lambda _: anyio.run(matches_in_a_pipe, backend="asyncio"),
    "trio": lambda _: anyio.run(matches_in_a_pipe, backend="trio"),
    "a question for the version": lambda hangs: sync.resolve(rg=hangs),
}


@pytest.mark.posix
@pytest.mark.usefixtures("leaks_nothing")
@pytest.mark.parametrize("what", STARTING)
def test_ctrl_c_while_rg_starts_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """Interrupt `subprocess.Popen` after it has started rg and before it returns (a failure in CI)."""
    sync.resolve()
    os.mkfifo(tmp_path / "fifo")
    monkeypatch.chdir(tmp_path)
    hangs = fake_rg.write(tmp_path / "hangs", "time.sleep(FOR_EVER)", None)
    started = 0

    class Interrupted(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **options: Any) -> None:
            nonlocal started
            super().__init__(*args, **options)
            started += 1
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        STARTING[what](hangs)
    assert started == 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.posix
def test_rg_runs_in_its_own_process_group(plant: Plant, running_in: RunningIn) -> None:
    """Keep a terminal's Ctrl-C from ending rg before its consumer knows (rg-facts 35)."""
    folder = plant({"file": "needle\n"})
    os.mkfifo(folder / "fifo")
    with closing(sync.search("needle", cwd=folder, paths=["file", "fifo"], threads=1)) as matches:
        next(matches)
        (rg,) = running_in(folder)
        assert os.getpgid(rg.pid) == rg.pid
