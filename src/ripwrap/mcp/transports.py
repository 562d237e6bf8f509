"""Serve clients over stdio or streamable HTTP until a signal arrives; over stdio, also end when the client leaves."""

import inspect
import ipaddress
import logging
import queue
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from importlib import metadata
from typing import Any, Literal, TypeAlias, Unpack, cast

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings

from ripwrap import binary
from ripwrap._concurrency import poll_intervals
from ripwrap._signature import lists_options
from ripwrap._text import shown
from ripwrap.binary.resolver import Rg, find_installed
from ripwrap.binary.settings import offline
from ripwrap.errors import BinaryError, Hint, HintedText, RipwrapError
from ripwrap.mcp.clients import WorkspaceOptions
from ripwrap.mcp.gate import MAX_REQUEST_BYTES, MAX_SESSIONS, SESSION_TIMEOUT, Gate, ServerLimits
from ripwrap.mcp.malformed import AnsweringStream, StdinLines
from ripwrap.mcp.server import server
from ripwrap.options import StrPath

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
    level, once = _LOGGER.level, _OnceFilter()
    _LOGGER.setLevel(logging.INFO)
    _LOGGER.addFilter(once)
    try:
        yield
    finally:
        _LOGGER.removeFilter(once)
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


class _OnceFilter(logging.Filter):
    """Filter that drops repeated messages, such as the warning that rg is missing, which each new workspace logs."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        new = message not in self._seen
        self._seen.add(message)
        return new


def warn_without_rg(rg: Rg) -> None:
    """Log how to install rg, if there is no rg, also if it can be downloaded."""
    try:
        find_installed(rg)
    except BinaryError as error:
        last = binary.explain(rg)[-1]
        downloads = last.source == "download" and not offline()
        from ripwrap.workspace.dispatch import without_rg  # late: it imports the tools

        more = f"\nOtherwise, the first search downloads it: {last.reason}." if downloads else ""
        _LOGGER.warning(shown(f"{without_rg(error)}{more}", lines=True))


def serve_stdio(made: Server[Any]) -> None:
    """Serve the client that started this process, until it closes stdin or a signal arrives."""
    anyio.run(_serve_stdio, made)


async def _serve_stdio(made: Server[Any]) -> None:
    received: list[signal.Signals] = []
    lines = StdinLines()
    async with stdio_server(cast("Any", lines)) as (read, write):
        async with anyio.create_task_group() as group:
            group.start_soon(_note_signals, received, group.cancel_scope.cancel)
            await made.run(AnsweringStream(lines, read, write), write, made.create_initialization_options())
            group.cancel_scope.cancel()
        _raise_first(received)  # inside of stdio_server(), because its exit waits for a thread that reads stdin


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
