"""Find words of a query in a path, and lower the scores of files that queries rarely ask for (tests, for example)."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from ripwrap._ranking.query import Query, identifier_parts, rough_stem, to_nfc

_MIN_PREFIX_CHARS = 3
"""Minimum number of characters of a word that also matches longer words that begin with it."""


class _Kind(NamedTuple):
    name: str
    weight: float
    """Factor of the score that chooses the files to read."""
    penalty: float
    """Number that is added to the score that ranks the files."""
    path: re.Pattern[str]
    words: frozenset[str]
    """Words of a query that asks for such files."""


_DOCUMENT_WORDS = """
doc docs document documentation documented readme changelog license guide tutorial manual markdown md rst txt json yaml
yml toml ini cfg csv tsv xml svg lockfile config configuration settings schema metadata data
"""
_PACKAGE = _Kind(
    "a package's __init__",
    0.5,
    -0.75,
    re.compile(r"(?:^|/)__init__\.pyi?$"),
    frozenset({"init", "package", "exports", "export", "public"}),
)
_KINDS = (
    _Kind(
        "test code",
        0.3,
        -0.7,
        re.compile(
            r"(?:^|/)(?:tests?|__tests__|specs?|testdata|fixtures)/|(?:^|/)(?:test_[^/]*|conftest\.py)$"
            r"|[._-](?:test|tests|spec)\.\w+$|[a-z](?:Test|Tests|Spec)\.\w+$"
        ),
        frozenset({"test", "tests", "testing", "tested", "spec", "specs", "fixture", "fixtures", "unittest", "pytest"}),
    ),
    _Kind(
        "an example",
        0.3,
        -0.45,
        re.compile(r"(?:^|/)(?:examples?|samples?|demos?|docs_src|benchmarks?)/"),
        frozenset({"example", "examples", "sample", "samples", "demo", "demos", "tutorial", "benchmark", "benchmarks"}),
    ),
    _Kind(
        "legacy code",
        0.3,
        -0.25,
        re.compile(r"(?:^|/)_?(?:legacy|compat|deprecated|obsolete)(?:/|\.\w+$)"),
        frozenset({"legacy", "compat", "compatibility", "compatible", "deprecated", "deprecation", "obsolete", "old"}),
    ),
    _Kind(
        "text or data",
        1.0,
        -0.65,
        re.compile(
            r"\.(?:md|mdx|markdown|rst|adoc|txt|json|jsonc|json5|ya?ml|toml|ini|cfg|csv|tsv|xml|svg|lock|po)$",
            re.IGNORECASE,
        ),
        frozenset(_DOCUMENT_WORDS.split()),
    ),
    _PACKAGE,
)


_ANY_KIND = re.compile(
    "test|spec|fixtures|example|sample|demo|docs_src|benchmark|legacy|compat|deprecated|obsolete|__init__"
    r"|\.(?:md|rst|adoc|txt|json|ya?ml|toml|ini|cfg|csv|tsv|xml|svg|lock|po)",
    re.IGNORECASE,
)


class PathWords(NamedTuple):
    """Words of a query in a path.

    Attributes:
        anywhere: Words in the name of the file or of any directory.
        folder: Words in the name of the file's directory.
        stem: Words in the name of the file.
        exact: True if the name of the file is one to three neighbouring words of the query.
        parts: Number of words in the path.
    """

    anywhere: tuple[str, ...] = ()
    folder: tuple[str, ...] = ()
    stem: tuple[str, ...] = ()
    exact: bool = False
    parts: int = 0


def path_weight(path: str, query: Query, *, defining: bool = False) -> float:
    """Return the factor for the score that chooses files to read; below 1 for files that queries rarely ask for.

    Args:
        path: Path of the file.
        query: Query. Kinds of files that the query asks for keep the factor 1.
        defining: True if the file defines a symbol of the query; a package's `__init__` then keeps the factor 1.
    """
    weight = 1.0
    for kind in _kinds(path, query, defining=defining):
        weight *= kind.weight
    return weight


def path_penalty(path: str, query: Query, *, defining: bool = False) -> tuple[float, tuple[str, ...]]:
    """Return the penalty of a path, which is 0 or negative, and the names of the kinds of files that cause it.

    Kinds of files that queries rarely ask for, such as tests, have a penalty.

    Args:
        path: Path of the file.
        query: Query. Kinds of files that the query asks for have no penalty.
        defining: True if the file defines a symbol of the query; a package's `__init__` then has no penalty.
    """
    kinds = _kinds(path, query, defining=defining)
    return sum(kind.penalty for kind in kinds), tuple(kind.name for kind in kinds)


def _kinds(path: str, query: Query, *, defining: bool) -> list[_Kind]:
    if not _ANY_KIND.search(path):
        return []
    path = path.replace("\\", "/")
    return [
        kind
        for kind in _KINDS
        if kind.path.search(path) and kind.words.isdisjoint(query.words) and not (defining and kind is _PACKAGE)
    ]


def words_in_path(path: str, words: tuple[str, ...]) -> list[str]:
    """Return the words of a query that occur, in any form, in the name of a file or of its directory."""
    path = to_nfc(path).replace("\\", "/")
    above = path.rfind("/", 0, max(path.rfind("/"), 0)) + 1
    if not _prefix_pattern(words).search(path, above):
        return []
    folders, stem, _ = _path_parts(path)
    return _alike(words, (*folders[-1:], stem))


def match_path(path: str, words: tuple[str, ...]) -> PathWords:
    """Return the words of a query that occur, in any form, in a path."""
    path = to_nfc(path).replace("\\", "/")
    folders, stem, parts = _path_parts(path)
    if not _prefix_pattern(words).search(path):
        return PathWords(parts=parts)
    in_stem = _alike(words, (stem,))
    return PathWords(
        anywhere=tuple(_alike(words, (*folders, stem))),
        folder=tuple(_alike(words, folders[-1:])),
        stem=tuple(in_stem),
        exact=bool(in_stem) and not _spellings(stem).isdisjoint(_phrases(words)),
        parts=parts,
    )


def _alike(words: tuple[str, ...], names: Iterable[tuple[str, ...]]) -> list[str]:
    """Return the words that occur, in any form, in any of the names."""
    found = set(chain.from_iterable(_alike_one(words, name) for name in names))
    return [word for word in words if word in found]


@lru_cache(maxsize=4096)
def _alike_one(words: tuple[str, ...], parts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word for word in words if any(_is_same_word(word, part) for part in parts))


@lru_cache(maxsize=16)
def _phrases(words: tuple[str, ...]) -> frozenset[str]:
    """Join each run of one to three consecutive words; return the joined words and their stems."""
    runs = (words[at : at + size] for size in (1, 2, 3) for at in range(len(words) - size + 1))
    return frozenset(spelled for run in runs for spelled in _joined(run))


def _spellings(stem: tuple[str, ...]) -> frozenset[str]:
    *parts, joined = stem
    return _joined(parts) | {joined, rough_stem(joined)}


def _joined(words: Sequence[str]) -> frozenset[str]:
    whole = "".join(words)
    return frozenset((whole, rough_stem(whole), "".join(map(rough_stem, words))))


@lru_cache(maxsize=16)
def _prefix_pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for the beginnings of words; most paths do not match it and need no further work."""
    return re.compile("|".join(re.escape(word[:_MIN_PREFIX_CHARS]) for word in words), re.IGNORECASE)


def joined_stem(path: str) -> str:
    """Return the name of a file without extensions as one word, such as httpclient for `src/http-client.test.js`."""
    name = path.replace("\\", "/").rpartition("/")[2]
    return re.sub(r"[\W_]", "", name[0] + name[1:].partition(".")[0]).lower()


@lru_cache(maxsize=8192)
def _path_parts(path: str) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...], int]:
    """Return the words of each directory, the words of the file name without extensions, and the number of all words.

    The last word of each name is the whole name, with its words joined.
    """
    *folders, name = path.split("/")
    names = [_name_parts(one) for one in (*folders, name[:1] + name[1:].partition(".")[0])]
    return tuple((*parts, _join(parts)) for parts in names[:-1]), (*names[-1], _join(names[-1])), sum(map(len, names))


def _name_parts(name: str) -> tuple[str, ...]:
    return tuple(part for word in re.findall(r"\w+", name) for part in identifier_parts(word))


def _join(parts: Iterable[str]) -> str:
    return "".join(parts)


@lru_cache(maxsize=4096)
def _is_same_word(word: str, part: str) -> bool:
    if word == part:
        return True
    if min(len(word), len(part)) < _MIN_PREFIX_CHARS:
        return False
    return word.startswith(part) or part.startswith(word) or rough_stem(word) == rough_stem(part)
