"""Collect the first paths or counts of a listing, and count all of them; no I/O."""

import os
import sys
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.page_collector import path_order
from ripwrap.models import FileCount, PathError

NO_LIMIT = sys.maxsize
"""Number of items that no listing reaches."""

Item = TypeVar("Item", bound=str | FileCount)
ItemOut = TypeVar("ItemOut", covariant=True)


class Decoder(Protocol[ItemOut]):
    """Interface of a decoder of rg's output into items: paths, or paths with a count."""

    def feed(self, chunk: bytes) -> Sequence[ItemOut]:
        """Return the items that `chunk` completes."""
        ...

    def close(self) -> None:
        """Check that the stream ended with a complete item."""
        ...


class BaseListingCollector(Generic[ItemOut]):
    """Base class of the collectors of the paths or counts that rg lists; it handles the exit of rg."""

    def __init__(self, decoder: Decoder[ItemOut]) -> None:
        self.end: Exit | None = None
        self.errors: tuple[PathError, ...] = ()
        self.timed_out: bool = False
        self.ended: bool = False
        self._decoder = decoder

    def end_run(self, end: Exit) -> None:
        """Raise an error if rg failed, or if its output ends with an incomplete item."""
        end.check_listing()
        self._decoder.close()

    def finish(self, end: Exit, *, timed_out: bool) -> None:
        """Store the exit of rg and its errors."""
        self.end, self.timed_out = end, timed_out
        self.errors = end.path_errors()


class ListingCollector(BaseListingCollector[Item]):
    """Collector of the paths or counts that rg lists.

    Between two chunks of output, it keeps at most `2 * max_items + 1000` items.
    """

    def __init__(
        self,
        decoder: Decoder[Item],
        max_items: int = NO_LIMIT,
        *,
        allowed: Callable[[str], bool] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Set the maximum number of items to return, and the function that chooses items."""
        super().__init__(decoder)
        self.total = 0
        self.counted = 0
        self._max_items = max_items
        self._allowed = allowed
        self._progress = progress
        self._items: list[Item] = []
        self._ordered = False

    def begin_ordered(self) -> None:
        """Keep the order of all further items, which come after the items so far; `allowed` is not asked for these."""
        self._trim()
        self._ordered = True
        self._allowed = None  # these are items of a place, which were selected by their names

    def feed(self, chunk: bytes) -> None:
        """Process a chunk of rg's output."""
        items = self._decoder.feed(chunk)
        if self._allowed is not None:
            items = [item for item in items if self._allowed(_path(item))]
        self.total += len(items)
        if items and isinstance(items[0], FileCount):  # then all items are counts
            self.counted += sum(item.count for item in items if isinstance(item, FileCount))
        self._items += items
        if len(self._items) > 2 * self._max_items + 1000:
            self._trim()
        if self._progress is not None:
            self._progress(self.total)

    def every(self) -> list[Item]:
        """Return all items that are in memory, in any order."""
        return self._items

    def items(self) -> list[Item]:
        """Return the first items in path order."""
        self._trim()
        return self._items

    def _trim(self) -> None:
        if not self._ordered:
            self._items.sort(key=lambda item: path_order(os.fsencode(_path(item))))
        del self._items[self._max_items :]


def _path(item: str | FileCount) -> str:
    return item if isinstance(item, str) else item.path
