"""A command: its function, whose signature declares the flags, and the texts of its help.

argparse is not used: it refuses a value that begins with a dash (`-e -x`), takes `-5` for a number, and leaves paths
after flags over.

Flags of rg that the command line does not have: why, and what to use.

Errors about an unknown flag quote this table, and docs/reference/command-line.md has it.
"""

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Self, TypeAlias, Union, get_args, get_origin, get_type_hints

from ripwrap._text import suggest
from ripwrap.options import OVERRIDES, FileOptions, Flag, OptionGroup, Paths, Size, Strings, flag_of, option_hints

Word: TypeAlias = tuple[str, str | None]
"""Flag and its value, or an empty flag and another word."""

Texts: TypeAlias = tuple[str, ...]
"""Values of a flag that may be repeated."""

END, STDIN = "--", "-"
"""Word after which no word is a flag; path, or value of `-f`, that stands for standard input."""

EXIT_CODES = """\
Exit codes:
  0  something was found
  1  nothing was found
  2  an error, or an unreadable file or directory; stderr says which"""

SETUP_EXIT_CODES = """\
Exit codes:
  0  success
  2  an error; stderr says which"""

OTHER, RIPWRAP = "Options", "ripwrap options"
GROUPS: Mapping[OptionGroup, str] = {
    "pattern": "Pattern options",
    "files": "File options",
    "output": "Output options",
    "engine": "Engine options",
}
"""Titles of the groups of the library's options in help texts."""

_OVERRIDES = (
    *OVERRIDES,
    {"line_number", "no_line_number"},
    {"heading", "no_heading"},
    {"files_with_matches", "files_without_match", "count", "count_matches"},
)
"""Groups of options that override each other: the last one on the command line is used (`rg --help` of rg 15)."""

_STANDS_FOR: Mapping[str, Mapping[str, object]] = {"pretty": {"color": "always", "heading": True, "line_number": True}}
"""Options for which an option stands; flags after it override them."""

_UNRESTRICTED = (("no_ignore",), ("hidden", "include_git"), ("binary",))
"""Options that the first, the second and the third `-u` switch on; rg reads `.git` with `--hidden`."""

_NOT_NEGATED = ("no_line_number",)
"""Options without a negated flag. The negation of `--no-line-number` is the separate option `--line-number` (`-n`)."""

LIKE_RG: FileOptions = {"follow": False}
"""Options whose default in the command line is that of rg, and not that of the library."""


@dataclass(frozen=True, slots=True)
class Option:
    """Flag or argument of a command, as a part of the annotation of a parameter or field.

    Without `names`, the flag is that of the parameter, such as `--max-lines`; names in `off` set False. `default` is
    what help texts say in place of the default of the parameter.
    """

    help: str
    group: str = OTHER
    value: str = ""
    names: tuple[str, ...] = ()
    short: str = ""
    off: tuple[str, ...] = ()
    default: str | None = None
    hidden: bool = False


class Parameter(NamedTuple):
    """Flag or argument: `key` of the parameter `argument` of a function; `checked` if the library checks the value."""

    argument: str
    key: str
    kind: Any
    names: tuple[str, ...]
    option: Option
    default: Any
    checked: bool = False

    @property
    def takes_value(self) -> bool:
        """Return True if the flag has a value."""
        return self.kind is not bool and self.key != "unrestricted"

    @property
    def choices(self) -> tuple[str, ...]:
        """Values that the flag takes; empty if it takes others."""
        return get_args(self.kind) if get_origin(self.kind) is Literal else ()

    def converted(self, text: str, name: str, before: Any) -> Any:
        """Return the value for a text; `name` is the typed flag, and `before` its value so far."""
        if self.kind == list[str]:
            return [*(before or ()), text]
        if self.kind == tuple[str, ...]:
            return (*(before or ()), text)
        try:
            value: Any = self.kind(text) if self.kind in (int, float) else text
        except ValueError:
            value = None
        if value is None or (self.choices and text not in self.choices):
            raise ValueError(f"{name} must be {allowed_values(self.kind)}, got {text}")
        if self.kind is int and not self.checked and value < 0:
            raise ValueError(f"{self.names[-1]} must be {allowed_values(int)}, got {text}")
        return value


class Command:
    """Decorator of a function that returns the exit code, and whose docstring is the description of the command."""

    run: Callable[..., int]

    def __init__(
        self,
        arguments: str = "",
        *,
        examples: Sequence[str] = (),
        exit_codes: str = EXIT_CODES,
        defaults: FileOptions | None = None,
        without: Collection[str] = (),
        hidden: bool = False,
    ) -> None:
        """Describe a command that has other `defaults` of the library's options, and is `without` some of them."""
        self.arguments = arguments
        self.examples = examples
        self.exit_codes = exit_codes
        self.hidden = hidden
        self._defaults: FileOptions = LIKE_RG if defaults is None else defaults
        self._without = without

    def __call__(self, run: Callable[..., int]) -> Self:
        """Return the command that runs a function."""
        self.run = run
        return self

    @cached_property
    def parameters(self) -> tuple[list[Parameter], list[Parameter]]:
        """Arguments and flags, in the order of the signature."""
        arguments, flags = list[Parameter](), list[Parameter]()
        hints = get_type_hints(self.run, include_extras=True)
        for name, parameter in inspect.signature(self.run).parameters.items():
            hint = hints[name]
            if parameter.kind is parameter.VAR_KEYWORD:
                flags += self._of_library(name, get_args(hint)[0])
            elif is_dataclass(hint):
                inner = get_type_hints(hint, include_extras=True)
                flags += (_parameter(name, one.name, inner[one.name], one.default) for one in fields(hint))
            elif parameter.kind is parameter.KEYWORD_ONLY:
                flags.append(_parameter(name, name, hint, parameter.default))
            else:
                found = _parameter(name, name, hint, parameter.default)
                arguments.append(found._replace(names=found.option.names or (name.upper(),)))
        return arguments, flags

    @cached_property
    def flags(self) -> Mapping[str, Parameter]:
        """Flag of each name."""
        return {name: one for one in self.parameters[1] for name in (*one.names, *one.option.off)}

    def _of_library(self, argument: str, options: type[FileOptions]) -> Iterator[Parameter]:
        """Yield the flags of the options in a TypedDict, with rg's names and letters."""
        for key, hint in option_hints(options).items():
            if key in self._without:
                continue
            flag, name, kind = flag_of(hint), flag_name(key), _kind(hint.__origin__)
            off = (negated(name),) if kind is bool and key not in _NOT_NEGATED else ()
            default = "on" if self._defaults.get(key, flag.default) else "rg decides" if flag.negated else ""
            option = Option(flag.help, GROUPS[flag.group], flag.value, off=off, default=default)
            names = (f"-{flag.short}", name) if flag.short else (name,)
            yield Parameter(argument, key, kind, names, option, None, checked=True)
        option = Option("No ignore files; -uu: hidden files, too; -uuu: binary, too", GROUPS["files"], default="")
        yield Parameter(argument, "unrestricted", int, ("-u", "--unrestricted"), option, 0)

    def split(self, words: Iterable[str]) -> Iterator[Word]:
        """Yield each flag with its value, which may begin with a dash, and other words with an empty flag.

        Combined letters such as `-in` are split, and flags that the command does not have are yielded without a value.
        """
        rest = iter(words)
        for word in rest:
            if word == END:
                yield from (("", one) for one in rest)
            elif word == STDIN or not word.startswith("-"):
                yield "", word
            elif word.startswith(END):
                name, joined, value = word.partition("=")
                yield name, value if joined else next(rest, None) if self._takes_value(name) else None
            else:
                yield from self._letters(word, rest)

    def _letters(self, word: str, rest: Iterator[str]) -> Iterator[Word]:
        for number, letter in enumerate(word[1:], 2):
            name = f"-{letter}"
            if self._takes_value(name):
                joined = word[number:]
                yield name, joined.removeprefix("=") if joined else next(rest, None)
                return
            if not letter.isalpha() and name not in self.flags:  # -5
                yield word, None
                return
            yield name, None

    def _takes_value(self, name: str) -> bool:
        return name in self.flags and self.flags[name].takes_value

    def parse(self, words: Iterable[Word], title: str) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments of `run` for the words of a command line."""
        advice = f"; see `{title} --help`"
        others, flags, given = list[str](), list[Word](), dict[str, Any]()
        for name, value in words:
            if not name:
                others.append(value or "")
                continue
            if name not in self.flags:
                raise ValueError(self._unknown(name, advice))
            if self._takes_value(name) and value is None:
                raise ValueError(f"{name} needs a value{advice}")
            if value is not None and not self._takes_value(name):
                raise ValueError(f"{name} must be {allowed_values(bool)}, got {value}")
            flags.append((name, value))
        for name, value in flags:
            self._set(given, name, value)
        positional = self._positional(others, advice)
        for one in self.parameters[1]:
            if one.default is inspect.Parameter.empty and one.key not in given:
                raise ValueError(f"{one.names[-1]} is missing{advice}")
        return positional, self._named(given)

    def _set(self, given: dict[str, Any], name: str, value: str | None) -> None:
        """Set the value of the flag of a name, and remove the options that it overrides."""
        flag = self.flags[name]
        others = _STANDS_FOR.get(flag.key, {})
        for key in (flag.key, *others):
            for other in (one for group in _OVERRIDES if key in group for one in group - {key}):
                given.pop(other, None)
        given.update(others)
        if value is not None:
            given[flag.key] = flag.converted(value, name, given.get(flag.key))
        else:
            given[flag.key] = name not in flag.option.off if flag.kind is bool else given.get(flag.key, 0) + 1

    def _positional(self, words: Sequence[str], advice: str) -> list[Any]:
        values, rest = list[Any](), list(words)
        hints = inspect.signature(self.run).parameters
        for one in self.parameters[0]:
            if hints[one.argument].kind is inspect.Parameter.VAR_POSITIONAL:
                values += (one.converted(word, one.names[0], None) for word in rest)
                rest = []
            elif rest:
                values.append(one.converted(rest.pop(0), one.names[0], None))
            elif one.default is inspect.Parameter.empty:
                raise ValueError(f"{one.names[0]} is missing{advice}")
        if rest:
            raise ValueError(f"unexpected argument {rest[0]}{advice}")
        return values

    def _named(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the keyword arguments of `run` for the values of flags."""
        named, hints = dict[str, Any](), get_type_hints(self.run)
        groups: dict[str, dict[str, Any]] = {name: {} for name, hint in hints.items() if is_dataclass(hint)}
        if any(one.checked for one in self.parameters[1]):
            level = given.pop("unrestricted", 0)
            keys = {one.key for one in self.parameters[1]}
            named |= self._defaults
            named |= {key: True for opened in _UNRESTRICTED[:level] for key in opened if key in keys}
        for one in self.parameters[1]:
            if one.key in given:
                groups.get(one.argument, named)[one.key] = given[one.key]
        return named | {name: hints[name](**values) for name, values in groups.items()}

    def _unknown(self, name: str, advice: str) -> str:
        """Return an error message about an unknown flag, with a flag of the same meaning or of a similar name."""
        if missing := next((one for one in MISSING if name in one.flags), None):
            return f"{name} is not an option of ripwrap: {missing.reason}; {missing.instead}"
        names = (one for each in self.parameters[1] for one in each.names if one.startswith(END))
        plain = {one.removeprefix(END).replace("-", "_"): one for one in names}
        meant = suggest(name.removeprefix(END).replace("-", "_"), plain)
        found = plain.get(meant, "--glob='!…'" if meant else "")
        return f"unknown option {name}" + (f"; did you mean {found}?" if found else advice)


@dataclass(frozen=True)
class CommandGroup:
    """Command that has commands, such as `ripwrap index`."""

    help: str
    commands: Mapping[str, Command]
    examples: Sequence[str]
    exit_codes: str = EXIT_CODES


def _parameter(argument: str, key: str, hint: Any, default: Any) -> Parameter:
    """Return the flag of a parameter or field, whose annotation has an `Option`, or a `Flag` of the library."""
    option = next((one for one in getattr(hint, "__metadata__", ()) if isinstance(one, (Option, Flag))), None)
    if isinstance(option, Flag):
        option = Option(option.help, GROUPS[option.group], option.value, short=option.short)
    option = option or Option("")
    names = option.names or (flag_name(key),)
    kind = _kind(hint.__origin__ if hasattr(hint, "__metadata__") else hint)
    return Parameter(argument, key, kind, (f"-{option.short}", *names) if option.short else names, option, default)


def _kind(hint: Any) -> Any:
    """Return the type to which a text is converted; the library checks its options afterwards."""
    if hint in (Strings, Paths):
        return list[str]
    if hint == Size:
        return str
    if get_origin(hint) in (Union, UnionType):
        (hint,) = (one for one in get_args(hint) if one is not NoneType)
    return hint


def allowed_values(kind: Any) -> str:
    """Return a phrase for the values that an option of the type `kind` takes; empty if the option takes any text."""
    if get_origin(kind) is Literal:
        *others, last = map(str, get_args(kind))
        return f"{', '.join(others)} or {last}"
    if kind == Size:
        return "in bytes, or with K, M or G as in 50K"
    return {int: "a whole number, 0 or more", float: "a number", bool: "given without a value"}.get(kind, "")


def flag_name(option: str) -> str:
    """Return the long flag of an option, such as `--ignore-case` for `ignore_case`."""
    return f"--{option.replace('_', '-')}"


def negated(name: str) -> str:
    """Return the flag that negates a flag, such as `--no-hidden` for `--hidden`."""
    return name.replace("--no-", "--", 1) if name.startswith("--no-") else name.replace("--", "--no-", 1)


class Missing(NamedTuple):
    """Flags of rg that `ripwrap search` does not have."""

    flags: tuple[str, ...]
    reason: str
    instead: str


_MISSING = """\
--pre --no-pre --pre-glob: rg would start a program for each file; use --inside for archives, notebooks and documents
--hostname-bin: rg would start a program; write the name into --hyperlink-format
--colors: the colors are fixed; use --color=never for none
--context-separator --no-context-separator \
--field-context-separator --field-match-separator: the separators are fixed; use --null for paths, or --json
--path-separator: such paths could not be opened; replace it in the output
--include-zero --no-include-zero: files without a match have no count; use --files-without-match
--max-columns-preview --no-max-columns-preview: a long line is omitted as a whole; use --only-matching for its matches
--no-ignore-messages --ignore-messages: rules that cannot be read are always named, on stderr; send stderr elsewhere
--debug --trace: the log is for developers of rg; use `ripwrap why FILE`, or --coverage with a search
--sort-files --no-sort-files: it is an old name; use --sort=path
--auto-hybrid-regex --no-auto-hybrid-regex: it is an old name; use --engine=auto
--no-pcre2-unicode: it is an old name; use --no-unicode
--pcre2-unicode: it is an old name; use --unicode
--maxdepth: it is an old name; use --max-depth
--passthrough: it is an old name; use --passthru
--no-encoding: it undoes --encoding; leave both out
--no-json: records are printed only with --json; leave it out
--generate: it makes files for rg; use `ripwrap --install-completion` for completion
--pcre2-version: it describes rg; use `ripwrap doctor`
"""
MISSING = tuple(
    Missing(tuple(flags.split()), *about.split("; "))
    for flags, about in (line.split(": ") for line in _MISSING.splitlines())
)
