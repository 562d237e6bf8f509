"""Facts about rg, checked with every rg of the matrix, and how ripwrap handles them.

The marker `fact(N)` names the number of a fact in docs/reference/rg-facts.md, here and in other test modules.
"""

import ast
import inspect
import json
import logging
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import IO, Any

import pytest
from pydantic import ValidationError

import ripwrap
from ripwrap import CapabilityError, Context, End, Match, PatternError, SearchError, Summary, sync
from ripwrap.binary import RgBinary
from ripwrap.options import SearchOptions
from support import forks, rgs
from support.waiting import until_blocking

Plant = Callable[..., Path]
StandIn = Callable[..., Path]
Seen = dict[str, tuple[list[int], int | None]]
"""The lines that match and the `binary_offset` of each file."""

pytestmark = [pytest.mark.slow, pytest.mark.rg_matrix, pytest.mark.usefixtures("leaks_nothing")]

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "reference" / "rg-facts.md"
FACTS = set(range(1, 36))

SEARCHES: dict[str, Callable[..., Any]] = {
    "search": sync.search,
    "search_messages": sync.search_messages,
    "grep": sync.grep,
    "files_with_matches": sync.files_with_matches,
    "files_without_match": sync.files_without_match,
    "count": sync.count,
    "count_matches": sync.count_matches,
}


def raw(rg: RgBinary, folder: Path, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    """Run rg itself with stdin closed."""
    argv = [rg.path, *arguments]
    return subprocess.run(argv, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=30)


def records(rg: RgBinary, folder: Path, *arguments: str) -> list[dict[str, Any]]:
    """Return rg's JSON with each record as one flat object."""
    lines = raw(rg, folder, "--no-config", "--json", *arguments).stdout.split(b"\n")[:-1]
    return [{"type": record["type"], **record["data"]} for record in map(json.loads, lines)]


def matches(rg: RgBinary, folder: Path, *arguments: str) -> list[dict[str, Any]]:
    return [record for record in records(rg, folder, *arguments) if record["type"] == "match"]


def summary(folder: Path, rg: RgBinary, pattern: str = "needle", **options: Any) -> Summary:
    *_, last = sync.search_messages(pattern, cwd=folder, rg=rg, **options)
    assert isinstance(last, Summary)
    return last


def listed(folder: Path, **options: Any) -> list[str]:
    return sorted(sync.files(cwd=folder, **options))


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """Program that prints "needle" and creates the file `trace`."""
    path = tmp_path / "bin" / "gzip"  # the program that `--search-zip` runs
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\necho needle\ntouch "{tmp_path}/trace"\n')
    path.chmod(0o755)
    return path


def sprung(trap: Path) -> bool:
    """Return True if the program ran since the last call."""
    trace = trap.parent.parent / "trace"
    there = trace.exists()
    trace.unlink(missing_ok=True)
    return there


# Start of rg


EVERY_WAY = """
import os, sys
from ripwrap import sync
reading, _ = os.pipe()  # the other end stays open
os.dup2(reading, 0)
rg = sys.argv[1]
searched = [match.path for match in sync.search("needle", rg=rg)]
print(searched, list(sync.files(rg=rg)), sync.grep("needle", rg=rg).total_matches)
"""


@pytest.mark.fact(1)
@pytest.mark.usefixtures("fork_server")
def test_rg_without_a_path_reads_stdin_and_ripwrap_never_does(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"a": "needle\n"})
    argv = [rg.path, "--no-config", "needle"]
    with subprocess.Popen(argv, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as searching:
        assert searching.stdin is not None
        searching.stdin.write(b"x\n" * 500_000)  # more than a pipe holds, so that rg reads it
        assert searching.poll() is None
        assert searching.communicate(b"needle of stdin\n", timeout=30)[0] == b"needle of stdin\n"
    done = forks.run(["-c", rg.path], EVERY_WAY, cwd=folder, env=os.environ)
    assert (done.stdout, done.stderr) == ("['a'] ['a'] 1\n", "")


@pytest.mark.fact(2)
def test_config_file_can_start_programs_in_rg_and_ripwrap_reads_none(
    rg: RgBinary, plant: Plant, trap: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = plant({"a": "other\n"})
    config = tmp_path / "config"
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(config))

    def ripwrap_ignores_it() -> bool:
        everything = [match.lines for match in sync.search(["needle", "other"], cwd=folder, rg=rg)], listed(folder)
        return everything == (["other\n"], ["a"]) and not sprung(trap)

    missing = raw(rg, folder, "other", ".")
    assert (missing.returncode, missing.stdout) == (0, b"./a:other\n") and os.fsencode(config) in missing.stderr
    assert ripwrap_ignores_it()
    config.write_text(f"--pre={trap}\n")
    assert raw(rg, folder, "needle", ".").stdout == b"./a:needle\n" and sprung(trap)
    assert ripwrap_ignores_it()
    config.write_text("--no-such-flag\n")
    assert raw(rg, folder, "other", ".").returncode == 2
    assert ripwrap_ignores_it()


@pytest.mark.fact(3)
@pytest.mark.parametrize(
    ("where", "since"), [("HOME", (13,)), ("XDG_CONFIG_HOME", (13,)), ("GIT_CONFIG_GLOBAL", (15, 2))]
)
def test_global_gitignore_applies_unless_no_ignore_global(
    rg: RgBinary,
    plant: Plant,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    where: str,
    since: tuple[int, ...],
) -> None:
    rules = tmp_path / "xdg" / "git" / "ignore"
    rules.parent.mkdir(parents=True)
    rules.write_text("*.log\n")
    settings = tmp_path / "home" / ".gitconfig"
    settings.parent.mkdir()
    settings.write_text(f"[core]\nexcludesFile = {rules}\n")
    values = {"HOME": settings.parent, "XDG_CONFIG_HOME": tmp_path / "xdg", "GIT_CONFIG_GLOBAL": settings}
    for name in ("XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    monkeypatch.setenv(where, str(values[where]))

    folder = plant({".git/HEAD": "", "a": "", "b.log": ""})
    expected = ["a"] if rg.version >= since else ["a", "b.log"]
    assert raw(rg, folder, "--no-config", "--files", "--sort=path").stdout.decode().split() == expected
    assert listed(folder, rg=rg) == expected
    assert listed(folder, rg=rg, no_ignore_global=True) == ["a", "b.log"]


@pytest.mark.fact(3)
def test_ignore_files_of_parents_apply_unless_no_ignore_parent(rg: RgBinary, plant: Plant) -> None:
    names = ["a", "b", "c", "d"]
    folder = plant({".ignore": "a", ".rgignore": "b", ".gitignore": "c", **{f"sub/{name}": "" for name in names}})
    assert raw(rg, folder / "sub", "--no-config", "--no-require-git", "--files").stdout == b"d\n"
    assert listed(folder / "sub", rg=rg) == ["d"]
    assert listed(folder / "sub", rg=rg, no_ignore_parent=True) == names


@pytest.mark.fact(4)
def test_pattern_that_looks_like_a_flag_starts_no_program_in_ripwrap(rg: RgBinary, plant: Plant, trap: Path) -> None:
    flag = f"--pre={trap}"
    folder = plant({"a": f"x {flag} x\n"})
    raw(rg, folder, "--json", flag, ".")
    assert sprung(trap)
    assert [match.path for match in sync.search(flag, cwd=folder, rg=rg, fixed_strings=True)] == ["a"]
    assert not sprung(trap)
    assert [error.path for error in summary(folder, rg, "x", paths=["a", flag]).errors] == [flag]
    assert listed(folder, rg=rg, glob=[flag, f"!{flag}"]) == []
    assert not sprung(trap)


@pytest.mark.fact(5)
def test_flags_that_start_programs_can_be_negated(
    rg: RgBinary, plant: Plant, trap: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = plant({"a": "x\n", "b.gz": "x\n"})
    monkeypatch.setenv("PATH", f"{trap.parent}{os.pathsep}{os.environ['PATH']}")
    for flag, off in ((f"--pre={trap}", "--no-pre"), ("--search-zip", "--no-search-zip")):
        assert b"b.gz:needle" in raw(rg, folder, "--no-config", flag, "needle", ".").stdout
        assert sprung(trap)
        assert raw(rg, folder, "--no-config", flag, off, "needle", ".").returncode == 1
        assert not sprung(trap)
    assert [match.path for match in sync.search("x", cwd=folder, rg=rg, sort="path")] == ["a", "b.gz"]
    assert not sprung(trap)


@pytest.mark.fact(5)
@pytest.mark.parametrize(
    "name",
    [
        *("pre", "pre_glob", "search_zip", "hostname_bin"),  # start programs
        *("file", "debug", "trace", "no_config", "no_messages"),  # read unrequested files, or hide messages
        *("json", "files", "type_list", "count", "count_matches", "files_with_matches", "files_without_match", "quiet"),
    ],
)
def test_operations_reject_flags_that_are_not_options(name: str, folder: Path) -> None:
    """Reject the flag before rg runs: the rg of this test does not exist."""
    options: Any = {name: "x"}
    searches: list[Any] = [*SEARCHES.values(), ripwrap.search, ripwrap.search_messages]
    for operation in searches:
        if name in inspect.signature(operation).parameters:
            continue  # `count` of `grep()` is no flag
        with pytest.raises(ValidationError, match=name):
            operation("x", rg=folder / "none", **options)
    for listing in (sync.files, ripwrap.files, sync.tree):
        with pytest.raises(ValidationError, match=name):
            listing(rg=folder / "none", **options)


@pytest.mark.fact(6)
def test_rg_14_uses_the_last_of_two_modes_and_rg_13_rejects_two(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"a": "needle\n"})

    def said(*flags: str) -> tuple[int, bytes]:
        done = raw(rg, folder, "--no-config", *flags)
        return done.returncode, done.stdout

    pairs = {
        "--files-with-matches": (0, b"./a\n"),
        "--files-without-match": (1, b""),
        "--count": (0, b"./a:1\n"),
        "--count-matches": (0, b"./a:1\n"),
    }
    for mode, answer in pairs.items():
        if rg.version < (14,):
            assert said("--json", mode, "needle", ".") == said(mode, "--json", "needle", ".") == (2, b"")
        else:
            assert said("--json", mode, "needle", ".") == answer
            assert said(mode, "--json", "needle", ".")[1].startswith(b'{"type":"begin"')
    if rg.version < (14,):
        assert said("--json", "--files", ".") == said("--files", "--json", ".") == (2, b"")
    else:
        assert said("--json", "--files", ".") == (0, b"./a\n")
        # rg takes the path for the pattern.
        assert json.loads(said("--files", "--json", ".")[1].split(b"\n")[1])["data"]["submatches"][0]["end"] == 1
    assert b"*.py" in said("--json", "--type-list")[1]


@pytest.mark.fact(6)
def test_every_operation_sets_one_mode(stand_in: StandIn, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    rg = stand_in(f"open({str(seen)!r}, 'w').write('\\n'.join(sys.argv[1:])); sys.exit(3)")
    modes = {f"--{name.replace('_', '-')}" for name in SEARCHES} | {"--json", "--files", "--type-list", "--quiet"}

    def mode() -> list[str]:
        flags = seen.read_text().split("\n")
        return [flag for flag in flags[: flags.index("--")] if flag in modes]

    for name, operation in SEARCHES.items():
        with pytest.raises(SearchError):
            list(operation("--files", rg=rg))
        own = "--count-matches" if name == "count_matches" else "--count"  # the others list files, see fact 51
        assert mode() == ["--json" if name in ("search", "search_messages", "grep") else own]
    with pytest.raises(SearchError):
        list(sync.files(rg=rg))
    assert mode() == ["--files"]


ALONE = """#!{python} -ES
import os, resource, sys
rg = os.open({rg!r}, os.O_RDONLY)
if os.geteuid() == 0:  # whose processes are not counted
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
os.execve(rg, ["rg", *sys.argv[1:]], os.environ)
"""


@pytest.mark.fact(8)
@pytest.mark.loops("asyncio")  # `test_rg_that_cannot_start_threads_is_retried_with_one` has both
@pytest.mark.anyio
async def test_rg_without_threads_panics_and_ripwrap_retries_with_one(
    rg: RgBinary, plant: Plant, tmp_path: Path, caplog: pytest.LogCaptureFixture, anyio_backend: str
) -> None:
    folder = plant({"a": "needle\n"})
    launcher = tmp_path / "alone"
    launcher.write_text(ALONE.format(python=sys.executable, rg=rg.path))
    launcher.chmod(0o755)
    alone = RgBinary(str(launcher), "argument")
    panic = raw(alone, folder, "--no-config", "--json", "--threads=4", "needle", ".")
    assert (panic.returncode, panic.stdout) == (101, b"")
    assert b"failed to spawn" in panic.stderr and b"code: 11" in panic.stderr
    with caplog.at_level(logging.INFO, "ripwrap"):
        found = [match.path async for match in ripwrap.search("needle", cwd=folder, rg=alone, threads=4)]
        result = await ripwrap.grep("needle", cwd=folder, rg=alone, threads=4)
        assert (found, result.total_matches, result.exact) == (["a"], 1, True)
        assert list(sync.files(cwd=folder, rg=alone, threads=4)) == ["a"]
    assert caplog.messages == ["rg could not start a thread; trying again with one thread"] * 3


ON_WINDOWS = r"""
import os, pathlib, subprocess, pydantic
os.sep, os.altsep = "\\", "/"
from ripwrap._ripgrep.command import files_query, render
from ripwrap._ripgrep.decoder import MessageDecoder, PathDecoder
from ripwrap._ripgrep.exit_status import path_errors
print(render(files_query(".", [r".\a", "./b", r".\.\-", r"C:\x"], {}))[-4:])
record = rb'{"type":"begin","data":{"path":{"text":".\\a\\b"}}}'
print([message.path for message in MessageDecoder().feed(record + b"\n" + record.replace(b".", b"C:") + b"\n")])
print(PathDecoder().feed(b".\\a\\b\0C:\\x\0"))
(error,) = path_errors(b"rg: .\\a: The system cannot find the file specified. (os error 2)\n")
print((error.path, error.kind))
"""


@pytest.mark.fact(9)
def test_windows_paths_and_errors_are_parsed() -> None:
    done = subprocess.run([sys.executable, "-c", ON_WINDOWS], capture_output=True, text=True, check=True, timeout=30)
    assert [ast.literal_eval(line) for line in done.stdout.splitlines()] == [
        ("a", "b", ".\\-", "C:\\x"),
        ["a\\b", "C:\\a\\b"],
        ["a\\b", "C:\\x"],
        ("a", "missing"),
    ]


@pytest.mark.fact(10)
@pytest.mark.parametrize(
    "variables",
    [
        {"LC_ALL": "C"},
        {"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8"},
        {"NO_COLOR": "1", "TERM": "dumb"},
        {"CLICOLOR_FORCE": "1", "COLORTERM": "truecolor", "TERM": "xterm-256color"},
        {"GREP_OPTIONS": "--invert-match", "GREP_COLORS": "mt=31"},
    ],
)
def test_locale_and_color_variables_do_not_change_matches(
    rg: RgBinary, plant: Plant, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    folder = plant({"é": "naïve NEEDLE IŞIK\nother\n"})

    def answers() -> tuple[list[dict[str, Any]], list[Match]]:
        found = matches(rg, folder, "--ignore-case", "needle i", ".")
        return found, list(sync.search("needle i", cwd=folder, rg=rg, ignore_case=True))

    before = answers()
    assert [len(answer) for answer in before] == [1, 1]
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert answers() == before


# Output of rg


@pytest.mark.fact(11)
@pytest.mark.anyio
async def test_record_longer_than_any_buffer_is_read_whole(rg: RgBinary, plant: Plant, anyio_backend: str) -> None:
    """Read a record over 64 KiB, which asyncio's own reader refuses."""
    line = "x" * 150_000 + "needle" + "x" * 150_000 + "\n"
    folder = plant({"min.js": line + "needle\n"})
    assert max(map(len, raw(rg, folder, "--no-config", "--json", "needle").stdout.split(b"\n"))) > 300_000
    async_way = [match.lines async for match in ripwrap.search("needle", cwd=folder, rg=rg)]
    assert async_way == [line, "needle\n"]
    assert [match.lines for match in sync.search("needle", cwd=folder, rg=rg)] == async_way


@pytest.mark.fact(12)
def test_max_columns_does_not_shorten_records_and_is_not_an_option(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"min.js": "x" * 150_000 + "needle" + "x" * 150_000 + "\n"})
    plain = matches(rg, folder, "needle")
    assert len(plain[0]["lines"]["text"]) == 300_007
    assert matches(rg, folder, "--max-columns=100", "needle") == plain
    assert matches(rg, folder, "--max-columns=100", "--max-columns-preview", "needle") == plain
    with pytest.raises(ValidationError, match="max_columns"):
        sync.search("needle", cwd=folder, rg=rg, max_columns=100)  # type: ignore[call-overload]


@pytest.mark.fact(12)
def test_submatches_and_escapes_enlarge_a_record(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"hits": "x" * 20_000 + "\n", "escapes": b"\x01" * 10_000 + b"y\n"})
    lines = raw(rg, folder, "--no-config", "--json", "x").stdout.split(b"\n")
    assert max(map(len, lines)) > 800_000
    (match,) = sync.search("x", cwd=folder, rg=rg)
    assert len(match.submatches) == 20_000 and match.spans()[-1] == (19_999, 20_000)
    lines = raw(rg, folder, "--no-config", "--json", "y").stdout.split(b"\n")
    assert max(map(len, lines)) > 60_000
    (match,) = sync.search("y", cwd=folder, rg=rg)
    assert match.raw_lines == b"\x01" * 10_000 + b"y\n"


@pytest.mark.fact(12)
def test_record_limit_counts_the_record_and_not_the_line(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"escapes": b"\x01" * (4 << 20) + b"needle\n"})
    assert summary(folder, rg).dropped_records == 1
    assert summary(plant({"escapes": b"x" * (4 << 20) + b"needle\n"}), rg).dropped_records == 0


@pytest.mark.fact(14)
def test_line_number_may_be_null_and_submatches_may_be_empty(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"a": "needle\nother\n"})
    assert [match["line_number"] for match in matches(rg, folder, "--no-line-number", "needle")] == [None]
    assert [match.line_number for match in sync.search("needle", cwd=folder, rg=rg, no_line_number=True)] == [None]
    assert [match["submatches"] for match in matches(rg, folder, "--invert-match", "needle")] == [[]]
    assert [match.submatches for match in sync.search("needle", cwd=folder, rg=rg, invert_match=True)] == [()]
    across = sync.search(r"needle\n\Kother", cwd=folder, rg=rg, pcre2=True, multiline=True)
    if "pcre2" in rg.features:
        (hit,) = matches(rg, folder, "--pcre2", "--multiline", r"needle\n\Kother")
        assert (hit["lines"], hit["submatches"]) == ({"text": "other\n"}, [])
        (match,) = across
        assert (match.text, match.submatches, match.spans(), match.ranges()) == ("other", (), (), ())
    else:
        with pytest.raises(CapabilityError):
            list(across)


@pytest.mark.fact(14)
def test_path_dash_is_stdin_in_rg_and_a_file_in_ripwrap(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"a": "needle\n"})
    argv = [rg.path, "--no-config", "--json", "needle", "-"]
    done = subprocess.run(argv, cwd=folder, input=b"needle\n", capture_output=True, check=True, timeout=30)
    assert json.loads(done.stdout.split(b"\n")[0])["data"] == {"path": {"text": "<stdin>"}}
    with pytest.raises(FileNotFoundError, match="no such file"):
        summary(folder, rg, paths="-")
    plant({"-": "needle\n"})
    assert [match.path for match in sync.search("needle", cwd=folder, rg=rg, paths="-")] == ["-"]


@pytest.mark.fact(15)
def test_offsets_refer_to_the_decoded_line(rg: RgBinary, plant: Plant) -> None:
    text = "one\nné needle\n"
    folder = plant(
        {"bom": b"\xef\xbb\xbf" + text.encode(), "first": b"\xef\xbb\xbfneedle\n", "utf16": text.encode("utf-16")}
    )
    places = {"bom": (4, 4, 10), "first": (0, 0, 6), "utf16": (4, 4, 10)}

    def by_rg(*flags: str) -> dict[str, tuple[int, int, int]]:
        return {
            match["path"]["text"]: (match["absolute_offset"], *(match["submatches"][0][at] for at in ("start", "end")))
            for match in matches(rg, folder, *flags, "needle")
        }

    def by_ripwrap(**options: Any) -> dict[str | None, tuple[int, int, int]]:
        found = sync.search("needle", cwd=folder, rg=rg, **options)
        return {
            match.path: (match.absolute_offset, match.submatches[0].start, match.submatches[0].end) for match in found
        }

    assert by_rg() == by_ripwrap() == places
    for match in sync.search("needle", cwd=folder, rg=rg):
        ((start, end),) = match.spans()
        assert match.lines[start:end] == "needle"
    as_they_lie = {"bom": (7, 4, 10), "first": (0, 3, 9)}
    assert by_rg("--encoding=none") == by_ripwrap(encoding="none") == as_they_lie
    assert by_rg("--replace=much longer") == places
    if rg.version >= (15,):
        assert by_ripwrap(replace="much longer") == places


@pytest.mark.fact(17)
def test_adjacent_multiline_matches_share_one_record(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"f": "a\nb\na\nb\nother\na\nb\n"})
    found = [
        (match["line_number"], match["lines"]["text"], [(hit["start"], hit["end"]) for hit in match["submatches"]])
        for match in matches(rg, folder, "--multiline", r"a\nb")
    ]
    assert found == [(1, "a\nb\na\nb\n", [(0, 3), (4, 7)]), (6, "a\nb\n", [(0, 3)])]
    ours = list(sync.search(r"a\nb", cwd=folder, rg=rg, multiline=True))
    assert [(match.line_number, match.lines, list(match.spans())) for match in ours] == found
    assert [match.ranges() for match in ours] == [((1, 0, 2, 1), (3, 0, 4, 1)), ((6, 0, 7, 1),)]
    assert len(list(sync.search(r"a\nb", cwd=folder, rg=rg, multiline=True, limit=1))) == 1
    assert sync.grep(r"a\nb", cwd=folder, rg=rg, multiline=True).total_matches == 2


@pytest.mark.fact(17)
def test_newline_in_a_pattern_needs_multiline_even_with_fixed_strings(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"f": "a\nb\n"})
    assert b"is not allowed in a regex" in raw(rg, folder, "--no-config", "--fixed-strings", "a\nb", ".").stderr
    with pytest.raises(PatternError, match="multiline=True"):
        list(sync.search("a\nb", cwd=folder, rg=rg, fixed_strings=True))
    assert len(list(sync.search("a\nb", cwd=folder, rg=rg, fixed_strings=True, multiline=True))) == 1


@pytest.mark.fact(18)
def test_context_gaps_have_no_record_and_passthru_yields_every_line(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"f": "needle\nneedle\nx\ny\nz\nw\nneedle\n"})

    def by_rg(*flags: str) -> list[tuple[str, int | None]]:
        return [(record["type"], record.get("line_number")) for record in records(rg, folder, *flags, "needle")][1:-2]

    def by_ripwrap(**options: Any) -> list[tuple[str, int | None]]:
        messages = sync.search_messages("needle", cwd=folder, rg=rg, **options)
        return [(one.type, one.line_number) for one in messages if isinstance(one, (Match, Context))]

    around = [("match", 1), ("match", 2), ("context", 3), ("context", 6), ("match", 7)]
    assert by_rg("--context=1") == by_ripwrap(context=1) == around
    every = [("match" if number in (1, 2, 7) else "context", number) for number in range(1, 8)]
    assert by_rg("--passthru") == by_ripwrap(passthru=True) == every
    # The context after the last match of --max-count may have further matches.
    assert by_rg("--max-count=1", "--after-context=1") == by_ripwrap(max_count=1, after_context=1) == every[:2]


@pytest.mark.fact(19)
def test_max_count_is_per_file_and_limit_is_per_search(rg: RgBinary, plant: Plant) -> None:
    folder = plant(dict.fromkeys("abc", "needle\n" * 5))
    assert len(matches(rg, folder, "--max-count=2", "needle", ".")) == 6
    assert len(list(sync.search("needle", cwd=folder, rg=rg, max_count=2))) == 6
    assert len(list(sync.search("needle", cwd=folder, rg=rg, limit=2))) == 2
    page = sync.grep("needle", cwd=folder, rg=rg, limit=2)
    assert (page.total_matches, page.truncated, page.next_offset) == (15, True, 2)
    assert not sync.grep("needle", cwd=folder, rg=rg, limit=15).truncated


@pytest.mark.fact(20)
def test_searched_part_of_a_binary_file_depends_on_how_it_is_read(rg: RgBinary, plant: Plant) -> None:
    """Compare reading with memory maps: in these, rg looks for NUL only in the first bytes and in matches."""
    folder = plant({"early": b"\0\nneedle\n", "late": b"needle\n" + b"x" * 70_000 + b"\0\nneedle\n"})

    def by_rg(*arguments: str) -> Seen:
        seen: Seen = {}
        for record in records(rg, folder, *arguments):
            if record["type"] == "match":
                seen.setdefault(Path(record["path"]["text"]).name, ([], None))[0].append(record["line_number"])
            elif record["type"] == "end":
                name = Path(record["path"]["text"]).name
                seen[name] = (seen[name][0], record["binary_offset"])
        return seen

    def by_ripwrap(**options: Any) -> Seen:
        messages = list(sync.search_messages("needle", cwd=folder, rg=rg, **options))
        lines = [one for one in messages if isinstance(one, Match)]
        return {
            end.path or "": ([one.line_number or 0 for one in lines if one.path == end.path], end.binary_offset)
            for end in messages
            if isinstance(end, End)
        }

    names = ["early", "late"]
    assert by_rg("needle", ".") == by_ripwrap() == {"late": ([1], 70_007)}
    # In a file that is named, rg takes each NUL for the end of a line.
    named = {"early": ([3], 0), "late": ([1, 4], 70_007)}
    assert by_rg("--no-mmap", "needle", *names) == by_ripwrap(paths=names, mmap=False) == named
    mapped = {"early": ([2], 0), "late": ([1, 3], None)}
    assert by_rg("--mmap", "needle", *names) == by_ripwrap(paths=names, mmap=True) == mapped
    whole = {"early": ([2], None), "late": ([1, 3], None)}
    assert by_rg("--text", "needle", ".") == by_ripwrap(text=True) == whole
    assert "1 file taken for binary" in sync.grep("needle", cwd=folder, rg=rg).message


@pytest.mark.posix
@pytest.mark.fact(21)
@pytest.mark.parametrize(
    ("flags", "at_once"),
    [
        (["--sort=path"], False),
        (["--threads=1"], False),
        (["--sort=path", "--line-buffered"], True),
        (["--threads=1", "--line-buffered"], True),
        (["--threads=2"], True),
    ],
)
def test_rg_buffers_with_sort_or_one_thread_unless_line_buffered(
    rg: RgBinary, plant: Plant, flags: list[str], at_once: bool
) -> None:
    folder = plant({"a": "needle\n"})
    os.mkfifo(folder / "fifo")
    argv = [rg.path, "--no-config", "--json", *flags, "needle", "a", "fifo"]
    with subprocess.Popen(argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as searching:
        assert searching.stdout is not None
        # Blocks until rg opens it too; then one thread has finished `a`.
        writing = os.open(folder / "fifo", os.O_WRONLY)
        try:
            if at_once:
                assert searching.stdout.readline().startswith(b'{"type":"begin"')
            else:
                assert select.select([searching.stdout], [], [], 0)[0] == []
        finally:
            os.close(writing)
        assert b'"type":"summary"' in searching.communicate(timeout=30)[0]


@pytest.mark.fact(21)
@pytest.mark.fact(22)
def test_file_order_varies_between_runs_unless_sorted(rg: RgBinary, plant: Plant) -> None:
    names = [f"{number:03}" for number in range(300)]
    folder = plant(dict.fromkeys(names, "needle\nneedle\n"))

    def order() -> list[str]:
        return [match["path"]["text"] for match in matches(rg, folder, "--threads=8", "needle", ".")]

    first = order()
    assert any(order() != first for _ in range(50))

    messages = list(sync.search_messages("needle", cwd=folder, rg=rg, threads=8))[:-1]
    blocks = [messages[at : at + 4] for at in range(0, len(messages), 4)]
    assert {tuple(one.type for one in block) for block in blocks} == {("begin", "match", "match", "end")}
    assert all(len({one.path for one in block if not isinstance(one, Summary)}) == 1 for block in blocks)
    assert list(sync.files(cwd=folder, rg=rg, sort="path", threads=8)) == names
    assert [file.path for file in sync.grep("needle", cwd=folder, rg=rg, limit=None, threads=8).files] == names


@pytest.mark.fact(23)
def test_listing_needs_nul_separators_and_empty_listing_exits_1(rg: RgBinary, plant: Plant, folder: Path) -> None:
    assert (raw(rg, folder, "--no-config", "--files").returncode, listed(folder, rg=rg)) == (1, [])
    plant({"two\nlines": "", b"\xff": ""})
    listing = raw(rg, folder, "--no-config", "--files", "--sort=path").stdout
    assert listing == b"two\nlines\n\xff\n"
    assert raw(rg, folder, "--no-config", "--files", "--sort=path", "--null").stdout == b"two\nlines\0\xff\0"
    assert list(sync.files(cwd=folder, rg=rg, sort="path")) == ["two\nlines", os.fsdecode(b"\xff")]


@pytest.mark.fact(24)
def test_paths_keep_the_given_form_without_a_leading_dot(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"sub/a": "needle\n"})
    forms = {
        (): ("sub/a", "sub/a"),
        (".",): ("./sub/a", "sub/a"),
        ("sub",): ("sub/a", "sub/a"),
        ("./sub",): ("./sub/a", "sub/a"),
        (str(folder),): (f"{folder}/sub/a", f"{folder}/sub/a"),
    }
    for given, (theirs, ours) in forms.items():
        assert raw(rg, folder, "--no-config", "--files", *given).stdout.decode() == f"{theirs}\n"
        assert [match["path"]["text"] for match in matches(rg, folder, "needle", *given)] == [theirs]
        assert listed(folder, rg=rg, paths=given) == [ours]
        assert [match.path for match in sync.search("needle", cwd=folder, rg=rg, paths=given)] == [ours]
        assert [file.path for file in sync.grep("needle", cwd=folder, rg=rg, paths=given).files] == [ours]


@pytest.mark.posix
@pytest.mark.fact(25)
def test_summary_counts_depend_on_the_rg_version(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"a": "needle\n", "b": "no\n", "c": "no\n"})
    of_all = rg.version >= (15,)

    def counted(pattern: str) -> tuple[int, int]:
        (last,) = (record for record in records(rg, folder, pattern, ".") if record["type"] == "summary")
        return last["stats"]["searches"], last["stats"]["bytes_searched"]

    assert counted("needle") == ((3, 13) if of_all else (1, 7))
    assert counted("absent") == ((3, 13) if of_all else (0, 0))
    stats = summary(folder, rg).stats
    assert (stats.searches, stats.bytes_searched, stats.searches_with_match) == (*counted("needle"), 1)

    assert raw(rg, folder, "--no-config", "--json", "(", ".").stdout == b""
    with pytest.raises(PatternError):
        list(sync.search_messages("(", cwd=folder, rg=rg))
    quiet = [record["type"] for record in records(rg, folder, "--quiet", "needle", ".")]
    assert quiet == (["summary"] if rg.version >= (14,) else [])
    nothing = raw(rg, folder, "--no-config", "--json", "--max-count=0", "needle", ".")
    assert (nothing.returncode, nothing.stdout) == (1, b"")
    assert list(sync.search("needle", cwd=folder, rg=rg, max_count=0)) == []

    (folder / "broken").symlink_to("nowhere")
    assert records(rg, folder, "--follow", "needle", ".")[-1]["type"] == "summary"
    assert len(summary(folder, rg).errors) == 1


@pytest.mark.posix
@pytest.mark.fact(26)
def test_full_stderr_pipe_blocks_rg_and_never_blocks_ripwrap(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"good": "needle\n"})
    for number in range(800):
        (folder / f"{'x' * 100}{number}").symlink_to("nowhere")
    reading, writing = os.pipe()
    argv = [rg.path, "--no-config", "--json", "--follow", "needle", "."]
    with subprocess.Popen(argv, cwd=folder, stdout=subprocess.DEVNULL, stderr=writing) as stuck:
        until_blocking(lambda: not select.select([], [writing], [], 0)[1])  # no event reports a full pipe
        assert stuck.poll() is None
        os.close(writing)
        with open(reading, "rb") as stderr:
            assert len(stderr.read()) > 65_536
        assert stuck.wait(30) == 2
    assert len(summary(folder, rg).errors) == 800
    assert [match.path for match in sync.search("needle", cwd=folder, rg=rg)] == ["good"]


@pytest.mark.posix
@pytest.mark.fact(27)
def test_error_paths_that_are_not_utf8_have_replacement_characters(rg: RgBinary, plant: Plant) -> None:
    """Compare stderr with JSON and listings, which have the bytes."""
    folder = plant({"good": "needle\n", b"\xff/good": "needle\n"})
    os.symlink(b"nowhere", os.fsencode(folder) + b"/\xff/broken")
    assert "./\ufffd/broken: No such file".encode() in raw(rg, folder, "--follow", "needle", ".").stderr
    (error,) = summary(folder, rg).errors
    assert (error.path, error.message) == ("\ufffd/broken", "No such file or directory (os error 2)")
    found = sorted(match.path or "" for match in sync.search("needle", cwd=folder, rg=rg))
    assert found == ["good", os.fsdecode(b"\xff/good")]


@pytest.mark.fact(27)
def test_stderr_that_is_not_utf8_is_decoded(rg: RgBinary, plant: Plant, stand_in: StandIn, tmp_path: Path) -> None:
    folder = plant({"good": "needle\n"})
    launcher = tmp_path / "launcher"
    line = r"rg: ./\377: Permission denied (os error 13)\n"
    launcher.write_text(f'#!/bin/sh\n"{rg.path}" "$@"\nprintf "{line}" >&2\nexit 2\n')
    launcher.chmod(0o755)
    (error,) = summary(folder, RgBinary(str(launcher), "argument")).errors
    assert (error.path, error.kind) == (os.fsdecode(b"\xff"), "denied")
    with pytest.raises(SearchError, match="\ufffd what") as caught:
        list(sync.search("x", cwd=folder, rg=stand_in(r"sys.stderr.buffer.write(b'\xff what'); sys.exit(3)")))
    assert caught.value.stderr == "\ufffd what"


# End of rg


@pytest.mark.posix
@pytest.mark.fact(28)
def test_exit_2_with_a_summary_is_a_partial_result(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"a": "needle\n"})

    def code(*arguments: str) -> int:
        return raw(rg, folder, "--no-config", "--json", "--follow", *arguments).returncode

    def answer(pattern: str, **options: Any) -> tuple[int, int]:
        last = summary(folder, rg, pattern, **options)
        return last.stats.matches, len(last.errors)

    assert (code("needle", "."), answer("needle")) == (0, (1, 0))
    assert (code("absent", "."), answer("absent")) == (1, (0, 0))
    assert (code("needle", "a", "missing"), answer("needle", paths=["a", "missing"])) == (2, (1, 1))
    (folder / "broken").symlink_to("nowhere")
    assert (code("needle", "."), answer("needle")) == (2, (1, 1))
    assert (code("absent", "."), answer("absent")) == (2, (0, 1))
    assert code("--no-messages", "needle", ".") == 2
    assert code("--quiet", "needle", ".") == 0
    assert code("(", ".") == 2
    with pytest.raises(PatternError) as caught:
        answer("(")
    assert caught.value.returncode == 2


@pytest.mark.fact(34)
def test_rg_exits_0_when_its_stdout_is_closed(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"dense": "needle\n" * 20_000})
    argv = [rg.path, "--no-config", "--json", "needle", "."]
    for code in (0, -signal.SIGTERM):
        with subprocess.Popen(argv, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
            assert child.stdout is not None and child.stdout.read(10)
            if code:
                child.terminate()
            else:
                child.stdout.close()
            assert child.wait(30) == code
            assert child.stderr is not None and child.stderr.read() == b""
    assert len(list(sync.search("needle", cwd=folder, rg=rg, limit=3))) == 3


@pytest.mark.fact(34)
@pytest.mark.anyio
async def test_exit_code_is_ignored_once_the_limit_is_reached(
    stand_in: StandIn, folder: Path, anyio_backend: str
) -> None:
    rg = stand_in("os.write(1, b'./a\\0./b\\0'); print('who knows', file=sys.stderr); sys.exit(3)")
    assert [path async for path in ripwrap.files(cwd=folder, rg=rg, limit=2)] == ["a", "b"]
    assert list(sync.files(cwd=folder, rg=rg, limit=2)) == ["a", "b"]
    with pytest.raises(SearchError, match="who knows"):
        [path async for path in ripwrap.files(cwd=folder, rg=rg, limit=3)]


# All facts


def marked() -> set[int]:
    """Return the numbers of all `fact` markers of tests and test classes."""
    numbers = set[int]()
    for text in (path.read_text() for path in TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(text)) if "mark.fact(" in text else ():
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                marks = [mark for mark in node.decorator_list if isinstance(mark, ast.Call)]
                facts = [mark for mark in marks if ast.unparse(mark.func) == "pytest.mark.fact"]
                numbers.update(ast.literal_eval(argument) for mark in facts for argument in mark.args)
    return numbers


@pytest.mark.posix
@pytest.mark.fact(51)
def test_rg_buffers_files_with_matches_and_not_counts(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"a": "needle\n"})
    os.mkfifo(folder / "b")
    written = []
    for mode in ("--files-with-matches", "--count"):
        argv = [rg.path, "--no-config", "--null", "--line-buffered", "--threads=1", mode, "needle", "a", "b"]
        with subprocess.Popen(argv, cwd=folder, stdout=subprocess.PIPE) as searching:
            assert searching.stdout is not None
            with open(folder / "b", "w"):  # rg has opened `b`, so it has finished `a`
                waiting = unread(searching.stdout)
            written.append((waiting, searching.communicate(timeout=30)[0]))
    assert written == [(0, b"a\0"), (4, b"a\x001\n")]
    os.unlink(folder / "b")
    assert list(sync.files_with_matches("needle", cwd=folder, rg=rg)) == ["a"]


@pytest.mark.fact(51)
def test_rg_lists_an_inverted_match_before_a_nul_byte_if_it_stops_at_the_match(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"a": b"hay\n" * 100_000 + b"\0"})
    arguments = ["--no-config", "--files-with-matches", "--invert-match", "needle"]
    listed = [
        subprocess.run([rg.path, *arguments, *more], cwd=folder, capture_output=True, check=False).stdout
        for more in (["--max-count=1"], [])
    ]
    assert listed == [b"a\n", b"a\n" if rg.version < (15,) else b""]


@pytest.mark.fact(53)
def test_rg_applies_iglobs_last_and_not_to_named_files(rg: RgBinary, plant: Plant) -> None:
    names = (".env", "sub/.ENV", "secrets/a", "sub/SECRETS/.ENV/b", "ok")
    folder = plant({**dict.fromkeys(names, "needle\n"), ".ignore": "!.env\n!secrets\n", "sub/.rgignore": "!*\n"})
    denied = ("--iglob=!.env", "--iglob=!secrets/")

    def found(*arguments: str) -> set[str]:
        argv = [rg.path, "--no-config", "--hidden", *arguments]
        listed = subprocess.run(argv, cwd=folder, capture_output=True, check=False).stdout
        return {line.removeprefix("./") for line in listed.decode().splitlines() if "ignore" not in line}

    everything = {"ok", ".env", "sub/.ENV", "secrets/a", "sub/SECRETS/.ENV/b"}
    assert found("--files", ".") == everything
    others = ("--no-ignore",), ("--type-add=any:*", "--type=any"), ("--glob=*",), ("--glob=.env", "--glob=ok")
    for options in ((), *others):
        assert found("--files", *denied, *options, ".") == {"ok"}
        assert found("--files", *options, *denied, "sub", "ok") == {"ok"}
    # The globs do not hold for a named file, nor for a named folder itself.
    assert found("--count", *denied, "needle", ".env", "secrets") == {".env:1", "secrets/a:1"}


@pytest.mark.fact(63)
def test_rg_prints_a_file_under_each_spelling_and_grep_drops_only_an_equal_path(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"a.py": "needle\n", "sub/b.py": "needle\n"})
    spellings = ["a.py", "sub/../a.py", os.path.join(folder, "a.py")]
    printed = raw(rg, folder, "--no-config", "-l", "--sort=path", "needle", *spellings, "a.py").stdout.decode()
    assert sorted(printed.splitlines()) == sorted([*spellings, "a.py"])
    found = sync.grep("needle", cwd=folder, paths=[*spellings, "a.py", "./a.py"], rg=rg)
    assert sorted(file.path for file in found.files) == sorted(spellings)


@pytest.fixture(params=["15.0.0", "15.2.0"])
def rg_of_a_pipe(request: pytest.FixtureRequest) -> RgBinary:
    """Return an rg with the defect of ripgrep#3194, and one without it."""
    try:
        return sync.resolve(rgs.find_or_fetch(request.param))
    except rgs.UnavailableError as error:
        pytest.skip(str(error))


@pytest.mark.posix
@pytest.mark.fact(56)
def test_rg_15_0_reports_matches_in_a_pipe_late(rg_of_a_pipe: RgBinary, folder: Path) -> None:
    """rg 15.0.0 delays them, and writes all of them in the end."""
    os.mkfifo(folder / "fifo")
    argv = [rg_of_a_pipe.path, "--no-config", "--json", "--line-buffered", "needle", "fifo"]
    with subprocess.Popen(argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as searching:
        assert searching.stdout is not None
        with open(folder / "fifo", "wb", buffering=0) as pipe:
            for _ in range(2):  # rg reads the second line after it has searched the first
                pipe.write(b"needle\n")
                until_blocking(lambda: unread(pipe) == 0)
            assert (unread(searching.stdout) == 0) == (rg_of_a_pipe.version == (15, 0, 0))
        assert searching.communicate(timeout=30)[0].count(b'"type":"match"') == 2


@pytest.mark.posix
def test_rg_15_0_streams_matches_in_files_as_other_versions_do(rg_of_a_pipe: RgBinary, plant: Plant) -> None:
    """The match in the file is yielded while rg waits for the pipe."""
    folder = plant({"file": "needle\n"})
    os.mkfifo(folder / "fifo")
    cases: list[SearchOptions] = [{}, {"threads": 1}, {"sort": "path"}]
    for options in cases:
        paths = ["file", "fifo"]
        with closing(sync.search("needle", cwd=folder, paths=paths, rg=rg_of_a_pipe, **options)) as found:
            assert next(found).path == "file"


def unread(pipe: IO[bytes]) -> int:
    """Return the number of unread bytes in a pipe; POSIX only."""
    import fcntl
    import termios

    waiting = bytearray(4)
    fcntl.ioctl(pipe, termios.FIONREAD, waiting)
    return int.from_bytes(waiting, sys.byteorder)


def test_every_fact_has_a_test_and_every_mark_names_a_fact() -> None:
    page = {int(number) for number in re.findall(r"^\| (\d+) \|", PAGE.read_text(), re.MULTILINE)}
    assert FACTS - page == set(), "facts that the page does not tell"
    marks = marked()
    assert FACTS - marks == set(), "facts that no test is marked with"
    assert marks - page == set(), "marks that name no fact"
