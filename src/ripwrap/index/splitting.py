"""Read a file, split it into chunks, and find the names that each chunk defines and its words, for the index.

This takes most of the time of a refresh, and needs neither the database nor tantivy: worker processes do it for a large
refresh. The main process alone writes the index, in the order of the paths, and splits the files of a worker that ends.
"""

import hashlib
import json
import logging
import os
import unicodedata
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import starmap
from typing import NamedTuple

from ripwrap._code.treesitter.merge import (
    WINDOW_VERSION,
    Chunk,
    CodeChunks,
    chunker_version,
    named_windows,
    syntax_chunks,
    without_blank_lines,
)
from ripwrap._code.treesitter.worker import FILE_TIMEOUT, IDLE_TIMEOUT
from ripwrap._ranking.document import MAX_FILE_BYTES, SourceText
from ripwrap._ranking.word_query import MAX_WORD_CHARS, fts_text, to_nfc
from ripwrap._system.concurrency import CANCELLED
from ripwrap._system.subprocess.worker import (
    StartError,
    WorkerPool,
    WorkerProcess,
    is_python,
    serve_requests,
    usable_cpus,
)
from ripwrap._text import raw_bytes
from ripwrap.index.file_state import Stamp, read_file

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


WINDOW_CHUNKER = Chunker(WINDOW_VERSION, named_windows)
"""Chunker that splits files between lines, without a parser."""


class ChunkPosition(NamedTuple):
    """Position of a chunk in its file.

    `start` and `size` are numbers of characters. `line` and `last` are the numbers of the first and last line. `symbol`
    is the name of the definition that contains the chunk; `None` if it is not known.
    """

    start: int
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
    code: str = ""
    """Definitions of the file; see `CodeChunks`."""


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
    found = chunker.chunks_of(source.path, source.text)
    chunks = list(without_blank_lines(source.text, found))
    texts = [source.text[chunk.start : chunk.end] for chunk in chunks]
    positions = [
        ChunkPosition(chunk.start, chunk.end - chunk.start, chunk.start_line, chunk.end_line, chunk.symbol)
        for chunk in chunks
    ]
    words = words_of_chunks(source, texts)
    return SplitText(
        positions,
        [hashlib.blake2b(raw_bytes(text), digest_size=_DIGEST_BYTES).digest() for text in texts],
        # A longer name would never be found, because words of a query are not longer than MAX_WORD_CHARS.
        [[name for name in map(to_nfc, chunk.names) if len(name) <= MAX_WORD_CHARS] for chunk in chunks],
        words,
        [one.count(" ") + (one != "") for one in words],
        found.code if isinstance(found, CodeChunks) else "",
    )


_BORDER = "\2"
"""Character between chunks while they are split into words together, which takes less time than one by one."""


def words_of_chunks(source: SourceText, texts: Sequence[str]) -> list[str]:
    """Return the words of each text of a file, separated by single blanks."""
    if _BORDER in source.text or not texts:
        folded = [words_of(source.readable(text)) for text in texts]
    else:
        folded = words_of(source.readable(_BORDER.join(texts))).split(_BORDER)
    return [" ".join(one.split()) for one in folded]


class _WordCharacters(dict[int, str]):
    """Table for `str.translate()` that keeps letters, digits and marks, and `_BORDER`; others are spaces."""

    def __missing__(self, code: int) -> str:
        kind = unicodedata.category(chr(code))
        self[code] = found = chr(code) if kind[0] in "LNM" or kind == "Co" or code == ord(_BORDER) else " "
        return found


_WORD_CHARACTERS = _WordCharacters()
_ASCII_WORD_CHARACTERS = {code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)}
_ASCII_WORD_CHARACTERS[ord(_BORDER)] = _BORDER


def words_of(text: str) -> str:
    """Return the words of a text in lower case, separated by blanks."""
    return fold(fts_text(text))


def fold(text: str) -> str:
    """Return a text in lower case, with a space in place of each character that is not part of a word."""
    if text.isascii():
        return text.translate(_ASCII_WORD_CHARACTERS)
    return text.translate(_WORD_CHARACTERS).lower()


MIN_BYTES = 4_000_000
"""Minimum size of the files to read, in bytes, for worker processes to be started: about half a second of work."""

_BATCH_BYTES = 400_000
_BATCH_FILES = 200
_LOGGER = logging.getLogger("ripwrap")
_INSTALLED = os.stat(__file__).st_mtime_ns if os.path.exists(__file__) else 0
"""Time of the last change of this module's file, in nanoseconds. A new version of the package changes it."""
_WITHOUT_TEXT = ("binary", "unreadable", "gone")
_CODE = "from ripwrap.index.splitting import serve; serve({version!r})"


class SizedRequest(NamedTuple):
    """File to read, and its size in bytes."""

    request: SplitRequest
    size: int


@dataclass(frozen=True, slots=True)
class Splitter:
    """Object that reads the files of a refresh and splits them into chunks, in this process or in worker processes."""

    chunker: Chunker
    processes: int | None = None
    least: int = MIN_BYTES

    def split(self, root: str, requests: Iterable[SizedRequest], total: int, *, follow: bool) -> Generator[SplitFile]:
        """Read files, split them into chunks, and yield a result for each file, in order.

        The caller must close the generator. With worker processes, some files are taken from the iterator in advance.
        `total` is the sum of the sizes of all files in bytes; each counts as `MAX_FILE_BYTES` at most.
        """

        def split(request: SplitRequest) -> SplitFile:
            return split_file(root, request, follow=follow, chunker=self.chunker)

        count = usable_cpus() if self.processes is None else self.processes
        if total < self.least or count < (2 if self.processes is None else 1) or not is_python():
            yield from (split(request) for request, _ in requests)
            return
        failed: list[StartError] = []

        def ask(worker: WorkerProcess, batch: Sequence[SplitRequest]) -> list[bytes] | None:
            """Return the answer of a worker; `None` if it ended before it answered, or if workers cannot be started."""
            if failed:
                return None
            try:
                files = [(path, [digest.hex() for digest in known]) for path, known in batch]
                return worker.request([json.dumps([root, follow, files]).encode()])
            except StartError as error:
                if not failed:
                    failed.append(error)
                    _LOGGER.info(
                        "could not start worker processes for the index, so this process splits the files into chunks "
                        "itself: %s",
                        error,
                    )
                return None

        pool = WorkerPool(_CODE.format(version=_version(self.chunker.version)), count, FILE_TIMEOUT, IDLE_TIMEOUT)
        with CANCELLED.get().child(), closing(pool.map(ask, _batches(requests))) as answers:
            for batch, message in answers:
                files = None if message is None else _decode_answer(message, batch)
                # This process splits the files if the worker's answer is missing or malformed.
                yield from map(split, batch) if files is None else files


def _batches(requests: Iterable[SizedRequest]) -> Iterator[list[SplitRequest]]:
    batch: list[SplitRequest] = []
    bytes_of_batch = 0
    for request, size in requests:
        batch.append(request)
        bytes_of_batch += min(size, MAX_FILE_BYTES)
        if bytes_of_batch >= _BATCH_BYTES or len(batch) >= _BATCH_FILES:
            yield batch
            batch, bytes_of_batch = [], 0
    if batch:
        yield batch


def _version(chunker: str) -> list[str]:
    """Return the versions of this module, the tokenizer and the chunker; a worker must have the same versions."""
    return [str(_INSTALLED), TOKENIZER, chunker]


# Messages are JSON. Pickles could run code: hostile source may take control of the parser in a worker.


def _decode_answer(message: Sequence[bytes], batch: Sequence[SplitRequest]) -> list[SplitFile] | None:
    """Decode the split files in the answer of a worker; return `None` if the answer is malformed."""
    with suppress(ValueError, TypeError):
        files: list[SplitFile] = []
        for request, (stamp, note, why, hexadecimal, columns) in zip(batch, json.loads(message[0]), strict=True):
            digest, text = bytes.fromhex(hexadecimal), None
            if columns is not None:
                positions, digests, *others = columns
                text = SplitText([*starmap(ChunkPosition, positions)], [*map(bytes.fromhex, digests)], *others)
            if len({len(column) for column in text[:-1]} if text else ()) > 1:
                return None
            if text is None and note not in _WITHOUT_TEXT and digest not in request.known:
                return None
            files.append(SplitFile(tuple(stamp), note, why, digest, text))
        return files
    return None


def serve(version: Sequence[str]) -> None:
    """Answer requests on stdin until stdin ends; this runs in the worker process."""
    chunkers = (WINDOW_CHUNKER, Chunker(chunker_version(), syntax_chunks))
    chunker = next(one for one in chunkers if _version(one.version) == list(version))

    def answer(message: list[bytes]) -> list[bytes]:
        root, follow, files = json.loads(message[0])
        rows: list[object] = []
        for path, known in files:
            request = SplitRequest(path, [*map(bytes.fromhex, known)])
            stamp, note, why, digest, text = split_file(root, request, follow=follow, chunker=chunker)
            columns = None if text is None else [text.positions, [one.hex() for one in text.digests], *text[2:]]
            rows.append((stamp, note, why, digest.hex(), columns))
        return [json.dumps(rows).encode()]

    serve_requests(answer, FILE_TIMEOUT, IDLE_TIMEOUT)
