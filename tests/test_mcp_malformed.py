r"""Messages to the MCP server that are not JSON, or have half of a surrogate pair: each request is answered."""

import json
import logging
import os
import signal
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

pytest.importorskip("mcp")

from ripwrap.mcp import transports
from support.mcp_process import forked, ripwrap_mcp
from support.mcp_server import OVER_HTTP, serve_http
from support.waiting import until_blocking

pytestmark = pytest.mark.extra

HALF = (
    rb'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"read_file","arguments":{"path":"a\ud83d.txt"}}}'
)
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
NO_IDS = (b"null", b"true", b"false", b"1.5", b"1.0", b"1e2", b"{}", b"[]", b'["a"]', b'{"id":1}')
HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(
    ("line", "number", "code"),
    [
        (HALF, 5, -32700),
        (HALF.replace(b"5", b'"five"'), "five", -32700),
        (HALF.replace(b"5", rb'"\udc00"'), None, -32700),
        (HALF[:-9], None, -32700),
        (b"not JSON", None, -32700),
        (b"\xff\xfe", None, -32700),
        (b"[" * 100_000, None, -32700),
        (b'{"jsonrpc":"2.0","id":7,"method":5}', 7, -32600),
        (b"[]", None, -32600),
        *[(b'{"jsonrpc":"2.0","id":%s,"method":"ping"}' % number, None, -32600) for number in NO_IDS],
        (b'{"jsonrpc":"2.0","id":null,"method":"notifications/initialized"}', None, -32600),
    ],
)
def test_malformed_line_is_answered_over_stdio(
    folder: Path, tmp_path: Path, line: bytes, number: int | str | None, code: int, first: bool
) -> None:
    """The SDK dropped such a line, so that the client waited for ever."""
    quiet = [
        b"",
        b"  ",
        b'{"jsonrpc":"2.0","method":"notifications/\xff","params":{"id":null}}',
        rb'{"jsonrpc":"2.0","method":"notifications/x","params":{"_meta":{"a":"\ud83d"}}}',
    ]
    sent = [json.dumps(INITIALIZE).encode(), b'{"jsonrpc":"2.0","method":"notifications/initialized"}']
    sent = [*quiet, line, *sent] if first else [*sent, *quiet, line]
    with forked(ripwrap_mcp, "--root", str(folder), stderr=tmp_path / "log") as process:
        process.stdin.write(b"\n".join([*sent, b'{"jsonrpc":"2.0","id":"last","method":"ping"}', b""]))
        process.stdin.flush()
        answers: list[dict[str, Any]] = []
        while not answers or answers[-1]["id"] != "last":
            answers.append(json.loads(process.stdout.readline()))
    errors = [answer for answer in answers if "error" in answer]
    assert [(answer["id"], answer["error"]["code"]) for answer in errors] == [(number, code)]
    assert len(answers) == 3
    if number == 5:
        assert "half of a surrogate pair" in errors[0]["error"]["message"]


@pytest.mark.parametrize("body", [HALF, b"not JSON", b"", b"\xff\xfe", b"[" * 100_000])
def test_malformed_request_is_answered_over_http(folder: Path, tmp_path: Path, body: bytes) -> None:
    """Over HTTP, the answer is an error, too."""
    with serve_http(tmp_path / "log", "--root", str(folder)) as address, httpx.Client(timeout=20) as client:
        session = client.post(address, json=INITIALIZE, headers=HEADERS).headers["mcp-session-id"]
        answer = client.post(address, content=body, headers={**HEADERS, "mcp-session-id": session})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32700)


@pytest.mark.posix
@pytest.mark.parametrize("flags", [(), OVER_HTTP])
def test_stderr_that_nobody_reads_does_not_stop_the_server(
    folder: Path, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    """A pipe is full when the server starts, and warns that rg is missing."""
    log = tmp_path / "log"
    os.mkfifo(log)
    reads = os.open(log, os.O_RDONLY | os.O_NONBLOCK)
    fills = os.open(log, os.O_WRONLY | os.O_NONBLOCK)
    with suppress(BlockingIOError):
        while os.write(fills, bytes(4096)):
            pass
    with forked(ripwrap_mcp, "--root", str(folder), "--rg", str(tmp_path / "none"), *flags, stderr=log) as process:
        if flags:
            ends = psutil.Process(process.pid)
            until_blocking(lambda: [one for one in ends.net_connections() if one.status == psutil.CONN_LISTEN])
            (port,) = (one.laddr.port for one in ends.net_connections() if one.status == psutil.CONN_LISTEN)
            with httpx.Client(timeout=20) as client:
                for _ in range(20):
                    answer = client.post(f"http://127.0.0.1:{port}/mcp", json=INITIALIZE, headers=HEADERS)
                    assert answer.status_code == 200
        else:
            process.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == 0
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == -signal.SIGTERM
    os.close(reads)
    os.close(fills)


def test_requests_that_are_broken_off_are_not_logged(folder: Path, tmp_path: Path) -> None:
    """A traceback for each of them filled the pipe of stderr."""
    head = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 500\r\n"
    with serve_http(tmp_path / "log", "--root", str(folder)) as address, httpx.Client(timeout=20) as client:
        before = (tmp_path / "log").read_text()
        for sent in (b"", b"{", b"x" * 499, b"\xff"):
            with socket.create_connection(("127.0.0.1", httpx.URL(address).port or 0)) as broken:
                broken.sendall(head + b"Accept: application/json, text/event-stream\r\n\r\n" + sent)
        assert client.post(address, json=INITIALIZE, headers=HEADERS).status_code == 200
    assert (tmp_path / "log").read_text() == before


def test_log_keeps_what_fits_and_waits_for_nobody(capfd: pytest.CaptureFixture[str]) -> None:
    handler = transports._LogHandler()  # pyright: ignore[reportPrivateUsage]
    for number in range(3000):
        handler.emit(logging.LogRecord("n", logging.INFO, "", 0, f"{number:04}", None, None))
    handler.flush()
    lines = capfd.readouterr().err.splitlines()
    assert lines == sorted(lines)
    assert len(lines) >= 1000
