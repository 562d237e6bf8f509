"""A query to places: the chunks that its words and vectors find, fused; then the same ranking as without an index."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from ripwrap._fts import pool_of, portions, warn
from ripwrap._ranking.score import Candidate, Ranked, ranked
from ripwrap._ranking.tokens import Query
from ripwrap._source import Source, place_of
from ripwrap.index.database import check, restored
from ripwrap.results import RankedChunk

if TYPE_CHECKING:
    from sqlite3 import Connection

Pool: TypeAlias = Sequence[tuple[int, float]]
"""Chunks by their number, each with a score that compares within this pool alone, the best first."""

Searcher: TypeAlias = "Callable[[Connection, int], Pool | None]"
"""Gives a pool by vectors, with cosines, out of a view; `None` if it has no vectors."""

RRF = 60
"""How soon a place in a pool counts little."""

WEIGHT, SYMBOL_WEIGHT = 0.3, 0.2
"""What vectors say of what both say; of a name less, because words find it better."""

# Of what a view has: the chunk, its file and where it starts in that. CROSS keeps SQLite to this order.
_IN_VIEW = (
    "SELECT chunk.id, blob.path, chunk.start FROM chunk CROSS JOIN blob ON blob.id = chunk.blob"
    " CROSS JOIN tree ON tree.view = ? AND tree.path = blob.path AND tree.blob = blob.id WHERE chunk.id IN ({})"
)
_CANDIDATES = (
    "SELECT chunk.id, blob.path, chunk.line, chunk.text, blob.id, chunk.symbol"
    " FROM chunk JOIN blob ON blob.id = chunk.blob"
)


@dataclass(frozen=True, slots=True)
class Vectors:
    """What vectors have to say.

    Attributes:
        searcher: Gives a pool of them; `None` if they cannot be asked.
        weight: How much they say, from 0 (nothing) to 1 (all); `None` is `WEIGHT`, or `SYMBOL_WEIGHT` for a name.
        missing: Why they cannot be asked, for whoever reads the reasons.
        lacking: What they do not know, for the same.
    """

    searcher: "Searcher | None"
    weight: float | None = None
    missing: str = ""
    lacking: str = ""

    def weight_for(self, query: Query) -> float:
        """How much they say of this query."""
        if self.weight is not None:
            return self.weight
        return SYMBOL_WEIGHT if query.symbolic else WEIGHT


def search(
    database: "Connection",
    view: int,
    query: Query,
    limit: int | None,
    vectors: Vectors | None = None,
) -> list[RankedChunk]:
    """The best places in a view.

    Args:
        database: The index, in a transaction.
        view: The view's number.
        query: What is asked for.
        limit: How many at most; `None` gives all that are ranked.
        vectors: What gives a second pool; `None` if there is none.
    """
    warn(query)
    words = lexical(database, view, query)
    alike = vectors.searcher(database, view) if vectors is not None and vectors.searcher is not None else None
    both: dict[int, float] | None = None
    said = ""
    if vectors is not None and alike is not None:
        weight = vectors.weight_for(query)
        both = dict(fused([(words, 1 - weight), (alike, weight)]))
        said = vectors.lacking
    elif vectors is not None:
        said = f"without vectors: {vectors.missing or 'no chunk has one'}"
    origins: dict[_Key, _Origin] = {}
    candidates: list[Candidate] = []
    for candidate, origin in _candidates(database, dict(words), dict(alike or ()), both):
        candidates.append(candidate)
        origins[_key(candidate)] = origin
    found = ranked(query, candidates, limit)
    if said:
        for entry in found:
            entry.reasons.append(said)
    return list(_places(database, query, found, origins))


def fused(pools: Sequence[tuple[Pool, float]]) -> Pool:
    """One pool out of several with weights, by reciprocal rank: a chunk's score is the sum of weight / (60 + rank).

    A pool that weighs nothing adds nothing, also no chunks.
    """
    scores: dict[int, float] = defaultdict(float)
    for pool, weight in pools:
        for rank, (number, _) in enumerate(pool if weight else (), 1):
            scores[number] += weight / (RRF + rank)
    return sorted(scores.items(), key=lambda entry: (-entry[1], entry[0]))


def lexical(database: "Connection", view: int, query: Query) -> Pool:
    """The chunks of a view that are best by BM25, and those that may define a symbol of the query.

    How much a word is worth is counted over all views; what this one has not is left out afterwards. Equal ones are in
    the order of path and place, so that it does not matter in which order files came into the index.
    """
    return pool_of(database, query, partial(_in_view, database, view))


def _in_view(database: "Connection", view: int, rows: Collection[int]) -> dict[int, tuple[bytes, int]]:
    """Those of the chunks that a view has, with what they are ordered by."""
    check()
    places: dict[int, tuple[bytes, int]] = {}
    for some in portions(list(rows)):
        statement = _IN_VIEW.format(",".join("?" * len(some)))
        for row, path, start in database.execute(statement, (view, *some)):
            places[row] = (path if isinstance(path, bytes) else path.encode(), start)
    return places


_Key: TypeAlias = tuple[str, int, str]
_Origin: TypeAlias = tuple[int, str | None]  # The content that a chunk is of, and its symbol.


def _key(candidate: Candidate) -> _Key:
    return candidate.path, candidate.start_line, candidate.text


def _candidates(
    database: "Connection",
    words: Mapping[int, float],
    alike: Mapping[int, float],
    both: Mapping[int, float] | None,
) -> Iterator[tuple[Candidate, _Origin]]:
    for some in portions(list(words if both is None else both)):
        statement = f"{_CANDIDATES} WHERE chunk.id IN ({','.join('?' * len(some))})"
        for number, path, line, kept, blob, symbol in database.execute(statement, some):
            text = restored(kept)
            last = line + text.count("\n") - text.endswith("\n")
            bm25, cosine = words.get(number, 0.0), alike.get(number)
            score = None if both is None else both[number]
            candidate = Candidate(restored(path), line, last, text, bm25, cosine, score)
            yield candidate, (blob, None if symbol is None else restored(symbol))


def _places(
    database: "Connection", query: Query, found: Sequence[Ranked], origins: Mapping[_Key, _Origin]
) -> Iterator[RankedChunk]:
    sources: dict[int, Source] = {}
    for entry in found:
        check()
        blob, symbol = origins[_key(entry.candidate)]
        if blob not in sources:
            sources[blob] = _source(database, blob, entry.candidate.path)
        yield place_of(query, entry, sources[blob], symbol)


def _source(database: "Connection", blob: int, path: str) -> Source:
    """A file, put together from its chunks, which may overlap."""
    parts: list[str] = []
    size, exact = 0, True
    for start, kept in database.execute("SELECT start, text FROM chunk WHERE blob = ? ORDER BY start", (blob,)):
        exact = exact and isinstance(kept, str)
        text = restored(kept)
        parts.append(text[max(size - start, 0) :])
        size = max(size, start + len(text))
    return Source(path, "".join(parts), exact)
