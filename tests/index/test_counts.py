"""The counts of a refresh say what was done: files that differ, files read, and chunks added and removed."""

import os
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from ripwrap import sync
from ripwrap._ranking.document import MAX_FILE_BYTES
from ripwrap.index import RefreshResult
from ripwrap.index.file_state import MAX_WHOLE_BYTES
from support.git import require_git

Plant = Callable[..., Path]
Counts = tuple[int, int, int, int]

FILES = {f"{number}.py": f"def cookie_{number}(): ...\n" for number in range(20)}


def git(root: Path, *arguments: str) -> None:
    named = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "core.autocrlf=false")
    subprocess.run(["git", "-C", str(root), *named, *arguments], check=True, capture_output=True, timeout=60)


def differing(done: RefreshResult) -> Counts:
    return done.added, done.changed, done.removed, done.unchanged


def work(done: RefreshResult) -> tuple[int, int, int]:
    return done.read, done.chunks, done.chunks_removed


@pytest.fixture
def shop(plant: Plant) -> Path:
    require_git()
    root = plant(FILES)
    git(root, "init", "-q", "-b", "main")
    _commit(root, "one")
    git(root, "switch", "-q", "-c", "other")
    plant({"3.py": "def cookie_of_another_branch(): ...\n", "new.py": "x = 1\n"})
    (root / "4.py").unlink()
    _commit(root, "two")
    git(root, "switch", "-q", "main")
    _age(root)
    return root


def _commit(root: Path, message: str) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", message)


def _age(root: Path) -> None:
    """Make the files old, so that their times tell whether they have changed; a switch writes new times."""
    for file in root.glob("*.py"):
        if file.stat().st_mtime > 1_700_000_001:
            os.utime(file, (1_700_000_000, 1_700_000_000))


def test_switch_of_branches_counts_the_files_that_differ(shop: Path, tmp_path: Path) -> None:
    with sync.Index(shop, location=tmp_path / "index", chunker="windows") as index:
        first = index.refresh()
        assert (differing(first), work(first)) == ((20, 0, 0, 0), (20, 20, 0))
        git(shop, "switch", "-q", "other")
        other = index.refresh()
        assert differing(other) == (1, 1, 1, 18)
        assert (other.chunks, other.chunks_removed) == (2, 0)  # the other branch still has its chunks
        git(shop, "switch", "-q", "main")
        back = index.refresh()
        assert differing(back) == (0, 0, 0, 20)  # as this branch was refreshed before
        assert (back.chunks, back.chunks_removed) == (0, 0)
        git(shop, "switch", "-q", "-c", "same")
        same = index.refresh()
        assert (differing(same), same.chunks) == ((0, 0, 0, 20), 0)


@pytest.mark.extra
def test_watcher_reports_a_switch_without_a_difference_as_no_difference(shop: Path, tmp_path: Path) -> None:
    pytest.importorskip("watchfiles")
    with (
        sync.Index(shop, location=tmp_path / "index", chunker="windows") as index,
        closing(index.watch(timeout=60)) as refreshes,
    ):
        assert differing(next(refreshes)) == (20, 0, 0, 0)
        git(shop, "switch", "-q", "-c", "same")
        assert differing(next(refreshes)) == (0, 0, 0, 20)


def test_files_that_are_left_out_are_not_counted_as_new_or_changed(plant: Plant, tmp_path: Path) -> None:
    root = plant({"a.py": "x = 1\n", "b.py": "y = 2\n", "photo.png": b"\x89PNG\0\0"})
    with sync.Index(root, location=tmp_path / "index", chunker="windows") as index:
        first = index.refresh()
        assert (differing(first), work(first)) == ((2, 0, 0, 0), (3, 2, 0))
        assert [(one.reason, one.files) for one in first.skipped] == [("binary", 1)]
        assert first.added == index.status().files
        plant({"b.py": b"now \0 binary", "photo.png": b"\x89PNG\0\1"})
        binary = index.refresh()
        assert differing(binary) == (0, 0, 1, 1)
        assert (binary.chunks, binary.chunks_removed) == (0, 1)
        plant({"b.py": "y = 3\n"})
        assert differing(index.refresh()) == (1, 0, 0, 1)
        (root / "a.py").unlink()
        gone = index.refresh()
        assert (differing(gone), gone.chunks_removed) == ((0, 0, 1, 1), 1)


def test_file_that_becomes_too_large_is_changed_although_its_indexed_part_is_not(plant: Plant, tmp_path: Path) -> None:
    text = "x = 1234567\n" * (MAX_FILE_BYTES // 12)
    root = plant({"a.py": text})
    with sync.Index(root, location=tmp_path / "index", chunker="windows") as index:
        assert (index.refresh().cut, index.refresh().cut) == (0, 0)
        plant({"a.py": text + "y = 2345678\n" * (MAX_WHOLE_BYTES // 12)})
        cut = index.refresh()
        assert (differing(cut), work(cut), cut.cut) == ((0, 1, 0, 0), (1, 0, 0), 1)


def test_tool_says_how_many_files_were_read_and_chunks_written(plant: Plant, tmp_path: Path) -> None:
    root = plant({"a.py": "x = 1\n", "photo.png": b"\x89PNG\0\0"})
    with sync.Workspace(root, index=tmp_path / "index") as tools:
        made = tools.index_codebase()
        assert f"{root}: 1 new, 0 changed, 0 removed, 0 unchanged, 1 left out; 1 chunk added, 0 removed" in made
        assert "The index is up to date: 2 files read in " in made
        assert "1 file, 1 chunk, " in tools.index_status()
