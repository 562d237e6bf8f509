"""Processes on POSIX: each child leads a process group, in which the processes that it starts stay by default."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, TypeAlias

if sys.platform == "win32":
    raise ImportError("ripwrap._system.subprocess.posix cannot be imported on Windows")

import fcntl

Popen: TypeAlias = "subprocess.Popen[bytes]"

KILLED_RETURNCODE = -signal.SIGKILL
"""Exit code of a child after `kill()`."""

PIPE_BYTES = 256 * 1024
"""Capacity of a pipe in bytes, on Linux: a dense search takes .93 to .98 of the time with 64 KiB.

All pipes of a user together may have 64 MiB by default (pipe(7)), so 1 MiB, which takes .80 to .95, is not taken.
"""


def start(
    argv: Sequence[str],
    *,
    stdin: int | IO[bytes],
    stdout: int | IO[bytes],
    stderr: int | IO[bytes],
    env: Mapping[str, str],
    cwd: str | None = None,
) -> Popen:
    """Start a program in a process group of its own.

    `kill()` ends the whole group, and so also an rg that a script started. A terminal's Ctrl-C does not reach the group
    (rg-facts 35).
    """
    return subprocess.Popen(
        argv, stdin=stdin, stdout=stdout, stderr=stderr, env=env, cwd=cwd, bufsize=0, process_group=0
    )


def widen_pipe(pipe: IO[bytes]) -> None:
    """On Linux, make a pipe larger than the default of 64 KiB, so that the writer waits less often for the reader."""
    if sys.platform == "linux":
        with suppress(OSError):  # the user's limit for all pipes is reached
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)


def peek(popen: Popen) -> int | None:
    """Return the exit code of a child, or `None` if it still runs. Without `os.waitid()`, also reap the child."""
    if popen.returncode is None and hasattr(os, "waitid"):  # on macOS from Python 3.13 on
        with suppress(ChildProcessError):
            ended = os.waitid(os.P_PID, popen.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None:
                return None
            return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
    return popen.poll()


def kill(popen: Popen) -> None:
    """Kill a child and its group. Do nothing if the child was reaped: its id may belong to another process."""
    peek(popen)
    if popen.returncode is None:
        # PermissionError: on macOS, all processes of the group are zombies; or this program has changed its user.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(popen.pid, signal.SIGKILL)


def wait_for_output(pipe: IO[bytes], seconds: float) -> bool:
    """Wait at most `seconds` for bytes in a pipe, or for its end; return True if a read would not block."""
    return bool(_poll(pipe, seconds))


def is_whole(popen: Popen, pipe: IO[bytes]) -> bool:  # noqa: ARG001 - Windows needs the process
    """Return True if no process can still write to a pipe; the bytes in the pipe are then the end of the output."""
    return bool(_poll(pipe, 0) & select.POLLHUP)


def _poll(pipe: IO[bytes], seconds: float) -> int:
    polling = select.poll()
    polling.register(pipe, select.POLLIN)
    ready: list[tuple[int, int]] = polling.poll(seconds * 1000)
    return ready[0][1] if ready else 0


def read_beginning(file: IO[bytes], size: int) -> bytes:
    """Return the first `size` bytes of a file that a child writes; the child's offset does not move."""
    return os.pread(file.fileno(), size, 0)
