"""Haystack: workspace methods as tools of an agent."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("haystack")

from haystack import component
from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage, ToolCall
from haystack.tools import Tool, create_tool_from_function

from ripwrap import Workspace
from ripwrap.workspace import schemas
from support.offers import CALLS, Call, Offer, check, check_answers, check_snapshot, each_mistake, each_tool

pytestmark = [pytest.mark.extra, pytest.mark.slow]


@component
class Replay:
    """A model that replays messages."""

    def __init__(self, *messages: ChatMessage) -> None:
        self.messages = list(messages)

    @component.output_types(replies=list[ChatMessage])  # type: ignore[untyped-decorator,unused-ignore]
    def run(self, messages: list[ChatMessage], tools: Any = None, **_: Any) -> dict[str, list[ChatMessage]]:
        """Return the next message."""
        return {"replies": [self.messages.pop(0)]}


def tools(ws: Workspace) -> list[Tool]:
    descriptions = {name: description for name, (description, _, _) in schemas().items()}
    return [create_tool_from_function(method, description=descriptions[method.__name__]) for method in ws.tools]


def offers(ws: Workspace) -> dict[str, Offer]:
    specs = (tool.tool_spec for tool in tools(ws))
    return {spec["name"]: Offer(spec["name"], spec["description"], spec["parameters"]) for spec in specs}


def answers(ws: Workspace, calls: Sequence[Call]) -> list[str]:
    """Run an agent whose model makes these calls at once; return the answers of the tools."""
    made = [ToolCall(name, arguments, id=str(number)) for number, (name, arguments) in enumerate(calls)]
    model = Replay(ChatMessage.from_assistant(tool_calls=made), ChatMessage.from_assistant("done"))
    run = asyncio.run(Agent(chat_generator=model, tools=tools(ws)).run_async([ChatMessage.from_user("find it")]))
    *_, last = run["messages"]
    assert last.text == "done"
    return [message.tool_call_result.result for message in run["messages"] if message.tool_call_result]


@each_tool
def test_haystack_tool_schema_equals_the_signature(ws: Workspace, name: str) -> None:
    """It reads annotations, not docstrings."""
    check(getattr(ws, name), offers(ws)[name])


def test_haystack_tool_schemas_equal_the_snapshot(ws: Workspace) -> None:
    check_snapshot("haystack", offers(ws))


def test_haystack_tools_return_the_methods_answers(ws: Workspace) -> None:
    check_answers(ws, answers(ws, CALLS))


@each_mistake
def test_haystack_tool_answers_a_mistake_with_a_text(ws: Workspace, name: str, arguments: dict[str, object]) -> None:
    assert answers(ws, [(name, arguments)])[0].startswith("Error: ")
