"""Limit the number of rg processes that run at a time for calls such as `grep()`.

Such a call holds a slot while it runs rg, and waits for a slot if all are taken. Streams take no slot. A consumer may
read a stream in part and then open another one. If each stream held a slot, two such consumers could wait for each
other for ever. Each event loop has its own slots, because an `anyio.CapacityLimiter` belongs to one loop. All threads
that call blocking operations share one set of slots.
"""

import os
import sys
import threading
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, suppress

import anyio
from anyio.lowlevel import RunVar


class _Slots:
    """Slots for blocking calls: a call holds a slot while it runs rg, and waits for a slot if all are taken.

    Async calls have other slots, in an `anyio.CapacityLimiter`.
    """

    def __init__(self) -> None:
        self.total = max(4, os.cpu_count() or 0)
        self.reset()

    def reset(self) -> None:
        """Free all slots after a fork: `fork(2)` copies only one thread, so no thread of the child holds a slot."""
        self._released = threading.Condition()
        self._running = 0
        self._thread = threading.local()

    def set_total(self, total: int) -> None:
        """Change the number of slots."""
        with self._released:
            self.total = total
            self._released.notify_all()

    @contextmanager
    def held(self, seconds: float | None) -> Generator[bool]:
        """Wait at most `seconds` for a slot, and hold it; the value is False if there was none in time."""
        taken = self._take(seconds)
        try:
            yield taken
        finally:
            if taken:
                self._free()

    def _take(self, seconds: float | None) -> bool:
        # A signal or log handler may search in a thread that already holds a slot. Both searches then share that slot.
        # If the handler waited for a second slot, it could wait for ever, because the thread cannot free the first one
        # until the handler returns.
        depth = getattr(self._thread, "depth", 0)
        if not depth:
            with self._released:
                if not self._released.wait_for(lambda: self._running < self.total, seconds):
                    return False
                self._running += 1
        self._thread.depth = depth + 1
        return True

    def _free(self) -> None:
        self._thread.depth -= 1
        if not self._thread.depth:
            with self._released:
                self._running -= 1
                self._released.notify()


_SLOTS = _Slots()
_LIMITER: "RunVar[anyio.CapacityLimiter]" = RunVar("ripwrap_limiter")

if sys.platform != "win32":
    os.register_at_fork(after_in_child=_SLOTS.reset)


def limit_processes(number: int) -> None:
    """Set how many rg processes may run at a time for calls that collect their answer, such as `grep()`.

    There are `number` slots, and such a call holds a slot while rg runs. If all slots are taken, the call waits for a
    slot, which counts for its `timeout`. Each event loop has its own slots. The blocking operations of all
    threads share another set of slots. The new number applies from the next call on; running searches continue.
    Streams, such as `search()` and `files()`, and `grep_in()` take no slot; limit the number of these calls yourself.

    The default is the number of CPUs, but at least 4.

    Args:
        number: Number of rg processes at a time, 1 or more.

    Raises:
        ValueError: `number` is less than 1.
        TypeError: `number` is not an int.
    """
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError(f"number must be an int, got {type(number).__name__}")
    if number < 1:
        raise ValueError(f"number must be 1 or more, got {number}")
    _SLOTS.set_total(number)
    with suppress(RuntimeError):  # there may be no event loop here
        slot()


def slot() -> "anyio.CapacityLimiter":
    """Return the async context manager in which an async call runs rg; entering it waits for a slot of this loop."""
    limiter = _LIMITER.get(None)
    if limiter is None:
        limiter = anyio.CapacityLimiter(_SLOTS.total)
        _LIMITER.set(limiter)
    elif limiter.total_tokens != _SLOTS.total:
        limiter.total_tokens = _SLOTS.total
    return limiter


def blocking_slot(seconds: float | None) -> AbstractContextManager[bool]:
    """Return the context manager in which a blocking call runs rg; its value is False if no slot was free in time."""
    return _SLOTS.held(seconds)
