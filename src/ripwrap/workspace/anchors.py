"""Anchors: numbers of lines with a short hash of the text, such as `42·k7q`, to check that a line is still the same.

The hash is the CRC-32 (that of zlib) of the first 1,000 characters of the line in UTF-8, without white space at the
end. Its lowest 15 bits are written as three digits in Crockford's base 32: digits and lowercase letters without i, l, o
and u (https://www.crockford.com/base32.html). Two different lines have the same hash with a probability of 1 in 32,768.
In the standard library of CPython 3.11, 3.7 % of the lines have the hash of a different line in their file (160 files
with 790 lines on average). Pure.
"""

import re
import zlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ripwrap._text import cut_text

HASHED_CHARS = 1_000
"""Characters of a line that the hash depends on."""

MAX_QUOTED_CHARS = 80
"""Characters of a wrong value that an error message quotes."""

SEPARATOR = "·"
"""Character between the number of a line and its hash (U+00B7)."""

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_READ_AS = str.maketrans("ilo", "110")
"""Digits that are read for letters that look like them, as Crockford's base 32 does."""
_ANCHOR = re.compile(r"\s*(\d{1,10})\s*[·•⋅∙]\s*([0-9a-zA-Z]{3})\s*[:-]?\s*")
"""An anchor as answers have it, also with a similar dot."""


class Anchor(NamedTuple):
    """Number of a line, from 1, and the hash of its text."""

    line: int
    hash: str

    def __str__(self) -> str:
        """Return the anchor as answers have it."""
        return f"{self.line}{SEPARATOR}{self.hash}"


def line_hash(text: str) -> str:
    """Return the hash of a line, given with or without its end; three digits and lowercase letters."""
    number = zlib.crc32(text[:HASHED_CHARS].rstrip().encode("utf-8", "surrogatepass"))
    return _ALPHABET[number >> 10 & 31] + _ALPHABET[number >> 5 & 31] + _ALPHABET[number & 31]


def line_hashes(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the hash of each line."""
    return tuple(map(line_hash, lines))


def parse_anchor(text: str) -> Anchor | None:
    """Return the anchor in a text, or None if the text is not an anchor."""
    found = _ANCHOR.fullmatch(text)
    return None if found is None else Anchor(int(found[1]), found[2].lower().translate(_READ_AS))


def parse_place(text: str) -> tuple[str, Anchor]:
    """Return the path and the anchor of a line, given as `src/till.py#42·k7q`.

    Raises:
        ValueError: The text is not a path and an anchor.
    """
    found = re.fullmatch(rf"(.+)[#:]({_ANCHOR.pattern})", text)
    anchor = None if found is None else parse_anchor(found[2])
    if found is None or anchor is None:
        quoted = cut_text(text, MAX_QUOTED_CHARS)
        raise ValueError(f'anchor must be PATH#LINE·HASH, like "src/till.py#42·k7q", got {quoted!r}')
    return found[1], anchor


def labels(first: int, hashes: Sequence[str], count: int) -> list[str]:
    """Return the label of each of some consecutive lines: its anchor if its hash is known, else its number.

    Args:
        first: Number of the first line.
        hashes: Hashes of the lines; empty for numbers alone.
        count: Number of lines.
    """
    numbers = range(first, first + count)
    return [str(Anchor(number, hashes[at])) if at < len(hashes) else str(number) for at, number in enumerate(numbers)]
