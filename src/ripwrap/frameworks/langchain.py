"""Toolkit of LangChain with the tools of a workspace; needs the extra `langchain`."""

from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, TypeAlias

try:
    from langchain_core.tools import BaseTool, BaseToolkit, StructuredTool, ToolException
except ImportError as _error:
    raise ImportError(
        f"ripwrap.frameworks.langchain needs langchain-core 1.7 or later: pip install 'ripwrap[langchain]' ({_error})",
        name=_error.name,
    ) from _error

from pydantic import ConfigDict

from ripwrap import Workspace, sync
from ripwrap.workspace import ToolResult, schemas
from ripwrap.workspace.dispatch import TOOL_ERRORS

__all__ = ["WorkspaceToolkit"]

Answer: TypeAlias = tuple[str, ToolResult]


class WorkspaceToolkit(BaseToolkit):
    """Tools of a workspace for LangChain and LangGraph.

        tools = WorkspaceToolkit(workspace=Workspace("src")).get_tools()

    The content of a `ToolMessage` is the text for the model, and its `artifact` is the result as a Pydantic model. A
    mistake of the model, such as an unknown argument, gives a message with `status="error"` that says what to do.

    Attributes:
        workspace: Workspace of the tools. Tools of a `Workspace` only work with `ainvoke()`; those of a
            `sync.Workspace` work with `invoke()`, and with `ainvoke()` in a thread.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(arbitrary_types_allowed=True)

    workspace: Workspace | sync.Workspace

    def get_tools(self) -> list[BaseTool]:
        """Return a tool for each of `workspace.tools`."""
        offered = schemas(index=True, anchors=True)
        return [self._tool(method.__name__, *offered[method.__name__][:2]) for method in self.workspace.tools]

    def _tool(self, name: str, description: str, arguments: dict[str, Any]) -> BaseTool:
        workspace = self.workspace
        called = _async_call(workspace, name) if isinstance(workspace, Workspace) else _blocking_call(workspace, name)
        return StructuredTool(
            name=name,
            description=description,
            args_schema=arguments,
            response_format="content_and_artifact",
            handle_tool_error=True,
            **called,
        )


def _async_call(workspace: Workspace, name: str) -> dict[str, Callable[..., Awaitable[Answer]]]:
    async def call(**arguments: Any) -> Answer:
        try:
            result = await workspace.call_result(name, arguments)
        except TOOL_ERRORS as error:
            raise ToolException(workspace.error_text(error)) from error
        return workspace.text(result), result

    return {"coroutine": call}


def _blocking_call(workspace: sync.Workspace, name: str) -> dict[str, Callable[..., Answer]]:
    def call(**arguments: Any) -> Answer:
        try:
            result = workspace.call_result(name, arguments)
        except TOOL_ERRORS as error:
            raise ToolException(workspace.error_text(error)) from error
        return workspace.text(result), result

    return {"func": call}
