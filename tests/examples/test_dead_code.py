"""`dead_code.py` reports definitions that no other text mentions, and only those."""

from collections.abc import Callable
from pathlib import Path

import pytest

from support.runs import run

pytestmark = pytest.mark.slow

SHOP = '''"""A shop."""
import functools

USED, UNUSED = 1, 2
ALSO: int = 3
lower = 4
__all__ = ["exported"]


def exported(): ...


def recursive():
    return recursive()


def called(x=USED):
    return "\\d"


@functools.cache
def cached(): ...


class Till:
    LIMIT = 5

    def __init__(self):
        called()

    def pay(self):
        def inner(): ...

    async def close(self): ...

    def named_in_readme(self): ...


def test_till():
    Till().pay()
'''
DEAD = """shop.py:5: constant ALSO
shop.py:22: decorated function cached
shop.py:32: function inner
shop.py:34: method close
"""


def test_unmentioned_definitions_are_reported(plant: Callable[..., Path], watched: Callable[[], list[str]]) -> None:
    folder = plant({"shop.py": SHOP, "README.md": "named_in_readme, UNUSED\n", "data.txt": "ALSO2 not_cached closed\n"})
    assert run("dead_code.py", folder) == (1, DEAD, "")
    # One rg lists the files, one searches all uses.
    modes = [next(mode for mode in ("--files", "--json") if mode in line) for line in watched()]
    assert modes == ["--files", "--json"]


def test_name_with_two_definitions_and_no_use_is_reported_twice(plant: Callable[..., Path]) -> None:
    folder = plant({"a.py": "def f(): ...\n", "b.py": "if 1:\n    def f(): ...\n", "c.py": "def g(): ...\ng()\n"})
    assert run("dead_code.py", folder) == (1, "a.py:1: function f\nb.py:2: function f\n", "")


@pytest.mark.parametrize("many", [2, 12_000])  # names of 100 KB do not fit into a pattern
def test_rg_searches_once_for_any_number_of_names(
    plant: Callable[..., Path], watched: Callable[[], list[str]], many: int
) -> None:
    defined = "".join(f"def name_{number}(): ...\n" for number in range(many))
    used = "\n".join(f"name_{number} other" for number in range(1, many))
    folder = plant({"many.py": defined, "uses.txt": used})
    assert run("dead_code.py", folder) == (1, "many.py:1: function name_0\n", "")
    (search,) = [line for line in watched() if "--json" in line]
    assert ("name_1" in search) == (many == 2)
    assert len(search) < 100_000


def test_invalid_python_is_named_and_the_others_are_reported(plant: Callable[..., Path]) -> None:
    folder = plant(
        {
            "a.py": "def f(: ...\n",
            "b.py": "def g(): ...\n",
            "c.py": b"x = 1\0\n",
            b"d\xff.py": b"# coding: latin-1\nclass Caf\xe9: ...\nclass Tea: ...\n",
        }
    )
    code, out, err = run("dead_code.py", folder)
    assert (code, out) == (2, "b.py:1: function g\nd�.py:3: class Tea\n")
    assert [line.partition(".py: ")[0] for line in err.splitlines()] == ["not read: a", "not read: c"]


@pytest.mark.parametrize("source", ["", "def f(): ...\nf()\n", "x = 1\n"])
def test_no_dead_code_is_exit_code_0(plant: Callable[..., Path], source: str) -> None:
    assert run("dead_code.py", plant({"a.py": source})) == (0, "", "")


def test_dead_code_checks_the_demo_by_default(clone: Path) -> None:
    assert run("dead_code.py", cwd=clone) == (1, "shop/cart.py:4: function total\nshop/till.py:1: function pay\n", "")
    assert run("dead_code.py", cwd=clone) == run("dead_code.py", "demo", cwd=clone)
