"""Find the lines that define names, with regular expressions for the usual programming languages; no I/O."""

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from ripwrap._ranking.word_query import to_nfc

# Grouped by first letters, because Python's `re` takes 1.5 times as long for a plain list of words.
_KEYWORDS = (
    r"c(?:lass|onst)|def|f(?:un(?:c(?:tion\*?)?)?|n)|interface|s(?:truct|ub|tatic)|enum|t(?:rait|ype(?:def)?)"
    r"|m(?:odule|acro_rules!)|namespace|protocol|object|record|union|let|va[lr]"
)
_MODIFIERS = (
    r"export|default|declare|public|private|fileprivate|protected|internal|abstract|final|sealed|static|async|unsafe|extern"
    r"|inline|virtual|partial|data|open|override|case|local|const|constexpr|typedef|implicit|lazy|readonly|suspend|inner|value"
    r"|pub(?:\([\w:]+\))?"
)
DEFINITION_PREFIX = rf"\b(?:{_KEYWORDS})[ \t]+(?:\([^()\n]*\)[ \t]*)?(?:[\w.:]+(?:\.|::))?"
"""Pattern (for Python's `re` and for rg) for the text before a defined name: a keyword, perhaps a receiver in
parentheses (Go), and perhaps a qualifier such as `Server.`.
"""

# Every chunk of an index is searched for these patterns, so each takes linear time for any text: it begins with a rare
# literal, its repetitions are possessive, and two of its matches never read the same part of a long line.

# The pattern begins with the character before the keyword, because `re` skips other characters faster than the first
# letters of all keywords.
_KEYWORD = re.compile(rf"[^A-Za-z0-9_](?:{_KEYWORDS})(?=[ \t]++(?:\([^()\n]*+\)[ \t]*+)?([\w.:]++))")
"""Pattern for the character before a keyword and for the keyword; group 1 is the qualified name after the keyword."""
_NAME_IN_PATH = re.compile(r"(?:(?<=.\.)|(?<=.::)|\A)([^\W\d]\w*+)")
"""Pattern for each name in a qualified name such as `a.b::c`: a name at the beginning, or after a dot or two colons."""
_LEAD = re.compile(rf"[ \t]*(?:(?:{_MODIFIERS})[ \t]+)*")
_END = r"(?![\w$])"

# The keywords are also English words, as in "a class jar, which is large". So a name is a definition only if code
# follows: a bracket or operator; or, for a keyword at the beginning of a line, also the end of the line, a colon or
# another keyword.
_IN_CODE = re.compile(rf"{_END}(?:[!?]?\(|[ \t]*+[\[{{<=;]|[ \t]++(?:extends|implements)\b)")
_AT_THE_START = re.compile(
    rf"{_END}(?:[!?]?[ \t]*+(?:[:(]|\r?$)|[ \t]++(?:with|where|final|private|struct|interface|func|map|chan)\b"
    r"|[ \t]++\*?[\w.\[\]]++[ \t]*+\r?$)",
    re.MULTILINE,
)
_MACRO = re.compile(rf"#[ \t]*define[ \t]+([^\W\d]\w*){_END}")
_VARIABLE = re.compile(r"\n(?=([^\W\d]\w*+)\s*+(?::[^=\n]++)?(=)(?!=))")
"""Pattern for the line end before an assignment that is not indented; group 1 is the name of the variable."""
_FUNCTION_VALUE = re.compile(r"[:=]\s*+(?:async\s++)?(?:function\b|class\b|\([^()\n]*+\)\s*+=>|\w++\s*+=>)")
"""Pattern for a function or class that is assigned to a name (JavaScript)."""
_ASSIGNED = re.compile(r"[ \t]*(?:(?:export|static|async|public|private|protected)\s+)*(?:[\w$.]+\.)?([^\W\d]\w*)\s*")
"""Pattern for the part of a line before a match of `_FUNCTION_VALUE`; group 1 is the name."""
# A signature with its body (C, C++, Java, C#). The search begins at the end of the signature: first it finds `) {`,
# then the words before it, the last of which is `foo(`.
_BODY = re.compile(r"\)[\w\s]*+\{")
_SIGNATURE = re.compile(r"\n([ \t]*+[\w:&*<>,\[\]][\w:&*<>,\[\] \t]*+)(?=\s*+\()")
_QUALIFIED = re.compile(r"(?:\w+::)*([^\W\d]\w*)")
_CONTROL = frozenset({"catch", "for", "foreach", "if", "switch", "while"})
"""Keywords that are followed by parentheses and a body, like the name of a function."""


class NameDefinition(NamedTuple):
    """A definition of a name in a text."""

    start: int
    end: int
    name: str


def defined_names(text: str) -> set[str]:
    """Return the names whose definitions begin in a text, such as the text of a chunk."""
    return {one.name for one in _definitions("\n" + to_nfc(text))}


def definition_lines(text: str, symbols: Iterable[str]) -> Iterator[int]:
    """Yield the index, from 0, of each line that has a definition of one of the names in `symbols`."""
    text = "\n" + to_nfc(text)
    wanted = {symbol for symbol in symbols if symbol in text}
    if wanted:
        behind, line = 1, 0
        for found in sorted(one for one in _definitions(text) if one.name in wanted):
            if found.start >= behind:
                line += text.count("\n", behind, found.end)
                behind = found.end
                yield line


def definition_starts(text: str) -> dict[int, set[str]]:
    """Map the index of each line at which definitions begin to their names; variables are left out."""
    text = "\n" + to_nfc(text)
    starts: dict[int, set[str]] = {}
    line, behind = 0, 1
    for found in sorted(chain(_declarations(text), _assignments(text), _signatures(text))):
        at = found.start + (text[found.start] == "\n")
        line, behind = line + text.count("\n", behind, at), max(at, behind)
        starts.setdefault(line, set()).add(found.name)
    return starts


def _definitions(text: str) -> Iterator[NameDefinition]:
    """Yield the definitions in a text: first declarations with a keyword, then all others.

    The text must begin with an additional line end.
    """
    yield from _declarations(text)
    for found in _MACRO.finditer(text):
        yield NameDefinition(found.start(), found.end(), found[1])
    for found in _VARIABLE.finditer(text):
        yield NameDefinition(found.end(), found.end(2), found[1])
    yield from _assignments(text)
    yield from _signatures(text)


def _declarations(text: str) -> Iterator[NameDefinition]:
    """Yield definitions with a keyword, such as `class`, before the name. The keyword may be anywhere in a line."""
    line = line_end = lead_end = 0
    for found in _KEYWORD.finditer(text):
        start = found.start() + 1
        if text[start - 1].isalnum():  # a letter or digit outside of ASCII
            continue
        path, path_start = found[1], found.start(1)
        for name, name_end in _names_in_path(path):
            end = path_start + name_end
            at_the_start = _AT_THE_START.match(text, end)
            if at_the_start and start >= line_end:
                line = text.rfind("\n", line, start) + 1
                line_end = text.find("\n", start)
                line_end = len(text) if line_end < 0 else line_end
                lead = _LEAD.match(text, line)
                lead_end = line if lead is None else lead.end()
            if at_the_start and start <= lead_end:
                yield NameDefinition(line, end, name)
            elif _IN_CODE.match(text, end):
                yield NameDefinition(start, end, name)


def _names_in_path(path: str) -> list[tuple[str, int]]:
    """Return the names in a qualified name such as `a.b::c`, each with the offset of its end."""
    if path.isascii() and path.isidentifier():
        return [(path, len(path))]
    return [(found[1], found.end()) for found in _NAME_IN_PATH.finditer(path)]


def _assignments(text: str) -> Iterator[NameDefinition]:
    """Yield definitions that assign a function or class to a name, as in JavaScript."""
    behind = 0
    if not ("=>" in text or "function" in text or "class" in text):  # faster than the pattern, which needs one of them
        return
    for found in _FUNCTION_VALUE.finditer(text):
        last = found.start()
        while text[last - 1].isspace() and last > 1:
            last -= 1
        line = text.rfind("\n", behind, last) + 1
        behind = found.start()
        # Without a line end since the previous match, that match is in this line, so `_ASSIGNED` cannot match.
        if line and (name := _ASSIGNED.fullmatch(text, line, behind)):
            yield NameDefinition(line, found.end(), name[1])


def _signatures(text: str) -> Iterator[NameDefinition]:
    """Yield definitions of functions that have no keyword, as in C: a name, parameters, and a body in braces."""
    behind = 0
    for found in _BODY.finditer(text):
        parenthesis = found.start()
        first = max(text.rfind(mark, behind, parenthesis) for mark in ";{}") + 1 or behind
        behind = found.end()
        for line in _SIGNATURE.finditer(text, first, parenthesis):
            head = line[1].rstrip(" \t")
            at = max(head.rfind(mark) for mark in " \t*&") + 1
            if at > 1 and (name := _QUALIFIED.fullmatch(head, at)) and name[1] not in _CONTROL:
                yield NameDefinition(line.start(1), behind, name[1])
