"""Models of changes to files: edits, the plan of a replacement, and the result of applying the plan.

A plan has the same form whether a regex or a syntax pattern found the edits. A plan contains all lines that it shows,
so no file is read to show it.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ripwrap._display import diff, html
from ripwrap._display.diff import grep_lines
from ripwrap._text import FsPath, Text, encode, plural, raw_bytes, shown, text_of
from ripwrap.models import Context, Match, Model, PathError, Submatch

if TYPE_CHECKING:
    from rich.console import RenderableType


class Edit(NamedTuple):
    """Replacement of a part of a file.

    Attributes:
        start: Offset of the part's first byte in the file, in bytes.
        end: Offset of the byte after the part, in the file.
        at: Offset of the part's first byte in `Hunk.lines`, in bytes of UTF-8.
        before: Text of the part.
        after: Text that replaces the part.
    """

    start: int
    end: int
    at: int
    before: Text
    after: Text


class Hunk(Model, frozen=True):
    """Consecutive lines of a file: lines with edits, and the lines around them.

    Attributes:
        line_number: Number of the first line, from 1.
        lines: The lines as they are without the edits, with their terminators. If `FileEdits.encoding` is not
            empty, the lines are converted to UTF-8.
        edits: Edits of these lines, from left to right.
    """

    line_number: int
    lines: Text
    edits: tuple[Edit, ...]

    def messages(self, path: str = "") -> Iterator[Match | Context]:
        """Yield lines with edits as `Match`, whose submatches have replacements, and other lines as `Context`.

        If an edit changes several lines, these lines are one `Match`. `absolute_offset` is the offset of a line in the
        file if the file is in UTF-8, and otherwise of no use.
        """
        raw, number, done = raw_bytes(self.lines), self.line_number, 0
        begun = max(0, self.edits[0].start - self.edits[0].at) if self.edits else 0
        waiting = deque(self.edits)
        while done < len(raw) or waiting:
            end = _line_end(raw, done)
            edits: list[Edit] = []
            # An edit at the end of the last line belongs to that line, because no line follows.
            while waiting and (waiting[0].at < end or end == len(raw)):
                edits.append(waiting.popleft())
                # A line may be long and have many edits, so look for its end only once.
                if (last := edits[-1].at + len(raw_bytes(edits[-1].before)) - 1) >= end:
                    end = _line_end(raw, last)
            lines = raw[done:end]
            yield (_match if edits else _context)(path, lines, number, begun, done, edits)
            number += lines.count(b"\n")
            done = end


def _line_end(raw: bytes, start: int) -> int:
    """Return the offset after the newline of the line that contains `start`; without a newline, the end of `raw`."""
    return raw.find(b"\n", start) + 1 or len(raw)


def _match(path: str, lines: bytes, number: int, begun: int, offset: int, edits: list[Edit]) -> Match:
    submatches = tuple(
        Submatch(
            match=edit.before,
            start=edit.at - offset,
            end=edit.at - offset + len(raw_bytes(edit.before)),
            replacement=edit.after,
        )
        for edit in edits
    )
    return Match(
        path=path, lines=text_of(lines), line_number=number, absolute_offset=begun + offset, submatches=submatches
    )


def _context(path: str, lines: bytes, number: int, begun: int, offset: int, _: list[Edit]) -> Context:
    return Context(path=path, lines=text_of(lines), line_number=number, absolute_offset=begun + offset, submatches=())


class FileEdits(Model, frozen=True):
    """Edits of one file.

    Attributes:
        path: Path of the file, relative to `EditPlan.root` unless the caller gave an absolute path.
        sha256: Hash of the file's content when it was searched, in hexadecimal digits.
        encoding: Python's name of the encoding of the file, such as `utf-16-le`; empty for UTF-8, and for files whose
            encoding is unknown.
        hunks: Lines with edits, from the first to the last.
    """

    path: FsPath
    sha256: str
    encoding: str = ""
    hunks: tuple[Hunk, ...]

    @property
    def edits(self) -> Iterator[Edit]:
        """All edits, from the first to the last."""
        return (edit for hunk in self.hunks for edit in hunk.edits)

    def __len__(self) -> int:
        """Return the number of edits."""
        return sum(len(hunk.edits) for hunk in self.hunks)

    def encode(self, text: str) -> bytes:
        """Return the bytes of a text in the encoding of the file.

        Raises:
            UnicodeEncodeError: A character of the text does not exist in the encoding.
        """
        raw = raw_bytes(text)
        return encode(raw.decode(), self.encoding) if self.encoding else raw

    def lines(self) -> Iterator[Match | Context]:
        """Iterate over the lines of all hunks, as `Hunk.messages()` yields them."""
        for hunk in self.hunks:
            yield from hunk.messages(self.path)

    def diff(self) -> str:
        """Return the edits as a unified diff, for `git apply -p1` or `patch -p1` in `EditPlan.root`.

        If the file has bytes that are not UTF-8, use `raw_diff()`. For a file whose `encoding` is not empty, or that
        has a byte order mark, the diff is in UTF-8 and cannot be applied.
        """
        return text_of(self.raw_diff())

    def raw_diff(self) -> bytes:
        """Return `diff()` as exact bytes, for files with bytes that are not UTF-8."""
        return diff.unified(self.path, self.lines(), nul_ends=True)


Select: TypeAlias = Collection[str] | Callable[[FileEdits, Edit], bool]
"""Choice of edits: paths, as in `FileEdits.path`, or a function that takes a `FileEdits` and one of its edits, and
returns True if the edit is to be applied.
"""


class EditPlan(Model, frozen=True):
    """Planned edits of files, which are not written yet.

    `len()` is the number of files with edits, and a plan without edits is false. Iteration goes over `files`. `str()`
    is `diff()`, followed by `message`.

    Attributes:
        root: Directory that paths are relative to, as an absolute path.
        files: Files with edits, in the order of `rg --sort=path`.
        errors: Paths that could not be searched, and files that the plan leaves out although they have matches; each
            with the reason.
        hidden_matches: Number of matches in hidden files, which `replace()` leaves out without `hidden=True`.
    """

    root: FsPath
    files: tuple[FileEdits, ...]
    errors: tuple[PathError, ...] = ()
    hidden_matches: int = 0

    def __len__(self) -> int:
        """Return the number of files."""
        return len(self.files)

    def __bool__(self) -> bool:
        """Return True if the plan changes a file."""
        return bool(self.files)

    # See `GrepResult.__iter__()`.
    def __iter__(self) -> Iterator[FileEdits]:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        """Iterate over the files."""
        return iter(self.files)

    @property
    def total_edits(self) -> int:
        """Number of edits of all files."""
        return sum(map(len, self.files))

    @property
    def message(self) -> str:
        """Number of edits and files, of paths with errors, and of matches in hidden files, in a sentence."""
        left_out = f"; {plural(len(self.errors), 'path')} left out" if self.errors else ""
        if self.hidden_matches:
            left_out += f"; {plural(self.hidden_matches, 'match', 'es')} in hidden files left out"
        if not self.files:
            return f"Nothing to replace{left_out}."
        return f"{plural(self.total_edits, 'replacement')} in {plural(len(self.files), 'file')}{left_out}."

    def diff(self) -> str:
        """Return the unified diffs of all files, one after another; see `FileEdits.diff()`."""
        return text_of(self.raw_diff())

    def raw_diff(self) -> bytes:
        """Return `diff()` as exact bytes, for files with bytes that are not UTF-8."""
        return b"".join(file.raw_diff() for file in self.files)

    def selected(self, select: Select | None) -> tuple[FileEdits, ...]:
        """Return the files with edits that `select` chooses, without their other edits; `None` chooses all edits.

        Raises:
            ValueError: `select` has a path that the plan does not change.
        """
        if select is None:
            return self.files
        if callable(select):
            return tuple(filter(None, (_selected(file, select) for file in self.files)))
        wanted = {select} if isinstance(select, str) else {*select}
        if unknown := wanted - {file.path for file in self.files}:
            raise ValueError(f"the plan does not change {min(unknown)!r}, a path in select; choose paths of plan.files")
        return tuple(file for file in self.files if file.path in wanted)

    def __str__(self) -> str:
        """Return the diff, then the message."""
        return shown(f"{self.diff()}{self.message}", lines=True)

    def grep_lines(self) -> Iterator[str]:
        """Yield changed lines (their new text) as `path:line:text`, and the lines around them as `path-line-text`."""
        return grep_lines((file.path, file.lines()) for file in self.files)

    def _repr_html_(self) -> str:
        return html.html(self.message, ((file.path, file.lines()) for file in self.files))

    def __rich__(self) -> "RenderableType":
        from ripwrap._display.console import colored_diffs  # late: rich is optional, and takes 40 ms

        return colored_diffs((file.diff() for file in self.files), self.message)


def _selected(file: FileEdits, select: Callable[[FileEdits, Edit], bool]) -> FileEdits | None:
    """Return the file with only the chosen edits and the hunks that have these edits; `None` if no edit is chosen."""
    chosen = ((hunk, tuple(edit for edit in hunk.edits if select(file, edit))) for hunk in file.hunks)
    hunks = tuple(hunk.model_copy(update={"edits": edits}) for hunk, edits in chosen if edits)
    return file.model_copy(update={"hunks": hunks}) if hunks else None


class AppliedEdits(Model, frozen=True):
    """Result of applying a plan, or of undoing it.

    Attributes:
        journal: Path of the directory with the data that `ripwrap.undo()` needs; empty if there was nothing to write.
        root: Directory that was searched, as an absolute path.
        files: Real paths of the files that were written.
        undone: True if the files have their old contents again.
    """

    journal: FsPath
    root: FsPath
    files: tuple[FsPath, ...]
    undone: bool = False

    def __len__(self) -> int:
        """Return the number of files that were written."""
        return len(self.files)

    @property
    def message(self) -> str:
        """Number of files that were changed or restored, in a sentence."""
        files = plural(len(self.files), "file")
        return f"{files} restored." if self.undone else f"{files} changed."

    def __str__(self) -> str:
        """Return the message."""
        return self.message
