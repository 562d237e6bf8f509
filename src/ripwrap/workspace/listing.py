"""Tools `find_files`, `ls` and `tree`: listings that fit the budget. `ls` also works without rg."""

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import cast

from ripwrap._operations.tree import EXCLUDE, Children, Directory, Order, arrange, in_order
from ripwrap._ripgrep.command import files_command
from ripwrap._ripgrep.decoder import PathDecoder
from ripwrap._ripgrep.listing_collector import ListingCollector
from ripwrap._ripgrep.runner import Runner, Step
from ripwrap._text import nothing_found, plural, shown
from ripwrap.errors import BinaryError
from ripwrap.models import PathError, TreeEntry
from ripwrap.options import FileOptions
from ripwrap.workspace.arguments import FindFilesArguments, LsArguments, TreeArguments
from ripwrap.workspace.budget import listed, notes_of, shortened
from ripwrap.workspace.results import Engine, FindFilesResult, Layout, ListEntry, ListResult, printable
from ripwrap.workspace.sandbox import Location
from ripwrap.workspace.scope import (
    NO_LIMIT,
    FileFilter,
    Progress,
    Scope,
    Settings,
    exclude_options,
    file_filter,
    open_scope,
    visible_paths,
)
from ripwrap.workspace.tree_collector import COMMON_FILES, TreeCollector, walk_tree

EXPLAIN_SECONDS = 5.0
"""Seconds for finding out why no file was found."""

MAX_NAME_CHARS = 300
"""Maximum number of characters that are shown of the name of a file that would be listed."""

MIN_FILE_CHARS = 2
"""Minimum number of characters that a file takes in an answer."""

MIN_ENTRY_CHARS = 4
"""Minimum number of characters that an entry of a tree takes in an answer."""

IGNORE_FILES = (".gitignore", ".ignore", ".rgignore")
_LOGGER = logging.getLogger("ripwrap")


async def run_find_files(
    run: Runner, settings: Settings, arguments: FindFilesArguments, progress: Progress | None = None
) -> FindFilesResult:
    """Find the files of a location that a glob matches."""
    with open_scope(
        settings, arguments.path, hidden=arguments.include_hidden, ignored=arguments.include_ignored
    ) as scope:
        files = file_filter(scope.location, arguments.pattern)
        allowed, cut = await visible_paths(run, scope, files)
        newest, offset = arguments.sort == "newest", arguments.offset
        end = offset + min(arguments.limit, settings.max_chars // MIN_FILE_CHARS)
        most = NO_LIMIT if newest else end
        command = files_command(scope.location.cwd, scope.location.paths, {**scope.options, **files.options})
        listing = await run.collect(
            Step(
                command,
                lambda: ListingCollector(PathDecoder(), most, allowed=allowed, progress=progress),
                scope.timeout,
            )
        )
        # Not `rg --sortr=modified`: before rg 14 it sorts directories only, and files of one age come in any order.
        items = await run.call(partial(_by_age, scope.location.cwd, listing)) if newest else listing.items()
        paths = [scope.location.shown(one) for one in items[offset:end]]
        exact = not (listing.timed_out or cut)
        nothing = f"{nothing_found('files', None if exact else scope.timeout)}."
        if exact and not listing.total:
            nothing = await _why_none(run, scope, files)

        def answer(count: int) -> FindFilesResult:
            more = listing.total > offset + count
            return FindFilesResult(
                root=shown(scope.location.cwd),
                path=scope.location.name,
                pattern=arguments.pattern,
                files=tuple(paths[:count]),
                total_files=listing.total,
                exact=exact,
                truncated=more or not exact,
                next_offset=offset + count if more and count else None,
                message=listed(listing.total, "file", offset, count, exact=exact) if listing.total else nothing,
                notes=_notes(scope, listing.errors, timed_out=not exact),
            )

        return shortened(answer, len(paths), settings.max_chars)


async def _why_none(run: Runner, scope: Scope, files: FileFilter) -> str:
    """Return the message that there are no files, with the number of hidden and ignored files."""
    if scope.options.get("hidden") and scope.options.get("no_ignore"):
        return "No files found."
    options = {name: value for name, value in scope.options.items() if name != "ignore_file"}
    everything = cast("FileOptions", {**options, **files.options, "hidden": True, "no_ignore": True})
    command = files_command(scope.location.cwd, scope.location.paths, everything)
    listing = await run.collect(
        Step(command, lambda: ListingCollector(PathDecoder(), 1, allowed=scope.allowed), EXPLAIN_SECONDS)
    )
    if not listing.total:
        return "No files found." if listing.errors else "No files found, hidden and ignored ones included."
    much = ("at least " if listing.timed_out else "") + plural(listing.total, "file")
    first = printable(scope.location.shown(listing.items()[0]))[:MAX_NAME_CHARS]
    return (
        f"No files found. There would be {much} with hidden and ignored files included (include_hidden=True, "
        f"include_ignored=True), first {first}."
    )


async def run_ls(
    run: Runner, settings: Settings, arguments: LsArguments, progress: Progress | None = None
) -> ListResult:
    """List a location, with rg or without."""
    with open_scope(
        settings, arguments.path, hidden=arguments.include_hidden, ignored=arguments.include_ignored
    ) as scope:
        common = () if arguments.include_ignored else _without_ignore_file(scope.location)
        new = partial(TreeCollector, scope, arguments.max_depth, (), progress, common=common)
        options: FileOptions = {**scope.options, **exclude_options(scope.location, arguments.ignore)}
        engine: Engine = "rg"
        try:
            command = files_command(scope.location.cwd, scope.location.paths, options)
            tree = await run.collect(Step(command, new, scope.timeout))
        except BinaryError as error:
            _LOGGER.debug("ls works without rg: %s", error)
            engine = "python"
            tree = await run.call(partial(walk_tree, scope, new, options))
        return await run.call(partial(_tree_result, settings, scope, tree, arguments.limit, engine=engine, layout="ls"))


async def run_tree(
    run: Runner, settings: Settings, arguments: TreeArguments, progress: Progress | None = None
) -> ListResult:
    """List a few entries of every directory of a location."""
    with open_scope(
        settings, arguments.path, hidden=arguments.include_hidden, ignored=arguments.include_ignored
    ) as scope:
        command = files_command(scope.location.cwd, scope.location.paths, scope.options)
        common = () if arguments.include_ignored else _without_ignore_file(scope.location)
        new = partial(TreeCollector, scope, 0, EXCLUDE, progress, common=common)
        tree = await run.collect(Step(command, new, scope.timeout))
        return await run.call(partial(_tree_result, settings, scope, tree, arguments.limit, engine="rg", layout="tree"))


def _by_age(cwd: str, listing: ListingCollector[str]) -> list[str]:
    """Return the files, the last changed first, and files of one age by path."""

    def negative_mtime(path: str) -> float:
        try:
            return -os.lstat(os.path.join(cwd, path)).st_mtime
        except OSError:
            return 0.0

    return sorted(listing.items(), key=negative_mtime)


def _tree_result(
    settings: Settings, scope: Scope, tree: TreeCollector, limit: int, *, engine: Engine, layout: Layout
) -> ListResult:
    """Return the tree with as many entries as limit and budget allow, with all first-level directories if they fit."""
    location, exact = scope.location, not tree.timed_out
    ended_after = None if exact else scope.timeout
    floor = sum(child is not None for child in tree.root.values())
    # Arrange only as many entries as the budget may have room for.
    most = min(max(limit, floor), settings.max_chars // MIN_ENTRY_CHARS)
    ordered: dict[int, Children] = {}

    def order(directory: Directory) -> Children:
        return ordered.get(id(directory)) or ordered.setdefault(id(directory), in_order(directory))

    def result(arranged: Iterable[TreeEntry]) -> ListResult:
        entries = tuple(_entry(location, tree, entry) for entry in arranged)
        cut = any(entry.truncated for entry in entries)
        return ListResult(
            root=shown(location.cwd),
            path=location.name,
            layout=layout,
            entries=entries,
            total_files=tree.total,
            exact=exact,
            truncated=cut or not exact,
            next_offset=None,
            message=_message(tree, entries, limit, ended_after, cut=cut),
            notes=notes,
            engine=engine,
        )

    notes = _notes(scope, tree.errors, timed_out=tree.timed_out)
    if engine == "python" and settings.follow:
        notes = (*notes, "Links were not followed, because that needs rg.")
    if floor <= most:
        fitted = shortened(lambda count: result(arrange(tree.root, max(count, floor), order)), most, settings.max_chars)
        if len(str(fitted)) <= settings.max_chars:
            return fitted
    # The lines `[N truncated]` of many directories take the room: leave them out.
    return shortened(lambda count: result(_first_level(tree.root, count, order)), min(floor, most), settings.max_chars)


def _first_level(root: Directory, count: int, order: Order) -> Iterator[TreeEntry]:
    """Yield the first directories without their entries, and the number of entries left out."""
    yield from (entry for entry in arrange(root, count, order) if entry.is_dir and not entry.depth)
    if left := len(root) - count:
        yield TreeEntry(path="", name=f"[{left} truncated]", depth=0, truncated=left)


def _entry(location: Location, tree: TreeCollector, entry: TreeEntry) -> ListEntry:
    start = "" if location.several else os.path.dirname(location.paths[0]) if tree.is_file else location.paths[0]
    return ListEntry(
        path=location.shown(os.path.normpath(os.path.join(start, entry.path))),
        name=shown(entry.name),
        depth=entry.depth,
        is_dir=entry.is_dir,
        closed=entry.is_dir and entry.path in tree.closed,
        truncated=entry.truncated,
    )


def _message(
    tree: TreeCollector, entries: Sequence[ListEntry], limit: int, ended_after: float | None, *, cut: bool
) -> str:
    if not entries and not tree.skipped:
        return f"{nothing_found('files', ended_after)}."
    parts = [f"{'' if ended_after is None else 'at least '}{plural(tree.total, 'file')}"]
    if tree.skipped:
        parts.append(f"{plural(tree.skipped, 'file')} of common kinds ({', '.join(COMMON_FILES)}) not listed")
    if tree.folded:
        parts.append("directories at the last level have further entries")
    text = "; ".join(parts) + "."
    if cut and sum(not entry.truncated for entry in entries) < limit:
        text += " [N truncated] marks N entries left out to save space; find_files lists all files, in pages."
    elif cut:
        text += " [N truncated] marks N entries left out; pass their directory as path, or a larger limit, to see them."
    return text[0].upper() + text[1:]


def _notes(scope: Scope, errors: Iterable[PathError], *, timed_out: bool) -> tuple[str, ...]:
    ended_after = scope.timeout if timed_out else None
    return (*notes_of(errors, ended_after, scope.location), *scope.notes)


def _without_ignore_file(location: Location) -> frozenset[str]:
    """Return the paths that have no ignore file, neither in them nor between them and their root."""
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
    """Yield the path, and the directories above it up to the root, unless it is a root of several (`alone`)."""
    yield path
    while not alone and (path := os.path.dirname(path)):
        yield path
    if not alone:
        yield os.curdir
