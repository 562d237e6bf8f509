r"""Bound the backtracking of Python's `re`, which tries all ways to match from a start, one after another; no I/O.

rg takes linear time. `bounded()` bounds the ways of `re` to match from one start. A repetition has one way if what
follows it cannot begin with a character that it repeats: `[a-z]{1,9}=`. Otherwise, it has a way for each number of
repetitions: `[a-z]{1,9}k`. The ways of parts that follow each other are multiplied, those of branches are added.

A pattern is read only if it means the same in rg (https://docs.rs/regex) and in `re`. `a*+`, `[[:alpha:]]`, `\<` and
`\b{start}`, for example, mean something else in `re`, so they are refused.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from ripwrap._text import cut_text

MAX_WAYS = 1_000_000
"""Number of ways above which a pattern is refused where a text may be made to be slow."""

_MOST = 300
"""Repetitions at most, where a pattern has no maximum and what follows may begin with a repeated character."""

_MANY = 10**9
_MAX_DEPTH = 50
_WIDTH = 0x10000
_ANY = (1 << (_WIDTH + 1)) - 1
_FURTHER = "\U0001d400\U0001f600\U00020000\U0010ffff"
"""Characters after U+FFFF of several kinds; all of them are one bit of a set."""

_TOKEN = re.compile(
    r"""(?P<set>\[\^?\]?(?:\\(?:[xuU]\{0*(?:10|[0-9A-Fa-f])?[0-9A-Fa-f]{1,4}\}|[^xuU]
        |x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})|[^][\\])*\])
    |\((?:\?(?:P?<(?P<name>[A-Za-z_]\w*)>|(?P<on>[ims]*)(?:-(?P<off>[imsu]+))?:)|(?!\?))(?P<open>)
    |(?P<count>(?:[*+?]|\{(?:[0-9]+(?:,[0-9]*)?|,[0-9]+)\})\??)(?![*+?{])
    |(?P<edge>[$^]|\\(?:[Az]|[bB](?!\{)))
    |(?P<one>\\(?:[dDsSwWafnrtv]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}
        |[xuU]\{0*(?:10|[0-9A-Fa-f])?[0-9A-Fa-f]{1,4}\}|[^\w<>])
        |[^][\\(){}*+?|^$]|[]}])
    |(?P<mark>[|)])""",
    re.VERBOSE | re.DOTALL,
)
_FLAGS = re.compile(r"\(\?([ims]+)\)")
_OPERATOR = re.compile(r"&&|--|~~|\|\|")
_CODE = re.compile(r"\\[xuU]\{([0-9A-Fa-f]+)\}")


@dataclass(frozen=True, slots=True)
class Bounded:
    """Pattern for Python, with the number of its ways; `steady` if no attempt may read all of a text."""

    text: str
    ways: int = 1
    steady: bool = True

    @property
    def cost(self) -> int:
        """Number of ways, where an attempt that may read all of a text counts as many."""
        return self.ways if self.steady else self.ways * _MOST


@dataclass(frozen=True, slots=True)
class _Piece:
    """Part of a pattern: a set of characters, an assertion (an empty set), or a group with its branches."""

    text: str
    characters: int = 0
    branches: "tuple[tuple[_Piece, ...], ...]" = ()
    least: int = 1
    most: int | None = 1
    lazy: str = ""


@dataclass(frozen=True, slots=True)
class _Rest:
    """What follows a part of a pattern."""

    first: int = 0
    succeeds: bool = True


def bounded(pattern: str) -> Bounded:
    """Return the pattern for Python, where a repetition that may be slow has a maximum."""
    flags = _FLAGS.match(pattern)
    reader = _PatternReader(pattern, flags.end() if flags else 0)
    found = _alternation(reader.branches(flags[1] if flags else "", 0), _Rest())
    text = (flags[0] if flags else "") + found.text
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"Python's re cannot compile {pattern!r}: {error}") from error
    return replace(found, text=text)


class _PatternReader:
    """Recursive descent parser."""

    def __init__(self, pattern: str, at: int) -> None:
        self._pattern = pattern
        self._tokens = self._tokenize(at)
        self._token = next(self._tokens, None)

    def _tokenize(self, at: int) -> Iterator[re.Match[str]]:
        while at < len(self._pattern):
            token = _TOKEN.match(self._pattern, at)
            if token is None or (token["set"] and _OPERATOR.search(token["set"])):
                raise self._error(at)
            yield token
            at = token.end()

    def _error(self, at: int) -> ValueError:
        return ValueError(
            f"{self._pattern[at : at + 20]!r}, at character {at + 1} of the pattern {cut_text(self._pattern, 200)!r}, "
            "is not read in the same way by rg and by Python's re, which finds what to mask; write it with what both "
            "have: flags such as (?i) at the start or as (?i:…), and classes of characters, ranges and escapes"
        )

    def branches(self, flags: str, depth: int) -> tuple[tuple[_Piece, ...], ...]:
        """Read up to the end of the group, or of the pattern."""
        branches: list[list[_Piece]] = [[]]
        while (token := self._token) and token[0] != ")":
            self._token = next(self._tokens, None)
            if token[0] == "|":
                branches.append([])
            elif token["count"]:
                if not branches[-1]:
                    raise self._error(token.start())
                branches[-1].append(_repeated(branches[-1].pop(), token["count"]))
            elif token["open"] is not None:
                branches[-1].append(self._group(token, flags, depth + 1))
            elif token["edge"]:
                branches[-1].append(_Piece(r"\Z" if token[0] == r"\z" else token[0]))
            else:
                text = _CODE.sub(lambda code: re.escape(chr(int(code[1], 16))), token[0])
                branches[-1].append(_Piece(text, _characters(f"(?{flags}:{text})")))
        if self._token and not depth:
            raise self._error(self._token.start())
        return tuple(map(tuple, branches))

    def _group(self, token: re.Match[str], flags: str, depth: int) -> _Piece:
        text, off = token[0], token["off"] or ""
        if token["name"]:
            text = f"(?P<{token['name']}>"
        elif off:
            off = off.replace("u", "")
            text = f"(?{'a' * ('u' in token['off'])}{token['on']}{'-' * bool(off)}{off}:"
        kept = "".join(sorted({*flags, *(token["on"] or ""), *("a" * ("u" in (token["off"] or "")))} - {*off}))
        branches = self.branches(kept, depth) if depth < _MAX_DEPTH else ()
        if not branches or self._token is None:
            raise self._error(token.start())
        self._token = next(self._tokens, None)
        return _Piece(text, branches=branches)


def _repeated(part: _Piece, count: str) -> _Piece:
    least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(count[0], (0, None))
    if count[0] == "{":
        first, comma, last = count.rstrip("?")[1:-1].partition(",")
        least = int(first or 0)
        most = int(last) if last else None if comma else least
    return replace(part, least=least, most=most, lazy="?" * (len(count) > 1 and count[-1] == "?"))


@lru_cache(4_096)
def _characters(text: str) -> int:
    """Return the set of the characters that a pattern matches: a bit each, and one for those after U+FFFF."""
    try:
        pattern = re.compile(f"(?:{text})+")
    except re.error as error:
        raise ValueError(f"Python's re cannot compile {text!r}: {error}") from error
    further = pattern.search(_FURTHER) is not None or "\\U" in text or max(text) > "\uffff"
    bits = further << _WIDTH
    for run in pattern.finditer(_all_characters()):
        bits |= ((1 << (run.end() - run.start())) - 1) << run.start()
    return bits


@cache
def _all_characters() -> str:
    return "".join(map(chr, range(_WIDTH)))


def _alternation(branches: Sequence[Sequence[_Piece]], rest: _Rest) -> Bounded:
    found = [_sequence(branch, rest) for branch in branches]
    ways = [one.ways for one in found]
    text = "|".join(one.text for one in found)
    return Bounded(text, max(ways) if _differ(branches) else sum(ways), all(one.steady for one in found))


def _sequence(parts: Sequence[_Piece], rest: _Rest) -> Bounded:
    texts: list[str] = []
    ways, steady = 1, True
    for part in reversed(parts):
        found = _repetition(part, rest)
        texts.append(found.text)
        ways, steady = min(ways * found.ways, _MANY), steady and found.steady
        rest = _Rest(_first(part) | (rest.first if _nullable(part) else 0), _succeeds(part) and rest.succeeds)
    return Bounded("".join(reversed(texts)), ways, steady)


def _repetition(part: _Piece, rest: _Rest) -> Bounded:
    least, most = part.least, part.most
    if (least, most) == (1, 1):
        return _once(part, rest)
    body = _once(part, _Rest(_first(part) | rest.first, rest.succeeds and least < 2))
    if rest.succeeds or not _first(part) & rest.first:
        ways = body.ways if most == 1 else 1 if body.ways == 1 else _MANY
        steady = body.steady and (most is not None or rest.succeeds)
    else:
        most = least + _MOST if most is None else most
        ways = min(sum(min(body.ways ** min(number, 40), _MANY) for number in range(least, most + 1)), _MANY)
        steady = body.steady
    return Bounded(f"{body.text}{{{least},{'' if most is None else most}}}{part.lazy}", ways, steady)


def _once(part: _Piece, rest: _Rest) -> Bounded:
    if not part.branches:
        return Bounded(part.text)
    body = _alternation(part.branches, rest)
    return replace(body, text=f"{part.text}{body.text})")


def _first(part: _Piece) -> int:
    """Return the characters that a part can begin with, if it matches any."""
    if not part.branches:
        return part.characters or _ANY  # an assertion may fail after each number of repetitions
    found = 0
    for branch in part.branches:
        for one in branch:
            found |= _first(one)
            if not _nullable(one):
                break
    return found


def _nullable(part: _Piece) -> bool:
    """Return True if a part can match empty text."""
    if part.least == 0 or not (part.branches or part.characters):
        return True
    return any(all(map(_nullable, branch)) for branch in part.branches)


def _succeeds(part: _Piece) -> bool:
    """Return True if a part matches at least empty text everywhere."""
    return part.least == 0 or any(all(map(_succeeds, branch)) for branch in part.branches)


def _differ(branches: Sequence[Sequence[_Piece]]) -> bool:
    """Return True if no two branches can begin with the same character."""
    seen = 0
    for branch in branches:
        whole = _Piece("(", branches=(tuple(branch),))
        first = _first(whole)
        if _nullable(whole) or seen & first:
            return len(branches) == 1
        seen |= first
    return True
