"""What users hold: rg's JSON messages with their two envelopes removed, as frozen Pydantic models.

`{"type": …, "data": {…}}` becomes one flat model and each `{"text": …}` one `str`; names stay rg's own
(`man rg`, "JSON"; https://docs.rs/grep-printer → JSON). Offsets are bytes unless a name says otherwise.
"""

import errno
from codecs import getincrementaldecoder
from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

from pydantic import AliasChoices, AliasPath, BaseModel, Field

from ripwrap._text import FsPath, Text, raw_bytes, shown, text_of

Span: TypeAlias = tuple[int, int]


class Range(NamedTuple):
    """Where a hit stands in its file: lines from 1, as rg counts them, columns from 0, as offsets into their lines.

    The end is the place after the last character. (The Language Server Protocol counts lines from 0.)
    """

    start_line: int
    start_column: int
    end_line: int
    end_column: int


def _unwrapped(name: str, **extra: Any) -> Any:
    """A field that rg writes as `{name: {"text": …}}` and that we write as `{name: …}`: both are read."""
    return Field(validation_alias=AliasChoices(AliasPath(name, "text"), name), **extra)


class _Model(BaseModel, frozen=True):
    """Frozen; fields that a later rg adds are ignored."""


class Submatch(_Model, frozen=True):
    """One hit inside a line.

    Attributes:
        match: The text that matched.
        start: Offset of its first byte in the line's bytes.
        end: Offset of the byte after its last.
        replacement: What `replace` makes of it, if asked for (rg 15 or later).
    """

    match: Text = _unwrapped("match")
    start: int
    end: int
    replacement: Text | None = _unwrapped("replacement", default=None)

    @property
    def raw_match(self) -> bytes:
        """The bytes that matched, as they stand in the file (or in its UTF-8 transcoding: rg-facts 15)."""
        return raw_bytes(self.match)


class _Lines(_Model, frozen=True):
    """What `Match` and `Context` share.

    Attributes:
        path: The file, relative to `cwd` unless an absolute path was asked for; `None` where rg names none.
        lines: The line with its terminator, or several under `multiline`; U+FFFD where it was not UTF-8.
        line_number: Number of the first line, from 1; `None` where rg counts none.
        absolute_offset: Offset of `lines` in bytes from the start of the (decoded) file.
        submatches: The hits, left to right; empty for an inverted match.
    """

    path: FsPath | None = _unwrapped("path")
    lines: Text = _unwrapped("lines")
    line_number: int | None
    absolute_offset: int
    submatches: tuple[Submatch, ...]

    @property
    def raw_lines(self) -> bytes:
        """The exact bytes of `lines`, which the submatches' `start` and `end` index."""
        return raw_bytes(self.lines)

    @property
    def line_terminator(self) -> str:
        r"""How `lines` ends, by `"\n"`, `"\r\n"`, with `null_data` `"\0"`, or by nothing where a file ends without."""
        return next((end for end in ("\r\n", "\n", "\0") if self.lines.endswith(end)), "")

    @property
    def text(self) -> str:
        """`lines` without the line terminator at its end."""
        return text_of(self.raw_lines.removesuffix(self.line_terminator.encode()))

    def spans(self) -> tuple[Span, ...]:
        """Where the submatches stand in `lines`, in characters: `lines[start:end]` is the hit."""
        if self.lines.isascii():
            return tuple((hit.start, hit.end) for hit in self.submatches)
        return self._spans(len)

    def utf16_spans(self) -> tuple[Span, ...]:
        """Where the submatches stand in `lines`, in UTF-16 code units, as the Language Server Protocol counts."""
        return self.spans() if self.lines.isascii() else self._spans(_utf16_length)

    def ranges(self) -> tuple[Range, ...]:
        """Where the submatches stand in the file, over several lines if need be; columns count characters.

        Raises:
            ValueError: There are no line numbers, because of `no_line_number`.
        """
        return self._ranges(len)

    def utf16_ranges(self) -> tuple[Range, ...]:
        """As `ranges()`, with columns in UTF-16 code units."""
        return self._ranges(_utf16_length)

    def _spans(self, length: Callable[[str], int]) -> tuple[Span, ...]:
        places = self._places(length)
        return tuple((places[hit.start][0], places[hit.end][0]) for hit in self.submatches)

    def _ranges(self, length: Callable[[str], int]) -> tuple[Range, ...]:
        if self.line_number is None:
            raise ValueError("a range needs line numbers; search without no_line_number")
        places = self._places(length)
        return tuple(
            Range(self.line_number + start[1], start[2], self.line_number + end[1], end[2])
            for start, end in ((places[hit.start], places[hit.end]) for hit in self.submatches)
        )

    def _places(self, length: Callable[[str], int]) -> dict[int, tuple[int, int, int]]:
        """For each offset of a submatch the units, the ended lines, and the units since the last of them before it."""
        # One pass: a minified line may have a hundred thousand submatches.
        decoder = getincrementaldecoder("utf-8")("replace")
        end = "\0" if self.line_terminator == "\0" else "\n"
        raw = self.raw_lines
        places: dict[int, tuple[int, int, int]] = {}
        done = units = newlines = column = 0
        for offset in sorted({offset for hit in self.submatches for offset in (hit.start, hit.end)}):
            piece = decoder.decode(raw[done:offset])
            before, newline, last = piece.rpartition(end)
            units += length(piece)
            newlines += before.count(end) + len(newline)
            column = length(last) + (0 if newline else column)
            cut = bool(decoder.getstate()[0])  # inside of a character, which is then shown as one
            places[offset] = (units + cut, newlines, column + cut)
            done = offset
        return places


def _utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


class Elapsed(_Model, frozen=True):
    """A duration: `secs` seconds and `nanos` nanoseconds; `human` is rg's own rendering."""

    secs: int
    nanos: int
    human: str

    def total_seconds(self) -> float:
        """The duration in seconds."""
        return self.secs + self.nanos / 1e9


class Stats(_Model, frozen=True):
    """What rg counted; `searches` counts only files with matches before rg 15 (rg-facts 25)."""

    elapsed: Elapsed
    searches: int
    searches_with_match: int
    bytes_searched: int
    bytes_printed: int
    matched_lines: int
    matches: int


class Begin(_Model, frozen=True):
    """A file with at least one match starts."""

    type: Literal["begin"] = "begin"
    path: FsPath | None = _unwrapped("path")


class Match(_Lines, frozen=True):
    """A line, or under `multiline` a run of lines, that matches."""

    type: Literal["match"] = "match"

    def replaced(self) -> str:
        """The line as `replace` would leave it; a submatch without a replacement stays as it is."""
        return text_of(self.raw_replaced())

    def raw_replaced(self) -> bytes:
        """The exact bytes of `replaced()`."""
        raw, pieces, done = self.raw_lines, list[bytes](), 0
        for hit in self.submatches:
            pieces += raw[done : hit.start], raw_bytes(hit.match if hit.replacement is None else hit.replacement)
            done = hit.end
        return b"".join((*pieces, raw[done:]))


class Context(_Lines, frozen=True):
    """A line around a match; its `submatches` are empty but for an inverted search."""

    type: Literal["context"] = "context"


class End(_Model, frozen=True):
    """A file is done.

    Attributes:
        path: The file.
        binary_offset: Where the first NUL byte stands if rg took the file for binary. It then searches no further, but
            in a file that `paths` names, or with `binary`. Under a memory map (`mmap`, or a few files in `paths`) it
            looks only at the file's start and at matching lines (rg-facts 20).
        stats: What rg counted in this file.
    """

    type: Literal["end"] = "end"
    path: FsPath | None = _unwrapped("path")
    binary_offset: int | None = None
    stats: Stats


PathErrorKind: TypeAlias = Literal["denied", "missing", "broken_link", "loop", "other"]
_ERRNOS = {"denied": errno.EACCES, "missing": errno.ENOENT, "broken_link": errno.ENOENT, "loop": errno.ELOOP}


class PathError(_Model, frozen=True):
    """Something that rg could not read while it went on with the rest.

    Attributes:
        path: What could not be read; `None` if rg's line names no path. Where it is not UTF-8, rg writes U+FFFD, so
            that such a path does not open.
        kind: `denied` (no permission), `missing` (not there, or gone by now), `broken_link` (a symbolic link to
            nothing), `loop` (of symbolic links), or `other`.
        message: rg's own words.
    """

    path: FsPath | None
    kind: PathErrorKind
    message: str

    def as_exception(self) -> OSError:
        """The standard library's error for it (`PermissionError`, `FileNotFoundError`, …), to raise or to group."""
        number = _ERRNOS.get(self.kind)
        return OSError(str(self)) if number is None else OSError(number, self.message, self.path)

    def __str__(self) -> str:
        """As rg says it, but printable whatever the path."""
        return f"{shown(self.path)}: {self.message}" if self.path else self.message


class Summary(_Model, frozen=True):
    """The search is over.

    Attributes:
        stats: What rg counted in all.
        elapsed_total: How long rg ran.
        errors: What rg could not read; empty means that it read everything.
        dropped_records: How many records were over 20 MiB and left out.
    """

    type: Literal["summary"] = "summary"
    stats: Stats
    elapsed_total: Elapsed
    errors: tuple[PathError, ...] = ()
    dropped_records: int = 0


Message: TypeAlias = Annotated[Begin | Match | Context | End | Summary, Field(discriminator="type")]
"""Anything that `search_messages()` yields; `type` tells which."""


class FileCount(_Model, frozen=True):
    """How much of a file matches.

    Attributes:
        path: The file.
        count: Matching lines, or for `count_matches()` matches.
    """

    path: FsPath
    count: int


class TreeEntry(_Model, frozen=True):
    """One line of a tree.

    Attributes:
        path: The file or directory, relative to `cwd`; for a `[N truncated]` line the directory that was cut
            (`""` is the root).
        name: Its last part, or `[N truncated]`.
        depth: 0 for what lies directly in the root.
        is_dir: Whether it is a directory.
        truncated: 0, or for a `[N truncated]` line how many direct children of `path` are left out.
    """

    path: FsPath
    name: FsPath
    depth: int
    is_dir: bool = False
    truncated: int = 0

    def __str__(self) -> str:
        """The entry's line, with four spaces a level and `/` after a directory."""
        return f"{'    ' * self.depth}{self.name}{'/' if self.is_dir else ''}"
