"""Rank chunks and their files, and give the reasons for each score; no I/O.

The chunks to rank are called the pool.

The score of a file is 1 plus the sum of the parts below. Each part except the first and the penalties is a number from
0 to 1, multiplied by its weight:

- BM25: the best three chunks of the file.
- named: the query has the name of the file, such as `package.json`; more than all other parts together.
- defines: a chunk defines a symbol of the query.
- exact name: the name of the file consists of one to three consecutive words of the query.
- path, directory: words of the query in the whole path, and in the directory of the file.
- near: words that are consecutive in the query are near each other in a chunk.
- vectors: the similarity of embeddings between the query and the most similar chunk of the file.
- penalties: negative numbers for tests, examples, vendored code, `__init__` and files without code, unless the query
asks for such files.

If the sum is below 0, the score is e to the power of the sum, so that it is above 0. The ranking begins with the best
chunk of each file; all other chunks follow. Of equal chunks, the results have only the first.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, pairwise
from types import MappingProxyType
from typing import Protocol

from ripwrap._ranking.paths import PathWords, match_path, name_share, names_in, path_penalty
from ripwrap._ranking.word_query import WordQuery, is_unspaced, rough_stem, split_camel_case, to_nfc
from ripwrap._text import plural

_NEAR_CHARS = 24
"""Maximum number of characters between two words that count as near each other."""


class Proximity:
    """Counter of pairs of words that are consecutive in a query and near each other in a text."""

    def __init__(self, words: Sequence[str], worths: Mapping[str, float]) -> None:
        """Compile the words of a query, which have these weights, to a pattern."""
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
        """Return how near the words are to each other in a text, from 0 to 1, and the reasons for this number."""
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
    """Return True if a word, or a part of an identifier, begins at the index `at` of a text."""
    before, here = text[at - 1 : at], text[at]
    if not before.isalnum():
        return True
    return here.isupper() and (not before.isupper() or text[at + 1 : at + 2].islower())


POOL_SIZE = 100
"""Number of chunks that are ranked because they have the highest BM25, or the most similar embeddings. Chunks with
definitions, and the best chunks of further files, are also ranked.
"""

PATH_WEIGHT = 2.0
"""Weight, in BM25, of a word in the path of a chunk's file; a word in the text of the chunk has weight 1."""

# The weights were fitted on half of 56 repositories of the public semble benchmark, and checked on the other half, on
# the repositories of docs/retrieval.md, and on docstrings (see there). After a change of a weight, measure on both
# again.

EXACT_NAME = 0.3
"""Weight, in the score of a file, of a file name that consists of one to three consecutive words of the query."""
PATH_WORDS = 0.4
"""Weight, in the score of a file, of words of the query in the path."""
FOLDER_WORDS = 0.5
"""Weight, in the score of a file, of words of the query in the name of the directory that has the file."""
NAME_SHARE = 0.6
"""Weight, in the score of a file, of the definition whose name is most like the query; see `name_share()`."""
MANY_CHUNKS = 0.05
"""Weight, in the score of a file, of the logarithm of the number of its chunks that are ranked."""
NEAR_WORDS = 0.5
"""Weight, in the score of a file, of consecutive words of the query that are near each other in the text."""
HISTORY = 0.2
"""Weight, in the score of a file, of commits that are similar to the query, as a share of the highest score."""
_LEAST_CHANGED = 0.5
"""Value of similar commits, from 0 to 1, from which they are a reason for the score."""
NO_EVIDENCE: Mapping[str, float] = MappingProxyType({})
DEFINES = 0.55
"""Weight, in the score of a file, of a definition of a symbol (name) of the query."""
DEFINES_ASKED = 3.0
"""Weight of a definition if the query asks for a definition; this weight puts it before all uses of the name."""
LONG_DEFINES = 1.0
"""Weight, for a long query, of definitions of its symbols; a symbol that several files define counts for each file by 1
divided by their number.
"""

_CHUNK_SHARES = (1.0, 0.5, 0.25)
"""Factors for the BM25 of the best, the second and the third chunk of a file. The sum of these products is the BM25 of
the file.
"""
_SHOW_NAMED = 0.5
"""Weight of `name_share()` in the choice of the chunk of a file that is shown first."""
_FILES_WITH_NAMES, _CHUNKS_WITH_NAMES = 60, 8
"""Number of files, and of the best chunks of each, whose definitions are compared with the query."""
_FILES_WITH_NEAR = 30
"""Number of files whose text is read and searched for words near each other: the files that have the highest scores
before this search.
"""
_BM25_K1, _BM25_B, _MEAN_PARTS = 1.2, 0.75, 3
"""BM25's k1 and b for paths, and the usual number of words in a path. In a longer path, a word counts less."""
LEAST_WORTH = 0.1
"""Number that is added to the weight of each word, so that no weight is 0 if no chunk has any of the words."""
_VECTOR_RANKS = 50
"""Rank from which on a file counts as not similar to the query, if files are sorted by the similarity of embeddings."""
_REPEAT_FACTOR = 0.25
"""Factor for the score of a chunk, which is applied once for each better chunk of the same file."""

LEAST_BM25 = 0.05
"""Lowest BM25 that the reasons for a score mention. If few chunks are ranked, and most of them have the words, all
values are close to 0.
"""

_MAX_RELEVANT_LINES = 16
"""Maximum number of lines of a chunk that are compared to choose the definition whose name the result has."""


class ChunkText(Protocol):
    """Interface to the text of a chunk. The text may still have to be read from the file."""

    @property
    def key(self) -> Hashable:
        """Value that equal texts share, and different texts do not."""
        ...

    def text(self) -> str | None:
        """Return the text of the chunk; `None` if the file has changed since it was split into chunks."""
        ...

    def names(self) -> Collection[str]:
        """Return the names whose definitions begin in the chunk."""
        ...


@dataclass(frozen=True)
class TextContent:
    """Content of a chunk whose text is already known."""

    known: str
    defined: Collection[str] = ()

    @property
    def key(self) -> str:
        """Text of the chunk."""
        return self.known

    def text(self) -> str:
        """Return the text of the chunk."""
        return self.known

    def names(self) -> Collection[str]:
        """Return the names whose definitions begin in the chunk."""
        return self.defined


@dataclass(frozen=True, slots=True, eq=False)
class ChunkCandidate:
    """Chunk (part of a file) that is to be ranked."""

    path: str
    start_line: int
    end_line: int
    content: ChunkText
    bm25: float
    cosine: float | None = None
    copies: int = 0


@dataclass(slots=True)
class RankedCandidate:
    """Ranked chunk, with its score."""

    candidate: ChunkCandidate
    score: float
    reasons: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class _ScoredFile:
    """File that has chunks in the pool, with the score of the file."""

    path: str
    chunks: list[ChunkCandidate]
    words: PathWords
    title: PathWords
    score: float = 0.0
    defined: dict[ChunkCandidate, str] = field(default_factory=dict[ChunkCandidate, str])
    defines: bool = False
    symbols: set[str] = field(default_factory=set[str])
    asked: float = 0.0
    kinds: tuple[str, ...] = ()
    shares: dict[ChunkCandidate, float] = field(default_factory=dict[ChunkCandidate, float])
    near: dict[ChunkCandidate, tuple[float, list[str]]] = field(
        default_factory=dict[ChunkCandidate, tuple[float, list[str]]]
    )
    changed: float = 0.0


def word_worths(words: Iterable[str], having: Mapping[str, int], total: int) -> dict[str, float]:
    """Return the weight of each word. Words that occur in fewer files or chunks have a higher weight."""
    return {word: math.log(1 + total / max(having.get(word, 0), 1)) + LEAST_WORTH for word in words}


def rank_candidates(
    query: WordQuery,
    pool: Sequence[ChunkCandidate],
    *,
    worths: Mapping[str, float] | None = None,
    vector_weight: float = 0.0,
    shown: Callable[[str], bool] | None = None,
    evidence: Mapping[str, float] = NO_EVIDENCE,
) -> Iterator[RankedCandidate]:
    """Rank chunks: return the best chunk of each file, the best file first, and then all other chunks.

    Chunks with equal scores are sorted by path and line. Chunks whose text cannot be read are left out. Of chunks with
    equal texts, only the first is returned; its reasons have their number. A text is read when its chunk is next.
    """
    worths = query.weighted(worths or dict.fromkeys(query.words, 1.0))
    title = _title_worths(query, worths)
    words_weight = min(1.0, 2 * (1 - vector_weight))
    files = _group(query, pool)
    for file in files:
        _add_definitions(file, query)
    _add_paths(files, query, worths)
    tops = [sum(share * one.bm25 for share, one in zip(_CHUNK_SHARES, file.chunks, strict=False)) for file in files]
    _add_scaled(files, tops, words_weight)
    if query.long is not None:
        _add_rare_definitions(files, query.long.symbols)
    _add_names(sorted(files, key=_file_key)[:_FILES_WITH_NAMES], title)
    similar = _similarities(files) if vector_weight else {}
    for file in files:
        file.score += vector_weight * max((similar.get(chunk, 0.0) for chunk in file.chunks), default=0.0)
    _add_proximity(files, Proximity(query.title, title), words_weight * NEAR_WORDS)
    best_score = max((_shown_score(file.score) for file in files), default=0.0)
    for file in files:  # raise the scores of files that similar commits changed
        file.changed = evidence.get(file.path, 0.0)
        file.score += HISTORY * best_score * file.changed
    highest = max((chunk.bm25 for chunk in pool), default=0.0) or 1.0

    def worth_showing(file: _ScoredFile, chunk: ChunkCandidate) -> tuple[bool, float, int]:
        value = words_weight * (chunk.bm25 / highest + NEAR_WORDS * file.near.get(chunk, (0.0,))[0])
        value += _SHOW_NAMED * file.shares.get(chunk, 0.0)
        return chunk not in file.defined, -value - vector_weight * similar.get(chunk, 0.0), chunk.start_line

    def best_chunks() -> Iterator[RankedCandidate]:
        for file in files:
            file.chunks.sort(key=lambda chunk: worth_showing(file, chunk))
            yield RankedCandidate(file.chunks[0], _shown_score(file.score), _reasons(query, file))

    files.sort(key=_file_key)
    ranked = (
        entry for entry in chain(best_chunks(), _further(query, files)) if shown is None or shown(entry.candidate.path)
    )
    return (entry for entry in _collapse(ranked) if entry.candidate.content.text() is not None)


def _collapse(ranked: Iterable[RankedCandidate]) -> list[RankedCandidate]:
    """Leave out the chunks whose text is the text of an earlier chunk, and add their number to its reasons."""
    first: dict[Hashable, RankedCandidate] = {}
    total: Counter[Hashable] = Counter()
    for entry in ranked:
        key = entry.candidate.content.key
        first.setdefault(key, entry)
        total[key] += 1 + entry.candidate.copies
    for key, entry in first.items():
        if total[key] > 1:
            entry.reasons.append(f"the first of {total[key]} equal chunks; {total[key] - 1} left out")
    return list(first.values())


def _add_proximity(files: Iterable[_ScoredFile], proximity: Proximity, weight: float) -> None:
    """Read the best chunks of the best files, and add the proximity of the query's words in them to the scores."""
    left = _FILES_WITH_NEAR
    known: dict[Hashable, tuple[float, list[str]]] = {}
    for file in sorted(files, key=_file_key):
        best = file.chunks[: len(_CHUNK_SHARES)]
        new = {chunk.content.key: chunk for chunk in best if chunk.content.key not in known}
        texts = {key: chunk.content.text() for key, chunk in new.items()}
        known |= {key: proximity.of(text) for key, text in texts.items() if text is not None}
        file.near = {chunk: known[chunk.content.key] for chunk in best if chunk.content.key in known}
        if file.near:
            file.score += weight * max(near for near, _ in file.near.values())
            left -= bool(new)
            if not left:
                return


def _shown_score(sum_of_parts: float) -> float:
    """Return the score that results have, given the sum of its parts: above 0, and higher for a higher sum."""
    return 1 + sum_of_parts if sum_of_parts >= 0 else math.exp(sum_of_parts)


def _file_key(file: _ScoredFile) -> tuple[float, str]:
    return -file.score, file.path


def score_paths(query: WordQuery, paths: Mapping[str, bool], worths: Mapping[str, float]) -> dict[str, float]:
    """Return the parts of the scores of files that depend on their paths alone."""
    files = [_scored_file(query, path) for path in paths]
    for file in files:
        file.defines = paths[file.path]
    _add_paths(files, query, query.weighted(worths))
    return {file.path: file.score for file in files}


def _add_paths(files: Sequence[_ScoredFile], query: WordQuery, worths: Mapping[str, float]) -> None:
    """Add the parts that depend on the paths of the files to their scores."""
    title = _title_worths(query, worths)
    for file in files:
        if query.long is None:  # many names are words of a long query
            file.score += EXACT_NAME * file.title.exact
        penalty, file.kinds = path_penalty(file.path, query, defining=file.defines)
        file.asked = names_in(query).weight(file.path)
        file.score += penalty + file.asked
    of_words = (sum(worths[word] for word in file.words.anywhere) for file in files)  # each word counts once
    lengths = (1 - _BM25_B + _BM25_B * file.words.parts / _MEAN_PARTS for file in files)
    _add_scaled(
        files, [one / (1 + _BM25_K1 * length) for one, length in zip(of_words, lengths, strict=True)], PATH_WORDS
    )
    every = sum(title.values())
    for file in files:
        file.score += FOLDER_WORDS * sum(title[word] for word in file.title.folder) / every


def _title_worths(query: WordQuery, worths: Mapping[str, float]) -> dict[str, float]:
    return {word: worths.get(word, LEAST_WORTH) for word in query.title}


def _scored_file(query: WordQuery, path: str, chunks: Iterable[ChunkCandidate] = ()) -> _ScoredFile:
    return _ScoredFile(path, list(chunks), match_path(path, query.words), match_path(path, query.title))


def _group(query: WordQuery, pool: Sequence[ChunkCandidate]) -> list[_ScoredFile]:
    """Group chunks by file; within a file, the chunk with the highest BM25 is first."""
    chunks: dict[str, list[ChunkCandidate]] = defaultdict(list)
    for candidate in sorted(pool, key=lambda chunk: (-chunk.bm25, -(chunk.cosine or 0.0), chunk.start_line)):
        chunks[candidate.path].append(candidate)
    return [_scored_file(query, path, of_file) for path, of_file in chunks.items()]


def _add_definitions(file: _ScoredFile, query: WordQuery) -> None:
    for chunk in file.chunks if query.symbols else ():
        names = chunk.content.names()
        if found := [symbol for symbol in query.symbols if symbol in names]:
            file.symbols.update(found)
            file.defined[chunk] = found[0]
    file.defines = bool(file.defined)
    if file.defines and query.long is None:
        is_word = query.text.strip().isalpha() and query.text.islower()  # such as `response`, which may be a topic
        file.score += DEFINES_ASKED if query.symbolic and not is_word else DEFINES


def _add_rare_definitions(files: Sequence[_ScoredFile], weights: Mapping[str, float]) -> None:
    """Add the definitions of the symbols of a long query to the scores; the first symbol of a file counts most."""
    number = Counter(name for file in files for name in file.symbols)
    for file in files:
        values = sorted((weights[name] / number[name] for name in file.symbols), reverse=True)
        worth = sum(value / (1 + 2 * place) for place, value in enumerate(values))
        file.score += LONG_DEFINES * worth


def _add_names(files: Iterable[_ScoredFile], worths: Mapping[str, float]) -> None:
    """Add the name that is most like the query, and the number of chunks, to the scores of files."""
    words = tuple(worths)
    for file in files:
        for chunk in file.chunks[:_CHUNKS_WITH_NAMES]:
            file.shares[chunk] = max((name_share(name, words, worths) for name in chunk.content.names()), default=0.0)
        file.score += NAME_SHARE * max(file.shares.values()) + MANY_CHUNKS * math.log((1 + len(file.chunks)) / 2)


def _add_scaled(files: Sequence[_ScoredFile], values: Sequence[float], weight: float) -> None:
    """Add the item of `values` for each file, divided by the highest item and multiplied by `weight`, to its score."""
    highest = max(values, default=0.0) or 1.0
    for file, value in zip(files, values, strict=True):
        file.score += weight * value / highest


def _similarities(files: Iterable[_ScoredFile]) -> dict[ChunkCandidate, float]:
    """Map each chunk with a cosine to its similarity to the query, from 0 to 1.

    A file has the cosine of its most similar chunk. The highest cosine of all files becomes 1. The cosine of the 50th
    most similar file becomes 0, and so do lower cosines; with fewer than 50 files, a cosine of 0 becomes 0. The cosines
    themselves are not used, because they lie in a narrow range, which differs between queries.
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


def _reasons(query: WordQuery, file: _ScoredFile) -> list[str]:
    """Return the reasons for the score of a file, as texts. They are shown with the first of `file.chunks`."""
    first = file.chunks[0]
    reasons = [f'defines "{file.defined[first]}"'] if file.defined else []
    if file.asked:
        reasons.insert(0, "the query has the name of its file")
    elif file.title.exact and len(file.title.stem) > 1:
        reasons.append("its file is named by words of the query")
    if file.words.anywhere:
        reasons.append("path has " + ", ".join(f'"{word}"' for word in file.words.anywhere))
    _, near = max(file.near.values(), key=lambda one: one[0], default=(0.0, list[str]()))
    if not file.defined:  # with a definition, the reason would be trivial: parts of a name are near each other
        reasons += near
    reasons += _match_reasons(first)
    if file.changed >= _LEAST_CHANGED:
        reasons.append("commits with such messages changed its file")
    if len(file.chunks) > 1:
        reasons.append(f"the best of {len(file.chunks)} chunks of its file")
    reasons += [f"{kind}, which the query does not ask for" for kind in file.kinds if not file.asked]
    return [*reasons, query.remark] if query.remark else reasons


def _match_reasons(chunk: ChunkCandidate) -> Iterator[str]:
    if chunk.bm25 >= LEAST_BM25:
        yield f"BM25 {chunk.bm25:.1f}"
    if chunk.cosine is not None:
        yield f"cosine {chunk.cosine:.2f}"


def _further(query: WordQuery, files: Sequence[_ScoredFile]) -> Iterator[RankedCandidate]:
    """Yield all chunks except the first chunk of each file, with scores below the scores of all first chunks.

    The second chunk of the best file comes first. Within a file, the second chunk comes before the third, and so on.
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


def most_relevant_lines(text: str, query: WordQuery, names: Sequence[tuple[int, str]] = ()) -> list[int]:
    """Return the indexes of the lines that define a symbol of the query, at most 16; else of those with the most words.

    `names` has the index and the name of each line that defines one. Only the first symbol that is defined counts.
    """
    text = to_nfc(text)
    for symbol in query.symbols:
        if defining := [line for line, name in names if name == symbol]:
            return defining[:_MAX_RELEVANT_LINES]
    # A line end at the end of the text is not followed by another line.
    most = _count_words(query, split_camel_case(text).lower().removesuffix("\n").split("\n"))
    best = max(most)
    return list(islice((index for index, count in enumerate(most) if count == best), _MAX_RELEVANT_LINES))


def count_words(query: WordQuery, texts: Iterable[str]) -> list[int]:
    """Count, for each text, the words of the query that occur in the text in any form, such as `parse` in `parsing`."""
    return _count_words(query, (split_camel_case(to_nfc(text)).lower() for text in texts))


def _count_words(query: WordQuery, prepared: Iterable[str]) -> list[int]:
    """Count the words of the query in each text; the texts must be in lower case, with camel case split into words."""
    roots = [rough_stem(word) for word in query.words]
    return [[root in text for root in roots].count(True) for text in prepared]
