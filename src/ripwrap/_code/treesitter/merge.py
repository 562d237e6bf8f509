"""Make chunks of the segments of a file: join small segments, and split large segments.

A segment is a definition, or the lines between two definitions.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from ripwrap._code.line_outline import DEFINITION_START, LEAD, named_lines
from ripwrap._code.outline import names_between
from ripwrap._code.treesitter.outline import SyntaxOutline
from ripwrap._code.treesitter.parser import MAX_LINE_CHARS, PARSE_TIMEOUT, load_grammars, parse_outline

WINDOW_VERSION = "windows 4"
"""Name and version of the rules by which `window_chunks()` splits; other rules may split the same text differently."""

MAX_CHUNK_CHARS = 800
"""Maximum number of characters of a chunk; a longer line is a chunk by itself.

Ten results of this size fit into 2,000 tokens of 4 characters. In measurements with sizes from 700 to 1,200, the
quality of the ranking (NDCG@10) differs by at most .007.
"""

_MIN_CHUNK_CHARS = 300
"""Minimum number of characters of a chunk that is cut after a blank line."""

_DEFINITION_START = re.compile(rf"(?:{LEAD}[^\n]*\n){{0,8}}{DEFINITION_START}")


class Chunk(NamedTuple):
    """Consecutive lines of a file."""

    start: int
    end: int
    start_line: int
    end_line: int
    symbol: str | None = None
    names: tuple[str, ...] = ()
    """Names whose definitions begin in the chunk, sorted."""

    def moved(self, offset: int, lines: int) -> "Chunk":
        """Return the chunk of a part of a file as a chunk of the file; the part begins after these lines."""
        return Chunk(
            self.start + offset, self.end + offset, self.start_line + lines, self.end_line + lines, self.symbol
        )


class CodeChunks(list[Chunk]):
    """Chunks of a file. `code` has the definitions of the file, for `CodeNames.of()`; empty if they are not known."""

    def __init__(self, chunks: Iterable[Chunk], code: str = "") -> None:
        """Set the chunks, and the definitions as JSON."""
        super().__init__(chunks)
        self.code = code


EMPTY_CHUNK = Chunk(0, 0, 1, 1)
"""Chunk of a file without text, which is found only by its name."""


def without_blank_lines(text: str, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Yield the chunks of a text without blank lines at their beginning, and without chunks of blank lines only."""
    for chunk in chunks:
        piece = text[chunk.start : chunk.end]
        told = piece.lstrip()
        blank = piece.rfind("\n", 0, len(piece) - len(told)) + 1
        if not told:
            continue
        lines = piece.count("\n", 0, blank)
        yield chunk._replace(start=chunk.start + blank, start_line=chunk.start_line + lines) if lines else chunk


def window_chunks(text: str) -> Iterator[Chunk]:
    """Split text into chunks of as many lines as fit, or of one longer line."""
    newline = "\n\r\n" if "\n\r\n" in text[:MAX_CHUNK_CHARS] else "\n\n"
    start, line, size = 0, 1, len(text)
    while start < size:
        end = size if size - start <= MAX_CHUNK_CHARS else _chunk_end(text, start, newline) or size
        lines = text.count("\n", start, end)
        yield Chunk(start, end, line, line + lines - (text[end - 1] == "\n"))
        start, line = end, line + lines


def named_windows(path: str, text: str) -> Iterator[Chunk]:
    """Split text into chunks by `window_chunks()`, with the names that lines of the chunks seem to define."""
    return _named(window_chunks(text), named_lines(path, text))


def _named(chunks: Iterable[Chunk], names: Sequence[tuple[int, str]]) -> Iterator[Chunk]:
    for chunk in chunks:
        found = {name for _, name in names_between(names, chunk.start_line, chunk.end_line)}
        yield chunk._replace(names=tuple(sorted(found))) if found else chunk


def _chunk_end(text: str, start: int, blank: str) -> int:
    """Return the offset after the chunk that begins at `start`, or 0 if the rest of the text is one long line."""
    end = text.rfind("\n", start, start + MAX_CHUNK_CHARS) + 1
    if not end:
        return text.find("\n", start) + 1
    least, at, last = start + _MIN_CHUNK_CHARS, end, 0
    while (at := text.rfind(blank, least, at)) >= 0:
        if _DEFINITION_START.match(text, at + len(blank)):
            return at + len(blank)
        last = last or at + len(blank)
    return last or end


MAX_DEFINITION_CHARS = 2_000
"""Maximum number of characters (about 60 lines) of a definition that is one chunk, and of a part of a larger
definition.
"""

OVERLAP_LINES = 3
"""Maximum number of lines that a part of a large definition repeats from the previous part."""

_MAX_OVERLAP_CHARS = 300
"""Maximum number of characters of the repeated lines."""
_SMALL_DEFINITION_CHARS = 200
_SMALL_DEFINITION_LINES = 3
"""Maximum number of characters and of lines of a small definition, which is joined with its neighbours."""
_CLOSING_LINE = re.compile(r"[\W_]*|\s*end\b.*|\s*[\])};]+[\s\0]*(?://|/\*|#).*|\s*#\s*endif\b.*")


class Segment(NamedTuple):
    """Consecutive lines: a definition, or lines between definitions."""

    first: int
    last: int
    symbol: str | None
    outer: str | None
    definitions: int
    opens_namespace: bool = False


class Lines:
    """Lines of a file, with their offsets."""

    def __init__(self, text: str, lines: Sequence[str]) -> None:
        r"""Compute the offsets of the lines of a text, given without "\n" at their ends."""
        self.text = text
        self.lines = lines
        self._starts = list(accumulate(map((1).__add__, map(len, lines)), initial=0))  # no Python code for a line
        self._starts[-1] = len(text)
        self.count: int = len(lines) - (lines[-1] == "")  # no line follows the last "\n"

    def size(self, first: int, last: int) -> int:
        """Return the number of characters of the lines from `first` to `last`, including line ends."""
        return self._starts[last + 1] - self._starts[first]

    def is_blank(self, line: int) -> bool:
        """Return True if a line has nothing but white space."""
        return not self.lines[line].strip()

    def is_closing(self, first: int, last: int) -> bool:
        """Return True if all lines are blank or only close a block."""
        return all(_CLOSING_LINE.fullmatch(line) for line in self.lines[first : last + 1])

    def chunk(self, first: int, last: int, symbol: str | None) -> Chunk:
        """Return the lines from `first` to `last` as one chunk."""
        return Chunk(self._starts[first], self._starts[last + 1], first + 1, last + 1, symbol)

    def windows(self, first: int, last: int) -> Iterator[Chunk]:
        """Split the lines from `first` to `last` into chunks without a symbol."""
        start = self._starts[first]
        for window in window_chunks(self.text[start : self._starts[last + 1]]):
            yield window.moved(start, first)


def merge_segments(lines: Lines, segments: Iterable[Segment]) -> Iterator[Chunk]:
    """Join small neighbouring segments into chunks, and split large segments."""
    joined: list[Segment] = []
    for segment in segments:
        if joined and (both := _join(lines, joined[-1], segment)) is not None:
            joined[-1] = both
        else:
            joined.append(segment)
    for segment in joined:
        if segment.symbol is None and lines.size(segment.first, segment.last) > MAX_CHUNK_CHARS:
            yield from lines.windows(segment.first, segment.last)
        else:
            yield from _split(lines, segment)


def _join(lines: Lines, one: Segment, other: Segment) -> Segment | None:
    """Join two neighbours into one segment; return None if they must stay separate."""
    size = lines.size(one.first, other.last)
    if size > MAX_DEFINITION_CHARS:
        return None
    if not other.definitions and lines.is_closing(other.first, other.last):
        return one._replace(last=other.last)
    if not one.definitions and lines.is_closing(one.first, one.last):
        return other._replace(first=one.first)
    if other.opens_namespace and not one.definitions and size <= MAX_CHUNK_CHARS:
        return other._replace(first=one.first)
    if one.outer != other.outer or size > MAX_CHUNK_CHARS or not (_is_small(lines, one) and _is_small(lines, other)):
        return None
    definitions = one.definitions + other.definitions
    symbol = (one if one.definitions else other).symbol if definitions == 1 and one.outer is None else one.outer
    return Segment(one.first, other.last, symbol, one.outer, definitions, one.opens_namespace)


def _is_small(lines: Lines, segment: Segment) -> bool:
    """Return True if a segment may be joined with its neighbours."""
    if segment.definitions != 1:
        return True
    count = segment.last - segment.first + 1
    while count > 1 and lines.is_blank(segment.first + count - 1):
        count -= 1
    return count <= _SMALL_DEFINITION_LINES and lines.size(segment.first, segment.last) <= _SMALL_DEFINITION_CHARS


def _split(lines: Lines, segment: Segment) -> Iterator[Chunk]:
    """Yield a segment as one chunk; split a large segment into overlapping parts, at blank lines where possible."""
    # A part has the lines `first` to `last`. Its first line that is not in the previous part is `fresh`. The repeated
    # lines before `fresh` are reduced until they have at most _MAX_OVERLAP_CHARS and line `fresh` fits into the part.
    first, fresh = segment.first, segment.first
    while lines.size(first, segment.last) > MAX_DEFINITION_CHARS:
        last = _part_end(lines, first, fresh, segment.last)
        if last == segment.last:
            break
        yield lines.chunk(first, last, segment.symbol)
        fresh = last + 1
        first = max(first + 1, fresh - OVERLAP_LINES)
        while first < fresh and (
            lines.size(first, fresh - 1) > _MAX_OVERLAP_CHARS or lines.size(first, fresh) > MAX_DEFINITION_CHARS
        ):
            first += 1
    yield lines.chunk(first, segment.last, segment.symbol)


def _part_end(lines: Lines, first: int, fresh: int, stop: int) -> int:
    """Return the index of the last line of the part that begins in line `first`.

    `fresh` is the first line of the part that is not in the previous part. `stop` is the last line of the segment.
    """
    # Divide the remaining lines into as few parts as possible of about the same size, so that the last part is not
    # small. Then move the end of the part back to a blank line, but by at most half of the part.
    left = lines.size(fresh, stop)
    count = -(-left // (MAX_DEFINITION_CHARS - _MAX_OVERLAP_CHARS))
    aim = left // count
    last = fresh
    while last < stop and lines.size(fresh, last) < aim and lines.size(first, last + 1) <= MAX_DEFINITION_CHARS:
        last += 1
    for line in range(last, fresh, -1):
        if lines.size(fresh, line) < aim // 2:
            break
        if lines.is_blank(line) or (line < stop and lines.is_blank(line + 1)):
            return line
    return last


_VERSION = 7


def chunker_version() -> str:
    """Return the version of the rules by which files are split; another version may split the same text differently."""
    grammars = load_grammars()
    if grammars is None:
        return WINDOW_VERSION
    return f"syntax {_VERSION}, semble-grammars {grammars.__version__}"


def syntax_chunks(path: str, text: str, *, timeout: float = PARSE_TIMEOUT) -> CodeChunks:
    """Split a file at its definitions, or into windows of lines if it cannot be parsed, or has a very long line.

    A definition of up to 2,000 characters is one chunk, with what stands directly above it; a larger one is split into
    the definitions in it, or into parts that overlap. Small neighbours are joined.
    """
    long = max(map(len, text.split("\n"))) > MAX_LINE_CHARS
    outline = None if long else parse_outline(path, text, timeout=timeout)
    if outline is None:
        return CodeChunks(named_windows(path, text))
    lines = Lines(text, outline.lines)
    chunks = _named(merge_segments(lines, _Segments(lines, outline).all()), outline.names())
    return CodeChunks(chunks, json.dumps(outline.code(), separators=(",", ":")))


class _Segments:
    """Segments of a file: its definitions, and the lines between them."""

    def __init__(self, lines: Lines, outline: SyntaxOutline) -> None:
        self._lines = lines
        self._outline = outline
        self._children = outline.children()

    def all(self) -> Iterator[Segment]:
        """Split the whole file into the definitions in it and the lines between them."""
        if self._lines.count:
            yield from self._inside(-1, 0, self._lines.count - 1, None)

    def _inside(self, around: int, first: int, last: int, symbol: str | None) -> Iterator[Segment]:
        """Split a definition, or the whole file, into the definitions in it and the lines between them."""
        outline, lines, line = self._outline, self._lines, first
        for number in self._children.get(around, ()):
            one = outline.found[number]
            # In source with syntax errors, a definition may begin before the previous one has ended.
            start, end = max(one.first, line), min(one.last, last)
            if start > end or not outline.shows(number, MAX_DEFINITION_CHARS):
                continue
            if line < start:
                opens = around >= 0 and outline.found[around].is_namespace and line == first
                yield Segment(line, start - 1, symbol, symbol, 0, opens_namespace=opens)
            line = end + 1
            name = outline.qualified_name(symbol, one.name)
            if one.is_namespace or lines.size(start, end) > MAX_DEFINITION_CHARS:
                yield from self._inside(number, start, end, name)
            else:
                yield Segment(start, end, name, symbol, 1)
        if line == first and around >= 0:
            yield Segment(line, last, symbol, symbol, 1)
        elif line <= last:
            yield Segment(line, last, symbol, symbol, 0)
