"""A child process: started in a group of its own; looked at, killed and reaped with all of that group."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from enum import Enum
from typing import IO, TypeAlias

Popen: TypeAlias = "subprocess.Popen[bytes]"


class State(Enum):
    """How far a process is."""

    RUNS = "runs"
    ENDED = "ended, and not reaped: its number is still its own"
    REAPED = "reaped, by us or by another part of the program: its number may be another's by now"


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


def state(popen: Popen) -> State:
    """How far it is; does not reap it where that can be avoided."""
    if popen.returncode is None and hasattr(os, "waitid"):  # macOS has it from Python 3.13 on, Windows never
        try:
            ended = os.waitid(os.P_PID, popen.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return State.REAPED
        return State.ENDED if ended else State.RUNS
    return State.RUNS if popen.poll() is None else State.REAPED


def kill(popen: Popen) -> None:
    """Kill it and its group: a launcher's rg, too."""
    if state(popen) is not State.REAPED:
        _kill_group(popen)


def reap(popen: Popen) -> int | None:
    """Its exit code if it has ended.

    What it left behind in its group is killed first, while its number is its own; where its end cannot be seen without
    reaping it (see `state()`), that is left alone.
    """
    now = state(popen)
    if now is State.RUNS:
        return None
    if now is State.ENDED:
        _kill_group(popen)
    return popen.poll()


def end(popen: Popen, seconds: float) -> None:
    """Kill it with its group, and wait so long at most until it is reaped."""
    kill(popen)
    for pause in pauses(seconds):
        if reap(popen) is not None:
            return
        time.sleep(pause)


def pauses(seconds: float) -> Iterator[float]:
    """How long to sleep between two looks at a process, for so many seconds: as `Popen.wait` does."""
    deadline = time.monotonic() + seconds
    pause = 0.0005
    while time.monotonic() < deadline:
        yield pause
        pause = min(2 * pause, 0.02)


def _kill_group(popen: Popen) -> None:
    if os.name == "posix":
        with suppress(ProcessLookupError, PermissionError):  # the second is macOS' word for a group of zombies
            os.killpg(popen.pid, signal.SIGKILL)
    else:
        popen.kill()
