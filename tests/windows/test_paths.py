"""Returned paths have backslashes, even if the caller uses slashes; a file named `-` is a file, not stdin.

The tests about another drive use that of this file, if it is not that of temporary files.
"""

from pathlib import Path

import pytest

from ripwrap import sync
from support.cli import output


def test_file_named_dash_is_searched(tmp_path: Path) -> None:
    (tmp_path / "-").write_text("needle\n")
    assert [match.path for match in sync.search("needle", cwd=tmp_path, paths="-")] == ["-"]
    assert list(sync.files(cwd=tmp_path, paths="-")) == ["-"]


def test_paths_have_one_kind_of_separator(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.py").write_text("needle\n")
    absolute = str(tmp_path / "sub").replace("\\", "/")
    for paths, found in (("sub/", r"sub\b.py"), ("./sub", r"sub\b.py"), (absolute, str(tmp_path / "sub" / "b.py"))):
        assert list(sync.files(cwd=tmp_path, paths=paths)) == [found]
        assert [match.path for match in sync.search("needle", cwd=tmp_path, paths=paths)] == [found]


def test_path_of_another_drive_is_outside_of_a_repository(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is outside of"):
        sync.grep("needle", cwd=tmp_path, paths=__file__, rev="HEAD")


def test_root_on_another_drive_is_shown_with_its_whole_path(shop: Path) -> None:
    arguments = ("search", "store_cookie", "--repositories", str(shop))
    assert output(*arguments, cwd=Path(__file__).parent).startswith(f"{shop}\\src\\cookies.py:1:")
