"""LangChain: workspace methods as a model's tools and as `StructuredTool`s."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("langchain_core")

from langchain_core.messages import ToolMessage
from langchain_core.messages.tool import tool_call
from langchain_core.tools import BaseTool, StructuredTool, tool
from langchain_core.utils.function_calling import convert_to_openai_tool

from ripwrap import Workspace, sync
from ripwrap.frameworks.langchain import WorkspaceToolkit
from ripwrap.workspace import GrepContentResult
from support.offers import (
    CALLS,
    Call,
    Offer,
    check,
    check_answers,
    check_question,
    check_snapshot,
    each_mistake,
    each_tool,
)

pytestmark = [pytest.mark.extra, pytest.mark.slow]


def tools(ws: Workspace) -> dict[str, BaseTool]:
    return {method.__name__: tool(parse_docstring=True)(method) for method in ws.tools}


def offer(made: object) -> Offer:
    """Return the description of a tool in OpenAI's format, which other providers use too."""
    function = convert_to_openai_tool(made)["function"]  # type: ignore[arg-type,unused-ignore]
    return Offer(function["name"], function["description"], function["parameters"])


def answers(ws: Workspace, calls: Sequence[Call]) -> list[str]:
    """Call the tools at once and return the texts of their answers."""

    async def call(number: int, name: str, arguments: dict[str, object]) -> str:
        answer = await tools(ws)[name].ainvoke(tool_call(name=name, args=arguments, id=str(number)))
        assert isinstance(answer, ToolMessage)
        assert (answer.tool_call_id, answer.status) == (str(number), "success")
        return str(answer.content)

    async def all_of_them() -> list[str]:
        return await asyncio.gather(*(call(number, *each) for number, each in enumerate(calls)))

    return asyncio.run(all_of_them())


@each_tool
def test_langchain_tool_schema_equals_the_signature(ws: Workspace, name: str) -> None:
    check(getattr(ws, name), offer(tools(ws)[name]))


def test_langchain_tool_schemas_equal_the_snapshot(ws: Workspace) -> None:
    check_snapshot("langchain", {name: offer(made) for name, made in tools(ws).items()})


@each_tool
def test_langchain_binds_a_method_directly(ws: Workspace, name: str) -> None:
    check(getattr(ws, name), offer(getattr(ws, name)))


def test_langchain_tools_return_the_methods_answers(ws: Workspace) -> None:
    check_answers(ws, answers(ws, CALLS))


@each_mistake
def test_langchain_tool_answers_a_mistake_with_a_text(ws: Workspace, name: str, arguments: dict[str, object]) -> None:
    assert answers(ws, [(name, arguments)])[0].startswith("Error: ")


@pytest.mark.parametrize("name", ["grep_content", "ls"])
def test_langchain_takes_blocking_methods(blocking_ws: sync.Workspace, name: str) -> None:
    method = getattr(blocking_ws, name)
    made = StructuredTool.from_function(method, parse_docstring=True)
    check(method, offer(made))
    arguments = {"pattern": "TODO"} if name == "grep_content" else {}
    assert "cart.py" in made.invoke(arguments) == method(**arguments)


def messages(toolkit: WorkspaceToolkit, calls: Sequence[Call]) -> list[ToolMessage]:
    """Call the tools of a toolkit one after the other."""
    made = {one.name: one for one in toolkit.get_tools()}

    async def all_of_them() -> list[ToolMessage]:
        return [await made[name].ainvoke(tool_call(name=name, args=arguments, id="1")) for name, arguments in calls]

    return asyncio.run(all_of_them())


@each_tool
def test_langchain_toolkit_schema_equals_the_signature(ws: Workspace, name: str) -> None:
    made = {one.name: one for one in WorkspaceToolkit(workspace=ws).get_tools()}
    check(getattr(ws, name), offer(made[name]))


def test_langchain_toolkit_returns_the_methods_answers_and_their_models(
    ws: Workspace, blocking_ws: sync.Workspace
) -> None:
    for workspace in (ws, blocking_ws):
        found = messages(WorkspaceToolkit(workspace=workspace), CALLS)
        check_answers(ws, [message.text for message in found])
        assert isinstance(found[0].artifact, GrepContentResult)
        assert [match.line for match in found[0].artifact.matches] == [2, 1]
        assert {message.status for message in found} == {"success"}


@each_mistake
def test_langchain_toolkit_reports_a_mistake_as_an_error(
    ws: Workspace, blocking_ws: sync.Workspace, name: str, arguments: dict[str, object]
) -> None:
    for workspace in (ws, blocking_ws):
        (message,) = messages(WorkspaceToolkit(workspace=workspace), [(name, {**arguments})])
        assert message.status == "error"
        assert message.text.startswith("Error: ")


def test_langchain_toolkit_takes_names_of_other_tools_and_reports_unknown_ones(ws: Workspace) -> None:
    toolkit = WorkspaceToolkit(workspace=ws)
    (known,) = messages(toolkit, [("grep_content", {"pattern": "TODO", "glob": "*.py", "-i": True})])
    assert "cart.py" in known.text
    (unknown,) = messages(toolkit, [("grep_content", {"pattern": "TODO", "colour": "red"})])
    assert "colour" in unknown.text
    assert unknown.status == "error"


def test_langchain_toolkit_of_a_blocking_workspace_can_be_invoked(blocking_ws: sync.Workspace) -> None:
    made = {one.name: one for one in WorkspaceToolkit(workspace=blocking_ws).get_tools()}
    assert made["ls"].invoke({}) == blocking_ws.ls()


def test_langchain_example_answers_a_question(shop: Path) -> None:
    check_question("agents_langchain.py", shop)


def test_langchain_toolkit_has_the_tool_of_anchors(shop: Path) -> None:
    toolkit = WorkspaceToolkit(workspace=sync.Workspace(shop, anchors=True))
    assert [one.name for one in toolkit.get_tools()][-1] == "resolve"
