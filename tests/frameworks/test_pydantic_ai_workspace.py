"""pydantic-ai: its conformance suite for workspaces, and searches in a run's workspace."""

import pytest

pytest.importorskip("pydantic_ai")

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.capabilities import LocalWorkspace
from pydantic_ai.exceptions import UserError
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.workspaces import (
    CommandResult,
    LocalWorkspaceBackend,
    SupportsCommands,
    WorkspaceBackend,
    WorkspaceCommand,
    WorkspaceReadOnlyError,
    WorkspaceRef,
    WorkspaceUnavailableError,
)
from pydantic_ai.workspaces import Workspace as PydanticWorkspace
from pydantic_ai.workspaces.conformance import WorkspaceBackendSuite

from ripwrap import AccessDeniedError, Workspace
from ripwrap.frameworks.pydantic_ai import ReadOnlyFiles, WorkspaceSearch

pytestmark = [pytest.mark.extra, pytest.mark.slow]


class ReadsWithRipwrap(ReadOnlyFiles, SupportsCommands):
    """Workspace that reads with ripwrap; pydantic-ai's own code writes and runs commands."""

    def __init__(self, root: Path) -> None:
        super().__init__(Workspace(root))
        self._own = LocalWorkspaceBackend(root)

    async def run(self, command: WorkspaceCommand, **options: Any) -> CommandResult:
        return await self._own.run(command, **options)

    async def write_bytes(self, path: str, data: bytes) -> None:
        await self._own.write_bytes(path, data)

    async def make_dir(self, path: str) -> None:
        await self._own.make_dir(path)

    async def remove(self, path: str) -> None:
        await self._own.remove(path)


@pytest.mark.loops("asyncio")
class TestReadOnlyFiles(WorkspaceBackendSuite):
    """Each rule of the suite that needs no other machine."""

    @pytest.fixture
    def backend(self, tmp_path: Path) -> WorkspaceBackend:
        return ReadsWithRipwrap(tmp_path)

    @pytest.fixture
    def attach_backend(self) -> Callable[[WorkspaceRef], WorkspaceBackend]:
        return lambda ref: ReadsWithRipwrap(Path(ref.id))


@pytest.mark.parametrize("call", ["write_bytes", "make_dir", "remove"])
def test_pydantic_ai_workspace_refuses_to_write(shop: Path, call: str) -> None:
    files = PydanticWorkspace(ReadOnlyFiles(Workspace(shop)))
    arguments = ["cart.py", b"changed"] if call == "write_bytes" else ["cart.py"]
    with pytest.raises(WorkspaceReadOnlyError, match=r"cart\.py cannot be changed: this workspace only reads"):
        asyncio.run(getattr(files, call)(*arguments))
    assert (shop / "cart.py").read_bytes().startswith(b"def total")


@pytest.mark.posix
@pytest.mark.parametrize("path", ["../secret.txt", "link", "/etc/passwd"])
def test_pydantic_ai_workspace_reads_nothing_outside_of_the_roots(shop: Path, path: str) -> None:
    (shop / "link").symlink_to(shop.parent / "secret.txt")
    files = PydanticWorkspace(ReadOnlyFiles(Workspace(shop)))
    for call in (files.read_bytes, files.stat, files.list_dir, files.realpath):
        with pytest.raises(AccessDeniedError):
            asyncio.run(call(path))
    assert not asyncio.run(files.exists(path))
    assert "link" not in [entry.name for entry in asyncio.run(files.list_dir("."))]


@pytest.mark.posix
@pytest.mark.parametrize("path", [".env", "link", "keys/back", "keys/missing", "src/../.ENV"])
def test_pydantic_ai_workspace_shows_nothing_of_denied_files(shop: Path, path: str) -> None:
    (shop / ".env").write_text("PASSWORD=hunter2\n")
    (shop / "src").mkdir()
    (shop / "keys").mkdir()
    (shop / "keys" / "back").symlink_to("../cart.py")
    (shop / "link").symlink_to(".env")
    files = PydanticWorkspace(ReadOnlyFiles(Workspace(shop, deny=[".env", "keys/"])))
    for call in (files.read_bytes, files.stat, files.list_dir, files.realpath):
        with pytest.raises(AccessDeniedError, match="denied by"):
            asyncio.run(call(path))
    assert not asyncio.run(files.exists(path))
    assert {".env", "keys", "link", "src"} & {entry.name for entry in asyncio.run(files.list_dir("."))} == {"src"}


def test_pydantic_ai_workspace_without_its_root_is_unavailable(shop: Path) -> None:
    files = ReadOnlyFiles(Workspace(shop))
    shutil.rmtree(shop)
    with pytest.raises(WorkspaceUnavailableError, match="does not exist any more"):
        asyncio.run(files.working_dir())


@pytest.mark.posix
def test_pydantic_ai_workspace_does_not_read_a_pipe(shop: Path) -> None:
    os.mkfifo(shop / "pipe")
    files = PydanticWorkspace(ReadOnlyFiles(Workspace(shop)))
    for call in (files.read_bytes, files.stat):
        with pytest.raises(OSError, match="neither a file nor a directory"):
            asyncio.run(call("pipe"))
    assert asyncio.run(files.exists("pipe"))


def finds(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    """Search once, and repeat what the tool answered."""
    answers = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    if answers:
        return ModelResponse([TextPart(str(answers[-1].content))])
    return ModelResponse([ToolCallPart("grep_content", {"pattern": "TODO", "context_lines": 0})])


def test_pydantic_ai_search_uses_the_workspace_of_the_run(shop: Path) -> None:
    other = shop.parent / "other"
    other.mkdir()
    (other / "only.py").write_text("# TODO: here\n")
    agent = Agent(FunctionModel(finds), capabilities=[LocalWorkspace(shop), WorkspaceSearch()])
    assert "cart.py" in asyncio.run(agent.run("find it")).output
    elsewhere = asyncio.run(agent.run("find it", workspace=ReadOnlyFiles(Workspace(other)))).output
    assert "only.py" in elsewhere
    assert "cart.py" not in elsewhere


def test_pydantic_ai_search_denies_and_masks_what_the_workspace_of_the_run_does(shop: Path) -> None:
    (shop / "denied.py").write_text("# TODO: denied\n")
    (shop / "key.py").write_text('password = "hunter2"  # TODO\n')
    files = ReadOnlyFiles(Workspace(shop, deny=["denied.py"], redact=True))
    found = asyncio.run(Agent(FunctionModel(finds), capabilities=[WorkspaceSearch()]).run("find it", workspace=files))
    assert "cart.py" in found.output
    assert "denied" not in found.output
    assert '"[redacted: password]"' in found.output


def test_pydantic_ai_search_takes_limits_of_the_caller(shop: Path) -> None:
    search: WorkspaceSearch[object] = WorkspaceSearch(lambda folder: Workspace(folder, max_line=40))
    (shop / "long.py").write_text(f"# TODO {'x' * 100}\n")
    agent = Agent(FunctionModel(finds), capabilities=[LocalWorkspace(shop), search])
    assert max(map(len, asyncio.run(agent.run("find it")).output.splitlines())) < 80


def test_pydantic_ai_search_refuses_a_workspace_on_another_machine(shop: Path) -> None:
    class Elsewhere(LocalWorkspaceBackend):
        @property
        def ref(self) -> WorkspaceRef:
            return WorkspaceRef(provider="cloud", id="42")

    agent = Agent(FunctionModel(finds), capabilities=[WorkspaceSearch()])
    with pytest.raises(UserError, match="the run's workspace is in cloud:42"):
        asyncio.run(agent.run("find it", workspace=Elsewhere(shop)))
