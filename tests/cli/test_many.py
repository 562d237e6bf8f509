"""`ripwrap search --repositories`: output, errors and exit codes."""

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.cli import on_terminal, output, run
from support.paths import native

Plant = Callable[..., Path]


@pytest.fixture
def roots(plant: Plant) -> Path:
    return plant({"src/a/f.py": "x 1\nx 2\n", "src/b/g.py": "x 3\n", "src/c/h.py": "no\n", "other.py": "x\n"})


@pytest.mark.slow
def test_matches_have_paths_that_open_from_here(roots: Path) -> None:
    arguments = ("search", "x", "--repositories", "src/*")
    first, second, third = (native(line) for line in ("src/a/f.py:1:x 1\n", "src/a/f.py:2:x 2\n", "src/b/g.py:1:x 3\n"))
    assert output(*arguments, cwd=roots) == first + second + third
    assert output(*arguments, "--per-root", "1", cwd=roots) == first + third
    assert output(*arguments, "--limit", "1", cwd=roots) == first
    assert output(*arguments, "--exclude-root", "a", cwd=roots) == third
    assert output(*arguments, "--only-root", "a", "-g", "*.md", cwd=roots, code=1) == ""
    assert output(*arguments, "--cwd", str(roots), "--only-root", "b", cwd=roots / "src") == third
    away = output("search", "x", "--repositories", str(roots / "src/*"), "--only-root", "b", cwd=roots / "src/c")
    assert away == os.path.join(roots, third)


def test_count_covers_each_root_as_a_whole(roots: Path) -> None:
    assert output("search", "-c", "x", "--repositories", "src/*", cwd=roots) == native("src/a:2\nsrc/b:1\n")


def test_json_has_the_name_of_the_root(roots: Path) -> None:
    lines = output("search", "x", "--repositories", "src/*", "--jsonl", cwd=roots).splitlines()
    assert [(one["root"], one["path"]) for one in map(json.loads, lines)] == [
        ("a", "f.py"),
        ("a", "f.py"),
        ("b", "g.py"),
    ]


@pytest.mark.slow
@pytest.mark.posix
def test_terminal_shows_headings_and_a_progress_bar(roots: Path) -> None:
    shown = on_terminal("search", "x", "--repositories", "src/*", "--color=never", cwd=roots)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", shown)
    assert "3/3 roots" in text
    lines = [line for line in text.split("\n") if line and "searching" not in line]
    assert lines == ["src/a/f.py", "1:x 1", "2:x 2", "src/b/g.py", "1:x 3"]


def test_failed_root_is_named_and_the_others_are_printed(roots: Path) -> None:
    done = run("search", "x", "--repositories", "src/b", "--repositories", "gone", cwd=roots, code=2)
    assert done.stdout.decode() == native("src/b/g.py:1:x 3\n")
    assert done.stderr == b"ripwrap: gone: the directory does not exist\n"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--per-root", "1"], "--per-root needs --repositories; add --repositories"),
        (["--dask", "tcp://a:1"], "--dask needs --repositories; add --repositories"),
        (["--repositories", "none/*"], "no directory matches"),
        (["--repositories", "src/*", "-C1"], "--repositories prints no context; leave out --context"),
        (["--repositories", "src/*", "-l"], "--repositories takes no PATH, "),
        (["src", "--repositories", "src/*"], "--repositories takes no PATH, "),
        (["--repositories", "src/*", "--per-root=-1"], "--per-root must be a whole number, 0 or more, got -1"),
    ],
)
def test_wrong_arguments_are_named(roots: Path, arguments: list[str], text: str) -> None:
    error = run("search", "x", *arguments, cwd=roots, code=2).stderr.decode()
    assert error.startswith(f"ripwrap: {text}") and error.count("\n") == 1


def test_missing_package_of_dask_is_named(roots: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    error = run("search", "x", "--repositories", "src/*", "--dask", "tcp://localhost:1", cwd=roots, code=2).stderr
    assert error.decode() == 'ripwrap: --dask needs the package distributed: pip install "ripwrap[cluster]"\n'
