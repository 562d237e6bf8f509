"""Sandbox of the tools: they may use a path only if its real path is below a root.

This module opens no file; it uses `lstat`, `readlink` and `stat`. Its answers are valid only at that moment: a program
that can change the files while a tool runs can replace a directory by a link.
"""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from ripwrap._text import shown
from ripwrap._windows import IS_WINDOWS, why_misleading
from ripwrap.errors import AccessDeniedError
from ripwrap.options import StrPath


@dataclass(frozen=True, slots=True)
class Location:
    """File or directory that a tool searches, or several roots together.

    Attributes:
        cwd: Directory that rg runs in: the root of the location, or the common parent of several roots.
        paths: Paths that rg searches, relative to `cwd`.
        prefix: Prefix of paths in an answer: empty with one root, `cwd` with several roots.
        sep: Separator of the paths.
    """

    cwd: str
    paths: tuple[str, ...]
    prefix: str
    sep: str = os.sep

    def has(self, path: str | None) -> bool:
        """Return whether a path that rg prints is in this location, judged by its text: pure."""
        named = PurePath(os.path.normpath(os.path.join(self.cwd, path or os.pardir)))
        return any(named.is_relative_to(os.path.normpath(os.path.join(self.cwd, one))) for one in self.paths)

    @property
    def several(self) -> bool:
        """True for several roots together."""
        return len(self.paths) > 1

    @property
    def is_file(self) -> bool:
        """True for a single file."""
        return not self.several and os.path.isfile(os.path.join(self.cwd, self.paths[0]))

    def shown(self, path: str) -> str:
        """Return the name of a path in answers. Tools accept it as an argument if it is UTF-8."""
        return shown(os.path.normpath(os.path.join(self.prefix, path)) if self.prefix else path)

    @property
    def name(self) -> str:
        """Name of the location itself in answers."""
        return os.curdir if self.several else self.shown(self.paths[0])


class Sandbox:
    """Set of directories that tools may use.

    Attributes:
        roots: Real paths of the directories when the sandbox was made; none is inside another.
    """

    def __init__(self, roots: Sequence[StrPath], *, windows: bool = IS_WINDOWS) -> None:
        if not roots:
            raise ValueError("no root given; name at least one directory that the tools may use")
        real: list[str] = []
        for root in map(_real_root, roots):
            if not any(below(PurePath(root), PurePath(other)) is not None for other in real):
                real = [other for other in real if below(PurePath(other), PurePath(root)) is None] + [root]
        self.roots: tuple[str, ...] = tuple(real)
        self._windows = windows

    def locate(self, path: str) -> Location:
        """Return the location of a path: absolute, relative to a root, or `.` for all roots.

        Raises:
            AccessDeniedError: The path leads out of the roots.
            FileNotFoundError: The path does not exist, or a root is gone.
            PermissionError: A directory on the way to the path cannot be entered.
            ValueError: The text cannot be a path.
        """
        _check_text(path)
        if self._windows and (reason := why_misleading(path, self.roots)):
            raise AccessDeniedError(
                f"{path} {reason}; name a file or directory below a root", path=path, roots=self.roots
            )
        self._check_roots()
        several = len(self.roots) > 1
        if several and os.path.normpath(path) == os.curdir:
            common = self._common()
            return Location(common, tuple(os.path.relpath(root, common) for root in self.roots), common)
        candidates = [held for held in map(self._held, self._readings(path)) if held]
        if not candidates:
            raise AccessDeniedError(
                f"{shown(path)} is outside of the allowed directories: {', '.join(map(shown, self.roots))}",
                path=path,
                roots=self.roots,
            )
        denied: PermissionError | None = None
        for root, relative in candidates:
            target = os.path.join(root, relative)
            try:
                os.lstat(target)
            except PermissionError as error:
                denied = error
                continue
            except OSError:
                continue
            if not os.path.isdir(target) and os.path.exists(target) and not os.path.isfile(target):
                raise ValueError(f"{shown(path)} is neither a file nor a directory; pass one of these")
            return Location(root, (relative,), root if several else "")
        if denied is not None:
            raise PermissionError(
                f"{shown(path)} cannot be read: {denied.strerror}; change its permissions and those of the directories "
                "above it, or pass another path"
            )
        if re.search(r"[*?\[{]", path):
            raise FileNotFoundError(
                f"{shown(path)} does not exist; path must be one file or directory; pass a glob as file_pattern"
            )
        raise FileNotFoundError(
            f"{shown(path)} does not exist in {', '.join(map(shown, self.roots))}; ls lists the files"
        )

    def holds(self, path: str) -> bool:
        """Return whether a path may be shown in an answer: its real path is below a root."""
        return self._held(path) is not None

    def _readings(self, path: str) -> list[str]:
        """Return the absolute paths that a caller may mean: below each root, or in the home directory."""
        readings = [os.path.join(root, path) for root in self.roots]
        # Only `~` is expanded: `~name` is the home directory of another user.
        if re.match(r"~(?=[/\\]|$)", path) and not any(map(os.path.lexists, readings)):
            return [os.path.expanduser("~") + path[1:]]
        return readings

    def _common(self) -> str:
        try:
            return os.path.commonpath(self.roots)
        except ValueError:
            names = ", ".join(map(shown, self.roots))
            raise ValueError(f"the roots are on several drives; name one of them as path: {names}") from None

    def _held(self, path: str) -> tuple[str, str] | None:
        """Return the root that holds the real path, and the part below it, or None."""
        resolved = os.path.realpath(path)
        if os.path.realpath(resolved) != resolved:
            return None  # before Python 3.13 realpath() resolves a path behind a loop of links only in part
        real = PurePath(resolved)
        for root in self.roots:
            if (relative := below(real, PurePath(root))) is not None:
                return root, relative
        for root in self.roots:
            if (relative := same_below(real, root, os.stat)) is not None:
                return root, relative
        return None

    def _check_roots(self) -> None:
        for root in self.roots:
            if os.path.realpath(root) != root or not os.path.isdir(root):
                raise FileNotFoundError(
                    f"the root {shown(root)} does not exist any more, or is not the same directory; restore it"
                )


def _check_text(path: str) -> None:
    if "\0" in path:
        raise ValueError("a NUL character cannot be part of a path; remove it")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise ValueError(f"{path!r} has a character that no path can have; remove it") from None


def below(path: PurePath, root: PurePath) -> str | None:
    """Return the part of a real path below a root, `.` for the root itself, or None if it is outside: pure.

    The class of the path decides how parts compare: on Windows regardless of case.
    """
    return str(path.relative_to(root)) if path.is_relative_to(root) else None


def same_below(path: PurePath, root: str, stat: Callable[[StrPath], os.stat_result]) -> str | None:
    """Return what `below()` returns, but compare files by identity: two spellings of a name may be the same file.

    macOS, for example, usually ignores case, and whether an accent is a character of its own.
    """
    try:
        wanted = stat(root)
    except OSError:
        return None
    for ancestor in (path, *path.parents):
        try:
            state = stat(ancestor)
        except OSError:
            continue
        if os.path.samestat(state, wanted):
            return str(path.relative_to(ancestor))
    return None


def _real_root(root: StrPath) -> str:
    path: str = os.path.expanduser(os.fspath(root))
    if not path:
        raise ValueError("a root is empty (a variable that is not set?); name a directory")
    real = os.path.realpath(path)
    if not os.path.exists(real):
        raise FileNotFoundError(f"the root {shown(path)} does not exist; name a directory")
    if not os.path.isdir(real):
        raise NotADirectoryError(f"the root {shown(path)} is not a directory; name the directory that it is in")
    return real
