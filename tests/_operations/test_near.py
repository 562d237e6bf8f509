"""Matches that are near matches of other patterns: `grep(near=…, within=…)`."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import ripwrap
from ripwrap import GrepResult, PatternError, sync
from ripwrap._operations.grep import grep_request, hidden_matches
from ripwrap._operations.near import LineNumberCollector, NearCollector, near_condition
from ripwrap._ripgrep.page_collector import PageRequest
from ripwrap._ripgrep.protocols import Step
from ripwrap._ripgrep.runner import BlockingRunner, C, run_blocking
from ripwrap.binary import RgBinary
from support.effort import times

Plant = Callable[..., Path]
pytestmark = pytest.mark.usefixtures("leaks_nothing")

TEXT = "retry\n2\n3\ntimeout\n5\n6\nretry timeout\n8\n9\n10\nretry\n12\ncancel\n"


def numbers(result: GrepResult) -> list[tuple[str, list[int], int, list[int]]]:
    return [
        (
            file.path,
            [line.line_number or 0 for line in match.before],
            match.line_number or 0,
            [line.line_number or 0 for line in match.after],
        )
        for file in result.files
        for match in file.matches
    ]


def found(folder: Path, near: "str | Sequence[str]", within: int, **options: Any) -> list[int]:
    return [line for _, _, line, _ in numbers(sync.grep("retry", cwd=folder, near=near, within=within, **options))]


@pytest.mark.slow
@pytest.mark.rg_ends
def test_lines_that_have_the_other_pattern_within_the_distance(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"f": TEXT, "none": "retry\nretry\n", "other": "timeout\n"})
    assert found(folder, "timeout", 3, rg=rg) == [1, 7]
    assert found(folder, "timeout", 0, rg=rg) == [7]
    assert found(folder, "timeout", 4, rg=rg) == [1, 7, 11]
    assert found(folder, "CANCEL", 2, rg=rg, ignore_case=True) == [11]
    assert found(folder, ["timeout", "cancel"], 4, rg=rg) == [11]
    assert found(folder, ["timeout", "cancel"], 2**70, rg=rg) == [1, 7, 11]
    assert found(folder, "retry", 0, rg=rg) == [1, 7, 11, 1, 2]


@pytest.mark.anyio
async def test_result_and_message_count_only_the_near_matches(plant: Plant) -> None:
    folder = plant({"f": TEXT, "g": TEXT, "h": "retry\n"})
    result = await ripwrap.grep("retry", cwd=folder, near="timeout", within=3, limit=3, context=1)
    assert result == sync.grep("retry", cwd=folder, near="timeout", within=3, limit=3, context=1)
    assert (result.total_matches, result.files_matched, result.next_offset) == (4, 2, 3)
    assert result.message == "Matches 1 to 3 of 4 matches in 2 files; offset=3 gives the next."
    assert numbers(result)[:2] == [("f", [], 1, [2]), ("f", [6], 7, [8])]
    assert result.query == "retry"


def reference(folder: Path, near: Sequence[str], within: int, page: dict[str, Any]) -> tuple[Any, ...]:
    """Return page and counts, from the numbers of lines of one search for each pattern."""

    def lines(pattern: str) -> dict[str, list[int]]:
        known: dict[str, list[int]] = {}
        for match in sync.search(pattern, cwd=folder, sort="path"):
            known.setdefault(match.path or "", []).append(match.line_number or 0)
        return known

    others = list(map(lines, near))
    kept: dict[str, list[int]] = {}
    for path, own in lines("a").items():
        close = [n for n in own if all(any(abs(n - m) <= within for m in one.get(path, ())) for one in others)]
        if close[: page["max_count"]]:
            kept[path] = close[: page["max_count"]]
    every = [(path, number) for path, own in kept.items() for number in own]
    shown = every[page["offset"] :][: page["limit"]]
    files = list(dict.fromkeys(path for path, _ in shown))[: page["max_files"]]
    before, after = page["before_context"], page["after_context"]
    expected: list[tuple[str, list[int], int, list[int]]] = []
    for path in files:
        last = len((folder / path).read_bytes().splitlines())
        own = [number for name, number in shown if name == path]
        free = 1  # the first line that is not part of the match before
        for at, number in enumerate(own):
            head = list(range(max(free, number - before), number))
            end = min(number + after, own[at + 1] - 1 if at + 1 < len(own) else last, last)
            expected.append((path, head, number, list(range(number + 1, end + 1))))
            free = end + 1
    return expected, len(every), len(kept), {path: len(kept[path]) for path in files}


@pytest.mark.slow
def test_generated_pages_equal_a_slow_reference(plant: Plant) -> None:
    for seed in range(times(3, 500)):
        draw = random.Random(seed)
        text = [["a", "b", "c", "a b", "c a", "x", "", "é"][draw.randrange(8)] for _ in range(400)]
        folder = plant(
            {
                f"{seed}/{number % 3}/{number}": draw.choice(["\n", "\r\n"]).join(
                    line if draw.random() < 0.5 else "x" for line in text[: draw.randint(0, 60)]
                )
                for number in range(8)
            }
        ) / str(seed)
        near = draw.choice([["b"], ["b"], ["b", "c"], ["é", "b|c"], ["a"]])
        within = draw.choice([0, 1, 2, 5, 100])
        page: dict[str, Any] = {
            "offset": draw.choice([0, 0, 0, 3, 20]),
            "limit": draw.choice([None, None, 1, 7, 30]),
            "max_files": draw.choice([None, None, 1, 3]),
            "max_count": draw.choice([None, None, 2]),
            "before_context": draw.choice([0, 1, 3]),
            "after_context": draw.choice([0, 1, 3]),
        }
        options: dict[str, Any] = {
            name: value for name, value in page.items() if name != "max_count" or value is not None
        }
        result = sync.grep("a", cwd=folder, near=near, within=within, **options)
        expected = reference(folder, near, within, page)
        counts = {file.path: file.total_matches for file in result.files}
        assert (numbers(result), result.total_matches, result.files_matched, counts) == expected, seed


def test_matches_that_are_not_near_are_not_held_in_memory() -> None:
    """A page of a file with many matches, of which two are near, has only these and their context."""

    def record(kind: str, number: int) -> bytes:
        path = b'{"path":{"text":"f"}'
        return b'{"type":"%b","data":%b,"lines":{"text":"x\\n"},"line_number":%d}}\n' % (kind.encode(), path, number)

    begin = b'{"type":"begin","data":{"path":{"text":"f"}}}\n'
    other = LineNumberCollector()
    other.feed(begin + record("match", 50) + record("match", 9_000))
    page = PageRequest(offset=0, max_matches=10, max_files=10, before=2, after=1, max_count=None)
    collector = NearCollector(page, [other], 0)
    collector.feed(begin + b"".join(record("match", number) for number in range(1, 10_000)))
    (block,) = collector.blocks()
    assert (collector.matches, collector.far, len(block.records)) == (2, 9_997, 2 * (1 + 2 + 1) + 2)


@pytest.mark.parametrize("option", ["invert_match", "multiline", "no_line_number", "stop_on_nonmatch"])
def test_options_without_a_meaning_are_refused(plant: Plant, option: str) -> None:
    options: dict[str, Any] = {option: True}
    with pytest.raises(ValueError, match=rf"{option} cannot be combined with near: .*leave one of them out"):
        sync.grep("a", cwd=plant({}), near="b", **options)


def test_bad_arguments_are_clear_errors(plant: Plant) -> None:
    folder = plant({"f": "a\n"})
    with pytest.raises(PatternError) as raised:
        sync.grep("a", cwd=folder, near="(b")
    assert raised.value.pattern == "(b"
    with pytest.raises(ValueError, match="within must be 0 or more"):
        sync.grep("a", cwd=folder, near="b", within=-1)
    for wrong in ({"within": None}, {"near": [1]}):
        given: dict[str, Any] = {"near": "b", **wrong}
        with pytest.raises(TypeError, match=r"within must be an int, got None|a pattern must be a str, got int"):
            sync.grep("a", cwd=folder, **given)
    with pytest.raises(ValueError, match="NUL"):
        sync.grep("a", cwd=folder, near="b\0")


@pytest.mark.slow
def test_explain_says_what_there_would_be_without_near(plant: Plant) -> None:
    folder = plant({"f": TEXT, ".hidden": TEXT})

    def message(pattern: str, near: str, **options: Any) -> str:
        return sync.grep(pattern, cwd=folder, near=near, within=1, explain=True, hidden=False, **options).message

    assert message("retry", "no") == "No matches found. There would be 3 matches without near."
    assert "if case is ignored (ignore_case=True; without near), first in f" in message("RETRY", "no")
    assert message("retry", "timeout") == "1 match in 1 file. 1 more match in hidden files (hidden=True)."


@pytest.mark.slow
def test_searches_in_hidden_files_share_one_time_limit(plant: Plant, stand_in: Callable[..., Path]) -> None:
    limits: list[float | None] = []

    class RecordingRunner(BlockingRunner):
        async def collect(self, step: Step[C]) -> C:
            limits.append(step.timeout)
            return await super().collect(step)

    near = near_condition(["b", "c"], 1, {})
    request = grep_request("a", plant({}), (), None, None, 0, None, {"hidden": False}, explain=True, near=near)
    run = RecordingRunner(stand_in("time.sleep(FOR_EVER)"))
    assert run_blocking(hidden_matches(run, request, 1, seconds=0.5)) == ""
    first, *others = limits
    assert first is not None and 0 < first <= 0.5
    assert others == [0, 0]


def test_a_search_that_is_stopped_is_not_exact(plant: Plant, stand_in: Callable[..., Path]) -> None:
    """The search for the other pattern takes too long, so matches are missing."""
    rg = stand_in("if '--regexp=slow' in sys.argv: time.sleep(FOR_EVER)\nsay(BEGIN)\nsay(MATCH)\nsay(SUMMARY)")
    result = sync.grep("a", cwd=plant({}), near="slow", rg=rg, timeout=0.1)
    assert (result.exact, result.truncated, result.stop_reason) == (False, True, "timeout")
