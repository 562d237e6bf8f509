"""Trees: entries of every directory within a budget, their order and format."""

import os
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ripwrap
from ripwrap import Tree, TreeEntry, sync
from ripwrap._operations.tree import TreeDirectory, arrange, insert_path
from support.paths import native

Plant = Callable[..., Path]


def drawn(paths: list[str], limit: int | None, exclude: tuple[str, ...] = ()) -> str:
    root: TreeDirectory = {}
    for path in paths:
        insert_path(root, native(path), frozenset(exclude))
    return str(Tree(entries=tuple(arrange(root, limit))))


def names(path: str, count: int) -> list[str]:
    return [f"{path}{number}" for number in range(count)]


def test_tree_draws_directories_before_files() -> None:
    paths = ["main.go", "src/agent/loop.go", "src/agent/agent.go", "src/tools/read.go", "src/tools/bash.go"]
    assert drawn(paths, 50) == (
        "src/\n    agent/\n        agent.go\n        loop.go\n    tools/\n        bash.go\n        read.go\nmain.go"
    )


def test_directories_come_first_and_names_sort_alphabetically() -> None:
    assert drawn(["b", "A", "a", "C/x", "d/x", "é", "Z"], None) == ("C/\n    x\nd/\n    x\nA\na\nb\nZ\né")


def test_directories_of_a_level_share_the_budget_equally() -> None:
    paths = [*names("big/", 10), *names("small/", 2), *names("mid/", 4)]
    assert drawn(paths, 3 + 6) == (
        "big/\n    0\n    1\n    [8 truncated]\nmid/\n    0\n    1\n    [2 truncated]\nsmall/\n    0\n    1"
    )


def test_directories_of_a_level_are_taken_row_by_row() -> None:
    """The first of each parent, then the second; opencode takes them parent by parent."""
    paths = [*names("a/p/", 2), "a/q/0", *names("b/r/", 2), "b/s/0"]
    assert drawn(paths, 6 + 2) == (
        "a/\n    p/\n        0\n        [1 truncated]\n    q/\n        [1 truncated]\n"
        "b/\n    r/\n        0\n        [1 truncated]\n    s/\n        [1 truncated]"
    )


def test_unused_budget_goes_to_larger_directories() -> None:
    assert drawn([*names("a/", 5), "b/x"], 2 + 4) == "a/\n    0\n    1\n    2\n    [2 truncated]\nb/\n    x"


def test_directory_says_how_many_children_are_truncated() -> None:
    assert drawn(["a/b/c/d", "a/e", "f"], 2) == "a/\n    [2 truncated]\nf"
    assert drawn(["a/b/c/d", "a/e", "f"], 3) == "a/\n    b/\n        [1 truncated]\n    [1 truncated]\nf"


def test_root_says_how_many_children_are_truncated() -> None:
    assert drawn(names("", 5), 2) == "0\n1\n[3 truncated]"
    assert drawn(names("", 5), 0) == "[5 truncated]"
    assert drawn(names("", 5), 5) == drawn(names("", 5), None) == "0\n1\n2\n3\n4"


def test_truncated_counts_direct_children_only() -> None:
    assert drawn(names("a/b/", 100), 1) == "a/\n    [1 truncated]"


def test_exclude_drops_whole_names_at_any_depth() -> None:
    paths = [".opencode/x", "a/.opencode/y", "a/.opencode.txt", "b/.opencode"]
    assert drawn(paths, None, (".opencode",)) == "a/\n    .opencode.txt"


def test_empty_tree_is_an_empty_text() -> None:
    assert drawn([], 50) == ""


def test_entries_have_path_depth_and_truncated_count() -> None:
    root: TreeDirectory = {}
    for path in ("src/a", "src/b", "c"):
        insert_path(root, native(path), frozenset())
    assert list(arrange(root, 3)) == [
        TreeEntry(path="src", name="src", depth=0, is_dir=True),
        TreeEntry(path=native("src/a"), name="a", depth=1),
        TreeEntry(path="src", name="[1 truncated]", depth=1, truncated=1),
        TreeEntry(path="c", name="c", depth=0),
    ]


@pytest.mark.slow
def test_tree_deeper_than_the_recursion_limit_is_drawn() -> None:
    path = "/".join(["d"] * 5000)
    assert drawn([path], None).count("\n") == 4999


parts = st.text(alphabet="abcAé.", min_size=1, max_size=3).filter(lambda part: part.strip("."))
trees = st.lists(st.lists(parts, min_size=1, max_size=4).map("/".join), max_size=30)


@given(trees, st.integers(0, 40))
def test_every_entry_is_shown_or_counted_as_truncated(paths: list[str], limit: int) -> None:
    root: TreeDirectory = {}
    for path in paths:
        insert_path(root, native(path), frozenset())
    entries = list(arrange(root, limit))
    everything = list(arrange(root, None))
    shown = [entry for entry in entries if not entry.truncated]
    assert len(shown) == min(limit, len(everything))
    assert [entry for entry in everything if entry in set(shown)] == shown, "the order does not depend on the limit"
    missing = {entry.path: entry.truncated for entry in entries if entry.truncated}
    visible = {"", *(entry.path for entry in shown if entry.is_dir)}
    for directory in visible:
        children = [entry for entry in everything if os.path.dirname(entry.path) == directory]
        assert missing.pop(directory, 0) == len([child for child in children if child not in shown])
    assert missing == {}


@pytest.mark.anyio
@pytest.mark.usefixtures("leaks_nothing")
async def test_tree_draws_a_real_folder(plant: Plant) -> None:
    folder = plant({"src/a.py": "", "src/b.py": "", ".opencode/x": "", ".git/config": "", "README": "", "ignored": ""})
    (folder / ".gitignore").write_text("ignored")
    expected = "src/\n    a.py\n    b.py\n.gitignore\nREADME"
    assert str(await ripwrap.tree_text(cwd=folder)) == expected
    assert str(sync.tree_text(cwd=folder)) == expected
    entries = [entry async for entry in ripwrap.tree(cwd=folder)]
    assert entries == list(sync.tree(cwd=folder))
    assert str(Tree(entries=tuple(entries))) == expected == "\n".join(map(str, entries))
    cut = await ripwrap.tree_text(cwd=folder, hidden=False, limit=2, exclude=())
    assert (str(cut), cut.truncated) == ("src/\n    [2 truncated]\nREADME", True)
    whole = await ripwrap.tree_text(cwd=folder, hidden=False, exclude=["src"])
    assert (str(whole), whole.truncated) == ("README", False)


@pytest.mark.slow
@pytest.mark.anyio
async def test_other_tasks_run_while_a_large_tree_is_arranged(plant: Plant) -> None:
    folder = plant(dict.fromkeys(names("", 1000), ""))
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    async with anyio.create_task_group() as tasks, aclosing(ripwrap.tree(cwd=folder, limit=None)) as entries:
        await anext(entries)
        tasks.start_soon(count)
        assert len([entry async for entry in entries]) == 999
        tasks.cancel_scope.cancel()
    assert turns >= 5


@pytest.mark.anyio
async def test_tree_shows_fifty_entries_by_default(plant: Plant) -> None:
    folder = plant(dict.fromkeys(names("", 60), ""))
    entries = [entry async for entry in ripwrap.tree(cwd=folder)]
    assert len(entries) == 51
    assert str(entries[-1]) == "[10 truncated]"


def test_invalid_argument_raises_before_rg_starts(folder: Path) -> None:
    for tree in (ripwrap.tree, sync.tree):
        with pytest.raises(ValueError, match="0 or more"):
            tree(rg=folder / "none", limit=-1)
        with pytest.raises(TypeError, match="a collection of names"):
            tree(rg=folder / "none", exclude=".opencode")
