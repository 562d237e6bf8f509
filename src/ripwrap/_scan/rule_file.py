"""Read the rules of a scan from a TOML file, whose keys are the attributes of `Rule` and `Allowlist`."""

import os
import tomllib
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import ValidationError

from ripwrap._scan.allow_comment import ALLOW_COMMENT
from ripwrap._scan.rules import Rule, check_rules
from ripwrap._text import cut_text
from ripwrap.options import StrPath

_OF_GITLEAKS = frozenset({"regex", "secretGroup", "allowlist", "extend", "regexTarget", "targetRules"})
"""Keys that files of gitleaks have, and files of rules have not."""


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
    name = os.fspath(path)
    with open(path, "rb") as file:
        try:
            found = tomllib.load(file)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{name} is not valid TOML: {error}") from error
    if foreign := sorted(_OF_GITLEAKS.intersection(_keys(found))):
        raise ValueError(
            f"{name} is a file of gitleaks, as its key {foreign[0]!r} shows; ripwrap no longer reads such files. Write "
            "[[rules]] with an id and a pattern in the syntax of rg (`regex` is called `pattern`, `secretGroup` "
            "`secret_group`, and `regexTarget` `target`), or run gitleaks"
        )
    entries: Any = found.pop("rules", None)
    if found:
        raise ValueError(f"{name}: there is no key {next(iter(found))!r}; a file of rules has only [[rules]]")
    if not isinstance(entries, list) or not entries:
        raise ValueError(f"{name} has no [[rules]]; add a rule with an id and a pattern")
    known: list[Any] = entries
    rules = [_rule(entry, f"{name}: rule {number}") for number, entry in enumerate(known, 1)]
    try:
        return check_rules(rules)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def _rule(entry: Any, place: str) -> Rule:
    label = f"{place} ({entry['id']})" if isinstance(entry, dict) and "id" in entry else place
    try:
        rule = Rule.model_validate(entry)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{label}: {where}: {first['msg']}, got {cut_text(repr(first['input']), 200)}") from error
    if not rule.pattern and not rule.path:
        raise ValueError(f"{label} has no pattern and no path; add one of them, or remove the rule")
    return rule.model_copy(update={"allowlists": (*rule.allowlists, ALLOW_COMMENT)})


def _keys(value: Any) -> Iterator[str]:
    """Yield the keys of a table, and of the tables in it."""
    inner: Iterable[Any] = ()
    if isinstance(value, dict):
        yield from value
        inner = value.values()
    elif isinstance(value, list):
        inner = value
    for one in inner:
        yield from _keys(one)
