"""Ranked search with an index that is kept: `Index`. It needs nothing but Python's own SQLite.

With the extra `syntax` files are cut at their definitions, and with `vectors` and an embedder found by meaning, too.

async with ripwrap.index.Index("src") as index:
    for place in await index.search("how are cookies stored"):
        print(place.path, place.start_line, place.symbol)
"""

import sys
from typing import TYPE_CHECKING, Any

from ripwrap.index.core import Index
from ripwrap.index.embed import Destination, Embedder, Limits
from ripwrap.index.models import (
    Collected,
    IndexHealth,
    IndexStatus,
    IndexView,
    NotEmbedded,
    Progress,
    Refreshed,
    Skipped,
)

if TYPE_CHECKING:
    from ripwrap.index.providers import embedder

__all__ = [
    "Collected",
    "Destination",
    "Embedder",
    "Index",
    "IndexHealth",
    "IndexStatus",
    "IndexView",
    "Limits",
    "NotEmbedded",
    "Progress",
    "Refreshed",
    "Skipped",
    "embedder",
]


if not TYPE_CHECKING:  # or every name would be one of ours

    def __getattr__(name: str) -> Any:
        if name != "embedder":  # which loads an HTTP client
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])
        from ripwrap.index.providers import embedder

        return globals().setdefault(name, embedder)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
