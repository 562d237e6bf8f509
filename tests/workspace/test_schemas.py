"""Schemas of the tools: what their signatures say to a framework, and what providers of models accept."""

import inspect
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import jsonschema
import pytest
from pydantic import TypeAdapter
from pydantic.fields import FieldInfo

from ripwrap import Workspace, sync
from ripwrap import workspace as tools
from ripwrap.workspace.arguments import parameter_descriptions, parse_arguments
from support import providers
from support.tools import APIS, TOOLS, Asked

PLAIN = (providers.check_openai, providers.check_anthropic, providers.check_gemini)
schemas = cache(tools.schemas)
STRICT = (*PLAIN, providers.check_openai_strict, providers.check_anthropic_strict)

each_tool = pytest.mark.parametrize("tool", TOOLS)
each_workspace = pytest.mark.parametrize("workspace", [Workspace, sync.Workspace])


@each_tool
@each_workspace
def test_annotations_have_the_descriptions_of_the_docstring(workspace: type, tool: str) -> None:
    """Haystack, autogen and others read annotations, not docstrings."""
    method = getattr(workspace, tool)
    parameters = {name: one for name, one in inspect.signature(method).parameters.items() if name != "self"}
    described = parameter_descriptions(method)
    assert described.keys() == parameters.keys()
    for name, parameter in parameters.items():
        assert get_origin(parameter.annotation) is Annotated
        kind, text, _ = get_args(parameter.annotation)
        assert text == described[name]
        assert kind == get_type_hints(method)[name]
        assert TypeAdapter(parameter.annotation).json_schema()["description"] == text


@each_tool
@each_workspace
def test_annotations_give_the_schema_of_the_tool_without_a_field(workspace: type, tool: str) -> None:
    """Bounds did not reach the frameworks, and strands refuses a `Field` in an annotation."""
    own = schemas(index=True, anchors=True, write=True)[tool][1]["properties"]
    for name, parameter in inspect.signature(getattr(workspace, tool)).parameters.items():
        if name != "self":
            made = TypeAdapter(parameter.annotation).json_schema()
            assert made == {key: value for key, value in own[name].items() if key != "default"}
            assert not any(isinstance(mark, FieldInfo) for mark in get_args(parameter.annotation))


@pytest.mark.slow
def test_tools_work_without_docstrings(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("")
    code = "import sys, ripwrap.sync; print(ripwrap.sync.Workspace(sys.argv[1]).ls())"
    done = subprocess.run(
        [sys.executable, "-OO", "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert "a.py" in done.stdout


@each_tool
@pytest.mark.parametrize("check", PLAIN)
def test_plain_schema_follows_the_rules_of_a_provider(check: Callable[..., None], tool: str) -> None:
    check(tool, schemas(index=True, anchors=True, write=True)[tool][1])


@each_tool
@pytest.mark.parametrize("check", STRICT)
def test_strict_schema_follows_the_rules_of_a_provider(check: Callable[..., None], tool: str) -> None:
    """OpenAI's strict mode and autogen refuse arguments that are not required."""
    check(tool, schemas(index=True, anchors=True, write=True, strict=True)[tool][1])


@each_tool
def test_strict_schema_differs_from_the_plain_one_in_its_arguments_alone(tool: str) -> None:
    description, arguments, answer = schemas(index=True, anchors=True, write=True)[tool]
    strict_description, strict, strict_answer = schemas(index=True, anchors=True, write=True, strict=True)[tool]
    assert (strict_description, strict_answer) == (description, answer)
    assert [*strict["properties"]] == [*arguments["properties"]]
    for name, about in strict["properties"].items():
        assert about["description"].startswith(arguments["properties"][name]["description"])


@each_tool
def test_null_for_an_optional_argument_of_the_strict_schema_means_its_default(tool: str) -> None:
    strict = schemas(index=True, anchors=True, write=True, strict=True)[tool][1]
    values = {name: None if "anyOf" in about else "x" for name, about in strict["properties"].items()}
    jsonschema.Draft202012Validator(strict).validate(values)
    required = {name: value for name, value in values.items() if value is not None}
    assert parse_arguments(TOOLS[tool], values) == parse_arguments(TOOLS[tool], required)


@pytest.mark.parametrize("api", APIS)
def test_null_in_a_call_means_the_default(api: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    workspace = Asked(api, tmp_path)
    strict = schemas(strict=True)
    for tool, given in (("grep_content", {"pattern": "x"}), ("find_files", {}), ("ls", {}), ("tree", {})):
        nulls: dict[str, Any] = {**dict.fromkeys(strict[tool][1]["properties"]), **given}
        assert workspace.call(tool, nulls) == workspace.call(tool, given)
        assert "a.py" in workspace.call(tool, nulls)
