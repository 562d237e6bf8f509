"""Gate before the MCP server over HTTP: which hosts and origins requests may name, and what the limits are.

The SDK counts sessions, ends idle ones, and limits the size of a request. Its check of `Host` and `Origin` compares
only the beginning of a header, so that `localhost:evil.example` passes; here both are parsed (RFC 9110, RFC 6454).
"""

import ipaddress
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
    """Parse `HOST` or `HOST:PORT`, also with an IPv6 address in brackets; `None` for any other text.

    Names are compared in lower case and without the dot of a fully qualified name; addresses in their shortest form.
    """
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

        Args:
            app: The application.
            hosts: Names and addresses that `Host` and `Origin` may have. One with a port is accepted only with that
                port, one without a port with any, because a port may be forwarded.
            limits: Limits that the application has.

        Raises:
            ValueError: A host is not a name or address.
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
        elif len(origins) > 1 or not all(map(self._is_allowed_origin, origins)):
            await Response("Invalid Origin header: start the server with --allowed-host", 403)(scope, receive, send)
        else:
            has_session = any(name == b"mcp-session-id" for name, _ in given)
            await self._explaining(scope, receive, send, {413, 503, *([404] if has_session else [])})

    def _is_allowed(self, authority: str) -> bool:
        address = parse_authority(authority)
        return address is not None and not self._allowed.isdisjoint({address, (address[0], None)})

    def _is_allowed_origin(self, origin: str) -> bool:
        found = _ORIGIN.fullmatch(origin)
        return found is not None and self._is_allowed(found["authority"])

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
