r"""Answer messages over stdio that are not JSON, or not a message of JSON-RPC. The SDK drops them.

Language models cut texts in the middle of an emoji, and send half of a surrogate pair, such as `"\ud83d"`. RFC 8259
(section 8.2) does not say what this means. The parser of the SDK refuses it. Python's parser accepts it, so that the
answer can have the id of the request.
"""

import json
from typing import Any, cast

from anyio.abc import ObjectReceiveStream
from mcp import types
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from ripwrap._text import shown

_MAX_REASON_CHARS = 300


class AnsweringStream(ObjectReceiveStream[SessionMessage]):
    """Stream of the messages of a client. It answers a malformed message itself, and yields only the others."""

    def __init__(self, read: Any, write: Any) -> None:
        """Wrap the two streams of the SDK's `stdio_server()`."""
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
            if not isinstance(item, Exception):
                return cast("SessionMessage", item)
            answer = answer_to(item)
            if answer is not None:
                await self._write.send(SessionMessage(answer))

    async def aclose(self) -> None:
        """Close the stream."""
        await self._read.aclose()


def answer_to(error: Exception) -> types.JSONRPCError | None:
    """Return the answer to a message that the SDK could not read; `None` for a blank line, and for a notification."""
    code, reason, message = types.PARSE_ERROR, "it is not JSON", None
    problems = error.errors(include_url=False) if isinstance(error, ValidationError) else []
    line = next((one["input"] for one in problems if one["type"] == "json_invalid"), None)
    if line is None:
        code, reason = types.INVALID_REQUEST, "it is not a request of JSON-RPC 2.0"
        message = next((one["input"] for one in problems if one["type"] == "missing"), None)
    elif not line.strip():
        return None
    else:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            pass
        else:
            reason = "a text in it has half of a surrogate pair, such as \\ud83d; send whole characters"
    fields = cast("dict[str, Any]", message) if isinstance(message, dict) else {}
    if "id" not in fields and "method" in fields:
        return None
    text = shown(f"the message cannot be read: {reason}")[:_MAX_REASON_CHARS]
    return types.JSONRPCError(jsonrpc="2.0", id=_id_of(fields), error=types.ErrorData(code=code, message=text))


def _id_of(fields: dict[str, Any]) -> int | str | None:
    """Return the id of a request; `None` if it has none that an answer can have."""
    number = fields.get("id")
    if isinstance(number, int) and not isinstance(number, bool):
        return number
    return number if isinstance(number, str) and shown(number) == number else None
