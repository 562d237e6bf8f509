"""`find_files`: single files, directories, and what an empty answer says."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ripwrap import sync
from ripwrap.binary import RgBinary
from support.paths import native, slashed

Plant = Callable[..., Path]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.py", True),
        ("*", True),
        ("*.txt", False),
        ("!*.py", False),
        ("*.txt,!b*", False),
        ("*.{py,txt}", True),
        ("src/*.py", True),
        ("a.py", True),
        ("src/a.py", True),
        ("./a.py", True),
        ("**/a.py", True),
        ("lib/*.py", False),
    ],
)
def test_pattern_applies_to_a_file_given_as_path(rg: RgBinary, plant: Plant, pattern: str, found: bool) -> None:
    """The file was listed whatever the pattern was."""
    root = plant({"src/a.py": "", "src/b.txt": "", ".gitignore": "a.py\n"})
    result = sync.Workspace(root, rg=rg).find_files_result(pattern, "src/a.py")
    assert result.files == ((native("src/a.py"),) if found else ())
    if not found:
        assert str(result) == f"No files found: {native('src/a.py')} does not match {pattern}."


@pytest.fixture
def nested(plant: Plant) -> Path:
    root = plant(
        {
            "src/tests/a.py": "",
            "src/lib.d/b.py": "",
            "tests/c.py": "",
            ".hidden/tests/d.py": "",
            "build/e": "",
            ".gitignore": "build/\n",
        }
    )
    (root / "src/void").mkdir()
    return root


@pytest.mark.parametrize(
    ("pattern", "arguments", "found"),
    [
        ("*", {}, ["src/", "src/lib.d/", "src/tests/", "src/void/", "tests/"]),
        ("tests", {}, ["src/tests/", "tests/"]),
        ("tests/", {}, ["src/tests/", "tests/"]),
        ("src/*", {}, ["src/lib.d/", "src/tests/", "src/void/"]),
        ("/tests", {}, ["tests/"]),
        ("t*", {"path": "src"}, ["src/tests/"]),
        ("!tests", {}, ["src/", "src/lib.d/", "src/void/"]),
        ("*,!src/t*", {}, ["src/", "src/lib.d/", "src/void/", "tests/"]),
        ("tests", {"include_hidden": True}, [".hidden/tests/", "src/tests/", "tests/"]),
        ("b*", {"include_ignored": True}, ["build/"]),
        ("*", {"path": "tests"}, []),
        ("*", {"path": "tests/c.py"}, []),
        ("[tv]*", {"limit": 1}, ["src/tests/"]),
        ("[tv]*", {"limit": 1, "offset": 1}, ["src/void/"]),
    ],
)
def test_entry_type_directory_finds_directories(
    nested: Path, pattern: str, arguments: dict[str, Any], found: list[str]
) -> None:
    """No argument of `find_files` found directories."""
    result = sync.Workspace(nested, rg="no-such-rg").find_files_result(pattern, entry_type="directory", **arguments)
    assert list(map(slashed, result.files)) == found
    assert result.engine == "python"


def test_entry_type_any_finds_files_and_directories(nested: Path) -> None:
    asked = sync.Workspace(nested)
    found = asked.find_files("tests,c.py", entry_type="any")
    assert slashed(found) == "src/tests/\ntests/\ntests/c.py\n\n(3 entries.)"
    assert slashed(asked.find_files("*", "src/tests", entry_type="any")) == "src/tests/a.py\n\n(1 entry.)"
    for sent in ({"type": "d"}, {"type": "directory"}, {"entryType": "dir"}):
        assert slashed(asked.call("Glob", {"pattern": "/src/t*", **sent})) == "src/tests/\n\n(1 directory.)"
    assert asked.call("Glob", {"pattern": "*", "type": "py"}) == (
        "Error: entry_type must be 'file', 'directory' or 'any', got 'py'"
    )


def test_directories_of_several_roots_are_absolute_and_can_be_passed_back(folder: Path, nested: Path) -> None:
    asked = sync.Workspace(folder / "src", folder / "tests")
    (found,) = asked.find_files_result("tests", entry_type="directory").files
    assert found == f"{folder / 'src' / 'tests'}/"
    assert asked.find_files_result(path=found).files == (str(folder / "src/tests/a.py"),)
    assert asked.find_files_result(f"{folder}/src/*", entry_type="directory").total_files == 3


def test_invalid_glob_for_directories_is_quoted_as_it_was_given(folder: Path) -> None:
    text = sync.Workspace(folder).find_files("a[b", entry_type="directory")
    assert text.startswith("Error: error parsing glob 'a[b': unclosed character class")


@pytest.mark.slow
@pytest.mark.posix
def test_links_to_the_outside_are_no_directories(folder: Path, plant: Plant) -> None:
    plant({"root/real/b": "", "outside/secret/c": ""})
    (folder / "root/out").symlink_to("../outside")
    for follow in (False, True):
        asked = sync.Workspace(folder / "root", follow=follow)
        result = asked.find_files_result("*", entry_type="any")
        assert result.files == ("real/", "real/b")
        assert result.notes == (("Links were not followed, because that needs rg.",) if follow else ())
        assert "is a directory" not in asked.find_files("out")
        assert "is a directory" not in asked.find_files("out/secret")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "arguments", "name"),
    [
        ("src", {}, "src"),
        ("lib.d", {}, "src/lib.d"),
        ("src/lib*", {}, "src/lib.d"),
        ("void", {"path": "src"}, "src/void"),
        ("voi*", {}, "src/void"),
        ("**/void", {}, "src/void"),
        ("src/v[no]id", {}, "src/void"),
        ("void/", {}, "src/void"),
        ("build", {}, "build"),
        (".hidden", {}, ".hidden"),
        ("tests", {"path": "src"}, "src/tests"),
        ("nowhere", {}, None),
    ],
)
def test_empty_answer_names_a_directory_that_was_looked_for(
    rg: RgBinary, nested: Path, pattern: str, arguments: dict[str, Any], name: str | None
) -> None:
    """The empty answer said nothing about a directory of that name."""
    text = sync.Workspace(nested, rg=rg).find_files(pattern, **arguments)
    assert text.startswith("No files found, not even hidden or ignored files.")
    said = (
        f" {native(name or '')} is a directory: pass it as path to list its files, or entry_type=directory to find it."
    )
    assert text.endswith(said if name else "ignored files.")


@pytest.mark.slow
@pytest.mark.posix
def test_empty_answer_names_a_link_that_matches(rg: RgBinary, nested: Path) -> None:
    (nested / "till.rs").symlink_to("src/a.py")
    (nested / "other").symlink_to("src")
    text = sync.Workspace(nested, rg=rg).find_files("*.rs")
    assert "Not listed: 1 symbolic link, which is not followed: till.rs." in text
    assert "Not listed" not in sync.Workspace(nested, rg=rg).find_files("*.go")
    assert "Not listed" not in sync.Workspace(nested, rg=rg).find_files("*.py")


def test_answer_about_hidden_files_names_a_directory_without_files(rg: RgBinary, nested: Path) -> None:
    """The answer named only the hidden file that the glob matches."""
    (nested / "src/.voice").write_text("")
    text = slashed(sync.Workspace(nested, rg=rg).find_files("*voi*"))
    assert "1 file with hidden files included (include_hidden=True), the first: src/.voice." in text
    assert text.endswith(
        " src/void is a directory: pass it as path to list its files, or entry_type=directory to find it."
    )


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"pattern": "readme*"}, ["readme.txt"]),
        ({"pattern": "readme*", "case_sensitive": True}, ["readme.txt"]),
        ({"pattern": "readme*", "case_sensitive": False}, ["README.md", "readme.txt"]),
        ({"pattern": "*.{MD,TXT}", "-i": True}, ["README.md", "readme.txt"]),
        ({"glob": "readme*", "ignore_case": "true"}, ["README.md", "readme.txt"]),
        ({"pattern": "*", "exclude_pattern": "*.txt"}, ["README.md", "src/A.py"]),
        ({"exclude": ["*.txt", "src/"]}, ["README.md"]),
        ({"pattern": "*.py", "exclude_patterns": "a.py", "case_sensitive": False}, ["src/A.py"]),
    ],
)
def test_arguments_of_other_programs(arguments: dict[str, Any], found: list[str], plant: Plant) -> None:
    """Each refusal costs a model a turn."""
    tools = sync.Workspace(plant(dict.fromkeys(("README.md", "readme.txt", "src/A.py"), "")))
    text = tools.call("find_files", arguments)
    assert text.splitlines()[:-2] == found
