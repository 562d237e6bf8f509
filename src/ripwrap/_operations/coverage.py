"""Find out which files a search reads, and why it does not read the other files.

One run of rg looks for a NUL byte in each file that it reads (`--count --include-zero`). The output lists these files,
and tells which of them have a NUL byte. For each other file, `_ignore/selection.py` finds the reason. This module
applies the rules of ignore files in the same way as rg.
"""

import errno
import math
import os
import stat
import time
from bisect import insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Unpack

from ripwrap._concurrency import CANCELLED
from ripwrap._ripgrep.command import ARGUMENTS, files_query, search_query
from ripwrap._ripgrep.decoder import CountDecoder, FileTypes, PathDecoder, decode_types
from ripwrap._ripgrep.listing_collector import BaseListingCollector, ListingCollector
from ripwrap._ripgrep.named_paths import check_exist
from ripwrap._ripgrep.output import WholeOutput, refuse_failure
from ripwrap._ripgrep.page_collector import path_order
from ripwrap._ripgrep.protocols import Runner, Step
from ripwrap._ripgrep.query import Query, only_options
from ripwrap._ripgrep.runner import AsyncRunner, DeadlineRunner
from ripwrap._text import BOMS
from ripwrap.binary.resolver import Rg
from ripwrap.errors import Hint, HintedText, named_paths
from ripwrap.models import FileCount
from ripwrap.options import FileOptions, SearchOptions, StrPath, check_timeout
from ripwrap.places.holes import refuse_places
from ripwrap.results import Coverage, Reason, SkipKind, SkippedFiles

if TYPE_CHECKING:
    from ripwrap._ignore.selection import Cause

COVERAGE_TIMEOUT = 10.0
MAX_EXAMPLES = 3
"""Maximum number of example files for each reason why files are not searched."""

_NUL = r"\x00"
_FILE_NAMES = frozenset(FileOptions.__annotations__) - {"sort", "sortr"}
_NOT_BINARY = ("text", "binary", "null_data")
"""Options with which rg searches binary files to their end."""

_BLOCK = 1 << 16
_TEXT = Hint("text", value=True)
_CORRECT = ("; check ", Hint("path", kind="correct"), " or ", Hint("cwd", kind="correct"))
_UTF16_BOMS = tuple(mark for mark, encoding in BOMS if encoding.startswith("utf-16"))


@named_paths
async def why(
    path: StrPath,
    *,
    cwd: StrPath = ".",
    paths: StrPath | Iterable[StrPath] = (),
    rg: Rg = None,
    **options: Unpack[SearchOptions],
) -> Reason:
    """Return the reason why a search with these options reads or does not read a file.

    ```python
    import asyncio

    import ripwrap

    print(asyncio.run(ripwrap.why("shop/till.py", cwd="demo")))
    print(asyncio.run(ripwrap.why("shop/till.py", cwd="demo", type="md", max_depth=1)))
    ```

    ```text
    searched
    its directory shop is too deep; it would be searched without the options max_depth, type
    ```

    ripwrap applies the rules of rg 15.2. Another version of rg may choose other files: rg 13 and 14 treat ignore files
    above the searched path and in nested repositories differently, and do not recognize repositories of Jujutsu.
    Versions before 15.2 do not read `GIT_CONFIG_GLOBAL`, `GIT_CONFIG_SYSTEM` and `/etc/gitconfig`.

    Several of `paths` may contain the file. If the search of one of these paths reads the file, the answer is
    `searched`. Otherwise, the answer is the reason why the search of the first of these paths does not read the file.

    Args:
        path: A file or directory, relative to `cwd` or absolute.
        cwd: The directory of the search.
        paths: Files or directories of the search; empty is all of `cwd`.
        rg: The rg to run: a path, or a bare name to find in PATH; `None` finds one. rg lists the file types, and
            finds NUL bytes.
        **options: The options of the search; see `SearchOptions`. Only the options that choose files, or that affect
            binary files (such as `text`), have an effect.

    Raises:
        FileNotFoundError: There is no such file, or `cwd` does not exist.

    It also raises what `files()` raises.
    """
    return await run_why(AsyncRunner(rg), why_request(path, cwd, paths, options, timeout=None))


@named_paths
async def coverage(
    *,
    cwd: StrPath = ".",
    paths: StrPath | Iterable[StrPath] = (),
    timeout: float | None = COVERAGE_TIMEOUT,  # noqa: ASYNC109 - keeps the counts until then, which a cancel scope would drop
    rg: Rg = None,
    **options: Unpack[SearchOptions],
) -> Coverage:
    """Count the files that a search with these options reads, and the files that it excludes, by reason.

    The call takes as long as a search that reads every file. It also walks through all directories, including the
    directories that rg excludes. `why()` gives the reason for one file.

    ```python
    import asyncio

    import ripwrap

    print(asyncio.run(ripwrap.coverage(cwd="demo/shop", glob="cart.*")))
    ```

    ```text
    1 file searched; 1 not: 1 left out by globs.
    ```

    Args:
        cwd: The directory of the search.
        paths: Files or directories of the search; empty is all of `cwd`.
        timeout: Seconds for the whole call; `None` is no limit. When the time is up, the counts so far are returned
            as lower bounds, and `Coverage.exact` is false.
        rg: The rg to run: a path, or a bare name to find in PATH; `None` finds one.
        **options: The options of the search; see `SearchOptions`. Only the options that choose files, or that affect
            binary files (such as `text`), have an effect.

    Raises what `files()` raises.
    """
    request = coverage_request(cwd, paths, options, timeout)
    return await run_coverage(AsyncRunner(rg), request, must_exist=True)


@dataclass(frozen=True, slots=True)
class CoverageRequest:
    """Checked arguments of `coverage()` or `why()`."""

    query: Query
    options: Mapping[str, Any]
    timeout: float | None
    path: str = ""
    inside: str = ""
    read: bool = True

    @property
    def may_be_binary(self) -> bool:
        """True if rg, with these options, stops searching a file at its first NUL byte."""
        return not any(self.options.get(name) for name in _NOT_BINARY)


def coverage_request(
    cwd: StrPath,
    paths: StrPath | Iterable[StrPath],
    options: SearchOptions,
    timeout: float | None = None,
    *,
    read: bool = True,
    inside: str = "",
) -> CoverageRequest:
    """Check the arguments, and return the request of `coverage()`; for `read` and `inside` see `CoverageRequest`."""
    refuse_places("coverage()", options)
    own = tuple(name for name in ARGUMENTS if name not in ("pattern", "limit"))
    search_query("", cwd, (), options, arguments=own)  # checks all options; the next query has only some of them
    query = _nul_query(cwd, paths, options) if read else files_query(cwd, paths, only_options(options, _FILE_NAMES))
    return CoverageRequest(query, options, check_timeout(timeout), inside=inside, read=read)


def why_request(
    path: StrPath, cwd: StrPath, paths: StrPath | Iterable[StrPath], options: SearchOptions, *, timeout: float | None
) -> CoverageRequest:
    """Check the arguments, and return the request of `why()`."""
    refuse_places("why()", options)
    files_query(cwd, [path], {})  # checks the path
    return replace(coverage_request(cwd, paths, options, timeout), path=os.fspath(path))


def _nul_query(cwd: StrPath, paths: StrPath | Iterable[StrPath], options: SearchOptions) -> Query:
    """Return the query that prints for each file 1 if its decoded text has a NUL byte, otherwise 0."""
    kept = only_options(options, {*_FILE_NAMES, "encoding"})
    return search_query(_NUL, cwd, paths, {**kept, "text": True, "max_count": 1}, "count", include_zero=True)


class _SearchedCollector(BaseListingCollector[FileCount | str]):
    """Collector of the paths in rg's output: the files that rg read or, with `--files`, only listed."""

    def __init__(self, query: Query) -> None:
        super().__init__(CountDecoder() if query.counts else PathDecoder())
        self.searched: dict[str, bool] = {}
        # With several paths, rg may print a relative and an absolute path of the same file.
        self._cwd = "" if len(query.paths) == 1 else query.cwd

    def key(self, path: str) -> str:
        """Return a key for a path that rg prints; the key is equal for all paths to the same file."""
        return os.path.normpath(os.path.join(self._cwd, path))

    def feed(self, chunk: bytes) -> None:
        """Process a chunk of rg's output."""
        for one in self._decoder.feed(chunk):
            path, has_nul = (one, False) if isinstance(one, str) else (one.path, bool(one.count))
            self.searched[self.key(path)] = has_nul


async def run_coverage(run: Runner, request: CoverageRequest, *, must_exist: bool = False) -> Coverage:
    """Run rg to list the files that it reads, then walk through the directories to count the excluded files.

    With `must_exist`, raise `FileNotFoundError` if one of the paths is missing: a `Coverage` has no place for errors.
    (It counts the paths that cannot be read.)
    """
    deadline = math.inf if request.timeout is None else time.monotonic() + request.timeout
    if must_exist:
        await run.call(partial(check_exist, request.query))
    found = await run.collect(Step(request.query, partial(_SearchedCollector, request.query), request.timeout))
    types = await _types(run, request)
    return await run.call(partial(_count, request, types, found, deadline))


async def _types(run: Runner, request: CoverageRequest) -> FileTypes:
    """Return rg's file types, after `type_add` and `type_clear`; empty if neither `type` nor `type_not` is given."""
    if not (request.options.get("type") or request.options.get("type_not")):
        return {}
    output = await run.collect(Step(request.query.types(), partial(WholeOutput, refuse_failure), None))
    return decode_types(b"".join(output.chunks))


def _count(request: CoverageRequest, types: FileTypes, found: _SearchedCollector, deadline: float) -> Coverage:
    """Count the files that rg read, and walk through the directories to count the other files."""
    # late: it imports pathspec
    from ripwrap._ignore.selection import Selection, walk_left_out

    cancelled, stopped = CANCELLED.get(), found.timed_out

    def stop() -> bool:
        nonlocal stopped
        stopped = stopped or cancelled.is_set() or time.monotonic() > deadline
        return stopped

    tally, unreadable = _Tally(), {error.path or "": error.message for error in found.errors if error.kind != "other"}
    named = set(map(found.key, request.query.paths))
    for path, has_nul in found.searched.items():
        if has_nul and request.may_be_binary and path not in named:  # rg searches a named file past a NUL (rg-facts 20)
            tally.add(_relative(request.query.cwd, path), "binary")
        else:
            tally.searched += 1
    selection = Selection(request.query.cwd, request.options, types, inside=request.inside)
    for one in walk_left_out(
        selection, _outermost(request.query), lambda path: found.key(path) in found.searched, stop, whole=request.read
    ):
        unread = one.path in unreadable or (request.read and _read_error(request, one.path))
        tally.add(one.path, one.cause.kind if one.cause else "unreadable" if unread else "other")
    groups = (
        SkippedFiles(
            kind=kind,
            files=tally.counts[kind],
            examples=tuple(
                _example(request, types, path, kind, unreadable.get(path, "")) for path in tally.first(kind)
            ),
        )
        for kind in sorted(tally.counts, key=lambda kind: (-tally.counts[kind], kind))
    )
    return Coverage(searched=tally.searched, skipped=tuple(groups), exact=not stopped)


class _Tally:
    """Counts of the files that rg searched and, by reason, of the files that it excluded, with examples."""

    def __init__(self) -> None:
        self.searched = 0
        self.counts: dict[SkipKind, int] = {}
        self._first: dict[SkipKind, list[tuple[bytes, str]]] = {}

    def add(self, path: str, kind: SkipKind) -> None:
        """Count a file that rg excluded for the reason `kind`."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        first = self._first.setdefault(kind, [])
        insort(first, (path_order(os.fsencode(path)), path))
        del first[MAX_EXAMPLES:]

    def first(self, kind: SkipKind) -> list[str]:
        """Return the first paths, in path order, that rg excluded for the reason `kind`; at most `MAX_EXAMPLES`."""
        return [path for _, path in self._first[kind]]


def _outermost(query: Query) -> list[str]:
    """Return the searched paths, without duplicates, and without paths that are inside another searched path."""
    absolute = {path: os.path.normpath(os.path.join(query.cwd, path)) for path in query.paths}
    first = {real: path for path, real in reversed(absolute.items())}
    return [path for real, path in first.items() if not any(str(parent) in first for parent in PurePath(real).parents)]


def _read_error(request: CoverageRequest, path: str) -> str:
    """Return the reason why a file or directory cannot be read; empty if it can be read, or is a FIFO or device."""
    full = os.path.join(request.query.cwd, path)
    try:
        mode = os.stat(full).st_mode
        if stat.S_ISDIR(mode):
            os.scandir(full).close()
        elif stat.S_ISREG(mode):  # opening a FIFO could wait for ever
            open(full, "rb").close()
    except FileNotFoundError:
        return "a broken link"
    except OSError as error:
        return error.strerror or type(error).__name__
    return ""


def _example(request: CoverageRequest, types: FileTypes, path: str, kind: SkipKind, error: str) -> Reason:
    """Return the reason why a file was excluded.

    `error` is rg's message if rg could not read the file; otherwise it is empty.
    """
    if kind == "binary":
        return Reason(path=path, kind=kind, matched=path, offset=_nul_offset(request, path), hints=(_TEXT,))
    # A hint is given only after a check that rg would read the file with its option. This check may follow links, so
    # there are no hints if `read` is False.
    if kind == "other" or (kind == "unreadable" and error) or not request.read:
        return Reason(path=path, kind=kind, matched=path, detail=error)
    return _reason(request, types, path)


async def run_why(run: Runner, request: CoverageRequest) -> Reason:
    """Return the answer of `why()`: check the rules for the path, and run rg to look for a NUL byte in the file."""
    run, cwd, path = DeadlineRunner(run, request.timeout), request.query.cwd, request.path
    # This run lists no files; rg only checks the directory, the globs and the types.
    checked = files_query(cwd, (), only_options(request.options, _FILE_NAMES) | {"max_depth": 0})
    await run.collect(Step(checked, lambda: ListingCollector(PathDecoder(), 0), request.timeout))
    types = await _types(run, request)
    reason, may_be_binary = await run.call(partial(_reason_by_rules, request, types))
    if not may_be_binary:
        return reason
    query = _nul_query(cwd, [path], only_options(request.options, ("encoding",)))
    found = await run.collect(Step(query, partial(_SearchedCollector, query), request.timeout))
    if reason and not found.searched and found.errors:
        return Reason(path=path, kind="unreadable", matched=path, detail=found.errors[0].message)
    if not any(found.searched.values()):
        return reason
    hints = (*reason.hints, _TEXT)
    if not reason:
        return reason.model_copy(update={"hints": hints})
    offset = await run.call(partial(_nul_offset, request, path))
    return Reason(path=path, kind="binary", matched=path, offset=offset, hints=hints)


def _reason_by_rules(request: CoverageRequest, types: FileTypes) -> tuple[Reason, bool]:
    """Return the reason that the rules give for the path of `why()`, and True if a NUL byte may be a further reason."""
    full = os.path.join(request.query.cwd, request.path)
    try:
        os.lstat(full)
    except (FileNotFoundError, NotADirectoryError):
        missing = HintedText("no such file or directory", *_CORRECT)
        raise FileNotFoundError(errno.ENOENT, missing, request.path) from None
    except OSError:  # such as a directory that may not be entered; `_read_error()` finds it again
        pass
    reason = _reason(request, types, request.path)
    readable = bool(reason or reason.hints) and os.path.isfile(full) and not _is_named(request)
    return reason, readable and request.may_be_binary


def _is_named(request: CoverageRequest) -> bool:
    """Return True if the path of `why()` is a searched path; rg searches such a file past a NUL byte (rg-facts 20)."""
    return any(_parts_below(request, path) == [] for path in request.query.paths)


def _nul_offset(request: CoverageRequest, path: str) -> int | None:
    """Return the offset of the first NUL byte in a file; `None` if no NUL byte is found.

    The result is also `None` if rg transcodes the file, or if the file cannot be read.
    """
    if request.options.get("encoding") not in (None, "auto", "none"):
        return None
    offset = 0
    try:
        with open(os.path.join(request.query.cwd, path), "rb") as file:
            while block := file.read(_BLOCK):
                if not offset and block.startswith(_UTF16_BOMS) and request.options.get("encoding") != "none":
                    return None
                if (found := block.find(b"\0")) >= 0:
                    return offset + found
                offset += len(block)
    except OSError:
        pass
    return None


def _reason(request: CoverageRequest, types: FileTypes, path: str) -> Reason:
    """Return the reason why rg searches or excludes a path, with hints: the options with which rg would search it.

    There are no hints if rg searches the path, or if no options help. NUL bytes are not checked.
    """
    reason, hint = _find_reason(request, types, path)
    hints: list[Hint] = []
    options = dict(request.options)
    while hint is not None and hint not in hints:
        hints.append(hint)
        if hint.kind == "omit":
            options.pop(hint.option)
        else:
            options[hint.option] = hint.value
        then, hint = _find_reason(replace(request, options=options), types, path)
        if then:
            return reason.model_copy(update={"hints": tuple(hints)})
    return reason


def _find_reason(request: CoverageRequest, types: FileTypes, path: str) -> tuple[Reason, Hint | None]:
    """Return the reason why rg searches or excludes a path, and a hint: an option to change so that rg searches it.

    More than one option may have to change; the hint is the first of these options. The hint is `None` if rg searches
    the path, or if no option helps.
    """
    from ripwrap._ignore.selection import Cause, Selection

    selection = Selection(request.query.cwd, request.options, types, inside=request.inside)
    answers: list[tuple[Reason, Hint | None]] = []
    for searched in request.query.paths:
        parts = _parts_below(request, searched, path)
        if parts is None:
            continue
        matched, cause = selection.find_cause(searched, parts)
        if cause is None and (error := _read_error(request, path)):
            cause = Cause("unreadable", detail=error)
        if cause is None:
            return Reason(path=path, kind="searched", matched=path), None
        answers.append((_reason_for(request, path, path if matched is None else matched, cause), cause.hint))
    return answers[0] if answers else (Reason(path=path, kind="outside", matched=path), None)


def _reason_for(request: CoverageRequest, path: str, matched: str, cause: "Cause") -> Reason:
    rule = cause.rule
    of_file = rule is not None and cause.kind == "ignored"
    return Reason(
        path=path,
        kind=cause.kind,
        matched=matched,
        file=_relative(request.query.cwd, rule.file) if rule is not None and of_file else None,
        line=rule.number if rule is not None and of_file else None,
        glob=rule.text if rule is not None else None,
        detail=cause.detail,
    )


def _relative(cwd: str, file: str) -> str:
    """Return a path relative to `cwd` if it is below `cwd` or the real path of `cwd`; otherwise return it unchanged."""
    for start in (cwd, os.path.realpath(cwd)):
        if file.startswith(os.path.join(start, "")):
            return os.path.relpath(file, start)
    return file


def _parts_below(request: CoverageRequest, searched: str, path: str | None = None) -> list[str] | None:
    """Return the parts of a path below a searched path: `["b", "c.py"]` for `a/b/c.py` below `a`.

    The list is empty if both paths are the same. `None` means that the path is not below the searched path.
    """
    cwd = request.query.cwd
    target = os.path.normpath(os.path.join(cwd, request.path if path is None else path))
    root = os.path.normpath(os.path.join(cwd, searched))
    real = os.path.join(os.path.realpath(os.path.dirname(target)), os.path.basename(target))
    for above, below in ((root, target), (os.path.realpath(root), real)):
        if above == below:
            return []
        if below.startswith(os.path.join(above, "")):
            return os.path.relpath(below, above).split(os.sep)
    return None
