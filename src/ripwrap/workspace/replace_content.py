"""Tool `replace_content`: show what a replacement would change in files, and write the changes if the caller asks."""

import os
import re
from collections.abc import Iterator
from functools import partial
from io import BytesIO
from typing import cast

from ripwrap._edits.journal import apply_edits
from ripwrap._edits.replace import across_line_ends_of_files, replace_request, run_replace
from ripwrap._ripgrep.runner import DeadlineRunner
from ripwrap._text import as_utf8, plural, shown
from ripwrap.edits import EditPlan, FileEdits
from ripwrap.options import SearchOptions
from ripwrap.workspace.budget import shortened
from ripwrap.workspace.edit_masks import EditMasks
from ripwrap.workspace.literal_names import names_on_disk, resolve_names
from ripwrap.workspace.read_file import Deadline
from ripwrap.workspace.redact import MAX_SECRET_CHARS
from ripwrap.workspace.replace_content_tool import ReplaceContentArguments, ReplaceContentResult
from ripwrap.workspace.results import FileHits
from ripwrap.workspace.sandbox import RootLocation
from ripwrap.workspace.scope import Scope, Settings, file_filter, open_scope, pattern_options, visible_paths
from ripwrap.workspace.shown_lines import snippet
from ripwrap.workspace.tool import ToolCall

_MAX_FILES = 100
"""Maximum number of files in the list of files of an answer."""

MAX_BYTES = 32 << 20
"""Maximum size in bytes of a file, before and after the change, and of all edits together; see `replace()`."""

_HUNK = re.compile(r"@@ -([0-9]+)(?:,[0-9]+)? \+([0-9]+)")
_MAX_CHAR_BYTES = 4


async def run_replace_content(call: ToolCall, arguments: ReplaceContentArguments) -> ReplaceContentResult:
    """Find what would change, and write the changes if the arguments ask for that."""
    run, settings = call.run, call.settings
    if not settings.write:
        raise ValueError("replace_content needs a workspace that may write; make the workspace with write=True")
    if not arguments.pattern:
        raise ValueError("pattern is empty and would match everywhere; give a text or regular expression to replace")
    limited = DeadlineRunner(run, settings.timeout)
    async with open_scope(
        limited, settings, arguments.path, hidden=arguments.include_hidden, ignored=arguments.include_ignored
    ) as scope:
        location = scope.location
        globs = await resolve_names(arguments.file_pattern, names_on_disk(limited, scope))
        files = file_filter(location, globs, arguments.file_type)
        allowed, incomplete = await visible_paths(limited, scope, files)
        if incomplete:
            raise TimeoutError("there was not enough time to list the files; pass a directory with fewer files as path")
        options = cast("SearchOptions", {**scope.options, **files.options, **pattern_options(arguments)})
        places = location.cwd, location.paths
        request = await limited.call(
            lambda: across_line_ends_of_files(
                replace_request(arguments.pattern, arguments.replacement, *places, options, escapes=False)
            )
        )

        # rg may follow links, so the real path of a file is checked again, directly before the file is read and before
        # it is written.
        holds = settings.sandbox.holds

        def is_allowed(path: str) -> bool:
            return (allowed is None or allowed(path)) and holds(os.path.join(location.cwd, path))

        deadline = Deadline(scope.timeout, "the secrets in the lines were not masked", "replace in fewer files")
        masks = EditMasks(settings.redact, deadline.check) if settings.redact else None
        plan = await run_replace(
            limited,
            request,
            timeout=scope.timeout,
            max_bytes=MAX_BYTES,
            allowed=is_allowed,
            holds=holds,
            screen=None if masks is None else masks.why_refused,
        )
    lines = await limited.call(partial(_diff, settings, location, plan, masks))
    if arguments.apply and plan:
        await limited.call_to_end(partial(apply_edits, plan.root, plan.files, None, holds=holds))

    def answer(count: int) -> ReplaceContentResult:
        return _answer(arguments, scope, plan, lines[:count], len(lines))

    # The answer is made many times, and each time all edits are counted.
    return await limited.call(partial(shortened, answer, len(lines), settings.max_chars))


def _diff(settings: Settings, location: RootLocation, plan: EditPlan, masks: EditMasks | None) -> list[str]:
    """Return the first lines of the diff, as many as may fit into an answer, with secrets masked."""
    lines: list[str] = []
    room = settings.max_chars
    for file in plan:
        for line in _file_diff(settings, location, file, masks):
            if room < 0:
                return lines
            lines.append(snippet(line, 1, settings.max_line))
            room -= len(lines[-1]) + 1
    return lines


def _file_diff(settings: Settings, location: RootLocation, file: FileEdits, masks: EditMasks | None) -> Iterator[str]:
    """Yield the lines of the diff of a file with secrets masked; only the beginning of a long line."""
    named = file.model_copy(update={"path": location.shown(file.path)})
    longest = settings.max_line + 1 + (MAX_SECRET_CHARS if masks else 0)
    old = new = 0
    for at, raw in enumerate(BytesIO(named.raw_diff())):
        line = raw[: _MAX_CHAR_BYTES * longest].removesuffix(b"\n").decode("utf-8", "replace")
        if at < 2 or line.startswith("\\"):
            yield line
        elif hunk := _HUNK.match(line):
            old, new = int(hunk[1]), int(hunk[2])
            yield line
        else:
            added = line.startswith("+")
            text = line[1 : longest + 1]
            yield line[:1] + (masks.masked(file.path, text, old=0 if added else old, new=new) if masks else text)
            old += not added
            new += not line.startswith("-")


def _answer(
    arguments: ReplaceContentArguments, scope: Scope, plan: EditPlan, lines: list[str], most: int
) -> ReplaceContentResult:
    location = scope.location
    cut = len(lines) < most
    notes = [*scope.notes]
    if cut:
        notes.append("The diff was cut, because it is too long for one answer.")
    if len(plan) > _MAX_FILES:
        notes.append(f"The list of files has only the first {_MAX_FILES} of {len(plan)} files.")
    if plan.errors:
        first = plan.errors[0]
        name = shown(location.shown(first.path or ""))
        notes.append(f"{plural(len(plan.errors), 'file')} left out, e.g. {name}: {first.message}.")
    return ReplaceContentResult(
        root=as_utf8(location.cwd),
        path=location.name,
        query=arguments.pattern,
        replacement=arguments.replacement,
        applied=arguments.apply and bool(plan),
        diff=tuple(lines),
        files=tuple(FileHits(path=location.shown(file.path), count=len(file)) for file in plan.files[:_MAX_FILES]),
        total_replacements=plan.total_edits,
        truncated=cut or len(plan) > _MAX_FILES,
        message=_message(arguments, plan),
        notes=tuple(notes),
    )


def _message(arguments: ReplaceContentArguments, plan: EditPlan) -> str:
    if not plan:
        return "Nothing to replace; no file was changed."
    much = f"{plural(plan.total_edits, 'replacement')} in {plural(len(plan), 'file')}"
    return (
        f"Written: {much}."
        if arguments.apply
        else f"{much}; no file was changed yet: apply=true changes {'it' if len(plan) == 1 else 'them'}."
    )
