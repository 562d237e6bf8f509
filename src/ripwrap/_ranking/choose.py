"""Which files are worth reading, by how often each word of a query is in each of them: pure."""

import math
import re
from collections.abc import Mapping, Sequence

from ripwrap._ranking.definitions import BEFORE
from ripwrap._ranking.names import named, weight_of
from ripwrap._ranking.tokens import Query, composed, forms_of, is_unspaced, parts_of, root_of

FILES = 40
"""How many files are read."""

DEFINITION = "\0"
"""What stands, among the roots of a file's words, for a symbol of the query that it may define."""

_BEFORE = re.compile(BEFORE)
_SEPARATORS = re.compile(r"\W+")
_OFTEN = 4.0
_BY_SIZE = 0.5
"""BM25's k1 and b, of whole files: how soon more of the same word counts no more, and how much a file's size does."""


def chosen(
    query: Query,
    files: Mapping[str, Mapping[str, int]],
    sizes: Mapping[str, int],
    having: Mapping[str, int],
    total: int,
    limit: int = FILES,
) -> list[str]:
    """The files that are worth reading, the best first.

    It is BM25, of whole files: a word that few files have counts most, more of the same counts ever less, and in a
    large file a hit is worth less. A word in the name of file or folder counts like any number of hits. What may define
    a symbol of the query comes before others.

    Args:
        query: What is asked for.
        files: For each file how often it has each root.
        sizes: Bytes of each of them; what is not in it is left out.
        having: How many files have each root.
        total: How many files have any.
        limit: How many at most.
    """
    worth = {root: math.log(1 + total / number) for root, number in having.items() if root != DEFINITION}
    most = 2 * sum(worth.values())  # of all words, as often as can be, in text and names
    mean = sum(sizes.values()) / max(len(sizes), 1) or 1.0

    def score(path: str) -> float:
        often = _OFTEN * (1 - _BY_SIZE + _BY_SIZE * sizes[path] / mean)
        counts = files[path]
        score = sum(worth[root] * number / (number + often) for root, number in counts.items() if root != DEFINITION)
        score += sum(worth.get(root_of(word), 0.0) for word in named(path, query.words))
        defining = DEFINITION in counts
        return (score + most * defining) * weight_of(path, query, defining=defining)[0]

    return sorted(sizes, key=lambda path: (-score(path), path))[:limit]


def roots_of(query: Query) -> list[str]:
    """What to look for in files: the root of each word, those first that begin with another one."""
    return sorted(dict.fromkeys(map(root_of, query.words)), key=lambda root: (-len(root), root))


def pattern_of(roots: Sequence[str], symbols: Sequence[str] = ()) -> str:
    """The regular expression for rg that finds words with these roots, also as parts of identifiers.

    A root of a script without blanks between words has no bound. Where one of the symbols is perhaps defined, all of
    that is found, from its keyword on.
    """
    words = _pattern_of_words(roots)
    if not symbols:
        return words
    names = "|".join(re.escape(form) for symbol in symbols for form in forms_of(symbol))
    return rf"{BEFORE}(?:{names})\b|{words}"


def _pattern_of_words(roots: Sequence[str]) -> str:
    spaced = [root for root in roots if not is_unspaced(root)]
    inside = [form for root in roots for form in forms_of(root[:1].upper() + root[1:])]
    anywhere = "|".join(map(re.escape, inside))
    if not spaced:
        return anywhere
    written = [re.escape(form) for root in spaced for cased in (root, root.upper()) for form in forms_of(cased)]
    # The bound of ASCII words is the faster one, but has no place before any other letter.
    bound = r"(?-u:\b)" if all(root.isascii() for root in spaced) else r"\b"
    return f"(?:{bound}|_)(?:{'|'.join(written)})|{anywhere}"


def words_of(hit: str, roots: Sequence[str]) -> tuple[str, ...]:
    """The roots that a hit of the pattern stands for: the one that it is, and those that this one begins with.

    Of what may be a definition they are those in the name, and `DEFINITION`.
    """
    if _BEFORE.match(hit):
        inside = {root_of(part) for part in parts_of(_SEPARATORS.split(composed(hit))[-1])}
        return (DEFINITION, *(root for root in roots if root in inside))
    word = composed(hit).casefold().lstrip("_")
    folded = [root.casefold() for root in roots]
    return (
        tuple(root for root, one in zip(roots, folded, strict=True) if word.startswith(one)) if word in folded else ()
    )
