"""A child process: started in a group of its own; looked at, killed and reaped with all of that group."""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import IO, TypeAlias

from ripwrap.errors import SearchError

Popen: TypeAlias = "subprocess.Popen[bytes]"


def spawn(argv: Sequence[str], *, stdout: int | IO[bytes], stderr: IO[bytes], cwd: str | None = None) -> Popen:
    """Start a program with its stdin closed and no `RIPGREP_*` in its environment (rg-facts 2, 10).

    Raises:
        OSError: It cannot be started.
        ValueError: A NUL is in an argument.
    """
    return subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        cwd=cwd,
        env={name: value for name, value in os.environ.items() if not name.startswith("RIPGREP_")},
        bufsize=0,
        # A group of its own: a launcher's rg is killed with it, and Ctrl-C reaches rg through us alone.
        process_group=0 if os.name == "posix" else None,
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )


@contextmanager
def uninterrupted() -> Generator[None]:
    """Have a Ctrl-C wait until this is over: to start a child, and to make sure that somebody ends it.

    `subprocess` forgets a child that it has started when Ctrl-C comes before it returns (guarantees.md). Only the main
    thread is ever interrupted, and only where Python handles the signal.
    """
    handler = signal.getsignal(signal.SIGINT)
    waiting: list[tuple[int, FrameType | None]] = []
    try:
        if callable(handler):
            signal.signal(signal.SIGINT, lambda number, frame: waiting.append((number, frame)))
    except ValueError:  # not the main thread
        handler = None
    try:
        yield
    finally:
        if callable(handler):
            signal.signal(signal.SIGINT, handler)
            for number, frame in waiting:
                handler(number, frame)


def temporary_file() -> IO[bytes]:
    """A file for what a child says, which cannot fill up as a pipe would.

    Raises:
        SearchError: There is no place for one.
    """
    try:
        return tempfile.TemporaryFile()
    except OSError as error:
        raise SearchError(
            f"what rg says needs a temporary file: {error}; set TMPDIR to a folder to write to"
        ) from error


def peek(popen: Popen) -> int | None:
    """Its exit code if it has ended; it is not reaped for that where that can be avoided."""
    if popen.returncode is None and hasattr(os, "waitid"):  # macOS has it from Python 3.13 on, Windows never
        with suppress(ChildProcessError):
            ended = os.waitid(os.P_PID, popen.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None:
                return None
            return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
    return popen.poll()


def kill(popen: Popen) -> None:
    """Kill it and its group: a launcher's rg, too. Not if it was reaped: its number may be another's by now."""
    peek(popen)
    if popen.returncode is None:
        if os.name == "posix":
            with suppress(ProcessLookupError, PermissionError):  # the second is macOS' word for a group of zombies
                os.killpg(popen.pid, signal.SIGKILL)
        else:
            popen.kill()


def reap(popen: Popen) -> int | None:
    """Its exit code if it has ended.

    What it left behind in its group is killed first, while its number is its own; where its end cannot be seen without
    reaping it (see `peek()`), that is left alone.
    """
    if peek(popen) is None:
        return None
    kill(popen)
    return popen.poll()


def gone(popen: Popen, seconds: float) -> int | None:
    """Its exit code, or `None` if it still runs after so long; blocking."""
    for pause in pauses(seconds):
        if (returncode := reap(popen)) is not None:
            return returncode
        time.sleep(pause)
    return reap(popen)


def pauses(seconds: float) -> Iterator[float]:
    """How long to sleep between two looks at a process, for so many seconds: ever longer, from 0.1 ms to 20."""
    deadline = time.monotonic() + seconds
    pause = 0.0001
    while time.monotonic() < deadline:
        yield pause
        pause = min(2 * pause, 0.02)
