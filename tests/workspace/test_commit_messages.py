"""Commits as evidence for `codebase_search`: which repositories count, and when and how long git runs."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from _operations.test_revisions import git
from ripwrap import sync
from ripwrap.sources import git_history
from ripwrap.workspace import commit_messages as _history
from support.git import require_git

Plant = Callable[..., Path]

ALIKE = {name: f"def {name}_total(rows):\n    return sum(rows)\n" for name in ("early", "later")}
QUERY = "sum of the rows is wrong after the rounding of cents"


@pytest.fixture(autouse=True)
def _needs_git() -> None:
    require_git()


@pytest.fixture
def shop(plant: Plant) -> Path:
    """Return a root with two files that answer alike, the second of which a commit about cents changed."""
    folder = plant({"src/early.py": ALIKE["early"], "src/later.py": ALIKE["later"]})
    git(folder, "init", "-q")
    git(folder, "add", "src/early.py")
    git(folder, "commit", "-qm", "shop: totals of carts")
    git(folder, "add", "src/later.py")
    git(folder, "commit", "-qm", "shop: rounding of cents")
    return folder


def files(workspace: sync.Workspace, query: str = QUERY, path: str = ".") -> list[str]:
    return [Path(place.file).name for place in workspace.codebase_search_result(query, path).places]


@pytest.mark.parametrize("index", [False, True])
def test_files_of_similar_commits_come_first(shop: Path, tmp_path: Path, *, index: bool) -> None:
    with sync.Workspace(shop, index=tmp_path / "index" if index else False) as workspace:
        if index:
            workspace.index_codebase()
        found = workspace.codebase_search_result(QUERY)
        assert [Path(place.file).name for place in found.places] == ["later.py", "early.py"]
        assert found.ranking == ("index" if index else "files")
        assert ["commits with such messages" in "; ".join(place.why) for place in found.places] == [True, False]
        assert files(workspace, path="src") == ["later.py", "early.py"]
        assert files(workspace, "sum of the rows, as in totals of carts") == ["early.py", "later.py"]
    shutil.rmtree(shop / ".git")
    with sync.Workspace(shop, index=False) as workspace:
        assert files(workspace) == ["early.py", "later.py"]


@pytest.mark.parametrize("leads", ["gitdir", "above", "alternates"])
def test_repositories_outside_the_roots_do_not_count(shop: Path, tmp_path: Path, leads: str) -> None:
    root = shop
    if leads == "gitdir":
        root = tmp_path / "linked"
        shutil.copytree(shop / "src", root / "src")
        (root / ".git").write_text(f"gitdir: {shop}/.git\n")
    elif leads == "above":
        root = shop / "src"
    else:
        (shop / ".git/objects").rename(shop.parent / "objects")
        (shop / ".git/objects/info").mkdir(parents=True)
        (shop / ".git/objects/info/alternates").write_text(f"{shop.parent / 'objects'}\n")
    assert files(sync.Workspace(root, index=False)) == ["early.py", "later.py"]
    allowed = sync.Workspace(root, index=False, repositories=[shop, shop.parent])
    assert files(allowed) == ["later.py", "early.py"]


def test_commits_are_read_once_for_each_head(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    changes = git_history.ChangeReader.changes

    def counted(self: git_history.ChangeReader) -> object:
        read.append("read")
        return changes(self)

    monkeypatch.setattr(git_history.ChangeReader, "changes", counted)
    workspace = sync.Workspace(shop, index=False)
    assert [files(workspace)[0] for _ in range(3)] == ["later.py"] * 3
    assert len(read) == 1
    (shop / "src/early.py").write_text(ALIKE["early"] + "\n")
    git(shop, "commit", "-qam", "shop: the rounding of cents is wrong after sums of rows")
    assert files(workspace)[0] == "early.py"
    assert len(read) == 2


@pytest.mark.posix
@pytest.mark.parametrize("hangs", ["rev-parse", "log"])
def test_git_that_hangs_costs_a_second_once(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hangs: str
) -> None:
    started = tmp_path / "started"
    program = tmp_path / "bin/git"
    program.parent.mkdir()
    hanging = f'case "$*" in *{hangs}*) echo x >> {started}; exec sleep 600;; esac'
    program.write_text(f'#!/bin/sh\n{hanging}\nexec {shutil.which("git")} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(_history, "MAX_SECONDS", 0.2)
    workspace = sync.Workspace(shop, index=False)
    for _ in range(3):
        assert files(workspace) == ["early.py", "later.py"]
    assert started.read_text() == "x\n"


def test_large_commits_do_not_count_and_old_ones_are_not_read(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(git_history.MAX_PATHS + 1):
        (shop / f"{number}.txt").write_text("x\n")
    (shop / "src/early.py").write_text(ALIKE["early"].replace("return ", "return\t"))  # as long as before
    git(shop, "add", ".")
    git(shop, "commit", "-qm", "shop: sums of rows are wrong after the rounding of cents")
    assert files(sync.Workspace(shop, index=False)) == ["later.py", "early.py"]
    with git_history.ChangeReader(str(shop), [shop], time.monotonic() + 60) as reader:
        reader.tip()
        assert [change.message for change in reader.changes()] == [
            "shop: rounding of cents\n",
            "shop: totals of carts\n",
        ]
    newest = tuple(one.replace(f"={git_history.MAX_COMMITS}", "=1") for one in git_history._CHANGES_LOG)
    monkeypatch.setattr(git_history, "_CHANGES_LOG", newest)
    assert files(sync.Workspace(shop, index=False)) == ["early.py", "later.py"]


def test_commits_of_many_characters_are_not_all_read(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_history, "MAX_CHARS", 10)
    workspace = sync.Workspace(shop, index=False)
    assert files(workspace, "sum of the rows, as in totals of carts") == ["early.py", "later.py"]
    (place, *_) = workspace.codebase_search_result("sum of the rows, as in totals of carts").places
    assert not any("commits" in reason for reason in place.why)


@pytest.mark.posix
def test_messages_and_paths_of_any_bytes_are_read(shop: Path) -> None:
    name = os.fsdecode(b"src/\x01caf\xe9\nx.py")
    (shop / name).write_text("def cafe(): ...\n")
    git(shop, "add", ".")
    (shop / "message").write_bytes(b"\x01 caf\xe9 " + b"y" * 100_000)
    git(shop, "commit", "-q", "--file=message")
    with git_history.ChangeReader(str(shop), [shop], time.monotonic() + 60) as reader:
        reader.tip()
        newest = next(iter(reader.changes()))
    assert newest.message.startswith("\x01 caf") and len(newest.message) <= git_history.MAX_MESSAGE_BYTES
    assert name in newest.paths
