r"""Parse replacements in rg's syntax, and build patterns with which rg tells what groups a pattern has; no I/O.

The syntax is that of the `regex` crate (https://docs.rs/regex/latest/regex/struct.Regex.html#replacement-string-syntax):
`$1`, `$name`, `${name}`, and `$$` for a dollar. rg puts an empty text in place of a group that does not exist. So each
reference to a group is checked before any file is changed. Python does not parse the pattern for this: rg compiles it.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from ripwrap._ripgrep.literals import required_literals
from ripwrap._ripgrep.query import only_options
from ripwrap.errors import Hint, HintedText
from ripwrap.options import SearchOptions

PROBE = "\x01"
"""Text that rg searches with the patterns of `count_probe()` and `name_probe()`."""

MAX_GROUP = 1000
"""Largest number of a group that a replacement can refer to."""

_REFERENCE = re.compile(r"\$(?:(\$)|\{([0-9A-Za-z_]+)\}|([0-9A-Za-z_]+))")
_OTHER_REFERENCE = re.compile(r"(?<!\\)\\(?:([0-9])|g<(\w+)>)", re.ASCII)
_NAME = re.compile(r"[A-Za-z_][0-9A-Za-z_]*")
_SEPARATOR = "\x02"
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u\{([0-9A-Fa-f]{1,6})\}|(.?))", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "\\": "\\"}

_COMPILE_OPTIONS = ("pcre2", "engine", "no_unicode", "dfa_size_limit", "regex_size_limit", "multiline", "crlf")
"""Options that decide whether a pattern compiles, or which groups it has."""

_MATCH_OPTIONS = (
    *_COMPILE_OPTIONS,
    "ignore_case",
    "smart_case",
    "case_sensitive",
    "fixed_strings",
    "word_regexp",
    "line_regexp",
    "multiline_dotall",
    "null_data",
)
"""Options that decide what a pattern matches in a text."""

_LITERAL = re.compile(r"[\w ,:;=/-]+")


class Template(NamedTuple):
    """Parsed replacement."""

    text: str
    references: tuple[str, ...]
    constant: str | None
    size: int = 0
    uses: int = 0

    @property
    def growth(self) -> int:
        """Number of bytes by which a replacement of a short match can be longer than the match."""
        return self.longest(1)

    def longest(self, length: int) -> int:
        """Return the maximum length of the replacement of a match with this length, both in bytes.

        A group outside of the match, which only PCRE2's lookaround has, does not count.
        """
        return self.size + self.uses * length


def parse_template(replacement: str, *, escapes: bool = False) -> Template:
    r"""Parse a replacement."""
    if not isinstance(replacement, str):
        raise TypeError(f"a replacement must be a str, got {type(replacement).__name__}")
    text = _ESCAPE.sub(_unescape, replacement) if escapes else replacement
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise ValueError(f"the replacement {text!r} is not valid Unicode; remove {text[error.start]!r}") from error
    found = [match[2] or match[3] for match in _REFERENCE.finditer(text) if not match[1]]
    # `$00` is the whole match, too: rg reads it as a number.
    references = tuple(name for name in dict.fromkeys(found) if not (name.isdigit() and int(name) == 0))
    return Template(text, references, None if found else text.replace("$$", "$"), size, len(found))


def refuse_backslash_groups(replacement: str, template: Template) -> None:
    r"""Raise `ValueError` for a group in the syntax of sed or Python, such as `\1` or `\g<name>`: for rg, it is text.

    A replacement that also has a group in rg's syntax is from somebody who knows this syntax.
    """
    found = None if template.uses else _OTHER_REFERENCE.search(replacement)
    if found is None:
        return
    name = found[1] or found[2]
    group = f"${{{name}}}" if found[2] or re.match(r"[0-9A-Za-z_]", replacement[found.end() :]) else f"${name}"
    raise ValueError(
        HintedText(
            f"{found[0]} in the replacement is not a group, but text; write {group} for the group",
            ("; for the text, pass ", Hint("escapes", True), f" and write \\{found[0]}"),
        )
    )


def _unescape(match: re.Match[str]) -> str:
    code, point, letter = match.groups()
    if code or point:
        number = int(code or point, 16)
        if number < 0x110000:
            return chr(number)
    elif letter in _ESCAPES:
        return _ESCAPES[letter]
    group = f"write ${letter} for a group, " if letter and letter in "123456789" else ""
    raise ValueError(
        HintedText(
            f"unknown escape {match[0]!r} in the replacement; {group}write a backslash as \\\\, or leave ",
            Hint("escapes", kind="omit"),
            " out",
        )
    )


def compile_options(options: SearchOptions) -> SearchOptions:
    """Return only the options that decide whether a pattern compiles, or which groups it has."""
    return only_options(options, _COMPILE_OPTIONS)


def match_options(options: SearchOptions) -> SearchOptions:
    """Return the options for a search of texts in a directory, in which a pattern matches what it matched in lines."""
    return {**only_options(options, _MATCH_OPTIONS), "encoding": "none", "text": True, "no_ignore": True}


def never_empty(patterns: Sequence[str], options: SearchOptions) -> bool:
    """Return True if no pattern can match an empty text, as far as this is easy to tell."""
    if options.get("fixed_strings"):
        return all(patterns)
    return all(map(_LITERAL.fullmatch, patterns)) or required_literals(patterns, options) is not None


def ending(patterns: Sequence[str], options: SearchOptions) -> tuple[tuple[str, ...], SearchOptions]:
    """Return patterns and options with which rg finds the matches that end at the end of a text."""
    chosen = [""] if options.get("fixed_strings") else patterns
    made: SearchOptions = {**match_options(options), "fixed_strings": False}
    return tuple(rf"(?:{pattern})\z" for pattern in chosen), made


def _never(patterns: Sequence[str]) -> str:
    """Return a pattern that has the groups of all patterns, but matches only empty text."""
    return f"(?:{'|'.join(f'(?:{pattern})' for pattern in patterns)}){{0}}"


def count_probe(patterns: Sequence[str], largest: int) -> tuple[str, str]:
    """Return a pattern and a replacement with which rg counts groups: `group_count()` reads the replaced `PROBE`."""
    return f"{_never(patterns)}({PROBE})", _SEPARATOR.join(f"${{{number}}}" for number in range(1, largest + 1))


def group_count(result: str, largest: int) -> int:
    """Return the number of groups, at most `largest`; `result` is the text with which rg replaced `PROBE`."""
    parts = result.split(_SEPARATOR)
    # The group that contains `PROBE` is the last one, after the groups of the patterns.
    return parts.index(PROBE) if PROBE in parts else largest


def name_probe(patterns: Sequence[str], name: str) -> str:
    """Return a pattern with the groups of `patterns`, and before them another group with this name.

    rg cannot compile the returned pattern if `patterns` already have a group with this name.
    """
    return f"(?P<{name}>){_never(patterns)}"


def is_name(reference: str) -> bool:
    """Return True if a group can have this name."""
    return bool(_NAME.fullmatch(reference))


def missing_group(reference: str, count: int | None) -> ValueError:
    """Return the error for a reference to a group that does not exist."""
    if digits := re.match(r"[0-9]+(?=[A-Za-z_])", reference):
        hint = f"; to put text after the group, write ${{{digits[0]}}}{reference[digits.end() :]}"
    elif reference.isdigit() and count is not None:
        hint = f" (it has {count or 'no'} group{'' if count == 1 else 's'}); write $$ for a dollar"
    else:
        hint = "; name the group with (?P<name>…), or write $$ for a dollar"
    return ValueError(f"the replacement refers to ${{{reference}}}, but the pattern has no such group{hint}")
