"""Start, kill and reap a child process together with all processes that it starts."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Callable, Sequence
from typing import IO, TypeVar

from ripwrap._system.concurrency import defer_interrupts, poll_intervals
from ripwrap.errors import SearchError

if sys.platform == "win32":
    from ripwrap._system.subprocess.windows import (
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
    from ripwrap._system.subprocess.posix import (
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
    "TemporaryFolder",
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

T = TypeVar("T")


def spawn(
    argv: Sequence[str],
    *,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    stdout: int | IO[bytes],
    stderr: int | IO[bytes],
    cwd: str | None = None,
) -> Popen:
    """Start a program without `RIPGREP_*` environment variables, by default with an empty stdin (rg-facts 2, 10)."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("RIPGREP_")}
    return start(argv, stdin=stdin, stdout=stdout, stderr=stderr, env=env, cwd=cwd)


class TemporaryFolder:
    """Temporary directory. It is deleted by `delete()`, with this object or at exit, but not by a forked child."""

    def __init__(self, prefix: str) -> None:
        with defer_interrupts():
            self.path: str = _in_temporary_folder(lambda: tempfile.mkdtemp(prefix=prefix))
            self._finalizer = weakref.finalize(self, _delete, self.path, os.getpid())

    def __enter__(self) -> str:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.delete()

    def delete(self) -> None:
        """Delete the directory, if it is not deleted yet."""
        with defer_interrupts():
            self._finalizer()


def _delete(folder: str, pid: int) -> None:
    if os.getpid() == pid:
        shutil.rmtree(folder, ignore_errors=True)


def open_temporary_file() -> IO[bytes]:
    """Open a temporary file for the output of a child; unlike a pipe, it does not fill up."""
    with defer_interrupts():
        return _in_temporary_folder(tempfile.TemporaryFile)


def _in_temporary_folder(make: Callable[[], T]) -> T:
    try:
        return make()
    except OSError as error:
        raise SearchError(
            f"could not make a temporary file or directory: {error}; set TMPDIR to a writable directory"
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
