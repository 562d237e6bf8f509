"""MCP clients: the server that the command starts offers the same tools."""

import asyncio
import os
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("mcp")

from mcp import Client, StdioServerParameters, types

from frameworks.conftest import SHOP, without_network
from ripwrap import Workspace
from ripwrap.testing import write_tree
from support.offers import CALLS, MISTAKES, Offer, check, check_answers, check_example, each_tool

pytestmark = [pytest.mark.extra, pytest.mark.slow]

COMMAND = [sys.executable, "-W", "error", "-m", "ripwrap", "mcp", "--root"]


def started(folder: Path) -> StdioServerParameters:
    # By default the client passes on few variables, and none of those that block the network.
    return StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], str(folder)], env=dict(os.environ))


class Told(NamedTuple):
    """What a client has been told by a server."""

    ws: Workspace
    tools: dict[str, types.Tool]
    answers: list[types.CallToolResult]
    mistakes: list[types.CallToolResult]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """Start a server, list its tools and make all calls at once; a server takes a second to start."""
    folder = write_tree(tmp_path_factory.mktemp("shop"), SHOP) / "shop"

    async def run() -> Told:
        async with Client(started(folder), read_timeout_seconds=30) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            made = (client.call_tool(name, arguments) for name, arguments in (*CALLS, *MISTAKES))
            answers = await asyncio.gather(*made)
            return Told(Workspace(folder), tools, answers[: len(CALLS)], answers[len(CALLS) :])

    with without_network():
        return asyncio.run(run())


def text(result: types.CallToolResult) -> str:
    return "".join(part.text for part in result.content if isinstance(part, types.TextContent))


@each_tool
def test_mcp_tool_schema_equals_the_signature(told: Told, name: str) -> None:
    tool = told.tools[name]
    check(getattr(told.ws, name), Offer(tool.name, tool.description or "", tool.input_schema))


def test_mcp_tools_return_the_methods_answers(told: Told) -> None:
    check_answers(told.ws, [text(result) for result in told.answers])


def test_mcp_tools_answer_mistakes_with_error_results(told: Told) -> None:
    for mistake, result in zip(MISTAKES, told.mistakes, strict=True):
        assert result.is_error and text(result), mistake


def test_mcp_client_example_runs(shop: Path) -> None:
    check_example("agents_mcp_client.py", shop)
