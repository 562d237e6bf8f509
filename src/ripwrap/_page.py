"""The records that a sifter kept to the files of a page, each match with its context: pure."""

import os
import sys
from collections.abc import Generator, Iterable, Sequence
from typing import Any, TypeAlias

from pydantic import BaseModel

from ripwrap._rg.decoder import MessageDecoder
from ripwrap._rg.fair import FairSifter, shares
from ripwrap._rg.sifter import Block, Window, is_text
from ripwrap.models import Context, End
from ripwrap.options import SearchOptions, check_limit
from ripwrap.results import FileMatches, GrepMatch

Records: TypeAlias = Sequence[tuple[bool, bytes]]

_TURN = 200  # Matches that are decoded before others get their turn.
_MODELS: dict[str, type[BaseModel]] = {"match": GrepMatch, "context": Context, "end": End}


def window_of(offset: int | None, max_matches: int | None, max_files: int | None, options: SearchOptions) -> Window:
    """The window that a caller asks for.

    Raises:
        ValueError: A number is negative, or every line is asked for.
        TypeError: It is not a whole number.
    """
    if offset is None:
        raise TypeError("offset should be an int, not None")
    if options.get("passthru"):
        raise ValueError("passthru gives every line of every file; stream them with search_messages()")
    both = options.get("context", 0)
    return Window(
        offset=_number(offset, "offset"),
        max_matches=_number(max_matches, "max_matches"),
        max_files=_number(max_files, "max_files"),
        before=options.get("before_context", both),
        after=options.get("after_context", both),
        max_count=options.get("max_count"),
    )


def files_of(window: Window, blocks: Iterable[Block]) -> Generator[None, Any, tuple[FileMatches, ...]]:
    """The page, of blocks in path order; stops now and then to let others have their turn.

    Raises:
        DecodeError: A record is not what rg writes.
    """
    decoder = MessageDecoder(models=_MODELS)
    files: list[FileMatches] = []
    skip, left, decoded = window.offset, window.max_matches, 0
    for block in blocks:
        if skip >= block.matches:
            skip -= block.matches
        elif left and len(files) < window.max_files:
            taken = min(left, block.matches - skip)
            files.append((yield from _file(decoder, window, block, skip, taken)))
            skip, left, decoded = 0, left - taken, decoded + taken
            if decoded >= _TURN:
                decoded = 0
                yield
    return tuple(files)


def files_in_turn(window: Window, found: FairSifter) -> Generator[None, Any, tuple[FileMatches, ...]]:
    """The page, of matches that are taken in turn from every file, and the names of the files beyond it.

    Raises:
        DecodeError: A record is not what rg writes.
    """
    decoder = MessageDecoder(models=_MODELS)
    blocks = found.blocks()
    counts = [block.matches for block in blocks]
    skipped, upto = shares(counts, window.offset), shares(counts, window.upto)
    pages: dict[bytes, FileMatches] = {}
    for block, first, last in zip(blocks, skipped, upto, strict=True):
        if last > first:
            pages[block.path] = yield from _file(decoder, window, block, first, last - first)
            yield
    return tuple(
        pages.get(path) or FileMatches(path=os.fsdecode(path), matches=(), total_matches=count)
        for path, count in found.named()
    )


def _file(
    decoder: MessageDecoder, window: Window, block: Block, skip: int, taken: int
) -> Generator[None, Any, FileMatches]:
    places = [index for index, (is_match, _) in enumerate(block.records) if is_match][skip : skip + taken]
    # What stands around the page goes to its first and last match, be it matches of another page; what stands between
    # two goes to the first as far as its context reaches, and to the second if not.
    upto = [*places[1:], len(block.records)]
    head = block.records[max(places[0] - window.before, 0) : places[0]]
    matches: list[GrepMatch] = []
    for number, (place, end) in enumerate(zip(places, upto, strict=True), 1):
        tail = min(place + 1 + window.after, end)
        matches.append(_match(decoder, block.records[place], head, block.records[place + 1 : tail]))
        head = block.records[tail:end]
        if number % _TURN == 0:
            yield
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
    """Context, and as such also matches that are not on the page or beyond `max_count`."""
    return tuple(line if isinstance(line, Context) else _as_context(line) for line in _decoded(decoder, records))


def _as_context(match: GrepMatch) -> Context:
    kept = {name: getattr(match, name) for name in ("path", "lines", "line_number", "absolute_offset")}
    return Context(**kept, submatches=())


def _decoded(decoder: MessageDecoder, records: Records) -> list[Any]:
    return list(decoder.decode(record for _, record in records))


def _number(value: int | None, name: str) -> int:
    checked = check_limit(value, name)
    return sys.maxsize if checked is None else checked
