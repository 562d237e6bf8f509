"""Every example is tested, and says how to run it."""

import ast
import json
from pathlib import Path

import pytest

from examples.runs import EXAMPLES, run

TESTS = Path(__file__).parent
PROGRAMS = sorted(path.name for path in EXAMPLES.glob("*.py") if not path.name.startswith("agents_"))


def test_every_example_has_a_test() -> None:
    for example in EXAMPLES.iterdir():
        if example.suffix not in (".py", ".ipynb"):
            assert example.name == "__pycache__"
            continue
        agents = example.name.startswith("agents_")
        folder = TESTS.parent / "frameworks" if agents else TESTS
        test = folder / f"test_{example.stem.removeprefix('agents_')}.py"
        assert test.exists(), f"{example.name} has no test; it should be {test}"
        assert example.stem in test.read_text(encoding="utf-8")


def test_every_test_is_of_an_example() -> None:
    stems = {path.stem for path in EXAMPLES.iterdir()}
    assert {path.stem.removeprefix("test_") for path in TESTS.glob("test_*.py")} - stems == {"all", "pages"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_docstring_says_how_to_run_it(name: str) -> None:
    says = ast.get_docstring(ast.parse((EXAMPLES / name).read_text(encoding="utf-8"))) or ""
    assert f"`python examples/{name}" in says.partition("\n")[0]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_folder_that_is_not_there_is_told_in_one_line(name: str, folder: Path) -> None:
    first = ["x"] if name in ("grep_then_read.py", "many_repositories.py") else []
    code, out, err = run(name, *first, folder / "no-such-folder")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "no-such-folder" in err


def test_the_notebook_is_stored_without_outputs() -> None:
    notebook = json.loads((EXAMPLES / "notebook.ipynb").read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [(cell["outputs"], cell["execution_count"]) for cell in code] == [([], None)] * len(code)
