"""Choose the files to read and rank if there is no index, by the number of matches of each word of a query; no I/O."""

import math
import re
from collections.abc import Mapping, Sequence

from ripwrap._ranking.definitions import DEFINITION_PREFIX
from ripwrap._ranking.paths import NAMED, names_in, path_weight, words_in_path
from ripwrap._ranking.scoring import score_paths, word_worths
from ripwrap._ranking.word_query import (
    WordQuery,
    identifier_parts,
    is_unspaced,
    rough_stem,
    signed_forms,
    spell_languages,
    to_nfc,
    unicode_forms,
)

MAX_FILES_READ = 40
"""Maximum number of files that are read to rank their chunks."""

DEFINITION_TERM = "\0"
"""Key in the counts of a file, for the number of possible definitions of the query's symbols. The other keys are stems
(beginnings of words), with their number of matches.
"""

NAME_TERM = "\1"
"""Key in the counts of a file whose name is in the query; see `names_in()`."""

_COPIES_PER_FILE = 3
_COMPARED = 10
"""Number of files, as a multiple of the files to read, that are compared by content and path together."""
_BY_CONTENT = 0.6
"""Share of the files to read that are chosen by their content alone, for a long query."""

_TERMS = (DEFINITION_TERM, NAME_TERM)
_PREFIX = re.compile(DEFINITION_PREFIX)
_SEPARATORS = re.compile(r"\W+")
_BM25_K1 = 4.0
"""BM25's k1: with a higher value, further matches of the same word count more."""
_BM25_B = 0.5
"""BM25's b, from 0 to 1: with a higher value, matches in large files count less."""


def choose_files(
    query: WordQuery,
    files: Mapping[str, Mapping[str, int]],
    sizes: Mapping[str, int],
    files_with: Mapping[str, int],
    total: int,
) -> list[str]:
    """Return the files to read, the best first: `MAX_FILES_READ` and their copies.

    Files of the same size with the same counts may be copies, of which only one is a result. So they count as one file,
    and at most `3 * MAX_FILES_READ` of them are added.

    The score of a file begins with BM25: a word counts more if fewer files have it. Each further match of a word counts
    less than the match before, and a match in a large file counts less than in a small file. A word in the name of the
    file or of its directory counts more than all matches of this word in the file. If the file may define a symbol of
    the query, or the query is its name without the extension, its score becomes higher than the scores of all other
    files. At the end, the scores of files that queries rarely ask for, such as tests, are multiplied by a factor below
    1. Files whose whole name is in the query come first in any case.
    """
    # BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009), with bytes for the
    # length of a document, and worth = log(1 + N/n) for the inverse document frequency, which is positive for every
    # word:
    #
    #     worth * matches / (matches + k1 * (1 - b + b * size / mean size))
    #
    # A word that is in the text and in the path adds at most 2 * worth. So adding `most` puts files with a possible
    # definition first; only `path_weight()` may change this order.
    # A word that only paths have counts as a word that one file has.
    having = dict.fromkeys(query_stems(query), 1) | {**files_with}
    worth = {stem: math.log(1 + max(total, 1) / number) for stem, number in having.items() if stem not in _TERMS}
    named = {path: names_in(query).weight(path) for path, counts in files.items() if NAME_TERM in counts}
    most = 2 * sum(worth.values())
    mean = sum(sizes.values()) / max(len(sizes), 1) or 1.0

    def score(path: str) -> float:
        often = _BM25_K1 * (1 - _BM25_B + _BM25_B * sizes[path] / mean)
        counts = files[path]
        score = sum(worth[stem] * number / (number + often) for stem, number in counts.items() if stem not in _TERMS)
        score += sum(worth.get(rough_stem(word), 0.0) for word in words_in_path(path, query.words))
        defining = DEFINITION_TERM in counts
        first = most * (defining or (path in named and query.long is None))
        return (score + first) * path_weight(path, query, defining=defining)

    scores = {path: score(path) for path in sizes}

    def key(path: str) -> tuple[float, float, str]:
        weight = named.get(path, 0.0)
        return -weight if weight >= NAMED else 0.0, -scores[path], path

    order = sorted(sizes, key=key)
    if query.long is not None:
        order = _with_best_paths(query, order, files, scores, files_worths(query, having, total))
    chosen: list[str] = []
    seen: set[tuple[int, frozenset[tuple[str, int]]]] = set()
    for path in order:
        alike = sizes[path], frozenset(files[path].items())
        if alike in seen and len(chosen) - len(seen) >= _COPIES_PER_FILE * MAX_FILES_READ:
            continue
        if alike not in seen and len(seen) == MAX_FILES_READ:
            break
        seen.add(alike)
        chosen.append(path)
    return chosen


def _with_best_paths(
    query: WordQuery,
    order: Sequence[str],
    files: Mapping[str, Mapping[str, int]],
    scores: Mapping[str, float],
    worths: Mapping[str, float],
) -> list[str]:
    """Return files in the order in which they are chosen: some of the best, then the best by content and path together.

    The files whose content has the most words come first. The score of the others is a part of what
    `rank_candidates()` adds up. `order` has the paths with the best scores first.
    """
    number, compared = int(MAX_FILES_READ * _BY_CONTENT), _COMPARED * MAX_FILES_READ
    first, rest = order[:number], order[number:compared]
    rest = [*rest, *(path for path in order[compared:] if NAME_TERM in files[path])]
    highest = max((scores[path] for path in first), default=0.0) or 1.0
    by_path = score_paths(query, {path: DEFINITION_TERM in files[path] for path in (*first, *rest)}, worths)
    return [*first, *sorted(rest, key=lambda path: (-scores[path] / highest - by_path[path], path))]


def files_worths(query: WordQuery, having: Mapping[str, int], total: int) -> dict[str, float]:
    """Return the weight of each word of a query, from the numbers of files that have the stems; see `word_worths()`."""
    return word_worths(query.words, {word: having.get(rough_stem(word), 0) for word in query.words}, total)


def query_stems(query: WordQuery) -> list[str]:
    """Return the stems (beginnings) of a query's words; longer stems first, as a stem may begin with another stem."""
    return sorted(dict.fromkeys(map(rough_stem, query.words)), key=lambda stem: (-len(stem), stem))


def file_pattern(stems: Sequence[str], symbols: Sequence[str] = ()) -> str:
    """Return a regular expression for rg that finds words, and parts of identifiers, that begin with one of the stems.

    A stem in a script without spaces between words, such as Chinese, is found anywhere in a text. The expression also
    finds possible definitions of the symbols, from the keyword to the name, such as `class CookieJar`.
    """
    words = _words_pattern(stems)
    if not symbols:
        return words
    names = "|".join(re.escape(form) for symbol in symbols for form in unicode_forms(symbol))
    return rf"{DEFINITION_PREFIX}(?:{names})\b|{words}"


def _words_pattern(stems: Sequence[str]) -> str:
    spaced = [stem for stem in stems if not is_unspaced(stem)]
    inside = [form for stem in stems for form in unicode_forms(stem[:1].upper() + stem[1:])]
    anywhere = "|".join(map(re.escape, inside))
    if not spaced:
        return anywhere
    written = [re.escape(form) for stem in spaced for cased in (stem, stem.upper()) for form in unicode_forms(cased)]
    written += [re.escape(form) for stem in spaced for form in signed_forms(stem)]
    # The ASCII word boundary is faster, but it does not match before letters outside of ASCII
    # (https://docs.rs/regex/latest/regex/#unicode-can-impact-memory-usage-and-search-speed).
    bound = r"(?-u:\b)" if all(stem.isascii() for stem in spaced) else r"\b"
    return f"(?:{bound}|_)(?:{'|'.join(written)})|{anywhere}"


def matched_stems(hit: str, stems: Sequence[str]) -> tuple[str, ...]:
    """Return the stems that are counted for a match of `file_pattern()`: the stems with which the match begins.

    For a possible definition, return `DEFINITION_TERM` and the stems of the words in the defined name.
    """
    if _PREFIX.match(hit):
        inside = {rough_stem(part) for part in identifier_parts(_SEPARATORS.split(to_nfc(hit))[-1])}
        return (DEFINITION_TERM, *(stem for stem in stems if stem in inside))
    word = spell_languages(to_nfc(hit)).casefold().strip("_ ")
    folded = [stem.casefold() for stem in stems]
    return (
        tuple(stem for stem, one in zip(stems, folded, strict=True) if word.startswith(one)) if word in folded else ()
    )
