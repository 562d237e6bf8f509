"""Place that consists of items: pairs of a name and a content, such as members of an archive or files of a revision.

The items are written to temporary files, in batches. While rg searches a batch, the next batch is written. The paths of
the temporary files in rg's output are replaced by the names of the items. Results are in the order of the items: rg's
output is read batch by batch, and rg searches the files of a batch in the order of their names (`--sort=path`).
"""

import base64
import json
import math
import os
import re
import time
from collections.abc import AsyncIterable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, cast

from ripwrap._ripgrep.change import Change, plain_bytes
from ripwrap._ripgrep.command import in_paths
from ripwrap._ripgrep.decoder import DOT_SLASH, FileTypes, decode_types
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.page_collector import WholeOutput
from ripwrap._ripgrep.place import Part, Place, Plan
from ripwrap._ripgrep.planning import chain, divide_in_time
from ripwrap._ripgrep.protocols import Runner, Step
from ripwrap._ripgrep.query import Output, Query, marked, only_options, unmarked
from ripwrap._ripgrep.runner import BlockingRunner
from ripwrap._ripgrep.spool import MAX_RUNNING, Batch, Feed, OverdueError, Spool, check_item, check_items, has_at_most
from ripwrap._system.concurrency import countdown
from ripwrap._system.overlay import with_overlay
from ripwrap._text import raw_bytes, to_json
from ripwrap.errors import Hint, HintedText, SearchError
from ripwrap.models import PathError
from ripwrap.options import FileOptions, size_in_bytes
from ripwrap.sources.base import AnyItems, Item, NamedItem, NamedSource, Source

ARGUMENTS = ("pattern", "items", "limit", "rg")

NOWHERE = os.path.abspath(os.sep)
"""Working directory of queries for items that belong to no directory. These queries search no file in it."""

_CHECKED_BY_RG = ("glob", "iglob", "type", "type_not", "type_add", "type_clear")
_OF_FILES = frozenset(FileOptions.__annotations__)
"""Options that choose items. ripwrap applies them, because rg does not see the names, and lists no items."""

_REFUSED = {
    "ignore_file": "items have no ignore files",
    "sort": "matches come in the order of the items",
    "sortr": "matches come in the order of the items",
    "threads": "items are searched by several rg processes with one thread each",
}
"""Options that a search of items does not support, with the reasons."""

_MATCH = b'{"type":"match","data":{'


@dataclass(frozen=True, slots=True)
class ItemPlace:
    """Place that consists of items."""

    open: Callable[[], AnyItems]
    roots: Sequence[str] = ()
    allows: Callable[[str], bool] | None = None
    inner: Place | None = None

    async def plan(self, query: Query, run: Runner, seconds: float | None) -> Plan:
        """Return a plan with a run for each batch of items."""
        left, items = countdown(seconds), self.open()
        check_items(items, blocking=isinstance(run, BlockingRunner))
        selects = await self.selects(query, run, left())
        if query.mode == "files":
            return await listed(query, run, items, selects, left(), self.roots)
        batches = Batches(replace(query, place=self.inner), run, items, selects, left(), self.roots)
        return Plan((), more=batches.more, ahead=MAX_RUNNING, errors=batches.errors, close=batches.close)

    async def selects(self, query: Query, run: Runner, seconds: float | None) -> Callable[[str], bool]:
        """Return the function that takes the name of an item and returns True if the item is to be searched."""
        types: FileTypes = {}
        if not query.options.keys().isdisjoint(_CHECKED_BY_RG):
            # This query searches nothing, but rg checks its globs and file types.
            wanted = query if query.patterns else query.only_files()
            nothing = replace(wanted, mode="json" if query.patterns else "files", cwd=NOWHERE, paths=(os.curdir,))
            nothing = replace(nothing.without("sort", "sortr").with_(max_depth=0, no_ignore=True), overlay=None)
            check: Callable[[Exit], object] = Exit.check_listing
            if query.patterns:
                check = lambda end: end.check(summary=end.wrote)  # noqa: E731 - as short as a function
            await _output(run, nothing, seconds, check)
            types = decode_types(await _output(run, nothing.types(), seconds, Exit.check_listing))
        from ripwrap._ignore.rules import NameSelection  # imported late, because it imports pathspec

        by_name = only_options(query.options, _OF_FILES)
        selected, allows = NameSelection(by_name, types, self.roots).selects, self.allows
        return selected if allows is None else lambda name: allows(name) and selected(name)


async def _output(run: Runner, query: Query, seconds: float | None, check: Callable[[Exit], object]) -> bytes:
    output = await run.collect(Step(query, lambda: WholeOutput(check), seconds, metered=False))
    if output.timed_out:
        raise OverdueError(f"rg was stopped after timeout={seconds} seconds; allow more time")
    return b"".join(output.chunks)


def _size_limit(query: Query, named: Collection[str]) -> Callable[[str], float]:
    """Return the maximum size of an item by its name; as in rg, there is none for an item that the caller names."""
    most = size_in_bytes(query.options.get("max_filesize"))
    return lambda name: math.inf if most is None or name in named else most


async def listed(
    query: Query,
    run: Runner,
    items: AnyItems,
    selects: Callable[[str], bool],
    seconds: float | None,
    named: Collection[str] = (),
) -> Plan:
    """Return the plan of a listing of items, whose output is their names; `named` are the names in `paths`."""
    most = _size_limit(query, named)
    if isinstance(items, AsyncIterable):
        given = [check_item(item, files=False) async for item in items]
        names = [name for name, content in given if selects(name) and has_at_most(content, most(name))]
        source = None
    else:
        source = items if isinstance(items, Source) else None
        names = await run.call(lambda: _names(items, selects, most, seconds))
    if any("\0" in name for name in names):
        raise ValueError("the name of an item has a NUL, so it cannot be listed")
    if query.numbered is not None:
        names = [marked(name, _packed(name)) for name in names]
    output = b"".join(raw_bytes(DOT_SLASH + name) + b"\0" for name in names)
    errors: Callable[[], Sequence[PathError]] = tuple if source is None else lambda: source.errors
    return Plan((Part(replace(query, overlay=None), in_order=True, output=output),), errors=errors)


def _packed(name: str) -> str:
    """Return the further fields of an item as a text without a slash."""
    fields: Mapping[str, object] = name.fields(to_json) if isinstance(name, NamedItem) else {}
    return base64.urlsafe_b64encode(json.dumps(fields).encode()).decode()


def fields_of(path: str) -> tuple[str, Mapping[str, Any]]:
    """Return the path of a file in a numbered listing, and the further fields of an item; none for other files."""
    name = unmarked(path)
    return name, json.loads(base64.urlsafe_b64decode(path[len(name) + 1 : -1])) if name != path else {}


def _names(
    items: Iterable[Item], selects: Callable[[str], bool], most: Callable[[str], float], seconds: float | None
) -> list[str]:
    is_source = isinstance(items, Source)
    checked = (check_item(item, files=is_source) for item in items)
    chosen = ((name, content) for name, content in checked if is_source or selects(name))
    small = (name for name, content in chosen if has_at_most(content, most(name)))
    if not isinstance(items, Source):
        return list(small)
    items.selects = selects
    items.deadline = None if seconds is None else time.monotonic() + seconds
    try:
        return list(items.names() if isinstance(items, NamedSource) else small)
    except TimeoutError as error:
        raise OverdueError(f"not all names were listed within timeout={seconds} seconds; allow more time") from error
    finally:
        items.close()


class Batches:
    """Runs of rg for items, each for one batch."""

    def __init__(
        self,
        query: Query,
        run: Runner,
        items: AnyItems,
        selects: Callable[[str], bool],
        seconds: float | None,
        named: Collection[str] = (),
    ) -> None:
        # rg searches the files of a batch in the order of their names, which is the order of the items.
        self._overlay = query.overlay  # archives among the files may have a text in place of their bytes
        self._left = countdown(seconds)
        plain = query.without(*_OF_FILES).with_(no_ignore=True, follow=False, sort="path")
        self._query, self._run = replace(plain, paths=(os.curdir,), overlay=None), run
        self._source = items if isinstance(items, Source) else None
        self._spool = Spool()
        self._feed = Feed(items, self._spool, selects, seconds=seconds, most=_size_limit(query, named))
        self._searched = False
        self._waits = False

    async def more(self) -> Sequence[Part] | None:
        """Write the next batch, and return its runs; see `Plan.more`.

        Without any item, rg still runs once, on an empty batch, because rg must check the pattern.
        """
        waits, self._waits = self._waits, False
        if waits:
            return ()
        feed = self._feed
        while not feed.ended:
            batch = self._spool.begin()
            if feed.is_async:
                await feed.fill_async(batch)
            else:
                await self._run.call(partial(with_overlay, self._overlay, partial(feed.fill, batch)))
            if batch.names or (feed.ended and not self._searched):
                self._searched, self._waits = True, feed.slow
                return await self._parts(batch)
            self._spool.discard(batch)
            if feed.slow:
                return ()
        if feed.error is not None:
            raise feed.error
        return None

    def errors(self) -> Sequence[PathError]:
        """Return the errors of the source: items that could not be read."""
        return () if self._source is None else self._source.errors

    def close(self) -> None:
        """End the iteration, and delete the temporary files."""
        self._feed.close()
        self._spool.__exit__()

    async def _parts(self, batch: Batch) -> Sequence[Part]:
        query = replace(self._query, cwd=batch.path)
        parts = (await divide_in_time(Part(query, in_order=True), self._run, self._left())).parts
        left = len(parts)

        def ended() -> None:
            nonlocal left
            left -= 1
            if not left:
                self._spool.discard(batch)

        return [replace(part, change=chain(part.change, Renamed(query, batch, ended))) for part in parts]


class Renamed(Change):
    """Change that replaces the paths of temporary files by the names of the items in these files."""

    def __init__(self, query: Query, batch: Batch, ended: Callable[[], object]) -> None:
        self._batch, self._numbered = batch, query.numbered
        self._on_end = ended
        self._old = self._name = self._old_match = self._match = b""
        super().__init__(query.output, lambda path: False)  # noqa: ARG005 - drops nothing

    def exit(self, end: Exit) -> Exit:
        """Convert the exit of a run: its paths are no paths of the caller, and each must be readable."""
        self._on_end()
        end = super().exit(end)
        if errors := [error for error in end.path_errors() if error.path is not None]:
            text = (
                f"rg could not read the temporary file of an item ({errors[0].message}); do not delete "
                f"{os.path.dirname(self._batch.path)} before the search has ended"
            )
            stderr = end.stderr.decode("utf-8", "replace")
            error = SearchError(text, argv=end.argv, returncode=end.returncode, stderr=stderr)
            end = replace(end, failed=error)
        return replace(end, query=replace(end.query, paths=()))

    def _begin(self, record: bytes) -> bytes:
        start = record.index(b'"path":')
        self._old = record[start : record.index(b"}", start) + 1]
        path = json.loads(self._old.partition(b":")[2])["text"].removeprefix(DOT_SLASH)
        name = self._batch.name_of(path)
        self._name = b'"path":' + _json_path(name)
        self._old_match = _MATCH + self._old
        self._match = _MATCH + self._name
        if isinstance(name, NamedItem):
            fields = json.dumps(name.fields(to_json))[1:-1].encode()
            self._match += b"," * bool(fields) + fields
        return record.replace(self._old, b'"path":' + _json_path(self._marked(name, path)), 1)

    def _records_of_file(self, records: bytes) -> bytes:
        # A quote inside of a JSON string has a backslash before it, so only paths are replaced.
        return records.replace(self._old_match, self._match).replace(self._old, self._name)

    def _ended(self, record: bytes) -> bytes:
        return record.replace(self._old, self._name, 1)

    def _record(self, record: re.Match[bytes]) -> bytes:
        path = os.fsdecode(plain_bytes(record[1]))
        name = self._batch.name_of(path)
        if "\0" in name:
            raise ValueError(f"the name of an item has a NUL, so it cannot be listed: {name!r}; search() shows it")
        return raw_bytes(DOT_SLASH + self._marked(name, path)) + b"\0" + record[2]

    def _marked(self, name: str, path: str) -> str:
        return name if self._numbered is None else marked(name, f"{self._numbered}{int(path)}")


def _json_path(name: str) -> bytes:
    """Return the path of an item as rg writes a path in JSON."""
    value = to_json(DOT_SLASH + name)
    return json.dumps({"text": value} if isinstance(value, str) else value, separators=(",", ":")).encode()


def in_items(query: Query, place: ItemPlace) -> Query:
    """Return the query of a search of items."""
    options = cast("Mapping[str, object]", query.options)
    for name, reason in _REFUSED.items():
        if options.get(name) not in (None, False, "none", (), []):
            raise ValueError(HintedText(Hint(name, kind="omit"), f" does not apply to items: {reason}; leave it out"))
    return replace(query, overlay=None, place=place, must_exist=False)  # items are not files on disk


_FILE_NAMES = frozenset(FileOptions.__annotations__) - {"threads"}
# A file name without characters that are special in globs, or `*` with a file extension.
_PLAIN_GLOB = re.compile(r"[*A-Za-z0-9_+-][A-Za-z0-9_.+-]*")
_MAX_GLOBS = 200
"""Maximum number of globs of a query. If more are needed, rg lists all files of the directories instead."""


@dataclass(frozen=True)
class Candidates:
    """Files of an index that may have a match; the place of a search in them.

    rg treats NUL bytes in two ways (rg-facts 20). It searches a file to the end if the command line names the file. It
    stops at the NUL byte if it finds the file in a directory. So the command line names only files without a NUL byte.
    """

    total: int
    named: tuple[str, ...] | None
    unsure: tuple[str, ...]
    errors: tuple[PathError, ...]
    own: re.Pattern[str] | None
    follow: bool
    iglob: tuple[str, ...] = ()

    @property
    def searched(self) -> int:
        """Number of files that rg searches."""
        return self.total if self.named is None else len(self.named) + len(self.unsure)

    @cached_property
    def paths(self) -> frozenset[str]:
        """Paths of all candidates."""
        return frozenset((*(self.named or ()), *self.unsure))

    def errors_with(self, errors: Iterable[PathError]) -> tuple[PathError, ...]:
        """Return the errors of the listing, and those of the search whose path is a candidate that still exists."""
        if self.named is None:
            return tuple(errors)
        found = [error for error in errors if error.path in self.paths and error.kind != "missing"]
        return tuple(dict.fromkeys((*self.errors, *found)))

    def below(self, folder: str) -> "Candidates | None":
        """Return the candidates in a directory; `None` if it has no candidates, e.g. because it is not in the index."""
        if self.named is None or folder == os.curdir:
            return self
        start = os.path.join(folder, "")
        named, unsure = ([path for path in paths if path.startswith(start)] for paths in (self.named, self.unsure))
        return replace(self, named=tuple(named), unsure=tuple(unsure)) if named or unsure else None

    def only(self, allowed: Callable[[str], bool]) -> "Candidates":
        """Return the candidates for whose path `allowed` returns True."""
        named = None if self.named is None else tuple(filter(allowed, self.named))
        return replace(self, named=named, unsure=tuple(filter(allowed, self.unsure)))

    async def plan(self, query: Query, run: Runner, seconds: float | None) -> Plan:  # noqa: ARG002 - see `Place`
        """Return the runs that search the candidates; they share a change, which keeps each candidate once."""
        change = None if (self.named is None and self.own is None) else _Candidates(query.output, self)
        return Plan(tuple(Part(one, change) for one in self.queries(query)))

    def queries(self, query: Query) -> Iterator[Query]:
        """Yield the queries that search the candidates, given the query that searches all files."""
        if self.named is None:
            yield query
            return
        others = replace(query.without(*_FILE_NAMES), once=False)
        # rg maps files into memory if the command line names few files, and then treats NUL bytes differently (rg-facts
        # 20). `mmap=False` turns that off. The directory itself is among the paths so that at least one path exists,
        # and rg always checks the pattern.
        paths = (*self.named, os.curdir)
        yield in_paths(others.with_(mmap=others.options.get("mmap", False), max_depth=0), paths)
        if self.unsure:
            folders = dict.fromkeys(os.path.dirname(path) or os.curdir for path in self.unsure)
            yield in_paths(others.with_(**self._files_of_folders()), folders)

    def _files_of_folders(self) -> FileOptions:
        """Return options with which rg, in the directories of the unsure files, finds these and few other files."""
        options: FileOptions = {"max_depth": 1, "follow": self.follow, "include_git": True, "no_ignore": True}
        if self.iglob:
            options["iglob"] = self.iglob
        names = {os.path.basename(path) for path in self.unsure}
        globs = {*map(_glob, names)} if len(names) > _MAX_GLOBS else names
        if len(globs) > _MAX_GLOBS or not all(map(_PLAIN_GLOB.fullmatch, globs)):
            return options
        return {**options, "glob": sorted(globs)}


class _Candidates(Change):
    """Change that keeps each candidate once.

    For the unsure files, rg searches whole directories. There it also finds files that are not candidates, and finds
    the named files a second time. If rg searches all files, only the index's own files are dropped.
    """

    def __init__(self, output: Output, candidates: Candidates) -> None:
        self._candidates = candidates
        super().__init__(output, self._drops_path)

    def restart(self) -> None:
        """Return to the state before the first run."""
        super().restart()
        self._left = None if self._candidates.named is None else set(self._candidates.paths)

    def _drops_path(self, path: str) -> bool:
        own = self._candidates.own
        if self._left is None:
            return own is not None and own.fullmatch(path) is not None
        expected = path in self._left
        self._left.discard(path)
        return not expected


def _glob(name: str) -> str:
    """Return a glob for the extension of a file name, such as `*.py`, of which few are needed; or the name."""
    extension = os.path.splitext(name)[1]
    return f"*{extension}" if extension else name
