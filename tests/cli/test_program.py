"""`python -m ripwrap` as a program: its exit, closed streams, Ctrl-C, and missing packages."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from ripwrap.index import RefreshResult
from support.cli import RIPWRAP, output, read_terminal
from support.effort import some
from support.waiting import until_blocking

pytestmark = pytest.mark.slow

Plant = Callable[..., Path]
RunningIn = Callable[[Path], list[psutil.Process]]


def test_program_without_stdout_says_so(plant: Plant) -> None:
    command = f"{sys.executable} -m ripwrap files >&-"
    closed = subprocess.run(command, shell=True, cwd=plant({"f": ""}), stderr=subprocess.PIPE, check=False)
    assert (closed.returncode, closed.stderr) == (
        2,
        b"ripwrap: stdout is closed, so no results can be printed; send stdout to a file or a pipe\n",
    )


@pytest.mark.posix
def test_program_on_a_terminal_prints_headings_and_colors(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    import pty  # only POSIX has it

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    leader, follower = pty.openpty()
    done = subprocess.run(
        [*RIPWRAP, "search", "needle"],
        cwd=plant({"a.py": "needle\n"}),
        stdin=subprocess.DEVNULL,
        stdout=follower,
        check=False,
    )
    os.close(follower)
    printed = read_terminal(leader)  # the output is short, so the terminal has buffered it
    os.close(leader)
    assert done.returncode == 0
    assert printed == b"\x1b[35ma.py\x1b[0m\r\n\x1b[32m1\x1b[0m:\x1b[1;31mneedle\x1b[0m\r\n"


def test_closed_pipe_ends_a_search_quietly(plant: Plant, running_in: RunningIn) -> None:
    folder = plant({"dense": "needle\n" * 50_000})
    command = [*RIPWRAP, "search", "needle"]
    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as program:
        assert program.stdout is not None and program.stderr is not None
        assert program.stdout.readline() == b"dense:1:needle\n"
        program.stdout.close()
        assert program.stderr.read() == b""
    assert program.returncode == 0
    assert running_in(folder) == []


@pytest.mark.posix
@pytest.mark.python
def test_ctrl_c_ends_a_search_quietly(plant: Plant, running_in: RunningIn) -> None:
    folder = plant({"file": "needle\n"})
    os.mkfifo(folder / "fifo")
    command = [*RIPWRAP, "search", "needle", "file", "fifo", "--threads=1"]
    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0
    ) as program:
        until_blocking(lambda: running_in(folder) or program.poll() is not None)
        os.killpg(program.pid, signal.SIGINT)
        stdout, stderr = program.communicate(timeout=30)
    assert (program.returncode, stderr) == (130, b"")
    assert stdout in (b"", b"file:1:needle\n")
    assert running_in(folder) == []


@pytest.mark.posix
@pytest.mark.python
def test_ctrl_c_while_rg_starts_ends_rg(plant: Plant, running_in: RunningIn) -> None:
    folder = plant({})
    os.mkfifo(folder / "fifo")
    code = """if True:
        import os, signal, sys
        from ripwrap.__main__ import main
        def interrupt(event, arguments):
            if event == "subprocess.Popen" and "fifo" in map(os.fsdecode, arguments[1]):
                signal.raise_signal(signal.SIGINT)
        sys.addaudithook(interrupt)
        sys.argv[1:] = ["search", "needle", "fifo"]
        main()
        """
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")
    assert running_in(folder) == []


@pytest.mark.posix
@pytest.mark.python
def test_ignored_ctrl_c_does_not_end_a_search(plant: Plant, running_in: RunningIn) -> None:
    folder = plant({})
    os.mkfifo(folder / "fifo")
    command = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", *RIPWRAP, "search", "needle", "fifo"]
    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0
    ) as program:
        until_blocking(lambda: running_in(folder) or program.poll() is not None)
        os.killpg(program.pid, signal.SIGINT)
        (folder / "fifo").write_bytes(b"needle\n")
        stdout, stderr = program.communicate(timeout=30)
    assert (program.returncode, stdout, stderr) == (0, b"fifo:1:needle\n", b"")


@pytest.mark.posix
@pytest.mark.python
def test_ctrl_c_twice_ends_an_index_build_quietly(plant: Plant, tmp_path: Path) -> None:
    folder = plant({f"{number}.py": f"def cookie{number}(): ...\n" * 20 for number in range(1_000)})
    command = [*RIPWRAP, "index", "build", f"--location={tmp_path / 'home'}", "--chunker=windows"]
    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0
    ) as program:
        until_blocking((tmp_path / "home" / "index.sqlite3-wal").exists)
        for _ in range(2):
            os.killpg(program.pid, signal.SIGINT)
            signal.sigtimedwait([], 0.005)
        stdout, stderr = program.communicate(timeout=30)
    assert (stdout, stderr) == (b"", b"")
    assert program.returncode in (130, -signal.SIGINT)  # the signal kills a Python that has removed its handlers
    assert output(*command[3:], cwd=folder).startswith("1000 added, ")


@pytest.mark.posix
def test_second_ctrl_c_at_once_ends_quietly(folder: Path) -> None:
    code = """
import signal, sys, types

set_handler, signals = signal.signal, []

def interrupted(*arguments):
    signals.append(arguments)
    if len(signals) == 1:
        raise KeyboardInterrupt
    return set_handler(*arguments)

def run():
    raise KeyboardInterrupt

sys.modules["ripwrap.cli"] = types.SimpleNamespace(run=run)
signal.signal = interrupted
from ripwrap.__main__ import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


@pytest.mark.posix
@pytest.mark.parametrize("stderr", ["2>/dev/full", "2>&-", "2> >(exec true)"])
@pytest.mark.parametrize(
    "words",
    some(
        [
            "search 'foo('",
            "search needle --coverage",
            "search needle a gone",
            "search -l needle a gone",
            "search needle late",
            "files a gone",
            "--frobnicate",
        ],
        4,
    ),
)
def test_stderr_that_cannot_be_written_changes_no_answer(words: str, stderr: str, plant: Plant) -> None:
    """A full one made 1 of the exit code 2, and a pipe without a reader 0; both cut the results after a warning."""
    if stderr == "2>/dev/full" and not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    folder = plant({"a": "needle\n", "late": b"needle\n" + b"x\n" * 50_000 + b"\0\nneedle\n"})

    def ended(redirection: str) -> tuple[int, bytes]:
        line = f"{shlex.join(RIPWRAP)} {words} --sort=path {redirection}"
        argv, null, pipe = ["bash", "-c", line], subprocess.DEVNULL, subprocess.PIPE
        done = subprocess.run(argv, cwd=folder, stdin=null, stdout=pipe, check=False)
        return done.returncode, done.stdout

    assert ended(stderr) == ended("2>/dev/null")


@pytest.mark.parametrize(
    "arguments", [["--help"], ["search", "needle"], ["rank", "needle"], ["replace", "needle", "x"], ["doctor"]]
)
def test_command_line_needs_no_extra(arguments: list[str], plant: Plant) -> None:
    """The core runs the commands; rich draws bars alone."""
    code = "import sys; sys.modules['rich'] = None; from ripwrap.__main__ import main; main()"
    argv = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(argv, cwd=plant({"a.py": "needle = 1\n"}), capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert done.stdout


@pytest.mark.posix
@pytest.mark.extra
def test_index_watch_prints_each_refresh_and_ends_quietly(plant: Plant, tmp_path: Path, running_in: RunningIn) -> None:
    pytest.importorskip("watchfiles")
    folder = plant({"a.py": "a\n"})
    command = [*RIPWRAP, "index", "watch", "--json", f"--location={tmp_path / 'home'}"]
    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0
    ) as program:
        assert program.stdout is not None
        assert RefreshResult.model_validate_json(program.stdout.readline()).added == 1
        (folder / "b.py").write_text("b\n")
        assert RefreshResult.model_validate_json(program.stdout.readline()).added == 1
        os.killpg(program.pid, signal.SIGINT)
        stdout, stderr = program.communicate(timeout=30)
    assert (program.returncode, stdout, stderr) == (130, b"", b"")
    assert running_in(folder) == []
