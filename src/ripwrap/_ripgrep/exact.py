"""Count in files with a late NUL, which rg leaves out of counts; no I/O.

rg searches a file up to the block of its first NUL byte. In JSON, it writes the matches before that. It prints no count
of such a file, although `--stats` includes it (rg-facts 58). So counts are asked for with `--stats`. Only if rg has
seen more files with a match than it printed, two more runs follow: one lists the files with a match, which is fast, and
one counts by JSON in the files whose counts are missing.
"""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from ripwrap._ripgrep.change import COUNT, PATH, Before, Change, plain_bytes
from ripwrap._ripgrep.cut import Cut, cuts
from ripwrap._ripgrep.decoder import path_of
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.place import Part
from ripwrap._ripgrep.query import Query
from ripwrap._ripgrep.spans import spans_lines

_STATS = re.compile(rb"^([0-9]+) files contained matches$", re.MULTILINE)
_MAX_GLOBS = 100
"""Maximum number of names with which the files without a count are chosen; with more of them, all files are read."""

_MAX_REST = 64 * 1024
"""Number of bytes that are longer than a path with its count, and longer than rg's statistics."""

_NO_BINARY = ("text", "binary", "null_data")
"""Options with which rg stops at no NUL byte."""

_NOT_NEEDED = ("context", "before_context", "after_context", "passthru", "replace")


def answerable(part: Part) -> Part:
    """Return the run that answers a part of a search; the part itself, unless rg could panic or count wrongly."""
    query = part.query
    if part.output is not None or isinstance(part.change, Before):
        return part
    if cuts(query) and query.mode == "json":
        return replace(part, query=query.without("max_count"), change=Cut(query, part.change))
    if _counts_by_json(query):
        return replace(part, query=_in_json(query), change=Tally(query, part.change))
    if query.mode not in ("count", "count-matches") or query.stats or query.silent:
        return part
    if any(map(query.options.get, _NO_BINARY)):
        return part
    return replace(part, query=replace(query, stats=True), change=Exact(query, part.change))


def _counts_by_json(query: Query) -> bool:
    """Return True if rg's own answer is wrong, or lacks the place where the count of a file belongs in an order.

    If lines without a match are searched in whole files, rg before 15 counts none, and rg 15 leaves files with a late
    NUL out of its lists (rg-facts 58). rg cannot be asked for the files without such a line in another way.
    """
    if query.include_zero or query.silent or query.mode not in ("count", "count-matches", "files-with-matches"):
        return False
    if query.options.get("invert_match") and query.options.get("multiline"):
        return True
    return query.mode != "files-with-matches" and (cuts(query) or query.sort_key != "none") and not query.stats


def _in_json(query: Query) -> Query:
    gone = (*_NOT_NEEDED, "max_count") if cuts(query) else _NOT_NEEDED
    return replace(query.without(*gone), mode="json", include_zero=False, stats=False)


class Tally(Before):
    """Change of JSON into the counts, or the paths, that the mode of a query asks for."""

    def __init__(self, query: Query, then: Change | None) -> None:
        """Set the query, and the change to do after this one."""
        super().__init__(then)
        self._query = query
        self._cut = Cut(query.without(*_NOT_NEEDED)) if cuts(query) else None
        self._by_lines = query.options.get("invert_match") or (query.mode == "count" and not spans_lines(query))
        self._path = self._rest = b""
        self._in_file = self._dropping = self._ended_well = self._wrote = False

    def exit(self, end: Exit) -> Exit:
        """Convert the exit of a run in JSON to the exit of a run that counts."""
        return super().exit(self._as_counts(end, wrote=self._wrote))

    def _as_counts(self, end: Exit, *, wrote: bool) -> Exit:
        end = replace(end, query=self._query, wrote=wrote)
        if end.returncode in (0, 1):
            # Without a summary, another program has exited, or rg was killed on Windows; no listing ends in this way.
            end = replace(end, returncode=1 - wrote) if self._ended_well else replace(end, returncode=1, wrote=True)
        return end

    def _own(self, chunk: bytes) -> bytes:
        return self._tally(chunk if self._cut is None else self._cut.feed(chunk))

    def _own_rest(self) -> bytes:
        return self._tally(b"" if self._cut is None else self._cut.close())

    def _tally(self, chunk: bytes) -> bytes:
        counts = b"".join(self._json(chunk))
        self._wrote = self._wrote or bool(counts)
        return counts

    def _between(self, line: bytes) -> Iterator[bytes]:
        """Keep the path of a file that begins, and drop its records up to the last one; yield nothing."""
        if line.startswith(b'{"type":"begin"'):
            self._path, self._in_file, self._dropping = path_of(line), True, True
        self._ended_well = self._ended_well or b'"type":"summary"' in line
        return iter(())

    def _end_file(self, line: bytes) -> Iterator[bytes]:
        """Yield the count of the file that a record ends."""
        self._in_file = self._dropping = False
        data = json.loads(line)["data"]
        yield self._count(self._path, data["stats"], binary=data["binary_offset"] is not None)

    def _count(self, path: bytes, stats: dict[str, int], *, binary: bool) -> bytes:  # noqa: ARG002 - see `Exact`
        if not stats["matched_lines"]:
            return b""
        if self._query.mode == "files-with-matches":
            return path + b"\0"
        number = stats["matched_lines"] if self._by_lines else max(stats["matches"], 1)
        return b"%b\0%d\n" % (path, number)


class Exact(Tally):
    """Change of counts that adds the counts that rg left out, from further runs."""

    def __init__(self, query: Query, then: Change | None) -> None:
        """Set the query, and the change to do after this one."""
        super().__init__(query, then)
        self._listing = replace(_plain(query), mode="files-with-matches")
        self._step: Literal["count", "list", "json"] = "count"
        self._counted: set[int] = set()  # hashes of the paths with a count
        self._missing = 0
        self._uncounted: set[bytes] = set()
        self._first: Exit | None = None

    def close(self) -> bytes:
        """Return the rest of the counts; the last run also closes the other change."""
        if self._step == "count" and (found := _STATS.search(self._rest)):
            self._missing = int(found[1]) - len(self._counted)
            self._rest = b""
        rest = super().close() if self._missing <= 0 or self._step == "json" else b""
        self._rest, self._in_file, self._dropping = b"", False, False  # the same run may come again, with one thread
        return rest

    def exit(self, end: Exit) -> Exit:
        """Convert the exit of the last run to one exit for all runs; an earlier run that has ended has no errors."""
        if end.ended and self._missing > 0 and self._step != "json":
            self._first = self._first or end
            return replace(end, query=replace(self._query, paths=()), returncode=0, stderr=b"", wrote=True)
        if self._first is None or not end.ended:
            return Before.exit(self, replace(end, query=self._query, wrote=self._wrote))  # not only statistics
        code = self._first.returncode
        end = self._as_counts(end, wrote=self._wrote)
        end = replace(end, returncode=2 if code == 2 else end.returncode, stderr=self._first.stderr or end.stderr)
        return Before.exit(self, end)

    def next_part(self, part: Part, end: Exit) -> Part | None:
        """Return the run that comes after a run of `part`, or `None` if the counts are complete or rg failed."""
        if self._missing <= 0 or self._step == "json" or not end.ended:
            return None
        if self._step == "count":
            self._step = "list"
            return replace(part, query=self._listing)
        self._step = "json"
        return replace(part, query=self._chosen(_in_json(_plain(self._query))))

    def _own(self, chunk: bytes) -> bytes:
        if self._step == "json":
            return super()._own(chunk)
        self._rest += chunk
        done = 0
        pattern = COUNT if self._step == "count" or self._listing.lists_by_counts else PATH
        while found := pattern.match(self._rest, done):
            done, path = found.end(), plain_bytes(found[1])
            if found[2][:1] == b"0":
                continue
            if self._step == "count":
                self._counted.add(hash(path))
            elif hash(path) not in self._counted:
                self._uncounted.add(path)
        if len(self._rest) - done > _MAX_REST:  # no count: the decoder says what is wrong
            done = len(self._rest)
        taken, self._rest = self._rest[:done], self._rest[done:]
        if self._step == "list":
            return b""
        self._wrote = self._wrote or bool(taken)
        return taken

    def _own_rest(self) -> bytes:
        if self._step == "json":
            return super()._own_rest()
        rest, self._rest = self._rest, b""
        return rest

    def _count(self, path: bytes, stats: dict[str, int], *, binary: bool) -> bytes:
        if not binary or hash(path) in self._counted or (self._is_known and path not in self._uncounted):
            return b""
        return super()._count(path, stats, binary=binary)

    @property
    def _is_known(self) -> bool:
        """True if all files without a count are known."""
        return len(self._uncounted) >= self._missing

    def _chosen(self, query: Query) -> Query:
        """Return the query that searches the files without a count, and others of the same names.

        They are chosen by globs, because rg searches a file that is named in the paths also after a NUL.
        """
        names = {re.sub(r"[^\w.-]+", "*", os.path.basename(os.fsdecode(path))) for path in self._uncounted}
        if not self._is_known or len(names) > _MAX_GLOBS or "*" in names:
            return query
        return query.with_(glob=(*query.values("glob"), *sorted(names)))


def _plain(query: Query) -> Query:
    """Return the query without what a further run does not need."""
    return replace(query.without(*_NOT_NEEDED, "sort", "sortr"), include_zero=False)
