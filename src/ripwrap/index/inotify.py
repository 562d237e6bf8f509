"""Record changes in a directory, so that an index knows if a file may have changed, without listing the files.

A program changes a file with a system call. Linux queues the event of the change before that call returns (inotify(7)).
So if there is no event, no finished call has changed a file. The package watchfiles cannot give this guarantee. It
reads the events in a thread, at an unknown time, and does not report when the system has dropped events. watchfiles
also gets an event for each file that is opened: 80,000 events for a search of the Linux sources.

Three kinds of changes have no event: changes through a memory mapping (mmap(2)), through a hard link outside of the
directory, and in a file system that is mounted in the directory after the journal has begun to watch. So a caller must
still list the files from time to time.

All journals of a process share one inotify instance, because by default, a user may have only 128 instances. A journal
works only on Linux, for a directory that is on local file systems and has at most 30,000 directories. Otherwise
`InotifyJournal.position()` returns `None`. A journal does not notice changes behind symbolic links.
"""

import ctypes
import errno
import functools
import itertools
import os
import re
import struct
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from ripwrap._ignore.git import config_files, global_ignore_files
from ripwrap.index.branches import repository_of
from ripwrap.index.storage.database import check

_RETRY_SECONDS = 300.0
"""Seconds to wait before another attempt to watch a directory, after an attempt that failed."""

_MAX_FOLDERS = 30_000
"""Maximum number of directories that one journal watches. To begin to watch 30,000 directories takes two seconds."""

_UNWATCHED = (".git", ".ripgrep")  # as in `EXCLUDED`
_IGNORE_FILES = (".gitignore", ".ignore", ".rgignore")
_LOCAL_FILE_SYSTEM = re.compile(
    "bcachefs|btrfs|exfat|ext[234]|f2fs|jfs|nilfs2|ntfs3|overlay|ramfs|reiserfs|tmpfs|vfat|xfs|zfs"
)
"""Pattern of the names of local file systems, to which only this machine writes. inotify(7) has no events for changes
by other machines.
"""

_NUMBERED_FILE_SYSTEMS = {
    0xEF53: "ext4",
    0x58465342: "xfs",
    0x9123683E: "btrfs",
    0x794C7630: "overlay",
    0x01021994: "tmpfs",
    0xF2F52010: "f2fs",
    0x2FC12FC1: "zfs",
    0xCA451A4E: "bcachefs",
}
"""Local file systems by the number of their type (statfs(2), linux/magic.h)."""

_EVENT = struct.Struct("iIII")
_READ_BYTES = 1 << 16
_ATTRIB, _MOVED_TO, _CREATE, _DELETE_SELF, _MOVE_SELF = 0x4, 0x80, 0x100, 0x400, 0x800
_MODIFY, _CLOSE_WRITE, _MOVED_FROM, _DELETE = 0x2, 0x8, 0x40, 0x200
_UNMOUNT, _OVERFLOW, _IGNORED, _IS_FOLDER = 0x2000, 0x4000, 0x8000, 0x40000000
_ONLY_FOLDER, _NO_FOLLOW = 0x01000000, 0x02000000
_CONTENT_CHANGES = _MODIFY | _CLOSE_WRITE | _ATTRIB
_NAME_CHANGES = _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF
_WATCH_MASK = _CONTENT_CHANGES | _NAME_CHANGES | _ONLY_FOLDER | _NO_FOLLOW
_GONE_ERRNOS = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.ENAMETOOLONG}
"""Numbers of the errors that mean that a directory was deleted, or that neither this process nor rg can read it."""

_NUMBERS = itertools.count()

JournalPosition: TypeAlias = tuple[object, ...]
"""Position in a journal. Two positions are equal only if nothing can have changed between them. Positions of different
journals always differ.
"""


class InotifyJournal:
    """Record of the changes in a directory, from which a caller learns if files may have changed.

    A caller compares the positions that two calls of `position()` returned. The first call begins to watch the
    directory; `close()` or the garbage collector ends the watching. Any number of threads may use a journal.
    """

    def __init__(
        self,
        root: Path,
        own: re.Pattern[str] | None,
        ignore_files: Iterable[str] = (),
        *,
        is_excluded: Callable[[str], bool] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Set the directory; nothing is watched yet.

        Args:
            root: Directory, as a real path.
            own: Pattern of the relative paths of the index's own files, whose changes are ignored.
            ignore_files: Paths of ignore files outside of `root`, whose changes also count.
            is_excluded: Function that returns True for a relative path that is left out: it is not watched, and its
                changes are ignored. The path of a directory ends in a separator.
            clock: Function that returns the time in seconds.
        """
        self._number = next(_NUMBERS)
        self._watched = _WatchedFolders(str(root), own, is_excluded)
        self._outside = [*_outside_files(root), *ignore_files]
        self._settings: list[tuple[str, tuple[int, ...] | None]] = []
        self._global: list[str] = []
        self._clock = clock
        self._retry_at = 0.0
        weakref.finalize(self, _INOTIFY.remove_soon, self._watched).atexit = False

    def position(self) -> JournalPosition | None:
        """Return the current position in the journal; `None` if the journal may miss later changes."""
        if self._clock() < self._retry_at:
            return None
        try:
            found = _INOTIFY.position(self._watched)
        except TimeoutError:  # a subclass of OSError
            raise
        except (OSError, AttributeError):
            self._retry_at = self._clock() + _RETRY_SECONDS
            return None
        if found is None:
            return None
        changes, inside = found
        return (self._number, changes, *map(_state, (*self._outside, *inside)), *self._global_states())

    def _global_states(self) -> Iterator[object]:
        """Yield the states (sizes and times) of git's settings and of the global ignore files that they name."""
        found = [(path, _state(path)) for path in config_files()]
        if found != self._settings:
            self._global = [os.path.join(self._watched.root, path) for path in global_ignore_files()]
            self._settings = found
        yield from found
        yield from map(_state, self._global)

    def close(self) -> None:
        """Stop watching. The next call of `position()` starts again, and returns a new position."""
        _INOTIFY.remove(self._watched)


class _WatchedFolders:
    """Watched directories of one journal, and the number of changes in them."""

    def __init__(
        self, root: str, own: re.Pattern[str] | None, is_excluded: Callable[[str], bool] | None = None
    ) -> None:
        self.root = root
        self.own = own
        self.is_excluded = is_excluded
        self.identity: tuple[int, int] | None = None
        self.changes = 0
        self.folders: dict[int, str] = {}
        self.new: set[str] = set()
        self.outside: set[str] = set()

    def note(self, number: int, mask: int, name: str) -> None:
        """Count an event of a watched directory as a change; remember a new directory, so that it is watched, too."""
        folder = self.folders[number]
        path = os.path.join(folder, name)
        if self._is_left_out(path, folder=bool(mask & _IS_FOLDER)):
            return
        self.changes += 1
        if not folder and mask & (_DELETE_SELF | _MOVE_SELF | _UNMOUNT):
            self.identity = None
        elif name in _UNWATCHED:
            self._found_repository(folder)
        elif name and mask & _IS_FOLDER and mask & (_CREATE | _MOVED_TO | _ATTRIB):
            self.new.add(path)

    def subfolders(self, path: str) -> list[str]:
        """Return the subdirectories of a directory that are to be watched."""
        found: list[str] = []
        with os.scandir(os.path.join(self.root, path)) as entries:
            for entry in entries:
                below = os.path.join(path, entry.name)
                if entry.name in _UNWATCHED:
                    self._found_repository(path)
                elif entry.is_dir(follow_symlinks=False) and not self._is_left_out(below, folder=True):
                    found.append(below)
        return found

    def _found_repository(self, folder: str) -> None:
        repository = repository_of(Path(self.root, folder))
        if repository is not None:
            self.outside.add(str(repository.common / "info" / "exclude"))

    def _is_left_out(self, path: str, *, folder: bool) -> bool:
        name = f"{path}/" if folder else path
        if self.own is not None and self.own.fullmatch(name) is not None:
            return True
        return self.is_excluded is not None and self.is_excluded(name)


class _Inotify:
    """The inotify instance of this process; it is open while a directory is watched."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._descriptor = -1
        self._watchers: dict[int, set[_WatchedFolders]] = {}
        self._dead: deque[_WatchedFolders] = deque()

    def position(self, watched: _WatchedFolders) -> tuple[int, list[str]] | None:
        """Return the number of changes so far, and the paths in `watched.outside`; `None` if changes may be missing."""
        if not sys.platform.startswith("linux"):
            raise OSError(errno.ENOTSUP, "inotify is used on Linux only")
        with self._lock:
            self._remove_dead()
            try:
                return self._position(watched)
            except OSError:
                self._remove(watched)
                raise
            except BaseException:  # e.g. Ctrl-C, after events were read and before the journals counted them
                self._invalidate_all()
                raise

    def _position(self, watched: _WatchedFolders) -> tuple[int, list[str]] | None:
        identity = _identity(watched.root)
        self._read()
        if watched.identity != identity:
            self._remove(watched)
            _check_local(watched.root)
            watched.changes += 1
            watched.new = {""}
            watched.identity = identity
        while watched.new:
            self._watch(watched, watched.new.pop())
            self._read()  # events of directories that were created after the watch of their parent had begun
        return (watched.changes, sorted(watched.outside)) if watched.identity == identity else None

    def _invalidate_all(self) -> None:
        """Make every journal set up its watches again at its next use.

        This is called if events were possibly not counted, or if some directories are possibly not watched.
        """
        for watched in set[_WatchedFolders]().union(*self._watchers.values()):
            watched.identity = None

    def remove(self, watched: _WatchedFolders) -> None:
        """Remove the watches of a journal."""
        with self._lock:
            self._remove(watched)

    def remove_soon(self, watched: _WatchedFolders) -> None:
        """Remove the watches of a journal, now or later; safe in a finalizer, whose thread may hold the lock."""
        self._dead.append(watched)
        if self._lock.acquire(blocking=False):
            try:
                self._remove_dead()
            finally:
                self._lock.release()

    def _remove_dead(self) -> None:
        while self._dead:
            self._remove(self._dead.popleft())

    def _remove(self, watched: _WatchedFolders) -> None:
        unwatched: list[int] = []
        for number in watched.folders:
            self._watchers[number].discard(watched)
            if not self._watchers[number]:
                del self._watchers[number]
                unwatched.append(number)
        if self._watchers:  # otherwise the instance is closed below, with all watches
            for number in unwatched:
                _libc().inotify_rm_watch(self._descriptor, number)
        watched.folders.clear()
        watched.new.clear()
        watched.outside.clear()
        watched.identity = None
        if not self._watchers and self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def reset_after_fork(self) -> None:
        """Begin again in a forked child, without the inherited inotify instance, whose events belong to the parent."""
        for watched in set[_WatchedFolders]().union(*self._watchers.values()):
            watched.folders.clear()
            watched.identity = None
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self.__init__()  # type: ignore[misc]  # the lock may be held by a thread that the child does not have

    def _watch(self, watched: _WatchedFolders, path: str) -> None:
        """Watch a directory and all directories below it."""
        libc = _libc()
        if self._descriptor < 0:
            flags = os.O_NONBLOCK | os.O_CLOEXEC  # type: ignore[attr-defined, unused-ignore]  # Windows has neither
            self._descriptor = _checked(libc.inotify_init1(flags))
        pending = [path]
        while pending:
            check()
            if len(watched.folders) >= _MAX_FOLDERS:
                raise OSError(errno.ENOSPC, f"more than {_MAX_FOLDERS:,} directories", watched.root)
            folder = pending.pop()
            name = os.fsencode(os.path.join(watched.root, folder))
            try:
                number = _checked(libc.inotify_add_watch(self._descriptor, name, _WATCH_MASK))
                if watched.folders.get(number) == folder:
                    continue  # it was watched and read before
                pending += watched.subfolders(folder)  # after the watch has begun, so that none is missed
            except OSError as error:
                if error.errno not in _GONE_ERRNOS or not folder:
                    raise
            else:
                watched.folders[number] = folder
                self._watchers.setdefault(number, set()).add(watched)

    def _read(self) -> None:
        """Read the queued events, and pass each event to the journals that watch its directory."""
        while self._descriptor >= 0:
            try:
                events = os.read(self._descriptor, _READ_BYTES)
            except BlockingIOError:
                return
            at = 0
            while at < len(events):
                number, mask, _, length = _EVENT.unpack_from(events, at)
                at += _EVENT.size + length
                self._note(number, mask, os.fsdecode(events[at - length : at].rstrip(b"\0")))

    def _note(self, number: int, mask: int, name: str) -> None:
        if mask & _OVERFLOW:  # the queue was full, and events were dropped
            self._invalidate_all()
            return
        for watched in self._watchers.get(number, ()):
            watched.note(number, mask, name)
        if mask & _IGNORED:  # the directory is gone
            for watched in self._watchers.pop(number, ()):
                watched.folders.pop(number, None)


_INOTIFY = _Inotify()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_INOTIFY.reset_after_fork)


@functools.cache
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> int:
    """Return the result of a call of the C library; raise `OSError` if it failed."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _identity(root: str) -> tuple[int, int]:
    """Return the device and inode of a directory."""
    state = os.stat(root)
    return state.st_dev, state.st_ino


def _state(path: str) -> tuple[int, ...] | None:
    """Return the inode, size and times of a file, to find out later if it has changed; `None` if there is no file."""
    with suppress(OSError):
        state = os.stat(path)
        return state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns
    return None


def _outside_files(root: Path) -> Iterator[str]:
    """Yield the paths of ignore files that are outside of a directory, but that rg applies to the files in it.

    Git's global ignore files are not included.
    """
    for folder in root.parents:
        yield from (os.path.join(folder, name) for name in _IGNORE_FILES)
    repository = repository_of(root)
    if repository is not None:
        yield str(repository.common / "info" / "exclude")


def _check_local(root: str) -> None:
    """Check that a directory is on local file systems, to which no other machine can write."""
    mounts = os.fsdecode(Path("/proc/self/mountinfo").read_bytes())
    if not is_local(root, mounts, lambda: _type_of(root)):
        raise OSError(errno.ENOTSUP, "it is on a network file system", root)


def _type_of(path: str) -> str:
    """Return the name of the local file system of a directory; '' if it is not one of `_NUMBERED_FILE_SYSTEMS`."""
    found = (ctypes.c_long * 64)()  # more than a `struct statfs`, which begins with the type
    if _libc().statfs(os.fsencode(path), found):
        return ""
    return _NUMBERED_FILE_SYSTEMS.get(found[0] & 0xFFFFFFFF, "")


def is_local(root: str, mounts: str, own_type: Callable[[], str] = str) -> bool:
    """Return True if all file systems in a directory are local; do no I/O."""
    own, kinds = "", set[str]()
    longest = 0
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), before.split()[4]).rstrip("/")
        kind = after.split()[0]
        if point != root and point.startswith(f"{root.rstrip('/')}/"):
            kinds.add(kind)
        elif f"{root}/".startswith(f"{point}/") and len(point) >= longest:  # of equal paths, the later mount counts
            own, longest = kind, len(point)
    return all(map(_LOCAL_FILE_SYSTEM.fullmatch, (own or own_type(), *kinds)))
