"""Locate the error in a pattern: map rg's caret, or PCRE2's offset, to the caller's own pattern; no I/O.

rg joins all patterns with `|`, and its error shows the joined pattern. From version 14 on, rg puts each pattern in a
group `(?:…)`.
"""

import re
from collections.abc import Iterator, Sequence

_CARET = re.compile(r"regex parse error:\n {4}(?P<shown>.+)\n {4}(?P<before> *)\^", re.MULTILINE)
_PCRE2 = re.compile(r"^PCRE2: error compiling pattern at offset (?P<offset>\d{1,10})\b", re.MULTILINE)
# An escape, a class, or a parenthesis outside of both.
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(?P<parenthesis>[()])", re.DOTALL)
# For these errors, rg's caret is not at the caller's mistake: the parenthesis of the group that rg adds closes the
# caller's open group, or the caller's surplus parenthesis closes the group of rg.
_UNBALANCED = re.compile("(unclosed|unopened) group|(missing|unmatched) closing parenthesis")


def find_error_position(
    text: str, patterns: Sequence[str], *, bounded: bool = False, grouped: bool
) -> tuple[str | None, int | None]:
    """Return the pattern with the error, and the offset of the error in characters; each is `None` if it is unknown."""
    only = (patterns[0], -1) if len(patterns) == 1 else None
    found = next(_error_positions(text, patterns, bounded=bounded, grouped=grouped), only)
    if found is None:
        return None, None
    pattern, offset = found
    if _UNBALANCED.search(text):
        offset = _unbalanced_offset(pattern, offset)
    return pattern, offset if 0 <= offset <= len(pattern) else None


def _error_positions(text: str, patterns: Sequence[str], *, bounded: bool, grouped: bool) -> Iterator[tuple[str, int]]:
    head, tail = ("(?:", ")") if grouped else ("", "")
    if caret := _CARET.search(text):
        joined, column = caret["shown"], len(caret["before"])
    elif (at := _PCRE2.search(text)) and not bounded:
        # With `word_regexp` and `line_regexp`, rg adds text to the pattern that its error does not show.
        joined = "|".join(f"{head}{one}{tail}" for one in patterns)
        column = len(joined.encode()[: int(at["offset"])].decode("utf-8", "ignore"))
        if len(patterns) > 1 and column >= len(joined) - len(tail):
            return  # an unclosed group extends over all later patterns, so any of them may be wrong
        column = min(column, len(joined) - 1)
    else:
        return
    for pattern in sorted(patterns, key=len, reverse=True):
        written = f"{head}{pattern}{tail}"
        for start in _occurrences(written, joined):
            if start <= column < start + len(written):
                yield pattern, column - start - len(head)


def _occurrences(part: str, whole: str) -> Iterator[int]:
    start = whole.find(part)
    while start >= 0:
        yield start
        start = whole.find(part, start + 1)


def _unbalanced_offset(pattern: str, otherwise: int) -> int:
    """Return the offset of the first `)` that no `(` opens, or else of the last `(` that no `)` closes.

    If there is neither, return `otherwise`.
    """
    opened: list[int] = []
    for token in _TOKEN.finditer(pattern):
        if token["parenthesis"] == "(":
            opened.append(token.start())
        elif token["parenthesis"] and not opened:
            return token.start()
        elif token["parenthesis"]:
            opened.pop()
    return opened[-1] if opened else otherwise
