"""Find the definitions of a file in its syntax tree: the lines, name and kind of each, and what is around it."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from ripwrap._code.outline import MAX_NAME_CHARS, Definition, LiteralSpan
from ripwrap._code.treesitter.languages import FUNCTION_VALUES, Grammar, heading_level, node_text, node_types

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Query

MAX_DEPTH = 30
"""Maximum depth of nested definitions; a deeper definition is a part of the definition at this depth."""

_LAST_NAME = re.compile(r"(?<!\w)([^\W\d]\w*)(?:[?!=]|(?::\w+)*:)?$")
"""Pattern for the last part of a name, such as `add` in `Shop.add`, `add?` and `add:to:`."""
_MIN_CONSTANT_LINES = 4
"""Minimum number of lines of a constant that is treated as a definition."""
_MAX_WRAPPERS = 8
"""Maximum depth of nested wrappers (such as `export`) around a definition, and maximum number of children of a wrapper
that are searched.
"""
_TYPE_WORDS = node_types(
    "class struct interface enum union trait impl protocol extension actor record object mod module namespace "
    "package given type contract mixin data newtype instance"
)
_FUNCTION_PARTS = node_types(
    "function method constructor destructor init initializer deinit subscript operator indexer signature macro "
    "delegate bind test arrow generator preproc"
)
"""Words in the types of nodes that are functions."""


@dataclass(slots=True)
class SyntaxDefinition:
    """A definition in a syntax tree. Lines are given by their indexes, from 0."""

    name: str
    kind: str
    first: int
    line: int
    last: int
    start: int
    end: int
    node: "Node"
    is_namespace: bool = False
    is_constant: bool = False
    parent: int = -1
    depth: int = 0
    level: int | str = 0


@dataclass(frozen=True, slots=True)
class SyntaxOutline:
    """Definitions in a syntax tree, in the order of their beginnings."""

    grammar: Grammar
    language: "Language"
    lines: Sequence[str]
    root: "Node"
    found: Sequence[SyntaxDefinition]
    constants: Sequence[tuple[int, str]] = ()
    """Row and name of each constant at the top level, however short."""

    def definitions(self) -> list[Definition]:
        """Return the definitions of the outline: without constants, without keys of one line, and without data."""
        if not self.grammar.outlined:
            return []
        kept: list[Definition] = []
        numbers: list[int] = []
        for one in self.found:
            parent = numbers[one.parent] if one.parent >= 0 else -1
            shown = not one.is_constant and (one.kind != "key" or one.last > one.line)
            numbers.append(len(kept) if shown else parent)
            if shown:
                kept.append(Definition(one.name, one.kind, one.first, one.line, one.last, parent))
        return kept

    def code(self) -> tuple[object, ...]:
        """Return the definitions and names for `CodeNames.of()`, to be written as JSON."""
        return self.definitions(), self.grammar.qualified, self.names()

    def names(self) -> list[tuple[int, str]]:
        """Return the row and the last part of the name of each definition and constant of code, in order."""
        if self.grammar.kind or not self.grammar.outlined:
            return []
        named = [(one.line, last) for one in self.found if (last := _last_name(one.name))]
        return sorted({*named, *((row, name) for row, name in self.constants if name.isidentifier())})

    def imports(self) -> "list[Node]":
        """Return the nodes of imports."""
        return self._captured(is_import)

    def _captured(self, wanted: "Callable[[str], bool]") -> "list[Node]":
        from tree_sitter import QueryCursor  # late: an optional package

        return QueryCursor(_type_query(self.language, wanted)).captures(self.root).get("found", [])

    def literals(self) -> list[LiteralSpan]:
        """Return the comments and strings of the file, without those that are in another one."""
        spans: list[LiteralSpan] = []
        end = -1
        for kind in sorted(self._captured(_is_literal), key=lambda one: one.start_byte):
            if kind.start_byte < end or kind.type in self.grammar.attributes:
                continue
            end = kind.end_byte
            (first, start), (last, stop) = kind.start_point, kind.end_point
            columns = self._column(first, start), self._column(last, stop)
            spans.append(LiteralSpan(first, columns[0], last, columns[1], is_comment(kind.type)))
        return spans

    def _column(self, row: int, column: int) -> int:
        line = self.lines[row] if row < len(self.lines) else ""
        return column if line.isascii() else len(line.encode("utf-8", "replace")[:column].decode("utf-8", "replace"))

    def children(self) -> dict[int, list[int]]:
        """Return the indexes of the definitions directly in each definition; -1 is the file."""
        inside: dict[int, list[int]] = {}
        for number, one in enumerate(self.found):
            inside.setdefault(one.parent, []).append(number)
        return inside

    def shows(self, number: int, max_bytes: int) -> bool:
        """Return True if all nodes between a definition and the one around it are containers, or larger than this."""
        one = self.found[number]
        if self.grammar.kind == "heading":
            return True
        around = self.root if one.parent < 0 else self.found[one.parent].node
        through = self.grammar.containers | self.grammar.wrappers | {"ERROR"}
        node = one.node.parent
        while node is not None and node != around:
            if node.type not in through and node.end_byte - node.start_byte <= max_bytes:
                return False
            node = node.parent
        return True

    def qualified_name(self, outer: str | None, name: str) -> str | None:
        """Return a qualified name (`Shop.add`); for an empty `name`, return `outer`."""
        name = name[:MAX_NAME_CHARS]
        if not outer or not self.grammar.qualified:
            return name or outer
        full = f"{outer}.{name}" if name else outer
        return full if len(full) <= MAX_NAME_CHARS else name


def read_syntax(grammar: Grammar, language: "Language", lines: Sequence[str], root: "Node") -> SyntaxOutline:
    """Find the definitions in a syntax tree."""
    from tree_sitter import QueryCursor  # late: an optional package

    captured = QueryCursor(_query(grammar, language)).captures(root)
    nodes = captured.get("definition", [])
    if grammar.kind == "heading":
        return SyntaxOutline(grammar, language, lines, root, _headings(grammar, lines, nodes))
    leading: set[int] = set()  # rows of comments and attributes that no code precedes on their line
    for node in captured.get("leading", []):
        row, column = node.start_point
        line = lines[row].replace("\0", " ") if row < len(lines) else ""
        if len(line) - len(line.lstrip()) >= column:
            leading.update(range(row, _last_row(node) + 1))
    found = [one for node in nodes if (one := _definition(grammar, node, leading)) is not None]
    constants = [_constant(grammar, node, leading) for node in _constant_nodes(grammar, root)]
    found += [one for one in constants if one.last - one.line + 1 >= _MIN_CONSTANT_LINES]
    named = [(one.line, one.name) for one in constants]
    return SyntaxOutline(grammar, language, lines, root, _nested(found, lines), named)


def _last_name(name: str) -> str:
    """Return the last part of a name; empty if it is no identifier."""
    if name.isascii() and name.isidentifier():  # a third of the time of the pattern
        return name
    return last[1] if (last := _LAST_NAME.search(name)) else ""


def is_comment(kind: str) -> bool:
    """Return True for the type of a node that is a comment."""
    return "comment" in kind or kind in {"haddock", "pod_statement"}


def is_import(kind: str) -> bool:
    """Return True for the type of a node that is an import."""
    return _IMPORT.match(kind) is not None


_IMPORT = re.compile(
    r"^(?:import(?:_|$)|future_import|use_declaration|using_d|namespace_use_d|preproc_include|extern_crate|use_no_st)"
)


def is_string(kind: str) -> bool:
    """Return True for the type of a node that is a string, or another literal that may have brackets in it."""
    return _STRING.search(kind) is not None


_STRING = re.compile(
    r"^(?:string|template_string|heredoc|regex|raw_text|dollar_quote)(?:_|$)|string_literal|(?:^|_)string(?:_quoted)?$"
    r"|(?:char|character|rune)_literal|heredoc_body|string_(?:single|double)_quoted|^sigil$"
)


@cache
def _query(grammar: Grammar, language: "Language") -> "Query":
    """Return a query for the nodes of definitions, and of what stands above a definition."""
    from tree_sitter import Query  # late: an optional package

    names = {language.node_kind_for_id(number) or "" for number in range(language.node_kind_count)}
    groups = {"definition": grammar.definitions, "leading": {*filter(is_comment, names), *grammar.attributes}}
    return Query(language, "\n".join(_captures(language, types, group) for group, types in groups.items()))


@cache
def _type_query(language: "Language", wanted: "Callable[[str], bool]") -> "Query":
    """Return a query for the nodes whose type is wanted."""
    from tree_sitter import Query  # late: an optional package

    names = (language.node_kind_for_id(number) or "" for number in range(language.node_kind_count))
    return Query(language, _captures(language, {*filter(wanted, names)}, "found"))


def _captures(language: "Language", types: "Iterable[str]", group: str) -> str:
    known = [f"({one})" for one in sorted(types) if one == "ERROR" or language.id_for_node_kind(one, True)]
    return f"[{' '.join(known)}] @{group}" if known else ""


def _is_literal(kind: str) -> bool:
    return is_comment(kind) or is_string(kind)


def _definition(grammar: Grammar, node: "Node", leading: set[int]) -> SyntaxDefinition | None:
    named = grammar.definitions[node.type](node)
    if named is None:
        return None
    outer = _wrapped(grammar, node)
    name = named if isinstance(named, str) else node_text(named)
    line = _name_row(node, named)
    body = outer.next_named_sibling  # in Dart, the body is beside the signature
    end = body if body is not None and body.type == "function_body" else outer
    return SyntaxDefinition(
        name,
        kind_of(grammar, node),
        _first_row(min(outer.start_point.row, line), leading),
        line,
        max(_last_row(end), line),
        outer.start_byte,
        end.end_byte,
        node,
        is_namespace=node.type in grammar.namespaces,
    )


def _constant_nodes(grammar: Grammar, root: "Node") -> "Iterator[Node]":
    """Yield the nodes of constants at the top level."""
    through = grammar.containers | grammar.wrappers | {"ERROR"}
    around = [root] if grammar.constants else []
    while around:
        for node in around.pop().named_children:
            if node.type in grammar.constants and not _defines(grammar, node):
                yield node
            if node.type in through:
                around.append(node)


def _constant(grammar: Grammar, node: "Node", leading: set[int]) -> SyntaxDefinition:
    first, last = node.start_point.row, _last_row(node)
    named = grammar.constants[node.type](node) or ""
    name = named if isinstance(named, str) else node_text(named)
    return SyntaxDefinition(
        name, "", _first_row(first, leading), first, last, node.start_byte, node.end_byte, node, is_constant=True
    )


def _wrapped(grammar: Grammar, node: "Node") -> "Node":
    """Return the outermost wrapper that has this definition and no other, or the definition."""
    outer, around = node, node.parent
    for _ in range(_MAX_WRAPPERS):
        if around is None or around.type not in grammar.wrappers:
            break
        children = around.named_children[:_MAX_WRAPPERS]
        if any(one != outer and _defines(grammar, one) for one in children):
            break
        outer, around = around, around.parent
    return node if outer.type == "argument_list" else outer


def _defines(grammar: Grammar, node: "Node") -> bool:
    rule = grammar.definitions.get(node.type)
    return rule is not None and rule(node) is not None


def _first_row(first: int, leading: set[int]) -> int:
    while first - 1 in leading:
        first -= 1
    return first


def _name_row(node: "Node", named: "Node | str") -> int:
    """Return the row of the name if it is above the body, else the first row of the definition's code."""
    at = node.child_by_field_name("name") if isinstance(named, str) else named
    body = node.child_by_field_name("body") or node.child_by_field_name("type")
    if at is not None and (body is None or body.child_by_field_name("body") is None or at.start_byte < body.start_byte):
        return at.start_point.row
    for child in node.children:
        if not any(word in child.type for word in ("comment", "attribute", "modifiers", "decorator", "annotation")):
            return child.start_point.row
    return node.start_point.row


def kind_of(grammar: Grammar, node: "Node") -> str:
    """Return the kind of a definition: `function`, or the word with which its language defines it, such as `class`."""
    if grammar.kind:
        return grammar.kind
    if grammar.name == "sql":
        words = (child.type.removeprefix("keyword_") for child in node.named_children[1:6])
        return next((word for word in words if word not in {"or", "replace", "temp", "temporary", "unique"}), "")
    if grammar.name == "elixir":
        word = node_text(node.child_by_field_name("target"))
        return word if word in {"defmodule", "defprotocol", "defimpl"} else "function"
    if node.type == "type_definition" and (made := node.child_by_field_name("type")) is not None:
        return kind_of(grammar, made)
    value = node.child_by_field_name("value") or node.child_by_field_name("right")
    if value is not None and value.type in FUNCTION_VALUES:
        return "class" if value.type == "class" else "function"
    if node.type in _KINDS:
        return _KINDS[node.type]
    parts = node.type.split("_")
    if not _FUNCTION_PARTS.isdisjoint(parts) or grammar.name in {"r", "lua"}:
        return "function"
    return _type_word(node) or next((part for part in parts if part in _TYPE_WORDS), "")


_KINDS = {
    **dict.fromkeys(("property_declaration", "event_declaration"), "property"),
    **dict.fromkeys(
        ("assignment", "short_var_declaration", "var_spec", "method_elem", "compound_statement"), "function"
    ),
    **dict.fromkeys(("type_spec", "alias_declaration"), "type"),
}


def _type_word(node: "Node") -> str:
    for child in node.children:
        word = child.type.lstrip("@")
        if word in _TYPE_WORDS and (not child.is_named or word == "mixin"):
            return word
        if child.type in {"struct_declaration", "enum_declaration", "union_declaration"}:
            return child.type.partition("_")[0]
    return ""


def _nested(found: list[SyntaxDefinition], lines: Sequence[str]) -> list[SyntaxDefinition]:
    """Sort definitions, and set what is around each; none has lines of the next one beside it, or blank lines below."""
    found.sort(key=lambda one: (one.start, -one.end, one.is_constant))
    kept: list[SyntaxDefinition] = []
    stack: list[int] = []
    for one in found:
        below = len(kept)
        while stack and kept[stack[-1]].end <= one.start:
            below = stack.pop()
        if stack and kept[stack[-1]].depth + 1 >= MAX_DEPTH:
            continue
        for before in kept[below:]:
            if before.last >= one.first > before.line:
                before.last = one.first - 1
        one.parent = stack[-1] if stack else -1
        one.depth = kept[one.parent].depth + 1 if stack else 0
        stack.append(len(kept))
        kept.append(one)
    for one in kept:
        while one.last > one.line and (one.last >= len(lines) or not lines[one.last].strip()):
            one.last -= 1
    return kept


def _headings(grammar: Grammar, lines: Sequence[str], nodes: "Iterable[Node]") -> list[SyntaxDefinition]:
    """Make a section of each heading, which ends before the next heading of its level or of a higher one."""
    found: list[SyntaxDefinition] = []
    levels: list[int | str] = []
    for node in sorted(nodes, key=lambda node: node.start_byte):
        level = heading_level(node, lambda row: lines[row] if 0 <= row < len(lines) else "")
        name = grammar.definitions[node.type](node)
        if level is None or not isinstance(name, str):
            continue
        row = node.start_point.row
        first = row - (isinstance(level, str) and len(level) > 1)
        if isinstance(level, str):  # the order of the underlines in a file tells their levels
            if level not in levels:
                levels.append(level)
            level = levels.index(level)
        stop = len(lines) - 1
        found.append(SyntaxDefinition(name, "heading", first, row, stop, row, stop, node, level=level))
    open_: list[SyntaxDefinition] = []
    for one in found:
        while open_ and int(open_[-1].level) >= int(one.level):
            before = open_.pop()
            before.last, before.end = one.first - 1, one.start
        open_.append(one)
    for one in open_:
        one.end += 1
    return _nested(found, lines)


def _last_row(node: "Node") -> int:
    """Return the index of the last line of a node; the line after a newline at its end does not count."""
    end = node.end_point
    return end.row - (end.column == 0 and end.row > node.start_point.row)
