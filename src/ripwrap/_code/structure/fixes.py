"""Make the text that replaces a match, and find which part of the match it replaces.

The new text is the same as with `ast-grep run --rewrite` (`crates/core/src/replacer` of ast-grep): lines keep their
indentation relative to their first line. But lines that begin inside a string are left as they are, tabs count as
indentation, and a comment before a captured block does not change the indentation of the block.

ast-grep finds matches that have more than the pattern: tokens without a name, comments, and any nodes at the end. The
program ast-grep 0.51 replaces the whole match, and so removes the `async` before `def` and the `else` after
`if ($A) { $$$B }`. Here, only the part from the first to the last leaf that the pattern names is replaced. If other
code in this part would be lost, the match is not replaced.
"""

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import NamedTuple

from ast_grep_py import SgNode, SgRoot

from ripwrap._code.structure.patterns import BadPatternError, Goal, Pattern, Variable, parse, with_expando
from ripwrap.models import Span

_VARIABLE = re.compile(r"(\${1,3})([A-Z0-9_]+)")
_LOOK_BACK = 512
"""Number of characters in which ast-grep looks for the beginning of a line."""
_STRING = re.compile(
    r"(?!concatenated)(?!.*_scalar$).*(string|heredoc|nowdoc|charlist|sigil|quasiquote|quoted|str_text|str_end"
    r"|template_(chars|literal|string)|raw_text|attribute_value)"
)
"""Kinds of nodes whose lines are contents. In YAML, the lines of a scalar are indented with the code around it."""
_KEPT = "\udc0a"
"""Stands for a line end inside a string. No file has this character, because UTF-8 cannot encode it."""
_LINE_COMMENTS = ("//", "#", "--")
_SEPARATORS = frozenset((",", ";"))
_SHOWN = 40
"""Maximum number of characters of code in an error."""


class UnreplacedError(Exception):
    """Error for a match that is not replaced; the message says why."""


@dataclass(frozen=True, slots=True)
class Fix:
    """Template of a replacement."""

    leaves: tuple[tuple[Goal, bool], ...]
    numbered: str
    texts: tuple[str, ...]
    variables: tuple[tuple[Variable, str | None], ...]

    def edit(self, match: SgNode, source: str, kept: str) -> tuple[int, int, str]:
        """Return the start and end of the code to replace in the text `source`, in characters, and the new text."""
        start, end = _extent(self, match)
        at = source.find("\n", start)
        at = source.rfind("\n", 0, start) if at < 0 else at
        line_end = "\r\n" if at > 0 and source[at - 1] == "\r" else "\n"
        texts = [text.replace("\n", line_end).replace(_KEPT, line_end[:-1] + _KEPT) for text in self.texts]
        parts, comments = [texts[0]], list[int]()
        for (variable, indent), text in zip(self.variables, texts[1:], strict=True):
            nodes = _nodes(match, variable.name, multiple=variable.multiple)
            if nodes and _ends_with_comment(nodes[-1]):
                comments.append(len(parts))
            parts += _value(nodes, kept, indent), text
        for number in comments:
            after = "".join(parts[number + 1 :]) + source[end : end + _LOOK_BACK]
            if after.partition("\n")[0].strip():
                raise UnreplacedError("code would stand after a comment, in the same line")
        return start, end, _indented("".join(parts), "", _indent_at(kept, start)).replace(_KEPT, "\n")


def read_fix(template: str, pattern: Pattern) -> Fix:
    """Parse the template of a replacement."""
    template = template.replace("\r\n", "\n")
    root = SgRoot(with_expando(template, pattern.language.expando), pattern.language.name).root()
    kept, strings = keep_strings(template, root), list(_strings(root, "."))
    texts: list[str] = []
    variables: list[tuple[Variable, str | None]] = []
    done, known = 0, {(variable.name, variable.multiple): variable for variable in pattern.variables}
    for found in _VARIABLE.finditer(template):
        variable = known.get((found[2], len(found[1]) == 3))
        if variable is None:
            captured = ", ".join(map(_spelled, known.values())) or "nothing"
            raise BadPatternError(f"the fix names {found[0]}, but the pattern captures {captured}; correct one of them")
        in_string = any(first <= found.start() and found.end() <= last for first, last in strings)
        texts.append(kept[done : found.start()])
        variables.append((variable, None if in_string else _indent_at(kept, found.start())))
        done = found.end()
    return Fix(tuple(pattern.leaves), pattern.numbered, (*texts, kept[done:]), tuple(variables))


def _spelled(variable: Variable) -> str:
    return ("$$$" if variable.multiple else "$" if variable.named else "$$") + variable.name


def span_of(match: SgNode, variable: Variable) -> Span:
    """Return the start and end, in characters, of the text that a metavariable captures; (0, 0) if it captures none."""
    return _span(_nodes(match, variable.name, multiple=variable.multiple))


def _nodes(match: SgNode, name: str, *, multiple: bool) -> Sequence[SgNode]:
    if multiple:
        return match.get_multiple_matches(name)
    node = match.get_match(name)
    return [] if node is None else [node]


def _span(nodes: Sequence[SgNode]) -> Span:
    return (nodes[0].range().start.index, nodes[-1].range().end.index) if nodes else (0, 0)


# -- The new text --


def keep_strings(text: str, root: SgNode, html: Sequence[Span] = ()) -> str:
    """Return a text of the same length, in which `_KEPT` stands for the line ends inside strings and HTML."""
    parts, done = list[str](), 0
    for start, end in sorted((*_strings(root, r"\n"), *html)):
        parts += text[done:start], text[max(start, done) : end].replace("\n", _KEPT)
        done = max(done, end)
    return "".join((*parts, text[done:]))


def _strings(root: SgNode, regex: str) -> Iterator[Span]:
    """Yield the spans of the strings below a node, in characters, whose text matches a regular expression."""
    return (_span([node]) for node in root.find_all(regex=regex) if _is_string(node.kind()))


@lru_cache(maxsize=1000)
def _is_string(kind: str) -> bool:
    return _STRING.match(kind) is not None


def _ends_with_comment(node: SgNode) -> bool:
    """Return True if code after the node, in the same line, would be part of a comment."""
    while "comment" not in node.kind() and (children := node.children()):
        node = children[-1]
    text = node.text()
    return "comment" in node.kind() and text.startswith(_LINE_COMMENTS) and not text.endswith("\n")


def _value(nodes: Sequence[SgNode], kept: str, indent: str | None) -> str:
    """Return the captured text; `indent` is the indentation of its line in the template, or `None` in a string."""
    start, end = _span(nodes)
    text = kept[start:end]
    if indent is None:
        return text.replace("\n", _KEPT)
    # In Python, `$$$B` also captures the comment after `if a:`, whose line is less indented than the block below it.
    code = next((_span([node])[0] for node in nodes if "comment" not in node.kind()), start)
    return _indented(text, _indent_at(kept, code if "\n" in kept[start:code] else start), indent)


def _indent_at(text: str, offset: int) -> str:
    """Return the spaces and tabs at the start of the line with `offset`."""
    start = text.rfind("\n", max(0, offset - _LOOK_BACK), offset) + 1
    if not start and offset > _LOOK_BACK:
        return ""
    line = text[start:offset]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _indented(text: str, before: str, after: str) -> str:
    """Return a text with its lines indented by `after` instead of `before`; the first line stays as it is.

    If `after` is shorter than `before`, spaces are also removed from the start of the first line. This exception is the
    same as in ast-grep: `remove_indent()` and `indent_lines_impl()` in `crates/core/src/replacer/indent.rs`. The text
    of a node rarely begins with spaces; a part of a string may.
    """
    if before == after or "\n" not in text:
        return text
    first, *others = text.split("\n")
    lost, added = before[len(after) :], after[len(before) :]

    def moved(line: str) -> str:
        return after + line[len(before) :] if line.startswith(before) else added + line.removeprefix(lost)

    return "\n".join((first.removeprefix(lost), *map(moved, others)))


# -- The replaced part --


class _Leaf(NamedTuple):
    """Leaf of a match, or all that a metavariable has captured."""

    node: SgNode
    start: int
    end: int
    number: int | None

    def fits(self, goal: Goal, number: int | None) -> bool:
        """Return True if this is the leaf, or the captured code, that a leaf of the pattern names."""
        if number is not None or self.number is not None:
            return number == self.number
        return goal.text == self.node.text() if goal.named else goal.kind == self.node.kind()

    @property
    def may_be_lost(self) -> bool:
        """True for a comment, a separator or a line end."""
        text = self.node.text().strip()
        return self.number is None and (not text or text in _SEPARATORS or "comment" in self.node.kind())


def _extent(fix: Fix, match: SgNode) -> Span:
    """Return the start of the first and the end of the last leaf of a match that the pattern names, in characters."""
    captured = _captured(fix, match)
    leaves = list(_leaves(match, captured))
    numbers = count()
    first, at = None, 0
    for goal, is_required in fix.leaves:
        number = None if goal.variable is None else next(numbers)
        if number is not None and not captured[number]:
            continue
        found = next((one for one in range(at, len(leaves)) if leaves[one].fits(goal, number)), None)
        if found is None or any(leaf.number is not None for leaf in leaves[at:found]):
            if is_required:
                raise UnreplacedError(f"its part {goal.text or goal.kind} was not found")
            continue
        lost = next((leaf for leaf in leaves[at:found] if not leaf.may_be_lost), None)
        if lost is not None and first is not None:
            raise UnreplacedError(f"`{lost.node.text()[:_SHOWN]}` is not in the pattern, and would be lost")
        first, at = leaves[found] if first is None else first, found + 1
    if first is None:
        raise UnreplacedError("the pattern names no code")
    return first.start, leaves[at - 1].end


def _captured(fix: Fix, match: SgNode) -> list[Sequence[SgNode]]:
    """Return the nodes that each metavariable of the pattern has captured, also those without a name.

    ast-grep compares the texts of metavariables with the same name without regard to white space.
    """
    variables = [goal.variable for goal, _ in fix.leaves if goal.variable is not None]
    try:
        numbered = match.find(pattern=fix.numbered)
    except RuntimeError:  # rarely, a pattern parses only with other names, as Swift's `@$$$D $A`
        numbered = None
    if numbered is None:
        raise UnreplacedError("its parts were not found")
    nodes = [_nodes(numbered, f"V{number}", multiple=one.multiple) for number, one in enumerate(variables)]
    known: dict[Variable, str] = {}
    for variable, captured in zip(variables, nodes, strict=True):
        if variables.count(variable) > 1 and variable.name:
            text = "".join("".join(node.text().split()) for node in captured)
            if known.setdefault(variable, text) != text:
                raise UnreplacedError(f"{_spelled(variable)} captures different code in different places")
    return nodes


def _leaves(match: SgNode, captured: Sequence[Sequence[SgNode]]) -> Iterator[_Leaf]:
    """Yield the leaves of a match in order; a leaf stands for all nodes that a metavariable has captured."""
    spans = [_span(nodes) for nodes in captured]
    nodes = [match]
    while nodes:
        node = nodes.pop()
        start, end = _span([node])
        number = next((one for one, (first, last) in enumerate(spans) if first <= start < end <= last), None)
        if number is not None:
            if end < spans[number][1]:  # skip its siblings, because `range()` takes long for nodes in a long line
                empty = next(index for index, one in enumerate(captured[number]) if one.text())
                del nodes[1 + empty - len(captured[number]) :]
            yield _Leaf(node, *spans[number], number)
        elif not node.is_leaf():
            nodes += reversed(node.children())
        elif start < end:
            yield _Leaf(node, start, end, None)


def broken_line(text: str, edits: Sequence[tuple[int, int, str]], root: SgNode, language: str) -> int | None:
    """Return a line of the edited text that does not parse, from 1; `None` if no less parses than before."""
    if not edits:
        return None
    parts, done = list[str](), 0
    for start, end, new in edits:
        parts += text[done:start], new
        done = end
    edited = "".join((*parts, text[done:]))
    faults = _faults(parse(edited, language)[0])
    if len(faults) > len(_faults(root)):
        return min(faults)
    if language == "python" and (line := _unparsed_line(edited)) is not None and _unparsed_line(text) is None:
        return line
    return None


def _faults(root: SgNode) -> list[int]:
    """Return the line of each node that does not parse, and of each token that the grammar requires and is missing.

    ast-grep does not say which tokens are missing. They are empty; in Markdown, other nodes are empty, too.
    """
    missing = (node for node in root.find_all(regex="^$") if node.is_leaf() and node.kind() != "block_continuation")
    return [node.range().start.line + 1 for node in (*root.find_all(kind="ERROR"), *missing)]


def _unparsed_line(text: str) -> int | None:
    """Return the line that Python does not accept, or `None`; tree-sitter also accepts wrong indentation."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        return error.lineno or 1
    except (ValueError, OverflowError, RecursionError, MemoryError):  # a NUL, or too deep for Python's parser
        return None
    return None
