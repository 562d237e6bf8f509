"""Find words of a query in a path, and the weight of kinds of files that are seldom meant; pure."""

import re
from functools import lru_cache
from typing import NamedTuple

from ripwrap._ranking.query import Query, identifier_parts, rough_stem, to_nfc

_MIN_PREFIX_CHARS = 3
"""Minimum length of a word that counts as equal to a longer word that begins with it, in characters."""


class _Kind(NamedTuple):
    name: str
    weight: float
    path: re.Pattern[str]
    words: frozenset[str]
    """Words of a query that asks for such files."""


_PACKAGE = _Kind(
    "a package's __init__",
    0.5,
    re.compile(r"(?:^|/)__init__\.pyi?$"),
    frozenset({"init", "package", "exports", "export", "public"}),
)
_KINDS = (
    _Kind(
        "test code",
        0.3,
        re.compile(
            r"(?:^|/)(?:tests?|__tests__|specs?|testdata|fixtures)/|(?:^|/)(?:test_[^/]*|conftest\.py)$"
            r"|[._-](?:test|tests|spec)\.\w+$|[a-z](?:Test|Tests|Spec)\.\w+$"
        ),
        frozenset({"test", "tests", "testing", "tested", "spec", "specs", "fixture", "fixtures", "unittest", "pytest"}),
    ),
    _Kind(
        "an example",
        0.3,
        re.compile(r"(?:^|/)(?:examples?|samples?|demos?|docs_src|benchmarks?)/"),
        frozenset({"example", "examples", "sample", "samples", "demo", "demos", "tutorial", "benchmark", "benchmarks"}),
    ),
    _Kind(
        "legacy code",
        0.3,
        re.compile(r"(?:^|/)_?(?:legacy|compat|deprecated|obsolete)(?:/|\.\w+$)"),
        frozenset({"legacy", "compat", "compatibility", "compatible", "deprecated", "deprecation", "obsolete", "old"}),
    ),
    _PACKAGE,
)


_ANY_KIND = re.compile(
    "test|spec|fixtures|example|sample|demo|docs_src|benchmark|legacy|compat|deprecated|obsolete|__init__",
    re.IGNORECASE,
)


def path_weight(path: str, query: Query, *, defining: bool = False) -> tuple[float, tuple[str, ...]]:
    """Return the factor for the score of a file, and the kinds of file for which it is below 1.

    Args:
        path: Path of the file.
        query: Query; kinds that it asks for have no effect.
        defining: True if the file defines a symbol of the query, which it may well do in a package's `__init__`.
    """
    path = path.replace("\\", "/")
    if not _ANY_KIND.search(path):
        return 1.0, ()
    kinds = [
        kind
        for kind in _KINDS
        if kind.path.search(path) and kind.words.isdisjoint(query.words) and not (defining and kind is _PACKAGE)
    ]
    weight = 1.0
    for kind in kinds:
        weight *= kind.weight
    return weight, tuple(kind.name for kind in kinds)


def words_in_path(path: str, words: tuple[str, ...]) -> list[str]:
    """Return the words that occur, in any form, in the name of a file or of its folder."""
    path = to_nfc(path).replace("\\", "/")
    above = path.rfind("/", 0, max(path.rfind("/"), 0)) + 1
    if not _prefix_pattern(words).search(path, above):
        return []
    parts = _name_parts(path[above:])
    return [word for word in words if any(_is_same_word(word, part) for part in parts)]


@lru_cache(maxsize=16)
def _prefix_pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for the beginnings of words, which quickly rules out most paths for `_is_same_word()`."""
    return re.compile("|".join(re.escape(word[:_MIN_PREFIX_CHARS]) for word in words), re.IGNORECASE)


def joined_stem(path: str) -> str:
    """Return the name of a file without extensions, as one word: httpclient for `src/http-client.test.js`."""
    name = path.replace("\\", "/").rpartition("/")[2]
    return re.sub(r"[\W_]", "", name[0] + name[1:].partition(".")[0]).lower()


def _name_parts(path: str) -> list[str]:
    *parents, name = path.split("/")
    stem = name[:1] + name[1:].partition(".")[0]
    words = re.findall(r"\w+", " ".join((*parents[-1:], stem)))
    return list(dict.fromkeys(part for word in words for part in (*identifier_parts(word), word.lower())))


@lru_cache(maxsize=4096)
def _is_same_word(word: str, part: str) -> bool:
    if word == part:
        return True
    if min(len(word), len(part)) < _MIN_PREFIX_CHARS:
        return False
    return word.startswith(part) or part.startswith(word) or rough_stem(word) == rough_stem(part)
