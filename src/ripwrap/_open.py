"""Opening a file that rg listed, although by now something else may be in its place.

Links are not followed where rg does not follow them, neither the last part of a path nor one before it: each folder is
opened in the one above it (`openat`). Where a system cannot do that (Windows), links are followed. A pipe is not waited
for, and what is no regular file is not read.
"""

import errno
import os
import stat
from collections.abc import Sequence

_FLAGS: int = sum(getattr(os, flag, 0) for flag in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"))
_FOLDER: int = sum(getattr(os, flag, 0) for flag in ("O_PATH", "O_DIRECTORY", "O_CLOEXEC"))
_STAY: int = getattr(os, "O_NOFOLLOW", 0)
_WALKS = bool(_STAY) and os.open in os.supports_dir_fd

_OTHER = {errno.ELOOP, errno.ENOTDIR, errno.ENXIO, errno.EMLINK}
"""A link, or a file where a folder was, or a socket; the last is what FreeBSD says of a link."""


def opened(folder: str, path: str, *, follow: bool, named: Sequence[str] = (os.curdir,)) -> int:
    """The descriptor of a regular file.

    Args:
        folder: Where rg ran.
        path: The file, as rg gave it.
        follow: Whether rg followed links.
        named: What rg was given to look at, which it follows in any case.

    Raises:
        FileNotFoundError: It is gone, or is no regular file any more.
        OSError: It cannot be opened.
    """
    try:
        if follow or not _WALKS:
            found = os.open(os.path.join(folder, path), _FLAGS)
        else:
            found = _walked(folder, *_parts(path, named))
    except OSError as error:
        if error.errno in _OTHER:
            raise _gone(path) from error
        raise
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise _gone(path)
    return found


def _parts(path: str, named: Sequence[str]) -> tuple[str, str]:
    """What was named of a path, and the rest."""
    if path in named:
        return path, ""
    above = [name for name in named if path.startswith(f"{name.rstrip(os.sep)}{os.sep}")]
    name = max(above, key=len, default=os.curdir)
    return (name, path[len(name) :]) if above else (name, path)


def _walked(folder: str, name: str, rest: str) -> int:
    """The descriptor of what is behind a name, found without any other link."""
    start = os.path.join(folder, name)
    parts = [part for part in rest.split(os.sep) if part not in ("", os.curdir)]
    if not parts:
        return os.open(start, _FLAGS)
    here = os.open(start, _FOLDER)
    try:
        for part in parts[:-1]:
            below = os.open(part, _FOLDER | _STAY, dir_fd=here)
            os.close(here)
            here = below
        return os.open(parts[-1], _FLAGS | _STAY, dir_fd=here)
    finally:
        os.close(here)


def _gone(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, "it is no regular file any more", path)
