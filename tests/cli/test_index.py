"""`ripwrap index`, run in this process: output and exit code of each command."""

import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from ripwrap.cli import run
from ripwrap.index.storage.files import NAME

pytestmark = pytest.mark.slow  # about SQLite and files rather than Python

Plant = Callable[..., Path]


@pytest.fixture
def printed(plant: Plant, home: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Return a function that runs a command on an index of one file, and returns what it prints."""
    root = plant({"a.py": "class Jar:\n    pass\n", ".env": "COOKIE=1\n"})

    def printed(*arguments: str, location: str | None = f"--location={home}", code: int = 0) -> str:
        assert run(["index", *arguments, str(root), *([location] if location else [])]) == code
        return capfd.readouterr().out

    return printed


def rows(text: str, name: str) -> list[str]:
    return re.findall(rf"^{name}: (.*)$", text, re.MULTILINE)


def test_status_and_check_have_a_row_for_each_view(printed: Callable[..., str]) -> None:
    """After `build --hidden`, `status` said 'built: no' and printed rg's arguments as JSON."""
    assert printed("status", code=1).startswith("built: no\n")
    printed("build", "--chunker=windows", "--hidden", "-g*.py", "-g.env", "--require-git", "--threads=1")
    for command in ("status", "check"):
        (row,) = rows(printed(command, "--chunker=windows"), "views")
        assert "options '--glob=*.py' --glob=.env --hidden --require-git, files 2, chunks 2, " in row
        assert row.endswith(", current no, gone no")
    printed("build", "--chunker=windows")
    for command in ("status", "check"):
        first, second = rows(printed(command, "--chunker=windows"), "views")
        assert "options" not in first and ", current yes" in first and ", current no" in second


def test_status_and_check_show_an_index_of_another_chunker(printed: Callable[..., str], home: Path) -> None:
    """After `build` with another chunker, `status` said 'built: no'."""
    printed("build", "--chunker=windows")
    with sqlite3.connect(home / NAME) as database:
        database.execute("UPDATE meta SET value = 'syntax 1, semble-grammars 0' WHERE key = 'chunker'")
        database.execute("INSERT INTO model VALUES ('toy:model', 2, 0)")
        database.execute("INSERT INTO vec SELECT digest, 'toy:model', x'00000000' FROM chunk")
    database.close()
    text = printed("status", "--chunker=windows")
    assert text.startswith("built: yes\noutdated: yes\nfiles: 1\nchunks: 1\n")
    for said in (text, printed("check", "--chunker=windows")):
        assert rows(said, "chunker") == ["syntax 1, semble-grammars 0"]
        assert rows(said, "models") == ["name toy:model, dimension 2, vectors 1"]
        assert len(rows(said, "views")) == 1
        (message,) = rows(said, "messages")
        made = "The index was made with the chunker 'syntax 1, semble-grammars 0', and the chunker is now 'windows "
        assert message.startswith(made)
        way = "; the next `ripwrap index build` rebuilds it. To keep the index, pass --chunker=syntax."
        assert message.endswith(way)


@pytest.mark.extra
def test_status_after_a_build_with_windows_shows_it(printed: Callable[..., str]) -> None:
    """`build --chunker windows`, then `status` said 'built: no'."""
    pytest.importorskip("tree_sitter")
    pytest.importorskip("semble_grammars")
    printed("build", "--chunker=windows")
    text = printed("status")
    assert text.startswith("built: yes\noutdated: yes\n")
    assert text.endswith(" rebuilds it. To keep the index, pass --chunker=windows.\n")


@pytest.mark.parametrize(("old", "new"), [("health", "check"), ("gc", "prune")])
def test_deprecated_names_of_index_commands_warn(
    old: str, new: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """`ripwrap index gc` and `health` did not say that they are deprecated."""
    location = f"--location={folder / 'home'}"
    assert run(["index", new, str(folder), location]) == 0
    printed = capfd.readouterr()
    assert printed.err == ""
    assert run(["index", old, str(folder), location]) == 0
    said = f"ripwrap: `ripwrap index {old}` is deprecated; use `ripwrap index {new}`\n"
    assert capfd.readouterr() == (printed.out, said)


def test_status_names_an_index_in_the_other_location(
    printed: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After `build --location project`, `status` did not show the index."""
    monkeypatch.setenv("RIPWRAP_CACHE_DIR", str(tmp_path / "cache"))
    printed("build", location="--location=project")
    (message,) = rows(printed("status", location=None, code=1), "messages")
    assert re.fullmatch(r"There is an index in .*/\.ripwrap; pass --location=project to use it\.", message)
    assert rows(printed("check", location=None), "messages") == [message]
    printed("build", location=None)
    for command in ("status", "check"):
        assert rows(printed(command, location=None), "messages") == []


def test_status_and_check_report_a_damaged_index(printed: Callable[..., str], home: Path) -> None:
    """`status` did not report a damaged index, and exited as without an index."""
    printed("build")
    # This process may still have the file open, with changes in the WAL.
    with closing(sqlite3.connect(home / NAME)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with (home / NAME).open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 8000)
    status, check = printed("status", code=2), printed("check", code=2)
    assert status.startswith("built: no\noutdated: yes\n")
    assert rows(status, "messages") == rows(check, "messages")
    (message,) = rows(status, "messages")
    assert re.fullmatch(
        r"The index is damaged \(.+\); rebuild the index with `ripwrap index build --rebuild`, which also discards the "
        r"embeddings\.",
        message,
    )
    printed("build", "--rebuild")
    assert rows(printed("status"), "messages") == []


def test_grep_prints_what_search_prints(plant: Plant, home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    root = plant({"a.py": "class Jar:\n    pass\n", "b.py": "x = 1\n", "c/d.py": "Jar()\n", ".env": "Jar\n"})
    for arguments in (
        ["Jar"],
        ["class|Jar", "-C1"],
        ["jar", "-i", "--limit=1"],
        ["Jar", "-g*.py"],
        ["Jar", "--hidden"],
    ):
        assert run(["index", "grep", *arguments, str(root), f"--location={home}"]) == 0
        found = sorted(capfd.readouterr().out.splitlines())
        paths = [] if "--hidden" in arguments else ["--no-hidden"]
        assert run(["search", *arguments, "--sort=path", f"--cwd={root}", *paths]) == 0
        assert found == sorted(capfd.readouterr().out.splitlines())


def test_grep_has_exit_codes_and_json(printed: Callable[..., str]) -> None:
    printed("grep", "Jar", "--no-refresh", code=2)  # there is no index yet
    result = json.loads(printed("grep", "Jar", "--json"))
    assert (result["total_matches"], result["candidates"], result["files_total"]) == (1, 1, 1)
    assert printed("grep", "Jug", code=1) == printed("grep", "Jug", "--json", code=1) == ""
    printed("grep", "Ja(r", code=2)
    printed("grep", "Jar", "--max-columns=-1", code=2)
    assert printed("grep", "Jar", "--no-refresh") == "a.py:1:class Jar:\n"


def test_grep_says_when_a_plain_search_is_faster(
    plant: Plant, home: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index pays only if it has many files, and if few of them may match."""
    root = plant({"a.py": "class Jar:\n", "b.py": "Jar\n", "c.py": "x = 1\n", "d.py": "y\n", "e.py": "z\n"})

    def said(pattern: str) -> str:
        assert run(["index", "grep", pattern, str(root), f"--location={home}"]) == 0
        return capfd.readouterr().err

    assert said("Jar") == "ripwrap: the index has only 5 files; `ripwrap search` is faster\n"
    monkeypatch.setattr("ripwrap.cli.index._FEW_FILES", 3)
    assert said("Jar") == ""
    many = "5 of 5 files may match, so the index saved little; `ripwrap search` is faster\n"
    assert said("[a-z]") == f"ripwrap: {many}"
