"""The gate of the MCP server over HTTP: hosts, origins, sessions and sizes that it refuses, in the real application."""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

pytest.importorskip("mcp")

from ripwrap import mcp
from ripwrap.mcp.transports import (
    Gate,
    ServerLimits,
    _gated,  # pyright: ignore[reportPrivateUsage]
    parse_authority,
)

pytestmark = [pytest.mark.anyio, pytest.mark.extra, pytest.mark.loops("asyncio")]

HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}


@asynccontextmanager
async def connected(
    folder: Path, limits: ServerLimits | None = None, allowed: tuple[str, ...] = ()
) -> AsyncGenerator[httpx.AsyncClient]:
    """Serve the real application behind the gate in this process, without a socket."""
    made = mcp.server(folder)
    gate = _gated(made, "127.0.0.1", "127.0.0.1", allowed, limits or ServerLimits())
    transport = httpx.ASGITransport(gate)
    async with (
        made.session_manager.run(),
        httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
    ):
        yield client


async def posted(client: httpx.AsyncClient, *headers: tuple[str, str], json: object = INITIALIZE) -> httpx.Response:
    named = {name.lower() for name, _ in headers}
    rest = [(name, value) for name, value in HEADERS.items() if name.lower() not in named]
    return await client.post("/mcp", json=json, headers=[*headers, *rest])


@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost:8000", "LOCALHOST:80", "localhost.", "127.0.0.1:1", "[::1]", "[0:0:0:0:0:0:0:1]:8000"],
)
async def test_hosts_of_this_machine_are_accepted(host: str, tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        assert (await posted(client, ("Host", host))).status_code == 200
        assert (await posted(client, ("Host", host), ("Origin", f"https://{host}"))).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "localhost:evil.com", "localhost:80.evil.com", "localhost:80:evil.com", "localhost:", "localhost:0",
        "localhost:65536", "localhost: 80", "localhost.evil.com", "localhost..", "evil.com", "127.0.0.1.evil.com",
        "127.0.0.1:80@evil.com", "evil.com@localhost", "localhost@evil.com", "localhost/evil.com", "localhost#evil.com",
        "localhost?evil.com", "localhost,evil.com", "[::1].evil.com", "[::1]:evil.com", "[::1]evil", "[::1", "::1",
        "[::1]]", "[::ffff:7f00:1]", "[::2]", "%6cocalhost", "localhost\\evil.com", "localhost:8000\xa0", "", ".",
        "localhost:٨٠".encode().decode("latin-1"),
    ],
)  # fmt: skip
async def test_other_hosts_and_origins_are_refused(host: str, tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        # Latin-1, in which HTTP writes headers.
        sent = [(b"Host", host.encode("latin-1")), *((k.encode(), v.encode()) for k, v in HEADERS.items())]
        assert (await client.post("/mcp", json=INITIALIZE, headers=sent)).status_code == 421
        origin = [(b"Host", b"localhost"), (b"Origin", b"http://" + host.encode("latin-1")), *sent[1:]]
        assert (await client.post("/mcp", json=INITIALIZE, headers=origin)).status_code == 403


@pytest.mark.parametrize(
    "origin",
    ["null", "http://localhost/", "http://localhost:80.evil.com", "ftp://localhost", "http:localhost", "localhost",
     "http://localhost http://evil.com", "file://localhost", "chrome-extension://localhost", "http://"],
)  # fmt: skip
async def test_origins_that_are_no_origin_of_this_machine_are_refused(origin: str, tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        assert (await posted(client, ("Host", "localhost"), ("Origin", origin))).status_code == 403


async def test_repeated_headers_are_refused(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        assert (await posted(client, ("Host", "localhost"), ("Host", "evil.com"))).status_code == 421
        assert (await posted(client, ("Host", "localhost"), ("Host", "localhost"))).status_code == 421
        origins = ("Origin", "http://localhost"), ("Origin", "http://evil.com")
        assert (await posted(client, ("Host", "localhost"), *origins)).status_code == 403


async def test_allowed_host_with_a_port_is_accepted_only_with_that_port(tmp_path: Path) -> None:
    async with connected(tmp_path, allowed=("Code.example", "[2001:db8::1]:8443")) as client:
        answers = {
            host: (await posted(client, ("Host", host))).status_code
            for host in ("code.example", "code.example:9", "[2001:DB8:0::1]:8443", "[2001:db8::1]", "[2001:db8::1]:1")
        }
    assert list(answers.values()) == [200, 200, 200, 421, 421]


@pytest.mark.parametrize("host", ["", "http://code.example", "code.example/x", "a b", "*"])
def test_allowed_host_must_be_a_name_or_address(host: str) -> None:
    with pytest.raises(ValueError, match="an allowed host must be a name or address"):
        Gate(httpx.ASGITransport, [host], ServerLimits())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def test_number_of_sessions_is_limited(tmp_path: Path) -> None:
    async with connected(tmp_path, ServerLimits(max_sessions=2)) as client:
        opened = [await posted(client) for _ in range(3)]
        assert [one.status_code for one in opened] == [200, 200, 503]
        said = json.loads(opened[2].text)["error"]["message"]
        assert "max_sessions=2 sessions are open" in said
        assert "--max-sessions" in said
        session = ("Mcp-Session-Id", opened[0].headers["mcp-session-id"])
        await client.delete("/mcp", headers=[session, *HEADERS.items()])
        assert (await posted(client)).status_code == 200


async def test_session_that_is_idle_ends(tmp_path: Path) -> None:
    async with connected(tmp_path, ServerLimits(max_sessions=1, session_timeout=0.05)) as client:
        session = ("Mcp-Session-Id", (await posted(client)).headers["mcp-session-id"])
        opened = await posted(client)
        for _ in range(400):
            if opened.status_code == 200:
                break
            opened = await posted(client)
        assert opened.status_code == 200
        gone = await posted(client, session, json=PING)
        assert gone.status_code == 404
        assert "session_timeout=0.05" in gone.text
        assert "--session-timeout" in gone.text


async def test_size_of_a_request_is_limited(tmp_path: Path) -> None:
    async with connected(tmp_path, ServerLimits(max_request_bytes=1000)) as client:
        assert (await posted(client)).status_code == 200
        large = await posted(client, json={**INITIALIZE, "more": "x" * 1000})

        async def pieces() -> AsyncIterator[bytes]:
            for _ in range(20):
                yield b" " * 100

        streamed = await client.post("/mcp", content=pieces(), headers=HEADERS)
    for answer in (large, streamed):
        assert answer.status_code == 413
        assert "max_request_bytes=1000" in answer.text
        assert "--max-request-bytes" in answer.text


def test_authority_is_compared_in_its_shortest_form() -> None:
    assert parse_authority("LocalHost.:80") == ("localhost", 80)
    assert parse_authority("[0:0::1]") == ("[::1]", None)
