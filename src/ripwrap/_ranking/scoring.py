"""Rank chunks and their files, and give the reasons for each score; no I/O.

The pool is the set of chunks to rank.

The score of a file is 1 plus the sum of these parts; each is a number from 0 to 1, multiplied by its weight:

- BM25: the best three chunks of the file.
- defines: a chunk defines a symbol of the query; more if the file is named like the symbol.
- exact name: the name of the file is one to three neighbouring words of the query.
- first word: the name of the file has the first word of the query; a later word counts less.
- path, directory: words of the query in the whole path, and in the directory of the file.
- near: neighbouring words of the query are near each other in a chunk.
- vectors: the chunk of the file whose embedding is most similar to that of the query.
- penalties: tests, examples, legacy code, `__init__` and files without code, unless the query asks for them.

If the sum is below 0, the score is e to the power of the sum, so that it is above 0. The best chunk of each file comes
first; all other chunks follow.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, pairwise
from typing import Protocol

from ripwrap._ranking.definitions import definition_lines, has_definition
from ripwrap._ranking.paths import PathWords, joined_stem, match_path, path_penalty
from ripwrap._ranking.query import Query, is_unspaced, rough_stem, split_camel_case, to_nfc
from ripwrap._text import plural

POOL_SIZE = 100
"""Number of chunks of a pool that are chosen by BM25."""

PATH_WEIGHT = 2.0
"""Weight in BM25 of a word in the path; a word in the text has weight 1."""

# The weights were fitted on half of 56 repositories of the public semble benchmark, and checked on the other half, on
# the repositories of docs/retrieval.md, and on docstrings (see there). After a change of a weight, measure on both
# again.

EXACT_NAME = 0.3
"""Weight of a file name that is one to three neighbouring words of the query."""
FIRST_WORD = 0.3
"""Weight of the first word of the query in the name of the file."""
PATH_WORDS = 0.3
"""Weight of words in the path."""
FOLDER_WORDS = 0.5
"""Weight of words in the name of the directory."""
NEAR_WORDS = 0.5
"""Weight of neighbouring words that are near each other."""
DEFINES = 0.55
"""Weight of a definition of a symbol of the query."""
DEFINES_ASKED = 3.0
"""Weight of a definition if the query is only a name, so that the definition comes before all uses of the name."""
DEFINES_NAMED = 0.25
"""Additional weight of a definition in a file that is named like the symbol."""

_CHUNK_SHARES = (1.0, 0.5, 0.25)
"""Shares of the best, the second and the third chunk in the BM25 of a file."""
_FILES_WITH_NEAR = 30
"""Number of files whose text is searched for words near each other: the files with the best sum of the other parts."""
_NEAR_CHARS = 24
"""Maximum number of characters between two words that are near each other."""
_BM25_K1, _BM25_B, _MEAN_PARTS = 1.2, 0.75, 3
"""BM25's k1 and b for paths, and the usual number of words in a path. In a longer path, a word counts less."""
_LEAST_WORTH = 0.1
"""Weight of a word that every file has; it is above 0, so that the word still counts in names."""
_VECTOR_RANKS = 50
"""Number of files that get a similarity above 0: the files that are most similar to the query."""
_REPEAT_FACTOR = 0.25
"""Factor of a chunk's score for each better chunk of its file."""

LEAST_BM25 = 0.05
"""Lowest BM25 that is listed as a reason. All values are close to 0 if few chunks are ranked and most of them have the
words.
"""

_MAX_RELEVANT_LINES = 16
"""Maximum number of lines of a chunk that are compared to choose the name of the chunk."""


class Content(Protocol):
    """Interface to the content of a chunk; its file may not have been read yet."""

    def text(self) -> str | None:
        """Return the text; None if the file has changed since it was split into chunks."""
        ...

    def defines(self, name: str) -> bool:
        """Return True if a definition of a name begins in the text."""
        ...


@dataclass(frozen=True, slots=True)
class TextContent:
    """Content of a chunk whose text is known."""

    known: str

    def text(self) -> str:
        """Return the text."""
        return self.known

    def defines(self, name: str) -> bool:
        """Return True if a definition of a name begins in the text."""
        return has_definition(self.known, name)


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A chunk of the pool.

    Attributes:
        path: Path of its file.
        start_line: Number of its first line, from 1.
        end_line: Number of its last line.
        content: Content; the text is read only if the file is one of the best, or if the chunk is shown.
        bm25: BM25; more is better.
        cosine: Cosine similarity of the embeddings of the chunk and the query; None if the search by embedding did not
            find the chunk.
    """

    path: str
    start_line: int
    end_line: int
    content: Content
    bm25: float
    cosine: float | None = None


@dataclass(slots=True)
class RankedCandidate:
    """A chunk with its score.

    Attributes:
        candidate: Chunk.
        score: Score; comparable within one ranking only.
        reasons: Parts of the score, in words.
    """

    candidate: Candidate
    score: float
    reasons: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class _File:
    """A file with its score.

    Attributes:
        path: Path.
        chunks: Chunks, the best by BM25 first.
        score: Sum of the parts.
        defined: Map from a chunk to the symbol of the query that the chunk defines.
        named: True if the file is named like the symbol that it defines.
        words: Words of the query in its path.
        kinds: Kinds of the file, such as test code, that the query does not ask for.
        near: Proximity of words in each of its best chunks, with the pairs of words that are near each other.
    """

    path: str
    chunks: list[Candidate]
    words: PathWords
    score: float = 0.0
    defined: dict[Candidate, str] = field(default_factory=dict[Candidate, str])
    named: bool = False
    kinds: tuple[str, ...] = ()
    near: dict[Candidate, tuple[float, list[str]]] = field(default_factory=dict[Candidate, tuple[float, list[str]]])


def word_worths(words: Iterable[str], having: Mapping[str, int], total: int) -> dict[str, float]:
    """Return the weight of each word. Words that occur in fewer files or chunks have a higher weight.

    Args:
        words: Words of a query.
        having: Number of files or chunks that have each word.
        total: Number of files or chunks that have at least one of the words.
    """
    return {word: math.log(1 + total / max(having.get(word, 0), 1)) + _LEAST_WORTH for word in words}


def rank_candidates(
    query: Query,
    pool: Sequence[Candidate],
    limit: int | None = None,
    *,
    worths: Mapping[str, float] | None = None,
    vector_weight: float = 0.0,
) -> list[RankedCandidate]:
    """Return the best chunk of each file of a pool, the best file first; then return the other chunks.

    Chunks with equal scores are sorted by path and line. Chunks whose text cannot be read are left out.

    Args:
        query: Query.
        pool: Chunks to choose from.
        limit: Maximum number of chunks; `None` is no limit.
        worths: Weight of each word of the query, see `word_worths()`; `None` means 1 for each word.
        vector_weight: Weight of embeddings, from 0 to 1. The weight of BM25 is 1 for values up to 0.5, and then falls
            to 0.
    """
    worths = worths or dict.fromkeys(query.words, 1.0)
    words_weight = min(1.0, 2 * (1 - vector_weight))
    files = _group(query, pool)
    for file in files:
        _add_definitions(file, query)
        file.score += EXACT_NAME * _exact_name(file.words, worths) + FIRST_WORD * _first_word(file.words, query)
        penalty, file.kinds = path_penalty(file.path, query, defining=bool(file.defined))
        file.score += penalty
    _add_scaled(files, [_top_bm25(file) for file in files], words_weight)
    _add_scaled(files, [_path_score(file.words, worths) for file in files], PATH_WORDS)
    _add_folders(files, worths)
    similar = _similarities(files) if vector_weight else {}
    for file in files:
        file.score += vector_weight * max((similar.get(chunk, 0.0) for chunk in file.chunks), default=0.0)
    _add_proximity(files, _Proximity(query.words, worths), words_weight * NEAR_WORDS)
    highest = max((chunk.bm25 for chunk in pool), default=0.0) or 1.0

    def worth_showing(file: _File, chunk: Candidate) -> tuple[bool, float, int]:
        value = words_weight * (chunk.bm25 / highest + NEAR_WORDS * file.near.get(chunk, (0.0,))[0])
        return chunk not in file.defined, -value - vector_weight * similar.get(chunk, 0.0), chunk.start_line

    def best_chunks() -> Iterator[RankedCandidate]:
        for file in files:
            file.chunks.sort(key=lambda chunk: worth_showing(file, chunk))
            yield RankedCandidate(file.chunks[0], _shown_score(file.score), _reasons(query, file))

    files.sort(key=_file_key)
    ranked = chain(best_chunks(), _further(query, files))
    return list(islice((entry for entry in ranked if entry.candidate.content.text() is not None), limit))


def _add_proximity(files: Iterable[_File], proximity: "_Proximity", weight: float) -> None:
    """Read the texts of the best files, and add the proximity of words to their scores."""
    left = _FILES_WITH_NEAR
    for file in sorted(files, key=_file_key):
        best = [(chunk, chunk.content.text()) for chunk in file.chunks[: len(_CHUNK_SHARES)]]
        file.near = {chunk: proximity.of(text) for chunk, text in best if text is not None}
        if file.near:
            file.score += weight * max(near for near, _ in file.near.values())
            left -= 1
            if not left:
                return


def _shown_score(sum_of_parts: float) -> float:
    """Return the score for a sum of parts: higher for a higher sum, and above 0."""
    return 1 + sum_of_parts if sum_of_parts >= 0 else math.exp(sum_of_parts)


def _file_key(file: _File) -> tuple[float, str]:
    return -file.score, file.path


def _group(query: Query, pool: Sequence[Candidate]) -> list[_File]:
    """Group the chunks of a pool by file."""
    chunks: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in sorted(pool, key=lambda chunk: (-chunk.bm25, -(chunk.cosine or 0.0), chunk.start_line)):
        chunks[candidate.path].append(candidate)
    return [_File(path, of_file, match_path(path, query.words)) for path, of_file in chunks.items()]


def _add_definitions(file: _File, query: Query) -> None:
    for symbol in query.symbols:
        for chunk in file.chunks:
            if chunk not in file.defined and chunk.content.defines(symbol):
                file.defined[chunk] = symbol
                file.named = file.named or joined_stem(file.path) == re.sub(r"[\W_]", "", symbol).lower()
    if file.defined:
        file.score += (DEFINES_ASKED if _asks_for_definition(query) else DEFINES) + DEFINES_NAMED * file.named


def _asks_for_definition(query: Query) -> bool:
    """Return True if a query is a name and not a topic. A lowercase word such as `response` counts as a topic."""
    text = query.text.strip()
    return query.symbolic and not (text.isalpha() and text.islower())


def _exact_name(words: PathWords, worths: Mapping[str, float]) -> float:
    """Return the score of an exact name, from 0 to 1; 0 if the file has another name.

    The score is the highest weight of a word in the name, divided by the highest weight of all words.
    """
    return max((worths[word] for word in words.stem), default=0.0) / max(worths.values()) if words.exact else 0.0


def _first_word(words: PathWords, query: Query) -> float:
    """Return 1 if the name of a file has the first word of the query, 1/2 for the second word, and so on."""
    return 1 / (1 + query.words.index(words.stem[0])) if words.stem else 0.0


def _top_bm25(file: _File) -> float:
    return sum(share * chunk.bm25 for share, chunk in zip(_CHUNK_SHARES, file.chunks, strict=False))


def _path_score(words: PathWords, worths: Mapping[str, float]) -> float:
    """Return BM25 of the words in a path; each word counts once."""
    length = 1 - _BM25_B + _BM25_B * words.parts / _MEAN_PARTS
    return sum(worths[word] for word in words.anywhere) * (_BM25_K1 + 1) / (1 + _BM25_K1 * length)


def _add_scaled(files: Sequence[_File], values: Sequence[float], weight: float) -> None:
    """Add values to the scores of files, each divided by the highest value."""
    highest = max(values, default=0.0) or 1.0
    for file, value in zip(files, values, strict=True):
        file.score += weight * value / highest


def _add_folders(files: Iterable[_File], worths: Mapping[str, float]) -> None:
    every = sum(worths.values())
    for file in files:
        file.score += FOLDER_WORDS * sum(worths[word] for word in file.words.folder) / every


def _similarities(files: Iterable[_File]) -> dict[Candidate, float]:
    """Return the similarity of each chunk to the query: 1 for the best file, and 0 from rank 50 on.

    The cosines themselves are not used, because they lie in a narrow range, which differs between queries.
    """
    cosines = {chunk: chunk.cosine for file in files for chunk in file.chunks if chunk.cosine is not None}
    best: dict[str, float] = {}
    for chunk, cosine in cosines.items():
        best[chunk.path] = max(cosine, best.get(chunk.path, 0.0))
    ordered = sorted(best.values(), reverse=True)
    highest, lowest = (
        ordered[0] if ordered else 0.0,
        ordered[_VECTOR_RANKS - 1] if len(ordered) >= _VECTOR_RANKS else 0.0,
    )
    width = highest - lowest
    return {chunk: max(0.0, (cosine - lowest) / width) if width > 0 else 1.0 for chunk, cosine in cosines.items()}


class _Proximity:
    """Counter of neighbouring words of a query that are near each other in a text."""

    def __init__(self, words: Sequence[str], worths: Mapping[str, float]) -> None:
        """Prepare the search.

        Args:
            words: Words of the query.
            worths: Weight of each word.
        """
        roots = [rough_stem(word) for word in words]
        self._pairs: dict[tuple[str, str], tuple[float, str]] = {}
        for (first, second), (root, next_root) in zip(pairwise(words), pairwise(roots), strict=True):
            if root != next_root:
                worth = min(worths[first], worths[second])
                self._pairs[root, next_root] = worth, f'has "{first}" near "{second}"'
        self._every = sum(worth for worth, _ in self._pairs.values())
        longest_first = sorted(set(roots), key=lambda root: (-len(root), root))
        any_root = f"({'|'.join(map(re.escape, longest_first))})"
        # Words of a script without blanks overlap: they are pairs of characters.
        self._roots = re.compile(f"(?={any_root})" if any(map(is_unspaced, roots)) else any_root)

    def of(self, text: str) -> tuple[float, list[str]]:
        """Return the proximity of the words in a text, from 0 to 1, and the reasons for it as texts."""
        if not self._pairs:
            return 0.0, []
        text = to_nfc(text)
        lower = text.lower()
        if len(lower) != len(text):  # a few letters become two letters in lower case, which would shift offsets
            text = lower
        found = [
            (one.start(1), one.end(1), one[1])
            for one in self._roots.finditer(lower)
            if _begins_word(text, one.start(1)) or is_unspaced(one[1])
        ]
        counts: dict[tuple[str, str], float] = defaultdict(float)
        for number, (_, end, root) in enumerate(found):
            seen = set[str]()
            for start, _, later in found[number + 1 : number + 1 + len(root) + _NEAR_CHARS]:
                if start - end > _NEAR_CHARS:
                    break
                if later not in seen:
                    seen.add(later)
                    counts[root, later] += 1
                    counts[later, root] += 0.5
        near, reasons = 0.0, list[str]()
        for pair, (worth, reason) in self._pairs.items():
            if count := counts.get(pair):
                near += worth * count / (count + 1)
                reasons.append(reason)
        return near / self._every, reasons


def _begins_word(text: str, at: int) -> bool:
    """Return True if a word, or a part of an identifier, begins at a character."""
    before, here = text[at - 1 : at], text[at]
    if not before.isalnum():
        return True
    return here.isupper() and (not before.isupper() or text[at + 1 : at + 2].islower())


def _reasons(query: Query, file: _File) -> list[str]:
    """Return the reasons for the score of a file; the first chunk of the file is the result."""
    first = file.chunks[0]
    reasons = (
        [f'defines "{file.defined[first]}"' + (", like the name of its file" if file.named else "")]
        if file.defined
        else []
    )
    if file.words.exact and len(file.words.stem) > 1:
        reasons.append("its file is named by words of the query")
    if file.words.anywhere:
        reasons.append("path has " + ", ".join(f'"{word}"' for word in file.words.anywhere))
    _, near = max(file.near.values(), key=lambda one: one[0], default=(0.0, list[str]()))
    if not file.defined:  # with a definition, the reason would be trivial: parts of a name are near each other
        reasons += near
    reasons += _match_reasons(first)
    if len(file.chunks) > 1:
        reasons.append(f"the best of {len(file.chunks)} chunks of its file")
    reasons += [f"{kind}, which the query does not ask for" for kind in file.kinds]
    return [*reasons, query.remark] if query.remark else reasons


def _match_reasons(chunk: Candidate) -> Iterator[str]:
    if chunk.bm25 >= LEAST_BM25:
        yield f"BM25 {chunk.bm25:.1f}"
    if chunk.cosine is not None:
        yield f"cosine {chunk.cosine:.2f}"


def _further(query: Query, files: Sequence[_File]) -> Iterator[RankedCandidate]:
    """Yield all chunks except the first of each file, with scores below the scores of all first chunks.

    The second chunk of a better file comes first, and the second chunk of a file before its third.
    """
    least = _shown_score(files[-1].score) if files else 0.0
    ranked: list[RankedCandidate] = []
    for file in files:
        for better, chunk in enumerate(file.chunks[1:], 1):
            reasons = [f'defines "{file.defined[chunk]}"'] if chunk in file.defined else []
            reasons += [*_match_reasons(chunk), f"{plural(better, 'better chunk')} in its file"]
            score = least * math.exp(file.score - files[0].score) * _REPEAT_FACTOR**better
            ranked.append(RankedCandidate(chunk, score, [*reasons, query.remark] if query.remark else reasons))
    yield from sorted(ranked, key=lambda entry: (-entry.score, entry.candidate.path, entry.candidate.start_line))


def most_relevant_lines(text: str, query: Query) -> list[int]:
    """Return the indexes of lines that define a symbol of the query, or else of lines with most of its words."""
    text = to_nfc(text)
    for symbol in query.symbols:
        if lines := list(islice(definition_lines(text, symbol), _MAX_RELEVANT_LINES)):
            return lines
    # A line end at the end of the text is not followed by another line.
    most = _count_words(query, split_camel_case(text).lower().removesuffix("\n").split("\n"))
    best = max(most)
    return list(islice((index for index, count in enumerate(most) if count == best), _MAX_RELEVANT_LINES))


def count_words(query: Query, texts: Iterable[str]) -> list[int]:
    """Return the number of words of the query, in any form, for each text."""
    return _count_words(query, (split_camel_case(to_nfc(text)).lower() for text in texts))


def _count_words(query: Query, prepared: Iterable[str]) -> list[int]:
    """Return the number of words of the query for each text; texts must be in lower case, with camel case split."""
    roots = [rough_stem(word) for word in query.words]
    return [[root in text for root in roots].count(True) for text in prepared]
