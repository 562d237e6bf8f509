"""Where a name is defined, told from a line in any of the usual languages: pure."""

import re
from functools import lru_cache

from ripwrap._ranking.tokens import composed

_KEYWORDS = (
    r"class|def|function\*?|func|fun|fn|interface|struct|enum|trait|type|typedef|module|namespace|protocol|object|record|union"
    r"|sub|macro_rules!|const|let|var|val|static"
)
_MODIFIERS = (
    r"export|default|declare|public|private|fileprivate|protected|internal|abstract|final|sealed|static|async|unsafe|extern"
    r"|inline|virtual|partial|data|open|override|case|local|const|constexpr|typedef|implicit|lazy|readonly|suspend|inner|value"
    r"|pub(?:\([\w:]+\))?"
)
BEFORE = rf"\b(?:{_KEYWORDS})[ \t]+(?:\([^()\n]*\)[ \t]*)?(?:[\w.:]+(?:\.|::))?"
"""What stands before the name, for Python and for rg."""

_END = r"(?![\w$])"

# What follows where these words are prose, as in "a class jar, which is large", is neither of these two.
_IN_CODE = rf"{_END}(?=[!?]?\(|[ \t]*[\[{{<=;]|[ \t]+(?:extends|implements)\b)"
_AT_THE_START = (
    rf"{_END}(?=[!?]?[ \t]*(?:[:(].*)?\r?$|[ \t]+(?:with|where|final|private|struct|interface|func|map|chan)\b"
    r"|[ \t]+\*?[\w.\[\]]+[ \t]*\r?$)"
)


def defines(text: str, symbol: str) -> bool:
    """Whether a definition of this name begins in a text."""
    return line_of_definition(text, symbol) is not None


def line_of_definition(text: str, symbol: str) -> int | None:
    """Which line of a text, from 0, has the first definition of a name; `None` if there is none."""
    text = composed(text)
    found = _definition(symbol).search(text) if symbol in text else None
    return None if found is None else text.count("\n", 0, found.end())


@lru_cache(maxsize=128)
def _definition(symbol: str) -> re.Pattern[str]:
    name = re.escape(symbol)
    return re.compile(
        rf"{BEFORE}{name}{_IN_CODE}"
        rf"|^[ \t]*(?:(?:{_MODIFIERS})[ \t]+)*{BEFORE}{name}{_AT_THE_START}"
        rf"|#[ \t]*define[ \t]+{name}{_END}"
        rf"|^[ \t]*(?:(?:export|static|async|public|private|protected)\s+)*(?:[\w$.]+\.)?{name}\s*[:=]\s*"
        rf"(?:async\s+)?(?:function\b|class\b|\([^()\n]*\)\s*=>|\w+\s*=>)"
        rf"|^{name}\s*(?::[^=\n]+)?=(?!=)"
        rf"|^[\w:&*<>,\[\] \t]+[ \t*&](?:\w+::)*{name}\s*\([^;{{}}]*\)[\w\s]*\{{",
        re.MULTILINE,
    )
