"""Find the definitions of a file in its syntax tree, with the lines, name and contents of each definition."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ripwrap._code.outline import MAX_NAME_CHARS
from ripwrap._code.treesitter.languages import Grammar, NameRule, node_text

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_DEPTH = 30
"""Maximum depth of nested definitions; a deeper definition is a part of the definition at this depth."""

_MIN_CONSTANT_LINES = 4
"""Minimum number of lines of a constant that is treated as a definition."""
_NO_RULES: Mapping[str, NameRule] = {}
_MAX_WRAPPERS = 8
"""Maximum depth of nested wrappers (such as `export`) around a definition, and maximum number of children of a wrapper
that are searched.
"""


class SyntaxDefinition(NamedTuple):
    """A definition in a syntax tree."""

    first: int
    last: int
    name: str
    is_namespace: bool
    node: "Node | None"


@dataclass(frozen=True, slots=True)
class SyntaxOutline:
    """Definitions in a syntax tree, which are found one level at a time."""

    grammar: Grammar
    lines: Sequence[str]
    root: "Node"
    max_container_bytes: int = 0

    def definitions_in(self, node: "Node", *, top: bool) -> Iterator[SyntaxDefinition]:
        """Find the outermost definitions in a node, in order. They may overlap if the source has syntax errors."""
        if self.grammar.headings:
            return self._markdown_sections(node)
        found = self._definitions(node, top=top)
        return self._with_hash_comments(found) if self.grammar.hash_comments else found

    def qualified_name(self, outer: str | None, name: str) -> str | None:
        """Return a qualified name (`Shop.add`); for an empty `name`, return `outer`.

        Return only `name` if the qualified name is too long, or if the grammar does not qualify names.
        """
        name = name[:MAX_NAME_CHARS]
        if not outer or not self.grammar.qualified:
            return name or outer
        full = f"{outer}.{name}" if name else outer
        return full if len(full) <= MAX_NAME_CHARS else name

    def _definitions(self, node: "Node", *, top: bool) -> Iterator[SyntaxDefinition]:
        grammar = self.grammar
        constants = grammar.constants if top else _NO_RULES
        levels = [_Level(node.named_children)]
        while levels:
            level = levels[-1]
            if (child := level.next()) is None:
                levels.pop()
                continue
            kind = child.type
            if "comment" in kind or kind in grammar.attributes:
                level.add_leading(child)
                continue
            if kind in grammar.wrappers:
                found = self._unwrap(child)
            else:
                found = _NamedNode(child, name) if (name := self._name(child)) is not None else None
            if found is not None:
                yield level.definition(child, found, is_namespace=found.node.type in grammar.namespaces)
            elif (constant := constants.get(kind)) is not None and _line_count(child) >= _MIN_CONSTANT_LINES:
                yield level.definition(child, _NamedNode(child, constant(child) or ""), is_namespace=False)
            elif kind == "ERROR" or kind in grammar.containers or kind in grammar.wrappers or self._is_large(child):
                levels.append(_Level(child.named_children))
            level.skip(child)

    def _name(self, node: "Node") -> str | None:
        rule = self.grammar.definitions.get(node.type)
        return None if rule is None else rule(node)

    def _is_large(self, node: "Node") -> bool:
        return node.type in self.grammar.large_containers and node.end_byte - node.start_byte > self.max_container_bytes

    def _unwrap(self, node: "Node") -> "_NamedNode | None":
        """Return the definition in a wrapper, or None if the wrapper has no definition or several."""
        grammar = self.grammar
        only: _NamedNode | None = None
        left = [(node, 0)]
        while left:
            outer, depth = left.pop()
            children = outer.named_children
            for child in children if len(children) < _MAX_WRAPPERS else children[:_MAX_WRAPPERS]:
                if (name := self._name(child)) is not None:
                    if only is not None:
                        return None
                    only = _NamedNode(child, name)
                elif depth < _MAX_WRAPPERS and (child.type in grammar.wrappers or child.type == "argument_list"):
                    left.append((child, depth + 1))
        return only

    def _with_hash_comments(self, found: Iterator[SyntaxDefinition]) -> Iterator[SyntaxDefinition]:
        """Move comment lines above a definition into it; in the tree, they may be part of the previous definition."""
        before: SyntaxDefinition | None = None
        for definition in found:
            first, least = definition.first, before.first + 1 if before else 0
            while first > least and self.lines[first - 1].lstrip().startswith("#"):
                first -= 1
            if before is not None:
                yield before._replace(last=min(before.last, first - 1))
            before = definition._replace(first=first)
        if before is not None:
            yield before

    def _markdown_sections(self, node: "Node") -> Iterator[SyntaxDefinition]:
        """Find the sections of Markdown.

        The grammar makes sections of `#` headings only. An underlined heading (`setext_heading`) is an ordinary child,
        so its section is made here; it ends before the next heading.
        """
        underlined: SyntaxDefinition | None = None
        for child in _section_contents(node):
            is_section = child.type == "section"
            if is_section or child.type == "setext_heading":
                first = child.start_point.row
                if underlined is not None:
                    yield underlined._replace(last=first - 1)
                heading = next(iter(child.named_children), None) if is_section else child
                name = node_text(heading.child_by_field_name("heading_content")).strip("# ") if heading else ""
                found = SyntaxDefinition(
                    first, _last_row(child), name, is_namespace=False, node=child if is_section else None
                )
                underlined = None if is_section else found
                if is_section:
                    yield found
        if underlined is not None:
            yield underlined._replace(last=_last_row(node))


def _section_contents(node: "Node") -> Iterator["Node"]:
    """Find the contents of a section below its heading.

    The grammar also makes a section of the text before the first heading. The contents of such a section count as
    contents of the outer section.
    """
    for number, child in enumerate(node.named_children):
        first = next(iter(child.named_children), None) if child.type == "section" else None
        if child.type == "section" and (first is None or not first.type.endswith("_heading")):
            yield from child.named_children
        elif number or not child.type.endswith("_heading") or node.type != "section":
            yield child


class _NamedNode(NamedTuple):
    node: "Node"
    name: str


class _Level:
    """Children of a node, read one by one, and the comments and decorators above the next child."""

    __slots__ = ("_children", "_code_end", "_leading_end", "_leading_start")

    def __init__(self, children: "list[Node]") -> None:
        self._children = iter(children)
        self._leading_start: int | None = None
        self._leading_end = -1
        self._code_end = -1

    def next(self) -> "Node | None":
        return next(self._children, None)

    def add_leading(self, node: "Node") -> None:
        """Keep a comment or decorator for the next definition, unless it follows code on its line.

        A comment is also dropped if a blank line is between it and the definition.
        """
        first = node.start_point.row
        if first == self._code_end:
            return
        if self._leading_start is None or first > self._leading_end + 1:
            self._leading_start = first
        self._leading_end = _last_row(node)

    def skip(self, node: "Node") -> None:
        self._leading_start, self._code_end = None, _last_row(node)

    def definition(self, node: "Node", found: _NamedNode, *, is_namespace: bool) -> SyntaxDefinition:
        first = node.start_point.row
        if self._leading_start is not None and self._leading_end + 1 >= first:
            first = self._leading_start
        return SyntaxDefinition(
            first, max(_last_row(node), _last_row(found.node)), found.name, is_namespace, found.node
        )


def _last_row(node: "Node") -> int:
    """Return the index of the last line of a node; the line after a newline at its end does not count."""
    end = node.end_point
    return end.row - (end.column == 0 and end.row > node.start_point.row)


def _line_count(node: "Node") -> int:
    return node.end_point.row - node.start_point.row + 1
