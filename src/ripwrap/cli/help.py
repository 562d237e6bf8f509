"""Help texts in the layout of rg and uv: options in groups, each option on one line if it fits."""

import inspect
import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from ripwrap.cli.command import EXIT_CODES, GROUPS, OTHER, RIPWRAP, Command, CommandGroup, Parameter
from ripwrap.cli.terminal import shows_color

_NAME_COLUMN = 30
"""Column at which the descriptions of options start. If the names do not fit before it, the description is on the next
line."""

_TITLES = ("Scan options", OTHER, *GROUPS.values(), RIPWRAP)
"""Titles of groups of options in their order; other titles follow."""

_BOLD, _CYAN, _RESET = "\x1b[1m", "\x1b[36m", "\x1b[0m"

Entry = tuple[str, str]
"""Names and description."""

_OPTIONS = (("-h, --help", "Display this message and exit"), ("-V, --version", "Display application version"))
"""Flags that each command has; the help of the program lists them."""


def command_help(title: str, command: Command) -> str:
    """Return the help text of a command; `title` is the program and the command."""
    arguments, flags = command.parameters
    shown = [one for one in flags if not one.option.hidden]
    titles = dict.fromkeys((*_TITLES, *(one.option.group for one in shown)))
    groups = {
        "Arguments": [(one.names[0], _with_default(one.option.help, one.option.default)) for one in arguments],
        **{name: [(_names(one), _description(one)) for one in shown if one.option.group == name] for name in titles},
    }
    usage = " ".join(filter(None, (title, "[OPTIONS]", command.arguments)))
    return _text([usage], inspect.getdoc(command.run) or "", groups, command.examples, command.exit_codes)


def group_help(title: str, group: CommandGroup) -> str:
    """Return the help text of a command that has commands."""
    listed = {name: one for name, one in group.commands.items() if not one.hidden}
    entries = [(name, (inspect.getdoc(one.run) or "").partition("\n\n")[0]) for name, one in listed.items()]
    usage = f"{title} COMMAND [OPTIONS] [ARGUMENTS]"
    return _text([usage], group.help, {"Commands": entries}, group.examples, group.exit_codes)


def program_help(commands: Mapping[str, str], examples: Sequence[str]) -> str:
    """Return the help text of the program; `commands` has a line about each command, or flag in place of one."""
    usage = ["ripwrap COMMAND [OPTIONS] [ARGUMENTS]", "ripwrap [OPTIONS] PATTERN [PATH]..."]
    flags = [(f"    {name}", about) for name, about in commands.items() if name.startswith("-")]
    groups = {
        "Commands": [(name, about) for name, about in commands.items() if not name.startswith("-")],
        OTHER: [_OPTIONS[0], *flags, _OPTIONS[1]],
    }
    return _text(usage, "Search files with ripgrep, or serve searches to agents.", groups, examples, EXIT_CODES)


def _text(
    usage: Sequence[str],
    description: str,
    groups: Mapping[str, Sequence[Entry]],
    examples: Sequence[str],
    exit_codes: str,
) -> str:
    colored, width = shows_color("auto"), shutil.get_terminal_size().columns
    bold, cyan, reset = (_BOLD, _CYAN, _RESET) if colored else ("", "", "")
    paragraphs = (_wrapped(" ".join(one.split()), width) for one in description.split("\n\n"))
    parts = [f"{bold}Usage: {reset}" + "\n       ".join(usage), "\n\n".join("\n".join(one) for one in paragraphs)]
    for title, entries in groups.items():
        if entries:
            lines = (line for one in entries for line in _entry_lines(*one, width, cyan, reset))
            parts.append("\n".join((f"{bold}{title}:{reset}", *lines)))
    if examples:
        parts.append("\n  ".join(("Examples:", *examples)))
    return "\n\n".join((*parts, exit_codes))


def _entry_lines(names: str, description: str, width: int, cyan: str, reset: str) -> Iterator[str]:
    """Yield the lines of an option or command; if its names are too long, its description begins on the next line."""
    first, *rest = _wrapped(description.removesuffix("."), max(width - _NAME_COLUMN, 20)) or [""]
    painted, fits = f"  {cyan}{names}{reset}", len(names) + 4 <= _NAME_COLUMN
    if fits:
        yield f"{painted}{' ' * (_NAME_COLUMN - 2 - len(names))}{first}".rstrip()
    else:
        yield painted
        rest = [first, *rest]
    yield from (f"{' ' * _NAME_COLUMN}{line}" for line in rest)


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False, break_long_words=False)


def _names(parameter: Parameter) -> str:
    """Return the names of a flag and the placeholder of its value."""
    option, names = parameter.option, [*parameter.names]
    if _default(parameter):
        names += option.off
    value = option.value or ("CHOICE" if parameter.choices else "")
    indent = "" if names[0][:2] != "--" else "    "
    return f"{indent}{', '.join(names)}{f' {value}' if value else ''}"


def _description(parameter: Parameter) -> str:
    """Return the description of a flag, then its choices and its default, each in brackets."""
    parts = [parameter.option.help]
    if parameter.choices and not parameter.option.value:
        parts.append(f"[{', '.join(parameter.choices)}]")
    return _with_default(" ".join(parts), _default(parameter))


def _with_default(text: str, default: str | None) -> str:
    return f"{text} [default: {default}]" if default else text


def _default(parameter: Parameter) -> str:
    if parameter.option.default is not None:
        return parameter.option.default
    value: object = parameter.default
    if value is inspect.Parameter.empty or value in (None, False, "", ()):
        return ""
    return (
        "on" if value is True else " ".join(cast("tuple[str, ...]", value)) if isinstance(value, tuple) else str(value)
    )
