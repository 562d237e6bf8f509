"""A file's text to chunks: windows of lines of at most 1,000 characters, broken before definitions: pure."""

import re
from collections.abc import Iterator
from typing import NamedTuple

LONGEST = 1_000
"""Characters of a chunk; a longer line is a chunk by itself."""

_SHORTEST = 300  # Before it is that long, nothing ends a chunk.
_DEFINES = re.compile(
    r"(?:[ \t]*(?:@|//|/?\*|#)[^\n]*\n){0,8}"  # what stands above it: decorators, attributes, comments
    r"[ \t]*(?:(?:export|default|public|private|protected|internal|static|abstract|final|async|pub(?:\(\w+\))?"
    r"|unsafe|inline|override|open|local)[ \t]+)*"
    r"(?:def|class|function|func|fun|fn|interface|struct|enum|trait|impl|type|module|namespace|protocol|object|record"
    r"|sub|macro_rules!)[ \t*]"
)


class Chunk(NamedTuple):
    """A piece of a file.

    Attributes:
        start: Offset of its first character.
        end: Offset behind its last.
        start_line: The number of its first line, from 1.
        end_line: The number of its last.
        symbol: The definition that it is, or is a part of, if the file was parsed.
    """

    start: int
    end: int
    start_line: int
    end_line: int
    symbol: str | None = None


def chunks_of(text: str) -> Iterator[Chunk]:
    """The chunks of a file, which have each of its lines once, in order; none of an empty one.

    A chunk is as long as it may be, but ends at the last blank line in it that a definition follows, or at the last
    blank line if none does, unless little would be left of it.
    """
    newline = "\n\r\n" if "\n\r\n" in text[:LONGEST] else "\n\n"
    start, line, size = 0, 1, len(text)
    while start < size:
        end = size if size - start <= LONGEST else _end(text, start, newline) or size
        lines = text.count("\n", start, end)
        yield Chunk(start, end, line, line + lines - (text[end - 1] == "\n"))
        start, line = end, line + lines


def _end(text: str, start: int, blank: str) -> int:
    """Where a chunk ends that has to; 0 if only with the text."""
    end = text.rfind("\n", start, start + LONGEST) + 1
    if not end:
        return text.find("\n", start) + 1
    least, at, last = start + _SHORTEST, end, 0
    while (at := text.rfind(blank, least, at)) >= 0:
        if _DEFINES.match(text, at + len(blank)):
            return at + len(blank)
        last = last or at + len(blank)
    return last or end
