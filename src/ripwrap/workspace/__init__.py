"""Tools with which agents search, list, read and change files: typed methods, which agent frameworks can register.

A name is loaded when it is first used: programs such as the MCP server need some modules of this package before the
tools.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ripwrap._code.outline import Section
    from ripwrap._code.references import Reference
    from ripwrap.workspace.codebase_search import CodebaseSearchOptions, CodebaseSearchResult, CodePlace
    from ripwrap.workspace.core import Workspace, schemas
    from ripwrap.workspace.find_files import FindFilesOptions, FindFilesResult
    from ripwrap.workspace.find_references import FindReferencesOptions, FindReferencesResult
    from ripwrap.workspace.grep_content import GrepContentOptions
    from ripwrap.workspace.grep_content_models import ContentMatch, GrepContentResult
    from ripwrap.workspace.history import HistoryOptions, HistoryResult, LoggedChange
    from ripwrap.workspace.index_results import (
        IndexCodebaseResult,
        IndexedRoot,
        IndexHealthResult,
        IndexStatusResult,
        RootHealth,
        RootStatus,
    )
    from ripwrap.workspace.listing import ListEntry, ListResult, LsOptions, TreeOptions
    from ripwrap.workspace.read_file import LineBlock, ReadFileOptions, ReadFileResult
    from ripwrap.workspace.replace_content import ReplaceContentOptions, ReplaceContentResult
    from ripwrap.workspace.resolve import ResolveResult
    from ripwrap.workspace.results import FileHits, FileInfo, ToolResult
    from ripwrap.workspace.tool import Tool

__all__ = [
    "CodePlace",
    "CodebaseSearchOptions",
    "CodebaseSearchResult",
    "ContentMatch",
    "FileHits",
    "FileInfo",
    "FindFilesOptions",
    "FindFilesResult",
    "FindReferencesOptions",
    "FindReferencesResult",
    "GrepContentOptions",
    "GrepContentResult",
    "HistoryOptions",
    "HistoryResult",
    "IndexCodebaseResult",
    "IndexHealthResult",
    "IndexStatusResult",
    "IndexedRoot",
    "LineBlock",
    "ListEntry",
    "ListResult",
    "LoggedChange",
    "LsOptions",
    "ReadFileOptions",
    "ReadFileResult",
    "Reference",
    "ReplaceContentOptions",
    "ReplaceContentResult",
    "ResolveResult",
    "RootHealth",
    "RootStatus",
    "Section",
    "Tool",
    "ToolResult",
    "TreeOptions",
    "Workspace",
    "schemas",
]

_NAMES = {
    "_code.outline": "Section",
    "_code.references": "Reference",
    "workspace.codebase_search": "CodebaseSearchOptions CodebaseSearchResult CodePlace",
    "workspace.core": "Workspace schemas",
    "workspace.find_files": "FindFilesOptions FindFilesResult",
    "workspace.find_references": "FindReferencesOptions FindReferencesResult",
    "workspace.grep_content": "GrepContentOptions",
    "workspace.grep_content_models": "ContentMatch GrepContentResult",
    "workspace.history": "HistoryOptions HistoryResult LoggedChange",
    "workspace.index_results": (
        "IndexCodebaseResult IndexedRoot IndexHealthResult IndexStatusResult RootHealth RootStatus"
    ),
    "workspace.listing": "ListEntry ListResult LsOptions TreeOptions",
    "workspace.read_file": "LineBlock ReadFileOptions ReadFileResult",
    "workspace.replace_content": "ReplaceContentOptions ReplaceContentResult",
    "workspace.resolve": "ResolveResult",
    "workspace.results": "FileHits FileInfo ToolResult",
    "workspace.tool": "Tool",
}
"""Map a module to its public names."""

_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}

if not TYPE_CHECKING:  # with `__getattr__()`, a type checker would accept any name

    def __getattr__(name: str) -> Any:
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])
        return globals().setdefault(name, getattr(import_module(f"ripwrap.{_MODULE_OF[name]}"), name))

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
