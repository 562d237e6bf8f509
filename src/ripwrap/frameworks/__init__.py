"""Adapters for agent frameworks. Each framework has a module, and an extra of the same name.

This module has the code that the adapters share: the schemas of a workspace's tools, and functions that call a tool.
"""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from ripwrap import Workspace, sync
from ripwrap.errors import Hint, HintedText, MissingPackageError
from ripwrap.workspace import ToolResult, schemas
from ripwrap.workspace.arguments import TOOL_ERRORS

T = TypeVar("T")


def missing_framework(module: str, package: str, error: ImportError) -> MissingPackageError:
    """Return the error for an adapter whose package, given with its first version, is not installed or too old."""
    install = Hint(kind="install", target=f"ripwrap[{module.replace('_', '-')}]")
    needed = HintedText(f"ripwrap.frameworks.{module} needs {package} or later: ", install, f" ({error})")
    return MissingPackageError(needed, name=error.name)


def tool_schemas(
    workspace: Workspace | sync.Workspace, *, strict: bool = False
) -> dict[str, tuple[str, dict[str, Any]]]:
    """Map the name of each tool of a workspace to the tool's description and the schema of its arguments."""
    offered = schemas(index=True, anchors=True, write=True, strict=strict)
    return {method.__name__: offered[method.__name__][:2] for method in workspace.tools}


def async_call(
    workspace: Workspace, name: str, answer: Callable[[str, ToolResult], T], failure: type[Exception]
) -> Callable[..., Awaitable[T]]:
    """Return a coroutine function that calls a tool; `answer` makes the framework's answer of its text and result.

    `failure` is the framework's error for a mistake of the language model, which gets its text.
    """

    async def call(**arguments: Any) -> T:
        try:
            result = await workspace.call_result(name, arguments)
        except TOOL_ERRORS as error:
            raise failure(workspace.error_text(error)) from error
        return answer(workspace.text(result), result)

    return call


def blocking_call(
    workspace: sync.Workspace, name: str, answer: Callable[[str, ToolResult], T], failure: type[Exception]
) -> Callable[..., T]:
    """Return a blocking function that calls a tool."""

    def call(**arguments: Any) -> T:
        try:
            result = workspace.call_result(name, arguments)
        except TOOL_ERRORS as error:
            raise failure(workspace.error_text(error)) from error
        return answer(workspace.text(result), result)

    return call
