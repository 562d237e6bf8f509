"""Search to the end and return a page of matches in path order, with the number of all matches."""

import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar, Unpack, cast

from ripwrap import _text
from ripwrap._operations.coverage import coverage_request, run_coverage
from ripwrap._operations.near import NEAR_LINES, Near, NearCollector, near_condition, run_near
from ripwrap._operations.pagination import Density, collect_page, files_in_path_order, make_page_request
from ripwrap._ripgrep.command import ARGUMENTS, several_paths
from ripwrap._ripgrep.decoder import too_long_errors, too_long_text
from ripwrap._ripgrep.page_collector import MatchCollector, PageCollector, PageRequest, path_order
from ripwrap._ripgrep.pattern_errors import across_line_ends
from ripwrap._ripgrep.progress import Meter, OnProgress, count_json
from ripwrap._ripgrep.protocols import Runner, Step
from ripwrap._ripgrep.query import Query, without_options
from ripwrap._ripgrep.runner import AsyncRunner
from ripwrap._system.concurrency import countdown, warn_deprecated
from ripwrap._text import in_seconds, nothing_found, plural
from ripwrap.binary.resolver import Rg
from ripwrap.errors import Hint, SearchError, combination_error, named_paths
from ripwrap.models import PathError
from ripwrap.options import SearchOptions, StrPath, check_callback, check_timeout
from ripwrap.places.items import Candidates
from ripwrap.places.where import PlacedSearchOptions, options_of_rg, placed_search, refuse_places
from ripwrap.results import FileMatches, GrepResult, StopReason

_FILTERS = ("glob", "iglob", "type", "type_not", "ignore_file", "max_depth", "max_filesize", "one_file_system")
_CASE = ("smart_case", "case_sensitive")
_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$]")
_BOUNDS = ("word_regexp", "line_regexp")


@dataclass(frozen=True, slots=True)
class Probe:
    """Further search to try with other options, after a search that found nothing or too little."""

    says: str
    hints: tuple[Hint, ...]
    options: SearchOptions
    narrower: tuple["Probe", ...] = ()
    patterns: tuple[str, ...] = ()

    def in_options(self) -> str:
        """Return a text that names the options to pass or to leave out."""
        without = "without " if any(hint.kind == "omit" for hint in self.hints) else ""
        return without + ", ".join(map(str, self.hints))


def probes(patterns: Sequence[str], options: SearchOptions) -> Iterator[Probe]:
    """Yield the further searches to try; the search for the most likely reason comes first."""
    if options.get("max_count") == 0:
        limit = Hint("max_count", 0, "omit")
        yield Probe("if the limit per file is not 0", (limit,), without_options(options, ("max_count",)))
        return
    hidden = () if options.get("hidden", True) else (_passing("with hidden files included", options, hidden=True),)
    ignored = _passing("with ignored files included", options, no_ignore=True)
    if options.get("no_ignore"):
        yield from hidden
    elif hidden:
        both = _passing("with hidden and ignored files included", options, hidden=True, no_ignore=True)
        yield replace(both, narrower=(*hidden, ignored))
    else:
        yield ignored
    if filters := [name for name in _FILTERS if name in options]:
        yield _omitting("if files are not filtered", options, filters)
    if not options.get("fixed_strings") and any(_SPECIAL.search(one) for one in patterns):
        yield _passing("if the pattern is taken literally", options, fixed_strings=True)
    insensitive = options.get("ignore_case") and not any(options.get(name) for name in _CASE)
    if not insensitive and any(one.upper() != one.lower() for one in patterns):
        yield _passing("if case is ignored", without_options(options, _CASE), ignore_case=True)
    if bounds := [name for name in _BOUNDS if options.get(name)]:
        yield _omitting("anywhere in a line", options, bounds)
    yield from _in_crlf(patterns, options)
    if not options.get("text"):
        yield _passing("in binary files", options, text=True)


def _in_crlf(patterns: Sequence[str], options: SearchOptions) -> Iterator[Probe]:
    says, crossing = "if CRLF ends a line", [across_line_ends(one, options) for one in patterns]
    changed = crossing[0][1] if crossing else options
    if any(one not in patterns for one, _ in crossing):
        hints = [Hint("pattern", one) for one, _ in crossing]
        hints += [Hint("fixed_strings", False)] if options.get("fixed_strings") else []
        hints += [Hint("crlf", True)] if changed.get("crlf") else []
        yield Probe(says, tuple(hints), changed, patterns=tuple(one for one, _ in crossing))
    elif not options.get("crlf") and any("$" in one for one in patterns):
        yield _passing(says, options, crlf=True)


def _passing(says: str, options: SearchOptions, **changes: bool) -> Probe:
    hints = tuple(Hint(name, value) for name, value in changes.items())
    return Probe(says, hints, cast("SearchOptions", {**options, **changes}))


def _omitting(says: str, options: SearchOptions, names: Sequence[str]) -> Probe:
    return Probe(says, tuple(Hint(name, kind="omit") for name in names), without_options(options, names))


GREP_LIMIT = 100
GREP_TIMEOUT = 10.0
_DEFAULT_CONTEXT = 2
_EXPLAIN_TIMEOUT = 5.0
"""Seconds for all further searches together that find out why nothing was found."""

_FIRST_MATCH = PageRequest(offset=0, max_matches=1, max_files=1, before=0, after=0, max_count=None)

F = TypeVar("F", bound="MatchCollector")


Search: TypeAlias = Callable[[SearchOptions, PageRequest, float | None], Step[F]]


@named_paths
async def grep(
    pattern: str | Sequence[str],
    *,
    cwd: StrPath | None = ".",
    paths: StrPath | Iterable[StrPath] | None = (),
    limit: int | None = GREP_LIMIT,
    max_files: int | None = None,
    offset: int = 0,
    count: bool = True,
    timeout: float | None = GREP_TIMEOUT,  # noqa: ASYNC109 - keeps the matches found until then, which a cancel scope would drop
    explain: bool = False,
    coverage: bool = False,
    near: str | Sequence[str] = (),
    within: int = NEAR_LINES,
    on_progress: OnProgress | None = None,
    rg: Rg = None,
    **options: Unpack[PlacedSearchOptions],
) -> GrepResult:
    """Search files and return a page of matches with their context, and the number of all matches.

    Files are in the order of `rg --sort=path`, over all `paths`. Matches of a file are in the order of its lines. While
    the files do not change, pages neither overlap nor miss a match. All matches are counted, but only the matches of
    the page are decoded. After `timeout` seconds rg is stopped, and the answer has what rg has written until then.

    ```python
    import asyncio

    import ripwrap

    result = asyncio.run(ripwrap.grep("TODO", cwd="demo", limit=1, context=0))
    print(result.files[0].path, result.files[0].matches[0].text)
    print(result.message)
    ```

    ```text
    README.txt Nothing is sold here. TODO: open.
    Matches 1 to 1 of 3 matches in 3 files; offset=1 gives the next.
    ```

    Args:
        pattern: A regular expression (https://docs.rs/regex), or several, any of which may match.
        cwd: The directory to search; globs and `paths` are relative to it.
        paths: Files or directories to search, any number of them; empty is all of `cwd`. A file that several
            of them reach under one name is searched once (rg-facts 63).
        limit: Maximum number of matches on the page, over all files; `None` returns all and holds them in memory.
            (`max_count` is the limit for each file; further matches of the file are not counted.)
        max_files: Maximum number of files on the page; `None` is no limit.
        offset: Number of matches before the page: the `next_offset` of the previous page.
        count: Count all matches. With `False`, rg is ended when the page is full, as in `rg | head`: the page has the
            matches that rg finds first, in path order, and unless rg ends by itself, `exact` is False and there is no
            `next_offset`. With a `sort`, rg uses one thread, and the page and further pages are in its order. Not with
            `near`.
        timeout: Seconds that the call may take, with all its steps, the installation of rg and the wait for a slot
            (`ripwrap.limit_processes()`); `None` is no limit.
        explain: If there is no match, try other options, for example ignored files, another case, or the pattern as
            plain text. `message` then names the options that find something. With `hidden=False`, `message` of the
            last page says how many more matches there are in hidden files. This takes up to 5 seconds of `timeout`.
        coverage: Count the files that were searched, and the excluded files by reason, in `result.coverage`. This takes
            as long as a search that reads every file; see `coverage()`. Only for
            files on the disk of this machine.
        near: A further pattern, or several. A match counts only if each further pattern matches at most `within` lines
            before or after it, or on the same line. The options apply to all patterns; `max_count` limits the matches
            that count. For each further pattern, rg searches once more.
        within: Maximum distance for `near`, in lines; 0 is the same line.
        on_progress: Function that is called with a `Progress` while rg writes its output, at most ten times a second,
            and once at the end. The function runs in the task or thread of the caller, and an exception in the
            function ends the call.
        rg: The rg to run: a path, or a bare name to find in PATH; `None` finds one.
        **options: rg's flags, and where to search, as in `search()`. The default context is 2 lines, unless `context`,
            `before_context` or `after_context` is given. `passthru` is an error. `sort` and `sortr` have an effect
            only with `count=False`.

    Raises what `search()` raises. It also raises `ValueError` if an argument is a negative number, if two arguments
    exclude each other, or if `rev` names no revision, `AccessDeniedError` if the repository leads out of
    `repositories`, and `SearchError` if git fails, or a revision has more than a million files.
    """
    condition = near_condition(near, within, options)
    request = grep_request(
        pattern, cwd, paths, limit, max_files, offset, timeout, options,
        explain=explain, coverage=coverage, near=condition, count=count,
    )  # fmt: skip
    check_callback(on_progress)
    meter = None if on_progress is None else Meter(on_progress, count_json, collected=page_counts)
    runner = AsyncRunner(rg, meter=meter)
    return await run_grep(runner, request, ended=None if meter is None else meter.end)


def page_counts(collector: PageCollector) -> tuple[int, int]:
    """Return the number of files and of matches that a collector has counted so far."""
    return collector.files, collector.matches


@dataclass(frozen=True, slots=True)
class GrepRequest:
    """Checked arguments of `grep()`."""

    query: Query
    pattern: str | tuple[str, ...]
    paths: StrPath | Iterable[StrPath] | None
    options: SearchOptions
    page: PageRequest
    max_files: int | None
    timeout: float | None
    explain: bool
    candidates: Candidates | None = None
    coverage: bool = False
    near: Near | None = None
    rootless: bool = False

    @property
    def root(self) -> str:
        """Directory that is searched, as an absolute path without `..`; empty if no directory is searched."""
        return "" if self.rootless else os.path.normpath(self.query.cwd)

    def within(self, candidates: Candidates) -> "GrepRequest":
        """Return the request that searches only the candidates of an index."""
        query = replace(self.query, place=candidates)
        return replace(self, query=query, candidates=candidates)

    def step(self, options: SearchOptions, page: PageRequest, timeout: float | None) -> Step[MatchCollector]:
        """Return the step (one or more runs of rg) that searches all files with `options` and collects `page`."""
        return Step(self.query_for(self.pattern, options), lambda: MatchCollector(page), timeout)

    def query_for(self, pattern: str | tuple[str, ...], options: SearchOptions) -> Query:
        """Return the query that searches for another pattern, or with other options, in the same place."""
        patterns = (pattern,) if isinstance(pattern, str) else pattern
        place = None if self.candidates is not None else self.query.place
        return replace(self.query, patterns=patterns, options=options_of_rg(options), place=place)


def grep_request(
    pattern: str | Sequence[str],
    cwd: StrPath | None,
    paths: StrPath | Iterable[StrPath] | None,
    limit: int | None,
    max_files: int | None,
    offset: int,
    timeout: float | None,
    options: SearchOptions,
    *,
    explain: bool,
    coverage: bool = False,
    near: Near | None = None,
    count: bool = True,
    arguments: Collection[str] = ARGUMENTS,
) -> GrepRequest:
    """Check the arguments, and return the request of `grep()` or of a function that searches in the same way.

    `arguments` are the names of the function's arguments besides the options. An error about an unknown option may
    suggest one of these names.

    Raises what `search_query()`, `make_page_request()` and `check_timeout()` raise, and `ValueError` if
    the place has no coverage.
    """
    if coverage:
        refuse_places("coverage", options)
    if "max_matches" in options:
        warn_deprecated("grep(max_matches=) is deprecated; use limit=")
        others: dict[str, object] = {**options}
        limit, options = cast("int | None", others.pop("max_matches")), cast("SearchOptions", others)
    pattern = tuple(pattern) if isinstance(pattern, Iterable) and not isinstance(pattern, (str, bytes)) else pattern
    paths = several_paths(paths)  # a second search would find an iterator empty
    if options.keys().isdisjoint(("context", "before_context", "after_context")):
        options = {**options, "context": _DEFAULT_CONTEXT}
    page = make_page_request(offset, limit, max_files, options)
    timeout = check_timeout(timeout)
    query = placed_search(
        "grep()", pattern, cwd, paths, options, sorts=not count, keeps_errors=True, arguments=arguments
    )
    if not count:
        if near is not None:
            raise combination_error("near", Hint("count", value=False), "matches are first found everywhere")
        if offset and query.sort_key == "none":
            raise combination_error("offset", Hint("count", value=False), "rg finds others first, unless it sorts")
        query = replace(query, streamed=True)
    if near is not None:
        placed_search("grep()", near.patterns, cwd, paths, options, sorts=False)  # checks the patterns
    query = replace(query, once=True)
    return GrepRequest(
        query, pattern, paths, without_options(options, ("sort", "sortr")), page, max_files, timeout,
        explain=explain, coverage=coverage, near=near,
    )  # fmt: skip


async def run_grep(
    run: Runner,
    request: GrepRequest,
    density: Density = Density(),  # noqa: B008 - frozen
    ended: Callable[[int, int], object] | None = None,
) -> GrepResult:
    """Search, and return the page of matches. With `explain`, if nothing was found, try further options."""
    pattern, left = request.pattern, countdown(request.timeout)
    if request.near is None:
        found = await collect_page(run, request.query, request.page, left(), density)
    else:
        found = await _search(run, request, request.options, request.page, left)
    if ended is not None:
        ended(found.files, found.matches)
    candidates = request.candidates
    errors = list(found.path_errors() if candidates is None else candidates.errors_with(found.path_errors()))
    errors.sort(key=lambda one: (one.path is None, path_order(os.fsencode(one.path or ""))))  # rg's order varies
    files = await files_in_path_order(run, request.page, found.blocks())
    result = result_of(request, found, files, tuple(errors))
    more = ""
    if request.explain and found.exact and not found.matches:
        patterns = (pattern,) if isinstance(pattern, str) else pattern

        def how(probe: Probe) -> str:
            without = "" if request.near is None else f"; without {Hint('near', kind='omit')}"
            return f"{probe.in_options()}{without}"

        if isinstance(found, NearCollector) and found.far:
            more = f"There would be {plural(found.far, 'match', 'es')} without {Hint('near', kind='omit')}."
        else:
            more = await explanation(run, patterns, request.options, request.step, how, seconds=_sooner(left))
    elif request.explain and found.exact and not result.truncated and not request.options.get("hidden", True):
        more = await hidden_matches(run, request, found.matches, _sooner(left))
    coverage = None
    if request.coverage:
        cwd = request.query.cwd
        coverage = await run_coverage(run, coverage_request(cwd, request.paths, request.options, left()))
    known = {
        "message": f"{result.message} {more}".rstrip(),
        "candidates": None if candidates is None else candidates.searched,
        "files_total": None if candidates is None else candidates.total,
        "coverage": coverage,
    }
    return result.model_copy(update=known)


def _sooner(left: Callable[[], float | None]) -> float:
    """Return the seconds for further searches of a call."""
    seconds = left()
    return _EXPLAIN_TIMEOUT if seconds is None else min(seconds, _EXPLAIN_TIMEOUT)


async def _search(
    run: Runner, request: GrepRequest, options: SearchOptions, page: PageRequest, left: Callable[[], float | None]
) -> MatchCollector:
    """Search all files with `options`, apply the condition `near` of the request, and collect `page`."""
    if request.near is None:
        return await run.collect(request.step(options, page, left()))
    return await run_near(run, request.near, request.query_for, request.pattern, options, page, left)


def result_of(
    request: GrepRequest, found: MatchCollector, files: tuple[FileMatches, ...], errors: tuple[PathError, ...]
) -> GrepResult:
    """Return the result of a search."""
    page = request.page
    shown = sum(len(file.matches) for file in files)
    more = found.matches > page.offset + shown
    reason: StopReason = "end"
    if found.timed_out:
        reason = "timeout"
    elif more or found.full:
        reason = "max_files" if len(files) == request.max_files and shown < page.max_matches else "limit"
    repeats = not found.full or request.query.sort_key != "none"
    next_offset = page.offset + shown if (more or found.full) and shown and repeats and not found.timed_out else None
    failed = [error for error in errors if not error.harmless]
    message = result_message(found, page, shown, next_offset, request.timeout if found.timed_out else None)
    if failed:
        message += f" {plural(len(failed), 'path')} could not be read, the first: {failed[0]}."
    return GrepResult(
        root=request.root,
        query=request.pattern,
        files=files,
        total_matches=found.matches,
        files_matched=found.files,
        exact=found.exact,
        truncated=more or not found.exact,
        next_offset=next_offset,
        stop_reason=reason,
        errors=(*errors, *too_long_errors(found.dropped, request.query)),
        dropped_records=found.dropped_records,
        message=message,
    )


async def hidden_matches(run: Runner, request: GrepRequest, matches: int, seconds: float = _EXPLAIN_TIMEOUT) -> str:
    """Return a sentence that counts the further matches in hidden files; empty if there are none."""
    left = countdown(seconds)
    options: SearchOptions = {**request.options, "hidden": True}
    found = await _search(run, request, options, _FIRST_MATCH, left)
    return in_hidden_files(found, found.matches - matches, str(Hint("hidden", True)))


def in_hidden_files(found: MatchCollector, matches: int, way: str) -> str:
    """Return a sentence about further matches in hidden files; empty if there are none."""
    least = "" if found.exact else "at least "
    said = f"{least}{plural(matches, 'more match', 'es')} in hidden files ({way})."
    return said[0].upper() + said[1:] if matches > 0 else ""


async def explanation(
    run: Runner,
    patterns: Sequence[str],
    options: SearchOptions,
    search: Search[F],
    how: Callable[[Probe], str | None] = Probe.in_options,
    name: Callable[[str], str] = _text.shown,
    seconds: float = _EXPLAIN_TIMEOUT,
) -> str:
    """Search with other options, and return a sentence that names the options with which there are matches."""
    deadline = time.monotonic() + seconds
    would: list[str] = []
    would_not: list[str] = []
    late = ""

    async def found_by(probe: Probe) -> F | None:
        """Run a further search (probe), and return its collector; `None` if the search could not be run."""
        nonlocal late
        left = deadline - time.monotonic()
        if how(probe) is None:
            return None
        if left <= 0:
            late = "There was no time to try more options."
            return None
        try:
            step = search(probe.options, _FIRST_MATCH, left)
            query = replace(step.query, patterns=probe.patterns or step.query.patterns)
            return await run.collect(replace(step, query=query))
        except SearchError:
            return None  # a probe may be an impossible search, e.g. for plain text with a newline

    for probe in probes(patterns, options):
        found = await found_by(probe)
        if found is not None and found.matches:
            tried = [(one, await found_by(one)) for one in probe.narrower]
            least = [(one, result) for one, result in tried if result is not None and result.matches]
            for one, result in least or [(probe, found)]:
                first = name(os.fsdecode(result.blocks()[0].path))
                much = counts_text(result, None if result.exact else 0)
                would.append(f"{much} {one.says} ({how(one)}), first in {first}")
        elif found is not None and found.exact:
            would_not.append(probe.says)
    if would:
        return f"There would be {'; '.join(would)}. {late}".rstrip()
    return f"Further searches also found nothing: {'; '.join(would_not)}. {late}".rstrip() if would_not else late


def result_message(
    found: MatchCollector, page: PageRequest, shown: int, next_offset: int | None, ended_after: float | None
) -> str:
    """Return a sentence about the matches, and a sentence for each reason why the answer is incomplete."""
    place = f"Matches {page.offset + 1} to {page.offset + shown} of "
    if not found.matches:
        text = nothing_found("matches", ended_after)
    elif not shown:
        text = f"{counts_text(found, ended_after)}, none of them shown"
        text += f" from offset={page.offset} on" if page.offset else ""
    else:
        text = ("" if shown == found.matches else place) + counts_text(found, ended_after)
        text += "" if next_offset is None else f"; offset={next_offset} gives the next"
    sentences = [text[0].upper() + text[1:]]
    if ended_after is not None:
        stopped = f"The search was stopped after {in_seconds(ended_after)}; narrow it" if found.matches else ""
        sentences.append(f"{stopped or 'Narrow the search'}, or allow more time")
    if found.full:
        sentences.append(f"The search was ended there; {Hint('count', True)} counts all")
    if found.dropped_records:
        names = list(map(_text.shown, filter(None, found.dropped)))
        where = f" ({'first ' if len(names) > 1 else ''}in {names[0]})" if names else ""
        sentences.append(f"{too_long_text(found.dropped_records, found.end.query)}{where}")
    if found.binary:
        sentences.append(
            f"{plural(found.binary, 'file')} taken for binary, so searched only up to the first NUL byte; matches "
            "may be missing; text=True searches the whole files"
        )
    return ". ".join(sentences) + "."


def counts_text(found: PageCollector, ended_after: float | None = None, matches: int | None = None) -> str:
    """Return the number of matches and files, with "at least" if the counts are incomplete."""
    text = f"{plural(found.matches if matches is None else matches, 'match', 'es')} in {plural(found.files, 'file')}"
    is_least = ended_after is not None or found.dropped_records or found.full
    return f"at least {text}" if is_least else text
