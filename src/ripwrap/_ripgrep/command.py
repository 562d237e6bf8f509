"""Translate options into arguments of rg; no I/O. No other module translates options.

A string that a caller passes can never become a flag, start a program or make rg read a configuration file
(docs/explanation/architecture.md): `--no-config` comes first, each value is joined to its flag by `=`, patterns are
passed as `--regexp=…`, and paths follow `--`. There is always a path, because without one rg reads stdin (rg-facts 1,
2, 4). If there are two mode flags, such as `--json` and `--count`, rg silently uses the last one. So options cannot set
a mode (rg-facts 6).
"""

import itertools
import os
import re
import reprlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, LiteralString, TypeAlias, TypeVar, cast, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from ripwrap._overlay import Overlay, active_overlay, refuse_overlay
from ripwrap._ripgrep.host import RgHost
from ripwrap._ripgrep.place import Place
from ripwrap.errors import Hint, HintedText
from ripwrap.options import (
    EXCLUDED,
    VISIBLE_FILES,
    FileOptions,
    Flag,
    Paths,
    SearchOptions,
    Size,
    StrPath,
    flag_of,
    suggest,
)

Mode: TypeAlias = Literal["json", "files-with-matches", "files-without-match", "count", "count-matches"]

Options = TypeVar("Options", bound=FileOptions)

ARGUMENTS = ("pattern", "cwd", "paths", "limit", "rg", "on")
"""Arguments that most operations take besides the options. Hints for a misspelled name suggest these names, too."""

NEEDS_CAPTURES = ("captures", (15,))
"""Entry of `Command.needs` for a search that returns the groups of matches: the option, and its first rg version."""

NEEDS_SCAN = ("scan()", (15,))
"""Entry of `Command.needs` for `scan()`, which returns the groups of matches: its name, and its first rg version."""

_NOT_HIDDEN = "!.*"
_SORTS, _RULES = ("--sort=", "--sortr="), "--ignore-file="
_SORTS_OF_OVERLAYS = ("--sort=path", "--sortr=path", "--sort=none", "--sortr=none")
_IGNORE_NAMES = (".gitignore", ".ignore", ".rgignore")
_EXCLUDE = os.path.join(".git", "info", "exclude")
_END_OF_OPTIONS = "--"
_LEADING_DOTS = {"/": re.compile(r"^(\./+)+"), "\\": re.compile(r"^(\.\\+)+")}


@dataclass(frozen=True, slots=True)
class Command:
    """Arguments and directory of a run of rg.

    Attributes:
        arguments: Arguments of rg, without the executable.
        cwd: Directory that rg runs in; globs and relative paths are relative to it. Absolute, except on a host, or if
            the current directory was deleted.
        patterns: Patterns to search for; empty if rg only lists files or file types.
        needs: Features that some supported versions of rg lack, each with the first version of rg that has it. A
            feature is the name of an option, or the name of a function with `()` after it.
        on: Host that rg runs on; `None` is this machine.
        overlay: Texts to search in place of files; `None` without an overlay.
        place: Place to search besides the files on the disk, such as files in several encodings; `None` is the disk.
    """

    arguments: tuple[str, ...]
    cwd: str
    patterns: tuple[str, ...] = ()
    needs: tuple[tuple[str, tuple[int, ...]], ...] = ()
    on: RgHost | None = None
    overlay: Overlay | None = None
    place: Place | None = None

    @property
    def flags(self) -> tuple[str, ...]:
        """Arguments before `--`; all arguments if there is no `--`."""
        return tuple(itertools.takewhile(_END_OF_OPTIONS.__ne__, self.arguments))

    @property
    def is_plain(self) -> bool:
        """True if one run of rg over files on the disk, or on a host, answers the search."""
        return self.overlay is None and self.place is None

    @property
    def silent(self) -> bool:
        """True if rg writes nothing, not even a summary, because `--max-count=0` allows no match (rg-facts 25)."""
        return "--max-count=0" in self.flags

    @property
    def counts(self) -> bool:
        """True if rg prints the number of matching lines of each file (`--count`)."""
        return "--count" in self.flags

    @property
    def lists_zeros(self) -> bool:
        """True if rg also prints the count 0 of files without a match. Even so, it exits with 1 if no file matches."""
        return "--include-zero" in self.flags

    @property
    def follows(self) -> bool:
        """True if rg follows the links that it finds in directories. It always follows links in `paths`."""
        return "--follow" in self.flags

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths to search: the arguments after `--`."""
        return self.arguments[self.arguments.index(_END_OF_OPTIONS) + 1 :]

    @property
    def sorts_all(self) -> bool:
        """True if rg sorts the files of all paths together, for example by time, or by path in reverse.

        With `--sort=path`, rg does not: it goes through the paths in the given order, and sorts the files of each path
        separately.
        """
        *_, last = ("", *(flag for flag in self.flags if flag.startswith(("--sort=", "--sortr="))))
        return last not in ("", "--sort=path", "--sort=none", "--sortr=none")

    def batches(self, room: int, cost: Callable[[str], int]) -> Iterator["Command"]:
        """Yield commands that each search some of the paths, in order, and whose arguments cost at most `room`.

        Only a command with a single path may cost more.

        Args:
            room: Maximum cost of the arguments of one command.
            cost: Function that returns the cost of an argument, in the same unit as `room`.
        """
        fixed = (*self.flags, _END_OF_OPTIONS)
        most = room - sum(map(cost, fixed))
        batch: list[str] = []
        held = 0
        for path in self.paths:
            price = cost(path)
            if batch and held + price > most:
                yield replace(self, arguments=(*fixed, *batch))
                batch, held = [], 0
            batch.append(path)
            held += price
        yield replace(self, arguments=(*fixed, *batch))

    def followed_by(self, other: "Command") -> "Command":
        """Return this command with the paths of the other command added at the end."""
        return replace(self, arguments=(*self.arguments, *other.paths))

    def without_paths(self) -> "Command":
        """Return the command without paths, to be joined with other commands; it is not to be run."""
        return replace(self, arguments=(*self.flags, _END_OF_OPTIONS))

    def single_threaded(self) -> "Command":
        """Return the command with `--threads=1` added, which overrides an earlier `--threads`."""
        return replace(self, arguments=(*self.flags, "--threads=1", _END_OF_OPTIONS, *self.paths))

    def types(self) -> "Command":
        """Return the command that lists rg's file types, changed by `--type-add` and `--type-clear` of this command."""
        own = [flag for flag in self.flags if flag.startswith(("--type-add=", "--type-clear="))]
        return Command(("--no-config", *own, "--type-list", _END_OF_OPTIONS), self.cwd, on=self.on)


def search_command(
    pattern: str | Sequence[str],
    cwd: StrPath,
    paths: StrPath | Iterable[StrPath],
    options: SearchOptions,
    mode: Mode = "json",
    *,
    include_zero: bool = False,
    stats: bool = False,
    arguments: Collection[str] = ARGUMENTS,
    on: RgHost | None = None,
    captures: str | None = None,
    pattern_file: str | None = None,
) -> Command:
    """Return the command for a search that prints JSON, counts or paths.

    `include_zero` also prints the count 0 of files without a match. `stats` adds rg's statistics after counts.
    `arguments` are the names of the caller's other arguments, which an error about an unknown option may suggest. `on`
    is the host that rg runs on. `captures` is the value of `--replace` with which rg lists the groups of each match
    (`ripwrap._ripgrep.groups`). `pattern_file` is a file with the patterns, one on each line, for patterns that are too
    long for a command line.

    Raises:
        pydantic.ValidationError: An option is unknown, or its value is not allowed.
        ValueError: There is no pattern, a path is empty, a pattern, path or option has a NUL or a character that cannot
            be encoded, the encoding is `detect`, or an overlay does not support the search.
        TypeError: A pattern is not a string, or a path is not a string or an `os.PathLike` of a string.
    """
    checked = _fill_contexts(_validate(SearchOptions, _SEARCH_FLAGS, options, arguments))
    patterns = _patterns(pattern)
    flag = f"--{mode}"
    if _lists_by_counts(mode, checked):
        flag, include_zero = "--count", mode == "files-without-match"
        checked = _limit_to_one(checked)
    if checked.get("encoding") == "detect":
        said = " is not possible in this operation, or together with another argument; pass the name of an encoding"
        raise ValueError(HintedText(Hint("encoding", "detect"), said))
    # Without these flags, rg leaves out the name of a single file in these modes.
    framing = () if mode == "json" else ("--null", "--with-filename")
    zero, totals = ("--include-zero",) * include_zero, ("--stats",) * stats
    regexps = [f"--regexp={one}" for one in patterns] if pattern_file is None else [f"--file={pattern_file}"]
    replacement = () if captures is None else (f"--replace={captures}",)
    flags = (flag, *framing, *zero, *totals, *_flags(_SEARCH_FLAGS, checked), *replacement, *regexps)
    needs = [*_required_versions(checked, mode), *(() if captures is None else (NEEDS_CAPTURES,))]
    return _make_command(flags, cwd, paths, patterns, tuple(needs), on)


def words_command(
    pattern: str, cwd: StrPath, paths: StrPath | Iterable[StrPath], options: FileOptions, max_count: int
) -> Command:
    """Return the command that prints the texts of all matches, file by file; raise what `search_command()` raises.

    The output for a file is its path, a NUL, and one line for each match. An empty line separates files.

    Args:
        pattern: Pattern that matches neither empty text nor several lines.
        cwd: See `search_command()`.
        paths: See `search_command()`.
        options: Options that select files.
        max_count: Maximum number of matching lines of a file.
    """
    checked = _validate(FileOptions, _FILE_FLAGS, options)
    framing = ("--only-matching", "--heading", "--null", "--with-filename", "--no-line-number")
    regexp = f"--regexp={pattern}"
    arguments = (*framing, f"--max-count={max_count}", *_flags(_FILE_FLAGS, checked), regexp)
    return _make_command(arguments, cwd, paths, (pattern,))


def files_command(
    cwd: StrPath,
    paths: StrPath | Iterable[StrPath],
    options: FileOptions,
    arguments: Collection[str] = ARGUMENTS[1:],
    on: RgHost | None = None,
) -> Command:
    """Return the command that lists files, with a NUL after each path; raise what `search_command()` raises.

    Args:
        cwd: See `search_command()`.
        paths: See `search_command()`.
        options: Options that select files.
        arguments: Names of the caller's other arguments, which an error about an unknown option may suggest.
        on: Host that rg runs on; `None` is this machine.
    """
    checked = _validate(FileOptions, _FILE_FLAGS, options, arguments)
    return _make_command(("--files", "--null", *_flags(_FILE_FLAGS, checked)), cwd, paths, on=on)


def spell_file_flags(arguments: Collection[str]) -> list[str]:
    """Return the flags for the `ripwrap` program that choose the same files as these arguments of rg.

    Flags with default values are left out.

    Args:
        arguments: Arguments of the `files_command()` that lists files for `rank()` or an index.
    """
    usual = files_command(os.curdir, (), VISIBLE_FILES).arguments
    added = {f"--glob={_NOT_HIDDEN}", *_exclude({"iglob": True})}
    given = [one for one in arguments if one not in usual and one not in added]
    opposites = {"--no-require-git": "--require-git", f"--glob=!{EXCLUDED[0]}": "--include-git"}
    return [*given, *(opposite for flag, opposite in opposites.items() if flag not in arguments)]


def types_command() -> Command:
    """Return the command that lists the file types that rg knows."""
    return Command((), os.curdir).types()


def _validate(
    kind: type[Options], table: Mapping[str, Flag], options: Options, arguments: Collection[str] = ARGUMENTS
) -> Options:
    try:
        return cast("Options", _adapter(cast("Any", kind)).validate_python(options))
    except ValidationError as error:
        # pydantic reports a problem for each member of a union; keep one problem for each option. A problem
        # has no location if the name of the option has lone surrogates.
        problems = {str(problem["loc"][0]): problem for problem in error.errors() if problem["loc"]}
        if not problems:
            raise
        explained = [
            _explain(name, problem, cast("Mapping[str, object]", options)[name], kind, [*table, *arguments])
            for name, problem in problems.items()
        ]
        raise ValidationError.from_exception_data(error.title, explained) from None


def _explain(
    name: str, problem: ErrorDetails, value: object, options: type[object], known: Collection[str]
) -> InitErrorDetails:
    """Return a problem that pydantic found, with a new message, which says which values or options are allowed.

    Args:
        name: Name of the option.
        problem: Problem with the option.
        value: Value of the option.
        options: TypedDict with all options.
        known: Names of all options and arguments.
    """
    kind: LiteralString = problem["type"]  # pyright: ignore[reportAssignmentType] - mypy takes it for str
    if kind == "extra_forbidden":
        meant = suggest(name, known)
        text = "unknown option {name}; did you mean {meant}?" if meant else "unknown option {name}; see ripwrap.{kind}"
        context = {"name": name, "meant": meant, "kind": options.__name__}
        said = PydanticCustomError("extra_forbidden", text, context)
    else:
        limits = problem.get("ctx", {})
        allowed = _allowed(get_type_hints(SearchOptions, include_extras=True)[name].__origin__)
        if kind == "less_than_equal":
            allowed = f"{limits['le']} or less"
        about = {**limits, "name": name, "allowed": allowed, "value": reprlib.repr(value)}
        said = PydanticCustomError(kind, "{name} must be {allowed}, got {value}", about)
    return InitErrorDetails(type=said, loc=(name,), input=value)


def _allowed(kind: Any) -> str:
    """Return a phrase for the values that an option of this type takes."""
    if get_origin(kind) is Literal:
        *others, last = map(repr, get_args(kind))
        return f"{', '.join(others)} or {last}"
    if kind == Size:
        return "a number of bytes, or a string such as '50K', '80M' or '1G'"
    if kind == Paths:
        return "a path or a sequence of paths"
    names = {bool: "True or False", int: "an int, 0 or more", str: "a string"}
    return names.get(kind, "a string or a sequence of strings")


def _fill_contexts(options: SearchOptions) -> SearchOptions:
    """If `context` and only one of `before_context` and `after_context` are given, set the other to `context`.

    Without this change, rg 13 would ignore `context`. Options that the caller passed keep their values.
    """
    both = options.get("context")
    if both is None or not options.keys() & {"before_context", "after_context"}:
        return options
    sides: SearchOptions = {"before_context": both, "after_context": both}
    return {**sides, **options}


def _lists_by_counts(mode: Mode, options: SearchOptions) -> bool:
    """Return True if files are listed with `--count --max-count=1` instead of `-l` (rg-facts 51).

    With `-l --null`, rg writes a NUL and no newline after a path, so `--line-buffered` does not flush it and paths
    arrive late. A count ends with a newline. With `--invert-match` or `--multiline`, `-l` is needed, because rg 15
    counts wrongly when `--max-count=1` is added.
    """
    listing = mode in ("files-with-matches", "files-without-match")
    return listing and not options.get("invert_match") and not options.get("multiline")


def _limit_to_one(options: SearchOptions) -> SearchOptions:
    """Return the options with `max_count=1` (0 stays 0) and without context.

    With context, rg 15 continues to read the file after the first match (rg-facts 51).
    """
    context = ("context", "before_context", "after_context", "passthru")
    plain = cast("SearchOptions", {name: value for name, value in options.items() if name not in context})
    plain["max_count"] = min(options.get("max_count", 1), 1)
    return plain


def _required_versions(options: SearchOptions, mode: Mode) -> Iterator[tuple[str, tuple[int, ...]]]:
    for key, value in options.items():
        since = _SEARCH_FLAGS[key].since
        # Only JSON output can have replacements, and rg 13 and 14 do not write replacements in JSON (rg-facts 49).
        if since and value is not False and (mode == "json" or key != "replace"):
            yield key, since


def _make_command(
    arguments: tuple[str, ...],
    cwd: StrPath,
    paths: StrPath | Iterable[StrPath],
    patterns: tuple[str, ...] = (),
    needs: tuple[tuple[str, tuple[int, ...]], ...] = (),
    on: RgHost | None = None,
) -> Command:
    # Without `--line-buffered`, results arrive late with `--sort` or one thread, because rg then writes large blocks.
    # With several threads the flag has no effect (rg-facts 21).
    whole = ("--no-config", "--line-buffered", *arguments, _END_OF_OPTIONS, *_paths(paths))
    directory = _make_absolute(_text_path(cwd)) if on is None else on.path(_text_path(cwd))
    for part in (*whole, directory):
        _check_text(part)
    overlay = active_overlay()
    if overlay is not None:
        _check_overlay(overlay, whole, directory, on)
    return Command(whole, directory, patterns, needs, on, overlay)


def _check_overlay(overlay: Overlay, arguments: Sequence[str], cwd: str, on: RgHost | None) -> None:
    """Raise `ValueError` if the search runs on a host or sorts by time, or if a text is for an ignore file."""
    if on is not None:
        refuse_overlay("A search on a host")
    flags = list(itertools.takewhile(_END_OF_OPTIONS.__ne__, arguments))
    sort = next((flag for flag in flags if flag.startswith(_SORTS) and flag not in _SORTS_OF_OVERLAYS), None)
    if sort is not None:
        name, _, value = sort.removeprefix("--").partition("=")
        raise ValueError(
            HintedText(
                f"texts of overlay() have no file times, so files cannot be sorted by {value!r}; leave ",
                Hint(name, kind="omit"),
                " out, or pass ",
                Hint(name, "path"),
            )
        )
    explicit = {
        os.path.realpath(os.path.join(cwd, flag.partition("=")[2])) for flag in flags if flag.startswith(_RULES)
    }
    for path in overlay.texts:
        said = f"rg cannot use the text of overlay() for the ignore file {path}; leave the file out of overlay() and "
        if path in explicit and "--no-ignore-files" not in flags:
            raise ValueError(HintedText(said, "write it to the disk, or leave out ", Hint("ignore_file", kind="omit")))
        if (os.path.basename(path) in _IGNORE_NAMES or path.endswith(_EXCLUDE)) and "--no-ignore" not in flags:
            raise ValueError(HintedText(said, "write it to the disk, or pass ", Hint("no_ignore", value=True)))


def _make_absolute(cwd: str) -> str:
    """Return `cwd` as an absolute path, because the program may call `chdir()` before rg starts.

    If the current directory was deleted, return `cwd` unchanged.
    """
    if os.path.isabs(cwd) or not cwd:
        return cwd
    try:
        here = os.getcwd()
    except FileNotFoundError:
        return cwd
    return here if cwd == os.curdir else os.path.join(here, cwd)


def _check_text(part: str) -> None:
    """Raise `ValueError` if a text cannot be an argument of a program."""
    if "\0" in part:
        raise ValueError(f"a NUL character cannot be part of a pattern, path or option; remove it from {part!r}")
    try:
        os.fsencode(part)
    except UnicodeEncodeError as error:
        raise ValueError(f"{part!r} has a character that {error.encoding} cannot encode; remove it") from error


def _patterns(pattern: str | Sequence[str]) -> tuple[str, ...]:
    if not isinstance(pattern, Iterable):
        raise TypeError(f"a pattern must be a str or a sequence of str, got {type(pattern).__name__}")
    patterns = (pattern,) if isinstance(pattern, (str, bytes)) else tuple(pattern)
    if not patterns:
        raise ValueError("no pattern given; pass a string or a non-empty sequence of strings")
    for one in patterns:
        if not isinstance(one, str):
            raise TypeError(f"a pattern must be a str, got {type(one).__name__}")
        try:
            one.encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                f"the pattern {one!r} is not valid Unicode; to search for a byte, write it as (?-u:\\xff)"
            ) from error
    return patterns


def several_paths(paths: StrPath | Iterable[StrPath]) -> tuple[StrPath, ...]:
    """Return the paths of an argument `paths`, which may be a single path."""
    return (paths,) if isinstance(paths, (str, bytes, os.PathLike)) else tuple(paths)


def _paths(paths: StrPath | Iterable[StrPath]) -> Iterator[str]:
    for path in several_paths(paths) or (os.curdir,):
        text = _text_path(path)
        if not text:
            raise ValueError("a path is empty; pass '.' for the working directory of the search")
        yield normalise_path(text)


def normalise_path(path: str, sep: str = os.sep) -> str:
    r"""Return a path in the form in which it is passed to rg, which prints the path in the same form.

    The path has the separators of the system, and no `./` at its start. Only `-` becomes `./-`, because rg reads stdin
    for `-`.

    Args:
        path: Path that the caller passed.
        sep: Separator of the system. If it is a backslash, it replaces every slash.
    """
    if sep == "\\":
        path = path.replace("/", sep)
    # The decoder removes one './', which would make '/a' of './/a'.
    path = _LEADING_DOTS[sep].sub("", path) or os.curdir
    return f".{sep}-" if path == "-" else path  # rg takes `-` for stdin


def _text_path(path: StrPath) -> str:
    text = os.fspath(path)
    if not isinstance(text, str):
        raise TypeError(f"a path must be a str or os.PathLike[str], got {type(path).__name__}")
    return text


def _flags(table: Mapping[str, Flag], options: Mapping[str, Any]) -> Iterator[str]:
    if options.get("hidden") is False and options.get("type"):
        # Without this glob, `--type` brings hidden files back (rg-facts 37). It comes first, so that a caller's globs
        # override it.
        yield f"--glob={_NOT_HIDDEN}"
    for key, flag in table.items():
        value = options.get(key, flag.default)
        if value is not False and not flag.ours:
            yield from _spell_flag(key.replace("_", "-"), value)
        elif flag.negated and key in options:
            yield f"--no-{key.replace('_', '-')}"
        if key == "iglob":
            yield from _exclude(options)


def _spell_flag(name: str, value: int | StrPath | Iterable[StrPath]) -> Iterator[str]:
    if value is True:
        yield f"--{name}"
    elif isinstance(value, int):
        yield f"--{name}={value}"
    else:
        for one in (value,) if isinstance(value, (str, os.PathLike)) else value:
            yield f"--{name}={_text_path(one)}"


def _exclude(options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the flags that leave out `.git` and the other files of `EXCLUDED`, unless `include_git` is set.

    These flags follow the caller's globs, because the last glob that matches a file decides.
    """
    if not options.get("include_git"):
        for name in ("glob", "iglob") if options.get("iglob") else ("glob",):
            yield from (f"--{name}=!{glob}" for glob in EXCLUDED)


def _flag_table(options: type[FileOptions]) -> dict[str, Flag]:
    return {key: flag_of(hint) for key, hint in get_type_hints(options, include_extras=True).items()}


_FILE_FLAGS = _flag_table(FileOptions)
_SEARCH_FLAGS = _flag_table(SearchOptions)
_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)  # late: making an adapter takes milliseconds
