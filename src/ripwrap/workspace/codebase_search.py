"""Tool `codebase_search`: rank code for a question, with or without an index, and fit the answer into `max_chars`."""

import math
import os
import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias, Unpack, cast

from pydantic import model_validator
from typing_extensions import TypedDict

from ripwrap._code.enclosing import LineSpan, block_at, definition_at
from ripwrap._system.concurrency import CANCELLED
from ripwrap._text import as_utf8, plural, shown, shown_path
from ripwrap.errors import RipwrapError
from ripwrap.models import Model, PathError
from ripwrap.options import FileOptions
from ripwrap.results import RankedChunk
from ripwrap.workspace.arguments import (
    MAX_NUMBER,
    Globs,
    Number,
    PathList,
    ToolArguments,
    labels,
    line_hashes,
    parse_arguments,
)
from ripwrap.workspace.close_names import names_in, resolve_names
from ripwrap.workspace.dispatch import ToolMethods
from ripwrap.workspace.notes import NAMES_SHARE, notes_of, shortened, unused_index_note
from ripwrap.workspace.redact import Redaction, redact_name
from ripwrap.workspace.results import ToolResult
from ripwrap.workspace.sandbox import RootLocation
from ripwrap.workspace.scope import Scope, Settings, file_filter, half, locate_file, open_scope, visible_paths
from ripwrap.workspace.shown_lines import snippet
from ripwrap.workspace.tool import ToolCall, ToolSpec

if TYPE_CHECKING:
    from ripwrap.workspace.expansion import SourceFile
    from ripwrap.workspace.index_tools import IndexAnswer


Ranking: TypeAlias = Literal["hybrid", "index", "files"]


class CodebaseSearchOptions(TypedDict, total=False):
    """Options of `codebase_search()` besides `query` and `path`."""

    like: str
    file_pattern: str
    file_type: str
    limit: int
    offset: int


class CodebaseSearchArguments(ToolArguments, frozen=True):
    """Arguments of `codebase_search()`."""

    foreign: ClassVar[frozenset[str]] = frozenset({"line"})

    query: str = ""
    path: PathList = "."
    like: str = ""
    file_pattern: Globs = ""
    file_type: str = ""
    limit: Number = 30
    offset: Number = 0

    @model_validator(mode="before")
    @classmethod
    def _read_line(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Replace a path and a line, which `find_related` of semble takes, by `like`."""
        values = {**given}
        line = values.pop("line", None)
        return values if line is None else values | {"like": f"{values.pop('path', '')}:{line}"}


class CodePlace(Model, frozen=True):
    """Lines of code that answer a question.

    Attributes:
        file: Path of the file.
        start_line: Number of the first line, from 1.
        end_line: Number of the last line.
        symbol: Name of the definition that encloses the most relevant line; `None` outside of definitions.
        score: Value that results are sorted by; comparable only within one answer and one root.
        why: Reasons for the score.
        snippet: Text of the lines. If the answer has no room for all lines, only the first lines. `…` marks a place
            where a long line was cut. Blank lines at the end are included; `str()` omits them.
        anchors: Hash of each line of `snippet`, if the workspace has `anchors`; else empty.
    """

    file: str
    start_line: int
    end_line: int
    symbol: str | None = None
    score: float
    why: tuple[str, ...]
    snippet: str
    anchors: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """Yield the path, the score and its reasons, then the lines, each with its number."""
        symbol = f" in {shown(self.symbol)}" if self.symbol else ""
        yield f"{shown_path(self.file)}:{self.start_line}-{self.end_line}{symbol}"
        yield f"  score {self.score:.2f}" + (f": {shown('; '.join(self.why))}" if self.why else "")
        texts = self.snippet.split("\n") if self.snippet else []
        left_out = self.end_line - self.start_line + 1 - len(texts)
        while texts and left_out <= 0 and not texts[-1].strip():
            texts.pop()
        for label, text in zip(labels(self.start_line, self.anchors, len(texts)), texts, strict=True):
            yield f"  {label}: {text}".rstrip()
        if left_out > 0:
            yield f"  [{plural(left_out, 'more line')}]"


class CodebaseSearchResult(ToolResult, frozen=True):
    """Result of `codebase_search()`.

    Attributes:
        query: Question or name that was searched; empty if code was compared.
        like: Lines with which code was compared, as `a.py:10-30`; empty if a question was searched.
        ranking: Source of the results: `index` (words in the refreshed index), `hybrid` (words and embeddings in the
            index), or `files` (no index).
        places: Results, the best first. With several indexed roots, results of the roots alternate.
    """

    query: str
    like: str = ""
    ranking: Ranking
    places: tuple[CodePlace, ...]

    _entries = ("places",)

    def _body(self) -> Iterator[str]:
        for number, place in enumerate(self.places):
            yield from ("",) if number else ()
            yield from place.lines()


SNIPPET_LINES = (50, 25, 10, 4, 1)
"""Numbers of lines to show of a result that is too long. They are tried in this order until the answer fits."""

NAMED_RESULTS = 10
"""Number of results that are named even if there is no room for their text."""

TEXT_SHARE = 2 / 3
"""Maximum share of an answer that the texts of more than `NAMED_RESULTS` results take before they are expanded to whole
definitions, from 0 to 1.
"""

COMPARED = 150
"""Number of ranked chunks that are compared with the lines of `like`."""

RANKED: Mapping[Ranking, str] = {
    "files": "without an index",
    "index": "with the index",
    "hybrid": "with the index and embeddings",
}


async def run_codebase_search(call: ToolCall, arguments: CodebaseSearchArguments) -> CodebaseSearchResult:
    """Return the chunks (parts of files) that answer a question best; use the indexes if possible."""
    run, settings, indexes = call.run, call.settings, call.indexes()
    query, offset, limit = arguments.query, arguments.offset, arguments.limit
    most = min(offset + limit, MAX_NUMBER) + 1
    if bool(query.strip()) == bool(arguments.like):
        raise ValueError("pass either query, with words or a name, or like, with a place such as 'src/a.py:10-30'")
    sample: _Sample | None = None
    if arguments.like:
        sample = await run.call(lambda: _read_sample(settings, arguments.like))
        query, most = sample.query, COMPARED
        arguments = arguments.model_copy(update={"like": sample.name})
    async with open_scope(run, settings, arguments.path, hidden=False, ignored=False) as scope:
        answer: IndexAnswer | None = None
        notes = [*scope.notes]
        globs = await resolve_names(arguments.file_pattern, names_in(run, scope))
        files = file_filter(scope.location, globs, arguments.file_type)
        if indexes is not None and not files.names:
            try:
                answer = await indexes.search(run, replace(scope, timeout=half(scope.timeout)), query, most)
            except (RipwrapError, TimeoutError) as error:  # continue without the index
                notes.append(unused_index_note(error, scope.timeout))
        ranking: Ranking
        chunks: list[RankedChunk]
        if answer is None:
            ranking = "files"
            errors: list[PathError] = []
            allowed, incomplete = await visible_paths(run, scope, files)
            notes += ("Not all files were listed in time, so results may be missing.",) if incomplete else ()
            options = cast("FileOptions", {**scope.options, **files.options})
            chunks = await _rank(call, replace(scope, options=options, allowed=allowed), query, most, errors)
            notes = [*notes_of(errors, None, scope), *notes]
        else:
            ranking = "hybrid" if answer.by_vectors else "index"
            chunks = answer.chunks
            notes += answer.notes
        chunks = chunks if sample else chunks[offset : offset + limit + 1]
        if redact := settings.redact:
            chunks = await run.call(lambda: _redacted(settings, redact, scope, chunks))
        if (like := sample) is not None:  # after masking: the reasons name words that the lines share
            chunks = (await run.call(lambda: like.compared(scope.location, chunks)))[offset : offset + limit + 1]
        return await run.call(lambda: _fit_to_budget(settings, scope, arguments, chunks, ranking, notes, sample))


class _Sample(NamedTuple):
    """Lines that code is compared with."""

    name: str
    text: str
    query: str
    file: "SourceFile"
    path: str
    span: LineSpan

    def is_of(self, location: RootLocation, path: str) -> bool:
        """Return True if the lines are of a file on the disk, given as a search of a location prints its path."""
        return os.path.normpath(os.path.join(location.cwd, path)) == self.path

    def compared(self, location: RootLocation, chunks: Sequence[RankedChunk]) -> list[RankedChunk]:
        """Return the chunks that are most like the lines, without the lines themselves."""
        from ripwrap.workspace.more_like_this import by_likeness

        parts = (part for one in chunks for part in (self._others(one) if self.is_of(location, one.path) else (one,)))
        return by_likeness(self.text, [*parts])

    def _others(self, chunk: RankedChunk) -> Iterator[RankedChunk]:
        """Yield the parts of a chunk of the same file that are before and after the lines."""
        own, start = chunk.text.split("\n"), chunk.start_line
        before = LineSpan(start, min(self.span.first - 1, chunk.end_line))
        for part in (before, LineSpan(max(self.span.last + 1, start), chunk.end_line)):
            text = "\n".join(own[part.first - start : max(part.last + 1 - start, 0)])
            if text.strip():
                around = self.file.section_at(part.first + len(text) - len(text.lstrip("\n")))
                symbol = around and around.name
                about = {"start_line": part.first, "end_line": part.last, "text": f"{text}\n", "symbol": symbol}
                yield chunk.model_copy(update=about)


def _read_sample(settings: Settings, place: str) -> _Sample:
    """Return the lines of a place with secrets masked: those named, or the definition or block around a single one."""
    from ripwrap.workspace.expansion import read_source_file
    from ripwrap.workspace.more_like_this import query_of

    location = locate_file(settings, place)
    path = location.paths[0]
    file = read_source_file(settings, location, path, settings.redactor(location, path))
    name = shown_path(location.name)
    if file is None:
        raise ValueError(f"{name} is too large, or cannot be read as text; name lines of another file")
    span = LineSpan(*(location.lines or (1, len(file.lines))))
    if span.first > len(file.lines):
        has = f"{plural(len(file.lines), 'line')}, so there is no line {span.first}" if file.lines else "no lines"
        raise ValueError(f"{name} has {has}")
    span = LineSpan(span.first, min(span.last, len(file.lines)))
    if span.first == span.last and location.lines:
        found = definition_at(file.outline, span)
        span = found[1] if found else block_at(path, file.lines, span)
    text = file.text(span)
    name = f"{location.name}:{span.first}-{span.last}"
    query = query_of(text)
    if not query:
        raise ValueError(f"{shown_path(name)} has no word that other code may have; name other lines")
    own = "" if location.revision else os.path.normpath(os.path.join(location.cwd, path))
    return _Sample(name, text, query, file, own, span)


async def _rank(call: ToolCall, scope: Scope, query: str, limit: int, errors: list[PathError]) -> list[RankedChunk]:
    """Rank the files without an index, and return the best chunks; add the paths that could not be read to `errors`."""
    from ripwrap._operations.rank import rank_request, run_rank
    from ripwrap._ranking.passages import DEEP
    from ripwrap._ranking.scoring import NO_EVIDENCE  # late: with the outlines of code these take 50 ms

    run = call.run
    location, timeout, allowed = scope.location, scope.timeout, scope.allowed
    request = rank_request(
        query,
        location.cwd,
        location.paths,
        limit,
        scope.options,
        timeout=timeout,
        allowed=allowed,
        report=errors.extend,
    )
    evidence = NO_EVIDENCE
    if not location.several:
        evidence = await run.call(lambda: call.history().evidence(location.cwd, request.query))
    return await run_rank(run, replace(request, depth=DEEP, evidence=evidence))


def _redacted(settings: Settings, redact: Redaction, scope: Scope, chunks: Sequence[RankedChunk]) -> list[RankedChunk]:
    """Return the chunks with secrets masked."""
    masked: list[RankedChunk] = []
    for chunk in chunks:
        redactor = settings.redactor(scope.location, chunk.path) or redact
        masks = {
            "text": redactor(chunk.text, chunk.start_line).text,
            "symbol": None if chunk.symbol is None else redact_name(redact, chunk.symbol),
            "reasons": tuple(redact_name(redact, reason) for reason in chunk.reasons),
        }
        masked.append(chunk.model_copy(update=masks))
    return masked


def _fit_to_budget(
    settings: Settings,
    scope: Scope,
    arguments: CodebaseSearchArguments,
    chunks: list[RankedChunk],
    ranking: Ranking,
    notes: list[str],
    sample: _Sample | None,
) -> CodebaseSearchResult:
    """Return the answer that fits into `max_chars`: first whole definitions, then names, or further results."""
    from ripwrap.workspace.expansion import MAX_DEFINITION_LINES, expand_chunks, missing_code, read_source_file

    notes = [*notes, *filter(None, [missing_code()] if chunks else [])]

    def answer(places: Sequence[RankedChunk], lines: Sequence[int], left_out: int) -> CodebaseSearchResult:
        end = arguments.offset + len(chunks) - left_out
        return CodebaseSearchResult(
            root=as_utf8(scope.location.cwd),
            path=scope.location.name,
            query=arguments.query,
            like=arguments.like,
            ranking=ranking,
            places=tuple(
                _code_place(chunk, scope, limit, settings) for chunk, limit in zip(places, lines, strict=True)
            ),
            truncated=bool(left_out),
            next_offset=end if left_out and places else None,
            message=_message(arguments, RANKED[ranking], len(places), end, left_out),
            notes=tuple(notes),
        )

    def shown(count: int, lines: int = MAX_DEFINITION_LINES) -> CodebaseSearchResult:
        return answer(chunks[:count], [lines] * count, len(chunks) - count)

    deadline = math.inf if scope.timeout is None else time.monotonic() + scope.timeout

    def read(path: str) -> "SourceFile | None":
        if CANCELLED.get().is_set() or time.monotonic() > deadline or (sample and sample.is_of(scope.location, path)):
            return None  # a definition in the file of the sample may have the lines of the sample
        return read_source_file(settings, scope.location, path, settings.redactor(scope.location, path))

    def filled(places: Sequence[RankedChunk], whole: int, next_lines: int = 0) -> CodebaseSearchResult:
        lines = [*[MAX_DEFINITION_LINES] * whole, next_lines, *[0] * len(places)]
        return answer(places, lines[: len(places)], len(chunks) - count)

    def fits(places: Sequence[RankedChunk], whole: int, next_lines: int = 0) -> bool:
        return len(str(filled(places, whole, next_lines))) <= settings.max_chars

    most = min(len(chunks), arguments.limit)
    count = len(
        shortened(lambda count: shown(count, 0), min(most, NAMED_RESULTS), int(settings.max_chars * NAMES_SHARE)).places
    )
    if count < min(most, 1):
        return shortened(lambda count: shown(count, 0), most, settings.max_chars)
    more, room = range(count + 1, most + 1), settings.max_chars * TEXT_SHARE
    count += bisect_left(more, True, key=lambda number: len(str(shown(number))) > room)
    best = expand_chunks(chunks[:count], read, fits)
    whole = bisect_left(range(1, len(best) + 1), True, key=lambda number: not fits(best, number))
    if whole < len(best):
        return filled(best, whole, next((lines for lines in SNIPPET_LINES if fits(best, whole, lines)), 0))

    covered = {(one.path, line) for one in best for line in range(one.start_line, one.end_line + 1)}

    def further(used: int, last: int = MAX_DEFINITION_LINES) -> CodebaseSearchResult:
        """Return the answer with further results, which take the room that is left."""
        new = (one for one in chunks[count:used] if (one.path, one.start_line) not in covered)
        lines = [MAX_DEFINITION_LINES] * len(places := [*best, *new])
        return answer(places, [*lines[1:], last][: len(places)], len(chunks) - used)

    used = count + bisect_left(
        range(count + 1, most + 1), True, key=lambda used: len(str(further(used))) > settings.max_chars
    )
    cut = (further(used + 1, lines) for lines in SNIPPET_LINES[:-1] if used < most)
    return next((one for one in cut if len(str(one)) <= settings.max_chars), further(used))


def _message(arguments: CodebaseSearchArguments, ranked: str, count: int, end: int, left_out: int) -> str:
    """Return the message for a page of `count` results, which ends at `end`, and after which some are left out."""
    begin, limit = arguments.offset, arguments.limit
    if not count and not left_out:
        nothing = f"No result from offset={begin} on." if begin else "No result found."
        if arguments.like:
            return f"{nothing} No other code has the words of {shown_path(arguments.like)}."
        return f"{nothing} Ask with other words, or use grep_content."
    if not count:
        return "No result shown."
    found = f"Results {begin + 1} to {end}" if begin else f"The {plural(count, 'best result')}"
    found += f" like {shown_path(arguments.like)}" if arguments.like else ""
    why = "There was no room for more results" if end - begin < limit else "A larger limit gives more"
    return f"{found}, ranked {ranked}." + (f" {why}; offset={end} gives the next ones." if left_out else "")


def _code_place(chunk: RankedChunk, scope: Scope, lines: int, settings: Settings) -> CodePlace:
    max_line = settings.max_line
    text = snippet(chunk.text, lines, max_line)
    shown_lines = chunk.text.split("\n")[: text.count("\n") + 1] if text else []
    return CodePlace(
        file=scope.location.shown(chunk.path),
        start_line=chunk.start_line,
        end_line=chunk.end_line,
        symbol=None if chunk.symbol is None else snippet(chunk.symbol, 1, max_line),
        score=chunk.score,
        why=tuple(snippet(reason, 1, max_line) for reason in chunk.reasons),
        snippet=text,
        anchors=line_hashes(shown_lines) if settings.anchors else (),
    )


CODEBASE_SEARCH = ToolSpec(
    "codebase_search",
    CodebaseSearchArguments,
    CodebaseSearchResult,
    run_codebase_search,
    title="Search by question or name",
    aliases=("semantic_search", "search_codebase", "search_code", "code_search", "find_related", "find_similar"),
    writes="index",
)


class CodebaseSearchMethods(ToolMethods, offers=(CODEBASE_SEARCH,)):
    """Methods of `codebase_search`."""

    async def codebase_search(
        self,
        query: str = "",
        path: str = ".",
        *,
        like: str = "",
        file_pattern: str = "",
        file_type: str = "",
        limit: int = 30,
        offset: int = 0,
    ) -> str:
        """Find the code that answers a question in words, defines a name, or is like other code; the best first.

        The answer gives for each result its file and lines, the definition around it, the reasons for its rank, and its
        text. Use this if you do not know the names in the code, and grep_content if you do. Hidden files and files that
        .gitignore excludes are left out.

        Args:
            query (str): Words, e.g. `how are cookies stored`, or a name, e.g. `CookieJar`.
            path (str): The directory or file to search; `.` is everything.
            like (str): Instead of query: lines, or a definition by one line, to find code like it: `src/a.py:10-30`.
            file_pattern (str): Search only files that match this glob, e.g. `*.py`, `src/**/*.{ts,tsx}` or `!tests/**`.
            file_type (str): Search only files of this type, one that ripgrep knows, e.g. `py`, `js`, `rust`.
            limit (int): Maximum number of results to show; default 30. A file may have several.
            offset (int): Number of results to skip, for the next page; the previous answer gives it.
        """
        return self.text(
            await self.codebase_search_result(
                query,
                path,
                like=like,
                file_pattern=file_pattern,
                file_type=file_type,
                limit=limit,
                offset=offset,
            )
        )

    async def codebase_search_result(
        self, query: str = "", path: str = ".", **options: Unpack[CodebaseSearchOptions]
    ) -> CodebaseSearchResult:
        """Return the answer of `codebase_search()` as a `CodebaseSearchResult`.

        If the index cannot be used, the files are ranked without the index, and `notes` give the reason. With
        `file_pattern` or `file_type`, the index is not used, because rg knows the globs and types. The method
        raises the errors of `grep_content_result()`, and `TimeoutError` if the ranking takes longer than the
        workspace's `timeout`.
        """
        arguments = parse_arguments(CodebaseSearchArguments, {"query": query, "path": path, **options})
        return await run_codebase_search(self._tools.begin(), arguments)
