"""Sets of characters, as ranges of code points, and their classes in the syntax of Python's `re`."""

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Self, TypeAlias

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Ranges of code points, in order, that do not touch each other."""

LAST = sys.maxunicode
ANY: Ranges = ((0, LAST),)


@cache
def ranges_of(letters: str) -> Ranges:
    """Return the ranges that are written as in `a-z_`; `-` is not one of the characters."""
    found: list[tuple[int, int]] = []
    at = 0
    while at < len(letters):
        wide = letters[at + 1 : at + 2] == "-" and at + 2 < len(letters)
        found.append((ord(letters[at]), ord(letters[at + 2 * wide])))
        at += 3 if wide else 1
    return union(tuple(found))


def union(*several: Ranges) -> Ranges:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(one for ranges in several for one in ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return tuple(merged)


def inverted(ranges: Ranges) -> Ranges:
    found: list[tuple[int, int]] = []
    next_ = 0
    for first, last in ranges:
        if first > next_:
            found.append((next_, first - 1))
        next_ = last + 1
    return (*found, (next_, LAST)) if next_ <= LAST else tuple(found)


def minus(one: Ranges, other: Ranges) -> Ranges:
    return inverted(union(inverted(one), other))


def where(condition: Callable[[str], object]) -> Ranges:
    return union(tuple((code, code) for code in range(LAST + 1) if condition(chr(code))))


@dataclass(frozen=True)
class Characters:
    r"""Set of characters."""

    given: Ranges | Callable[[], Ranges]
    body: str = ""
    negated: bool = False

    @classmethod
    def between(cls, first: int, last: int) -> Self:
        """Return the set of the characters with these code points, and all between them."""
        return cls(((first, last),))

    @cached_property
    def ranges(self) -> Ranges:
        """Ranges of the characters, or of a superset if there is a `body`."""
        return self.given() if callable(self.given) else self.given

    @property
    def exact(self) -> Ranges:
        """Ranges of exactly these characters."""
        if not self.body:
            return self.ranges
        return inverted(_exact(self.body)) if self.negated else _exact(self.body)

    @property
    def single(self) -> int | None:
        """Code of the only character; `None` if there are more, or if they are not known yet."""
        if callable(self.given) or len(self.given) != 1 or self.given[0][0] != self.given[0][1]:
            return None
        return self.given[0][0]

    def inverted(self) -> "Characters":
        """Return the set of all other characters."""
        if not self.body:
            return Characters(lambda: inverted(self.ranges))
        return Characters(ANY, self.body, not self.negated)

    def python(self) -> str:
        """Return the pattern of one of the characters."""
        if self.body:
            return f"[{'^' * self.negated}{self.body}]"
        others = inverted(self.ranges)
        if not others:
            return r"[\s\S]"
        if not self.ranges:
            return r"[^\s\S]"
        if len(self.ranges) == 1 and self.ranges[0][0] == self.ranges[0][1]:
            return re.escape(chr(self.ranges[0][0]))
        if len(others) < len(self.ranges):
            return f"[^{_body(others)}]"
        return f"[{_body(self.ranges)}]"


def joined(parts: "list[Characters]") -> Characters:
    """Return the union of sets."""
    if not any(part.body for part in parts):
        return Characters(lambda: union(*(part.ranges for part in parts)))
    bodies = [part.body if part.body and not part.negated else _body(part.exact) for part in parts]
    return Characters(union(*(part.ranges for part in parts)), "".join(bodies))


def _body(ranges: Ranges) -> str:
    return "".join(_char(first) if first == last else f"{_char(first)}-{_char(last)}" for first, last in ranges)


def _char(code: int) -> str:
    character = chr(code)
    if character.isascii():
        return character if character.isalnum() or character == "_" else rf"\x{code:02x}"
    return rf"\u{code:04x}" if code <= 0xFFFF else rf"\U{code:08x}"


@cache
def _exact(body: str) -> Ranges:
    return where(re.compile(f"[{body}]").match)
