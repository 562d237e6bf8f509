"""The typed Python API of ripgrep: stream files and matches out of `rg` as they are found.

```python
import asyncio

import ripwrap


async def main():
    async for match in ripwrap.search(r"TODO", cwd="demo", glob="*.py", sort="path"):
        print(match.path, match.line_number, match.text.strip())


asyncio.run(main())
```

```text
shop/cart.py 5 # TODO: taxes
shop/till.py 1 def pay(amount):  # TODO: cards
```

A public name is loaded when it is first used; the first load takes 0.2 s. To load a name before an event loop runs,
import it at the top of a module: `from ripwrap import search`.

Names that begin with an underscore are private.
"""

import logging
import sys
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ripwrap import binary, sync
    from ripwrap._code.outline import Section
    from ripwrap._code.references import Reference, References
    from ripwrap._edits.replace import ReplacePlan, replace, undo
    from ripwrap._edits.structure import replace_code, search_code
    from ripwrap._operations.columns import search_columns
    from ripwrap._operations.combine import files_matching
    from ripwrap._operations.counts import count, count_matches, file_types, files_with_matches, files_without_match
    from ripwrap._operations.coverage import coverage, why
    from ripwrap._operations.expand import expand
    from ripwrap._operations.files import files
    from ripwrap._operations.grep import grep
    from ripwrap._operations.history import search_history
    from ripwrap._operations.outline import outline
    from ripwrap._operations.rank import rank
    from ripwrap._operations.references import references
    from ripwrap._operations.search import search, search_messages
    from ripwrap._operations.streams import grep_in, search_in
    from ripwrap._operations.tree import tree, tree_text
    from ripwrap._operations.watch import watch
    from ripwrap._ripgrep.decoder import decode, encode
    from ripwrap._ripgrep.process import limit_processes
    from ripwrap._ripgrep.progress import Progress
    from ripwrap._scan.reports import Baseline, sarif
    from ripwrap._scan.rules import Allowlist, Rule, load_rules
    from ripwrap._scan.scan import scan
    from ripwrap._scan.secrets import SECRET_RULES
    from ripwrap._system.overlay import overlay
    from ripwrap.binary import RgBinary
    from ripwrap.binary.resolver import Rg
    from ripwrap.columns import Columns
    from ripwrap.edits import AppliedEdits, Edit, EditPlan, FileEdits, Hunk
    from ripwrap.errors import (
        AccessDeniedError,
        BinaryError,
        BinaryNotFoundError,
        CapabilityError,
        ChecksumMismatchError,
        ConflictError,
        DecodeError,
        DiskFullError,
        DownloadFailedError,
        EmbeddingError,
        ExtractionFailedError,
        GlobError,
        Hint,
        MissingPackageError,
        PatternError,
        RemoteError,
        RipwrapError,
        SearchError,
        UnknownTypeError,
        UnsupportedPlatformError,
    )
    from ripwrap.models import (
        Begin,
        CapturedMatch,
        Captures,
        CodeError,
        CodeMatch,
        Commit,
        Context,
        Elapsed,
        End,
        FileCount,
        HistoryMatch,
        HistoryScanMatch,
        Location,
        Match,
        Message,
        PathError,
        Range,
        ScanMatch,
        Stats,
        Submatch,
        Summary,
        TreeEntry,
    )
    from ripwrap.options import FileOptions, SearchOptions, StrPath
    from ripwrap.repositories import (
        Repositories,
        RepositoriesRanking,
        RepositoriesResult,
        Root,
        RootChunk,
        RootCount,
        RootError,
        RootFile,
        RootMatch,
        RootMatches,
        Worker,
    )
    from ripwrap.results import (
        Coverage,
        Expansion,
        FileMatches,
        GrepMatch,
        GrepResult,
        MatchChange,
        NumberedLine,
        RankedChunk,
        Reason,
        SkippedFiles,
        Tree,
    )
    from ripwrap.workspace import Workspace

# fmt: off
__all__ = [
    "SECRET_RULES", "AccessDeniedError", "Allowlist", "AppliedEdits", "Baseline", "Begin", "BinaryError",
    "BinaryNotFoundError", "CapabilityError", "CapturedMatch", "Captures", "ChecksumMismatchError", "CodeError",
    "CodeMatch", "Columns", "Commit", "ConflictError", "Context", "Coverage", "DecodeError", "DiskFullError",
    "DownloadFailedError", "Edit", "EditPlan", "Elapsed", "EmbeddingError", "End", "Expansion", "ExtractionFailedError",
    "FileCount", "FileEdits", "FileMatches", "FileOptions", "GlobError", "GrepMatch", "GrepResult", "Hint",
    "HistoryMatch", "HistoryScanMatch", "Hunk", "Location", "Match", "MatchChange", "Message", "MissingPackageError",
    "NumberedLine", "PathError", "PatternError", "Progress", "Range", "RankedChunk", "Reason", "Reference",
    "References", "RemoteError", "ReplacePlan", "Repositories", "RepositoriesRanking", "RepositoriesResult", "Rg",
    "RgBinary", "RipwrapError", "Root", "RootChunk", "RootCount", "RootError", "RootFile", "RootMatch", "RootMatches",
    "Rule", "ScanMatch", "SearchError", "SearchOptions", "Section", "SkippedFiles", "Stats", "StrPath", "Submatch",
    "Summary", "Tree", "TreeEntry", "UnknownTypeError", "UnsupportedPlatformError", "Worker", "Workspace", "binary",
    "count", "count_matches", "coverage", "decode", "encode", "expand", "file_types", "files", "files_matching",
    "files_with_matches", "files_without_match", "grep", "grep_in", "limit_processes", "load_rules", "outline",
    "overlay", "rank", "references", "replace", "replace_code", "sarif", "scan", "search", "search_code",
    "search_columns", "search_history", "search_in", "search_messages", "sync", "tree", "tree_text", "undo", "watch",
    "why",
]
# fmt: on

# A public name is loaded when it is first used, so that a search does not import the agent tools (Pydantic does the
# same).
_SUBMODULES = (
    *("binary", "edits", "errors", "index", "models", "options", "places", "remote", "repositories", "results"),
    *("sources", "sync", "workspace"),
)
_NAMES = {
    "_ripgrep.decoder": "decode encode",
    "_ripgrep.process": "limit_processes",
    "_ripgrep.progress": "Progress",
    "_system.overlay": "overlay",
    "_code.outline": "Section",
    "_code.references": "Reference References",
    "_operations.files": "files",
    "_operations.expand": "expand",
    "_operations.outline": "outline",
    "_scan.scan": "scan",
    "_scan.rules": "Rule Allowlist load_rules",
    "_scan.secrets": "SECRET_RULES",
    "_scan.reports": "Baseline sarif",
    "_operations.search": "search search_messages",
    "_operations.streams": "search_in grep_in",
    "_edits.structure": "search_code replace_code",
    "_operations.columns": "search_columns",
    "_operations.history": "search_history",
    "_operations.counts": "count count_matches file_types files_with_matches files_without_match",
    "_operations.combine": "files_matching",
    "_operations.tree": "tree tree_text",
    "_operations.grep": "grep",
    "_operations.coverage": "coverage why",
    "_operations.rank": "rank",
    "_operations.references": "references",
    "_operations.watch": "watch",
    "_edits.replace": "ReplacePlan replace undo",
    "binary": "RgBinary",
    "binary.resolver": "Rg",
    "columns": "Columns",
    "edits": "AppliedEdits Edit EditPlan FileEdits Hunk",
    "errors": (
        "AccessDeniedError BinaryError BinaryNotFoundError CapabilityError ChecksumMismatchError ConflictError "
        "DecodeError DiskFullError DownloadFailedError EmbeddingError ExtractionFailedError GlobError Hint "
        "MissingPackageError PatternError RemoteError RipwrapError SearchError UnknownTypeError "
        "UnsupportedPlatformError"
    ),
    "models": (
        "Begin CapturedMatch Captures CodeError CodeMatch Commit Context Elapsed End FileCount HistoryMatch "
        "HistoryScanMatch Location Match Message PathError Range ScanMatch Stats Submatch Summary TreeEntry"
    ),
    "options": "FileOptions SearchOptions StrPath",
    "repositories": (
        "Repositories RepositoriesRanking RepositoriesResult Root RootChunk RootCount RootError RootFile RootMatch "
        "RootMatches Worker"
    ),
    "results": (
        "Expansion Coverage FileMatches GrepMatch GrepResult MatchChange NumberedLine RankedChunk Reason SkippedFiles "
        "Tree"
    ),
    "workspace": "Workspace",
}
"""Map a module to its public names."""

_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}
_DEPRECATED = {
    "TreeText": ("results", "Tree", "Tree"),
    "render_tree": ("_operations.tree", "render_tree", "Tree(entries=…)"),
}
"""Map a deprecated name to its module, its name in the module, and the replacement that the warning suggests."""


def _show_arguments(record: logging.LogRecord) -> bool:
    from ripwrap._text import show_arguments  # late: it imports Pydantic

    return show_arguments(record)


logging.getLogger(__name__).addFilter(_show_arguments)

if not TYPE_CHECKING:  # with `__getattr__()`, a type checker would accept any name

    def __getattr__(name: str) -> Any:
        if name in _SUBMODULES:
            return import_module(f"{__name__}.{name}")
        if name in _MODULE_OF:
            module = import_module(f"{__name__}.{_MODULE_OF[name]}")
            return globals().setdefault(name, getattr(module, name))
        if name in _DEPRECATED:
            module_name, attribute, replacement = _DEPRECATED[name]
            message = f"ripwrap.{name} is deprecated; use ripwrap.{replacement}"
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            return getattr(import_module(f"{__name__}.{module_name}"), attribute)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])

    def __dir__() -> list[str]:
        return sorted({*__all__, *_SUBMODULES})
