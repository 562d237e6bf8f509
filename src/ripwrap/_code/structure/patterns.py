"""Parse a pattern of ast-grep: check it, and find its metavariables and the texts that each match contains.

The texts follow from the rules of ast-grep (`crates/core/src/match_tree` of ast-grep, strictness `smart`). A named node
of the pattern without children matches only a node with the same text. Tokens without a name, such as commas and
keywords, are compared by their kind, which is their text in the grammar. Tokens after a list (`$$$`) are not compared.

A part of a pattern may not parse: in Java, `$$$B` lacks a semicolon in `if ($C) { $$$B }`. tree-sitter puts such code
into an `ERROR` node. ast-grep compares it with a node of any kind, and a metavariable in it captures code as elsewhere.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from string import ascii_uppercase, digits
from typing import NamedTuple

from ast_grep_py import SgNode, SgRoot

from ripwrap._code.structure.client import Language

_CAUSE = re.compile(r"^ +\d+: (.+)$", re.MULTILINE)
_SIGILS = re.compile(r"(\$+)(.?)", re.DOTALL)
_METAVARIABLE = re.compile(r"\${1,3}[A-Z_]\w*|\${3}", re.ASCII)
_BRACKETS = (("(", ")"), ("[", "]"), ("{", "}"))
_NAME_CHARACTERS = f"{ascii_uppercase}{digits}_"
_NAME = f"[{_NAME_CHARACTERS}]*"
_WORD = re.compile("[A-Za-z]{2,}")

_EXACT_KEYWORDS = frozenset(["c", "cpp", "go", "java", "javascript", "lua", "python", "rust", "tsx", "typescript"])
"""Languages whose keywords have only one spelling. In PHP, in contrast, `IF` and `if` are the same keyword."""

_COMMON = frozenset(("None", "True", "False", "self", "cls", "this", "null", "true", "false", "nil", "super"))
"""Names that nearly all files contain."""


_FUNCTIONS = {
    "c": ("void f() {{ x = {0}; }}", "void f() {{ {0}; }}"),
    "cpp": ("void f() {{ x = {0}; }}", "void f() {{ {0}; }}", "int {0} = x;"),
    "csharp": ("class C {{ void f() {{ x = {0}; }} }}", "class C {{ void f() {{ {0}; }} }}", "{0};"),
    "go": ("package p\nfunc f() {{ x = {0} }}", "package p\nfunc f() {{ {0} }}", "package p\nvar x {0}"),
    "solidity": (
        "contract C {{ function f() public {{ x = {0}; }} }}",
        "contract C {{ function f() public {{ {0}; }} }}",
        "contract C {{ function f() public {{ {0} }} }}",
        "contract C {{ {0} x; }}",
    ),
}
"""Code that a pattern may be a part of, for languages that read expressions and statements outside of a function as
declarations."""

_CALLED = re.compile(r"^[\w.]+(?=\()")
"""Pattern for the function that a call names; Go reads `a.f(b)` as a conversion, but `$F(b)` as a call."""

_PHP_BEGIN = re.compile(r"<\?(?:=|php(?!\S))", re.IGNORECASE)
_PHP_END = re.compile(
    r"""'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*"|`[^`\\]*(?:\\.[^`\\]*)*`|/\*.*?\*/"""
    r"""|<<<[ \t]*(?P<quote>["']?)(?P<name>\w+)(?P=quote)\n.*?\n[ \t]*(?P=name)\b"""
    r"""|(?P<comment>(?://|\#(?!\[))(?:(?!\?>)[^\n])*)|(?P<end>\?>)""",
    re.DOTALL,
)
_NOT_LINE_END = re.compile(r"[^\r\n]")


class BadPatternError(Exception):
    """Error for a pattern or a fix that cannot be used; the message says why."""


class Variable(NamedTuple):
    """Metavariable of a pattern."""

    name: str
    multiple: bool = False
    named: bool = True


@dataclass(frozen=True, slots=True)
class Goal:
    """Node in the syntax tree of a pattern, which is compared with nodes of a text."""

    kind: str
    text: str
    named: bool
    variable: Variable | None
    children: tuple["Goal", ...]
    span: tuple[int, int]

    def walk(self) -> Iterator["Goal"]:
        """Yield this node and all nodes below it."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class Pattern:
    """Pattern that ast-grep accepts."""

    source: str
    language: Language
    root: Goal

    @property
    def variables(self) -> Sequence[Variable]:
        """Metavariables that capture something, in the order of the pattern."""
        found = (goal.variable for goal in self.root.walk())
        return tuple({(one.name, one.multiple): one for one in found if one is not None and one.name}.values())

    @property
    def by_name(self) -> Mapping[str, Variable]:
        """Metavariables by name; if the pattern has both `$NAME` and `$$$NAME`, only `$NAME`."""
        known: dict[str, Variable] = {}
        for one in self.variables:
            if one.name not in known or not one.multiple:
                known[one.name] = one
        return known

    @property
    def leaves(self) -> Iterator[tuple[Goal, bool]]:
        """Metavariables and nodes without children, in order, with False for tokens that ast-grep does not compare."""
        return _leaves(self.root)

    @property
    def numbered(self) -> str:
        """Source of the pattern with `$V0`, `$V1`, … in place of its metavariables."""
        parts, done = list[str](), 0
        for number, goal in enumerate(goal for goal in self.root.walk() if goal.variable is not None):
            start, end = goal.span
            sigils = self.source[start:end].rstrip(_NAME_CHARACTERS)
            parts += self.source[done:start], f"{sigils}V{number}"
            done = end
        return "".join((*parts, self.source[done:]))

    @property
    def literals(self) -> tuple[str, ...]:
        """Texts that each match contains, such as names and keywords."""
        leaves = [goal for goal, is_required in self.leaves if is_required and goal.variable is None]
        texts = {line.strip() for leaf in leaves if leaf.named for line in leaf.text.splitlines()} - {""}
        tokens = (leaf.kind for leaf in leaves if not leaf.named and leaf.kind == leaf.text)
        keywords = set(_WORD.findall(" ".join(tokens))) if self.language.name in _EXACT_KEYWORDS else set[str]()
        frequent = keywords - texts | _COMMON & texts
        return tuple(sorted(texts | keywords, key=lambda text: (text in frequent, -len(text), text)))


def _leaves(goal: Goal) -> Iterator[tuple[Goal, bool]]:
    if not goal.children:
        yield goal, True
    after_list = False
    for child in goal.children:
        if after_list and (not child.named and not child.children and child.variable is None):
            yield child, False
        else:
            after_list = child.variable is not None and child.variable.multiple
            yield from _leaves(child)


def parse(text: str, language: str) -> tuple[SgNode, list[tuple[int, int]]]:
    """Return the syntax tree of the text of a file, and the spans of the HTML around PHP, with the tags.

    The grammar has no HTML, so that it reads HTML as code: spaces stand for it, and a semicolon for `?>` that ends a
    statement.
    """
    parts: list[str] = []
    spans: list[tuple[int, int]] = []
    at = 0
    while language == "php" and at < len(text):
        begin = _PHP_BEGIN.search(text, at)
        spans.append((at, begin.end() if begin else len(text)))
        html = _NOT_LINE_END.sub(" ", text[at : spans[-1][1]])
        parts.append(f";{html[1:]}" if at and "".join(parts[-1:]).rstrip()[-1:] not in tuple(";{}:") else html)
        at = done = spans[-1][1]
        comment = (at, at)
        for found in _PHP_END.finditer(text, at):
            if found["comment"]:
                comment = found.span()
            elif found["end"]:
                done = found.start()
                break
        else:
            done = len(text)
        ends_in_comment = comment[1] == done < len(text)  # the comment would go on after the HTML
        code = text[at : comment[0]] + " " * (done - comment[0]) if ends_in_comment else text[at:done]
        parts.append(code)
        at = done
    return SgRoot("".join(parts) if spans else text, language).root(), spans


def _is_found(source: str, language: Language) -> bool | None:
    """Return True if a pattern finds its own text in code, and None if its text is no part of such code."""
    found = None
    for context in _FUNCTIONS.get(language.name, ()):
        root = SgRoot(context.format(with_expando(source, language.expando)), language.name).root()
        if root.find(kind="ERROR") is None and not any(node.is_leaf() for node in root.find_all(regex="^$")):
            found = root.find(pattern=source) is not None
            if found:
                break
    return found


def read_pattern(source: str, language: Language) -> Pattern:
    """Parse a pattern; refuse a pattern that finds nothing, and name the one with a semicolon if it does."""
    if language.name == "php" and "<?" in source:
        raise BadPatternError("it has a tag of PHP; leave out the tags, because only PHP is searched, and no HTML")
    fault = ""
    try:
        pattern = _read_pattern(source, language)
        if _is_found(source, language) is not False:
            return pattern
        fault = f"it never matches, because {language.name} reads it as other code if it stands outside of a function"
    except BadPatternError as error:
        fault = str(error)
    for other in (f"{source};", _CALLED.sub("$F", source)) if language.name in _FUNCTIONS else ():
        with suppress(BadPatternError):
            if other != source and _read_pattern(other, language) and _is_found(other, language):
                fault += f"; use {other!r}"
                break
    raise BadPatternError(fault)


def _read_pattern(source: str, language: Language) -> Pattern:
    try:
        SgRoot("", language.name).root().find(pattern=source)
    except RuntimeError as error:
        causes = _CAUSE.findall(str(error).partition("Stack backtrace:")[0])
        raise BadPatternError(_explain(causes[-1] if causes else str(error))) from None
    node = SgRoot(with_expando(source, language.expando), language.name).root()
    while children := node.children():  # a second child without a kind or without text is not counted
        if children[2:] or (children[1:] and children[1].kind() and not is_empty(children[1])):
            break
        node = children[0]
    root = _goal(node, language.expando)
    if (fault := _fault(root, source, language)) is not None:
        raise BadPatternError(fault)
    return Pattern(source, language, root)


def _fault(root: Goal, source: str, language: Language) -> str | None:
    """Return why a pattern would not find what it says, or `None`: it has brackets or metavariables that do not count.

    tree-sitter drops the text at which it gives up: in C#, the pattern `$A + $B` is an `ERROR` node with `$A` and `+`.
    """
    invalid = f"it is not valid {language.name}"
    if root.kind == "ERROR" and any(source.count(first) != source.count(last) for first, last in _BRACKETS):
        return f"{invalid}; close each bracket of the pattern"
    starts = {goal.span[0] for goal in root.walk() if goal.variable is not None}
    leaves = [goal.span for goal in root.walk() if goal.variable is None and not goal.children]
    for found in _METAVARIABLE.finditer(source):
        inside = any(first <= found.start() and found.end() <= last for first, last in leaves)
        if found.start() in starts or (inside and language.expando == "$"):  # then `$` is part of a name or a string
            continue
        if inside:
            return (
                f"{found[0]} is a part of a name or a string, and captures nothing; a metavariable must be a whole node"
            )
        return f"{invalid}, so that {found[0]} captures nothing; a pattern must be code that parses by itself"
    return None


def _explain(cause: str) -> str:
    """Return the reason for ast-grep's error, to complete the sentence 'the pattern cannot be used: …'."""
    if cause.startswith("Multiple AST nodes"):
        return "it has several statements or expressions; use a pattern with only one"
    if cause.startswith("No AST root"):
        return "it is empty; pass the code to search for"
    if cause.startswith("Standalone multi meta variable"):
        return "it is only a $$$ metavariable; use $NAME, or put it into a larger pattern"
    return cause


def with_expando(source: str, expando: str) -> str:
    """Return the pattern as ast-grep parses it: with another character for the `$` of metavariables."""

    def replaced(found: "re.Match[str]") -> str:
        sigils, after = found.groups()
        is_variable = len(sigils) == 3 or (bool(after) and (after == "_" or "A" <= after <= "Z"))
        return (expando * len(sigils) if is_variable else sigils) + after

    return _SIGILS.sub(replaced, source)


def is_empty(node: SgNode) -> bool:
    """Return True for a node without text, such as a token that the grammar requires and the source lacks."""
    return node.is_leaf() and node.range().start.index == node.range().end.index


def _goal(node: SgNode, expando: str) -> Goal:
    variable = _variable(node.text(), expando)
    children = () if variable else tuple(_goal(one, expando) for one in node.children() if not is_empty(one))
    place = node.range()
    text = node.text() if node.is_leaf() else ""
    return Goal(node.kind(), text, node.is_named(), variable, children, (place.start.index, place.end.index))


def _variable(text: str, expando: str) -> Variable | None:
    """Return the metavariable that a text spells, or `None` for other texts. `expando` stands for `$` in the text."""
    sigil = re.escape(expando)
    if found := re.fullmatch(f"{sigil}{{3}}({_NAME})", text):
        return Variable("" if found[1].startswith("_") else found[1], multiple=True)
    if found := re.fullmatch(f"{sigil}({sigil})?([A-Z_]{_NAME})", text):
        return Variable("" if found[2].startswith("_") else found[2], named=not found[1])
    return None
