"""Roots out of paths, globs, files and git repositories, and their names."""

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ripwrap.repositories import Repositories, Root
from support.paths import native


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("a/x", "a/y", "b/x", "c/b/x", ".hidden"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "a" / "file").write_text("")
    return tmp_path


def names(*roots: Any, **settings: Any) -> list[str]:
    return [root.name for root in Repositories(*roots, **settings).roots]


def test_glob_finds_directories_in_path_order(tree: Path) -> None:
    found = Repositories(f"{tree}/a/*").roots
    assert found == (Root(name="x", path=str(tree / "a/x")), Root(name="y", path=str(tree / "a/y")))
    assert names(f"{tree}/**/y") == ["y"]


def test_equal_names_get_parts_of_their_paths_in_any_order(tree: Path) -> None:
    paths = [tree / "a/x", tree / "a/y", tree / "b/x", tree / "c/b/x"]
    given = ["a/x", "y", f"{tree.name}/b/x", "c/b/x"]
    for some in itertools.permutations(paths):
        found = {root.path: root.name for root in Repositories(*some)}
        assert [found[str(path)] for path in paths] == [native(name) for name in given]


def test_same_directory_counts_once(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)
    found = Repositories("a/x", f"{tree}/a/x/", Path("a") / "y" / ".." / "x", "a/*").roots
    assert [root.path for root in found] == [str(tree / "a/x"), str(tree / "a/y")]


def test_existing_directory_with_glob_characters_is_not_read_as_a_glob(tree: Path) -> None:
    (tree / "[x]").mkdir()
    assert [root.path for root in Repositories(tree / "[x]")] == [str(tree / "[x]")]


def test_missing_directory_stays_a_root(tree: Path) -> None:
    assert names(tree / "gone", tree / "a") == ["gone", "a"]


def test_only_and_exclude_match_names_and_paths(tree: Path) -> None:
    assert names(f"{tree}/*/*", only="*x") == [native("a/x"), native("b/x")]
    assert names(f"{tree}/*/*", only="a/*", exclude=str(tree / "b" / "*")) == [native("a/x")]
    assert names(f"{tree}/a/*", exclude=["y"]) == ["x"]
    assert names(f"{tree}/a/*", only=[f"{tree}/a/y"]) == ["y"]
    with pytest.raises(ValueError, match=r"only=\['z'\] and exclude=\[\] leave out all roots \(2\); change"):
        Repositories(f"{tree}/a/*", only="z")


def test_given_root_keeps_its_name(tree: Path) -> None:
    mine = Root(name="x", path=str(tree / "c"))
    assert names(mine, tree / "a/x") == ["x", native("a/x")]
    with pytest.raises(ValueError, match="two roots have the name 'x'; give each root a different name"):
        Repositories(mine, Root(name="x", path=str(tree / "b")))


@pytest.mark.parametrize(
    ("roots", "error", "text"),
    [
        ((), ValueError, "no roots given; pass directories, or globs"),
        (("",), ValueError, "the path of a root is empty"),
        (("a\0b",), ValueError, "NUL"),
        ((b"a",), TypeError, "a root must be a str or os.PathLike"),
        (("/none/*",), FileNotFoundError, r"no directory matches '/none/\*'"),
    ],
)
def test_wrong_root_raises(roots: tuple[Any, ...], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        Repositories(*roots)


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"concurrency": 0}, ValueError, "concurrency must be 1 or more, got 0"),
        ({"retries": -1}, ValueError, "retries must be 0 or more, got -1"),
        ({"concurrency": "2"}, TypeError, "concurrency must be an int, got str"),
        ({"executor": 3}, TypeError, "executor must be a concurrent.futures.Executor"),
        ({"executor": SimpleNamespace(submit=print)}, TypeError, "executor must be a concurrent.futures.Executor"),
    ],
)
def test_wrong_setting_raises(settings: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        Repositories(".", **settings)


def test_file_has_paths_and_globs_relative_to_its_folder(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    (tree / "list.txt").write_text(f"# mine\n\nb\n{tree}/c\na/*\n")
    found = Repositories.from_file(tree / "list.txt", exclude="y").roots
    assert [root.path for root in found] == [str(tree / name) for name in ("b", "c", "a/x")]
    (tree / "empty").write_text("# none\n")
    with pytest.raises(ValueError, match="empty names no root; write the path of a directory on each line"):
        Repositories.from_file(tree / "empty")
    with pytest.raises(FileNotFoundError):
        Repositories.from_file(tree / "gone")


def test_git_repositories_are_named_by_their_paths(tree: Path) -> None:
    for name in ("a/x", "b/x", "c"):
        (tree / name / ".git").mkdir()
    (tree / "a/x/inside/.git").mkdir(parents=True)
    (tree / "worktree").mkdir()
    (tree / "worktree/.git").write_text("gitdir: …\n", "utf-8")
    assert [root.name for root in Repositories.below(tree)] == [native("a/x"), native("b/x"), "c", "worktree"]
    assert [root.name for root in Repositories.below(tree, max_depth=1)] == ["c", "worktree"]
    assert [root.name for root in Repositories.below(tree / "c")] == ["c"]
    assert [root.name for root in Repositories.below(tree, exclude="*/x")] == ["c", "worktree"]
    with pytest.raises(ValueError, match="there is no git repository in"):
        Repositories.below(tree / ".hidden")
    with pytest.raises(FileNotFoundError):
        Repositories.below(tree / "gone")


@pytest.mark.posix
def test_links_to_git_repositories_are_not_followed(tree: Path) -> None:
    (tree / "c/.git").mkdir()
    (tree / "link").symlink_to(tree / "c")
    assert [root.name for root in Repositories.below(tree)] == ["c"]


def test_roots_can_be_counted_and_iterated(tree: Path) -> None:
    found = Repositories(f"{tree}/a/*")
    assert len(found) == 2
    assert list(found) == list(found.roots)
    assert repr(found) == "Repositories(2 roots)"
