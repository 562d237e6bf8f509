"""Keep the matches of a search up to date while files change; needs the extra `watch` (watchfiles)."""

import math
import os
import time
from collections import Counter
from collections.abc import AsyncGenerator, Generator, Iterable, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, Unpack

import anyio
import anyio.to_thread

from ripwrap._concurrency import in_thread
from ripwrap._operations.search import search_request
from ripwrap._operations.waiter import QUIET_SECONDS, ChangeWaiter
from ripwrap._ripgrep.process import check_cwd
from ripwrap._ripgrep.query import Query
from ripwrap._ripgrep.stream import StreamRequest, stream, stream_blocking
from ripwrap._text import shown
from ripwrap.binary.resolver import Rg
from ripwrap.errors import Hint, HintedText, named_paths
from ripwrap.models import Match
from ripwrap.options import SearchOptions, StrPath, check_timeout
from ripwrap.places.holes import refuse_places
from ripwrap.results import MatchChange

_ByFile: TypeAlias = dict[str | None, tuple[Match, ...]]

_EXCLUDE = os.path.join(".git", "info", "exclude")
_NOT_OF_WATCH = ("limit", "inside", "captures", "on_progress", "on")
"""Arguments of `search()` that `watch()` does not have."""


@named_paths
def watch(
    pattern: str | Sequence[str],
    *,
    cwd: StrPath = ".",
    paths: StrPath | Iterable[StrPath] = (),
    quiet: float = QUIET_SECONDS,
    rg: Rg = None,
    **options: Unpack[SearchOptions],
) -> AsyncGenerator[MatchChange]:
    """Search files for a pattern, and search again each time files change; yield the added and the removed matches.

    The first item has all matches in `added`. Each further item has the matches that were added, or removed, since
    the previous item: at least one match. A match whose line has only moved within its file is not in the item. So the
    matches that were added so far, without the matches that were removed so far, are what a new search finds.

    A search runs when no file has changed for `quiet` seconds, and after ten seconds if files change without a pause.
    Therefore, many changes at once, such as a checkout of another branch, make one item. Each search reads all files,
    because a changed ignore file may change which files are searched. All matches are held in memory. Changes behind
    symbolic links, and changes of ignore files outside of `cwd`, are seen at the next change in `cwd`.

    `watch()` needs the extra `watch`. To leave early, wrap the generator in `contextlib.aclosing`.

    Args:
        pattern: A regular expression (https://docs.rs/regex), or several, any of which may match.
        cwd: The directory to search and to watch; globs and `paths` are relative to it.
        paths: Files or directories below `cwd` to search, as in `search()`; empty is all of `cwd`. If a path is missing
            in a later search, the path has no matches, and no error is raised.
        quiet: Seconds without a change before the next search; after ten seconds the search runs in any case.
        rg: The rg to run: a path, or a bare name to find in PATH; `None` finds one.
        **options: rg's flags; see `SearchOptions`.

    Raises:
        RipwrapError: watchfiles is not installed, or the system's limit of watched directories is reached.
        ValueError: `quiet` is negative or infinite, one of `paths` is not below `cwd`, or an argument of `search()`
            does not apply.
        TypeError: `quiet` is not a number.

    It also raises what `search()` raises, for the first search and for each later search.
    """
    return run_watch(watch_request(pattern, cwd, paths, quiet, options), rg)


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """Checked arguments of `watch()`."""

    search: StreamRequest[Match]
    quiet: float
    include_git: bool

    def waiter(self) -> ChangeWaiter:
        """Return an object that waits for changes in the searched directory."""

        def accept(_: object, path: str) -> bool:
            """Return True if a change of the path starts a new search.

            A change in `.git` does so only if the files in `.git` are searched. A change of `.git/info/exclude` always
            does.
            """
            if self.include_git or ".git" not in path or path.endswith(_EXCLUDE):
                return True
            real, changed = waiter.real, Path(path)
            return changed.is_relative_to(real) and ".git" not in changed.relative_to(real).parts

        waiter = ChangeWaiter(Path(self.search.query.cwd), accept, quiet=self.quiet)
        return waiter

    def query(self, *, first: bool) -> Query:
        """Return the query of the first search, or of a later search, in which some of the paths may be missing."""
        query = self.search.query
        return query if first or not query.roots else replace(query, must_exist=False)

    def without_paths(self, error: FileNotFoundError) -> list[Match]:
        """Return an empty list, in place of the matches of a search (not the first) that raised `error`.

        None of `paths` exists, for example because an editor is replacing a file. The file may come back.
        """
        query = self.search.query
        if not os.path.isdir(query.cwd) or error.filename in query.values("ignore_file"):
            raise error
        return []


def watch_request(
    pattern: str | Sequence[str], cwd: StrPath, paths: StrPath | Iterable[StrPath], quiet: float, options: SearchOptions
) -> WatchRequest:
    """Check the arguments, and return the request of `watch()`."""
    refuse_places("watch()", options)
    for name in _NOT_OF_WATCH:
        if name in options:
            raise ValueError(HintedText(Hint(name, kind="omit"), " does not apply to watch(); leave it out"))
    if not isinstance(paths, (str, bytes, os.PathLike)):
        paths = tuple(paths)
    include_git = bool(options.get("include_git", False))
    search = search_request(pattern, cwd, paths, None, options)
    top = os.path.normpath(search.query.cwd)
    for path in search.query.paths:
        if not Path(os.path.normpath(os.path.join(top, path))).is_relative_to(top):
            raise ValueError(
                f"paths must be below cwd, which is watched; got {shown(path)}; pass a common parent directory as cwd"
            )
    return WatchRequest(search, _check_quiet(quiet), include_git)


def _check_quiet(quiet: float) -> float:
    """Check the seconds without a change, and return them."""
    if not isinstance(quiet, (int, float)) or isinstance(quiet, bool):
        raise TypeError(f"quiet must be a number of seconds, got {type(quiet).__name__}")
    if not 0 <= quiet < math.inf:
        raise ValueError(
            HintedText(Hint("quiet", kind="correct"), f" must be a finite number of seconds, 0 or more; got {quiet}")
        )
    return quiet


async def run_watch(request: WatchRequest, rg: Rg) -> AsyncGenerator[MatchChange]:
    """Search, search again after each burst of changes, and yield the added and the removed matches."""
    waiter, before = request.waiter(), _ByFile()
    check_cwd(request.search.query.cwd)
    try:
        await anyio.to_thread.run_sync(waiter.begin)  # before the search, so that no change is missed
        first = True
        while first or await waiter.wait_async():
            query, answer = request.query(first=first), request.search.answer()
            try:
                async with aclosing(stream(query, answer, rg)) as matches:
                    found = [match async for match in matches]
            except FileNotFoundError as error:
                if first:
                    raise
                found = request.without_paths(error)
            # Compare in a thread, because this takes seconds for a million matches.
            change, before = await in_thread(partial(_difference, before, found))
            if first or change.added or change.removed:
                yield change
            first = False
    finally:
        waiter.stop.set()
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(waiter.close, limiter=anyio.CapacityLimiter(1))


def run_watch_blocking(request: WatchRequest, rg: Rg, timeout: float | None) -> Generator[MatchChange]:
    """Blocking: search, search again after each burst of changes, and yield the added and the removed matches."""
    return _run_blocking(request, rg, check_timeout(timeout))


def _run_blocking(request: WatchRequest, rg: Rg, timeout: float | None) -> Generator[MatchChange]:
    waiter, before = request.waiter(), _ByFile()
    check_cwd(request.search.query.cwd)
    deadline = math.inf if timeout is None else time.monotonic() + timeout
    try:
        waiter.begin()
        first = True
        while first or waiter.wait(deadline):
            left = None if timeout is None else max(0.0, deadline - time.monotonic())
            try:
                query, answer = request.query(first=first), request.search.answer()
                with closing(stream_blocking(query, answer, rg, left)) as matches:
                    found = list(matches)
            except FileNotFoundError as error:
                if first:
                    raise
                found = request.without_paths(error)
            except TimeoutError:
                break
            change, before = _difference(before, found)
            if first or change.added or change.removed:
                yield change
            first = False
        raise TimeoutError(
            f"stopped watching {shown(str(waiter.root))} after timeout={timeout} seconds; to watch longer, allow more "
            "time"
        )
    finally:
        waiter.stop.set()
        waiter.close()


def _by_file(matches: Iterable[Match]) -> _ByFile:
    files: dict[str | None, list[Match]] = {}
    for match in matches:
        files.setdefault(match.path, []).append(match)
    return {path: tuple(found) for path, found in files.items()}


def _difference(before: _ByFile, matches: Iterable[Match]) -> tuple[MatchChange, _ByFile]:
    """Return the added and the removed matches, in the order of their paths, and all current matches by file."""
    now = _by_file(matches)
    added: list[Match] = []
    removed: list[Match] = []
    for path in sorted({*before, *now}, key=lambda path: path or ""):
        old, new = before.get(path, ()), now.get(path, ())
        if old != new:
            added += _without(new, old)
            removed += _without(old, new)
    return MatchChange(added=tuple(added), removed=tuple(removed), total=sum(map(len, now.values()))), now


def _without(matches: Iterable[Match], others: Iterable[Match]) -> list[Match]:
    """Return the matches that have no equal line in `others`. Each line in `others` removes at most one match."""
    left = Counter(map(_key, others))
    found: list[Match] = []
    for match in matches:
        key = _key(match)
        if left[key]:
            left[key] -= 1
        else:
            found.append(match)
    return found


def _key(match: Match) -> tuple[Any, ...]:
    """Return the parts of a match that stay the same if its line moves within the file."""
    return match.raw_lines, match.submatches
