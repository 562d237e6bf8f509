"""Read the lines of text files: in the encoding that rg uses, in bounded memory, and until a deadline."""

import io
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from typing import BinaryIO, cast

from ripwrap._system.concurrency import CANCELLED
from ripwrap._system.safe_open import open_regular_file
from ripwrap._text import byte_order_mark, in_seconds, is_binary, shown_path
from ripwrap.workspace.redact import Redactor, key_lines
from ripwrap.workspace.sandbox import RootLocation
from ripwrap.workspace.scope import Settings

_BINARY_CHECK_BYTES = 8_192

_PIECE_CHARS = 65_536
"""Number of characters to read at a time while lines are skipped."""

_PIECE_BYTES = 262_144
"""Number of bytes to read at a time while lines are counted."""


@contextmanager
def open_text(
    settings: Settings, location: RootLocation, tool: str
) -> Generator[tuple[io.TextIOWrapper, str, Redactor | None]]:
    """Open a text file as rg reads it; yield it, its encoding, and what masks secrets (`None` if they are shown)."""
    revision, path = location.revision, location.paths[0]
    opened = (
        open_regular_file(location.cwd, path, follow=False)
        if revision is None
        else revision.open(path, settings.timeout)
    )
    with opened as file:
        redactor = partial(settings.redact, keys=key_lines(cast("BinaryIO", file))) if settings.redact else None
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        start = file.peek(_BINARY_CHECK_BYTES)[:_BINARY_CHECK_BYTES]
        if is_binary(start):
            raise ValueError(f"{shown_path(location.name)} is binary ({size:,} bytes); {tool} shows text only")
        mark, encoding = byte_order_mark(start)
        file.read(len(mark))
        with io.TextIOWrapper(file, encoding, errors="replace", newline="\n") as text:
            yield text, encoding, redactor


def skip_lines(text: io.TextIOWrapper, count: int, deadline: "Deadline") -> int:
    """Skip lines of a file, and return how many were skipped: fewer than `count` at the end of the file."""
    start = text.tell() if count > 0 and text.encoding == "utf-8" else -1
    if not 0 <= start < 1 << 63:  # a larger number would also have a state of the decoder
        skipped = 0
        while skipped < count and skip_line(text, deadline):
            skipped += 1
        return skipped
    file = cast("BinaryIO", text.buffer)
    file.seek(start)
    skipped, length = _skip_bytes(file, count, deadline)
    text.seek(start + length)
    return skipped


def _skip_bytes(file: BinaryIO, count: int, deadline: "Deadline") -> tuple[int, int]:
    """Read up to the end of a number of lines, without decoding them; return the numbers of lines and of bytes."""
    skipped = length = 0
    last = b"\n"
    while chunk := file.read(_PIECE_BYTES):
        deadline.check()
        found = chunk.count(b"\n")
        if skipped + found >= count:
            end = -1
            for _ in range(count - skipped):
                end = chunk.index(b"\n", end + 1)
            return count, length + end + 1
        skipped, length, last = skipped + found, length + len(chunk), chunk[-1:]
    return skipped + (last != b"\n"), length


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
        """Start the time limit; at its end, an error has the message and what to do instead."""
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
