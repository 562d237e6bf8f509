"""First and last commits of versions, against a walk over all commits and trees of generated histories."""

import random
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from _operations.test_revisions import ENV, git
from ripwrap import SearchError, sync
from ripwrap.places import Revision
from ripwrap.sources import git as git_sources
from ripwrap.sources.git import Lifetimes
from ripwrap.sources.git_history import HistorySource
from support.cli import output, run
from support.effort import times
from support.git import require_git

pytestmark = [pytest.mark.usefixtures("temporary", "leaks_nothing")]

NAMES = ("a", "b", "sub/c", "sub/d", "sub/deep/a", "sub2")
MODES = ("100644", "100644", "100644", "100755", "120000")
Tree = dict[str, tuple[str, int]]
"""Mode and number of the content of each file, by its path."""


@dataclass
class History:
    """Commits from the oldest: their parents, dates and trees."""

    parents: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    dates: list[int] = field(default_factory=list[int])
    trees: list[Tree] = field(default_factory=list[Tree])


def generated(chance: random.Random) -> History:
    """Return a history with merges, octopus merges and `-s ours`, whose dates may run backwards."""
    history = History()
    backwards = chance.random() < 0.6
    for number in range(chance.randint(2, 14)):
        count = min(number, chance.choice([0, 1, 1, 1, 2, 2, 2, 3, 4]) if number else 0)
        recent = range(max(0, number - 5), number)
        parents = tuple(chance.sample(recent, min(count, len(recent))))
        tree: Tree = dict(history.trees[parents[0]]) if parents else {}
        if len(parents) > 1 and chance.random() < 0.7:  # otherwise as with `-s ours`
            for other in parents[1:]:
                tree |= {name: one for name, one in history.trees[other].items() if chance.random() < 0.6}
        for _ in range(chance.choice([0, 1, 1, 2]) if parents else 2):
            name = chance.choice(NAMES)
            if chance.random() < 0.3:
                tree.pop(name, None)
            else:
                tree[name] = chance.choice(MODES), chance.randrange(7)
        history.parents.append(parents)
        history.dates.append(chance.randint(1, 30) if backwards else 2 * number + chance.randint(0, 1))
        history.trees.append(tree)
    return history


def stream(history: History, ref: str) -> Iterator[str]:
    """Yield the commands with which `git fast-import` makes a history."""
    for number, (parents, date, tree) in enumerate(zip(history.parents, history.dates, history.trees, strict=True)):
        yield f"commit {ref}\nmark :{number + 1}\ncommitter me <me@here> {1_600_000_000 + 60 * date} +0000\n"
        yield f"data 2\n{number:02}\n"
        if not parents:
            yield "from 0000000000000000000000000000000000000000\n"
        for at, parent in enumerate(parents):
            yield f"{'merge' if at else 'from'} :{parent + 1}\n"
        yield "deleteall\n"
        for name, (mode, content) in tree.items():
            text = f"needle {content}\n"
            yield f"M {mode} inline {name}\ndata {len(text)}\n{text}\n"
        yield "\n"


def imported(folder: Path, history: History, ref: str) -> list[str]:
    """Make a history in a repository, and return the ids of its commits."""
    marks = folder / "marks"
    argv = ["git", "-C", str(folder), "fast-import", "--quiet", "--force", f"--export-marks={marks}"]
    subprocess.run(argv, input="".join(stream(history, ref)), text=True, env=ENV, check=True)
    known = dict(line.split() for line in marks.read_text().splitlines())
    return [known[f":{number + 1}"] for number in range(len(history.parents))]


def reachable(history: History, tip: int) -> set[int]:
    """Return a commit and its ancestors."""
    found, waiting = set[int](), [tip]
    while waiting:
        number = waiting.pop()
        if number not in found:
            found.add(number)
            waiting += history.parents[number]
    return found


def selected(tree: Tree, paths: Sequence[str]) -> dict[str, int]:
    """Return the contents of the regular files of a tree below some paths."""
    return {
        name: content
        for name, (mode, content) in tree.items()
        if mode.startswith("100") and (not paths or any(name == one or name.startswith(f"{one}/") for one in paths))
    }


def check(folder: Path, history: History, ids: list[str], paths: Sequence[str], tips: Sequence[int] = ()) -> None:
    """Compare the versions of a history, up to the last commit or up to all refs, with those of its commits and trees.

    `tips` are the commits of all refs.
    """
    rev = "--all" if tips else ids[-1]
    order = [ids.index(one) for one in git(folder, "rev-list", "--date-order", rev).split()]
    assert {*order} == set[int]().union(*(reachable(history, tip) for tip in tips or [len(ids) - 1]))
    trees = {number: selected(history.trees[number], paths) for number in order}
    expected = {
        content: (
            next(number for number in order if content in trees[number].values()),
            next(number for number in reversed(order) if content in trees[number].values()),
            {name for tree in trees.values() for name, one in tree.items() if one == content},
        )
        for content in {content for tree in trees.values() for content in tree.values()}
    }
    if paths and not any(trees.values()):
        return
    source = HistorySource(str(folder), rev, None, paths)
    found = {}
    for name, text in source:
        blob = name.blob  # type: ignore[attr-defined]
        found[int(bytes(text).split()[1])] = ids.index(blob.last.id), ids.index(blob.first.id), {*blob.paths}  # type: ignore[arg-type]
    source.close()
    assert (found, source.errors) == (expected, [])
    for content, (last, first, _) in expected.items():
        holders = [number for number in order if content in trees[number].values()]
        assert not any(last in reachable(history, number) - {number} for number in holders)
        assert not any(content in trees[parent].values() for parent in history.parents[first])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(times(3, 100)))
def test_commits_of_versions_are_those_of_a_walk_over_all_trees(tmp_path: Path, seed: int) -> None:
    """Merges, octopus merges, `-s ours`, dates that run backwards, with and without paths."""
    require_git()
    chance = random.Random(seed)
    git(tmp_path, "init", "-q")
    for number in range(times(8, 20)):
        history = generated(chance)
        ids = imported(tmp_path, history, f"refs/heads/h{number}")
        check(tmp_path, history, ids, ())
        check(tmp_path, history, ids, chance.choice([["a"], ["sub"], ["sub/deep", "b"], ["sub2", "a"]]))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(times(2, 100)))
def test_all_refs_have_the_versions_of_a_walk_over_all_their_trees(tmp_path: Path, seed: int) -> None:
    """Branches and tags of several commits, some of which are parents of others."""
    require_git()
    chance = random.Random(seed)
    for number in range(times(6, 20)):
        folder = tmp_path / str(number)
        git(tmp_path, "init", "-q", str(folder))
        history = generated(chance)
        ids = imported(folder, history, "refs/heads/last")
        tips = chance.sample(range(len(ids)), chance.randint(1, min(4, len(ids))))
        git(folder, "update-ref", "-d", "refs/heads/last")
        for tip in tips:
            git(folder, "update-ref", f"refs/{chance.choice(['heads', 'tags', 'remotes/o', 'x'])}/r{tip}", ids[tip])
        check(folder, history, ids, (), tips)
        check(folder, history, ids, chance.choice([["a"], ["sub"], ["sub2", "a"]]), tips)


def test_all_refs_have_stashes_and_tags_and_an_empty_repository_has_none(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    with pytest.raises(ValueError, match="has no branch, tag or other ref"):
        list(sync.search_history("needle", cwd=tmp_path, rev="--all"))
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "tagged")
    for content in ("tagged", "stash 1", "stash 2"):
        (tmp_path / "a").write_text(f"needle {content}\n")
        git(tmp_path, "add", "a")
        if content == "tagged":
            git(tmp_path, "commit", "-q", "-m", content)
            git(tmp_path, "tag", "-a", "-m", "t", "t")
            git(tmp_path, "reset", "-q", "--hard", "HEAD~1")
        else:
            git(tmp_path, "stash", "-q")
    assert list(sync.search_history("needle", cwd=tmp_path)) == []
    found = sync.search_history("needle", cwd=tmp_path, rev="--all")
    assert {match.text for match in found} == {"needle tagged", "needle stash 1", "needle stash 2"}
    with pytest.raises(ValueError, match="must be a revision of git"):
        list(sync.search("needle", cwd=tmp_path, where=Revision("--all")))


def test_shallow_clone_says_that_older_commits_are_missing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder, clone = tmp_path / "whole", tmp_path / "clone"
    git(tmp_path, "init", "-q", str(folder))
    trees: list[Tree] = [{"a": ("100644", content)} for content in range(3)]
    imported(folder, History([(), (0,), (1,)], [1, 9_000, 18_000], trees), "refs/heads/main")
    git(tmp_path, "clone", "-q", "--depth=2", "--branch=main", folder.as_uri(), str(clone))

    def found(**options: Any) -> set[str]:
        caplog.clear()
        return {match.text for match in sync.search_history("needle", cwd=clone, **options)}

    assert found() == {"needle 1", "needle 2"}
    assert "the repository is a shallow clone, so the older commits are missing" in caplog.text
    assert run("scan", "--history", "--rev=main", cwd=clone, code=2).stdout == b""
    assert found(since="2020-09-25") == {"needle 2"}  # no commit after this date is missing
    assert not caplog.text
    git(clone, "fetch", "-q", "--unshallow")
    assert found() == {"needle 0", "needle 1", "needle 2"}
    assert not caplog.text
    output("scan", "--history", "--rev=main", cwd=clone)


def test_merge_that_resolves_to_something_else_has_not_the_versions_of_its_parents(tmp_path: Path) -> None:
    """`last` named the first parent of a merge for versions that only the others had."""
    one, two, three, four = ({"a": ("100644", content)} for content in range(4))
    history = History([(), (0,), (0,), (1, 2), (1, 2), (4,)], [1, 2, 3, 4, 5, 6], [one, two, three, four, two, four])
    git(tmp_path, "init", "-q")
    ids = imported(tmp_path, history, "refs/heads/main")
    for tip, expected in ((3, {"0": 0, "1": 1, "2": 2, "3": 3}), (5, {"0": 0, "1": 4, "2": 2, "3": 5})):
        matches = sync.search_history("needle", cwd=tmp_path, rev=ids[tip])
        assert {match.text[-1]: match.last and ids.index(match.last.id) for match in matches} == expected


def test_side_branch_that_was_not_merged_in_is_searched_with_paths(tmp_path: Path) -> None:
    """With paths, git leaves out a branch whose files a merge does not take (git-log(1))."""
    base, side = {"a": ("100644", 0)}, {"a": ("100644", 1)}
    git(tmp_path, "init", "-q")
    ids = imported(tmp_path, History([(), (0,), (0, 1)], [1, 2, 3], [base, side, base]), "refs/heads/main")
    for paths in ((), ("a",)):
        matches = list(sync.search_history("needle", cwd=tmp_path, rev=ids[-1], paths=paths))
        assert {match.text: match.last and match.last.id for match in matches} == {
            "needle 0": ids[2],
            "needle 1": ids[1],
        }


def test_version_that_is_left_elsewhere_or_as_a_link_is_not_gone(tmp_path: Path) -> None:
    """Copies, renames, changes of the mode, and links with the same content."""
    copied = {"a": ("100644", 0), "b": ("100644", 0)}
    trees: list[Tree] = [{"a": ("100644", 0)}, copied, {"b": ("100755", 0)}, {"b": ("120000", 0)}, {"c": ("100644", 1)}]
    git(tmp_path, "init", "-q")
    ids = imported(tmp_path, History([(), (0,), (1,), (2,), (3,)], [5, 4, 3, 2, 1], trees), "refs/heads/main")
    found = {match.text: match for match in sync.search_history("needle", cwd=tmp_path, rev=ids[-1])}
    assert found["needle 0"].last is not None
    assert (found["needle 0"].last.id, found["needle 0"].first.id, found["needle 0"].paths) == (
        ids[2],
        ids[0],
        ("b", "a"),
    )


def test_versions_that_wait_are_counted_until_their_commit_comes() -> None:
    """A history of a million changes needs no more memory than its longest branches."""
    known = Lifetimes()
    known.remove("here", "tip")
    known.reach("tip")
    for version in ("here", "x", "x", "y"):
        known.remove(version, "parent")
    assert known.waiting == 2
    known.reach("other")
    known.add("y", "other")
    known.reach("parent")
    assert (known.waiting, known.last) == (0, {"here": "tip", "x": "parent", "y": "other"})


def test_versions_after_a_date_are_those_that_commits_after_it_made(tmp_path: Path) -> None:
    """A merge introduces only what none of its parents has; a change of the mode introduces nothing."""
    old, main, side = ({"a": ("100644", content)} for content in range(3))
    merged = main | {"b": ("100644", 3)}
    trees: list[Tree] = [old, main, side, merged, merged | {"a": ("100755", 1)}]
    history = History([(), (0,), (0,), (1, 2), (3,)], [1, 2, 9_000, 9_001, 9_002], trees)
    git(tmp_path, "init", "-q")
    ids = imported(tmp_path, history, "refs/heads/main")
    matches = sync.search_history("needle", cwd=tmp_path, rev=ids[-1], since="2020-09-16")
    assert {match.text: match.last and match.last.id for match in matches} == {"needle 2": ids[2], "needle 3": ids[4]}


def test_versions_that_wait_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Versions that wait for a commit are held in memory, and count for the limit of a history."""
    many: Tree = {f"f{number}": ("100644", number) for number in range(50)}
    git(tmp_path, "init", "-q")
    ids = imported(tmp_path, History([(), (0,)], [1, 9_000], [many, {}]), "refs/heads/main")
    assert list(sync.search_history("needle", cwd=tmp_path, rev=ids[-1], since="2020-09-16")) == []
    monkeypatch.setattr(git_sources, "MAX_ENTRIES", 20)
    with pytest.raises(SearchError, match="select fewer with paths or since"):
        list(sync.search_history("needle", cwd=tmp_path, rev=ids[-1], since="2020-09-16"))


def test_commit_with_very_many_parents_is_an_error(tmp_path: Path) -> None:
    """A bomb, because the same parent may be repeated."""
    git(tmp_path, "init", "-q")
    (tmp_path / "a").write_text("needle 1\n")
    git(tmp_path, "add", "a")
    tree = git(tmp_path, "write-tree")
    base = git(tmp_path, "commit-tree", "-m", "base", tree)
    for count in (1000, 2000):
        parents = f"parent {base}\n" * count
        raw = f"tree {tree}\n{parents}author me <> 9 +0000\ncommitter me <> 9 +0000\n\nmany\n"
        argv = ["git", "-C", str(tmp_path), "hash-object", "-t", "commit", "-w", "--stdin", "--literally"]
        many = subprocess.run(argv, input=raw, env=ENV, check=True, capture_output=True, text=True).stdout.strip()
        if count == 1000:
            (match,) = sync.search_history("needle", cwd=tmp_path, rev=many)
            assert (match.first.id, match.last and match.last.id) == (base, many)
        else:
            with pytest.raises(SearchError, match="more than 1500 parents"):
                list(sync.search_history("needle", cwd=tmp_path, rev=many))
