"""Tool `find_files`: list files with rg, or directories with Python code, in pages that fit into `max_chars`."""

import os
import re
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, Unpack

from pydantic import BeforeValidator, model_validator

from ripwrap._ripgrep.page_collector import NO_LIMIT, path_order
from ripwrap._ripgrep.protocols import Runner
from ripwrap._system.windows import IS_WINDOWS, why_misleading
from ripwrap._text import as_utf8, nothing_found, plural, shown_path
from ripwrap.models import PathError
from ripwrap.options import FileOptions
from ripwrap.workspace.arguments import (
    EXCLUDING,
    Number,
    PathList,
    Rev,
    ToolArguments,
    VisibilityOptions,
    is_true,
    parse_arguments,
    without_excluded,
)
from ripwrap.workspace.close_names import HasName, ask_close_names, by_age, names_in, resolve_names
from ripwrap.workspace.dispatch import ToolMethods
from ripwrap.workspace.listing import find_denied
from ripwrap.workspace.notes import denied_note, listed, scope_notes, shortened, unsearched_notes
from ripwrap.workspace.results import ListingEngine, ToolResult, next_offset_after, shown_start
from ripwrap.workspace.sandbox import RootLocation
from ripwrap.workspace.scope import (
    LEFT_OUT,
    ReportProgress,
    Scope,
    denied_glob_notes,
    entry_globs,
    file_filter,
    half,
    list_files,
    scope_of,
    visible_paths,
    wider,
)
from ripwrap.workspace.tool import ToolCall, ToolSpec, page_note

FileOrder: TypeAlias = Literal["path", "newest"]
EntryType: TypeAlias = Literal["file", "directory", "any"]


_ENTRY_TYPES = {"f": "file", "files": "file", "d": "directory", "dir": "directory", "folder": "directory"}
"""Map from values that find, fd and other programs use for a type of entry to the values of `entry_type`."""


class FindFilesOptions(VisibilityOptions, total=False):
    """Options of `find_files()` besides `pattern` and `path`."""

    entry_type: EntryType
    sort: FileOrder
    limit: int
    offset: int
    rev: str


_CASE = ("case_insensitive", "ignore_case", "-i")


class FindFilesArguments(ToolArguments, frozen=True):
    """Arguments of `find_files()`."""

    foreign: ClassVar[frozenset[str]] = frozenset({"case_sensitive", *_CASE, *EXCLUDING})
    also: ClassVar[Mapping[str, str]] = dict.fromkeys(
        (
            "glob",
            "glob_pattern",
            "file_pattern",
            "file_mask",
            "include",
            "include_pattern",
            "filename",
            "file_name",
            "name",
        ),
        "pattern",
    )

    pattern: str = "*"
    path: PathList = "."
    entry_type: Annotated[EntryType, BeforeValidator(lambda one: _ENTRY_TYPES.get(str(one), one))] = "file"
    sort: FileOrder = "path"
    limit: Number = 100
    offset: Number = 0
    include_hidden: bool = False
    include_ignored: bool = False
    rev: Rev = ""

    @model_validator(mode="before")
    @classmethod
    def _read_flags(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Let the pattern match both cases if it should ignore case, and leave out what should be excluded."""
        values = dict(given)
        flags = [is_true(values.pop(name, False)) for name in _CASE]
        if str(values.pop("case_sensitive", True)).lower() == "false" or any(flags):
            values |= {"pattern": ignoring_case(str(values["pattern"]))} if "pattern" in values else {}
        return without_excluded(values, "pattern", "*")


def ignoring_case(glob: str) -> str:
    """Return a glob with each ASCII letter in both cases, as `[aA]`; letters in brackets stay."""
    both = r"\\.|\[[^\]]*\]|([a-zA-Z])"
    return re.sub(both, lambda found: f"[{found[0].lower()}{found[0].upper()}]" if found[1] else found[0], glob)


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


EXPLAIN_SECONDS = 5.0
"""Time limit in seconds for finding out why no file was found."""

MIN_FILE_CHARS = 2
"""Minimum number of characters that a file takes in an answer."""

NOUNS = {"file": ("file", "files"), "directory": ("directory", "directories"), "any": ("entry", "entries")}
"""Nouns for each `entry_type`, in the singular and the plural."""

UNSEEN = {"hidden": ("hidden", "include_hidden=True"), "no_ignore": ("ignored", "include_ignored=True")}
"""Map from an option of rg to the kind of files that it includes, and to the argument of the tool for that option."""


@dataclass(frozen=True, slots=True)
class _FoundPaths:
    """Paths that `find_files` found."""

    paths: Sequence[str]
    total: int
    errors: Sequence[PathError]
    exact: bool
    engine: ListingEngine


async def run_find_files(call: ToolCall, arguments: FindFilesArguments) -> FindFilesResult:
    """Below a path, find the files or directories that a glob matches."""
    run, settings = call.run, call.settings
    if arguments.rev and arguments.sort == "newest":
        raise ValueError("the files of a revision have no time of change; leave out sort, or call history")
    async with scope_of(run, settings, arguments) as scope:
        location, entry_type = scope.location, arguments.entry_type
        given = arguments.pattern
        arguments = arguments.model_copy(
            update={"pattern": await resolve_names(given, _lookup(run, scope, entry_type))}
        )
        newest, offset = arguments.sort == "newest", arguments.offset
        end = offset + min(arguments.limit, settings.max_chars // MIN_FILE_CHARS)
        found = await _find(run, scope, arguments, NO_LIMIT if newest else end, call.progress)
        denied: list[str] = []
        if scope.denied is not None and settings.show_denied != "hide":
            denied, late = await run.call(lambda: _find_denied(scope, arguments))
            found = replace(found, exact=found.exact and not late)
        # `rg --sortr=modified` is not used: before rg 14 it sorts only directories, and files with equal times come in
        # any order.
        items = await run.call(lambda: by_age(location.cwd, found.paths)) if newest else found.paths
        if settings.show_denied == "name":
            # With `newest`, denied files come last, because their age is not shown.
            items = [*items, *denied] if newest else sorted((*items, *denied), key=_path_order)
            found = replace(found, total=found.total + len(denied))
        paths = [_shown_entry(location, one) for one in items[offset:end]]
        named = frozenset(_shown_entry(location, one) for one in denied)
        notes = {
            "hide": (*denied_glob_notes(scope, given),),
            "count": (*denied_note(len(denied)),),
            "name": (),
        }[settings.show_denied]
        if found.exact:
            asked = arguments.model_copy(update={"pattern": given})
            notes += tuple(filter(None, [page_note(call.memory, asked, offset, (found.total,))]))
        nothing = "" if found.total else await _why_none(run, scope, arguments, found)
        if not found.total and found.exact and arguments.entry_type == "file":
            files = file_filter(scope.location, arguments.pattern)
            notes += await unsearched_notes(run, settings.sandbox, scope, files.options, verb="listed")

        def answer(count: int) -> FindFilesResult:
            more = found.total > offset + count
            much = listed(found.total, NOUNS[entry_type][0], offset, count, exact=found.exact)
            return FindFilesResult(
                root=as_utf8(location.cwd),
                path=location.name,
                pattern=given,
                files=tuple(paths[:count]),
                denied=tuple(path for path in paths[:count] if path in named),
                total_files=found.total,
                exact=found.exact,
                truncated=more or not found.exact,
                next_offset=offset + count if more and count else None,
                message=nothing or much,
                notes=(*scope_notes(scope, found.errors, timed_out=not found.exact, engine=found.engine), *notes),
                engine=found.engine,
            )

        return await run.call(lambda: shortened(answer, len(paths), settings.max_chars))


async def _find(
    run: Runner, scope: Scope, arguments: FindFilesArguments, most: int, progress: ReportProgress | None = None
) -> _FoundPaths:
    """Return the paths that the glob matches (all, or only the first `most`), and the number of all matching paths."""
    if arguments.entry_type == "file" and scope.location.revision is None and not _is_file(scope.location):
        files = file_filter(scope.location, arguments.pattern)
        allowed, cut = await visible_paths(run, scope, files)
        options: FileOptions = {**scope.options, **files.options}
        listing = await list_files(run, scope, options, scope.timeout, most, allowed=allowed, progress=progress)
        return _FoundPaths(listing.items(), listing.total, listing.errors, not (listing.timed_out or cut), "rg")
    found = await run.call(lambda: _find_entries(scope, arguments.pattern, arguments.entry_type))
    if progress is not None:
        progress(found.total)
    return found


def _find_denied(scope: Scope, arguments: FindFilesArguments) -> tuple[list[str], bool]:
    """Return the denied paths that the glob matches, and True if the time limit was reached; blocking."""
    from ripwrap.workspace.walk import GlobFilter  # late: it imports pathspec

    globs, excluded = entry_globs(scope.location, arguments.pattern)
    matches = GlobFilter(globs, [glob.removeprefix("!") for glob in excluded.get("glob") or ()])
    kinds = {"file": (False,), "directory": (True,), "any": (False, True)}[arguments.entry_type]
    denied, late = find_denied(scope, scope.options)
    return [path for path in denied if path.endswith(os.sep) in kinds and matches(path)], late


def _lookup(run: Runner, scope: Scope, entry_type: EntryType) -> HasName:
    """Return the function that looks up a name: with rg, or with Python code where `_find()` uses that."""
    if entry_type == "file" and scope.location.revision is None and not _is_file(scope.location):
        return names_in(run, scope)

    async def has(name: str) -> bool:
        wide = wider(scope, LEFT_OUT, half(scope.timeout))
        return (await run.call(lambda: _find_entries(wide, name, "any"))).total > 0

    return has


def _is_file(location: RootLocation) -> bool:
    if location.revision is not None:
        return location.is_file
    return any(os.path.isfile(os.path.join(location.cwd, path)) for path in location.paths)


def _find_entries(scope: Scope, pattern: str, entry_type: EntryType) -> _FoundPaths:
    """With Python code, list the files, directories or both that the glob `pattern` matches; blocking.

    rg cannot be used here: it does not list directories, and it lists a file on its command line even if the glob does
    not match the file.
    """
    from ripwrap.workspace.walk import GlobFilter, ScopeWalk  # late: it imports pathspec

    location, allowed = scope.location, scope.allowed
    if _is_file(location):  # a glob with a slash may be relative to the file's directory or to the root
        location = replace(location, paths=(os.path.dirname(location.paths[0]), os.curdir))
    globs, excluded = entry_globs(location, pattern)
    matches = GlobFilter(globs, [glob.removeprefix("!") for glob in excluded.get("glob") or ()])
    walk = ScopeWalk(scope, {**scope.options, **excluded})
    found = [
        path
        for path in walk.paths(folders=entry_type != "file")
        if (entry_type != "directory" or path.endswith(os.sep)) and matches(path) and (not allowed or allowed(path))
    ]
    found.sort(key=_path_order)
    return _FoundPaths(found, len(found), walk.errors, not walk.timed_out, "python")


def _path_order(path: str) -> bytes:
    return path_order(os.fsencode(path))


def _shown_entry(location: RootLocation, path: str) -> str:
    return f"{location.shown(path.rstrip(os.sep))}/" if path.endswith(os.sep) else location.shown(path)


async def _why_none(run: Runner, scope: Scope, arguments: FindFilesArguments, found: _FoundPaths) -> str:
    """Return the message that nothing was found; it names arguments that would find something, if there are any."""
    noun, nouns = NOUNS[arguments.entry_type]
    nothing = nothing_found(nouns, None if found.exact else scope.timeout)
    if not found.exact:
        return f"{nothing}."
    if _is_file(scope.location):
        is_what = "is a file" if arguments.entry_type == "directory" else f"does not match {arguments.pattern}"
        return f"{nothing}: {shown_start(f'{scope.location.name} {is_what}')}."
    deadline = time.monotonic() + EXPLAIN_SECONDS
    unseen = {*UNSEEN} if scope.location.revision is None else {"hidden"}  # no ignore file has an effect in a revision
    everything = wider(scope, unseen, EXPLAIN_SECONDS)
    said = f"{nothing}."
    if names := [name for name in UNSEEN if name in unseen and not scope.options.get(name)]:
        more = await _find(run, everything, arguments, 1)
        if more.total:
            for name in names if len(names) > 1 else ():
                alone = await _find(run, wider(scope, [name], max(deadline - time.monotonic(), 0)), arguments, 1)
                if alone.total:
                    more, names = alone, [name]
                    break
            much = ("" if more.exact else "at least ") + plural(more.total, noun)
            first = shown_start(_shown_entry(scope.location, more.paths[0]))
            kinds = " and ".join(UNSEEN[name][0] for name in names)
            ways = ", ".join(UNSEEN[name][1] for name in names)
            said = f"{nothing}. There would be {much} with {kinds} {nouns} included ({ways}), the first: {first}."
        elif not more.errors:
            said = f"{nothing}, not even {' or '.join(UNSEEN[name][0] for name in names)} {nouns}."
    close = await ask_close_names(run, scope, arguments.pattern, deadline - time.monotonic())
    said = " ".join(filter(None, (said, close)))
    if arguments.entry_type != "file":
        return said
    everything = wider(scope, unseen, max(deadline - time.monotonic(), 0))
    directory = await _directory_named(run, everything, arguments.pattern)
    if directory is None:
        return said
    name = shown_start(scope.location.shown(directory))
    return f"{said} {name} is a directory: pass it as path to list its files, or entry_type=directory to find it."


async def _directory_named(run: Runner, scope: Scope, pattern: str) -> str | None:
    """Return the directory named like the pattern, else the first directory that the pattern matches, else `None`."""
    if not entry_globs(scope.location, pattern)[0]:
        return None
    is_on_disk = scope.location.revision is None
    path = await run.call(lambda: _top_directory(scope.location, pattern.rstrip("/"))) if is_on_disk else None
    if path is not None and (scope.denied is None or scope.denied.glob_of(path + os.sep) is None):
        return path
    found = await run.call(lambda: _find_entries(scope, pattern, "directory"))  # rg lists only those with files
    return found.paths[0].rstrip(os.sep) if found.paths else None


def _top_directory(location: RootLocation, name: str) -> str | None:
    """Return the path of the directory `name` directly in the searched directory; `None` if it does not exist."""
    if "/" in name or os.sep in name or (IS_WINDOWS and why_misleading(name)):  # the path may lead out of the roots
        return None
    for path in location.paths:
        with suppress(OSError, ValueError):
            if stat.S_ISDIR(os.lstat(os.path.join(location.cwd, path, name)).st_mode):
                return os.path.normpath(os.path.join(path, name))
    return None


FIND_FILES = ToolSpec(
    "find_files",
    FindFilesArguments,
    FindFilesResult,
    run_find_files,
    title="Find files by name",
    aliases=(
        *("glob", "search_files", "file_search", "find_by_name", "list_files(pattern)", "list_directory(pattern)"),
        *("find_file", "glob_file_search"),
    ),
    rare=frozenset({"entry_type", "sort", "rev"}),
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
        rev: str = "",
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
            rev (str): List a commit of git instead of the files on disk, e.g. `v1.2` or `main~3`.
        """
        return self.text(
            await self.find_files_result(
                pattern,
                path,
                entry_type=entry_type,
                sort=sort,
                limit=limit,
                offset=offset,
                include_hidden=include_hidden,
                include_ignored=include_ignored,
                rev=rev,
            )
        )

    async def find_files_result(
        self, pattern: str = "*", path: str = ".", **options: Unpack[FindFilesOptions]
    ) -> FindFilesResult:
        """Return the answer of `find_files()` as a `FindFilesResult`; raise the errors of `grep_content_result()`."""
        arguments = parse_arguments(FindFilesArguments, {"pattern": pattern, "path": path, **options})
        return await run_find_files(self._tools.begin(), arguments)
