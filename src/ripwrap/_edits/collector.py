"""Collect the matches that rg reports, each with its replacement, and count those that a plan leaves out."""

import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import NamedTuple

from ripwrap._edits.planning import MAX_BYTES, EditSize, FileChange, Found, Line
from ripwrap._ripgrep.decoder import CountDecoder, MessageDecoder, Record, too_long_errors
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.groups import Template
from ripwrap._ripgrep.page_collector import ListingCollector
from ripwrap._ripgrep.protocols import Runner, Step
from ripwrap._ripgrep.query import Query
from ripwrap._system.safe_open import open_regular_file
from ripwrap._text import is_within_character, raw_bytes
from ripwrap.models import End, Match, PathError

_READ_BYTES = 1 << 20


class UnsearchedMatches(NamedTuple):
    """Matches that a search does not report."""

    errors: tuple[PathError, ...] = ()
    hidden: int = 0


def why_binary(offset: int) -> str:
    """Return the reason to leave out a file with a NUL byte at this offset."""
    return f"it is binary (NUL at byte {offset}); text=True changes binary files, too"


async def find_left_out(
    run: Runner, query: Query, known: Collection[str], seconds: float | None, allowed: Callable[[str], bool] | None
) -> UnsearchedMatches:
    """Search once more, with binary and hidden files, and return what the first search did not report.

    rg stops at the first NUL of a file that it found in a directory, and if this NUL is near the beginning, it does not
    report the file.
    """
    if query.options.get("text") and query.options.get("hidden"):
        return UnsearchedMatches()
    options = query.without("replace").with_(hidden=True, binary=not query.options.get("text", False)).options
    counting = query.another("count-matches", query.patterns, options)
    found = await run.collect(Step(counting, lambda: ListingCollector(CountDecoder(), sys.maxsize), seconds))

    def sort_out() -> UnsearchedMatches:
        more = [one for one in found.every() if one.path not in known and (allowed is None or allowed(one.path))]
        hidden = [one for one in more if _is_hidden(one.path, query.paths)]
        visible = sorted({one.path for one in more} - {one.path for one in hidden})
        errors = [
            PathError(path=path, kind="other", message=f"left out: {why_binary(offset)}")
            for path in visible
            if (offset := _first_nul(query.cwd, path)) is not None
        ]
        if found.timed_out:
            text = f"binary and hidden files were not all searched in {seconds} seconds, so some are not named"
            errors.append(PathError(path=None, kind="other", message=text))
        return UnsearchedMatches(tuple(errors), sum(one.count for one in hidden))

    return await run.call(sort_out)


def _is_hidden(path: str, given: Sequence[str]) -> bool:
    """Return True if a file that rg found is hidden; the caller may have named a path through hidden directories."""
    file = PurePath(path)
    above = [PurePath(os.path.normpath(one)) for one in given] or [PurePath()]
    below = [file.relative_to(one).parts for one in above if file.is_relative_to(one)]
    return all(any(part.startswith(".") for part in parts) for parts in below)


def _first_nul(cwd: str, path: str) -> int | None:
    """Return the offset of the first NUL byte of a file; `None` if it has none, or cannot be read."""
    done = 0
    try:
        with open_regular_file(cwd, path, follow=True) as file:
            while chunk := file.read(_READ_BYTES):
                if (at := chunk.find(0)) >= 0:
                    return done + at
                done += len(chunk)
    except OSError:
        pass
    return None


@dataclass(slots=True)
class _File:
    """Matches of a file, and the reasons to leave the file out."""

    changes: list[FileChange] = field(default_factory=list[FileChange])
    lines: list[Line] = field(default_factory=list[Line])
    unlocated: int = 0
    binary: int | None = None
    end: bytes = b""

    def add(self, match: Match, constant: bytes | None, size: EditSize, terminator: bytes) -> None:
        """Add a change for each submatch of a match."""
        lines = match.raw_lines
        self.lines.append(Line.of(match.absolute_offset, match.line_number or 1, lines, terminator))
        is_open = not lines.endswith(terminator) and match.submatches and match.submatches[-1].end < len(lines)
        self.end = lines if is_open else b""
        if not match.submatches:
            self.unlocated = self.unlocated or match.line_number or 1
        for hit in match.submatches:
            # rg's regexes count bytes, so an empty match may be within a character.
            if hit.start == hit.end and is_within_character(lines, hit.start):
                continue
            start, end = match.absolute_offset + hit.start, match.absolute_offset + hit.end
            after = raw_bytes(hit.replacement or "") if constant is None else constant
            size.add(match.path, len(hit.raw_match) + len(after))
            self.changes.append(FileChange(start, end, hit.raw_match, after))


class EditCollector:
    """Collector of the matched texts, each with its position and its replacement."""

    def __init__(
        self,
        constant: bytes | None,
        timeout: float | None = None,
        max_bytes: int = MAX_BYTES,
        sizing: Template | None = None,
        terminator: bytes = b"\n",
    ) -> None:
        self.ended: bool = False
        self.lost: set[str] = set()
        self.last_replacement: str = ""
        self._constant = constant
        self._timeout = timeout
        self._size = EditSize(max_bytes)
        self._sizing = sizing
        self._terminator = terminator
        self._decoder = MessageDecoder(("match", "end"))
        self._files: dict[str, _File] = {}
        self._unread: tuple[PathError, ...] = ()

    @property
    def pending(self) -> int:
        """Number of bytes received of an incomplete last record; 0 if the last record is complete."""
        return self._decoder.pending

    def feed(self, chunk: bytes) -> None:
        """Process a chunk of rg's output."""
        self._take(self._decoder.feed(chunk))
        self.ended = self._decoder.summary is not None

    def end_run(self, end: Exit) -> None:
        """Process the end of the output of one run of rg; raise an error if rg failed."""
        if end.ended:
            self._take(self._decoder.close())
        end.check(summary=self._decoder.summary is not None)
        self._decoder.summary = None
        self.ended = False

    def finish(self, end: Exit, *, timed_out: bool) -> None:
        """Store the paths that rg could not read."""
        if timed_out:
            raise TimeoutError(
                f"rg was stopped after timeout={self._timeout} seconds, before it had searched everything; "
                "allow more time"
            )
        self._unread, self._query = tuple(end.path_errors()), end.query

    @property
    def errors(self) -> tuple[PathError, ...]:
        """Paths that rg could not read, and files that are left out."""
        left_out = (
            PathError(path=path, kind="other", message=f"left out: {reason}")
            for path in self._files
            if (reason := self._why_left_out(path))
        )
        too_long = too_long_errors(self._decoder.dropped, self._query)
        return (*self._unread, *sorted(left_out, key=lambda error: error.path or ""), *too_long)

    @property
    def files(self) -> Collection[str]:
        """Paths of the files with matches, also of those that are left out."""
        return {*self._files, *self._decoder.dropped}

    def last_starts(self) -> dict[str, int | None]:
        """Return the offset of the last match of each file; `None` if rg does not report it."""
        return {path: file.changes[-1].start if file.changes else None for path, file in self._files.items()}

    def ends(self) -> dict[str, bytes]:
        """Return the last lines of files without a final newline, in which rg may have dropped the last match."""
        return {one.path: end for one in self.found() if (end := self._files[one.path].end)}

    def found(self) -> Iterator[Found]:
        """Yield the changes of each file that is not left out."""
        dropped = self._decoder.dropped
        for path, file in self._files.items():
            if path not in dropped and not self._why_left_out(path):
                yield Found(path, file.changes, lines=file.lines)

    def _why_left_out(self, path: str) -> str:
        file = self._files[path]
        if path in self.lost:
            file.unlocated = file.lines[-1].number + file.lines[-1].size - 1
        if file.binary is not None:
            return why_binary(file.binary)
        if file.unlocated:
            return f"rg does not report the position of the match in line {file.unlocated}; change the file by hand"
        return ""

    def _take(self, messages: Iterable[Record]) -> None:
        for message in messages:
            path = message.path
            if isinstance(message, Match) and self._sizing is not None:
                for hit in message.submatches:
                    self._size.add(path, self._sizing.longest(len(hit.raw_match)))
            elif isinstance(message, Match):
                self._files.setdefault(path, _File()).add(message, self._constant, self._size, self._terminator)
                if message.submatches:
                    self.last_replacement = message.submatches[-1].replacement or ""
            elif isinstance(message, End) and path in self._files:
                self._files[path].binary = message.binary_offset
