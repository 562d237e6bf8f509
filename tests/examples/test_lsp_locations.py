"""`lsp_locations.py` speaks the Language Server Protocol, with its positions and cancellation."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import chdir, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil
import pytest

from support.runs import command, load
from support.waiting import until_blocking

pytestmark = pytest.mark.slow

TILL = """def pay():
    return 1


class Till:
    async def pay(self): ...


x = '\U0001f600é', pay(), pay_not
"""
SOURCES: dict[str | bytes, str | bytes] = {
    "till.py": TILL,
    "lib.rs": "pub(crate) fn pay() {}\nstruct Payment;\n// the def pay is elsewhere\n",
    b"n\xff \xc3\xa9.py": b"# \xff\xf0\x9f\x98\x80 pay\r\n",
    "binary": b"\0pay\n",
    "notes.txt": "type = 3\n",
}


class Editor:
    """Editor that sends one request after the other to the server."""

    def __init__(self, *arguments: Path) -> None:
        self.server = subprocess.Popen(
            command("lsp_locations.py", *arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is not None:
            self.server.kill()
        _, err = self.server.communicate(timeout=30)
        assert kind is not None or err == b""

    def write(self, body: bytes) -> None:
        assert self.server.stdin is not None
        self.server.stdin.write(b"Content-Type: x\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        self.server.stdin.flush()

    def notify(self, method: str, **params: Any) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode())

    def ask(self, method: str, **params: Any) -> int:
        self.number += 1
        self.write(json.dumps({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}).encode())
        return self.number

    def read(self) -> dict[str, Any]:
        assert self.server.stdout is not None
        header, blank = self.server.stdout.readline(), self.server.stdout.readline()
        assert (header[:16], blank) == (b"Content-Length: ", b"\r\n")
        message: dict[str, Any] = json.loads(self.server.stdout.read(int(header[16:])))
        assert message.pop("jsonrpc") == "2.0"
        return message

    def result(self, method: str, **params: Any) -> Any:
        number = self.ask(method, **params)
        answer = self.read()
        assert answer.pop("id") == number
        return answer["result"] if "result" in answer else answer["error"]["code"]

    def leave(self) -> int:
        assert self.result("shutdown") is None
        self.notify("exit")
        return self.server.wait(30)


@pytest.fixture
def sources(plant: Callable[..., Path]) -> Path:
    return plant(SOURCES)


@pytest.fixture
def editor(sources: Path) -> Iterator[Editor]:
    with Editor() as editor:
        assert editor.result("initialize", rootUri=sources.as_uri(), capabilities={}) == {
            "capabilities": {
                "positionEncoding": "utf-16",
                "definitionProvider": True,
                "referencesProvider": True,
                "workspaceSymbolProvider": True,
            }
        }
        editor.notify("initialized")
        yield editor
        assert editor.leave() == 0


def at(folder: Path, name: str, line: int, start: int, end: int) -> dict[str, Any]:
    """Return a `Location` within a line."""
    span = {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}
    return {"uri": folder.as_uri() + "/" + name, "range": span}


def definitions(folder: Path) -> list[dict[str, Any]]:
    return [at(folder, "lib.rs", 0, 14, 17), at(folder, "till.py", 0, 4, 7), at(folder, "till.py", 5, 14, 17)]


def mentions(folder: Path) -> list[dict[str, Any]]:
    return [at(folder, "lib.rs", 2, 11, 14), at(folder, "n%FF%20%C3%A9.py", 0, 6, 9), at(folder, "till.py", 8, 11, 14)]


def place(folder: Path, line: int, character: int, name: str = "till.py") -> dict[str, Any]:
    """Return the parameters of a request at a cursor position."""
    uri = folder.as_uri() + "/" + name
    return {"textDocument": {"uri": uri}, "position": {"line": line, "character": character}}


def sort(locations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(locations, key=repr)


@pytest.mark.parametrize("character", [11, 12, 14])
def test_definition_finds_the_name_at_the_cursor(editor: Editor, sources: Path, character: int) -> None:
    assert editor.result("textDocument/definition", **place(sources, 8, character)) == definitions(sources)


def test_references_find_every_mention_of_the_name(editor: Editor, sources: Path) -> None:
    cursor = place(sources, 0, 7, "n%FF%20%C3%A9.py")
    found = editor.result("textDocument/references", **cursor, context={"includeDeclaration": True})
    assert found == sort(definitions(sources) + mentions(sources))
    found = editor.result("textDocument/references", **cursor, context={"includeDeclaration": False})
    assert found == sort(mentions(sources))


def test_symbol_query_matches_a_part_of_the_name(editor: Editor, sources: Path) -> None:
    assert editor.result("workspace/symbol", query="PAYM") == [
        {"name": "Payment", "kind": 23, "location": at(sources, "lib.rs", 1, 7, 14)}
    ]
    every = editor.result("workspace/symbol", query="")
    assert [(one["name"], one["kind"]) for one in every] == [
        ("pay", 12),
        ("Payment", 23),
        ("pay", 12),
        ("Till", 5),
        ("pay", 12),
    ]


def test_position_without_a_name_gives_no_locations(editor: Editor, sources: Path) -> None:
    assert editor.result("textDocument/definition", **place(sources, 2, 0)) == []
    assert editor.result("textDocument/references", **place(sources, 2, 0)) == []
    assert editor.result("workspace/symbol", query="(?x") == []


def test_invalid_requests_get_error_responses(editor: Editor, sources: Path) -> None:
    assert editor.result("textDocument/hover", **place(sources, 0, 0)) == -32601
    assert editor.result("textDocument/definition", **place(sources, 99, 0)) == []
    assert editor.result("textDocument/definition", **place(sources, -1, 0)) == []
    assert editor.result("textDocument/definition") == -32602
    assert editor.result("textDocument/definition", **place(sources, 0, 0, "gone.py")) == -32803
    for body in (b"{", b"[]", b'{"id": [], "method": "x"}', b'{"method": "$/cancelRequest", "params": []}'):
        editor.write(body)
        assert editor.read()["error"]["code"] == -32600


@pytest.mark.posix
def test_pipe_is_refused_as_a_document(editor: Editor, sources: Path) -> None:
    os.mkfifo(sources / "pipe")
    assert editor.result("textDocument/definition", **place(sources, 0, 0, "pipe")) == -32803
    assert editor.result("textDocument/references", **place(sources, 2, 0)) == []


@pytest.mark.parametrize("length", [b"abc", b"-1", b"9" * 21])
def test_invalid_header_ends_the_server_with_a_message(sources: Path, length: bytes) -> None:
    argv, said = command("lsp_locations.py", sources), b"Content-Length: %b\r\n\r\n{}" % length
    done = subprocess.run(argv, input=said, capture_output=True, timeout=30, check=False)
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (1, b"", 1)


def test_requests_before_initialize_and_after_shutdown_fail(sources: Path) -> None:
    with Editor(sources) as editor:
        assert editor.result("workspace/symbol", query="") == -32002
        assert editor.result("initialize", rootUri=None)["capabilities"]
        assert editor.result("workspace/symbol", query="Till")[0]["kind"] == 5
        assert editor.result("shutdown") is None
        assert editor.result("workspace/symbol", query="") == -32600
        editor.notify("exit")


def test_missing_root_is_an_error(sources: Path, clone: Path) -> None:
    with chdir(clone / "demo"):
        started = Editor()
    with started as editor:
        assert editor.result("initialize", rootUri=(sources / "gone").as_uri()) == -32803
        assert editor.result("initialize")["capabilities"]
        assert editor.result("workspace/symbol", query="total")[0]["location"] == at(
            clone / "demo", "shop/cart.py", 3, 4, 9
        )
        assert editor.leave() == 0


def test_cancelling_a_request_ends_its_search_only(
    sources: Path, stand_in: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RIPWRAP_RG", str(stand_in("silent()")))
    with Editor(sources) as editor:
        editor.result("initialize")
        server = psutil.Process(editor.server.pid)
        first, second = editor.ask("workspace/symbol", query="x"), editor.ask("workspace/symbol", query="y")
        until_blocking(lambda: len(server.children()) == 2)
        assert editor.result("textDocument/hover") == -32601
        editor.notify("$/cancelRequest", id=first)
        assert editor.read() == {"id": first, "error": {"code": -32800, "message": "cancelled"}}
        until_blocking(lambda: len(server.children()) == 1)
        editor.notify("$/cancelRequest", id=first)  # the server has answered this request already
        editor.notify("$/cancelRequest", id=second)
        assert editor.read()["id"] == second
        assert editor.leave() == 0


@pytest.mark.parametrize("word", ["exit", ""])
def test_exit_without_shutdown_returns_1_and_leaves_no_rg(
    sources: Path, stand_in: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    monkeypatch.setenv("RIPWRAP_RG", str(stand_in("mute()")))
    with Editor(sources) as editor:
        editor.result("initialize")
        editor.ask("workspace/symbol", query="x")
        server = psutil.Process(editor.server.pid)
        until_blocking(lambda: any(map(is_search, server.children())))
        (rg,) = filter(is_search, server.children())
        if word:
            editor.notify(word)
        else:
            assert editor.server.stdin is not None
            editor.server.stdin.close()
            editor.server.stdin = None
        assert editor.server.wait(30) == 1
        assert not rg.is_running()


def is_search(child: psutil.Process) -> bool:
    """Return True for an rg that searches; not for one that is asked for its version, and not before its exec()."""
    with suppress(psutil.Error):
        return "--" in child.cmdline()
    return False


@pytest.mark.anyio
async def test_provider_works_without_the_server(sources: Path) -> None:
    provider = load("lsp_locations").LocationProvider(sources)
    assert await provider.definitions("pay") == definitions(sources)
    assert sort(await provider.references("pay")) == sort(definitions(sources) + mentions(sources))
    assert await provider.references("no_such_name") == []
    assert await provider.definitions("") == []
    assert [one["name"] for one in await provider.symbols("till")] == ["Till"]
