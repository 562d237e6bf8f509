"""Check the paths that a caller names, paths to search and ignore files, and the ignore files that apply to them.

rg goes on if a named path is missing or cannot be read. An answer without a place for errors would then look complete,
so these paths are checked before rg is started (`Query.must_exist`). After its end, rg's own errors about them count,
too: only rg knows the paths on a host, and a path may vanish meanwhile.
"""

import errno
import os
import re
import stat
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace

from ripwrap._ripgrep.decoder import DOT_SLASH
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.process import check_cwd
from ripwrap._ripgrep.query import Query
from ripwrap._system.concurrency import in_thread
from ripwrap._system.windows import IS_WINDOWS
from ripwrap._text import named, shown
from ripwrap.errors import Hint, HintedText, RipwrapError

FAKE_FILES = "RIPWRAP_FAKE_FILES"
"""Environment variable that `ripwrap.testing` sets while a program in place of rg has files that no disk has."""

_GONE = (errno.ENOENT, errno.ENOTDIR)
_NUMBERS = {"missing": errno.ENOENT, "denied": errno.EACCES, "loop": errno.ELOOP}
_OS_ERROR = re.compile(r"\(os error (\d{1,10})\)")
_CWD = Hint("cwd", kind="correct")
_CORRECT = {
    "paths": HintedText("; check ", Hint("paths", kind="correct"), " or ", _CWD),
    "ignore_file": HintedText("; check ", Hint("ignore_file", kind="correct")),
}
MAX_IGNORE_FILE_BYTES = 1 << 20
"""Maximum size in bytes of an ignore file that rg may read, for which it needs up to two seconds and 450 MB."""

_DOT_FILES, _VCS_FILES = (".rgignore", ".ignore"), (".gitignore", ".git/info/exclude")
"""Ignore files of a directory that rg does not read with `no_ignore_dot`, and with `no_ignore_vcs`."""

_FEW = 64
"""Number of paths that are checked in less time than rg needs to start."""

_AS_WARNINGS: ContextVar[bool] = ContextVar("ripwrap_missing_paths_as_warnings", default=False)


@contextmanager
def missing_paths_as_warnings() -> Generator[None]:
    """Let the queries that are made in the `with` block log named paths that cannot be read, and go on, as rg does.

    The command line shows the warnings, so its output has a place for errors.
    """
    token = _AS_WARNINGS.set(True)
    try:
        yield
    finally:
        _AS_WARNINGS.reset(token)


def must_exist(query: Query) -> Query:
    """Return the query of an answer without a place for errors: each of its paths must exist and be readable."""
    return query if _AS_WARNINGS.get() else replace(query, must_exist=True)


async def check_named(query: Query) -> None:
    """Call `check_named_blocking()`: in a worker thread, or in this task if the query names few paths.

    The thread of an anyio before 4.14 keeps the task of the caller, and with it a generator that was never closed.
    """
    if len(query.paths) > _FEW:
        await in_thread(lambda: check_named_blocking(query))
    else:
        check_named_blocking(query)


def check_named_blocking(query: Query) -> None:
    """Raise an error if a path that must exist cannot be read, or rg should not read an ignore file; not on a host."""
    if query.on is not None or FAKE_FILES in os.environ:
        return
    if query.must_exist:
        _check(query, None)
    if query.place is None and query.mode != "types":
        # rg has no limit: from 5 MB of globs it makes a regex in 9 seconds and 2 GB.
        for path, option in _ignore_files(query):
            with suppress(OSError):
                info = os.stat(path)
                special = not (stat.S_ISREG(info.st_mode) or stat.S_ISDIR(info.st_mode))
                if special or info.st_size > MAX_IGNORE_FILE_BYTES:
                    what = "is no regular file" if special else f"is larger than {MAX_IGNORE_FILE_BYTES:,} bytes"
                    said = f"the ignore file {shown(os.path.realpath(path))} {what}, so rg was not started; "
                    raise RipwrapError(HintedText(said, "shorten or remove it, or pass ", Hint(option, value=True)))


def _ignore_files(query: Query) -> Iterator[tuple[str, str]]:
    """Yield the paths of the ignore files that rg would read before a search, each with the option that prevents it."""
    options = query.options
    for path in () if options.get("no_ignore_files") else query.values("ignore_file"):
        yield os.path.join(query.cwd, path), "no_ignore_files"
    kinds: tuple[str, ...] = ()
    if not options.get("no_ignore"):
        dot, vcs = options.get("no_ignore_dot"), options.get("no_ignore_vcs")
        kinds = (*(() if dot else _DOT_FILES), *(() if vcs else _VCS_FILES))
    seen = set[tuple[int, int]]()
    for path in query.paths if kinds else ():
        folder = os.path.join(query.cwd, path)
        with suppress(OSError):
            while stat.S_ISDIR((info := os.stat(folder)).st_mode):  # rg reads no ignore files for a file that is named
                if (info.st_dev, info.st_ino) in seen:  # the directory above `/` is `/`
                    break
                seen.add((info.st_dev, info.st_ino))
                for kind in kinds:
                    yield os.path.join(folder, kind), "no_ignore"
                folder = os.path.join(folder, os.pardir)  # of a link, the directory above its target


def check_exist(query: Query) -> None:
    """Raise `FileNotFoundError` if a path of a query is missing."""
    if not _AS_WARNINGS.get() and FAKE_FILES not in os.environ:
        named = (*query.values("ignore_file"), *query.paths)
        gone = [path.removeprefix(DOT_SLASH) for path in named if _error_number(query, path) in _GONE]
        _check(query, dict.fromkeys(gone, errno.ENOENT))


def check_end(query: Query, end: Exit) -> None:
    """Raise an error if rg could not read a path that must exist, or if no path of `end` exists.

    With `--max-count=0`, rg reads no path and reports no missing path (rg-facts 25).
    """
    if end.stderr and query.must_exist:
        numbers: dict[str, int] = {}
        for error in end.path_errors():
            found = _OS_ERROR.search(error.message)  # a message about something else has no number
            number = 0 if found is None else errno.EIO if IS_WINDOWS else int(found[1])
            numbers[error.path or ""] = _NUMBERS.get(error.kind, number)
        _check(query, numbers)
    paths = end.query.paths
    if not paths or not (end.partial or end.query.silent):
        return
    if end.query.on is None:
        gone = all(_error_number(end.query, path) in _GONE for path in paths)
    else:
        missing = {error.path for error in end.path_errors() if error.kind == "missing"}
        gone = all(path.removeprefix(DOT_SLASH) in missing for path in paths)
    if gone:
        raise _error(dict.fromkeys(paths, errno.ENOENT), len(paths), "paths")


def _check(query: Query, known: Mapping[str, int] | None) -> None:
    """Raise the error for the paths that cannot be read; `known` are the errors of rg, by its names of paths."""
    ignored = () if query.options.get("no_ignore_files") else query.values("ignore_file")
    for argument, paths in (("ignore_file", ignored), ("paths", query.paths)):
        numbers: dict[str, int] = {}
        for path in paths:
            number = _error_number(query, path) if known is None else known.get(path.removeprefix(DOT_SLASH), 0)
            if number:
                numbers[path] = number
        if argument == "ignore_file" and paths and not numbers and query.on is None:
            numbers = {path: errno.EISDIR for path in paths if os.path.isdir(os.path.join(query.cwd, path))}
        if not numbers:
            continue
        if query.on is None:
            check_cwd(query.cwd)
        gone = {path: errno.ENOENT for path, number in numbers.items() if number in _GONE}
        raise _error(gone or numbers, len(paths), argument, query.cwd)


def _error_number(query: Query, path: str) -> int:
    full = os.path.join(query.cwd, path)
    if query.overlay is not None and (exists := query.overlay.exists(full)) is not None:
        return 0 if exists else errno.ENOENT
    try:
        mode = os.stat(full).st_mode
    except OSError as error:
        return error.errno or errno.EIO
    needed = os.R_OK | os.X_OK if stat.S_ISDIR(mode) else os.R_OK
    effective = os.access in os.supports_effective_ids
    return 0 if os.access(full, needed, effective_ids=effective) else errno.EACCES


def _error(wrong: Mapping[str, int], total: int, argument: str, cwd: str = "") -> OSError:
    """Return the error for paths that are missing or cannot be read."""
    (first, number), *others = wrong.items()
    if first == os.curdir and cwd:
        return OSError(number, HintedText(_CWD, " cannot be read; change its permissions"), cwd)
    text = os.strerror(number).lower()
    if others:
        none = f"none of the {total} paths {'exists' if number == errno.ENOENT else 'can be read'}"
        some = f"{len(wrong)} of the {total} paths {'do not exist' if number == errno.ENOENT else 'cannot be read'}"
        text = f"{none if len(wrong) == total else some} ({named([*wrong], 100)})"
    return OSError(number, HintedText(text, _CORRECT[argument], "; the first is" if others else ""), first)
