"""Every Python block of the README and the docs is run, and prints what stands below it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```$)?", re.MULTILINE | re.DOTALL)
ELSEWHERE = {"agents.md", "mcp.md"}  # need what not everybody has, and are run by tests that do
BLOCKS = [(page, block) for page in PAGES if page.name not in ELSEWHERE for block in BLOCK.finditer(page.read_text())]


@pytest.mark.parametrize(("page", "block"), BLOCKS, ids=lambda value: getattr(value, "stem", ""))
def test_a_python_block_prints_what_stands_below_it(page: Path, block: "re.Match[str]", tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs" / "demo", tmp_path / "docs" / "demo")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", block["code"]], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    if block["output"] is not None:
        assert done.stdout == block["output"]


def test_the_readme_has_examples_with_output_and_is_short() -> None:
    readme = (ROOT / "README.md").read_text()
    assert len([block for page, block in BLOCKS if page.name == "README.md" and block["output"]]) >= 2
    assert readme.count("\n") < 120


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page}: {target}"


def test_the_readme_promises_the_two_commands_that_ci_runs() -> None:
    readme = (ROOT / "README.md").read_text()
    assert 'python -m pip install ".[bin,cli]" && python -m ripwrap search "async def" src\n' in readme
    assert "python -m pip install nox && python -m nox -s tests\n" in readme
    assert "python -m pip install nox && python -m nox -s tests" in (ROOT / ".ci" / "run").read_text()


def test_every_test_that_holds_a_promise_exists() -> None:
    page = (ROOT / "docs" / "explanation" / "guarantees.md").read_text()
    named, path = 0, ""
    for module, test in re.findall(r"`(?:(tests/\w+\.py))?(?:::)?((?:test_|Test)\w+)?`", page):
        path = module or path
        if module or test:
            source = (ROOT / path).read_text()
            assert not test or re.search(rf"^ *(async def|def|class) {test}\b", source, re.MULTILINE), f"{path}::{test}"
            named += 1
    assert named > 30
