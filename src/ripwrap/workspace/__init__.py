"""Tools with which agents search, list, read and change files: typed methods, which agent frameworks can register."""

from ripwrap._code.outline import Section
from ripwrap._code.references import Reference
from ripwrap.workspace.codebase_search_tool import CodebaseSearchOptions, CodebaseSearchResult, CodePlace
from ripwrap.workspace.core import Workspace, schemas
from ripwrap.workspace.find_files_tool import FindFilesOptions, FindFilesResult
from ripwrap.workspace.find_references_tool import FindReferencesOptions, FindReferencesResult
from ripwrap.workspace.grep_content_tool import ContentMatch, GrepContentOptions, GrepContentResult
from ripwrap.workspace.index_results import (
    IndexCodebaseResult,
    IndexedRoot,
    IndexHealthResult,
    IndexStatusResult,
    RootHealth,
    RootStatus,
)
from ripwrap.workspace.listing_tools import ListEntry, ListResult, LsOptions, TreeOptions
from ripwrap.workspace.read_file import LineBlock, ReadFileOptions, ReadFileResult
from ripwrap.workspace.replace_content_tool import ReplaceContentOptions, ReplaceContentResult
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
