"""Messages and notes of answers: what a page leaves out, and what could not be read or was not searched."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from ripwrap._operations.coverage import coverage_request, run_coverage
from ripwrap._overlay import active_overlay
from ripwrap._ripgrep.page_collector import path_order
from ripwrap._ripgrep.protocols import Runner
from ripwrap._text import in_seconds, plural, shown, shown_path
from ripwrap.errors import BinaryError, RipwrapError, SearchError, spell_error
from ripwrap.models import PathError
from ripwrap.options import FileOptions, SearchOptions
from ripwrap.results import SkipKind, SkippedFiles
from ripwrap.workspace.arguments import spell_as_argument
from ripwrap.workspace.results import ListingEngine, shown_start
from ripwrap.workspace.sandbox import RootLocation, Sandbox
from ripwrap.workspace.scope import FOLLOW_NOTE, Scope

if TYPE_CHECKING:
    from ripwrap.workspace.grep_items import ItemSearch


GREP_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\([|(){}+?])")
"""Pattern of an escape that means an operator in grep, and a character in rg; group 1 has the backslashes before it."""

MAX_CHECKED_ERRORS = 1000
"""Maximum number of unreadable paths of which it is checked if they lead out of the roots; the others do not count."""

MAX_ERROR_CHARS = 200
"""Maximum number of characters of the error about an unreadable path."""


def listed(total: int, noun: str, offset: int, count: int, *, exact: bool, matches: int = 0) -> str:
    """Return the message for a page of paths: how many there are, which are shown, and how to get the next page."""
    much = f"{'' if exact else 'at least '}{plural(total, noun)}"
    much += f" with {plural(matches, 'match', 'es')}" if matches else ""
    if count == total:
        return f"{much[0].upper()}{much[1:]}."
    if not count:
        return f"Showing none of {much} from offset={offset} on."
    said = f"Showing {offset + 1} to {offset + count} of {much}."
    end = offset + count
    return said if end >= total else f"{said} offset={end} gives the next page; a narrower pattern or path finds less."


def notes_of(
    errors: Iterable[PathError], ended_after: float | None, scope: Scope, items: "ItemSearch | None" = None
) -> Iterator[str]:
    """Yield a note if the search was stopped at its time limit, and a note if paths could not be read."""
    location, allowed = items or scope.location, scope.allowed
    if ended_after is not None:
        seconds = in_seconds(ended_after)
        yield f"The search was stopped after {seconds}, so results may be missing; narrow the search, e.g. with path."
    failed = [error for error in errors if location.has(error.path) and not error.harmless]
    failed.sort(key=lambda error: path_order(os.fsencode(error.path or "")))
    own = [error for error in failed[:MAX_CHECKED_ERRORS] if allowed is None or allowed(error.path or "")]
    if own:
        named = own[0].model_copy(update={"path": location.shown(own[0].path or "")})
        much = "at least " if len(failed) > MAX_CHECKED_ERRORS else ""
        yield f"{much}{plural(len(own), 'path')} could not be read, the first: {_path_error_text(named)}."


def unused_index_note(error: RipwrapError | TimeoutError, timeout: float | None) -> str:
    """Return a note that an index was not used because of an error; raise an error that is not about the index."""
    if isinstance(error, SearchError | BinaryError) or (isinstance(error, TimeoutError) and timeout is None):
        raise error
    if isinstance(error, RipwrapError):
        return f"The index could not be used: {spell_error(error, spell_as_argument)}."
    return (
        f"The index could not be refreshed within {in_seconds((timeout or 0) / 2)}, so it was not used; "
        "index_codebase refreshes it without a time limit."
    )


def scope_notes(
    scope: Scope, errors: Iterable[PathError], *, timed_out: bool, engine: ListingEngine
) -> tuple[str, ...]:
    """Return the notes of a listing: about its time limit, unreadable paths, followed links and limited depth."""
    ended_after = scope.timeout if timed_out else None
    notes = [
        "Links were not followed, because that needs rg." if note == FOLLOW_NOTE and engine == "python" else note
        for note in scope.notes
    ]
    return (*notes_of(errors, ended_after, scope), *notes)


def denied_note(number: int) -> Iterator[str]:
    """Yield a note with the number of denied files and directories that are left out, if there are any."""
    if number:
        what = "denied file or directory" if number == 1 else "denied files or directories"
        yield f"{number} {what} not listed."


def links_note(links: Iterable[str], *, late: bool) -> Iterator[str]:
    """Yield a note that names links, which are not listed because they are not followed, if there are any."""
    first, *more = [*links] or [""]
    if first:
        least, example = "at least " if late else "", shown_start(first)
        yield (
            f"Not listed: {least}{len(more) + 1} symbolic links, which are not followed, e.g. {example}."
            if more or late
            else f"Not listed: 1 symbolic link, which is not followed: {example}."
        )


def escape_note(pattern: str, *, fixed_strings: bool) -> Iterator[str]:
    """Yield a note for a search without results if its pattern has escapes that mean an operator in grep, not in rg."""
    found = None if fixed_strings else GREP_ESCAPE.search(pattern)
    if found:
        sign = found[2]
        yield f"In rg, {sign} needs no backslash as an operator: \\{sign} matches the character {sign}."


def _path_error_text(error: PathError) -> str:
    """Return the text of an error about a path, without the line of an ignore file that rg quotes.

    The ignore file may be a link out of the roots, so no answer may show its lines.
    """
    line = re.match(r"line \d{1,10}(?=: )", error.message)
    said = f"{shown_path(error.path or '')}: {line[0]} is not a rule that rg can read" if line else str(error)
    return shown(said)[:MAX_ERROR_CHARS]


MAX_SECONDS = 1.0
"""Time limit in seconds for listing the searched files, and for walking through all files."""

_KINDS: dict[SkipKind, tuple[str, str]] = {
    "link": ("symbolic link, which is not followed", "symbolic links, which are not followed"),
    "max_depth": ("directory, which is too deep", "directories, which are too deep"),
    "one_file_system": ("directory, which is on another file system", "directories, which are on other file systems"),
    "special": ("FIFO, socket or device", "FIFOs, sockets or devices"),
}
"""Texts (singular, plural) for the kinds of files that no other part of an answer mentions.

Other parts of an answer mention unreadable paths. `explanation()` and `_why_none()` mention globs, and hidden, ignored
and binary files.
"""


async def unsearched_notes(
    run: Runner, sandbox: Sandbox, scope: Scope, options: Mapping[str, Any], *, verb: str
) -> tuple[str, ...]:
    """Return sentences about files that were not searched although they may have a match.

    Return no sentence if the files cannot be listed in `MAX_SECONDS`, if the location is a single file, or if texts in
    memory replace files. Also return no sentence if links are followed, because links may lead out of the roots.
    Denied paths, and links to them, are not named. `verb` is `searched` or `listed`.
    """
    location = scope.location
    if scope.options.get("follow") or location.is_file or active_overlay() is not None:
        return ()
    files = {name: value for name, value in options.items() if name in FileOptions.__annotations__}
    chosen = cast("SearchOptions", {**scope.options, **files})
    timeout = MAX_SECONDS if scope.timeout is None else min(MAX_SECONDS, scope.timeout)
    request = coverage_request(location.cwd, location.paths, chosen, timeout, read=False, inside=location.cwd)
    try:
        coverage = await run_coverage(run, request)
    except (SearchError, OSError):
        return ()
    if not coverage.exact:
        return ()
    groups = [group for group in coverage.skipped if group.kind in _KINDS]
    none = (f"No file was {verb}.",) if verb == "searched" and not coverage.searched else ()
    return (*none, *(_sentence(sandbox, scope.location, group, verb) for group in groups))


def _sentence(sandbox: Sandbox, location: RootLocation, group: SkippedFiles, verb: str) -> str:
    paths = (one.path for one in group.examples if sandbox.denied_by(os.path.join(location.cwd, one.path)) is None)
    example = "".join(
        f"{', e.g.' if group.files > 1 else ':'} {shown_start(location.shown(os.path.normpath(path)))}"
        for path in islice(paths, 1)
    )
    return f"Not {verb}: {group.files} {_KINDS[group.kind][group.files > 1]}{example}."
