"""List files and directories without rg: the same files that `rg --files` lists without `--follow`."""

import errno
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from ripwrap._ignore.rules import TOO_MANY_RULES, IgnoreRule, IgnoreStack, Rules, match_text, rules_in
from ripwrap._ripgrep.exit_status import path_error
from ripwrap._system.concurrency import CANCELLED
from ripwrap._system.windows import NAME_SURROGATE_TAG
from ripwrap.errors import GlobError
from ripwrap.models import PathError
from ripwrap.options import EXCLUDED, FileOptions
from ripwrap.sources.git import RevisionTree
from ripwrap.workspace.deny import escaped
from ripwrap.workspace.revision import ItemFilter
from ripwrap.workspace.scope import Scope


class ScopeWalk:
    """Walk through the files that a tool call may list, without rg."""

    def __init__(self, scope: Scope, options: FileOptions) -> None:
        self.errors: list[PathError] = []
        self.denied: list[str] = []
        self.timed_out: bool = False
        self._location = scope.location
        self._denied = scope.denied
        self._options = options
        self._timeout = scope.timeout

    def paths(self, *, folders: bool = False, links: bool = False) -> Iterator[str]:
        """Yield the paths of files, relative to the directory that rg runs in.

        Each step blocks. With `folders`, directories are yielded too; the path of a directory ends in a separator. With
        `links`, symbolic links are yielded in place of files.
        """
        options, cancelled = self._options, CANCELLED.get()
        deadline = None if self._timeout is None else time.monotonic() + self._timeout

        def stop() -> bool:
            self.timed_out = deadline is not None and time.monotonic() > deadline
            return self.timed_out or cancelled.is_set()

        if self._location.revision is not None:
            yield from self._in_revision(self._location.revision, folders=folders and not links)
            return
        for path in self._location.paths:
            # Several roots are walked one by one, so that ignore files above a root are not read.
            alone = self._location.several
            root, sub = (os.path.join(self._location.cwd, path), os.curdir) if alone else (self._location.cwd, path)
            start, globs = path if alone else "", options.get("glob") or ()
            exclude = _relative_excludes(start, [globs] if isinstance(globs, str) else globs)
            walker = Walker(
                root=root,
                hidden=bool(options.get("hidden")),
                no_ignore=bool(options.get("no_ignore")),
                excluded=parse_globs((*exclude, *EXCLUDED)),
                max_depth=options.get("max_depth"),
                device=os.stat(os.path.join(root, sub)).st_dev if options.get("one_file_system") else None,
                folders=folders,
                links=links,
                stop=stop,
                report=partial(self._report, start),
                is_denied=partial(self._is_denied, start),
            )
            for name in walker.walk(sub):
                yield os.path.join(start, name)

    def _in_revision(self, revision: RevisionTree, *, folders: bool) -> Iterator[str]:
        """Yield the paths of files of a revision, and of the directories that have them."""
        globs = self._options.get("glob") or ()
        exclude = _relative_excludes("", [globs] if isinstance(globs, str) else globs)
        allows, passes = (
            ItemFilter(self._location, None, hidden=bool(self._options.get("hidden"))),
            GlobFilter((), [*exclude]),
        )
        known: dict[str, bool] = {}
        try:
            for start in self._location.paths:
                first = 0 if start == os.curdir else start.count(os.sep) + 1
                for name in filter(allows.allows, revision.names((start,), self._timeout, self.errors)):
                    parts = name.split(os.sep)
                    above = (os.sep.join(parts[:depth]) + os.sep for depth in range(first + 1, len(parts)))
                    for entry in (*above, name):
                        if entry not in known:
                            known[entry] = name == start or (passes(entry) and not self._is_denied("", entry))
                            if known[entry] and (folders or entry == name):
                                yield entry
                        if not known[entry]:
                            break
        except TimeoutError:
            CANCELLED.get().check()
            self.timed_out = True

    def _is_denied(self, start: str, name: str) -> bool:
        """Return True for a denied path, and add the path to `denied`."""
        path = os.path.join(start, name)
        if self._denied is None or self._denied.glob_of(path) is None:
            return False
        self.denied.append(path)
        return True

    def _report(self, start: str, name: str, error: OSError) -> None:
        self.errors.append(path_error(os.path.normpath(os.path.join(start, name)), error))


class GlobFilter:
    """Filter of the paths of a walk, by globs."""

    def __init__(self, globs: Sequence[str], excluded: Sequence[str] = ()) -> None:
        """Parse the globs.

        A path passes if it matches a glob in `globs` (or `globs` is empty), and no glob in `excluded`.
        """
        self._rules = parse_globs(globs, "") if globs else None
        self._excluded = parse_globs(excluded)

    def __call__(self, path: str) -> bool:
        """Return True if a path passes the globs; the path of a directory must end in a separator."""
        text, is_folder = match_text(path.rstrip(os.sep)), path.endswith(os.sep)
        if self._excluded.is_ignored(text, is_folder=is_folder) is not None:
            return False
        return self._rules is None or self._rules.is_ignored(text, is_folder=is_folder) is not None


def _relative_excludes(root: str, globs: Sequence[str]) -> Iterator[str]:
    """Yield the globs with which rg excludes files, without `!` and relative to a root; drop those of other roots."""
    start = f"/{escaped(root)}/" if root else "/"
    for glob in globs:
        if not glob.startswith("!/"):
            yield glob.removeprefix("!")
        elif glob[1:].startswith(start):
            yield f"/{glob[1 + len(start) :]}"


@dataclass(frozen=True, slots=True)
class _Entry:
    """File or directory; a directory has the ignore files that apply to its content."""

    path: str
    depth: int = 0
    ignores: IgnoreStack | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Walker:
    """Walk through the files below a directory, depth first, with each directory sorted by name.

    Only ignore files in the root or below it are read. An ignore file that is a link out of the root is not read. If a
    directory cannot be read, it is reported and skipped.
    """

    root: str
    hidden: bool
    no_ignore: bool
    excluded: Rules
    max_depth: int | None
    device: int | None
    folders: bool
    links: bool
    stop: Callable[[], bool]
    report: Callable[[str, OSError], object]
    is_denied: Callable[[str], bool]

    def walk(self, sub: str) -> Iterator[str]:
        """Yield the paths of files, relative to the root."""
        if os.path.isfile(os.path.join(self.root, sub)):
            yield from () if self.links else (sub,)
            return
        ignores = IgnoreStack() if self.no_ignore else IgnoreStack.above(self.root, sub)
        # This uses a stack instead of recursion, because a tree may be deeper than Python's recursion limit.
        waiting = [_Entry("" if sub == os.curdir else sub, ignores=ignores)]
        while waiting:
            entry = waiting.pop()
            if entry.ignores is None:
                yield entry.path
                continue
            if self.stop():
                return
            content = [] if entry.depth == self.max_depth else list(self._list(entry, entry.ignores))
            if self.folders and entry.depth and (content or not self._ignores_itself(entry.path)):
                yield entry.path + os.sep
            waiting.extend(reversed(content))

    def _list(self, folder: _Entry, ignores: IgnoreStack) -> Iterator[_Entry]:
        """In a directory, yield the entries that no rule excludes, sorted by name."""
        entries: list[os.DirEntry[str]] = []
        try:
            with os.scandir(os.path.join(self.root, folder.path)) as scanned:
                entries.extend(scanned)
        except OSError as error:
            self.report(folder.path or os.curdir, error)
        if not self.no_ignore:
            ignores = ignores.entered(self.root, folder.path, {entry.name for entry in entries})
            for path in ignores.cut:
                self.report(os.path.relpath(path, self.root), OSError(errno.EFBIG, TOO_MANY_RULES))
        for entry in sorted(entries, key=lambda entry: os.fsencode(entry.name)):
            if self.stop():
                return
            path = os.path.join(folder.path, entry.name)
            try:
                is_folder = _is_folder(entry)
            except OSError as error:
                self.report(path, error)
                continue
            if self.links and not is_folder:  # a file is left out, before its name is compared with rules
                is_folder = False if entry.is_symlink() else None
            if is_folder is not None and not self._is_left_out(entry, path, ignores, is_folder=is_folder):
                yield _Entry(path, folder.depth + 1, ignores if is_folder else None)

    def _ignores_itself(self, folder: str) -> bool:
        """Return True if a `.gitignore` in a directory excludes everything there, as in `.ripwrap` and in caches."""
        own = () if self.no_ignore else rules_in(self.root, folder, ".gitignore").rules
        return [rule.text for rule in own] == ["*"]

    def _is_left_out(self, entry: "os.DirEntry[str]", path: str, ignores: IgnoreStack, *, is_folder: bool) -> bool:
        text = match_text(path)
        if self.excluded.is_ignored(text, is_folder=is_folder) is not None:
            return True
        ignored = ignores.is_ignored(text, is_folder=is_folder)
        if ignored is None:
            ignored = not self.hidden and _is_hidden(entry)
        if ignored or (is_folder and self.device is not None and not self._is_on_device(path)):
            return True
        return self.is_denied(path + os.sep * is_folder)

    def _is_on_device(self, folder: str) -> bool:
        # `entry.stat()` would not return the device on Windows.
        try:
            return os.lstat(os.path.join(self.root, folder)).st_dev == self.device
        except OSError as error:
            self.report(folder, error)
            return False


def parse_globs(globs: Sequence[str], mark: str = "!") -> Rules:
    """Parse globs as rules. An error message quotes the wrong glob with `mark` before it, as in `--glob=!GLOB`."""
    rules: list[IgnoreRule] = []
    for glob in globs:
        try:
            rule = IgnoreRule.parse(f"!{glob}", allow_unclosed=False)  # with `!`, as a leading `#` begins a comment
        except ValueError as error:
            raise GlobError(f"error parsing glob '{mark}{glob}': {error}") from error
        rules += [rule] if rule else []
    return Rules(rules)


def _is_folder(entry: "os.DirEntry[str]") -> bool | None:
    """Return True for a directory, False for a file, `None` for other entries: links, junctions on Windows, FIFOs."""
    if sys.platform == "win32" and entry.stat(follow_symlinks=False).st_reparse_tag & NAME_SURROGATE_TAG:
        return None
    if entry.is_dir(follow_symlinks=False):
        return True
    return False if entry.is_file(follow_symlinks=False) else None


def _is_hidden(entry: "os.DirEntry[str]") -> bool:
    if sys.platform == "win32" and entry.stat(follow_symlinks=False).st_file_attributes & stat.FILE_ATTRIBUTE_HIDDEN:
        return True
    return entry.name.startswith(".")
