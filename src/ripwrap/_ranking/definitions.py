"""Find the line that defines a name, in any of the usual languages, by regular expressions; pure."""

import re
from collections.abc import Iterator
from functools import lru_cache

from ripwrap._ranking.query import to_nfc

_KEYWORDS = (
    r"class|def|function\*?|func|fun|fn|interface|struct|enum|trait|type|typedef|module|namespace|protocol|object|record|union"
    r"|sub|macro_rules!|const|let|var|val|static"
)
_MODIFIERS = (
    r"export|default|declare|public|private|fileprivate|protected|internal|abstract|final|sealed|static|async|unsafe|extern"
    r"|inline|virtual|partial|data|open|override|case|local|const|constexpr|typedef|implicit|lazy|readonly|suspend|inner|value"
    r"|pub(?:\([\w:]+\))?"
)
DEFINITION_PREFIX = rf"\b(?:{_KEYWORDS})[ \t]+(?:\([^()\n]*\)[ \t]*)?(?:[\w.:]+(?:\.|::))?"
"""Pattern for a keyword and modifiers before a defined name, for Python and for rg."""

_END = r"(?![\w$])"

# The keywords are English words, too, as in "a class jar, which is large". So a name counts only if code follows: a
# bracket or operator anywhere in a line, or at the beginning of a line also its end, a colon or a further keyword.
_IN_CODE = rf"{_END}(?=[!?]?\(|[ \t]*[\[{{<=;]|[ \t]+(?:extends|implements)\b)"
_AT_THE_START = (
    rf"{_END}(?=[!?]?[ \t]*(?:[:(].*)?\r?$|[ \t]+(?:with|where|final|private|struct|interface|func|map|chan)\b"
    r"|[ \t]+\*?[\w.\[\]]+[ \t]*\r?$)"
)


def has_definition(text: str, symbol: str) -> bool:
    """Return True if a definition of a name begins in a text."""
    return next(definition_lines(text, symbol), None) is not None


def definition_lines(text: str, symbol: str) -> Iterator[int]:
    """Yield the index of each line with a definition of a name."""
    text = to_nfc(text)
    if symbol in text:
        for found in _definition(symbol).finditer(text):
            yield text.count("\n", 0, found.end())


@lru_cache(maxsize=128)
def _definition(symbol: str) -> re.Pattern[str]:
    name = re.escape(symbol)
    # Alternatives: a keyword before the name within a line, and at its beginning; a macro of C; a function assigned to
    # a name (JavaScript); a variable at the left margin; a signature with its body (C, C++, Java, C#).
    return re.compile(
        rf"{DEFINITION_PREFIX}{name}{_IN_CODE}"
        rf"|^[ \t]*(?:(?:{_MODIFIERS})[ \t]+)*{DEFINITION_PREFIX}{name}{_AT_THE_START}"
        rf"|#[ \t]*define[ \t]+{name}{_END}"
        rf"|^[ \t]*(?:(?:export|static|async|public|private|protected)\s+)*(?:[\w$.]+\.)?{name}\s*[:=]\s*"
        rf"(?:async\s+)?(?:function\b|class\b|\([^()\n]*\)\s*=>|\w+\s*=>)"
        rf"|^{name}\s*(?::[^=\n]+)?=(?!=)"
        rf"|^[\w:&*<>,\[\] \t]+[ \t*&](?:\w+::)*{name}\s*\([^;{{}}]*\)[\w\s]*\{{",
        re.MULTILINE,
    )
