"""Listing without rg: the same paths as with each rg of the matrix, for any tree and any ignore rule."""

import itertools
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ripwrap import GlobError
from ripwrap._ignore import globs
from ripwrap._ignore.rules import outer_rules
from ripwrap.binary import RgBinary
from ripwrap.options import EXCLUDED
from ripwrap.workspace.walk import Walker, parse_globs
from support.effort import times
from support.paths import native, needs_posix, slashed
from support.trees import ODD, PIECES, grown, known_to, lines, trees

Plant: TypeAlias = Callable[..., Path]

pytestmark = [pytest.mark.rg_ends, pytest.mark.usefixtures("leaks_nothing")]


def run(rg: RgBinary, root: Path, *flags: str, sub: str = ".") -> "subprocess.CompletedProcess[bytes]":
    fixed = ("--no-config", "--files", "--null", "--no-require-git", "--no-ignore-parent", "--no-ignore-global")
    argv = [rg.path, *fixed, *flags, "--glob=!.git", "--glob=!.ripgrep/", "--", sub]
    return subprocess.run(argv, cwd=root, stdin=subprocess.DEVNULL, capture_output=True, check=False)


def listed(rg: RgBinary, root: Path, *flags: str, sub: str = ".") -> list[str]:
    lines = run(rg, root, *flags, sub=sub).stdout.split(b"\0")[:-1]
    return [slashed(os.fsdecode(line)).removeprefix("./") for line in lines]


def walking(root: Path, sub: str = ".", **options: Any) -> Iterator[str]:
    excluded = parse_globs((*options.pop("exclude", ()), *EXCLUDED))
    device = os.stat(root / sub).st_dev if options.pop("one_file_system", False) else None
    usual: dict[str, Any] = {"hidden": False, "no_ignore": False, "max_depth": None, "folders": False, "links": False}
    calls: dict[str, Any] = {"stop": lambda: False, "report": lambda *_: None, "is_denied": lambda _: False}
    return Walker(root=str(root), excluded=excluded, device=device, **{**usual, **calls, **options}).walk(sub)


def walked(root: Path, sub: str = ".", **options: Any) -> list[str]:
    return list(map(slashed, walking(root, native(sub), **options)))


def same(rg: RgBinary, root: Path, sub: str = ".") -> list[str]:
    """Return what the walk and rg both list, in order of characters."""
    found = sorted(walked(root, sub))
    assert found == sorted(listed(rg, root, sub=sub))
    return found


Line: TypeAlias = tuple[str | bytes, list[str], list[str]]
"""A line of an ignore file, the names that are listed with it, and the names that are not."""

LINES: list[Line] = [
    ("a", ["b", "ab"], ["a", "d/a", "d/a2/a"]),
    ("/a", ["d/a"], ["a"]),
    ("d/a", ["a", "e/d/a"], ["d/a"]),
    ("a/", ["a"], ["d/a/b"]),
    ("A", ["a"], ["A"]),
    ("*.b", ["b", "a.b.c"], ["a.b", "d/.b"]),
    ("a/*/c", ["a/b/d/c", "a/c"], ["a/b/c"]),
    ("a/**/c", ["a/e", "b/c"], ["a/c", "a/b/c", "a/b/d/c"]),
    ("a/**", ["b"], ["a/b", "a/d/c"]),
    ("a/**/", ["a/b"], ["a/d/b"]),
    ("**/a", ["b"], ["a", "d/a", "d/e/a"]),
    ("**a", ["ab"], ["a", "ba", "d/ba"]),
    ("a**", ["ba"], ["a", "ab", "d/ab"]),
    ("**", [], ["a", "d/a"]),
    ("*\n!*/\n!*.py", ["a.py", "d/a.py"], ["b", "d/b"]),
    ("a\n!a", ["a"], []),
    ("!a\na", [], ["a"]),
    ("d\n!d/a", ["a"], ["d/a"]),
    ("*.b\n!d", ["d/a"], ["d/a.b"]),
    ("*\n!", ["a", "d/a", ".hidden"], []),
    ("!.env", [".env", "d/.env"], [".other", ".d/.env"]),
    ("/", ["a", "d/a"], []),
    ("a//\nb//c", ["a/b", "b/c"], []),
    ("./a\nb/./c", ["a", "b/c"], []),
    ("{a,b}", ["c", "{a,b}"], ["a", "b"]),
    ("{,a}b", ["b"], ["ab"]),
    ("c{}", ["cc"], ["c"]),
    ("{**/a,b}", ["d/b"], ["a", "b", "d/a"]),
    ("a/{b/**,c}", ["a/d"], ["a/b/e", "a/b/g/f", "a/c"]),
    ("a,b", ["a"], ["a,b"]),
    ("{a\nb}\nc", ["{a", "b}", "a"], ["c"]),
    ("[ab]c", ["cc"], ["ac", "bc"]),
    ("[!a]c\n[^b]d", ["ac", "bd"], ["bc", "ad"]),
    ("[a-c]d\n[x-]e", ["dd", "ye"], ["bd", "-e", "xe"]),
    ("[]a]b", ["b"], ["]b", "ab"]),
    ("[z-a]\nc", ["z", "a"], ["c"]),
    ("[\\]]a", ["]a"], ["\\]a"]),
    ("a[!x]b", ["axb"], ["a/b", "ayb"]),
    ("?", ["é", "ab"], ["a"]),
    ("??", ["a"], ["é", "ab"]),
    ("[é]a", ["éa", "a"], ["\udcc3a", "\udca9a"]),
    ("é", ["e"], ["é"]),
    ("a?b", ["a/b"], ["a\nb", "a b"]),
    ("a\\\nb", ["a", "a\\"], ["b"]),
    ("\\a\\*", ["ab"], ["a*"]),
    ("\\!a\n\\#b\n!!c\n#d", ["d", "#d"], ["!a", "#b"]),
    ("*\n!!c", ["!c"], ["c"]),
    ("a \nb\\ \nc\\  ", ["b", "b\\ ", "c", "c "], ["a", "b "]),
    (" a\n #b", ["a", "#b"], [" a", " #b"]),
    ("a\u00a0\nb\x1c\nc\v", ["b"], ["a", "b\x1c", "c"]),
    ("a\r\nb\r\r\n\r\nc\r", ["a\r"], ["a", "b", "c"]),
    (b"a\n\xff\nb", ["b"], ["a"]),
    (b"", ["a"], []),
    ("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", ["a" * 200, "d/" + "a" * 200], ["a" * 200 + "b"]),
    ("{a,aa}" * 16 + "/**/a/**/a/**/b", ["a" * 30, "a/" * 40 + "a"], ["a" * 20 + "/" + "a/" * 40 + "b"]),
]

NEWER: list[Line] = [
    ("{a,{b,c}}", ["d"], ["a", "b", "c"]),
    ("[a\nb[c]", ["a"], ["[a", "bc"]),
    ("[a{b,[c}", ["ab"], ["[ab", "[a[c"]),
    (b"\xef\xbb\xbfa", ["b"], ["a"]),
    (b"\xef\xbb\xbf\xef\xbb\xbf#a\n\xef\xbb\xbfb", ["a", "b"], ["\ufeffb"]),
    ("d\\/", ["e"], ["d/a"]),
]


def parameters(lines: list[Line]) -> list[Any]:
    return [pytest.param(*line, marks=pytest.mark.posix if needs_posix(*line[1], *line[2]) else ()) for line in lines]


def plant_line(plant: Plant, line: str | bytes, stays: list[str], goes: list[str]) -> Path:
    return plant({".gitignore": line, **dict.fromkeys([*stays, *goes], "")})


@pytest.mark.slow
@pytest.mark.parametrize(("line", "stays", "goes"), parameters(LINES))
def test_ignore_line_means_the_same_as_in_rg(
    rg: RgBinary, plant: Plant, line: str | bytes, stays: list[str], goes: list[str]
) -> None:
    root = plant_line(plant, line, stays, goes)
    assert set(same(rg, root)) - {".gitignore"} == set(stays)


@pytest.mark.parametrize(("line", "stays", "goes"), parameters(NEWER))
def test_ignore_line_means_the_same_as_in_the_newest_rg(
    newest: RgBinary, plant: Plant, line: str | bytes, stays: list[str], goes: list[str]
) -> None:
    assert same(newest, plant_line(plant, line, stays, goes)) == sorted(stays)


def test_ignore_files_have_rgs_precedence_by_kind_then_depth(rg: RgBinary, plant: Plant) -> None:
    root = plant(
        {
            ".git/info/exclude": "a\nb\nc\nd\n",
            ".gitignore": "!b\nc\ne\n",
            ".ignore": "!c\n!d\ne\nf\n",
            ".rgignore": "!e\ng\n",
            "sub/.gitignore": "!e\n!f\nh\n",
            "sub/.ignore": "!g\ni\n",
            **dict.fromkeys(("sub/" + name for name in "abcdefghi"), ""),
        }
    )
    assert same(rg, root) == ["sub/b", "sub/c", "sub/d", "sub/e"]


def test_nested_repository_has_its_own_exclude_file(rg: RgBinary, plant: Plant) -> None:
    root = plant({"n/.git/info/exclude": "a\n/d/b\n", "n/a": "", "n/b": "", "n/d/a": "", "n/d/b": "", "a": ""})
    assert same(rg, root) == ["a", "n/b"]


def test_outer_ignore_rules_apply_in_a_nested_repository(newest: RgBinary, plant: Plant) -> None:
    root = plant({".git/HEAD": "", ".gitignore": "a\n", "n/.git/HEAD": "", "n/a": "", "n/b": ""})
    assert same(newest, root) == ["n/b"]


def test_git_file_is_not_followed(newest: RgBinary, plant: Plant) -> None:
    root = plant({"g/info/exclude": "a\n", "g/commondir": ".\n", "n/.git": "gitdir: g\n", "n/a": ""})
    assert "n/a" in same(newest, root)


def test_named_path_is_listed_even_if_ignored(rg: RgBinary, plant: Plant) -> None:
    root = plant({".gitignore": "build/\nb\n", "build/a": "", "build/b": "", "build/d/a": "", ".hidden/a": ""})
    assert same(rg, root) == []
    assert same(rg, root, "build/b") == ["build/b"]
    assert walked(root, "build/b", exclude=["b"], max_depth=0) == ["build/b"]
    assert walked(root, "build") == ["build/a", "build/d/a"]
    assert walked(root, ".hidden") == [".hidden/a"]


def test_rules_between_root_and_path_apply_but_not_above_the_root(rg: RgBinary, plant: Plant) -> None:
    root = plant({".ignore": "*", ".gitignore": "*", "r/.gitignore": "/s/t/a\nb\n", "r/s/.ignore": "!t/b\n/c\n"})
    for name in "abc":
        plant({f"r/s/t/{name}": ""})
    assert walked(root / "r", "s/t") == ["s/t/b", "s/t/c"]
    assert walked(root / "r", ".") == ["s/t/b", "s/t/c"] == sorted(listed(rg, root / "r"))


def test_rg_fails_for_an_invalid_ignore_line_above_the_root(rg: RgBinary, plant: Plant) -> None:
    root = plant({".gitignore": "{a\n", "r/s/a": ""}) / "r"
    for flags in ([], ["--no-ignore-messages"]):
        done = run(rg, root, *flags, sub="s")
        assert (done.returncode, slashed(done.stdout.decode())) == (2, "s/a\0")
        assert os.fsencode(root.parent / ".gitignore") + b": line 1: error parsing glob '{a'" in done.stderr
    done = run(rg, root, "--no-ignore-vcs", sub="s")
    assert (done.returncode, slashed(done.stdout.decode()), done.stderr) == (0, "s/a\0", b"")


@pytest.mark.slow
@pytest.mark.parametrize("flags", [[], ["--hidden"], ["--no-ignore"], ["--hidden", "--no-ignore"]], ids=" ".join)
@pytest.mark.parametrize("depth", [None, 0, 2])
def test_walk_options_equal_rgs(newest: RgBinary, plant: Plant, flags: list[str], depth: int | None) -> None:
    files = ["a", "b", ".a", "d/a", "d/b", "d/e/a", "d/.e/a", ".d/a", ".git/a", "f/.git/a"]
    files += [".ripgrep/a", "f/.ripgrep/a", "e/.ripgrep"]
    root = plant({".gitignore": "b\n", ".ignore": "/d/a\n", **dict.fromkeys(files, "")})
    options = {"hidden": "--hidden" in flags, "no_ignore": "--no-ignore" in flags, "max_depth": depth}
    depths = [] if depth is None else [f"--max-depth={depth}"]
    for sub in (".", "d/e", "a"):
        assert sorted(walked(root, sub, **options)) == sorted(listed(newest, root, *flags, *depths, sub=sub))
    assert ("d/a" in walked(root, "d", **options)) == ("--no-ignore" in flags and depth != 0)


@pytest.mark.slow
@pytest.mark.parametrize("glob", ["a", "/a", "d/", "*.b", "!a", "#a", "a ", "", "{a,d}", "[!a]", "d/**", "**/e"])
def test_exclude_glob_drops_what_rg_drops(newest: RgBinary, plant: Plant, glob: str) -> None:
    files = ["a", "!a", "#a", "b", "a.b", "d/a", "d/b", "d/e/a", "e"]
    root = plant({".ignore": "!*\n", **dict.fromkeys(files, "")})
    assert sorted(walked(root, exclude=[glob])) == sorted(listed(newest, root, f"--glob=!{glob}"))


@pytest.mark.parametrize("glob", ["[a", "{a", "a\\", "[z-a]"])
def test_invalid_glob_raises_rgs_message(rg: RgBinary, folder: Path, glob: str) -> None:
    with pytest.raises(GlobError) as caught:
        walking(folder, exclude=[glob])
    assert str(caught.value) in run(rg, folder, f"--glob=!{glob}").stderr.decode()


def test_unopened_alternate_group_raises_the_newest_rgs_message(newest: RgBinary, folder: Path) -> None:
    with pytest.raises(GlobError) as caught:
        walking(folder, exclude=["a}"])
    assert str(caught.value) in run(newest, folder, "--glob=!a}").stderr.decode()


@pytest.mark.posix
def test_walk_does_not_follow_links(rg: RgBinary, plant: Plant, tmp_path: Path) -> None:
    root = plant({"a": "", "d/a": "", "rules": "a\n", "e/info/exclude": "e2\n", "e2": ""})
    (tmp_path / "outside").write_text("*\n")
    links = {"l": "a", "ld": "d", "up": "..", "loop": "loop", "gone": "no", ".git": "e", ".ripgrep": "e"}
    for name, target in links.items():
        (root / name).symlink_to(target)
    (root / "d/.gitignore").symlink_to("../rules")
    assert same(rg, root) == ["a", "e/info/exclude", "rules"]
    (root / ".rgignore").symlink_to(tmp_path / "outside")
    assert listed(rg, root) == []
    assert sorted(walked(root)) == ["a", "e/info/exclude", "rules"]


@pytest.mark.posix
def test_ignore_file_that_is_a_fifo_or_folder_does_not_block(plant: Plant) -> None:
    root = plant({"a": "", ".ignore/b": "", "d/a": ""})
    os.mkfifo(root / ".gitignore")
    (root / "d/.gitignore").symlink_to("../.gitignore")
    assert walked(root) == ["a", "d/a"]


@pytest.mark.posix
def test_walk_lists_names_that_are_not_utf8(rg: RgBinary, plant: Plant) -> None:
    root = plant({b"\xff/\xfe": "", b"\xff/a": "", b"\xff/.gitignore": "a\n"})
    assert same(rg, root) == ["\udcff/\udcfe"]
    assert same(rg, root, "\udcff") == ["\udcff/\udcfe"]
    assert Path(root / "\udcff/\udcfe").read_text() == ""


def test_walk_yields_paths_in_rgs_order(newest: RgBinary, plant: Plant) -> None:
    files = ["a/b", "a.b", "a-b/c", "a/b-c", "B", "z/é", "z/z", "é/a", "a b/c"]
    files += ["z/\udcff"] if os.name == "posix" else []
    root = plant(dict.fromkeys(files, ""))
    assert walked(root) == listed(newest, root, "--sort=path")


def test_unreadable_folder_is_reported_and_skipped(plant: Plant) -> None:
    """The walk only logged it, at debug level."""
    root = plant({"a": "", "b/a": "", "c": ""})
    reported: list[tuple[str, OSError]] = []
    walk_on = walking(root, report=lambda path, error: reported.append((path, error)))
    assert next(walk_on) == "a"
    shutil.rmtree(root / "b")
    assert list(walk_on) == ["c"]
    ((path, error),) = reported
    assert (path, type(error)) == ("b", FileNotFoundError)


def test_invalid_ignore_line_is_logged(plant: Plant, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "ripwrap"):
        walked(plant({".gitignore": "a\n{b\n"}))
    (record,) = caplog.records
    assert ".gitignore: line 2: unclosed alternate group" in record.message


@pytest.mark.slow
def test_walk_handles_trees_deeper_than_recursion_and_path_limits(folder: Path) -> None:
    here = os.open(folder, os.O_RDONLY)
    try:
        for level in range(5000):
            if level % 100 == 0:
                os.close(os.open("a", os.O_CREAT | os.O_WRONLY, dir_fd=here))
            os.mkdir("dd", dir_fd=here)
            below = os.open("dd", os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = below
        found = walked(folder)
        assert found[0] == "a" and 10 < len(found) < 50
        assert max(path.count(os.sep) for path in found) > sys.getrecursionlimit()
        assert len(walked(folder, max_depth=101)) == 2
    finally:
        os.close(here)
        subprocess.run(["rm", "-rf", folder / "dd"], check=True)  # shutil.rmtree() recurses as deep as the tree


def test_walk_checks_stop_before_each_folder_and_file(plant: Plant) -> None:
    root = plant({"a/a": "", "b/b": "", "c/c": ""})

    def after(times: int) -> Callable[[], bool]:
        asked = itertools.count()
        return lambda: next(asked) >= times

    # `stop` is called before the root and each of its three folders, then before the first folder and its content, ….
    assert walked(root, stop=after(6)) == ["a/a"]
    assert walked(root, stop=after(3)) == []
    assert walked(root, stop=after(0)) == []


def test_one_file_system_does_not_enter_another(rg: RgBinary) -> None:
    shared = Path("/dev/shm")
    if not shared.is_dir() or shared.stat().st_dev == shared.parent.stat().st_dev:
        pytest.skip("/dev/shm is no file system of its own here")
    with tempfile.NamedTemporaryFile(dir=shared) as file:
        name = f"shm/{Path(file.name).name}"
        for one in (False, True):
            flags = ["--one-file-system"] if one else []
            assert (name in walked(shared.parent, one_file_system=one)) == (not one)
            assert (name in listed(rg, shared.parent, *flags)) == (not one)
        assert name in walked(shared.parent, "shm", one_file_system=True)


thorough = settings(max_examples=times(12, 300), suppress_health_check=list(HealthCheck))


@pytest.mark.slow
@thorough
@given(data=st.data())
def test_walk_lists_any_tree_as_rg_does(rg: RgBinary, data: st.DataObject) -> None:
    kinds, pieces, names = known_to(rg)
    exclude = data.draw(st.lists(lines(pieces).filter(lambda line: "\udcff" not in line), max_size=2))
    options: dict[str, Any] = data.draw(
        st.fixed_dictionaries({"hidden": st.booleans(), "no_ignore": st.sampled_from([False] * 5 + [True])})
    )
    flags = [f"--glob=!{glob}" for glob in exclude]
    flags += [f"--{name.replace('_', '-')}" for name, chosen in options.items() if chosen]
    with grown(data.draw(trees(kinds, pieces, names))) as (root, folders):
        done = run(rg, root, *flags)
        if done.returncode == 2:
            with pytest.raises(GlobError):
                walking(root, exclude=exclude, **options)
            return
        whole = {os.fsdecode(line).removeprefix("./") for line in done.stdout.split(b"\0")[:-1]}
        assert set(walked(root, exclude=exclude, **options)) == whole
        for sub in folders:
            below = {path for path in whole if path.startswith(f"{sub}/")}
            if below:
                assert set(walked(root, sub, exclude=exclude, **options)) == below


@pytest.mark.slow
@thorough
@given(data=st.data())
def test_rg_with_outer_rules_lists_a_folder_as_from_the_root(rg: RgBinary, data: st.DataObject) -> None:
    kinds, pieces, names = known_to(rg)
    kind = data.draw(st.sampled_from(kinds))
    with grown(data.draw(trees([kind], pieces, names))) as (root, grown_folders):
        folders = [folder for folder in grown_folders if ".git" not in folder.split("/")]
        if not folders:
            return
        sub = data.draw(st.sampled_from(folders))
        found = set(listed_with_rules(rg, root, sub))
        assert found == set(walked(root, sub, hidden=True))
        below = {path for path in listed(rg, root, "--hidden") if path.startswith(f"{sub}/")}
        assert found == below or not below


def listed_with_rules(rg: RgBinary, root: Path, sub: str) -> list[str]:
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", newline="") as file:
        file.write(outer_rules(str(root), sub)[0])
        file.flush()
        return listed(rg, root, "--hidden", f"--ignore-file={file.name}", sub=sub)


def test_outer_rules_are_anchored_and_in_order(plant: Plant) -> None:
    root = plant(
        {
            ".git/info/exclude": "e",
            ".gitignore": "# no\r\na\r\n/b\r\n!c/d/\r\n/\r\n{\r\n",
            "s/.gitignore": "a\n/b/\n!\n**\nc/**\nd\\ ",
            ".ignore": "i",
            "s/t/.gitignore": "t",
            "s/.rgignore": "r",
            ".rgignore": "/r",
        }
    )
    rules = "/**/e\n/**/a\n/b\n!/c/d/\n/*/**/a\n/*/b/\n!/*/**\n/*/**\n/*/c/**\n/*/**/d\\ \n/**/i\n/r\n/*/**/r\n"
    assert outer_rules(str(root), native("s/t")) == outer_rules(str(root), native("s/file")) == (rules, [])
    assert outer_rules(str(root), ".") == ("", [])


def test_inner_rules_override_outer_rules(rg: RgBinary, plant: Plant) -> None:
    root = plant({".ignore": "a\nb\n", "s/.gitignore": "!a\n", "s/a": "", "s/b": "", "s/c": ""})
    assert sorted(listed_with_rules(rg, root, "s")) == ["s/.gitignore", "s/a", "s/c"]
    assert sorted(listed(rg, root)) == walked(root, "s") == ["s/c"]


@given(
    glob=st.lists(st.sampled_from(PIECES + ODD), max_size=8).map("".join),
    path=st.lists(st.sampled_from(["a", "b", "c", "ab", ".a", "\n", "x"]), min_size=1, max_size=6),
    glue=st.sampled_from(["/", ""]),
)
@example(glob="{a,{b/**,}}/**/*c", path=["a", "c"], glue="/")
def test_stepping_pattern_matches_as_the_regex_does(glob: str, path: list[str], glue: str) -> None:
    try:
        tokens = globs.parse_glob(glob, allow_unclosed=True)
    except ValueError:
        return
    text = glue.join(path)
    regex = re.compile(rf"(?s:{globs.token_regex(tokens)})\Z")
    stepping = globs.SteppingPattern(tokens, include=True)
    assert (stepping.match_file(text) is None) == (regex.match(text) is None)
