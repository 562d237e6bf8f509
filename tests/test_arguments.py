"""What models send, and what tools make of it."""

import inspect
import json
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripwrap import Workspace, sync
from ripwrap import workspace as public
from ripwrap._arguments import MAX_NUMBER, NAMES, tool_name, understood
from ripwrap._tools import NAMES as TOOLS

GREP = Workspace.grep_content


def changed(arguments: dict[str, Any]) -> dict[str, Any]:
    """What is not as it is by default."""
    default = understood(GREP, {"pattern": "x"})
    return {name: value for name, value in understood(GREP, arguments).items() if value != default[name]}


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
        ({"pattern": "y", "-i": True, "case_insensitive": True}, {"pattern": "y", "case_insensitive": True}),
        ({"pattern": "y", "head_limit": "0"}, {"pattern": "y", "max_matches": MAX_NUMBER}),
    ],
)
def test_other_names_strings_and_null_are_understood(sent: dict[str, Any], means: dict[str, Any]) -> None:
    assert changed(sent) == means
    assert understood(GREP, json.dumps(sent)) == understood(GREP, sent)


@pytest.mark.parametrize("sent", ["a,b", '["a", "b"]', ["a", "b"], " a , b ,"])
def test_a_list_may_come_as_text(sent: object) -> None:
    assert understood(Workspace.ls, {"ignore": sent})["ignore"] == ["a", "b"]


def test_a_comma_in_braces_parts_nothing() -> None:
    assert understood(Workspace.ls, {"ignore": "a,{b,c}.py"})["ignore"] == ["a", "{b,c}.py"]


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        ({}, "pattern is missing"),
        ({"pattern": "x", "max_matches": -1}, "max_matches should be 0 or more, not -1"),
        ({"pattern": "x", "head_limit": "-5"}, "max_matches should be 0 or more, not '-5'"),
        ({"pattern": "x", "offset": MAX_NUMBER + 1}, f"offset should be {MAX_NUMBER} or less"),
        ({"pattern": "x", "offset": "9" * 5000}, "offset should be "),
        ({"pattern": "x", "offset": 1.5}, "offset should be a whole number, not 1.5"),
        ({"pattern": "x", "offset": float("nan")}, "offset should be "),
        ({"pattern": "x", "offset": "many"}, "offset should be a whole number, not 'many'"),
        ({"pattern": "x", "multiline": "maybe"}, "multiline should be true or false, not 'maybe'"),
        ({"pattern": "x", "output_mode": "lines"}, "output_mode should be 'content', 'files_with_matches' or 'count'"),
        ({"pattern": ["x"]}, "pattern should be a string"),
        ({"pattern": "x", "patern": "y"}, "unknown argument 'patern'; did you mean pattern?"),
        ({"pattern": "x", "frobnicate": 1}, "unknown argument 'frobnicate'; allowed are pattern, path,"),
        ({"pattern": "x", "query": "y"}, "pattern and query are the same argument"),
        ("[" * 200_000, "nested too deeply"),
        ({"pattern": "x", "offset": float("inf")}, "offset should be a whole number, not inf"),
        ("[]", "should be a JSON object, not list"),
        ("{", "not JSON"),
        ("nonsense" * 1000, "not JSON"),
    ],
)
def test_what_cannot_be_is_one_line_that_says_what_is_allowed(sent: Any, says: str) -> None:
    with pytest.raises(ValueError, match=r"^(?!1 validation error)") as caught:
        understood(GREP, sent)
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
def test_whatever_is_sent_is_understood_or_a_value_error(sent: dict[str, Any]) -> None:
    for tool in TOOLS:
        method = getattr(Workspace, tool)
        complaint, arguments = "", {}
        try:
            arguments = understood(method, sent)
        except ValueError as error:
            complaint = str(error)
        if complaint:
            assert "\n" not in complaint
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
def test_tools_are_known_by_other_names(name: str, tool: str) -> None:
    assert tool_name(name, TOOLS) == tool


def test_an_unknown_tool_is_told_which_there_are() -> None:
    with pytest.raises(ValueError, match="no tool 'rm'; there are grep_content, find_files, ls, tree"):
        tool_name("rm", TOOLS)


def test_every_other_name_is_of_an_argument_that_some_tool_has() -> None:
    taken = {name for tool in TOOLS for name in inspect.signature(getattr(Workspace, tool)).parameters}
    assert set(NAMES) <= taken


@pytest.mark.parametrize("tool", TOOLS)
def test_the_twins_and_the_variants_take_the_same(tool: str) -> None:
    method = getattr(Workspace, tool)
    parameters = dict(inspect.signature(method).parameters)
    blocking = getattr(sync.Workspace, tool)
    assert dict(inspect.signature(blocking).parameters) == parameters
    assert blocking.__doc__ == method.__doc__
    options = getattr(public, "".join(map(str.capitalize, tool.split("_"))) + "Options")
    positional = [name for name, one in parameters.items() if one.kind is not one.KEYWORD_ONLY]
    hints = get_type_hints(method)
    assert get_type_hints(options) == {name: hints[name] for name in parameters if name not in positional}
    for variant in (getattr(Workspace, f"{tool}_result"), getattr(sync.Workspace, f"{tool}_result")):
        taken = dict(inspect.signature(variant).parameters)
        assert taken.pop("options").kind is inspect.Parameter.VAR_KEYWORD
        assert taken == {name: parameters[name] for name in positional}


def test_the_blocking_workspace_has_all_that_the_other_has() -> None:
    def interface(of: type) -> dict[str, Any]:
        members = {name: member for name, member in vars(of).items() if not name.startswith("_") or name == "__init__"}
        return {name: inspect.signature(one).parameters if callable(one) else None for name, one in members.items()}

    assert interface(sync.Workspace) == interface(Workspace)


@pytest.mark.parametrize("tool", TOOLS)
def test_the_schema_of_a_tool_is_what_its_signature_and_docstring_say(tool: str) -> None:
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
