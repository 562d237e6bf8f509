"""Sections found with tree-sitter: samples of each language, the standard library, and hostile files."""

import ast
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripwrap._code.outline import Definition, Outline, Section
from ripwrap._code.treesitter.parser import parse_outline

SAMPLES = Path(__file__).parents[1] / "data" / "sections"
MODULES = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))[::3]

# FIRST:LINE-END NAME, where FIRST is the first line of what stands above the definition and belongs to it.
EXPECTED = {
    "Makefile": """
        7:8-10 all
        12-18 shop
        20-21 %.o
        23-24 clean
    """,
    "Shop.cs": """
        3-52 Shop.Inner
        5:7-51 Shop.Inner.Shop
        12-12 Shop.Inner.Shop.Size
        14-21 Shop.Inner.Shop.Name
        23-23 Shop.Inner.Shop.Twice
        25-27 Shop.Inner.Shop.Shop
        29:30-43 Shop.Inner.Shop.Find
        45-46 Shop.Inner.Shop.Add
        48-48 Shop.Inner.Shop.Colour
        50-50 Shop.Inner.Shop.Point
    """,
    "Shop.java": """
        5:10-72 Shop
        20-22 Shop.Shop
        24:26-47 Shop.add
        39:40-44 Shop.add.run
        49-49 Shop.size
        51-51 Shop.none
        53-56 Shop.Inner
        54-55 Shop.Inner.go
        58-65 Shop.Colour
        61-64 Shop.Colour.next
        67-71 Shop.Point
        68-70 Shop.Point.Point
    """,
    "Shop.kt": """
        5:7-7 Point
        9-47 Shop
        13-15 Shop.init
        17-19 Shop.constructor
        24-35 Shop.add
        37-38 Shop.area
        40-42 Shop.companion object
        41-41 Shop.companion object.create
        44-46 Shop.Inner
        45-45 Shop.Inner.go
        49-53 shout
        55-58 Single
        56-57 Single.`is fine`
    """,
    "Shop.scala": """
        3:5-32 Shop
        8-15 Shop.add
        17-17 Shop.one
        19-23 Shop.chain
        25-25 Shop.Item
        27-31 Shop.Inner
        28-30 Shop.Inner.+
        34-38 Sells
        35-35 Sells.sell
        37-38 Sells.twice
        41-43 Main
    """,
    "broken.c": """
        4-10 first
        12-20 second
        22-24 third
    """,
    "shop.c": """
        3-4 EACH
        5-5 SQUARE
        7:8-13 item
        15-17 box_t
        19-19 colour
        25:28-40 size_of
        42-48 find
        50-50 one
        52-56 __stop
        63-67 main
    """,
    "shop.cpp": """
        3-43 shop::inner
        5:6-24 shop::inner.Shop
        8-12 shop::inner.Shop.Shop
        13-13 shop::inner.Shop.~Shop
        15-17 shop::inner.Shop.operator==
        22-22 shop::inner.Shop.Node
        26:27-37 shop::inner.Shop::add
        39-41 shop::inner.Colour
        46-49 exported
        52-54 TEST
    """,
    "shop.go": """
        5:6-11 Shop
        14-16 Item
        15-15 Item.Name
        17-17 Price
        23:25-32 Shop.Add
        34-41 Map
        43-45 any
        47-47 One
        49-54 main
        50-52 main.add
    """,
    "shop.html": """
        3-14 A shop
        7-9 Adding
        9-9 Deep
        11-14 Removing
    """,
    "shop.ini": """
        4-5 first section
        8:9-10 second
    """,
    "shop.js": """
        5-5 inc
        7-15 load
        17-39 Shop
        21-23 Shop.constructor
        25-25 Shop.size
        27-31 Shop.all
        33-38 Shop.handle
        41-46 outer
        42-44 outer.inner
        49-51 list
        52-54 find
        55-57 remove
        61-63 adds
        66-68 module.exports
        70-72 later
    """,
    "shop.lua": """
        5:8-12 Shop.new
        14-30 Shop:add
        32-32 helper
        34-36 Shop.size
    """,
    "shop.md": """
        7-27 Shop
        11-25 Adding `items`
        22-25 Deep
        27-27 Removing
        29-32 Another
    """,
    "shop.php": """
        5:7-33 Shop
        11-15 Shop.__construct
        17:20-30 Shop.add
        32-32 Shop.none
        35-37 Things
        36-36 Things.go
        39-41 last
        40-40 last.x
    """,
    "shop.pl": """
        6-11 new
        19:20-27 add
        29-29 one
        33-39 Inner
        34-38 Inner.deep
    """,
    "shop.py": """
        13-14 total
        17-18 total
        24:26-67 Shop
        32-37 Shop.Item
        35-37 Shop.Item.__init__
        41:42-43 Shop.size
        45:49-61 Shop.add
        55-58 Shop.add.inner
        63-64 Shop.items
        66-67 Shop.__lt__
    """,
    "shop.rb": """
        1:2-51 Inner
        3-50 Inner.Shop
        6:7-10 Inner.Shop.initialize
        12-20 Inner.Shop.self.create
        22-28 Inner.Shop.each
        30-30 Inner.Shop.one
        32-32 Inner.Shop.two
        34-39 Inner.Shop.empty?
        41-45 Inner.Shop.<< self
        42-44 Inner.Shop.<< self.count
        47-49 Inner.Shop.hidden
    """,
    "shop.rs": """
        4:6-8 Item
        10-10 Kind
        12-17 Item
        13-16 Item.fmt
        19-40 Shop
        23:25-37 Shop.new
        39-39 Shop.short
        42-47 Sell
        43-43 Sell.sell
        44-46 Sell.twice
        49-51 square
        53-59 tests
        54:55-58 tests.works
    """,
    "shop.rst": """
        1:2-27 Shop
        7-18 Adding
        15-18 Deep
        20-27 Removing
    """,
    "shop.sh": """
        4:5-10 usage
        12-23 build
        25-28 flat
        30-30 one
        32-34 both
        37-39 inside
    """,
    "shop.sql": """
        4:5-8 shop.items
        10-17 add_item
        19-22 names
        24-34 touched
    """,
    "shop.swift": """
        3:5-40 Shop
        8-10 Shop.size
        12-14 Shop.init
        16-18 Shop.deinit
        20:21-31 Shop.add
        33-33 Shop.==
        35-39 Shop.make
        42-46 Shop
        43-45 Shop.subscript
        48-50 Sells
        49-49 Sells.sell
        52-55 Colour
        54-54 Colour.Deep
        57-61 Body
        58-60 Body.body
    """,
    "shop.toml": """
        3:4-12 package
        14-15 package.metadata."a.b"
        17-18 bin
    """,
    "shop.ts": """
        4-6 Price
        8-11 Item
        10-10 Item.price
        13-15 Colour
        17-40 Shop
        20-20 Shop.constructor
        22-24 Shop.size
        26-29 Shop.add
        31-35 Shop.of
        37-39 Shop.[Symbol.iterator]
        42-46 Tools
        43-45 Tools.twice
        48-50 load
        52-54 main
    """,
    "shop.tsx": """
        3-6 Item
        5-5 Item.find
        8-10 Options
        12-14 Colour
        16-18 Widgets
        17-17 Widgets.make
        20:24-43 Shop
        27-27 Shop.constructor
        29-34 Shop.find
        36-38 Shop.shape
        40-42 Shop.on
        45-53 View
        55-59 Small
        61-63 generic
    """,
    "shop.yaml": """
        2-4 on
        3-4 on.push
        5-24 jobs
        6-18 jobs.test it
        8-18 jobs.test it.steps
        11-15 jobs.test it.steps.run
        16-17 jobs.test it.steps.with
        20:21-24 jobs.lint
        23-24 jobs.lint.two
        26-27 second
    """,
    "shop.zig": """
        4-9 add
        11:12-18 Shop
        15-17 Shop.one
        20-20 Colour
        22-24 "adds"
    """,
}


def outline(name: str, text: str) -> Outline:
    found = parse_outline(name, text)
    definitions = found.definitions() if found else []
    return Outline(text.split("\n"), definitions, qualified=found is None or found.grammar.qualified)


def sections(name: str, text: str) -> list[str]:
    """Return the sections of all lines, in the format of `EXPECTED`."""
    made = outline(name, text)
    first: dict[Section, int] = {}
    for number in range(1, text.count("\n") + 2):
        if (section := made.enclosing(number)) is not None:
            first.setdefault(section, number)
    return [
        (f"{number}:" if number != section.line else "") + f"{section.line}-{section.end_line} {section.name}"
        for section, number in first.items()
    ]


@pytest.mark.parametrize("name", EXPECTED)
def test_sample_has_the_expected_sections(name: str) -> None:
    text = (SAMPLES / name).read_text()
    assert sections(name, text) == [line.strip() for line in EXPECTED[name].strip().split("\n")]


def test_every_sample_has_expected_sections() -> None:
    assert sorted(path.name for path in SAMPLES.iterdir() if path.is_file()) == sorted(EXPECTED)


@pytest.mark.parametrize("name", ["Shop.cs", "Shop.java", "shop.cpp", "shop.js", "shop.py", "shop.rs", "shop.tsx"])
def test_line_endings_do_not_change_sections(name: str) -> None:
    lines = (SAMPLES / name).read_text().split("\n")
    plain, windows = outline(name, "\n".join(lines)), outline(name, "\r\n".join(lines))
    numbers = range(1, len(lines) + 1)
    assert [plain.enclosing(number) for number in numbers] == [windows.enclosing(number) for number in numbers]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.py", "def f(a,\n    b):\n    pass\n# no\n\n\nx", ["1-3 f"]),
        ("a.py", "class A: pass\nclass B:\n  def f(self): pass", ["1-1 A", "2-3 B", "3-3 B.f"]),
        ("a.py", "def f():\n\treturn (1,\n2)\n\n    # end\nx = f()", ["1-3 f"]),
        ("a.py", "@a\n\n# b\n@c(\n  1)\ndef f():\n  pass", ["1:6-7 f"]),
        ("a.py", 'def f():\n  """unclosed\n  x\ny = 1', ["1-3 f"]),
        ("a.js", "function f() {\n  return 1\n", ["1-2 f"]),
        ("a.js", "}\nfunction f() {\n  g(\n}\nx", ["2-4 f"]),
        ("a.js", "const a = 1\nconst f = a => {\n  b\n}\nconst b = `${f({})}`", ["2-4 f"]),
        ("a.js", "const f = useMemo(() => {\n  a\n})", []),
        ("a.js", "if (a) {\n  b()\n} else {\n  c()\n}", []),
        ("a.js", "const { a } = b\nexport default function () {\n}\n", ["2-3 default"]),
        ("a.js", "var a = '//{', b = /\\/{/, c = 4 / 2 // {\nfunction f() {\n}\n", ["2-3 f"]),
        ("a.ts", "export abstract class A<T> extends B<T> {\n  abstract f(): void\n  g = 1\n}", ["1-4 A", "2-2 A.f"]),
        ("a.go", "func f(\n\ta interface{},\n) {\n}\n\nvar x = map[string]interface{}{\n}", ["1-4 f"]),
        ("a.rs", "fn f<'a>(x: &'a str) -> char {\n  '{'\n}\nfn g() {\n}", ["1-3 f", "4-5 g"]),
        ("a.c", "int a[] = { 1,\n 2 };\nint (*f)(void);\nEXPORT(int) g(void) {\n}\n", ["4-5 g"]),
        ("a.c", "int f()\n{\n  if (a)\n    {\n      b;\n    }\n}\nint g() { }\n", ["1-7 f", "8-8 g"]),
        ("a.cc", "A::A()\n  : a(1),\n    b{2}\n{\n  c;\n}\nint B::f() const {\n}", ["1-6 A::A", "7-8 B::f"]),
        ("a.cc", "class A: public B {\npublic:\n  A();\n};\nstruct C c = {1};", ["1-4 A"]),
        ("a.cc", "int f(int a) const REQUIRES(lock) EXCLUDES(b)\n{\n}\nvoid g() LOCKED {\n}", ["1-3 f", "4-5 g"]),
        ("a.cc", "class A {\n  int f() GUARDED(mu_) { return 1; }\n  int g();\n};", ["1-4 A", "2-2 A.f"]),
        ("a.swift", "func `a b: é`() {\n}\nlet x = `y` + `z`\nfunc c() {\n}", ["1-2 `a b: é`", "4-5 c"]),
        ("a.swift", "func f(_ a: borrowing A) {\n  g(copy a)\n  switch consume a {\n  }\n}", ["1-5 f"]),
        (
            "a.swift",
            "class A {\n  func f() {\n    switch a {\n    #if b\n    case 1:\n    #endif\n    }\n  }\n  func g() {}\n}",
            ["1-10 A", "2-8 A.f", "9-9 A.g"],
        ),
        ("a.kt", "class A<T>\n@B(1)\ninternal constructor(a: T) : C {\n  fun f() {}\n}", ["1-5 A", "4-4 A.f"]),
        ("a.kt", "@A(B.C)\n@D(E.F)\nannotation class G\nfun f() {}\n", ["1:3-3 G", "4-4 f"]),
        ("a.ts", "interface A {\n  new (a: B): A\n  f(): void\n}", ["1-4 A", "2-2 A.new", "3-3 A.f"]),
        ("a.js", "f(class A {\n})\nlet b = class C {\n}\n", ["1-2 A", "3-4 b"]),
        ("a.rb", "class A\n  def <=>(a) = 1\n  def <<(a) = 1\nend", ["1-4 A", "2-2 A.<=>", "3-3 A.<<"]),
        ("a.rs", "impl<T> A<T>\n    for B<T>\n{\n}", ["1-4 B"]),
        ("a.java", "class A {\n  B b = new B() {\n    void f() {\n    }\n  };\n}", ["1-6 A", "3-4 A.f"]),
        ("a.kt", 'val a = """one "two\nfun no() {\n}\n"""\nfun f() {\n}', ["5-6 f"]),
        ("a.rs", 'const A: &str = r#"one "two\nfn no() {\n}\n"#;\nfn f() {\n}', ["5-6 f"]),
        ("a.rb", "def f\n  1\nrescue\n  2\nend\n\n\nputs 1", ["1-5 f"]),
        ("a.rb", "class A; end\nclass B\nend\nx", ["1-1 A", "2-3 B"]),
        ("a.sh", 'f()\n{\n  a\n}\n\n\necho ${x:-"{"}', ["1-4 f"]),
        (
            "a.pl",
            "sub f {\n    print 'a\nb';\n}\n\nsub g {\n    $a = 1;\n}\n1;",
            ["1-4 f", "6-8 g"],
        ),
        ("a.pl", "=begin a\n\nsub f {\n\n=cut\n\nsub g { 1 }", ["7-7 g"]),
        ("a.rb", "module A\nclass B\ndef f\n  1\nend\nend\nend\nx", ["1-7 A", "2-6 A.B", "3-5 A.B.f"]),
        ("a.lua", "local M = {}\nM.f = function() return 1 end\nreturn M", ["2-2 M.f"]),
        ("a.md", "# A\n\n\n## B\n\n# C", ["1-4 A", "4-4 B", "6-6 C"]),
        ("tool", "#!/usr/bin/env python3\n\ndef f():\n  pass\n", ["3-4 f"]),
        ("a.json", '{\n  "def f()": {\n  }\n}', []),
        ("a.txt", "class A {\n}\n", []),
    ],
)
def test_unusual_source_has_the_expected_sections(name: str, text: str, expected: list[str]) -> None:
    assert sections(name, text) == expected


def test_line_outside_of_definitions_has_no_section() -> None:
    made = outline("a.py", "def f():\n    pass\n\nx = 1")
    assert [made.enclosing(number) for number in (-1, 0, 3, 4, 5, 10**9)] == [None] * 6
    assert outline("a.py", "").enclosing(1) is None and outline("a.txt", "x").enclosing(1) is None


class Endless(Sequence[str]):
    """Equal lines, more than memory has room for."""

    def __len__(self) -> int:
        return sys.maxsize

    def __getitem__(self, at: Any) -> Any:
        return "def f():"


def test_room_and_time_of_an_outline_depend_on_definitions_and_not_on_lines() -> None:
    """A hostile file of a megabyte has hundreds of nested definitions that all end after many blank lines."""
    nested = [Definition("f", "function", row, row, sys.maxsize - 9 - row, row - 1) for row in range(100)]
    outline = Outline(Endless(), nested, qualified=False)
    rows = {0: 0, 60: 60, 99: 99, 10**9: 99, sys.maxsize - 10 - 60: 61, sys.maxsize - 9: 0, sys.maxsize - 8: None}
    found = {row: outline.enclosing(row + 1) for row in rows}
    assert {row: section and section.line - 1 for row, section in found.items()} == rows


def test_section_text_is_the_stripped_and_clipped_line() -> None:
    made = outline("a.py", f"class A:\n    def f(self, {'x' * 300}):\n        pass")
    section = made.enclosing(3)
    assert section is not None and section.text == f"def f(self, {'x' * 188}" and len(section.text) == 200


def test_section_name_that_would_be_too_long_has_no_parents() -> None:
    made = outline("a.py", f"class {'A' * 150}:\n  class {'B' * 150}:\n    def f():\n      pass")
    assert [section and section.name for section in map(made.enclosing, (1, 2, 4))] == ["A" * 150, "B" * 150, "f"]


def test_only_the_beginning_of_long_lines_is_parsed() -> None:
    text = f"function f() {{\n  a = 1 // {'1, ' * 4000}\n}}\nx = {'1' * 400_000}\nfunction g() {{\n}}"
    assert sections("a.js", text) == ["1-3 f", "5-6 g"]


@pytest.mark.slow
def test_sections_of_the_standard_library_agree_with_ast() -> None:
    """Compare with `ast`, which does not count comments after the last statement of a block."""
    total, same, other = 0, 0, list[tuple[str, int]]()
    for path in MODULES:
        text = path.read_text()
        lines = text.split("\n")
        made = outline(path.name, text)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                section = made.enclosing(node.lineno)
                place = section and (section.name.split(".")[-1], section.line)
                end = section.end_line if section else 0
                total += 1
                same += place == (node.name, node.lineno) and end == node.end_lineno
                behind = lines[node.end_lineno or 0 : end]
                if place != (node.name, node.lineno) or any(line.strip()[:1] not in {"", "#"} for line in behind):
                    other.append((path.name, node.lineno))
    assert len(MODULES) > 40 and total > 1500
    assert same / total > 0.99
    assert other == []


WORDS = (
    "def f|class A|function g|=> |end|do|fn h|impl X|const a|/*|*/|//|--[[|<<EOF|EOF|#if|=begin|CREATE TABLE t|BEGIN"
    "|# |===|---|a: :|- b:|[c]|<h1>|```|x|\\\n|\x01|\u2028|'''|  |    | "
)
PIECES = st.sampled_from([*"(){}[];:,=<>'\"`/*#@$\\-\t|\n", *"\n" * 9, *WORDS.split("|"), '"""', 'R"('])
NAMES = st.sampled_from([*EXPECTED, "a.json", "a.zzz", "noname"])


@pytest.mark.slow
@given(NAMES, st.lists(PIECES, max_size=60).map("".join) | st.text())
def test_sections_of_any_text_enclose_their_lines(name: str, text: str) -> None:
    lines = text.split("\n")
    made = outline(name, "\n".join(lines))
    for number in range(1, len(lines) + 1):
        if (section := made.enclosing(number)) is not None:
            assert 1 <= section.line <= section.end_line <= len(lines)
            assert number <= section.end_line
            assert len(section.name) <= 200 and len(section.text) <= 200
            # What stands above the line of a definition is decorators, comments and the rest of its signature.
            assert all(made.enclosing(line) is not None for line in range(number, section.line + 1))


HOSTILE = {
    "one line": ["f(){ /* ' " * 50_000],
    "open braces": ["{"] * 25_000,
    "braces": ["{}"] * 10_000,
    "closing braces": ["}"] * 8_000,
    "nested definitions": ["def f() {"] * 5_000 + ["}"] * 5_000,
    "names": ["class a " * 250] * 125,
    "arrows": ["const a = " + "=>   x " * 250 + "{"] * 125,
    "quotes": ['"\\' * 1_000] * 125,
    "slashes": ["=/" * 1_000] * 125,
    "blanks": ["a:" + " " * 1_990 + "x("] * 125,
    "here documents": [f"<<A{number}" for number in range(5_000)],
    "raw strings": [f'r{"#" * (number % 900)}"' for number in range(1_000)],
    "comments": ["# a"] * 15_000 + ["def f():"] * 10,
    "depth": [" " * min(number, 1_900) + "def f():" for number in range(2_000)],
}


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", ["a.py", "a.ts", "a.cpp", "a.rb", "a.sql", "a.yaml"])
def test_sections_of_hostile_files_are_found_or_given_up_in_time(name: str) -> None:
    """Find sections in files so long that anything slower than linear exceeds the timeout."""
    for lines in HOSTILE.values():
        found = parse_outline(name, "\n".join(lines), timeout=0.3)
        if found is None:
            continue
        made = Outline(lines, found.definitions(), qualified=found.grammar.qualified)
        for number in range(1, len(lines), 1 + len(lines) // 80):
            section = made.enclosing(number)
            assert section is None or number <= section.end_line


@pytest.mark.parametrize(
    ("name", "text", "names"),
    [
        ("a.java", "class A {\n static {\n  assert a();\n  B.c();\n }\n @D(e = 1) int f;\n G h = i();\n}\n", ["A"]),
        ("a.java", "interface A {\n @B(c = 1)\n List<D> e(int f) throws G;\n}\n", ["A", "A.e"]),
        ("a.java", "enum A {\n B(1), C(2);\n int d() { return e(); }\n}\n", ["A", "A.d"]),
        ("a.cs", "class A {\n B c;\n [D(1)] int e = f();\n}\n", ["A"]),
        ("a.cs", "interface A {\n Task<B?> C(int d);\n}\ndelegate void E(int f);\n", ["A", "A.C", "E"]),
        ("a.php", "<?php\nuse function A\\b;\n$c = function () { return d(); };\ne(1);\n", []),
        (
            "a.rs",
            "use a::b;\nstruct C(u8);\nimpl D for C {\n type E = u8;\n}\nstatic F: fn(u8) = g;\n",
            ["C", "C", "C.E"],
        ),
        ("a.swift", "protocol A {\n func b()\n func c(\n  d: E\n ) -> F\n}\nlet g = h()\n", ["A", "A.b", "A.c"]),
        ("a.go", "type A int\ntype B = C\nvar d = e()\n", ["A", "B"]),
        ("a.ts", "type A = string;\ntype B = { c: D };\nconst type = 1;\n", ["A", "B"]),
    ],
)
def test_signatures_without_a_body_are_sections_and_statements_are_not(name: str, text: str, names: list[str]) -> None:
    """Tree-sitter names the methods of interfaces and traits."""
    assert [one.name for one in outline(name, text).sections()] == names


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.kt", "interface A {\n  fun b(): C?\n  fun d(): E\n}\n", ["1-4 A", "2-2 A.b", "3-3 A.d"]),
        (
            "a.kt",
            "class A(val b: C) {\n  constructor() : this(1)\n  fun d() {}\n}\n",
            ["1-4 A", "2-2 A.constructor", "3-3 A.d"],
        ),
        ("a.kt", "fun a() = if (b) {\n  1\n} else {\n  2\n}\nfun c() {\n}\n", ["1-5 a", "6-7 c"]),
        ("a.swift", "protocol A {\n  func b() -> C?\n  func d()\n}\n", ["1-4 A", "2-2 A.b", "3-3 A.d"]),
        ("a.swift", "struct A {\n  func `is`() {\n  }\n  func b() {\n  }\n}\n", ["1-6 A", "2-3 A.`is`", "4-5 A.b"]),
        ("a.ts", "class A<\n  B,\n> {\n  c() {\n  }\n}\n", ["1-6 A", "4-5 A.c"]),
        ("a.ts", "class A {\n  b(): {c: 1} | D {\n  }\n  e() {\n  }\n}\n", ["1-6 A", "2-3 A.b", "4-5 A.e"]),
        ("a.ts", "type A =\n  | { b: 1 }\n  | { c: 2 };\nfunction d() {\n}\n", ["1-3 A", "4-5 d"]),
        ("a.c", "int a(b, c) int b; char c;\n{\n}\nint d(void) {\n}\n", ["1-3 a", "4-5 d"]),
        ("a.c", "int (*a(int b))(int)\n{\n}\nint c(void) {\n}\n", ["1-3 a", "4-5 c"]),
        ("a.c", "int ZEXPORT a(b, c)\nz_b b;\nint c;\n{\n}\nint d(void) {\n}\n", ["1-5 a", "6-7 d"]),
        ("a.c", "char *a(b, c)\nz_b b;\nint *c;\n{\n}\nint d(void) {\n}\n", ["1-5 a", "6-7 d"]),
        ("a.cpp", "FMT_BEGIN\nnamespace a {\nenum class B {};\n}\nFMT_END\n", ["2-4 a", "3-3 a.B"]),
        ("a.cpp", "struct A {\n  operator bool() const { return 1; }\n};\n", ["1-3 A", "2-2 A.operator bool"]),
        ("a.cpp", "namespace std _MACRO(x)\n{\nclass A {\n};\n}\n", ["1-5 std", "3-4 std.A"]),
        ("a.py", "type A = int\ndef b(): ...\n", ["1-1 A", "2-2 b"]),
        ("a.rs", "macro_rules! a {\n  () => {};\n}\nfn b() {\n}\n", ["1-3 a", "4-5 b"]),
        ("a.lua", "function M:a()\nend\nlocal t = { b = function()\nend }\n", ["1-2 M:a", "3-4 b"]),
        (
            "a.ex",
            "defmodule A.B do\n  def c(x) when x > 1 do\n  end\n  defp d, do: 1\nend\n",
            ["1-5 A.B", "2-3 A.B.c", "4-4 A.B.d"],
        ),
        (
            "a.hs",
            "-- | one\ndata A = B\nc :: Int\nc = 1\nclass D a where\n  e :: a\n",
            ["1:2-2 A", "3-3 c", "5-6 D", "6-6 D.e"],
        ),
        (
            "a.dart",
            "class A {\n  int b() {\n  }\n  int get c => 1;\n}\nvoid d() {\n}\n",
            ["1-5 A", "2-3 A.b", "4-4 A.c", "6-7 d"],
        ),
        (
            "a.jl",
            "module A\nfunction b(x)\nend\nc(x) = 2\nstruct D\nend\nend\n",
            ["1-7 A", "2-3 A.b", "4-4 A.c", "5-6 A.D"],
        ),
        ("a.r", "a <- function(x) {\n}\nb = function(y) 2\n", ["1-2 a", "3-3 b"]),
        ("a.m", "@interface A : B\n- (int)c:(int)x to:(int)y;\n@end\n", ["1-3 A", "2-2 A.c:to:"]),
    ],
)
def test_definitions_that_patterns_cannot_find(name: str, text: str, expected: list[str]) -> None:
    assert sections(name, text) == expected


KINDS = [
    ("a.py", "async def a(self):\n  class B: ...\n", ["function", "class"]),
    ("a.go", "type A struct {\n}\nfunc (s *A) B(c D) error {\n}\n", ["type", "function"]),
    ("a.rs", "impl<T> A<T> for B {\n  pub(crate) fn c(&mut self) {}\n}\nmod d {\n}\n", ["impl", "function", "mod"]),
    (
        "a.c",
        "struct a {\n};\ntypedef struct {\n} b;\nstatic struct a *c(struct a *s) {\n}\n",
        ["struct", "struct", "function"],
    ),
    ("a.cpp", "namespace a::b {\nint C::d(int e) {\n}\n}\n", ["namespace", "function"]),
    ("a.java", "class A {\n  static class B extends C {\n  }\n  int d() { }\n}\n", ["class", "class", "function"]),
    ("a.ts", "interface A {\n}\nconst b = (c) => {\n};\nconst D = class {\n};\n", ["interface", "function", "class"]),
    ("a.rb", "module A\n  def self.b(c)\n  end\nend\n", ["module", "function"]),
    ("a.swift", "extension A {\n}\nactor B {\n}\nstruct C {\n}\n", ["extension", "actor", "struct"]),
    ("a.cs", "record A(int B) {\n}\nclass C {\n  int D { get; }\n}\n", ["record", "class", "property"]),
    ("a.md", "# A class of its own\n", ["heading"]),
    ("a.toml", "[tool.ruff]\na = 1\n", ["table"]),
    ("a.yaml", "jobs:\n  test:\n    - a\n", ["key", "key"]),
    ("a.sql", "CREATE TABLE IF NOT EXISTS a (\n b int);\ncreate or replace view c as\n select 1;\n", ["table", "view"]),
    ("Makefile", "all: build\n\techo\n", ["target"]),
]


@pytest.mark.parametrize(("name", "text", "kinds"), KINDS)
def test_kind_is_function_or_the_word_of_the_language(name: str, text: str, kinds: list[str]) -> None:
    made = outline(name, text)
    assert [made.kind_of(section) for section in made.sections()] == kinds
