"""Blocks of the page on frameworks in the docs, as tests run them."""

import re
import runpy
from contextlib import chdir
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGE = (DOCS / "how-to" / "agent-frameworks.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))

APART = frozenset({"crewai", "google", "semantic_kernel", "strands"})
"""Packages that need older packages than the others, so they are installed in an environment of their own."""


def import_or_skip(*modules: str) -> None:
    """Skip a test if a module is not installed, or if the other environment of `nox -s frameworks` has it."""
    apart = any(module.partition(".")[0] in APART for module in modules)
    if apart != (find_spec("crewai") is not None):
        pytest.skip("the other environment of `nox -s frameworks` runs this")
    for module in modules:
        pytest.importorskip(module, exc_type=ImportError)


def run_last_block(title: str, folder: Path) -> dict[str, Any]:
    """Run the last block of a section in a folder with the demo, such as a clone; return the names that it defines."""
    *_, block = re.findall(r"^```python\n(.*?)^```$", SECTIONS[title], re.MULTILINE | re.DOTALL)
    (folder / "demo" / "build" / "block.py").write_text(block)
    with chdir(folder):
        return runpy.run_path("demo/build/block.py", run_name="__main__")
