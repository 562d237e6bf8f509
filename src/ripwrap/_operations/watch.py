"""Keep the matches of a search up to date while files change; needs the extra `watch` (watchfiles)."""

import math
import os
import threading
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, Unpack

import anyio
import anyio.to_thread

from ripwrap._operations.search import MatchAnswer, refuse_context
from ripwrap._ripgrep.command import several_paths
from ripwrap._ripgrep.process import check_cwd
from ripwrap._ripgrep.query import Query
from ripwrap._ripgrep.stream import StreamRequest, run_stream, run_stream_blocking
from ripwrap._system.concurrency import in_thread
from ripwrap._text import shown
from ripwrap.binary.resolver import Rg
from ripwrap.errors import Hint, HintedText, MissingPackageError, RipwrapError, named_paths
from ripwrap.models import Match
from ripwrap.options import SearchOptions, StrPath
from ripwrap.places.where import placed_search, refuse_places
from ripwrap.results import MatchChange

QUIET_SECONDS = 0.5
"""Seconds without a further change before changes are reported. Editors and git often change several files at once."""

_MAX_DELAY_SECONDS = 10.0  # maximum delay after the first change, if files keep changing
_GROUPING_MS = 50  # time for which watchfiles collects changes before it checks the stop event
_POLL_INTERVAL_MS = 100  # time for which watchfiles waits for a first change
_NO_CHANGES: set[Any] = set()


@dataclass(slots=True)
class ChangeWaiter:
    """Object that waits for changes in a directory; one thread at a time can wait.

    If the watched directory is replaced by another directory with the same path, `wait()` watches the new directory.
    """

    root: Path
    accept: Callable[[Any, str], bool]
    outside: Sequence[Path] = ()
    quiet: float = QUIET_SECONDS
    stop: threading.Event = field(default_factory=threading.Event)
    clock: Callable[[], float] = time.monotonic
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _changes: "Generator[set[Any]] | None" = None
    _real: str = ""
    _identity: tuple[int, int] | None = None

    @property
    def real(self) -> Path:
        """Real path of the watched directory; paths of changes begin with it."""
        return Path(self._real)

    def begin(self) -> None:
        """Start watching: from now on, the operating system records changes."""
        with self._lock:
            self._begin()

    def _begin(self) -> None:
        try:
            from watchfiles import watch
        except ModuleNotFoundError as error:
            package = Hint(kind="install", target="ripwrap[watch]")
            needed = HintedText(f"watching needs the package {error.name}: ", package)
            raise MissingPackageError(needed, name=error.name) from error
        os.scandir(self.root).close()
        self._identity, self._real = self._identify(), os.path.realpath(self.root)
        self._changes = watch(
            self._real,
            *self.outside,
            watch_filter=self.accept,
            step=_GROUPING_MS,
            rust_timeout=_POLL_INTERVAL_MS,
            yield_on_timeout=True,
            stop_event=self.stop,
            ignore_permission_denied=True,
        )
        self._next()

    def wait(self, until: float = math.inf) -> bool:
        """Wait until there are changes to report, and return True."""
        with self._lock:
            first = last = 0.0
            replaced = False
            while not self.stop.is_set() and self.clock() < until:
                changes = self._next()
                now = self.clock()
                if not replaced and self._is_replaced(changes):
                    replaced = True
                    first, last = first or now, now
                if changes:
                    first, last = first or now, now
                if first and (now - last >= self.quiet or now - first >= _MAX_DELAY_SECONDS):
                    if replaced and os.path.isdir(self.root):  # watch the new directory
                        old, self._changes = self._changes, None
                        if old is not None:
                            old.close()
                        self._begin()
                    return True
        return False

    async def wait_async(self) -> bool:
        """Run `wait()` in a worker thread, without a deadline, and return its result."""
        # Each call has its own limiter. anyio's default limiter has 40 worker threads for the whole program, and a few
        # dozen watchers would use up all of them.
        return await anyio.to_thread.run_sync(self.wait, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1))

    def close(self) -> None:
        """Stop watching. If a thread is in `wait()`, set `stop` first: this method waits until that thread returns."""
        with self._lock:
            changes, self._changes = self._changes, None
            if changes is not None:
                changes.close()

    def _identify(self) -> tuple[int, int] | None:
        """Return the device and inode number of the directory; `None` if it does not exist or cannot be read."""
        try:
            found = os.stat(self.root)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _is_replaced(self, changes: set[Any]) -> bool:
        """Return True if the directory was deleted, moved or replaced, perhaps by one with its inode number."""
        if self._identity is None:
            return False
        deleted = any(path == self._real and kind.name == "deleted" for kind, path in changes)
        return deleted or self._identify() != self._identity

    def _next(self) -> set[Any]:
        if self._changes is None:
            return _NO_CHANGES
        try:
            return next(self._changes, _NO_CHANGES)
        except (OSError, RuntimeError) as error:  # watchfiles raises RuntimeError
            step = "; raise the limit fs.inotify.max_user_watches" if "watch limit" in str(error) else ""
            raise RipwrapError(f"could not watch {shown(str(self.root))}: {error}{step}") from error


_ByFile: TypeAlias = dict[str | None, tuple[Match, ...]]

_EXCLUDE = os.path.join(".git", "info", "exclude")
NOT_OF_WATCH = ("limit", "inside", "captures", "on_progress", "on")
"""Arguments of `search()` that `watch()` does not have."""


@named_paths
def watch(
    pattern: str | Sequence[str],
    *,
    cwd: StrPath | None = ".",
    paths: StrPath | Iterable[StrPath] | None = (),
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
    refuse_places("watch()", options)
    for name in NOT_OF_WATCH:
        if name in options:
            raise ValueError(HintedText(Hint(name, kind="omit"), " does not apply to watch(); leave it out"))
    paths = several_paths(paths)
    include_git = bool(options.get("include_git", False))
    refuse_context("search()", options)
    query = placed_search("search()", pattern, cwd, paths, options)
    top = os.path.normpath(query.cwd)
    for path in query.paths:
        if not Path(os.path.normpath(os.path.join(top, path))).is_relative_to(top):
            raise ValueError(
                f"paths must be below cwd, which is watched; got {shown(path)}; pass a common parent directory as cwd"
            )
    if not isinstance(quiet, (int, float)) or isinstance(quiet, bool):
        raise TypeError(f"quiet must be a number of seconds, got {type(quiet).__name__}")
    if not 0 <= quiet < math.inf:
        raise ValueError(
            HintedText(Hint("quiet", kind="correct"), f" must be a finite number of seconds, 0 or more; got {quiet}")
        )
    return run_watch(WatchRequest(query, quiet, include_git), rg)


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """Checked arguments of `watch()`."""

    search: Query
    quiet: float
    include_git: bool

    def waiter(self) -> ChangeWaiter:
        """Return an object that waits for changes in the searched directory."""

        def accept(_: object, path: str) -> bool:
            """Return True if a change of the path starts a new search."""
            if self.include_git or ".git" not in path or path.endswith(_EXCLUDE):
                return True
            real, changed = waiter.real, Path(path)
            return changed.is_relative_to(real) and ".git" not in changed.relative_to(real).parts

        waiter = ChangeWaiter(Path(self.search.cwd), accept, quiet=self.quiet)
        return waiter

    def next_request(self, *, first: bool) -> StreamRequest[Match]:
        """Return the request of the first search, or of a later search, in which some of the paths may be missing."""
        query = self.search if first or not self.search.roots else replace(self.search, must_exist=False)
        return StreamRequest(query, MatchAnswer(None))

    def without_paths(self, error: FileNotFoundError) -> list[Match]:
        """Return an empty list, in place of the matches of a search (not the first) that raised `error`.

        None of `paths` exists, for example because an editor is replacing a file. The file may come back.
        """
        query = self.search
        if not os.path.isdir(query.cwd) or error.filename in query.values("ignore_file"):
            raise error
        return []


async def run_watch(request: WatchRequest, rg: Rg) -> AsyncGenerator[MatchChange]:
    """Search, search again after each burst of changes, and yield the added and the removed matches."""
    waiter, before = request.waiter(), _ByFile()
    check_cwd(request.search.cwd)
    try:
        await anyio.to_thread.run_sync(waiter.begin)  # before the search, so that no change is missed
        first = True
        while first or await waiter.wait_async():
            try:
                async with aclosing(run_stream(request.next_request(first=first), rg)) as matches:
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
    waiter, before = request.waiter(), _ByFile()
    check_cwd(request.search.cwd)
    deadline = math.inf if timeout is None else time.monotonic() + timeout
    try:
        waiter.begin()
        first = True
        while first or waiter.wait(deadline):
            left = None if timeout is None else max(0.0, deadline - time.monotonic())
            try:
                searching = run_stream_blocking(request.next_request(first=first), rg, left)
                with closing(searching) as matches:
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


def _difference(before: _ByFile, matches: Iterable[Match]) -> tuple[MatchChange, _ByFile]:
    """Return the added and the removed matches, in the order of their paths, and all current matches by file."""
    files: dict[str | None, list[Match]] = {}
    for match in matches:
        files.setdefault(match.path, []).append(match)
    now = {path: tuple(found) for path, found in files.items()}
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
