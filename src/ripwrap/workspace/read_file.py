"""Tool `read_file`: numbered lines of one or several files, and an outline with the definitions that fit."""

import functools
import hashlib
import io
import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, TypeAlias, Unpack, cast

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from ripwrap._code.outline import Section, levels_of, outline_rows
from ripwrap._system.concurrency import CANCELLED
from ripwrap._text import as_utf8, cut_text, in_seconds, plural, shown_path
from ripwrap.errors import RipwrapError
from ripwrap.models import Model
from ripwrap.workspace.arguments import (
    HASHED_CHARS,
    MAX_QUOTED_CHARS,
    SEPARATOR,
    Rev,
    ToolArguments,
    join_paths,
    join_ranges,
    labels,
    line_hash,
    parse_anchor,
    parse_arguments,
    parse_strings,
)
from ripwrap.workspace.close_names import ask_close_names
from ripwrap.workspace.dispatch import ToolMethods
from ripwrap.workspace.notes import shortened
from ripwrap.workspace.redact import MAX_SECRET_CHARS, Redactor
from ripwrap.workspace.results import ToolResult, first_entries
from ripwrap.workspace.sandbox import MissingPathError, RootLocation
from ripwrap.workspace.scope import Settings, locate_file, open_scope
from ripwrap.workspace.shown_lines import snippet
from ripwrap.workspace.text_files import Deadline, open_text, skip_line, skip_lines
from ripwrap.workspace.tool import MIN_CHARS, ToolCall, ToolSpec

if TYPE_CHECKING:
    from ripwrap.workspace.expansion import SourceFile

_COUNT_SECONDS = 1.0
"""Time limit in seconds for counting the lines after the last shown line."""

MAX_LINE_NUMBER = 1_000_000_000
"""Largest value of `start_line` and `end_line`; the numbers in `ranges` may have up to 18 digits."""


def _refuse_anchor(value: Any) -> Any:
    """Return a value. Raise an error for an anchor such as `42·k7q`, because the line of an anchor may have moved."""
    anchor = parse_anchor(value) if isinstance(value, str) else None
    if anchor is not None:
        raise PydanticCustomError("anchor", "a number (the tool `resolve` returns the line number of an anchor)", {})
    return value


LineNumber: TypeAlias = Annotated[int, Field(ge=0, le=MAX_LINE_NUMBER), BeforeValidator(_refuse_anchor)]
LineRanges: TypeAlias = Annotated[str, BeforeValidator(join_ranges)]


class ReadFileOptions(TypedDict, total=False):
    """Options of `read_file()` besides `path`, `start_line` and `end_line`."""

    ranges: str
    head: int
    tail: int
    outline: bool
    force: bool
    rev: str


class LineRange(NamedTuple):
    """Range of lines of a file."""

    start: int
    end: int | None

    def __str__(self) -> str:
        """Return the range in the format of the argument `ranges`, such as `10-40`, or `80-` without an end."""
        return f"{self.start}-{self.end or ''}"


class ReadFileArguments(ToolArguments, frozen=True):
    """Arguments of `read_file()`."""

    foreign: ClassVar[frozenset[str]] = frozenset({"limit", "include"})
    also: ClassVar[Mapping[str, str]] = dict.fromkeys(("files", "reads", "requests"), "path")

    path: Annotated[str, BeforeValidator(join_paths)]
    start_line: LineNumber = 1
    end_line: LineNumber = 0
    ranges: LineRanges = ""
    head: LineNumber = 0
    tail: LineNumber = 0
    outline: bool = False
    force: bool = False
    rev: Rev = ""

    @property
    def paths(self) -> list[str]:
        """The paths of the files, usually one; each once."""
        return list(dict.fromkeys(self.path.split("\0")))

    @property
    def chooses_lines(self) -> bool:
        """True if an argument chooses lines of the file."""
        return bool(self.start_line > 1 or self.end_line or self.ranges.strip() or self.head or self.tail)

    @model_validator(mode="before")
    @classmethod
    def _read_limit(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Replace `limit`, which in other programs is the number of lines to read, by `end_line`.

        Drop `limit` if it is 0, or if `end_line` is given. A negative `start_line` counts from the end, as `tail` does.
        """
        values = {**given}
        if files := values.pop("include", None):  # of Gemini CLI: paths or globs
            if re.search(r"[*?\[{]", "".join(map(str, _listed(files)))):
                raise ValueError(
                    "unknown argument 'include'; find_files finds files; pass their paths as path, in a list"
                )
            values.setdefault("path", files)
        values = _each_with_ranges(values)
        limit = values.pop("limit", 0)
        if re.fullmatch(r"-[1-9]\d*", str(values.get("start_line"))):
            values["tail"] = str(values.pop("start_line"))[1:]
            return values
        if limit and "end_line" not in values:
            try:
                values["end_line"] = max(int(values.get("start_line", 1)), 1) + int(limit) - 1
            except (TypeError, ValueError, OverflowError):
                values["end_line"] = limit  # validation refuses it with an error that quotes the given value
        return values

    def line_ranges(self) -> list[LineRange]:
        """Return the ranges of lines in order, joined, without `tail`; none if only the outline is asked for."""
        if self.outline and not self.chooses_lines:
            return []
        if self.head or self.tail:
            if self.ranges.strip() or self.start_line > 1 or self.end_line:
                raise ValueError("head and tail cannot be combined with start_line, end_line or ranges; leave them out")
            return [LineRange(1, self.head)] if self.head else []
        if not self.ranges.strip():
            return [_range(max(self.start_line, 1), self.end_line or None, "start_line", "end_line")]
        if self.start_line > 1 or self.end_line:
            raise ValueError(
                "ranges cannot be combined with start_line or end_line; leave out ranges, or start_line and end_line"
            )
        return _merged(map(_parse_range, self.ranges.split(",")))


def _each_with_ranges(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments in which a list of files, each with its lines as `{"path": "a.py", "lines": "3-9"}`, is split.

    `path` then has the paths, and `ranges` the ranges of each, separated by NUL characters.
    """
    value = given.get("path")
    files: object = parse_strings(value) if isinstance(value, str) and re.match(r"\s*\[\s*\{", value) else value
    listed = cast("list[object]", [files] if isinstance(files, Mapping) else files)
    if not isinstance(listed, list) or not any(isinstance(one, Mapping) for one in listed):
        return {**given}
    chosen: dict[str, list[str]] = {}
    for one in listed:
        each = cast("dict[str, Any]", one) if isinstance(one, Mapping) else {"path": one}
        nested = any(isinstance(part, Mapping) for value in each.values() for part in _listed(value))
        file = None if nested else parse_arguments(ReadFileArguments, each)
        if file is None or len(file.paths) > 1 or file.tail or file.outline:
            raise ValueError('a file in a list must be as in {"path": "a.py", "lines": "3-9"}, with one path')
        chosen.setdefault(file.path, []).extend(map(str, file.line_ranges() if file.chooses_lines else ()))
    if "ranges" in given:
        raise ValueError("ranges cannot be combined with files that have lines of their own; leave out one of them")
    return {**given, "path": [*chosen], "ranges": "\0".join(map(",".join, chosen.values()))}


def _listed(value: Any) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else [value]


def _merged(ranges: Iterable[LineRange]) -> list[LineRange]:
    """Return ranges in order, and join those that overlap or touch."""
    merged: list[LineRange] = []
    for one in sorted(ranges, key=attrgetter("start")):  # the end may be `None`
        last = merged[-1] if merged else None
        if last is not None and (last.end is None or one.start <= last.end + 1):
            end = None if last.end is None or one.end is None else max(last.end, one.end)
            merged[-1] = LineRange(last.start, end)
        else:
            merged.append(one)
    return merged


def _parse_range(text: str) -> LineRange:
    found = re.fullmatch(r"\s*(\d{1,18})\s*(?:(-)\s*(\d{1,18})?\s*)?", text)
    if found is None:
        way = " (the tool `resolve` returns the line number of an anchor)" if SEPARATOR in text else ""
        raise ValueError(
            f'ranges must be like "10-40,80-95"{way}, got {cut_text(repr(text.strip()), MAX_QUOTED_CHARS)}'
        )
    start = max(int(found[1]), 1)
    end = start if not found[2] else int(found[3]) if found[3] else None
    return _range(start, end, "the start of a range", "its end")


def _range(start: int, end: int | None, first: str, last: str) -> LineRange:
    if end is not None and end < start:
        raise ValueError(f"{first} ({start}) is after {last} ({end}); swap the two numbers")
    return LineRange(start, end)


class LineBlock(Model, frozen=True):
    """Consecutive lines of a file.

    Attributes:
        start_line: Number of the first line, from 1.
        lines: Lines without their terminators; `…` marks a place where a long line was cut.
        anchors: Hash of each line, if the workspace has `anchors`; else empty.
        path: Path of the file, if the answer has lines of several files; else empty.
    """

    start_line: int
    lines: tuple[str, ...]
    anchors: tuple[str, ...] = ()
    path: str = ""

    def rows(self) -> Iterator[str]:
        """Yield the lines, each with its number."""
        for label, text in zip(labels(self.start_line, self.anchors, len(self.lines)), self.lines, strict=True):
            yield f"  {label}: {text}".rstrip()


class ReadFileResult(ToolResult, frozen=True):
    """Result of `read_file()`.

    Attributes:
        blocks: Blocks of consecutive lines.
        total_lines: Number of all lines of the file; `None` if counting them took too long.
        encoding: Encoding of the file: `utf-16-le` or `utf-16-be` if the file begins with the byte order mark of that
            encoding, otherwise `utf-8`.
        outline: Definitions of the file, in the order of their lines, if `outline` is set, or if the whole file was
            asked for and does not fit. If there is no room for all, only outer definitions.
    """

    blocks: tuple[LineBlock, ...]
    total_lines: int | None
    encoding: str = "utf-8"
    outline: tuple[Section, ...] = ()

    def _count(self) -> int:
        return len(self.outline) + sum(len(block.lines) for block in self.blocks)

    def _fewer(self, values: dict[str, Any], count: int) -> dict[str, Any]:
        values = first_entries(values, ("outline",), count)
        count = max(count - len(self.outline), 0)
        blocks: list[dict[str, Any]] = []
        rest = self.next_offset
        for block in values["blocks"]:
            if count < len(block["lines"]) and not block.get("path"):
                rest = block["start_line"] + count
            if count:
                blocks.append(first_entries(block, ("lines", "anchors"), count))
            count = max(count - len(block["lines"]), 0)
            if rest != self.next_offset:
                break
        return values | {"blocks": blocks, "next_offset": rest}

    def _body(self) -> Iterator[str]:
        several = any(block.path for block in self.blocks)
        if (self.blocks or self.outline) and not several:
            yield f"File: {shown_path(self.path)}"
        yield from (f"  {row}" for row in outline_rows(self.outline))
        for number, block in enumerate(self.blocks):
            if several and (not number or block.path != self.blocks[number - 1].path):
                yield from ([""] if number else [])
                yield f"File: {shown_path(block.path)}"
            elif number or self.outline:
                yield "  --"
            yield from block.rows()


class _Line(NamedTuple):
    number: int
    text: str
    hash: str


@dataclass(frozen=True, slots=True)
class _LinesRead:
    """Lines that were read from a file."""

    lines: list[_Line]
    total: int | None
    encoding: str
    ranges: list[LineRange]


@dataclass(frozen=True, slots=True)
class ReadLines:
    """Lines of a file that were read for an answer."""

    location: RootLocation
    count: int
    total: int | None
    answer: Callable[[int], ReadFileResult]


async def read_ranges(call: ToolCall, arguments: ReadFileArguments) -> ReadLines:
    """Read the lines of a file in one or more ranges; none if only the outline is asked for."""
    run, settings = call.run, call.settings
    given = arguments.line_ranges()
    location = await run.call(lambda: locate_file(settings, arguments.path, arguments.rev))
    if location.revision is not None:  # `resolve` looks up anchors in files on the disk
        settings = replace(settings, anchors=False)
    if location.lines and given and not arguments.chooses_lines:
        given = [LineRange(*location.lines)]
    found = await run.call(lambda: _read_lines(settings, location, given, arguments.tail))
    ranges = found.ranges
    if not found.lines and found.total and ranges:
        first = min(one.start for one in ranges)
        has = f"{shown_path(location.name)} has {plural(found.total, 'line')}"
        raise ValueError(f"{has}, so there is no line {first} (the file may have changed); pass a smaller line number")
    return ReadLines(location, len(found.lines), found.total, lambda count: _answer(location, ranges, found, count))


def _answer(location: RootLocation, ranges: Sequence[LineRange], found: _LinesRead, count: int) -> ReadFileResult:
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


def _read_lines(settings: Settings, location: RootLocation, given: Sequence[LineRange], tail: int) -> _LinesRead:
    """Read ranges of lines of a file, and its last `tail` lines, in bounded memory for files and lines of any size."""
    deadline = Deadline(settings.timeout, "the first line to read was not reached")
    with open_text(settings, location, "read_file") as (text, encoding, redactor):
        start, ranges = text.tell(), [*given]
        if tail:
            last = skip_lines(text, sys.maxsize, deadline)
            ranges = _merged([*given, LineRange(max(last - tail + 1, 1), None)])
            text.seek(start)
        lines, total = _read_text(text, settings, redactor, ranges, deadline)
    return _LinesRead(lines, total, encoding, ranges)


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
            number += skip_lines(text, one.start - 1 - number, deadline)
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
        number += skip_lines(text, sys.maxsize, deadline)
    except TimeoutError:
        if CANCELLED.get().is_set() or not lines:
            raise
        return lines, None
    return lines, number


CHARS_PER_FILE = 500
"""Smallest share of an answer in characters; with `max_chars=20000`, a call reads at most 40 files."""
_MAX_ERROR_CHARS = 200


async def read_several(call: ToolCall, arguments: ReadFileArguments) -> ReadFileResult:
    """Return the lines of several files; the message has an error for each file that cannot be read."""
    paths, most = arguments.paths, call.settings.max_chars // CHARS_PER_FILE
    ranges = arguments.ranges.split("\0") if "\0" in arguments.ranges else [arguments.ranges] * len(paths)
    if len(paths) > most:
        raise ValueError(f"path names {len(paths)} files, and a call reads at most {most}; pass fewer")
    if arguments.outline:
        raise ValueError("outline is for one file, and path names several; call the tool once for each file")
    share = call.settings.max_chars // len(paths) - _MAX_ERROR_CHARS
    read: list[ReadFileResult] = []
    said: list[str] = []
    failed: list[Exception] = []
    for path, lines_of in zip(paths, ranges, strict=True):
        try:
            lines = await read_ranges(call, arguments.model_copy(update={"path": path, "ranges": lines_of}))
            read.append(await call.run.call(functools.partial(shortened, lines.answer, lines.count, share)))
        except TimeoutError:
            raise
        except (OSError, ValueError, RipwrapError) as error:
            failed.append(error)
            name, text = shown_path(path), f"{error}"
            text = text if text.startswith(name) else f"{name}: {text}"
            said.append(f"{cut_text(text, _MAX_ERROR_CHARS - 1)}.")
        else:
            said.append(f"{shown_path(read[-1].path)}: {read[-1].message}")
    if not read:
        raise failed[0]
    blocks = [block.model_copy(update={"path": one.path}) for one in read for block in one.blocks]
    return ReadFileResult(
        root=read[0].root,
        path=".",
        blocks=tuple(blocks),
        total_lines=None,
        truncated=any(one.truncated for one in read),
        message=f"{plural(len(read), 'file')}. {' '.join(said)}",
    )


OUTLINE_SHARE = 1 / 3
"""Maximum share of the length of an answer (`max_chars`) that an outline may take beside lines, from 0 to 1."""

MAX_LINES = 100_000
"""Maximum number of lines of a file that gets an outline unasked; an outline of more lines takes seconds."""


async def run_read_file(call: ToolCall, arguments: ReadFileArguments) -> ReadFileResult:
    """Return what `_read()` returns; with anchors, only a sentence if an equal call had the same answer."""
    answer = await _read(call, arguments)
    if not call.settings.anchors or len(text := str(answer)) < MIN_CHARS:
        return answer
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    before = call.memory.exchange(arguments.model_copy(update={"force": False}), digest)
    if arguments.force or before is None or before.value != digest:
        return answer
    said = f"Unchanged since it was shown {in_seconds(round(before.seconds))} ago; force=True shows it again."
    return answer.model_copy(update={"blocks": (), "outline": (), "message": said})


async def _read(call: ToolCall, arguments: ReadFileArguments) -> ReadFileResult:
    """Return the lines of a file, its outline, or both; or the lines of several files."""
    if len(arguments.paths) > 1:
        return await read_several(call, arguments)
    arguments = arguments.model_copy(update={"path": arguments.paths[0]})
    run, settings = call.run, call.settings
    try:
        read = await read_ranges(call, arguments)
    except MissingPathError as error:
        await _add_close_names(call, arguments, error)
        raise
    lines = await run.call(lambda: shortened(read.answer, read.count, settings.max_chars))
    too_long = lines.truncated and not (arguments.chooses_lines or read.location.lines)
    if not (arguments.outline or (too_long and 0 < (read.total or 0) <= MAX_LINES)):
        return lines
    return await run.call(lambda: _with_outline(settings, read, lines))


async def _add_close_names(call: ToolCall, arguments: ReadFileArguments, error: MissingPathError) -> None:
    """Add a note to an error about a missing file: files of the whole workspace that have nearly its name."""
    if error.near is not None:
        return
    with suppress(OSError, RipwrapError, ValueError):  # the first error is more helpful
        async with open_scope(call.run, call.settings, ".", hidden=False, ignored=False, rev=arguments.rev) as scope:
            if close := await ask_close_names(call.run, scope, arguments.path):
                error.add_note(close)


def _with_outline(settings: Settings, read: ReadLines, without: ReadFileResult) -> ReadFileResult:
    """Return the answer with the outline of the file, if it has one, and with the lines that then fit."""
    from ripwrap._code.treesitter.parser import is_supported
    from ripwrap._operations.expand import MAX_SOURCE_BYTES
    from ripwrap.workspace.expansion import missing_code, read_source_file  # late: they import the parsers

    location, lines = read.location, read.count
    source = read_source_file(settings, location, location.paths[0], settings.redactor(location, location.paths[0]))
    every = source.outline.sections() if source else ()
    if source is None or not every:
        has_grammar = source is not None and is_supported(location.paths[0], "\n".join(source.lines))
        missing = missing_code() if has_grammar else None
        if lines and missing is None:
            return without
        why = f"it has more than {MAX_SOURCE_BYTES:,} bytes" if source is None else "no definition was found"
        said = missing or f"There is no outline: {why}"

        def explained(count: int) -> ReadFileResult:
            result = read.answer(count) if lines else without
            return result.model_copy(
                update={"message": f"{said}. {result.message if lines else 'Read or search its lines.'}"}
            )

        return shortened(explained, lines, settings.max_chars)
    room = int(settings.max_chars * OUTLINE_SHARE) if lines else settings.max_chars
    chosen = [_shown(settings, source, section) for section in outermost(every, room)]

    def about(result: ReadFileResult, count: int) -> ReadFileResult:
        known = {"outline": tuple(chosen[:count]), "truncated": result.truncated or count < len(every)}
        much = plural(len(every), "definition")
        said = f"The outline has {much}." if count == len(every) else f"The outline shows {count} of {much}."
        rest = result.message if lines else f"start_line and end_line give lines of the {result.total_lines}."
        return result.model_copy(update={**known, "message": f"{said} {rest}"})

    if not lines:
        return shortened(lambda count: about(without, count), len(chosen), settings.max_chars)
    return shortened(lambda count: about(read.answer(count), len(chosen)), lines, settings.max_chars)


def outermost(sections: Sequence[Section], max_chars: int) -> list[Section]:
    """Return the sections whose rows fit into a number of characters: inner sections are left out before outer ones."""
    by_level: dict[int, int] = {}
    sizes = [len(row) + 3 for row in outline_rows(sections)]  # with indentation and the end of the line
    levels = list(levels_of(sections))
    for level, size in zip(levels, sizes, strict=True):
        by_level[level] = by_level.get(level, 0) + size
    totals = list(accumulate(by_level[level] for level in range(len(by_level))))
    depth = bisect_right(totals, max_chars)
    if depth:
        return [section for section, level in zip(sections, levels, strict=True) if level < depth]
    outer = [(section, size) for section, level, size in zip(sections, levels, sizes, strict=True) if not level]
    most = bisect_right(list(accumulate(size for _, size in outer)), max_chars)
    return [section for section, _ in outer[:most]]


def _shown(settings: Settings, source: "SourceFile", section: Section) -> Section:
    """Return a section as an answer shows it: secrets masked, and its line cut if it is long."""
    masked = source.masked(section)
    return masked.model_copy(update={"text": snippet(masked.text, 1, settings.max_line)})


READ_FILE = ToolSpec(
    "read_file",
    ReadFileArguments,
    ReadFileResult,
    run_read_file,
    title="Read lines of a file",
    aliases=(
        *("read", "view", "view_file", "cat", "open_file", "get_file_contents", "read_text_file", "read_files"),
        *("read_multiple_files", "read_many_files", "get_symbols_overview", "list_code_definition_names"),
    ),
    rare=frozenset({"ranges", "head", "tail", "force", "rev"}),
)


class ReadFileMethods(ToolMethods, offers=(READ_FILE,)):
    """Methods of `read_file`."""

    async def read_file(
        self,
        path: str,
        start_line: int = 1,
        end_line: int = 0,
        *,
        ranges: str = "",
        head: int = 0,
        tail: int = 0,
        outline: bool = False,
        force: bool = False,
        rev: str = "",
    ) -> str:
        """Read lines of a text file, with their numbers, or its outline.

        The last line, in parentheses, says which lines were shown, and how to get more. Long lines are cut. Search
        first, and read only the lines that you need. A file that is too long is shown by its outline (the lines of each
        definition or heading) and its first lines.

        Args:
            path (str): The file to read.
            start_line (int): Number of the first line; default 1.
            end_line (int): Number of the last line; 0, the default, is the end of the file.
            ranges (str): Several ranges of lines at once, e.g. `10-40,80-95`, instead of start_line and end_line.
            head (int): Number of lines from the beginning of the file, instead of the other arguments.
            tail (int): Number of lines from the end of the file; with head, both ends are shown.
            outline (bool): Show the outline of the file; no lines, unless another argument chooses some.
            force (bool): With anchors, show again what was shown before and has not changed.
            rev (str): Read the file in a commit of git instead of on disk, e.g. `v1.2` or `main~3`.
        """
        return self.text(
            await self.read_file_result(
                path,
                start_line,
                end_line,
                ranges=ranges,
                head=head,
                tail=tail,
                outline=outline,
                force=force,
                rev=rev,
            )
        )

    async def read_file_result(
        self, path: str, start_line: int = 1, end_line: int = 0, **options: Unpack[ReadFileOptions]
    ) -> ReadFileResult:
        """Return the answer of `read_file()` as a `ReadFileResult`.

        The method needs no rg. A file may have any size; reading stops at the workspace's `timeout`.
        """
        arguments = parse_arguments(
            ReadFileArguments, {"path": path, "start_line": start_line, "end_line": end_line, **options}
        )
        return await run_read_file(self._tools.begin(), arguments)
