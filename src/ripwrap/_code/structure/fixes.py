"""Make the text that replaces a match, and find where the replaced text ends.

The new text is the same as with `ast-grep run --rewrite` (`crates/core/src/replacer` of ast-grep): lines keep their
indentation relative to their first line. The replaced text ends with the last node that the pattern names, as in
`match_end_non_recursive()` of `crates/core/src/match_tree`. So a fix for `if ($A) { $$$B }` keeps the `else` after it,
and a fix for `const $A = $B` keeps the semicolon. In contrast, the program ast-grep 0.51 and its binding for Python
replace the whole node, and so remove the `else` and the semicolon.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ast_grep_py import SgNode

from ripwrap._code.structure.patterns import BadPatternError, Goal, Pattern, Variable, is_empty

_VARIABLE = re.compile(r"(\${1,3})([A-Z0-9_]+)")
_LOOK_BACK = 512
"""Number of characters in which ast-grep looks for the beginning of a line."""


@dataclass(frozen=True, slots=True)
class Fix:
    """Template of a replacement.

    Attributes:
        texts: Texts before, between and after the metavariables.
        variables: Metavariables, each with the indentation of its line in the template, in spaces.
    """

    texts: tuple[str, ...]
    variables: tuple[tuple[Variable, int], ...]

    def render(self, match: SgNode, source: str) -> str:
        """Return the text that replaces a match in the text `source`."""
        parts = [self.texts[0]]
        for (variable, indent), text in zip(self.variables, self.texts[1:], strict=True):
            start, end = span_of(match, variable)
            value = source[start:end]
            parts += _indented(value, _indent_at(source, start), indent), text
        return _indented("".join(parts), 0, _indent_at(source, match.range().start.index))


def read_fix(template: str, pattern: Pattern) -> Fix:
    """Parse the template of a replacement.

    Raises:
        BadPatternError: The template names a metavariable that the pattern does not capture.
    """
    texts: list[str] = []
    variables: list[tuple[Variable, int]] = []
    done, known = 0, {(variable.name, variable.multiple): variable for variable in pattern.variables}
    for found in _VARIABLE.finditer(template):
        variable = known.get((found[2], len(found[1]) == 3))
        if variable is None:
            captured = ", ".join(map(_spelled, known.values())) or "nothing"
            raise BadPatternError(f"the fix names {found[0]}, but the pattern captures {captured}; correct one of them")
        texts.append(template[done : found.start()])
        variables.append((variable, _indent_at(template, found.start())))
        done = found.end()
    return Fix((*texts, template[done:]), tuple(variables))


def _spelled(variable: Variable) -> str:
    return ("$$$" if variable.multiple else "$" if variable.named else "$$") + variable.name


def span_of(match: SgNode, variable: Variable) -> tuple[int, int]:
    """Return the start and end, in characters, of the text that a metavariable captures; (0, 0) if it captures none."""
    one = None if variable.multiple else match.get_match(variable.name)
    nodes = match.get_multiple_matches(variable.name) if variable.multiple else [] if one is None else [one]
    return (nodes[0].range().start.index, nodes[-1].range().end.index) if nodes else (0, 0)


def _indent_at(text: str, offset: int) -> int:
    """Return the number of spaces at the start of the line with `offset`.

    Return 0 if the line starts more than 512 characters before `offset`.
    """
    start = text.rfind("\n", max(0, offset - _LOOK_BACK), offset) + 1
    if not start and offset > _LOOK_BACK:
        return 0
    line = text[start:offset]
    return len(line) - len(line.lstrip(" "))


def _indented(text: str, before: int, after: int) -> str:
    """Return a text with its lines indented by `after` instead of `before` spaces; the first line stays as it is.

    If `after` is smaller than `before`, spaces are also removed from the start of the first line. This exception is the
    same as in ast-grep: `remove_indent()` and `indent_lines_impl()` in `crates/core/src/replacer/indent.rs`. The text
    of a node rarely begins with spaces; a part of a string may.
    """
    if before == after or "\n" not in text:
        return text
    first, *others = text.split("\n")
    if before < after:
        return "\n".join((first, *(" " * (after - before) + line for line in others)))
    return "\n".join(line.removeprefix(" " * (before - after)) for line in (first, *others))


def end_of(pattern: Pattern, match: SgNode) -> int | None:
    """Return the end of the text to replace, in characters: the end of the last node that the pattern names.

    Later nodes of the match, such as a semicolon or an `else`, are not replaced. Return `None` if the end is unknown.
    """
    single = [variable.name for variable in pattern.variables if not variable.multiple]
    captured = {name: node.text() for name in single if (node := match.get_match(name)) is not None}
    return _end(pattern.root, match, captured)


def _end(goal: Goal, node: SgNode, captured: Mapping[str, str]) -> int | None:
    """Return the end of the text that `goal`, a node of the pattern, matches in `node`; `None` if there is no match."""
    if goal.variable is not None:
        text = captured.get(goal.variable.name)
        same = text is None or text.split() == node.text().split()
        matches = same and (node.is_named() or not goal.variable.named)
    elif not goal.children:
        matches = goal.kind in (node.kind(), "ERROR") and (not goal.named or goal.text == node.text())
    elif goal.kind in (node.kind(), "ERROR"):
        nodes = [child for child in node.children() if not is_empty(child)]
        end = _end_of_children(goal.children, nodes, captured)
        if not nodes or end != nodes[-1].range().end.index:
            return end
        matches = True  # up to its last child; the node itself may end later, with a line end
    else:
        matches = False
    return node.range().end.index if matches else None


def _end_of_children(goals: Sequence[Goal], nodes: Sequence[SgNode], captured: Mapping[str, str]) -> int | None:
    end: int | None = None
    at = number = 0
    while number < len(goals):
        is_list = goals[number].is_list
        if is_list:
            number += 1
            while number < len(goals) and goals[number].is_token:
                number += 1  # tokens after a list are not compared
            if number == len(goals):
                return nodes[-1].range().end.index if at < len(nodes) else end
            if goals[number].is_list:
                at += 1
                continue
        found = next(_ends(goals[number], nodes[at:], captured, skips_all=is_list), None)
        if found is None:
            return end if all(goal.is_list for goal in goals[number:]) else None
        skipped, end = found
        at, number = at + skipped + 1, number + 1
    return end


def _ends(
    goal: Goal, nodes: Sequence[SgNode], captured: Mapping[str, str], *, skips_all: bool
) -> Iterator[tuple[int, int]]:
    """Yield, for each match of `goal`, the number of nodes that are skipped before the match, and the end of the match.

    Only comments and tokens without a name are skipped. With `skips_all`, which is set after a list (`$$$`), any node
    is skipped.
    """
    for number, node in enumerate(nodes):
        end = _end(goal, node, captured)
        if end is not None:
            yield number, end
        if not skips_all and node.is_named() and "comment" not in node.kind():
            return
