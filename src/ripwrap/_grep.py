"""Searching until there is a whole answer: a page of matches in path order, honest about what it leaves out."""

import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias, TypeVar, Unpack

from ripwrap._explain import probes
from ripwrap._page import Page
from ripwrap._rg.argv import search_command
from ripwrap._rg.collect import Plan, Step, carry_out
from ripwrap._rg.process import Exit
from ripwrap._rg.sifter import Sifter
from ripwrap.binary.resolver import Rg
from ripwrap.errors import SearchError
from ripwrap.options import SearchOptions, StrPath, check_timeout
from ripwrap.results import FileMatches, GrepResult, StopReason

MAX_MATCHES = 100
TIMEOUT = 10.0
_CONTEXT = 2
_EXPLAIN = 5.0  # Seconds for all that explains why nothing was found.

T = TypeVar("T")


class Found(Sifter):
    """What one search found.

    Attributes:
        end: How rg ended.
        timed_out: Whether that was because its time was over.
    """

    end: Exit
    timed_out: bool

    def __init__(self, wanted: int, max_count: int | None) -> None:
        super().__init__(wanted, max_count)
        self._silent = max_count == 0  # rg then says nothing, not even a summary

    def finish(self, end: Exit, *, timed_out: bool) -> None:
        """Take note of the end; raises unless rg gave an answer, or was not given the time for one."""
        self.end, self.timed_out = end, timed_out
        if timed_out:
            return
        if end.returncode in (0, 1, 2):
            self.close()
        if end.returncode not in (0, 1, 2) or not (self.ended or (self._silent and not end.partial)):
            raise end.failure()


GrepPlan: TypeAlias = Plan[Found, T]
_Search: TypeAlias = Callable[[SearchOptions, int, float | None], Step[Found]]


async def grep(
    pattern: str | Sequence[str],
    *,
    cwd: StrPath = ".",
    paths: StrPath | Sequence[StrPath] = (),
    max_matches: int | None = MAX_MATCHES,
    max_files: int | None = None,
    offset: int = 0,
    timeout: float | None = TIMEOUT,  # noqa: ASYNC109 - what was found by then is kept, which no cancel scope does
    explain: bool = False,
    rg: Rg = None,
    **options: Unpack[SearchOptions],
) -> GrepResult:
    """Search files and collect a page of matches, with their context, and the number of all the others.

    Files come in the order of `rg --sort=path`, matches by line, however rg ran: on a tree that does not change, pages
    neither overlap nor miss a match. Every match is counted, but only those of the page are decoded. rg is ended when
    its time is over; what it had found by then is the answer.

    Args:
        pattern: A regular expression (https://docs.rs/regex), or several, any of which may match.
        cwd: The directory to search; globs and `paths` start from there.
        paths: Files or directories to search; empty is all of `cwd`.
        max_matches: How many matches to give at most, over all files; `None` gives all. (`max_count` is per file, and
            what it leaves out is not counted.)
        max_files: How many files to give matches of at most; `None` is any number.
        offset: How many matches to leave out at the start: the `next_offset` of the page before.
        timeout: Seconds that rg may take, its installation not counted; `None` is for ever.
        explain: Whether to find out, if there is no match, what would find some (ignored files, another case, the
            pattern taken literally, …), and say so in `message`; takes up to 5 seconds more.
        rg: Which rg to run: a path, or a bare name to find in PATH; `None` finds one.
        **options: rg's flags; see `SearchOptions`. Without any of `context`, `before_context`, `after_context` and
            `passthru` there are 2 lines of context.

    Raises what `search()` raises, and `ValueError` for any number that is negative.
    """
    return await carry_out(
        grep_plan(pattern, cwd, paths, max_matches, max_files, offset, timeout, explain, options), rg
    )


def grep_plan(
    pattern: str | Sequence[str],
    cwd: StrPath,
    paths: StrPath | Sequence[StrPath],
    max_matches: int | None,
    max_files: int | None,
    offset: int,
    timeout: float | None,
    explain: bool,
    options: SearchOptions,
) -> GrepPlan[GrepResult]:
    """The search, and then, if that is asked for, what explains why it found nothing; arguments are `grep()`'s."""
    query = pattern if isinstance(pattern, (str, bytes)) else tuple(pattern)
    if options.keys().isdisjoint(("context", "before_context", "after_context", "passthru")):
        options = {**options, "context": _CONTEXT}
    page = Page.of(offset, max_matches, max_files, options)

    def search(options: SearchOptions, wanted: int, timeout: float | None) -> Step[Found]:
        command = search_command(query, cwd, paths, options)
        return Step(command, partial(Found, wanted, options.get("max_count")), timeout)

    found = yield search(options, page.wanted, check_timeout(timeout))
    files = tuple(page.files(found.blocks()))
    result = _result(os.path.abspath(cwd), query, found, page, files, timeout)
    if explain and not found.matches and not found.timed_out:
        patterns = (query,) if isinstance(query, str) else query
        why = yield from _explanation(patterns, options, search)
        result = result.model_copy(update={"message": f"{result.message} {why}".rstrip()})
    return result


def _explanation(patterns: Sequence[str], options: SearchOptions, search: _Search) -> GrepPlan[str]:
    """What would find something, or what would not either."""
    deadline = time.monotonic() + _EXPLAIN
    would: list[str] = []
    would_not: list[str] = []
    for probe in probes(patterns, options):
        left = deadline - time.monotonic()
        if left <= 0:
            break
        try:
            found = yield search(probe.options, 1, left)
        except SearchError:
            continue  # what is tried need not make sense, e.g. a type together with another
        if found.matches:
            first = os.fsencode(found.blocks()[0].path).decode("utf-8", "replace")
            would.append(f"{_amount(found)} {probe.says} ({probe.how}), first in {first}")
        elif not found.timed_out:
            would_not.append(probe.says)
    if would:
        return f"There would be {'; '.join(would)}."
    return f"There would be none {', nor '.join(would_not)} either." if would_not else ""


def _result(
    root: str,
    query: str | tuple[str, ...],
    found: Found,
    page: Page,
    files: tuple[FileMatches, ...],
    timeout: float | None,
) -> GrepResult:
    shown = sum(len(file.matches) for file in files)
    more = found.matches > page.offset + shown
    reason: StopReason = "end"
    if found.timed_out:
        reason = "timeout"
    elif more:
        reason = "max_files" if len(files) == page.max_files and shown < page.max_matches else "max_matches"
    result = GrepResult(
        root=root,
        query=query,
        files=files,
        total_matches=found.matches,
        files_matched=found.files,
        exact=not found.timed_out,
        truncated=more or found.timed_out,
        next_offset=page.offset + shown if more and shown and not found.timed_out else None,
        stop_reason=reason,
        errors=found.end.path_errors(),
        dropped_records=found.dropped_records,
        message="",
    )
    return result.model_copy(update={"message": _message(result, found, page.offset, shown, timeout)})


def _message(result: GrepResult, found: Found, offset: int, shown: int, timeout: float | None) -> str:
    """One sentence about the matches, and one for each thing that a reader could otherwise take for granted."""
    sentences = [f"{_shown(result, found, offset, shown)}."]
    if result.stop_reason == "timeout":
        sentences.append(f"The search was ended after {timeout:g} seconds; narrow it, or give it more time.")
    if result.errors:
        sentences.append(f"{_plural(len(result.errors), 'path')} could not be read.")
    if result.dropped_records:
        sentences.append(f"{_plural(result.dropped_records, 'line')} of over 20 MiB left out.")
    if binary := sum(file.binary_offset is not None for file in result.files):
        sentences.append(f"{_plural(binary, 'file')} left at the first NUL byte, as binary; text=True searches on.")
    return " ".join(sentences)


def _shown(result: GrepResult, found: Found, offset: int, shown: int) -> str:
    if not found.matches:
        return "No matches found"
    if shown == found.matches:
        return _amount(found)
    if not shown:
        return f"{_amount(found)}, none of them shown" + (f" from offset={offset} on" if offset else "")
    text = f"Matches {offset + 1} to {offset + shown} of {_amount(found)}"
    return text if result.next_offset is None else f"{text}; offset={result.next_offset} gives the next"


def _amount(found: Found) -> str:
    """How much was found, or, if rg was ended, at least was."""
    amount = f"{_plural(found.matches, 'match', 'es')} in {_plural(found.files, 'file')}"
    return f"at least {amount}" if found.timed_out else amount


def _plural(number: int, noun: str, ending: str = "s") -> str:
    return f"{number} {noun}{'' if number == 1 else ending}"
