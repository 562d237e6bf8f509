"""LlamaIndex: workspace methods as tools, with arguments that it does not validate."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("llama_index")

from llama_index.core.agent.workflow import FunctionAgent, ToolCallResult
from llama_index.core.base.llms.types import ChatMessage, TextBlock, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.tools import FunctionTool

from ripwrap import Workspace
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
    summary,
)

# LlamaIndex reads all attributes of its own Pydantic models, including deprecated ones.
pytestmark = [pytest.mark.extra, pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

UNCHECKED: tuple[tuple[Call, Call], ...] = (
    (
        ("grep_content", {"pattern": "TODO", "max_matches": "1"}),
        ("grep_content", {"pattern": "TODO", "max_matches": 1}),
    ),
    (("grep_content", {"pattern": "TODO", "path": None}), ("grep_content", {"pattern": "TODO"})),
    (("grep_content", {"pattern": "todo", "case_insensitive": "true"}), ("grep_content", {"pattern": "(?i)todo"})),
    (("ls", {"ignore": None}), ("ls", {})),
    (("ls", {"ignore": '["*.py"]'}), ("ls", {"ignore": ["*.py"]})),
)


def answers(ws: Workspace, calls: Sequence[Call]) -> list[str]:
    """Run an agent whose model makes these calls at once; return the answers of the tools."""
    made = [
        ToolCallBlock(tool_name=name, tool_kwargs=arguments, tool_call_id=str(number))
        for number, (name, arguments) in enumerate(calls)
    ]

    def model(messages: Sequence[ChatMessage], **_: object) -> ChatMessage:
        called = any(message.role == "tool" for message in messages)
        return ChatMessage(role="assistant", blocks=[TextBlock(text="done")] if called else made)

    async def run() -> list[str]:
        llm = MockFunctionCallingLLM(response_generator=model)
        running = FunctionAgent(tools=list(ws.tools), llm=llm).run("find it")
        results = [event async for event in running.stream_events() if isinstance(event, ToolCallResult)]
        assert str(await running) == "done"
        assert not [result for result in results if result.tool_output.is_error]
        return [result.tool_output.content for result in sorted(results, key=lambda result: int(result.tool_id))]

    return asyncio.run(run())


def offer(method: Callable[..., Any]) -> Offer:
    """Return a tool as the model gets it."""
    told = FunctionTool.from_defaults(async_fn=method).metadata.to_openai_tool(skip_length_check=True)["function"]
    return Offer(told["name"], told["description"], told["parameters"])


@each_tool
def test_llama_index_tool_schema_equals_the_signature(ws: Workspace, name: str) -> None:
    check(getattr(ws, name), offer(getattr(ws, name)), bounds=False)


def test_llama_index_tool_schemas_equal_the_snapshot(ws: Workspace) -> None:
    check_snapshot("llama_index", {method.__name__: offer(method) for method in ws.tools})


@each_tool
def test_llama_index_accepts_a_summary_as_description(ws: Workspace, name: str) -> None:
    method = getattr(ws, name)
    made = FunctionTool.from_defaults(async_fn=method, description=summary(method))
    told = made.metadata.to_openai_tool()["function"]
    check(method, Offer(told["name"], told["description"], told["parameters"]), bounds=False)


def test_llama_index_tools_return_the_methods_answers(ws: Workspace) -> None:
    check_answers(ws, answers(ws, CALLS))


@each_mistake
def test_llama_index_tool_answers_a_mistake_with_a_text(ws: Workspace, name: str, arguments: dict[str, object]) -> None:
    assert answers(ws, [(name, arguments)])[0].startswith("Error: ")


@pytest.mark.parametrize(("said", "meant"), UNCHECKED)
def test_llama_index_arguments_are_coerced_by_the_tool(ws: Workspace, said: Call, meant: Call) -> None:
    one, other = answers(ws, [said, meant])
    assert one == other


def test_llama_index_tool_answers_an_invalid_mode_with_a_text(ws: Workspace) -> None:
    (answer,) = answers(ws, [("grep_content", {"pattern": "TODO", "output_mode": "lines"})])
    assert answer.startswith("Error: ")
    assert "files_with_matches" in answer


def test_llama_index_example_answers_a_question(shop: Path) -> None:
    check_question("agents_llama_index.py", shop, "-W", "error", "-W", "ignore::DeprecationWarning")
