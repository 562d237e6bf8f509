"""Comparison of rg's long flags with ripwrap's options, on every rg of the matrix."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import ripwrap
from ripwrap import CapabilityError, SearchError, sync
from ripwrap.binary import RgBinary
from ripwrap.binary.probe import OLDEST
from ripwrap.options import FileOptions, Flag, SearchOptions, option_hints

pytestmark = pytest.mark.rg_matrix

Plant = Callable[..., Path]

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "options.md").read_text()
TAKEN, LEFT_OUT = (
    [row for row in part.splitlines() if row.startswith("| `")] for part in PAGE.split("## Flags that are no options")
)
NO_OPTIONS = {
    flag for row in LEFT_OUT for flag in re.findall(r"`--([a-z0-9-]+)`", row.rpartition("|")[0].rpartition("|")[0])
}

WITHOUT_EFFECT = {
    "byte-offset": (),
    "color": ("always",),
    "colors": ("match:fg:red",),
    "column": (),
    "context-separator": ("==",),
    "field-context-separator": ("==",),
    "field-match-separator": ("==",),
    "heading": (),
    "hyperlink-format": ("default",),
    "max-columns": ("3",),
    "no-filename": (),
    "only-matching": (),
    "pretty": (),
    "stats": (),
    "trim": (),
    "vimgrep": (),
    "with-filename": (),
}
"""Flags that change nothing under `--json`, each with a value if it takes one."""


def long_flags(rg: RgBinary) -> set[str]:
    """Return the flags that `rg --help` lists and the negations that their descriptions name."""
    done = subprocess.run([rg.path, "--help"], capture_output=True, text=True, check=True)
    flags = re.findall(r"^ +(?:-\S(?: \w+)?, )?--([a-z][a-z0-9-]+)", done.stdout, re.MULTILINE)
    negations = re.findall(r"disabled\s+with\s+(?:the\s+)?--([a-z][a-z0-9-]+)", done.stdout)
    assert len(flags) > 80
    return {*flags, *negations}


def positive(flag: str) -> str:
    return flag.removeprefix("no-")


OPTIONS = {key.replace("_", "-") for key in get_type_hints(SearchOptions)} - {"include-git"}
KNOWN = OPTIONS | NO_OPTIONS


def test_every_rg_flag_is_an_option_or_documented_as_excluded(rg: RgBinary) -> None:
    negations = {positive(flag) for flag in KNOWN} | {f"no-{flag}" for flag in KNOWN}
    assert long_flags(rg) - KNOWN - negations == set()


def test_excluded_flags_exist_in_rg_and_are_not_options(rg: RgBinary) -> None:
    assert not NO_OPTIONS & OPTIONS
    newer = {"13.0.0": {"hyperlink-format", "hostname-bin", "generate", "trace", "sort-files"}}
    older = {"no-encoding": "13.0.0"}
    version = ".".join(map(str, rg.version))
    gone = {flag for flag, last in older.items() if version > last}
    assert NO_OPTIONS - long_flags(rg) == newer.get(version, set()) | gone


def test_options_page_lists_every_option_with_its_help() -> None:
    hints = option_hints()
    marks = {key: mark for key, hint in hints.items() for mark in hint.__metadata__ if isinstance(mark, Flag)}
    flags = {key: "" if mark.ours else f"`--{key.replace('_', '-')}`" for key, mark in marks.items()}
    since = {key: "" if mark.ours else ".".join(map(str, mark.since or OLDEST[:1])) for key, mark in marks.items()}
    rows = [
        f"| `{key}` | {flags[key]} | {since[key]} | {mark.help}{' [default: on]' if mark.default else ''} |"
        for key, mark in marks.items()
    ]
    assert rows == TAKEN


def test_flags_documented_without_effect_are_all_tested() -> None:
    (row,) = (row for row in LEFT_OUT if "change nothing" in row)
    assert set(re.findall(r"`--([a-z0-9-]+)`", row)) == WITHOUT_EFFECT.keys()


@pytest.mark.slow
@pytest.mark.fact(12)
def test_display_flags_do_not_change_json_output(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"a.txt": "  needle and needle\nother\n  needle\n", "b/c.txt": "needle\n"})

    def answer(*flags: str) -> list[Any]:
        argv = [rg.path, "--no-config", *flags, "--json", "--sort=path", "-C1", "-e", "needle", "."]
        done = subprocess.run(argv, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
        records = [json.loads(line) for line in done.stdout.splitlines()]
        return [record for record in records if record["type"] in ("begin", "match", "context")]

    plain = answer()
    assert len(plain) == 6
    for flag, value in WITHOUT_EFFECT.items():
        if flag in long_flags(rg):
            assert answer(f"--{flag}" + "".join(f"={one}" for one in value)) == plain, flag


def value_for(key: str, kind: Any) -> Any:
    """Return a value for an option that rg accepts."""
    special = {"type_add": "web:*.vue", "encoding": "utf-8", "sort": "path", "sortr": "path", "engine": "default"}
    if key in special:
        return special[key]
    if key in ("glob", "iglob", "ignore_file", "replace"):
        return "x"
    if key in ("type", "type_not", "type_clear"):
        return "py"
    return True if kind is bool else "10M" if "size" in key else 1


SINCE = {"replace": 15, "stop_on_nonmatch": 14}


@pytest.mark.slow
@pytest.mark.parametrize("key", sorted(get_type_hints(SearchOptions)))
def test_every_option_runs_or_names_the_rg_version_it_needs(rg: RgBinary, plant: Plant, key: str) -> None:
    folder = plant({"a.py": "needle\n", "x": "needle\n"})
    hint = option_hints()[key]
    options: Any = {key: value_for(key, hint.__origin__)}
    if rg.version < (SINCE.get(key, 0),):
        with pytest.raises(CapabilityError, match=rf"{key} needs rg {SINCE[key]} or later"):
            list(sync.search("needle", cwd=folder, rg=rg, **options))
    elif key == "pcre2" and "pcre2" not in rg.features:
        with pytest.raises(CapabilityError, match="PCRE2"):
            list(sync.search("needle", cwd=folder, rg=rg, **options))
    elif key in ("context", "before_context", "after_context", "passthru"):
        assert list(sync.search_messages("needle", cwd=folder, rg=rg, **options))
    else:
        found = list(sync.search("needle", cwd=folder, rg=rg, **options))
        assert found or key == "invert_match"
    if key in get_type_hints(FileOptions):
        assert list(sync.files(cwd=folder, rg=rg, **options))


def test_options_declare_the_first_rg_version_that_supports_them() -> None:
    hints = option_hints()
    marks = {key: mark for key, hint in hints.items() for mark in hint.__metadata__ if isinstance(mark, Flag)}
    assert {key: mark.since for key, mark in marks.items() if mark.since} == {
        "replace": (15,),
        "stop_on_nonmatch": (14,),
    }


@pytest.mark.anyio
async def test_unsupported_option_raises_before_rg_starts(rg: RgBinary, folder: Path, anyio_backend: str) -> None:
    search = ripwrap.search("x", cwd=folder, rg=rg, replace="y")
    if rg.version >= (15,):
        assert [match async for match in search] == []
        return
    with pytest.raises(CapabilityError) as caught:
        await anext(search)
    assert caught.value.argv == ()
    assert "ripwrap[bin]" in caught.value.hint


@pytest.mark.slow
def test_options_have_their_documented_effect(rg: RgBinary, plant: Plant) -> None:
    """Check the options that do more than pass a flag to rg."""
    folder = plant(
        {
            "a.vue": "needle\r\n",
            "B.TXT": "one\nneedle\nneedle\nother\nneedle\n",
            "rules": "*.vue\n",
            "zeros": b"needle\0other\0needle\0",
            "late": b"needle\n" + b"x" * 70_000 + b"\0\nneedle\n",
            "utf16": "needle é\n".encode("utf-16"),
        }
    )

    def lines(pattern: str, **options: Any) -> list[str]:
        return sorted(f"{match.path}:{match.text}" for match in sync.search(pattern, cwd=folder, rg=rg, **options))

    assert lines("needle", type_add="web:*.vue", type="web") == ["a.vue:needle"]
    assert lines("needle$", glob="*.vue") == []
    assert lines("needle$", glob="*.vue", crlf=True) == ["a.vue:needle"]
    assert lines("needle", glob="*.txt", glob_case_insensitive=True, max_count=1) == ["B.TXT:needle"]
    assert lines("needle", ignore_file=folder / "rules", glob="!*.TXT") == ["late:needle", "utf16:needle é"]
    assert lines("needle", glob="zeros", null_data=True, text=True) == ["zeros:needle", "zeros:needle"]
    assert lines("^needle", glob="late") == ["late:needle"]
    assert lines("^needle", glob="late", binary=True) == ["late:needle", "late:needle"]
    assert lines("^other$", glob="zeros", binary=True) == ["zeros:other"]
    assert lines("^needle", glob="late", text=True) == ["late:needle", "late:needle"]
    assert lines(r"é", glob="utf16") == ["utf16:needle é"]
    assert lines(r"\w", glob="utf16", no_unicode=True) == ["utf16:needle é"]
    assert lines(r"\w{7}", ignore_case=True, engine="auto") == []
    assert [
        match.line_number for match in sync.search("needle", cwd=folder, rg=rg, glob="B*", no_line_number=True)
    ] == [None] * 3
    if rg.version >= (14,):
        stopped = sync.search("needle", cwd=folder, rg=rg, glob="B*", stop_on_nonmatch=True)
        assert [match.line_number for match in stopped] == [2, 3]
    every = [
        (one.type, one.line_number)
        for one in sync.search_messages("other", cwd=folder, rg=rg, glob="B*", passthru=True)
        if one.type in ("match", "context")
    ]
    assert every == [("context", 1), ("context", 2), ("context", 3), ("match", 4), ("context", 5)]


def test_missing_ignore_file_is_reported(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"a": "needle"})
    *_, summary = sync.search_messages("needle", cwd=folder, rg=rg, ignore_file="rules")
    assert summary.type == "summary"
    assert [(error.path, error.kind) for error in summary.errors] == [("rules", "missing")]


def test_unknown_encoding_error_links_to_the_valid_encodings(rg: RgBinary, folder: Path) -> None:
    with pytest.raises(SearchError, match="unknown encoding: klingon") as caught:
        list(sync.search("x", cwd=folder, rg=rg, encoding="klingon"))
    assert "encoding.spec.whatwg.org" in caught.value.hint
