"""Render matches and trees as HTML of limited length, and find gaps between lines; no I/O."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from ripwrap._text import shown
from ripwrap.models import Begin, Context, Match, Message, TreeEntry

MAX_HTML = 200_000
"""Maximum number of characters of HTML for a result; limited because a notebook stores its output."""

MAX_LINE = 2000
"""Maximum number of characters of a line to show in HTML."""

_PRE = '<pre style="line-height: 1.3">'
_DIM = '<span style="opacity: 0.6">'


class Gaps:
    """Detector of gaps between lines; rg marks them with `--` in its text output, but not in JSON (rg-facts 18)."""

    def __init__(self) -> None:
        self._context = False
        self._next: int | None = None

    def before(self, message: Message) -> bool:
        """Return True if rg would write `--` before a message.

        rg writes `--` where lines of the file are missing before `message`, but only if the messages so far include a
        line of context.
        """
        if isinstance(message, Begin):
            self._next = None
        if not isinstance(message, (Match, Context)):
            return False
        self._context = self._context or isinstance(message, Context)
        raw, end = message.raw_lines, message.line_terminator.encode()[-1:] or b"\n"
        start, length = message.line_number, raw.removesuffix(end).count(end) + 1
        if start is None:
            start, length = message.absolute_offset, len(raw)
        gap = self._context and self._next not in (None, start)
        self._next = start + length
        return gap


def html(message: str, files: Iterable[tuple[str, Iterable[Match | Context]]]) -> str:
    """Return a message, and then the path and lines of each file, as HTML."""
    pieces = [f"<div>{_escape(message)}</div>"]
    left = MAX_HTML
    for path, lines in files:
        heading = f"<div><b>{escape(shown(path))}</b></div>"
        body: list[str] = []
        left -= len(heading) + len(_PRE) + len("</pre>")
        for line in _html_lines(lines):
            left -= len(line)
            if left < 0:
                break
            body.append(line)
        if body:
            pieces.append(f"{heading}{_PRE}{''.join(body)}</pre>")
        if left < 0:
            pieces.append("<div>The rest is too long to show here; it is in the result.</div>")
            break
    return "".join(pieces)


def _html_lines(lines: Iterable[Match | Context]) -> Iterator[str]:
    gaps = Gaps()
    for line in lines:
        if gaps.before(line):
            yield f"{_DIM}--</span>\n"
        mark = ":" if isinstance(line, Match) else "-"
        spans = line.spans()
        start, end = 0, len(line.lines)
        if end > MAX_LINE:  # only the part around the first match is shown
            start = max(spans[0][0] - MAX_LINE // 4, 0) if spans else 0
            end = start + MAX_LINE
        pieces, done = ["…" if start else ""], start
        for hit, (first, last) in zip(line.submatches if isinstance(line, Match) else (), spans, strict=False):
            if first < start or last > end:
                continue
            pieces.append(_escape(line.lines[done:first]))
            if hit.replacement is None:
                pieces.append(_tagged("mark", line.lines[first:last]))
            else:
                # Lines of a replacement are not lines of the file, so they have no numbers.
                pieces += _tagged("del", line.lines[first:last]), _tagged("ins", hit.replacement).replace("\n", "<br>")
            done = last
        rest = "…" if end < len(line.lines) else ""
        for offset, text in enumerate(
            "".join((*pieces, _escape(line.lines[done:end]), rest)).removesuffix("\n").split("\n")
        ):
            number = "" if line.line_number is None else line.line_number + offset
            yield f"{_DIM}{number}{mark}</span> {text}\n"


def _escape(text: str) -> str:
    return escape(shown(text, lines=True))


def _tagged(tag: str, text: str) -> str:
    return "\n".join(f"<{tag}>{_escape(part)}</{tag}>" if part else "" for part in text.split("\n"))


def html_tree(entries: Sequence[TreeEntry]) -> str:
    """Return a tree as HTML. Directories are bold, and lines that count omitted entries are dimmed."""
    pieces: list[str] = []
    left = MAX_HTML
    for entry in entries:
        line = escape(str(entry))
        styled = f"<b>{line}</b>" if entry.is_dir else f"{_DIM}{line}</span>" if entry.truncated else line
        left -= len(styled)
        if left < 0:
            pieces.append("… the rest is too long to show here")
            break
        pieces.append(styled)
    return _PRE + "\n".join(pieces) + "</pre>"
