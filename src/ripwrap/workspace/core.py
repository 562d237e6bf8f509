"""Tools with which agents search, list, read and change files: typed methods, which agent frameworks can register.

    workspace = ripwrap.Workspace("src")
    agent = Agent(model, tools=workspace.tools)

Frameworks make the schema of a tool from its signature and docstring, but each framework supports only a part of
Python's types (docs/how-to/agent-frameworks.md). So the methods that return a text have plain types, no `None` as
default, and one docstring line for each argument. `ToolMethods` copies these lines into the annotations.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import anyio
import anyio.to_thread
from typing_extensions import deprecated

from ripwrap._ripgrep.runner import AsyncRunner
from ripwrap.binary.resolver import Rg
from ripwrap.options import Directories, ShowDenied, StrPath, check_timeout
from ripwrap.sources.repository import real_directories
from ripwrap.workspace.arguments import parameter_descriptions, schema_of
from ripwrap.workspace.codebase_search_tool import CodebaseSearchMethods
from ripwrap.workspace.deny import SECRET_FILES
from ripwrap.workspace.dispatch import MAX_LINE, MAX_READ_BYTES, TIMEOUT, TOOL_ERRORS, ToolDispatcher
from ripwrap.workspace.find_files_tool import FindFilesMethods
from ripwrap.workspace.grep_content_tool import GrepContentMethods
from ripwrap.workspace.index_codebase_tools import IndexMethods
from ripwrap.workspace.listing_tools import ListingMethods
from ripwrap.workspace.read_file import ReadFileMethods
from ripwrap.workspace.replace_content_tool import ReplaceContentMethods
from ripwrap.workspace.resolve import ResolveMethods
from ripwrap.workspace.results import MAX_CHARS, FileInfo, ToolResult
from ripwrap.workspace.sandbox import Sandbox
from ripwrap.workspace.scope import Progress, Settings
from ripwrap.workspace.tool import AnyTool, tool_names, tools_of

if TYPE_CHECKING:
    from ripwrap.index.embeddings.protocol import Embedder
else:
    Embedder = Any  # annotations can be evaluated without loading the index

Tool: TypeAlias = Callable[..., Awaitable[str]]


class Workspace(
    GrepContentMethods,
    FindFilesMethods,
    ListingMethods,
    CodebaseSearchMethods,
    ReadFileMethods,
    IndexMethods,
    ResolveMethods,
    ReplaceContentMethods,
):
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
        redact: bool = False,
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
            redact: Mask keys, tokens and passwords in the lines of all answers, as `[redacted: github-token]`.
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
                given without `index`, or `hybrid_weight` is given without `embedder`.
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
            redact=redact,
            anchors=anchors,
            write=write,
            repositories=real_directories(repositories),
        )
        self._tools = ToolDispatcher(
            tools_of(type(self)), settings, index, AsyncRunner(rg), embedder=embedder, hybrid_weight=hybrid_weight
        )

    @property
    def roots(self) -> tuple[str, ...]:
        """Real paths of the directories that the tools may use."""
        return self._tools.settings.sandbox.roots

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Methods to register as tools in a framework."""
        return tuple(getattr(self, name) for name in self._tools.names)

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
        return await self._tools.run(self._tools.find(name), arguments, progress)

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
    tools = tools_of(Workspace)
    return {
        name: _schemas(tools[name], strict) for name in tool_names(tools, index=index, anchors=anchors, write=write)
    }


def _schemas(tool: AnyTool, strict: bool) -> tuple[str, dict[str, Any], dict[str, Any]]:
    method = getattr(Workspace, tool.name)
    description = (inspect.getdoc(method) or "").partition("\n\nArgs:\n")[0]
    arguments = schema_of(tool.arguments, parameter_descriptions(method), strict=strict)
    return description, arguments, tool.result.structured_schema()
