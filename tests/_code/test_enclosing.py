"""Lines around a place: definitions, blocks, what is left out of them, and what two places share."""

import ast
import sysconfig
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripwrap._code.enclosing import (
    LineSpan,
    block_at,
    definition_at,
    gaps_between,
    kept_lines,
    share_lines,
)
from ripwrap._code.treesitter.worker import read_outline

SAMPLES = Path(__file__).parents[1] / "data" / "sections"
MODULES = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))[::5]

PYTHON = """\
import os

LIMIT = 3
NAMES = (
    "a",
    "b",
)


def pay(
    amount,
    *,
    tip=0,
):
    text = '''
at the margin
'''
    if amount:
# a comment at the margin
        for coin in amount:

            take(coin,
                 tip)
        done()
    else:
        fail()
    return text
"""
JAVASCRIPT = """\
namespace(function () {
var a = 1;
if (a)
{
  b(a);
}
else {
  const text = `
} not code {
`;
  c(text);
}
});
"""


@pytest.mark.parametrize(
    ("name", "text", "line", "block"),
    [
        ("a.py", PYTHON, 1, (1, 1)),
        ("a.py", PYTHON, 3, (3, 7)),
        ("a.py", PYTHON, 5, (4, 7)),
        ("a.py", PYTHON, 7, (4, 7)),
        ("a.py", PYTHON, 10, (10, 27)),
        ("a.py", PYTHON, 12, (10, 14)),
        ("a.py", PYTHON, 15, (10, 27)),
        ("a.py", PYTHON, 16, (10, 27)),
        ("a.py", PYTHON, 18, (18, 24)),
        ("a.py", PYTHON, 19, (18, 24)),
        ("a.py", PYTHON, 20, (20, 23)),
        ("a.py", PYTHON, 21, (20, 23)),
        ("a.py", PYTHON, 23, (22, 23)),
        ("a.py", PYTHON, 24, (18, 24)),
        ("a.py", PYTHON, 26, (25, 26)),
        ("a.py", PYTHON, 27, (10, 27)),
        ("a.js", JAVASCRIPT, 2, (1, 13)),
        ("a.js", JAVASCRIPT, 5, (3, 6)),
        ("a.js", JAVASCRIPT, 8, (7, 12)),
        ("a.js", JAVASCRIPT, 9, (7, 12)),
        ("a.js", JAVASCRIPT, 11, (7, 12)),
        ("a.unknown", "one\ntwo\n\nthree\n", 2, (1, 2)),
        ("a.md", "- one\n  - two\n\n  text\n- three\n", 2, (1, 4)),
        ("a.rb", "def a\n  if b\n    c\n  end\n  d\nend\n", 3, (2, 4)),
        ("a.py", "x = [1,\n2,\n3]\ny = 1\n", 2, (1, 3)),
    ],
)
def test_block_is_the_innermost_with_the_lines_that_open_and_close_it(
    name: str, text: str, line: int, block: tuple[int, int]
) -> None:
    lines = text.split("\n")[:-1]
    assert block_at(name, lines, LineSpan(line, line), read_outline(name, lines).literals) == block


@pytest.mark.parametrize("path", sorted(SAMPLES.iterdir()), ids=lambda path: path.name)
def test_block_and_definition_contain_the_line(path: Path) -> None:
    lines = path.read_text("utf-8").split("\n")
    outline, literals, _ = read_outline(path.name, lines)
    for number in range(1, len(lines) + 1):
        span = LineSpan(number, number)
        block = block_at(path.name, lines, span, literals)
        assert 1 <= block.first <= number <= block.last <= len(lines)
        found = definition_at(outline, span)
        if found is None:
            assert outline.enclosing(number) is None
        else:
            section, around = found
            assert section == outline.enclosing(number)
            assert around.first <= section.line <= around.last == section.end_line
            assert number in around
            assert outline.enclosing(around.first) == section
            assert around.first == 1 or outline.enclosing(around.first - 1) != section


@pytest.mark.slow
@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_definition_of_a_python_module_is_that_of_its_syntax_tree(path: Path) -> None:
    text = path.read_text("utf-8")
    outline = read_outline(path.name, text.split("\n")).outline
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node.lineno != node.end_lineno:
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            found = definition_at(outline, LineSpan(node.lineno, node.lineno))
            assert found is not None
            section, span = found
            assert section.name.rpartition(".")[2] == node.name
            assert outline.kind_of(section) == ("class" if isinstance(node, ast.ClassDef) else "function")
            assert span.first <= first and (node.end_lineno or 0) <= span.last


def test_named_definition_is_preferred() -> None:
    lines = ["class A:", "    def b(self):", "        pass", "    def c(self):", "        pass"]
    outline = read_outline("a.py", lines).outline
    for name, span in (("A.c", (4, 5)), ("A.b", (2, 3)), ("A.none", (2, 3)), (None, (2, 3))):
        found = definition_at(outline, LineSpan(3, 4), name)
        assert found is not None and found[1] == span


numbers = st.integers(1, 60)
spans = st.tuples(numbers, numbers).map(lambda pair: LineSpan(min(pair), max(pair)))


@given(span=spans, place=spans, most=st.integers(1, 70))
def test_kept_lines_are_as_many_as_allowed_and_have_the_place_first(span: LineSpan, place: LineSpan, most: int) -> None:
    span = span.joined(place)
    kept = kept_lines(span, place, most)
    assert kept == sorted(set(kept))
    assert set(kept) <= set(range(span.first, span.last + 1))
    assert len(kept) == min(most, span.last - span.first + 1)
    shown = [number for number in kept if number in place]
    assert shown == list(range(place.first, place.last + 1))[:most]
    assert len(kept) == len(shown) or len(shown) == place.last - place.first + 1
    left_out = [number for gap in gaps_between(span, kept) for number in range(gap.first, gap.last + 1)]
    assert sorted([*kept, *left_out]) == list(range(span.first, span.last + 1))


def test_kept_lines_are_those_around_the_place_then_the_head_then_the_tail() -> None:
    kept = kept_lines(LineSpan(1, 100), LineSpan(50, 50), 13)
    assert gaps_between(LineSpan(1, 100), kept) == [(4, 45), (55, 99)]


@given(
    st.lists(st.tuples(st.integers(1, 8), st.integers(0, 3), st.integers(0, 9), st.integers(0, 9)), max_size=8),
)
def test_shared_lines_are_the_union_of_the_windows_and_none_is_shown_twice(
    drawn: list[tuple[int, int, int, int]],
) -> None:
    places: list[LineSpan] = []
    windows: list[LineSpan] = []
    last = 0
    for gap, length, before, after in drawn:
        place = LineSpan(last + gap, last + gap + length)
        places.append(place)
        windows.append(LineSpan(max(place.first - before, 1), place.last + after))
        last = place.last
    shared = share_lines(places, windows)
    wanted = {number for window in windows for number in range(window.first, window.last + 1)}
    shown = [number for span in shared for number in range(span.first, span.last + 1)]
    assert shown == sorted(wanted)
    for place, span in zip(places, shared, strict=True):
        assert span.joined(place) == span
