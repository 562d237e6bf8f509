r"""Read rules from a TOML file in the format of gitleaks (https://github.com/gitleaks/gitleaks#configuration).

The patterns in the file have the syntax of Go (https://pkg.go.dev/regexp/syntax). They are translated to the syntax of
rg and of Python's `re`. For example, `\w`, `\d`, `\s` and `\b` match only ASCII in Go, but all of Unicode in rg. One
difference remains: without `(?m)`, `^`, `$` and `\z` match only at the ends of the whole text in Go, but at the ends of
each line in rg. ripwrap leaves these anchors in the patterns, because many rules end in `(?:\s|$)`. At the end of a
line, the `\s` matches the newline in Go. In rg, which searches line by line, only the `$` can match there.
"""

import os
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from ripwrap._ripgrep.groups import UnknownSyntaxError, groups_of
from ripwrap._scan.rules import Allowlist, Rule
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
_ASCII = {"w": "0-9A-Za-z_", "d": "0-9", "s": r"\t\n\f\r "}
_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
# One token of a Go pattern outside of a class: quoted text (`\Q...\E`), an escape, a count (`{2,3}`), the start of a
# named group, flags (`(?i)`), the start of a class (`[^`), or any other character.
_TOKEN = re.compile(
    r"\\Q(?P<quoted>.*?)(?:\\E|\Z)|\\(?P<escape>.)|(?P<count>\{[0-9]+(?:,[0-9]*)?\})|\(\?P?<(?P<name>\w+)>"
    r"|(?P<flags>\(\?[A-Za-z-]+\))|(?P<open>\[\^?\]?)|(?P<other>.)",
    re.DOTALL,
)
# One token of a class such as `[a-z[:digit:]]`.
_TOKEN_IN_CLASS = re.compile(r"\\(?P<escape>.)|\[:(?P<posix>\^?[a-z]+):\]|(?P<other>.)", re.DOTALL)


def load_rules(path: StrPath) -> tuple[Rule, ...]:
    r"""Read the rules of `scan()` from a TOML file in gitleaks' format.

    A rule has an `id` and a `regex`, or only a `path` to find files by name. It may have a `description`, `path`,
    `keywords`, `entropy`, `secretGroup`, `tags` and `allowlists` with `paths`, `regexes`, `regexTarget`, `stopwords`
    and `condition`. A global allowlist applies to all rules, or only to its `targetRules`. A pattern that names line
    terminators, such as `[\s\S]`, may span lines; any other pattern is searched line by line.

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
    try:
        multiline = groups_of(regex, in_line=False).multiline
    except UnknownSyntaxError:
        multiline = False  # rg reports the error
    own = [allowlist for allowlist, _ in _allowlists(entry, place)]
    own += [allowlist for allowlist, targets in everywhere if not targets or known in targets]
    try:
        return Rule(
            id=known,
            pattern=_translated(to_rust, regex, place),
            description=entry.get("description", ""),
            path=_translated(to_python, entry.get("path", ""), place),
            keywords=tuple(_list(entry, "keywords", str, place)),
            entropy=entry.get("entropy", 0.0),
            secret_group=entry.get("secretGroup", 0),
            allowlists=tuple(own),
            tags=tuple(_list(entry, "tags", str, place)),
            multiline=multiline,
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
            "paths": tuple(_translated(to_python, path, where) for path in _list(one, "paths", str, where)),
            "regexes": tuple(_translated(to_python, regex, where) for regex in _list(one, "regexes", str, where)),
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


def _translated(translate: Callable[[str], str], regex: str, place: str) -> str:
    """Translate a regular expression; an error names the place of the expression in the file."""
    try:
        return translate(regex)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from error


def to_rust(regex: str) -> str:
    """Translate a regular expression from the syntax of Go to the syntax of rg."""
    return _translate(regex, python=False)


def to_python(regex: str) -> str:
    """Translate a regular expression from the syntax of Go to the syntax of Python's `re`."""
    return _translate(regex, python=True)


def _translate(regex: str, *, python: bool) -> str:
    pieces: list[str] = []
    inside, at = False, 0
    # Python allows flags only at the start of a pattern, so `a(?i)b` becomes `a(?i:b)`. For each open group, this is
    # the number of groups that flags have opened in it, which must be closed with it.
    scopes = [0]
    while token := (_TOKEN_IN_CLASS if inside else _TOKEN).match(regex, at):
        if (escape := token["escape"]) is not None:
            pieces.append(_translate_escape(escape, inside=inside, python=python))
        elif inside:
            pieces.append(_in_class(token, python=python))
            inside = token[0] != "]"
        elif python and at and token["flags"]:
            scopes[-1] += 1
            pieces.append(f"{token[0][:-1]}:")
        else:
            if token[0] == "|" and scopes[-1]:
                raise ValueError(f"ripwrap does not support flags before | in {regex!r}; write (?i:…) in each branch")
            if token[0] == "(" or token["name"]:
                scopes.append(0)
            elif token[0] == ")" and len(scopes) > 1:
                pieces.append(")" * scopes.pop())
            pieces.append(_out_of_class(token))
            inside = token["open"] is not None
        at = token.end()
    return "".join((*pieces, ")" * scopes[0]))


def _in_class(token: re.Match[str], *, python: bool) -> str:
    if token["posix"]:
        return _translate_posix(token["posix"]) if python else token[0]
    return f"\\{token[0]}" if token[0] in "[&~|" else token[0]


def _out_of_class(token: re.Match[str]) -> str:
    if token["quoted"] is not None:
        return "".join(map(_escape, token["quoted"]))
    if token["open"]:
        return token[0].replace("]", r"\]")
    if token["name"]:
        return f"(?P<{token['name']}>"
    return _escape(token[0]) if token[0] in ("{", "}", "]") else token[0]


def _translate_escape(character: str, *, inside: bool, python: bool) -> str:
    if character.lower() in _ASCII:
        letters = _ASCII[character.lower()]
        if inside and character.islower():
            return letters
        if inside and python:
            return f"\\{character}"
        return f"[{'^' if character.isupper() else ''}{letters}]"
    if character in "bB" and not inside and not python:
        return rf"(?-u:\{character})"
    if character == "z":
        return r"\Z" if python else r"\z"
    return _escape(character) if not character.isalnum() else f"\\{character}"


def _translate_posix(name: str) -> str:
    letters = _POSIX.get(name)
    if letters is None:
        raise ValueError(f"ripwrap does not support [:{name}:] in an allowlist or path; list its characters instead")
    return letters


def _escape(character: str) -> str:
    return (
        f"\\{character}"
        if character.isascii() and not character.isalnum() and character not in "_<> \t\n"
        else character
    )
