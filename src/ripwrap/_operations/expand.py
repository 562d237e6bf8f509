"""Read the code around a match: the definition, block or paragraph that encloses it, or a number of lines."""

import errno
import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader, TextIOWrapper
from itertools import islice
from typing import Literal, TypeAlias

from ripwrap._code.enclosing import LineSpan, block_at, definition_at, gaps_between, kept_lines
from ripwrap._code.outline import LiteralSpan
from ripwrap._code.treesitter.parser import is_available
from ripwrap._code.treesitter.worker import read_outline
from ripwrap._ripgrep.protocols import Runner
from ripwrap._ripgrep.runner import AsyncRunner
from ripwrap._system.safe_open import open_regular_file
from ripwrap._text import byte_order_mark, cut_text, plural, raw_bytes, shown, text_of
from ripwrap.errors import Hint, HintedText, RipwrapError, named_paths
from ripwrap.models import Context, Match
from ripwrap.options import StrPath, check_limit, check_timeout
from ripwrap.results import Expansion, NumberedLine, RankedChunk

ExpandTo: TypeAlias = Literal["definition", "block"]

EXPAND_LINES = 100
"""Default maximum number of lines of an expansion."""

MAX_SOURCE_BYTES = 2_000_000
"""Maximum size in bytes of a file in which definitions are looked for. This size takes a quarter of a second."""

_NEAR_LINES = 10_000
"""Number of lines to read before and after the match if the file is larger than `MAX_SOURCE_BYTES`."""

_MAX_QUOTED_CHARS = 60
_NO_LINE_NUMBER, _NULL_DATA = (Hint(name, kind="omit") for name in ("no_line_number", "null_data"))


@named_paths
async def expand(
    match: Match | Context | RankedChunk,
    *,
    to: ExpandTo | None = None,
    lines: int | None = None,
    max_lines: int | None = EXPAND_LINES,
    cwd: StrPath | None = ".",
) -> Expansion:
    """Read the lines around a match: the definition, block or paragraph that encloses it, or a number of lines.

    Definitions are found by tree-sitter (the extra `code`), in more than thirty languages and formats. In source with
    syntax errors, a definition may be missed, or its end may be wrong. A definition begins with its decorators and the
    comments directly above it. Outside of definitions, and in files of more than two million bytes, the block is shown.
    A block is a line with the lines indented below it, or a pair of brackets that spans lines. A block includes its
    opening and closing lines. Outside of blocks, the paragraph is shown: the lines between the nearest blank lines
    before and after the match.

    The call reads the file, and decodes it as rg does: by its byte order mark, or as UTF-8. The file must still have
    the lines of the match, with the same text.

    ```python
    import asyncio

    import ripwrap


    async def main():
        async for match in ripwrap.search("TODO: taxes", cwd="demo"):
            print(await ripwrap.expand(match, cwd="demo"))


    asyncio.run(main())
    ```

    ```text
    shop/cart.py:4-6 function total
      4- def total(items):
      5:     # TODO: taxes
      6-     return sum(PRICES[item] for item in items)
    ```

    Args:
        match: A match or line of context from `search()`, `grep()` or `search_messages()`, or a result of `rank()` or
            `Index.search()`. For a result, the definition that its `symbol` names is shown; without `symbol`, a block.
        to: `definition` or `block`; `None` is `definition`, unless `lines` is given.
        lines: Number of lines before and after the match to show, in place of `to`.
        max_lines: Maximum number of lines. If a definition or block is longer, some of its lines are left out. Most
            of the shown lines are around the match, fewer are at the start, and fewest at the end. `None` shows all
            lines. `max_lines` has no effect together with `lines`.
        cwd: Directory that was searched, such as `GrepResult.root`; the path of the match is relative to it.

    Raises:
        RipwrapError: The file does not have the lines of the match any more.
        FileNotFoundError: The file does not exist any more, or `cwd` is not the directory that was searched.
        OSError: The file cannot be read.
        MissingPackageError: A definition is asked for, and the extra `code` is not installed.
        ValueError: The match has no line number, or its lines end with NUL; `to` is neither
            `definition`, `block` nor `None`; both `to` and `lines` are given; or a number is too small.
    """
    if to is not None and lines is not None:
        two = " are two ways to expand a match; give one of them"
        raise ValueError(HintedText(Hint("to", to), " and ", Hint("lines", lines), two))
    if to not in (None, "definition", "block"):
        wrong = f" must be 'definition' or 'block', got {to!r}; for a number of lines, pass "
        raise ValueError(HintedText(Hint("to", kind="correct"), wrong, Hint("lines")))
    around, max_lines = check_limit(lines, "lines"), check_limit(max_lines, "max_lines")
    if max_lines == 0:
        raise ValueError(HintedText(Hint("max_lines", kind="correct"), " must be 1 or more, or None for all; got 0"))
    if isinstance(match, RankedChunk):
        path, first, text, symbol = match.path, match.start_line, match.text, match.symbol
    else:
        path, first, text, symbol = match.path, line_of(match), match.lines, None
    texts = split_lines(raw_bytes(text))
    request = ExpandRequest(
        cwd=os.fspath(cwd or os.curdir),
        path=path,
        place=LineSpan(first, first + len(texts) - 1),
        texts=texts,
        definition=to != "block" and not (isinstance(match, RankedChunk) and symbol is None),
        symbol=symbol,
        around=around,
        max_lines=max_lines,
    )
    return await run_expand(AsyncRunner(None), request, timeout=None)


@dataclass(frozen=True, slots=True)
class ExpandRequest:
    """Checked arguments of `expand()`."""

    cwd: str
    path: str
    place: LineSpan
    texts: Sequence[bytes]
    definition: bool
    symbol: str | None
    around: int | None
    max_lines: int | None


def line_of(match: Match | Context) -> int:
    if match.line_number is None:
        raise ValueError(HintedText("the match has no line number; search without ", _NO_LINE_NUMBER))
    if match.line_terminator == "\0":
        raise ValueError(HintedText("the lines of the match end with NUL; search without ", _NULL_DATA))
    return match.line_number


async def run_expand(run: Runner, request: ExpandRequest, *, timeout: float | None) -> Expansion:  # noqa: ASYNC109
    """Read the file, and return the lines around the match."""
    return await run.call(lambda: _expand(request), seconds=check_timeout(timeout))


def _expand(request: ExpandRequest) -> Expansion:
    path, place = request.path, request.place
    try:
        source = _read_source(request)
    except FileNotFoundError:
        if os.path.lexists(os.path.join(request.cwd, path)):  # for example a pipe
            raise
        searched = HintedText("no such file in ", _shown_cwd(request), "; check ", Hint("cwd", kind="correct"))
        wrong = HintedText(searched, ", which must be the directory that was searched")
        raise FileNotFoundError(errno.ENOENT, wrong, path) from None
    now = source.lines[place.first - source.start : place.last - source.start + 1]
    if tuple(now) != tuple(map(text_of, request.texts)):
        raise _changed_error(request, source, now)
    to: Literal["definition", "block", "lines"] = "block"
    kind, name, span = "", None, None
    literals: Sequence[LiteralSpan] = ()
    if request.around is not None:
        to, span = "lines", LineSpan(place.first - request.around, place.last + request.around)
    elif request.definition and source.complete:
        code = read_outline(path, source.lines)
        literals = code.literals
        if (found := definition_at(code.outline, place, request.symbol)) is not None:
            section, span = found
            to, kind, name = "definition", code.outline.kind_of(section), section.name or None
    elif source.complete and is_available():
        literals = read_outline(path, source.lines).literals
    if span is None:
        moved = LineSpan(place.first - source.start + 1, place.last - source.start + 1)
        block = block_at(path, source.lines, moved, literals)
        span = LineSpan(block.first + source.start - 1, block.last + source.start - 1)
    span = span.joined(place)
    span = LineSpan(max(span.first, source.start), min(span.last, source.start + len(source.lines) - 1))
    limit = None if to == "lines" else request.max_lines
    kept = kept_lines(span, place, limit or len(source.lines))
    return Expansion(
        path=path,
        to=to,
        kind=kind,
        name=name,
        start_line=span.first,
        end_line=span.last,
        match_lines=(place.first, place.last),
        lines=tuple(NumberedLine(number=number, text=source.lines[number - source.start]) for number in kept),
        elided=tuple((gap.first, gap.last) for gap in gaps_between(span, kept)),
    )


@dataclass(frozen=True, slots=True)
class MatchSource:
    """All lines of a file, or only the lines near a match."""

    lines: Sequence[str]
    start: int
    complete: bool


def _read_source(request: ExpandRequest) -> MatchSource:
    """Read the whole file; if it is large, or `request.around` is set, read only the lines near the match."""
    place, near = request.place, request.around
    file = open_regular_file(request.cwd, request.path, follow=True)
    with _as_text(file) as (text, size):
        if near is None and size <= MAX_SOURCE_BYTES:
            return MatchSource([*_texts(text)], 1, complete=True)
        near = _NEAR_LINES if near is None else near
        first = max(place.first - near, 1)
        return MatchSource([*_texts(islice(text, first - 1, place.last + near))], first, complete=False)


def read_lines(folder: str, path: str, *, follow: bool, roots: Sequence[str]) -> list[str] | None:
    """Return the lines of a file, without line ends; None if the file is too large to look for definitions."""
    with open_regular_file(folder, path, follow=follow, roots=roots) as file:
        return lines_of(file)


def lines_of(file: BufferedReader) -> list[str] | None:
    """Return the lines of an open file as `read_lines()` does."""
    with _as_text(file) as (text, size):
        return None if size > MAX_SOURCE_BYTES else [*_texts(text)]


@contextmanager
def _as_text(file: BufferedReader) -> Generator[tuple[TextIOWrapper, int]]:
    """Read an open file as text, in the encoding that rg assumes; yield the text and the size of the file in bytes."""
    with file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        start = file.peek(4)
        mark, encoding = byte_order_mark(start)
        file.read(len(mark))
        # Bytes that are not UTF-8 become lone surrogates, so that no byte is lost.
        errors = "surrogateescape" if encoding == "utf-8" else "replace"
        with TextIOWrapper(file, encoding, errors=errors, newline="\n") as text:
            yield text, size


def _texts(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        plain = line.removesuffix("\n").removesuffix("\r")
        yield plain if plain.isascii() else text_of(raw_bytes(plain))


def split_lines(raw: bytes) -> list[bytes]:
    return [line.removesuffix(b"\r") for line in raw.removesuffix(b"\n").split(b"\n")]


def _shown_cwd(request: ExpandRequest) -> str:
    return shown(os.path.abspath(request.cwd))


def _changed_error(request: ExpandRequest, source: MatchSource, now: Sequence[str]) -> RipwrapError:
    place = request.place
    name = f"{shown(request.path)} changed since the search"
    wrong = HintedText(
        ", or ", Hint("cwd", kind="correct"), f" is not the directory that was searched ({_shown_cwd(request)})"
    )
    if len(now) < len(request.texts):
        known = source.lines or source.start == 1
        has = f"has {plural(source.start + len(source.lines) - 1, 'line')}" if known else "is shorter"
        said = f": it {has} now, and the match was in line {place.last}; search again"
        return RipwrapError(HintedText(name, wrong, said))
    pairs = zip(now, map(text_of, request.texts), strict=True)
    at, old, new = next((at, old, new) for at, (new, old) in enumerate(pairs) if new != old)
    said = f": line {place.first + at} is {_quoted(new)} now, and was {_quoted(old)}; search again"
    encoded = ", or was searched with encoding=, which expand() does not support"
    return RipwrapError(HintedText(name, encoded, wrong, said))


def _quoted(text: str) -> str:
    return repr(cut_text(text.strip(), _MAX_QUOTED_CHARS))
