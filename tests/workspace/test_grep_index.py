"""`grep_content` in a workspace with an index: the same answers, out of fewer files."""

import os
from pathlib import Path
from typing import Any

import pytest

from ripwrap import Workspace, sync
from ripwrap.binary import RgBinary

pytestmark = pytest.mark.slow  # about SQLite and files rather than Python

FILES = {
    "a.py": b"def needle():\n    return 1\n",
    "b.py": b"nothing of that kind\n",
    "sub/c.txt": b"NEEDLE and needle\n",
    "sub/d.txt": b"other\n",
    "early.bin": b"needle\0needle\n",
    "late.bin": b"a needle\n" * 9_000 + b"\0needle\n",
    "ignored/x.py": b"needle\n",
    ".hidden/y.py": b"needle\n",
    ".gitignore": b"ignored/\n",
}


@pytest.fixture
def tree(folder: Path) -> Path:
    for name, content in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def spy(tmp_path: Path, rg: RgBinary) -> Path:
    """An rg that notes its arguments."""
    script = tmp_path / "rg-spy"
    script.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >> "{tmp_path}/log"\nexec "{rg.path}" "$@"\n')
    script.chmod(0o755)
    return script


def searches(spy: Path) -> list[str]:
    """Return the arguments of the searches so far, and forget them."""
    log = spy.parent / "log"
    lines = [line for line in log.read_text().splitlines() if "--regexp=" in line]
    log.write_text("")
    return lines


SEARCHES: list[dict[str, Any]] = [
    {"pattern": "needle"},
    {"pattern": "needle", "path": "sub"},
    {"pattern": "needle", "path": "ignored"},
    {"pattern": "needle", "path": ".hidden"},
    {"pattern": "needle", "path": "a.py"},
    {"pattern": "needle", "file_pattern": "*.py"},
    {"pattern": "needle", "file_type": "txt"},
    {"pattern": "needle", "include_hidden": True},
    {"pattern": "needle", "include_ignored": True},
    {"pattern": "needle", "case_insensitive": True, "context_lines": 1},
    {"pattern": "needle", "output_mode": "files_with_matches"},
    {"pattern": "needle", "output_mode": "count"},
    {"pattern": "needle|that", "max_matches": 2, "offset": 1},
    {"pattern": "needle(?=\\()"},
    {"pattern": "nowhere to be found"},
    {"pattern": "OTHER"},
    {"pattern": "n"},
]


def test_grep_content_answers_the_same_with_an_index(tree: Path, tmp_path: Path) -> None:
    plain, indexed = sync.Workspace(tree), sync.Workspace(tree, index=tmp_path / "index")
    indexed.index_codebase()
    first = (tree / "a.py").read_text()
    for arguments in SEARCHES:
        assert indexed.grep_content_result(**arguments) == plain.grep_content_result(**arguments), arguments
    for number, arguments in enumerate(SEARCHES):
        (tree / "b.py").write_text(f"now with a needle {number}\n")
        if (tree / "a.py").exists() and arguments.get("path") != "a.py":
            (tree / "a.py").unlink()
        else:
            (tree / "a.py").write_text(first)
        assert indexed.grep_content_result(**arguments) == plain.grep_content_result(**arguments), arguments
    indexed.close()


def test_rg_is_given_the_candidates(tree: Path, tmp_path: Path, spy: Path) -> None:
    with sync.Workspace(tree, index=tmp_path / "index", rg=spy) as workspace:
        workspace.grep_content("needle")
        assert "a.py" not in searches(spy)[0]  # there is no index yet
        workspace.index_codebase()
        for arguments in ({}, {"output_mode": "count"}):
            workspace.grep_content("needle", **arguments)  # type: ignore[arg-type]
            first, second = searches(spy)[:2]
            assert first.endswith("-- a.py sub/c.txt .") and second.endswith("-- .")
        workspace.grep_content("needle", path="sub")
        assert searches(spy)[0].endswith("-- sub/c.txt .")
        workspace.grep_content("needle", file_pattern="*.py")
        assert searches(spy)[0].endswith("-- .")


@pytest.mark.loops("asyncio")
@pytest.mark.anyio
async def test_async_grep_content_uses_the_index(tree: Path, tmp_path: Path, spy: Path) -> None:
    async with Workspace(tree, index=tmp_path / "index", rg=spy) as workspace:
        await workspace.index_codebase()
        found = await workspace.grep_content_result("needle")
    assert found == await Workspace(tree).grep_content_result("needle")
    assert searches(spy)[0].endswith("-- a.py sub/c.txt .")


@pytest.mark.posix
def test_an_index_that_cannot_be_used_leaves_a_note(tree: Path, tmp_path: Path) -> None:
    place = tmp_path / "index"
    workspace = sync.Workspace(tree, index=place)
    workspace.index_codebase()
    workspace.close()
    (place / "index.lock").unlink()
    (place / "index.lock").symlink_to(os.devnull)
    found = workspace.grep_content_result("needle")
    assert found.total_matches == sync.Workspace(tree).grep_content_result("needle").total_matches
    assert "The index could not be used" in " ".join(found.notes)
