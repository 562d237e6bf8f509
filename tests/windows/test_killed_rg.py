"""A killed rg raises, although its exit code 1 also means 'nothing found'; long timeouts work."""

import ctypes
import threading
from pathlib import Path

import psutil
import pytest

from ripwrap import SearchError, sync

PROCESS_TERMINATE = 1


def terminate(pid: int, code: int) -> None:
    """End a process as the task manager does; Wine's `taskkill` would cause another exit code."""
    kernel = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined, unused-ignore]
    kernel.OpenProcess.restype = ctypes.c_void_p
    handle = ctypes.c_void_p(kernel.OpenProcess(PROCESS_TERMINATE, False, pid))
    kernel.TerminateProcess(handle, code)
    kernel.CloseHandle(handle)


def test_listing_of_a_killed_rg_raises(tmp_path: Path) -> None:
    for folder in range(100):
        (tmp_path / str(folder)).mkdir()
        for file in range(100):
            (tmp_path / str(folder) / f"{file:0100}").touch()
    stream = sync.files(cwd=tmp_path, threads=1)
    next(stream)
    for child in psutil.Process().children():  # rg, and the process of its console
        terminate(child.pid, 1)
    with pytest.raises(SearchError):
        list(stream)


@pytest.mark.parametrize("seconds", [threading.TIMEOUT_MAX + 1, 1e12, float("inf")])
def test_timeout_may_exceed_the_limit_of_timers(tmp_path: Path, seconds: float) -> None:
    (tmp_path / "a.txt").write_text("needle\n")
    assert sync.grep("needle", cwd=tmp_path, timeout=seconds).total_matches == 1
    assert len(list(sync.search("needle", cwd=tmp_path, timeout=seconds))) == 1
