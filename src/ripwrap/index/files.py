"""What a file is now: its size and times, and its content where that is to be known."""

import hashlib
import os
import stat
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from ripwrap._open import opened
from ripwrap._source import MAX_FILE, Source, beginning, decoded, is_binary

_FRESH_NS = 50_000_000
_COARSE_NS = 2_000_000_000
"""A file that changed so shortly before it was read may change again and keep its times: the clock of file systems goes
in steps of some milliseconds, and that of those that know whole milliseconds or less maybe of two seconds."""

_HEAD = 8_192  # Bytes in which most binary files have a NUL.
_DIGEST = 16  # Bytes.

Stamp: TypeAlias = tuple[int, int, int]
"""Size, and the times of content and of anything, in nanoseconds."""


@dataclass(slots=True)
class Read:
    """A file that was read: its stamp before that, its text unless it is binary, and whether that is all of it."""

    stamp: Stamp
    digest: bytes
    source: Source | None
    cut: bool


def stamps_of(root: str, paths: Iterable[str], *, follow: bool) -> tuple[dict[str, Stamp], dict[str, str]]:
    """What is told of each file that is still there, without reading it, and why it cannot be told of the others.

    With `follow`, files are what links lead to; without, links are no files.
    """
    stamps: dict[str, Stamp] = {}
    wrong: dict[str, str] = {}
    prefix, look, is_file = os.path.join(root, ""), os.stat if follow else os.lstat, stat.S_ISREG
    for path in paths:
        try:
            state = look(prefix + path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            wrong[path] = str(error.strerror)
            continue
        if is_file(state.st_mode):  # whoever opens a pipe waits for who writes
            stamps[path] = (state.st_size, state.st_mtime_ns, state.st_ctime_ns)
    return stamps, wrong


def _stamp(state: os.stat_result) -> Stamp:
    return state.st_size, state.st_mtime_ns, state.st_ctime_ns


def unreadable(root: str, path: str, *, follow: bool) -> str | None:
    """Why a file still cannot be read; `None` if it can, or is gone."""
    try:
        with open(opened(root, path, follow=follow), "rb", buffering=0) as file:
            file.read(1)
    except FileNotFoundError:
        return None
    except OSError as error:
        return str(error.strerror)
    return None


def read(root: str, path: str, *, follow: bool) -> Read:
    """Read a file, or so much of it as is indexed; links lead to one with `follow` alone.

    Raises:
        OSError: It cannot be read; `FileNotFoundError` if it is gone.
    """
    begun = time.time_ns()
    with open(opened(root, path, follow=follow), "rb", buffering=0) as file:
        stamp = _stamp(os.fstat(file.fileno()))
        raw = file.read(_HEAD)
        if not is_binary(raw):
            while len(raw) <= MAX_FILE and (more := file.read(MAX_FILE + 1 - len(raw))):
                raw += more
    if max(stamp[1:]) > begun - (_FRESH_NS if stamp[2] % 1_000_000 else _COARSE_NS):
        stamp = (-1, *stamp[1:])  # so that it is read again
    whole = beginning(raw)
    digest = hashlib.blake2b(whole, digest_size=_DIGEST).digest()
    return Read(stamp, digest, decoded(path, whole), len(whole) < len(raw))
