"""Bytes to messages, paths and counts: pure, incremental, no I/O.

A `MessageDecoder` takes rg's JSON lines in chunks of any size and gives models; a `PathDecoder` takes NUL-ended paths
and gives strings; a `CountDecoder` takes such paths with a number behind each.
"""

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from ripwrap._rg.framer import MAX_RECORD, Framer
from ripwrap.errors import DecodeError
from ripwrap.models import Begin, Context, End, FileCount, Match, Summary

Record: TypeAlias = Begin | Match | Context | End
FileTypes: TypeAlias = dict[str, tuple[str, ...]]

_MODELS: dict[str, type[BaseModel]] = {"match": Match, "context": Context, "begin": Begin, "end": End}
_KINDS = {b'{"type":"%b"' % kind.encode(): kind for kind in _MODELS}
_DOT = "." + os.sep
_PATH = b'{"path":{"text":"'
# As in JSON, where Windows' separator is escaped.
_DOTTED_PATH = _PATH + json.dumps(_DOT)[1:-1].encode()
_DATA = b',"data":'
_MATCH = b'{"type":"match"'
_DOTTED_MATCH = _MATCH + _DATA + _DOTTED_PATH
_ENDED = b"}\n"
# Text that JSON leaves as it is, so that nothing but the path can be in it.
_BEGIN = re.compile(rb'\{"type":"begin","data":\{"path":\{"text":"([ !#-\[\]-~]*)"\}\}\}\n?')


class MessageDecoder:
    """rg's JSON to models, of the kinds that are asked for.

    Kinds that nobody asked for are recognised by their first bytes and not decoded; kinds that this version of ripwrap
    does not know are skipped, since rg may add some. The summary is kept apart, because it is complete only once rg has
    ended. A leading `./` is taken off every path (rg-facts 24).

    Attributes:
        summary: rg's last message, once it has come.
    """

    def __init__(
        self,
        kinds: Collection[str] = tuple(_MODELS),
        *,
        models: Mapping[str, type[BaseModel]] = _MODELS,
        max_record: int = MAX_RECORD,
    ) -> None:
        self.summary: Summary | None = None
        self._kinds = frozenset(kinds)
        self._models = models
        self._validators: dict[bytes, Callable[[bytes], Any] | None] = {
            b'{"type":"%b"' % kind.encode(): model.__pydantic_validator__.validate_json if kind in self._kinds else None
            for kind, model in models.items()
        }
        self._framer = Framer(max_record)

    @property
    def dropped_records(self) -> int:
        """How many records were too long and left out."""
        return self._framer.dropped

    def feed(self, chunk: bytes) -> Iterator[Record]:
        """The messages that `chunk` completes, each decoded when it is taken.

        Raises:
            DecodeError: While iterating, at a record that is not what rg writes.
        """
        # Framed here and not lazily: the chunk is then taken in even if the caller stops iterating.
        return self.decode(self._framer.feed(chunk))

    def close(self) -> Iterator[Record]:
        """What is left when the stream ends without a newline; raises as `feed()` does."""
        return self.decode(self._framer.close())

    def decode(self, records: Iterable[bytes]) -> Iterator[Record]:
        """The messages that whole records are, each decoded when it is taken; raises as `feed()` does."""
        # Nearly every record is a match below `./`: that is told and cut in as few steps as Python has for it.
        head, start, validate = _DOTTED_MATCH, len(_DOTTED_MATCH), self._validators.get(_MATCH)
        for record in records:
            if validate and record[:start] == head and record[-2:] == _ENDED:
                try:
                    message = validate(_PATH + record[start:-2])
                except ValidationError:
                    message = self._decode_whole(record)
            else:
                message = self._decode(record)
            if message is not None:
                yield message

    def _decode(self, record: bytes) -> Record | None:
        """A record of any kind and form."""
        head, _, data = record.partition(_DATA)
        try:
            validate = self._validators[head]
        except KeyError:
            return self._decode_whole(record)
        return self._decode_data(validate, data, record) if validate else None

    def _decode_data(self, validate: Callable[[bytes], Any], data: bytes, record: bytes) -> Record | None:
        """The fast way: the `data` object, cut out of the record, straight into its model."""
        data = data.removesuffix(b"\n")
        if not data.endswith(b"}}"):
            return self._decode_whole(record)
        dotted = data.startswith(_DOTTED_PATH)
        try:
            message: Record = validate(_PATH + data[len(_DOTTED_PATH) : -1] if dotted else data[:-1])
        except ValidationError:
            return self._decode_whole(record)
        return message if dotted else _undotted(message)

    def _decode_whole(self, record: bytes) -> Record | None:
        """The way that assumes nothing about the order of keys: summaries, unknown kinds, and what is malformed."""
        record = record.removesuffix(b"\n")
        kind, data = _opened(record)
        try:
            return self._of_kind(kind, data)
        except ValidationError as error:
            raise _malformed(record, f"a malformed message; {error}") from error

    def _of_kind(self, kind: str, data: Any) -> Record | None:
        if kind == "summary":
            self.summary = Summary.model_validate(data)
            return None
        if kind not in self._kinds or kind not in self._models:
            return None
        message: Any = self._models[kind].model_validate(data)
        return _undotted(message)


class PathDecoder:
    """NUL-ended paths to strings, as `os.fsdecode` gives them, without a leading `./`."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[str]:
        """The paths that `chunk` completes.

        Raises:
            DecodeError: A path is longer than `MAX_RECORD`.
        """
        whole, ended, self._rest = (self._rest + chunk).rpartition(b"\0")
        if len(self._rest) > MAX_RECORD:
            raise _malformed(self._rest, f"a path of over {MAX_RECORD} bytes")
        return [path.removeprefix(_DOT) for path in os.fsdecode(whole).split("\0")] if ended else []

    def close(self) -> None:
        """Check that the stream ended with a path.

        Raises:
            DecodeError: It ended in the middle of one.
        """
        if self._rest:
            raise _malformed(self._rest, "a path without an end")


class CountDecoder:
    """Paths, each with a NUL, a number and a line terminator behind it, to counts.

    The terminator is that of the search: `crlf` and `null_data` have their own.
    """

    _COUNT = re.compile(rb"([^\0]+)\0([0-9]{1,20})(?:\r?\n|\0)")  # rg counts in 64 bits
    _UNENDED = re.compile(rb"[^\0]*(\0[0-9]{0,20}\r?)?")

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[FileCount]:
        """The counts that `chunk` completes.

        Raises:
            DecodeError: What comes next is not what rg writes, or a path is longer than `MAX_RECORD`. Counts that stand
                before it are given first; the next call then raises.
        """
        self._rest += chunk
        known = 0
        counts: list[FileCount] = []
        while found := self._COUNT.match(self._rest, known):
            counts.append(FileCount(path=os.fsdecode(found[1]).removeprefix(_DOT), count=int(found[2])))
            known = found.end()
        self._rest = self._rest[known:]
        if not counts:
            self._check()
        return counts

    def close(self) -> None:
        """Check that the stream ended with a count.

        Raises:
            DecodeError: It ended in the middle of one.
        """
        self._check()
        if self._rest:
            raise _malformed(self._rest, "a count without an end")

    def _check(self) -> None:
        """Raise unless what is left can be the start of a count."""
        if not self._UNENDED.fullmatch(self._rest) or len(self._rest) > MAX_RECORD:
            raise _malformed(self._rest, "something that is not a path and a count")


class CountedPathDecoder:
    """Counts to the paths of the files that match, or of those that do not."""

    def __init__(self, *, matching: bool) -> None:
        self._matching = matching
        self._counts = CountDecoder()

    def feed(self, chunk: bytes) -> list[str]:
        """The paths that `chunk` completes; raises as `CountDecoder.feed()` does."""
        return [one.path for one in self._counts.feed(chunk) if bool(one.count) is self._matching]

    def close(self) -> None:
        """Check that the stream ended with a count; raises as `CountDecoder.close()` does."""
        self._counts.close()


def listing_decoder(*, counts: bool, matching: bool = True) -> CountedPathDecoder | PathDecoder:
    """The decoder for files that match, or that do not, which rg lists as counts or as they are."""
    return CountedPathDecoder(matching=matching) if counts else PathDecoder()


def decode_types(stdout: bytes) -> FileTypes:
    """What `rg --type-list` prints: a name, a colon, and globs with commas between them, on each line."""
    lines = (line.partition(": ") for line in stdout.decode("utf-8", "replace").split("\n") if line)
    return {name: tuple(globs.split(", ")) for name, _, globs in lines}


def kind_of(record: bytes) -> str:
    """What a record says that it is.

    Raises:
        DecodeError: It is no message.
    """
    return _head(record) or _opened(record.removesuffix(b"\n"))[0]


def path_of(begin: bytes) -> bytes:
    """The path in a `begin` record, without a leading `./`.

    Raises:
        DecodeError: It is no such record.
    """
    if plain := _BEGIN.fullmatch(begin):
        return plain[1].removeprefix(_DOT.encode())
    (message,) = MessageDecoder(("begin",)).decode([begin])
    return os.fsencode(message.path or "")


def _opened(record: bytes) -> tuple[str, Any]:
    """The kind and the data of a record; raises `DecodeError` if it is no message."""
    try:
        envelope = from_json(record)
        kind, data = envelope["type"], envelope["data"]
    except (ValueError, TypeError, KeyError) as error:
        raise _malformed(record, "something that is not a message") from error
    if not isinstance(kind, str):
        raise _malformed(record, "a message whose type is not a string")
    if _head(record) not in (None, kind):
        raise _malformed(record, "a message of two types")
    return kind, data


def _head(record: bytes) -> str | None:
    """The kind of a record by its first bytes, if it begins as rg's do."""
    return _KINDS.get(record[: record.find(b',"data":')])


def _undotted(message: Record) -> Record:
    path = message.path
    if path is None or not path.startswith(_DOT):
        return message
    return message.model_copy(update={"path": path.removeprefix(_DOT)})


def _malformed(record: bytes, what: str) -> DecodeError:
    return DecodeError(f"rg wrote {what}\nrecord: {record[:200]!r}", record=record)
