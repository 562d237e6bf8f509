"""Say why rg leaves out an entry: from its log, and what the log does not tell.

rg does not log that a directory is too deep or on another file system, that a link to a directory is not followed, and
what it cannot read.
"""

import os
import stat
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, TypeAlias, cast

from ripwrap._ripgrep.debug_log import LeftOut, shown_in_log
from ripwrap._ripgrep.query import Query
from ripwrap._system.safe_open import is_link, read_start
from ripwrap._text import plural
from ripwrap.errors import Hint
from ripwrap.options import EXCLUDED, StrPath
from ripwrap.results import Reason, SkipKind

MAX_RULES_BYTES = 1024 * 1024
"""Number of bytes at the start of an ignore file in which the line of a rule is looked for."""

Judged: TypeAlias = tuple[Reason, Hint | None]
"""Reason why rg reads or leaves out a path, and the first option to change so that rg reads it, if one helps."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Reason why rg leaves out an entry."""

    kind: SkipKind
    hint: Hint | None = None
    rule: LeftOut | None = None
    detail: str = ""


WhyNot: TypeAlias = tuple[str, Cause]
"""Path of an entry that rg leaves out, and the reason: a file, or a directory above it."""

_TOO_DEEP = Cause("max_depth", Hint("max_depth", kind="omit"))
_LOOP = Cause("unreadable", detail="a link to a directory above it")


@dataclass(frozen=True, slots=True)
class Folder:
    """Directory that rg reads; `above` are the directories that hold it, to which links do not lead rg."""

    path: str
    depth: int
    device: int
    above: tuple[tuple[int, int], ...]


class Omissions:
    """Reasons why rg leaves out entries: those of its log, and those that rg does not log."""

    def __init__(
        self, query: Query, options: Mapping[str, Any], log: Mapping[str, LeftOut], listed: Collection[str] = ()
    ) -> None:
        """Set the search, what rg's log says, and the keys of the files that rg lists, if it was asked."""
        self._log = log
        self._listed = listed
        self._options = options
        self._cwd = query.cwd
        self._follow: bool = query.follows
        self._max_depth: int | None = options.get("max_depth")

    def key(self, path: str) -> str:
        """Return a key that is equal for all paths to a file."""
        return os.path.normpath(os.path.join(self._cwd, path))

    def root(self, path: str) -> Folder:
        """Return a searched directory."""
        info = os.stat(os.path.join(self._cwd, path))
        real = os.path.realpath(os.path.join(self._cwd, path))
        holders = {*PurePath(self._cwd, "_").parents, *PurePath(real).parents}
        above = tuple((one.st_dev, one.st_ino) for one in (info, *map(os.stat, holders))) if self._follow else ()
        return Folder("" if path == os.curdir else path, 0, info.st_dev, above)

    def enter(self, folder: Folder, name: str) -> Folder:
        """Return the directory in a directory."""
        path = os.path.join(folder.path, name)
        info = os.stat(os.path.join(self._cwd, path))
        return replace(folder, path=path, depth=folder.depth + 1, above=((info.st_dev, info.st_ino), *folder.above))

    def check(self, folder: Folder, name: str) -> tuple[bool, Cause | None]:
        """Return True for a directory, and the reason why rg leaves the entry out; `None` if nothing says that."""
        path = os.path.join(folder.path, name)
        is_folder, cause, device = self.kind(folder, path)
        if folder.depth == self._max_depth:  # it is 0: rg does not read the entries of the searched path
            return is_folder, cause or _TOO_DEEP
        said = self._log.get(shown_in_log(path))
        if said is not None and (found := self._said(said, path)):
            return is_folder, found
        if cause is None and is_folder:
            if self._options.get("one_file_system") and device != folder.device:
                cause = Cause("one_file_system", Hint("one_file_system", value=False))
            elif folder.depth + 1 == self._max_depth:
                cause = _TOO_DEEP
        return is_folder, cause

    def kind(self, folder: Folder, path: str) -> tuple[bool, Cause | None, int]:
        """Return True for a directory, a reason if rg reads no such entry, and the number of its file system."""
        full = os.path.join(self._cwd, path)
        try:
            info = os.lstat(full)
            if is_link(info):
                if not self._follow:
                    return False, Cause("link", Hint("follow", value=True)), 0
                info = os.stat(full)
                if stat.S_ISDIR(info.st_mode) and (info.st_dev, info.st_ino) in folder.above:
                    return False, _LOOP, 0
        except OSError as error:
            return False, Cause("unreadable", detail=error.strerror or type(error).__name__), 0
        is_folder = stat.S_ISDIR(info.st_mode)
        return is_folder, None if is_folder or stat.S_ISREG(info.st_mode) else Cause("special"), info.st_dev

    def judge(self, root: str, path: str) -> Judged:
        """Return the reason why a search of `root` reads a path, or does not."""
        parts = parts_below(self._cwd, root, path) or []
        full, matched, cause = os.path.join(self._cwd, path), path, None
        is_listed = self.key(os.path.join(root, *parts)) in self._listed
        if not parts:
            cause = _TOO_DEEP if self._max_depth == 0 and os.path.isdir(full) else None
        elif not is_listed:
            folder = self.root(root)
            for number, name in enumerate(parts, 1):
                _, cause = self.check(folder, name)
                if cause is not None:
                    matched = path if number == len(parts) else os.path.join(folder.path, name)
                    break
                if number < len(parts):
                    folder = self.enter(folder, name)
        if cause is None and (error := read_error(self._cwd, path)):
            cause = Cause("unreadable", detail=error)
        if cause is None:
            unknown = parts and not is_listed and os.path.isfile(full)
            return Reason(path=path, kind="other" if unknown else "searched", matched=path), None
        return self.reason(path, matched, cause), cause.hint

    def reason(self, path: str, matched: str, cause: Cause) -> Reason:
        """Return the reason why rg leaves out a path; `matched` is the path, or a directory above it."""
        rule, file, line = cause.rule, None, None
        if rule is not None and rule.file:
            folder, name = os.path.split(os.path.join(self._cwd, rule.file))
            file = relative(self._cwd, os.path.join(os.path.realpath(folder), name))
            line = _line_of(os.path.join(folder, name), rule.text)
        glob = rule.text if rule else None
        return Reason(path=path, kind=cause.kind, matched=matched, file=file, line=line, glob=glob, detail=cause.detail)

    def _said(self, said: LeftOut, path: str) -> Cause | None:
        """Return the reason that rg's log gives for an entry, with the option that it comes from."""
        match said.kind:
            case "ignored":
                named = self.key(said.file) in map(self.key, self._values("ignore_file"))
                return Cause("ignored", Hint("no_ignore_files" if named else "no_ignore", value=True), said)
            case "hidden":
                return Cause("hidden", Hint("hidden", value=True))
            case "too_large":
                detail = plural(int(said.text), "byte")
                return Cause("too_large", Hint("max_filesize", kind="omit"), detail=detail)
            case "type" if said.text:
                shown = said.text if said.text in self._values("type_not") else "all"
                return Cause("type", Hint("type_not", kind="omit"), detail=f"of type {shown}")
            case "type":
                chosen = " or ".join(dict.fromkeys(self._values("type")))
                return Cause("type", Hint("type", kind="omit"), detail=f"not of type {chosen}")
            case "glob":
                return self._by_glob(said)
            case "filter":
                linked = os.path.islink(os.path.join(self._cwd, path))
                return Cause("link", Hint("follow", value=True)) if linked else Cause("special")
            case _:
                return None

    def _by_glob(self, said: LeftOut) -> Cause:
        """Return the reason for an entry that a glob excludes, or that no glob chooses, in the order of rg's flags."""
        globs, iglobs = self._values("glob"), self._values("iglob")
        if not said.text:
            chosen = any(not one.startswith(("!", "#")) and one.strip() for one in globs)
            return Cause("glob", Hint("glob" if chosen else "iglob", kind="omit"))
        if not self._options.get("include_git") and said.text in {f"!{one}" for one in EXCLUDED}:
            return Cause("glob", Hint("include_git", value=True), said)
        if said.text in iglobs or said.text in globs:
            return Cause("glob", Hint("iglob" if said.text in iglobs else "glob", kind="omit"), said)
        # ripwrap adds one glob if hidden files are left out of a type, and others for links that lead up.
        return Cause("hidden", Hint("hidden", value=True)) if said.text == "!.*" else _LOOP

    def _values(self, name: str) -> tuple[str, ...]:
        """Return the values of an option that takes one or several; empty if it is not given."""
        value = cast("StrPath | Iterable[StrPath]", self._options.get(name) or ())
        several = (value,) if isinstance(value, (str, os.PathLike)) else value
        return tuple(os.fspath(one) for one in several)


def read_error(cwd: str, path: str) -> str:
    """Return the reason why a file or directory cannot be read; empty if it can be read, or is a FIFO or device."""
    full = os.path.join(cwd, path)
    try:
        mode = os.stat(full).st_mode
        if stat.S_ISDIR(mode):
            os.scandir(full).close()
        elif stat.S_ISREG(mode):  # opening a FIFO could wait for ever
            open(full, "rb").close()
    except FileNotFoundError:
        return "a broken link"
    except OSError as error:
        return error.strerror or type(error).__name__
    return ""


def _line_of(file: str, rule: str) -> int | None:
    """Return the number of the last line of an ignore file with a rule, as the last rule that matches decides."""
    try:
        lines = read_start(file, MAX_RULES_BYTES).decode("utf-8-sig", "replace").split("\n")
    except OSError:
        lines = []
    return next(
        (number for number in range(len(lines), 0, -1) if rule in (lines[number - 1], lines[number - 1].rstrip())), None
    )


def relative(cwd: str, file: str) -> str:
    """Return a path relative to `cwd` if it is below `cwd` or the real path of `cwd`; otherwise return it unchanged."""
    for start in (cwd, os.path.realpath(cwd)):
        if file.startswith(os.path.join(start, "")):
            return os.path.relpath(file, start)
    return file


def parts_below(cwd: str, searched: str, path: str) -> list[str] | None:
    """Return the parts of a path below a searched path: `["b", "c.py"]` for `a/b/c.py` below `a`."""
    target = os.path.normpath(os.path.join(cwd, path))
    root = os.path.normpath(os.path.join(cwd, searched))
    real = os.path.join(os.path.realpath(os.path.dirname(target)), os.path.basename(target))
    for above, below in ((root, target), (os.path.realpath(root), real)):
        if above == below:
            return []
        if below.startswith(os.path.join(above, "")):
            return os.path.relpath(below, above).split(os.sep)
    return None
