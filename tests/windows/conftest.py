"""Fixtures of the tests that only Windows can run; `nox -s windows` runs them under Wine."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from ripwrap.binary.cache import VARIABLES
from support.waiting import until_blocking

if os.name != "nt":
    pytest.exit("tests/windows needs Windows; `nox -s windows` runs it under Wine", returncode=4)

SHOP = {
    "src/cart.py": "class Cart:\n    def add_item(self, item):\n        self.items.append(item)\n",
    "src/cookies.py": "def store_cookie(jar, cookie):\n    jar.cookies.append(cookie)\n",
    "README.md": "# Shop\n\nA shop that sells cookies.\n",
}

WORST: dict[str, float] = {}
"""Longest time in seconds until all processes of a stand-in had ended, for each way to end it."""


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Unset the variables that ripwrap reads, forbid downloads, and replace the user's cache."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RIPWRAP_OFFLINE", "1")
    monkeypatch.setenv("RIPWRAP_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def plant(tmp_path: Path) -> Callable[[dict[str, str]], Path]:
    """Write files into a new folder and return it."""

    def write(files: dict[str, str]) -> Path:
        root = tmp_path / "root"
        for name, content in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode())
        return root

    return write


@pytest.fixture
def shop(plant: Callable[[dict[str, str]], Path]) -> Path:
    return plant(SHOP)


@dataclass
class StandIn:
    """Program in place of rg (`stand_in.c`).

    Attributes:
        path: Path of the program.
        folder: Folder in which each of its processes creates a file; the name is the process id.
        patch: Fixture that sets the variables for its behaviour.
    """

    path: Path
    folder: Path
    patch: pytest.MonkeyPatch

    def does(self, what: str, child: str = "") -> Path:
        """Set the behaviour of the program and of its child from now on; return the path of the program."""
        self.patch.setenv("STAND_IN", what)
        self.patch.setenv("STAND_IN_CHILD", child)
        return self.path

    def processes(self) -> set[int]:
        """Return the ids of all its processes since the start of the test."""
        return {int(name) for name in os.listdir(self.folder)}

    def running(self) -> set[int]:
        """Return the ids of its running processes."""
        return set(filter(psutil.pid_exists, self.processes()))

    @contextmanager
    def gone_after(self, what: str) -> Iterator[None]:
        """Check that all its processes end after a block, and record the longest time until then."""
        begun = time.monotonic()
        yield
        until_blocking(lambda: self.running() == set())
        WORST[what] = max(WORST.get(what, 0), time.monotonic() - begun)


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """Return a native program in place of rg; fail if the test leaves a process of it running."""
    folder = tmp_path / "processes"
    folder.mkdir()
    monkeypatch.setenv("STAND_IN_PROCESSES", str(folder))
    stand_in = StandIn(Path(os.environ["RIPWRAP_WINDOWS_PROGRAMS"], "stand_in.exe"), folder, monkeypatch)
    yield stand_in
    left = stand_in.running()
    for number in left:
        psutil.Process(number).kill()
    assert left == set()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for what, seconds in sorted(WORST.items(), key=lambda item: item[1], reverse=True):
        terminalreporter.write_line(f"{what}: gone after {seconds:.2f} s at most")
