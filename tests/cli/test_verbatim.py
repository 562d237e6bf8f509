"""Lines that are copied from rg are, byte for byte, those that ripwrap prints from objects."""

import itertools
import os
import random
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ripwrap.cli import verbatim
from ripwrap.cli.flags import TerminalSearch
from support.cli import on_terminal, run
from support.effort import times

Plant = Callable[..., Path]

LATE = b"needle\n" + (b"x" * 999 + b"\n") * 80 + b"\0\nneedle\n"
"""Text with a NUL after the first block that rg reads."""

WORDS = [
    "needle",
    "-i NEEDLE",
    "-w needle",
    "-v needle",
    "'(need)(le)'",
    "-F 'needle('",
    "-U 'needle.*\\n.*'",
    "''",
    "zebra",
]
FLAGS = [
    *("-N", "-b", "-o", "--column", "--vimgrep", "--trim", "-0", "-M 20", "-A1", "-B 2", "-C1", "-m1", "-m0"),
    *("--heading", "--no-heading", "-I", "-r '<$0>'", "--crlf", "--null-data", "-a", "--binary", "-uuu", "-j1"),
    *("-P", "--stop-on-nonmatch", "--passthru", "--limit 2", "--color=never", "--color=always", "--stats"),
    *("--no-messages", "--line-buffered", "-E utf-16le", "-E latin1", "-g '*.py'", "-L", "--no-unicode", "--pretty"),
]
PATHS = [
    "",
    "",
    "src",
    "src a.py",
    "a.py",
    ".",
    "./src",
    "src/",
    "late",
    "late src",
    "gone src",
    "gone",
    "bin",
    "empty",
    "noend",
]


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("verbatim")
    files: dict[bytes, bytes] = {
        b"a.py": b"  needle one\nother\nNeedle two needle\n\n\nneedle(3)\n",
        b"src/b.py": b"\tneedle\r\nsecond\r\nthird needle\r\n",
        b"src/late": LATE,
        b"late": LATE,
        b"bin": b"\0needle\n",
        b"src/bin": b"\0needle\n",
        b"empty": b"",
        b"noend": b"needle at the end",
        b"long": b"needle " + b"x" * 40_000 + b" needle\nneedle\n",
        b"log": b'x: WARNING: stopped searching binary file after match (found "\\0" byte around offset 5)\nneedle\n',
        b"utf16": "\ufeffneedle\nother\n".encode("utf-16-le"),
        b".hidden": b"needle hidden\n",
    }
    if os.name == "posix":
        files |= {b"caf\xe9": b"needle caf\xe9\n", b"a:1:b": b"needle\n", b"new\nline": b"needle\n"}
    for name, content in files.items():
        path = folder / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    if os.name == "posix":
        (folder / "broken").symlink_to("nowhere")
    return folder


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """List with an item for each search that was copied."""
    calls: list[bool] = []
    copy = verbatim.print_verbatim

    def counted(search: TerminalSearch) -> int:
        calls.append(True)
        return copy(search)

    monkeypatch.setattr(verbatim, "print_verbatim", counted)
    with open(os.devnull) as null:
        monkeypatch.setattr(sys, "stdin", null)
        yield calls


def both(line: str, folder: Path, copied: list[bool]) -> bool:
    """Return True if a search was copied; assert that it then has the output of objects."""
    words = [*shlex.split(line), *(() if "--sort" in line else ("--sort=path",))]
    copied.clear()
    done = answer(words, folder)
    was_copied = bool(copied)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verbatim, "is_verbatim", lambda search: False)
        assert answer(words, folder) == done, line
    return was_copied


def answer(words: list[str], folder: Path) -> tuple[int, bytes, bytes]:
    for code in (0, 1, 2):
        try:
            done = run("search", *words, cwd=folder, code=code)
        except AssertionError:
            continue
        varying = re.compile(rb"^[\d.]+(?= bytes printed| seconds)", re.MULTILINE)
        return code, varying.sub(b"N", done.stdout), done.stderr
    raise AssertionError(words)


@pytest.mark.parametrize("flag", FLAGS)
def test_each_flag_prints_the_lines_of_objects(flag: str, planted: Path, copied: list[bool]) -> None:
    words, paths = ("needle", "zebra", "-U 'needle.*\\n.*'"), ("", "src", "a.py", "late", "gone src")
    for word, path in itertools.product(words, paths) if times(0, 1) else zip(itertools.cycle(words), paths):
        both(f"{flag} {word} {path}", planted, copied)


@pytest.mark.slow
def test_combined_flags_print_the_lines_of_objects(planted: Path, copied: list[bool]) -> None:
    choose = random.Random(7)
    tried = times(80, 3_000)
    lines = (
        " ".join((*choose.sample(FLAGS, choose.randrange(4)), choose.choice(WORDS), choose.choice(PATHS)))
        for _ in range(tried)
    )
    assert sum(both(line, planted, copied) for line in lines) > tried // 8


@pytest.mark.parametrize(
    ("line", "is_copied"),
    [
        ("needle", True),
        ("needle src a.py", True),
        ("-e needle -e other -C1 --heading", True),
        ("needle late", False),
        ("needle ./src", False),
        ("needle -I", False),
        ("needle --color=always", False),
        ("needle --limit 1", False),
        ("needle --jsonl", False),
        ("needle --json", False),
        ("needle --binary", False),
        ("needle -E latin1", False),
        ("needle --passthru", False),
        ("needle --stats", False),
        ("needle -l", False),
        ("needle --near other", False),
    ],
)
def test_lines_are_copied_where_they_are_the_same(
    line: str, is_copied: bool, planted: Path, copied: list[bool]
) -> None:
    run(*shlex.split(line), cwd=planted, code=0)
    assert bool(copied) is is_copied


@pytest.mark.posix
def test_lines_on_a_terminal_are_not_copied(plant: Plant, copied: list[bool]) -> None:
    assert on_terminal("search", "needle", "--color=never", cwd=plant({"a": "\x1b[2Jneedle\n"})) == (
        "a\n1:\\x1b[2Jneedle\n"
    )
    assert not copied


@pytest.mark.posix
def test_line_that_looks_like_a_note_is_not_hidden_by_the_name_of_a_file(plant: Plant, copied: list[bool]) -> None:
    """A file may be named so that a line of another one looks like rg's note about it."""
    line = 'x: WARNING: stopped searching binary file after match (found "\\0" byte around offset 5)'
    folder = plant({"a": f"{line}\n", "a:1:x": "\n"})
    done = run("search", "WARNING", cwd=folder)
    assert (done.stdout, copied) == (f"a:1:{line}\n".encode(), [True])
    done = run("search", "WARNING", "--heading", cwd=plant({"1:x": "\n"}))
    assert done.stdout == f"a\n1:{line}\n".encode()
