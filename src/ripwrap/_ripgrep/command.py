"""Translate options into arguments of rg; no I/O. No other module translates options.

A string that a caller passes can never become a flag, start a program or make rg read a configuration file
(docs/explanation/architecture.md): `--no-config` comes first, each value is joined to its flag by `=`, patterns are
passed as `--regexp=…`, and paths follow `--`. There is always a path, because without one rg reads stdin (rg-facts 1,
2, 4). If there are two mode flags, such as `--json` and `--count`, rg silently uses the last one. So options cannot set
a mode (rg-facts 6).
"""

import os
import re
import reprlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Literal, LiteralString, TypeVar, cast, get_args, get_origin

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from ripwrap._ripgrep.host import RgHost
from ripwrap._ripgrep.query import NEEDS_CAPTURES, Mode, Query, Task, without_options
from ripwrap._system.overlay import OverlayTexts, active_overlay
from ripwrap._text import advise
from ripwrap.errors import Hint, HintedText
from ripwrap.options import (
    EXCLUDED,
    VISIBLE_FILES,
    FileOptions,
    OptionBounds,
    Paths,
    SearchOptions,
    Size,
    Strings,
    StrPath,
    flag_of,
    option_hints,
)

Options = TypeVar("Options", bound=FileOptions)

ARGUMENTS = ("pattern", "cwd", "paths", "limit", "rg", "on")
"""Arguments that most operations take besides the options. Hints for a misspelled name suggest these names, too."""

_NOT_HIDDEN = "!.*"
_IGNORE_NAMES = (".gitignore", ".ignore", ".rgignore")
_EXCLUDE = os.path.join(".git", "info", "exclude")
_END_OF_OPTIONS = "--"
_LEADING_DOTS = {"/": re.compile(r"^(\./+)+"), "\\": re.compile(r"^(\.\\+)+")}


def search_query(
    pattern: str | Sequence[str],
    cwd: StrPath | None,
    paths: StrPath | Iterable[StrPath] | None,
    options: SearchOptions,
    mode: Mode = "json",
    *,
    include_zero: bool = False,
    arguments: Collection[str] = ARGUMENTS,
    on: RgHost | None = None,
    captures: str | None = None,
    pattern_file: str | None = None,
) -> Query:
    """Return the query for a search that prints JSON, counts or paths.

    `include_zero` also prints the count 0 of files without a match. `arguments` are the names of the caller's other
    arguments, which an error about an unknown option may suggest. `on` is the host that rg runs on. `captures` is the
    value of `--replace` with which rg lists the groups of each match (`ripwrap._ripgrep.groups`). `pattern_file` is a
    file with the patterns, one on each line, for patterns that are too long for a command line.
    """
    checked = _validate(SearchOptions, _FLAGS, options, arguments)
    if checked.get("case_sensitive") is False and checked.keys().isdisjoint(("ignore_case", "smart_case")):
        wrong = "case_sensitive=False alone has no effect, because case matters by default; pass "
        raise ValueError(HintedText(wrong, Hint("ignore_case", value=True), " or leave it out"))
    patterns = _patterns(pattern)
    if checked.get("encoding") == "detect":
        said = " is not possible in this operation, or together with another argument; pass the name of an encoding"
        raise ValueError(HintedText(Hint("encoding", "detect"), said))
    features = () if captures is None else (NEEDS_CAPTURES,)
    return _check(
        Query(
            mode=mode,
            options=plain_options(checked),
            patterns=patterns,
            paths=tuple(_paths(paths)),
            cwd=_directory(cwd, on),
            include_zero=include_zero,
            captures=captures,
            pattern_file=pattern_file,
            features=features,
            on=on,
            overlay=active_overlay(),
        )
    )


def words_query(
    pattern: str, cwd: StrPath | None, paths: StrPath | Iterable[StrPath] | None, options: FileOptions, max_count: int
) -> Query:
    """Return the query that prints the texts of all matches, file by file; raise what `search_query()` raises.

    The output for a file is its path, a NUL, and one line for each match. An empty line separates files.
    """
    checked = cast("SearchOptions", {**_validate(FileOptions, _FILE_NAMES, options), "max_count": max_count})
    return _file_query("words", cwd, paths, checked, (pattern,))


def files_query(
    cwd: StrPath | None,
    paths: StrPath | Iterable[StrPath] | None,
    options: FileOptions,
    arguments: Collection[str] = ARGUMENTS[1:],
    on: RgHost | None = None,
) -> Query:
    """Return the query that lists files, with a NUL after each path; raise what `search_query()` raises."""
    checked = _validate(FileOptions, _FILE_NAMES, options, arguments)
    return _file_query("files", cwd, paths, cast("SearchOptions", checked), on=on)


def _file_query(
    mode: Task,
    cwd: StrPath | None,
    paths: StrPath | Iterable[StrPath] | None,
    options: SearchOptions,
    patterns: tuple[str, ...] = (),
    on: RgHost | None = None,
) -> Query:
    plain, several = plain_options(options), tuple(_paths(paths))
    return _check(Query(mode, _directory(cwd, on), several, patterns, plain, on=on, overlay=active_overlay()))


def render(query: Query) -> tuple[str, ...]:
    """Return the arguments of rg, without the executable; the paths of the query are the last ones."""
    if query.mode == "types":
        return ("--no-config", *_flags(query.options), "--type-list", _END_OF_OPTIONS)
    by_counts, options, context = query.lists_by_counts, query.options, query.options.get("context")
    if by_counts:  # 0 stays 0; with context, rg 15 reads on after the first match (rg-facts 51)
        most = options.get("max_count")
        options = without_options(options, ("context", "before_context", "after_context", "passthru"))
        options["max_count"] = 1 if most is None else min(most, 1)
    elif context is not None and options.keys() & {"before_context", "after_context"}:
        # rg 13 would ignore `context`, also for the side that the other option does not set.
        sides: SearchOptions = {"before_context": context, "after_context": context}
        options = {**sides, **options}
    replacement = () if query.captures is None else (f"--replace={query.captures}",)
    file = () if query.pattern_file is None else (f"--file={query.pattern_file}",)
    flags = (
        *_FRAMING["count" if by_counts else query.mode],
        *("--include-zero",) * query.lists_zeros,
        *("--stats",) * query.stats,
        *query.printing,
        *_flags({**_DEFAULTS, **options}),
        *replacement,
        *(file or map("--regexp={}".format, query.patterns)),
    )
    # Without `--line-buffered`, results arrive late with `--sort` or one thread, because rg then writes large blocks.
    # With several threads the flag has no effect (rg-facts 21). It takes a write of the system for each line.
    lines = query.mode == "lines"
    paths = query.roots if lines else query.paths  # rg prints `./` before names in a path `.`
    at_once = query.streamed or (query.flushed and query.mode != "log")
    return ("--no-config", *("--line-buffered",) * (at_once and not lines), *flags, _END_OF_OPTIONS, *paths)


def in_paths(query: Query, paths: Iterable[StrPath]) -> Query:
    """Return the query that searches other paths; raise `ValueError` if one of them cannot be an argument of rg."""
    return _check(replace(query, paths=tuple(_paths(tuple(paths)))))


def choosing_flags(query: Query) -> list[str]:
    """Return the arguments of a query that affect which files are listed; an index stores them with its files."""
    return list(render(replace(query.without("sort", "sortr", "threads"), streamed=True)))  # as indexes have it


def spell_file_flags(flags: Collection[str]) -> list[str]:
    """Return the flags of `ripwrap`, besides default values, that choose the files of the flags in an index."""
    usual = choosing_flags(files_query(os.curdir, (), VISIBLE_FILES))
    added = {f"--glob={_NOT_HIDDEN}", *_exclude({"iglob": True})}
    given = [one for one in flags if one not in usual and one not in added]
    opposites = {"--no-require-git": "--require-git", f"--glob=!{EXCLUDED[0]}": "--include-git"}
    return [*given, *(opposite for flag, opposite in opposites.items() if flag not in flags)]


def _validate(
    kind: type[Options], names: Collection[str], options: Options, arguments: Collection[str] = ARGUMENTS
) -> Options:
    given: Mapping[str, object] = {
        key: value for key, value in options.items() if value is not None or key not in names
    }
    if all(key in names and _is_plain(value, _HINTS[key]) for key, value in given.items()):
        plain: dict[str, object] = {}
        for key in _HINTS:
            if key in given:
                value = given[key]
                plain[key] = [*cast("list[object]", value)] if type(value) is list else value
        return cast("Options", plain)
    try:
        return cast("Options", _adapter(cast("Any", kind)).validate_python(given))
    except ValidationError as error:
        # pydantic reports a problem for each member of a union; keep one problem for each option. A problem
        # has no location if the name of the option has lone surrogates.
        problems = {str(problem["loc"][0]): problem for problem in error.errors() if problem["loc"]}
        if not problems:
            raise
        explained = [
            _explain(name, problem, given[name], kind, [*names, *arguments]) for name, problem in problems.items()
        ]
        raise ValidationError.from_exception_data(error.title, explained) from None


def _is_plain(value: object, hint: Any) -> bool:
    """Return True if an option has an allowed value of a common type; Pydantic checks the other values.

    Its validator of the options takes 20 ms to make, more than the search of a small directory.
    """
    kind = hint.__origin__
    if kind is bool:
        return type(value) is bool
    if kind is int:
        (limits,) = (dict[str, Any](mark.limits) for mark in hint.__metadata__ if isinstance(mark, OptionBounds))
        least, most = limits.get("ge", 0), limits.get("le", value)
        return type(value) is int and least <= value <= most
    if get_origin(kind) is Literal:
        return type(value) is str and value in get_args(kind)
    texts = value if kind in (Strings, Paths) and type(value) in (list, tuple) else (value,)
    return kind in (str, Strings, Paths) and {str}.issuperset(map(type, cast("Sequence[object]", texts)))


def _explain(
    name: str, problem: ErrorDetails, value: object, options: type[object], known: Collection[str]
) -> InitErrorDetails:
    """Return a problem that pydantic found, with a new message, which says which values or options are allowed."""
    kind: LiteralString = problem["type"]  # pyright: ignore[reportAssignmentType] - mypy takes it for str
    if kind == "extra_forbidden":
        context = {"name": name, "advice": advise(name, known, value) or f"see ripwrap.{options.__name__}"}
        said = PydanticCustomError("extra_forbidden", "unknown option {name}; {advice}", context)
    else:
        limits = problem.get("ctx", {})
        allowed = _allowed(_HINTS[name].__origin__)
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


def _check(query: Query) -> Query:
    """Return the query; raise `ValueError` for a text that cannot be an argument, or if its overlay cannot be used."""
    texts = "".join(query.texts())
    if "\0" in texts or not texts.isascii():
        for part in (*render(query), query.cwd):
            check_text(part)
    return query if query.overlay is None else check_overlay(query, query.overlay)


def check_overlay(query: Query, overlay: OverlayTexts) -> Query:
    """Return the query; raise `ValueError` if an overlay cannot be used: with a sort by time, or for ignore files."""
    options = query.options
    for name, value in (("sort", options.get("sort", "none")), ("sortr", options.get("sortr", "none"))):
        if value not in ("none", "path"):
            wrong = f"texts of overlay() have no file times, so files cannot be sorted by {value!r}; leave "
            raise ValueError(HintedText(wrong, Hint(name, kind="omit"), " out, or pass ", Hint(name, "path")))
    explicit = {os.path.realpath(os.path.join(query.cwd, path)) for path in query.values("ignore_file")}
    for path in overlay.texts:
        said = f"rg cannot use the text of overlay() for the ignore file {path}; leave the file out of overlay() and "
        if path in explicit and not options.get("no_ignore_files"):
            raise ValueError(HintedText(said, "write it to the disk, or leave out ", Hint("ignore_file", kind="omit")))
        if (os.path.basename(path) in _IGNORE_NAMES or path.endswith(_EXCLUDE)) and not options.get("no_ignore"):
            raise ValueError(HintedText(said, "write it to the disk, or pass ", Hint("no_ignore", value=True)))
    return query


def _directory(path: StrPath | None, on: RgHost | None) -> str:
    """Return `cwd` as an absolute path, because the program may call `chdir()` before rg starts."""
    cwd = _text_path(os.curdir if path is None else path)
    if on is not None:
        return on.path(cwd)
    if os.path.isabs(cwd) or not cwd:
        return cwd
    try:
        here = os.getcwd()
    except FileNotFoundError:
        return cwd
    return here if cwd == os.curdir else os.path.join(here, cwd)


def check_text(part: str) -> None:
    """Raise `ValueError` if a text cannot be an argument of a program; the error quotes the text without its flag."""
    given = repr(re.sub(r"\A--[a-z0-9-]+=", "", part))
    if "\0" in part:
        raise ValueError(f"a NUL character cannot be part of a pattern, path or option; remove it from {given}")
    try:
        os.fsencode(part)
    except UnicodeEncodeError as error:
        raise ValueError(f"{given} has a character that {error.encoding} cannot encode; remove it") from error


def _named(pattern: object) -> str:
    """Return the type of what was passed as a pattern; of a compiled one, also what to pass."""
    compiled = "; pass its .pattern, and its flags as options such as ignore_case=True"
    return type(pattern).__name__ + (compiled if isinstance(pattern, re.Pattern) else "")


def _patterns(pattern: str | Sequence[str]) -> tuple[str, ...]:
    if not isinstance(pattern, Iterable):
        raise TypeError(f"a pattern must be a str or a sequence of str, got {_named(pattern)}")
    patterns = (pattern,) if isinstance(pattern, (str, bytes)) else tuple(pattern)
    if not patterns:
        raise ValueError("no pattern given; pass a string or a non-empty sequence of strings")
    for one in patterns:
        if not isinstance(one, str):
            raise TypeError(f"a pattern must be a str, got {_named(one)}")
        try:
            one.encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                f"the pattern {one!r} is not valid Unicode; to search for a byte, write it as (?-u:\\xff)"
            ) from error
    return patterns


def several_paths(paths: StrPath | Iterable[StrPath] | None) -> tuple[StrPath, ...]:
    """Return the paths of an argument `paths`, which may be a single path."""
    return (paths,) if isinstance(paths, (str, bytes, os.PathLike)) else tuple(paths or ())


def _paths(paths: StrPath | Iterable[StrPath] | None) -> Iterator[str]:
    for path in several_paths(paths) or (os.curdir,):
        text = _text_path(path)
        if not text:
            raise ValueError("a path is empty; pass '.' for the working directory of the search")
        yield normalise_path(text)


def normalise_path(path: str, sep: str = os.sep) -> str:
    r"""Return a path in the form in which it is passed to rg, which prints the path in the same form.

    The path has the separators of the system, and no `./` at its start. Only `-` becomes `./-`, because rg reads stdin
    for `-`.
    """
    if sep == "\\":
        path = path.replace("/", sep)
    # The decoder removes one './', which would make '/a' of './/a'.
    path = _LEADING_DOTS[sep].sub("", path) or os.curdir
    return f".{sep}-" if path == "-" else path  # rg takes `-` for stdin


def _text_path(path: StrPath) -> str:
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str):
        raise TypeError(f"a path must be a str or os.PathLike[str], got {type(path).__name__}")
    return text


def plain_options(options: Mapping[str, Any]) -> SearchOptions:
    """Return the options with texts in place of paths, and tuples in place of other sequences."""
    plain = dict(options)
    for name, value in options.items():
        if not isinstance(value, (str, int)):
            given = cast("os.PathLike[str] | Iterable[StrPath]", value)
            plain[name] = _text_path(given) if isinstance(given, os.PathLike) else tuple(map(_text_path, given))
    return cast("SearchOptions", plain)


def _flags(options: Mapping[str, Any]) -> Iterator[str]:
    if options.get("hidden") is False and options.get("type"):
        # Without this glob, `--type` brings hidden files back (rg-facts 37). It comes first, so that a caller's globs
        # override it.
        yield f"--glob={_NOT_HIDDEN}"
    for key in sorted(options, key=_ORDER.__getitem__):
        value, flag = options[key], _FLAGS[key]
        if value is not False and not flag.ours:
            name = key.replace("_", "-")
            if value is True:
                yield f"--{name}"
            elif isinstance(value, (int, str)):
                yield f"--{name}={value}"
            else:
                for one in value:
                    yield f"--{name}={one}"
        elif flag.negated:
            yield f"--no-{key.replace('_', '-')}"
        if key == "iglob":
            yield from _exclude(options)


def _exclude(options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the flags that leave out `.git` and the other files of `EXCLUDED`, unless `include_git` is set.

    These flags follow the caller's globs, because the last glob that matches a file decides.
    """
    if not options.get("include_git"):
        for name in ("glob", "iglob") if options.get("iglob") else ("glob",):
            for glob in EXCLUDED:
                yield f"--{name}=!{glob}"


_FILE_NAMES = tuple(FileOptions.__annotations__)
_HINTS = option_hints()
_FLAGS = {key: flag_of(hint) for key, hint in _HINTS.items()}
_ORDER = {key: number for number, key in enumerate(_FLAGS)}
_DEFAULTS = {"iglob": (), **{key: True for key, flag in _FLAGS.items() if flag.default}}
"""Options that a query has if the caller did not pass them. `.git` is left out where the option `iglob` stands."""

_FRAMING: Mapping[Task, tuple[str, ...]] = {
    "json": ("--json",),
    "lines": ("--color=never",),
    "files": ("--files", "--null"),
    "log": ("--files", "--debug"),
    "words": ("--only-matching", "--heading", "--null", "--with-filename", "--no-line-number"),
    # Without these flags, rg leaves out the name of a single file in these modes.
    **{mode: (f"--{mode}", "--null", "--with-filename") for mode in get_args(Mode) if mode != "json"},
}
_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)  # late: making an adapter takes milliseconds
