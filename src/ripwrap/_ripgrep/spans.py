r"""Decide whether rg lets a match span lines; no I/O.

With `--multiline`, rg still searches line by line if no match can have a line terminator. The difference shows:
`--count` then counts lines in place of matches, and so does `--max-count` from rg 15 on.
"""

import re
import warnings
from collections.abc import Iterator

from ripwrap._ripgrep.query import Query

_TOKEN = re.compile(
    r"\\[pPxuU]\{[^}]*\}|\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}|\\[pP].|\\.|\(\?[a-zA-Z-]*|.", re.DOTALL
)
_OTHER_ENGINE = re.compile(r"\(\?(?:[=!>|#]|<[=!])|\\[1-9gkKRXQ]")
_NO_CONTROL = re.compile(r"\\p\{?[LMNPSZ][a-z]?\}?")  # categories of characters that are not control characters
_UNCERTAIN = re.compile(r"\[|&&|--|~~|\\[pPxuUbB]")
"""Syntax in a class that Python's `re` does not have, or understands in another way."""


def spans_lines(query: Query) -> bool:
    """Return True if rg searches whole files for matches that may span lines.

    The answer is True if that is not certain: for a class with set operations, for example.
    """
    options = query.options
    if not options.get("multiline"):
        return False
    if options.get("pcre2") or options.get("engine") == "pcre2":
        return True
    end = "\0" if options.get("null_data") else "\n"
    if options.get("fixed_strings") or query.pattern_file is not None:
        return query.pattern_file is not None or any(end in one for one in query.patterns)
    if options.get("line_regexp") and end == "\n":
        return True
    dot = bool(options.get("multiline_dotall")) or end != "\n"
    return any(_matches(part, end, dot=dot) for one in query.patterns for part in _tokens(one)) or (
        options.get("engine") == "auto" and any(map(_OTHER_ENGINE.search, query.patterns))
    )


def _matches(part: str, end: str, *, dot: bool) -> bool:
    r"""Return True if a part of a pattern can match a line terminator; rg takes anchors for parts that match `\n`."""
    if part == ".":
        return dot
    if part in ("^", "$", r"\A", r"\z"):
        return end == "\n"
    if part.startswith("(?"):
        return "s" in part.partition("-")[0]
    if part.startswith("["):
        return _class_matches(part, end)
    if part[:2] in (r"\p", r"\P"):
        return _NO_CONTROL.fullmatch(part) is None
    if part[:2] in (r"\x", r"\u", r"\U"):
        return _code(part) == ord(end)
    if part[:1] == "\\" and part[1:] in tuple("nsSwWdDtrfva0"):
        return re.fullmatch(part, end) is not None
    return part == end


def _class_matches(part: str, end: str) -> bool:
    body = part[2 if part.startswith("[^") else 1 : -1]
    if _UNCERTAIN.search(body):
        return True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return re.fullmatch(part, end) is not None
        except re.error:
            return True


def _code(part: str) -> int:
    try:
        return int(part[2:].strip("{}"), 16)
    except ValueError:
        return -1


def _tokens(pattern: str) -> Iterator[str]:
    """Yield the parts of a pattern: escapes, whole classes, flags of groups, and characters."""
    at = 0
    while at < len(pattern):
        end = _end_of_class(pattern, at) if pattern[at] == "[" else 0
        if not end:
            found = _TOKEN.match(pattern, at)
            end = at + 1 if found is None else found.end()
        yield pattern[at:end]
        at = end


def _end_of_class(pattern: str, start: int) -> int:
    at, depth = start, 0
    while at < len(pattern):
        if pattern[at] == "\\":
            at += 2
            continue
        if pattern[at] == "[":
            depth += 1
            at += pattern.startswith("[^", at)
            at += pattern.startswith("]", at + 1)  # a literal bracket
        elif pattern[at] == "]":
            depth -= 1
            if not depth:
                return at + 1
        at += 1
    return len(pattern)
