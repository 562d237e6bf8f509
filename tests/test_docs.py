"""Documentation: its links, lengths of lines, pictures, and the tests and extras that it names."""

import re
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

import pipeline

ROOT = Path(__file__).parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "VERSIONING.md")),
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if not {"_build", "_generated"} & set(page.parts)),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_prose_wraps_at_100_columns(page: Path) -> None:
    prose = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    long = [line for line in prose.splitlines() if len(line) > 100 and not line.startswith(("|", "#", "!["))]
    assert [line for line in long if " " in line.strip("- ")] == []  # a link may be longer


def test_readme_is_short_and_has_examples_with_output() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert readme.count("\n```text\n") >= 2
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
    run = re.findall(r"(?:^sessions=\(|python -m nox -s )([\w ]+)", ci, re.MULTILINE)
    sessions = {*" ".join(run).split(), "lowest"} - {
        "tests",
        "sid",
        "windows",
    }  # they need root and Wine, so that a plain nox leaves them out
    assert sessions == set(re.findall(r"\w+", *whole)), "CI runs the whole"
    assert "sid" in " ".join(run)


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
