"""Tool `find_files`: its arguments, its result and its methods; the search is in `workspace/find_files.py`."""

import re
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, Unpack

from pydantic import BeforeValidator, model_validator

from ripwrap._text import shown_path
from ripwrap._words import ALIASES
from ripwrap.workspace.arguments import (
    EXCLUDING,
    Number,
    ToolArguments,
    VisibilityOptions,
    is_true,
    without_excluded,
)
from ripwrap.workspace.dispatch import ToolMethods
from ripwrap.workspace.results import ToolResult, next_offset_after
from ripwrap.workspace.tool import ToolSpec

FileOrder: TypeAlias = Literal["path", "newest"]
EntryType: TypeAlias = Literal["file", "directory", "any"]


_ENTRY_TYPES = {"f": "file", "files": "file", "d": "directory", "dir": "directory", "folder": "directory"}
"""Map from values that find, fd and other programs use for a type of entry to the values of `entry_type`."""


def _parse_entry_type(value: Any) -> Any:
    return _ENTRY_TYPES.get(value, value) if isinstance(value, str) else value


class FindFilesOptions(VisibilityOptions, total=False):
    """Options of `find_files()` besides `pattern` and `path`."""

    entry_type: EntryType
    sort: FileOrder
    limit: int
    offset: int


_CASE = ("case_insensitive", "ignore_case", "-i")


class FindFilesArguments(ToolArguments, frozen=True):
    """Arguments of `find_files()`."""

    foreign: ClassVar[frozenset[str]] = frozenset({"case_sensitive", *_CASE, *EXCLUDING})

    pattern: str = "*"
    path: str = "."
    entry_type: Annotated[EntryType, BeforeValidator(_parse_entry_type)] = "file"
    sort: FileOrder = "path"
    limit: Number = 100
    offset: Number = 0
    include_hidden: bool = False
    include_ignored: bool = False

    @model_validator(mode="before")
    @classmethod
    def _read_flags(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Let the pattern match both cases if it should ignore case, and leave out what should be excluded."""
        values = dict(given)
        flags = [is_true(values.pop(name, False)) for name in _CASE]
        if str(values.pop("case_sensitive", True)).lower() == "false" or any(flags):
            named = {"pattern", *ALIASES["pattern"]} & values.keys()
            values |= {name: ignoring_case(str(values[name])) for name in named}
        return without_excluded(values, "pattern", "*")


def ignoring_case(glob: str) -> str:
    """Return a glob with each ASCII letter in both cases, as `[aA]`; letters in brackets stay."""
    return re.sub(r"\\.|\[[^\]]*\]|[a-zA-Z]", lambda found: _both_cases(found[0]), glob)


def _both_cases(text: str) -> str:
    return f"[{text.lower()}{text.upper()}]" if len(text) == 1 else text


class FindFilesResult(ToolResult, frozen=True):
    """Result of `find_files()`.

    Attributes:
        pattern: Glob that was searched.
        files: Files and directories of this page; a directory ends in a slash.
        denied: Paths in `files` that the tools may name but not open.
        total_files: Number of all files and directories that were found.
        exact: True if the search ran to its end, so that `total_files` is final.
    """

    pattern: str
    files: tuple[str, ...]
    denied: tuple[str, ...] = ()
    total_files: int
    exact: bool

    _entries = ("files",)

    def _fewer(self, values: dict[str, Any], count: int) -> dict[str, Any]:
        few = super()._fewer(values, count) | next_offset_after(self, count, self.files, self.total_files)
        return few | {"denied": [path for path in values.get("denied", ()) if path in few["files"]]}

    def _body(self) -> Iterator[str]:
        denied = frozenset(self.denied)
        yield from (f"{shown_path(file)} [denied]" if file in denied else shown_path(file) for file in self.files)


FIND_FILES = ToolSpec(
    "find_files",
    FindFilesArguments,
    FindFilesResult,
    "ripwrap.workspace.find_files:run_find_files",
    title="Find files by name",
    aliases=("glob", "search_files", "file_search", "find_by_name", "list_files(pattern)", "list_directory(pattern)"),
    rare=frozenset({"entry_type", "sort"}),
)


class FindFilesMethods(ToolMethods, offers=(FIND_FILES,)):
    """Methods of `find_files`."""

    async def find_files(
        self,
        pattern: str = "*",
        path: str = ".",
        *,
        entry_type: Literal["file", "directory", "any"] = "file",
        sort: Literal["path", "newest"] = "path",
        limit: int = 100,
        offset: int = 0,
        include_hidden: bool = False,
        include_ignored: bool = False,
    ) -> str:
        """Find files or directories by name, with a glob.

        The answer has one path on each line; a directory ends in a slash. The last line, in parentheses, gives the
        number of all files and how to get more. Hidden files and files that .gitignore excludes are left out.

        Args:
            pattern (str): A glob, e.g. `*.py` (at any depth), `src/**/*.ts` or `test_*.{py,pyi}`; `*` is every file.
            path (str): The directory to look in, or a file; `.` is everything.
            entry_type (str): What to find: `file`, `directory` or `any`; default `file`.
            sort (str): `path` sorts by path, `newest` puts the most recently changed files first.
            limit (int): Maximum number of files to list; default 100.
            offset (int): Number of files to skip, for the next page; the previous answer gives it.
            include_hidden (bool): List hidden files, too.
            include_ignored (bool): List files that .gitignore and the like exclude, too.
        """
        return await self._tools.answer(FIND_FILES, locals())

    async def find_files_result(
        self, pattern: str = "*", path: str = ".", **options: Unpack[FindFilesOptions]
    ) -> FindFilesResult:
        """Return the answer of `find_files()` as a `FindFilesResult`; raise the errors of `grep_content_result()`."""
        return await self._tools.run(FIND_FILES, {"pattern": pattern, "path": path, **options})
