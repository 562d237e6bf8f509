"""Listing files, with every rg of the matrix."""

import logging
import os
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

import ripwrap
from ripwrap import GlobError, SearchError, UnknownTypeError, sync
from ripwrap.binary import RgBinary
from support.paths import native, slashed

Plant = Callable[..., Path]
pytestmark = pytest.mark.usefixtures("leaks_nothing")


def listed(folder: Path, **options: Any) -> list[str]:
    return sorted(map(slashed, sync.files(cwd=folder, **options)))


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.loops("asyncio")
async def test_files_equal_rgs_list_of_the_standard_library(newest: RgBinary) -> None:
    """`test_against_rg.py` compares the same with older rgs."""
    folder = sysconfig.get_path("stdlib")
    raw = subprocess.run(
        [newest.path, "--no-config", "--files", "-0", "--hidden", "--follow", "--no-require-git", "--glob=!.git", "."],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )
    expected = sorted(os.fsdecode(path)[2:] for path in raw.stdout.split(b"\0") if path)
    assert len(expected) > 1000
    assert sorted([path async for path in ripwrap.files(cwd=folder, rg=newest)]) == expected
    assert listed(Path(folder), rg=newest) == expected


@pytest.mark.posix
@pytest.mark.anyio
@pytest.mark.fact(23)
async def test_files_keep_names_of_any_bytes(rg: RgBinary, plant: Plant) -> None:
    names = ["two\nlines", "a b", "-", "--x", "é", os.fsdecode(b"\xff\xfe"), ".hidden", "deep/er/file"]
    folder = plant(dict.fromkeys(names, "x"))
    got = sorted([path async for path in ripwrap.files(cwd=folder, rg=rg)])
    assert got == sorted(names)
    assert all((folder / path).read_text() == "x" for path in got)


@pytest.mark.fact(23)
def test_empty_folder_gives_an_empty_list(rg: RgBinary, folder: Path) -> None:
    assert listed(folder, rg=rg) == []
    (folder / "empty").mkdir()
    assert listed(folder, rg=rg) == []


@pytest.mark.rg_ends
def test_options_of_files_select_files(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"a.py": "", "b.c": "", ".h": "", "sub/c.py": "", ".git/config": "", ".gitignore": "b.c"})
    assert listed(folder, rg=rg) == [".gitignore", ".h", "a.py", "sub/c.py"]
    assert listed(folder, rg=rg, hidden=False) == ["a.py", "sub/c.py"]
    assert listed(folder, rg=rg, hidden=False, no_ignore=True) == ["a.py", "b.c", "sub/c.py"]
    assert listed(folder, rg=rg, glob="*.py", max_depth=1) == ["a.py"]
    assert listed(folder, rg=rg, glob="*.py", paths="sub") == ["sub/c.py"]
    assert ".git/config" in listed(folder, rg=rg, include_git=True)
    assert ".git/config" not in listed(folder, rg=rg, glob="*", iglob="*")
    assert list(sync.files(cwd=folder, rg=rg, sortr="path")) == [native("sub/c.py"), "a.py", ".h", ".gitignore"]


def test_folders_of_rgs_index_are_left_out_and_files_of_that_name_are_not(rg: RgBinary, plant: Plant) -> None:
    everything = [".ripgrep/index", ".ripgreprc", "a", "sub/.ripgrep", "vendor/.ripgrep/deep/index"]
    folder = plant(dict.fromkeys(everything, ""))
    usual = [".ripgreprc", "a", "sub/.ripgrep"]
    cases: list[dict[str, Any]] = [{}, {"glob": "*"}, {"glob": "*", "iglob": "*"}, {"no_ignore": True}]
    for options in cases:
        assert listed(folder, rg=rg, **options) == usual
    assert listed(folder, rg=rg, include_git=True) == everything
    assert listed(folder, rg=rg, paths=".ripgrep") == [".ripgrep/index"]


@pytest.mark.loops("asyncio")
@pytest.mark.anyio
@pytest.mark.parametrize("limit", [0, 1, 3, 10, 20])
async def test_files_yields_exactly_limit_paths(newest: RgBinary, plant: Plant, limit: int) -> None:
    folder = plant({str(number): "" for number in range(10)})
    assert len([path async for path in ripwrap.files(cwd=folder, rg=newest, limit=limit)]) == min(limit, 10)
    assert len(list(sync.files(cwd=folder, rg=newest, limit=limit))) == min(limit, 10)


def test_files_raises_for_invalid_options(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"a": ""})
    with pytest.raises(GlobError, match="unclosed"):
        listed(folder, rg=rg, glob="a[")
    with pytest.raises(UnknownTypeError, match="nope"):
        listed(folder, rg=rg, type="nope")
    with pytest.raises(ValidationError, match="max_count"):
        sync.files(cwd=folder, max_count=1)  # type: ignore[call-arg]


def test_unreadable_path_is_logged_and_the_others_are_listed(
    unprivileged: Path, plant: Plant, caplog: pytest.LogCaptureFixture
) -> None:
    folder = plant({"good": ""})
    (folder / "closed").mkdir(mode=0)
    with caplog.at_level(logging.WARNING, "ripwrap"):
        assert listed(folder, rg=unprivileged) == ["good"]
    assert "closed" in caplog.text


def test_rg_that_exits_with_1_after_a_path_raises(stand_in: Callable[[str], Path], folder: Path) -> None:
    """Exit code 1 means that rg listed nothing, so what it has listed is not all."""
    rg = stand_in("list_files(2); sys.exit(1)")
    with pytest.raises(SearchError, match="exit code 1"):
        list(sync.files(cwd=folder, rg=rg))
    with pytest.raises(SearchError, match="exit code 1"):
        sync.tree_text(cwd=folder, rg=rg)


def test_rg_that_dies_raises_and_gives_no_partial_list(stand_in: Callable[[str], Path]) -> None:
    with pytest.raises(SearchError, match="signal 9"):
        listed(Path(), rg=stand_in("os.write(1, b'./a\\0./b'); os.kill(os.getpid(), 9)"))
    with pytest.raises(ripwrap.DecodeError, match="incomplete"):
        listed(Path(), rg=stand_in("os.write(1, b'./a\\0./b')"))
    with pytest.raises(SearchError, match="no idea"):
        listed(Path(), rg=stand_in("print('no idea', file=sys.stderr); sys.exit(2)"))
