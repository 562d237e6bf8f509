"""The command `ripwrap mcp` for tests: started over HTTP, and with an rg that waits."""

import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from support.mcp_process import Forked, forked, ripwrap_mcp
from support.waiting import until_blocking

RIPWRAP_MCP = [sys.executable, "-W", "error", "-m", "ripwrap", "mcp"]
OVER_HTTP = ("--http", "--port", "0")


def waiting_for(told_of: Path) -> str:
    """Return lines of a stand-in that waits after its first match until a file exists."""
    return f"say(BEGIN); say(MATCH)\nwhile not os.path.exists({str(told_of)!r}): time.sleep(0.01)\nsay(SUMMARY)"


def patient(stand_in: Callable[..., Path], told_of: Path) -> Path:
    """Return an rg that waits after its first match until a file exists."""
    return stand_in(waiting_for(told_of))


@dataclass
class Stuck:
    """An rg that misbehaves in its first search only."""

    rg: Path
    pid: Path
    """A link to the process ID of that search, so that it has its target as soon as it exists."""

    def started(self) -> bool:
        """Return True since the search has started."""
        return self.pid.is_symlink()

    def running(self) -> bool:
        """Return True while the search runs, and until its parent has been told of its end."""
        return self.started() and psutil.pid_exists(int(os.readlink(self.pid)))


def stuck_rg(
    stand_in: Callable[..., Path], folder: Path, behaves: str, *, then: str = "say(BEGIN, MATCH, SUMMARY)"
) -> Stuck:
    """Return an rg that misbehaves in its first search only; `then` is what later ones do."""
    pid = folder / "pid"
    first = f"try: os.symlink(str(os.getpid()), {str(pid)!r})\nexcept FileExistsError:"
    return Stuck(stand_in(f"{first}\n{textwrap.indent(then, '    ')}\nelse: {behaves}()"), pid)


@contextmanager
def listening(
    process: Forked | subprocess.Popen[bytes], log: Path, ends: signal.Signals = signal.SIGTERM
) -> Iterator[str]:
    """Yield the address of an HTTP server that writes it to a log; then end the server with a signal."""
    until_blocking(lambda: "/mcp\n" in log.read_text() or process.poll() is not None)
    (address,) = re.findall(r"listening at (http://\S+)", log.read_text())
    yield address
    children = psutil.Process(process.pid).children(recursive=True)
    # The reader of code has nothing to stop; it ends when it notices that its stdin was closed.
    rgs = [child for child in children if "treesitter.worker" not in " ".join(child.cmdline())]
    process.send_signal(ends)
    assert process.wait(20) == -ends
    assert not any(rg.is_running() for rg in rgs)


@contextmanager
def serve_http(log: Path, *flags: str, ends: signal.Signals = signal.SIGTERM) -> Iterator[str]:
    """Serve the command over HTTP on a free port until the block ends; yields its address."""
    with (
        forked(ripwrap_mcp, *OVER_HTTP, *flags, stderr=log) as process,
        listening(process, log, ends) as address,
    ):
        yield address
