r"""Messages to the MCP server that are not JSON, or have half of a surrogate pair: each request is answered."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("mcp")

from support.mcp_process import forked, ripwrap_mcp
from support.mcp_server import serve_http

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
    ],
)
def test_malformed_line_is_answered_over_stdio(
    folder: Path, tmp_path: Path, line: bytes, number: int | str | None, code: int, first: bool
) -> None:
    """The SDK dropped such a line, so that the client waited for ever."""
    quiet = [b"", b"  ", rb'{"jsonrpc":"2.0","method":"notifications/x","params":{"_meta":{"a":"\ud83d"}}}']
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
