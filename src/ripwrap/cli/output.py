"""Print results (models and paths) as lines, as JSON or as rg's own records, and errors to stderr."""

import json
import logging
import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pydantic import BaseModel, TypeAdapter

from ripwrap._ripgrep.decoder import encode
from ripwrap._ripgrep.named_paths import missing_paths_as_warnings
from ripwrap._text import FsPath, has_text, plural, raw_bytes, shown, shown_json, text_of
from ripwrap.cli.flags import STREAMS, RunOptions, StreamOptions, spell_as_flag
from ripwrap.cli.lines import print_line, write
from ripwrap.cli.terminal import FAILED, FOUND, NOTHING, complain, glob_hint, shows_color, styled
from ripwrap.errors import HintedText
from ripwrap.models import Begin, Context, End, Message, PathError, Summary, TreeEntry

if TYPE_CHECKING:
    from ripwrap._code.references import Reference
    from ripwrap.index import RefreshResult
    from ripwrap.results import Coverage, RankedChunk, Reason


Item = TypeVar("Item")

MAX_SNIPPET_LINES, MAX_LINE_CHARS = 6, 200
"""Maximum number of lines of a ranked chunk that are printed, and of characters of each line."""

NO_RESULTS = (Begin, Context, End, Summary)
"""Types of the items that are printed with results, but are no results."""


def print_all(
    items: Iterable[Item], show: Callable[[Any], None], *, lenient: bool = False, streams: StreamOptions = STREAMS
) -> int:
    """Print every item, and return the exit code. It is 1 if there was no result and no error.

    Warnings of the library, items that are errors, and the errors in a `Summary`, go to stderr. Unless `lenient`, the
    exit code is 2 after a warning, but not after a note.
    """
    found = failed = False
    messages = not streams.no_messages
    with printed_warnings(messages=messages) as warned:
        for item in items:
            if getattr(item, "type", "") == "error":
                if messages:
                    complain(str(item))
                failed = True
                continue
            show(item)
            if streams.line_buffered:
                sys.stdout.flush()
            found = found or not isinstance(item, NO_RESULTS)
            failed = (isinstance(item, Summary) and print_errors(item.errors, messages=messages)) or failed
    return FAILED if failed or (warned.any and not lenient) else FOUND if found else NOTHING


def print_results(find: Callable[[], Iterable[object]], show: Callable[[Any], None], run: RunOptions) -> int:
    """Print what `find` returns, and return the exit code; the warnings of the call are printed, too."""

    def results() -> Iterator[object]:
        yield from find()

    streams = run if isinstance(run, StreamOptions) else STREAMS
    return print_all(results(), print_json if run.json else show, streams=streams)


def print_nothing(_: object) -> None:
    """Print nothing, for `--quiet`."""


def print_record(item: Message) -> None:
    """Print a message as rg prints it with `--json`."""
    _print_json(encode(item).removesuffix(b"\n"))


def print_errors(found: Iterable[PathError], *, messages: bool) -> bool:
    """Print errors about paths, if wanted, except errors about broken links; return True if there is one."""
    errors = [error for error in found if not error.harmless]
    for error in errors if messages else ():
        complain(str(error) + (glob_hint(error.path) if error.kind == "missing" else ""))
    return bool(errors)


class _WarningPrinter(logging.Handler):
    """Logging handler that prints warnings of the library, and sets `any` to True after a warning."""

    any = False
    messages = True

    def emit(self, record: logging.LogRecord) -> None:
        note = getattr(record, "note", False)
        self.any = self.any or not note
        if self.messages or note:
            complain(record.getMessage())


@contextmanager
def printed_warnings(*, messages: bool = True) -> Generator[_WarningPrinter]:
    """Print to stderr the warnings that the library logs inside of the `with` block, if wanted; yield the handler."""
    logger, printer = logging.getLogger("ripwrap"), _WarningPrinter(logging.WARNING)
    printer.messages = messages
    logger.addHandler(printer)
    try:
        with missing_paths_as_warnings():
            yield printer
    finally:
        logger.removeHandler(printer)


def print_json(item: BaseModel | str) -> None:
    """Print a model or a path as one line of JSON."""
    text = item.model_dump_json().encode() if isinstance(item, BaseModel) else _path_adapter().dump_json(item)
    _print_json(text)


def _print_json(text: bytes) -> None:
    write((shown_json(text) if sys.stdout.isatty() else text) + b"\n")


@cache
def _path_adapter() -> TypeAdapter[str]:
    return TypeAdapter(FsPath)


def print_types(types: Mapping[str, Sequence[str]], *, as_json: bool) -> None:
    """Print one line for each file type with its globs, as `rg --type-list` does, or one line of JSON for all types."""
    if as_json:
        write(json.dumps(types).encode() + b"\n")
        return
    for name, globs in types.items():
        print_line(f"{name}: {', '.join(globs)}")


def print_reason(reason: "Reason") -> None:
    """Print the reason why a file is searched or not; options in the text are written as flags."""
    print(shown(reason.message.spell(spell_as_flag)))


def print_coverage(coverage: "Coverage", *, as_json: bool) -> None:
    """Print to stderr how many files were searched, and one skipped file for each reason to skip files."""
    if as_json:
        print_json(coverage)
        return
    complain(str(coverage))
    for group in coverage.skipped:
        for reason in group.examples[:1]:
            complain(f"{shown(reason.path)}: {reason.message.spell(spell_as_flag)}")


def print_entry(entry: TreeEntry) -> None:
    """Print an entry of a tree as one line."""
    print_line(f"{'    ' * entry.depth}{entry.name}{'/' if entry.is_dir else ''}")


def print_reference(one: "Reference") -> None:
    """Print a definition or use of a name as one line: path, number, kind, confidence and text."""
    about = one.kind if one.syntax in ("code", "text") else f"{one.kind} in {one.syntax}"
    row = b"%b:%d: %b" % (os.fsencode(one.path), one.line, raw_bytes(f"[{about}, {one.confidence}] {one.text}"))
    write((shown(text_of(row)).encode() if sys.stdout.isatty() else row) + b"\n")


def print_chunk(chunk: "RankedChunk") -> None:
    """Print path, symbol, score and reasons of a chunk, then its first lines (in a pipe, with the original bytes)."""
    terminal = sys.stdout.isatty()
    colored = terminal and shows_color("auto")

    def put(*parts: tuple[str, str], lines: bool = False) -> None:
        for text, style in parts:
            write(styled(shown(text, lines=lines), style, colored=colored).encode() if terminal else raw_bytes(text))
        write(b"\n")

    where = f"{chunk.path}:{chunk.start_line}-{chunk.end_line}"
    symbol = (("  ", ""), (chunk.symbol, "bold")) if chunk.symbol else ()
    put((where, "magenta"), *symbol, (f"  {chunk.score:.2f}", ""))
    if chunk.reasons:
        put((f"  {'; '.join(chunk.reasons)}", "dim"))
    lines = raw_bytes(chunk.text).removesuffix(b"\n").split(b"\n")
    for number, line in enumerate(lines[:MAX_SNIPPET_LINES], chunk.start_line):
        text = line.removesuffix(b"\r").decode("utf-8", "surrogateescape")[:MAX_LINE_CHARS]
        put((f"  {number}", "green"), (":", ""), (text, ""), lines=True)
    if has_text(rest := lines[MAX_SNIPPET_LINES:]):
        put((f"  … {plural(len(rest), 'more line')}", "dim"))
    write(b"\n")


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
        items = cast("tuple[object, ...]", value if isinstance(value, tuple) else ())
        for one in items if any(isinstance(item, BaseModel) for item in items) else cast("tuple[object]", (value,)):
            if one not in (None, (), ""):
                print_line(f"{name.replace('_', ' ')}: {_format_value(one)}")


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
