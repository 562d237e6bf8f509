"""Rules of `scan()`, files of rules, and the filters of matches: path, keywords, entropy and allowlists."""

import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache, cached_property, lru_cache
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, Field, ValidationError

from ripwrap._text import cut_text, raw_bytes, text_of
from ripwrap.models import Model, ScanMatch
from ripwrap.options import StrPath


def _check_regex(regex: str) -> str:
    try:
        re.compile(regex)
    except re.error as error:
        raise ValueError(f"Python's re cannot compile {regex!r}: {error}") from error
    return regex


PathRegex = Annotated[str, AfterValidator(_check_regex)]
"""Regular expression in the syntax of Python's `re`; validation compiles it."""


class Allowlist(Model, frozen=True, extra="forbid"):
    """Condition under which matches of a rule are left out. `Rule.secret()` selects the secret in a match.

    `paths`, `regexes` and `stopwords` are checked only if they are not empty. If all are empty, no match is left out.

    Attributes:
        paths: Regular expressions of Python; at least one must match in the path, which has `/` between its parts.
        regexes: Regular expressions of Python; at least one must match in the text that `target` selects.
        stopwords: Words, of which the secret must contain at least one. Case is ignored.
        target: Text for `regexes`: the `secret`, the whole `match`, or its `line`, without the newline at its end. A
            match that spans lines has all of its lines.
        condition: `"any"`: at least one of `paths`, `regexes` and `stopwords` must apply. `"all"`: each of these three
            that is not empty must apply.
    """

    paths: tuple[PathRegex, ...] = ()
    regexes: tuple[PathRegex, ...] = ()
    stopwords: tuple[str, ...] = ()
    target: Literal["secret", "match", "line"] = "secret"
    condition: Literal["any", "all"] = "any"

    def allows(self, hit: ScanMatch, secret: str) -> bool:
        """Return True if a match is left out. `secret` is the part of the match that is the secret."""
        text = secret if self.target == "secret" else hit.submatches[0].match if self.target == "match" else _lines(hit)
        checks: list[bool] = []
        if self.paths:
            checks.append(bool(hit.path) and any(_compiled(one).search(_slashed(hit)) for one in self.paths))
        if self.regexes:
            checks.append(any(_compiled(one).search(text) for one in self.regexes))
        if self.stopwords:
            checks.append(any(word.lower() in secret.lower() for word in self.stopwords))
        return bool(checks) and (any(checks) if self.condition == "any" else all(checks))


class Rule(Model, frozen=True, extra="forbid"):
    """Rule of `scan()`.

    Attributes:
        id: Name of the rule, which is also in `ScanMatch.rule`.
        pattern: Regular expression in the syntax of rg (https://docs.rs/regex). If it is empty and `path` is not, the
            rule finds files by name: it matches once, with empty text, in each file that `path` matches, even in a
            binary one.
        description: Description for reports.
        path: Regular expression of Python that must match in the path, which has `/` between its parts; empty allows
            any path.
        keywords: Words, of which the file must contain at least one; case is ignored. Empty allows any file.
        entropy: Shannon entropy, in bits per character, that the secret must exceed; 0 is no limit.
        secret_group: Number of the group that is the secret; 0 is the first group that is not empty, or the match if
            there is no such group.
        allowlists: Conditions under which matches are left out.
        tags: Tags for reports.
        multiline: True if a match may span lines. A separate run of rg then searches for the rule.
    """

    id: Annotated[str, Field(min_length=1)]
    pattern: str = ""
    description: str = ""
    path: PathRegex = ""
    keywords: tuple[str, ...] = ()
    entropy: Annotated[float, Field(ge=0)] = 0.0
    secret_group: Annotated[int, Field(ge=0)] = 0
    allowlists: tuple[Allowlist, ...] = ()
    tags: tuple[str, ...] = ()
    multiline: bool = False

    @property
    def finds_names(self) -> bool:
        """True if the rule finds files by name, and no text."""
        return not self.pattern and bool(self.path)

    def secret(self, hit: ScanMatch) -> str:
        """Return the part of a match that is the secret.

        If the match has no group `secret_group`, or this group did not match, return an empty text.
        """
        groups = hit.groups
        if self.secret_group:
            return (groups[self.secret_group - 1] if self.secret_group <= len(groups) else None) or ""
        return next(filter(None, groups), None) or hit.submatches[0].match

    @cached_property
    def filters(self) -> bool:
        """True if the rule has a filter, so that some matches of the pattern may be left out."""
        return bool(self.path or self.keywords or self.entropy or self.allowlists)

    def accepts(self, hit: ScanMatch) -> bool:
        """Return True if a match of the pattern passes all filters of the rule.

        `keywords` are not checked. If the path of the match is unknown (empty), no path is checked.
        """
        if self.path and hit.path and not _compiled(self.path).search(_slashed(hit)):
            return False
        secret = self.secret(hit)
        if self.entropy and not self.finds_names and shannon_entropy(secret) <= self.entropy:
            return False
        return not any(one.allows(hit, secret) for one in self.allowlists)


def check_rules(rules: Mapping[str, str] | Iterable[Rule]) -> tuple[Rule, ...]:
    """Check the argument `rules` of `scan()`, and return the rules in order."""
    if isinstance(rules, (str, bytes)) or not isinstance(rules, Iterable):
        raise TypeError(f"rules must be a mapping of names to patterns, or a list of Rule; got {type(rules).__name__}")
    known: list[Rule] = []
    pairs: Iterable[tuple[Any, Any]]
    pairs = cast("Mapping[Any, Any]", rules).items() if isinstance(rules, Mapping) else ((None, one) for one in rules)
    for name, pattern in pairs:
        if isinstance(pattern, Rule) and name in (None, pattern.id):
            known.append(pattern)
        elif isinstance(name, str) and isinstance(pattern, str):
            known.append(Rule(id=name, pattern=pattern))
        else:
            given = f"{pattern!r}" if name is None else f"{name!r}: {pattern!r}"
            raise TypeError(f"each rule must be a Rule, or a name mapped to a pattern; got {given}")
    if not known:
        raise ValueError("no rules given; pass a mapping of names to patterns")
    for name, number in Counter(rule.id for rule in known).items():
        if number > 1:
            raise ValueError(f"{number} rules are called {name!r}; rename all but one")
    return tuple(known)


def shannon_entropy(text: str) -> float:
    """Return the Shannon entropy of a text, in bits per character; 0 for an empty text."""
    return -sum(number / len(text) * math.log2(number / len(text)) for number in Counter(text).values())


def _lines(hit: ScanMatch) -> str:
    """Return the lines of a match. The lines of a hit may have further ones, because rg joins adjacent matches."""
    raw, submatch = raw_bytes(hit.lines), hit.submatches[0]
    start = raw.rfind(b"\n", 0, submatch.start) + 1
    end = raw.find(b"\n", max(submatch.start, submatch.end - 1))
    return text_of(raw[start : None if end < 0 else end])


def _slashed(hit: ScanMatch) -> str:
    return hit.path.replace(os.sep, "/")


@cache
def allow_comment() -> Allowlist:
    """Return the exception for lines with the comment `gitleaks:allow`, as gitleaks has it."""
    return Allowlist(regexes=("gitleaks:allow",), target="line")


@lru_cache(4096)
def _compiled(regex: str) -> re.Pattern[str]:
    return re.compile(regex)


_OF_GITLEAKS = frozenset({"regex", "secretGroup", "allowlist", "extend", "regexTarget"})
"""Keys that files of gitleaks have, and files of rules have not."""


class _RuleFile(Model, frozen=True, extra="forbid"):
    """Content of a file of rules."""

    rules: Annotated[tuple[Rule, ...], Field(min_length=1)]


def load_rules(path: StrPath) -> tuple[Rule, ...]:
    r"""Read the rules of `scan()` from a TOML file.

    Each `[[rules]]` has the attributes of a `Rule` as keys: an `id` and a `pattern` in the syntax of rg, or only a
    `path` to find files by name; and, if they are needed, `description`, `path`, `keywords`, `entropy`, `secret_group`,
    `tags` and `multiline`. Each `[[rules.allowlists]]` has the attributes of an `Allowlist`: `paths`, `regexes`,
    `stopwords`, `target` and `condition`. A match in a line with the comment `gitleaks:allow` is left out.

    Args:
        path: Path of the TOML file.

    Raises:
        ValueError: The file is not TOML, or a key or value is invalid; the message names the rule and the key. Or it is
            a file of gitleaks, whose patterns have the syntax of Go.
        OSError: The file cannot be read.
    """
    import tomllib  # late: few callers read a file

    name = os.fspath(path)
    with open(path, "rb") as file:
        try:
            found = tomllib.load(file)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{name} is not valid TOML: {error}") from error
    try:
        rules = check_rules(_RuleFile.model_validate(found).rules)
    except ValidationError as error:
        raise _error(error, found, name) from error
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    if empty := [rule.id for rule in rules if not rule.pattern and not rule.path]:
        raise ValueError(f"{name}: rule {empty[0]} has no pattern and no path; add one of them, or remove the rule")
    return tuple(rule.model_copy(update={"allowlists": (*rule.allowlists, allow_comment())}) for rule in rules)


def _error(error: ValidationError, found: Mapping[str, Any], name: str) -> ValueError:
    """Return the error for a file with a wrong key or value, which names the rule and the key."""
    wrong = error.errors()
    for one in wrong:
        if (key := one["loc"][-1]) in _OF_GITLEAKS or one["loc"] == ("allowlists",):
            return ValueError(
                f"{name} is a file of gitleaks, as its key {key!r} shows; ripwrap no longer reads such files. Write "
                "[[rules]] with an id and a pattern in the syntax of rg (`regex` is called `pattern`, `secretGroup` "
                "`secret_group`, and `regexTarget` `target`), or run gitleaks"
            )
    place, value = wrong[0]["loc"], cut_text(repr(wrong[0]["input"]), 200)
    if len(place) > 2:
        known = found["rules"][place[1]].get("id")
        name += f": rule {int(place[1]) + 1}" + (f" ({known})" if known else "")
        place = place[2:]
    return ValueError(f"{name}: {'.'.join(map(str, place))}: {wrong[0]['msg']}, got {value}")
