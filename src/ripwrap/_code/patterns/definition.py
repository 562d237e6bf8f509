"""Types that are used for all languages: a definition, and the lines of a file with and without comments; no I/O."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(slots=True)
class PatternDefinition:
    """Definition in a file. Lines are given by their indexes, from 0. `end` is set when the end is found."""

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
    """Lines of a file, with and without comments and strings."""

    lines: Sequence[str]
    code: Sequence[str]
    continued: frozenset[int]
    clipped: frozenset[int]

    def first_comment_line(self, index: int) -> int:
        """Return the first of the comment lines directly above a line, or the line itself if there are none."""
        while index and self.is_comment(index - 1):
            index -= 1
        return index

    def is_comment(self, index: int) -> bool:
        """Return True if a line has a comment and nothing else."""
        return not self.code[index].strip() and bool(self.lines[index].strip())


def indentation(line: str) -> int:
    """Return the width of a line's leading white space; a tab extends to the next multiple of eight, as in Python."""
    width = len(line) - len(line.lstrip())
    return len(line[:width].expandtabs()) if "\t" in line[:width] else width
