"""Listing without rg, for `ls` only: the files that `rg --files` lists where no link is followed."""

import logging
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ripwrap._ignore import Ignores, Rule, Rules, matched
from ripwrap.errors import GlobError

_LOGGER = logging.getLogger("ripwrap")

_NAME_SURROGATE = 0x20000000


def walk(
    root: str,
    sub: str,
    *,
    hidden: bool,
    no_ignore: bool,
    exclude: Sequence[str],
    max_depth: int | None,
    one_file_system: bool,
    stop: Callable[[], bool],
) -> Iterator[str]:
    """Paths of files below a folder, relative to the root, depth first, in each folder by name.

    Ignore files count from the root on: none above it is looked at, and none that is a link out of it is read. A folder
    that cannot be read is logged and left out.

    Args:
        root: A real path of a folder.
        sub: A real path relative to it, "." or below; a file is listed whatever is said of it.
        hidden: List hidden files, too, as what a line with `!` brings back is anyway.
        no_ignore: Read no ignore files.
        exclude: Globs, as behind rg's `--glob=!`, of what is left out in any case, as `.git` is.
        max_depth: How many levels below `sub` are listed.
        one_file_system: Enter no folder on another file system than that of `sub`.
        stop: Is asked before each folder and file; ends the listing.

    Raises:
        GlobError: One of `exclude` does not parse.
    """
    walker = _Walker(
        root=root,
        hidden=hidden,
        no_ignore=no_ignore,
        excluded=_excluded(exclude),
        max_depth=max_depth,
        device=os.stat(os.path.join(root, sub)).st_dev if one_file_system else None,
    )
    return walker.walk(sub, stop)


@dataclass(frozen=True, slots=True)
class _Found:
    """A file, or a folder and what ignore files above it say of what is in it."""

    path: str
    depth: int = 0
    ignores: Ignores | None = None


@dataclass(frozen=True, slots=True)
class _Walker:
    root: str
    hidden: bool
    no_ignore: bool
    excluded: Rules
    max_depth: int | None
    device: int | None

    def walk(self, sub: str, stop: Callable[[], bool]) -> Iterator[str]:
        if os.path.isfile(os.path.join(self.root, sub)):
            yield sub
            return
        ignores = Ignores() if self.no_ignore else Ignores.above(self.root, sub)
        # The last is the next: a tree may be deeper than Python's stack.
        waiting = [_Found("" if sub == os.curdir else sub, ignores=ignores)]
        while waiting:
            found = waiting.pop()
            if found.ignores is None:
                yield found.path
            elif stop():
                return
            elif found.depth != self.max_depth:
                waiting.extend(reversed(list(self._listed(found, found.ignores, stop))))

    def _listed(self, folder: _Found, ignores: Ignores, stop: Callable[[], bool]) -> Iterator[_Found]:
        """What is in a folder and is not left out, by name."""
        entries = self._scan(folder.path)
        if not self.no_ignore:
            ignores = ignores.entered(self.root, folder.path, {entry.name for entry in entries})
        for entry in entries:
            if stop():
                return
            path = os.path.join(folder.path, entry.name)
            is_folder = _is_folder(entry)
            if is_folder is not None and not self._left_out(entry, path, ignores, is_folder=is_folder):
                yield _Found(path, folder.depth + 1, ignores if is_folder else None)

    def _scan(self, folder: str) -> list["os.DirEntry[str]"]:
        entries: list[os.DirEntry[str]] = []
        try:
            with os.scandir(os.path.join(self.root, folder)) as scanned:
                entries.extend(scanned)
        except OSError as error:
            _LOGGER.debug("%s", error)
        return sorted(entries, key=lambda entry: os.fsencode(entry.name))

    def _left_out(self, entry: "os.DirEntry[str]", path: str, ignores: Ignores, *, is_folder: bool) -> bool:
        text = matched(path)
        if self.excluded.verdict(text, is_folder=is_folder) is not None:
            return True
        ignored = ignores.verdict(text, is_folder=is_folder)
        if ignored is None:
            ignored = not self.hidden and _is_hidden(entry)
        return ignored or (is_folder and self.device is not None and not self._is_here(path))

    def _is_here(self, folder: str) -> bool:
        """Whether it is on the file system that is listed; a `DirEntry` does not know that on Windows."""
        try:
            return os.lstat(os.path.join(self.root, folder)).st_dev == self.device
        except OSError:
            return False


def _excluded(exclude: Sequence[str]) -> Rules:
    return Rules(rule for glob in (*exclude, ".git") if (rule := _excluding(f"!{glob}")))


def _excluding(line: str) -> Rule | None:
    try:
        return Rule.of(line, unclosed=False)
    except ValueError as error:
        raise GlobError(f"error parsing glob '{line}': {error}") from error


def _is_folder(entry: "os.DirEntry[str]") -> bool | None:
    """Whether it is a folder or a file; `None` if it is neither, as a link is to rg, and to Rust a junction."""
    try:
        if sys.platform == "win32" and entry.stat(follow_symlinks=False).st_reparse_tag & _NAME_SURROGATE:
            return None
        if entry.is_dir(follow_symlinks=False):
            return True
        return False if entry.is_file(follow_symlinks=False) else None
    except OSError as error:
        _LOGGER.debug("%s", error)
        return None


def _is_hidden(entry: "os.DirEntry[str]") -> bool:
    if sys.platform == "win32" and entry.stat(follow_symlinks=False).st_file_attributes & stat.FILE_ATTRIBUTE_HIDDEN:
        return True
    return entry.name.startswith(".")
