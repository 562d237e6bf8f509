r"""Answer messages over stdio that are not JSON, or not a message of JSON-RPC. The SDK drops them.

Language models cut texts in the middle of an emoji, and send half of a surrogate pair, such as `"\ud83d"`. RFC 8259
(section 8.2) does not say what this means. The parser of the SDK refuses it. Python's parser accepts it, so that the
answer can have the id of the request. A request with an id of another type is for the SDK a notification.
"""

import json
import os
import sys
from collections import deque
from collections.abc import AsyncIterator
from typing import Any, cast

import anyio
from anyio.abc import ObjectReceiveStream
from mcp import types
from mcp.shared.message import SessionMessage
from pydantic import ValidationError
from pydantic_core import from_json

from ripwrap._text import shown


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
