"""fastmcp: its client gets the tools, prompts and files of the server, reports progress and cancels calls."""

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastmcp")

import anyio
import fastmcp
from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy
from mcp import MCPError, types

from frameworks.blocks import run_last_block
from ripwrap import mcp
from support.mcp_server import RIPWRAP_MCP, serve_http, stuck_rg, waiting_for
from support.waiting import until

pytestmark = [pytest.mark.extra, pytest.mark.slow, pytest.mark.anyio, pytest.mark.loops("asyncio")]  # as the client

Plant = Callable[..., Path]
StandIn = Callable[..., Path]
GREP: tuple[str, dict[str, Any]] = ("grep_content", {"pattern": "TODO"})


@pytest.fixture(params=[("stdio", "legacy"), ("http", "auto")], ids=["stdio-2025", "http-2026"])
def connection(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Transport, and how the client speaks: protocol 2025-11-25, with a handshake, or 2026-07-28, without."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    transport, mode = request.param
    return transport, mode


@asynccontextmanager
async def connected(connection: tuple[str, str], tmp_path: Path, *flags: str) -> AsyncGenerator[Any]:
    """Yield a client of the command."""
    transport, mode = connection
    with ExitStack() as stack:
        if transport == "http":
            server: Any = stack.enter_context(serve_http(tmp_path / "log", *flags))
        else:
            command = [*RIPWRAP_MCP[1:], *flags]
            server = StdioTransport(RIPWRAP_MCP[0], command, env=dict(os.environ), keep_alive=False)
        async with fastmcp.Client(server, mode=mode, timeout=30) as client:
            yield client


async def test_fastmcp_client_gets_tools_prompts_and_files(
    connection: tuple[str, str], shop: Path, tmp_path: Path
) -> None:
    async with connected(connection, tmp_path, "--root", str(shop)) as client:
        assert "grep_content" in [tool.name for tool in await client.list_tools()]
        found = await client.call_tool(*GREP)
        assert "TODO: taxes" in found.content[0].text
        assert [prompt.name for prompt in await client.list_prompts()] == ["search", "find"]
        (message,) = (await client.get_prompt("search", {"query": "who pays?"})).messages
        assert '"who pays?"' in message.content.text and "codebase_search" in message.content.text
        (template,) = await client.list_resource_templates()
        assert await client.list_resources() == []
        (contents,) = await client.read_resource((shop / "cart.py").as_uri())
        assert "  2:     # TODO: taxes" in contents.text
        ref = types.ResourceTemplateReference(uri=template.uri_template)
        begun = f"{shop}/ca".removeprefix("/")
        assert (await client.complete(ref, {"name": "path", "value": begun})).values == [f"{begun}rt.py"]
        for uri in ((shop.parent / "secret.txt").as_uri(), f"file://{shop}/../secret.txt"):
            with pytest.raises(MCPError, match="outside of the allowed directories"):
                await client.read_resource(uri)


async def test_fastmcp_client_cancels_a_call_and_is_told_of_the_progress_of_the_next(
    connection: tuple[str, str], shop: Path, stand_in: StandIn, tmp_path: Path
) -> None:
    told_of = tmp_path / "told of"
    told: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))
        if progress >= 1:
            told_of.touch()

    bad = stuck_rg(stand_in, tmp_path, "silent", then=waiting_for(told_of))
    async with connected(connection, tmp_path, "--root", str(shop), "--rg", str(bad.rg)) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, *GREP)
            await until(bad.started)
            assert bad.running()
            group.cancel_scope.cancel()
        await until(lambda: not bad.running())
        with anyio.fail_after(20):
            found = await client.call_tool(*GREP, progress_handler=note)
    assert found.content[0].text
    assert told == sorted(set(told))
    assert told[-1] == (1, None, "1 found so far")


@pytest.fixture
def in_memory(clone: Path) -> Callable[..., Any]:
    """The class of the docs that connects a client to a server in memory."""
    made: Callable[..., Any] = run_last_block("FastMCP", clone)["InMemory"]
    return made


@pytest.mark.parametrize("where", ["memory", "process"])
async def test_fastmcp_proxy_keeps_annotations_prompts_errors_and_progress(
    where: str, in_memory: Callable[..., Any], shop: Path, stand_in: StandIn, tmp_path: Path
) -> None:
    told: list[tuple[float, float | None, str | None]] = []
    told_of = tmp_path / "told of"

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))
        told_of.touch()

    rg = stand_in(waiting_for(told_of))
    if where == "memory":
        transport = in_memory(mcp.server(shop, rg=str(rg)))
    else:
        flags = ["--root", str(shop), "--rg", str(rg)]
        transport = StdioTransport(RIPWRAP_MCP[0], [*RIPWRAP_MCP[1:], *flags], env=dict(os.environ))
    async with fastmcp.Client(create_proxy(transport), timeout=30) as client:
        tools = await client.list_tools()
        assert [tool.title for tool in tools][:2] == ["Search in files", "Find files by name"]
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)
        assert [prompt.name for prompt in await client.list_prompts()] == ["search", "find"]
        refused = await client.call_tool("grep_content", {"pattern": "TODO", "limit": -1}, raise_on_error=False)
        assert refused.is_error and refused.content[0].text.startswith("Error: ")
        with anyio.fail_after(20):
            found = await client.call_tool(*GREP, progress_handler=note)
    assert found.content[0].text
    assert told[-1] == (1, None, "1 found so far")
