"""Find the groups of a pattern, read their texts from rg's JSON, and parse replacements; no I/O.

rg's JSON has no groups, but from version 15 on it has a `replacement` for each submatch. So a search for groups passes
a `--replace` that lists all groups, each followed by a separator (rg-facts 57). In the replacement, a group that took
no part in the match (unset) and a group that matched empty text both appear as empty text. For such a group, `Groups`
decides by the syntax of the pattern whether the group is set:

- A group that cannot match empty text is unset.
- A group that takes part in every match is set.
- In `k(?:=(.*))?`, the group is in an optional part that cannot match empty text. Such a group is set if the optional
  part matched any text. To see that text, `Groups.pattern` puts a group around the optional part, if there is none.
  (With `pcre2`, no group is added. If there is none around the optional part, the inner group is reported as unset.)
- Any other group is reported as unset, such as the group of `b|(a*)`.

Patterns have the syntax of https://docs.rs/regex, or with `pcre2` the syntax of pcre2pattern(3).

The syntax of replacements is that of the `regex` crate (https://docs.rs/regex/latest/regex/struct.Regex.html#replacement-string-syntax):
`$1`, `$name`, `${name}`, and `$$` for a dollar. rg puts an empty text in place of a group that does not exist. So each
reference to a group is checked before any file is changed. Python does not parse the pattern for this: rg compiles it.
"""

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ripwrap._ripgrep.literals import required_literals
from ripwrap._ripgrep.query import only_options
from ripwrap._text import plural
from ripwrap.errors import DecodeError, Hint, HintedText
from ripwrap.options import SearchOptions

_MAX_DEPTH = 200
_NAME = r"[^\W\d][\w.\[\]]*"
_OPEN = re.compile(rf"\((?:\?(?:P?<(?P<name>{_NAME})>|'(?P<quoted>{_NAME})'))?(?!\?|\*)")
_FLAGS = re.compile(r"\(\?(?P<flags>\^?[A-Za-z]*(?:-[A-Za-z]*)?)(?P<end>[:)])")
_LOOK = re.compile(r"\(\?(?:<?[=!])")
_ATOMIC = re.compile(r"\(\?>")
_COMMENT = re.compile(r"\(\?#[^)]*\)")
_VERBOSE_SPACE = re.compile(r"(?:[ \t\n\v\f\r\x85\u200e\u200f\u2028\u2029]|#[^\n]*)+")
_COUNT = re.compile(r"\{\s*(?P<least>[0-9]*)\s*(?P<range>,\s*(?P<most>[0-9]*)\s*)?\}")
_BRACED = re.compile(r"\{[^{}]*\}|<[^<>]*>|'[^']*'|-?[0-9]+")
_POSIX_CLASS = re.compile(r"\[:\^?\w+:\]")
_QUOTED = re.compile(r"\\Q.*?(?:\\E|\Z)", re.DOTALL)
_BOUNDARY = re.compile(r"\{(?:start|end)(?:-half)?\}")
_REFERENCE = re.compile(rf"\(\?P=(?:{_NAME})\)")


class UnknownSyntaxError(ValueError):
    """Error for a pattern that is invalid, or that has syntax that this module does not parse."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Optional part of a pattern: a branch of an alternation, or an expression before `?`, `*` or `{0,…}`."""

    start: int
    end: int
    nullable: bool
    certain: bool
    plain: bool = True


@dataclass(slots=True)
class _Group:
    """Capturing group."""

    at: int
    opening: str
    name: str | None
    end: int = 0
    nullable: bool = True
    parts: list[_Part] = field(default_factory=list[_Part])


@dataclass(frozen=True, slots=True)
class Groups:
    """Capturing groups of the caller's pattern (the original), and the pattern with which rg reports their texts."""

    pattern: str
    joined: str | None
    reduced: str | None
    names: tuple[str | None, ...]
    separator: str
    numbers: tuple[int, ...]
    deciding: tuple[int, ...]
    multiline: bool = False

    @property
    def replacement(self) -> str:
        """Value of rg's `--replace`, which lists all groups."""
        return "".join(f"${{{number}}}{self.separator}" for number in range(1, self._count + 1))

    @property
    def _count(self) -> int:
        return max((*self.numbers, *self.deciding), default=0)

    def split(self, replacement: bytes) -> tuple[bytes | None, ...]:
        """Return the text of each group of the original, `None` if it is unset, given rg's text for `replacement`."""
        texts = replacement.split(self.separator.encode())
        rest = texts.pop()
        if len(texts) != self._count or rest:
            wrote = plural(len(texts), "group") + (
                f" and text after the last separator ({rest[:20]!r})" if rest else ""
            )
            raise DecodeError(f"rg wrote {wrote}, expected {plural(self._count, 'group')}", record=replacement)
        return tuple(
            texts[number - 1] if texts[number - 1] or not by or (by > 0 and texts[by - 1]) else None
            for number, by in zip(self.numbers, self.deciding, strict=True)
        )


def groups_of(pattern: str, *, pcre2: bool = False, verbatim: bool = False, in_line: bool = True) -> Groups:
    """Return the groups of a pattern."""
    separator = "\n" if in_line else f"\x1e{secrets.token_hex(8)}\x1e"
    if verbatim:
        return Groups(pattern, None, None, (), separator, (), ())
    parser = _Parser(pattern, pcre2=pcre2)
    parser.parse()
    edits: dict[int, str] = {}
    deciding = [_deciding(group, parser.groups, edits, mark=not pcre2) for group in parser.groups]
    changed = _replaced(pattern, {(at, at): text for at, text in edits.items()})
    starts = sorted([*(group.at for group in parser.groups), *(at for at in edits if edits[at] == "(")])
    # Of two groups at the same offset, the inserted one is the outer one, so it has the lower number.
    numbers: dict[tuple[int, bool], int] = {}
    number = 0
    for at in dict.fromkeys(starts):
        for inserted in (True, False):
            if edits.get(at, "") == "(" if inserted else any(group.at == at for group in parser.groups):
                number += 1
                numbers[at, inserted] = number
    openings = {(group.at, group.at + len(group.opening)): "(?:" for group in parser.groups}
    further = dict.fromkeys(parser.optional, "") | {(at, at + 2): "(?:)" for at in parser.ends}
    alone = pcre2 or parser.verbose or parser.begins or "\n" in pattern
    return Groups(
        changed,
        None if alone else _replaced(pattern, openings),
        None if alone else _replaced(pattern, openings | further),
        tuple(group.name for group in parser.groups),
        separator,
        tuple(numbers[group.at, False] for group in parser.groups),
        tuple(one if isinstance(one, int) else numbers[one] for one in deciding),
        parser.multiline,
    )


def _deciding(group: _Group, groups: Sequence[_Group], edits: dict[int, str], *, mark: bool) -> int | tuple[int, bool]:
    """Return how to decide if a group with empty text is set.

    0: the group is set. -1: it is unset. A pair: it is set if another group has any text. The pair is the offset of
    that other group, and True if it has to be inserted into the pattern. Then its parentheses are added to `edits`.
    `mark` is True if groups may be inserted.
    """
    if not group.nullable:
        return -1
    for part in group.parts:
        if part.certain:
            continue
        if part.nullable:
            return -1
        known = next((one for one in groups if (one.at, one.end) == (part.start, part.end)), None)
        if known is not None:
            return known.at, False
        if not mark or not part.plain or edits.get(part.start, "(") != "(" or edits.get(part.end, ")") != ")":
            return -1
        edits[part.start], edits[part.end] = "(", ")"
        return part.start, True
    return 0


def _replaced(pattern: str, edits: Mapping[tuple[int, int], str]) -> str:
    """Replace the parts of a pattern that `edits` maps, by offsets, to new texts; a part inside another is ignored."""
    pieces: list[str] = []
    done = 0
    for (start, end), text in sorted(edits.items(), key=lambda one: (one[0][0], -one[0][1])):
        if start >= done:
            pieces += pattern[done:start], text
            done = end
    return "".join((*pieces, pattern[done:]))


class _Parser:
    r"""Recursive descent parser that finds the groups of a pattern, in the order of their numbers."""

    def __init__(self, pattern: str, *, pcre2: bool) -> None:
        self.groups: list[_Group] = []
        self.verbose = self.begins = self.multiline = False
        self.ends: list[int] = []
        self.optional: list[tuple[int, int]] = []
        self._leading = True  # only optional parts so far
        self._text = pattern
        self._pcre2 = pcre2
        self._at = 0

    def parse(self) -> None:
        """Parse the whole pattern."""
        if self._pcre2 and self._text.startswith("(*"):
            raise UnknownSyntaxError
        self._alternation(verbose=False, depth=0)
        if self._at < len(self._text):
            raise UnknownSyntaxError

    def _alternation(self, *, verbose: bool, depth: int) -> bool:
        """Parse up to the end of the group or pattern; return True if the parsed part can match empty text."""
        if depth > _MAX_DEPTH:
            raise UnknownSyntaxError
        branches: list[tuple[_Part, int, int]] = []
        leading = self._leading
        while True:
            self._leading = leading
            branches.append(self._branch(verbose=verbose, depth=depth))
            if self._peek() != "|":
                break
            self._at += 1
            verbose = verbose or self.verbose
        if len(branches) > 1:
            for part, first, last in branches:
                for group in self.groups[first:last]:
                    group.parts.append(part)
        return any(part.nullable for part, _, _ in branches)

    def _branch(self, *, verbose: bool, depth: int) -> tuple[_Part, int, int]:
        """Parse a branch of an alternation; return it, the index of its first group, and that after its last."""
        start, end, nullable, plain = self._at, self._at, True, True
        first = len(self.groups)
        while True:
            if verbose and (space := _VERBOSE_SPACE.match(self._text, self._at)):
                self._at = space.end()
            if self._peek() in ("", "|", ")"):
                break
            begun, groups, leading, known = self._at, len(self.groups), self._leading, len(self.optional)
            flags = _FLAGS.match(self._text, self._at)
            if flags and flags["end"] == ")":
                self._at = flags.end()
                verbose = self._change(flags["flags"], verbose=verbose)
                if begun == start:
                    start = end = self._at
                else:
                    plain = False
                continue
            once = self._atom(verbose=verbose, depth=depth)
            after = self._at
            empty = self._repeat(begun, groups, once, verbose=verbose)
            self._leading = leading and empty and not once
            if self._at > after:
                # Inside a repeated atom, an optional part must stay: a later repetition is not the start of a match.
                self.optional[known:] = [(begun, self._at)] if self._leading else []
            nullable = nullable and empty
            end = self._at
        return _Part(start, end, nullable, certain=False, plain=plain), first, len(self.groups)

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _change(self, flags: str, *, verbose: bool) -> bool:
        """Return True if the pattern is in verbose mode (`x`) after flags such as `i-x`."""
        if flags in ("", "-") or (self._pcre2 and set(flags) & set("nJR")):
            raise UnknownSyntaxError
        on, _, off = flags.partition("-")
        self.multiline = self.multiline or "s" in on
        self.begins = self.begins or "m" in off  # `^` is then `\A`
        self.verbose = self.verbose or "x" in on
        return (verbose or "x" in on) and "x" not in off

    def _repeat(self, begun: int, groups: int, nullable: bool, *, verbose: bool) -> bool:
        """Parse the repetition operators after an atom; return True if the repeated atom can match empty text."""
        while True:
            end = self._at
            if verbose and (space := _VERBOSE_SPACE.match(self._text, self._at)):
                self._at = space.end()
            character = self._peek()
            count = _COUNT.match(self._text, self._at) if character == "{" else None
            if count is not None and (count["least"] or count["most"]):
                least = int(count["least"] or 0)
                self._at = count.end()
            elif character in ("*", "?", "+"):
                least = int(character == "+")
                self._at += 1
            else:
                self._at = end
                return nullable
            lazy = self._peek() == "?"
            if lazy or (self._pcre2 and self._peek() == "+"):
                self._at += 1
            if not least:
                # With a greedy operator, an operand that can match empty text takes part in every match.
                certain = nullable and not lazy and (count is None or count["most"] != "0")
                part = _Part(begun, end, nullable, certain=certain)
                for group in self.groups[groups:]:
                    group.parts.append(part)
                nullable = True

    def _atom(self, *, verbose: bool, depth: int) -> bool:
        """Parse an atom (a character, class, escape or group); return True if it can match empty text."""
        character = self._peek()
        if character in ("*", "?", "+") or (character == "{" and not self._pcre2):
            raise UnknownSyntaxError
        if character == "(":
            return self._parenthesis(verbose=verbose, depth=depth)
        if character == "[":
            self._class(verbose=verbose)
            return False
        if character == "\\":
            return self._escape()
        self._at += 1
        return character in ("^", "$")

    def _parenthesis(self, *, verbose: bool, depth: int) -> bool:
        begun = self._at
        if opening := _OPEN.match(self._text, begun):
            if self._pcre2 is False and opening["quoted"]:
                raise UnknownSyntaxError
            group = _Group(begun, opening[0], opening["name"] or opening["quoted"])
            self.groups.append(group)
            self._at = opening.end()
            group.nullable = self._alternation(verbose=verbose, depth=depth + 1)
            self._close()
            group.end = self._at
            return group.nullable
        if flags := _FLAGS.match(self._text, begun):
            self._at = flags.end()
            if flags["flags"]:
                verbose = self._change(flags["flags"], verbose=verbose)
            nullable = self._alternation(verbose=verbose, depth=depth + 1)
            self._close()
            return nullable
        if not self._pcre2:
            raise UnknownSyntaxError
        if comment := _COMMENT.match(self._text, begun) or _REFERENCE.match(self._text, begun):
            self._at = comment.end()
            return True
        if other := _LOOK.match(self._text, begun) or _ATOMIC.match(self._text, begun):
            self._at = other.end()
            nullable = self._alternation(verbose=verbose, depth=depth + 1)
            self._close()
            return nullable or not other[0].endswith(">")
        raise UnknownSyntaxError

    def _close(self) -> None:
        if self._peek() != ")":
            raise UnknownSyntaxError
        self._at += 1

    def _class(self, *, verbose: bool) -> None:
        """Skip a character class, including nested classes."""
        begun = self._at
        self._at += 1
        if self._peek() == "^":
            self._at += 1
        if verbose and not self._pcre2 and re.match(r"\s|#", self._peek()):
            raise UnknownSyntaxError
        if self._peek() == "]":  # a literal `]`
            self._at += 1
        while (character := self._peek()) != "]":
            if not character:
                raise UnknownSyntaxError
            if character == "[":
                if posix := _POSIX_CLASS.match(self._text, self._at):
                    self._at = posix.end()
                elif self._pcre2:
                    self._at += 1
                else:
                    self._class(verbose=verbose)
            elif verbose and not self._pcre2 and character == "#":
                raise UnknownSyntaxError  # a comment in a class
            else:
                self._at += 2 if character == "\\" else 1
        self._at += 1
        inside = self._text[begun : self._at]
        # `[\s\S]`, `[\w\W]` and `[\d\D]` match every character, also newlines.
        escapes = set(re.findall(r"\\.", inside, re.DOTALL))
        self.multiline = self.multiline or any({f"\\{a}", f"\\{a.upper()}"} <= escapes for a in "swd")

    def _escape(self) -> bool:
        """Parse an escape, which begins with a backslash; return True if it can match empty text."""
        character = self._text[self._at + 1 : self._at + 2]
        if not character:
            raise UnknownSyntaxError
        if self._pcre2 and character == "Q" and (quoted := _QUOTED.match(self._text, self._at)):
            self._at = quoted.end()
            return len(quoted[0]) < 5
        self._at += 2
        if character == "z":
            self.ends.append(self._at - 2)
        if character == "A" or (self._pcre2 and character in "ZG"):
            self.begins = True
        if character == "n":
            self.multiline = True
        if character == "b" and not self._pcre2 and (boundary := _BOUNDARY.match(self._text, self._at)):
            self._at = boundary.end()
        if character in "xuUpPoNgk" and (braced := _BRACED.match(self._text, self._at)):
            if braced[0][0] in "{<'" or character in "gk":
                self._at = braced.end()
        elif not self._pcre2 and character.isdigit():
            raise UnknownSyntaxError  # a backreference
        return character in "AzbB<>" or (self._pcre2 and (character in "ZGKgkEC" or character.isdigit()))


PROBE = "\x01"
"""Text that rg searches with the patterns of `count_probe()` and `name_probe()`."""

MAX_GROUP = 1000
"""Largest number of a group that a replacement can refer to."""

_GROUP_USE = re.compile(r"\$(?:(\$)|\{([0-9A-Za-z_]+)\}|([0-9A-Za-z_]+))")
_OTHER_REFERENCE = re.compile(r"(?<!\\)\\(?:([0-9])|g<(\w+)>)", re.ASCII)
PLAIN_NAME = re.compile(r"[A-Za-z_][0-9A-Za-z_]*")
_SEPARATOR = "\x02"
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u\{([0-9A-Fa-f]{1,6})\}|(.?))", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "\\": "\\"}

COMPILE_OPTIONS = ("pcre2", "engine", "no_unicode", "dfa_size_limit", "regex_size_limit", "multiline", "crlf")
"""Options that decide whether a pattern compiles, or which groups it has."""

_MATCH_OPTIONS = (
    *COMPILE_OPTIONS,
    *("ignore_case", "smart_case", "case_sensitive", "fixed_strings", "word_regexp", "line_regexp"),
    *("multiline_dotall", "null_data"),
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
    found = [match[2] or match[3] for match in _GROUP_USE.finditer(text) if not match[1]]
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
    """Return a pattern with the groups of `patterns`, and before them another group with this name."""
    return f"(?P<{name}>){_never(patterns)}"


def missing_group(reference: str, count: int | None) -> ValueError:
    """Return the error for a reference to a group that does not exist."""
    if digits := re.match(r"[0-9]+(?=[A-Za-z_])", reference):
        hint = f"; to put text after the group, write ${{{digits[0]}}}{reference[digits.end() :]}"
    elif reference.isdigit() and count is not None:
        hint = f" (it has {count or 'no'} group{'' if count == 1 else 's'}); write $$ for a dollar"
    else:
        hint = "; name the group with (?P<name>…), or write $$ for a dollar"
    return ValueError(f"the replacement refers to ${{{reference}}}, but the pattern has no such group{hint}")
