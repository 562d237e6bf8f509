"""An agent of the OpenAI Agents SDK that searches a folder, offline: `python examples/agents_openai.py [DIR]`."""

import asyncio
import sys

from agents import Agent, Runner, function_tool, set_tracing_disabled
from agents.items import ToolCallItem, ToolCallOutputItem
from agents.testing import ScriptedModel, assistant_message, function_call

from ripwrap import Workspace

SHOP = "demo/shop"
GREP = {"pattern": r"def \w+|TODO", "file_pattern": "*.py", "context_lines": 0}


async def main(folder: str) -> None:
    """Pass all tools to the agent, run it, and print the tools' answers."""
    set_tracing_disabled(True)  # Traces would be sent to OpenAI.
    ws = Workspace(folder)
    # A strict schema would require every argument. Without it, a model may omit arguments that have defaults.
    tools = [function_tool(method, strict_mode=False) for method in ws.tools]
    stand_in = ScriptedModel(
        [
            [function_call("grep_content", GREP, call_id="1")],
            [function_call("ls", {"path": ".", "ignore": ["__pycache__/"]}, call_id="2")],
            [assistant_message("That is all of it.")],
        ]
    )
    agent = Agent("searcher", tools=list(tools), model=stand_in)  # a real model: model="gpt-5"
    result = await Runner.run(agent, "What is unfinished here?")
    for item in result.new_items:
        if isinstance(item, ToolCallItem):
            print(f"# {item.tool_name}")
        if isinstance(item, ToolCallOutputItem):
            print(f"{item.output}\n")
            if str(item.output).startswith("Error: "):
                sys.exit(1)
    print(result.final_output)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else SHOP))
