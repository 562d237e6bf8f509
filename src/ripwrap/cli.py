"""The command line: `search`, `files`, `tree`, `doctor` and `install`, with the options as flags and rg's exit codes.

A terminal gets groups and colours, a pipe plain lines with the files' own bytes, `--json` the models, one a line.
"""

import io
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, Self, TypeVar, Unpack, get_type_hints

from cyclopts import App, Parameter
from pydantic import BaseModel, TypeAdapter, ValidationError
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn
from rich.text import Text
from typing_extensions import TypedDict

from ripwrap import binary, sync
from ripwrap._text import FsPath, raw_bytes
from ripwrap.binary.resolver import how_to_install
from ripwrap.errors import RipwrapError
from ripwrap.models import Begin, Context, End, Match, Message, Summary, TreeEntry
from ripwrap.options import FileOptions, Flag, SearchOptions, Strings

Function = TypeVar("Function", bound=Callable[..., Any])
Item = TypeVar("Item")

FOUND, NOTHING, FAILED = 0, 1, 2

Json = Annotated[bool, Parameter(help="Print JSON, one value a line.", negative=())]
Cwd = Annotated[str, Parameter(help="The directory to start from.")]
Limit = Annotated[int | None, Parameter(help="How many results at most, over all files.")]
RgPath = Annotated[str | None, Parameter(help="Which rg to run.")]

app: App = App(name="ripwrap", help="ripgrep, typed: search and list files.")
_paths = TypeAdapter[str](FsPath)


def run(arguments: list[str] | None = None) -> int:
    """Run a command; its exit code is rg's: 0 found, 1 nothing, 2 an error; 130 if interrupted."""
    for stream in (sys.stdout, sys.stderr):  # A console of few letters shows a question mark for the others.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    if sys.stderr is None:  # closed; `print` would write complaints into stdout
        sys.stderr = io.StringIO()
    if sys.stdout is None:
        _complain("stdout is closed: there is nowhere to print to")
        return FAILED
    try:
        code: int | None = app(arguments, result_action="return_value")
        sys.stdout.flush()
    except BrokenPipeError:  # Who reads has seen enough; what is still buffered goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FOUND
    except ValidationError as error:
        for problem in error.errors():
            _complain(f"--{str(problem['loc'][0]).replace('_', '-')}: {problem['msg']}")
        return FAILED
    except (RipwrapError, ValueError, OSError) as error:
        _complain("\n".join((str(error), *getattr(error, "__notes__", ()))))
        return FAILED
    return code or FOUND


def _flags(options: type[FileOptions]) -> Callable[[Function], Function]:
    """Give a command's `**options` the flags of a TypedDict: rg's names, letters, negations and our help."""

    def decorate(function: Function) -> Function:
        hints = get_type_hints(options, include_extras=True)
        named = {key: _parameter(key, hint) for key, hint in hints.items()}
        # Made at run time, so no checker can see its keys; they see `Unpack[SearchOptions]` in the signature.
        flags: Any = TypedDict("flags", named, total=False)  # type: ignore[misc]  # pyright: ignore[reportArgumentType]
        function.__annotations__["options"] = Unpack[flags]
        return function

    return decorate


def _parameter(key: str, hint: Any) -> Any:
    flag = next(mark for mark in hint.__metadata__ if isinstance(mark, Flag))
    name = "--" + key.replace("_", "-")
    negative = name.replace("--no-", "--", 1) if name.startswith("--no-") else name.replace("--", "--no-", 1)
    names = [name, f"-{flag.short}"] if flag.short else [name]
    kind = list[str] if hint.__origin__ == Strings else hint.__origin__
    text = flag.help + " (On by default.)" if flag.default else flag.help
    return Annotated[kind, Parameter(name=names, help=text, negative=negative if kind is bool else ())]


@app.command
@_flags(SearchOptions)
def search(
    pattern: str,
    /,
    *paths: str,
    cwd: Cwd = ".",
    limit: Limit = None,
    rg: RgPath = None,
    json: Json = False,
    **options: Unpack[SearchOptions],
) -> int:
    """Search files for a regular expression.

    Parameters
    ----------
    pattern
        A regular expression; write -- before one that begins with a dash.
    paths
        Files and directories to search instead of all of the directory.
    """
    messages = sync.search_messages(pattern, cwd=cwd, paths=paths, limit=limit, rg=rg, **options)
    if json:
        return _print_all(messages, _print_json, Match)
    return _print_all(messages, _Grouped() if sys.stdout.isatty() else _Plain(), Match)


@app.command
@_flags(FileOptions)
def files(
    *paths: str,
    cwd: Cwd = ".",
    limit: Limit = None,
    rg: RgPath = None,
    json: Json = False,
    **options: Unpack[FileOptions],
) -> int:
    """List the files that a search would look into.

    Parameters
    ----------
    paths
        Files and directories to list instead of all of the directory.
    """
    listing = sync.files(cwd=cwd, paths=paths, limit=limit, rg=rg, **options)
    return _print_all(listing, _print_json if json else _print_path, str)


@app.command
@_flags(FileOptions)
def tree(
    *,
    cwd: Cwd = ".",
    limit: Limit = 50,
    exclude: tuple[str, ...] = (".opencode",),
    rg: RgPath = None,
    json: Json = False,
    **options: Unpack[FileOptions],
) -> int:
    """Show files as a tree, with a little of every directory.

    Parameters
    ----------
    exclude
        Names of files and directories to leave out.
    """
    entries = sync.tree(cwd=cwd, limit=limit, exclude=exclude, rg=rg, **options)
    return _print_all(entries, _print_json if json else _print_entry, TreeEntry)


@app.command
def doctor(*, rg: RgPath = None) -> int:
    """Show which rg is used, what it can do, and every place that was looked at."""
    console = Console(highlight=False, soft_wrap=True)
    places = binary.explain(rg)
    for place in places:
        mark = Text("✓ " if place.usable else "✗ ", "green" if place.usable else "dim")
        console.print(Text.assemble(mark, (place.source, "bold"), " ", _shown(place.path), ": ", place.reason))
    if places[-1].source == "download" and not any(place.usable for place in places):
        # Nothing is downloaded only to be looked at.
        _complain(
            f"there is no rg yet; `ripwrap install` downloads one, or install it, for instance:\n{how_to_install()}"
        )
        return FAILED
    found = sync.resolve(rg)
    version = ".".join(map(str, found.version))
    features = ", ".join(sorted(found.features)) or "none"
    console.print(
        Text.assemble(("rg ", "bold"), (version, "bold green"), f", features: {features}\n{_shown(found.path)}")
    )
    return FOUND


@app.command
def install(
    version: str | None = None,
    /,
    *,
    dest: str | None = None,
    mirror: list[str] | None = None,
    sha256: str | None = None,
    allow_unpinned: bool = False,
    timeout: float = 120.0,
) -> int:
    """Download a verified rg into the cache, or into a folder.

    Parameters
    ----------
    version
        The release, e.g. 15.2.0.
    dest
        A folder to put the program into, e.g. of a container image; else it is the cache.
    mirror
        Base addresses in place of GitHub's, each with {version}/{asset} below it.
    sha256
        The hash of an archive of the mirror's own.
    allow_unpinned
        Check a version without a pin against the .sha256 file that is published beside it.
    timeout
        Seconds for all of it.
    """
    with _Progress() as progress:
        found = sync.install(
            version,
            dest=dest,
            mirrors=mirror,
            sha256=sha256,
            allow_unpinned=allow_unpinned,
            timeout=timeout,
            progress=progress,
        )
    state = "installed" if found.source == "download" else "is there already"
    print(f"rg {'.'.join(map(str, found.version))} {state}: {_shown(found.path)}")
    return FOUND


class _Progress:
    """A bar on a terminal, else a line at the start and none after."""

    def __init__(self) -> None:
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            console=Console(stderr=True),
        )
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        if self._bar.console.is_terminal:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar.console.is_terminal:
            self._bar.stop()

    def __call__(self, done: int, total: int | None) -> None:
        if self._task is None:
            self._task = self._bar.add_task("downloading rg", total=total)
            if not self._bar.console.is_terminal:
                print(f"downloading rg ({total or 'unknown'} bytes)", file=sys.stderr)
        self._bar.update(self._task, completed=done, total=total)


def _print_all(items: Iterable[Item], show: Callable[[Any], None], wanted: type) -> int:
    """Print what comes; found is what is of the wanted kind, and what rg could not read makes it a failure."""
    logger, warned = logging.getLogger("ripwrap"), _Warned()
    logger.addHandler(warned)
    try:
        found = failed = False
        for item in items:
            show(item)
            found = found or isinstance(item, wanted)
            failed = (isinstance(item, Summary) and _complain_about(item)) or failed
    finally:
        logger.removeHandler(warned)
    return FAILED if failed or warned.any else FOUND if found else NOTHING


def _complain_about(summary: Summary) -> bool:
    for error in summary.errors:
        _complain(str(error))
    if summary.dropped_records:
        _complain(f"matching lines that were too long and left out: {summary.dropped_records}")
    return bool(summary.errors or summary.dropped_records)


class _Warned(logging.Handler):
    """Says what the library logs where there is no summary to look at, and remembers that it did."""

    any = False

    def emit(self, record: logging.LogRecord) -> None:
        self.any = True
        _complain(record.getMessage())


def _complain(text: str) -> None:
    if sys.stdout is not None:
        sys.stdout.flush()
    print(f"ripwrap: {text}", file=sys.stderr)


def _print_json(item: BaseModel | str) -> None:
    _write((item.model_dump_json().encode() if isinstance(item, BaseModel) else _paths.dump_json(item)) + b"\n")


def _print_path(path: str) -> None:
    _write(os.fsencode(path) + b"\n")


def _print_entry(entry: TreeEntry) -> None:
    _write(os.fsencode(str(entry)) + b"\n")


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line)


def _shown(path: str) -> str:
    """A path that any terminal can print."""
    return os.fsencode(path).decode("utf-8", "replace")


def _numbered(message: Match | Context) -> Iterator[tuple[int | None, bytes]]:
    """The lines of a message, each with its number, without its terminator."""
    text = message.replaced() if isinstance(message, Match) else message.lines
    for offset, line in enumerate(raw_bytes(text).removesuffix(b"\n").split(b"\n")):
        yield None if message.line_number is None else message.line_number + offset, line


def _warn_of_binary(message: Message) -> None:
    """As rg does of a file that it stopped searching at its first NUL byte."""
    if isinstance(message, End) and message.binary_offset is not None:
        where = _shown(message.path or "<stdin>")
        _complain(f"{where}: stopped at the NUL byte at offset {message.binary_offset}; --text searches all of it")


class _Gaps:
    """Whether lines are missing before a message: rg says so with `--`, in JSON only the numbers tell (rg-facts 18)."""

    def __init__(self) -> None:
        self._context = False
        self._next: int | None = None

    def before(self, message: Message) -> bool:
        if isinstance(message, Begin):
            self._next = None
        if not isinstance(message, (Match, Context)) or message.line_number is None:
            return False
        self._context = self._context or isinstance(message, Context)
        gap = self._context and self._next not in (None, message.line_number)
        self._next = message.line_number + message.raw_lines.removesuffix(b"\n").count(b"\n") + 1
        return gap


class _Plain:
    """`path:number:line`, context `path-number-line`, as rg writes into a pipe, with the files' own bytes."""

    def __init__(self) -> None:
        self._gaps = _Gaps()

    def __call__(self, message: Message) -> None:
        _warn_of_binary(message)
        if self._gaps.before(message):
            _write(b"--\n")
        if isinstance(message, (Match, Context)):
            mark = b":" if isinstance(message, Match) else b"-"
            path = os.fsencode(message.path or "<stdin>")
            for number, line in _numbered(message):
                _write(b"%b%b%d%b%b\n" % (path, mark, number or 0, mark, line))


class _Grouped:
    """A heading for each file, then its lines, coloured as rg does."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, soft_wrap=True)
        self._gaps = _Gaps()
        self._files = 0

    def __call__(self, message: Message) -> None:
        _warn_of_binary(message)
        if isinstance(message, Begin):
            self._heading(message)
        elif self._gaps.before(message):
            self._console.print("--")
        if isinstance(message, (Match, Context)):
            self._lines(message)

    def _heading(self, begin: Begin) -> None:
        self._gaps.before(begin)
        heading = Text(_shown(begin.path or "<stdin>"), "magenta")
        self._console.print(Text("\n").append_text(heading) if self._files else heading)
        self._files += 1

    def _lines(self, message: Match | Context) -> None:
        text = Text(message.replaced() if isinstance(message, Match) else message.lines)
        if isinstance(message, Match) and all(hit.replacement is None for hit in message.submatches):
            for start, end in message.spans():
                text.stylize("bold red", start, end)
        text.remove_suffix("\n")
        mark = ":" if isinstance(message, Match) else "-"
        for offset, line in enumerate(text.split("\n", allow_blank=True)):
            self._console.print(Text.assemble((str((message.line_number or 0) + offset), "green"), mark, line))
