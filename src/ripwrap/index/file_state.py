"""Read the state of files, and the current branch from `.git` without running git.

For each branch, an index has a view: a record of the files of the branch. The view has the name of the branch.

The page https://git-scm.com/docs/gitrepository-layout describes `.git`. A downloaded directory may have a hostile
`.git`. So only regular files are read, up to a maximum size. A pipe or device is never opened. An unreadable file is
treated as empty; but if `packed-refs` cannot be read, the branch of a view counts as existing.
"""

import hashlib
import os
import stat
import time
from array import array
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import compress
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, TypeAlias

from ripwrap._code.outline import CodeNames
from ripwrap._ranking.document import MAX_FILE_BYTES, SourceText, cut_to_limit, decode_source
from ripwrap._system.concurrency import opened
from ripwrap._system.safe_open import open_regular_file
from ripwrap._system.windows import IS_WINDOWS, is_foreign_path
from ripwrap._text import is_binary

_CLOCK_STEP_NS = 50_000_000
_COARSE_CLOCK_STEP_NS = 2_000_000_000
"""Nanoseconds within which two changes of a file may get the same time.

File systems round times: to a few milliseconds on Linux, to two seconds on FAT. If a time is a whole number of
milliseconds, coarse rounding is assumed. Git has the same problem: https://git-scm.com/docs/racy-git.
"""

MAX_WHOLE_BYTES = 16_000_000
"""Maximum size in bytes of a file that is hashed as a whole. For a larger file, the index has no trigrams (see
`trigrams.py`), and does not notice changes after the part that it has indexed.
"""

_BINARY_CHECK_BYTES = 8_192  # most binary files have a NUL in their first 8 KiB
_DIGEST_BYTES = 16
_STAMP = tuple(map(attrgetter, ("st_size", "st_mtime_ns", "st_ctime_ns")))
_MODE = attrgetter("st_mode")
_FILES_PER_STEP = 256

Stamp: TypeAlias = tuple[int, int, int]
"""Size of a file in bytes, time of the last change of its content (mtime), and time of its last change of any kind
(ctime). Times are in nanoseconds. A file with the same stamp counts as unchanged.
"""


@dataclass(slots=True)
class FileContent:
    """Content of a file that was read for an index."""

    stamp: Stamp
    raw: bytes
    whole: bytes | None
    digest: bytes
    source: SourceText | None
    cut: bool


@dataclass(slots=True)
class Stamps:
    """Stamps (sizes and times) of files, in columns, so that 80,000 files need no Python object for each file."""

    paths: list[str]
    columns: "tuple[array[int], ...]"

    @classmethod
    def of(cls, paths: list[str], stamps: Iterable[tuple[int, ...]]) -> "Stamps":
        """Return a `Stamps` object for paths, which must be sorted, and their stamps in the same order."""
        found, rows = cls(paths, (array("q"), array("q"), array("q"))), list(stamps)
        for number, column in enumerate(found.columns):
            _extend(column, itemgetter(number), rows)
        return found

    def digest(self) -> bytes:
        """Return a digest of all paths and stamps. If a path or stamp changes, the digest changes."""
        digest = hashlib.blake2b(os.fsencode("\0".join(self.paths)), digest_size=_DIGEST_BYTES)
        for column in self.columns:
            digest.update(column)
        return digest.digest()

    def by_path(self) -> dict[str, Stamp]:
        """Return the stamp of each path."""
        sizes, mtimes, ctimes = self.columns
        return dict(zip(self.paths, zip(sizes, mtimes, ctimes, strict=True), strict=True))


def read_stamps(root: str, paths: Iterable[str], *, follow: bool) -> tuple[Stamps, dict[str, str]]:
    """Return the stamps (sizes and times) of files, and a map from each unreadable path to the reason.

    Paths that do not exist, or that are not regular files, are skipped; so are links, unless they are followed.
    """
    prefix, get_state = os.path.join(root, ""), os.stat if follow else os.lstat
    ordered = sorted(paths)
    found = Stamps([], (array("q"), array("q"), array("q")))
    unreadable_paths: dict[str, str] = {}
    # `map()` runs no Python code for each file, which halves the time outside of system calls. Larger batches do not
    # fit into the CPU's cache, and take a third longer for 80,000 files.
    for at in range(0, len(ordered), _FILES_PER_STEP):
        some = ordered[at : at + _FILES_PER_STEP]
        try:
            states = list(map(get_state, [prefix + path for path in some]))
        except OSError:  # rare: a file is gone, or the system refuses access
            some, states = _readable_states(prefix, some, get_state, unreadable_paths)
        if not all(map(stat.S_ISREG, set(map(_MODE, states)))):  # keep only regular files: opening a pipe would block
            kept = [stat.S_ISREG(state.st_mode) for state in states]
            some, states = list(compress(some, kept)), list(compress(states, kept))
        found.paths.extend(some)
        for column, get in zip(found.columns, _STAMP, strict=True):
            _extend(column, get, states)
    return found, unreadable_paths


def _readable_states(
    prefix: str, paths: Iterable[str], get_state: Callable[[str], os.stat_result], unreadable_paths: dict[str, str]
) -> tuple[list[str], list[os.stat_result]]:
    """Return the paths whose states (results of `os.stat()`) can be read, and these states."""
    found: list[tuple[str, os.stat_result]] = []
    for path in paths:
        try:
            found.append((path, get_state(prefix + path)))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            unreadable_paths[path] = str(error.strerror)
    return [path for path, _ in found], [state for _, state in found]


def _extend(column: "array[int]", get: Callable[[Any], int], rows: Iterable[object]) -> None:
    """Append one number of each row to a column; numbers of more than 64 bits are wrapped by `_in_64_bits()`."""
    before = len(column)
    try:
        column.extend(map(get, rows))
    except OverflowError:
        del column[before:]
        column.extend(_in_64_bits(get(row)) for row in rows)


def _in_64_bits(number: int) -> int:
    """Wrap a number to 64 bits, which SQLite can store; a time in nanoseconds after the year 2262 needs more."""
    return (number + 2**63) % 2**64 - 2**63


def _stamp(state: os.stat_result) -> Stamp:
    return state.st_size, _in_64_bits(state.st_mtime_ns), _in_64_bits(state.st_ctime_ns)


def why_unreadable(root: str, path: str, *, follow: bool) -> str | None:
    """Return the reason why a file cannot be read; `None` if it can be read or no longer exists."""
    try:
        with open_regular_file(root, path, follow=follow) as file:
            file.read(1)
    except FileNotFoundError:
        return None
    except OSError as error:
        return str(error.strerror)
    return None


def read_file(root: str, path: str, *, follow: bool) -> FileContent:
    """Read a file, hash it, and decode the part that is indexed.

    Of a file whose first 8 KiB are binary, only these are read. Of a file of more than `MAX_WHOLE_BYTES`, only the
    beginning is read.
    """
    started = time.time_ns()
    with open_regular_file(root, path, follow=follow) as file:
        stamp = _stamp(os.fstat(file.fileno()))
        raw = file.read(_BINARY_CHECK_BYTES)
        if not is_binary(raw):
            # About the rest of the file: a buffer of `MAX_WHOLE_BYTES` for each file would take too much time.
            while len(raw) <= MAX_WHOLE_BYTES:
                rest = max(stamp[0] - len(raw) + 1, _BINARY_CHECK_BYTES)
                if not (more := file.read(min(rest, MAX_WHOLE_BYTES + 1 - len(raw)))):
                    break
                raw += more
    if max(stamp[1:]) > started - (_CLOCK_STEP_NS if stamp[2] % 1_000_000 else _COARSE_CLOCK_STEP_NS):
        stamp = (-1, *stamp[1:])  # no file has this size, so the next refresh reads the file again
    indexed = cut_to_limit(raw)
    whole = raw if len(raw) <= MAX_WHOLE_BYTES else None
    digest = hashlib.blake2b(indexed if whole is None else whole, digest_size=_DIGEST_BYTES).digest()
    return FileContent(stamp, indexed, whole, digest, decode_source(path, indexed), len(indexed) < len(raw))


class IndexedFile:
    """File in the state in which it was indexed. The file is read when the text of one of its chunks is needed.

    If the file still has the stamp (size and times) that the index stores, it counts as unchanged. Otherwise it is
    read, and its digest is compared with the stored digest.
    """

    def __init__(
        self,
        root: str,
        path: str,
        stamp: Stamp,
        digest: bytes,
        code_of: Callable[[str], CodeNames | None] = lambda _: None,
        *,
        follow: bool,
    ) -> None:
        """Set the path, and the stamp and digest that the index stores; nothing is read yet.

        `code_of` returns the stored definitions of the text that was indexed; `None` if there are none.
        """
        self.path = path
        self.digest = digest
        self.changed: bool = False
        self._root, self._follow = root, follow
        self._stamp = stamp
        self._code_of = code_of
        self._source: SourceText | None = None

    def text(self, start: int, size: int) -> str | None:
        """Return the text of a chunk; `None` if the file has changed, or cannot be read.

        Bytes that are not UTF-8 become lone surrogates.
        """
        source = self._read()
        return None if source is None else source.text[start : start + size]

    def source(self) -> SourceText | None:
        """Return the text that was indexed, with its definitions; `None` if the file has changed, or is unreadable."""
        source = self._read()
        if source is not None and "code" not in vars(source) and (code := self._code_of(source.text)) is not None:
            vars(source)["code"] = code
        return source

    def _read(self) -> SourceText | None:
        if self._source is None and not self.changed:
            raw = self._read_indexed()
            self._source = None if raw is None else decode_source(self.path, raw)
            self.changed = raw is None
        return self._source

    def _read_indexed(self) -> bytes | None:
        """Return the bytes that are indexed; `None` if the file has changed, or cannot be read.

        If the size or a time of the file differs from the stored stamp, the digest decides. The size in the stamp is -1
        if the file was changed so recently that a further change could have the same times.
        """
        with suppress(OSError):  # try again below
            if self._stamp[0] >= 0:
                with open_regular_file(self._root, self.path, follow=self._follow) as file:
                    if _stamp(os.fstat(file.fileno())) == self._stamp:
                        raw = file.read(min(self._stamp[0], MAX_FILE_BYTES + 1))
                        if _stamp(os.fstat(file.fileno())) == self._stamp:
                            return cut_to_limit(raw)
        with suppress(OSError):
            found = read_file(self._root, self.path, follow=self._follow)
            return found.raw if found.digest == self.digest else None
        return None


DETACHED = "detached HEAD"
NO_REPOSITORY = "no repository"
UNKNOWN = "unknown branch"
"""Names of views for which there is no branch, or no known branch. No branch has a space in its name."""

_HEADS = "refs/heads/"
_MAX_SMALL_FILE_BYTES = 64 << 10
"""Maximum size in bytes of files that have only one line."""
_MAX_PACKED_REFS_BYTES = 16 << 20
_OPEN_FLAGS = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


@dataclass(frozen=True, slots=True)
class GitRepository:
    """Git repository that a directory belongs to."""

    top: Path
    git: Path
    common: Path


def repository_of(root: Path) -> GitRepository | None:
    """Return the repository that contains a directory, given as a real path; `None` if there is none."""
    for top in (root, *root.parents):
        git = _git_of(top / ".git")
        if git is not None:
            common = _read_text(git / "commondir").strip()
            return GitRepository(top, git, (resolve_link(git, common) if common else None) or git)
    return None


def view_of(root: Path) -> str:
    """Return the name of the current view of a directory: its branch.

    If there is no branch, or it is not known, return `DETACHED`, `NO_REPOSITORY` or `UNKNOWN`.
    """
    repository = repository_of(root)
    return NO_REPOSITORY if repository is None else _read_branch(repository.git)


def key_of(root: Path) -> str:
    """Return a text that identifies the index of a directory. All worktrees of a repository have the same text."""
    repository = repository_of(root)
    if repository is None:
        return str(root)
    return f"{repository.common}\0{root.relative_to(repository.top)}"


def is_gone(root: Path, name: str) -> bool:
    """Return True if the directory or the branch of a view does not exist any more; False if this cannot be found out.

    Also return True if the directory became a part of a repository after the view was made, or is no longer a part of a
    repository.
    """
    if not root.is_dir():
        return True
    repository = repository_of(root)
    if name == view_of(root) or (repository is not None and name in (DETACHED, UNKNOWN)):
        return False
    if repository is None or name == NO_REPOSITORY:
        return True
    if os.path.lexists(repository.common / "reftable"):
        return False
    if os.path.isfile(repository.common / _HEADS / name):
        return False
    packed = _read_packed_branches(repository.common)
    return packed is not None and name not in packed


def _git_of(path: Path) -> Path | None:
    """Return the directory with HEAD: `.git`, or the directory that a file `.git` names; `None` if there is none."""
    # For a path that is too long, has a NUL or is forbidden, os.path's functions return False, and Path's raise.
    git: Path | None = path
    if not os.path.isdir(path):
        text = _read_text(path)
        if not text.startswith("gitdir:"):
            return None
        git = resolve_link(path.parent, text.removeprefix("gitdir:").strip())
    return git if git is not None and os.path.lexists(git / "HEAD") else None


def resolve_link(folder: Path, text: str, *, windows: bool = IS_WINDOWS) -> Path | None:
    """Return the directory that a file `.git` or `commondir` names; `None` if the path is invalid.

    On Windows, a path on another computer is also invalid.
    """
    if windows and is_foreign_path(text, [folder.anchor]):
        return None
    with suppress(OSError, ValueError):  # ValueError: the path has a NUL
        return Path(os.path.realpath(folder / text))
    return None


def _read_branch(git: Path) -> str:
    head = git / "HEAD"
    try:
        text = os.readlink(head)  # with core.preferSymlinkRefs, HEAD is a link: git-config(1)
    except OSError:
        text = _read_text(head).strip()
        if not text.startswith("ref:"):
            return DETACHED if text else UNKNOWN
        text = text.removeprefix("ref:").strip()
    if not text.startswith(_HEADS) or text == f"{_HEADS}.invalid":  # HEAD has `.invalid` in a repository with reftables
        return UNKNOWN
    # git refuses such names: git-check-ref-format(1). The name becomes a part of a path.
    if any(letter <= " " or letter in "\x7f\\:" for letter in text) or "//" in text or ".." in text:
        return UNKNOWN
    return text.removeprefix(_HEADS)


def _read_packed_branches(common: Path) -> frozenset[str] | None:
    """Return the branches that the file `packed-refs` lists, empty if it is missing; `None` if it cannot be read."""
    try:
        text = os.fsdecode(_read(common / "packed-refs", _MAX_PACKED_REFS_BYTES))
        names = (line.rstrip("\r").partition(" ")[2] for line in text.split("\n"))
        return frozenset(name.removeprefix(_HEADS) for name in names if name.startswith(_HEADS))
    except FileNotFoundError:
        return frozenset()
    except (OSError, ValueError):
        return None


def _read_text(path: Path) -> str:
    with suppress(OSError, ValueError):
        return os.fsdecode(_read(path, _MAX_SMALL_FILE_BYTES))
    return ""


def _read(path: Path, max_bytes: int) -> bytes:
    """Return the content of a regular file; links are followed, because `.git` may be a link."""
    _check_regular(os.stat(path))  # before opening, because opening a device may have side effects
    with (
        opened(lambda: os.open(path, os.O_RDONLY | _OPEN_FLAGS)) as descriptor,
        open(descriptor, "rb", closefd=False) as file,
    ):
        _check_regular(os.fstat(descriptor))  # the file may have been replaced since the check
        content = file.read(max_bytes + 1) or b""  # `None` if the read would block
    if len(content) > max_bytes:
        raise ValueError("too large")
    return content


def _check_regular(state: os.stat_result) -> None:
    if not stat.S_ISREG(state.st_mode):
        raise ValueError("not a regular file")
