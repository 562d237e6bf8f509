"""Models of rg's JSON messages, and of other results such as counts and commits: flat and frozen Pydantic models.

A message of rg, `{"type": …, "data": {…}}`, becomes one flat model, in which a `str` replaces each `{"text": …}`. Field
names are rg's own (`man rg`, "JSON"; https://docs.rs/grep-printer → JSON). Offsets are in bytes, except where a
docstring says otherwise.
"""

import errno
import hashlib
import os
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias, cast

from pydantic import VERSION, AliasChoices, AliasPath, BaseModel, BeforeValidator, Field

from ripwrap._text import FsPath, Text, raw_bytes, shown, text_of

Span: TypeAlias = tuple[int, int]

if TYPE_CHECKING:
    # `int | MaybeNone` needs no check for None, and allows it: "the Any trick", as in typeshed's `re.Match.group()`
    # (https://typing.python.org/en/latest/guides/writing_stubs.html#the-any-trick).
    MaybeNone: TypeAlias = Any
else:
    MaybeNone = None


class Range(NamedTuple):
    """Position of a submatch in its file. Lines are counted from 1, as in rg, and columns from 0.

    The end is the position after the last character. Columns count characters (`ranges()`) or UTF-16 code units
    (`utf16_ranges()`). The Language Server Protocol counts lines from 0.
    """

    start_line: int
    start_column: int
    end_line: int
    end_column: int


def _unwrapped(name: str, **extra: Any) -> Any:
    """Return a field that accepts rg's form `{name: {"text": …}}` and the form `{name: …}` of the model's JSON."""
    return Field(validation_alias=AliasChoices(AliasPath(name, "text"), name), **extra)


_NO_FILE = (
    "no such file; pass the directory that was searched, as in match.file(cwd). A match in an archive, a document, an "
    "item or on a host has no file on this machine"
)

# From pydantic 2.14 on, a model's validator is made when the model is first used, because this takes time. Earlier
# versions have no lock for it: two threads that use a model for the first time could see an incomplete validator.
_DEFER_BUILD = tuple(map(int, VERSION.split(".")[:2])) >= (2, 14)


class Model(BaseModel, frozen=True, defer_build=_DEFER_BUILD):
    """Base class of the models. They are frozen, and ignore unknown fields, because a later rg may add fields."""


class Submatch(Model, frozen=True):
    """Matched part of a line, or with `multiline` of several lines.

    Attributes:
        match: Text that matched.
        start: Offset of the first matched byte in `raw_lines` of the match.
        end: Offset of the byte after the last matched byte.
        replacement: Text that replaces `match`, with the option `replace` (rg 15 or later); otherwise `None`.
    """

    match: Text = _unwrapped("match")
    start: int
    end: int
    replacement: Text | None = _unwrapped("replacement", default=None)

    @property
    def raw_match(self) -> bytes:
        """Matched bytes, as in the file; if rg transcoded the file to UTF-8, as in the UTF-8 text (rg-facts 15)."""
        return raw_bytes(self.match)


class _FileLines(Model, frozen=True):
    """Line or lines of a file in rg's output; base class of `Match` and `Context`."""

    path: FsPath = _unwrapped("path")
    lines: Text = _unwrapped("lines")
    line_number: int | MaybeNone
    absolute_offset: int
    submatches: tuple[Submatch, ...]

    def __str__(self) -> str:
        """Return what rg prints: `path:line:text`, or `path-line-text` for context; without a newline at the end.

        Several lines have a path and number each. With `replace`, the text has the replacements. U+FFFD is in place of
        bytes that are not UTF-8, and control characters are escaped, because a terminal obeys them.
        """
        return "\n".join(as_printed(self, self._printed_path))

    @property
    def _printed_path(self) -> str:
        return self.path

    def file(self, cwd: str | os.PathLike[str] = os.curdir) -> Path:
        """Return the absolute path of the file."""
        file = Path(cwd, self.path).absolute()
        if not os.path.exists(file):
            raise FileNotFoundError(errno.ENOENT, _NO_FILE, os.fspath(file))
        return file

    @property
    def raw_lines(self) -> bytes:
        """Exact bytes of `lines`; the submatches' `start` and `end` are offsets into them."""
        return raw_bytes(self.lines)

    @property
    def line_terminator(self) -> str:
        r"""End of `lines`: `"\n"`, `"\r\n"`, `"\0"` with `null_data`, or `""` for a last line without a terminator."""
        return next((end for end in ("\r\n", "\n", "\0") if self.lines.endswith(end)), "")

    @property
    def text(self) -> str:
        """`lines` without the line terminator at the end."""
        return text_of(self.raw_lines.removesuffix(self.line_terminator.encode()))

    def spans(self) -> tuple[Span, ...]:
        """Return the positions of the submatches in `lines`, in characters: `lines[start:end]` matched."""
        if self.lines.isascii():
            return tuple((hit.start, hit.end) for hit in self.submatches)
        return self._spans(len)

    def utf16_spans(self) -> tuple[Span, ...]:
        """Return the positions of the submatches in UTF-16 code units, as the Language Server Protocol counts."""
        return self.spans() if self.lines.isascii() else self._spans(_utf16_length)

    def ranges(self) -> tuple[Range, ...]:
        """Return the lines and columns at which each submatch begins and ends; columns count characters."""
        return self._ranges(len)

    def utf16_ranges(self) -> tuple[Range, ...]:
        """Return the lines and columns at which each submatch begins and ends; columns count UTF-16 code units."""
        return self._ranges(_utf16_length)

    def _spans(self, length: Callable[[str], int]) -> tuple[Span, ...]:
        places = self._places(length)
        return tuple((places[hit.start][0], places[hit.end][0]) for hit in self.submatches)

    def _ranges(self, length: Callable[[str], int]) -> tuple[Range, ...]:
        if self.line_number is None:
            raise ValueError("the ranges of matches need line numbers; search without no_line_number")
        places = self._places(length)
        return tuple(
            Range(self.line_number + start[1], start[2], self.line_number + end[1], end[2])
            for start, end in ((places[hit.start], places[hit.end]) for hit in self.submatches)
        )

    def _places(self, length: Callable[[str], int]) -> dict[int, tuple[int, int, int]]:
        """Map each offset of a submatch to three numbers.

        The numbers are: units before the offset, line ends before it, and units since the last line end. Units are
        characters, or UTF-16 code units, depending on `length`.
        """
        # All offsets are converted in one pass, because a minified line may have a hundred thousand submatches.
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
            # If the offset is inside of a character, the bytes before it count as one unit. The bytes of a surrogate
            # (ED A0), which is not valid in UTF-8, count as one unit each.
            cut = len(decoder.getstate()[0].decode("utf-8", "replace"))
            places[offset] = (units + cut, newlines, column + cut)
            done = offset
        return places


def _utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


class Elapsed(Model, frozen=True):
    """Duration: `secs` seconds and `nanos` nanoseconds; `human` is rg's own text for it."""

    secs: int
    nanos: int
    human: str

    def total_seconds(self) -> float:
        """Return the duration in seconds."""
        return self.secs + self.nanos / 1e9


class Stats(Model, frozen=True):
    """Statistics of a search or of a file, counted by rg.

    Before rg 15, `searches` counts only files with matches (rg-facts 25).
    """

    elapsed: Elapsed
    searches: int
    searches_with_match: int
    bytes_searched: int
    bytes_printed: int
    matched_lines: int
    matches: int


class Begin(Model, frozen=True):
    """Message at the start of a file that has a match; with `passthru`, of any file that is not empty."""

    type: Literal["begin"] = "begin"
    path: FsPath = _unwrapped("path")


class Location(Model, frozen=True):
    """Part of a notebook or document. Lines are counted from the beginning of the part. Only fields that apply are set.

    Attributes:
        page: Number of the page of a PDF, from 1.
        sheet: Name of the sheet of a spreadsheet, whose rows are the lines.
        paragraph: Number of the paragraph of a text document, from 1; empty paragraphs count.
        cell: Number of the cell of a notebook, from 1.
        cell_type: Type of the cell, such as `code` or `markdown`.
        output: True for the output of the cell.
        part: Name of another kind of part, such as `slide 3`, in a file format that another package adds.
    """

    page: int | None = None
    sheet: Text | None = None
    paragraph: int | None = None
    cell: int | None = None
    cell_type: Text | None = None
    output: bool = False
    part: Text | None = None

    def __str__(self) -> str:
        """Return the end of the path of a match, such as `page 3`, `sheet Prices` or `cell 7 output`."""
        numbered = (("page", self.page), ("sheet", self.sheet), ("paragraph", self.paragraph), ("cell", self.cell))
        named = [f"{name} {value}" for name, value in numbered if value is not None]
        return " ".join((*named, *filter(None, [self.part]), *(["output"] if self.output else [])))


class Match(_FileLines, frozen=True):
    """Matching line, or with `multiline` consecutive lines that match together.

    Attributes:
        location: Page, sheet, paragraph, cell or other part of a notebook or document that has the match; `path` then
            ends with the location, as in `report.pdf!/page 3`. `None` for a line of any other file.
    """

    type: Literal["match"] = "match"
    location: Location | None = None

    if not TYPE_CHECKING:  # for type checkers, only a `CapturedMatch` has groups

        def __getattr__(self, name: str) -> Any:
            if name in ("groups", "named", "captures"):
                said = f"a match has {name} only if it is found with search(captures=True)"
                raise AttributeError(said, name=name, obj=self)
            return super().__getattr__(name)

    def replaced(self) -> str:
        """Return `lines` with each submatch replaced by its `replacement`, or unchanged if `replacement` is `None`."""
        return text_of(self.raw_replaced())

    def raw_replaced(self) -> bytes:
        """Return `replaced()` as exact bytes, for lines with bytes that are not UTF-8."""
        raw, pieces, done = self.raw_lines, list[bytes](), 0
        for hit in self.submatches:
            pieces += raw[done : hit.start], raw_bytes(hit.match if hit.replacement is None else hit.replacement)
            done = hit.end
        return b"".join((*pieces, raw[done:]))


def as_printed(line: _FileLines, path: str) -> Iterator[str]:
    """Yield each line of a match or context as rg prints it below a path; without the path if it is empty."""
    mark, text = (":", line.replaced()) if isinstance(line, Match) else ("-", line.lines)
    before = f"{shown(path)}{mark}" if path else ""
    text = shown(text.removesuffix(line.line_terminator), lines=True)
    # A record that ends with NUL is one line, even if it has newlines.
    for offset, one in enumerate([text] if line.line_terminator == "\0" else text.split("\n")):
        yield f"{before}{'' if line.line_number is None else f'{line.line_number + offset}{mark}'}{one}"


class Captures(Model, frozen=True):
    """Groups of a submatch.

    Attributes:
        groups: Text of each group, in the order of their numbers; `None` for a group that took no part in the match.
        named: Text of each named group, by name; `None` as in `groups`.
    """

    groups: tuple[Text | None, ...] = ()
    named: dict[str, Text | None] = {}


class CapturedMatch(Match, frozen=True):
    """Match with its groups, as `search(captures=True)` yields it.

    A group that matched empty text is `""`; a group that took no part in the match is `None`. rg's output is the same
    for both, so ripwrap decides by the syntax of the pattern. Some groups are therefore `None` even if they matched
    empty text. One example is the group of `b|(a*)`: an alternation (or a lazy operator, such as `??`) makes a part of
    the pattern optional, and this part can match empty text. Another example, only with `pcre2`, is the group of
    `k(?:=(.*))?`: it is in an optional part that is not itself a capturing group.

    Attributes:
        captures: Groups of each submatch.
    """

    captures: tuple[Captures, ...] = ()

    @property
    def groups(self) -> tuple[str | None, ...]:
        """Text of each group of the first submatch, `None` for an unset group; empty if there is no submatch."""
        return self.captures[0].groups if self.captures else ()

    @property
    def named(self) -> dict[str, str | None]:
        """Text of each named group of the first submatch, `None` for an unset group; empty if there is no submatch."""
        return self.captures[0].named if self.captures else {}


class ScanMatch(CapturedMatch, frozen=True):
    """Text that a rule of `scan()` matched: a match with one submatch.

    Attributes:
        rule: Name of the rule.
    """

    rule: str

    @property
    def fingerprint(self) -> str:
        """Hash of the rule, the path and the matched text, in hexadecimal; it does not depend on the line number."""
        parts = (
            self.rule.encode(),
            os.fsencode(self.path).replace(os.sep.encode(), b"/"),
            self.submatches[0].raw_match,
        )
        return hashlib.sha256(b"\0".join(parts)).hexdigest()


class CodeMatch(Match, frozen=True):
    """Syntax node that a pattern of `search_code()` matched: a match with one submatch.

    `lines` are all lines of the node. In a UTF-16 file, offsets count bytes of the text in UTF-8.

    Attributes:
        metavariables: Text that each metavariable of the pattern has captured, by name without `$`. For `$$$NAME`, the
            text from the first to the last captured node, and `""` if it captured no node.
    """

    metavariables: dict[str, Text] = {}


CodeErrorKind: TypeAlias = Literal["syntax", "timeout", "crash", "encoding", "binary", "too_large", "unreadable"]


class CodeError(Model, frozen=True):
    """File that `search_code()` could not search, or could search only in part; the other files were searched.

    Attributes:
        path: Path of the file; `None` if rg names no path.
        kind: `syntax` (a part of the file does not parse; the matches in its other parts were found), `timeout`
            (parsing took too long), `crash` (the parser crashed, needed too much memory, or gave an invalid answer),
            `encoding` (the file is neither valid UTF-8 nor valid UTF-16 with a byte order mark), `binary` (the file
            has a NUL byte in its first 64 KiB, and no byte order mark), `too_large` or `unreadable`.
        message: Description of the error.
        line_number: Number of the first line that does not parse, from 1; `None` for other kinds.
    """

    type: Literal["error"] = "error"
    path: FsPath | None
    kind: CodeErrorKind
    message: str
    line_number: int | None = None

    def __str__(self) -> str:
        """Return the path, if there is one, and the message; bytes of the path that are not UTF-8 become U+FFFD."""
        message = shown(self.message, lines=True)
        return f"{shown(self.path)}: {message}" if self.path else message


class Context(_FileLines, frozen=True):
    """Line near a match, or with `passthru` any line without a match. It has `submatches` only with `invert_match`."""

    type: Literal["context"] = "context"


class End(Model, frozen=True):
    """End of a file.

    Attributes:
        path: Path of the file.
        binary_offset: Offset of the first NUL byte, if rg treats the file as binary; otherwise `None`. rg stops
            searching at this offset, unless `paths` names the file or `binary` is set. If rg reads the file as a memory
            map (with `mmap`, or if `paths` names a few files), it looks for NUL only at the start of the file and in
            matching lines (rg-facts 20).
        stats: Statistics for this file.
        encoding: Encoding that ripwrap detected, with the option `encoding="detect"`. `None` without this option, for a
            file in UTF-8, and for a file that rg decodes by its byte order mark.
    """

    type: Literal["end"] = "end"
    path: FsPath = _unwrapped("path")
    binary_offset: int | None = None
    stats: Stats
    encoding: str | None = None


PathErrorKind: TypeAlias = Literal["denied", "missing", "broken_link", "loop", "too_long", "other"]
_ERRNOS = {"denied": errno.EACCES, "missing": errno.ENOENT, "broken_link": errno.ENOENT, "loop": errno.ELOOP}


class PathError(Model, frozen=True):
    """Path that rg could not read, or could read only in part; rg continued with the other paths.

    Attributes:
        path: Path that could not be read; `None` if rg names no path. rg writes U+FFFD for bytes that are not UTF-8,
            and a path with U+FFFD cannot be opened.
        kind: `denied` (no permission), `missing` (the path does not exist, was removed meanwhile, or is a broken link
            or a link to itself in `paths`), `broken_link` (a symbolic link without a target, in a searched directory),
            `loop` (a link to itself, or to a directory that holds it, in a searched directory), `too_long` (the file
            has lines of more than 20 MiB in rg's JSON, which are left out), or `other`.
        message: Message of rg. A message of ripwrap if the error is not from rg, such as the number of lines left out
            for `too_long`.
    """

    path: FsPath | None
    kind: PathErrorKind
    message: str

    @property
    def harmless(self) -> bool:
        """True for a `broken_link` and a `loop`: the link leads to no file, or to a directory that is searched."""
        return self.kind in ("broken_link", "loop")

    def as_exception(self) -> OSError:
        """Return an `OSError` to raise, such as `PermissionError` for `denied`, `FileNotFoundError` for `missing`."""
        number = _ERRNOS.get(self.kind)
        return OSError(str(self)) if number is None else OSError(number, self.message, self.path)

    def __str__(self) -> str:
        """Return the path, if there is one, and the message; bytes of the path that are not UTF-8 become U+FFFD."""
        message = shown(self.message, lines=True)
        return f"{shown(self.path)}: {message}" if self.path else message


class Summary(Model, frozen=True):
    """End of the search.

    Attributes:
        stats: Statistics for all files.
        elapsed_total: Duration of the whole search.
        errors: Paths that rg could not read, or could read only in part; empty if there are none.
        dropped_records: Number of records that were left out because each is larger than 20 MiB.
    """

    type: Literal["summary"] = "summary"
    stats: Stats
    elapsed_total: Elapsed
    errors: tuple[PathError, ...] = ()
    dropped_records: int = 0


def _without_envelope(value: object) -> object:
    """Return a record of rg, `{"type": …, "data": {…}}`, as one object; any other value unchanged."""
    if not isinstance(value, dict):
        return value
    record = cast("dict[str, object]", value)
    data = record.get("data")
    return {**cast("dict[str, object]", data), "type": record.get("type")} if isinstance(data, dict) else record


Message: TypeAlias = Annotated[
    Annotated[Begin | Match | Context | End | Summary, Field(discriminator="type")], BeforeValidator(_without_envelope)
]
"""Message that `search_messages()` yields; the field `type` tells its kind.

`pydantic.TypeAdapter(Message).validate_json(line)` reads ripwrap's JSON of a message, and a line of `rg --json`.
"""


class Commit(Model, frozen=True):
    """Commit of git.

    Attributes:
        id: Id of the commit in hexadecimal digits.
        author: Name of the author.
        date: Time of the commit, with the offset of its time zone; the beginning of 1970 if git has no valid time.
        subject: First line of the commit message.
    """

    id: str
    author: Text
    date: datetime
    subject: Text


class HistoryMatch(Match, frozen=True):
    """Match in a version of a file, from a git history.

    A version may have had several paths. `path` is the newest path that the globs and types of the search allow.

    Attributes:
        blob: Id of the version (a blob of git).
        paths: Paths that had this version, the newest first.
        first: Oldest of the searched commits that introduced this version.
        last: Newest of the searched commits that had this version.
    """

    blob: str
    paths: tuple[FsPath, ...]
    first: Commit
    last: Commit | None

    def file(self, cwd: str | os.PathLike[str] = os.curdir) -> Path:
        """Raise `FileNotFoundError`: git has this version of the file, and the disk may have another one."""
        said = f"the match is in a version that git has, and not on the disk; read it with: git show {self.blob}"
        raise FileNotFoundError(errno.ENOENT, said, os.path.join(cwd, self.path))

    @property
    def _printed_path(self) -> str:
        return f"{self.first.id[:12]}:{self.path}"  # as `git grep` prints a line of a commit


class HistoryScanMatch(ScanMatch, HistoryMatch, frozen=True):
    """Text that a rule of `scan()` matched in a version of a file, from a git history (`ripwrap.places.History`)."""


class FileCount(Model, frozen=True):
    """Number of matches in a file.

    Attributes:
        path: Path of the file.
        count: Number of matching lines; for `count_matches()`, number of matches.
    """

    path: FsPath
    count: int

    def __str__(self) -> str:
        """Return `path:count`, as rg prints it; bytes of the path that are not UTF-8 become U+FFFD."""
        return f"{shown(self.path)}:{self.count}"


class TreeEntry(Model, frozen=True):
    """Entry of a tree: a file, a directory, or a `[N truncated]` line in place of omitted entries.

    Attributes:
        path: Path of the file or directory, relative to `cwd`; for a `[N truncated]` line, path of the directory
            that has the omitted entries (`""` is the root).
        name: Last part of the path, or `[N truncated]`.
        depth: Number of directories between the entry and the root.
        is_dir: True for a directory.
        truncated: For a `[N truncated]` line, the number of direct children of `path` that are left out; otherwise 0.
    """

    path: FsPath
    name: FsPath
    depth: int
    is_dir: bool = False
    truncated: int = 0

    def __str__(self) -> str:
        """Return the name, indented by four spaces for each level; the name of a directory ends in `/`."""
        return f"{'    ' * self.depth}{shown(self.name)}{'/' if self.is_dir else ''}"
