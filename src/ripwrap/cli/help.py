"""Help texts in the layout of rg and uv: options in groups without boxes, each option on one line if it fits."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry, HelpPanel
    from rich.console import Console, ConsoleOptions
    from rich.text import Text

EXIT_CODES = """\
Exit codes:
  0  something was found
  1  nothing was found
  2  an error, or an unreadable file or directory; stderr says which"""

SETUP_EXIT_CODES = """\
Exit codes:
  0  success
  2  an error; stderr says which"""

_NAME_COLUMN = 30
"""Column at which the descriptions of options start. If the names do not fit before it, the description is on the next
line."""


def epilogue(*examples: str, after: str = EXIT_CODES) -> str:
    """Return the end of a help text: examples and exit codes."""
    lines = "\n".join(f"  {example}" for example in examples)
    return f"Examples:\n{lines}\n\n{after}"


class HelpFormatter:
    """Formatter that cyclopts calls with each part of a help text."""

    def __call__(self, console: "Console", options: "ConsoleOptions", panel: "HelpPanel") -> None:  # noqa: ARG002
        """Print a group of options or commands."""
        if not panel.entries:
            return
        console.print(_text(f"\n{panel.title}:", "bold"))
        for entry in panel.entries:
            for line in _entry_lines(console, entry, panel.format):
                console.print(line, soft_wrap=True)

    def render_usage(self, console: "Console", options: "ConsoleOptions", usage: Any) -> None:  # noqa: ARG002
        """Print the usage line."""
        console.print(_text().append("Usage: ", "bold").append(f"{str(usage).strip()}\n"), soft_wrap=True)

    def render_description(self, console: "Console", options: "ConsoleOptions", description: Any) -> None:  # noqa: ARG002
        """Print the description of a command."""
        for line in _text(_plain(description).strip()).wrap(console, console.width):
            line.rstrip()
            console.print(line)


def _text(text: str = "", style: str = "") -> "Text":
    from rich.text import Text  # late: only help texts need rich

    return Text(text, style)


def _entry_lines(console: "Console", entry: "HelpEntry", kind: str) -> "Iterator[Text]":
    """Yield the lines of an option or command; if its names are too long, its description begins on the next line."""
    names = _text("  " + (_names(entry) if kind == "parameter" else ", ".join((*entry.shorts, *entry.names))), "cyan")
    width = max(console.width - _NAME_COLUMN, 20)
    description = [line.plain.rstrip() for line in _description(entry).wrap(console, width)]
    if len(names) + 2 > _NAME_COLUMN:
        yield names
        names = _text()
    for line in description or [""]:
        names.pad_right(_NAME_COLUMN - len(names))
        yield _text().append_text(names).append(line)
        names = _text()


def _names(entry: "HelpEntry") -> str:
    """Return the names of an option and the placeholder of its value; for a positional argument, only its name.

    If the help text shows a default, also return the names that negate the option, such as `--no-hidden`.
    """
    if entry.positional_label:
        return entry.positional_label
    names = [*entry.positive_shorts, *entry.positive_names]
    if entry.default is not None:
        names += entry.negative_names
    indent = "" if entry.positive_shorts else "    "
    return f"{indent}{', '.join(names)}{f' {entry.metavar}' if entry.metavar else ''}"


def _description(entry: "HelpEntry") -> "Text":
    """Return the description of an option, then its choices and its default, each in brackets."""
    parts = [_plain(entry.description).rstrip(".")]
    if entry.choices:
        parts.append(f"[{', '.join(entry.choices)}]")
    if entry.default is not None:
        parts.append(f"[default: {entry.default}]")
    return _text(" ".join(part for part in parts if part))


def _plain(description: Any) -> str:
    return str(getattr(description, "primary_renderable", description))
