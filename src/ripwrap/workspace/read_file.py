"""Tool `read_file`: return numbered lines of a text file, as many as fit into `max_chars`."""

import io
import os
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from ripwrap._concurrency import CANCELLED
from ripwrap._ripgrep.protocols import Runner
from ripwrap._safe_open import open_regular_file
from ripwrap._text import as_utf8, byte_order_mark, in_seconds, is_binary, plural, shown
from ripwrap.workspace.anchors import HASHED_CHARS, line_hash
from ripwrap.workspace.arguments import LineRange, ReadFileArguments
from ripwrap.workspace.budget import shortened, snippet
from ripwrap.workspace.redact import MAX_SECRET_CHARS, Redactor, key_lines
from ripwrap.workspace.results import LineBlock, ReadFileResult
from ripwrap.workspace.sandbox import Location
from ripwrap.workspace.scope import Settings

_BINARY_CHECK_BYTES = 8_192
_COUNT_SECONDS = 1.0
"""Time limit in seconds for counting the lines after the last shown line."""
_PIECE_CHARS = 65_536
"""Number of characters to read at a time while lines are skipped or counted."""


class _Line(NamedTuple):
    number: int
    text: str
    hash: str


@dataclass(frozen=True, slots=True)
class _Lines:
    """Lines that were read from a file.

    Attributes:
        lines: First lines of the ranges, about as many as fit into an answer; long lines are cut.
        total: Number of all lines; `None` if counting them took too long.
        encoding: Encoding of the file.
    """

    lines: list[_Line]
    total: int | None
    encoding: str


async def run_read_file(run: Runner, settings: Settings, arguments: ReadFileArguments) -> ReadFileResult:
    """Return the lines of a file in one or more ranges.

    Raises:
        IsADirectoryError: The path is a directory.
        ValueError: The file is binary, or has no line in the ranges.
    """
    ranges = arguments.line_ranges()
    location = await run.call(partial(settings.sandbox.locate_file, arguments.path, "ls lists its files"))
    found = await run.call(partial(_read, settings, location, ranges))
    if not found.lines and found.total:
        first = min(one.start for one in ranges)
        has = f"{shown(location.name)} has {plural(found.total, 'line')}"
        raise ValueError(f"{has}, so there is no line {first} (the file may have changed); pass a smaller line number")
    answer = partial(_answer, location, ranges, found)
    return await run.call(partial(shortened, answer, len(found.lines), settings.max_chars))


def _answer(location: Location, ranges: Sequence[LineRange], found: _Lines, count: int) -> ReadFileResult:
    """Return the answer with the first `count` of the lines that were read."""
    lines = found.lines[:count]
    last, total = lines[-1].number if lines else 0, found.total
    rest = [LineRange(max(one.start, last + 1), one.end) for one in ranges if one.end is None or one.end > last]
    missing = [one for one in rest if total is None or one.start <= total]
    return ReadFileResult(
        root=as_utf8(location.cwd),
        path=location.name,
        blocks=tuple(_blocks(lines)),
        total_lines=total,
        encoding=found.encoding,
        truncated=bool(missing),
        next_offset=missing[0].start if missing else None,
        message=_message(lines, missing, total),
    )


def _message(lines: Sequence[_Line], missing: Sequence[LineRange], total: int | None) -> str:
    if total == 0:
        return "The file is empty."
    if total is not None and len(lines) == total:
        return f"All {total} lines." if total > 1 else "The only line."
    spans = [LineRange(block.start_line, block.start_line + len(block.lines) - 1) for block in _blocks(lines)]
    shown_lines = ", ".join(f"{first}" if first == last else f"{first} to {last}" for first, last in spans)
    noun = "Line" if len(lines) == 1 else "Lines"
    said = f"{noun} {shown_lines} of {'many' if total is None else total}." if lines else "No line fits."
    if not missing:
        return said
    if len(missing) > 1:
        return f'{said} ranges="{",".join(map(str, missing))}" gives the rest.'
    (rest,) = missing
    end = total if rest.end is None else rest.end if total is None else min(rest.end, total)
    much = "More lines follow" if end is None else f"{plural(end - rest.start + 1, 'more line')}"
    upto = "" if rest.end is None else f" and end_line={rest.end}"
    return f"{said} {much}: start_line={rest.start}{upto} gives them."


def _blocks(lines: Sequence[_Line]) -> Iterator[LineBlock]:
    """Yield blocks of consecutive lines."""
    start = 0
    for at in range(1, len(lines) + 1):
        if at == len(lines) or lines[at].number != lines[at - 1].number + 1:
            hashes = (line.hash for line in lines[start:at])
            yield LineBlock(
                start_line=lines[start].number,
                lines=tuple(line.text for line in lines[start:at]),
                anchors=tuple(filter(None, hashes)),
            )
            start = at


def _read(settings: Settings, location: Location, ranges: Sequence[LineRange]) -> _Lines:
    """Read lines of a file, in bounded memory for files and lines of any size."""
    deadline = Deadline(settings.timeout, "the first line to read was not reached")
    with open_text(settings, location, "read_file") as (text, encoding, redactor):
        lines, total = _read_text(text, settings, redactor, ranges, deadline)
    return _Lines(lines, total, encoding)


@contextmanager
def open_text(
    settings: Settings, location: Location, tool: str
) -> Generator[tuple[io.TextIOWrapper, str, Redactor | None]]:
    """Open a text file in the encoding that rg uses for it.

    Yield the file, the name of its encoding, and a function that masks secrets (`None` if secrets are shown).

    Raises:
        FileNotFoundError: The file does not exist any more, or is not a regular file.
        OSError: The file cannot be read.
        ValueError: The file is binary.
    """
    with open(open_regular_file(location.cwd, location.paths[0], follow=False), "rb") as file:
        redactor = partial(settings.redact, keys=key_lines(file)) if settings.redact else None
        file.seek(0)
        start = file.peek(_BINARY_CHECK_BYTES)[:_BINARY_CHECK_BYTES]
        if is_binary(start):
            size = os.fstat(file.fileno()).st_size
            raise ValueError(f"{shown(location.name)} is binary ({size:,} bytes); {tool} shows text only")
        mark, encoding = byte_order_mark(start)
        file.read(len(mark))
        with io.TextIOWrapper(file, encoding, errors="replace", newline="\n") as text:
            yield text, encoding, redactor


def _read_text(
    text: io.TextIOWrapper,
    settings: Settings,
    redactor: Redactor | None,
    ranges: Sequence[LineRange],
    deadline: "Deadline",
) -> tuple[list[_Line], int | None]:
    """Return the lines in the ranges, and the number of all lines of the file (`None` if counting takes too long)."""
    lines: list[_Line] = []
    number, room = 0, settings.max_chars
    most = max(settings.max_line, HASHED_CHARS if settings.anchors else 0) + 1 + (MAX_SECRET_CHARS if redactor else 0)
    try:
        for one in ranges:
            while number + 1 < one.start:
                if not skip_line(text, deadline):
                    return lines, number
                number += 1
            while room > 0 and (one.end is None or number < one.end):
                piece = text.readline(most)
                if not piece:
                    return lines, number
                number += 1
                shown = redactor(piece, number).text if redactor else piece
                digits = line_hash(shown) if settings.anchors else ""
                lines.append(_Line(number, snippet(shown, 1, settings.max_line), digits))
                room -= len(lines[-1].text) + 1
                if not piece.endswith("\n"):
                    skip_line(text, deadline)
        deadline.shorten(_COUNT_SECONDS)
        last = "\n"
        while piece := text.read(_PIECE_CHARS):
            deadline.check()
            number += piece.count("\n")
            last = piece[-1]
    except TimeoutError:
        if CANCELLED.get().is_set() or not lines:
            raise
        return lines, None
    return lines, number + (last != "\n")


def skip_line(text: io.TextIOWrapper, deadline: "Deadline") -> bool:
    """Read the rest of a line; return False at the end of the file."""
    piece = text.readline(_PIECE_CHARS)
    found = bool(piece)
    while piece and not piece.endswith("\n"):
        piece = text.readline(_PIECE_CHARS)
        deadline.check()
    deadline.check_sometimes()
    return found


class Deadline:
    """Time limit for reading a file, or for masking secrets."""

    def __init__(self, timeout: float | None, message: str, instead: str = "search the file with grep_content") -> None:
        """Start the time limit.

        Args:
            timeout: Time limit in seconds; `None` is no limit.
            message: Beginning of the error message if the time limit is reached.
            instead: End of the error message: what to do instead.
        """
        self._timeout = timeout
        self._message = message
        self._instead = instead
        self._end = None if timeout is None else time.monotonic() + timeout
        self._calls = 0

    def check(self) -> None:
        """Raise `TimeoutError` if the time limit is reached or the call is cancelled."""
        CANCELLED.get().check()
        # On Windows the clock advances in steps of up to 16 ms, so a timeout of 0 needs `>=`.
        if self._end is not None and time.monotonic() >= self._end:
            seconds = in_seconds(self._timeout or 0)
            raise TimeoutError(f"{self._message} within {seconds}; {self._instead}")

    def shorten(self, seconds: float) -> None:
        """Set the deadline to a number of seconds from now; do nothing if the deadline is already earlier."""
        end = time.monotonic() + seconds
        self._end = end if self._end is None else min(self._end, end)

    def check_sometimes(self) -> None:
        """Call `check()` once in a thousand calls of this method."""
        self._calls += 1
        if self._calls % 1_000 == 0:
            self.check()
