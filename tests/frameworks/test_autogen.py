"""autogen: workspace methods as tools of a tool agent, and the strict schemas."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

pytest.importorskip("autogen_core")

from autogen_core import AgentId, FunctionCall, SingleThreadedAgentRuntime
from autogen_core.models import (
    ChatCompletionClient,
    CreateResult,
    FunctionExecutionResultMessage,
    ModelFamily,
    ModelInfo,
    RequestUsage,
    UserMessage,
)
from autogen_core.tool_agent import ToolAgent, tool_agent_caller_loop
from autogen_core.tools import BaseTool, FunctionTool, ToolSchema
from autogen_core.utils import schema_to_pydantic_model
from pydantic import BaseModel

from ripwrap import Workspace
from ripwrap.workspace import schemas
from support.offers import CALLS, Call, Offer, check, check_answers, check_snapshot, each_mistake, each_tool

pytestmark = [pytest.mark.extra, pytest.mark.slow]

NO_USAGE = RequestUsage(0, 0)


class Replay(ChatCompletionClient):
    """A model that makes calls, and then says that it is done."""

    def __init__(self, calls: Sequence[Call]) -> None:
        made = [FunctionCall(str(number), json.dumps(given), name) for number, (name, given) in enumerate(calls)]
        self.turns: list[Any] = [made, "done"]

    async def create(self, messages: Sequence[Any], **_: Any) -> CreateResult:
        """Return the next message."""
        return CreateResult(finish_reason="stop", content=self.turns.pop(0), usage=NO_USAGE, cached=False)

    def create_stream(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    async def close(self) -> None:
        """Do nothing."""

    def actual_usage(self) -> RequestUsage:
        return NO_USAGE

    def total_usage(self) -> RequestUsage:
        return NO_USAGE

    def count_tokens(self, *_: Any, **__: Any) -> int:
        return 0

    def remaining_tokens(self, *_: Any, **__: Any) -> int:
        return 1

    @property
    def capabilities(self) -> Any:
        return self.model_info

    @property
    def model_info(self) -> ModelInfo:
        return ModelInfo(
            vision=False,
            function_calling=True,
            json_output=False,
            family=ModelFamily.UNKNOWN,
            structured_output=False,
            multiple_system_messages=False,
        )


class StrictTool(BaseTool[BaseModel, BaseModel]):
    """A tool made of a strict schema, which is called through `Workspace.call()`."""

    def __init__(self, ws: Workspace, name: str) -> None:
        description, self.strict_schema, _ = schemas(strict=True)[name]
        arguments = schema_to_pydantic_model({"title": name, **self.strict_schema})
        super().__init__(arguments, str, name, description, strict=True)  # type: ignore[arg-type,unused-ignore]
        self._ws = ws

    @property
    def schema(self) -> ToolSchema:
        return ToolSchema(name=self.name, description=self.description, parameters=self.strict_schema, strict=True)  # type: ignore[typeddict-item,unused-ignore]

    async def run(self, args: BaseModel, cancellation_token: Any) -> Any:
        return await self._ws.call(self.name, args.model_dump())


def function_tools(ws: Workspace) -> list[Any]:
    descriptions = {name: description for name, (description, _, _) in schemas().items()}
    return [FunctionTool(method, description=descriptions[method.__name__]) for method in ws.tools]


def offers(tools: Sequence[Any]) -> dict[str, Offer]:
    told = (tool.schema for tool in tools)
    return {schema["name"]: Offer(schema["name"], schema["description"], schema["parameters"]) for schema in told}


def answers(tools: Sequence[Any], calls: Sequence[Call]) -> list[str]:
    """Run a tool agent whose model makes these calls at once; return the answers of the tools."""

    async def run() -> list[str]:
        runtime = SingleThreadedAgentRuntime()
        await ToolAgent.register(runtime, "tools", lambda: ToolAgent("tools", [*tools]))
        runtime.start()
        user = UserMessage(content="find it", source="user")
        said = await tool_agent_caller_loop(runtime, AgentId("tools", "default"), Replay(calls), [user], [*tools])
        await runtime.stop()
        assert said[-1].content == "done"
        (results,) = (message for message in said if isinstance(message, FunctionExecutionResultMessage))
        assert not [result for result in results.content if result.is_error]
        return [result.content for result in sorted(results.content, key=lambda result: int(result.call_id))]

    return asyncio.run(run())


def with_nulls(call: Call) -> Call:
    """Return a call with null for each argument that it leaves out."""
    name, given = call
    properties: Mapping[str, Any] = schemas(strict=True)[name][1]["properties"]
    return name, {**dict.fromkeys(properties), **given}


@each_tool
def test_autogen_tool_schema_equals_the_signature(ws: Workspace, name: str) -> None:
    """It reads annotations, not docstrings."""
    offer = offers(function_tools(ws))[name]
    check(getattr(ws, name), offer, bounds=False)


def test_autogen_tool_schemas_equal_the_snapshot(ws: Workspace) -> None:
    check_snapshot("autogen", offers(function_tools(ws)))


def test_autogen_tools_return_the_methods_answers(ws: Workspace) -> None:
    check_answers(ws, answers(function_tools(ws), CALLS))


@each_mistake
def test_autogen_tool_answers_a_mistake_with_a_text(ws: Workspace, name: str, arguments: dict[str, object]) -> None:
    assert answers(function_tools(ws), [(name, arguments)])[0].startswith("Error: ")


def test_autogen_strict_tools_take_nulls_for_defaults(ws: Workspace) -> None:
    """Autogen's strict mode refuses functions with defaults."""
    check_answers(ws, answers([StrictTool(ws, method.__name__) for method in ws.tools], [*map(with_nulls, CALLS)]))


@each_tool
def test_autogen_takes_the_strict_schema_unchanged(ws: Workspace, name: str) -> None:
    """`BaseTool.schema` raises if a strict tool has an argument that is not required."""
    tool = StrictTool(ws, name)
    told = super(StrictTool, tool).schema
    assert told["strict"]
    assert [*told["parameters"]["required"]] == tool.strict_schema["required"]
