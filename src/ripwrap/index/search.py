"""Search in an index: fuse the chunks that words and vectors find, then rank them as without an index.

Words find chunks by BM25, vectors by cosine. Their scores do not compare, so the two pools are fused by rank:
https://dl.acm.org/doi/10.1145/1571941.1572114 (Cormack, Clarke and Büttcher, Reciprocal Rank Fusion, SIGIR 2009).
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from ripwrap._ranking.document import SourceText, to_ranked_chunk
from ripwrap._ranking.fts import batches, bm25_pool, log_remark
from ripwrap._ranking.query import Query
from ripwrap._ranking.scoring import Candidate, RankedCandidate, rank_candidates
from ripwrap.index.models import Pool, VectorSearch
from ripwrap.index.storage.database import check, decode_text
from ripwrap.results import RankedChunk

if TYPE_CHECKING:
    from sqlite3 import Connection

RRF_K = 60
"""Constant of reciprocal rank fusion, as in the paper; with a larger one, the first ranks count less."""

VECTOR_WEIGHT, SYMBOL_VECTOR_WEIGHT = 0.3, 0.2
"""Share of vectors in the fused score; less for a query that is a name, because words find names better."""

# Chunks that a view has, with path and start. CROSS JOIN keeps SQLite to this order of the tables, so that it starts
# from the few chunks of the list: https://sqlite.org/optoverview.html, 'Manual Control of Query Plans'.
_SELECT_IN_VIEW = (
    "SELECT chunk.id, blob.path, chunk.start FROM chunk CROSS JOIN blob ON blob.id = chunk.blob"
    " CROSS JOIN tree ON tree.view = ? AND tree.path = blob.path AND tree.blob = blob.id WHERE chunk.id IN ({})"
)
_SELECT_CANDIDATES = (
    "SELECT chunk.id, blob.path, chunk.line, chunk.text, blob.id, chunk.symbol"
    " FROM chunk JOIN blob ON blob.id = chunk.blob"
)


def search(
    database: "Connection",
    view: int,
    query: Query,
    limit: int | None,
    vectors: VectorSearch | None = None,
) -> list[RankedChunk]:
    """Return the best results of a view.

    Args:
        database: The index, in a transaction.
        view: Number of the view.
        query: The query.
        limit: Maximum number of results; `None` gives all that are ranked.
        vectors: Ranking of the query by vectors; `None` without an embedder.
    """
    log_remark(query)
    words = word_pool(database, view, query)
    similar = vectors.search(database, view) if vectors is not None and vectors.search is not None else None
    both: dict[int, float] | None = None
    note = ""
    if vectors is not None and similar is not None:
        weight = _weight(vectors, query)
        both = dict(fuse([(words, 1 - weight), (similar, weight)]))
        note = vectors.incomplete
    elif vectors is not None:
        note = f"without vectors: {vectors.unavailable or 'no chunk has one'}"
    origins: dict[_Key, _Origin] = {}
    candidates: list[Candidate] = []
    for candidate, origin in _read_candidates(database, dict(words), dict(similar or ()), both):
        candidates.append(candidate)
        origins[_key(candidate)] = origin
    found = rank_candidates(query, candidates, limit)
    if note:
        for entry in found:
            entry.reasons.append(note)
    return list(_to_results(database, query, found, origins))


def _weight(vectors: VectorSearch, query: Query) -> float:
    """Return the share of vectors in the fused score of a query."""
    if vectors.weight is not None:
        return vectors.weight
    return SYMBOL_VECTOR_WEIGHT if query.symbolic else VECTOR_WEIGHT


def fuse(pools: Sequence[tuple[Pool, float]]) -> Pool:
    """Fuse pools by reciprocal rank: the score of a chunk is the sum of weight / (60 + rank).

    A pool of weight 0 adds no chunks.

    Args:
        pools: Each with its weight.
    """
    scores: dict[int, float] = defaultdict(float)
    for pool, weight in pools:
        for rank, (number, _) in enumerate(pool if weight else (), 1):
            scores[number] += weight / (RRF_K + rank)
    return sorted(scores.items(), key=lambda entry: (-entry[1], entry[0]))


def word_pool(database: "Connection", view: int, query: Query) -> Pool:
    """Return the chunks of a view that are best by BM25, and those that may define a symbol of the query.

    The weight of a word is counted over all views. Chunks of other views are dropped afterwards. Chunks with the same
    score are in the order of path and start, so that the order in which files were indexed does not matter.
    """
    return bm25_pool(database, query, partial(_keep_in_view, database, view))


def _keep_in_view(database: "Connection", view: int, rows: Collection[int]) -> dict[int, tuple[bytes, int]]:
    """Map the chunks that a view has to the path and start by which they are ordered; drop the others."""
    check()
    order: dict[int, tuple[bytes, int]] = {}
    for some in batches(list(rows)):
        statement = _SELECT_IN_VIEW.format(",".join("?" * len(some)))
        for row, path, start in database.execute(statement, (view, *some)):
            order[row] = (path if isinstance(path, bytes) else path.encode(), start)
    return order


_Key: TypeAlias = tuple[str, int, str]
"""Path, first line and text of a chunk."""
_Origin: TypeAlias = tuple[int, str | None]
"""Number of the content of a chunk, and its symbol."""


def _key(candidate: Candidate) -> _Key:
    return candidate.path, candidate.start_line, candidate.text


def _read_candidates(
    database: "Connection",
    words: Mapping[int, float],
    similar: Mapping[int, float],
    both: Mapping[int, float] | None,
) -> Iterator[tuple[Candidate, _Origin]]:
    for some in batches(list(words if both is None else both)):
        statement = f"{_SELECT_CANDIDATES} WHERE chunk.id IN ({','.join('?' * len(some))})"
        for number, path, line, stored, blob, symbol in database.execute(statement, some):
            text = decode_text(stored)
            last = line + text.count("\n") - text.endswith("\n")
            bm25, cosine = words.get(number, 0.0), similar.get(number)
            score = None if both is None else both[number]
            candidate = Candidate(decode_text(path), line, last, text, bm25, cosine, score)
            yield candidate, (blob, None if symbol is None else decode_text(symbol))


def _to_results(
    database: "Connection", query: Query, found: Sequence[RankedCandidate], origins: Mapping[_Key, _Origin]
) -> Iterator[RankedChunk]:
    sources: dict[int, SourceText] = {}
    for entry in found:
        check()
        blob, symbol = origins[_key(entry.candidate)]
        if blob not in sources:
            sources[blob] = _read_source(database, blob, entry.candidate.path)
        yield to_ranked_chunk(query, entry, sources[blob], symbol)


def _read_source(database: "Connection", blob: int, path: str) -> SourceText:
    """Return the text of a file, joined from its chunks, which may overlap."""
    parts: list[str] = []
    size, exact = 0, True
    for start, stored in database.execute("SELECT start, text FROM chunk WHERE blob = ? ORDER BY start", (blob,)):
        exact = exact and isinstance(stored, str)
        text = decode_text(stored)
        parts.append(text[max(size - start, 0) :])
        size = max(size, start + len(text))
    return SourceText(path, "".join(parts), exact)
