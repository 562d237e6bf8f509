"""Exit codes of the commands, and functions that phrase errors and print them to stderr."""

import shlex
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from cyclopts import (
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)
from cyclopts import ValidationError as InvalidValueError

from ripwrap._text import shown
from ripwrap._words import suggest
from ripwrap.cli.flags import flag_name
from ripwrap.options import SearchOptions, Size

if TYPE_CHECKING:
    from pydantic import ValidationError

FOUND, NOTHING, FAILED = 0, 1, 2
"""Exit codes, the same as rg's: something was found, nothing was found, an error."""


def complain(text: str) -> None:
    """Flush stdout, then print an error or another message to stderr, with `ripwrap: ` before it."""
    if sys.stdout is not None:
        sys.stdout.flush()
    print(f"ripwrap: {shown(text, lines=True)}", file=sys.stderr)


def glob_hint(path: object) -> str:
    """Return the end of an error about a missing path that looks like a glob, which no shell has expanded."""
    is_glob = isinstance(path, str) and any(one in path for one in "*?[")
    return f"; did you mean -g {shlex.quote(shown(str(path)))}?" if is_glob else ""


def invalid_options(error: "ValidationError") -> Iterator[str]:
    """Yield an error message for each option with a wrong value.

    The message says which values are allowed. For an option that takes any text, the message has Pydantic's reason.
    """
    hints = get_type_hints(SearchOptions, include_extras=True)
    given = {str(problem["loc"][0]): problem for problem in reversed(error.errors())}
    for name, problem in reversed(given.items()):
        allowed = _allowed(hints[name].__origin__) if name in hints else ""
        if problem["type"] == "less_than_equal":
            allowed = f"{problem.get('ctx', {})['le']} or less"
        yield (
            f"{flag_name(name)} must be {allowed}, got {problem['input']}"
            if allowed
            else (f"{flag_name(name)}: {problem['msg']}")
        )


def usage_error(error: CycloptsError) -> str:
    """Return one line that describes an error in the arguments of a command."""
    command = " ".join(("ripwrap", *(error.command_chain or ())))
    advice = f"; see `{command} --help`"
    match error:
        case UnknownOptionError():
            name = (error.token.keyword or error.token.value).partition("=")[0]
            from ripwrap.cli.rg_flags import explain_missing  # late: only this error needs the table

            if said := explain_missing(name):
                return said
            arguments = error.argument_collection
            meant = _meant(name, {one for each in arguments for one in each.names if one not in each.negatives})
            return f"unknown option {name}" + (f"; did you mean {meant}?" if meant else advice)
        case UnknownCommandError(unused_tokens=[name, *_], app=app) if app is not None:
            kind = "option" if name.startswith("-") else "command"
            meant = suggest(name, [one for one in app if not one.startswith("-")])
            return f"unknown {kind} {name}" + (f"; did you mean {meant}?" if meant else advice)
        case MissingArgumentError(argument=argument) if argument is not None:
            return f"{error.keyword} needs a value{advice}" if error.keyword else f"{argument.name} is missing{advice}"
        case CoercionError(token=token) if token is not None and (allowed := _allowed(error.target_type)):
            argument = error.argument
            name = token.keyword or (argument.name if argument is not None else "value")
            return f"{name} must be {allowed}, got {token.value}"
        case InvalidValueError(argument=argument) if argument is not None:
            return f"{argument.name} {error.exception_message}"
        case UnusedCliTokensError(unused_tokens=[value, *_]):
            return f"{'unknown option' if value.startswith('-') else 'unexpected argument'} {value}{advice}"
        case _:
            return " ".join(str(error).split())


def _meant(name: str, known: set[str]) -> str:
    """Return the flag in `known` that has the same meaning as the unknown flag `name`, or a similar name.

    Return `--glob='!…'` for names such as `--exclude`, and an empty text if no flag fits.
    """
    plain = {one.removeprefix("--").replace("-", "_"): one for one in known if one.startswith("--")}
    meant = suggest(name.removeprefix("--").replace("-", "_"), plain)
    return plain.get(meant, "--glob='!…'" if meant else "")


def _allowed(kind: Any) -> str:
    """Return a phrase for the values that an option of the type `kind` takes; empty if the option takes any text."""
    if get_origin(kind) is Literal:
        *others, last = map(str, get_args(kind))
        return f"{', '.join(others)} or {last}"
    if kind == Size:
        return "in bytes, or with K, M or G as in 50K"
    return {int: "a whole number, 0 or more", float: "a number", bool: "given without a value"}.get(kind, "")
