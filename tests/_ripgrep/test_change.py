"""Changes of rg's output: they drop, rename and count the same, however the output is cut into chunks."""

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripwrap._ripgrep.change import Both, Change
from ripwrap._ripgrep.query import Output
from ripwrap.places.inside import Labelled

RECORDED = sorted(Path(__file__).parents[1].joinpath("data").glob("*.jsonl"))
LONG = "x" * 300 + '"path":{"text":"a.py"}\\n{"type":"end"'
"""Text of a line that is longer than the part of a record that a change keeps, and looks like records."""

Records = list[dict[str, Any]]


def a_file(path: str, lines: list[str]) -> Records:
    stats = {"elapsed": {"secs": 0, "nanos": 1, "human": "0s"}, "searches": 1, "searches_with_match": 1}
    stats |= {"bytes_searched": 9, "bytes_printed": 9, "matched_lines": len(lines), "matches": len(lines)}
    found = [
        {
            "type": "match",
            "data": {
                "path": {"text": path},
                "lines": {"text": line + "\n"},
                "line_number": number,
                "absolute_offset": 0,
                "submatches": [],
            },
        }
        for number, line in enumerate(lines, 1)
    ]
    end = {"type": "end", "data": {"path": {"text": path}, "binary_offset": None, "stats": stats}}
    return [{"type": "begin", "data": {"path": {"text": path}}}, *found, end]


def a_search(files: list[Records], unmatched: int) -> Records:
    total = {"elapsed": {"secs": 0, "nanos": 1, "human": "0s"}}
    for name in ("searches", "searches_with_match", "bytes_searched", "bytes_printed", "matched_lines", "matches"):
        total[name] = sum(file[-1]["data"]["stats"][name] for file in files) + unmatched * (name == "searches")
    elapsed = {"secs": 0, "nanos": 1, "human": "0s"}
    return [
        *(record for file in files for record in file),
        {"data": {"elapsed_total": elapsed, "stats": total}, "type": "summary"},
    ]


def output(records: Records) -> bytes:
    return b"".join(
        json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode() + b"\n" for record in records
    )


def read(written: bytes) -> Records:
    return [json.loads(line) for line in written.splitlines()]


def changed(change: Change, written: bytes, cuts: list[int]) -> bytes:
    """Pass the output to a change in pieces, and return the changed output."""
    borders = sorted({0, *(cut % (len(written) + 1) for cut in cuts), len(written)})
    pieces = [written[start:end] for start, end in itertools.pairwise(borders)]
    return b"".join(map(change.feed, pieces)) + change.close()


lines = st.lists(st.sampled_from(["one", LONG, "é" * 150, '{"type":"begin"', ""]), min_size=1, max_size=4)
trees = st.dictionaries(st.sampled_from(["a.py", "b/c.py", "é.py", "d" * 250]), lines, max_size=4)
cuts = st.lists(st.integers(0, 10_000), max_size=30)


@given(trees, st.sets(st.sampled_from(["a.py", "b/c.py", "é.py", "d" * 250, "no match"])), st.integers(0, 3), cuts)
def test_dropped_files_leave_the_output_of_a_search_without_them(
    tree: dict[str, list[str]], drops: set[str], unmatched: int, cuts: list[int]
) -> None:
    files = [a_file(path, found) for path, found in tree.items()]
    without = [file for path, file in zip(tree, files, strict=True) if path not in drops]
    missing = len(drops - tree.keys())
    change = Change("json", drops.__contains__, len(drops))
    written = changed(change, output(a_search(files, unmatched + missing)), cuts)
    assert read(written) == read(output(a_search(without, unmatched)))


@given(trees, cuts)
def test_changes_one_after_the_other_are_those_of_one_pass(tree: dict[str, list[str]], cuts: list[int]) -> None:
    written = output(a_search([a_file(path, found) for path, found in tree.items()], 0))

    def both() -> Iterator[Change]:
        yield Change("json", lambda path: path == "a.py")
        yield Labelled("json", "utf-16le")

    expected = written
    for change in both():
        expected = changed(change, expected, [])
    assert changed(Both(*both()), written, cuts) == expected


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: path.stem)
@given(cuts)
def test_output_that_keeps_all_files_is_unchanged(recorded: Path, cuts: list[int]) -> None:
    written = recorded.read_bytes()
    *records, summary = read(changed(Change("json", lambda path: False), written, cuts))
    *expected, total = read(written)
    assert (records, summary) == (expected, total)


@given(trees, cuts, st.integers(0, 10_000))
def test_output_of_a_killed_rg_ends_where_rg_ended(tree: dict[str, list[str]], cuts: list[int], length: int) -> None:
    written = output(a_search([a_file(path, found) for path, found in tree.items()], 0))[:length]
    kept = changed(Change("json", lambda path: False), written, cuts)
    assert kept == written or (b'"summary"' in kept and read(kept) == read(written))
    assert changed(Change("json", lambda path: True), written, cuts).count(b'"match"') == 0


@pytest.mark.parametrize(
    ("mode", "record"), [("paths", lambda path: f"{path}\0"), ("counts", lambda path: f"{path}\0{len(path)}\n")]
)
@given(st.lists(st.sampled_from(["a.py", "./b/c.py", "é"])), cuts)
def test_dropped_files_leave_listings_and_counts(
    mode: Output, record: Callable[[str], str], paths: list[str], cuts: list[int]
) -> None:
    written = "".join(map(record, paths)).encode()
    kept = changed(Change(mode, lambda path: path == "b/c.py"), written, cuts)
    assert kept == "".join(record(path) for path in paths if path != "./b/c.py").encode()
