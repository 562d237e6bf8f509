"""Returned paths have backslashes, even if the caller uses slashes; a file named `-` is a file, not stdin."""

from pathlib import Path

from ripwrap import sync


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
