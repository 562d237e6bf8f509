"""Wait for changes of the files in a directory; needs the extra `watch` (watchfiles).

A worker thread waits for changes, but only during `ChangeWaiter.wait_async()`. From `ChangeWaiter.begin()` to
`ChangeWaiter.close()`, watchfiles has an open handle of the operating system, and a thread that reads the handle.
"""

import math
import os
import threading
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from ripwrap._text import shown
from ripwrap.errors import Hint, HintedText, MissingPackageError, RipwrapError

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
        """Wait until there are changes to report, and return True.

        If `stop` is set or the deadline passes before there are changes to report, return False.
        """
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
                    if replaced:
                        self._begin_again()
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
        """Return True if the directory was deleted, moved or replaced.

        A new directory may have the inode number of the deleted directory. So an event of the deletion also counts.
        """
        if self._identity is None:
            return False
        deleted = any(path == self._real and kind.name == "deleted" for kind, path in changes)
        return deleted or self._identify() != self._identity

    def _begin_again(self) -> None:
        """Watch the new directory at the path `root`; do nothing if there is no such directory."""
        if os.path.isdir(self.root):
            changes, self._changes = self._changes, None
            if changes is not None:
                changes.close()
            self._begin()

    def _next(self) -> set[Any]:
        if self._changes is None:
            return _NO_CHANGES
        try:
            return next(self._changes, _NO_CHANGES)
        except (OSError, RuntimeError) as error:  # watchfiles raises RuntimeError
            step = "; raise the limit fs.inotify.max_user_watches" if "watch limit" in str(error) else ""
            raise RipwrapError(f"could not watch {shown(str(self.root))}: {error}{step}") from error
