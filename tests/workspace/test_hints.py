"""Hints of the tools: names that other programs use, near names, and forms that can be understood."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ripwrap import AccessDeniedError, sync
from ripwrap.binary import RgBinary, explain
from support.paths import native, slashed

Plant = Callable[..., Path]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("javascript", "js"),
        ("JavaScript", "js"),
        ("shell", "sh"),
        ("bash", "sh"),
        ("golang", "go"),
        ("c++", "cpp"),
        ("C#", "csharp"),
        ("kt", "kotlin"),
        ("yml", "yaml"),
        ("tsx", "ts"),
        ("rs", "rust"),
        ("Rust", "rust"),
        ("objective-c", "objc"),
        ("dockerfile", "docker"),
    ],
)
def test_unknown_type_names_the_type_that_is_meant(rg: RgBinary, plant: Plant, given: str, meant: str) -> None:
    """`javascript` was answered with vimscript, `shell` with haskell, `kt` with k."""
    answer = sync.Workspace(plant({"a": "a"}), rg=rg).grep_content("a", file_type=given)
    assert f"\nDid you mean {meant}? " in answer


@pytest.mark.parametrize("pattern", [r"foo\|bar", r"\(foo\)", r"fo\+x", r"a\\\|b"])
@pytest.mark.parametrize("mode", ["content", "count"])
def test_escaped_operator_without_matches_is_explained(rg: RgBinary, plant: Plant, pattern: str, mode: Any) -> None:
    r"""Grep's `a\|b` is a literal text in rg."""
    tools = sync.Workspace(plant({"a": "foo\nbar\na|b (baz)\n"}), rg=rg)
    sign = next(sign for sign in "|(+" if f"\\{sign}" in pattern)
    assert f"In rg, {sign} needs no backslash as an operator" in tools.grep_content(pattern, output_mode=mode)


@pytest.mark.parametrize("pattern", [r"a\|b", r"none\.x", r"none\\|zzz", "zzz"])
def test_pattern_that_finds_something_or_has_no_operator_is_not_explained(
    rg: RgBinary, plant: Plant, pattern: str
) -> None:
    """No hint where nothing is wrong."""
    tools = sync.Workspace(plant({"a": "foo\nbar\na|b (baz)\n"}), rg=rg)
    assert "backslash" not in tools.grep_content(pattern)
    assert "backslash" not in tools.grep_content(r"x\|y", fixed_strings=True)


@pytest.mark.parametrize(
    ("pattern", "near"), [("A.TXT", "a.txt"), ("src/Main.py", "src/main.py"), ("mian.py", "src/main.py")]
)
def test_near_name_is_proposed_by_find_files(rg: RgBinary, plant: Plant, pattern: str, near: str) -> None:
    """`find_files("A.TXT")` beside `a.txt` said only that there is nothing."""
    tools = sync.Workspace(plant({"a.txt": "", "src/main.py": "", "k.pem": ""}), rg=rg, deny="*.pem")
    assert f"Did you mean {native(near)}?" in tools.find_files(pattern)
    for other in ("*.md", "unlike", "K.PEM"):
        assert "Did you mean" not in tools.find_files(other)


@pytest.mark.parametrize(
    ("path", "near"), [("REDME.md", "README.md"), ("readme.MD", "README.md"), ("src/man.py", "src/main.py")]
)
def test_near_name_is_proposed_for_a_missing_path(plant: Plant, path: str, near: str) -> None:
    """`read_file` of a near miss."""
    root = plant({"README.md": "", "src/main.py": "", "k.pem": ""})
    if not (root / path).exists():  # a file system may ignore case
        assert f"; did you mean {native(near)}? ls lists the files" in sync.Workspace(root, deny="*.pem").read_file(
            path
        )
    for other in ("gone/main.py", "unlike", "kk.pem", "src/x"):
        assert "did you mean" not in sync.Workspace(root, deny=["?.pem"]).read_file(other)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("src/../src/*.py", ["src/a.py"]),
        ("x/y/../../lib/*.py", ["lib/b.py"]),
        ("src/sub/../*.py", ["src/a.py"]),
        ("src/../*.py", ["c.py"]),
        ("./src/./*.py", ["src/a.py"]),
    ],
)
def test_dots_that_stay_inside_are_resolved(rg: RgBinary, plant: Plant, pattern: str, found: list[str]) -> None:
    """`src/../src/*.py` was refused, because it leads out of the directory."""
    tools = sync.Workspace(plant({"src/a.py": "x", "lib/b.py": "x", "c.py": "x"}), rg=rg)
    for kind in ("file", "any"):
        assert [slashed(path) for path in tools.find_files_result(pattern, entry_type=kind).files] == found
    searched = tools.grep_content_result("x", file_pattern=pattern)
    assert [slashed(match.file) for match in searched.matches] == found


@pytest.mark.parametrize("pattern", ["../*.py", "src/../../x", "*/../x.py", "../src/a.py", "a{b/../c}", "**/../x"])
def test_dots_that_lead_out_are_refused(rg: RgBinary, plant: Plant, pattern: str) -> None:
    """A wildcard is no name that `..` takes back."""
    answer = sync.Workspace(plant({"src/a.py": "x"}), rg=rg).find_files(pattern)
    assert answer.startswith("Error: ")
    assert "leads out of" in answer or "parsing glob" in answer


@pytest.mark.posix
def test_address_of_a_resource_is_a_path(rg: RgBinary, plant: Plant, tmp_path: Path) -> None:
    """Models pass `file:///…` of a resource as the path of a tool."""
    root = plant({"src/a b.py": "x\n", "k.pem": ""})
    outside = tmp_path / "outside.txt"
    outside.write_text("secret")
    tools = sync.Workspace(root, rg=rg, deny="*.pem")
    address = (root / "src/a b.py").as_uri()
    assert "%20" in address
    for given in (address, f"{address}?start_line=1"):
        assert "  1: x" in tools.read_file(given)
    assert "  1: x" in tools.grep_content("x", path=(root / "src").as_uri())
    assert "a b.py" in tools.ls((root / "src").as_uri())
    for refused in (
        outside.as_uri(),
        (root / "k.pem").as_uri(),
        f"{root.as_uri()}/../outside.txt",
        "file:///etc/passwd",
    ):
        with pytest.raises(AccessDeniedError):
            tools.read_file_result(refused)


def test_tilde_is_expanded_or_named(plant: Plant, rg: RgBinary, monkeypatch: pytest.MonkeyPatch) -> None:
    """`RIPWRAP_RG=~/bin/rg` in a file of variables, and `cwd="~/src"`."""
    with pytest.raises(FileNotFoundError, match=r"`~` is not expanded, so pass an absolute path"):
        next(sync.search("x", cwd="~/no such directory", rg=rg))
    with pytest.raises(FileNotFoundError) as raised:
        next(sync.search("x", cwd="no such directory", rg=rg))
    assert "~" not in str(raised.value)
    home = plant({})
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.setenv("RIPWRAP_RG", os.path.join("~", "bin", "rg"))
    assert explain()[0].path.startswith(str(home))


def test_lost_root_is_explained_without_words_of_python(plant: Plant) -> None:
    """Over MCP, nobody can 'make a new Workspace'."""
    root = plant({"root/a": ""}) / "root"
    tools = sync.Workspace(root)
    root.rename(root.with_name("gone"))
    answer = tools.read_file("a")
    assert "restore it, or start again with another root" in answer
    assert "Workspace" not in answer
