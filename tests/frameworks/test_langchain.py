"""LangChain takes the tools as they are, for a model, and as tools of its own, to be called."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.messages.tool import tool_call
from langchain_core.tools import BaseTool, StructuredTool, tool
from langchain_core.utils.function_calling import convert_to_openai_tool

from frameworks.offers import CALLS, Call, Offer, check, check_answers, check_example, each_mistake, each_tool
from ripwrap import Workspace, sync


def tools(ws: Workspace) -> dict[str, BaseTool]:
    return {method.__name__: tool(parse_docstring=True)(method) for method in ws.tools}


def offer(made: object) -> Offer:
    """What OpenAI's models, and others by way of it, are sent."""
    function = convert_to_openai_tool(made)["function"]  # type: ignore[arg-type,unused-ignore]
    return Offer(function["name"], function["description"], function["parameters"])


def answers(ws: Workspace, calls: Sequence[Call]) -> list[str]:
    """What the tools answer to the calls of a message, in messages."""

    async def call(number: int, name: str, arguments: dict[str, object]) -> str:
        answer = await tools(ws)[name].ainvoke(tool_call(name=name, args=arguments, id=str(number)))
        assert isinstance(answer, ToolMessage)
        assert (answer.tool_call_id, answer.status) == (str(number), "success")
        return str(answer.content)

    async def all_of_them() -> list[str]:
        return await asyncio.gather(*(call(number, *each) for number, each in enumerate(calls)))

    return asyncio.run(all_of_them())


@each_tool
def test_a_model_is_told_what_the_signature_says(ws: Workspace, name: str) -> None:
    check(getattr(ws, name), offer(tools(ws)[name]))


@each_tool
def test_a_method_can_be_bound_to_a_model_as_it_is(ws: Workspace, name: str) -> None:
    check(getattr(ws, name), offer(getattr(ws, name)))


def test_an_agent_is_answered_what_the_methods_answer(ws: Workspace) -> None:
    check_answers(ws, answers(ws, CALLS))


@each_mistake
def test_a_mistake_is_answered_by_a_text(ws: Workspace, name: str, arguments: dict[str, object]) -> None:
    assert answers(ws, [(name, arguments)])[0].startswith("Error: ")


@pytest.mark.parametrize("name", ["grep_content", "ls"])
def test_the_blocking_methods_are_for_chains_that_do_not_await(blocking_ws: sync.Workspace, name: str) -> None:
    method = getattr(blocking_ws, name)
    made = StructuredTool.from_function(method, parse_docstring=True)
    check(method, offer(made))
    arguments = {"pattern": "TODO"} if name == "grep_content" else {}
    assert "cart.py" in made.invoke(arguments) == method(**arguments)


def test_the_example_runs(shop: Path) -> None:
    check_example("agents_langchain.py", shop)
