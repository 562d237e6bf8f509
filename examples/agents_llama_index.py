"""A LlamaIndex agent that searches a folder, offline: `python examples/agents_llama_index.py [DIR]`."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent, ToolCallResult
from llama_index.core.base.llms.types import ChatMessage, TextBlock, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM

from ripwrap import Workspace

SHOP = Path(__file__).parent.parent / "docs" / "demo" / "shop"
GREP = {"pattern": r"def \w+|TODO", "file_pattern": "*.py", "context_lines": 0}
SAYS = [
    ToolCallBlock(tool_name="grep_content", tool_kwargs=GREP, tool_call_id="1"),
    ToolCallBlock(tool_name="ls", tool_kwargs={"path": ".", "ignore": ["__pycache__/"]}, tool_call_id="2"),
    TextBlock(text="That is all of it."),
]


def stand_in(messages: Sequence[ChatMessage], **_: Any) -> ChatMessage:
    """Play the model: request one call after the other, then answer with a text."""
    return ChatMessage(role="assistant", blocks=[SAYS[sum(message.role == "tool" for message in messages)]])


async def main(folder: str) -> None:
    """Pass all tools to the agent, run it, and print the tools' answers."""
    ws = Workspace(folder)
    llm = MockFunctionCallingLLM(response_generator=stand_in)  # a real one: Anthropic(model="claude-sonnet-4-5")
    running = FunctionAgent(tools=list(ws.tools), llm=llm).run("What is unfinished here?")
    async for event in running.stream_events():
        if isinstance(event, ToolCallResult):
            print(f"# {event.tool_name}\n{event.tool_output.content}\n")
            if event.tool_output.is_error or event.tool_output.content.startswith("Error: "):
                sys.exit(1)
    print(await running)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else str(SHOP)))
