"""An rg that writes nothing: timeouts and Ctrl-C end it, and an rg that could not start a thread is retried."""

import signal
import subprocess
import threading
from pathlib import Path

import anyio
import pytest

import ripwrap
from ripwrap import sync
from ripwrap._system.subprocess import open_temporary_file, read_beginning
from windows.conftest import StandIn


@pytest.mark.parametrize("launcher", [False, True])
def test_timeout_ends_an_rg_that_writes_nothing(stand_in: StandIn, launcher: bool) -> None:
    rg = stand_in.does("launch", "mute") if launcher else stand_in.does("mute")
    with stand_in.gone_after("timeout of a mute rg"), pytest.raises(TimeoutError):
        list(sync.search("x", rg=rg, timeout=0.5))


def test_ctrl_c_ends_an_rg_that_writes_nothing(stand_in: StandIn) -> None:
    threading.Timer(0.5, signal.raise_signal, [signal.SIGINT]).start()
    with stand_in.gone_after("Ctrl-C with a mute rg"), pytest.raises(KeyboardInterrupt):
        list(sync.search("x", rg=stand_in.does("mute")))


@pytest.mark.anyio
async def test_cancelled_task_ends_an_rg_that_writes_nothing(stand_in: StandIn) -> None:
    with stand_in.gone_after("cancellation of a mute rg"), anyio.move_on_after(0.5) as scope:
        async for _ in ripwrap.search("x", rg=stand_in.does("mute")):
            pass
    assert scope.cancelled_caught


@pytest.mark.anyio
async def test_rg_that_hangs_without_threads_is_retried_with_one(stand_in: StandIn) -> None:
    rg = stand_in.does("panic")
    with anyio.fail_after(60):
        assert [match.line_number async for match in ripwrap.search("x", rg=rg)] == [1]
    assert len(stand_in.processes()) == 2


@pytest.mark.parametrize("timeout", [None, 60])
def test_blocking_rg_that_hangs_without_threads_is_retried_with_one(stand_in: StandIn, timeout: float | None) -> None:
    rg = stand_in.does("panic")
    assert [match.line_number for match in sync.search("x", rg=rg, timeout=timeout)] == [1]
    assert len(stand_in.processes()) == 2


@pytest.mark.anyio
async def test_rg_that_does_not_exit_after_its_answer_is_killed(stand_in: StandIn) -> None:
    rg = stand_in.does("linger")
    with stand_in.gone_after("rg that lingers, async"):
        assert [match.line_number async for match in ripwrap.search("x", rg=rg)] == [1]


def test_blocking_rg_that_does_not_exit_after_its_answer_is_killed(stand_in: StandIn) -> None:
    rg = stand_in.does("linger")
    with stand_in.gone_after("rg that lingers, blocking"):
        assert [match.line_number for match in sync.search("x", rg=rg)] == [1]


def test_timeout_ends_a_search_if_the_child_of_an_exited_launcher_keeps_the_pipe(stand_in: StandIn) -> None:
    rg = stand_in.does("leave", "mute")
    with stand_in.gone_after("timeout of an rg whose launcher has ended"), pytest.raises(TimeoutError):
        list(sync.search("x", rg=rg, timeout=2))


def test_timeout_of_years_raises_no_error(shop: Path) -> None:
    """Timers of Windows take at most 49 days."""
    assert len(list(sync.files(cwd=shop, timeout=1e9))) == 3


def test_reading_the_output_file_of_a_child_does_not_move_its_offset() -> None:
    with open_temporary_file() as file:
        for count in range(1, 4):
            assert subprocess.run("cmd /c echo x", stdout=file, check=True).returncode == 0
            assert read_beginning(file, 100).split() == [b"x"] * count
