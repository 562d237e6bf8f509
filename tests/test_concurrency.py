"""Replacement of files that are in use."""

from pathlib import Path

import pytest

from ripwrap._concurrency import replace_file


@pytest.mark.parametrize("windows", [True, False])
def test_replacing_a_file_in_use_is_retried_on_windows(tmp_path: Path, windows: bool) -> None:
    source, target = tmp_path / "new", tmp_path / "old"
    source.write_text("new")
    target.write_text("old")
    refusals = [PermissionError(13, "used by another process")] * 3

    def replace(source: Path, target: Path) -> None:
        if refusals:
            raise refusals.pop()
        source.replace(target)

    if windows:
        replace_file(source, target, windows=True, replace=replace)
        assert target.read_text() == "new"
    else:
        with pytest.raises(PermissionError):
            replace_file(source, target, windows=False, replace=replace)
        assert target.read_text() == "old"
