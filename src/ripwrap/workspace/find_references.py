"""Tool `find_references`: find definitions and uses of a name, and fit the answer into `max_chars`."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import groupby
from typing import Annotated, Any, BinaryIO, Unpack, cast

from pydantic import BeforeValidator, Field

from ripwrap._code.outline import MAX_NAME_CHARS
from ripwrap._code.references import CONFIDENCES, MAX_DEPTH, Reference, References
from ripwrap._text import as_utf8, cut_text, plural, shown, shown_path
from ripwrap.places.where import PlacedFileOptions
from ripwrap.workspace.arguments import (
    Globs,
    Number,
    PathList,
    Rev,
    ToolArguments,
    VisibilityOptions,
    parse_arguments,
)
from ripwrap.workspace.close_names import ask_close_symbols, names_in, resolve_names
from ripwrap.workspace.dispatch import ToolMethods
from ripwrap.workspace.notes import notes_of, shortened
from ripwrap.workspace.redact import UNKNOWN_KEYS, KeyLines, Redactor, key_lines, redact_name
from ripwrap.workspace.results import ToolResult
from ripwrap.workspace.scope import Scope, Settings, file_filter, in_revision, scope_of, scope_of_root, visible_paths
from ripwrap.workspace.shown_lines import snippet
from ripwrap.workspace.text_files import Deadline
from ripwrap.workspace.tool import ToolCall, ToolSpec

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

    depth: int
    file_pattern: str
    file_type: str
    limit: int
    offset: int
    rev: str


def plain_symbol(value: Any) -> Any:
    """Return the name in `/CookieJar/i`, `BasicAuth(user)`, `def total` or `Cart/total`, as models write symbols."""
    if not isinstance(value, str) or len(value) > MAX_NAME_CHARS:
        return value
    text = value.strip().strip("`")
    literal = re.fullmatch(r"/(?:\^|\\b)?(.+?)(?:\$|\\b)?/[gimsuy]*", text)
    text = re.sub(r"(?<=\w)(?:\([^()]*\)|\[\d+\])$", "", literal[1] if literal else text)
    text = re.sub(r"^(?:async )?(?:def|class|function|func|fn|struct|interface) +(?=\w)", "", text)
    return re.sub(r"(?<=\w)/(?=\w)", ".", text.removeprefix("/"))


class FindReferencesArguments(ToolArguments, frozen=True):
    """Arguments of `find_references()`."""

    name: Annotated[str, BeforeValidator(plain_symbol)]
    path: PathList = "."
    depth: Annotated[int, Field(ge=0, le=MAX_DEPTH)] = 1
    file_pattern: Globs = ""
    file_type: str = ""
    limit: Number = 100
    offset: Number = 0
    include_hidden: bool = False
    include_ignored: bool = False
    rev: Rev = ""


class FindReferencesResult(ToolResult, frozen=True):
    """Result of `find_references()`.

    Attributes:
        name: Name that was searched.
        references: Definitions and uses on the page: definitions first, then uses, then callers of callers; of each,
            those with the highest confidence first.
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
        # The order within a part is kept, and callers of callers have one part for each chain.
        ordered = sorted(self.references, key=lambda one: (len(one.chain), one.chain, order.index(_part(one))))
        for number, ((kind, chain), group) in enumerate(
            groupby(ordered, key=lambda one: ("" if one.chain else _part(one), one.chain))
        ):
            yield from ("",) if number else ()
            yield f"{HEADINGS[kind]}:" if kind else f"Uses of {', which uses '.join(map(shown, (*chain, self.name)))}:"
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


MIN_REFERENCE_CHARS = 10
"""Minimum number of characters that a reference takes in an answer."""


async def run_find_references(call: ToolCall, arguments: FindReferencesArguments) -> FindReferencesResult:
    """Find the places that have a name, and return those of a page: definitions first, then the most certain uses."""
    from ripwrap._operations.references import references_request, run_references  # late: it imports the parsers

    run, settings = call.run, call.settings
    async with scope_of(run, settings, arguments) as scope:
        globs = await resolve_names(arguments.file_pattern, names_in(run, scope))
        files = file_filter(scope.location, globs, arguments.file_type)
        allowed, incomplete = await visible_paths(run, scope, files)
        options = cast("PlacedFileOptions", {**scope.options, **files.options})
        location = scope.location
        whole = await run.call(lambda: scope_of_root(settings, location.cwd, location.revision))
        request = references_request(
            *(arguments.name, location.cwd, location.paths, None, scope.timeout, options),
            depth=max(arguments.depth, 1),
            allowed=allowed,
            whole_lines=True,
            wide=cast("PlacedFileOptions", whole.options),
            wide_allowed=whole.allowed,
        )
        wide = request.wide and in_revision(whole, request.wide)
        request = replace(request, query=in_revision(scope, request.query), wide=wide)
        found = await run_references(run, request)
        most = min(arguments.limit, settings.max_chars // MIN_REFERENCE_CHARS)
        uses = sorted(
            (*found.uses, *found.callers), key=lambda one: (len(one.chain), CONFIDENCES.index(one.confidence))
        )
        lines = {(one.path, one.line, one.kind, one.chain[:1]): one for one in (*found.definitions, *uses)[::-1]}
        every = [*lines.values()][::-1]  # of several places of one kind on a line, the most certain one
        page = every[arguments.offset : arguments.offset + most]
        masked = await run.call(lambda: _masked(settings, scope, page))
        close = ""
        if not every and not settings.redact:  # a close word may be a part of a secret
            close = await ask_close_symbols(run, replace(scope, allowed=allowed), options, arguments.name)
        notes = (*notes_of(found.errors, None, scope), *scope.notes)

        def answer(count: int) -> FindReferencesResult:
            end = arguments.offset + count
            more = end < len(every)
            return FindReferencesResult(
                root=as_utf8(location.cwd),
                path=location.name,
                name=arguments.name,
                references=tuple(masked[:count]),
                total_references=len(every),
                exact=found.exact and not found.truncated and not incomplete,
                truncated=more or found.truncated or incomplete,
                next_offset=end if more and count else None,
                message=_message(found, close, arguments.offset, count, len(every)),
                notes=notes,
            )

        return await run.call(lambda: shortened(answer, len(masked), settings.max_chars))


def _message(found: References, close: str, offset: int, count: int, total: int) -> str:
    said = found.summary
    if not total:
        asks = "Search for a part of the name with grep_content, or for words with codebase_search."
        return " ".join(filter(None, (said, close, asks)))
    if not offset and count == total:
        return said
    end = offset + count
    page = f"Showing {offset + 1} to {end} of {plural(total, 'place')}." if count else "No place shown."
    return f"{said} {page}" + (f" offset={end} gives the next page." if count and end < total else "")


def _masked(settings: Settings, scope: Scope, page: Sequence[Reference]) -> list[Reference]:
    """Return references as an answer shows them: with secrets masked, and long lines cut."""
    deadline = Deadline(scope.timeout, "the secrets in the lines were not masked", "pass a smaller limit")

    revision, keys = scope.location.revision, dict[str, KeyLines]()
    if settings.redact and revision is not None and page:
        files = revision.files([*{one.path: None for one in page}], scope.timeout)
        keys = {name: key_lines(cast("BinaryIO", file), check=deadline.check) for name, file in files}

    @cache
    def redactor_of(path: str) -> Redactor | None:
        if settings.redact and revision is not None:
            return partial(settings.redact, keys=keys.get(path, UNKNOWN_KEYS), check=deadline.check)
        return settings.redactor(scope.location, path, deadline.check)

    return [_shown(settings, scope, one, redactor_of(one.path)) for one in page]


def _shown(settings: Settings, scope: Scope, one: Reference, redactor: Redactor | None) -> Reference:
    text, around = one.text, one.enclosing
    if redactor is not None:
        text = redactor(text, one.line).text
        if around is not None:
            masked = redactor(around.text, around.line)
            name = redact_name(redactor, around.name, around.line, around.text, masked.masks)
            around = around.model_copy(update={"name": name, "text": masked.text})
    if around is not None:
        around = around.model_copy(update={"text": cut_text(around.text, MAX_NAME_CHARS)})
    return one.model_copy(
        update={
            "path": scope.location.shown(one.path),
            "text": snippet(cut_text(text, MAX_NAME_CHARS), 1, settings.max_line),
            "enclosing": around,
            "chain": tuple(redact_name(settings.redact, name) if settings.redact else name for name in one.chain),
        }
    )


FIND_REFERENCES = ToolSpec(
    "find_references",
    FindReferencesArguments,
    FindReferencesResult,
    run_find_references,
    title="Find definitions and uses of a name",
    aliases=(
        *("references", "find_usages", "find_symbol", "go_to_references", "list_code_usages", "go_to_definition"),
        *("find_referencing_symbols", "find_declaration", "find_implementations", "search_workspace_symbols"),
    ),
)


class FindReferencesMethods(ToolMethods, offers=(FIND_REFERENCES,)):
    """Methods of `find_references`."""

    async def find_references(
        self,
        name: str,
        path: str = ".",
        *,
        depth: int = 1,
        file_pattern: str = "",
        file_type: str = "",
        limit: int = 100,
        offset: int = 0,
        include_hidden: bool = False,
        include_ignored: bool = False,
        rev: str = "",
    ) -> str:
        """Find where a function, class, variable or other name is defined, imported, called and mentioned.

        Each place is shown with the definition around it. Names are compared, not types: a place that may mean another
        thing of the same name is marked with a medium or low confidence, and places in strings and comments are marked.

        Args:
            name (str): The name, e.g. `total`, or with its class or module, e.g. `Cart.total`.
            path (str): The directory or file to search; `.` is everything.
            depth (int): With 2, also find who uses the definitions around the uses (callers of callers), up to 5.
            file_pattern (str): Search only files that match this glob, e.g. `*.py` or `!tests/**`.
            file_type (str): Search only files of this type, one that ripgrep knows, e.g. `py`, `js`, `rust`.
            limit (int): Maximum number of places to show; default 100.
            offset (int): Number of places to skip, for the next page.
            include_hidden (bool): Search hidden files and directories, too.
            include_ignored (bool): Search files that .gitignore and the like exclude, too.
            rev (str): Search a commit of git instead of the files on disk, e.g. `v1.2` or `main~3`.
        """
        return self.text(
            await self.find_references_result(
                name,
                path,
                depth=depth,
                file_pattern=file_pattern,
                file_type=file_type,
                limit=limit,
                offset=offset,
                include_hidden=include_hidden,
                include_ignored=include_ignored,
                rev=rev,
            )
        )

    async def find_references_result(
        self, name: str, path: str = ".", **options: Unpack[FindReferencesOptions]
    ) -> FindReferencesResult:
        """Return the answer of `find_references()` as a `FindReferencesResult`.

        The method raises the errors of `grep_content_result()`, and `ValueError` if `name` is not a name.
        """
        arguments = parse_arguments(FindReferencesArguments, {"name": name, "path": path, **options})
        return await run_find_references(self._tools.begin(), arguments)
