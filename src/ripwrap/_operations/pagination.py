"""Decode the part of rg's output that belongs to a page of matches, and return its files, with matches and context."""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias

from pydantic import BaseModel

from ripwrap._ripgrep.decoder import LARGE_RECORD, MessageDecoder
from ripwrap._ripgrep.page_collector import Block, PageRequest, is_text
from ripwrap._ripgrep.protocols import Runner
from ripwrap._ripgrep.round_robin import RoundRobinCollector, shares
from ripwrap.models import Context, End
from ripwrap.options import SearchOptions, check_limit
from ripwrap.results import FileMatches, GrepMatch

Records: TypeAlias = Sequence[tuple[bool, bytes]]

_CHECKPOINT_INTERVAL = 200
"""Number of matches that are decoded before other tasks may run."""

_SHOWN_SUBMATCHES = 20_000
"""Maximum number of submatches of a large match in the answer of a tool. Its text has fewer characters by default."""

_MODELS: dict[str, type[BaseModel]] = {"match": GrepMatch, "context": Context, "end": End}


def make_page_request(
    offset: int | None, limit: int | None, max_files: int | None, options: SearchOptions
) -> PageRequest:
    """Check the arguments that choose a page of matches, and return the request of the page."""
    if offset is None:
        raise TypeError("offset must be an int, got None")
    if options.get("passthru"):
        raise ValueError(
            "passthru returns every line of every file; stream them with search_messages(), or leave passthru out"
        )
    both = options.get("context", 0)
    return PageRequest(
        offset=_number(offset, "offset"),
        max_matches=_number(limit, "limit"),
        max_files=_number(max_files, "max_files"),
        before=options.get("before_context", both),
        after=options.get("after_context", both),
        max_count=options.get("max_count"),
    )


async def files_in_path_order(run: Runner, page: PageRequest, blocks: Iterable[Block]) -> tuple[FileMatches, ...]:
    """Decode the matches of a page, and return its files in path order; other tasks may run in between."""
    decoder = MessageDecoder(models=_MODELS)
    files: list[FileMatches] = []
    decoded = 0
    for block, skip, taken in on_page(page, blocks):
        files.append(await _file(run, decoder, page, block, skip, taken))
        decoded += taken
        if decoded >= _CHECKPOINT_INTERVAL:
            decoded = 0
            await run.checkpoint()
    return tuple(files)


def on_page(page: PageRequest, blocks: Iterable[Block]) -> Iterator[tuple[Block, int, int]]:
    """Yield the blocks of the files on a page, given the blocks of all files in path order.

    A block holds rg's records of one file. Each block is yielded with the number of its matches before the page, and
    the number of its matches on the page.
    """
    skip, left, files = page.offset, page.max_matches, 0
    for block in blocks:
        if skip >= block.matches:
            skip -= block.matches
        elif left and files < page.max_files:
            taken = min(left, block.matches - skip)
            yield block, skip, taken
            skip, left, files = 0, left - taken, files + 1


async def files_round_robin(run: Runner, page: PageRequest, found: RoundRobinCollector) -> tuple[FileMatches, ...]:
    """Decode a page that takes one match of each file, then a second match of each file, and so on; return its files.

    The result also has files without a match on the page; their `matches` are empty. A match of more than a MiB has
    its first submatches only, because a tool never shows so much text.
    """
    decoder = MessageDecoder(models=_MODELS, max_submatches=_SHOWN_SUBMATCHES)
    blocks = found.blocks()
    counts = [block.matches for block in blocks]
    skipped, ends = shares(counts, page.offset), shares(counts, page.end)
    pages: dict[int, FileMatches] = {}
    for block, first, last in zip(blocks, skipped, ends, strict=True):
        if last > first:
            pages[block.number] = await _file(run, decoder, page, block, first, last - first)
            await run.checkpoint()
    return tuple(
        pages.get(number) or FileMatches(path=os.fsdecode(path), matches=(), total_matches=count)
        for path, count, number in found.named()
    )


async def _file(
    run: Runner, decoder: MessageDecoder, page: PageRequest, block: Block, skip: int, taken: int
) -> FileMatches:
    positions = [index for index, (is_match, _) in enumerate(block.records) if is_match][skip : skip + taken]
    # Each context line belongs to one match. Of the lines between two matches, the first match gets at most
    # `page.after` lines, and the second match gets the rest. A match of another page becomes context.
    ends = [*positions[1:], len(block.records)]
    head = block.records[max(positions[0] - page.before, 0) : positions[0]]
    matches: list[GrepMatch] = []
    for number, (position, end) in enumerate(zip(positions, ends, strict=True), 1):
        tail = min(position + 1 + page.after, end)
        lines = block.records[position], head, block.records[position + 1 : tail]
        if sum(len(record) for _, record in (lines[0], *head, *lines[2])) > LARGE_RECORD:
            matches.append(await run.call(partial(_match, decoder, *lines)))
        else:
            matches.append(_match(decoder, *lines))
        head = block.records[tail:end]
        if number % _CHECKPOINT_INTERVAL == 0:
            await run.checkpoint()
    return FileMatches(
        path=os.fsdecode(block.path),
        matches=tuple(matches),
        total_matches=block.matches,
        binary_offset=None if is_text(block.end) else _decoded(decoder, [(False, block.end)])[0].binary_offset,
    )


def _match(decoder: MessageDecoder, record: tuple[bool, bytes], before: Records, after: Records) -> GrepMatch:
    match: GrepMatch = _decoded(decoder, [record])[0]
    if before or after:
        return match.model_copy(update={"before": _contexts(decoder, before), "after": _contexts(decoder, after)})
    return match


def _contexts(decoder: MessageDecoder, records: Records) -> tuple[Context, ...]:
    """Decode context lines. A match that is not on the page, or is beyond `max_count`, becomes context."""
    return tuple(line if isinstance(line, Context) else _as_context(line) for line in _decoded(decoder, records))


def _as_context(match: GrepMatch) -> Context:
    kept = {name: getattr(match, name) for name in ("path", "lines", "line_number", "absolute_offset")}
    return FurtherMatch(**kept, submatches=())


class FurtherMatch(Context, frozen=True):
    """Match that is not on the page, but in the context of one that is. It equals the `Context` with its values."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Context) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((self.path, self.absolute_offset))

    def __repr_name__(self) -> str:
        return Context.__name__


def _decoded(decoder: MessageDecoder, records: Records) -> list[Any]:
    plain = [record for _, record in records]
    return list(decoder.decode_large(plain) if sum(map(len, plain)) > LARGE_RECORD else decoder.decode(plain))


def _number(value: int | None, name: str) -> int:
    checked = check_limit(value, name)
    return sys.maxsize if checked is None else checked
