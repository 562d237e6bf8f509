"""How much the tests with random or many inputs try: less in CI, more in `nox -s stress`, which sets RIPWRAP_STRESS."""

import os
from collections.abc import Iterable
from typing import TypeVar

STRESS = bool(os.environ.get("RIPWRAP_STRESS"))

T = TypeVar("T")


def times(usual: int, stress: int) -> int:
    """Return how often to try something: `usual` times, or `stress` times in `nox -s stress`."""
    return stress if STRESS else usual


def some(cases: Iterable[T], usual: int) -> list[T]:
    """Return `usual` of the cases at even distances, the first and the last among them; all in `nox -s stress`."""
    every = [*cases]
    if STRESS or len(every) <= usual:
        return every
    return [every[number * (len(every) - 1) // (usual - 1)] for number in range(usual)]
