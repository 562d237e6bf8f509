"""Count the words of a query in texts, compare texts by BM25, and select the pool: the chunks to rank; no I/O."""

import logging
import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, TypeAlias

from ripwrap._code.treesitter.merge import Chunk
from ripwrap._ranking.scoring import POOL_SIZE
from ripwrap._ranking.word_query import (
    MAX_WORD_CHARS,
    WordQuery,
    is_unspaced,
    joined_parts,
    signed_forms,
    signed_languages,
    stems_of,
    to_nfc,
)

LocateRows: TypeAlias = "Callable[[Collection[int]], Mapping[int, tuple[Any, int, Any]]]"
"""Function that takes ids of rows, and maps each id to the key of the row's file, the row's place in the file, and a
key of its text, which equal texts share.

The tuples can be sorted. Rows of files that are not searched are not in the map.
"""

POOL_DEPTH = 4
"""Number of rows, as a multiple of `POOL_SIZE`, that `best_rows()` requests first, to find the best rows of many files.

Larger values gave no better results.
"""

_MAX_TIED_ROWS = 5_000
"""Maximum number of rows for which `best_rows()` looks for further rows with the same score as the last row."""
_K1, _B = 1.2, 0.75
"""The usual parameters of BM25: further matches of a word count less, and so do matches in long texts."""
_LOGGER = logging.getLogger("ripwrap")
_WORD = re.compile(r"\w+")


def count_stems(text: str, chunks: Sequence[Chunk], stems: Collection[str]) -> list[Counter[str]]:
    """Count in each chunk of a text the words, and the parts of identifiers, that have one of the stems.

    A stem of several parts, as `joined_parts()` joins them, is that of an identifier, such as `_cookie_jar_`.
    """
    if not unicodedata.is_normalized("NFC", text):
        return [Counter(stem for _, stem in _find_stems(to_nfc(text[one.start : one.end]), stems)) for one in chunks]
    found = _find_stems(text, stems)
    offsets = [offset for offset, _ in found]
    return [
        Counter(stem for _, stem in found[bisect_left(offsets, one.start) : bisect_left(offsets, one.end)])
        for one in chunks
    ]


def _find_stems(text: str, stems: Collection[str]) -> list[tuple[int, str]]:
    """Return each of the stems that a word or part of an identifier has, with the offset of the word, in order.

    Only words that contain a stem are split into parts, which is faster than to split all.
    """
    found: list[tuple[int, str]] = []
    compound = [stem for stem in stems if "_" in stem]
    single = {stem for stem in stems if len(stem) == 1 and is_unspaced(stem)}
    for start, end in _words_with(text, stems):
        word = text[start:end]
        parts = (stems_of if end - start <= MAX_WORD_CHARS else stems_of.__wrapped__)(word)
        found += [(start, stem) for stem in parts if stem in stems and stem not in single]
        if len(parts) > 1 and compound:
            joined = joined_parts(word)
            found += [(start, stem) for stem in compound for _ in range(joined.count(stem))]
    others = [(one.start(), one[0]) for stem in single for one in re.finditer(stem, text)]
    if any(map(signed_forms, stems)):
        others += [(at, name) for at, name in signed_languages(text) if name in stems]
    return sorted([*found, *others], key=itemgetter(0)) if others else found


def _words_with(text: str, stems: Iterable[str]) -> list[tuple[int, int]]:
    """Return the places of the words that contain one of the stems, whatever the case of letters."""
    lower = text.lower()
    if len(lower) != len(text):  # the small form of a few letters, such as İ, has two characters
        return [word.span() for word in _WORD.finditer(text)]
    places = set[int]()
    for stem in stems:
        if "_" in stem:  # of several words
            continue
        at = lower.find(stem)
        while at >= 0:
            places.add(at)
            at = lower.find(stem, at + len(stem))
    words: list[tuple[int, int]] = []
    end = 0
    for at in sorted(places):
        if at < end:  # in the word of the place before
            continue
        start = at
        while start > end and _is_of_word(text[start - 1]):
            start -= 1
        end = at
        while word := _WORD.match(text, end):
            end = word.end()
            while end < len(text) and not text[end].isascii() and _is_of_word(text[end]):
                end += 1
        words.append((start, end))
    return words


def _is_of_word(letter: str) -> bool:
    """Return True for a letter, a digit, `_` and a mark, such as a vowel sign of Hindi."""
    return letter.isalnum() or letter == "_" or (not letter.isascii() and unicodedata.category(letter)[0] == "M")


def bm25(counts: Sequence[Mapping[str, float]], lengths: Sequence[int], worths: Mapping[str, float]) -> list[float]:
    """Return BM25 of each text, from its number of matches of each word, its length, and the weights of the words.

    Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009.
    """
    mean = sum(lengths) / max(len(lengths), 1) or 1.0
    scores: list[float] = []
    for one, length in zip(counts, lengths, strict=True):
        often = _K1 * (1 - _B + _B * length / mean)
        scores.append(sum(worths[word] * number * (_K1 + 1) / (number + often) for word, number in one.items()))
    return scores


def best_rows(
    search: Callable[[int], list[tuple[int, float]]], locate: LocateRows, wanted: int = POOL_DEPTH * POOL_SIZE
) -> list[tuple[int, float]]:
    """Return all rows of the `POOL_SIZE` texts with the highest BM25, and then the best row of each further file."""
    # BM25 is computed for the whole table. Then `locate` leaves out rows of files that are not searched, and positions
    # decide the order of rows with equal scores. So search for the `wanted` best rows first. Rows that were not found
    # may have the same score as the last row. If fewer than POOL_SIZE texts of the remaining rows have a better score
    # than the last row, search again for four times as many rows.
    while True:
        rows = search(wanted)
        scores: dict[int, float] = dict(rows)
        positions = locate(scores)
        better = len({text for row, (_, _, text) in positions.items() if scores[row] > rows[-1][1]})
        if len(rows) < wanted or better >= POOL_SIZE or (len(rows) >= _MAX_TIED_ROWS and len(positions) >= POOL_SIZE):
            order = sorted(positions, key=lambda row: (-scores[row], positions[row]))
            best, files, texts = list[int](), set[Any](), set[Any]()
            for row in order:
                file, _, text = positions[row]
                if text in texts or len(texts) < POOL_SIZE:
                    texts.add(text)
                elif file in files:
                    continue
                files.add(file)
                best.append(row)
            return [(row, scores[row]) for row in best]
        wanted *= 4


def log_remark(query: WordQuery) -> None:
    """Log a warning if some words of a query are not searched, because the query is too long."""
    if query.remark:
        _LOGGER.warning("%s", query.remark)
