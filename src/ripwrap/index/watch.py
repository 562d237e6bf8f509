"""Watch a directory, and keep its index up to date while files change; needs the extra `watch` (watchfiles).

A worker thread waits for changes, but only while the caller waits for the next item. At a `yield`, two things stay
open: the system's handle, and a thread of watchfiles that reads the handle. Closing the generator ends both.
"""

import math
import os
import re
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import anyio
import anyio.to_thread

from ripwrap._text import shown
from ripwrap.errors import RipwrapError
from ripwrap.index.branches import repository_of, view_of
from ripwrap.index.models import RefreshResult
from ripwrap.index.storage.files import own_files

QUIET_SECONDS = 0.5
"""Seconds without a change before a refresh, because an editor or git may change several files at once."""

_MAX_DELAY_SECONDS = 10.0  # limit after the first change, even if files are still changing
_GROUPING_MS = 50  # time for which watchfiles collects changes before it checks the stop event
_POLL_INTERVAL_MS = 100  # time for which watchfiles waits for a first change
_NO_CHANGES: set[Any] = set()


class Refresh(Protocol):
    """Function that refreshes the index; its argument is a time limit in seconds."""

    def __call__(self, *, timeout: float | None) -> RefreshResult: ...  # noqa: D102


async def watch_folder(
    root: Path,
    own: Path,
    refresh: Callable[[], Awaitable[RefreshResult]],
    watched: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> AsyncGenerator[RefreshResult]:
    """Refresh now, and again after each burst of changes; see `Index.watch()`.

    Args:
        root: Directory, as a real path.
        own: Directory of the index; changes of its files are ignored.
        refresh: Function that refreshes the index.
        watched: Function that returns a context manager to hold while the directory is watched.
    """
    waiter, stack = _Waiter(root, own), ExitStack()
    try:
        await anyio.to_thread.run_sync(waiter.begin)  # before the refresh, so that no change is missed
        stack.enter_context(watched())
        branch = view_of(root)
        yield await refresh()
        while await _wait_for_change(waiter):
            before, branch = branch, view_of(root)
            done = await refresh()
            if _has_differences(done) or branch != before:
                yield done
    finally:
        waiter.stop.set()
        with anyio.CancelScope(shield=True):
            stack.callback(waiter.close)
            await anyio.to_thread.run_sync(stack.close, limiter=anyio.CapacityLimiter(1))


def watch_blocking(
    root: Path,
    own: Path,
    refresh: Refresh,
    timeout: float | None,
    watched: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Generator[RefreshResult]:
    """Refresh and watch as `watch_folder()` does, blocking.

    Args:
        root: Directory, as a real path.
        own: Directory of the index; changes of its files are ignored.
        refresh: Function that refreshes the index within `timeout` seconds.
        timeout: Seconds, counted from the request for the first item; `None` is no limit.
        watched: Function that returns a context manager to hold while the directory is watched.

    Raises:
        TimeoutError: The time limit was reached.
    """
    waiter = _Waiter(root, own)
    deadline = math.inf if timeout is None else time.monotonic() + timeout

    def refresh_in_time() -> RefreshResult:
        return refresh(timeout=None if timeout is None else max(deadline - time.monotonic(), 0))

    try:
        waiter.begin()
        with watched():
            branch = view_of(root)
            yield refresh_in_time()
            while waiter.wait(deadline):
                before, branch = branch, view_of(root)
                done = refresh_in_time()
                if _has_differences(done) or branch != before:
                    yield done
        raise TimeoutError(f"stopped watching {shown(str(root))} after timeout={timeout} seconds")
    finally:
        waiter.stop.set()
        waiter.close()


def _has_differences(done: RefreshResult) -> bool:
    return bool(done.added or done.changed or done.removed)


async def _wait_for_change(waiter: "_Waiter") -> bool:
    # Watchers have a separate limiter, because a few dozen of them would use up the 40 worker threads of all tasks.
    return await anyio.to_thread.run_sync(waiter.wait, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1))


@dataclass(slots=True)
class _Waiter:
    """Waiter for changes, for one thread at a time.

    Attributes:
        root: Directory that is watched.
        own: Directory of the index.
        stop: Event that ends `wait()`.
        clock: Function that returns the time in seconds.
    """

    root: Path
    own: Path
    stop: threading.Event = field(default_factory=threading.Event)
    clock: Callable[[], float] = time.monotonic
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _changes: "Generator[set[Any]] | None" = None

    def begin(self) -> None:
        """Start watching: the system records changes from now on.

        Raises:
            RipwrapError: watchfiles is not installed, or the system's limit of watched directories is reached.
            FileNotFoundError: The directory does not exist.
            NotADirectoryError: The path is not a directory.
        """
        try:
            from watchfiles import watch
        except ModuleNotFoundError as error:
            message = f'watching needs the package {error.name}: pip install "ripwrap[watch]"'
            raise RipwrapError(message) from error
        os.scandir(self.root).close()
        repository = repository_of(self.root)
        head = None if repository is None else repository.git
        # If the root is a worktree or a subdirectory of a repository, HEAD is outside of the root. Watch its directory,
        # because git replaces the file.
        outside = [] if head is None or head.is_relative_to(self.root) else [head]
        with self._lock:
            self._changes = watch(
                self.root,
                *outside,
                watch_filter=_Filter(self.root, own_files(self.own, self.root), head),
                step=_GROUPING_MS,
                rust_timeout=_POLL_INTERVAL_MS,
                yield_on_timeout=True,
                stop_event=self.stop,
                ignore_permission_denied=True,
            )
            self._next()

    def wait(self, until: float = math.inf) -> bool:
        """Return `True` after a burst of changes; `False` after `stop` or at the deadline.

        Args:
            until: Deadline, in seconds of `clock`.
        """
        with self._lock:
            first = last = 0.0
            while not self.stop.is_set() and self.clock() < until:
                changes = self._next()
                now = self.clock()
                if changes:
                    first, last = first or now, now
                if first and (now - last >= QUIET_SECONDS or now - first >= _MAX_DELAY_SECONDS):
                    return True
        return False

    def close(self) -> None:
        """Stop watching, after the waiting thread has noticed `stop`."""
        with self._lock:
            changes, self._changes = self._changes, None
            if changes is not None:
                changes.close()

    def _next(self) -> set[Any]:
        if self._changes is None:
            return _NO_CHANGES
        try:
            return next(self._changes, _NO_CHANGES)
        except (OSError, RuntimeError) as error:  # watchfiles raises RuntimeError
            raise RipwrapError(f"could not watch {shown(str(self.root))}: {error}") from error


@dataclass(frozen=True, slots=True)
class _Filter:
    """Filter of changes: it drops the files of ripwrap's and rg's indexes, and git's files except HEAD."""

    root: Path
    own: re.Pattern[str] | None
    git: Path | None

    def __call__(self, _: object, path: str) -> bool:
        changed = Path(path)
        if changed.name == "HEAD" and changed.parent in (self.git, self.root / ".git"):
            return True
        if not changed.is_relative_to(self.root):
            return False
        below = changed.relative_to(self.root)
        if self.own is not None and self.own.fullmatch(str(below)):
            return False
        return ".git" not in below.parts and ".ripgrep" not in below.parts[:-1]  # as in `EXCLUDED`
