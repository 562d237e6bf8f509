"""The program `ripwrap`: its commands, and the errors that it prints.

On a terminal, matches are colored and grouped by file. In a pipe, each match is a plain line with the original bytes.
With `--json`, which most commands have, each line is one JSON value.
"""

import io
import os
import sys
from importlib import import_module

from cyclopts import App, CycloptsError, Parameter

from ripwrap.cli.arguments import rewrite
from ripwrap.cli.errors import FAILED, FOUND, complain, glob_hint, invalid_options, usage_error
from ripwrap.cli.flags import OTHER, spell_as_flag
from ripwrap.cli.help import HelpFormatter, epilogue
from ripwrap.errors import RipwrapError, spell, spell_error

app: App = App(
    name="ripwrap",
    version=lambda: import_module("importlib.metadata").version("ripwrap"),  # late: it takes 15 ms
    version_flags=["--version", "-V"],
    help="Search files with ripgrep, or serve searches to agents.",
    usage="ripwrap COMMAND [OPTIONS] [ARGUMENTS]\n       ripwrap [OPTIONS] PATTERN [PATH]...",
    help_format="plaintext",
    help_formatter=HelpFormatter(),
    group_parameters=OTHER,
    default_parameter=Parameter(allow_repeating=True),
    help_epilogue=epilogue(
        'ripwrap search "async def" src',
        'ripwrap "async def" src                     # the same',
        "ripwrap rank 'how are cookies stored'",
        "ripwrap tree src",
        "ripwrap COMMAND --help",
    ),
)
app["--help"].group = app["--version"].group = OTHER
app["--help"].sort_key = 1

# The module of a command is imported when the command is used, and has the usage and the options of the command. The
# list of all commands also needs one line about each command, so these lines are here.
for _number, (_command, _help) in enumerate(
    {
        "search:search": "Search files for a regular expression.",
        "files:files": "List the files that a search would read.",
        "files:tree": "Show files as a tree, shortened to --limit entries.",
        "files:types": "List the file types that --type accepts, with their globs.",
        "files_matching:files-matching": "List the files that match several patterns.",
        "watch:watch": "Search again each time files change.",
        "read:read": "Read lines of a file, with their numbers.",
        "read:expand": "Print the definition or block around a line.",
        "rank:rank": "Find code by words or a name, best first.",
        "refs:refs": "Find the definitions and uses of a name.",
        "outline:outline": "List the definitions of a file, with their lines.",
        "index:index": "Keep an index of a directory, and search with it.",
        "scan:scan": "Search for texts that match rules, e.g. secrets.",
        "why:why": "Show why a search reads a file, or does not.",
        "replace:replace": "Show a diff of replacements, or write them with --apply.",
        "code:code": "Search code by its syntax, or replace it.",
        "replace:undo": "Undo the last replacement in a directory.",
        "setup:doctor": "Show which rg is used, and what is missing.",
        "setup:install": "Download rg, check its hash, and install it.",
        "mcp:mcp": "Serve tools to agents, over MCP.",
        "agent:agent": "Set up agents to search with ripwrap, or undo that.",
    }.items()
):
    _module, _colon, _name = _command.partition(":")
    app.command(f"ripwrap.cli.{_module}:{_name.replace('-', '_')}", name=_name, help=_help, sort_key=_number)
app.command(
    "ripwrap.cli.completion:completion",
    name="--install-completion",
    help="Install the completion of commands and flags for a shell.",
    group=OTHER,
)


def run(arguments: list[str] | None = None) -> int:
    """Run the command in `arguments`, and return its exit code; `None` is the command line of this process.

    Most commands have the exit codes of rg: 0 if something was found, 1 if nothing was found, and 2 after an error.
    """
    for stream in (sys.stdout, sys.stderr):  # a question mark for a character that the console cannot show
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    if sys.stderr is None:  # stderr is closed, so `print` would write errors to stdout
        sys.stderr = io.StringIO()
    if sys.stdout is None:
        complain("stdout is closed, so no results can be printed; send stdout to a file or a pipe")
        return FAILED
    try:
        given = rewrite(sys.argv[1:] if arguments is None else arguments, app)
        code: int | None = app(given, result_action="return_value", exit_on_error=False, print_error=False)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has closed the pipe; drop the buffered output
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FOUND
    except CycloptsError as error:
        complain(usage_error(error))
        return FAILED
    except (RipwrapError, ValueError, OSError) as error:
        from pydantic import ValidationError  # late: --help does not need it

        if isinstance(error, ValidationError):
            for line in invalid_options(error):
                complain(line)
            return FAILED
        notes = [spell(note, spell_as_flag) for note in getattr(error, "__notes__", ())]
        hint = glob_hint(error.filename) if isinstance(error, FileNotFoundError) else ""
        complain("\n".join((spell_error(error, spell_as_flag) + hint, *notes)))
        return FAILED
    return code or FOUND
