r"""Serve clients over stdio or streamable HTTP until a signal arrives; over stdio, also end when the client leaves.

Answer messages over stdio that are not JSON, or not a message of JSON-RPC. The SDK drops them.

Language models cut texts in the middle of an emoji, and send half of a surrogate pair, such as `"\ud83d"`. RFC 8259
(section 8.2) does not say what this means. The parser of the SDK refuses it. Python's parser accepts it, so that the
answer can have the id of the request. A request with an id of another type is for the SDK a notification.

Gate before the MCP server over HTTP: which hosts and origins requests may name, and what the limits are.

The SDK counts sessions, ends idle ones, and limits the size of a request. Its check of `Host` and `Origin` compares
only the beginning of a header, so that `localhost:evil.example` passes; here both are parsed (RFC 9110, RFC 6454).
"""

import inspect
import ipaddress
import json
import logging
import os
import queue
import re
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Literal, TypeAlias, Unpack, cast

import anyio
from anyio.abc import ObjectReceiveStream
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.message import SessionMessage
from pydantic import ValidationError
from pydantic_core import from_json
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ripwrap import binary
from ripwrap._signature import lists_options
from ripwrap._system.concurrency import poll_intervals
from ripwrap._text import shown
from ripwrap.binary.cache import offline
from ripwrap.binary.resolver import Rg, find
from ripwrap.errors import BinaryError, Hint, HintedText, RipwrapError
from ripwrap.mcp.clients import WorkspaceOptions
from ripwrap.mcp.server import server
from ripwrap.options import StrPath

_AUTHORITY = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(?::(?P<port>[0-9]{1,5}))?")
_ORIGIN = re.compile(r"https?://(?P<authority>[^/?#@]+)", re.IGNORECASE)

MAX_SESSIONS = 1000
SESSION_TIMEOUT = 1800.0
MAX_REQUEST_BYTES = 4_194_304

Address = tuple[str, int | None]
"""Host and port; the port is `None` if none is named."""


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Limits of a server over HTTP."""

    max_sessions: int = MAX_SESSIONS
    session_timeout: float = SESSION_TIMEOUT
    max_request_bytes: int = MAX_REQUEST_BYTES

    def texts(self) -> Mapping[int, str]:
        """Return the text of the answer for each status by which the SDK says that a limit is reached."""
        return {
            404: "there is no such session: a session ends after "
            f"session_timeout={self.session_timeout:g} seconds without a request; initialize again, or start the "
            "server with a larger session_timeout (--session-timeout)",
            413: f"the request has more than max_request_bytes={self.max_request_bytes} bytes; send a smaller one, or "
            "start the server with a larger max_request_bytes (--max-request-bytes)",
            503: f"max_sessions={self.max_sessions} sessions are open; end one, or start the server with a larger "
            "max_sessions (--max-sessions)",
        }


def parse_authority(text: str) -> Address | None:
    """Parse `HOST` or `HOST:PORT`, also with an IPv6 address in brackets; `None` for any other text."""
    found = _AUTHORITY.fullmatch(text)
    if found is None:
        return None
    port = None if found["port"] is None else int(found["port"])
    if port is not None and not 0 < port <= 65535:
        return None
    host = found["host"].lower()
    if not host.startswith("["):
        host = host.removesuffix(".")
        return (host, port) if all(host.split(".")) else None
    try:
        return f"[{ipaddress.IPv6Address(host[1:-1])}]", port
    except ValueError:
        return None


class Gate:
    """ASGI application that refuses requests for another host or from another origin, and explains the SDK's limits."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str], limits: ServerLimits) -> None:
        """Set the application behind the gate.

        A host with a port is accepted only with that port, one without with any, because a port may be forwarded.
        """
        self._app = app
        self._texts = limits.texts()
        self._allowed: set[Address] = set()
        for host in hosts:
            address = parse_authority(host)
            if address is None:
                raise ValueError(f"an allowed host must be a name or address such as code.example, got {host!r}")
            self._allowed.add(address)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = [(name.lower(), value.decode("latin-1")) for name, value in scope["headers"]]
        hosts = [value for name, value in given if name == b"host"]
        origins = [value for name, value in given if name == b"origin"]
        if len(hosts) != 1 or not self._is_allowed(hosts[0]):
            await Response("Invalid Host header: start the server with --allowed-host", 421)(scope, receive, send)
        elif len(origins) > 1 or not all(
            (found := _ORIGIN.fullmatch(origin)) and self._is_allowed(found["authority"]) for origin in origins
        ):
            await Response("Invalid Origin header: start the server with --allowed-host", 403)(scope, receive, send)
        else:
            has_session = any(name == b"mcp-session-id" for name, _ in given)
            await self._explaining(scope, receive, send, {413, 503, *([404] if has_session else [])})

    def _is_allowed(self, authority: str) -> bool:
        address = parse_authority(authority)
        return address is not None and not self._allowed.isdisjoint({address, (address[0], None)})

    async def _explaining(self, scope: Scope, receive: Receive, send: Send, explained: set[int]) -> None:
        """Pass a request on; replace an answer that a limit is reached by one that says how to set the limit."""
        replaced = False

        async def answer(message: Message) -> None:
            nonlocal replaced
            if message["type"] == "http.response.start" and message["status"] in explained:
                replaced = True
                status = message["status"]
                error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": self._texts[status]}}
                await Response(json.dumps(error), status, media_type="application/json")(scope, receive, send)
            elif not replaced:
                await send(message)

        await self._app(scope, receive, answer)


class StdinLines:
    """Lines from stdin for the SDK, which yields one message, or error, for each. Child processes find stdin empty."""

    def __init__(self) -> None:
        self.unanswered: deque[str] = deque()
        self._file = anyio.wrap_file(open(os.dup(sys.stdin.fileno()), "rb"))  # noqa: SIM115 - as long as the server runs
        with open(os.devnull, "rb") as nothing:
            os.dup2(nothing.fileno(), sys.stdin.fileno())

    async def __aiter__(self) -> AsyncIterator[str]:
        async with self._file as file:
            async for line in file:
                text = line.decode("utf-8", "replace")
                self.unanswered.append(text)
                yield text


class AnsweringStream(ObjectReceiveStream[SessionMessage]):
    """Stream of the messages of a client. It answers a malformed message itself, and yields only the others."""

    def __init__(self, lines: StdinLines, read: Any, write: Any) -> None:
        """Wrap the two streams of the SDK's `stdio_server()`, which reads these lines."""
        self._lines = lines
        self._read = read
        self._write = write

    @property
    def last_context(self) -> Any:
        """Context of the sender of the last message, which the SDK reads."""
        return self._read.last_context

    async def receive(self) -> SessionMessage:
        """Return the next message that is well-formed."""
        while True:
            item = await self._read.receive()
            line = self._lines.unanswered.popleft()
            if isinstance(item, Exception):
                answer = answer_to(line, item)
            elif isinstance(item.message, types.JSONRPCNotification) and "id" in from_json(line):
                answer = _error(types.INVALID_REQUEST, "its id is neither a string nor an integer")
            else:
                return cast("SessionMessage", item)
            if answer is not None:
                await self._write.send(SessionMessage(answer))

    async def aclose(self) -> None:
        """Close the stream."""
        await self._read.aclose()


def answer_to(line: str, error: Exception) -> types.JSONRPCError | None:
    """Return the answer to a line that the SDK could not read; `None` for a blank line, and for a notification."""
    if not line.strip():
        return None
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return _error(types.PARSE_ERROR, "it is not JSON")
    fields = cast("dict[str, Any]", message) if isinstance(message, dict) else {}
    if "id" not in fields and "method" in fields:
        return None
    number = fields.get("id")
    if isinstance(number, bool) or not isinstance(number, int | str) or shown(str(number)) != str(number):
        number = None  # no answer can have it
    if isinstance(error, ValidationError) and any(one["type"] == "json_invalid" for one in error.errors()):
        half = "a text in it has half of a surrogate pair, such as \\ud83d; send whole characters"
        return _error(types.PARSE_ERROR, half, number)
    return _error(types.INVALID_REQUEST, "it is not a request of JSON-RPC 2.0", number)


def _error(code: int, reason: str, number: int | str | None = None) -> types.JSONRPCError:
    text = f"the message cannot be read: {reason}"
    return types.JSONRPCError(jsonrpc="2.0", id=number, error=types.ErrorData(code=code, message=text))


Transport: TypeAlias = Literal["stdio", "http"]

LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")

_LIMITS_SESSIONS = "max_sessions" in inspect.signature(Server.streamable_http_app).parameters

_QUEUED_RECORDS = 1000

_LOGGER = logging.getLogger("ripwrap")


@lists_options()
def serve(
    roots: Sequence[StrPath] = (),
    *,
    transport: Transport = "stdio",
    host: str = "127.0.0.1",
    port: int = 8000,
    allowed_hosts: Sequence[str] = (),
    max_sessions: int = MAX_SESSIONS,
    session_timeout: float = SESSION_TIMEOUT,
    max_request_bytes: int = MAX_REQUEST_BYTES,
    structured: bool = False,
    tools: Literal["core"] | Sequence[str] | None = None,
    **options: Unpack[WorkspaceOptions],
) -> None:
    """Serve until a signal arrives; over stdio, also end when the client disconnects. Log to stderr.

    Args:
        roots: Directories that may be searched. Over stdio, `roots` may be empty; then the server uses the roots that
            the client names.
        transport: `"stdio"`, or `"http"` for streamable HTTP at `http://HOST:PORT/mcp`.
        host: Address to listen on.
        port: Port to listen on; 0 takes any free port.
        allowed_hosts: Host names of the server besides `host`, e.g. behind a proxy. Requests that name an unknown host
            are refused, because the host name of a hostile web page could lead to this address (DNS rebinding). A
            name with a port, such as `code.example:8443`, is accepted only with that port.
        max_sessions: Maximum number of sessions at a time over HTTP; a further client is refused.
        session_timeout: Number of seconds without a request after which a session over HTTP ends.
        max_request_bytes: Maximum size in bytes of a request over HTTP.
        structured: True for answers with structured content, as in `server()`.
        tools: Names of the tools to offer, or `"core"`, as in `server()`; `None` offers all.
        options: Options of the `Workspace`.

    Raises:
        ValueError: `roots` is empty with `transport="http"`, there is no such port or tool, or a limit, an allowed host
            or an option of the `Workspace` is invalid.
        RipwrapError: `transport="http"` with an SDK (mcp) before 2.2, which cannot limit sessions.
        OSError: A root is not an existing directory, or the server cannot listen at the address.
        EmbeddingError: The embedder is unknown, or its package or key is missing.
    """
    if transport == "http" and not roots:
        raise ValueError(
            HintedText(
                "over HTTP, clients cannot name the directories to search; pass at least one directory with ",
                Hint("roots"),
            )
        )
    if transport == "http" and not _LIMITS_SESSIONS:
        raise RipwrapError(
            f"HTTP needs mcp 2.2 or later, which limits sessions, and mcp {metadata.version('mcp')} is installed: "
            'pip install "mcp>=2.2,<3"; or serve over stdio'
        )
    handler = _LogHandler()
    handler.setFormatter(_ShownFormatter("%(name)s: %(message)s"))
    logging.basicConfig(handlers=[handler])
    limits = ServerLimits(max_sessions, session_timeout, max_request_bytes)
    with _logging_once():
        made = server(*roots, structured=structured, tools=tools, **options)
        warn_without_rg(options.get("rg"))
        if transport == "stdio":
            serve_stdio(made)
        else:
            serve_http(made, host, port, allowed_hosts, limits)


@contextmanager
def _logging_once() -> Generator[None]:
    """In the block, log ripwrap's messages of level INFO and above, each text only once; then restore the logger."""
    level, seen = _LOGGER.level, set[str]()

    def is_new(record: logging.LogRecord) -> bool:  # each new workspace logs, for example, that rg is missing
        message = record.getMessage()
        new = message not in seen
        seen.add(message)
        return new

    _LOGGER.setLevel(logging.INFO)
    _LOGGER.addFilter(is_new)
    try:
        yield
    finally:
        _LOGGER.removeFilter(is_new)
        _LOGGER.setLevel(level)


class _LogHandler(logging.Handler):
    """Handler with a thread that writes to stderr, which may be a pipe that nobody reads; then records are dropped."""

    def __init__(self) -> None:
        super().__init__()
        self._texts: queue.Queue[str] = queue.Queue(_QUEUED_RECORDS)
        threading.Thread(target=self._write, name="ripwrap-mcp-log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        kind = (record.exc_info or (None,))[0]
        if kind is None or kind.__name__ != "ClientDisconnect":  # a client that leaves is no fault of the server
            with suppress(queue.Full):
                self._texts.put_nowait(f"{self.format(record)}\n")

    def _write(self) -> None:
        # Not to `sys.stderr`: the interpreter could not end while this thread holds its lock.
        with suppress(OSError, ValueError), open(sys.stderr.fileno(), "wb", buffering=0, closefd=False) as stderr:
            while True:
                stderr.write(self._texts.get().encode("utf-8", "backslashreplace"))
                self._texts.task_done()

    def flush(self) -> None:
        """Wait a moment until everything is written."""
        for pause in poll_intervals(0.5):
            if not self._texts.unfinished_tasks:
                break
            time.sleep(pause)


class _ShownFormatter(logging.Formatter):
    """Formatter that escapes control characters in the records of all packages, e.g. in headers of a request."""

    def format(self, record: logging.LogRecord) -> str:
        return shown(super().format(record), lines=True)


def warn_without_rg(rg: Rg) -> None:
    """Log how to install rg, if there is no rg, also if it can be downloaded."""
    try:
        find(rg, install=False)
    except BinaryError as error:
        last = binary.explain(rg)[-1]
        downloads = last.source == "download" and not offline()
        from ripwrap.workspace.dispatch import without_rg  # late: it imports the tools

        more = f"\nOtherwise, the first search downloads it: {last.reason}." if downloads else ""
        _LOGGER.warning(shown(f"{without_rg(error)}{more}", lines=True))


def serve_stdio(made: Server[Any]) -> None:
    """Serve the client that started this process, until it closes stdin or a signal arrives."""

    async def serve() -> None:
        received: list[signal.Signals] = []
        lines = StdinLines()
        async with stdio_server(cast("Any", lines)) as (read, write):
            async with anyio.create_task_group() as group:
                group.start_soon(_note_signals, received, group.cancel_scope.cancel)
                await made.run(AnsweringStream(lines, read, write), write, made.create_initialization_options())
                group.cancel_scope.cancel()
            _raise_first(received)  # inside of stdio_server(), because its exit waits for a thread that reads stdin

    anyio.run(serve)


def serve_http(made: Server[Any], host: str, port: int, allowed_hosts: Sequence[str], limits: ServerLimits) -> None:
    """Serve clients at an address, until a signal arrives."""
    if not 0 <= port <= 65535:
        raise ValueError(f"port must be 0 to 65535, got {port}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as listening:
        address, bound = listening.getsockname()[:2]
        url = f"http://{_bracket_ipv6(host)}:{bound}/mcp"
        if not ipaddress.ip_address(address).is_loopback:
            _LOGGER.warning(
                "the server at %s asks for no password, so any program that can connect to it can call its tools; "
                "listen at 127.0.0.1, or restrict access with a firewall or a proxy",
                url,
            )
        app = _gated(made, host, address, allowed_hosts, limits)
        _LOGGER.info("listening at %s", url)
        _raise_first(anyio.run(_serve_http, app, listening))


async def _serve_http(app: Gate, listening: socket.socket) -> list[signal.Signals]:
    """Serve until a signal arrives, and return the signals that arrived."""
    import uvicorn

    # Without the timeout, an open stream would delay the shutdown for ever.
    config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=1)
    web = uvicorn.Server(config)
    received: list[signal.Signals] = []

    def end() -> None:
        web.should_exit = True

    async with anyio.create_task_group() as group:
        # Signals are received here, because uvicorn would raise them again before the cancelled calls have ended.
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
    """Raise the first received signal again, with the default action; must be called after every rg has ended."""
    for number in received[:1]:
        logging.shutdown()
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)


def _gated(made: Server[Any], host: str, address: str, allowed_hosts: Sequence[str], limits: ServerLimits) -> Gate:
    """Return the application for HTTP, behind a gate that checks which host and origin a request names."""
    bound = ipaddress.ip_address(address)
    names = {_bracket_ipv6(name) for name in (host, *allowed_hosts)}
    if bound.is_loopback or bound.is_unspecified:
        names.update(LOOPBACK_HOSTS)
    app = made.streamable_http_app(
        max_request_body_size=limits.max_request_bytes,
        session_idle_timeout=limits.session_timeout,
        max_sessions=limits.max_sessions,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # the gate checks more
    )
    return Gate(app, names, limits)


def _bracket_ipv6(host: str) -> str:
    try:
        return f"[{host}]" if ipaddress.ip_address(host).version == 6 else host
    except ValueError:
        return host
