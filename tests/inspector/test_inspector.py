"""MCP's own inspector, whose command line makes one request: `nox -s inspector` installs it and runs these tests."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from ripwrap.workspace.results import MAX_CHARS
from support.mcp_server import RIPWRAP_MCP, serve_http, stuck_rg
from support.waiting import until_blocking

pytestmark = [pytest.mark.extra, pytest.mark.slow]

Plant = Callable[..., Path]
Ask = Callable[..., Any]
StandIn = Callable[..., Path]


@pytest.fixture
def inspector() -> list[str]:
    """The command; without it the tests fail and say how to get it."""
    folder = os.environ.get("RIPWRAP_INSPECTOR")
    if folder is None:
        pytest.fail("RIPWRAP_INSPECTOR is not set: run `nox -s inspector`, which installs the inspector")
    return [str(Path(folder, "node_modules", ".bin", "mcp-inspector")), "--cli"]


@pytest.fixture
def shop(plant: Plant) -> Path:
    return plant({"src/cart.py": "def total():\n    return 0  # TODO\n", "src/till.py": "TODO\n"})


@pytest.fixture(params=["stdio", "http"])
def target(request: pytest.FixtureRequest, shop: Path, home: Path, tmp_path: Path) -> Iterator[list[str]]:
    """The server as the inspector takes it: a command, or an address."""
    flags = ["--root", str(shop), "--index-location", str(home)]
    if request.param == "stdio":
        yield [*RIPWRAP_MCP, *flags]
    else:
        with serve_http(tmp_path / "log", *flags) as address:
            yield [address]


@pytest.fixture
def ask(inspector: list[str], target: list[str]) -> Ask:
    def ask(method: str, *options: str, fails: bool = False) -> Any:
        command = [*inspector, *target, "--method", method, *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode != 0) is fails, done.stderr
        return done.stderr if fails else json.loads(done.stdout)

    return ask


def text_of(result: Any) -> str:
    (content,) = result["content"]
    return str(content["text"])


def test_inspector_lists_and_calls_tools(ask: Ask) -> None:
    tools = {tool["name"]: tool for tool in ask("tools/list")["tools"]}
    assert len(tools) == 10 and all(tool["inputSchema"]["type"] == "object" for tool in tools.values())
    found = ask("tools/call", "--tool-name", "grep_content", "--tool-arg", "pattern=TODO", "context_lines=0")
    assert "(2 matches in 2 files.)" in text_of(found)
    assert "structuredContent" not in found
    assert "1 new" not in text_of(ask("tools/call", "--tool-name", "index_status"))
    wrong = ask("tools/call", "--tool-name", "ls", "--tool-arg", "path=..")
    assert wrong["isError"] and text_of(wrong).startswith("Error: .. is outside of the allowed directories")


def test_inspector_gets_text_and_structured_content_within_the_limit_if_it_is_asked_for(
    inspector: list[str], plant: Plant
) -> None:
    root = plant({"many.py": "x = 1  # TODO\n" * 5_000})
    server = [*RIPWRAP_MCP, "--root", str(root), "--structured"]
    call = ["--method", "tools/call", "--tool-name", "grep_content", "--tool-arg", "pattern=TODO", "max_matches=5000"]
    done = subprocess.run([*inspector, *server, *call], capture_output=True, text=True, timeout=60, check=True)
    found = json.loads(done.stdout)
    assert "of 5000 matches." in text_of(found) and 1_000 < len(text_of(found)) <= MAX_CHARS
    assert found["structuredContent"]["total_matches"] == 5_000
    assert 1_000 < len(json.dumps(found["structuredContent"])) <= MAX_CHARS


def test_inspector_gets_prompts(ask: Ask) -> None:
    assert [prompt["name"] for prompt in ask("prompts/list")["prompts"]] == ["search", "find", "index", "status"]
    found = ask("prompts/get", "--prompt-name", "search", "--prompt-args", "query=who pays", "path=src")
    (message,) = found["messages"]
    assert '"who pays"' in message["content"]["text"] and 'path="src"' in message["content"]["text"]
    assert "needs the argument query" in ask("prompts/get", "--prompt-name", "search", fails=True)


def test_inspector_reads_files(ask: Ask, shop: Path) -> None:
    assert ask("resources/list")["resources"] == []
    (template,) = ask("resources/templates/list")["resourceTemplates"]
    assert template["uriTemplate"].startswith("file:///{+path}")
    (contents,) = ask("resources/read", "--uri", f"file://{shop}/src/cart.py?start_line=2")["contents"]
    assert "  2:     return 0  # TODO\n" in contents["text"]
    assert "outside of the allowed directories" in ask("resources/read", "--uri", "file:///etc/passwd", fails=True)


def test_inspector_that_is_killed_ends_the_server_and_its_rg(
    inspector: list[str], shop: Path, stand_in: StandIn, tmp_path: Path, children: Callable[[], list[psutil.Process]]
) -> None:
    bad = stuck_rg(stand_in, tmp_path, "mute")
    server = [*RIPWRAP_MCP, "--root", str(shop), "--rg", str(bad.rg)]
    call = ["--method", "tools/call", "--tool-name", "grep_content", "--tool-arg", "pattern=TODO"]
    with subprocess.Popen([*inspector, *server, *call], stdout=subprocess.PIPE, start_new_session=True) as process:
        until_blocking(bad.started)
        started = psutil.Process(process.pid).children(recursive=True)
        assert any(str(bad.rg) in one.cmdline() for one in started)
        for one in (process.pid, *(child.pid for child in started if "node" in child.name())):
            os.kill(one, signal.SIGKILL)
        until_blocking(lambda: not any(one.is_running() and one.status() != "zombie" for one in started))
        assert process.wait(20) == -signal.SIGKILL
    assert children() == []
