"""Which paths an agent's tools may touch: those whose real path lies under a root, also where names are deceptive.

Nothing is opened here: a path is looked at with `lstat`, `readlink` and `stat`. What is decided is true for the moment;
whoever can change the tree while a tool runs can put a link where a directory was.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from ripwrap._text import shown
from ripwrap.errors import AccessDeniedError
from ripwrap.options import StrPath

# Of `C:name` and `name:stream`, and of devices, Windows makes something else than a file of that name below a root.
_DEVICE = re.compile(
    r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9\u00b9\u00b2\u00b3]|lpt[0-9\u00b9\u00b2\u00b3])(?:\..*)?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Place:
    """What a tool was pointed at.

    Attributes:
        cwd: Where rg runs: the root that it lies in, or, for several roots together, the directory that has them all.
        paths: What rg is to look at, relative to `cwd`.
        prefix: What is put before a path in an answer: with one root nothing, with several roots `cwd`.
    """

    cwd: str
    paths: tuple[str, ...]
    prefix: str

    def has(self, path: str | None) -> bool:
        """Whether a path that rg names is called so as to lie here: pure."""
        named = PurePath(os.path.normpath(os.path.join(self.cwd, path or os.pardir)))
        return any(named.is_relative_to(os.path.normpath(os.path.join(self.cwd, one))) for one in self.paths)

    @property
    def several(self) -> bool:
        """Whether it is several roots together."""
        return len(self.paths) > 1

    def shown(self, path: str) -> str:
        """How an answer calls a path that rg named, so that it can be given back if it is UTF-8."""
        return shown(os.path.normpath(os.path.join(self.prefix, path)) if self.prefix else path)

    @property
    def name(self) -> str:
        """How an answer calls the place itself."""
        return os.curdir if self.several else self.shown(self.paths[0])


class Sandbox:
    """A set of directories that may be used.

    Attributes:
        roots: Their real paths, as they were when the sandbox was made; none within another.
    """

    def __init__(self, roots: Sequence[StrPath]) -> None:
        if not roots:
            raise ValueError("no root given; name at least one directory that the tools may use")
        real: list[str] = []
        for root in map(_real_root, roots):
            if not any(below(PurePath(root), PurePath(other)) is not None for other in real):
                real = [other for other in real if below(PurePath(other), PurePath(root)) is None] + [root]
        self.roots = tuple(real)

    def place(self, path: str) -> Place:
        """Where a path leads: absolute, relative to a root, or `.` for all roots.

        Raises:
            AccessDeniedError: It leads out of the roots.
            FileNotFoundError: There is nothing, or a root is gone.
            ValueError: It cannot be a path.
        """
        if "\0" in path:
            raise ValueError("a NUL character cannot be part of a path; remove it")
        try:
            os.fsencode(path)
        except UnicodeEncodeError:
            raise ValueError(f"{path!r} has a character that no path can have; remove it") from None
        self._check_roots()
        several = len(self.roots) > 1
        if os.path.normpath(path) == os.curdir:
            if not several:
                return Place(self.roots[0], (os.curdir,), "")
            common = self._common()
            return Place(common, tuple(os.path.relpath(root, common) for root in self.roots), common)
        found = [place for place in map(self._held, self._readings(path)) if place]
        if not found:
            raise AccessDeniedError(
                f"{shown(path)} is outside of what may be used: {', '.join(map(shown, self.roots))}",
                path=path,
                roots=self.roots,
            )
        for root, relative in found:
            there = os.path.join(root, relative)
            if os.path.lexists(there):
                if not os.path.isdir(there) and os.path.exists(there) and not os.path.isfile(there):
                    raise ValueError(f"{shown(path)} is neither a file nor a directory, and may be read for ever")
                return Place(root, (relative,), root if several else "")
        if re.search(r"[*?\[{]", path):
            raise FileNotFoundError(
                f"there is no {shown(path)}; path names one file or directory, file_pattern takes a glob"
            )
        raise FileNotFoundError(
            f"there is no {shown(path)} in {', '.join(map(shown, self.roots))}; ls shows what there is"
        )

    def holds(self, path: str) -> bool:
        """Whether a path that an answer names really lies under a root."""
        return self._held(path) is not None

    def _readings(self, path: str) -> list[str]:
        """The absolute paths that a caller may mean: below each root, or in the home directory."""
        if os.name == "nt" and (reason := trap(path)):
            raise AccessDeniedError(
                f"{path} {reason}; name a file or directory below a root", path=path, roots=self.roots
            )
        readings = [os.path.join(root, path) for root in self.roots]
        # `~name` would be looked up in the system's list of users.
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
        resolved = os.path.realpath(path)
        if os.path.realpath(resolved) != resolved:
            return None  # before Python 3.13 what stands behind a loop of links is not resolved at once
        real = PurePath(resolved)
        for root in self.roots:
            if (relative := below(real, PurePath(root))) is not None:
                return root, relative
        for root in self.roots:
            if (relative := _same_below(real, root)) is not None:
                return root, relative
        return None

    def _check_roots(self) -> None:
        for root in self.roots:
            if os.path.realpath(root) != root or not os.path.isdir(root):
                raise FileNotFoundError(
                    f"the root {shown(root)} is gone, or is no directory any more; it was there at first"
                )


def below(path: PurePath, root: PurePath) -> str | None:
    """The part of a real path that is below a root, `.` for the root itself, `None` if it is outside: pure.

    The kind of path decides how parts are compared: on Windows without regard to case.
    """
    return str(path.relative_to(root)) if path.is_relative_to(root) else None


def trap(path: str) -> str | None:
    """Why Windows would take a path for something else than it looks like: pure."""
    rest = _behind_drive(path)
    if path.startswith(("\\\\?\\", "\\\\.\\", "//?/", "//./")):
        return "names a device or goes round Windows' own rules"
    if rest is None:
        return "is relative to whatever directory that drive is at"
    for part in re.split(r"[\\/]", rest):
        if ":" in part:
            return "names a stream of a file"
        if _DEVICE.fullmatch(part):
            return "names a device"
        if part.strip(".") and part != part.rstrip(". "):
            return "ends in a dot or space, which Windows drops"
    return None


def _behind_drive(path: str) -> str | None:
    """What follows a drive; `None` if that is relative to the drive's own directory."""
    if not re.match(r"[A-Za-z]:", path):
        return path
    return path[2:] if path[2:].startswith(("\\", "/")) else None


def _same_below(path: PurePath, root: str) -> str | None:
    """As `below()`, asking the file system: it may take names for the same that are spelled differently."""
    try:
        wanted = os.stat(root)
    except OSError:
        return None
    for ancestor in (path, *path.parents):
        try:
            state = os.stat(ancestor)
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
        raise NotADirectoryError(f"the root {shown(path)} is not a directory; name the one that it is in")
    return real
