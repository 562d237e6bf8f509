"""The command line: output, errors and exit codes, in process."""

import ast
import inspect
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from importlib import metadata
from itertools import combinations
from pathlib import Path

import pytest

import ripwrap
from ripwrap import Hint, Match, RankedChunk, RipwrapError, SearchError, TreeEntry, cli, sync
from ripwrap._ripgrep.query import NEEDS_SCAN
from ripwrap.cli import setup
from ripwrap.cli.flags import spell_as_flag
from ripwrap.errors import HintedText, spell_error
from ripwrap.index import CheckResult, IndexStatus, PruneResult, RefreshResult
from support.cli import on_terminal, output, run
from support.paths import native

Plant = Callable[..., Path]

OVERRIDING = [
    *combinations(("-i", "-s", "-S"), 2),
    ("-w", "-x"),
    ("-U", "--stop-on-nonmatch"),
    ("--crlf", "--null-data"),
    ("-a", "--binary"),
    ("-P", "--engine=auto"),
    ("--sort=path", "--sortr=path"),
    ("-A1", "--passthru"),
    ("-C1", "--passthru"),
    ("-n", "-N"),
    *combinations(("-l", "--files-without-match", "-c", "--count-matches"), 2),
]


def test_search_prints_plain_lines_into_a_pipe(plant: Plant) -> None:
    folder = plant({"src/a.py": "import x\nasync def f():\n    pass\n", "b.py": "no\n"})
    assert output("search", "async def", cwd=folder) == native("src/a.py:2:async def f():\n")
    assert output("search", "async def", "src", cwd=folder) == native("src/a.py:2:async def f():\n")
    assert output("search", "async", "-A1", "--sort=path", cwd=folder) == (
        native("src/a.py:2:async def f():\nsrc/a.py-3-    pass\n")
    )


@pytest.mark.posix
def test_search_and_files_print_raw_bytes_into_a_pipe(plant: Plant) -> None:
    folder = plant({b"\xff": b"caf\xe9 needle\n"})
    assert run("search", "needle", cwd=folder).stdout == b"\xff:1:caf\xe9 needle\n"
    assert run("files", cwd=folder).stdout == b"\xff\n"


@pytest.mark.slow
def test_why_prints_the_reason_in_flags(plant: Plant) -> None:
    folder = plant({".gitignore": "build/\n", "build/.a": "", "b.py": "x\0", "c": ""})
    ignored = "its directory build is ignored by .gitignore:1 `build/`; --no-ignore, --hidden search it\n"
    assert output("why", "build/.a", "--no-hidden", cwd=folder, code=1) == ignored
    assert output("why", "b.py", "-d1", "-tmd", cwd=folder, code=1) == (
        "not of type md; it would be searched with --text and without the option --type\n"
    )
    assert output("why", "c", cwd=folder) == "searched\n"
    assert output("why", "c", "build", cwd=folder, code=1) == "outside of the searched paths\n"
    assert json.loads(output("why", "c", "--json", cwd=folder))["kind"] == "searched"
    missing = run("why", "gone", cwd=folder, code=2).stderr.decode()
    assert missing == "ripwrap: no such file or directory; check FILE or --cwd: 'gone'\n"


def test_search_prints_coverage_to_stderr(plant: Plant) -> None:
    folder = plant({".gitignore": "b\n", "a": "x", "b": "x", ".c": "x"})
    done = run("search", "x", "--coverage", "--no-hidden", "-l", cwd=folder)
    assert done.stdout == b"a\n"
    assert done.stderr.decode().splitlines() == [
        "ripwrap: 1 file searched; 3 not: 2 hidden, 1 ignored.",
        "ripwrap: .c: hidden; --hidden searches it",
        "ripwrap: b: ignored by .gitignore:1 `b`; --no-ignore searches it",
    ]
    *_, last = run("search", "x", "--coverage", "--jsonl", cwd=folder).stdout.splitlines()
    assert json.loads(last)["searched"] == 3
    assert run("search", "gone", "--coverage", "src", "a", cwd=folder, code=2).stderr.count(b"1 file searched") == 1


def test_search_prints_lines_near_others(plant: Plant) -> None:
    folder = plant({"f": "retry\n2\ntimeout\n4\n5\nretry\n", "g": "retry\n"})
    assert output("search", "retry", "--near", "timeout", "--within", "2", cwd=folder) == "f:1:retry\n"
    assert (
        output("search", "retry", "--near", "timeout", "-C1", cwd=folder) == "f:1:retry\nf-2-2\n--\nf-5-5\nf:6:retry\n"
    )
    assert output("search", "retry", "--near=timeout", "--near=4", "--within=2", cwd=folder, code=1) == ""
    (line,) = run("search", "retry", "--near", "5", "--jsonl", cwd=folder).stdout.splitlines()
    assert json.loads(line)["total_matches"] == 2
    for arguments, message in {
        ("--within", "2"): "--within needs --near; add --near",
        ("--near", "x", "-c"): "--count cannot be combined with --near",
        ("--near", "x", "-U"): "--multiline cannot be combined with --near: a match must be on one line",
    }.items():
        assert message in run("search", "retry", *arguments, cwd=folder, code=2).stderr.decode()


def test_search_marks_gaps_between_context_lines(plant: Plant) -> None:
    folder = plant({"f": "needle\n2\n3\n4\nneedle\n"})
    assert output("search", "needle", "-C1", cwd=folder) == ("f:1:needle\nf-2-2\n--\nf-4-4\nf:5:needle\n")
    assert "--" not in output("search", "needle", cwd=folder)


def test_multiline_match_has_a_number_for_each_line(plant: Plant) -> None:
    assert output("search", "-U", "a\\nb", cwd=plant({"f": "a\nb\nc\n"})) == "f:1:a\nf:2:b\n"


def test_replace_flag_prints_the_new_line(plant: Plant) -> None:
    assert output("search", "(a) (b)", "-r", "$2 $1", cwd=plant({"f": "a b\n"})) == "f:1:b a\n"


@pytest.mark.posix
def test_search_on_a_terminal_has_headings_and_colors(plant: Plant) -> None:
    folder = plant({"a.py": "one\nneedle and needle\n", "b.py": "needle " + "x" * 100 + "\n"})
    red = "\x1b[1;31mneedle\x1b[0m"
    assert on_terminal("search", "needle", "--sort=path", cwd=folder) == (
        f"\x1b[35ma.py\x1b[0m\n\x1b[32m2\x1b[0m:{red} and {red}\n"
        f"\n\x1b[35mb.py\x1b[0m\n\x1b[32m1\x1b[0m:{red} {'x' * 100}\n"
    )


@pytest.mark.posix
def test_search_on_a_terminal_has_context_and_gaps(plant: Plant) -> None:
    folder = plant({"f": "needle\n2\n3\n4\nneedle\n"})
    shown = on_terminal("search", "needle", "-C1", cwd=folder)
    assert shown.count("--\n") == 1
    assert "\x1b[32m2\x1b[0m-2\n" in shown


@pytest.mark.slow
@pytest.mark.posix
def test_color_of_a_search_follows_the_color_flag(plant: Plant) -> None:
    folder = plant({"a.py": "one\nneedle and needle\n", b"\xff": b"\xe9 needle\n"})
    path, number, red = "\x1b[35ma.py\x1b[0m", "\x1b[32m2\x1b[0m", "\x1b[1;31mneedle\x1b[0m"
    command = ("search", "needle", "--sort=path")
    context = output(*command, "-B1", "-g*.py", "--color=always", cwd=folder)
    assert context == f"{path}-\x1b[32m1\x1b[0m-one\n{path}:{number}:{red} and {red}\n"
    assert output("search", "one\\nneedle", "-U", "--color=always", cwd=folder).endswith(
        f"one\x1b[0m\n{path}:{number}:{red} and needle\n"
    )
    assert b"\xe9 \x1b[1;31mneedle" in run(*command, "--color=always", cwd=folder).stdout
    assert output(*command, "-g*.py", "--color=auto", cwd=folder) == "a.py:2:needle and needle\n"
    assert output(*command, "-g*.py", "-rpin", "--color=always", cwd=folder) == (
        f"{path}:{number}:{red} and {red}\n".replace("needle", "pin")
    )
    assert on_terminal(*command, "-g*.py", "--color=never", cwd=folder) == "a.py\n2:needle and needle\n"
    assert on_terminal(*command, "-g*.py", "--color=always", cwd=folder) == f"{path}\n{number}:{red} and {red}\n"


@pytest.mark.slow
@pytest.mark.parametrize("flags", OVERRIDING, ids=" ".join)
def test_last_of_two_opposite_flags_wins_as_with_rg(flags: tuple[str, str], plant: Plant) -> None:
    """The last of the flags that override each other is used, and a flag may be repeated."""
    folder = plant({"a": "Ab ab\nab\nx\r\n", "b": "abc\0ab\n", "c": "c\n"})
    rg = sync.resolve().path

    def both(*given: str) -> list[list[bytes]]:
        direct = [rg, *given, "-j1", "ab", "a", "b", "c"]
        return [
            subprocess.run(direct, cwd=folder, capture_output=True, check=True).stdout.splitlines(),
            run("search", *given, "-j1", "ab", "a", "b", "c", f"--rg={rg}", cwd=folder).stdout.splitlines(),
        ]

    for one, other in (flags, flags[::-1]):
        expected = both(other)
        assert both(one, other) == expected
        assert both(other, one, other) == expected


@pytest.mark.slow
def test_repeated_flags_are_no_error_and_the_last_value_wins(plant: Plant) -> None:
    folder = plant({"a.py": "ab\nAB\nab\n", "b.c": "ab\n", "c.rs": "ab\n"})
    assert output("search", "ab", "-ii", "--ignore-case", "a.py", cwd=folder).count("\n") == 3
    assert output("search", "ab", "-i", "--no-ignore-case", "-m3", "-m", "1", "a.py", cwd=folder) == "a.py:1:ab\n"
    assert output("search", "ab", "-iNi", "-sl", "a.py", cwd=folder) == "a.py\n"
    assert output("search", "ab", "-l", "-g*.py", "-g", "*.c", "--sort=path", cwd=folder) == "a.py\nb.c\n"
    assert output("search", "-is", "--", "-i", cwd=plant({"f": "-i\n-I\n"})) == "f:1:-i\n"
    assert output("search", "", "-c", "a.py", cwd=folder) == "a.py:3\n"  # an empty pattern is no flag without a letter
    assert output("index", "status", "--json", "--json", cwd=folder, code=1).startswith("{")


@pytest.mark.slow
@pytest.mark.parametrize("most", range(5, 11))
def test_max_columns_counts_the_line_end_as_rg_does(most: int, plant: Plant) -> None:
    """The limit was off by one, since rg counts the line end."""
    rg = sync.resolve().path
    folder = plant({"a": "needle\nneedle1\r\nneedle-1", "b": "needle\n\n"})
    for given in (["needle"], ["-r", "pins", "needle"], ["-U", "needle\\n\\n"], ["-B1", "needle", "a"]):
        command = [rg, *given, "-nH", "--sort=path", f"-M{most}"]
        expected = subprocess.run(command, cwd=folder, capture_output=True, check=True).stdout
        assert run("search", *given, "--sort=path", f"-M{most}", "--rg", rg, cwd=folder).stdout == expected


@pytest.mark.posix
def test_longer_lines_are_omitted_as_rg_does(plant: Plant) -> None:
    folder = plant({"f": "needle and more\nlonger than ten bytes\nneedle\n"})
    assert output("search", "needle", "-C1", "-M10", cwd=folder) == (
        "f:1:[Omitted long matching line]\nf-2-[Omitted long context line]\nf:3:needle\n"
    )
    assert output("search", "needle", "-M0", cwd=folder) == "f:1:needle and more\nf:3:needle\n"
    shown = on_terminal("search", "needle", "--max-columns=10", cwd=folder)
    assert "\x1b[32m1\x1b[0m:[Omitted long line with 1 matches]\n" in shown
    assert "\x1b[1;31mneedle\x1b[0m\n" in shown


def test_list_and_count_flags_print_only_paths_or_counts(plant: Plant) -> None:
    folder = plant({"a": "needle\nneedle\n", "b": "needle\n", "c": "", "é": ""})
    assert output("search", "needle", "-l", "--sort=path", cwd=folder) == "a\nb\n"
    assert output("search", "needle", "--count", "--sort=path", cwd=folder) == "a:2\nb:1\n"
    assert output("search", "needle", "-l", "--jsonl", "b", cwd=folder) == '"b"\n'
    assert json.loads(output("search", "needle", "-c", "--jsonl", "b", cwd=folder)) == {"path": "b", "count": 1}
    assert output("search", "nothing", "-l", cwd=folder, code=1) == ""
    assert output("search", "nothing", "-c", cwd=folder, code=1) == ""


def test_files_without_match_and_count_matches_are_modes_as_in_rg(plant: Plant) -> None:
    """The library had both modes, the command line had none."""
    folder = plant({"a": "needle needle\nneedle\n", "b": "x\n"})
    assert output("search", "needle", "--files-without-match", cwd=folder) == "b\n"
    assert output("search", "needle", "--files-without-match", "--jsonl", cwd=folder) == '"b"\n'
    assert output("search", "needle", "--count-matches", cwd=folder) == "a:3\n"
    assert json.loads(output("search", "needle", "--count-matches", "--jsonl", cwd=folder)) == {"path": "a", "count": 3}
    assert output("search", ".", "--files-without-match", cwd=folder, code=1) == ""


@pytest.mark.posix
def test_color_applies_to_paths_and_counts(plant: Plant) -> None:
    """`-l` and `-c` ignored `--color`, and printed no color on a terminal."""
    folder = plant({"a": "needle\n"})
    path = "\x1b[35ma\x1b[0m"
    assert output("search", "needle", "-l", "--color=always", cwd=folder) == f"{path}\n"
    assert output("search", "needle", "-c", "--color=always", cwd=folder) == f"{path}:1\n"
    assert output("search", "needle", "--count-matches", "--color=auto", cwd=folder) == "a:1\n"
    assert on_terminal("search", "x", "--files-without-match", cwd=folder) == f"{path}\n"
    assert on_terminal("search", "needle", "-c", "--color=never", cwd=folder) == "a:1\n"


@pytest.mark.posix
def test_no_color_prints_no_escape_sequence(plant: Plant, tmp_path: Path) -> None:
    """With NO_COLOR, rich omits colors, but still prints bold."""
    folder = plant({"jar.py": "class CookieJar:\n    pass\n"})
    for command in (["search", "Cookie"], ["search", "Cookie", "-l"], ["rank", "CookieJar"], ["doctor"]):
        assert "\x1b" not in on_terminal(*command, cwd=folder, environment={"NO_COLOR": "1"})
    always = on_terminal("search", "Cookie", "--color=always", cwd=folder, environment={"NO_COLOR": "1"})
    assert "\x1b[1;31mCookie\x1b[0m" in always


def test_line_number_flags_switch_numbers_off_and_on(plant: Plant) -> None:
    folder = plant({"f": "needle\n"})
    assert output("search", "needle", "-N", cwd=folder) == "f:needle\n"
    assert output("search", "needle", "-n", cwd=folder) == "f:1:needle\n"
    assert output("search", "needle", "-N", "--line-number", cwd=folder) == "f:1:needle\n"


def test_types_command_lists_the_file_types_of_rg(folder: Path) -> None:
    lines = output("types", cwd=folder).splitlines()
    assert "py: *.py, *.pyi" in lines
    assert json.loads(output("types", "--json", cwd=folder))["py"] == ["*.py", "*.pyi"]


@pytest.mark.posix
def test_json_option_prints_the_models(plant: Plant) -> None:
    folder = plant({"a.py": "needle\n", "sub/b.py": "", b"\xff": ""})
    lines = output("search", "needle", "--jsonl", cwd=folder).splitlines()
    assert [json.loads(line)["type"] for line in lines] == ["begin", "match", "end", "summary"]
    assert Match.model_validate_json(lines[1]).lines == "needle\n"
    paths = [json.loads(line) for line in output("files", "--json", cwd=folder).splitlines()]
    assert sorted(paths, key=str) == ["a.py", "sub/b.py", {"bytes": "/w=="}]
    entries = [TreeEntry.model_validate_json(line) for line in output("tree", "--json", cwd=folder).splitlines()]
    assert [entry.path for entry in entries] == ["sub", "sub/b.py", "a.py", "\udcff"]


def test_files_and_tree_print_paths_and_entries(plant: Plant) -> None:
    folder = plant({"src/a.py": "", "src/b.c": "", "README": "", ".git/x": "", "node/x": ""})
    assert output("files", "-g", "*.py", cwd=folder) == native("src/a.py\n")
    assert output("files", "--limit=2", cwd=folder).count("\n") == 2
    assert output("tree", "--exclude=node", cwd=folder) == "src/\n    a.py\n    b.c\nREADME\n"
    assert output("tree", "--limit=1", cwd=folder) == "node/\n    [1 truncated]\n[2 truncated]\n"
    assert output("tree", "--cwd=src", cwd=folder) == "a.py\nb.c\n"
    assert output("tree", "src", cwd=folder) == "a.py\nb.c\n"
    assert output("tree", "src", f"--cwd={folder}", cwd=folder.parent) == "a.py\nb.c\n"


@pytest.mark.posix
def test_rank_prints_location_reasons_and_first_lines(plant: Plant) -> None:
    folder = plant(
        {"src/jar.py": "class CookieJar:\n    x = 1\n" + "    y = 2\n" * 8, "src/b.js": "cookie()\n", "a.py": ""}
    )
    shown = output("rank", "CookieJar", cwd=folder).splitlines()
    assert re.fullmatch(r"src/jar\.py:1-10  CookieJar  \d+\.\d\d", shown[0])
    assert re.fullmatch(r'  defines "CookieJar"; path has "jar"; BM25 \d+\.\d', shown[1])
    assert shown[2:9] == [
        "  1:class CookieJar:",
        "  2:    x = 1",
        *(f"  {number}:    y = 2" for number in range(3, 7)),
        "  … 4 more lines",
    ]
    blank = plant({"c.py": "cookie\n" + "\n" * 8, "d.py": "cookie\n" * 7})
    said = output("rank", "cookie", "c.py", cwd=blank)  # the blank lines at the end are omitted
    assert re.fullmatch(
        r"c\.py:1-9  \d\.\d\d\n  BM25 \d\.\d\n  1:cookie\n" + "".join(f"  {n}:\n" for n in range(2, 7)) + "\n", said
    )
    assert "\n  6:cookie\n  … 1 more line\n" in output("rank", "cookie", "d.py", cwd=blank)
    assert output("rank", "cookie jar", "src/b.js", "--limit=1", cwd=folder).startswith("src/b.js:1-1  ")
    (line,) = output("rank", "jar", "--json", "-g*.py", cwd=folder).splitlines()
    assert RankedChunk.model_validate_json(line).path == "src/jar.py"
    assert run("rank", "zebra", cwd=folder, code=1).stdout == b""
    assert b"there is no word in the query" in run("rank", "?", cwd=folder, code=2).stderr
    assert "\x1b[35msrc/jar.py:1-10\x1b[0m  \x1b[1mCookieJar\x1b[0m" in on_terminal(
        "rank", "CookieJar", cwd=folder
    ).replace("\x1b[0m\x1b[1m  ", "\x1b[0m  \x1b[1m")


@pytest.mark.posix
@pytest.mark.slow
def test_index_commands_build_search_check_and_prune(plant: Plant, tmp_path: Path) -> None:
    folder = plant({"src/jar.py": "class CookieJar:\n    x = 1\n", "b.py": "cookie()\n", "skip.txt": "cookie\n"})
    home = f"--location={tmp_path / 'home'}"
    assert output("index", "status", home, cwd=folder, code=1).startswith("built: no\n")
    assert b"there is no index" in run("index", "search", "cookie", "--no-refresh", home, cwd=folder, code=2).stderr
    done = run("index", "build", home, "-g*.py", "--json", cwd=folder)
    assert RefreshResult.model_validate_json(done.stdout).added == 2
    assert done.stderr == b""  # no progress bar without a terminal
    said = output("index", "build", ".", home, "-g*.py", cwd=folder)
    # A file that was written just before it was read is read again, because its stamp may not tell a later change.
    assert re.match(r"0 added, 0 changed, 0 removed, 2 unchanged; [0-2] files? read, 0 chunks added, 0 removed", said)
    told = IndexStatus.model_validate_json(output("index", "status", home, "-g*.py", "--json", cwd=folder))
    assert (told.built, told.files, told.location) == (True, 2, str(tmp_path / "home"))
    shown = output("index", "search", "CookieJar", str(folder), home, "-g*.py", cwd=tmp_path).splitlines()
    assert re.fullmatch(r"src/jar\.py:1-2  CookieJar  \d+\.\d\d", shown[0])
    (folder / "src" / "tin.py").write_text("class Tin:\n    pass\n")
    (line,) = output("index", "search", "Tin", home, "-g*.py", "--json", cwd=folder).splitlines()
    assert RankedChunk.model_validate_json(line).path == "src/tin.py"
    assert run("index", "search", "zebra", home, cwd=folder, code=1).stdout == b""
    assert output("index", "check", home, cwd=folder).startswith("ok: yes\nchecked: ok\n")
    assert CheckResult.model_validate_json(output("index", "check", home, "--json", cwd=folder)).ok
    assert PruneResult.model_validate_json(output("index", "prune", home, "--json", cwd=folder)).views == ()
    with (tmp_path / "home" / "index.sqlite3").open("r+b") as file:
        file.seek(4096)
        file.write(b"garbage" * 10_000)
    assert "index build --rebuild" in output("index", "check", home, cwd=folder, code=2)
    shown_there = on_terminal("index", "build", home, cwd=folder)  # rebuilds with a message and exit code 0
    assert "ripwrap: the index in" in shown_there and "4/4" in shown_there
    assert "4 added" in shown_there
    assert output("index", "build", home, "--rebuild", cwd=folder).startswith("4 added")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["build", "missing"], "ROOT must be a directory; /"),
        (["build", "missing"], "/missing does not exist\n"),
        (["check", "missing"], "/missing does not exist\n"),
        (["prune", "missing"], "/missing does not exist\n"),
        (["status", "missing"], "/missing does not exist\n"),
        (["watch", "file"], "/file is not a directory\n"),
        (["search", "x", "file"], "/file is not a directory\n"),
        (["search", "?"], "there is no word in the query '?'"),
        (["search", "x", "--limit=-1"], "ripwrap: --limit must be a whole number, 0 or more, got -1\n"),
        (["build", "--rg=missing/rg"], "no such file"),
        (["build", "--location=file/below"], "could not make the directory"),
        (["build", "--location=file/below"], "; pass another --location\n"),
        (["build", "--location="], "--location must name a directory, got ''"),
        (["search", "x", "--no-refresh", "--location=home"], "; `ripwrap index build` makes it\n"),
        (["build", "--hybrid-weight=.5"], "--hybrid-weight needs an embedder; pass --embedder\n"),
        (["build", "--embedder=wordllama", "--hybrid-weight=2"], "--hybrid-weight must be from 0 to 1, got 2"),
        (["build", "--chunker=lines"], "windows"),
        (["build", "--embedder=no-such-provider"], "no-such-provider"),
        (["bild"], "bild"),
    ],
)
@pytest.mark.slow
def test_index_error_is_a_line_on_stderr(arguments: list[str], says: str, plant: Plant) -> None:
    done = run("index", *arguments, cwd=plant({"file": "x\n"}), code=2)
    assert says in done.stderr.decode()
    assert b"Traceback" not in done.stderr


@pytest.mark.posix
@pytest.mark.slow
def test_index_build_reports_skipped_files_and_succeeds(plant: Plant, tmp_path: Path) -> None:
    folder = plant({"a.py": "cookie\n", "b.bin": b"\0", "big.txt": "cookie\n" * 200_000})
    (folder / "loop").symlink_to(".")
    home = f"--location={tmp_path / 'home'}"
    options = (home, "--chunker=windows", "--follow")
    done = run("index", "build", *options, cwd=folder)
    assert done.stderr == b""  # a loop is no error
    assert re.fullmatch(
        r"2 added, 0 changed, 0 removed, 0 unchanged; 3 files read, "
        r"\d+ chunks added, 0 removed in \d\.\d seconds; left out: 1 binary; "
        r"1 file longer than a million bytes, indexed only up to that size\n",
        done.stdout.decode(),
    )
    done = run("index", "search", "cookie", "--json", *options, cwd=folder)
    assert done.stdout and done.stderr == b""
    done = run("index", "search", "zebra", *options, cwd=folder, code=1)
    assert (done.stdout, done.stderr) == (b"", b"")
    assert run("rank", "cookie", "--follow", cwd=folder).stderr == b""


@pytest.mark.slow
def test_every_index_command_accepts_a_chunker(plant: Plant, tmp_path: Path) -> None:
    folder = plant({"a.py": "class Cookie:\n    pass\n\n\nclass Jar:\n    pass\n"})
    given = (f"--location={tmp_path / 'home'}", "--chunker=windows")
    assert "1 added" in output("index", "build", *given, cwd=folder)
    assert "built: yes\n" in output("index", "status", *given, cwd=folder)
    assert output("index", "check", *given, cwd=folder).startswith("ok: yes\n")
    assert "chunks: 0\n" in output("index", "prune", *given, cwd=folder)
    assert "chunker: windows 4\n" in output("index", "status", *given, cwd=folder)


@pytest.mark.posix
def test_lines_without_numbers_are_printed_alone_on_a_terminal(plant: Plant) -> None:
    printed = on_terminal("search", "-N", "x", cwd=plant({"f": "x\n"}))
    assert re.sub(r"\x1b\[[0-9;]*m", "", printed).split() == ["f", "x"]


@pytest.mark.parametrize("arguments", [["--version"], ["search", "--version"], ["index", "--version"]])
def test_version_is_that_of_ripwrap(arguments: list[str], tmp_path: Path) -> None:
    assert output(*arguments, cwd=tmp_path).strip() == metadata.version("ripwrap")


def test_index_check_advises_a_command(plant: Plant, tmp_path: Path) -> None:
    shown = output("index", "check", f"--location={tmp_path / 'home'}", cwd=plant({"a.py": ""}))
    assert "messages: There is no index yet; `ripwrap index build` makes it.\n" in shown


@pytest.mark.posix
@pytest.mark.slow
@pytest.mark.extra
def test_index_build_on_a_terminal_shows_embedding_progress(plant: Plant, tmp_path: Path) -> None:
    pytest.importorskip("wordllama")
    folder = plant({f"{number}.py": f"cookie{number}\n" for number in range(5)})
    command = ("index", "build", f"--location={tmp_path / 'home'}", "--embedder=wordllama", "--hybrid-weight=.5")
    shown = on_terminal(*command, cwd=folder)
    assert re.search(r"indexing.*5/5.*files", shown)
    assert re.search(r"embedding.*5/5.*texts", shown)
    assert "5 texts embedded" in shown


@pytest.mark.extra
def test_index_search_without_weight_of_embeddings_answers_by_words(plant: Plant, tmp_path: Path) -> None:
    """--hybrid-weight applies to one search, and 0 embeds nothing."""
    pytest.importorskip("wordllama")
    folder = plant({"a.py": "cookie\n"})
    given = (f"--location={tmp_path / 'home'}", "--embedder=wordllama")
    found = output("index", "search", "cookie", *given, "--hybrid-weight=0", "--json", cwd=folder)
    assert "without embeddings: their weight is 0" in found
    assert "lacking: 1\n" in output("index", "status", *given, cwd=folder)
    assert "cosine" in output("index", "search", "cookie", *given, "--hybrid-weight=.5", "--json", cwd=folder)


@pytest.mark.posix
@pytest.mark.slow
def test_ranked_results_are_printed_into_a_pipe_as_raw_bytes(plant: Plant, tmp_path: Path) -> None:
    folder = plant({b"caf\xe9.py": b"cookie = 'caf\xe9'\r\n" + b"x\n" * 8})
    home = f"--location={tmp_path / 'home'}"
    for command in (["rank", "cookie"], ["index", "search", "cookie", home]):
        lines = run(*command, cwd=folder).stdout.split(b"\n")
        assert lines[0].startswith(b"caf\xe9.py:1-9  ")
        assert lines[2] == b"  1:cookie = 'caf\xe9'"
        assert lines[7:] == [b"  6:x", "  … 3 more lines".encode(), b"", b""]
        (line,) = run(*command, "--json", cwd=folder).stdout.splitlines()
        assert json.loads(line)["path"] == {"bytes": "Y2Fm6S5weQ=="}
    assert "caf\ufffd.py:1-9" in on_terminal("rank", "cookie", cwd=folder)


@pytest.mark.slow
def test_index_status_prints_a_location_that_is_not_utf8_as_raw_bytes(plant: Plant) -> None:
    folder = plant({b"caf\xe9/a.py": "cookie\n"}) / os.fsdecode(b"caf\xe9")
    run("index", "build", "--location=project", cwd=folder)
    shown = run("index", "status", "--location=project", cwd=folder).stdout
    assert b"/caf\xe9/.ripwrap\n" in shown
    told = run("index", "status", "--location=project", "--json", cwd=folder).stdout
    assert IndexStatus.model_validate_json(told).location == str(folder / ".ripwrap")


@pytest.mark.parametrize(
    ("hint", "shown"),
    [
        (Hint("fixed_strings", True), "--fixed-strings"),
        (Hint("refresh", False), "--no-refresh"),
        (Hint("no_ignore", False), "--ignore"),
        (Hint("chunker", "syntax"), "--chunker=syntax"),
        (Hint("threads", 1), "--threads=1"),
        (Hint("location"), "--location"),
        (Hint("paths"), "PATHS"),
        (Hint("roots"), "--root DIR"),
        (Hint("limit", kind="correct"), "--limit"),
        (Hint("replace", kind="omit"), "--replace"),
        (Hint("rebuild", True, "call", "refresh"), "`ripwrap index build --rebuild`"),
        (Hint(kind="call", target="prune"), "`ripwrap index prune`"),
        (Hint(kind="call", target="file_types"), "`ripwrap types`"),
        (Hint("timeout", 600, "call", "ripwrap.binary.install"), "`ripwrap install --timeout=600`"),
        (Hint(kind="install", target="ripwrap[bin]"), 'pip install "ripwrap[bin]"'),
    ],
)
def test_hint_is_spelled_as_a_flag(hint: Hint, shown: str) -> None:
    assert spell_as_flag(hint) == shown


def test_each_function_that_a_hint_calls_has_a_command() -> None:
    texts = [file.read_text("utf-8") for file in Path(inspect.getfile(ripwrap)).parent.rglob("*.py")]
    calls = [
        {one.arg: one.value for one in node.keywords}
        for text in texts
        if 'kind="call"' in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Hint"
    ]
    targets = [one["target"] for one in calls if "kind" in one and ast.unparse(one["kind"]) == "'call'"]
    names = {one.value for one in targets if isinstance(one, ast.Constant)}
    assert {"refresh", "scan", "undo"} <= names
    names.add(NEEDS_SCAN[0].removesuffix("()"))  # the target that is not a constant
    assert sum(not isinstance(one, ast.Constant) for one in targets) == 1
    assert [name for name in names if spell_as_flag(Hint(kind="call", target=str(name))) is None] == []


def test_hint_without_a_command_is_spelled_as_python() -> None:
    assert HintedText("call ", Hint(kind="call", target="other")).spell(spell_as_flag) == "call other()"


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (
            RipwrapError(HintedText("it is full; pass another ", Hint("location"))),
            "it is full; pass another --location",
        ),
        (
            NotADirectoryError(20, HintedText(Hint("cwd", kind="correct"), "; one file in ", Hint("paths")), "x"),
            "--cwd; one file in PATHS: 'x'",
        ),
        (RipwrapError("/home/location=/x is a link"), "/home/location=/x is a link"),
        (ValueError("there is no word in the query 'glob=!'"), "there is no word in the query 'glob=!'"),
        (
            SearchError("pcre2=True", hint=HintedText("Pass ", Hint("pcre2", True), ".")),
            "pcre2=True\nPass --pcre2.",
        ),
        (OSError(), ""),
    ],
)
def test_errors_name_flags_and_keep_other_text_verbatim(error: Exception, shown: str) -> None:
    assert spell_error(error, spell_as_flag) == shown


def test_exit_codes_equal_rgs(plant: Plant, folder: Path) -> None:
    plant({"f": "needle\n"})
    assert run("search", "needle", cwd=folder, code=0).stderr == b""
    assert run("search", "nothing", cwd=folder, code=1).stdout == b""
    assert run("files", "-g", "*.none", cwd=folder, code=1).stdout == b""
    assert run("search", "needle", "f", "missing", cwd=folder, code=2).stdout == b"f:1:needle\n"
    done = run("files", "f", "missing", cwd=folder, code=2)
    assert done.stdout == b"f\n"
    assert done.stderr.startswith(b"ripwrap: rg could not read some paths: missing: ")
    assert done.stderr.endswith(b" (os error 2)\n")


@pytest.mark.posix
def test_broken_link_does_not_change_the_exit_code(plant: Plant) -> None:
    """A broken link is an error only if it is an argument."""
    folder = plant({"f": "needle\n"})
    (folder / "broken").symlink_to("nowhere")
    for command in (["search", "needle"], ["search", "-c", "needle"], ["files"], ["tree"], ["rank", "needle"]):
        done = run(*command, "-L", cwd=folder, code=0)
        assert done.stdout and done.stderr == b""
    assert run("search", "nothing", "-L", cwd=folder, code=1).stderr == b""
    assert b'"kind":"broken_link"' in run("search", "needle", "--jsonl", "-L", cwd=folder, code=0).stdout
    named = b"ripwrap: broken: No such file or directory (os error 2)\n"
    done = run("search", "needle", "f", "broken", cwd=folder, code=2)
    assert (done.stdout, done.stderr.replace(b"IO error for operation on broken: ", b"")) == (b"f:1:needle\n", named)


def test_search_warns_of_a_binary_file_as_rg_does(plant: Plant) -> None:
    folder = plant({"late": b"needle\n" + b"x\n" * 50_000 + b"\0\nneedle\n"})
    done = run("search", "needle", cwd=folder)
    assert done.stdout == b"late:1:needle\n"
    assert b"late: binary, so its search may have ended at the NUL byte at offset 100007; --text" in done.stderr


def test_command_with_closed_stderr_returns_its_exit_code(folder: Path) -> None:
    with io.TextIOWrapper(io.BytesIO()) as stdout, chdir(folder), redirect_stdout(stdout), redirect_stderr(None):
        assert cli.run(["search", "x", "missing"]) == 2
        assert stdout.tell() == 0


def test_console_without_a_character_shows_a_question_mark(folder: Path) -> None:
    assert b"rg 15" in run("doctor", cwd=folder, encoding="ascii").stdout


@pytest.mark.parametrize(
    ("flags", "printed"),
    [(["-c"], b"f:1\n"), (["-l"], b"f\n"), (["--count-matches"], b"f:1\n"), ([], b"f:1:needle\n")],
)
def test_missing_path_is_as_in_rg(folder: Path, flags: list[str], printed: bytes) -> None:
    """The library raises; the command line prints the error, and the results of the other paths."""
    (folder / "f").write_text("needle\n")
    done = run("search", *flags, "needle", "gone", "f", cwd=folder, code=2)
    assert (done.stdout, done.stderr.count(b"gone: No such file or directory")) == (printed, 1)
    done = run("search", *flags, "needle", "f", "--ignore-file=rules", cwd=folder, code=2)
    assert (done.stdout, done.stderr.count(b"rules: No such file or directory")) == (printed, 1)


def test_mcp_command_without_its_extra_names_the_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    for name in [name for name in sys.modules if re.match(r"ripwrap\.mcp\b", name)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(ripwrap, "mcp", raising=False)
    done = run("mcp", "--root", ".", cwd=folder, code=2)
    assert done.stderr == b'ripwrap: the MCP server needs mcp: pip install "ripwrap[mcp]"\n'


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["search", "(text="], "(text="),
        (
            ["search", "(text="],
            "unclosed group\nFix the pattern, or pass --fixed-strings to search for it literally.\n",
        ),
        (["search", "a\\n"], "Pass --multiline to let a match span lines.\n"),
        (["search", "x", "-g", "a["], "unclosed character class"),
        (["search", "x", "-t", "nope"], "unrecognized file type: nope"),
        (["search", "x", "missing"], "ripwrap: no such file or directory; check PATHS or --cwd: 'missing'\n"),
        (["files", "missing"], "ripwrap: no such file or directory; check PATHS or --cwd: 'missing'\n"),
        (["search", "x", "--cwd", "missing"], repr(os.path.join("folder", "missing"))[1:]),
        (["search", "x", "--max-depth=-1"], "ripwrap: --max-depth must be a whole number, 0 or more, got -1\n"),
        (["files", "--threads=1025"], "ripwrap: --threads must be 1024 or less, got 1025\n"),
        (["search", "x", "--limit=-1"], "ripwrap: --limit must be a whole number, 0 or more, got -1\n"),
        (["search", "x", "--sort=size"], "size"),
        (["search", "x", "--pre=sh"], "--pre"),
        (["search", "x", "--rg=missing/rg"], "no such file"),
        (["search"], "PATTERN"),
        (["doctor", "--rg=missing/rg"], "no such file"),
    ],
)
def test_error_is_printed_on_stderr_with_exit_code_2(arguments: list[str], says: str, folder: Path) -> None:
    done = run(*arguments, cwd=folder, code=2)
    assert says in done.stderr.decode()
    assert b"Traceback" not in done.stderr


def test_pattern_with_a_leading_dash_follows_a_double_dash(plant: Plant) -> None:
    assert output("search", "--", "--pre=x", cwd=plant({"f": "--pre=x\n"})) == "f:1:--pre=x\n"


def test_doctor_prints_the_chosen_rg_and_the_reason(folder: Path) -> None:
    text = output("doctor", cwd=folder)
    assert "rg 15." in text
    assert f"CPython {sys.version_info[0]}.{sys.version_info[1]}" in text.partition("\n")[0]
    assert "features: pcre2" in text
    assert "wheel" in text and ": taken" in text
    assert text.splitlines()[1].startswith(f"ripwrap {metadata.version('ripwrap')}, extras: ")


def test_doctor_names_the_commands_for_which_a_package_is_missing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing said that a command needs an extra, before the command failed."""

    def without_watchfiles(name: str) -> metadata.Distribution:
        if name == "watchfiles":
            raise metadata.PackageNotFoundError(name)
        return metadata.distribution(name)

    setup._is_installed.cache_clear()
    monkeypatch.setattr(setup, "distribution", without_watchfiles)
    text = output("doctor", cwd=folder)
    setup._is_installed.cache_clear()
    assert '✗ ripwrap watch needs watchfiles: pip install "ripwrap[watch]"\n' in text
    assert '✗ ripwrap index watch needs watchfiles: pip install "ripwrap[index,watch]"\n' in text
    assert "✗ ripwrap index build, index search" not in text  # they work without it, as without `code`
    assert "watch" not in text.partition("extras: ")[2].partition("\n")[0].split(", ")
    assert "cli" in text.partition("extras: ")[2].partition("\n")[0].split(", ")
    assert "cache" in text
