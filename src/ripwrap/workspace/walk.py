"""List files without rg, for `ls` only: the files that `rg --files` lists without following links."""

import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ripwrap.errors import GlobError
from ripwrap.options import EXCLUDED
from ripwrap.workspace.ignore_files import IgnoreStack, Rule, Rules, match_text

NAME_SURROGATE_TAG = 0x20000000
"""Bit of a Windows reparse tag that marks a file that stands for another one (`IsReparseTagNameSurrogate`)."""


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
    report: Callable[[str, OSError], object],
) -> Iterator[str]:
    """Yield the paths of files below a folder, relative to the root, depth first, in each folder by name.

    Only ignore files in the root or below it are read, but not those that are links out of it. A folder that cannot be
    read is reported and left out.

    Args:
        root: Real path of a folder.
        sub: Real path relative to `root`; `.` is the root. A file is listed even if it is ignored.
        hidden: List hidden files, too; a rule with `!` brings them back anyway.
        no_ignore: Read no ignore files.
        exclude: Globs of files and folders to leave out, as after rg's `--glob=!`; `EXCLUDED` always is.
        max_depth: Number of levels below `sub` to list; `None` is no limit.
        one_file_system: Do not enter folders on another file system than that of `sub`.
        stop: Function that is called before each folder and file; the listing ends when it returns True.
        report: Function that is called with each path that cannot be read, relative to the root, and the error.

    Raises:
        GlobError: One of `exclude` does not parse.
    """
    walker = _Walker(
        root=root,
        hidden=hidden,
        no_ignore=no_ignore,
        excluded=Rules(rule for glob in (*exclude, *EXCLUDED) if (rule := _parse_exclude(f"!{glob}"))),
        max_depth=max_depth,
        device=os.stat(os.path.join(root, sub)).st_dev if one_file_system else None,
        report=report,
    )
    return walker.walk(sub, stop)


@dataclass(frozen=True, slots=True)
class _Entry:
    """File, or folder with the ignore files above its content."""

    path: str
    depth: int = 0
    ignores: IgnoreStack | None = None


@dataclass(frozen=True, slots=True)
class _Walker:
    root: str
    hidden: bool
    no_ignore: bool
    excluded: Rules
    max_depth: int | None
    device: int | None
    report: Callable[[str, OSError], object]

    def walk(self, sub: str, stop: Callable[[], bool]) -> Iterator[str]:
        if os.path.isfile(os.path.join(self.root, sub)):
            yield sub
            return
        ignores = IgnoreStack() if self.no_ignore else IgnoreStack.above(self.root, sub)
        # A stack and not recursion: a tree may be deeper than Python's stack.
        waiting = [_Entry("" if sub == os.curdir else sub, ignores=ignores)]
        while waiting:
            entry = waiting.pop()
            if entry.ignores is None:
                yield entry.path
            elif stop():
                return
            elif entry.depth != self.max_depth:
                waiting.extend(reversed(list(self._list(entry, entry.ignores, stop))))

    def _list(self, folder: _Entry, ignores: IgnoreStack, stop: Callable[[], bool]) -> Iterator[_Entry]:
        """Yield the entries of a folder that are not left out, by name."""
        entries: list[os.DirEntry[str]] = []
        try:
            with os.scandir(os.path.join(self.root, folder.path)) as scanned:
                entries.extend(scanned)
        except OSError as error:
            self.report(folder.path or os.curdir, error)
        if not self.no_ignore:
            ignores = ignores.entered(self.root, folder.path, {entry.name for entry in entries})
        for entry in sorted(entries, key=lambda entry: os.fsencode(entry.name)):
            if stop():
                return
            path = os.path.join(folder.path, entry.name)
            try:
                is_folder = _is_folder(entry)
            except OSError as error:
                self.report(path, error)
                continue
            if is_folder is not None and not self._is_left_out(entry, path, ignores, is_folder=is_folder):
                yield _Entry(path, folder.depth + 1, ignores if is_folder else None)

    def _is_left_out(self, entry: "os.DirEntry[str]", path: str, ignores: IgnoreStack, *, is_folder: bool) -> bool:
        text = match_text(path)
        if self.excluded.is_ignored(text, is_folder=is_folder) is not None:
            return True
        ignored = ignores.is_ignored(text, is_folder=is_folder)
        if ignored is None:
            ignored = not self.hidden and _is_hidden(entry)
        return ignored or (is_folder and self.device is not None and not self._is_on_device(path))

    def _is_on_device(self, folder: str) -> bool:
        # Not `entry.stat()`, which does not know the device on Windows.
        try:
            return os.lstat(os.path.join(self.root, folder)).st_dev == self.device
        except OSError as error:
            self.report(folder, error)
            return False


def _parse_exclude(line: str) -> Rule | None:
    try:
        return Rule.parse(line, allow_unclosed=False)
    except ValueError as error:
        raise GlobError(f"error parsing glob '{line}': {error}") from error


def _is_folder(entry: "os.DirEntry[str]") -> bool | None:
    """Return True for a folder, False for a file, `None` for others: links, junctions on Windows, FIFOs."""
    if sys.platform == "win32" and entry.stat(follow_symlinks=False).st_reparse_tag & NAME_SURROGATE_TAG:
        return None
    if entry.is_dir(follow_symlinks=False):
        return True
    return False if entry.is_file(follow_symlinks=False) else None


def _is_hidden(entry: "os.DirEntry[str]") -> bool:
    if sys.platform == "win32" and entry.stat(follow_symlinks=False).st_file_attributes & stat.FILE_ATTRIBUTE_HIDDEN:
        return True
    return entry.name.startswith(".")
