"""What the tools `find_files`, `ls` and `tree` do: a listing in a budget; `ls` does without rg where there is none."""

# pyright: reportTypedDictNotRequiredAccess=false
# A tool's arguments are all there (`_arguments.understood`); only a caller may leave some out.

import fnmatch
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from ripwrap._arguments import FindFilesOptions, LsOptions, TreeOptions
from ripwrap._content import EVERYTHING, Progress, allowed_of
from ripwrap._message import plural
from ripwrap._report import listed, notes_of, shortened
from ripwrap._rg.argv import files_command
from ripwrap._rg.collect import Plan, Step, Work
from ripwrap._rg.decoder import PathDecoder
from ripwrap._rg.exit import Exit
from ripwrap._rg.gather import Gathered
from ripwrap._sandbox import Place
from ripwrap._scope import Scope, Settings, left_out, scope, wanted
from ripwrap._text import shown
from ripwrap._tree import EXCLUDE, Directory, arrange, plant_parts
from ripwrap.answers import Engine, FindFilesResult, Layout, ListEntry, ListResult
from ripwrap.binary.probe import CANCELLED
from ripwrap.errors import BinaryError
from ripwrap.models import TreeEntry
from ripwrap.options import FileOptions

COMMON_DIRECTORIES = frozenset(
    {
        *("node_modules", "bower_components", "vendor", "dist", "build", "target", "bin", "obj", "out", "coverage"),
        *("__pycache__", "venv", ".venv", ".git", ".hg", ".svn", ".idea", ".vscode", ".tox", ".nox", ".cache"),
    }
)
"""Directories that `ls` names and does not list where no ignore file says what to leave out (seed 004)."""

COMMON_FILES = ("*.pyc", "*.pyo", "*.pyd", "*.so", "*.dll", "*.exe", ".DS_Store")
"""Files that it only counts there."""

_IGNORE_FILES = (".gitignore", ".ignore", ".rgignore")
_LOGGER = logging.getLogger("ripwrap")


def find_plan(
    settings: Settings, pattern: str, path: str, arguments: FindFilesOptions, progress: Progress | None
) -> Plan[FindFilesResult]:
    """The files of a place that a glob matches; all arguments are given."""
    with scope(settings, path, hidden=arguments["include_hidden"], ignored=arguments["include_ignored"]) as found:
        files = wanted(found.place, pattern)
        allowed, cut = yield from allowed_of(found, files)
        newest, offset = arguments["sort"] == "newest", arguments["offset"]
        upto = offset + arguments["limit"]
        most = EVERYTHING if newest else upto
        command = files_command(found.place.cwd, found.place.paths, {**found.options, **files.options})
        listing: Gathered[str] = yield Step(
            command, lambda: Gathered(PathDecoder(), most, allowed=allowed, progress=progress), found.timeout
        )
        items = listing.items()
        if newest:  # not by rg: before 14 it sorted directories, and what is of the same age comes in any order
            items = yield Work(partial(sorted, items, key=partial(_youth, found.place.cwd)))
        paths = [found.place.shown(one) for one in items[offset:upto]]
        exact = not (listing.timed_out or cut)

        def answer(count: int) -> FindFilesResult:
            more = listing.total > offset + count
            return FindFilesResult(
                root=shown(found.place.cwd),
                path=found.place.name,
                pattern=pattern,
                files=tuple(paths[:count]),
                total_files=listing.total,
                exact=exact,
                truncated=more or not exact,
                next_offset=offset + count if more and count else None,
                message=listed(listing.total, "file", offset, count, exact=exact)
                if listing.total
                else "No files found.",
                notes=_notes(found, listing.end, timed_out=not exact),
            )

        return shortened(answer, len(paths), settings.max_chars)


def ls_plan(settings: Settings, path: str, arguments: LsOptions, progress: Progress | None) -> Plan[ListResult]:
    """What there is in a place, by rg or without it; all arguments are given."""
    with scope(settings, path, hidden=arguments["include_hidden"], ignored=arguments["include_ignored"]) as found:
        common = not arguments["include_ignored"] and not _says_itself(found.place)
        new = partial(Planted, found, arguments["max_depth"], (), progress, common=common)
        options: FileOptions = {**found.options, **left_out(found.place, arguments["ignore"])}
        engine: Engine = "rg"
        try:
            planted: Planted = yield Step(
                files_command(found.place.cwd, found.place.paths, options), new, found.timeout
            )
        except BinaryError as error:
            _LOGGER.debug("ls does without rg: %s", error)
            engine = "python"
            planted = yield Work(partial(_walked, found, new, options))
        return _tree_of(settings, found, planted, arguments["limit"], engine=engine, layout="ls")


def tree_plan(settings: Settings, path: str, arguments: TreeOptions, progress: Progress | None) -> Plan[ListResult]:
    """A little of every directory of a place; all arguments are given."""
    with scope(settings, path, hidden=arguments["include_hidden"], ignored=arguments["include_ignored"]) as found:
        command = files_command(found.place.cwd, found.place.paths, found.options)
        planted: Planted = yield Step(command, partial(Planted, found, 0, EXCLUDE, progress), found.timeout)
        return _tree_of(settings, found, planted, arguments["limit"], engine="rg", layout="tree")


def _youth(cwd: str, path: str) -> float:
    try:
        return -os.lstat(os.path.join(cwd, path)).st_mtime
    except OSError:
        return 0.0


class Planted:
    """Takes in paths of files and arranges them below their directories.

    Attributes:
        root: What is below the place that is listed.
        total: How many files have come, but for those in closed directories.
        skipped: How many of common kinds are not shown.
        closed: The directories that are named and not listed, by their paths in the tree.
        is_file: Whether the place is a file, which is all there is then.
        folded: Whether there is something below `max_depth`.
        end: How rg ended; `None` without rg.
        timed_out: Whether that was because its time was over.
        ended: Nothing tells the last path.
    """

    def __init__(
        self,
        found: Scope,
        max_depth: int,
        exclude: Sequence[str],
        progress: Progress | None,
        *,
        common: bool = False,
    ) -> None:
        self.root: Directory = {}
        self.total = self.skipped = 0
        self.closed: set[str] = set()
        self.folded = self.is_file = False
        self.end: Exit | None = None
        self.timed_out = self.ended = False
        self._scope = found
        self._max_depth = max_depth
        self._exclude = frozenset(exclude)
        self._common = common
        self._progress = progress
        self._decoder = PathDecoder()
        self._any = False

    def feed(self, chunk: bytes) -> None:
        """Take in what rg has written."""
        for path in self._decoder.feed(chunk):
            self.add(path)
        if self._progress is not None:
            self._progress(self.total)

    def finish(self, end: Exit, *, timed_out: bool) -> None:
        """Take note of the end; raises unless rg gave an answer, or was not given the time for one."""
        self.end, self.timed_out = end, timed_out and not end.partial
        if not self.timed_out:
            end.check_listing(listed=self._any)
            self._decoder.close()

    def add(self, path: str) -> None:
        """Take in a path, relative to where rg runs."""
        self._any = True
        if self._scope.allowed is not None and not self._scope.allowed(path):
            return
        *parents, name = self._parts(path)
        if not self._exclude.isdisjoint((*parents, name)):
            return
        if self._common:
            for depth, parent in enumerate(parents):
                if parent in COMMON_DIRECTORIES:
                    self.closed.add(os.path.join(*parents[: depth + 1]))
                    self._directory(parents[: depth + 1])
                    return
            if any(fnmatch.fnmatchcase(name, glob) for glob in COMMON_FILES):
                self.skipped += 1
                return
        self.total += 1
        if self._max_depth and len(parents) >= self._max_depth:
            self.folded = True
            self._directory(parents[: self._max_depth])
            return
        plant_parts(self.root, parents, name)

    def _directory(self, names: Sequence[str]) -> None:
        directory = self.root
        for name in names:
            below = directory.get(name)
            if below is None:
                below = directory[name] = {}
            directory = below

    def _parts(self, path: str) -> list[str]:
        """The names that lead to a path from what is listed; with several places the first is that of the place."""
        place = self._scope.place
        if not place.several:
            start = place.paths[0]
            if start == os.curdir:
                return path.split(os.sep)
            self.is_file = self.is_file or path == start
            return [os.path.basename(path)] if self.is_file else path[len(start) + 1 :].split(os.sep)
        start = next(one for one in place.paths if path.startswith(one + os.sep))
        return [place.shown(start), *path[len(start) + 1 :].split(os.sep)]


def _walked(found: Scope, new: Callable[[], Planted], options: FileOptions) -> Planted:
    from ripwrap._walk import walk  # pathspec, only now

    planted = new()
    cancelled = CANCELLED.get()
    deadline = time.monotonic() + found.timeout if found.timeout is not None else None

    def stop() -> bool:
        planted.timed_out = deadline is not None and time.monotonic() > deadline
        return planted.timed_out or cancelled.is_set()

    for path in found.place.paths:
        # Of several places each is a root: what is above them is not to be read.
        alone = found.place.several
        root, sub = (os.path.join(found.place.cwd, path), os.curdir) if alone else (found.place.cwd, path)
        globs = options.get("glob", ())
        for name in walk(
            root,
            sub,
            hidden=options.get("hidden", False),
            no_ignore=options.get("no_ignore", False),
            exclude=[glob.removeprefix("!") for glob in ([globs] if isinstance(globs, str) else globs)],
            max_depth=options.get("max_depth"),
            one_file_system=options.get("one_file_system", False),
            stop=stop,
        ):
            planted.add(os.path.normpath(os.path.join(path, name)) if alone else name)
    return planted


def _tree_of(
    settings: Settings, found: Scope, planted: Planted, limit: int, *, engine: Engine, layout: Layout
) -> ListResult:
    """The tree with so many entries as the limit and the budget allow; first-level directories are always there."""
    place, exact = found.place, not planted.timed_out
    floor = sum(child is not None for child in planted.root.values())
    most = max(limit, floor)

    def answer(count: int, depth: int = sys.maxsize) -> ListResult:
        arranged = arrange(planted.root, max(count, floor))
        entries = tuple(_entry(place, planted, entry) for entry in arranged if entry.depth < depth)
        cut = any(entry.truncated for entry in entries)
        return ListResult(
            root=shown(place.cwd),
            path=place.name,
            layout=layout,
            entries=entries,
            total_files=planted.total,
            exact=exact,
            truncated=cut or not exact,
            next_offset=None,
            message=_message(planted, entries, exact=exact, cut=cut),
            notes=_notes(found, planted.end, timed_out=planted.timed_out),
            engine=engine,
        )

    told = shortened(answer, most, settings.max_chars)
    # Rather without what says that each of many directories has more in it.
    return told if len(str(told)) <= settings.max_chars else answer(0, depth=1)


def _entry(place: Place, planted: Planted, entry: TreeEntry) -> ListEntry:
    start = "" if place.several else os.path.dirname(place.paths[0]) if planted.is_file else place.paths[0]
    return ListEntry(
        path=place.shown(os.path.normpath(os.path.join(start, entry.path))),
        name=shown(entry.name),
        depth=entry.depth,
        is_dir=entry.is_dir,
        closed=entry.is_dir and entry.path in planted.closed,
        truncated=entry.truncated,
    )


def _message(planted: Planted, entries: Sequence[ListEntry], *, exact: bool, cut: bool) -> str:
    if not entries and not planted.skipped:
        return "No files found."
    said = [f"{'' if exact else 'at least '}{plural(planted.total, 'file')}"]
    if planted.skipped:
        said.append(f"{plural(planted.skipped, 'file')} of common kinds ({', '.join(COMMON_FILES)}) not listed")
    if planted.folded:
        said.append("directories at the last level shown have more in them")
    text = "; ".join(said) + "."
    if cut:
        text += " [N truncated] stands for entries left out; name their directory as path, or raise limit, for them."
    return text[0].upper() + text[1:]


def _notes(found: Scope, end: Exit | None, *, timed_out: bool) -> tuple[str, ...]:
    ended_after = found.timeout if timed_out else None
    return (*notes_of(end, ended_after, found.place), *found.notes)


def _says_itself(place: Place) -> bool:
    """Whether an ignore file on the way from the root to the place says what to leave out."""
    return any(
        os.path.lexists(os.path.join(place.cwd, folder, name))
        for path in place.paths
        for folder in _folders(path)
        for name in _IGNORE_FILES
    )


def _folders(path: str) -> Iterator[str]:
    yield os.curdir
    yield path
    while path := os.path.dirname(path):
        yield path
