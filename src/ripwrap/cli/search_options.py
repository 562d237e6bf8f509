"""Options that `ripwrap search` has besides those of the library: patterns, modes, output, and other ways to search."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from ripwrap._text import shown
from ripwrap.cli.declarations import FlagGroup, Parameter
from ripwrap.cli.flags import GROUPS, RIPWRAP, STDIN, Color, RunOptions, check_limit, output_flag
from ripwrap.options import SearchOptions

if TYPE_CHECKING:
    from ripwrap.places.where import PlacedSearchOptions

MANY = FlagGroup("Options for many roots", sort_key=7)


def _flag(help: str, metavar: str) -> Parameter:  # noqa: A002 - cyclopts' name
    return Parameter(group=MANY, negative=(), help=help, metavar=metavar, show_default=False)


def _pattern_flag(help: str, alias: str, metavar: str) -> Parameter:  # noqa: A002 - cyclopts' name
    return Parameter(group=GROUPS["pattern"], negative=(), alias=alias, metavar=metavar, show_default=False, help=help)


@Parameter(name="*")
@dataclass(frozen=True)
class PatternFlags:
    """Flags `-e` and `-f`: several patterns. With one of them, there is no argument PATTERN."""

    regexp: Annotated[tuple[str, ...], _pattern_flag("Search for this pattern; may be repeated", "-e", "PATTERN")] = ()
    file: Annotated[
        tuple[str, ...], _pattern_flag("Search for the patterns in FILE, one a line; - is stdin", "-f", "FILE")
    ] = ()

    def of(self, pattern: str | None, paths: Sequence[str], cwd: str) -> tuple[str | tuple[str, ...], Sequence[str]]:
        """Return the patterns and paths of a search, of which `pattern` and `paths` are the arguments.

        Raises:
            ValueError: There is no pattern, or a file is not UTF-8.
            OSError: A file cannot be read.
        """
        if self == NO_PATTERNS:
            if pattern is None:
                raise ValueError("PATTERN is missing; see `ripwrap search --help`")
            return pattern, paths
        several = (*self.regexp, *(one for file in self.file for one in _read_patterns(os.path.join(cwd, file), file)))
        several = several or MATCHES_NOTHING
        return several, paths if pattern is None else (pattern, *paths)

    @property
    def reads_stdin(self) -> bool:
        """True if standard input has patterns, and so is not searched."""
        return STDIN in self.file


NO_PATTERNS = PatternFlags()
MATCHES_NOTHING = (r"[^\s\S]",)
"""Patterns of an empty file of patterns; the library takes no empty list."""


def _read_patterns(path: str, name: str) -> list[str]:
    """Return the lines of a file, as rg reads them: without their ends, which may be CRLF."""
    if name == STDIN:
        raw = sys.stdin.buffer.read() if sys.stdin is not None else b""
    else:
        with open(path, "rb") as file:
            raw = file.read()
    lines = raw.removesuffix(b"\n").split(b"\n") if raw else []
    try:
        return [line.removesuffix(b"\r").decode() for line in lines]
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{shown(name)}: a pattern in it is not UTF-8; to search for a byte, write it as (?-u:\\xff)"
        ) from error


def _switch(help: str, alias: str | tuple[str, ...] = ()) -> Parameter:  # noqa: A002 - cyclopts' name
    return output_flag(help, alias=alias, show_default=False)


@Parameter(name="*")
@dataclass(frozen=True)
class ModeFlags:
    """Flags that print something else than lines: paths, counts, or nothing."""

    files_with_matches: Annotated[bool, _switch("Print only the paths of files that match", "-l")] = False
    files_without_match: Annotated[bool, _switch("Print only the paths of files without a match")] = False
    count: Annotated[bool, _switch("Print only how many lines match in each file", "-c")] = False
    count_matches: Annotated[bool, _switch("Print only how many matches each file has")] = False
    quiet: Annotated[bool, _switch("Print nothing; the exit code says if there is a match", "-q")] = False


def _either(help: str, name: str, *others: str, letter: str = "") -> Parameter:  # noqa: A002 - cyclopts' name
    names = [name, letter] if letter else [name]
    return Parameter(group=GROUPS["output"], name=names, negative=others, show_default=False, help=help)


Null = Annotated[bool, _switch("End each path with a NUL byte", "-0")]


@Parameter(name="*")
@dataclass(frozen=True)
class LineFlags:
    """Flags that say how lines, paths and counts are printed."""

    line_number: Annotated[bool, output_flag("Show line numbers", alias="-n", show_default="on")] = False
    with_filename: Annotated[
        bool, _either("Show paths, which is the default", "--with-filename", "--no-filename", "-I", letter="-H")
    ] = True
    heading: Annotated[bool, _switch("Print each path above its lines [default: on a terminal]")] = False
    no_heading: Annotated[bool, _switch("Print each path before its lines [default: in a pipe]")] = False
    column: Annotated[bool, _either("Show the column of the first match", "--column", "--no-column")] = False
    byte_offset: Annotated[
        bool, _either("Show the offset of each line in bytes", "--byte-offset", "--no-byte-offset", letter="-b")
    ] = False
    only_matching: Annotated[bool, _switch("Print only the matched parts of lines", "-o")] = False
    vimgrep: Annotated[bool, _switch("Print a line for each match, with its column")] = False
    trim: Annotated[bool, _either("Leave out white space at the start of lines", "--trim", "--no-trim")] = False
    null: Null = False
    max_columns: Annotated[
        int,
        output_flag(
            "Omit lines longer than NUM bytes; 0 is no limit", alias="-M", metavar="NUM", validator=check_limit
        ),
    ] = 0
    color: Color = "auto"
    hyperlink_format: Annotated[
        str, output_flag("Link colored paths: default, file, vscode, … or URL", metavar="FORMAT", show_default=False)
    ] = "none"
    stats: Annotated[bool, _either("Also print statistics of the search", "--stats", "--no-stats")] = False

    def options(self, given: SearchOptions) -> SearchOptions:
        """Return the options of the library, of which `given` are those on the command line."""
        return {**given, "no_line_number": False} if self.line_number else given


PLAIN = LineFlags()
LINES = ModeFlags()


@Parameter(name="*")
@dataclass(frozen=True)
class SearchRun(RunOptions):
    """Options `--jsonl`, `--json`, `--cwd` and `--rg` of a search."""

    json: Annotated[bool, output_flag("Print JSON, one value a line", name="--jsonl", show_default=False)] = False
    records: Annotated[bool, output_flag("Print the JSON of `rg --json`", name="--json", show_default=False)] = False


@Parameter(name="*")
@dataclass(frozen=True)
class NearOptions:
    """Options `--near` and `--within`, which drop matches that are not near a match of every `--near` pattern."""

    near: Annotated[
        tuple[str, ...],
        Parameter(
            group=RIPWRAP,
            negative=(),
            metavar="PATTERN",
            show_default=False,
            help="Only lines near a match of this pattern; may be repeated",
        ),
    ] = ()
    within: Annotated[
        int | None,
        Parameter(
            group=RIPWRAP,
            metavar="NUM",
            help="Maximum distance for --near, in lines",
            show_default="5",
            validator=check_limit,
        ),
    ] = None

    def asked(self) -> bool:
        """Return True if `--near` was given; raise `ValueError` if `--within` was given without it."""
        if self.within is not None and not self.near:
            raise ValueError("--within needs --near; add --near, or leave --within out")
        return bool(self.near)


@Parameter(name="*")
@dataclass(frozen=True)
class ManyRoots:
    """Options of a search in many roots (directories)."""

    repositories: Annotated[tuple[str, ...], _flag("Search each directory that matches; may be repeated", "GLOB")] = ()
    only_root: Annotated[tuple[str, ...], _flag("Only roots whose name or path matches; may be repeated", "GLOB")] = ()
    exclude_root: Annotated[
        tuple[str, ...], _flag("Leave out roots whose name or path matches; may be repeated", "GLOB")
    ] = ()
    per_root: Annotated[
        int | None,
        Parameter(
            group=MANY,
            negative=(),
            help="Maximum number of matches of each root",
            metavar="NUM",
            validator=check_limit,
        ),
    ] = None
    dask: Annotated[str | None, _flag("Search on the Dask cluster with this scheduler", "ADDRESS")] = None

    def asked(self) -> bool:
        """Return True if `--repositories` was given; raise `ValueError` if a flag needs it, and it was not given."""
        given = {
            "--only-root": self.only_root,
            "--exclude-root": self.exclude_root,
            "--per-root": self.per_root,
            "--dask": self.dask,
        }
        lone = [name for name, value in given.items() if value not in (None, ())]
        if lone and not self.repositories:
            raise ValueError(f"{lone[0]} needs --repositories; add --repositories, or leave {lone[0]} out")
        return bool(self.repositories)


NO_NEAR, NO_ROOTS, IN_CWD = NearOptions(), ManyRoots(), SearchRun()


@dataclass(frozen=True)
class TerminalSearch:
    """Search of the command line.

    Attributes:
        pattern: Regular expression, or several.
        paths: Files and directories to search; without one, all.
        run: Directory to search in, rg, and if results are printed as JSON.
        lines: How lines are printed.
        limit: Maximum number of results; `None` is no limit.
        options: Options of the search, and of the place in which it looks.
    """

    pattern: str | tuple[str, ...]
    paths: Sequence[str]
    run: SearchRun
    lines: LineFlags
    limit: int | None
    options: "PlacedSearchOptions"
