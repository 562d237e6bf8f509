"""Types that the readers of all languages share: a file without its comments, and a definition found in it; pure."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(slots=True)
class Definition:
    """Definition in a file; its reader sets the end. Lines are indexes, from 0.

    Attributes:
        name: Its own name, without those around it.
        line: Line that has the name.
        start: First line of its decorators, attributes or leading comments.
        end: Last line; -1 while it is not known.
        indent: Column of its first character.
        signature_end: Last line of its signature.
        flat: True if its body may be no deeper than itself, so that only a closing line ends it.
        outdent: Last line before one that is no deeper and does not close it; -1 if there is none.
    """

    name: str
    line: int
    start: int
    end: int = -1
    indent: int = 0
    signature_end: int = 0
    flat: bool = False
    outdent: int = -1


@dataclass(frozen=True, slots=True)
class ScannedFile:
    """Lines of a file, with and without comments and strings.

    Attributes:
        lines: Lines, cut at the number of characters that are looked at.
        code: The same lines without comments; a quotation mark stands for each string.
        continued: Indexes of the lines that begin inside a string.
        clipped: Indexes of the lines that were cut.
    """

    lines: Sequence[str]
    code: Sequence[str]
    continued: frozenset[int]
    clipped: frozenset[int]

    def first_comment_line(self, index: int) -> int:
        """Return the first of the comment lines directly above a line, or the line itself."""
        while index and self.is_comment(index - 1):
            index -= 1
        return index

    def is_comment(self, index: int) -> bool:
        """Return True if a line has a comment and nothing else."""
        return not self.code[index].strip() and bool(self.lines[index].strip())


def indentation(line: str) -> int:
    """Return the column of a line's first character; a tab goes to the next multiple of eight, as in Python."""
    width = len(line) - len(line.lstrip())
    return len(line[:width].expandtabs()) if "\t" in line[:width] else width
