"""MCP clients: the server that the command starts offers the same tools."""

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("mcp")

from mcp import Client, StdioServerParameters, types

from ripwrap import Workspace
from support.offers import CALLS, MISTAKES, Call, Offer, check, check_answers, check_example, each_tool

pytestmark = [pytest.mark.extra, pytest.mark.slow]

COMMAND = [sys.executable, "-W", "error", "-m", "ripwrap", "mcp", "--root"]


def started(folder: Path) -> StdioServerParameters:
    # By default the client passes on few variables, and none of those that block the network.
    return StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], str(folder)], env=dict(os.environ))


def results(folder: Path, calls: Sequence[Call]) -> list[types.CallToolResult]:
    """Make these calls at once and return the server's results."""

    async def run() -> list[types.CallToolResult]:
        async with Client(started(folder), read_timeout_seconds=30) as client:
            return await asyncio.gather(*(client.call_tool(name, arguments) for name, arguments in calls))

    return asyncio.run(run())


def text(result: types.CallToolResult) -> str:
    return "".join(part.text for part in result.content if isinstance(part, types.TextContent))


@pytest.fixture(scope="module")
def offered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, types.Tool]:
    async def run() -> dict[str, types.Tool]:
        async with Client(started(tmp_path_factory.mktemp("empty")), read_timeout_seconds=30) as client:
            return {tool.name: tool for tool in (await client.list_tools()).tools}

    return asyncio.run(run())


@each_tool
def test_mcp_tool_schema_equals_the_signature(ws: Workspace, offered: dict[str, types.Tool], name: str) -> None:
    told = offered[name]
    check(getattr(ws, name), Offer(told.name, told.description or "", told.input_schema))


def test_mcp_tools_return_the_methods_answers(ws: Workspace, shop: Path) -> None:
    check_answers(ws, [text(result) for result in results(shop, CALLS)])


def test_mcp_tools_answer_mistakes_with_error_results(shop: Path) -> None:
    for mistake, result in zip(MISTAKES, results(shop, MISTAKES), strict=True):
        assert result.is_error and text(result), mistake


def test_mcp_client_example_runs(shop: Path) -> None:
    check_example("agents_mcp_client.py", shop)
