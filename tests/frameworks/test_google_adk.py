"""Google ADK: workspace methods as tools of an agent."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest

pytest.importorskip("google.adk")

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types
from pydantic import Field

from ripwrap import Workspace
from support.offers import CALLS, Call, Offer, check, check_answers, check_snapshot, each_mistake, each_tool

pytestmark = [pytest.mark.extra, pytest.mark.slow]


class Replay(BaseLlm):
    """A model that replays messages and keeps the requests."""

    replies: list[list[types.Part]]
    requests: list[LlmRequest] = Field(default_factory=list)

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Yield the next message."""
        self.requests.append(llm_request)
        yield LlmResponse(content=types.Content(role="model", parts=self.replies.pop(0)))


def run(ws: Workspace, *replies: list[types.Part]) -> tuple[Replay, list[Any]]:
    """Run an agent whose model replies so; return the model and the responses of the tools."""
    model = Replay(model="replay", replies=[*replies, [types.Part(text="done")]])
    runner = InMemoryRunner(agent=LlmAgent(name="searcher", model=model, tools=[*ws.tools]))
    events = asyncio.run(runner.run_debug("find it", quiet=True))
    *_, last = events
    assert last.content and last.content.parts and last.content.parts[0].text == "done"
    parts = (part for event in events if event.content for part in event.content.parts or ())
    return model, [part.function_response for part in parts if part.function_response]


def answers(ws: Workspace, calls: Sequence[Call]) -> list[str]:
    """Run an agent whose model makes these calls at once; return the answers of the tools."""
    made = [
        types.Part(function_call=types.FunctionCall(id=str(number), name=name, args=arguments))
        for number, (name, arguments) in enumerate(calls)
    ]
    _, responses = run(ws, made)
    return [str(one.response["result"]) for one in sorted(responses, key=lambda one: int(one.id))]


def offers(ws: Workspace) -> dict[str, Offer]:
    """Return the tools as the model gets them."""
    model, _ = run(ws)
    declared = [one for tool in model.requests[0].config.tools or () for one in tool.function_declarations or ()]
    return {one.name: Offer(one.name, one.description, one.parameters_json_schema) for one in declared}


@each_tool
def test_google_adk_tool_schema_equals_the_signature(ws: Workspace, name: str) -> None:
    """It reads annotations, not docstrings."""
    check(getattr(ws, name), offers(ws)[name])


def test_google_adk_tool_schemas_equal_the_snapshot(ws: Workspace) -> None:
    check_snapshot("google_adk", offers(ws))


def test_google_adk_tools_return_the_methods_answers(ws: Workspace) -> None:
    check_answers(ws, answers(ws, CALLS))


@each_mistake
def test_google_adk_tool_answers_a_mistake_with_a_text(ws: Workspace, name: str, arguments: dict[str, object]) -> None:
    assert answers(ws, [(name, arguments)])[0].startswith("Error: ")
