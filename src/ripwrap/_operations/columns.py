"""Search files and yield the matches in batches of columns, with one list for each field.

One regular expression splits a chunk of output at its matches, so that Python code runs once for a chunk and not once
for a match. The texts of all records are decoded together, as one JSON array. The regular expression relies on three
facts about rg's output:

- rg writes the keys of a record in one order, without spaces
  (https://docs.rs/grep-printer/*/grep_printer/struct.JSON.html).
- A quote inside of a JSON string has a backslash before it. So `"},"line_number":` is never a part of a string.
- A path or line that is not UTF-8 has the key `bytes` in place of `text`.

`MessageDecoder` decodes the records that the regular expression does not match, one by one, with the same result.
"""

import re
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator, Sequence
from contextlib import aclosing, closing
from itertools import compress
from typing import TypeVar, Unpack, cast

from pydantic_core import from_json

from ripwrap._operations.search import SearchAnswer, refuse_context
from ripwrap._ripgrep.decoder import (
    DOT_SLASH,
    LARGE_RECORD,
    MessageDecoder,
    too_long_errors,
)
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.progress import OnProgress
from ripwrap._ripgrep.stream import StreamRequest, metered, run_stream, run_stream_blocking
from ripwrap.binary.resolver import Rg
from ripwrap.columns import Columns, joined
from ripwrap.errors import named_paths
from ripwrap.models import Match, Span, Submatch
from ripwrap.options import StrPath, check_limit
from ripwrap.places.where import PlacedSearchOptions, placed_search

T = TypeVar("T")

# `[^"]*+` is fast, because it compares each byte with one byte only. A quote in a line is escaped, so the pattern
# continues if a backslash is before the quote. A path with a quote, or a line that ends in a backslash, does not match.
# The groups are path, lines, line number, offset and submatches. `(?=")` ends the literal prefix of the pattern: `re`
# looks for a longer prefix byte by byte.
_MATCH = re.compile(
    rb'\{(?=")"type":"match","data":\{"path":\{"text":"([^"]*+)"\},'
    rb'"lines":\{"text":"([^"]*+(?:(?<=\\)"[^"]*+)*)"\},'
    rb'"line_number":([0-9nul]++),"absolute_offset":([0-9]++),"submatches":\[([^\n]*+)\n'
)
_PARTS = _MATCH.groups + 1
_OTHER_KINDS = re.compile(rb'(?:\{"type":"(?:begin|context|end)",[^\n]*+\n)*')
_SPAN = re.compile(rb'\},"start":([0-9]++),"end":([0-9]++)\}')
_KNOWN_BYTES = 256 * 1024
"""Size of the raw values that `_Known` keeps; a chunk of output of 64 KiB rarely has as many different ones."""


class _Known(dict[bytes, T]):
    """Values by the bytes from which they are decoded. It decodes a missing value, and forgets all at a size."""

    def __init__(self, decode: Callable[[bytes], T]) -> None:
        super().__init__()
        self._decode = decode
        self._size = 0

    def __missing__(self, raw: bytes) -> T:
        self._size += len(raw)
        if self._size > _KNOWN_BYTES:
            self.clear()
            self._size = len(raw)
        value = self[raw] = self._decode(raw)
        return value


class ColumnDecoder:
    """Decoder of rg's JSON into `Columns`, with a decoder of `match` records, which splits and counts records."""

    def __init__(self, messages: MessageDecoder) -> None:
        self._framer = messages.framer
        self._messages = messages
        self._paths = _Known(_path)
        self._spans = _Known(_spans)

    def feed(self, chunk: bytes) -> Iterator[Columns]:
        """Yield the matches that `chunk` completes."""
        if self._framer.pending > LARGE_RECORD:
            large = self._framer.feed(chunk[: chunk.find(b"\n") + 1 or len(chunk)])
            chunk = chunk[chunk.find(b"\n") + 1 :] if large else b""
            matches = [one for one in self._messages.decode_large(large) if isinstance(one, Match)]
            if matches:
                yield Columns.of(matches)
        records = self._framer.feed_joined(chunk)
        parts = _MATCH.split(records)
        gaps = parts[::_PARTS]  # the records before, between and after the matches
        odd = [at for at in compress(range(len(gaps)), gaps) if not _OTHER_KINDS.fullmatch(gaps[at])]
        try:
            if any(not gaps[at].endswith(b"\n") for at in odd):
                raise ValueError("a match begins in the middle of a line")
            columns = self._decode(*(parts[group::_PARTS] for group in range(1, _PARTS)), plain=records.isascii())
        except ValueError:  # the error of `MessageDecoder` names the malformed record
            yield from self._one_by_one(records)
            return
        done = 0
        for at in odd:
            yield from _if_any(columns[done:at])
            yield from self._one_by_one(gaps[at])
            done = at
        yield from _if_any(columns[done:] if done else columns)

    def close(self) -> Iterator[Columns]:
        """Decode the last line, if it has no newline, and yield its match; raise what `feed()` raises."""
        yield from self._one_by_one(b"".join(self._framer.close()))

    def _decode(
        self,
        paths: list[bytes],
        lines: list[bytes],
        line_numbers: list[bytes],
        offsets: list[bytes],
        submatches: list[bytes],
        *,
        plain: bool,
    ) -> Columns:
        """Decode the raw fields of matches; raise `ValueError` if one is malformed."""
        spans = list(map(self._spans.__getitem__, submatches))
        texts: list[str] = from_json(b'["%b"]' % b'","'.join(lines), cache_strings="none") if lines else []
        for at, (line, one) in enumerate(() if plain else zip(texts, spans, strict=True)):
            if not line.isascii():  # the offsets are in bytes
                hits = tuple(Submatch.model_construct(match="", start=start, end=end) for start, end in one)
                spans[at] = Match.model_construct(lines=line, submatches=hits).spans()
        joined = "".join(texts)  # `Match.text` leaves out the same terminators
        if "\r" in joined or "\0" in joined:
            texts = [one[:-1].removesuffix("\r") if one.endswith("\n") else one.removesuffix("\0") for one in texts]
        else:
            texts = [line.removesuffix("\n") for line in texts]
        return Columns(
            path=list(map(self._paths.__getitem__, paths)),
            line_number=from_json(b"[%b]" % b",".join(line_numbers)),
            absolute_offset=from_json(b"[%b]" % b",".join(offsets)),
            text=texts,
            spans=spans,
        )

    def _one_by_one(self, records: bytes) -> Iterator[Columns]:
        """Decode records one by one and yield the matches. At a malformed record, yield earlier matches, then raise."""
        matches: list[Match] = []
        try:
            found = self._messages.decode(line for line in records.split(b"\n") if line)
            matches.extend(cast("Iterator[Match]", found))
        finally:
            if matches:
                yield Columns.of(matches)


def _if_any(columns: Columns) -> Iterable[Columns]:
    return (columns,) if columns.path else ()


def _path(raw: bytes) -> str:
    path: str = from_json(b'"%b"' % raw)
    return path.removeprefix(DOT_SLASH)


def _spans(raw: bytes) -> tuple[Span, ...]:
    """Decode the last group of `_MATCH`."""
    if not raw.endswith(b"]}}"):
        raise ValueError("an incomplete record")
    return tuple([(int(start), int(end)) for start, end in _SPAN.findall(raw)])


BATCH_ROWS = 65_536
"""Default number of matches in a batch."""


@named_paths
def search_columns(
    pattern: str | Sequence[str],
    *,
    cwd: StrPath | None = ".",
    paths: StrPath | Iterable[StrPath] | None = (),
    limit: int | None = None,
    batch: int = BATCH_ROWS,
    on_progress: OnProgress | None = None,
    rg: Rg = None,
    **options: Unpack[PlacedSearchOptions],
) -> AsyncGenerator[Columns]:
    """Search files for a pattern and yield the matches in batches of columns.

    Each column is a list, such as the paths of the matches. The rows are the matches of `search()`, in the same order.
    No `Match` objects are made, so a search with very many matches takes less time than with `search()`.
    A batch can be converted to a table of Arrow, pandas or polars.

    ```python
    import asyncio

    import ripwrap


    async def main():
        async for columns in ripwrap.search_columns("TODO", cwd="demo", glob="*.py", sort="path"):
            print(columns.path, columns.line_number, columns.spans)


    asyncio.run(main())
    ```

    ```text
    ['shop/cart.py', 'shop/till.py'] [5, 1] [((6, 10),), ((20, 24),)]
    ```

    Args:
        pattern: A regular expression (https://docs.rs/regex), or several, any of which may match.
        cwd: The directory to search; globs and `paths` are relative to it.
        paths: Files or directories to search, as in `search()`; empty is all of `cwd`.
        limit: Maximum number of matches, over all files. At this number, rg is stopped.
        batch: Number of matches in a batch. The last batch, which is yielded when the search has ended, may have fewer.
        on_progress: Function that is called with a `Progress`, as in `search()`.
        rg: The rg to run: a path, or a bare name to find in PATH; `None` finds one.
        **options: rg's flags, and where to search, as in `search()`.

    Raises:
        pydantic.ValidationError: An option is unknown or ill-typed.
        ValueError: `limit` is negative, `batch` is below 1, there is no pattern, or a pattern, path or option has a
            NUL.
        TypeError: `limit` or `batch` is not an int.
        FileNotFoundError, PermissionError: `cwd`, one of `paths`, or an `ignore_file` does not exist or cannot be read.
        NotADirectoryError: `cwd` is not a directory.
        BinaryNotFoundError: There is no rg.
        RemoteError: The host cannot be reached, or does not run rg.
        PatternError, GlobError, UnknownTypeError, CapabilityError, SearchError: rg rejects the search, or fails.
        DecodeError: rg's output is malformed.

    The call itself raises `ValidationError`, `ValueError` and `TypeError`. The first iteration raises the other errors.
    If the search fails midway, the matches found before the error are yielded first.
    """
    refuse_context("search_columns()", options)
    answer = ColumnsAnswer(limit, batch)
    query = placed_search("search_columns()", pattern, cwd, paths, options)
    return run_columns(metered(StreamRequest(query, answer), on_progress, limit), answer, rg)


async def run_columns(request: StreamRequest[Columns], answer: "ColumnsAnswer", rg: Rg) -> AsyncGenerator[Columns]:
    """Run rg and yield the batches. Before an error of rg is raised, yield the matches found until then."""
    try:
        async with aclosing(run_stream(request, rg)) as batches:
            async for batch in batches:
                yield batch
    except Exception:
        for batch in answer.take_rest():
            yield batch
        raise


def run_columns_blocking(
    request: StreamRequest[Columns], answer: "ColumnsAnswer", rg: Rg, timeout: float | None
) -> Generator[Columns]:
    """Run rg and yield the batches, blocking. Before an error or a timeout, yield the matches found until then."""
    try:
        with closing(run_stream_blocking(request, rg, timeout)) as batches:
            yield from batches
    except Exception:
        yield from answer.take_rest()
        raise


class ColumnsAnswer(SearchAnswer[Columns]):
    """Answer that collects matches as columns, and yields each batch when it is full."""

    kinds = ("match",)

    def __init__(self, limit: int | None, batch: int) -> None:
        if not isinstance(batch, int) or isinstance(batch, bool):
            raise TypeError(f"batch must be an int, got {type(batch).__name__}")
        if batch < 1:
            raise ValueError(f"batch must be at least 1, got {batch}")
        super().__init__(check_limit(limit))
        self._batch = batch
        self._columns = ColumnDecoder(self._decoder)
        self._parts: deque[Columns] = deque()
        self._rows = 0

    def feed(self, chunk: bytes) -> Iterator[Columns]:
        """Yield the batches that `chunk` completes."""
        yield from self._add(self._columns.feed(chunk))

    def end_run(self, end: Exit) -> Iterator[Columns]:
        """Decode the rest of rg's output, and raise an error if rg wrote no summary."""
        if end.ended:
            yield from self._add(self._columns.close())
        end.check(summary=self.ended)
        self._decoder.summary = None

    def finish(self, end: Exit) -> Iterator[Columns]:
        """Yield the last batch, and log the files and lines that could not be read."""
        end.warn(too_long_errors(self._decoder.dropped, end.query))
        yield from self.take_rest()

    def take_rest(self) -> Iterator[Columns]:
        """Yield one batch with the matches that are not in a batch yet; nothing if there are no such matches."""
        if self._rows:
            yield self._take(self._rows)

    def _add(self, parts: Iterator[Columns]) -> Iterator[Columns]:
        for part in parts:
            self._parts.append(part if self._left is None else part[: self._left])
            added = len(self._parts[-1])
            self._rows += added
            while self._rows >= self._batch:
                yield self._take(self._batch)
            if self._left is not None:
                self._left -= added
                if not self._left:
                    self.full = True
                    yield from self.take_rest()
                    return

    def _take(self, rows: int) -> Columns:
        """Return a batch of the first `rows` matches that are not in a batch yet."""
        self._rows -= rows
        taken: list[Columns] = []
        while rows:
            part = self._parts.popleft()
            if len(part) > rows:
                self._parts.appendleft(part[rows:])
                part = part[:rows]
            taken.append(part)
            rows -= len(part)
        return joined(taken)
