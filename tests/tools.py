"""Asking a workspace's tools, asynchronous on both loops and blocking."""

from functools import partial
from typing import Any

import anyio
import pytest

import ripwrap
from ripwrap import sync

COLOURS = ("asyncio", "trio", "blocking")


class Asked:
    """A workspace of one colour, which answers like the blocking one."""

    def __init__(self, colour: str, *roots: Any, **options: Any) -> None:
        made = sync.Workspace if colour == "blocking" else ripwrap.Workspace
        self.workspace: Any = made(*roots, **options)
        self._colour = colour

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.workspace, name)
        if self._colour == "blocking":
            return method
        return lambda *given, **arguments: anyio.run(partial(method, *given, **arguments), backend=self._colour)


@pytest.fixture(params=COLOURS)
def colour(request: pytest.FixtureRequest) -> str:
    return str(request.param)
