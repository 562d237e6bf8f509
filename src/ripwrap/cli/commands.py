"""Commands by name, and what a command line means.

The module of a command is imported when the command is used.
"""

import io
import os
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module

from ripwrap._text import suggest
from ripwrap.cli.command import Command, CommandGroup, Word
from ripwrap.cli.flags import spell_as_flag
from ripwrap.cli.terminal import FAILED, FOUND, complain, file_error, glob_hint, invalid_options
from ripwrap.errors import RipwrapError, spell, spell_error

COMMANDS: dict[str, tuple[str, str]] = {
    "search": ("search", "Search files for a regular expression."),
    "files": ("files", "List the files that a search would read."),
    "tree": ("files", "Show files as a tree, shortened to --limit entries."),
    "types": ("files", "List the file types that --type accepts, with their globs."),
    "files-matching": ("files", "List the files that match several patterns."),
    "watch": ("watch", "Search again each time files change."),
    "read": ("read", "Read lines of a file, with their numbers."),
    "expand": ("read", "Print the definition or block around a line."),
    "rank": ("read", "Find code by words or a name, best first."),
    "refs": ("read", "Find the definitions and uses of a name."),
    "outline": ("read", "List the definitions of a file, with their lines."),
    "index": ("index", "Keep an index of a directory, and search with it."),
    "scan": ("scan", "Search for texts that match rules, e.g. secrets."),
    "why": ("files", "Show why a search reads a file, or does not."),
    "replace": ("replace", "Show a diff of replacements, or write them with --apply."),
    "code": ("read", "Search code by its syntax, or replace it."),
    "undo": ("replace", "Undo the last replacement in a directory."),
    "doctor": ("setup", "Show which rg is used, and what is missing."),
    "install": ("setup", "Download rg, check its hash, and install it."),
    "mcp": ("mcp", "Serve tools to agents, over MCP."),
    "agent": ("agent", "Set up agents to search with ripwrap, or undo that."),
    "--install-completion": ("completion", "Install the completion of commands and flags for a shell."),
}
"""Map the name of each command to its module and the line about it."""

NAMES: tuple[str, ...] = tuple(name for name in COMMANDS if not name.startswith("-"))

_HELP, _VERSION = {"--help", "-h"}, {"--version", "-V"}

_AS_COMMANDS = {"--files": "files", "--type-list": "types"}
"""Flags of rg that are commands of ripwrap."""

_OF_TYPES = ("type_add", "type_clear")
"""Options that would change a list of types, so that they are not ignored."""

_EXAMPLES = (
    'ripwrap search "async def" src',
    'ripwrap "async def" src                     # the same',
    "ripwrap rank 'how are cookies stored'",
    "ripwrap tree src",
    "ripwrap COMMAND --help",
)


def find(name: str) -> Command | CommandGroup:
    """Return the command of a name, and import its module."""
    module = import_module(f"ripwrap.cli.{COMMANDS[name][0]}")
    found: Command | CommandGroup = getattr(module, name.removeprefix("--install-").replace("-", "_"))
    return found


def execute(arguments: Sequence[str]) -> int:
    """Run what a command line stands for, and return the exit code.

    `ripwrap PATTERN` is `ripwrap search PATTERN`, `--files` is `ripwrap files`, and `help COMMAND` is `COMMAND --help`.
    """
    words = [*arguments[1:], "--help"] if arguments[:1] == ["help"] else [*arguments]
    if not words or words[0] in _HELP:
        from ripwrap.cli.help import program_help  # late: few command lines ask for help

        return _print(program_help({name: about for name, (_, about) in COMMANDS.items()}, _EXAMPLES))
    if words[0] in _VERSION:
        return _print_version()
    name, *rest = words if words[0] in COMMANDS else ["search", *words]
    if name != words[0] and not words[0].startswith("-"):
        word = words[0]
        if suggest(word, NAMES):
            from ripwrap.cli.search import search

            if any(not os.path.exists(other or "") for flag, other in search.split(words[1:]) if not flag):
                raise ValueError(_unknown(word, NAMES, "ripwrap"))
    found, title = find(name), f"ripwrap {name}"
    if isinstance(found, CommandGroup):
        return _execute_in(found, title, rest)
    given = [*found.split(rest)]
    listings = [_AS_COMMANDS[flag] for flag, _ in given if flag in _AS_COMMANDS] if name == "search" else []
    if listings:  # as in rg, the last one is used
        listing = find(listings[-1])
        assert isinstance(listing, Command)  # noqa: S101 - for type checkers
        found, title, given = listing, f"ripwrap {listings[-1]}", [*_for_listing(given, found, listing)]
    return _call(found, title, given)


def _for_listing(words: Sequence[Word], search: Command, listing: Command) -> Iterator[Word]:
    """Yield the words of a command line without flags of patterns and lines, which rg accepts for a listing, too."""
    for flag, value in words:
        of = search.flags.get(flag)
        ignored = of is not None and (of.argument in ("patterns", "lines", "options") or of.key == "quiet")
        if of and of.key == "pretty" and "--color" in listing.flags:
            yield "--color", "always"
        elif flag in listing.flags or not (ignored or flag in _AS_COMMANDS) or (of and of.key in _OF_TYPES):
            yield flag, value


def _execute_in(group: CommandGroup, title: str, words: Sequence[str]) -> int:
    if not words or words[0] in _HELP:
        from ripwrap.cli.help import group_help  # late, too

        return _print(group_help(title, group))
    name, *rest = words
    if name in _VERSION:
        return _print_version()
    if name not in group.commands:
        raise ValueError(_unknown(name, [name for name, one in group.commands.items() if not one.hidden], title))
    found = group.commands[name]
    return _call(found, f"{title} {name}", [*found.split(rest)])


def _call(command: Command, title: str, words: Sequence[Word]) -> int:
    flags = {flag for flag, _ in words} - command.flags.keys()
    if flags & _HELP:
        from ripwrap.cli.help import command_help  # late, too

        return _print(command_help(title, command))
    if flags & _VERSION:
        return _print_version()
    positional, named = command.parse(words, title)
    return command.run(*positional, **named)


def _unknown(name: str, known: Sequence[str], title: str) -> str:
    meant = suggest(name, known)
    kind = "option" if name.startswith("-") else "command"
    return f"unknown {kind} {name}" + (f"; did you mean {meant}?" if meant else f"; see `{title} --help`")


def _print_version() -> int:
    from ripwrap.cli.setup import version  # late: it takes 15 ms

    return _print(version())


def _print(text: str) -> int:
    print(text)
    return FOUND


def run(arguments: list[str] | None = None) -> int:
    """Run the command in `arguments`, and return its exit code; `None` is the command line of this process."""
    for stream in (sys.stdout, sys.stderr):  # a question mark for a character that the console cannot show
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    if sys.stderr is None:  # stderr is closed, so `print` would write errors to stdout
        sys.stderr = io.StringIO()
    if sys.stdout is None:
        complain("stdout is closed, so no results can be printed; send stdout to a file or a pipe")
        return FAILED
    try:
        given = sys.argv[1:] if arguments is None else arguments
        code = execute(given)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has closed the pipe; drop the buffered output
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FOUND
    except (RipwrapError, ValueError, OSError) as error:
        from pydantic import ValidationError  # late: --help does not need it

        if isinstance(error, ValidationError):
            for line in invalid_options(error):
                complain(line)
            return FAILED
        notes = [spell(note, spell_as_flag) for note in getattr(error, "__notes__", ())]
        if isinstance(error, OSError) and error.filename and type(error.strerror) is str:
            text = file_error(error)  # of the system; errors of the library have their own advice
        else:
            text = spell_error(error, spell_as_flag)
            text += glob_hint(error.filename) if isinstance(error, FileNotFoundError) else ""
        complain("\n".join((text, *notes)))
        return FAILED
    return code
