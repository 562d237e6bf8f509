"""Replacement of files that are in use, and time limits of calls that block."""

import threading
from pathlib import Path

import pytest

from ripwrap._concurrency import CANCELLED, Cancellation, replace_file
from ripwrap._ripgrep.runner import BlockingRunner, run_blocking


@pytest.mark.parametrize("windows", [True, False])
def test_replacing_a_file_in_use_is_retried_on_windows(tmp_path: Path, windows: bool) -> None:
    source, target = tmp_path / "new", tmp_path / "old"
    source.write_text("new")
    target.write_text("old")
    refusals = [PermissionError(13, "used by another process")] * 3

    def replace(source: Path, target: Path) -> None:
        if refusals:
            raise refusals.pop()
        source.replace(target)

    if windows:
        replace_file(source, target, windows=True, replace=replace)
        assert target.read_text() == "new"
    else:
        with pytest.raises(PermissionError):
            replace_file(source, target, windows=False, replace=replace)
        assert target.read_text() == "old"


def test_time_limit_of_a_blocking_call_takes_no_thread() -> None:
    threads = threading.active_count()

    def work() -> tuple[int, bool]:
        return threading.active_count(), CANCELLED.get().is_set()

    assert run_blocking(BlockingRunner(None).call(work, seconds=60)) == (threads, False)
    assert run_blocking(BlockingRunner(None).call(work, seconds=0)) == (threads, True)
    assert not CANCELLED.get().is_set()


def test_wait_ends_at_the_time_limit_or_when_the_event_is_set() -> None:
    over = Cancellation(0.01)
    assert over.wait(60)
    with pytest.raises(TimeoutError, match=r"more than timeout=0\.01 seconds; allow more time"):
        over.check()
    assert not Cancellation(60).wait(0)
    for limit in (None, 60):
        cancelled = Cancellation(limit)
        assert not cancelled.is_set()
        cancelled.set()
        assert cancelled.wait()
