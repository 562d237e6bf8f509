"""Tool `read_file`."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripwrap import AccessDeniedError, sync
from ripwrap._system.concurrency import CANCELLED, Cancellation
from ripwrap.workspace import ReadFileResult
from ripwrap.workspace.text_files import Deadline
from support.opening import before_opening
from support.paths import slashed
from support.tools import APIS, Asked

Plant = Callable[..., Path]

LINES = "".join(f"line {number}\n" for number in range(1, 101))


@pytest.mark.parametrize("api", APIS)
def test_lines_have_their_numbers(api: str, plant: Plant) -> None:
    asked = Asked(api, plant({"src/a.py": "import x\n\n\tneedle = 1\r\n"}))
    everything = "File: src/a.py\n  1: import x\n  2:\n  3: \tneedle = 1\n\n(All 3 lines.)"
    assert slashed(asked.read_file("src/a.py")) == everything
    assert slashed(asked.read_file("src/a.py", 2, 2)) == "File: src/a.py\n  2:\n\n(Line 2 of 3.)"


@pytest.mark.parametrize(
    ("given", "numbers", "message"),
    [
        ({"end_line": 3}, [1, 2, 3], "Lines 1 to 3 of 100."),
        ({"start_line": 98}, [98, 99, 100], "Lines 98 to 100 of 100."),
        ({"start_line": 99, "end_line": 500}, [99, 100], "Lines 99 to 100 of 100."),
        ({"start_line": 0, "end_line": 1}, [1], "Line 1 of 100."),
        ({"ranges": "98-, 2-3,7"}, [2, 3, 7, 98, 99, 100], "Lines 2 to 3, 7, 98 to 100 of 100."),
        ({"ranges": "5-7,6-9,10"}, [5, 6, 7, 8, 9, 10], "Lines 5 to 10 of 100."),
        ({"ranges": "1,900-"}, [1], "Line 1 of 100."),
    ],
)
def test_ranges_of_lines(plant: Plant, given: dict[str, Any], numbers: list[int], message: str) -> None:
    found = sync.Workspace(plant({"a": LINES})).read_file_result("a", **given)
    shown = {block.start_line + at: text for block in found.blocks for at, text in enumerate(block.lines)}
    assert shown == {number: f"line {number}" for number in numbers}
    assert (found.message, found.total_lines, found.truncated) == (message, 100, False)
    assert ReadFileResult.model_validate_json(found.model_dump_json()) == found
    assert str(found).count("  --\n") == len(found.blocks) - 1


@pytest.mark.parametrize(("ending", "total"), [("", 3), ("\n", 3), ("\r\n", 3), ("\n\n", 4)])
def test_last_line_needs_no_end(plant: Plant, ending: str, total: int) -> None:
    for until in (0, 1):
        found = sync.Workspace(plant({"a": f"1\n2\n3{ending}"})).read_file_result("a", end_line=until)
        assert found.total_lines == total


def test_pages_give_each_line_once(plant: Plant) -> None:
    text = "".join(f"{number} {'x' * (number % 70)}\n" for number in range(2_000))
    asked = sync.Workspace(plant({"a": text}), max_chars=2_000)
    lines: list[str] = []
    start: int | None = 1
    while start is not None:
        found = asked.read_file_result("a", start_line=start)
        assert len(asked.text(found)) <= 2_000
        assert (f"start_line={found.next_offset} gives them." in found.message) is found.truncated
        lines += found.blocks[0].lines
        start = found.next_offset
    assert lines == text.splitlines()


def test_ranges_without_room_are_named(plant: Plant) -> None:
    asked = sync.Workspace(plant({"a": LINES * 10}), max_chars=1_000)
    found = asked.read_file_result("a", ranges="1-20,300-310,900-1000")
    (last,) = (block for block in found.blocks if block.start_line == 900)
    after = last.start_line + len(last.lines)
    assert found.message.endswith(f"{1001 - after} more lines: start_line={after} and end_line=1000 gives them.")
    found = asked.read_file_result("a", ranges="1-200,300-310")
    assert found.message.endswith(f'. ranges="{len(found.blocks[0].lines) + 1}-200,300-310" gives the rest.')
    assert asked.read_file_result("a", ranges=found.message.split('"')[1]).blocks[0].start_line == found.next_offset


def test_long_lines_are_cut_and_control_characters_shown(plant: Plant) -> None:
    asked = sync.Workspace(plant({"a": f"{'x' * 3_000_000}\n\x1b[31m\x08\ny"}), max_line=100)
    assert asked.read_file("a") == f"File: a\n  1: {'x' * 100}…\n  2: \\x1b[31m\\x08\n  3: y\n\n(All 3 lines.)"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_encodings_are_those_that_rg_knows(plant: Plant, encoding: str) -> None:
    root = plant({"a": "Käse\nzwei\n".encode(encoding)})
    found = sync.Workspace(root).read_file_result("a")
    assert found.blocks[0].lines == ("K\ufffdse" if encoding == "latin-1" else "Käse", "zwei")
    assert found.encoding == ("utf-16-le" if encoding == "utf-16" else "utf-8")


def test_utf16_big_endian_has_its_mark(plant: Plant) -> None:
    root = plant({"a": b"\xfe\xff" + "a\nb".encode("utf-16-be")})
    assert sync.Workspace(root).read_file("a") == "File: a\n  1: a\n  2: b\n\n(All 2 lines.)"


@pytest.mark.posix
@pytest.mark.parametrize(
    ("path", "given", "error"),
    [
        ("src", {}, "src is a directory; ls lists its files"),
        ("src/a.py", {"start_line": 9, "end_line": 3}, "start_line (9) is after end_line (3); swap the two numbers"),
        ("src/a.py", {"ranges": "9-3"}, "the start of a range (9) is after its end (3); swap the two numbers"),
        ("src/a.py", {"ranges": "1-2;5"}, """ranges must be like "10-40,80-95", got '1-2;5'"""),
        (
            "src/a.py",
            {"ranges": "1", "end_line": 3},
            "ranges cannot be combined with start_line or end_line; leave out ranges, or start_line and end_line",
        ),
        (
            "src/a.py",
            {"start_line": 101},
            "src/a.py has 100 lines, so there is no line 101 (the file may have changed)",
        ),
        ("src/a.py", {"end_line": -1}, "end_line must be 0 or more, got -1"),
        ("binary", {}, "binary is binary (3 bytes); read_file shows text only"),
        ("nothing.py", {}, "nothing.py does not exist in "),
        ("link", {}, "link is outside of the allowed directories"),
        ("../x", {}, "../x is outside of the allowed directories"),
        ("pipe", {}, "pipe is neither a file nor a directory"),
    ],
)
def test_what_cannot_be_read_has_one_clear_error(plant: Plant, path: str, given: dict[str, Any], error: str) -> None:
    root = plant({"src/a.py": LINES, "binary": b"a\0b"})
    (root / "link").symlink_to("/etc/passwd")
    os.mkfifo(root / "pipe")
    said = sync.Workspace(root).read_file(path, **given)
    assert said.startswith("Error: ")
    assert error in said
    assert "\n" not in said


def test_empty_file_is_no_error(plant: Plant) -> None:
    assert sync.Workspace(plant({"a": ""})).read_file("a") == "The file is empty."


@pytest.mark.posix
def test_file_that_became_a_link_is_not_followed(plant: Plant) -> None:
    root = plant({"a": "x\n"})

    def swap() -> None:
        (root / "a").unlink()
        (root / "a").symlink_to("/etc/passwd")

    with before_opening("a", swap):
        said = sync.Workspace(root).read_file("a")
    assert said.startswith("Error: ")
    assert "root:" not in said


def test_other_names_of_the_tool_and_its_arguments(plant: Plant) -> None:
    asked = sync.Workspace(plant({"a": LINES}))
    same = asked.read_file("a", 10, 12)
    for name, arguments in (
        ("Read", {"file_path": "a", "offset": 10, "limit": 3}),
        ("Read", {"file_path": "a", "offset": "10", "limit": "3"}),
        ("Read", {"file_path": "a", "start_line": 10, "end": 12, "limit": 99}),
        ("view", {"path": "a", "view_range": [10, 12]}),
        ("cat", '{"path": "a", "ranges": ["10-12"]}'),
        ("read_file", {"path": "a", "ranges": [[10, 11], [12, 12]]}),
    ):
        assert asked.call(name, arguments) == same
    assert asked.call("view", {"path": "a", "view_range": [99, -1]}) == asked.read_file("a", 99)
    assert asked.call("Read", {"file_path": "a", "limit": "x"}) == "Error: end_line must be a whole number, got 'x'"
    for infinite in ({"limit": float("inf")}, {"limit": 5, "start_line": float("inf")}):  # JSON of Python has it
        assert "must be a whole number, got inf" in asked.call("Read", {"path": "a", **infinite})
    assert asked.call("Read", {"path": "a", "limit": -5}).startswith("Error: ")


def test_several_roots_give_and_take_absolute_paths(plant: Plant) -> None:
    root = plant({"one/a": "1\n", "two/b": "2\n"})
    asked = sync.Workspace(root / "one", root / "two")
    assert asked.read_file_result("b").path == str(root / "two/b")
    assert slashed(asked.read_file(str(root / "two/b"))).endswith("two/b\n  1: 2\n\n(The only line.)")
    with pytest.raises(AccessDeniedError):
        asked.read_file_result(str(root / "three"))


@pytest.mark.slow
def test_reading_ends_at_the_time_limit(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as file:
        file.truncate(1 << 40)  # a hole of a tebibyte: one line, without an end
    with (tmp_path / "a").open("r+b") as file:
        file.write(b"x" * 8_192 + b"\n")
    found = sync.Workspace(tmp_path, timeout=0.2, max_chars=1_000).read_file_result("a", end_line=1)
    assert (found.total_lines, found.message) == (None, "Line 1 of many.")
    said = sync.Workspace(tmp_path, timeout=0.2).read_file("a", start_line=3)
    assert said == "Error: the first line to read was not reached within 0.2 seconds; search the file with grep_content"


def test_error_of_a_cancelled_call_fits_reading_and_masking() -> None:
    cancelled = Cancellation()
    cancelled.set()
    token = CANCELLED.set(cancelled)
    try:
        with pytest.raises(TimeoutError, match=r"^the call was cancelled$"):
            Deadline(None, "the secrets in the lines were not masked").check()
    finally:
        CANCELLED.reset(token)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    text=st.text(st.sampled_from("ab\n\r\u2028é"), max_size=60),
    ranges=st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=4),
)
def test_lines_are_those_that_rg_counts(
    text: str, ranges: list[tuple[int, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("read")
    (root / "a").write_bytes(text.encode())
    wanted = {number for start, more in ranges for number in range(start, start + more + 1)}
    lines = {match.line_number: match.text for match in sync.search("^", cwd=root, paths=["a"])}
    asked = sync.Workspace(root)
    given_ranges = ",".join(f"{start}-{start + more}" for start, more in ranges)
    if lines and not wanted & lines.keys():
        assert asked.read_file("a", ranges=given_ranges).startswith("Error: ")
        return
    found = asked.read_file_result("a", ranges=given_ranges)
    shown = {block.start_line + at: line for block in found.blocks for at, line in enumerate(block.lines)}
    assert shown.keys() == wanted & lines.keys()
    assert found.total_lines == len(lines)


def test_several_files_are_read_in_one_call(plant: Plant) -> None:
    """A file that cannot be read is named, and the others are shown."""
    root = plant({"a": LINES, "b": "one\ntwo\n", "empty": "", "deny.me": "secret\n", "binary": b"\0"})
    asked = sync.Workspace(root, deny=["deny.me"])
    text = asked.call("read_multiple_files", {"paths": ["a", "b", "nope", "../x", "empty", "deny.me", "binary", "b"]})
    body, _, said = text.rpartition("\n\n(")
    assert [line for line in body.splitlines() if line.startswith("File: ")] == ["File: a", "File: b"]
    assert body.endswith("File: b\n  1: one\n  2: two") and "secret" not in text
    assert said.startswith("3 files. a: ") and "b: All 2 lines. nope does not exist" in said
    for part in (
        "../x is outside",
        "empty: The file is empty.",
        'deny.me is denied by "deny.me"',
        "binary is binary",
    ):
        assert part in said
    alone = asked.call("read_file", {"path": "b"})
    assert asked.call("read_file", {"path": ["b"]}) == asked.call("cat", {"path": '["b", "b"]'}) == alone
    assert asked.call("read_file", {"path": ["nope", "no"]}).startswith("Error: nope does not exist")
    assert asked.call("read_file", {"path": ["a", "b"], "start_line": 2, "end_line": 2}).count("\n  2: ") == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"path": []}, "path must be a string"),
        ({"path": ["a", 1]}, "path must be a string"),
        ({"path": "a\0b"}, "path must be a path without a NUL character"),
        ({"path": ["a", "b\0"]}, "path must be a path without a NUL character"),
        ({"path": ["a", "b"], "outline": True}, "outline is for one file, and path names several"),
        ({"path": [f"{number}" for number in range(41)]}, "path names 41 files, and a call reads at most 40"),
    ],
)
def test_wrong_list_of_files_is_one_error(arguments: dict[str, Any], says: str, plant: Plant) -> None:
    assert sync.Workspace(plant({"a": "x\n", "b": "x\n"})).call("read_file", arguments).startswith(f"Error: {says}")


@pytest.mark.slow
def test_several_files_share_the_length_of_an_answer(plant: Plant) -> None:
    root = plant({f"f{number}": "line\n" * 5_000 for number in range(40)} | {"long": "x" * 90_000})
    asked = sync.Workspace(root)
    for count in (2, 7, 40):
        result = asked.call_result("read_file", {"path": [f"f{number}" for number in range(count)]})
        assert len(str(result)) <= 20_000
        assert len(asked.structured(result)["blocks"]) == count
        assert result.truncated and "f1: Lines 1 to " in str(result)
    assert "f0: Lines" in asked.call("read_file", {"path": ["long", "f0"]})
    missing = [f"{number}-{'x' * 200}/{'y' * 200}/{'z' * 200}" for number in range(32)]
    text = asked.call("read_file", {"path": ["f0", *missing]})
    assert len(text) <= 20_000 and "31-x" in text and text.endswith(")")  # an error quotes its path, and none is lost
