"""A glob as rg's `globset` crate reads it in ignore files, as a pattern of `pathspec`: pure.

pathspec's own patterns are git's, and rg is not git: to rg `{a,b}` are alternatives, a `?` is one byte, a class may
match a slash, and what matches a folder does not match what is in it. So only pathspec's frame is used. It is one for
strings; a byte is the character of its number.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from pathspec import Pattern, RegexPattern

Tokens: TypeAlias = "list[str | tuple[Tokens, ...]]"
"""What follows each other: a regex that matches one way, one of those below that match in many, or alternatives."""

_STAR = r"[^/]*"
_PREFIX = r"(?:.*/|/?)"
_BETWEEN = r"/(?:.*/)?"
_SUFFIX = r"/.*"
_MANY = frozenset((_STAR, _PREFIX, _BETWEEN, _SUFFIX))

_SLASHES = ("/",) if os.sep == "/" else ("/", os.sep)
_MOST_CHOICES = 3
_MOST_NESTED = 50


@dataclass(frozen=True, slots=True)
class Glob:
    """A glob for whole paths, as strings of bytes, in which folders are parted by slashes.

    Attributes:
        text: As rg has it once the marks of an ignore file are taken off.
        regex: The same as a regex; `None` if that would take too long.
        pattern: What matches; what it includes is left out of a listing, and what it excludes brought back.
    """

    text: str
    regex: str | None
    pattern: Pattern

    @classmethod
    def of(cls, text: str, *, include: bool, unclosed: bool) -> "Glob":
        """The glob of a text.

        Args:
            text: The text.
            include: Whether the pattern includes.
            unclosed: Whether a `[` that nothing closes is one, as in ignore files; in `--glob` it is an error.

        Raises:
            ValueError: It does not parse; in rg's words.
        """
        tokens = _Parser(f"{text}/*" if text.endswith("/**") else text, unclosed=unclosed).parse()
        if _choices(tokens) > _MOST_CHOICES:
            return cls(text, None, _Stepping(tokens, include=include))
        regex = rf"\A(?s:{'.*' if tokens == [_PREFIX] else _regex(tokens)})\Z"
        return cls(text, regex, RegexPattern(re.compile(regex), include))


def of_bytes(raw: bytes) -> str:
    """Bytes as the characters of the same numbers."""
    return raw.decode("latin-1")


class _Stepping(Pattern):
    """A pattern for which a regex may try too much: `*a*a*a*a*b` could take years where rg takes no time at all."""

    __slots__ = ("_tokens",)

    def __init__(self, tokens: Tokens, *, include: bool) -> None:
        super().__init__(include)
        self._tokens = tokens

    def match_file(self, file: str) -> bool | None:
        return len(file) in _ends(self._tokens, file, {0}) or None


class _Parser:
    """Follows globset's own, also in what it makes of the strangest globs."""

    def __init__(self, glob: str, *, unclosed: bool) -> None:
        self.glob = glob
        self.at = 0
        self.branches: list[Tokens] = [[]]
        self.opened: list[int] = []
        self.unclosed = unclosed
        self.classes = True

    def parse(self) -> Tokens:
        while self.at < len(self.glob):
            char = self.glob[self.at]
            self.at += 1
            self.STEPS.get(char, _Parser.literal)(self)
        if self.opened:
            raise ValueError("unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)")
        return self.branches[0]

    def push(self, *tokens: str | tuple[Tokens, ...]) -> None:
        self.branches[-1].extend(tokens)

    def peek(self) -> str:
        return self.glob[self.at : self.at + 1]

    def literal(self) -> None:
        self.push(_escaped(self.glob[self.at - 1]))

    def one(self) -> None:
        self.push("[^/]")

    def escape(self) -> None:
        if not self.peek():
            raise ValueError("dangling '\\'")
        self.at += 1
        self.literal()

    def opening(self) -> None:
        if len(self.opened) == _MOST_NESTED:
            raise ValueError("too many nested alternate groups")
        self.opened.append(len(self.branches))
        self.branches.append([])

    def comma(self) -> None:
        if self.opened:
            self.branches.append([])
        else:
            self.literal()

    def closing(self) -> None:
        if not self.opened:
            raise ValueError("unopened alternate group; missing '{' (maybe escape '}' with '[}]'?)")
        start = self.opened.pop()
        alternatives = tuple(branch for branch in self.branches[start:] if _regex(branch))
        del self.branches[start:]
        self.push(alternatives or "")

    def star(self) -> None:
        if self.peek() != "*":
            return self.push(_STAR)
        before = self.glob[max(self.at - 2, 0) : self.at - 1]
        self.at += 1
        if not self.branches[-1]:
            return self.first_stars()
        inside = bool(self.opened)
        if before in _SLASHES or (inside and before in "{,"):
            if not self.peek() or (inside and self.peek() in "},"):
                return self.replace_slash(_SUFFIX)
            if self.peek() in _SLASHES:
                self.at += 1
                return self.replace_slash(_BETWEEN)
        return self.push(_STAR, _STAR)

    def first_stars(self) -> None:
        if self.peek() and self.peek() not in _SLASHES:
            return self.push(_STAR, _STAR)
        self.at += 1
        return self.push(_PREFIX)

    def replace_slash(self, token: str) -> None:
        if self.branches[-1][-1] not in (_PREFIX, _SUFFIX):
            self.branches[-1][-1] = token

    def char_class(self) -> None:
        start = self.at + (self.peek() in ("!", "^"))
        end = self.glob.find("]", start + 1)
        ranges = "".join(_ranges(self.glob[start:] if end < 0 else self.glob[start:end])) if self.classes else ""
        if end >= 0 and self.classes:
            self.push(f"[{'^' if start > self.at else ''}{ranges}]")
            self.at = end + 1
        elif self.unclosed:
            self.classes = False
            self.literal()
        else:
            raise ValueError("unclosed character class; missing ']'")

    STEPS: ClassVar = {
        "?": one, "*": star, "[": char_class, "{": opening, "}": closing, ",": comma, "\\": escape,
    }  # fmt: skip


def _ranges(body: str) -> Iterator[str]:
    """What stands in a class; one of more than a byte is one of each, for rg matches bytes."""
    ranges: list[tuple[str, str]] = []
    pending = False
    for char in body:
        if pending:
            first = ranges.pop()[0]
            if char < first:
                raise ValueError(f"invalid range; '{first}' > '{char}'")
            ranges.append((first, char))
            pending = False
        elif char == "-" and ranges:
            pending = True
        else:
            ranges.append((char, char))
    for first, last in ranges:
        yield _escaped(first) if first == last else f"{_escaped(first)}-{_escaped(last)}"
    if pending:
        yield r"\-"


def _escaped(char: str) -> str:
    return re.escape(of_bytes(char.encode()))


def _regex(tokens: Tokens) -> str:
    return "".join(token if isinstance(token, str) else f"(?:{'|'.join(map(_regex, token))})" for token in tokens)


def _choices(tokens: Tokens) -> int:
    """How many times a regex would have to choose."""
    return sum(
        token in _MANY if isinstance(token, str) else 1 + sum(_choices(branch) for branch in token) for token in tokens
    )


def _ends(tokens: Tokens, path: str, starts: set[int]) -> set[int]:
    """Where a match can end that starts at one of these places."""
    for token in tokens:
        if isinstance(token, tuple):
            starts = set[int]().union(*(_ends(branch, path, starts) for branch in token))
        elif token in _MANY:
            starts = set(_reached(token, path, starts)) if starts else starts
        else:
            matches = (re.compile(token, re.DOTALL).match(path, start) for start in starts)
            starts = {match.end() for match in matches if match}
    return starts


def _reached(token: str, path: str, starts: set[int]) -> Iterator[int]:
    if token == _STAR:
        yield from _starred(path, starts)
        return
    if token == _PREFIX:
        yield from starts
        first = min(starts)
    else:
        first = min((start for start in starts if path[start : start + 1] == "/"), default=len(path))
    for place in range(first, len(path)):
        if path[place : place + 1] == "/" or token == _SUFFIX:
            yield place + 1


def _starred(path: str, starts: set[int]) -> Iterator[int]:
    end = -1
    for start in sorted(starts):
        if start > end:
            end = (f"{path}/").find("/", start)
            yield from range(start, end + 1)
