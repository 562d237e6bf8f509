"""A smolagents agent that searches a folder, offline: `python examples/agents_smolagents.py [DIR]`."""

import sys
from typing import Any

from smolagents import ActionStep, ChatMessage, LogLevel, Model, ToolCallingAgent, tool
from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole

from ripwrap import sync

SHOP = "demo/shop"
GREP = {"pattern": r"def \w+|TODO", "file_pattern": "*.py", "context_lines": 0}
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("grep_content", GREP),
    ("ls", {"path": ".", "ignore": ["__pycache__/"]}),
    ("final_answer", {"answer": "That is all of it."}),
]


class StandIn(Model):
    """Model that requests one call after the other; a real model is `InferenceClientModel()`."""

    def generate(self, messages: list[ChatMessage], *_: Any, **__: Any) -> ChatMessage:
        """Return the next call."""
        asked = sum(message.role == MessageRole.TOOL_RESPONSE for message in messages)
        name, arguments = CALLS[asked]
        function = ChatMessageToolCallFunction(arguments, name)
        return ChatMessage(MessageRole.ASSISTANT, tool_calls=[ChatMessageToolCall(function, str(asked), "function")])


def main(folder: str) -> None:
    """Pass all tools to the agent, run it, and print the tools' answers."""
    ws = sync.Workspace(folder)  # smolagents' tools are blocking
    agent = ToolCallingAgent([tool(method) for method in ws.tools], StandIn(), verbosity_level=LogLevel.OFF)
    final = agent.run("What is unfinished here?")
    for step in agent.memory.steps:
        if isinstance(step, ActionStep) and step.tool_calls and not step.is_final_answer:
            print(f"# {step.tool_calls[0].name}\n{step.observations}\n")
            if step.error or str(step.observations).startswith("Error: "):
                sys.exit(1)
    print(final)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else SHOP)
