"""Interface to find the definition that encloses a line.

Two modules implement this interface, and do not import each other. `patterns.outline` uses regular expressions and
works for every file; its class `PatternOutline` reads a whole file, and its class `NearbyOutline` reads, in languages
such as Python, only lines near the requested lines. `treesitter.outline` uses tree-sitter and works for the languages
of the extra `syntax`; its class is `SyntaxOutline`.
"""

from typing import Protocol

from ripwrap.models import Model

MAX_NAME_CHARS = 200
"""Maximum number of characters of the name of a section, and of its `text`. If a qualified name is longer, only the
last part of the name is used.
"""


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


class Outline(Protocol):
    """Interface to ask for the definitions of one file."""

    def enclosing(self, line: int) -> Section | None:
        """Return the innermost section around a line, or None at the top level.

        Decorators, attributes and comments directly above a definition belong to it.

        Args:
            line: Number of the line, from 1; lines outside of the file have no section.
        """
        ...
