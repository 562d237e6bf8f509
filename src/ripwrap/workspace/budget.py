"""Fit a page of matches or paths into `max_chars` characters, and count what is left out; no I/O.

In this package, an answer is the result of a tool, and its budget is the workspace's `max_chars`.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ripwrap._ripgrep.page_collector import path_order
from ripwrap._ripgrep.round_robin import shares
from ripwrap._text import has_text, in_seconds, plural, shown
from ripwrap.models import Context, Match, PathError, Span
from ripwrap.results import FileMatches
from ripwrap.workspace.anchors import HASHED_CHARS, line_hashes
from ripwrap.workspace.redact import MAX_SECRET_CHARS, Redactor
from ripwrap.workspace.results import ContentMatch, Engine, GrepContentResult, ToolResult
from ripwrap.workspace.sandbox import Location
from ripwrap.workspace.scope import FOLLOW_NOTE, Scope

NAMES_SHARE = 2 / 3
"""Maximum share of the length of an answer (`max_chars`) that the names of files may take, from 0 to 1."""

MAX_REACHABLE = 20_000
"""Maximum value of `offset + max_matches`. While rg runs, at most this number of matches is in memory."""

MAX_ERROR_CHARS = 200
"""Maximum number of characters of the error about an unreadable path."""

R = TypeVar("R", bound=ToolResult)


@dataclass(frozen=True, slots=True)
class Page:
    """Page of the matches of a search.

    Attributes:
        files: Files, with their matches on the page.
        offset: Number of matches before the page.
        reachable: Number of matches on all pages together: all matches or, with `max_files`, the matches in the first
            `max_files` files; at most `MAX_REACHABLE`.
        total_matches: Number of all matches.
        files_matched: Number of files with matches.
        exact: True if `total_matches` and `files_matched` are final.
        names: Maximum number of files that the answer names, even if it shows none of their matches; 0 on every page
            except the first.
    """

    files: tuple[FileMatches, ...]
    offset: int
    reachable: int
    total_matches: int
    files_matched: int
    exact: bool
    names: int


def content_matches(
    file: FileMatches, name: str, max_line: int, redactor: Redactor | None = None, *, anchors: bool = False
) -> list[ContentMatch]:
    """Return the matches of a file as an answer shows them: secrets masked, long lines cut to the text near the match.

    Args:
        file: Matches of the file.
        name: Name of the file in the answer.
        max_line: Maximum length of a line, in characters.
        redactor: Function that masks secrets; `None` to show them.
        anchors: True to add the hash of each line.
    """
    return [
        ContentMatch(
            file=name,
            line=match.line_number or 0,
            before=tuple(_clipped(line, max_line, redactor) for line in match.before),
            match=_clipped(match, max_line, redactor),
            after=tuple(_clipped(line, max_line, redactor) for line in match.after),
            anchors=_hashes((*match.before, match, *match.after), redactor) if anchors else (),
        )
        for match in file.matches
    ]


def _hashes(lines: Iterable[Match | Context], redactor: Redactor | None) -> tuple[str, ...]:
    """Return the hash of each line, as it is in the file, even if the answer shows only a part of the line.

    Secrets are masked before a line is hashed, so that the hash reveals nothing about a secret.
    """
    texts: list[str] = []
    for line in lines:
        # read_file and resolve read only the beginning of a long line; mask and hash the same part here.
        for number, text in enumerate(line.lines.rstrip("\r\n").split("\n"), line.line_number or 1):
            texts.append(redactor(text[: HASHED_CHARS + MAX_SECRET_CHARS], number).text if redactor else text)
    return line_hashes(texts)


def fit_to_budget(
    page: Page, found: Mapping[str, Sequence[ContentMatch]], answer: GrepContentResult, max_chars: int
) -> GrepContentResult:
    """Return the answer with as many matches as fit into `max_chars`.

    If not even the first match fits, return the answer with the beginning of that match.

    Args:
        page: Page of the search.
        found: Matches on the page, by the name of their file.
        answer: Answer with all files, but without matches.
        max_chars: Maximum length of the text, in characters.
    """
    order = _round_robin(page, [found.get(file.path, ()) for file in answer.files])
    names = _room_for_names(page, answer, max_chars)
    fitted = shortened(lambda count: _with_matches(page, answer, order[:count], names), len(order), max_chars)
    if fitted.matches or not order:
        return fitted
    return shortened(lambda length: _with_matches(page, answer, [_alone(order[0], length)], 0), max_chars, max_chars)


def shortened(answer_of: Callable[[int], R], most: int, max_chars: int) -> R:
    """Return an answer with as many items (matches, paths, entries, …) as fit into `max_chars`; it may have none.

    Args:
        answer_of: Function that takes a number N, and returns the answer with only the first N items.
        most: Total number of items.
        max_chars: Maximum length of the text, in characters.
    """
    answer = answer_of(most)
    if len(str(answer)) <= max_chars:
        return answer
    fits, too_many = 0, most
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        fits, too_many = (middle, too_many) if len(str(answer_of(middle))) <= max_chars else (fits, middle)
    return answer_of(fits)


def listed(total: int, noun: str, offset: int, count: int, *, exact: bool, matches: int = 0) -> str:
    """Return the message for a page of paths: how many there are, which are shown, and how to get the next page.

    Args:
        total: Number of all paths; if `exact` is False, number of paths found so far.
        noun: Noun for the paths in the singular, e.g. `file`.
        offset: Number of paths before the page.
        count: Number of paths on the page.
        exact: True if the search ran to its end.
        matches: Number of matches in all `total` files together; 0 if matches were not counted.
    """
    much = f"{'' if exact else 'at least '}{plural(total, noun)}"
    much += f" with {plural(matches, 'match', 'es')}" if matches else ""
    if count == total:
        return f"{much[0].upper()}{much[1:]}."
    if not count:
        return f"Showing none of {much} from offset={offset} on."
    said = f"Showing {offset + 1} to {offset + count} of {much}."
    end = offset + count
    return said if end >= total else f"{said} offset={end} gives the next page; a narrower pattern or path finds less."


def notes_of(errors: Iterable[PathError], ended_after: float | None, location: Location) -> Iterator[str]:
    """Yield a note if the search was stopped at its time limit, and a note if paths could not be read.

    Args:
        errors: Paths that could not be read, relative to the directory that rg runs in, in any order. Broken links are
            not shown.
        ended_after: Time limit in seconds, if the search was stopped at that limit; otherwise `None`.
        location: Location of the search. Errors about paths outside of the location are not shown, because rg reads
            ignore files above a root, and its errors may quote lines of these files.
    """
    if ended_after is not None:
        seconds = in_seconds(ended_after)
        yield f"The search was stopped after {seconds}, so results may be missing; narrow the search, e.g. with path."
    own = [error for error in errors if location.has(error.path) and not error.harmless]
    if own:
        first = min(own, key=lambda error: path_order(os.fsencode(error.path or "")))
        named = first.model_copy(update={"path": location.shown(first.path or "")})
        yield f"{plural(len(own), 'path')} could not be read, the first: {_path_error_text(named)}."


def scope_notes(scope: Scope, errors: Iterable[PathError], *, timed_out: bool, engine: Engine) -> tuple[str, ...]:
    """Return the notes of a listing: about its time limit, unreadable paths, followed links and limited depth."""
    ended_after = scope.timeout if timed_out else None
    notes = [
        "Links were not followed, because that needs rg." if note == FOLLOW_NOTE and engine == "python" else note
        for note in scope.notes
    ]
    return (*notes_of(errors, ended_after, scope.location), *notes)


def denied_note(number: int) -> Iterator[str]:
    """Yield a note with the number of denied files and directories that are left out, if there are any."""
    if number:
        what = "denied file or directory" if number == 1 else "denied files or directories"
        yield f"{number} {what} not listed."


def _path_error_text(error: PathError) -> str:
    """Return the text of an error about a path, without the line of an ignore file that rg quotes.

    The ignore file may be a link out of the roots, so no answer may show its lines.
    """
    line = re.match(r"line \d{1,10}(?=: )", error.message)
    said = f"{shown(error.path or '')}: {line[0]} is not a rule that rg can read" if line else str(error)
    return shown(said)[:MAX_ERROR_CHARS]


def snippet(text: str, lines: int, max_line: int) -> str:
    """Return the first `lines` lines of a text, with long lines cut and control characters escaped.

    Blank lines after these lines are included, unless further text follows. If `lines` is 0, return no line.
    """
    parts = text.removesuffix("\n").split("\n")
    if lines and not has_text(parts[lines:]):
        lines = len(parts)
    return "\n".join(shown(_around(line, None, max_line), lines=True) for line in parts[:lines])


def _room_for_names(page: Page, answer: GrepContentResult, max_chars: int) -> int:
    """Return how many files the answer may name: at most `page.names`, in at most `NAMES_SHARE` of `max_chars`."""

    def named(count: int) -> GrepContentResult:
        return _with_matches(page, answer, (), count)

    return len(shortened(named, min(page.names, len(answer.files)), int(max_chars * NAMES_SHARE)).files)


def _alone(match: ContentMatch, length: int) -> ContentMatch:
    """Return a match without context and definition, cut after `length` characters, because the whole is too long."""
    text = match.match if len(match.match) <= length else f"{match.match[:length]}…"
    before = len(match.before)
    anchors = match.anchors[before : before + text.count("\n") + 1]
    return match.model_copy(update={"before": (), "after": (), "section": None, "match": text, "anchors": anchors})


def _with_matches(
    page: Page, answer: GrepContentResult, matches: Sequence[ContentMatch], names: int
) -> GrepContentResult:
    """Return a copy of the answer with only `matches`. It names the files of `matches`, and the first `names` files."""
    order = {file.path: number for number, file in enumerate(answer.files)}
    ordered = tuple(sorted(matches, key=lambda match: (order[match.file], match.line)))
    shown = {match.file for match in matches}
    files = tuple(file for number, file in enumerate(answer.files) if number < names or file.path in shown)
    end = page.offset + len(matches)
    more = page.reachable > end
    shortened_answer = answer.model_copy(
        update={
            "matches": ordered,
            "files": files,
            "truncated": more or page.total_matches > end or not page.exact,
            "next_offset": end if more and matches else None,
        }
    )
    places = {id(match): number for number, match in enumerate(ordered)}
    shortened_answer.with_turns(page.offset, [places[id(match)] for match in matches])
    if not page.total_matches or (page.total_matches <= end and not page.offset):
        return shortened_answer
    return shortened_answer.model_copy(update={"message": _showing(page, shortened_answer)})


def _showing(page: Page, answer: GrepContentResult) -> str:
    """Return the message for an answer that shows only some of the matches."""
    least = "" if page.exact else "at least "
    files = len({match.file for match in answer.matches})
    all_files, all_matches = plural(page.files_matched, "matching file"), plural(page.total_matches, "match", "es")
    sentences = [f"Showing {files} of {least}{all_files}, {len(answer.matches)} of {least}{all_matches}."]
    if answer.next_offset is not None:
        sentences.append(f"offset={answer.next_offset} gives the next page.")
    elif page.reachable == MAX_REACHABLE < page.total_matches:
        sentences.append(f"Only the first {MAX_REACHABLE:,} matches can be shown.")
    else:
        if page.offset >= page.reachable:
            sentences.append(f"There are no matches from offset={page.offset} on.")
        if page.total_matches > page.reachable:
            sentences.append("A larger max_files shows more files; a larger offset does not.")
    if unnamed := page.files_matched - len(answer.files):
        sentences.append(f"Not named here: {plural(unnamed, 'more file')} with matches.")
    sentences.append("Use file_pattern or refine your pattern to narrow results.")
    return " ".join(sentences)


def _round_robin(page: Page, files: Sequence[Sequence[ContentMatch]]) -> list[ContentMatch]:
    """Return the matches in rotation: the first match of every file, then the second match of every file, and so on."""
    skipped = shares([file.total_matches for file in page.files], page.offset)
    ranked = [
        (number, place, match)
        for place, (first, matches) in enumerate(zip(skipped, files, strict=False))
        for number, match in enumerate(matches, first)
    ]
    return [match for _, _, match in sorted(ranked, key=lambda one: one[:2])]


def _clipped(line: Match | Context, max_line: int, redactor: Redactor | None) -> str:
    """Return the lines of a match or of its context, as the answer shows them.

    Secrets are masked. Of a long line, only the text around its first match is shown.
    """
    spans: Sequence[Span] = line.spans() if isinstance(line, Match) and len(line.lines) > max_line else ()
    parts: list[tuple[str, Span | None]] = []
    start = at = 0
    for number, part in enumerate(line.lines.rstrip("\r\n").split("\n"), line.line_number or 1):
        end = start + len(part)
        while at < len(spans) and spans[at][1] <= start:  # the spans are in order, as the lines are
            at += 1
        near = spans[at] if at < len(spans) and spans[at][0] < end else None
        hit = near and (max(near[0], start) - start, min(near[1], end) - start)
        parts.append((part, hit) if redactor is None else _masked(part, hit, number, max_line, redactor))
        start = end + 1
    text = "\n".join(part for part, _ in parts)
    if len(text) <= max_line:
        return shown(text, lines=True)
    return "\n".join(shown(_around(part, hit, max_line), lines=True) for part, hit in parts)


def _masked(line: str, hit: Span | None, number: int, max_line: int, redactor: Redactor) -> tuple[str, Span | None]:
    """Return a line with secrets masked, and the match's position in the masked line; cut a very long line first."""
    start, end = _neighbourhood(line, hit or (0, 0), max_line)
    redacted = redactor(line[start:end], number)
    return redacted.text, hit and redacted.moved((hit[0] - start, min(hit[1], end) - start))


def _neighbourhood(text: str, hit: Span, max_line: int) -> Span:
    """Return start and end of the part of a line that is searched for secrets.

    The part is the whole line; in a long line, it is the text near the match.
    """
    margin = max_line + MAX_SECRET_CHARS
    if len(text) <= 4 * margin:
        return 0, len(text)
    return max(hit[0] - margin, 0), min(hit[0] + max_line + margin, len(text))


def _around(text: str, hit: Span | None, max_line: int) -> str:
    """Return at most `max_line` characters of a line, and `…` in place of the rest.

    These characters are the text around the match, or the beginning of a line without a match.
    """
    if len(text) <= max_line:
        return text.rstrip("\r")
    first, last = (max(hit[0], 0), min(hit[1], len(text))) if hit else (0, 0)
    spare = max(max_line - (last - first), 0) // 2
    start = min(max(first - spare, 0), len(text) - max_line)
    end = start + max_line
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")
