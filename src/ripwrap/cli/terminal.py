"""Colors of a terminal: whether they are printed, and texts with them."""

import os
import sys
from typing import Literal

from ripwrap._text import shown

When = Literal["auto", "always", "never"]

STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "magenta": "35", "cyan": "36", "bold green": "1;32"}
"""Codes of the styles (ECMA-48)."""


def shows_color(color: When) -> bool:
    """Return True if texts are printed to stdout in color.

    For `auto`, stdout must be a terminal with colors, or FORCE_COLOR or TTY_COMPATIBLE must ask for colors. NO_COLOR
    (https://no-color.org), and the terminals `dumb` and `unknown`, have none.
    """
    if color != "auto":
        return color == "always"
    if os.environ.get("NO_COLOR") or os.environ.get("TERM", "").lower() in ("dumb", "unknown"):
        return False
    if os.environ.get("FORCE_COLOR") or os.environ.get("TTY_COMPATIBLE") == "1":
        return True
    return sys.stdout.isatty() and os.environ.get("TTY_COMPATIBLE") != "0" and _reads_escapes()


def _reads_escapes() -> bool:
    """Return True if the terminal reads escape sequences, which old consoles of Windows do not."""
    if sys.platform != "win32":
        return True
    import nt  # late: only Windows has it

    asks = getattr(nt, "_supports_virtual_terminal", None)  # Python 3.13 and newer
    return bool(asks()) if asks is not None else "WT_SESSION" in os.environ


def styled(text: str, style: str, *, colored: bool) -> str:
    """Return a text with the escape sequences of a style, if it is `colored`."""
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if colored and style else text


def colored_diff(diff: str, *, colored: bool) -> str:
    """Return the unified diff of one file as a terminal shows it, with the colors of git if it is `colored`."""
    styles = {"+": "green", "-": "red", "@": "cyan", "\\": "dim"}
    lines = shown(diff, lines=True).removesuffix("\n").split("\n")
    return "".join(
        f"{styled(line, 'bold' if number < 2 else styles.get(line[:1], ''), colored=colored)}\n"
        for number, line in enumerate(lines)
    )
