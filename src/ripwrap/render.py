"""Models to HTML, with a budget, and where lines are missing between those that are shown: pure."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from ripwrap._text import shown
from ripwrap.models import Begin, Context, Match, Message, Span, TreeEntry

MAX_HTML = 200_000
"""How long the HTML of one result may become, in characters: a notebook keeps what it shows."""

MAX_LINE = 2000
"""How much of one line is shown in HTML, in characters."""

_PRE = '<pre style="line-height: 1.3">'
_DIM = '<span style="opacity: 0.6">'


class Gaps:
    """Whether lines are missing before a message: rg says so with `--`, in JSON only the numbers tell (rg-facts 18)."""

    def __init__(self) -> None:
        self._context = False
        self._next: int | None = None

    def before(self, message: Message) -> bool:
        """Whether lines are missing between the last message that this was asked of and `message`."""
        if isinstance(message, Begin):
            self._next = None
        if not isinstance(message, (Match, Context)) or message.line_number is None:
            return False
        self._context = self._context or isinstance(message, Context)
        gap = self._context and self._next not in (None, message.line_number)
        self._next = message.line_number + message.raw_lines.removesuffix(b"\n").count(b"\n") + 1
        return gap


def html(message: str, files: Iterable[tuple[str, Iterable[Match | Context]]]) -> str:
    """A message, then for each file its path and its lines; what is over the budget is said to be left out."""
    pieces = [f"<div>{escape(message)}</div>"]
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
            pieces.append("<div>What follows is too long to be shown here; the result has it.</div>")
            break
    return "".join(pieces)


def _html_lines(lines: Iterable[Match | Context]) -> Iterator[str]:
    gaps = Gaps()
    for line in lines:
        if gaps.before(line):
            yield f"{_DIM}--</span>\n"
        mark = ":" if isinstance(line, Match) else "-"
        for offset, text in enumerate(_marked_up(line).removesuffix("\n").split("\n")):
            number = "" if line.line_number is None else line.line_number + offset
            yield f"{_DIM}{number}{mark}</span> {text}\n"


def _marked_up(line: Match | Context) -> str:
    """The text with its hits set off, each line for itself, and what they are replaced by behind them."""
    spans = line.spans()
    start, end = _clip(line.lines, spans)
    pieces, done = ["…" if start else ""], start
    for hit, (first, last) in zip(line.submatches if isinstance(line, Match) else (), spans, strict=False):
        if first < start or last > end:
            continue
        pieces.append(escape(line.lines[done:first]))
        if hit.replacement is None:
            pieces.append(_tagged("mark", line.lines[first:last]))
        else:
            # Its lines are none of the file's, so they have no numbers.
            pieces += _tagged("del", line.lines[first:last]), _tagged("ins", hit.replacement).replace("\n", "<br>")
        done = last
    rest = "…" if end < len(line.lines) else ""
    return "".join((*pieces, escape(line.lines[done:end]), rest))


def _clip(text: str, spans: Sequence[Span]) -> Span:
    """Which part of a text is shown: all of it, or, if it is too long, that around its first hit."""
    if len(text) <= MAX_LINE:
        return 0, len(text)
    start = max(spans[0][0] - MAX_LINE // 4, 0) if spans else 0
    return start, start + MAX_LINE


def _tagged(tag: str, text: str) -> str:
    return "\n".join(f"<{tag}>{escape(part)}</{tag}>" if part else "" for part in text.split("\n"))


def html_tree(entries: Sequence[TreeEntry]) -> str:
    """A tree's lines, directories in bold, what was cut pale; what is over the budget is said to be left out."""
    pieces: list[str] = []
    left = MAX_HTML
    for entry in entries:
        line = escape(shown(str(entry)))
        styled = f"<b>{line}</b>" if entry.is_dir else f"{_DIM}{line}</span>" if entry.truncated else line
        left -= len(styled)
        if left < 0:
            pieces.append("… and more, too long to be shown here")
            break
        pieces.append(styled)
    return _PRE + "\n".join(pieces) + "</pre>"
