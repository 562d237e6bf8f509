"""Lines of matches and ranked chunks, as all printers show them."""

from collections.abc import Iterator, Sequence
from typing import AnyStr

from ripwrap._text import has_text, plural, raw_bytes, shown
from ripwrap.cli.errors import complain
from ripwrap.models import Context, End, Match, Message

MAX_SNIPPET_LINES = 6
"""Maximum number of lines of a ranked chunk that are shown."""
MAX_LINE_CHARS = 200
"""Maximum number of characters that are shown of each line of a ranked chunk."""


def left_out(lines: Sequence[AnyStr]) -> str:
    """Return a text that says how many lines of a chunk are not shown; empty if all lines with text are shown."""
    rest = lines[MAX_SNIPPET_LINES:]
    return f"  … {plural(len(rest), 'more line')}" if has_text(rest) else ""


def numbered(message: Match | Context) -> Iterator[tuple[int | None, bytes]]:
    """Yield the number and the bytes of each line of a match or context; the bytes include the line terminator.

    The number is `None` if the message has no line number. If the option `replace` was passed, the matched texts in the
    line are replaced.
    """
    text = message.replaced() if isinstance(message, Match) else message.lines
    return number_lines(message, raw_bytes(text))


def number_lines(message: Match | Context, text: bytes) -> Iterator[tuple[int | None, bytes]]:
    """Yield each line of a text of a match or context, with its number; see `numbered()`."""
    lines = text.removesuffix(b"\n").split(b"\n")
    for offset, line in enumerate(lines):
        end = b"\n" if offset < len(lines) - 1 or text.endswith(b"\n") else b""
        yield None if message.line_number is None else message.line_number + offset, line + end


def omitted(message: Match | Context, line: bytes, max_columns: int) -> bytes:
    """Return the text that rg prints instead of a line longer than `max_columns` bytes; empty for any other line.

    If `max_columns` is 0, no line is too long.
    """
    if not max_columns or len(line) <= max_columns:
        return b""
    return b"[Omitted long matching line]" if isinstance(message, Match) else b"[Omitted long context line]"


def warn_of_binary_end(message: Message) -> None:
    """If the message is the end of a binary file, warn that the search of the file may have ended early."""
    if isinstance(message, End):
        warn_of_binary(message.path, message.binary_offset)


def warn_of_binary(path: str | None, offset: int | None) -> None:
    """Print a warning, as rg does, that the search of a file may have ended at the NUL byte at `offset`.

    If `offset` is None, print nothing.
    """
    if offset is not None:
        where = shown(path or "<stdin>")
        complain(
            f"{where}: binary, so its search may have ended at the NUL byte at offset {offset}; "
            "--text searches all of it"
        )
