"""Read several files in one call of the tool `read_file`, each with an equal share of the answer."""

from functools import partial

from ripwrap._text import cut_text, plural, shown_path
from ripwrap.errors import RipwrapError
from ripwrap.workspace.budget import shortened
from ripwrap.workspace.read_file import ReadFileArguments, ReadFileResult, read_ranges
from ripwrap.workspace.tool import ToolCall

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
