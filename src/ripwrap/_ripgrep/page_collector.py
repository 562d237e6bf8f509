"""Collect the records of one page (some successive matches in path order) from rg's JSON; count all matches; no I/O.

rg searches files in parallel and writes them in any order (rg-facts 22); with `--sort` it would use one thread only. So
this module selects the page. It keeps a file as long as the file can be on the page, and drops it when files with
earlier paths fill the page.
"""

import os
from bisect import insort
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from ripwrap._ripgrep.decoder import kind_of, path_in, path_of
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.framing import MAX_RECORD, Framer
from ripwrap.models import PathError

# The fewest first bytes that distinguish a match, a line of context and the end of a file from any other record.
_HEAD_BYTES = len(b'{"type":"context","data":')
_MATCH, _CONTEXT, _END = (b'{"type":"%b","data":{"path":' % kind for kind in (b"match", b"context", b"end"))
_MATCH_HEAD, _CONTEXT_HEAD, _END_HEAD = (start[:_HEAD_BYTES] for start in (_MATCH, _CONTEXT, _END))
_DOT_SLASH = os.fsencode(os.path.join(os.curdir, ""))
_take_head = itemgetter(slice(_HEAD_BYTES))


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Request for one page: some successive matches in path order, with their context."""

    offset: int
    max_matches: int
    max_files: int
    before: int
    after: int
    max_count: int | None

    @property
    def end(self) -> int:
        """Position of the page's end: `offset + max_matches`."""
        return self.offset + self.max_matches


@dataclass(slots=True)
class Block:
    """Records of one file, as rg wrote them."""

    path: bytes
    matches: int = 0
    records: list[tuple[bool, bytes]] = field(default_factory=list[tuple[bool, bytes]])
    end: bytes = b""
    number: int = 0
    trailing: int = 0
    """Number of records after the last match that can be on the page."""


class PageCollector:
    """Collector of the records of a page. It accepts files in any order, and counts every match.

    Only the path of a file is decoded; the first bytes of a record tell its kind. At most `3 * PageRequest.end` matches
    are in memory, with their context.

    With `max_count`, the context after the last counted match may contain further matches, and rg writes these lines as
    matches (rg-facts 18). The collector converts them to context. If `allowed` returns False for the path of a file,
    the matches in the file are not counted.
    """

    full = False
    """True if no more output is needed, so that rg is ended, and `matches` and `files` are lower bounds."""

    _counts_together = True
    """True if matches that cannot be on the page are only counted; False in a subclass that reads every match."""

    def __init__(
        self, request: PageRequest, allowed: Callable[[bytes], bool] | None = None, *, max_record: int = MAX_RECORD
    ) -> None:
        self.matches: int = 0
        self.files: int = 0
        self.binary: int = 0
        self.ended: bool = False
        self._request = request
        self._allowed = allowed
        self._skipping_file = False
        self._framer = Framer(max_record, path_in)
        self._kept: list[Block] = []
        self._held = 0
        self._block: Block | None = None
        self._in_file = 0
        self._number = 0
        self._ordered = False

    def begin_ordered(self) -> None:
        """Keep the order of all further files, which come after the files so far; `allowed` is not asked for these."""
        self._keep_block()
        self._ordered = True
        self._allowed = None  # these files are items, which were selected by their names

    @property
    def dropped(self) -> Mapping[str, int]:
        """Map from each path, in path order, to the number of its records that were dropped because they are too long.

        Matches in these records are not counted.
        """
        dropped = self._framer.dropped
        return {path: dropped[path] for path in sorted(dropped, key=lambda path: path_order(os.fsencode(path)))}

    @property
    def dropped_records(self) -> int:
        """Number of records that were dropped because they are too long."""
        return self._framer.dropped.total()

    def feed(self, chunk: bytes) -> None:
        """Process a chunk of rg's output."""
        records = self._framer.feed(chunk)
        heads: list[bytes] = []
        number = 0
        while number < len(records):
            if self._counts_together and (self._block is None or self._is_complete(self._block)):
                heads = heads or list(map(_take_head, records))
                end = _end_of_lines(heads, number)
                self._count(heads[number:end].count(_MATCH_HEAD))
                number = end
                if end == len(records):
                    return
            self._take(records[number])
            number += 1

    def close(self) -> None:
        """Process the last line, if it has no newline; raise what `feed()` raises."""
        for record in self._framer.close():
            self._take(record)

    def blocks(self) -> Sequence[Block]:
        """Return the files that can be on the page, in path order; if rg was stopped, also the unfinished file."""
        self._keep_block()
        return self._kept

    def _take(self, record: bytes) -> None:
        match kind_of(record):
            case "match":
                self._match(record)
            case "context":
                self._append(record, is_match=False)
            case "begin":
                self._begin(path_of(record))
            case "end":
                self._end(record)
            case "summary":
                self.ended = True
            case _:
                pass  # a kind of record that a later version of rg added

    def _begin(self, path: bytes) -> None:
        self._keep_block()
        self._in_file = 0
        self._number += 1
        self._skipping_file = self._allowed is not None and not self._allowed(path)
        if not self._skipping_file and self._may_be_on_page(path):
            self._block = Block(path, number=self._number)

    def _may_be_on_page(self, path: bytes) -> bool:
        if not (self._request.max_matches and self._request.max_files):
            return False
        return not self._fills_page(len(self._kept), self._held) or self._is_before(path, self._kept[-1])

    def _is_before(self, path: bytes, block: Block) -> bool:
        """Return True if a file that comes now is before a file that is kept."""
        return not self._ordered and path_order(path) < path_order(block.path)

    def _keep(self, block: Block) -> None:
        """Add a file to the kept files."""
        if self._ordered:
            self._kept.append(block)
        else:
            insort(self._kept, block, key=lambda kept: path_order(kept.path))

    def _add_file(self, path: bytes, matches: int) -> None:
        """Count a file of which only the number of matches is known, and keep it if it can be on the page."""
        self.matches += matches
        self.files += 1
        path = path.removeprefix(_DOT_SLASH)
        if self._may_be_on_page(path):
            self._block = Block(path, matches, number=self.files)
            self._keep_block()

    def _match(self, record: bytes) -> None:
        self._append(record, is_match=bool(self._count(1)))

    def _count(self, matches: int) -> int:
        """Count matches of the current file, up to `max_count`, and return how many were counted."""
        if self._skipping_file:
            return 0
        if self._request.max_count is not None:
            matches = min(matches, self._request.max_count - self._in_file)
        self.matches += matches
        self.files += bool(matches) and not self._in_file
        self._in_file += matches
        if self._block:
            self._block.matches += matches
        return matches

    def _is_complete(self, block: Block) -> bool:
        """Return True if no further record of a file can be on the page, so that its matches are only counted."""
        return block.matches >= self._request.end and block.trailing == self._request.after

    def _append(self, record: bytes, *, is_match: bool) -> None:
        block = self._block
        if block is None:
            return
        if block.matches + (not is_match) > self._request.end:
            if block.trailing == self._request.after:
                return
            block.trailing += 1
        block.records.append((is_match, record))

    def _end(self, record: bytes) -> None:
        self.binary += bool(self._in_file) and not is_text(record)
        if self._block:
            self._block.end = record
        self._keep_block()

    def _keep_block(self) -> None:
        """Add the current file to the kept files, and drop files that can no longer be on the page."""
        if self._block and self._block.matches:
            self._keep(self._block)
            self._held += self._block.matches
        self._block = None
        while self._kept and self._fills_page(len(self._kept) - 1, self._held - self._kept[-1].matches):
            self._held -= self._kept.pop().matches

    def _fills_page(self, count: int, held: int) -> bool:
        """Return True if the first `count` kept files, with `held` matches, fill the page."""
        files = self._request.max_files
        if held >= self._request.end:
            return True
        if count < files:
            return False
        # A page begins in the file with the match at `offset`, and has at most `max_files` files. So the page is full
        # if at least `max_files - 1` of the first `count` files come after that file.
        return held - sum(block.matches for block in self._kept[count - files + 1 : count]) > self._request.offset


class MatchCollector(PageCollector):
    """Collector of the matches of one search."""

    end: Exit
    timed_out: bool

    def end_run(self, end: Exit) -> None:
        """Process the end of a run of rg; raise an error if rg failed."""
        if end.ended:
            self.close()
        end.check(summary=self.ended)
        self.ended = False

    def finish(self, end: Exit, *, timed_out: bool) -> None:
        """Store the exit of rg, and in `timed_out` whether rg was stopped at its time limit."""
        self.end, self.timed_out = end, timed_out

    def path_errors(self) -> tuple[PathError, ...]:
        """Return the errors for paths that rg could not read."""
        return self.end.path_errors()

    @property
    def exact(self) -> bool:
        """True if all matches were counted: rg was not stopped, and no record was too long."""
        return not self.timed_out and not self.full and not self.dropped_records


class FirstMatches(MatchCollector):
    """Collector that ends rg when the page is full, with the context of its last match."""

    _counts_together = False

    def feed(self, chunk: bytes) -> None:
        super().feed(chunk)
        self.full = self._is_filled() and not self.ended

    def _is_filled(self) -> bool:
        if self._fills_page(len(self._kept), self._held):
            return True
        records = [] if self._block is None else self._block.records
        at = [number for number, (is_match, _) in enumerate(records) if is_match]
        last = self._request.end - self._held
        return len(at) >= last and len(records) > at[last - 1] + self._request.after


def _end_of_lines(heads: Sequence[bytes], first: int) -> int:
    """Return the position of the first record, from `first` on, that is neither a match nor context.

    If there is no such record, return the number of records.
    """
    if heads[first] not in (_MATCH_HEAD, _CONTEXT_HEAD):
        return first
    try:
        end = heads.index(_END_HEAD, first)
    except ValueError:
        end = len(heads)
    lines = heads[first:end]
    if lines.count(_MATCH_HEAD) + lines.count(_CONTEXT_HEAD) == len(lines):
        return end
    return next(place for place in range(first, end) if heads[place] not in (_MATCH_HEAD, _CONTEXT_HEAD))


def path_order(path: bytes) -> bytes:
    """Return the sort key of a path, which gives the order of `rg --sort=path`: paths are compared name by name."""
    return path.replace(os.fsencode(os.sep), b"\0")


def is_text(end: bytes) -> bool:
    """Return True if an `end` record reports no NUL byte, or if the record is empty."""
    return not end or b'"binary_offset":null' in end
