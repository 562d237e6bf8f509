"""`str()` of a match and of its neighbours: what rg prints."""

import os
import subprocess
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from ripwrap import Commit, Context, FileCount, GrepMatch, HistoryMatch, Location, Match, Submatch, sync
from ripwrap.binary import RgBinary
from ripwrap.repositories import RootCount, RootFile, RootMatch

Plant = Callable[..., Path]
TREE: dict[str | bytes, str | bytes] = {
    "a.txt": "one\nneedle two\nthree\n\nneedle",
    "b/c d.txt": "needle\r\nneedle\n\tneedle",
    "nul.txt": "needle\nx\0y\0needle",
    b"\xff": b"needle \xfe\xff\n",
}


@pytest.mark.posix
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"context": 1},
        {"multiline": True},
        {"no_line_number": True, "passthru": True},
        {"context": 1, "replace": "new"},
        {"invert_match": True, "max_count": 1},
    ],
    ids=str,
)
def test_text_of_a_line_is_what_rg_prints(plant: Plant, rg: RgBinary, options: dict[str, Any]) -> None:
    """`print(match)` printed the fields of the model."""
    if "replace" in options and rg.version < (15,):
        pytest.skip("rg before 15 has no replacements in JSON")
    folder = plant(TREE)
    pattern = r"needle\s+needle|needle" if options.get("multiline") else "needle"
    flags = [f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}") for name, value in options.items()]
    flags += ["--line-number"] if "no_line_number" not in options else []
    command = [rg.path, "--no-config", "--sort=path", "--text", "--with-filename", "--no-heading", *flags, pattern]
    printed = subprocess.run(command, cwd=folder, capture_output=True, check=True, stdin=subprocess.DEVNULL).stdout
    found = sync.search_messages(pattern, cwd=folder, rg=rg, sort="path", text=True, **options)
    lines = [str(one) for one in found if isinstance(one, (Match, Context))]
    expected = printed.replace(b"\r\n", b"\n").replace(b"\n--\n", b"\n").replace(b"\0", rb"\x00").removesuffix(b"\n")
    assert "\n".join(lines) == expected.decode("utf-8", "replace")


@pytest.mark.parametrize(
    "options",
    [
        *({name: number} for name in ("before_context", "after_context", "context") for number in (1, 2)),
        {"context": 1, "multiline": True},
        {"context": 1, "invert_match": True},
        {"context": 1, "max_count": 3},
        {"before_context": 1, "after_context": 2},
        {},
    ],
    ids=str,
)
@pytest.mark.parametrize("numbers", [True, False])
def test_groups_of_lines_are_parted_as_rg_parts_them(
    plant: Plant, rg: RgBinary, options: dict[str, Any], *, numbers: bool
) -> None:
    """In one file, with and without line numbers: `--` stands between lines that do not follow each other."""
    folder = plant({"a": "1\nx\n2\n3\n4\n5\nx\nx\n6\n7\n8\n9\nx\n"})
    flags = [f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}") for name, value in options.items()]
    flags += ["--line-number" if numbers else "--no-line-number"]
    command = [rg.path, "--no-config", "--sort=path", "--with-filename", "--no-heading", *flags, "x"]
    printed = subprocess.run(command, cwd=folder, capture_output=True, check=True, stdin=subprocess.DEVNULL).stdout
    result = sync.grep("x", cwd=folder, rg=rg, limit=None, no_line_number=not numbers, **{"context": 0, **options})
    assert str(result).splitlines()[:-1] == printed.decode().replace("./", "").splitlines()


def line(**fields: Any) -> dict[str, Any]:
    known = {"path": "src/a.py", "lines": "x\n", "line_number": 3, "absolute_offset": 0, "submatches": ()}
    return {**known, **fields}


COMMIT = Commit(id="0123456789abcdef", author="A", date=datetime.fromtimestamp(0).astimezone(), subject="s")


@pytest.mark.parametrize(
    ("one", "printed"),
    [
        (Match(**line()), "src/a.py:3:x"),
        (Match(**line(lines="a\r\nb")), "src/a.py:3:a\nsrc/a.py:4:b"),
        (Match(**line(lines="a\nb\0")), "src/a.py:3:a\nb"),  # a record with `null_data` is one line
        (Match(**line(lines="\x1b[31m\u202e\n", path="a\nb")), r"a\x0ab:3:\x1b[31m\u202e"),
        (Match(**line(path="report.pdf!/page 3", location=Location(page=3))), "report.pdf!/page 3:3:x"),
        (Match(**line(lines="", submatches=(Submatch(match="", start=0, end=0),))), "src/a.py:3:"),
        (GrepMatch(**line(), before=(Context(**line(line_number=2)),)), "src/a.py:3:x"),
        (Context(**line()), "src/a.py-3-x"),
        (FileCount(path="\udcff", count=2), "\ufffd:2"),
        (RootMatch(**line(), root="shop"), os.path.join("shop", "src/a.py:3:x")),
        (RootFile(root="shop", path="a.py"), os.path.join("shop", "a.py")),
        (RootCount(root="shop", count=3, files=2), "shop:3"),
        (HistoryMatch(**line(), blob="b", paths=(), first=COMMIT, last=None), "0123456789ab:src/a.py:3:x"),
    ],
    ids=str,
)
def test_text_of_a_result_has_the_form_of_rg(one: Any, printed: str) -> None:
    assert (str(one), f"{one}") == (printed, printed)
    assert repr(one).startswith(f"{type(one).__name__}(") and "=" in repr(one)


def test_text_of_a_file_has_its_context(plant: Plant) -> None:
    folder = plant({"d/a": "1\nx\n3\n4\n5\nx\n", "d/b": "x\n"})
    result = sync.grep("x", cwd=folder, context=1)
    assert str(result.files[0]).splitlines() == ["d/a-1-1", "d/a:2:x", "d/a-3-3", "--", "d/a-5-5", "d/a:6:x"]
    (root,) = sync.Repositories(folder / "d").grep("x", context=1).roots
    assert str(root) == f"{result.files[0]}\n--\n{result.files[1]}"
