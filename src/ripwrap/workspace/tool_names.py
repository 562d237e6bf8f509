"""Names of tools, and the errors for which a tool returns a text; this module imports no tool."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias, TypeVar

from ripwrap.errors import RipwrapError

Needed: TypeAlias = Literal["index", "anchors", "write"]

TOOL_ERRORS = (RipwrapError, ValueError, OSError, MemoryError)
"""Errors for which a tool returns a text instead of raising them."""


class Named(Protocol):
    """What has the names of a tool: its specification, or its definition in the MCP server."""

    @property
    def name(self) -> str:
        """Name of the tool."""
        ...

    @property
    def aliases(self) -> Sequence[str]:
        """Names of the tool in other programs, in lower case; `name(argument)` for calls with this argument."""
        ...

    @property
    def needs(self) -> Needed | None:
        """Argument of `Workspace` without which the tool is not offered; `None` if it is always offered."""
        ...


N = TypeVar("N", bound=Named)


def tool_names(
    tools: Mapping[str, Named], *, index: bool = False, anchors: bool = False, write: bool = False
) -> tuple[str, ...]:
    """Return the names of the tools of a workspace that was made with these options; each option adds tools."""
    given: dict[str | None, bool] = {None: True, "index": index, "anchors": anchors, "write": write}
    return tuple(name for name, tool in tools.items() if given[tool.needs])


def find_tool(name: str, tools: Iterable[N], arguments: Mapping[str, object] | None = None) -> N:
    """Return a tool, given its name or a name that other programs use for the tool.

    Upper case and prefixes such as `functions.` and `mcp__server__` are accepted. Some programs use one name for
    different tools, which differ in an argument: the alias `search_files(regex)` is for calls with this argument.
    """
    plain = snake_case(re.sub(r"^(?:functions\.|mcp__.*__)", "", name))
    known = {tool.name: tool for tool in tools}
    aliases = {alias: tool for tool in known.values() for alias in tool.aliases}
    given = [f"({snake_case(one)})" for one, value in (arguments or {}).items() if value not in (None, "")]
    keys = (f"{one}{argument}" for argument in (*given, "") for one in (plain.replace("_", ""), plain))
    found = known.get(plain) or next((aliases[key] for key in keys if key in aliases), None)
    if found is None:
        raise ValueError(f"there is no tool {name!r}; the tools are {', '.join(known)}")
    return found


def snake_case(name: str) -> str:
    """Return a name such as `filePattern` or `file-pattern` in snake case; leave a flag such as `-i` as it is."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower().replace("-", "_") if name[:1] != "-" else name
