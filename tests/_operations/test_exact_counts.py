"""Counts and listings of files with NUL bytes: the same files and numbers as `search()`, in every mode."""

import os
import random
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import ripwrap
from ripwrap import FileCount, RootCount, SearchError, sync
from ripwrap.binary import RgBinary
from support import cli
from support.effort import times

Plant = Callable[..., Path]

LATE = b"needle 1\n" + b"line of text\n" * 10_000 + b"bad \0 byte\n" + b"needle 2\n"
"""rg finds the first needle, and stops at the block with the NUL; `--count` prints nothing for the file."""

OTHERS = [".gitignore", "late.txt"]
"""Files with a line that is not searched for."""


@pytest.fixture
def late(plant: Plant) -> Path:
    """A tree with a text file, and with files that have their first NUL byte late, or early."""
    return plant(
        {
            "late.txt": LATE,
            "text.txt": "needle needle\n",
            "early.txt": b"needle\n\0",
            "ignored/late.txt": LATE,
            ".gitignore": "ignored\n",
        }
    )


def numbers(counts: Iterable[FileCount]) -> dict[str, int]:
    return {one.path: one.count for one in counts}


@pytest.mark.rg_ends
@pytest.mark.fact(58)
def test_file_with_a_late_nul_is_counted(rg: RgBinary, late: Path) -> None:
    """Its matches before the NUL are counted, as `search()` finds them."""
    options: dict[str, Any] = {"cwd": late, "rg": rg}
    expected = {"late.txt": 1, "text.txt": 1}
    assert Counter(match.path for match in sync.search("needle", **options)) == expected
    assert numbers(sync.count("needle", **options)) == expected
    assert numbers(sync.count("needle", include_zero=True, **options)) == {**expected, ".gitignore": 0}
    assert [one.path for one in sync.count("needle", sort="path", **options)] == ["late.txt", "text.txt"]
    assert numbers(sync.count_matches("needle", **options)) == {"late.txt": 1, "text.txt": 2}
    assert numbers(sync.count("needle", max_count=1, **options)) == expected
    assert sorted(sync.files_with_matches("needle", **options)) == ["late.txt", "text.txt"]
    others = numbers(sync.count("needle", invert_match=True, **options))
    assert 1_000 < others["late.txt"] <= 10_000
    assert sorted(sync.files_with_matches("needle", invert_match=True, **options)) == OTHERS
    assert sorted(sync.files_with_matches(r"needle\s", invert_match=True, multiline=True, **options)) == OTHERS


@pytest.mark.anyio
async def test_file_with_a_late_nul_is_counted_in_async_calls(late: Path, anyio_backend: str) -> None:
    """On both event loops."""
    assert {one.path: one.count async for one in ripwrap.count("needle", cwd=late)} == {"late.txt": 1, "text.txt": 1}
    matching = ripwrap.files_with_matches("needle", cwd=late, invert_match=True)
    assert sorted([path async for path in matching]) == OTHERS


def test_other_ways_to_count_have_the_file(late: Path) -> None:
    """In many roots, on the command line, and in the tool for agents."""
    found = [one for one in sync.Repositories(late).count("needle") if isinstance(one, RootCount)]
    assert [(one.count, one.files) for one in found] == [(2, 2)]
    assert sorted(cli.output("search", "-c", "needle", cwd=late).split()) == ["late.txt:1", "text.txt:1"]
    assert sorted(cli.output("search", "-l", "-v", "needle", cwd=late).split()) == OTHERS
    answer = sync.Workspace(late).grep_content_result("needle", output_mode="count")
    assert {file.path: file.count for file in answer.files} == {"late.txt": 1, "text.txt": 1}
    assert answer.exact and answer.total_matches == 2
    listed = sync.Workspace(late).grep_content_result("needle", output_mode="files_with_matches")
    assert {file.path for file in listed.files} == {"late.txt", "text.txt"}


@pytest.mark.parametrize("options", [{"pcre2": True}, {"engine": "pcre2"}, {"engine": "auto"}])
@pytest.mark.parametrize("pattern", ["ab", "ab(?!y)", "(?s)a.*?b"])
def test_pcre2_lists_a_file_with_an_early_nul(
    rg: RgBinary, plant: Callable[..., Path], options: dict[str, Any], pattern: str
) -> None:
    """rg counts nothing in such a file with PCRE2, so `--count --max-count=1` does not list it."""
    if "pcre2" not in rg.features or (options == {"engine": "auto"} and "(?!" not in pattern):
        pytest.skip("this search does not use PCRE2")
    folder = plant({"early": b"ab\nx\nb\0a\n", "late": b"ab\n" + b"x\n" * 80_000 + b"\0\n", "no": "zz\n"})
    given: dict[str, Any] = {**options, "cwd": folder, "rg": rg}
    found = {match.path for match in sync.search(pattern, **given)}
    assert set(sync.files_with_matches(pattern, **given)) == set(sync.files_matching(any_of=pattern, **given)) == found
    assert list(sync.files_without_match(pattern, **given)) == ["no"]


def test_items_and_texts_with_a_late_nul_are_counted(plant: Plant) -> None:
    """Neighbours: members of an archive, and texts in memory; their files are temporary files of rg."""
    folder = plant({"plain.txt": "needle\n"})
    with zipfile.ZipFile(folder / "a.zip", "w") as archive:
        for name in ("late.txt", "other.txt"):
            archive.writestr(name, LATE)
    expected = {"plain.txt": 1, "a.zip!late.txt": 1, "a.zip!other.txt": 1}
    found = Counter(match.path for match in sync.search("needle", cwd=folder, inside="zip"))
    assert numbers(sync.count("needle", cwd=folder, inside="zip")) == found
    assert len(found) == len(expected) and set(found.values()) == {1}
    with ripwrap.overlay({folder / "plain.txt": LATE.decode()}):
        assert numbers(sync.count("needle", cwd=folder)) == {"plain.txt": 1}


def test_names_with_signs_of_globs_are_counted(plant: Plant) -> None:
    """The files without a count are chosen by globs, whatever globs and ignored files there are."""
    names = ["[a].txt", "!b.txt", "c{d,e}.txt", "sub/f g.txt", "-x.txt"]
    folder = plant({**dict.fromkeys(names, LATE), "*.dat" if os.name == "posix" else "x.dat": LATE, "no/-x.txt": LATE})
    expected = dict.fromkeys(map(os.path.normpath, names), 1)
    assert numbers(sync.count("needle", cwd=folder, glob=["*.txt", "!no"])) == expected
    assert len(numbers(sync.count("needle", cwd=folder, paths=["sub", "no"]))) == 2


@pytest.mark.parametrize("code", ["sys.exit(101)", "os.kill(os.getpid(), 9)", "sys.exit(1)"])
@pytest.mark.slow
def test_further_run_that_fails_is_an_error(stand_in: Callable[..., Path], folder: Path, code: str) -> None:
    """No count is lost in silence if rg fails when it is asked for the missing counts."""
    body = f"""
        if "--stats" in sys.argv:
            sys.stdout.write("\\n1 matches\\n1 matched lines\\n1 files contained matches\\n1 files searched\\n")
        elif "--json" in sys.argv:
            {code}
        else:
            sys.stdout.write("./a\\0" + "1\\n")
    """
    with pytest.raises(SearchError):
        list(sync.count("x", cwd=folder, rg=stand_in(body)))


@pytest.mark.slow
def test_further_run_without_threads_begins_again(stand_in: Callable[..., Path], folder: Path) -> None:
    """A run that ended in a file, for lack of threads, leaves nothing for the next run, which has one thread."""
    body = r"""
        begin = '{"type":"begin","data":{"path":{"text":"./%s"}}}\n'
        stats = '"stats":{"matched_lines":1,"matches":1}'
        if "--stats" in sys.argv:
            sys.stdout.write("\n1 matches\n1 matched lines\n1 files contained matches\n1 files searched\n")
        elif "--json" not in sys.argv:
            sys.stdout.write("./a\0" + "1\n")
        elif "--threads=1" not in sys.argv:
            sys.stdout.write(begin % "z")
            sys.stderr.write("failed to spawn thread: Os { code: 11 }\n")
            sys.exit(101)
        else:
            sys.stdout.write(begin % "a" + '{"type":"end","data":{"binary_offset":9,%s}}\n' % stats)
            sys.stdout.write('{"type":"summary","data":{%s}}\n' % stats)
    """
    assert numbers(sync.count("x", cwd=folder, rg=stand_in(body))) == {"a": 1}


PATTERNS = ("a", "b", r"a\sb", "d", r"c+\n", "^d", "nope", r"a\s")
LINES = (b"aa b\n", b"b b\n", b"b\n", b"a\n", b"cccccccccc\n", b"d\n", b"dddddddddddddd\n")


def write_random_tree(folder: Path, draw: random.Random) -> None:
    """Write files of several blocks, with NULs in the first block, at the ends of blocks, or later; or with none."""
    for number in range(4):
        lines = draw.choices(LINES, draw.choice([[1.0] * 7, [0, 0, 0, 0.01, 0, 1, 1]]), k=draw.choice([5, 900, 9_000]))
        text = bytearray(b"".join(lines))
        for _ in range(draw.choice([0, 1, 1, 2])):
            place = draw.choice([draw.randrange(len(text)), 65_536 + draw.randint(-20, 2_000), len(text) - 1])
            text[min(place, len(text) - 1)] = 0
        (folder / f"f{number}").write_bytes(text)


@pytest.mark.slow
@pytest.mark.rg_ends
@pytest.mark.stress
def test_modes_agree_with_search(rg: RgBinary, folder: Path) -> None:
    """All modes that count or list, over generated trees with NULs and matches over lines."""
    draw = random.Random(36)
    for _ in range(times(5, 500)):
        write_random_tree(folder, draw)
        options: dict[str, Any] = {"cwd": folder, "rg": rg}
        given: dict[str, Any] = {name: True for name in ("multiline", "invert_match", "mmap") if draw.random() < 0.4}
        if draw.random() < 0.3:
            given["max_count"] = draw.randint(1, 4)
        pattern = draw.choice(PATTERNS) if given.get("multiline") else draw.choice(PATTERNS[:4])
        lines, hits = Counter[str](), Counter[str]()
        for match in sync.search(pattern, **options, **given):
            lines[match.path or ""] += match.text.count("\n") + 1
            hits[match.path or ""] += max(1, len(match.submatches))
        over_lines = given.get("multiline") and pattern in PATTERNS[2:] and pattern not in ("d", "nope")
        by_hits = over_lines and not given.get("invert_match")
        about = (pattern, given)
        assert numbers(sync.count(pattern, **options, **given)) == (hits if by_hits else lines), about
        ordered = list(sync.count(pattern, sort="path", **options, **given))
        assert [one.path for one in ordered] == sorted(lines) and numbers(ordered) == (hits if by_hits else lines)
        assert numbers(sync.count_matches(pattern, **options, **given)) == hits, about
        assert set(sync.files_with_matches(pattern, **options, **given)) == set(lines), about
        if rg.version >= (15,) or not (over_lines and given.get("invert_match")):  # rg-facts 58
            assert not set(sync.files_without_match(pattern, **options, **given)) & set(lines), about
        if not given or set(given) == {"multiline"}:
            check_tool(folder, pattern, given, hits, lines)


def check_tool(folder: Path, pattern: str, given: dict[str, Any], hits: Counter[str], lines: Counter[str]) -> None:
    """Check the answers of the tool, and of the command line, for a search that they can do."""
    tool = sync.Workspace(folder)
    expected = hits if given and pattern in (r"a\sb", r"c+\n", "^d", r"a\s") else lines
    counted = tool.grep_content_result(pattern, output_mode="count", **given)
    assert ({one.path: one.count for one in counted.files}, counted.exact) == (expected, True)
    listed = tool.grep_content_result(pattern, output_mode="files_with_matches", **given)
    assert {one.path for one in listed.files} == set(lines)
    content = tool.grep_content_result(pattern, max_matches=1, **given)
    assert (content.total_matches, content.files_matched) == (counted.total_matches, len(lines))
    printed = cli.output("search", "-c", *("--multiline",) * len(given), pattern, cwd=folder, code=0 if lines else 1)
    assert dict(line.rsplit(":", 1) for line in printed.split()) == {path: str(n) for path, n in expected.items()}
