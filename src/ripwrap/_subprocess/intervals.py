"""Pauses between two checks of a process or a pipe."""

import time
from collections.abc import Iterator


def poll_intervals(seconds: float, longest: float = 0.02) -> Iterator[float]:
    """Yield pauses in seconds: first 0.1 ms, then twice the previous pause, up to `longest`; stop after `seconds`."""
    deadline = time.monotonic() + seconds
    pause = 0.0001
    while time.monotonic() < deadline:
        yield pause
        pause = min(2 * pause, longest)
