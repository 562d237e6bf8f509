"""Collect the matches that rg reports, each with its replacement; no I/O."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from ripwrap._edits.left_out import why_binary
from ripwrap._edits.planning import MAX_BYTES, EditSize, FileChange, Found, Line
from ripwrap._ripgrep.decoder import MessageDecoder, Record, too_long_errors
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.replacement import Template
from ripwrap._text import is_within_character, raw_bytes
from ripwrap.models import End, Match, PathError


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

    def why_left_out(self) -> str:
        """Return the reason not to change the file; empty if the file can be changed."""
        if self.binary is not None:
            return why_binary(self.binary)
        if self.unlocated:
            return f"rg does not report the position of the match in line {self.unlocated}; change the file by hand"
        return ""


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
        """Set the replacement."""
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
        return file.why_left_out()

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
