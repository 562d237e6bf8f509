"""Start, kill and reap a child process together with its process group."""

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
        ValueError: An argument has a NUL.
    """
    return subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        cwd=cwd,
        env={name: value for name, value in os.environ.items() if not name.startswith("RIPGREP_")},
        bufsize=0,
        # A group of its own: a launcher's rg is killed with it, and Ctrl-C does not reach rg directly (rg-facts 35).
        process_group=0 if os.name == "posix" else None,
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )


@contextmanager
def defer_interrupts() -> Generator[None]:
    """Deliver a Ctrl-C only after the block, which starts a child and makes sure that it will be ended.

    `subprocess` loses a child if Ctrl-C comes after its start and before `Popen()` returns
    (docs/explanation/guarantees.md). Only the main thread gets a Ctrl-C, and only if Python handles the signal.
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


def open_temporary_file() -> IO[bytes]:
    """Open a temporary file for the output of a child; unlike a pipe, it does not fill up.

    Raises:
        SearchError: It cannot be created.
    """
    try:
        return tempfile.TemporaryFile()
    except OSError as error:
        raise SearchError(
            f"could not create a temporary file for rg's stderr: {error}; set TMPDIR to a writable folder"
        ) from error


def peek(popen: Popen) -> int | None:
    """Return the exit code, or `None` for a running child, without reaping it where the system can do that."""
    if popen.returncode is None and hasattr(os, "waitid"):  # macOS has it from Python 3.13 on, Windows never
        with suppress(ChildProcessError):
            ended = os.waitid(os.P_PID, popen.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None:
                return None
            return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
    return popen.poll()


def kill(popen: Popen) -> None:
    """Kill a child and its group, unless it was reaped: then its number may belong to another process."""
    peek(popen)
    if popen.returncode is None:
        if os.name == "posix":
            with suppress(ProcessLookupError, PermissionError):  # macOS: PermissionError for a group of zombies
                os.killpg(popen.pid, signal.SIGKILL)
        else:
            popen.kill()


def reap(popen: Popen) -> int | None:
    """Reap a child that has ended and return its exit code; return `None` if it runs.

    The other processes of its group are killed first, because reaping frees the number of the group. If `peek()` cannot
    see the end without reaping, these processes are left running.
    """
    if peek(popen) is None:
        return None
    kill(popen)
    return popen.poll()


def wait_for_exit(popen: Popen, seconds: float) -> int | None:
    """Block until a child has ended and return its exit code, or `None` if it runs after `seconds`."""
    for pause in poll_intervals(seconds):
        if (returncode := reap(popen)) is not None:
            return returncode
        time.sleep(pause)
    return reap(popen)


def poll_intervals(seconds: float) -> Iterator[float]:
    """Yield the seconds to sleep between two checks of a process, from 0.1 ms doubling to 20 ms, for `seconds`."""
    deadline = time.monotonic() + seconds
    pause = 0.0001
    while time.monotonic() < deadline:
        yield pause
        pause = min(2 * pause, 0.02)
