"""`max_count` in a search over several lines: the answer is the same as rg's, and rg cannot panic (rg-facts 61)."""

import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

import ripwrap
from ripwrap import Match, Repositories, RootMatch, SearchError, sync
from ripwrap._ripgrep.command import search_query
from ripwrap._ripgrep.cut import Cut
from ripwrap._ripgrep.spans import spans_lines
from ripwrap.binary import RgBinary
from ripwrap.models import Message
from ripwrap.options import SearchOptions
from support import cli
from support.effort import times

Plant = Callable[..., Path]

CALL = r"\w+\([^)]*\)"
CROSSING = "f(1); g(\n2)\n"
ROWS = [("a.py", 1, CROSSING.rstrip("\n"), ["f(1)", "g(\n2)"])]


@pytest.fixture
def crossing(plant: Plant) -> Path:
    """A tree with which rg 15 panics and hangs: the second match begins in the line of the first, and ends after it."""
    return plant({"a.py": CROSSING, "b.py": "zzz\n"})


def rows(matches: list[Match]) -> list[tuple[str | None, int | None, str, list[str]]]:
    return [(one.path, one.line_number, one.text, [str(hit.match) for hit in one.submatches]) for one in matches]


@pytest.mark.rg_matrix
@pytest.mark.fact(61)
def test_searches_over_lines_with_max_count_end(rg: RgBinary, crossing: Path) -> None:
    """No way to search hangs, or says that the time was too short."""
    options: dict[str, Any] = {"cwd": crossing, "multiline": True, "max_count": 1, "rg": rg}
    assert rows(list(sync.search(CALL, **options))) == ROWS
    kinds = [message.type for message in sync.search_messages(CALL, **options)]
    assert kinds == ["begin", "match", "end", "summary"]
    (columns,) = sync.search_columns(CALL, **options)
    assert (columns.path, columns.spans) == (["a.py"], [((0, 4), (6, 11))])
    found = sync.grep(CALL, **options)
    assert (found.stop_reason, [file.path for file in found.files]) == ("end", ["a.py"])
    assert [(one.path, one.count) for one in sync.count_matches(CALL, **options)] == [("a.py", 2)]
    assert "g(" in sync.replace(CALL, "h()", **options).diff()
    (found_in_root,) = sync.Repositories(crossing, rg=rg).search(CALL, multiline=True, max_count=1)
    assert isinstance(found_in_root, RootMatch) and found_in_root.path == "a.py"


@pytest.mark.anyio
async def test_async_searches_over_lines_with_max_count_end(crossing: Path, anyio_backend: str) -> None:
    """On both event loops."""
    options: dict[str, Any] = {"cwd": crossing, "multiline": True, "max_count": 1}
    assert rows([one async for one in ripwrap.search(CALL, **options)]) == ROWS
    assert (await ripwrap.grep(CALL, timeout=5, **options)).stop_reason == "end"
    found = [one async for one in Repositories(crossing).search(CALL, multiline=True, max_count=1)]
    assert len(found) == 1


def test_command_line_over_lines_with_max_count_ends(crossing: Path) -> None:
    """The program prints the match."""
    assert "g(" in cli.output("search", "--multiline", "--max-count=1", CALL, cwd=crossing)


@pytest.mark.rg_matrix
@pytest.mark.fact(61)
@pytest.mark.parametrize("timeout", [0.3, 20])
def test_rg_that_panics_is_an_error(rg: RgBinary, plant: Plant, timeout: float) -> None:
    r"""A neighbour: rg panics without `max_count`, because `\b` matches where the last match ended."""
    folder = plant({"a.txt": "xb\nc\n", "b.txt": "zz\n", "c.txt": "zz\n"})
    pattern = r"x|\bb|b\nc"
    with pytest.raises(SearchError, match=r"panicked(?s:.*)leave multiline out") as caught:
        sync.grep(pattern, cwd=folder, multiline=True, rg=rg, timeout=timeout)
    assert "backtrace" not in str(caught.value)
    with pytest.raises(SearchError, match="panicked"):
        list(sync.search(pattern, cwd=folder, multiline=True, rg=rg, timeout=timeout))


@pytest.mark.anyio
async def test_rg_that_panics_is_an_error_of_async_calls(plant: Plant, anyio_backend: str) -> None:
    """The time limit of the call is no false reason, and a stream without a limit ends."""
    folder = plant({"a.txt": "xb\nc\n", "b.txt": "zz\n", "c.txt": "zz\n"})
    with pytest.raises(SearchError, match="panicked"):
        await ripwrap.grep(r"x|\bb|b\nc", cwd=folder, multiline=True, timeout=0.3)
    with pytest.raises(SearchError, match="panicked"):
        async for _ in ripwrap.search(r"x|\bb|b\nc", cwd=folder, multiline=True):
            pass


PATTERNS = (r"f\([^)]*\)", r"a\s", "b\n", "a[^b]*b", "a", "\n", r"x\)\s*f", "a*", "^b")


def raw(newest: RgBinary, folder: Path, pattern: str, limit: int, after: int) -> list[Message] | None:
    """Return the messages of rg with one thread; `None` if it panics."""
    from ripwrap._ripgrep.decoder import MessageDecoder

    flags = ["--json", "--multiline", "--sort=path", f"--max-count={limit}", f"--after-context={after}"]
    argv = [newest.path, "--no-config", *flags, "-e", pattern, "."]
    done = subprocess.run(argv, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return None if done.returncode > 2 else list(MessageDecoder(("match", "context", "end")).feed(done.stdout))


@pytest.mark.slow
def test_max_count_means_what_rg_means(newest: RgBinary, plant: Plant) -> None:
    """Against rg itself, for generated texts with which it does not panic."""
    if newest.version < (15,):
        pytest.skip("older rgs count records of several lines, not matches")
    draw = random.Random(35)
    for _ in range(times(60, 2_000)):
        text = "".join(draw.choices(["a", "b", "\n", "f(", "x)", " ", "é"], k=draw.randint(1, 40)))
        pattern, limit, after = draw.choice(PATTERNS), draw.randint(1, 3), draw.choice([0, 0, 1, 2])
        folder = plant({"t": text})
        expected = raw(newest, folder, pattern, limit, after)
        if expected is None:
            continue
        options: dict[str, Any] = {"multiline": True, "max_count": limit, "after_context": after, "rg": newest}
        found = list(sync.search_messages(pattern, cwd=folder, **options))
        assert list(facts(found, after)) == list(facts(expected, after)), (text, pattern, limit, after)


def facts(messages: list[Message], after: int) -> Iterator[object]:
    """Yield what must be equal: the lines, and without context after a match also what is a match, and the numbers.

    In the context after the last match, rg writes lines that match as matches.
    """
    for message in messages:
        if message.type == "match" or message.type == "context":
            hits = [(hit.start, hit.end) for hit in message.submatches]
            lines = message.text.split("\n")
            yield from enumerate(lines, message.line_number or 0) if after else [(message.line_number, lines, hits)]
        elif message.type == "end" and not after:
            yield message.stats.matches, message.stats.matched_lines


def test_cut_is_the_same_for_any_chunks(newest: RgBinary, plant: Plant) -> None:
    """Lines that are not UTF-8, items that end with NUL, and context without end."""
    folder = plant({"t": b"f(1) \xff f(\n2) f(3)\nf(4)\xe9\nlast\n", "u": "no\n", "v": "f(\n)\nf(5)\nf(6)\n"})
    argv = [newest.path, "--no-config", "--json", "-U", "--sort=path", "-e", CALL, "."]
    output = subprocess.run(argv, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False).stdout
    for limit in (1, 2, 3, 9):
        for passthru in (False, True):
            options: SearchOptions = {"multiline": True, "max_count": limit, "passthru": passthru}
            query = search_query(CALL, ".", (), options)
            whole = Cut(query)
            expected = whole.feed(output) + whole.close()
            for size in (1, 7, 1000):
                cut = Cut(query)
                parts = [cut.feed(output[at : at + size]) for at in range(0, len(output), size)]
                assert b"".join([*parts, cut.close()]) == expected


def test_lines_that_do_not_match_are_cut_to_max_count(rg: RgBinary, plant: Plant) -> None:
    """A neighbour: rg 15 stops after the first matches, and lists matching lines as if they were none."""
    folder = plant({"t": "1\na\nb\n2\n3\na\nb\n4\n"})
    options: dict[str, Any] = {"cwd": folder, "multiline": True, "invert_match": True, "rg": rg}
    found = [one.text for one in sync.search(r"a\nb", max_count=2, **options)]
    assert found == ["1", "2"]


@pytest.mark.slow  # 21 MiB
def test_record_that_is_too_long_is_reported(plant: Plant) -> None:
    """A record that no decoder takes is not held without end, and is named in an error."""
    folder = plant({"big": "x " * 500 + "y" * (21 << 20) + "\nx \n", "small": "x \n"})
    *messages, summary = sync.search_messages(r"x\s", cwd=folder, multiline=True, max_count=1)
    assert [one.path for one in messages if one.type == "match"] == ["small"]
    assert summary.type == "summary" and [error.path for error in summary.errors] == ["big"]


@pytest.mark.parametrize(
    ("pattern", "spans"),
    [
        *((one, True) for one in ("a\nb", r"a\nb", r"\s", r"\W", r"\D", r"[^a]", r"[\s,]", "^a", "a$", r"\A", "(?s).")),
        *((one, True) for one in (r"\x0a", r"\x{a}", r"\u000a", r"[\t-\r]", r"\P{L}", r"\p{Cc}", r"[a&&\s]")),
        *((one, False) for one in ("a", ".", r"\S+", r"\w\b", r"\d", r"[^\n]", r"[^\s]", r"[^]\n]", r"\[a", r"\pL")),
        *((one, False) for one in (r"\x41", "(?i:a)", r"\$", r"[.$]", r"\p{Lu}", r"a{2}", r"[]a]", r"\\n")),
    ],
)
def test_pattern_spans_lines_where_rg_says_so(newest: RgBinary, plant: Plant, pattern: str, spans: bool) -> None:
    """rg is asked, too: over one line of four characters, it counts five empty matches, or one line."""
    if "&&" in pattern and newest.version < (14,):
        pytest.skip("rg 13 refuses the empty class")
    folder = plant({"t": "\x01\x01\x01\x01\n"})
    argv = [newest.path, "--no-config", "-U", "-c", "-e", "", "-e", pattern, "t"]
    counted = subprocess.run(argv, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout
    assert (int(counted) > 1) is spans or (spans and "&&" in pattern)
    assert spans_lines(search_query(pattern, ".", (), {"multiline": True})) is spans


def test_other_options_decide_whether_matches_span_lines() -> None:
    """Literal texts, whole lines, other engines, and files with NUL as the end of a line."""

    def spans(pattern: str, **options: Any) -> bool:
        given = cast("SearchOptions", {"multiline": True, **options})
        return spans_lines(search_query(pattern, ".", (), given))

    assert not spans(r"a\nb", fixed_strings=True) and spans("a\nb", fixed_strings=True)
    assert spans("a", line_regexp=True) and not spans("a", word_regexp=True)
    assert spans(".", multiline_dotall=True) and not spans(r"a\nb", multiline=False)
    assert spans("a", pcre2=True) and spans("(?=a)", engine="auto") and not spans("a", engine="auto")
    assert spans(".", null_data=True) and not spans("^a", null_data=True)
