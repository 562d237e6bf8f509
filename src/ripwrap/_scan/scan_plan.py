"""Choose the runs of rg for a scan, and the patterns of each run.

A regex of 200 rules is slow: rg's automaton has too many states, and takes up to 75 s of CPU for 37 MB. So a scan for
many rules takes up to two runs. The first run searches for the literals of rules: each match of a rule contains at
least one of the literals of the rule. The second run searches for the patterns of the rules that have no literals, or a
frequent literal. With `sort`, one run searches for the literals and the patterns together.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ripwrap._operations.search import read_groups
from ripwrap._ripgrep.groups import Groups
from ripwrap._ripgrep.literals import Required, has_literals, is_frequent, rarest, required_literals
from ripwrap._ripgrep.query import NEEDS_SCAN, Query, without_options
from ripwrap._scan.rules import Rule
from ripwrap.options import SearchOptions, StrPath

FEW_RULES = 16
"""Number of rules up to which rg searches for all patterns in one run. Measured: each pattern makes the run slower."""


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """Checked arguments of `scan()`."""

    rules: tuple[Rule, ...]
    cwd: StrPath
    paths: tuple[StrPath, ...]
    overlaps: bool
    limit: int | None
    options: SearchOptions
    on_host: bool = False


@dataclass(frozen=True)
class CompiledRule:
    """Rule, with its groups and literals."""

    rule: Rule
    groups: Groups | None
    literals: Required | None

    @property
    def joins(self) -> bool:
        """True if one line is enough to decide if the rule matches. Such rules are searched together in one run."""
        return self.joined is not None and not self.rule.multiline

    @property
    def joined(self) -> str | None:
        """Pattern for a run together with other rules, as in `Groups.joined`; `None` if that is impossible."""
        return None if self.groups is None else self.groups.joined

    @property
    def reduced(self) -> str:
        """Pattern that matches at least the lines that the rule matches; see `Groups.reduced`.

        If the groups are unknown, return an empty pattern, which matches every line.
        """
        return (None if self.groups is None else self.groups.reduced) or ""

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Literals such that each line with a match contains at least one of them.

        The tuple is empty if no literal is known, or if one of the literals may be frequent.
        """
        words = () if self.literals is None else rarest(self.literals)
        return () if any(map(is_frequent, words)) else tuple(word.decode() for word in words)

    def may_match(self, folded: bytes) -> bool:
        """Return False if the rule cannot match in a text that `fold()` returned, because the text lacks literals."""
        return self.literals is None or has_literals(folded, self.literals)


@dataclass(frozen=True, slots=True)
class Pass:
    """Planned run of rg over all files, for some or all of the rules."""

    rules: tuple[CompiledRule, ...]
    alone: bool = False
    literals: bool = False
    held: bool = False

    def halves(self) -> "tuple[Pass, Pass]":
        """Return two runs, each for half of the rules."""
        half = len(self.rules) // 2
        return replace(self, rules=self.rules[:half]), replace(self, rules=self.rules[half:])

    def patterns(self) -> list[str]:
        """Return patterns that match all lines that the rules match, and possibly other lines."""
        words: dict[str, None] = {}
        patterns: list[str] = []
        for rule in self.rules:
            if self.literals and rule.words:
                words |= dict.fromkeys(rule.words)
            else:
                patterns.append(rule.reduced)
        if words:
            patterns.append(f"(?iu:{'|'.join(map(re.escape, words))})")
        return patterns


def compile_rules(rules: Iterable[Rule], options: SearchOptions) -> list[CompiledRule]:
    """Return the rules with their groups and literals."""
    # Literals are compared with rg's output, which does not have the encoding of the files.
    decoded = without_options(options, ("encoding",))
    compiled: list[CompiledRule] = []
    for rule in rules:
        groups = read_groups([rule.pattern], {**options, "multiline": True} if rule.multiline else options)
        compiled.append(CompiledRule(rule, groups, required_literals([rule.pattern], decoded)))
    return compiled


def plan_passes(rules: Sequence[CompiledRule], options: SearchOptions) -> list[Pass]:
    """Return the runs of rg that a scan needs, in order; each run searches all files."""
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


def for_scan(query: Query) -> Query:
    """Return the query of a scan: items of one name have different marks, and each file is searched once.

    Errors about rg name `scan()`.
    """
    return replace(query, features=(NEEDS_SCAN,), numbered="", once=True)
