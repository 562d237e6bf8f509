"""Messages and notes of answers: what a page leaves out, and what could not be read or was not searched."""

import os
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ripwrap._operations.coverage import coverage_request, run_coverage
from ripwrap._ripgrep.page_collector import path_order, shares
from ripwrap._ripgrep.protocols import Runner
from ripwrap._system.overlay import active_overlay
from ripwrap._text import in_seconds, plural, shown, shown_path
from ripwrap.errors import BinaryError, RipwrapError, SearchError, spell_error
from ripwrap.models import PathError
from ripwrap.options import FileOptions, SearchOptions
from ripwrap.results import SkipKind, SkippedFiles
from ripwrap.workspace.arguments import spell_as_argument
from ripwrap.workspace.grep_content_models import ContentMatch, GrepContentResult
from ripwrap.workspace.results import ListingEngine, ToolResult, shown_start
from ripwrap.workspace.sandbox import RootLocation, Sandbox
from ripwrap.workspace.scope import FOLLOW_NOTE, Scope

if TYPE_CHECKING:
    from ripwrap.results import FileMatches
    from ripwrap.workspace.grep_items import ItemSearch


GREP_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\([|(){}+?])")
"""Pattern of an escape that means an operator in grep, and a character in rg; group 1 has the backslashes before it."""

MAX_CHECKED_ERRORS = 1000
"""Maximum number of unreadable paths of which it is checked if they lead out of the roots; the others do not count."""

MAX_ERROR_CHARS = 200
"""Maximum number of characters of the error about an unreadable path."""


def listed(total: int, noun: str, offset: int, count: int, *, exact: bool, matches: int = 0) -> str:
    """Return the message for a page of paths: how many there are, which are shown, and how to get the next page."""
    much = f"{'' if exact else 'at least '}{plural(total, noun)}"
    much += f" with {plural(matches, 'match', 'es')}" if matches else ""
    if count == total:
        return f"{much[0].upper()}{much[1:]}."
    if not count:
        return f"Showing none of {much} from offset={offset} on."
    said = f"Showing {offset + 1} to {offset + count} of {much}."
    end = offset + count
    return said if end >= total else f"{said} offset={end} gives the next page; a narrower pattern or path finds less."


def notes_of(
    errors: Iterable[PathError], ended_after: float | None, scope: Scope, items: "ItemSearch | None" = None
) -> Iterator[str]:
    """Yield a note if the search was stopped at its time limit, and a note if paths could not be read."""
    location, allowed = items or scope.location, scope.allowed
    if ended_after is not None:
        seconds = in_seconds(ended_after)
        yield f"The search was stopped after {seconds}, so results may be missing; narrow the search, e.g. with path."
    failed = [error for error in errors if location.has(error.path) and not error.harmless]
    failed.sort(key=lambda error: path_order(os.fsencode(error.path or "")))
    own = [error for error in failed[:MAX_CHECKED_ERRORS] if allowed is None or allowed(error.path or "")]
    if own:
        named = own[0].model_copy(update={"path": location.shown(own[0].path or "")})
        much = "at least " if len(failed) > MAX_CHECKED_ERRORS else ""
        # The ignore file may be a link out of the roots, so no answer may show its lines.
        line = re.match(r"line \d{1,10}(?=: )", named.message)
        said = f"{shown_path(named.path or '')}: {line[0]} is not a rule that rg can read" if line else str(named)
        yield f"{much}{plural(len(own), 'path')} could not be read, the first: {shown(said)[:MAX_ERROR_CHARS]}."


def unused_index_note(error: RipwrapError | TimeoutError, timeout: float | None) -> str:
    """Return a note that an index was not used because of an error; raise an error that is not about the index."""
    if isinstance(error, SearchError | BinaryError) or (isinstance(error, TimeoutError) and timeout is None):
        raise error
    if isinstance(error, RipwrapError):
        return f"The index could not be used: {spell_error(error, spell_as_argument)}."
    return (
        f"The index could not be refreshed within {in_seconds((timeout or 0) / 2)}, so it was not used; "
        "index_codebase refreshes it without a time limit."
    )


def scope_notes(
    scope: Scope, errors: Iterable[PathError], *, timed_out: bool, engine: ListingEngine
) -> tuple[str, ...]:
    """Return the notes of a listing: about its time limit, unreadable paths, followed links and limited depth."""
    ended_after = scope.timeout if timed_out else None
    notes = [
        "Links were not followed, because that needs rg." if note == FOLLOW_NOTE and engine == "python" else note
        for note in scope.notes
    ]
    return (*notes_of(errors, ended_after, scope), *notes)


def denied_note(number: int) -> Iterator[str]:
    """Yield a note with the number of denied files and directories that are left out, if there are any."""
    if number:
        what = "denied file or directory" if number == 1 else "denied files or directories"
        yield f"{number} {what} not listed."


def links_note(links: Iterable[str], *, late: bool) -> Iterator[str]:
    """Yield a note that names links, which are not listed because they are not followed, if there are any."""
    first, *more = [*links] or [""]
    if first:
        least, example = "at least " if late else "", shown_start(first)
        yield (
            f"Not listed: {least}{len(more) + 1} symbolic links, which are not followed, e.g. {example}."
            if more or late
            else f"Not listed: 1 symbolic link, which is not followed: {example}."
        )


def escape_note(pattern: str, *, fixed_strings: bool) -> Iterator[str]:
    """Yield a note for a search without results if its pattern has escapes that mean an operator in grep, not in rg."""
    found = None if fixed_strings else GREP_ESCAPE.search(pattern)
    if found:
        sign = found[2]
        yield f"In rg, {sign} needs no backslash as an operator: \\{sign} matches the character {sign}."


MAX_SECONDS = 1.0
"""Time limit in seconds for listing the searched files, and for walking through all files."""

_KINDS: dict[SkipKind, tuple[str, str]] = {
    "link": ("symbolic link, which is not followed", "symbolic links, which are not followed"),
    "max_depth": ("directory, which is too deep", "directories, which are too deep"),
    "one_file_system": ("directory, which is on another file system", "directories, which are on other file systems"),
    "special": ("FIFO, socket or device", "FIFOs, sockets or devices"),
}
"""Texts (singular, plural) for the kinds of files that no other part of an answer mentions.

Other parts of an answer mention unreadable paths. `explanation()` and `_why_none()` mention globs, and hidden, ignored
and binary files.
"""


async def unsearched_notes(
    run: Runner, sandbox: Sandbox, scope: Scope, options: Mapping[str, Any], *, verb: str
) -> tuple[str, ...]:
    """Return sentences about files that were not searched although they may have a match."""
    location = scope.location
    if scope.options.get("follow") or location.is_file or location.revision or active_overlay() is not None:
        return ()
    files = {name: value for name, value in options.items() if name in FileOptions.__annotations__}
    chosen = cast("SearchOptions", {**scope.options, **files})
    timeout = MAX_SECONDS if scope.timeout is None else min(MAX_SECONDS, scope.timeout)
    request = coverage_request(location.cwd, location.paths, chosen, timeout, read=False)
    try:
        coverage = await run_coverage(run, request)
    except (SearchError, OSError):
        return ()
    if not coverage.exact:
        return ()
    groups = [group for group in coverage.skipped if group.kind in _KINDS]
    none = (f"No file was {verb}.",) if verb == "searched" and not coverage.searched else ()
    return (*none, *(_sentence(sandbox, scope.location, group, verb) for group in groups))


def _sentence(sandbox: Sandbox, location: RootLocation, group: SkippedFiles, verb: str) -> str:
    paths = (one.path for one in group.examples if sandbox.denied_by(os.path.join(location.cwd, one.path)) is None)
    example = "".join(
        f"{', e.g.' if group.files > 1 else ':'} {shown_start(location.shown(os.path.normpath(path)))}"
        for path in islice(paths, 1)
    )
    return f"Not {verb}: {group.files} {_KINDS[group.kind][group.files > 1]}{example}."


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
    """Return the answer with as many matches as fit into `max_chars`, or at least with the beginning of the first."""
    skipped = shares([file.total_matches for file in page.files], page.offset)
    ranked = [  # in rotation: the first match of every file, then the second match of every file, and so on
        (number, place, match)
        for place, (first, file) in enumerate(zip(skipped, answer.files, strict=False))
        for number, match in enumerate(found.get(file.path, ()), first)
    ]
    order = [match for _, _, match in sorted(ranked, key=lambda one: one[:2])]
    most, room = min(page.names, len(answer.files)), int(max_chars * NAMES_SHARE)
    names = len(shortened(lambda count: _with_matches(page, answer, (), count), most, room).files)
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


def _beginning(page: Page, answer: GrepContentResult, match: ContentMatch, length: int) -> GrepContentResult:
    """Return the answer with the beginning of a match, without context, and say how to read the rest of its lines."""
    text = match.match if len(match.match) <= length else f"{match.match[:length]}…"
    before = len(match.before)
    anchors = match.anchors[before : before + text.count("\n") + 1]
    alone = match.model_copy(update={"before": (), "after": (), "section": None, "match": text, "anchors": anchors})
    fitted = _with_matches(page, answer, [alone], 0)
    if alone.match == match.match:
        return fitted
    line = alone.line + alone.match.count("\n")
    said = f"The match at line {alone.line} is cut in line {line}"
    rest = f"; read_file(start_line={line}) shows its other lines" if page.readable and line > alone.line else ""
    return fitted.model_copy(update={"truncated": True, "message": f"{fitted.message} {said}{rest}."})


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
    least = "" if page.exact else "at least "
    hits = sum(page.hits.get((one.file, one.line), 1) for one in matches)
    all_files = plural(page.files_matched, "matching file")
    all_matches = plural(answer.total_matches or 0, "match", "es")
    sentences = [f"Showing {len(shown)} of {least}{all_files}, {hits} of {least}{all_matches}."]
    if shortened_answer.next_offset is not None:
        sentences.append(f"offset={shortened_answer.next_offset} gives the next page.")
    elif page.reachable == MAX_REACHABLE < page.total_matches:
        sentences.append(f"Only the first {MAX_REACHABLE:,} matches can be shown.")
    else:
        if page.offset >= page.reachable:
            sentences.append(f"There are no matches from offset={page.offset} on.")
        if page.total_matches > page.reachable:
            sentences.append("A larger max_files shows more files; a larger offset does not.")
    if unnamed := page.files_matched - len(shortened_answer.files):
        sentences.append(f"Not named here: {least}{plural(unnamed, 'more file')} with matches.")
    sentences.append("Use file_pattern or refine your pattern to narrow results.")
    return shortened_answer.model_copy(update={"message": " ".join(sentences)})
