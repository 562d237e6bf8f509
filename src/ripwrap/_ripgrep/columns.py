r"""Decode rg's JSON lines into `Columns` (a list for each field of a match), without a model for each match; no I/O.

One regular expression finds the fields of all records in a chunk of output. The texts of all records are decoded
together, as one JSON array. The regular expression relies on three facts about rg's output:

- rg writes the keys of a record in one order, without spaces
  (https://docs.rs/grep-printer/*/grep_printer/struct.JSON.html).
- A quote inside of a JSON string has a backslash before it. So `"},"line_number":` is never a part of a string.
- A path or line that is not UTF-8 has the key `bytes` in place of `text`.

If a chunk has a record that the regular expression does not match, `MessageDecoder` decodes all records of the chunk,
one by one, with the same result.
"""

import re
from collections.abc import Iterator, Mapping
from typing import cast

from pydantic_core import from_json

from ripwrap._ripgrep.decoder import DOT_SLASH, LARGE_RECORD, MessageDecoder, path_in
from ripwrap._ripgrep.framing import MAX_RECORD, Framer
from ripwrap.columns import Columns
from ripwrap.models import Match, Span, Submatch, Summary

# The groups are path, lines, line number, offset and submatches. For a record that is not a match, they are empty.
# `[^"]*+` is fast, because it compares each byte with one byte only. A quote in a line is escaped, so the pattern
# continues if a backslash is before the quote. A path with a quote, or a line that ends in a backslash, does not match.
_RECORD = re.compile(
    rb'\{"type":"(?:match","data":\{"path":\{"text":"([^"]*+)"\},'
    rb'"lines":\{"text":"([^"]*+(?:(?<=\\)"[^"]*+)*+)"\},'
    rb'"line_number":([0-9]++|null),"absolute_offset":([0-9]++),"submatches":\[(.*)\]\}\}'
    rb'|(?:begin|context|end)",.*)\n'
)
_SPAN = re.compile(rb'\},"start":([0-9]++),"end":([0-9]++)\}')
_RECORD_START = b'{"type":"'


class ColumnDecoder:
    """Decoder of rg's JSON into `Columns`. It drops and counts records that are longer than `max_record` bytes."""

    def __init__(self, max_record: int = MAX_RECORD) -> None:
        self._framer = Framer(max_record, path_in)
        self._messages = MessageDecoder(("match",))

    @property
    def pending(self) -> int:
        """Number of bytes received of an incomplete last record; 0 if the last record is complete."""
        return self._framer.pending

    @property
    def dropped(self) -> Mapping[str, int]:
        """Map from the path of a file to the number of its records that were dropped because they are too long."""
        return self._framer.dropped

    @property
    def summary(self) -> Summary | None:
        """rg's summary, which is its last message; `None` until it is decoded."""
        return self._messages.summary

    @summary.setter
    def summary(self, summary: Summary | None) -> None:
        self._messages.summary = summary

    def feed(self, chunk: bytes) -> Iterator[Columns]:
        """Yield the matches that `chunk` completes.

        Raises:
            DecodeError: A record is malformed. The matches before it are yielded first.
        """
        if self._framer.pending > LARGE_RECORD:
            large = self._framer.feed(chunk[: chunk.find(b"\n") + 1 or len(chunk)])
            chunk = chunk[chunk.find(b"\n") + 1 :] if large else b""
            matches = [one for one in self._messages.decode_large(large) if isinstance(one, Match)]
            if matches:
                yield Columns.of(matches)
        records = self._framer.feed_joined(chunk)
        last = records.rfind(b"\n", 0, -1) + 1
        if records and not records.startswith(_RECORD_START, last):  # the summary, whose key `type` comes last
            yield from self._columns(records[:last])
            yield from self._one_by_one(records[last:])
        else:
            yield from self._columns(records)

    def close(self) -> Iterator[Columns]:
        """Decode the last line, if it has no newline, and yield its match; raise what `feed()` raises."""
        yield from self._one_by_one(b"".join(self._framer.close()))

    def _columns(self, records: bytes) -> Iterator[Columns]:
        rows = _RECORD.findall(records)
        if len(rows) != records.count(b"\n"):
            yield from self._one_by_one(records)
            return
        rows = [row for row in rows if row[2]]
        if not rows:
            return
        paths, lines, line_numbers, offsets, submatches = zip(*rows, strict=True)
        try:
            texts: list[str] = from_json(b'["%b"]' % b'","'.join(lines), cache_strings="none")
            known_paths = {path: from_json(b'"%b"' % path).removeprefix(DOT_SLASH) for path in set(paths)}
        except ValueError:  # the error of `MessageDecoder` names the malformed record
            yield from self._one_by_one(records)
            return
        known_spans = {raw: _spans(raw) for raw in set(submatches)}
        spans = [known_spans[raw] for raw in submatches]
        if not records.isascii():
            spans = [
                one if line.isascii() else _in_characters(line, one) for line, one in zip(texts, spans, strict=True)
            ]
        yield Columns(
            path=[known_paths[path] for path in paths],
            line_number=from_json(b"[%b]" % b",".join(line_numbers)),
            absolute_offset=from_json(b"[%b]" % b",".join(offsets)),
            text=_without_terminators(texts),
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


def _spans(submatches: bytes) -> tuple[Span, ...]:
    return tuple((int(start), int(end)) for start, end in _SPAN.findall(submatches))


def _in_characters(lines: str, spans: tuple[Span, ...]) -> tuple[Span, ...]:
    """Convert offsets in bytes to offsets in characters."""
    hits = tuple(Submatch.model_construct(match="", start=start, end=end) for start, end in spans)
    return Match.model_construct(lines=lines, submatches=hits).spans()


def _without_terminators(lines: list[str]) -> list[str]:
    """Return the lines without their line terminators; `Match.text` leaves out the same characters."""
    joined = "".join(lines)
    if "\r" in joined or "\0" in joined:
        return [line[:-1].removesuffix("\r") if line.endswith("\n") else line.removesuffix("\0") for line in lines]
    return [line.removesuffix("\n") for line in lines]
