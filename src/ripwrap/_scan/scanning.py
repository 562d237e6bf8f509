"""State of a scan: the runs of rg that are left, what they found, and the search of the found lines.

Matches in files that have none of the keywords of their rule are dropped. gitleaks compares keywords and files in lower
case, in all of Unicode. Here, rg looks for the keywords and ignores case, so the keywords and the files are folded in
the same way, and rg decodes the files as in the search for the rules.
"""

import math
import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Generic, NamedTuple, NoReturn, TypeVar, cast

from pydantic import BaseModel

from ripwrap._operations.files import ListingAnswer
from ripwrap._operations.search import (
    CaptureAnswer,
    MatchAnswer,
    SearchAnswer,
    capturing_query,
    read_groups,
    with_groups,
)
from ripwrap._ripgrep.command import search_query
from ripwrap._ripgrep.decoder import MODELS, PathDecoder, Record
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.groups import Groups
from ripwrap._ripgrep.literals import Required, fold, has_literals, is_frequent, rarest, required_literals
from ripwrap._ripgrep.protocols import Answer, Runner, Step
from ripwrap._ripgrep.query import NEEDS_SCAN, Query, only_options, without_options
from ripwrap._ripgrep.stream import StreamRequest
from ripwrap._scan.rules import Rule
from ripwrap._text import FsPath, raw_bytes
from ripwrap.errors import PatternError, SearchError
from ripwrap.models import CapturedMatch, Commit, HistoryScanMatch, Match, ScanMatch, Submatch
from ripwrap.options import FileOptions, SearchOptions, StrPath
from ripwrap.places.items import fields_of
from ripwrap.places.where import PLACE_OPTIONS, placed_files, placed_search

FEW_RULES = 16
"""Number of rules up to which rg searches for all patterns in one run. Measured: each pattern makes the run slower."""


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """Checked arguments of `scan()`."""

    rules: tuple[Rule, ...]
    cwd: StrPath
    paths: tuple[StrPath, ...]
    overlaps: bool
    limit: int | None
    options: SearchOptions
    on_host: bool = False


@dataclass(frozen=True)
class CompiledRule:
    """Rule, with its groups and literals."""

    rule: Rule
    groups: Groups | None
    literals: Required | None

    @property
    def joins(self) -> bool:
        """True if one line is enough to decide if the rule matches. Such rules are searched together in one run."""
        return self.joined is not None and not self.rule.multiline

    @property
    def joined(self) -> str | None:
        """Pattern for a run together with other rules, as in `Groups.joined`; `None` if that is impossible."""
        return None if self.groups is None else self.groups.joined

    @property
    def reduced(self) -> str:
        """Pattern that matches at least the lines of the rule (`Groups.reduced`); empty if groups are unknown."""
        return (None if self.groups is None else self.groups.reduced) or ""

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Literals of which each matching line contains one; empty if none is known, or if one may be frequent."""
        words = () if self.literals is None else rarest(self.literals)
        return () if any(map(is_frequent, words)) else tuple(word.decode() for word in words)

    def may_match(self, folded: bytes) -> bool:
        """Return False if the rule cannot match in a text that `fold()` returned, because the text lacks literals."""
        return self.literals is None or has_literals(folded, self.literals)


@dataclass(frozen=True, slots=True)
class Pass:
    """Planned run of rg over all files, for some or all of the rules."""

    rules: tuple[CompiledRule, ...]
    alone: bool = False
    literals: bool = False
    held: bool = False

    def halves(self) -> "tuple[Pass, Pass]":
        """Return two runs, each for half of the rules."""
        half = len(self.rules) // 2
        return replace(self, rules=self.rules[:half]), replace(self, rules=self.rules[half:])

    def patterns(self) -> list[str]:
        """Return patterns that match all lines that the rules match, and possibly other lines."""
        words: dict[str, None] = {}
        patterns: list[str] = []
        for rule in self.rules:
            if self.literals and rule.words:
                words |= dict.fromkeys(rule.words)
            else:
                patterns.append(rule.reduced)
        if words:
            patterns.append(f"(?iu:{'|'.join(map(re.escape, words))})")
        return patterns


def compile_rules(rules: Iterable[Rule], options: SearchOptions) -> list[CompiledRule]:
    """Return the rules with their groups and literals."""
    # Literals are compared with rg's output, which does not have the encoding of the files.
    decoded = without_options(options, ("encoding",))
    compiled: list[CompiledRule] = []
    for rule in rules:
        groups = read_groups([rule.pattern], {**options, "multiline": True} if rule.multiline else options)
        compiled.append(CompiledRule(rule, groups, required_literals([rule.pattern], decoded)))
    return compiled


def plan_passes(rules: Sequence[CompiledRule], options: SearchOptions) -> list[Pass]:
    """Return the runs of rg that a scan needs, in order; each run searches all files."""
    together = tuple(rule for rule in rules if rule.joins)
    if len(together) == 1:
        together = ()
    alone = [Pass((rule,), alone=True) for rule in rules if rule not in together]
    if not together:
        return alone
    if len(together) <= FEW_RULES:
        return [Pass(together), *alone]
    rare = tuple(rule for rule in together if rule.words)
    others = tuple(rule for rule in together if not rule.words)
    if not rare or not others or options.get("sort") or options.get("sortr"):
        return [Pass(together, literals=True), *alone]
    return [Pass(rare, literals=True, held=True), Pass(others), *alone]


def for_scan(query: Query) -> Query:
    """Return the query of a scan: items of one name have different marks, and each file is searched once.

    Errors about rg name `scan()`.
    """
    return replace(query, features=(NEEDS_SCAN,), numbered="", once=True)


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
        return self._lines(cast("Iterator[Record]", super().feed(chunk)))

    def end_run(self, end: Exit) -> Iterator[FoundLine]:
        return self._lines(cast("Iterator[Record]", super().end_run(end)))

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
        await run.call(lambda: _write(self._path, b""))
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
        await run.call(lambda: _write(self._path, b""))
        for rule in rules:
            await self._search(run, rule)
        raise error

    async def search(self, run: Runner, lines: Sequence[FoundLine], rules: Sequence[CompiledRule]) -> list[FoundText]:
        """Return the texts that the rules match in these lines, in the order of the lines."""
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
            await run.call(lambda: _write(self._path, content))
        return numbers, starts, possible

    async def _search_together(self, run: Runner, patterns: Sequence[str], options: SearchOptions) -> list[Match]:
        """Return the lines of the temporary file that any of the patterns matches."""
        file = os.path.join(self._directory, "patterns")
        await run.call(lambda: write_patterns(file, patterns))
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


_OPTIONS = frozenset((*FileOptions.__annotations__, *PLACE_OPTIONS, "encoding", "null_data")) - {"sort", "sortr"}
_MAX_KNOWN = 10_000
"""Number of answers that are kept: the matches of a file may come one by one."""


class KeywordSearch:
    """Search for the keywords of rules in the files in which the rules match."""

    def __init__(self, request: ScanRequest, timeout: float | None, left: Callable[[], float | None]) -> None:
        """Set the options and the time limit, as `LineSearch` does."""
        given = cast("Mapping[str, Any]", request.options)
        self._options: SearchOptions = {**only_options(given, _OPTIONS), "text": True, "max_count": 1}
        self._cwd = request.cwd
        # In another place than a directory, such as an archive, the name of a match may be no path to search. Then all
        # is searched, once for all matches of the scan.
        self._everywhere = request.paths if any(given.get(name) for name in PLACE_OPTIONS) else None
        self._all: dict[tuple[str, ...], set[str] | None] = {}
        self._timeout = timeout
        self._left = left
        self._known: dict[tuple[str, tuple[str, ...]], bool] = {}

    async def kept(self, run: Runner, hits: Sequence[FoundText], rules: Mapping[str, Rule]) -> list[FoundText]:
        """Return the matches whose rules have no keywords, or have one of them in the same file."""
        wanted: dict[tuple[str, ...], dict[str, None]] = {}
        for file, hit in hits:
            words = rules[hit.rule].keywords
            if words and (file, words) not in self._known and not _in_line(hit, words):
                wanted.setdefault(words, {})[file] = None
        if len(self._known) > _MAX_KNOWN:
            self._known.clear()
        for words, files in wanted.items():
            if self._everywhere is None:
                found = await self._search(run, words, files)
            elif words in self._all:
                found = self._all[words]
            else:
                found = self._all[words] = await self._search(run, words, self._everywhere)
            self._known |= {(file, words): found is None or file in found for file in files}
        return [one for one in hits if self._has(one, rules[one.hit.rule].keywords)]

    def _has(self, found: FoundText, words: tuple[str, ...]) -> bool:
        return not words or _in_line(found.hit, words) or self._known.get((found.file, words), True)

    async def _search(self, run: Runner, words: Iterable[str], paths: Iterable[StrPath]) -> set[str] | None:
        """Return the files that have one of the words; `None` if they cannot be searched any more."""
        pattern = f"(?iu:{'|'.join(map(re.escape, words))})"
        query = for_scan(
            placed_search("scan()", pattern, self._cwd, paths, self._options, sorts=False, keeps_errors=True)
        )
        step = Step(query, lambda: Collected(LineAnswer(None), self._timeout), self._left())
        try:
            return {line.file for line in (await run.collect(step)).matches}
        except SearchError:
            return None


def _in_line(hit: ScanMatch, words: Iterable[str]) -> bool:
    line = hit.lines.casefold()
    return any(word.casefold() in line for word in words)


_BATCH_LINES = 16384
"""Number of collected lines at which rg searches these lines for each rule."""

_BATCH_BYTES = 8 << 20
"""Length of all collected lines, in characters, at which rg searches these lines for each rule."""

_LONG_PATTERNS = 16 << 10
"""Length of all patterns in characters above which rg reads them from a file, because a command line is limited."""


class Scanning:
    """State of a scan: the runs of rg that are left, and the matched texts that are not yielded yet."""

    def __init__(self, request: ScanRequest, timeout: float | None, directory: str) -> None:
        """Choose the runs of rg."""
        self._request = request
        self._timeout = timeout
        self._deadline = math.inf if timeout is None else time.monotonic() + timeout
        self._directory = directory
        self._left = math.inf if request.limit is None else request.limit
        self._order = {rule.id: number for number, rule in enumerate(request.rules)}
        self._rules = {rule.id: rule for rule in request.rules}
        self.named = tuple(rule for rule in request.rules if rule.finds_names)
        texts_of = (rule for rule in request.rules if not rule.finds_names)
        self.passes = deque(plan_passes(compile_rules(texts_of, request.options), request.options))
        self._search = LineSearch(request, directory, timeout, self.left)
        self._keywords = KeywordSearch(request, timeout, self.left)
        self._lines: list[FoundLine] = []
        self._size = 0
        self._held: list[FoundText] = []  # texts that are held back, because texts of later runs may overlap them
        # By file: texts of the first run, which are held until the second run has searched the same file.
        self._early: dict[str, list[FoundText]] = {}
        self._open: tuple[str, ...] = ()  # file whose lines may continue in the next batch

    @property
    def full(self) -> bool:
        """True if the limit of texts is reached."""
        return self._left <= 0

    def left(self) -> float | None:
        """Return the seconds that are left for the scan; `None` is no limit."""
        if self._timeout is None:
            return None
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise timeout_error(self._timeout)
        return left

    async def check(self, run: Runner) -> None:
        """Check that rules that share a run of rg compile, so that an error does not depend on the searched files."""
        rules = [rule for part in self.passes if not part.alone for rule in part.rules]
        if rules:
            await self._search.check(run, sorted(rules, key=lambda one: self._order[one.rule.id]))

    def begin(self) -> StreamRequest[FoundLine]:
        """Return the request of the next run of rg, which is the first of `passes`."""
        part, request = self.passes[0], self._request
        if part.alone:
            (one,) = part.rules
            options: SearchOptions = {**request.options, "multiline": True} if one.rule.multiline else request.options
            query = capturing_query("scan()", [one.rule.pattern], one.groups, request.cwd, request.paths, options)
            return StreamRequest(for_scan(query), LineAnswer(None))
        patterns, file = part.patterns(), None
        if sum(map(len, patterns)) > _LONG_PATTERNS:
            file = os.path.join(self._directory, "patterns-of-run")
            write_patterns(file, patterns)
        query = placed_search(
            "scan()", patterns, request.cwd, request.paths, widened(request.options), pattern_file=file
        )
        return StreamRequest(for_scan(query), LineAnswer(None))

    def listing(self) -> StreamRequest[str]:
        """Return the request that lists the files, for the rules that find files by name."""
        options = only_options(self._request.options, (*FileOptions.__annotations__, *PLACE_OPTIONS))
        query = placed_files("files()", self._request.cwd, self._request.paths, options)
        return StreamRequest(for_scan(query), ListingAnswer(PathDecoder(), None))

    def names(self, path: str) -> Sequence[ScanMatch]:
        """Return the matches of the rules that find files by name in the path of a file, as `listing()` lists it."""
        name, fields = fields_of(path)
        model = HistoryScanMatch if "blob" in fields else ScanMatch
        known = {**fields, "path": name, "lines": "", "line_number": None, "absolute_offset": 0}
        known["submatches"] = (Submatch(match="", start=0, end=0),)
        hits = (model.model_validate({**known, "rule": rule.id}) for rule in self.named)
        return self._limited([FoundText(path, hit) for hit in hits if self._rules[hit.rule].accepts(hit)])

    def add(self, line: FoundLine) -> bool:
        """Add a line of the current run; return True if `flush()` must be called.

        In a run for a single rule, `flush()` must be called after each line; in other runs, after a batch of lines.
        """
        self._lines.append(line)
        self._size += len(line.match.lines)
        return self.passes[0].alone or len(self._lines) >= _BATCH_LINES or self._size >= _BATCH_BYTES

    async def flush(self, run: Runner) -> Iterable[ScanMatch]:
        """Find the texts that the rules match in the added lines, and return the texts that can be yielded now."""
        lines, self._lines, self._size = self._lines, [], 0
        part = self.passes[0]
        if part.alone:
            (one,) = part.rules
            hits = [hit for line in lines for hit in texts(with_groups(line.match, one.groups), one.rule.id, line)]
        else:
            hits = await self._search.search(run, lines, part.rules) if lines else []
        if hits and any(one.rule.filters for one in part.rules):
            found = hits
            hits = await run.call(lambda: [one for one in found if self._rules[one.hit.rule].accepts(one.hit)])
            hits = await self._keywords.kept(run, hits, self._rules)
        if part.held:
            for hit in hits:
                self._early.setdefault(hit.file, []).append(hit)
            return ()
        return self._found(self._merge(hits))

    async def end(self, run: Runner) -> Iterable[ScanMatch]:
        """End the current run, remove it from `passes`, and return the texts that can be yielded now."""
        found = list(await self.flush(run))
        if not self.passes[0].held:
            found += self._found(self._merge([], ended=True))
        self.passes.popleft()
        if self._held and not self.passes:
            return self._limited(_without_overlaps(self._held, self._order))
        return found

    async def fail(self, run: Runner, error: PatternError) -> None:
        """Split the current run in two if the regex of its rules is too large for rg; otherwise raise an error."""
        part = self.passes[0]
        if error.rule is not None:
            raise error
        if len(part.rules) == 1:
            raise error.about_rule(part.rules[0].rule.id) from None
        if "exceeds size limit" not in error.stderr:
            await self._search.name_rule(run, error, part.rules)
        self.passes.popleft()
        self.passes.extendleft(reversed(part.halves()))

    def _merge(self, hits: list[FoundText], *, ended: bool = False) -> list[FoundText]:
        """Return `hits` and the texts that the first run found in the same files, sorted by file and position.

        rg writes all matches of a file before the next file. So only the last file of `hits` may have further hits; of
        this file, the texts after the last hit are kept for a later call.
        """
        if not (hits or ended) or not (self._early or self._open):
            return hits
        files = dict.fromkeys((*self._open, *(one.file for one in hits), *(self._early if ended else ())))
        self._open = () if ended else (hits[-1].file,)
        merged = list(hits)
        for file in files:
            early = self._early.pop(file, [])
            if file in self._open:
                until = hits[-1].hit.absolute_offset
                self._early[file] = [one for one in early if one.hit.absolute_offset > until]
                early = [one for one in early if one.hit.absolute_offset <= until]
            merged += early
        places = {file: number for number, file in enumerate(files)}

        def position(one: FoundText) -> tuple[int, int, int, int]:
            hit = one.hit
            return places[one.file], hit.absolute_offset, hit.submatches[0].start, self._order[hit.rule]

        return sorted(merged, key=position)

    def _found(self, hits: list[FoundText]) -> Sequence[ScanMatch]:
        """Return the texts to yield now: none if a later run may find overlapping texts; `hits` are then kept."""
        if self._request.overlaps:
            return self._limited(hits)
        if self._held or len(self.passes) > 1:
            self._held += hits
            return ()
        return self._limited(_without_overlaps(hits, self._order))

    def _limited(self, hits: Sequence[FoundText]) -> Sequence[ScanMatch]:
        taken = [one.hit for one in (hits if self._left == math.inf else hits[: int(self._left)])]
        self._left -= len(taken)
        return taken


def _without_overlaps(hits: Iterable[FoundText], order: Mapping[str, int]) -> list[FoundText]:
    """Return the texts that overlap no earlier text. Of texts with the same start, keep the text of the first rule."""
    files: dict[str, list[tuple[int, int, int, FoundText]]] = {}
    for one in hits:
        hit = one.hit
        (submatch,) = hit.submatches
        start = hit.absolute_offset + submatch.start
        end = hit.absolute_offset + submatch.end
        files.setdefault(one.file, []).append((start, order[hit.rule], end, one))
    kept: list[FoundText] = []
    for found in files.values():
        found.sort(key=lambda one: one[:3])
        last = (-1, -1)
        for start, _, end, one in found:
            if start >= last[1] and start != last[0]:
                kept.append(one)
                last = start, end
    return kept
