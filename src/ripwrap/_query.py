"""One call of `grep_content` as commands for rg, and what tells which of the files that rg names may be shown."""

# pyright: reportTypedDictNotRequiredAccess=false
# A tool's arguments are all there (`_arguments.understood`); only a caller may leave some out.

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, cast

from ripwrap._arguments import GrepContentOptions
from ripwrap._grep import Found
from ripwrap._rg.argv import Command, Mode, files_command, search_command
from ripwrap._rg.collect import Plan, Step
from ripwrap._rg.decoder import PathDecoder
from ripwrap._rg.fair import FairSifter
from ripwrap._rg.gather import Gathered
from ripwrap._rg.sifter import Window
from ripwrap._scope import Scope, Settings, Wanted, visible
from ripwrap.options import SearchOptions

Progress: TypeAlias = Callable[[int], None]
Allowed: TypeAlias = Callable[[str], bool]

EVERYTHING = 2**62
"""How much is wanted where all is."""


class FairFound(FairSifter, Found):
    """What one search found, in turn from every file."""

    def __init__(self, window: Window, allowed: Allowed | None, progress: Progress | None) -> None:
        super().__init__(window, None if allowed is None else lambda path: allowed(os.fsdecode(path)))
        self._progress = progress

    def feed(self, chunk: bytes) -> None:
        super().feed(chunk)
        if self._progress is not None:
            self._progress(self.matches)


@dataclass(frozen=True, slots=True)
class Query:
    """One call of the tool.

    Attributes:
        cut: Whether what is `allowed` is not all of it, because the time was over.
    """

    settings: Settings
    pattern: str
    arguments: GrepContentOptions
    scope: Scope
    files: Wanted
    allowed: Allowed | None
    cut: bool
    progress: Progress | None

    @property
    def options(self) -> SearchOptions:
        """What was asked for, without what the place brings with it."""
        options: dict[str, object] = dict(self.files.options)
        options["hidden"] = self.arguments["include_hidden"]
        options["no_ignore"] = self.arguments["include_ignored"]
        # In a file of Windows' a line ends in CRLF, and `$` would never match.
        if "$" in self.pattern and "\r" not in self.pattern and "\\r" not in self.pattern:
            options["crlf"] = not self.arguments["fixed_strings"]
        named = {"case_insensitive": "ignore_case", "fixed_strings": "fixed_strings", "multiline": "multiline"}
        options |= {name: True for given, name in named.items() if self.arguments.get(given)}
        if self.arguments["multiline"]:
            options["multiline_dotall"] = True  # as the tools that models know do
        around = self.arguments["context_lines"]
        options["before_context"] = max(around, self.arguments["before_context"])
        options["after_context"] = max(around, self.arguments["after_context"])
        return cast("SearchOptions", options)

    def command(self, options: Mapping[str, object], mode: Mode = "json") -> Command:
        """The search with other options, where the tool was pointed at."""
        placed = {**self.scope.options, **options}
        if options.get("no_ignore"):
            placed.pop("ignore_file", None)
        return search_command(
            self.pattern, self.scope.place.cwd, self.scope.place.paths, cast("SearchOptions", placed), mode
        )

    def step(self, options: SearchOptions, window: Window, timeout: float | None) -> Step[FairFound]:
        """The search with other options, for matches."""
        own = self.options
        same = all(options.get(name) == own.get(name) for name in ("hidden", "no_ignore", "glob", "type"))
        allowed = self.allowed if same else self.scope.allowed
        return Step(self.command(options), partial(FairFound, window, allowed, self.progress), timeout)


def allowed_of(found: Scope, files: Wanted) -> Plan[tuple[Allowed | None, bool]]:
    """What tells whether a path that rg names is to be shown, and whether there was no time to find out for all."""
    if not files.overrides:
        return found.allowed, False
    command = files_command(found.place.cwd, found.place.paths, visible(found, files))
    listing: Gathered[str] = yield Step(
        command, lambda: Gathered(PathDecoder(), EVERYTHING, allowed=found.allowed), found.timeout
    )
    return frozenset(listing.every()).__contains__, listing.timed_out
