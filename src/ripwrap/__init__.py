"""The typed Python API of ripgrep: files, trees and matches out of `rg`, as they are found.

```python
import asyncio

import ripwrap


async def main():
    async for match in ripwrap.search(r"TODO", cwd="docs/demo", glob="*.py", sort="path"):
        print(match.path, match.line_number, match.text.strip())


asyncio.run(main())
```

```text
shop/cart.py 5 # TODO: taxes
shop/till.py 1 def pay(amount):  # TODO: cards
```

A name is loaded when it is first used, which takes a fifth of a second: `from ripwrap import search` at the top of a
module has that done before an event loop runs.

General layout, each module using only those to its right (`[tool.importlinter]` in pyproject.toml has them all); where
a name has an underscore, it is ours alone:

    cli, mcp → sync → workspace → _rank → _grep, _tree, _modes → results → _search, _files → _rg.collect,
    _rg.stream → _rg.process → _rg.sifter → _rg.argv, _rg.decoder, _rg.stderr, binary → _ranking → models,
    options, errors
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ripwrap import binary, sync
    from ripwrap._files import files
    from ripwrap._grep import grep
    from ripwrap._modes import count, count_matches, file_types, files_with_matches, files_without_match
    from ripwrap._rank import rank
    from ripwrap._rg.limiter import limit_processes
    from ripwrap._search import search, search_messages
    from ripwrap._tree import render_tree, tree, tree_text
    from ripwrap.binary import RgBinary
    from ripwrap.errors import (
        AccessDeniedError,
        BinaryError,
        BinaryNotFoundError,
        CapabilityError,
        ChecksumMismatchError,
        DecodeError,
        DownloadFailedError,
        EmbeddingError,
        ExtractionFailedError,
        GlobError,
        PatternError,
        RipwrapError,
        SearchError,
        UnknownTypeError,
        UnsupportedPlatformError,
    )
    from ripwrap.models import (
        Begin,
        Context,
        Elapsed,
        End,
        FileCount,
        Match,
        Message,
        PathError,
        Range,
        Stats,
        Submatch,
        Summary,
        TreeEntry,
    )
    from ripwrap.options import FileOptions, SearchOptions
    from ripwrap.results import FileMatches, GrepMatch, GrepResult, RankedChunk, TreeText
    from ripwrap.workspace import Workspace

__all__ = [
    "AccessDeniedError",
    "Begin",
    "BinaryError",
    "BinaryNotFoundError",
    "CapabilityError",
    "ChecksumMismatchError",
    "Context",
    "DecodeError",
    "DownloadFailedError",
    "Elapsed",
    "EmbeddingError",
    "End",
    "ExtractionFailedError",
    "FileCount",
    "FileMatches",
    "FileOptions",
    "GlobError",
    "GrepMatch",
    "GrepResult",
    "Match",
    "Message",
    "PathError",
    "PatternError",
    "Range",
    "RankedChunk",
    "RgBinary",
    "RipwrapError",
    "SearchError",
    "SearchOptions",
    "Stats",
    "Submatch",
    "Summary",
    "TreeEntry",
    "TreeText",
    "UnknownTypeError",
    "UnsupportedPlatformError",
    "Workspace",
    "binary",
    "count",
    "count_matches",
    "file_types",
    "files",
    "files_with_matches",
    "files_without_match",
    "grep",
    "limit_processes",
    "rank",
    "render_tree",
    "search",
    "search_messages",
    "sync",
    "tree",
    "tree_text",
]

# A public name is loaded when it is first used, as Pydantic's are: who searches needs none of the agents' tools. It is
# one of these modules, or is looked for in the rooms below them, the lightest first.
_MODULES = ("answers", "binary", "errors", "models", "options", "render", "results", "sync", "workspace")
_ROOMS = (
    "errors",
    "models",
    "options",
    "_rg.limiter",
    "binary",
    "_files",
    "_search",
    "_modes",
    "results",
    "_tree",
    "_grep",
    "_rank",
    "workspace",
)

if not TYPE_CHECKING:  # or every name would be one of ours

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return import_module(f"{__name__}.{name}")
        if name in __all__:
            for room in _ROOMS:
                module = import_module(f"{__name__}.{room}")
                if name in vars(module):
                    return globals().setdefault(name, vars(module)[name])
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__, *_MODULES})
