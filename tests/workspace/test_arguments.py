"""Reading of the arguments that models send, and the schemas of the tools."""

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ripwrap import Workspace, sync
from ripwrap import workspace as public
from ripwrap._code.references import MAX_DEPTH
from ripwrap._text import ALIASES
from ripwrap.workspace.arguments import (
    MAX_NUMBER,
    find_tool,
    parameter_descriptions,
    parse_arguments,
    tool_names,
)
from ripwrap.workspace.grep_content_models import GrepContentArguments
from ripwrap.workspace.listing import LsArguments
from ripwrap.workspace.read_file import MAX_LINE_NUMBER
from ripwrap.workspace.tool import tools_of
from support.tools import TOOLS

NAMES = tool_names(tools_of(Workspace))
GREP = GrepContentArguments


def changed(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the parsed arguments that differ from their defaults."""
    default = dict(parse_arguments(GREP, {"pattern": "x"}))
    return {name: value for name, value in parse_arguments(GREP, arguments) if value != default[name]}


@pytest.mark.parametrize(
    ("sent", "means"),
    [
        ({"pattern": "y", "-i": True}, {"pattern": "y", "case_insensitive": True}),
        ({"pattern": "y", "-C": 5}, {"pattern": "y", "context_lines": 5}),
        ({"pattern": "y", "-A": 3}, {"pattern": "y", "context_lines": 0, "after_context": 3}),
        (
            {"pattern": "y", "-B": "1", "-A": 3},
            {"pattern": "y", "context_lines": 0, "before_context": 1, "after_context": 3},
        ),
        ({"pattern": "y", "-A": 3, "-C": 1}, {"pattern": "y", "context_lines": 1, "after_context": 3}),
        ({"pattern": "y", "glob": "*.py", "type": "py"}, {"pattern": "y", "file_pattern": "*.py", "file_type": "py"}),
        ({"pattern": "y", "head_limit": "7", "offset": "20"}, {"pattern": "y", "max_matches": 7, "offset": 20}),
        ({"pattern": "y", "output_mode": "count", "-n": True}, {"pattern": "y", "output_mode": "count"}),
        ({"pattern": "y", "multiline": "true"}, {"pattern": "y", "multiline": True}),
        ({"query": "y", "search_path": "src"}, {"pattern": "y", "path": "src"}),
        (
            {"pattern": "y", "maxMatches": 3, "filePattern": "a"},
            {"pattern": "y", "max_matches": 3, "file_pattern": "a"},
        ),
        ({"pattern": "y", "path": None, "max_files": None}, {"pattern": "y"}),
        ({"pattern": 42, "context_lines": 1.0}, {"pattern": "42", "context_lines": 1}),
        ({"pattern": "y", "include": "*.c", "literal": "false"}, {"pattern": "y", "file_pattern": "*.c"}),
        ({"pattern": "y", "glob": ["*.c", "*.h"]}, {"pattern": "y", "file_pattern": "*.c,*.h"}),
        ({"pattern": "y", "glob": '["*.c"]'}, {"pattern": "y", "file_pattern": "*.c"}),
        ({"pattern": "y", "case_sensitive": False, "explanation": "z"}, {"pattern": "y", "case_insensitive": True}),
        ({"pattern": "y", "case_sensitive": True}, {"pattern": "y"}),
        ({"pattern": "y", "case_sensitive": False, "-i": True}, {"pattern": "y", "case_insensitive": True}),
        ({"pattern": "y", "-i": True, "case_insensitive": True}, {"pattern": "y", "case_insensitive": True}),
        ({"pattern": "y", "head_limit": "0"}, {"pattern": "y", "max_matches": MAX_NUMBER}),
        # Arguments that models bring from elsewhere.
        ({"pattern": "y", "-o": True}, {"pattern": "y", "context_lines": 0}),
        ({"pattern": "y", "onlyMatching": "true", "-C": 1}, {"pattern": "y", "context_lines": 1}),
        ({"pattern": "y", "only_matching": False, "names_only": False, "-c": False}, {"pattern": "y"}),
        ({"pattern": "y", "names_only": True}, {"pattern": "y", "output_mode": "files_with_matches"}),
        ({"pattern": "y", "-l": True, "output_mode": "count"}, {"pattern": "y", "output_mode": "count"}),
        ({"pattern": "y", "count": "true"}, {"pattern": "y", "output_mode": "count"}),
        ({"pattern": "y", "exclude_pattern": "*.min.js"}, {"pattern": "y", "file_pattern": "!*.min.js"}),
        ({"pattern": "y", "exclude": ["a", "!b"], "glob": "*.py"}, {"pattern": "y", "file_pattern": "*.py, !a, !b"}),
        ({"pattern": "y", "exclude_patterns": "", "excludeGlob": "[]"}, {"pattern": "y", "file_pattern": "![]"}),
    ],
)
def test_arguments_accept_aliases_strings_and_null(sent: dict[str, Any], means: dict[str, Any]) -> None:
    assert changed(sent) == means
    assert parse_arguments(GREP, json.dumps(sent)) == parse_arguments(GREP, sent)


@pytest.mark.parametrize("sent", ["a,b", '["a", "b"]', ["a", "b"], " a , b ,"])
def test_list_argument_accepts_text(sent: object) -> None:
    assert parse_arguments(LsArguments, {"ignore": sent}).ignore == ["a", "b"]


def test_comma_in_braces_does_not_split_a_list() -> None:
    assert parse_arguments(LsArguments, {"ignore": "a,{b,c}.py"}).ignore == ["a", "{b,c}.py"]


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        ({}, "pattern is missing"),
        ({"pattern": "x", "max_matches": -1}, "max_matches must be 0 or more, got -1"),
        ({"pattern": "x", "head_limit": "-5"}, "max_matches must be 0 or more, got '-5'"),
        ({"pattern": "x", "offset": MAX_NUMBER + 1}, f"offset must be {MAX_NUMBER} or less"),
        ({"pattern": "x", "offset": "9" * 5000}, "offset must be "),
        ({"pattern": "x", "offset": 1.5}, "offset must be a whole number, got 1.5"),
        ({"pattern": "x", "offset": float("nan")}, "offset must be "),
        ({"pattern": "x", "offset": "many"}, "offset must be a whole number, got 'many'"),
        ({"pattern": "x", "multiline": "maybe"}, "multiline must be true or false, got 'maybe'"),
        ({"pattern": "x", "output_mode": "lines"}, "output_mode must be 'content', 'files_with_matches' or 'count'"),
        ({"pattern": [1]}, "pattern must be a string"),
        ({"pattern": ["x"] * 21}, "pattern must be at most 20 patterns"),
        ({"pattern": "a\0b"}, "pattern must be a pattern without a NUL character"),
        ({"pattern": "x", "path": "a\0b"}, "path must be a path without a NUL character"),
        ({"pattern": "x", "patern": "y"}, "unknown argument 'patern'; did you mean pattern?"),
        ({"pattern": "x", "frobnicate": 1}, "unknown argument 'frobnicate'; allowed are pattern, path,"),
        ({"pattern": "x", "query": "y"}, "pattern and query name the same argument"),
        ({"pattern": "x", "max_matches_per_file": 1}, "'max_matches_per_file'; max_matches limits the matches of all"),
        ("[" * 200_000, "nested too deeply"),
        ({"pattern": "x", "offset": float("inf")}, "offset must be a whole number, got inf"),
        ("[]", "must be a JSON object, got list"),
        ("{", "not valid JSON"),
        ("nonsense" * 1000, "not valid JSON"),
    ],
)
def test_invalid_argument_raises_one_line_that_says_what_is_allowed(sent: Any, says: str) -> None:
    with pytest.raises(ValueError, match=r"^(?!1 validation error)") as caught:
        parse_arguments(GREP, sent)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


@given(
    st.dictionaries(
        st.sampled_from(["pattern", "path", "offset", "-i", "-A", "glob", "multiline", "output_mode", "x", "ignore"])
        | st.text(max_size=5),
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text(max_size=9)
        | st.lists(st.text(max_size=3), max_size=2),
        max_size=5,
    )
)
def test_any_arguments_are_parsed_or_raise_value_error(sent: dict[str, Any]) -> None:
    for tool in NAMES:
        method = getattr(Workspace, tool)
        error_text, arguments = "", {}
        try:
            arguments = dict(parse_arguments(TOOLS[tool], sent))
        except ValueError as error:
            error_text = str(error)
        if error_text:
            assert "\n" not in error_text
        else:
            assert arguments.keys() == inspect.signature(method).parameters.keys() - {"self"}


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        *(("Grep", "grep_content"), ("grep", "grep_content"), ("grepContent", "grep_content"), ("Glob", "find_files")),
        *(
            ("LS", "ls"),
            ("listDirectory", "ls"),
            ("directory_tree", "tree"),
            ("search_files", "find_files"),
            ("mcp__x__Grep", "grep_content"),
            ("tree", "tree"),
        ),
    ],
)
def test_tool_name_accepts_aliases(name: str, tool: str) -> None:
    assert find_tool(name, tools_of(Workspace).values()).name == tool


MEANINGS = [
    ("search_files", {"path": ".", "regex": "needle"}, "grep_content"),
    ("search_files", {"path": ".", "regex": "needle", "file_pattern": None}, "grep_content"),
    ("searchFiles", {"path": ".", "pattern": "needle", "filePattern": "*.py"}, "grep_content"),
    ("mcp__cline__search_files", {"path": ".", "regex": "needle", "file_pattern": "*.py"}, "grep_content"),
    ("search_files", {"path": ".", "pattern": "*.py"}, "find_files"),
    ("search_files", {"path": ".", "pattern": "*.py", "excludePatterns": ["x"]}, "find_files"),
    ("search_files", {"path": ".", "pattern": "*.py", "regex": None}, "find_files"),
    ("search_code", {"path": ".", "pattern": "needle", "ignoreCase": True}, "grep_content"),
    ("search_code", {"regex": "needle"}, "grep_content"),
    ("search_code", {"query": "needle"}, "codebase_search"),
    ("search_codebase", {"regex": "needle"}, "grep_content"),
    ("code_search", {"pattern": "needle"}, "grep_content"),
    ("CodeSearch", {"query": "needle", "path": "."}, "codebase_search"),
    ("list_files", {"path": ".", "pattern": "*.py"}, "find_files"),
    ("list_files", {"path": "."}, "ls"),
    ("list_directory", {"path": ".", "pattern": "*.py"}, "find_files"),
    ("list_directory", {"path": ".", "pattern": None}, "ls"),
]


@pytest.mark.parametrize(("name", "sent", "tool"), MEANINGS)
def test_name_of_two_tools_means_the_one_that_has_the_arguments(
    plant: Callable[..., Path], name: str, sent: dict[str, Any], tool: str
) -> None:
    """Programs use one name for different tools; the wrong one found no file for a text that is there."""
    workspace = sync.Workspace(plant({"a.py": "needle = 1\n"}))
    result = workspace.call_result(name, json.dumps(sent))
    assert isinstance(result, tools_of(Workspace)[tool].result)
    assert "a.py" in str(result)
    assert result == workspace.call_result(name, sent)


def test_unknown_tool_error_lists_the_tools() -> None:
    with pytest.raises(ValueError, match="no tool 'rm'; the tools are grep_content, find_files, ls, tree"):
        find_tool("rm", tools_of(Workspace).values())


def test_every_alias_is_of_an_argument_that_some_tool_has() -> None:
    taken = {name for tool in NAMES for name in inspect.signature(getattr(Workspace, tool)).parameters}
    assert set(ALIASES) <= taken


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        ({"pattern": "x", "frobnicate": 1}, "unknown argument 'frobnicate'; allowed are pattern,"),
    ],
)
def test_a_name_of_another_tool_gets_the_hint_that_the_library_gives(sent: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match="unknown argument") as caught:
        parse_arguments(GREP, sent)
    assert str(caught.value).startswith(says)


def parameters_of(method: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters of a method, with types as annotations: two `ArgumentSchema`s are never equal."""
    hints = get_type_hints(method)
    parameters = inspect.signature(method).parameters
    return {name: one.replace(annotation=hints.get(name, one.annotation)) for name, one in parameters.items()}


@pytest.mark.parametrize("tool", NAMES)
def test_blocking_tools_and_result_variants_have_equal_parameters(tool: str) -> None:
    method = getattr(Workspace, tool)
    parameters = parameters_of(method)
    blocking = getattr(sync.Workspace, tool)
    assert parameters_of(blocking) == parameters
    assert blocking.__doc__ == method.__doc__
    options = getattr(public, "".join(map(str.capitalize, tool.split("_"))) + "Options")
    positional = [name for name, one in parameters.items() if one.kind is not one.KEYWORD_ONLY]
    hints = get_type_hints(method)
    assert get_type_hints(options) == {name: hints[name] for name in parameters if name not in positional}
    for variant in (getattr(Workspace, f"{tool}_result"), getattr(sync.Workspace, f"{tool}_result")):
        assert parameters_of(variant) == parameters  # its signature lists the options


def test_blocking_workspace_has_the_interface_of_the_async_one() -> None:
    def interface(of: type) -> dict[str, Any]:
        members = {
            "close" if name == "aclose" else name: member
            for base in of.__mro__[:-1]
            for name, member in vars(base).items()
            if not name.startswith("_") or name == "__init__"
        }
        return {name: parameters_of(one) if callable(one) else None for name, one in members.items()}

    assert interface(sync.Workspace) == interface(Workspace)


@pytest.mark.parametrize("tool", NAMES)
def test_tool_schema_equals_signature_and_docstring(tool: str) -> None:
    description, schema, answer = public.schemas()[tool]
    parameters = {
        name: one for name, one in inspect.signature(getattr(Workspace, tool)).parameters.items() if name != "self"
    }
    assert "Args:" not in description
    assert len(description) > 80
    assert list(schema["properties"]) == list(parameters)
    assert schema.get("required", []) == [name for name, one in parameters.items() if one.default is one.empty]
    for name, about in schema["properties"].items():
        assert about["description"]
        assert about["type"] in {"string", "integer", "boolean", "array"}
        assert "default" not in about or about["default"] == parameters[name].default
    assert "anyOf" not in json.dumps(schema)
    assert answer["type"] == "object"


@pytest.mark.parametrize("tool", TOOLS)
def test_argument_model_equals_the_parameters_of_its_method(tool: str) -> None:
    method, model = getattr(Workspace, tool), TOOLS[tool]
    parameters = {name: one for name, one in inspect.signature(method).parameters.items() if name != "self"}
    hints = get_type_hints(method)
    described = parameter_descriptions(method)
    name = "".join(map(str.capitalize, tool.split("_"))) if parameters else "No"
    assert model.__name__ == f"{name}Arguments"
    assert list(model.model_fields) == list(parameters) == list(described)
    for name, field in model.model_fields.items():
        assert field.annotation == hints[name]
        assert field.is_required() == (parameters[name].default is inspect.Parameter.empty)
        assert field.is_required() or field.default == parameters[name].default


@pytest.mark.parametrize("tool", TOOLS)
def test_numbers_are_bounded_and_argument_models_frozen(tool: str) -> None:
    properties = public.schemas(index=True, anchors=True, write=True)[tool][1]["properties"]
    numbers = {name: about for name, about in properties.items() if about["type"] == "integer"}
    most = MAX_LINE_NUMBER if tool == "read_file" else MAX_NUMBER
    for name, about in numbers.items():
        assert (about["minimum"], about["maximum"]) == (0, MAX_DEPTH if name == "depth" else most)
    arguments = TOOLS[tool].model_construct()
    with pytest.raises(ValidationError, match=r"frozen"):
        arguments.path = ".."  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("made", [Workspace, sync.Workspace])
def test_complaint_is_a_deprecated_alias_of_error_text(made: Any, tmp_path: Path) -> None:
    workspace = made(tmp_path)
    error = ValueError("no")
    with pytest.warns(DeprecationWarning, match="error_text"):
        assert workspace.complaint(error) == workspace.error_text(error) == "Error: no"
