"""A pool of chunks with their BM25 to a ranking, each with the reasons for its place: pure.

What counts, in the order of its worth, where 1 is the best BM25 of the pool:

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
from collections.abc import Sequence
from dataclasses import dataclass, field

from ripwrap._ranking.definitions import defines, line_of_definition
from ripwrap._ranking.names import named, stem_of, weight_of
from ripwrap._ranking.tokens import Query, composed, root_of, split_humps

POOL = 100
"""How many chunks are looked at: the best by BM25."""

PATH_WEIGHT = 2.0
"""What a word in the path counts in BM25, where one in the text counts 1."""

DEFINES = 3.0
NAMED_LIKE_IT = 1.5
IN_NAMES = 1.0
COHERENCE = 0.2
SATURATION = 0.25


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk of the pool.

    Attributes:
        path: Its file.
        start_line: The number of its first line, from 1.
        end_line: The number of its last.
        text: Its text.
        bm25: How well it matches; more is better.
        cosine: How much it is like the query by vectors; `None` if they did not find it.
        fused: How good it is by both, which then counts in the place of BM25; `None` if there are no vectors.
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
        """What counts of these."""
        return self.bm25 if self.fused is None else self.fused


@dataclass(slots=True)
class Ranked:
    """A chunk in its place.

    Attributes:
        candidate: The chunk.
        score: By which it has its place; comparable within one ranking alone.
        defining: Whether it defines a symbol of the query.
        reasons: What made the score, for a person.
    """

    candidate: Candidate
    score: float
    defining: bool = False
    reasons: list[str] = field(default_factory=list[str])


def ranked(query: Query, pool: Sequence[Candidate], limit: int | None = None) -> list[Ranked]:
    """The best chunks of a pool, the best first; equal ones by path and line."""
    best = max((candidate.match for candidate in pool), default=0.0) or 1.0
    entries = [_scored(query, candidate, best) for candidate in pool]
    _add_coherence(entries)
    for entry in entries:
        weight, kinds = weight_of(entry.candidate.path, query, defining=entry.defining)
        entry.score *= weight
        entry.reasons += [f"{kind}, which was not asked for" for kind in kinds]
        if query.remark:
            entry.reasons.append(query.remark)
    return _saturated(entries)[:limit]


def _scored(query: Query, candidate: Candidate, best: float) -> Ranked:
    entry = Ranked(candidate, candidate.match / best)
    for symbol in query.symbols:
        if defines(candidate.text, symbol):
            like_it = stem_of(candidate.path) == re.sub(r"[\W_]", "", symbol).lower()
            entry.defining = True
            entry.score += DEFINES * (NAMED_LIKE_IT if like_it else 1.0)
            entry.reasons.append(f'defines "{symbol}"' + (", as its file is called" if like_it else ""))
            break
    if words := named(candidate.path, query.words):
        entry.score += IN_NAMES * len(words) / len(query.words)
        entry.reasons.append("path has " + ", ".join(f'"{word}"' for word in words))
    if candidate.bm25 or candidate.cosine is None:
        entry.reasons.append(f"BM25 {candidate.bm25:.1f}")
    if candidate.cosine is not None:
        entry.reasons.append(f"cosine {candidate.cosine:.2f}")
    return entry


def _add_coherence(entries: Sequence[Ranked]) -> None:
    """Lift the best chunk of a file by what the others say of it."""
    files: dict[str, list[Ranked]] = defaultdict(list)
    for entry in entries:
        files[entry.candidate.path].append(entry)
    sums = {path: sum(entry.score for entry in of_file) for path, of_file in files.items()}
    highest = max(sums.values(), default=0.0) or 1.0
    for path, of_file in files.items():
        first = min(of_file, key=_place)
        first.score += COHERENCE * sums[path] / highest
        if len(of_file) > 1:
            first.reasons.append(f"the best of {len(of_file)} chunks of its file")


def _saturated(entries: Sequence[Ranked]) -> list[Ranked]:
    """In order, each chunk lowered for every better one of its file."""
    seen: dict[str, int] = defaultdict(int)
    for entry in sorted(entries, key=_place):
        before = seen[entry.candidate.path]
        seen[entry.candidate.path] += 1
        if before:
            entry.score *= SATURATION**before
            entry.reasons.append(f"its file has {before} better")
    return sorted(entries, key=_place)


def _place(entry: Ranked) -> tuple[float, str, int]:
    return -entry.score, entry.candidate.path, entry.candidate.start_line


def telling_line(text: str, query: Query) -> int:
    """Which line of a text, from 0, says most: the one that defines a symbol of the query, or has most of its words."""
    text = composed(text)
    for symbol in query.symbols:
        if (line := line_of_definition(text, symbol)) is not None:
            return line
    lines = split_humps(text).lower().split("\n")
    roots = [root_of(word) for word in query.words]
    most = [sum(root in line for root in roots) for line in lines]
    return most.index(max(most))
