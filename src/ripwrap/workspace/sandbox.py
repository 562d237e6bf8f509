"""Sandbox of the tools: a tool may use a path only if its real path is below a root, and no glob denies it.

This module opens no file; it uses `lstat`, `readlink` and `stat`. Its results are valid only at the time of the call:
another program may replace a directory by a link while a tool runs.
"""

import difflib
import errno
import os
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import PurePath
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes, urlsplit

from ripwrap._system.concurrency import CANCELLED
from ripwrap._system.overlay import active_overlay
from ripwrap._system.windows import IS_WINDOWS, is_foreign_path, why_misleading
from ripwrap._text import as_utf8, path_from_shown, shown_path
from ripwrap.errors import AccessDeniedError
from ripwrap.options import StrPath
from ripwrap.workspace.deny import DeniedPaths, DenyRules

if TYPE_CHECKING:
    from ripwrap.sources.git import RevisionTree


def file_path(uri: str) -> tuple[str, str]:
    """Return the absolute path and the query of a file:// address."""
    parts = urlsplit(uri)
    if IS_WINDOWS:
        from urllib.request import url2pathname  # late: it imports the clients of HTTP

        path = url2pathname(parts.path)
    else:
        path = os.fsdecode(unquote_to_bytes(parts.path))
    if (
        parts.scheme != "file"
        or parts.netloc not in ("", "localhost")
        or not os.path.isabs(path)
        or (IS_WINDOWS and is_foreign_path(path))
    ):
        raise ValueError("it is not a file:// address of this machine")
    return path, parts.query


_MAX_NEAR = 2_000
"""Maximum number of entries of a directory among which an error looks for a near name."""
_MAX_LINKS = 40
"""Maximum number of links on the way to a file, as in Linux (path_resolution(7))."""

MAX_PATH_BYTES = 32_767 if IS_WINDOWS else 4_095
"""Maximum length of a path: PATH_MAX of Linux without its NUL byte (limits.h(0p)); on Windows, of an extended path."""

MAX_NAME_BYTES = 255
"""Maximum length of a name in a path: NAME_MAX of Linux, macOS and Windows; on Windows, characters are counted."""


@dataclass(frozen=True)  # without slots, because of the cached property
class RootLocation:
    """File or directory that a tool searches, several of them in one root, or several roots together."""

    cwd: str
    paths: tuple[str, ...]
    prefix: str
    sep: str = os.sep
    several: bool = False
    """True if the location consists of several roots."""
    lines: tuple[int, int] | None = None
    """First and last line, if the path was a place such as `a.py:3-5`."""
    revision: "RevisionTree | None" = None
    """Revision of git, whose files are meant in place of those on the disk."""

    def has(self, path: str | None) -> bool:
        """Return True if a path that rg prints is in this location, and False for `None`; no I/O."""
        named = PurePath(os.path.normpath(os.path.join(self.cwd, path or os.pardir)))
        return any(below(named, one) is not None for one in self._searched)

    @cached_property
    def _searched(self) -> tuple[PurePath, ...]:
        return tuple(PurePath(os.path.normpath(os.path.join(self.cwd, one))) for one in self.paths)

    @property
    def is_file(self) -> bool:
        """True if the location is a single file."""
        if self.revision is not None:
            return len(self.paths) == 1 and self.revision.is_file
        target = os.path.join(self.cwd, self.paths[0])
        texts = active_overlay()
        return len(self.paths) == 1 and (os.path.isfile(target) or (texts is not None and texts.is_file(target)))

    @property
    def place(self) -> object:
        """Root, and the commit with its repository, with which paths must agree to be searched together."""
        return self.cwd, self.revision and replace(self.revision, is_file=False)

    def shown(self, path: str) -> str:
        """Return a path as results have it. Tools accept this text as an argument if the path is valid UTF-8."""
        return as_utf8(os.path.normpath(os.path.join(self.prefix, path)) if self.prefix else path)

    @property
    def name(self) -> str:
        """Name with which answers show the location itself."""
        return os.curdir if self.paths[1:] else self.shown(self.paths[0])


class MissingPathError(FileNotFoundError):
    """Error for a path that does not exist."""

    def __init__(self, said: str, near: str | None = None) -> None:
        super().__init__(said)
        self.near: str | None = near


class Sandbox:
    """Directories that the tools may use."""

    def __init__(self, roots: Sequence[StrPath], *, deny: str | Sequence[str] = (), windows: bool = IS_WINDOWS) -> None:
        if not roots:
            raise ValueError("no root given; pass at least one directory that the tools may use")
        real: list[str] = []
        for given in roots:
            path: str = os.path.expanduser(os.fspath(given))
            if not path:
                raise ValueError("a root is an empty string, perhaps from a variable that is not set; pass a directory")
            root = os.path.realpath(path)
            if not os.path.exists(root):
                raise FileNotFoundError(f"the root {shown_path(path)} does not exist; pass an existing directory")
            if not os.path.isdir(root):
                said = f"the root {shown_path(path)} is not a directory"
                raise NotADirectoryError(f"{said}; pass the directory that contains it")
            if not any(below(PurePath(root), PurePath(other)) is not None for other in real):
                real = [other for other in real if below(PurePath(other), PurePath(root)) is None] + [root]
        self.roots: tuple[str, ...] = tuple(real)
        self.deny: DenyRules = DenyRules(deny, roots=self.roots, windows=windows)
        self._folded_roots = [(root, tuple(map(_folded, PurePath(root).parts))) for root in self.roots]
        self._windows = windows

    def locate(
        self, path: str, *, exact: bool = False, find: Callable[[str], RootLocation] | None = None
    ) -> RootLocation:
        """Return the location of a path (absolute, relative to a root, or below `~`); `.` stands for all roots.

        Unless `exact` is set, the path may have the escapes with which answers show control characters, and may be a
        place in a file, as answers, editors and compilers write it. A file of that name takes precedence.
        """
        lines: tuple[int, int] | None = None
        if path.startswith("file:///"):  # an address of a resource, as the MCP server has them; a query is left out
            try:
                plain, fragment = file_path(path)[0], re.fullmatch(_RANGE, urlsplit(path).fragment)
            except ValueError as error:
                raise AccessDeniedError(f"{shown_path(path)} cannot be used: {error}", path=path) from None
            numbers = sorted(int(one or fragment[1]) for one in fragment.groups()) if fragment else ()
            path, lines = plain, (numbers[0], numbers[1]) if numbers else None
        locate: Callable[[str], RootLocation] = find or (lambda name: self._locate(name, exact=exact))
        try:
            return replace(locate(path), lines=lines)
        except FileNotFoundError as error:
            for name, start, end in () if exact else places_in(path):
                with suppress(FileNotFoundError):
                    location = locate(name)
                    if location.is_file:
                        return replace(location, lines=(start, end))
            raise error from None

    def locate_all(self, paths: str, *, find: Callable[[str], RootLocation] | None = None) -> RootLocation:
        """Return the location of one or more paths, separated by NUL characters, that are in one root."""
        found = [self.locate(one, find=find) for one in paths.split("\0")]
        if len(found) == 1 or any(one.several for one in found):
            return next((one for one in found if one.several), found[0])
        if others := [one for one in found if one.place != found[0].place]:
            names = f"{shown_path(found[0].name)} and {shown_path(others[0].name)}"
            where = "roots; call the tool once for each root"
            where = where if found[0].revision is None else "repositories; call the tool once for each repository"
            raise ValueError(f"{names} are in different {where}")
        every = [path for one in found for path in one.paths]
        plain = {path: PurePath(path) for path in every}
        outer = [path for path in plain if not any(one in plain[path].parents for one in plain.values())]
        first = next(one for one in found if one.paths[0] == outer[0])
        return replace(first, paths=tuple(outer), lines=first.lines if len(outer) == 1 else None)

    def _locate(self, path: str, *, exact: bool) -> RootLocation:
        candidates = self.candidates(path, exact=exact)
        if len(self.roots) > 1 and os.path.normpath(path) == os.curdir:
            common = self._common()
            roots = tuple(os.path.relpath(root, common) for root in self.roots)
            return RootLocation(common, roots, common, several=True)
        return self._existing(path, candidates)

    def candidates(self, path: str, *, exact: bool = False, in_revision: bool = False) -> list[tuple[str, str]]:
        """Return what a path may stand for: pairs of a root and a path below it, which need not exist.

        In a revision, links on the disk do not count.
        """
        if "\0" in path:
            raise ValueError("a NUL character cannot be part of a path; remove it")
        try:
            raw = os.fsencode(path)
        except UnicodeEncodeError:
            raise ValueError(f"{path[:MAX_NAME_BYTES]!r} has a character that no path can have; remove it") from None
        length = len(path if IS_WINDOWS else raw)
        longest = max(map(len, re.split(r"[/\\]", path) if IS_WINDOWS else raw.split(b"/")))
        for size, most, what in ((length, MAX_PATH_BYTES, "path"), (longest, MAX_NAME_BYTES, "name in a path")):
            if size > most:
                raise ValueError(
                    f"the path has {length:,} bytes, and no {what} can have more than {most:,}; "
                    "pass the path of an existing file or directory"
                )
        if self._windows and (reason := why_misleading(path, self.roots)):
            raise AccessDeniedError(
                f"{path} {reason}; name a file or directory below a root", path=path, roots=self.roots
            )
        for root in self.roots:
            if os.path.realpath(root) != root or not os.path.isdir(root):
                raise FileNotFoundError(
                    f"the root {shown_path(root)} does not exist any more, or leads to another directory; "
                    "restore it, or start again with another root"
                )
        spellings = dict.fromkeys((path if exact else path_from_shown(path), path))
        readings = [one for spelling in spellings for one in self._readings(spelling)]
        if glob := next(filter(None, map(self.denied_by, readings)), None):
            said = f'{shown_path(path)} is denied by "{glob}"; pass another path'
            raise AccessDeniedError(said, path=path, roots=self.roots, denied_by=glob)
        candidates = [held for held in map(self._named if in_revision else self._held, readings) if held]
        if not candidates:
            raise AccessDeniedError(
                f"{shown_path(path)} is outside of the allowed directories: {', '.join(map(shown_path, self.roots))}",
                path=path,
                roots=self.roots,
            )
        return candidates

    def locate_file(self, path: str, instead: str) -> RootLocation:
        """Return the location of a file; `instead` says in the error about a directory what to do."""
        location = self.locate(path)
        if not location.is_file:
            raise IsADirectoryError(f"{shown_path(location.name)} is a directory; {instead}")
        return location

    def holds(self, path: str) -> bool:
        """Return True if an answer may show an absolute path: it is not denied, and its real path is below a root."""
        return self._held(path) is not None and self.denied_by(path) is None

    def denied_by(self, path: str) -> str | None:
        """Return the glob that denies a file; `None` if the file is not denied.

        A file is denied if a glob matches its real path, a directory above it, or a link on the way to it. A hard link
        is not recognised, because the system does not list the other names of a file.
        """
        if not self.deny:
            return None
        for visited, folder in _visited(path):
            CANCELLED.get().check()
            for root, parts in self._folded_roots:
                relative = _below_any_spelling(visited, root, parts)
                if relative and (glob := self.deny.glob_of_name(relative, folder=folder)):
                    return glob
        held = self._held(path)
        return None if held is None else self.deny.glob_of(held[1], folder=_may_be_folder(path))

    def denied_paths(self, location: RootLocation) -> DeniedPaths | None:
        """Return the `DeniedPaths` of a location, which can tell if a path is denied; `None` if `deny` has no globs."""
        if not self.deny:
            return None
        return DeniedPaths(self.deny, location.paths if location.several else ())

    def _readings(self, path: str) -> list[str]:
        """Return the absolute paths that a path may stand for: below each root, or in the home directory."""
        readings = [os.path.join(root, path) for root in self.roots]
        # Only `~` is expanded: `~name` is the home directory of another user.
        if re.match(r"~(?=[/\\]|$)", path) and not any(map(os.path.lexists, readings)):
            return [os.path.expanduser("~") + path[1:]]
        return readings

    def _existing(self, path: str, candidates: Sequence[tuple[str, str]]) -> RootLocation:
        """Return the location of the first candidate that exists; raise the errors of `locate()`."""
        several = len(self.roots) > 1
        denied: PermissionError | None = None
        for root, relative in candidates:
            target = os.path.join(root, relative)
            try:
                os.lstat(target)
            except PermissionError as error:
                denied = error
                continue
            except OSError as error:
                if error.errno == errno.ELOOP:
                    raise _link_loop(path) from error
                texts = active_overlay()
                if texts is None or not texts.exists(target):
                    continue
            if os.path.islink(target):  # the real path of a link is a link only if the link leads back to itself
                raise _link_loop(path)
            if not os.path.isdir(target) and os.path.exists(target) and not os.path.isfile(target):
                raise ValueError(f"{shown_path(path)} is neither a file nor a directory; pass another path")
            return RootLocation(root, (relative,), root if several else "")
        if denied is not None:
            raise PermissionError(
                f"{shown_path(path)} cannot be read: {denied.strerror}; change the permissions of the path or of the "
                "directories above it, or pass another path"
            )
        if re.search(r"[*?\[{]", path):
            raise FileNotFoundError(
                f"{shown_path(path)} does not exist; pass one existing file or directory as path, "
                "and a glob as file_pattern"
            )
        near = next(filter(None, (self._near(root, relative) for root, relative in candidates)), None)
        meant = "" if near is None else f"did you mean {shown_path(near)}? "
        raise MissingPathError(
            f"{shown_path(path)} does not exist in {', '.join(map(shown_path, self.roots))}; {meant}ls lists the files",
            near,
        )

    def _near(self, root: str, relative: str) -> str | None:
        """Return the path of an entry that has nearly the name of a missing one, in the same directory."""
        folder, name = os.path.split(relative)
        found: dict[str, str] = {}
        with suppress(OSError), os.scandir(os.path.join(root, folder)) as entries:
            found = {entry.name.casefold(): entry.name for entry in islice(entries, _MAX_NEAR)}
        for close in difflib.get_close_matches(name.casefold(), found, cutoff=0.8):
            path = os.path.join(folder, found[close])
            if self.holds(os.path.join(root, path)):
                return os.path.join(root, path) if len(self.roots) > 1 else path
        return None

    def _common(self) -> str:
        try:
            return os.path.commonpath(self.roots)
        except ValueError:
            names = ", ".join(map(shown_path, self.roots))
            raise ValueError(f"the roots are on several drives; name one of them as path: {names}") from None

    def _named(self, path: str) -> tuple[str, str] | None:
        """Return the root that contains a path by its name, and the part below the root; else those of the disk."""
        named = PurePath(os.path.normpath(path))
        for root in self.roots:
            if (relative := below(named, PurePath(root))) is not None:
                return root, relative
        return self._held(path)

    def _held(self, path: str) -> tuple[str, str] | None:
        """Return the root that contains the real path, and the part below the root; `None` if no root contains it."""
        resolved = os.path.realpath(path)
        if os.path.realpath(resolved) != resolved:
            return None  # before Python 3.13, realpath() does not resolve the whole path if links form a loop
        real = PurePath(resolved)
        for root in self.roots:
            if (relative := below(real, PurePath(root))) is not None:
                return root, relative
        for root in self.roots:
            if (relative := same_below(real, root, os.stat)) is not None:
                return root, relative
        return None


_RANGE = r"L?([1-9][0-9]{0,8})(?:C[0-9]+)?(?:-L?([1-9][0-9]{0,8})(?:C[0-9]+)?)?"
_PLACES = (
    re.compile(r"(.+):([1-9][0-9]{0,8})(?:-([1-9][0-9]{0,8}))?:?", re.DOTALL),
    re.compile(r"(.+):([1-9][0-9]{0,8})():[0-9]+:?", re.DOTALL),
    re.compile(f"(.+)#{_RANGE}:?", re.DOTALL),
)
"""Patterns of places in files: `a.py:3` and `a.py:3-5`, `a.py:3:7` with a column, and `a.py#L3` and `a.py#L3-L5`."""


def places_in(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the readings of a text as a place: the path of the file, the first line and the last line."""
    for pattern in _PLACES:
        if found := pattern.fullmatch(text):
            first, last = int(found[2]), int(found[3] or found[2])
            yield found[1], min(first, last), max(first, last)


def _link_loop(path: str) -> FileNotFoundError:
    return FileNotFoundError(f"{shown_path(path)} is a symbolic link that leads back to itself; ls lists the files")


def below(path: PurePath, root: PurePath) -> str | None:
    """Return the part of a real path below a root, or None; no I/O. Windows paths are compared without case."""
    # `is_relative_to()` makes all parents of the path, which takes quadratic time.
    parts, start = path.parts, len(root.parts)
    return str(type(path)(*parts[start:])) if type(path)(*parts[:start]) == root else None


def same_below(path: PurePath, root: str, stat: Callable[[StrPath], os.stat_result]) -> str | None:
    """Return the part of a path below a root, as `below()` does, but compare directories by device and inode.

    A directory may have several names. macOS, for example, usually ignores case and the Unicode form of accents.
    """
    try:
        wanted = stat(root)
    except OSError:
        return None
    text = ancestor = str(path)
    while True:
        CANCELLED.get().check()
        with suppress(OSError):
            if os.path.samestat(stat(ancestor), wanted):
                return text[len(ancestor) :].lstrip(os.sep) or os.curdir
        if ancestor == (ancestor := os.path.dirname(ancestor)):
            return None


def _visited(path: str) -> Iterator[tuple[str, bool]]:
    """Yield each path that the system visits to resolve an absolute path, and True if it may be a directory.

    Links in the directories above a yielded path are already resolved, as in path_resolution(7).
    """
    anchor = PurePath(path).anchor
    here, links = anchor, 0
    waiting = _parts(path[len(anchor) :])
    while waiting:
        part = waiting.pop()
        if part in ("", os.curdir):
            continue
        if part == os.pardir:
            here = os.path.dirname(here)
            continue
        here = os.path.join(here, part)
        yield here, bool(waiting) or _may_be_folder(here)
        try:
            target = os.readlink(here).removeprefix("\\\\?\\")
        except (OSError, ValueError):
            continue
        links += 1
        if links > _MAX_LINKS:
            return
        start = PurePath(target).anchor
        here = start or os.path.dirname(here)
        waiting += _parts(target[len(start) :])


def _parts(path: str) -> list[str]:
    """Return the parts of a path, the last first."""
    return path.replace(os.altsep or os.sep, os.sep).split(os.sep)[::-1]


def _may_be_folder(path: str) -> bool:
    """Return False for an existing file; True for a directory, a link, and a path that does not exist."""
    return os.path.islink(path) or os.path.isdir(path) or not os.path.lexists(path)


def _below_any_spelling(path: str, root: str, folded: tuple[str, ...]) -> str | None:
    """Return the part of a visited path below a root, ignoring the case and Unicode form of the root; no I/O."""
    # A text is compared, and only the first parts are split, because `_visited()` yields every directory of the path.
    start = os.path.join(root, "")
    if path.startswith(start):
        return path[len(start) :]
    anchor = PurePath(root).anchor
    parts = path[len(anchor) :].split(os.sep, len(folded) - 1)
    if tuple(map(_folded, (path[: len(anchor)], *parts[: len(folded) - 1]))) != folded:
        return None
    return parts[-1] if len(parts) == len(folded) else ""


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name.casefold())
