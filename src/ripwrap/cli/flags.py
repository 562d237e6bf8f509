"""Flags of several commands: patterns, modes, output, and where they look; and options in error messages as flags."""

import os
import stat
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, cast

from ripwrap._text import plural, shown
from ripwrap.cli.command import GROUPS, RIPWRAP, STDIN, Option, Texts, flag_name, negated
from ripwrap.cli.terminal import When
from ripwrap.errors import Hint, RipwrapError, combination_error, spell_error
from ripwrap.options import FileOptions, SearchOptions

if TYPE_CHECKING:
    from ripwrap.places.where import PlacedSearchOptions, PlaceOptions
    from ripwrap.remote import Host

OUTPUT = GROUPS["output"]

Json = Annotated[bool, Option("Print JSON, one value a line", OUTPUT, names=("--jsonl", "--json"))]
Limit = Annotated[int | None, Option("Maximum number of results in total", OUTPUT, "NUM")]
ResultLimit = Annotated[int | None, Option("Maximum number of results", OUTPUT, "NUM")]
CoverageFlag = Annotated[bool, Option("Also print how many files were searched", OUTPUT)]
Color = Annotated[When, Option("Color: auto, always, never or ansi (as always)", OUTPUT, "WHEN")]
Cwd = Annotated[str, Option("Run as if ripwrap was started in DIR", RIPWRAP, "DIR")]
RgPath = Annotated[str | None, Option("rg to run, a path or a name in $PATH", RIPWRAP, "PATH")]
EmbedderName = Annotated[str | None, Option("Embedding model, e.g. `wordllama`", value="NAME", default="none")]
HybridWeight = Annotated[float | None, Option("Weight of embeddings, 0 to 1", value="NUM", default="0.34")]
AllPaths = Annotated[str, Option("Files and directories to search [default: all]")]
Pattern = Annotated[str, Option("Regular expression to search for")]


@dataclass(frozen=True)
class RunOptions:
    """Options `--json`, `--cwd` and `--rg` of the commands that run rg in a directory."""

    json: Json = False
    cwd: Cwd = "."
    rg: RgPath = None


@dataclass(frozen=True)
class StreamOptions(RunOptions):
    """Options of `RunOptions`, and those of rg that change what is written when and to where."""

    no_messages: Annotated[bool, Option("Do not print which paths cannot be read", OUTPUT, off=("--messages",))] = False
    line_buffered: Annotated[
        bool,
        Option(
            "Write each result at once", OUTPUT, off=("--no-line-buffered", "--block-buffered", "--no-block-buffered")
        ),
    ] = False
    no_config: Annotated[bool, Option("Accepted; files of rg's options are never read", RIPWRAP)] = False


STREAMS = StreamOptions()

NOT_FOR_REPLACE = ("invert_match", "passthru", "replace", "no_line_number")
"""Options of `ripwrap search` that `ripwrap replace` does not have."""

_COMMANDS = {
    "undo": "ripwrap undo",
    "refresh": "ripwrap index build",
    "prune": "ripwrap index prune",
    "file_types": "ripwrap types",
    "scan": "ripwrap scan",
    "ripwrap.binary.install": "ripwrap install",
    "host.install": "ripwrap install --on HOST",
}
"""Command that error messages name in place of a function of the library."""

_ARGUMENTS = {
    "path": "FILE",
    "paths": "PATHS",
    "roots": "--root DIR",
    "repositories": "--repository",
    "where": "standard input (-)",
}
"""Text that error messages have in place of an argument of the library that has no flag of the same name.

The text names a positional argument or another flag.
"""

_LIBRARY_ONLY = ("program", "source")
"""Arguments of the library that the command line does not have."""


def spell_as_flag(hint: Hint) -> str | None:
    """Return the text of a hint for a user of the command line; `None` if no flag or command does the same."""
    if hint.kind == "install":
        return str(hint)
    if hint.option in _LIBRARY_ONLY:
        return None
    option = _ARGUMENTS.get(hint.option, flag_name(hint.option)) if hint.option else ""
    valued = hint.kind not in ("omit", "correct") and hint.value is not None and hint.value is not True
    if option and valued and hint.option not in _ARGUMENTS:
        option = negated(option) if hint.value is False else f"{option}={hint.value}"
    if hint.kind != "call":
        return option
    command = _COMMANDS.get(hint.target)
    return None if command is None else f"`{f'{command} {option}'.rstrip()}`"


def parse_host(on: str | None) -> "Host | None":
    """Return the host that `--on` names, or None without `--on`."""
    if on is None:
        return None
    from ripwrap import remote  # late: few searches need it

    try:
        return remote.parse_host(on)
    except ValueError as error:
        text = spell_error(error, spell_as_flag)
        raise ValueError(text if text.startswith("--on ") else f"--on {on}: {error}") from None


MANY = "Options for many roots"
PATTERN = GROUPS["pattern"]


@dataclass(frozen=True)
class PatternFlags:
    """Flags `-e` and `-f`: several patterns. With one of them, there is no argument PATTERN."""

    regexp: Annotated[Texts, Option("Search for this pattern; may be repeated", PATTERN, "PATTERN", short="e")] = ()
    file: Annotated[
        Texts, Option("Search for the patterns in FILE, one a line; - is stdin", PATTERN, "FILE", short="f")
    ] = ()

    def of(self, pattern: str | None, paths: Sequence[str], cwd: str) -> tuple[str | tuple[str, ...], Sequence[str]]:
        """Return the patterns and paths of a search, of which `pattern` and `paths` are the arguments."""
        if not (self.regexp or self.file):
            if pattern is None:
                raise ValueError("PATTERN is missing; see `ripwrap search --help`")
            return pattern, paths
        several = (
            *self.regexp,
            *(one for file in self.file for one in _read_patterns(os.path.normpath(os.path.join(cwd, file)), file)),
        )
        several = several or MATCHES_NOTHING
        return several, paths if pattern is None else (pattern, *paths)


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


Quiet = Annotated[bool, Option("Print nothing; the exit code says if there is a result", OUTPUT, short="q")]


@dataclass(frozen=True)
class ModeFlags:
    """Flags that print something else than lines: paths, counts, or nothing."""

    files_with_matches: Annotated[bool, Option("Print only the paths of files that match", OUTPUT, short="l")] = False
    files_without_match: Annotated[bool, Option("Print only the paths of files without a match", OUTPUT)] = False
    count: Annotated[bool, Option("Print only how many lines match in each file", OUTPUT, short="c")] = False
    count_matches: Annotated[bool, Option("Print only how many matches each file has", OUTPUT)] = False
    quiet: Quiet = False


Null = Annotated[bool, Option("End each path with a NUL byte", OUTPUT, short="0")]


@dataclass(frozen=True)
class LineFlags:
    """Flags that say how lines, paths and counts are printed."""

    line_number: Annotated[bool, Option("Show line numbers", OUTPUT, short="n", default="on")] = False
    with_filename: Annotated[
        bool, Option("Show paths, which is the default", OUTPUT, short="H", off=("--no-filename", "-I"), default="")
    ] = True
    heading: Annotated[bool, Option("Print each path above its lines [default: on a terminal]", OUTPUT)] = False
    no_heading: Annotated[bool, Option("Print each path before its lines [default: in a pipe]", OUTPUT)] = False
    column: Annotated[bool, Option("Show the column of the first match", OUTPUT, off=("--no-column",))] = False
    byte_offset: Annotated[
        bool, Option("Show the offset of each line in bytes", OUTPUT, short="b", off=("--no-byte-offset",))
    ] = False
    only_matching: Annotated[bool, Option("Print only the matched parts of lines", OUTPUT, short="o")] = False
    vimgrep: Annotated[bool, Option("Print a line for each match, with its column", OUTPUT)] = False
    trim: Annotated[bool, Option("Leave out white space at the start of lines", OUTPUT, off=("--no-trim",))] = False
    null: Null = False
    max_columns: Annotated[
        int, Option("Omit lines longer than NUM bytes; 0 is no limit", OUTPUT, "NUM", short="M", default="0")
    ] = 0
    color: Color = "auto"
    pretty: Annotated[bool, Option("Short for --color=always --heading --line-number", OUTPUT, short="p")] = False
    hyperlink_format: Annotated[
        str, Option("Link colored paths: default, file, vscode, … or URL", OUTPUT, "FORMAT", default="")
    ] = "none"
    stats: Annotated[bool, Option("Also print statistics of the search", OUTPUT, off=("--no-stats",))] = False

    def options(self, given: SearchOptions) -> SearchOptions:
        """Return the options of the library, of which `given` are those on the command line."""
        return {**given, "no_line_number": False} if self.line_number else given


PLAIN = LineFlags()


@dataclass(frozen=True)
class SearchRun(StreamOptions):
    """Options of `StreamOptions`, of which `--json` has another meaning, and `--jsonl`."""

    json: Annotated[bool, Option("Print JSON, one value a line", OUTPUT, names=("--jsonl",))] = False
    records: Annotated[bool, Option("Print the JSON of `rg --json`", OUTPUT, names=("--json",))] = False


@dataclass(frozen=True)
class NearOptions:
    """Options `--near` and `--within`, which drop matches that are not near a match of every `--near` pattern."""

    near: Annotated[Texts, Option("Only lines near a match of this pattern; may be repeated", RIPWRAP, "PATTERN")] = ()
    within: Annotated[int | None, Option("Maximum distance for --near, in lines", RIPWRAP, "NUM", default="5")] = None

    def asked(self) -> bool:
        """Return True if `--near` was given; raise `ValueError` if `--within` was given without it."""
        if self.within is not None and not self.near:
            raise ValueError("--within needs --near; add --near, or leave --within out")
        return bool(self.near)


@dataclass(frozen=True)
class ManyRoots:
    """Options of a search in many roots (directories)."""

    repositories: Annotated[Texts, Option("Search each directory that matches; may be repeated", MANY, "GLOB")] = ()
    only_root: Annotated[Texts, Option("Only roots whose name or path matches; may be repeated", MANY, "GLOB")] = ()
    exclude_root: Annotated[
        Texts, Option("Leave out roots whose name or path matches; may be repeated", MANY, "GLOB")
    ] = ()
    per_root: Annotated[int | None, Option("Maximum number of matches of each root", MANY, "NUM")] = None
    dask: Annotated[str | None, Option("Search on the Dask cluster with this scheduler", MANY, "ADDRESS")] = None

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


@dataclass(frozen=True)
class TerminalSearch:
    """Search of the command line."""

    pattern: str | tuple[str, ...]
    paths: Sequence[str]
    run: SearchRun
    lines: LineFlags
    limit: int | None
    options: "PlacedSearchOptions"


PLACES = "Options for places"

MAX_STDIN_BYTES = 1 << 30
"""Maximum number of bytes of standard input, which is read into memory."""


@dataclass(frozen=True)
class PlaceFlags:
    """Flags `--rev`, `--repository`, `--inside` and `--on`: the options `PlaceOptions` of the library."""

    rev: Annotated[str | None, Option("Read this revision of git, e.g. main~3", PLACES, "REV")] = None
    repository: Annotated[
        Texts | None, Option("With a revision, refuse repositories outside of DIR", PLACES, "DIR")
    ] = None
    inside: Annotated[str, Option("Read inside of files: zip,tar,gz,ipynb,pdf,docx,xlsx,…", PLACES, "FORMATS")] = ""
    search_zip: Annotated[
        bool, Option("Read inside of gz, bz2, xz and zst files", PLACES, short="z", off=("--no-search-zip",))
    ] = False
    on: Annotated[
        str | None, Option("Host: ssh:HOST[:DIR], docker:NAME[:DIR] or podman:NAME[:DIR]", PLACES, "HOST")
    ] = None

    def options(self) -> "PlaceOptions":
        """Return the options of the library."""
        if self.repository is not None and self.rev is None:
            raise ValueError("--repository needs a revision; add --rev, or leave --repository out")
        formats = (
            *(one.strip() for one in (self.inside.split(",") if self.inside else ())),
            *(_compressions() if self.search_zip else ()),
        )
        given = {"rev": self.rev, "repositories": self.repository, "inside": formats or None, "on": parse_host(self.on)}
        return cast("PlaceOptions", {name: value for name, value in given.items() if value is not None})

    def of(self, paths: Sequence[str], options: SearchOptions) -> "tuple[Sequence[str], PlacedSearchOptions]":
        """Return the paths of a search and all of its options; the path `-` is standard input.

        As in rg, options that choose files have no effect on standard input.
        """
        if STDIN not in paths:
            return paths, {**options, **self.options()}
        if len(paths) > 1:
            raise combination_error("standard input (-)", Hint("paths"), "a file with the name - is ./-")
        for name in (name for name in ("rev", "on") if getattr(self, name) is not None):
            raise combination_error("standard input (-)", Hint(name))
        from ripwrap.places.where import Items  # late: few searches need it

        plain = {name: value for name, value in options.items() if name not in FileOptions.__annotations__}
        content = bytearray()  # empty if standard input is closed, as for rg
        while sys.stdin is not None and (chunk := sys.stdin.buffer.read(1 << 20)):
            content += chunk
            if len(content) > MAX_STDIN_BYTES:
                most = plural(MAX_STDIN_BYTES, "byte")
                raise ValueError(f"standard input has more than {most}; save it in a file, and search that")
        given = {**plain, "where": Items([("<stdin>", bytes(content))]), **self.options()}
        return (), cast("PlacedSearchOptions", given)


@dataclass(frozen=True)
class HistoryFlags:
    """Flags `--history` and `--since`, which read all versions of files."""

    history: Annotated[bool, Option("Read all versions of files, up to --rev, or of all refs", PLACES)] = False
    since: Annotated[str | None, Option("With --history, only commits since DATE", PLACES, "DATE")] = None

    def asked(self) -> bool:
        """Return True if `--history` was given; raise `ValueError` if `--since` was given without it."""
        if self.since is not None and not self.history:
            raise ValueError("--since needs --history; add --history, or leave --since out")
        return self.history


def placed(
    place: PlaceFlags, history: HistoryFlags, paths: Sequence[str], options: SearchOptions
) -> "tuple[Sequence[str], PlacedSearchOptions]":
    """Return the paths of a search and all of its options, as `PlaceFlags.of()`, also for a history."""
    if not history.asked():
        return place.of(paths, options)
    from ripwrap.places.where import History  # late: few searches need it

    inside = PlaceFlags(inside=place.inside)
    where = History(**history_options(replace(place, inside=""), history, paths))
    return paths, {**options, "where": where, **inside.options()}


def refuse_together(what: str, others: Mapping[str, object]) -> None:
    """Raise `ValueError` if an option was given with which the library has no such operation."""
    for name, value in others.items():
        if value:
            raise combination_error(name, Hint(what))


def history_options(place: PlaceFlags, history: HistoryFlags, paths: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of the library's search in a history."""
    refuse_together("history", {"where": STDIN in paths, "inside": place.inside, "on": place.on})
    rev = "HEAD" if place.rev is None else place.rev
    return {"rev": rev, "since": history.since, "repositories": place.repository}


def stdin_is_pipe() -> bool:
    """Return True if standard input is a pipe, a file or a socket, which rg searches if it is given no PATH.

    `is_readable_stdin()` of rg (`crates/cli/src/lib.rs`) decides in the same way.
    """
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):  # there is no stdin, or it is closed
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def _compressions() -> tuple[str, ...]:
    """Return the formats of compressed files that this Python reads; rg leaves out those that it cannot read, too."""
    from ripwrap.sources.archives import check_inside  # late: few searches need it

    with suppress(RipwrapError):
        return check_inside(("gz", "bz2", "xz", "zst"))
    return "gz", "bz2", "xz"
