"""The files of a place, arranged below their directories, whether rg lists them or plain Python does."""

import fnmatch
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence

from ripwrap._query import Progress
from ripwrap._rg.decoder import PathDecoder
from ripwrap._rg.gather import Intake
from ripwrap._scope import Scope, escaped
from ripwrap._tree import Directory, directory_at, plant_parts
from ripwrap.binary.probe import CANCELLED
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


class Planted(Intake[str]):
    """Takes in paths of files and arranges them below their directories.

    Attributes:
        root: What is below the place that is listed.
        total: How many files have come, but for those in closed directories.
        skipped: How many of common kinds are not shown.
        closed: The directories that are named and not listed, by their paths in the tree.
        is_file: Whether the place is a file, which is all there is then.
        folded: Whether there is something below `max_depth`.
    """

    def __init__(
        self,
        found: Scope,
        max_depth: int,
        exclude: Sequence[str],
        progress: Progress | None,
        *,
        common: Collection[str] = (),
    ) -> None:
        """Take nothing in yet.

        Args:
            found: What is listed.
            max_depth: How many levels; 0 is any number.
            exclude: Names to leave out.
            progress: Called with `total` after every chunk.
            common: Those of the places in which common directories and files are not listed.
        """
        super().__init__(PathDecoder())
        self.root: Directory = {}
        self.total = self.skipped = 0
        self.closed: set[str] = set()
        self.folded = self.is_file = False
        self._scope = found
        self._max_depth = max_depth
        self._exclude = frozenset(exclude)
        self._common = common
        self._progress = progress

    def feed(self, chunk: bytes) -> None:
        """Take in what rg has written."""
        for path in self._decoder.feed(chunk):
            self.add(path)
        if self._progress is not None:
            self._progress(self.total)

    def add(self, path: str) -> None:
        """Take in a path, relative to where rg runs."""
        self._any = True
        if self._scope.allowed is not None and not self._scope.allowed(path):
            return
        start, (*parents, name) = self._parts(path)
        if not self._exclude.isdisjoint((*parents, name)):
            return
        levels = parents[: self._max_depth or None]
        if start in self._common and not self.is_file:
            closed = next((depth for depth, parent in enumerate(levels, 1) if parent in COMMON_DIRECTORIES), 0)
            if closed:
                self.closed.add(os.path.join(*levels[:closed]))
                directory_at(self.root, levels[:closed])
                return
            if any(fnmatch.fnmatchcase(name, glob) for glob in COMMON_FILES):
                self.skipped += 1
                return
        self.total += 1
        if self._max_depth and len(parents) >= self._max_depth:
            self.folded = True
            directory_at(self.root, levels)
        else:
            plant_parts(self.root, parents, name)

    def _parts(self, path: str) -> tuple[str, list[str]]:
        """The place that a path is in, and the names that lead there; with several places that of the place first."""
        place = self._scope.place
        if place.several:
            start = next(one for one in place.paths if path.startswith(one + os.sep))
            return start, [place.shown(start), *path[len(start) + 1 :].split(os.sep)]
        start = place.paths[0]
        if start == os.curdir:
            return start, path.split(os.sep)
        self.is_file = self.is_file or path == start
        return start, [os.path.basename(path)] if self.is_file else path[len(start) + 1 :].split(os.sep)


def walked(found: Scope, new: Callable[[], Planted], options: FileOptions) -> Planted:
    """What there is in a place, by a walk of ours; blocking, and ended when its time is over."""
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
            exclude=list(_from_root(path if alone else "", [globs] if isinstance(globs, str) else globs)),
            max_depth=options.get("max_depth"),
            one_file_system=options.get("one_file_system", False),
            stop=stop,
        ):
            planted.add(os.path.normpath(os.path.join(path, name)) if alone else name)
    return planted


def _from_root(root: str, globs: Sequence[str]) -> Iterator[str]:
    """What rg's globs leave out, as it starts from a root; nothing of those that start from another one."""
    start = f"/{escaped(root)}/" if root else "/"
    for glob in globs:
        if not glob.startswith("!/"):
            yield glob.removeprefix("!")
        elif glob[1:].startswith(start):
            yield f"/{glob[1 + len(start) :]}"
