"""Tool `replace_content`: show what a replacement would change in files, and write the changes if the caller asks.

Keep secrets masked in a preview of edits: refuse edits that touch a mask or unmask a secret, and mask the diff.

Masks are found in the old lines. If an edit removed the text by which a rule recognises a secret, such as a variable's
name or the first line of a private key, then the new lines would show the secret. So the new lines are masked as well,
and a file is left out unless each secret is still masked in them. The same text is checked, shown and written.
"""

import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Unpack, cast

from ripwrap._edits.planning import FileChange
from ripwrap._ripgrep.runner import DeadlineRunner
from ripwrap._text import as_utf8, plural, shown
from ripwrap.edits import EditPlan, FileEdits
from ripwrap.models import Span
from ripwrap.options import SearchOptions
from ripwrap.workspace.arguments import Globs, PathList, ToolArguments, VisibilityOptions, parse_arguments
from ripwrap.workspace.close_names import names_in, resolve_names
from ripwrap.workspace.dispatch import ToolMethods
from ripwrap.workspace.notes import shortened
from ripwrap.workspace.redact import MAX_SCANNED_BYTES, MAX_SECRET_CHARS, KeyLines, Redaction, key_lines
from ripwrap.workspace.results import FileHits, ToolResult
from ripwrap.workspace.sandbox import RootLocation
from ripwrap.workspace.scope import Scope, Settings, file_filter, open_scope, pattern_options, visible_paths
from ripwrap.workspace.shown_lines import snippet
from ripwrap.workspace.text_files import Deadline
from ripwrap.workspace.tool import ToolCall, ToolSpec


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
    path: PathList = "."
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


@dataclass(slots=True)
class EditMasks:
    """Masks of the files of a plan."""

    redact: Redaction
    check: Callable[[], object] | None = None
    _keys: dict[str, tuple[KeyLines, KeyLines]] = field(default_factory=dict[str, tuple[KeyLines, KeyLines]])

    def why_refused(self, path: str, text: bytes, changes: Sequence[FileChange]) -> str:
        """Return the reason why a file must be left out, or an empty text; `planning.Screen`.

        The text has whole lines only in the edited blocks of the file. Other lines are the same before and after, so
        only their place in a private key can differ.
        """
        new = _applied(text, 0, len(text), changes)
        if max(len(text), len(new)) > MAX_SCANNED_BYTES:
            return f"it has more than {MAX_SCANNED_BYTES:,} bytes, the limit for masking secrets; change it by hand"
        keys = self._keys[path] = key_lines(BytesIO(text)), key_lines(BytesIO(new))
        number, done, shift, unedited = 1, 0, 0, list[tuple[int, int, int]]()
        for start, end, inside in _blocks(text, changes):
            first = number + text.count(b"\n", done, start)
            unedited.append((number, first, shift))
            after = _applied(text, start, end, inside)
            old, changed = self._masks(text[start:end], first, keys[0]), self._masks(after, first + shift, keys[1])
            if old and not _keeps_masks(old, changed, start, inside):
                return _reason(first)
            number, done = first + text.count(b"\n", start, end), end
            shift += after.count(b"\n") - (number - first)
        unedited.append((number, number + text.count(b"\n", done) + 1, shift))
        if keys[0].numbers:
            for first, end, moved in unedited:
                for line in range(first, end):
                    if line in keys[0].numbers and line + moved not in keys[1].numbers:
                        return _reason(line)
        return ""

    def masked(self, path: str, line: str, *, old: int = 0, new: int = 0) -> str:
        """Return a line of the diff of a file with its secrets masked."""
        keys = self._keys[path]
        return self.redact(line, old or new, keys[0] if old else keys[1], self.check).text

    def _masks(self, text: bytes, first: int, keys: KeyLines) -> list[Span]:
        """Return the parts of whole lines that are masked, as offsets in bytes."""
        decoded = text.decode("utf-8", "surrogateescape")
        spans: list[Span] = []
        done = offset = 0
        for mask in self.redact(decoded, first, keys, self.check).masks:
            start = offset + _size(decoded[done : mask.start])
            done, offset = mask.end, start + _size(decoded[mask.start : mask.end])
            spans.append((start, offset))
        return spans


def _reason(line: int) -> str:
    return f"the replacement changes or shows a masked secret at line {line}; change the file by hand"


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def _applied(text: bytes, start: int, end: int, changes: Sequence[FileChange]) -> bytes:
    """Return a part of a text with its changes."""
    pieces: list[bytes] = []
    for change in changes:
        pieces += text[start : change.start], change.after
        start = change.end
    return b"".join((*pieces, text[start:end]))


def _blocks(text: bytes, changes: Sequence[FileChange]) -> Iterator[tuple[int, int, list[FileChange]]]:
    """Yield start, end and changes of each block of edited lines, which are whole lines in the new text, too."""
    start = end = 0
    inside: list[FileChange] = []
    for change in changes:
        if not inside or (change.start >= end and text.endswith(b"\n", 0, end)):
            if inside:
                yield start, end, inside
            start, inside = text.rfind(b"\n", end, change.start) + 1 or end, []
            end = start
        inside.append(change)
        if change.end > end or change.start >= end:
            end = _line_end(text, max(change.end - 1, change.start))
        if change.end == end and not change.after.endswith(b"\n"):
            end = _line_end(text, end)
    if inside:
        yield start, end, inside


def _line_end(text: bytes, start: int) -> int:
    return text.find(b"\n", start) + 1 or len(text)


def _keeps_masks(old: Sequence[Span], new: Sequence[Span], start: int, changes: Sequence[FileChange]) -> bool:
    """Return True if no change touches a mask of the old lines, and the new lines have the same text masked.

    A change beside a mask touches it, too: it could make a secret so long that a tool that cuts long lines does not
    recognise it.
    """
    shift = at = 0
    for first, last in old:
        while at < len(changes) and changes[at].end < first + start:
            shift += len(changes[at].after) - len(changes[at].before)
            at += 1
        if at < len(changes) and changes[at].start <= last + start:
            return False
        if not _covered((first + shift, last + shift), new):
            return False
    return True


def _covered(span: Span, masks: Sequence[Span]) -> bool:
    """Return True if each character of a span is in one of the masks, which are in order."""
    here, end = span
    at = max(bisect_right(masks, here, key=lambda mask: mask[0]) - 1, 0)
    for first, last in masks[at:]:
        if first > here or here >= end:
            break
        here = max(here, last)
    return here >= end


_MAX_FILES = 100
"""Maximum number of files in the list of files of an answer."""

MAX_BYTES = 32 << 20
"""Maximum size in bytes of a file, before and after the change, and of all edits together; see `replace()`."""

_HUNK = re.compile(r"@@ -([0-9]+)(?:,[0-9]+)? \+([0-9]+)")
_MAX_CHAR_BYTES = 4


async def run_replace_content(call: ToolCall, arguments: ReplaceContentArguments) -> ReplaceContentResult:
    """Find what would change, and write the changes if the arguments ask for that."""
    from ripwrap._edits.journal import apply_edits
    from ripwrap._edits.replace import across_line_ends_of_files, replace_request, run_replace  # late: few calls write

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
        if location.lines:
            raise ValueError(
                f"path names lines of {shown(location.name)}, but all of it would be changed; leave the lines out, "
                "and write a pattern that matches only what should change"
            )
        globs = await resolve_names(arguments.file_pattern, names_in(limited, scope))
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
    lines = await limited.call(lambda: _diff(settings, location, plan, masks))
    if arguments.apply and plan:
        await limited.call_to_end(lambda: apply_edits(plan.root, plan.files, None, holds=holds))

    def answer(count: int) -> ReplaceContentResult:
        return _answer(arguments, scope, plan, lines[:count], len(lines))

    # The answer is made many times, and each time all edits are counted.
    return await limited.call(lambda: shortened(answer, len(lines), settings.max_chars))


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


REPLACE_CONTENT = ToolSpec(
    "replace_content",
    ReplaceContentArguments,
    ReplaceContentResult,
    run_replace_content,
    title="Replace in files",
    needs="write",
    aliases=("edit", "edit_file", "replace", "search_replace", "replace_string_in_file", "replace_in_files"),
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
        return self.text(
            await self.replace_content_result(
                pattern,
                replacement,
                path,
                apply=apply,
                file_pattern=file_pattern,
                file_type=file_type,
                case_insensitive=case_insensitive,
                fixed_strings=fixed_strings,
                multiline=multiline,
                include_hidden=include_hidden,
                include_ignored=include_ignored,
            )
        )

    async def replace_content_result(
        self, pattern: str, replacement: str, path: str = ".", **options: Unpack[ReplaceContentOptions]
    ) -> ReplaceContentResult:
        """Return the answer of `replace_content()` as a `ReplaceContentResult`.

        The errors of `grep_content_result()` are raised, too.
        """
        arguments = parse_arguments(
            ReplaceContentArguments, {"pattern": pattern, "replacement": replacement, "path": path, **options}
        )
        return await run_replace_content(self._tools.begin(), arguments)
