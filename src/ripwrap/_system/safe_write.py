"""Read and replace files. Other programs see either the old or the new content of a replaced file, never a mixture.

New content is written to a temporary file in the directory of the target. Then the temporary file is renamed to the
target. On POSIX, the directory is opened without following links (`openat`). So if another program puts a link in place
of a directory, nothing is written to the directory that the link leads to. Paths must be real paths, without links.

Every write opens the directory of its file with `_opened_for_writing()`, which refuses the files of version control.
"""

import errno
import os
import re
import stat
import sys
import unicodedata
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePath

from ripwrap._system.concurrency import defer_interrupts, opened, replace_file
from ripwrap._system.safe_open import open_folder
from ripwrap._system.windows import IS_WINDOWS

NAMES = (".git", ".jj", ".hg", ".svn", ".ripwrap")
"""Names of files and directories of version control, and of ripwrap's own index."""

_DATA = frozenset({"branches", "hooks", "info", "logs", "modules", "objects", "refs", "reftable", "worktrees"})
"""Names of directories in the directory of a repository that have git's own data, so that no worktree is in them."""

# NTFS and FAT have short names such as `GIT~1` for `.git`.
_SHORT_NAME = re.compile(rf"(?:{'|'.join(name[1:7] for name in NAMES)})~[0-9]+")
# Characters that a file system may ignore in names: HFS+ ignores some of these, and ext4 with `casefold` ignored all
# default-ignorable characters of Unicode (DerivedCoreProperties.txt).
_IGNORED = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def is_protected_name(name: str) -> bool:
    """Return True if a file system may take a part of a path for one of `NAMES`."""
    plain = _plain(name)
    return plain in NAMES or _SHORT_NAME.fullmatch(plain) is not None


def _plain(name: str) -> str:
    """Return a part of a path as all its spellings are compared."""
    folded = unicodedata.normalize("NFD", _IGNORED.sub("", name)).casefold()
    # NTFS ignores dots and spaces at the end of a name; a colon begins the name of a stream, as in `.git::$DATA`.
    return folded.partition(":")[0].rstrip(". ")


def why_protected(path: str) -> str:
    """Return the reason why a file must not be written; empty if it may be written."""
    for part in re.split(r"[/\\]", path):
        if is_protected_name(part):
            return f"nothing is written to or below {part}, because programs run what is in it; change the file by hand"
    if folder := _git_directory(path):
        return f"nothing is written to {folder}, the directory of a git repository; change the file by hand"
    return ""


def refuse_protected(path: str) -> None:
    """Raise `PermissionError` if a file must not be written; see `why_protected()`."""
    if reason := why_protected(path):
        raise PermissionError(errno.EPERM, reason, path)


def _git_directory(path: str) -> str:
    """Return the directory that has git's data and contains a file, such as a bare repository; empty if there is none.

    A directory below it that has a `.git`, as `git worktree add` makes it, does not belong to git's data, unless it is
    in a directory such as `hooks`, where somebody could put a `.git` so that hooks are written.
    """
    found = ""
    for folder in map(str, reversed(PurePath(path).parents)):
        if _is_git_directory(folder):
            found = folder
        elif found and os.path.lexists(os.path.join(folder, ".git")):
            first = _plain(os.path.relpath(folder, found).split(os.sep)[0])
            found = found if first in _DATA else ""
    return found


def _is_git_directory(folder: str) -> bool:
    """Return True for a directory that git accepts as the directory of a repository or of a linked worktree.

    `is_git_directory()` in git's `setup.c` looks for the same files.
    """

    def has(*names: str) -> bool:
        return all(os.path.lexists(os.path.join(folder, name)) for name in names)

    return has("HEAD") and (has("objects", "refs") or has("commondir"))


_CLOEXEC: int = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
_READ: int = os.O_RDONLY | _CLOEXEC | _NO_FOLLOW | getattr(os, "O_NONBLOCK", 0)
_CREATE: int = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _CLOEXEC | _NO_FOLLOW
_HAS_DIR_FD = bool(_NO_FOLLOW) and {os.open, os.stat, os.unlink, os.rename} <= os.supports_dir_fd

GONE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}
"""Error numbers for a missing file or directory, for a link in place of it, and for a file in place of a directory."""

_MANY_FILES = 16
"""Number of files up to which `fsync()` is called for each file. For more files, Linux gets one `sync()` of all file
systems, which is faster.

On ext4, `sync()` of 1,000 files takes 0.05 to 0.6 seconds. To call `fsync()` for each of them takes 5 seconds in
total, and even longer in several threads.
"""

_PIECE_BYTES = 1 << 20

_OPTIONAL_ATTRIBUTES = ("security.", "trusted.")
"""Prefixes of the extended attributes that only a privileged process can set; other processes leave them out."""


class TooLargeError(OSError):
    """A file is larger than the limit for reading it."""


@dataclass(frozen=True, slots=True)
class FileState:
    """Metadata of a file, to be set on the file that replaces it."""

    status: os.stat_result
    attributes: tuple[tuple[str, bytes], ...] = ()

    def is_same_file(self, other: os.stat_result) -> bool:
        """Return True if `other` is a status of the same file, with the same size and modification time."""
        mine = self.status
        return (mine.st_dev, mine.st_ino, mine.st_size, mine.st_mtime_ns) == (
            other.st_dev,
            other.st_ino,
            other.st_size,
            other.st_mtime_ns,
        )


class Disk:
    """Operations on files by real path.

    Tests override `step()`, so that it raises an error, or ends the process, before an operation.
    """

    def step(self, name: str, path: str) -> None:
        """Do nothing; called before each operation except `read()`. A subclass may stop the process or raise here."""

    def read(self, path: str, max_bytes: int = sys.maxsize) -> tuple[bytes, FileState]:
        """Return the content of a regular file, and its metadata; of a file that is too large, no more is read."""
        with _opened_folder(path) as (name, folder), opened(lambda: os.open(name, _READ, dir_fd=folder)) as descriptor:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise FileNotFoundError(errno.ENOENT, "it is not a regular file any more", path)
            if status.st_size > max_bytes:
                raise TooLargeError(errno.EFBIG, os.strerror(errno.EFBIG), path)
            with open(descriptor, "rb", closefd=False) as file:  # only after the check: it raises for a directory
                content = file.read(status.st_size + 1)
                while piece := file.read(_PIECE_BYTES):  # the file grows, or is in /proc and has a size of 0
                    content += piece
                    if len(content) > max_bytes:
                        raise TooLargeError(errno.EFBIG, os.strerror(errno.EFBIG), path)
                return content, FileState(status, _attributes(descriptor))

    def write_beside(self, path: str, name: str, content: bytes, state: FileState) -> None:
        """Write a new file `name` into the directory of `path`, with the mode, owner and attributes in `state`."""
        self.step("write", path)
        with _opened_for_writing(path) as (_, folder):
            target = name if folder is not None else os.path.join(os.path.dirname(path), name)
            with (
                opened(lambda: os.open(target, _CREATE, 0o600, dir_fd=folder)) as descriptor,
                open(descriptor, "wb", closefd=False) as file,
            ):
                file.write(content)
                file.flush()
                _copy_metadata(descriptor, target, state)

    def replace(self, path: str, name: str, state: FileState, *, times: tuple[int, int] | None = None) -> None:
        """Rename the file `name` in the directory of `path` to `path`; `times` are in nanoseconds."""
        self.step("replace", path)
        with _opened_for_writing(path) as (own, folder):
            source, target = (name, own) if folder is not None else (os.path.join(os.path.dirname(path), name), path)
            if not state.is_same_file(os.stat(target, dir_fd=folder, follow_symlinks=False)):
                raise InterruptedError(errno.EINTR, "another program has changed the file", path)
            if times is not None:
                os.utime(source, ns=times, dir_fd=folder)
            if folder is not None:
                os.rename(source, target, src_dir_fd=folder, dst_dir_fd=folder)
            else:
                # Windows does not replace a read-only file. So if `target` is read-only, make it writable, rename the
                # file, and make `target` read-only again.
                mode = stat.S_IMODE(state.status.st_mode)
                read_only = not mode & stat.S_IWRITE
                if read_only:
                    os.chmod(target, mode | stat.S_IWRITE)
                try:
                    replace_file(Path(source), Path(target))
                except OSError:
                    if read_only:
                        os.chmod(target, mode)
                    raise
                if read_only:
                    os.chmod(target, mode)

    def overwrite(
        self, path: str, name: str, content: bytes, state: FileState, *, times: tuple[int, int] | None = None
    ) -> None:
        """Write the file `name` beside `path`, and rename it to `path` once it is on the disk; see `replace()`."""
        self.write_beside(path, name, content, state)
        self.sync_files([os.path.join(os.path.dirname(path), name)])
        self.replace(path, name, state, times=times)

    def remove_beside(self, path: str, name: str) -> None:
        """Remove the file `name` in the directory of `path`; do nothing if the file or the directory is gone."""
        self.step("remove", path)
        try:
            with _opened_for_writing(path) as (_, folder):
                target = name if folder is not None else os.path.join(os.path.dirname(path), name)
                os.unlink(target, dir_fd=folder)
        except OSError as error:
            if error.errno not in GONE:
                raise

    def create(self, path: str, content: bytes) -> None:
        """Write a new file."""
        self.step("create", path)
        with _opened_for_writing(path) as (name, folder), defer_interrupts():
            descriptor = os.open(name, _CREATE, 0o666, dir_fd=folder)
            try:
                with open(descriptor, "wb") as file:
                    file.write(content)
            except BaseException:
                os.unlink(name, dir_fd=folder)
                raise

    def delete(self, path: str, state: FileState) -> None:
        """Remove a file."""
        self.step("delete", path)
        with _opened_for_writing(path) as (name, folder):
            if not state.is_same_file(os.stat(name, dir_fd=folder, follow_symlinks=False)):
                raise InterruptedError(errno.EINTR, "another program has changed the file", path)
            os.unlink(name, dir_fd=folder)

    def sync_files(self, paths: Iterable[str]) -> None:
        """Wait until the contents of files are on the disk."""
        self.step("sync", "")
        _sync([*paths])

    def sync_folders(self, paths: Iterable[str]) -> None:
        """Wait until the directories of files are on the disk, so that a crash undoes no renaming; not on Windows."""
        self.step("sync", "")
        if not IS_WINDOWS:
            _sync(sorted({os.path.dirname(path) for path in paths}))


def _sync(paths: list[str]) -> None:
    # `sync()` waits for the disk on Linux only (sync(2)).
    if len(paths) > _MANY_FILES and sys.platform == "linux":
        os.sync()
        return
    for path in paths:
        flags = os.O_RDWR if IS_WINDOWS else os.O_RDONLY | _CLOEXEC
        with opened(lambda: os.open(path, flags)) as descriptor:  # noqa: B023 - called here
            os.fsync(descriptor)


@contextmanager
def _opened_folder(path: str) -> Generator[tuple[str, int | None]]:
    """Open the directory of a real path without following links; yield the file's name and the directory's descriptor.

    On a system without `openat` (Windows), yield the whole path and `None`.
    """
    if not _HAS_DIR_FD:
        yield path, None
        return
    anchor, *parts, name = Path(path).parts
    try:
        with opened(lambda: open_folder(anchor, parts)) as here:
            yield name, here
    except OSError as error:
        if error.errno is not None:  # name the whole path: the error names a part, or nothing if the disk is full
            error.filename = path
            if error.filename2 is not None:
                error.filename2 = path
        raise


@contextmanager
def _opened_for_writing(path: str) -> Generator[tuple[str, int | None]]:
    """Open the directory of a real path as `_opened_folder()` does."""
    # Without `openat`, the system follows links, so the path that they lead to counts.
    refuse_protected(path if _HAS_DIR_FD else os.path.realpath(path))
    with _opened_folder(path) as found:
        yield found


def _copy_metadata(descriptor: int, path: str, state: FileState) -> None:
    status = state.status
    if sys.platform == "win32":
        os.chmod(path, stat.S_IMODE(status.st_mode) | stat.S_IWRITE)
        return
    mine = os.fstat(descriptor)
    # The owner comes first: `fchown()` clears the bits for setuid and setgid (chown(2)).
    if (mine.st_uid, mine.st_gid) != (status.st_uid, status.st_gid):
        os.fchown(descriptor, status.st_uid, status.st_gid)
    for name, value in state.attributes:
        if sys.platform == "linux":
            try:
                os.setxattr(descriptor, name, value)
            except OSError:
                if not name.startswith(_OPTIONAL_ATTRIBUTES):
                    raise
    os.fchmod(descriptor, stat.S_IMODE(status.st_mode))


def _attributes(descriptor: int) -> tuple[tuple[str, bytes], ...]:
    """Return a file's extended attributes, as far as this process may read them; empty except on Linux."""
    found: list[tuple[str, bytes]] = []
    if sys.platform == "linux":
        with suppress(OSError):  # the file system has no extended attributes
            for name in os.listxattr(descriptor):
                with suppress(OSError):  # only a privileged process may read it
                    found.append((name, os.getxattr(descriptor, name)))
    return tuple(found)
