"""Small differences on Windows: paths without `.exe`, quotes in PATH, carriage returns in git's files."""

import os
from pathlib import Path

import pytest

from ripwrap import sync
from ripwrap.index.file_state import is_gone


def test_rg_path_may_omit_its_extension() -> None:
    rg = sync.resolve()
    assert sync.resolve(rg.path.removesuffix(".exe")).path == rg.path


def test_entries_of_the_path_variable_may_have_quotes(monkeypatch: pytest.MonkeyPatch) -> None:
    rg = sync.resolve()
    monkeypatch.setenv("PATH", f'"{os.path.dirname(rg.path)}";C:\\windows')
    assert os.path.normcase(sync.resolve("rg").path) == os.path.normcase(rg.path)


def test_packed_refs_may_have_carriage_returns(tmp_path: Path) -> None:
    git = tmp_path / ".git"
    git.mkdir()
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "packed-refs").write_bytes(b"%b refs/heads/packed\r\n" % (b"0" * 40))
    assert not is_gone(tmp_path, "packed")
