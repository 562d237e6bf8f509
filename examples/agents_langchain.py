"""A LangChain model and tools that search a folder, offline: `python examples/agents_langchain.py [DIR]`."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call
from langchain_core.runnables import Runnable
from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_tool

from ripwrap import Workspace

SHOP = Path(__file__).parent.parent / "docs" / "demo" / "shop"
GREP = {"pattern": r"def \w+|TODO", "file_pattern": "*.py", "context_lines": 0}


class StandIn(FakeMessagesListChatModel):
    """LangChain's fake model with tools; a real one is `ChatAnthropic(model="claude-sonnet-4-5")`."""

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Runnable[Any, AIMessage]:
        """Bind the tools in the form that a provider receives."""
        return self.bind(tools=[convert_to_openai_tool(each) for each in tools])


async def main(folder: str) -> None:
    """Run the calls that the model requests, until it requests none."""
    ws = Workspace(folder)
    tools = {method.__name__: tool(parse_docstring=True)(method) for method in ws.tools}
    model = StandIn(
        responses=[
            AIMessage("", tool_calls=[tool_call(name="grep_content", args=GREP, id="1")]),
            AIMessage("", tool_calls=[tool_call(name="ls", args={"path": ".", "ignore": ["__pycache__/"]}, id="2")]),
            AIMessage("That is all of it."),
        ]
    ).bind_tools(list(tools.values()))
    messages: list[BaseMessage] = [HumanMessage("What is unfinished here?")]
    while (said := await model.ainvoke(messages)).tool_calls:
        messages.append(said)
        for call in said.tool_calls:
            answer: ToolMessage = await tools[call["name"]].ainvoke(call)
            messages.append(answer)
            print(f"# {answer.name}\n{answer.text}\n")
            if answer.text.startswith("Error: "):
                sys.exit(1)
    print(said.text)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else str(SHOP)))
