"""MCP server with the tools of a workspace, prompts, resources and completions."""

import functools
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from importlib import metadata
from typing import Any, Unpack

import anyio
from mcp import MCPError, types
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession

from ripwrap._concurrency import in_thread
from ripwrap._text import shown
from ripwrap.mcp.clients import Client, Params, ServerContext, WorkspaceOptions
from ripwrap.mcp.prompts import get_prompt, list_prompts
from ripwrap.mcp.resources import ReadParams, complete, list_resources, list_templates, read_resource
from ripwrap.options import StrPath
from ripwrap.workspace import Workspace, schemas
from ripwrap.workspace.deny import DenyRules
from ripwrap.workspace.dispatch import TOOL_ERRORS
from ripwrap.workspace.tool import find_tool, tools_of

INSTRUCTIONS = (
    "Search with grep_content first, or with codebase_search if you do not know the names in the code, and then read "
    "only the lines that you need with read_file; find_files, ls and tree show which files there are. "
    "If a search finds too much, narrow it with path, file_pattern or file_type instead of asking for more matches. "
    "An answer that was cut says so, and gives the offset of the next page."
)

READ_ONLY = types.ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
WRITES_CACHE = READ_ONLY.model_copy(update={"read_only_hint": False})
"""Annotations of a tool that writes the index: in the user's cache, or with `index="project"` in the project."""
SENDS_TEXTS = WRITES_CACHE.model_copy(update={"open_world_hint": True})
"""Annotations of a tool that sends texts to another machine, to be embedded."""
CHANGES_FILES = types.ToolAnnotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False
)
"""Annotations of the tool that changes files."""

PROGRESS_INTERVAL = 0.5
"""Seconds between two notifications of progress."""


class _Call(Params):
    """Parameters of `tools/call`."""

    name: str
    arguments: dict[str, Any] | None = None


def server(*roots: StrPath, **options: Unpack[WorkspaceOptions]) -> Server[Any]:
    """Return a `Server` of the SDK, to run over any transport or to pass to a `Client` of the SDK.

    Args:
        roots: Directories that may be searched. If there are none, the server uses the roots that the client names, but
            not over HTTP.
        options: Options of the `Workspace`.

    Raises:
        OSError: A root is not an existing directory.
        ValueError: An option of the `Workspace` is invalid.
        EmbeddingError: The embedder is unknown, or its package or key is missing.
    """
    DenyRules(options.get("deny", ()))  # raise for an invalid glob now, and not only when the client names its roots
    options = _with_embedder(options)
    given = Workspace(*roots, **options) if roots else None

    @asynccontextmanager
    async def lifespan(_: Server[Client]) -> AsyncGenerator[Client]:
        client = Client(given, options)
        try:
            yield client
        finally:
            await client.aclose()

    made = Server(
        "ripwrap",
        version=metadata.version("ripwrap"),
        title="ripwrap",
        instructions=INSTRUCTIONS,
        lifespan=lifespan,
        on_list_tools=_list,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_completion=complete,
    )
    made.add_request_handler("tools/call", _Call, _call)
    made.add_request_handler("resources/read", ReadParams, read_resource)
    made.add_notification_handler("notifications/roots/list_changed", types.NotificationParams, _forget)
    return made


def _with_embedder(options: WorkspaceOptions) -> WorkspaceOptions:
    """Replace the name of an embedder in the options by the embedder, so that a wrong name fails at the start."""
    named, weight = options.get("embedder"), options.get("hybrid_weight")
    if named is None and weight is None:
        return options
    from ripwrap.workspace.index_tools import check_index_options  # late: it imports SQLite

    return {**options, "embedder": check_index_options(options.get("index", False), named, weight)}


async def _list(context: ServerContext, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    return types.ListToolsResult(tools=_tools_of(context.lifespan_context))


def _tools_of(client: Client) -> list[types.Tool]:
    return _tools(
        index=client.has_index, anchors=client.has_anchors, write=client.may_write, sends_texts=client.sends_texts
    )


@functools.cache
def _tools(*, index: bool, anchors: bool, write: bool, sends_texts: bool) -> list[types.Tool]:
    writes_index = (SENDS_TEXTS if sends_texts else WRITES_CACHE) if index else READ_ONLY
    annotations = {"nothing": READ_ONLY, "index": writes_index, "files": CHANGES_FILES}
    tools = tools_of(Workspace)
    return [
        types.Tool(
            name=name,
            title=tools[name].title,
            description=description,
            input_schema=arguments,
            output_schema=answer,
            annotations=annotations[tools[name].writes],
        )
        for name, (description, arguments, answer) in schemas(index=index, anchors=anchors, write=write).items()
    ]


async def _forget(context: ServerContext, _: types.NotificationParams) -> None:
    context.lifespan_context.forget()


async def _call(context: ServerContext, call: _Call) -> types.CallToolResult | types.InputRequiredResult:
    tools = tools_of(Workspace)
    try:
        tool = find_tool(call.name, [tools[one.name] for one in _tools_of(context.lifespan_context)])
    except ValueError as error:
        raise MCPError(types.INVALID_PARAMS, shown(str(error), lines=True)) from None
    try:
        workspace = await context.lifespan_context.workspace(context, call)
    except TOOL_ERRORS as error:
        return _error_result(f"Error: {error}")
    if isinstance(workspace, types.InputRequiredResult):
        return workspace
    under_way = _RunningCall(tool.counts)
    async with anyio.create_task_group() as group:
        group.start_soon(under_way.report, context.session)
        await under_way.run(workspace, tool.name, call.arguments or {})
        group.cancel_scope.cancel()
    return under_way.result


def _error_result(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=_content(text), is_error=True)


def _content(text: str) -> list[types.ContentBlock]:
    # A message with a lone surrogate would end the server.
    return [types.TextContent(text=shown(text, lines=True))]


class _RunningCall:
    """State of a running call: the number of matches or files so far, the noun for that number, and the result."""

    def __init__(self, noun: str) -> None:
        self.found = 0
        self._noun = noun
        self.result = types.CallToolResult(content=[])

    async def run(self, workspace: Workspace, name: str, arguments: dict[str, Any]) -> None:
        try:
            result = await workspace.call_result(name, arguments, progress=self._note_found)
            text = _content(workspace.text(result))
            # In a thread, because the values may have megabytes before they are cut.
            values = await in_thread(partial(workspace.structured, result))
            self.result = types.CallToolResult(content=text, structured_content=values)
        except TOOL_ERRORS as error:
            self.result = _error_result(workspace.error_text(error))

    async def report(self, session: ServerSession) -> None:
        """Report progress until cancelled. In the protocol, each number must be larger than the number before it."""
        reported = -1
        while True:
            await anyio.sleep(PROGRESS_INTERVAL)
            if self.found > reported:
                reported = self.found
                await session.report_progress(reported, message=f"{reported:,} {self._noun}")

    def _note_found(self, found: int) -> None:
        self.found = found
