"""Keeping an index up to date while files change; needs the extra `watch` (watchfiles).

What waits is a worker thread, and only while something is waited for: across a `yield` there is the system's handle,
and the thread inside of watchfiles that reads it, both of which closing the generator ends.
"""

import math
import os
import re
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from ripwrap._text import shown
from ripwrap.errors import RipwrapError
from ripwrap.index.models import Refreshed
from ripwrap.index.store import own_files
from ripwrap.index.views import repository_of, view_of

QUIET = 0.5
"""Seconds without a change, after which it is time to refresh: an editor, or git, changes several files at once."""

_MOST = 10.0  # Seconds after which it is time although there is no quiet.
_STEP = 50  # Milliseconds after which changes that came together are handed over, and a request to end is seen.
_LOOK = 100  # Milliseconds that it waits for the first of them.
_NOTHING: set[Any] = set()


async def watched(root: Path, own: Path, refresh: Callable[[], Awaitable[Refreshed]]) -> AsyncGenerator[Refreshed]:
    """Refresh at first, and then whenever files have changed and it is quiet; see `Index.watch()`.

    Args:
        root: The folder, as a real path.
        own: The folder that has the index; its files are nothing to wake up for.
        refresh: Refreshes.
    """
    waiter = _Waiter(root, own)
    try:
        await anyio.to_thread.run_sync(waiter.begin)  # before the refresh, so that no change is missed
        branch = view_of(root)
        yield await refresh()
        while await _changed(waiter):
            before, branch = branch, view_of(root)
            done = await refresh()
            if _differs(done) or branch != before:
                yield done
    finally:
        waiter.stop.set()
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(waiter.close, limiter=anyio.CapacityLimiter(1))


def watched_blocking(
    root: Path, own: Path, refresh: Callable[[float | None], Refreshed], seconds: float | None
) -> Generator[Refreshed]:
    """As `watched()`, blocking.

    Args:
        root: The folder, as a real path.
        own: The folder that has the index.
        refresh: Refreshes within so many seconds.
        seconds: How long it goes on from the first item that is asked for; `None` is for ever.

    Raises:
        TimeoutError: The time is over.
    """
    waiter = _Waiter(root, own)
    deadline = math.inf if seconds is None else time.monotonic() + seconds

    def refreshed() -> Refreshed:
        return refresh(None if seconds is None else max(deadline - time.monotonic(), 0))

    try:
        waiter.begin()
        branch = view_of(root)
        yield refreshed()
        while waiter.wait(deadline):
            before, branch = branch, view_of(root)
            done = refreshed()
            if _differs(done) or branch != before:
                yield done
        raise TimeoutError(f"{shown(str(root))} was watched for timeout={seconds} seconds")
    finally:
        waiter.stop.set()
        waiter.close()


def _differs(done: Refreshed) -> bool:
    return bool(done.added or done.changed or done.removed)


async def _changed(waiter: "_Waiter") -> bool:
    # A thread of its own: those that all share would be used up by some dozens of watchers.
    return await anyio.to_thread.run_sync(waiter.wait, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1))


@dataclass(slots=True)
class _Waiter:
    """Waits for changes, in one thread at a time.

    Attributes:
        stop: Says that nobody waits any more.
    """

    root: Path
    own: Path
    stop: threading.Event = field(default_factory=threading.Event)
    _turn: threading.Lock = field(default_factory=threading.Lock)
    _changes: "Generator[set[Any]] | None" = None

    def begin(self) -> None:
        """Have the system note changes from now on.

        Raises:
            RipwrapError: watchfiles is not there, or the system watches no more folders.
            FileNotFoundError: The folder does not exist.
            NotADirectoryError: It is not a directory.
        """
        try:
            from watchfiles import watch
        except ModuleNotFoundError as error:
            said = f'watching needs the package {error.name}: pip install "ripwrap[watch]"'
            raise RipwrapError(said) from error
        os.scandir(self.root).close()
        repository = repository_of(self.root)
        head = None if repository is None else repository.git
        # Of a worktree, or a folder in a repository, HEAD is elsewhere. Git puts a new file in its place, so that the
        # folder is what can be watched.
        apart = [] if head is None or head.is_relative_to(self.root) else [head]
        with self._turn:
            self._changes = watch(
                self.root,
                *apart,
                watch_filter=_Filter(self.root, own_files(self.own, self.root), head),
                step=_STEP,
                rust_timeout=_LOOK,
                yield_on_timeout=True,
                stop_event=self.stop,
                ignore_permission_denied=True,
            )
            self._next()

    def wait(self, until: float = math.inf) -> bool:
        """Return `True` when something has changed and it is quiet, and `False` when nobody waits any more, or so late.

        Args:
            until: When that is, as `time.monotonic()` tells it.
        """
        with self._turn:
            first = last = 0.0
            while not self.stop.is_set() and time.monotonic() < until:
                changes = self._next()
                now = time.monotonic()
                if changes:
                    first, last = first or now, now
                if first and (now - last >= QUIET or now - first >= _MOST):
                    return True
        return False

    def close(self) -> None:
        """End it, once the thread that waits has noticed."""
        with self._turn:
            changes, self._changes = self._changes, None
            if changes is not None:
                changes.close()

    def _next(self) -> set[Any]:
        if self._changes is None:
            return _NOTHING
        try:
            return next(self._changes, _NOTHING)
        except (OSError, RuntimeError) as error:  # the latter is watchfiles' own
            raise RipwrapError(f"{shown(str(self.root))} cannot be watched: {error}") from error


@dataclass(frozen=True, slots=True)
class _Filter:
    """Which changes are to wake us: those of files, but of our own and of git's only HEAD."""

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
        return ".git" not in below.parts
