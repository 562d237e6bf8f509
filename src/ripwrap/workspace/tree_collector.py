"""List files with rg or with Python code, and arrange their paths as a tree of directories."""

import fnmatch
import os
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import cast

from ripwrap._operations.tree import TreeDirectory, directory_at, insert_parts
from ripwrap._ripgrep.decoder import PathDecoder
from ripwrap._ripgrep.page_collector import BaseListingCollector
from ripwrap.options import FileOptions
from ripwrap.workspace.scope import ReportProgress, Scope

COMMON_DIRECTORIES = frozenset(
    {
        *("node_modules", "bower_components", "vendor", "dist", "build", "target", "bin", "obj", "out", "coverage"),
        *("__pycache__", "venv", ".venv", ".git", ".hg", ".svn", ".idea", ".vscode", ".tox", ".nox", ".cache"),
    }
)
"""Names of directories that `ls` and `tree` show without their content.

Their content is listed with `include_ignored`, or if the searched directory or a directory above it has an ignore file.
"""

MAX_FOLDER_SECONDS = 1.0
"""Time limit in seconds for finding the directories without files, and the links that a tree leaves out."""

COMMON_FILES = ("*.pyc", "*.pyo", "*.pyd", "*.so", "*.dll", "*.exe", ".DS_Store")
"""Globs of files that `ls` and `tree` count but do not name.

They name these files in the cases in which they list the content of `COMMON_DIRECTORIES`.
"""


_is_common = re.compile("|".join(map(fnmatch.translate, COMMON_FILES))).match


class TreeCollector(BaseListingCollector[str]):
    """Collector that arranges the paths of files as a tree of directories."""

    def __init__(
        self,
        scope: Scope,
        max_depth: int,
        exclude: Sequence[str],
        progress: ReportProgress | None,
        *,
        common: Collection[str] = (),
    ) -> None:
        """Start with an empty tree.

        Args:
            scope: Location to list.
            max_depth: Maximum number of levels; 0 is no limit.
            exclude: Names of files and directories to leave out.
            progress: Function that is called with `total` after every chunk of rg's output.
            common: Searched paths in which the rules for `COMMON_DIRECTORIES` and `COMMON_FILES` apply.
        """
        super().__init__(PathDecoder())
        self.root: TreeDirectory = {}
        self.total: int = 0
        self.skipped: int = 0
        self.closed: set[str] = set()
        self.denied: set[str] = set()
        self.folded: bool = False
        self.is_file: bool = False
        self._scope = scope
        self._max_depth = max_depth
        self._exclude = frozenset(exclude)
        self._common = common
        self._progress = progress

    @property
    def is_empty(self) -> bool:
        """True if the listing is complete, and has neither entries nor skipped files."""
        return not (self.root or self.skipped or self.timed_out)

    def feed(self, chunk: bytes) -> None:
        """Add the paths in a chunk of rg's output."""
        for path in self._decoder.feed(chunk):
            self.add(path)
        if self._progress is not None:
            self._progress(self.total)

    def add(self, path: str) -> None:
        """Add a path, relative to the directory that rg runs in. The path of a directory ends in a separator."""
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
            if _is_common(name):
                self.skipped += 1
                return
        if not name:
            self.folded = self.folded or 0 < self._max_depth < len(parents)
            directory_at(self.root, levels)
            return
        self.total += 1
        if self._max_depth and len(parents) >= self._max_depth:
            self.folded = True
            directory_at(self.root, levels)
        else:
            insert_parts(self.root, parents, name)

    def add_denied(self, path: str) -> None:
        """Add the name of a denied path; ignore a path that is too deep, in a closed directory, or excluded.

        The path of a directory ends in a separator.
        """
        _, parts = self._parts(path.rstrip(os.sep))
        below_closed = any(os.path.join(*parts[:depth]) in self.closed for depth in range(1, len(parts)))
        too_deep = self._max_depth and len(parts) > self._max_depth
        if below_closed or too_deep or not self._exclude.isdisjoint(parts):
            return
        self.denied.add(os.path.join(*parts))
        if path.endswith(os.sep):
            directory_at(self.root, parts)
        else:
            insert_parts(self.root, parts[:-1], parts[-1])

    @property
    def all_common(self) -> bool:
        """True if no searched path has an ignore file."""
        return set(self._scope.location.paths) <= set(self._common)

    def would_list(self, path: str) -> bool:
        """Return True if the tree lists a path that is neither excluded, nor too deep, nor in a closed directory."""
        start, parts = self._parts(path)
        closed = start in self._common and not COMMON_DIRECTORIES.isdisjoint(parts[:-1])
        return not closed and self._exclude.isdisjoint(parts) and not 0 < self._max_depth < len(parts)

    def _parts(self, path: str) -> tuple[str, list[str]]:
        """Return the searched path that contains `path`, and the names of the directories and the file below it.

        With several roots, the first of these names is the name of the root.
        """
        location = self._scope.location
        if location.several:
            start = next(root for root in location.paths if path.startswith(root + os.sep))
            return start, [location.shown(start), *path[len(start) + 1 :].split(os.sep)]
        start = location.paths[0]
        if start == os.curdir:
            return start, path.split(os.sep)
        self.is_file = self.is_file or path == start
        return start, [os.path.basename(path)] if self.is_file else path[len(start) + 1 :].split(os.sep)


def walk_tree(scope: Scope, new: Callable[[], TreeCollector], options: FileOptions) -> TreeCollector:
    """List the files below a path without rg, and return their tree; block until the scope's time limit at most."""
    from ripwrap.workspace.walk import ScopeWalk  # late: it imports pathspec

    tree, walk = new(), ScopeWalk(scope, options)
    for path in walk.paths():
        tree.add(path)
    tree.errors, tree.timed_out = tuple(walk.errors), walk.timed_out
    return tree


def add_folders(tree: TreeCollector, scope: Scope, options: FileOptions) -> tuple[list[str], bool]:
    """Add the directories without files to a tree, because rg lists only files; block for `MAX_FOLDER_SECONDS` at most.

    Return the links that the tree leaves out, and True if the time limit was reached. Ignored and hidden links, and
    links in closed directories, are not returned.
    """
    from ripwrap.workspace.walk import ScopeWalk

    given = options.get("glob", ())
    globs = [given] if isinstance(given, str) else [*given]
    globs += [f"{glob[:-3]}/" for glob in globs if glob.startswith("!") and glob.endswith("/**")]  # the directory, too
    if tree.all_common:  # the content of these directories is not listed, and they may be large
        globs += [f"!{name}/" for name in sorted(COMMON_DIRECTORIES)]
    options = cast("FileOptions", {**options, "glob": globs})
    seconds = MAX_FOLDER_SECONDS if scope.timeout is None else min(MAX_FOLDER_SECONDS, scope.timeout)
    links: list[str] = []
    is_empty, walk = tree.is_empty, ScopeWalk(replace(scope, timeout=seconds), options)
    for path in walk.paths(folders=True, links=True):
        if path.endswith(os.sep):
            tree.add(path)
        elif tree.would_list(path):
            links.append(path)
    tree.timed_out = tree.timed_out or (is_empty and walk.timed_out)
    return links, walk.timed_out


def find_denied(scope: Scope, options: FileOptions) -> tuple[list[str], bool]:
    """Return the denied files and directories below a path, and True if the time limit was reached; blocking.

    Paths below a denied directory are not included.
    """
    from ripwrap.workspace.walk import ScopeWalk

    walk = ScopeWalk(scope, options)
    for _ in walk.paths():
        pass
    return walk.denied, walk.timed_out
