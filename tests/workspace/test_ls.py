"""`ls` with rg and with plain Python: the same text, and every first-level directory."""

import json
import os
import stat
import zipfile
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from _operations.test_revisions import git
from ripwrap import sync
from ripwrap.binary import RgBinary
from support import forks, rgs
from support.paths import native, slashed

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


@pytest.fixture(autouse=True)
def in_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the folder of most tests the current one, so that `ls` has no need to name it."""
    monkeypatch.chdir(folder)


def texts(root: Path, path: str = ".", **arguments: Any) -> tuple[str, str]:
    """Return the text with rg and the text without; fail if anything else in the two results differs."""
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


@pytest.mark.slow
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
def test_ls_of_any_tree_is_the_same_with_and_without_rg(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[str],
    ignores: dict[str, str],
    links: list[tuple[str, str]],
    empty: list[str],
    path: str,
    arguments: dict[str, Any],
) -> None:
    root = tmp_path_factory.mktemp("ls")
    if path != ".":  # rg gets the rules above in one file, without their kinds (`_ignore.outer_rules`)
        ignores = {f"{Path(name).parent}/.gitignore": text for name, text in ignores.items()}
    planted(root, files, ignores, links, empty)
    if (root / path).is_dir() and (root / path).resolve() == (root / path).absolute():
        by_rg, without = texts(root, path, **arguments)
        assert by_rg == without


def test_ls_indents_names_and_lists_directories_first(rg: RgBinary, plant: Plant) -> None:
    root = plant({"src/a/x.py": "", "src/b.py": "", "README": "", "docs/i.md": "", ".env": "", "empty/.hidden": ""})
    (root / "void").mkdir()
    assert sync.Workspace(root, rg=rg).ls() == (
        "- ./\n  - docs/\n    - i.md\n  - empty/\n  - src/\n    - a/\n      - x.py\n    - b.py\n  - void/\n  - README\n"
        "\n(4 files.)"
    )
    assert sync.Workspace(root, rg=rg).ls("src").startswith("- src/\n  - a/\n    - x.py\n  - b.py\n")
    assert sync.Workspace(root, rg=rg).ls("src/b.py") == native("- src/b.py\n\n(1 file.)")


def test_tree_text_has_truncated_counts(rg: RgBinary, plant: Plant) -> None:
    root = plant({f"src/tools/{name}.go": "" for name in "abcde"} | {"main.go": "", "src/agent/loop.go": ""})
    assert sync.Workspace(root, rg=rg).tree(limit=8) == (
        "src/\n    agent/\n        loop.go\n    tools/\n        a.go\n        b.go\n        c.go\n"
        "        [2 truncated]\nmain.go\n\n"
        "(7 files. [N truncated] marks N entries left out; pass their directory as path, or a larger limit, to "
        "see them.)"
    )


def test_ls_never_drops_first_level_directories(rg: RgBinary, plant: Plant) -> None:
    root = plant({f"d{number:02}/f": "" for number in range(41)} | {f"f{number:03}": "" for number in range(200)})
    for text in (sync.Workspace(root, rg=rg).ls(limit=2), sync.Workspace(root, rg=root / "none").ls(limit=2)):
        assert all(f"  - d{number:02}/\n" in text for number in range(41))
        assert "[200 truncated]" in text
    text = sync.Workspace(root, rg=rg, max_chars=1000).ls()
    assert len(text) <= 1000
    assert all(f"  - d{number:02}/\n" in text for number in range(41))


def test_ls_counts_directories_beyond_the_budget(rg: RgBinary, plant: Plant) -> None:
    root = plant({f"directory-{number:03}/f": "" for number in range(100)} | {"file": ""})
    result = sync.Workspace(root, rg=rg, max_chars=1000).ls_result(limit=5)
    shown = [entry for entry in result.entries if entry.is_dir]
    assert 700 < len(str(result)) <= 1000
    assert [entry.name for entry in shown] == [f"directory-{number:03}" for number in range(len(shown))]
    assert result.entries[-1].truncated == 101 - len(shown)


def test_ls_does_not_list_common_directories_without_ignore_files(plant: Plant) -> None:
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


@pytest.mark.parametrize("files", [{}, {"a.txt": ""}, {"lib/a.txt": ""}], ids=str)
@pytest.mark.parametrize("tool", ["ls", "tree"])
def test_directories_without_files_are_listed_with_and_without_files_beside_them(
    rg: RgBinary, plant: Plant, files: dict[str, str], tool: str
) -> None:
    """`ls` of a root showed empty directories only if the root had no file at all."""
    root = plant({**files, ".gitignore": "out/\n"})
    for name in ("void/deep", "out", ".hidden"):
        (root / name).mkdir(parents=True)
    programs = (rg, root / "none") if tool == "ls" else (rg,)
    for program in programs:
        tools = sync.Workspace(root, rg=program)
        listed = getattr(tools, f"{tool}_result")()
        folders = [slashed(entry.path) for entry in listed.entries if entry.is_dir]
        assert folders == [*(["lib"] if "lib/a.txt" in files else []), "void", "void/deep"]
        assert listed.total_files == len(files)
    assert "void" not in sync.Workspace(root, rg=rg).ls(ignore=["void"])


@pytest.mark.parametrize("tool", ["ls", "tree"])
def test_directory_whose_ignore_file_excludes_everything_is_not_listed(rg: RgBinary, plant: Plant, tool: str) -> None:
    root = plant({"a.txt": "", "cache/.gitignore": "# all\n*\n", "cache/deep/b.txt": "", "void/.gitignore": "*.o\n"})
    for program in (rg, root / "none") if tool == "ls" else (rg,):
        tools = sync.Workspace(root, rg=program)

        def folders(**options: Any) -> list[str]:
            listed = getattr(tools, f"{tool}_result")(**options)  # noqa: B023 - called in this round only
            return [slashed(entry.path) for entry in listed.entries if entry.is_dir]

        assert folders() == folders(include_hidden=True) == ["void"]
        assert folders(include_ignored=True) == ["cache", "cache/deep", "void"]
    assert "cache" not in sync.Workspace(root, rg=rg).ls(include_hidden=True, max_depth=1)


def test_ls_ignore_drops_matching_entries(plant: Plant) -> None:
    root = plant({"a.py": "", "b.lock": "", "docs/gen/x": "", "docs/y": "", "src/docs/gen/z": ""})
    text, without = texts(root, ignore=["*.lock", "docs/gen/**"])
    assert (
        text
        == without
        == "- ./\n  - docs/\n    - y\n  - src/\n    - docs/\n      - gen/\n        - z\n  - a.py\n\n(3 files.)"
    )
    assert "gen" not in texts(root, "docs", ignore=["gen"])[0]


def test_ls_decides_per_root_and_stops_at_max_depth(rg: RgBinary, folder: Path, plant: Plant) -> None:
    plant({"a/.gitignore": "", "a/node_modules/x": "", "b/node_modules/x": "", "b/c/d/node_modules/x": ""})
    for program in (rg, folder / "none"):
        asked = sync.Workspace(folder / "a", folder / "b", rg=program)
        assert [entry.name for entry in asked.ls_result().entries if entry.closed] == ["node_modules", "node_modules"]
        assert asked.ls_result().total_files == 1
        assert asked.ls_result(ignore=["c/d"]).entries[-1].name == "node_modules"
        shallow = sync.Workspace(folder / "b", rg=program).ls_result(max_depth=1)
        assert [(entry.name, entry.closed) for entry in shallow.entries] == [("c", False), ("node_modules", True)]


def test_ls_lists_a_named_file_of_any_kind(plant: Plant) -> None:
    root = plant({"a.pyc": ""})
    assert texts(root, "a.pyc")[0] == "- a.pyc\n\n(1 file.)"


def test_ls_says_that_there_are_levels_below_max_depth(plant: Plant) -> None:
    root = plant({"a/b/c": "", "a/d": "", "e": ""})
    text, without = texts(root, max_depth=1)
    assert text == without == "- ./\n  - a/\n  - e\n\n(3 files; directories at the last level have further entries.)"


def test_ls_of_an_empty_folder_says_no_files_found(folder: Path) -> None:
    assert texts(folder) == ("No files found.", "No files found.")


def test_invalid_glob_gives_an_error_text_with_and_without_rg(folder: Path) -> None:
    for rg in (rgs.provide("15.2.0"), folder / "none"):
        text = sync.Workspace(folder, rg=rg).ls(ignore=["a[b"])
        assert text.startswith("Error: ")
        assert "unclosed character class" in text


def test_timeout_ends_an_ls_without_rg(plant: Plant) -> None:
    root = plant({f"{number}/{name}": "" for number in range(20) for name in "ab"})
    result = sync.Workspace(root, rg=root / "none", timeout=0).ls_result()
    assert (result.exact, result.truncated, result.engine) == (False, True, "python")
    assert "stopped after 0 seconds" in str(result)


UNPRIVILEGED = """
import json, sys
from ripwrap import sync
def answer(roots, rg, tool, path):
    tool, _, mode = tool.partition(":")
    more = {"find_files": {"pattern": "*"}, "codebase_search": {"query": "needle"},
            "grep_content": {"pattern": "needle", "output_mode": mode}}.get(tool, {})
    follow = roots[0] == "follow"
    return sync.Workspace(*roots[follow:], rg=rg, follow=follow).call(tool, {"path": path, **(more if follow else {})})
print(json.dumps([answer(*call) for call in json.loads(sys.argv[1])]))
"""


def unprivileged(calls: list[tuple[list[str], str, str, str]]) -> list[str]:
    """Return the text of each call (roots, rg, tool, path), in a process without root's right to read any file."""
    argv, cwd = ["-c", json.dumps(calls)], Path(__file__).parent
    done = forks.run(argv, UNPRIVILEGED, cwd=cwd, env=os.environ, launcher=forks.UNPRIVILEGED)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


@pytest.mark.slow
@pytest.mark.posix
def test_notes_name_no_unreadable_path_outside_of_the_roots(rg: RgBinary, folder: Path, plant: Plant) -> None:
    """With `follow=True`, a path behind a link lay below the root by its name, and was shown."""
    plant(
        {"root/a.py": "needle\n", "root/in/x": "", "root/part/y": "", "out/x.py": "needle\n", "out/no.py": "needle\n"}
    )
    (folder / "out" / "closed").mkdir(mode=0)
    (folder / "out" / "loop").symlink_to(".")
    (folder / "out" / "no.py").chmod(0)
    (folder / "root" / "in" / "x").chmod(0)
    (folder / "root" / "link").symlink_to("../out")
    (folder / "root" / "part" / "alias").symlink_to("../in")  # within the root
    root = str(folder / "root")
    asked = [("ls", "."), ("tree", "."), ("find_files", "."), ("codebase_search", "."), ("ls", "part")]
    calls = [(["follow", root], rg.path, tool, path) for tool, path in asked]
    modes = ("content", "count", "files_with_matches")
    calls += [(["follow", root], rg.path, f"grep_content:{mode}", ".") for mode in modes]
    for (_, _, tool, path), text in zip(calls, unprivileged(calls), strict=True):
        assert "loop" not in text and "closed" not in text and "no.py" not in text, (tool, text)
        if tool.startswith(("grep", "code")):
            assert "2 paths could not be read, the first: in/x: Permission denied" in text, (tool, text)
        else:
            assert "could not be read" not in text, (tool, path, text)


@pytest.mark.slow
@pytest.mark.posix
def test_every_listing_names_what_could_not_be_read(rg: RgBinary, folder: Path, plant: Plant) -> None:
    """Without rg, `ls` said 'No files found.' of a folder that it could not read."""
    plant({"one/secret/x": "", "one/part/hidden/x": "", "one/part/y": "", "two/secret/x": "", "shut/x": ""})
    one, part, two, shut = (str(folder / name) for name in ("one", "one/part", "two", "shut"))
    denied = "could not be read, the first: {}: Permission denied (os error 13)."
    blocked = (
        "Error: {} cannot be read: Permission denied; change the permissions of the path or of the directories "
        "above it, or pass another path"
    )
    says = {
        ".": f"(1 file. 2 paths {denied.format('part/hidden')}",
        "part": f"(1 file. 1 path {denied.format('part/hidden')}",
        "secret": f"No files found. 1 path {denied.format('secret')}",
        "secret/x": blocked.format("secret/x"),
        "secret/no": blocked.format("secret/no"),
    }
    expected = [
        *(([one], tool, path, words) for tool in ("ls", "tree", "find_files") for path, words in says.items()),
        ([part, two], "ls", ".", f"(1 file. 2 paths {denied.format(f'{part}/hidden')}"),
        ([shut], "ls", ".", blocked.format(".")),
    ]
    by_rg = [(roots, rg.path, tool, path) for roots, tool, path, _ in expected]
    by_python = [(roots, "no-such-rg", tool, path) for roots, _, tool, path in by_rg if tool == "ls"]
    closed = [folder / name for name in ("one/secret", "one/part/hidden", "two/secret", "shut")]
    for path in closed:
        path.chmod(0)
    try:
        texts = unprivileged([*by_rg, *by_python])
    finally:
        for path in closed:
            path.chmod(0o700)
    said = zip(texts, (words for *_, words in expected), strict=False)
    assert [text for text, words in said if words not in text] == []
    assert texts[len(by_rg) :] == [text for text, (*_, tool, _) in zip(texts, by_rg, strict=False) if tool == "ls"]


@pytest.mark.parametrize("tool", ["ls", "tree"])
def test_limit_of_zero_shows_no_entries_and_the_number_of_files(rg: RgBinary, plant: Plant, tool: str) -> None:
    """`ls(limit=0)` showed every first-level directory."""
    root = plant({"a/b": "", "c/d": "", "e": ""})
    for program in (rg, root / "none") if tool == "ls" else (rg,):
        asked = sync.Workspace(root, rg=program)
        assert getattr(asked, tool)(limit=0) == "3 files; limit=0 shows none of them."
        result = getattr(asked, f"{tool}_result")(limit=0)
        assert (result.entries, result.total_files, result.truncated) == ((), 3, True)
    plant({"empty/.h": ""})
    assert getattr(sync.Workspace(root, rg=rg), tool)("empty", limit=0) == "No files found."


@pytest.mark.posix
@pytest.mark.parametrize("tool", ["ls", "tree"])
def test_folder_without_files_lists_its_folders(rg: RgBinary, plant: Plant, tool: str) -> None:
    """'No files found.' was all that was said of such a folder."""
    root = plant({"top/.hid/x": "", "top/a/.h": "", "top/skip/y": "", ".gitignore": "skip/\n", "other/f": ""})
    (root / "top/a/b/c").mkdir(parents=True)
    (root / "top/d").mkdir()
    (root / "top/out").symlink_to("/etc")
    said = "(No files found in these directories.)"
    for program in (rg, root / "none") if tool == "ls" else (rg,):
        show = getattr(sync.Workspace(root, rg=program), tool)
        if tool == "tree":
            assert show("top") == f"a/\n    b/\n        c/\nd/\n\n{said}"
            continue
        assert show("top") == f"- top/\n  - a/\n    - b/\n      - c/\n  - d/\n\n{said}"
        assert show("top", ignore=["b"], include_hidden=True).startswith("- top/\n  - .hid/\n    - x\n")
        assert show("top", ignore=["b"]) == f"- top/\n  - a/\n  - d/\n\n{said}"
        shallow = "(No files found in these directories; directories at the last level have further entries.)"
        assert show("top", max_depth=1) == f"- top/\n  - a/\n  - d/\n\n{shallow}"
        assert show("top/d") == "No files found."


def test_ls_of_everything_names_roots_that_a_caller_cannot_know(rg: RgBinary, folder: Path, plant: Plant) -> None:
    """With several roots only those with files were named, with one root none."""
    plant({"one/a": "", "two/.hidden": "", "three/b": ""})
    one, two = folder / "one", folder / "two"
    for program in (rg, folder / "none"):
        both = sync.Workspace(one, two, rg=program)
        assert both.ls().endswith(f"(1 file. Allowed directories: {one}, {two}.)")
        assert "Allowed" not in both.ls(str(one)) + both.ls("a")
        single = sync.Workspace(one, rg=program)
        assert single.ls() == f"- ./\n  - a\n\n(1 file. Allowed directory: {one}.)"
        assert "Allowed" not in single.ls("a")
        assert "Allowed" not in sync.Workspace(folder, rg=program).ls()
        assert "Allowed" not in sync.Workspace(".", rg=program).ls()


@pytest.mark.slow
def test_names_of_many_roots_leave_room_for_entries(rg: RgBinary, plant: Plant) -> None:
    root = plant({f"root{number:03}/file": "" for number in range(100)})
    text = sync.Workspace(*sorted(root.iterdir()), rg=rg, max_chars=2000).ls()
    assert len(text) <= 2000
    assert text.count("  - ") > 5
    assert f"Allowed directories: {root / 'root000'}, " in text
    assert text.endswith(" more.)")


def about(path: Path) -> str:
    """Return permissions, size and time as the system tells them."""
    found = path.stat()
    time = datetime.fromtimestamp(found.st_mtime, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    size = "" if path.is_dir() else f"{found.st_size} bytes, "
    return f"[{stat.filemode(found.st_mode)}, {size}{time}]"


@pytest.mark.parametrize("name", ["ls", "get_file_info", "list_directory_with_sizes"])
def test_details_are_those_of_the_system(plant: Plant, name: str) -> None:
    root = plant({"src/a.py": "a" * 1_234, "src/b.sh": "echo\n", "src/z.key": "", "src/deep/c.py": "x\ny\n"})
    (root / "src/b.sh").chmod(0o750)
    os.utime(root / "src/a.py", (1_000_000_000.75, 1_000_000_000.75))
    ws = sync.Workspace(root, deny="*.key", show_denied="name")
    given = {"details": True, "max_depth": 1} if name == "ls" else {}
    assert slashed(ws.call(name, {"path": "src", **given})) == (
        f"- src/\n  - deep/  {about(root / 'src/deep')}\n  - a.py  {about(root / 'src/a.py')}\n"
        f"  - b.sh  {about(root / 'src/b.sh')}\n  - z.key [denied]\n\n"
        "(3 files; directories at the last level have further entries. "
        f"src itself: {about(root / 'src')[1:-1]}.)"
    )
    assert (
        slashed(ws.call(name, {"path": "src/a.py", **given})) == f"- src/a.py  {about(root / 'src/a.py')}\n\n(1 file.)"
    )
    assert "2001-09-09T01:46:40Z" in ws.call(name, {"path": "src/a.py:3", **given})
    (entry,) = ws.ls_result("src/deep", details=True).entries
    assert entry.structured() == {"path": native("src/deep/c.py"), "details": about(root / "src/deep/c.py")[1:-1]}
    assert "bytes" not in ws.ls("src")


def test_details_of_members_and_revisions_have_the_size(plant: Plant) -> None:
    root = plant({"src/a.py": "a" * 1_234})
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "all")
    (root / "src/a.py").write_text("")
    with zipfile.ZipFile(root / "all.zip", "w") as archive:
        archive.writestr("in/b.py", "b" * 777)
        archive.writestr("secret.key", "k")
    ws = sync.Workspace(root, deny="*.key")
    assert ws.call("get_file_info", {"path": "src/a.py", "rev": "HEAD"}) == (
        f"- {native('src/a.py')}  [{git(root, 'cat-file', '-s', 'HEAD:src/a.py').strip()} bytes]\n\n(1 file.)"
    )
    assert ws.call("get_file_info", {"path": "all.zip!/in/b.py"}) == "- all.zip!/in/b.py  [777 bytes]\n\n(1 file.)"
    assert ws.ls("all.zip!/in/b.py:3") == "- all.zip!/in/b.py\n\n(1 file.)"
    assert ws.ls("all.zip!/secret.key") == 'Error: all.zip!/secret.key is denied by "*.key"; pass another path'
    assert ws.ls("all.zip!/c.py").startswith("Error: all.zip!/c.py is not in all.zip; ")
