"""Run functions before this process opens a file, with Python's audit event `open` (PEP 578)."""

import os
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from typing import Any

_actions: list[Callable[[str], object]] = []
_acting = threading.local()


@contextmanager
def on_open(act: Callable[[str], object]) -> Generator[None]:
    """Call a function with each path before any thread opens it; `open()` raises the exceptions of the function.

    With `dir_fd`, the path is relative to that folder. Files that the function itself opens are ignored.
    """
    _add_hook()
    _actions.append(act)
    try:
        yield
    finally:
        _actions.remove(act)


@contextmanager
def before_opening(wanted: str, change: Callable[[], object]) -> Generator[None]:
    """Call a function once, before a path is first opened; fail if the path is not opened."""
    pending = [change]

    def act(path: str) -> None:
        opened = os.path.normpath(path)
        # Windows cannot open a path relative to an open folder.
        if pending and (opened == wanted or (os.name == "nt" and opened.endswith(os.sep + wanted))):
            pending.pop()()

    with on_open(act):
        yield
    assert not pending, f"{wanted} was not opened"


@contextmanager
def refused(wanted: str) -> Generator[None]:
    """Refuse to open a path, like the system for unreadable files, but even for root."""

    def act(path: str) -> None:
        if path == wanted:
            raise PermissionError(13, "Permission denied")

    with on_open(act):
        yield


@cache
def _add_hook() -> None:
    sys.addaudithook(_hook)  # a hook cannot be removed


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and _actions and not hasattr(_acting, "now") and isinstance(arguments[0], (str, bytes)):
        _acting.now = True
        try:
            for act in tuple(_actions):
                act(os.fsdecode(arguments[0]))
        finally:
            del _acting.now
