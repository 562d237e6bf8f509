"""A stand-in for the program `claude`, which the Claude Agent SDK starts."""

import json
from collections.abc import AsyncIterator
from typing import Any

import anyio
from claude_agent_sdk import Transport

from support.offers import Call

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "claude", "version": "1"}}
RESULT = {
    "type": "result",
    "subtype": "success",
    "duration_ms": 1,
    "duration_api_ms": 1,
    "is_error": False,
    "num_turns": 1,
    "session_id": "1",
    "result": "done",
}


class ScriptedCli(Transport):
    """Program that asks the server `ripwrap` for its tools, calls one, and ends.

    Attributes:
        answers: Results of the server: of `initialize`, `tools/list` and `tools/call`.
    """

    def __init__(self, call: Call) -> None:
        name, arguments = call
        self.answers: list[Any] = []
        self._requests = [
            ("initialize", HELLO),
            ("tools/list", {}),
            ("tools/call", {"name": name, "arguments": arguments}),
        ]
        self._send, self._receive = anyio.create_memory_object_stream[dict[str, Any]](100)

    async def connect(self) -> None:
        """Do nothing: there is no process."""

    async def write(self, data: str) -> None:
        """Answer a request of the SDK, or keep its answer; after an answer and after the prompt, go on."""
        said = json.loads(data)
        if said["type"] == "control_request":
            done = {"subtype": "success", "request_id": said["request_id"], "response": {}}
            await self._send.send({"type": "control_response", "response": done})
            return
        if said["type"] == "control_response":
            self.answers.append(said["response"]["response"]["mcp_response"]["result"])
        await self._next()

    async def _next(self) -> None:
        number = len(self.answers)
        if number == len(self._requests):
            await self._send.send(RESULT)
            return
        method, parameters = self._requests[number]
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}
        request = {"subtype": "mcp_message", "server_name": "ripwrap", "message": message}
        await self._send.send({"type": "control_request", "request_id": f"{number}", "request": request})

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the messages of the program."""
        async for message in self._receive:
            yield message

    async def end_input(self) -> None:
        """End the messages of the program."""
        self._send.close()

    async def close(self) -> None:
        """Close both ends."""
        self._send.close()
        self._receive.close()

    def is_ready(self) -> bool:
        """Return True: there is no process to wait for."""
        return True
