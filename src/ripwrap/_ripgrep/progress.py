"""Report the progress of a search while rg runs: `Progress`, and the meter that counts rg's output; no I/O."""

import math
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.protocols import Answer

T = TypeVar("T")

INTERVAL = 0.1
"""Minimum number of seconds between two calls of the caller's `on_progress`, except for the last call."""

_LINE_BYTES = 64 * 1024
"""Maximum number of bytes to keep of an unfinished line.

Only JSON lines with text of a file are longer, and their first bytes are enough to count matches.
"""

# rg's summary also has the key `bytes_searched`, but another key follows it there, so the summary does not match.
_SEARCHED = re.compile(rb'"bytes_searched":([0-9]+),"bytes_printed"')


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a call. The `on_progress` function of the caller gets it.

    Attributes:
        files: Number of files so far: files with a match, or listed files of `files()`.
        matches: Number of matching lines so far; 0 for `files()`.
        bytes_searched: Size in bytes of the files that have a match and were searched to their end; 0 for `files()` and
            `rank()`. If there are very many matches, `grep()` counts only some of these files.
        elapsed: Seconds since the call began.
    """

    files: int
    matches: int
    bytes_searched: int
    elapsed: float


OnProgress: TypeAlias = Callable[[Progress], object]
Counts: TypeAlias = tuple[int, int, int]
"""Numbers of files, matches and searched bytes."""


def count_json(lines: bytes) -> Counts:
    """Count the files, matches and searched bytes in complete lines of rg's JSON, without parsing the lines.

    It looks for keys with their quotes, such as `{"type":"match"`. A text cannot contain these bytes, because JSON
    escapes quotes in texts.
    """
    searched = sum(map(int, _SEARCHED.findall(lines)))
    return lines.count(b'{"type":"begin"'), lines.count(b'{"type":"match"'), searched


def count_paths(paths: bytes) -> Counts:
    """Count the files in a list of paths, each of which ends in a NUL."""
    return paths.count(b"\0"), 0, 0


def count_words(words: bytes) -> Counts:
    """Count the files and matches in the output of `words_query()`.

    For each file, the output has the path, a NUL, and one line for each match. An empty line separates two files. The
    returned number of matches includes the empty lines; `Meter` subtracts them.
    """
    return words.count(b"\0"), words.count(b"\n"), 0


class Meter:
    """Counter of the files and matches in rg's output, which it reports to the caller's `on_progress` function."""

    def __init__(
        self,
        report: OnProgress,
        count: Callable[[bytes], Counts],
        limit: int | None = None,
        collected: Callable[[Any], tuple[int, int]] | None = None,
    ) -> None:
        self._report = report
        self._count = count
        self._limit = math.inf if limit is None else limit
        self._collected = collected
        self._ended = False
        self._line = b""
        self._now: tuple[int, ...] = (0, 0, 0)
        self._most: tuple[int, ...] = (0, 0, 0)
        self._begun = time.monotonic()
        self._reported = self._begun

    def begin_run(self) -> None:
        """Prepare for another run of rg in the same call; until it has counted more, the old counts are reported."""
        self._line = b""
        self._most = tuple(map(max, self._most, self._now))
        self._now = (0, 0, 0)

    def feed(self, chunk: bytes, collector: object = None) -> None:
        """Count a chunk of rg's output, and report progress if the last report is at least `INTERVAL` seconds old."""
        if self._ended:
            return
        files, matches, searched = self._count(self._lines(chunk) if self._count is count_json else chunk)
        self._now = (self._now[0] + files, self._now[1] + matches, self._now[2] + searched)
        if self._collected is not None:
            self._now = (*self._collected(collector), self._now[2])
        if time.monotonic() - self._reported >= INTERVAL:
            self._call()

    def end(self, files: int = 0, matches: int = 0) -> None:
        """Report the final progress; later output is not counted."""
        self._ended = True
        self._now = (max(self._now[0], files), max(self._now[1], matches), self._now[2])
        self._call()

    def _call(self) -> None:
        self._reported = time.monotonic()
        files, matches, searched = self._most = tuple(map(max, self._most, self._now))
        if self._count is count_paths:
            files = int(min(files, self._limit))
        elif self._count is count_words:
            matches -= max(0, files - 1)
        matches = int(min(matches, self._limit))
        self._report(Progress(files, matches, searched, self._reported - self._begun))

    def _lines(self, chunk: bytes) -> bytes:
        """Return the lines that a chunk completes; the middle of a very long line is left out."""
        end = chunk.rfind(b"\n") + 1
        if not end:
            self._line += chunk[: _LINE_BYTES - len(self._line)]
            return b""
        first = chunk.find(b"\n")
        kept = chunk[:first] if len(self._line) + first <= _LINE_BYTES else b""
        lines = b"".join((self._line, kept, chunk[first:end]))
        self._line = chunk[end : end + _LINE_BYTES]
        return lines


class MeteredAnswer(Generic[T]):
    """Wrapper of an `Answer` (a converter of rg's output to items). It reports the progress before it yields items."""

    def __init__(self, answer: Answer[T], meter: Meter) -> None:
        self._answer = answer
        self._meter = meter

    @property
    def pending(self) -> int:
        """Number of bytes received of an incomplete last record; 0 if the last record is complete."""
        return self._answer.pending

    @property
    def full(self) -> bool:
        """True if the limit of items is reached."""
        return self._answer.full

    @property
    def ended(self) -> bool:
        """True if the last message of rg was read."""
        return self._answer.ended

    def feed(self, chunk: bytes) -> Iterator[T]:
        """Report the progress, then yield the items that `chunk` completes."""
        self._meter.feed(chunk)  # here, because a worker thread may run the generator
        return self._with_end(self._answer.feed(chunk))

    def end_run(self, end: Exit) -> Iterator[T]:
        """Yield the items that are complete only at the end of a run."""
        return self._answer.end_run(end)

    def finish(self, end: Exit) -> Iterator[T]:
        """Yield the items that are complete only at the end of the last run, then report the final progress."""
        yield from self._answer.finish(end)
        self._meter.end()

    def _with_end(self, items: Iterator[T]) -> Iterator[T]:
        yield from items
        if self.full:
            self._meter.end()
