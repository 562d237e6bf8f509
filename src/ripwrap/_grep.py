"""Searching until there is a whole answer: a page of matches in path order, honest about what it leaves out."""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeAlias, TypeVar, Unpack

from ripwrap import _text
from ripwrap._explain import Probe, probes
from ripwrap._message import amount, message, plural
from ripwrap._page import files_of, window_of
from ripwrap._rg.argv import search_command
from ripwrap._rg.collect import Plan, Step, carry_out
from ripwrap._rg.exit import Exit
from ripwrap._rg.sifter import Sifter, Window
from ripwrap.binary.resolver import Rg
from ripwrap.errors import SearchError
from ripwrap.options import SearchOptions, StrPath, check_timeout
from ripwrap.results import GrepResult, StopReason

MAX_MATCHES = 100
TIMEOUT = 10.0
_CONTEXT = 2
_EXPLAIN = 5.0  # Seconds for all that explains why nothing was found.
_FIRST = Window(offset=0, max_matches=1, max_files=1, before=0, after=0, max_count=None)

F = TypeVar("F", bound="Found")


class Found(Sifter):
    """What one search found.

    Attributes:
        end: How rg ended.
        timed_out: Whether that was because its time was over.
    """

    end: Exit
    timed_out: bool

    def finish(self, end: Exit, *, timed_out: bool) -> None:
        """Take note of the end; raises unless rg gave an answer, or was not given the time for one."""
        # Exit 2 is rg's own: it had ended before its time was over, and somebody else had its stdout.
        self.end, self.timed_out = end, timed_out and not end.partial
        if not self.timed_out:
            if end.ended:
                self.close()
            end.check(summary=self.ended)

    @property
    def exact(self) -> bool:
        """Whether what was counted is all that there is."""
        return not self.timed_out and not self.dropped_records


Search: TypeAlias = Callable[[SearchOptions, Window, float | None], Step[F]]


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

    Files come in the order of `rg --sort=path`, over all `paths`, and matches by line, however rg ran: on a tree that
    does not change, pages neither overlap nor miss a match. Every match is counted, but only those of the page are
    decoded. rg is ended when its time is over; what it had found by then is the answer.

    ```python
    import asyncio

    import ripwrap

    result = asyncio.run(ripwrap.grep("TODO", cwd="docs/demo", max_matches=1, context=0))
    print(result.files[0].path, result.files[0].matches[0].text)
    print(result.message)
    ```

    ```text
    README.txt Nothing is sold here. TODO: open.
    Matches 1 to 1 of 3 matches in 3 files; offset=1 gives the next.
    ```

    Args:
        pattern: A regular expression (https://docs.rs/regex), or several, any of which may match.
        cwd: The directory to search; globs and `paths` start from there.
        paths: Files or directories to search; empty is all of `cwd`.
        max_matches: How many matches to give at most, over all files; `None` gives all, and takes the memory for it.
            (`max_count` is per file, and what it leaves out is not counted.)
        max_files: How many files to give matches of at most; `None` is any number.
        offset: How many matches to leave out at the start: the `next_offset` of the page before.
        timeout: Seconds that rg may take, not counting its installation and the wait for its turn
            (`ripwrap.limit_processes()`); `None` is for ever.
        explain: Whether to find out, if there is no match, what would find some (ignored files, another case, the
            pattern taken literally, …), and say so in `message`; takes up to 5 seconds more.
        rg: Which rg to run: a path, or a bare name to find in PATH; `None` finds one.
        **options: rg's flags; see `SearchOptions`. Without any of `context`, `before_context` and `after_context`
            there are 2 lines of context; `passthru` is refused; `sort` and `sortr` change nothing in the answer.

    Raises what `search()` raises, and `ValueError` for any number that is negative.
    """
    plan = grep_plan(pattern, cwd, paths, max_matches, max_files, offset, timeout, options, explain=explain)
    return await carry_out(plan, rg)


def grep_plan(
    pattern: str | Sequence[str],
    cwd: StrPath,
    paths: StrPath | Sequence[StrPath],
    max_matches: int | None,
    max_files: int | None,
    offset: int,
    timeout: float | None,
    options: SearchOptions,
    *,
    explain: bool,
) -> Plan[GrepResult]:
    """The search, and then, if that is asked for, what explains why it found nothing; arguments are `grep()`'s."""
    query = tuple(pattern) if isinstance(pattern, Iterable) and not isinstance(pattern, (str, bytes)) else pattern
    if not isinstance(paths, (str, bytes, os.PathLike)):
        paths = tuple(paths)  # it is looked at more than once
    if options.keys().isdisjoint(("context", "before_context", "after_context")):
        options = {**options, "context": _CONTEXT}

    def search(options: SearchOptions, window: Window, timeout: float | None) -> Step[Found]:
        return Step(search_command(query, cwd, paths, options), partial(Found, window), timeout)

    window = window_of(offset, max_matches, max_files, options)
    first = search(options, window, check_timeout(timeout))
    cwd = first.command.cwd  # as it was meant by the call, also for what follows
    found: Found = yield first
    files = yield from files_of(window, found.blocks())
    shown = sum(len(file.matches) for file in files)
    more = found.matches > offset + shown
    reason: StopReason = "end"
    if found.timed_out:
        reason = "timeout"
    elif more:
        reason = "max_files" if len(files) == max_files and shown < window.max_matches else "max_matches"
    next_offset = offset + shown if more and shown and not found.timed_out else None
    errors = found.end.path_errors()
    said = [message(found, window, shown, next_offset, timeout if found.timed_out else None)]
    if errors:
        said.append(f"{plural(len(errors), 'path')} could not be read, the first: {errors[0]}.")
    if explain and not found.matches and found.exact:
        said.append((yield from explanation((query,) if isinstance(query, str) else query, options, search)))
    return GrepResult(
        root=os.path.abspath(cwd),
        query=query,
        files=files,
        total_matches=found.matches,
        files_matched=found.files,
        exact=found.exact,
        truncated=more or not found.exact,
        next_offset=next_offset,
        stop_reason=reason,
        errors=errors,
        dropped_records=found.dropped_records,
        message=" ".join(filter(None, said)),
    )


def explanation(
    patterns: Sequence[str],
    options: SearchOptions,
    search: Search[F],
    how: Callable[[Probe], str | None] = Probe.in_options,
    name: Callable[[str], str] = _text.shown,
) -> Plan[str]:
    """What would find something, or what would not either.

    Args:
        patterns: What was searched for.
        options: With which options.
        search: Makes a search with other ones.
        how: What the caller does to get what a probe tries; `None` if that cannot be had.
        name: How the caller calls a path.
    """
    deadline = time.monotonic() + _EXPLAIN
    would: list[str] = []
    would_not: list[str] = []
    late = ""
    for probe in probes(patterns, options):
        way = how(probe)
        if way is None:
            continue
        left = deadline - time.monotonic()
        if left <= 0:
            late = "There was no time to try more."
            break
        try:
            found: Found = yield search(probe.options, _FIRST, left)
        except SearchError:
            continue  # what is tried need not make sense, e.g. a literal with a newline
        if found.matches:
            first = name(os.fsdecode(found.blocks()[0].path))
            much = amount(found, None if found.exact else left)
            would.append(f"{much} {probe.says} ({way}), first in {first}")
        elif found.exact:
            would_not.append(probe.says)
    if would:
        return f"There would be {'; '.join(would)}. {late}".rstrip()
    return f"There would be none {', nor '.join(would_not)} either. {late}".rstrip() if would_not else late
