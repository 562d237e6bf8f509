"""Tools `ls` and `tree`: list directories, and fit the answer into `max_chars`. `ls` also works without rg."""

import fnmatch
import logging
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate
from typing import Any, Literal, TypeAlias, Unpack, cast

from ripwrap._operations.tree import (
    EXCLUDE,
    Children,
    Order,
    TreeDirectory,
    arrange,
    directory_at,
    in_order,
    insert_parts,
)
from ripwrap._ripgrep.command import files_query
from ripwrap._ripgrep.decoder import PathDecoder
from ripwrap._ripgrep.page_collector import BaseListingCollector
from ripwrap._ripgrep.protocols import Step
from ripwrap._system.overlay import active_overlay
from ripwrap._text import as_utf8, nothing_found, plural, shown_path
from ripwrap.errors import BinaryError
from ripwrap.models import Model, TreeEntry
from ripwrap.options import FileOptions, values_of
from ripwrap.places.where import refuse_places
from ripwrap.sources.base import SEPARATOR
from ripwrap.workspace.arguments import (
    Number,
    PathList,
    Rev,
    StringList,
    ToolArguments,
    VisibilityOptions,
    parse_arguments,
)
from ripwrap.workspace.dispatch import ToolMethods
from ripwrap.workspace.notes import denied_note, links_note, scope_notes, shortened
from ripwrap.workspace.raw_files import info_of_entry
from ripwrap.workspace.results import ListingEngine, ToolResult
from ripwrap.workspace.sandbox import RootLocation
from ripwrap.workspace.scope import ReportProgress, Scope, Settings, exclude_options, locate_file, scope_of
from ripwrap.workspace.tool import ToolCall, ToolSpec

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
        """Start with an empty tree; in `common` paths, the rules for `COMMON_DIRECTORIES` and `COMMON_FILES` apply."""
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
        """Add the name of a denied path, unless it is too deep, in a closed directory, or excluded."""
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
        """Return the searched path of `path`, and the names below it; with several roots, first that of the root."""
        location = self._scope.location
        if location.paths[1:]:
            start = next(one for one in location.paths if path == one or path.startswith(one + os.sep))
            return start, [location.shown(start), *path[len(start) + 1 :].split(os.sep)] if path != start else [path]
        start = location.paths[0]
        if start == os.curdir:
            return start, path.split(os.sep)
        self.is_file = self.is_file or path == start
        return start, [os.path.basename(path)] if self.is_file else path[len(start) + 1 :].split(os.sep)


def walk_tree(scope: Scope, new: Callable[[], TreeCollector], options: FileOptions) -> TreeCollector:
    """List the files below a path without rg, and return their tree; block until the scope's time limit at most."""
    from ripwrap.workspace.walk import ScopeWalk  # late: it imports pathspec

    tree, walk = new(), ScopeWalk(scope, options)
    for path in walk.paths(folders=scope.location.revision is not None):  # in git, each directory has a file
        tree.add(path)
    tree.errors, tree.timed_out = tuple(walk.errors), walk.timed_out
    return tree


def add_folders(tree: TreeCollector, scope: Scope, options: FileOptions) -> tuple[list[str], bool]:
    """Add directories without files, for `MAX_FOLDER_SECONDS` at most; return links that are left out, and if late."""
    from ripwrap.workspace.walk import ScopeWalk

    globs = [*values_of(options, "glob")]
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
    """Return what is denied below a path, without what is below that, and True if the time limit was reached."""
    from ripwrap.workspace.walk import ScopeWalk

    walk = ScopeWalk(scope, options)
    for _ in walk.paths():
        pass
    return walk.denied, walk.timed_out


Layout: TypeAlias = Literal["ls", "tree"]


class TreeOptions(VisibilityOptions, total=False):
    """Options of `tree()` besides `path`."""

    limit: int
    max_depth: int
    rev: str


class LsOptions(TreeOptions, total=False):
    """Options of `ls()` besides `path`."""

    details: bool
    ignore: list[str]


class LsArguments(ToolArguments, frozen=True):
    """Arguments of `ls()`."""

    path: PathList = "."
    ignore: StringList = []  # noqa: RUF012 - Pydantic copies it
    limit: Number = 1000
    max_depth: Number = 0
    details: bool = False
    include_hidden: bool = False
    include_ignored: bool = False
    rev: Rev = ""


class TreeArguments(ToolArguments, frozen=True):
    """Arguments of `tree()`."""

    path: PathList = "."
    limit: Number = 50
    max_depth: Number = 0
    include_hidden: bool = False
    include_ignored: bool = False
    rev: Rev = ""


class ListEntry(Model, frozen=True):
    """One line of a listing.

    Attributes:
        path: Path of the file or directory; for a `[N truncated]` line, path of its directory.
        name: Last part of the path; for one of several roots, its whole path.
        depth: Number of directories between the entry and the directory that was listed.
        is_dir: True for a directory.
        closed: True for a directory that is named but not listed, such as `node_modules`.
        denied: True for a file or directory that the tools may name but not open.
        truncated: For a `[N truncated]` line, number of entries of `path` that are left out; else 0.
        details: Permissions, size in bytes and time of the last change, if `details` is set; else empty.
    """

    path: str
    name: str
    depth: int
    is_dir: bool = False
    closed: bool = False
    denied: bool = False
    truncated: int = 0
    details: str = ""

    def structured(self) -> str | dict[str, Any]:
        """Return the path, with a slash for a directory; an object if there is more to say."""
        if self.closed or self.denied or self.truncated or self.details:
            return self.model_dump(mode="json", exclude_defaults=True, exclude={"name", "depth"})
        return f"{self.path}/" if self.is_dir else self.path


class ListResult(ToolResult, frozen=True):
    """Result of `ls()` and `tree()`.

    Attributes:
        layout: Format of `str()`. `ls` starts with the listed directory and puts a dash before each entry; `tree` does
            neither.
        entries: Files and directories, in the order of the lines.
        total_files: Number of all files, without files of common kinds (such as `*.pyc`) that are not shown, and
            without the files in closed directories (named but not listed).
        exact: True if the listing ran to its end, so that `total_files` is final.
    """

    layout: Layout
    entries: tuple[ListEntry, ...]
    total_files: int
    exact: bool

    _entries = ("entries",)

    def _values(self) -> dict[str, Any]:
        return super()._values() | {"entries": [entry.structured() for entry in self.entries]}

    @classmethod
    def structured_schema(cls) -> dict[str, Any]:
        """Return the JSON schema of the structured answer, and of `model_dump(mode="json")`."""
        schema = super().structured_schema()
        entries = schema["properties"]["entries"]
        entries["items"] = {"anyOf": [{"type": "string"}, entries["items"]]}
        entries["description"] = "An entry is a path, with a slash at the end of a directory, or an object."
        entry = schema["$defs"]["ListEntry"]
        for name in ("name", "depth"):  # both follow from `path`
            del entry["properties"][name]
            entry["required"].remove(name)
        return schema

    def _body(self) -> Iterator[str]:
        if not self.entries:
            return
        dash, indent = ("- ", "  ") if self.layout == "ls" else ("", "    ")
        if [entry.path for entry in self.entries] == [self.path]:  # a file
            yield f"{dash}{shown_path(self.path)}{_details(self.entries[0])}"
            return
        if self.layout == "ls":
            yield f"- {shown_path(self.path.rstrip(os.sep))}/"
        for entry in self.entries:
            depth = entry.depth + (self.layout == "ls")
            yield f"{indent * depth}{dash}{_name(entry)}{_details(entry)}"


def _name(entry: ListEntry) -> str:
    if entry.truncated:
        return f"[{entry.truncated} truncated]"
    name = shown_path(entry.name)
    if entry.denied:
        return f"{name}{'/' * entry.is_dir} [denied]"
    return f"{name}/ [not listed]" if entry.closed else f"{name}/" if entry.is_dir else name


def _details(entry: ListEntry) -> str:
    return f"  [{entry.details}]" if entry.details else ""


MIN_ENTRY_CHARS = 4
"""Minimum number of characters that an entry of a tree takes in an answer."""

ROOTS_SHARE = 4
"""The names of the roots may take `max_chars / ROOTS_SHARE` characters of the answer: a quarter."""

IGNORE_FILES = (".gitignore", ".ignore", ".rgignore")
_LOGGER = logging.getLogger("ripwrap")


async def run_ls(call: ToolCall, arguments: LsArguments) -> ListResult:
    """List everything below a path with rg, or with Python code if rg cannot be used."""
    run, settings = call.run, call.settings
    if SEPARATOR in arguments.path and "\0" not in arguments.path:  # perhaps a member of an archive
        with suppress(IsADirectoryError):
            location = await run.call(lambda: locate_file(settings, arguments.path, arguments.rev))
            if location.revision is not None and not arguments.rev:
                return await run.call(lambda: _member(settings, location, details=arguments.details))
    return await _list(call, arguments, arguments.ignore, layout="ls", details=arguments.details)


def _member(settings: Settings, location: RootLocation, *, details: bool) -> ListResult:
    """Return the listing of a member of an archive."""
    about = _details_of(settings, location, location.paths[0]) if details else ""
    name = location.name
    return ListResult(
        root=as_utf8(location.cwd),
        path=name,
        layout="ls",
        entries=(ListEntry(path=name, name=name, depth=0, details=about),),
        total_files=1,
        exact=True,
        truncated=False,
        message="1 file.",
        engine="python",
    )


def _details_of(settings: Settings, location: RootLocation, path: str) -> str:
    """Return permissions, size and time of a path on the disk; the size of a single file in a revision or archive."""
    with suppress(OSError):
        if location.revision is None:
            return info_of_entry(location, path).details
        if location.is_file:
            with location.revision.open(path, settings.timeout) as file:
                return plural(sum(map(len, iter(lambda: file.read(1 << 20), b""))), "byte")
    return ""


async def run_tree(call: ToolCall, arguments: TreeArguments) -> ListResult:
    """List a few entries of every directory below a path."""
    return await _list(call, arguments, (), layout="tree")


async def _list(
    call: ToolCall,
    arguments: LsArguments | TreeArguments,
    ignore: Sequence[str],
    *,
    layout: Layout,
    details: bool = False,
) -> ListResult:
    """List a revision with git and Python code, and anything else with rg; for `ls`, also without rg."""
    run, settings = call.run, call.settings
    engine: ListingEngine = "rg"
    async with scope_of(run, settings, arguments) as scope:
        common = () if arguments.include_ignored else await run.call(lambda: _without_ignore_file(scope.location))
        options: FileOptions = {**scope.options, **exclude_options(scope.location, ignore)}

        def new() -> TreeCollector:
            exclude = () if layout == "ls" else EXCLUDE
            return TreeCollector(scope, arguments.max_depth, exclude, call.progress, common=common)

        try:
            if scope.location.revision is not None:
                engine, tree = "python", await run.call(lambda: walk_tree(scope, new, options))
            else:
                query = files_query(scope.location.cwd, scope.location.paths, options)
                tree = await run.collect(Step(query, new, scope.timeout, install=layout == "tree"))
        except BinaryError as error:
            if layout == "tree":
                raise
            refuse_places("ls without rg")
            _LOGGER.debug("ls lists files without rg, because rg cannot be used: %s", error)
            engine, tree = "python", await run.call(lambda: walk_tree(scope, new, options))
        listed = await run.call(lambda: _with_folders(settings, scope, tree, options))
        limit = arguments.limit
        return await run.call(
            lambda: _tree_result(settings, listed, tree, limit, engine=engine, layout=layout, details=details)
        )


def _with_folders(settings: Settings, scope: Scope, tree: TreeCollector, options: FileOptions) -> Scope:
    """Add directories without files to the tree, and return the scope of `_with_denied()`."""
    if scope.location.revision is not None:
        return _with_denied(settings, scope, tree, options)
    found, late = ([], True) if tree.timed_out else add_folders(tree, scope, options)
    scope = _with_denied(settings, scope, tree, options)
    if settings.follow or active_overlay() is not None:
        return scope
    shown_links = [one for one in found if settings.sandbox.holds(os.path.join(scope.location.cwd, one))]
    return replace(scope, notes=(*scope.notes, *links_note(map(scope.location.shown, shown_links), late=late)))


def _with_denied(settings: Settings, scope: Scope, tree: TreeCollector, options: FileOptions) -> Scope:
    """Name the denied paths in the tree, or count them in a note of the scope, as `show_denied` says."""
    if scope.denied is None or settings.show_denied == "hide":
        return scope
    denied, late = find_denied(scope, options)
    tree.timed_out = tree.timed_out or late
    if settings.show_denied == "count":
        return replace(scope, notes=(*scope.notes, *denied_note(len(denied))))
    for path in denied:
        tree.add_denied(path)
    return scope


def _tree_result(
    settings: Settings,
    scope: Scope,
    tree: TreeCollector,
    limit: int,
    *,
    engine: ListingEngine,
    layout: Layout,
    details: bool = False,
) -> ListResult:
    """Return the tree with as many entries as `limit` and `max_chars` allow."""
    location, exact = scope.location, not tree.timed_out
    ended_after = None if exact else scope.timeout
    floor = sum(child is not None for child in tree.root.values()) if limit else 0
    # Build only as many entries as may fit into the budget.
    most = min(max(limit, floor), settings.max_chars // MIN_ENTRY_CHARS)
    ordered: dict[int, Children] = {}

    def order(directory: TreeDirectory) -> Children:
        return ordered.get(id(directory)) or ordered.setdefault(id(directory), in_order(directory))

    def result(arranged: Iterable[TreeEntry]) -> ListResult:
        entries = tuple(_entry(settings, location, tree, entry, details=details) for entry in arranged) if limit else ()
        cut = any(entry.truncated for entry in entries) or (not limit and bool(tree.root))
        return ListResult(
            root=as_utf8(location.cwd),
            path=location.name,
            layout=layout,
            entries=entries,
            total_files=tree.total,
            exact=exact,
            truncated=cut or not exact,
            message=_message(tree, entries, limit, ended_after, cut=cut),
            notes=notes,
            engine=engine,
        )

    notes = scope_notes(scope, tree.errors, timed_out=tree.timed_out, engine=engine)
    if layout == "ls":
        notes = (*notes, *_roots_note(settings, location))
    if details and not tree.is_file and not location.paths[1:]:
        about = _details_of(settings, location, location.paths[0])
        notes = (*notes, f"{shown_path(location.name)} itself: {about}.") if about else notes
    if floor <= most:
        fitted = shortened(lambda count: result(arrange(tree.root, max(count, floor), order)), most, settings.max_chars)
        if len(str(fitted)) <= settings.max_chars:
            return fitted
    # The `[N truncated]` lines of many directories may fill the budget, so leave them out.
    return shortened(lambda count: result(_first_level(tree.root, count, order)), min(floor, most), settings.max_chars)


def _roots_note(settings: Settings, location: RootLocation) -> Iterator[str]:
    """Yield a note that names the roots, if the listing does not say which directory `.` is."""
    roots, is_current = settings.sandbox.roots, False
    with suppress(OSError):  # the current directory has been deleted
        is_current = os.path.samefile(roots[0], os.curdir)
    if not (location.several or (len(roots) == 1 and location.paths == (os.curdir,) and not is_current)):
        return
    names = [shown_path(root) for root in roots]
    room = settings.max_chars // ROOTS_SHARE
    count = max(1, sum(length <= room for length in accumulate(len(name) + 2 for name in names)))
    more = f" and {len(names) - count} more" if count < len(names) else ""
    yield f"Allowed {'directory' if len(names) == 1 else 'directories'}: {', '.join(names[:count])}{more}."


def _first_level(root: TreeDirectory, count: int, order: Order) -> Iterator[TreeEntry]:
    """Yield first-level directories, without their content; at the end, an entry counts the entries left out."""
    yield from (entry for entry in arrange(root, count, order) if entry.is_dir and not entry.depth)
    if left := len(root) - count:
        yield TreeEntry(path="", name=f"[{left} truncated]", depth=0, truncated=left)


def _entry(
    settings: Settings, location: RootLocation, tree: TreeCollector, entry: TreeEntry, *, details: bool
) -> ListEntry:
    start = "" if location.paths[1:] else os.path.dirname(location.paths[0]) if tree.is_file else location.paths[0]
    path = os.path.normpath(os.path.join(start, entry.path))
    is_plain = details and not entry.truncated and entry.path not in tree.denied
    return ListEntry(
        path=location.shown(path),
        name=as_utf8(entry.name),
        depth=entry.depth,
        is_dir=entry.is_dir,
        closed=entry.is_dir and entry.path in tree.closed,
        denied=entry.path in tree.denied,
        truncated=entry.truncated,
        details=_details_of(settings, location, path) if is_plain else "",
    )


def _message(
    tree: TreeCollector, entries: Sequence[ListEntry], limit: int, ended_after: float | None, *, cut: bool
) -> str:
    if not tree.root and not tree.skipped:
        return f"{nothing_found('files', ended_after)}."
    if tree.total or tree.skipped or tree.closed:
        parts = [f"{'' if ended_after is None else 'at least '}{plural(tree.total, 'file')}"]
    else:
        parts = [f"{nothing_found('files', ended_after).lower()} in these directories"]
    if not limit:
        parts.append("limit=0 shows none of them")
    if tree.skipped:
        parts.append(f"{plural(tree.skipped, 'file')} of common kinds ({', '.join(COMMON_FILES)}) not listed")
    if tree.folded:
        parts.append("directories at the last level have further entries")
    text = "; ".join(parts) + "."
    if cut and limit and sum(not entry.truncated for entry in entries) < limit:
        text += " [N truncated] marks N entries left out to save space; find_files lists all files, in pages."
    elif cut and limit:
        text += " [N truncated] marks N entries left out; pass their directory as path, or a larger limit, to see them."
    return text[0].upper() + text[1:]


def _without_ignore_file(location: RootLocation) -> frozenset[str]:
    """Return the searched paths that have no ignore file in them or in a directory above them, up to the root."""
    if location.revision is not None:  # what is committed is not left out
        return frozenset()
    return frozenset(
        path
        for path in location.paths
        if not any(
            os.path.lexists(os.path.join(location.cwd, folder, name))
            for folder in _folders(path, alone=location.several)
            for name in IGNORE_FILES
        )
    )


def _folders(path: str, *, alone: bool) -> Iterator[str]:
    """Yield the path; if `alone` is False, then also yield the directories above it, up to the root."""
    yield path
    while not alone and (path := os.path.dirname(path)):
        yield path
    if not alone:
        yield os.curdir


LS = ToolSpec(
    "ls",
    LsArguments,
    ListResult,
    run_ls,
    title="List a directory",
    aliases=(
        *("list_files", "read_folder", "list", "list_dir", "list_directory", "list_directory_with_sizes"),
        *("get_file_info", "list_allowed_directories"),
    ),
)
TREE = ToolSpec(
    "tree",
    TreeArguments,
    ListResult,
    run_tree,
    title="Show the tree of directories",
    aliases=("directory_tree",),
)


class ListingMethods(ToolMethods, offers=(LS, TREE)):
    """Methods of `ls` and `tree`."""

    async def ls(
        self,
        path: str = ".",
        *,
        ignore: list[str] = [],  # noqa: B006 - never changed, and the only default for a list that a schema takes
        limit: int = 1000,
        max_depth: int = 0,
        details: bool = False,
        include_hidden: bool = False,
        include_ignored: bool = False,
        rev: str = "",
    ) -> str:
        """List a directory and everything below it, as an indented list.

        Directories end in a slash and come before files. `[N truncated]` marks N entries that are left out; first-level
        directories are left out last. Hidden files and files that .gitignore excludes are left out. Without a
        .gitignore, directories such as node_modules are named, but not listed.

        Args:
            path (str): The directory to list; `.` is everything.
            ignore (list[str]): Globs of files and directories to leave out, e.g. `["*.lock", "docs/generated/**"]`.
            limit (int): Maximum number of files and directories to list; default 1000.
            max_depth (int): Number of levels to list; 0, the default, is no limit.
            details (bool): Show permissions, size in bytes and time of change of each, as ls -l.
            include_hidden (bool): List hidden files, too.
            include_ignored (bool): List files that .gitignore and the like exclude, too.
            rev (str): List a commit of git instead of the files on disk, e.g. `v1.2` or `main~3`.
        """
        return self.text(
            await self.ls_result(
                path,
                ignore=ignore,
                limit=limit,
                max_depth=max_depth,
                details=details,
                include_hidden=include_hidden,
                include_ignored=include_ignored,
                rev=rev,
            )
        )

    async def ls_result(self, path: str = ".", **options: Unpack[LsOptions]) -> ListResult:
        """Return the answer of `ls()` as a `ListResult`; raise the errors of `grep_content_result()`.

        If there is no rg, or it does not run, Python code lists the same files, and `engine` is `python`.
        """
        arguments = parse_arguments(LsArguments, {"path": path, **options})
        return await run_ls(self._tools.begin(), arguments)

    async def tree(
        self,
        path: str = ".",
        *,
        limit: int = 50,
        max_depth: int = 0,
        include_hidden: bool = False,
        include_ignored: bool = False,
        rev: str = "",
    ) -> str:
        """Show an overview of a directory: an indented tree with a few entries of every directory.

        Entries are taken level by level, and from all directories in rotation. `[N truncated]` marks N entries that are
        left out of a directory. Hidden files and files that .gitignore excludes are left out.

        Args:
            path (str): The directory to show; `.` is everything.
            limit (int): Maximum number of files and directories to show; default 50.
            max_depth (int): Number of levels to show; 0, the default, is no limit.
            include_hidden (bool): Show hidden files, too.
            include_ignored (bool): Show files that .gitignore and the like exclude, too.
            rev (str): Show a commit of git instead of the files on disk, e.g. `v1.2` or `main~3`.
        """
        return self.text(
            await self.tree_result(
                path,
                limit=limit,
                max_depth=max_depth,
                include_hidden=include_hidden,
                include_ignored=include_ignored,
                rev=rev,
            )
        )

    async def tree_result(self, path: str = ".", **options: Unpack[TreeOptions]) -> ListResult:
        """Return the answer of `tree()` as a `ListResult`; raise the errors of `grep_content_result()`."""
        arguments = parse_arguments(TreeArguments, {"path": path, **options})
        return await run_tree(self._tools.begin(), arguments)
