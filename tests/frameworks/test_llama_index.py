"""LlamaIndex takes the tools as they are, and hands over whatever a model says, unchecked."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from llama_index.core.agent.workflow import FunctionAgent, ToolCallResult
from llama_index.core.base.llms.types import ChatMessage, TextBlock, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.tools import FunctionTool

from frameworks.offers import CALLS, Call, Offer, check, check_answers, check_example, each_mistake, each_tool, summary
from ripwrap import Workspace

# It looks at all attributes of its own Pydantic models, deprecated ones among them.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

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
    """What an agent's tools answer to a model that makes all these calls at once."""
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


@each_tool
def test_a_model_is_told_what_the_signature_says(ws: Workspace, name: str) -> None:
    method = getattr(ws, name)
    told = FunctionTool.from_defaults(async_fn=method).metadata.to_openai_tool(skip_length_check=True)["function"]
    check(method, Offer(told["name"], told["description"], told["parameters"]))


@each_tool
def test_a_description_of_ones_own_is_short_enough_for_those_who_measure_it(ws: Workspace, name: str) -> None:
    method = getattr(ws, name)
    made = FunctionTool.from_defaults(async_fn=method, description=summary(method))
    told = made.metadata.to_openai_tool()["function"]
    check(method, Offer(told["name"], told["description"], told["parameters"]))


def test_an_agent_is_answered_what_the_methods_answer(ws: Workspace) -> None:
    check_answers(ws, answers(ws, CALLS))


@each_mistake
def test_a_mistake_is_answered_by_a_text(ws: Workspace, name: str, arguments: dict[str, object]) -> None:
    assert answers(ws, [(name, arguments)])[0].startswith("Error: ")


@pytest.mark.parametrize(("said", "meant"), UNCHECKED)
def test_what_it_does_not_check_is_read_as_it_was_meant(ws: Workspace, said: Call, meant: Call) -> None:
    one, other = answers(ws, [said, meant])
    assert one == other


def test_a_mode_that_is_none_is_answered_by_a_text(ws: Workspace) -> None:
    (answer,) = answers(ws, [("grep_content", {"pattern": "TODO", "output_mode": "lines"})])
    assert answer.startswith("Error: ")
    assert "files_with_matches" in answer


def test_the_example_runs(shop: Path) -> None:
    check_example("agents_llama_index.py", shop, "-W", "error", "-W", "ignore::DeprecationWarning")
