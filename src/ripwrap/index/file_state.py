"""The state of a file: its size, times and content."""

import hashlib
import os
import stat
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from ripwrap._ranking.document import MAX_FILE_BYTES, SourceText, cut_to_limit, decode_source
from ripwrap._safe_open import open_regular_file
from ripwrap._text import is_binary

_CLOCK_STEP_NS = 50_000_000
_COARSE_CLOCK_STEP_NS = 2_000_000_000
"""Nanoseconds, in which a file may change twice and keep its times.

The clock of a file system goes in steps: of some milliseconds on Linux, of two seconds on FAT. Times in whole
milliseconds are taken for those of a coarse clock. Git has the same problem: https://git-scm.com/docs/racy-git.
"""

_BINARY_CHECK_BYTES = 8_192  # most binary files have a NUL in them
_DIGEST_BYTES = 16

Stamp: TypeAlias = tuple[int, int, int]
"""Size in bytes, time of the last change of content, and of any change (mtime and ctime, nanoseconds)."""


@dataclass(slots=True)
class FileContent:
    """Content of a file.

    Attributes:
        stamp: Stamp of the file before it was read; of an unknown size if the file may change without a new stamp.
        digest: Digest of the bytes that are indexed.
        source: Text; `None` if the file is binary.
        cut: The file is longer than its text here.
        raw: The bytes that are indexed.
    """

    stamp: Stamp
    digest: bytes
    source: SourceText | None
    cut: bool
    raw: bytes


def read_stamps(root: str, paths: Iterable[str], *, follow: bool) -> tuple[dict[str, Stamp], dict[str, str]]:
    """Return the stamps of the files that exist, and the reasons for those that the system refuses, by path.

    Args:
        root: Folder of the paths.
        paths: Paths, relative to the root.
        follow: Follow links. If false, links are left out.
    """
    stamps: dict[str, Stamp] = {}
    unreadable_paths: dict[str, str] = {}
    prefix, get_state, is_file = os.path.join(root, ""), os.stat if follow else os.lstat, stat.S_ISREG
    for path in paths:
        try:
            state = get_state(prefix + path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            unreadable_paths[path] = str(error.strerror)
            continue
        if is_file(state.st_mode):  # to open a pipe would wait for its writer
            stamps[path] = (state.st_size, state.st_mtime_ns, state.st_ctime_ns)
    return stamps, unreadable_paths


def _stamp(state: os.stat_result) -> Stamp:
    return state.st_size, state.st_mtime_ns, state.st_ctime_ns


def why_unreadable(root: str, path: str, *, follow: bool) -> str | None:
    """Return why a file cannot be read; `None` if it can, or is gone."""
    try:
        with open(open_regular_file(root, path, follow=follow), "rb", buffering=0) as file:
            file.read(1)
    except FileNotFoundError:
        return None
    except OSError as error:
        return str(error.strerror)
    return None


def read_file(root: str, path: str, *, follow: bool) -> FileContent:
    """Read the part of a file that is indexed.

    Args:
        root: Folder of the path.
        path: Path, relative to the root.
        follow: Follow links.

    Raises:
        OSError: The file cannot be read; `FileNotFoundError` if it is gone.
    """
    started = time.time_ns()
    with open(open_regular_file(root, path, follow=follow), "rb", buffering=0) as file:
        stamp = _stamp(os.fstat(file.fileno()))
        raw = file.read(_BINARY_CHECK_BYTES)
        if not is_binary(raw):
            while len(raw) <= MAX_FILE_BYTES and (more := file.read(MAX_FILE_BYTES + 1 - len(raw))):
                raw += more
    if max(stamp[1:]) > started - (_CLOCK_STEP_NS if stamp[2] % 1_000_000 else _COARSE_CLOCK_STEP_NS):
        stamp = (-1, *stamp[1:])  # no file has this size, so the next refresh reads it again
    indexed = cut_to_limit(raw)
    digest = hashlib.blake2b(indexed, digest_size=_DIGEST_BYTES).digest()
    return FileContent(stamp, digest, decode_source(path, indexed), len(indexed) < len(raw), indexed)
