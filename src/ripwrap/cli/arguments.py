"""Rewrite a command line, before cyclopts parses it, so that it means what rg's users expect.

- `ripwrap PATTERN` is `ripwrap search PATTERN`, `--files` is `ripwrap files`, and `help COMMAND` is `COMMAND --help`.
- Of two flags that contradict each other, the last one is used.
- The value of a flag may begin with a dash, as in `-e -x`. Any other word with a dash is a flag, also `-5` and `-inf`,
  which cyclopts takes for numbers.
- `-` is standard input.
"""

import os
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias, get_args, get_type_hints

from ripwrap._words import suggest
from ripwrap.cli.declarations import parameter_of
from ripwrap.cli.flags import STDIN, flag_name
from ripwrap.options import SearchOptions, flag_of

if TYPE_CHECKING:
    from cyclopts import App

Word: TypeAlias = tuple[str, list[str]]
"""Name of an option, or an empty name, and its tokens: a flag, a flag and its value, or another word."""

_OVERRIDES = (
    {"ignore_case", "smart_case", "case_sensitive"},
    {"word_regexp", "line_regexp"},
    {"multiline", "stop_on_nonmatch"},
    {"crlf", "null_data"},
    {"text", "binary"},
    {"pcre2", "engine"},
    {"sort", "sortr"},
    {"passthru", "context"},
    {"passthru", "before_context"},
    {"passthru", "after_context"},
    {"line_number", "no_line_number"},
    {"heading", "no_heading"},
    {"files_with_matches", "files_without_match", "count", "count_matches"},
)
"""Groups of options that override each other: the last one on the command line is used (`rg --help` of rg 15)."""

_AS_COMMANDS = {"--files": "files", "--type-list": "types"}
"""Flags of rg that are commands of ripwrap."""

END = "--"


def rewrite(arguments: Sequence[str], app: "App") -> list[str]:
    """Return the arguments in the form that cyclopts parses; `app` has the commands.

    Raises:
        UnknownOptionError: A word that begins with a dash is neither a flag nor the value of a flag.
    """
    given = named(arguments, list(app))
    if len(given) < 2:  # a command, `--help`, or nothing
        return given
    words, after = arranged(given)
    plain = [token for _, tokens in words for token in tokens]
    _check_dashes(app, plain)
    stdin = [] if after else [one for one in plain if one == STDIN]
    if stdin:  # cyclopts takes `-` for an option
        return [*(one for one in plain if one != STDIN), END, *stdin]
    return [*plain, *after]


def arranged(given: Sequence[str]) -> tuple[list[Word], list[str]]:
    """Return the words of a command line before `--`, without overridden flags, and the other words, with `--`."""
    words = list(_split(given))
    end = next((number for number, (_, tokens) in enumerate(words) if tokens == [END]), len(words))
    return _as_command(words[:end]), [token for _, tokens in words[end:] for token in tokens]


def named(arguments: Sequence[str], commands: Sequence[str]) -> list[str]:
    """Return the arguments with a command before them, unless they name one.

    A word like a command, such as `serach`, is a pattern only if the next arguments are paths that exist.
    """
    if not arguments:
        return []
    first, *rest = arguments
    if first == "help":
        return [*rest, "--help"]
    if first in commands:
        return [*arguments]
    if not first.startswith("-") and suggest(first, commands):
        plain = (tokens[0] for option, tokens in _split(rest) if not option)
        if any(not one.startswith("-") and not os.path.exists(one) for one in plain):
            return [*arguments]  # cyclopts suggests the command
    return ["search", *arguments]


def _as_command(words: Sequence[Word]) -> list[Word]:
    """Return the words of a command line without overridden flags; `--files` and `--type-list` change the command."""
    kept: list[Word] = []
    later: set[str] = set()
    for option, tokens in reversed(words):
        if not any(option in group and later & (group - {option}) for group in _OVERRIDES):
            kept.append((option, tokens))
            later.add(option)
    kept.reverse()
    if kept and kept[0][1] == ["search"]:
        for number, (_, tokens) in enumerate(kept):
            if command := _AS_COMMANDS.get(tokens[0]):
                return [("", [command]), *kept[1:number], *kept[number + 1 :]]
    return kept


def _split(arguments: Sequence[str]) -> Iterator[Word]:
    """Yield the name of each option with its tokens (flag and value). Combined letters such as `-in` are split.

    A token that is not a flag of `_names()`, such as a path, is yielded with an empty name. What follows `--` is not
    split.
    """
    names, rest = _names(), iter(arguments)
    for token in rest:
        left = token
        while len(left) > 2 and not left.startswith("--") and (found := names.get(left[:2])) and not found[1]:
            yield found[0], [left[:2]]
            left = f"-{left[2:]}"
        name = left.partition("=")[0] if left.startswith("--") else left[:2]
        option, takes_value = names.get(name, ("", False))
        value = list(islice(rest, int(takes_value and left == name)))
        # Joined to its flag, a value that begins with a dash is no flag.
        yield option, [f"{flag_name(option)}={value[0]}"] if value and value[0].startswith("-") else [left, *value]
        if token == END:
            yield from (("", [one]) for one in rest)


@cache
def _names() -> dict[str, tuple[str, bool]]:
    """Map each flag of `ripwrap search`, long or short, to the name of its option, and to True if it takes a value."""
    from ripwrap.cli.places import HistoryFlags, PlaceFlags  # late: `ripwrap --help` does not need them
    from ripwrap.cli.search_options import LineFlags, ManyRoots, ModeFlags, NearOptions, PatternFlags, SearchRun

    names = {flag_name("limit"): ("limit", True), "--unrestricted": ("unrestricted", False)}
    names["-u"] = names["--unrestricted"]
    for key, hint in get_type_hints(SearchOptions, include_extras=True).items():
        letter, named = flag_of(hint).short, (key, hint.__origin__ is not bool)
        names |= {one: named for one in (flag_name(key), f"-{letter}") if one != "-"}
    for shared in (PatternFlags, ModeFlags, LineFlags, NearOptions, PlaceFlags, HistoryFlags, ManyRoots, SearchRun):
        for key, hint in get_type_hints(shared, include_extras=True).items():
            takes_value = bool not in (hint.__origin__, *get_args(hint.__origin__))
            if parameter := parameter_of(hint):
                names |= dict.fromkeys((*parameter.names(key), *parameter.negatives()), (key, takes_value))
    return names


def _check_dashes(app: "App", arguments: Sequence[str]) -> None:
    """Raise `UnknownOptionError` for a word such as `-5`, which cyclopts would take for an argument.

    The arguments of the command are assembled only if there is such a word, because that takes 50 ms.
    """
    if not any(_is_number(one) for one in arguments):
        return
    from cyclopts import UNSET, Token, UnknownOptionError  # late: few command lines have such a word

    chain, apps, rest = app.parse_commands(arguments)
    known = apps[-1].assemble_argument_collection()
    words = iter(rest)
    for word in words:
        if not word.startswith("-") or word == STDIN:
            continue
        try:
            argument, _, implicit = known.match(word.partition("=")[0])
        except ValueError:
            if _is_number(word):
                raise UnknownOptionError(
                    token=Token(keyword=word, source="cli"),
                    argument_collection=known,
                    command_chain=chain,
                ) from None
            continue
        if not argument.parameter.count and "=" not in word and implicit is UNSET:
            next(words, None)  # its value


def _is_number(word: str) -> bool:
    if not word.startswith("-") or word == STDIN:
        return False
    from cyclopts.utils import is_option_like

    return not is_option_like(word)
