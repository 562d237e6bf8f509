"""A LlamaIndex agent that finds code and reads it, offline: `python examples/agents_llama_index.py [DIR]`."""

import asyncio
import re
import sys
from collections.abc import Sequence
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent, ToolCallResult
from llama_index.core.base.llms.types import ChatMessage, TextBlock, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM

from ripwrap import Workspace

SHOP = "demo/shop"
QUESTION = "How are items totalled?"


def stand_in(messages: Sequence[ChatMessage], **_: Any) -> ChatMessage:
    """Play a model: search, read the result, answer."""
    texts = [str(message.content) for message in messages if message.role == "tool"]
    found = re.match(r"(.+):(\d+)-(\d+)", texts[0]) if texts else None
    block: ToolCallBlock | TextBlock
    if not texts:
        block = ToolCallBlock(tool_name="codebase_search", tool_kwargs={"query": QUESTION}, tool_call_id="1")
    elif found is None:
        block = TextBlock(text="I found nothing.")
    elif len(texts) == 1:
        lines = {"path": found[1], "start_line": int(found[2]), "end_line": int(found[3])}
        block = ToolCallBlock(tool_name="read_file", tool_kwargs=lines, tool_call_id="2")
    else:
        line = re.search(r"(\d+): def total", texts[1])
        block = TextBlock(text=f"total() in {found[1]}, line {line[1]}." if line else "I read nothing.")
    return ChatMessage(role="assistant", blocks=[block])


async def main(folder: str) -> None:
    """Pass all tools to the agent, run it, and print the tools' answers."""
    ws = Workspace(folder)
    llm = MockFunctionCallingLLM(response_generator=stand_in)  # a real model: Anthropic(model="claude-sonnet-4-5")
    running = FunctionAgent(tools=list(ws.tools), llm=llm).run(QUESTION)
    async for event in running.stream_events():
        if isinstance(event, ToolCallResult):
            print(f"# {event.tool_name}\n{event.tool_output.content}\n")
            if event.tool_output.is_error or event.tool_output.content.startswith("Error: "):
                sys.exit(1)
    print(await running)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else SHOP))
