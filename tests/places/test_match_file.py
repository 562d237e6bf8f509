"""`Match.file()`: the file of a match on this machine, or one error."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from ripwrap import HistoryMatch, Match, sync
from ripwrap.places import Items
from support.git import require_git
from support.hosts import ThisMachine

Plant = Callable[..., Path]


def only(cwd: Path, **options: Any) -> Match:
    found: list[Match] = list(sync.search("needle", cwd=cwd, **options))
    (match,) = found
    return match


@pytest.fixture
def repository(plant: Plant) -> Path:
    require_git()
    folder = plant({"src/a.py": "needle\n"})
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "a"]):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *command], cwd=folder, check=True)
    return folder


def test_file_of_a_match_is_absolute(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each caller had to join `cwd` and `match.path`."""
    folder = plant({"src/a.py": "needle\n"})
    expected = folder / "src" / "a.py"
    assert only(folder).file(folder) == only(folder).file(str(folder)) == expected
    assert only(folder, paths=[expected]).file() == expected  # the path is absolute
    (match,) = sync.grep("needle", cwd=folder, context=1).matches
    assert match.file(folder) == expected
    monkeypatch.chdir(folder)
    assert only(Path(".")).file() == only(Path("src")).file("src") == expected
    (root,) = sync.Repositories(folder).roots
    (found,) = sync.Repositories(folder).search("needle")
    assert found.type == "match" and found.file(root.path) == expected


@pytest.mark.posix
def test_file_with_a_name_that_is_not_utf8_can_be_read(plant: Plant) -> None:
    folder = plant({b"\xff": "needle"})
    assert only(folder).file(folder).read_text() == "needle"


def test_file_elsewhere_is_one_error(plant: Plant) -> None:
    folder = plant({"src/a.py": "needle\n"})
    with pytest.raises(FileNotFoundError, match="no such file; pass the directory that was searched") as error:
        only(folder).file(folder / "src")
    assert error.value.filename == str(folder / "src" / "src" / "a.py")
    with ZipFile(folder / "x.zip", "w") as archive:
        archive.writestr("b.py", "needle\n")
    shutil.rmtree(folder / "src")
    for match in (only(folder, inside="zip"), only(folder, where=Items([("b.py", "needle")]))):
        with pytest.raises(FileNotFoundError, match="A match in an archive"):
            match.file(folder)


@pytest.mark.posix
def test_match_of_a_host_has_no_file_here(plant: Plant, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = plant({"a": "needle\n"})
    match = only(Path("."), on=ThisMachine(str(folder)))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match="on a host has no file on this machine"):
        match.file()


def test_match_of_a_revision_has_the_file_of_the_working_tree(repository: Path) -> None:
    match = only(repository, rev="HEAD")
    assert match.file(repository) == repository / "src" / "a.py"
    os.remove(repository / "src" / "a.py")
    with pytest.raises(FileNotFoundError):
        match.file(repository)


def test_match_of_a_history_names_the_command_that_reads_the_version(repository: Path) -> None:
    (match,) = sync.search_history("needle", cwd=repository)
    assert isinstance(match, HistoryMatch)
    with pytest.raises(FileNotFoundError, match=f"git show {match.blob}"):
        match.file(repository)
