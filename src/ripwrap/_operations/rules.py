"""Rules of `scan()`, and the check of what they matched: path, keywords, entropy and allowlists; no rg."""

import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, Field

from ripwrap._text import byte_order_mark, raw_bytes
from ripwrap.models import Model, ScanMatch


def _check_regex(regex: str) -> str:
    try:
        re.compile(regex)
    except re.error as error:
        raise ValueError(f"Python's re does not take {regex!r}: {error}") from error
    return regex


PathRegex = Annotated[str, AfterValidator(_check_regex)]
"""Regular expression of Python."""


class Allowlist(Model, frozen=True, extra="forbid"):
    """Matches of a rule that are left out.

    Attributes:
        paths: Regular expressions of Python; one must be found in the path, which has `/` between its parts.
        regexes: Regular expressions of Python; one must be found in the `target`.
        stopwords: Words; one must be in the secret. Case is ignored.
        target: Text for `regexes`: the `secret`, the whole `match`, or its `line`.
        condition: `"any"`: one of `paths`, `regexes` and `stopwords` is enough. `"all"`: all that are given must apply.
    """

    paths: tuple[PathRegex, ...] = ()
    regexes: tuple[PathRegex, ...] = ()
    stopwords: tuple[str, ...] = ()
    target: Literal["secret", "match", "line"] = "secret"
    condition: Literal["any", "all"] = "any"

    def allows(self, hit: ScanMatch, secret: str) -> bool:
        """Return whether a match is left out."""
        text = {"secret": secret, "match": hit.submatches[0].match, "line": hit.lines}[self.target]
        checks = [
            *([any(_compiled(one).search(_slashed(hit)) for one in self.paths)] if self.paths else []),
            *([any(_compiled(one).search(text) for one in self.regexes)] if self.regexes else []),
            *([any(word.lower() in secret.lower() for word in self.stopwords)] if self.stopwords else []),
        ]
        return bool(checks) and (any(checks) if self.condition == "any" else all(checks))


class Rule(Model, frozen=True, extra="forbid"):
    """Rule of `scan()`.

    Attributes:
        id: Name of the rule; `ScanMatch.rule`.
        pattern: Regular expression of rg (https://docs.rs/regex).
        description: Description for reports.
        path: Regular expression of Python that must be found in the path, which has `/` between its parts; empty is any
            path.
        keywords: Words of which the file must have at least one; case of ASCII letters is ignored. Empty is any file.
        entropy: Shannon entropy, in bits for each character, that the secret must exceed; 0 is no limit.
        secret_group: Number of the group that is the secret; 0 is the first group that is not empty, or else the match.
        allowlists: Matches to leave out.
        tags: Tags for reports.
        multiline: True if a match may span lines. The rule is then searched in a run of its own.
    """

    id: Annotated[str, Field(min_length=1)]
    pattern: str
    description: str = ""
    path: PathRegex = ""
    keywords: tuple[str, ...] = ()
    entropy: Annotated[float, Field(ge=0)] = 0.0
    secret_group: Annotated[int, Field(ge=0)] = 0
    allowlists: tuple[Allowlist, ...] = ()
    tags: tuple[str, ...] = ()
    multiline: bool = False

    def secret(self, hit: ScanMatch) -> str:
        """Return the part of a match that is the secret."""
        groups = hit.groups
        if self.secret_group:
            return (groups[self.secret_group - 1] if self.secret_group <= len(groups) else None) or ""
        return next(filter(None, groups), None) or hit.submatches[0].match

    @cached_property
    def filters(self) -> bool:
        """True if a match of the pattern may be left out."""
        return bool(self.path or self.keywords or self.entropy or self.allowlists)

    def accepts(self, hit: ScanMatch) -> bool:
        """Return whether a match of the pattern counts, apart from `keywords`."""
        if self.path and not _compiled(self.path).search(_slashed(hit)):
            return False
        secret = self.secret(hit)
        if self.entropy and shannon_entropy(secret) <= self.entropy:
            return False
        return not any(one.allows(hit, secret) for one in self.allowlists)


def check_rules(rules: Mapping[str, str] | Iterable[Rule]) -> tuple[Rule, ...]:
    """Return the rules, in order.

    Raises:
        ValueError: There is no rule, or two have the same name.
        TypeError: A rule is neither a pattern with a name nor a `Rule`.
    """
    if isinstance(rules, (str, bytes)) or not isinstance(rules, Iterable):
        raise TypeError(f"rules must be a mapping of names to patterns, or Rules; got {type(rules).__name__}")
    known: list[Rule] = []
    pairs: Iterable[tuple[Any, Any]]
    pairs = cast("Mapping[Any, Any]", rules).items() if isinstance(rules, Mapping) else ((None, one) for one in rules)
    for name, pattern in pairs:
        if isinstance(pattern, Rule) and name in (None, pattern.id):
            known.append(pattern)
        elif isinstance(name, str) and isinstance(pattern, str):
            known.append(Rule(id=name, pattern=pattern))
        else:
            raise TypeError(f"a rule must be a pattern with a name, or a Rule; got {pattern!r} for {name!r}")
    if not known:
        raise ValueError("no rules given; pass a mapping of names to patterns")
    for name, number in Counter(rule.id for rule in known).items():
        if number > 1:
            raise ValueError(f"{number} rules are called {name!r}; rename all but one")
    return tuple(known)


def accepted(hits: Iterable[ScanMatch], rules: Mapping[str, Rule], cwd: str) -> Iterator[ScanMatch]:
    """Yield the matches that count; read their files for keywords.

    Args:
        hits: Matches.
        rules: Rules by name.
        cwd: Directory that paths are relative to.
    """
    files: dict[str, bytes] = {}  # the last one; matches come file by file
    for hit in hits:
        rule = rules[hit.rule]
        if not rule.filters or (rule.accepts(hit) and (not rule.keywords or _has_keyword(rule, hit, cwd, files))):
            yield hit


def _has_keyword(rule: Rule, hit: ScanMatch, cwd: str, files: dict[str, bytes]) -> bool:
    words = [word.lower().encode() for word in rule.keywords]
    line = raw_bytes(hit.lines).lower()
    if any(word in line for word in words):
        return True
    path = hit.path or ""
    if path not in files:
        files.clear()
        files[path] = _read_lower(os.path.join(cwd, path))
    return any(word in files[path] for word in words)


def _read_lower(path: str) -> bytes:
    """Return the content of a file in lower case; empty if it is gone."""
    try:
        with open(path, "rb") as file:
            raw = file.read()
    except OSError:
        return b""
    mark, encoding = byte_order_mark(raw)
    if encoding != "utf-8":
        raw = raw[len(mark) :].decode(encoding, "replace").encode("utf-8", "replace")
    return raw.lower()


def shannon_entropy(text: str) -> float:
    """Return the Shannon entropy of a text, in bits for each character."""
    return -sum(number / len(text) * math.log2(number / len(text)) for number in Counter(text).values())


def _slashed(hit: ScanMatch) -> str:
    return (hit.path or "").replace(os.sep, "/")


@lru_cache(4096)
def _compiled(regex: str) -> re.Pattern[str]:
    return re.compile(regex)
