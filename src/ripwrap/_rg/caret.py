"""Where a pattern goes wrong: rg's caret, or PCRE2's offset, led back to the caller's own pattern; pure.

rg searches for all patterns at once, joined by `|`, since version 14 each in a group, and its error shows them so.
"""

import re
from collections.abc import Iterator, Sequence

_CARET = re.compile(r"regex parse error:\n {4}(?P<shown>.+)\n {4}(?P<before> *)\^", re.MULTILINE)
_PCRE2 = re.compile(r"^PCRE2: error compiling pattern at offset (?P<offset>\d{1,10})\b", re.MULTILINE)
# What is escaped, a class, or a parenthesis that is neither.
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(?P<parenthesis>[()])", re.DOTALL)
# Of these the caret tells little: rg's own group closes what was left open, and is closed by what was never opened.
_UNBALANCED = re.compile("(unclosed|unopened) group|(missing|unmatched) closing parenthesis")


def position(
    text: str, patterns: Sequence[str], argv: Sequence[str], *, grouped: bool
) -> tuple[str | None, int | None]:
    """The pattern that is wrong and the offset in it, in characters; `None` for what cannot be told.

    Args:
        text: What rg wrote to stderr.
        patterns: What it was to search for.
        argv: How it was called.
        grouped: Whether this rg puts each pattern in a group.
    """
    only = (patterns[0], -1) if len(patterns) == 1 else None
    found = next(_places(text, patterns, argv, grouped), only)
    if found is None:
        return None, None
    pattern, offset = found
    if _UNBALANCED.search(text):
        offset = _unbalanced(pattern, offset)
    return pattern, offset if 0 <= offset <= len(pattern) else None


def _places(text: str, patterns: Sequence[str], argv: Sequence[str], grouped: bool) -> Iterator[tuple[str, int]]:
    head, tail = ("(?:", ")") if grouped else ("", "")
    if caret := _CARET.search(text):
        joined, column = caret["shown"], len(caret["before"])
    elif (at := _PCRE2.search(text)) and not {"--word-regexp", "--line-regexp"} & set(argv):
        joined = "|".join(f"{head}{one}{tail}" for one in patterns)  # what those two options add is not shown
        column = len(joined.encode()[: int(at["offset"])].decode("utf-8", "ignore"))
        if len(patterns) > 1 and column >= len(joined) - len(tail):
            return  # what is never closed goes on through all that follows
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


def _unbalanced(pattern: str, otherwise: int) -> int:
    """The first parenthesis that closes nothing, or the last that nothing closes."""
    opened: list[int] = []
    for token in _TOKEN.finditer(pattern):
        if token["parenthesis"] == "(":
            opened.append(token.start())
        elif token["parenthesis"] and not opened:
            return token.start()
        elif token["parenthesis"]:
            opened.pop()
    return opened[-1] if opened else otherwise
