r"""Extract literals that every match of a pattern contains; no I/O.

For example, every match of `foo.*(bar|quux)+x?` contains `foo`, and also `bar` or `quux`. The syntax is that of
https://docs.rs/regex. No literal is extracted from a pattern with syntax that this module does not parse. An index
looks up the files that contain the literals. A pattern without literals has to be searched in all files.

Literals are bytes, because rg searches the raw bytes of a file. (If a file begins with a byte order mark of UTF-16,
rg decodes the file first.) Literals and the contents of files are compared after `fold()`, which makes ASCII letters
lower case. If case is ignored, rg also matches the Kelvin sign (U+212A) with `k`, and the long s (U+017F) with `s`
(Unicode's CaseFolding.txt, status C). So `fold()` replaces these two, too. It does not fold other letters. Therefore,
if case is ignored, literals consist only of ASCII characters.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from ripwrap.options import SearchOptions

MIN_LITERAL_BYTES = 3
"""Minimum length of a literal, in bytes."""

_MAX_LITERALS = 200
_MAX_RUNS = 16
"""Maximum number of texts when alternatives are combined with the characters around them.

For example, `(?:a|b)_` has two texts: `a_` and `b_`.
"""

_MAX_RUN_BYTES = 1_000
"""Length of a text at which another text begins: each further character copies the text."""

_MAX_DEPTH = 50
_UNCERTAIN_OPTIONS = ("pcre2", "encoding", "invert_match")
"""Options that prevent extraction, as `engine` does: they set another syntax, another encoding or inverted matching."""

_OTHER_FOLDS = (("\u017f".encode(), b"s"), ("\u212a".encode(), b"k"))
_CONTROLS = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
_WIDTH_OF_CODE = {"x": 2, "u": 4, "U": 8}
_WORD_BOUNDARY = re.compile(r"\{(?:start|end)(?:-half)?\}")
_PROPERTY = re.compile(r"\{[^{}]*\}|[A-Za-z]")
_CODE = re.compile(r"\{[0-9A-Fa-f]+\}|[0-9A-Fa-f]+")
_COUNT = re.compile(r"\{[ \t]*([0-9]*)[ \t]*(?:,[ \t]*[0-9]*[ \t]*)?\}")
_GROUP = re.compile(r"\((?!\?)|\(\?P?<[A-Za-z_][A-Za-z0-9_]*>|\(\?([A-Za-z-]*)([:)])")
_SMALL_CLASS = re.compile(r"\[(-?[^\]\[\\^&~-]{1,4}-?)\]")
_PLAIN_CLASS = re.compile(r"[!-\"$-~]*")
_POSIX_CLASS = re.compile(r"\[:\^?[a-z]+:\]")
_VERBOSE_SPACE = re.compile(r"(?:[ \t\n\v\f\r]|#[^\n]*)*")
_NOTHING = (b"",)
_MINIMUM = {"*": 0, "?": 0, "+": 1}

_FREQUENT = frozenset(
    {"access", "auth", "class", "code", "data", "error", "file", "func", "http", "https", "import", "info", "line"}
    | {"list", "message", "name", "none", "null", "path", "return", "secret", "self", "string", "test", "text", "time"}
    | {"title", "token", "true", "type", "user", "value"}
)
"""Words that are frequent in source code. If the literal of a rule is such a word, rg searches for the rule's pattern
instead."""

_MIN_LETTERS = 4

_LETTERS = re.compile(rb"[a-z]+")


@dataclass(frozen=True, slots=True)
class AllOf:
    """Combination of literals; a match contains all of them."""

    parts: "tuple[Required, ...]"


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Alternatives; a match contains at least one of them."""

    parts: "tuple[Required, ...]"


Required: TypeAlias = bytes | AllOf | AnyOf
"""Literals that every match contains: one literal, a combination or alternatives. `fold()` has folded their case."""


def fold(text: bytes) -> bytes:
    """Return a text with its ASCII letters in lower case; the Kelvin sign becomes `k`, and the long s becomes `s`."""
    text = text.lower()  # `bytes.lower()` changes ASCII letters only
    for other, letter in _OTHER_FOLDS:
        text = text.replace(other, letter)
    return text


def required_literals(patterns: Sequence[str], options: SearchOptions) -> Required | None:
    """Return the literals in every line that a pattern matches; `None` if none, or too many, can be extracted."""
    if any(options.get(name) for name in _UNCERTAIN_OPTIONS) or options.get("engine", "default") != "default":
        return None
    flags = _Flags(
        ignore_case=bool(options.get("ignore_case") or options.get("smart_case")), unicode=not options.get("no_unicode")
    )
    found = _any_of([_of_pattern(one, flags, fixed=bool(options.get("fixed_strings"))) for one in patterns])
    return found if found is not None and sum(1 for _ in literals_of(found)) <= _MAX_LITERALS else None


def literals_of(required: Required) -> Iterator[bytes]:
    """Yield every literal, including the literals in combinations and alternatives."""
    if isinstance(required, bytes):
        yield required
    else:
        for part in required.parts:
            yield from literals_of(part)


def has_literals(folded: bytes, required: Required) -> bool:
    """Return True if a text that `fold()` returned has all (`AllOf`) or at least one (`AnyOf`) of the literals."""
    if isinstance(required, bytes):
        return required in folded
    parts = (has_literals(folded, part) for part in required.parts)
    return all(parts) if isinstance(required, AllOf) else any(parts)


@dataclass(slots=True)
class _Flags:
    """Flags that apply to a part of a pattern: from options, and from syntax such as `(?i)`."""

    ignore_case: bool
    unicode: bool
    verbose: bool = False

    def literal(self, character: str) -> bytes | None:
        """Return the folded bytes of a character; `None` if the character may also match other bytes."""
        # rg treats line ends specially, and with some options also other control characters.
        if character < " " and character != "\t":
            return None
        if character > "\x7f" and (self.ignore_case or not self.unicode or "\ud800" <= character <= "\udfff"):
            return None
        # In a file with the byte order mark of UTF-8, rg reads invalid bytes as U+FFFD, so U+FFFD may match them.
        return None if character == "\ufffd" else fold(character.encode())


class _UncertainError(Exception):
    """Error for a pattern with invalid syntax, or with syntax that this module does not parse."""


def _of_pattern(pattern: str, flags: _Flags, *, fixed: bool) -> Required | None:
    if fixed:
        branch = _Branch()
        for character in pattern:
            branch.add(_single(flags.literal(character)))
        return branch.required()
    try:
        return _LiteralParser(pattern).parse(replace(flags))
    except _UncertainError:
        return None


def _any_of(parts: Sequence[Required | None]) -> Required | None:
    if not parts or None in parts:
        return None
    flat = [one for part in parts for one in (part.parts if isinstance(part, AnyOf) else (part,))]
    known = tuple(dict.fromkeys(one for one in flat if one is not None))
    return known[0] if len(known) == 1 else AnyOf(known)


@dataclass(slots=True)
class _Branch:
    """Literals of one branch of an alternation, from the parts of the branch that were added so far."""

    runs: tuple[bytes, ...] = (b"",)
    parts: list[Required] = field(default_factory=list[Required])
    whole: bool = True

    def add(self, texts: tuple[bytes, ...] | None, minimum: int | None = None, *, optional: bool = False) -> None:
        """Add the next part of a pattern."""
        if texts is not None and optional:
            texts = (b"", *texts)
            minimum = None
        if texts is not None and minimum != 0:
            runs = tuple(dict.fromkeys(run + text for run in self.runs for text in texts))
            if len(runs) <= _MAX_RUNS and len(runs[0]) <= _MAX_RUN_BYTES:
                self.runs = runs
            else:
                self.end_run()
                self.runs = texts
            if minimum is None:
                return
        self.end_run()
        if texts is not None and minimum:
            self.runs = texts  # the last repetition

    def add_group(self, group: "_LiteralGroup", minimum: int | None, *, optional: bool = False) -> None:
        """Add a group as the next part of the pattern; `minimum` and `optional` are described at `add()`."""
        if group.texts is not None and (minimum is None or optional):
            self.add(group.texts, minimum, optional=optional)
            return
        self.end_run()
        if group.required is not None and minimum != 0:
            self.parts += group.required.parts if isinstance(group.required, AllOf) else (group.required,)

    def end_run(self) -> None:
        """Begin new `runs`; first add the old `runs` to `parts` if all of them are long enough."""
        last = _alternatives(self.runs)
        self.parts += [] if last is None else [last]
        self.runs, self.whole = (b"",), False

    def required(self) -> Required | None:
        """Return the required literals of the branch."""
        last = _alternatives(self.runs)
        different = tuple(dict.fromkeys(self.parts if last is None else (*self.parts, last)))
        if not different:
            return None
        return different[0] if len(different) == 1 else AllOf(different)


def _alternatives(texts: Sequence[bytes]) -> Required | None:
    """Return texts as alternatives, without texts that contain another text; `None` if a text is too short."""
    if min(map(len, texts)) < MIN_LITERAL_BYTES:
        return None
    return _any_of([text for text in texts if not any(other in text for other in texts if other != text)])


@dataclass(frozen=True, slots=True)
class _LiteralGroup:
    """Result of parsing a group."""

    required: Required | None
    texts: tuple[bytes, ...] | None = None


class _LiteralParser:
    """Recursive descent parser of patterns."""

    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0

    def parse(self, flags: _Flags) -> Required | None:
        """Return the literals of the pattern."""
        found = self._alternation(flags, 0)
        if self._at < len(self._text):
            raise _UncertainError
        return found.required

    def _alternation(self, flags: _Flags, depth: int) -> _LiteralGroup:
        """Parse the rest of a group or of the pattern, and return the result. Syntax such as `(?i)` changes `flags`."""
        branches = [_Branch()]
        while (character := self._peek(flags)) not in ("", ")"):
            if character == "|":
                self._at += 1
                branches.append(_Branch())
                continue
            atom = self._atom(character, flags, depth)
            minimum, optional = self._repetition(flags)
            if isinstance(atom, _LiteralGroup):
                branches[-1].add_group(atom, minimum, optional=optional)
            else:
                branches[-1].add(atom, minimum, optional=optional)
        texts = tuple(dict.fromkeys(text for branch in branches for text in branch.runs))
        few = len(texts) <= _MAX_RUNS and all(branch.whole for branch in branches)
        return _LiteralGroup(_any_of([branch.required() for branch in branches]), texts if few else None)

    def _peek(self, flags: _Flags) -> str:
        """Skip white space and comments if `verbose`, and return the next character; `""` at the end."""
        if flags.verbose:
            self._take(_VERBOSE_SPACE)
            if self._text[self._at : self._at + 1] > "\x7f":
                raise _UncertainError  # it may be Unicode white space
        return self._text[self._at : self._at + 1]

    def _take(self, expression: re.Pattern[str]) -> re.Match[str]:
        found = expression.match(self._text, self._at)
        if found is None:
            raise _UncertainError
        self._at = found.end()
        return found

    def _atom(self, character: str, flags: _Flags, depth: int) -> tuple[bytes, ...] | _LiteralGroup | None:
        if character in "*+?{":
            raise _UncertainError  # no part before the repetition operator
        if character == "(":
            return self._group(flags, depth)
        if character == "[":
            return self._class(flags)
        self._at += 1
        if character == "\\":
            return self._escape(flags)
        if character in "^$":
            return _NOTHING
        return None if character == "." else _single(flags.literal(character))

    def _group(self, flags: _Flags, depth: int) -> tuple[bytes, ...] | _LiteralGroup:
        if depth == _MAX_DEPTH:
            raise _UncertainError
        changes, end = self._take(_GROUP).groups()
        if flags.verbose and changes is None and self._peek(flags) == "?":
            raise _UncertainError  # `( ?i)` has flags
        inner = replace(flags)
        if changes is not None:
            _change(flags if end == ")" else inner, changes)
        if end == ")":
            return _NOTHING
        found = self._alternation(inner, depth + 1)
        if self._text[self._at : self._at + 1] != ")":
            raise _UncertainError
        self._at += 1
        return found

    def _class(self, flags: _Flags) -> tuple[bytes, ...] | None:
        """Parse a character class. Return its characters if there are few; `None` for a class such as `[^a-z]`."""
        if not flags.verbose and (small := _SMALL_CLASS.match(self._text, self._at)):
            self._at = small.end()
            texts = [flags.literal(character) for character in small[1]]
            return None if None in texts else tuple(dict.fromkeys(text for text in texts if text is not None))
        self._skip_class(flags, 0)
        return None

    def _skip_class(self, flags: _Flags, depth: int) -> None:
        """Skip a character class, including nested classes."""
        if depth == _MAX_DEPTH:
            raise _UncertainError
        begun = self._at
        self._at += 1
        if self._text.startswith("^", self._at):
            self._at += 1
        if self._text.startswith("]", self._at):  # a literal `]`
            self._at += 1
        while (character := self._text[self._at : self._at + 1]) != "]":
            if not character:
                raise _UncertainError
            if character == "[" and (posix := _POSIX_CLASS.match(self._text, self._at)):
                self._at = posix.end()
            elif character == "[":
                self._skip_class(flags, depth + 1)
            else:
                self._at += 2 if character == "\\" else 1
        self._at += 1
        inside = self._text[begun : self._at]
        if flags.verbose and not _PLAIN_CLASS.fullmatch(inside):
            raise _UncertainError  # it may have white space or comments

    def _escape(self, flags: _Flags) -> tuple[bytes, ...] | None:
        r"""Parse an escape after its backslash; return its only text (empty for `\b`), `None` for one such as `\d`."""
        character = self._text[self._at : self._at + 1]
        self._at += 1
        if character in _WIDTH_OF_CODE:
            return _single(self._code(_WIDTH_OF_CODE[character], flags))
        if character in _CONTROLS:
            return _single(flags.literal(_CONTROLS[character]))
        if character == "b" and (boundary := _WORD_BOUNDARY.match(self._text, self._at)):
            self._at = boundary.end()
        if character and character in "bBAz<>":
            return _NOTHING
        if character in ("p", "P"):
            self._take(_PROPERTY)
        elif not character or not character.isascii() or (character.isalnum() and character not in "dDsSwW"):
            raise _UncertainError  # an unknown escape, such as a backreference
        elif not character.isalnum():
            return _single(flags.literal(character))
        return None

    def _code(self, width: int, flags: _Flags) -> bytes | None:
        r"""Parse the number in `\x41` or `\u{41}`; return the folded bytes, `None` if other bytes may match, too."""
        begun = self._at
        digits = self._take(_CODE)[0]
        if not digits.startswith("{"):
            digits = digits[:width]
            self._at = begun + width
            if len(digits) < width:
                raise _UncertainError
        code = int(digits.strip("{}"), 16)
        return flags.literal(chr(code)) if code < 0x80 else None  # if Unicode is off, a higher number is a byte

    def _repetition(self, flags: _Flags) -> tuple[int | None, bool]:
        """Parse the repetition operators after a part of a pattern.

        Return the minimum number of repetitions (`None` without an operator), and True if the part occurs zero times or
        once.
        """
        minimum: int | None = None
        operators = ""
        while (character := self._peek(flags)) and character in "*+?{":
            operators += character
            if character == "{":
                least = int(self._take(_COUNT)[1] or 0)
            else:
                self._at += 1
                least = _MINIMUM[character]
            # `?` makes the repetition lazy. But a `?` after white space may be another operator.
            if self._text.startswith("?", self._at):
                self._at += 1
            minimum = least if minimum is None else min(minimum, least)
        return minimum, operators == "?"


def _single(text: bytes | None) -> tuple[bytes] | None:
    return None if text is None else (text,)


def _change(flags: _Flags, changes: str) -> None:
    """Apply inline flags, such as the `i-u` of `(?i-u)`, to `flags`."""
    on = True
    for letter in changes:
        if letter == "-":
            on = False
        elif letter == "i":
            flags.ignore_case |= on  # case stays ignored after `(?-i)`, which only gives fewer literals
        elif letter == "u":
            flags.unicode = on
        elif letter == "x":
            flags.verbose = on
        elif letter not in "msUR":
            raise _UncertainError


def rarest(required: Required) -> list[bytes]:
    """Return literals such that each match contains at least one of them."""
    if isinstance(required, bytes):
        return [required]
    parts = [rarest(part) for part in required.parts]
    if isinstance(required, AllOf):
        return max(parts, key=lambda part: (not any(map(is_frequent, part)), min(map(len, part))))
    return [word for part in parts for word in part]


def is_frequent(literal: bytes) -> bool:
    """Return True if a literal may be frequent: a short word, or a frequent word with at most one other character."""
    words = _LETTERS.findall(literal)
    if words == [literal]:
        return len(literal) < _MIN_LETTERS or literal.decode() in _FREQUENT
    return len(words) == 1 and len(literal) == len(words[0]) + 1 and words[0].decode() in _FREQUENT
