"""Places whose files are searched in another form: insides of archives and documents, and guessed encodings.

First, rg searches the files. Then the members of archives and the texts of notebooks and documents are searched as
items.

Place of a search with `encoding="detect"`: files in several encodings.

First, rg lists the files with a line that is not UTF-8, and their encodings are guessed. Then rg searches all files as
usual, without the results for the files with a guessed encoding, and once more the files of each encoding.
"""

import math
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module

from ripwrap._concurrency import countdown
from ripwrap._overlay import with_overlay
from ripwrap._ripgrep.change import Change
from ripwrap._ripgrep.command import in_paths
from ripwrap._ripgrep.decoder import PathDecoder, listing_decoder
from ripwrap._ripgrep.page_collector import ListingCollector
from ripwrap._ripgrep.place import Part, Place, Plan
from ripwrap._ripgrep.protocols import Runner, Step
from ripwrap._ripgrep.query import Output, Query, only_options
from ripwrap._ripgrep.spool import MAX_RUNNING, OverdueError
from ripwrap.binary.cache import folder, why_untrusted
from ripwrap.errors import Hint, HintedText, MissingPackageError
from ripwrap.models import PathError
from ripwrap.options import FileOptions, SearchOptions
from ripwrap.places.items import Batches, ItemPlace, listed
from ripwrap.sources.archives import ArchiveSource, check_inside, format_of
from ripwrap.sources.base import Source
from ripwrap.sources.encodings import guess_encodings
from ripwrap.sources.reading import DocumentReader, TextCache

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


_NOT_UTF8 = "^.*$"  # `.` matches only valid UTF-8, so a line that does not match has invalid bytes
_FILE_NAMES = frozenset(FileOptions.__annotations__) | {"binary", "text"}


@dataclass(frozen=True, slots=True)
class Detection:
    """Place of a search in files of several encodings."""

    async def plan(self, query: Query, run: Runner, seconds: float | None) -> Plan:
        """Return the run that searches all files, and a run for the files of each guessed encoding."""
        files, late = await self._guess(query, run, seconds)
        guessed = frozenset(path for paths in files.values() for path in paths)
        output = query.output
        parts = [Part(query, Change(output, guessed.__contains__, len(guessed)) if guessed else None)]
        parts += [
            Part(in_paths(query.with_(encoding=label), paths), Labelled(output, label))
            for label, paths in files.items()
        ]
        return Plan(tuple(parts), late=late)

    async def _guess(self, query: Query, run: Runner, seconds: float | None) -> tuple[dict[str, list[str]], bool]:
        """Return the files of each encoding, and True if files may be missing, because the time limit was reached."""
        seconds = None if seconds is None else seconds / 2  # the other half is for the search
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        listing = _not_utf8(query)
        collector = partial(ListingCollector[str], listing_decoder(counts=listing.counts))
        listed = await run.collect(Step(listing, collector, seconds, metered=False))
        others = listed.every()
        if not others:
            return {}, listed.timed_out
        # The active overlay may differ: a generator keeps the overlay of the call that made it.
        guess = partial(guess_encodings, query.cwd, others, deadline)
        files = await run.call(partial(with_overlay, query.overlay, guess))
        return files, listed.timed_out or time.monotonic() >= deadline


class Labelled(Change):
    """Change that gives the end of each file the encoding in which it was searched."""

    def __init__(self, output: Output, label: str) -> None:
        super().__init__(output, lambda path: False)  # noqa: ARG005 - drops nothing
        self._label = label.encode()

    def _ended(self, record: bytes) -> bytes:
        return record.replace(b'"data":{', b'"data":{"encoding":"%b",' % self._label, 1)


def detection() -> Detection:
    """Return the place of a search in files of several encodings; the query of the search has no encoding."""
    try:
        import_module("charset_normalizer")  # a missing package is an error of the call, not of the iteration
    except ModuleNotFoundError as error:
        package = Hint(kind="install", target="ripwrap[detect]")
        needed = HintedText("encoding='detect' needs the package charset-normalizer: ", package)
        raise MissingPackageError(needed, name=error.name) from error
    return Detection()


def _not_utf8(query: Query) -> Query:
    """Return the query that lists the files, of those that a query searches, with a line that is not UTF-8."""
    files = only_options(query.options, _FILE_NAMES)
    if query.options.get("null_data"):
        files["text"] = True  # with `null_data`, no file is binary
    wanted: SearchOptions = {**files, "encoding": "none", "invert_match": True}
    return query.another("files-with-matches", (_NOT_UTF8,), wanted)
