"""Choose the runs of rg for a scan, and the patterns of each run; no rg.

A regex of 200 rules is slow: rg's automaton has too many states, and takes up to 75 s of CPU for 37 MB. So a scan for
many rules takes two runs. The first looks for literals: every match of a rule contains one of its literals. The second
is for rules that have no literals, or only frequent ones; it searches for the rules themselves.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

from ripwrap._operations.rules import Rule
from ripwrap._operations.search import read_groups
from ripwrap._ripgrep.command import NEEDS_CAPTURES, NEEDS_SCAN, Command
from ripwrap._ripgrep.groups import Groups
from ripwrap._ripgrep.literals import AllOf, Required, required_literals
from ripwrap.options import SearchOptions, StrPath

FEW_RULES = 16
"""Maximum number of rules that rg searches for in one run; measured: with more, each rule makes the run slower."""

_FREQUENT = frozenset(
    {"access", "auth", "class", "code", "data", "error", "file", "func", "http", "https", "import", "info", "line"}
    | {"list", "message", "name", "none", "null", "path", "return", "secret", "self", "string", "test", "text", "time"}
    | {"title", "token", "true", "type", "user", "value"}
)
"""Words that are frequent in source code. A rule with such a literal is itself searched for, unless there are longer
literals."""

_MIN_LETTERS = 4
_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$#&~-]")
_LETTERS = re.compile(rb"[a-z]+")


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """A checked call of `scan()`.

    Attributes:
        rules: Rules, in order.
        cwd: Directory to search.
        paths: Files or directories to search; empty is all of `cwd`.
        overlaps: Argument of `scan()`.
        limit: Argument of `scan()`.
        options: Options.
    """

    rules: tuple[Rule, ...]
    cwd: str
    paths: tuple[StrPath, ...]
    overlaps: bool
    limit: int | None
    options: SearchOptions


@dataclass(frozen=True)
class CompiledRule:
    """Rule, with its groups and literals.

    Attributes:
        rule: Rule.
        groups: Groups of its pattern; `None` if their syntax is unknown.
        literals: Literals, at least one of which is in each line with a match; `None` if there are none.
    """

    rule: Rule
    groups: Groups | None
    literals: Required | None

    @property
    def joins(self) -> bool:
        """True if a line alone tells if the rule matches it, so that it can be searched together with other rules."""
        return self.joined is not None and not self.rule.multiline

    @property
    def joined(self) -> str | None:
        """Pattern for a run with other rules; see `Groups.joined`."""
        return None if self.groups is None else self.groups.joined

    @property
    def reduced(self) -> str:
        """Pattern that matches at least the lines that the rule matches; see `Groups.reduced`."""
        return (None if self.groups is None else self.groups.reduced) or ""

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Literals of which each line with a match has at least one; empty if one of them may be frequent."""
        words = () if self.literals is None else _rarest(self.literals)
        return () if any(map(_frequent, words)) else tuple(word.decode() for word in words)

    def may_match(self, folded: bytes) -> bool:
        """Return False if a folded text (`fold()`) lacks literals, so that the rule matches nothing in it."""
        return self.literals is None or _has(folded, self.literals)


@dataclass(frozen=True, slots=True)
class Pass:
    """Run of rg over all files.

    Attributes:
        rules: Rules that it is for.
        alone: True if it searches for one rule, with its groups; otherwise it finds lines, which are searched again.
        literals: True if it searches for the literals of the rules that have some.
        held: True if its texts are held, because the next pass finds texts of other rules in the same files.
    """

    rules: tuple[CompiledRule, ...]
    alone: bool = False
    literals: bool = False
    held: bool = False

    def halves(self) -> "tuple[Pass, Pass]":
        """Return two passes, for half of the rules each."""
        half = len(self.rules) // 2
        return replace(self, rules=self.rules[:half]), replace(self, rules=self.rules[half:])

    def patterns(self) -> list[str]:
        """Return patterns that match at least the lines that the rules match."""
        words: dict[str, None] = {}
        patterns: list[str] = []
        for rule in self.rules:
            if self.literals and rule.words:
                words |= dict.fromkeys(rule.words)
            else:
                patterns.append(rule.reduced)
        if words:
            patterns.append(f"(?iu:{'|'.join(_SPECIAL.sub(_escaped, word) for word in words)})")
        return patterns


def compile_rules(rules: Iterable[Rule], options: SearchOptions) -> list[CompiledRule]:
    """Return the rules with their groups and literals."""
    given = cast("Mapping[str, Any]", options)
    # Lines have the encoding of rg's output, not that of files.
    decoded = cast("SearchOptions", {name: value for name, value in given.items() if name != "encoding"})
    compiled: list[CompiledRule] = []
    for rule in rules:
        groups = read_groups([rule.pattern], {**options, "multiline": True} if rule.multiline else options)
        compiled.append(CompiledRule(rule, groups, required_literals([rule.pattern], decoded)))
    return compiled


def plan_passes(rules: Sequence[CompiledRule], options: SearchOptions) -> list[Pass]:
    """Return the runs of rg over all files, in order."""
    together = tuple(rule for rule in rules if rule.joins)
    if len(together) == 1:
        together = ()
    alone = [Pass((rule,), alone=True) for rule in rules if rule not in together]
    if not together:
        return alone
    if len(together) <= FEW_RULES:
        return [Pass(together), *alone]
    rare = tuple(rule for rule in together if rule.words)
    others = tuple(rule for rule in together if not rule.words)
    if not rare or not others or options.get("sort") or options.get("sortr"):
        return [Pass(together, literals=True), *alone]
    return [Pass(rare, literals=True, held=True), Pass(others), *alone]


def for_scan(command: Command) -> Command:
    """Return a command that needs the rg that a scan needs."""
    return replace(command, needs=(*(need for need in command.needs if need != NEEDS_CAPTURES), NEEDS_SCAN))


def _rarest(required: Required) -> list[bytes]:
    """Return literals, at least one of which is in each match: all alternatives, or the longest of several parts."""
    if isinstance(required, bytes):
        return [required]
    parts = [_rarest(part) for part in required.parts]
    if isinstance(required, AllOf):
        return max(parts, key=lambda part: (not any(map(_frequent, part)), min(map(len, part))))
    return [word for part in parts for word in part]


def _frequent(literal: bytes) -> bool:
    """Return whether a literal may be frequent: a short or frequent word."""
    words = _LETTERS.findall(literal)
    if words == [literal]:
        return len(literal) < _MIN_LETTERS or literal.decode() in _FREQUENT
    return len(words) == 1 and len(literal) == len(words[0]) + 1 and words[0].decode() in _FREQUENT


def _escaped(found: "re.Match[str]") -> str:
    return f"\\{found[0]}"


def _has(text: bytes, required: Required) -> bool:
    """Return whether a folded text has the literals."""
    if isinstance(required, bytes):
        return required in text
    combine: Callable[[Iterable[bool]], bool] = all if isinstance(required, AllOf) else any
    return combine(_has(text, part) for part in required.parts)
