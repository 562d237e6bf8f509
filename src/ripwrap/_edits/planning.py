"""Make a plan from the edits that a search found: read each file, check it, and copy the lines that a diff shows.

An edit is a part of a file's text, with its replacement. If rg has transcoded a file to UTF-8, rg's offsets count bytes
of that UTF-8 text. They are converted to offsets in the bytes of the file.
"""

import hashlib
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import NamedTuple, Self, TypeAlias

from ripwrap._ripgrep.page_collector import path_order
from ripwrap._system.concurrency import CANCELLED
from ripwrap._system.safe_write import Disk, TooLargeError, why_protected
from ripwrap._text import (
    LABELS,
    UTF8,
    byte_order_mark,
    decode,
    encode,
    is_utf8,
    is_within_character,
    named,
    shown,
    text_of,
    width,
)
from ripwrap.edits import Edit, FileEdits, Hunk
from ripwrap.errors import ConflictError, Hint, HintedText
from ripwrap.models import PathError

CONTEXT = 3
"""Default number of context lines around an edit in a diff, the same as in git."""

MAX_BYTES = 64 << 20
"""Default maximum size of a file that is changed, before and after the change, and of all edits together, in bytes."""

EDIT_BYTES = 500
"""Number of bytes that count for an edit in addition to its old and new text: about the memory that it takes."""


class FileChange(NamedTuple):
    """Edit that was found in the text of a file; if rg has transcoded it, in UTF-8 without a byte order mark."""

    start: int
    end: int
    before: bytes
    after: bytes


Screen: TypeAlias = Callable[[str, bytes, Sequence[FileChange]], str]
"""Function that takes the path of a file, its text, and the changes in order. It returns the reason to leave the file
out, or an empty text.
"""


class EditSize:
    """Size of the edits found so far."""

    def __init__(self, max_bytes: int) -> None:
        self._max = max_bytes
        self._size = 0

    def add(self, path: str, size: int) -> None:
        """Add an edit, given the number of bytes of its old and new text."""
        self._size += EDIT_BYTES + size
        if self._size > self._max:
            said = (
                f"the edits take more than {self._max:,} bytes (old text, new text, and {EDIT_BYTES} bytes for "
                f"each edit), up to {shown(path)}; replace in fewer files, or with a shorter replacement"
            )
            raise ValueError(HintedText(said, ("; ", Hint("max_bytes"), " sets the limit")))


class Line(NamedTuple):
    """Line with a match, or several consecutive lines, as rg has decoded them."""

    start: int
    number: int
    size: int
    digest: int

    @classmethod
    def of(cls, start: int, number: int, lines: bytes, terminator: bytes) -> Self:
        """Describe lines of rg's output."""
        return cls(start, number, lines.count(terminator) + (not lines.endswith(terminator)), hash(lines))


@dataclass(frozen=True, slots=True)
class Found:
    """File with the changes that were found in it."""

    path: str
    changes: Sequence[FileChange]
    decoded: bool = True
    lines: Sequence[Line] = ()


class _Reading(NamedTuple):
    """How rg has read the files."""

    codec: str
    raw: bool
    terminator: bytes
    keeps_line_ends: bool


def codec_of(label: str | None) -> str:
    """Return Python's name of an encoding, given the name that rg uses; empty for `none`, `auto` and `None`."""
    name = (label or "auto").strip().lower()
    if name in ("auto", "none"):
        return ""
    if codec := LABELS.get(name):
        return codec
    said = f"files in the encoding {label!r} cannot be changed; leave "
    raise ValueError(HintedText(said, Hint("encoding", kind="omit"), " out, or convert the files to UTF-8 first"))


def plan_files(
    root: str,
    found: Iterable[Found],
    *,
    encoding: str | None = None,
    context: int = CONTEXT,
    max_bytes: int = MAX_BYTES,
    holds: Callable[[str], bool] | None = None,
    screen: Screen | None = None,
    disk: Disk | None = None,
    terminator: bytes = b"\n",
    keeps_line_ends: bool = False,
) -> tuple[tuple[FileEdits, ...], tuple[PathError, ...]]:
    r"""Return the edits of each file that changes, in path order, and an error for each file that is left out.

    Each file is read once. If several paths lead to one file, because of links, only the first of these paths is used.
    With `keeps_line_ends`, `\n` in a replacement is `\r\n` where the lines of the match end so.
    """
    disk = disk or Disk()
    reading = _Reading(codec_of(encoding), encoding == "none", terminator, keeps_line_ends)
    cancelled = CANCELLED.get()
    files: list[FileEdits] = []
    left_out: list[PathError] = []
    changed: list[str] = []
    seen: set[str] = set()
    for one in sorted(found, key=lambda one: path_order(os.fsencode(one.path))):
        cancelled.check()
        real = os.path.realpath(os.path.join(root, one.path))
        if real in seen:
            continue
        seen.add(real)
        if holds is not None and not holds(real):  # a link to a file that may not be read has replaced the file
            changed.append(one.path)
            continue
        try:
            planned = _read_and_plan(one, real, disk, reading, context, max_bytes, screen)
        except (FileNotFoundError, NotADirectoryError, _DiffersError):
            changed.append(one.path)
        except _LeftOutError as error:
            left_out.append(PathError(path=one.path, kind="other", message=f"left out: {error}"))
        else:
            if planned is not None:
                files.append(planned)
    if changed:
        raise ConflictError(
            f"{named(changed)} changed while being searched; search again", paths=changed, reason="changed"
        )
    return tuple(files), tuple(left_out)


class _DiffersError(Exception):
    """Error for a file that no longer has the text that was found in it."""


class _LeftOutError(Exception):
    """Reason why a file is left out."""


def _read_and_plan(
    one: Found, real: str, disk: Disk, reading: _Reading, context: int, max_bytes: int, screen: Screen | None
) -> FileEdits | None:
    """Read a file and return its edits, or None if the file does not change; `real` is the real path of the file."""
    if reason := why_protected(real):
        raise _LeftOutError(reason)
    try:
        raw, _ = disk.read(real, max_bytes)
        if len(raw) + sum(len(change.after) - len(change.before) for change in one.changes) > max_bytes:
            raise TooLargeError
        return _plan_file(one, raw, reading, context=context, screen=screen)
    except TooLargeError:
        raise _LeftOutError(
            f"it has, or would have, more than {max_bytes:,} bytes, the limit of a file (max_bytes)"
        ) from None
    except UnicodeDecodeError as error:
        where = f"it is not valid {error.encoding}, at byte {error.start}"
        raise _LeftOutError(f"{where}; repair the file, or pass another encoding") from None


def _plan_file(one: Found, raw: bytes, reading: _Reading, *, context: int, screen: Screen | None) -> FileEdits | None:
    """Return the edits of a file, or None if the file does not change."""
    changes = sorted(change for change in one.changes if change.before != change.after)
    _check_overlaps(one.path, changes)
    if not changes:
        return None
    mark, codec = (b"", "") if reading.raw or not one.decoded else byte_order_mark(raw, reading.codec)
    codec = codec if reading.codec or codec != UTF8 else ""
    body = raw[len(mark) :]
    if codec and not one.lines:
        text = decode(body, codec).encode()  # rg has not read the file
        offsets = _Offsets(text, body, 0, codec)
        found = [(change, offsets.of(change.start), offsets.of(change.end)) for change in changes]
    elif codec:
        text, found = _read_as_rg(one.lines, body, codec, reading.terminator, changes)
    else:
        text, found = body, [(change, change.start, change.end) for change in changes]
    edits = [(change, start + len(mark), end + len(mark)) for change, start, end in found]
    if any(text[change.start : change.end] != change.before for change, _, _ in edits):
        raise _DiffersError
    if reading.keeps_line_ends:
        edits = [*_with_line_ends(edits, text)]
    if not edits:
        return None
    if (not codec or codec == UTF8) and (at := _first_broken(text, [change for change, _, _ in edits])) is not None:
        raise _LeftOutError(
            f"the text would not be valid UTF-8 any more, because a match or its replacement begins or ends within a "
            f"character, at byte {at + len(mark)}; change the file by hand"
        )
    if screen is not None and (reason := screen(one.path, text, [change for change, _, _ in edits])):
        raise _LeftOutError(reason)
    file = FileEdits(
        path=one.path,
        sha256=hashlib.sha256(raw).hexdigest(),
        encoding="" if codec == UTF8 else codec,
        hunks=tuple(group_hunks(text, edits, context)),
    )
    if file.encoding:
        _check_encodable(file, raw)
    return file


def _with_line_ends(edits: Iterable[tuple[FileChange, int, int]], text: bytes) -> Iterator[tuple[FileChange, int, int]]:
    r"""Yield edits with `\r\n` for `\n` in the new text if the old lines end so, without edits that change nothing."""
    edge, last = 0, text.rfind(b"\n") + 1
    for change, start, end in edits:
        at = max(change.end - 1, change.start, edge - 1)
        edge = last if at >= last else text.find(b"\n", at) + 1  # the end of the last line is that of the line before
        known = change.before if b"\n" in change.before else text[max(edge - 2, 0) : edge]
        crlf = known.count(b"\n") == known.count(b"\r\n") > 0
        after = re.sub(rb"(?<!\r)\n", b"\r\n", change.after) if crlf else change.after
        if after != change.before:
            yield change._replace(after=after), start, end


def _first_broken(text: bytes, changes: Sequence[FileChange]) -> int | None:
    """Return the offset of the first change by which valid UTF-8 can become invalid; None if there is no such change.

    Changes that only together keep the text valid count, too, because `apply(select=…)` can choose one of them.
    """
    broken = (
        change.start
        for change in changes
        if is_within_character(text, change.start) or is_within_character(text, change.end) or not is_utf8(change.after)
    )
    first = next(broken, None)
    return first if first is not None and is_utf8(text) else None


def _read_as_rg(
    lines: Sequence[Line], body: bytes, codec: str, terminator: bytes, changes: Sequence[FileChange]
) -> tuple[bytes, list[tuple[FileChange, int, int]]]:
    """Return the text of a file in UTF-8, and each change at its place in this text, with its offsets in `body`.

    Only lines with changes must be exactly what rg has read. rg's offsets are used only within such a line, so bytes in
    other lines that rg and Python read differently do not matter.
    """
    text, edits, done = bytearray(), list[tuple[FileChange, int, int]](), 0
    waiting = deque(changes)
    starts = _LineStarts(body, codec, terminator)
    lenient = "surrogateescape" if codec == UTF8 else "replace"
    for line, following in pairwise((*lines, None)):
        if line is None or not waiting:
            break
        if following is not None and waiting[0].start >= following.start:
            continue
        first, last = starts.of(line.number), starts.of(line.number + line.size)
        text += decode(body[done:first], codec, lenient).encode(errors=lenient)
        known, done = _decoded_line(line, body, first, last, codec), last
        shift = len(text) - line.start
        offsets = _Offsets(known, body, first, codec)
        while waiting and (following is None or waiting[0].start < following.start):
            change = waiting.popleft()
            moved = change._replace(start=change.start + shift, end=change.end + shift)
            edits.append((moved, offsets.of(change.start - line.start), offsets.of(change.end - line.start)))
        text += known
    if waiting:
        raise _DiffersError
    text += decode(body[done:], codec, lenient).encode(errors=lenient)
    return bytes(text), edits


def _decoded_line(line: Line, body: bytes, first: int, last: int, codec: str) -> bytes:
    """Return the text of a line in UTF-8, if it is what rg has read."""
    try:
        known = decode(body[first:last], codec).encode()
    except UnicodeDecodeError as error:
        error.start += first
        raise
    if hash(known) == line.digest:
        return known
    if codec.startswith("utf-") or body[first:last].isascii():
        raise _DiffersError
    raise _LeftOutError(f"rg and Python read line {line.number} differently as {codec}; change the file by hand")


class _LineStarts:
    """Offsets of lines in a file; call `of()` with ascending numbers."""

    def __init__(self, body: bytes, codec: str, terminator: bytes) -> None:
        end = encode(terminator.decode(), codec)
        found = re.finditer(b"(?=" + re.escape(end) + b")", body)
        self._ends = (match.start() + len(end) for match in found if match.start() % len(end) == 0)
        self._size = len(body)
        self._number = 1
        self._at = 0

    def of(self, number: int) -> int:
        """Return the offset of the line with this number, from 1; the size of the file if there is no such line."""
        if number > self._number:
            self._at = next(islice(self._ends, number - self._number - 1, None), self._size)
            self._number = number
        return self._at


def _check_overlaps(path: str, changes: Sequence[FileChange]) -> None:
    for one, other in pairwise(changes):
        if other.start < one.end or other.start == one.start:
            raise ValueError(
                f"two edits of {shown(path)} overlap, at bytes {one.start}-{one.end} and {other.start}-{other.end}; "
                "apply one of them first"
            )


def _check_encodable(file: FileEdits, raw: bytes) -> None:
    """Raise an error if the encoding of the file lacks a character of an edit, or writes the old text otherwise."""
    for edit in file.edits:
        try:
            file.encode(edit.after)
        except UnicodeEncodeError as error:
            character = error.object[error.start]
            raise ValueError(
                f"{shown(file.path)} cannot contain {character!r}, because its encoding is {file.encoding}; "
                "leave out the file or the character"
            ) from None
        if raw[edit.start : edit.end] != _old_bytes(file, edit.before):
            raise _LeftOutError(
                f"{file.encoding} has several forms of {edit.before!r}, and the file has a rare one at byte "
                f"{edit.start}; change the file by hand"
            )


def _old_bytes(file: FileEdits, text: str) -> bytes:
    try:
        return file.encode(text)
    except UnicodeError:
        return b""


class _Offsets:
    """Converter of offsets in a decoded line to offsets in the body of its file; call it with ascending offsets."""

    def __init__(self, line: bytes, body: bytes, first: int, codec: str) -> None:
        self._line = line
        self._body = body
        self._codec = codec
        self._done = 0
        self._offset = first

    def of(self, offset: int) -> int:
        """Convert a byte offset in the line to a byte offset in the body."""
        start = self._offset
        try:
            piece = self._line[self._done : offset].decode()
            self._offset += width(piece, self._codec)
            if decode(self._body[start : self._offset], self._codec) != piece:
                raise _LeftOutError(f"the position of a match after byte {start} is not certain; change it by hand")
        except UnicodeError:
            raise _LeftOutError(f"a match at byte {start} begins or ends within a character") from None
        self._done = offset
        return self._offset


def group_hunks(text: bytes, edits: Sequence[tuple[FileChange, int, int]], context: int) -> Iterator[Hunk]:
    """Yield hunks: edits with the lines around them. Each line is in one hunk only."""
    number, counted = 1, 0
    waiting: list[tuple[FileChange, int, int]] = []
    start = end = edge = 0
    for one in edits:
        change = one[0]
        # In one long line, each edit would look for the same line ends. `edge` is the end of the last edit's line.
        if waiting and change.start < edge and change.end <= edge:
            waiting.append(one)
            continue
        edge = text.find(b"\n", max(change.end - 1, change.start)) + 1 or len(text)
        first, last = _lines_around(text, change.start, change.end, context)
        if waiting and first > end:
            number, counted = number + text.count(b"\n", counted, start), start
            yield _hunk(text, start, end, number, waiting)
            waiting = []
        if not waiting:
            start = first
        waiting.append(one)
        end = max(last, end)
    if waiting:
        yield _hunk(text, start, end, number + text.count(b"\n", counted, start), waiting)


def _hunk(text: bytes, start: int, end: int, number: int, edits: Sequence[tuple[FileChange, int, int]]) -> Hunk:
    return Hunk(
        line_number=number,
        lines=text_of(text[start:end]),
        edits=tuple(
            Edit(first, last, change.start - start, text_of(change.before), text_of(change.after))
            for change, first, last in edits
        ),
    )


def _lines_around(text: bytes, start: int, end: int, context: int) -> tuple[int, int]:
    """Extend `text[start:end]` to whole lines, and by `context` lines on each side; return the new start and end."""
    first = text.rfind(b"\n", 0, start) + 1
    for _ in range(context):
        if not first:
            break
        first = text.rfind(b"\n", 0, first - 1) + 1
    last = max(end - 1, start)
    for _ in range(context + 1):
        last = text.find(b"\n", last) + 1 or len(text)
        if last == len(text):
            break
    return first, last
