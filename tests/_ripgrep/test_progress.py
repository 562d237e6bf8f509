"""Counting rg's output for `on_progress`: in chunks of any size, and with bounded memory."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripwrap import Begin, End, Match, Progress
from ripwrap._ripgrep.decoder import MessageDecoder
from ripwrap._ripgrep.progress import Meter, count_json, count_paths, count_words
from support.outcomes import cut

TRANSCRIPTS = sorted((Path(__file__).parents[1] / "data").glob("*.jsonl"))
ALL = {path.stem: path.read_bytes() for path in TRANSCRIPTS}


def last(meter: Meter, seen: list[Progress]) -> tuple[int, int, int]:
    """End the meter, and return what it reported last."""
    meter.end()
    return seen[-1].files, seen[-1].matches, seen[-1].bytes_searched


@given(st.sampled_from(sorted(ALL)), st.lists(st.integers(1, 9000), min_size=1, max_size=4))
def test_counts_equal_those_of_the_decoded_messages(name: str, sizes: list[int]) -> None:
    messages = list(MessageDecoder().feed(ALL[name]))
    seen: list[Progress] = []
    meter = Meter(seen.append, count_json)
    for chunk in cut(ALL[name], sizes):
        meter.feed(chunk)
    assert last(meter, seen) == (
        sum(isinstance(one, Begin) for one in messages),
        sum(isinstance(one, Match) for one in messages),
        sum(one.stats.bytes_searched for one in messages if isinstance(one, End)),
    )


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_paths_and_words_are_counted(size: int) -> None:
    for output, count, expected in (
        (b"./a\0./b\0./c\0", count_paths, (3, 0, 0)),
        (b"./a\0one\ntwo\n\n./b\0one\n", count_words, (2, 3, 0)),
    ):
        seen: list[Progress] = []
        meter = Meter(seen.append, count)
        for chunk in cut(output, [size]):
            meter.feed(chunk)
        assert last(meter, seen) == expected


def test_long_line_is_counted_without_being_kept() -> None:
    seen: list[Progress] = []
    meter = Meter(seen.append, count_json)
    meter.feed(b'{"type":"begin","data":{}}\n{"type":"match","data":{"lines":{"text":"')
    for _ in range(500):
        meter.feed(b"x" * 65_536)
    meter.feed(b'"}}}\n{"type":"match","data":{}}\n')
    assert last(meter, seen) == (1, 2, 0)
    assert len(vars(meter)["_line"]) < 100_000


def test_second_run_never_reports_less() -> None:
    seen: list[Progress] = []
    meter = Meter(seen.append, count_paths)
    meter.feed(b"a\0b\0c\0")
    meter.end()
    meter.begin_run()
    meter.feed(b"a\0")
    meter.end()
    assert [one.files for one in seen] == [3, 3]
    assert seen[0].elapsed <= seen[1].elapsed


def test_limit_bounds_the_reported_matches() -> None:
    seen: list[Progress] = []
    meter = Meter(seen.append, count_json, limit=1)
    meter.feed(b'{"type":"match"}\n{"type":"match"}\n')
    assert last(meter, seen) == (0, 1, 0)
