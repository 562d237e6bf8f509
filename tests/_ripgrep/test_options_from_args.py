"""Flags of rg as options: a search with them finds what rg finds with the flags."""

import json
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ripwrap import sync, testing
from ripwrap.binary import RgBinary
from ripwrap.options import RG_DEFAULTS, SearchOptions, options_from_args

FILES = {
    "a.py": "Todo one\nTODO-two todo\nx\n\ntodo\r\n",
    "b.txt": "todo.todo\n\nTodo",
    "c.bin": "todo\0todo\n",
    ".hidden/d.py": "TODO\n",
    "skipped/e.py": "todo\n",
    ".git/HEAD": "todo\n",
    ".gitignore": "skipped\n",
}
FLAGS = [
    *(["-i"], ["-S"], ["-s"], ["-w"], ["-x"], ["-F"], ["-v"], ["-is"], ["-nwi"], ["-U"], ["-a"], ["--binary"]),
    *(["-g", "*.py"], ["-g*.py"], ["-g=!b*"], ["--glob=*.PY"], ["--iglob", "*.PY"], ["--glob-case-insensitive"]),
    *(["-tpy"], ["-T", "py"], ["--type=txt"], ["-."], ["--hidden"], ["--no-hidden"], ["-u"], ["-uu"], ["-uuu"]),
    *(["--no-ignore"], ["--ignore"], ["--no-require-git"], ["--require-git"], ["--no-ignore-vcs"], ["-L"]),
    *(["-m1"], ["-m", "2"], ["--max-count=1"], ["-d1"], ["--max-depth", "2"], ["--max-filesize", "9"]),
    *(["-C1"], ["-A", "1"], ["-B=1"], ["--passthru"], ["--crlf"], ["--no-crlf"], ["--no-unicode"], ["--no-mmap"]),
    *(["--engine=auto"], ["--no-line-number"], ["-N"], ["-n"], ["-E", "utf-8"], ["-j2"], ["--sort", "path"]),
]


def lines_of_rg(rg: RgBinary, cwd: str, flags: list[str]) -> list[tuple[str, str, int, int | None]]:
    done = subprocess.run(
        [rg.path, "--json", *flags, "todo", "."], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    records = [json.loads(line) for line in done.stdout.splitlines()]
    return sorted(
        (one["type"], one["data"]["path"]["text"][2:], one["data"]["absolute_offset"], one["data"]["line_number"])
        for one in records
        if one["type"] in ("match", "context")
    )


@given(st.lists(st.sampled_from(FLAGS), max_size=4).map(lambda drawn: sum(drawn, list[str]())))
def test_search_finds_what_rg_finds_with_the_flags(newest: RgBinary, flags: list[str]) -> None:
    assume("".join(flags).count("u") <= 3)  # a fourth is an error of rg
    with tempfile.TemporaryDirectory() as cwd:
        testing.write_tree(cwd, FILES)
        options: SearchOptions = {**RG_DEFAULTS, **options_from_args(flags)}
        found = sync.search_messages("todo", cwd=cwd, rg=newest, **options)
        lines = [one for one in found if one.type == "match" or one.type == "context"]
        mine = sorted((one.type, one.path, one.absolute_offset, one.line_number) for one in lines)
        assert mine == lines_of_rg(newest, cwd, flags)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["-l", "-i", "src"], "no options of a search: -l (call files_with_matches()), src; leave them out"),
        (["-ic"], "no options of a search: -c (call count()); leave them out"),
        (["-e", "x", "--", "-"], "-e (pass the pattern as the first argument), x, --, -; leave"),
        (["--pre=cat", "--nope", "-y", "-z"], "--pre, --nope, -y, -z (pass inside=['gz', 'bz2', 'xz', 'zst']); leave"),
        (["--include-git", ""], "no options of a search: --include-git, ; leave them out"),
        (["-i", "-m"], "-m has no value; write the value after it"),
        (["-uuuu"], "no options of a search: -u; leave them out"),
        (["-mx"], "-m takes a number, got 'x'"),
        (["--context="], "--context takes a number, got ''"),
    ],
)
def test_what_has_no_meaning_is_named_in_one_error(flags: list[str], says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        options_from_args(flags)


@pytest.mark.parametrize(
    ("flags", "got"),
    [
        ("-i", "got the str '-i'; split it, e.g. with shlex.split()"),
        ("-i -g '*.py'", "split it"),
        ("", "got the str ''"),
        (b"-i", "got bytes"),
        (5, "got int"),
        (None, "got NoneType"),
        ([5], "got int in a list"),
        ([None], "got NoneType in a list"),
        (["-i", b"-g", "x"], "got bytes in a list"),
        (("-m", 5), "got int in a tuple"),
    ],
)
def test_what_is_no_list_of_flags_is_a_type_error(flags: Any, got: str) -> None:
    with pytest.raises(TypeError) as error:
        options_from_args(flags)
    assert str(error.value).startswith("arguments must be a sequence of str, such as ['-i', '-m', '5'], got ")
    assert got in str(error.value)


@pytest.mark.parametrize(
    ("flags", "options"),
    [
        ([], {}),
        (["--glob==x", "-g=y", "-gz"], {"glob": ["=x", "y", "z"]}),
        (["-r", "-i"], {"replace": "-i"}),
        (["-r="], {"replace": ""}),
        (["-i", "-S", "-s"], {"case_sensitive": True}),
        (["--no-mmap", "--max-filesize=1M"], {"mmap": False, "max_filesize": "1M"}),
        (["--passthru", "-C2"], {"context": 2}),
        (["--ignore-file", "a", "--unicode"], {"ignore_file": ["a"], "no_unicode": False}),
    ],
)
def test_flags_become_options(flags: list[str], options: dict[str, Any]) -> None:
    assert options_from_args(flags) == options


def test_preset_searches_the_files_of_rg(newest: RgBinary, tmp_path: Path) -> None:
    """Every program that had called rg wrote these options again."""
    testing.write_tree(tmp_path, FILES)
    listed = subprocess.run([newest.path, "--files"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert sorted(sync.files(cwd=tmp_path, rg=newest, **RG_DEFAULTS)) == sorted(listed.stdout.split())
