"""Round-robin selection of matches: the share of each file, and the collector that keeps them."""

import json
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripwrap._operations.pagination import files_round_robin
from ripwrap._ripgrep.page_collector import MAX_NAMED_FILES, PageRequest, RoundRobinCollector, shares
from ripwrap._ripgrep.runner import BlockingRunner, run_blocking
from ripwrap.results import FileMatches

COUNTS = st.lists(st.integers(0, 9), max_size=8)


def one_by_one(counts: Sequence[int], wanted: int) -> list[int]:
    given_ = [0] * len(counts)
    while wanted and given_ != list(counts):
        for place, count in enumerate(counts):
            if wanted and given_[place] < count:
                given_[place] += 1
                wanted -= 1
    return given_


@given(COUNTS, st.integers(0, 60))
def test_shares_equal_a_one_at_a_time_round_robin(counts: list[int], wanted: int) -> None:
    assert shares(counts, wanted) == one_by_one(counts, wanted)


@given(COUNTS, st.integers(0, 8), st.integers(0, 9), st.integers(0, 60))
def test_adding_a_file_enlarges_no_other_share(counts: list[int], place: int, more: int, wanted: int) -> None:
    place = min(place, len(counts))
    after = shares([*counts[:place], more, *counts[place:]], wanted)
    del after[place]
    assert all(now <= before for now, before in zip(after, shares(counts, wanted), strict=True))


def text(value: str) -> dict[str, str]:
    return {"text": value}


def records(files: Sequence[tuple[str, int]]) -> Iterator[bytes]:
    """Yield rg's JSON for files with these match counts, with one context line on each side of a match."""
    for path, count in files:
        yield json.dumps({"type": "begin", "data": {"path": text(path)}}, separators=(",", ":")).encode() + b"\n"
        for line in range(1, 3 * count + 1):
            kind = "match" if line % 3 == 2 else "context"
            data = {
                "path": text(path),
                "lines": text(f"{path}:{line}\n"),
                "line_number": line,
                "absolute_offset": 0,
                "submatches": [],
            }
            yield json.dumps({"type": kind, "data": data}, separators=(",", ":")).encode() + b"\n"
        yield b'{"type":"end","data":{"path":{"text":"x"},"binary_offset":null,"stats":null}}\n'


def collected(files: Sequence[tuple[str, int]], request: PageRequest) -> RoundRobinCollector:
    collector = RoundRobinCollector(request)
    for record in records(files):
        collector.feed(record)
    return collector


def page(files: Sequence[tuple[str, int]], request: PageRequest) -> tuple[FileMatches, ...]:
    return run_blocking(files_round_robin(BlockingRunner(None), request, collected(files, request)))


@pytest.mark.slow
@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 6), max_size=8).map(
        lambda counts: list(counts.items())
    ),
    st.randoms(use_true_random=False),
    st.integers(1, 12),
    st.integers(1, 9),
)
def test_pages_cover_every_match_once_in_any_file_order(
    files: list[tuple[str, int]], order: object, size: int, max_files: int
) -> None:
    reachable = sorted(files)[:max_files]
    everything = {(path, 3 * number + 2) for path, count in reachable for number in range(count)}
    seen: list[tuple[str, int]] = []
    for offset in range(0, 60, size):
        order.shuffle(files)  # type: ignore[attr-defined]
        found = page(files, PageRequest(offset, size, max_files, 1, 1, None))
        assert [file.path for file in found] == [path for path, _ in reachable]
        for file in found:
            for match in file.matches:
                assert match.line_number is not None
                seen.append((file.path, match.line_number))
                around = [line.line_number for line in (*match.before, *match.after)]
                assert around == [match.line_number - 1, match.line_number + 1]
        assert sum(len(file.matches) for file in found) == min(size, max(len(everything) - offset, 0))
    assert len(seen) == len(set(seen))
    assert set(seen) == everything


def test_collector_memory_is_bounded_by_the_page_size() -> None:
    collector = RoundRobinCollector(PageRequest(0, 10, 10**9, 1, 1, None))
    for record in records([(f"{number:05}", 40) for number in range(60)]):
        collector.feed(record)
        assert sum(len(block.records) for block in collector._kept) <= 3 * 3 * 10 + 3
    assert (collector.matches, collector.files) == (2_400, 60)


@pytest.mark.slow
def test_collector_keeps_the_first_file_names_by_path_up_to_a_limit() -> None:
    many = [(f"{number:05}", 1) for number in reversed(range(3 * MAX_NAMED_FILES))]
    named = collected(many, PageRequest(0, 5, 10**9, 0, 0, None)).named()
    assert [one.path for one in named] == [b"%05d" % number for number in range(MAX_NAMED_FILES)]


def test_filtered_files_are_not_counted_or_named() -> None:
    collector = RoundRobinCollector(PageRequest(0, 10, 10, 0, 0, None), lambda path: path != b"b")
    for record in records([("a", 2), ("b", 3), ("c", 1)]):
        collector.feed(record)
    assert (collector.matches, collector.files) == (3, 2)
    assert collector.named() == [(b"a", 2, 1), (b"c", 1, 3)]
    assert [block.path for block in collector.blocks()] == [b"a", b"c"]
