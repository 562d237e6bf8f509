"""Write the definitions of the tools for the MCP server, which answers `tools/list` before it has loaded the tools.

A test compares the file with the tools.
"""

import json
from pathlib import Path
from typing import Any

from ripwrap.workspace import Workspace
from ripwrap.workspace.core import definition_of
from ripwrap.workspace.tool import AnyTool, tools_of

FILE = Path(__file__).parent.parent / "src" / "ripwrap" / "mcp" / "definitions.json"


def define(tool: AnyTool) -> dict[str, Any]:
    """Return the definition of a tool, as `ripwrap.mcp.server` reads it."""
    description, arguments = definition_of(tool)
    return {
        "name": tool.name,
        "title": tool.title,
        "description": description,
        "arguments": arguments,
        "result": tool.result.structured_schema(),
        "needs": tool.needs,
        "aliases": tool.aliases,
        "writes": tool.writes,
        "counts": tool.counts,
        "rare": sorted(tool.rare),
    }


def definitions() -> str:
    """Return the text of the file."""
    return json.dumps([define(tool) for tool in tools_of(Workspace).values()], indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(definitions(), "utf-8")
