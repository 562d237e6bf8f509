"""smolagents takes the tools of the blocking twin as they are."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from smolagents import ActionStep, ChatMessage, CodeAgent, LogLevel, Model, Tool, ToolCallingAgent, ToolOutput, tool
from smolagents.models import MessageRole, get_tool_json_schema

from frameworks.offers import CALLS, Call, Offer, check, check_blocking_answers, check_example, each_mistake, each_tool
from ripwrap import sync


class Replay(Model):
    """Says one message after the other."""

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
    """What an agent's tools answer to a model that makes all these calls at once, in threads."""
    model = Replay(saying(*calls), saying(("final_answer", {"answer": "done"})))
    agent = ToolCallingAgent(tools(ws), model, verbosity_level=LogLevel.OFF)
    events = list(agent.run("find it", stream=True))
    outputs = [event for event in events if isinstance(event, ToolOutput) and not event.is_final_answer]
    assert not [event.error for event in events if isinstance(event, ActionStep) and event.error]
    return [str(output.output) for output in sorted(outputs, key=lambda output: int(output.id))]


@each_tool
def test_a_model_is_told_what_the_signature_says(blocking_ws: sync.Workspace, name: str) -> None:
    method = getattr(blocking_ws, name)
    told = get_tool_json_schema(tool(method))["function"]
    check(method, Offer(told["name"], told["description"], told["parameters"]), defaults=False)


def test_an_agent_is_answered_what_the_methods_answer(blocking_ws: sync.Workspace) -> None:
    check_blocking_answers(blocking_ws, answers(blocking_ws, CALLS))


@each_mistake
def test_a_mistake_is_answered_by_a_text(blocking_ws: sync.Workspace, name: str, arguments: dict[str, object]) -> None:
    assert answers(blocking_ws, [(name, arguments)])[0].startswith("Error: ")


@pytest.mark.parametrize("name", ["find_files", "ls", "tree"])
def test_null_is_what_it_says_may_be_given_for_a_default(blocking_ws: sync.Workspace, name: str) -> None:
    nothing, nulls = answers(blocking_ws, [(name, {}), (name, {"path": None, "limit": None, "include_hidden": None})])
    assert nulls == nothing


def test_an_agent_that_writes_code_calls_them(blocking_ws: sync.Workspace) -> None:
    code = "found = grep_content('TODO', file_pattern='*.py')\nfinal_answer(found + ls(path='.'))"
    model = Replay(ChatMessage(MessageRole.ASSISTANT, content=f"<code>\n{code}\n</code>"))
    said = CodeAgent(tools(blocking_ws), model, verbosity_level=LogLevel.OFF).run("find it")
    assert said == blocking_ws.grep_content("TODO", file_pattern="*.py") + blocking_ws.ls()


def test_the_example_runs(shop: Path) -> None:
    check_example("agents_smolagents.py", shop)
