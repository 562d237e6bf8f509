"""Make command-line flags from the options of the library, and write options in error messages as flags."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, wraps
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Unpack, cast, get_type_hints

from cyclopts import Group, Parameter
from typing_extensions import TypedDict

from ripwrap.errors import Hint, spell_error
from ripwrap.options import FileOptions, OptionGroup, Paths, SearchOptions, Size, Strings, flag_of

if TYPE_CHECKING:
    from ripwrap.remote import Host

Function = TypeVar("Function", bound=Callable[..., Any])

GROUPS: dict[OptionGroup, Group] = {
    "pattern": Group("Pattern options", sort_key=1),
    "files": Group("File options", sort_key=2),
    "output": Group("Output options", sort_key=3),
    "engine": Group("Engine options", sort_key=4),
}
RIPWRAP = Group("ripwrap options", sort_key=5)
STDIN = "-"
"""Path that stands for standard input."""
OTHER = Group("Options", sort_key=0)
"""Group, in help texts, of the options that have no other group, such as `--help`."""


def _output(help: str, **settings: Any) -> Parameter:  # noqa: A002 - cyclopts' name
    return Parameter(group=GROUPS["output"], negative=(), help=help, **settings)


Json = Annotated[bool, _output("Print JSON, one value a line", show_default=False)]


def check_limit(_: Any, value: int | None) -> None:
    """Raise `ValueError` if a limit is negative.

    The library checks limits, too, but its error mentions `None`, which cannot be given on the command line.
    """
    if value is not None and value < 0:
        raise ValueError(f"must be a whole number, 0 or more, got {value}")


Limit = Annotated[int | None, _output("Maximum number of results in total", metavar="NUM", validator=check_limit)]
ResultLimit = Annotated[int | None, _output("Maximum number of results", metavar="NUM", validator=check_limit)]
ListFiles = Annotated[bool, _output("Print only the paths of files that match", alias="-l", show_default=False)]
CountLines = Annotated[bool, _output("Print only how many lines match in each file", alias="-c", show_default=False)]
ListOthers = Annotated[bool, _output("Print only the paths of files without a match", show_default=False)]
CountMatches = Annotated[bool, _output("Print only how many matches each file has", show_default=False)]
CoverageFlag = Annotated[bool, _output("Also print how many files were searched", show_default=False)]
LineNumber = Annotated[bool, _output("Show line numbers", alias="-n", show_default="on")]
MaxColumns = Annotated[
    int,
    _output("Omit lines longer than NUM bytes; 0 is no limit", alias="-M", metavar="NUM", validator=check_limit),
]
When = Literal["auto", "always", "never"]
Color = Annotated[When, _output("Color: auto, always or never", metavar="WHEN", show_choices=False)]
Cwd = Annotated[str, Parameter(group=RIPWRAP, metavar="DIR", help="Run as if ripwrap was started in DIR")]
RgPath = Annotated[str | None, Parameter(group=RIPWRAP, metavar="PATH", help="rg to run, a path or a name in $PATH")]
EmbedderName = Annotated[
    str | None, Parameter(metavar="NAME", help="Embedding model, e.g. `wordllama` [default: none]")
]
HybridWeight = Annotated[
    float | None, Parameter(metavar="NUM", help="Weight of embeddings, 0 to 1", show_default="0.34")
]


@Parameter(name="*")
@dataclass(frozen=True)
class RunOptions:
    """Options `--json`, `--cwd` and `--rg` of the commands that run rg in a directory."""

    json: Json = False
    cwd: Cwd = "."
    rg: RgPath = None


HERE = RunOptions()

NOT_FOR_REPLACE = ("invert_match", "passthru", "replace", "no_line_number")
"""Options of `ripwrap search` that `ripwrap replace` does not have."""

_COMMANDS = {
    "undo": "ripwrap replace --undo",
    "refresh": "ripwrap index build",
    "prune": "ripwrap index prune",
    "file_types": "ripwrap types",
    "scan": "ripwrap scan",
    "ripwrap.binary.install": "ripwrap install",
    "host.install": "ripwrap install --on HOST",
}
"""Command that error messages name in place of a function of the library."""

_ARGUMENTS = {
    "path": "FILE",
    "paths": "PATHS",
    "roots": "--root DIR",
    "repositories": "--repository",
    "where": "standard input (-)",
}
"""Text that error messages have in place of an argument of the library that has no flag of the same name.

The text names a positional argument or another flag.
"""

_LIBRARY_ONLY = ("program", "source")
"""Arguments of the library that the command line does not have."""

_LIKE_RG: FileOptions = {"follow": False}
"""Options whose default in the command line is that of rg, and not that of the library."""

_NOT_NEGATED = ("no_line_number",)
"""Options without a negated flag. The negation of `--no-line-number` is the separate option `--line-number` (`-n`)."""

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
    {"files_with_matches", "files_without_match", "count", "count_matches"},
)
"""Groups of options that override each other: the last one on the command line is used (`rg --help` of rg 15)."""

_OWN = {"files_with_matches": "-l", "files_without_match": "", "count": "-c", "count_matches": "", "line_number": "-n"}
"""Short form of each flag in `_OVERRIDES` that is not an option of the library; empty if the flag has no short form."""


def flags(
    options: type[FileOptions], defaults: FileOptions = _LIKE_RG, without: Collection[str] = ()
) -> Callable[[Function], Function]:
    """Return a decorator that gives a command a flag for each option in a TypedDict, and passes the defaults to it.

    A flag has rg's name and letter. A flag without a value also has a negation, except `--no-line-number`.

    Args:
        options: TypedDict with the options, as in the annotation of the command's `**options`.
        defaults: Options whose default is different from that of a search in the library.
        without: Options that the command does not have.
    """

    def decorate(function: Function) -> Function:
        hints = get_type_hints(options, include_extras=True)
        named = {key: _parameter(key, hint, defaults) for key, hint in hints.items() if key not in without}
        # The type is made at run time, so no type checker can see its keys. Type checkers see the annotation in the
        # signature, such as `Unpack[SearchOptions]`.
        flags: Any = TypedDict("flags", named, total=False)  # type: ignore[misc]  # pyright: ignore[reportArgumentType]
        function.__annotations__["options"] = Unpack[flags]

        @wraps(function)
        def command(*arguments: Any, **given: Any) -> Any:
            return function(*arguments, **{**defaults, **given})

        return cast("Function", command)

    return decorate


def move_stdin(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with each `-` (standard input) at the end, after a `--`; cyclopts takes `-` for an option.

    If there is a `--` already, nothing is moved.
    """
    if STDIN not in arguments or "--" in arguments:
        return list(arguments)
    return [*(one for one in arguments if one != STDIN), "--", *(one for one in arguments if one == STDIN)]


def drop_overridden(arguments: Sequence[str]) -> list[str]:
    """Return the arguments without the flags that a later flag overrides: `-s -i` becomes `-i`, as in rg."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    given = list(_split(arguments[:end]))
    kept: list[list[str]] = []
    later: set[str] = set()
    for option, tokens in reversed(given):
        if not any(option in group and later & (group - {option}) for group in _OVERRIDES):
            kept.append(tokens)
            later.add(option)
    if len(kept) == len(given):
        return list(arguments)  # nothing is overridden; keep combined letters as typed
    return [*(token for tokens in reversed(kept) for token in tokens), *arguments[end:]]


def _split(arguments: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each option with its tokens (flag and value). Combined letters such as `-in` are split.

    A token that is not a flag of `_names()`, such as a path, is yielded with an empty name.
    """
    names, rest = _names(), iter(arguments)
    for token in rest:
        left = token
        while len(left) > 2 and not left.startswith("--") and (found := names.get(left[:2])) and not found[1]:
            yield found[0], [left[:2]]
            left = f"-{left[2:]}"
        name = left.partition("=")[0] if left.startswith("--") else left[:2]
        option, takes_value = names.get(name, ("", False))
        yield option, [left, *islice(rest, int(takes_value and left == name))]


@cache
def _names() -> dict[str, tuple[str, bool]]:
    """Map each flag, long or short, to a pair: the name of its option, and True if the flag takes a value.

    These are the flags of all options in `SearchOptions` and in `_OWN`, but no negations such as `--no-ignore-case`.
    """
    spelled = [(key, letter.removeprefix("-"), False) for key, letter in _OWN.items()]
    for key, hint in get_type_hints(SearchOptions, include_extras=True).items():
        spelled.append((key, flag_of(hint).short, hint.__origin__ is not bool))
    names = {flag_name(key): (key, takes_value) for key, _, takes_value in spelled}
    return names | {f"-{letter}": (key, takes_value) for key, letter, takes_value in spelled if letter}


def spell_as_flag(hint: Hint) -> str | None:
    """Return the text of a hint for a user of the command line; `None` if no flag or command does the same.

    A hint is an option, a call, or a package to install. `fixed_strings=True` becomes `--fixed-strings`, and a call
    becomes a command in backticks.
    """
    if hint.kind == "install":
        return str(hint)
    if hint.option in _LIBRARY_ONLY:
        return None
    option = _flag(hint) if hint.option else ""
    if hint.kind != "call":
        return option
    command = _COMMANDS.get(hint.target)
    return None if command is None else f"`{f'{command} {option}'.rstrip()}`"


def parse_host(on: str | None) -> "Host | None":
    """Return the host that `--on` names, or None without `--on`.

    Raises:
        ValueError: The value names no host; the message begins with `--on`.
        RemoteError: This machine runs Windows.
    """
    if on is None:
        return None
    from ripwrap import remote  # late: few searches need it

    try:
        return remote.parse_host(on)
    except ValueError as error:
        text = spell_error(error, spell_as_flag)
        raise ValueError(text if text.startswith("--on ") else f"--on {on}: {error}") from None


def _flag(hint: Hint) -> str:
    if hint.option in _ARGUMENTS:
        return _ARGUMENTS[hint.option]
    name = flag_name(hint.option)
    if hint.kind in ("omit", "correct") or hint.value is None or hint.value is True:
        return name
    return _negated(name) if hint.value is False else f"{name}={hint.value}"


def flag_name(option: str) -> str:
    """Return the long flag of an option, such as `--ignore-case` for `ignore_case`."""
    return f"--{option.replace('_', '-')}"


def _negated(name: str) -> str:
    return name.replace("--no-", "--", 1) if name.startswith("--no-") else name.replace("--", "--no-", 1)


def _parameter(key: str, hint: Any, defaults: FileOptions) -> Any:
    flag = flag_of(hint)
    name = flag_name(key)
    return Annotated[
        _kind(hint.__origin__),
        Parameter(
            name=[name, f"-{flag.short}"] if flag.short else [name],
            negative=_negated(name) if hint.__origin__ is bool and key not in _NOT_NEGATED else (),
            group=GROUPS[flag.group],
            metavar=flag.value or None,
            show_default="on" if defaults.get(key, flag.default) else "rg decides" if flag.negated else None,
            help=flag.help,
        ),
    ]


def _kind(origin: Any) -> Any:
    """Return the type to which cyclopts converts the value of an option; the library checks the value afterwards."""
    return list[str] if origin in (Strings, Paths) else str if origin == Size else origin
