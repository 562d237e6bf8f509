"""Toolkit of LangChain with the tools of a workspace; needs the extra `langchain`."""

from typing import Any, ClassVar

from ripwrap.frameworks import async_call, blocking_call, missing_framework, tool_schemas

try:
    from langchain_core.tools import BaseTool, BaseToolkit, StructuredTool, ToolException
except ImportError as _error:
    raise missing_framework("langchain", "langchain-core 1.7", _error) from _error

from pydantic import ConfigDict

from ripwrap import Workspace, sync
from ripwrap.workspace import ToolResult

__all__ = ["WorkspaceToolkit"]


class WorkspaceToolkit(BaseToolkit):
    """Tools of a workspace for LangChain and LangGraph.

        tools = WorkspaceToolkit(workspace=Workspace("src")).get_tools()

    The content of a `ToolMessage` is the text for the language model, and its `artifact` is the result as a Pydantic
    model. A mistake of the language model, such as an unknown argument, gives a message with `status="error"` that says
    what to do.

    Attributes:
        workspace: Workspace of the tools. Tools of a `Workspace` work only with `ainvoke()`. Tools of a
            `sync.Workspace` work with `invoke()` and with `ainvoke()`, which runs them in a thread.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(arbitrary_types_allowed=True)

    workspace: Workspace | sync.Workspace

    def get_tools(self) -> list[BaseTool]:
        """Return a tool for each of `workspace.tools`."""
        return [self._tool(name, *offered) for name, offered in tool_schemas(self.workspace).items()]

    def _tool(self, name: str, description: str, arguments: dict[str, Any]) -> BaseTool:
        workspace = self.workspace
        called: dict[str, Any] = (
            {"coroutine": async_call(workspace, name, _answer, ToolException)}
            if isinstance(workspace, Workspace)
            else {"func": blocking_call(workspace, name, _answer, ToolException)}
        )
        return StructuredTool(
            name=name,
            description=description,
            args_schema=arguments,
            response_format="content_and_artifact",
            handle_tool_error=True,
            **called,
        )


def _answer(text: str, result: ToolResult) -> tuple[str, ToolResult]:
    return text, result
