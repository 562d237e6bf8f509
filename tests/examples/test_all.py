"""Checks of all examples: each has a test and says how to run it."""

import ast
import json
from pathlib import Path

import pytest

from support.runs import EXAMPLES, run

pytestmark = pytest.mark.slow

TESTS = Path(__file__).parent
PROGRAMS = sorted(path.name for path in EXAMPLES.glob("*.py") if not path.name.startswith("agents_"))


def test_every_example_has_a_test() -> None:
    for example in EXAMPLES.iterdir():
        if example.name in ("__pycache__", "pyrightconfig.json"):
            continue
        agents = example.name.startswith("agents_")
        folder = TESTS.parent / "frameworks" if agents else TESTS
        test = folder / f"test_{example.stem.removeprefix('agents_')}.py"
        assert test.exists(), f"{example.name} has no test; it should be {test}"
        assert example.stem in test.read_text(encoding="utf-8")


def test_every_test_file_has_an_example() -> None:
    stems = {path.stem for path in EXAMPLES.iterdir()}
    assert {path.stem.removeprefix("test_") for path in TESTS.glob("test_*.py")} - stems == {"all", "fastapi"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_docstring_says_how_to_run_the_example(name: str) -> None:
    says = ast.get_docstring(ast.parse((EXAMPLES / name).read_text(encoding="utf-8"))) or ""
    assert f"`python examples/{name}" in says.partition("\n")[0]


@pytest.mark.parametrize("name", PROGRAMS)
def test_missing_folder_gives_a_one_line_error(name: str, folder: Path) -> None:
    first = ["x"] if name in ("grep_then_read.py", "many_repositories.py", "progress_rich.py") else []
    code, out, err = run(name, *first, folder / "no-such-folder")
    assert (code, out) == (2, "")
    if name != "progress_tqdm.py":  # tqdm may be missing, and draws its bar on stderr
        assert err.count("\n") == 1
        assert "no-such-folder" in err


def test_notebook_is_stored_without_outputs() -> None:
    notebook = json.loads((EXAMPLES / "notebook.ipynb").read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [(cell["outputs"], cell["execution_count"]) for cell in code] == [([], None)] * len(code)
