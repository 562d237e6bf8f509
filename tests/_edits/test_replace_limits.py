"""Limits of a plan: the size of a file and of all edits, and the work for one long line."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ripwrap import sync
from ripwrap._edits.planning import EDIT_BYTES, MAX_BYTES, FileChange, Found, group_hunks, plan_files
from ripwrap._ripgrep.groups import parse_template
from ripwrap._system.safe_write import Disk, TooLargeError

Plant = Callable[..., Path]
pytestmark = pytest.mark.usefixtures("leaks_nothing")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "pattern", "replacement"),
    [
        ("a\n" * 4_000, "a", "x" * 100_000),  # 400 MB of replacements
        ("a\n" * 4_000, "(a)", "$1" + "x" * 100_000),
        ("a" * 4_000, "(a)", "$1" + "x" * 100_000),  # rg would hold all of them in memory
        ("a" * 100_000, "(a+)", "$0" * 2_000),
        ("a\n" * (MAX_BYTES // EDIT_BYTES), "a", ""),
    ],
)
def test_edits_over_the_limit_are_refused_with_the_argument_that_lifts_it(
    content: str, pattern: str, replacement: str, plant: Plant
) -> None:
    folder = plant({"f": content})
    with pytest.raises(ValueError, match=r"take more than 67,108,864 bytes .* up to f; .* max_bytes= sets the limit"):
        sync.replace(pattern, replacement, cwd=folder)
    said = sync.Workspace(folder, write=True).replace_content(pattern, replacement[:15_000], apply=True)
    assert said.startswith("Error: the edits take more than 33,554,432 bytes")
    assert (folder / "f").read_text() == content


def test_limit_can_be_raised(plant: Plant) -> None:
    folder = plant({"f": "a\n" * 10})
    for limit, allowed in ((10 * (EDIT_BYTES + 2), True), (10 * (EDIT_BYTES + 2) - 1, False)):
        if allowed:
            assert sync.replace("a", "b", cwd=folder, max_bytes=limit).total_edits == 10
        else:
            with pytest.raises(ValueError, match="the edits take more than"):
                sync.replace("a", "b", cwd=folder, max_bytes=limit)


@pytest.mark.parametrize(("size", "after"), [(2_000, b"a"), (999, b"bbb")])
def test_file_that_is_or_becomes_too_large_is_left_out_by_name(size: int, after: bytes, plant: Plant) -> None:
    folder = plant({"f": b"x" * (size - 1) + b"y", "ok": b"x"})
    found = [Found("f", [FileChange(size - 1, size, b"y", after)]), Found("ok", [FileChange(0, 1, b"x", b"y")])]
    files, (error,) = plan_files(str(folder), found, max_bytes=1_000)
    assert [file.path for file in files] == ["ok"]
    assert str(error) == "f: left out: it has, or would have, more than 1,000 bytes, the limit of a file (max_bytes)"


@pytest.mark.posix
def test_large_file_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "f").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(TooLargeError):
        Disk().read(os.path.realpath(tmp_path / "f"), 1_000)


def test_longest_replacement_is_an_upper_bound() -> None:
    template = parse_template("a$1é${x}$$$0")
    assert (template.size, template.uses, template.longest(10)) == (13, 3, 43)


class Counted(bytes):
    """Text that counts how many bytes its searches pass over."""

    scanned = 0

    def find(self, sub: Any, start: Any = 0, end: Any = None, /) -> int:
        found = super().find(sub, start, end)
        Counted.scanned += (len(self) if found < 0 else found) - start
        return found


def test_edits_of_one_long_line_look_for_its_end_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text = Counted(b"ab" * 20_000)
    edits = [(FileChange(at, at + 1, b"a", b"c"), at, at + 1) for at in range(0, len(text), 2)]
    (hunk,) = group_hunks(text, edits, 3)
    assert len(hunk.edits) == 20_000
    assert Counted.scanned < 10 * len(text)
    calls: list[int] = []

    def line_end(raw: bytes, start: int) -> int:
        calls.append(start)
        return len(raw)

    monkeypatch.setattr("ripwrap.edits._line_end", line_end)
    (line,) = hunk.messages()
    assert len(calls) < 10
    assert line.raw_lines == text
