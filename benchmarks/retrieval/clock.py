"""What a call takes: by the clock, and of the processors, its ended children such as rg included."""

import math
import resource
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class Took(NamedTuple):
    """What a call took: seconds by the clock, and seconds of the processors."""

    wall: float
    cpu: float


def took(call: Callable[[], T]) -> tuple[T, Took]:
    """Call, and say what it took."""
    begun, used = time.perf_counter(), _used()
    done = call()
    return done, Took(time.perf_counter() - begun, _used() - used)


def _used() -> float:
    """CPU seconds of this process and of its ended children so far."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def middle(calls: Sequence[Took], share: float = 0.5) -> Took:
    """Return a percentile of each figure."""

    def at(figures: list[float]) -> float:
        return sorted(figures)[math.ceil(len(figures) * share) - 1]

    return Took(at([one.wall for one in calls]), at([one.cpu for one in calls]))
