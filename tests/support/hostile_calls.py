"""Calls of all tools with hostile values for each argument, made from the schemas of the tools.

Texts need values in a table (`support.hostile`, `support.hostile_deny`). An argument without values is an error, so a
test fails as soon as a tool gets a new argument. Numbers, booleans and enums get values from the schema.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle, islice
from typing import Any, TypeAlias

from ripwrap import workspace

Call: TypeAlias = tuple[str, dict[str, Any]]
Values: TypeAlias = Mapping[str, Sequence[Any]]

SCHEMAS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    tool: arguments["properties"]
    for tool, (_, arguments, _) in workspace.schemas(index=True, anchors=True, write=True).items()
}
"""Arguments of each tool, with their schemas."""

BASES: Mapping[str, Mapping[str, Any]] = {
    "grep_content": {"pattern": "secret"},
    "find_files": {},
    "ls": {},
    "tree": {},
    "codebase_search": {"query": "secret"},
    "read_file": {"path": "a/b/file.py"},
    "find_references": {"name": "needle"},
    "history": {},
    "index_codebase": {},
    "index_status": {},
    "index_health_check": {},
    "resolve": {"anchor": "a/b/file.py#1·k7q"},
    "replace_content": {"pattern": "secret", "replacement": "open", "apply": True},
}
"""Arguments with which each tool answers; a new tool needs an entry here."""

_ALL = {"include_hidden": True, "include_ignored": True}
FORMATS = "zip,tar,gz,bz2,xz,ipynb"

VARIANTS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "grep_content": (
        *({}, {"sections": True}, {"expand": "definition"}, {"rev": "HEAD"}, {"inside": FORMATS}, _ALL),
        *({"output_mode": "count"}, {"rev": "HEAD", "inside": FORMATS}, {"output_mode": "files_with_matches", **_ALL}),
        *({"multiline": True, "context_lines": 9}, {"inside": FORMATS, **_ALL}),
    ),
    "find_files": ({}, {"entry_type": "any", **_ALL}, {"sort": "newest"}),
    "ls": ({}, _ALL),
    "tree": ({}, _ALL),
    "replace_content": ({}, _ALL, {"apply": False}, {"fixed_strings": True, **_ALL}),
}
"""Further arguments of a tool, which its calls have in turn."""


def values_of(tool: str, name: str, table: Values) -> list[Any]:
    """Return the hostile values of an argument: those in the table for texts, and others that follow from its schema.

    Raises:
        LookupError: The argument has no values; add some to the table.
    """
    schema = SCHEMAS[tool][name]
    if "enum" in schema:
        return [*schema["enum"], "../outside"]
    match schema["type"]:
        case "boolean":
            return [True, False, "../outside"]
        case "integer":
            return [schema["minimum"], 1, schema["maximum"], schema["maximum"] + 1, -1, "../outside"]
        case "string" | "array" if name in table:
            return [[value] for value in table[name]] if schema["type"] == "array" else list(table[name])
        case _:
            raise LookupError(f"{tool} has an argument {name} without hostile values; add some to the table")


def calls(
    table: Values, every: int, *, variants_of: Mapping[str, Sequence[Mapping[str, Any]]] = VARIANTS
) -> Iterator[Call]:
    """Yield calls of all tools: for each argument its first two values, and every so many of the others."""
    for tool, properties in SCHEMAS.items():
        variants = cycle(variants_of.get(tool, ({},)))
        if not properties:
            yield tool, {}
        for name in properties:
            values = values_of(tool, name, table)
            for value in [*values[:2], *islice(values, 2, None, every)]:
                base = {} if name == "like" else BASES[tool]  # it stands in place of a query
                yield tool, {**base, **next(variants), name: value}
