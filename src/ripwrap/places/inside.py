"""Place that consists of files on the disk, and of what is inside of archives, notebooks and documents among them.

First, rg searches the files. Then the members of archives and the texts of notebooks and documents are searched as
items.
"""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ripwrap._concurrency import countdown
from ripwrap._ripgrep.change import Change
from ripwrap._ripgrep.decoder import PathDecoder
from ripwrap._ripgrep.listing_collector import ListingCollector
from ripwrap._ripgrep.place import Part, Place, Plan
from ripwrap._ripgrep.protocols import Runner, Step
from ripwrap._ripgrep.query import Query
from ripwrap._ripgrep.spool import MAX_RUNNING, OverdueError
from ripwrap.binary.cache import folder, why_untrusted
from ripwrap.models import PathError
from ripwrap.places.items import Batches, ItemPlace, listed
from ripwrap.sources.archives import ArchiveSource, check_inside, format_of
from ripwrap.sources.base import Source
from ripwrap.sources.reading import DocumentReader
from ripwrap.sources.texts import TextCache

_OF_MEMBERS = ("glob", "iglob", "glob_case_insensitive", "type", "type_not", "type_add", "type_clear", "max_filesize")
"""Options that choose members by their names, or by the name of their archive, and documents (`NameSelection`)."""

_OF_FILES = ("sort", "sortr", "threads", "ignore_file", "max_depth")
"""Options that choose or sort files on the disk; the search inside of files leaves them out."""


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """Restrictions of a caller, such as a workspace, for a search inside of files."""

    denied: Sequence[str] = ()
    opens: Callable[[str], bool] | None = None
    allows: Callable[[str], bool] | None = None
    wrap: Callable[[Source], Source] = lambda source: source


@dataclass(frozen=True, slots=True)
class InsidePlace:
    """Place that consists of files, and of the items inside of these files."""

    formats: tuple[str, ...]
    limits: ArchiveLimits = ArchiveLimits()
    inner: Place | None = None

    async def plan(self, query: Query, run: Runner, seconds: float | None) -> Plan:
        """Return the run that searches the files, followed by runs for the items inside of them."""
        # As with rg's --search-zip, what rg finds in the bytes of an archive or document is no result: the texts inside
        # are searched, and the bytes of an archive may show a member that `allows` refuses.
        drops: Callable[[str], bool] = lambda path: format_of(path, self.formats) is not None  # noqa: E731
        change = None if query.mode == "files" else Change(query.output, drops)
        query = replace(query, place=self.inner)
        inside = _Inside(self, query, run, seconds)
        errors, close = inside.errors, inside.close
        return Plan((Part(query, change),), more=inside.more, ahead=MAX_RUNNING, errors=errors, close=close)

    def listing(self, query: Query) -> Query:
        """Return the query that lists the files that may be archives or documents."""
        files = query.only_files().without(*_OF_MEMBERS)
        return files.with_(iglob=[*self.limits.denied]) if self.limits.denied else files

    def source(self, query: Query, listed: Iterable[str], until: float | None) -> ArchiveSource:
        """Return the source of the items inside of the listed files, in path order."""
        paths = sorted({path for path in listed if format_of(path, self.formats)}, key=lambda path: path.split(os.sep))
        reader, named = DocumentReader(document_cache(), until=until), frozenset(map(os.path.normpath, query.paths))
        return ArchiveSource(query.cwd, paths, self.formats, follow=query.follows, named=named, reader=reader)


class _Inside:
    """Runs for the items inside of files; the files are listed when the first of these runs is asked for."""

    def __init__(self, place: InsidePlace, query: Query, run: Runner, seconds: float | None) -> None:
        self._place, self._query, self._run = place, query, run
        self._seconds = seconds
        self._left = countdown(seconds)
        self._batches: Batches | None = None
        self._listed: Plan | None = None

    async def more(self) -> Sequence[Part] | None:
        if self._query.mode == "files":
            if self._listed is not None:
                return None
            source, selects = await self._open()
            self._listed = await listed(self._query, self._run, source, selects, self._left())
            return self._listed.parts
        if self._batches is None:
            source, selects = await self._open()
            self._batches = Batches(self._query.without(*_OF_FILES), self._run, source, selects, self._left())
        return await self._batches.more()

    def errors(self) -> Sequence[PathError]:
        begun = self._batches or self._listed
        return () if begun is None else begun.errors()

    def close(self) -> None:
        if self._batches is not None:
            self._batches.close()

    async def _open(self) -> tuple[Source, Callable[[str], bool]]:
        place, run, left = self._place, self._run, self._left
        collector = partial(ListingCollector[str], PathDecoder(), allowed=place.limits.opens)
        found = await run.collect(Step(place.listing(self._query), collector, left(), metered=False))
        if found.timed_out:
            raise OverdueError(f"rg was stopped after timeout={self._seconds} seconds; allow more time")
        query = self._query.without(*_OF_FILES)
        selects = await ItemPlace(tuple, query.roots, place.limits.allows).selects(query, run, left())
        seconds = left()
        until = None if seconds is None else time.monotonic() + seconds
        return place.limits.wrap(place.source(self._query, found.every(), until)), selects


def in_files(
    query: Query,
    inside: str | Iterable[str],
    limits: ArchiveLimits = ArchiveLimits(),
    *,
    inner: Place | None = None,
) -> Query:
    """Return the query that searches files, and inside of archives, notebooks and documents."""
    return replace(query, place=InsidePlace(check_inside(inside), limits, inner))


def document_cache() -> TextCache | None:
    """Return the cache of the texts of documents; `None` if other users may write to it."""
    path = folder()
    return None if why_untrusted(path) else TextCache(path / "documents")
