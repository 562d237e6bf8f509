"""Read the rules of a scan from a TOML file, whose keys are the attributes of `Rule` and `Allowlist`."""

import os
import tomllib
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, ValidationError

from ripwrap._scan.allow_comment import ALLOW_COMMENT
from ripwrap._scan.rules import Rule, check_rules
from ripwrap._text import cut_text
from ripwrap.models import Model
from ripwrap.options import StrPath

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
    return tuple(rule.model_copy(update={"allowlists": (*rule.allowlists, ALLOW_COMMENT)}) for rule in rules)


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
