r"""Split rg's output into records, and decode them into messages, paths and counts, incrementally; no I/O.

- `MessageDecoder`: JSON lines (`rg --json`) to models. The documentation of the crate grep-printer describes the format
  (https://docs.rs/grep-printer/*/grep_printer/struct.JSON.html).
- `PathDecoder`: NUL-ended paths (`rg --files --null`) to strings.
- `CountDecoder`: NUL-ended paths, each with a number (`rg --count --null`), to counts.
- `decode()` and `encode()`: JSON lines to models and back, for callers who run rg themselves.

A search can write millions of records, so there is a fast path for the usual record: a match in a file below `./`, with
the keys in the order in which rg writes them. The fast path recognises such a record by its first bytes, and passes the
data of the record to Pydantic as bytes, so that they are parsed only once. `_decode()` does the same for other records
of known kinds. `_decode_whole()` decodes any other record, with the keys in any order, to the same models.

Records end only at `b"\n"`. `splitlines()` would also split at U+2028 and other characters, which a record may contain.
"""

import itertools
import json
import os
import re
from collections import Counter
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Callable,
    Collection,
    Generator,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import suppress
from functools import cached_property
from io import BytesIO
from typing import Any, TypeAlias, cast, overload

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from ripwrap._ripgrep.query import Query
from ripwrap._text import plural, raw_bytes, to_envelope
from ripwrap.errors import DecodeError
from ripwrap.models import Begin, Context, End, FileCount, Match, Message, PathError, Submatch, Summary

MAX_RECORD = 20 * 1024 * 1024
"""Maximum size of a record in bytes, without its newline; longer records are dropped (rg-facts 11)."""

HEAD_BYTES = 32 * 1024
"""Number of bytes to keep from the start of a dropped line; they contain the path of the file.

Linux allows 4,096 bytes for a path, and JSON takes up to six bytes for each byte of the path.
"""


class Framer:
    """Splitter that takes chunks of output and returns whole lines, each with its newline.

    `feed()` skips empty lines; `feed_joined()` may keep them. A line that is too long is dropped and counted; the next
    line is read as usual.
    """

    def __init__(self, max_record: int, name: Callable[[bytes], str]) -> None:
        """Set the limit, and the function that names dropped lines."""
        self.dropped: Counter[str] = Counter()
        self._max = max_record
        self._name = name
        self.pending = 0  # bytes received of an incomplete last record; 0 if the last record is complete
        self._parts: list[bytes] = []
        self._skipping = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the records that `chunk` completes."""
        first, newline, rest = chunk.partition(b"\n")
        self._append(first)
        if not newline:
            return []
        records = [b"".join((*self._parts, newline))] if self._parts else []
        self.close()
        lines = BytesIO(rest).readlines()  # faster than `split()`, which compares byte by byte
        last = lines.pop() if lines and not rest.endswith(newline) else b""
        if len(chunk) > self._max:
            longest = self._max + len(newline)
            for line in lines:
                if len(line) > longest:
                    self._drop(line)
            lines = [line for line in lines if len(line) <= longest]
        if newline in lines:
            lines = [line for line in lines if line != newline]
        self._append(last)
        return records + lines

    def feed_joined(self, chunk: bytes) -> bytes:
        """Return, as one bytes object, the records that `chunk` completes; each record keeps its newline."""
        if len(chunk) > self._max:
            return b"".join(self.feed(chunk))
        start, end = chunk.find(b"\n") + 1, chunk.rfind(b"\n") + 1
        records = self.feed(chunk[:start])
        self._append(chunk[end:])
        return b"".join((*records, memoryview(chunk)[start:end]))

    def close(self) -> list[bytes]:
        """Return a list with the last record, if it has no newline; otherwise return an empty list."""
        record = b"".join(self._parts)
        self._parts.clear()
        self.pending = 0
        self._skipping = False
        return [record] if record else []

    def _append(self, part: bytes) -> None:
        self.pending += len(part)
        if self.pending > self._max:
            if not self._skipping:
                self._drop(b"".join((*self._parts, part)))
            self._skipping = True
            self._parts.clear()
        elif part:
            self._parts.append(part)

    def _drop(self, line: bytes) -> None:
        self.dropped[self._name(line[:HEAD_BYTES])] += 1


Record: TypeAlias = Begin | Match | Context | End
FileTypes: TypeAlias = dict[str, tuple[str, ...]]

MODELS: dict[str, type[BaseModel]] = {"match": Match, "context": Context, "begin": Begin, "end": End}
_KIND_BY_PREFIX = {b'{"type":"%b"' % kind.encode(): kind for kind in MODELS}
DOT_SLASH = "." + os.sep
LARGE_RECORD = 1024 * 1024
"""Size in bytes above which the submatches of a record are decoded in parts.

Pydantic holds the interpreter's lock while it decodes. A record of 20 MiB may have 400,000 submatches, which take half
a second. Between two parts, other threads can run, for example the thread of an event loop.
"""

_PART = 1000  # number of submatches to decode at a time; they take a millisecond
_SUBMATCHES_KEY = b'"submatches":['
# A quote inside of a JSON string has a backslash before it, so this is never a part of a string.
_NEXT_SUBMATCH = b'},{"match":'
_PATH_KEY = b'{"path":{"text":"'
# In JSON, the path separator of Windows is escaped: two backslashes.
_DOT_SLASH_PATH = _PATH_KEY + json.dumps(DOT_SLASH)[1:-1].encode()
_DATA_KEY = b',"data":'
_MATCH_PREFIX = b'{"type":"match"'
_DOT_SLASH_MATCH = _MATCH_PREFIX + _DATA_KEY + _DOT_SLASH_PATH
_RECORD_END = b"}\n"
# The pattern cannot match inside of a JSON string, because the quotes there would have backslashes.
_PATH_IN_HEAD = re.compile(rb'"path":(\{"(?:text":"(?:[^"\\]|\\.)*"|bytes":"[^"]*")\})')
_LINE_NUMBER = re.compile(rb'"line_number":([0-9]+)')
# The group matches only characters that JSON does not escape, so its text is the path itself.
_PLAIN_BEGIN = re.compile(rb'\{"type":"begin","data":\{"path":\{"text":"([ !#-\[\]-~]*)"\}\}\}\n?')


class MessageDecoder:
    """Decoder of rg's JSON lines (records) into models. It decodes only the requested kinds of records, e.g. `match`.

    Records of other known kinds are recognised by their first bytes and not decoded. Records of unknown kinds are
    skipped, because rg may add kinds (rg-facts 14). The summary is an attribute and not yielded, because it is complete
    only after rg has ended. A leading `./` is removed from every path (rg-facts 24).
    """

    def __init__(
        self,
        kinds: Collection[str] = tuple(MODELS),
        *,
        models: Mapping[str, type[BaseModel]] = MODELS,
        max_record: int = MAX_RECORD,
        max_submatches: int | None = None,
    ) -> None:
        """Set what is decoded."""
        self.summary: Summary | None = None
        self._kinds = frozenset(kinds)
        self._max_submatches = max_submatches
        self._models = models
        self.framer: Framer = Framer(max_record, path_in)
        self.dropped: Mapping[str, int] = self.framer.dropped
        """Map from the path of a file to the number of its records that were dropped because they are too long."""

    @cached_property
    def _validators(self) -> dict[bytes, Callable[[bytes], Any] | None]:
        """Map from the beginning of a record to its validator, which Pydantic makes now and columns seldom need."""
        return {
            b'{"type":"%b"' % kind.encode(): model.__pydantic_validator__.validate_json if kind in self._kinds else None
            for kind, model in self._models.items()
        }

    @property
    def pending(self) -> int:
        """Number of bytes received of an incomplete last record; 0 if the last record is complete."""
        return self.framer.pending

    @property
    def dropped_records(self) -> int:
        """Number of records that were dropped because they are too long."""
        return self.framer.dropped.total()

    def take_summary(self) -> Summary | None:
        """Return the summary, with an error for each file with dropped records, and forget both; None without one."""
        if (summary := self.summary) is None:
            return None
        errors = tuple(
            PathError(path=path or None, kind="too_long", message=_records_left_out(number))
            for path, number in self.dropped.items()
        )
        known = {"errors": errors, "dropped_records": self.dropped_records}
        self.summary = None
        self.framer.dropped.clear()
        return summary.model_copy(update=known)

    def feed(self, chunk: bytes) -> Iterator[Record]:
        """Return an iterator over the messages that `chunk` completes; each is decoded when the caller takes it."""
        # The chunk is split now and not lazily, so that it is not lost if the caller stops iterating.
        is_large = self.framer.pending > LARGE_RECORD
        records = self.framer.feed(chunk)
        if not is_large:
            return self.decode(records)
        return itertools.chain(self.decode_large(records[:1]), self.decode(records[1:]))

    def close(self) -> Iterator[Record]:
        """Yield the message of the last line, if this line has no newline; raise what `feed()` raises."""
        return self.decode(self.framer.close())

    def decode(self, records: Iterable[bytes]) -> Iterator[Record]:
        """Yield the messages of whole records, each decoded when the caller takes it; raise what `feed()` raises."""
        # Nearly every record is a match below `./`, so that case has the fewest possible steps.
        head, start, validate = _DOT_SLASH_MATCH, len(_DOT_SLASH_MATCH), self._validators.get(_MATCH_PREFIX)
        for record in records:
            if validate and record[:start] == head and record[-2:] == _RECORD_END:
                try:
                    message = validate(_PATH_KEY + record[start:-2])
                except ValidationError:
                    message = self._decode_whole(record)
            else:
                message = self._decode(record)
            if message is not None:
                yield message

    def decode_large(self, records: Iterable[bytes]) -> Iterator[Record]:
        """Yield the messages of large records, whose submatches are decoded in parts; raise what `feed()` raises."""
        for record in records:
            message = self._decode_in_parts(record)
            if message is not None:
                yield message

    def _decode_in_parts(self, record: bytes) -> Record | None:
        """Decode a large record: first everything except its submatches, then its submatches in parts."""
        start, end = record.rfind(_SUBMATCHES_KEY) + len(_SUBMATCHES_KEY), record.rfind(b"]}}")
        parts = record[start:end].split(_NEXT_SUBMATCH)
        if end < start or len(parts) <= _PART:
            return self._decode(record)
        message = self._decode(record[:start] + record[end:])
        if not isinstance(message, Match):
            return message
        from pydantic import TypeAdapter  # late: large records are rare

        submatches: list[Submatch] = []
        adapter = TypeAdapter(list[Submatch])
        whole = len(parts)
        parts = parts[: self._max_submatches]
        for first in range(0, len(parts), _PART):
            part = _NEXT_SUBMATCH.join(parts[first : first + _PART])
            opened = b"[" if not first else b'[{"match":'
            closed = b"]" if first + _PART >= len(parts) == whole else b"}]"
            try:
                submatches += adapter.validate_json(opened + part + closed)
            except ValidationError as error:
                raise _decode_error(record, f"a malformed message; {error}") from error
        return message.model_copy(update={"submatches": tuple(submatches)})

    def _decode(self, record: bytes) -> Record | None:
        """Decode a record of any kind; return `None` for a summary, and for a kind that was not requested."""
        head, _, data = record.partition(_DATA_KEY)
        if head in self._validators:
            validate, data = self._validators[head], data.removesuffix(b"\n")
            if validate is None:
                return None
            if data.endswith(b"}}"):
                dotted = data.startswith(_DOT_SLASH_PATH)
                try:
                    message: Record = validate(_PATH_KEY + data[len(_DOT_SLASH_PATH) : -1] if dotted else data[:-1])
                except ValidationError:
                    return self._decode_whole(record)
                return message if dotted else _without_dot_slash(message)
        return self._decode_whole(record)

    def _decode_whole(self, record: bytes) -> Record | None:
        """Decode a record with its keys in any order, such as a summary; raise `DecodeError` for a malformed record."""
        record = record.removesuffix(b"\n")
        kind, data = _parse_envelope(record)
        try:
            if kind == "summary":
                self.summary = Summary.model_validate(data)
                return None
            if kind not in self._kinds or kind not in self._models:
                return None
            message: Any = self._models[kind].model_validate(data)
        except ValidationError as error:
            raise _decode_error(record, f"a malformed message; {error}") from error
        return _without_dot_slash(message)


class PathDecoder:
    """Decoder of paths, each ended by a NUL, into strings as `os.fsdecode` returns them, without a leading `./`."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[str]:
        """Return the paths that `chunk` completes."""
        whole, ended, self._rest = (self._rest + chunk).rpartition(b"\0")
        if len(self._rest) > MAX_RECORD:
            raise _decode_error(self._rest, f"a path longer than {MAX_RECORD} bytes")
        if not ended:
            return []
        # Decode all paths at once, which is faster; a listing may have a hundred thousand paths.
        return ("\0" + decode_path(whole)).replace("\0" + DOT_SLASH, "\0").split("\0")[1:]

    def close(self) -> None:
        """Check that the stream ended with a complete path."""
        if self._rest:
            raise _decode_error(self._rest, "an incomplete path")


class CountDecoder:
    """Decoder of paths, each with a NUL, a number and a line end (of `crlf`, `null_data`), into counts."""

    _PATH_AND_COUNT = re.compile(rb"([^\0]+)\0([0-9]{1,20})(?:\r?\n|\0)")  # a count of 64 bits has at most 20 digits
    _START_OF_COUNT = re.compile(rb"[^\0]*(\0[0-9]{0,20}\r?)?")

    def __init__(self) -> None:
        self.rest: bytes = b""

    def feed(self, chunk: bytes) -> list[FileCount]:
        """Return the counts that `chunk` completes; raise what `split()` raises."""
        return [
            FileCount(path=decode_path(path).removeprefix(DOT_SLASH), count=count) for path, count in self.split(chunk)
        ]

    def split(self, chunk: bytes) -> list[tuple[bytes, int]]:
        """Return the counts that `chunk` completes, with each path as rg wrote it."""
        self.rest += chunk
        known = 0
        counts: list[tuple[bytes, int]] = []
        while found := self._PATH_AND_COUNT.match(self.rest, known):
            counts.append((found[1], int(found[2])))
            known = found.end()
        self.rest = self.rest[known:]
        if not counts:
            self._check()
        return counts

    def close(self) -> None:
        """Check that the stream ended with a complete count."""
        self._check()
        if self.rest:
            raise _decode_error(self.rest, "an incomplete count")

    def _check(self) -> None:
        """Raise `DecodeError` if the remaining bytes cannot be the start of a count."""
        if not self._START_OF_COUNT.fullmatch(self.rest) or len(self.rest) > MAX_RECORD:
            raise _decode_error(self.rest, "something that is not a path and a count; check that your rg is ripgrep")


class CountedPathDecoder:
    """Decoder of counts into the paths of the files with a match, or of the files without a match."""

    def __init__(self, *, matching: bool) -> None:
        self._matching = matching
        self._counts = CountDecoder()

    def feed(self, chunk: bytes) -> list[str]:
        """Return the paths that `chunk` completes; raise what `CountDecoder.feed()` raises."""
        return [one.path for one in self._counts.feed(chunk) if bool(one.count) is self._matching]

    def close(self) -> None:
        """Check that the stream ended with a complete count; raise what `CountDecoder.close()` raises."""
        self._counts.close()


_PIECE = 64 * 1024  # number of bytes of a chunk to decode before other tasks run


@overload
def decode(chunks: AsyncIterable[bytes]) -> AsyncGenerator[Message]: ...
@overload
def decode(chunks: bytes | Iterable[bytes]) -> Generator[Message]: ...
def decode(chunks: bytes | Iterable[bytes] | AsyncIterable[bytes]) -> Generator[Message] | AsyncGenerator[Message]:
    r"""Decode the output of `rg --json`, which may come from a file, a pipe or another machine, and yield its messages.

    The messages are those of `search_messages()`: a leading `./` is removed from paths, and records of kinds that
    ripwrap does not know are skipped. Several outputs may follow one another; each ends with its `Summary`. A record
    that is longer than 20 MiB is left out, and `Summary.errors` names its file. Not more than one record and one chunk
    are in memory.

    ```python
    import ripwrap
    from ripwrap import sync

    lines = map(ripwrap.encode, sync.search_messages("TODO", cwd="demo", glob="*.py", sort="path"))
    for message in ripwrap.decode(lines):
        if message.type == "match":
            print(message)
    ```

    ```text
    shop/cart.py:5:    # TODO: taxes
    shop/till.py:1:def pay(amount):  # TODO: cards
    ```

    Args:
        chunks: Bytes of the output, divided anywhere: `bytes`, an iterable such as a binary file, or an async iterable.

    Returns:
        A generator; for an async iterable, an async generator.

    Raises:
        TypeError: `chunks` is not iterable, or a chunk is not `bytes`.
        DecodeError: A line is not a message of rg, or records were left out and no summary follows that says so.

    The call itself raises errors about `chunks`; the other errors are raised while the caller iterates.
    """
    if isinstance(chunks, bytes):
        return _decode_blocking((chunks,))
    if isinstance(chunks, AsyncIterable):
        return _decode_async(chunks)
    if isinstance(chunks, str) or not isinstance(cast("object", chunks), Iterable):
        raise TypeError(f"chunks must be bytes, or an iterable of bytes, got {type(chunks).__name__}")
    return _decode_blocking(chunks)


def _decode_blocking(chunks: Iterable[bytes]) -> Generator[Message]:
    decoder = MessageDecoder()
    for chunk in chunks:
        for piece in _pieces(chunk):
            yield from _messages(decoder, decoder.feed(piece))
    yield from _last_messages(decoder)


async def _decode_async(chunks: AsyncIterable[bytes]) -> AsyncGenerator[Message]:
    from anyio.lowlevel import checkpoint  # late: a blocking program needs no event loop

    decoder = MessageDecoder()
    async for chunk in chunks:
        for piece in _pieces(chunk):
            for message in _messages(decoder, decoder.feed(piece)):
                yield message
            await checkpoint()
    for message in _last_messages(decoder):
        yield message


def _pieces(chunk: bytes) -> Iterator[bytes]:
    if not isinstance(cast("object", chunk), bytes):
        raise TypeError(f"chunks must be bytes, got {type(chunk).__name__}; read rg's output in binary mode")
    return (chunk[start : start + _PIECE] for start in range(0, len(chunk), _PIECE))


def _messages(decoder: MessageDecoder, records: Iterator[Record]) -> Iterator[Message]:
    """Yield messages, and each summary in its place."""
    for message in records:
        if summary := decoder.take_summary():
            yield summary
        yield message
    if summary := decoder.take_summary():
        yield summary


def _last_messages(decoder: MessageDecoder) -> Iterator[Message]:
    yield from _messages(decoder, decoder.close())
    if decoder.dropped_records:
        files = ", ".join(path or "a file without a name" for path in decoder.dropped)
        raise DecodeError(f"{_records_left_out(decoder.dropped_records)}, and no summary follows: {files}")


def _records_left_out(number: int) -> str:
    return f"{plural(number, 'record')} left out, longer than {MAX_RECORD >> 20} MiB in rg's JSON"


_FIELDS: Mapping[str, tuple[str, ...]] = {
    "begin": ("path",),
    **dict.fromkeys(("match", "context"), ("path", "lines", "line_number", "absolute_offset", "submatches")),
    "end": ("path", "binary_offset", "stats"),
    "summary": ("elapsed_total", "stats"),
}
"""Fields of the records of `rg --json` (https://docs.rs/grep-printer, JSON)."""


def encode(message: Message) -> bytes:
    """Return a message as a line of `rg --json`, with its newline: the record from which `decode()` makes the message.

    A record has only what rg has: not the errors of a `Summary`, or the location in a document. A path has no leading
    `./`. Text that is not UTF-8 is in Base64, as rg writes it. `model_dump_json()` gives ripwrap's own JSON, which has
    all fields; `pydantic.TypeAdapter(ripwrap.Message)` validates both forms.
    """
    dumped = message.model_dump()
    data = {name: _enveloped(dumped[name]) for name in _FIELDS[message.type]}
    return json.dumps({"type": message.type, "data": data}, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _enveloped(value: Any) -> Any:
    """Return a value with its texts as objects, which may have bytes; rg leaves out a replacement that is null."""
    if isinstance(value, tuple):
        hits, keys = cast("tuple[dict[str, Any], ...]", value), ("match", "replacement", "start", "end")
        return [{key: _enveloped(hit[key]) for key in keys if (key, hit[key]) != ("replacement", None)} for hit in hits]
    return to_envelope(raw_bytes(value)) if isinstance(value, str) else value


def listing_decoder(*, counts: bool, matching: bool = True) -> CountedPathDecoder | PathDecoder:
    """Return the decoder for a list of files, which rg writes either as paths or as counts."""
    return CountedPathDecoder(matching=matching) if counts else PathDecoder()


def decode_types(stdout: bytes) -> FileTypes:
    """Decode the output of `rg --type-list`: on each line a name, a colon, and globs separated by commas."""
    lines = (line.partition(": ") for line in stdout.decode("utf-8", "replace").split("\n") if line)
    return {name: tuple(globs.split(", ")) for name, _, globs in lines}


def decode_path(raw: bytes, decode: Callable[[bytes], str] = os.fsdecode) -> str:
    """Return a path as `os.fsdecode` returns it."""
    try:
        return decode(raw)
    except UnicodeDecodeError as error:
        raise _decode_error(raw, "a path that is not UTF-8") from error


def kind_of(record: bytes) -> str:
    """Return the kind of a record, such as `match`."""
    return _kind_by_prefix(record) or _parse_envelope(record.removesuffix(b"\n"))[0]


def path_of(begin: bytes) -> bytes:
    """Return the path in a `begin` record, as bytes and without a leading `./`."""
    if plain := _PLAIN_BEGIN.fullmatch(begin):
        return plain[1].removeprefix(DOT_SLASH.encode())
    (message,) = MessageDecoder(("begin",)).decode([begin])
    return os.fsencode(message.path)


def line_number_of(record: bytes) -> int:
    """Return the line number in a `match` or `context` record."""
    # As in `_PATH_IN_HEAD`, the quotes of this pattern would have backslashes inside a JSON string.
    found = _LINE_NUMBER.search(record)
    if found is None:
        raise _decode_error(record, "a match without a line number")
    return int(found[1])


def path_in(head: bytes) -> str:
    """Return the path in the first bytes of a record, without a leading `./`; `""` if they have no complete path."""
    if found := _PATH_IN_HEAD.search(head):
        with suppress(DecodeError):
            return decode_path(path_of(b'{"type":"begin","data":{"path":%b}}' % found[1]))
    return ""


def too_long_errors(dropped: Mapping[str, int], query: Query) -> tuple[PathError, ...]:
    """Return an error for each file with records of a search that were dropped because they are too long."""
    errors: list[PathError] = []
    for path, number in dropped.items():
        errors.append(PathError(path=path or None, kind="too_long", message=too_long_text(number, query)))
    return tuple(errors)


def too_long_text(number: int, query: Query, why: str = f"longer than {MAX_RECORD >> 20} MiB in rg's JSON") -> str:
    """Return the message that says how many records were left out, because they are too long.

    A record is a line, or all lines of matches over several lines that rg has joined (rg-facts 17).
    """
    if query.options.get("multiline"):
        return f"{number} block{'s' * (number != 1)} of joined matches left out, {why}"
    return f"{plural(number, 'line')} left out, {why}"


def _parse_envelope(record: bytes) -> tuple[str, Any]:
    """Return the kind and the data of a record; raise `DecodeError` if it is not a message."""
    try:
        envelope = from_json(record)
        kind, data = envelope["type"], envelope["data"]
    except (ValueError, TypeError, KeyError) as error:
        raise _decode_error(record, "something that is not a message; check that your rg is ripgrep") from error
    if not isinstance(kind, str):
        raise _decode_error(record, "a message whose type is not a string")
    if _kind_by_prefix(record) not in (None, kind):
        raise _decode_error(record, "a message with two types")
    return kind, data


def _kind_by_prefix(record: bytes) -> str | None:
    """Return the kind of a record, given its first bytes; `None` if they fit no known kind."""
    return _KIND_BY_PREFIX.get(record[: record.find(b',"data":')])


def _without_dot_slash(message: Record) -> Record:
    path = message.path
    if not path.startswith(DOT_SLASH):
        return message
    return message.model_copy(update={"path": path.removeprefix(DOT_SLASH)})


def _decode_error(record: bytes, what: str) -> DecodeError:
    return DecodeError(f"rg wrote {what}\nrecord: {record[:200]!r}", record=record)
