"""Toolset, search capability and workspace backend for pydantic-ai; needs the extra `pydantic-ai`."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from ripwrap.frameworks import async_call, blocking_call, missing_framework, tool_schemas

try:
    from pydantic_ai import RunContext, Tool, ToolReturn
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.exceptions import ToolFailed, UserError
    from pydantic_ai.tools import AgentDepsT
    from pydantic_ai.toolsets import FunctionToolset
    from pydantic_ai.workspaces import (
        FileEntry,
        SupportsFilesystem,
        SupportsRealpath,
        WorkspaceBackend,
        WorkspaceReadOnlyError,
        WorkspaceRef,
        WorkspaceUnavailableError,
    )
except ImportError as _error:
    raise missing_framework("pydantic_ai", "pydantic-ai-slim 2.62", _error) from _error

import anyio.to_thread

from ripwrap import AccessDeniedError, Workspace, sync
from ripwrap.workspace import FileInfo, ToolResult

__all__ = ["ReadOnlyFiles", "WorkspaceSearch", "WorkspaceToolset"]

PROVIDER = "ripwrap"


class WorkspaceToolset(FunctionToolset[AgentDepsT]):
    """Toolset with the tools of a workspace.

        agent = Agent(model, toolsets=[WorkspaceToolset(Workspace("src"))])

    The language model reads the text of an answer; `ToolReturnPart.metadata` is the result as a Pydantic model. If the
    language model makes a mistake, such as an unknown argument, the tool call fails with a text that says what to do.
    This does not count as a retry.

    Attributes:
        workspace: Workspace of the tools.
    """

    def __init__(self, workspace: Workspace | sync.Workspace, *, id: str = PROVIDER) -> None:  # noqa: A002 - pydantic-ai's name
        """Make a tool for each of `workspace.tools`.

        Args:
            workspace: Workspace of the tools. The tools of a `sync.Workspace` run in threads.
            id: Name of the toolset; durable execution of pydantic-ai needs it.
        """
        tools: list[Tool[AgentDepsT]] = [
            Tool.from_schema(_call(workspace, name), name, *offered)
            for name, offered in tool_schemas(workspace).items()
        ]
        super().__init__(tools, id=id)
        self.workspace = workspace


def _call(workspace: Workspace | sync.Workspace, name: str) -> Callable[..., Any]:
    if isinstance(workspace, Workspace):
        return async_call(workspace, name, _answer, ToolFailed)
    return blocking_call(workspace, name, _answer, ToolFailed)


def _answer(text: str, result: ToolResult) -> ToolReturn:
    return ToolReturn(text, metadata=result)


@dataclass
class WorkspaceSearch(AbstractCapability[AgentDepsT]):
    """Capability with tools that search the pydantic-ai workspace of a run.

        agent = Agent(model, capabilities=[LocalWorkspace("src"), WorkspaceSearch()])

    The pydantic-ai workspace must be on this machine: a `LocalWorkspace`, or a `ReadOnlyFiles`. With a `ReadOnlyFiles`,
    the tools use the roots, denied files and limits of the `Workspace` in it.

    Attributes:
        make: Function that makes a `Workspace` for the directory of a `LocalWorkspace`, for example with other limits.
    """

    make: Callable[[str], Workspace] = Workspace

    def __post_init__(self) -> None:
        self._made: dict[str, WorkspaceToolset[AgentDepsT]] = {}

    def get_toolset(self) -> Callable[[RunContext[AgentDepsT]], Any]:
        """Return the function that makes the tools of a run."""
        return self._toolset

    async def _toolset(self, ctx: RunContext[AgentDepsT]) -> "WorkspaceToolset[AgentDepsT]":
        backend, ref = ctx.workspace.backend, ctx.workspace.ref
        if isinstance(backend, ReadOnlyFiles):
            return WorkspaceToolset(backend.workspace)
        folder = await ctx.workspace.working_dir()
        if ref is None or ref.provider != "local":
            where = "an unknown provider" if ref is None else f"{ref.provider}:{ref.id}"
            raise UserError(
                f"WorkspaceSearch searches files of this machine, but the run's workspace is in {where}; "
                "use LocalWorkspace or ReadOnlyFiles"
            )
        if folder not in self._made:
            self._made[folder] = WorkspaceToolset(self.make(folder))
        return self._made[folder]


class ReadOnlyFiles(WorkspaceBackend, SupportsFilesystem, SupportsRealpath):
    """Workspace backend of pydantic-ai that only reads, and only below the roots of a `Workspace`.

        result = await agent.run("…", workspace=ReadOnlyFiles(Workspace("src")))

    It runs no commands. Paths are paths of the system, and the working directory is the first root.

    Attributes:
        workspace: Workspace through which files are read.
    """

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._ref = WorkspaceRef(provider=PROVIDER, id=os.pathsep.join(workspace.roots))

    @property
    def ref(self) -> WorkspaceRef:
        """Identity of the workspace: its roots."""
        return self._ref

    async def working_dir(self) -> str:
        """Return the first root.

        Raises:
            WorkspaceUnavailableError: The root no longer exists.
        """
        root = self.workspace.roots[0]
        try:
            await self.workspace.file_info(root)
        except FileNotFoundError as error:
            raise WorkspaceUnavailableError(f"{error}") from error
        return root

    async def read_bytes(self, path: str) -> bytes:
        """Return the bytes of a file, with secrets masked if the `Workspace` has `redact`."""
        try:
            return await self.workspace.read_bytes(path)
        except ValueError as error:
            raise OSError(f"{error}") from error

    async def stat(self, path: str) -> FileEntry:
        """Return the kind and size of a file or directory."""
        try:
            return _entry(path, await self.workspace.file_info(path))
        except ValueError as error:
            raise OSError(f"{error}") from error

    async def list_dir(self, path: str) -> Sequence[FileEntry]:
        """Return the entries of a directory, without the entries that `Workspace.list_directory()` leaves out."""
        return [_entry(os.path.join(path, entry.name), entry) for entry in await self.workspace.list_directory(path)]

    async def exists(self, path: str) -> bool:
        """Return True if a path exists, is below the roots, and is not denied."""
        try:
            await self.workspace.file_info(path)
        except (FileNotFoundError, AccessDeniedError):
            return False
        except ValueError:  # a pipe, for example
            return True
        return True

    async def realpath(self, path: str) -> str:
        """Return a path with all links resolved, like `os.path.realpath()`; the path need not exist.

        Raises:
            AccessDeniedError: The path leads out of the roots, or is denied.
        """
        try:
            await self.workspace.file_info(path)
        except AccessDeniedError:
            raise
        except (OSError, ValueError):  # missing, or a pipe
            pass
        real = await anyio.to_thread.run_sync(os.path.realpath, path)
        if any(PurePath(real).is_relative_to(root) for root in self.workspace.roots):
            return real
        roots = self.workspace.roots
        raise AccessDeniedError(
            f"{path} is outside of the workspace; pass a path below {' or '.join(roots)}", path=path, roots=roots
        )

    async def write_bytes(self, path: str, data: bytes) -> None:  # noqa: ARG002 - the protocol's name
        """Raise `WorkspaceReadOnlyError`, because this workspace only reads."""
        raise _refusal(path)

    async def make_dir(self, path: str) -> None:
        """Raise `WorkspaceReadOnlyError`, because this workspace only reads."""
        raise _refusal(path)

    async def remove(self, path: str) -> None:
        """Raise `WorkspaceReadOnlyError`, because this workspace only reads."""
        raise _refusal(path)


def _entry(path: str, info: FileInfo) -> FileEntry:
    return FileEntry(name=info.name, path=path, is_dir=info.is_dir, size=info.size)


def _refusal(path: str) -> WorkspaceReadOnlyError:
    return WorkspaceReadOnlyError(f"{path} cannot be changed: this workspace only reads")
