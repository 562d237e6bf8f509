"""One call of `grep_content`: its arguments, and the queries and steps of rg that follow from them; no I/O."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, cast

from ripwrap._ripgrep.command import search_query
from ripwrap._ripgrep.line_ends import across_line_ends
from ripwrap._ripgrep.page_collector import PageRequest
from ripwrap._ripgrep.protocols import Step
from ripwrap._ripgrep.query import Mode, Query
from ripwrap.options import SearchOptions
from ripwrap.places.candidates import Candidates
from ripwrap.workspace.collector import RoundRobinMatchCollector
from ripwrap.workspace.grep_content_tool import GrepContentArguments
from ripwrap.workspace.memory import Memory
from ripwrap.workspace.redact import Redactor
from ripwrap.workspace.scope import FileFilter, PathFilter, ReportProgress, Scope, Settings, pattern_options

if TYPE_CHECKING:
    from ripwrap.workspace.grep_items import ItemSearch


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

    def ended_after(self, *, timed_out: bool) -> float | None:
        """Return the time limit in seconds if the search, or the listing before it, was stopped at that limit.

        Otherwise, return `None`.
        """
        return self.scope.timeout if timed_out or self.incomplete else None

    def query(self, options: Mapping[str, object], mode: Mode = "json") -> Query:
        """Return the query that searches for the pattern in the files and directories of the call.

        The query has the options of `scope`, e.g. about links and ignore files, and the given `options`, which take
        precedence.
        """
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

    def first_step(self, page_request: PageRequest) -> Step[RoundRobinMatchCollector]:
        """Return the step that searches for the matches, with the options of the call."""
        query = self.first_query(self.options)
        known = (page_request, self.allowed, self.progress)
        joined = self.arguments.multiline
        return Step(query, partial(RoundRobinMatchCollector, *known, joined=joined), self.scope.timeout)

    def step(
        self, options: SearchOptions, page_request: PageRequest, timeout: float | None
    ) -> Step[RoundRobinMatchCollector]:
        """Return a run of rg that searches all files with `options`, for example to find out why nothing was found."""
        own = self.options
        same = all(options.get(name) == own.get(name) for name in ("hidden", "no_ignore", "glob", "type"))
        allowed = self.allowed if same else self.scope.allowed
        return Step(
            self.query(options), partial(RoundRobinMatchCollector, page_request, allowed, self.progress), timeout
        )
