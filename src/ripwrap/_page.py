"""The records that a sifter kept to the files of a page, each match with its context: pure."""

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ripwrap._rg.decoder import MessageDecoder
from ripwrap._rg.sifter import Block
from ripwrap.models import Context, End
from ripwrap.options import SearchOptions, check_limit
from ripwrap.results import FileMatches, GrepMatch

Contexts = Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Page:
    """Which matches, in path order, are wanted, and with how much context.

    Attributes:
        offset: How many are left out at the start.
        max_matches: How many are wanted at most.
        max_files: From how many files at most.
        before: Lines of context that a match can have before it.
        after: And after it.
    """

    offset: int
    max_matches: int
    max_files: int
    before: int
    after: int

    @classmethod
    def of(cls, offset: int, max_matches: int | None, max_files: int | None, options: SearchOptions) -> "Page":
        """The page that a caller asks for.

        Raises:
            ValueError: A number is negative.
            TypeError: It is not a whole number.
        """
        if offset is None:
            raise TypeError("offset should be an int, not None")
        both = options.get("context", 0)
        everything = options.get("passthru", False)
        return cls(
            _number(offset, "offset"),
            _number(max_matches, "max_matches"),
            _number(max_files, "max_files"),
            sys.maxsize if everything else options.get("before_context", both),
            sys.maxsize if everything else options.get("after_context", both),
        )

    @property
    def wanted(self) -> int:
        """How many matches have to be kept for it."""
        return self.offset + self.max_matches

    def files(self, blocks: Sequence[Block]) -> Iterator[FileMatches]:
        """The page, of blocks in path order.

        Raises:
            DecodeError: A record is not what rg writes.
        """
        skip, left, files = self.offset, self.max_matches, self.max_files
        for block in blocks:
            if skip >= block.matches:
                skip -= block.matches
            elif left and files:
                taken = min(left, block.matches - skip)
                yield self._file(block, skip, taken)
                skip, left, files = 0, left - taken, files - 1

    def _file(self, block: Block, skip: int, taken: int) -> FileMatches:
        found, between = _apart(block)
        # What stands between two matches goes to the first as far as its context reaches, and the rest to the second;
        # the first match of a page also has what would be the last one's of the page before.
        heads = [between[skip][max(len(between[skip]) - self.before, 0) :]]
        heads += (lines[self.after :] for lines in between[skip + 1 : skip + taken])
        tails = [lines[: self.after] for lines in between[skip + 1 : skip + taken + 1]]
        matches = tuple(map(_match, found[skip : skip + taken], heads, tails))
        return FileMatches(
            path=os.fsdecode(block.path),
            matches=matches,
            total_matches=block.matches,
            binary_offset=_binary_offset(block.end),
        )


def _number(value: int | None, name: str) -> int:
    checked = check_limit(value, name)
    return sys.maxsize if checked is None else checked


def _apart(block: Block) -> tuple[list[bytes], list[Contexts]]:
    """The matches of a block, and the context before the first of them, between each two, and after the last."""
    matches: list[bytes] = []
    between: list[list[bytes]] = [[]]
    for is_match, record in block.records:
        if is_match:
            matches.append(record)
            between.append([])
        else:
            between[-1].append(record)
    return matches, list(between)


def _match(record: bytes, before: Contexts, after: Contexts) -> GrepMatch:
    (match,) = MessageDecoder(("match",)).decode([record])
    return GrepMatch.model_construct(**match.__dict__, before=_contexts(before), after=_contexts(after))


def _contexts(records: Contexts) -> tuple[Context, ...]:
    lines = MessageDecoder(("match", "context")).decode(records)
    return tuple(line if isinstance(line, Context) else _as_context(line) for line in lines)


def _as_context(match: Any) -> Context:
    """A match beyond `max_count`."""
    return Context.model_construct(**{**match.__dict__, "type": "context", "submatches": ()})


def _binary_offset(end: bytes) -> int | None:
    """Decoded only where there is one."""
    if b'"binary_offset":null' in end:
        return None
    return next((message.binary_offset for message in MessageDecoder().decode([end]) if isinstance(message, End)), None)
