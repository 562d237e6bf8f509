"""Convert matches to plain text as `grep -n` prints it, and replacements to a unified diff; no I/O."""

import os
from collections.abc import Iterable, Iterator

from ripwrap._display.html import Gaps
from ripwrap.errors import Hint, HintedText
from ripwrap.models import Context, Match, as_printed

Change = tuple[bytes, bytes]
"""Pair of lines: before and after a change. For a line of context, both are equal."""


def unified(path: str, lines: Iterable[Match | Context], sep: str = os.sep, *, nul_ends: bool = False) -> bytes:
    """Return a diff of the lines that replacements change, with the context in `lines`; empty if nothing changes."""
    hunks: list[bytes] = []
    shift = 0
    for start, changes in _runs(lines, nul_ends=nul_ends):
        joined = _joined(changes)
        if all(old == new for old, new in joined):
            continue
        old_count, new_count = (sum(len(_split(change[side])) for change in joined) for side in (0, 1))
        body = b"".join(_body(old, new) for old, new in joined)
        hunks.append(b"@@ -%b +%b @@\n%b" % (_place(start, old_count), _place(start + shift, new_count), body))
        shift += new_count - old_count
    if not hunks:
        return b""
    path = path.replace(sep, "/")
    return b"".join((b"--- ", _name(b"a/", path), b"\n+++ ", _name(b"b/", path), b"\n", *hunks))


def _runs(lines: Iterable[Match | Context], *, nul_ends: bool) -> Iterator[tuple[int, list[Change]]]:
    """Yield runs of consecutive lines, each with the number of its first line."""
    run: list[Change] = []
    start = following = 0
    for line in lines:
        if line.line_number is None:
            wrong = Hint("no_line_number", kind="omit")
            raise ValueError(HintedText("a diff needs line numbers, so search again and leave out ", wrong))
        if run and line.line_number != following:
            yield start, run
            run = []
        if not run:
            start = line.line_number
        if line.raw_lines.endswith(b"\0") and not nul_ends:
            wrong = Hint("null_data", kind="omit")
            raise ValueError(HintedText("a diff needs lines that end with a newline; leave out ", wrong))
        run.append((line.raw_lines, line.raw_replaced() if isinstance(line, Match) else line.raw_lines))
        following = line.line_number + len(_split(line.raw_lines))
    if run:
        yield start, run


def _joined(changes: list[Change]) -> list[Change]:
    """If a change removes the newline of a line, merge the change with the next change."""
    joined: list[Change] = []
    for old, new in changes:
        if joined and joined[-1][1] and not joined[-1][1].endswith(b"\n"):
            before = joined.pop()
            joined.append((before[0] + old, before[1] + new))
        else:
            joined.append((old, new))
    return joined


def _body(old: bytes, new: bytes) -> bytes:
    return _marked(b" ", old) if old == new else _marked(b"-", old) + _marked(b"+", new)


def _marked(mark: bytes, lines: bytes) -> bytes:
    text = b"".join(mark + line for line in _split(lines))
    return text if text.endswith(b"\n") or not text else text + b"\n\\ No newline at end of file\n"


def _split(lines: bytes) -> list[bytes]:
    """Split into lines at newlines only, and keep the newlines."""
    whole, last = lines.split(b"\n")[:-1], lines.rpartition(b"\n")[2]
    return [*(line + b"\n" for line in whole), *([last] if last else [])]


def _place(start: int, count: int) -> bytes:
    """Return the range of a hunk, such as `12,3`; if it is empty, with the line before it (POSIX, `diff -u`)."""
    return b"%d" % start if count == 1 else b"%d,%d" % (start if count else start - 1, count)


def _name(prefix: bytes, path: str) -> bytes:
    """Return a file name as git writes it: quoted if necessary; if the name has spaces, with a tab at the end."""
    raw = prefix + os.fsencode(path).removeprefix(b"/")
    if any(byte < 0x20 or byte in b'"\\\x7f' for byte in raw):
        plain = {ord('"'): b'\\"', ord("\\"): b"\\\\"}
        return b'"%b"' % b"".join(
            plain.get(byte, b"\\%03o" % byte if byte < 0x20 or byte == 0x7F else bytes([byte])) for byte in raw
        )
    return raw + b"\t" if b" " in raw else raw


def grep_lines(files: Iterable[tuple[str, Iterable[Match | Context]]]) -> Iterator[str]:
    """Yield `path:line:text` for each matching line, `path-line-text` for context, and `--` between groups.

    Without line numbers, the lines are `path:text` and `path-text`. With `replace`, the text has the replacements.
    As in grep, there are groups only if there is context. A new group begins at a line that does not directly follow
    the previous line, and at a new file if the previous file has lines of context.
    """
    pending_separator = False
    for path, lines in files:
        gaps = Gaps()
        has_context = False
        for line in lines:
            has_context = has_context or isinstance(line, Context)
            if gaps.before(line) or pending_separator:
                yield "--"
            pending_separator = False
            yield from as_printed(line, path)
        pending_separator = has_context
