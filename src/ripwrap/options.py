"""The options of `files()` and `search()`: TypedDicts whose keys are rg's long flags in snake_case, each declared once.

`max_count=3` is `--max-count=3`, `glob=["*.py", "!test_*"]` is `--glob=*.py --glob=!test_*`, `ignore_case=True` is
`--ignore-case`. A `False` leaves the flag out. Where two options contradict each other, the one declared later here
wins, as the later flag does in rg. Types are checked as they are written: `max_count="3"` is an error.
"""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypedDict


@dataclass(frozen=True, slots=True)
class Flag:
    """What an option's annotation says of its flag.

    Attributes:
        help: One sentence for a person.
        short: Its letter in rg, if it has one.
        default: Whether the flag is given when the option is not; only a `bool` can be on by default.
        ours: Whether the option is ripwrap's own, with no flag of that name.
        negated: Whether a `False` gives the flag's negation; without it rg decides.
        since: The first rg that can do it, if it is not the oldest that ripwrap takes.
    """

    help: str
    short: str = ""
    default: bool = False
    ours: bool = False
    negated: bool = False
    since: tuple[int, ...] = ()


Count: TypeAlias = Annotated[int, Field(ge=0)]
Size: TypeAlias = Annotated[int, Field(ge=0)] | Annotated[str, Field(pattern=r"^[0-9]+[KMG]?$")]
SortKey: TypeAlias = Literal["none", "path", "modified", "accessed", "created"]
Engine: TypeAlias = Literal["default", "pcre2", "auto"]
Strings: TypeAlias = str | Sequence[str]
StrPath: TypeAlias = str | os.PathLike[str]
Paths: TypeAlias = StrPath | Sequence[StrPath]


@with_config(ConfigDict(extra="forbid", strict=True))
class FileOptions(TypedDict, total=False):
    """Which files: what `files()`, `tree()` and `rank()` take, and `search()` too."""

    glob: Annotated[
        Strings,
        Flag(
            "Include files that match, or with a leading ! exclude them; overrides ignore files; the last one wins.",
            short="g",
        ),
    ]
    iglob: Annotated[Strings, Flag("As glob, ignoring case; stands after every glob.")]
    glob_case_insensitive: Annotated[bool, Flag("Ignore case in every glob.")]
    type_clear: Annotated[Strings, Flag("Forget the globs of this type.")]
    type_add: Annotated[
        Strings, Flag("Add a glob to a type, e.g. `web:*.vue`, or types to a type, e.g. `web:include:js`.")
    ]
    type: Annotated[Strings, Flag("Only files of this type; `file_types()` lists them.", short="t")]
    type_not: Annotated[Strings, Flag("No files of this type.", short="T")]
    hidden: Annotated[bool, Flag("Hidden files and directories too.", short=".", default=True)]
    follow: Annotated[bool, Flag("Follow symbolic links.", short="L", default=True)]
    include_git: Annotated[bool, Flag("Do not leave out what is called .git.", ours=True)]
    no_require_git: Annotated[bool, Flag("Respect .gitignore outside a git repository too.", default=True)]
    ignore_file: Annotated[
        Paths, Flag("A file of gitignore rules, relative to cwd as its globs are; it counts least of all ignore files.")
    ]
    ignore_file_case_insensitive: Annotated[bool, Flag("Ignore case in ignore files.")]
    no_ignore: Annotated[bool, Flag("Respect no ignore file.")]
    no_ignore_dot: Annotated[bool, Flag("Do not respect .ignore and .rgignore.")]
    no_ignore_exclude: Annotated[bool, Flag("Do not respect a repository's .git/info/exclude.")]
    no_ignore_files: Annotated[bool, Flag("Do not respect what ignore_file names.")]
    no_ignore_global: Annotated[bool, Flag("Do not respect git's core.excludesFile.")]
    no_ignore_parent: Annotated[bool, Flag("Do not respect ignore files of parent directories.")]
    no_ignore_vcs: Annotated[bool, Flag("Do not respect .gitignore.")]
    max_depth: Annotated[
        Count, Flag("Descend at most this many levels; 1 is what lies directly in the directory.", short="d")
    ]
    max_filesize: Annotated[
        Size, Flag("Leave out files of more bytes than this; 50K, 80M or 1G are in powers of 1024.")
    ]
    one_file_system: Annotated[bool, Flag("Do not cross into other file systems.")]
    sort: Annotated[SortKey, Flag("Order files, ascending; rg then uses one thread.")]
    sortr: Annotated[SortKey, Flag("Order files, descending; rg then uses one thread.")]
    threads: Annotated[Count, Flag("How many threads rg uses; 0 lets it choose.", short="j")]


@with_config(ConfigDict(extra="forbid", strict=True))
class SearchOptions(FileOptions, total=False):
    """Which lines: what `search()` takes besides `FileOptions`."""

    ignore_case: Annotated[bool, Flag("Ignore case.", short="i")]
    smart_case: Annotated[bool, Flag("Ignore case if the pattern is all lower case.", short="S")]
    case_sensitive: Annotated[bool, Flag("Mind case, which is the default.", short="s")]
    fixed_strings: Annotated[bool, Flag("Take the pattern literally, not as a regular expression.", short="F")]
    word_regexp: Annotated[bool, Flag("Match whole words only.", short="w")]
    line_regexp: Annotated[bool, Flag("Match whole lines only.", short="x")]
    invert_match: Annotated[bool, Flag("Lines that do not match.", short="v")]
    multiline: Annotated[bool, Flag("Let a match span lines.", short="U")]
    multiline_dotall: Annotated[bool, Flag("With multiline, let . match a line terminator.")]
    stop_on_nonmatch: Annotated[
        bool, Flag("Leave a file at the first line that does not match after one that does.", since=(14,))
    ]
    pcre2: Annotated[bool, Flag("Use PCRE2: look-around and backreferences; not every rg has it.", short="P")]
    engine: Annotated[Engine, Flag("The regex engine; auto takes PCRE2 where the pattern needs it.")]
    no_unicode: Annotated[bool, Flag("Let \\w, \\d, . and case mean ASCII and bytes, not Unicode.")]
    dfa_size_limit: Annotated[Size, Flag("How much memory the regex's DFA may use, in bytes; for very large patterns.")]
    regex_size_limit: Annotated[Size, Flag("How large the compiled regex may be, in bytes.")]
    crlf: Annotated[bool, Flag("Treat CRLF as a line terminator, so that $ matches before it.")]
    null_data: Annotated[bool, Flag("Let NUL end a line instead of LF.")]
    binary: Annotated[bool, Flag("Search binary files past their first NUL, taking each NUL for the end of a line.")]
    text: Annotated[bool, Flag("Search binary files as if they were text.", short="a")]
    encoding: Annotated[
        str, Flag("The files' encoding, e.g. utf-16le or latin1; 'none' looks at raw bytes.", short="E")
    ]
    mmap: Annotated[bool, Flag("Use memory maps, or never; without it rg decides.", negated=True)]
    no_line_number: Annotated[bool, Flag("Do not count lines: line_number is then None.", short="N")]
    max_count: Annotated[Count, Flag("At most this many matching lines of each file.", short="m")]
    context: Annotated[Count, Flag("Lines of context around each match.", short="C")]
    before_context: Annotated[Count, Flag("Lines of context before each match.", short="B")]
    after_context: Annotated[Count, Flag("Lines of context after each match.", short="A")]
    passthru: Annotated[bool, Flag("Every line that does not match is context; sets context aside.")]
    replace: Annotated[
        str,
        Flag("Show what each match becomes ($1 and ${name} are groups); nothing is written.", short="r", since=(15,)),
    ]


def flag_of(hint: Any) -> Flag:
    """The `Flag` in an option's annotation."""
    return next(mark for mark in hint.__metadata__ if isinstance(mark, Flag))


def check_timeout(timeout: float | None) -> float | None:
    """The `timeout` of an operation, in seconds; `None` is for ever.

    Raises:
        ValueError: It is negative, or not a number.
        TypeError: It is no number at all.
    """
    if timeout is None or timeout == math.inf:
        return None
    if not isinstance(timeout, (int, float)) or isinstance(timeout, bool):
        raise TypeError(f"timeout should be a number of seconds or None, not {type(timeout).__name__}")
    if not timeout >= 0:
        raise ValueError(f"timeout should be 0 seconds or more, or None for no limit, not {timeout}")
    return timeout


def check_limit(limit: int | None, name: str = "limit") -> int | None:
    """The `limit` that every operation takes: how many results at most; `None` is all of them.

    Raises:
        ValueError: It is negative.
        TypeError: It is not a whole number.
    """
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool)):
        raise TypeError(f"{name} should be an int or None, not {type(limit).__name__}")
    if limit is not None and limit < 0:
        raise ValueError(f"{name} should be 0 or more{'' if name == 'offset' else ', or None for all'}, not {limit}")
    return limit
