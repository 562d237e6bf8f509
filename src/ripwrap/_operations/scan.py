"""Search for many rules at once, and tell which rule matched and what its groups are.

One regex with the groups of 200 rules takes rg 1.7 GB (rg-facts 57), and one without groups may take it 75 s of CPU for
37 MB. So `scan()` first finds the lines that have a literal of any rule, or that a rule without literals matches, and
then searches only these lines for each rule that may match them. That a
rule matches a line depends on the line alone, unless the rule may span lines or names the start or end of the file.
Such a rule, and each rule whose syntax ripwrap does not know, is searched in a run of its own.
"""

import math
import os
import re
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NoReturn, Unpack, cast

from ripwrap._operations.rules import Rule, accepted, check_rules
from ripwrap._operations.search import MatchAnswer, capturing_search, read_groups
from ripwrap._operations.streaming import StreamRequest, run_stream, run_stream_blocking
from ripwrap._overlay import refuse_overlay
from ripwrap._ripgrep.command import NEEDS_CAPTURES, search_command
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.groups import Groups
from ripwrap._ripgrep.literals import AllOf, Required, fold, required_literals
from ripwrap._ripgrep.runner import AsyncRunner, BlockingRunner, Runner, Step, run_blocking
from ripwrap._ripgrep.spool import Spool
from ripwrap._text import raw_bytes
from ripwrap.binary.resolver import Rg
from ripwrap.errors import Hint, HintedText, PatternError
from ripwrap.models import CapturedMatch, Match, ScanMatch
from ripwrap.options import FileOptions, SearchOptions, StrPath, check_limit, check_timeout

_REFUSED = {
    "fixed_strings": "rules are regular expressions; put a backslash before their special characters",
    "invert_match": "a rule names the text that it matches",
    "replace": "the replacements have the groups; use search()",
    "smart_case": "it would depend on all rules together; write (?i) in a rule",
    "multiline": "pass Rule(…, multiline=True) for the rules that may span lines",
    "engine": "pass pcre2=True for PCRE2",
    "max_count": "it would count lines that no rule matches; use limit",
    "stop_on_nonmatch": "lines are searched for several rules",
}
"""Options that cannot be followed, with the reasons."""

_BATCH_LINES = 16384
_BATCH_BYTES = 8 << 20
"""Number and size of the lines that are searched for each rule at a time."""

_NARROWING = ("word_regexp", "line_regexp")
"""Options without which at least the same lines match."""

_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$#&~-]")

_LONG_PATTERNS = 16 << 10
"""Number of characters of patterns from which on they are passed in a file, because of limits of command lines."""

_FILE_OPTIONS = frozenset(FileOptions.__annotations__) - {"threads"}
_FOR_FILES = frozenset(
    {"encoding", "max_count", "context", "before_context", "after_context", "passthru", "stop_on_nonmatch", "binary"}
)
"""Options that the search of single lines leaves out."""


def scan(
    rules: Mapping[str, str] | Iterable[Rule],
    *,
    cwd: StrPath = ".",
    paths: StrPath | Iterable[StrPath] = (),
    overlaps: bool = False,
    limit: int | None = None,
    rg: Rg = None,
    **options: Unpack[SearchOptions],
) -> AsyncGenerator[ScanMatch]:
    r"""Search files for many rules at once and yield each text that a rule matches, with its rule and its groups.

    A rule matches what `search()` finds for its pattern. Where the texts of several rules overlap, the leftmost text is
    yielded, and of those that begin at the same place that of the first rule. `overlaps=True` yields all of them: then
    the answer is that of one search for each rule. Texts come file by file and in the order of the file if all rules
    are searched together; rules that may span lines, name the start or end of the file (`\A`, `\z`), or have white
    space between their parts (`(?x)`) are searched in further runs. With such rules and without `overlaps`, all texts
    are held in memory before the first is yielded.

    ```python
    import asyncio

    import ripwrap

    RULES = {"def": r"def (?P<name>\w+)", "todo": r"(?P<mark>TODO|FIXME)(?:\((?P<who>\w+)\))?: (?P<what>\w+)"}


    async def main():
        async for hit in ripwrap.scan(RULES, cwd="docs/demo", glob="*.py", sort="path"):
            print(hit.path, hit.line_number, hit.rule, hit.named)


    asyncio.run(main())
    ```

    ```text
    shop/cart.py 4 def {'name': 'total'}
    shop/cart.py 5 todo {'mark': 'TODO', 'who': None, 'what': 'taxes'}
    shop/till.py 1 def {'name': 'pay'}
    shop/till.py 1 todo {'mark': 'TODO', 'who': None, 'what': 'cards'}
    ```

    Args:
        rules: Patterns by the names of their rules, or `Rule`s, such as those of `load_rules()`.
        cwd: The directory to search; globs and `paths` are relative to it.
        paths: Files or directories to search, any number of them, as in `search()`; empty is all of `cwd`.
        overlaps: Yield all texts that rules match, also those that overlap.
        limit: Maximum number of texts, over all files.
        rg: The rg to run, version 15 or later: a path, or a bare name to find in PATH; `None` finds one.
        **options: rg's flags for all rules; see `SearchOptions`. With `pcre2`, each rule is searched in a run of its
            own.

    Raises:
        pydantic.ValidationError: An option is unknown or ill-typed.
        ValueError: There is no rule, two have the same name, `limit` is negative, or an option cannot be followed.
        PatternError: A rule does not compile; the message names it, and `PatternError.rule` is its name.
        CapabilityError: rg is older than version 15, which is the first that can report groups.
        FileNotFoundError, NotADirectoryError, BinaryNotFoundError, GlobError, UnknownTypeError, SearchError,
            DecodeError: See `search()`.

    The call raises the first two, the first iteration the others.
    """
    return run_scan(scan_request(rules, cwd, paths, limit, options, overlaps=overlaps), rg)


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """A checked call of `scan()`.

    Attributes:
        rules: Rules, in order.
        cwd: Directory to search.
        paths: Files or directories to search; empty is all of `cwd`.
        overlaps: Argument of `scan()`.
        limit: Argument of `scan()`.
        options: Options.
    """

    rules: tuple[Rule, ...]
    cwd: str
    paths: tuple[StrPath, ...]
    overlaps: bool
    limit: int | None
    options: SearchOptions


def scan_request(
    rules: Mapping[str, str] | Iterable[Rule],
    cwd: StrPath,
    paths: StrPath | Iterable[StrPath],
    limit: int | None,
    options: SearchOptions,
    *,
    overlaps: bool,
) -> ScanRequest:
    """Return the checked request of `scan()`; raise what its call raises."""
    refuse_overlay("scan()")
    known = check_rules(rules)
    for name, reason in _REFUSED.items():
        if cast("Mapping[str, Any]", options).get(name) not in (None, False):
            raise ValueError(HintedText(Hint(name, kind="omit"), f" does not apply to a scan: {reason}"))
    several = (paths,) if isinstance(paths, (str, os.PathLike)) else tuple(paths)
    command = search_command([rule.pattern for rule in known], cwd, several, options)
    return ScanRequest(known, command.cwd, several, overlaps, check_limit(limit), options)


async def run_scan(request: ScanRequest, rg: Rg) -> AsyncGenerator[ScanMatch]:
    """Search, and yield what rules match."""
    run, scanning = AsyncRunner(rg), Scanning(request, None)
    with Spool() as spool:
        await scanning.check(run, spool.path)
        while scanning.passes and not scanning.full:
            try:
                async with aclosing(run_stream(scanning.begin(spool.path), rg)) as matches:
                    async for match in matches:
                        for hit in await scanning.add(run, match):
                            yield hit
                        if scanning.full:
                            return
            except PatternError as error:
                await scanning.fail(run, error)
                continue
            for hit in await scanning.end(run):
                yield hit


def run_scan_blocking(request: ScanRequest, rg: Rg, timeout: float | None) -> Generator[ScanMatch]:
    """Search, and yield what rules match, blocking.

    Raises:
        ValueError, TypeError: `timeout` is not a number of seconds. The call raises it, not the first iteration.
    """
    return _scan_blocking(request, rg, check_timeout(timeout))


def _scan_blocking(request: ScanRequest, rg: Rg, timeout: float | None) -> Generator[ScanMatch]:
    run, scanning = BlockingRunner(rg, timeout=timeout), Scanning(request, timeout)
    with Spool() as spool:
        run_blocking(scanning.check(run, spool.path))
        while scanning.passes and not scanning.full:
            try:
                part = scanning.begin(spool.path)
                with closing(run_stream_blocking(part, rg, scanning.left())) as matches:
                    for match in matches:
                        yield from run_blocking(scanning.add(run, match))
                        if scanning.full:
                            return
            except PatternError as error:
                run_blocking(scanning.fail(run, error))
                continue
            yield from run_blocking(scanning.end(run))


@dataclass(frozen=True, slots=True)
class _Compiled:
    """Rule, with its groups.

    Attributes:
        rule: Rule.
        groups: Groups of its pattern; `None` if their syntax is unknown.
        literals: Literals of which each line with a match has some; `None` if there are none.
    """

    rule: Rule
    groups: Groups | None
    literals: Required | None


class Scanning:
    """State of a scan: runs that are to come, and lines and texts that were found.

    Attributes:
        passes: Rules that are still to be searched, each group of them in one run.
        full: True if the limit is reached.
    """

    def __init__(self, request: ScanRequest, timeout: float | None) -> None:
        """Choose the runs.

        Args:
            request: Call.
            timeout: Seconds for everything; `None` is no limit.
        """
        self._request = request
        self._timeout = timeout
        self._deadline = math.inf if timeout is None else time.monotonic() + timeout
        self._left = math.inf if request.limit is None else request.limit
        self._order = {rule.id: number for number, rule in enumerate(request.rules)}
        self._rules = {rule.id: rule for rule in request.rules}
        self._compiled = {rule.id: _compile(rule, request.options) for rule in request.rules}
        together = [rule for rule in request.rules if self._joins(rule)]
        alone = [(rule,) for rule in request.rules if not self._joins(rule)]
        self.passes: deque[tuple[Rule, ...]] = deque([*([tuple(together)] if together else []), *alone])
        self._lines: list[Match] = []
        self._size = 0
        self._held: list[ScanMatch] = []
        self._path = ""

    @property
    def full(self) -> bool:
        """True if the limit is reached."""
        return self._left <= 0

    def left(self) -> float | None:
        """Return the seconds that are left; `None` without a limit.

        Raises:
            TimeoutError: No time is left.
        """
        if self._timeout is None:
            return None
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"the scan took more than timeout={self._timeout} seconds; narrow it, or allow more")
        return left

    def begin(self, directory: str) -> StreamRequest[Match]:
        """Return the request of the next run; `directory` is for temporary files."""
        self._path = os.path.join(directory, "lines")
        rules, request = self.passes[0], self._request
        if not self._joins(rules[0]):
            (rule,) = rules
            options: SearchOptions = {**request.options, "multiline": True} if rule.multiline else request.options
            command, answer = capturing_search([rule.pattern], request.cwd, request.paths, None, options)
            return StreamRequest(command, answer)
        patterns = self._first_patterns(rules)
        file = None
        if sum(map(len, patterns)) > _LONG_PATTERNS:
            file = os.path.join(directory, "patterns")
            with open(file, "w", encoding="utf-8", newline="\n") as written:
                written.writelines(f"{pattern}\n" for pattern in patterns)
        given = cast("Mapping[str, Any]", request.options)
        options = cast("SearchOptions", {key: value for key, value in given.items() if key not in _NARROWING})
        command = search_command(patterns, request.cwd, request.paths, options, pattern_file=file)
        command = replace(command, needs=(*command.needs, NEEDS_CAPTURES))
        return StreamRequest(command, partial(MatchAnswer, None))

    def _first_patterns(self, rules: Sequence[Rule]) -> list[str]:
        """Return patterns that match at least the lines that the rules match."""
        words: dict[str, None] = {}
        patterns: list[str] = []
        for rule in rules:
            compiled = self._compiled[rule.id]
            if compiled.literals is None:
                patterns.append(_joined(compiled))
            else:
                words |= dict.fromkeys(word.decode() for word in _rarest(compiled.literals))
        if words:
            patterns.append(f"(?iu:{'|'.join(_SPECIAL.sub(_escaped, word) for word in words)})")
        return patterns

    async def check(self, run: Runner, directory: str) -> None:
        """Check that all rules of the first run compile, even if no line has their literals.

        Raises:
            PatternError: A rule does not compile.
        """
        path = os.path.join(directory, "lines")
        await run.call(partial(_write, path, b""))
        parts = deque([self.passes[0]] if self._joins(self.passes[0][0]) else [])
        while parts:
            rules = parts.popleft()
            file = os.path.join(directory, "patterns")
            await run.call(
                partial(_write, file, "".join(f"{_joined(self._compiled[one.id])}\n" for one in rules).encode())
            )
            command = search_command(["a"], directory, path, self._line_options(), pattern_file=file)
            command = replace(command, needs=(*command.needs, NEEDS_CAPTURES))
            try:
                await run.collect(Step(command, lambda: _LineCollector(MatchAnswer(None), self._timeout), self.left()))
            except PatternError as error:
                if "exceeds size limit" in error.stderr and len(rules) > 1:
                    parts.extendleft((rules[len(rules) // 2 :], rules[: len(rules) // 2]))
                else:
                    await self._name_rule(run, error, rules, path)

    async def add(self, run: Runner, match: Match) -> Iterable[ScanMatch]:
        """Add a match of the run; return the texts that are known now."""
        rules = self.passes[0]
        if isinstance(match, CapturedMatch):
            return await self._found(run, list(_texts(match, rules[0].id)))
        self._lines.append(match)
        self._size += len(match.lines)
        if len(self._lines) >= _BATCH_LINES or self._size >= _BATCH_BYTES:
            return await self._found(run, await self._search_lines(run))
        return ()

    async def end(self, run: Runner) -> Iterable[ScanMatch]:
        """End a run; return the texts that are known now."""
        found = await self._found(run, await self._search_lines(run))
        self.passes.popleft()
        if self._held and not self.passes:
            return self._limited(_without_overlaps(self._held, self._order))
        return found

    async def fail(self, run: Runner, error: PatternError) -> None:
        """Split the rules of a run whose regex is too large, or raise an error that names the rule.

        Raises:
            PatternError: A rule does not compile.
        """
        rules = self.passes[0]
        if error.rule is not None:
            raise error
        if len(rules) == 1:
            raise error.about_rule(rules[0].id) from None
        if "exceeds size limit" in error.stderr:
            self.passes.popleft()
            half = len(rules) // 2
            self.passes.extendleft((rules[half:], rules[:half]))
            return
        await run.call(partial(_write, self._path, b""))
        await self._name_rule(run, error, rules, self._path)

    async def _name_rule(self, run: Runner, error: PatternError, rules: Sequence[Rule], path: str) -> NoReturn:
        """Raise the error of the first rule that does not compile; `path` is an empty file."""
        for rule in rules:
            try:
                await run.collect(self._step(self._compiled[rule.id], path))
            except PatternError as own:
                raise own.about_rule(rule.id) from None
        raise error

    async def _found(self, run: Runner, hits: list[ScanMatch]) -> Iterable[ScanMatch]:
        """Return the texts that count; hold them until the end if others may overlap them."""
        if hits and any(rule.filters for rule in self.passes[0]):
            hits = await run.call(lambda: list(accepted(hits, self._rules, self._request.cwd)))
        if self._request.overlaps:
            return self._limited(hits)
        if self._held or len(self.passes) > 1:
            self._held += hits
            return ()
        return self._limited(_without_overlaps(hits, self._order))

    def _limited(self, hits: Sequence[ScanMatch]) -> Sequence[ScanMatch]:
        if self._left == math.inf:
            return hits
        hits = hits[: int(self._left)]
        self._left -= len(hits)
        return hits

    async def _search_lines(self, run: Runner) -> list[ScanMatch]:
        """Search the lines that were found for each rule that may match them."""
        lines, self._lines, self._size = self._lines, [], 0
        if not lines:
            return []
        # The first line is empty, so that rg sees no byte order mark.
        end = b"\0" if self._request.options.get("null_data") else b"\n"
        raw = [raw_bytes(line.lines) for line in lines]
        texts = [line if line.endswith(end) else line + end for line in raw]
        content = end + b"".join(texts)
        folded = fold(content)
        await run.call(partial(_write, self._path, content))
        starts: dict[int, int] = {}
        at = len(end)
        for number, text in enumerate(texts):
            starts[at] = number
            at += len(text)
        hits: list[tuple[int, int, int, ScanMatch]] = []
        for order, rule in enumerate(self.passes[0]):
            compiled = self._compiled[rule.id]
            if compiled.literals is not None and not _has(folded, compiled.literals):
                continue
            try:
                found = await run.collect(self._step(compiled, self._path))
            except PatternError as error:
                raise error.about_rule(rule.id) from None
            for match in found.matches:
                if not match.absolute_offset:  # the line that was added
                    continue
                number = starts[match.absolute_offset]
                for hit in _texts(match, rule.id, lines[number]):
                    (submatch,) = hit.submatches
                    # At the end of a file without a newline rg finds no empty text. There is a newline here.
                    if submatch.start < len(raw[number]) or texts[number] is raw[number]:
                        hits.append((number, submatch.start, order, hit))
        hits.sort(key=lambda one: one[:3])
        return [hit for *_, hit in hits]

    def _step(self, compiled: _Compiled, path: str) -> Step["_LineCollector"]:
        """Return the search for a rule in a file of lines."""
        command, answer = capturing_search(
            [compiled.rule.pattern], os.path.dirname(path), path, None, self._line_options()
        )
        return Step(command, lambda: _LineCollector(answer(), self._timeout), self.left())

    def _line_options(self) -> SearchOptions:
        """Return the options of a search in a file of lines."""
        given = cast("Mapping[str, Any]", self._request.options)
        kept = {name: value for name, value in given.items() if name not in _FILE_OPTIONS | _FOR_FILES}
        return cast("SearchOptions", {**kept, "text": True, "encoding": "none", "no_ignore": True})

    def _joins(self, rule: Rule) -> bool:
        groups = self._compiled[rule.id].groups
        return groups is not None and groups.joined is not None and not rule.multiline


class _LineCollector:
    """Collector of the matches of a rule.

    Attributes:
        matches: Matches.
    """

    def __init__(self, answer: MatchAnswer, timeout: float | None) -> None:
        self.matches: list[CapturedMatch] = []
        self._answer = answer
        self._timeout = timeout
        self.ended = False

    def feed(self, chunk: bytes) -> None:
        self.matches += cast("Iterator[CapturedMatch]", self._answer.feed(chunk))
        self.ended = self._answer.ended

    def end_run(self, end: Exit) -> None:
        self.matches += cast("Iterator[CapturedMatch]", self._answer.end_run(end))

    def finish(self, end: Exit, *, timed_out: bool) -> None:  # noqa: ARG002 - `end_run` has checked it
        if timed_out:
            raise TimeoutError(f"the scan took more than timeout={self._timeout} seconds; narrow it, or allow more")


def _compile(rule: Rule, options: SearchOptions) -> _Compiled:
    used: SearchOptions = {**options, "multiline": True} if rule.multiline else options
    return _Compiled(rule, read_groups([rule.pattern], used), required_literals([rule.pattern], used))


def _joined(compiled: _Compiled) -> str:
    return (compiled.groups.joined if compiled.groups is not None else None) or ""


def _rarest(required: Required) -> list[bytes]:
    """Return literals of which each match has at least one: of alternatives all, of several parts the longest."""
    if isinstance(required, bytes):
        return [required]
    parts = [_rarest(part) for part in required.parts]
    if isinstance(required, AllOf):
        return max(parts, key=lambda part: min(map(len, part)))
    return [word for part in parts for word in part]


def _escaped(found: "re.Match[str]") -> str:
    return f"\\{found[0]}"


def _write(path: str, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)


def _has(text: bytes, required: Required) -> bool:
    """Return whether a folded text has the literals."""
    if isinstance(required, bytes):
        return required in text
    combine: Callable[[Iterable[bool]], bool] = all if isinstance(required, AllOf) else any
    return combine(_has(text, part) for part in required.parts)


def _texts(match: CapturedMatch, rule: str, line: Match | None = None) -> Iterator[ScanMatch]:
    """Yield each submatch of a match as a text of a rule; `line` is the line of the file."""
    place = dict(match if line is None else line)
    for submatch, captures in zip(match.submatches, match.captures, strict=True):
        known: dict[str, Any] = {**place, "submatches": (submatch,), "captures": (captures,), "rule": rule}
        yield ScanMatch.model_construct(**known)


def _without_overlaps(hits: Iterable[ScanMatch], order: Mapping[str, int]) -> list[ScanMatch]:
    """Return the texts without those that overlap an earlier one, or one of an earlier rule at the same place."""
    files: dict[str | None, list[tuple[int, int, int, ScanMatch]]] = {}
    for hit in hits:
        (submatch,) = hit.submatches
        start = hit.absolute_offset + submatch.start
        end = hit.absolute_offset + submatch.end
        files.setdefault(hit.path, []).append((start, order[hit.rule], end, hit))
    kept: list[ScanMatch] = []
    for found in files.values():
        found.sort(key=lambda one: one[:3])
        last = (-1, -1)
        for start, _, end, hit in found:
            if start >= last[1] and start != last[0]:
                kept.append(hit)
                last = start, end
    return kept
