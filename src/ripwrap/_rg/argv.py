"""Options to the arguments of rg: pure, and the only place where a flag is spelled.

No string that a caller passes can become a flag, start a program or read a configuration
(docs/explanation/architecture.md): `--no-config` comes first, a value is always joined to its flag by `=`, patterns
are `--regexp=…`, paths stand behind `--`, and a path is always given, so that rg never reads stdin (rg-facts 1, 2,
4). Modes are set here and nowhere else: of two mode flags the last one wins silently (rg-facts 6).
"""

import difflib
import itertools
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, TypeVar, cast, get_type_hints

from pydantic import TypeAdapter, ValidationError

from ripwrap.options import FileOptions, Flag, SearchOptions, StrPath, flag_of

Mode: TypeAlias = Literal["json", "files-with-matches", "files-without-match", "count", "count-matches"]

Options = TypeVar("Options", bound=FileOptions)

_GIT = "!.git"
_END = "--"
_HERE = re.compile(rf"^(\.[{re.escape(os.sep + (os.altsep or ''))}]+)+")


@dataclass(frozen=True, slots=True)
class Command:
    """What rg shall do, but for which rg does it.

    Attributes:
        arguments: rg's arguments, without the executable.
        cwd: The directory that it runs in, absolute; globs and relative paths start from there.
        patterns: What is searched for; none for a listing.
        needs: The options that not every rg has, each with the first version that has it.
    """

    arguments: tuple[str, ...]
    cwd: str
    patterns: tuple[str, ...] = ()
    needs: tuple[tuple[str, tuple[int, ...]], ...] = ()

    @property
    def silent(self) -> bool:
        """Whether rg has nothing to do, of which it says nothing at all, not even a summary (rg-facts 25)."""
        return "--max-count=0" in self.arguments[: self.arguments.index(_END)]

    @property
    def counts(self) -> bool:
        """Whether it answers with counts."""
        return "--count" in self.arguments[: self.arguments.index(_END)]

    @property
    def follows(self) -> bool:
        """Whether rg follows links that it was not given by name."""
        return "--follow" in self.arguments[: self.arguments.index(_END)]

    @property
    def paths(self) -> tuple[str, ...]:
        """What rg is given to look at."""
        return self.arguments[self.arguments.index(_END) + 1 :]

    def single_threaded(self) -> "Command":
        """The same with one thread; of two flags the last one wins."""
        end = self.arguments.index(_END)
        return replace(self, arguments=(*self.arguments[:end], "--threads=1", *self.arguments[end:]))

    def types(self) -> "Command":
        """The command that lists the file types that this one knows, its own additions among them."""
        flags = itertools.takewhile(_END.__ne__, self.arguments)
        own = [flag for flag in flags if flag.startswith(("--type-add=", "--type-clear="))]
        return Command(("--no-config", *own, "--type-list", _END), self.cwd)


def search_command(
    pattern: str | Sequence[str],
    cwd: StrPath,
    paths: StrPath | Sequence[StrPath],
    options: SearchOptions,
    mode: Mode = "json",
    *,
    include_zero: bool = False,
) -> Command:
    """The command for a search that answers in JSON, or with counts, of which the modes that list files make paths.

    Raises:
        pydantic.ValidationError: An option is unknown or ill-typed.
        ValueError: There is no pattern, or a NUL or a lone surrogate in a pattern, path or option.
        TypeError: A pattern or path is not a string (or `os.PathLike` of one).
    """
    checked = _both_contexts(_checked(_SEARCH_OPTIONS, _SEARCH_FLAGS, options))
    patterns = _patterns(pattern)
    flag = f"--{mode}"
    if _lists_by_counts(mode, checked):
        flag, include_zero = "--count", mode == "files-without-match"
        checked = _up_to_one(checked)
    # In these modes a single file's name would be left out.
    framing = () if mode == "json" else ("--null", "--with-filename")
    zero = ("--include-zero",) if include_zero else ()
    regexps = (f"--regexp={one}" for one in patterns)
    arguments = (flag, *framing, *zero, *_flags(_SEARCH_FLAGS, checked), *regexps)
    return _command(arguments, cwd, paths, patterns, tuple(_needs(checked, mode)))


def words_command(
    pattern: str, cwd: StrPath, paths: StrPath | Sequence[StrPath], options: FileOptions, max_count: int
) -> Command:
    """The command for what a pattern matches, by file: a path, a NUL, each hit in a line; between files an empty line.

    Args:
        pattern: The pattern; it matches neither nothing nor over lines.
        cwd: As for `search_command()`, which says what is raised, too.
        paths: As there.
        options: Which files.
        max_count: How many lines of a file at most.
    """
    checked = _checked(_FILE_OPTIONS, _FILE_FLAGS, options)
    framing = ("--only-matching", "--heading", "--null", "--with-filename", "--no-line-number")
    regexp = f"--regexp={pattern}"
    arguments = (*framing, f"--max-count={max_count}", *_flags(_FILE_FLAGS, checked), regexp)
    return _command(arguments, cwd, paths, (pattern,))


def files_command(cwd: StrPath, paths: StrPath | Sequence[StrPath], options: FileOptions) -> Command:
    """The command for a list of files, each ended by a NUL; raises as `search_command()` does."""
    checked = _checked(_FILE_OPTIONS, _FILE_FLAGS, options)
    return _command(("--files", "--null", *_flags(_FILE_FLAGS, checked)), cwd, paths)


def types_command() -> Command:
    """The command for the file types that rg knows."""
    return Command((), os.curdir).types()


def _checked(adapter: TypeAdapter[Options], table: Mapping[str, Flag], options: Options) -> Options:
    try:
        return adapter.validate_python(options)
    except ValidationError as error:
        for name in options.keys() - table.keys():
            for like in difflib.get_close_matches(name, table, 1):
                error.add_note(f"{name} is no option; did you mean {like}?")
        raise


def _both_contexts(options: SearchOptions) -> SearchOptions:
    """Where one side's context is given, the other's is `context`: in rg 13 the one would set the other aside."""
    both = options.get("context")
    if both is None or not options.keys() & {"before_context", "after_context"}:
        return options
    sides: SearchOptions = {"before_context": both, "after_context": both}
    return {**sides, **options}


def _lists_by_counts(mode: Mode, options: SearchOptions) -> bool:
    """Whether files that match are asked for as counts up to one.

    Behind a path alone rg writes a NUL and no newline, so that `--line-buffered` would let it keep paths to itself
    until it has many, or ends. But rg 15 counts up to one wrongly where lines that do not match count, or several are
    one (rg-facts 51).
    """
    listing = mode in ("files-with-matches", "files-without-match")
    return listing and not options.get("invert_match") and not options.get("multiline")


def _up_to_one(options: SearchOptions) -> SearchOptions:
    """The options for counts up to one; without context, for which rg 15 would read on and may meet a NUL (fact 51)."""
    context = ("context", "before_context", "after_context", "passthru")
    plain = cast("SearchOptions", {name: value for name, value in options.items() if name not in context})
    plain["max_count"] = min(options.get("max_count", 1), 1)
    return plain


def _needs(options: SearchOptions, mode: Mode) -> Iterator[tuple[str, tuple[int, ...]]]:
    for key, value in options.items():
        since = _SEARCH_FLAGS[key].since
        # What is replaced shows in JSON only, and only there do old ones leave it out (rg-facts 49).
        if since and value is not False and (mode == "json" or key != "replace"):
            yield key, since


def _command(
    arguments: tuple[str, ...],
    cwd: StrPath,
    paths: StrPath | Sequence[StrPath],
    patterns: tuple[str, ...] = (),
    needs: tuple[tuple[str, tuple[int, ...]], ...] = (),
) -> Command:
    # With `--sort` or one thread rg fills blocks before it writes; in parallel the flag changes nothing (rg-facts 21).
    whole = ("--no-config", "--line-buffered", *arguments, _END, *_paths(paths))
    directory = _from_here(_text_path(cwd))
    for part in (*whole, directory):
        _check_text(part)
    return Command(whole, directory, patterns, needs)


def _from_here(cwd: str) -> str:
    """The directory that is meant now, wherever this process may be when rg starts; as it is if that cannot be told."""
    if os.path.isabs(cwd) or not cwd:
        return cwd
    try:
        here = os.getcwd()
    except FileNotFoundError:
        return cwd
    return here if cwd == os.curdir else os.path.join(here, cwd)


def _check_text(part: str) -> None:
    """Raise if a program cannot be given such a text."""
    if "\0" in part:
        raise ValueError("a NUL character cannot be part of a pattern, path or option; remove it")
    try:
        os.fsencode(part)
    except UnicodeEncodeError as error:
        raise ValueError(f"{part!r} has a character that {error.encoding} cannot encode; remove it") from error


def _patterns(pattern: str | Sequence[str]) -> tuple[str, ...]:
    if not isinstance(pattern, Iterable):
        raise TypeError(f"a pattern should be a str, or several of them, not {type(pattern).__name__}")
    patterns = (pattern,) if isinstance(pattern, (str, bytes)) else tuple(pattern)
    if not patterns:
        raise ValueError("no pattern given; pass a string or a non-empty sequence of strings")
    for one in patterns:
        if not isinstance(one, str):
            raise TypeError(f"a pattern should be a str, not {type(one).__name__}")
        try:
            one.encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                f"the pattern {one!r} is not valid Unicode; to search for a byte, write it as (?-u:\\xff)"
            ) from error
    return patterns


def _paths(paths: StrPath | Sequence[StrPath]) -> Iterator[str]:
    several = (paths,) if isinstance(paths, (str, bytes, os.PathLike)) else paths
    for path in several or (os.curdir,):
        text = _text_path(path)
        if not text:
            raise ValueError("a path is empty; pass '.' for the directory itself")
        # Taken off here, too, because rg prints what it is given: './/a' would become '/a'.
        text = _HERE.sub("", text) or os.curdir
        # A lone dash would be stdin.
        yield "./-" if text == "-" else text


def _text_path(path: StrPath) -> str:
    text = os.fspath(path)
    if not isinstance(text, str):
        raise TypeError(f"a path should be a str or os.PathLike[str], not {type(path).__name__}")
    return text


def _flags(table: Mapping[str, Flag], options: Mapping[str, Any]) -> Iterator[str]:
    if options.get("hidden") is False and options.get("type"):
        yield "--glob=!.*"  # or a type would bring hidden files back (rg-facts 37); first, so that a caller's glob wins
    for key, flag in table.items():
        value = options.get(key, flag.default)
        if value is not False and not flag.ours:
            yield from _spelled(key.replace("_", "-"), value)
        elif flag.negated and key in options:
            yield f"--no-{key.replace('_', '-')}"
        if key == "iglob":
            yield from _without_git(options)


def _spelled(name: str, value: int | StrPath | Iterable[StrPath]) -> Iterator[str]:
    if value is True:
        yield f"--{name}"
    elif isinstance(value, int):
        yield f"--{name}={value}"
    else:
        for one in (value,) if isinstance(value, (str, os.PathLike)) else value:
            yield f"--{name}={_text_path(one)}"


def _without_git(options: Mapping[str, Any]) -> Iterator[str]:
    """Leave out `.git`, behind the caller's own globs, because the last one wins; for rg all iglobs come after them."""
    if not options.get("include_git"):
        yield f"--glob={_GIT}"
        if options.get("iglob"):
            yield f"--iglob={_GIT}"


def _table(options: type[FileOptions]) -> dict[str, Flag]:
    return {key: flag_of(hint) for key, hint in get_type_hints(options, include_extras=True).items()}


_FILE_FLAGS = _table(FileOptions)
_SEARCH_FLAGS = _table(SearchOptions)
_FILE_OPTIONS = TypeAdapter(FileOptions)
_SEARCH_OPTIONS = TypeAdapter(SearchOptions)
