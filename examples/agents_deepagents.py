"""A deep agent that finds code and reads it, offline: `python examples/agents_deepagents.py [DIR]`."""

import asyncio
import re
import sys
from collections.abc import Sequence
from typing import Any

from deepagents import create_deep_agent
from deepagents.backends import CompositeBackend, StateBackend
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import ToolCall, tool_call
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool

from ripwrap import sync
from ripwrap.frameworks.deepagents import RipwrapBackend
from ripwrap.frameworks.langchain import WorkspaceToolkit

SHOP = "demo/shop"
QUESTION = "How are items totalled?"


class StandIn(BaseChatModel):
    """Stand-in for a model: it searches, reads the result, and answers. A real model is `model="openai:gpt-5"`."""

    @property
    def _llm_type(self) -> str:
        return "stand-in"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
        """Bind the tools in the form that a provider receives."""
        return self.bind(tools=[convert_to_openai_tool(each) for each in tools])

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=reply(messages))])


def reply(messages: list[BaseMessage]) -> AIMessage:
    """Return the next call of the model, or its answer."""
    answers = [message.text for message in messages if isinstance(message, ToolMessage)]
    if not answers:
        return said("codebase_search", {"query": QUESTION})
    found = re.match(r"(.+):(\d+)-(\d+)", answers[0])
    if found is None:
        return AIMessage("I found nothing.")
    file, first, last = found.groups()
    if len(answers) == 1:
        return said("read_file", {"file_path": f"/code/{file}", "offset": int(first) - 1, "limit": int(last)})
    lines = enumerate(answers[1].splitlines()[1:], int(first))  # the first line says which lines follow
    return AIMessage(
        next((f"total() in {file}, line {at}." for at, line in lines if "def total" in line), "I read nothing.")
    )


def said(name: str, args: dict[str, Any]) -> AIMessage:
    """Return a message with one tool call."""
    calls: list[ToolCall] = [tool_call(name=name, args=args, id=name)]
    return AIMessage("", tool_calls=calls)


async def main(folder: str) -> None:
    """Route `/code/` to ripwrap, ask the agent, and print what the tools answered."""
    ws = sync.Workspace(folder)
    # The agent writes its own files, such as long answers of tools, into its state. Files below /code/ are only read.
    backend = CompositeBackend(default=StateBackend(), routes={"/code/": RipwrapBackend(ws)})
    search = [tool for tool in WorkspaceToolkit(workspace=ws).get_tools() if tool.name == "codebase_search"]
    agent = create_deep_agent(StandIn(), search, backend=backend)
    state = await agent.ainvoke({"messages": [HumanMessage(QUESTION)]})
    for message in state["messages"]:
        if isinstance(message, ToolMessage):
            print(f"# {message.name}\n{message.text}\n")
            if message.status == "error":
                sys.exit(1)
    print(state["messages"][-1].text)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else SHOP))
