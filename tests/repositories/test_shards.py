"""A root in shards: the same answer as `grep()` for the whole, for any ignore rules, options and splits."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripwrap import Repositories, sync, testing
from ripwrap.repositories.collectors import MatchesCollector, split_files
from ripwrap.repositories.models import Root, RootError, Worker
from ripwrap.repositories.scheduler import Arrival
from support import rgs
from support.effort import times

Plant = Callable[..., Path]
rg15 = rgs.provide("15.2.0")


def assert_equal_answers(folder: Path, pattern: str, shards: int, **options: Any) -> None:
    limit = options.pop("limit", None)
    whole = sync.grep(pattern, cwd=folder, rg=rg15, limit=limit, timeout=None, **options)
    found = sync.Repositories(folder, rg=rg15).grep(
        pattern, shards=shards, per_root=limit, limit=limit, timeout=None, **options
    )
    assert (found.total_matches, found.files_matched, found.exact) == (
        whole.total_matches,
        whole.files_matched,
        whole.exact,
    )
    [one] = found.roots or [None]
    assert (one.files if one else ()) == whole.files
    assert found.truncated == whole.truncated


def test_root_is_not_exact_if_a_shard_failed() -> None:
    root = Root(name="a", path="/a")
    collector = MatchesCollector([root], "x", per_root=9, limit=9)
    worker = Worker(pid=1, host="h", rg="rg", rg_version="15.2.0")
    collector.take(root, Arrival(0, testing.grep_result(testing.match()), worker))
    collector.take(root, Arrival(1, RootError(root="a", kind="lost", error="LostError", message="gone")))
    collector.end(root)
    (found,) = collector.result().roots
    assert (found.total_matches, found.exact, found.worker) == (1, False, None)


TREE: dict[str | bytes, str | bytes] = {
    ".gitignore": "build/\n/top.txt\n*.log\n!keep.log\nsub/deep/no.txt\n",
    "top.txt": "x\n",
    "a.txt": "x\nx x\n",
    "build/out.txt": "x\n",
    "keep.log": "x\n",
    "drop.log": "x\n",
    ".hidden/f.txt": "x\n",
    "sub/.ignore": "*.tmp\n",
    "sub/a.tmp": "x\n",
    "sub/top.txt": "x\n",
    "sub/deep/no.txt": "x\n",
    "sub/deep/yes.txt": "x\n",
    "sub/deep/er/z.py": "x\ny\nx\n",
    "zeros/early.bin": b"x\n\0x\n",
    "zeros/late.txt": b"x\n" + b"y\n" * 40_000 + b"\0x\n",
    "sp ace/[b].txt": "x\n",
    "-dash/--pre": "x\n",
    "empty/f.txt": "",
}
if os.name == "posix":  # other systems cannot have these names
    TREE |= {b"bytes/\xff.txt": "x\n", "sp ace/[b]*.txt": "x\n"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"hidden": False},
        {"no_ignore": True},
        {"no_ignore_parent": True, "hidden": False},
        {"glob": ["*.txt", "!sub/deep/**"]},
        {"glob": "/sub/**", "context": 0},
        {"iglob": "*.TXT"},
        {"type": "py"},
        {"max_depth": 2},
        {"max_filesize": 3},
        {"limit": 3},
        {"text": True},
        {"binary": True, "max_count": 1},
    ],
    ids=str,
)
def test_shards_give_the_answer_of_the_whole_root(plant: Plant, options: dict[str, Any]) -> None:
    assert_equal_answers(plant(TREE), "x", 3, **options)


@pytest.mark.slow
@pytest.mark.posix
def test_shard_follows_links_as_a_search_of_the_whole_root(plant: Plant) -> None:
    folder = plant({"a/f.txt": "x\n", "b/g.txt": "x\n"})
    (folder / "to_a").symlink_to("a")
    (folder / "b" / "to_f").symlink_to("../a/f.txt")
    assert_equal_answers(folder, "x", 4)
    assert_equal_answers(folder, "x", 4, follow=False)


names = st.sampled_from(["a", "b", "c.txt", "d.py", ".e", "f.log", "g"])
paths = st.lists(names, min_size=1, max_size=4).map("/".join)
rules = st.lists(
    st.sampled_from(["a", "b/", "/a", "*.log", "!f.log", "a/b", "**/b", "!.e", "*.txt", "!c.txt", "/b/*", "g/**"]),
    max_size=4,
).map("\n".join)
contents = st.sampled_from([b"x\n", b"x x\ny\n", b"y\n", b"", b"x\n\0x\n", b"\xff x\n"])
choices = st.fixed_dictionaries(
    {},
    optional={
        "hidden": st.booleans(),
        "follow": st.booleans(),
        "no_ignore": st.booleans(),
        "no_ignore_vcs": st.booleans(),
        "no_ignore_parent": st.booleans(),
        "no_ignore_dot": st.booleans(),
        "glob": st.sampled_from(["*.txt", "!*.py", "/a/**", "!b", "a/*"]),
        "max_depth": st.integers(0, 4),
        "max_count": st.integers(1, 2),
        "limit": st.integers(0, 5),
        "invert_match": st.just(True),
        "context": st.integers(0, 1),
    },
)


@pytest.mark.slow
@settings(max_examples=times(25, 300))
@given(
    files=st.dictionaries(paths, contents, max_size=12),
    ignores=st.dictionaries(st.sampled_from(["", "a", "b", "a/b"]), rules, max_size=3),
    kind=st.sampled_from([".gitignore", ".ignore", ".rgignore"]),
    options=choices,
    shards=st.integers(2, 6),
)
def test_shards_give_the_answer_of_the_whole_root_in_any_tree(
    files: dict[str, bytes], ignores: dict[str, str], kind: str, options: dict[str, Any], shards: int
) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "root"
        folder.mkdir()
        for name, content in [
            *files.items(),
            *((os.path.join(at, kind), rule.encode()) for at, rule in ignores.items()),
        ]:
            path = folder / name
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            except (FileExistsError, NotADirectoryError, IsADirectoryError):
                continue  # another path has this name for a folder
        assert_equal_answers(folder, "x", shards, **options)


@pytest.mark.slow
@given(st.dictionaries(paths, st.integers(0, 1000), min_size=1, max_size=30), st.integers(1, 9))
def test_split_keeps_every_file_once_and_folders_together(sizes: dict[str, int], shards: int) -> None:
    lists = split_files(sizes.items(), shards)
    assert sorted(path for one in lists for path in one) == sorted(sizes)
    assert 1 <= len(lists) <= shards and all(lists)
    where = [(os.path.dirname(path), number) for number, one in enumerate(lists) for path in one]
    assert len(set(where)) == len({folder for folder, _ in where})


def test_split_balances_sizes() -> None:
    lists = split_files([(f"{folder:02}/f", 100) for folder in range(40)], 8)
    assert [len(one) for one in lists] == [5] * 8
    uneven = split_files([("a/f", 1000), *((f"b{number}/f", 10) for number in range(9))], 3)
    assert uneven[0] == ["a/f"]
    assert len(uneven) == 3


def test_root_that_cannot_be_listed_is_reported(tmp_path: Path) -> None:
    result = Repositories(tmp_path / "gone", rg=rg15)
    found = sync.Repositories(*result, rg=rg15).grep("x", shards=4)
    assert [error.kind for error in found.errors] == ["missing"]
