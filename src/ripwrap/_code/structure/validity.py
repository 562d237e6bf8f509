"""Compare a text with its edited version: find a line that parsed before and does not parse now."""

import ast
import warnings
from collections.abc import Sequence

from ast_grep_py import SgNode, SgRoot


def broken_line(text: str, edits: Sequence[tuple[int, int, str]], root: SgNode, language: str) -> int | None:
    """Return a line of the edited text that does not parse, from 1; `None` if no less parses than before."""
    if not edits:
        return None
    parts, done = list[str](), 0
    for start, end, new in edits:
        parts += text[done:start], new
        done = end
    edited = "".join((*parts, text[done:]))
    faults = _faults(SgRoot(edited, language).root())
    if len(faults) > len(_faults(root)):
        return min(faults)
    if language == "python" and (line := _unparsed_line(edited)) is not None and _unparsed_line(text) is None:
        return line
    return None


def _faults(root: SgNode) -> list[int]:
    """Return the line of each node that does not parse, and of each token that the grammar requires and is missing.

    ast-grep does not say which tokens are missing. They are empty; in Markdown, other nodes are empty, too.
    """
    missing = (node for node in root.find_all(regex="^$") if node.is_leaf() and node.kind() != "block_continuation")
    return [node.range().start.line + 1 for node in (*root.find_all(kind="ERROR"), *missing)]


def _unparsed_line(text: str) -> int | None:
    """Return the line that Python does not accept, or `None`.

    tree-sitter also accepts wrong indentation.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        return error.lineno or 1
    except (ValueError, OverflowError, RecursionError, MemoryError):  # a NUL, or too deep for Python's parser
        return None
    return None
