"""Models of collected results, such as the page of `grep()`. They are frozen; notebooks and terminals can show them."""

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, TypeAlias

from typing_extensions import deprecated

from ripwrap._display import diff, html
from ripwrap._display.diff import grep_lines
from ripwrap._text import FsPath, Text, plural, shown, text_of
from ripwrap.columns import Columns
from ripwrap.errors import Hint, HintedText
from ripwrap.models import Context, Match, Model, PathError, TreeEntry

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from rich.console import RenderableType

StopReason: TypeAlias = Literal["end", "limit", "max_files", "timeout"]
SkipKind: TypeAlias = Literal[
    "ignored",
    "hidden",
    "glob",
    "type",
    "binary",
    "too_large",
    "link",
    "special",
    "max_depth",
    "one_file_system",
    "unreadable",
    "outside",
    "other",
]
"""Kind of reason why a file is not searched; see `Reason`."""

_SKIPPED: dict[SkipKind, tuple[str, str]] = {
    "ignored": ("ignored", "ignored"),
    "hidden": ("hidden", "hidden"),
    "glob": ("left out by a glob", "left out by globs"),
    "type": ("not of the chosen types", "of other types"),
    "binary": ("binary", "binary"),
    "too_large": ("too large", "too large"),
    "link": ("a symbolic link", "symbolic links"),
    "special": ("neither a file nor a directory", "neither files nor directories"),
    "max_depth": ("too deep", "too deep"),
    "one_file_system": ("on another file system", "on other file systems"),
    "unreadable": ("unreadable", "unreadable"),
    "outside": ("outside of the searched paths", "outside of the searched paths"),
    "other": ("not listed by rg", "not listed by rg"),
}
"""Texts about one file and about several files, for each kind of reason."""


class GrepMatch(Match, frozen=True):
    """Match with its context; a context line between two matches belongs to one of the matches only.

    Attributes:
        before: Lines of context before the match.
        after: Lines of context after the match.
    """

    before: tuple[Context, ...] = ()
    after: tuple[Context, ...] = ()


class FileMatches(Model, frozen=True):
    """Matches of one file.

    Attributes:
        path: Path of the file, relative to `GrepResult.root` unless the caller gave an absolute path.
        matches: Matches on the page, in the order of their lines.
        total_matches: Number of matches in the file; a lower bound if rg was stopped in the file.
        binary_offset: Offset of the first NUL byte, if the file is binary for rg; see `End.binary_offset`.
    """

    path: FsPath
    matches: tuple[GrepMatch, ...]
    total_matches: int
    binary_offset: int | None = None

    def __str__(self) -> str:
        """Return the lines as rg prints them, `path:line:text` or `path-line-text` for context."""
        return "\n".join(grep_lines([(self.path, self.lines())]))

    def lines(self) -> Iterator[Match | Context]:
        """Iterate over the matches and their lines of context, in the order of the lines."""
        for match in self.matches:
            yield from match.before
            yield match
            yield from match.after

    def diff(self) -> str:
        """Return the changes that `replace` would make to the lines on the page, as a unified diff.

        Apply it in `GrepResult.root` with `git apply -p1` or `patch -p1`. Both programs need lines of context, which
        `grep()` has by default. Both refuse paths through symbolic links, so search with `follow=False`. For a file
        that is not UTF-8, use `raw_diff()`. For a file that rg has transcoded, or that has a byte order mark, both
        programs may refuse the diff.

        Raises:
            ValueError: There are no line numbers, because of `no_line_number`, or lines end with NUL, because of
                `null_data`.
        """
        return text_of(self.raw_diff())

    def raw_diff(self) -> bytes:
        """Return `diff()` as exact bytes, for files with bytes that are not UTF-8."""
        return diff.unified(self.path, self.lines())


class Reason(Model, frozen=True):
    """Answer of `why()`: the reason why a search reads a file, or does not read it.

    The object is true if the file is searched. `str()` is a sentence such as ``ignored by .gitignore:3 `build/`;
    no_ignore=True searches it``.

    Attributes:
        path: Path of the file or directory, as it was given.
        kind: `searched`, or the kind of reason why the file is not searched: `ignored` (by an ignore file), `hidden`,
            `glob` (the option `glob` or `iglob`; also for directories of git and of rg's index), `type` (the option
            `type` or `type_not`), `binary` (rg stops at the first NUL byte), `too_large` (the option `max_filesize`),
            `link` (a symbolic link, with `follow=False`), `special` (a FIFO, socket or device), `max_depth` or
            `one_file_system` (the options of these names), `unreadable`, or `outside` (not below a searched path). In a
            `Coverage`, also `other`: rg did not list the file, and ripwrap knows no rule that excludes it.
        matched: Path to which the reason applies: `path`, or a directory above it.
        file: Path of the ignore file with the rule, relative to `cwd` if it is below `cwd`, otherwise absolute. `None`
            if the reason is not an ignore file.
        line: Number of the line in `file`, from 1; `None` if `file` is `None`.
        glob: Glob on that line, or in the option `glob` or `iglob`; `None` if no single glob is the reason.
        offset: Offset of the first NUL byte in the file, in bytes; `None` if the file is not `binary`, or is UTF-16.
        detail: More about the reason, such as the size of the file or the error of the system; empty if `kind` is
            enough.
        hints: Options to pass or to leave out, so that the file is searched. Empty if the file is already searched, or
            if no option helps.
    """

    path: FsPath
    kind: Literal["searched"] | SkipKind
    matched: FsPath
    file: FsPath | None = None
    line: int | None = None
    glob: str | None = None
    offset: int | None = None
    detail: str = ""
    hints: tuple[Hint, ...] = ()

    def __bool__(self) -> bool:
        """Return True if the file is searched."""
        return self.kind == "searched"

    @property
    def message(self) -> HintedText:
        """Text of `str()`, with its hints as separate parts.

        So the command line and the agent tools can print the hints in their own syntax.
        """
        if self.kind == "searched":
            return HintedText("searched")
        above = "" if self.matched == self.path else f"its directory {shown(self.matched)} is "
        return HintedText(above + self._what(self.kind), *self._ways())

    def _what(self, kind: SkipKind) -> str:
        text = _SKIPPED[kind][0]
        if self.file is not None:
            return f"{text} by {shown(self.file)}:{self.line} `{shown(self.glob or '')}`"
        if kind == "glob":
            return "matched by no glob" if self.glob is None else f"left out by the glob `{shown(self.glob)}`"
        if kind == "type":
            return self.detail
        if self.offset is not None:
            return f"{text} (NUL at byte {self.offset})"
        return f"{text} ({self.detail})" if self.detail else text

    def _ways(self) -> Iterator[str | Hint]:
        """Yield the end of the message: which options to pass or to leave out, so that rg searches the file."""
        passed = _with_commas([hint for hint in self.hints if hint.kind != "omit"])
        omitted = _with_commas([hint for hint in self.hints if hint.kind == "omit"])
        if passed and not omitted:
            yield from ("; ", *passed, " searches it" if len(passed) == 1 else " search it")
        elif omitted:
            options = "without the option " if len(omitted) == 1 else "without the options "
            yield from ("; it would be searched ", *(("with ", *passed, " and ") if passed else ()), options, *omitted)

    def __str__(self) -> str:
        return shown(self.message, lines=True)


def _with_commas(hints: list[Hint]) -> list[str | Hint]:
    return [part for hint in hints for part in (", ", hint)][1:]


class SkippedFiles(Model, frozen=True):
    """Files that a search did not read, all for the same kind of reason.

    Attributes:
        kind: Kind of reason; see `Reason`.
        files: Number of files.
        examples: Reasons for the first three of these files in the order of their paths.
    """

    kind: SkipKind
    files: int
    examples: tuple[Reason, ...] = ()


class Coverage(Model, frozen=True):
    """Number of files that a search read, and numbers of files that it did not read, by reason.

    The counts add up to the number of files below the searched paths. Each entry that is not a directory counts as a
    file, even in hidden and ignored directories. With `follow`, files behind links also count. Files in a directory
    that cannot be read do not count; `GrepResult.errors` names the directory.

    Attributes:
        searched: Number of files that were searched to their end.
        skipped: Files that were not searched, and binary files, which were searched only up to their first NUL byte;
            grouped by the kind of reason, the largest group first.
        exact: True if all files were counted within the time limit; otherwise the numbers are lower bounds.
    """

    searched: int
    skipped: tuple[SkippedFiles, ...] = ()
    exact: bool = True

    @property
    def skipped_files(self) -> int:
        """Number of files in `skipped`."""
        return sum(group.files for group in self.skipped)

    def files(self, kind: SkipKind) -> int:
        """Return the number of files in `skipped` for one kind of reason."""
        return next((group.files for group in self.skipped if group.kind == kind), 0)

    def __str__(self) -> str:
        """Return a sentence such as '45 files searched; 13 not: 12 ignored, 1 hidden.'."""
        least = "" if self.exact else "At least "
        kinds = ", ".join(f"{group.files} {_SKIPPED[group.kind][1]}" for group in self.skipped)
        rest = f"; {self.skipped_files} not: {kinds}" if kinds else ""
        return f"{least}{plural(self.searched, 'file')} searched{rest}."


class PageMatches(tuple[GrepMatch, ...]):
    """Matches of a page: a tuple. A call returns an iterator, as when `GrepResult.matches` was a method; deprecated."""

    __slots__ = ()

    @deprecated("GrepResult.matches() is deprecated; use GrepResult.matches, without a call")
    def __call__(self) -> Iterator[GrepMatch]:
        """Return an iterator over the matches. Deprecated."""
        return iter(self)


class GrepResult(Model, frozen=True, json_schema_serialization_defaults_required=True):
    """Page of matches, as `grep()` returns it, with the number of all matches.

    `len()` is the number of matches on the page. The result is true if there is any match (`total_matches`), on this
    page or another. Iteration goes over `files`; `matches` has the matches of all files. `str()` has the
    format of `rg --heading=never`, followed by `message`.

    A match is a record of rg's JSON: a matching line, or with `multiline` consecutive lines that match together.

    Attributes:
        root: Directory that was searched, as an absolute path. On a host (`on=`), the path that the caller gave.
        query: Pattern, or patterns.
        files: Files with matches on this page, in the order of `rg --sort=path`.
        total_matches: Number of matches; a lower bound if not `exact`.
        files_matched: Number of files with a match; a lower bound if not `exact`.
        exact: True if the search was complete and no record was dropped, so that `total_matches` and `files_matched`
            are final.
        truncated: True if more matches follow this page, or may follow because the search is not `exact`.
        next_offset: Value of `offset` for the next page; `None` if no further match is known, if the page is empty, or
            if rg was stopped at the time limit.
        stop_reason: Reason why the page ends: `end` (no further match), `limit` or `max_files` (the argument of that
            name; with `count=False`, rg was ended there), or `timeout` (rg was stopped).
        errors: Errors of paths that rg could not read, in path order; then errors of files with dropped records.
        dropped_records: Number of records that were left out, and not counted, because each is larger than 20 MiB.
        message: Summary of the result in one or two sentences, for a person or an agent.
        candidates: Number of files that rg searched because the index found that they may have a match; `None` without
            an index.
        files_total: Number of files that the index has for this directory and branch; `None` without an index.
        coverage: Numbers of files that were searched and that were not searched; `None` unless `coverage=True` was
            passed.
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
    candidates: int | None = None
    files_total: int | None = None
    coverage: Coverage | None = None

    def __len__(self) -> int:
        """Return the number of matches on the page."""
        return sum(len(file.matches) for file in self.files)

    def __bool__(self) -> bool:
        """Return True if there is a match, on this page or another."""
        return self.total_matches > 0

    # Pydantic's own `__iter__` yields (name, value) of each field, for `dict(model)`; `model_dump()` does not need it.
    def __iter__(self) -> Iterator[FileMatches]:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        """Iterate over the files of the page."""
        return iter(self.files)

    @property
    def matches(self) -> PageMatches:
        """Matches of the page, file by file."""
        return PageMatches(match for file in self.files for match in file.matches)

    def columns(self) -> Columns:
        """Return the matches of the page as columns."""
        return Columns.of(self.matches)

    def to_pandas(self) -> "pd.DataFrame":
        """Return the matches of the page as a data frame of pandas; see `Columns.to_pandas()`.

        A `UserWarning` says if the page has not all matches.
        """
        self._warn_if_cut()
        return self.columns().to_pandas()

    def to_polars(self) -> "pl.DataFrame":
        """Return the matches of the page as a data frame of polars; see `Columns.to_polars()`.

        A `UserWarning` says if the page has not all matches.
        """
        self._warn_if_cut()
        return self.columns().to_polars()

    def _warn_if_cut(self) -> None:
        """Warn if the page has not all matches, because a data frame does not show that."""
        if self.truncated or len(self) < self.total_matches:
            ways = {"timeout": " and timeout=None", "max_files": " and max_files=None"}.get(self.stop_reason, "")
            total = f"{'' if self.exact else 'at least '}{plural(self.total_matches, 'match', 'es')}"
            said = f"the data frame has only {len(self)} of {total}; for all, call grep() with limit=None{ways}"
            warnings.warn(said, UserWarning, stacklevel=3)

    def __str__(self) -> str:
        """Return the page as grep writes it, `path:line:text` or `path-line-text` for context, then the message."""
        return "\n".join(
            (*grep_lines((file.path, file.lines()) for file in self.files), shown(self.message, lines=True))
        )

    def diff(self) -> str:
        """Return the unified diffs of all files on the page, one after another; see `FileMatches.diff()`."""
        return text_of(self.raw_diff())

    def raw_diff(self) -> bytes:
        """Return `diff()` as exact bytes, for files with bytes that are not UTF-8."""
        return b"".join(file.raw_diff() for file in self.files)

    def _repr_html_(self) -> str:
        return html.html(self.message, ((file.path, file.lines()) for file in self.files))

    def __rich__(self) -> "RenderableType":
        from ripwrap._display.console import grouped  # late: rich is optional, and takes 40 ms

        return grouped(self.message, ((file.path, file.lines()) for file in self.files))


class MatchChange(Model, frozen=True):
    """Matches that were added and removed since the previous `MatchChange`, as `watch()` yields them.

    In the first `MatchChange` of a call, all matches are in `added`.

    Attributes:
        added: Matches that are new, in the order of their paths.
        removed: Matches that are gone, with the text that they had, in the order of their paths.
        total: Number of all matches now.
    """

    added: tuple[Match, ...]
    removed: tuple[Match, ...]
    total: int


class RankedChunk(Model, frozen=True):
    """Result of `rank()`: a few lines of a file, and the reasons for their score.

    Attributes:
        path: Path of the file, relative to `cwd` unless the caller gave an absolute path.
        start_line: Number of the first line, from 1.
        end_line: Number of the last line.
        symbol: Name of the definition around the most relevant line, e.g. `Shop.add`; `None` at the top level. If an
            index knows that a definition contains the whole chunk, `symbol` is the name of that definition, or of a
            definition inside of it.
        text: Lines of the chunk: at most 800 characters, or 2,000 for a definition. A single longer line is not cut.
        score: Value that results are sorted by; comparable only with scores of the same call.
        reasons: Reasons for the score, for a person or an agent.
    """

    path: FsPath
    start_line: int
    end_line: int
    symbol: str | None
    text: Text
    score: float
    reasons: tuple[str, ...]


class NumberedLine(Model, frozen=True):
    """Line of a file.

    Attributes:
        number: Number of the line, from 1.
        text: Text of the line, without the line terminator.
    """

    number: int
    text: Text


class Expansion(Model, frozen=True):
    """Lines around a match, as `expand()` returns them.

    `str()` has the path, the lines with their numbers, and `[N more lines]` in place of omitted lines. `:` follows the
    number of a matching line, and `-` follows the number of another line.

    Attributes:
        path: Path of the file, as in the match.
        to: Kind of the lines: a `definition`, a `block`, or the `lines` around the match.
        kind: Kind of the definition: `function`, the keyword of the language (`class`, `struct`), or in documents
            `heading`, `table` or `key`; empty if the kind is unknown, or there is no definition.
        name: Name of the definition, e.g. `Shop.add`; `None` if there is no definition, or it has no name.
        start_line: Number of the first line, from 1. Decorators and comments directly above a definition belong to it.
        end_line: Number of the last line.
        match_lines: Numbers of the first and the last line of the match.
        lines: Lines that are shown: all, or at most `max_lines`.
        elided: Gaps (consecutive lines that are left out), each as the numbers of its first and its last line.
    """

    path: FsPath
    to: Literal["definition", "block", "lines"]
    kind: str = ""
    name: Text | None = None
    start_line: int
    end_line: int
    match_lines: tuple[int, int]
    lines: tuple[NumberedLine, ...]
    elided: tuple[tuple[int, int], ...] = ()

    def __str__(self) -> str:
        """Return the path, the definition, and the lines with their numbers."""
        about = " ".join(filter(None, (self.kind, self.name)))
        rows = [f"{shown(self.path)}:{self.start_line}-{self.end_line}{about and f' {about}'}"]
        gaps = {last: last - first + 1 for first, last in self.elided}
        first, last = self.match_lines
        for line in self.lines:
            if line.number - 1 in gaps:
                rows.append(f"  [{plural(gaps[line.number - 1], 'more line')}]")
            rows.append(f"  {line.number}{':' if first <= line.number <= last else '-'} {line.text}".rstrip())
        if self.end_line in gaps:
            rows.append(f"  [{plural(gaps[self.end_line], 'more line')}]")
        return shown("\n".join(rows), lines=True)


class Tree(Model, frozen=True):
    """Tree of a directory, as `tree_text()` returns it.

    `len()` is the number of entries, and iteration goes over `entries`. `str()` is the text: four spaces for
    each level, `/` after a directory, no newline at the end. A notebook and a rich console show directories in bold.

    Attributes:
        entries: Lines of the tree, in the order in which they are printed.
    """

    entries: tuple[TreeEntry, ...] = ()

    @property
    def truncated(self) -> bool:
        """True if entries are left out because of `limit`."""
        return any(entry.truncated for entry in self.entries)

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self.entries)

    # See `GrepResult.__iter__()`.
    def __iter__(self) -> Iterator[TreeEntry]:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        """Iterate over the entries."""
        return iter(self.entries)

    def __str__(self) -> str:
        return "\n".join(map(str, self.entries))

    def _repr_html_(self) -> str:
        return html.html_tree(self.entries)

    def __rich__(self) -> "RenderableType":
        from ripwrap._display.console import tree  # late: rich is optional, and takes 40 ms

        return tree(self.entries)
