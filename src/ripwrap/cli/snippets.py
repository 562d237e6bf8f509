"""First lines of a ranked chunk, which are printed."""

from collections.abc import Sequence
from typing import AnyStr

from ripwrap._text import has_text, plural

MAX_SNIPPET_LINES = 6
"""Maximum number of lines of a ranked chunk that are shown."""
MAX_LINE_CHARS = 200
"""Maximum number of characters that are shown of each line of a ranked chunk."""


def left_out(lines: Sequence[AnyStr]) -> str:
    """Return a text that says how many lines of a chunk are not shown; empty if all lines with text are shown."""
    rest = lines[MAX_SNIPPET_LINES:]
    return f"  … {plural(len(rest), 'more line')}" if has_text(rest) else ""
