"""Choose the lines to show with a match: the definition or block around the match, or a part of it; no I/O."""

import re
from bisect import bisect
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from ripwrap._code.languages import language_name
from ripwrap._code.outline import LiteralSpan, Outline, Section

_HEAD_COST = 2
_TAIL_COST = 4
"""Weights of the distance from a line to the first line (`_HEAD_COST`) and to the last line (`_TAIL_COST`) of a span.

The distance to the match has weight 1. The cost of a line is the smallest of the three weighted distances.
`kept_lines()` keeps the lines with the lowest cost.
"""

_MAX_LINE_CHARS = 2_000
"""Maximum number of characters of a line in which blocks are looked for."""
_WORD_ENDS = frozenset({None, "bash", "bats", "elixir", "julia", "lua", "ruby", "scala"})
"""Languages in which a word such as `end` ends a block; None is an unknown one."""
_DIRECTIVE = re.compile(
    r"\s*#\s*(?:if|ifdef|ifndef|elif|else|endif|include|define|undef|pragma|line|error|region|endregion)\b"
)
_BRACKETS = re.compile(r"[()\[\]{}]")
_OPENERS = {")": "(", "]": "[", "}": "{"}
_OPENER_ONLY = re.compile(r"\s*[({\[]\s*$")
_BRACKET_CLOSER = re.compile(r"\s*[)\]}]")
_CLOSER = re.compile(r"\s*(?:[)\]}]|(?:end|fi|done|esac)\b(?!\s*[=(\w]))")
"""Pattern for a line that ends a block: the line begins with a closing bracket, or with a word such as `end`."""
_SIGNATURE_END = re.compile(r"\s*[)\]]")
"""Pattern for the last line of a signature over several lines; the body of the definition may begin below this line."""


class LineSpan(NamedTuple):
    """Consecutive lines of a file."""

    first: int
    last: int

    def __contains__(self, number: object) -> bool:
        """Return True if the line with this number is in the span."""
        return isinstance(number, int) and self.first <= number <= self.last

    def overlaps(self, other: "LineSpan") -> bool:
        """Return True if the two spans have a line in common."""
        return self.first <= other.last and other.first <= self.last

    def joined(self, other: "LineSpan") -> "LineSpan":
        """Return the smallest span that has the lines of both spans."""
        return LineSpan(min(self.first, other.first), max(self.last, other.last))


def definition_at(outline: Outline, span: LineSpan, name: str | None = None) -> tuple[Section, LineSpan] | None:
    """Return the definition around a span, and the lines of the definition, with decorators and comments above it."""
    found: Section | None = None
    for number in range(span.first, span.last + 1):
        section = outline.enclosing(number)
        found = found or section
        if section is not None and (name is None or section.name == name):
            found = section
            break
    if found is None:
        return None
    first = found.line
    while first > 1 and outline.enclosing(first - 1) == found:
        first -= 1
    return found, LineSpan(first, found.end_line)


def block_at(path: str, lines: Sequence[str], span: LineSpan, literals: Sequence[LiteralSpan] = ()) -> LineSpan:
    """Return the innermost block around some lines, with the line that opens it and the line that closes it.

    A block is a line with the deeper indented lines below it, or a pair of brackets with the lines between them.
    Outside of blocks, return the lines between the nearest blank lines above and below. Indentation and brackets in
    comments and strings (`literals`) do not count.
    """
    words = language_name(path, lines[0] if lines else "") in _WORD_ENDS
    around = _Blocks(lines, literals, _CLOSER if words else _BRACKET_CLOSER).around(span.first - 1, span.last - 1)
    if around is None:
        first = span.first - 1
        last = span.last - 1
        while first > 0 and lines[first].strip() and lines[first - 1].strip():
            first -= 1
        while last + 1 < len(lines) and lines[last].strip() and lines[last + 1].strip():
            last += 1
        around = first, last
    return LineSpan(around[0] + 1, around[1] + 1)


def kept_lines(span: LineSpan, place: LineSpan, max_lines: int) -> list[int]:
    """Choose at most `max_lines` lines of a span to show, and return their numbers.

    The matching lines (`place`) are chosen first; one of them is returned even if `max_lines` is 0. Then lines are
    taken from four places in the ratio 4 to 4 to 2 to 1: above the match, below the match, from the start of the span,
    and from its end.
    """
    count = span.last - span.first + 1
    if count <= max_lines:
        return list(range(span.first, span.last + 1))

    def cost(number: int) -> tuple[int, int]:
        if number in place:
            return -1, number
        away = min(abs(number - place.first), abs(number - place.last))
        return min(away, (number - span.first) * _HEAD_COST, (span.last - number) * _TAIL_COST), number

    # No other line can be chosen: at most `max_lines` lines are chosen, and lines outside of these ranges cost more.
    near = {
        *range(max(place.first - max_lines, span.first), min(place.last + max_lines, span.last) + 1),
        *range(span.first, min(span.first + max_lines, span.last) + 1),
        *range(max(span.last - max_lines, span.first), span.last + 1),
    }
    return sorted(sorted(near, key=cost)[: max(max_lines, 1)])


def gaps_between(span: LineSpan, kept: Sequence[int]) -> list[LineSpan]:
    """Return the lines of a span that are not among the `kept` ones, in order, as spans of consecutive lines."""
    edges = pairwise((span.first - 1, *kept, span.last + 1))
    return [LineSpan(before + 1, after - 1) for before, after in edges if after - before > 1]


def share_lines(places: Sequence[LineSpan], windows: Sequence[LineSpan]) -> list[LineSpan]:
    """Return the lines to show with each match, so that no line is shown twice."""
    # Windows are joined first, because the window of one match may include the matches before and after it.
    runs: list[LineSpan] = []
    for window in sorted(windows):
        if runs and window.first <= runs[-1].last + 1:
            runs[-1] = runs[-1].joined(window)
        else:
            runs.append(window)
    shared: list[LineSpan] = []
    shown = 0
    for at, place in enumerate(places):
        run = runs[bisect(runs, place.first, key=lambda run: run.first) - 1]
        limit = places[at + 1].first - 1 if at + 1 < len(places) else run.last
        first, shown = max(run.first, shown + 1), min(run.last, limit)
        shared.append(LineSpan(first, shown))
    return shared


def indentation(line: str) -> int:
    """Return the width of a line's leading white space; a tab extends to the next multiple of eight, as in Python."""
    width = len(line) - len(line.lstrip())
    return len(line[:width].expandtabs()) if "\t" in line[:width] else width


class _Blocks:
    """Blocks of a file, found by indentation and by brackets. Lines are given by their indexes, from 0."""

    def __init__(self, lines: Sequence[str], literals: Sequence[LiteralSpan], closer: re.Pattern[str]) -> None:
        self._lines = lines
        self._closer = closer
        self._continued: set[int] = set()
        """Lines that begin in a string."""
        self._code = [line[:_MAX_LINE_CHARS].rstrip("\r\n") for line in lines]
        for one in reversed(literals):
            for index in range(min(one.last, len(lines) - 1), one.first - 1, -1):
                self._cut(index, one)

    def _cut(self, index: int, one: LiteralSpan) -> None:
        """Put blanks in place of a comment in a line, and quotes in place of a string."""
        code = self._code[index]
        start, end = (one.start if index == one.first else 0), (one.end if index == one.last else len(code))
        if index > one.first and not one.is_comment and not (index == one.last and not end):
            self._continued.add(index)
        if one.is_comment and not code[end:].strip():
            self._code[index] = code[:start]
        else:
            self._code[index] = code[:start] + (" " if one.is_comment else '"') * (end - start) + code[end:]

    def around(self, first: int, last: int) -> tuple[int, int] | None:
        """Return the first and last line of the smallest block around some lines, or None outside of blocks."""
        indented = self._by_indentation(first, last)
        if indented is not None and indented[0] == first:
            return indented  # the first line opens this block; the brackets of its signature are not the block to show
        found = [block for block in (indented, self._by_brackets(first, last)) if block]
        return min(found, key=lambda block: block[1] - block[0], default=None)

    def _is_code(self, index: int) -> bool:
        code = self._code[index]
        return bool(code.strip()) and not _DIRECTIVE.match(code) and index not in self._continued

    def _is_comment(self, index: int) -> bool:
        return not self._code[index].strip() and bool(self._lines[index].strip())

    def _next(self, index: int) -> int:
        """Return the index of the next line of code, or the number of lines if no code follows."""
        return next((at for at in range(index + 1, len(self._code)) if self._is_code(at)), len(self._code))

    def _indent(self, index: int) -> int:
        return indentation(self._code[index]) if index < len(self._code) else -1

    def _by_indentation(self, first: int, last: int) -> tuple[int, int] | None:
        start = first
        while start > 0 and not self._is_code(start) and not self._is_comment(start):
            start -= 1  # the line is blank, or in a string
        if self._is_comment(start):
            # A comment belongs to the code below it, unless the comment is indented deeper.
            indent = max(indentation(self._lines[start]), self._indent(self._next(start)))
            header = self._above(start, indent)
        elif self._indent(self._next(start)) > self._indent(start):
            header = start
        else:
            header = self._above(start, self._indent(start))
        while header >= 0:
            begin, end = self._whole(header)
            if begin <= first and end >= last:
                return begin, end
            header = self._above(begin, self._indent(begin))
        return None

    def _above(self, index: int, indent: int) -> int:
        """Return the index of the nearest line of code above `index` with less indentation than `indent`, or -1."""
        above = range(index - 1, -1, -1)
        return next((at for at in above if self._is_code(at) and self._indent(at) < indent), -1)

    def _whole(self, header: int) -> tuple[int, int]:
        """Return the first and the last line of the block that the line `header` opens, according to indentation."""
        begin, indent = header, self._indent(header)
        while _SIGNATURE_END.match(self._code[begin]) or _OPENER_ONLY.match(self._code[begin]):
            above = (at for at in range(begin - 1, -1, -1) if self._is_code(at) and self._indent(at) <= indent)
            before = next(above, -1)
            if before < 0 or self._indent(before) < indent:
                break
            begin = before
        end, at = header, self._next(header)
        while at < len(self._code) and (deeper := self._indent(at) - indent) >= 0:
            opens_on_its_line = end == header and _OPENER_ONLY.match(self._code[at])
            closes = not deeper and self._closer.match(self._code[at])
            if not deeper and not opens_on_its_line and not closes:
                break
            end, at = at, self._next(at)
            if closes and not (_SIGNATURE_END.match(self._code[end]) and self._indent(at) > indent):
                break
        while end + 1 in self._continued:
            end += 1
        return begin, end

    def _by_brackets(self, first: int, last: int) -> tuple[int, int] | None:
        """Return the first and last line of the innermost pair of brackets around some lines, or None."""
        open_: list[tuple[str, int]] = []
        for index, code in enumerate(self._code):
            if len(self._lines[index]) > _MAX_LINE_CHARS:
                continue
            for bracket in _BRACKETS.findall(code):
                if bracket in "([{":
                    open_.append((bracket, index))
                elif open_ and open_[-1][0] == _OPENERS[bracket]:
                    begin = open_.pop()[1]
                    if begin <= first and index >= last and begin < index:
                        # A bracket that is alone in its line may open the block of the line above.
                        alone = begin and _OPENER_ONLY.match(self._code[begin]) and self._is_code(begin - 1)
                        return begin - bool(alone), index
        return None
