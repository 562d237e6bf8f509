"""Start, kill and reap a child process together with all processes that it starts."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import IO

from ripwrap._concurrency import poll_intervals
from ripwrap.errors import SearchError

if sys.platform == "win32":
    from ripwrap._subprocess.windows import (
        KILLED_RETURNCODE,
        Popen,
        is_whole,
        kill,
        peek,
        read_beginning,
        start,
        wait_for_output,
        widen_pipe,
    )
else:
    from ripwrap._subprocess.posix import (
        KILLED_RETURNCODE,
        Popen,
        is_whole,
        kill,
        peek,
        read_beginning,
        start,
        wait_for_output,
        widen_pipe,
    )

__all__ = [
    "KILLED_RETURNCODE",
    "Popen",
    "defer_interrupts",
    "is_whole",
    "kill",
    "open_temporary_file",
    "peek",
    "read_beginning",
    "reap",
    "spawn",
    "start",
    "wait_for_exit",
    "wait_for_output",
    "widen_pipe",
]


def spawn(
    argv: Sequence[str],
    *,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    stdout: int | IO[bytes],
    stderr: IO[bytes],
    cwd: str | None = None,
) -> Popen:
    """Start a program without `RIPGREP_*` environment variables, by default with an empty stdin (rg-facts 2, 10)."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("RIPGREP_")}
    return start(argv, stdin=stdin, stdout=stdout, stderr=stderr, env=env, cwd=cwd)


@contextmanager
def defer_interrupts() -> Generator[None]:
    """Delay Ctrl-C until the end of the `with` block, in which the caller starts a child and registers its finalizer.

    `subprocess` loses a child if Ctrl-C comes after its start and before `Popen()` returns
    (docs/explanation/guarantees.md). Only the main thread receives Ctrl-C, and only if Python handles the signal.
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
    """Open a temporary file for the output of a child; unlike a pipe, it does not fill up."""
    try:
        return tempfile.TemporaryFile()
    except OSError as error:
        raise SearchError(
            f"could not create a temporary file for a program's output: {error}; set TMPDIR to a writable directory"
        ) from error


def reap(popen: Popen) -> int | None:
    """Reap a child that has ended and return its exit code; return `None` if the child still runs.

    On POSIX, reaping frees the id of the process group, so this function first kills the processes that the child
    started. On POSIX systems without `os.waitid()`, `peek()` itself reaps the child, and the processes that the child
    started keep running.
    """
    if peek(popen) is None:
        return None
    kill(popen)
    return popen.poll()


def wait_for_exit(popen: Popen, seconds: float) -> int | None:
    """Block until a child has ended and return its exit code, or `None` if it still runs after `seconds`."""
    for pause in poll_intervals(seconds):
        if (returncode := reap(popen)) is not None:
            return returncode
        time.sleep(pause)
    return reap(popen)
