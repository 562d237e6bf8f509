"""The public interface: twins that agree, and a package that is light to import."""

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest

import ripwrap
from ripwrap import sync

IN_BINARY = {"install", "resolve"}


def asynchronous(name: str) -> Callable[..., Any]:
    twin: Callable[..., Any] = getattr(ripwrap.binary if name in IN_BINARY else ripwrap, name)
    return twin


CLASSES = {"Workspace", "Index"}  # which `test_arguments.py` and `index/test_blocking.py` look at
OPERATIONS = [name for name in sync.__all__ if name not in CLASSES]


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_blocking_twin_takes_the_same_and_a_timeout(name: str) -> None:
    twin, blocking = asynchronous(name), getattr(sync, name)
    if twin is blocking:
        assert name == "render_tree"
        return
    parameters = dict(inspect.signature(blocking).parameters)
    if name not in ("install", "grep"):  # whose twins have it too
        timeout = parameters.pop("timeout")
        assert (timeout.kind, timeout.default) == (inspect.Parameter.KEYWORD_ONLY, None)
    assert parameters == dict(inspect.signature(twin).parameters)


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_blocking_twin_gives_what_the_asynchronous_one_gives(name: str) -> None:
    given = get_type_hints(asynchronous(name))["return"]
    blocking = get_type_hints(getattr(sync, name))["return"]
    if get_origin(given) is AsyncGenerator:
        assert get_origin(blocking) is Generator
        assert get_args(blocking) == get_args(given)
    else:
        assert blocking == given


def test_every_operation_has_a_twin() -> None:
    functions = {name for name in ripwrap.__all__ if inspect.isfunction(getattr(ripwrap, name))}
    assert functions - {"limit_processes"} | IN_BINARY == set(OPERATIONS)


def test_every_public_name_has_a_docstring() -> None:
    for name in ripwrap.__all__:
        if name != "Message":  # an alias
            assert inspect.getdoc(getattr(ripwrap, name)), name


HEAVY = {"httpx", "pathspec", "mcp", "rich", "cyclopts", "filelock", "platformdirs", "trio", "asyncio", "sqlite3"}


@pytest.mark.parametrize(
    ("code", "left_out"),
    [
        ("import ripwrap", {*HEAVY, "pydantic", "anyio", "subprocess"}),
        ("from ripwrap import search", {*HEAVY, "ripwrap._grep", "ripwrap.workspace", "ripwrap.sync"}),
        ("from ripwrap import *", {*HEAVY, "numpy", "ripwrap.index"}),
        ("import ripwrap.sync", {*HEAVY, "numpy", "ripwrap.index"}),
        ("from ripwrap.sync import Index", {*HEAVY, "numpy", "ripwrap.index.watch"}),
        ("from ripwrap.index import Embedder, Limits", {*HEAVY, "numpy", "ripwrap.index.providers"}),
    ],
)
def test_what_is_not_used_is_not_loaded(code: str, left_out: set[str]) -> None:
    code = f"import sys; {code}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not left_out & set(done.stdout.split())


def test_a_public_name_is_what_type_checkers_take_it_for() -> None:
    tree = ast.parse(inspect.getsource(ripwrap))
    imports = [one for node in tree.body if isinstance(node, ast.If) for one in ast.walk(node)]
    seen = {
        name.name: getattr(import_module(node.module), name.name)
        for node in imports
        if isinstance(node, ast.ImportFrom) and node.module
        for name in node.names
    }
    assert seen == {name: getattr(ripwrap, name) for name in ripwrap.__all__}
    assert set(ripwrap.__all__) <= set(dir(ripwrap))
    assert set(sync.__all__) <= set(dir(sync))


@pytest.mark.parametrize("name", ["answers", "errors", "models", "options", "render", "results", "workspace"])
def test_a_public_module_is_there_as_type_checkers_have_it(name: str) -> None:
    code = f"import ripwrap; assert ripwrap.{name}.__name__ == 'ripwrap.{name}'"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_name_that_is_not_there_is_said_to_be_missing() -> None:
    with pytest.raises(AttributeError, match="module 'ripwrap' has no attribute 'serch'"):
        ripwrap.serch  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match=r"module 'ripwrap\.sync' has no attribute 'Indexes'"):
        sync.Indexes  # type: ignore[attr-defined]  # noqa: B018


STARTING = re.compile(
    r"\b(?:subprocess\.(?:Popen\(|run|call|check_)|os\.(?:exec|spawn|posix_spawn|system|popen)|pty\.)"
)


def test_two_modules_alone_start_programs() -> None:
    package = Path(ripwrap.__file__).parent
    starting = {
        path.relative_to(package).as_posix() for path in package.rglob("*.py") if STARTING.search(path.read_text())
    }
    assert starting == {"_child.py", "index/apart.py"}
