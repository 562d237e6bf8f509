"""A second read of what has not changed is one sentence, and a page says if files changed since the page before."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ripwrap import Workspace, sync
from ripwrap.workspace.tool import MAX_CALLS, Memory

Plant = Callable[..., Path]

TEXT = "".join(f"line {number} of the file\n" for number in range(100))
UNCHANGED = "Unchanged since it was shown 0 seconds ago; force=True shows it again."


def test_unchanged_lines_are_not_shown_again(plant: Plant) -> None:
    """With anchors, because their lines can be named after they were shown once."""
    root = plant({"a": TEXT, "b": TEXT, "short": "x\n"})
    tools = sync.Workspace(root, anchors=True)
    first = tools.read_file("a")
    assert tools.read_file("a") == UNCHANGED
    again = tools.read_file_result("a")
    assert (again.blocks, again.total_lines, again.path) == ((), 100, "a")
    assert tools.read_file("a", force=True) == first
    assert tools.read_file("a") == UNCHANGED
    assert "line 9" in tools.read_file("a", 10)  # another range
    assert tools.read_file("a", 10) == UNCHANGED
    assert "line 9" in tools.read_file("b")
    assert tools.read_file("short") == tools.read_file("short") != UNCHANGED
    (root / "a").write_text(TEXT.replace("line 5 ", "LINE 5 "))
    assert "LINE 5" in tools.read_file("a")
    assert tools.read_file("a", 10) == UNCHANGED  # these lines are the same
    assert tools.call("Read", {"path": ["a", "b"]}) != UNCHANGED
    assert tools.call("Read", {"path": ["a", "b"]}) == UNCHANGED
    (root / "a").unlink()
    assert tools.read_file("a").startswith("Error: a does not exist")
    assert "line 9" in sync.Workspace(root, anchors=True).read_file("b")  # another client


@pytest.mark.anyio
async def test_without_anchors_lines_are_always_shown(plant: Plant) -> None:
    tools = Workspace(plant({"a": TEXT}))
    assert await tools.read_file("a") == await tools.read_file("a", force=True) == await tools.read_file("a")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("grep_content", {"pattern": "line", "max_matches": 2}),
        ("grep_content", {"pattern": "line", "max_matches": 2, "output_mode": "count"}),
        ("grep_content", {"pattern": "line", "max_matches": 2, "output_mode": "files_with_matches"}),
        ("find_files", {"pattern": "*.py", "limit": 2}),
    ],
)
def test_page_says_that_files_have_changed(tool: str, arguments: dict[str, Any], plant: Plant) -> None:
    """The offset counts results of a search that is run again."""
    root = plant({f"{name}.py": "a line\n" for name in "abcdef"})
    tools = sync.Workspace(root)

    def page(offset: int) -> str:
        return tools.call(tool, {**arguments, "offset": offset})

    said = "Files have changed since the page before"
    assert said not in page(2) + page(0) + page(2) + page(4)
    plant({"0.py": "another line\n"})
    assert said in page(4)
    assert said not in page(4) + page(0) + page(2)
    (root / "0.py").unlink()
    assert said not in page(0) + page(2)  # the first page begins anew


def test_old_calls_are_forgotten() -> None:
    memory = Memory()
    for number in range(MAX_CALLS + 1):
        assert memory.exchange(number, "value") is None
    assert memory.exchange(0, "value") is None
    before = memory.exchange(MAX_CALLS, "other")
    assert before is not None and before.value == "value" and 0 <= before.seconds < 60
