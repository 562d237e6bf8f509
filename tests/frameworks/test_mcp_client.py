"""Frameworks that speak MCP get the same tools from the server that the command starts."""

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters, types

from frameworks.offers import CALLS, Call, Offer, check, check_answers, check_example, each_mistake, each_tool
from ripwrap import Workspace

COMMAND = [sys.executable, "-W", "error", "-m", "ripwrap", "mcp", "--root"]


def started(folder: Path) -> StdioServerParameters:
    # It would hand on little of the environment, and not what keeps the server from the network.
    return StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], str(folder)], env=dict(os.environ))


def results(folder: Path, calls: Sequence[Call]) -> list[types.CallToolResult]:
    """What the server answers to these calls, made at once."""

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
def test_a_client_is_told_what_the_signature_says(ws: Workspace, offered: dict[str, types.Tool], name: str) -> None:
    told = offered[name]
    check(getattr(ws, name), Offer(told.name, told.description or "", told.input_schema))


def test_a_client_is_answered_what_the_methods_answer(ws: Workspace, shop: Path) -> None:
    check_answers(ws, [text(result) for result in results(shop, CALLS)])


@each_mistake
def test_a_mistake_is_a_result_that_says_so(shop: Path, name: str, arguments: dict[str, object]) -> None:
    (result,) = results(shop, [(name, arguments)])
    assert result.is_error
    assert text(result)


def test_the_example_runs(shop: Path) -> None:
    check_example("agents_mcp_client.py", shop)
