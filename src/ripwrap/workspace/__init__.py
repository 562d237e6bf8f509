"""Agent tools over a set of directories: plain methods with type annotations, which any framework can register."""

from ripwrap._code.outline import (
    Section,
)
from ripwrap.workspace.arguments import (
    CodebaseSearchOptions,
    FindFilesOptions,
    GrepContentOptions,
    LsOptions,
    ReadFileOptions,
    ReplaceContentOptions,
    TreeOptions,
)
from ripwrap.workspace.core import (
    Workspace,
    schemas,
)
from ripwrap.workspace.raw_files import (
    FileInfo,
)
from ripwrap.workspace.results import (
    CodebaseSearchResult,
    CodePlace,
    ContentMatch,
    FileHits,
    FindFilesResult,
    GrepContentResult,
    IndexCodebaseResult,
    IndexedRoot,
    IndexHealthResult,
    IndexStatusResult,
    LineBlock,
    ListEntry,
    ListResult,
    ReadFileResult,
    ReplaceContentResult,
    ResolveResult,
    RootHealth,
    RootStatus,
    ToolResult,
)

__all__ = [
    "CodePlace",
    "CodebaseSearchOptions",
    "CodebaseSearchResult",
    "ContentMatch",
    "FileHits",
    "FileInfo",
    "FindFilesOptions",
    "FindFilesResult",
    "GrepContentOptions",
    "GrepContentResult",
    "IndexCodebaseResult",
    "IndexHealthResult",
    "IndexStatusResult",
    "IndexedRoot",
    "LineBlock",
    "ListEntry",
    "ListResult",
    "LsOptions",
    "ReadFileOptions",
    "ReadFileResult",
    "ReplaceContentOptions",
    "ReplaceContentResult",
    "ResolveResult",
    "RootHealth",
    "RootStatus",
    "Section",
    "ToolResult",
    "TreeOptions",
    "Workspace",
    "schemas",
]
