"""Items of one name, such as two members of a zip or two versions of a file, are different files in every operation."""

import io
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ripwrap
from ripwrap import Rule, sync
from ripwrap.places import Detected, Inside, Items, Part, Plan
from support.effort import times

pytestmark = pytest.mark.usefixtures("leaks_nothing")

Pairs = Sequence[tuple[str, str]]
FEW = {"a": "tok_a+", "b": "tok_b+"}
MANY = [Rule(id=f"r{number}", pattern=f"zzqx{number:02}[a-z]") for number in range(20)]
"""Rules with rare literals, which a scan for many rules searches in a run of their own."""

RULES: dict[str, Any] = {
    "one run": FEW,
    "two runs": [*MANY, Rule(id="digits", pattern="[0-9]{3}"), *(Rule(id=name, pattern=FEW[name]) for name in FEW)],
    "a run for each rule": [Rule(id="lines", pattern=r"tok_a+\ntok", multiline=True), *MANY[:2], *(
        Rule(id=name, pattern=FEW[name]) for name in FEW)],
    "keywords": [Rule(id="key", pattern=r"key=(\S+)", keywords=("pass",)), Rule(id="b", pattern=FEW["b"])],
    "names": [Rule(id="name", path="a$"), Rule(id="a", pattern=FEW["a"])],
}  # fmt: skip
LINES = ["tok_aaaa\n", "tok_bb tok_a\n", "zzqx01a 123\n", "zzqx02b\n", "key=1\n", "pass\n", "456\n", "hay\n"]


SEVERAL: Pairs = [
    ("a", "tok_aaaa\nkey=1\n"), ("a", "tok_bbbb\npass\n"), ("b", "zzqx01a 123\n"), ("a", "123 4\nzzqx02b\n"),
    ("a", "tok_aaaa\ntok_b\nkey=2\npass\n"), ("b", "hay\n"),
]  # fmt: skip


@pytest.fixture(params=["items", "members", "members of an item", "detected", "two places in one"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Pairs], dict[str, Any]]:
    """Return a function that takes pairs of a name and a text, and returns the options with which they are searched."""

    def made(pairs: Pairs) -> dict[str, Any]:
        match request.param:
            case "members":
                (tmp_path / "x.zip").write_bytes(zipped(pairs))
                return {"cwd": tmp_path, "inside": "zip"}
            case "members of an item":
                return {"where": Inside(Items([("x.zip", zipped(pairs))]), "zip")}
            case "detected":
                return {"where": Detected(Items(pairs))}
            case "two places in one":
                half = len(pairs) // 2
                return {"where": Several([Items(pairs[:half]), Items(pairs[half:])])}
            case _:
                return {"where": Items(pairs)}

    return made


@dataclass
class Several:
    """Place of a caller that has the files of several places."""

    places: Sequence[Any]

    async def plan(self, query: Any, run: Any, seconds: float | None) -> Plan:
        return Plan([Part(replace(query, place=one)) for one in self.places])


@pytest.mark.filterwarnings("ignore:Duplicate name")
def zipped(pairs: Pairs) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in pairs:
            archive.writestr(name, text)
    return packed.getvalue()


def plain(path: str | None) -> str:
    return (path or "").removeprefix("x.zip!/")


def scanned(rules: Any, options: dict[str, Any], *, overlaps: bool) -> list[tuple[str, str, int, str]]:
    return sorted(
        (plain(one.path), one.rule, one.absolute_offset + one.submatches[0].start, one.submatches[0].match)
        for one in sync.scan(rules, overlaps=overlaps, **options)
        if one.path != "x.zip"
    )


def one_by_one(rules: Any, pairs: Pairs, *, overlaps: bool) -> list[tuple[str, str, int, str]]:
    """Return what scans of each item by itself find."""
    return sorted(hit for pair in pairs for hit in scanned(rules, {"where": Items([pair])}, overlaps=overlaps))


@cache
def found_apart(kind: str, *, overlaps: bool) -> list[tuple[str, str, int, str]]:
    return one_by_one(RULES[kind], SEVERAL, overlaps=overlaps)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("kind", RULES)
def test_scan_tells_items_of_one_name_apart(kind: str, place: Callable[[Pairs], dict[str, Any]]) -> None:
    """Of two items named `a`, with `tok_aaaa` and `tok_bbbb`, the scan finds both texts."""
    for overlaps in (False, True):
        expected = found_apart(kind, overlaps=overlaps)
        assert expected
        assert scanned(RULES[kind], place(SEVERAL), overlaps=overlaps) == expected


@pytest.mark.slow
@settings(max_examples=times(6, 300), deadline=None)
@given(
    kind=st.sampled_from(list(RULES)),
    pairs=st.lists(st.tuples(st.sampled_from(["a", "b"]), st.lists(st.sampled_from(LINES), max_size=4).map("".join))),
    overlaps=st.booleans(),
)
def test_any_items_are_scanned_as_if_each_was_alone(kind: str, pairs: Pairs, *, overlaps: bool) -> None:
    assert scanned(RULES[kind], {"where": Items(pairs)}, overlaps=overlaps) == one_by_one(
        RULES[kind], pairs, overlaps=overlaps
    )


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_patterns_that_are_near_are_in_one_item(place: Callable[[Pairs], dict[str, Any]]) -> None:
    """`grep(near=)` takes no line of another item of the same name."""
    apart = place([("a", "tok\n"), ("a", "near\n"), ("b", "near\n"), ("b", "tok\n")])
    assert not sync.grep("tok", near="near", **apart)
    found = sync.grep(
        "tok", near="near", context=0, **place([("a", "tok 1\n"), ("a", "tok 2\nnear\n"), ("b", "near\n")])
    )
    assert [(plain(match.path), match.text) for match in found.matches] == [("a", "tok 2")]
    assert [plain(file.path) for file in found.files] == ["a"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_patterns_of_files_matching_are_in_one_item(place: Callable[[Pairs], dict[str, Any]]) -> None:
    """`files_matching()` lists each item whose own text meets the conditions."""
    pairs = [("a", "tok\n"), ("a", "near\n"), ("b", "tok near\n"), ("c", "near\n")]

    def matching(**conditions: Any) -> list[str]:
        return [plain(path) for path in sync.files_matching(**conditions, **place(pairs)) if path != "x.zip"]

    assert matching(all_of=["tok", "near"]) == ["b"]
    assert matching(all_of="tok", none_of="near") == ["a"]
    assert matching(any_of=["tok", "near"]) == ["a", "a", "b", "c"]


@pytest.mark.anyio
async def test_async_scan_tells_items_of_one_name_apart() -> None:
    hits = [hit async for hit in ripwrap.scan(FEW, where=Items([("a", "tok_a\n"), ("a", "tok_b\n")]))]
    assert [(hit.path, hit.rule) for hit in hits] == [("a", "a"), ("a", "b")]
    assert [hit async for hit in ripwrap.scan(FEW, limit=1, where=Items([("a", "tok_a\n"), ("a", "tok_b\n")]))] == hits[
        :1
    ]


def test_iterator_is_not_read_twice_in_silence() -> None:
    """Operations that search several times raise an error if the items can be read only once; scan() lost secrets."""
    pairs = [("a", "key=1\n"), ("b", "x\npass\nkey=3\n")]
    operations: list[Callable[[Any], Any]] = [
        lambda where: list(sync.scan(RULES["keywords"], where=where)),
        lambda where: list(sync.scan({"one": "key", "two": "(?x) k e y"}, where=where)),
        lambda where: sync.grep("key", near="pass", where=where),
        lambda where: sync.files_matching(all_of=["key", "pass"], where=where),
    ]
    for operation in operations:
        assert operation(Items(pairs))
        with pytest.raises(ValueError, match=r"^the items are an iterator, .* pass a list$"):
            operation(Items(iter(pairs)))
    assert [hit.path for hit in sync.scan(FEW, where=Items(iter([("a", "tok_a"), ("a", "tok_b")])))] == ["a", "a"]
