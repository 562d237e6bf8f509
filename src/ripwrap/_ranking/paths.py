"""Find the words and files that a query names in paths, and lower the scores of files that queries rarely ask for.

A query has the name of a file as a word with a dot or slash (`src/config.py` also names `lib/src/config.py`), as a word
that is spelled as the file (`Makefile`) or ends in `file`, or as its only word besides words such as 'where'. Case
counts only where it is said. Names are compared in Unicode's normal form NFC.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from ripwrap._ranking.word_query import (
    MENTIONED,
    STOP_WORDS,
    WordQuery,
    identifier_parts,
    mention_score,
    mentioned_names,
    rough_stem,
    spell_languages,
    to_nfc,
)

_MIN_PREFIX_CHARS = 3
"""Minimum number of characters of a word that also matches longer words with the same beginning; a shorter word matches
only itself.
"""


class _Kind(NamedTuple):
    name: str
    weight: float
    """Number, up to 1, by which the score of a file is multiplied when the files to read are chosen."""
    penalty: float
    """Negative number that is added to the score of a file when files are ranked."""
    path: re.Pattern[str]
    words: frozenset[str]
    """Words by which a query asks for files of this kind; then this kind does not change scores."""


_DOCUMENT_WORDS = """
doc docs document documentation documented readme changelog license guide tutorial manual markdown md rst txt json yaml
yml toml ini cfg csv tsv xml svg lockfile config configuration settings schema metadata data
"""
_PACKAGE = _Kind(
    "a package's __init__",
    0.5,
    -0.35,
    re.compile(r"(?:^|/)__init__\.pyi?$"),
    frozenset({"init", "package", "exports", "export", "public"}),
)
_OTHER_WORDS = """
test tests testing tested spec specs fixture fixtures unittest pytest example examples sample samples demo demos
tutorial benchmark benchmarks vendor vendored vendoring third party external externals
"""
_KINDS = (
    _Kind(
        "a test, an example or vendored code",
        0.3,
        -0.7,
        re.compile(
            r"(?:^|/)(?:[^/]*[-_.])?(?:tests?|specs?)(?:[-_.][^/]*)?/|(?:^|/)(?:test_[^/]*|conftest\.py)$"
            r"|[._-](?:test|tests|spec)\.\w+$|[a-z](?:Test|Tests|Spec)\.\w+$"
            r"|(?:^|/)(?:__tests__|testdata|testing|fixtures|examples?|samples?|demos?|docs_src|benchmarks?|node_modules"
            r"|site-packages|_?(?:vendor(?:ed)?|third[-_]?party|extern(?:als?)?))/"
        ),
        frozenset(_OTHER_WORDS.split()),
    ),
    _Kind(
        "text or data",
        1.0,
        -0.9,
        re.compile(
            r"(?:^|/)(?:CHANGE(?:S|LOG)|NEWS|LICEN[CS]E|COPYING|AUTHORS|README|HISTORY|NOTICE|TODO)[^/]*$"
            r"|\.(?:html?|css|md|mdx|markdown|rst|adoc|txt|json|jsonc|json5|ya?ml|toml|ini|cfg|csv|tsv|xml|svg|lock|po)$",
            re.IGNORECASE,
        ),
        frozenset(_DOCUMENT_WORDS.split()),
    ),
    _PACKAGE,
)


_ANY_KIND = re.compile(
    "test|spec|fixtures|example|sample|demo|docs_src|benchmark|__init__"
    "|vendor|third|extern|node_modules|site-packages"
    r"|CHANGE|NEWS|LICEN[CS]E|COPYING|AUTHORS|README|HISTORY|NOTICE|TODO"
    r"|\.(?:html?|css|md|rst|adoc|txt|json|ya?ml|toml|ini|cfg|csv|tsv|xml|svg|lock|po)",
    re.IGNORECASE,
)


_NAMED_BY_FOLDER = frozenset({"mod", "index"})
"""Names, without extensions, of files that are named by their directory, in Rust and JavaScript."""


class PathWords(NamedTuple):
    """Words of a query that occur in the path of a file."""

    anywhere: tuple[str, ...] = ()
    folder: tuple[str, ...] = ()
    stem: tuple[str, ...] = ()
    exact: bool = False
    parts: int = 0


def path_weight(path: str, query: WordQuery, *, defining: bool = False) -> float:
    """Return the factor by which the score of a file is multiplied when the files to read are chosen.

    The factor is 1, or less for files that queries rarely ask for, such as tests.
    """
    return math.prod((kind.weight for kind in _kinds(path, query, defining=defining)), start=1.0)


def path_penalty(path: str, query: WordQuery, *, defining: bool = False) -> tuple[float, tuple[str, ...]]:
    """Return the penalty of a file, which is added to its score, and the kinds that cause it, such as 'test code'."""
    kinds = _kinds(path, query, defining=defining)
    return sum(kind.penalty for kind in kinds), tuple(kind.name for kind in kinds)


def _kinds(path: str, query: WordQuery, *, defining: bool) -> list[_Kind]:
    if not _ANY_KIND.search(path):
        return []
    path = path.replace("\\", "/")
    return [
        kind
        for kind in _KINDS
        if kind.path.search(path) and kind.words.isdisjoint(query.title) and not (defining and kind is _PACKAGE)
    ]


def match_path(path: str, words: tuple[str, ...]) -> PathWords:
    """Return the words of a query that occur, in any form, in a path: `parse` occurs in `parsing.py`."""
    path = spell_languages(to_nfc(path)).replace("\\", "/")
    folders, stem, parts = _path_parts(path)
    if not _prefix_pattern(words).search(path):
        return PathWords(parts=parts)
    in_stem = _alike(words, (stem,))
    return PathWords(
        anywhere=tuple(_alike(words, (*folders, stem))),
        folder=tuple(_alike(words, folders[-1:])),
        stem=tuple(in_stem),
        exact=bool(in_stem) and not (_joined(stem[:-1]) | _joined(stem[-1:])).isdisjoint(_phrases(words)),
        parts=parts,
    )


def name_share(name: str, words: tuple[str, ...], worths: Mapping[str, float]) -> float:
    """Return how much a defined name is what a query describes, from 0 to 1.

    The number is the share of the query that the name has, by the weights of the words, times the share of the parts of
    the name that the query has.
    """
    if not _prefix_pattern(words).search(name):
        return 0.0
    parts = _split_name(name)
    hits = _alike_one(words, parts)
    if not hits:
        return 0.0
    covered = sum(bool(_same_words(words, part)) for part in parts) / len(parts)
    return covered * sum(worths[word] for word in hits) / sum(worths.values())


@lru_cache(maxsize=65536)
def _split_name(name: str) -> tuple[str, ...]:
    return tuple(identifier_parts(name))


def _alike(words: tuple[str, ...], names: Iterable[tuple[str, ...]]) -> list[str]:
    """Return the words of a query that occur, in any form, in at least one of the names, which are split into words."""
    found = set(chain.from_iterable(_alike_one(words, name) for name in names))
    return [word for word in words if word in found]


@lru_cache(maxsize=4096)
def _alike_one(words: tuple[str, ...], parts: tuple[str, ...]) -> tuple[str, ...]:
    found = {word for part in parts for word in _same_words(words, part)}
    return tuple(word for word in words if word in found)


@lru_cache(maxsize=16384)
def _same_words(words: tuple[str, ...], part: str) -> tuple[str, ...]:
    return tuple(word for word in words if _is_same_word(word, part))


@lru_cache(maxsize=16)
def _phrases(words: tuple[str, ...]) -> frozenset[str]:
    """Join one, two or three consecutive words in every possible way; return the joined words and their stems."""
    runs = (words[at : at + size] for size in (1, 2, 3) for at in range(len(words) - size + 1))
    return frozenset(spelled for run in runs for spelled in _joined(run))


def _joined(words: Sequence[str]) -> frozenset[str]:
    whole = "".join(words)
    return frozenset((whole, rough_stem(whole), "".join(map(rough_stem, words))))


@lru_cache(maxsize=16)
def _prefix_pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for the first three characters of each word; most paths do not match, and have none."""
    return re.compile("|".join(re.escape(word[:_MIN_PREFIX_CHARS]) for word in words), re.IGNORECASE)


@lru_cache(maxsize=8192)
def _path_parts(path: str) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...], int]:
    """Return the words of each directory name, the words of the file name, and the number of words in the path.

    The extensions of the file are left out. The words of each name are followed by one more item, which is not counted:
    the whole name as one word.
    """
    *folders, name = path.split("/")
    if folders and name.partition(".")[0] in _NAMED_BY_FOLDER:
        *folders, name = folders
    named = (*folders, name[:1] + name[1:].partition(".")[0])
    names = [[part for word in re.findall(r"\w+", one) for part in identifier_parts(word)] for one in named]
    *above, stem = ((*parts, "".join(parts)) for parts in names)
    return tuple(above), stem, sum(map(len, names))


def _is_same_word(word: str, part: str) -> bool:
    if word == part:
        return True
    if min(len(word), len(part)) < _MIN_PREFIX_CHARS:
        return False
    return word.startswith(part) or part.startswith(word) or rough_stem(word) == rough_stem(part)


NAMED = 10.0
"""Weight, in the score of a file, of a query that has the whole name of the file; more than all other parts together.
"""
_NEAR_ROOT = 2.0
"""Additional weight of a named file in the root directory; it falls with the number of directories above the file."""
_STEM = 3.5
"""Weight of a query that is the name of the file without its extension, in the same case."""
_STEM_IN_ANY_CASE = 2.5
"""Weight of a query that is the name of the file without its extension; less than the weight of a definition."""

_FILLERS = STOP_WORDS | {"called", "file", "files", "find", "named", "open", "show"}
_AROUND = "\"'`\u201c\u201d\u2018\u2019<>,;:!?"
_BRACKETS = "()[]{}"
_POSITION = re.compile(r"(?:'s|(?::\d+)+)$")
_TEXT = frozenset({"md", "mdx", "markdown", "rst", "adoc", "txt"})
_ASCII = re.compile("[ -~]+")
_SLASHES = {"/", "\\"}
_MAX_PIECE, _MAX_PIECES = 100, 100
"""Maximum number and length of `FileNames.pieces`: SQLite limits patterns and expressions."""
_MAX_PHRASE = 3
"""Maximum number of words of a query that may be the name of one file, such as `Release Notes.md`."""


@dataclass(frozen=True, slots=True)
class FileNames:
    """Names of files that a query has. Without further notice, names are in lower case (`str.casefold()`)."""

    names: frozenset[str] = frozenset()
    spelled: frozenset[str] = frozenset()
    paths: tuple[str, ...] = ()
    stems: frozenset[str] = frozenset()
    pieces: tuple[str, ...] = ()
    mentions: tuple[tuple[str, float], ...] = ()

    def __bool__(self) -> bool:
        """Return True if the query may have the name of a file."""
        return bool(self.pieces)

    def weight(self, path: str) -> float:
        """Return the weight of the file in the score if the query has its name; otherwise 0."""
        if not self or not _any_of(self.pieces).search(path):  # most paths
            return 0.0
        path = to_nfc(path).replace("\\", "/")
        if self.mentions:
            return MENTIONED * mention_score(path, self.mentions)
        name = path.rpartition("/")[2]
        stem, _, extension = name.rpartition(".")
        stem = stem or name
        if name.casefold() in self.names or name in self.spelled:
            return NAMED + _NEAR_ROOT / (1 + path.count("/"))
        folded = path.casefold()
        if any(f"/{one}".endswith(f"/{end}") for end in self.paths for one in (folded, folded.rpartition(".")[0])):
            return NAMED
        if stem in self.stems or (stem in self.spelled and stem.isupper() and extension.casefold() in _TEXT):
            return _STEM
        spelled = spell_languages(stem).strip().casefold()
        return _STEM_IN_ANY_CASE if any(spelled == one.casefold() for one in self.stems) else 0.0


@lru_cache(maxsize=16)
def names_in(query: WordQuery) -> FileNames:
    """Return the names of files that a query has.

    If the query asks where a name is defined, a name without an extension names no file.
    """
    if query.long is not None:
        mentions = query.long.mentions
        return FileNames(
            pieces=_pieces(one for path, _ in mentions for one in mentioned_names(path)), mentions=mentions
        )
    whole = to_nfc(query.text).strip()
    written = whole.split()
    words = [bare for word in written if (bare := _bare(word))]
    telling = [word for word in words if word.casefold() not in _FILLERS] or words
    alone = {*([whole] if len(written) <= _MAX_PHRASE else ()), *(telling if len(telling) == 1 else ())}
    given = {form for word in {*telling, *alone} for form in (word, word.strip(_BRACKETS))} - {""}
    paths = {word.replace("\\", "/").removeprefix("./").strip("/").casefold() for word in given if _SLASHES & {*word}}
    names = {word for word in given if "." in word.strip(".") or word[0] == "." or word.casefold().endswith("file")}
    defines = query.symbolic and len(written) > 1
    stems = set[str]() if defines else {form for word in alone for form in (word, spell_languages(word).strip())}
    folded = frozenset(one.casefold() for one in (*names, *stems))
    spelled = frozenset(word for word in given if word != word.lower())
    every = {*folded, *spelled, *paths, *stems} - {""}
    return FileNames(folded, spelled, tuple(sorted(paths - {""})), frozenset(stems), _pieces(every))


def _pieces(names: Iterable[str]) -> tuple[str, ...]:
    pieces = tuple(sorted({max(_ASCII.findall(one), key=len, default="")[:_MAX_PIECE] for one in names}))
    return pieces if len(pieces) <= _MAX_PIECES else ("",)


@lru_cache(maxsize=16)
def _any_of(pieces: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, pieces)), re.IGNORECASE)


def _bare(word: str) -> str:
    """Return a word without quotes and punctuation around it, without `'s`, and without a line number at its end."""
    return _POSITION.sub("", word.strip(_AROUND)).strip(_AROUND).rstrip(".")
