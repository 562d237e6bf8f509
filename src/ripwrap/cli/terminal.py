"""Print models on a terminal, with rich."""

import os
from typing import Literal

from rich.console import Console
from rich.text import Text

from ripwrap._text import shown
from ripwrap.cli.flags import When
from ripwrap.cli.snippets import MAX_LINE_CHARS, MAX_SNIPPET_LINES, left_out
from ripwrap.results import RankedChunk

_COLOR_SYSTEMS: dict[When, Literal["auto", "standard"] | None] = {"auto": "auto", "always": "standard", "never": None}
"""rich's name of the color system for each value of --color."""


def styled_console(color: When = "auto", *, stderr: bool = False) -> Console:
    """Return a console for a terminal. If `color` is 'auto' and NO_COLOR is set, the console prints no styles."""
    if color == "auto" and os.environ.get("NO_COLOR"):
        color = "never"
    return Console(
        highlight=False,
        soft_wrap=True,
        color_system=_COLOR_SYSTEMS[color],
        no_color=False if color == "always" else None,
        stderr=stderr,
    )


def print_styled_chunk(chunk: RankedChunk) -> None:
    """Print path, symbol, score and reasons of a ranked chunk, then its first lines."""
    console = styled_console()
    where = f"{shown(chunk.path)}:{chunk.start_line}-{chunk.end_line}"
    symbol = f"  {shown(chunk.symbol)}" if chunk.symbol else ""
    console.print(Text.assemble((where, "magenta"), (symbol, "bold"), f"  {chunk.score:.2f}"))
    if chunk.reasons:
        console.print(Text(shown("  " + "; ".join(chunk.reasons)), "dim"))
    lines = chunk.text.removesuffix("\n").split("\n")
    for number, line in enumerate(lines[:MAX_SNIPPET_LINES], chunk.start_line):
        console.print(
            Text.assemble((f"  {number}", "green"), ":", shown(line.removesuffix("\r")[:MAX_LINE_CHARS], lines=True))
        )
    if rest := left_out(lines):
        console.print(Text(rest, "dim"))
    console.print()
