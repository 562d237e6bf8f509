"""Write items (pairs of name and bytes) into temporary files, in batches; each rg process searches one batch.

rg searches these files as a directory. So lines, encodings, binary files and limits for each file work as in any search
of a directory, and no match can span two items. One text on stdin would take as long, and `multiline`, `^` and NUL
would reach across items. The name of a file is the number of its item, because an item may have any name, and two items
may have the same name.
"""

import math
import os
import shutil
import threading
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Any, Self, cast

from ripwrap._system.concurrency import in_thread
from ripwrap._system.subprocess import TemporaryFolder
from ripwrap._text import plural, raw_bytes
from ripwrap.errors import SearchError
from ripwrap.sources.base import AnyItems, Item, Source

MAX_BATCH_BYTES = 16 << 20
"""Number of bytes at which a batch of items is full. With its last item, a batch may exceed this number."""

MAX_BATCH_ITEMS = 2048
"""Number of items at which a batch is full. The first batches are smaller; see `FIRST_BATCH_ITEMS`."""

FIRST_BATCH_ITEMS = 64
"""Maximum number of items in the first batch, which is small so that the first matches come soon.

The maximum doubles after each full batch, up to `MAX_BATCH_ITEMS`.
"""

SLOW_SECONDS = 0.1
"""Seconds that a batch waits for items. After this time, the batch is searched although it is not full."""

MAX_RUNNING = max(2, min(4, os.cpu_count() or 2))
"""Maximum number of rg processes of one call at a time. Each has one thread, so that items keep their order."""

_PIECE_BYTES = 1 << 20
"""Number of bytes of an item that are written at a time. The end of a search waits for the current piece."""

_PENDING_BYTES = 1 << 20
"""Number of bytes of items from an async iterable that are held in memory before a thread writes them to files."""

_PENDING_ITEMS = 256
"""Number of items from an async iterable that are held in memory before a thread writes them to files."""


class OverdueError(TimeoutError):
    """Error for a time limit that was reached before all items were read."""


@dataclass(slots=True)
class Batch:
    """Items that one rg process searches."""

    path: str
    first: int
    names: list[str] = field(default_factory=list[str])
    size: int = 0

    def name_of(self, path: str) -> str:
        """Return the name of an item, given the path of its temporary file in the batch directory."""
        return self.names[int(path) - self.first]


class Spool:
    """Private temporary directory for batches; leaving the context manager deletes it.

    The directory is also deleted when this object is garbage collected, and when the interpreter exits. If Python is
    killed by SIGKILL, the directory remains.
    """

    def __init__(self) -> None:
        self._folder = TemporaryFolder("ripwrap-items-")
        self.path: str = self._folder.path
        self._batches = 0
        self._items = 0
        self._old: list[Batch] = []
        self._lock = threading.Lock()
        self.closed: bool = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.closed = True
        with self._lock:  # a thread may still write an item; it stops after the current piece
            self._folder.delete()

    def begin(self) -> Batch:
        """Return an empty batch."""
        self._batches += 1
        batch = Batch(os.path.join(self.path, str(self._batches)), self._items)
        try:
            os.mkdir(batch.path, 0o700)
        except OSError as error:
            raise _disk_error(error) from error
        return batch

    def add(self, batch: Batch, name: str, content: bytes | IO[bytes], most: float = math.inf) -> None:
        """Write an item of at most `most` bytes into a batch, unless the search has ended."""
        path = os.path.join(batch.path, f"{self._items:012}")
        with self._lock:
            if self.closed:  # the search has ended, but its thread still runs
                return
            try:
                with open(path, "xb", buffering=0) as file:
                    for piece in _pieces(content):
                        left = piece
                        while left:
                            left = left[file.write(left) :]
                        if self.closed:  # the search has ended meanwhile
                            return
                        if file.tell() > most:
                            break
                    size = file.tell()
                if size > most:
                    os.unlink(path)
                    return
            except OSError as error:
                with suppress(OSError):
                    os.unlink(path)
                raise _disk_error(error) from error
        self._items += 1
        batch.names.append(name)
        batch.size += size

    def discard(self, batch: Batch) -> None:
        """Mark a batch for deletion by `sweep()`."""
        self._old.append(batch)

    def sweep(self) -> None:
        """Delete the discarded batches."""
        while self._old:
            shutil.rmtree(self._old.pop().path, ignore_errors=True)


class Feed:
    """Reader of the items, which writes them into batches. It takes only as many items as the batches need."""

    def __init__(
        self,
        items: AnyItems,
        spool: Spool,
        selects: Callable[[str], bool],
        *,
        seconds: float | None = None,
        most: Callable[[str], float] = lambda name: math.inf,  # noqa: ARG005
    ) -> None:
        self.ended: bool = False
        self.slow: bool = False
        self.error: Exception | None = None
        self._selects, self._most = selects, most
        self._source = items if isinstance(items, Source) else None
        if self._source is not None:
            self._source.selects = selects
            self._source.deadline = None if seconds is None else time.monotonic() + seconds
        self._spool = spool
        self._seconds = seconds
        self._begun = time.monotonic()
        self._max_items = FIRST_BATCH_ITEMS
        self._async = aiter(items) if isinstance(items, AsyncIterable) else None
        self._items = iter(items) if isinstance(items, Iterable) else iter(())

    @property
    def is_async(self) -> bool:
        """True if `fill_async()` is to be used in place of `fill()`."""
        return self._async is not None

    def fill(self, batch: Batch) -> None:
        """Take items and write them into the batch."""
        self._spool.sweep()
        begun = time.monotonic()
        try:
            for item in self._items:
                self._write(batch, item)
                del item  # the next item needs the memory
                if self._is_full(batch, begun):
                    break
            else:
                self.ended = True
        except MemoryError:
            self.error, self.ended = SearchError("too little memory to read the next item; search fewer items"), True
        except TimeoutError as error:  # a source ends with it at the time limit
            self.error, self.ended = OverdueError(*error.args) if self._is_over() else error, True
        except Exception as error:  # noqa: BLE001 - raised after the matches of the items before it
            self.error, self.ended = error, True

    async def fill_async(self, batch: Batch) -> None:
        """Fill a batch as in `fill()`, with the items of an async iterable."""
        if self._async is None:
            raise TypeError("the items are not an async iterable")
        await in_thread(self._spool.sweep)
        begun = time.monotonic()
        pending: list[Item] = []
        try:
            while not self._is_full(batch, begun):
                pending = await self._draw(self._async, begun)
                await in_thread(lambda: self._write_all(batch, pending))  # noqa: B023 - called before the next loop
                if self.ended:
                    break
        except Exception as error:  # noqa: BLE001 - raised after the matches of the items before it
            self.error, self.ended = self.error or error, True

    async def _draw(self, items: AsyncIterator[Item], begun: float) -> list[Item]:
        """Return the next items of an async iterable, at most as many as one call of a worker thread writes."""
        drawn: list[Item] = []
        size = 0
        while size < _PENDING_BYTES and len(drawn) < _PENDING_ITEMS and time.monotonic() - begun < SLOW_SECONDS:
            try:
                drawn.append(await anext(items))
            except StopAsyncIteration:
                self.ended = True
                break
            except Exception as error:  # noqa: BLE001 - see `fill()`
                self.error, self.ended = error, True
                break
            size += len(drawn[-1][1])
        return drawn

    def close(self) -> None:
        """Close the items if they are a `Source`, also while a thread reads them; other iterables stay open."""
        if self._source is not None:
            self._source.close()
            with suppress(ValueError):  # another thread iterates; it will find that the source is closed
                cast("Generator[Item]", self._items).close()

    def _write_all(self, batch: Batch, items: Iterable[Item]) -> None:
        for item in items:
            self._write(batch, item)

    def _write(self, batch: Batch, item: Item) -> None:
        name, content = check_item(item, files=self._source is not None)
        if self._source is not None or self._selects(name):
            self._spool.add(batch, name, content, self._most(name))

    def _is_over(self) -> bool:
        return self._seconds is not None and time.monotonic() - self._begun >= self._seconds

    def _is_full(self, batch: Batch, begun: float) -> bool:
        now = time.monotonic()
        if self._is_over():
            self.error = OverdueError(
                f"timeout={self._seconds} seconds passed before all items were read; allow more time"
            )
            self.ended = True
        if self.ended or self._spool.closed:
            return True
        full = batch.size >= MAX_BATCH_BYTES or len(batch.names) >= self._max_items
        if full:
            self._max_items = min(2 * self._max_items, MAX_BATCH_ITEMS)
        self.slow = not full and now - begun >= SLOW_SECONDS
        return full or self.slow


def has_at_most(content: bytes | IO[bytes], most: float) -> bool:
    """Return True if the content of an item has at most `most` bytes; read no more of it than is needed."""
    return most == math.inf or all((most := most - len(piece)) >= 0 for piece in _pieces(content))


def _pieces(content: bytes | IO[bytes]) -> Iterator[memoryview]:
    """Yield the content of an item in pieces, between which the search may end."""
    if isinstance(content, (bytes, bytearray, memoryview)):
        whole = memoryview(content)
        yield from (whole[start : start + _PIECE_BYTES] for start in range(0, len(whole), _PIECE_BYTES))
    else:
        while piece := content.read(_PIECE_BYTES):
            yield memoryview(piece)


def check_items(items: object, *, blocking: bool = False) -> None:
    """Raise `TypeError` if `items` is not an iterable of items; a blocking call does not accept an async iterable."""
    if isinstance(items, AsyncIterable) and blocking:
        raise TypeError("a blocking function cannot take an async iterable as items; call the async function")
    if not isinstance(items, (Iterable, AsyncIterable)) or isinstance(items, (str, bytes)):
        raise TypeError(f"items must be an iterable of pairs (name, bytes or str), got {type(items).__name__}")


def check_item(item: Any, *, files: bool) -> tuple[str, bytes | IO[bytes]]:
    """Return the name and the bytes of an item; with `files`, also the open file that has them."""
    try:
        if isinstance(item, (str, bytes, dict, set, frozenset)):
            raise TypeError
        name, content = item
    except (TypeError, ValueError):
        raise TypeError(
            f"an item must be a pair (name, bytes or str), got {type(cast('object', item)).__name__}"
        ) from None
    if not isinstance(name, str):
        raise TypeError(f"the name of an item must be a str, got {type(name).__name__}")
    if isinstance(content, str):
        return name, raw_bytes(content)
    if not isinstance(content, (bytes, bytearray, memoryview)) and not (files and hasattr(content, "readinto")):
        raise TypeError(f"the content of the item {name!r} must be bytes or str, got {type(content).__name__}")
    return name, cast("bytes", content)


def _disk_error(error: OSError) -> SearchError:
    return SearchError(
        f"could not write items to a temporary file: {error.strerror or error}; set TMPDIR to a writable directory "
        "with enough free space "
        f"({plural(MAX_BATCH_BYTES * (MAX_RUNNING + 1) >> 20, 'MiB', '')}, or more for larger items)"
    )
