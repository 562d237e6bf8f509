"""Plain command lines, which are run without cyclopts, mean what cyclopts reads in them."""

import random
from functools import partial
from inspect import signature
from typing import Any

import pytest

from ripwrap.cli.app import app
from ripwrap.cli.arguments import rewrite
from ripwrap.cli.commands import FIRST_FLAGS, NAMES
from ripwrap.cli.plain import _flags, plain_call
from ripwrap.cli.run_files import run_files
from ripwrap.cli.run_mcp import run_mcp
from ripwrap.cli.run_search import run_search
from support.effort import times

RUN = {"search": run_search, "files": run_files, "mcp": run_mcp}
FLAGS = sorted({flag for run in RUN.values() for flag in _flags(run)})
VALUES = [
    "1",
    "0",
    "007",
    "-1",
    "x",
    "",
    "a=b",
    "-x",
    "--",
    "-",
    "none",
    "NULL",
    "*.py",
    "auto",
    "Auto",
    "path",
    "1e3",
    "a,b",
]
WORDS = [
    "needle",
    "src",
    "-",
    "--",
    "none",
    "null",
    "-5",
    "--frobnicate",
    "--help",
    "-h",
    "serach",
    "files",
    "--files",
    "-uu",
]
COMMANDS = ["search", "files", "mcp", "needle", "version", "help", "--version", "-i"]


def cyclopts_call(arguments: list[str]) -> tuple[Any, ...]:
    command, bound, _ = app.parse_args(rewrite(arguments, app), exit_on_error=False, print_error=False)
    return call(command, bound.args, bound.kwargs)


def call(function: Any, positional: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    bound = signature(function).bind(*positional, **named)
    bound.apply_defaults()
    return function, bound.arguments


def command_line(choose: random.Random) -> list[str]:
    """Return a command line of flags, values and words; most have only flags that the command has."""
    words = [choose.choice(COMMANDS[:3] if choose.random() < 0.8 else COMMANDS)]
    known = sorted(_flags(RUN.get(words[0], run_search)))
    for _ in range(choose.randrange(5)):
        flag, value = choose.choice(known if choose.random() < 0.9 else FLAGS), choose.choice(VALUES)
        words += choose.choice([[flag], [flag], [flag, value], [f"{flag}={value}"], [f"{flag}{value}"], [value]])
        if choose.random() < 0.3:
            words.append(choose.choice(WORDS))
    return words


def both_ways(arguments: list[str]) -> bool:
    """Return True if a command line is plain; assert that it then means the same to cyclopts."""
    plain = plain_call(arguments)
    if plain is None:
        return False
    assert isinstance(plain, partial)
    assert call(plain.func, plain.args, plain.keywords) == cyclopts_call(arguments), arguments
    return True


def test_generated_plain_command_lines_mean_what_cyclopts_reads() -> None:
    choose = random.Random(42)
    tried = times(200, 5_000)
    plain = sum(both_ways(command_line(choose)) for _ in range(tried))
    assert plain > tried // 4


@pytest.mark.parametrize("command", RUN)
def test_each_spelling_of_each_flag_is_plain_and_means_what_cyclopts_reads(command: str) -> None:
    """A switch alone, or a flag with one of several values; twelve flags in a command line."""
    plain, words = list[list[str]](), ["x"] * (command != "mcp")
    for flag in _flags(RUN[command]):
        tried = [[flag], *([flag, value] for value in ("1", "a", "path", "auto", "always", "hide"))]
        plain.append(next(one for one in tried if plain_call([command, *one, *words])))
    for first in range(0, len(plain), 12):
        assert both_ways([command, *(word for one in plain[first : first + 12] for word in one), *words])


@pytest.mark.parametrize(
    "arguments",
    [
        ["search", "--help"],
        ["search", "-h"],
        ["search", "x", "--frobnicate"],
        ["search", "x", "-C"],
        ["search", "x", "-Cx"],
        ["search", "x", "-C", "-1"],
        ["search", "x", "--limit=none"],
        ["search", "x", "--limit=-1"],
        ["search", "x", "--color=Always"],
        ["search", "x", "--hidden=true"],
        ["search", "x", "-g=x"],
        ["search", "-", "--", "x"],
        ["files", "-C2"],
        ["tree"],
        ["mcp", "x"],
        ["mcp", "--root", "--http"],
        ["mcp", "--hybrid-weight=.5"],
        ["serach", "x"],
        ["--version"],
        [],
    ],
    ids=" ".join,
)
def test_other_command_lines_are_left_to_cyclopts(arguments: list[str]) -> None:
    assert plain_call(arguments) is None


def test_table_of_commands_is_that_of_cyclopts() -> None:
    assert sorted((*FIRST_FLAGS, *NAMES)) == sorted(app)
