"""A batch file in place of rg is never started, because `cmd.exe` could run a part of the pattern."""

from pathlib import Path

import pytest

from ripwrap import BinaryError, sync
from ripwrap.binary import RgBinary

NAMES = ["rg.cmd", "rg.bat", "rg.CMD", "RG.Bat"]


def batch_file(folder: Path, name: str) -> Path:
    """Batch file that behaves like rg, so that only its name can be a reason to refuse it."""
    path = folder / name
    path.write_text("@echo ripgrep 15.2.0\r\n@exit /b 1\r\n")
    return path


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("ending", ["", ".", " ", ". ."])
def test_pattern_runs_no_command(tmp_path: Path, name: str, ending: str) -> None:
    path, injected = batch_file(tmp_path, name), tmp_path / "injected.txt"
    pattern = f'x"&echo pwned>{injected}&"'
    with pytest.raises(BinaryError, match=r"a batch file: cmd\.exe"):
        list(sync.search(pattern, cwd=tmp_path, rg=f"{path}{ending}"))
    assert not injected.exists()


@pytest.mark.parametrize("name", NAMES)
def test_variable_cannot_name_a_batch_file(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIPWRAP_RG", str(batch_file(tmp_path, name)))
    with pytest.raises(BinaryError, match=r"a batch file: cmd\.exe"):
        sync.resolve()


@pytest.mark.parametrize("name", NAMES)
def test_binary_of_a_caller_cannot_be_a_batch_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(BinaryError, match=r"a batch file: cmd\.exe"):
        RgBinary(str(batch_file(tmp_path, name)), "argument")
