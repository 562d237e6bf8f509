"""A query to its words and symbols, text and paths to what FTS5 shall index: pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

TOKENIZE = "porter unicode61"
"""The tokenizer of FTS5: folds case, takes `_` for a space, and stems."""

_MOST_WORDS = 32  # Of a query; whoever pastes a page means its beginning.
_SHORTEST_ROOT = 3

_HUMP = re.compile(r"[A-Z](?:(?<=[a-z0-9].)|(?<=[A-Z].)(?=[a-z]{2}))")
_WORD = re.compile(r"\w+")
_IDENTIFIER = re.compile(r"[^\W\d]\w*(?:(?:\.|::|->|#)[^\W\d]\w*)*(?P<call>\(\))?")
_SEPARATOR = re.compile(r"\.|::|->|#")
_COMPOUND = re.compile(r"[^\W_]_+[^\W_]|[a-z0-9][A-Z]|[A-Z]{2}[a-z]{2}")
_ASKED = re.compile(
    r"(?:where\s+(?:is|are)\s+(?:the\s+)?(?:class\s+|function\s+|method\s+|type\s+)?(?P<defined>\S+?)\s+(?:defined|declared)\s*\??"
    r"|(?:the\s+)?(?:definition|declaration)\s+of\s+(?:the\s+)?(?P<of>\S+?)\s*\??"
    r"|(?:class|def|function|func|fn|struct|interface|trait|enum|type)\s+(?P<kind>\S+?))",
    re.IGNORECASE,
)

_STOP_WORDS = """
a about all also an and any are as at be been being but by can could did do does doing done each for from had has have
having how i if in into is it its just me my no nor not of off on onto or our out over own shall she should so some
such than that the their them then there these they this those through to too under until up upon us very via was we
were what when where whether which while who whom whose why will with within without would you your
"""
_KEYWORD_NAMES = """
class def function func fun fn interface struct enum trait type module namespace protocol object record union sub
const let var val define
"""
_ENDING_NAMES = """
ization izations isation isations ication ications ation ations ator ators ating ated ates ate izing izes ized izer
izers ize ising ises ised iser ise ment ments ing ings ion ions er ers or ors ed es s ies ie y e ly able ible ness ful
al ive ity ities ance ences ence ency
"""

STOP_WORDS = frozenset(_STOP_WORDS.split())
_KEYWORDS = tuple(_KEYWORD_NAMES.split())
_ENDINGS = sorted(_ENDING_NAMES.split(), key=lambda ending: (-len(ending), ending))


@dataclass(frozen=True, slots=True)
class Query:
    """What somebody asks for.

    Attributes:
        text: As it was asked.
        words: Its words in lower case, identifiers in their parts, without stop words; each once, in their order.
        symbols: The identifiers in it whose definition is looked for.
        symbolic: Whether it is nothing but a symbol.
        match: What FTS5 is asked.
        definitions: What FTS5 is asked for chunks that may define a symbol; empty if there is none.
    """

    text: str
    words: tuple[str, ...]
    symbols: tuple[str, ...]
    symbolic: bool
    match: str
    definitions: str


def understood(text: str) -> Query:
    """A query; if there is nothing in it but stop words, they are its words.

    Raises:
        ValueError: There is no word in it.
    """
    asked = _ASKED.fullmatch(text.strip())
    named = next(filter(None, asked.groups())) if asked else text.strip()
    alone = _IDENTIFIER.fullmatch(named)
    if alone:
        symbols = [alone[0]]
    else:
        symbols = [
            one[0] for one in _IDENTIFIER.finditer(text) if one["call"] or _COMPOUND.search(one[0]) or "::" in one[0]
        ]
    spelled = _WORD.findall(named if alone else text)
    words = _once(part for word in spelled for part in parts_of(word))
    telling = [word for word in words if word not in STOP_WORDS] or words
    if not telling:
        raise ValueError(f"there is no word in the query {text!r}; ask with words or names that the text may have")
    del telling[_MOST_WORDS:]
    names = tuple(_once(_SEPARATOR.split(symbol.removesuffix("()"))[-1] for symbol in symbols))[:_MOST_WORDS]
    return Query(text, tuple(telling), names, alone is not None, _match(telling, names), _definitions(names))


def split_humps(text: str) -> str:
    """Text with a space before each part of an identifier in camel case: `getHTTPResponse` as `get HTTP Response`."""
    return _HUMP.sub(r" \g<0>", text)


def parts_of(identifier: str) -> list[str]:
    """The parts of an identifier in lower case: `HTTPServer_v2` is http, server, v2; no single letters with others."""
    parts = split_humps(identifier).replace("_", " ").lower().split()
    return [part for part in parts if len(part) > 1] or parts


@lru_cache(maxsize=4096)
def root_of(word: str) -> str:
    """What a word has in common with its other forms, or less: `parse` and `parsing` become `pars`.

    Rougher than the stems that FTS5 compares: it chooses files, which are then looked at closely.
    """
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_ROOT:
            root = word[: -len(ending)]
            return root[:-1] if len(root) > _SHORTEST_ROOT and root[-1] == root[-2] else root
    return word


def _match(words: Iterable[str], symbols: Iterable[str]) -> str:
    """Any of the words, and each symbol also as a phrase of its parts, and as one word, as in a file's name."""
    terms = list(words)
    for symbol in symbols:
        parts = _spelled(symbol)
        if len(parts) > 1:
            terms += [" ".join(parts), "".join(parts)]
    return " OR ".join(f'"{term}"' for term in _once(terms))


def _definitions(symbols: Iterable[str]) -> str:
    phrases = (" ".join(_spelled(symbol)) for symbol in symbols)
    return " OR ".join(f'"{keyword} {phrase}"' for phrase in phrases for keyword in _KEYWORDS)


def _spelled(symbol: str) -> list[str]:
    """An identifier as FTS5 has it: its parts, single letters too."""
    return split_humps(symbol).replace("_", " ").lower().split()


def _once(items: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(items))
