"""`outline()`: the definitions of a file, in the order of their lines, and files that have none."""

import argparse
import ast
import inspect
import os
import tracemalloc
import types
import typing
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

import ripwrap
from ripwrap import RipwrapError, Section, overlay, sync
from ripwrap._code.outline import outline_rows
from ripwrap._code.treesitter.worker import read_outline
from ripwrap._operations.expand import MAX_SOURCE_BYTES
from support.cli import output, run
from support.effort import times
from support.paths import native

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
    made = read_outline(name, lines).outline
    enclosing = {made.enclosing(number) for number in range(1, len(lines) + 1)} - {None}
    found = sync.outline(name, cwd=SAMPLES)
    assert set(found) == enclosing
    assert len(found) == len(enclosing) > 0
    assert [one.line for one in found] == sorted(one.line for one in found)


def test_samples_are_of_twenty_languages() -> None:
    assert len({Path(name).suffix for name in NAMES}) >= 20


@pytest.mark.parametrize("module", [argparse, inspect, typing])
def test_outline_of_python_has_the_definitions_of_ast(module: types.ModuleType) -> None:
    path = Path(inspect.getfile(module))
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, getattr(ast, "TypeAlias", ast.ClassDef))
    nodes = [
        (getattr(node.name, "id", node.name), node.lineno)  # the name of `type T = …` (Python 3.12) is a node
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, kinds)
    ]
    found = [(one.name.split(".")[-1], one.line) for one in sync.outline(path)]
    assert sorted(found) == sorted(nodes) and len(nodes) > 100


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
    found: tuple[Section, ...] = ()
    with suppress(RipwrapError):  # the parser was not done in its time
        found = sync.outline("a.js", cwd=tmp_path)
    assert found == ()


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
