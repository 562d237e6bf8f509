"""Ranked search with an index that is kept: `Index`. It needs nothing but Python's own SQLite.

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
    "Progress",
    "Refreshed",
    "Skipped",
]
