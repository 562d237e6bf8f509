"""Show an editor where names are defined and used: `python examples/lsp_locations.py [DIR]`.

`LocationProvider` returns `Location` objects of the Language Server Protocol (LSP). `Server` speaks LSP over stdin and
stdout, as far as an editor needs it to find symbols, definitions and references. It searches DIR if the editor names no
root. A definition is a line that begins with a keyword (`def`, `pub fn`, `export class`, …) and the name. Files are
read from disk, without unsaved edits. The exit code is 0 after the requests `shutdown` and `exit`, 2 if DIR is missing,
and 1 otherwise.
"""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias
from urllib.parse import unquote_to_bytes, urlsplit

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

import ripwrap

MODIFIERS = r"(?:abstract|async|default|export|final|private|protected|pub(?:\(\w+\))?|public|static|unsafe)\s+"
KINDS = {"class": 5, "enum": 10, "interface": 11, "module": 2, "struct": 23, "trait": 11, "type": 5}
KEYWORDS = "|".join(("def", "fn", "func", "function", *KINDS))
DEFINITION = rf"^\s*(?:{MODIFIERS})*(?:{KEYWORDS})\s+"
FUNCTION = 12
MAX_SYMBOLS = 1000
CAPABILITIES = dict.fromkeys(("definitionProvider", "referencesProvider", "workspaceSymbolProvider"), True)
INVALID_REQUEST, NO_METHOD, BAD_PARAMS = -32600, -32601, -32602
NOT_INITIALIZED, CANCELLED, FAILED = -32002, -32800, -32803

Json: TypeAlias = dict[str, Any]


def path_of(uri: str) -> Path:
    """Return the path of a `file:` URI, even if its name is not UTF-8."""
    path = os.fsdecode(unquote_to_bytes(urlsplit(uri).path))
    return Path(path.removeprefix("/") if os.name == "nt" else path)


def word_at(params: Json) -> str:
    """Return the word at the position in a request, or directly before it; empty if there is none."""
    path = path_of(params["textDocument"]["uri"])
    number: int = params["position"]["line"]
    if not path.is_file():  # reading a named pipe would block forever
        raise FileNotFoundError(f"no such file: {path}")
    lines = path.read_bytes().decode("utf-8", "replace").split("\n")
    line = lines[number] if 0 <= number < len(lines) else ""
    units = 2 * params["position"]["character"]
    column = len(line.encode("utf-16-le")[:units].decode("utf-16-le", "ignore"))
    return next((word[0] for word in re.finditer(r"\w+", line) if word.start() <= column <= word.end()), "")


class LocationProvider:
    """Find definitions, references and symbols below a folder."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root).resolve()
        if not self.root.is_dir():
            raise NotADirectoryError(f"no such folder: {self.root}")

    async def references(self, name: str) -> list[Json]:
        """Return the location of each mention of a name, including definitions."""
        return [location for _, location in await self._find(rf"\b{re.escape(name)}\b")] if name else []

    async def definitions(self, name: str) -> list[Json]:
        """Return the location of the name in each definition."""
        return [at for _, at in await self._find(rf"{DEFINITION}{re.escape(name)}\b")] if name else []

    async def symbols(self, query: str) -> list[Json]:
        """Return the definitions whose name contains the query, ignoring case, as `SymbolInformation`."""
        if query and not re.fullmatch(r"\w+", query):
            return []
        found = await self._find(DEFINITION + (rf"\w*(?i:{query})\w*" if query else r"\w+"), MAX_SYMBOLS)
        return [{"name": words[-1], "kind": KINDS.get(words[-2], FUNCTION), "location": at} for words, at in found]

    async def _find(self, pattern: str, limit: int | None = None) -> list[tuple[list[str], Json]]:
        """Return the words of each match, and the location of its last word in LSP's units.

        Lines are counted from 0, characters in UTF-16 code units.
        """
        found: list[tuple[list[str], Json]] = []
        async for match in ripwrap.search(pattern, cwd=self.root, limit=limit, follow=False, sort="path"):
            uri = Path(self.root, match.path).as_uri()
            for hit, at in zip(match.submatches, match.utf16_ranges(), strict=True):
                words = hit.match.split()
                end = {"line": at.end_line - 1, "character": at.end_column}
                start = {**end, "character": at.end_column - len(words[-1].encode("utf-16-le")) // 2}
                found.append((words, {"uri": uri, "range": {"start": start, "end": end}}))
        return found


class RefusedError(Exception):
    """Error that is sent as the answer to a request; its arguments are a code and a reason."""


class Server:
    """JSON-RPC server on two byte streams. Each request runs in its own task, so that it can be cancelled alone."""

    def __init__(self, root: str, receive: BinaryIO, send: BinaryIO) -> None:
        self._provider = LocationProvider(root)
        self._receive, self._send = receive, send
        self._running: dict[int | str, anyio.CancelScope] = {}
        self._state = "new"

    async def serve(self) -> int:
        """Answer until the editor sends `exit` or disconnects, and return the exit code."""
        async with anyio.create_task_group() as group:
            while (body := await self._next()) is not None and self._take(body, group):
                pass
            group.cancel_scope.cancel()
        return 0 if self._state == "shut down" else 1

    async def _next(self) -> bytes | None:
        # Without `abandon_on_cancel`, Ctrl-C would wait for a message.
        return await anyio.to_thread.run_sync(self._read, abandon_on_cancel=True)

    def _read(self) -> bytes | None:
        """Read the next message; `None` at the end of the stream."""
        length = 0
        for line in iter(self._receive.readline, b""):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                if not re.fullmatch(rb"\s*[0-9]{1,9}\s*", value):
                    print(f"error: invalid Content-Length: {value!r}", file=sys.stderr)
                    return None
                length = int(value)
            if not line.strip():
                return self._receive.read(length)
        return None

    def _write(self, message: Json) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._send.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._send.flush()

    def _refuse(self, number: int | str | None, code: int, why: object) -> None:
        self._write({"id": number, "error": {"code": code, "message": str(why)}})

    def _take(self, body: bytes, group: TaskGroup) -> bool:
        """Start the request of a message; return False if the server must end after it."""
        try:
            message = json.loads(body)
            params: Json = message.get("params") or {}
            method, number = message.get("method"), message.get("id")
            if method == "$/cancelRequest" and params["id"] in self._running:
                self._running[params["id"]].cancel()
            elif number in self._running:
                raise ValueError(f"request {number} is already running")
            elif method is not None and number is not None:
                # Set here, so that a request can be cancelled before its task starts.
                self._running[number] = anyio.CancelScope()
                group.start_soon(self._answer, number, method, params)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            self._refuse(None, INVALID_REQUEST, repr(error))
            return True
        return bool(method != "exit")

    async def _answer(self, number: int | str, method: str, params: Json) -> None:
        with self._running[number] as scope:
            try:
                self._write({"id": number, "result": await self._result(method, params)})
            except RefusedError as error:
                self._refuse(number, *error.args)
            except (OSError, ripwrap.RipwrapError) as error:
                self._refuse(number, FAILED, error)
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                self._refuse(number, BAD_PARAMS, repr(error))
        self._running.pop(number, None)
        if scope.cancelled_caught:
            self._refuse(number, CANCELLED, "cancelled")

    async def _result(self, method: str, params: Json) -> Any:
        if method == "initialize":
            if root := params.get("rootUri"):
                self._provider = LocationProvider(path_of(root))
            self._state = "initialized"
            return {"capabilities": {"positionEncoding": "utf-16", **CAPABILITIES}}
        if self._state != "initialized":
            raise RefusedError(
                NOT_INITIALIZED if self._state == "new" else INVALID_REQUEST, f"the server is {self._state}"
            )
        match method:
            case "shutdown":
                self._state = "shut down"
                return None
            case "workspace/symbol":
                return await self._provider.symbols(params["query"])
            case "textDocument/definition":
                return await self._provider.definitions(await anyio.to_thread.run_sync(word_at, params))
            case "textDocument/references":
                word = await anyio.to_thread.run_sync(word_at, params)
                found = await self._provider.references(word)
                wanted = params.get("context", {}).get("includeDeclaration", True)
                without = [] if wanted else await self._provider.definitions(word)
                return [location for location in found if location not in without]
            case _:
                raise RefusedError(NO_METHOD, f"unknown method: {method}")


def main() -> int:
    """Serve on stdin and stdout, and return the exit code."""
    try:
        server = Server(sys.argv[1] if len(sys.argv) > 1 else ".", sys.stdin.buffer, sys.stdout.buffer)
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    code = 1
    try:
        code = anyio.run(server.serve)
    except* BrokenPipeError:  # the editor has disconnected
        pass
    return code


if __name__ == "__main__":
    sys.exit(main())
