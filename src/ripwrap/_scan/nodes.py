r"""Tree of a regular expression, how it is written for Python's `re`, and how long that may take; no I/O.

Python's `re` tries all ways to match from a start, one after another (backtracking), where rg and Go take linear time.
`written()` bounds the number of these ways. A repetition has one way if what follows it cannot begin with a character
that it repeats: `[a-z]{1,9}=`. Otherwise, it has a way for each number of repetitions: `[a-z]{1,9}k`. The ways of parts
that follow each other are multiplied, those of branches are added.
"""

from collections.abc import Sequence as Several
from dataclasses import dataclass
from typing import TypeAlias

from ripwrap._scan.characters import ANY, Characters, Ranges, union

MAX_WAYS = 1_000_000
"""Number of ways above which a pattern is refused where a text may be made to be slow."""

_MOST = 300
"""Repetitions at most, where a pattern has no maximum and what follows may begin with a repeated character."""

_MANY = 10**9


@dataclass(frozen=True)
class Assertion:
    """Condition for a place, such as `^`; `text` is its pattern for Python."""

    text: str


@dataclass(frozen=True)
class Group:
    """Group, which may capture its text."""

    body: "Node"
    captures: bool


@dataclass(frozen=True)
class Repetition:
    """Repeated part; `most` is `None` without a maximum."""

    body: "Node"
    least: int
    most: int | None
    lazy: bool


@dataclass(frozen=True)
class Sequence:
    """Parts one after another."""

    parts: "tuple[Node, ...]"


@dataclass(frozen=True)
class Alternation:
    """Branches, of which the first that matches counts."""

    branches: "tuple[Node, ...]"


Node: TypeAlias = Characters | Assertion | Group | Repetition | Sequence | Alternation


@dataclass(frozen=True, slots=True)
class Written:
    """Pattern of Python's `re`."""

    text: str
    ways: int = 1
    steady: bool = True

    @property
    def cost(self) -> int:
        """Number of ways, where an attempt that may read all of a text counts as many."""
        return self.ways if self.steady else self.ways * _MOST


@dataclass(frozen=True, slots=True)
class _Rest:
    """What follows a part of a pattern."""

    first: Ranges = ()
    succeeds: bool = True


def written(node: Node) -> Written:
    """Return the pattern for Python with exactly the matches of the tree; its `ways` do not count."""
    return _write(node, None)


def limited(node: Node) -> Written:
    """Return the pattern for Python, where a repetition that may be slow has a maximum."""
    return _write(node, _Rest())


def _write(node: Node, rest: _Rest | None) -> Written:
    """Write a node; `rest` is what follows, and `None` if repetitions stay as they are."""
    if isinstance(node, Characters):
        return Written(node.python())
    if isinstance(node, Assertion):
        return Written(node.text)
    if isinstance(node, Group):
        body = _write(node.body, rest)
        return Written(f"({'' if node.captures else '?:'}{body.text})", body.ways, body.steady)
    if isinstance(node, Repetition):
        return _write_repetition(node, rest)
    if isinstance(node, Alternation):
        branches = [_write(branch, rest) for branch in node.branches]
        ways = [branch.ways for branch in branches]
        text = "|".join(branch.text for branch in branches)
        return Written(text, max(ways) if _differ(node.branches) else sum(ways), all(one.steady for one in branches))
    return _write_sequence(node.parts, rest)


def _write_sequence(parts: Several[Node], rest: _Rest | None) -> Written:
    texts: list[str] = []
    ways, steady = 1, True
    for part in reversed(parts):
        found = _write(part, rest)
        texts.append(found.text)
        ways, steady = min(ways * found.ways, _MANY), steady and found.steady
        rest = None if rest is None else _before(part, rest)
    return Written("".join(reversed(texts)), ways, steady)


def _before(part: Node, rest: _Rest) -> _Rest:
    """Return what follows the part before `part`."""
    first = union(_first(part), rest.first) if _nullable(part) else _first(part)
    return _Rest(first, _succeeds(part) and rest.succeeds)


def _write_repetition(node: Repetition, rest: _Rest | None) -> Written:
    least, most = node.least, node.most
    inner = rest and _Rest(union(_first(node.body), rest.first), rest.succeeds and least < 2)
    body = _write(node.body, inner)
    whole = isinstance(node.body, (Characters, Group))
    text = body.text if whole else f"(?:{body.text})"
    end = "?" if node.lazy else ""
    overlaps = rest is not None and not rest.succeeds and _meet(_first(node.body), rest.first)
    if rest is None or rest.succeeds or not overlaps:
        count = _count(least, most)
        ways = body.ways if most == 1 else 1 if body.ways == 1 else _MANY
        return Written(f"{text}{count}{end}", ways, body.steady and (most is not None or not rest or rest.succeeds))
    most = least + _MOST if most is None else most
    ways = sum(min(body.ways ** min(number, 40), _MANY) for number in range(least, most + 1))
    return Written(f"{text}{_count(least, most)}{end}", min(ways, _MANY), body.steady)


def _count(least: int, most: int | None) -> str:
    if most is None and least < 2:
        return "+" if least else "*"
    return f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}"


def _first(node: Node) -> Ranges:
    """Return the characters that a part can begin with, if it matches any."""
    if isinstance(node, Characters):
        return node.ranges
    if isinstance(node, Assertion):
        return ANY  # it may fail after each number of repetitions
    if isinstance(node, (Group, Repetition)):
        return _first(node.body)
    if isinstance(node, Alternation):
        return union(*map(_first, node.branches))
    found: Ranges = ()
    for part in node.parts:
        found = union(found, _first(part))
        if not _nullable(part):
            break
    return found


def _nullable(node: Node) -> bool:
    """Return True if a part can match empty text."""
    if isinstance(node, Characters):
        return False
    if isinstance(node, Assertion):
        return True
    if isinstance(node, Group):
        return _nullable(node.body)
    if isinstance(node, Repetition):
        return not node.least or _nullable(node.body)
    if isinstance(node, Alternation):
        return any(map(_nullable, node.branches))
    return all(map(_nullable, node.parts))


def _succeeds(node: Node) -> bool:
    """Return True if a part matches at least empty text everywhere."""
    if isinstance(node, (Characters, Assertion)):
        return False
    if isinstance(node, Group):
        return _succeeds(node.body)
    if isinstance(node, Repetition):
        return not node.least or _succeeds(node.body)
    if isinstance(node, Alternation):
        return any(map(_succeeds, node.branches))
    return all(map(_succeeds, node.parts))


def _differ(branches: Several[Node]) -> bool:
    """Return True if no two branches can begin with the same character."""
    if any(map(_nullable, branches)):
        return False
    seen: Ranges = ()
    for branch in branches:
        first = _first(branch)
        if _meet(seen, first):
            return False
        seen = union(seen, first)
    return True


def _meet(one: Ranges, other: Ranges) -> bool:
    """Return True if two sets have a character in common."""
    left, right = 0, 0
    while left < len(one) and right < len(other):
        if one[left][1] < other[right][0]:
            left += 1
        elif other[right][1] < one[left][0]:
            right += 1
        else:
            return True
    return False
