"""Habits of rg that the command line has: links are not followed, and a pipe is read if there is no PATH."""

import gzip
import io
import lzma
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from _operations.test_revisions import git
from ripwrap import sync
from support.cli import RIPWRAP, output, run

Plant = Callable[..., Path]


@pytest.fixture
def linked(plant: Plant) -> Path:
    """Directory with a link to a directory, to a file, and to the directory above."""
    folder = plant({"here/a.py": "needle tok_abcd\n", "there/b.py": "needle tok_abcd\n"})
    for name, target in {"dir": "../there", "file.py": "../there/b.py", "loop": ".."}.items():
        (folder / "here" / name).symlink_to(target)
    return folder / "here"


@pytest.mark.posix
@pytest.mark.parametrize(
    "arguments",
    [
        ("search", "needle", "-l"),
        ("search", "needle", "-c"),
        ("search", "needle"),
        ("files",),
        ("tree",),
        ("search", "needle", "--near", "tok"),
        ("search", "needle", "--repositories", "."),
        ("scan",),
    ],
    ids=" ".join,
)
def test_links_are_followed_only_with_follow(arguments: tuple[str, ...], linked: Path) -> None:
    """The command line follows links only with -L, as rg does; the library follows them."""
    if arguments[0] == "scan":
        (linked.parent / "rules.toml").write_text('[[rules]]\nid = "t"\npattern = "tok_[a-z]+"\n')
        arguments = ("scan", "--rules=../rules.toml")
    code = 1 if arguments[0] == "scan" else 0
    plain = output(*arguments, cwd=linked, code=code)
    assert "a.py" in plain
    assert not any(name in plain for name in ("b.py", "file.py", "loop"))
    for flag in ("-L", "--follow"):
        followed = output(*arguments, flag, cwd=linked, code=code)
        assert "b.py" in followed and "file.py" in followed
        assert "loop" not in followed
    assert output(*arguments, "-L", "--no-follow", cwd=linked, code=code) == plain
    assert sorted(sync.files(cwd=linked)) == ["a.py", "dir/b.py", "file.py"]


@pytest.mark.posix
def test_link_that_is_named_is_followed(linked: Path) -> None:
    """As in rg, a link that is given as PATH is always followed."""
    assert sorted(output("search", "needle", "-l", "dir", "file.py", cwd=linked).split()) == ["dir/b.py", "file.py"]
    assert "symbolic link" in output("why", "dir/b.py", cwd=linked, code=1).lower()
    assert output("why", "dir/b.py", "-L", cwd=linked)


@pytest.fixture
def pipe() -> Iterator[Callable[[bytes], io.TextIOWrapper]]:
    """Return a function that makes a pipe with some bytes."""
    opened: list[io.TextIOWrapper] = []

    def make(content: bytes) -> io.TextIOWrapper:
        reading, writing = os.pipe()
        os.write(writing, content)
        os.close(writing)
        opened.append(open(reading))  # noqa: SIM115 - closed below
        return opened[-1]

    yield make
    for one in opened:
        one.close()


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (("search", "needle"), "<stdin>:1:needle in a pipe\n"),
        (("search", "needle", "-c"), "<stdin>:1\n"),
        (("search", "needle", "--count-matches"), "<stdin>:1\n"),
        (("search", "needle", "-l"), "<stdin>\n"),
        (("search", "hay", "--files-without-match"), "<stdin>\n"),
        (("search", "needle", "--near", "pipe"), "<stdin>:1:needle in a pipe\n"),
        (
            ("search", "needle", "-g", "*.py", "-t", "py", "--sort=path", "--max-depth=1"),
            "<stdin>:1:needle in a pipe\n",
        ),
        (("search", "needle", "--encoding=detect"), "<stdin>:1:needle in a pipe\n"),
    ],
)
def test_search_without_path_reads_a_pipe(
    arguments: tuple[str, ...],
    printed: str,
    plant: Plant,
    pipe: Callable[[bytes], io.TextIOWrapper],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each mode of a search reads a pipe; globs do not leave standard input out, as in rg."""
    folder = plant({"a.py": "needle in a file\n"})
    monkeypatch.setattr(sys, "stdin", pipe(b"needle in a pipe\n"))
    assert output(*arguments, cwd=folder) == printed


@pytest.mark.parametrize(
    "arguments",
    [
        ("search", "needle", "."),
        ("search", "needle", "a.py"),
        ("search", "needle", "--rev=HEAD"),
        ("search", "needle", "--history"),
        ("search", "needle", "--coverage"),
        ("search", "needle", "--repositories", "."),
        ("files",),
        ("rank", "needle"),
    ],
    ids=" ".join,
)
def test_path_or_place_is_read_in_place_of_a_pipe(
    arguments: tuple[str, ...],
    plant: Plant,
    pipe: Callable[[bytes], io.TextIOWrapper],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A PATH, and flags that say where to look, are read in place of a pipe."""
    folder = plant({"a.py": "needle in a file\n"})
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"]):
        git(folder, *words)
    monkeypatch.setattr(sys, "stdin", pipe(b"needle in a pipe\n"))
    printed = output(*arguments, cwd=folder)
    assert "a.py" in printed
    assert "pipe" not in printed


def test_scan_reads_standard_input_only_if_it_is_named(
    plant: Plant, pipe: Callable[[bytes], io.TextIOWrapper], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty pipe, as programs of a build server have, must not hide the files from a scan for secrets."""
    folder = plant({"a.py": "tok_abcd\n", "rules.toml": '[[rules]]\nid = "t"\npattern = "tok_[a-z]{4}"\n'})
    monkeypatch.setattr(sys, "stdin", pipe(b""))
    assert output("scan", "--rules=rules.toml", cwd=folder, code=1) == "a.py:1:1: t: tok_abcd\n"


@pytest.mark.slow
def test_program_reads_its_pipe_and_no_terminal(plant: Plant) -> None:
    """A pipe and a file are read; `/dev/null` and a closed stdin are not."""
    folder = plant({"a.py": "needle in a file\n"})
    argv = [*RIPWRAP, "search", "needle"]
    piped = subprocess.run(argv, cwd=folder, input=b"needle in a pipe\n", capture_output=True, check=True, timeout=60)
    assert piped.stdout == b"<stdin>:1:needle in a pipe\n"
    null = subprocess.run(argv, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=60)
    assert null.stdout == b"a.py:1:needle in a file\n"
    with open(folder / "a.py") as file:
        redirected = subprocess.run(argv, cwd=folder, stdin=file, capture_output=True, check=True, timeout=60)
    assert redirected.stdout == b"<stdin>:1:needle in a file\n"


@pytest.mark.slow
@pytest.mark.parametrize("command", [("search", "needle"), ("search", "-c", "needle"), ("scan",)], ids=" ".join)
def test_closed_standard_input_is_empty(command: tuple[str, ...]) -> None:
    """`ripwrap search needle - <&-` ended with a traceback; `rg needle - <&-` finds nothing.

    Python sets `sys.stdin` to None if it is closed at the start.
    """
    code = "import sys; sys.stdin = None; from ripwrap.__main__ import main; main()"
    argv = [sys.executable, "-c", code, *command, "-"]
    ended = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60)
    assert (ended.stdout, ended.stderr) == (b"", b"")
    assert ended.returncode == (0 if command == ("scan",) else 1)


def test_search_zip_reads_compressed_files(plant: Plant) -> None:
    folder = plant({"a": "needle\n", "b.gz": gzip.compress(b"needle\n"), "c.xz": lzma.compress(b"needle\n")})
    assert output("search", "needle", "-z", "-l", "--sort=path", cwd=folder) == "a\nb.gz!/b\nc.xz!/c\n"
    assert output("search", "needle", "-z", "--no-search-zip", "-l", cwd=folder) == "a\n"


def test_pretty_is_short_for_three_flags_that_later_ones_override(plant: Plant) -> None:
    folder = plant({"a": "needle\n"})
    colored = "\x1b[35ma\x1b[0m\n\x1b[32m1\x1b[0m:\x1b[1;31mneedle\x1b[0m\n"
    assert output("-p", "needle", cwd=folder) == output("-N", "--no-heading", "-p", "needle", cwd=folder) == colored
    assert output("-p", "--no-heading", "--color=never", "needle", cwd=folder) == "a:1:needle\n"


@pytest.mark.slow
@pytest.mark.posix
def test_line_buffered_results_do_not_wait_for_the_end(plant: Plant) -> None:
    folder = plant({"a": "needle\n"})
    os.mkfifo(folder / "fifo")
    argv = [*RIPWRAP, "needle", "a", "fifo", "-j1", "--line-buffered"]
    with subprocess.Popen(argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"a:1:needle\n"
        (folder / "fifo").write_bytes(b"")


def test_tree_of_a_directory_that_is_only_in_the_revision(plant: Plant) -> None:
    """`ripwrap tree sub --rev REV` was refused if `sub` is not on the disk."""
    folder = plant({"top/gone/a.py": "", "top/gone/deep/b.txt": "", "top/stay.py": ""})
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"], ["rm", "-rq", "top/gone"]):
        git(folder, *words)
    whole = "deep/\n    b.txt\na.py\n"
    for cwd, path in (("top", "gone"), (".", "top/gone/"), ("top", "./gone"), (".", str(folder / "top" / "gone"))):
        assert output("tree", path, "--rev=HEAD", cwd=folder / cwd) == whole
    assert output("tree", "top/gone", "--rev=HEAD", "-g", "*.py", cwd=folder) == "a.py\n"
    assert output("tree", "top/gone", "--rev=HEAD", "--max-depth=1", cwd=folder) == "deep/\na.py\n"
    assert output("tree", "top", "--rev=HEAD", cwd=folder).startswith("gone/\n")
    for path, says in (("top/gone/a.py", "PATH must be a directory"), ("nope", "no such path in HEAD")):
        assert says in run("tree", path, "--rev=HEAD", cwd=folder, code=2).stderr.decode()
    assert "PATH must be a directory" in run("tree", "top/gone", cwd=folder, code=2).stderr.decode()


@pytest.mark.parametrize(
    "command", ["files", "tree", "search x", "search x a.py", "scan", "rank x", "refs x", "replace x y", "x"]
)
def test_glob_in_place_of_a_path_is_answered_with_the_flag(command: str, plant: Plant) -> None:
    """`ripwrap files '*.py'` only said that there is no such file."""
    folder = plant({"a.py": "x\n", "sub/b.py": "x\n"})
    said = run(*command.split(), "sub/*.rs", cwd=folder, code=2).stderr.decode()
    assert said.endswith("; did you mean -g 'sub/*.rs'?\n")
    assert "did you mean" not in run(*command.split(), "gone.py", cwd=folder, code=2).stderr.decode()


def test_tree_shows_the_directories_at_the_maximum_depth(plant: Plant) -> None:
    """`ripwrap tree -d 1` showed no directory, because rg lists no file of a directory at this depth."""
    folder = plant({"src/deep/a.py": "", "src/b.py": "", "top": "", "one/two/three/c": ""})
    assert output("tree", "-d", "1", cwd=folder) == "one/\nsrc/\ntop\n"
    assert output("tree", "-d2", cwd=folder) == "one/\n    two/\nsrc/\n    deep/\n    b.py\ntop\n"
    assert output("tree", "-d2", "src", cwd=folder) == "deep/\n    a.py\nb.py\n"
    assert output("tree", "-d1", "--limit=2", cwd=folder) == "one/\nsrc/\n[1 truncated]\n"
    assert output("tree", "-d0", cwd=folder, code=1) == ""
    assert str(sync.tree_text(cwd=folder, max_depth=1)) == "one/\nsrc/\ntop"
