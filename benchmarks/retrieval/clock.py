"""Measure wall time and CPU time of calls; CPU time includes that of ended child processes, such as rg."""

import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class Timing(NamedTuple):
    """Wall time and CPU time of a call, in seconds."""

    wall: float
    cpu: float


def timed(call: Callable[[], T]) -> tuple[T, Timing]:
    """Call a function, and return its result and timing."""
    begun, used = time.perf_counter(), _used()
    done = call()
    return done, Timing(time.perf_counter() - begun, _used() - used)


def _used() -> float:
    """Return the CPU seconds of this process and its ended children so far; POSIX only."""
    import resource

    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def percentile(calls: Sequence[Timing], share: float = 0.5) -> Timing:
    """Return a percentile of the wall times and of the CPU times; `share` is from 0 to 1 [default: the median]."""

    def at(figures: list[float]) -> float:
        return sorted(figures)[math.ceil(len(figures) * share) - 1]

    return Timing(at([one.wall for one in calls]), at([one.cpu for one in calls]))
