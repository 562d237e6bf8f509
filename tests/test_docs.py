"""Documentation: every Python block of the README and the docs runs and prints the output below it."""

import ast
import inspect
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

import pipeline
import ripwrap
from ripwrap import binary, places, sync, workspace
from ripwrap.sync import resolve
from support import demo, forks

ROOT = Path(__file__).parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "VERSIONING.md")),
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if not {"_build", "_generated"} & set(page.parts)),
]
BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```$)?", re.MULTILINE | re.DOTALL)
# Pages with blocks that need optional packages; other tests run them.
ELSEWHERE = {"agents.md", "agent-frameworks.md", "mcp.md", "data-frames.md"}

OPTIONAL = {"_code(": "ast_grep_py", "to_pandas(": "pandas"}
"""Calls that need an optional package, and the module of the package."""


def needed(block: "re.Match[str]") -> list[pytest.MarkDecorator]:
    """Return the marker of a block that needs an optional package."""
    return [pytest.mark.extra] if any(name in block["code"] for name in OPTIONAL) else []


BLOCKS = [
    pytest.param(page, block, marks=needed(block))
    for page in PAGES
    if page.name not in ELSEWHERE
    for block in BLOCK.finditer(page.read_text("utf-8"))
]
MODULES = (ripwrap, sync, binary, places, workspace)
TOLD = MODULES + tuple(getattr(module, name) for module in MODULES for name in module.__all__)
DOCSTRINGS = {inspect.getdoc(thing) or "": 0 for thing in TOLD}
IN_DOCSTRINGS = [pytest.param(block, marks=needed(block)) for text in DOCSTRINGS for block in BLOCK.finditer(text)]


def run(block: "re.Match[str]", tmp_path: Path, source: Path = ROOT / "docs" / "demo") -> None:
    """Run a block in a folder with the demo, and compare its output with the output block below it."""
    for name in (name for call, name in OPTIONAL.items() if call in block["code"]):
        pytest.importorskip(name)
    shutil.copytree(source, tmp_path / "docs" / "demo")
    path = os.pathsep.join([os.path.dirname(resolve().path), os.environ["PATH"]])
    done = forks.run(["-c"], block["code"], cwd=tmp_path, env={**os.environ, "PATH": path})
    assert (done.returncode, done.stderr) == (0, "")
    if block["output"] is not None:
        assert done.stdout == block["output"]


@pytest.mark.slow
@pytest.mark.parametrize(("page", "block"), BLOCKS, ids=lambda value: getattr(value, "stem", ""))
def test_python_block_prints_the_output_below_it(page: Path, block: "re.Match[str]", tmp_path: Path) -> None:
    run(block, tmp_path, source=ROOT / "docs" / "demo" if page.name != "recipes.md" else demo.plant(tmp_path / "shop"))


@pytest.mark.slow
@pytest.mark.parametrize("block", IN_DOCSTRINGS, ids=lambda block: block["output"].partition("\n")[0])
def test_docstring_block_prints_the_output_below_it(block: "re.Match[str]", tmp_path: Path) -> None:
    run(block, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_prose_wraps_at_100_columns(page: Path) -> None:
    prose = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    long = [line for line in prose.splitlines() if len(line) > 100 and not line.startswith(("|", "#", "!["))]
    assert [line for line in long if " " in line.strip("- ")] == []  # a link may be longer


NOT_RUN = {
    "fastapi.md": 2,  # need a server; `examples/test_fastapi.py` runs them
    "from-grep-tools.md": 2,  # needs python-ripgrep and rgapi
    "from-ripgrepy.md": 1,  # needs ripgrepy
    "from-rpygrep.md": 1,  # needs rpygrep
    "items.md": 2,  # need a repository and a bucket; `_operations/test_revisions.py` and `stores` have their calls
    "remote.md": 2,  # needs another machine
    "notebooks.md": 4,  # needs a kernel; `examples/test_pages.py` runs these
    "scan.md": 1,  # needs a repository; `_scan/test_scan_of_history.py` has its calls
    "tests.md": 1,  # a file for pytest; the tests of `examples/downstream` use the fixtures
    "trio.md": 2,  # files for pytest; the test below runs them
    "watch.md": 1,  # never ends; `_operations/test_watch.py` has its calls
}
WRITTEN = {
    page.name: re.findall(r"^```py\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL) for page in PAGES
}


def test_blocks_that_do_not_run_are_listed_and_compile() -> None:
    assert {name: len(blocks) for name, blocks in WRITTEN.items() if blocks} == NOT_RUN
    for blocks in WRITTEN.values():
        for block in blocks:
            compile(block, "block", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


@pytest.mark.slow
def test_tests_on_the_trio_page_pass(tmp_path: Path) -> None:
    for block in WRITTEN["trio.md"]:
        (tmp_path / block.partition("\n")[0].removeprefix("# ")).write_text(block)
    # With its own --basetemp it deletes no directories of other sessions, which may take a minute at the end.
    argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-W", "error", "--basetemp=.tmp", "."]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=50)
    assert "2 passed" in done.stdout


def test_docstrings_have_examples() -> None:
    assert len(IN_DOCSTRINGS) >= 6


def test_readme_is_short_and_has_examples_with_output() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert len([block for block in BLOCK.finditer(readme) if block["output"]]) >= 2
    assert readme.count("\n") < 125


def test_pipeline_picture_is_up_to_date() -> None:
    assert (ROOT / "docs" / "pictures" / "pipeline.svg").read_text("utf-8") == pipeline.picture()
    for stage in (*pipeline.PIPELINE, *pipeline.ON_TOP):
        for room in stage.rooms:
            assert find_spec(f"ripwrap.{room}"), room


def test_links_between_pages_resolve() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page}: {target}"


def test_readme_has_the_two_commands_that_ci_runs() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert ' && python -m pip install ".[bin,cli]" && python -m ripwrap search "async def" src\n' in readme
    assert " && python -m pip install nox && python -m nox -s tests\n" in readme
    ci = (ROOT / ".ci" / "run").read_text("utf-8")
    assert "python -m pip install nox && python -m nox -s tests\n" in ci
    whole = re.findall(r'^WHOLE = \["tests", (.+)\]$', (ROOT / "noxfile.py").read_text("utf-8"), re.MULTILINE)
    run = re.findall(r"^(?:python -m nox -s|sessions=\()([\w ]+)", ci, re.MULTILINE)
    assert {*" ".join(run).split(), "lowest"} == set(re.findall(r"\w+", *whole)), "CI runs the whole"


def test_every_test_named_on_the_guarantees_page_exists() -> None:
    page = (ROOT / "docs" / "explanation" / "guarantees.md").read_text("utf-8")
    named, path = 0, ""
    for module, test in re.findall(r"`(?:(tests/[\w/]+\.py))?(?:::)?((?:test_|Test)\w+)?`", page):
        path = module or path
        if module or test:
            source = (ROOT / path).read_text("utf-8")
            assert not test or re.search(rf"^ *(async def|def|class) {test}\b", source, re.MULTILINE), f"{path}::{test}"
            named += 1
    assert named > 30


def test_page_of_extras_has_every_extra() -> None:
    """`nox -s weight` measures the sizes."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    rows = re.findall(
        r"^\| (?:`([\w-]+)`|none) \| .+ \| \d+ \|$", (ROOT / "docs/reference/extras.md").read_text(), re.MULTILINE
    )
    assert sorted(rows) == sorted(["", *declared])
    assert not [one for one in declared["all"] if "hosted" in one or "google" in one]
