"""Globs of the tools that are also names of files: brackets, braces and commas in the names of web projects."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ripwrap import GlobError, sync
from ripwrap.binary import RgBinary
from ripwrap.workspace.arguments import parse_arguments
from ripwrap.workspace.grep_content_models import GrepContentArguments

pytestmark = pytest.mark.posix  # Windows refuses some of the characters

Plant = Callable[..., Path]

NAMES = (
    "app/[slug]/page.tsx",
    "app/[[...all]]/page.tsx",
    "app/[user-id]/page.tsx",  # `r-i` is no range, so rg refuses the glob
    "app/{group}/page.tsx",
    "app/{a,b}/c.ts",
    "app/(x)/[lang]@2,5.svg",
    "data,2024.csv",
    "a,b,c.md",
    "sub/x,y.txt",
    "open[.txt",
    "open{.txt",
    "close}].txt",
)


def _tree(plant: Plant) -> Path:
    return plant(dict.fromkeys(NAMES, "needle\n") | {"data": "needle\n", "2024.csv": "needle\n", "y.txt": "needle"})


@pytest.mark.parametrize("name", NAMES)
def test_glob_that_is_the_name_of_a_file_finds_this_file(rg: RgBinary, plant: Plant, name: str) -> None:
    """`app/[slug]/page.tsx` found nothing, and `data,2024.csv` searched `data`."""
    tools = sync.Workspace(_tree(plant), rg=rg)
    for kind in ("file", "any"):
        found = tools.find_files_result(name, entry_type=kind)
        assert (found.files, found.pattern) == ((name,), name)
    searched = tools.grep_content_result("needle", file_pattern=name)
    assert [match.file for match in searched.matches] == [name]
    changed = sync.Workspace(tools.roots[0], rg=rg, write=True).replace_content_result("needle", "x", file_pattern=name)
    assert [file.path for file in changed.files] == [name]


@pytest.mark.parametrize(
    ("pattern", "arguments", "found"),
    [
        ("[slug]/page.tsx", {"path": "app"}, ["app/[slug]/page.tsx"]),
        ("page.tsx", {"path": "app/[slug]"}, ["app/[slug]/page.tsx"]),
        ("app/[slug]/*", {}, ["app/[slug]/page.tsx"]),
        ("app/[slug]/", {}, ["app/[slug]/page.tsx"]),
        ("[slug]/", {}, ["app/[slug]/page.tsx"]),
        ("app/[user-id]/*.tsx", {}, ["app/[user-id]/page.tsx"]),
        ("app/[user-id]/*.tsx,data", {}, ["app/[user-id]/page.tsx", "data"]),
        ("x,y.txt", {}, ["sub/x,y.txt"]),
        ("x,y.*", {}, ["sub/x,y.txt"]),
        ("2,5.svg,data", {}, ["data"]),
        ("data,y.txt", {}, ["data", "y.txt"]),
        ("*.csv,!data[,]*", {}, ["2024.csv"]),
        ("*.csv,*.md", {}, ["2024.csv", "a,b,c.md", "data,2024.csv"]),
        ("*.tsx,!app/[slug]/page.tsx,!app/[user-id]/page.tsx", {}, ["app/[[...all]]/page.tsx", "app/{group}/page.tsx"]),
        ("{data,y.txt}", {}, ["data", "y.txt"]),
        ("app/[rs]*/*", {}, []),
    ],
)
def test_glob_with_a_name_in_it_matches_both_readings(
    rg: RgBinary, plant: Plant, pattern: str, arguments: dict[str, Any], found: list[str]
) -> None:
    """Wildcards beside the name, names at any depth, exclusions, and lists as before."""
    tools = sync.Workspace(_tree(plant), rg=rg)
    assert [*tools.find_files_result(pattern, **arguments).files] == found
    several = tools.find_files_result(pattern, entry_type="any", **arguments).files
    assert pattern.endswith("/") or [path for path in several if not path.endswith("/")] == found
    searched = tools.grep_content_result("needle", file_pattern=pattern, **arguments)
    assert [match.file for match in searched.matches] == found


@pytest.mark.slow
def test_ignored_file_with_a_comma_is_not_replaced_by_its_parts(rg: RgBinary, plant: Plant) -> None:
    """A name that exists is meant, also if it is ignored or hidden."""
    names = ("data,2024.csv", ".x,data", "build/data,y", ".h/data,z")
    root = plant(dict.fromkeys((*names, "data", "build/data"), "needle\n") | {".gitignore": "*.csv\nbuild/\n"})
    tools = sync.Workspace(root, rg=rg)
    for name in (*names, "data,y", "data,z"):
        found = tools.find_files_result(name)
        assert not found.files
        assert "included" in found.message
        assert not tools.grep_content_result("needle", file_pattern=name).matches


def test_name_in_a_revision_is_looked_up_in_the_revision(rg: RgBinary, plant: Plant) -> None:
    """With `rev`, the names of the commit count."""
    root = plant({"data,2024.csv": "needle\n", "data": "needle\n", "app/[user-id]/a.ts": "needle\n"})
    for command in (
        ("init", "-q"),
        ("add", "."),
        ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"),
        ("rm", "-qr", "data,2024.csv", "app"),
    ):
        subprocess.run(("git", *command), cwd=root, check=True, timeout=60)
    tools = sync.Workspace(root, rg=rg)
    for name in ("data,2024.csv", "app/[user-id]/a.ts"):
        found = tools.grep_content_result("needle", file_pattern=name, rev="HEAD")
        assert [match.file for match in found.matches] == [name]
    gone = tools.grep_content_result("needle", file_pattern="data,2024.csv")
    assert [match.file for match in gone.matches] == ["data"]


def test_list_of_globs_is_not_read_as_a_name(rg: RgBinary, plant: Plant) -> None:
    """A list names its globs one by one, so commas between them are no part of a name."""
    root = plant({"data,2024.csv": "needle\n", "data": "needle\n", "2024.csv": "needle\n", "y": "needle\n"})
    tools = sync.Workspace(root, rg=rg)

    def files(globs: list[str]) -> list[str]:
        arguments: dict[str, Any] = {"pattern": "needle", "file_pattern": globs}
        found = tools.call("grep_content", arguments | {"output_mode": "files_with_matches"})
        return [line for line in found.splitlines() if line in {"data,2024.csv", "data", "2024.csv", "y"}]

    assert files(["data", "2024.csv"]) == ["2024.csv", "data"]
    assert files(["!data", "!2024.csv"]) == ["data,2024.csv", "y"]  # a text that begins with `!` is no name
    assert files(["!data,2024.csv", "!y"]) == ["2024.csv", "data"]
    assert files(["data,2024.csv"]) == ["data,2024.csv"]
    assert files(["data,2024.csv", "y"]) == ["data,2024.csv", "y"]
    assert parse_arguments(GrepContentArguments, {"pattern": "a", "glob": ["a", "*.md"]}).file_pattern == "a, *.md"


@pytest.mark.parametrize("pattern", ["[z-a].txt", "*.{py", "missing[.txt"])
def test_wrong_glob_that_names_no_file_is_an_error(rg: RgBinary, plant: Plant, pattern: str) -> None:
    """A typing error in a glob stays an error, and does not become a search without results."""
    with pytest.raises(GlobError):
        sync.Workspace(_tree(plant), rg=rg).find_files_result(pattern)
