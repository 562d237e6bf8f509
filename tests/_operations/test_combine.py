"""Listing the files that match several patterns, with every rg, on asyncio, on trio and blocking."""

import itertools
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import ripwrap
from ripwrap import Hint, PatternError, sync
from ripwrap.binary import RgBinary
from ripwrap.places import Items
from support.paths import native

Plant = Callable[..., Path]

FILES: dict[str, str | bytes] = {
    "a.py": "one\ntwo\nthree\n",
    "src/b.py": "one two\n",
    "src/c.py": "three\n",
    ".hidden": "one\nthree\n",
    "late.bin": b"one\n" + b"x\n" * 40000 + b"\0\ntwo three\n",
    "utf16": "\ufeffone\ntwo\n".encode("utf-16-le"),
    "-x": "two\n",
    "empty": "",
}


def expected(
    folder: Path, all_of: "tuple[str, ...]", any_of: "tuple[str, ...]", none_of: "tuple[str, ...]", **options: Any
) -> list[str]:
    """Return what one search for each pattern finds."""

    def found(pattern: str) -> set[str]:
        return set(sync.files_with_matches(pattern, cwd=folder, **options))

    if not (all_of or any_of):
        return sorted(sync.files_without_match(none_of, cwd=folder, **options))
    sets = [*map(found, all_of), *([set[str]().union(*map(found, any_of))] if any_of else [])]
    return sorted(set.intersection(*sets).difference(*map(found, none_of)))


@pytest.mark.loops("asyncio")
@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.rg_ends
@pytest.mark.usefixtures("leaks_nothing")
async def test_files_fulfil_all_conditions(rg: RgBinary, plant: Plant) -> None:
    folder = plant(FILES)
    matching = ripwrap.files_matching
    assert await matching(all_of=["one", "two"], cwd=folder, rg=rg) == ["a.py", native("src/b.py"), "utf16"]
    assert await matching(all_of="one", any_of=["two", "three"], cwd=folder, rg=rg, none_of="t.o$") == [".hidden"]
    assert await matching(none_of=["one", "two"], cwd=folder, rg=rg) == ["empty", native("src/c.py")]
    assert await matching(any_of=["no such text"], none_of="one", cwd=folder, rg=rg) == []


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, marks=pytest.mark.slow),
        {"text": True},
        pytest.param({"paths": ["late.bin", "src", "-x"]}, marks=pytest.mark.slow),
        pytest.param({"hidden": False, "glob": "*.py"}, marks=pytest.mark.slow),
        pytest.param({"ignore_case": True, "max_depth": 1}, marks=pytest.mark.slow),
    ],
)
def test_the_answer_is_that_of_single_searches(options: dict[str, Any], plant: Plant) -> None:
    folder = plant(FILES)
    groups: list[tuple[str, ...]] = [(), ("two",), ("three", "one")]
    for all_of, any_of, none_of in itertools.islice(itertools.product(groups, repeat=3), 1, None, 3):
        found = sync.files_matching(all_of=all_of, any_of=any_of, none_of=none_of, cwd=folder, **options)
        assert sorted(found) == expected(folder, all_of, any_of, none_of, **options), (all_of, any_of, none_of)


def test_no_pattern_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"^no pattern given; pass all_of=, any_of= or none_of=$") as caught:
        sync.files_matching()
    assert caught.value.args[0].hints == (Hint("all_of"), Hint("any_of"), Hint("none_of"))


def test_a_pattern_that_does_not_compile_is_an_error(plant: Plant) -> None:
    with pytest.raises(PatternError) as raised:
        sync.files_matching(all_of=["long literal", "(b"], cwd=plant({"a": "long literal"}))
    assert raised.value.pattern == "(b"


def test_the_time_limit_is_for_all_searches(plant: Plant) -> None:
    with pytest.raises(TimeoutError):
        sync.files_matching(all_of=["a", "b"], cwd=plant({"a": "ab"}), timeout=0)


@pytest.mark.slow
@pytest.mark.loops("asyncio")
@pytest.mark.anyio
async def test_inverted_patterns_are_searched_one_by_one(plant: Plant, anyio_backend: str) -> None:
    """As if `files_with_matches(invert_match=True)` ran once for each pattern."""
    folder = plant({"a": "a\n", "b": "b\n", "ab": "a\nb\n", "c": "c\n", "both": "a b\n", "empty": ""})
    options: dict[str, Any] = {"cwd": folder, "invert_match": True}
    assert await ripwrap.files_matching(any_of=["a", "b"], **options) == ["a", "ab", "b", "c"]

    @cache
    def single(pattern: str) -> set[str]:
        return set(sync.files_with_matches(pattern, **options))

    everything = {"a", "b", "ab", "c", "both", "empty"}
    for all_of, any_of, none_of in itertools.product(((), ("a",), ("a", "b")), ((), ("b", "c")), ((), ("a", "b"))):
        if not (all_of or any_of or none_of):
            continue
        left = everything.intersection(*map(single, all_of)).difference(*map(single, none_of))
        left &= set[str]().union(*map(single, any_of)) if any_of else everything
        given: dict[str, Any] = {"all_of": all_of, "any_of": any_of, "none_of": none_of}
        assert await ripwrap.files_matching(**given, **options) == sorted(left), given
        assert sync.files_matching(**given, **options) == sorted(left)
        assert sync.files_matching(**given, **options, multiline=True) == sorted(left)


def test_inverted_patterns_are_searched_one_by_one_in_items(plant: Plant) -> None:
    """A neighbour: in places, whose files cannot be named."""
    folder = plant({"c": "c\n"})
    with zipfile.ZipFile(folder / "a.zip", "w") as archive:
        archive.writestr("a", "a\n")
        archive.writestr("both", "a b\n")
    single = {one: set(sync.files_with_matches(one, cwd=folder, inside="zip", invert_match=True)) for one in "ab"}
    assert len(single["a"] | single["b"]) == 2
    assert set(sync.files_matching(any_of=["a", "b"], cwd=folder, inside="zip", invert_match=True)) == (
        single["a"] | single["b"]
    )


WRONG = ["(", "[z-a]", "a{2,1}", "*", r"\p{Nope}", "(?<n>a)(?<n>b)", r"(a)\1", "(?=a)", "[", "a\nb", r"\xZZ"]


@pytest.mark.parametrize(
    ("place", "wrong"),
    [*(("directory", one) for one in WRONG), *(("items", one) for one in WRONG[::5]), ("overlay", "(")],
)
def test_invalid_pattern_is_an_error_whatever_the_others_find(
    rg: RgBinary, plant: Plant, place: str, wrong: str
) -> None:
    """Also if no file is left for it."""
    options: dict[str, Any] = {"cwd": plant({"a": "one\n"}), "rg": rg}
    if place == "items":
        options = {"where": Items([("a", "one\n")]), "rg": rg}
    with ripwrap.overlay({"b": "two\n"} if place == "overlay" else {}, cwd=options.get("cwd", ".")):
        for good in ("zzz", "one")[: 1 + (wrong == "(")]:
            conditions: list[dict[str, Any]] = [
                {"all_of": [good, wrong]},
                {"all_of": [wrong, good]},
                {"all_of": good, "any_of": ["one", wrong]},
                {"all_of": good, "none_of": wrong},
                {"any_of": good, "none_of": ["zzz", wrong]},
                {"none_of": ["one", wrong]},
                {"all_of": good, "none_of": wrong, "invert_match": True},
            ]
            for given in conditions:
                with pytest.raises(PatternError):
                    sync.files_matching(**given, **options)
            for first, other in ((good, wrong), (wrong, good)):
                with pytest.raises(PatternError):
                    sync.grep(first, near=["one", other], **options)


@pytest.mark.parametrize(
    "content", [b"b\nn\0x\n ? two\n", b"b\n\xe9\0x\ntwo\n", b"b\nb\nn\0two\ntwo", b"\0b\ntwo\n", b"b\ntwo\n\0"]
)
@pytest.mark.parametrize("text", [False, True])
def test_binary_text_of_an_overlay_is_searched_as_the_file_is(
    plant: Plant, tmp_path: Path, content: bytes, text: bool
) -> None:
    """The text after a NUL of an overlay was found as in a file that the caller names."""
    folder, empty = plant({"f": content}), tmp_path / "empty"
    empty.mkdir()
    for both, unwanted in ((["."], ["two"]), ([".", "two"], [])):
        wanted = sync.files_matching(all_of=both, none_of=unwanted, cwd=folder, text=text)
        with ripwrap.overlay({"f": content}, cwd=empty):
            assert sync.files_matching(all_of=both, none_of=unwanted, cwd=empty, text=text) == wanted, both
