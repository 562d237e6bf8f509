"""A query to its words and symbols, text and paths to what FTS5 shall index: pure."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

TOKENIZE = "porter unicode61 remove_diacritics 0 categories ''L* N* Co M*''"
"""The tokenizer of FTS5, for SQL in quotes: folds case but no accents, as rg; takes `_` for a space, and stems."""

MOST_WORDS = 32
"""Words of a query that are looked for."""

LONGEST_WORD = 200
"""Characters of a word, or of a name, that is looked for."""

_SHOWN = 100  # Characters of a query in a message.
_SHORTEST_ROOT = 3

_HUMP = re.compile(r"[A-Z](?:(?<=[a-z0-9].)|(?<=[A-Z].)(?=[a-z]{2}))")
_WORD = re.compile(r"\w+")
_IDENTIFIER = re.compile(r"[^\W\d]\w*(?:(?:\.|::|->|#)[^\W\d]\w*)*(?P<call>\(\))?")
_SEPARATOR = re.compile(r"\.|::|->|#")
_UNSPACED = re.compile(  # Scripts that have no blanks between words, and Hangul, which has them between phrases.
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30fa\u30fc-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc\U0001b000-\U0001b16f\U00020000-\U0003ffff]+"
)
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
        words: Its words in lower case, identifiers in their parts, without stop words; each once, in their order. Of
            Chinese, Japanese, Korean, Thai and the like they are each two characters that follow each other.
        symbols: The identifiers in it whose definition is looked for.
        symbolic: Whether it is nothing but a symbol.
        match: What FTS5 is asked.
        definitions: What FTS5 is asked for chunks that may define a symbol; empty if there is none.
        left_out: How many of its words and names are too many, or too long, and are not looked for.
    """

    text: str
    words: tuple[str, ...]
    symbols: tuple[str, ...]
    symbolic: bool
    match: str
    definitions: str
    left_out: int = 0

    @property
    def remark(self) -> str:
        """What to say of the words that are left out; empty if none is."""
        if not self.left_out:
            return ""
        return (
            f"{self.left_out} of the query's words and names are not looked for: at most {MOST_WORDS} are, those of"
            f" identifiers and long ones before others, and none of over {LONGEST_WORD} characters"
        )


def understood(text: str) -> Query:
    """A query; if there is nothing in it but stop words, they are its words.

    Of one with many words those are looked for that say most.

    Raises:
        TypeError: It is no text.
        ValueError: There is no word in it, or none that is short enough.
    """
    if not isinstance(text, str):
        raise TypeError(f"a query should be a str, not {type(text).__name__}")
    spelled = composed(text)
    asked = _ASKED.fullmatch(spelled.strip())
    named = next(filter(None, asked.groups())) if asked else spelled.strip()
    alone = _IDENTIFIER.fullmatch(named)
    if alone and not asked and (_UNSPACED.search(named) or named in STOP_WORDS):
        alone = None  # which may be a sentence as well, or defines nothing
    if alone:
        symbols = [alone[0]]
    else:
        symbols = [
            one[0] for one in _IDENTIFIER.finditer(spelled) if one["call"] or _COMPOUND.search(one[0]) or "::" in one[0]
        ]
    words = _once(part for word in _words(named if alone else spelled) for part in parts_of(word))
    every = [word for word in words if word not in STOP_WORDS] or words
    telling = [word for word in every if len(word) <= LONGEST_WORD]
    if not telling:
        said = repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
        if every:
            raise ValueError(
                f"no word of the query {said} has {LONGEST_WORD} characters or less; ask with shorter ones"
            )
        raise ValueError(f"there is no word in the query {said}; ask with words or names that the text may have")
    names = _once(_SEPARATOR.split(symbol.removesuffix("()"))[-1] for symbol in symbols)
    short = tuple(name for name in names if len(name) <= LONGEST_WORD)[:MOST_WORDS]
    kept = _most_telling(telling, short)
    left_out = len(every) - len(kept) + len(names) - len(short)
    return Query(text, kept, short, alone is not None, _match(kept, short), _definitions(short), left_out)


def _most_telling(words: list[str], names: Iterable[str]) -> tuple[str, ...]:
    """Of many words those that say most, in their order: parts of names, then long ones; numbers last."""
    if len(words) <= MOST_WORDS:
        return tuple(words)
    parts = {part for name in names for part in parts_of(name)}
    best = sorted(words, key=lambda word: (word not in parts, word.isdecimal(), -len(word)))[:MOST_WORDS]
    return tuple(sorted(best, key={word: place for place, word in enumerate(words)}.__getitem__))


def composed(text: str) -> str:
    """Text in which a letter and its accent are one character, however they are written (NFC)."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def forms_of(word: str) -> tuple[str, ...]:
    """A word with accents as one character with their letters, and as characters of their own."""
    return (word,) if word.isascii() else tuple(_once((word, unicodedata.normalize("NFD", word))))


def is_unspaced(word: str) -> bool:
    """Whether a word is of a script without blanks between words."""
    return not word.isascii() and _UNSPACED.match(word) is not None


def _words(text: str) -> list[str]:
    """Letters, digits and `_` that follow each other; marks, such as the vowels of Hindi, are of their word."""
    if text.isascii():
        return _WORD.findall(text)
    parts = "".join(one if _WORD.match(one) or unicodedata.category(one)[0] == "M" else " " for one in text).split()
    return [part for part in parts if _WORD.search(part)]


def spread(text: str) -> str:
    """Text as FTS5 shall have it: camel case apart; where words have no blanks, each two characters are one.

    The last one of those is there alone, too, so that each character begins a word.
    """
    text = split_humps(text)
    if text.isascii():
        return text
    return _UNSPACED.sub(lambda run: f" {' '.join(_pairs(run[0]))} {run[0][-1]} ", unicodedata.normalize("NFC", text))


def _pairs(run: str) -> Iterator[str]:
    return (run[at : at + 2] for at in range(len(run) - 1))


def split_humps(text: str) -> str:
    """Text with a space before each part of an identifier in camel case: `getHTTPResponse` as `get HTTP Response`."""
    return _HUMP.sub(r" \g<0>", text)


def parts_of(identifier: str) -> list[str]:
    """The parts of an identifier in lower case: `HTTPServer_v2` is http, server, v2; no single letters with others."""
    parts = _spelled(identifier)
    if not identifier.isascii():
        parts = [piece for part in parts for piece in _pieces(part)]
    return [part for part in parts if len(part) > 1 or is_unspaced(part)] or parts


def _pieces(part: str) -> Iterator[str]:
    """A word in which there may be some of a script without blanks."""
    at = 0
    for run in _UNSPACED.finditer(part):
        yield from filter(None, (part[at : run.start()],))
        yield from _pairs(run[0]) if len(run[0]) > 1 else run[0]
        at = run.end()
    yield from filter(None, (part[at:],))


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
    return " OR ".join(map(_term, _once(terms)))


def _term(words: str) -> str:
    """Words that follow each other, for FTS5; a single character of a script without blanks begins a word."""
    return f'"{words}"*' if len(words) == 1 and is_unspaced(words) else f'"{_phrase(words)}"'


def _phrase(words: str) -> str:
    """Words as `spread()` leaves them, but for what it says of the last one."""
    if words.isascii():
        return words
    return " ".join(piece for word in words.split() for piece in _pieces(word))


def _definitions(symbols: Iterable[str]) -> str:
    phrases = (_phrase(" ".join(_spelled(symbol))) for symbol in symbols)
    return " OR ".join(f'"{keyword} {phrase}"' for phrase in phrases for keyword in _KEYWORDS)


def _spelled(symbol: str) -> list[str]:
    """An identifier as FTS5 has it: its parts, single letters too."""
    return split_humps(symbol).replace("_", " ").lower().split()


def _once(items: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(items))
