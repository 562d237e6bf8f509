"""Lines, paths and counts of a search, printed as rg prints them.

`LinePrinter` does what `crates/printer/src/standard.rs` of rg does, from rg's JSON: the same fields in the same order,
for each combination of flags.
"""

import os
import platform
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from ripwrap._text import raw_bytes, shown, text_of
from ripwrap.cli.flags import PLAIN, LineFlags, TerminalSearch
from ripwrap.cli.terminal import complain, shows_color
from ripwrap.errors import HintedText
from ripwrap.models import Begin, Context, End, FileCount, Match, Message, Span, Summary

MAGENTA, GREEN, RED, RESET = b"\x1b[35m", b"\x1b[32m", b"\x1b[1;31m", b"\x1b[0m"
"""rg's colors of paths, line numbers and matches."""


def warn_of_binary(path: str | None, offset: int | None) -> None:
    """Print a warning, as rg does, that the search of a file may have ended at the NUL byte at `offset`."""
    if offset is not None:
        where = shown(path or "<stdin>")
        complain(
            f"{where}: binary, so its search may have ended at the NUL byte at offset {offset}; "
            "--text searches all of it"
        )


def write(line: bytes) -> None:
    """Write bytes to stdout."""
    sys.stdout.buffer.write(line)


def on_one_line(text: str) -> bytes:
    """Return the bytes of a text on one line: printable on a terminal, and exact in a pipe, as rg writes them."""
    return shown(text).encode() if sys.stdout.isatty() else raw_bytes(text)


def print_line(text: str) -> None:
    """Print a text on one line."""
    write(on_one_line(text) + b"\n")


class PathPrinter:
    """Printer of paths and counts, with the flags for them."""

    def __init__(self, flags: LineFlags = PLAIN, cwd: str = ".") -> None:
        self.colored: bool = shows_color(flags.color)
        self._flags = flags
        self.linked: str = ""
        if flags.hyperlink_format != "none":
            url = link_format(flags.hyperlink_format)
            self.linked = "line" if "{line}" in url else "path" if url else ""
            self.link: Callable[[str, int | None, int | None, bytes], bytes] = linker(url, cwd)

    def painted(self, path: str) -> bytes:
        """Return the bytes of a path, in color if paths have one."""
        return self.paint(MAGENTA, on_one_line(path))

    def paint(self, style: bytes, text: bytes) -> bytes:
        """Return a text, in this color if lines have colors."""
        return style + text + RESET if self.colored else text

    def ended(self, path: str, end: bytes) -> bytes:
        """Return the bytes of a path, as a link if paths are links, and then its end; with `--null`, a NUL byte."""
        text = self.painted(path)
        linked = self.link(path, None, None, text) if self.linked and self.colored else text
        return linked + (b"\0" if self._flags.null else end)

    def path(self, path: str) -> None:
        """Print a path."""
        write(self.ended(path, b"\n"))

    def count(self, counted: FileCount) -> None:
        """Print a path and a number."""
        shown_path = self.ended(counted.path, b":") if self._flags.with_filename else b""
        write(b"%b%d\n" % (shown_path, counted.count))


class LinePrinter(PathPrinter):
    """Printer of the messages of a search, with the original bytes in a pipe, and with escapes on a terminal."""

    def __init__(self, flags: LineFlags = PLAIN, options: Mapping[str, object] | None = None, cwd: str = ".") -> None:
        super().__init__(flags, cwd)
        given = options or {}
        terminal = sys.stdout.isatty()
        self._escaped = terminal
        self._heading = (flags.heading or (terminal and not flags.no_heading)) and not flags.vimgrep
        self._paths = flags.with_filename
        self._column = flags.column or flags.vimgrep
        term = b"\0" if given.get("null_data") else b"\r\n" if given.get("crlf") else b"\n"
        self._cut_at = term[-1:]
        self._term = b"\n" if terminal else term
        self._multiline = bool(given.get("multiline"))
        between = any(given.get(name) for name in ("context", "before_context", "after_context"))
        self._between_files = self._term if self._heading else b"--" + self._term if between else b""
        self._finds_parts = bool(
            self.colored or flags.only_matching or self._column or flags.stats or "replace" in given
        )
        from ripwrap._display.html import Gaps  # late: rg prints most lines itself

        self._gaps = Gaps()
        self._last: str | None = None
        self._files = 0
        self._printed = 0

    def __call__(self, message: Message) -> None:
        """Print one message."""
        if isinstance(message, (Match, Context)):
            if self._gaps.before(message):
                self._write(b"--" + self._term)
            for line in self._lines(message):
                self._write(line)
        elif isinstance(message, Begin):
            self._gaps.before(message)
            self._begin(message.path)
        elif isinstance(message, End):
            warn_of_binary(message.path, message.binary_offset)
        else:
            self.stats(message)

    def alone(self, match: Match) -> None:
        """Print a match of a stream that has only matches, with the heading of its file if it is the first of it."""
        if match.path != self._last:
            self._last = match.path
            self(Begin(path=match.path))
        self(match)

    def _write(self, line: bytes) -> None:
        self._printed += len(line)
        write(line)

    def _begin(self, path: str) -> None:
        if self._files:
            self._write(self._between_files)
        self._files += 1
        if self._heading and self._paths:
            self._write(self.ended(path, self._term))

    def stats(self, message: Message) -> None:
        """Print the statistics of a search, if they are wanted; `message` is any message, and the last has them."""
        if not isinstance(message, Summary) or not self._flags.stats:
            return
        summary, stats = message, message.stats
        write(
            f"""
{stats.matches} matches
{stats.matched_lines} matched lines
{stats.searches_with_match} files contained matches
{stats.searches} files searched
{self._printed} bytes printed
{stats.bytes_searched} bytes searched
{stats.elapsed.total_seconds():.6f} seconds spent searching
{summary.elapsed_total.total_seconds():.6f} seconds total
""".encode()
        )

    def _lines(self, message: Match | Context) -> Iterator[bytes]:
        """Yield the lines to print for a match or context."""
        raw, parts = _replaced(message)
        if not self._finds_parts:
            parts = []
        if self._multiline and isinstance(message, Match):
            yield from self._of_several(message, raw, parts)
        elif parts and (self._flags.only_matching or self._flags.vimgrep):
            for start, end in parts:
                only = self._flags.only_matching
                begin = self._prelude(message, 0, start, start + 1)
                text, inside = (raw[start:end], [(0, end - start)]) if only else (raw, [(start, end)])
                yield begin + self._text(message, text, 0, len(text), inside)
        else:
            column = parts[0][0] + 1 if parts else None
            yield self._prelude(message, 0, 0, column) + self._text(message, raw, 0, len(raw), parts)

    def _of_several(self, message: Match, raw: bytes, parts: Sequence[Span]) -> Iterator[bytes]:
        """Yield the lines to print for a match that may span several lines."""
        ends = [found.end() for found in re.finditer(re.escape(self._cut_at), raw)]
        ends += [len(raw)] if ends[-1:] != [len(raw)] and raw else []
        lines = list(pairwise((0, *ends)))  # each with its terminator
        if parts and self._flags.only_matching:
            for number, (start, end) in enumerate(lines):
                first, last = self._trimmed(raw, start, end - len(self._end_of(raw[start:end])))
                for part in parts:
                    begin, until = max(first, part[0]), min(last, part[1])
                    if begin < until:
                        prelude = self._prelude(message, number, part[0], part[0] + 1)
                        yield prelude + self._text(message, raw[begin:until], 0, until - begin, [(0, until - begin)])
        elif parts and self._flags.vimgrep:
            for part in parts:
                number, (start, end) = next(
                    (number, line) for number, line in enumerate(lines) if part[0] < line[1] or line == lines[-1]
                )
                prelude = self._prelude(message, number, start, max(part[0] - start, 0) + 1)
                yield prelude + self._text(message, raw, start, end, [part])
        else:
            column = parts[0][0] + 1 if parts else None
            for number, (start, end) in enumerate(lines):
                yield self._prelude(message, number, start, column) + self._text(message, raw, start, end, parts)

    def _prelude(self, message: Match | Context, lines: int, offset: int, column: int | None) -> bytes:
        """Return what precedes a line: its path, number, column and offset, as far as they are wanted."""
        mark = b":" if isinstance(message, Match) else b"-"
        number = None if message.line_number is None else message.line_number + lines
        path = message.path
        fields = [self.paint(GREEN, b"%d" % number)] if number is not None else []
        if self._column and column is not None:
            fields.append(b"%d" % column)
        if self._flags.byte_offset:
            fields.append(b"%d" % (message.absolute_offset + offset))
        rest, end = mark.join(fields), mark if fields else b""
        if self._paths and not self._heading:
            after = b"\0" if self._flags.null else mark
            rest, end = (self.painted(path) + after + rest, end) if fields else (self.painted(path), after)
        if self._paths and self.colored and (self.linked == "line" or (self.linked and not self._heading)):
            rest = self.link(path, number, column, rest)
        return rest + end

    def _text(self, message: Match | Context, raw: bytes, start: int, end: int, parts: Sequence[Span]) -> bytes:
        """Return a line with its end, without leading white space if it is trimmed; or what replaces a long line."""
        start, end = self._trimmed(raw, start, end)
        if self._flags.max_columns and end - start > self._flags.max_columns:
            return self._omitted(message) + self._term
        line = raw[start:end]
        ending = self._end_of(line)
        end -= len(ending)
        if self.colored:
            pieces = list[bytes]()
            for part in parts:
                begin, until = max(part[0], start), min(part[1], end)
                if begin < until:
                    pieces += self._printable(raw[start:begin]), RED, self._printable(raw[begin:until]), RESET
                    start = until
            plain = b"".join((*pieces, self._printable(raw[start:end])))
        else:
            plain = self._printable(raw[start:end])
        return plain + (self._term if self._escaped or not ending else ending)

    def _printable(self, text: bytes) -> bytes:
        return shown(text_of(text), lines=True).encode() if self._escaped else text

    def _end_of(self, line: bytes) -> bytes:
        """Return the terminator of a line; on a terminal, this includes the CR of CRLF, which is not shown."""
        if (self._escaped or self._term == b"\r\n") and line.endswith(b"\r\n"):
            return b"\r\n"
        return self._cut_at if line.endswith(self._cut_at) else b""

    def _trimmed(self, raw: bytes, start: int, end: int) -> Span:
        if not self._flags.trim:
            return start, end
        spaces = bytes(one for one in b"\t\n\x0b\x0c\r " if one not in self._term)
        return end - len(raw[start:end].lstrip(spaces)), end

    def _omitted(self, message: Match | Context) -> bytes:
        if message.submatches and self._finds_parts and not self._flags.only_matching:
            return b"[Omitted long line with %d matches]" % len(message.submatches)
        return b"[Omitted long matching line]" if isinstance(message, Match) else b"[Omitted long context line]"


def printer_of(search: TerminalSearch) -> LinePrinter:
    """Return the printer of the lines of a search."""
    return LinePrinter(search.lines, search.options, search.run.cwd)


def _replaced(message: Match | Context) -> tuple[bytes, list[Span]]:
    """Return the bytes of a message, with the replacements of the matched parts, and the positions of these parts."""
    raw, parts = message.raw_lines, [(hit.start, hit.end) for hit in message.submatches]
    if not isinstance(message, Match) or all(hit.replacement is None for hit in message.submatches):
        return raw, parts
    pieces, done, length = list[bytes](), 0, 0
    for number, hit in enumerate(message.submatches):
        new = raw_bytes(hit.match if hit.replacement is None else hit.replacement)
        length += hit.start - done
        parts[number] = length, length + len(new)
        pieces += raw[done : hit.start], new
        length, done = length + len(new), hit.end
    return b"".join((*pieces, raw[done:])), parts


_LINED = "{path}&line={line}&column={column}"
_FORMATS = {
    "default": "file://{path}" if os.name == "nt" else "file://{host}{path}",
    "none": "",
    "file": "file://{host}{path}",
    "grep+": "grep+://{path}:{line}",
    "kitty": "file://{host}{path}#{line}",
    "macvim": f"mvim://open?url=file://{_LINED}",
    "textmate": f"txmt://open?url=file://{_LINED}",
    **{
        name: f"{name}://file{{path}}:{{line}}:{{column}}"
        for name in ("cursor", "vscode", "vscode-insiders", "vscodium")
    },
}
"""Named formats of rg 15."""

_URL = re.compile(r"[0-9A-Za-z+.-]+:.*\{path\}.*", re.DOTALL)
_FIELD = re.compile(r"\{(\w*)\}")
_FIELDS = ("path", "line", "column", "host", "wslprefix")
_PLAIN = re.compile(rb"[^0-9A-Za-z/:._~\x80-\xff-]")


def link_format(name: str) -> str:
    """Return the URL of a format, with fields such as `{path}`; empty for `none`."""
    url = _FORMATS.get(name, name)
    unknown = [one for one in _FIELD.findall(url) if one not in _FIELDS]
    if url and (unknown or not _URL.fullmatch(url)):
        raise ValueError(
            HintedText(
                f"--hyperlink-format must be {', '.join(_FORMATS)}, or a URL with {{path}} and, if wanted, {{line}}, "
                f"{{column}}, {{host}} and {{wslprefix}}; got {name}"
            )
        )
    return url


def linker(url: str, cwd: str) -> Callable[[str, int | None, int | None, bytes], bytes]:
    """Return a function that puts a link around bytes, to a path below `cwd`, a line and a column."""
    host = platform.node() if "{host}" in url else ""
    fixed = {"host": host, "wslprefix": f"wsl$/{os.environ.get('WSL_DISTRO_NAME', '')}"}

    def link(path: str, line: int | None, column: int | None, text: bytes) -> bytes:
        full = os.fsencode(os.path.realpath(os.path.join(cwd, path)))
        if os.name == "nt":
            full = b"/" + full.replace(b"\\", b"/")
        encoded = _PLAIN.sub(lambda found: b"%%%02X" % found[0][0], full)
        values = {**fixed, "line": str(line or 1), "column": str(column or 1), "path": os.fsdecode(encoded)}
        target = os.fsencode(_FIELD.sub(lambda found: values[found[1]], url))
        return b"\x1b]8;;%b\x1b\\%b\x1b]8;;\x1b\\" % (target, text)

    return link
