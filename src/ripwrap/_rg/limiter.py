"""How many rg may run at a time for operations that collect their answer; the others wait for their turn.

A stream has no part in it: it may be left half read, and two that wait for each other's turn would wait for ever. Each
event loop counts its own, and all threads that call the blocking operations count together.
"""

import os
import threading
from contextlib import suppress
from typing import Self

import anyio
from anyio.lowlevel import RunVar


class _Turns:
    """`anyio.CapacityLimiter` for threads.

    Attributes:
        total: How many there may be at a time.
    """

    def __init__(self) -> None:
        self.total = max(4, os.cpu_count() or 0)
        self.forget()

    def forget(self) -> None:
        """Begin anew: in a forked process those threads are gone that would have ended their turn."""
        self._ended = threading.Condition()
        self._running = 0
        self._mine = threading.local()

    def set_total(self, total: int) -> None:
        """Change how many there may be."""
        with self._ended:
            self.total = total
            self._ended.notify_all()

    def __enter__(self) -> Self:
        # A thread that has a turn may want another, from a handler of signals or of logs: it would wait for itself.
        depth = getattr(self._mine, "depth", 0)
        if not depth:
            with self._ended:
                self._ended.wait_for(lambda: self._running < self.total)
                self._running += 1
        self._mine.depth = depth + 1
        return self

    def __exit__(self, *_: object) -> None:
        self._mine.depth -= 1
        if not self._mine.depth:
            with self._ended:
                self._running -= 1
                self._ended.notify()


_TURNS = _Turns()
_LIMITER: RunVar[anyio.CapacityLimiter] = RunVar("ripwrap_limiter")

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_TURNS.forget)


def limit_processes(number: int) -> None:
    """Set how many rg may run at a time for calls that collect, as `grep()` and `rank()` do.

    A call beyond that waits, and its `timeout` begins with its turn. Each event loop counts by itself, and takes note
    of a new number here or at its next call; the blocking operations count together, in whatever threads they are
    called. What runs already is not ended. A stream (`search()`, `files()`, …) neither waits nor counts: whoever holds
    many open bounds them.

    Without a call, the number is that of the machine's CPUs, but at least 4.

    Args:
        number: 1 or more.

    Raises:
        ValueError: It is less than 1.
        TypeError: It is not a whole number.
    """
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError(f"number should be an int, not {type(number).__name__}")
    if number < 1:
        raise ValueError(f"number should be 1 or more, not {number}")
    _TURNS.set_total(number)
    with suppress(RuntimeError):  # there may be no event loop here
        turn()


def turn() -> anyio.CapacityLimiter:
    """What a task enters to run one rg, and leaves when that is gone."""
    limiter = _LIMITER.get(None)
    if limiter is None:
        limiter = anyio.CapacityLimiter(_TURNS.total)
        _LIMITER.set(limiter)
    elif limiter.total_tokens != _TURNS.total:
        limiter.total_tokens = _TURNS.total
    return limiter


def turn_blocking() -> _Turns:
    """What a thread enters to run one rg, and leaves when that is gone."""
    return _TURNS
