"""The blocking twin of `Workspace`, which is `ripwrap.sync.Workspace`; a test holds the two to the same signatures."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal, Unpack, cast

from ripwrap import workspace
from ripwrap._arguments import (
    CodebaseSearchOptions,
    FindFilesOptions,
    GrepContentOptions,
    LsOptions,
    TreeOptions,
    own,
    understood,
)
from ripwrap._query import Progress
from ripwrap._rg.collect import carry_out_blocking
from ripwrap._sandbox import Sandbox
from ripwrap._scope import Settings
from ripwrap._tools import MAX_CHARS, MAX_LINE, MISTAKES, TIMEOUT, Tools
from ripwrap.answers import (
    CodebaseSearchResult,
    FindFilesResult,
    GrepContentResult,
    IndexCodebaseResult,
    IndexHealthResult,
    IndexStatusResult,
    ListResult,
    ToolResult,
)
from ripwrap.binary.resolver import Rg
from ripwrap.options import StrPath, check_timeout


class Workspace:
    """As `ripwrap.Workspace`, blocking: for frameworks and code that do not await."""

    def __init__(
        self,
        *roots: StrPath,
        follow: bool = False,
        outer_ignore: bool = False,
        guard: bool = True,
        timeout: float | None = TIMEOUT,
        max_chars: int = MAX_CHARS,
        max_line: int = MAX_LINE,
        rg: Rg = None,
        index: bool | StrPath = False,
    ) -> None:
        settings = Settings(Sandbox(roots), follow, outer_ignore, guard, check_timeout(timeout), max_chars, max_line)
        self._tools = Tools(settings, index)
        self._rg = rg

    @property
    def roots(self) -> tuple[str, ...]:
        """The real paths of the directories."""
        return self._tools.settings.sandbox.roots

    @property
    def tools(self) -> tuple[Callable[..., str], ...]:
        """The tools, to be handed to a framework."""
        return tuple(getattr(self, name) for name in self._tools.names)

    def grep_content(
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
    ) -> str:
        return self.call("grep_content", own(locals()))

    def grep_content_result(
        self, pattern: str, path: str = ".", **options: Unpack[GrepContentOptions]
    ) -> GrepContentResult:
        return cast(
            "GrepContentResult", self.call_result("grep_content", {"pattern": pattern, "path": path, **options})
        )

    def find_files(
        self,
        pattern: str = "*",
        path: str = ".",
        *,
        sort: Literal["path", "newest"] = "path",
        limit: int = 100,
        offset: int = 0,
        include_hidden: bool = False,
        include_ignored: bool = False,
    ) -> str:
        return self.call("find_files", own(locals()))

    def find_files_result(
        self, pattern: str = "*", path: str = ".", **options: Unpack[FindFilesOptions]
    ) -> FindFilesResult:
        return cast("FindFilesResult", self.call_result("find_files", {"pattern": pattern, "path": path, **options}))

    def ls(
        self,
        path: str = ".",
        *,
        ignore: list[str] = [],  # noqa: B006 - never changed, and the only default for a list that a schema takes
        limit: int = 1000,
        max_depth: int = 0,
        include_hidden: bool = False,
        include_ignored: bool = False,
    ) -> str:
        return self.call("ls", own(locals()))

    def ls_result(self, path: str = ".", **options: Unpack[LsOptions]) -> ListResult:
        return cast("ListResult", self.call_result("ls", {"path": path, **options}))

    def tree(
        self, path: str = ".", *, limit: int = 50, include_hidden: bool = False, include_ignored: bool = False
    ) -> str:
        return self.call("tree", own(locals()))

    def tree_result(self, path: str = ".", **options: Unpack[TreeOptions]) -> ListResult:
        return cast("ListResult", self.call_result("tree", {"path": path, **options}))

    def codebase_search(self, query: str, path: str = ".", *, limit: int = 10) -> str:
        return self.call("codebase_search", own(locals()))

    def codebase_search_result(
        self, query: str, path: str = ".", **options: Unpack[CodebaseSearchOptions]
    ) -> CodebaseSearchResult:
        given = {"query": query, "path": path, **options}
        return cast("CodebaseSearchResult", self.call_result("codebase_search", given))

    def index_codebase(self) -> str:
        return self.call("index_codebase")

    def index_codebase_result(self) -> IndexCodebaseResult:
        return cast("IndexCodebaseResult", self.call_result("index_codebase"))

    def index_status(self) -> str:
        return self.call("index_status")

    def index_status_result(self) -> IndexStatusResult:
        return cast("IndexStatusResult", self.call_result("index_status"))

    def index_health_check(self) -> str:
        return self.call("index_health_check")

    def index_health_check_result(self) -> IndexHealthResult:
        return cast("IndexHealthResult", self.call_result("index_health_check"))

    def call(self, name: str, arguments: Mapping[str, Any] | str = "{}") -> str:
        try:
            return self._tools.text(self.call_result(name, arguments))
        except MISTAKES as error:
            return self._tools.complaint(error)

    def call_result(
        self, name: str, arguments: Mapping[str, Any] | str = "{}", *, progress: Progress | None = None
    ) -> ToolResult:
        tool = self._tools.named(name)
        plan = self._tools.plan(tool, understood(getattr(workspace.Workspace, tool), arguments), progress)
        return carry_out_blocking(plan, self._rg)

    def text(self, result: ToolResult) -> str:
        return self._tools.text(result)

    def complaint(self, error: Exception) -> str:
        return self._tools.complaint(error)


def _documented() -> None:
    """Give the methods the docstrings of their twins, of which frameworks make descriptions."""
    for name, method in inspect.getmembers(Workspace, inspect.isfunction):
        method.__doc__ = method.__doc__ or getattr(workspace.Workspace, name).__doc__


_documented()
