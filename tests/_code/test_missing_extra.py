"""What calls, tools and commands do and say without the extra `code`."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ripwrap import MissingPackageError, sync
from ripwrap._code.treesitter import parser

Plant = Callable[..., Path]

CART = """\
class Cart:
    def total(self, items):
        # TODO: taxes
        return sum(items)


print(Cart().total([1]))
"""


@pytest.fixture
def root(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setitem(sys.modules, "semble_grammars", None)
    parser.load_grammars.cache_clear()
    yield plant({"cart.py": CART, "notes.txt": "Notes\n"})
    parser.load_grammars.cache_clear()


@pytest.mark.parametrize(
    "call",
    [
        lambda root: sync.outline("cart.py", cwd=root),
        lambda root: sync.references("total", cwd=root),
        lambda root: sync.references("nowhere", cwd=root),
        lambda root: sync.expand(next(sync.search("TODO", cwd=root)), cwd=root),
    ],
    ids=["outline", "references", "no-references", "expand"],
)
def test_definitions_name_the_extra(root: Path, call: Callable[[Path], object]) -> None:
    with pytest.raises(MissingPackageError, match=r"^definitions in code need .*: pip install .*\[code\]"):
        call(root)


def test_what_needs_no_definition_works(root: Path, tmp_path: Path) -> None:
    found = next(sync.search("TODO", cwd=root))
    assert sync.expand(found, to="block", cwd=root).start_line == 2
    assert sync.expand(found, lines=1, cwd=root).end_line == 4
    (ranked,) = sync.rank("cart total", cwd=root)
    with sync.Index(root, location=tmp_path / "index") as index:
        (indexed,) = index.search("cart total")
    for chunk in (ranked, indexed):
        assert (chunk.path, chunk.start_line, chunk.end_line, chunk.symbol) == ("cart.py", 1, 7, None)


@pytest.mark.parametrize(
    ("tool", "arguments", "answers", "says"),
    [
        ("grep_content", {"pattern": "TODO", "sections": True}, "3:", True),
        ("grep_content", {"pattern": "TODO", "expand": "definition"}, "3:", True),
        ("grep_content", {"pattern": "TODO"}, "3:", False),
        ("grep_content", {"pattern": "nowhere", "sections": True}, "No matches", False),
        ("read_file", {"path": "cart.py", "outline": True}, "Read or search its lines", True),
        ("read_file", {"path": "cart.py", "outline": True, "head": 2}, "2:     def total", True),
        ("read_file", {"path": "notes.txt", "outline": True}, "no definition was found", False),
        ("read_file", {"path": "cart.py"}, "2:     def total", False),
        ("codebase_search", {"query": "cart total"}, "2:     def total", True),
        ("codebase_search", {"query": "nowhere"}, "No result found", False),
        ("find_references", {"name": "total"}, "Error: ", True),
    ],
)
def test_tools_say_in_one_line_what_is_missing(
    root: Path, tool: str, arguments: dict[str, object], answers: str, says: bool
) -> None:
    with sync.Workspace(root) as workspace:
        answer = str(getattr(workspace, tool)(**arguments))
    assert answers in answer
    said = [line for line in answer.splitlines() if "definitions in code need" in line]
    assert len(said) == says and all("pip install" in line and "[code]" in line for line in said)


def test_outline_that_is_missing_leaves_room_for_lines(root: Path) -> None:
    (root / "long.py").write_text("x = 1\n" * 1_000)
    with sync.Workspace(root, max_chars=1_000) as workspace:
        answer = workspace.read_file("long.py", outline=True, head=900)
    assert len(answer) <= 1_000 and "     9: x = 1" in answer.replace("  9:", "     9:") and "[code]" in answer


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["search", "TODO"], 0, ""),
        (["rank", "cart total"], 0, ""),
        (["expand", "--lines=1", "cart.py:3"], 0, ""),
        (["expand", "cart.py:3"], 2, "[code]"),
        (["outline", "cart.py"], 2, "[code]"),
        (["refs", "total"], 2, "[code]"),
    ],
)
def test_commands_say_in_one_line_what_is_missing(root: Path, arguments: list[str], code: int, said: str) -> None:
    program = "import sys; sys.modules['tree_sitter'] = None; from ripwrap.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=root, capture_output=True, text=True, timeout=50, check=False
    )
    assert done.returncode == code and said in done.stderr
    assert done.stderr.count("\n") == bool(said)
