"""OpenAI's API: strict tools of a workspace, and the answers to a model's calls."""

import pytest

pytest.importorskip("openai")

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from openai.types.chat import ChatCompletionMessageFunctionToolCall
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage

from ripwrap import Workspace, sync
from ripwrap.frameworks.openai import BlockingStrictTools, StrictTools
from ripwrap.workspace.arguments import tool_names
from ripwrap.workspace.tool import tools_of
from support import providers
from support.offers import CALLS, Call, check_answers, check_blocking_answers, check_question, each_mistake
from support.tools import TOOLS

pytestmark = [pytest.mark.extra, pytest.mark.slow]


def response_calls(calls: Iterable[Call]) -> list[ResponseFunctionToolCall]:
    return [
        ResponseFunctionToolCall(type="function_call", call_id=f"{at}", name=name, arguments=json.dumps(arguments))
        for at, (name, arguments) in enumerate(calls)
    ]


def chat_calls(calls: Iterable[Call]) -> list[ChatCompletionMessageFunctionToolCall]:
    return [
        ChatCompletionMessageFunctionToolCall.model_validate(
            {"id": f"{at}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        )
        for at, (name, arguments) in enumerate(calls)
    ]


def nulls(tool: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments as a strict mode makes a model write them: all of them, null for the default."""
    return {name: given.get(name) for name in TOOLS[tool].model_fields}


@pytest.mark.parametrize("anchors", [False, True])
@pytest.mark.parametrize("index", [False, True])
def test_openai_api_tools_follow_the_rules_of_strict_mode(shop: Path, index: bool, anchors: bool) -> None:
    tools = StrictTools(Workspace(shop, index=index, anchors=anchors))
    assert [tool["name"] for tool in tools.responses] == [
        *tool_names(tools_of(Workspace), index=index, anchors=anchors)
    ]
    for tool in tools.responses:
        assert (tool["type"], tool["strict"]) == ("function", True)
        parameters: Any = tool["parameters"]
        assert parameters["additionalProperties"] is False
        assert parameters["required"] == [*parameters["properties"]]
        providers.check_openai_strict(tool["name"], parameters)
    for chat, tool in zip(tools.chat, tools.responses, strict=True):
        function = {name: value for name, value in tool.items() if name != "type"}
        assert chat == {"type": "function", "function": function}


def test_openai_api_calls_get_the_methods_answers(ws: Workspace, blocking_ws: sync.Workspace) -> None:
    calls = [(name, nulls(name, arguments)) for name, arguments in CALLS]
    outputs = asyncio.run(StrictTools(ws).outputs(response_calls(calls)))
    assert [output["call_id"] for output in outputs] == [f"{at}" for at in range(len(CALLS))]
    check_answers(ws, [str(output["output"]) for output in outputs])
    messages = asyncio.run(StrictTools(ws).messages(chat_calls(calls)))
    assert [message["tool_call_id"] for message in messages] == [f"{at}" for at in range(len(CALLS))]
    check_answers(ws, [str(message["content"]) for message in messages])
    assert BlockingStrictTools(blocking_ws).outputs(response_calls(calls)) == outputs
    assert BlockingStrictTools(blocking_ws).messages(chat_calls(calls)) == messages
    check_blocking_answers(blocking_ws, [str(message["content"]) for message in messages])


@each_mistake
def test_openai_api_call_with_a_mistake_gets_a_text(ws: Workspace, name: str, arguments: dict[str, Any]) -> None:
    (output,) = asyncio.run(StrictTools(ws).outputs(response_calls([(name, arguments)])))
    assert str(output["output"]).startswith("Error: ")


@pytest.mark.parametrize("arguments", ["", "{", "[]", '{"colour": "red"}'])
def test_openai_api_call_with_broken_arguments_gets_a_text(ws: Workspace, arguments: str) -> None:
    call = ResponseFunctionToolCall(type="function_call", call_id="1", name="grep_content", arguments=arguments)
    (output,) = asyncio.run(StrictTools(ws).outputs([call]))
    assert str(output["output"]).startswith("Error: ")


def test_openai_api_calls_of_other_functions_are_left_to_the_caller(ws: Workspace) -> None:
    said = ResponseOutputMessage(id="1", type="message", role="assistant", status="completed", content=[])
    tools = StrictTools(ws)
    assert asyncio.run(tools.outputs([said, *response_calls([("send_mail", {}), ("index_status", {})])])) == []
    assert asyncio.run(tools.messages(chat_calls([("send_mail", {})]))) == []
    assert asyncio.run(tools.messages(None)) == []


def test_openai_api_example_answers_a_question(shop: Path) -> None:
    check_question("agents_openai_api.py", shop)
