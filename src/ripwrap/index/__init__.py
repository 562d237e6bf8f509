"""Ranked search with a stored index: `Index`. It needs the extra `index`, which installs tantivy.

`Index` splits files into chunks. If the extra `code` is installed, files are split at definitions, otherwise by
lines. With the extra `vectors` and an embedder, `Index` also finds chunks by meaning.

async with ripwrap.index.Index("src") as index:
    for result in await index.search("how are cookies stored"):
        print(result.path, result.start_line, result.symbol)
"""

import sys
import warnings
from typing import TYPE_CHECKING, Any

from ripwrap.index.core import Index
from ripwrap.index.embeddings.protocol import Destination, Embedder, Limits
from ripwrap.index.models import (
    CheckResult,
    EmbeddingFailure,
    IndexedModel,
    IndexStatus,
    IndexView,
    Progress,
    PruneResult,
    RefreshResult,
    Skipped,
)

if TYPE_CHECKING:
    from ripwrap.index.embeddings.registry import DetectedProvider, detect, embedder

__all__ = [
    "CheckResult",
    "Destination",
    "DetectedProvider",
    "Embedder",
    "EmbeddingFailure",
    "Index",
    "IndexStatus",
    "IndexView",
    "IndexedModel",
    "Limits",
    "Progress",
    "PruneResult",
    "RefreshResult",
    "Skipped",
    "detect",
    "embedder",
]

_RENAMED = {
    "Collected": PruneResult,
    "IndexHealth": CheckResult,
    "NotEmbedded": EmbeddingFailure,
    "Refreshed": RefreshResult,
}


if not TYPE_CHECKING:  # with `__getattr__()`, a type checker would accept any name

    def __getattr__(name: str) -> Any:
        if name in _RENAMED:
            new = _RENAMED[name]
            message = f"ripwrap.index.{name} is deprecated; use ripwrap.index.{new.__name__}"
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            return new
        if name not in ("DetectedProvider", "detect", "embedder"):  # these load an HTTP client
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])
        from ripwrap.index.embeddings import registry  # late: it imports an HTTP client

        return globals().setdefault(name, getattr(registry, name))

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
