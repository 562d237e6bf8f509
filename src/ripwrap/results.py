"""What users hold when an operation has collected its answer: frozen models that a notebook and a terminal can show."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Literal, Self, TypeAlias

from pydantic import BaseModel

from ripwrap import _diff, render
from ripwrap._text import FsPath, Text, text_of
from ripwrap.models import Context, Match, PathError, TreeEntry

if TYPE_CHECKING:
    from rich.console import RenderableType

StopReason: TypeAlias = Literal["end", "max_matches", "max_files", "timeout"]


class GrepMatch(Match, frozen=True):
    """A match, with the context that is its own: a line that two matches share belongs to the first.

    Attributes:
        before: Lines before it.
        after: Lines after it.
    """

    before: tuple[Context, ...] = ()
    after: tuple[Context, ...] = ()


class FileMatches(BaseModel, frozen=True):
    """The matches of one file.

    Attributes:
        path: The file, relative to `GrepResult.root` unless an absolute path was asked for.
        matches: Those that are shown, by line.
        total_matches: How many there are in the file.
        binary_offset: Where the first NUL byte stands if rg took the file for binary; see `End.binary_offset`.
    """

    path: FsPath
    matches: tuple[GrepMatch, ...]
    total_matches: int
    binary_offset: int | None = None

    def lines(self) -> Iterator[Match | Context]:
        """The matches and their context, by line."""
        for match in self.matches:
            yield from match.before
            yield match
            yield from match.after

    def diff(self) -> str:
        """What `replace` would change in what is shown, as a unified diff; empty if nothing.

        With context, which there is by default, `git apply -p1` and `patch -p1` take it in `root`, for a path below
        that is no symbolic link (`follow=False` leaves those out). Of a file that is not UTF-8 the text is only shown
        (`raw_diff()` is exact); to one that rg transcoded, or took a byte order mark from, it may not apply.

        Raises:
            ValueError: There are no line numbers, because of `no_line_number`, or lines end otherwise, because of
                `null_data`.
        """
        return text_of(self.raw_diff())

    def raw_diff(self) -> bytes:
        """The exact bytes of `diff()`."""
        return _diff.unified(self.path, self.lines())


class GrepResult(BaseModel, frozen=True):
    """What `grep()` found: a page of matches, and what else there is.

    Matches are counted as rg's JSON has them: matching lines, or under `multiline` runs of lines.

    Attributes:
        root: The directory that was searched, as an absolute path.
        query: The pattern, or the patterns.
        files: The files of this page, in the order of `rg --sort=path`.
        total_matches: How many matches there are; if not `exact`, at least so many.
        files_matched: How many files have one; if not `exact`, at least so many.
        exact: Whether rg searched to its end and nothing was dropped, so that the two numbers are all that there are.
        truncated: Whether matches follow that are not shown, or, if not `exact`, may follow.
        next_offset: The `offset` of the next page; `None` if there is none that is known of.
        stop_reason: Why the page ends: at the `end` of all matches, because of `max_matches` or `max_files`, or by
            `timeout`.
        errors: What rg could not read.
        dropped_records: How many of rg's records were over 20 MiB and left out, and are not counted as matches.
        message: All of that in a sentence or two for a person, or an agent.
    """

    root: FsPath
    query: str | tuple[str, ...]
    files: tuple[FileMatches, ...]
    total_matches: int
    files_matched: int
    exact: bool
    truncated: bool
    next_offset: int | None
    stop_reason: StopReason
    errors: tuple[PathError, ...]
    dropped_records: int
    message: str

    def diff(self) -> str:
        """The `diff()` of every file, one after another."""
        return text_of(self.raw_diff())

    def raw_diff(self) -> bytes:
        """The exact bytes of `diff()`."""
        return b"".join(file.raw_diff() for file in self.files)

    def _repr_html_(self) -> str:
        return render.html(self.message, ((file.path, file.lines()) for file in self.files))

    def __rich__(self) -> "RenderableType":
        from ripwrap._rich import grouped

        return grouped(self.message, ((file.path, file.lines()) for file in self.files))


class RankedChunk(BaseModel, frozen=True):
    """A place that `rank()` found: a few lines of a file, and why they are there.

    Attributes:
        path: The file, relative to `cwd` unless an absolute path was asked for.
        start_line: The number of the first line, from 1.
        end_line: The number of the last.
        symbol: The definition that they are, or are a part of, as in `Shop.add`, where an index has cut the file at its
            definitions; elsewhere the one that encloses the line that says most. `None` at the top level.
        text: The lines, at most 1,000 characters of them, or 2,000 of a definition, unless it is a single line.
        score: By which they have their place; comparable within one answer alone.
        reasons: What made the score, for a person or an agent.
    """

    path: FsPath
    start_line: int
    end_line: int
    symbol: str | None
    text: Text
    score: float
    reasons: tuple[str, ...]


class TreeText(str):
    """The text of a tree, which a notebook and a rich console show with its directories set off.

    Attributes:
        entries: What it was rendered from.
    """

    __slots__ = ("entries",)
    entries: tuple[TreeEntry, ...]

    def __new__(cls, entries: Iterable[TreeEntry] = ()) -> Self:
        """The entries' lines: four spaces a level, `/` after a directory, no newline at the end."""
        known = tuple(entries)
        text = super().__new__(cls, "\n".join(map(str, known)))
        text.entries = known
        return text

    def __getnewargs__(self) -> tuple[tuple[TreeEntry, ...]]:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        return (self.entries,)

    def _repr_html_(self) -> str:
        return render.html_tree(self.entries)

    def __rich__(self) -> "RenderableType":
        from ripwrap._rich import tree

        return tree(self.entries)
