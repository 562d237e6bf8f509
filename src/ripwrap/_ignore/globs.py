"""Translate globs of ignore files, as rg's `globset` crate reads them, to patterns of `pathspec`; no I/O.

The package `pathspec` has the classes of patterns, but translates globs as git does. rg differs from git in the points
below. `tests/workspace/test_walk.py` checks that this module matches as rg does.

- `{a,b}` are alternatives, and may be nested. They cannot be expanded into several patterns of git, because sixteen
  such groups in a row would give 65,536 patterns.
- `?` and a class (`[a-z]`) match one byte, not one character, and a class may match a slash.
- A pattern that matches a directory does not match the files in it. So another rule may include these files.
- A glob that does not parse is an error with rg's message; git skips it.
- globset matches with an automaton, which does not backtrack. A regular expression of Python for a glob such as
  `*a*a*a*a*a*a*b` backtracks, and can take hours. So `SteppingPattern` matches globs with several `*`, and every glob
  against a very long path, in time linear in the glob.

Patterns match strings in which each character stands for a byte (`byte_text()`).
"""

import functools
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from pathspec import Pattern

from ripwrap._system.concurrency import CANCELLED

Tokens: TypeAlias = "list[str | tuple[Tokens, ...]]"
"""Parsed glob: regexes, and tuples of alternatives, in order. The five regexes in `_REPEATS` match texts of different
lengths; any other regex matches one character, or is empty.
"""

_STAR = r"[^/]*"
_PREFIX = r"(?:.*/|/?)"
_BETWEEN = r"/(?:.*/)?"
_SUFFIX = r"/.*"
_ALL = ".*"
_DEEP = (_ALL, _PREFIX, _BETWEEN, _SUFFIX)
_REPEATS = frozenset((_STAR, *_DEEP))

_SEPARATORS = ("/",) if os.sep == "/" else ("/", os.sep)
MAX_REGEX_CHOICES = 3
"""Maximum number of tokens that can match in several ways (`*`, `**` and `{…}`), in a glob that becomes a regex.

`SteppingPattern` matches globs with more of these tokens.
"""
MAX_REGEX_REPEATS = 2
"""Maximum number of `*`, and of `**`, in a glob that becomes a regex: with three, the time is cubic in the path."""

MAX_REGEX_CHARS = 4_096
"""Maximum length of a path that is matched with a regex; the paths of files are shorter, but not the names of items."""
MAX_NESTED_GROUPS = 50
"""Maximum depth of nested `{…}` groups."""


class GlobRegex(Pattern):
    """Pattern that is matched by a regex, which is compiled when it is needed first."""

    __slots__ = ("_match", "_stepping", "source")

    def __init__(self, source: str, stepping: "SteppingPattern") -> None:
        super().__init__(stepping.include)
        self.source = source
        self._stepping = stepping
        self._match: Callable[[str], object] | None = None

    def match_file(self, file: str) -> bool | None:
        """Return True if the whole of `file` matches, otherwise `None`."""
        if len(file) > MAX_REGEX_CHARS:
            return self._stepping.match_file(file)
        if self._match is None:
            self._match = re.compile(self.source, re.ASCII).match
        return self._match(file) is not None or None


class SteppingPattern(Pattern):
    """Pattern that is matched by tracking all positions that a match can reach; a regex would backtrack.

    A set of positions is a number whose bits are the positions, so that one operation moves all of them
    (https://en.wikipedia.org/wiki/Bitap_algorithm).
    """

    __slots__ = ("_flags", "_tokens")

    def __init__(self, tokens: Tokens, *, include: bool, ignore_case: bool = False) -> None:
        super().__init__(include)
        self._tokens = tokens
        self._flags = re.DOTALL | re.ASCII | (re.IGNORECASE if ignore_case else re.NOFLAG)

    def match_file(self, file: str) -> bool | None:
        """Return True if the whole of `file` matches, otherwise `None`."""
        return bool(_Positions(file, self._flags).ends(self._tokens, 1) >> len(file)) or None


def glob_pattern(
    glob: str, *, include: bool, allow_unclosed: bool, ignore_case: bool = False
) -> GlobRegex | SteppingPattern:
    """Return a pattern that matches a path if the glob matches the whole path."""
    tokens: Tokens = parse_glob(f"{glob}/*" if glob.endswith("/**") else glob, allow_unclosed=allow_unclosed)
    if tokens == [_PREFIX]:
        tokens[:] = [_ALL]
    stepping = SteppingPattern(tokens, include=include, ignore_case=ignore_case)
    stars, deep = _count(tokens, (_STAR,)), _count(tokens, _DEEP)
    if _count_choices(tokens) > MAX_REGEX_CHOICES or max(stars, deep) > MAX_REGEX_REPEATS:
        return stepping
    return GlobRegex(rf"\A(?{'i' * ignore_case}s:{token_regex(tokens)})\Z", stepping)


def byte_text(raw: bytes) -> str:
    """Decode bytes as Latin-1: each byte becomes the character with its number."""
    return raw.decode("latin-1")


def parse_glob(glob: str, *, allow_unclosed: bool) -> Tokens:
    """Return the tokens of a glob; `glob_pattern()` describes the arguments and the error."""
    return _GlobParser(glob, allow_unclosed=allow_unclosed).parse()


def token_regex(tokens: Tokens) -> str:
    """Return a regex that matches what the tokens match."""
    return "".join(token if isinstance(token, str) else f"(?:{'|'.join(map(token_regex, token))})" for token in tokens)


class _GlobParser:
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
                    self.literal(self.peek() or _fail("dangling '\\'"))
                    self.at += 1
                case _:
                    self.literal(char)
        if self.opened:
            _fail("unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)")
        return self.branches[0]

    def push(self, *tokens: str | tuple[Tokens, ...]) -> None:
        self.branches[-1].extend(tokens)

    def literal(self, char: str) -> None:
        self.push(*map(re.escape, byte_text(char.encode())))

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
            self.literal("[")
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


def _count(tokens: Tokens, wanted: Sequence[str]) -> int:
    """Return how many of the tokens, and of the tokens of their alternatives, are among `wanted`."""
    return sum(
        token in wanted if isinstance(token, str) else sum(_count(one, wanted) for one in token) for token in tokens
    )


@functools.lru_cache(1024)
def _matching(token: str, flags: int) -> str:
    """Return the characters that a token for one character matches."""
    return "".join(char for char in map(chr, range(256)) if re.compile(token, flags).fullmatch(char))


class _Positions:
    """Sets of positions in a path: bit N of a number stands for the position before character N."""

    def __init__(self, path: str, flags: int) -> None:
        self._flags = flags
        self._all = (2 << len(path)) - 1
        places: dict[str, list[int]] = {}
        for at, char in enumerate(path):
            places.setdefault(char, []).append(at)
        self._at = {char: _bits(found, len(path)) for char, found in places.items()}
        self._slashes = self._at.get("/", 0)
        self._others = (self._all >> 1) & ~self._slashes
        self._of_token: dict[str, int] = {}

    def ends(self, tokens: Tokens, starts: int) -> int:
        """Return the positions where a match of all `tokens` can end if it starts at one of `starts`."""
        for token in tokens:
            if not starts:
                return 0
            CANCELLED.get().check()
            if isinstance(token, tuple):
                starts = functools.reduce(int.__or__, (self.ends(branch, starts) for branch in token))
            elif token == _STAR:
                # The addition carries from the first start through all characters up to the next slash.
                starts |= ((starts & self._others) + self._others) ^ self._others
            elif token == _ALL:
                starts |= self._beyond(starts)
            elif token == _PREFIX:
                starts |= self._beyond(starts) & (self._slashes << 1)
            elif token == _BETWEEN:
                starts = self._beyond(starts & self._slashes) & (self._slashes << 1)
            elif token == _SUFFIX:
                starts = self._beyond(starts & self._slashes)
            elif token:
                starts = (starts & self._matched(token)) << 1
        return starts

    def _beyond(self, positions: int) -> int:
        """Return all positions after the first of `positions`; none if there are none."""
        first = positions & -positions
        return self._all & ~((first << 1) - 1) if first else 0

    def _matched(self, token: str) -> int:
        found = self._of_token.get(token)
        if found is None:
            known = (self._at.get(char, 0) for char in _matching(token, self._flags))
            found = self._of_token[token] = functools.reduce(int.__or__, known, 0)
        return found


def _bits(places: list[int], length: int) -> int:
    """Return the number that has these bits; the time is linear in `length`."""
    raw = bytearray(length // 8 + 1)
    for place in places:
        raw[place >> 3] |= 1 << (place & 7)
    return int.from_bytes(raw, "little")
