"""Trees, models and assertions of `ripwrap.testing`."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ripwrap import Match, sync, testing


def test_tree_is_written_and_removed() -> None:
    with testing.tree({"src/a.py": "one\r\n", "b": b"\xff", "c/d": ""}) as root:
        assert (root / "src" / "a.py").read_bytes() == b"one\r\n"
        assert sorted(path.name for path in root.rglob("*") if path.is_file()) == ["a.py", "b", "d"]
        assert root == root.resolve()
    assert not root.exists()


@pytest.mark.parametrize("path", ["", ".", "/a", "../a", "a/../../b"])
def test_tree_refuses_paths_outside(path: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a path must be relative and lead to a file in the tree"):
        testing.write_tree(tmp_path, {"good": "", path: ""})
    assert not list(tmp_path.iterdir())


def test_tree_refuses_a_text_that_is_neither_str_nor_bytes() -> None:
    texts: Any = {"a.py": 3}
    with pytest.raises(TypeError, match=r"the text of 'a\.py' must be a str or bytes, got int"), testing.tree(texts):
        pass


def test_match_has_each_occurrence() -> None:
    match = testing.match("é x é\n", of="é", path="b.txt", line_number=3)
    assert match.spans() == ((0, 1), (4, 5)) and (match.path, match.line_number, match.text) == ("b.txt", 3, "é x é")
    assert testing.match().spans() == ((0, 4),)
    assert testing.match("\n").spans() == ()
    with pytest.raises(ValueError, match="of= must be a part of the text 'x', and not empty; got 'y'"):
        testing.match("x", of="y")


def test_models_equal_those_of_a_search(rg_tree: Callable[[Mapping[str, str]], Path]) -> None:
    root = rg_tree({"a.py": "x\nyx\n", "b.py": "x"})
    found = list(sync.search("x", cwd=root, sort="path"))
    built = [
        testing.match("x\n", of="x"),
        testing.match("yx\n", of="x", line_number=2, absolute_offset=2),
        testing.match("x", path="b.py"),
    ]
    assert built == found and all(isinstance(one, Match) for one in built)
    assert testing.grep_result(*built, query="x", root=str(root)) == sync.grep("x", cwd=root, context=0)
    assert str(testing.grep_result(query="none").message) == sync.grep("none", cwd=root, explain=False).message


def test_absence_is_asserted(rg_tree: Callable[[Mapping[str, str]], Path]) -> None:
    root = rg_tree({"a.py": "x\n" * 12, "b.txt": ""})
    testing.assert_absent("y", cwd=root)
    testing.assert_absent("x", cwd=root, glob="*.txt")
    with pytest.raises(AssertionError, match=r"'x' must not match, but matches:\n  a.py:1: x\n(.*\n)+  and 2 more"):
        testing.assert_absent("x", cwd=root)
    with pytest.raises(AssertionError, match="no file was searched for 'x'; check cwd"):
        testing.assert_absent("x", cwd=root, glob="*.rs")


@pytest.mark.posix
def test_absence_fails_for_what_cannot_be_read(unprivileged: Path, plant: Callable[..., Path]) -> None:
    root = plant({"a.py": "", "b.py": "x"})
    (root / "b.py").chmod(0)
    with pytest.raises(AssertionError, match=r"could not read these paths:\n  b.py: Permission denied"):
        testing.assert_absent("x", cwd=root, rg=str(unprivileged))
