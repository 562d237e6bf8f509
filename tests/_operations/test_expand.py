"""`expand()`: the definition or block around a match, lines that are left out, and files that changed."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ripwrap
from ripwrap import Context, Expansion, Match, RipwrapError, sync
from ripwrap._operations.expand import MAX_SOURCE_BYTES
from ripwrap.cli.flags import spell_as_flag
from ripwrap.errors import spell_error
from support.paths import native

Plant = Callable[..., Path]

SHOP = '''\
PRICE = 3


class Shop:
    """A shop."""

    # Count what is paid.
    @counted
    def pay(self, amount):
        """Pay."""
        if amount:
            take(amount)  # needle
        return amount

    def close(self): ...
'''


def first(pattern: str, root: Path, **options: Any) -> Match:
    matches: Iterator[Match] = sync.search(pattern, cwd=root, sort="path", **options)
    return next(matches)


def numbers(found: Expansion) -> list[int]:
    return [line.number for line in found.lines]


@pytest.mark.parametrize("loop", ["asyncio", "trio", "blocking"])
def test_definition_has_its_name_kind_and_decorators(plant: Plant, loop: str) -> None:
    root = plant({"src/shop.py": SHOP})
    match = first("needle", root)

    async def asked() -> Expansion:
        return await ripwrap.expand(match, cwd=root)

    found = sync.expand(match, cwd=root) if loop == "blocking" else anyio.run(asked, backend=loop)
    assert (found.path, found.to, found.kind, found.name) == (
        native("src/shop.py"),
        "definition",
        "function",
        "Shop.pay",
    )
    assert (found.start_line, found.end_line, found.match_lines, found.elided) == (7, 13, (12, 12), ())
    assert [line.text for line in found.lines] == SHOP.split("\n")[6:13]
    assert numbers(found) == list(range(7, 14))
    assert str(found).splitlines()[0] == native("src/shop.py:7-13 function Shop.pay")
    assert str(found).splitlines()[5:7] == ["  11-         if amount:", "  12:             take(amount)  # needle"]
    assert Expansion.model_validate_json(found.model_dump_json()) == found


@pytest.mark.parametrize(
    ("given", "to", "first_line", "last_line"),
    [
        ({}, "definition", 7, 13),
        ({"to": "definition"}, "definition", 7, 13),
        ({"to": "block"}, "block", 11, 12),
        ({"lines": 0}, "lines", 12, 12),
        ({"lines": 2}, "lines", 10, 14),
        ({"lines": 100}, "lines", 1, 15),
        ({"lines": 5, "max_lines": 1}, "lines", 7, 15),
    ],
)
def test_place_is_expanded_as_asked(
    plant: Plant, given: dict[str, Any], to: str, first_line: int, last_line: int
) -> None:
    root = plant({"shop.py": SHOP})
    found = sync.expand(first("needle", root), cwd=root, **given)
    assert (found.to, numbers(found)) == (to, list(range(first_line, last_line + 1)))
    assert (found.kind, found.name) == (("function", "Shop.pay") if to == "definition" else ("", None))


def test_block_is_shown_outside_of_definitions(plant: Plant) -> None:
    root = plant({"shop.py": SHOP, "notes.txt": "one\n\ntwo\nthree needle\n\nfour\n"})
    found = sync.expand(first("PRICE", root), cwd=root)
    assert (found.to, found.name, found.start_line, found.end_line) == ("block", None, 1, 1)
    found = sync.expand(first("three", root), cwd=root)
    assert str(found) == "notes.txt:3-4\n  3- two\n  4: three needle"


def test_middle_of_a_long_definition_is_left_out_but_not_the_match(plant: Plant) -> None:
    body = "".join(f"    line{number}()\n" for number in range(2, 101))
    root = plant({"a.py": f"def long():\n{body}"})
    found = sync.expand(first(r"line40\(", root), cwd=root, max_lines=8)
    assert (found.start_line, found.end_line, len(found.lines)) == (1, 100, 8)
    assert found.elided == ((3, 37), (43, 99))
    assert str(found).splitlines() == [
        "a.py:1-100 function long",
        "  1- def long():",
        "  2-     line2()",
        "  [35 more lines]",
        "  38-     line38()",
        "  39-     line39()",
        "  40:     line40()",
        "  41-     line41()",
        "  42-     line42()",
        "  [57 more lines]",
        "  100-     line100()",
    ]
    assert str(sync.expand(first(r"line40\(", root), cwd=root, max_lines=1)).splitlines()[1:] == [
        "  [39 more lines]",
        "  40:     line40()",
        "  [60 more lines]",
    ]
    assert len(sync.expand(first(r"line40\(", root), cwd=root, max_lines=None).lines) == 100


def test_matches_of_grep_with_their_context_and_several_lines_expand(plant: Plant) -> None:
    root = plant({"shop.py": SHOP})
    result = sync.grep("needle", cwd=root)
    (match,) = result.matches
    found = sync.expand(match, cwd=result.root)
    line = match.before[0]
    assert isinstance(line, Context)
    assert sync.expand(line, cwd=root).model_copy(update={"match_lines": (12, 12)}) == found
    several = first(r"if amount:\n.*\n +return", root, multiline=True)
    found = sync.expand(several, cwd=root, to="block")
    assert (found.match_lines, found.start_line, found.end_line) == ((11, 13), 9, 13)
    absolute = first("needle", root, paths=root / "shop.py")
    assert sync.expand(absolute).name == "Shop.pay"


def test_result_of_rank_expands_to_the_definition_that_it_names(plant: Plant) -> None:
    root = plant({"shop.py": SHOP, "notes.txt": "How to pay.\n"})
    (chunk, *_) = sync.rank("where is pay defined", cwd=root)
    assert chunk.symbol == "Shop.pay"
    found = sync.expand(chunk, cwd=root)
    assert (found.name, found.match_lines) == ("Shop.pay", (chunk.start_line, chunk.end_line))
    last = sync.rank("where is pay defined", cwd=root)[-1]
    assert last.symbol is None
    assert sync.expand(last, cwd=root).to == "block"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_encodings_are_those_that_rg_knows(plant: Plant, encoding: str, newline: str) -> None:
    text = newline.join(["def käse():", "    return 'ä'", "x = 1", ""])
    root = plant({"a.py": text.encode(encoding)})
    found = sync.expand(first("return|x = 1", root), cwd=root)
    wanted = "    return '\ufffd'" if encoding == "latin-1" else "    return 'ä'"
    assert [line.text for line in found.lines][1:] == [wanted]
    assert Expansion.model_validate_json(found.model_dump_json()) == found


@pytest.mark.slow
def test_lines_near_a_match_in_a_large_file_are_read(plant: Plant) -> None:
    lines = [f"    line {number}" for number in range(1, 200_001)]
    lines[149_999] = "    needle"
    root = plant({"a.log": "start:\n" + "\n".join(lines)})
    assert (root / "a.log").stat().st_size > MAX_SOURCE_BYTES
    match = first("needle", root)
    found = sync.expand(match, cwd=root, lines=1)
    assert [line.text for line in found.lines] == ["    line 149999", "    needle", "    line 150001"]
    found = sync.expand(match, cwd=root, max_lines=5)
    assert (found.to, found.match_lines) == ("block", (150_001, 150_001))
    assert len(found.lines) == 5


def change(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text().replace(old, new))


@pytest.mark.parametrize("given", [{}, {"to": "block"}, {"lines": 1}])
@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("PRICE", "import os\nPRICE", "line 12 is 'if amount:' now, and was 'take(amount)  # needle'"),
        ("needle", "noodle", "line 12 is 'take(amount)  # noodle' now, and was 'take(amount)  # needle'"),
        (SHOP[60:], "", "it has 7 lines now, and the match was in line 12"),
        (SHOP, "", "it has 0 lines now, and the match was in line 12"),
    ],
)
def test_changed_file_is_one_clear_error(plant: Plant, given: dict[str, Any], old: str, new: str, error: str) -> None:
    root = plant({"shop.py": SHOP})
    match = first("needle", root)
    change(root / "shop.py", old, new)
    with pytest.raises(RipwrapError) as caught:
        sync.expand(match, cwd=root, **given)
    said = str(caught.value)
    assert said.startswith("shop.py changed since the search")
    assert error in said or ("is shorter now" in said and given == {"lines": 1})
    assert said.endswith("; search again") and "\n" not in said


def test_change_elsewhere_in_the_file_is_no_error(plant: Plant) -> None:
    root = plant({"shop.py": SHOP})
    match = first("needle", root)
    change(root / "shop.py", "return amount", "return 2 * amount\n        # done")
    assert sync.expand(match, cwd=root).end_line == 14


def test_wrong_directory_is_named(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error named only the path, which exists in the directory that was searched."""
    root = plant({"real/shop.py": SHOP, "other/shop.py": "needle\n", "empty/x": ""})
    match = first("needle", root / "real")
    for wrong in (root / "empty", root / "none"):
        with pytest.raises(FileNotFoundError, match=rf"no such file in {wrong}; check cwd, which must be") as caught:
            sync.expand(match, cwd=wrong)
        assert caught.value.filename == "shop.py"
    monkeypatch.chdir(root / "empty")
    with pytest.raises(FileNotFoundError, match=rf"no such file in {root / 'empty'}; check cwd"):
        sync.expand(match)
    with pytest.raises(
        RipwrapError, match=rf"or cwd is not the directory that was searched \({root / 'other'}\): it has"
    ):
        sync.expand(match, cwd=root / "other")
    assert sync.expand(match, cwd=root / "real")


@pytest.mark.posix
def test_file_that_is_gone_or_a_pipe_raises_an_error_of_the_system(plant: Plant) -> None:
    root = plant({"shop.py": SHOP})
    match = first("needle", root)
    (root / "shop.py").unlink()
    with pytest.raises(FileNotFoundError):
        sync.expand(match, cwd=root)
    os.mkfifo(root / "shop.py")
    with pytest.raises(FileNotFoundError, match="not a regular file"):
        sync.expand(match, cwd=root)


@pytest.mark.parametrize(
    ("options", "given", "error"),
    [
        ({"no_line_number": True}, {}, "the match has no line number; search without --no-line-number"),
        ({"null_data": True}, {}, "the lines of the match end with NUL; search without --null-data"),
        ({}, {"to": "file"}, "--to must be 'definition' or 'block', got 'file'; for a number of lines, pass --lines"),
        ({}, {"to": "block", "lines": 3}, "--to=block and --lines=3 are two ways to expand a match; give one of them"),
        ({}, {"lines": -1}, "--lines must be 0 or more, or None for all; got -1"),
        ({}, {"max_lines": 0}, "--max-lines must be 1 or more, or None for all; got 0"),
    ],
)
def test_wrong_arguments_are_refused(plant: Plant, options: Any, given: dict[str, Any], error: str) -> None:
    root = plant({"a.py": "x = 1\0" if options.get("null_data") else "x = 1\n"})
    match = first("x", root, text=True, **options)
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the message is compared below
        sync.expand(match, cwd=root, **given)
    assert spell_error(caught.value, spell_as_flag) == error


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lines=st.lists(
        st.sampled_from(["x", "  x", "def a():", "    needle", "    if (", ")", "", "}", "{", "# c"]), min_size=1
    ),
    name=st.sampled_from(["a.py", "a.c", "a.js", "a.rb", "a.md", "a.unknown"]),
    to=st.sampled_from(["definition", "block"]),
    most=st.integers(1, 12),
)
def test_every_expansion_holds_its_match_and_the_text_of_the_file(
    tmp_path: Path, lines: list[str], name: str, to: Any, most: int
) -> None:
    lines = [*lines, "    needle"]
    (tmp_path / name).write_text("\n".join(lines))
    for at, line in enumerate(lines, 1):
        if "needle" not in line:
            continue
        match = Match(path=name, lines=f"{line}\n", line_number=at, absolute_offset=0, submatches=())
        found = sync.expand(match, to=to, max_lines=most, cwd=tmp_path)
        assert at in numbers(found)
        assert len(found.lines) == min(most, found.end_line - found.start_line + 1)
        assert all(lines[one.number - 1] == one.text for one in found.lines)
        left_out = [number for gap in found.elided for number in range(gap[0], gap[1] + 1)]
        assert sorted([*left_out, *numbers(found)]) == list(range(found.start_line, found.end_line + 1))
