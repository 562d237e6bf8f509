"""Tools with which agents search, list, read and change files: typed methods, which agent frameworks can register.

    workspace = ripwrap.Workspace("src")
    agent = Agent(model, tools=workspace.tools)

Frameworks make the schema of a tool from its signature and docstring, but each framework supports only a part of
Python's types (docs/how-to/agent-frameworks.md). So the methods that return a text have plain types, no `None` as
default, and one docstring line for each argument. `describe_tools()` copies these lines into the annotations.

The first call of a tool imports the module of the tool, so that programs and MCP servers start faster.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias, Unpack

import anyio
import anyio.to_thread
from typing_extensions import deprecated

from ripwrap._ripgrep.runner import AsyncRunner
from ripwrap._scan.rules import Rule
from ripwrap.binary.resolver import Rg
from ripwrap.options import Directories, ShowDenied, StrPath, check_timeout
from ripwrap.sources.repository import real_directories
from ripwrap.workspace.arguments import (
    CodebaseSearchArguments,
    CodebaseSearchOptions,
    FindFilesArguments,
    FindFilesOptions,
    GrepContentArguments,
    GrepContentOptions,
    LsArguments,
    LsOptions,
    ReadFileArguments,
    ReadFileOptions,
    ReplaceContentArguments,
    ReplaceContentOptions,
    ResolveArguments,
    TreeArguments,
    TreeOptions,
    parameter_descriptions,
    parse_arguments,
    schema_of,
)
from ripwrap.workspace.deny import SECRET_FILES
from ripwrap.workspace.dispatch import (
    MAX_LINE,
    MAX_READ_BYTES,
    TIMEOUT,
    TOOL_ERRORS,
    TOOLS,
    ToolDispatcher,
    describe_tools,
    tool_names,
)
from ripwrap.workspace.redact import redaction_of
from ripwrap.workspace.results import (
    MAX_CHARS,
    CodebaseSearchResult,
    FileInfo,
    FindFilesResult,
    GrepContentResult,
    IndexCodebaseResult,
    IndexHealthResult,
    IndexStatusResult,
    ListResult,
    ReadFileResult,
    ReplaceContentResult,
    ResolveResult,
    ToolResult,
)
from ripwrap.workspace.sandbox import Sandbox
from ripwrap.workspace.scope import Progress, Settings

if TYPE_CHECKING:
    from ripwrap.index.embeddings.protocol import Embedder
else:
    Embedder = Any  # annotations can be evaluated without loading the index

Tool: TypeAlias = Callable[..., Awaitable[str]]


@describe_tools
class Workspace:
    """Tools with which agents search, list and read files in some directories.

    There are six tools: `grep_content`, `find_files`, `ls`, `tree`, `codebase_search` and `read_file`. Each tool
    returns a text for a language model. The text has a maximum length and a fixed order, and says what is left out. If
    an argument is wrong or the call fails, the tool does not raise an error. It returns a text that begins with
    `Error: ` and says what to do. Each tool has a twin whose name ends in `_result`. The twin returns a Pydantic model,
    whose `str()` is the text, and raises errors.

    With `index` there are three more tools: `index_codebase`, `index_status` and `index_health_check`. After
    `index_codebase` has made the index, `codebase_search` refreshes the index and searches in it. `grep_content` then
    searches only the files that may have a match (see `Index.grep()`). It does not use the index in these cases: its
    arguments choose files by name or type, include hidden or ignored files, or set `rev` or `inside`; `path` is a file
    or stands for several roots; the pattern can match without a fixed text of three or more bytes. `codebase_search`
    and `grep_content` search without the index if the index cannot be used, or does not contain the path (for example a
    hidden file). On Linux, the workspace watches the roots, so that a search does not list all files again while
    nothing changes (see `Index.watch()`). Roots such as the home directory, which `guard` limits, are not watched. The
    watch ends when `aclose()` is called or the workspace is deleted.

    With an `embedder`, `index_codebase` also embeds the texts of the index, and `codebase_search` ranks by words and
    embeddings. If the provider fails, `codebase_search` ranks by words only, and a note gives the reason.
    `index_status` names the model, the address to which texts are sent, and the number of texts sent so far.

    With `anchors` there is also the tool `resolve`. With `write` there is `replace_content`, the only tool that changes
    files.

    A path that leads out of the roots, for example through `..` or a symbolic link, is refused. No answer shows
    anything outside of the roots. Ignore files above a root and git's global ignore file have an effect only with
    `outer_ignore`.

    Attributes:
        roots: Real paths of the directories that the tools may use.
        tools: Methods to register in a framework: the six tools, and the further tools of `index`, `anchors` and
            `write` if these are set.
        SECRETS: Globs for `deny` that match files which usually contain keys, passwords or tokens.
    """

    SECRETS: ClassVar[tuple[str, ...]] = SECRET_FILES

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
        anchors: bool = False,
        embedder: "str | Embedder | None" = None,
        hybrid_weight: float | None = None,
        deny: str | Sequence[str] = (),
        show_denied: ShowDenied = "hide",
        redact: bool | Mapping[str, str] | Iterable[Rule] = False,
        write: bool = False,
        repositories: Directories = (),
    ) -> None:
        """Set the directories that the tools may use, and the limits of their answers.

        Args:
            *roots: One or more directories. With one root, paths in answers are relative to that root; with several
                roots, paths are absolute.
            follow: Follow symbolic links. rg may then read files outside of the roots, but no answer shows them.
            outer_ignore: Also apply ignore files above the roots, and git's global ignore file, as rg does.
            guard: Limit the search to one file system, a few levels and 5 or 10 seconds in `/`, in the home directory
                and the directories above it, in `/proc` and similar directories, and on network file systems of Linux.
                The answer then names these limits.
            timeout: Time limit in seconds for a call; `None` is no limit. At the limit, rg is stopped, and the answer
                has the results found so far. Making the answer may take 0.7 seconds more; if it takes longer, the
                answer is an error. A refresh of an index, and a listing for a glob with a slash, may take half of the
                limit. `index_codebase` has no time limit.
            max_chars: Maximum length of an answer, in characters; at least 1,000.
            max_line: Maximum length of a line in an answer, in characters; at least 40.
            rg: The rg to run: a path, or a bare name to find in PATH; with `None`, ripwrap finds an rg.
            index: Location of an index: True for the user's cache, `"project"` for a directory in each root, or the
                path of a directory. False is no index. The first call of `index_codebase` makes the index.
            anchors: Show a short hash of each line after its number, as in `42·k7q`, and offer the tool `resolve`,
                which finds the line of such an anchor after the file has changed.
            embedder: The embedding model of the index, as for `ripwrap.index.Index`: `"wordllama"` on this machine,
                `"provider:model"`, or an `Embedder`. Tools send texts and queries only to this provider. `"auto"` is
                refused, because it lets the environment choose a provider. With `None`, only words are searched, and
                nothing is sent.
            hybrid_weight: Weight of embeddings in the score, from 0 to 1; `None` is 0.34.
            deny: Globs of files and directories that no tool opens. They are as in `.gitignore`, but ignore case:
                `["*.pem", "**/.env*", "secrets/"]`. `Workspace.SECRETS` has globs for the usual files with secrets.
            show_denied: Treatment of denied files in `ls`, `tree` and `find_files`: `"hide"` them, `"count"` them in a
                note, or `"name"` them. Their contents and sizes are never shown.
            redact: Mask keys, tokens and passwords in the lines of all answers, as `[redacted: github-token]`. True
                masks what the built-in rules (`ripwrap.SECRET_RULES`) find. Rules, as for `scan()`, mask what these
                rules find, and private keys; their `path` and `keywords` do not matter, and a rule that may span lines
                is tried on each line.
            write: Offer the tool `replace_content`, which changes files in the roots. Denied files are never changed.
                `ripwrap.undo()` restores the files, with the journals in the user's state directory.
            repositories: Further directories from which git may read with `rev`, such as `["../main/.git"]` for a
                worktree, or the `.git` above a root that is a subdirectory of its repository. Without them, git reads
                only repositories whose directories are all inside the roots; any other repository is refused, because
                the `.git` of a downloaded tree may lead to a repository that the tools must not show.

        Raises:
            FileNotFoundError, NotADirectoryError: A root does not exist, or is not a directory.
            ValueError: There is no root, a root or a directory of `repositories` is an empty string, a number is too
                small or out of range, a glob in `deny` is invalid, `show_denied` is unknown, `embedder` is `"auto"` or
                given without `index`, `hybrid_weight` is given without `embedder`, or a rule in `redact` cannot mask
                secrets, because its pattern may take too long, or is not one of Python.
            TypeError: A glob in `deny` is not a string, or another argument has a wrong type.
            EmbeddingError: The embedder is unknown, or its package or key is missing.
        """
        settings = Settings(
            Sandbox(roots, deny=deny),
            follow,
            outer_ignore,
            guard,
            check_timeout(timeout),
            max_chars,
            max_line,
            show_denied=show_denied,
            redact=redaction_of(redact),
            anchors=anchors,
            write=write,
            repositories=real_directories(repositories),
        )
        self._tools = ToolDispatcher(settings, index, AsyncRunner(rg), embedder=embedder, hybrid_weight=hybrid_weight)

    @property
    def roots(self) -> tuple[str, ...]:
        """Real paths of the directories that the tools may use."""
        return self._tools.settings.sandbox.roots

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Methods to register as tools in a framework."""
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
        expand: Literal["none", "definition"] = "none",
        rev: str = "",
        inside: str = "",
    ) -> str:
        r"""Search the contents of files with a regular expression (ripgrep), and show the lines that match.

        The answer names each file, then its lines: `42: …` is a match, `43- …` is context. Matches are taken from all
        files in rotation. The last line, in parentheses, gives the number of all matches, what was left out and how to
        get it. Use the line numbers to read more of a file. Hidden files and files that .gitignore excludes are left
        out.

        Args:
            pattern (str): Regular expression to search for, such as `def \w+_total` or `TODO|FIXME`.
            path (str): The directory or file to search; `.` is everything.
            context_lines (int): Lines of context before and after each match; default 2.
            before_context (int): Lines of context before each match, if more than context_lines.
            after_context (int): Lines of context after each match, if more than context_lines.
            max_matches (int): Maximum number of matches to show, or of files in the other output modes; default 100.
            max_files (int): Maximum number of files to show matches of; 0, the default, is no limit.
            file_pattern (str): Search only files that match this glob, e.g. `*.py`, `src/**/*.{ts,tsx}` or `!*.min.js`.
            file_type (str): Search only files of this type, one that ripgrep knows, e.g. `py`, `js`, `rust`.
            case_insensitive (bool): Ignore case; default false.
            fixed_strings (bool): Search for the pattern as plain text, not as a regular expression.
            multiline (bool): Let a match span lines; a dot then also matches line ends.
            output_mode (str): `content` shows lines, `files_with_matches` paths, `count` counts of matches per file.
            offset (int): Number of matches, or files in other output modes, to skip; the previous answer gives it.
            include_hidden (bool): Search hidden files and directories, too.
            include_ignored (bool): Search files that .gitignore and the like exclude, too.
            sections (bool): Name the definition that encloses each match, with the numbers of its lines.
            expand (str): `definition` shows the definition around each match, if it fits; default `none`.
            rev (str): Search a commit of git instead of the files on disk, e.g. `v1.2` or `main~3`.
            inside (str): Search inside files of these formats, too, e.g. `zip,tar,gz,ipynb,pdf,docx,xlsx`.
        """
        try:
            return self.text(
                await self.grep_content_result(
                    pattern,
                    path,
                    context_lines=context_lines,
                    before_context=before_context,
                    after_context=after_context,
                    max_matches=max_matches,
                    max_files=max_files,
                    file_pattern=file_pattern,
                    file_type=file_type,
                    case_insensitive=case_insensitive,
                    fixed_strings=fixed_strings,
                    multiline=multiline,
                    output_mode=output_mode,
                    offset=offset,
                    include_hidden=include_hidden,
                    include_ignored=include_ignored,
                    sections=sections,
                    expand=expand,
                    rev=rev,
                    inside=inside,
                )
            )
        except TOOL_ERRORS as error:
            return self.error_text(error)

    async def grep_content_result(
        self, pattern: str, path: str = ".", **options: Unpack[GrepContentOptions]
    ) -> GrepContentResult:
        """Return the answer of `grep_content()` as a `GrepContentResult`.

        Raises:
            AccessDeniedError: `path` is outside of the roots, or denied.
            FileNotFoundError: `path` does not exist.
            PermissionError: A directory on the way to `path` cannot be entered.
            ValueError: An argument is invalid or unknown.
            PatternError, GlobError, UnknownTypeError, SearchError: rg rejects the search, or fails.
            BinaryError: There is no rg, or it does not run.
            TimeoutError: With `redact`, the secrets in the lines were not masked in time.
        """
        from ripwrap.workspace.grep_content import run_grep_content

        arguments = parse_arguments(GrepContentArguments, {"pattern": pattern, "path": path, **options})
        indexes = self._tools.indexes()
        return await run_grep_content(self._tools.runner, self._tools.settings, arguments, indexes=indexes)

    async def find_files(
        self,
        pattern: str = "*",
        path: str = ".",
        *,
        entry_type: Literal["file", "directory", "any"] = "file",
        sort: Literal["path", "newest"] = "path",
        limit: int = 100,
        offset: int = 0,
        include_hidden: bool = False,
        include_ignored: bool = False,
    ) -> str:
        """Find files or directories by name, with a glob.

        The answer has one path on each line; a directory ends in a slash. The last line, in parentheses, gives the
        number of all files and how to get more. Hidden files and files that .gitignore excludes are left out.

        Args:
            pattern (str): A glob, e.g. `*.py` (at any depth), `src/**/*.ts` or `test_*.{py,pyi}`; `*` is every file.
            path (str): The directory to look in, or a file; `.` is everything.
            entry_type (str): What to find: `file`, `directory` or `any`; default `file`.
            sort (str): `path` sorts by path, `newest` puts the most recently changed files first.
            limit (int): Maximum number of files to list; default 100.
            offset (int): Number of files to skip, for the next page; the previous answer gives it.
            include_hidden (bool): List hidden files, too.
            include_ignored (bool): List files that .gitignore and the like exclude, too.
        """
        try:
            return self.text(
                await self.find_files_result(
                    pattern,
                    path,
                    entry_type=entry_type,
                    sort=sort,
                    limit=limit,
                    offset=offset,
                    include_hidden=include_hidden,
                    include_ignored=include_ignored,
                )
            )
        except TOOL_ERRORS as error:
            return self.error_text(error)

    async def find_files_result(
        self, pattern: str = "*", path: str = ".", **options: Unpack[FindFilesOptions]
    ) -> FindFilesResult:
        """Return the answer of `find_files()` as a `FindFilesResult`; raise the errors of `grep_content_result()`."""
        from ripwrap.workspace.find_files import run_find_files

        arguments = parse_arguments(FindFilesArguments, {"pattern": pattern, "path": path, **options})
        return await run_find_files(self._tools.runner, self._tools.settings, arguments)

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
        """List a directory and everything below it, as an indented list.

        Directories end in a slash and come before files. `[N truncated]` marks N entries that are left out; first-level
        directories are left out last. Hidden files and files that .gitignore excludes are left out. Without a
        .gitignore, directories such as node_modules are named, but not listed.

        Args:
            path (str): The directory to list; `.` is everything.
            ignore (list[str]): Globs of files and directories to leave out, e.g. `["*.lock", "docs/generated/**"]`.
            limit (int): Maximum number of files and directories to list; default 1000.
            max_depth (int): Number of levels to list; 0, the default, is no limit.
            include_hidden (bool): List hidden files, too.
            include_ignored (bool): List files that .gitignore and the like exclude, too.
        """
        try:
            return self.text(
                await self.ls_result(
                    path,
                    ignore=ignore,
                    limit=limit,
                    max_depth=max_depth,
                    include_hidden=include_hidden,
                    include_ignored=include_ignored,
                )
            )
        except TOOL_ERRORS as error:
            return self.error_text(error)

    async def ls_result(self, path: str = ".", **options: Unpack[LsOptions]) -> ListResult:
        """Return the answer of `ls()` as a `ListResult`; raise the errors of `grep_content_result()`.

        If there is no rg, or it does not run, Python code lists the same files, and `engine` is `python`.
        """
        from ripwrap.workspace.listing import run_ls

        arguments = parse_arguments(LsArguments, {"path": path, **options})
        return await run_ls(self._tools.runner, self._tools.settings, arguments)

    async def tree(
        self, path: str = ".", *, limit: int = 50, include_hidden: bool = False, include_ignored: bool = False
    ) -> str:
        """Show an overview of a directory: an indented tree with a few entries of every directory.

        Entries are taken level by level, and from all directories in rotation. `[N truncated]` marks N entries that are
        left out of a directory. Hidden files and files that .gitignore excludes are left out.

        Args:
            path (str): The directory to show; `.` is everything.
            limit (int): Maximum number of files and directories to show; default 50.
            include_hidden (bool): Show hidden files, too.
            include_ignored (bool): Show files that .gitignore and the like exclude, too.
        """
        try:
            return self.text(
                await self.tree_result(
                    path, limit=limit, include_hidden=include_hidden, include_ignored=include_ignored
                )
            )
        except TOOL_ERRORS as error:
            return self.error_text(error)

    async def tree_result(self, path: str = ".", **options: Unpack[TreeOptions]) -> ListResult:
        """Return the answer of `tree()` as a `ListResult`; raise the errors of `grep_content_result()`."""
        from ripwrap.workspace.listing import run_tree

        arguments = parse_arguments(TreeArguments, {"path": path, **options})
        return await run_tree(self._tools.runner, self._tools.settings, arguments)

    async def codebase_search(self, query: str, path: str = ".", *, limit: int = 10) -> str:
        """Find the code that answers a question in words, or that defines a name, the best results first.

        The answer gives for each result its file and lines, the definition around it, the reasons for its rank, and its
        text. Use this if you do not know the names in the code, and grep_content if you do. Hidden files and files that
        .gitignore excludes are left out.

        Args:
            query (str): Words, e.g. `how are cookies stored`, or a name, e.g. `CookieJar`.
            path (str): The directory or file to search; `.` is everything.
            limit (int): Maximum number of results to show; default 10.
        """
        try:
            return self.text(await self.codebase_search_result(query, path, limit=limit))
        except TOOL_ERRORS as error:
            return self.error_text(error)

    async def codebase_search_result(
        self, query: str, path: str = ".", **options: Unpack[CodebaseSearchOptions]
    ) -> CodebaseSearchResult:
        """Return the answer of `codebase_search()` as a `CodebaseSearchResult`.

        If the index cannot be used, the files are ranked without the index, and `notes` give the reason. The method
        raises the errors of `grep_content_result()`, and `TimeoutError` if the ranking takes longer than the
        workspace's `timeout`.
        """
        from ripwrap.workspace.codebase_search import run_codebase_search  # late: it imports the ranking

        arguments = parse_arguments(CodebaseSearchArguments, {"query": query, "path": path, **options})
        return await run_codebase_search(self._tools.runner, self._tools.settings, arguments, self._tools.indexes())

    async def read_file(self, path: str, start_line: int = 1, end_line: int = 0, *, ranges: str = "") -> str:
        """Read lines of a text file, with their numbers.

        The last line, in parentheses, says which lines were shown, and how to get more. Long lines are cut. Search
        first, and read only the lines that you need.

        Args:
            path (str): The file to read.
            start_line (int): Number of the first line; default 1.
            end_line (int): Number of the last line; 0, the default, is the end of the file.
            ranges (str): Several ranges of lines at once, e.g. `10-40,80-95`, instead of start_line and end_line.
        """
        try:
            return self.text(await self.read_file_result(path, start_line, end_line, ranges=ranges))
        except TOOL_ERRORS as error:
            return self.error_text(error)

    async def read_file_result(
        self, path: str, start_line: int = 1, end_line: int = 0, **options: Unpack[ReadFileOptions]
    ) -> ReadFileResult:
        """Return the answer of `read_file()` as a `ReadFileResult`.

        The method needs no rg. A file may have any size; reading stops at the workspace's `timeout`.

        Raises:
            AccessDeniedError: `path` is outside of the roots, or denied.
            FileNotFoundError: `path` does not exist.
            IsADirectoryError: `path` is a directory.
            PermissionError: The file cannot be read.
            ValueError: An argument is invalid or unknown, the file is binary, or it has no such line.
            TimeoutError: The first line to read was not reached in time.
        """
        from ripwrap.workspace.read_file import run_read_file

        given = {"path": path, "start_line": start_line, "end_line": end_line, **options}
        arguments = parse_arguments(ReadFileArguments, given)
        return await run_read_file(self._tools.runner, self._tools.settings, arguments)

    async def resolve(self, anchor: str) -> str:
        """Find the line of an anchor in the file as it is now.

        Answers show lines with anchors: in `42·k7q: …`, 42 is the number of the line, and k7q a hash of its text. Pass
        the path and the anchor before you edit a line that you read some time ago. The answer says that the line is
        unchanged, has moved to another number, or is gone.

        Args:
            anchor (str): Path of the file, `#` and the anchor, e.g. `src/till.py#42·k7q`.
        """
        try:
            return self.text(await self.resolve_result(anchor))
        except TOOL_ERRORS as error:
            return self.error_text(error)

    async def resolve_result(self, anchor: str) -> ResolveResult:
        """Return the answer of `resolve()` as a `ResolveResult`.

        If the line with the anchor's number has a different hash now, the nearest line with the anchor's hash is
        returned as the moved line. If no line has that hash, the `state` of the result is `gone`. Two different lines
        have the same hash with a probability of 1 in 32,768.

        Raises:
            AccessDeniedError: The path is outside of the roots, or denied.
            FileNotFoundError: The path does not exist.
            IsADirectoryError: The path is a directory.
            PermissionError: The file cannot be read.
            ValueError: The argument is not a path with an anchor, or the file is binary.
            TimeoutError: The file was not read in time.
        """
        from ripwrap.workspace.resolve import run_resolve

        arguments = parse_arguments(ResolveArguments, {"anchor": anchor})
        return await run_resolve(self._tools.runner, self._tools.settings, arguments)

    async def replace_content(
        self,
        pattern: str,
        replacement: str,
        path: str = ".",
        *,
        apply: bool = False,
        file_pattern: str = "",
        file_type: str = "",
        case_insensitive: bool = False,
        fixed_strings: bool = False,
        multiline: bool = False,
        include_hidden: bool = False,
        include_ignored: bool = False,
    ) -> str:
        r"""Replace every match of a regular expression (ripgrep) in files, or show what would change.

        Call it without `apply` first: the answer is a diff, and no file is changed. With `apply` the changes are
        written, to all files or to none. Hidden files and files that .gitignore excludes are left out.

        Args:
            pattern (str): Regular expression to search for, such as `old_(\w+)`.
            replacement (str): Text to put in place of each match; `$1` or `${name}` is a group, and `$$` a dollar.
            path (str): The directory or file to change; `.` is everything.
            apply (bool): Write the changes; default false, which only shows them.
            file_pattern (str): Change only files that match this glob, e.g. `*.py`, `src/**/*.{ts,tsx}` or `!*.min.js`.
            file_type (str): Change only files of this type, one that ripgrep knows, e.g. `py`, `js`, `rust`.
            case_insensitive (bool): Ignore case; default false.
            fixed_strings (bool): Search for the pattern as plain text, not as a regular expression.
            multiline (bool): Let a match span lines; a dot then also matches line ends.
            include_hidden (bool): Change hidden files, too.
            include_ignored (bool): Change files that .gitignore and the like exclude, too.
        """
        try:
            return self.text(
                await self.replace_content_result(
                    pattern,
                    replacement,
                    path,
                    apply=apply,
                    file_pattern=file_pattern,
                    file_type=file_type,
                    case_insensitive=case_insensitive,
                    fixed_strings=fixed_strings,
                    multiline=multiline,
                    include_hidden=include_hidden,
                    include_ignored=include_ignored,
                )
            )
        except TOOL_ERRORS as error:
            return self.error_text(error)

    async def replace_content_result(
        self, pattern: str, replacement: str, path: str = ".", **options: Unpack[ReplaceContentOptions]
    ) -> ReplaceContentResult:
        """Return the answer of `replace_content()` as a `ReplaceContentResult`.

        The errors of `grep_content_result()` are raised, too.

        Raises:
            ValueError: The workspace was made without `write`, the pattern is empty, or the replacement refers to a
                group that does not exist.
            ConflictError: A file changed during the call, or has several hard links; nothing was written.
            OSError: A file cannot be written; all files have their old contents.
            TimeoutError: Listing the files, preparing the changes or masking secrets took too long; nothing was
                written.
            CapabilityError: The replacement refers to a group, and rg is older than 15.
        """
        from ripwrap.workspace.replace_content import run_replace_content  # late: it imports the journal

        given = {"pattern": pattern, "replacement": replacement, "path": path, **options}
        arguments = parse_arguments(ReplaceContentArguments, given)
        return await run_replace_content(self._tools.runner, self._tools.settings, arguments)

    async def read_bytes(self, path: str, *, max_bytes: int | None = MAX_READ_BYTES) -> bytes:
        """Return the bytes of a file. This method is not a tool, but for backends of frameworks; it needs no rg.

        With `redact`, keys, tokens and passwords are masked, as in answers.

        Args:
            path: Path of the file, as in the arguments of a tool: absolute, or relative to a root.
            max_bytes: Maximum size of the file, in bytes; by default 32 MiB. `None` is no limit.

        Raises:
            AccessDeniedError: `path` is outside of the roots, or denied.
            FileNotFoundError: `path` does not exist.
            IsADirectoryError: `path` is a directory.
            PermissionError: The file cannot be read.
            ValueError: The file is larger than `max_bytes`, `max_bytes` is negative, or `path` is neither a file nor a
                directory (e.g. a pipe).
            TimeoutError: The secrets were not masked in time.
        """
        from ripwrap.workspace.raw_files import run_read_bytes

        return await run_read_bytes(self._tools.runner, self._tools.settings, path, max_bytes)

    async def file_info(self, path: str = ".") -> FileInfo:
        """Return a file's or directory's kind, size, and time of the last change. This is not a tool.

        Raises:
            AccessDeniedError: `path` is outside of the roots, or denied.
            FileNotFoundError: `path` does not exist.
            PermissionError: A directory on the way to `path` cannot be entered.
            ValueError: `path` is neither a file nor a directory (e.g. a pipe).
        """
        from ripwrap.workspace.raw_files import run_file_info

        return await run_file_info(self._tools.runner, self._tools.settings, path)

    async def list_directory(self, path: str = ".") -> tuple[FileInfo, ...]:
        """Return the entries of one directory, sorted by name, with hidden and ignored entries. This is not a tool.

        Denied entries, links that lead out of the roots, and entries that are neither files nor directories (e.g.
        pipes) are not returned. If there are several roots, the entries of `.` are the roots.

        Raises:
            AccessDeniedError: `path` is outside of the roots, or denied.
            FileNotFoundError: `path` does not exist.
            NotADirectoryError: `path` is a file.
            PermissionError: The directory cannot be read.
            TimeoutError: The entries were not listed in time.
        """
        from ripwrap.workspace.raw_files import run_list_directory

        return await run_list_directory(self._tools.runner, self._tools.settings, path)

    async def index_codebase(self) -> str:
        """Make the index that speeds up codebase_search and grep_content, or refresh it.

        The first call may take a minute in a large codebase; later calls read only files that changed. The index is a
        cache: no file of the codebase is changed.
        """
        try:
            return self.text(await self.index_codebase_result())
        except TOOL_ERRORS as error:
            return self.error_text(error)

    async def index_codebase_result(self) -> IndexCodebaseResult:
        """Return the answer of `index_codebase()` as an `IndexCodebaseResult`.

        Raises:
            ValueError: The workspace was made without `index`.
            RipwrapError: The index cannot be made or refreshed.
            BinaryError: There is no rg, or it does not run.
        """
        return await self._tools.required_indexes("index_codebase").index_codebase(self._tools.runner)

    async def index_status(self) -> str:
        """Show whether there is an index, its size, and the time of its last change; the index is not refreshed."""
        try:
            return self.text(await self.index_status_result())
        except TOOL_ERRORS as error:
            return self.error_text(error)

    async def index_status_result(self) -> IndexStatusResult:
        """Return the answer of `index_status()` as an `IndexStatusResult`.

        The errors of `index_codebase_result()` are raised.
        """
        return await self._tools.required_indexes("index_status").index_status(self._tools.runner)

    async def index_health_check(self) -> str:
        """Check whether the index is sound, and show what to do if it is not; this reads the whole index."""
        try:
            return self.text(await self.index_health_check_result())
        except TOOL_ERRORS as error:
            return self.error_text(error)

    async def index_health_check_result(self) -> IndexHealthResult:
        """Return the answer of `index_health_check()` as an `IndexHealthResult`.

        The errors of `index_codebase_result()` are raised.
        """
        return await self._tools.required_indexes("index_health_check").index_health_check(self._tools.runner)

    async def call(self, name: str, arguments: Mapping[str, Any] | str = "{}") -> str:
        """Call a tool with the arguments that a language model sent, and return its text.

        If the name or an argument is wrong, or the call fails, no error is raised. The text then begins with `Error: `
        and says what to do.

        Args:
            name: Name of a tool, or another name that language models use for it (`Grep`, `Glob`, `LS`, …).
            arguments: Mapping, or text of a JSON object. Other names of arguments (`glob`, `head_limit`, `-i`, `-A`,
                …), numbers and booleans as strings, and `null` for an omitted argument are accepted.
        """
        try:
            return self.text(await self.call_result(name, arguments))
        except TOOL_ERRORS as error:
            return self.error_text(error)

    async def call_result(
        self, name: str, arguments: Mapping[str, Any] | str = "{}", *, progress: Progress | None = None
    ) -> ToolResult:
        """Call a tool as `call()` does, and return its answer as a Pydantic model.

        The method raises the errors of the `…_result` method of the tool, and `ValueError` for an unknown tool.

        Args:
            name: See `call()`.
            arguments: See `call()`.
            progress: Function that is called with the number of matches or files that were found so far; for
                `index_codebase`, with one number: the files indexed so far plus the texts embedded so far.
        """
        return await self._tools.run(self._tools.parse(name, arguments), progress)

    def text(self, result: ToolResult) -> str:
        """Return the text that the tool itself would return for a result of its `…_result` method."""
        return self._tools.text(result)

    def structured(self, result: ToolResult) -> dict[str, Any]:
        """Return the JSON values of a result of a `…_result` method, at most `max_chars` characters of JSON."""
        return self._tools.structured(result)

    def error_text(self, error: Exception) -> str:
        """Return the text `Error: …` that the tool itself would return for an error of its `…_result` method."""
        return self._tools.error_text(error)

    async def aclose(self) -> None:
        """Close the indexes, and stop watching the roots. A later call of a tool opens the indexes again.

        The method waits until no other task uses an index; a cancellation does not end the wait. If `aclose()` is never
        called, the garbage collector closes the indexes.
        """
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._tools.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    @deprecated("complaint() was renamed to error_text()")
    def complaint(self, error: Exception) -> str:
        """Return `error_text(error)`. Deprecated."""
        return self.error_text(error)


def schemas(
    *, index: bool = False, anchors: bool = False, write: bool = False, strict: bool = False
) -> dict[str, tuple[str, dict[str, Any], dict[str, Any]]]:
    """Map each tool to its description, the JSON schema of its arguments, and the JSON schema of its answer.

    Args:
        index: Include the tools that a workspace has with `index`.
        anchors: Include the tool that a workspace has with `anchors`.
        write: Include the tool that a workspace has with `write`.
        strict: Make the schemas of arguments valid for the strict modes of providers, such as OpenAI's
            (https://platform.openai.com/docs/guides/function-calling#strict-mode). All arguments are required,
            and arguments with a default are nullable. The schema of an argument has only the keywords `type`, `items`,
            `enum`, `anyOf` and `description`. For an argument that is null, `call()` uses the default.
    """
    return {name: _schemas(name, strict) for name in tool_names(index=index, anchors=anchors, write=write)}


def _schemas(name: str, strict: bool) -> tuple[str, dict[str, Any], dict[str, Any]]:
    method = getattr(Workspace, name)
    description = (inspect.getdoc(method) or "").partition("\n\nArgs:\n")[0]
    result = inspect.signature(getattr(Workspace, f"{name}_result")).return_annotation
    arguments = schema_of(TOOLS[name], parameter_descriptions(method), strict=strict)
    return description, arguments, result.structured_schema()
