"""pydantic-ai: workspace methods as tools."""

import pytest

pytest.importorskip("pydantic_ai")

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, ModelMessage, ModelResponse, RetryPromptPart, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from ripwrap import Workspace, sync
from ripwrap.frameworks.pydantic_ai import WorkspaceToolset
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


def back(messages: list[ModelMessage]) -> list[ToolReturnPart | RetryPromptPart]:
    """Return the tool results that the model received."""
    parts = (part for message in messages for part in message.parts)
    return [part for part in parts if isinstance(part, ToolReturnPart | RetryPromptPart)]


def parts(agent_options: dict[str, Any], calls: Sequence[Call]) -> list[ToolReturnPart | RetryPromptPart]:
    """Run an agent whose model makes these calls at once; return the results of the tools."""

    def model(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        if back(messages):
            return ModelResponse([TextPart("done")])
        return ModelResponse([ToolCallPart(name, arguments) for name, arguments in calls])

    run = asyncio.run(Agent(FunctionModel(model), **agent_options).run("find it"))
    assert run.output == "done"
    return back(run.all_messages())


def answers(ws: Workspace, calls: Sequence[Call]) -> list[str]:
    return [str(part.content) for part in parts({"tools": ws.tools}, calls)]


def offers(ws: Workspace, *, toolset: bool = False) -> dict[str, Offer]:
    """Return the tools as the model gets them."""
    model = TestModel(call_tools=[])
    asyncio.run(Agent(model, **({"toolsets": [WorkspaceToolset(ws)]} if toolset else {"tools": ws.tools})).run("hello"))
    assert model.last_model_request_parameters is not None
    told = model.last_model_request_parameters.tool_defs
    return {name: Offer(name, one.description or "", one.parameters_json_schema) for name, one in told.items()}


@each_tool
def test_pydantic_ai_tool_schema_equals_the_signature(ws: Workspace, name: str) -> None:
    offer = offers(ws)[name]
    check(getattr(ws, name), offer)
    # pydantic-ai turns a docstring with a Returns section into XML.
    assert "<" not in offer.description


def test_pydantic_ai_tool_schemas_equal_the_snapshot(ws: Workspace) -> None:
    check_snapshot("pydantic_ai", offers(ws))


def test_pydantic_ai_tools_return_the_methods_answers(ws: Workspace) -> None:
    check_answers(ws, answers(ws, CALLS))


@each_mistake
def test_pydantic_ai_tool_answers_a_mistake_with_a_text(ws: Workspace, name: str, arguments: dict[str, object]) -> None:
    assert answers(ws, [(name, arguments)])[0].startswith("Error: ")


def test_pydantic_ai_tools_accept_arguments_generated_from_the_schema(ws: Workspace) -> None:
    run = asyncio.run(Agent(TestModel(), tools=ws.tools).run("call everything"))
    assert [type(part) for part in back(run.all_messages())] == [ToolReturnPart] * len(ws.tools)


@each_tool
def test_pydantic_ai_toolset_schema_equals_the_signature(ws: Workspace, name: str) -> None:
    check(getattr(ws, name), offers(ws, toolset=True)[name])


def test_pydantic_ai_toolset_returns_the_methods_answers_and_their_models(
    ws: Workspace, blocking_ws: sync.Workspace
) -> None:
    for workspace in (ws, blocking_ws):
        found = parts({"toolsets": [WorkspaceToolset(workspace)]}, CALLS)
        check_answers(ws, [str(part.content) for part in found])
        assert isinstance(found[0], ToolReturnPart)
        assert isinstance(found[0].metadata, GrepContentResult)
        assert [match.line for match in found[0].metadata.matches] == [2, 1]


@each_mistake
def test_pydantic_ai_toolset_reports_a_mistake_as_a_failed_call(
    ws: Workspace, blocking_ws: sync.Workspace, name: str, arguments: dict[str, object]
) -> None:
    for workspace in (ws, blocking_ws):
        (part,) = parts({"toolsets": [WorkspaceToolset(workspace)]}, [(name, arguments)])
        assert isinstance(part, ToolReturnPart)
        assert part.outcome == "failed"
        assert str(part.content).startswith("Error: ")


def test_pydantic_ai_toolset_has_the_tools_of_an_index(shop: Path) -> None:
    toolset: WorkspaceToolset[None] = WorkspaceToolset(Workspace(shop, index=True))
    assert [*toolset.tools][-3:] == ["index_codebase", "index_status", "index_health_check"]


def test_pydantic_ai_toolset_has_the_tool_of_anchors(shop: Path) -> None:
    toolset: WorkspaceToolset[None] = WorkspaceToolset(Workspace(shop, anchors=True))
    assert [*toolset.tools][-1] == "resolve"


def test_pydantic_ai_example_answers_a_question(shop: Path) -> None:
    check_question("agents_pydantic_ai.py", shop)
