"""`replace_code()` on packages of this environment, and files whose new text would not parse."""

import ast
import shutil
import warnings
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from ripwrap import sync
from support.effort import STRESS

pytest.importorskip("ast_grep_py")

Plant = Callable[..., Path]
pytestmark = [pytest.mark.extra, pytest.mark.slow, pytest.mark.usefixtures("leaks_nothing")]

PACKAGES = ["anyio", "hypothesis", "pydantic", "_pytest", "trio"] if STRESS else ["pluggy"]
FIXES = [
    ("if $A: $$$B", "if not $A:\n    x()\n    $$$B"),
    ("def $F($$$A): $$$B", "def $F($$$A):\n    x()\n    $$$B"),
    ("$A = $B", "$A = (\n    $B\n)"),
    ("$F($$$A)", "f(\n    $F,\n    $$$A\n)"),
    ("return $A", "return f(\n    $A,\n)"),
    ("for $A in $B: $$$C", "for $A in f($B):\n    x()\n    $$$C"),
    ("if $A: $$$B\nelse: $$$C", "if not $A:\n    $$$C\nelse:\n    $$$B"),
    ("with $A: $$$B", "with f($A):\n    x()\n    $$$B"),
    ("try: $$$A\nexcept $E: $$$B", "with f($E):\n    $$$A"),
    ("class $A($$$B): $$$C", "class $A($$$B):\n    x = 1\n    $$$C"),
    ("[$A for $B in $C]", "list($A for $B in $C)"),
    ("raise $A", "raise $A from None"),
    ("$A if $B else $C", "(\n    $B\n    and $A or $C)"),
    ("@$A", "@f($A)"),
    ("lambda $$$A: $B", "f(lambda $$$A: (\n  $B))"),
]
"""Patterns and fixes, of which some leave code that does not parse."""


def parsed(path: Path) -> ast.Module | None:
    """Return the syntax tree of a file, or `None` if Python does not accept it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):
            return None


def strings(tree: ast.Module) -> Counter[object]:
    """Return how often each string is in a syntax tree."""
    nodes = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return Counter(value for value in nodes if isinstance(value, str | bytes))


@pytest.mark.stress
@pytest.mark.parametrize(("pattern", "fix"), FIXES if STRESS else FIXES[:4])
@pytest.mark.parametrize("package", PACKAGES)
def test_every_file_of_a_package_that_parsed_still_parses(tmp_path: Path, package: str, pattern: str, fix: str) -> None:
    """A file whose new text does not parse is named and not written, and no string has new contents."""
    spec = find_spec(package)
    assert spec is not None and spec.origin is not None
    source = Path(spec.origin).parent
    folder = shutil.copytree(source, tmp_path / "package", ignore=shutil.ignore_patterns("__pycache__"))
    before = {path: (path.read_bytes(), parsed(path)) for path in folder.rglob("*.py")}
    plan = sync.replace_code(pattern, fix, lang="python", cwd=folder, no_ignore=True, hidden=True, file_timeout=60)
    plan.apply(journals=tmp_path / "journals")
    changed = {path for path, (old, _) in before.items() if path.read_bytes() != old}
    assert changed == {folder / file.path for file in plan}
    for path in changed:
        new, old = parsed(path), before[path][1]
        assert new is not None or old is None, path
        if new is not None and old is not None:
            assert not strings(new) - strings(old), path
    left_out = {error.path for error in plan.errors if "not changed" in error.message}
    assert not left_out & {file.path for file in plan}


def test_a_file_whose_new_text_would_not_parse_is_named_and_not_written(plant: Plant) -> None:
    """The other files are changed."""
    texts = {
        "a.py": "if a:\n    b()\nelif c:\n    d()\nelse:\n    e()\n",
        "b.py": "if a:\n    b()\nelse:\n    e()\n",
        "c.js": "f(a)\r\n",
    }
    folder = plant({name: text.encode() for name, text in texts.items()})
    plan = sync.replace_code(
        "if $A: $$$B\nelse: $$$C", "if not $A:\n    $$$C\nelse:\n    $$$B", lang="python", cwd=folder
    )
    (error,) = plan.errors
    assert error.path == "a.py"
    assert error.message == (
        "it is not changed, because with the new text, line 5 would not be valid python; "
        "correct the fix, or replace by hand"
    )
    plan.apply(journals=folder.parent / "journals")
    assert (folder / "a.py").read_text() == texts["a.py"]
    assert (folder / "b.py").read_text() == "if not a:\n    e()\nelse:\n    b()\n"
    plan = sync.replace_code("f($A)", "g(\n  $A)", lang="js", cwd=folder)
    plan.apply(journals=folder.parent / "journals")
    assert (folder / "c.js").read_bytes() == b"g(\r\n  a)\r\n"


def test_a_file_that_is_only_partly_parsed_is_named_and_not_written(plant: Plant) -> None:
    folder = plant({"a.py": "f(a)\nx = = 1\n", "b.py": "f(b)\n", "c.py": "# f\nx = = 1\n"})
    plan = sync.replace_code("f($A)", "g($A)", lang="python", cwd=folder)
    assert [file.path for file in plan] == ["b.py"]
    assert [(error.path, error.message) for error in plan.errors] == [
        ("a.py", "it is not changed, because line 2 is not valid python; correct that line, or replace by hand"),
        ("c.py", "line 2 is not valid python; matches may be missing"),
    ]


def test_a_match_that_would_lose_code_is_named_with_its_line(plant: Plant) -> None:
    """The other matches of the file are replaced."""
    folder = plant({"a.py": "[a async for a in b]\n[a for a in b]\n"})
    plan = sync.replace_code("[$A for $B in $C]", "list($C)", lang="python", cwd=folder)
    (error,) = plan.errors
    reason = "`async` is not in the pattern, and would be lost"
    assert error.message == f"the match in line 1 is not replaced: {reason}; replace it by hand"
    plan.apply(journals=folder.parent / "journals")
    assert (folder / "a.py").read_text() == "[a async for a in b]\nlist(b)\n"
