"""Write sentences about files that were not searched, such as links, for an answer without results."""

import os
from collections.abc import Mapping
from itertools import islice
from typing import Any, cast

from ripwrap._operations.coverage import coverage_request, run_coverage
from ripwrap._overlay import active_overlay
from ripwrap._ripgrep.protocols import Runner
from ripwrap.errors import SearchError
from ripwrap.options import FileOptions, SearchOptions
from ripwrap.results import SkipKind, SkippedFiles
from ripwrap.workspace.results import shown_start
from ripwrap.workspace.sandbox import RootLocation, Sandbox
from ripwrap.workspace.scope import Scope

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
