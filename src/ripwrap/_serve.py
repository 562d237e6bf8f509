"""How clients reach the MCP server, over stdio or streamable HTTP, and how it ends: with every rg that it started."""

import ipaddress
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette

_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")

_LOGGER = logging.getLogger("ripwrap")


def serve_stdio(made: Server[Any]) -> None:
    """Serve the client that has started this process, until it closes stdin or a signal comes."""
    anyio.run(_converse, made)


async def _converse(made: Server[Any]) -> None:
    received: list[signal.Signals] = []
    async with stdio_server() as (read, write):
        async with anyio.create_task_group() as group:
            group.start_soon(_note_signals, received, group.cancel_scope.cancel)
            await made.run(read, write, made.create_initialization_options())
            group.cancel_scope.cancel()
        _die_of(received)  # Here, for on the way out a thread still waits for stdin.


def serve_http(made: Server[Any], host: str, port: int, allowed_hosts: Sequence[str]) -> None:
    """Serve whoever connects to an address, until a signal comes.

    Raises:
        OSError: The address cannot be listened at.
        ValueError: There is no such port.
    """
    if not 0 <= port <= 65535:
        raise ValueError(f"port should be 0 to 65535, not {port}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as listening:
        address, bound = listening.getsockname()[:2]
        url = f"http://{_bracketed(host)}:{bound}/mcp"
        if not ipaddress.ip_address(address).is_loopback:
            _LOGGER.warning("%s asks for no password: whoever reaches it may read what is in the folders", url)
        app = made.streamable_http_app(transport_security=_security(host, address, allowed_hosts))
        _LOGGER.info("listening at %s", url)
        _die_of(anyio.run(_listen, app, listening))


async def _listen(app: Starlette, listening: socket.socket) -> list[signal.Signals]:
    """Serve until a signal comes; gives it."""
    import uvicorn

    # An open stream would otherwise hold up the end for ever.
    config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=1)
    web = uvicorn.Server(config)
    received: list[signal.Signals] = []

    def end() -> None:
        web.should_exit = True

    async with anyio.create_task_group() as group:
        # By itself uvicorn raises a signal anew before the calls that it has cancelled have ended.
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


def _die_of(received: Sequence[signal.Signals]) -> None:
    """End as the first signal would have it, now that every rg is dead."""
    for number in received[:1]:
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)


def _security(host: str, address: str, allowed_hosts: Sequence[str]) -> TransportSecuritySettings:
    """Which hosts and origins requests may name; on any port, since one that is forwarded is another."""
    bound = ipaddress.ip_address(address)
    names = {_bracketed(name) for name in (host, *allowed_hosts)}
    if bound.is_loopback or bound.is_unspecified:
        names.update(_LOOPBACK)
    origins = [f"{scheme}://{name}" for scheme in ("http", "https") for name in names]
    return TransportSecuritySettings(
        allowed_hosts=[*names, *(f"{name}:*" for name in names)],
        allowed_origins=[*origins, *(f"{origin}:*" for origin in origins)],
    )


def _bracketed(host: str) -> str:
    try:
        return f"[{host}]" if ipaddress.ip_address(host).version == 6 else host
    except ValueError:
        return host
