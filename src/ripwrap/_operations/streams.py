"""Search items: pairs of a name and a content, such as members of an archive, objects in a store or texts in memory."""

import os
from collections.abc import AsyncGenerator, Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Never, TypeVar, Unpack, cast

from pydantic import BaseModel

from ripwrap._operations.grep import GREP_LIMIT, GREP_TIMEOUT, GrepRequest, grep_request, result_of
from ripwrap._operations.pagination import files_in_path_order
from ripwrap._operations.search import MatchAnswer, MessageAnswer, SearchAnswer
from ripwrap._ripgrep.batches import ItemAnswer, ItemCommand, stream_items, stream_items_blocking
from ripwrap._ripgrep.command import search_command
from ripwrap._ripgrep.decoder import FileTypes, Record, too_long_errors
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.page_collector import MatchCollector, PageRequest
from ripwrap._ripgrep.runner import AsyncRunner, BlockingRunner, Runner, run_blocking
from ripwrap._ripgrep.spool import Batch, check_items
from ripwrap.binary.resolver import Rg
from ripwrap.errors import Hint, HintedText
from ripwrap.models import Match, Message, PathError
from ripwrap.options import FileOptions, SearchOptions, check_limit, check_timeout
from ripwrap.results import FileMatches, GrepResult
from ripwrap.sources.base import AnyItems, Items, LocatedName, Source

T = TypeVar("T")
MC = TypeVar("MC", bound=MatchCollector)
M = TypeVar("M", bound=BaseModel)

ARGUMENTS = ("pattern", "items", "limit", "rg")

_NOWHERE = os.path.abspath(os.sep)
"""Working directory of commands for items. These commands search no file in this directory."""

_CHECKED_BY_RG = ("glob", "iglob", "type", "type_not", "type_add", "type_clear")
_BY_NAME = frozenset(FileOptions.__annotations__) - {"max_filesize"}
"""Options that choose items by their names. ripwrap applies them, because rg does not see these names."""

_REFUSED = {
    "ignore_file": "items have no ignore files",
    "sort": "matches come in the order of the items",
    "sortr": "matches come in the order of the items",
    "threads": "items are searched by several rg processes with one thread each",
}
"""Options that a search of items does not support, with the reasons."""


def search_in(
    pattern: str | Sequence[str],
    items: AnyItems,
    *,
    limit: int | None = None,
    rg: Rg = None,
    **options: Unpack[SearchOptions],
) -> AsyncGenerator[Match]:
    """Search items for a pattern and yield each matching line, in the order of the items.

    An item is a pair of a name and a content, which is `bytes` or `str`. The results are the same as if each item was a
    file of one directory: line numbers and offsets count within the item, no match spans two items, and binary items
    are treated as binary files. `Match.path` is the name of the item. A name may be any string, and two items may have
    the same name.

    Items are taken from `items` while the caller iterates, a few batches in advance. A batch is full at 2,048 items
    (the first batches at fewer items), or as soon as its items have 16 MiB or more. Batches are written to a private
    temporary directory, which is deleted at the end. If items arrive slowly, a batch is searched before it is full, so
    that its matches are yielded at the latest when the next item has arrived.

    ```python
    import asyncio

    import ripwrap

    items = [("till.py", "def pay(amount):  # TODO: cards"), ("notes", b"nothing to do")]


    async def main():
        async for match in ripwrap.search_in("TODO", items):
            print(match.path, match.line_number, match.text)


    asyncio.run(main())
    ```

    ```text
    till.py 1 def pay(amount):  # TODO: cards
    ```

    Args:
        pattern: A regular expression (https://docs.rs/regex), or several, any of which may match.
        items: Iterable or async iterable of pairs: a name, and a content as `bytes` or `str`. A `str` is searched as
            UTF-8. An iterable that is not async is read in a worker thread. ripwrap does not close the iterator.
        limit: Maximum number of matches, over all items. (`max_count` is the limit for each item.)
        rg: The rg to run: a path, or a bare name to find in PATH; `None` finds one.
        **options: rg's flags; see `SearchOptions`. `glob`, `type`, `hidden` and `max_depth` choose items by their
            names, as if these were paths. `sort`, `sortr`, `threads` and `ignore_file` are errors. Other options about
            ignore files and links have no effect.

    Raises:
        pydantic.ValidationError: An option is unknown or ill-typed.
        ValueError: `limit` is negative, there is no pattern, a pattern or option has a NUL, or `sort`, `sortr`,
            `threads` or `ignore_file` is given.
        TypeError: `items` is not iterable, an item is not a pair of a name and a content, or `limit` is not an int.
        BinaryNotFoundError: There is no rg.
        PatternError, GlobError, UnknownTypeError, CapabilityError, SearchError: rg rejects the search, or fails, or an
            item could not be written to a temporary file.
        DecodeError: rg's output is malformed.

    If `items` raises an error, the matches of the items before the error are yielded first. The call itself raises
    errors about arguments. The first iteration raises the other errors.
    """
    return run_items(search_in_request(pattern, items, limit, options), rg)


async def grep_in(
    pattern: str | Sequence[str],
    items: AnyItems,
    *,
    limit: int | None = GREP_LIMIT,
    max_files: int | None = None,
    offset: int = 0,
    timeout: float | None = GREP_TIMEOUT,  # noqa: ASYNC109 - as in `grep()`
    rg: Rg = None,
    **options: Unpack[SearchOptions],
) -> GrepResult:
    r"""Search items and return a page of matches with their context, and the number of all matches.

    The result has the form of a result of `grep()`. `GrepResult.files` are the items with matches on the page, in the
    order of the items, and context never has lines of another item. `GrepResult.root` is empty. If `timeout` seconds
    pass, the result has the matches found until then.

    ```python
    import asyncio

    import ripwrap

    items = [("a.py", "one\nTODO\nthree\n"), ("b.py", "TODO\n")]
    result = asyncio.run(ripwrap.grep_in("TODO", items, context=1))
    print(result)
    ```

    ```text
    a.py-1-one
    a.py:2:TODO
    a.py-3-three
    --
    b.py:1:TODO
    2 matches in 2 files.
    ```

    Args:
        pattern: A regular expression (https://docs.rs/regex), or several, any of which may match.
        items: Pairs of a name and `bytes` or `str`, as in `search_in()`.
        limit: Maximum number of matches on the page, over all items; `None` returns all and holds them in memory.
        max_files: Maximum number of items on the page; `None` is no limit.
        offset: Number of matches before the page: the `next_offset` of the previous page.
        timeout: Seconds for the call, not counting an installation of rg; `None` is no limit. The time in which `items`
            produces items is included.
        rg: The rg to run: a path, or a bare name to find in PATH; `None` finds one.
        **options: rg's flags, as in `search_in()`, with the default context of `grep()`.

    Raises what `search_in()` raises, and `ValueError` if an argument is a negative number, or if `passthru` is given.
    """
    request = grep_in_request(pattern, items, limit, max_files, offset, timeout, options)
    return await run_grep_in(request, items, rg)


@dataclass(frozen=True, slots=True)
class ItemRequest(Generic[T]):
    """Checked arguments of an operation that searches items and yields matches or messages.

    Attributes:
        command: Command for rg, with the filter that chooses items.
        answer: Function that makes a new decoder of rg's output; a decoder is used for one call.
        items: Items to search.
    """

    command: ItemCommand
    answer: Callable[[], ItemAnswer[T]]
    items: AnyItems


@dataclass(frozen=True, slots=True)
class GrepInRequest:
    """Checked arguments of `grep_in()`, or of `grep(rev=…)`, which searches the files of a revision as items.

    Attributes:
        grep: The arguments, as a request of `grep()`.
        command: Command that searches the items.
        root: Directory that the names of the items are relative to; empty if there is none.
    """

    grep: GrepRequest
    command: ItemCommand
    root: str = ""


def search_in_request(
    pattern: str | Sequence[str], items: AnyItems, limit: int | None, options: SearchOptions
) -> ItemRequest[Match]:
    """Check the arguments, and return the request of `search_in()`."""
    check_items(items)
    command = item_command(pattern, options)
    checked = check_limit(limit)
    if isinstance(items, Source):
        return ItemRequest(command, lambda: SourceMatchAnswer(checked, items), items)
    return ItemRequest(command, lambda: ItemMatchAnswer(checked), items)


def messages_in_request(
    pattern: str | Sequence[str],
    items: AnyItems,
    limit: int | None,
    options: SearchOptions,
    roots: Sequence[str] = (),
) -> ItemRequest[Message]:
    """Check the arguments, and return the request of a search of items that yields all messages of rg."""
    check_items(items)
    command = item_command(pattern, options, roots=roots)
    checked = check_limit(limit)
    return ItemRequest(command, lambda: _ItemMessageAnswer(checked), items)


def grep_in_request(
    pattern: str | Sequence[str],
    items: AnyItems,
    limit: int | None,
    max_files: int | None,
    offset: int,
    timeout: float | None,
    options: SearchOptions,
) -> GrepInRequest:
    """Check the arguments, and return the request of `grep_in()`."""
    check_items(items)
    request = grep_request(
        pattern, _NOWHERE, (), limit, max_files, offset, timeout, options, explain=False, arguments=ARGUMENTS
    )
    return GrepInRequest(request, item_command(request.query, request.options))


def item_command(
    pattern: str | Sequence[str],
    options: SearchOptions,
    arguments: Collection[str] = ARGUMENTS,
    roots: Sequence[str] = (),
) -> ItemCommand:
    """Return the command of a search of items.

    `arguments` are the names of the caller's arguments that are not options. An error about an unknown option may
    suggest one of these names. `roots` are directories that no option excludes. Options can exclude the items in them.

    Raises what `search_command()` raises, and `ValueError` for an option that a search of items does not support.
    """
    whole = search_command(pattern, _NOWHERE, (), {**options, "max_depth": 0, "no_ignore": True}, arguments=arguments)
    given = cast("Mapping[str, Any]", options)
    for name, reason in _REFUSED.items():
        if given.get(name) not in (None, False, "none", (), []):
            raise ValueError(HintedText(Hint(name, kind="omit"), f" does not apply to items: {reason}; leave it out"))
    lines = {name: value for name, value in given.items() if name not in _BY_NAME}
    settings = {"no_ignore": True, "follow": False, "sort": "path"}
    command = search_command(whole.patterns, _NOWHERE, (), cast("SearchOptions", {**lines, **settings}))
    command, whole = replace(command, overlay=None), replace(whole, overlay=None)  # items are not files on disk
    check = whole if any(name in given for name in _CHECKED_BY_RG) else None
    by_name = {name: value for name, value in given.items() if name in _BY_NAME}

    def selects(types: FileTypes) -> Callable[[str], bool]:
        from ripwrap._ignore.selection import NameSelection  # imported late, because it imports pathspec

        return NameSelection(by_name, types, roots).selects

    return ItemCommand(command, check, selects)


def run_items(request: ItemRequest[T], rg: Rg) -> AsyncGenerator[T]:
    """Search items and yield the matches or messages; raise what `stream_items()` raises."""
    return stream_items(request.command, request.items, request.answer(), rg)


def run_items_blocking(request: ItemRequest[T], rg: Rg, timeout: float | None) -> Generator[T]:
    """Search items and yield the matches or messages, blocking; raise what `stream_items_blocking()` raises.

    Raises:
        ValueError, TypeError: `timeout` is negative, or not a number of seconds; or `items` is an async iterable. The
            call raises these errors, not the first iteration.
    """
    check_items(request.items, blocking=True)
    items = cast("Items", request.items)
    return stream_items_blocking(request.command, items, request.answer(), rg, check_timeout(timeout))


async def run_grep_in(request: GrepInRequest, items: AnyItems, rg: Rg) -> GrepResult:
    """Search items to the end, or until the time limit, and return the page."""
    return await _collect(AsyncRunner(rg), request, items)


def run_grep_in_blocking(request: GrepInRequest, items: Items, rg: Rg) -> GrepResult:
    """Search items and return the page, blocking; raise `TypeError` if `items` is an async iterable."""
    check_items(items, blocking=True)
    return run_blocking(_collect(BlockingRunner(rg), request, items))


async def _collect(run: Runner, request: GrepInRequest, items: AnyItems) -> GrepResult:
    answer = PageAnswer(request.grep.page)
    found = answer.collector
    found.timed_out = await run.collect_items(request.command, items, answer, request.grep.timeout)
    files = await files_in_path_order(run, request.grep.page, found.blocks())
    errors = tuple(items.errors) if isinstance(items, Source) else ()
    return result_of(request.grep, found, tuple(map(answer.names.rename_file, files)), errors, root=request.root)


class ItemNames:
    """Map from the paths of temporary files to the names of the items in these files."""

    def __init__(self) -> None:
        self._batch = Batch("", 0)
        self._kept: dict[str, str] = {}

    def begin_batch(self, batch: Batch) -> None:
        """Add the names of the next batch (the items of one run of rg), and drop the names of the previous batch.

        Names that `keep()` has kept stay.
        """
        self._batch = batch

    def keep(self, paths: Iterable[str]) -> None:
        """Keep the names for these paths after the next `begin_batch()`; drop all other names that were kept before."""
        self._kept = {path: self[path] for path in paths}

    def __getitem__(self, path: str) -> str:
        return self._kept[path] if path in self._kept else self._batch.name_of(path)

    def rename(self, message: M) -> M:
        """Return a copy of a message, with the name of its item as the path.

        If the item is a part of a document, a match also gets the location of the part, such as a page.
        """
        name = self[getattr(message, "path", "")]
        if not isinstance(name, LocatedName):
            return message.model_copy(update={"path": name})
        located = {"location": name.location} if isinstance(message, Match) else {}
        return message.model_copy(update={"path": str(name), **located})

    def rename_file(self, file: FileMatches) -> FileMatches:
        """Return the matches of a file, with the name of its item as the path of the file and of each line."""
        matches = tuple(
            self.rename(match).model_copy(
                update={"before": tuple(map(self.rename, match.before)), "after": tuple(map(self.rename, match.after))}
            )
            for match in file.matches
        )
        return file.model_copy(update={"path": str(self[file.path]), "matches": matches})


class NamingAnswer(SearchAnswer):
    """Base class of the decoders of rg's output for a search of items.

    They replace the path in each message (a temporary file) by the name of the item.
    """

    def __init__(self, limit: int | None) -> None:
        super().__init__(limit)
        self._names = ItemNames()

    def begin_batch(self, batch: Batch) -> None:
        self._names.begin_batch(batch)

    def _feed(self, chunk: bytes) -> Iterator[Record]:
        return map(self._names.rename, super()._feed(chunk))

    def _end_run(self, end: Exit) -> Iterator[Record]:
        yield from map(self._names.rename, super()._end_run(end))
        self._names.keep(self._decoder.dropped)

    def _too_long(self) -> tuple[PathError, ...]:
        return too_long_errors({self._names[path]: number for path, number in self._decoder.dropped.items()})


class ItemMatchAnswer(NamingAnswer, MatchAnswer):
    """Decoder of rg's output that yields the matches of a search of items."""


class _ItemMessageAnswer(NamingAnswer, MessageAnswer):
    """Decoder of rg's output that yields all messages of a search of items."""


class _SourceAnswer(NamingAnswer):
    """Base class of the decoders for searches of a `Source`. They also report the items that it could not read."""

    def __init__(self, limit: int | None, source: Source) -> None:
        super().__init__(limit)
        self._source = source

    def _too_long(self) -> tuple[PathError, ...]:
        return (*self._source.errors, *super()._too_long())


class SourceMatchAnswer(_SourceAnswer, MatchAnswer):
    """Decoder of rg's output that yields the matches in a `Source`, and logs the items that could not be read."""


class SourceMessageAnswer(_SourceAnswer, MessageAnswer):
    """Decoder of rg's output that yields all messages of a search of a `Source`.

    The last message, the summary, has an error for each item that could not be read.
    """


class ItemMatchCollector(MatchCollector):
    """Collector of the matches of one page in a search of items."""

    def __init__(self, page: PageRequest, names: ItemNames) -> None:
        super().__init__(page)
        self._names = names

    @property
    def dropped(self) -> Mapping[str, int]:
        return {self._names[path]: number for path, number in super().dropped.items()}

    def keep_names(self) -> None:
        """Keep the names of the items on the page."""
        self._names.keep((*(os.fsdecode(block.path) for block in self.blocks()), *super().dropped))


class CollectingAnswer(Generic[MC]):
    """Base class of decoders for searches of items. They pass rg's output to a collector of matches, and yield nothing.

    Attributes:
        names: Names of the items.
        collector: Collector of the matches.
        full: Always False, because rg is never stopped early: all matches are counted.
        pending: Always 0, because records are not decoded while rg runs.
    """

    full = False
    pending = 0

    def __init__(self, collector: MC, names: ItemNames) -> None:
        self.names: ItemNames = names
        self.collector: MC = collector
        self.collector.timed_out = False

    @property
    def ended(self) -> bool:
        return self.collector.ended

    def begin_batch(self, batch: Batch) -> None:
        self.names.begin_batch(batch)

    def feed(self, chunk: bytes) -> Iterator[Never]:
        self.collector.feed(chunk)
        return iter(())

    def end_run(self, end: Exit) -> Iterator[Never]:
        self.collector.end_run(end)
        self.keep_names()
        return iter(())

    def keep_names(self) -> None:
        """Keep the names of the items whose matches the collector keeps."""
        raise NotImplementedError

    def finish(self, end: Exit) -> Iterator[Never]:
        self.collector.end = end
        return iter(())


class PageAnswer(CollectingAnswer[ItemMatchCollector]):
    """Decoder for searches of items. It collects the matches of one page, and yields nothing.

    Attributes:
        page: Request of the page: its offset and limits.
    """

    def __init__(self, page: PageRequest) -> None:
        names = ItemNames()
        super().__init__(ItemMatchCollector(page, names), names)
        self.page: PageRequest = page

    def keep_names(self) -> None:
        """Keep the names of the items on the page."""
        self.collector.keep_names()
