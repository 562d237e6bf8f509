"""What the tools `find_files`, `ls` and `tree` do: a listing in a budget; `ls` does without rg where there is none."""

# pyright: reportTypedDictNotRequiredAccess=false
# A tool's arguments are all there (`_arguments.understood`); only a caller may leave some out.

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import cast

from ripwrap._arguments import FindFilesOptions, LsOptions, TreeOptions
from ripwrap._message import plural
from ripwrap._planted import COMMON_FILES, Planted, walked
from ripwrap._query import EVERYTHING, Progress, allowed_of
from ripwrap._report import listed, notes_of, shortened
from ripwrap._rg.argv import files_command
from ripwrap._rg.collect import Plan, Step, Work
from ripwrap._rg.decoder import PathDecoder
from ripwrap._rg.exit import Exit
from ripwrap._rg.gather import Gathered
from ripwrap._sandbox import Place
from ripwrap._scope import Scope, Settings, Wanted, left_out, scope, wanted
from ripwrap._text import shown
from ripwrap._tree import EXCLUDE, Children, Directory, Order, arrange, in_order
from ripwrap.answers import Engine, FindFilesResult, Layout, ListEntry, ListResult, printable
from ripwrap.errors import BinaryError
from ripwrap.models import TreeEntry
from ripwrap.options import FileOptions

_EXPLAIN = 5.0  # Seconds for finding out why there is nothing.
_NAME = 300  # How much is told of a name then, in characters.
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
        upto = offset + min(arguments["limit"], settings.max_chars // 2)
        most = EVERYTHING if newest else upto
        command = files_command(found.place.cwd, found.place.paths, {**found.options, **files.options})
        listing: Gathered[str] = yield Step(
            command, lambda: Gathered(PathDecoder(), most, allowed=allowed, progress=progress), found.timeout
        )
        # Not by rg: before 14 it sorted directories, and what is of the same age comes in any order.
        items: list[str] = (yield Work(partial(_by_age, found.place.cwd, listing))) if newest else listing.items()
        paths = [found.place.shown(one) for one in items[offset:upto]]
        exact = not (listing.timed_out or cut)
        nothing = "No files found." if listing.total or not exact else (yield from _why_none(found, files))

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
                message=listed(listing.total, "file", offset, count, exact=exact) if listing.total else nothing,
                notes=_notes(found, listing.end, timed_out=not exact),
            )

        return shortened(answer, len(paths), settings.max_chars)


def _why_none(found: Scope, files: Wanted) -> Plan[str]:
    """That there is nothing, and what there would be if all files counted."""
    if found.options.get("hidden") and found.options.get("no_ignore"):
        return "No files found."
    options = {name: value for name, value in found.options.items() if name != "ignore_file"}
    everything = cast("FileOptions", {**options, **files.options, "hidden": True, "no_ignore": True})
    command = files_command(found.place.cwd, found.place.paths, everything)
    listing: Gathered[str] = yield Step(command, lambda: Gathered(PathDecoder(), 1, allowed=found.allowed), _EXPLAIN)
    if not listing.total:
        return "No files found, hidden and ignored ones included."
    much = ("at least " if listing.timed_out else "") + plural(listing.total, "file")
    first = printable(found.place.shown(listing.items()[0]))[:_NAME]
    return (
        f"No files found. There would be {much} with hidden and ignored files included (include_hidden=True, "
        f"include_ignored=True), first {first}."
    )


def ls_plan(settings: Settings, path: str, arguments: LsOptions, progress: Progress | None) -> Plan[ListResult]:
    """What there is in a place, by rg or without it; all arguments are given."""
    with scope(settings, path, hidden=arguments["include_hidden"], ignored=arguments["include_ignored"]) as found:
        common = () if arguments["include_ignored"] else _silent(found.place)
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
            planted = yield Work(partial(walked, found, new, options))
        told: ListResult = yield Work(
            partial(_tree_of, settings, found, planted, arguments["limit"], engine=engine, layout="ls")
        )
        return told


def tree_plan(settings: Settings, path: str, arguments: TreeOptions, progress: Progress | None) -> Plan[ListResult]:
    """A little of every directory of a place; all arguments are given."""
    with scope(settings, path, hidden=arguments["include_hidden"], ignored=arguments["include_ignored"]) as found:
        command = files_command(found.place.cwd, found.place.paths, found.options)
        common = () if arguments["include_ignored"] else _silent(found.place)
        new = partial(Planted, found, 0, EXCLUDE, progress, common=common)
        planted: Planted = yield Step(command, new, found.timeout)
        told: ListResult = yield Work(
            partial(_tree_of, settings, found, planted, arguments["limit"], engine="rg", layout="tree")
        )
        return told


def _by_age(cwd: str, listing: Gathered[str]) -> list[str]:
    """What was changed last comes first, and of the same age by path."""

    def youth(path: str) -> float:
        try:
            return -os.lstat(os.path.join(cwd, path)).st_mtime
        except OSError:
            return 0.0

    return sorted(listing.items(), key=youth)


def _tree_of(
    settings: Settings, found: Scope, planted: Planted, limit: int, *, engine: Engine, layout: Layout
) -> ListResult:
    """The tree with so many entries as the limit and the budget allow; first-level directories are always there."""
    place, exact = found.place, not planted.timed_out
    floor = sum(child is not None for child in planted.root.values())
    # More would only be thrown away: an entry takes four characters and more.
    most = min(max(limit, floor), settings.max_chars // 4)
    known: dict[int, Children] = {}

    def order(directory: Directory) -> Children:
        return known.get(id(directory)) or known.setdefault(id(directory), in_order(directory))

    def made(arranged: Iterable[TreeEntry]) -> ListResult:
        entries = tuple(_entry(place, planted, entry) for entry in arranged)
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
            message=_message(planted, entries, limit, exact=exact, cut=cut),
            notes=notes,
            engine=engine,
        )

    notes = _notes(found, planted.end, timed_out=planted.timed_out)
    if engine == "python" and settings.follow:
        notes = (*notes, "Links were not followed, which needs rg.")
    if floor <= most:
        told = shortened(lambda count: made(arrange(planted.root, max(count, floor), order)), most, settings.max_chars)
        if len(str(told)) <= settings.max_chars:
            return told
    # Rather without what says that each of many directories has more in it.
    return shortened(lambda count: made(_first_level(planted.root, count, order)), min(floor, most), settings.max_chars)


def _first_level(root: Directory, count: int, order: Order) -> Iterator[TreeEntry]:
    """The first directories, and how much else there is, but not what is in them."""
    yield from (entry for entry in arrange(root, count, order) if entry.is_dir and not entry.depth)
    if left := len(root) - count:
        yield TreeEntry(path="", name=f"[{left} truncated]", depth=0, truncated=left)


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


def _message(planted: Planted, entries: Sequence[ListEntry], limit: int, *, exact: bool, cut: bool) -> str:
    if not entries and not planted.skipped:
        return "No files found."
    said = [f"{'' if exact else 'at least '}{plural(planted.total, 'file')}"]
    if planted.skipped:
        said.append(f"{plural(planted.skipped, 'file')} of common kinds ({', '.join(COMMON_FILES)}) not listed")
    if planted.folded:
        said.append("directories at the last level shown have more in them")
    text = "; ".join(said) + "."
    if cut and sum(not entry.truncated for entry in entries) < limit:
        text += " [N truncated] stands for entries left out to be brief; find_files lists all files, in pages."
    elif cut:
        text += " [N truncated] stands for entries left out; name their directory as path, or raise limit, for them."
    return text[0].upper() + text[1:]


def _notes(found: Scope, end: Exit | None, *, timed_out: bool) -> tuple[str, ...]:
    ended_after = found.timeout if timed_out else None
    return (*notes_of(end, ended_after, found.place), *found.notes)


def _silent(place: Place) -> frozenset[str]:
    """The places with no ignore file, on the way there from their root, that says what to leave out."""
    return frozenset(
        path
        for path in place.paths
        if not any(
            os.path.lexists(os.path.join(place.cwd, folder, name))
            for folder in _folders(path, alone=place.several)
            for name in _IGNORE_FILES
        )
    )


def _folders(path: str, *, alone: bool) -> Iterator[str]:
    yield path
    while not alone and (path := os.path.dirname(path)):
        yield path
    if not alone:
        yield os.curdir
