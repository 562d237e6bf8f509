"""Chunks at definitions: samples of each language, and every line of any source in order."""

import importlib
import logging
import math
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

pytest.importorskip("tree_sitter")
pytest.importorskip("semble_grammars")

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ripwrap._code.treesitter import parser
from ripwrap._code.treesitter.merge import (
    MAX_CHUNK_CHARS,
    MAX_DEFINITION_CHARS,
    OVERLAP_LINES,
    Chunk,
    chunker_version,
    named_windows,
    syntax_chunks,
)
from ripwrap._code.treesitter.parser import MAX_FILE_CHARS, MAX_LINE_CHARS, is_available
from support.effort import times

pytestmark = pytest.mark.extra

SAMPLES = Path(__file__).parents[1] / "data" / "sections"

# The first and last line and the symbol of each chunk; - means no symbol.
EXPECTED = {
    "Shop.cs": """
        1-4 Shop.Inner | 5-52 Shop.Inner.Shop
    """,
    "Shop.java": """
        1-4 - | 5-72 Shop
    """,
    "Shop.kt": """
        1-8 Point | 9-48 Shop | 49-54 shout | 55-58 Single
    """,
    "Shop.scala": """
        1-2 - | 3-33 Shop | 34-40 Sells | 41-43 Main
    """,
    "broken.c": """
        1-3 - | 4-11 first | 12-21 second | 22-24 third
    """,
    "shop.c": """
        1-4 EACH | 5-6 SQUARE | 7-14 item | 15-24 - | 25-41 size_of | 42-49 find | 50-51 one | 52-56 __stop
        | 57-62 - | 63-67 main
    """,
    "shop.cpp": """
        1-4 shop::inner | 5-25 shop::inner.Shop | 26-38 shop::inner.Shop::add | 39-43 shop::inner.Colour |
        44-45 - | 46-51 exported | 52-54 TEST
    """,
    "shop.go": """
        1-4 - | 5-11 Shop | 12-16 Item | 17-22 Price | 23-33 Shop.Add | 34-42 Map | 43-48 - | 49-54 main |
        55-56 -
    """,
    "shop.js": """
        1-6 inc | 7-16 load | 17-40 Shop | 41-47 outer | 48-58 api | 59-69 module.exports | 70-73 later
    """,
    "shop.md": """
        1-6 - | 7-28 Shop | 29-33 Another
    """,
    "shop.php": """
        1-4 - | 5-34 Shop | 35-41 -
    """,
    "shop.py": """
        1-5 - | 6-9 PRICES | 10-14 total | 15-18 total | 19-23 - | 24-67 Shop | 68-70 -
    """,
    "shop.rb": """
        1-2 Inner | 3-51 Inner.Shop | 52-53 -
    """,
    "shop.rs": """
        1-3 - | 4-9 Item | 10-11 Kind | 12-18 Item | 19-41 Shop | 42-48 Sell | 49-52 square | 53-53 tests |
        54-59 tests.works
    """,
    "shop.sh": """
        1-3 - | 4-11 usage | 12-24 build | 25-29 flat | 30-41 -
    """,
    "shop.swift": """
        1-2 - | 3-41 Shop | 42-47 Shop | 48-51 Sells | 52-56 Colour | 57-61 Body
    """,
    "shop.toml": """
        1-2 - | 3-13 package | 14-19 -
    """,
    "shop.tsx": """
        1-2 - | 3-7 Item | 8-15 - | 16-19 Widgets | 20-44 Shop | 45-54 View | 55-60 Small | 61-63 generic
    """,
    "shop.yaml": """
        1-4 - | 5-25 jobs | 26-27 second
    """,
}

WIDE = {
    "Shop.cs": """
        1-4 Shop.Inner | 5-11 Shop.Inner.Shop | 12-13 Shop.Inner.Shop.Size | 14-22 Shop.Inner.Shop.Name |
        23-24 Shop.Inner.Shop.Twice | 25-28 Shop.Inner.Shop.Shop | 29-36 Shop.Inner.Shop.Find | 36-43
        Shop.Inner.Shop.Find | 44-46 Shop.Inner.Shop.Add | 47-49 Shop.Inner.Shop | 50-52
        Shop.Inner.Shop.Point
    """,
    "Shop.java": """
        1-4 - | 5-19 Shop | 20-23 Shop.Shop | 24-31 Shop.add | 31-39 Shop.add | 39-47 Shop.add | 48-52 Shop
        | 53-57 Shop.Inner | 58-66 Shop.Colour | 67-72 Shop.Point
    """,
    "Shop.kt": """
        1-4 - | 5-8 Point | 9-12 Shop | 13-16 Shop.init | 17-19 Shop.constructor | 20-23 Shop | 24-36
        Shop.add | 37-39 Shop.area | 40-43 Shop.companion object | 44-48 Shop.Inner | 49-54 shout | 55-58
        Single
    """,
    "Shop.scala": """
        1-2 - | 3-7 Shop | 8-16 Shop.add | 17-18 Shop.one | 19-24 Shop.chain | 25-26 Shop.Item |
        27-33 Shop.Inner | 34-40 Sells | 41-43 Main
    """,
    "broken.c": """
        1-1 - | 2-8 first | 9-11 - | 12-21 second | 22-24 third
    """,
    "shop.c": """
        1-4 EACH | 5-6 SQUARE | 7-14 item | 15-18 box_t | 19-24 colour | 25-32 size_of | 32-40 size_of |
        41-49 find | 50-51 one | 52-56 __stop | 57-62 - | 63-67 main
    """,
    "shop.cpp": """
        1-4 shop::inner | 5-7 shop::inner.Shop | 8-12 shop::inner.Shop.Shop | 13-14 shop::inner.Shop.~Shop |
        15-17 shop::inner.Shop.operator== | 18-25 shop::inner.Shop | 26-38 shop::inner.Shop::add | 39-43
        shop::inner.Colour | 44-45 - | 46-51 exported | 52-54 TEST
    """,
    "shop.go": """
        1-4 - | 5-11 Shop | 12-13 - | 14-16 Item | 17-22 Price | 23-33 Shop.Add | 34-42 Map | 43-46 any |
        47-48 One | 49-54 main | 55-56 -
    """,
    "shop.js": """
        1-6 inc | 7-16 load | 17-20 Shop | 21-24 Shop.constructor | 25-26 Shop.size | 27-32 Shop.all | 33-40
        Shop.handle | 41-47 outer | 48-58 api | 59-65 - | 66-69 module.exports | 70-72 later | 73-73 -
    """,
    "shop.md": """
        1-6 - | 7-10 Shop | 11-26 Adding `items` | 27-28 Removing | 29-33 Another
    """,
    "shop.php": """
        1-4 - | 5-10 Shop | 11-16 Shop.__construct | 17-31 Shop.add | 32-34 Shop.none | 35-38 Things | 39-41
        last
    """,
    "shop.py": """
        1-5 - | 6-9 PRICES | 10-12 - | 13-14 total | 15-16 - | 17-18 total | 19-23 - | 24-31 Shop | 32-37
        Shop.Item | 38-40 Shop | 41-44 Shop.size | 45-54 Shop.add | 55-58 Shop.add.inner | 59-62 Shop.add |
        63-65 Shop.items | 66-67 Shop.__lt__ | 68-70 -
    """,
    "shop.rb": """
        1-2 Inner | 3-5 Inner.Shop | 6-11 Inner.Shop.initialize | 12-21 Inner.Shop.self.create | 22-29
        Inner.Shop.each | 30-33 Inner.Shop | 34-40 Inner.Shop.empty? | 41-46 Inner.Shop.<< self | 47-51
        Inner.Shop.hidden | 52-53 -
    """,
    "shop.rs": """
        1-3 - | 4-9 Item | 10-11 Kind | 12-18 Item | 19-22 Shop | 23-30 Shop.new | 30-37 Shop.new | 38-41
        Shop.short | 42-48 Sell | 49-52 square | 53-53 tests | 54-59 tests.works
    """,
    "shop.sh": """
        1-3 - | 4-11 usage | 12-24 build | 25-29 flat | 30-31 one | 32-34 both | 35-36 - | 37-39 inside |
        40-41 -
    """,
    "shop.swift": """
        1-2 - | 3-7 Shop | 8-11 Shop.size | 12-15 Shop.init | 16-19 Shop.deinit | 20-32 Shop.add | 33-34
        Shop.== | 35-41 Shop.make | 42-47 Shop | 48-51 Sells | 52-56 Colour | 57-61 Body
    """,
    "shop.toml": """
        1-2 - | 3-13 package | 14-16 package.metadata."a.b" | 17-19 bin
    """,
    "shop.tsx": """
        1-2 - | 3-7 Item | 8-11 Options | 12-15 Colour | 16-19 Widgets | 20-26 Shop | 27-28 Shop.constructor
        | 29-35 Shop.find | 36-39 Shop.shape | 40-44 Shop.on | 45-54 View | 55-60 Small | 61-63 generic
    """,
    "shop.yaml": """
        1-1 name | 2-4 on | 5-5 jobs | 6-19 jobs.test it | 20-25 jobs.lint | 26-27 second
    """,
}


def shown(name: str, text: str) -> list[str]:
    """Return the chunks of a file in the format of `EXPECTED`."""
    return [f"{chunk.start_line}-{chunk.end_line} {chunk.symbol or '-'}" for chunk in syntax_chunks(name, text)]


def expected(table: str) -> list[str]:
    return [" ".join(one.split()) for one in table.split("|")]


def widened(text: str) -> str:
    """Return the text with trailing spaces, which change only its size, so that its definitions are split."""
    lines = text.split("\n")
    keep = [not line.strip() or line.endswith("\\") or line.strip().isupper() for line in lines]
    return "\n".join(line if kept else line.ljust(150) for line, kept in zip(lines, keep, strict=True))


def check(text: str, chunks: list[Chunk]) -> None:
    """Check that chunks cover every line once and in order, except where parts of a definition overlap."""
    at, line = 0, 1
    starts = [0]
    for found in text.split("\n"):
        starts.append(starts[-1] + len(found) + 1)
    before: Chunk | None = None
    for chunk in chunks:
        assert chunk.start < chunk.end
        overlap = line - chunk.start_line
        assert 0 <= overlap <= OVERLAP_LINES
        if overlap:
            assert before is not None and before.symbol == chunk.symbol is not None
            assert before.start_line < chunk.start_line
        else:
            assert chunk.start == at
        assert chunk.start == starts[chunk.start_line - 1]
        assert chunk.end == min(starts[chunk.end_line], len(text))
        assert chunk.end > at
        if chunk.end - chunk.start > MAX_DEFINITION_CHARS:  # only a single long line may exceed the limit
            assert chunk.start_line == chunk.end_line
        if chunk.symbol is None and chunk.end - chunk.start > MAX_CHUNK_CHARS:
            assert chunk.start_line == chunk.end_line
        at, line, before = chunk.end, chunk.end_line + 1, chunk
    assert at == len(text)


@pytest.mark.parametrize("name", EXPECTED)
def test_sample_has_the_expected_chunks(name: str) -> None:
    assert shown(name, (SAMPLES / name).read_text()) == expected(EXPECTED[name])


@pytest.mark.parametrize("name", WIDE)
def test_large_definitions_are_split_at_their_members(name: str) -> None:
    text = widened((SAMPLES / name).read_text())
    assert shown(name, text) == expected(WIDE[name])
    check(text, syntax_chunks(name, text))


@pytest.mark.parametrize("name", EXPECTED)
def test_line_endings_bom_and_nul_do_not_change_chunks(name: str) -> None:
    text = (SAMPLES / name).read_text()
    small = shown(name, text)
    assert shown(name, text.replace("\n", "\r\n")) == small
    assert shown(name, text.replace(" ", "\0")) == small or name in {"shop.yaml", "shop.md", "shop.toml"}
    if name not in {"shop.php", "shop.md"}:  # a BOM changes the meaning of their first line
        assert shown(name, "\ufeff" + text) == small


BODY = "\n".join(f"    line_{number} = compute(the, next, {number})" for number in range(60))
KEYS = ",\n".join(f'      "key {number}": [1, 2, 3]' for number in range(100))


@pytest.mark.parametrize(
    ("name", "text", "chunks"),
    [
        ("a.py", "import a\nX = 1\n\n\ndef f(): pass\n", ["1-5 f"]),
        ("a.py", "import a\ndef f(): pass\ndef g(): pass\n", ["1-3 -"]),
        ("a.py", "# a\n\n# b\n# c\n@d\n\n@e\ndef f():\n    1\n    2\n    3\n", ["1-2 -", "3-11 f"]),
        ("a.py", "x = 1  # no\ndef f():\n    1\n    2\n    3\n", ["1-1 -", "2-5 f"]),
        ("a.py", "class A:\n    def f(self):\n        1\n" * 2, ["1-6 -"]),
        ("a.py", f"def f():\n{BODY}\n\n\ny = 1\n", ["1-32 f", "30-61 f", "62-64 -"]),
        ("a.py", f"class A:\n    x = 1\n{BODY}\n    def f(self):\n        1\n", ["1-32 A", "30-62 A", "63-64 A.f"]),
        ("a.js", "(function () {\n" + "  function f() {\n    a()\n    b()\n  }\n" * 50 + "})()\n", None),
        ("a.js", "/** Says. */\nexport default function () {\n  1;\n  2;\n}\n", ["1-5 default"]),
        ("a.ts",
         "export abstract class A<T> {\n  f(): T;\n  g = 1;\n}\nnamespace B {\n  export enum C {\n  X,\n  Y\n  }\n}\n",
         ["1-4 A", "5-5 B", "6-10 B.C"]),
        ("a.ts", "/** A. */\nexport interface A {\n  b: string\n  c: number\n}\nexport type D = 1 | 2\n",
         ["1-5 A", "6-6 D"]),
        ("a.h", "#pragma once\nnamespace a {\nclass B {\n  int c;\n  int d;\n};\n}  // namespace a\n",
         ["1-2 a", "3-7 a.B"]),
        ("a.h", "struct b {\n  int c;\n  int d;\n};\n#endif // A\n", ["1-5 b"]),
        ("a.json", '{\n  "a": 1,\n  "b": {\n    "c": 1,\n    "d": 2\n  },\n  "e": 2\n}\n',
         ["1-2 a", "3-6 b", "7-8 e"]),
        ("a.json", '{\n  "a": {\n    "b": {\n' + KEYS + "\n    }\n  }\n}\n", None),
        ("a.yml", "# On a.\na:\n  - 1\n  - 2\n  - 3\n\n# On b.\n# And.\nb:\n  c: 1\n  d: 2\n  e: 3\n",
         ["1-6 a", "7-12 b"]),
        ("a.toml", "x = 1\n# a\n[a]\nb = 1\nc = 2\nd = 3\n\n# e\n[[e.f]]\ng = 1\nh = 2\n",
         ["1-1 -", "2-7 a", "8-11 e.f"]),
        ("a.md", "Above.\n\nA\n===\n\n" + "Text.\n" * 200 + "B\n---\n\n" + "Text.\n" * 200, None),
        ("a.rs", "/// A.\n#[b]\n\npub fn a() {\n  1;\n  2;\n}\n", ["1-3 -", "4-7 a"]),
        ("tool", "#!/usr/bin/env python3\ndef f():\n    1\n    2\n    3\n", ["1-5 f"]),
        ("tool", "def f():\n    1\n    2\n    3\n", ["1-4 -"]),
        ("a.unknown", "def f():\n    1\n    2\n    3\n", ["1-4 -"]),
        ("a.py", "", []),
        ("a.py", "\n", ["1-1 -"]),
        ("a.py", "x", ["1-1 -"]),
    ],
)  # fmt: skip
def test_unusual_source_has_the_expected_chunks(name: str, text: str, chunks: list[str] | None) -> None:
    check(text, syntax_chunks(name, text))
    if chunks is not None:
        assert shown(name, text) == chunks


def test_functions_in_an_immediately_called_function_are_chunks() -> None:
    functions = "".join(f"  function f{number}() {{\n    return one({number});\n  }}\n\n\n" for number in range(50))
    text = f"(function (root) {{\n{functions}}})(this);\n"
    small = "".join(f"  function f{number}() {{\n    return {number};\n    // more\n  }}\n" for number in range(60))
    assert {chunk.symbol for chunk in syntax_chunks("a.js", f"!function () {{\n{small}}}();\n")} == {
        f"f{number}" for number in range(60)
    } | {None}
    check(text, syntax_chunks("a.js", text))


def test_keys_of_a_large_json_object_are_chunks() -> None:
    text = '{\n  "a": {\n    "b": {\n' + KEYS + '\n    },\n    "c": [\n1,\n2,\n3]\n  }\n}\n'
    symbols = [chunk.symbol for chunk in syntax_chunks("a.json", text)]
    assert symbols[0] == "a" and symbols[-1] == "a.c" and set(symbols[1:-1]) == {"a.b"}


def test_underlined_headings_start_chunks() -> None:
    text = (
        "Above.\n\nA\n===\n\n"
        + "Text.\n" * 400
        + "\nB\n---\n\n"
        + "Text.\n" * 20
        + "\n# C\n\nD\n---\n"
        + "Text.\n" * 400
    )
    symbols = [chunk.symbol for chunk in syntax_chunks("a.md", text)]
    assert list(dict.fromkeys(symbols)) == [None, "A", "B", "C", "D"]


def test_parts_of_a_large_function_keep_its_name_and_overlap() -> None:
    text = "def f():\n" + "".join(f"    {number}\n    call()\n" for number in range(400))
    parts = syntax_chunks("a.py", text)
    assert len(parts) > 3 and {part.symbol for part in parts} == {"f"}
    for one, other in pairwise(parts):
        assert other.start_line == one.end_line + 1 - OVERLAP_LINES
    sizes = [part.end - part.start for part in parts]
    assert max(sizes) <= MAX_DEFINITION_CHARS and min(sizes) > MAX_DEFINITION_CHARS // 3


def test_long_lines_of_a_large_function_do_not_overlap() -> None:
    text = "def f():\n" + ("    x = '" + "y" * 1_500 + "'\n") * 5
    assert [part.start_line for part in syntax_chunks("a.py", text)] == [1, 3, 4, 5, 6]
    text = "def f():\n" + ("    x = '" + "y" * 5_000 + "'\n") * 3
    check(text, syntax_chunks("a.py", text))


def test_symbol_that_would_be_too_long_has_no_parents() -> None:
    body = "".join(f"        x{number} = '{'y' * 90}'\n" for number in range(30))
    text = f"class {'A' * 150}:\n    def {'B' * 150}(self):\n{body}"
    assert {chunk.symbol for chunk in syntax_chunks("a.py", text)} == {"A" * 150, "B" * 150}


def test_too_long_files_and_lines_are_split_into_windows() -> None:
    minified = "function f() {\n  1;\n  2;\n}\n" + "x;" * (MAX_LINE_CHARS // 2 + 1) + "\n"
    for text in (minified, ("def f():\n    1\n    2\n    3\n" * MAX_FILE_CHARS)[: MAX_FILE_CHARS + 1]):
        assert syntax_chunks("a.js", text) == list(named_windows("a.js", text))
    assert syntax_chunks("a.js", minified.replace("x;", "", 1))[0].symbol == "f"


@pytest.mark.slow
@pytest.mark.stress
@pytest.mark.parametrize("name", ["a.py", "a.js", "a.cpp", "a.json", "a.go", "a.rb"])
@pytest.mark.parametrize("piece", ["(", "[", "{", "[{\n", "(\n", "class A {\n", "a<b<\n", "def f():\n", "{\n"])
def test_deep_nesting_never_exceeds_the_parser_timeout(name: str, piece: str) -> None:
    text = re.sub(f"(.{{{MAX_LINE_CHARS}}})", r"\1\n", piece * 100_000)
    check(text, syntax_chunks(name, text, timeout=times(10, 50) / 1_000))


def test_deeply_nested_definitions_are_split() -> None:
    text = "".join(f"{' ' * depth}class A{depth}:\n" for depth in range(200)) + " " * 200 + "pass\n"
    chunks = syntax_chunks("a.py", text)
    check(text, chunks)
    assert chunks[0].symbol == "A0" and chunks[-1].symbol is not None


@pytest.mark.parametrize("name", ["a.java", "a.cs"])
def test_angle_brackets_that_stall_the_parser_are_not_parsed(name: str) -> None:
    text = "class A {\n  int a;\n  int b;\n}\n" + "a<b\n<c<\n" * 100_000
    assert syntax_chunks(name, text, timeout=math.inf) == list(named_windows(name, text))


def test_parser_that_takes_too_long_is_stopped() -> None:
    text = "def f():\n    1\n    2\n    3\n" * 1_000
    assert syntax_chunks("a.py", text)[0].symbol == "f"
    assert syntax_chunks("a.py", text, timeout=-1) == list(named_windows("a.py", text))


SOURCES = st.sampled_from([(name, (SAMPLES / name).read_text()) for name in EXPECTED])
JUNK = st.sampled_from(
    [*"(){}[]<>\"'`/*#@$\\:;,=|-+!?%~^&\n\n\n\t\0\r", "\ud800", "\ufeff", "é", "'''", '"""', "<<A\n", "end\n"]
)
CHANGES = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 40), st.lists(JUNK, max_size=6).map("".join)), max_size=8)


@settings(deadline=None)
@given(SOURCES, CHANGES, st.booleans())
def test_chunks_of_broken_source_cover_every_line(
    source: tuple[str, str], changes: list[tuple[float, int, str]], wide: bool
) -> None:
    name, text = source
    for where, removed, added in changes:
        at = int(where * len(text))
        text = text[:at] + added + text[at + removed :]
    text = widened(text) if wide else text
    chunks = syntax_chunks(name, text)
    check(text, chunks)
    assert chunks == syntax_chunks(name, text)


@settings(deadline=None)
@given(st.sampled_from([*EXPECTED, "a.ts", "a.json"]), st.lists(JUNK | st.text(max_size=5), max_size=60).map("".join))
@example("a.py", "\0")
@example("shop.md", "\n\n#")
@example("a.cc", "int (")
@example("a.cc", "int &f(){}")
def test_chunks_of_any_text_cover_every_line(name: str, text: str) -> None:
    check(text, syntax_chunks(name, text))


@pytest.mark.slow
def test_standard_library_is_split_at_its_functions() -> None:
    named = 0
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))[::5]:
        text = path.read_text()
        chunks = syntax_chunks(path.name, text)
        check(text, chunks)
        named += sum(chunk.symbol is not None for chunk in chunks)
    assert named > 500


@pytest.fixture
def forget_grammars() -> Iterator[None]:
    """Clear the caches of installed grammars before and after the test."""
    parser.load_grammars.cache_clear()
    parser._load_language.cache_clear()
    yield
    parser.load_grammars.cache_clear()
    parser._load_language.cache_clear()


def test_chunks_are_windows_without_the_extra(monkeypatch: pytest.MonkeyPatch, forget_grammars: None) -> None:
    assert is_available() and chunker_version().startswith("syntax ")
    parser.load_grammars.cache_clear()
    parser._load_language.cache_clear()
    monkeypatch.setitem(sys.modules, "semble_grammars", None)
    text = (SAMPLES / "shop.py").read_text()
    assert not is_available() and chunker_version().startswith("windows ")
    assert syntax_chunks("shop.py", text) == list(named_windows("shop.py", text))


def test_old_tree_sitter_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forget_grammars: None) -> None:
    (tmp_path / "tree_sitter-0.25.2.dist-info").mkdir()
    (tmp_path / "tree_sitter-0.25.2.dist-info" / "METADATA").write_text("Name: tree-sitter\nVersion: 0.25.2\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert not is_available()


def test_grammar_that_cannot_be_unpacked_is_skipped_with_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, forget_grammars: None
) -> None:
    importlib.import_module("semble_grammars").get_language.cache_clear()
    (tmp_path / "file").touch()
    monkeypatch.setenv("SEMBLE_GRAMMARS_CACHE_DIR", str(tmp_path / "file" / "no"))
    text = (SAMPLES / "shop.py").read_text()
    with caplog.at_level(logging.WARNING, "ripwrap"):
        assert syntax_chunks("shop.py", text) == syntax_chunks("shop.py", text) == list(named_windows("shop.py", text))
    assert len(caplog.records) == 1 and "python" in caplog.text


def test_tree_sitter_is_imported_on_first_use() -> None:
    code = (
        "import sys, ripwrap, ripwrap._code.treesitter.merge as s\n"
        "s.syntax_chunks('a.unknown', 'x')\n"
        "assert not {'tree_sitter', 'semble_grammars'} & set(sys.modules)\n"
        "s.syntax_chunks('a.py', 'x')\n"
        "assert 'tree_sitter' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=50)
