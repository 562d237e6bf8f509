"""Search items (pairs of a name and a content) with rg, and yield the results, with an async and a blocking loop.

A `Spool` writes the items to temporary files, in batches. While rg searches a batch, the next batch is written.
Results are in the order of the items: rg's output is read batch by batch, and rg searches the files of a batch
in the order of their names (`--sort=path`).
"""

import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from ripwrap._concurrency import in_thread
from ripwrap._ripgrep.command import Command
from ripwrap._ripgrep.decoder import FileTypes, MessageDecoder
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.process import AsyncChild, BlockingChild
from ripwrap._ripgrep.spool import MAX_RUNNING, Batch, Feed, Spool
from ripwrap._ripgrep.stream import (
    Answer,
    find_usable_rg,
    find_usable_rg_blocking,
    known_types,
    known_types_blocking,
    with_suggestions,
    with_suggestions_blocking,
)
from ripwrap.binary.probe import RgBinary
from ripwrap.binary.resolver import Rg
from ripwrap.errors import SearchError, UnknownTypeError
from ripwrap.sources.base import AnyItems, NamedSource

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class ItemAnswer(Answer[T_co], Protocol[T_co]):
    """Converter of rg's output for several batches of items. It replaces paths of temporary files by names of items."""

    def begin_batch(self, batch: Batch) -> None:
        """Prepare to read the output of rg for this batch."""
        ...


@dataclass(frozen=True, slots=True)
class ItemCommand:
    """Command of rg for a search in items (pairs of a name and a content).

    Attributes:
        command: Command for each batch of items, without globs and file types. Its directory is set for each batch.
        check: Command that searches nothing, but makes rg check the globs and file types. `None` if the caller passed
            no globs and no file types.
        selects: Function that takes the file types that rg knows. It returns another function, which takes the name of
            an item and returns True if the item is to be searched.
    """

    command: Command
    check: Command | None
    selects: Callable[[FileTypes], Callable[[str], bool]]


async def stream_items(  # noqa: C901 - no nested generators, which would take time for each item
    wanted: ItemCommand, items: AnyItems, answer: ItemAnswer[T], rg: Rg
) -> AsyncGenerator[T]:
    """Search items with rg and yield the results; other tasks run between two chunks of rg's output.

    Raises:
        BinaryError, CapabilityError, SearchError, DecodeError: See `ripwrap._ripgrep.stream.stream()`.
        Exception: The iterable `items` raised this error, or an item is not a pair of a name and a content
            (`TypeError`). The error is raised here after the results for all earlier items were yielded.
    """
    if answer.full:
        return
    binary = await find_usable_rg(wanted.command, rg)
    running: deque[tuple[AsyncChild, Batch]] = deque()
    with Spool() as spool:
        feed = Feed(items, spool, wanted.selects(await _check(wanted.check, binary)))
        try:
            while running or not feed.ended:
                if not feed.ended:
                    batch = spool.begin()
                    await feed.fill_async(batch)
                    if _is_searched(batch, spool, feed):
                        running.append((AsyncChild(binary, replace(wanted.command, cwd=batch.path)), batch))
                while running and (feed.ended or feed.slow or len(running) >= MAX_RUNNING):
                    child, batch = running.popleft()
                    answer.begin_batch(batch)
                    async with child:
                        while not answer.full and (chunk := await child.read(whole=answer.ended)):
                            for found in answer.feed(chunk):
                                if answer.full:
                                    child.kill()
                                yield found
                        if answer.full:
                            return
                        end = await child.wait()
                    for found in _end_batch(answer, end, spool, batch):
                        yield found
        finally:
            feed.close()
            for child, _ in running:
                await child.__aexit__()
        for found in _finish(answer, feed, spool):
            yield found


def stream_items_blocking(  # noqa: C901 - see `stream_items()`
    wanted: ItemCommand, items: AnyItems, answer: ItemAnswer[T], rg: Rg, timeout: float | None
) -> Generator[T]:
    """Search items and yield the results, blocking; see `stream_items()`.

    Raises:
        TimeoutError: The search took longer than `timeout` seconds; the matches that were read in time were yielded.
    """
    if answer.full:
        return
    begun = time.monotonic()
    binary = find_usable_rg_blocking(wanted.command, rg, timeout)
    running: deque[tuple[BlockingChild, Batch]] = deque()
    with Spool() as spool:
        types = _check_blocking(wanted.check, binary, timeout, begun)
        feed = Feed(items, spool, wanted.selects(types), seconds=timeout)
        try:
            while running or not feed.ended:
                if not feed.ended:
                    batch = spool.begin()
                    feed.fill(batch)
                    if _is_searched(batch, spool, feed):
                        command = replace(wanted.command, cwd=batch.path)
                        running.append((BlockingChild(binary, command, timeout, begun), batch))
                while running and (feed.ended or feed.slow or len(running) >= MAX_RUNNING):
                    child, batch = running.popleft()
                    answer.begin_batch(batch)
                    with child:
                        while not answer.full and (chunk := child.read(whole=answer.ended)):
                            for found in answer.feed(chunk):
                                if answer.full:
                                    child.kill()
                                yield found
                        if answer.full:
                            return
                        end = child.wait()
                    yield from _end_batch(answer, end, spool, batch)
        finally:
            feed.close()
            for child, _ in running:
                child.__exit__()
        yield from _finish(answer, feed, spool)


async def list_items(wanted: ItemCommand, source: NamedSource, limit: int | None, rg: Rg) -> AsyncGenerator[str]:
    """Yield the names of the items that a search would read; raise what `stream_items()` raises."""
    if limit == 0:
        return
    binary = await find_usable_rg(wanted.command, rg)
    source.selects = wanted.selects(await _check(wanted.check, binary))
    try:
        names = await in_thread(lambda: list(source.names()))
    finally:
        source.close()
    for name in names[:limit]:
        yield name


def list_items_blocking(
    wanted: ItemCommand, source: NamedSource, limit: int | None, rg: Rg, timeout: float | None
) -> Generator[str]:
    """Yield the names of the items that a search would read, blocking; see `list_items()`."""
    if limit == 0:
        return
    begun = time.monotonic()
    binary = find_usable_rg_blocking(wanted.command, rg, timeout)
    source.selects = wanted.selects(_check_blocking(wanted.check, binary, timeout, begun))
    source.deadline = None if timeout is None else begun + timeout
    try:
        names = list(source.names())
    except TimeoutError:
        raise TimeoutError(
            f"git did not list all files within timeout={timeout} seconds and was stopped; allow more time"
        ) from None
    finally:
        source.close()
    yield from names[:limit]


def _is_searched(batch: Batch, spool: Spool, feed: Feed) -> bool:
    """Return True if rg must run on a batch of items; otherwise discard the batch.

    Without any item, rg still runs once, on an empty batch, because rg must check the pattern.
    """
    searched = bool(batch.names) or (feed.ended and not spool.searched)
    if not searched:
        spool.discard(batch)
    spool.searched = spool.searched or searched
    return searched


def _end_batch(answer: ItemAnswer[T], end: Exit, spool: Spool, batch: Batch) -> Iterator[T]:
    """Yield the last results of a batch of items, which are complete only when rg has ended; raise if rg failed."""
    yield from answer.end_run(end)
    if errors := [error for error in end.path_errors() if error.path is not None]:
        raise SearchError(
            f"rg could not read the temporary file of an item ({errors[0].message}); do not delete "
            f"{spool.path} before the search has ended",
            argv=end.argv,
            returncode=end.returncode,
            stderr=end.stderr.decode("utf-8", "replace"),
        )
    spool.last_exit = end
    spool.discard(batch)


def _finish(answer: ItemAnswer[T], feed: Feed, spool: Spool) -> Iterator[T]:
    """Raise the error that ended the reading of items; without an error, yield the last results of the search."""
    if feed.error is not None:
        raise feed.error
    if spool.last_exit is not None:
        yield from answer.finish(spool.last_exit)


async def _check(command: Command | None, binary: RgBinary) -> FileTypes:
    """Run rg to check globs and file types, and return all file types that rg knows; `{}` if `command` is `None`."""
    if command is None:
        return {}
    decoder = MessageDecoder(())
    async with AsyncChild(binary, command) as child:
        while chunk := await child.read():
            list(decoder.feed(chunk))
        end = await child.wait()
    try:
        end.check(summary=decoder.summary is not None)
    except UnknownTypeError:
        raise await with_suggestions(end, binary) from None
    return await known_types(command.types(), binary)


def _check_blocking(command: Command | None, binary: RgBinary, timeout: float | None, begun: float) -> FileTypes:
    """Run rg to check globs and file types, blocking; see `_check()`."""
    if command is None:
        return {}
    decoder = MessageDecoder(())
    with BlockingChild(binary, command, timeout, begun) as child:
        while chunk := child.read():
            list(decoder.feed(chunk))
        end = child.wait()
    try:
        end.check(summary=decoder.summary is not None)
    except UnknownTypeError:
        raise with_suggestions_blocking(end, binary) from None
    return known_types_blocking(command.types(), binary, timeout)
