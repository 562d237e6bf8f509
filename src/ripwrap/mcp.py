"""MCP server that offers the tools of a workspace over stdio or streamable HTTP; needs the extra `mcp`.

The server searches the folders that it was started with, or else the roots of the client. It asks for those when a tool
is first called, and again when the client says that they have changed. Over HTTP it never asks: any program that
connects could name any folder.
"""

import functools
import ipaddress
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from importlib import metadata
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack
from urllib.parse import unquote_to_bytes, urlsplit
from urllib.request import url2pathname

import anyio
from mcp import MCPError, types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import BaseModel
from starlette.applications import Starlette
from typing_extensions import TypedDict

from ripwrap import binary
from ripwrap._text import raw_bytes
from ripwrap._windows import IS_WINDOWS, is_foreign_path
from ripwrap.binary.resolver import Rg, find
from ripwrap.binary.settings import offline
from ripwrap.errors import BinaryError
from ripwrap.options import StrPath
from ripwrap.workspace import Workspace, schemas
from ripwrap.workspace.arguments import tool_name
from ripwrap.workspace.dispatch import TOOL_ERRORS, without_rg

if TYPE_CHECKING:
    from ripwrap.index.embeddings.protocol import Embedder

__all__ = ["Transport", "WorkspaceOptions", "serve", "server"]

Transport: TypeAlias = Literal["stdio", "http"]

INSTRUCTIONS = (
    "Search with grep_content first, or with codebase_search if you do not know the names in the code, and then read "
    "only the lines that you need with read_file; find_files, ls and tree show which files there are. "
    "If a search finds too much, narrow it with path, file_pattern or file_type instead of asking for more matches. "
    "An answer that was cut says so, and gives the offset of the next page."
)

_LOGGER = logging.getLogger("ripwrap")

TOOL_TITLES = {
    "grep_content": "Search in files",
    "find_files": "Find files by name",
    "ls": "List a folder",
    "tree": "Show the tree of folders",
    "codebase_search": "Search by question or name",
    "read_file": "Read lines of a file",
    "index_codebase": "Make or refresh the index",
    "index_status": "Show what is indexed",
    "index_health_check": "Check the index",
}
READ_ONLY = types.ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
WRITES_CACHE = READ_ONLY.model_copy(update={"read_only_hint": False})
"""Annotations of a tool that writes the index: a cache, which with `index="project"` is a folder in the project."""
NO_ROOTS_MESSAGE = "No folder may be searched: start the server with --root DIR, or have the client name its roots."

LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")

PROGRESS_INTERVAL = 0.5
"""Seconds between two notifications of progress."""

ROOTS_TIMEOUT = 30.0
"""Seconds that a client may take to name its roots."""


class WorkspaceOptions(TypedDict, total=False):
    """Options of a `Workspace` besides its roots."""

    follow: bool
    outer_ignore: bool
    guard: bool
    timeout: float | None
    max_chars: int
    max_line: int
    rg: Rg
    index: bool | StrPath
    embedder: "str | Embedder | None"
    hybrid_weight: float | None


class _NoRootsError(ValueError):
    """Error of a call when no folder is named."""


class _Root(BaseModel):
    uri: str  # The SDK's own model has `FileUrl`, and rejects all roots if one is not a file:// address.


class _Roots(BaseModel):
    roots: list[_Root]


class _Call(types.RequestParams):
    """Parameters of `tools/call`, with the unchecked answers of a client of protocol 2026-07-28."""

    name: str
    arguments: dict[str, Any] | None = None
    input_responses: dict[str, Any] | None = None


class _Client:
    """Workspace of a client: over the folders that the server was given, or over the roots that were last read."""

    def __init__(self, given: Workspace | None, options: WorkspaceOptions) -> None:
        self.has_index = options.get("index", False) is not False
        self._given = given
        self._options = options
        self._read: Workspace | None = None
        self._made: tuple[list[str], Workspace] | None = None
        self._changes = 0
        self._asking = anyio.Lock()

    async def aclose(self) -> None:
        """Close the indexes, and stop watching the roots."""
        for workspace in (self._given, self._made and self._made[1]):
            if workspace is not None:
                await workspace.aclose()

    def forget(self) -> None:
        """Read the roots again when they are next needed."""
        self._read = None
        self._changes += 1

    async def workspace(self, context: "_Context", call: _Call) -> Workspace | types.InputRequiredResult:
        """Return the workspace, or a request to the client to name its roots first."""
        if self._given is not None:
            return self._given
        capabilities = context.session.client_capabilities
        if context.request is not None or capabilities is None or capabilities.roots is None:
            raise _NoRootsError(NO_ROOTS_MESSAGE)
        if context.session.can_send_request:
            return await self._ask_for_roots(context.session)
        # From protocol 2026-07-28 on a server sends no requests: it answers with one, and is called again.
        if call.input_responses is None:
            return types.InputRequiredResult(input_requests={"roots": types.ListRootsRequest()})
        return self._of(_Roots.model_validate(call.input_responses.get("roots") or {"roots": []}))

    async def _ask_for_roots(self, session: ServerSession) -> Workspace:
        async with self._asking:
            while self._read is None:
                changes = self._changes
                try:
                    roots = await session.send_request(types.ListRootsRequest(), _Roots, ROOTS_TIMEOUT)
                except (MCPError, ValueError) as error:
                    why = str(error).partition("\n")[0]
                    raise _NoRootsError(f"The client did not name its roots: {why}. {NO_ROOTS_MESSAGE}") from error
                made = self._of(roots)
                if changes == self._changes:
                    self._read = made
            return self._read

    def _of(self, named: _Roots) -> Workspace:
        folders = list(_folders(root.uri for root in named.roots))
        if not folders:
            raise _NoRootsError(NO_ROOTS_MESSAGE)
        if self._made is None or self._made[0] != folders:
            self._made = (folders, Workspace(*folders, **self._options))
        return self._made[1]


_Context: TypeAlias = ServerRequestContext[_Client, Any]


def server(*roots: StrPath, **options: Unpack[WorkspaceOptions]) -> Server[Any]:
    """Return a server of the SDK, to run over any transport or to pass to a `Client` of the SDK.

    Args:
        roots: Folders that may be searched. Without any: the roots that the client names, unless it comes over HTTP.
        options: Options of the `Workspace`.

    Raises:
        OSError: A root is not an existing directory.

    It also raises what `Workspace` does.
    """
    options = _with_embedder(options)
    given = Workspace(*roots, **options) if roots else None

    @asynccontextmanager
    async def lifespan(_: Server[_Client]) -> AsyncGenerator[_Client]:
        client = _Client(given, options)
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
    )
    made.add_request_handler("tools/call", _Call, _call)
    made.add_notification_handler("notifications/roots/list_changed", types.NotificationParams, _forget)
    return made


def _with_embedder(options: WorkspaceOptions) -> WorkspaceOptions:
    """Return the options with the embedder that they name; a wrong name fails at once, not in the first call."""
    named, weight = options.get("embedder"), options.get("hybrid_weight")
    if named is None and weight is None:
        return options
    from ripwrap.workspace.index_tools import check_index_options  # SQLite, only now

    return {**options, "embedder": check_index_options(options.get("index", False), named, weight)}


async def _list(context: _Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    return types.ListToolsResult(tools=_tools(index=context.lifespan_context.has_index))


@functools.cache
def _tools(*, index: bool) -> list[types.Tool]:
    writing = ("index_codebase", "codebase_search") if index else ()  # codebase_search refreshes the index
    return [
        types.Tool(
            name=name,
            title=TOOL_TITLES[name],
            description=description,
            input_schema=arguments,
            output_schema=answer,
            annotations=WRITES_CACHE if name in writing else READ_ONLY,
        )
        for name, (description, arguments, answer) in schemas(index=index).items()
    ]


async def _forget(context: _Context, _: types.NotificationParams) -> None:
    context.lifespan_context.forget()


async def _call(context: _Context, call: _Call) -> types.CallToolResult | types.InputRequiredResult:
    known = tuple(tool.name for tool in _tools(index=context.lifespan_context.has_index))
    try:
        name = tool_name(call.name, known)
    except ValueError as error:
        raise MCPError(types.INVALID_PARAMS, _as_utf8(str(error))) from None
    try:
        workspace = await context.lifespan_context.workspace(context, call)
    except TOOL_ERRORS as error:
        return _error_result(f"Error: {error}")
    if isinstance(workspace, types.InputRequiredResult):
        return workspace
    under_way = _RunningCall("files done" if name == "index_codebase" else "found so far")
    async with anyio.create_task_group() as group:
        group.start_soon(under_way.report, context.session)
        await under_way.run(workspace, name, call.arguments or {})
        group.cancel_scope.cancel()
    return under_way.result


def _error_result(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=_content(text), is_error=True)


def _content(text: str) -> list[types.ContentBlock]:
    # A path that is not UTF-8 has lone surrogates, and one of those in a message would end the server.
    return [types.TextContent(text=_as_utf8(text))]


def _as_utf8(text: str) -> str:
    return raw_bytes(text).decode("utf-8", "replace")


class _RunningCall:
    """Call that is running: number of matches or files so far, the noun for that number, and the result."""

    def __init__(self, noun: str) -> None:
        self.found = 0
        self._noun = noun
        self.result = types.CallToolResult(content=[])

    async def run(self, workspace: Workspace, name: str, arguments: dict[str, Any]) -> None:
        try:
            result = await workspace.call_result(name, arguments, progress=self._note_found)
            text = _content(workspace.text(result))
            self.result = types.CallToolResult(content=text, structured_content=result.structured())
        except TOOL_ERRORS as error:
            self.result = _error_result(workspace.error_text(error))

    async def report(self, session: ServerSession) -> None:
        """Report progress until cancelled; the protocol wants each number to be larger than the one before."""
        reported = -1
        while True:
            await anyio.sleep(PROGRESS_INTERVAL)
            if self.found > reported:
                reported = self.found
                await session.report_progress(reported, message=f"{reported:,} {self._noun}")

    def _note_found(self, found: int) -> None:
        self.found = found


def _folders(uris: Iterable[str]) -> Iterable[str]:
    for uri in uris:
        folder, problem = _folder(uri)
        if problem:
            _LOGGER.warning("the client's root %s is left out: %s", _as_utf8(uri), problem)
        else:
            yield folder


def _folder(uri: str) -> tuple[str, str]:
    """Return the path of a root, and the reason why it cannot be used; an empty reason means that it can."""
    try:
        parts = urlsplit(uri)
    except ValueError as error:
        return "", str(error)
    foreign = "it is not a file:// address of this machine"
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return "", foreign
    path = url2pathname(parts.path) if IS_WINDOWS else os.fsdecode(unquote_to_bytes(parts.path))
    if IS_WINDOWS and is_foreign_path(path):
        return "", foreign
    return path, "" if os.path.isabs(path) and os.path.isdir(path) else "it is not an existing directory"


def serve(
    roots: Sequence[StrPath] = (),
    *,
    transport: Transport = "stdio",
    host: str = "127.0.0.1",
    port: int = 8000,
    allowed_hosts: Sequence[str] = (),
    **options: Unpack[WorkspaceOptions],
) -> None:
    """Serve until the client disconnects or a signal arrives; log to stderr.

    Args:
        roots: Folders that may be searched. Without any: the roots that the client names, over stdio only.
        transport: `"stdio"`, or `"http"` for streamable HTTP at `http://HOST:PORT/mcp`.
        host: Address to listen at.
        port: Port to listen at; 0 takes any free port.
        allowed_hosts: Further host names of the server, e.g. behind a proxy. Requests for other hosts are refused,
            because a web page could have bound its name to this address (DNS rebinding).
        options: Options of the `Workspace`.

    Raises:
        ValueError: There are no roots over HTTP.
        OSError: A root is not an existing directory, or the server cannot listen at the address.
    """
    logging.basicConfig(format="%(name)s: %(message)s", stream=sys.stderr)
    _LOGGER.setLevel(logging.INFO)
    _LOGGER.addFilter(_OnceFilter())
    if transport == "http" and not roots:
        raise ValueError("an HTTP server needs at least one folder: pass --root DIR; clients cannot name any over HTTP")
    made = server(*roots, **options)
    _warn_without_rg(options.get("rg"))
    if transport == "stdio":
        serve_stdio(made)
    else:
        serve_http(made, host, port, allowed_hosts)


class _OnceFilter(logging.Filter):
    """Filter that drops repeated messages: roots may be read with every call, and each workspace warns without rg."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        new = message not in self._seen
        self._seen.add(message)
        return new


def _warn_without_rg(rg: Rg) -> None:
    candidates = binary.explain(rg)
    if any(candidate.usable for candidate in candidates) or (candidates[-1].source == "download" and not offline()):
        return
    try:
        find(rg)
    except BinaryError as error:
        _LOGGER.warning("%s", without_rg(error))


def serve_stdio(made: Server[Any]) -> None:
    """Serve the client that started this process, until it closes stdin or a signal arrives."""
    anyio.run(_serve_stdio, made)


async def _serve_stdio(made: Server[Any]) -> None:
    received: list[signal.Signals] = []
    async with stdio_server() as (read, write):
        async with anyio.create_task_group() as group:
            group.start_soon(_note_signals, received, group.cancel_scope.cancel)
            await made.run(read, write, made.create_initialization_options())
            group.cancel_scope.cancel()
        _raise_first(received)  # Not after stdio_server(): its exit waits for a thread that reads stdin.


def serve_http(made: Server[Any], host: str, port: int, allowed_hosts: Sequence[str]) -> None:
    """Serve clients at an address, until a signal arrives.

    Raises:
        OSError: The server cannot listen at the address.
        ValueError: There is no such port.
    """
    if not 0 <= port <= 65535:
        raise ValueError(f"port must be 0 to 65535, got {port}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as listening:
        address, bound = listening.getsockname()[:2]
        url = f"http://{_bracket_ipv6(host)}:{bound}/mcp"
        if not ipaddress.ip_address(address).is_loopback:
            _LOGGER.warning(
                "%s needs no password: any program that can connect to it can read the files in the folders", url
            )
        app = made.streamable_http_app(transport_security=_security_settings(host, address, allowed_hosts))
        _LOGGER.info("listening at %s", url)
        _raise_first(anyio.run(_serve_http, app, listening))


async def _serve_http(app: Starlette, listening: socket.socket) -> list[signal.Signals]:
    """Serve until a signal arrives, and return the signal."""
    import uvicorn

    # Without this, an open stream would delay the shutdown for ever.
    config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=1)
    web = uvicorn.Server(config)
    received: list[signal.Signals] = []

    def end() -> None:
        web.should_exit = True

    async with anyio.create_task_group() as group:
        # uvicorn would raise the signal again before the calls that it has cancelled have ended.
        group.start_soon(_note_signals, received, end)
        await web.serve([listening])
        group.cancel_scope.cancel()
    return received


async def _note_signals(received: list[signal.Signals], act: Callable[[], None]) -> None:
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        return
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for number in signals:
            received.append(number)
            act()


def _raise_first(received: Sequence[signal.Signals]) -> None:
    """Raise the first signal with its default action, after every rg has ended."""
    for number in received[:1]:
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)


def _security_settings(host: str, address: str, allowed_hosts: Sequence[str]) -> TransportSecuritySettings:
    """Return the hosts and origins that requests may name, on any port, because a port may be forwarded."""
    bound = ipaddress.ip_address(address)
    names = {_bracket_ipv6(name) for name in (host, *allowed_hosts)}
    if bound.is_loopback or bound.is_unspecified:
        names.update(LOOPBACK_HOSTS)
    origins = [f"{scheme}://{name}" for scheme in ("http", "https") for name in names]
    return TransportSecuritySettings(
        allowed_hosts=[*names, *(f"{name}:*" for name in names)],
        allowed_origins=[*origins, *(f"{origin}:*" for origin in origins)],
    )


def _bracket_ipv6(host: str) -> str:
    try:
        return f"[{host}]" if ipaddress.ip_address(host).version == 6 else host
    except ValueError:
        return host
