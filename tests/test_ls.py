"""`ls` by rg and by plain Python: the same text, and no first-level directory that is lost."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rgs
from ripwrap import sync
from ripwrap.binary import RgBinary

Plant = Callable[..., Path]

NAMES = ["a", "b.py", "c.log", ".hid", "build", "node_modules", "x y", "d[1]", "Z", "lib.so"]
RULES = [
    *(
        "*.log",
        "!c.log",
        "build/",
        "/a",
        "a/*",
        "!a/b.py",
        ".hid",
        "!.hid",
        "**/Z",
        "b.*",
        "*",
        "!*/",
        "# no",
        "",
        "x\\ y",
        "d\\[1]",
    ),
    *("node_modules", "!build", "a/**/Z", "[ab]*"),
]
FILES = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join)
IGNORES = st.lists(st.sampled_from(RULES), max_size=4).map("\n".join)
WHERE = st.sampled_from(["", "a/", "a/Z/", "build/", "Z/"])
KIND = st.sampled_from([".gitignore", ".ignore", ".rgignore"])


def texts(root: Path, path: str = ".", **arguments: Any) -> tuple[str, str]:
    """The text with rg, and the one without; everything else about the two is the same as well."""
    by_rg = sync.Workspace(root, rg=rgs.provide("15.2.0")).ls_result(path, **arguments)
    without = sync.Workspace(root, rg=root / "no-such-rg").ls_result(path, **arguments)
    assert (by_rg.engine, without.engine) == ("rg", "python")
    assert by_rg.model_copy(update={"engine": "python"}) == without
    return str(by_rg), str(without)


def planted(
    root: Path,
    files: Mapping[str, None] | list[str],
    ignores: Mapping[str, str],
    links: list[tuple[str, str]],
    empty: list[str],
) -> None:
    def each() -> Iterator[tuple[Path, str]]:
        for name in files:
            yield root / name, ""
        for name, text in ignores.items():
            yield root / name, text

    for folder in empty:
        try:
            (root / folder).mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            continue
    for path, text in each():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            continue  # one name is a file here and a directory there
    for name, target in links:
        path = root / name
        if path.parent.is_dir() and not os.path.lexists(path):
            path.symlink_to(target)


@settings(max_examples=60)
@given(
    st.lists(FILES, max_size=12),
    st.dictionaries(st.tuples(WHERE, KIND).map("".join), IGNORES, max_size=3),
    st.lists(st.tuples(FILES, st.sampled_from([".", "..", "a", "/etc", "nowhere"])), max_size=2),
    st.lists(FILES, max_size=2),
    st.sampled_from([".", "a", "a/Z", "build"]),
    st.fixed_dictionaries(
        {},
        optional={
            "include_hidden": st.booleans(),
            "include_ignored": st.booleans(),
            "limit": st.integers(0, 8),
            "max_depth": st.integers(0, 3),
            "ignore": st.lists(st.sampled_from(["*.py", "a/Z", "build", "**/Z/**", "x y"]), max_size=2),
        },
    ),
)
def test_a_generated_tree_has_the_same_text_with_rg_and_without(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[str],
    ignores: dict[str, str],
    links: list[tuple[str, str]],
    empty: list[str],
    path: str,
    arguments: dict[str, Any],
) -> None:
    root = tmp_path_factory.mktemp("ls")
    if path != ".":  # rg is handed what stands above in one file, where a kind does not count (`_ignore.outer_rules`)
        ignores = {f"{Path(name).parent}/.gitignore": text for name, text in ignores.items()}
    planted(root, files, ignores, links, empty)
    if (root / path).is_dir() and (root / path).resolve() == (root / path).absolute():
        by_rg, without = texts(root, path, **arguments)
        assert by_rg == without


def test_directories_come_first_and_names_are_indented(rg: RgBinary, plant: Plant) -> None:
    root = plant({"src/a/x.py": "", "src/b.py": "", "README": "", "docs/i.md": "", ".env": "", "empty/.hidden": ""})
    (root / "void").mkdir()
    assert sync.Workspace(root, rg=rg).ls() == (
        "- ./\n  - docs/\n    - i.md\n  - src/\n    - a/\n      - x.py\n    - b.py\n  - README\n\n(4 files.)"
    )
    assert sync.Workspace(root, rg=rg).ls("src").startswith("- src/\n  - a/\n    - x.py\n  - b.py\n")
    assert sync.Workspace(root, rg=rg).ls("src/b.py") == "- src/b.py\n\n(1 file.)"


def test_tree_is_the_seeds(rg: RgBinary, plant: Plant) -> None:
    root = plant({f"src/tools/{name}.go": "" for name in "abcde"} | {"main.go": "", "src/agent/loop.go": ""})
    assert sync.Workspace(root, rg=rg).tree(limit=8) == (
        "src/\n    agent/\n        loop.go\n    tools/\n        a.go\n        b.go\n        c.go\n"
        "        [2 truncated]\nmain.go\n\n"
        "(7 files. [N truncated] stands for entries left out; name their directory as path, or raise limit, for them.)"
    )


def test_first_level_directories_are_never_lost(rg: RgBinary, plant: Plant) -> None:
    root = plant({f"d{number:02}/f": "" for number in range(41)} | {f"f{number:03}": "" for number in range(200)})
    for text in (sync.Workspace(root, rg=rg).ls(limit=2), sync.Workspace(root, rg=root / "none").ls(limit=2)):
        assert all(f"  - d{number:02}/\n" in text for number in range(41))
        assert "[200 truncated]" in text
    text = sync.Workspace(root, rg=rg, max_chars=1000).ls()
    assert len(text) <= 1000
    assert all(f"  - d{number:02}/\n" in text for number in range(41))


def test_more_directories_than_the_budget_has_room_for_are_counted(rg: RgBinary, plant: Plant) -> None:
    root = plant({f"directory-{number:03}/f": "" for number in range(300)} | {"file": ""})
    result = sync.Workspace(root, rg=rg, max_chars=1000).ls_result(limit=5)
    shown = [entry for entry in result.entries if entry.is_dir]
    assert 700 < len(str(result)) <= 1000
    assert [entry.name for entry in shown] == [f"directory-{number:03}" for number in range(len(shown))]
    assert result.entries[-1].truncated == 301 - len(shown)


def test_common_directories_are_named_and_not_listed_where_nothing_says_what_to_ignore(plant: Plant) -> None:
    files = {"node_modules/a/b.js": "", "src/build/x": "", "src/a.py": "", "src/a.pyc": ""}
    root = plant(files)
    text, without = texts(root)
    assert text == without
    assert text == (
        "- ./\n  - node_modules/ [not listed]\n  - src/\n    - build/ [not listed]\n    - a.py\n\n"
        "(1 file; 1 file of common kinds (*.pyc, *.pyo, *.pyd, *.so, *.dll, *.exe, .DS_Store) not listed.)"
    )
    assert "b.js" in texts(root, "node_modules")[0]
    plant({".gitignore": ""})
    assert "b.js" in texts(root)[0]
    assert "a.pyc" in texts(root)[1]


def test_what_is_to_be_ignored_is_left_out(plant: Plant) -> None:
    root = plant({"a.py": "", "b.lock": "", "docs/gen/x": "", "docs/y": "", "src/docs/gen/z": ""})
    text, without = texts(root, ignore=["*.lock", "docs/gen/**"])
    assert (
        text
        == without
        == "- ./\n  - docs/\n    - y\n  - src/\n    - docs/\n      - gen/\n        - z\n  - a.py\n\n(3 files.)"
    )
    assert "gen" not in texts(root, "docs", ignore=["gen"])[0]


def test_no_root_decides_for_another_and_no_level_is_gone_beyond(rg: RgBinary, folder: Path, plant: Plant) -> None:
    plant({"a/.gitignore": "", "a/node_modules/x": "", "b/node_modules/x": "", "b/c/d/node_modules/x": ""})
    for program in (rg, folder / "none"):
        asked = sync.Workspace(folder / "a", folder / "b", rg=program)
        assert [entry.name for entry in asked.ls_result().entries if entry.closed] == ["node_modules", "node_modules"]
        assert asked.ls_result().total_files == 1
        assert asked.ls_result(ignore=["c/d"]).entries[-1].name == "node_modules"
        shallow = sync.Workspace(folder / "b", rg=program).ls_result(max_depth=1)
        assert [(entry.name, entry.closed) for entry in shallow.entries] == [("c", False), ("node_modules", True)]


def test_a_file_that_is_named_is_listed_whatever_its_kind(plant: Plant) -> None:
    root = plant({"a.pyc": ""})
    assert texts(root, "a.pyc")[0] == "- a.pyc\n\n(1 file.)"


def test_levels_below_max_depth_are_said_to_be_there(plant: Plant) -> None:
    root = plant({"a/b/c": "", "a/d": "", "e": ""})
    text, without = texts(root, max_depth=1)
    assert text == without == "- ./\n  - a/\n  - e\n\n(3 files; directories at the last level shown have more in them.)"


def test_an_empty_place_is_an_answer(folder: Path) -> None:
    assert texts(folder) == ("No files found.", "No files found.")


def test_a_bad_glob_is_a_text_with_rg_and_without(folder: Path) -> None:
    for rg in (rgs.provide("15.2.0"), folder / "none"):
        text = sync.Workspace(folder, rg=rg).ls(ignore=["a[b"])
        assert text.startswith("Error: ")
        assert "unclosed character class" in text


def test_a_walk_without_rg_ends_when_its_time_is_over(plant: Plant) -> None:
    root = plant({f"{number}/{name}": "" for number in range(20) for name in "ab"})
    result = sync.Workspace(root, rg=root / "none", timeout=0).ls_result()
    assert (result.exact, result.truncated, result.engine) == (False, True, "python")
    assert "ended after 0 seconds" in str(result)
