"""Job objects: processes that a child starts end with it and with this process; without a job, searches work, too."""

import os
import subprocess
import sys
import textwrap
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest

from ripwrap._code.treesitter.worker import CodeReader
from ripwrap._system.subprocess import windows
from support.waiting import until_blocking
from windows.conftest import StandIn


def start(stand_in: StandIn, does: str, child: str = "", **options: Any) -> windows.Popen:
    null = subprocess.DEVNULL
    program = [str(stand_in.does(does, child))]
    return windows.start(program, stdin=null, stdout=subprocess.PIPE, stderr=null, env=dict(os.environ), **options)


def close(popen: windows.Popen) -> None:
    assert popen.stdout is not None
    popen.stdout.close()


def test_kill_ends_a_launcher_and_its_child(stand_in: StandIn) -> None:
    popen = start(stand_in, "launch", "mute")
    until_blocking(lambda: len(stand_in.running()) == 2)
    windows.kill(popen)
    assert popen.wait(60) == windows.KILLED_RETURNCODE
    until_blocking(lambda: stand_in.running() == set())
    close(popen)


def test_kill_ends_the_child_of_a_launcher_that_has_ended(stand_in: StandIn) -> None:
    popen = start(stand_in, "leave", "mute")
    assert popen.wait(60) == 0
    until_blocking(lambda: len(stand_in.processes()) == 2)
    assert popen.stdout is not None
    assert not windows.is_whole(popen, popen.stdout)
    windows.kill(popen)
    until_blocking(lambda: stand_in.running() == set())
    close(popen)


def test_garbage_collected_job_ends_its_processes(stand_in: StandIn) -> None:
    popen = start(stand_in, "launch", "mute")
    until_blocking(lambda: len(stand_in.running()) == 2)
    popen.job = None
    until_blocking(lambda: stand_in.running() == set())
    assert popen.wait(60) is not None
    close(popen)


def test_rg_ends_with_a_killed_python(stand_in: StandIn) -> None:
    program = f"""
        from ripwrap import sync
        found = sync.search("x", rg={str(stand_in.does("launch", "silent"))!r})
        next(found)
        print("found", flush=True)
        next(found)
    """
    python = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE)
    assert python.stdout is not None
    with python.stdout:
        assert python.stdout.read(5) == b"found"
        assert len(stand_in.running()) == 2
        python.kill()
        python.wait(60)
    until_blocking(lambda: stand_in.running() == set())


def refuse(process: int) -> windows.Job:
    raise PermissionError(13, "Access is denied")


def test_refused_job_is_logged_and_the_program_runs(stand_in: StandIn, caplog: pytest.LogCaptureFixture) -> None:
    popen = start(stand_in, "mute", make_job=refuse)
    assert popen.job is None
    until_blocking(lambda: len(stand_in.running()) == 1)
    assert "run without a job object" in caplog.text
    windows.kill(popen)
    assert popen.wait(60) == windows.KILLED_RETURNCODE
    windows.kill(popen)
    close(popen)


def test_failed_start_leaves_no_process(stand_in: StandIn) -> None:
    def fail(process: int) -> windows.Job:
        raise KeyboardInterrupt

    before = len(psutil.Process().children())
    with pytest.raises(KeyboardInterrupt):
        start(stand_in, "mute", make_job=fail)
    assert len(psutil.Process().children()) == before
    assert stand_in.processes() == set()  # the suspended process was not resumed


def test_job_for_an_invalid_process_handle_raises() -> None:
    with pytest.raises(OSError, match="WinError 6"):
        windows.make_job(0)


def test_rg_writes_ahead_of_a_slow_reader(stand_in: StandIn) -> None:
    """The default size of pipes on Windows, 4 KiB, would stop rg at each pause of the reader."""
    popen = start(stand_in, "endless")
    assert popen.stdout is not None
    until_blocking(lambda: len(peeked(popen)) > 4096)
    windows.kill(popen)
    popen.wait(60)
    close(popen)


def peeked(popen: windows.Popen) -> bytes:
    assert popen.stdout is not None
    assert windows.wait_for_output(popen.stdout, 60)
    return popen.stdout.read(windows.PIPE_BYTES) or b""


def test_parser_is_in_a_job_and_ends_with_its_chunker(tmp_path: Path) -> None:
    before = set(psutil.Process().children())
    with closing(CodeReader()) as chunker:
        assert [chunk.symbol for chunk in chunker.chunks_of("a.py", "def f():\n    1\n    2\n    3\n")] == ["f"]
        (parser,) = set(psutil.Process().children()) - before
    until_blocking(lambda: not parser.is_running())


def test_parser_ends_with_a_python_that_is_killed() -> None:
    program = """
        import psutil
        from ripwrap._code.treesitter.worker import CodeReader
        chunker = CodeReader()
        chunker.chunks_of("a.py", "def f():\\n    1\\n    2\\n    3\\n")
        print(*(child.pid for child in psutil.Process().children()), flush=True)
        input()
    """
    python = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert python.stdout is not None and python.stdin is not None
    with python.stdout, python.stdin:
        parsers = [int(number) for number in python.stdout.readline().split()]
        assert parsers != []
        python.kill()
        python.wait(60)
    until_blocking(lambda: not any(map(psutil.pid_exists, parsers)))
