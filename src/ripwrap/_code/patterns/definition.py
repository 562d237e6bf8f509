"""Types for the readers of all languages: a file without its comments, and a definition found in a file; no I/O."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(slots=True)
class Definition:
    """Definition in a file; lines are given by their indexes, from 0. The end is set when the reader finds it.

    Attributes:
        name: Name, without the names of the definitions around it.
        line: Line with the name.
        start: First line of its decorators, attributes or leading comments.
        end: Last line; -1 until it is known.
        indent: Column of its first character.
        signature_end: Last line of its signature.
        flat: True if the body may have the same indentation as the definition. Then only a closing line ends the body.
        outdent: Line before the first line of the block that is not indented deeper than the definition, and does not
            close it; -1 if there is none.
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
        lines: Lines, each cut at the maximum number of characters that are read.
        code: The same lines without comments; each string is replaced by a quotation mark.
        continued: Indexes of the lines that begin inside a string.
        clipped: Indexes of the lines that were cut.
    """

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
