"""Paths on another computer and device paths in tool calls: refused without an access to them."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ripwrap.index.file_state import NO_REPOSITORY, view_of
from ripwrap.sync import Workspace

FOREIGN = [
    *(r"\\host.invalid\share\x", "//host.invalid/share/x", r"/\host.invalid\share", r"\/host.invalid/share"),
    *(
        r"\\?\UNC\host.invalid\share",
        r"\\?\C:\windows",
        r"\\.\pipe\x",
        r"\??\UNC\host.invalid\share",
        r"\??\C:\windows",
    ),
]


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths that Python has passed to `os` functions."""
    paths: list[str] = []

    def spy(call: Callable[..., object]) -> Callable[..., object]:
        def recorded(path: object, *rest: object, **options: object) -> object:
            paths.append(str(path))
            return call(path, *rest, **options)

        return recorded

    for name in ("lstat", "stat", "readlink", "open", "scandir"):
        monkeypatch.setattr(os, name, spy(getattr(os, name)))
    for name in ("realpath", "exists", "lexists", "isdir", "isfile"):
        monkeypatch.setattr(os.path, name, spy(getattr(os.path, name)))
    return paths


@pytest.mark.parametrize("path", FOREIGN)
@pytest.mark.parametrize("tool", ["grep_content", "find_files", "ls", "tree"])
def test_tool_refuses_a_foreign_path_without_accessing_it(
    tmp_path: Path, tool: str, path: str, looked_at: list[str]
) -> None:
    (tmp_path / "a.txt").write_text("needle\n")
    workspace = Workspace(tmp_path)
    arguments = {"pattern": "needle"} if tool == "grep_content" else {"pattern": "*"} if tool == "find_files" else {}
    looked_at.clear()
    answer = workspace.call(tool, {**arguments, "path": path})
    assert "is on another computer" in answer or "is a device path" in answer
    assert not [one for one in looked_at if one.replace("/", "\\").startswith(("\\\\", "\\??"))]


@pytest.mark.parametrize("text", ["//host.invalid/share/git", r"\\host.invalid\share\git", r"\\.\pipe\x"])
def test_git_file_with_a_foreign_path_is_not_followed(tmp_path: Path, text: str, looked_at: list[str]) -> None:
    (tmp_path / ".git").write_text(f"gitdir: {text}\n")
    looked_at.clear()
    assert view_of(tmp_path) == NO_REPOSITORY
    assert not [one for one in looked_at if one.replace("/", "\\").startswith("\\\\")]


@pytest.mark.parametrize("pattern", ["Z:", "z:", "CON", "x:stream"])
def test_pattern_that_names_a_drive_or_device_does_not_access_it(
    tmp_path: Path, pattern: str, looked_at: list[str]
) -> None:
    (tmp_path / "a.txt").write_text("needle\n")
    workspace = Workspace(tmp_path)
    looked_at.clear()
    assert "is a directory" not in workspace.call("find_files", {"pattern": pattern})
    assert not [one for one in looked_at if one.lower().endswith(pattern.lower())]
