"""The tool `replace_content`: only where it is asked for, within the roots, without denied files and secrets."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ripwrap import sync
from ripwrap.workspace import schemas
from support.tools import APIS, Asked

Plant = Callable[..., Path]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_tool_is_offered_only_with_write(plant: Plant) -> None:
    folder = plant({"a": "foo\n"})
    plain = sync.Workspace(folder)
    assert "replace_content" not in [tool.__name__ for tool in plain.tools]
    assert [tool.__name__ for tool in sync.Workspace(folder, write=True).tools][-1] == "replace_content"
    assert "replace_content" not in schemas()
    assert plain.replace_content("foo", "bar", apply=True).startswith("Error: replace_content needs a workspace that")
    assert plain.call("replace_content", {"pattern": "foo", "replacement": "x"}).startswith("Error: there is no tool")
    assert (folder / "a").read_text() == "foo\n"


@pytest.mark.slow
@pytest.mark.parametrize("api", APIS)
def test_shows_a_diff_and_writes_only_if_asked(api: str, plant: Plant) -> None:
    folder = plant({"a.py": "x\nfoo(1)\n", "b.md": "foo(2)\n", ".c.py": "foo(3)\n"})
    asked = Asked(api, folder, write=True)
    said = asked.call("replace_content", {"pattern": r"foo\((\d)\)", "replacement": "bar[$1]", "file_pattern": "*.py"})
    assert said == (
        "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n x\n-foo(1)\n+bar[1]\n\n"
        "(1 replacement in 1 file; no file was changed yet: apply=true changes it.)"
    )
    assert (folder / "a.py").read_text() == "x\nfoo(1)\n"
    said = asked.call("replace_content", {"pattern": "foo", "replacement": "bar", "apply": True})
    assert said.endswith("(Written: 2 replacements in 2 files.)")
    assert [(folder / name).read_text() for name in ("a.py", "b.md", ".c.py")] == [
        "x\nbar(1)\n",
        "bar(2)\n",
        "foo(3)\n",
    ]
    sync.undo(cwd=folder)
    assert (folder / "a.py").read_text() == "x\nfoo(1)\n"


def test_denied_files_and_files_outside_are_not_changed(plant: Plant, tmp_path: Path, needs_posix: None) -> None:
    (tmp_path / "outside").write_text("foo\n")
    folder = plant({".env": "foo\n", "secrets/a": "foo\n", "ok": "foo\n"})
    (folder / "link").symlink_to("../outside")
    (folder / "denied-link").symlink_to("secrets/a")
    asked = sync.Workspace(folder, write=True, follow=True, deny=["secrets/", ".env"])
    said = asked.replace_content("foo", "bar", apply=True, include_hidden=True, include_ignored=True)
    assert "(Written: 1 replacement in 1 file." in said
    for path in (tmp_path / "outside", folder / ".env", folder / "secrets/a"):
        assert path.read_text() == "foo\n"
    for name in ("../outside", ".env", "secrets/a", "link"):
        assert asked.replace_content("foo", "bar", name, apply=True).startswith(("Error: ", "Nothing to replace"))
    assert (tmp_path / "outside").read_text() == (folder / ".env").read_text() == "foo\n"


@pytest.mark.slow
def test_file_that_a_link_replaces_after_the_search_is_not_changed(
    plant: Plant, tmp_path: Path, stand_in: Callable[..., Path]
) -> None:
    (tmp_path / "outside").write_text("foo\n")
    folder = plant({"a": "foo\n", "b": "foo\n"})
    swap = f"os.unlink({str(folder / 'a')!r}); os.symlink('../outside', {str(folder / 'a')!r})"
    rg = stand_in(f"code = real({sync.resolve().path!r})\nif '--json' in sys.argv: {swap}\nsys.exit(code)")
    said = sync.Workspace(folder, write=True, rg=rg).replace_content("foo", "bar", apply=True)
    assert "(Written: 1 replacement in 1 file." in said
    assert (tmp_path / "outside").read_text() == "foo\n"
    assert (folder / "b").read_text() == "bar\n"


def test_secrets_are_masked_in_the_diff(plant: Plant) -> None:
    token = "ghp_" + "a1B2" * 9
    folder = plant({"a": f"x\nkey {token} foo\n{token}\n"})
    said = sync.Workspace(folder, write=True, redact=True).replace_content("foo", "bar")
    assert token not in said
    assert "-key [redacted: github-token] foo\n+key [redacted: github-token] bar" in said


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["two$", r"two\r$", r"two\r?$"])
def test_pattern_with_dollar_finds_what_grep_content_finds_in_files_with_crlf(plant: Plant, pattern: str) -> None:
    asked = sync.Workspace(plant({"a": "one\r\ntwo\r\n"}), write=True)
    assert asked.grep_content_result(pattern).total_matches == 1
    assert asked.replace_content_result(pattern, "2").total_replacements == 1


@pytest.mark.slow
def test_long_diff_is_cut(plant: Plant) -> None:
    asked = sync.Workspace(plant({f"{n}": "foo\n" * 50 for n in range(50)}), write=True, max_chars=1000)
    result = asked.replace_content_result("foo", "bar")
    assert (result.truncated, result.total_replacements, len(result.files)) == (True, 2500, 50)
    said = str(result)
    assert len(said) <= 1000
    assert "The diff was cut, because it is too long for one answer." in said


@pytest.mark.slow
@pytest.mark.parametrize("number", [100, 101])
def test_list_of_files_says_that_it_is_not_complete(plant: Plant, number: int) -> None:
    asked = sync.Workspace(plant({f"{n:03}": "foo\n" for n in range(number)}), write=True)
    result = asked.replace_content_result("foo", "bar")
    note = "The list of files has only the first 100 of 101 files."
    assert (len(result.files), result.truncated, note in result.notes) == (100, number > 100, number > 100)
    assert str(result).count("+bar") == number


@pytest.mark.slow
def test_errors_say_what_to_do(plant: Plant) -> None:
    asked = sync.Workspace(plant({"a": "foo\n", "b": b"foo\n" * 20_000 + b"\0"}), write=True)
    for pattern, replacement, says in (
        ("", "x", "Error: pattern is empty"),
        ("foo", "$1", "Error: the replacement refers to ${1}"),
        ("(", "x", "regex parse error"),
        ("zebra", "x", "Nothing to replace; no file was changed."),
        ("foo", "x", "1 file left out, e.g. b: left out: it is binary"),
    ):
        assert says in asked.replace_content(pattern, replacement), pattern


@pytest.mark.posix
def test_hard_links_are_refused_without_an_option_that_the_tool_lacks(plant: Plant) -> None:
    folder = plant({"a": "foo\n"})
    os.link(folder / "a", folder.parent / "b")
    said = sync.Workspace(folder, write=True).replace_content("foo", "x", apply=True)
    assert said == f"Error: nothing was written, because these files have several hard links: {folder / 'a'}"
