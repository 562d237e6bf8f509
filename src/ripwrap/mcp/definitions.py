"""Definitions of the tools, as a client lists them; they are read from a file, so that a list does not load the tools.

`python scripts/tool_definitions.py` writes the file after a change of a tool.
"""

import functools
import json
import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ripwrap.workspace.tool_names import Needed


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """Definition of a tool, for clients; `ripwrap.workspace.tool.ToolSpec` describes the names that both have."""

    name: str
    title: str
    description: str
    arguments: dict[str, Any]
    result: dict[str, Any]
    needs: Needed | None
    aliases: Sequence[str]
    writes: Literal["nothing", "index", "files"]
    counts: str
    rare: Sequence[str]


@functools.cache
def definitions() -> dict[str, ToolDefinition]:
    """Return the definitions of all tools by name, in the order of the tools of a workspace."""
    return parse(pkgutil.get_data(__name__, "definitions.json") or b"")


def parse(text: str | bytes) -> dict[str, ToolDefinition]:
    """Return the definitions in the text of the file."""
    return {one["name"]: ToolDefinition(**one) for one in json.loads(text)}
