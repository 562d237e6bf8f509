"""Exit codes of the commands, and functions that phrase errors and print them to stderr."""

import errno
import io
import shlex
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ripwrap._text import shown
from ripwrap.cli.command import allowed_values, flag_name
from ripwrap.options import option_hints

if TYPE_CHECKING:
    from pydantic import ValidationError

FOUND, NOTHING, FAILED = 0, 1, 2
"""Exit codes, the same as rg's: something was found, nothing was found, an error."""


def complain(text: str) -> None:
    """Flush stdout, then print an error or another message to stderr, with `ripwrap: ` before it.

    A stderr that is full, closed, or a pipe without a reader changes neither results nor the exit code.
    """
    if sys.stdout is not None:
        sys.stdout.flush()
    say(f"ripwrap: {shown(text, lines=True)}")


def say(text: str) -> None:
    """Print a line to stderr, if it can be written."""
    try:
        print(text, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        sys.stderr = io.StringIO()  # the interpreter would write what is left in the old one, and exit with 120


def file_error(error: OSError) -> str:
    """Return an error message about a file that the user named, which says what to do."""
    advice = {errno.ENOENT: "check the path", errno.EISDIR: "name a file", errno.ENOTDIR: "check the path"}
    return f"{shown(str(error.filename))}: {error.strerror}; {advice.get(error.errno or 0, 'check its permissions')}"


def glob_hint(path: object) -> str:
    """Return the end of an error about a missing path that looks like a glob, which no shell has expanded."""
    is_glob = isinstance(path, str) and any(one in path for one in "*?[")
    return f"; did you mean -g {shlex.quote(shown(str(path)))}?" if is_glob else ""


def invalid_options(error: "ValidationError") -> Iterator[str]:
    """Yield an error message for each option with a wrong value.

    The message says which values are allowed. For an option that takes any text, the message has Pydantic's reason.
    """
    hints = option_hints()
    given = {str(problem["loc"][0]): problem for problem in reversed(error.errors())}
    for name, problem in reversed(given.items()):
        allowed = allowed_values(hints[name].__origin__) if name in hints else ""
        if problem["type"] == "less_than_equal":
            allowed = f"{problem.get('ctx', {})['le']} or less"
        yield (
            f"{flag_name(name)} must be {allowed}, got {problem['input']}"
            if allowed
            else (f"{flag_name(name)}: {problem['msg']}")
        )
