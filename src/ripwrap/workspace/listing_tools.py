"""Tools `ls` and `tree`: their arguments, their result and their methods; `workspace/listing.py` lists the files."""

import os
from collections.abc import Iterator
from typing import Any, Literal, TypeAlias, Unpack

from ripwrap._text import shown_path
from ripwrap.models import Model
from ripwrap.workspace.arguments import Number, StringList, ToolArguments, VisibilityOptions
from ripwrap.workspace.dispatch import ToolMethods
from ripwrap.workspace.results import ToolResult
from ripwrap.workspace.tool import ToolSpec

Layout: TypeAlias = Literal["ls", "tree"]


class LsOptions(VisibilityOptions, total=False):
    """Options of `ls()` besides `path`."""

    ignore: list[str]
    limit: int
    max_depth: int


class TreeOptions(VisibilityOptions, total=False):
    """Options of `tree()` besides `path`."""

    limit: int


class LsArguments(ToolArguments, frozen=True):
    """Arguments of `ls()`."""

    path: str = "."
    ignore: StringList = []  # noqa: RUF012 - Pydantic copies it
    limit: Number = 1000
    max_depth: Number = 0
    include_hidden: bool = False
    include_ignored: bool = False


class TreeArguments(ToolArguments, frozen=True):
    """Arguments of `tree()`."""

    path: str = "."
    limit: Number = 50
    include_hidden: bool = False
    include_ignored: bool = False


class ListEntry(Model, frozen=True):
    """One line of a listing.

    Attributes:
        path: Path of the file or directory; for a `[N truncated]` line, path of its directory.
        name: Last part of the path; for one of several roots, its whole path.
        depth: Number of directories between the entry and the directory that was listed.
        is_dir: True for a directory.
        closed: True for a directory that is named but not listed, such as `node_modules`.
        denied: True for a file or directory that the tools may name but not open.
        truncated: For a `[N truncated]` line, number of entries of `path` that are left out; else 0.
    """

    path: str
    name: str
    depth: int
    is_dir: bool = False
    closed: bool = False
    denied: bool = False
    truncated: int = 0

    def structured(self) -> str | dict[str, Any]:
        """Return the path, with a slash for a directory; an object if `closed`, `denied` or `truncated` is set."""
        if self.closed or self.denied or self.truncated:
            return self.model_dump(mode="json", exclude_defaults=True, exclude={"name", "depth"})
        return f"{self.path}/" if self.is_dir else self.path


class ListResult(ToolResult, frozen=True):
    """Result of `ls()` and `tree()`.

    Attributes:
        layout: Format of `str()`. `ls` starts with the listed directory and puts a dash before each entry; `tree` does
            neither.
        entries: Files and directories, in the order of the lines.
        total_files: Number of all files, without files of common kinds (such as `*.pyc`) that are not shown, and
            without the files in closed directories (named but not listed).
        exact: True if the listing ran to its end, so that `total_files` is final.
    """

    layout: Layout
    entries: tuple[ListEntry, ...]
    total_files: int
    exact: bool

    _entries = ("entries",)

    def _values(self) -> dict[str, Any]:
        return super()._values() | {"entries": [entry.structured() for entry in self.entries]}

    @classmethod
    def structured_schema(cls) -> dict[str, Any]:
        """Return the JSON schema of the structured answer, and of `model_dump(mode="json")`."""
        schema = super().structured_schema()
        entries = schema["properties"]["entries"]
        entries["items"] = {"anyOf": [{"type": "string"}, entries["items"]]}
        entries["description"] = "An entry is a path, with a slash at the end of a directory, or an object."
        entry = schema["$defs"]["ListEntry"]
        for name in ("name", "depth"):  # both follow from `path`
            del entry["properties"][name]
            entry["required"].remove(name)
        return schema

    def _body(self) -> Iterator[str]:
        if not self.entries:
            return
        dash, indent = ("- ", "  ") if self.layout == "ls" else ("", "    ")
        if [entry.path for entry in self.entries] == [self.path]:  # a file
            yield f"{dash}{shown_path(self.path)}"
            return
        if self.layout == "ls":
            yield f"- {shown_path(self.path.rstrip(os.sep))}/"
        for entry in self.entries:
            depth = entry.depth + (self.layout == "ls")
            yield f"{indent * depth}{dash}{_name(entry)}"


def _name(entry: ListEntry) -> str:
    if entry.truncated:
        return f"[{entry.truncated} truncated]"
    name = shown_path(entry.name)
    if entry.denied:
        return f"{name}{'/' * entry.is_dir} [denied]"
    return f"{name}/ [not listed]" if entry.closed else f"{name}/" if entry.is_dir else name


LS = ToolSpec(
    "ls",
    LsArguments,
    ListResult,
    "ripwrap.workspace.listing:run_ls",
    title="List a directory",
    aliases=("list_files", "read_folder", "list", "list_dir", "list_directory"),
)
TREE = ToolSpec(
    "tree",
    TreeArguments,
    ListResult,
    "ripwrap.workspace.listing:run_tree",
    title="Show the tree of directories",
    aliases=("directory_tree",),
)


class ListingMethods(ToolMethods, offers=(LS, TREE)):
    """Methods of `ls` and `tree`."""

    async def ls(
        self,
        path: str = ".",
        *,
        ignore: list[str] = [],  # noqa: B006 - never changed, and the only default for a list that a schema takes
        limit: int = 1000,
        max_depth: int = 0,
        include_hidden: bool = False,
        include_ignored: bool = False,
    ) -> str:
        """List a directory and everything below it, as an indented list.

        Directories end in a slash and come before files. `[N truncated]` marks N entries that are left out; first-level
        directories are left out last. Hidden files and files that .gitignore excludes are left out. Without a
        .gitignore, directories such as node_modules are named, but not listed.

        Args:
            path (str): The directory to list; `.` is everything.
            ignore (list[str]): Globs of files and directories to leave out, e.g. `["*.lock", "docs/generated/**"]`.
            limit (int): Maximum number of files and directories to list; default 1000.
            max_depth (int): Number of levels to list; 0, the default, is no limit.
            include_hidden (bool): List hidden files, too.
            include_ignored (bool): List files that .gitignore and the like exclude, too.
        """
        return await self._tools.answer(LS, locals())

    async def ls_result(self, path: str = ".", **options: Unpack[LsOptions]) -> ListResult:
        """Return the answer of `ls()` as a `ListResult`; raise the errors of `grep_content_result()`.

        If there is no rg, or it does not run, Python code lists the same files, and `engine` is `python`.
        """
        return await self._tools.run(LS, {"path": path, **options})

    async def tree(
        self, path: str = ".", *, limit: int = 50, include_hidden: bool = False, include_ignored: bool = False
    ) -> str:
        """Show an overview of a directory: an indented tree with a few entries of every directory.

        Entries are taken level by level, and from all directories in rotation. `[N truncated]` marks N entries that are
        left out of a directory. Hidden files and files that .gitignore excludes are left out.

        Args:
            path (str): The directory to show; `.` is everything.
            limit (int): Maximum number of files and directories to show; default 50.
            include_hidden (bool): Show hidden files, too.
            include_ignored (bool): Show files that .gitignore and the like exclude, too.
        """
        return await self._tools.answer(TREE, locals())

    async def tree_result(self, path: str = ".", **options: Unpack[TreeOptions]) -> ListResult:
        """Return the answer of `tree()` as a `ListResult`; raise the errors of `grep_content_result()`."""
        return await self._tools.run(TREE, {"path": path, **options})
