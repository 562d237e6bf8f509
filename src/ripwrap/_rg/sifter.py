"""rg's JSON to the records of one page of matches, in path order, and to a count of all the rest: pure, no I/O."""

import os
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field

from ripwrap._rg.decoder import kind_of, path_of
from ripwrap._rg.framer import MAX_RECORD, Framer


@dataclass(frozen=True, slots=True)
class Window:
    """Which matches, in path order, are wanted, and with how much context.

    Attributes:
        offset: How many are left out at the start.
        max_matches: How many are wanted at most.
        max_files: From how many files at most.
        before: Lines of context before each match.
        after: And after it.
        max_count: How many matches of a file count; `None` is all.
    """

    offset: int
    max_matches: int
    max_files: int
    before: int
    after: int
    max_count: int | None

    @property
    def upto(self) -> int:
        """How many matches there are from the first to the last that is wanted."""
        return self.offset + self.max_matches


@dataclass(slots=True)
class Block:
    """The records of one file, as rg wrote them.

    Attributes:
        path: The file.
        matches: How many matches it has, or had when rg was ended.
        records: The first of its `match` and `context` records, each with whether it counts as a match.
        end: The `end` record; empty if rg was ended before it.
    """

    path: bytes
    matches: int = 0
    records: list[tuple[bool, bytes]] = field(default_factory=list[tuple[bool, bytes]])
    end: bytes = b""
    behind: int = 0
    """How many of the records stand behind the last match that can be wanted."""


class Sifter:
    """Keeps the records of a window, whatever the order in which files come, and counts every match.

    Nothing is decoded but a file's path: kinds are told by the first bytes of a record. What is held is bounded by
    what is wanted: at most three times so many matches, with their context.

    With `max_count`, rg gives a match in the context behind the last as a match, too (rg-facts 18); here it is context.

    Attributes:
        matches: How many matches have come.
        files: How many files had one.
        binary: How many of those rg took for binary, so that it may have left them early (rg-facts 20).
        ended: Whether rg's summary has come, so that these numbers are all that there are.
    """

    def __init__(self, window: Window, *, max_record: int = MAX_RECORD) -> None:
        self.matches = 0
        self.files = 0
        self.binary = 0
        self.ended = False
        self._window = window
        self._framer = Framer(max_record)
        self._kept: list[Block] = []
        self._held = 0
        self._block: Block | None = None
        self._in_file = 0

    @property
    def dropped_records(self) -> int:
        """How many records were too long and left out; a match among them is not counted."""
        return self._framer.dropped

    def feed(self, chunk: bytes) -> None:
        """Take in what rg has written.

        Raises:
            DecodeError: It is not what rg writes.
        """
        for record in self._framer.feed(chunk):
            self._take(record)

    def close(self) -> None:
        """Take in what is left when the stream ends without a newline; raises as `feed()` does."""
        for record in self._framer.close():
            self._take(record)

    def blocks(self) -> Sequence[Block]:
        """The files of the first matches, in path order, that of a file that rg was at when it was ended among them."""
        self._keep()
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
                pass  # rg may have added a kind

    def _begin(self, path: bytes) -> None:
        self._keep()
        self._in_file = 0
        if self._wanted(path):
            self._block = Block(path)

    def _wanted(self, path: bytes) -> bool:
        if not (self._window.max_matches and self._window.max_files):
            return False
        return not self._enough(len(self._kept), self._held) or path_order(path) < path_order(self._kept[-1].path)

    def _match(self, record: bytes) -> None:
        is_match = self._in_file != self._window.max_count
        if is_match:
            self.matches += 1
            self.files += not self._in_file
            self._in_file += 1
            if self._block:
                self._block.matches += 1
        self._append(record, is_match=is_match)

    def _append(self, record: bytes, *, is_match: bool) -> None:
        block = self._block
        if block is None:
            return
        if block.matches + (not is_match) > self._window.upto:
            if block.behind == self._window.after:
                return
            block.behind += 1
        block.records.append((is_match, record))

    def _end(self, record: bytes) -> None:
        self.binary += bool(self._in_file) and not is_text(record)
        if self._block:
            self._block.end = record
        self._keep()

    def _keep(self) -> None:
        """Put the current file among those that are kept, and let those go that it pushes out."""
        if self._block and self._block.matches:
            insort(self._kept, self._block, key=lambda block: path_order(block.path))
            self._held += self._block.matches
        self._block = None
        while self._kept and self._enough(len(self._kept) - 1, self._held - self._kept[-1].matches):
            self._held -= self._kept.pop().matches

    def _enough(self, count: int, held: int) -> bool:
        """Whether the first `count` files that are kept, with `held` matches, are all that can be on the page."""
        files = self._window.max_files
        if held >= self._window.upto:
            return True
        if count < files:
            return False
        # Of the last `max_files` of them, does the first one already reach behind the offset?
        return held - sum(block.matches for block in self._kept[count - files + 1 : count]) > self._window.offset


def path_order(path: bytes) -> bytes:
    """What paths are ordered by: their parts, one after another, as `rg --sort=path` does."""
    return path.replace(os.fsencode(os.sep), b"\0")


def is_text(end: bytes) -> bool:
    """Whether an `end` record says nothing of a NUL byte; also if there is none."""
    return not end or b'"binary_offset":null' in end
