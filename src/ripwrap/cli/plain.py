"""Plain command lines of `ripwrap search`, `files` and `mcp`, which are run without cyclopts.

The flags are those that cyclopts has, because they are read from the same annotations. Only plain forms of flags and
values are read here. All other command lines, also wrong ones and those that ask for help, are left to cyclopts.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache, partial
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Unpack, get_args, get_origin, get_type_hints

from ripwrap.cli.arguments import END, Word, arranged, named
from ripwrap.cli.commands import FIRST_FLAGS, NAMES
from ripwrap.cli.declarations import Parameter, parameter_of
from ripwrap.cli.flags import STDIN


class _NotPlainError(Exception):
    """A command line, or a part of it, that is left to cyclopts."""


class _Flag(NamedTuple):
    """What one spelling of a flag means."""

    argument: str
    field: str
    kind: Any
    declared: Parameter
    negative: bool = False


def run_plain(arguments: Sequence[str]) -> int | None:
    """Run a plain command line, and return the exit code; `None` if it is left to cyclopts."""
    run = plain_call(arguments)
    return None if run is None else run()


def plain_call(arguments: Sequence[str]) -> Callable[[], int] | None:
    """Return the call that a plain command line stands for; `None` if it is left to cyclopts."""
    given = named(arguments, (*FIRST_FLAGS, *NAMES))
    if not given:
        return None
    words, after = arranged(given)
    function = _function(words[0][1][0]) if words else None
    if function is None:
        return None
    try:
        positional, values = _read(function, words[1:], after)
        return partial(function, *positional, **_bound(function, values))
    except _NotPlainError:
        return None


def _function(command: str) -> Callable[..., int] | None:
    if command == "search":
        from ripwrap.cli.run_search import run_search

        return run_search
    if command == "files":
        from ripwrap.cli.run_files import run_files

        return run_files
    if command == "mcp":
        from ripwrap.cli.run_mcp import run_mcp

        return run_mcp
    return None


def _read(
    function: Callable[..., int], words: Sequence[Word], after: Sequence[str]
) -> tuple[list[str], dict[tuple[str, str], Any]]:
    """Return the positional arguments of a command, and the values of its flags by their arguments and fields."""
    flags, positional, values = _flags(function), list[str](), dict[tuple[str, str], Any]()
    rest = iter(words)
    for _, tokens in rest:
        first = tokens[0]
        if not first.startswith("-") or first == STDIN:
            positional += tokens
            continue
        name, flag, joined = _parted(first, flags)
        given = [*joined, *tokens[1:]]
        if flag is not None and _takes_value(flag) and not given:  # a flag that `ripwrap search` does not have
            _, following = next(rest, ("", [STDIN]))
            given = [one for one in following if not one.startswith("-")]
        if flag is None or name == END or len(given) != _takes_value(flag):
            raise _NotPlainError
        key = flag.argument, flag.field
        values[key] = _value(flag, given, values.get(key))
    if after and STDIN in positional:  # cyclopts has an error for it
        raise _NotPlainError
    paths = [*(one for one in positional if one != STDIN), *(one for one in positional if one == STDIN), *after[1:]]
    if paths and "paths" not in function.__annotations__:
        raise _NotPlainError
    return paths, values


def _parted(token: str, flags: Mapping[str, _Flag]) -> tuple[str, _Flag | None, list[str]]:
    """Return the name of a flag, what it means, and the value that is joined to it."""
    if token.startswith("--"):
        name, joined, value = token.partition("=")
        return name, flags.get(name), [value] if joined else []
    name, value = token[:2], token[2:]
    return name, flags.get(name) if value[:1] != "=" else None, [value] if value else []


def _takes_value(flag: _Flag) -> bool:
    return flag.kind is not bool and not flag.declared.settings.get("count")


def _value(flag: _Flag, given: Sequence[str], before: Any) -> Any:
    """Return the value of a flag; `before` is its value so far, `None` if it was not given yet."""
    kind, settings = flag.kind, flag.declared.settings
    if kind is bool:
        return not flag.negative
    if settings.get("count"):
        return (before or 0) + 1
    text = given[0]
    if get_origin(kind) is UnionType:
        kind, *others = (one for one in get_args(kind) if one is not NoneType)
        if others:
            raise _NotPlainError
    value = _converted(kind, text, before)
    if check := settings.get("validator"):
        try:
            check(kind, value)
        except ValueError:
            raise _NotPlainError from None
    return value


def _converted(kind: Any, text: str, before: Any) -> Any:
    if kind is str:
        return text
    if kind is int and text.isascii() and text.isdigit():
        return int(text)
    if kind is float and text.isascii() and text.isdigit():
        return float(text)
    if get_origin(kind) is Literal and text in get_args(kind):
        return text
    if kind == list[str]:
        return [*(before or ()), text]
    if kind == tuple[str, ...]:
        return (*(before or ()), text)
    raise _NotPlainError


def _bound(function: Callable[..., int], values: Mapping[tuple[str, str], Any]) -> dict[str, Any]:
    """Return the keyword arguments of a command for the values of its flags."""
    hints = _hints(function)
    bound, fields = dict[str, Any](), dict[str, dict[str, Any]]()
    for (argument, field), value in values.items():
        if not field:
            bound[argument] = value
        elif is_dataclass(hints[argument]):
            fields.setdefault(argument, {})[field] = value
        else:
            bound[field] = value
    return bound | {argument: hints[argument](**given) for argument, given in fields.items()}


@cache
def _hints(function: Callable[..., int]) -> dict[str, Any]:
    return get_type_hints(function, include_extras=True)


@cache
def _flags(function: Callable[..., int]) -> dict[str, _Flag]:
    """Map each spelling of each flag of a command to what it means."""
    return {
        name: meaning
        for argument, hint in _hints(function).items()
        for field, inner in _fields(hint)
        if (declared := parameter_of(inner)) is not None
        for name, meaning in _spelled(_Flag(argument, field, inner.__origin__, declared))
    }


def _fields(hint: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a dataclass or of `**options` with their annotations; otherwise the annotation itself."""
    of = get_args(hint)[0] if get_origin(hint) is Unpack else hint
    if of is not hint or is_dataclass(of):
        yield from get_type_hints(of, include_extras=True).items()
    else:
        yield "", hint


def _spelled(flag: _Flag) -> Iterator[tuple[str, _Flag]]:
    for name in flag.declared.names(flag.field or flag.argument):
        yield name, flag
    if flag.kind is bool:
        for name in flag.declared.negatives():
            yield name, flag._replace(negative=True)
