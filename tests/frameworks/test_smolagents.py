"""smolagents: blocking workspace methods as tools."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("smolagents")

from smolagents import ActionStep, ChatMessage, CodeAgent, LogLevel, Model, Tool, ToolCallingAgent, ToolOutput, tool
from smolagents.models import MessageRole, get_tool_json_schema

from ripwrap import sync
from support.offers import (
    CALLS,
    Call,
    Offer,
    check,
    check_blocking_answers,
    check_example,
    check_snapshot,
    each_mistake,
    each_tool,
)

pytestmark = [pytest.mark.extra, pytest.mark.slow]


class Replay(Model):
    """A model that replays messages."""

    def __init__(self, *messages: ChatMessage) -> None:
        super().__init__()
        self.messages = list(messages)

    def generate(self, *_: Any, **__: Any) -> ChatMessage:
        return self.messages.pop(0)


def saying(*calls: Call) -> ChatMessage:
    made = [
        {"id": str(number), "type": "function", "function": {"name": name, "arguments": arguments}}
        for number, (name, arguments) in enumerate(calls)
    ]
    return ChatMessage(MessageRole.ASSISTANT, tool_calls=made)


def tools(ws: sync.Workspace) -> list[Tool]:
    return [tool(method) for method in ws.tools]


def answers(ws: sync.Workspace, calls: Sequence[Call]) -> list[str]:
    """Run an agent whose model makes these calls at once, in threads; return the answers of the tools."""
    model = Replay(saying(*calls), saying(("final_answer", {"answer": "done"})))
    agent = ToolCallingAgent(tools(ws), model, verbosity_level=LogLevel.OFF)
    events = list(agent.run("find it", stream=True))
    outputs = [event for event in events if isinstance(event, ToolOutput) and not event.is_final_answer]
    assert not [event.error for event in events if isinstance(event, ActionStep) and event.error]
    return [str(output.output) for output in sorted(outputs, key=lambda output: int(output.id))]


def offers(ws: sync.Workspace) -> dict[str, Offer]:
    """Return the tools as the model gets them."""
    told = (get_tool_json_schema(each)["function"] for each in tools(ws))
    return {one["name"]: Offer(one["name"], one["description"], one["parameters"]) for one in told}


@each_tool
def test_smolagents_tool_schema_equals_the_signature(blocking_ws: sync.Workspace, name: str) -> None:
    check(getattr(blocking_ws, name), offers(blocking_ws)[name], defaults=False, bounds=False)


def test_smolagents_tool_schemas_equal_the_snapshot(blocking_ws: sync.Workspace) -> None:
    check_snapshot("smolagents", offers(blocking_ws))


def test_smolagents_tools_return_the_methods_answers(blocking_ws: sync.Workspace) -> None:
    check_blocking_answers(blocking_ws, answers(blocking_ws, CALLS))


@each_mistake
def test_smolagents_tool_answers_a_mistake_with_a_text(
    blocking_ws: sync.Workspace, name: str, arguments: dict[str, object]
) -> None:
    assert answers(blocking_ws, [(name, arguments)])[0].startswith("Error: ")


@pytest.mark.parametrize("name", ["find_files", "ls", "tree"])
def test_smolagents_tool_accepts_null_for_a_default(blocking_ws: sync.Workspace, name: str) -> None:
    nothing, nulls = answers(blocking_ws, [(name, {}), (name, {"path": None, "limit": None, "include_hidden": None})])
    assert nulls == nothing


def test_smolagents_code_agent_calls_the_tools(blocking_ws: sync.Workspace) -> None:
    code = "found = grep_content('TODO', file_pattern='*.py')\nfinal_answer(found + ls(path='.'))"
    model = Replay(ChatMessage(MessageRole.ASSISTANT, content=f"<code>\n{code}\n</code>"))
    said = CodeAgent(tools(blocking_ws), model, verbosity_level=LogLevel.OFF).run("find it")
    assert said == blocking_ws.grep_content("TODO", file_pattern="*.py") + blocking_ws.ls()


def test_smolagents_example_runs(shop: Path) -> None:
    check_example("agents_smolagents.py", shop)
