"""OpenAI's API with strict tools that find and read code, offline: `python examples/agents_openai_api.py [DIR]`."""

import asyncio
import json
import re
import sys
from typing import Any

import httpx2
from openai import AsyncOpenAI

from ripwrap import Workspace
from ripwrap.frameworks.openai import StrictTools

SHOP = "demo/shop"
QUESTION = "How are items totalled?"


def stand_in(request: httpx2.Request) -> httpx2.Response:
    """Play the server of a model: search, read the result, answer."""
    asked = json.loads(request.content)
    texts = [item["output"] for item in asked["input"] if item.get("type") == "function_call_output"]
    found = re.match(r"(.+):(\d+)-(\d+)", texts[0]) if texts else None
    if not texts:
        item = call("codebase_search", query=QUESTION, path=None, limit=None)  # a strict schema requires all arguments
    elif found is None:
        item = message("I found nothing.")
    elif len(texts) == 1:
        item = call("read_file", path=found[1], start_line=int(found[2]), end_line=int(found[3]), ranges=None)
    else:
        line = re.search(r"(\d+): def total", texts[1])
        item = message(f"total() in {found[1]}, line {line[1]}." if line else "I read nothing.")
    answer = {"id": "resp_1", "object": "response", "created_at": 0, "model": asked["model"], "output": [item]}
    return httpx2.Response(200, json={**answer, "parallel_tool_calls": True, "tool_choice": "auto", "tools": []})


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """Return an item that calls a tool."""
    return {"type": "function_call", "id": "fc_1", "call_id": name, "name": name, "arguments": json.dumps(arguments)}


def message(text: str) -> dict[str, Any]:
    """Return an item that is the answer."""
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}


async def main(folder: str) -> None:
    """Ask the model, and answer its calls until it requests no more calls."""
    tools = StrictTools(Workspace(folder))
    transport = httpx2.AsyncClient(transport=httpx2.MockTransport(stand_in))  # leave it out for a real model
    async with AsyncOpenAI(api_key="none", http_client=transport) as client:
        items: list[Any] = [{"role": "user", "content": QUESTION}]
        while True:
            response = await client.responses.create(model="gpt-5", input=items, tools=tools.responses)
            answers = await tools.outputs(response.output)
            items += [*response.output, *answers]
            if not answers:
                break
            for answer in answers:
                print(f"# {answer.get('call_id')}\n{answer['output']}\n")
                if str(answer["output"]).startswith("Error: "):
                    sys.exit(1)
    print(response.output_text)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else SHOP))
