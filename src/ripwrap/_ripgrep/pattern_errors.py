r"""Locate the error in a pattern, and let its line ends match those of a file; no I/O.

rg joins all patterns with `|`, and its error shows the joined pattern. From version 14 on, rg puts each pattern in a
group `(?:…)`.

Texts of several lines come from answers, in which each line end is `\n`. With `--multiline`, rg compares them with the
bytes of the file, in which `\r` may stand before `\n`.
"""

import re
import warnings
from collections.abc import Iterator, Sequence
from itertools import islice, product
from typing import cast

from ripwrap.options import SearchOptions

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
    """Return the offset of the first `)` that no `(` opens, else of the last unclosed `(`, else `otherwise`."""
    opened: list[int] = []
    for token in _TOKEN.finditer(pattern):
        if token["parenthesis"] == "(":
            opened.append(token.start())
        elif token["parenthesis"] and not opened:
            return token.start()
        elif token["parenthesis"]:
            opened.pop()
    return opened[-1] if opened else otherwise


_LINE_TOKEN = re.compile(
    r"\\Q.*?(?:\\E|\Z)|\\[xuUpP]\{[^}]*\}|\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}|\\.|"
    r"\(\?<[=!]|\(\?[a-zA-Z-]*|.",
    re.DOTALL,
)
_NEWLINE = re.compile(r"\n|\\n|\\[xuU]\{?0*[aA]\}?")
_RETURN = re.compile(r"\r|\\[rR]|\\[xuU]\{?0*[dD]\}?")
_OTHER_CLASS = re.compile(r"[^\\]\[|&&|--|~~|\\[pPxuUbB]")
"""Syntax in a class that Python's `re` does not have, or understands in another way."""


def across_line_ends(pattern: str, options: SearchOptions) -> tuple[str, SearchOptions]:
    r"""Return a pattern and options with which a line end matches `\n` and `\r\n`, unless it names `\r`."""
    if not options.get("multiline") or names_return(pattern, options):
        return pattern, options
    if options.get("fixed_strings"):
        if "\n" not in pattern:
            return pattern, options
        lines = (re.sub(r"[\\.+*?()|\[\]{}^$#&~-]", r"\\\g<0>", line) for line in pattern.split("\n"))
        plain = {name: value for name, value in options.items() if name != "fixed_strings"}
        return r"\r?\n".join(lines), cast("SearchOptions", plain)
    found = "".join(_parts([*_tokens(pattern)], dot=bool(options.get("multiline_dotall"))))
    return found, cast("SearchOptions", {**options, "crlf": True} if "$" in pattern else options)


def names_return(pattern: str, options: SearchOptions) -> bool:
    r"""Return True if a pattern names `\r` outside of a class, so that its author knows the line ends of the files."""
    return "\r" in pattern if options.get("fixed_strings") else any(map(_RETURN.fullmatch, _tokens(pattern)))


def _parts(tokens: Sequence[str], *, dot: bool) -> Iterator[str]:
    verbose = any(one.startswith("(?") and "x" in one for one in tokens)
    depth = behind = begin = 0
    for at, (one, after) in enumerate(zip(tokens, (*tokens[1:], ""), strict=True)):
        depth += one.startswith("(") - (one == ")")
        if depth < behind:
            yield from _further_lookbehinds(tokens[begin:at], verbose=verbose, dot=dot)
            behind = 0
        if behind or (verbose and one == "\n"):
            yield one
        elif one.startswith("(?<"):
            behind, begin = depth, at + 1
            yield one
        elif _NEWLINE.fullmatch(one):
            yield r"(?:\r?\n)" if after in tuple("*+?{") else r"\r?\n"
        elif _matches(one, "\n", dot=dot) and not (after in ("*", "+") and _matches(one, "\r", dot=dot)):
            yield rf"(?:\r\n|{one})"
        else:
            yield one


def _further_lookbehinds(tokens: Sequence[str], *, verbose: bool, dot: bool) -> Iterator[str]:
    r"""Yield alternatives of a lookbehind in which `\r\n` ends lines; PCRE2 wants a fixed length for each of them."""
    named = [_NEWLINE.fullmatch(one) if one != "\n" or not verbose else None for one in tokens]
    ends = [found or _matches(one, "\n", dot=dot) for one, found in zip(tokens, named, strict=True)]
    if "(" not in tokens and sum(map(bool, ends)) <= 6:  # a group would be counted twice, and 2**6 are enough
        choices = [(one, r"(?:\r\n)") if end else (one,) for one, end in zip(tokens, ends, strict=True)]
        yield from (f"|{''.join(one)}" for one in islice(product(*choices), 1, None))


def _matches(part: str, end: str, *, dot: bool) -> bool:
    """Return True if a part of a pattern is sure to match a character; an anchor matches none."""
    if part == ".":
        return dot
    if part not in (r"\s", r"\W", r"\D") and (part[0] != "[" or _OTHER_CLASS.search(part)):
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return re.fullmatch(part, end) is not None
        except re.error:
            return False


def _tokens(pattern: str) -> Iterator[str]:
    """Yield the parts of a pattern: escapes, whole classes, beginnings of groups, and characters."""
    at = 0
    while at < len(pattern):
        end = _end_of_class(pattern, at) if pattern[at] == "[" else 0
        if not end:
            found = _LINE_TOKEN.match(pattern, at)
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
