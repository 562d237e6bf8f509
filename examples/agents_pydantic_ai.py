"""A pydantic-ai agent that finds code and reads it, offline: `python examples/agents_pydantic_ai.py [DIR]`."""

import asyncio
import re
import sys

from pydantic_ai import Agent, ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from ripwrap import Workspace
from ripwrap.frameworks.pydantic_ai import WorkspaceToolset

SHOP = "demo/shop"
QUESTION = "How are items totalled?"


def answers(messages: list[ModelMessage]) -> list[ToolReturnPart]:
    """Return the tools' answers so far."""
    return [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]


def stand_in(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    """Play a model: search, read the result, answer."""
    texts = [str(answer.content) for answer in answers(messages)]
    if not texts:
        return ModelResponse([ToolCallPart("codebase_search", {"query": QUESTION})])
    found = re.match(r"(.+):(\d+)-(\d+)", texts[0])
    if found is None:
        return ModelResponse([TextPart("I found nothing.")])
    if len(texts) == 1:
        lines = {"start_line": int(found[2]), "end_line": int(found[3])}
        return ModelResponse([ToolCallPart("read_file", {"path": found[1], **lines})])
    line = re.search(r"(\d+): def total", texts[1])
    return ModelResponse([TextPart(f"total() in {found[1]}, line {line[1]}." if line else "I read nothing.")])


async def main(folder: str) -> None:
    """Pass the toolset to the agent, ask the agent, and print the tools' answers."""
    toolset: WorkspaceToolset[object] = WorkspaceToolset(Workspace(folder))
    # A real model is Agent("anthropic:claude-sonnet-4-5", …).
    agent = Agent(FunctionModel(stand_in), toolsets=[toolset])
    result = await agent.run(QUESTION)
    for answer in answers(result.all_messages()):
        print(f"# {answer.tool_name}\n{answer.content}\n")
        if answer.outcome != "success":
            sys.exit(1)
    print(result.output)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else SHOP))
