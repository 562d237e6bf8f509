"""Place that consists of files on the disk, and of what is inside of archives, notebooks and documents among them.

First, rg searches the files. Then the members of archives and the texts of notebooks and documents are searched as
items.
"""

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from ripwrap._concurrency import countdown
from ripwrap._overlay import refuse_overlay
from ripwrap._places.items import ARGUMENTS, Batches, ItemSelection, item_command, item_selection
from ripwrap._ripgrep.change import Change, mode_of
from ripwrap._ripgrep.command import Command, Mode, files_command, search_command, several_paths
from ripwrap._ripgrep.decoder import PathDecoder
from ripwrap._ripgrep.listing_collector import ListingCollector
from ripwrap._ripgrep.place import Part, Plan
from ripwrap._ripgrep.runner import Runner, Step
from ripwrap._ripgrep.spool import MAX_RUNNING, OverdueError
from ripwrap.binary.cache import folder, why_untrusted
from ripwrap.models import PathError
from ripwrap.options import FileOptions, SearchOptions, StrPath
from ripwrap.sources.archives import ArchiveSource, check_inside, format_of, is_document
from ripwrap.sources.base import Source
from ripwrap.sources.reading import DocumentReader
from ripwrap.sources.texts import TextCache

_OF_MEMBERS = ("glob", "iglob", "glob_case_insensitive", "type", "type_not", "type_add", "type_clear", "max_filesize")
"""Options that choose the members of archives, and documents; they do not choose the archives themselves."""

_OF_FILES = ("sort", "sortr", "threads", "ignore_file", "max_depth")
"""Options that choose or sort files on the disk; the search inside of files leaves them out."""

_NO_LIMIT = 2**62


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """Restrictions of a caller, such as a workspace, for a search inside of files.

    Attributes:
        denied: Values of `iglob` that exclude archives and directories, too: rg does not enter these directories.
        opens: Function that returns True for a file that may be opened; `None` allows all.
        allows: Function that returns True for the name of an item that may be searched; `None` allows all.
        wrap: Function that takes the source of the items and returns another source to search instead.
    """

    denied: Sequence[str] = ()
    opens: Callable[[str], bool] | None = None
    allows: Callable[[str], bool] | None = None
    wrap: Callable[[Source], Source] = lambda source: source


@dataclass(frozen=True, slots=True)
class InsidePlace:
    """Place that consists of files, and of the items inside of these files.

    Attributes:
        listing: Command that lists the files that may be archives or documents.
        items: Command that searches the items inside of these files.
        selection: Options that choose items.
        formats: Formats to search inside of, such as `zip`, as `check_inside()` returns them.
        follow: True if symbolic links are followed.
        named: Normalized paths that the caller passed.
        limits: Restrictions of the caller.
    """

    listing: Command
    items: Command
    selection: ItemSelection
    formats: tuple[str, ...]
    follow: bool
    named: frozenset[str]
    limits: ArchiveLimits

    async def plan(self, command: Command, run: Runner, seconds: float | None) -> Plan:
        """Return the run that searches the files, followed by runs for the items inside of them."""
        # rg also searches the bytes of documents. These results are dropped, because the texts are searched as items.
        documents = any(is_document(f"x.{name}", self.formats) or name == "ipynb-outputs" for name in self.formats)
        change = Change(mode_of(command), lambda path: is_document(path, self.formats)) if documents else None
        inside = _Inside(self, replace(self.items, cwd=command.cwd), run, seconds)
        errors, close = inside.errors, inside.close
        return Plan((Part(command, change),), more=inside.more, ahead=MAX_RUNNING, errors=errors, close=close)

    def source(self, cwd: str, listed: Iterable[str], until: float | None) -> ArchiveSource:
        """Return the source of the items inside of the listed files, in path order.

        Args:
            cwd: Directory of the files.
            listed: Paths of the files that `listing` found.
            until: Time, as `time.monotonic()` gives it, after which no more documents are read; `None` is no limit.
        """
        paths = sorted((path for path in listed if format_of(path, self.formats)), key=lambda path: path.split(os.sep))
        reader = DocumentReader(document_cache(), until=until)
        return ArchiveSource(cwd, paths, self.formats, follow=self.follow, named=self.named, reader=reader)


class _Inside:
    """Runs for the items inside of files; the files are listed when the first of these runs is asked for."""

    def __init__(self, place: InsidePlace, command: Command, run: Runner, seconds: float | None) -> None:
        self._place, self._command, self._run = place, command, run
        self._seconds = seconds
        self._left = countdown(seconds)
        self._batches: Batches | None = None

    async def more(self) -> Sequence[Part] | None:
        if self._batches is None:
            self._batches = await self._begin()
        return await self._batches.more()

    def errors(self) -> Sequence[PathError]:
        return () if self._batches is None else self._batches.errors()

    def close(self) -> None:
        if self._batches is not None:
            self._batches.close()

    async def _begin(self) -> Batches:
        place, run, left = self._place, self._run, self._left
        collector = partial(ListingCollector[str], PathDecoder(), _NO_LIMIT, allowed=place.limits.opens)
        listing = replace(place.listing, cwd=self._command.cwd)
        listed = await run.collect(Step(listing, collector, left(), metered=False))
        if listed.timed_out:
            raise OverdueError(f"rg was stopped after timeout={self._seconds} seconds; allow more time")
        selects = await place.selection.selects(run, left())
        seconds = left()
        until = None if seconds is None else time.monotonic() + seconds
        source = place.limits.wrap(place.source(self._command.cwd, listed.every(), until))
        return Batches(self._command, run, source, selects, seconds)


def inside_command(
    pattern: str | Sequence[str],
    cwd: StrPath,
    paths: StrPath | Iterable[StrPath],
    options: SearchOptions,
    inside: str | Iterable[str],
    mode: Mode = "json",
    *,
    arguments: Collection[str] = ARGUMENTS,
    limits: ArchiveLimits = ArchiveLimits(),
) -> Command:
    """Return the command that searches files, and inside of archives, notebooks and documents.

    Raises:
        ValueError: A format is unknown or needs a package, or an option does not apply.

    Raises what `search_command()` raises, too.
    """
    refuse_overlay("A search inside of files")
    formats, several = check_inside(inside), several_paths(paths)
    command = search_command(pattern, cwd, several, options, mode, arguments=arguments)
    given = cast("Mapping[str, Any]", options)
    listing = {name: value for name, value in given.items() if name in FileOptions.__annotations__}
    listing = {name: value for name, value in listing.items() if name not in _OF_MEMBERS}
    if limits.denied:
        listing["iglob"] = [*limits.denied]
    of_members = {name: value for name, value in given.items() if name not in _OF_FILES}
    members = cast("SearchOptions", of_members)
    place = InsidePlace(
        files_command(cwd, several, cast("FileOptions", listing)),
        replace(item_command(command.patterns, tuple, members, mode=mode), place=None),
        item_selection(command.patterns, members, allows=limits.allows),
        formats,
        bool(given.get("follow", True)),
        frozenset(os.path.normpath(os.fspath(path)) for path in several),
        limits,
    )
    return replace(command, place=place)


def document_cache() -> TextCache | None:
    """Return the cache of the texts of documents; `None` if other users may write to it."""
    path = folder()
    return None if why_untrusted(path) else TextCache(path / "documents")
