"""Tool `grep_content`: search with rg, and return an answer with at most `max_chars` characters.

Matches are taken in rotation: the first match of every file, then the second match of every file, and so on.
"""

import math
import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast

from ripwrap._operations.grep import Probe, counts_text, explanation, in_hidden_files
from ripwrap._operations.pagination import files_round_robin, make_page_request
from ripwrap._ripgrep.decoder import CountDecoder, listing_decoder, too_long_text
from ripwrap._ripgrep.exit_status import UNCOUNTED, Exit
from ripwrap._ripgrep.page_collector import NO_LIMIT, ListingCollector, PageRequest
from ripwrap._ripgrep.protocols import Runner, Step
from ripwrap._ripgrep.query import Mode
from ripwrap._system.concurrency import CANCELLED
from ripwrap._system.overlay import active_overlay
from ripwrap._text import as_utf8, nothing_found, plural
from ripwrap.errors import CapabilityError, Hint, PatternError, RipwrapError, SearchError
from ripwrap.models import FileCount
from ripwrap.options import SearchOptions
from ripwrap.results import FileMatches
from ripwrap.sources.base import SEPARATOR, SUFFIXES, UNPACKED, format_of
from ripwrap.workspace.arguments import VisibilityOptions, parse_arguments, spell_as_argument
from ripwrap.workspace.close_names import names_in, resolve_names
from ripwrap.workspace.content_call import (
    ContentCall,
    RoundRobinMatchCollector,
    counts_of_patterns,
    other_spellings_note,
    with_one_pattern,
)
from ripwrap.workspace.dispatch import ToolMethods
from ripwrap.workspace.grep_content_models import Expand, GrepContentArguments, GrepContentResult, OutputMode
from ripwrap.workspace.notes import (
    MAX_REACHABLE,
    Page,
    escape_note,
    fit_to_budget,
    listed,
    notes_of,
    shortened,
    unsearched_notes,
    unused_index_note,
)
from ripwrap.workspace.results import FileHits, shown_start
from ripwrap.workspace.scope import (
    HIDDEN_RULES,
    Settings,
    denied_glob_notes,
    file_filter,
    half,
    rules_file,
    scope_of,
    visible_paths,
)
from ripwrap.workspace.shown_lines import content_matches
from ripwrap.workspace.text_files import Deadline
from ripwrap.workspace.tool import ToolCall, ToolSpec, page_note

if TYPE_CHECKING:
    from ripwrap.workspace.expansion import SourceFile
    from ripwrap.workspace.index_tools import Indexes

# Modules for arguments that are seldom given (`rev`, `inside`, `sections`, `expand`) are imported where they are used.

MIN_MATCH_CHARS = 6
"""Minimum number of characters that a match takes in an answer."""

MIN_FILE_CHARS = 2
"""Minimum number of characters that a file takes in an answer."""

HIDDEN_SECONDS = 1.0
"""Time limit in seconds for counting the matches in hidden files."""

BINARY_SECONDS = 1.0
"""Time limit in seconds for searching binary files, to find out why nothing was found."""

LITERAL_SECONDS = 5.0
"""Time limit in seconds for searching an invalid pattern as plain text, to count the matches."""

_PCRE2 = Hint("pcre2", True)


async def run_grep_content(tool_call: ToolCall, arguments: GrepContentArguments) -> GrepContentResult:
    """Search, with PCRE2 if the pattern needs it. If nothing is found, try to find out why.

    With indexes, rg searches only the files that may have a match. Searches with `rev` or `inside`, and the searches
    that `_with_candidates()` names, do not use indexes.
    """
    run, settings, indexes = tool_call.run, tool_call.settings, tool_call.indexes()
    if not arguments.pattern:
        raise ValueError("pattern is empty and would match every line; give a text or regular expression to search for")
    asked = arguments
    arguments, member = await _into_member(run, settings, with_one_pattern(arguments))
    async with scope_of(run, settings, arguments) as scope:
        items = None
        if arguments.rev or arguments.inside or any(format_of(one, UNPACKED) for one in scope.location.paths):
            from ripwrap.workspace.grep_items import ItemSearch, check_arguments, into_archive  # few calls need it

            arguments = into_archive(arguments, scope)
            check_arguments(arguments)
            if arguments.rev or arguments.inside:
                items = ItemSearch(settings, arguments, scope, member=member)
        globs = await resolve_names(arguments.file_pattern, names_in(run, scope))
        files = file_filter(scope.location, globs, arguments.file_type)
        allowed, incomplete = await visible_paths(run, scope, files)
        reports = tool_call.progress, tool_call.memory
        call = ContentCall(settings, arguments, scope, files, allowed, incomplete, *reports, items=items)
        call = replace(call, notes=await counts_of_patterns(run, call, asked))
        if items is None and indexes is not None:
            call = await _with_candidates(run, indexes, call)
        answer = _matches if arguments.output_mode == "content" else _files
        try:
            return await answer(run, call)
        except PatternError as error:
            if _PCRE2 in error.hints:
                try:
                    return await answer(run, replace(call, pcre2=True, candidates=None))
                except CapabilityError:
                    error.add_note("The pattern needs PCRE2, which this rg does not have; use a simpler pattern.")
                except SearchError:
                    pass  # raise the first error, which is more helpful
            if not arguments.rev:
                await _add_literal(run, call, error)
            raise


async def _into_member(
    run: Runner, settings: Settings, arguments: GrepContentArguments
) -> tuple[GrepContentArguments, str]:
    """Return the arguments with an archive as path, and its member, if the path is that of a member."""
    if SEPARATOR not in arguments.path or "\0" in arguments.path or arguments.rev:
        return arguments, ""
    from ripwrap.workspace.revision import locate_member, member_format

    try:
        await run.call(lambda: settings.sandbox.locate(arguments.path))
    except FileNotFoundError:
        outer, member = await run.call(lambda: locate_member(settings.sandbox, arguments.path, settings.timeout))
        kinds = {member_format(one) or "" for one in member.paths[0].split(SEPARATOR)[:-1]}
        inside = {"path": outer.name, "include_hidden": True, "inside": ",".join(sorted(kinds))}
        return arguments.model_copy(update=inside), member.paths[0]
    return arguments, ""


async def _with_candidates(run: Runner, indexes: "Indexes", call: ContentCall) -> ContentCall:
    """Return the call with candidates: the files of an index that may have a match.

    The call gets no candidates in these cases: the caller chooses files by name or type, or includes hidden or ignored
    files; the pattern can match without a fixed text; texts in memory replace files; no index can be used. If the
    index fails, or is not refreshed in time, a note says this.
    """
    if active_overlay() is not None:  # the index knows only the files on disk
        return call
    from ripwrap._ripgrep.literals import required_literals

    arguments, scope = call.arguments, call.scope
    required = required_literals([arguments.pattern], call.options)
    if required is None or call.files.names or arguments.include_hidden or arguments.include_ignored:
        return call
    try:
        return replace(
            call, candidates=await indexes.candidates(run, replace(scope, timeout=half(scope.timeout)), required)
        )
    except (RipwrapError, TimeoutError) as error:  # continue without the index
        return replace(call, notes=(*call.notes, unused_index_note(error, scope.timeout)))


async def _matches(run: Runner, call: ContentCall) -> GrepContentResult:
    """Return the answer for mode `content`: the lines that match."""
    arguments = call.arguments
    offset = min(arguments.offset, MAX_REACHABLE)
    # Collect only as many matches as may fit into the budget.
    most = min(arguments.max_matches, call.settings.max_chars // MIN_MATCH_CHARS, MAX_REACHABLE - offset)
    page_request = make_page_request(offset, most, arguments.max_files or None, call.options)
    found = await call.first_matches(run, page_request)
    files = _joined(await files_round_robin(run, page_request, found))
    all_reached = found.files <= page_request.max_files
    reachable = found.matches if all_reached else sum(file.total_matches for file in files[: page_request.max_files])
    page = Page(
        files=tuple(files),
        offset=page_request.offset,
        reachable=min(reachable, MAX_REACHABLE),
        total_matches=found.matches,
        files_matched=found.files,
        exact=found.exact and not call.incomplete,
        names=0 if page_request.offset else call.named_files,
        hits={
            (call.shown(file.path), match.line_number or 0): len(match.submatches)
            for file in files
            if found.hits > found.matches
            for match in file.matches
        },
        readable=call.items is None,
    )
    explained, notes = "", list(_omissions(call, found))
    if not found.matches:
        notes += escape_note(arguments.pattern, fixed_strings=arguments.fixed_strings)
    if not found.matches and page.exact:
        explained = await _explained(run, call)
    if not found.matches and page.exact and call.items is None:
        notes.append(await other_spellings_note(run, call))
        notes += await unsearched_notes(run, call.settings.sandbox, call.scope, call.options, verb="searched")
    if page.exact:
        notes.append(page_note(call.memory, arguments, offset, (found.hits, found.files)))
    named = [os.fsdecode(one.path) for one in found.named()]
    if (
        page.exact
        and found.matches <= page.reachable
        and found.matches <= page_request.end
        and len(named) == found.files
    ):
        notes.append(await _hidden_matches(run, call, named))
    if found.matches:
        much = counts_text(found, None if page.exact else call.scope.timeout, found.hits)
        message = f"{much[0].upper()}{much[1:]}."
    elif found.dropped_records:
        message = "No match can be shown, because the lines are too long; output_mode=count counts these lines."
    else:
        message = f"{nothing_found('matches', call.ended_after(timed_out=found.timed_out))}."
    answer = GrepContentResult(
        **_about(call, found.end, timed_out=found.timed_out, notes=notes),
        files=tuple(FileHits(path=call.shown(file.path), count=found.hits_of(file)) for file in files),
        message=f"{message}{explained}",
        total_matches=found.hits,
        files_matched=found.files,
        exact=page.exact,
    )
    return await run.call(lambda: _fit_with_sections(call, page, answer))


def _joined(files: Iterable[FileMatches]) -> tuple[FileMatches, ...]:
    """Join files with the same path: two members of an archive may have the same name."""
    by_path: dict[str, FileMatches] = {}
    for file in files:
        before = by_path.get(file.path)
        if before is not None:
            known = {
                "matches": (*before.matches, *file.matches),
                "total_matches": before.total_matches + file.total_matches,
            }
            file = before.model_copy(update=known)  # noqa: PLW2901 - the joined file
        by_path[file.path] = file
    return tuple(by_path.values())


def _fit_with_sections(call: ContentCall, page: Page, answer: GrepContentResult) -> GrepContentResult:
    """Return the answer with as many matches as fit into `max_chars`.

    With `sections` or `expand`, each match names the definition around it. With `expand`, lines of the definition are
    added.
    """
    location, settings = call.scope.location, call.settings
    files = {call.shown(file.path): file for file in page.files if file.matches}
    masking = Deadline(
        call.scope.timeout, "the secrets in the lines were not masked", "ask for fewer matches or lines of context"
    )
    redactors = {name: call.redactor(file.path, masking.check) for name, file in files.items()}
    anchors = settings.anchors and call.items is None  # an anchor names a line of a file that can be read
    found = {
        name: content_matches(
            file, name, settings.max_line, redactors[name], anchors=anchors, max_chars=settings.max_chars
        )
        for name, file in files.items()
    }
    fitted = fit_to_budget(page, found, answer, settings.max_chars)
    grows = call.arguments.expand == "definition"
    if not call.arguments.sections and not grows:
        return fitted
    from ripwrap.workspace.expansion import missing_code, read_source_file

    if found and (missing := missing_code()) is not None:
        answer = answer.model_copy(update={"notes": (*answer.notes, missing)})
        return fit_to_budget(page, found, answer, settings.max_chars)
    # Definitions are read only for matches that are shown. With definitions, fewer matches may fit.
    sources: dict[str, SourceFile] = {}
    deadline = math.inf if call.scope.timeout is None else time.monotonic() + call.scope.timeout
    for name, matches in groupby(fitted.matches, key=lambda match: match.file):
        late = CANCELLED.get().is_set() or time.monotonic() > deadline
        try:
            source = None if late else read_source_file(settings, location, files[name].path, redactors[name])
        except TimeoutError:  # the parser had no time left
            late, source = True, None
        if late:
            answer = answer.model_copy(
                update={"notes": (*answer.notes, "There was not enough time to name all definitions.")}
            )
            break
        if source is None:
            continue
        sources[name] = source
        shown = list(matches)
        found[name][: len(shown)] = [
            match.model_copy(update={"section": source.section_at(match.line)}) for match in shown
        ]
    fitted = fit_to_budget(page, found, answer, settings.max_chars)
    return _fit_expanded(call, page, answer, fitted, files, sources) if grows else fitted


def _fit_expanded(
    call: ContentCall,
    page: Page,
    answer: GrepContentResult,
    fitted: GrepContentResult,
    files: Mapping[str, FileMatches],
    sources: "Mapping[str, SourceFile]",
) -> GrepContentResult:
    """Add to the answer `fitted` as many lines of the definitions around its matches as fit."""
    from ripwrap.workspace.expansion import REACHES, expand_matches

    settings = call.settings
    shown = {name: list(matches) for name, matches in groupby(fitted.matches, key=lambda match: match.file)}
    for reach in REACHES:
        grown = {
            name: expand_matches(sources[name], files[name], matches, reach, settings.max_line)
            if name in sources
            else matches
            for name, matches in shown.items()
        }
        larger = fit_to_budget(page, grown, answer, settings.max_chars)
        if larger.matches == tuple(chain.from_iterable(grown.values())):
            return larger
    return fitted


def _omissions(call: ContentCall, found: RoundRobinMatchCollector) -> Iterator[str]:
    """Yield notes about lines that are too long, and about binary files."""
    if found.dropped_records:
        where = "".join(
            f", e.g. in {shown_start(call.shown(path))}" for path in islice(filter(call.names, found.dropped), 1)
        )
        yield f"{too_long_text(found.dropped_records, call.query(call.options), 'too long to show')}{where}."
    if found.full:
        yield "The search was ended there; output_mode=count counts all matches."
    if found.binary:
        files = plural(found.binary, "file")
        yield f"{files} taken for binary, so searched only up to the first NUL byte; matches may be missing."


async def _files(run: Runner, call: ContentCall) -> GrepContentResult:
    """Return the answer for the modes `files_with_matches` (paths of files) and `count` (paths with counts)."""
    arguments = call.arguments
    counting = arguments.output_mode == "count"
    offset = arguments.offset
    most = min(arguments.max_matches, arguments.max_files or NO_LIMIT, call.settings.max_chars // MIN_FILE_CHARS)
    options = {name: value for name, value in call.options.items() if not name.endswith("_context")}
    numbers: Mode = "count-matches" if arguments.multiline else "count"  # as `RoundRobinMatchCollector.hits`
    query = call.first_query(cast("SearchOptions", options), numbers if counting else "files-with-matches")

    def collector() -> ListingCollector[FileCount | str]:
        decoder: Any = CountDecoder() if counting else listing_decoder(counts=query.counts)
        return ListingCollector(decoder, offset + most, allowed=call.allowed, progress=call.progress)

    found = await run.collect(Step(query, collector, call.scope.timeout))
    hits = tuple(
        FileHits(path=call.shown(item))
        if isinstance(item, str)
        else FileHits(path=call.shown(item.path), count=item.count)
        for item in found.items()[offset:]
    )
    ended_after = call.ended_after(timed_out=found.timed_out)
    exact = ended_after is None
    explained, notes = "", list[str]()
    if found.end is not None and UNCOUNTED in found.end.also:
        notes.append("A file with a NUL byte after a match has no count; output_mode=content shows its matches.")
    if not found.total:
        notes += escape_note(arguments.pattern, fixed_strings=arguments.fixed_strings)
    if exact and not found.total:
        explained = await _explained(run, call)
    if exact and not found.total and call.items is None:
        notes.append(await other_spellings_note(run, call))
        notes += await unsearched_notes(run, call.settings.sandbox, call.scope, call.options, verb="searched")
    if exact:
        notes.append(page_note(call.memory, arguments, offset, (found.counted, found.total)))
    if exact and found.total <= offset + most:
        names = [item if isinstance(item, str) else item.path for item in found.items()]
        notes.append(await _hidden_matches(run, call, names))

    def answer(count: int) -> GrepContentResult:
        end = offset + count
        said = listed(found.total, "matching file", offset, count, exact=exact, matches=found.counted)
        return GrepContentResult(
            **_about(call, found.end, timed_out=found.timed_out, notes=notes),
            files=hits[:count],
            truncated=found.total > end or not exact,
            next_offset=end if found.total > end and count else None,
            message=said if found.total else f"{nothing_found('matches', ended_after)}.{explained}",
            total_matches=found.counted if counting else None,
            files_matched=found.total,
            exact=exact,
        )

    return await run.call(lambda: shortened(answer, len(hits), call.settings.max_chars))


async def _explained(run: Runner, call: ContentCall) -> str:
    """Return a sentence that names arguments with which the search would find something; empty if there are none."""
    location = call.scope.location
    unseen = {name for name in ("hidden", "no_ignore") if not call.options.get(name)}

    def how(probe: Probe) -> str | None:
        options = {hint.option for hint in probe.hints}
        if call.items is not None:
            return "they have a NUL byte, and no argument includes them" if options == {"text"} else None
        if options == {"text"}:
            return None if location.is_file else "to search one, pass it as path"
        if call.files.overrides and "file_type" in call.files.names and "no_ignore" in options:
            return None  # the glob overrides ignore files and types, and the results of these searches are not filtered
        if call.files.overrides and len(options) == 1 and options < unseen:
            return None  # the glob finds hidden and ignored files with either of the two options
        if any(hint.kind == "omit" for hint in probe.hints):
            return f"without {', '.join(call.files.names)}"
        spelled = [text for hint in probe.hints if (text := spell_as_argument(hint)) is not None]
        return ", ".join(spelled) if len(spelled) == len(probe.hints) else None

    quiet = replace(call, progress=None)

    def step(
        options: SearchOptions, page_request: PageRequest, timeout: float | None
    ) -> Step[RoundRobinMatchCollector]:
        if options.get("text") and timeout is not None:
            timeout = min(timeout, BINARY_SECONDS)
        if options.get("text") and call.scope.denied is not None:  # the bytes of archives have denied members, too
            archives = [f"!*{suffix}" for kind in UNPACKED for suffix in SUFFIXES[kind]]
            options = cast("SearchOptions", {**options, "iglob": [*call.scope.denied.iglobs(), *archives]})
        return quiet.step(options, page_request, timeout)

    said = await explanation(
        run,
        (call.arguments.pattern,),
        call.options,
        step,
        how,
        lambda path: shown_start(call.shown(path)),
    )
    return f" {said}" if said else ""


async def _hidden_matches(run: Runner, call: ContentCall, seen: Collection[str]) -> str:
    """Search hidden files for `HIDDEN_SECONDS`; return a sentence about matches in them, empty if none are known."""
    scope, unwanted = call.scope, frozenset(seen)
    # With `overrides`, the globs of the caller would include ignored files again.
    if not seen or call.arguments.include_hidden or call.files.overrides or scope.location.is_file:
        return ""
    if call.items is not None:
        return ""

    def allowed(path: str) -> bool:
        return path not in unwanted and (scope.allowed is None or scope.allowed(path))

    hidden = replace(call, scope=replace(scope, allowed=allowed), progress=None)
    timeout = HIDDEN_SECONDS if scope.timeout is None else min(HIDDEN_SECONDS, scope.timeout)
    try:
        with rules_file(HIDDEN_RULES) as file:
            # Of several ignore files, the last one takes precedence, so the file of the scope must come last.
            options: dict[str, object] = {
                **call.options,
                "hidden": True,
                "ignore_file": [file, *filter(None, [scope.options.get("ignore_file")])],
                "before_context": 0,
                "after_context": 0,
            }
            step = hidden.step(cast("SearchOptions", options), PageRequest(0, 0, 0, 0, 0, None), timeout)
            found = await run.collect(step)
    except SearchError:
        return ""
    return in_hidden_files(found, found.matches, "include_hidden=True")


async def _add_literal(run: Runner, call: ContentCall, error: PatternError) -> None:
    """Add notes to an error: its position in the pattern, and the number of lines that contain the pattern as text."""
    if error.offset is not None:
        error.add_note(f"The error is at character {error.offset}, counted from 0.")
    try:
        step = replace(call, progress=None).step(
            {**call.options, "fixed_strings": True}, PageRequest(0, 0, 0, 0, 0, None), LITERAL_SECONDS
        )
        found = await run.collect(step)
    except SearchError:
        return
    if found.timed_out and not found.matches:
        return
    least = "at least " if found.timed_out else ""
    lines, files = plural(found.matches, "line"), plural(found.files, "file")
    error.add_note(f"As plain text the pattern matches {least}{lines} in {files} (fixed_strings=True).")


def _about(call: ContentCall, end: Exit | None, *, timed_out: bool, notes: Iterable[str] = ()) -> dict[str, Any]:
    """Return the fields that every answer of this tool has."""
    location = call.scope.location
    errors = end.path_errors() if end else ()
    if call.candidates is not None:
        errors = call.candidates.errors_with(errors)
    return {
        "root": as_utf8(location.cwd),
        "path": location.name,
        "query": call.arguments.pattern,
        "output_mode": call.arguments.output_mode,
        "expand": call.arguments.expand,
        "notes": (
            *filter(None, notes),
            *notes_of(errors, call.ended_after(timed_out=timed_out), call.scope, call.items),
            *call.scope.notes,
            *denied_glob_notes(call.scope, call.arguments.file_pattern),
            *call.notes,
        ),
    }


class GrepContentOptions(VisibilityOptions, total=False):
    """Options of `grep_content()` besides `pattern` and `path`."""

    context_lines: int
    before_context: int
    after_context: int
    max_matches: int
    max_files: int
    file_pattern: str
    file_type: str
    case_insensitive: bool
    fixed_strings: bool
    multiline: bool
    output_mode: OutputMode
    offset: int
    sections: bool
    expand: Expand
    rev: str
    inside: str


GREP_CONTENT = ToolSpec(
    "grep_content",
    GrepContentArguments,
    GrepContentResult,
    run_grep_content,
    title="Search in files",
    aliases=(
        *("grep", "ripgrep", "rg", "grep_search", "search_file_content", "search_content", "grep_files"),
        # search_files of Cline, Roo and Kilo; that of the MCP server for file systems has a glob. search_code of
        # Desktop Commander.
        *("search_files(regex)", "search_files(file_pattern)", "search_code(pattern)", "search_code(regex)"),
        *("search_codebase(pattern)", "search_codebase(regex)", "code_search(pattern)", "code_search(regex)"),
        *("search_codebase(queries)", "search_for_pattern"),
    ),
    rare=frozenset({"before_context", "after_context", "max_files", "sections", "expand", "rev", "inside"}),
)


class GrepContentMethods(ToolMethods, offers=(GREP_CONTENT,)):
    """Methods of `grep_content`."""

    async def grep_content(
        self,
        pattern: str,
        path: str = ".",
        *,
        context_lines: int = 2,
        before_context: int = 0,
        after_context: int = 0,
        max_matches: int = 100,
        max_files: int = 0,
        file_pattern: str = "",
        file_type: str = "",
        case_insensitive: bool = False,
        fixed_strings: bool = False,
        multiline: bool = False,
        output_mode: Literal["content", "files_with_matches", "count"] = "content",
        offset: int = 0,
        include_hidden: bool = False,
        include_ignored: bool = False,
        sections: bool = False,
        expand: Literal["none", "definition"] = "none",
        rev: str = "",
        inside: str = "",
    ) -> str:
        r"""Search the contents of files with a regular expression (ripgrep), and show the lines that match.

        The answer names each file, then its lines: `42: …` is a match, `43- …` is context. Matches are taken from all
        files in rotation. The last line, in parentheses, gives the number of matches, what was left out and how to
        get it. Use the line numbers to read more of a file. Hidden files and files that .gitignore excludes are left
        out.

        Args:
            pattern (str): Regular expression to search for, such as `def \w+_total` or `TODO|FIXME`.
            path (str): The directory or file to search; `.` is everything.
            context_lines (int): Lines of context before and after each match; default 2.
            before_context (int): Lines of context before each match, if more than context_lines.
            after_context (int): Lines of context after each match, if more than context_lines.
            max_matches (int): Maximum number of matches to show, or of files in the other output modes; default 100.
            max_files (int): Maximum number of files to show matches of; 0, the default, is no limit.
            file_pattern (str): Search only files that match this glob, e.g. `*.py`, `src/**/*.{ts,tsx}` or `!*.min.js`.
            file_type (str): Search only files of this type, one that ripgrep knows, e.g. `py`, `js`, `rust`.
            case_insensitive (bool): Ignore case; default false.
            fixed_strings (bool): Search for the pattern as plain text, not as a regular expression.
            multiline (bool): Let a match span lines; a dot then also matches line ends.
            output_mode (str): `content` shows lines, `files_with_matches` paths, `count` counts of matches per file.
            offset (int): Number of matches, or files in other output modes, to skip; the previous answer gives it.
            include_hidden (bool): Search hidden files and directories, too.
            include_ignored (bool): Search files that .gitignore and the like exclude, too.
            sections (bool): Name the definition that encloses each match, with the numbers of its lines.
            expand (str): `definition` shows the definition around each match, if it fits; default `none`.
            rev (str): Search a commit of git instead of the files on disk, e.g. `v1.2` or `main~3`.
            inside (str): Search inside files of these formats, too, e.g. `zip,tar,gz,ipynb,pdf,docx,xlsx`.
        """
        return self.text(
            await self.grep_content_result(
                pattern,
                path,
                context_lines=context_lines,
                before_context=before_context,
                after_context=after_context,
                max_matches=max_matches,
                max_files=max_files,
                file_pattern=file_pattern,
                file_type=file_type,
                case_insensitive=case_insensitive,
                fixed_strings=fixed_strings,
                multiline=multiline,
                output_mode=output_mode,
                offset=offset,
                include_hidden=include_hidden,
                include_ignored=include_ignored,
                sections=sections,
                expand=expand,
                rev=rev,
                inside=inside,
            )
        )

    async def grep_content_result(
        self, pattern: str, path: str = ".", **options: Unpack[GrepContentOptions]
    ) -> GrepContentResult:
        """Return the answer of `grep_content()` as a `GrepContentResult`."""
        arguments = parse_arguments(GrepContentArguments, {"pattern": pattern, "path": path, **options})
        return await run_grep_content(self._tools.begin(), arguments)
