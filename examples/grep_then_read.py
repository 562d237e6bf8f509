"""Run an agent's loop without a framework, 'grep, then read': `python examples/grep_then_read.py WORD [DIR]`.

The model gets two tools: `grep_content` of a `Workspace`, and `read_lines`, which this file defines. It requests calls
of the tools, and then answers with a text. The function `stand_in` plays the model, offline. To use a real model, write
another `Model`, which sends `messages` and `tools` to an API and converts the reply. The form of messages is close to
that of chat APIs. The exit code is 0; 1 if the word was not found; 2 after an error.
"""

import argparse
import asyncio
import json
import re
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import Field, TypeAdapter, ValidationError, validate_call

from ripwrap import Workspace
from ripwrap.workspace import schemas

DEMO = "demo"
MAX_TURNS = 10
MAX_LINE = 500  # maximum number of characters of a line in an answer
NOTHING = "I found nothing about it."

Message: TypeAlias = dict[str, Any]
Model: TypeAlias = Callable[[list[Message], list[dict[str, Any]]], Awaitable[Message]]


class Toolbox:
    """The tools of the model, within one folder."""

    def __init__(self, folder: str) -> None:
        self.workspace = Workspace(folder)

    def read_lines(self, path: str, line: int, around: Annotated[int, Field(ge=0, le=50)] = 3) -> str:
        """Read the lines of a file around a line number from a search."""
        root = self.workspace.roots[0]
        file = Path(root, path).resolve()
        if not file.is_relative_to(root):
            raise PermissionError(f"{path} is outside the folder")
        if not file.is_file():  # reading a named pipe would block forever
            raise FileNotFoundError(f"{path} is not a file")
        first = max(1, line - around)
        with file.open(encoding="utf-8", errors="replace", newline="\n") as lines:
            shown = islice(enumerate(lines, 1), first - 1, max(0, line + around))
            found = "".join(f"{number}: {text.rstrip()[:MAX_LINE]}\n" for number, text in shown)
        return found or "The file has no such lines."

    def offers(self) -> list[dict[str, Any]]:
        """Return the name, description and JSON schema of each tool, for the model."""
        description, parameters, _ = schemas()["grep_content"]
        own: Any = self.read_lines
        return [
            {"name": "grep_content", "description": description, "parameters": parameters},
            {"name": "read_lines", "description": own.__doc__, "parameters": TypeAdapter(own).json_schema()},
        ]

    async def call(self, name: str, arguments: str) -> str:
        """Run a call, and return its result as text; return an error as text too, as `Workspace.call()` does."""
        if name != "read_lines":
            return await self.workspace.call(name, arguments)
        try:
            return await asyncio.to_thread(partial(validate_call(self.read_lines), **json.loads(arguments)))
        except (OSError, ValueError, TypeError, ValidationError) as error:
            return f"Error: {error}"


async def run(model: Model, toolbox: Toolbox, question: str) -> str:
    """Run the calls that the model requests and send it the results, until it answers with a text."""
    messages: list[Message] = [{"role": "user", "content": question}]
    for _ in range(MAX_TURNS):
        reply = await model(messages, toolbox.offers())
        messages.append(reply)
        if not reply["tool_calls"]:
            return str(reply["content"])
        for call in reply["tool_calls"]:
            print(f"# {call['name']} {call['arguments']}")
            answer = await toolbox.call(call["name"], call["arguments"])
            print(f"{answer.rstrip()}\n")
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": answer})
    return "I gave up: too many calls."


def asks(number: int, name: str, **arguments: object) -> Message:
    """Return a reply that requests one call; arguments are JSON, as models write them."""
    call = {"id": f"call-{number}", "name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


async def stand_in(messages: list[Message], tools: list[dict[str, Any]]) -> Message:
    """Play the model: search for the word, read around the first match, and answer with its line."""
    grep, read = (tool["name"] for tool in tools)
    word = messages[0]["content"]
    answers = [message["content"] for message in messages if message["role"] == "tool"]
    if not answers:
        return asks(1, grep, pattern=word, fixed_strings=True, context_lines=0)
    hit = re.search(r"^File: (.+)\n  (\d+):", answers[0], re.MULTILINE)
    if not hit:
        text = answers[0] if answers[0].startswith("Error: ") else NOTHING
        return {"role": "assistant", "content": text, "tool_calls": []}
    if len(answers) == 1:
        return asks(2, read, path=hit[1], line=int(hit[2]))
    line = re.search(rf"^{hit[2]}: (.*)$", answers[1], re.MULTILINE)
    text = f"{hit[1]}:{hit[2]}: {line[1].strip() if line else answers[1]}"
    return {"role": "assistant", "content": text, "tool_calls": []}


def main() -> int:
    """Ask the model, and print the calls and the answer."""
    parser = argparse.ArgumentParser(description="Find a word with an agent's loop of tool calls.")
    parser.add_argument("word")
    parser.add_argument("folder", nargs="?", default=DEMO)
    given = parser.parse_args()
    try:
        toolbox = Toolbox(given.folder)
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    answer = asyncio.run(run(stand_in, toolbox, given.word))
    print(answer)
    return 2 if answer.startswith("Error: ") else 1 if answer == NOTHING else 0


if __name__ == "__main__":
    sys.exit(main())
