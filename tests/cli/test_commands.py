"""Commands for functions of the library: `files-matching`, `watch`, `read`, `expand` and `code`."""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from ripwrap.results import Expansion, MatchChange
from support.cli import RIPWRAP, output, run

Plant = Callable[..., Path]
RunningIn = Callable[[Path], list[psutil.Process]]

CART = """\
PRICES = {"tea": 3}


def total(items):
    # TODO: taxes
    return sum(PRICES[item] for item in items)
"""


def test_files_matching_combines_patterns(plant: Plant) -> None:
    folder = plant({"a": "one\ntwo\n", "b": "one\n", "c": "two\nthree\n", ".d": "one\ntwo\n"})
    asked = ("files-matching", "--all-of=one", "--all-of", "two")
    assert output(*asked, cwd=folder) == ".d\na\n"
    assert output(*asked, "--no-hidden", "-0", cwd=folder) == "a\0"
    assert output("files-matching", "--any-of=on", "--none-of=two", "--jsonl", cwd=folder) == '"b"\n'
    assert output("files-matching", "--all-of=zebra", cwd=folder, code=1) == ""
    assert b"ripwrap: no pattern" in run("files-matching", cwd=folder, code=2).stderr


def test_read_prints_numbered_lines(plant: Plant) -> None:
    folder = plant({"src/a.txt": "one\ntwo\nthree\nfour\n"})
    assert output("read", "src/a.txt", "--lines=2-3", cwd=folder) == (
        "File: src/a.txt\n  2: two\n  3: three\n\n(Lines 2 to 3 of 4.)\n"
    )
    ends = output("read", "a.txt", "--head=1", "--tail=1", "--cwd=src", cwd=folder).splitlines()
    assert "  1: one" in ends and "  4: four" in ends and "  2: two" not in ends
    assert json.loads(output("read", "src/a.txt", "--json", cwd=folder))["total_lines"] == 4
    assert "  1: one" in output("read", str(folder / "src" / "a.txt"), cwd=folder.parent)
    assert "  1: one" in output("read", "../src/a.txt", cwd=folder / "src")
    assert run("read", "gone", cwd=folder, code=2).stderr == b"ripwrap: no such file; check FILE or --cwd: 'gone'\n"


def test_expand_prints_the_code_around_a_line(plant: Plant) -> None:
    folder = plant({"cart.py": CART})
    assert output("expand", "cart.py:5", cwd=folder) == (
        "cart.py:4-6 function total\n  4- def total(items):\n  5:     # TODO: taxes\n"
        "  6-     return sum(PRICES[item] for item in items)\n"
    )
    assert output("expand", "cart.py:5", "--lines=0", cwd=folder).splitlines() == [
        "cart.py:5-5",
        "  5:     # TODO: taxes",
    ]
    assert Expansion.model_validate_json(output("expand", "cart.py:5", "--json", cwd=folder)).name == "total"
    for place, says in (
        ("cart.py", "FILE:LINE must be"),
        ("cart.py:0", "FILE:LINE must be"),
        ("cart.py:7", "no line 7"),
    ):
        assert says in run("expand", place, cwd=folder, code=2).stderr.decode()


@pytest.mark.extra
def test_code_searches_and_replaces_by_syntax(plant: Plant) -> None:
    pytest.importorskip("ast_grep_py")
    folder = plant({"a.py": CART, "b.py": "PRICES[1]\n", "c.py": "def (\n"})
    found = ("code", "--lang=python", "PRICES[$A]")
    assert output(*found, "a.py", "b.py", cwd=folder) == (
        "a.py:6:    return sum(PRICES[item] for item in items)\nb.py:1:PRICES[1]\n"
    )
    assert (
        output(*found, "-o", "--heading", "a.py", "b.py", cwd=folder) == "a.py\n6:PRICES[item]\n\nb.py\n1:PRICES[1]\n"
    )
    assert json.loads(output(*found, "--jsonl", "b.py", cwd=folder))["metavariables"] == {"A": "1"}
    assert b"c.py: " in run("code", "--lang=python", "def", cwd=folder, code=2).stderr
    assert "+get(1)\n" in output(*found, "--fix=get($A)", "b.py", cwd=folder)
    said = output(*found, "--fix", "get($A)", "b.py", "--apply", cwd=folder)
    assert said == "1 file changed. `ripwrap undo` restores them.\n"
    assert (folder / "b.py").read_text() == "get(1)\n"
    for arguments, says in {
        ("--apply",): "need --fix; add --fix",
        ("--fix=x", "--apply", "--dry-run"): "--apply cannot be combined with --dry-run",
    }.items():
        assert says in run(*found, *arguments, cwd=folder, code=2).stderr.decode()
    assert run("code", "x", cwd=folder, code=2).stderr == b"ripwrap: --lang is missing; see `ripwrap code --help`\n"


@pytest.mark.slow
@pytest.mark.posix
@pytest.mark.extra
def test_watch_prints_added_and_removed_matches(plant: Plant, running_in: RunningIn) -> None:
    pytest.importorskip("watchfiles")
    folder = plant({"a": "needle\n"})
    for json_flag in ((), ("--jsonl",)):
        (folder / "a").write_text("needle\n")
        with subprocess.Popen(
            [*RIPWRAP, "watch", "needle", *json_flag],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0,
        ) as program:
            assert program.stdout is not None
            first = program.stdout.readline()
            (folder / "a").write_text("hay\nneedles\n")
            second = program.stdout.readline()
            third = b"" if json_flag else program.stdout.readline()
            os.killpg(program.pid, signal.SIGINT)
            stdout, stderr = program.communicate(timeout=30)
        assert (program.returncode, stdout, stderr) == (130, b"", b"")
        if json_flag:
            assert [len(MatchChange.model_validate_json(one).added) for one in (first, second)] == [1, 1]
        else:
            assert [first, second, third] == [b"+a:1:needle\n", b"-a:1:needle\n", b"+a:2:needles\n"]
    assert running_in(folder) == []
