"""The structured answer of a tool is bounded by the same budget as its text, whatever a tree or an argument has."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ripwrap import sync
from ripwrap.workspace import schemas

Plant = Callable[..., Path]

LONG = "n" * 100
DEEP = "/".join([LONG] * 8)

CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("grep_content", {"pattern": "needle", "max_matches": 2000, "context": 3}),
    ("grep_content", {"pattern": "needle", "max_matches": 2000, "sections": True}),
    ("grep_content", {"pattern": "needle", "expand": "definition"}),
    ("grep_content", {"pattern": "needle", "output_mode": "count", "max_matches": 2000}),
    ("grep_content", {"pattern": "needle", "output_mode": "files_with_matches", "max_matches": 2000}),
    ("grep_content", {"pattern": "needle|" + "x" * 15_000}),
    ("grep_content", {"pattern": "needle|" + "\u00e9" * 15_000, "output_mode": "count"}),
    ("find_files", {"pattern": "*", "limit": 2000}),
    ("find_files", {"pattern": "*", "limit": 2000, "offset": 5}),
    ("find_files", {"pattern": "*", "entry_type": "any", "limit": 2000}),
    ("find_files", {"pattern": "{" + "a," * 9_000 + "*}"}),
    ("ls", {"limit": 5000}),
    ("tree", {"limit": 5000}),
    ("codebase_search", {"query": "needle definition", "limit": 50}),
    ("codebase_search", {"query": "needle " * 2_500}),
    ("read_file", {"path": "long.txt"}),
    ("read_file", {"path": "short.txt"}),
    ("read_file", {"path": "short.txt", "ranges": "1-3,7-9,20-300"}),
    ("replace_content", {"pattern": "needle", "replacement": "pin"}),
    ("replace_content", {"pattern": "needle", "replacement": "p" * 1_000}),
    ("resolve", {"anchor": "long.txt#1\u00b7aaa"}),
    ("index_codebase", {}),
    ("index_status", {}),
    ("index_health_check", {}),
)


@pytest.fixture
def folder_of_long_things(plant: Plant) -> Path:
    """Return a folder with long paths, long lines, lines that JSON escapes, and many entries."""
    files: dict[str, str] = {f"{DEEP}/{number}-{LONG}.py": "def needle():\n    pass\n" for number in range(60)}
    files |= {f"{DEEP}/{LONG}/{number}/needle.txt": "needle\n" * 20 for number in range(30)}
    files |= {f"many/{number}.txt": "needle\n" for number in range(300)}
    files |= {f"\u00e9{number}" * 20: "needle \u00e9\n" for number in range(20)}
    files |= {
        "long.txt": ("needle \u00e9 " * 300 + "\n") * 40,
        "short.txt": "\n" * 5000,
        "quotes.txt": ('"' * 400 + "needle" + "\\\\" * 50 + "\x1b" * 9 + "\t" * 50 + "\n") * 100,
    }
    return plant(files)


def size(values: dict[str, Any]) -> int:
    return len(json.dumps(values))


@pytest.mark.slow
@pytest.mark.parametrize("max_chars", [1000, 20_000])
def test_structured_answers_fit_into_the_budget_of_the_text(max_chars: int, folder_of_long_things: Path) -> None:
    workspace = sync.Workspace(
        folder_of_long_things,
        index="project",
        anchors=True,
        write=True,
        max_chars=max_chars,
        show_denied="name",
        timeout=60,
    )
    known = schemas(index=True, anchors=True, write=True)
    try:
        for tool, arguments in CALLS:
            result = workspace.call_result(tool, arguments)
            values = workspace.structured(result)
            assert (tool, size(values) <= max_chars) == (tool, True)
            assert len(workspace.text(result)) <= max_chars
            jsonschema.Draft202012Validator(known[tool][2]).validate(values)
            whole = result.structured(10**9)
            assert values == whole or values["truncated"]
            assert size(result.structured()) <= 20_000
    finally:
        workspace.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("find_files", {"pattern": "*.py", "limit": 2000}),
        ("grep_content", {"pattern": "needle", "output_mode": "count", "max_matches": 2000}),
        ("grep_content", {"pattern": "needle", "output_mode": "files_with_matches", "max_matches": 99}),
    ],
)
def test_pages_of_structured_answers_have_every_entry_once(
    tool: str, arguments: dict[str, Any], folder_of_long_things: Path
) -> None:
    """`next_offset` continues after the entries of the structured answer, not after those of the text."""
    workspace = sync.Workspace(folder_of_long_things, max_chars=6000)
    found: list[str] = []
    for values in pages(workspace, tool, arguments):
        found += values["files"]
    assert len(found) == len(set(found)) == len(workspace_files(folder_of_long_things, tool))


def workspace_files(folder: Path, tool: str) -> list[Path]:
    files = [path for path in folder.rglob("*.py" if tool == "find_files" else "*") if path.is_file()]
    return [path for path in files if b"needle" in path.read_bytes()]


def pages(workspace: sync.Workspace, tool: str, arguments: dict[str, Any]) -> Iterator[dict[str, Any]]:
    offset: int | None = 0
    for _ in range(500):
        values = workspace.structured(workspace.call_result(tool, {**arguments, "offset": offset}))
        yield values
        offset = values.get("next_offset")
        if offset is None:
            return
    raise AssertionError("the pages do not end")


def test_pages_of_structured_matches_have_every_match_once(plant: Plant) -> None:
    lines = "needle and some more text for the line\n"
    folder = plant({f"{LONG}-{number}.txt": lines * (number % 7 + 1) for number in range(40)})
    workspace = sync.Workspace(folder, max_chars=6000)
    found = [
        (match["file"], match["line"])
        for values in pages(workspace, "grep_content", {"pattern": "needle", "max_matches": 500})
        for match in values["matches"]
    ]
    assert len(found) == len(set(found)) == sum(number % 7 + 1 for number in range(40))


def test_lines_of_a_structured_answer_continue_at_next_offset(plant: Plant) -> None:
    workspace = sync.Workspace(plant({"a.txt": "".join(f"{number}\n" for number in range(1, 1001))}), max_chars=1000)
    lines: list[str] = []
    start: int | None = 1
    while start is not None:
        values = workspace.structured(workspace.read_file_result("a.txt", start_line=start))
        lines += [line for block in values["blocks"] for line in block["lines"]]
        start = values.get("next_offset")
    assert lines == [str(number) for number in range(1, 1001)]


def test_short_structured_answer_is_whole(plant: Plant) -> None:
    workspace = sync.Workspace(plant({"a.txt": "needle\n", "b.txt": "needle\n"}))
    values = workspace.structured(workspace.grep_content_result("needle"))
    assert values["files"] == {"a.txt": 1, "b.txt": 1}
    assert [match["file"] for match in values["matches"]] == ["a.txt", "b.txt"]
    assert "truncated" not in values
    assert "notes" not in values
