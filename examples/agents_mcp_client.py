"""An MCP client whose server searches a folder, over stdio: `python examples/agents_mcp_client.py [DIR]`."""

import asyncio
import sys
from typing import Any

from mcp import Client, StdioServerParameters, types

SHOP = "demo/shop"
CALLS: list[tuple[str, dict[str, Any]]] = [  # in a real client, a model requests these calls
    ("grep_content", {"pattern": r"def \w+|TODO", "file_pattern": "*.py", "context_lines": 0}),
    ("ls", {"path": ".", "ignore": ["__pycache__/"]}),
]


async def main(folder: str) -> None:
    """Start the server, call its tools, and print their answers."""
    started = StdioServerParameters(command=sys.executable, args=["-m", "ripwrap", "mcp", "--root", folder])
    async with Client(started, read_timeout_seconds=30) as client:
        offered = [tool.name for tool in (await client.list_tools()).tools]
        for name, arguments in CALLS:
            answer = await client.call_tool(name, arguments)
            text = "".join(part.text for part in answer.content if isinstance(part, types.TextContent))
            print(f"# {name}\n{text}\n")
            if answer.is_error:
                sys.exit(1)
    print(f"That is all of it. There are also {', '.join(sorted({*offered} - {name for name, _ in CALLS}))}.")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else SHOP))
