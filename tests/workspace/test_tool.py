"""A new tool is a module of its own (here, this one), and one more base class of `Workspace`."""

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn, get_type_hints

import anyio
import pytest

import tool_definitions
import unasync
from ripwrap import Workspace, sync
from ripwrap._ripgrep.runner import run_blocking
from ripwrap.workspace import ToolResult, schemas
from ripwrap.workspace.arguments import (
    TOOL_ERRORS,
    Number,
    ToolArguments,
    parameter_descriptions,
    parse_arguments,
    tool_names,
)
from ripwrap.workspace.dispatch import CallRunner, ToolMethods
from ripwrap.workspace.tool import ToolCall, ToolSpec, tools_of

TESTS = Path(__file__).parent.parent


class ShoutArguments(ToolArguments, frozen=True):
    """Arguments of `shout()`."""

    text: str
    times: Number = 1


class ShoutResult(ToolResult, frozen=True):
    """Result of `shout()`."""

    shouted: tuple[str, ...]

    _entries = ("shouted",)

    def _body(self) -> Iterator[str]:
        yield from self.shouted


CALLS: list[ToolCall] = []


async def run_shout(call: ToolCall, arguments: ShoutArguments) -> ShoutResult:
    """Shout, in a thread if the caller awaits."""
    CALLS.append(call)
    if not arguments.text:
        raise ValueError("text is empty; give words to shout")
    if call.progress is not None:
        call.progress(arguments.times)
    shouted = await call.run.call(lambda: (arguments.text.upper(),) * arguments.times)
    return ShoutResult(root=call.settings.sandbox.roots[0], path=".", message="Shouted.", shouted=shouted)


SHOUT = ToolSpec("shout", ShoutArguments, ShoutResult, run_shout, title="Shout", aliases=("cry", "yell"))


class Shout(ToolMethods, offers=(SHOUT,)):
    """Methods of `shout`."""

    async def shout(self, text: str, times: int = 1) -> str:
        """Shout words.

        Args:
            text (str): Words to shout.
            times (int): Number of times; default 1.
        """
        try:
            return self.text(await self.shout_result(text, times))
        except TOOL_ERRORS as error:
            return self.error_text(error)

    async def shout_result(self, text: str, times: int = 1) -> ShoutResult:
        """Return the answer of `shout()` as a `ShoutResult`.

        Raises:
            ValueError: An argument is invalid, or there are no words.
        """
        arguments = parse_arguments(ShoutArguments, {"text": text, "times": times})
        return await run_shout(self._tools.begin(), arguments)


def blocking_twin() -> type[ToolMethods]:
    """Return the twin of `Shout` that `scripts/unasync.py` generates for `sync.Workspace`."""
    target = next(one for one in unasync.TARGETS if one.bases_of == "Workspace")
    source = unasync.Module(f"workspace.{Path(__file__).stem}", TESTS).translate("Shout", target)
    namespace = {**globals(), "run_blocking": run_blocking}
    exec(source, namespace)
    twin: type[ToolMethods] = namespace["Shout"]
    return twin


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    before, before_blocking = Workspace.__bases__, sync.Workspace.__bases__
    Workspace.__bases__ = (*before, Shout)
    sync.Workspace.__bases__ = (*before_blocking, blocking_twin())
    yield
    Workspace.__bases__, sync.Workspace.__bases__ = before, before_blocking


SHOUTED = "A CALL\nA CALL\n\n(Shouted.)"


@pytest.mark.anyio
async def test_workspace_offers_and_runs_a_new_tool(tmp_path: Path) -> None:
    workspace: Any = Workspace(tmp_path)
    assert [tool.__name__ for tool in workspace.tools][-1] == "shout"
    assert await workspace.shout("a call", times=2) == SHOUTED
    assert str(await workspace.shout_result("a call", 2)) == SHOUTED
    assert await workspace.call("shout", '{"text": "a call", "times": "2"}') == SHOUTED
    assert await workspace.call("Yell", {"text": "a call", "times": 2}) == SHOUTED
    assert await workspace.call("shout", {"words": "x"}) == "Error: unknown argument 'words'; allowed are text, times"
    assert await workspace.shout("") == "Error: text is empty; give words to shout"
    counts: list[int] = []
    await workspace.call_result("shout", {"text": "a", "times": 3}, progress=counts.append)
    assert counts == [3]


def test_blocking_workspace_has_the_generated_twin_of_a_new_tool(tmp_path: Path) -> None:
    workspace: Any = sync.Workspace(tmp_path)
    assert [tool.__name__ for tool in workspace.tools][-1] == "shout"
    assert workspace.shout("a call", times=2) == SHOUTED
    assert str(workspace.shout_result("a call", 2)) == SHOUTED
    assert workspace.call("cry", {"text": "a call", "times": 2}) == SHOUTED
    assert workspace.shout("") == "Error: text is empty; give words to shout"
    twin = type(workspace).shout
    assert not inspect.iscoroutinefunction(twin)
    assert inspect.getdoc(twin) == inspect.getdoc(Shout.shout)
    assert get_type_hints(twin) == get_type_hints(Shout.shout)


def test_every_way_to_call_a_tool_has_the_time_limit_of_the_workspace(tmp_path: Path) -> None:
    workspace: Any = sync.Workspace(tmp_path, timeout=7)
    CALLS.clear()
    workspace.shout("x")
    workspace.shout_result("x")
    workspace.call("shout", {"text": "x"})
    assert [(type(call.run), call.settings.timeout) for call in CALLS] == [(CallRunner, 7)] * 3


def test_schemas_have_a_new_tool() -> None:
    description, arguments, answer = schemas()["shout"]
    assert description == "Shout words."
    assert arguments["properties"]["times"]["description"] == "Number of times; default 1."
    assert arguments["required"] == ["text"]
    assert "shouted" in answer["properties"]


@pytest.mark.extra
@pytest.mark.anyio
async def test_mcp_server_lists_and_calls_a_new_tool(
    tmp_path: Path, anyio_backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mcp = pytest.importorskip("mcp")
    from ripwrap.mcp import server
    from ripwrap.mcp.server import parse

    every = parse(tool_definitions.definitions())
    monkeypatch.setattr(sys.modules["ripwrap.mcp.server"], "definitions", lambda: every)
    async with mcp.Client(server(tmp_path, structured=True)) as client:
        *_, tool = (await client.list_tools()).tools
        assert (tool.name, tool.title, tool.description) == ("shout", "Shout", "Shout words.")
        assert tool.annotations.read_only_hint
        with anyio.fail_after(30):
            result = await client.call_tool("shout", {"text": "a call", "times": 2})
    assert not result.is_error
    assert result.content[0].text == SHOUTED
    assert result.structured_content["shouted"] == ["A CALL", "A CALL"]


@pytest.mark.parametrize("tool", [*tools_of(Workspace).values(), SHOUT], ids=lambda tool: tool.name)
def test_specification_agrees_with_its_function_and_its_methods(tool: ToolSpec[Any, Any]) -> None:
    hints = get_type_hints(tool.run, localns={"Indexes": Any})
    assert [*hints.values()] == [ToolCall, tool.arguments, tool.result]
    method, twin = getattr(Workspace, tool.name), getattr(Workspace, f"{tool.name}_result")
    assert [*parameter_descriptions(method)] == [*tool.arguments.model_fields]
    assert get_type_hints(method)["return"] is str
    assert get_type_hints(twin)["return"] is tool.result
    assert tool.title


@pytest.mark.parametrize("workspace", [Workspace, sync.Workspace])
@pytest.mark.parametrize("tool", tools_of(Workspace).values(), ids=lambda tool: tool.name)
def test_methods_pass_each_argument_by_its_name(
    workspace: type, tool: ToolSpec[Any, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dispatcher read `locals()`; now each method names its arguments, of which two could change places."""
    method = getattr(workspace, tool.name)
    values = {name: object() for name in tool.arguments.model_fields}
    passed: list[Any] = []

    def parse(model: type, given: dict[str, Any]) -> NoReturn:
        passed.append((model, given))
        raise ValueError

    for module in {sys.modules[method.__module__], sys.modules[tool.run.__module__]}:
        monkeypatch.setattr(module, "parse_arguments", parse, raising=bool(values))
    answer = method(workspace(tmp_path), **values)
    if inspect.iscoroutine(answer):
        answer = anyio.run(lambda: answer)
    assert answer.startswith("Error: ")
    assert passed == ([(tool.arguments, values)] if values else [])


def test_each_option_adds_the_tools_that_need_it() -> None:
    tools = tools_of(Workspace)
    names = set(tool_names(tools))
    added = {option: {*tool_names(tools, **{option: True})} - names for option in ("index", "anchors", "write")}
    assert added == {
        "index": {"index_codebase", "index_status", "index_health_check"},
        "anchors": {"resolve"},
        "write": {"replace_content"},
    }


def test_table_in_the_docs_is_made_of_the_specifications() -> None:
    rows = [
        f"| `{tool.name}` | {tool.title} | {f'`{tool.needs}`' if tool.needs else ''} "
        f"| {', '.join(f'`{alias}`' for alias in tool.aliases)} |"
        for tool in tools_of(Workspace).values()
        if tool is not SHOUT
    ]
    page = (TESTS.parent / "docs" / "reference" / "api" / "workspace.md").read_text("utf-8")
    assert [line for line in page.splitlines() if line.startswith("| `")] == rows


@pytest.mark.parametrize("tool", ["index_codebase", "index_status", "index_health_check"])
def test_call_of_a_tool_without_its_index_says_how_to_make_the_workspace(tmp_path: Path, tool: str) -> None:
    workspace = sync.Workspace(tmp_path)
    needed = f"Error: {tool} needs an index, but this workspace has none; make the workspace with index=True"
    assert workspace.call(tool) == getattr(workspace, tool)() == needed


def test_names_of_tools_in_other_programs_are_all_different() -> None:
    tools = tools_of(Workspace)
    aliases = [alias for tool in tools.values() for alias in tool.aliases]
    assert len(aliases) == len(set(aliases))
    assert not set(aliases) & tools.keys()
