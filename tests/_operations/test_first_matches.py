"""`grep(count=False)`: rg is ended when the page is full, and the page is a part of the whole answer."""

import asyncio
import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ripwrap
from ripwrap import GrepResult, sync, testing
from ripwrap.places import Items

NAMES = ("a", "b.py", "d/a", "d/b/c", "e.txt")
LINES = st.lists(st.sampled_from(["x", "y", "xx x", ""]), max_size=9).map("\n".join)
TREES = st.dictionaries(st.sampled_from(NAMES), LINES, min_size=1)


def lines_of(result: GrepResult) -> list[tuple[str, int, bool]]:
    """Return each line of a page: its path, its number, and True for a match."""
    return [(file.path, line.line_number, line.type == "match") for file in result for line in file.lines()]


def matches_of(result: GrepResult) -> list[tuple[str, int]]:
    return [(match.path, match.line_number) for match in result.matches]


def pages(**options: Any) -> Iterator[tuple[int, GrepResult]]:
    """Yield all pages of a search that counts nothing, with their offsets."""
    offset: int | None = 0
    while offset is not None:
        result = sync.grep("x", offset=offset, count=False, **options)
        yield offset, result
        offset = result.next_offset


@given(TREES, st.integers(1, 5), st.integers(0, 2), st.none() | st.integers(1, 3))
def test_page_is_a_part_of_the_whole_answer(
    tree: dict[str, str], limit: int, context: int, max_files: int | None
) -> None:
    with tempfile.TemporaryDirectory() as cwd:
        testing.write_tree(cwd, tree)
        where: dict[str, Any] = {"cwd": cwd, "limit": limit, "context": context, "max_files": max_files}
        whole = sync.grep("x", cwd=cwd, limit=None, context=context)
        found = list(pages(**where, sort="path"))
        assert [one for _, page in found for one in matches_of(page)] == matches_of(whole)
        for offset, page in found:
            assert lines_of(page) == lines_of(sync.grep("x", offset=offset, **where))
        unsorted = sync.grep("x", count=False, **where)
        assert matches_of(unsorted) == sorted(matches_of(unsorted), key=lambda one: (one[0].split("/"), one[1]))
        assert {one[:2] for one in lines_of(unsorted)} <= {one[:2] for one in lines_of(whole)}
        assert set(matches_of(unsorted)) <= set(matches_of(whole))
        assert max_files is not None or len(unsorted) == min(limit, len(whole))
        items = Items([(name, tree[name].encode()) for name in sorted(tree, key=lambda one: one.split("/"))])
        for result in (*(page for _, page in found), unsorted, sync.grep("x", where=items, count=False, **where)):
            assert result.exact == (not result.stop_reason.startswith(("limit", "max"))) or result.total_matches
            assert not result.exact or result.total_matches == len(whole)
            assert result.exact or (result.truncated and result.stop_reason in ("limit", "max_files"))
            assert ("at least" in result.message.lower()) == (not result.exact)
            assert result.total_matches <= len(whole) and bool(result) == bool(whole)


@pytest.mark.parametrize("sort", ["none", "path"])
def test_rg_is_ended_in_the_middle_of_a_file(tmp_path: Path, sort: Any) -> None:
    """Before, the whole file was read to count its matches."""
    (tmp_path / "large").write_text("y\nx\n" * 300_000)
    result = sync.grep("x", cwd=tmp_path, limit=3, context=1, count=False, sort=sort)
    assert lines_of(result) == [("large", number, not number % 2) for number in range(1, 8)]
    assert 3 <= result.total_matches < 100_000 and (result.next_offset == 3) == (sort == "path")


def test_endless_rg_and_items_are_ended() -> None:
    items = Items((str(number), b"x\n") for number in itertools.count())
    known: dict[str, Any] = {"limit": 5, "count": False, "timeout": 60}
    results = [sync.grep("x", where=items, **known)]
    with testing.misbehaving("endless") as rg:
        results += [sync.grep("x", rg=rg, **known), asyncio.run(ripwrap.grep("x", rg=rg, **known))]
    for result in results:
        assert (len(result), result.exact, result.stop_reason, result.errors) == (5, False, "limit", ())


@pytest.mark.parametrize("options", [{"near": "y"}, {"offset": 5}, {"offset": 5, "sort": "none"}])
def test_argument_that_needs_all_matches_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="cannot be combined with count=False"):
        sync.grep("x", count=False, **options)
