"""Print models on a terminal, with rich."""

import os
from typing import Literal

from rich.console import Console
from rich.text import Text

from ripwrap._display.console import heading, numbered_lines
from ripwrap._display.html import Gaps
from ripwrap._text import shown
from ripwrap.cli.flags import When
from ripwrap.cli.lines import MAX_LINE_CHARS, MAX_SNIPPET_LINES, left_out, numbered, omitted, warn_of_binary_end
from ripwrap.models import Begin, Context, Match, Message
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


def _omitted_line(message: Match | Context, number: int | None, omitted: bytes) -> Text:
    if number is None:
        return Text(omitted.decode())
    return Text.assemble((str(number), "green"), ":" if isinstance(message, Match) else "-", omitted.decode())


class Grouped:
    """Printer of matches in rg's colors: a heading for each file, and below it the matched lines and their context."""

    def __init__(self, color: When = "auto", max_columns: int = 0) -> None:
        self._console = styled_console(color)
        self._gaps = Gaps()
        self._files = 0
        self._max_columns = max_columns

    def __call__(self, message: Message) -> None:
        """Print one message."""
        warn_of_binary_end(message)
        if isinstance(message, Begin):
            self._heading(message)
        elif self._gaps.before(message):
            self._console.print("--")
        if isinstance(message, (Match, Context)):
            for line, (number, raw) in zip(numbered_lines(message), numbered(message), strict=True):
                text = omitted(message, raw, self._max_columns)
                self._console.print(_omitted_line(message, number, text) if text else line)

    def _heading(self, begin: Begin) -> None:
        self._gaps.before(begin)
        if self._files:
            self._console.print()
        self._console.print(heading(begin.path or "<stdin>"))
        self._files += 1
