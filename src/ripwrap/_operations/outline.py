"""List the definitions of a file."""

import os

from ripwrap._code.outline import Section
from ripwrap._code.treesitter.worker import read_outline
from ripwrap._operations.expand import MAX_SOURCE_BYTES, read_lines
from ripwrap._ripgrep.protocols import Runner
from ripwrap._ripgrep.runner import AsyncRunner, DeadlineRunner
from ripwrap._text import shown
from ripwrap.errors import RipwrapError, named_paths
from ripwrap.options import StrPath, check_timeout


@named_paths
async def outline(path: StrPath, *, cwd: StrPath | None = ".") -> tuple[Section, ...]:
    """Return the definitions of a file, or the headings, tables or keys of a document, in the order of their lines.

    A definition within another one comes after it, with a qualified name such as `Shop.add`. Definitions are found by
    tree-sitter (the extra `code`), in more than thirty languages and formats, as in `expand()`. In source with syntax
    errors, a definition may be missed, or its end may be wrong. Other files, such as plain text or JSON, have no
    sections.

    ```python
    import asyncio

    import ripwrap

    for section in asyncio.run(ripwrap.outline("shop/cart.py", cwd="demo")):
        print(section.line, section.end_line, section.name)
    ```

    ```text
    4 6 total
    ```

    Args:
        path: The file. It is decoded as rg does: by its byte order mark, or as UTF-8.
        cwd: Directory that `path` is relative to.

    Raises:
        FileNotFoundError: The file does not exist, or is not a regular file.
        IsADirectoryError: The path is a directory.
        OSError: The file cannot be read.
        ValueError: The file is binary, or has more than two million bytes.
        MissingPackageError: The extra `code` is not installed.
        RipwrapError: The parser takes too long, or crashes.
    """
    return await run_outline(AsyncRunner(None), path, cwd, timeout=None)


async def run_outline(
    run: Runner,
    path: StrPath,
    cwd: StrPath | None,
    *,
    timeout: float | None,  # noqa: ASYNC109
) -> tuple[Section, ...]:
    """Return the definitions of a file; see `outline()`."""
    run = DeadlineRunner(run, check_timeout(timeout))
    return await run.call(lambda: _outline(os.fspath(path), os.fspath(cwd or os.curdir)))


def _outline(path: str, cwd: str) -> tuple[Section, ...]:
    if os.path.isdir(os.path.join(cwd, path)):
        raise IsADirectoryError(f"{shown(path)} is a directory; pass the path of a file")
    try:
        lines = read_lines(cwd, path, follow=True, roots=(path,))
    except FileNotFoundError as error:
        said = f"{shown(path)} does not exist in {shown(os.path.abspath(cwd))}, or is not a regular file"
        raise FileNotFoundError(f"{said}; pass the path of a text file") from error
    if lines is None:
        raise ValueError(
            f"{shown(path)} has more than {MAX_SOURCE_BYTES:,} bytes, the limit of outline(); search the file instead"
        )
    if any("\0" in line for line in lines):
        raise ValueError(f"{shown(path)} is binary; outline() reads text only")
    found = read_outline(path, lines)
    if not found.parsed:
        raise RipwrapError(f"{shown(path)} could not be parsed in time, or crashes the parser; search the file instead")
    return found.outline.sections()
