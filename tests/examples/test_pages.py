"""Code of the pages on data frames and notebooks, which needs more packages than other pages."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pandas")
pytest.importorskip("polars")
pytest.importorskip("pyarrow")
pytest.importorskip("ipykernel")
pytest.importorskip("nbclient")
pytest.importorskip("nbformat")


from support.runs import DEMO, executed
from test_docs import BLOCK, ROOT, run

pytestmark = [pytest.mark.extra, pytest.mark.slow]

PAGES = ROOT / "docs/how-to"
BLOCKS = list(BLOCK.finditer((PAGES / "data-frames.md").read_text()))


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block["output"].partition("\n")[0])
def test_data_frames_block_prints_the_output_below_it(block: "re.Match[str]", tmp_path: Path) -> None:
    run(block, tmp_path)


def test_notebooks_page_runs_as_one_notebook(tmp_path: Path) -> None:
    code = re.findall(r"^```py(?:thon)?\n(.*?)^```$", (PAGES / "notebooks.md").read_text(), re.MULTILINE | re.DOTALL)
    empty: dict[str, Any] = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    cells = [{**empty, "id": f"cell-{number}", "source": source} for number, source in enumerate(code)]
    notebook = tmp_path / "page.ipynb"
    notebook.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    shutil.copytree(DEMO, tmp_path / "docs" / "demo")
    ran = executed(notebook, tmp_path / "home")
    assert len(ran) == len(code) >= 6
    shown = [output["output_type"] for cell in ran for output in cell["outputs"]]
    assert set(shown) == {"execute_result", "stream"}
