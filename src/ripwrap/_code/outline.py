"""Sections of a file: its definitions, headings, tables or keys, with their names and lines; no I/O."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, NamedTuple, cast

from ripwrap.models import Model

MAX_NAME_CHARS = 200
"""Maximum number of characters of the name of a section, and of its `text`. If a qualified name is longer, only the
last part of the name is used.
"""

_MAX_INDENTED_LEVELS = 20
"""Maximum number of levels by which the text of a section is indented; a hostile file may have thousands of levels."""


class Section(Model, frozen=True):
    """A definition, heading, table or key, and the lines that belong to it.

    Attributes:
        name: Name, qualified by the names of the definitions around it, as in `Shop.add`; or the text of a heading. A
            definition without a name has the name of the definition around it, or else an empty name.
        line: Number of the line that defines the section, from 1.
        text: Text of that line without white space at its ends, cut to 200 characters.
        end_line: Number of the last line of the section.
    """

    name: str
    line: int
    text: str
    end_line: int


def levels_of(sections: Iterable[Section]) -> Iterator[int]:
    """Yield for each section of a file, in order, the number of sections around it."""
    ends: list[int] = []
    for section in sections:
        while ends and ends[-1] < section.line:
            ends.pop()
        yield len(ends)
        ends.append(section.end_line)


def outline_rows(sections: Sequence[Section]) -> Iterator[str]:
    """Yield a row for each section, such as `4-6:   def add(self):`, indented below the section around it."""
    for section, level in zip(sections, levels_of(sections), strict=True):
        yield f"{section.line}-{section.end_line}: {'  ' * min(level, _MAX_INDENTED_LEVELS)}{section.text}".rstrip()


class Definition(NamedTuple):
    """A definition in a file, with its own name. Lines are given by their indexes, from 0."""

    name: str
    kind: str
    first: int
    line: int
    last: int
    parent: int
    """Index of the definition around it, or -1."""


def names_between(names: Sequence[tuple[int, str]], first: int, last: int) -> Sequence[tuple[int, str]]:
    """Return the names, each with its row (from 0), that are in the lines `first` to `last` (from 1)."""
    return names[bisect_left(names, (first - 1, "")) : bisect_left(names, (last, ""))]


class LiteralSpan(NamedTuple):
    """Place of a comment, or else of a string. Lines and columns are counted from 0, columns in characters."""

    first: int
    start: int
    last: int
    end: int
    is_comment: bool


@dataclass(frozen=True, slots=True, eq=False)
class CodeNames:
    """Definitions of a file, and the names of those that are code, and of its constants, with their rows (from 0)."""

    outline: "Outline"
    definitions: Sequence[Definition] = ()
    names: Sequence[tuple[int, str]] = ()

    @classmethod
    def of(cls, found: object, text: str) -> "CodeNames | None":
        """Return the definitions that a parser has found in a text, given as JSON; `None` if they cannot be its.

        The parser runs in another process, which hostile source may control.
        """
        lines = text.split("\n")
        try:
            fields, qualified, named = cast("Any", found)
            definitions = [Definition(*one) for one in fields]
            names = [(row + 0, f"{name}") for row, name in named]
            for number, one in enumerate(definitions):
                if not (0 <= one.first <= one.line < len(lines) and -1 <= one.parent < number):
                    return None
            return cls(Outline(lines, definitions, qualified=qualified), definitions, names)
        except (TypeError, ValueError):
            return None


class Outline:
    """Definitions of one file, and the lines that belong to each."""

    def __init__(self, lines: Sequence[str], definitions: Iterable[Definition], *, qualified: bool = True) -> None:
        """Take the definitions in the order of their beginnings, the outer ones first."""
        self._lines = lines
        self._qualified = qualified
        self._definitions = list(definitions)
        begun: set[int] = set()
        beginning: dict[int, list[int]] = {}
        for number, one in enumerate(self._definitions):
            first = one.first
            while first <= one.last and first in begun:
                first += 1  # another definition begins on this line
            begun.add(one.line)
            beginning.setdefault(first, []).append(-number)
        self._rows = sorted({*beginning, *(one.last + 1 for one in self._definitions)})
        self._owners: list[int] = []  # for the lines from each of these rows on, the innermost definition, or -1
        around: list[int] = []
        for row in self._rows:
            for number in beginning.get(row, ()):
                heappush(around, number)
            while around and self._definitions[-around[0]].last < row:
                heappop(around)
            self._owners.append(-around[0] if around else -1)
        self._sections: dict[int, Section] = {}

    def enclosing(self, line: int) -> Section | None:
        """Return the innermost section around a line (counted from 1), or None at the top level.

        Decorators, attributes and comments directly above a definition belong to it. If several definitions begin on
        one line, the line belongs to the outermost of them.
        """
        at = bisect_right(self._rows, line - 1) - 1
        owner = self._owners[at] if at >= 0 and line <= len(self._lines) else -1
        return None if owner < 0 else self._section(owner)

    def kind_of(self, section: Section) -> str:
        """Return the kind of a section: `function`, or a word such as `class`, `heading`, `table` or `key`."""
        numbers = [number for number, one in enumerate(self._definitions) if one.line + 1 == section.line]
        return next((self._definitions[number].kind for number in numbers if self._section(number) == section), "")

    def sections(self) -> tuple[Section, ...]:
        """Return all sections of the file, in the order of their first lines, outer sections first."""
        return tuple(map(self._section, range(len(self._definitions))))

    def _section(self, owner: int) -> Section:
        if owner not in self._sections:
            one = self._definitions[owner]
            text = self._lines[one.line].strip()[:MAX_NAME_CHARS]
            self._sections[owner] = Section(name=self._name(owner), line=one.line + 1, text=text, end_line=one.last + 1)
        return self._sections[owner]

    def _name(self, owner: int) -> str:
        """Return a qualified name (`Shop.add`), or only the last part if the qualified name is too long."""
        name = full = self._definitions[owner].name[:MAX_NAME_CHARS]
        while self._qualified and (owner := self._definitions[owner].parent) >= 0:
            if outer := self._definitions[owner].name:
                full = f"{outer}.{full}" if full else outer
            if len(full) > MAX_NAME_CHARS:
                return name
        return full
