"""Names in answers of the tools: each can be passed back, and no two files have the same one."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ripwrap import AccessDeniedError, SearchError, sync
from ripwrap._text import path_from_shown, shown, shown_path
from ripwrap.binary import RgBinary

pytestmark = pytest.mark.posix  # Windows has no such names

Plant = Callable[..., Path]

NAMES = (
    "a\nb.txt",
    r"a\x0ab.txt",
    r"a\x5cx0ab.txt",
    "c\x85d.txt",
    "c\x9b31m.txt",
    "\u202etxt.e",
    r"\u202etxt.e",
    r"p\q\x41.txt",
)


@pytest.mark.parametrize("name", NAMES)
def test_name_in_an_answer_can_be_passed_back(rg: RgBinary, plant: Plant, name: str) -> None:
    r"""`a\x0ab.txt` was the name of two files, and only one of them could be read."""
    tools = sync.Workspace(plant({one: f"needle {number}\n" for number, one in enumerate(NAMES)}), rg=rg)
    line = f"  1: needle {NAMES.index(name)}"
    files = [text for text in tools.find_files("*").splitlines() if text and not text.startswith("(")]
    assert len(set(files)) == len(NAMES)
    given = files[sorted(NAMES, key=os.fsencode).index(name)]
    assert shown(given) == given
    assert line in tools.read_file(given).splitlines()
    assert f"File: {given}" in tools.grep_content("needle", path=given)
    for pattern in {"file_pattern": given}, {"file_pattern": [given]}:
        assert line.strip() in tools.call("grep_content", {"pattern": "needle", **pattern})
    assert tools.find_files_result(given).files == (name,)
    assert f"  - {given}" in tools.ls().splitlines()
    assert name == NAMES[-1] or f"  - {given}" not in tools.ls(ignore=[given]).splitlines()  # there, `\q` is a glob
    values = tools.find_files_result("*").structured()["files"]
    assert len(set(values)) == len(NAMES)
    assert line in tools.read_file(values[sorted(NAMES, key=os.fsencode).index(name)]).splitlines()


@pytest.mark.parametrize(
    "name", [*NAMES, "\\\n", "\\x0\n", "\\", "\\\\x0a", "\\x5c", "\\x2f", "\\x00", "\\U00110000", "\\u12"]
)
def test_shown_path_is_read_as_the_same_path(name: str) -> None:
    """The escapes have an inverse, and never become a slash or a NUL character."""
    text = shown_path(name)
    assert (shown(text), path_from_shown(text)) == (text, name)
    assert path_from_shown(r"a\x2fb\x00c\x2ed") == r"a\x2fb\x00c\x2ed"


def test_exact_name_with_letters_of_an_escape_is_accepted(rg: RgBinary, plant: Plant) -> None:
    """The name on the disk is a second reading, if no file has the name that the escapes stand for."""
    tools = sync.Workspace(plant({r"a\x0ab.txt": "needle\n", r"d\x1b/c": "needle\n"}), rg=rg)
    assert "  1: needle" in tools.read_file(r"a\x0ab.txt").splitlines()
    assert tools.file_info(r"d\x1b").is_dir
    assert tools.grep_content_result("needle", path=r"d\x1b").total_matches == 1


def test_escapes_do_not_lead_around_denied_globs(rg: RgBinary, plant: Plant) -> None:
    """Both readings of a path are checked."""
    root = plant({"key\x1b.pem": "needle\n", r"key\x1b.txt": "needle\n", "key\x1b.txt": "needle\n"})
    tools = sync.Workspace(root, rg=rg, deny=["*.pem", "key\x1b.txt"])
    for path in (r"key\x1b.pem", r"key\x1b.txt", "key\x1b.txt"):
        with pytest.raises(AccessDeniedError):
            tools.read_file_result(path)
    assert r"needle" in tools.read_file(r"key\x5cx1b.txt")
    tools = sync.Workspace(root, rg=rg, deny=[r"key\\x1b.txt"])
    with pytest.raises(AccessDeniedError):
        tools.read_file_result(r"key\x1b.txt")  # it may name either file


@pytest.mark.parametrize("path", ["loop", "one", "two", "folder/up", "loop/below.txt", "folder/up/loop"])
def test_link_to_itself_is_not_a_directory(rg: RgBinary, plant: Plant, path: str) -> None:
    """`read_file` of a link to itself said that it is a directory."""
    root = plant({"folder/a.txt": "a\n"})
    for name, target in {"loop": "loop", "one": "two", "two": "one", "folder/up": "../folder/up"}.items():
        (root / name).symlink_to(target)
    tools = sync.Workspace(root, rg=rg)
    told = f"{path} is a symbolic link that leads back to itself; ls lists the files"
    for call in (tools.read_file_result, tools.ls_result, tools.file_info, tools.read_bytes):
        with pytest.raises(FileNotFoundError, match=rf"\A{told}\Z"):
            call(path)
    assert {entry.name for entry in tools.list_directory()} == {"folder", "loop", "one", "two"}


def test_link_to_a_loop_outside_is_outside(plant: Plant, tmp_path: Path) -> None:
    """Nothing is said about links outside of the roots."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "loop").symlink_to("loop")
    root = plant({"a.txt": "a\n"})
    (root / "out").symlink_to(outside / "loop")
    for path in ("out", "../outside/loop", str(outside / "loop")):
        with pytest.raises(AccessDeniedError):
            sync.Workspace(root).read_file_result(path)


@pytest.mark.parametrize("glob", ["", " ", "!", "./", "\n", "/", "!/", "//", "! "])
@pytest.mark.parametrize("engine", ["rg", "python"])
def test_blank_glob_ignores_nothing(rg: RgBinary, plant: Plant, glob: str, engine: str) -> None:
    """`ls(ignore=[""])` hid everything."""
    tools = sync.Workspace(plant({"a.txt": "needle\n", "b/c.txt": ""}), rg=rg if engine == "rg" else "/no/rg")
    listed = tools.ls_result(ignore=[glob])
    assert (listed.engine, [entry.path for entry in listed.entries]) == (engine, ["b", "b/c.txt", "a.txt"])
    assert [entry.name for entry in tools.ls_result(ignore=[glob, "b"]).entries] == ["a.txt"]
    if engine == "rg":
        assert tools.grep_content_result("needle", file_pattern=f"!{glob}").files_matched == 1


@pytest.mark.parametrize("bad", ["a\0b", "a\ud83d.txt"])
def test_errors_quote_the_argument_without_a_flag(rg: RgBinary, plant: Plant, bad: str) -> None:
    """Errors named `--type-add`, `--regexp` and other flags that the caller never wrote."""
    tools = sync.Workspace(plant({"a.txt": "a\n"}), rg=rg, write=True)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("grep_content", {"pattern": bad}),
        ("grep_content", {"pattern": "a", "file_pattern": bad}),
        ("grep_content", {"pattern": "a", "file_pattern": f"x/{bad}"}),
        ("grep_content", {"pattern": "a", "file_pattern": f"!{bad}"}),
        ("grep_content", {"pattern": "a", "file_type": bad}),
        ("find_files", {"pattern": bad}),
        ("find_files", {"pattern": bad, "entry_type": "any"}),
        ("ls", {"ignore": [bad]}),
        ("replace_content", {"pattern": "a", "replacement": "b", "file_pattern": bad}),
    ]
    for tool, arguments in calls:
        answer = tools.call(tool, arguments)
        assert answer.startswith("Error: "), (tool, arguments, answer)
        assert "--" not in answer
        assert "ripwrap:" not in answer


@pytest.mark.parametrize(
    ("option", "value"),
    [("encoding", "zz"), ("encoding", ""), ("max_depth", 10**30), ("context", 10**30), ("dfa_size_limit", "9" * 30)],
)
def test_errors_of_rg_name_the_option(rg: RgBinary, plant: Plant, option: str, value: Any) -> None:
    """rg's message named its flag (`error parsing flag --max-depth`)."""
    with pytest.raises((SearchError, ValueError)) as raised:
        next(sync.search("a", cwd=plant({"a": "a"}), rg=rg, **{option: value}))
    assert "--" not in str(raised.value)
    assert option in str(raised.value) or (option == "dfa_size_limit" and rg.version < (14,))  # rg 13 names no flag
