"""Write the parts of the documentation that are made from flags; docs/conf.py puts them into the pages.

These are the help of each command, of which flags of several commands are described once, and a row for each flag of
rg, with what ripwrap has in its place. The rows are made from the options of the library (`ripwrap.options`), those of
the command line, and the tables of flags that ripwrap does not have.
"""

import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple, get_args

from ripwrap import cli, sync
from ripwrap.cli.command import EXIT_CODES, MISSING, SETUP_EXIT_CODES, Command
from ripwrap.cli.commands import NAMES, find
from ripwrap.cli.search import search
from ripwrap.options import flag_of, option_hints

OPTIONS_PAGE = Path(__file__).parent.parent / "docs" / "reference" / "options.md"
COMMANDS = {"--files": "`ripwrap files`, or the same", "--type-list": "`ripwrap types`, or the same"}
"""Flags of rg that are commands of ripwrap."""
SEARCH = ("search",)
SHARED_TITLE = "Options of several commands"

IN_PYTHON: Mapping[str, str] = {
    "--help": "`help(ripwrap)`",
    "--pre": "no; for archives, notebooks and documents, `inside=`",
    "--pre-glob": "no; for archives, notebooks and documents, `inside=`",
    "--hostname-bin": "no: no links are printed",
    "--generate": "no: it makes files for rg",
    "--file": "read the file, and pass a list as `pattern`",
    "--regexp": "the argument `pattern`, one or several",
    "--search-zip": '`inside="gz"`',
    "--json": "`search_messages()`",
    "--files": "`files()`",
    "--files-with-matches": "`files_with_matches()`",
    "--files-without-match": "`files_without_match()`",
    "--count": "`count()`",
    "--count-matches": "`count_matches()`",
    "--type-list": "`file_types()`",
    "--version": "`resolve()`",
    "--pcre2-version": "`resolve()`",
    "--only-matching": "`match.submatches`",
    "--column": "`match.spans()`",
    "--byte-offset": "`match.absolute_offset`",
    "--stats": "the summary of `search_messages()`",
    "--quiet": "`files_with_matches(…, limit=1)`",
    "--unrestricted": "`no_ignore=True`; then also `hidden=True, include_git=True`; then also `binary=True`",
    "--sort-files": '`sort="path"`',
    "--auto-hybrid-regex": '`engine="auto"`',
    "--no-pcre2-unicode": "`no_unicode=True`",
    "--debug": "`why()`",
    "--trace": "`why()`",
}
"""What Python has in place of a flag of rg that is not an option."""

_SECTION = re.compile(r"^([A-Z][A-Z ]+):\n(.*?)(?=^[A-Z]|\Z)", re.MULTILINE | re.DOTALL)
_RG_FLAG = re.compile(r"^    (?:(-\S)(?: \w+)?, )?(--[a-z0-9-]+)(.*?)(?=^    -|\Z)", re.MULTILINE | re.DOTALL)
_NEGATION = re.compile(r"disabled?\s+(?:with|[^.]{1,30}\suse)\s+(?:the\s+)?(--[a-z0-9-]+)")
_HELP_GROUP = re.compile(r"^(\w[\w ]+):\n((?:  .*\n)+)", re.MULTILINE)
_HELP_FLAG = re.compile(r"^  (?:    )?-.*\n(?: {20,}.*\n)*", re.MULTILINE)
_EMPTY_GROUP = re.compile(r"^\w[\w ]+:\n\n", re.MULTILINE)


class RgFlag(NamedTuple):
    """Flag of rg.

    Attributes:
        section: Section of `rg --help`, such as `search options`.
        letter: Short name, such as `-i`; empty if it has none.
        name: Long name.
        negation: Long name that turns it off; empty if there is none.
    """

    section: str
    letter: str
    name: str
    negation: str

    @property
    def names(self) -> list[str]:
        """Return all names."""
        return [one for one in (self.letter, self.name, self.negation) if one]


def flags_of_rg(text: str) -> Iterator[RgFlag]:
    """Yield the flags that `rg --help` describes."""
    for section in _SECTION.finditer(text):
        for found in _RG_FLAG.finditer(section[2]):
            negation = _NEGATION.search(found[3])
            yield RgFlag(section[1].lower(), found[1] or "", found[2], negation[1] if negation else "")


def read_reasons() -> dict[str, str]:
    """Return the reason of each flag that the page of options names as not being an option."""
    table = OPTIONS_PAGE.read_text("utf-8").partition("## Flags that are no options\n")[2]
    rows = re.findall(r"^\| (`--.*) \| (.*) \|$", table, re.MULTILINE)
    return {flag: reason.partition(", from")[0] for flags, reason in rows for flag in re.findall(r"`(--\S+)`", flags)}


def in_python(flag: RgFlag, reasons: Mapping[str, str]) -> str:
    """Return what does the same in Python as a flag, or the reason why nothing does.

    Raises:
        LookupError: Neither is known.
    """
    if flag.name in IN_PYTHON:
        return IN_PYTHON[flag.name]
    hints = option_hints()
    key, opposite = (name.removeprefix("--").replace("-", "_") for name in (flag.name, f"--no-{flag.name[2:]}"))
    if key in hints:
        return f"`{key}={_value(hints[key])}`{', the default' if flag_of(hints[key]).default else ''}"
    if opposite in hints:
        return f"`{opposite}=False`, the default"
    if flag.name in reasons:
        return f"no: {reasons[flag.name]}"
    raise LookupError(f"{flag.name} is neither an option nor in a table of {OPTIONS_PAGE.name}")


def in_commands(flag: RgFlag) -> str:
    """Return what does the same in the command line as a flag, or the reason why nothing does, and what to use.

    Raises:
        LookupError: Neither is known.
    """
    known = search.flags.keys() | {"--help", "-h", "--version", "-V"}
    if flag.name in COMMANDS:
        return COMMANDS[flag.name]
    if flag.name in known:
        lacking = [name for name in flag.names if name not in known]
        return "the same" + (f", but not `{lacking[0]}`" if lacking else "")
    for missing in MISSING:
        if flag.name in missing.flags:
            return f"no: {missing.reason}; {missing.instead}"
    raise LookupError(f"{flag.name} is neither a flag of `ripwrap search` nor in `ripwrap.cli.command.MISSING`")


def _value(hint: Any) -> str:
    """Return an example of an option's value."""
    if hint.__origin__ is bool:
        return "True"
    if flag_of(hint).value == "NUM":
        return "NUM"
    choices = [choice for choice in get_args(hint.__origin__) if choice not in ("none", "default")]
    return f'"{flag_of(hint).value or choices[0]}"'


def describe_rg_flags(text: str = "") -> str:
    """Return a section with a table for each section of `rg --help`, whose text may be given."""
    text = text or subprocess.run([sync.resolve().path, "--help"], capture_output=True, text=True, check=True).stdout
    reasons, tables = read_reasons(), dict[str, list[str]]()
    for flag in flags_of_rg(text):
        head = [f"## {flag.section.capitalize()}", "", "| rg | in Python | `ripwrap` |", "|---|---|---|"]
        names = ", ".join(f"`{name}`" for name in flag.names)
        row = f"| {names} | {in_python(flag, reasons)} | {in_commands(flag)} |"
        tables.setdefault(flag.section, head).append(row)
    return "\n\n".join("\n".join(table) for table in tables.values())


def _help(*command: str) -> str:
    """Return what `ripwrap COMMAND --help` prints."""
    os.environ["COLUMNS"] = "80"
    with redirect_stdout(StringIO()) as printed:
        cli.run([*command, "--help"])
    return printed.getvalue()


def _flags_in(text: str) -> dict[str, list[str]]:
    """Return the lines of each flag in a help text, by group."""
    return {group: found for group, lines in _HELP_GROUP.findall(text) if (found := _HELP_FLAG.findall(lines))}


def _others(of_command: Mapping[str, list[str]], shared: Mapping[str, list[str]]) -> str:
    """Return the text that names the shared flags of a command: those of a group, or all but a few."""
    said: list[str] = []
    for group, every in shared.items():
        has = [line for line in every if line in of_command.get(group, [])]
        lacks = [line for line in every if line not in has]
        if not lacks:
            said.append(f"all {group.lower()}")
        elif len(lacks) < len(has):
            said.append(f"{group.lower()} except {_named(lacks)}")
        elif has:
            said.append(_named(has))
    return f"Also, from [{SHARED_TITLE.lower()}](#{_anchor(SHARED_TITLE)}): {'; '.join(said)}.\n" if said else ""


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-")


def _named(lines: list[str]) -> str:
    """Return the long names of flags in lines of a help text."""
    return ", ".join(f"`{found[0]}`" for line in lines if (found := re.search(r"--[\w-]+", line)))


def _without(text: str, lines: Mapping[str, list[str]]) -> str:
    """Return a help text without the lines of some flags, and without their groups and usual exit codes."""
    for line in (one for group in lines.values() for one in group):
        text = text.replace(line, "", 1)
    return _EMPTY_GROUP.sub("", text).removesuffix(f"\n{EXIT_CODES}\n").removesuffix(f"\n{SETUP_EXIT_CODES}\n")


def _shared(of_commands: Mapping[tuple[str, ...], Mapping[str, list[str]]]) -> dict[str, list[str]]:
    """Return the lines of the flags that several commands have, by group; of a flag, the most frequent description."""
    shared: dict[str, list[str]] = {}
    for group in of_commands[SEARCH]:
        lines = [line for flags in of_commands.values() for line in flags.get(group, [])]
        times = Counter(lines)
        best = {_named([line]): line for line, count in reversed(times.most_common()) if count > 1}
        shared[group] = [line for line in times if best.get(_named([line])) == line]
    return {group: lines for group, lines in shared.items() if lines}


def every_command() -> Iterator[tuple[tuple[str, ...], Command]]:
    """Yield the words of each command and the command, in the order of help texts."""
    for name in NAMES:
        found = find(name)
        if isinstance(found, Command):
            yield (name,), found
        else:
            yield from (((name, below), one) for below, one in found.commands.items() if not one.hidden)


@cache  # the page, and the text of all pages for language models
def describe_commands() -> str:
    """Return a section for each command with its help; a section before them has the flags of several commands."""
    texts = {command: _help(*command) for command, _ in every_command()}
    flags = {command: _flags_in(text) for command, text in texts.items()}
    shared = _shared(flags)
    block = "\n".join(f"{group}:\n{''.join(lines)}" for group, lines in shared.items())
    sections, seen = [f"## {SHARED_TITLE}\n\n```text\n{block}```\n"], set[str]()
    for command, text in texts.items():
        own, title, examples = _without(text, shared).partition("\nExamples:\n")
        own += title + examples if examples not in seen else ""
        seen.add(examples)
        help_text = f"```text\n{own.strip()}\n```\n\n{_others(flags[command], shared)}"
        sections.append(f"## ripwrap {' '.join(command)}\n\n{help_text}")
    return "\n".join(sections)
