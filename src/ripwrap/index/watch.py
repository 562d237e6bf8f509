"""Watch a directory, and keep its index up to date while files change; needs the extra `watch` (watchfiles)."""

import math
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import anyio
import anyio.to_thread

from ripwrap._operations.watch import ChangeWaiter
from ripwrap._text import shown
from ripwrap.index.file_state import repository_of, view_of
from ripwrap.index.models import RefreshResult
from ripwrap.index.storage.files import own_files


class Refresh(Protocol):
    """Function that refreshes an index. Its argument is a time limit in seconds, or `None` for no limit."""

    def __call__(self, *, timeout: float | None) -> RefreshResult: ...  # noqa: D102


async def watch_folder(
    root: Path,
    own: Path,
    refresh: Callable[[], Awaitable[RefreshResult]],
) -> AsyncGenerator[RefreshResult]:
    """Refresh an index now, and again each time files have changed; see `Index.watch()`."""
    waiter = _waiter(root, own)
    try:
        await anyio.to_thread.run_sync(waiter.begin)  # before the refresh, so that no change is missed
        branch = view_of(root)
        yield await refresh()
        while await waiter.wait_async():
            before, branch = branch, view_of(root)
            done = await refresh()
            if _has_differences(done) or branch != before:
                yield done
    finally:
        waiter.stop.set()
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(waiter.close, limiter=anyio.CapacityLimiter(1))


def watch_blocking(
    root: Path,
    own: Path,
    refresh: Refresh,
    timeout: float | None,
) -> Generator[RefreshResult]:
    """Refresh an index now, and again each time files have changed; the blocking twin of `watch_folder()`."""
    waiter = _waiter(root, own)
    deadline = math.inf if timeout is None else time.monotonic() + timeout

    def refresh_in_time() -> RefreshResult:
        return refresh(timeout=None if timeout is None else max(deadline - time.monotonic(), 0))

    try:
        waiter.begin()
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


def _waiter(root: Path, own: Path) -> ChangeWaiter:
    """Return the object that waits for changes in a directory, except changes of the index in the directory `own`."""
    repository = repository_of(root)
    head = None if repository is None else repository.git
    # If the root is a worktree or a subdirectory of a repository, HEAD is outside of the root. Watch the directory of
    # HEAD instead of the file, because git replaces the file.
    outside = [] if head is None or head.is_relative_to(root) else [head]
    return ChangeWaiter(root, _Filter(root, own_files(own, root), head), outside)


@dataclass(frozen=True, slots=True)
class _Filter:
    """Filter of changed paths: return True for git's file `HEAD`, and for files of the root that may be indexed.

    Return False for paths outside of the root, and for the files of this index, of rg's own index (`.ripgrep`) and of
    git.
    """

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
