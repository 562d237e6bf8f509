"""rg's JSON to the records of one page of matches, in path order, and to a count of all the rest: pure, no I/O."""

import os
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field

from ripwrap._rg.decoder import kind_of, path_of
from ripwrap._rg.framer import MAX_RECORD, Framer


@dataclass(slots=True)
class Block:
    """The records of one file, as rg wrote them.

    Attributes:
        path: The file.
        matches: How many matches it has, or had when rg was ended.
        records: The `match` records that a page may need, and what is context around them, each with whether it is a
            match.
        end: The `end` record; empty if rg was ended before it.
    """

    path: bytes
    matches: int = 0
    records: list[tuple[bool, bytes]] = field(default_factory=list[tuple[bool, bytes]])
    end: bytes = b""


class Sifter:
    """Keeps the first matches in path order, whatever the order in which files come, and counts every one.

    Nothing is decoded but a file's path: kinds are told by the first bytes of a record. What is held is bounded by
    what is wanted: at most twice so many matches, with their context.

    With `max_count`, rg gives a match in the context behind the last as a match, too (rg-facts 18); here it is context.

    Attributes:
        matches: How many matches have come.
        files: How many files had one.
        ended: Whether rg's summary has come, so that the two numbers are all that there are.
    """

    def __init__(self, wanted: int, max_count: int | None = None, *, max_record: int = MAX_RECORD) -> None:
        self.matches = 0
        self.files = 0
        self.ended = False
        self._wanted = wanted
        self._max_count = max_count
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
                self._context(record)
            case "begin":
                self._begin(path_of(record))
            case "end":
                if self._block:
                    self._block.end = record
                self._keep()
            case "summary":
                self.ended = True
            case _:
                pass  # rg may have added a kind

    def _begin(self, path: bytes) -> None:
        self._keep()
        self._in_file = 0
        if self._wanted and (self._held < self._wanted or path_order(path) < path_order(self._kept[-1].path)):
            self._block = Block(path)

    def _match(self, record: bytes) -> None:
        if self._in_file == self._max_count:
            self._context(record)
            return
        self.matches += 1
        self.files += not self._in_file
        self._in_file += 1
        if self._block:
            self._block.matches += 1
            if self._block.matches <= self._wanted:
                self._block.records.append((True, record))

    def _context(self, record: bytes) -> None:
        if self._block and self._block.matches <= self._wanted:
            self._block.records.append((False, record))

    def _keep(self) -> None:
        """Put the current file among those that are kept, and let those go that it pushes out."""
        if self._block and self._block.matches:
            insort(self._kept, self._block, key=lambda block: path_order(block.path))
            self._held += self._block.matches
        self._block = None
        while self._kept and self._held - self._kept[-1].matches >= self._wanted:
            self._held -= self._kept.pop().matches


def path_order(path: bytes) -> bytes:
    """What paths are ordered by: their parts, one after another, as `rg --sort=path` does."""
    return path.replace(os.fsencode(os.sep), b"\0")
