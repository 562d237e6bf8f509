"""A pydantic-ai agent that searches a folder, offline: `python examples/agents_pydantic_ai.py [DIR]`."""

import asyncio
import sys
from pathlib import Path

from pydantic_ai import Agent, ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from ripwrap import Workspace

SHOP = Path(__file__).parent.parent / "docs" / "demo" / "shop"
CALLS = [
    ToolCallPart("grep_content", {"pattern": r"def \w+|TODO", "file_pattern": "*.py", "context_lines": 0}),
    ToolCallPart("ls", {"path": ".", "ignore": ["__pycache__/"]}),
]


def answers(messages: list[ModelMessage]) -> list[ToolReturnPart]:
    """Return the tools' answers so far."""
    return [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]


def stand_in(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    """Play the model: request one call after the other, then answer with a text."""
    asked = len(answers(messages))
    return ModelResponse([CALLS[asked] if asked < len(CALLS) else TextPart("That is all of it.")])


async def main(folder: str) -> None:
    """Pass all tools to the agent, run it, and print the tools' answers."""
    ws = Workspace(folder)
    agent = Agent(FunctionModel(stand_in), tools=ws.tools)  # a real one: Agent("anthropic:claude-sonnet-4-5", …)
    result = await agent.run("What is unfinished here?")
    for answer in answers(result.all_messages()):
        print(f"# {answer.tool_name}\n{answer.content}\n")
        if str(answer.content).startswith("Error: "):
            sys.exit(1)
    print(result.output)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else str(SHOP)))
