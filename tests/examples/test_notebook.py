"""`notebook.ipynb` and the page on notebooks run unchanged, and show the results of their searches."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ipykernel")
pytest.importorskip("nbclient")
pytest.importorskip("nbformat")


import demo
from support.runs import EXAMPLES, ROOT, executed

pytestmark = [pytest.mark.extra, pytest.mark.slow]


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The code cells of the notebook after a run, by id."""
    checkout, home = tmp_path_factory.mktemp("checkout"), tmp_path_factory.mktemp("home")
    demo.make(checkout / "demo")
    (checkout / "examples").mkdir()
    notebook = Path(shutil.copy(EXAMPLES / "notebook.ipynb", checkout / "examples"))
    return {cell["id"]: cell for cell in executed(notebook, home)}


def shown(cell: dict[str, Any], kind: str = "text/html") -> str:
    """Return the only output of a cell."""
    (output,) = cell["outputs"]
    assert output["output_type"] == "execute_result"
    content = output["data"][kind]
    return content if isinstance(content, str) else "".join(content)


def table(html: str) -> list[list[str]]:
    """Return the cells of a table, row by row."""
    rows = re.findall(r"<tr>(.*?)</tr>", html)
    return [re.findall(r"<t[dh]>(.*?)</t[dh]>", row) for row in rows]


def test_every_cell_runs_without_warnings(cells: dict[str, dict[str, Any]]) -> None:
    assert [cell["execution_count"] for cell in cells.values()] == [*range(1, len(cells) + 1)]
    kinds = {output["output_type"] for cell in cells.values() for output in cell["outputs"]}
    assert kinds == {"execute_result"}
    assert [name for name, cell in cells.items() if not cell["outputs"]] == ["imports"]


def test_notebook_shows_the_tree(cells: dict[str, dict[str, Any]]) -> None:
    lines = re.sub(r"<[^>]+>", "", shown(cells["tree"])).splitlines()
    assert lines == [
        "logs/",
        "    till.log.gz",
        "shop/",
        "    cart.py",
        "    till.py",
        ".env",
        ".gitignore",
        "README.txt",
    ]


def test_notebook_marks_hits_and_shows_the_next_page(
    cells: dict[str, dict[str, Any]],
) -> None:
    first, second = shown(cells["grep"]), shown(cells["page"])
    assert first.startswith("<div>Matches 1 to 4 of 5 matches in 3 files")
    assert [first.count(f"<mark>{hit}</mark>") for hit in ("TODO", "return")] == [3, 1]
    assert second.count("<mark>return</mark>") == 1
    assert "<b>shop/till.py</b>" in second


def test_table_has_every_hit(cells: dict[str, dict[str, Any]]) -> None:
    assert table(shown(cells["table"])) == [
        ["path", "line", "column", "hit", "text"],
        ["README.txt", "1", "22", "TODO: open", "Nothing is sold here. TODO: open."],
        ["shop/cart.py", "4", "10", "items", "def total(items):"],
        ["shop/cart.py", "5", "6", "TODO: taxes", "# TODO: taxes"],
        ["shop/cart.py", "6", "22", "item", "return sum(PRICES[item] for item in items)"],
        ["shop/cart.py", "6", "32", "item", "return sum(PRICES[item] for item in items)"],
        ["shop/cart.py", "6", "40", "items", "return sum(PRICES[item] for item in items)"],
        ["shop/till.py", "1", "20", "TODO: cards", "def pay(amount):  # TODO: cards"],
    ]


def test_bar_lengths_are_proportional_to_the_counts(cells: dict[str, dict[str, Any]]) -> None:
    rows = table(shown(cells["bars"]))
    counts = {path: int(count) for path, count, _ in rows}
    widths = {path: int(re.findall(r"width: (\d+)px", bar)[0]) for path, _, bar in rows}
    assert counts == {".env": 2, ".gitignore": 1, "README.txt": 6, "shop/cart.py": 16, "shop/till.py": 7}
    assert widths == {path: 300 * count // 16 for path, count in counts.items()}


def test_result_survives_json_in_the_notebook(cells: dict[str, dict[str, Any]]) -> None:
    assert shown(cells["json"], "text/plain") == "True"


def test_notebooks_page_runs_as_one_notebook(tmp_path: Path) -> None:
    page = (ROOT / "docs/how-to/notebooks.md").read_text()
    code = re.findall(r"^```py(?:thon)?\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    empty: dict[str, Any] = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    cells = [{**empty, "id": f"cell-{number}", "source": source} for number, source in enumerate(code)]
    notebook = tmp_path / "page.ipynb"
    notebook.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    demo.make(tmp_path / "demo")
    ran = executed(notebook, tmp_path / "home")
    assert len(ran) == len(code) >= 6
    shown = [output["output_type"] for cell in ran for output in cell["outputs"]]
    assert set(shown) == {"execute_result", "stream"}
