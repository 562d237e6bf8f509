"""The options of `files()` and `search()`: TypedDicts whose keys are rg's long flags in snake_case.

`max_count=3` is `--max-count=3`, `glob=["*.py", "!test_*"]` is `--glob=*.py --glob=!test_*`, `ignore_case=True` is
`--ignore-case`. `None` is an option that is not given. `False` leaves the flag out, but `mmap=False` is `--no-mmap`.
Only `include_git` is not a flag of rg. If two options contradict each other, the option that is declared later in this
module wins: its flag comes later in rg's command line. Values are not converted to the declared types: `max_count="3"`
is an error.
"""

import inspect
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from types import NoneType
from typing import Annotated, Any, Literal, TypeAlias, cast, get_args, get_type_hints

from typing_extensions import TypedDict

from ripwrap.errors import Hint, HintedText

OptionGroup: TypeAlias = Literal["pattern", "files", "output", "engine"]


@dataclass(frozen=True, slots=True)
class Flag:
    """Description of an option's command-line flag, as a part of the option's type annotation.

    Attributes:
        help: Noun phrase or imperative of at most 60 characters, without a full stop. It names other options as flags.
        group: Group of options under which help texts list the option.
        short: Letter of the flag in rg; empty if it has no letter.
        value: Placeholder for the value in help texts, such as `NUM`; empty for `bool` and `Literal` options.
        default: True if ripwrap passes the flag when the caller does not set the option; for `bool` options only.
        ours: True if only ripwrap has the option, and rg has no flag of that name.
        negated: True if the value `False` passes the negated flag, such as `--no-mmap`; without the option, rg decides.
        since: First version of rg that has the flag; empty if all supported versions have it.
    """

    help: str
    group: OptionGroup
    short: str = ""
    value: str = ""
    default: bool = False
    ours: bool = False
    negated: bool = False
    since: tuple[int, ...] = ()


MAX_THREADS = 1024
"""Maximum number of threads of one rg process. rg starts all of them before it searches, and 99,999,999 threads would
take all memory.
"""
EXCLUDED = (".git", ".ripgrep/")
"""Globs of files that are searched only with `include_git`. Versions of rg after 15.2 store an index in
`.ripgrep/` (ripgrep#1497).
"""


@dataclass(frozen=True, slots=True)
class OptionBounds:
    """Limits of an option's value, as a part of the option's type annotation.

    `limits` are names and values of Pydantic's constraints, such as `ge` for the minimum of a number. `pydantic.Field`
    has the same effect, but importing Pydantic takes 80 ms, and `ripwrap --help` does not need it.
    """

    limits: tuple[tuple[str, int | str], ...]

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        """Add the limits to the schema of the value; Pydantic calls this method."""
        return {**handler(source), **dict(self.limits)}


_NOT_NEGATIVE = "ge", 0
Count: TypeAlias = Annotated[int, OptionBounds((_NOT_NEGATIVE,))]
Threads: TypeAlias = Annotated[int, OptionBounds((_NOT_NEGATIVE, ("le", MAX_THREADS)))]
Size: TypeAlias = Count | Annotated[str, OptionBounds((("pattern", r"^[0-9]+[KMG]?$"),))]
SortKey: TypeAlias = Literal["none", "path", "modified", "accessed", "created"]
RegexEngine: TypeAlias = Literal["default", "pcre2", "auto"]
Strings: TypeAlias = str | Sequence[str]
Switch: TypeAlias = bool | None
StrPath: TypeAlias = str | os.PathLike[str]
Paths: TypeAlias = StrPath | Sequence[StrPath]
Directories: TypeAlias = StrPath | Iterable[StrPath]


class FileOptions(TypedDict, total=False):
    """Options that select and sort files, and set rg's threads, for `files()`, `tree()`, `rank()` and every search."""

    glob: Annotated[
        Strings | None, Flag("Only files that match; !GLOB leaves files out", "files", short="g", value="GLOB")
    ]
    iglob: Annotated[Strings | None, Flag("Like --glob, but ignore case; applied after --glob", "files", value="GLOB")]
    glob_case_insensitive: Annotated[Switch, Flag("Ignore case in every --glob", "files")]
    type_clear: Annotated[Strings | None, Flag("Remove the globs of this type", "files", value="TYPE")]
    type_add: Annotated[
        Strings | None, Flag("Add globs to a type: `web:*.vue` or `web:include:js`", "files", value="SPEC")
    ]
    type: Annotated[
        Strings | None, Flag("Only files of this type; see `ripwrap types`", "files", short="t", value="TYPE")
    ]
    type_not: Annotated[Strings | None, Flag("No files of this type", "files", short="T", value="TYPE")]
    hidden: Annotated[Switch, Flag("Include hidden files and directories", "files", short=".", default=True)]
    follow: Annotated[Switch, Flag("Follow symbolic links", "files", short="L", default=True)]
    include_git: Annotated[Switch, Flag("Include .git, and directories of rg's index: .ripgrep", "files", ours=True)]
    no_require_git: Annotated[Switch, Flag("Respect .gitignore outside of git repositories", "files", default=True)]
    ignore_file: Annotated[
        Paths | None, Flag("Read ignore rules from PATH, with lowest precedence", "files", value="PATH")
    ]
    ignore_file_case_insensitive: Annotated[Switch, Flag("Ignore case in ignore files", "files")]
    no_ignore: Annotated[Switch, Flag("Disregard all ignore files except --ignore-file", "files")]
    no_ignore_dot: Annotated[Switch, Flag("Disregard .ignore and .rgignore", "files")]
    no_ignore_exclude: Annotated[Switch, Flag("Disregard .git/info/exclude", "files")]
    no_ignore_files: Annotated[Switch, Flag("Disregard --ignore-file", "files")]
    no_ignore_global: Annotated[Switch, Flag("Disregard git's core.excludesFile", "files")]
    no_ignore_parent: Annotated[Switch, Flag("Disregard ignore files of parent directories", "files")]
    no_ignore_vcs: Annotated[Switch, Flag("Disregard all ignore files of git", "files")]
    max_depth: Annotated[
        Count | None, Flag("Maximum depth; 1 leaves out subdirectories", "files", short="d", value="NUM")
    ]
    max_filesize: Annotated[
        Size | None, Flag("Leave out files larger than SIZE: bytes, or 50K, 80M, 1G", "files", value="SIZE")
    ]
    one_file_system: Annotated[Switch, Flag("Do not cross into other file systems", "files")]
    sort: Annotated[SortKey | None, Flag("Sort files, ascending; rg then uses one thread", "output")]
    sortr: Annotated[SortKey | None, Flag("Sort files, descending; rg then uses one thread", "output")]
    threads: Annotated[
        Threads | None, Flag("Number of threads up to 1024; 0 lets rg choose", "engine", short="j", value="NUM")
    ]


class SearchOptions(FileOptions, total=False):
    """Options for every search: `FileOptions`, and options of the pattern, the regex engine and the lines of output."""

    ignore_case: Annotated[Switch, Flag("Ignore case", "pattern", short="i")]
    smart_case: Annotated[Switch, Flag("Ignore case if the pattern is all lower case", "pattern", short="S")]
    case_sensitive: Annotated[Switch, Flag("Match case exactly, which is the default", "pattern", short="s")]
    fixed_strings: Annotated[Switch, Flag("Search for plain text, not for a regex", "pattern", short="F")]
    word_regexp: Annotated[Switch, Flag("Match whole words only", "pattern", short="w")]
    line_regexp: Annotated[Switch, Flag("Match whole lines only", "pattern", short="x")]
    invert_match: Annotated[Switch, Flag("Find lines that do not match", "pattern", short="v")]
    multiline: Annotated[Switch, Flag("Let a match span several lines", "pattern", short="U")]
    multiline_dotall: Annotated[Switch, Flag("With --multiline, let . match line ends", "pattern")]
    stop_on_nonmatch: Annotated[
        Switch, Flag("In a file, stop at the first non-match after a match", "output", since=(14,))
    ]
    pcre2: Annotated[Switch, Flag("Use PCRE2, for look-around and backreferences", "engine", short="P")]
    engine: Annotated[RegexEngine | None, Flag("Regex engine; auto takes PCRE2 where it is needed", "engine")]
    no_unicode: Annotated[Switch, Flag(r"Use ASCII, not Unicode, for `\w`, `\d`, `.` and case", "engine")]
    dfa_size_limit: Annotated[
        Size | None, Flag("Maximum memory for the DFA: bytes, or with K, M or G", "engine", value="SIZE")
    ]
    regex_size_limit: Annotated[
        Size | None, Flag("Maximum size of the regex: bytes, or with K, M or G", "engine", value="SIZE")
    ]
    crlf: Annotated[Switch, Flag("Treat CRLF as a line end, so that $ matches before it", "engine")]
    null_data: Annotated[Switch, Flag("End lines at NUL instead of LF", "engine")]
    binary: Annotated[Switch, Flag("Search binary files past their first NUL", "files")]
    text: Annotated[Switch, Flag("Search binary files as if they were text", "files", short="a")]
    encoding: Annotated[
        str | None, Flag("Encoding of files, e.g. utf-16le, or detect, or none", "files", short="E", value="NAME")
    ]
    mmap: Annotated[Switch, Flag("Use memory maps", "engine", negated=True)]
    no_line_number: Annotated[Switch, Flag("Leave out line numbers", "output", short="N")]
    max_count: Annotated[
        Count | None, Flag("Maximum number of matching lines per file", "output", short="m", value="NUM")
    ]
    context: Annotated[Count | None, Flag("Lines of context around each match", "output", short="C", value="NUM")]
    before_context: Annotated[
        Count | None, Flag("Lines of context before each match", "output", short="B", value="NUM")
    ]
    after_context: Annotated[Count | None, Flag("Lines of context after each match", "output", short="A", value="NUM")]
    passthru: Annotated[Switch, Flag("Show all lines; lines without a match are context", "output")]
    replace: Annotated[
        str | None,
        Flag("Show TEXT in place of each match; $1 is a group", "output", short="r", value="TEXT", since=(15,)),
    ]


for _options in (FileOptions, SearchOptions):
    # `pydantic.with_config()` does the same, but Pydantic is not imported before a search checks its options.
    setattr(_options, "__pydantic_config__", {"extra": "forbid", "strict": True})  # noqa: B010 - unknown to type checkers


def option_hints(options: type[object] = SearchOptions) -> Mapping[str, Any]:
    """Return the annotations of options, without the `None` that stands for 'not given'."""
    hints = get_type_hints(options, include_extras=True)
    given = {name: [one for one in get_args(hint.__origin__) if one is not NoneType] for name, hint in hints.items()}
    return {
        name: Annotated[reduce(lambda one, other: one | other, given[name]), *hint.__metadata__]
        for name, hint in hints.items()
    }


_HINTS = option_hints()


def values_of(options: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return the values of an option that can be given several times, as texts; empty if it was not given."""
    value: StrPath | Iterable[StrPath] | None = options.get(name)
    several = (value,) if isinstance(value, (str, os.PathLike)) else value or ()
    return tuple(os.fspath(one) for one in several)


VISIBLE_FILES: FileOptions = {"hidden": False, "follow": False}
"""Default options of `rank()`, `replace()`, `replace_code()`, `Index` and the agent tools. They leave out hidden files,
which may have secrets, and links, which may lead to other directories.
"""


def flag_of(hint: Any) -> Flag:
    """Return the `Flag` in an option's annotation."""
    return next(mark for mark in hint.__metadata__ if isinstance(mark, Flag))


RG_DEFAULTS: FileOptions = {"hidden": False, "follow": False, "no_require_git": False, "include_git": True}
"""Options with which a search reads the files that rg itself reads, as in `search("x", **RG_DEFAULTS)`."""

OVERRIDES: tuple[frozenset[str], ...] = (
    frozenset(("ignore_case", "smart_case", "case_sensitive")),
    frozenset(("word_regexp", "line_regexp")),
    frozenset(("multiline", "stop_on_nonmatch")),
    frozenset(("crlf", "null_data")),
    frozenset(("text", "binary")),
    frozenset(("pcre2", "engine")),
    frozenset(("sort", "sortr")),
    *(frozenset(("passthru", name)) for name in ("context", "before_context", "after_context")),
)
"""Groups of options of which the last one in a command line is used (`rg --help` of rg 15)."""

_UNRESTRICTED = ("-u", "--unrestricted")

_ELSEWHERE = {
    **dict.fromkeys(("-e", "--regexp"), "pass the pattern as the first argument"),
    **dict.fromkeys(("-l", "--files-with-matches"), "call files_with_matches()"),
    **dict.fromkeys(("-c", "--count"), "call count()"),
    **dict.fromkeys(("-z", "--search-zip"), "pass inside=['gz', 'bz2', 'xz', 'zst']"),
    **dict.fromkeys(("-o", "--only-matching"), "see match.submatches"),
    **dict.fromkeys(("-q", "--quiet"), "pass limit=1"),
    "--files-without-match": "call files_without_match()",
    "--count-matches": "call count_matches()",
    "--files": "call files()",
    "--type-list": "call file_types()",
}
"""Flags of rg that are no options of a search, and what is in their place."""


def options_from_args(arguments: Sequence[str]) -> SearchOptions:
    """Return the options of a search for flags of rg, such as `["-in", "-g", "*.py"]`, by the flags' own rules.

    A flag may be combined (`-iw`), joined to its value (`-C3`, `--context=3`) or negated (`--no-hidden`, `--ignore`).
    The last of several flags that override each other is used. For the files that rg itself reads, add them to
    `RG_DEFAULTS`.

    ```python
    from ripwrap import sync
    from ripwrap.options import RG_DEFAULTS, options_from_args

    options = options_from_args(["-i", "-g", "*.py"])
    print(options)
    print(sum(1 for _ in sync.search("todo", cwd="demo", **{**RG_DEFAULTS, **options})))
    ```

    ```text
    {'ignore_case': True, 'glob': ['*.py']}
    2
    ```

    Raises:
        ValueError: Arguments have no meaning as options, such as a path, a mode or a flag for output; the error names
            all of them. Or a flag has no value, or not a number.
        TypeError: `arguments` is no sequence of `str`, such as a whole command line.
    """
    wanted = "arguments must be a sequence of str, such as ['-i', '-m', '5'], got"
    if isinstance(arguments, str):
        raise TypeError(f"{wanted} the str {arguments[:60]!r}; split it, e.g. with shlex.split()")
    if not isinstance(arguments, Sequence) or isinstance(arguments, (bytes, bytearray)):
        raise TypeError(f"{wanted} {type(arguments).__name__}")
    for one in arguments:
        if not isinstance(one, str):
            raise TypeError(f"{wanted} {type(one).__name__} in a {type(arguments).__name__}")
    table, found, strange = _flags_of_rg(), dict[str, Any](), dict[str, str]()
    unrestricted = iter(("no_ignore", "hidden", "binary"))
    for name, value in _split_flags(arguments, table):
        if name in _UNRESTRICTED and (key := next(unrestricted, "")):
            kind, given = bool, True
        elif name in table:
            key, kind, given = table[name]
        else:
            strange[name] = _ELSEWHERE.get(name, "")
            continue
        setting = given if kind is bool else _read_value(name, value, kind)
        for other in {one for group in OVERRIDES if key in group for one in group} - {key}:
            found.pop(other, None)
        found[key] = [*found.get(key, ()), setting] if kind in (Strings, Paths) else setting
    if strange:
        said = [f"{word} ({instead})" if instead else word for word, instead in strange.items()]
        raise ValueError(f"no options of a search: {', '.join(said)}; leave them out")
    return cast("SearchOptions", found)


@cache
def _flags_of_rg() -> Mapping[str, tuple[str, Any, Any]]:
    """Map each flag of rg, long, short or negated, to its option, the type of the option, and the value of a switch."""
    names: dict[str, tuple[str, Any, Any]] = {}
    for key, hint in _HINTS.items():
        kind, flag, name = hint.__origin__, flag_of(hint), f"--{key.replace('_', '-')}"
        if not flag.ours:
            names |= {one: (key, kind, True) for one in (name, f"-{flag.short}") if one != "-"}
            if kind is bool:
                names[f"--{name[5:]}" if name.startswith("--no-") else f"--no-{name[2:]}"] = (key, kind, False)
    return {**names, "-n": names["--line-number"]}


def _split_flags(
    arguments: Sequence[str], table: Mapping[str, tuple[str, Any, Any]]
) -> Iterator[tuple[str, str | None]]:
    """Yield each flag with its value, which is `None` if it has none; other words are yielded as if they were flags."""
    words = list(reversed(arguments))
    while words:
        word = words.pop()
        if word.startswith("--"):
            name, equals, joined = word.partition("=")
            value = joined if equals else None
        else:
            name, joined = (word[:2], word[2:]) if word.startswith("-") else (word, "")
            value = joined.removeprefix("=") if joined else None
        takes_value = name in table and table[name][1] is not bool
        if joined and not takes_value and not word.startswith("--"):
            words.append(f"-{joined}")  # combined letters
        yield name, words.pop() if takes_value and value is None and words else value


def _read_value(name: str, value: str | None, kind: Any) -> int | str:
    if value is None:
        raise ValueError(f"{name} has no value; write the value after it")
    if kind is int and not value.isdecimal():
        raise ValueError(f"{name} takes a number, got {value!r}")
    return int(value) if kind is int else value


ShowDenied: TypeAlias = Literal["hide", "count", "name"]
"""Display of denied files in listings: not at all (`hide`), as a number (`count`), or by name (`name`)."""


def check_timeout(timeout: float | None, name: str = "timeout") -> float | None:
    """Check the `timeout` of an operation, in seconds, and return it; `None` is no limit, and so is infinity."""
    return None if timeout == math.inf else _check_seconds(timeout, name, "for no limit")


def _check_seconds(seconds: float | None, name: str, none: str) -> float | None:
    if seconds is not None and (not isinstance(seconds, (int, float)) or isinstance(seconds, bool)):
        raise TypeError(f"{name} must be a number of seconds or None, got {type(seconds).__name__}")
    if seconds is not None and not seconds >= 0:
        said = f" must be 0 seconds or more, or None {none}; got {seconds}"
        raise ValueError(HintedText(Hint(name, kind="correct"), said))
    return seconds


def check_callback(function: object) -> None:
    """Check that `on_progress` can be called without `await`; `None` stands for no callback and is accepted."""
    if function is not None and not callable(function):
        raise TypeError(f"on_progress must be a function or None, got {type(function).__name__}")
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004 - not to see if it is callable
        raise TypeError("on_progress must not be an async function, because it is not awaited; pass a plain function")


def check_max_age(max_age: float | None) -> float | None:
    """Check `max_age`, in seconds, and return it; `None` accepts only an up-to-date index."""
    return _check_seconds(max_age, "max_age", "to refresh each time")


def size_in_bytes(size: int | str | None) -> int | None:
    """Return a size of a file as a number of bytes, given a `Size`; `None` stays `None`."""
    if not isinstance(size, str):
        return size
    return int(size.rstrip("KMG")) << {"K": 10, "M": 20, "G": 30}.get(size[-1], 0)


def check_number(value: int, name: str, least: int = 1) -> int:
    """Check that a number is an int of at least `least`, and return it."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an int, got {type(value).__name__}")
    if value < least:
        raise ValueError(f"{name} must be {least} or more, got {value}")
    return value


def check_limit(limit: int | None, name: str = "limit") -> int | None:
    """Check the `limit` of an operation, its maximum number of results, and return it; `None` is no limit."""
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool)):
        raise TypeError(f"{name} must be an int or None, got {type(limit).__name__}")
    if limit is not None and limit < 0:
        wanted = "0 or more," if name == "offset" else "0 or more, or None for all;"
        raise ValueError(HintedText(Hint(name, kind="correct"), f" must be {wanted} got {limit}"))
    return limit
