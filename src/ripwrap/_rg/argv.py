"""Options to the arguments of rg: pure, and the only place where a flag is spelled.

No string that a caller passes can become a flag, start a program or read a configuration
(docs/explanation/architecture.md): `--no-config` comes first, a value is always joined to its flag by `=`, patterns
are `--regexp=…`, paths stand behind `--`, and a path is always given, so that rg never reads stdin (rg-facts 1, 2,
4). Modes are set here and nowhere else: of two mode flags the last one wins silently (rg-facts 6).
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, get_type_hints

from pydantic import TypeAdapter

from ripwrap.options import FileOptions, Flag, SearchOptions

StrPath: TypeAlias = str | os.PathLike[str]

_GIT = "!.git"


@dataclass(frozen=True, slots=True)
class Command:
    """What rg shall do, but for which rg does it.

    Attributes:
        arguments: rg's arguments, without the executable.
        cwd: The directory that it runs in; globs and relative paths start from there.
        replaces: Whether `replace` was asked for, which rg before 15 leaves out of its JSON (rg-facts 49).
    """

    arguments: tuple[str, ...]
    cwd: str
    replaces: bool = False


def search_command(
    pattern: str | Sequence[str], cwd: StrPath, paths: StrPath | Sequence[StrPath], options: SearchOptions
) -> Command:
    """The command for a search with JSON output.

    Raises:
        pydantic.ValidationError: An option is unknown or ill-typed.
        ValueError: There is no pattern, or a NUL in a pattern, path or option.
        TypeError: A pattern or path is not a string (or `os.PathLike` of one).
    """
    checked = _SEARCH_OPTIONS.validate_python(options)
    patterns = [f"--regexp={one}" for one in _patterns(pattern)]
    arguments = ["--json", *_flags(_SEARCH_FLAGS, checked), *patterns]
    return _command(arguments, cwd, paths, replaces="replace" in checked)


def files_command(cwd: StrPath, paths: StrPath | Sequence[StrPath], options: FileOptions) -> Command:
    """The command for a list of files, each ended by a NUL; raises as `search_command()` does."""
    checked = _FILE_OPTIONS.validate_python(options)
    return _command(["--files", "--null", *_flags(_FILE_FLAGS, checked)], cwd, paths)


def _command(
    arguments: list[str], cwd: StrPath, paths: StrPath | Sequence[StrPath], *, replaces: bool = False
) -> Command:
    # With `--sort` or one thread rg fills blocks before it writes; in parallel the flag changes nothing (rg-facts 21).
    whole = ("--no-config", "--line-buffered", *arguments, "--", *_paths(paths))
    directory = _text_path(cwd)
    if any("\0" in part for part in (*whole, directory)):
        raise ValueError("a NUL character cannot be part of a pattern, path or option; remove it")
    return Command(whole, directory, replaces)


def _patterns(pattern: str | Sequence[str]) -> Sequence[str]:
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
    for path in several or (".",):
        text = _text_path(path)
        if not text:
            raise ValueError("a path is empty; pass '.' for the directory itself")
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
        if not flag.ours:
            yield from _spelled(key.replace("_", "-"), options.get(key, flag.default))
        if key == "iglob":
            yield from _without_git(options)


def _spelled(name: str, value: bool | int | str | Iterable[str]) -> Iterator[str]:
    if isinstance(value, bool):
        if value:
            yield f"--{name}"
    elif isinstance(value, (int, str)):
        yield f"--{name}={value}"
    else:
        for one in value:
            yield f"--{name}={one}"


def _without_git(options: Mapping[str, Any]) -> Iterator[str]:
    """Leave out `.git`, behind the caller's own globs, because the last one wins; for rg all iglobs come after them."""
    if not options.get("include_git"):
        yield f"--glob={_GIT}"
        if options.get("iglob"):
            yield f"--iglob={_GIT}"


def _table(options: type[FileOptions]) -> dict[str, Flag]:
    hints = get_type_hints(options, include_extras=True)
    return {key: next(mark for mark in hint.__metadata__ if isinstance(mark, Flag)) for key, hint in hints.items()}


_FILE_FLAGS = _table(FileOptions)
_SEARCH_FLAGS = _table(SearchOptions)
_FILE_OPTIONS = TypeAdapter(FileOptions)
_SEARCH_OPTIONS = TypeAdapter(SearchOptions)
