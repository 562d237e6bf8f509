"""Fit a page of matches or paths into `max_chars` characters, and count what is left out; no I/O.

In this package, an answer is the result of a tool, and its budget is the workspace's `max_chars`.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from ripwrap._ripgrep.page_collector import shares
from ripwrap._text import plural
from ripwrap.workspace.grep_content_tool import ContentMatch, GrepContentResult
from ripwrap.workspace.results import ToolResult

if TYPE_CHECKING:
    from ripwrap.results import FileMatches

NAMES_SHARE = 2 / 3
"""Maximum share of the length of an answer (`max_chars`) that the names of files may take, from 0 to 1."""

MAX_REACHABLE = 20_000
"""Maximum value of `offset + max_matches`. While rg runs, at most this number of matches is in memory."""


R = TypeVar("R", bound=ToolResult)


@dataclass(frozen=True, slots=True)
class Page:
    """Page of the matches of a search."""

    files: "tuple[FileMatches, ...]"
    offset: int
    reachable: int
    total_matches: int
    files_matched: int
    exact: bool
    names: int
    hits: Mapping[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    readable: bool = True


def fit_to_budget(
    page: Page, found: Mapping[str, Sequence[ContentMatch]], answer: GrepContentResult, max_chars: int
) -> GrepContentResult:
    """Return the answer with as many matches as fit into `max_chars`.

    If not even the first match fits, return the answer with the beginning of that match.
    """
    order = _round_robin(page, [found.get(file.path, ()) for file in answer.files])
    names = _room_for_names(page, answer, max_chars)
    fitted = shortened(lambda count: _with_matches(page, answer, order[:count], names), len(order), max_chars)
    if fitted.matches or not order:
        return fitted
    return shortened(lambda length: _beginning(page, answer, order[0], length), max_chars, max_chars)


def shortened(answer_of: Callable[[int], R], most: int, max_chars: int) -> R:
    """Return an answer with as many items (matches, paths, entries, …) as fit into `max_chars`; it may have none."""
    answer = answer_of(most)
    if len(str(answer)) <= max_chars:
        return answer
    return answer_of(bisect_left(range(1, most), True, key=lambda count: len(str(answer_of(count))) > max_chars))


def _room_for_names(page: Page, answer: GrepContentResult, max_chars: int) -> int:
    """Return how many files the answer may name: at most `page.names`, in at most `NAMES_SHARE` of `max_chars`."""

    def named(count: int) -> GrepContentResult:
        return _with_matches(page, answer, (), count)

    return len(shortened(named, min(page.names, len(answer.files)), int(max_chars * NAMES_SHARE)).files)


def _beginning(page: Page, answer: GrepContentResult, match: ContentMatch, length: int) -> GrepContentResult:
    """Return the answer with the beginning of a match, and say how to read the rest of its lines."""
    alone = _alone(match, length)
    fitted = _with_matches(page, answer, [alone], 0)
    if alone.match == match.match:
        return fitted
    line = alone.line + alone.match.count("\n")
    said = f"The match at line {alone.line} is cut in line {line}"
    rest = f"; read_file(start_line={line}) shows its other lines" if page.readable and line > alone.line else ""
    return fitted.model_copy(update={"truncated": True, "message": f"{fitted.message} {said}{rest}."})


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
    total, shown = answer.total_matches or 0, sum(page.hits.get((one.file, one.line), 1) for one in answer.matches)
    all_files, all_matches = plural(page.files_matched, "matching file"), plural(total, "match", "es")
    sentences = [f"Showing {files} of {least}{all_files}, {shown} of {least}{all_matches}."]
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
