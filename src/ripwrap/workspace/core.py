"""Tools with which agents search, list, read and change files: typed methods, which agent frameworks can register.

    workspace = ripwrap.Workspace("src")
    agent = Agent(model, tools=workspace.tools)

Frameworks make the schema of a tool from its signature and docstring, but each framework supports only a part of
Python's types (docs/how-to/agent-frameworks.md). So the methods that return a text have plain types, no `None` as
default, and one docstring line for each argument. `ToolMethods` copies these lines into the annotations.
"""

import inspect
from collections.abc import Awaitable, Mapping
from types import TracebackType
from typing import Any, Self

import anyio
import anyio.to_thread

from ripwrap._ripgrep.runner import AsyncRunner
from ripwrap.workspace.arguments import TOOL_ERRORS, parameter_descriptions, parse_arguments, schema_of, tool_names
from ripwrap.workspace.codebase_search import CodebaseSearchMethods
from ripwrap.workspace.dispatch import BaseWorkspace
from ripwrap.workspace.find_files import FindFilesMethods
from ripwrap.workspace.find_references import FindReferencesMethods
from ripwrap.workspace.grep_content import GrepContentMethods
from ripwrap.workspace.history import HistoryMethods
from ripwrap.workspace.index_codebase_tools import IndexMethods
from ripwrap.workspace.listing import ListingMethods
from ripwrap.workspace.raw_files import RawFileMethods
from ripwrap.workspace.read_file import ReadFileMethods
from ripwrap.workspace.replace_content import ReplaceContentMethods
from ripwrap.workspace.resolve import ResolveMethods
from ripwrap.workspace.results import ToolResult
from ripwrap.workspace.scope import ReportProgress
from ripwrap.workspace.tool import AnyTool, Tool, tools_of


class Workspace(
    GrepContentMethods,
    FindFilesMethods,
    ListingMethods,
    CodebaseSearchMethods,
    FindReferencesMethods,
    ReadFileMethods,
    HistoryMethods,
    IndexMethods,
    ResolveMethods,
    ReplaceContentMethods,
    RawFileMethods,
    BaseWorkspace,
):
    """Tools with which agents search, list and read files in some directories.

    There are eight tools: `grep_content`, `find_files`, `ls`, `tree`, `codebase_search`, `find_references`, `read_file`
    and `history`. Each tool returns a text for a language model. The text has a maximum length and a fixed order, and
    says what is left out. If an argument is wrong or the call fails, the tool does not raise an error. It returns a
    text that begins with `Error: ` and says what to do. Each tool has a twin whose name ends in `_result`. The twin
    returns a Pydantic model, whose `str()` is the text, and raises errors.

    With `index` there are three more tools: `index_codebase`, `index_status` and `index_health_check`. After
    `index_codebase` has made the index, `codebase_search` refreshes the index and searches in it. `grep_content` then
    searches only the files that may have a match (see `Index.grep()`). It does not use the index in these cases: its
    arguments choose files by name or type, include hidden or ignored files, or set `rev` or `inside`; `path` is a file
    or stands for several roots; the pattern can match without a fixed text of three or more bytes. `codebase_search`
    and `grep_content` search without the index if the index cannot be used, or does not contain the path (for example a
    hidden file).

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
        tools: Methods to register in a framework: the eight tools, and the further tools of `index`, `anchors` and
            `write` if these are set.
        SECRETS: Globs for `deny` that match files which usually contain keys, passwords or tokens.
    """

    _runner_type = AsyncRunner

    @property
    def tools(self) -> tuple[Tool[Awaitable[str]], ...]:
        """Methods to register as tools in a framework."""
        return tuple(getattr(self, name) for name in self._tools.names)

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
        self, name: str, arguments: Mapping[str, Any] | str = "{}", *, progress: ReportProgress | None = None
    ) -> ToolResult:
        """Call a tool as `call()` does, and return its answer as a Pydantic model.

        The method raises the errors of the `…_result` method of the tool, and `ValueError` for an unknown tool.

        Args:
            name: See `call()`.
            arguments: See `call()`.
            progress: Function that is called with the number of matches or files that were found so far; for
                `index_codebase`, with one number: the files indexed so far plus the texts embedded so far.
        """
        tool, given = self._tools.find(name, arguments)
        return await tool.run(self._tools.begin(progress), parse_arguments(tool.arguments, given))

    async def aclose(self) -> None:
        """Close the indexes. A later call of a tool opens the indexes again.

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
        name: (*definition_of(tools[name], strict=strict), tools[name].result.structured_schema())
        for name in tool_names(tools, index=index, anchors=anchors, write=write)
    }


def definition_of(tool: AnyTool, *, strict: bool = False) -> tuple[str, dict[str, Any]]:
    """Return the description of a tool and the JSON schema of its arguments; `schemas()` describes `strict`."""
    method = getattr(Workspace, tool.name)
    description = (inspect.getdoc(method) or "").partition("\n\nArgs:\n")[0]
    return description, schema_of(tool.arguments, parameter_descriptions(method), strict=strict)
