"""Agent tools over a set of directories: plain typed methods that any framework takes as they are.

    workspace = ripwrap.Workspace("src")
    agent = Agent(model, tools=workspace.tools)

Frameworks make a tool's schema of its signature and docstring, and each reads only some of what Python allows
(docs/how-to/agents.md). So that all get it right, the methods that answer with a text have plain types, no default that
is `None`, and one line for each argument.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, TypeAlias, Unpack, cast

from ripwrap._arguments import (
    CodebaseSearchOptions,
    FindFilesOptions,
    GrepContentOptions,
    LsOptions,
    TreeOptions,
    own,
    schema_of,
    understood,
)
from ripwrap._query import Progress
from ripwrap._rg.collect import carry_out
from ripwrap._sandbox import Sandbox
from ripwrap._scope import Settings
from ripwrap._sections import Section
from ripwrap._tools import INDEX_NAMES, MAX_CHARS, MAX_LINE, MISTAKES, NAMES, TIMEOUT, Tools
from ripwrap.answers import (
    CodebaseSearchResult,
    CodePlace,
    ContentMatch,
    FileHits,
    FindFilesResult,
    GrepContentResult,
    IndexCodebaseResult,
    IndexedRoot,
    IndexHealthResult,
    IndexStatusResult,
    ListEntry,
    ListResult,
    RootHealth,
    RootStatus,
    ToolResult,
)
from ripwrap.binary.resolver import Rg
from ripwrap.options import StrPath, check_timeout

__all__ = [
    "CodePlace",
    "CodebaseSearchOptions",
    "CodebaseSearchResult",
    "ContentMatch",
    "FileHits",
    "FindFilesOptions",
    "FindFilesResult",
    "GrepContentOptions",
    "GrepContentResult",
    "IndexCodebaseResult",
    "IndexHealthResult",
    "IndexStatusResult",
    "IndexedRoot",
    "ListEntry",
    "ListResult",
    "LsOptions",
    "RootHealth",
    "RootStatus",
    "Section",
    "ToolResult",
    "TreeOptions",
    "Workspace",
    "schemas",
]

Tool: TypeAlias = Callable[..., Awaitable[str]]


class Workspace:
    """Searching and listing for agents, within some directories.

    Five tools, `grep_content`, `find_files`, `ls`, `tree` and `codebase_search`, answer with a text that a model reads:
    bounded, in a fixed order, and honest about what it leaves out. What a model gets wrong is a text, too, that begins
    with `Error: ` and says what to do; a tool raises for nothing that a model can send. Each has a twin whose name ends
    in `_result`: it returns a model, whose `str()` is that text, and raises.

    With `index` there are three more, `index_codebase`, `index_status` and `index_health_check`. `codebase_search` then
    answers from the index, once `index_codebase` has made it; it refreshes it by itself. For a path that the index says
    nothing of, such as a hidden file, and where it cannot be used, it ranks the files as they are.

    A path that leads out of the roots is refused, also through `..` or a symbolic link, and no answer shows what is
    outside of them. Ignore files above a root, and git's global ones, do not count, unless `outer_ignore` says so.

    Attributes:
        roots: The real paths of the directories.
        tools: The five tools, or all eight.
    """

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
        """Take the directories that the tools may use.

        Args:
            *roots: One or more directories. With one, paths in answers are relative to it; with several, absolute.
            follow: Whether to follow symbolic links. What lies outside of the roots is then left out of every answer,
                though rg may have looked at it.
            outer_ignore: Whether rules for ignoring files also come from above the roots and from git's own settings,
                as they do for rg; rg then reads those files.
            guard: Whether to keep to one file system, some levels and a shorter time in `/`, a home directory, `/proc`
                and its like, and on network file systems; an answer says when that was done.
            timeout: Seconds that rg may take; what it had found by then is the answer. A call runs rg once, or twice
                where a glob has a slash, and up to 5 seconds more to find out why there is nothing. An index that is
                not up to date by then is left alone, and the files are ranked, which may take as long again.
            max_chars: How long an answer may be, in characters; at least 1,000.
            max_line: How much of one line is shown, in characters; at least 40.
            rg: Which rg to run: a path, or a bare name to find in PATH; `None` finds one.
            index: Whether there is to be an index, below the user's cache; or `"project"` for one in each root, or the
                folder to keep it in. It is made when `index_codebase` is first called, and has no embeddings.

        Raises:
            FileNotFoundError, NotADirectoryError: A root is not there, or no directory.
            ValueError: There is no root, or a number is too small.
        """
        settings = Settings(Sandbox(roots), follow, outer_ignore, guard, check_timeout(timeout), max_chars, max_line)
        self._tools = Tools(settings, index)
        self._rg = rg

    @property
    def roots(self) -> tuple[str, ...]:
        """The real paths of the directories."""
        return self._tools.settings.sandbox.roots

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools, to be handed to a framework."""
        return tuple(getattr(self, name) for name in self._tools.names)

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
    ) -> str:
        r"""Search the contents of files with a regular expression (ripgrep), and see the lines that match.

        The answer names each file, then its lines: `42: …` matches, `43- …` is context. Matches are taken in turn from
        every file. The last line, in parentheses, says how many there are in all, what was left out and how to get it.
        Use the line numbers to read on in a file. Hidden files and those that .gitignore names are left out.

        Args:
            pattern (str): What to search for, a regular expression such as `def \w+_total` or `TODO|FIXME`.
            path (str): The directory or file to search; `.` is everything.
            context_lines (int): How many lines to show before and after each match; default 2.
            before_context (int): How many lines to show before each match, if more than context_lines.
            after_context (int): How many lines to show after each match, if more than context_lines.
            max_matches (int): How many matches to show at most, or files in the other output modes; default 100.
            max_files (int): How many files to show matches of at most; 0, the default, is any number.
            file_pattern (str): Search only files that match this glob, e.g. `*.py`, `src/**/*.{ts,tsx}` or `!*.min.js`.
            file_type (str): Search only files of this type, one that ripgrep knows, e.g. `py`, `js`, `rust`.
            case_insensitive (bool): Whether to ignore case; default false.
            fixed_strings (bool): Whether to take the pattern as plain text and not as a regular expression.
            multiline (bool): Whether a match may span lines; a dot then matches line ends as well.
            output_mode (str): `content` shows lines, `files_with_matches` only paths, `count` how many lines per file.
            offset (int): How many matches to skip, for the next page; the answer before says which number.
            include_hidden (bool): Whether to search hidden files and directories, too.
            include_ignored (bool): Whether to search what .gitignore and the like leave out, too.
            sections (bool): Whether to name for each match the definition that encloses it, and its lines.
        """
        return await self.call("grep_content", own(locals()))

    async def grep_content_result(
        self, pattern: str, path: str = ".", **options: Unpack[GrepContentOptions]
    ) -> GrepContentResult:
        """As `grep_content()`, with the answer as a model.

        Raises:
            AccessDeniedError: `path` is outside of the roots.
            FileNotFoundError: There is no `path`.
            ValueError: An argument is not what it should be, or unknown.
            PatternError, GlobError, UnknownTypeError, SearchError: rg cannot do this search.
            BinaryError: There is no rg.
        """
        given = {"pattern": pattern, "path": path, **options}
        return cast("GrepContentResult", await self.call_result("grep_content", given))

    async def find_files(
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
        """Find files by their names, with a glob.

        The answer has one path a line. The last line, in parentheses, says how many files there are in all and how to
        get the next. Hidden files and those that .gitignore names are left out.

        Args:
            pattern (str): A glob, e.g. `*.py` (at any depth), `src/**/*.ts` or `test_*.{py,pyi}`; `*` is every file.
            path (str): The directory to look in; `.` is everything.
            sort (str): `path` sorts by path, `newest` puts the files first that were changed last.
            limit (int): How many files to list at most; default 100.
            offset (int): How many files to skip, for the next page; the answer before says which number.
            include_hidden (bool): Whether to list hidden files, too.
            include_ignored (bool): Whether to list what .gitignore and the like leave out, too.
        """
        return await self.call("find_files", own(locals()))

    async def find_files_result(
        self, pattern: str = "*", path: str = ".", **options: Unpack[FindFilesOptions]
    ) -> FindFilesResult:
        """As `find_files()`, with the answer as a model; raises what `grep_content_result()` does."""
        given = {"pattern": pattern, "path": path, **options}
        return cast("FindFilesResult", await self.call_result("find_files", given))

    async def ls(
        self,
        path: str = ".",
        *,
        ignore: list[str] = [],  # noqa: B006 - never changed, and the only default for a list that a schema takes
        limit: int = 1000,
        max_depth: int = 0,
        include_hidden: bool = False,
        include_ignored: bool = False,
    ) -> str:
        """List a directory and all that is below it, as an indented list.

        Directories end in a slash and come before files. Where there is more than is shown, `[N truncated]` stands in
        its place; first-level directories are the last to go. Hidden files and what .gitignore names are left out.

        Args:
            path (str): The directory to list; `.` is everything.
            ignore (list[str]): Globs of files and directories to leave out, e.g. `["*.lock", "docs/generated/**"]`.
            limit (int): How many files and directories to list at most; default 1000.
            max_depth (int): How many levels to list; 0, the default, is any number.
            include_hidden (bool): Whether to list hidden files, too.
            include_ignored (bool): Whether to list what .gitignore and the like leave out, too.
        """
        return await self.call("ls", own(locals()))

    async def ls_result(self, path: str = ".", **options: Unpack[LsOptions]) -> ListResult:
        """As `ls()`, with the answer as a model; raises what `grep_content_result()` does.

        Where there is no rg, plain Python lists the same (`engine` says so).
        """
        return cast("ListResult", await self.call_result("ls", {"path": path, **options}))

    async def tree(
        self, path: str = ".", *, limit: int = 50, include_hidden: bool = False, include_ignored: bool = False
    ) -> str:
        """Get an overview of a directory: an indented tree with a little of every directory.

        Entries are taken level by level and in turn from every directory; `[N truncated]` stands for what is left
        out of one. Hidden files and those that .gitignore names are left out.

        Args:
            path (str): The directory to show; `.` is everything.
            limit (int): How many files and directories to show at most; default 50.
            include_hidden (bool): Whether to show hidden files, too.
            include_ignored (bool): Whether to show what .gitignore and the like leave out, too.
        """
        return await self.call("tree", own(locals()))

    async def tree_result(self, path: str = ".", **options: Unpack[TreeOptions]) -> ListResult:
        """As `tree()`, with the answer as a model; raises what `grep_content_result()` does."""
        return cast("ListResult", await self.call_result("tree", {"path": path, **options}))

    async def codebase_search(self, query: str, path: str = ".", *, limit: int = 10) -> str:
        """Find the places that answer a question in words, or that define a name, the best first.

        The answer names for each place its file and lines, the definition it is in, why it was found, and its text.
        Use this where you do not know what the code calls a thing, and grep_content where you do. Hidden files and
        those that .gitignore names are left out.

        Args:
            query (str): Words, e.g. `how are cookies stored`, or a name, e.g. `CookieJar`.
            path (str): The directory or file to search; `.` is everything.
            limit (int): How many places to show at most; default 10.
        """
        return await self.call("codebase_search", own(locals()))

    async def codebase_search_result(
        self, query: str, path: str = ".", **options: Unpack[CodebaseSearchOptions]
    ) -> CodebaseSearchResult:
        """As `codebase_search()`, with the answer as a model; raises what `grep_content_result()` does.

        It also raises `TimeoutError` if there is no ranking within the workspace's `timeout`. If an index cannot be
        used, its `notes` say why, and the files are ranked as they are.
        """
        given = {"query": query, "path": path, **options}
        return cast("CodebaseSearchResult", await self.call_result("codebase_search", given))

    async def index_codebase(self) -> str:
        """Make the index that speeds up codebase_search, or bring it up to date.

        The first time this may take a minute in a large codebase; later only files that changed are read. The index is
        a cache: no file of the codebase is changed.
        """
        return await self.call("index_codebase")

    async def index_codebase_result(self) -> IndexCodebaseResult:
        """As `index_codebase()`, with the answer as a model.

        Raises:
            ValueError: The workspace was made without `index`.
            RipwrapError: The index cannot be written.
            BinaryError: There is no rg.
        """
        return cast("IndexCodebaseResult", await self.call_result("index_codebase"))

    async def index_status(self) -> str:
        """See whether there is an index, how much it has, and when it was last changed; nothing is refreshed."""
        return await self.call("index_status")

    async def index_status_result(self) -> IndexStatusResult:
        """As `index_status()`, with the answer as a model; raises what `index_codebase_result()` does."""
        return cast("IndexStatusResult", await self.call_result("index_status"))

    async def index_health_check(self) -> str:
        """Check whether the index is sound, and see what to do if it is not; all of it is read."""
        return await self.call("index_health_check")

    async def index_health_check_result(self) -> IndexHealthResult:
        """As `index_health_check()`, with the answer as a model; raises what `index_codebase_result()` does."""
        return cast("IndexHealthResult", await self.call_result("index_health_check"))

    async def call(self, name: str, arguments: Mapping[str, Any] | str = "{}") -> str:
        """Call a tool as a model asks for it, and get its text; raises for nothing that a model can send.

        Args:
            name: A tool's name, or one that models know it by (`Grep`, `Glob`, `LS`, …).
            arguments: A JSON object, or its text. Other names are understood (`glob`, `head_limit`, `-i`, `-A`, …),
                numbers and booleans as strings, and `null` for an argument that is not given.
        """
        try:
            return self._tools.text(await self.call_result(name, arguments))
        except MISTAKES as error:
            return self._tools.complaint(error)

    async def call_result(
        self, name: str, arguments: Mapping[str, Any] | str = "{}", *, progress: Progress | None = None
    ) -> ToolResult:
        """As `call()`, with the answer as a model; raises what `grep_content_result()` does.

        Args:
            name: As in `call()`.
            arguments: As in `call()`.
            progress: Called with the number of matches, or files, that have come so far.
        """
        tool = self._tools.named(name)
        plan = self._tools.plan(tool, understood(getattr(Workspace, tool), arguments), progress)
        return await carry_out(plan, self._rg)

    def text(self, result: ToolResult) -> str:
        """The text of an answer that a `…_result` method gave, as the method without that name gives it."""
        return self._tools.text(result)

    def complaint(self, error: Exception) -> str:
        """What the tools say of an error that a `…_result` method raised: the text that begins with `Error: `."""
        return self._tools.complaint(error)


def schemas(*, index: bool = False) -> dict[str, tuple[str, dict[str, Any], dict[str, Any]]]:
    """For each tool its description, and the JSON schemas of its arguments and of its answer.

    Args:
        index: Whether to have those of a workspace with an index.
    """
    return {name: _schemas(name) for name in (*NAMES, *(INDEX_NAMES if index else ()))}


def _schemas(name: str) -> tuple[str, dict[str, Any], dict[str, Any]]:
    method = getattr(Workspace, name)
    answer = inspect.signature(getattr(Workspace, f"{name}_result")).return_annotation
    return (*schema_of(method), answer.model_json_schema(mode="serialization"))
