"""The state of a file: its size, times and content."""

import hashlib
import os
import stat
import time
from array import array
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import compress
from operator import attrgetter
from typing import TypeAlias

from ripwrap._ranking.document import SourceText, cut_to_limit, decode_source
from ripwrap._safe_open import open_regular_file
from ripwrap._text import is_binary

_CLOCK_STEP_NS = 50_000_000
_COARSE_CLOCK_STEP_NS = 2_000_000_000
"""Nanoseconds, in which a file may change twice and keep its times.

The clock of a file system goes in steps: of some milliseconds on Linux, of two seconds on FAT. Times in whole
milliseconds are taken for those of a coarse clock. Git has the same problem: https://git-scm.com/docs/racy-git.
"""

MAX_WHOLE_BYTES = 16_000_000
"""Bytes of the largest file of which a change behind the indexed part is noticed, and that has trigrams."""

_BINARY_CHECK_BYTES = 8_192  # most binary files have a NUL in them
_DIGEST_BYTES = 16
_STATE = attrgetter("st_size", "st_mtime_ns", "st_ctime_ns", "st_mode")

Stamp: TypeAlias = tuple[int, int, int]
"""Size in bytes, time of the last change of content, and of any change (mtime and ctime, nanoseconds)."""


@dataclass(slots=True)
class FileContent:
    """Content of a file.

    Attributes:
        stamp: Stamp of the file before it was read; of an unknown size if the file may change without a new stamp.
        digest: Digest of all bytes, or of those that are indexed if the file is larger than `MAX_WHOLE_BYTES`.
        source: Text; `None` if the file is binary.
        cut: The file is longer than its text here.
        raw: The bytes that are indexed.
        whole: All bytes; `None` if the file is larger than `MAX_WHOLE_BYTES`.
    """

    stamp: Stamp
    digest: bytes
    source: SourceText | None
    cut: bool
    raw: bytes
    whole: bytes | None


@dataclass(slots=True)
class Stamps:
    """Stamps of files, in columns: those of 80,000 files are read and compared without a Python object for each.

    Attributes:
        paths: Paths, in order.
        columns: Sizes, mtimes and ctimes; see `Stamp`.
    """

    paths: list[str]
    columns: "tuple[array[int], ...]"

    @classmethod
    def of(cls, paths: list[str], stamps: Iterable[tuple[int, ...]]) -> "Stamps":
        """Return the stamps of paths that are in order; what follows the three numbers of a stamp is dropped."""
        columns = tuple(zip(*stamps, strict=True)) or ((), (), ())
        return cls(paths, tuple(map(_column, columns[:3])))

    def digest(self) -> bytes:
        """Return a digest that is the same only for the same files with the same stamps."""
        digest = hashlib.blake2b(os.fsencode("\0".join(self.paths)), digest_size=_DIGEST_BYTES)
        for column in self.columns:
            digest.update(column)
        return digest.digest()

    def by_path(self) -> dict[str, Stamp]:
        """Return the stamp of each path."""
        sizes, mtimes, ctimes = self.columns
        return dict(zip(self.paths, zip(sizes, mtimes, ctimes, strict=True), strict=True))


def read_stamps(root: str, paths: Iterable[str], *, follow: bool) -> tuple[Stamps, dict[str, str]]:
    """Return the stamps of the files that exist, and the reasons for those that the system refuses, by path.

    Args:
        root: Folder of the paths.
        paths: Paths, relative to the root.
        follow: Follow links. If false, links are left out.
    """
    prefix, get_state = os.path.join(root, ""), os.stat if follow else os.lstat
    ordered = sorted(paths)
    unreadable_paths: dict[str, str] = {}
    states: list[tuple[int, int, int, int]] = []
    try:
        # Without a line of Python for each file. For 80,000 files that is half of the time beside that of the system.
        states = list(map(_STATE, map(get_state, [prefix + path for path in ordered])))
    except OSError:  # seldom: a file is gone, or the system refuses it
        listed, ordered = ordered, list[str]()
        for path in listed:
            try:
                states.append(_STATE(get_state(prefix + path)))
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                unreadable_paths[path] = str(error.strerror)
                continue
            ordered.append(path)
    if not all(map(stat.S_ISREG, {state[3] for state in states})):  # to open a pipe would wait for its writer
        kept = [stat.S_ISREG(state[3]) for state in states]
        ordered, states = list(compress(ordered, kept)), list(compress(states, kept))
    return Stamps.of(ordered, states), unreadable_paths


def _column(numbers: Collection[int]) -> "array[int]":
    """Return numbers as a column; see `_in_64_bits()`."""
    try:
        return array("q", numbers)
    except OverflowError:
        return array("q", map(_in_64_bits, numbers))


def _in_64_bits(number: int) -> int:
    """Return a number as SQLite can store it: nanoseconds after the year 2262 need more than 64 bits."""
    return (number + 2**63) % 2**64 - 2**63


def _stamp(state: os.stat_result) -> Stamp:
    return state.st_size, _in_64_bits(state.st_mtime_ns), _in_64_bits(state.st_ctime_ns)


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
            while len(raw) <= MAX_WHOLE_BYTES and (more := file.read(MAX_WHOLE_BYTES + 1 - len(raw))):
                raw += more
    if max(stamp[1:]) > started - (_CLOCK_STEP_NS if stamp[2] % 1_000_000 else _COARSE_CLOCK_STEP_NS):
        stamp = (-1, *stamp[1:])  # no file has this size, so the next refresh reads it again
    indexed = cut_to_limit(raw)
    whole = raw if len(raw) <= MAX_WHOLE_BYTES else None
    digest = hashlib.blake2b(whole or indexed, digest_size=_DIGEST_BYTES).digest()
    return FileContent(stamp, digest, decode_source(path, indexed), len(indexed) < len(raw), indexed, whole)
