"""OpenAI Agents SDK: workspace methods as tools."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("agents")

from agents import Agent, FunctionTool, RunConfig, Runner, function_tool
from agents.items import ToolCallOutputItem
from agents.testing import ScriptedModel, assistant_message, function_call

from ripwrap import Workspace
from support.offers import (
    CALLS,
    Call,
    Offer,
    check,
    check_answers,
    check_example,
    check_snapshot,
    each_mistake,
    each_tool,
)

pytestmark = [pytest.mark.extra, pytest.mark.slow]


def tools(ws: Workspace, *, strict: bool = False) -> list[FunctionTool]:
    return [function_tool(method, strict_mode=strict) for method in ws.tools]


def answers(ws: Workspace, calls: Sequence[Call], *, strict: bool = False) -> list[str]:
    """Run an agent whose model makes these calls at once; return the answers of the tools."""
    made = [function_call(name, arguments, call_id=str(number)) for number, (name, arguments) in enumerate(calls)]
    model = ScriptedModel([made, [assistant_message("done")]])
    agent = Agent("searcher", tools=[*tools(ws, strict=strict)], model=model)
    result = asyncio.run(Runner.run(agent, "find it", run_config=RunConfig(tracing_disabled=True)))
    assert result.final_output == "done"
    return [str(item.output) for item in result.new_items if isinstance(item, ToolCallOutputItem)]


@each_tool
@pytest.mark.parametrize("strict", [False, True])
def test_openai_tool_schema_equals_the_signature(ws: Workspace, name: str, strict: bool) -> None:
    told = next(tool for tool in tools(ws, strict=strict) if tool.name == name)
    check(getattr(ws, name), Offer(told.name, told.description, told.params_json_schema), strict=strict)
    assert (told.params_json_schema.get("additionalProperties") is False) == strict


@pytest.mark.parametrize("strict", [False, True])
def test_openai_tool_schemas_equal_the_snapshot(ws: Workspace, strict: bool) -> None:
    made = {one.name: Offer(one.name, one.description, one.params_json_schema) for one in tools(ws, strict=strict)}
    check_snapshot("openai_strict" if strict else "openai", made)


@pytest.mark.parametrize("strict", [False, True])
def test_openai_tools_return_the_methods_answers(ws: Workspace, strict: bool) -> None:
    check_answers(ws, answers(ws, CALLS, strict=strict))


@each_mistake
def test_openai_tool_answers_a_mistake_with_a_text(ws: Workspace, name: str, arguments: dict[str, object]) -> None:
    assert answers(ws, [(name, arguments)])[0].startswith("Error: ")


def test_openai_example_runs(shop: Path) -> None:
    check_example("agents_openai.py", shop)
