"""Decode the bytes of a file in the same way as rg, and convert ranked chunks of the file to results; no I/O."""

import codecs
import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat

from ripwrap._code.line_outline import guess_code
from ripwrap._code.outline import CodeNames, names_between
from ripwrap._code.treesitter.merge import Chunk
from ripwrap._code.treesitter.parser import is_available
from ripwrap._code.treesitter.worker import Source, shared_reader
from ripwrap._ranking.scoring import ChunkCandidate, RankedCandidate, count_words, most_relevant_lines
from ripwrap._ranking.word_query import WordQuery, to_nfc
from ripwrap._text import byte_order_mark, raw_bytes, text_of
from ripwrap.results import RankedChunk

MAX_FILE_BYTES = 1_000_000
"""Maximum number of bytes of a file that are split into chunks and ranked; the rest of a longer file is ignored."""

_KNOWN: dict[tuple[str, bytes], CodeNames] = {}
"""Definitions of the last files, by path and digest of the text."""
_MAX_KNOWN = 256
_MAX_KNOWN_CHARS = 200_000
PARSE_SECONDS = 10.0
"""Seconds to parse the files of a ranking; definitions of those that are not parsed in this time are guessed."""


@dataclass(frozen=True)
class SourceText:
    """Decoded text of a file."""

    path: str
    text: str
    exact: bool

    @cached_property
    def code(self) -> CodeNames:
        """Definitions of the file; guessed from its lines without the extra `code`, or if it cannot be parsed."""
        return read_code([self])[0]

    def name_at(self, line: int) -> str:
        """Return the name of the innermost definition that contains a line (counted from 1); empty at the top level."""
        section = self.code.outline.enclosing(line)
        return "" if section is None else section.name

    def readable(self, piece: str) -> str:
        """Return `piece`, a part of the text, with U+FFFD in place of bytes that are not valid UTF-8."""
        return piece if self.exact else text_of(raw_bytes(piece))


@dataclass(frozen=True, slots=True, eq=False)
class SourceChunk:
    """Chunk of a text; see `ChunkText`."""

    source: SourceText
    chunk: Chunk

    @property
    def key(self) -> str:
        """Text of the chunk."""
        return self.text()

    def text(self) -> str:
        """Return the text of the chunk."""
        return self.source.text[self.chunk.start : self.chunk.end]

    def names(self) -> Collection[str]:
        """Return the names whose definitions begin in the chunk."""
        found = names_between(self.source.code.names, self.chunk.start_line, self.chunk.end_line)
        return {to_nfc(name) for _, name in found}


def read_code(sources: Collection[SourceText], seconds: float = PARSE_SECONDS) -> list[CodeNames]:
    """Return the definitions of files, which are parsed together; then `SourceText.code` has them, too."""
    if lacking := [source for source in sources if "code" not in vars(source)]:
        _read(lacking, seconds)
    return [source.code for source in sources]


def _read(sources: Collection[SourceText], seconds: float) -> None:
    keys = [(source.path, hashlib.blake2b(raw_bytes(source.text), digest_size=16).digest()) for source in sources]
    found = {key: _KNOWN.get(key) for key in keys}
    new = {key: source for key, source in zip(keys, sources, strict=True) if found[key] is None}
    asked = [Source(source.path, source.text) for source in new.values()]
    read = shared_reader().names_of(asked, seconds) if is_available() else repeat(None, len(asked))
    for (key, source), code in zip(new.items(), read, strict=True):
        found[key] = code or guess_code(source.path, source.text)
        if code is not None and len(source.text) <= _MAX_KNOWN_CHARS:
            if len(_KNOWN) >= _MAX_KNOWN:
                _KNOWN.clear()
            _KNOWN[key] = code
    for key, source in zip(keys, sources, strict=True):
        vars(source)["code"] = found[key]  # where `cached_property` looks


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
        return SourceText(path, raw[len(mark) :].decode(encoding, "replace"), exact=True)
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
) -> RankedChunk:
    """Convert a ranked chunk to a result with the name of the definition around its most relevant line."""
    candidate = entry.candidate
    text = candidate.content.text() or ""
    name = _name_of(query, text, candidate, source)
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


def _name_of(query: WordQuery, text: str, candidate: ChunkCandidate, source: SourceText) -> str:
    """Return the name of the definition that contains the most relevant line of a chunk; empty at the top level."""
    # For "session login", the line of the class and the line of the method may have one word each. So count the words
    # of a line together with the words of the name around it: `Session.login` has both. Among equal lines, the name
    # with the most words wins.
    lines = text.split("\n")
    first = candidate.start_line
    names_by_row = names_between(source.code.names, first, candidate.end_line)
    relevant = most_relevant_lines(text, query, [(row + 1 - first, to_nfc(name)) for row, name in names_by_row])
    names = [source.name_at(first + line) for line in relevant]
    both = [f"{name} {lines[line]}" for name, line in zip(names, relevant, strict=True)]
    counts = list(zip(count_words(query, both), count_words(query, names), strict=True))
    return names[counts.index(max(counts))]
