"""Work of the tool `read_file`: lines of one or several files, and an outline with the definitions that fit."""

from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate

from ripwrap._code.outline import Section, levels_of, outline_rows
from ripwrap._code.treesitter.parser import is_supported
from ripwrap._operations.expand import MAX_SOURCE_BYTES
from ripwrap._text import cut_text, in_seconds, plural, shown_path
from ripwrap.errors import RipwrapError
from ripwrap.workspace.close_names import ask_close_names
from ripwrap.workspace.expansion import SourceFile, missing_code, read_source_file
from ripwrap.workspace.notes import shortened
from ripwrap.workspace.read_file import ReadFileArguments, ReadFileResult, ReadLines, read_ranges
from ripwrap.workspace.sandbox import MissingPathError
from ripwrap.workspace.scope import Settings, open_scope
from ripwrap.workspace.shown_lines import snippet
from ripwrap.workspace.tool import MIN_CHARS, ToolCall, digest_of

CHARS_PER_FILE = 500
"""Smallest share of an answer in characters; with `max_chars=20000`, a call reads at most 40 files."""
_MAX_ERROR_CHARS = 200


async def read_several(call: ToolCall, arguments: ReadFileArguments) -> ReadFileResult:
    """Return the lines of several files; the message has an error for each file that cannot be read."""
    paths, most = arguments.paths, call.settings.max_chars // CHARS_PER_FILE
    if len(paths) > most:
        raise ValueError(f"path names {len(paths)} files, and a call reads at most {most}; pass fewer")
    if arguments.outline:
        raise ValueError("outline is for one file, and path names several; call the tool once for each file")
    share = call.settings.max_chars // len(paths) - _MAX_ERROR_CHARS
    read: list[ReadFileResult] = []
    said: list[str] = []
    failed: list[Exception] = []
    for path in paths:
        try:
            lines = await read_ranges(call, arguments.model_copy(update={"path": path}))
            read.append(await call.run.call(partial(shortened, lines.answer, lines.count, share)))
        except TimeoutError:
            raise
        except (OSError, ValueError, RipwrapError) as error:
            failed.append(error)
            name, text = shown_path(path), f"{error}"
            text = text if text.startswith(name) else f"{name}: {text}"
            said.append(f"{cut_text(text, _MAX_ERROR_CHARS - 1)}.")
        else:
            said.append(f"{shown_path(read[-1].path)}: {read[-1].message}")
    if not read:
        raise failed[0]
    blocks = [block.model_copy(update={"path": one.path}) for one in read for block in one.blocks]
    return ReadFileResult(
        root=read[0].root,
        path=".",
        blocks=tuple(blocks),
        total_lines=None,
        truncated=any(one.truncated for one in read),
        message=f"{plural(len(read), 'file')}. {' '.join(said)}",
    )


OUTLINE_SHARE = 1 / 3
"""Maximum share of the length of an answer (`max_chars`) that an outline may take beside lines, from 0 to 1."""

MAX_LINES = 100_000
"""Maximum number of lines of a file that gets an outline unasked; an outline of more lines takes seconds."""


async def run_read_file(call: ToolCall, arguments: ReadFileArguments) -> ReadFileResult:
    """Return what `_read()` returns; with anchors, only a sentence if an equal call had the same answer.

    Raises what `read_ranges()` raises.
    """
    answer = await _read(call, arguments)
    if not call.settings.anchors or len(text := str(answer)) < MIN_CHARS:
        return answer
    digest = digest_of(text)
    before = call.memory.exchange(arguments.model_copy(update={"force": False}), digest)
    if arguments.force or before is None or before.value != digest:
        return answer
    said = f"Unchanged since it was shown {in_seconds(round(before.seconds))} ago; force=True shows it again."
    return answer.model_copy(update={"blocks": (), "outline": (), "message": said})


async def _read(call: ToolCall, arguments: ReadFileArguments) -> ReadFileResult:
    """Return the lines of a file, its outline, or both; or the lines of several files.

    Raises what `read_ranges()` raises.
    """
    if len(arguments.paths) > 1:
        return await read_several(call, arguments)
    arguments = arguments.model_copy(update={"path": arguments.paths[0]})
    run, settings = call.run, call.settings
    try:
        read = await read_ranges(call, arguments)
    except MissingPathError as error:
        await _add_close_names(call, arguments.path, error)
        raise
    lines = await run.call(partial(shortened, read.answer, read.count, settings.max_chars))
    too_long = lines.truncated and not arguments.chooses_lines
    if not (arguments.outline or (too_long and 0 < (read.total or 0) <= MAX_LINES)):
        return lines
    return await run.call(partial(_with_outline, settings, read, lines))


async def _add_close_names(call: ToolCall, path: str, error: MissingPathError) -> None:
    """Add a note to an error about a missing file: files of the whole workspace that have nearly its name."""
    if error.near is not None:
        return
    with suppress(OSError, RipwrapError, ValueError):  # the first error is more helpful
        async with open_scope(call.run, call.settings, ".", hidden=False, ignored=False) as scope:
            if close := await ask_close_names(call.run, scope, path):
                error.add_note(close)


def _with_outline(settings: Settings, read: ReadLines, without: ReadFileResult) -> ReadFileResult:
    """Return the answer with the outline of the file, and with the lines that then fit.

    If lines were asked for, and there is no definition, the answer stays without an outline.
    """
    location, lines = read.location, read.count
    source = read_source_file(settings, location, location.paths[0], settings.redactor(location, location.paths[0]))
    every = source.outline.sections() if source else ()
    if source is None or not every:
        has_grammar = source is not None and is_supported(location.paths[0], "\n".join(source.lines))
        missing = missing_code() if has_grammar else None
        if lines and missing is None:
            return without
        why = f"it has more than {MAX_SOURCE_BYTES:,} bytes" if source is None else "no definition was found"
        said = missing or f"There is no outline: {why}"

        def explained(count: int) -> ReadFileResult:
            result = read.answer(count) if lines else without
            return result.model_copy(
                update={"message": f"{said}. {result.message if lines else 'Read or search its lines.'}"}
            )

        return shortened(explained, lines, settings.max_chars)
    room = int(settings.max_chars * OUTLINE_SHARE) if lines else settings.max_chars
    chosen = [_shown(settings, source, section) for section in outermost(every, room)]

    def about(result: ReadFileResult, count: int) -> ReadFileResult:
        known = {"outline": tuple(chosen[:count]), "truncated": result.truncated or count < len(every)}
        much = plural(len(every), "definition")
        said = f"The outline has {much}." if count == len(every) else f"The outline shows {count} of {much}."
        rest = result.message if lines else f"start_line and end_line give lines of the {result.total_lines}."
        return result.model_copy(update={**known, "message": f"{said} {rest}"})

    if not lines:
        return shortened(partial(about, without), len(chosen), settings.max_chars)
    return shortened(lambda count: about(read.answer(count), len(chosen)), lines, settings.max_chars)


def outermost(sections: Sequence[Section], max_chars: int) -> list[Section]:
    """Return the sections whose rows fit into a number of characters: inner sections are left out before outer ones."""
    by_level: dict[int, int] = {}
    sizes = [len(row) + 3 for row in outline_rows(sections)]  # with indentation and the end of the line
    levels = list(levels_of(sections))
    for level, size in zip(levels, sizes, strict=True):
        by_level[level] = by_level.get(level, 0) + size
    totals = list(accumulate(by_level[level] for level in range(len(by_level))))
    depth = bisect_right(totals, max_chars)
    if depth:
        return [section for section, level in zip(sections, levels, strict=True) if level < depth]
    outer = [(section, size) for section, level, size in zip(sections, levels, sizes, strict=True) if not level]
    most = bisect_right(list(accumulate(size for _, size in outer)), max_chars)
    return [section for section, _ in outer[:most]]


def _shown(settings: Settings, source: SourceFile, section: Section) -> Section:
    """Return a section as an answer shows it: secrets masked, and its line cut if it is long."""
    masked = source.masked(section)
    return masked.model_copy(update={"text": snippet(masked.text, 1, settings.max_line)})
