"""Windows looks for a program in the current directory before PATH; git of a checkout is not run."""

import shutil
from pathlib import Path

import pytest

from ripwrap import SearchError, sync
from windows.conftest import StandIn


def test_git_of_the_current_directory_is_not_run(
    shop: Path, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(stand_in.path, shop / "git.exe")
    monkeypatch.chdir(shop)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SearchError, match=r"could not start git: .*install git"):
        sync.grep("x", cwd=shop, rev="HEAD")
    assert stand_in.processes() == set()
    monkeypatch.setenv("PATH", str(shop))
    with pytest.raises((SearchError, ValueError)):
        sync.grep("x", cwd=shop, rev="HEAD")
    assert len(stand_in.processes()) == 1
