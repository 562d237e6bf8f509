"""Lines as answers show them: secrets masked, long lines cut to the text near the match; no I/O."""

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ripwrap._operations.pagination import FurtherMatch
from ripwrap._system.concurrency import CANCELLED
from ripwrap._text import has_text, shown
from ripwrap.models import Context, Match, Span
from ripwrap.workspace.arguments import HASHED_CHARS, line_hashes
from ripwrap.workspace.grep_content_models import ContentMatch
from ripwrap.workspace.redact import MAX_SECRET_CHARS, Redactor

if TYPE_CHECKING:
    from ripwrap.results import FileMatches


def content_matches(
    file: "FileMatches",
    name: str,
    max_line: int,
    redactor: Redactor | None = None,
    *,
    anchors: bool = False,
    max_chars: int = sys.maxsize,
) -> list[ContentMatch]:
    """Return the matches of a file as an answer shows them: secrets masked, long lines cut to what is near it."""

    def clipped(line: Match | Context) -> str:
        """Return the lines of a match or of its context, as the answer shows them.

        Secrets are masked. Of a long line, only the text around its first match is shown. Lines that do not fit into an
        answer of `max_chars` characters are left out, as a whole file may be one match.
        """
        spans: Sequence[Span] = line.spans() if isinstance(line, Match) and len(line.lines) > max_line else ()
        parts: list[tuple[str, Span | None]] = []
        start = at = 0
        left = max_chars
        for number, part in enumerate(line.lines.rstrip("\r\n").split("\n"), line.line_number or 1):
            end = start + len(part)
            while at < len(spans) and spans[at][1] <= start:  # the spans are in order, as the lines are
                at += 1
            near = spans[at] if at < len(spans) and spans[at][0] < end else None
            hit = near and (max(near[0], start) - start, min(near[1], end) - start)
            parts.append((part, hit) if redactor is None else _masked(part, hit, number, max_line, redactor))
            left -= min(len(parts[-1][0].rstrip("\r")), max_line) + 1
            if left < 0:
                break
            start = end + 1
        text = "\n".join(part for part, _ in parts)
        if len(text) <= max_line:
            return shown(text, lines=True)
        return "\n".join(shown(_around(part, hit, max_line), lines=True) for part, hit in parts)

    def context_lines(context: Iterable[Context]) -> Iterable[str]:
        for line in context:
            yield from clipped(line).split("\n")  # a match of several lines may be among them

    found: list[ContentMatch] = []
    for match in file.matches:
        CANCELLED.get().check()
        before, after = tuple(context_lines(match.before)), tuple(context_lines(match.after))
        hashes = _hashes((*match.before, match, *match.after), max_chars, redactor) if anchors else ()
        shown_match = clipped(match)
        found.append(
            ContentMatch(
                file=name, line=match.line_number or 0, before=before, match=shown_match, after=after, anchors=hashes
            ).with_further(
                number
                for line in (*match.before, *match.after)
                if isinstance(line, FurtherMatch) and line.line_number is not None
                for number in range(line.line_number, line.line_number + line.lines.rstrip("\r\n").count("\n") + 1)
            )
        )
    return found


def _hashes(lines: Iterable[Match | Context], most: int, redactor: Redactor | None) -> tuple[str, ...]:
    """Return the hash of each whole line with its secrets masked, so that the hash reveals nothing about a secret."""
    texts: list[str] = []
    for line in lines:
        # read_file and resolve read only the beginning of a long line; mask and hash the same part here.
        for number, text in enumerate(line.lines.rstrip("\r\n").split("\n")[:most], line.line_number or 1):
            texts.append(redactor(text[: HASHED_CHARS + MAX_SECRET_CHARS], number).text if redactor else text)
    return line_hashes(texts)


def snippet(text: str, lines: int, max_line: int) -> str:
    """Return the first `lines` lines of a text, with long lines cut and control characters escaped.

    Blank lines after these lines are included, unless further text follows. If `lines` is 0, return no line.
    """
    parts = text.removesuffix("\n").split("\n")
    if lines and not has_text(parts[lines:]):
        lines = len(parts)
    return "\n".join(shown(_around(line, None, max_line), lines=True) for line in parts[:lines])


def _masked(line: str, hit: Span | None, number: int, max_line: int, redactor: Redactor) -> tuple[str, Span | None]:
    """Return a line with secrets masked, and the match's position in the masked line; cut a very long line first."""
    at, margin = hit[0] if hit else 0, max_line + MAX_SECRET_CHARS
    start, end = max(at - margin, 0), min(at + max_line + margin, len(line))
    if len(line) <= 4 * margin:
        start, end = 0, len(line)
    redacted = redactor(line[start:end], number)
    return redacted.text, hit and redacted.moved((hit[0] - start, min(hit[1], end) - start))


def _around(text: str, hit: Span | None, max_line: int) -> str:
    """Return at most `max_line` characters around the match, or of the beginning, and `…` in place of the rest."""
    if len(text) <= max_line:
        return text.rstrip("\r")
    first, last = (max(hit[0], 0), min(hit[1], len(text))) if hit else (0, 0)
    spare = max(max_line - (last - first), 0) // 2
    start = min(max(first - spare, 0), len(text) - max_line)
    end = start + max_line
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")
