"""One time limit for a call: the installation of rg, the wait for a slot and all steps count for it."""

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

import ripwrap
from ripwrap import sync
from ripwrap.binary import RgBinary

Plant = Callable[..., Path]
FAR = 20.0
"""Bound in seconds for a call with a limit of one second; without the limit, a download takes more than 90 seconds."""


@pytest.fixture
def silent_mirror(no_rg: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A mirror that accepts connections and never answers."""
    held: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            try:
                while True:
                    held.append(server.accept()[0])
            except OSError:  # the server is closed
                return

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        monkeypatch.delenv("RIPWRAP_OFFLINE", raising=False)
        monkeypatch.setenv("RIPWRAP_MIRROR", f"http://127.0.0.1:{server.getsockname()[1]}")
        yield
        server.shutdown(socket.SHUT_RDWR)
        thread.join(10)
    for one in held:
        one.close()


def seconds_of(call: Callable[[], object]) -> float:
    begun = time.monotonic()
    call()
    return time.monotonic() - begun


CALLS: list[Callable[..., object]] = [
    lambda **given: sync.grep("x", **given),
    lambda **given: list(sync.search("x", **given)),
    lambda **given: sync.files_matching(all_of="x", **given),
    sync.tree_text,
    lambda **given: sync.grep_in("x", [("a", "x")], timeout=given["timeout"]),
    lambda **given: anyio.run(lambda: ripwrap.grep("x", **given)),
]


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_installation_counts_for_the_limit(call: Callable[..., object], plant: Plant, silent_mirror: None) -> None:
    """`sync.grep(timeout=3)` took 92.7 s with such a mirror, and `sync.search(timeout=3)` 3 s."""

    def run() -> None:
        with pytest.raises(TimeoutError, match=r"(rg was not installed within|took more than) timeout=[0-9.]+ seconds"):
            call(cwd=plant({"a": "x\n"}), timeout=1)

    assert seconds_of(run) < FAR


@pytest.mark.slow
def test_tool_ends_at_its_limit_and_a_second_call_does_not_wait_again(plant: Plant, silent_mirror: None) -> None:
    """`ls` took 93 s and `grep_content` 92 s with `timeout=10`, again for each workspace."""
    root = plant({"a": "x\n"})
    workspace = sync.Workspace(root, timeout=1)
    texts: list[str] = []
    assert seconds_of(lambda: texts.append(workspace.grep_content("x"))) < FAR
    assert "not installed within" in texts[0]
    assert seconds_of(lambda: texts.append(workspace.ls())) < 1
    assert "  - a" in texts[1].splitlines()
    assert seconds_of(lambda: texts.append(sync.Workspace(root, timeout=600).grep_content("x"))) < FAR
    assert texts[2] == texts[0]


@pytest.mark.parametrize("options", [{}, {"near": "y"}, {"explain": True}, {"encoding": "detect"}])
def test_wait_for_a_slot_counts_for_the_limit(options: dict[str, Any], plant: Plant) -> None:
    folder = plant({"a": "x\n"})
    held, free = threading.Event(), threading.Event()

    def hold() -> None:
        from ripwrap._ripgrep.process import SLOTS

        with SLOTS.held(None):
            held.set()
            free.wait(10)

    ripwrap.limit_processes(1)
    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert held.wait(10)
        result = sync.grep("x", cwd=folder, timeout=0.2, **options)
        assert (result.stop_reason, result.exact, result.total_matches) == ("timeout", False, 0)
        assert thread.is_alive()  # the call did not wait for the slot
    finally:
        free.set()
        thread.join(10)
        ripwrap.limit_processes(4)
    assert sync.grep("x", cwd=folder, timeout=20).total_matches == 1


@pytest.mark.parametrize("hidden", [False, True])
def test_first_ls_falls_back_at_once(plant: Plant, silent_mirror: None, hidden: bool) -> None:
    """The first `ls` waited for the mirror up to the limit of the call, and then listed without rg."""
    root = plant({"a": "x\n", "b/.c": ""})
    for workspace in (sync.Workspace(root, timeout=600), sync.Workspace(root, timeout=None)):
        listed: list[Any] = []
        begun = time.monotonic()
        listed.append(workspace.ls_result(include_hidden=hidden))
        assert time.monotonic() - begun < FAR
        assert (listed[0].engine, listed[0].total_files) == ("python", 2 if hidden else 1)

    async def asynchronous() -> None:
        assert "  - a" in await ripwrap.Workspace(root, timeout=None).ls()

    anyio.run(asynchronous)


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["grep_content", "ls"])  # that needs rg, and that can do without
def test_rg_that_appears_after_a_failed_download_is_used_at_once(
    rg: RgBinary, plant: Plant, tmp_path: Path, no_rg: None, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    """A workspace used it after 60 seconds, and `search()` at once."""
    monkeypatch.delenv("RIPWRAP_OFFLINE")
    with socket.socket() as nobody:  # bound, but does not listen: connections are refused
        nobody.bind(("127.0.0.1", 0))
        monkeypatch.setenv("RIPWRAP_MIRROR", f"http://127.0.0.1:{nobody.getsockname()[1]}")
        workspace = sync.Workspace(plant({"a": "x\n"}), timeout=5)
        failed = workspace.grep_content("x")
        assert "ripgrep (rg) was not found" in failed
        assert workspace.grep_content("x") == failed
        folder = tmp_path / "late"
        folder.mkdir()
        (folder / "rg").symlink_to(rg.path)
        monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
        arguments = {"pattern": "x"} if tool == "grep_content" else {}
        result = workspace.call_result(tool, arguments)
        assert (result.engine, "(1 " in str(result)) == ("rg", True)
        monkeypatch.setenv("PATH", str(tmp_path))
        assert workspace.grep_content("x").startswith("Error: ripgrep (rg) was not found")
