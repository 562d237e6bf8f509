"""Paths or counts to the first of them that are wanted, and to how many there are in all: pure, no I/O."""

import os
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from ripwrap._rg.exit import Exit
from ripwrap._rg.sifter import path_order
from ripwrap.models import FileCount

Item = TypeVar("Item", bound=str | FileCount)
ItemOut = TypeVar("ItemOut", covariant=True)


class Decoder(Protocol[ItemOut]):
    """What a listing's bytes are made into items by."""

    def feed(self, chunk: bytes) -> Sequence[ItemOut]:
        """The items that `chunk` completes."""
        ...

    def close(self) -> None:
        """Check that the stream ended with an item."""
        ...


class Intake(Generic[ItemOut]):
    """What takes in a listing, as far as its end is concerned.

    Attributes:
        end: How rg ended; `None` if there was none.
        timed_out: Whether that was because its time was over.
        ended: Nothing tells the last item.
    """

    def __init__(self, decoder: Decoder[ItemOut]) -> None:
        self.end: Exit | None = None
        self.timed_out = self.ended = False
        self._decoder = decoder
        self._any = False

    def finish(self, end: Exit, *, timed_out: bool) -> None:
        """Take note of the end; raises unless rg gave an answer, or was not given the time for one."""
        self.end, self.timed_out = end, timed_out and not end.partial
        if not self.timed_out:
            end.check_listing(listed=self._any)
            self._decoder.close()


class Gathered(Intake[Item]):
    """Takes in a listing; what is held is bounded by what is wanted.

    Attributes:
        total: How many items have come, without those that were refused.
        counted: What their counts add up to; 0 for paths.
    """

    def __init__(
        self,
        decoder: Decoder[Item],
        upto: int,
        *,
        allowed: Callable[[str], bool] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Take the first `upto` items, by path.

        Args:
            decoder: Makes the items.
            upto: How many are wanted.
            allowed: Whether an item of that path is taken at all.
            progress: Called with `total` after every chunk.
        """
        super().__init__(decoder)
        self.total = 0
        self.counted = 0
        self._upto = upto
        self._allowed = allowed
        self._progress = progress
        self._items: list[Item] = []

    def feed(self, chunk: bytes) -> None:
        """Take in what rg has written."""
        items = self._decoder.feed(chunk)
        self._any = self._any or bool(items)
        if self._allowed is not None:
            items = [item for item in items if self._allowed(_path(item))]
        self.total += len(items)
        self.counted += sum(item.count for item in items if isinstance(item, FileCount))
        self._items += items
        if len(self._items) > 2 * self._upto + 1000:
            self._cut()
        if self._progress is not None:
            self._progress(self.total)

    def every(self) -> list[Item]:
        """All items that are held, in no order."""
        return self._items

    def items(self) -> list[Item]:
        """The first items, by path."""
        self._cut()
        return self._items

    def _cut(self) -> None:
        self._items.sort(key=lambda item: path_order(os.fsencode(_path(item))))
        del self._items[self._upto :]


def _path(item: str | FileCount) -> str:
    return item if isinstance(item, str) else item.path
