"""Definitions that are guessed from lines, against those that the parser finds, and by hand."""

import asyncio
import json
import random
from pathlib import Path

import pytest

import ripwrap
from ripwrap._code.line_outline import guess_code, named_lines
from ripwrap._code.outline import CodeNames, Definition
from ripwrap._code.treesitter.merge import named_windows
from ripwrap._code.treesitter.parser import parse_outline

SAMPLES = Path(__file__).parents[1] / "data" / "sections"
PACKAGES = (Path(asyncio.__file__).parent, Path(json.__file__).parent, Path(ripwrap.__file__).parent)
CLASS, FUNCTION = "class", "function"
C = """\
static int add(struct cart *c,
\t       int n)
{
\tlist_for_each(a, b) {
\t\tx();
\t}
out:
\treturn 0;
}
struct item {
\tint a;
};
struct item *first;
struct item all[] = {
};
int f(void);
"""
SCRIPT = """\
export const go = async (a) => {
  return 1;
};
class X {
  run(a, b) {
    if (a) {
      b(a);
    }
    it("a", function () {
    });
    each(function (a) {
    });
  }
}
app.use = function use(fn) {
};
"""
PYTHON = """\
class A:
    @property
    def size(
        self,
    ) -> int:
        return 1

# a comment
def top(): pass
x = 1
"""


def parsed(path: str, text: str) -> list[Definition]:
    outline = parse_outline(path, text)
    assert outline is not None
    code = CodeNames.of(json.loads(json.dumps(outline.code())), text)
    assert code is not None
    return [one for one in code.definitions if one.name]


def test_guesses_in_python_are_nearly_those_of_the_parser() -> None:
    files = sorted(file for package in PACKAGES for file in package.rglob("*.py"))
    wanted = guessed = both = same_end = 0
    for file in random.Random(0).sample(files, 60):
        text = file.read_text("utf-8")
        right = {(one.line, one.name): one.last for one in parsed("a.py", text)}
        found = {(one.line, one.name): one.last for one in guess_code("a.py", text).definitions}
        wanted, guessed, both = wanted + len(right), guessed + len(found), both + len(right.keys() & found.keys())
        same_end += sum(right[one] == found[one] for one in right.keys() & found.keys())
    assert wanted > 1_000 and both >= 0.98 * wanted and both >= 0.98 * guessed and same_end >= 0.9 * both


# The share of the parser's definitions that are guessed, at least. Constants, fields and macros are not guessed.
@pytest.mark.parametrize(
    ("name", "recall"),
    [("shop.py", 1), ("shop.go", 0.6), ("shop.rs", 0.9), ("shop.rb", 0.9), ("shop.js", 0.8), ("Shop.scala", 0.8)],
)
def test_guesses_in_other_languages_are_mostly_those_of_the_parser(name: str, recall: float) -> None:
    text = (SAMPLES / name).read_text()
    right = {(one.line, one.name.rpartition(".")[2]) for one in parsed(name, text)}
    found = {(one.line, one.name) for one in guess_code(name, text).definitions}
    assert len(right & found) >= recall * len(right) and len(right & found) >= 0.8 * len(found)


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("a.c", C, [("add", FUNCTION, 0, 8, -1), ("item", CLASS, 9, 11, -1)]),
        ("a.js", SCRIPT, [
            ("go", FUNCTION, 0, 2, -1), ("X", CLASS, 3, 13, -1), ("run", FUNCTION, 4, 12, 1),
            ("use", FUNCTION, 14, 15, -1)]),
        ("a.go", "func (s *Server) Run(ctx context.Context) error {\n}\ntype Server struct {\n}\n", [
            ("Run", FUNCTION, 0, 1, -1), ("Server", CLASS, 2, 3, -1)]),
        ("a.rs", "impl<T> Display for Money<T> {\n    pub(crate) fn fmt(&self) {\n    }\n}\n", [
            ("Money", CLASS, 0, 3, -1), ("fmt", FUNCTION, 1, 2, 0)]),
        ("a.rb", "module Shop\n  class Till\n    def self.open?(day)\n      1\n    end\n  end\nend\n", [
            ("Shop", CLASS, 0, 6, -1), ("Till", CLASS, 1, 5, 0), ("open?", FUNCTION, 2, 4, 1)]),
        ("a.cs", "public sealed class Till : A\n{\n    public async Task<int> Count(int a)\n    {\n    }\n}\n", [
            ("Till", CLASS, 0, 5, -1), ("Count", FUNCTION, 2, 4, 0)]),
        ("a.py", PYTHON, [("A", CLASS, 0, 5, -1), ("size", FUNCTION, 2, 5, 0), ("top", FUNCTION, 8, 8, -1)]),
        ("a.lua", "function Shop.open(day)\n  return 1\nend\n", [("open", FUNCTION, 0, 2, -1)]),
        ("a.ex", "defmodule Shop do\n  defp add(a) do\n    a\n  end\nend\n", [
            ("Shop", CLASS, 0, 4, -1), ("add", FUNCTION, 1, 3, 0)]),
        ("a.py", "def f():\n    pass\nendpoint = 1\n", [("f", FUNCTION, 0, 1, -1)]),
        ("a.py", "class A:\n    a = 1\nclass B:\n    b = 1\n", [("A", CLASS, 0, 1, -1), ("B", CLASS, 2, 3, -1)]),
        ("Makefile", "define function name\n", []),
        ("README", "type of thing\nclass of 1999\n", []),
        ("a.md", "class A\n", []),
        ("a.py", '"""\ntype checkers\nobject of study\n"""\n', []),
    ],
)  # fmt: skip
def test_definition_is_guessed_with_its_kind_lines_and_parent(
    path: str, text: str, expected: list[tuple[str, str, int, int, int]]
) -> None:
    code = guess_code(path, text)
    assert [(one.name, one.kind, one.line, one.last, one.parent) for one in code.definitions] == expected
    assert named_lines(path, text) == list(code.names) == [(line, name) for name, _, line, _, _ in expected]


def test_decorators_and_comments_above_belong_to_a_definition() -> None:
    text = "x = 1\n# why\n@cached\ndef f():\n    pass\n"
    (one,) = guess_code("a.py", text).definitions
    assert (one.first, one.line) == (1, 3)
    section = guess_code("a.py", text).outline.enclosing(2)
    assert section is not None and (section.name, section.line, section.end_line) == ("f", 4, 5)


def test_window_has_the_names_that_it_seems_to_define() -> None:
    text = "".join(f"def f{number}():\n{'    pass' * 40}\n\n" for number in range(9))
    windows = list(named_windows("a.py", text))
    assert len(windows) > 2 and "".join(text[one.start : one.end] for one in windows) == text
    assert [name for one in windows for name in one.names] == [f"f{number}" for number in range(9)]


@pytest.mark.parametrize("path", ["a.c", "a.js"])  # all rules together apply to these two
@pytest.mark.parametrize(
    "piece",
    [
        "a.", "(", ")", "){", ") {\n", "a(", "a b ", "a b(c) {\n", "impl ", "impl<", "impl x for ", "export ", "\t",
        " \n", "def f\n ", "class A:\n", "\r", "function", "a=(", "a = (b) =>", "@\n", "}\n", "end\n", "\0", "é",
        "a:\n",
    ],
)  # fmt: skip
@pytest.mark.timeout(60)
def test_hostile_text_is_read_in_linear_time(path: str, piece: str) -> None:
    """Time that grew with the square of the size would not end: the text has a megabyte."""
    text = piece * (1_000_000 // len(piece))
    code = guess_code(path, text)
    assert len(code.definitions) == len(code.names) <= text.count("\n") + 1


@pytest.mark.timeout(60)
def test_lines_without_a_name_before_a_long_line_are_read_in_linear_time() -> None:
    assert not guess_code("a.c", "){\n" * 1_500_000 + "a" * 6_000_000).definitions


def test_definitions_that_are_indented_ever_more_are_read_in_linear_time() -> None:
    text = "".join(f"{' ' * depth}def f{depth}():\n" for depth in range(1_400))
    definitions = guess_code("a.py", text).definitions
    assert [one.parent for one in definitions] == [*range(-1, 1_399)] and {one.last for one in definitions} == {1_399}
