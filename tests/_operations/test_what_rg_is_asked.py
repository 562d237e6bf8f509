"""What a call asks of rg beyond the options: to sort, and to write each line at once, only if the results need it."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ripwrap import sync
from ripwrap.binary import RgBinary

ANY: Any = sync  # for options by name

COLLECTED: dict[str, Callable[..., object]] = {
    "grep": lambda **known: ANY.grep("TODO", explain=True, near="def", **known),
    "grep, nothing found": lambda **known: ANY.grep("nowhere", explain=True, **known),
    "rank": lambda **known: ANY.rank("todo cart.py", **known),
    "references": lambda **known: ANY.references("cart", **known),
    "tree": lambda **known: list(ANY.tree(**known)),
    "tree_text": ANY.tree_text,
    "replace": lambda **known: ANY.replace("TODO", "DONE", **known),
    "files_matching": lambda **known: ANY.files_matching(all_of=["TODO", "def"], **known),
    "coverage": ANY.coverage,
}
"""Calls whose answer has an order of its own."""

STREAMED: dict[str, Callable[..., object]] = {
    "search": lambda **known: list(ANY.search("TODO", **known)),
    "search_messages": lambda **known: list(ANY.search_messages("TODO", **known)),
    "search_columns": lambda **known: list(ANY.search_columns("TODO", **known)),
    "files": lambda **known: list(ANY.files(**known)),
    "files_with_matches": lambda **known: list(ANY.files_with_matches("TODO", **known)),
    "files_without_match": lambda **known: list(ANY.files_without_match("TODO", **known)),
    "count": lambda **known: list(ANY.count("TODO", **known)),
}
"""Calls that yield results in the order of rg."""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tree").mkdir()
    for name in ("cart.py", "till.py"):
        (tmp_path / "tree" / name).write_text("def cart():\n    pass  # TODO\n")
    return tmp_path / "tree"


@pytest.fixture
def commands(tmp_path: Path, newest: RgBinary, needs_posix: None) -> Callable[[Callable[..., object], Path], list[str]]:
    """Return a function that makes a call, and returns the command lines of rg that it has run."""
    program, log = tmp_path / "rg", tmp_path / "log"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >>{shlex.quote(str(log))}\nexec {newest.path} "$@"\n')
    program.chmod(0o755)

    def run(call: Callable[..., object], cwd: Path, **options: str) -> list[str]:
        call(cwd=cwd, rg=program, **options)
        return [line for line in log.read_text().splitlines() if "--version" not in line]

    return run


@pytest.mark.parametrize("option", ["sort", "sortr"])
@pytest.mark.parametrize("name", COLLECTED)
def test_collected_call_asks_for_no_order_and_no_single_lines(
    commands: Any, tree: Path, name: str, option: str
) -> None:
    lines = commands(COLLECTED[name], tree, **{option: "path"})
    assert lines and not [line for line in lines if "--sort" in line or "--line-buffered" in line]


@pytest.mark.parametrize("name", STREAMED)
def test_streamed_call_asks_for_its_order_and_for_each_line(commands: Any, tree: Path, name: str) -> None:
    lines = commands(STREAMED[name], tree, sort="path")
    assert all("--sort=path" in line and "--line-buffered" in line for line in lines) and lines
