"""Ranked search with an index that is kept: `Index`. It needs nothing but Python's own SQLite.

With the extra `syntax` files are cut at their definitions, and with `vectors` and an embedder found by meaning, too.

async with ripwrap.index.Index("src") as index:
    for place in await index.search("how are cookies stored"):
        print(place.path, place.start_line, place.symbol)
"""

from ripwrap.index.core import Index
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

__all__ = [
    "Collected",
    "Index",
    "IndexHealth",
    "IndexStatus",
    "IndexView",
    "NotEmbedded",
    "Progress",
    "Refreshed",
    "Skipped",
]
