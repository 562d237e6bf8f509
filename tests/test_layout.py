"""The layout of the source: how long it is, and that each type has a name of its own."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import ripwrap

SOURCE = Path(ripwrap.__file__).parent

TWINS = {
    "Index": "generated blocking twin",
    "ReplacePlan": "generated blocking twin",
    "Repositories": "generated blocking twin",
    "Tool": "generated blocking twin",
    "Workspace": "generated blocking twin",
    "Popen": "one for each system: posix.py and windows.py",
}
"""Names that stand for one thing, and why it is defined twice."""

PUBLIC = {
    "Host": "ripwrap.places.Host and ripwrap.remote.Host",
    "Progress": "ripwrap.Progress and ripwrap.index.Progress",
    "Source": "ripwrap.binary.Source and ripwrap.places.Source",
}
"""Public names of two types, in modules of their own."""

MAX_LINES = 64_435
"""Lines of `src/ripwrap` that people write and read; a change that deletes lines lowers it."""

MAKERS = {"NamedTuple", "NewType", "TypedDict"}


def defined_types(body: list[ast.stmt]) -> Iterator[str]:
    """Yield the names of the classes and type aliases that a module defines."""
    for node in body:
        match node:
            case ast.ClassDef(name=name):
                yield name
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation) if "TypeAlias" in ast.unparse(
                annotation
            ):
                yield name
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id=maker))) if maker in MAKERS:
                yield name
            case ast.If(body=inner, orelse=other) | ast.Try(body=inner, orelse=other):
                yield from defined_types([*inner, *other])


def modules_of_types(source: Path) -> dict[str, list[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(source.rglob("*.py")):
        if path.name == "blocking.py" or "sync" in path.parts:  # generated twins
            continue
        for name in defined_types(ast.parse(path.read_text(encoding="utf-8")).body):
            found[name].append(path.relative_to(source).as_posix())
    return found


def test_hand_written_lines_are_within_the_limit() -> None:
    """In two days the source had grown by a quarter, and each way through it by a third or more."""
    texts = (path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    lines = sum(text.count("\n") for text in texts if not text.startswith("# Generated"))
    assert MAX_LINES - 1_000 < lines <= MAX_LINES, "delete more than you add; lower the limit after a deletion"


@pytest.mark.parametrize("pattern", [r"(?:ab?c)*+", r"(ab|c){2,}+", r"a(b)++", r"(?:a|b)?+"])
def test_no_group_is_repeated_possessively(pattern: str) -> None:
    """Such patterns miss matches before Python 3.11.5 (gh-106052), which Debian 12 does not have."""
    possessive = re.compile(r"(?<!\\)\)(?:[*+?]|\{\d[\d,]*\})\+")
    assert possessive.search(pattern)
    files = sorted(SOURCE.rglob("*.py"))
    assert [path for path in files if possessive.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.slow
def test_each_type_has_a_name_of_its_own() -> None:
    """47 names of types were defined twice or more."""
    known = {*TWINS, *PUBLIC}
    twice = {name: modules for name, modules in modules_of_types(SOURCE).items() if len(modules) > 1}
    assert {name: modules for name, modules in twice.items() if name not in known} == {}


@pytest.mark.parametrize(
    "text",
    ["class A: ...", "A: TypeAlias = int", "A = NewType('A', int)", "if X:\n    class A: ...", "A: 'TypeAlias' = int"],
)
def test_a_name_that_two_modules_define_is_found(tmp_path: Path, text: str) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(text)
    assert modules_of_types(tmp_path) == {"A": ["a.py", "b.py"]}
