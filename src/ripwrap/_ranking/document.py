"""Decode the bytes of a file in the same way as rg, and convert ranked chunks of the file to results; no I/O."""

import codecs
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from ripwrap._code.outline import Outline
from ripwrap._code.treesitter.parser import is_available
from ripwrap._code.treesitter.worker import read_outline
from ripwrap._ranking.scoring import RankedCandidate, count_words, most_relevant_lines
from ripwrap._ranking.word_query import WordQuery
from ripwrap._text import byte_order_mark, raw_bytes, text_of
from ripwrap.results import RankedChunk

MAX_FILE_BYTES = 1_000_000
"""Maximum number of bytes of a file that are split into chunks and ranked; the rest of a longer file is ignored."""


@dataclass(frozen=True)
class SourceText:
    """Decoded text of a file."""

    path: str
    text: str
    exact: bool
    marked: bool = False

    @cached_property
    def sections(self) -> "Outline":
        """Outline of the file: its definitions and their lines; empty without the extra `code`."""
        lines = self.text.split("\n")
        return read_outline(self.path, lines).outline if is_available() else Outline(lines, ())

    def name_at(self, line: int) -> str:
        """Return the name of the innermost definition that contains a line (counted from 1); empty at the top level."""
        section = self.sections.enclosing(line)
        return "" if section is None else section.name

    def readable(self, piece: str) -> str:
        """Return `piece`, a part of the text, with U+FFFD in place of bytes that are not valid UTF-8."""
        return piece if self.exact else text_of(raw_bytes(piece))


def cut_to_limit(raw: bytes) -> bytes:
    """Return at most the first `MAX_FILE_BYTES` bytes of a file, cut at the end of a line if possible."""
    if len(raw) <= MAX_FILE_BYTES:
        return raw
    cut = raw.rfind(b"\n", 0, MAX_FILE_BYTES) + 1 or MAX_FILE_BYTES
    _, encoding = byte_order_mark(raw)
    decoder = codecs.getincrementaldecoder(encoding)("ignore")
    decoder.decode(raw[:cut])
    begun, _ = decoder.getstate()  # the bytes of an incomplete character at the end
    return raw[: cut - len(begun)]


def decode_source(path: str, raw: bytes) -> SourceText | None:
    """Decode the bytes of a file by its byte order mark, or as UTF-8; return `None` if the file is binary."""
    mark, encoding = byte_order_mark(raw)
    if mark:
        return SourceText(path, raw[len(mark) :].decode(encoding, "replace"), exact=True, marked=True)
    if b"\0" in raw:
        return None
    try:
        return SourceText(path, raw.decode(), exact=True)
    except UnicodeDecodeError:
        return SourceText(path, raw.decode("utf-8", "surrogateescape"), exact=False)


def to_ranked_chunk(
    query: WordQuery,
    entry: RankedCandidate,
    source: SourceText,
    symbol: str | None = None,
    name_at: Callable[[int], str] | None = None,
) -> RankedChunk:
    """Convert a ranked chunk to a result.

    The result has the name of the definition that contains the most relevant line of the chunk.
    """
    candidate = entry.candidate
    text = candidate.content.text() or ""
    name = _name_of(query, text, candidate.start_line, name_at or source.name_at)
    if symbol is not None and not name.startswith(f"{symbol}."):
        name = symbol
    return RankedChunk(
        path=candidate.path,
        start_line=candidate.start_line,
        end_line=candidate.end_line,
        symbol=source.readable(name) or None,
        text=source.readable(text),
        score=entry.score,
        reasons=tuple(entry.reasons),
    )


def _name_of(query: WordQuery, text: str, start_line: int, name_at: Callable[[int], str]) -> str:
    """Return the name of the definition that contains the most relevant line of a chunk; empty at the top level."""
    # For "session login", the line of the class and the line of the method may have one word each. So count the words
    # of a line together with the words of the name around it: `Session.login` has both. Among equal lines, the name
    # with the most words wins.
    lines = text.split("\n")
    relevant = most_relevant_lines(text, query)
    names = [name_at(start_line + line) for line in relevant]
    both = [f"{name} {lines[line]}" for name, line in zip(names, relevant, strict=True)]
    counts = list(zip(count_words(query, both), count_words(query, names), strict=True))
    return names[counts.index(max(counts))]
