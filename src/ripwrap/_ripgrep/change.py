"""Change the output of a run of rg: drop the results of some files, and put other results into it; no I/O."""

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from ripwrap._ripgrep.decoder import decode_path, path_of
from ripwrap._ripgrep.exit_status import UNCOUNTED, Exit
from ripwrap._ripgrep.query import Output, Query

PATH = re.compile(rb"([^\0]+)\0()")
COUNT = re.compile(rb"([^\0]+)\0([0-9]+(?:\r?\n|\0))")
_END = b'\n{"type":"end"'
"""Beginning of the record for the end of a file, after a newline. No record contains it: JSON escapes newlines."""

_STATS = re.compile(rb"\n[0-9]+ matches\n.*^([0-9]+) files contained matches\n.*", re.DOTALL | re.MULTILINE)

_MAX_REST = 64 * 1024
"""Number of bytes that are longer than a path with its count, and longer than rg's statistics."""

_HEAD_BYTES = 200
"""Number of bytes at the start of a record that are kept until more bytes come, so that its head is never cut."""


class Change:
    """Change of the output of rg. This one drops the results of some files, and corrects the counts of rg's summary."""

    def __init__(self, mode: Output, drops: Callable[[str], bool], searched: int = 0) -> None:
        self.last = True
        self._searched = searched
        self._mode: Output = mode
        self._drops = drops
        self.restart()

    def restart(self) -> None:
        """Return to the state before the first run."""
        self._rest = b""
        self._in_file = self._dropping = self._wrote = False
        self._dropped: list[dict[str, Any]] = []
        self._unmatched = self._searched  # files to drop, less those that had a match

    def feed(self, chunk: bytes) -> bytes:
        """Filter the next bytes of rg's output, and return the changed output."""
        taken = b"".join(self._json(chunk) if self._mode == "json" else self._records(chunk))
        self._wrote = self._wrote or bool(taken)
        return taken

    def close(self) -> bytes:
        """Return the rest of the changed output at the end of a run."""
        rest = b"" if self._dropping else self._rest
        self._rest, self._in_file, self._dropping = b"", False, False
        taken = rest + (self._others() if self.last else b"")
        self._wrote = self._wrote or bool(taken)
        return taken

    def exit(self, end: Exit) -> Exit:
        """Convert the exit of a run, as if rg had written the changed output."""
        wrote, self._wrote = self._wrote, False
        return replace(end, wrote=wrote, returncode=1 if end.returncode == 0 and not wrote else end.returncode)

    def _before(self, path: bytes) -> Iterator[bytes]:  # noqa: ARG002 - see `Overlaid`
        """Yield output that belongs before the output for a file."""
        return iter(())

    def _others(self) -> bytes:
        """Return output that belongs after the output for all files."""
        return b""

    def _begin(self, record: bytes) -> bytes:
        """Return the record for the beginning of a file that is kept."""
        return record

    def _record(self, record: re.Match[bytes]) -> bytes:
        """Return the record of a path or count that is kept: a path, a NUL, and the count if there is one."""
        return record[0]

    def _records_of_file(self, records: bytes) -> bytes:
        """Return the records of a file that is kept; the first or the last record may be incomplete.

        An incomplete last record has at least `_HEAD_BYTES` bytes. `records` begins with a newline, or within a record.
        """
        return records

    def _ended(self, record: bytes) -> bytes:
        """Return the record for the end of a file that is kept."""
        return record

    def _correct(self, stats: dict[str, Any]) -> None:
        """Correct the counts of the summary of a run: subtract the counts of the files that were dropped in this run.

        Summaries of several runs are added, so it does not matter in which run a file without a match was searched.
        """
        unmatched = stats["searches"] - stats["searches_with_match"]  # 0 before rg 15 (rg-facts 25)
        self._unmatched -= len(self._dropped)
        without = max(0, min(unmatched, self._unmatched))
        self._unmatched -= without
        stats["searches"] -= without
        for dropped in self._dropped:
            for name in stats.keys() - {"elapsed"}:
                stats[name] -= dropped[name]
        self._dropped.clear()

    def _records(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the changed output for each path or count that ends in a chunk; keep the rest for the next chunk."""
        self._rest += chunk
        done = 0
        pattern = COUNT if self._mode == "counts" else PATH
        while record := pattern.match(self._rest, done):
            done = record.end()
            path = decode_path(plain_bytes(record[1]))
            if not self._drops(path):
                yield from self._before(os.fsencode(path))
                yield self._record(record)
        self._rest = self._rest[done:]

    def _json(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the changed output for a chunk of JSON; keep the rest for the next chunk.

        Only the `begin` and `end` record of each file are looked for, because a dense search has many records between
        these. The records of a file begin with the newline of its `begin` record, so `_END` finds each `end` record.
        """
        data, at = self._rest + chunk, 0
        self._rest = b""
        while at < len(data):
            if not self._in_file:
                line_end = data.find(b"\n", at)
                if line_end < 0:
                    self._rest = data[at:]
                    return
                line = data[at : line_end + 1]
                if line.startswith(b'{"type":"begin"'):
                    path = path_of(line)
                    self._in_file, self._dropping = True, self._drops(os.fsdecode(path))
                    if not self._dropping:
                        yield from self._before(path)
                        yield self._begin(line)[:-1]
                else:
                    yield from self._summary(line)
                at = line_end + (not self._in_file)
                continue
            end = data.find(_END, at)
            line_end = data.find(b"\n", end + 1) if end >= 0 else -1
            until = end if end >= 0 else _complete(data, at)
            if until > at and not self._dropping:
                yield self._records_of_file(data[at:until])
            if line_end < 0:
                self._rest = data[until:]
                return
            line = data[end + 1 : line_end + 1]
            dropping, self._in_file, self._dropping = self._dropping, False, False
            if dropping:
                self._dropped.append(json.loads(line)["data"]["stats"])
            else:
                yield b"\n"
                yield self._ended(line)
            at = line_end + 1

    def _summary(self, head: bytes) -> Iterator[bytes]:
        record: dict[str, Any] = json.loads(head)
        if record.get("type") != "summary":
            yield head
            return
        self._correct(record["data"]["stats"])
        if self.last:
            yield self._others()
        yield json.dumps(record, separators=(",", ":")).encode() + b"\n"


class Once(Change):
    """Change that keeps the results of each path once, over all runs that share it."""

    def __init__(self, mode: Output) -> None:
        super().__init__(mode, self._is_known)

    def restart(self) -> None:
        """Return to the state before the first run."""
        super().restart()
        self._known = set[str]()

    def _is_known(self, path: str) -> bool:
        known = path in self._known
        self._known.add(path)
        return known


class Both(Change):
    """Change that does two changes, one after the other."""

    def __init__(self, first: Change, then: Change) -> None:
        self._first, self._then = first, then
        self.last = True

    def restart(self) -> None:
        """Return to the state before the first run."""
        self._first.restart()
        self._then.restart()

    def feed(self, chunk: bytes) -> bytes:
        """Filter the next bytes of rg's output, and return the changed output."""
        return self._then.feed(taken) if (taken := self._first.feed(chunk)) else b""

    def close(self) -> bytes:
        """Return the rest of the changed output at the end of a run."""
        self._first.last = self._then.last = self.last
        rest = self._first.close()
        return (self._then.feed(rest) if rest else b"") + self._then.close()

    def exit(self, end: Exit) -> Exit:
        """Convert the exit of a run, as if rg had written the changed output."""
        return self._then.exit(self._first.exit(end))


class Counted(Change):
    """Change that takes rg's statistics out of counts, and notes whether a file with a match has no count.

    rg prints no count for a file in which it finds a NUL byte after a match, but its statistics have it (rg-facts 58).
    This change is done before the change of a place, which several runs may share; a run has its own `Counted`.
    """

    def __init__(self, query: Query, then: Change | None) -> None:
        super().__init__("counts", lambda path: False)  # noqa: ARG005 - drops nothing
        self._query, self._then = query, then
        self._uncounted = 0

    def feed(self, chunk: bytes) -> bytes:
        """Return the counts that a chunk ends, with the other change."""
        taken = super().feed(chunk)
        if len(self._rest) > _MAX_REST:  # no count: the decoder says what is wrong
            taken, self._rest = taken + self._rest, b""
        return self._pass_on(taken)

    def close(self) -> bytes:
        """Return the rest of the changed output at the end of a run, without statistics."""
        rest, self._rest = self._rest, b""
        if stats := _STATS.fullmatch(rest):
            self._uncounted, rest = int(stats[1]) + self._uncounted, b""
        return self._pass_on(rest) + (b"" if self._then is None else self._then.close())

    def exit(self, end: Exit) -> Exit:
        """Convert the exit of a run, and add a note if a file has no count."""
        end = replace(end, query=self._query, wrote=self._wrote)
        if self._uncounted > 0:
            end = replace(end, also=(*end.also, UNCOUNTED))
        return end if self._then is None else self._then.exit(end)

    def _record(self, record: re.Match[bytes]) -> bytes:
        self._uncounted -= record[2][:1] != b"0"
        return record[0]

    def _pass_on(self, taken: bytes) -> bytes:
        return self._then.feed(taken) if taken and self._then is not None else taken


def _complete(data: bytes, start: int) -> int:
    """Return the position up to which the records of a file can be changed: before a record whose head may be cut."""
    line = data.rfind(b"\n", start)
    return line if line >= 0 and len(data) - line <= _HEAD_BYTES else len(data)


def plain_bytes(path: bytes) -> bytes:
    """Return a path without a leading `./`."""
    return path.removeprefix(os.fsencode(os.path.join(os.curdir, "")))
