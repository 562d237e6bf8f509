"""Read a file, split it into chunks, and find the names that each chunk defines and its words, for the index.

This work takes most of the time of a refresh, and needs neither the database nor tantivy. So it can run in other
processes; see `workers.py`.
"""

import hashlib
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ripwrap._code.windows import Chunk, without_blank_lines
from ripwrap._ranking.definitions import defined_names
from ripwrap._ranking.document import SourceText
from ripwrap._ranking.word_query import MAX_WORD_CHARS, fts_text
from ripwrap._text import raw_bytes
from ripwrap.index.file_state import ChunkSpan, Stamp, read_file

_DIGEST_BYTES = 16
_UNKNOWN_STAMP = (-1, 0, 0)  # a stamp that no file has, so that the next refresh reads the file again

TOKENIZER = "words, english stemmer 1"
"""Version of the rules that split texts into words for full-text search, after `fts_text()` has prepared the texts."""


@dataclass(frozen=True, slots=True)
class Chunker:
    """Function that splits files into chunks, and the name and version of this function."""

    version: str
    chunks_of: Callable[[str, str], Iterable[Chunk]]
    close: Callable[[], object] = lambda: None


class ChunkPosition(NamedTuple):
    """Position of a chunk in its file.

    `start`, `at` and `size` are explained in `ChunkSpan`. `line` and `last` are the numbers of the first and last line.
    `symbol` is the name of the definition that contains the chunk; `None` if it is not known.
    """

    start: int
    at: int | None
    size: int
    line: int
    last: int
    symbol: str | None


class SplitText(NamedTuple):
    """Chunks of a text, in columns: each attribute is a list with one item for each chunk."""

    positions: list[ChunkPosition]
    digests: list[bytes]
    names: list[list[str]]
    words: list[str]
    lengths: list[int]


class SplitFile(NamedTuple):
    """Result of reading and splitting a file."""

    stamp: Stamp
    note: str | None = None
    why: str = ""
    digest: bytes = b""
    text: SplitText | None = None


class SplitRequest(NamedTuple):
    """File to read and split."""

    path: str
    known: Collection[bytes]


def split_file(root: str, request: SplitRequest, *, follow: bool, chunker: Chunker) -> SplitFile:
    """Read a file, and split it into chunks unless the index already has its content."""
    path, known = request
    try:
        found = read_file(root, path, follow=follow)
    except FileNotFoundError:
        return SplitFile(_UNKNOWN_STAMP, "gone")
    except OSError as error:
        return SplitFile(_UNKNOWN_STAMP, "unreadable", str(error.strerror))
    if found.source is None:
        return SplitFile(found.stamp, "binary")
    note = "cut" if found.cut else None
    text = None if found.digest in known else _split(found.source, chunker)
    return SplitFile(found.stamp, note, "", found.digest, text)


def _split(source: SourceText, chunker: Chunker) -> SplitText:
    chunks = list(without_blank_lines(source.text, chunker.chunks_of(source.path, source.text)))
    texts = [source.text[chunk.start : chunk.end] for chunk in chunks]
    positions = [
        ChunkPosition(*span, chunk.start_line, chunk.end_line, chunk.symbol)
        for chunk, span in zip(chunks, _spans(source, chunks), strict=True)
    ]
    words = [words_of(source.readable(text)) for text in texts]
    return SplitText(
        positions,
        [*map(_text_digest, texts)],
        # A longer name would never be found, because words of a query are not longer than MAX_WORD_CHARS. The names are
        # sorted, because the order of a set differs between processes.
        [sorted(name for name in defined_names(text) if len(name) <= MAX_WORD_CHARS) for text in texts],
        words,
        [len(one.split()) for one in words],
    )


def _spans(source: SourceText, chunks: Iterable[Chunk]) -> Iterator[ChunkSpan]:
    """Yield the position of each chunk in the file; the chunks must be in the order of their beginnings."""
    text = source.text
    if source.marked or text.isascii():
        for chunk in chunks:
            yield ChunkSpan(chunk.start, None if source.marked else chunk.start, chunk.end - chunk.start)
        return
    behind = at = 0
    for chunk in chunks:
        at += len(raw_bytes(text[behind : chunk.start]))
        behind = chunk.start
        yield ChunkSpan(chunk.start, at, len(raw_bytes(text[chunk.start : chunk.end])))


def _text_digest(text: str) -> bytes:
    """Return the digest of a text, which is the key of its embedding."""
    return hashlib.blake2b(raw_bytes(text), digest_size=_DIGEST_BYTES).digest()


class _WordCharacters(dict[int, str]):
    """Table for `str.translate()` that replaces each character by a space, except the characters of words.

    The characters of words are letters, numbers, marks and private-use characters, as in `word_query.TOKENIZE`.
    """

    def __missing__(self, code: int) -> str:
        kind = unicodedata.category(chr(code))
        self[code] = found = chr(code) if kind[0] in "LNM" or kind == "Co" else " "
        return found


_WORD_CHARACTERS = _WordCharacters()
_ASCII_WORD_CHARACTERS = {code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)}


def words_of(text: str) -> str:
    """Return the words of a text in lower case, separated by blanks."""
    return fold(fts_text(text))


def fold(text: str) -> str:
    """Return a text in lower case, with a space in place of each character that is not part of a word."""
    if text.isascii():
        return text.translate(_ASCII_WORD_CHARACTERS)
    return text.translate(_WORD_CHARACTERS).lower()
