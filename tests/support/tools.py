"""Calls of a workspace's tools through the async API on both loops and through the blocking API."""

from functools import partial
from typing import Any

import anyio
import pytest

import ripwrap
from ripwrap import sync
from ripwrap.workspace.arguments import ToolArguments
from ripwrap.workspace.tool import tools_of

APIS = ("asyncio", "trio", "blocking")
TOOLS: dict[str, type[ToolArguments]] = {name: tool.arguments for name, tool in tools_of(ripwrap.Workspace).items()}
"""Model of the arguments of each tool."""


class Asked:
    """Wrapper of a blocking or async workspace, whose methods are called without `await`."""

    def __init__(self, api: str, *roots: Any, **options: Any) -> None:
        made = sync.Workspace if api == "blocking" else ripwrap.Workspace
        self.workspace: Any = made(*roots, **options)
        self._api = api

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.workspace, name)
        if self._api == "blocking":
            return method
        return lambda *given, **arguments: anyio.run(partial(method, *given, **arguments), backend=self._api)


@pytest.fixture(params=APIS)
def api(request: pytest.FixtureRequest) -> str:
    return str(request.param)
