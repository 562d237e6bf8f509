"""A page of matches, or of paths, to an answer whose text keeps to a budget and says what it leaves out: pure."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ripwrap import _text
from ripwrap._message import plural
from ripwrap._rg.exit import Exit
from ripwrap._rg.fair import shares
from ripwrap._sandbox import Place
from ripwrap.answers import ContentMatch, GrepContentResult, ToolResult, printable
from ripwrap.models import Context, Match, PathError, Span
from ripwrap.results import FileMatches

_NAMES = 2 / 3  # How much of the budget the names of files may take.
_ERROR = 200  # How much is said of a path that could not be read, in characters.

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)")

R = TypeVar("R", bound=ToolResult)


@dataclass(frozen=True, slots=True)
class Page:
    """What there is to be told of a search.

    Attributes:
        files: The files, with those of their matches that are on the page.
        offset: How many matches were skipped before it.
        reachable: How many matches some offset reaches: those of `max_files` files.
        total_matches: How many there are.
        files_matched: In how many files.
        exact: Whether those numbers are all that there are.
        names: How many files may be named that no match is shown of; later pages name none again.
    """

    files: tuple[FileMatches, ...]
    offset: int
    reachable: int
    total_matches: int
    files_matched: int
    exact: bool
    names: int


def content_matches(file: FileMatches, name: str, max_line: int) -> list[ContentMatch]:
    """The matches of a file, their lines clipped around what matched."""
    return [
        ContentMatch(
            file=name,
            line=match.line_number or 0,
            before=tuple(_clipped(line, max_line) for line in match.before),
            match=_clipped(match, max_line),
            after=tuple(_clipped(line, max_line) for line in match.after),
        )
        for match in file.matches
    ]


def fitted(
    page: Page, found: Mapping[str, Sequence[ContentMatch]], answer: GrepContentResult, max_chars: int
) -> GrepContentResult:
    """The answer with as many matches as the budget has room for, and with at least one.

    Args:
        page: What there is to be told.
        found: The matches of each file that has any on the page, by its name.
        answer: The answer without its matches, but with all files.
        max_chars: How long its text may be.
    """
    order = _in_turn(page, [found.get(file.path, ()) for file in answer.files])
    names = _room_for_names(page, answer, max_chars)
    told = shortened(lambda count: _told(page, answer, order[:count], names), len(order), max_chars)
    if told.matches or not order:
        return told
    return shortened(lambda length: _told(page, answer, [_alone(order[0], length)], 0), max_chars, max_chars)


def shortened(answer_of: Callable[[int], R], most: int, max_chars: int) -> R:
    """The answer with as many items as the budget has room for.

    Args:
        answer_of: The answer with the first so many items.
        most: How many there are.
        max_chars: How long its text may be.
    """
    answer = answer_of(most)
    if len(str(answer)) <= max_chars:
        return answer
    fits, too_many = 0, most
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        fits, too_many = (middle, too_many) if len(str(answer_of(middle))) <= max_chars else (fits, middle)
    return answer_of(fits)


def listed(total: int, noun: str, offset: int, count: int, *, exact: bool) -> str:
    """What is to be said of a page of paths.

    Args:
        total: How many there are, if `exact`.
        noun: What they are, e.g. `file`.
        offset: How many were skipped before the page.
        count: How many are on it.
        exact: Whether the search came to its end.
    """
    much = f"{'' if exact else 'at least '}{plural(total, noun)}"
    if count == total:
        return f"{much[0].upper()}{much[1:]}."
    if not count:
        return f"Showing none of {much} from offset={offset} on."
    said = f"Showing {offset + 1} to {offset + count} of {much}."
    upto = offset + count
    return said if upto >= total else f"{said} offset={upto} gives the next; a narrower pattern or path gives fewer."


def notes_of(end: Exit | None, ended_after: float | None, place: Place) -> Iterator[str]:
    """What is to be said of how rg ended.

    Args:
        end: How it did; `None` if there was no rg.
        ended_after: How many seconds it had, if they were too few.
        place: Where it was. What rg says of paths elsewhere is not told: it reads ignore files above a root, though
            they do not count, and quotes what it cannot parse.
    """
    if ended_after is not None:
        seconds = f"{ended_after:g} seconds"
        yield f"The search was ended after {seconds}, so there may be more; narrow it, e.g. by path."
    errors = [error for error in end.path_errors() if place.has(error.path)] if end else []
    if errors:
        yield f"{plural(len(errors), 'path')} could not be read, the first: {_told_of(errors[0])}."


def _told_of(error: PathError) -> str:
    """An error, without what it quotes: an ignore file may be a link to a file that is none of a model's business."""
    line = re.match(r"line \d{1,10}(?=: )", error.message)
    said = f"{_text.shown(error.path or '')}: {line[0]} is no rule that rg can read" if line else str(error)
    return printable(said)[:_ERROR]


def snippet(text: str, lines: int, max_line: int) -> str:
    """The first lines of a text, each cut if it is long."""
    return "\n".join(_harmless(_around(line, None, max_line)) for line in text.rstrip("\r\n").split("\n")[:lines])


def _room_for_names(page: Page, answer: GrepContentResult, max_chars: int) -> int:
    """How many files can be named so that there is room left for some of their matches."""

    def named(count: int) -> GrepContentResult:
        return _told(page, answer, (), count)

    return len(shortened(named, min(page.names, len(answer.files)), int(max_chars * _NAMES)).files)


def _alone(match: ContentMatch, length: int) -> ContentMatch:
    """A match that is longer than a whole answer may be: its first characters."""
    text = match.match if len(match.match) <= length else f"{match.match[:length]}…"
    return match.model_copy(update={"before": (), "after": (), "section": None, "match": text})


def _told(page: Page, answer: GrepContentResult, matches: Sequence[ContentMatch], names: int) -> GrepContentResult:
    """The answer with some matches, their files, and so many names of the first files."""
    place = {file.path: number for number, file in enumerate(answer.files)}
    ordered = tuple(sorted(matches, key=lambda match: (place[match.file], match.line)))
    shown = {match.file for match in matches}
    files = tuple(file for number, file in enumerate(answer.files) if number < names or file.path in shown)
    upto = page.offset + len(matches)
    more = page.reachable > upto
    told = answer.model_copy(
        update={
            "matches": ordered,
            "files": files,
            "truncated": more or page.total_matches > upto or not page.exact,
            "next_offset": upto if more and matches else None,
        }
    )
    if not page.total_matches or (page.total_matches <= upto and not page.offset):
        return told
    return told.model_copy(update={"message": _showing(page, told)})


def _showing(page: Page, told: GrepContentResult) -> str:
    least = "" if page.exact else "at least "
    files = len({match.file for match in told.matches})
    all_files, all_matches = plural(page.files_matched, "matching file"), plural(page.total_matches, "match", "es")
    said = [f"Showing {files} of {least}{all_files}, {len(told.matches)} of {least}{all_matches}."]
    if page.offset >= page.reachable:
        said.append(f"There is none from offset={page.offset} on.")
    if told.next_offset is not None:
        said.append(f"offset={told.next_offset} gives the next.")
    elif page.total_matches > page.reachable:
        said.append("A larger max_files takes in more files; an offset reaches no further.")
    if unnamed := page.files_matched - len(told.files):
        said.append(f"{plural(unnamed, 'more file')} with matches not named here.")
    said.append("Use file_pattern or refine your pattern to narrow results.")
    return " ".join(said)


def _in_turn(page: Page, files: Sequence[Sequence[ContentMatch]]) -> list[ContentMatch]:
    """The matches in the order in which they are taken, behind those that are skipped."""
    skipped = shares([file.total_matches for file in page.files], page.offset)
    ranked = [
        (number, place, match)
        for place, (first, matches) in enumerate(zip(skipped, files, strict=False))
        for number, match in enumerate(matches, first)
    ]
    return [match for _, _, match in sorted(ranked, key=lambda one: one[:2])]


def _clipped(line: Match | Context, max_line: int) -> str:
    """The text of a line, or of several, each cut around its first hit if it is long."""
    text = line.lines
    if len(text) <= max_line:
        return _harmless(text.rstrip("\r\n"))
    spans = line.spans() if isinstance(line, Match) else ()
    pieces: list[str] = []
    start = 0
    for part in text.rstrip("\r\n").split("\n"):
        hit = next(
            ((first - start, last - start) for first, last in spans if last > start and first < start + len(part)), None
        )
        pieces.append(_harmless(_around(part, hit, max_line)))
        start += len(part) + 1
    return "\n".join(pieces)


def _harmless(text: str) -> str:
    """The text with control characters, which some programs cannot take, made visible; line ends and tabs stay."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def _around(text: str, hit: Span | None, max_line: int) -> str:
    if len(text) <= max_line:
        return text.rstrip("\r")
    first, last = (max(hit[0], 0), min(hit[1], len(text))) if hit else (0, 0)
    spare = max(max_line - (last - first), 0) // 2
    start = min(max(first - spare, 0), len(text) - max_line)
    end = start + max_line
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")
