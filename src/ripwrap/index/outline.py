"""A syntax tree to the definitions of a file: which lines each has, what it is called, and what is in it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ripwrap.index.languages import Grammar, Name, spelled

if TYPE_CHECKING:
    from tree_sitter import Node

_LONGEST_NAME = 200
_LEAST_CONSTANT = 4  # Lines of a constant that is a definition.
_NONE: Mapping[str, Name] = {}
_WRAPPED = 8  # How deep a definition may stand in what belongs to it.


class Found(NamedTuple):
    """A definition.

    Attributes:
        first: Its first line, from 0, with the comments and decorators above it.
        last: Its last line.
        name: What it is called; empty if that can't be told.
        space: Whether it is looked into even if it is small.
        node: Where it is in the tree, for what is in it; `None` if there is nothing.
    """

    first: int
    last: int
    name: str
    space: bool
    node: "Node | None"


@dataclass(frozen=True, slots=True)
class Outline:
    """The definitions of a file, asked for one level at a time, so that what is small is never looked into.

    Attributes:
        grammar: How they are found.
        lines: The file's lines.
        large: How many bytes a node has that may be looked through because of its size.
    """

    grammar: Grammar
    lines: Sequence[str]
    large: int

    def within(self, node: "Node", *, top: bool) -> Iterator[Found]:
        """The definitions in a node, in order, but not those in them; in broken source they may overlap.

        Args:
            node: The root of the tree, or the node of a definition.
            top: Whether it is the root.
        """
        if self.grammar.headings:
            return self._headed(node)
        found = self._defined(node, top=top)
        return self._lifted(found) if self.grammar.hashes else found

    def qualified(self, outer: str | None, name: str) -> str | None:
        """A name with that of what it stands in; alone if that is longer than a line should be."""
        name = name[:_LONGEST_NAME]
        if not outer or not self.grammar.qualified:
            return name or outer
        full = f"{outer}.{name}" if name else outer
        return full if len(full) <= _LONGEST_NAME else name

    def _defined(self, node: "Node", *, top: bool) -> Iterator[Found]:
        grammar = self.grammar
        constants = grammar.constants if top else _NONE
        levels = [_Level(node.named_children)]
        while levels:
            level = levels[-1]
            if (child := level.next()) is None:
                levels.pop()
                continue
            kind = child.type
            if "comment" in kind or kind in grammar.above:
                level.lead(child)
                continue
            if kind in grammar.wrappers:
                found = self._wrapped(child)
            else:
                found = _Named(child, name) if (name := self._name(child)) is not None else None
            if found is not None:
                yield level.found(child, found, space=found.node.type in grammar.spaces)
            elif (constant := constants.get(kind)) is not None and _rows(child) >= _LEAST_CONSTANT:
                yield level.found(child, _Named(child, constant(child) or ""), space=False)
            elif kind == "ERROR" or kind in grammar.through or kind in grammar.wrappers or self._is_large(child):
                levels.append(_Level(child.named_children))
            level.passed(child)

    def _name(self, node: "Node") -> str | None:
        named = self.grammar.definitions.get(node.type)
        return None if named is None else named(node)

    def _is_large(self, node: "Node") -> bool:
        return node.type in self.grammar.large and node.end_byte - node.start_byte > self.large

    def _wrapped(self, node: "Node") -> "_Named | None":
        """The only definition in what stands around it."""
        grammar = self.grammar
        only: _Named | None = None
        left = [(node, 0)]
        while left:
            outer, depth = left.pop()
            for child in (
                outer.named_children if outer.named_child_count < _WRAPPED else outer.named_children[:_WRAPPED]
            ):
                if (name := self._name(child)) is not None:
                    if only is not None:
                        return None
                    only = _Named(child, name)
                elif depth < _WRAPPED and (child.type in grammar.wrappers or child.type == "argument_list"):
                    left.append((child, depth + 1))
        return only

    def _lifted(self, found: Iterator[Found]) -> Iterator[Found]:
        """The definitions with the lines of comments above them, which the tree may count as the one before."""
        before: Found | None = None
        for one in found:
            first, least = one.first, before.first + 1 if before else 0
            while first > least and self.lines[first - 1].lstrip().startswith("#"):
                first -= 1
            if before is not None:
                yield before._replace(last=min(before.last, first - 1))
            before = one._replace(first=first)
        if before is not None:
            yield before

    def _headed(self, node: "Node") -> Iterator[Found]:
        """The sections of Markdown; what has an underlined heading is none in the tree, and ends before the next."""
        opened: Found | None = None
        for child in _unheaded(node):
            section = child.type == "section"
            if section or child.type == "setext_heading":
                first = child.start_point.row
                if opened is not None:
                    yield opened._replace(last=first - 1)
                heading = next(iter(child.named_children), None) if section else child
                name = spelled(heading.child_by_field_name("heading_content")).strip("# ") if heading else ""
                found = Found(first, _last(child), name, space=False, node=child if section else None)
                opened = None if section else found
                if section:
                    yield found
        if opened is not None:
            yield opened._replace(last=_last(node))


def _unheaded(node: "Node") -> Iterator["Node"]:
    """What is in a section behind its heading; to the grammar, what is before a file's first heading is a section."""
    for number, child in enumerate(node.named_children):
        first = next(iter(child.named_children), None) if child.type == "section" else None
        if child.type == "section" and (first is None or not first.type.endswith("_heading")):
            yield from child.named_children
        elif number or not child.type.endswith("_heading") or node.type != "section":
            yield child


class _Named(NamedTuple):
    node: "Node"
    name: str


class _Level:
    """The children of a node, and the comments and decorators above the next one."""

    __slots__ = ("_above", "_end", "_iterator", "_upto")

    def __init__(self, children: "list[Node]") -> None:
        self._iterator = iter(children)
        self._above: int | None = None
        self._upto = -1
        self._end = -1

    def next(self) -> "Node | None":
        return next(self._iterator, None)

    def lead(self, node: "Node") -> None:
        """Something that belongs to what follows, unless it stands behind code or before a blank line."""
        first = node.start_point.row
        if first == self._end:
            return
        if self._above is None or first > self._upto + 1:
            self._above = first
        self._upto = _last(node)

    def passed(self, node: "Node") -> None:
        self._above, self._end = None, _last(node)

    def found(self, node: "Node", found: _Named, *, space: bool) -> Found:
        first = node.start_point.row
        if self._above is not None and self._upto + 1 >= first:
            first = self._above
        return Found(first, max(_last(node), _last(found.node)), found.name, space, found.node)


def _last(node: "Node") -> int:
    """The last line of a node; one that ends with a line's end does not have the next."""
    end = node.end_point
    return end.row - (end.column == 0 and end.row > node.start_point.row)


def _rows(node: "Node") -> int:
    return node.end_point.row - node.start_point.row + 1
