r"""Read rules from a TOML file in the format of gitleaks (https://github.com/gitleaks/gitleaks#configuration).

The patterns in the file have the syntax of Go. They are translated (see `syntax.py`) to the syntax of rg, and those of
paths and allowlists to that of Python's `re`. In the patterns for rg, one difference remains: without `(?m)`, `^`, `$`
and `\z` match only at the ends of the whole text in Go, but at the ends of each line in rg. ripwrap leaves these
anchors in the patterns, because many rules end in `(?:\s|$)`. At the end of a line, the `\s` matches the newline in Go.
In rg, which searches line by line, only the `$` can match there.
"""

import os
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from ripwrap._scan.allow_comment import ALLOW_COMMENT
from ripwrap._scan.nodes import written
from ripwrap._scan.rules import Allowlist, Rule
from ripwrap._scan.syntax import Parsed, parse_go
from ripwrap.options import StrPath

_TOP = ("title", "description", "minVersion", "rules", "allowlist", "allowlists")
_RULE = (
    "id",
    "description",
    "regex",
    "path",
    "keywords",
    "entropy",
    "secretGroup",
    "tags",
    "allowlist",
    "allowlists",
)
_ALLOWLIST = ("description", "condition", "paths", "regexes", "regexTarget", "stopwords")
_CONDITIONS = {"OR": "any", "AND": "all", "||": "any", "&&": "all"}


def load_rules(path: StrPath) -> tuple[Rule, ...]:
    r"""Read the rules of `scan()` from a TOML file in gitleaks' format.

    A rule has an `id` and a `regex`, or only a `path` to find files by name. It may have a `description`, `path`,
    `keywords`, `entropy`, `secretGroup`, `tags` and `allowlists` with `paths`, `regexes`, `regexTarget`, `stopwords`
    and `condition`. A global allowlist applies to all rules, or only to its `targetRules`. A pattern that names line
    terminators, such as `[\s\S]`, may span lines; any other pattern is searched line by line. A match in a line with
    the comment `gitleaks:allow` is left out.

    Args:
        path: Path of the TOML file.

    Raises:
        ValueError: The file is not TOML, a value is invalid, or the file has a key of gitleaks that ripwrap does not
            support, such as `extend` or `commits`. The message names the key or the pattern, and its place.
        OSError: The file cannot be read.
    """
    name = os.fspath(path)
    with open(path, "rb") as file:
        try:
            found = tomllib.load(file)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{name} is not valid TOML: {error}") from error
    _check_keys(found, _TOP, name)
    everywhere = list(_allowlists(found, name, ("targetRules",)))
    entries = _list(found, "rules", dict, name)
    if not entries:
        raise ValueError(f"{name} has no [[rules]]; add a rule with an id and a regex")
    rules = [_rule(entry, f"{name}: rule {number}", everywhere) for number, entry in enumerate(entries, 1)]
    unknown = {target for _, targets in everywhere for target in targets} - {rule.id for rule in rules}
    if unknown:
        raise ValueError(f"{name}: targetRules names {min(unknown)!r}, but no rule has this id; correct the id")
    return tuple(rules)


def _rule(entry: Mapping[str, Any], place: str, everywhere: Sequence[tuple[Allowlist, Collection[str]]]) -> Rule:
    known = entry.get("id")
    if not isinstance(known, str) or not known:
        raise ValueError(f"{place} has no id; add an id")
    place = f"{place} ({known})"
    _check_keys(entry, _RULE, place)
    regex = entry.get("regex", "")
    if not isinstance(regex, str) or not (regex or entry.get("path")):
        raise ValueError(f"{place} has no regex and no path; add one of them, or remove the rule")
    parsed = _parsed(regex, place)
    own = [allowlist for allowlist, _ in _allowlists(entry, place)]
    own += [allowlist for allowlist, targets in everywhere if not targets or known in targets]
    own.append(ALLOW_COMMENT)
    try:
        return Rule(
            id=known,
            pattern=parsed.rust,
            description=entry.get("description", ""),
            path=_python(entry.get("path", ""), place),
            keywords=tuple(_list(entry, "keywords", str, place)),
            entropy=entry.get("entropy", 0.0),
            secret_group=entry.get("secretGroup", 0),
            allowlists=tuple(own),
            tags=tuple(_list(entry, "tags", str, place)),
            multiline=parsed.multiline,
        )
    except (ValidationError, TypeError) as error:
        raise ValueError(f"{place}: {error}") from error


def _allowlists(
    entry: Mapping[str, Any], place: str, more: tuple[str, ...] = ()
) -> Iterator[tuple[Allowlist, Collection[str]]]:
    """Yield the allowlists of a table, each with its `targetRules`."""
    tables: list[dict[str, Any]] = _list(entry, "allowlists", dict, place)
    if "allowlist" in entry:  # the old name of a single table
        old: Any = entry["allowlist"]
        if not isinstance(old, dict):
            several = "[[allowlists]]" if more else "[[rules.allowlists]]"
            raise ValueError(f"{place}: allowlist must be a table, got {old!r}; for a list of tables, use {several}")
        tables = [old, *tables]
    for number, one in enumerate(tables, 1):
        where = f"{place}: allowlist {number}"
        _check_keys(one, (*_ALLOWLIST, *more), where)
        condition = str(one.get("condition", "OR")).upper()
        if condition not in _CONDITIONS:
            raise ValueError(f"{where}: condition must be OR or AND, got {one['condition']!r}")
        if not any(one.get(key) for key in ("paths", "regexes", "stopwords")):
            raise ValueError(f"{where} has no paths, regexes or stopwords; add one of them, or remove the allowlist")
        known: dict[str, Any] = {
            "paths": tuple(_python(path, where) for path in _list(one, "paths", str, where)),
            "regexes": tuple(_python(regex, where) for regex in _list(one, "regexes", str, where)),
            "stopwords": tuple(_list(one, "stopwords", str, where)),
            "target": one.get("regexTarget", "secret"),
            "condition": _CONDITIONS[condition],
        }
        try:
            yield Allowlist.model_validate(known), _list(one, "targetRules", str, where)
        except ValidationError as error:
            raise ValueError(f"{where}: {error}") from error


def _check_keys(table: Mapping[str, Any], known: Collection[str], place: str) -> None:
    for key in table:
        if key not in known:
            raise ValueError(f"{place}: ripwrap does not support {key!r}; remove this key")


def _list(table: Mapping[str, Any], key: str, kind: type, place: str) -> list[Any]:
    found: Any = table.get(key, [])
    several: list[Any] = list(found) if isinstance(found, list) else [None]  # pyright: ignore[reportUnknownArgumentType]
    if not all(isinstance(one, kind) for one in several):
        raise ValueError(f"{place}: {key} must be a list of {'tables' if kind is dict else 'strings'}, got {found!r}")
    return several


def _parsed(regex: object, place: str) -> Parsed:
    """Parse a regular expression in Go's syntax; an error names the place of the expression in the file."""
    if not isinstance(regex, str):  # a value of TOML
        raise ValueError(f"{place}: a regular expression must be a string, got {regex!r}")
    try:
        return parse_go(regex)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from error


def _python(regex: object, place: str) -> str:
    """Translate a regular expression from Go's syntax to that of Python's `re`."""
    tree = _parsed(regex, place).tree
    try:
        return written(tree).text
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from error
