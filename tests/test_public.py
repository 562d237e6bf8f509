"""The public interface: async and blocking functions that agree, and a package that is light to import."""

import ast
import asyncio
import inspect
import pickle
import re
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from pydantic import ValidationError

import ripwrap
from ripwrap import _words, sync, testing, workspace
from ripwrap.index import Index
from ripwrap.places import PlacedSearchOptions

IN_BINARY = {"install", "resolve"}


def asynchronous(name: str) -> Callable[..., Any]:
    twin: Callable[..., Any] = getattr(ripwrap.binary if name in IN_BINARY else ripwrap, name)
    return twin


ANY: Any = ripwrap  # for calls that type checkers refuse
CLASSES = {
    "Workspace",
    "Index",
    "Repositories",
    "ReplacePlan",
}  # tested by `test_arguments.py` and in `index` and `repositories`
OPERATIONS = [name for name in sync.__all__ if name not in CLASSES]


@pytest.mark.parametrize("name", OPERATIONS)
def test_blocking_twin_has_equal_parameters_and_a_timeout(name: str) -> None:
    twin, blocking = asynchronous(name), getattr(sync, name)
    parameters = dict(inspect.signature(blocking).parameters)
    if name not in ("install", "grep", "grep_in", "coverage", "references"):  # the async functions have a timeout, too
        timeout = parameters.pop("timeout")
        assert (timeout.kind, timeout.default) == (inspect.Parameter.KEYWORD_ONLY, None)
    expected = dict(inspect.signature(twin).parameters)
    if "items" in parameters:  # which only the async functions take from an async iterable
        parameters["items"] = parameters["items"].replace(annotation=expected["items"].annotation)
    assert parameters == expected


@pytest.mark.parametrize("name", OPERATIONS)
def test_blocking_twin_has_the_return_type_of_the_async_one(name: str) -> None:
    given = get_type_hints(asynchronous(name))["return"]
    blocking = get_type_hints(getattr(sync, name))["return"]
    if given is ripwrap.ReplacePlan:  # whose methods are async
        given = sync.ReplacePlan
    if get_origin(given) is AsyncGenerator:
        assert get_origin(blocking) is Generator
        assert get_args(blocking) == get_args(given)
    else:
        assert blocking == given


def test_every_operation_has_a_blocking_twin() -> None:
    functions = {name for name in ripwrap.__all__ if inspect.isfunction(getattr(ripwrap, name))}
    assert functions - {"limit_processes", "load_rules", "overlay", "sarif"} | IN_BINARY == set(OPERATIONS)


def test_every_public_name_has_a_docstring() -> None:
    for name in ripwrap.__all__:
        if name != "Message":  # a type alias
            assert inspect.getdoc(getattr(ripwrap, name)), name


BUILDS = {"email", "importlib.metadata", "pydantic.plugin._loader"}
"""Modules that pydantic imports when it makes its first validator."""
HEAVY = {"httpx", "pathspec", "mcp", "rich", "filelock", "platformdirs", "trio", "asyncio", "sqlite3"}
PLAIN_COMMAND = {
    *HEAVY,
    "attr",
    *("ripwrap.workspace", "ripwrap.index", "ripwrap.results", "ripwrap._operations.grep", "ripwrap.places.items"),
}
"""What a plain command line does not import."""


@pytest.mark.slow
@pytest.mark.python
@pytest.mark.parametrize(
    ("code", "left_out"),
    [
        ("import ripwrap", {*HEAVY, "pydantic", "anyio", "subprocess"}),
        (
            "from ripwrap import search",
            {
                *HEAVY,
                *BUILDS,
                *("difflib", "anyio._core._synchronization", "ripwrap._ripgrep.pattern_errors"),
                "ripwrap._operations.grep",
                "ripwrap._ripgrep.groups",
                "ripwrap.workspace",
                "ripwrap.sync",
            },
        ),
        ("from ripwrap import *", {*HEAVY, "numpy", "ripwrap.index"}),
        ("import ripwrap.sync", {*HEAVY, "pydantic", "anyio", "ripwrap._operations", "ripwrap.index"}),
        (
            "from ripwrap.sync import search",
            {
                *(*HEAVY, *BUILDS, "ripwrap._operations.grep", "ripwrap._ripgrep.groups"),
                *("ripwrap.sources.archives", "ripwrap.sources.git", "ripwrap.places.items"),
            },
        ),
        ("from ripwrap.cli import run; run(['--help'])", {"pydantic", "anyio", "ripwrap.cli.search", "ripwrap.models"}),
        ("from ripwrap.cli import run; run(['search', '-c', 'needle', 'pyproject.toml'])", PLAIN_COMMAND),
        ("from ripwrap.cli import run; run(['--json', 'needle', 'pyproject.toml'])", PLAIN_COMMAND),
        ("from ripwrap.cli import run; run(['files', '--limit=1'])", PLAIN_COMMAND),
        ("from ripwrap.cli import search", {"pydantic", "anyio", "rich", "ripwrap.models"}),
        (
            "import ripwrap.workspace",
            {
                *(*BUILDS, "sqlite3", "httpx", "tarfile"),
                *("ripwrap._operations", "ripwrap._ranking", "ripwrap.places", "ripwrap.results"),
                "ripwrap.workspace.grep_content",
            },
        ),
        ("from ripwrap.sync import Index", {*HEAVY - {"sqlite3"}, "numpy", "ripwrap.index.watch"}),
        (
            "from ripwrap.index import Embedder, Limits",
            {*HEAVY - {"sqlite3"}, "numpy", "ripwrap.index.embeddings.registry"},
        ),
    ],
)
def test_import_loads_no_unused_modules(code: str, left_out: set[str]) -> None:
    code = f"import sys; {code}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not left_out & set(done.stdout.split())


@pytest.mark.parametrize("package", [ripwrap, sync, workspace])
def test_lazy_names_equal_those_that_type_checkers_see(package: ModuleType) -> None:
    tree = ast.parse(inspect.getsource(package))
    guarded = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    imports = [one for node in guarded for one in ast.walk(node)]
    seen = {
        name.name: getattr(import_module(node.module), name.name)
        for node in imports
        if isinstance(node, ast.ImportFrom) and node.module
        for name in node.names
    }
    assert seen == {name: getattr(package, name) for name in package.__all__}
    assert set(package.__all__) <= set(dir(package))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["edits", "errors", "index", "models", "options", "results", "workspace"])
def test_public_module_is_an_attribute_of_the_package(name: str) -> None:
    code = f"import ripwrap; assert ripwrap.{name}.__name__ == 'ripwrap.{name}'"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("package", [ripwrap, sync])
def test_dir_has_only_public_names(package: ModuleType) -> None:
    """It had `Any`, `sys`, `_MODULE_OF` and the private modules."""
    code = f"import {package.__name__} as p; from ripwrap import sync; sync.search, p.grep; print(*dir(p))"
    names = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert names == sorted(names) and set(package.__all__) <= set(names)
    assert not [name for name in names if name.startswith("_") or name in ("Any", "sys", "logging", "import_module")]
    assert all(hasattr(package, name) for name in names)


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("search", ("TODO", "src"), "takes 1 positional argument but 2 were given; pass paths= or cwd= by name"),
        ("grep", ("TODO", "src"), "takes 1 positional argument but 2 were given; pass paths= or cwd= by name"),
        ("count", ("TODO", "src"), "takes 1 positional argument but 2 were given; pass paths= or cwd= by name"),
        ("rank", ("words", "src"), "takes 1 positional argument but 2 were given; pass paths= or cwd= by name"),
        ("files", ("src",), "takes 0 positional arguments but 1 were given; pass paths= or cwd= by name"),
        ("tree_text", ("src",), "takes 0 positional arguments but 1 were given; pass cwd= by name"),
        ("replace", ("a", "b", "src"), "takes 2 positional arguments but 3 were given; pass paths= or cwd= by name"),
        ("search_in", ("a", [], "b"), "takes 2 positional arguments but 3 were given"),
    ],
)
def test_path_by_position_names_the_arguments(name: str, given: tuple[Any, ...], says: str) -> None:
    """Python's own error does not say where the path belongs."""

    async def awaited() -> None:
        await getattr(ripwrap, name)(*given)

    with pytest.raises(TypeError, match=re.escape(f"{name}() {says}") + "$"):
        getattr(sync, name)(*given)
    with pytest.raises(TypeError, match=re.escape(f"{name}() {says}") + "$"):
        asyncio.run(awaited())


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: ANY.sync.search(regex="x"), "search() has no argument regex; did you mean pattern?"),
        (lambda: ANY.search(patterns=["x"]), "search() has no argument patterns; did you mean pattern?"),
        (
            lambda: asyncio.run(ANY.grep(needle="x", limit=1)),
            "grep() has no argument needle; did you mean pattern?",
        ),
        (lambda: ANY.sync.rank(question="x"), "rank() has no argument question; did you mean query?"),
        (lambda: ANY.sync.replace("x", replace="y"), "replace() has no argument replace; did you mean replacement?"),
        (lambda: ANY.sync.expand(testing.match(), root="src"), "expand() has no argument root; did you mean cwd?"),
        (lambda: ANY.sync.why(file="x"), "why() has no argument file; did you mean path?"),
        (lambda: ANY.Workspace(root="src"), "Workspace() has no argument root; pass directories by position"),
        (
            lambda: ANY.sync.Repositories(root="src"),
            "Repositories() has no argument root; pass directories by position",
        ),
        (lambda: ANY.sync.Repositories("src").search(regex="x"), "has no argument regex; did you mean pattern?"),
        (
            lambda: ANY.sync.search("x", inside=True),
            "inside takes formats to search in, such as inside=['zip', 'tar', 'gz']",
        ),
        (
            lambda: ANY.files(inside=3),
            "inside takes formats to search in, such as inside=['zip', 'tar', 'gz'], got 3",
        ),
        (lambda: ANY.sync.search("x", inside=[True]), "inside takes formats to search in, such as"),
    ],
)
def test_word_of_another_library_names_the_argument(call: Callable[[], object], says: str) -> None:
    """Python said that `pattern` is missing, or that `root` is unexpected, and `bool` is not iterable."""
    with pytest.raises(TypeError, match=re.escape(says)):
        call()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: ANY.sync.search("x", root="src"), "unknown option root; did you mean cwd?"),
        (lambda: ANY.files(folder="src"), "unknown option folder; did you mean cwd?"),
        (lambda: ANY.sync.grep("x", whole_word=True), "unknown option whole_word; did you mean word_regexp?"),
        (
            lambda: ANY.sync.search("x", search_zip=True),
            "unknown option search_zip; pass inside=['gz', 'bz2', 'xz', 'zst']",
        ),
        (lambda: ANY.search("x", timeout=1), "unknown option timeout; cancel the call instead, as in `async with"),
        (lambda: ANY.files(timeout=1), "unknown option timeout; cancel the call instead"),
        (
            lambda: ANY.sync.search("x", case_insensitive=True),
            "unknown option case_insensitive; did you mean ignore_case?",
        ),
        (lambda: ANY.sync.search("x", path="src"), "unknown option path; did you mean paths?"),
        (lambda: ANY.sync.search("x", nonsense=1), "unknown option nonsense; see ripwrap.SearchOptions"),
    ],
)
def test_unknown_option_names_what_ripwrap_has(call: Callable[[], object], says: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(says)):
        call()


def test_words_are_no_arguments_themselves() -> None:
    """No word of the tables hides an argument that a function has."""
    options = PlacedSearchOptions.__annotations__.keys()
    assert not options & (_words._WORDS.keys() - {"replace"} | _words._INSTEAD.keys())
    assert set(_words._WORDS.values()) - options <= {"cwd", "pattern", "replacement", "path", "lang", "rg"}


@pytest.mark.parametrize("package", [ripwrap, sync])
def test_functions_are_pickled_and_have_their_signature(package: ModuleType) -> None:
    """A function in a wrapper can be passed to another process, and has the signature of the function."""
    for name in ("search", "grep", "files", "replace"):
        function = getattr(package, name)
        assert pickle.loads(pickle.dumps(function)) is function
        assert inspect.iscoroutinefunction(function) is (package is ripwrap and name in ("grep", "replace"))
        assert "cwd" in inspect.signature(function).parameters


def test_missing_name_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'ripwrap' has no attribute 'serch'"):
        ripwrap.serch  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match=r"module 'ripwrap\.sync' has no attribute 'Indexes'"):
        sync.Indexes  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize(
    ("module", "name", "replacement"),
    [
        (ripwrap, "TreeText", r"use ripwrap\.Tree$"),
        (ripwrap, "render_tree", r"use ripwrap\.Tree\(entries=…\)"),
        (sync, "render_tree", r"use ripwrap\.Tree\(entries=…\)"),
    ],
)
def test_old_name_warns_and_works(module: Any, name: str, replacement: str) -> None:
    with pytest.warns(DeprecationWarning, match=replacement) as warned:
        old = getattr(module, name)
    assert warned[0].filename == __file__
    made = ripwrap.Tree if name == "TreeText" else type(old(entries=[]))
    assert made is ripwrap.Tree
    assert name not in module.__all__


@pytest.mark.anyio
async def test_max_matches_warns_and_sets_the_limit(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x\nx\n")
    old: dict[str, Any] = {"max_matches": 1}
    with pytest.warns(DeprecationWarning, match="use limit=") as warned:
        blocking = sync.grep("x", cwd=tmp_path, **old)
        awaited = await ripwrap.grep("x", cwd=tmp_path, **old)
    assert [one.filename for one in warned] == [__file__, __file__]
    assert blocking == awaited == sync.grep("x", cwd=tmp_path, limit=1)


@pytest.mark.slow
@pytest.mark.parametrize("run", [asyncio.run, lambda call: asyncio.run(in_a_coroutine(call))], ids=["run", "await"])
def test_deprecated_coroutine_warns_at_the_line_of_the_user(tmp_path: Path, run: Callable[[Any], object]) -> None:
    """The warning pointed at asyncio, and so Python did not show it."""
    (tmp_path / "f").write_text("x\n")
    index = Index(tmp_path, location=tmp_path / "home", chunker="windows")
    old: dict[str, Any] = {"max_matches": 1}
    with pytest.warns(DeprecationWarning, match="; use ") as warned:
        run(ripwrap.grep("x", cwd=tmp_path, **old))
        run(index.refresh(anew=True))
        run(index.health())
        run(index.gc())
    assert [one.filename for one in warned] == [__file__] * 4


async def in_a_coroutine(call: Awaitable[object]) -> None:
    await call


STARTING = re.compile(r"\b(?:subprocess\.(?:Popen|run|call|check_)|os\.(?:exec|spawn|posix_spawn|system|popen)|pty\.)")


def test_only_two_modules_start_programs() -> None:
    package = Path(ripwrap.__file__).parent
    starting = {
        path.relative_to(package).as_posix() for path in package.rglob("*.py") if STARTING.search(path.read_text())
    }
    assert starting == {"_subprocess/posix.py", "_subprocess/windows.py"}


def test_file_with_importorskip_has_tests_marked_extra() -> None:
    """`nox -s extras frameworks`, where optional packages must be installed, selects tests by this mark."""
    for path in Path(__file__).parent.rglob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        if path != Path(__file__) and "pytest.importorskip(" in text:
            assert "pytest.mark.extra" in text, path
