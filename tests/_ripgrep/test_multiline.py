"""Searches over lines answer as rg does, in every place; where rg panics, there is an error (rg-facts 61)."""

import io
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ripwrap
from ripwrap import SearchError, sync
from ripwrap.binary import RgBinary
from ripwrap.places import Items
from support.effort import some
from support.git import require_git

Plant = Callable[..., Path]

CROSSING = "f(1); g(\n2)\n"


@pytest.mark.slow
@pytest.mark.rg_matrix
@pytest.mark.fact(61)
def test_panic_with_max_count_is_an_error(rg: RgBinary, plant: Plant) -> None:
    """A match begins in the line of the last counted match, and ends after it: rg 15 panics, and hangs."""
    folder = plant({"a.py": CROSSING, "b.py": "zzz\n"})
    options: dict[str, Any] = {"cwd": folder, "multiline": True, "max_count": 1, "rg": rg}
    pattern = r"\w+\([^)]*\)"
    assert [one.path for one in sync.count_matches(pattern, **options)] == ["a.py"]
    for call in (sync.search, sync.search_messages, sync.search_columns, sync.grep, sync.replace):
        given = (pattern, "x") if call is sync.replace else (pattern,)
        if rg.version < (15,):
            assert call(*given, **options)
            continue
        with pytest.raises(SearchError, match=r"panicked(?s:.*)leave multiline or max_count out"):
            list(call(*given, **options))


@pytest.mark.rg_matrix
@pytest.mark.fact(61)
@pytest.mark.parametrize("timeout", [0.3, 20])
def test_rg_that_panics_is_an_error(rg: RgBinary, plant: Plant, timeout: float) -> None:
    r"""A neighbour: rg panics without `max_count`, because `\b` matches where the last match ended."""
    folder = plant({"a.txt": "xb\nc\n", "b.txt": "zz\n", "c.txt": "zz\n"})
    pattern = r"x|\bb|b\nc"
    with pytest.raises(SearchError, match=r"panicked(?s:.*)leave multiline or max_count out") as caught:
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


POSIX = ["alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space"]
POSIX += ["upper", "word", "xdigit"]
CLASSES = [
    *(f"[[:{name}:]]" for name in POSIX),
    *(f"[[:^{name}:]]" for name in POSIX[:6]),
    *(r"[\x41-\x5a]", r"[\x{41}-\x{5a}]", r"[\u0041-\u005a]", r"[\t-\r]", r"[\x00-\x1f]", r"[\x0b-\x1f]", r"[!-~]"),
    *(
        r"[A-Z&&[^D]]",
        r"[\w&&[A-Z]]",
        r"[\s&&[^ ]]",
        r"[\s&&[^\n]]",
        "[A-Z--D]",
        r"[\s--\n]",
        "[A-Z~~C]",
        "[[A-C][E-F]]",
    ),
    *(r"\p{Lu}", r"\p{L}", r"\pL", r"\PL", r"\P{Lu}", r"\p{Cc}", r"\p{Greek}", r"\p{Latin}", r"\p{Alphabetic}"),
    *(r"[^a]", r"[^\n]", r"[^\s]", r"[^]\n]", r"[]A]", r"[\pL]", r"[\p{Lu}]", r"[\w\s]", r"[^\W]", r"[.$]", r"\W"),
]
TEXT = "AB\nCD eé\n\nEF,7Ω\n\tG]\n"


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """One file in every place, with the options of each."""
    require_git()
    folder = tmp_path_factory.mktemp("places")
    (folder / "f").write_text(TEXT, "utf-8", newline="")
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
        subprocess.run([*git, *words], check=True)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("f", TEXT)
    zips = tmp_path_factory.mktemp("zips")
    (zips / "x.zip").write_bytes(packed.getvalue())
    return {
        "directory": {"cwd": folder},
        "sorted": {"cwd": folder, "sort": "path"},
        "items": {"where": Items([("f", TEXT)])},
        "revision": {"cwd": folder, "rev": "HEAD"},
        "archive": {"cwd": zips, "inside": "zip"},
        "overlay": {"cwd": tmp_path_factory.mktemp("overlay")},
    }


@pytest.mark.slow
@pytest.mark.parametrize("pattern", some(CLASSES, 16))
def test_classes_count_as_rg_does(newest: RgBinary, places: dict[str, dict[str, Any]], pattern: str) -> None:
    """Whether a class may match a line end decides what rg counts; no place guesses it."""
    folder = places["directory"]["cwd"]

    def raw(*flags: str) -> int:
        argv = [newest.path, "--no-config", "-U", *flags, "-e", pattern, "--", "f"]
        done = subprocess.run(argv, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        assert done.returncode in (0, 1), done.stderr
        return int(done.stdout or 0)

    expected = raw("-c"), raw("--count-matches")
    limited = raw("-c", "-m2")
    for place, options in places.items():
        given: dict[str, Any] = {**options, "multiline": True, "rg": newest}
        with ripwrap.overlay({"f": TEXT} if place == "overlay" else {}, cwd=given.get("cwd", ".")):
            assert sum(one.count for one in sync.count(pattern, **given)) == expected[0], place
            assert sum(one.count for one in sync.count(pattern, **given, max_count=2)) == limited, place
            assert sum(one.count for one in sync.count_matches(pattern, **given)) == expected[1], place


@pytest.mark.parametrize("pattern", [r"[\x41-\x5a]", "[[:upper:]]", r"\p{Lu}", "[A-Z&&[^B]]", "[[A-C]D]"])
def test_max_count_counts_lines_of_a_class_without_line_ends(newest: RgBinary, plant: Plant, pattern: str) -> None:
    folder = plant({"f": "AB\nCD\nEF\n"})
    found = [one.line_number for one in sync.search(pattern, cwd=folder, multiline=True, max_count=2, rg=newest)]
    assert found == [1, 2]


@pytest.mark.parametrize(
    "pattern", ["^$", "$", r"a\Kb", r"\w\K", "(?=b)", r"a\K", r"\n\K", "x*", r"b|\K", "(?<=a)b", r"^\K"]
)
@pytest.mark.parametrize("multiline", [False, True])
def test_empty_matches_are_counted_as_rg_counts_them(
    newest: RgBinary, plant: Plant, pattern: str, *, multiline: bool
) -> None:
    r"""Matches that rg's JSON leaves out of its submatches, as for `\K` and for empty matches of PCRE2."""
    if "pcre2" not in newest.features:
        pytest.skip("this rg has no PCRE2")
    if "n" in pattern and not multiline:
        pytest.skip("a newline needs multiline")
    text = "a\n\nb ab\n\n"
    folder = plant({"f": text})
    for mode, call in ("--count", sync.count), ("--count-matches", sync.count_matches):
        argv = [newest.path, "--no-config", "-P", *["-U"] * multiline, mode, "-e", pattern, "--", "f"]
        done = subprocess.run(argv, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        options: dict[str, Any] = {"pcre2": True, "multiline": multiline, "rg": newest}
        for given in ({"cwd": folder}, {"cwd": folder, "sort": "path"}, {"where": Items([("f", text)])}):
            assert sum(one.count for one in call(pattern, **options, **given)) == int(done.stdout or 0), (mode, given)
