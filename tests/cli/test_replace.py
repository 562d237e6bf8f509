"""`ripwrap replace`: the diff, the questions, writing, and undoing."""

import io
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support.cli import on_terminal, output, run

Plant = Callable[..., Path]
FILES: dict[str | bytes, str | bytes] = {"a": "foo\nx\nfoo\n", "b": b"\xff foo\r\n"}


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def texts(folder: Path) -> list[bytes]:
    return [(folder / name).read_bytes() for name in ("a", "b")]


OLD = [b"foo\nx\nfoo\n", b"\xff foo\r\n"]
NEW = [b"[o]\nx\n[o]\n", b"\xff [o]\r\n"]


def test_dry_run_prints_a_diff_that_git_applies(plant: Plant) -> None:
    folder = plant(FILES)
    done = run("replace", "fo(o)", "[$1]", cwd=folder)
    assert done.stderr == b"ripwrap: 3 replacements in 2 files. --apply writes them.\n"
    assert texts(folder) == OLD
    subprocess.run(["git", "apply", "-p1", "-"], cwd=folder, input=done.stdout, check=True)
    assert texts(folder) == NEW


def test_apply_and_undo(plant: Plant) -> None:
    folder = plant(FILES)
    said = output("replace", "fo(o)", "[$1]", "--apply", cwd=folder)
    assert said == "2 files changed. `ripwrap undo` restores them.\n"
    assert texts(folder) == NEW
    assert output("undo", cwd=folder) == "2 files restored.\n"
    assert texts(folder) == OLD
    assert b"no replacement to undo in" in run("undo", cwd=folder, code=2).stderr
    assert run("replace", "zebra", "x", "--apply", cwd=folder, code=1).stderr == b"ripwrap: Nothing to replace.\n"


def test_undo_takes_the_directory_that_was_searched(plant: Plant) -> None:
    folder = plant({"sub/a": FILES["a"], "sub/b": FILES["b"]})
    run("replace", "foo", "x", "--apply", "--cwd=sub", cwd=folder)
    assert output("undo", "sub", cwd=folder) == "2 files restored.\n"
    assert texts(folder / "sub") == OLD


def test_dry_run_shows_the_diff_and_writes_nothing(plant: Plant) -> None:
    folder = plant(FILES)
    assert output("replace", "foo", "x", "a", "--dry-run", cwd=folder) == output("replace", "foo", "x", "a", cwd=folder)
    assert texts(folder) == OLD


def test_json_has_the_plan_and_the_journal(plant: Plant) -> None:
    folder = plant(FILES)
    plan = json.loads(output("replace", "foo", "x", "--json", cwd=folder))
    assert [file["path"] for file in plan["files"]] == ["a", "b"]
    applied = json.loads(output("replace", "foo", "x", "a", "--json", "--apply", cwd=folder))
    assert applied["files"] == [str(folder / "a")]
    assert output("undo", "--journal", applied["journal"], cwd=folder.parent) == "1 file restored.\n"
    assert texts(folder) == OLD


@pytest.mark.parametrize(
    ("answers", "after", "code"),
    [
        ("y\nn\ny\n", [b"x\nx\nfoo\n", b"\xff x\r\n"], 0),
        ("?\nn\na\n", [b"foo\nx\nx\n", b"\xff x\r\n"], 0),
        ("y\nd\n", [b"x\nx\nfoo\n", b"\xff foo\r\n"], 0),
        ("y\nq\n", OLD, 1),
        ("y\n", OLD, 1),
        ("n\nn\nn\n", OLD, 1),
    ],
)
def test_interactive_writes_what_was_chosen(
    plant: Plant, monkeypatch: pytest.MonkeyPatch, answers: str, after: list[bytes], code: int
) -> None:
    folder = plant(FILES)
    monkeypatch.setattr("sys.stdin", io.StringIO(answers))
    said = run("replace", "foo", "x", "--interactive", cwd=folder, code=code).stdout.decode("utf-8", "replace")
    assert "Replace this (1 of 3 replacements)? [y,n,a,d,q,?] " in said
    assert ("q: quit and write nothing" in said) is ("?" in answers)
    assert texts(folder) == after


@pytest.mark.posix
def test_diff_is_colored_on_a_terminal(plant: Plant) -> None:
    shown = on_terminal("replace", "foo", "x", "a", cwd=plant(FILES))
    assert "\x1b[31m-foo\x1b[0m\n\x1b[32m+x\x1b[0m\n" in shown
    assert "\x1b[36m@@ -1,3 +1,3 @@\x1b[0m" in shown


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("a b --apply --interactive", "--apply cannot be combined with --interactive"),
        ("a b --dry-run --apply", "--apply cannot be combined with --dry-run"),
        ("a b --undo", "unknown option --undo"),
        ("a", "REPLACEMENT is missing"),
        ("a $1", "the replacement refers to ${1}, but the pattern has no such group (it has no groups)"),
        (r"a \q --escapes", "or leave --escapes out"),
        ("a b --replace c", "unknown option --replace"),
        ("( b", "regex parse error"),
    ],
)
def test_errors_name_the_flag(plant: Plant, arguments: str, says: str) -> None:
    assert says in run("replace", *arguments.split(), cwd=plant(FILES), code=2).stderr.decode()


def test_hard_links_are_refused_with_the_flag_that_allows_them(plant: Plant, needs_posix: None) -> None:
    folder = plant(FILES)
    (folder.parent / "other").hardlink_to(folder / "a")
    assert (
        b"--break-hard-links changes these paths and makes each a separate file"
        in run("replace", "foo", "x", "--apply", cwd=folder, code=2).stderr
    )
    run("replace", "foo", "x", "--apply", "--break-hard-links", cwd=folder)
    assert (folder / "a").read_bytes() == b"x\nx\nx\n"


@pytest.mark.slow
def test_files_that_are_left_out_are_errors(plant: Plant) -> None:
    folder = plant({**FILES, "binary": b"foo\n" * 20_000 + b"\0"})
    done = run("replace", "foo", "x", "--apply", cwd=folder, code=2)
    assert b"binary: left out: it is binary (NUL at byte 80000)" in done.stderr
    assert (folder / "a").read_bytes() == b"x\nx\nx\n"
