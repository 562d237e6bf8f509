"""Links that lead up are not entered, and loops of links are no errors."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ripwrap import sync
from ripwrap._ripgrep import process
from ripwrap._ripgrep.command import search_query
from ripwrap.binary import RgBinary

Plant = Callable[..., Path]

pytestmark = [pytest.mark.posix, pytest.mark.usefixtures("leaks_nothing")]


@pytest.fixture
def tree(plant: Plant) -> Path:
    """Directory `p/cwd` with links to itself and to directories above it."""
    names = ("other", "p/beside", "p/x/deep", "p/cwd/a", "p/cwd/sub/b", "p/cwd/sub/deep/c", "q/z")
    folder = plant(dict.fromkeys(names, "needle\n"))
    links: dict[str, str | Path] = {
        "p/cwd/loop": "..",
        "p/cwd/sub/up": "../..",
        "p/cwd/sub/deep/w[e]{i}*rd ": "../../..",
        "p/cwd/abs": folder,
        "p/cwd/root": "/",
        "p/cwd/self": "self",
        "p/cwd/same": ".",
        "p/cwd/sub/here": "../sub",
        "p/cwd/fine": "../x",
        "p/x/back": "..",
        "q/up": "..",
    }  # fmt: skip
    for link, target in links.items():
        (folder / link).symlink_to(target)
    return folder / "p" / "cwd"


@pytest.mark.rg_ends
def test_link_to_a_directory_that_holds_cwd_is_not_entered(rg: RgBinary, tree: Path) -> None:
    """`ln -s .. loop` searched all that lies beside `cwd`; also deep, absolute and behind other links."""
    found = ["a", "fine/deep", "sub/b", "sub/deep/c"]
    assert sorted(sync.files(cwd=tree, rg=rg)) == found
    page = sync.grep("needle", cwd=tree, rg=rg)
    assert [file.path for file in page.files] == found
    assert page.message == "4 matches in 4 files."
    assert all(error.harmless and error.kind == "loop" for error in page.errors)
    assert {error.path for error in page.errors} == {"self", "same", "sub/here"}
    options: list[dict[str, Any]] = [{"glob": "*"}, {"iglob": "*"}, {"glob": "**/*", "iglob": ["**/*"]}]
    for given in options:
        assert sorted(sync.files(cwd=tree, rg=rg, **given)) == found


def test_link_up_behind_two_links_to_one_directory_is_not_entered(plant: Plant) -> None:
    """The link up was left out behind the first of the two links, and entered behind the second."""
    folder = plant(dict.fromkeys(("p/beside", "p/cwd/a/one", "out/two"), "needle\n"))
    cwd = folder / "p" / "cwd"
    (cwd / "a/out").symlink_to(folder / "out")
    (cwd / "other").symlink_to(folder / "out")
    (folder / "out/up").symlink_to("../p")
    for name in ("b", "c"):
        (cwd / name).symlink_to("a")
    found = sorted(sync.files(cwd=cwd))
    assert found == ["a/one", "a/out/two", "b/one", "b/out/two", "c/one", "c/out/two", "other/two"]


def test_links_in_searched_paths_lead_nowhere_up_either(tree: Path) -> None:
    """In paths below, beside and above `cwd`, relative and absolute; a link that is named is entered."""
    below = ["sub/b", "sub/deep/c"]
    assert sorted(sync.files(cwd=tree, paths="sub")) == below
    assert sorted(sync.files(cwd=tree, paths=str(tree / "sub"))) == [str(tree / one) for one in below]
    beside = tree.parents[1] / "q"
    assert list(sync.files(cwd=tree, paths=beside)) == [str(beside / "z")]
    assert list(sync.files(cwd=tree, paths="../../q")) == ["../../q/z"]
    assert list(sync.files(cwd=tree, paths="loop/x")) == ["loop/x/deep"]
    assert "loop/beside" in list(sync.files(cwd=tree, paths="loop"))
    assert "../beside" in list(sync.files(cwd=tree, paths=".."))


def test_loop_is_no_error_unless_it_is_named(tree: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A loop is logged like a broken link; a link to itself that the caller names is missing."""
    list(sync.search("needle", cwd=tree))
    assert {record.levelname for record in caplog.records} <= {"INFO", "DEBUG"}
    (error,) = sync.grep("needle", cwd=tree, paths=["a", "self"]).errors
    assert (error.path, error.kind, error.harmless) == ("self", "missing", False)


def test_why_says_that_a_link_up_is_not_entered(tree: Path) -> None:
    """`why()` and the coverage agree with the search."""
    coverage = sync.coverage(cwd=tree)
    assert coverage.searched == 4
    reason = str(sync.why("loop/beside", cwd=tree))
    assert "a link to a directory above it" in reason


def test_links_are_looked_for_among_few_names(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time before rg starts is bounded: at most `MAX_ENTRIES` names are read, each once, without `follow` none."""
    query = search_query("needle", tree, (), {})
    assert len(process.without_upward_links(query).values("glob")) == 8
    assert process.without_upward_links(query.with_(follow=False)).values("glob") == ()
    assert process.without_upward_links(query.with_(max_depth=1)).values("glob") == ()
    monkeypatch.setattr(process, "MAX_ENTRIES", 0)
    assert process.without_upward_links(query) is query


def test_link_up_leads_above_the_searched_directory_or_the_working_directory(plant: Plant) -> None:
    """A link to a directory that holds only one of the two is not entered either."""
    folder = plant(dict.fromkeys(("p/cwd/sub/one", "p/cwd/sub/deep/two", "q/three", "p/beside"), "needle\n"))
    (folder / "p/cwd/sub/deep/near").symlink_to("..")
    (folder / "q/across").symlink_to("../p")
    (folder / "p/cwd/sub/.git").mkdir()
    (folder / "p/cwd/sub/.git/up").symlink_to("../..")
    cwd = folder / "p/cwd"
    assert list(sync.files(cwd=cwd, paths="sub/deep")) == ["sub/deep/two"]
    assert list(sync.files(cwd=cwd, paths=folder / "q")) == [str(folder / "q/three")]
    query = search_query("needle", cwd, "sub", {})
    assert process.without_upward_links(query) is query  # rg finds the loop `near`, and enters no `.git`


class _Scans:
    """Record of the directories that are read, and of the number of names in them that are taken."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, refused: str = "") -> None:
        self.folders: list[str] = []
        self.names = 0
        self._refused = refused
        self._scandir = os.scandir
        monkeypatch.setattr(os, "scandir", self._scan)

    @contextmanager
    def _scan(self, path: str) -> Iterator[Iterator["os.DirEntry[str]"]]:
        self.folders.append(os.path.basename(path))
        if self.folders[-1] == self._refused:
            raise PermissionError(path)
        with self._scandir(path) as entries:
            yield (self._counted(entry) for entry in entries)

    def _counted(self, entry: "os.DirEntry[str]") -> "os.DirEntry[str]":
        self.names += 1
        return entry


@pytest.mark.parametrize(
    ("names", "most", "folders", "taken"),
    [
        ([f"{'d/' * 10}f"], 4, 4, 4),  # one name in each directory
        ([f"{number}" for number in range(10)], 4, 1, 4),  # the directory has more names
        ([f"{number}/" for number in range(10)], 13, 4, 10),  # an empty directory counts as one name
    ],
)
def test_work_to_find_links_is_bounded(
    plant: Plant, monkeypatch: pytest.MonkeyPatch, names: list[str], most: int, folders: int, taken: int
) -> None:
    cwd = plant({name: "" for name in names if not name.endswith("/")})
    for name in names:
        (cwd / name).parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            (cwd / name).mkdir()
    monkeypatch.setattr(process, "MAX_ENTRIES", most)
    query, scans = search_query("needle", cwd, (), {}), _Scans(monkeypatch)
    assert process.without_upward_links(query) is query
    assert (len(scans.folders), scans.names) == (folders, taken)


def test_few_of_many_paths_are_resolved(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    cwd = plant({f"{number}/f": "" for number in range(20)})
    query = search_query("needle", cwd, [f"{number}" for number in range(20)], {})
    resolved: list[str] = []
    realpath = os.path.realpath

    def resolve(path: str) -> str:
        resolved.append(path)
        return realpath(path)

    monkeypatch.setattr(process, "MAX_ENTRIES", 3)
    monkeypatch.setattr(os.path, "realpath", resolve)
    assert process.without_upward_links(query) is query
    assert len(resolved) == 1 + 3


def test_directory_that_cannot_be_read_hides_no_link(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    query = search_query("needle", tree, (), {})
    scans = _Scans(monkeypatch, refused="deep")
    assert len(process.without_upward_links(query).values("glob")) == 6
    assert "deep" in scans.folders
