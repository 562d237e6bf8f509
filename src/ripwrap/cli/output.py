"""Print results (Pydantic models and paths) as lines or as JSON to stdout, and errors to stderr."""

import json
import logging
import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from pydantic import BaseModel, TypeAdapter

from ripwrap._code.outline import Section, outline_rows
from ripwrap._display.html import Gaps
from ripwrap._ripgrep.named_paths import missing_paths_as_warnings
from ripwrap._text import FsPath, plural, raw_bytes, shown, shown_json, text_of
from ripwrap.cli.errors import FAILED, FOUND, NOTHING, complain
from ripwrap.cli.flags import RunOptions, When, spell_as_flag
from ripwrap.cli.lines import (
    MAX_LINE_CHARS,
    MAX_SNIPPET_LINES,
    left_out,
    number_lines,
    numbered,
    omitted,
    warn_of_binary_end,
)
from ripwrap.errors import HintedText
from ripwrap.models import Begin, Context, End, FileCount, Match, Message, Summary, TreeEntry

if TYPE_CHECKING:
    from ripwrap._code.references import Reference
    from ripwrap.index import RefreshResult
    from ripwrap.results import Coverage, RankedChunk, Reason

Item = TypeVar("Item")
Operation: TypeAlias = Callable[..., Iterable[object]]

_NO_RESULTS = (Begin, Context, End, Summary)
"""Types of the items that are printed with results, but are no results."""
_MAGENTA, _GREEN, _RED, _RESET = b"\x1b[35m", b"\x1b[32m", b"\x1b[1;31m", b"\x1b[0m"
"""rg's colors of paths, line numbers and matches."""


def print_all(items: Iterable[Item], show: Callable[[Any], None], *, lenient: bool = False) -> int:
    """Print every item, and return the exit code. It is 1 if there was no result and no error.

    Warnings of the library, and the errors in a `Summary`, go to stderr.

    Args:
        items: Items to print.
        show: Function that prints an item.
        lenient: If False, the exit code is 2 after a warning of the library, unless the warning says that an index was
            rebuilt. If True, warnings do not change the exit code.
    """
    found = failed = False
    with printed_warnings() as warned:
        for item in items:
            show(item)
            found = found or not isinstance(item, _NO_RESULTS)
            failed = (isinstance(item, Summary) and _print_errors(item)) or failed
    return FAILED if failed or (warned.any and not lenient) else FOUND if found else NOTHING


def print_results(operation: Operation, show: Callable[[Any], None], run: RunOptions) -> int:
    """Call an operation with the directory and the rg of `run`, print its results, and return the exit code."""

    def results() -> Iterator[object]:
        # A generator, so that the operation runs inside of `print_all()`, which prints its warnings.
        yield from operation(cwd=run.cwd, rg=run.rg)

    return print_all(results(), print_json if run.json else show)


def _print_errors(summary: Summary) -> bool:
    """Print the errors in a summary, except errors about broken links; return True if an error was printed."""
    errors = [error for error in summary.errors if not error.harmless]
    for error in errors:
        complain(str(error))
    return bool(errors)


class _WarningPrinter(logging.Handler):
    """Logging handler that prints warnings of the library, and sets `any` to True after a warning.

    A warning that an index was rebuilt is printed, too, but it does not set `any`.
    """

    any = False

    def emit(self, record: logging.LogRecord) -> None:
        self.any = self.any or not getattr(record, "rebuilt", False)
        complain(record.getMessage())


@contextmanager
def printed_warnings() -> Generator[_WarningPrinter]:
    """Print to stderr the warnings that the library logs inside of the `with` block; yield the handler."""
    logger, printer = logging.getLogger("ripwrap"), _WarningPrinter(logging.WARNING)
    logger.addHandler(printer)
    try:
        with missing_paths_as_warnings():
            yield printer
    finally:
        logger.removeHandler(printer)


def print_json(item: BaseModel | str) -> None:
    """Print a model or a path as one line of JSON."""
    text = item.model_dump_json().encode() if isinstance(item, BaseModel) else _path_adapter().dump_json(item)
    _write((shown_json(text) if sys.stdout.isatty() else text) + b"\n")


@cache
def _path_adapter() -> TypeAdapter[str]:
    return TypeAdapter(FsPath)


def print_types(types: Mapping[str, Sequence[str]], *, as_json: bool) -> None:
    """Print one line for each file type with its globs, as `rg --type-list` does, or one line of JSON for all types."""
    if as_json:
        _write(json.dumps(types).encode() + b"\n")
        return
    for name, globs in types.items():
        _write(_bytes(f"{name}: {', '.join(globs)}") + b"\n")


def print_reason(reason: "Reason") -> None:
    """Print the reason why a file is searched or not; options in the text are written as flags."""
    print(shown(reason.message.spell(spell_as_flag)))


def print_coverage(coverage: "Coverage", *, as_json: bool) -> None:
    """Print to stderr how many files were searched, and one skipped file for each reason to skip files.

    With `as_json`, print the coverage as one line of JSON to stdout instead.
    """
    if as_json:
        print_json(coverage)
        return
    complain(str(coverage))
    for group in coverage.skipped:
        for reason in group.examples[:1]:
            complain(f"{shown(reason.path)}: {reason.message.spell(spell_as_flag)}")


def path_printer(color: When) -> Callable[[str], None]:
    """Return a function that prints a path.

    The path has rg's color if `color` is 'always', or if it is 'auto' and stdout shows colors.
    """
    paint = _path_painter(color)
    return lambda path: _write(paint(path) + b"\n")


def count_printer(color: When) -> Callable[[FileCount], None]:
    """Return a function that prints `path:count`.

    The path has rg's color if `color` is 'always', or if it is 'auto' and stdout shows colors.
    """
    paint = _path_painter(color)
    return lambda counted: _write(b"%b:%d\n" % (paint(counted.path), counted.count))


def _path_painter(color: When) -> Callable[[str], bytes]:
    if color == "always" or (color == "auto" and _shows_color()):
        return lambda path: _MAGENTA + _bytes(path) + _RESET
    return _bytes


def _shows_color() -> bool:
    """Return True if stdout is a terminal with colors, or if FORCE_COLOR or TTY_COMPATIBLE lets rich print colors."""
    if not sys.stdout.isatty() and not os.environ.keys() & {"FORCE_COLOR", "TTY_COMPATIBLE"}:
        return False
    from ripwrap.cli.terminal import styled_console  # late: rich takes 40 ms

    return styled_console().color_system is not None


def print_entry(entry: TreeEntry) -> None:
    """Print an entry of a tree as one line."""
    _write(_bytes(f"{'    ' * entry.depth}{entry.name}{'/' if entry.is_dir else ''}") + b"\n")


def print_sections(sections: Sequence[Section]) -> int:
    """Print the outline of a file, and return the exit code."""
    for row in outline_rows(sections):
        _write(_bytes(row) + b"\n")
    return FOUND if sections else NOTHING


def print_reference(one: "Reference") -> None:
    """Print a definition or use of a name as one line: path, number, kind, confidence and text."""
    about = one.kind if one.syntax in ("code", "text") else f"{one.kind} in {one.syntax}"
    row = b"%b:%d: %b" % (os.fsencode(one.path), one.line, raw_bytes(f"[{about}, {one.confidence}] {one.text}"))
    _write((shown(text_of(row)).encode() if sys.stdout.isatty() else row) + b"\n")


def print_chunk(chunk: "RankedChunk") -> None:
    """Print path, symbol, score and reasons of a chunk, then its first lines (in a pipe, with the original bytes)."""
    if not sys.stdout.isatty():
        _print_plain(chunk)
        return
    from ripwrap.cli.terminal import print_styled_chunk  # late: rich takes 40 ms

    print_styled_chunk(chunk)


def _print_plain(chunk: "RankedChunk") -> None:
    symbol = b"  %b" % raw_bytes(chunk.symbol) if chunk.symbol else b""
    where = b"%b:%d-%d" % (os.fsencode(chunk.path), chunk.start_line, chunk.end_line)
    _write(b"%b%b  %.2f\n" % (where, symbol, chunk.score))
    if chunk.reasons:
        _write(os.fsencode(f"  {'; '.join(chunk.reasons)}\n"))
    lines = raw_bytes(chunk.text).removesuffix(b"\n").split(b"\n")
    for number, line in enumerate(lines[:MAX_SNIPPET_LINES], chunk.start_line):
        _write(b"  %d:%b\n" % (number, _cut(line.removesuffix(b"\r"))))
    if rest := left_out(lines):
        _write(f"{rest}\n".encode())
    _write(b"\n")


def _cut(line: bytes) -> bytes:
    return line.decode("utf-8", "surrogateescape")[:MAX_LINE_CHARS].encode("utf-8", "surrogateescape")


def print_refreshed(done: "RefreshResult") -> None:
    """Print in one line what a refresh of an index has changed."""
    said = f"{done.added} added, {done.changed} changed, {done.removed} removed, {done.unchanged} unchanged"
    said += f"; {plural(done.read, 'file')} read, {plural(done.chunks, 'chunk')} added, {done.chunks_removed} removed"
    said += f" in {done.seconds:.1f} seconds"
    if done.embedded:
        said += f"; {plural(done.embedded, 'text')} embedded"
    said += "".join(f"; {plural(one.texts, 'text')} not embedded: {one.message}" for one in done.failed)
    if done.skipped:
        said += f"; left out: {', '.join(f'{one.files} {one.reason}' for one in done.skipped)}"
    if done.cut:
        said += f"; {plural(done.cut, 'file')} longer than a million bytes, indexed only up to that size"
    print(shown(said))


def print_fields(model: BaseModel) -> None:
    """Print a line for each field that has a value. For a field with a tuple of models, print a line for each model."""
    for name, value in model:
        for one in _split_models(value):
            if one not in (None, (), ""):
                _write(_bytes(f"{name.replace('_', ' ')}: {_format_value(one)}") + b"\n")


def _split_models(value: object) -> tuple[object, ...]:
    """Return the models of a tuple as separate values; any other value becomes a tuple of one."""
    if isinstance(value, tuple):
        items = cast("tuple[object, ...]", value)
        return items if any(isinstance(item, BaseModel) for item in items) else (items,)
    return (value,)


def _format_value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return "; ".join(map(_format_value, cast("tuple[object, ...]", value)))
    if isinstance(value, BaseModel):
        said = ((name.replace("_", " "), one) for name, one in value if one not in (None, (), ""))
        return ", ".join(f"{name} {_format_value(one)}" for name, one in said)
    if isinstance(value, HintedText):
        return value.spell(spell_as_flag)
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S} UTC"
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _bytes(text: str) -> bytes:
    """Return the bytes of a text on one line: printable on a terminal, and exact in a pipe, as rg writes them."""
    return shown(text).encode() if sys.stdout.isatty() else raw_bytes(text)


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line)


def _highlighted(message: Match | Context) -> bytes:
    """Return the bytes of a match or context, with codes of rg's color around each matched text.

    In a matched text of several lines, each line has its own codes. Replaced texts are not colored.
    """
    if not isinstance(message, Match) or any(hit.replacement is not None for hit in message.submatches):
        return raw_bytes(message.replaced() if isinstance(message, Match) else message.lines)
    raw, done, pieces = message.raw_lines, 0, list[bytes]()
    for hit in message.submatches:
        pieces += raw[done : hit.start], b"\n".join(map(_red, raw[hit.start : hit.end].split(b"\n")))
        done = hit.end
    return b"".join((*pieces, raw[done:]))


def _red(text: bytes) -> bytes:
    return _RED + text + _RESET if text else b""


def match_printer(color: When, max_columns: int) -> Callable[[Message], None]:
    """Return the printer of a search: on a terminal, it groups lines by file; otherwise, each line has its path."""
    if sys.stdout.isatty():
        from ripwrap.cli.terminal import Grouped  # late: rich takes 40 ms

        return Grouped(color, max_columns)
    return Plain(colored=color == "always", max_columns=max_columns)


class Plain:
    """Printer of `path:number:line`, or `path-number-line` for context, with the original bytes, like rg in a pipe."""

    def __init__(self, *, colored: bool = False, max_columns: int = 0) -> None:
        self._gaps = Gaps()
        self._colored = colored
        self._max_columns = max_columns

    def __call__(self, message: Message) -> None:
        """Print one message."""
        warn_of_binary_end(message)
        if self._gaps.before(message):
            _write(b"--\n")
        if isinstance(message, (Match, Context)):
            mark = b":" if isinstance(message, Match) else b"-"
            path = self._paint(_MAGENTA, os.fsencode(message.path or "<stdin>"))
            lines = list(numbered(message))
            painted = number_lines(message, _highlighted(message)) if self._colored else lines
            for (number, plain), (_, line) in zip(lines, painted, strict=True):
                place = b"" if number is None else self._paint(_GREEN, b"%d" % number) + mark
                shown_line = omitted(message, plain, self._max_columns) or line.removesuffix(b"\n")
                whole = b"%b%b%b%b" % (path, mark, place, shown_line)
                if sys.stdout.isatty() and not self._colored:
                    whole = shown(text_of(whole), lines=True).encode()
                _write(whole + b"\n")

    def _paint(self, style: bytes, text: bytes) -> bytes:
        return style + text + _RESET if self._colored else text
