"""Rank a pool of chunks, with the reasons for each score; pure.

Parts of a score, where 1 is the best BM25 of the pool:

    BM25, or with vectors its rank and theirs fused          0 to 1
    the chunk defines a symbol of the query                  3, or 4.5 if the file is named like it
    words of the query in the names of file and folder       their share of all words
    the file has the best sum of scores                      0.2 for its best chunk; less for other files
    tests, examples, legacy code                             all of it times 0.3, unless the query asks for them
    `__init__`                                               all of it times 0.5, unless that, or it defines a symbol
    the file has a better chunk                              times 0.25 for each
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from ripwrap._ranking.definitions import definition_lines, has_definition
from ripwrap._ranking.paths import joined_stem, path_weight, words_in_path
from ripwrap._ranking.query import Query, rough_stem, split_camel_case, to_nfc
from ripwrap._text import plural

POOL_SIZE = 100
"""Chunks of a pool: the best by BM25."""

PATH_WEIGHT = 2.0
"""Weight in BM25 of a word in the path; a word in the text has 1."""

# Each weight was chosen by the NDCG@10 of rankings with and without it on repositories of the public semble benchmark.
# docs/retrieval.md says how to measure a ranking; do that before and after a change of any of these.

DEFINITION_SCORE = 3.0
"""Score of a chunk that defines a symbol of the query."""
SAME_NAME_FACTOR = 1.5
"""Factor of `DEFINITION_SCORE` if the file is named like the symbol."""
PATH_WORDS_SCORE = 1.0
"""Score of a path that has all words of the query; a path with some of them has their share."""
COHERENCE_SCORE = 0.2
"""Score of the best chunk of the file with the highest sum of scores; other files have their share."""
REPEAT_FACTOR = 0.25
"""Factor of a chunk for each better chunk of its file."""

LEAST_BM25 = 0.05
"""Lowest BM25 that is listed as a reason. If few chunks are ranked and most have the words, all are close to 0."""

_MAX_RELEVANT_LINES = 16
"""Maximum number of lines of a chunk that are compared to choose its name."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk of the pool.

    Attributes:
        path: Path of its file.
        start_line: Number of its first line, from 1.
        end_line: Number of its last line.
        text: Text.
        bm25: BM25; more is better.
        cosine: Cosine of its vector and the query's; None if the search by vectors did not find it.
        fused: Score of both fused, which replaces BM25; None without vectors.
    """

    path: str
    start_line: int
    end_line: int
    text: str
    bm25: float
    cosine: float | None = None
    fused: float | None = None

    @property
    def match(self) -> float:
        """Score that counts: fused if there are vectors, BM25 otherwise."""
        return self.bm25 if self.fused is None else self.fused


@dataclass(slots=True)
class RankedCandidate:
    """A chunk with its score.

    Attributes:
        candidate: Chunk.
        score: Score; comparable within one ranking only.
        defining: True if the chunk defines a symbol of the query.
        reasons: Parts of the score, in words.
    """

    candidate: Candidate
    score: float
    defining: bool = False
    reasons: list[str] = field(default_factory=list[str])


def rank_candidates(query: Query, pool: Sequence[Candidate], limit: int | None = None) -> list[RankedCandidate]:
    """Return the best chunks of a pool, the best first; equal ones by path and line."""
    best = max((candidate.match for candidate in pool), default=0.0) or 1.0
    entries = [_score(query, candidate, best) for candidate in pool]
    _add_coherence(entries)
    for entry in entries:
        weight, kinds = path_weight(entry.candidate.path, query, defining=entry.defining)
        entry.score *= weight
        entry.reasons += [f"{kind}, which the query does not ask for" for kind in kinds]
        if query.remark:
            entry.reasons.append(query.remark)
    return _lower_repeats(entries)[:limit]


def _score(query: Query, candidate: Candidate, best: float) -> RankedCandidate:
    entry = RankedCandidate(candidate, candidate.match / best)
    for symbol in query.symbols:
        if has_definition(candidate.text, symbol):
            like_it = joined_stem(candidate.path) == re.sub(r"[\W_]", "", symbol).lower()
            entry.defining = True
            entry.score += DEFINITION_SCORE * (SAME_NAME_FACTOR if like_it else 1.0)
            entry.reasons.append(f'defines "{symbol}"' + (", like the name of its file" if like_it else ""))
            break
    if words := words_in_path(candidate.path, query.words):
        entry.score += PATH_WORDS_SCORE * len(words) / len(query.words)
        entry.reasons.append("path has " + ", ".join(f'"{word}"' for word in words))
    if candidate.bm25 >= LEAST_BM25:
        entry.reasons.append(f"BM25 {candidate.bm25:.1f}")
    if candidate.cosine is not None:
        entry.reasons.append(f"cosine {candidate.cosine:.2f}")
    return entry


def _add_coherence(entries: Sequence[RankedCandidate]) -> None:
    """Raise the best chunk of each file by the sum of the scores of its chunks."""
    files: dict[str, list[RankedCandidate]] = defaultdict(list)
    for entry in entries:
        files[entry.candidate.path].append(entry)
    sums = {path: sum(entry.score for entry in of_file) for path, of_file in files.items()}
    highest = max(sums.values(), default=0.0) or 1.0
    for path, of_file in files.items():
        first = min(of_file, key=_sort_key)
        first.score += COHERENCE_SCORE * sums[path] / highest
        if len(of_file) > 1:
            first.reasons.append(f"the best of {len(of_file)} chunks of its file")


def _lower_repeats(entries: Sequence[RankedCandidate]) -> list[RankedCandidate]:
    """Lower each chunk for every better one of its file, and sort by score."""
    seen: dict[str, int] = defaultdict(int)
    for entry in sorted(entries, key=_sort_key):
        before = seen[entry.candidate.path]
        seen[entry.candidate.path] += 1
        if before:
            entry.score *= REPEAT_FACTOR**before
            entry.reasons.append(f"{plural(before, 'better chunk')} in its file")
    return sorted(entries, key=_sort_key)


def _sort_key(entry: RankedCandidate) -> tuple[float, str, int]:
    return -entry.score, entry.candidate.path, entry.candidate.start_line


def most_relevant_lines(text: str, query: Query) -> list[int]:
    """Return the indexes of the first lines that define a symbol of the query, or else that have most of its words."""
    text = to_nfc(text)
    for symbol in query.symbols:
        if lines := list(islice(definition_lines(text, symbol), _MAX_RELEVANT_LINES)):
            return lines
    # The line end of the last line begins no other line of this text.
    most = count_words(query, text.removesuffix("\n").split("\n"))
    best = max(most)
    return list(islice((index for index, count in enumerate(most) if count == best), _MAX_RELEVANT_LINES))


def count_words(query: Query, texts: Iterable[str]) -> list[int]:
    """Return for each text how many words of the query it has, in any form."""
    roots = [rough_stem(word) for word in query.words]
    prepared = (split_camel_case(to_nfc(text)).lower() for text in texts)
    return [sum(root in text for root in roots) for text in prepared]
