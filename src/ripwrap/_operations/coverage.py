"""Find out which files a search reads, and why it does not read the other files.

One run of rg looks for a NUL byte in each file that it reads (`--count --include-zero`). The output lists these files,
and tells which of them have a NUL byte. For each other file, the log of another run (`--files --debug`) has the reason.
"""

import errno
import os
from bisect import insort
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from pathlib import PurePath
from typing import Any, Unpack, cast

from ripwrap._operations.reasons import Folder, Judged, Omissions, WhyNot, parts_below, read_error, relative
from ripwrap._ripgrep.command import ARGUMENTS, files_query, search_query
from ripwrap._ripgrep.debug_log import LogCollector, shown_in_log
from ripwrap._ripgrep.decoder import CountDecoder, PathDecoder
from ripwrap._ripgrep.named_paths import check_exist
from ripwrap._ripgrep.page_collector import BaseListingCollector, ListingCollector, path_order
from ripwrap._ripgrep.protocols import Runner, Step
from ripwrap._ripgrep.query import Query, only_options
from ripwrap._ripgrep.runner import AsyncRunner, DeadlineRunner
from ripwrap._system.concurrency import CANCELLED, countdown
from ripwrap._text import BOMS
from ripwrap.binary.resolver import Rg
from ripwrap.errors import CapabilityError, Hint, HintedText, named_paths
from ripwrap.models import FileCount
from ripwrap.options import FileOptions, SearchOptions, StrPath, check_timeout
from ripwrap.places.where import refuse_places
from ripwrap.results import Coverage, Reason, SkipKind, SkippedFiles

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
    cwd: StrPath | None = ".",
    paths: StrPath | Iterable[StrPath] | None = (),
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

    The answer is that of the rg that runs: rg lists the file, or its log (`--debug`) names the rule. Versions differ:
    rg 13 and 14, for example, treat ignore files above the searched path in another way than rg 15.

    Several of `paths` may contain the file. If the search of one of these paths reads the file, the answer is
    `searched`. Otherwise, the answer is the reason why the search of the first of these paths does not read the file.

    Args:
        path: A file or directory, relative to `cwd` or absolute.
        cwd: The directory of the search.
        paths: Files or directories of the search; empty is all of `cwd`.
        rg: The rg to run: a path, or a bare name to find in PATH; `None` finds one.
        **options: The options of the search; see `SearchOptions`. Only the options that choose files, or that affect
            binary files (such as `text`), have an effect.

    Raises:
        FileNotFoundError: There is no such file, or `cwd` does not exist.
        CapabilityError: rg leaves the file out, and its log gives no reason in words that ripwrap knows.

    It also raises what `files()` raises.
    """
    refuse_places("why()", options)
    files_query(cwd, [path], {})  # checks the path
    request = coverage_request(cwd, paths, options, timeout=None)
    return await run_why(AsyncRunner(rg), replace(request, path=os.fspath(path)))


@named_paths
async def coverage(
    *,
    cwd: StrPath | None = ".",
    paths: StrPath | Iterable[StrPath] | None = (),
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
    read: bool = True  # False: excluded directories are not entered, and no file is opened

    @property
    def may_be_binary(self) -> bool:
        """True if rg, with these options, stops searching a file at its first NUL byte."""
        return not any(self.options.get(name) for name in _NOT_BINARY)


def coverage_request(
    cwd: StrPath | None,
    paths: StrPath | Iterable[StrPath] | None,
    options: SearchOptions,
    timeout: float | None = None,
    *,
    read: bool = True,
) -> CoverageRequest:
    """Check the arguments, and return the request of `coverage()`; see `CoverageRequest`."""
    refuse_places("coverage()", options)
    own = tuple(name for name in ARGUMENTS if name not in ("pattern", "limit"))
    search_query("", cwd, (), options, arguments=own)  # checks all options; the next query has only some of them
    query = _nul_query(cwd, paths, options) if read else files_query(cwd, paths, only_options(options, _FILE_NAMES))
    return CoverageRequest(query, options, check_timeout(timeout), read=read)


def _nul_query(cwd: StrPath | None, paths: StrPath | Iterable[StrPath] | None, options: SearchOptions) -> Query:
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
    """Run rg to list the files that it reads, and to log what it leaves out; then walk, to count the excluded files.

    With `must_exist`, raise `FileNotFoundError` if one of the paths is missing: a `Coverage` has no place for errors.
    (It counts the paths that cannot be read.)
    """
    left = countdown(request.timeout)
    if must_exist:
        await run.call(lambda: check_exist(request.query))
    found = await run.collect(Step(request.query, lambda: _SearchedCollector(request.query), left()))
    log = await run.collect(Step(log_of(_listing(request, request.query.paths)), LogCollector, left()))
    rules = Omissions(request.query, request.options, log.found)
    tally, stopped = await run.call(lambda: _count(request, rules, found, left))
    known = await run.call(lambda: _examples(request, rules, found, tally))
    # A hint is given only after a check that rg would read the file with its option. This check may follow links, so
    # there are no hints if `read` is False.
    reasons = await _with_hints(run, request, known, left) if request.read else {path: known[path][0] for path in known}
    groups = tuple(
        SkippedFiles(kind=kind, files=files, examples=tuple(reasons[path] for path, _ in tally.first(kind)))
        for kind, files in sorted(tally.counts.items(), key=lambda one: (-one[1], one[0]))
    )
    exact = not (stopped or found.timed_out or log.timed_out)
    return Coverage(searched=tally.searched, skipped=groups, exact=exact)


def _count(
    request: CoverageRequest, rules: Omissions, found: _SearchedCollector, left: Callable[[], float | None]
) -> "tuple[_Tally, bool]":
    """Count the files that rg read, and walk through the directories to count the others; True if there was no time."""
    cancelled, stopped = CANCELLED.get(), False

    def stop() -> bool:
        nonlocal stopped
        stopped = stopped or cancelled.is_set() or left() == 0
        return stopped

    tally, unreadable = _Tally(), {error.path or "" for error in found.errors if error.kind != "other"}
    named = set(map(found.key, request.query.paths))
    for path, has_nul in found.searched.items():
        if has_nul and request.may_be_binary and path not in named:  # rg searches a named file past a NUL (rg-facts 20)
            tally.add(relative(request.query.cwd, path), "binary")
        else:
            tally.searched += 1
    for path, why_not in _walk(request, rules, lambda path: found.key(path) in found.searched, stop):
        unread = path in unreadable or (request.read and read_error(request.query.cwd, path))
        tally.add(path, why_not[1].kind if why_not else "unreadable" if unread else "other", why_not)
    return tally, stopped


def _examples(
    request: CoverageRequest, rules: Omissions, found: _SearchedCollector, tally: "_Tally"
) -> dict[str, Judged]:
    """Return the reasons of the examples in the counts, each with the first option to change."""
    errors = {error.path or "": error.message for error in found.errors if error.kind != "other"}
    reasons: dict[str, Judged] = {}
    for kind in tally.counts:
        for path, why_not in tally.first(kind):
            if kind == "binary":
                offset = _nul_offset(request, path)
                reasons[path] = Reason(path=path, kind=kind, matched=path, offset=offset, hints=(_TEXT,)), None
            elif why_not is None or (kind == "unreadable" and path in errors):
                detail = errors.get(path) or (read_error(request.query.cwd, path) if kind == "unreadable" else "")
                reasons[path] = Reason(path=path, kind=kind, matched=path, detail=detail), None
            else:
                reasons[path] = rules.reason(path, *why_not), why_not[1].hint
    return reasons


class _Tally:
    """Counts of the files that rg searched and, by reason, of the files that it excluded, with examples."""

    def __init__(self) -> None:
        self.searched = 0
        self.counts: Counter[SkipKind] = Counter()
        self._first: dict[SkipKind, list[tuple[bytes, str, WhyNot | None]]] = {}

    def add(self, path: str, kind: SkipKind, why_not: WhyNot | None = None) -> None:
        """Count a file that rg excluded for the reason `kind`."""
        self.counts[kind] += 1
        first = self._first.setdefault(kind, [])
        insort(first, (path_order(os.fsencode(path)), path, why_not), key=itemgetter(0, 1))
        del first[MAX_EXAMPLES:]

    def first(self, kind: SkipKind) -> list[tuple[str, WhyNot | None]]:
        """Return the first paths, in path order, that rg excluded for the reason `kind`; at most `MAX_EXAMPLES`."""
        return [(path, why_not) for _, path, why_not in self._first[kind]]


def _outermost(query: Query) -> list[str]:
    """Return the searched paths, without duplicates, and without paths that are inside another searched path."""
    absolute = {path: os.path.normpath(os.path.join(query.cwd, path)) for path in query.paths}
    first = {real: path for path, real in reversed(absolute.items())}
    return [path for real, path in first.items() if not any(str(parent) in first for parent in PurePath(real).parents)]


async def run_why(run: Runner, request: CoverageRequest) -> Reason:
    """Return the answer of `why()`: ask rg's listing and its log, and run rg to look for a NUL byte in the file."""
    run, cwd, path = DeadlineRunner(run, request.timeout), request.query.cwd, request.path
    # This run lists no files; rg only checks the directory, the globs and the types.
    checked = files_query(cwd, (), only_options(request.options, _FILE_NAMES) | {"max_depth": 0})
    await run.collect(Step(checked, lambda: ListingCollector(PathDecoder(), 0), request.timeout))
    await run.call(lambda: _check_path(request))
    left = countdown(request.timeout)
    found_out = await _judged(run, request, [path], left)
    reason = (await _with_hints(run, request, found_out, left))[path]
    if reason.kind == "other":
        raise CapabilityError(
            HintedText(f"rg does not list this file, and its log (--debug) gives no reason that ripwrap knows: {path}"),
            hint=HintedText("Use another rg: ", Hint(kind="install", target="ripwrap[bin]"), "."),
        )
    full = os.path.join(cwd, path)
    # rg searches a file that is a searched path past a NUL byte (rg-facts 20).
    is_named = any(parts_below(cwd, one, path) == [] for one in request.query.paths)
    may_be_binary = bool(reason or reason.hints) and request.may_be_binary and not is_named
    if not (may_be_binary and await run.call(lambda: os.path.isfile(full))):
        return reason
    query = _nul_query(cwd, [path], only_options(request.options, ("encoding",)))
    found = await run.collect(Step(query, lambda: _SearchedCollector(query), request.timeout))
    if reason and not found.searched and found.errors:
        return Reason(path=path, kind="unreadable", matched=path, detail=found.errors[0].message)
    if not any(found.searched.values()):
        return reason
    hints = (*reason.hints, _TEXT)
    if not reason:
        return reason.model_copy(update={"hints": hints})
    offset = await run.call(lambda: _nul_offset(request, path))
    return Reason(path=path, kind="binary", matched=path, offset=offset, hints=hints)


def _check_path(request: CoverageRequest) -> None:
    try:
        os.lstat(os.path.join(request.query.cwd, request.path))
    except (FileNotFoundError, NotADirectoryError):
        missing = HintedText("no such file or directory", *_CORRECT)
        raise FileNotFoundError(errno.ENOENT, missing, request.path) from None
    except OSError:  # such as a directory that may not be entered; `read_error()` finds it again
        pass


def _nul_offset(request: CoverageRequest, path: str) -> int | None:
    """Return the offset of the first NUL byte in a file; `None` if none is found, or rg transcodes the file."""
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


async def _with_hints(
    run: Runner, request: CoverageRequest, found: Mapping[str, Judged], left: Callable[[], float | None]
) -> dict[str, Reason]:
    """Return the reasons of paths with hints: the options with which rg would search them, each checked with rg."""
    waiting: dict[str, tuple[Mapping[str, Any], tuple[Hint, ...]]]
    waiting = {path: (request.options, (hint,)) for path, (_, hint) in found.items() if hint is not None}
    reasons = {path: reason for path, (reason, _) in found.items()}
    while waiting and left() != 0:
        groups: dict[str, list[str]] = {}
        changed: dict[str, dict[str, Any]] = {}
        for path, (options, hints) in waiting.items():
            given = dict(options)
            if hints[-1].kind == "omit":
                given.pop(hints[-1].option)
            else:
                given[hints[-1].option] = hints[-1].value
            changed[path] = given
            groups.setdefault(repr(sorted(given.items())), []).append(path)
        then: dict[str, Judged] = {}
        for paths in groups.values():
            then |= await _judged(run, replace(request, options=changed[paths[0]]), paths, left)
        for path, (reason, hint) in then.items():
            hints = waiting.pop(path)[1]
            if reason:
                reasons[path] = reasons[path].model_copy(update={"hints": hints})
            elif hint is not None and hint not in hints:
                waiting[path] = changed[path], (*hints, hint)
    return reasons


async def _judged(
    run: Runner, request: CoverageRequest, paths: Sequence[str], left: Callable[[], float | None]
) -> dict[str, Judged]:
    """Return for each path whether rg reads it or why not, from its listing and log, and an option to change if any."""
    answers: dict[str, list[Judged]] = {path: [] for path in paths}
    for root in request.query.paths:
        below = {path: parts for path in paths if (parts := parts_below(request.query.cwd, root, path)) is not None}
        rules = await _rules_below(run, request, root, below.values(), left)
        for path in below:
            answers[path].append(await run.call(partial(rules.judge, root, path)))
    outside = {path: (Reason(path=path, kind="outside", matched=path), None) for path in paths}
    return {
        path: next((one for one in several if one[0]), several[0]) if several else outside[path]
        for path, several in answers.items()
    }


async def _rules_below(
    run: Runner, request: CoverageRequest, root: str, below: Collection[list[str]], left: Callable[[], float | None]
) -> Omissions:
    """Return what rg says about entries below a searched path, whose parts are given."""
    rules = Omissions(request.query, request.options, {})
    if not any(below):
        return rules
    query, start = _listing(request, (root,), max(map(len, below))), "" if root == os.curdir else root
    paths = {rules.key(os.path.join(root, *parts)) for parts in below}
    listing = Step(query, lambda: ListingCollector(PathDecoder(), allowed=lambda one: rules.key(one) in paths), left())
    listed = {rules.key(path) for path in (await run.collect(listing)).items()}
    if listed == paths:
        return Omissions(request.query, request.options, {}, listed)
    wanted = {shown_in_log(os.path.join(start, *parts[:end])) for parts in below for end in range(1, len(parts) + 1)}
    log = await run.collect(Step(log_of(query), lambda: LogCollector(wanted), left()))
    return Omissions(request.query, request.options, log.found, listed)


def _listing(request: CoverageRequest, paths: Sequence[str], depth: int | None = None) -> Query:
    """Return the query that lists the files that a search reads; `depth` is how deep at most."""
    options = only_options(request.options, _FILE_NAMES)
    depths = [one for one in (depth, options.get("max_depth")) if one is not None]
    limited = {**options, "max_depth": min(depths)} if depths else options
    return replace(files_query(request.query.cwd, paths, cast("FileOptions", limited)), overlay=None)


def log_of(query: Query) -> Query:
    """Return the query of the log of a listing.

    With one thread, rg opens each directory before it looks at the globs, also those of denied directories.
    """
    return replace(query.with_(threads=2), mode="log")


def _walk(
    request: CoverageRequest, rules: Omissions, is_searched: Callable[[str], bool], stop: Callable[[], bool]
) -> Iterator[tuple[str, WhyNot | None]]:
    """Yield the files that rg does not search, although they are in the searched paths, each with the reason, if known.

    A directory that cannot be read is skipped. With `follow`, links are followed in excluded directories, too. If the
    request does not `read` files, an excluded directory is yielded, and not the files in it.
    """
    # This uses a stack instead of recursion, because a tree may be deeper than Python's recursion limit. Each item has
    # the directory above (`None` for a searched path), the name to read in it, and why it is left out.
    waiting: list[tuple[Folder | None, str, WhyNot | None]] = []
    for path in _outermost(request.query):
        full = os.path.join(request.query.cwd, path)
        if os.path.isdir(full):
            waiting.append((None, path, None))
        elif os.path.lexists(full) and not is_searched(path):
            yield path, None
    while waiting and not stop():
        above, name, inherited = waiting.pop()
        try:
            folder = rules.root(name) if above is None else rules.enter(above, name)
            names = os.listdir(os.path.join(request.query.cwd, folder.path))
        except OSError:
            continue
        for name in names:
            path = os.path.join(folder.path, name)
            if is_searched(path):
                continue
            why_not = inherited
            if inherited:
                is_folder = rules.kind(folder, path)[0]
            else:
                is_folder, cause = rules.check(folder, name)
                why_not = (path, cause) if cause else None
            if is_folder and (request.read or why_not is None):
                waiting.append((folder, name, why_not))
            else:
                yield path, why_not
