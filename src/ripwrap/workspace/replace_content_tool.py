"""Tool `replace_content`: its arguments, its result and its methods; `workspace/replace_content.py` replaces."""

from collections.abc import Iterator
from typing import Unpack

from ripwrap._text import shown
from ripwrap.workspace.arguments import Globs, ToolArguments, VisibilityOptions
from ripwrap.workspace.dispatch import ToolMethods
from ripwrap.workspace.results import FileHits, ToolResult
from ripwrap.workspace.tool import ToolSpec


class ReplaceContentOptions(VisibilityOptions, total=False):
    """Options of `replace_content()` besides `pattern`, `replacement` and `path`."""

    apply: bool
    file_pattern: str
    file_type: str
    case_insensitive: bool
    fixed_strings: bool
    multiline: bool


class ReplaceContentArguments(ToolArguments, frozen=True):
    """Arguments of `replace_content()`."""

    pattern: str
    replacement: str
    path: str = "."
    apply: bool = False
    file_pattern: Globs = ""
    file_type: str = ""
    case_insensitive: bool = False
    fixed_strings: bool = False
    multiline: bool = False
    include_hidden: bool = False
    include_ignored: bool = False


class ReplaceContentResult(ToolResult, frozen=True):
    """Result of `replace_content()`.

    Attributes:
        query: Pattern that was searched.
        replacement: Text in place of each match, as in the argument `replacement`.
        applied: True if the files were changed.
        diff: Lines of a unified diff, as many as fit into the answer. Long lines are cut, and secrets are masked if the
            workspace masks them.
        files: Files that change, at most 100 of them, each with its number of replacements.
        total_replacements: Number of replacements.
    """

    query: str
    replacement: str
    applied: bool
    diff: tuple[str, ...] = ()
    files: tuple[FileHits, ...] = ()
    total_replacements: int

    _entries = ("diff", "files")

    def _body(self) -> Iterator[str]:
        yield from map(shown, self.diff)


REPLACE_CONTENT = ToolSpec(
    "replace_content",
    ReplaceContentArguments,
    ReplaceContentResult,
    "ripwrap.workspace.replace_content:run_replace_content",
    title="Replace in files",
    needs="write",
    writes="files",
)


class ReplaceContentMethods(ToolMethods, offers=(REPLACE_CONTENT,)):
    """Methods of `replace_content`."""

    async def replace_content(
        self,
        pattern: str,
        replacement: str,
        path: str = ".",
        *,
        apply: bool = False,
        file_pattern: str = "",
        file_type: str = "",
        case_insensitive: bool = False,
        fixed_strings: bool = False,
        multiline: bool = False,
        include_hidden: bool = False,
        include_ignored: bool = False,
    ) -> str:
        r"""Replace every match of a regular expression (ripgrep) in files, or show what would change.

        Call it without `apply` first: the answer is a diff, and no file is changed. With `apply` the changes are
        written, to all files or to none. Hidden files and files that .gitignore excludes are left out.

        Args:
            pattern (str): Regular expression to search for, such as `old_(\w+)`.
            replacement (str): Text to put in place of each match; `$1` or `${name}` is a group, and `$$` a dollar.
            path (str): The directory or file to change; `.` is everything.
            apply (bool): Write the changes; default false, which only shows them.
            file_pattern (str): Change only files that match this glob, e.g. `*.py`, `src/**/*.{ts,tsx}` or `!*.min.js`.
            file_type (str): Change only files of this type, one that ripgrep knows, e.g. `py`, `js`, `rust`.
            case_insensitive (bool): Ignore case; default false.
            fixed_strings (bool): Search for the pattern as plain text, not as a regular expression.
            multiline (bool): Let a match span lines; a dot then also matches line ends.
            include_hidden (bool): Change hidden files, too.
            include_ignored (bool): Change files that .gitignore and the like exclude, too.
        """
        return await self._tools.answer(REPLACE_CONTENT, locals())

    async def replace_content_result(
        self, pattern: str, replacement: str, path: str = ".", **options: Unpack[ReplaceContentOptions]
    ) -> ReplaceContentResult:
        """Return the answer of `replace_content()` as a `ReplaceContentResult`.

        The errors of `grep_content_result()` are raised, too.
        """
        return await self._tools.run(
            REPLACE_CONTENT, {"pattern": pattern, "replacement": replacement, "path": path, **options}
        )
