"""One call of `grep_content`: its arguments, queries and matches, and a second try in other spellings."""

import os
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from ripwrap._ripgrep.command import search_query
from ripwrap._ripgrep.page_collector import MatchCollector, PageRequest, RoundRobinCollector
from ripwrap._ripgrep.pattern_errors import across_line_ends
from ripwrap._ripgrep.protocols import Runner, Step
from ripwrap._ripgrep.query import Mode, Query
from ripwrap._text import plural
from ripwrap.errors import SearchError
from ripwrap.options import SearchOptions
from ripwrap.places.items import Candidates
from ripwrap.results import FileMatches
from ripwrap.workspace.arguments import MAX_QUOTED_CHARS
from ripwrap.workspace.grep_content_models import GrepContentArguments
from ripwrap.workspace.notes import GREP_ESCAPE
from ripwrap.workspace.redact import Redactor
from ripwrap.workspace.results import shown_start
from ripwrap.workspace.scope import FileFilter, PathFilter, ReportProgress, Scope, Settings, pattern_options
from ripwrap.workspace.tool import Memory

if TYPE_CHECKING:
    from ripwrap.workspace.grep_items import ItemSearch


MANY_MATCHES = 50_000
"""Number of matches that are counted; of more, an answer says that there are at least so many."""

IN_ORDER_SECONDS = 2.0
"""Time limit in seconds for the search in the order of paths, for which rg uses one thread."""

SECONDS = 1.0
"""Time limit in seconds for a search in other spellings."""


class RoundRobinMatchCollector(RoundRobinCollector, MatchCollector):
    """Collector that takes the first match of every file, then the second, and so on, and reports progress.

    rg joins matches over several lines into one record if no line is between them, and `count` counts each of them
    (rg-facts 17). A page consists of records, and `hits` has the numbers that `count` has.
    """

    def __init__(
        self,
        page_request: PageRequest,
        allowed: PathFilter | None,
        progress: ReportProgress | None,
        *,
        joined: bool = False,
        enough: tuple[int, int] | None = None,
    ) -> None:
        """Set the page and the filters; `joined` records may have several matches, and `enough` of them end rg."""
        super().__init__(page_request, None if allowed is None else lambda path: allowed(os.fsdecode(path)))
        self._progress = progress
        self._enough = enough
        self._counts_together = not joined
        self._hits = Counter[str]()

    @property
    def hits(self) -> int:
        """Number of matches so far, also of those that rg joins."""
        return self.matches if self._counts_together else self._hits.total()

    def hits_of(self, file: FileMatches) -> int:
        """Return the number of matches in a file, also of those that rg joins."""
        return file.total_matches if self._counts_together else self._hits[file.path]

    def feed(self, chunk: bytes) -> None:
        """Process a chunk of rg's output, and report the number of matches so far."""
        super().feed(chunk)
        if self._enough is not None and not self.ended:
            self.full: bool = self.matches >= self._enough[0] and self.files > self._enough[1]
        if self._progress is not None:
            self._progress(self.matches)

    def _match(self, record: bytes) -> None:
        before = self.matches
        super()._match(record)
        if not self._counts_together and self.matches > before and self._path is not None:
            # In a JSON string, the quotes of this text would have backslashes.
            self._hits[os.fsdecode(self._path)] += max(1, record.count(b'},"start":'))


@dataclass(frozen=True, slots=True)
class ContentCall:
    """One call of `grep_content`."""

    settings: Settings
    arguments: GrepContentArguments
    scope: Scope
    files: FileFilter
    allowed: PathFilter | None
    incomplete: bool
    progress: ReportProgress | None
    memory: Memory
    pcre2: bool = False
    candidates: Candidates | None = None
    items: "ItemSearch | None" = None
    notes: tuple[str, ...] = ()

    @property
    def options(self) -> SearchOptions:
        """Options of rg that follow from the arguments of the call; the options in `scope` are not included."""
        arguments = self.arguments
        options: dict[str, object] = {
            **self.files.options,
            "hidden": arguments.include_hidden,
            "no_ignore": arguments.include_ignored,
            "before_context": max(arguments.context_lines, arguments.before_context),
            "after_context": max(arguments.context_lines, arguments.after_context),
            **pattern_options(arguments),
        }
        if self.pcre2:
            options["pcre2"] = True
        return cast("SearchOptions", options)

    @property
    def named_files(self) -> int:
        """Maximum number of files that the first page names, even if their matches are not shown."""
        return min(max(self.arguments.max_matches, 10), 100)

    def ended_after(self, *, timed_out: bool) -> float | None:
        """Return the time limit in seconds if the search, or the listing before it, was stopped there; else `None`."""
        return self.scope.timeout if timed_out or self.incomplete else None

    def query(self, options: Mapping[str, object], mode: Mode = "json") -> Query:
        """Return the query that searches for the pattern in the files and directories of the call."""
        merged: dict[str, object] = {**self.scope.options}
        if options.get("no_ignore"):
            merged.pop("ignore_file", None)
        merged.update(options)
        location = self.scope.location
        pattern, searched = across_line_ends(self.arguments.pattern, cast("SearchOptions", merged))
        if self.items is not None:
            return self.items.query(pattern, searched, mode)
        return search_query(pattern, location.cwd, location.paths, searched, mode)

    def shown(self, path: str) -> str:
        """Return the path of a file, or the name of an item, as it appears in the answer."""
        return self.scope.location.shown(path) if self.items is None else self.items.shown(path)

    def redactor(self, path: str, check: Callable[[], object]) -> Redactor | None:
        """Return the function that masks secrets in the lines of a file or item; `None` if secrets are shown."""
        if self.items is not None:
            return self.items.redactor(path, check)
        return self.settings.redactor(self.scope.location, path, check)

    def names(self, path: str) -> bool:
        """Return True if an answer may name a file or item."""
        if self.items is not None and self.items.is_item(path):
            return self.items.allows(path)
        return self.scope.location.has(path) and (self.allowed is None or self.allowed(path))

    def first_query(self, options: SearchOptions, mode: Mode = "json") -> Query:
        """Return the query that searches with `options`, in the candidates of the index if there are any."""
        query = self.query(options, mode)
        return query if self.candidates is None else replace(query, place=self.candidates)

    async def first_matches(self, run: Runner, page_request: PageRequest) -> RoundRobinMatchCollector:
        """Search for the matches of a page; count all matches, but not if they are very many.

        With `MANY_MATCHES`, the files of the page are searched in the order of their paths, and rg is ended when they
        are found. If that takes `IN_ORDER_SECONDS`, all matches are counted.
        """
        query, joined = self.first_query(self.options), self.arguments.multiline
        names, location = 0 if page_request.offset else self.named_files, self.scope.location
        files = min(page_request.max_files, max(page_request.end, names))

        def step(query: Query, enough: tuple[int, int] | None, timeout: float | None) -> Step[RoundRobinMatchCollector]:
            known = (page_request, self.allowed, self.progress)
            return Step(query, lambda: RoundRobinMatchCollector(*known, joined=joined, enough=enough), timeout)

        if not query.is_plain or joined or len(location.paths) > 1 or location.is_file:
            return await run.collect(step(query, None, self.scope.timeout))
        found = await run.collect(step(query, (MANY_MATCHES, files), self.scope.timeout))
        if not found.full:
            return found
        left = IN_ORDER_SECONDS if self.scope.timeout is None else min(IN_ORDER_SECONDS, self.scope.timeout)
        found = await run.collect(step(query.with_(sort="path"), (0, files), left))
        if found.timed_out:
            return await run.collect(step(query, None, self.scope.timeout))
        if found.full:
            found.matches, found.files = MANY_MATCHES, files + 1
        return found

    def step(
        self, options: SearchOptions, page_request: PageRequest, timeout: float | None
    ) -> Step[RoundRobinMatchCollector]:
        """Return a run of rg that searches all files with `options`, for example to find out why nothing was found."""
        own = self.options
        same = all(options.get(name) == own.get(name) for name in ("hidden", "no_ignore", "glob", "type"))
        allowed = self.allowed if same else self.scope.allowed
        return Step(
            self.query(options), lambda: RoundRobinMatchCollector(page_request, allowed, self.progress), timeout
        )


_NAME = re.compile(r"(?:\\b)?([A-Za-z][A-Za-z0-9_-]{2,63})(?:\\b)?")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_MAX_WORDS = 8


def other_pattern(pattern: str, *, fixed_strings: bool) -> str | None:
    r"""Return what a pattern such as `getUserName` or `a\|b` may mean in other spellings; `None` if it is clear."""
    if not fixed_strings and GREP_ESCAPE.search(pattern):
        return GREP_ESCAPE.sub(r"\1\2", pattern)
    name = _NAME.fullmatch(pattern)
    words = _WORD.findall(name[1]) if name else []
    if not 0 < len(words) <= _MAX_WORDS or len(words[-1]) < 3:
        return None
    *first, last = (word.lower() for word in words)
    return "(?i)" + "[-_]?".join((*first, _either_number(last)))


def _either_number(word: str) -> str:
    """Return a regular expression for the singular and the plural of a word."""
    if word.endswith("ies") or (word.endswith("y") and word[-2] not in "aeiou"):
        return f"{word.removesuffix('ies').removesuffix('y')}(?:y|ies)"
    return word if word.endswith("ss") or word[-1].isdigit() else f"{word.removesuffix('s')}s?"


async def other_spellings_note(run: Runner, call: ContentCall) -> str:
    """Return a sentence about matches of another pattern, with the pattern; empty if there are none in `SECONDS`."""
    arguments = call.arguments
    pattern = other_pattern(arguments.pattern, fixed_strings=arguments.fixed_strings)
    if pattern is None:
        return ""
    much = await _count(run, call, {"pattern": pattern, "fixed_strings": False, "multiline": False})
    return f"{_quoted(pattern)} has {much}." if much else ""


def with_one_pattern(arguments: GrepContentArguments) -> GrepContentArguments:
    """Return arguments with one regular expression for several patterns, as rg makes it of several `-e`."""
    patterns = arguments.pattern.split("\0")
    if len(patterns) == 1:
        return arguments
    if arguments.fixed_strings:
        patterns = [re.sub(r"([\\.+*?()|\[\]{}^$#&~-])", r"\\\1", one) for one in patterns]
    pattern = "|".join(f"(?:{one})" for one in patterns)
    return arguments.model_copy(update={"pattern": pattern, "fixed_strings": False})


async def counts_of_patterns(run: Runner, call: ContentCall, asked: GrepContentArguments) -> tuple[str, ...]:
    """Return a sentence with the number of matches of each of several patterns; nothing for a single one."""
    patterns = asked.pattern.split("\0")
    said: list[str] = []
    for pattern in patterns if len(patterns) > 1 else ():
        much = await _count(run, call, {"pattern": pattern, "fixed_strings": asked.fixed_strings})
        said.append(_quoted(pattern) + (" was not counted" if much is None else f" has {much or 'no match'}"))
    return (f"{'; '.join(said)}.",) if said else ()


def _quoted(pattern: str) -> str:
    return f'pattern="{shown_start(pattern)[:MAX_QUOTED_CHARS]}"'


async def _count(run: Runner, call: ContentCall, own: Mapping[str, Any]) -> str | None:
    """Return how many matches a call has with other arguments; `None` if rg does not say it in `SECONDS`."""
    other = replace(call, arguments=call.arguments.model_copy(update=own), progress=None, candidates=None)
    options: dict[str, Any] = {**other.options, "before_context": 0, "after_context": 0}
    timeout = SECONDS if call.scope.timeout is None else min(SECONDS, call.scope.timeout)
    try:
        found = await run.collect(other.step(cast("SearchOptions", options), PageRequest(0, 1, 1, 0, 0, None), timeout))
    except SearchError:
        return None
    if not found.matches:
        return None if found.timed_out else ""
    least = "at least " if found.timed_out else ""
    return f"{least}{plural(found.matches, 'match', 'es')} in {plural(found.files, 'file')}"
