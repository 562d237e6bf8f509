"""`references(depth=…)`: callers of callers, their confidence, and the bounds of the search."""

import ast
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest

import ripwrap
from ripwrap import References, sync
from ripwrap._operations import references as module
from support.paths import slashed

Plant = Callable[..., Path]


def chains(found: References) -> list[str]:
    """Return for each caller of a caller its place, the names on the way to the name, and the confidence."""
    return [f"{slashed(one.path)}:{one.line} {'<'.join(one.chain)} {one.confidence}" for one in found.callers]


SHOP = {
    "till.py": "def pay(amount):\n    return amount\n",
    "cart.py": (
        "from till import pay\n\n\nclass Cart:\n    def __init__(self):\n        pay(0)\n\n    def total(self):\n"
        "        return pay(1)\n\n    def __len__(self):\n        return pay(2)\n\n\n# total()\ndef pay_all(carts):\n"
        "    return [cart.total() for cart in carts]\n"
    ),
    "main.py": "from cart import Cart, pay_all\n\n\ndef main():\n    pay_all([Cart()])\n\n\nmain()\nlen(Cart())\n",
}
DEPTHS = {
    1: [],
    2: [
        "main.py:5 Cart.__init__ high",  # a constructor is called by the name of its class
        "main.py:9 Cart.__init__ high",
        "cart.py:17 Cart.total medium",  # `cart` may be of another class
    ],
    3: ["main.py:8 main<Cart.__init__ high", "main.py:5 pay_all<Cart.total medium"],
    5: [],  # `main` was taken before, and has no other callers
}


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("backend", ["asyncio", "trio", "blocking"])
def test_callers_of_callers_are_found_with_the_lowest_confidence_of_their_chain(
    plant: Plant, depth: int, backend: str
) -> None:
    root = plant(SHOP)

    async def ask() -> References:
        return await ripwrap.references("pay", cwd=root, depth=depth)

    found = sync.references("pay", cwd=root, depth=depth) if backend == "blocking" else anyio.run(ask, backend=backend)
    assert chains(found) == [line for number, lines in DEPTHS.items() if number <= depth for line in lines]
    assert found.exact and not found.truncated
    assert ("definitions around them." in found.message) == (depth > 1)


LANGUAGES = {
    "a.js": "function pay() {}\nfunction total() { return pay(); }\nfunction show() { total(); }\nshow();\n",
    "a.go": "package shop\nfunc pay() {}\nfunc total() { pay() }\nfunc show() { total() }\nfunc main() { show() }\n",
    "a.rs": "fn pay() {}\nfn total() { pay() }\nfn show() { total() }\nfn main() { show() }\n",
    "a.rb": "def pay; end\ndef total\n  pay()\nend\ndef show\n  total()\nend\nshow()\n",
    "A.java": "class A{ void pay() {}\n void total() { pay(); }\n void show() { total(); }\n void f() { show(); }\n}\n",
    "a.php": "<?php\nfunction pay() {}\nfunction total() { pay(); }\nfunction show() { total(); }\nshow();\n",
}


@pytest.mark.parametrize("path", LANGUAGES)
def test_callers_are_followed_in_other_languages(plant: Plant, path: str) -> None:
    found = sync.references("pay", cwd=plant({path: LANGUAGES[path]}), depth=4)
    names = [[name.rpartition(".")[2] for name in one.chain] for one in found.callers]
    assert names == [["total"], ["show", "total"]]
    assert {one.confidence for one in found.callers} == {"high"}


AMBIGUOUS = {
    "pay.py": "def pay(): ...\n",
    "a.py": "from pay import pay\n\n\ndef run():\n    pay()\n\n\nrun()\n",
    "b.py": "def run(): ...\n\n\nrun()\n",
    "c.py": "from pay import pay\n\n\ndef test(run):\n    run()\n    pay.low\n",
    "d.py": 'def pay_not_imported():\n    pay()\n    return "pay"\n\n\npay_not_imported()\n',
}


def test_a_name_of_several_definitions_is_less_sure_in_other_files(plant: Plant) -> None:
    """The call in `b.py` is of its own `run`, which the name alone does not tell."""
    found = sync.references("pay", cwd=plant(AMBIGUOUS), depth=3)
    assert chains(found) == ["a.py:8 run high", "b.py:4 run medium"]


def program(seed: int) -> tuple[dict[str, str], dict[str, set[str]]]:
    """Return modules of functions that call one another at random, and the calls of each function."""
    chance = random.Random(seed)
    names = [f"step_{number}" for number in range(9)]
    calls = {name: set(chance.sample(names, chance.randint(0, 3))) for name in names}
    homes = {name: f"part{chance.randint(0, 2)}" for name in names}
    files: dict[str, str] = {}
    for home in sorted({*homes.values()}):
        own = [name for name in names if homes[name] == home]
        wanted = sorted({called for name in own for called in calls[name] if homes[called] != home})
        bodies = [
            f"def {name}():\n" + "".join(f"    {one}()\n" for one in sorted(calls[name])) + "    return\n"
            for name in own
        ]
        files[f"{home}.py"] = "\n\n".join((*(f"from {homes[one]} import {one}" for one in wanted), *bodies))
    return files, calls


def callers_by_hand(files: dict[str, str], name: str, depth: int) -> Iterator[tuple[str, int, str]]:
    """Yield the place of each call on the way to a name, from Python's own syntax tree, and the name that it calls."""
    calls = [
        (path, node.lineno, function.name, node.func.id)
        for path, text in files.items()
        for function in ast.walk(ast.parse(text))
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    level, known = {name}, {name}
    for number in range(depth):
        for path, line, around, called in calls:
            if called in level and number and around != called:
                yield path, line, called
        level = {around for _, _, around, called in calls if called in level} - known
        known |= level


@pytest.mark.parametrize("seed", range(6))
def test_callers_are_those_of_the_graph_of_calls(plant: Plant, seed: int) -> None:
    """Cycles end, and each definition is taken once, at its shortest distance."""
    files, _ = program(seed)
    root, depth = plant(files), 2 + seed % 4
    found = sync.references("step_0", cwd=root, depth=depth)
    got = sorted((slashed(one.path), one.line, one.chain[0]) for one in found.callers)
    assert got == sorted(callers_by_hand(files, "step_0", depth))
    assert not found.truncated and {one.confidence for one in found.callers} <= {"high"}


def test_definitions_that_are_followed_are_bounded(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    body = "".join(f"def use_{number}():\n    pay()\n\n\nuse_{number}()\nuse_{number}()\n" for number in range(5))
    root = plant({"a.py": "def pay(): ...\n\n\n" + body})
    monkeypatch.setattr(module, "MAX_FOLLOWED", 3)
    found = sync.references("pay", cwd=root, depth=5)
    assert len(found.callers) == 6 and found.truncated
    assert "Only the uses of 3 definitions were looked for; choose fewer files." in found.summary
    monkeypatch.setattr(module, "MAX_FOLLOWED", 5)
    assert not sync.references("pay", cwd=root, depth=5).truncated
    found = sync.references("pay", cwd=root, depth=2, limit=3)
    assert len(found.callers) == 3 and found.truncated and "3 of these are here" in found.message


def test_no_definition_is_followed_after_most_of_the_time_limit(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    root = plant(SHOP)
    left = iter([60.0, 60.0])  # for the two files that have the name

    def countdown(_: float) -> Callable[[], float]:
        return lambda: next(left, 0.0)

    monkeypatch.setattr(module, "countdown", countdown)
    found = sync.references("pay", cwd=root, depth=3, timeout=60)
    assert len(found.uses) == 4 and not found.callers and found.truncated
    assert found.message.endswith("There was no time for the uses of further definitions; choose fewer files.")


@pytest.mark.parametrize("depth", [0, 6, -1])
def test_a_depth_out_of_bounds_is_refused(plant: Plant, depth: int) -> None:
    with pytest.raises(ValueError, match=f"depth must be from 1 to 5, got {depth}"):
        sync.references("pay", cwd=plant(SHOP), depth=depth)
