"""Plugin of pytest that breaks functions of a package, one at a time, and records how a test fails.

`RIPWRAP_RECIPES` names a JSON file of recipes, and `RIPWRAP_FAILURES` the file for the failures. If `RIPWRAP_FIND` is a
number, the plugin looks for so many recipes of its own, and writes these with their failures.
"""

import ast
import gc
import hashlib
import json
import os
import re
import signal
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

_ROOT = str(Path.cwd())
_TESTS = re.compile(r"(?:^|/)(?:_?tests?|testing)/|(?:^|/)(?:test_[^/]*|conftest)\.py$|_test\.py$")
_TIMEOUT = 10
_FIND_SECONDS = 60, 120
"""Seconds for the tests that show which functions they call, and for breaking functions."""
_MAX_TESTS = 600
_OF_FILE = 4
_TRIED = 4
"""Ways to break a function that are tried."""
_UNFIT = frozenset({"Failed", "KeyboardInterrupt", "MemoryError", "RecursionError", "SystemExit", "Timeout"})
"""Exceptions whose tracebacks differ between runs, or say nothing."""

_SWAPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}

_Node = Any  # a node of the syntax tree, whose fields depend on its type
_raised: list[pytest.ExceptionInfo[BaseException]] = []


def ways_to_break(function: ast.AST) -> Iterator[int]:
    """Yield the numbers of the nodes that `break_node()` can change, in the order of `ast.walk()`."""
    for number, node in enumerate(ast.walk(function)):
        match node:
            case ast.If() | ast.BoolOp() | ast.Compare(ops=[_]) | ast.Expr(value=ast.Call()):
                yield number
            case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
                yield number
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
                yield number
            case ast.Call(args=[first, second, *_]) if not isinstance(first, ast.Starred):
                if not isinstance(second, ast.Starred):
                    yield number
            case _:
                pass


def break_node(function: ast.AST, number: int) -> None:
    """Change the meaning of a node: negate a condition, leave out a result, an assignment or a call, swap arguments."""
    node: _Node = list(ast.walk(function))[number]
    match node:
        case ast.If():
            node.test = ast.UnaryOp(ast.Not(), node.test)
        case ast.BoolOp():
            node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        case ast.Compare():
            node.ops = [_SWAPPED[type(node.ops[0])]()]
        case ast.Expr() | ast.Return():
            node.value = ast.Constant(None)
        case ast.Assign():
            node.targets = [ast.Name("_", ast.Store())]
        case _:
            node.args[:2] = reversed(node.args[:2])


def find_function(module: ast.AST, name: str, line: int) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """Return a function by its name and its first line, which may be that of a decorator."""
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name and first_line(node) == line:
            return node
    return None


def first_line(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the number of the first line of a function with its decorators."""
    return min(node.lineno, *(decorator.lineno for decorator in node.decorator_list), node.lineno)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Remember the exception of a test."""
    report = yield
    if call.excinfo is not None and call.when == "call" and not call.excinfo.errisinstance(pytest.skip.Exception):
        _raised.append(call.excinfo)
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """Run tests with broken functions in place of all tests."""
    items = {item.nodeid: item for item in session.items if isinstance(item, pytest.Function)}
    if number := int(os.environ.get("RIPWRAP_FIND", "0")):
        found = _find(list(items.values()), number)
    else:
        recipes = json.loads(Path(os.environ["RIPWRAP_RECIPES"]).read_text())
        functions = _functions_by_code()
        found = []
        for recipe in recipes:
            item = items.get(recipe["test"])
            broken = [f for code, f in functions if _position(code) == (recipe["path"], recipe["name"], recipe["line"])]
            failure = _failure(item, broken, recipe["node"]) if item is not None and broken else None
            found.append(recipe if failure is None else {**recipe, **failure})
    Path(os.environ["RIPWRAP_FAILURES"]).write_text(json.dumps(found, indent=1))
    return True


def _position(code: CodeType) -> tuple[str, str, int]:
    return os.path.relpath(code.co_filename, _ROOT), code.co_qualname, code.co_firstlineno


def _functions_by_code() -> list[tuple[CodeType, FunctionType]]:
    functions = (one for one in gc.get_objects() if type(one) is FunctionType)
    return [(one.__code__, one) for one in functions if one.__code__.co_filename.startswith(_ROOT + "/")]


def _passes(item: pytest.Function) -> bool:
    """Run a test, and return True if it passes."""
    _raised.clear()
    item._initrequest()  # noqa: SLF001 - as pytest-rerunfailures does
    return all(report.passed for report in runtestprotocol(item, log=False, nextitem=None))


def _failure(item: pytest.Function, functions: Sequence[FunctionType], node: int) -> dict[str, Any] | None:
    """Run a test in a child process, in which a function is broken, and return the exception; `None` if it passes."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.dup2(os.open(os.devnull, os.O_RDWR), 1)
            os.dup2(1, 2)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(_TIMEOUT)
            _break(functions, node)
            if not _passes(item) and _raised:
                with os.fdopen(writer, "w") as pipe:
                    json.dump(_described(_raised[0], item), pipe)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    failure: dict[str, Any] | None = json.loads(text) if text else None
    return None if failure is None or failure["type"] in _UNFIT else failure


def _break(functions: Sequence[FunctionType], node: int) -> None:
    code = functions[0].__code__
    tree = ast.parse(Path(code.co_filename).read_text("utf-8"))
    function = find_function(tree, code.co_name, code.co_firstlineno)
    assert function is not None
    break_node(function, node)
    module = compile(ast.fix_missing_locations(tree), code.co_filename, "exec")
    broken = next(one for one in _codes(module) if _position(one) == _position(code))
    for one in functions:
        one.__code__ = broken


def _codes(code: CodeType) -> Iterator[CodeType]:
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield one
            yield from _codes(one)


def _described(raised: pytest.ExceptionInfo[BaseException], item: pytest.Function) -> dict[str, Any]:
    kind = raised.type
    frames = [(one.filename, one.lineno, one.name, one.line) for one in traceback.extract_tb(raised.tb)]
    values = getattr(item, "callspec", None)
    return {
        "type": kind.__name__,
        "exception": kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}",
        "message": str(raised.value)[:3_000],
        "frames": frames,
        "parameters": {} if values is None else {key: repr(value)[:200] for key, value in values.params.items()},
    }


def _find(items: list[pytest.Function], number: int) -> list[dict[str, Any]]:
    """Return recipes with their failures: as many with the file of the function in the traceback as without it."""
    step = max(len(items) / _MAX_TESTS, 1)
    runs = _calls([items[int(place * step)] for place in range(min(len(items), _MAX_TESTS))])
    functions: dict[CodeType, list[FunctionType]] = defaultdict(list)
    for code, function in _functions_by_code():
        functions[code].append(function)
    gc.freeze()
    found: list[dict[str, Any]] = []
    shown, of_file = Counter[bool](), Counter[str]()
    end = time.monotonic() + _FIND_SECONDS[1]
    for code in sorted(runs, key=lambda one: _hash(_position(one))):
        if time.monotonic() > end or min(shown[True], shown[False]) >= number // 2:
            break
        path, name, line = _position(code)
        if of_file[path] >= _OF_FILE or code not in functions:
            continue
        for recipe in _recipes(code, runs[code]):
            item = recipe.pop("item")
            failure = _failure(item, functions[code], recipe["node"])
            if failure is not None:
                in_traceback = any(file == code.co_filename for file, *_ in failure["frames"])
                if shown[in_traceback] < number // 2:
                    shown[in_traceback] += 1
                    of_file[path] += 1
                    found.append({"path": path, "name": name, "line": line, **recipe, **failure})
                    break
    print(_ROOT, len(items), "tests,", len(runs), "functions,", dict(shown), file=sys.stderr)
    return found


def _recipes(code: CodeType, runs: Iterable[tuple[int, pytest.Function]]) -> Iterator[dict[str, Any]]:
    """Yield ways to break a function, each with the tests that call the fewest other functions."""
    function = find_function(ast.parse(Path(code.co_filename).read_text("utf-8")), code.co_name, code.co_firstlineno)
    if function is None or (function.end_lineno or 0) - function.lineno < 3:
        return
    tests: dict[str, pytest.Function] = {}
    for _, item in sorted(runs, key=lambda run: (run[0], run[1].nodeid)):
        tests.setdefault(item.nodeid.split("[")[0], item)
    for node in sorted(ways_to_break(function), key=lambda node: _hash((*_position(code), node)))[:_TRIED]:
        for item in list(tests.values())[:3]:
            yield {"node": node, "test": item.nodeid, "item": item}


def _hash(position: object) -> str:
    return hashlib.sha256(repr(position).encode()).hexdigest()


def _calls(items: Sequence[pytest.Function]) -> dict[CodeType, list[tuple[int, pytest.Function]]]:
    """Run tests, and return those that call each function, with the number of functions that they call."""
    runs: dict[CodeType, list[tuple[int, pytest.Function]]] = defaultdict(list)
    monitoring: Any = vars(sys)["monitoring"]  # new in Python 3.12
    called = set[CodeType]()

    def start(code: CodeType, _: int) -> object:
        if code.co_filename.startswith(_ROOT + "/") and not _TESTS.search(code.co_filename[len(_ROOT) :]):
            called.add(code)
        return monitoring.DISABLE

    note: Callable[[CodeType, int], object] = start
    monitoring.use_tool_id(monitoring.PROFILER_ID, "ripwrap")
    monitoring.register_callback(monitoring.PROFILER_ID, monitoring.events.PY_START, note)
    monitoring.set_events(monitoring.PROFILER_ID, monitoring.events.PY_START)
    end = time.monotonic() + _FIND_SECONDS[0]
    for item in items:
        called.clear()
        monitoring.restart_events()
        if _passes(item):
            for code in tuple(called):
                runs[code].append((len(called), item))
        if time.monotonic() > end:
            break
    monitoring.set_events(monitoring.PROFILER_ID, 0)
    monitoring.free_tool_id(monitoring.PROFILER_ID)
    return runs
