"""`references()`: definitions and uses of a name, in hand-checked samples of five languages, and its bounds."""

import re
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ripwrap
from ripwrap import Reference, References, overlay, sync
from ripwrap._code.treesitter.occurrences import find_places
from ripwrap._code.treesitter.parser import parse_outline
from ripwrap._code.treesitter.worker import CodeReader, Source
from ripwrap._operations import references as module
from ripwrap.places import Items
from support.cli import output, run
from support.paths import slashed

Plant = Callable[..., Path]

# A comment at the end of a line has the kind and the confidence of each place on the line, from left to right.
PYTHON = {
    "shop/till.py": '''\
def pay(amount):  # definition high; definition: comment low is not counted here
    """Call pay() first."""  # string low
    return amount


class Till:
    def close(self):
        pay(1)  # call high
        return f"{pay(2)} pay"  # call high, string low
''',
    "shop/cart.py": """\
from shop.till import (
    Till,
    pay,  # import high
)
import shop.till as tills

CALLBACKS = [pay]  # mention high

def total(pay=None):  # mention low
    return pay  # mention low

tills.till.pay(3)  # call high
order(pay=1)  # mention low
""",
    "shop/other.py": """\
def run(card):
    pay = card.pay()  # mention low, call low
    return pay(1)  # call low
""",
}
SCRIPT = {
    "src/till.ts": """\
export function pay(amount: number) { // definition high
  return `${pay(0)} pay`; // call high, string low
}
""",
    "src/cart.ts": """\
import { pay, Till } from "./till"; // import high
const options = { pay: 1 }; // mention low
window.addEventListener("pay", pay); // string low, mention high
till.pay(1); // call low
$pay(1);
""",
    "src/other.ts": """\
pay(1); // call low
""",
}
GO = {
    "till/till.go": """\
package till

// pay is here. // comment low
func pay(amount int) int { // definition high
	return pay(amount - 1) // call high
}
""",
    "till/cart.go": """\
package till

func Total() int {
	f := pay // mention high
	return pay(1) + f("pay") // call high, string low
}
""",
}
JAVA = {
    "Till.java": """\
class Till {
    abstract int pay(int x); // definition high
    int close() {
        return pay(1) + this.pay(2); // call high, call high
    }
}
""",
    "Shop.java": """\
class Shop {
    int open(Till till) {
        return till.pay(1); // call medium
    }
}
""",
}
RUST = {
    "src/till.rs": """\
pub fn pay(x: i32) -> i32 { // definition high
    println!("pay"); // string low
    x
}
""",
    "src/main.rs": """\
use crate::till::pay; // import high
fn main() {
    pay::<i32>(1); // call high
    let f = pay; // mention high
}
""",
}
SAMPLES = {"python": PYTHON, "typescript": SCRIPT, "go": GO, "java": JAVA, "rust": RUST}


def found_in(references: References) -> dict[tuple[str, int], list[str]]:
    found: dict[tuple[str, int], list[str]] = {}
    places = (*references.definitions, *references.uses)
    for one in sorted(places, key=lambda one: (one.path, one.line, one.column)):
        kind = one.kind if one.syntax == "code" else one.syntax
        found.setdefault((slashed(one.path), one.line), []).append(f"{kind} {one.confidence}")
    return found


def expected_in(files: dict[str, str]) -> dict[tuple[str, int], list[str]]:
    expected: dict[tuple[str, int], list[str]] = {}
    for path, text in files.items():
        for number, line in enumerate(text.split("\n"), 1):
            mark = "# " if path.endswith(".py") else "// "
            code, _, said = line.rpartition(mark)
            said = said.partition(";")[0]
            if code and any(said.endswith(level) for level in ("high", "medium", "low")):
                expected[path, number] = said.split(", ")
    return expected


@pytest.mark.parametrize("language", SAMPLES)
def test_places_of_a_sample_are_those_that_were_checked_by_hand(plant: Plant, language: str) -> None:
    files = SAMPLES[language]
    found = sync.references("pay", cwd=plant(files))
    assert found_in(found) == expected_in(files)
    assert found.exact and not found.truncated


@pytest.mark.parametrize("loop", ["asyncio", "trio", "blocking"])
def test_definitions_and_uses_name_the_definition_around_them(plant: Plant, loop: str) -> None:
    root = plant(PYTHON)

    async def asked() -> References:
        return await ripwrap.references("pay", cwd=root)

    found = sync.references("pay", cwd=root) if loop == "blocking" else anyio.run(asked, backend=loop)
    (one,) = found.definitions
    assert (slashed(one.path), one.line, one.column) == ("shop/till.py", 1, 5)
    assert one.enclosing is not None and one.enclosing.end_line == 3
    (call, *_) = [use for use in found.uses if use.kind == "call" and use.line == 8]
    assert call.enclosing is not None and call.enclosing.name == "Till.close"
    assert call.text == "pay(1)  # call high"
    assert References.model_validate_json(found.model_dump_json()) == found
    assert str(found).splitlines()[-1] == found.message
    assert found.message.startswith("1 definition and 13 uses in 12 lines of 3 files.")


def test_qualified_name_lists_only_its_definitions(plant: Plant) -> None:
    root = plant(
        {
            "a.py": "class Shop:\n    def add(self): ...\n    def run(self):\n        self.add()\n",
            "b.py": "class Cart:\n    def add(self): ...\n    def run(self):\n        self.add()\nshop.add()\n",
        }
    )
    found = sync.references("Shop.add", cwd=root)
    assert [(one.path, one.line) for one in found.definitions] == [("a.py", 2)]
    uses = {(one.path, one.line): one.confidence for one in found.uses}
    assert uses == {("a.py", 4): "high", ("b.py", 2): "low", ("b.py", 4): "low", ("b.py", 5): "medium"}
    assert [one.path for one in sync.references("b.Cart", cwd=root).definitions] == ["b.py"]


@pytest.mark.parametrize("name", ["", "a b", "a.", ".", "f(x)", "a\nb", "x" * 201, "*", "a..b"])
def test_text_that_is_no_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=r"name must be a name such as total or Cart\.total, got"):
        sync.references(name, cwd=tmp_path)


def test_other_bad_arguments_are_refused(tmp_path: Path) -> None:
    wrong: Any = b"name"
    with pytest.raises(TypeError, match="name must be a string, got bytes"):
        sync.references(wrong, cwd=tmp_path)
    with pytest.raises(ValueError, match="limit"):
        sync.references("a", cwd=tmp_path, limit=-1)
    with pytest.raises(FileNotFoundError):
        sync.references("a", cwd=tmp_path / "gone")
    unknown: Any = {"multilin": True}
    with pytest.raises(ValueError, match="multilin"):
        sync.references("a", cwd=tmp_path, **unknown)


def test_nothing_found_says_so(plant: Plant) -> None:
    found = sync.references("gone", cwd=plant({"a.py": "x = 1\n", "b.bin": b"gone\0"}))
    assert (found.definitions, found.uses, found.total_lines) == ((), (), 0)
    assert found.message == "No line has the name gone."


def test_limit_and_number_of_lines_are_named(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    root = plant({"a.py": "def f(): ...\n" + "f()\n" * 30})
    found = sync.references("f", cwd=root, limit=10)
    assert (len(found.definitions), len(found.uses), found.truncated) == (1, 10, True)
    assert "10 of 30 uses are here; a larger limit gives more." in found.message
    monkeypatch.setattr(module, "MAX_LINES", 5)
    found = sync.references("f", cwd=root)
    assert len(found.uses) == 4 and found.truncated and found.total_lines == 31
    assert "Only the first 5 lines in path order were looked at" in found.message


def test_files_beyond_the_memory_limit_are_read_by_lines(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    root = plant({f"{one}.py": "def g():\n    x = 1\n" * 50 + "f()\n" for one in range(20)})
    monkeypatch.setattr(module, "MAX_TOTAL_BYTES", 20_000)
    found = sync.references("f", cwd=root)
    assert [(one.path, one.line, one.kind) for one in found.uses] == sorted(
        ((f"{one}.py", 101, "call") for one in range(20)), key=lambda one: one[0]
    )
    assert "Not all files were read as a whole" in found.message


def test_a_long_line_is_kept_once_for_all_of_its_places(plant: Plant) -> None:
    """A tool keeps whole lines, of which secrets are masked."""
    ws = sync.Workspace(plant({"a.py": f"def f():\n    {'f() ' * 100}{'x' * 1_900_000}\n"}), timeout=60)
    ws.find_references("f")  # what is imported and made once is no part of it
    tracemalloc.start()
    try:
        assert ws.find_references_result("f").total_references == 3
        assert tracemalloc.get_traced_memory()[1] < 60_000_000
    finally:
        tracemalloc.stop()


def test_timeout_of_zero_is_an_answer(plant: Plant) -> None:
    found = sync.references("f", cwd=plant({"a.py": "f()\n"}), timeout=0)
    assert not found.exact and "The time limit of 0 seconds was reached" in found.message


def test_files_after_most_of_the_time_limit_are_not_read(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_END_SHARE", 0)
    found = sync.references("f", cwd=plant({"a.py": "f()\n", "b.py": "def f(): ...\n"}), timeout=60)
    assert (found.definitions, found.uses, found.total_lines, found.exact) == ((), (), 2, False)
    assert "The time limit of 60 seconds was reached, so places may be missing" in found.message


def test_file_of_many_lines_is_read_by_the_lines_with_the_name(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    root = plant({"a.py": "def g():\n    f()\n" + "    x = 1\n" * 20})
    (one,) = sync.references("f", cwd=root).uses
    assert one.enclosing is not None and one.enclosing.name == "g"
    monkeypatch.setattr(module, "_MAX_OUTLINED_LINES", 20)
    (one,) = sync.references("f", cwd=root).uses
    assert (one.line, one.kind, one.enclosing) == (2, "call", None)


@pytest.mark.slow
def test_large_files_are_left_out_unless_a_size_is_given(plant: Plant) -> None:
    root = plant({"a.py": "f()\n" + "x = 1\n" * 400_000})
    assert sync.references("f", cwd=root).uses == ()
    (one,) = sync.references("f", cwd=root, max_filesize="10M", timeout=60).uses
    assert (one.kind, one.enclosing) == ("call", None)


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "line", ["f " * 1_000, "f(" * 500, "lambda " * 250 + "f", "import f" + " " * 1_900, "as f=" * 400, '"f' * 900]
)
def test_hostile_lines_are_read_or_given_up_in_time(line: str) -> None:
    """A parser that takes too long is ended; the places are then mentions."""
    reader = CodeReader(seconds=0.5)
    text = "\n".join([line] * 100)
    sources = [Source(f"a.{suffix}", text) for suffix in ("py", "ts", "cpp", "kt")]
    try:
        counts = [len(found.places) for _, found in reader.places_of("f", sources)]
    finally:
        reader.close()
    assert counts == [100 * min(len(re.findall(r"\bf\b", line)), 100)] * 4


@given(
    st.sampled_from(["a.py", "a.ts", "a.go", "a.c", "a.rb", "a.sh", "a.kt", "a.md", "a.rs", "a.swift", "noname"]),
    st.lists(st.sampled_from(["f", "(", ")", "{", "}", '"', "'", "\n", " ", "=", "def ", "import ", "#", "//", "."])),
)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_every_whole_word_of_any_text_is_a_place(name: str, pieces: list[str]) -> None:
    text = "".join(pieces)
    lines = text.split("\n")
    found = find_places(name, text, parse_outline(name, text), "f").places
    assert len(found) == sum(len(re.findall(r"\bf\b", line)) for line in lines)
    assert all(lines[one.row][one.column] == "f" for one in found)
    assert all(one.kind == "mention" for one in found if one.syntax != "code")


def test_places_are_searched_like_files(plant: Plant) -> None:
    root = plant({"a.py": "def old(): ...\n", "b.py": "from a import old\n"})
    for command in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"]):
        subprocess.run(["git", "-C", str(root), *command], check=True)
    (root / "a.py").write_text("def new(): ...\n")
    found = sync.references("old", cwd=root, rev="HEAD")
    assert [(one.path, one.kind) for one in (*found.definitions, *found.uses)] == [
        ("a.py", "definition"),
        ("b.py", "import"),
    ]
    items = sync.references("f", where=Items([("x.py", "def f(): ...\n"), ("y.py", b"f()\n")]))
    assert [(one.path, one.kind) for one in (*items.definitions, *items.uses)] == [
        ("x.py", "definition"),
        ("y.py", "call"),
    ]
    with zipfile.ZipFile(root / "c.zip", "w") as archive:
        archive.writestr("c.py", "def old(): ...\n")
    inside = sync.references("old", cwd=root, inside="zip")
    assert [(one.path, one.kind) for one in (*inside.definitions, *inside.uses)] == [
        ("c.zip!/c.py", "definition"),
        ("b.py", "import"),
    ]
    with overlay({str(root / "a.py"): "def unsaved(): ...\n"}):
        assert len(sync.references("unsaved", cwd=root).definitions) == 1


def test_command_prints_places(plant: Plant) -> None:
    root = plant({"a.py": "def f(): ...\nf()\n# f\n"})
    assert output("refs", "f", cwd=root).splitlines() == [
        "a.py:1: [definition, high] def f(): ...",
        "a.py:2: [call, high] f()",
        "a.py:3: [mention in comment, low] # f",
    ]
    (first, *_) = output("refs", "f", "--json", cwd=root).splitlines()
    assert Reference.model_validate_json(first).kind == "definition"
    assert output("refs", "gone", cwd=root, code=1) == ""
    assert b"1 of 2 uses are here" in run("refs", "f", "--limit=1", cwd=root).stderr
    assert b"name must be a name" in run("refs", "f(", cwd=root, code=2).stderr


PLACES = [
    (
        "A.java",
        "class A {\n int NAME = 1;\n static final int K = 2;\n void f() { NAME = 2; this.NAME = 3; }\n}\n",
        "2:definition:high 4:mention:high 4:mention:high",
    ),
    (
        "E.java",
        "enum E { NAME, B(1) { void z() {} } }\nclass U { E e = E.NAME; }\n",
        "1:definition:high 2:mention:high",
    ),
    ("R.java", "record R(int NAME) {}\n", "1:definition:high"),
    ("b.cs", "enum E { NAME, B }\nclass A { E e = E.NAME; }\n", "1:definition:high 2:mention:high"),
    ("c.cs", "class A { public int NAME { get; } }\n", "1:definition:high"),
    ("a.ts", "class A { private NAME = 1; f() { return this.NAME } }\n", "1:definition:high 1:mention:high"),
    (
        "b.ts",
        "interface I { NAME: string; }\nfunction f(i: I) { return i.NAME }\n",
        "1:definition:high 2:mention:medium",
    ),
    ("c.ts", "enum E { NAME, B = 1 }\nconst x = E.NAME;\n", "1:definition:high 2:mention:high"),
    (
        "d.ts",
        "class A { constructor(private NAME: number) {} f() { return this.NAME } }\n",
        "1:definition:high 1:mention:high",
    ),
    ("a.go", "package p\nconst ( NAME = 1; B )\nvar x = NAME\n", "2:definition:high 3:mention:high"),
    (
        "b.go",
        "package p\ntype S struct { NAME int }\nfunc f() { s := S{NAME: 1}; s.NAME = 2 }\n",
        "2:definition:high 3:mention:medium 3:mention:medium",
    ),
    (
        "a.c",
        "struct s { int *NAME[3]; int (*cb)(void); };\nint f(struct s *p) { return p->NAME[0]; }\n",
        "1:definition:high 2:mention:medium",
    ),
    ("b.c", "enum E { NAME, B = 2 };\nint x = NAME;\n", "1:definition:high 2:mention:high"),
    ("c.c", "#define NAME 1\nint y = NAME;\n", "1:definition:high 2:mention:high"),
    ("a.rb", "class A\n  NAME = 1\n  def f; NAME; end\nend\n", "2:definition:high 3:mention:high"),
    ("b.rb", "class A\n  attr_accessor :NAME\n  def f; self.NAME; end\nend\n", "2:definition:high 3:call:high"),
    ("c.rb", "class A\n  def NAME?; end\n  def g; NAME?; end\nend\n", ""),
    (
        "a.php",
        "<?php\nclass X { const NAME = 1; function f() { return self::NAME; } }\n",
        "2:definition:high 2:mention:high",
    ),
    (
        "b.php",
        "<?php\nclass X { public $NAME = 2; function f() { return $this->NAME; } }\n",
        "2:definition:high 2:mention:high",
    ),
    ("c.php", "<?php\nenum E: string { case NAME = 'a'; }\n$x = E::NAME;\n", "2:definition:high 3:mention:high"),
    ("a.rs", "struct S { NAME: i32 }\nfn f(s: S) -> i32 { s.NAME }\n", "1:definition:high 2:mention:medium"),
    ("b.rs", "enum E { NAME, B(i32) }\nfn f() { E::NAME; }\n", "1:definition:high 2:mention:high"),
    ("c.rs", "const NAME: i32 = 1;\nfn f() { NAME; }\n", "1:definition:high 2:mention:high"),
    ("a.swift", "struct S { let NAME = 1\n func f() { self.NAME } }\n", "1:definition:high 2:mention:high"),
    ("b.swift", "enum E { case NAME, y(Int) }\nlet x = E.NAME\n", "1:definition:high 2:mention:high"),
    ("a.kt", "class A {\n  val NAME = 1\n  fun f() { NAME }\n}\n", "2:definition:high 3:mention:high"),
    ("b.kt", "enum class E { NAME, Y }\nval x = E.NAME\n", "1:definition:high 2:mention:high"),
    ("c.kt", "class A(val NAME: Int) {\n  fun f() = NAME\n}\n", "1:definition:high 2:mention:high"),
    ("a.py", "a, NAME = 1, 2\nprint(NAME)\n", "1:definition:high 2:mention:high"),
    ("b.py", "(NAME := 1)\nprint(NAME)\n", "1:definition:high 2:mention:high"),
    ("c.py", "NAME: int\nprint(NAME)\n", "1:definition:high 2:mention:high"),
    ("d.py", "if X:\n    NAME = 1\nprint(NAME)\n", "2:definition:high 3:mention:high"),
    ("e.py", "class A:\n    NAME = 1\n    def f(self): return self.NAME\n", "2:definition:high 3:mention:high"),
    (
        "f.py",
        "def NAME(): ...\ndef g(NAME):\n    return NAME()\nNAME()\n",
        "1:definition:high 2:mention:low 3:call:low 4:call:high",
    ),
    (
        "g.js",
        "function NAME() {}\nfunction g(NAME) { return NAME() }\nNAME()\n",
        "1:definition:high 2:mention:low 2:call:low 3:call:high",
    ),
    (
        "h.java",
        "class A { void NAME() {} void g(int NAME) { use(NAME); } }\n",
        "1:definition:high 1:mention:low 1:mention:low",
    ),
    (
        "i.go",
        "package p\nfunc NAME() {}\nfunc g(NAME int) { use(NAME) }\n",
        "2:definition:high 3:mention:low 3:mention:low",
    ),
    ("j.rs", "fn NAME() {}\nfn g(NAME: i32) { use_(NAME); }\n", "1:definition:high 2:mention:low 2:mention:low"),
    (
        "k.c",
        "int NAME(void) { return 1; }\nint g(int NAME) { return NAME; }\n",
        "1:definition:high 2:mention:low 2:mention:low",
    ),
    ("l.kt", "fun NAME() {}\nfun g(NAME: Int) { use(NAME) }\n", "1:definition:high 2:mention:low 2:mention:low"),
    ("m.swift", "func NAME() {}\nfunc g(NAME: Int) { use(NAME) }\n", "1:definition:high 2:mention:low 2:mention:low"),
    ("n.rb", "def NAME; end\ndef g(NAME); use(NAME); end\n", "1:definition:high 2:mention:low 2:mention:low"),
    (
        "o.php",
        "<?php\nfunction NAME() {}\nfunction g($NAME) { return use_($NAME); }\n",
        "2:definition:high 3:mention:low 3:mention:low",
    ),
    (
        "p.cs",
        "class A { void NAME() {} void G(int NAME) { Use(NAME); } }\n",
        "1:definition:high 1:mention:low 1:mention:low",
    ),
    (
        "q.cpp",
        "class A { int NAME; void f(); };\nvoid A::f() { NAME = 1; this->NAME = 2; }\n",
        "1:definition:high 2:mention:high 2:mention:high",
    ),
    ("r.scala", "object A { val NAME = 1; def f = NAME }\n", "1:definition:high 1:mention:high"),
    (
        "s.lua",
        "local NAME = 1\nprint(NAME)\nfunction M.f(NAME) return NAME end\n",
        "1:definition:high 2:mention:high 3:mention:low 3:mention:low",
    ),
    (
        "t.py",
        "def f():\n    for NAME in x: ...\n    return [NAME for NAME in y], (lambda NAME: NAME), g(NAME=1)\nNAME()\n",
        "2:mention:low 3:mention:low 3:mention:low 3:mention:low 3:mention:low 3:mention:low 4:call:low",
    ),
    (
        "u.js",
        "const { NAME } = require('./a');\nNAME();\nconst o = { NAME: 1 };\n",
        "1:import:medium 2:call:high 3:mention:low",
    ),
    (
        "v.py",
        "class A:\n    def f(self):\n        self.NAME = 1\n        return self.NAME\n",
        "3:definition:high 4:mention:high",
    ),
]
"""Sources in which `NAME` is a field, constant, parameter and the like, with the kind of each place on each line."""


@pytest.mark.parametrize(("path", "text", "places"), PLACES)
def test_kind_of_a_place_is_what_the_tree_says(plant: Plant, path: str, text: str, places: str) -> None:
    name = "name" if path.endswith(".rb") and path != "a.rb" else "NAME"  # a name of Ruby in capitals is a constant
    found = sync.references(name, cwd=plant({path: text.replace("NAME", name)}))
    every = sorted((*found.definitions, *found.uses), key=lambda one: (one.line, one.column))
    assert " ".join(f"{one.line}:{one.kind}:{one.confidence}" for one in every) == places


PACKAGE = {
    "pkg/__init__.py": "from .core import Widget\n",
    "pkg/core.py": "class Widget:\n    def merge(self): ...\n    def run(self):\n        self.merge()\n",
    "use.py": "import pkg\npkg.Widget()\n",
    "lib/go.mod": "module example.com/shop\n",
    "lib/pay.go": "package shop\n\nfunc Pay() {}\n",
    "lib/cmd/main.go": 'package main\n\nimport "example.com/shop"\n\nfunc main() { shop.Pay() }\n',
}


@pytest.mark.parametrize(
    ("name", "options", "definition", "uses"),
    [
        ("pkg.Widget", {}, "pkg/core.py:1", ["pkg/__init__.py:1 high", "use.py:2 high"]),
        ("Widget()", {}, "pkg/core.py:1", ["pkg/__init__.py:1 high", "use.py:2 high"]),
        ("self.merge", {}, "pkg/core.py:2", ["pkg/core.py:4 high"]),
        ("current_app.merge", {}, "pkg/core.py:2", ["pkg/core.py:4 high"]),
        ("Widget", {"paths": ["use.py"]}, "pkg/core.py:1", ["use.py:2 high"]),
        ("Widget", {"glob": "use*"}, "pkg/core.py:1", ["use.py:2 high"]),
        ("Pay", {}, "lib/pay.go:3", ["lib/cmd/main.go:5 high"]),
        ("shop.Pay", {"type": "go"}, "lib/pay.go:3", ["lib/cmd/main.go:5 high"]),
    ],
)
def test_names_as_they_stand_in_code_lead_to_the_definition(
    plant: Plant, name: str, options: dict[str, Any], definition: str, uses: list[str]
) -> None:
    found = sync.references(name, cwd=plant(PACKAGE), **options)
    assert [f"{slashed(one.path)}:{one.line}" for one in found.definitions] == [definition]
    assert [f"{slashed(one.path)}:{one.line} {one.confidence}" for one in found.uses] == uses
    assert found.message.startswith(f"1 definition and {len(uses)} use")
    assert ("all definitions of merge are listed" in found.message) == (name == "current_app.merge")


@pytest.mark.stress
@pytest.mark.timeout(600)
@pytest.mark.parametrize("package", ["requests", "jinja2", "click"])
def test_references_agree_with_jedi(package: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Precision and recall are printed; the bounds are below the figures that were measured."""
    for needed in ("jedi", package):
        if find_spec(needed) is None:
            pytest.skip(f"{needed} is not installed, which the comparison needs")
    sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
    try:
        from references import compare  # type: ignore[import-not-found,unused-ignore]
    finally:
        sys.path.pop(0)
    compared = compare(package, 40, tmp_path.resolve())
    with capsys.disabled():
        sys.stdout.write("\n".join(("", *compared.rows(), "")))
    likely = compared.levels["medium or high"]
    assert likely.precision > 0.85 and likely.recall > 0.85
    assert compared.levels["all code"].recall > 0.95
