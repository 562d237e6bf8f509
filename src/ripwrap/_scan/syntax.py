r"""Parse regular expressions of Go and of rg, and write them in the syntax of rg and of Python's `re`; no I/O.

Go's syntax is that of RE2 (https://pkg.go.dev/regexp/syntax), rg's syntax is https://docs.rs/regex. They differ in few
places: `\w`, `\d`, `\s` and `\b` match only ASCII in Go, `\101` is an octal number in Go, and only rg has classes in
classes. Python's `re` has no flags in the middle of a pattern, no POSIX classes and no `\p{…}`, and folds the case of
other letters. So each class and each letter whose case is ignored is written for Python as the ranges of its
characters, and each assertion with its own flags.
"""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from ripwrap._scan.characters import ANY, LAST, Characters, Ranges, inverted, joined, minus, ranges_of, union, where
from ripwrap._scan.nodes import Alternation, Assertion, Group, Node, Repetition, Sequence

_MAX_DEPTH = 100
_MAX_COUNT = 1_000
"""Largest number in a count such as `{2,3}`, as in Go."""

_SPACES = "\t\n\v\f\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\x00-\x7f",
    "blank": "\t ",
    "cntrl": "\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@[-`{-~",
    "space": "\t-\r ",
    "upper": "A-Z",
    "word": "0-9A-Z_a-z",
    "xdigit": "0-9A-Fa-f",
}
_PERL = {"d": "0-9", "s": "\t\n\f\r ", "w": "0-9A-Z_a-z"}
_CONTROLS = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_WIDTHS = {"x": 2, "u": 4, "U": 8}
_BOUNDARIES = {
    "{start}": r"(?<!\w)(?=\w)",
    "{end}": r"(?<=\w)(?!\w)",
    "{start-half}": r"(?<!\w)",
    "{end-half}": r"(?!\w)",
    "<": r"(?<!\w)(?=\w)",
    ">": r"(?<=\w)(?!\w)",
}
_FLAGS = re.compile(r"\(\?([A-Za-z]*)(?:-([A-Za-z]+))?([:)])")
_NAMED = re.compile(r"\(\?P?<([^\W\d][\w.\[\]]*)>")
_COUNT = re.compile(r"\{([0-9]+)(,?)([0-9]*)\}")
_COUNT_OF_RG = re.compile(r"\{\s*([0-9]*)\s*(,?)\s*([0-9]*)\s*\}")
_QUOTED = re.compile(r"\\Q(.*?)(?:\\E|\Z)", re.DOTALL)
_PROPERTY = re.compile(r"\{(\^?)([^{}]*)\}|([A-Za-z])")
_CODE = re.compile(r"\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]+)")
_OCTAL = re.compile(r"0[0-7]{0,2}|[1-7][0-7]{1,2}")
_POSIX_CLASS = re.compile(r"\[:(\^?)([a-z]+):\]")
_BOUNDARY = re.compile(r"\{(?:start|end)(?:-half)?\}")


class SyntaxNotSupportedError(ValueError):
    """Error for a pattern that is invalid, or that cannot be translated."""


@dataclass(frozen=True, slots=True)
class Parsed:
    r"""Parsed pattern."""

    tree: Node
    rust: str
    multiline: bool


@lru_cache(1_024)
def parse_go(pattern: str) -> Parsed:
    """Parse a pattern in Go's syntax."""
    return _GoParser(pattern, go=True).parse(_Modes(unicode=False))


@lru_cache(1_024)
def parse_rust(pattern: str) -> Parsed:
    """Parse a pattern in rg's syntax; `^` and `$` match at each line, as in rg."""
    return _GoParser(pattern, go=False).parse(_Modes(unicode=True, lines=True))


@dataclass(frozen=True, slots=True)
class _Modes:
    """Flags that apply to a part of a pattern."""

    unicode: bool
    lines: bool = False
    ignore_case: bool = False
    dot_all: bool = False
    lazy: bool = False


_LETTERS = {"i": "ignore_case", "m": "lines", "s": "dot_all", "U": "lazy"}


class _GoParser:
    """Recursive descent parser."""

    def __init__(self, pattern: str, *, go: bool) -> None:
        self._text = pattern
        self._go = go
        self._at = 0
        self._rust: list[str] = []
        self._multiline = False

    def parse(self, modes: _Modes) -> Parsed:
        """Parse the whole pattern."""
        tree, _ = self._alternation(modes, 0)
        if self._at < len(self._text):
            raise self._error("unexpected )")
        return Parsed(tree, "".join(self._rust), self._multiline)

    def _error(self, what: str) -> SyntaxNotSupportedError:
        return SyntaxNotSupportedError(f"{what} in the pattern {self._text!r}, at character {self._at + 1}")

    def _peek(self, length: int = 1) -> str:
        return self._text[self._at : self._at + length]

    def _take(self, expression: re.Pattern[str]) -> re.Match[str] | None:
        found = expression.match(self._text, self._at)
        if found:
            self._at = found.end()
        return found

    def _alternation(self, modes: _Modes, depth: int) -> tuple[Node, _Modes]:
        if depth > _MAX_DEPTH:
            raise self._error(f"more than {_MAX_DEPTH} groups in groups")
        branches: list[Node] = []
        while True:
            branch, modes = self._branch(modes, depth)
            branches.append(branch)
            if self._peek() != "|":
                return branches[0] if len(branches) == 1 else Alternation(tuple(branches)), modes
            self._write(1)

    def _write(self, length: int) -> None:
        """Copy the next characters to the pattern of rg."""
        self._rust.append(self._peek(length))
        self._at += length

    def _branch(self, modes: _Modes, depth: int) -> tuple[Node, _Modes]:
        items: list[Node] = []
        while self._peek() not in ("", "|", ")"):
            if quoted := self._go and self._take(_QUOTED):
                items += (self._literal(character, modes) for character in quoted[1])
                self._rust += map(escaped, quoted[1])
                if not quoted[1]:  # in Go, a repetition after it belongs to the part before it
                    continue
            elif (flags := _FLAGS.match(self._text, self._at)) and flags[3] == ")":
                modes = self._changed(modes, flags)
                self._write(len(flags[0]))
                continue
            else:
                items.append(self._atom(modes, depth))
            items[-1] = self._repeated(items[-1], modes)
        return Sequence(tuple(items)), modes

    def _changed(self, modes: _Modes, flags: re.Match[str]) -> _Modes:
        for letters, on in ((flags[1], True), (flags[2] or "", False)):
            for letter in letters:
                if letter in _LETTERS:
                    modes = replace(modes, **{_LETTERS[letter]: on})
                elif letter == "u" and not self._go:
                    modes = replace(modes, unicode=on)
                else:
                    raise self._error(f"the flag {letter!r}, which ripwrap does not support,")
        self._multiline |= "s" in flags[1]
        return modes

    def _atom(self, modes: _Modes, depth: int) -> Node:
        character = self._peek()
        if character == "(":
            return self._group(modes, depth)
        if character == "[":
            return self._class(modes)
        if character == "\\":
            return self._escape(modes)
        if character in "*+?" or (character == "{" and _COUNT.match(self._text, self._at)):
            raise self._error(f"nothing before {character}")
        self._at += 1
        self._rust.append(escaped(character) if character in "{}]" else character)
        if character == ".":
            return Characters(ANY if modes.dot_all else minus(ANY, ((10, 10),)))
        if character == "^":
            return Assertion("(?m:^)" if modes.lines else r"\A")
        if character == "$":
            return Assertion("(?m:$)" if modes.lines else r"\Z")
        return self._literal(character, modes)

    def _literal(self, character: str, modes: _Modes) -> Node:
        found = Characters.between(ord(character), ord(character))
        return _any_case(found) if modes.ignore_case else found

    def _group(self, modes: _Modes, depth: int) -> Node:
        captures = True
        if (flags := _FLAGS.match(self._text, self._at)) and flags[3] == ":":
            modes, captures = self._changed(modes, flags), False
            self._write(len(flags[0]))
        elif name := self._take(_NAMED):
            self._rust.append(f"(?P<{name[1]}>")
        elif self._peek(2) == "(?":
            raise self._error("a group with (?, which ripwrap does not support,")
        else:
            self._write(1)
        body, _ = self._alternation(modes, depth + 1)
        if self._peek() != ")":
            raise self._error("a missing )")
        self._write(1)
        return Group(body, captures=captures)

    def _repeated(self, node: Node, modes: _Modes) -> Node:
        number = 0
        while bounds := self._bounds():
            if number and self._go:
                raise self._error("two repetitions of the same part")
            lazy = self._peek() == "?"
            if lazy:
                self._write(1)
            least, most = bounds
            node = Repetition(node, least, most, lazy=lazy != modes.lazy)
            number += 1
        return node

    def _bounds(self) -> tuple[int, int | None] | None:
        simple = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(self._peek())
        if simple:
            self._write(1)
            return simple
        found = (_COUNT if self._go else _COUNT_OF_RG).match(self._text, self._at)
        if found is None or not (found[1] or found[3]):
            return None
        least = int(found[1] or 0)
        most = least if not found[2] else int(found[3]) if found[3] else None
        if max(least, most or 0) > _MAX_COUNT or (most is not None and most < least):
            raise self._error(f"a wrong count {found[0]}")
        self._write(len(found[0]))
        return least, most

    def _escape(self, modes: _Modes) -> Node:
        r"""Parse an escape outside of a class."""
        begun = self._at
        self._at += 1
        character = self._peek()
        self._at += 1
        if character in ("A", "z"):
            self._rust.append(f"\\{character}")
            return Assertion(r"\A" if character == "A" else r"\Z")
        if character in ("b", "B") or (not self._go and character in ("<", ">")):
            return self._boundary(character, modes)
        self._at = begun
        found, rust = self._class_escape(modes)
        self._multiline |= found.single == ord("\n")
        inside = self._text[begun + 1].lower() in _PERL and not rust.startswith("[")
        self._rust.append(f"[{rust}]" if inside else rust)
        return _any_case(found) if modes.ignore_case else found

    def _boundary(self, character: str, modes: _Modes) -> Node:
        r"""Return the node of a word boundary. In Python before 3.14, `\B` does not match in an empty text."""
        side = self._take(_BOUNDARY) if character == "b" and not self._go else None
        text = _BOUNDARIES[side[0] if side else character] if side or character in "<>" else rf"\{character}"
        if text == r"\B":
            text = r"(?!\b)"
        self._rust.append(rf"(?-u:\{character})")
        return Assertion(f"(?:{text})" if modes.unicode else f"(?a:{text})")

    def _class_escape(self, modes: _Modes) -> tuple[Characters, str]:
        r"""Parse an escape that is allowed in a class; return its characters, and the text of rg in a class."""
        begun = self._at
        self._at += 1
        character = self._peek()
        self._at += 1
        lower = character.lower()
        if character and lower in _PERL:
            return self._perl(character, modes)
        if character and lower == "p":
            return self._property(character, modes)
        if self._go and (octal := _OCTAL.match(self._text, self._at - 1)):
            self._at = octal.end()
            code = int(octal[0], 8)
            return Characters.between(code, code), rf"\x{{{code:X}}}"
        if character in _CONTROLS:
            code = ord(_CONTROLS[character])
        elif character in _WIDTHS and (character == "x" or not self._go):
            code = self._number(_WIDTHS[character])
            short = self._text[begun : self._at]
            return Characters.between(code, code), short if len(short) == 4 and short[1] == "x" else rf"\x{{{code:X}}}"
        elif character and character.isascii() and not character.isalnum():
            return Characters.between(ord(character), ord(character)), escaped(character)
        else:
            self._at = begun
            raise self._error(f"the escape \\{character}, which ripwrap does not support,")
        return Characters.between(code, code), f"\\{character}"

    def _perl(self, character: str, modes: _Modes) -> tuple[Characters, str]:
        lower = character.lower()
        letters = _PERL[lower]
        text = f"[^{_written(letters)}]" if character.isupper() else _written(letters)
        if modes.unicode:
            ranges = _unicode(lower)
            return Characters(inverted(ranges) if character.isupper() else ranges, f"\\{character}"), text
        return _signed(lambda: ranges_of(letters), modes, negated=character.isupper()), text

    def _property(self, character: str, modes: _Modes) -> tuple[Characters, str]:
        found = self._take(_PROPERTY)
        if found is None:
            raise self._error(f"an incomplete \\{character}")
        name = found[3] or found[2]
        negated = (character == "P") != bool(found[1])
        rust = f"\\{'P' if negated else 'p'}{{{name}}}"
        return _signed(lambda: _category(name), modes, negated=negated), rust

    def _number(self, width: int) -> int:
        digits = self._take(_CODE)
        code = LAST + 1
        if digits and digits[1]:
            code = int(digits[1][-8:], 16)
        elif digits and len(digits[2]) >= width:
            code = int(digits[2][:width], 16)
            self._at = digits.start() + width
        if code > LAST:
            raise self._error("a number of no character")
        return code

    def _class(self, modes: _Modes) -> Node:
        begun = self._at
        found, rust = self._class_set(modes, 0)
        escapes = set(re.findall(r"\\.", self._text[begun : self._at], re.DOTALL))
        self._multiline |= any({f"\\{letter}", f"\\{letter.upper()}"} <= escapes for letter in _PERL)
        self._rust.append(rust)
        return found

    def _class_set(self, modes: _Modes, depth: int) -> tuple[Characters, str]:
        """Parse a class, with classes in it and operators such as `&&` if the syntax is that of rg."""
        if depth > _MAX_DEPTH:
            raise self._error(f"more than {_MAX_DEPTH} classes in classes")
        negated = self._peek(2) == "[^"
        self._at += 1 + negated
        parts: list[Characters] = []
        rust: list[str] = ["[^" if negated else "["]
        begun, left, operator = self._at, None, ""
        while self._peek() != "]" or self._at == begun:
            if not self._peek():
                raise self._error("a missing ]")
            if not self._go and self._peek(2) in ("&&", "--", "~~"):
                left = _combined(left, operator, joined(parts))
                operator, parts = self._peek(2), []
                self._at += 2
                continue
            part, text = self._class_item(modes, depth)
            parts.append(_any_case(part) if modes.ignore_case else part)
            rust.append(text)
        self._at += 1
        whole = _combined(left, operator, joined(parts))
        return whole.inverted() if negated else whole, f"{''.join(rust)}]"

    def _class_item(self, modes: _Modes, depth: int) -> tuple[Characters, str]:
        if posix := _POSIX_CLASS.match(self._text, self._at):
            if posix[2] not in _POSIX:
                raise self._error(f"an unknown class {posix[0]}")
            self._at = posix.end()
            return _signed(lambda: ranges_of(_POSIX[posix[2]]), modes, negated=bool(posix[1])), posix[0]
        if self._peek() == "[" and not self._go:
            return self._class_set(modes, depth + 1)
        first, text = self._class_character(modes)
        single = first.single
        if single is None or self._peek() != "-" or self._peek(2) in ("-", "-]", *(() if self._go else ("--",))):
            return first, text
        self._at += 1
        last, end = self._class_character(modes, ends=True)
        if last.single is None or last.single < single:
            raise self._error("a wrong range")
        return Characters.between(single, last.single), f"{text}-{end}"

    def _class_character(self, modes: _Modes, *, ends: bool = False) -> tuple[Characters, str]:
        if self._peek() == "\\":
            return self._class_escape(modes)
        character = self._peek()
        if not character:
            raise self._error("a missing ]")
        self._at += 1
        plain = character == "-" and self._peek() == "]" and not ends  # `--` is an operator of rg
        text = f"\\{character}" if character in "[]&~|^-" and not plain else character
        return Characters.between(ord(character), ord(character)), text


def _combined(left: Characters | None, operator: str, right: Characters) -> Characters:
    if left is None:
        return right
    one, other = left.exact, right.exact
    both = minus(one, minus(one, other))
    if operator == "&&":
        return Characters(both)
    return Characters(minus(one, other) if operator == "--" else minus(union(one, other), both))


def escaped(character: str) -> str:
    """Return a character that rg, and Python, take literally."""
    plain = not character.isascii() or character.isalnum() or character in "_<> \t\n"
    return character if plain else f"\\{character}"


def _written(letters: str) -> str:
    return letters.translate({9: r"\t", 10: r"\n", 12: r"\f", 13: r"\r"})


@cache
def _unicode(letter: str) -> Ranges:
    r"""Return a superset of the characters of `\d`, `\s` or `\w`, in Unicode, which is exact for `\s`."""
    spaces = ranges_of(_SPACES)
    return spaces if letter == "s" else minus(union(ranges_of(_PERL[letter]), ((0x80, LAST),)), spaces)


@cache
def _category(name: str) -> Ranges:
    r"""Return the characters of a general category of Unicode, such as `L` or `Lu`, or of `Any`."""
    if name in ("Any", "any"):
        return ANY
    found = where(lambda character: unicodedata.category(character).startswith(name)) if len(name) in (1, 2) else ()
    if not found:
        raise SyntaxNotSupportedError(f"ripwrap does not support \\p{{{name}}} here; list its characters in a class")
    return found


@cache
def _orbits() -> dict[int, Ranges]:
    """Map each character to all characters that are equal if case is ignored (Unicode, CaseFolding.txt, C and S)."""
    by_fold: dict[str, list[int]] = {}
    for code in range(0x1E944):
        character = chr(code)
        if character.lower() != character or character.upper() != character or len(character.casefold()) > 1:
            forms = (character.casefold(), character.lower(), character)
            by_fold.setdefault(next(form for form in forms if len(form) == 1), []).append(code)
    found: dict[int, Ranges] = {}
    for fold, codes in by_fold.items():
        ranges = union(tuple((code, code) for code in (*codes, ord(fold))))
        found |= dict.fromkeys((*codes, ord(fold)), ranges)
    return found


def _signed(find: Callable[[], Ranges], modes: _Modes, *, negated: bool) -> Characters:
    """Return the characters of a class that has a name. Case is ignored before the class is negated."""

    def ranges() -> Ranges:
        found = _folded(find()) if modes.ignore_case else find()
        return inverted(found) if negated else found

    return Characters(ranges)


def _any_case(characters: Characters) -> Characters:
    return characters if characters.body else Characters(lambda: _folded(characters.ranges))


@lru_cache(1_024)
def _folded(ranges: Ranges) -> Ranges:
    """Return the characters that are equal to one of these characters if case is ignored."""
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1] < 0x80 and not chr(ranges[0][0]).isalpha():
        return ranges
    orbits = _orbits()
    further = (
        orbits[code]
        for first, last in ranges
        for code in (range(first, last + 1) if last - first < len(orbits) else orbits)
        if code in orbits and first <= code <= last
    )
    return union(ranges, *further)
