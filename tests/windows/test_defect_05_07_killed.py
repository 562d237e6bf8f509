"""An rg that somebody kills has no answer, though its exit code is that of 'nothing found'; and long time limits."""

import os
import threading
from pathlib import Path

import psutil
import pytest

from ripwrap import SearchError, sync


def test_listing_that_was_cut_off_is_no_answer(tmp_path: Path) -> None:
    for folder in range(100):
        (tmp_path / str(folder)).mkdir()
        for file in range(100):
            (tmp_path / str(folder) / f"{file:0100}").touch()
    stream = sync.files(cwd=tmp_path, threads=1)
    next(stream)
    (rg,) = psutil.Process().children()
    os.kill(rg.pid, 1)  # TerminateProcess with the exit code of the task manager
    with pytest.raises(SearchError):
        list(stream)


@pytest.mark.parametrize("seconds", [threading.TIMEOUT_MAX + 1, 1e12, float("inf")])
def test_time_limit_may_be_long(tmp_path: Path, seconds: float) -> None:
    (tmp_path / "a.txt").write_text("needle\n")
    assert sync.grep("needle", cwd=tmp_path, timeout=seconds).total_matches == 1
    assert len(list(sync.search("needle", cwd=tmp_path, timeout=seconds))) == 1
