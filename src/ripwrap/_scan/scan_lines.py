"""Second step of a scan: search the lines that rg has found, once for each rule that may match them."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Generic, NamedTuple, NoReturn, TypeVar, cast

from pydantic import BaseModel

from ripwrap._operations.search import CaptureAnswer, MatchAnswer, SearchAnswer, capturing_query
from ripwrap._ripgrep.command import search_query
from ripwrap._ripgrep.decoder import MODELS, Record
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.literals import fold
from ripwrap._ripgrep.protocols import Answer, Runner, Step
from ripwrap._ripgrep.query import without_options
from ripwrap._scan.scan_plan import CompiledRule, ScanRequest, for_scan
from ripwrap._text import FsPath, raw_bytes
from ripwrap.errors import PatternError
from ripwrap.models import CapturedMatch, Commit, HistoryScanMatch, Match, ScanMatch
from ripwrap.options import FileOptions, SearchOptions
from ripwrap.places.where import PLACE_OPTIONS

_NARROW_RULES = 3
"""Number of rules above which a first search, for all rules together, drops the lines that no rule matches."""

_NARROWING = frozenset({"word_regexp", "line_regexp"})
"""Options that only remove matches: without these options, the same lines match, and possibly other lines, too."""

_FILE_OPTIONS = frozenset((*FileOptions.__annotations__, *PLACE_OPTIONS)) - {"threads"}
_FOR_FILES = frozenset(
    {"encoding", "max_count", "context", "before_context", "after_context", "passthru", "stop_on_nonmatch", "binary"}
)
"""Options that the search of the found lines leaves out, because they apply to whole files."""


class _VersionLine(Match, frozen=True):
    """Matching line of a file, or of a version of a file in a history, which has further fields."""

    blob: str | None = None
    paths: tuple[FsPath, ...] = ()
    first: Commit | None = None
    last: Commit | None = None


class FoundLine(NamedTuple):
    """Line that rg has found."""

    file: str
    match: Match


class FoundText(NamedTuple):
    """Text that a rule has matched in a file; see `FoundLine`."""

    file: str
    hit: ScanMatch


class LineAnswer(SearchAnswer[FoundLine]):
    """Answer that yields the matching lines, each with its file."""

    kinds = ("begin", "match")
    models: ClassVar[Mapping[str, type[BaseModel]]] = {**MODELS, "match": _VersionLine}
    _file = ""

    def feed(self, chunk: bytes) -> Iterator[FoundLine]:
        return self._lines(self._feed(chunk))

    def end_run(self, end: Exit) -> Iterator[FoundLine]:
        return self._lines(self._end_run(end))

    def _lines(self, messages: Iterator[Record]) -> Iterator[FoundLine]:
        for message in messages:
            if isinstance(message, Match):
                yield FoundLine(self._file, message)
            else:
                self._file = message.path


def timeout_error(timeout: float | None) -> TimeoutError:
    """Return the error for a scan that took longer than `timeout` seconds."""
    return TimeoutError(f"the scan took more than timeout={timeout} seconds; scan fewer files, or allow more time")


def widened(options: SearchOptions) -> SearchOptions:
    """Return the options without `word_regexp` and `line_regexp`, with which a pattern matches in fewer lines."""
    return without_options(options, _NARROWING)


class LineSearch:
    """Search of the lines that a scan has found.

    rg searches a temporary file with these lines, once for each rule that may match. Before that, if there are more
    than `_NARROW_RULES` such rules, one search for all these rules drops the lines that no rule matches.
    """

    def __init__(
        self, request: ScanRequest, directory: str, timeout: float | None, left: Callable[[], float | None]
    ) -> None:
        """Set the options and the time limit."""
        kept = without_options(request.options, _FILE_OPTIONS | _FOR_FILES)
        self._options: SearchOptions = {**kept, "text": True, "encoding": "none", "no_ignore": True}
        self._end = b"\0" if request.options.get("null_data") else b"\n"
        self._directory = directory
        self._path = os.path.join(directory, "lines")
        self._timeout = timeout
        self._left = left

    async def check(self, run: Runner, rules: Sequence[CompiledRule]) -> None:
        """Check that rg can compile the patterns of all rules, by a search of an empty file."""
        await run.call(partial(_write, self._path, b""))
        try:
            await self._search_together(run, [rule.joined or "" for rule in rules], self._options)
        except PatternError as error:
            if "exceeds size limit" not in error.stderr or len(rules) == 1:
                await self.name_rule(run, error, rules)
            # Together, the rules are too large for rg's regex engine, so check each half alone.
            half = len(rules) // 2
            await self.check(run, rules[:half])
            await self.check(run, rules[half:])

    async def name_rule(self, run: Runner, error: PatternError, rules: Sequence[CompiledRule]) -> NoReturn:
        """Raise the error of the first rule that does not compile; raise `error` if each rule compiles alone."""
        await run.call(partial(_write, self._path, b""))
        for rule in rules:
            await self._search(run, rule)
        raise error

    async def search(self, run: Runner, lines: Sequence[FoundLine], rules: Sequence[CompiledRule]) -> list[FoundText]:
        """Return the texts that the rules match in these lines, in the order of the lines.

        Raises:
            PatternError: A rule does not compile.
        """
        raw = [raw_bytes(line.match.lines) for line in lines]
        left, starts, rules = await self._put(run, raw, range(len(lines)), rules)
        if len(rules) > _NARROW_RULES:
            try:
                found = await self._search_together(run, [rule.reduced for rule in rules], widened(self._options))
            except PatternError as error:
                if "exceeds size limit" not in error.stderr:
                    raise
            else:
                left = [starts[match.absolute_offset] for match in found if match.absolute_offset]
                left, starts, rules = await self._put(run, raw, left, rules)
        hits: list[tuple[int, int, int, FoundText]] = []
        for order, rule in enumerate(rules):
            for match in await self._search(run, rule):
                if not match.absolute_offset:  # the empty first line, which `_put()` adds
                    continue
                number = starts[match.absolute_offset]
                for hit in texts(match, rule.rule.id, lines[number]):
                    (submatch,) = hit.hit.submatches
                    # rg finds no empty match at the end of a file without a final newline. The temporary file adds
                    # this newline, so the match is left out here.
                    if submatch.start < len(raw[number]) or raw[number].endswith(self._end):
                        hits.append((number, submatch.start, order, hit))
        hits.sort(key=lambda one: one[:3])
        return [hit for *_, hit in hits]

    async def _put(
        self, run: Runner, raw: Sequence[bytes], numbers: Sequence[int], rules: Sequence[CompiledRule]
    ) -> tuple[Sequence[int], dict[int, int], list[CompiledRule]]:
        """Write the lines with these numbers (their indexes in `raw`) to the temporary file.

        If no rule may match in the lines, nothing is written. Return three values: `numbers`; a map from the offset of
        each line in the temporary file to the number of the line; and the rules that may match.
        """
        # The first line is empty, so that rg does not take the start of a line for a byte order mark.
        pieces, starts, at = [self._end], dict[int, int](), len(self._end)
        for number in numbers:
            line = raw[number]
            pieces.append(line if line.endswith(self._end) else line + self._end)
            starts[at] = number
            at += len(pieces[-1])
        content = b"".join(pieces)
        folded = fold(content)
        possible = [rule for rule in rules if rule.may_match(folded)] if numbers else []
        if possible:
            await run.call(partial(_write, self._path, content))
        return numbers, starts, possible

    async def _search_together(self, run: Runner, patterns: Sequence[str], options: SearchOptions) -> list[Match]:
        """Return the lines of the temporary file that any of the patterns matches."""
        file = os.path.join(self._directory, "patterns")
        await run.call(partial(write_patterns, file, patterns))
        query = for_scan(search_query(patterns, self._directory, self._path, options, pattern_file=file))
        return (
            await run.collect(Step(query, lambda: Collected(MatchAnswer(None), self._timeout), self._left()))
        ).matches

    async def _search(self, run: Runner, rule: CompiledRule) -> list[CapturedMatch]:
        """Return the matches of a rule in the temporary file."""
        query = capturing_query("scan()", [rule.rule.pattern], rule.groups, self._directory, self._path, self._options)
        step = Step(for_scan(query), lambda: Collected(CaptureAnswer(None, rule.groups), self._timeout), self._left())
        try:
            return cast("list[CapturedMatch]", (await run.collect(step)).matches)
        except PatternError as error:
            raise error.about_rule(rule.rule.id) from None


Out = TypeVar("Out")


class Collected(Generic[Out]):
    """Collector of all matches of a search."""

    def __init__(self, answer: Answer[Out], timeout: float | None) -> None:
        self._timeout = timeout
        self.matches: list[Out] = []
        self._answer = answer
        self.ended = False

    def feed(self, chunk: bytes) -> None:
        self.matches += self._answer.feed(chunk)
        self.ended = self._answer.ended

    def end_run(self, end: Exit) -> None:
        self.matches += self._answer.end_run(end)

    def finish(self, end: Exit, *, timed_out: bool) -> None:  # noqa: ARG002 - `end_run` has checked it
        if timed_out:
            raise timeout_error(self._timeout)


def texts(match: CapturedMatch, rule: str, line: FoundLine) -> Iterator[FoundText]:
    """Yield each submatch of a match as a `ScanMatch`; its path, text, position and version are those of `line`."""
    place = dict(line.match)
    model = ScanMatch if place["blob"] is None else HistoryScanMatch
    for submatch, captures in zip(match.submatches, match.captures, strict=True):
        known: dict[str, Any] = {**place, "submatches": (submatch,), "captures": (captures,), "rule": rule}
        yield FoundText(line.file, model.model_construct(**known))


def write_patterns(path: str, patterns: Sequence[str]) -> None:
    """Write patterns to a file for rg, one per line."""
    _write(path, "".join(f"{pattern}\n" for pattern in patterns).encode())


def _write(path: str, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)
