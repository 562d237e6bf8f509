"""An MCP server that offers a workspace's tools over stdio or streamable HTTP; needs the extra `mcp`.

The folders are those that it is given, or else the client's roots. Those are asked for when a tool is first called, and
again when the client says that they have changed; over HTTP never, where whoever can connect could name any folder.
"""

import functools
import logging
import os
import sys
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from importlib import metadata
from typing import Any, Literal, TypeAlias, Unpack
from urllib.parse import unquote_to_bytes, urlsplit
from urllib.request import url2pathname

import anyio
from mcp import MCPError, types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession
from pydantic import BaseModel
from typing_extensions import TypedDict

from ripwrap import binary
from ripwrap._serve import serve_http, serve_stdio
from ripwrap._text import raw_bytes
from ripwrap._tools import MISTAKES, without_rg
from ripwrap.binary.resolver import Rg, find
from ripwrap.binary.settings import offline
from ripwrap.errors import BinaryError
from ripwrap.options import StrPath
from ripwrap.workspace import Workspace, schemas

__all__ = ["Transport", "WorkspaceOptions", "serve", "server"]

Transport: TypeAlias = Literal["stdio", "http"]

_INSTRUCTIONS = (
    "Search with grep_content first, or with codebase_search where you do not know what the code calls a thing, and "
    "then read only the files and lines that they name; find_files, ls and tree show which files there are. "
    "Narrow a search that finds too much with path, file_pattern or file_type instead of asking for more matches. "
    "An answer that was cut says so, and names the offset that gives what follows."
)

_LOGGER = logging.getLogger("ripwrap")

_TITLES = {
    "grep_content": "Search in files",
    "find_files": "Find files by name",
    "ls": "List a folder",
    "tree": "Show the tree of folders",
    "codebase_search": "Search by question or name",
    "index_codebase": "Make or refresh the index",
    "index_status": "Show what is indexed",
    "index_health_check": "Check the index",
}
_HARMLESS = types.ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
_CACHING = _HARMLESS.model_copy(update={"read_only_hint": False})
"""Of a tool that writes the index: a cache, which with `index="project"` is a folder in the project."""
_NO_ROOTS = "No folder may be searched: start the server with --root DIR, or have the client name its roots."

_INTERVAL = 0.5  # Seconds between two notifications of progress.
_PATIENCE = 30.0  # Seconds that a client may take to name its roots.


class WorkspaceOptions(TypedDict, total=False):
    """What a `Workspace` takes beside its roots."""

    follow: bool
    outer_ignore: bool
    guard: bool
    timeout: float | None
    max_chars: int
    max_line: int
    rg: Rg
    index: bool | StrPath


class _NoRootsError(ValueError):
    """Nobody has named a folder."""


class _Root(BaseModel):
    uri: str  # The SDK's own has `FileUrl`, and refuses all roots for one that is something else.


class _Roots(BaseModel):
    roots: list[_Root]


class _Call(types.RequestParams):
    """The parameters of `tools/call`, with what a client of protocol 2026-07-28 answers as it came."""

    name: str
    arguments: dict[str, Any] | None = None
    input_responses: dict[str, Any] | None = None


class _Client:
    """The workspace of a client: that of the folders that were given, or of its roots as they were last read."""

    def __init__(self, given: Workspace | None, options: WorkspaceOptions) -> None:
        self.has_index = options.get("index", False) is not False
        self._given = given
        self._options = options
        self._read: Workspace | None = None
        self._made: tuple[list[str], Workspace] | None = None
        self._changes = 0
        self._asking = anyio.Lock()

    def forget(self) -> None:
        """Read the roots anew when they are next needed."""
        self._read = None
        self._changes += 1

    async def workspace(self, context: "_Context", call: _Call) -> Workspace | types.InputRequiredResult:
        """The workspace, or what the client is to be asked for first."""
        if self._given is not None:
            return self._given
        capabilities = context.session.client_capabilities
        if context.request is not None or capabilities is None or capabilities.roots is None:
            raise _NoRootsError(_NO_ROOTS)
        if context.session.can_send_request:
            return await self._asked(context.session)
        # From 2026-07-28 on a server asks nothing by itself: it answers with a question, and is called again.
        if call.input_responses is None:
            return types.InputRequiredResult(input_requests={"roots": types.ListRootsRequest()})
        return self._of(_Roots.model_validate(call.input_responses.get("roots") or {"roots": []}))

    async def _asked(self, session: ServerSession) -> Workspace:
        async with self._asking:
            while self._read is None:
                changes = self._changes
                try:
                    roots = await session.send_request(types.ListRootsRequest(), _Roots, _PATIENCE)
                except (MCPError, ValueError) as error:
                    why = str(error).partition("\n")[0]
                    raise _NoRootsError(f"The client did not name its roots: {why}. {_NO_ROOTS}") from error
                made = self._of(roots)
                if changes == self._changes:
                    self._read = made
            return self._read

    def _of(self, named: _Roots) -> Workspace:
        folders = list(_folders(root.uri for root in named.roots))
        if not folders:
            raise _NoRootsError(_NO_ROOTS)
        if self._made is None or self._made[0] != folders:
            self._made = (folders, Workspace(*folders, **self._options))
        return self._made[1]


_Context: TypeAlias = ServerRequestContext[_Client, Any]


def server(*roots: StrPath, **options: Unpack[WorkspaceOptions]) -> Server[Any]:
    """A server of the SDK, to be run over any transport, or handed to a `Client` of it.

    Args:
        roots: The folders that may be searched; without any, those that the client names, unless it comes over HTTP.
        options: What the `Workspace` takes beside them.

    Raises:
        OSError: A root is not a directory that is there.
    """
    given = Workspace(*roots, **options) if roots else None

    @asynccontextmanager
    async def lifespan(_: Server[_Client]) -> AsyncGenerator[_Client]:
        yield _Client(given, options)

    made = Server(
        "ripwrap",
        version=metadata.version("ripwrap"),
        title="ripwrap",
        instructions=_INSTRUCTIONS,
        lifespan=lifespan,
        on_list_tools=_list,
    )
    made.add_request_handler("tools/call", _Call, _call)
    made.add_notification_handler("notifications/roots/list_changed", types.NotificationParams, _forget)
    return made


async def _list(context: _Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    return types.ListToolsResult(tools=_tools(index=context.lifespan_context.has_index))


@functools.cache
def _tools(*, index: bool) -> list[types.Tool]:
    writing = ("index_codebase", "codebase_search") if index else ()  # which refreshes it
    return [
        types.Tool(
            name=name,
            title=_TITLES[name],
            description=description,
            input_schema=arguments,
            output_schema=answer,
            annotations=_CACHING if name in writing else _HARMLESS,
        )
        for name, (description, arguments, answer) in schemas(index=index).items()
    ]


async def _forget(context: _Context, _: types.NotificationParams) -> None:
    context.lifespan_context.forget()


async def _call(context: _Context, call: _Call) -> types.CallToolResult | types.InputRequiredResult:
    tools = _tools(index=context.lifespan_context.has_index)
    if not any(tool.name == call.name for tool in tools):
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {_sendable(call.name)}")
    try:
        workspace = await context.lifespan_context.workspace(context, call)
    except MISTAKES as error:
        return _failed(f"Error: {error}")
    if isinstance(workspace, types.InputRequiredResult):
        return workspace
    under_way = _UnderWay("files done" if call.name == "index_codebase" else "found so far")
    async with anyio.create_task_group() as group:
        group.start_soon(under_way.report, context.session)
        await under_way.carry_out(workspace, call)
        group.cancel_scope.cancel()
    return under_way.result


def _failed(complaint: str) -> types.CallToolResult:
    return types.CallToolResult(content=_content(complaint), is_error=True)


def _content(text: str) -> list[types.ContentBlock]:
    # A path that is not UTF-8 has lone surrogates, and one of those in a message would end the server.
    return [types.TextContent(text=_sendable(text))]


def _sendable(text: str) -> str:
    return raw_bytes(text).decode("utf-8", "replace")


class _UnderWay:
    """A call: how many matches or files it has come across, what that means, and its result."""

    def __init__(self, means: str) -> None:
        self.found = 0
        self._means = means
        self.result = types.CallToolResult(content=[])

    async def carry_out(self, workspace: Workspace, call: _Call) -> None:
        try:
            result = await workspace.call_result(call.name, call.arguments or {}, progress=self._come_across)
            structured = result.model_dump(mode="json")
            self.result = types.CallToolResult(content=_content(workspace.text(result)), structured_content=structured)
        except MISTAKES as error:
            self.result = _failed(workspace.complaint(error))

    async def report(self, session: ServerSession) -> None:
        """Tell a client that wants to know; the protocol wants every number to be more than the one before."""
        told = -1
        while True:
            await anyio.sleep(_INTERVAL)
            if self.found > told:
                told = self.found
                await session.report_progress(told, message=f"{told:,} {self._means}")

    def _come_across(self, found: int) -> None:
        self.found = found


def _folders(uris: Iterable[str]) -> Iterable[str]:
    for uri in uris:
        folder, problem = _folder(uri)
        if problem:
            _LOGGER.warning("the client's root %s is left out: it is %s", _sendable(uri), problem)
        else:
            yield folder


def _folder(uri: str) -> tuple[str, str]:
    """The path of a root, and why it cannot be one."""
    try:
        parts = urlsplit(uri)
    except ValueError as error:
        return "", str(error)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return "", "no file:// address of this machine"
    path = url2pathname(parts.path) if os.name == "nt" else os.fsdecode(unquote_to_bytes(parts.path))
    return path, "" if os.path.isabs(path) and os.path.isdir(path) else "no directory that is here"


def serve(
    roots: Sequence[StrPath] = (),
    *,
    transport: Transport = "stdio",
    host: str = "127.0.0.1",
    port: int = 8000,
    allowed_hosts: Sequence[str] = (),
    **options: Unpack[WorkspaceOptions],
) -> None:
    """Serve until the client leaves, or a signal comes; what there is to say goes to stderr.

    Args:
        roots: The folders that may be searched; without any, those that the client names, which it may over stdio.
        transport: `"stdio"`, or `"http"` for streamable HTTP at `http://HOST:PORT/mcp`.
        host: The address to listen at.
        port: The port to listen at; 0 takes any that is free.
        allowed_hosts: Further names under which clients reach the server, e.g. behind a proxy; requests that name any
            other host are refused, since they may come from a web page whose name was bound to this address.
        options: What the `Workspace` takes.

    Raises:
        ValueError: There are no roots over HTTP.
        OSError: A root is not a directory that is there, or the address cannot be listened at.
    """
    logging.basicConfig(format="%(name)s: %(message)s", stream=sys.stderr)
    _LOGGER.setLevel(logging.INFO)
    _LOGGER.addFilter(_Once())
    if transport == "http" and not roots:
        raise ValueError("over HTTP the folders must be given (--root DIR), since whoever connects could name any")
    made = server(*roots, **options)
    _warn_without_rg(options.get("rg"))
    if transport == "stdio":
        serve_stdio(made)
    else:
        serve_http(made, host, port, allowed_hosts)


class _Once(logging.Filter):
    """Lets nothing through twice: roots may be read with every call, and each workspace says that there is no rg."""

    def __init__(self) -> None:
        super().__init__()
        self._said: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        said = record.getMessage()
        new = said not in self._said
        self._said.add(said)
        return new


def _warn_without_rg(rg: Rg) -> None:
    places = binary.explain(rg)
    if any(place.usable for place in places) or (places[-1].source == "download" and not offline()):
        return
    try:
        find(rg)
    except BinaryError as error:
        _LOGGER.warning("%s", without_rg(error))
