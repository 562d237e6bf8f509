"""Modes that list files and count, with every rg, async and blocking: the same files and numbers as raw rg."""

import json
import os
import subprocess
import zipfile
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ripwrap
from ripwrap import DecodeError, FileCount, PatternError, RootCount, SearchError, sync
from ripwrap._ripgrep.decoder import CountDecoder, decode_types
from ripwrap.binary import RgBinary
from ripwrap.places import Directory, Items, Overlay
from support import cli
from support.paths import native

pytestmark = pytest.mark.rg_ends

Plant = Callable[..., Path]
Item = TypeVar("Item")
ODD = b"odd \n\xff\\name" if os.name == "posix" else "odd é name".encode()


@pytest.fixture
def corpus(plant: Plant) -> Path:
    return plant(
        {
            "two.txt": "needle needle\nother\nneedle\n",
            "sub/one.py": "a needle\n",
            "none.txt": "nothing\n",
            "ignored.txt": "needle\n",
            ".gitignore": "ignored.txt\n",
            ODD: "needle\n",
        }
    )


async def taken(stream: AsyncGenerator[Item]) -> list[Item]:
    async with aclosing(stream):
        return [item async for item in stream]


def raw(rg: RgBinary, folder: Path, *flags: str) -> bytes:
    argv = [rg.path, "--no-config", "--hidden", "-L", "--no-require-git", "-g!.git", *flags, "--", "."]
    return subprocess.run(argv, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False).stdout


def raw_paths(rg: RgBinary, folder: Path, *flags: str) -> list[str]:
    return sorted(os.fsdecode(path)[2:] for path in raw(rg, folder, "--null", *flags).split(b"\0")[:-1])


@pytest.mark.loops("asyncio")
@pytest.mark.anyio
@pytest.mark.usefixtures("leaks_nothing")
async def test_files_with_and_without_matches_equal_rgs(rg: RgBinary, corpus: Path, anyio_backend: str) -> None:
    with_matches = await taken(ripwrap.files_with_matches("needle", cwd=corpus, rg=rg))
    assert sorted(with_matches) == raw_paths(rg, corpus, "-l", "-eneedle")
    assert sorted(with_matches) == sorted([os.fsdecode(ODD), "two.txt", native("sub/one.py")])
    assert sorted(sync.files_with_matches("needle", cwd=corpus, rg=rg)) == sorted(with_matches)
    without = await taken(ripwrap.files_without_match("needle", cwd=corpus, rg=rg))
    assert sorted(without) == raw_paths(rg, corpus, "--files-without-match", "-eneedle")
    assert (
        sorted(without) == sorted(sync.files_without_match("needle", cwd=corpus, rg=rg)) == [".gitignore", "none.txt"]
    )
    assert await taken(ripwrap.files_with_matches("absent", cwd=corpus, rg=rg)) == []
    assert await taken(ripwrap.files_without_match("", cwd=corpus, rg=rg)) == []


@pytest.mark.anyio
@pytest.mark.usefixtures("leaks_nothing")
async def test_count_counts_lines_and_count_matches_counts_matches(
    rg: RgBinary, corpus: Path, anyio_backend: str
) -> None:
    lines = {one.path: one.count for one in await taken(ripwrap.count("needle", cwd=corpus, rg=rg))}
    assert lines == {"two.txt": 2, native("sub/one.py"): 1, os.fsdecode(ODD): 1}
    matches = {one.path: one.count for one in await taken(ripwrap.count_matches("needle", cwd=corpus, rg=rg))}
    assert matches == {"two.txt": 3, native("sub/one.py"): 1, os.fsdecode(ODD): 1}
    assert {one.path: one.count for one in sync.count("needle", cwd=corpus, rg=rg)} == lines
    assert {one.path: one.count for one in sync.count_matches("needle", cwd=corpus, rg=rg)} == matches
    zero = {one.path: one.count for one in sync.count("needle", cwd=corpus, rg=rg, include_zero=True)}
    assert zero == {**lines, "none.txt": 0, ".gitignore": 0}


def test_lists_and_counts_name_a_single_file(rg: RgBinary, corpus: Path) -> None:
    options: Any = {"cwd": corpus, "rg": rg, "paths": "two.txt"}
    assert list(sync.files_with_matches("needle", **options)) == ["two.txt"]
    assert list(sync.files_without_match("absent", **options)) == ["two.txt"]
    assert list(sync.count("needle", **options)) == [FileCount(path="two.txt", count=2)]
    assert list(sync.count_matches(["needle", "other"], **options)) == [FileCount(path="two.txt", count=4)]


def test_zero_counts_are_listed_although_rg_exits_with_1(rg: RgBinary, plant: Plant) -> None:
    """With `include_zero` rg exits with 1 after it has listed every file."""
    folder = plant({"a": "x"})
    for count in (sync.count, sync.count_matches):
        assert [(one.path, one.count) for one in count("none", cwd=folder, rg=rg, include_zero=True)] == [("a", 0)]
    assert list(sync.files_without_match("none", cwd=folder, rg=rg)) == ["a"]


def test_note_of_rg_does_not_fail_a_listing_that_is_empty(rg: RgBinary, plant: Plant) -> None:
    """rg listed counts, although none of their files is asked for."""
    folder = plant({"a": "needle", ".gitignore": "needle{\n"})
    assert list(sync.files_without_match("needle", cwd=folder, rg=rg)) == []


def test_replace_does_not_change_counts(rg: RgBinary, corpus: Path) -> None:
    assert list(sync.count("needle", cwd=corpus, rg=rg, paths="two.txt", replace="x")) == [
        FileCount(path="two.txt", count=2)
    ]


def test_search_options_apply_to_lists_and_counts(rg: RgBinary, corpus: Path) -> None:
    options: Any = {"cwd": corpus, "rg": rg, "ignore_case": True, "glob": "*.txt", "sort": "path", "no_ignore": True}
    assert list(sync.files_with_matches("NEEDLE", **options)) == ["ignored.txt", "two.txt"]
    assert list(sync.files_with_matches("NEEDLE", limit=1, **options)) == ["ignored.txt"]
    assert list(sync.files_without_match("NEEDLE", **options)) == ["none.txt"]
    assert list(sync.count("NEEDLE", invert_match=True, **options)) == [
        FileCount(path="none.txt", count=1),
        FileCount(path="two.txt", count=1),
    ]
    assert list(sync.count("NEEDLE", max_count=1, limit=0, **options)) == []
    assert [one.count for one in sync.count("NEEDLE", max_count=1, **options)] == [1, 1]


@pytest.mark.parametrize("mode", ["files_with_matches", "files_without_match", "count", "count_matches"])
def test_bad_pattern_is_an_error_and_unreadable_path_a_warning(
    rg: RgBinary, unprivileged: Path, corpus: Path, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    operation = getattr(sync, mode)
    with pytest.raises(PatternError) as caught:
        list(operation("needle(", cwd=corpus, rg=rg))
    assert (caught.value.pattern, caught.value.offset) == ("needle(", 6)
    (corpus / "denied").touch(mode=0)
    assert list(operation("needle|nothing", cwd=corpus, rg=unprivileged, paths=["two.txt", "none.txt", "."]))
    assert "denied: " in caplog.text and "(os error 13)" in caplog.text


@pytest.mark.anyio
async def test_file_types_equal_rgs_type_list(rg: RgBinary, anyio_backend: str) -> None:
    types = await ripwrap.file_types(rg=rg)
    assert types == sync.file_types(rg=rg)
    done = subprocess.run([rg.path, "--type-list"], capture_output=True, text=True, check=True)
    assert [f"{name}: {', '.join(globs)}" for name, globs in types.items()] == done.stdout.splitlines()
    assert "*.py" in types["py"] and types["make"] != ()
    assert ("*.pyi" in types["py"]) == (rg.version >= (14,))  # types differ by version (rg-facts 44)


def test_file_types_raise_when_the_program_is_not_rg(stand_in: Callable[..., Path]) -> None:
    with pytest.raises(SearchError, match="no types today"):
        sync.file_types(rg=stand_in("sys.exit('no types today')"))


def test_malformed_counts_raise_decode_error(stand_in: Callable[..., Path], folder: Path) -> None:
    with pytest.raises(DecodeError, match="not a path and a count"):
        list(sync.count("x", cwd=folder, rg=stand_in("print('a:1')\nprint('b\\0x')")))
    with pytest.raises(DecodeError, match="incomplete"):
        list(sync.count("x", cwd=folder, rg=stand_in("print('b\\0' + '1', end='')")))


names = st.binary(min_size=1, max_size=5).map(lambda name: name.replace(b"\0", b"\n"))


@pytest.mark.posix
@given(st.lists(st.tuples(names, st.integers(0, 10**12))), st.sampled_from([b"\n", b"\r\n", b"\0"]), st.data())
def test_chunking_never_changes_what_is_counted(
    counts: list[tuple[bytes, int]], terminator: bytes, data: st.DataObject
) -> None:
    written = b"".join(b"%b\0%d%b" % (*one, terminator) for one in counts)
    decoder = CountDecoder()
    decoded: list[FileCount] = []
    while written:
        size = data.draw(st.integers(1, len(written)))
        decoded += decoder.feed(written[:size])
        written = written[size:]
    decoder.close()
    assert decoded == [FileCount(path=os.fsdecode(name).removeprefix("./"), count=number) for name, number in counts]


def test_file_types_keep_types_without_globs() -> None:
    assert decode_types(b"a: *.a, *.{b,c}\nb: \n") == {"a": ("*.a", "*.{b,c}"), "b": ("",)}


@pytest.mark.loops("asyncio")
@pytest.mark.slow
@pytest.mark.posix
@pytest.mark.parametrize("mode", ["files_with_matches", "files_without_match", "count", "count_matches"])
async def test_lists_and_counts_stream_while_rg_still_searches(
    newest: RgBinary, corpus: Path, mode: str, anyio_backend: str
) -> None:
    os.mkfifo(corpus / "stuck")
    pattern = "absent" if mode == "files_without_match" else "needle"
    options: dict[str, Any] = {"cwd": corpus, "paths": ["two.txt", "stuck"], "limit": 1, "rg": newest}
    with anyio.fail_after(30):
        (found,) = await taken(getattr(ripwrap, mode)(pattern, **options))
    assert getattr(found, "path", found) == "two.txt"
    assert list(getattr(sync, mode)(pattern, **options, timeout=30)) == [found]


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"context": 1}, {"before_context": 1, "after_context": 2}, {"passthru": True}])
@pytest.mark.parametrize("between", [0, 80_000])
def test_context_does_not_change_whether_a_late_binary_file_is_listed(
    rg: RgBinary, plant: Plant, options: dict[str, Any], between: int
) -> None:
    folder = plant({"a": b"needle\n" + b"x\n" * between + b"\0\n", "b": "nothing\n"})
    listed = {flag: raw(rg, folder, flag, "--regexp=needle") for flag in ("-l", "--files-without-match")}
    here = os.fsencode(native("./"))
    assert listed == {"-l": here + b"a\n" if between else b"", "--files-without-match": here + b"b\n"}
    for multiline in (False, True):
        given: dict[str, Any] = {**options, "multiline": multiline, "cwd": folder, "rg": rg}
        assert list(sync.files_with_matches("needle", **given)) == (["a"] if between else [])
        assert list(sync.files_without_match("needle", **given)) == ["b"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{"invert_match": True}, {"multiline": True}, {"invert_match": True, "multiline": True}]
)
@pytest.mark.parametrize("pattern", ["^foo$", "[^x]", "foo"])
def test_inverted_and_multiline_searches_list_the_files_that_rg_lists(
    rg: RgBinary, plant: Plant, options: dict[str, Any], pattern: str
) -> None:
    end = {"zero": b"foo\n" + b"bar\n" * 30_000 + b"\0\n"}
    folder = plant({"one": "foo\n", "two": "foo\nfoo\n", "mixed": "foo\nbar\n", "three": "foo\nbar\nfoo\n", **end})
    flags = [f"--{name.replace('_', '-')}" for name in options]
    for flag, operation in (("-l", sync.files_with_matches), ("--files-without-match", sync.files_without_match)):
        listed = "".join(
            f"{native('./')}{path}\n" for path in operation(pattern, cwd=folder, rg=rg, sort="path", **options)
        )
        if flag == "-l" and options == {"invert_match": True}:  # rg's own list lacks files with matches (rg-facts 58)
            records = map(
                json.loads, raw(rg, folder, "--json", *flags, "--sort=path", f"--regexp={pattern}").splitlines()
            )
            files = [one["data"]["path"]["text"] for one in records if one["type"] == "begin"]
            assert listed.splitlines() == files
        else:
            assert listed.encode() == raw(rg, folder, flag, *flags, "--sort=path", f"--regexp={pattern}")


LATE = b"needle 1\n" + b"line of text\n" * 10_000 + b"bad \0 byte\n" + b"needle 2\n"
"""rg finds the first needle, and stops at the block with the NUL."""


@pytest.mark.fact(58)
def test_file_with_a_late_nul_has_no_count_and_a_note(
    rg: RgBinary, plant: Plant, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As rg counts it, in every place; a warning says so, and `text=True` counts the file."""
    folder = plant({"late.txt": LATE, "text.txt": "needle needle\n", "early.txt": b"needle\n\0"})
    zipped = tmp_path / "zipped"
    zipped.mkdir()
    with zipfile.ZipFile(zipped / "a.zip", "w") as archive:
        for name in ("late.txt", "text.txt"):
            archive.writestr(name, (folder / name).read_bytes())
    items = Items([(name, (folder / name).read_bytes()) for name in ("late.txt", "early.txt", "text.txt")])
    found = {one.path for one in sync.search("needle", cwd=folder, rg=rg)}
    assert found == {"late.txt", "text.txt"} == set(sync.files_with_matches("needle", cwd=folder, rg=rg))
    places: list[dict[str, Any]] = [
        {"cwd": folder},
        {"cwd": folder, "sort": "path"},
        {"cwd": folder, "include_zero": True},
        {"cwd": folder, "invert_match": True},
        {"cwd": zipped, "inside": "zip"},
        {"where": items},
        {"cwd": folder, "where": Overlay(Directory(), {"text.txt": LATE, "late.txt": "needle needle\n"})},
    ]
    for options in places:
        for call in (sync.count, sync.count_matches):
            caplog.clear()
            counts = list(call("needle", rg=rg, **options))
            assert sum(one.count for one in counts) == (
                0 if "invert_match" in options else 2 if call is not sync.count else 1
            )
            assert "with text=True, it is counted" in caplog.text, options
            caplog.clear()
            assert sum(one.count for one in call("needle", rg=rg, text=True, **options)) > 2
            assert not caplog.records
    caplog.clear()
    assert sum(one.count for one in sync.count("needle", cwd=folder, max_count=1, rg=rg)) == 2
    assert not caplog.records


def test_other_ways_to_count_have_the_note(newest: RgBinary, plant: Plant) -> None:
    """In many roots, on the command line, and in the tool for agents."""
    folder = plant({"late.txt": LATE, "text.txt": "needle needle\n"})
    *counts, end = sync.Repositories(folder, rg=newest).count("needle")
    assert [(one.count, one.files) for one in counts if isinstance(one, RootCount)] == [(1, 1)]
    assert "text=True" in str(end)
    answer = sync.Workspace(folder, rg=newest).grep_content_result("needle", output_mode="count")
    assert {file.path: file.count for file in answer.files} == {"text.txt": 1}
    assert "NUL byte" in str(answer)
    assert cli.output("search", "-c", "needle", cwd=folder).split() == ["text.txt:1"]


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
