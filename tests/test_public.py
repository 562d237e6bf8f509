"""The public interface: async and blocking functions that agree, and a package that is light to import."""

import ast
import asyncio
import contextlib
import inspect
import pickle
import re
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, cast, get_args, get_origin, get_type_hints

import pytest
from pydantic import ValidationError

import ripwrap
from ripwrap import _text, sync, testing, workspace
from ripwrap._ripgrep.command import search_query
from ripwrap.index import Index
from ripwrap.options import SearchOptions
from ripwrap.places import Detected, Directory, Host, Inside, Overlay, PlacedSearchOptions

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
    assert functions - {"decode", "encode", "limit_processes", "load_rules", "overlay", "sarif"} | IN_BINARY == set(
        OPERATIONS
    )


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
        (
            "from ripwrap.sync import Workspace; Workspace('.')",
            {
                *("importlib.metadata", "sqlite3", "tarfile", "tomllib", "zipfile", "ripwrap._code.treesitter"),
                *("ripwrap._ranking", "ripwrap._scan.secrets", "ripwrap._operations.rank", "ripwrap._edits.journal"),
            },
        ),
        ("from ripwrap.sync import Index", {*HEAVY - {"sqlite3"}, "numpy", "ripwrap.index.watch"}),
        (
            "from ripwrap.index import Embedder, Limits",
            {*HEAVY - {"sqlite3"}, "numpy", "ripwrap.index.embeddings.registry"},
        ),
        (
            "from ripwrap.index.splitting import serve",
            {*HEAVY, "numpy", "tantivy", "ripwrap._operations", "ripwrap.index.core"},
        ),
    ],
)
def test_import_loads_no_unused_modules(code: str, left_out: set[str]) -> None:
    code = f"import sys; {code}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not left_out & set(done.stdout.split())


@pytest.mark.parametrize("package", [ripwrap, ripwrap.index, sync, workspace])
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


@pytest.mark.parametrize("value", [True, False])
@pytest.mark.parametrize("word", [one for one in _text.SWITCHES if one != "case_sensitive"])
def test_switch_of_another_library_is_answered_by_its_value(word: str, value: bool) -> None:
    """`regex=False` was answered with `pattern`, and `respect_gitignore=True` with how to switch it off."""
    said = _text.SWITCHES[word][not value]
    with pytest.raises(ValidationError, match=re.escape(f"unknown option {word}; {said}")):
        ANY.sync.search("x", **{word: value})
    with pytest.raises(TypeError, match=re.escape(f"grep() has no argument {word}; {said}")):
        ANY.sync.grep(**{word: value})
    for name, given in re.findall(r"^pass (\w+)=(\w+)$", said):
        options = {name: {"True": True, "False": False, "1": 1}[given]}
        assert search_query("x", ".", (), cast("SearchOptions", options)).options == options


def test_switch_that_is_an_option_is_refused_where_it_would_do_nothing(tmp_path: Path) -> None:
    """`case_sensitive=False` found nothing, where the caller wanted to ignore case."""
    (tmp_path / "a").write_text("Needle")
    for twin in (sync.search, sync.grep, sync.count, sync.replace, sync.Repositories(tmp_path).search):
        given = ("needle", "x") if twin is sync.replace else ("needle",)
        where = {} if "Repositories" in twin.__qualname__ else {"cwd": tmp_path}
        with pytest.raises(ValueError, match="pass ignore_case=True"):
            cast("Any", twin)(*given, case_sensitive=False, **where)
    assert not list(sync.search("needle", cwd=tmp_path, case_sensitive=False, ignore_case=False))
    assert len(list(sync.search("needle", cwd=tmp_path, case_sensitive=False, smart_case=True))) == 1


WRONG: dict[str, tuple[object, ...]] = {
    **dict.fromkeys(
        ("cwd", "path", "root", "journal", "journals", "lease_folder", "location"), (5, 0.5, b"x", ["a"], object())
    ),
    **dict.fromkeys(("paths", "repositories"), (5, 0.5, b"x", [5], ["a", b"b"], object())),
    **dict.fromkeys(("all_of", "any_of", "none_of", "exclude"), (5, 0.5, b"x")),
    "rg": (5, ["rg"], b"rg", ripwrap.RgBinary),
    "where": ("docs", 5, Path("docs"), Directory, ["docs"]),
    "on": ("ssh:name", 5, Host("x")),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    "match": ("a.py:3", 5, ripwrap.Match, ("a.py", 3)),
}
"""Values that an argument of this name cannot have, whatever function takes it."""
OBJECTS = re.compile(r"PathLike|Place\b|RgHost|RgBinary|RankedChunk|StrPath")
"""What the annotation of an argument names if the argument is an object."""
GIVEN: dict[str, object] = {
    "pattern": "x",
    "query": "x",
    "name": "x",
    "items": [],
    "rules": {"x": "x"},
    "replacement": "y",
    "fix": "y",
    "lang": "python",
    "path": "x",
    "match": testing.match(),
    "all_of": "x",
}
METHODS = ("Repositories.search", "Repositories.grep", "Repositories.files", "Repositories.count", "Index.__init__")


def takers() -> Iterator[tuple[str, str, Callable[..., object]]]:
    """Yield each public function with each of its arguments that are objects."""
    named = {name: getattr(sync, name) for name in OPERATIONS}
    named |= {name: getattr(getattr(sync, name.partition(".")[0]), name.partition(".")[2]) for name in METHODS}
    named |= {f"async {name}": getattr(ripwrap, name) for name in OPERATIONS if name not in IN_BINARY}
    for name, function in named.items():
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind is not parameter.VAR_POSITIONAL and (
                OBJECTS.search(str(parameter.annotation)) or parameter.name in WRONG
            ):
                yield name, parameter.name, function


@pytest.mark.parametrize(("name", "argument", "function"), list(takers()))
def test_argument_of_a_wrong_kind_is_named(name: str, argument: str, function: Callable[..., object]) -> None:
    """`on="ssh:name"` and `where="docs"` were raw `AttributeError`s, and `paths=5` an error about `int`."""
    if name in IN_BINARY or argument == "ignore_file":
        return  # told by the errors of rg's installation, and of options
    parameters = inspect.signature(function).parameters
    needed = {key: GIVEN[key] for key, one in parameters.items() if one.default is one.empty and key in GIVEN}
    if name == "Index.__init__" or name in METHODS:
        needed["self"] = object()
    for value in WRONG[argument]:
        within = " in a list" if argument in ("paths", "repositories") and isinstance(value, list) else ""
        with pytest.raises(TypeError, match=rf"^{argument} must be .*, got (\w+{within}|'.*')$"):
            outcome = function(**{**needed, argument: value})
            if inspect.iscoroutine(outcome):
                asyncio.run(outcome)


def outcome_of(name: str, **given: Any) -> object:
    """Return the results of a blocking function, or its error, as text."""
    function = getattr(sync.Repositories(given.pop("cwd")), name[13:]) if "." in name else getattr(sync, name)
    parameters = inspect.signature(function).parameters
    needed = {key: GIVEN[key] for key, one in parameters.items() if one.default is one.empty or key == "all_of"}
    try:
        found = function(**{**needed, **given})
        found = list(found) if inspect.isgenerator(found) else found
    except Exception as error:  # noqa: BLE001 - compared with the other call
        return repr(error)
    return re.sub(r"Elapsed\(.*?\)|<.*?>", "", str(found))


@pytest.mark.parametrize(
    "name",
    [*(one for one in OPERATIONS if one not in ("install", "watch")), *METHODS[:4]],  # the former take long
)
def test_none_is_not_given(name: str, tmp_path: Path) -> None:
    """A program passes on its own optional arguments; `glob=None` was refused, and `paths=None` a raw error."""
    (tmp_path / "x").write_text("x y\n")
    function = getattr(sync.Repositories, name[13:]) if "." in name else getattr(sync, name)
    plain, parameters = inspect.unwrap(function).__code__, inspect.signature(function).parameters
    own = plain.co_varnames[: plain.co_argcount + plain.co_kwonlyargcount]
    options = parameters.keys() - set(own) | parameters.keys() & {"cwd", "paths"}
    with contextlib.chdir(tmp_path):
        expected = outcome_of(name, **({"cwd": tmp_path} if "." in name else {}))
        given = dict.fromkeys(options)
        assert outcome_of(name, **{**given, **({"cwd": tmp_path} if "." in name else {})}) == expected
        if plain.co_flags & inspect.CO_VARKEYWORDS:
            said = str(outcome_of(name, cwd=tmp_path, nonsense=None))
            assert "nonsense" in said or "MissingPackageError" in str(expected)


@pytest.mark.parametrize("place", [Inside("docs", "zip"), Overlay(5, {}), Detected(Path("docs"))])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
def test_place_in_a_place_is_checked(place: Any) -> None:
    with pytest.raises(TypeError, match=r"^where must be a place, such as "):
        ANY.sync.search("x", where=place)
    with pytest.raises(TypeError, match=r"^on must be a host, such as "):
        ANY.sync.search("x", where=Host("ssh:name"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


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
    assert not options & (_text.WORDS.keys() - {"replace"} | _text._INSTEAD.keys())
    assert set(_text.WORDS.values()) - options <= {"cwd", "pattern", "replacement", "path", "lang", "rg"}


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
    assert starting == {"_system/subprocess/posix.py", "_system/subprocess/windows.py"}


def test_file_with_importorskip_has_tests_marked_extra() -> None:
    """`nox -s extras frameworks`, where optional packages must be installed, selects tests by this mark."""
    for path in Path(__file__).parent.rglob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        if path != Path(__file__) and "pytest.importorskip(" in text:
            assert "pytest.mark.extra" in text, path
