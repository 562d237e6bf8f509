"""Make command-line flags from the options of the library, and write options in error messages as flags."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Unpack, cast, get_type_hints

from typing_extensions import TypedDict

from ripwrap.cli.declarations import FlagGroup, Parameter
from ripwrap.errors import Hint, spell_error
from ripwrap.options import FileOptions, OptionGroup, Paths, Size, Strings, flag_of

if TYPE_CHECKING:
    from ripwrap.remote import Host

Function = TypeVar("Function", bound=Callable[..., Any])

GROUPS: dict[OptionGroup, FlagGroup] = {
    "pattern": FlagGroup("Pattern options", sort_key=1),
    "files": FlagGroup("File options", sort_key=2),
    "output": FlagGroup("Output options", sort_key=3),
    "engine": FlagGroup("Engine options", sort_key=4),
}
RIPWRAP = FlagGroup("ripwrap options", sort_key=5)
STDIN = "-"
"""Path that stands for standard input, as the value of `-f`, too."""
OTHER = FlagGroup("Options", sort_key=0)
"""Group, in help texts, of the options that have no other group, such as `--help`."""


def output_flag(help: str, **settings: Any) -> Parameter:  # noqa: A002 - cyclopts' name
    """Return the description of a flag in the group of output options, which has no negation."""
    return Parameter(group=GROUPS["output"], negative=(), help=help, **settings)


Json = Annotated[bool, output_flag("Print JSON, one value a line", name=["--jsonl", "--json"], show_default=False)]


def check_limit(_: Any, value: int | None) -> None:
    """Raise `ValueError` if a limit is negative.

    The library checks limits, too, but its error mentions `None`, which cannot be given on the command line.
    """
    if value is not None and value < 0:
        raise ValueError(f"must be a whole number, 0 or more, got {value}")


Limit = Annotated[int | None, output_flag("Maximum number of results in total", metavar="NUM", validator=check_limit)]
ResultLimit = Annotated[int | None, output_flag("Maximum number of results", metavar="NUM", validator=check_limit)]
CoverageFlag = Annotated[bool, output_flag("Also print how many files were searched", show_default=False)]
When = Literal["auto", "always", "never"]
Color = Annotated[When, output_flag("Color: auto, always or never", metavar="WHEN", show_choices=False)]
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
    "undo": "ripwrap undo",
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

_UNRESTRICTED = (("no_ignore",), ("hidden", "include_git"), ("binary",))
"""Options that the first, the second and the third `-u` switch on; rg reads `.git` with `--hidden`."""

Unrestricted = Annotated[
    int,
    Parameter(
        name=["--unrestricted", "-u"],
        count=True,
        allow_repeating=None,  # each `-u` counts
        negative=(),
        group=GROUPS["files"],
        show_default=False,
        help="No ignore files; -uu: hidden files, too; -uuu: binary, too",
    ),
]

_NOT_NEGATED = ("no_line_number",)
"""Options without a negated flag. The negation of `--no-line-number` is the separate option `--line-number` (`-n`)."""


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
        named["unrestricted"] = Unrestricted
        # The type is made at run time, so no type checker can see its keys. Type checkers see the annotation in the
        # signature, such as `Unpack[SearchOptions]`.
        flags: Any = TypedDict("flags", named, total=False)  # type: ignore[misc]  # pyright: ignore[reportArgumentType]
        function.__annotations__["options"] = Unpack[flags]

        @wraps(function)
        def command(*arguments: Any, **given: Any) -> Any:
            level = given.pop("unrestricted", 0)
            opened = {key: True for keys in _UNRESTRICTED[:level] for key in keys if key in named}
            return function(*arguments, **{**defaults, **opened, **given})

        return cast("Function", command)

    return decorate


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
