"""A file's text to chunks that are its functions, classes and methods, by tree-sitter if it is there: pure.

languages   which nodes of each grammar are definitions
outline     a syntax tree to definitions, one level at a time
pieces      lines to chunks: small ones together, large ones in parts
"""

import importlib
import logging
import re
import time
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from ripwrap._ranking.chunks import Chunk
from ripwrap._ranking.chunks import chunks_of as windows_of
from ripwrap.index.languages import Grammar, grammar_of
from ripwrap.index.outline import Found, Outline
from ripwrap.index.pieces import LARGEST, Lines, Piece, chunks_from

if TYPE_CHECKING:
    from tree_sitter import Language, Node

MOST = 1_000_000
"""Characters of a file that is parsed; tree-sitter takes some seconds for more, and its tree ten times their memory."""

LONGEST_LINE = 10_000
"""Characters of a line in it; longer ones are made by programs, which put no definitions on lines."""

SECONDS = 5.0
"""Of the processor's time that a file may take to be parsed; a megabyte of ordinary source takes one at most."""

_VERSION = 1
_READ = 512  # Bytes that the parser asks for at once; it reads them again for the text of a node.
_OLDEST = (0, 26, 1)  # What is older crashes when it tells how far it is.
_ANGLES = 1_000  # Angle brackets in a statement of a language in which they take the parser long.
_STATEMENT = re.compile("[;{}]")
_DEEPEST = 30  # Definitions in definitions; what is deeper is split by lines.
_LOGGER = logging.getLogger("ripwrap")


def available() -> bool:
    """Whether the extra `syntax` is installed; without it all chunks are windows of lines."""
    return _grammars() is not None


def chunker() -> str:
    """What says how chunks are made: as long as it is the same, the same text gives the same chunks."""
    grammars = _grammars()
    if grammars is None:
        return f"windows {_VERSION}"
    return f"syntax {_VERSION}, semble-grammars {grammars.__version__}"


def is_known(path: str, text: str) -> bool:
    """Whether the language of a file is one that is parsed."""
    return grammar_of(path, text) is not None


def chunks_of(path: str, text: str) -> list[Chunk]:
    """The chunks of a file: its definitions, where its language is known and the extra `syntax` installed.

    They have each line of the file once, in order. A function, class, method, table, key or section of up to 2,000
    characters is one, with its docstring, and the comments, decorators and attributes directly above it. A larger class
    is what is not in its methods, and each of those. What is still larger is split into parts, each of which has the
    last three lines of the one before, or as many of them as have no more than 300 characters. What is between
    definitions, and definitions of up to three lines and 200 characters, are put together, up to 1,000.

    All else is cut into windows of lines: files of an unknown extension, of over a million characters, or with a line
    of over 10,000, and what the parser needs more than five seconds for. Broken source is parsed as far as it goes;
    but a parser in C is no match for hostile source, and may hang or crash: `apart.Chunker` takes care of that.

    Args:
        path: The path of the file; only the name tells the language.
        text: What is in it. What is no text in it, as NUL or a lone surrogate, does no harm.
    """
    if len(text) <= MOST and (grammar := grammar_of(path, text)) is not None:
        lines = text.split("\n")
        if (root := _parsed(grammar, text, lines)) is not None:
            counted = Lines(text, lines)
            return list(chunks_from(counted, _pieces(counted, Outline(grammar, lines, LARGEST), root)))
    return list(windows_of(text))


def _parsed(grammar: Grammar, text: str, lines: Sequence[str]) -> "Node | None":
    """The root of a file's tree; `None` if it can't be made, or would take too long."""
    if len(max(lines, key=len)) > LONGEST_LINE or (grammar.generics and _is_dense(text)):
        return None
    if (language := _language(grammar.name)) is None:
        return None
    from tree_sitter import Parser

    raw = text.replace("\0", " ").encode("utf-8", "replace")  # NUL is the end of the text to some grammars
    limit = time.thread_time() + SECONDS
    try:
        tree = Parser(language).parse(
            lambda offset, _: raw[offset : offset + _READ],
            progress_callback=lambda _, __: time.thread_time() > limit,
        )
    except ValueError:  # it was stopped
        return None
    return tree.root_node


def _is_dense(text: str) -> bool:
    return text.count("<") > _ANGLES and any(
        len(statement) > _ANGLES and statement.count("<") > _ANGLES for statement in _STATEMENT.split(text)
    )


def _pieces(lines: Lines, outline: Outline, root: "Node") -> Iterator[Piece]:
    if lines.count:
        whole = Found(0, lines.count - 1, "", space=True, node=root)
        yield from _inner(lines, outline, whole, None, 0)


def _inner(lines: Lines, outline: Outline, around: Found, symbol: str | None, depth: int) -> Iterator[Piece]:
    """The definitions in one, or in the file, each cut further if it is large, and what is between them."""
    line = around.first
    for found in outline.within(around.node, top=depth == 0) if around.node is not None else ():
        # In broken source a definition may begin where the one before has not ended.
        first, last = max(found.first, line), min(found.last, around.last)
        if first > last:
            continue
        if line < first:
            yield Piece(line, first - 1, symbol, symbol, 0, opens=around.space and line == around.first and depth > 0)
        line = last + 1
        name = outline.qualified(symbol, found.name)
        if depth < _DEEPEST and (found.space or lines.size(first, last) > LARGEST):
            yield from _inner(lines, outline, found._replace(first=first, last=last), name, depth + 1)
        else:
            yield Piece(first, last, name, symbol, 1)
    if line == around.first and depth:
        yield Piece(line, around.last, symbol, symbol, 1)
    elif line <= around.last:
        yield Piece(line, around.last, symbol, symbol, 0)


@cache
def _grammars() -> Any:
    """The package of grammars; `None` if it or a tree-sitter that can be stopped is not there."""
    try:
        if tuple(map(int, re.findall(r"\d+", version("tree-sitter"))[:3])) < _OLDEST:
            return None
        importlib.import_module("tree_sitter")
        return importlib.import_module("semble_grammars")
    except ImportError:
        return None


@cache
def _language(name: str) -> "Language | None":
    """A grammar; `None` if it can't be loaded."""
    grammars = _grammars()
    if grammars is None:
        return None
    try:
        language: Language = grammars.get_language(name)
    except (
        grammars.GrammarLoadError,
        grammars.LanguageNotFoundError,
        grammars.UnsupportedPlatformError,
        OSError,
        RuntimeError,  # there is no home directory to unpack them to
        ValueError,  # the grammar and tree-sitter do not fit
    ) as error:
        _LOGGER.warning("the grammar of %s can't be loaded, so its files are cut into windows: %s", name, error)
        return None
    return language
