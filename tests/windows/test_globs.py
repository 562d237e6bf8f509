"""Globs below a nested folder, and globs with backslashes, although rg's globs need slashes on Windows, too."""

from pathlib import Path

import pytest

from ripwrap.sync import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "sub" / "deep").mkdir(parents=True)
    (tmp_path / "sub" / "deep" / "q.py").write_text("needle\n")
    (tmp_path / "sub" / "[x]").mkdir()
    (tmp_path / "sub" / "[x]" / "q.py").write_text("needle\n")
    return Workspace(tmp_path)


@pytest.mark.parametrize(
    ("pattern", "path", "found"),
    [
        ("/q.py", "sub/deep", [r"sub\deep\q.py"]),
        ("/q.py", r"sub\deep", [r"sub\deep\q.py"]),
        ("/q.py", "sub/[x]", [r"sub\[x]\q.py"]),
        (r"sub\deep\*.py", ".", [r"sub\deep\q.py"]),
        ("sub/deep/*.py", ".", [r"sub\deep\q.py"]),
    ],
)
def test_glob_finds_files_below_a_nested_folder(
    workspace: Workspace, pattern: str, path: str, found: list[str]
) -> None:
    assert list(workspace.find_files_result(pattern, path).files) == found
    content = workspace.grep_content_result("needle", path, file_pattern=pattern)
    assert {match.file for match in content.matches} == set(found)


def test_absolute_glob_finds_files_in_any_case(workspace: Workspace, tmp_path: Path) -> None:
    for root in (str(tmp_path), str(tmp_path).upper()):
        assert list(workspace.find_files_result(rf"{root}\sub\deep\*.py").files) == [r"sub\deep\q.py"]
