"""Tools `ls` and `tree`: list directories, and fit the answer into `max_chars`. `ls` also works without rg."""

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate

from ripwrap._operations.tree import EXCLUDE, Children, Order, TreeDirectory, arrange, in_order
from ripwrap._overlay import active_overlay
from ripwrap._ripgrep.command import files_query
from ripwrap._ripgrep.protocols import Step
from ripwrap._text import as_utf8, nothing_found, plural, shown_path
from ripwrap.errors import BinaryError
from ripwrap.models import TreeEntry
from ripwrap.options import FileOptions
from ripwrap.places.holes import refuse_places
from ripwrap.workspace.budget import shortened
from ripwrap.workspace.listing_tools import Layout, ListEntry, ListResult, LsArguments, TreeArguments
from ripwrap.workspace.notes import denied_note, links_note, scope_notes
from ripwrap.workspace.results import ListingEngine
from ripwrap.workspace.sandbox import RootLocation
from ripwrap.workspace.scope import Scope, Settings, exclude_options, open_scope
from ripwrap.workspace.tool import ToolCall
from ripwrap.workspace.tree_collector import COMMON_FILES, TreeCollector, add_folders, find_denied, walk_tree

MIN_ENTRY_CHARS = 4
"""Minimum number of characters that an entry of a tree takes in an answer."""

ROOTS_SHARE = 4
"""The names of the roots may take `max_chars / ROOTS_SHARE` characters of the answer: a quarter."""

IGNORE_FILES = (".gitignore", ".ignore", ".rgignore")
_LOGGER = logging.getLogger("ripwrap")


async def run_ls(call: ToolCall, arguments: LsArguments) -> ListResult:
    """List everything below a path with rg, or with Python code if rg cannot be used."""
    run, settings = call.run, call.settings
    async with open_scope(
        run, settings, arguments.path, hidden=arguments.include_hidden, ignored=arguments.include_ignored
    ) as scope:
        common = () if arguments.include_ignored else await run.call(partial(_without_ignore_file, scope.location))
        new = partial(TreeCollector, scope, arguments.max_depth, (), call.progress, common=common)
        options: FileOptions = {**scope.options, **exclude_options(scope.location, arguments.ignore)}
        engine: ListingEngine = "rg"
        try:
            query = files_query(scope.location.cwd, scope.location.paths, options)
            tree = await run.collect(Step(query, new, scope.timeout, install=False))
        except BinaryError as error:
            refuse_places("ls without rg")
            _LOGGER.debug("ls lists files without rg, because rg cannot be used: %s", error)
            engine = "python"
            tree = await run.call(partial(walk_tree, scope, new, options))
        listed = await run.call(partial(_with_folders, settings, scope, tree, options))
        return await run.call(
            partial(_tree_result, settings, listed, tree, arguments.limit, engine=engine, layout="ls")
        )


async def run_tree(call: ToolCall, arguments: TreeArguments) -> ListResult:
    """List a few entries of every directory below a path."""
    run, settings = call.run, call.settings
    async with open_scope(
        run, settings, arguments.path, hidden=arguments.include_hidden, ignored=arguments.include_ignored
    ) as scope:
        query = files_query(scope.location.cwd, scope.location.paths, scope.options)
        common = () if arguments.include_ignored else await run.call(partial(_without_ignore_file, scope.location))
        new = partial(TreeCollector, scope, 0, EXCLUDE, call.progress, common=common)
        tree = await run.collect(Step(query, new, scope.timeout))
        listed = await run.call(partial(_with_folders, settings, scope, tree, scope.options))
        return await run.call(
            partial(_tree_result, settings, listed, tree, arguments.limit, engine="rg", layout="tree")
        )


def _with_folders(settings: Settings, scope: Scope, tree: TreeCollector, options: FileOptions) -> Scope:
    """Add directories without files to the tree, and return the scope of `_with_denied()`.

    The scope has a note about the links that are not listed, because no link is followed. Links to denied files, and
    out of the roots, are not named.
    """
    found, late = ([], True) if tree.timed_out else add_folders(tree, scope, options)
    scope = _with_denied(settings, scope, tree, options)
    if settings.follow or active_overlay() is not None:
        return scope
    shown_links = [one for one in found if settings.sandbox.holds(os.path.join(scope.location.cwd, one))]
    return replace(scope, notes=(*scope.notes, *links_note(map(scope.location.shown, shown_links), late=late)))


def _with_denied(settings: Settings, scope: Scope, tree: TreeCollector, options: FileOptions) -> Scope:
    """Show the denied paths as the setting `show_denied` says, and return the scope.

    Add their names to the tree, or add a note with their number to the scope, or do nothing.
    """
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
    settings: Settings, scope: Scope, tree: TreeCollector, limit: int, *, engine: ListingEngine, layout: Layout
) -> ListResult:
    """Return the tree with as many entries as `limit` and `max_chars` allow.

    With `limit=0`, the tree has no entries. Otherwise, `limit` does not apply to first-level directories: all of them
    are entries, as far as they fit into `max_chars`.
    """
    location, exact = scope.location, not tree.timed_out
    ended_after = None if exact else scope.timeout
    floor = sum(child is not None for child in tree.root.values()) if limit else 0
    # Build only as many entries as may fit into the budget.
    most = min(max(limit, floor), settings.max_chars // MIN_ENTRY_CHARS)
    ordered: dict[int, Children] = {}

    def order(directory: TreeDirectory) -> Children:
        return ordered.get(id(directory)) or ordered.setdefault(id(directory), in_order(directory))

    def result(arranged: Iterable[TreeEntry]) -> ListResult:
        entries = tuple(_entry(location, tree, entry) for entry in arranged) if limit else ()
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
    if floor <= most:
        fitted = shortened(lambda count: result(arrange(tree.root, max(count, floor), order)), most, settings.max_chars)
        if len(str(fitted)) <= settings.max_chars:
            return fitted
    # The `[N truncated]` lines of many directories may fill the budget, so leave them out.
    return shortened(lambda count: result(_first_level(tree.root, count, order)), min(floor, most), settings.max_chars)


def _roots_note(settings: Settings, location: RootLocation) -> Iterator[str]:
    """Yield a note that names the roots, if the listing does not say which directory `.` is."""
    roots = settings.sandbox.roots
    if not (location.several or (len(roots) == 1 and location.paths == (os.curdir,) and not _is_current(roots[0]))):
        return
    names = [shown_path(root) for root in roots]
    room = settings.max_chars // ROOTS_SHARE
    count = max(1, sum(length <= room for length in accumulate(len(name) + 2 for name in names)))
    more = f" and {len(names) - count} more" if count < len(names) else ""
    yield f"Allowed {'directory' if len(names) == 1 else 'directories'}: {', '.join(names[:count])}{more}."


def _is_current(folder: str) -> bool:
    try:
        return os.path.samefile(folder, os.curdir)
    except OSError:
        return False  # the current directory has been deleted


def _first_level(root: TreeDirectory, count: int, order: Order) -> Iterator[TreeEntry]:
    """Yield first-level directories, without their content; at the end, an entry counts the entries left out."""
    yield from (entry for entry in arrange(root, count, order) if entry.is_dir and not entry.depth)
    if left := len(root) - count:
        yield TreeEntry(path="", name=f"[{left} truncated]", depth=0, truncated=left)


def _entry(location: RootLocation, tree: TreeCollector, entry: TreeEntry) -> ListEntry:
    start = "" if location.several else os.path.dirname(location.paths[0]) if tree.is_file else location.paths[0]
    return ListEntry(
        path=location.shown(os.path.normpath(os.path.join(start, entry.path))),
        name=as_utf8(entry.name),
        depth=entry.depth,
        is_dir=entry.is_dir,
        closed=entry.is_dir and entry.path in tree.closed,
        denied=entry.path in tree.denied,
        truncated=entry.truncated,
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
