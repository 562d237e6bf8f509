"""Replacement of files that are in use, and time limits of calls that block."""

import copy
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ripwrap
from ripwrap import index, remote, sync
from ripwrap._ripgrep.runner import BlockingRunner, run_blocking
from ripwrap._system.concurrency import CANCELLED, Cancellation, replace_file


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


STATEFUL: dict[str, Callable[[Path], object]] = {
    "ripwrap.Workspace": ripwrap.Workspace,
    "sync.Workspace": sync.Workspace,
    "sync.Workspace with masks": lambda root: sync.Workspace(root, redact=True, deny=["*.key"], index=True),
    "index.Index": index.Index,
    "sync.Index": sync.Index,
}
PLAIN: dict[str, Callable[[Path], Any]] = {
    "ripwrap.Repositories": ripwrap.Repositories,
    "sync.Repositories": sync.Repositories,
    "GrepResult": lambda root: sync.grep("needle", cwd=root),
    "ReplacePlan": lambda root: sync.replace("needle", "other", cwd=root),
    "Columns": lambda root: next(iter(sync.search_columns("needle", cwd=root))),
    "RgBinary": lambda _: sync.resolve(),
    "SshHost": lambda _: remote.SshHost(host="host"),
    "Container": lambda _: remote.Container(container="name"),
    "Worker": lambda _: ripwrap.Worker,
}


@pytest.mark.parametrize("name", STATEFUL)
@pytest.mark.parametrize("copied", [pickle.dumps, copy.copy, copy.deepcopy])
def test_object_that_holds_state_says_that_it_cannot_be_pickled(
    tmp_path: Path, name: str, copied: Callable[[object], object]
) -> None:
    """The error named a lambda of a module that no caller knows."""
    kept = STATEFUL[name](tmp_path)
    kind = type(kept).__name__
    with pytest.raises(TypeError, match=f"^{kind} objects cannot be pickled or copied, because .*make another {kind}"):
        copied(kept)


@pytest.mark.parametrize("name", PLAIN)
def test_object_without_state_can_be_pickled(tmp_path: Path, name: str) -> None:
    (tmp_path / "a").write_text("needle\n")
    kept = PLAIN[name](tmp_path)
    again = pickle.loads(pickle.dumps(kept))
    assert type(again) is type(kept)
    if "Repositories" in name:
        assert [(one.name, one.path) for one in again._roots] == [(one.name, one.path) for one in kept._roots]
    else:
        assert again == kept
