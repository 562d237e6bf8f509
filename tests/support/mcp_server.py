"""The command `ripwrap mcp` for tests: started over HTTP, and with an rg that waits."""

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from support.waiting import until_blocking

RIPWRAP_MCP = [sys.executable, "-W", "error", "-m", "ripwrap", "mcp"]
OVER_HTTP = (*RIPWRAP_MCP, "--http", "--port", "0")


def patient(stand_in: Callable[..., Path], told_of: Path) -> Path:
    """Return an rg that waits after its first match until a file exists."""
    return stand_in(
        f"say(BEGIN); say(MATCH)\nwhile not os.path.exists({str(told_of)!r}): time.sleep(0.01)\nsay(SUMMARY)"
    )


@dataclass
class Stuck:
    """An rg that misbehaves in its first search only."""

    rg: Path
    searching: Path


def stuck_rg(stand_in: Callable[..., Path], folder: Path, behaves: str) -> Stuck:
    """Return an rg that misbehaves in its first search only; `searching` exists since then."""
    searching = folder / "searching"
    first = f"try: os.mkdir({str(searching)!r})\nexcept FileExistsError: say(BEGIN, MATCH, SUMMARY)"
    return Stuck(stand_in(f"{first}\nelse: {behaves}()"), searching)


def rgs_of_servers(children: Callable[[], list[psutil.Process]]) -> list[psutil.Process]:
    """Return the processes that the child processes have started."""
    servers = psutil.Process().children()
    return [process for process in children() if process not in servers]


@contextmanager
def serve_http(
    log: Path, *flags: str, argv: Sequence[str] = OVER_HTTP, ends: signal.Signals = signal.SIGTERM
) -> Iterator[str]:
    """Serve the command over HTTP on a free port until the block ends; yields its address."""
    with (
        log.open("w") as stderr,
        subprocess.Popen([*argv, *flags], stdin=subprocess.DEVNULL, stderr=stderr) as process,
    ):
        try:
            until_blocking(lambda: "/mcp\n" in log.read_text() or process.poll())
            (address,) = re.findall(r"listening at (http://\S+)", log.read_text())
            yield address
            rgs = psutil.Process(process.pid).children(recursive=True)
            process.send_signal(ends)
            assert process.wait(20) == -ends
            assert not any(rg.is_running() for rg in rgs)
        finally:
            process.kill()
