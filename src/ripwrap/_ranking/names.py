"""Find the names of files that a query has, such as `package.json` or `src/config.py`; no I/O.

A query has the name of a file in one of these forms:

- as a word with a dot or slash, e.g. 'where is package.json', or `src/config.py`, which also names `lib/src/config.py`;
- as a word of a name without an extension, spelled as the file (`Makefile`), or a word that ends in `file`;
- as its only word besides words such as 'where', perhaps without the extension: `config` for `src/config.py`.

Case counts only where it is said. Names are compared in Unicode's normal form NFC.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from ripwrap._ranking.long_query import MENTIONED, mention_score, mentioned_names
from ripwrap._ranking.word_query import STOP_WORDS, WordQuery, spell_languages, to_nfc

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
