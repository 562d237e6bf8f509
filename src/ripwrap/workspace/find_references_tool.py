"""Tool `find_references`: its arguments, result and methods; the search is in `workspace/find_references.py`."""

from collections.abc import Iterator
from itertools import groupby
from typing import Unpack

from ripwrap._code.references import Reference
from ripwrap._text import shown, shown_path
from ripwrap.workspace.arguments import Globs, Number, ToolArguments, VisibilityOptions
from ripwrap.workspace.dispatch import ToolMethods
from ripwrap.workspace.results import ToolResult
from ripwrap.workspace.tool import ToolSpec

HEADINGS = {
    "definition": "Definitions",
    "other": "Other definitions",
    "import": "Imports",
    "call": "Calls",
    "mention": "Mentions",
}
"""Headings of the kinds of references, in the order of an answer; `other` are those of other classes."""


class FindReferencesOptions(VisibilityOptions, total=False):
    """Options of `find_references()` besides `name` and `path`."""

    file_pattern: str
    file_type: str
    limit: int
    offset: int


class FindReferencesArguments(ToolArguments, frozen=True):
    """Arguments of `find_references()`."""

    name: str
    path: str = "."
    file_pattern: Globs = ""
    file_type: str = ""
    limit: Number = 100
    offset: Number = 0
    include_hidden: bool = False
    include_ignored: bool = False


class FindReferencesResult(ToolResult, frozen=True):
    """Result of `find_references()`.

    Attributes:
        name: Name that was searched.
        references: Definitions and uses on the page: definitions first, then those with the highest confidence.
        total_references: Number of all definitions and uses that were found.
        exact: True if all files with the name were searched, and all of their lines with the name were looked at.
    """

    name: str
    references: tuple[Reference, ...]
    total_references: int
    exact: bool

    _entries = ("references",)

    def _body(self) -> Iterator[str]:
        order = [*HEADINGS]
        ordered = sorted(self.references, key=lambda one: order.index(_part(one)))  # the order within a part is kept
        for number, (kind, group) in enumerate(groupby(ordered, key=_part)):
            yield from ("",) if number else ()
            yield f"{HEADINGS[kind]}:"
            for one in group:
                yield f"  {shown_path(one.path)}:{one.line}: {shown(one.text)}{_about(one)}"


def _part(one: Reference) -> str:
    return "other" if one.kind == "definition" and one.confidence == "low" else one.kind


def _about(one: Reference) -> str:
    """Return the remarks after the text of a reference: the definition around it, and doubts."""
    around = "" if one.kind == "definition" or one.enclosing is None else f"in {shown(one.enclosing.name)}"
    lines = f"to line {one.enclosing.end_line}" if one.kind == "definition" and one.enclosing else ""
    doubt = one.syntax if one.syntax != "code" else "" if one.confidence == "high" else f"{one.confidence} confidence"
    said = "; ".join(filter(None, (around, lines, doubt)))
    return f"  [{said}]" if said else ""


FIND_REFERENCES = ToolSpec(
    "find_references",
    FindReferencesArguments,
    FindReferencesResult,
    "ripwrap.workspace.find_references:run_find_references",
    title="Find definitions and uses of a name",
    aliases=("references", "find_usages", "find_symbol", "go_to_references", "list_code_usages"),
)


class FindReferencesMethods(ToolMethods, offers=(FIND_REFERENCES,)):
    """Methods of `find_references`."""

    async def find_references(
        self,
        name: str,
        path: str = ".",
        *,
        file_pattern: str = "",
        file_type: str = "",
        limit: int = 100,
        offset: int = 0,
        include_hidden: bool = False,
        include_ignored: bool = False,
    ) -> str:
        """Find where a function, class, variable or other name is defined, imported, called and mentioned.

        Each place is shown with the definition around it. Names are compared, not types: a place that may mean another
        thing of the same name is marked with a medium or low confidence, and places in strings and comments are marked.

        Args:
            name (str): The name, e.g. `total`, or with its class or module, e.g. `Cart.total`.
            path (str): The directory or file to search; `.` is everything.
            file_pattern (str): Search only files that match this glob, e.g. `*.py` or `!tests/**`.
            file_type (str): Search only files of this type, one that ripgrep knows, e.g. `py`, `js`, `rust`.
            limit (int): Maximum number of places to show; default 100.
            offset (int): Number of places to skip, for the next page.
            include_hidden (bool): Search hidden files and directories, too.
            include_ignored (bool): Search files that .gitignore and the like exclude, too.
        """
        return await self._tools.answer(FIND_REFERENCES, locals())

    async def find_references_result(
        self, name: str, path: str = ".", **options: Unpack[FindReferencesOptions]
    ) -> FindReferencesResult:
        """Return the answer of `find_references()` as a `FindReferencesResult`.

        The method raises the errors of `grep_content_result()`, and `ValueError` if `name` is not a name.
        """
        return await self._tools.run(FIND_REFERENCES, {"name": name, "path": path, **options})
