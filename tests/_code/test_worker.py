"""Chunks from a worker process: equal to those made in process; a crash costs one file its symbols."""

import gc
import os
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("tree_sitter")
pytest.importorskip("semble_grammars")

import psutil

from ripwrap._code.treesitter.merge import named_windows, syntax_chunks, window_chunks
from ripwrap._code.treesitter.worker import CodeReader, shared_reader
from support.parsers import FATAL, parsers, with_little_memory
from support.waiting import TIMEOUTS, until_blocking

pytestmark = [pytest.mark.extra, pytest.mark.slow]

SAMPLES = Path(__file__).parents[1] / "data" / "sections"
SMALL = "def f():\n    1\n    2\n    3\n"


@pytest.fixture(autouse=True)
def no_shared_worker() -> None:
    """End the process of the reader that other tests have used; the tests here count processes."""
    shared_reader().close()


def test_worker_makes_the_same_chunks_as_in_process() -> None:
    with closing(CodeReader()) as chunker:
        for path in sorted(SAMPLES.iterdir()):
            text = path.read_text() + "# é \ud800\n"
            assert chunker.chunks_of(path.name, text) == syntax_chunks(path.name, text)


def test_one_worker_process_is_reused_and_ends_with_the_block() -> None:
    with closing(CodeReader()) as chunker:
        assert chunker.chunks_of("a.txt", "x\n") and parsers() == []
        chunker.chunks_of("a.py", "x\n")
        before = parsers()
        chunker.chunks_of("b.py", "x\n")
        assert len(before) == 1 and parsers() == before
    assert parsers() == []


@pytest.mark.usefixtures("leaks_nothing")
def test_idle_worker_ends_and_the_next_file_starts_another() -> None:
    """An idle process ends by itself, with its thread and its pipes."""
    with closing(CodeReader(idle=0.05)) as chunker:
        assert chunker.chunks_of("a.py", SMALL)[0].symbol == "f"
        until_blocking(lambda: parsers() == [])
        until_blocking(lambda: "ripwrap-worker-idle" not in {thread.name for thread in threading.enumerate()})
        assert chunker.chunks_of("a.py", SMALL)[0].symbol == "f"


@pytest.mark.usefixtures("leaks_nothing")
def test_worker_ends_with_a_chunker_that_nothing_closes() -> None:
    """The thread that waits for the idle process does not keep the chunker alive."""
    chunker = CodeReader()
    chunker.chunks_of("a.py", SMALL)
    assert len(parsers()) == 1
    del chunker
    gc.collect()
    assert parsers() == []


def test_each_chunker_has_one_worker_for_all_threads() -> None:
    with closing(CodeReader()) as one, closing(CodeReader()) as other, ThreadPoolExecutor(4) as threads:
        chunks = threads.map(lambda chunker: chunker.chunks_of("a.py", SMALL), [one, other] * 8)
        assert {found[0].symbol for found in chunks} == {"f"}
        assert len(parsers()) == 2
        one.close()
        assert len(parsers()) == 1
    assert parsers() == []


def run(program: str) -> subprocess.CompletedProcess[str]:
    """Run a program, with warnings as errors, that has `chunker`, `parsers()` and `SMALL`."""
    before = f"""
        import os, signal, sys, threading
        import psutil
        from ripwrap._code.treesitter.worker import CodeReader, shared_reader

        SMALL = {SMALL!r}
        chunker = CodeReader()
        def parsers():
            return [child.pid for child in psutil.Process().children() if "worker" in " ".join(child.cmdline())]
    """
    there = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(before) + textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
        env=there,
        start_new_session=True,
    )


def is_gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_worker_ends_with_a_program_that_ends_while_it_is_idle() -> None:
    """Neither the process nor its thread delays the end of the program."""
    done = run("""
        chunker.chunks_of("a.py", SMALL)
        print(*parsers())
    """)
    assert done.stderr == ""
    assert is_gone(int(done.stdout))


@pytest.mark.posix
def test_ctrl_c_does_not_reach_an_idle_worker() -> None:
    """Ctrl-C in a terminal signals all processes of its foreground group."""
    done = run("""
        chunker.chunks_of("a.py", SMALL)
        before = parsers()
        signal.signal(signal.SIGINT, lambda number, frame: None)
        os.killpg(os.getpgrp(), signal.SIGINT)
        print(chunker.chunks_of("a.py", SMALL)[0].symbol, parsers() == before)
    """)
    assert (done.stdout, done.stderr) == ("f True\n", "")


@pytest.mark.posix
def test_forked_child_starts_a_worker_of_its_own() -> None:
    """Both processes can chunk after a fork, even if another thread was waiting for chunks."""
    done = run("""
        import time, warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # the threads are the subject
        chunker.chunks_of("a.py", SMALL)
        (pid,) = parsers()
        os.kill(pid, signal.SIGSTOP)
        asking = threading.Thread(target=chunker.chunks_of, args=("a.py", SMALL))
        asking.start()
        while not any("watch" in thread.name for thread in threading.enumerate()):
            time.sleep(0.001)
        if (child := os.fork()) == 0:
            symbol = chunker.chunks_of("a.py", SMALL)[0].symbol
            mine = parsers()
            chunker.close()
            os._exit(7 if symbol == "f" and len(mine) == 1 and mine != [pid] and parsers() == [] else 1)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.kill(pid, signal.SIGCONT)
        asking.join()
        print(code, chunker.chunks_of("a.py", SMALL)[0].symbol, parsers() == [pid])
    """)
    assert (done.stdout, done.stderr) == ("7 f True\n", "")


def test_file_that_crashes_the_parser_falls_back_to_windows() -> None:
    with closing(CodeReader()) as chunker:
        assert chunker.chunks_of("a.py", SMALL)[0].symbol == "f"
        (parser,) = parsers()
        with_little_memory(parser)
        assert chunker.chunks_of("a.py", FATAL) == list(window_chunks(FATAL))
        assert parsers() != [parser]
        assert chunker.chunks_of("a.py", SMALL)[0].symbol == "f"


@pytest.mark.posix
def test_hung_worker_costs_only_one_file_its_symbols() -> None:
    for seconds in TIMEOUTS:
        with closing(CodeReader(seconds=seconds)) as chunker:
            before = chunker.chunks_of("a.py", SMALL)[0].symbol
            for parser in parsers():
                parser.suspend()
            hung = chunker.chunks_of("a.py", SMALL)
            if (before, chunker.chunks_of("a.py", SMALL)[0].symbol) == ("f", "f"):
                assert hung == list(named_windows("a.py", SMALL))
                return
    pytest.fail("no timeout was enough")


@pytest.mark.usefixtures("leaks_nothing")
def test_worker_killed_while_idle_costs_no_file_its_symbols() -> None:
    """After the kernel had killed an idle process, the next file was split into windows."""
    with closing(CodeReader()) as chunker:
        assert chunker.chunks_of("a.py", SMALL)[0].symbol == "f"
        (worker,) = parsers()
        worker.kill()
        until_blocking(lambda: worker.status() == psutil.STATUS_ZOMBIE)  # before, it still seems to run
        assert chunker.chunks_of("a.py", SMALL)[0].symbol == "f"


@pytest.mark.posix
@pytest.mark.skipif(sys.platform != "win32" and os.geteuid() != 0, reason="needs root, to stop being root")
def test_worker_ends_with_a_program_that_may_not_kill_it() -> None:
    """After `os.setuid()`, the program ended with a traceback of a `PermissionError`."""
    done = run("""
        chunker.chunks_of("a.py", SMALL)
        print(*parsers(), flush=True)
        os.setuid(65534)
    """)
    assert (done.stderr, done.returncode) == ("", 0)
    assert is_gone(int(done.stdout))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_worker_inherits_no_keys_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "OLLAMA_HOST", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "not-for-others")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    with closing(CodeReader()) as chunker:
        assert chunker.chunks_of("a.py", SMALL)[0].symbol == "f"
        given = Path(f"/proc/{parsers()[0].pid}/environ").read_bytes()
    names = {entry.partition(b"=")[0] for entry in given.split(b"\0")}
    assert b"not-for-others" not in given
    assert {b"PATH", b"PYTHONPATH", b"LC_ALL"} <= names


def test_worker_runs_without_a_home_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name not in ("PATH", "SYSTEMROOT"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with closing(CodeReader()) as chunker:
        assert chunker.chunks_of("a.py", SMALL)[0].symbol == "f"
    assert list(tmp_path.rglob("*python*"))  # the folder of the unpacked grammars, which is named after the Python
