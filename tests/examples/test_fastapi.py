"""The page on FastAPI and Starlette: its programs on uvicorn, with clients that disconnect."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

import demo
from support.waiting import until_blocking
from test_pages import ROOT

pytestmark = [pytest.mark.extra, pytest.mark.posix]

PROGRAMS = re.findall(
    r"^```py\n# (\S+)\n(.*?)^```$", (ROOT / "docs/how-to/fastapi.md").read_text(), re.MULTILINE | re.DOTALL
)
PLAIN = """

@app.get("/plain")
async def plain(q: str) -> int:
    try:
        return (await ripwrap.grep(q, cwd="demo")).total_matches
    except ripwrap.SearchError:  # the test has killed its rg
        return -1


@app.post("/count")
async def count_of_body(request: Request, given: dict[str, str]) -> int:
    return await count(request, given["q"])
"""
MIDDLEWARE = """

@app.middleware("http")
async def named(request: Request, call_next):
    response = await call_next(request)
    response.headers["x-named"] = "yes"
    return response
"""


@contextmanager
def serving(folder: Path, app: str, added: str = "", rg: Path | None = None) -> Generator[tuple[int, psutil.Process]]:
    """Run a program of the page on a free port; yield the port and the process."""
    demo.make(folder / "demo")
    for name, code in PROGRAMS:
        (folder / name).write_text(code + (added if name == "app.py" else ""))
    env = {**os.environ, **({} if rg is None else {"RIPWRAP_RG": str(rg)})}
    with socket.create_server(("127.0.0.1", 0)) as listening:
        command = [sys.executable, "-m", "uvicorn", app, f"--fd={listening.fileno()}", "--log-level=warning"]
        server = subprocess.Popen(command, cwd=folder, env=env, pass_fds=[listening.fileno()], stderr=subprocess.PIPE)
        port = listening.getsockname()[1]
    try:
        yield port, psutil.Process(server.pid)
    finally:
        server.terminate()
        _, errors = server.communicate(timeout=30)
    assert b"Traceback" not in errors, errors.decode()


def sent(port: int, path: str, body: str = "") -> socket.socket:
    """Send a request, and return the connection."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    method = "POST" if body else "GET"
    head = f"{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {len(body)}\r\n"
    connection.sendall(f"{head}content-type: application/json\r\n\r\n{body}".encode())
    return connection


def answer(connection: socket.socket) -> tuple[int, bytes]:
    with connection, connection.makefile("rb") as file:
        head, _, body = file.read().partition(b"\r\n\r\n")
    return int(head.split()[1]), body


@pytest.fixture
def hanging(stand_in: Callable[..., Path]) -> Path:
    return stand_in("time.sleep(600)")


@pytest.mark.parametrize("app", ["app:app", "starlette_app:app"])
def test_client_gets_an_answer(app: str, tmp_path: Path) -> None:
    with serving(tmp_path, app) as (port, _):
        assert answer(sent(port, "/count?q=TODO")) == (200, b"3")
        assert answer(sent(port, "/count"))[0] == 422
        status, body = answer(sent(port, "/count?q=("))
        assert status == 400 and b"unclosed group" in body
        if app == "app:app":
            status, body = answer(sent(port, "/lines?q=TODO"))
            assert status == 200 and b"shop/cart.py:5:    # TODO: taxes\n" in body


@pytest.mark.parametrize(
    ("path", "added", "body"),
    [
        ("/count?q=TODO", PLAIN, ""),
        ("/count?q=TODO", PLAIN + MIDDLEWARE, ""),
        ("/count", PLAIN, '{"q": "TODO"}'),
        ("/lines?q=TODO", PLAIN, ""),
    ],
    ids=["get", "middleware", "post", "stream"],
)
def test_disconnect_ends_rg_with_the_recipe_only(
    path: str, added: str, body: str, hanging: Path, tmp_path: Path
) -> None:
    """The handler without the recipe still waits for its rg when that of the recipe has ended."""
    folder = tmp_path / "served"
    folder.mkdir()
    with serving(folder, "app:app", added, hanging) as (port, server):
        with sent(port, "/plain?q=TODO"):
            (first,) = until_blocking(lambda: searching(server, 1))
            with sent(port, path, body):
                until_blocking(lambda: searching(server, 2))
        # Both clients have disconnected.
        assert until_blocking(lambda: searching(server, 1)) == [first]
        os.kill(first, signal.SIGKILL)


def searching(server: psutil.Process, number: int) -> list[int]:
    """Return the processes that search for the server, if there are as many."""
    found: list[int] = []
    for one in server.children():
        with suppress(psutil.NoSuchProcess):  # a zombie, too
            found += [one.pid] if "--json" in one.cmdline() else []
    return found if len(found) == number else []
