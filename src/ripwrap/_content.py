"""What the tool `grep_content` does: a search, its matches taken in turn from every file, and an answer in a budget."""

# pyright: reportTypedDictNotRequiredAccess=false
# A tool's arguments are all there (`_arguments.understood`); only a caller may leave some out.

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any, TypeVar, cast

from ripwrap._arguments import GrepContentOptions
from ripwrap._explain import Probe
from ripwrap._grep import explanation
from ripwrap._message import amount, plural
from ripwrap._page import files_in_turn, window_of
from ripwrap._query import EVERYTHING, FairFound, Progress, Query, allowed_of
from ripwrap._report import Page, content_matches, fitted, listed, notes_of, shortened
from ripwrap._rg.collect import Collector, Plan, Step, Work
from ripwrap._rg.decoder import CountDecoder, listing_decoder
from ripwrap._rg.exit import Exit
from ripwrap._rg.gather import Gathered
from ripwrap._rg.sifter import Window
from ripwrap._scope import Settings, scope, wanted
from ripwrap._text import shown
from ripwrap.answers import ContentMatch, FileHits, GrepContentResult, printable
from ripwrap.binary.probe import CANCELLED
from ripwrap.errors import PatternError, SearchError
from ripwrap.models import FileCount
from ripwrap.options import SearchOptions
from ripwrap.results import FileMatches

DEEPEST = 20_000
"""How many matches an offset reaches: so many, and their context, are held in memory while rg runs."""

_NAME = 300  # How much is told of the name of a file that would match, in characters.

C = TypeVar("C", bound=Collector)

_WORDS = {
    "hidden=True, no_ignore=True": "include_hidden=True, include_ignored=True",
    "fixed_strings=True": "fixed_strings=True",
    "ignore_case=True": "case_insensitive=True",
}
"""How a caller of the tool gets what a probe tries."""

_LITERAL = 5.0  # Seconds for what a wrong pattern would find literally.
_MAX_SOURCE = 2_000_000
"""Files of more bytes are not looked into for sections."""


def content_plan(
    settings: Settings, pattern: str, path: str, arguments: GrepContentOptions, progress: Progress | None
) -> Plan[GrepContentResult]:
    """The search, and what explains why it found nothing; all arguments are given.

    Raises:
        ValueError: The pattern is empty.
    """
    if not pattern:
        raise ValueError("pattern is empty and would match every line; give a text or regular expression to search for")
    with scope(settings, path, hidden=arguments["include_hidden"], ignored=arguments["include_ignored"]) as found:
        files = wanted(found.place, arguments["file_pattern"], arguments["file_type"])
        allowed, cut = yield from allowed_of(found, files)
        search = Query(settings, pattern, arguments, found, files, allowed, cut, progress)
        try:
            if arguments["output_mode"] == "content":
                return (yield from _content(search))
            return (yield from _listed(search))
        except PatternError as error:
            yield from _add_literal(search, error)
            raise


def _content(search: Query) -> Plan[GrepContentResult]:
    arguments, place = search.arguments, search.scope.place
    offset = min(arguments["offset"], DEEPEST)
    # More would only be held and thrown away: a match takes six characters and more.
    most = min(arguments["max_matches"], search.settings.max_chars // 6, DEEPEST - offset)
    window = window_of(offset, most, arguments["max_files"] or None, search.options)
    found, options = yield from _ran(search, lambda options: search.step(options, window, search.scope.timeout))
    files = yield from files_in_turn(window, found)
    page = _page(search, window, found, files)
    explained = "" if found.matches or not page.exact else (yield from _explained(search, options))
    much = amount(found, None if page.exact else search.scope.timeout)
    answer = GrepContentResult(
        **_about(search, found.end, timed_out=found.timed_out, notes=_left_out(found)),
        files=tuple(FileHits(path=place.shown(file.path), count=file.total_matches) for file in files),
        message=f"{much[0].upper()}{much[1:]}." if found.matches else f"{_nothing(found)}{explained}",
        matches=(),
        truncated=False,
        next_offset=None,
        total_matches=found.matches,
        files_matched=found.files,
        exact=page.exact,
    )
    told: GrepContentResult = yield Work(partial(_fitted, search, page, answer))
    return told


def _fitted(search: Query, page: Page, answer: GrepContentResult) -> GrepContentResult:
    """The answer in its budget, with sections if they are wanted."""
    place, settings = search.scope.place, search.settings
    names = [(file, place.shown(file.path)) for file in page.files if file.matches]
    found = {name: content_matches(file, name, settings.max_line) for file, name in names}
    told = fitted(page, found, answer, settings.max_chars)
    if not search.arguments["sections"]:
        return told
    # Of those alone that are shown; with sections fewer are.
    paths = {name: os.path.join(place.cwd, file.path) for file, name in names}
    deadline = math.inf if search.scope.timeout is None else time.monotonic() + search.scope.timeout
    for name, matches in groupby(told.matches, key=lambda match: match.file):
        if CANCELLED.get().is_set() or time.monotonic() > deadline:
            answer = answer.model_copy(update={"notes": (*answer.notes, "There was no time to name every definition.")})
            break
        shown = list(matches)
        found[name][: len(shown)] = _in_sections(search, paths[name], shown)
    return fitted(page, found, answer, settings.max_chars)


def _nothing(found: FairFound) -> str:
    if found.dropped_records:
        return "No match can be shown: they are in lines that are too long; output_mode=count counts them."
    return "No matches found."


def _page(search: Query, window: Window, found: FairFound, files: Sequence[FileMatches]) -> Page:
    all_reached = found.files <= window.max_files
    reachable = found.matches if all_reached else sum(file.total_matches for file in files[: window.max_files])
    return Page(
        files=tuple(files),
        offset=window.offset,
        reachable=min(reachable, DEEPEST),
        total_matches=found.matches,
        files_matched=found.files,
        exact=found.exact and not search.cut,
        names=0 if window.offset else min(max(search.arguments["max_matches"], 10), 100),
    )


def _left_out(found: FairFound) -> Iterator[str]:
    if found.dropped_records:
        yield f"{plural(found.dropped_records, 'line')} left out, too long to be shown."
    if found.binary:
        yield f"{plural(found.binary, 'file')} taken for binary, from its first NUL byte."


def _listed(search: Query) -> Plan[GrepContentResult]:
    """The files that match, or how often each does."""
    arguments, place = search.arguments, search.scope.place
    counting = arguments["output_mode"] == "count"
    offset = arguments["offset"]
    most = min(arguments["max_matches"], arguments["max_files"] or EVERYTHING, search.settings.max_chars // 2)

    def step(options: SearchOptions) -> Step[Gathered[FileCount | str]]:
        plain = {name: value for name, value in options.items() if not name.endswith("_context")}
        command = search.command(plain, "count" if counting else "files-with-matches")
        decoder: Callable[[], Any] = CountDecoder if counting else partial(listing_decoder, counts=command.counts)
        upto, allowed, progress = offset + most, search.allowed, search.progress
        return Step(
            command, lambda: Gathered(decoder(), upto, allowed=allowed, progress=progress), search.scope.timeout
        )

    found, worked = yield from _ran(search, step)
    hits = tuple(
        FileHits(path=place.shown(item))
        if isinstance(item, str)
        else FileHits(path=place.shown(item.path), count=item.count)
        for item in found.items()[offset:]
    )
    exact = not (found.timed_out or search.cut)
    explained = "" if found.total or not exact else (yield from _explained(search, worked))

    def answer(count: int) -> GrepContentResult:
        upto = offset + count
        said = listed(found.total, "matching file", offset, count, exact=exact)
        return GrepContentResult(
            **_about(search, found.end, timed_out=found.timed_out),
            files=hits[:count],
            truncated=found.total > upto or not exact,
            next_offset=upto if found.total > upto and count else None,
            message=said if found.total else f"No matches found.{explained}",
            matches=(),
            total_matches=found.counted if counting else None,
            files_matched=found.total,
            exact=exact,
        )

    return shortened(answer, len(hits), search.settings.max_chars)


def _ran(search: Query, step: Callable[[SearchOptions], Step[C]]) -> Plan[tuple[C, SearchOptions]]:
    """What a search finds, and with which options; a pattern that needs PCRE2 gets it, where this rg has it."""
    options = search.options
    try:
        found: C = yield step(options)
    except PatternError as error:
        if "pcre2=True" not in error.hint:
            raise
        options = cast("SearchOptions", {**options, "pcre2": True})
        try:
            found = yield step(options)
        except SearchError:
            raise error from None
    return found, options


def _explained(search: Query, options: SearchOptions) -> Plan[str]:
    """What would find something, in the words of this tool."""
    place = search.scope.place

    def how(probe: Probe) -> str | None:
        if search.files.overrides and "file_type" in search.files.names and "no_ignore" in probe.how:
            return None  # a glob brings back what is of another type, and that is not sifted out here
        return f"without {', '.join(search.files.names)}" if probe.how.startswith("without ") else _WORDS.get(probe.how)

    quiet = replace(search, progress=None)
    said = yield from explanation(
        (search.pattern,), options, quiet.step, how, lambda path: printable(place.shown(path))[:_NAME]
    )
    return f" {said}" if said else ""


def _add_literal(search: Query, error: PatternError) -> Plan[None]:
    """Say where a pattern goes wrong, and what it would find as a text."""
    if error.offset is not None:
        error.add_note(f"It goes wrong at character {error.offset}, counted from 0.")
    try:
        found: FairFound = yield replace(search, progress=None).step(
            {**search.options, "fixed_strings": True}, Window(0, 0, 0, 0, 0, None), _LITERAL
        )
    except SearchError:
        return
    least = "at least " if found.timed_out else ""
    lines, files = plural(found.matches, "line"), plural(found.files, "file")
    error.add_note(f"As a literal it matches {least}{lines} in {files} (fixed_strings=True).")


def _in_sections(search: Query, path: str, matches: Sequence[ContentMatch]) -> Iterator[ContentMatch]:
    lines = source(path) if search.settings.sandbox.holds(path) else None
    if lines is None:
        yield from matches
        return
    from ripwrap._sections.outline import Outline  # the patterns of all languages, only now

    outline = Outline(path, lines)
    for match in matches:
        yield match.model_copy(update={"section": outline.at(match.line)})


def source(path: str) -> list[str] | None:
    """The lines of a file; `None` if it cannot be read, or is very large."""
    try:
        with open(path, "rb") as file:
            raw = file.read(_MAX_SOURCE + 1)
    except OSError:
        return None
    return None if len(raw) > _MAX_SOURCE else raw.decode("utf-8", "replace").split("\n")


def _about(search: Query, end: Exit | None, *, timed_out: bool, notes: Iterable[str] = ()) -> dict[str, Any]:
    """What every answer of this tool says."""
    place = search.scope.place
    ended_after = search.scope.timeout if timed_out or search.cut else None
    return {
        "root": shown(place.cwd),
        "path": place.name,
        "query": search.pattern,
        "output_mode": search.arguments["output_mode"],
        "notes": (*notes, *notes_of(end, ended_after, place), *search.scope.notes),
    }
