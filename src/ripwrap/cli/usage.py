"""Errors in the arguments of a command, of which cyclopts makes exceptions, as lines of text."""

from cyclopts import (
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)
from cyclopts import ValidationError as InvalidValueError

from ripwrap._words import suggest
from ripwrap.cli.errors import allowed_values


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
        case CoercionError(token=token) if token is not None and (allowed := allowed_values(error.target_type)):
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
