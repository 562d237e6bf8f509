"""Translate globs of ignore files, as rg's `globset` crate reads them, to patterns of `pathspec`; no I/O.

The package `pathspec` has the classes of patterns, but translates globs as git does. rg differs from git in the points
below. `tests/workspace/test_walk.py` checks that this module matches as rg does.

- `{a,b}` are alternatives, and may be nested. They cannot be expanded into several patterns of git, because sixteen
  such groups in a row would give 65,536 patterns.
- `?` and a class (`[a-z]`) match one byte, not one character, and a class may match a slash.
- A pattern that matches a directory does not match the files in it. So another rule may include these files.
- A glob that does not parse is an error with rg's message; git skips it.
- globset matches with an automaton, which does not backtrack. A regular expression of Python for a glob such as
  `*a*a*a*a*a*a*b` backtracks, and can take hours. So `SteppingPattern` matches globs with many `*` in bounded time.

Patterns match strings in which each character stands for a byte (`byte_text()`).
"""

import os
import re
from collections.abc import Iterator
from typing import TypeAlias

from pathspec import Pattern, RegexPattern

Tokens: TypeAlias = "list[str | tuple[Tokens, ...]]"
"""Parsed glob: regexes, and tuples of alternatives, in order. Only the four regexes in `_REPEATS` match texts of
different lengths.
"""

_STAR = r"[^/]*"
_PREFIX = r"(?:.*/|/?)"
_BETWEEN = r"/(?:.*/)?"
_SUFFIX = r"/.*"
_REPEATS = frozenset((_STAR, _PREFIX, _BETWEEN, _SUFFIX))

_SEPARATORS = ("/",) if os.sep == "/" else ("/", os.sep)
MAX_REGEX_CHOICES = 3
"""Maximum number of tokens that can match in several ways (`*`, `**` and `{…}`), in a glob that becomes a regex.

`SteppingPattern` matches globs with more of these tokens.
"""
MAX_NESTED_GROUPS = 50
"""Maximum depth of nested `{…}` groups."""


class SteppingPattern(Pattern):
    """Pattern that is matched by tracking all positions that a match can reach; a regex would backtrack."""

    __slots__ = ("_flags", "_tokens")

    def __init__(self, tokens: Tokens, *, include: bool, ignore_case: bool = False) -> None:
        super().__init__(include)
        self._tokens = tokens
        self._flags = re.DOTALL | re.ASCII | (re.IGNORECASE if ignore_case else re.NOFLAG)

    def match_file(self, file: str) -> bool | None:
        """Return True if the whole of `file` matches, otherwise `None`."""
        return len(file) in _ends(self._tokens, file, {0}, self._flags) or None


def glob_pattern(
    glob: str, *, include: bool, allow_unclosed: bool, ignore_case: bool = False
) -> RegexPattern | SteppingPattern:
    """Return a pattern that matches a path if the glob matches the whole path.

    Args:
        glob: Glob without the marks of an ignore file: a `!` or `/` at its start, and a `/` at its end.
        include: Attribute `include` of the pattern: False for a rule with `!`, True for any other rule.
        allow_unclosed: True if an unclosed `[` is literal, as in ignore files. If False, as for `--glob`, an unclosed
            `[` is an error.
        ignore_case: True to ignore the case of ASCII letters; globset never ignores the case of other letters.

    Raises:
        ValueError: The glob does not parse; the message is the same as in rg.
    """
    tokens = parse_glob(f"{glob}/*" if glob.endswith("/**") else glob, allow_unclosed=allow_unclosed)
    if _count_choices(tokens) > MAX_REGEX_CHOICES:
        return SteppingPattern(tokens, include=include, ignore_case=ignore_case)
    regex = ".*" if tokens == [_PREFIX] else token_regex(tokens)
    return RegexPattern(re.compile(rf"\A(?{'i' * ignore_case}s:{regex})\Z", re.ASCII), include)


def byte_text(raw: bytes) -> str:
    """Decode bytes as Latin-1: each byte becomes the character with its number."""
    return raw.decode("latin-1")


def parse_glob(glob: str, *, allow_unclosed: bool) -> Tokens:
    """Return the tokens of a glob; `glob_pattern()` describes the arguments and the error."""
    return _Parser(glob, allow_unclosed=allow_unclosed).parse()


def token_regex(tokens: Tokens) -> str:
    """Return a regex that matches what the tokens match."""
    return "".join(token if isinstance(token, str) else f"(?:{'|'.join(map(token_regex, token))})" for token in tokens)


class _Parser:
    """Parser that takes the same steps as globset's parser (`crates/globset/src/glob.rs`), also for unusual globs."""

    def __init__(self, glob: str, *, allow_unclosed: bool) -> None:
        self.glob = glob
        self.at = 0
        self.branches: list[Tokens] = [[]]  # the whole glob, then alternatives of each open group
        self.opened: list[int] = []  # for each open group, the number of branches before it
        self.allow_unclosed = allow_unclosed
        self.has_classes = True  # False after an unclosed `[`; then every `[` is literal

    def parse(self) -> Tokens:
        while char := self.peek():
            self.at += 1
            match char:
                case "?":
                    self.push("[^/]")
                case "*":
                    self.star()
                case "[" if self.has_classes:
                    self.char_class()
                case "{":
                    self.open_group()
                case "}":
                    self.close_group()
                case "," if self.opened:
                    self.branches.append([])
                case "\\":
                    self.push(_escape(self.peek() or _fail("dangling '\\'")))
                    self.at += 1
                case _:
                    self.push(_escape(char))
        if self.opened:
            _fail("unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)")
        return self.branches[0]

    def push(self, *tokens: str | tuple[Tokens, ...]) -> None:
        self.branches[-1].extend(tokens)

    def peek(self) -> str:
        return self.glob[self.at : self.at + 1]

    def open_group(self) -> None:
        if len(self.opened) == MAX_NESTED_GROUPS:
            _fail("too many nested alternate groups")
        self.opened.append(len(self.branches))
        self.branches.append([])

    def close_group(self) -> None:
        if not self.opened:
            _fail("unopened alternate group; missing '{' (maybe escape '}' with '[}]'?)")
        start = self.opened.pop()
        alternatives = tuple(branch for branch in self.branches[start:] if token_regex(branch))
        del self.branches[start:]
        self.push(alternatives or "")

    def star(self) -> None:
        """Add the token of a `*` or `**`. A `**` matches slashes only if it is a whole name, as in `a/**/b`."""
        before = self.glob[max(self.at - 2, 0) : self.at - 1]
        if self.peek() != "*":
            return self.push(_STAR)
        self.at += 1
        after, inside = self.peek(), bool(self.opened)
        if not self.branches[-1] and (not after or after in _SEPARATORS):
            self.at += 1
            return self.push(_PREFIX)
        if self.branches[-1] and (before in _SEPARATORS or (inside and before in "{,")):
            if not after or (inside and after in "},"):
                return self.replace_slash(_SUFFIX)
            if after in _SEPARATORS:
                self.at += 1
                return self.replace_slash(_BETWEEN)
        return self.push(_STAR, _STAR)

    def replace_slash(self, token: str) -> None:
        if self.branches[-1][-1] not in (_PREFIX, _SUFFIX):
            self.branches[-1][-1] = token

    def char_class(self) -> None:
        start = self.at + (self.peek() in ("!", "^"))
        end = self.glob.find("]", start + 1)
        ranges = "".join(_ranges(self.glob[start:] if end < 0 else self.glob[start:end]))
        if end >= 0:
            self.push(f"[{'^' if start > self.at else ''}{ranges}]")
            self.at = end + 1
        elif self.allow_unclosed:
            self.has_classes = False
            self.push(_escape("["))
        else:
            _fail("unclosed character class; missing ']'")


def _fail(message: str) -> str:
    raise ValueError(message)


def _ranges(body: str) -> Iterator[str]:
    """Yield a regex for each character and range of a character class.

    A character of several bytes is replaced by these bytes, because rg matches bytes.
    """
    ranges: list[tuple[str, str]] = []
    pending = False
    for char in body:
        if pending:
            first = ranges.pop()[0]
            if char < first:
                _fail(f"invalid range; '{first}' > '{char}'")
            ranges.append((first, char))
            pending = False
        elif char == "-" and ranges:
            pending = True
        else:
            ranges.append((char, char))
    for first, last in ranges:
        yield _escape(first) if first == last else f"{_escape(first)}-{_escape(last)}"
    if pending:
        yield r"\-"


def _escape(char: str) -> str:
    return re.escape(byte_text(char.encode()))


def _count_choices(tokens: Tokens) -> int:
    """Return the number of tokens that can match in more than one way; a regex may backtrack at each of them."""
    return sum(token in _REPEATS if isinstance(token, str) else 1 + sum(map(_count_choices, token)) for token in tokens)


def _ends(tokens: Tokens, path: str, starts: set[int], flags: int) -> set[int]:
    """Return the positions where a match of all `tokens` can end if it starts at one of `starts`."""
    for token in tokens:
        if isinstance(token, tuple):
            starts = set[int]().union(*(_ends(branch, path, starts, flags) for branch in token))
        elif token in _REPEATS:
            starts = set(_reached(token, path, starts))
        else:
            matches = (re.compile(token, flags).match(path, start) for start in starts)
            starts = {match.end() for match in matches if match}
    return starts


def _reached(token: str, path: str, starts: set[int]) -> Iterator[int]:
    """Yield the positions where a match of `token`, one of `_REPEATS`, can end if it starts at one of `starts`.

    The path is read only once.
    """
    may_be_empty = token in (_STAR, _PREFIX)
    running = False
    for position in range(min(starts, default=len(path)), len(path) + 1):
        behind_slash = path[position - 1 : position] == "/"
        if token == _STAR and behind_slash:
            running = False
        begins = position in starts and (may_be_empty or path[position : position + 1] == "/")
        if (begins and may_be_empty) or (running and (behind_slash or token in (_STAR, _SUFFIX))):
            yield position
        running = running or begins
