"""Apply `max_count` to a search over several lines, in place of rg; no I/O.

With `--multiline --max-count`, rg 15 panics while it writes JSON, if a match begins in the lines of the counted matches
and ends after them; then it may hang (rg-facts 61). So rg runs without `--max-count`, and its output is cut here, to
what rg means by it: the first matches of each file, with their whole lines, and all matches that begin in these lines.
"""

import base64
import json
import math
from collections.abc import Iterator
from typing import Any, cast

from pydantic_core import from_json

from ripwrap._ripgrep.change import Before, Change
from ripwrap._ripgrep.framing import MAX_RECORD
from ripwrap._ripgrep.query import Query
from ripwrap._ripgrep.spans import spans_lines
from ripwrap._text import to_envelope

_KINDS = {b'{"type":"%b",' % kind: kind.decode() for kind in (b"begin", b"match", b"context", b"end")}
_COUNTS = ("matches", "matched_lines", "bytes_printed")


class Cut(Before):
    """Change that ends the matches of each file after the first `max_count`, or lines if other lines are searched."""

    def __init__(self, query: Query, then: Change | None = None) -> None:
        """Set the options of the search, and the change to do after this one."""
        super().__init__(then)
        options = query.options
        self._most = options.get("max_count", 0)
        self._after = math.inf if options.get("passthru") else options.get("after_context", options.get("context", 0))
        self._line_end = b"\0" if options.get("null_data") else b"\n"
        self._parts: list[bytes] = []  # of the record that has not ended
        self._held = 0
        self._removed = dict.fromkeys(_COUNTS, 0)
        self._begin_file()

    def _begin_file(self) -> None:
        self._matches = 0
        self._left: float = 0  # lines of context after the last match
        self._kept = dict.fromkeys(_COUNTS, 0)

    def _own(self, chunk: bytes) -> bytes:
        first, newline, rest = chunk.partition(b"\n")
        taken = [self._hold(first)]
        if newline:
            *lines, last = rest.split(newline)
            taken += [self._end_line(), *(self._one(line + newline) for line in lines if line), self._hold(last)]
        return b"".join(taken)

    def _own_rest(self) -> bytes:
        rest, self._parts, self._held = b"".join(self._parts), [], 0
        return rest

    def _hold(self, part: bytes) -> bytes:
        """Hold a part of a record; return what is held if the record is so long that its decoder will drop it."""
        self._parts.append(part)
        self._held += len(part)
        if self._held <= MAX_RECORD:
            return b""
        taken = b"" if self._matches >= self._most else b"".join(self._parts)
        self._parts.clear()
        return taken

    def _end_line(self) -> bytes:
        line, is_whole = b"".join(self._parts) + b"\n", self._held <= MAX_RECORD
        self._parts, self._held = [], 0
        if is_whole:
            return self._one(line) if len(line) > 1 else b""
        if self._matches >= self._most:
            return b""
        self._matches += 1
        return line

    def _one(self, record: bytes) -> bytes:
        kind = _KINDS.get(record[: record.find(b",") + 1])
        if kind == "begin":
            self._begin_file()
        elif kind == "match":
            record = b"".join(self._match(record))
        elif kind == "context" and self._matches >= self._most:
            record = b"".join(self._context(from_json(record)["data"]))
        elif kind is None or kind == "end":
            record = self._stats(record, ended=kind == "end")
        self._kept["bytes_printed"] += len(record)
        return record

    def _match(self, record: bytes) -> Iterator[bytes]:
        """Yield the part of a match record that is kept, and the lines after it that are context."""
        message = from_json(record)
        data = message["data"]
        if self._matches >= self._most:
            yield from self._context(data)
            return
        text, submatches = _raw(data["lines"]), data["submatches"]
        end = len(text)
        if self._matches + len(submatches) > self._most:
            end = self._end_of_line(text, submatches[self._most - self._matches - 1])
            submatches = [one for one in submatches if one["start"] < end]
            end = max(end, self._end_of_line(text, submatches[-1]))
        self._matches += max(len(submatches), 1)
        self._kept["matches"] += len(submatches)
        self._kept["matched_lines"] += self._lines(text[:end])
        self._left = self._after
        if end == len(text):
            yield record
            return
        yield _dump({**message, "data": {**data, "lines": to_envelope(text[:end]), "submatches": submatches}})
        yield from self._context(self._from(data, text, end))

    def _context(self, data: dict[str, Any]) -> Iterator[bytes]:
        """Yield the lines of a record as context, as many as there may be."""
        text = _raw(data["lines"])
        at = 0
        while at < len(text) and self._left > 0:
            self._left -= 1
            found = text.find(self._line_end, at)
            end = len(text) if found < 0 else found + 1
            known: dict[str, Any] = {**self._from(data, text, at), "lines": to_envelope(text[at:end]), "submatches": []}
            yield _dump({"type": "context", "data": known})
            at = end

    def _from(self, data: dict[str, Any], text: bytes, at: int) -> dict[str, Any]:
        """Return the data of a record for its text from a position on."""
        number, offset = data["line_number"], data["absolute_offset"]
        number = None if number is None else number + text.count(self._line_end, 0, at)
        return {**data, "lines": to_envelope(text[at:]), "line_number": number, "absolute_offset": offset + at}

    def _end_of_line(self, text: bytes, submatch: dict[str, int]) -> int:
        """Return the end of the last line of a match, after its line terminator."""
        found = text.find(self._line_end, max(submatch["end"] - 1, submatch["start"]))
        return len(text) if found < 0 else found + 1

    def _lines(self, text: bytes) -> int:
        return text.count(self._line_end) + (not text.endswith(self._line_end))

    def _stats(self, record: bytes, *, ended: bool) -> bytes:
        """Return an `end` or `summary` record without the counts of what was removed."""
        message = from_json(record)
        stats = cast("dict[str, Any]", message["data"].get("stats", {}))
        for name in _COUNTS if stats else ():
            if ended:
                self._removed[name] += stats[name] - self._kept[name]
                stats[name] = self._kept[name]
            else:
                stats[name] -= self._removed[name]
        return _dump(message)


def cuts(query: Query) -> bool:
    """Return True if `Cut` limits the matches of each file in place of rg."""
    return bool(query.options.get("max_count")) and spans_lines(query)


def _raw(data: dict[str, str]) -> bytes:
    """Return the bytes of a text in rg's JSON."""
    return data["text"].encode() if "text" in data else base64.b64decode(data["bytes"])


def _dump(message: dict[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
