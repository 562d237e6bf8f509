"""A LangChain model that finds code and reads it, offline: `python examples/agents_langchain.py [DIR]`."""

import asyncio
import re
import sys
from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool

from ripwrap import Workspace
from ripwrap.frameworks.langchain import WorkspaceToolkit

SHOP = "demo/shop"
QUESTION = "How are items totalled?"


class StandIn(BaseChatModel):
    """Stand-in for a model: it searches, reads, answers. A real model is `ChatAnthropic(model="claude-sonnet-4-5")`."""

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
        call = tool_call(name="codebase_search", args={"query": QUESTION}, id="1")
        return AIMessage("", tool_calls=[call])
    found = re.match(r"(.+):(\d+)-(\d+)", answers[0])
    if found is None:
        return AIMessage("I found nothing.")
    if len(answers) == 1:
        args = {"path": found[1], "start_line": int(found[2]), "end_line": int(found[3])}
        return AIMessage("", tool_calls=[tool_call(name="read_file", args=args, id="2")])
    line = re.search(r"(\d+): def total", answers[1])
    return AIMessage(f"total() in {found[1]}, line {line[1]}." if line else "I read nothing.")


async def main(folder: str) -> None:
    """Answer the model's calls until the model requests no more calls."""
    tools = {tool.name: tool for tool in WorkspaceToolkit(workspace=Workspace(folder)).get_tools()}
    model = StandIn().bind_tools(list(tools.values()))
    messages: list[BaseMessage] = [HumanMessage(QUESTION)]
    while (said := await model.ainvoke(messages)).tool_calls:
        messages.append(said)
        for call in said.tool_calls:
            answer: ToolMessage = await tools[call["name"]].ainvoke(call)
            messages.append(answer)
            print(f"# {answer.name}\n{answer.text}\n")
            if answer.status == "error":
                sys.exit(1)
    print(said.text)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else SHOP))
