"""What the command line prints: models as lines for a terminal, a pipe or a program, and complaints beside them."""

import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from pydantic import BaseModel, TypeAdapter
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.text import Text

from ripwrap._message import plural
from ripwrap._rich import heading, numbered_lines
from ripwrap._text import FsPath, raw_bytes, shown
from ripwrap.models import Begin, Context, End, Match, Message, Summary, TreeEntry
from ripwrap.render import Gaps
from ripwrap.results import RankedChunk

if TYPE_CHECKING:
    from ripwrap.index import Progress as Done
    from ripwrap.index import Refreshed

Item = TypeVar("Item")

FOUND, NOTHING, FAILED = 0, 1, 2
"""Exit codes, as rg's."""

_SNIPPET = 6  # Lines of a ranked place that are shown.
_WIDTH = 200  # Characters of each.

_paths = TypeAdapter[str](FsPath)


def print_all(items: Iterable[Item], show: Callable[[Any], None], wanted: type, *, lenient: bool = False) -> int:
    """Print what comes; found is what is of the wanted kind.

    What could not be read is said on stderr, and makes it a failure unless it is lenient.
    """
    logger, warned = logging.getLogger("ripwrap"), _Warned(logging.WARNING)
    logger.addHandler(warned)
    try:
        found = failed = False
        for item in items:
            show(item)
            found = found or isinstance(item, wanted)
            failed = (isinstance(item, Summary) and _complain_about(item)) or failed
    finally:
        logger.removeHandler(warned)
    return FAILED if failed or (warned.any and not lenient) else FOUND if found else NOTHING


def _complain_about(summary: Summary) -> bool:
    for error in summary.errors:
        complain(str(error))
    if summary.dropped_records:
        complain(f"matching lines that were too long and left out: {summary.dropped_records}")
    return bool(summary.errors or summary.dropped_records)


class _Warned(logging.Handler):
    """Says what the library logs where there is no summary to look at, and remembers that it did."""

    any = False

    def emit(self, record: logging.LogRecord) -> None:
        self.any = self.any or not getattr(record, "mended", False)
        complain(record.getMessage())


def complain(text: str) -> None:
    """Say what is wrong on stderr, in its place among what was printed."""
    if sys.stdout is not None:
        sys.stdout.flush()
    print(f"ripwrap: {text}", file=sys.stderr)


def print_json(item: BaseModel | str) -> None:
    """As one line of JSON."""
    _write((item.model_dump_json().encode() if isinstance(item, BaseModel) else _paths.dump_json(item)) + b"\n")


def print_path(path: str) -> None:
    """As its own bytes."""
    _write(os.fsencode(path) + b"\n")


def print_entry(entry: TreeEntry) -> None:
    """As its line."""
    _write(os.fsencode(str(entry)) + b"\n")


def print_place(place: RankedChunk) -> None:
    """As where it is and why, and its first lines below that, each with its number; into a pipe with its own bytes."""
    if not sys.stdout.isatty():
        _print_plain(place)
        return
    console = Console(highlight=False, soft_wrap=True)
    where = f"{shown(place.path)}:{place.start_line}-{place.end_line}"
    symbol = f"  {shown(place.symbol)}" if place.symbol else ""
    console.print(Text.assemble((where, "magenta"), (symbol, "bold"), f"  {place.score:.2f}"))
    console.print(Text("  " + "; ".join(place.reasons), "dim"))
    lines = place.text.removesuffix("\n").split("\n")
    for number, line in enumerate(lines[:_SNIPPET], place.start_line):
        console.print(Text.assemble((f"  {number}", "green"), ":", line.removesuffix("\r")[:_WIDTH]))
    if len(lines) > _SNIPPET:
        console.print(Text(f"  … {len(lines) - _SNIPPET} more lines", "dim"))
    console.print()


def _print_plain(place: RankedChunk) -> None:
    symbol = b"  %b" % raw_bytes(place.symbol) if place.symbol else b""
    where = b"%b:%d-%d" % (os.fsencode(place.path), place.start_line, place.end_line)
    _write(b"%b%b  %.2f\n  %b\n" % (where, symbol, place.score, os.fsencode("; ".join(place.reasons))))
    lines = raw_bytes(place.text).removesuffix(b"\n").split(b"\n")
    for number, line in enumerate(lines[:_SNIPPET], place.start_line):
        _write(b"  %d:%b\n" % (number, _beginning(line.removesuffix(b"\r"))))
    if len(lines) > _SNIPPET:
        _write(f"  … {len(lines) - _SNIPPET} more lines\n".encode())
    _write(b"\n")


def _beginning(line: bytes) -> bytes:
    return line.decode("utf-8", "surrogateescape")[:_WIDTH].encode("utf-8", "surrogateescape")


def print_refreshed(done: "Refreshed") -> None:
    """As one line."""
    said = f"{done.added} added, {done.changed} changed, {done.removed} removed, {done.unchanged} unchanged"
    said += f"; {plural(done.chunks, 'chunk')} in {done.seconds:.1f} seconds"
    if done.embedded:
        said += f"; {plural(done.embedded, 'text')} embedded"
    said += "".join(f"; {plural(one.texts, 'text')} not embedded: {one.message}" for one in done.failed)
    if done.skipped:
        said += f"; left out: {', '.join(f'{one.files} {one.reason}' for one in done.skipped)}"
    if done.cut:
        said += f"; {plural(done.cut, 'file')} of more than a million bytes cut there"
    print(said)


def print_about(model: BaseModel) -> None:
    """As a line for each field that says something: its name, and what it says."""
    for name, value in model:
        if value not in (None, (), ""):
            line = f"{name.replace('_', ' ')}: {_said(value)}"
            print(shown(line)) if sys.stdout.isatty() else _write(os.fsencode(f"{line}\n"))


def _said(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return "; ".join(map(_said, cast("tuple[object, ...]", value)))
    if isinstance(value, BaseModel):
        return ", ".join(f"{name} {_said(one)}" for name, one in value if one not in (None, (), ""))
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line)


def _numbered(message: Match | Context) -> Iterator[tuple[int | None, bytes]]:
    """The lines of a message, each with its number, without its terminator."""
    text = message.replaced() if isinstance(message, Match) else message.lines
    for offset, line in enumerate(raw_bytes(text).removesuffix(b"\n").split(b"\n")):
        yield None if message.line_number is None else message.line_number + offset, line


def _warn_of_binary(message: Message) -> None:
    """As rg does of a file that it may have left at its first NUL byte."""
    if isinstance(message, End) and message.binary_offset is not None:
        where = shown(message.path or "<stdin>")
        complain(
            f"{where}: taken for binary, from the NUL byte at offset {message.binary_offset}; --text searches all of it"
        )


class Plain:
    """`path:number:line`, context `path-number-line`, as rg writes into a pipe, with the files' own bytes."""

    def __init__(self) -> None:
        self._gaps = Gaps()

    def __call__(self, message: Message) -> None:
        _warn_of_binary(message)
        if self._gaps.before(message):
            _write(b"--\n")
        if isinstance(message, (Match, Context)):
            mark = b":" if isinstance(message, Match) else b"-"
            path = os.fsencode(message.path or "<stdin>")
            for number, line in _numbered(message):
                place = b"" if number is None else b"%d%b" % (number, mark)
                _write(b"%b%b%b%b\n" % (path, mark, place, line))


class Grouped:
    """A heading for each file, then its lines, coloured as rg does."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, soft_wrap=True)
        self._gaps = Gaps()
        self._files = 0

    def __call__(self, message: Message) -> None:
        _warn_of_binary(message)
        if isinstance(message, Begin):
            self._heading(message)
        elif self._gaps.before(message):
            self._console.print("--")
        if isinstance(message, (Match, Context)):
            for line in numbered_lines(message):
                self._console.print(line)

    def _heading(self, begin: Begin) -> None:
        self._gaps.before(begin)
        if self._files:
            self._console.print()
        self._console.print(heading(begin.path or "<stdin>"))
        self._files += 1


class DownloadBar:
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


class IndexBar:
    """A bar on a terminal, else nothing; told from a worker thread."""

    def __init__(self) -> None:
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[unit]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._files: TaskID | None = None
        self._texts: TaskID | None = None

    def __enter__(self) -> Self:
        if self._bar.console.is_terminal:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar.console.is_terminal:
            self._bar.stop()

    def __call__(self, done: "Done") -> None:
        if self._files is None:
            self._files = self._bar.add_task("indexing", total=done.total, unit="files")
        self._bar.update(self._files, completed=done.files, total=done.total)
        if done.to_embed:
            if self._texts is None:
                self._texts = self._bar.add_task("embedding", total=done.to_embed, unit="texts")
            self._bar.update(self._texts, completed=done.embedded, total=done.to_embed)
