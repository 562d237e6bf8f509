"""Signatures of functions with `**options`: they list the options, for `help()`, editors and notebooks."""

import importlib
import inspect
import pickle
import pydoc
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, Unpack, get_args, get_type_hints

import pytest

import ripwrap
from ripwrap import _signature, sync, testing
from ripwrap._signature import lists_options
from ripwrap.index import Index
from ripwrap.options import FileOptions, SearchOptions
from ripwrap.places import Query

MODULES = [ripwrap, sync, testing, *map(importlib.import_module, ("ripwrap.index", "ripwrap.workspace"))]


def functions(module: ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the public functions of a module, and the methods of its classes."""
    for name in module.__all__:
        one = getattr(module, name)
        if inspect.isfunction(one):
            yield name, one
        elif inspect.isclass(one):
            for method, function in inspect.getmembers(one, inspect.isfunction):
                if function.__module__.startswith("ripwrap") and (method == "__init__" or not method.startswith("_")):
                    yield f"{name}.{method}", function


def takes_options(function: Callable[..., Any]) -> bool:
    return bool(inspect.unwrap(function).__code__.co_flags & inspect.CO_VARKEYWORDS)


FUNCTIONS = {
    f"{module.__name__}.{name}": function
    for module in MODULES
    for name, function in functions(module)
    if takes_options(function)
}
FUNCTIONS["ripwrap.places.Query.with_"] = Query.with_


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signature_lists_each_option(name: str) -> None:
    """It ended in `**options`, so IPython and `help()` did not know the options."""
    function = FUNCTIONS[name]
    signature = inspect.signature(function)
    kinds = {one.kind for one in signature.parameters.values()}
    assert inspect.Parameter.VAR_KEYWORD not in kinds and inspect.Parameter.KEYWORD_ONLY in kinds
    plain = inspect.unwrap(function)
    unpacked = plain.__annotations__[
        plain.__code__.co_varnames[plain.__code__.co_argcount + plain.__code__.co_kwonlyargcount]
    ]
    hints = get_type_hints(SearchOptions if isinstance(unpacked, str) else get_args(unpacked)[0])
    assert list(signature.parameters)[-len(hints) :] == list(hints)
    assert {key: signature.parameters[key].annotation for key in hints} == hints
    assert all(signature.parameters[key].default is not inspect.Parameter.empty for key in hints)


def test_many_functions_are_checked() -> None:
    assert len(FUNCTIONS) > 85 and "ripwrap.sync.Repositories.grep" in FUNCTIONS


@pytest.mark.parametrize(
    ("function", "name", "default"),
    [
        (ripwrap.search, "hidden", "True"),
        (ripwrap.search, "ignore_case", "False"),
        (ripwrap.search, "mmap", "None"),  # rg decides
        (ripwrap.search, "max_count", "None"),
        (ripwrap.search, "rev", "None"),
        (sync.rank, "hidden", "False"),
        (sync.rank, "no_require_git", "True"),
        (sync.replace, "follow", "False"),
        (ripwrap.search_code, "hidden", "True"),
        (ripwrap.replace_code, "hidden", "False"),
        (Index, "hidden", "False"),
        (sync.Workspace.grep_content_result, "context_lines", "2"),
        (sync.Workspace.ls_result, "limit", "1000"),
    ],
)
def test_default_is_the_one_of_the_function(function: Any, name: str, default: str) -> None:
    assert repr(inspect.signature(function).parameters[name].default) == default


def test_signature_is_one_of_python() -> None:
    """It is copied, bound, compared and pickled as one that Python made, and a method leaves out `self`."""
    signature = inspect.signature(sync.grep)
    assert inspect.signature(sync.grep) is signature == pickle.loads(pickle.dumps(signature))
    assert signature.replace(return_annotation=int).parameters == signature.parameters
    assert signature.bind("x", glob="*.py").arguments == {"pattern": "x", "glob": "*.py"}
    with pytest.raises(TypeError, match="unexpected keyword argument 'globs'"):
        signature.bind("x", globs="*.py")
    assert "self" not in inspect.signature(sync.Repositories(".").grep).parameters
    assert "ignore_case: bool | None = False" in pydoc.plain(pydoc.render_doc(sync.search))
    assert inspect.getsource(ripwrap.search).startswith("@named_paths")
    with pytest.raises(AttributeError):
        signature.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_signature_is_made_when_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python makes none when ripwrap is imported or a function is called."""
    made: list[object] = []

    def hints(options: object, **_: bool) -> dict[str, object]:
        made.append(options)
        return {}

    monkeypatch.setattr(_signature, "get_type_hints", hints)

    @lists_options()
    def function(**options: Unpack[FileOptions]) -> None: ...

    function(glob="*.py")
    assert isinstance(vars(function)["__signature__"], inspect.Signature) and made == []
    assert str(inspect.signature(function)) == "() -> None" and len(made) == 2


@pytest.mark.extra
@pytest.mark.parametrize("use_jedi", [True, False])
def test_ipython_completes_options(use_jedi: bool) -> None:
    ipython = pytest.importorskip("IPython.core.completer")
    completer = ipython.IPCompleter(namespace={"sync": sync, "ripwrap": ripwrap}, use_jedi=use_jedi)
    for text, expected in (('sync.search("x", ig', {"ignore_case=", "iglob="}), ('ripwrap.rank("x", hid', {"hidden="})):
        with ipython.provisionalcompleter():
            assert expected <= {one.text for one in completer.completions(text, len(text))}


@pytest.mark.extra
def test_jedi_completes_options() -> None:
    jedi = pytest.importorskip("jedi")
    for text in ('sync.search("x", ig', 'roots.grep("x", ig'):
        script = jedi.Interpreter(text, [{"sync": sync, "roots": sync.Repositories(".")}])
        assert "ignore_case=" in {one.name_with_symbols for one in script.complete()}
