"""What the readers of the languages agree on: a file without its comments, and a definition found in it; pure."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(slots=True)
class Draft:
    """A definition; lines are indexes, from 0."""

    name: str
    line: int
    start: int
    """Where its decorators, attributes or leading comments begin."""
    end: int = -1
    indent: int = 0
    head: int = 0
    """The last line of its signature."""
    flat: bool = False
    """Whether its body is no deeper than itself, so that only what closes it ends it."""
    outdent: int = -1
    """The last line before one that is no deeper and does not close it."""


@dataclass(frozen=True, slots=True)
class Source:
    """The lines of a file, and what is code in them."""

    lines: Sequence[str]
    code: Sequence[str]
    """The same lines without comments; where a string was is a quotation mark."""
    continued: frozenset[int]
    """The lines that begin inside a string."""
    clipped: frozenset[int]
    """The lines that are longer than what is looked at."""

    def lead(self, index: int) -> int:
        """The first of the comment lines directly above a line, or the line itself."""
        while index and self.is_comment(index - 1):
            index -= 1
        return index

    def is_comment(self, index: int) -> bool:
        """Whether nothing but a comment is on a line."""
        return not self.code[index].strip() and bool(self.lines[index].strip())


def indent_of(line: str) -> int:
    """The column of the first character; a tab goes to the next multiple of eight, as in Python."""
    width = len(line) - len(line.lstrip())
    return len(line[:width].expandtabs()) if "\t" in line[:width] else width
