"""Flags of several commands, and options in error messages as flags."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from ripwrap.cli.command import GROUPS, RIPWRAP, Option, flag_name, negated
from ripwrap.cli.terminal import When
from ripwrap.errors import Hint, spell_error

if TYPE_CHECKING:
    from ripwrap.remote import Host

OUTPUT = GROUPS["output"]

Json = Annotated[bool, Option("Print JSON, one value a line", OUTPUT, names=("--jsonl", "--json"))]
Limit = Annotated[int | None, Option("Maximum number of results in total", OUTPUT, "NUM")]
ResultLimit = Annotated[int | None, Option("Maximum number of results", OUTPUT, "NUM")]
CoverageFlag = Annotated[bool, Option("Also print how many files were searched", OUTPUT)]
Color = Annotated[When, Option("Color: auto, always, never or ansi (as always)", OUTPUT, "WHEN")]
Cwd = Annotated[str, Option("Run as if ripwrap was started in DIR", RIPWRAP, "DIR")]
RgPath = Annotated[str | None, Option("rg to run, a path or a name in $PATH", RIPWRAP, "PATH")]
EmbedderName = Annotated[str | None, Option("Embedding model, e.g. `wordllama`", value="NAME", default="none")]
HybridWeight = Annotated[float | None, Option("Weight of embeddings, 0 to 1", value="NUM", default="0.34")]
AllPaths = Annotated[str, Option("Files and directories to search [default: all]")]
Pattern = Annotated[str, Option("Regular expression to search for")]


@dataclass(frozen=True)
class RunOptions:
    """Options `--json`, `--cwd` and `--rg` of the commands that run rg in a directory."""

    json: Json = False
    cwd: Cwd = "."
    rg: RgPath = None


@dataclass(frozen=True)
class StreamOptions(RunOptions):
    """Options of `RunOptions`, and those of rg that change what is written when and to where."""

    no_messages: Annotated[bool, Option("Do not print which paths cannot be read", OUTPUT, off=("--messages",))] = False
    line_buffered: Annotated[
        bool,
        Option(
            "Write each result at once", OUTPUT, off=("--no-line-buffered", "--block-buffered", "--no-block-buffered")
        ),
    ] = False
    no_config: Annotated[bool, Option("Accepted; files of rg's options are never read", RIPWRAP)] = False


HERE = RunOptions()
STREAMS = StreamOptions()

NOT_FOR_REPLACE = ("invert_match", "passthru", "replace", "no_line_number")
"""Options of `ripwrap search` that `ripwrap replace` does not have."""

_COMMANDS = {
    "undo": "ripwrap undo",
    "refresh": "ripwrap index build",
    "prune": "ripwrap index prune",
    "file_types": "ripwrap types",
    "scan": "ripwrap scan",
    "ripwrap.binary.install": "ripwrap install",
    "host.install": "ripwrap install --on HOST",
}
"""Command that error messages name in place of a function of the library."""

_ARGUMENTS = {
    "path": "FILE",
    "paths": "PATHS",
    "roots": "--root DIR",
    "repositories": "--repository",
    "where": "standard input (-)",
}
"""Text that error messages have in place of an argument of the library that has no flag of the same name.

The text names a positional argument or another flag.
"""

_LIBRARY_ONLY = ("program", "source")
"""Arguments of the library that the command line does not have."""


def spell_as_flag(hint: Hint) -> str | None:
    """Return the text of a hint for a user of the command line; `None` if no flag or command does the same.

    A hint is an option, a call, or a package to install. `fixed_strings=True` becomes `--fixed-strings`, and a call
    becomes a command in backticks.
    """
    if hint.kind == "install":
        return str(hint)
    if hint.option in _LIBRARY_ONLY:
        return None
    option = _flag(hint) if hint.option else ""
    if hint.kind != "call":
        return option
    command = _COMMANDS.get(hint.target)
    return None if command is None else f"`{f'{command} {option}'.rstrip()}`"


def parse_host(on: str | None) -> "Host | None":
    """Return the host that `--on` names, or None without `--on`."""
    if on is None:
        return None
    from ripwrap import remote  # late: few searches need it

    try:
        return remote.parse_host(on)
    except ValueError as error:
        text = spell_error(error, spell_as_flag)
        raise ValueError(text if text.startswith("--on ") else f"--on {on}: {error}") from None


def _flag(hint: Hint) -> str:
    if hint.option in _ARGUMENTS:
        return _ARGUMENTS[hint.option]
    name = flag_name(hint.option)
    if hint.kind in ("omit", "correct") or hint.value is None or hint.value is True:
        return name
    return negated(name) if hint.value is False else f"{name}={hint.value}"
