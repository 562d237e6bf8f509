"""Lines of a search as rg itself prints them, where these are the lines that ripwrap prints.

They are copied in blocks: to make an object of each of 78,000 matches takes six seconds, and the search a tenth of one.
"""

import mmap
import os
import re
import stat
import sys
from collections.abc import Iterator
from dataclasses import replace

from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.stream import StreamRequest, run_stream_blocking
from ripwrap.cli.flags import TerminalSearch
from ripwrap.cli.lines import warn_of_binary, write
from ripwrap.cli.output import print_errors, printed_warnings
from ripwrap.cli.terminal import FAILED, FOUND, NOTHING, shows_color
from ripwrap.models import PathError
from ripwrap.places.where import PlaceOptions, placed_search

_CHANGING = ("encoding", "binary", "passthru", "null_data", *PlaceOptions.__annotations__)
"""Options with which ripwrap prints other lines than rg, looks elsewhere, or reads rg's JSON to know the exit code."""

_NOTE = re.compile(
    rb"^(.+): WARNING: stopped searching binary file after match \(found .{1,8} byte around offset (\d+)\)\n",
    re.MULTILINE,
)
_MARK = b": WARNING: stopped searching binary file after match (found "
_MAX_NOTE = 16 * 1024
"""Number of bytes that are more than the longest path and the text of a note after it."""

_MAX_PATHS = 100
"""Maximum number of PATHs, of which each file is read to see that it is not binary."""


def is_verbatim(search: TerminalSearch) -> bool:
    """Return True if rg prints the lines of a search as ripwrap does: into a pipe, with paths, and without colors.

    rg prints no path in its note about a binary file if it prints none before lines, and other lines of a binary file
    that is named. A line without a path and a number cannot be told from a note.
    """
    lines, run, options = search.lines, search.run, search.options
    numbered = not options.get("no_line_number")
    if sys.stdout.isatty() or shows_color(lines.color) or run.json or run.records or search.limit is not None:
        return False
    if lines.stats or lines.hyperlink_format != "none" or not lines.with_filename or (lines.heading and not numbered):
        return False
    if options.get("multiline") and any(options.get(name) for name in ("context", "before_context", "after_context")):
        return False  # rg prints a `--` before the lines that it does not reach in a binary file
    if any(name in options for name in _CHANGING) or len(search.paths) > _MAX_PATHS:
        return False
    named = [os.path.join(run.cwd, path) for path in search.paths]
    return all(
        os.path.normpath(path) == path and (os.path.isdir(full) or options.get("text") or _is_text(full))
        for path, full in zip(search.paths, named, strict=True)
    )


def _is_text(path: str) -> bool:
    """Return True for a regular file without a NUL byte."""
    try:
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode) or not about.st_size:
                return stat.S_ISREG(about.st_mode)
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                return content.find(b"\0") < 0
    except OSError:
        return True  # rg says what is wrong with it


def print_verbatim(search: TerminalSearch) -> int:
    """Print the lines of a search, and return the exit code."""
    query = placed_search(
        "search_messages()", search.pattern, search.run.cwd, search.paths, search.options, keeps_errors=True
    )
    flags = search.lines
    printing = ["--with-filename", "--heading" if flags.heading else "--no-heading"]
    printing += [] if search.options.get("no_line_number") else ["--line-number"]
    names = ("column", "byte_offset", "only_matching", "vimgrep", "trim", "null")
    printing += [f"--{name.replace('_', '-')}" for name in names if getattr(flags, name)]
    printing += [f"--max-columns={flags.max_columns}"] if flags.max_columns else []
    printing += ["--line-buffered"] if search.run.line_buffered else []
    query = replace(query, mode="lines", printing=tuple(printing))  # as ripwrap prints lines
    request = StreamRequest(query, _LinesAnswer(search))
    found, messages, errors = False, not search.run.no_messages, list[PathError]()
    with printed_warnings(messages=messages) as warned:
        for item in run_stream_blocking(request, search.run.rg, None):
            if isinstance(item, PathError):
                errors.append(item)
            else:
                write(item)
                found = True
                if search.run.line_buffered:
                    sys.stdout.flush()
        failed = print_errors(errors, messages=messages)
    return FAILED if failed or warned.any else FOUND if found else NOTHING


class _LinesAnswer:
    """Answer that yields rg's output, and the errors about paths at its end; notes of binary files go to stderr."""

    full = ended = False
    pending = 0

    def __init__(self, search: TerminalSearch) -> None:
        self._cwd = search.run.cwd
        self._heading = search.lines.heading
        self._rest = b""

    def feed(self, chunk: bytes) -> Iterator[bytes | PathError]:
        data = self._rest + chunk
        end = data.rfind(b"\n") + 1
        if len(data) - end > _MAX_NOTE:  # a long line, which is no note
            end = len(data)
        self._rest = data[end:]
        return self._without_notes(data[:end])

    def end_run(self, end: Exit) -> Iterator[bytes | PathError]:
        end.check_listing()
        rest, self._rest = self._rest, b""
        return self._without_notes(rest)

    def finish(self, end: Exit) -> Iterator[bytes | PathError]:
        return iter(end.path_errors())

    def _without_notes(self, data: bytes) -> Iterator[bytes | PathError]:
        done = 0
        for note in _NOTE.finditer(data) if _MARK in data else ():
            path = note[1]
            if os.path.isfile(os.path.join(os.fsencode(self._cwd), path)):
                if not self._may_be_a_line(path):
                    if note.start() > done:
                        yield data[done : note.start()]
                    done = note.end()
                warn_of_binary(os.fsdecode(path), int(note[2]))
        if len(data) > done:
            yield data[done:] if done else data

    def _may_be_a_line(self, path: bytes) -> bool:
        """Return True if what looks like a path may be the beginning of a line; such a line is printed, too."""
        if self._heading:
            return re.match(rb"\d+[:-]", path) is not None
        ends = (found.start() for found in re.finditer(rb"[:-]", path))
        return any(os.path.isfile(os.path.join(os.fsencode(self._cwd), path[:end])) for end in ends)
