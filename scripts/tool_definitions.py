"""Write the definitions of the tools for the MCP server, which answers `tools/list` before it has loaded the tools.

`python scripts/tool_definitions.py` writes the file; `--check` fails if it is not up to date.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from ripwrap.workspace import Workspace
from ripwrap.workspace.core import definition_of
from ripwrap.workspace.tool import AnyTool, tools_of

FILE = Path(__file__).parent.parent / "src" / "ripwrap" / "mcp" / "definitions.json"


def define(tool: AnyTool) -> dict[str, Any]:
    """Return the definition of a tool, as `ripwrap.mcp.definitions` reads it."""
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


def main() -> int:
    """Write or check the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if the file is not up to date")
    check = parser.parse_args().check
    if check and FILE.read_text("utf-8") != definitions():
        print(f"{FILE} is not up to date; run python scripts/tool_definitions.py", file=sys.stderr)
        return 1
    if not check:
        FILE.write_text(definitions(), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
