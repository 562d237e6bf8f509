"""What the two workspaces share: their settings, each tool's plan, and what is said where a tool cannot do it."""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from ripwrap._arguments import (
    CodebaseSearchOptions,
    FindFilesOptions,
    GrepContentOptions,
    LsOptions,
    TreeOptions,
    tool_name,
)
from ripwrap._codebase import codebase_plan
from ripwrap._content import content_plan
from ripwrap._listing import find_plan, ls_plan, tree_plan
from ripwrap._query import Progress
from ripwrap._rg.collect import Plan, Step
from ripwrap._scope import Settings
from ripwrap.answers import ToolResult
from ripwrap.binary.resolver import how_to_install
from ripwrap.errors import BinaryError, BinaryNotFoundError, DownloadFailedError, RipwrapError, SearchError
from ripwrap.options import StrPath

if TYPE_CHECKING:
    from ripwrap._indexes import Indexes

NAMES = ("grep_content", "find_files", "ls", "tree", "codebase_search")
INDEX_NAMES = ("index_codebase", "index_status", "index_health_check")
"""Those of a workspace that has an index."""

TIMEOUT = 10.0
MAX_CHARS = 20_000
MAX_LINE = 500

_LEAST_CHARS = 1000
_LEAST_LINE = 40
_AGAIN = 60.0  # Seconds after which an rg that could not be downloaded is asked for again.
_LOGGER = logging.getLogger("ripwrap")

MISTAKES = (RipwrapError, ValueError, OSError)
"""What a tool tells instead of raising it."""


@dataclass(slots=True)
class _Absence:
    """That there is no rg, which is logged once; and that downloading failed, which is not tried at every call."""

    error: BinaryError | None = None
    until: float = 0.0

    def note(self, error: BinaryError) -> None:
        if self.error is None:
            _LOGGER.warning("%s", without_rg(error))
        self.error = error
        if isinstance(error, DownloadFailedError) and time.monotonic() >= self.until:
            self.until = time.monotonic() + _AGAIN

    def current(self) -> BinaryError | None:
        return self.error if self.error is not None and time.monotonic() < self.until else None


class Tools:
    """The plans of the tools, within some roots."""

    def __init__(self, settings: Settings, index: bool | StrPath) -> None:
        """Take note of what they may do.

        Args:
            settings: Where and how they look.
            index: Whether there is an index, or where it is.
        """
        if settings.max_chars < _LEAST_CHARS:
            raise ValueError(f"max_chars should be {_LEAST_CHARS} or more, not {settings.max_chars}: less says nothing")
        if settings.max_line < _LEAST_LINE:
            raise ValueError(f"max_line should be {_LEAST_LINE} or more, not {settings.max_line}: less says nothing")
        self.settings = settings
        self._has_index = index is not False
        self.names = (*NAMES, *INDEX_NAMES) if self._has_index else NAMES
        self._location = None if isinstance(index, bool) else index
        self._made: Indexes | None = None
        self._absence = _Absence()

    def named(self, name: str) -> str:
        """The tool that a name means.

        Raises:
            ValueError: None of them.
        """
        if name in INDEX_NAMES and not self._has_index:
            raise ValueError(f"{name} needs an index, and this workspace was made without: pass index=True")
        return tool_name(name, self.names)

    def plan(self, name: str, arguments: Mapping[str, Any], progress: Progress | None = None) -> Plan[ToolResult]:
        """What a tool does; `arguments` are all that it takes, checked."""
        return self._with_absence(self._plan(name, dict(arguments), progress))

    def _plan(self, name: str, arguments: dict[str, Any], progress: Progress | None) -> Plan[ToolResult]:
        if name in INDEX_NAMES:
            return self._made_indexes().plan(name, progress)
        path: str = arguments.pop("path")
        if name == "codebase_search":
            query: str = arguments.pop("query")
            indexes = self._made_indexes() if self._has_index else None
            return codebase_plan(self.settings, query, path, cast("CodebaseSearchOptions", arguments), indexes)
        if name == "grep_content":
            pattern: str = arguments.pop("pattern")
            return content_plan(self.settings, pattern, path, cast("GrepContentOptions", arguments), progress)
        if name == "find_files":
            glob: str = arguments.pop("pattern")
            return find_plan(self.settings, glob, path, cast("FindFilesOptions", arguments), progress)
        if name == "ls":
            return ls_plan(self.settings, path, cast("LsOptions", arguments), progress)
        return tree_plan(self.settings, path, cast("TreeOptions", arguments), progress)

    def _made_indexes(self) -> "Indexes":
        if self._made is None:
            from ripwrap._indexes import Indexes  # SQLite, only now

            self._made = Indexes(self.settings, self._location)
        return self._made

    def _with_absence(self, plan: Plan[ToolResult]) -> Plan[ToolResult]:
        """The plan, told at once where rg was missing a moment ago."""
        error: RipwrapError | TimeoutError
        try:
            step = next(plan)
            while True:
                absent = self._absence.current()
                if absent is not None and isinstance(step, Step):
                    step = plan.throw(type(absent)(str(absent)))
                    continue
                try:
                    done = yield step
                except BinaryError as error:
                    self._absence.note(error)
                    step = plan.throw(error)
                except (RipwrapError, TimeoutError) as error:
                    step = plan.throw(error)
                else:
                    if isinstance(step, Step):
                        self._absence.error = None
                    step = plan.send(done)
        except StopIteration as end:
            result: ToolResult = end.value
            return result
        finally:
            plan.close()

    def text(self, result: ToolResult) -> str:
        """The text of an answer, never longer than the budget."""
        return self._cut(str(result))

    def complaint(self, error: Exception) -> str:
        """What a tool says of what it cannot do, and what to do next."""
        said = (
            without_rg(error)
            if isinstance(error, BinaryError)
            else "\n".join((_words(error), *getattr(error, "__notes__", ())))
        )
        return self._cut(f"Error: {said}")

    def _cut(self, text: str) -> str:
        most = self.settings.max_chars
        return text if len(text) <= most else text[: most - 1] + "…"


def without_rg(error: BinaryError) -> str:
    """What there is to be done where no rg can be used, on this platform."""
    ways = f"Install it, for instance:\n{how_to_install()}\nThen try again."
    if type(error) is BinaryError:  # about one that was named, or that does not run
        return f"{error}\n{ways}"
    reason = "" if isinstance(error, BinaryNotFoundError) else f" ({str(error).splitlines()[0].rstrip(':;')})"
    return f"ripgrep (rg) was not found{reason}. {ways}"


def _words(error: Exception) -> str:
    text = str(error)
    hint = error.hint if isinstance(error, SearchError) else ""
    return text.removesuffix(hint) + _in_words(hint)


def _in_words(hint: str) -> str:
    """A hint that names options, in the words of the tools."""
    return hint.replace("file_types() lists the types that this rg knows; glob= takes", "file_pattern takes").replace(
        "Pass pcre2=True, on an rg that has PCRE2.", "This rg has no PCRE2, which could do it; search for less."
    )
