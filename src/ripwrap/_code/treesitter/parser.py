"""Parse source with tree-sitter and semble-grammars (the extra `code`), which are imported when first needed.

The parsers are written in C, and may hang or crash on hostile source; `worker` runs them in another process.
"""

import importlib
import logging
import re
import time
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any

from ripwrap._code.treesitter.languages import find_grammar
from ripwrap._code.treesitter.outline import SyntaxOutline, read_syntax
from ripwrap.errors import Hint, HintedText, MissingPackageError

if TYPE_CHECKING:
    from tree_sitter import Language

MAX_FILE_CHARS = 2_000_000
"""Maximum number of characters of a file that is parsed. Larger files take seconds, and the memory of their trees is
ten times their size.
"""

MAX_LINE_CHARS = 10_000
"""Maximum number of characters of a line that are parsed. Longer lines are generated code, where a line has many
definitions, and take some parsers quadratic time.
"""

PARSE_TIMEOUT = 5.0
"""Seconds of processor time for a file; a megabyte of ordinary source takes at most one second."""

_READ_BYTES = 512
"""Number of bytes that tree-sitter gets at a time, to parse the source or to read the text of a node."""
_CALLS_PER_CHECK = 64
"""Number of calls of `progress_callback`, each after 100 steps of the parser, after which the time is compared."""
_MIN_TREE_SITTER = (0, 26, 1)
"""Oldest version of tree-sitter whose `progress_callback` can stop a parser; older versions crash."""
_MAX_ANGLE_BRACKETS = 1_000
"""Maximum number of angle brackets in a statement. It applies to languages in which nested angle brackets take the
parser quadratic time or more.
"""
_C_MACROS = (
    r"(?<=\))\s*+(?:(?:const|noexcept|override|final)\b\s*+){0,4}(?:[A-Z][A-Z0-9_]{3,}+(?:\([^()\n]*+\))?\s*+){1,4}(?=\{)",
    r"[A-Z](?<=[\w*][ \t].)[A-Z0-9_]{3,}(?=[ \t]+[a-zA-Z_~][\w:~]*[ \t]*\()",
    r"^[ \t]*[A-Z][A-Z0-9_]{3,}[ \t]*$",
)
"""Macros between the parameters of a function and its body, before its name, and alone on their lines. As one pattern,
they take three times as long, and a fourth of the time to split a file of C.
"""
_UNKNOWN = {
    **dict.fromkeys(("c", "cpp", "objc"), tuple(re.compile(macro, re.MULTILINE) for macro in _C_MACROS)),
    # conditions around the cases of a `switch`, words of ownership, and names that have blanks
    "swift": (
        re.compile(
            r"^[ \t]*#(?:if|elseif|else|endif)\b.*|\b(?:borrowing|consume|consuming|copy|sending) (?=[\w(])|`[^`\n]+`",
            re.MULTILINE,
        ),
    ),
    # annotations of a constructor on lines of their own, and `annotation` behind another annotation
    "kotlin": (
        re.compile(
            r"\bclass[ \t]+\w++(?:<[^<>\n]*+>)?[ \t]*\n(?:[ \t]*+@[\w.:]++(?:\([^()\n]*+\))?\n){1,9}"
            r"(?=[ \t]*(?:\w+ )?constructor\b)|\bannotation(?= class\b)"
        ),
    ),
}
"""Patterns for what the grammar of a language does not know, and loses the definitions around it. Blanks are parsed in
its places, or `_` in a name in backticks; a line that begins with `class` is kept.
"""
_STATEMENT_END = re.compile("[;{}]")
_LOGGER = logging.getLogger("ripwrap")


def is_available() -> bool:
    """Return True if the extra `code` is installed."""
    return load_grammars() is not None


def check_installed() -> None:
    """Raise `MissingPackageError` if the extra `code` is not installed."""
    if not is_available():
        needed = "definitions in code need tree-sitter 0.26.1 or later and semble-grammars: "
        raise MissingPackageError(HintedText(needed, Hint(kind="install", target="ripwrap[code]")))


def is_supported(path: str, text: str) -> bool:
    """Return True if there is a grammar for a file's language."""
    return find_grammar(path, text) is not None


def parse_outline(path: str, text: str, *, timeout: float = PARSE_TIMEOUT) -> SyntaxOutline | None:
    """Parse a file, without the rest of very long lines; return None if that is not possible, or takes too long."""
    if len(text) > MAX_FILE_CHARS or (grammar := find_grammar(path, text)) is None:
        return None
    lines = [line[:MAX_LINE_CHARS] for line in text.split("\n")]
    if grammar.generics and _has_nested_angle_brackets(text):
        return None
    if (language := _load_language(grammar.name)) is None:
        return None
    from tree_sitter import Parser  # late: an optional package

    code = "\n".join(lines).replace("\0", " ")  # NUL ends the text in some grammars
    raw = code.encode("utf-8", "replace")
    for pattern in _UNKNOWN.get(grammar.name, ()):
        code = pattern.sub(_known_code, code)
    parsed = code.encode("utf-8", "replace")
    limit, calls = time.thread_time() + timeout, count(1)
    # If `progress_callback` returns True, the parser stops, and `parse` raises ValueError. The source is also passed as
    # a callback, because `progress_callback` has no effect if the source is bytes.
    # https://tree-sitter.github.io/py-tree-sitter/classes/tree_sitter.Parser.html
    try:
        tree = Parser(language).parse(
            lambda offset, _: parsed[offset : offset + _READ_BYTES],
            progress_callback=lambda _, __: next(calls) % _CALLS_PER_CHECK == 0 and time.thread_time() > limit,
        )
    except ValueError:
        return None
    parsed = raw  # the text of a node is read in the same way, and later
    return read_syntax(grammar, language, lines, tree.root_node)


def _known_code(found: re.Match[str]) -> str:
    """Return what is parsed in place of a match of `_UNKNOWN`; it has the same size in UTF-8."""
    kept, rest = "", found[0]
    if rest.startswith("class"):
        kept, newline, rest = rest.partition("\n")
        kept += newline
    mark, known = ("_", r"\w`") if rest.startswith("`") else (" ", r"\n")
    return kept + re.sub(rf"[^{known}]", lambda one: mark * len(one[0].encode("utf-8", "replace")), rest)


def _has_nested_angle_brackets(text: str) -> bool:
    return text.count("<") > _MAX_ANGLE_BRACKETS and any(
        len(statement) > _MAX_ANGLE_BRACKETS and statement.count("<") > _MAX_ANGLE_BRACKETS
        for statement in _STATEMENT_END.split(text)
    )


@cache
def load_grammars() -> Any:
    """Import the package of grammars; return None if the package or a recent tree-sitter is not installed."""
    from importlib.metadata import version  # late: it takes 10 ms

    try:
        if tuple(map(int, re.findall(r"\d+", version("tree-sitter"))[:3])) < _MIN_TREE_SITTER:
            return None
        importlib.import_module("tree_sitter")
        return importlib.import_module("semble_grammars")
    except ImportError:
        return None


@cache
def _load_language(name: str) -> "Language | None":
    """Load a grammar; if that fails, log a warning once and return None. Without the extra `code`, return None."""
    grammars = load_grammars()
    if grammars is None:
        return None
    try:
        language: Language = grammars.get_language(name)
    except (
        grammars.GrammarLoadError,
        grammars.LanguageNotFoundError,
        grammars.UnsupportedPlatformError,
        OSError,
        RuntimeError,  # there is no home directory to unpack grammars to
        ValueError,  # the grammar needs another version of tree-sitter
    ) as error:
        _LOGGER.warning(
            "could not load the grammar of %s (%s), so files in this language are split into chunks by lines, not by "
            "definitions; try %s",
            name,
            error,
            Hint(kind="install", target="ripwrap[code]"),
        )
        return None
    return language
