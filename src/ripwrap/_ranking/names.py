"""What a path says: which words of a query are in it, and whether it is of the kind that is seldom meant: pure."""

import re
from functools import lru_cache
from typing import NamedTuple

from ripwrap._ranking.tokens import Query, composed, parts_of, root_of

_SHORTEST = 3  # Of two words of which one begins the other, the shorter has so many characters.


class _Kind(NamedTuple):
    name: str
    weight: float
    path: re.Pattern[str]
    words: frozenset[str]
    """Who has one of these in the query means such files."""


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


def weight_of(path: str, query: Query, *, defining: bool = False) -> tuple[float, tuple[str, ...]]:
    """What the score of a file is multiplied by, and why, if it is of a kind that the query does not ask for.

    What defines a symbol of the query may as well be in a package's `__init__`.
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


def named(path: str, words: tuple[str, ...]) -> list[str]:
    """Those of the words that a file's name, or that of its folder, has in some form."""
    path = composed(path).replace("\\", "/")
    above = path.rfind("/", 0, max(path.rfind("/"), 0)) + 1
    if not _beginnings(words).search(path, above):
        return []
    parts = _name_parts(path[above:])
    return [word for word in words if any(_alike(word, part) for part in parts)]


@lru_cache(maxsize=16)
def _beginnings(words: tuple[str, ...]) -> re.Pattern[str]:
    """What is in a path if `_alike()` is true of any of its parts; most paths have none of it."""
    return re.compile("|".join(re.escape(word[:_SHORTEST]) for word in words), re.IGNORECASE)


def stem_of(path: str) -> str:
    """The name of a file without its extensions, as one word: of `src/http-client.test.js` it is httpclient."""
    name = path.replace("\\", "/").rpartition("/")[2]
    return re.sub(r"[\W_]", "", name[0] + name[1:].partition(".")[0]).lower()


def _name_parts(path: str) -> list[str]:
    *parents, name = path.split("/")
    stem = name[:1] + name[1:].partition(".")[0]
    words = re.findall(r"\w+", " ".join((*parents[-1:], stem)))
    return list(dict.fromkeys(part for word in words for part in (*parts_of(word), word.lower())))


@lru_cache(maxsize=4096)
def _alike(word: str, part: str) -> bool:
    if word == part:
        return True
    if min(len(word), len(part)) < _SHORTEST:
        return False
    return word.startswith(part) or part.startswith(word) or root_of(word) == root_of(part)
