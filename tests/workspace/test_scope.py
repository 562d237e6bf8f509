"""Globs of tool calls as rg gets them, by the rules of Windows, where rg's globs have slashes, too."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ripwrap import sync
from ripwrap.binary import RgBinary
from ripwrap.workspace.deny import escaped
from ripwrap.workspace.sandbox import RootLocation
from ripwrap.workspace.scope import entry_globs, exclude_options, file_filter
from support.paths import native

Plant = Callable[..., Path]

WINDOWS_SEP = "\\"
WINDOWS_PATH = r"sub\{q}[x]!"
DEEP = RootLocation("C:\\Work", (r"sub\q[x]",), "", "\\")
ROOT = RootLocation("C:\\Work", (".",), "", "\\")


@pytest.mark.parametrize(
    ("location", "pattern", "globs"),
    [
        (DEEP, "/*.py", [r"/sub/q\[x\]/*.py"]),
        (DEEP, r"deep\*.py", [r"/sub/q\[x\]/deep/*.py"]),
        (ROOT, r"sub\deep\*.py", ["/sub/deep/*.py"]),
        (ROOT, r"sub\\deep\\*.py", ["/sub/deep/*.py"]),
        (ROOT, r"c:\work\sub\*.py", ["/sub/*.py"]),
        (ROOT, "C:/Work/sub/*.py", ["/sub/*.py"]),
        (ROOT, r"sub\{a,b}.py", [r"sub\{a,b}.py"]),
        (ROOT, r"q\[x\].py", [r"q\[x\].py"]),
        (ROOT, r"src\**\a?.py, !src\x\*.py", ["/src/**/a?.py", "!/src/x/*.py"]),
    ],
)
def test_glob_of_a_windows_caller_reaches_rg_with_slashes(
    location: RootLocation, pattern: str, globs: list[str]
) -> None:
    files = file_filter(location, pattern)
    assert files.options.get("glob") == globs
    assert files.overrides
    only, without = entry_globs(location, pattern)
    assert [*only, *(without.get("glob") or ())] == globs


def test_name_of_a_windows_caller_stays_a_file_type() -> None:
    assert file_filter(DEEP, "*.py").options == {"type_add": ["ripwrap:*.py"], "type": "ripwrap"}


def test_exclusion_of_a_windows_caller_starts_from_the_location() -> None:
    assert exclude_options(DEEP, [r"build\x", "*.log"]) == {"glob": [r"!/sub/q\[x\]/build/x", "!*.log"]}


def test_backslash_stays_an_escape_on_posix() -> None:
    assert file_filter(RootLocation("/work", (".",), "", "/"), r"a/\*.py").options.get("glob") == [r"/a/\*.py"]


def test_escaped_windows_path_is_matched_by_rg(rg: RgBinary, plant: Plant) -> None:
    root = plant({"sub/{q}[x]!/a.py": "", "sub/q/a.py": ""})
    glob = f"/{escaped(WINDOWS_PATH, WINDOWS_SEP)}/*.py"
    assert list(sync.files(cwd=root, glob=glob, rg=rg)) == [native("sub/{q}[x]!/a.py")]


OWN = [
    ("src", "src/**/*.py"),
    ("src", "./src/**/*.py"),
    ("src", "/src/a.py"),
    ("src", "src/deep/../*.py"),
    ("src/", "**/src/*.py"),
    ("src", "src/"),
    ("src", "src/a.py, src/deep/*.py"),
    ("src", "src/**, !src/deep/*"),
    ("src/deep", "src/deep/*"),
    ("app/[slug]", "app/[slug]/*.py"),
    ("site", "site/*.py"),
    ("site", "site/site/*.py"),
    ("site", "site/m.py"),
    ("site", "site/n.py"),
    ("src", "deep/*.py"),
    ("src", "*/b.py"),
    ("src", "app/*.py"),
    ("src", "{src,t}/**/*.py"),
    ("src", "**/{t,src}/*.py"),
    ("src/deep", "src/{deep,x}/*"),
    ("src", "{src/deep,app}/*"),
    ("src", "s{rc,x}/a.py, !src/{deep,x}/*"),
    ("src", "{src,t}/{a,b}.{py,txt}"),
    ("app", "{src,t}/*.py"),
]


@pytest.mark.parametrize(("path", "pattern"), OWN)
def test_glob_that_begins_with_the_path_of_the_call_is_read_from_the_root(
    plant: Plant, rg: RgBinary, path: str, pattern: str
) -> None:
    """Answers have paths from the root, so models send them as globs; 'no files' was the answer for existing ones."""
    names = [
        "src/a.py",
        "src/deep/b.py",
        "src/deep/c.txt",
        "app/a.py",
        "app/[slug]/p.py",
        "site/m.py",
        "site/site/n.py",
    ]
    root = plant(dict.fromkeys((*names, "ROOT.py"), "needle\n"))
    here = path.rstrip("/")

    def listed(start: str) -> set[str]:
        """Return the files below the path that rg lists with globs which begin at the root or at the path."""
        parts = [one.strip() for one in re.split(r",(?![^{}]*\})", pattern)]
        bare = [one.lstrip("!").removeprefix("./").replace("deep/../", "").lstrip("/") for one in parts]
        bare = [f"**/{one}**" if one.endswith("/") else one for one in bare]
        bare = [one.replace("[slug]", r"\[slug\]") for one in bare]
        globs = [f"--glob={'!' * part.startswith('!')}/{start}{one}" for part, one in zip(parts, bare, strict=True)]
        run = subprocess.run([rg.path, "--files", *globs, here], cwd=root, capture_output=True, check=False, text=True)
        return set(run.stdout.split("\n")) - {""}

    expected = listed(f"{here}/") or listed("")
    workspace = sync.Workspace(root, write=True)
    assert set(workspace.find_files_result(pattern, path).files) == {native(one) for one in expected}
    assert {one.path for one in workspace.grep_content_result("needle", path, file_pattern=pattern).files} == expected
    replaced = workspace.replace_content_result("needle", "x", path, file_pattern=pattern)
    assert {one.path for one in replaced.files} == expected
    ignored = workspace.ls_result(path, ignore=[one for one in pattern.split(", ") if one[0] != "!"])
    if "!" not in pattern and not pattern.endswith("/"):  # the listed directory itself cannot be ignored
        everything = {one for one in names if one.startswith(f"{here}/")}
        assert {one.path for one in ignored.entries if not one.is_dir} == everything - expected
