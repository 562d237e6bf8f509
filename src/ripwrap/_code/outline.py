"""Interface to find the definition that encloses a line, and the text of an outline.

`patterns.outline` implements this interface with regular expressions, which work for every file. Its class
`PatternOutline` reads a whole file, and its class `NearbyOutline` reads, in languages such as Python, only lines near
the requested lines.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

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


class Outline(Protocol):
    """Interface to ask for the definitions of one file."""

    def enclosing(self, line: int) -> Section | None:
        """Return the innermost section around a line, or None at the top level.

        Decorators, attributes and comments directly above a definition belong to it.
        """
        ...
