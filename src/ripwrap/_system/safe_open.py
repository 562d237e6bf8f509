"""Open a file that rg listed. Refuse it if a link, pipe or other special file has replaced it since.

If rg does not follow links, no link below the searched paths is followed: each directory is opened relative to the
directory above it (`openat`). On Windows, which has no `openat`, links are followed. If a pipe has replaced the file,
opening the pipe does not block.
"""

import errno
import io
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from ripwrap._system.concurrency import defer_interrupts, opened
from ripwrap._system.overlay import active_overlay
from ripwrap._system.windows import NAME_SURROGATE_TAG

_FILE_FLAGS: int = sum(getattr(os, flag, 0) for flag in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"))
_FOLDER_FLAGS: int = sum(getattr(os, flag, 0) for flag in ("O_PATH", "O_DIRECTORY", "O_CLOEXEC"))
_NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
_CAN_OPEN_BELOW = bool(_NO_FOLLOW) and os.open in os.supports_dir_fd

_REPLACED_ERRNOS = {errno.ELOOP, errno.ENOTDIR, errno.ENXIO, errno.EMLINK}
"""Error numbers of `open()` for a link or socket in place of the file, and for a file in place of a directory. FreeBSD
reports EMLINK for a link (open(2)).
"""


def open_regular_file(
    folder: str, path: str, *, follow: bool, roots: Sequence[str] = (os.curdir,)
) -> io.BufferedReader:
    """Open a regular file, or its text in an overlay."""
    with defer_interrupts():
        texts = active_overlay()
        full = os.path.join(folder, path)
        if texts is not None and (follow or path in roots or not os.path.islink(full)):
            file = texts.open(full)
            if file is not None:
                return file
        try:
            if follow or not _CAN_OPEN_BELOW:
                found = os.open(full, _FILE_FLAGS)
            else:
                found = _open_below(folder, *_split_root(path, roots))
        except OSError as error:
            if error.errno in _REPLACED_ERRNOS:
                raise _gone_error(path) from error
            raise
        if not stat.S_ISREG(os.fstat(found).st_mode):
            os.close(found)
            raise _gone_error(path)
        return open(found, "rb")


def without_replaced(folder: str, paths: Iterable[str], *, follow: bool) -> Iterator[str]:
    """Yield the paths below a directory that are regular files, or that cannot be looked at; no file is opened.

    The directory of paths that come together is opened once, which takes less time than opening the files.
    """
    if active_overlay() is not None:
        yield from (path for path in paths if _may_be_opened(folder, path, follow=follow))
        return
    for above, group in groupby(paths, os.path.dirname):
        if follow or not _CAN_OPEN_BELOW:
            yield from (path for path in group if _may_be_regular(os.path.join(folder, path), None))
            continue
        parts = [part for part in above.split(os.sep) if part not in ("", os.curdir)]
        try:
            with opened(lambda: open_folder(folder, parts)) as here:  # noqa: B023 - called here
                for path in group:
                    if _may_be_regular(os.path.basename(path), here):
                        yield path
        except OSError as error:
            if not _is_gone(error):
                yield from group  # noqa: B031 - the rest of it


def _may_be_opened(folder: str, path: str, *, follow: bool) -> bool:
    try:
        open_regular_file(folder, path, follow=follow).close()
    except OSError as error:
        return not _is_gone(error)
    return True


def _may_be_regular(name: str, folder: int | None) -> bool:
    try:
        return stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=folder is None).st_mode)
    except OSError as error:
        return not _is_gone(error)  # rg reports why it cannot be read


def _is_gone(error: OSError) -> bool:
    return isinstance(error, FileNotFoundError) or error.errno in _REPLACED_ERRNOS


def read_start(path: str, most: int) -> bytes:
    """Return the first `most` bytes of a regular file. A pipe or device in its place is not read, and cannot block."""
    if not os.path.isfile(path):  # opening a device may have effects
        raise _gone_error(path)
    with opened(lambda: os.open(path, _FILE_FLAGS)) as found:
        if not stat.S_ISREG(os.fstat(found).st_mode):
            raise _gone_error(path)
        with open(found, "rb", closefd=False) as file:
            return file.read(most)


def is_link(info: os.stat_result) -> bool:
    """Return True if an entry is a link, or a junction of Windows."""
    if sys.platform == "win32" and info.st_reparse_tag & NAME_SURROGATE_TAG:
        return True
    return stat.S_ISLNK(info.st_mode)


def _split_root(path: str, roots: Sequence[str]) -> tuple[str, str]:
    """Split a path into its root (one of `roots`, or `.`) and the rest of the path."""
    if path in roots:
        return path, ""
    above = [name for name in roots if path.startswith(f"{name.rstrip(os.sep)}{os.sep}")]
    name = max(above, key=len, default=os.curdir)
    return (name, path[len(name) :]) if above else (name, path)


def _open_below(folder: str, name: str, rest: str) -> int:
    """Open a file below a root without following links below the root."""
    start = os.path.join(folder, name)
    parts = [part for part in rest.split(os.sep) if part not in ("", os.curdir)]
    if not parts:
        return os.open(start, _FILE_FLAGS)
    here = open_folder(start, parts[:-1])
    try:
        return os.open(parts[-1], _FILE_FLAGS | _NO_FOLLOW, dir_fd=here)
    finally:
        os.close(here)


def open_folder(start: str, parts: Sequence[str]) -> int:
    """Open a directory below `start` without following links below `start`."""
    # O_NOFOLLOW applies only to the last part of a path, so each directory is opened separately, relative to the
    # directory above (openat(2), "Rationale for openat()"). If a link replaces a directory, it is not followed.
    here = os.open(start, _FOLDER_FLAGS)
    for part in parts:
        try:
            below = os.open(part, _FOLDER_FLAGS | _NO_FOLLOW, dir_fd=here)
        finally:
            os.close(here)
        here = below
    return here


def _gone_error(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, "it is not a regular file any more", path)
