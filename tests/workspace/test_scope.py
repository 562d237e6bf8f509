"""Globs of tool calls as rg gets them, by the rules of Windows, where rg's globs have slashes, too."""

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
    assert [*only, *without.get("glob", ())] == globs


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
