"""`outline()`: the definitions of a file, in the order of their lines, and files that have none."""

import ast
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

import ripwrap
from ripwrap import Section, overlay, sync
from ripwrap._code.outline import outline_rows
from ripwrap._code.patterns.outline import PatternOutline
from ripwrap._operations.expand import MAX_SOURCE_BYTES
from support.cli import output, run
from support.effort import times
from support.paths import native
from support.syntax_sections import SyntaxSections

Plant = Callable[..., Path]

SAMPLES = Path(__file__).parents[1] / "data" / "sections"
NAMES = sorted(path.name for path in SAMPLES.iterdir() if path.is_file())

SHOP = """\
PRICE = 3

class Shop:
    @counted
    def pay(self):
        def inner(): ...
        return inner

def close(): ...
"""
ROWS = ["3-7: class Shop:", "5-7:   def pay(self):", "6-6:     def inner(): ...", "9-9: def close(): ..."]


@pytest.mark.parametrize("loop", ["asyncio", "trio", "blocking"])
def test_sections_come_in_the_order_of_lines_with_qualified_names(plant: Plant, loop: str) -> None:
    root = plant({"src/shop.py": SHOP})

    async def asked() -> tuple[Section, ...]:
        return await ripwrap.outline("src/shop.py", cwd=root)

    found = sync.outline("src/shop.py", cwd=root) if loop == "blocking" else anyio.run(asked, backend=loop)
    assert [(one.name, one.line, one.end_line) for one in found] == [
        ("Shop", 3, 7),
        ("Shop.pay", 5, 7),
        ("Shop.pay.inner", 6, 6),
        ("close", 9, 9),
    ]
    assert [*outline_rows(found)] == ROWS
    assert sync.outline(root / "src" / "shop.py") == found


@pytest.mark.parametrize("name", NAMES)
def test_outline_has_the_sections_that_enclose_the_lines(name: str) -> None:
    """The samples are of 27 languages and formats."""
    lines = (SAMPLES / name).read_text().split("\n")
    made = PatternOutline(name, lines)
    enclosing = {made.enclosing(number) for number in range(1, len(lines) + 1)} - {None}
    found = sync.outline(name, cwd=SAMPLES)
    assert set(found) == enclosing
    assert len(found) == len(enclosing) > 0
    assert [one.line for one in found] == sorted(one.line for one in found)


def test_samples_are_of_twenty_languages() -> None:
    assert len({Path(name).suffix for name in NAMES}) >= 20


def test_outline_of_python_has_the_definitions_of_ast() -> None:
    path = Path(ast.__file__)
    nodes = [
        (node.name, node.lineno)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    found = [(one.name.split(".")[-1], one.line) for one in sync.outline(path)]
    assert sorted(found) == sorted(nodes) and len(nodes) > 100


NODES = {"lua": {"function_declaration", "function_definition"}, "perl": {"function_definition"}}
"""Types of nodes that are definitions, in languages that ripwrap itself does not read with tree-sitter."""

DIFFERENCES: dict[str, tuple[set[str], set[str]]] = {
    "Shop.java": ({"Point 68"}, {"run 40"}),  # a compact constructor; a method of an anonymous class
    "Shop.scala": (set(), {"Item 25"}),  # a class without a body
    "shop.c": ({"EACH 3", "SQUARE 5"}, {"main 63"}),  # macros; a function with two heads, by preprocessor
    "shop.cpp": (set(), {"Node 22"}),  # a type on one line in a class
    "shop.go": ({"Price 17"}, {"add 50", "inner 8"}),  # a type in a group; a function and a struct without a name
    "shop.js": ({"api 48"}, {"adds 61"}),  # an object of functions; a function that is an argument
    "shop.lua": (set(), {"size 34"}),  # a function that is the value of a field
    "shop.php": (set(), {"x 40"}),  # a method of an anonymous class
    "shop.pl": ({"declared 31"}, {"Inner 33"}),  # a declaration; a package
    "shop.py": ({"PRICES 6"}, set()),  # a long constant
    "shop.ts": ({"iterator] 37"}, set()),  # a method with a computed name
    # In YAML, an outline has no keys of one line, and has keys of the items of lists.
    "shop.yaml": ({"name 1", "branches 4", "runs-on 7"}, {"run 11", "two 23", "with 16"}),
}
"""Definitions that only tree-sitter has, and those that only the outline has, with their first lines."""

LATE_ENDS = {".md", ".pl", ".scala", ".toml", ".yaml"}
"""Suffixes of languages in which a section of a tree may end later, e.g. after the blank lines before the next one."""


def tree_names(name: str, text: str) -> dict[str, int]:
    """Return the last lines of the definitions in a syntax tree, by the last part of the name and the first line."""
    from tree_sitter import Parser

    from ripwrap._code.languages import language_name
    from ripwrap._code.treesitter.parser import load_grammars, parse_outline

    tree = parse_outline(name, text)
    if tree is not None:
        sections = {SyntaxSections(tree).enclosing(number) for number in range(1, text.count("\n") + 1)} - {None}
        return {f"{one.name.split('.')[-1]} {one.line}": one.end_line for one in sections if one and one.name}
    language = language_name(name, text) or ""
    found: dict[str, int] = {}
    left = [Parser(load_grammars().get_language(language)).parse(text.encode()).root_node]
    while left:
        node = left.pop()
        named = node.child_by_field_name("name")
        if node.type in NODES[language] and named is not None and named.text:
            found[f"{named.text.decode().split('.')[-1]} {node.start_point.row + 1}"] = node.end_point.row + 1
        left += node.children
    return found


COMPARED = [name for name in NAMES if Path(name).suffix not in ("", ".html", ".ini", ".rst", ".sql", ".zig")]


@pytest.mark.extra
@pytest.mark.parametrize("name", [name for name in COMPARED if name != "broken.c"])
def test_outline_has_the_names_and_lines_of_tree_sitter(name: str) -> None:
    """Samples of twenty-one languages; patterns and trees differ in `DIFFERENCES` alone."""
    pytest.importorskip("tree_sitter")
    pytest.importorskip("semble_grammars")
    wanted = tree_names(name, (SAMPLES / name).read_text())
    found = {f"{one.name.split('.')[-1]} {one.line}": one.end_line for one in sync.outline(name, cwd=SAMPLES)}
    assert (wanted.keys() - found.keys(), found.keys() - wanted.keys()) == DIFFERENCES.get(name, (set(), set()))
    if Path(name).suffix not in LATE_ENDS:
        both = wanted.keys() & found.keys()
        assert {one: wanted[one] for one in both} == {one: found[one] for one in both}


def test_twenty_one_languages_are_compared() -> None:
    assert len({Path(name).suffix for name in COMPARED}) == 21


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"def f():\n\0", ValueError, "a.py is binary; outline() reads text only"),
        (
            b"x\n" * (MAX_SOURCE_BYTES // 2 + 1),
            ValueError,
            "a.py has more than 2,000,000 bytes, the limit of outline(); search the file instead",
        ),
        (None, IsADirectoryError, "a.py is a directory; pass the path of a file"),
    ],
)
def test_file_without_an_outline_is_an_error(
    tmp_path: Path, content: bytes | None, error: type[Exception], message: str
) -> None:
    (tmp_path / "a.py").mkdir() if content is None else (tmp_path / "a.py").write_bytes(content)
    with pytest.raises(error) as caught:
        sync.outline("a.py", cwd=tmp_path)
    assert str(caught.value) == message


def test_missing_file_is_named_with_the_directory(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"gone\.py does not exist in .*, or is not a regular file; pass"):
        sync.outline("gone.py", cwd=tmp_path)
    with pytest.raises(ValueError, match="null"):
        sync.outline("a\0b", cwd=tmp_path)


@pytest.mark.posix
@pytest.mark.timeout(20)
def test_pipe_does_not_stall(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.py")
    with pytest.raises(FileNotFoundError, match="is not a regular file"):
        sync.outline("a.py", cwd=tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("line", ["{", '"'])
def test_lines_take_bounded_memory(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.js").write_text(f"{line}\n" * 20_000)
    sync.outline("a.js", cwd=tmp_path)
    tracemalloc.start()
    try:
        assert sync.outline("a.js", cwd=tmp_path) == ()
        assert tracemalloc.get_traced_memory()[1] < 20_000 * 500
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.stress
@pytest.mark.timeout(60)
@pytest.mark.parametrize("line", ["x", "{", '"'])
def test_outline_of_very_many_lines_ends(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.js").write_text(f"{line}\n" * times(100_000, MAX_SOURCE_BYTES // 2))
    assert sync.outline("a.js", cwd=tmp_path) == ()


def test_other_files_have_no_sections(plant: Plant) -> None:
    root = plant({"a.txt": "def f():\n", "a.json": '{"a": 1}\n', "empty.py": ""})
    assert [sync.outline(name, cwd=root) for name in ("a.txt", "a.json", "empty.py")] == [()] * 3


def test_text_of_an_overlay_and_utf16_are_read(plant: Plant) -> None:
    root = plant({"a.py": "def on_disk(): ...\n", "b.py": b"\xff\xfe" + "def wide(): ...\n".encode("utf-16-le")})
    assert [one.name for one in sync.outline("b.py", cwd=root)] == ["wide"]
    with overlay({str(root / "a.py"): "def unsaved(): ...\n"}):
        assert [one.name for one in sync.outline("a.py", cwd=root)] == ["unsaved"]


def test_command_prints_rows_or_json(plant: Plant) -> None:
    root = plant({"src/shop.py": SHOP, "a.txt": "no\n"})
    assert output("outline", native("src/shop.py"), cwd=root).splitlines() == ROWS
    printed = output("outline", "src/shop.py", "--json", cwd=root).splitlines()
    assert [Section.model_validate_json(line).name for line in printed][:2] == ["Shop", "Shop.pay"]
    assert output("outline", "a.txt", cwd=root, code=1) == ""
    assert b"gone does not exist in" in run("outline", "gone", cwd=root, code=2).stderr


def test_levels_beyond_the_twentieth_are_not_indented_further() -> None:
    sections = [Section(name="f", line=number, text="f", end_line=2000) for number in range(1, 2000)]
    assert sum(map(len, outline_rows(sections))) < 2000 * 60
