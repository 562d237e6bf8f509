"""Checks of the tools in a framework: schemas must equal the signatures, and results those of the methods."""

import asyncio
import inspect
import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, get_args, get_origin, get_type_hints
from unittest.mock import patch

import pytest

from ripwrap import Workspace, sync
from ripwrap.workspace import schemas
from ripwrap.workspace.arguments import parameter_descriptions
from support import offline

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
SNAPSHOTS = Path(__file__).parent.parent / "data" / "frameworks"
NAMES = ("grep_content", "find_files", "ls", "tree", "codebase_search", "find_references", "read_file", "history")
JSON_TYPES: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    list[str]: {"type": "array", "items": {"type": "string"}},
}

Call: TypeAlias = tuple[str, dict[str, Any]]

CALLS: tuple[Call, ...] = (
    ("grep_content", {"pattern": r"TODO: (\w+)", "path": ".", "file_pattern": "*.py", "context_lines": 0}),
    ("grep_content", {"pattern": "def ", "output_mode": "files_with_matches", "case_insensitive": True}),
    ("find_files", {"pattern": "*.py", "sort": "path", "limit": 1}),
    ("ls", {"path": ".", "ignore": ["*.md"]}),
    ("ls", {}),
    ("tree", {"limit": 10}),
    ("read_file", {"path": "cart.py", "ranges": "1-2,4-"}),
    ("find_references", {"name": "TODO", "limit": 3}),
    ("codebase_search", {"query": "what is to be done", "limit": 3}),
)
MISTAKES: tuple[Call, ...] = (
    ("grep_content", {"pattern": "TODO", "max_matches": -1}),
    ("grep_content", {"pattern": "TODO", "path": ".."}),
    ("grep_content", {"pattern": "TODO", "path": "../secret.txt"}),
    ("grep_content", {"pattern": "("}),
    ("grep_content", {"pattern": "TODO", "file_type": "no-such-type"}),
    ("find_files", {"limit": -1}),
    ("ls", {"path": "/"}),
    ("ls", {"path": "no-such-folder"}),
    ("tree", {"limit": -5}),
    ("codebase_search", {"query": "?"}),
    ("codebase_search", {"query": "x", "path": ".."}),
    ("find_references", {"name": "no name"}),
    ("read_file", {"path": "../secret.txt"}),
)

each_tool = pytest.mark.parametrize("name", NAMES)
each_mistake = pytest.mark.parametrize(("name", "arguments"), MISTAKES)


class Offer(NamedTuple):
    """Tool as a framework describes it to a model."""

    name: str
    description: str
    parameters: dict[str, Any]


def expected(method: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    """Return the JSON schema of each argument of a signature."""
    schemas = {}
    hints = get_type_hints(method)
    for name, parameter in inspect.signature(method).parameters.items():
        hint = hints[name]
        schema = {"type": "string", "enum": [*get_args(hint)]} if get_origin(hint) is Literal else JSON_TYPES[hint]
        schemas[name] = (
            schema if parameter.default is inspect.Parameter.empty else {**schema, "default": parameter.default}
        )
    return schemas


def summary(method: Callable[..., Any]) -> str:
    """Return the first line of the docstring."""
    return (inspect.getdoc(method) or "").partition("\n")[0]


def check(
    method: Callable[..., Any], offer: Offer, *, defaults: bool = True, bounds: bool = True, strict: bool = False
) -> None:
    """Check that a tool has the method's names, types, defaults and descriptions, in a schema that all models accept.

    The bounds are compared with those of `schemas()`.

    Args:
        method: The tool.
        offer: The tool as the framework offers it.
        defaults: True if the framework includes defaults.
        bounds: True if the framework includes bounds.
        strict: True if all arguments are required, as in OpenAI's strict schemas.
    """
    assert offer.name == method.__name__
    assert summary(method) in offer.description
    wanted, properties = expected(method), offer.parameters["properties"]
    keys = ("type", "items", "enum", *["default"] * defaults)
    assert {name: _only(keys, schema) for name, schema in properties.items()} == {
        name: _only(keys, schema) for name, schema in wanted.items()
    }
    own, limits = schemas()[method.__name__][1]["properties"], ("minimum", "maximum")
    assert {name: _only(limits, schema) for name, schema in properties.items()} == {
        name: _only(limits if bounds else (), schema) for name, schema in own.items()
    }
    assert {name: schema["description"] for name, schema in properties.items()} == parameter_descriptions(method)
    asked = {"grep_content": ["pattern"], "find_references": ["name"], "read_file": ["path"]}
    required = [*wanted] if strict else asked.get(method.__name__, [])
    assert offer.parameters.get("required", []) == required
    assert not re.search(r"'(anyOf|oneOf|allOf|\$ref|\$defs|definitions)'", repr(offer.parameters))
    assert all(re.fullmatch(r"[a-z_]+", name) for name in (offer.name, *properties))


def check_snapshot(framework: str, offers: Mapping[str, Offer]) -> None:
    """Compare a framework's tools with its snapshot in `tests/data/frameworks/`; see CONTRIBUTING.md."""
    snapshot = SNAPSHOTS / f"{framework}.json"
    # Since Python 3.13 docstrings have no indentation.
    made = {
        name: offer._asdict() | {"description": inspect.cleandoc(offer.description)} for name, offer in offers.items()
    }
    assert tuple(made) == NAMES
    if os.environ.get("RIPWRAP_WRITE_SNAPSHOTS"):
        snapshot.parent.mkdir(exist_ok=True)
        snapshot.write_text(json.dumps(made, indent=1, sort_keys=True) + "\n", "utf-8")
    assert made == json.loads(snapshot.read_text("utf-8"))


def _only(keys: Sequence[str], schema: dict[str, Any]) -> dict[str, Any]:
    return {key: schema[key] for key in keys if key in schema}


def check_answers(ws: Workspace, answers: list[str]) -> None:
    """Check that the answers to `CALLS` equal the results of the methods and have matches."""

    async def of_the_methods() -> list[str]:
        return [await getattr(ws, name)(**arguments) for name, arguments in CALLS]

    _check_found(answers, asyncio.run(of_the_methods()))


def check_blocking_answers(ws: sync.Workspace, answers: list[str]) -> None:
    """Check answers as `check_answers()` does, for the blocking workspace."""
    _check_found(answers, [getattr(ws, name)(**arguments) for name, arguments in CALLS])


def _check_found(answers: list[str], own: list[str]) -> None:
    assert answers == own
    for answer in answers:
        assert "cart.py" in answer or answer == own[-1]
        assert "outside of the root" not in answer
        assert not answer.startswith("Error: ")


def run_example(name: str, folder: Path, *options: str) -> str:
    """Return what an example prints, without network; by default, `options` of Python turn warnings into errors.

    Check that it fails on a missing folder, in this process, which has imported the framework.
    """
    script = [str(Path(offline.__file__)), str(EXAMPLES / name), str(folder)]
    command = [sys.executable, *(options or ("-W", "error")), *script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    with patch.object(sys, "argv", [name, str(folder / "no-such-folder")]), pytest.raises((OSError, ExceptionGroup)):
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return done.stdout


def check_example(name: str, folder: Path, *options: str) -> None:
    """Check that an example finds the files of a folder and fails on a missing one."""
    printed = run_example(name, folder, *options)
    for found in ("# grep_content\n", "# ls\n", "cart.py", "till.py", "TODO: taxes", "That is all of it."):
        assert found in printed


def check_question(name: str, folder: Path, *options: str) -> None:
    """Check that the agent of an example searches for a question, reads what it found, and answers from that."""
    (folder / "cart.py").write_text("\n\ndef total(items):\n    return 0\n")
    searched, _, read = run_example(name, folder, *options).partition("# read_file\n")
    assert "# codebase_search\ncart.py:" in searched
    assert "def total(items)" in read
    assert read.splitlines()[-1] == "total() in cart.py, line 3."
