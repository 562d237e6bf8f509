"""Matches that a plan leaves out although rg does not report them: in binary files and in hidden files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ripwrap import sync
from ripwrap._edits.collector import find_left_out
from ripwrap._ripgrep.command import search_query
from ripwrap._ripgrep.runner import AsyncRunner

Plant = Callable[..., Path]
pytestmark = pytest.mark.usefixtures("leaks_nothing")

FILES = {
    "early": b"\0needle needle\nneedle\n",
    "late": b"needle\n" + b"x\n" * 100_000 + b"\0 needle\n",
    "later": b"x\n" * 100_000 + b"\0 needle\n",
    "sub/late": b"x\n" * 100_000 + b"needle\n\0",
    "other": b"\0nothing",
    "text": b"needle needle\n",
    ".hidden": b"needle\n",
    ".github/a": b"needle needle\n",
    ".github/b": b"\0needle\n",
    "sub/.c/d": b"needle\n",
}


def left_out(folder: Path, pattern: str = "needle", **options: Any) -> tuple[list[str], list[str], int]:
    """Return the files of a plan, the files that it leaves out by name, and the number of matches in hidden files."""
    plan = sync.replace(pattern, "x", cwd=folder, **options)
    assert all("left out: it is binary (NUL at byte " in error.message for error in plan.errors)
    return [one.path for one in plan], sorted(error.path or "" for error in plan.errors), plan.hidden_matches


def test_binary_files_with_matches_are_named(plant: Plant) -> None:
    """rg reports nothing of a file with a NUL near its beginning, or before its first match."""
    folder = plant(FILES)
    assert left_out(folder) == (["text"], ["early", "late", "later", "sub/late"], 5)
    assert left_out(folder, glob="*e*")[1] == ["early", "late", "later", "sub/late"]
    assert left_out(folder, paths=["early", "sub"]) == ([], ["early", "sub/late"], 1)
    assert left_out(folder, "nothing") == ([], ["other"], 0)
    assert left_out(folder, text=True)[1:] == ([], 5)
    plan = sync.replace("needle", "x", cwd=folder, paths="later")
    assert [error.message for error in plan.errors] == [
        "left out: it is binary (NUL at byte 200000); text=True changes binary files, too"
    ]


def test_matches_in_hidden_files_are_counted(plant: Plant) -> None:
    """The message says how many matches are left out, also if there are no others."""
    folder = plant({name: text for name, text in FILES.items() if b"\0" not in text})
    plan = sync.replace("needle", "x", cwd=folder)
    assert plan.message == "2 replacements in 1 file; 4 matches in hidden files left out."
    assert sync.replace("needle", "x", cwd=folder, paths="sub").message == (
        "Nothing to replace; 1 match in hidden files left out."
    )
    assert sync.replace("needle", "x", cwd=folder, hidden=True).message == "6 replacements in 4 files."
    assert sync.ReplacePlan.model_validate_json(plan.model_dump_json()) == plan


@pytest.mark.parametrize("paths", [".github", "./.github/", ["sub", ".github"], "absolute"])
def test_named_hidden_directory_is_searched(plant: Plant, paths: Any) -> None:
    """A hidden path that the caller names counts as visible; its binary files are named."""
    folder = plant({**FILES, ".github/.x": b"needle\n"})
    files, binary, hidden = left_out(folder, paths=folder / ".github" if paths == "absolute" else paths)
    assert [Path(one).name for one in files] == ["a"]
    assert [Path(one).name for one in binary if "github" in one] == ["b"]
    assert hidden == (2 if isinstance(paths, list) else 1)


def test_file_with_utf16_marks_is_not_binary(plant: Plant) -> None:
    """Its text has no NUL, although its bytes have."""
    text = "\ufeffneedle".encode("utf-16-le")
    assert left_out(plant({"utf16": text, "none": b"\0"}), hidden=True) == (["utf16"], [], 0)
    assert left_out(plant({"latin1": b"\xe9 needle\0"}), encoding="latin1", glob="latin1")[1] == ["latin1"]


@pytest.mark.anyio
async def test_only_binary_files_that_the_caller_may_know_are_named(plant: Plant) -> None:
    """A text file that another program writes between the two searches is not binary."""
    folder = plant({"new": b"needle\n", "denied": b"\0needle", ".denied": b"needle", "binary": b"\0needle"})
    query = search_query("needle", folder, (), {})
    found = await find_left_out(AsyncRunner(None), query, (), None, lambda path: "denied" not in path)
    assert ([error.path for error in found.errors], found.hidden) == (["binary"], 0)
    late = await find_left_out(AsyncRunner(None), query, (), 1e-9, None)
    assert "binary and hidden files were not all searched in 1e-09 seconds" in str(late.errors[-1])


def test_workspace_names_no_file_that_it_hides(plant: Plant) -> None:
    """Denied files are neither named nor counted."""
    folder = plant({"early": b"\0needle", "secret.bin": b"\0needle", "a": "needle\n", ".env": "needle\n"})
    workspace = sync.Workspace(folder, write=True, deny=["secret*"])
    said = workspace.replace_content("needle", "x")
    assert "1 file left out, e.g. early: left out: it is binary" in said
    assert "secret" not in said
    assert "hidden" not in said
