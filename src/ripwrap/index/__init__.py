"""Ranked search with a stored index: `Index`. It needs the extra `index`, which installs tantivy.

`Index` splits files into chunks. If the extra `code` is installed, files are split at definitions, otherwise by
lines. With the extra `vectors` and an embedder, `Index` also finds chunks by meaning.

async with ripwrap.index.Index("src") as index:
    for result in await index.search("how are cookies stored"):
        print(result.path, result.start_line, result.symbol)
"""

import sys
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ripwrap.index.core import Index
    from ripwrap.index.embeddings.protocol import Destination, Embedder, Limits
    from ripwrap.index.embeddings.registry import DetectedProvider, detect, embedder
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

_MODULES = {
    "core": "Index",
    "embeddings.protocol": "Destination Embedder Limits",
    "embeddings.registry": "DetectedProvider detect embedder",
    "models": (
        "CheckResult EmbeddingFailure IndexedModel IndexStatus IndexView Progress PruneResult RefreshResult Skipped"
    ),
}
"""Map a module to its public names, which are loaded when they are first used: the processes that split files need few
modules.
"""
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}
_RENAMED = {
    "Collected": "PruneResult",
    "IndexHealth": "CheckResult",
    "NotEmbedded": "EmbeddingFailure",
    "Refreshed": "RefreshResult",
}

if not TYPE_CHECKING:  # with `__getattr__()`, a type checker would accept any name

    def __getattr__(name: str) -> Any:
        if new := _RENAMED.get(name):
            message = f"ripwrap.index.{name} is deprecated; use ripwrap.index.{new}"
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            return getattr(sys.modules[__name__], new)
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])
        return globals().setdefault(name, getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name))

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
