"""What the tools of a workspace have answered, to say in later answers what has changed since; no I/O."""

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple, Protocol

MAX_CALLS = 1_000
"""Maximum number of calls that are remembered; the oldest are forgotten."""

MIN_CHARS = 300
"""Minimum length of an answer that is not shown again, in characters; a shorter one costs little."""


class PagedArguments(Protocol):
    """Arguments of a tool whose answers have pages."""

    @property
    def offset(self) -> int:
        """Number of results before the page."""
        ...

    def model_copy(self, *, update: Mapping[str, Any] | None = None) -> Hashable:
        """Return the arguments with other values."""
        ...


class Remembered(NamedTuple):
    """Value that an earlier call has left, and the seconds since then."""

    value: Hashable
    seconds: float


class Memory:
    """Values by calls, in memory as long as the workspace; any thread may use it."""

    def __init__(self) -> None:
        self._values: OrderedDict[Hashable, tuple[Hashable, float]] = OrderedDict()
        self._lock = threading.Lock()

    def exchange(self, call: Hashable, value: Hashable) -> Remembered | None:
        """Remember a value for a call, and return the value that was remembered before; `None` if there is none.

        If the value is the same, the time of the first one stays.
        """
        now = time.monotonic()
        with self._lock:
            before = self._values.pop(call, None)
            self._values[call] = before if before is not None and before[0] == value else (value, now)
            if len(self._values) > MAX_CALLS:
                self._values.popitem(last=False)
        return None if before is None else Remembered(before[0], now - before[1])


def page_note(memory: Memory, arguments: PagedArguments, counts: tuple[int | None, ...]) -> str:
    """Return a sentence if the counts of all results are others than on the page before; empty if they are the same."""
    before = memory.exchange(arguments.model_copy(update={"offset": 0}), counts)
    if not arguments.offset or before is None or before.value == counts:
        return ""
    return "Files have changed since the page before, so results may be missing or shown twice; offset=0 begins anew."


def digest_of(text: str) -> bytes:
    """Return a short digest of an answer."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
