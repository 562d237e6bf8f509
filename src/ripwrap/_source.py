"""A file that was read for ranking: its text, as rg reads it, and the place in it that a caller gets; no I/O."""

import codecs
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ripwrap._ranking.score import Ranked, telling_line
from ripwrap._ranking.tokens import Query
from ripwrap._text import raw_bytes, text_of
from ripwrap.results import RankedChunk

if TYPE_CHECKING:
    from ripwrap._sections.outline import Places

MAX_FILE = 1_000_000
"""Bytes of a file that are read."""

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


@dataclass(frozen=True)
class Source:
    """A file that was read.

    Attributes:
        path: The path, as rg gives it.
        text: Its text; of one that is not UTF-8, bytes that make none are lone surrogates.
        exact: Whether it is UTF-8.
    """

    path: str
    text: str
    exact: bool

    @cached_property
    def sections(self) -> "Places":
        """Its definitions."""
        from ripwrap._sections.outline import Places  # the patterns of all languages, only now

        return Places(self.path, self.text.split("\n"))

    def readable(self, piece: str) -> str:
        """A piece of the text without lone surrogates."""
        return piece if self.exact else text_of(raw_bytes(piece))


def beginning(raw: bytes) -> bytes:
    """What is read of a file, out of what may be a byte more: whole lines, if there is more than one."""
    if len(raw) <= MAX_FILE:
        return raw
    cut = raw.rfind(b"\n", 0, MAX_FILE) + 1 or MAX_FILE
    encoding = next((encoding for bom, encoding in _BOMS if raw.startswith(bom)), "utf-8")
    decoder = codecs.getincrementaldecoder(encoding)("ignore")
    decoder.decode(raw[:cut])
    begun, _ = decoder.getstate()  # the bytes of a character that the cut goes through
    return raw[: cut - len(begun)]


def is_binary(raw: bytes) -> bool:
    """Whether a file that begins like this is binary for rg."""
    return b"\0" in raw and not raw.startswith(tuple(bom for bom, _ in _BOMS))


def decoded(path: str, raw: bytes) -> Source | None:
    """A file's text, as rg reads it; `None` if it is binary."""
    for bom, encoding in _BOMS:
        if raw.startswith(bom):
            return Source(path, raw[len(bom) :].decode(encoding, "replace"), exact=True)
    if b"\0" in raw:
        return None
    try:
        return Source(path, raw.decode(), exact=True)
    except UnicodeDecodeError:
        return Source(path, raw.decode("utf-8", "surrogateescape"), exact=False)


def place_of(query: Query, entry: Ranked, source: Source, symbol: str | None = None) -> RankedChunk:
    """A place for a caller, with its definition: the one that is given, or that encloses what says most in it."""
    candidate = entry.candidate
    if symbol is not None:
        symbol = source.readable(symbol)
    else:
        symbol = source.sections.at(candidate.start_line + telling_line(candidate.text, query)) or None
    return RankedChunk(
        path=candidate.path,
        start_line=candidate.start_line,
        end_line=candidate.end_line,
        symbol=symbol,
        text=source.readable(candidate.text),
        score=entry.score,
        reasons=tuple(entry.reasons),
    )
