"""`ripwrap search -`, `--rev` and `--history`, in process."""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from _operations.test_inside import zipped
from _operations.test_revisions import git
from ripwrap.cli import flags as cli_flags
from support.cli import output, run


@pytest.fixture
def repository(plant: Callable[..., Path]) -> Path:
    folder = plant({"a.py": "one\nneedle\nthree\n", "b.txt": "needle\n"})
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    (folder / "a.py").write_text("gone\n")
    git(folder, "commit", "-qam", "second")
    return folder


def test_dash_searches_standard_input(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one\nneedle \xff\n")))
    assert run("search", "needle", "-", "-B1", cwd=tmp_path).stdout == b"<stdin>-1-one\n<stdin>:2:needle \xff\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert output("search", "needle", "-", cwd=tmp_path, code=1) == ""


def test_standard_input_that_is_too_long_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cli_flags, "MAX_STDIN_BYTES", 7)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"needle\n")))
    assert output("search", "needle", "-", cwd=tmp_path) == "<stdin>:1:needle\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"needle\n\n")))
    done = run("search", "needle", "-", cwd=tmp_path, code=2)
    assert done.stdout == b""
    assert done.stderr == b"ripwrap: standard input has more than 7 bytes; save it in a file, and search that\n"


def test_rev_searches_a_revision(repository: Path) -> None:
    found = "a.py-1-one\na.py:2:needle\na.py-3-three\n"
    assert output("search", "needle", "--rev", "main~1", "-C1", "-tpy", cwd=repository) == found
    assert output("search", "needle", "a.py", "--rev", "HEAD", cwd=repository, code=1) == ""
    assert output("search", "needle", "--rev", "HEAD", cwd=repository) == "b.txt:1:needle\n"


def test_history_names_the_commit_of_each_match(repository: Path) -> None:
    first = git(repository, "rev-parse", "HEAD~1")
    lines = output("search", "needle", "--history", cwd=repository).splitlines()
    assert sorted(lines) == [f"{first[:12]}:a.py:2:needle", f"{first[:12]}:b.txt:1:needle"]
    as_json = output("search", "needle", "--history", "--jsonl", "-tpy", cwd=repository)
    assert json.loads(as_json)["first"]["id"] == first
    assert output("search", "needle", "--history", "--since=2030-01-01", cwd=repository, code=1) == ""


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--rev", "nope"], "--rev is not a revision of the repository"),
        (["--rev=-x"], "--rev must be a revision of git"),
        (["--history", "--coverage"], "--coverage cannot be combined with --history"),
        (["--rev", "HEAD", "--coverage"], "coverage cannot be combined with --rev: it reads files from the disk"),
        (["-", "a.py", "--coverage"], "standard input (-) cannot be combined with PATHS"),
        (["-", "a.py", "--near=x"], "standard input (-) cannot be combined with PATHS"),
        (["a.py", "-", "--rev", "HEAD"], "standard input (-) cannot be combined with --rev"),
        (["-", "--rev", "HEAD"], "standard input (-) cannot be combined with --rev"),
        (["--since", "2024-01-01"], "--since needs --history"),
        (["--rev", "HEAD", "--sort=path"], "--sort does not apply to items"),
    ],
)
def test_flags_that_contradict_each_other_are_errors(repository: Path, arguments: list[str], text: str) -> None:
    assert text in run("search", "needle", *arguments, cwd=repository, code=2).stderr.decode()


class TestInside:
    @pytest.fixture
    def folder(self, plant: Callable[..., Path]) -> Path:
        notebook = json.dumps({"cells": [{"cell_type": "code", "source": "one\nneedle\nthree"}]})
        return plant(
            {"a.txt": "needle\n", "n.ipynb": notebook, "f.zip": zipped({"x.py": b"needle\n"}), "b.zip": b"junk"}
        )

    @pytest.mark.slow
    def test_lines_have_the_path_of_the_member_or_part(self, folder: Path) -> None:
        found = run("search", "needle", "--inside", "zip, ipynb", "-C1", cwd=folder, code=2)
        lines = found.stdout.decode().splitlines()
        assert lines == [
            "a.txt:1:needle",
            "--",
            "f.zip!/x.py:1:needle",
            "--",
            "n.ipynb!/cell 1-1-one",
            "n.ipynb!/cell 1:2:needle",
            "n.ipynb!/cell 1-3-three",
        ]
        assert "b.zip: broken" in found.stderr.decode()
        assert output("search", "needle", "--inside=ipynb", "-tpy", cwd=folder, code=1) == ""

    @pytest.mark.slow
    def test_json_has_the_location(self, folder: Path) -> None:
        lines = output("search", "needle", "--inside=ipynb", "--jsonl", "-g*.ipynb", cwd=folder).splitlines()
        match = next(one for one in map(json.loads, lines) if one["type"] == "match")
        assert (match["location"]["cell"], match["location"]["cell_type"]) == (1, "code")

    @pytest.mark.parametrize(
        ("arguments", "text"),
        [
            (["--inside=rar"], "--inside must be 'zip'"),
            (
                ["--inside=zip", "--on=ssh:box"],
                "--on cannot be combined with --inside: archives and documents are read",
            ),
            (["--inside=zip", "--rev=HEAD"], "--rev needs a git repository"),
        ],
    )
    def test_flags_that_do_not_go_together_are_errors(self, folder: Path, arguments: list[str], text: str) -> None:
        assert text in run("search", "needle", *arguments, cwd=folder, code=2).stderr.decode()


@pytest.mark.slow
def test_each_mode_and_command_reads_a_revision_and_archives(repository: Path) -> None:
    """`-c` and `-l` refused `--inside`."""
    (repository / "f.zip").write_bytes(zipped({"x.py": b"needle\nneedle\n"}))
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "third")
    (repository / "f.zip").unlink()
    (repository / "g.zip").write_bytes(zipped({"y.py": b"needle\n"}))
    for flags, rev, inside in (
        ("search needle", "b.txt:1:needle\n", "b.txt:1:needle\ng.zip!/y.py:1:needle\n"),
        ("search needle -c", "b.txt:1\n", "b.txt:1\ng.zip!/y.py:1\n"),
        ("search needle --count-matches", "b.txt:1\n", "b.txt:1\ng.zip!/y.py:1\n"),
        ("search needle -l", "b.txt\n", "b.txt\ng.zip!/y.py\n"),
        ("search needle --files-without-match --type py", "a.py\n", "a.py\n"),
        ("search needle --near needle", "b.txt:1:needle\n", "b.txt:1:needle\ng.zip!/y.py:1:needle\n"),
        ("files", "a.py\nb.txt\nf.zip\n", "a.py\nb.txt\ng.zip\ng.zip!/y.py\n"),
    ):
        for place, expected in (("--rev=HEAD", rev), ("--inside=zip", inside)):
            found = output(*flags.split(), place, cwd=repository)
            assert sorted(found.splitlines()) == sorted(expected.splitlines()), (flags, place)
    both = output("search", "needle", "-c", "--rev=HEAD", "--inside=zip", cwd=repository)
    assert sorted(both.splitlines()) == ["b.txt:1", "f.zip!/x.py:2"]
    assert "f.zip" in output("tree", "--rev=HEAD", cwd=repository)


def test_standard_input_is_read_in_each_mode(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for flags, expected in (
        ("-c", "<stdin>:2\n"),
        ("-l", "<stdin>\n"),
        ("--inside=zip", "<stdin>:1:needle\n<stdin>:2:needle\n"),
    ):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"needle\nneedle\n")))
        assert output("search", "needle", "-", flags, cwd=tmp_path) == expected
