"""The program `ripwrap`: it runs a command, and prints errors.

On a terminal, matches are colored and grouped by file. In a pipe, each match is a plain line with the original bytes.
With `--json`, which most commands have, each line is one JSON value.
"""

import io
import os
import sys

from ripwrap.cli.commands import meaning
from ripwrap.cli.errors import FAILED, FOUND, complain, file_error, glob_hint, invalid_options
from ripwrap.cli.flags import spell_as_flag
from ripwrap.errors import RipwrapError, spell, spell_error


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
        given = sys.argv[1:] if arguments is None else arguments
        code = meaning(given)()
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
