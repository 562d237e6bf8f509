"""Collected results of `grep()`, with every rg: path order, exact counts, pages, context, timeouts and diagnosis."""

import itertools
import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

import ripwrap
from ripwrap import DecodeError, GrepResult, Match, PatternError, SearchError, UnknownTypeError, sync
from ripwrap._operations import pagination as _page
from ripwrap._operations.grep import explanation, grep_request
from ripwrap._ripgrep.page_collector import PageCollector, PageRequest, path_order
from ripwrap._ripgrep.runner import BlockingRunner, run_blocking
from ripwrap.binary import RgBinary
from support import rgs
from support.effort import times
from support.paths import native
from support.waiting import TIMEOUTS, counting_checkpoints

Plant = Callable[..., Path]
pytestmark = pytest.mark.usefixtures("leaks_nothing")


def places(result: GrepResult) -> list[tuple[str, int | None]]:
    return [(file.path, match.line_number) for file in result.files for match in file.matches]


@pytest.fixture
def corpus(plant: Plant) -> Path:
    """Files with 1, 2, 3, … matches, whose order by path components differs from their order by characters."""
    names = ["a/b.txt", "a.txt", "a-b/c.txt", "a/b/c.txt", "B.txt", "a/b-c.txt", ".hidden", "z/é.txt", "z/z.txt"]
    return plant({name: "needle\nother\n" * number for number, name in enumerate(names, 1)})


@pytest.mark.rg_ends
@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.fact(22)
async def test_grep_orders_files_by_path_and_matches_by_line(rg: RgBinary, corpus: Path, anyio_backend: str) -> None:
    result = await ripwrap.grep("needle", cwd=corpus, rg=rg)
    argv = [rg.path, "--no-config", "--hidden", "--sort=path", "-n", "--no-heading", "needle", "."]
    done = subprocess.run(argv, cwd=corpus, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", check=True)
    raw = [line.split(":")[:2] for line in done.stdout.splitlines()]
    if rg.version >= (14,):  # rg 13 sorts paths as strings
        assert [[native("./") + path, str(line)] for path, line in places(result)] == raw
    assert sorted([native("./") + path, str(line)] for path, line in places(result)) == sorted(raw)
    assert result == sync.grep("needle", cwd=corpus, rg=rg)
    assert (result.total_matches, result.files_matched) == (45, 9)
    assert (result.exact, result.truncated, result.next_offset, result.stop_reason) == (True, False, None, "end")
    assert result.message == "45 matches in 9 files."
    assert result.root == str(corpus) and result.query == "needle"
    assert [file.total_matches for file in result.files] == [len(file.matches) for file in result.files]


@pytest.mark.slow
def test_message_says_which_matches_are_shown_of_how_many(rg: RgBinary, corpus: Path) -> None:
    def message(**options: Any) -> str:
        return sync.grep("needle", cwd=corpus, rg=rg, **options).message

    assert message(limit=5) == "Matches 1 to 5 of 45 matches in 9 files; offset=5 gives the next."
    assert message(limit=5, offset=40) == "Matches 41 to 45 of 45 matches in 9 files."
    assert message(limit=0) == "45 matches in 9 files, none of them shown."
    assert message(offset=45) == "45 matches in 9 files, none of them shown from offset=45 on."
    assert message(glob="a.txt") == "2 matches in 1 file."
    assert message(glob="none") == "No matches found."


@pytest.mark.slow
def test_stop_reason_says_why_a_page_ends(rg: RgBinary, corpus: Path) -> None:
    def reason(**options: Any) -> tuple[str, bool]:
        result = sync.grep("needle", cwd=corpus, rg=rg, **options)
        return result.stop_reason, result.truncated

    assert reason(limit=45) == ("end", False)
    assert reason(limit=44) == ("limit", True)
    assert reason(limit=0) == ("limit", True)
    assert reason(limit=0, glob="none") == ("end", False)
    assert reason(max_files=9) == ("end", False)
    assert reason(max_files=8) == ("max_files", True)
    assert reason(max_files=0) == ("max_files", True)
    assert reason(offset=100) == ("end", False)


@pytest.mark.fact(18)
@pytest.mark.fact(19)
def test_max_count_applies_per_file_and_limits_total_matches(rg: RgBinary, corpus: Path) -> None:
    result = sync.grep("needle", cwd=corpus, rg=rg, max_count=2, context=0)
    assert (result.total_matches, result.files_matched) == (17, 9)
    # rg reports matching lines in the context after the last match as matches (rg-facts 18).
    (file,) = sync.grep("needle", cwd=corpus, rg=rg, max_count=1, glob="B.txt", context=3).files
    (match,) = file.matches
    assert [(line.type, line.text, line.submatches) for line in match.after] == [
        ("context", "other", ()),
        ("context", "needle", ()),
        ("context", "other", ()),
    ]
    result = sync.grep("needle", cwd=corpus, rg=rg, max_count=0)
    assert (result.total_matches, result.exact) == (0, True)


def numbers(result: GrepResult) -> list[tuple[list[int | None], int | None, list[int | None]]]:
    return [
        ([line.line_number for line in match.before], match.line_number, [line.line_number for line in match.after])
        for file in result.files
        for match in file.matches
    ]


@pytest.fixture
def lines(plant: Plant) -> Path:
    """Lines 1 to 30, of which 5, 6, 9, 14 and 30 match."""
    text = "".join("needle\n" if number in (5, 6, 9, 14, 30) else f"{number}\n" for number in range(1, 31))
    return plant({"f": text})


class TestContext:
    def test_context_is_two_lines_by_default(self, rg: RgBinary, lines: Path) -> None:
        assert numbers(sync.grep("needle", cwd=lines, rg=rg)) == [
            ([3, 4], 5, []),
            ([], 6, [7, 8]),
            ([], 9, [10, 11]),
            ([12, 13], 14, [15, 16]),
            ([28, 29], 30, []),
        ]
        assert numbers(sync.grep("needle", cwd=lines, rg=rg, context=0)) == [
            ([], number, []) for number in (5, 6, 9, 14, 30)
        ]

    def test_shared_context_belongs_to_the_first_match(self, rg: RgBinary, lines: Path) -> None:
        assert numbers(sync.grep("needle", cwd=lines, rg=rg, context=3))[2:4] == [
            ([], 9, [10, 11, 12]),
            ([13], 14, [15, 16, 17]),
        ]

    def test_context_can_be_before_or_after_only(self, rg: RgBinary, lines: Path) -> None:
        before = numbers(sync.grep("needle", cwd=lines, rg=rg, before_context=2))
        assert before == [([3, 4], 5, []), ([], 6, []), ([7, 8], 9, []), ([12, 13], 14, []), ([28, 29], 30, [])]
        after = numbers(sync.grep("needle", cwd=lines, rg=rg, after_context=1, context=0))
        assert after == [([], 5, []), ([], 6, [7]), ([], 9, [10]), ([], 14, [15]), ([], 30, [])]

    def test_context_of_a_page_does_not_depend_on_other_pages(self, rg: RgBinary, lines: Path) -> None:
        whole = numbers(sync.grep("needle", cwd=lines, rg=rg))
        for offset in range(5):
            page = sync.grep("needle", cwd=lines, rg=rg, offset=offset, limit=1)
            ((before, line, after),) = numbers(page)
            assert line is not None and line == whole[offset][1]
            assert before == [line - 2, line - 1]
            assert after == [number for number in (line + 1, line + 2) if number <= 30]
            assert {one.type for one in page.files[0].lines()} == {"match", "context"}
            assert len([one for one in page.files[0].lines() if one.submatches]) == 1

    def test_passthru_raises_and_names_search_messages(self, rg: RgBinary, lines: Path) -> None:
        with pytest.raises(ValueError, match=r"search_messages\(\)"):
            sync.grep("needle", cwd=lines, rg=rg, passthru=True)
        assert numbers(sync.grep("needle", cwd=lines, rg=rg, passthru=False))[0] == ([3, 4], 5, [])

    def test_before_and_after_context_override_context(self, rg: RgBinary, lines: Path) -> None:
        """rg 13 ignores `--context` if one side is given."""
        result = numbers(sync.grep("needle", cwd=lines, rg=rg, context=2, before_context=1))
        assert result == [([4], 5, []), ([], 6, [7, 8]), ([], 9, [10, 11]), ([13], 14, [15, 16]), ([29], 30, [])]
        result = numbers(sync.grep("needle", cwd=lines, rg=rg, context=2, after_context=1))
        assert result[2:4] == [([8], 9, [10]), ([12, 13], 14, [15])]

    def test_context_works_without_line_numbers_and_in_multiline_mode(self, rg: RgBinary, lines: Path) -> None:
        result = sync.grep("needle", cwd=lines, rg=rg, no_line_number=True)
        assert [[line.text for line in match.before] for match in result.files[0].matches][3] == ["12", "13"]
        multiline = numbers(sync.grep(r"needle\nneedle", cwd=lines, rg=rg, multiline=True, context=1))
        assert multiline == [([4], 5, [7])]

    def test_context_of_an_inverted_search_is_the_matching_lines(self, rg: RgBinary, lines: Path) -> None:
        result = sync.grep("[0-9]", cwd=lines, rg=rg, invert_match=True, context=1)
        assert [line for _, line, _ in numbers(result)] == [5, 6, 9, 14, 30]
        assert [context.text for context in result.files[0].matches[0].before] == ["4"]


@pytest.mark.loops("asyncio")
@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("shape", [{"one": 2000}, {f"d{n % 10}/f{n}": 20 for n in range(100)}])
async def test_grep_counts_all_matches_and_decodes_only_the_page(
    newest: RgBinary, plant: Plant, stand_in: Plant, tmp_path: Path, shape: dict[str, int], anyio_backend: str
) -> None:
    """Break the records of rg that are not on the first page; decoding one of them would raise."""
    folder = plant({name: "a needle in a line\n" * number for name, number in shape.items()})
    command = [newest.path, "--json", "--sort=path", "needle", "."]
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    matches = itertools.count(1)
    on_page = 100 + 2 * ("one" in shape)  # the two more are context after the last match
    with (tmp_path / "output").open("wb") as output:
        for record in done.stdout.splitlines(keepends=True):
            broken = record.startswith(b'{"type":"match"') and next(matches) > on_page
            output.write(record.replace(b'"lines"', b'"other"') if broken else record)
    broken_rg = stand_in(f"pour(open({str(tmp_path / 'output')!r}, 'rb').read(), 1)")
    result = await ripwrap.grep("needle", cwd=folder, rg=broken_rg, limit=100, timeout=None)
    assert (result.total_matches, result.files_matched, result.exact) == (2000, len(shape), True)
    assert sum(len(file.matches) for file in result.files) == 100
    assert result.message.startswith(f"Matches 1 to 100 of 2000 matches in {len(shape)} file")
    with pytest.raises(DecodeError):
        await ripwrap.grep("needle", cwd=folder, rg=broken_rg, limit=101, timeout=None)


blocks = st.dictionaries(st.sampled_from(["a", "a/b", "a-b", "a/c", "b", "c/d/e", "é"]), st.integers(0, 5), max_size=7)


@pytest.mark.slow
@given(blocks, st.integers(0, 12), st.sampled_from([0, 1, 2, 9]), st.randoms(use_true_random=False), st.integers(1, 50))
def test_page_has_the_first_matches_by_path_in_any_order_of_files(
    files: dict[str, int], wanted: int, most: int, random: Any, size: int
) -> None:
    order = list(files)
    random.shuffle(order)
    written = "".join(
        f'{{"type":"begin","data":{{"path":{{"text":"./{path}"}}}}}}\n'
        + "".join(f'{{"type":"match","data":"{path} {number}"}}\n' for number in range(files[path]))
        + f'{{"type":"end","data":"{path}"}}\n'
        for path in order
    ).encode()
    collector = PageCollector(
        PageRequest(offset=0, max_matches=wanted, max_files=most, before=0, after=0, max_count=None)
    )
    most_held = 0
    for start in range(0, len(written), size):
        collector.feed(written[start : start + size])
        most_held = max(
            most_held, sum(len(block.records) for block in [*collector._kept, *filter(None, [collector._block])])
        )
    kept = [record.decode().split('"')[-2] for block in collector.blocks() for _, record in block.records]
    by_path = sorted(files, key=lambda path: path_order(path.encode()))
    everything = [f"{path} {number}" for path in by_path for number in range(files[path])]
    shown = [path for path in by_path if files[path]][:most]
    page = [one for one in everything if one.rpartition(" ")[0] in shown][:wanted]
    assert kept[: len(page)] == page
    assert most_held <= 3 * wanted
    assert len({one.rpartition(" ")[0] for one in kept}) <= most
    assert collector.matches == len(everything)
    assert collector.files == sum(number > 0 for number in files.values())


def test_dropped_lines_are_in_the_order_of_paths() -> None:
    """The order in which rg's threads write files must not show: the message names the first of them."""
    collector = PageCollector(PageRequest(0, 1, 1, 0, 0, None), max_record=60)
    for path in ("b", "a/b", "a-b", "b"):
        name, line = json.dumps(native(f"./{path}")), "x" * 60
        collector.feed(f'{{"type":"match","data":{{"path":{{"text":{name}}},"lines":"{line}"}}}}\n'.encode())
    assert [*collector.dropped.items()] == [(native("a/b"), 1), ("a-b", 1), ("b", 2)]


@pytest.mark.slow
def test_malformed_message_raises(stand_in: Callable[..., Path], folder: Path) -> None:
    for body in (
        "print('junk')",
        """print('{"type":"begin","data":{"path":1}}')""",
        """print('{"type":1,"data":{}}')""",
    ):
        with pytest.raises(DecodeError):
            sync.grep("x", cwd=folder, rg=stand_in(body))


TWO_THEN_SILENT = """
    LINE = '{"path":{"text":"./b"},"lines":{"text":"x"},"line_number":%d,"absolute_offset":0,"submatches":[]}'
    print('{"type":"begin","data":{"path":{"text":"./b"}}}')
    print('{"type":"match","data":' + LINE % 1 + '}')
    print('{"type":"match","data":' + LINE % 2 + '}', flush=True)
    print("rg: ./gone: No such file or directory (os error 2)", file=sys.stderr, flush=True)
    time.sleep(60)
"""


@pytest.mark.slow
@pytest.mark.anyio
async def test_timeout_keeps_partial_results(stand_in: Callable[..., Path], folder: Path, anyio_backend: str) -> None:
    rg = stand_in(TWO_THEN_SILENT)
    for timeout in TIMEOUTS:
        result = await ripwrap.grep("x", cwd=folder, rg=rg, timeout=timeout, limit=1)
        blocking = sync.grep("x", cwd=folder, rg=rg, timeout=timeout, limit=1)
        if result.errors and blocking.errors:
            break
    assert places(result) == [("b", 1)]
    assert (result.total_matches, result.files_matched, result.exact) == (2, 1, False)
    assert (result.truncated, result.next_offset, result.stop_reason) == (True, None, "timeout")
    assert [error.path for error in result.errors] == ["gone"]
    assert result.message == (
        f"Matches 1 to 1 of at least 2 matches in 1 file. The search was stopped after {timeout:g} seconds; narrow it, "
        "or allow more time. 1 path could not be read, the first: gone: No such file or directory (os error 2)."
    )
    assert result == blocking


@pytest.mark.posix
@pytest.mark.parametrize(("timeout", "says"), [(0.3, "0.3 seconds"), (1, "1 second")])
def test_empty_answer_names_the_timeout(rg: RgBinary, folder: Path, timeout: float, says: str) -> None:
    """`No matches found.` beside a timeout looks like a zero."""
    os.mkfifo(folder / "fifo")
    result = sync.grep("x", cwd=folder, paths="fifo", rg=rg, timeout=timeout, explain=True)
    assert result.message == f"No matches found within {says}. Narrow the search, or allow more time."
    assert (result.exact, result.stop_reason) == (False, "timeout")


@pytest.mark.posix
def test_timeout_of_zero_gives_a_truncated_result(rg: RgBinary, corpus: Path) -> None:
    os.mkfifo(corpus / "fifo")  # without it, rg may end before the timeout is checked
    result = sync.grep("needle", cwd=corpus, paths=[".", "fifo"], rg=rg, timeout=0)
    assert not result.exact and result.truncated and result.stop_reason == "timeout"


@pytest.mark.rg_ends
@pytest.mark.slow
@pytest.mark.anyio
async def test_grep_raises_the_same_errors_as_search(rg: RgBinary, folder: Path, anyio_backend: str) -> None:
    with pytest.raises(PatternError):
        await ripwrap.grep("(", cwd=folder, rg=rg)
    with pytest.raises(UnknownTypeError, match="Did you mean") as caught:
        await ripwrap.grep("x", cwd=folder, rg=rg, type="pyt")
    assert "py" in caught.value.suggestions
    with pytest.raises(UnknownTypeError, match="Did you mean"):
        sync.grep("x", cwd=folder, rg=rg, type="pyt")
    with pytest.raises(FileNotFoundError, match="cwd does not exist"):
        await ripwrap.grep("x", cwd=folder / "none", rg=rg)


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        ({"limit": -1}, ValueError, "limit must be 0 or more"),
        ({"max_files": -1}, ValueError, "max_files must be 0 or more"),
        ({"offset": -1}, ValueError, "offset must be 0 or more, got -1"),
        ({"offset": None}, TypeError, "offset must be an int, got None"),
        ({"limit": "1"}, TypeError, "limit must be an int"),
        ({"timeout": -1}, ValueError, "timeout must be 0 seconds or more"),
        ({"timeout": "1"}, TypeError, "timeout must be a number"),
        ({"max_cuont": 1}, ValidationError, "max_cuont"),
    ],
)
def test_error_names_the_invalid_argument(folder: Path, wrong: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        sync.grep("x", cwd=folder, rg=folder / "none", **wrong)


def test_error_names_the_type_of_an_invalid_pattern(folder: Path) -> None:
    with pytest.raises(TypeError, match="a pattern must be a str, got bytes"):
        sync.grep(b"x", cwd=folder)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a pattern must be a str or a sequence of str, got int"):
        sync.grep(5, cwd=folder)  # type: ignore[arg-type]
    for compiled in (re.compile("x"), ["x", re.compile("x")]):
        with pytest.raises(TypeError, match=r"got Pattern; pass its \.pattern, and its flags as options"):
            sync.grep(compiled, cwd=folder)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no pattern"):
        sync.grep([], cwd=folder)


@pytest.mark.slow
def test_rg_that_dies_raises_and_gives_no_result(stand_in: Callable[..., Path], folder: Path) -> None:
    with pytest.raises(SearchError, match="killed by signal 9"):
        sync.grep("x", cwd=folder, rg=stand_in("os.kill(os.getpid(), 9)"))
    with pytest.raises(SearchError, match="exit code 0"):
        sync.grep("x", cwd=folder, rg=stand_in("pass"))


@pytest.mark.slow
@pytest.mark.python
@pytest.mark.anyio
async def test_timeout_covers_both_attempts_of_an_rg_without_threads(
    stand_in: Callable[..., Path], folder: Path, anyio_backend: str
) -> None:
    body = "open('started', 'a').write('x')\nprint('failed to spawn thread: Os {', file=sys.stderr, flush=True)"
    rg = stand_in(f"{body}\ntime.sleep(60)")
    for timeout in (0.3, 1.2):  # within the first attempt, and within the second
        assert (await ripwrap.grep("x", cwd=folder, rg=rg, timeout=timeout)).stop_reason == "timeout"
        assert sync.grep("x", cwd=folder, rg=rg, timeout=timeout).stop_reason == "timeout"
    assert len((folder / "started").read_text()) <= 4 * 2


@pytest.mark.slow
@pytest.mark.python
@pytest.mark.anyio
async def test_other_tasks_run_while_a_large_page_is_decoded(plant: Plant, anyio_backend: str) -> None:
    folder = plant({"f": "needle\n" * 20_000})
    async with counting_checkpoints() as checkpoints:
        chunks = [message async for message in ripwrap.search("needle", cwd=folder, rg=rg15, limit=1)]
        before = next(checkpoints)
        result = await ripwrap.grep("needle", cwd=folder, rg=rg15, limit=None, context=0, timeout=None)
    assert len(chunks) == 1 and result.total_matches == 20_000
    assert next(checkpoints) - before - 1 >= 20_000 / _page._CHECKPOINT_INTERVAL


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.fact(8)
async def test_grep_retries_when_rg_runs_out_of_threads(
    stand_in: Callable[..., Path], folder: Path, anyio_backend: str
) -> None:
    panic = "failed to spawn thread: Os { code: 11, kind: WouldBlock }"
    body = TWO_THEN_SILENT.replace("rg: ./gone: No such file or directory (os error 2)", panic)
    body = body.replace("time.sleep", "if '--threads=1' not in sys.argv: time.sleep")
    body += """    print('{"data":{},"type":"summary"}')\n"""
    result = await ripwrap.grep("x", cwd=folder, rg=stand_in(body))
    assert (places(result), result.stop_reason) == ([("b", 1), ("b", 2)], "end")
    assert result == sync.grep("x", cwd=folder, rg=stand_in(body))


@pytest.mark.rg_ends
@pytest.mark.posix
@pytest.mark.slow  # 21 MiB
def test_message_counts_errors_binary_files_and_dropped_lines(rg: RgBinary, plant: Plant) -> None:
    folder = plant(
        {"a": "needle\n", "late": b"needle\n" + b"x\n" * 40_000 + b"\0needle\n", "big": "x" * (21 << 20) + "needle"}
    )
    (folder / "loop").symlink_to(".")
    result = sync.grep("needle", cwd=folder, rg=rg, timeout=None)
    assert [(error.path, error.kind) for error in result.errors] == [("loop", "loop"), ("big", "too_long")]
    assert result.dropped_records == 1
    late = result.files[-1]
    assert late.path == "late" and late.binary_offset == 7 + 80_000
    assert result.files[0].binary_offset is None
    assert result.message == (
        "At least 2 matches in 2 files. 1 line left out, longer than 20 MiB in rg's JSON (in big). 1 file taken "
        "for binary, so searched only up to the first NUL byte; matches may be missing; text=True searches the whole "
        "files."
    )
    assert (result.exact, result.truncated, result.next_offset, result.stop_reason) == (False, True, None, "end")
    unseen = sync.grep("needle", cwd=folder, rg=rg, glob=["late", "a"], limit=1, follow=False).message
    assert unseen.endswith("only up to the first NUL byte; matches may be missing; text=True searches the whole files.")
    dropped = sync.grep("needle", cwd=folder, rg=rg, glob="big", timeout=None, explain=True, follow=False)
    assert (dropped.total_matches, dropped.exact, dropped.truncated) == (0, False, True)
    assert dropped.message == "No matches found. 1 line left out, longer than 20 MiB in rg's JSON (in big)."


class TestExplain:
    """Diagnosis of an empty result: `grep(explain=True)` tries other options if there is no match."""

    @pytest.fixture
    def tricky(self, plant: Plant) -> Path:
        return plant(
            {
                ".gitignore": "build\n",
                "build/log.txt": "find me(x) here\nfind me(x) there\n",
                "src/a.py": "Total = sum(x)\r\n",
                "src/b.bin": b"\0\0\nbinary words\n",
            }
        )

    @pytest.mark.slow
    @pytest.mark.loops("asyncio")
    @pytest.mark.anyio
    @pytest.mark.parametrize(
        ("pattern", "options", "says"),
        [
            (
                "find",
                {},
                (
                    "There would be 2 matches in 1 file with ignored files included (no_ignore=True), first in "
                    "build/log.txt."
                ),
            ),
            ("total", {}, "1 match in 1 file if case is ignored (ignore_case=True), first in src/a.py"),
            (
                "Total",
                {"glob": "*.txt"},
                "1 match in 1 file if files are not filtered (without glob), first in src/a.py",
            ),
            ("Total", {"type": "c", "max_depth": 1}, "if files are not filtered (without type, max_depth)"),
            (
                "sum(x)",
                {},
                "1 match in 1 file if the pattern is taken literally (fixed_strings=True), first in src/a.py",
            ),
            (r"\)$", {}, "1 match in 1 file if CRLF ends a line (crlf=True), first in src/a.py"),
            (
                "ota",
                {"word_regexp": True},
                "1 match in 1 file anywhere in a line (without word_regexp), first in src/a.py",
            ),
            ("binary words", {}, "1 match in 1 file in binary files (text=True), first in src/b.bin"),
        ],
    )
    async def test_explain_names_options_that_would_match(
        self, newest: RgBinary, tricky: Path, pattern: str, options: Any, says: str, anyio_backend: str
    ) -> None:
        result = await ripwrap.grep(pattern, cwd=tricky, rg=newest, explain=True, **options)
        assert result.message.startswith("No matches found. There would be ")
        assert says in result.message
        assert (result.total_matches, result.files, result.exact) == (0, (), True)
        assert sync.grep(pattern, cwd=tricky, rg=newest, explain=True, **options) == result
        assert sync.grep(pattern, cwd=tricky, rg=newest, **options).message == "No matches found."

    def test_explain_names_options_that_would_not_match(self, rg: RgBinary, tricky: Path) -> None:
        assert sync.grep("nowhere", cwd=tricky, rg=rg, explain=True).message == (
            "No matches found. Further searches also found nothing: with ignored files included; if case is ignored; "
            "in binary files."
        )

    @pytest.mark.parametrize(
        ("files", "says"),
        [
            ({".env": "needle\n", "log": "needle\n"}, ("with hidden files included (hidden=True), first in .env",)),
            ({"sub/log": "needle\n"}, ("with ignored files included (no_ignore=True), first in sub/log",)),
            (
                {".env": "needle\n", "sub/log": "needle\n"},
                (
                    "with hidden files included (hidden=True), first in .env",
                    "with ignored files included (no_ignore=True), first in sub/log",
                ),
            ),
            (
                {".cache/sub/log": "needle\n"},
                ("with hidden and ignored files included (hidden=True, no_ignore=True), first in .cache/sub/log",),
            ),
        ],
    )
    def test_explain_names_the_least_that_helps(
        self, newest: RgBinary, plant: Plant, files: dict[str, str], says: tuple[str, ...]
    ) -> None:
        """`hidden=True, no_ignore=True` is named where one of them is enough."""
        folder = plant({".ignore": "sub\nlog\n!/log\n", **files})
        hidden: Any = {} if "log" not in files else {"glob": "!/log"}
        message = sync.grep("needle", cwd=folder, rg=newest, explain=True, hidden=False, **hidden).message
        wanted = "; ".join(f"1 match in 1 file {native(one)}" for one in says)
        assert message.startswith(f"No matches found. There would be {wanted}")

    @pytest.mark.slow
    @pytest.mark.anyio
    async def test_explain_counts_matches_in_hidden_files(self, rg: RgBinary, plant: Plant, anyio_backend: str) -> None:
        """Hidden files are left out in silence if something else matches."""
        folder = plant({"a": "x\nx\n", ".env": "x\n", ".github/ci": "x\nx\n", ".ignore": "b\n", "b": "x\n"})
        more = "2 matches in 1 file. 3 more matches in hidden files (hidden=True)."
        assert (await ripwrap.grep("x", cwd=folder, rg=rg, explain=True, hidden=False)).message == more
        assert sync.grep("x", cwd=folder, rg=rg, explain=True, hidden=False).message == more
        # A page that is not the last says anyway that there is more; without `explain` nothing is searched twice.
        assert "hidden" not in sync.grep("x", cwd=folder, rg=rg, explain=True, hidden=False, limit=1).message
        assert "hidden" not in sync.grep("x", cwd=folder, rg=rg, hidden=False).message
        assert "hidden" not in sync.grep("x", cwd=folder, rg=rg, explain=True).message

    def test_explain_adds_nothing_if_there_is_no_option_to_try(self, rg: RgBinary, folder: Path) -> None:
        options: Any = {"hidden": True, "no_ignore": True, "fixed_strings": True, "ignore_case": True, "text": True}
        assert sync.grep("x", cwd=folder, rg=rg, explain=True, **options).message == "No matches found."

    def test_explain_adds_nothing_if_there_is_a_match(self, rg: RgBinary, tricky: Path) -> None:
        assert sync.grep("Total", cwd=tricky, rg=rg, explain=True).message == "1 match in 1 file."

    def test_explain_names_a_max_count_of_zero(self, rg: RgBinary, tricky: Path) -> None:
        assert sync.grep("Total", cwd=tricky, rg=rg, explain=True, max_count=0).message == (
            "No matches found. There would be 1 match in 1 file if the limit per file is not 0 (without max_count=0), "
            f"first in {native('src/a.py')}."
        )

    @pytest.mark.slow
    def test_explain_searches_only_the_given_paths(self, rg: RgBinary, tricky: Path) -> None:
        result = sync.grep("TOTAL", cwd=tricky, rg=rg, explain=True, paths=(path for path in ["build"]))
        assert "Further searches also found nothing" in result.message
        later = sync.grep("TOTAL", cwd=tricky, rg=rg, explain=True, ignore_case=True, case_sensitive=True)
        assert "if case is ignored" in later.message

    @pytest.mark.slow
    def test_explain_says_that_time_ran_out(self, stand_in: Callable[..., Path], folder: Path) -> None:
        run = BlockingRunner(stand_in("time.sleep(60)"))
        request = grep_request("x", folder, (), None, None, 0, None, {}, explain=True)
        said = run_blocking(explanation(run, ["x"], request.options, request.step, seconds=0.5))
        assert said == "There was no time to try more options."

    def test_explain_skips_a_probe_that_rg_refuses(self, rg: RgBinary, tricky: Path) -> None:
        r"""rg refuses a literal that contains `\n`."""
        message = sync.grep("x\n(", cwd=tricky, rg=rg, explain=True, fixed_strings=True, multiline=True).message
        assert message.startswith("No matches found. Further searches also found nothing")


names = st.text(st.sampled_from("ab.-é "), min_size=1, max_size=4).filter(lambda name: name.strip(".") != "")
rg15 = rgs.provide("15.2.0")


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=times(12, 200))
@given(
    st.dictionaries(names, st.lists(st.sampled_from(["needle", "other", "x needle needle"]), max_size=12), max_size=6),
    st.integers(1, 6),
    st.none() | st.integers(1, 4),
    st.integers(0, 2),
)
def test_pages_have_each_match_once_and_together_equal_the_whole_result(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, list[str]], size: int, most: int | None, context: int
) -> None:
    folder = tmp_path_factory.mktemp("tree")
    for name, content in files.items():
        (folder / name).write_text("".join(f"{line}\n" for line in content))
    matches = sorted((match.path or "", match.line_number) for match in sync.search("needle", cwd=folder, rg=rg15))
    at_once = sync.grep("needle", cwd=folder, rg=rg15, limit=None, context=context)
    assert sorted(places(at_once)) == matches
    paged: list[tuple[str, int | None]] = []
    offset: int | None = 0
    while offset is not None:
        page = sync.grep("needle", cwd=folder, rg=rg15, limit=size, max_files=most, offset=offset, context=context)
        shown = places(page)
        assert (page.total_matches, page.files_matched, page.exact) == (len(matches), at_once.files_matched, True)
        assert min(1, len(matches)) <= len(shown) <= size
        assert len(page.files) <= (most or size)
        assert page.truncated == (page.next_offset is not None) == (page.stop_reason != "end")
        assert page.next_offset in (None, offset + len(shown))
        paged += shown
        offset = page.next_offset
    assert paged == places(at_once)
    for file in at_once.files:
        assert all(len(match.before) <= context and len(match.after) <= context for match in file.matches)
        whole = [line.line_number for line in file.lines()]
        assert whole == sorted(set(whole), key=lambda number: number or 0)  # in order, without duplicates
        said = [
            one.line_number
            for one in sync.search_messages("needle", cwd=folder, rg=rg15, paths=[folder / file.path], context=context)
            if one.type in ("match", "context")
        ]
        assert whole == said


def test_grep_match_is_a_match_with_context(rg: RgBinary, lines: Path) -> None:
    match = sync.grep("needle", cwd=lines, rg=rg).files[0].matches[0]
    assert isinstance(match, Match)
    (plain,) = sync.search("needle", cwd=lines, rg=rg, limit=1)
    assert Match.model_validate(match.model_dump(exclude={"before", "after"})) == plain


def test_several_patterns_and_paths_give_one_result(rg: RgBinary, corpus: Path) -> None:
    result = sync.grep(["needle", "other"], cwd=corpus, rg=rg, paths=["z", "a.txt"], context=0)
    assert result.query == ("needle", "other")
    assert [file.path for file in result.files] == ["a.txt", native("z/z.txt"), native("z/é.txt")]
    absolute = sync.grep("needle", cwd=corpus, rg=rg, paths=corpus / "a.txt")
    assert [file.path for file in absolute.files] == [os.path.join(corpus, "a.txt")]
