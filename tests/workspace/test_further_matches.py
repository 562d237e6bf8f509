"""`grep_content`: every line that matches is marked as a match; `read_file`: both ends of a file."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ripwrap import sync
from ripwrap._operations.pagination import FurtherMatch
from ripwrap.binary import RgBinary
from ripwrap.models import Context

Plant = Callable[..., Path]

LINES = ("a", "TODO one", "x", "# TODO: second", "TODO third", "z", "y", "w", "TODO far")


@pytest.mark.parametrize("offset", [0, 1, 2, 3])
@pytest.mark.parametrize("context", [0, 1, 2, 9])
@pytest.mark.parametrize("options", [{}, {"max_chars": 1000}, {"anchors": True}, {"redact": True}], ids=str)
def test_line_that_matches_is_marked_as_a_match(
    rg: RgBinary, plant: Plant, offset: int, context: int, options: dict[str, Any]
) -> None:
    """A match of the window that is not on the page was shown as context, `4-     # TODO: second`."""
    tools = sync.Workspace(plant({"a.py": "\n".join(LINES)}), rg=rg, **options)
    text = tools.grep_content("TODO", max_matches=1, offset=offset, context_lines=context)
    for number, line in enumerate(LINES, 1):
        shown = [one for one in text.splitlines() if one.strip().startswith((f"{number}:", f"{number}-", f"{number}·"))]
        assert all(one.partition(line)[0].rstrip()[-1] == (":" if "TODO" in line else "-") for one in shown)
    assert "1 of 4 matches" in text


def test_match_over_several_lines_is_marked_on_each_line(rg: RgBinary, plant: Plant) -> None:
    """Also with `multiline`."""
    tools = sync.Workspace(plant({"a.py": "f(1)\nx\nf(\n2)\ny\n"}), rg=rg)
    text = tools.grep_content(r"f\([^)]*\)", multiline=True, max_matches=1, context_lines=4)
    assert "\n  1: f(1)\n  2- x\n  3: f(\n  4: 2)\n  5- y\n" in text
    anchored = sync.Workspace(tools.roots[0], rg=rg, anchors=True)
    assert anchored.grep_content(r"f\([^)]*\)", multiline=True, max_matches=1, context_lines=4).count("·") == 5


def test_further_match_equals_the_context_with_its_values() -> None:
    """Pages are compared with the lines of other searches."""
    values: dict[str, Any] = {"path": "a", "lines": "a", "line_number": 1, "absolute_offset": 0, "submatches": ()}
    one, other = FurtherMatch(**values), Context(**values)
    assert one == other
    assert other == one
    assert (hash(one) == hash(FurtherMatch(**values)), repr(one)) == (True, repr(other))
    assert one.model_dump_json() == other.model_dump_json()
    assert one != FurtherMatch(**values | {"lines": "b"})


@pytest.mark.parametrize(
    ("arguments", "numbers"),
    [
        ({"head": 2}, [1, 2]),
        ({"tail": 2}, [8, 9]),
        ({"head": 1, "tail": 1}, [1, 9]),
        ({"head": 5, "tail": 6}, [1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ({"head": 99}, [1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ({"tail": 99}, [1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ({"head": 1, "tail": 9}, [1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ({"head": 99, "tail": 99}, [1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ({"ranges": "1-3,1-"}, [1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ({"head": 0, "tail": 0}, [1, 2, 3, 4, 5, 6, 7, 8, 9]),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_head_and_tail_are_lines_of_both_ends(
    plant: Plant, encoding: str, arguments: dict[str, Any], numbers: list[int]
) -> None:
    """`read_file` did not know `head` and `tail`."""
    root = plant({})
    (root / "a.py").write_bytes("\n".join(LINES).encode(encoding))
    found = sync.Workspace(root).read_file_result("a.py", **arguments)
    shown = [(block.start_line + at, text) for block in found.blocks for at, text in enumerate(block.lines)]
    assert shown == [(number, LINES[number - 1]) for number in numbers]
    assert found.total_lines == len(LINES)


def test_head_and_tail_of_a_call(plant: Plant) -> None:
    """Text answers, an empty file, and arguments that contradict each other."""
    tools = sync.Workspace(plant({"a.py": "\n".join(LINES), "b.py": ""}))
    assert tools.call("read_file", {"path": "a.py", "tail": "1"}).splitlines()[1:] == [
        "  9: TODO far", "", "(Line 9 of 9.)"
    ]  # fmt: skip
    assert tools.read_file("b.py", tail=3) == tools.read_file("b.py", head=3) == "The file is empty."
    assert tools.read_file("b.py", head=1, tail=1) == "The file is empty."
    for more in ({"start_line": 2}, {"end_line": 2}, {"ranges": "1-2"}):
        answer = tools.call("read_file", {"path": "a.py", "tail": 1, **more})
        assert answer.startswith("Error: head and tail cannot be combined")
