"""Search in an index: join the chunks that words and vectors find, then rank them as without an index."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ripwrap._ranking.document import SourceText, to_ranked_chunk
from ripwrap._ranking.fts import batches, best_rows, log_remark
from ripwrap._ranking.query import Query
from ripwrap._ranking.scoring import POOL_SIZE, Candidate, RankedCandidate, rank_candidates, word_worths
from ripwrap.index.models import Pool, VectorSearch
from ripwrap.index.storage.database import check, decode_text
from ripwrap.index.storage.postings import Match, PostingsReader
from ripwrap.results import RankedChunk

if TYPE_CHECKING:
    from sqlite3 import Connection

VECTOR_WEIGHT = 0.34
"""Weight of vectors in the score, where words have 1."""

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
    postings: PostingsReader,
    view: int,
    query: Query,
    limit: int | None,
    vectors: VectorSearch | None = None,
) -> list[RankedChunk]:
    """Return the best results of a view.

    Args:
        database: The index, in a transaction.
        postings: Its full-text search.
        view: Number of the view.
        query: The query.
        limit: Maximum number of results; `None` gives all that are ranked.
        vectors: Ranking of the query by vectors; `None` without an embedder.
    """
    log_remark(query)
    similar = vectors.search(database, view) if vectors is not None and vectors.search is not None else None
    weight, note = 0.0, ""
    if vectors is not None and similar is not None:
        weight, note = VECTOR_WEIGHT if vectors.weight is None else vectors.weight, vectors.incomplete
    elif vectors is not None:
        note = f"without vectors: {vectors.unavailable or 'no chunk has one'}"
    match = postings.match(query.words)
    words = _word_pool(database, match, view, query) if weight < 1 else ()
    worths = word_worths(query.words, match.having, match.total)
    origins: dict[_Key, _Origin] = {}
    candidates: list[Candidate] = []
    for candidate, origin in _read_candidates(database, dict(words), dict((similar or ()) if weight else ())):
        candidates.append(candidate)
        origins[_key(candidate)] = origin
    found = rank_candidates(query, candidates, limit, worths=worths, vector_weight=weight)
    if note:
        for entry in found:
            entry.reasons.append(note)
    return list(_to_results(database, query, found, origins))


def _word_pool(database: "Connection", match: Match, view: int, query: Query) -> Pool:
    """Return the chunks of a view that are best by BM25, and those that may define a symbol of the query.

    The weight of a word is counted over all views. Chunks of other views are dropped afterwards. Chunks with the same
    score are in the order of path and start, so that the order in which files were indexed does not matter.
    """

    def locate(rows: Collection[int]) -> dict[int, tuple[bytes, int]]:
        return _keep_in_view(database, view, rows)

    pool = best_rows(match.best, locate)
    known = {row for row, _ in pool}
    defining = locate([row for row in _find_definitions(database, query.symbols) if row not in known])
    some = sorted(defining, key=defining.__getitem__)[:POOL_SIZE]
    blobs = {blob for (blob,) in _select(database, "SELECT DISTINCT blob FROM chunk WHERE id IN ({})", some)}
    scores = dict(match.of_blobs(blobs))
    return [*pool, *((row, scores[row]) for row in some if row in scores)]


def _find_definitions(database: "Connection", symbols: Collection[str]) -> list[int]:
    """Return the chunks that may define one of the symbols."""
    return [row for (row,) in _select(database, "SELECT chunk FROM definition WHERE name IN ({})", list(symbols))]


def _select(database: "Connection", statement: str, values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    for some in batches(values):
        yield from database.execute(statement.format(",".join("?" * len(some))), some)


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
) -> Iterator[tuple[Candidate, _Origin]]:
    for some in batches(list({**words, **similar})):
        statement = f"{_SELECT_CANDIDATES} WHERE chunk.id IN ({','.join('?' * len(some))})"
        for number, path, line, stored, blob, symbol in database.execute(statement, some):
            text = decode_text(stored)
            last = line + text.count("\n") - text.endswith("\n")
            candidate = Candidate(decode_text(path), line, last, text, words.get(number, 0.0), similar.get(number))
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
