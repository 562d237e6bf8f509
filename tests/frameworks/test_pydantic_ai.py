"""pydantic-ai takes the tools as they are."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from pydantic_ai import Agent, ModelMessage, ModelResponse, RetryPromptPart, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from frameworks.offers import CALLS, Call, Offer, check, check_answers, check_example, each_mistake, each_tool
from ripwrap import Workspace


def back(messages: list[ModelMessage]) -> list[ToolReturnPart | RetryPromptPart]:
    """What came back to the model."""
    parts = (part for message in messages for part in message.parts)
    return [part for part in parts if isinstance(part, ToolReturnPart | RetryPromptPart)]


def answers(ws: Workspace, calls: Sequence[Call]) -> list[str]:
    """What an agent's tools answer to a model that makes all these calls at once."""

    def model(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        if back(messages):
            return ModelResponse([TextPart("done")])
        return ModelResponse([ToolCallPart(name, arguments) for name, arguments in calls])

    run = asyncio.run(Agent(FunctionModel(model), tools=ws.tools).run("find it"))
    assert run.output == "done"
    return [str(part.content) for part in back(run.all_messages())]


@each_tool
def test_a_model_is_told_what_the_signature_says(ws: Workspace, name: str) -> None:
    model = TestModel(call_tools=[])
    asyncio.run(Agent(model, tools=ws.tools).run("hello"))
    assert model.last_model_request_parameters is not None
    told = model.last_model_request_parameters.tool_defs[name]
    check(getattr(ws, name), Offer(told.name, told.description or "", told.parameters_json_schema))
    # It makes XML of a docstring that has a section on what is returned.
    assert "<" not in (told.description or "")


def test_an_agent_is_answered_what_the_methods_answer(ws: Workspace) -> None:
    check_answers(ws, answers(ws, CALLS))


@each_mistake
def test_a_mistake_is_answered_by_a_text(ws: Workspace, name: str, arguments: dict[str, object]) -> None:
    assert answers(ws, [(name, arguments)])[0].startswith("Error: ")


def test_arguments_made_from_the_schema_alone_are_taken(ws: Workspace) -> None:
    run = asyncio.run(Agent(TestModel(), tools=ws.tools).run("call everything"))
    assert [type(part) for part in back(run.all_messages())] == [ToolReturnPart] * len(ws.tools)


def test_the_example_runs(shop: Path) -> None:
    check_example("agents_pydantic_ai.py", shop)
