"""Lines to chunks: which are put together, which are split, and where; nothing of syntax."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from ripwrap._ranking.chunks import LONGEST, Chunk, chunks_of

LARGEST = 2_000
"""Characters of a definition that stays whole, some 60 lines; no part of a larger one has more, unless a line has."""

OVERLAP = 3
"""Lines that a part of a large definition has of the one before it, unless they are long."""

_OVERLAP = 300  # Characters of them, at most.
_SMALL = 200  # Characters of a definition that is put together with its neighbours, at most,
_SMALL_LINES = 3  # and lines.
_BARE = re.compile(r"[\W_]*|\s*end\b.*|\s*[\])};]+[\s\0]*(?://|/\*|#).*|\s*#\s*endif\b.*")


class Piece(NamedTuple):
    """Lines that are not torn apart unless they are too many.

    Attributes:
        first: The first line, from 0.
        last: The last one.
        symbol: The definition that they are, or are of; `None` at the top level.
        outer: The definition that they stand in; what is together in a chunk has the same.
        definitions: How many they are: one, none if they are between two, or more if they were put together.
        opens: Whether they are what a namespace begins with.
    """

    first: int
    last: int
    symbol: str | None
    outer: str | None
    definitions: int
    opens: bool = False


class Lines:
    """A file's lines, and where they begin."""

    def __init__(self, text: str, lines: Sequence[str]) -> None:
        r"""Count.

        Args:
            text: The file.
            lines: Its lines, split at "\n" and without it.
        """
        self.text = text
        self.lines = lines
        self._starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
        self._starts[-1] = len(text)
        self.count: int = len(lines) - (lines[-1] == "")  # behind the last line's end is no line

    def size(self, first: int, last: int) -> int:
        """Characters of lines, with their ends."""
        return self._starts[last + 1] - self._starts[first]

    def is_blank(self, line: int) -> bool:
        """Whether there is nothing but white space in a line."""
        return not self.lines[line].strip()

    def is_bare(self, first: int, last: int) -> bool:
        """Whether lines say nothing, being blank or the end of something."""
        return all(_BARE.fullmatch(line) for line in self.lines[first : last + 1])

    def chunk(self, first: int, last: int, symbol: str | None) -> Chunk:
        """Lines as a chunk."""
        return Chunk(self._starts[first], self._starts[last + 1], first + 1, last + 1, symbol)

    def windows(self, first: int, last: int) -> Iterator[Chunk]:
        """Lines as chunks that know of no definitions."""
        start = self._starts[first]
        for window in chunks_of(self.text[start : self._starts[last + 1]]):
            yield Chunk(
                start + window.start, start + window.end, first + window.start_line, first + window.end_line, None
            )


def chunks_from(lines: Lines, pieces: Iterable[Piece]) -> Iterator[Chunk]:
    """Pieces, which have each line once, in order, as chunks: small neighbours together, large ones in parts."""
    for piece in _joined(lines, pieces):
        if piece.symbol is None and lines.size(piece.first, piece.last) > LONGEST:
            yield from lines.windows(piece.first, piece.last)
        else:
            yield from _parts(lines, piece)


def _joined(lines: Lines, pieces: Iterable[Piece]) -> Iterator[Piece]:
    held: Piece | None = None
    for piece in pieces:
        if held is None:
            held = piece
        elif (both := _together(lines, held, piece)) is not None:
            held = both
        else:
            yield held
            held = piece
    if held is not None:
        yield held


def _together(lines: Lines, one: Piece, other: Piece) -> Piece | None:
    """Two neighbours as one piece; `None` if they should stay apart."""
    size = lines.size(one.first, other.last)
    if size > LARGEST:
        return None
    if not other.definitions and lines.is_bare(other.first, other.last):
        return one._replace(last=other.last)
    if not one.definitions and lines.is_bare(one.first, one.last):
        return other._replace(first=one.first)
    if other.opens and not one.definitions and size <= LONGEST:
        return other._replace(first=one.first)
    if one.outer != other.outer or size > LONGEST or not (_is_small(lines, one) and _is_small(lines, other)):
        return None
    definitions = one.definitions + other.definitions
    symbol = (one if one.definitions else other).symbol if definitions == 1 and one.outer is None else one.outer
    return Piece(one.first, other.last, symbol, one.outer, definitions, one.opens)


def _is_small(lines: Lines, piece: Piece) -> bool:
    """Whether a piece is put together with others: what is no definition, a short one, or several."""
    if piece.definitions != 1:
        return True
    count = piece.last - piece.first + 1
    while count > 1 and lines.is_blank(piece.first + count - 1):
        count -= 1
    return count <= _SMALL_LINES and lines.size(piece.first, piece.last) <= _SMALL


def _parts(lines: Lines, piece: Piece) -> Iterator[Chunk]:
    """A piece, in parts of about the same size that overlap if it is large; each ends before a blank line if it can."""
    first, begun = piece.first, piece.first
    while (left := lines.size(begun, piece.last)) + lines.size(first, begun) - lines.size(begun, begun) > LARGEST:
        last = _end(lines, first, begun, piece.last, left)
        if last == piece.last:
            break
        yield lines.chunk(first, last, piece.symbol)
        begun = last + 1
        first = max(first + 1, begun - OVERLAP)
        while first < begun and (
            lines.size(first, begun) - lines.size(begun, begun) > _OVERLAP or lines.size(first, begun) > LARGEST
        ):
            first += 1
    yield lines.chunk(first, piece.last, piece.symbol)


def _end(lines: Lines, first: int, begun: int, stop: int, left: int) -> int:
    """The last line of a part that begins in `first`, whose lines from `begun` on are new."""
    count = -(-left // (LARGEST - _OVERLAP))
    aim = left // count
    last = begun
    while last < stop and lines.size(begun, last) < aim and lines.size(first, last + 1) <= LARGEST:
        last += 1
    for line in range(last, begun, -1):
        if lines.size(begun, line) < aim // 2:
            break
        if lines.is_blank(line) or (line < stop and lines.is_blank(line + 1)):
            return line
    return last
