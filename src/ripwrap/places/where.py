"""Places of a search, and how they are combined: `Inside(Revision("main"), "zip")`.

`Directory`, `Host`, `Revision`, `History`, `Items` and places of a caller are where a search begins. `Overlay`,
`Inside` and `Detected` are on top of another place, in any order: texts replace files first, then files are opened, and
encodings are guessed last.
"""

import os
from collections.abc import AsyncIterable, AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, cast

from typing_extensions import TypedDict

from ripwrap._ripgrep.command import ARGUMENTS, check_overlay, files_query, plain_options, search_query
from ripwrap._ripgrep.host import RgHost
from ripwrap._ripgrep.named_paths import must_exist
from ripwrap._ripgrep.place import Part, Place, Plan
from ripwrap._ripgrep.planning import plan
from ripwrap._ripgrep.protocols import Runner
from ripwrap._ripgrep.query import Mode, Query, without_options
from ripwrap._system.overlay import OverlayTexts as Texts
from ripwrap._system.overlay import active_overlay, merge_texts
from ripwrap._text import check_kind, raw_bytes
from ripwrap.errors import Hint, HintedText, combination_error
from ripwrap.options import Directories, FileOptions, SearchOptions, StrPath
from ripwrap.sources.base import AnyItems, as_formats

PLACES: Mapping[str, Hint] = {
    "overlay": Hint("overlay()", kind="omit"),
    "rev": Hint("rev"),
    "history": Hint("where"),
    "inside": Hint("inside"),
    "detect": Hint("encoding", "detect"),
    "host": Hint("on"),
    "items": Hint("where"),
    "place": Hint("where"),
}
"""Kinds of places, each as the caller names it.

`history` is `History`, `items` are pairs in memory, and `place` is a place of the caller.
"""

_CHANGES = {
    "overlay": "the files on the disk would be changed, not the texts",
    "rev": "a revision cannot be changed",
    "history": "a history cannot be changed",
    "inside": "what is inside of archives and documents cannot be changed",
    "detect": "a wrong guess would change wrong bytes",
    "host": "files of another machine cannot be changed",
    "items": "items cannot be changed",
    "place": "only files on the disk can be changed",
}
_SYNTAX = dict.fromkeys(PLACES, "the parser reads files from the disk") | {
    "detect": "source code is read as UTF-8",
    "host": "the parser reads files of this machine",
}
_DISK = dict.fromkeys(PLACES, "it reads files from the disk") | {
    "detect": "it reads the bytes of files",
    "host": "it reads files of this machine",
}

HOLES: Mapping[str, Mapping[str, str]] = {
    "replace()": _CHANGES,
    "replace_code()": _CHANGES,
    "search_code()": _SYNTAX,
    "rank()": _DISK,
    "coverage": _DISK,
    "coverage()": _DISK,
    "why()": _DISK,
    "watch()": _DISK,
    "Repositories": {"overlay": _DISK["overlay"]},
    "an index": {
        **dict.fromkeys(("overlay", "rev", "history", "inside", "place"), "it has the files on the disk"),
        "detect": "its words are those of UTF-8",
        "host": "it has files of this machine",
    },
    **{what: {"overlay": _DISK["overlay"]} for what in ("file_info()", "list_directory()", "ls without rg")},
    "host": {
        "overlay": "the texts are on this machine",
        "inside": "archives and documents are read on this machine",
        "detect": "encodings are guessed on this machine",
    },
    "history": {"overlay": "a text would replace all versions of a file"},
    "place": {
        "overlay": "ripwrap does not know how the place names its files",
        "inside": "ripwrap does not know how the place reads its files",
    },
    "async": dict.fromkeys(
        ("overlay", "inside"), "an async iterable of items is read in the event loop; pass an iterable"
    ),
}
"""For each operation, or kind of place, the kinds of places that do not go with it, with the reasons."""


def refuse(what: str, kinds: Iterable[str]) -> None:
    """Raise `ValueError` if an operation, or a kind of place, does not go with one of the kinds of places."""
    known = HOLES.get(what, {})
    for kind in kinds:
        if kind in known:
            wrong = PLACES.get(what, what)
            raise combination_error(wrong, PLACES[kind], known[kind])


def refuse_pairs(kinds: Iterable[str]) -> None:
    """Raise `ValueError` if two of the kinds of places do not go together."""
    for one, other in combinations(kinds, 2):
        refuse(one, (other,))
        refuse(other, (one,))


def refuse_places(operation: str, options: Mapping[str, Any] | None = None) -> None:
    """Raise `ValueError` if a call names a place, or is in a block of `overlay()`, for an operation without places."""
    options = options or {}
    given = {
        "overlay": active_overlay() is not None,
        "rev": options.get("rev") is not None,
        "inside": options.get("inside"),
        "detect": options.get("encoding") == "detect",
        "host": options.get("on") is not None,
        "place": options.get("where") is not None,
    }
    refuse(operation, (kind for kind, is_given in given.items() if is_given))


PLACE_OPTIONS = ("where", "rev", "repositories", "inside", "on")
_PLACE_NAMES = frozenset(PLACE_OPTIONS)


class PlaceOptions(TypedDict, total=False):
    """Options that say where a search looks, besides the files on the disk; see `ripwrap.places`.

    Attributes:
        where: A place: `Directory`, `Host`, `Revision`, `Items`, a place of your own, or a combination, such as
            `Inside(Revision("main"), "zip")`; `None` is the directory `cwd`.
        rev: Git revision to search in place of the files on the disk, such as `v1.2` or `main~3`, without a checkout:
            short for `where=Revision(rev)`. All files of the revision below `cwd` are searched; ignore files have no
            effect. What cannot be searched is an error of the answer, or is logged: submodules, objects that are
            missing in a partial clone, and, without `max_filesize`, files of more than 256 MiB. The configuration of
            the repository has no effect.
        repositories: With `rev`, directories in which the repository must be, with all directories that it uses; `None`
            allows all. The `.git` of a downloaded tree may lead to any repository that the user can read.
        inside: Formats of archives, notebooks and documents to search inside, too: short for
            `where=Inside(Directory(), inside)`. The results from inside of files come after those of the files.
        on: Host to run rg on, from `ripwrap.remote`: short for `where=Host(on)`. `cwd`, `paths` and `rg` are then paths
            on the host. `cwd` is relative to the directory that the host was created with.
    """

    where: Place | None
    rev: str | None
    repositories: Directories | None
    inside: str | Iterable[str]
    on: RgHost | None


class PlacedFileOptions(FileOptions, PlaceOptions, total=False):
    """Options that select files, and say where they are."""


class PlacedSearchOptions(SearchOptions, PlaceOptions, total=False):
    """Options of a search, and of the place in which it looks."""


class _Combined:
    """Base class of the places of this module."""

    async def plan(self, query: Query, run: Runner, seconds: float | None) -> Plan:
        """Return the runs that search this place, as a part of another place; see `Place`."""
        layers = _layers(cast("Place", self))
        folder, on = _start(layers.base, query.cwd)
        if on is not None:
            raise ValueError(
                "a run of another place cannot be on a host; search the host by itself, with where=Host(…)"
            )
        return await plan(_settle(layers, replace(query, cwd=os.fspath(folder or os.curdir))), run, seconds)


@dataclass(frozen=True, slots=True)
class Directory(_Combined):
    """Files of a directory on the disk.

    Attributes:
        path: The directory, relative to the `cwd` of the call.
    """

    path: StrPath = os.curdir


@dataclass(frozen=True, slots=True)
class Host(_Combined):
    """Files on another machine, on which rg runs.

    A search raises `RemoteError` if the host cannot be reached, or does not run rg.

    Attributes:
        host: The host, from `ripwrap.remote`.
    """

    host: RgHost


@dataclass(frozen=True, slots=True)
class Revision(_Combined):
    """Files of a git revision, without a checkout; paths are relative to the `cwd` of the call.

    A search raises `ValueError` if the revision does not exist or `cwd` is in no repository, `AccessDeniedError` if the
    repository leads out of `repositories`, and `SearchError` if git fails.

    Attributes:
        rev: The revision, such as a commit, branch or tag.
        repositories: Directories in which the repository must be, with all directories that it uses; `None` allows all.
    """

    rev: str
    repositories: Directories | None = None


@dataclass(frozen=True, slots=True)
class History(_Combined):
    """All versions of the files in a git history, each once, the newest first, as `search_history()` reads them.

    Matches of `scan()` name the commits and paths of their versions (`HistoryScanMatch`). Matches of other operations
    have only the newest path of the version; use `search_history()` for commits. A search raises what
    `search_history()` raises.

    Attributes:
        rev: The newest commit, such as a branch or tag; the ancestors of this commit are also searched. `--all` is
            all branches, tags, other refs and stashes.
        since: Search only versions that a commit after this date introduced, in a form that `git log --since` accepts.
        repositories: Directories in which the repository must be, with all directories that it uses; `None` allows all.
    """

    rev: str = "HEAD"
    since: str | None = None
    repositories: Directories | None = None


@dataclass(frozen=True, slots=True)
class Items(_Combined):
    """Pairs of a name and a content, which is `bytes` or a `str`; the names are the paths of the results.

    A search raises `ValueError` if `paths` or `sort` is given, or if an iterator would be read a second time,
    `TypeError` if an item is not such a pair, or if a blocking search gets an async iterable, and each error of the
    iterable, after the results of the items before it.

    Attributes:
        items: Iterable of pairs, such as a list, a `Source`, or an async iterable. An operation that searches several
            times, such as `grep(near=)` or `scan()`, iterates several times; that is not possible with an iterator,
            such as a generator.
    """

    items: AnyItems
    _begun: list[bool] = field(default_factory=list[bool], init=False, repr=False, compare=False)

    def open(self) -> AnyItems:
        """Return the items, to iterate them once; raise `ValueError` if they are an iterator that was begun before."""
        if isinstance(self.items, (Iterator, AsyncIterator)):
            if self._begun:
                raise ValueError(
                    "the items are an iterator, which can be read only once, but are searched again; pass a list"
                )
            self._begun.append(True)
        return self.items


@dataclass(frozen=True, slots=True)
class Overlay(_Combined):
    """Texts in place of files of another place, such as unsaved editor buffers.

    A search raises `ValueError` if the place is a host or a place of a caller, or if a text is for an ignore file that
    is in use.

    Attributes:
        place: The other place.
        texts: Map from paths to texts, as for `ripwrap.overlay()`: a `str` is encoded as UTF-8, and `None` treats the
            file as deleted. Paths are relative to the directory of the other place; for items, they are their names.
    """

    place: Place
    texts: Mapping[str, str | bytes | None]


@dataclass(frozen=True, slots=True)
class Inside(_Combined):
    """Files of another place, and what is inside of archives, notebooks and documents among them.

    A search raises `ValueError` if a format is unknown, or if the place is a host or a place of a caller, and
    `RipwrapError` if a package is not installed that a format needs. A file that cannot be read is an error of the
    answer, or is logged.

    Attributes:
        place: The other place.
        formats: One format, or several: `zip`, `tar`, `gz`, `bz2`, `xz`, `zst`, `ipynb`, `ipynb-outputs`, `pdf`,
            `docx`, `xlsx`, or a format of an entry point of the group `ripwrap.inside`.
    """

    place: Place
    formats: str | Iterable[str]


@dataclass(frozen=True, slots=True)
class Detected(_Combined):
    """Files of another place, each in its own encoding, which is guessed if the file is not UTF-8.

    A search raises `RipwrapError` if charset-normalizer is not installed, and `ValueError` if the place is a host.

    Attributes:
        place: The other place.
    """

    place: Place = Directory()


@dataclass(frozen=True, slots=True)
class Layers:
    """Place of a search, in the order in which its parts apply."""

    base: Place
    texts: Mapping[str, str | bytes | None]
    formats: tuple[str, ...]
    detected: bool

    def kinds(self) -> tuple[str, ...]:
        """Return the names of the kinds of places, as in the table of holes."""
        bases = ((Directory, ""), (Host, "host"), (Revision, "rev"), (History, "history"), (Items, "items"))
        kind = next((name for base, name in bases if isinstance(self.base, base)), "place")
        tops = {"overlay": bool(self.texts), "inside": bool(self.formats), "detect": self.detected}
        return (*filter(None, [kind]), *(name for name, is_given in tops.items() if is_given))


def _layers(place: Place) -> Layers:
    match place:
        case Detected(inner):
            return replace(_layers(inner), detected=True)
        case Inside(inner, formats):
            below = _layers(inner)
            return replace(below, formats=(*below.formats, *as_formats(formats)))
        case Overlay(inner, texts):
            below = _layers(inner)
            return replace(below, texts={**below.texts, **texts})
        case _:
            check_kind("where", place)
            return Layers(place, {}, (), detected=False)


def layers_of(options: Mapping[str, Any]) -> Layers:
    """Return the place that the options of a call name."""
    given = [name for name in ("where", "rev", "on") if options.get(name) is not None]
    if len(given) > 1:
        raise combination_error(given[0], Hint(given[1], kind="omit"))
    rev, on = options.get("rev"), options.get("on")
    place: Place = Directory() if options.get("where") is None else options["where"]
    if rev is not None:
        place = cast("Place", Revision(rev, options.get("repositories")))
    if on is not None:
        place = cast("Place", Host(on))
    if formats := options.get("inside", ()):
        place = cast("Place", Inside(place, formats))
    if options.get("encoding") == "detect":
        place = cast("Place", Detected(place))
    return _layers(place)


def placed_search(
    operation: str,
    pattern: str | Sequence[str],
    cwd: StrPath | None,
    paths: StrPath | Iterable[StrPath] | None,
    options: SearchOptions,
    mode: Mode = "json",
    *,
    sorts: bool = True,
    keeps_errors: bool = False,
    include_zero: bool = False,
    arguments: Collection[str] = ARGUMENTS,
    captures: str | None = None,
    pattern_file: str | None = None,
) -> Query:
    """Return the query of a search, with the place in which it looks; see `search_query()`.

    Unless the results keep the order of rg's output (`sorts`), rg is not asked to sort, for which it would use one
    thread. `keeps_errors` says that the answer has a place for errors, so that a missing path is not raised.
    """
    layers: Layers | None = None
    on: RgHost | None = None
    if names_place(options):
        layers, options = _split(operation, options)
        for name in ("sort", "sortr") if sorts and layers.detected else ():
            if options.get(name) not in (None, "none"):
                raise combination_error(name, Hint("encoding", "detect"))
        cwd, on = _start(layers.base, cwd)
    query = search_query(
        pattern, cwd, paths, options, mode, include_zero=include_zero, arguments=arguments, on=on, captures=captures,
        pattern_file=pattern_file,
    )  # fmt: skip
    if not keeps_errors:
        query = must_exist(query)
    if layers is not None:
        query = _settle(layers, query)
    return query if sorts or {"sort", "sortr"}.isdisjoint(query.options) else query.without("sort", "sortr")


def placed_files(
    operation: str,
    cwd: StrPath | None,
    paths: StrPath | Iterable[StrPath] | None,
    options: FileOptions,
    arguments: Sequence[str] = ARGUMENTS[1:],
) -> Query:
    """Return the query that lists files in a place; see `placed_search()` and `files_query()`."""
    if not names_place(options):
        return must_exist(files_query(cwd, paths, options, arguments))
    layers, plain = _split(operation, options)
    folder, on = _start(layers.base, cwd)
    return _settle(layers, must_exist(files_query(folder, paths, plain, arguments, on)))


def names_place(options: Mapping[str, Any]) -> bool:
    """Return True if options say where a search looks, besides the files of its directory."""
    return options.get("encoding") == "detect" or not _PLACE_NAMES.isdisjoint(options)


def options_of_rg(options: Mapping[str, Any]) -> SearchOptions:
    """Return the options of a call without those of its place, as in a query."""
    if not names_place(options):
        return plain_options(options)
    left_out = (*PLACE_OPTIONS, "encoding") if options.get("encoding") == "detect" else PLACE_OPTIONS
    return plain_options(without_options(options, left_out))


def _split(operation: str, options: Mapping[str, Any]) -> tuple[Layers, SearchOptions]:
    """Return the place that the options name, and the options of rg."""
    layers = layers_of(options)
    refuse(operation, layers.kinds())
    return layers, without_options(options, (*PLACE_OPTIONS, "encoding") if layers.detected else PLACE_OPTIONS)


def _start(base: Place, cwd: StrPath | None) -> tuple[StrPath | None, RgHost | None]:
    """Return the directory and the host of a search."""
    if isinstance(base, Directory) and base.path != os.curdir:
        above = os.curdir if cwd is None else cwd
        return (os.path.join(above, base.path) if above and base.path else ""), None  # an empty path is no directory
    if isinstance(base, Host):
        check_kind("on", base.host)
    return cwd, base.host if isinstance(base, Host) else None


def _settle(layers: Layers, query: Query) -> Query:
    """Return the query that searches a place."""
    if query.mode == "files":
        layers = replace(layers, detected=False)  # names do not depend on encodings
    base, kinds = layers.base, layers.kinds()
    refuse_pairs((*kinds, "overlay") if query.overlay is not None else kinds)
    inner: Place | None = None
    if layers.detected:
        from ripwrap.places.inside import detection  # late: few searches need it

        inner = detection()
    if isinstance(base, (Revision, History, Items)):
        return _in_items(layers, query, inner)
    if layers.texts:
        outer: Mapping[str, bytes | None] = query.overlay.texts if query.overlay else {}
        overlay = Texts(merge_texts(layers.texts, query.cwd, outer))
        query = check_overlay(replace(query, overlay=overlay), overlay)
    if layers.formats:
        from ripwrap.places.inside import in_files

        return in_files(query, layers.formats, inner=inner)
    if not isinstance(base, (Directory, Host)):
        query = replace(query, must_exist=False)  # only the place knows its paths
        return replace(query, place=base if inner is None else DetectedRuns(base, inner))
    return query if inner is None else replace(query, place=inner)


def _in_items(layers: Layers, query: Query, inner: Place | None) -> Query:
    from ripwrap.places.inside import history_source, layered, revision_source
    from ripwrap.places.items import ItemPlace, in_items

    base, roots = layers.base, cast("Sequence[str]", ())
    texts = {
        name.replace(os.sep, "/").removeprefix("./"): raw_bytes(text) if isinstance(text, str) else text
        for name, text in layers.texts.items()
    }

    def opens() -> AnyItems:
        """Open the items, once for each search of them."""
        if isinstance(base, Revision):
            items: AnyItems = revision_source(query, base.rev, base.repositories, texts)
        elif isinstance(base, History):
            items = history_source(query, base.rev, base.since, base.repositories)
        else:
            items = cast("Items", base).open()
        return layered(items, texts, layers.formats, roots) if texts or layers.formats else items

    if isinstance(base, Revision):
        roots = revision_source(query, base.rev, base.repositories, texts).roots
    elif isinstance(base, History):
        roots = history_source(query, base.rev, base.since, base.repositories).roots
    elif query.roots:
        raise ValueError(HintedText("paths do not apply to items; choose them with ", Hint("glob")))
    elif isinstance(cast("Items", base).items, AsyncIterable) and (texts or layers.formats):
        refuse_pairs(("async", *layers.kinds()))
    return in_items(query, ItemPlace(opens, roots, inner=inner))


@dataclass(frozen=True, slots=True)
class DetectedRuns:
    """Place of which each run is searched in several encodings."""

    outer: Place
    inner: Place

    async def plan(self, query: Query, run: Runner, seconds: float | None) -> Plan:
        """Return the runs of the outer place, each in several encodings."""
        return (await self.outer.plan(query, run, seconds)).mapped(self._nested)

    def _nested(self, part: Part) -> Part:
        below = part.query.place
        return replace(part, query=replace(part.query, place=self.inner if below is None else Detected(below)))
