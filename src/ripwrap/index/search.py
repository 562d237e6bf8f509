"""Search in an index: find chunks by words and by embeddings, and rank them together, in the same way as `rank()`."""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from sqlite3 import Connection
from typing import Any

from ripwrap._ranking.bm25 import best_rows, log_remark
from ripwrap._ranking.document import SourceText, to_ranked_chunk
from ripwrap._ranking.passages import BROAD, Depth, show_passages
from ripwrap._ranking.paths import names_in
from ripwrap._ranking.scoring import (
    NO_EVIDENCE,
    POOL_SIZE,
    ChunkCandidate,
    rank_candidates,
    word_worths,
)
from ripwrap._ranking.word_query import MAX_QUERY_WORDS, LongQuery, WordQuery
from ripwrap.index.file_state import IndexedFile
from ripwrap.index.models import Pool, VectorSearch
from ripwrap.index.storage.database import check, decode_text, select_in
from ripwrap.index.storage.postings import Postings, PostingsReader, WordMatches
from ripwrap.index.storage.tables import View, code_of, indexed_file, names_of, number_of
from ripwrap.results import RankedChunk

_LIKE_SIGN = re.compile("(?=[!%_])")
"""Pattern for the place before a character that has a meaning in SQL's LIKE; `!` there takes the meaning away."""

VECTOR_WEIGHT = 0.34
"""Default weight of embeddings in the score of a file; the weight of words is 1."""

# SQL for chunks that belong to a view. CROSS JOIN makes SQLite join the tables in this order, so that it starts from
# the few chunks of the list: https://sqlite.org/optoverview.html, 'Manual Control of Query Plans'.
_IN_VIEW = (
    " FROM chunk CROSS JOIN blob ON blob.id = chunk.blob"
    " CROSS JOIN tree ON tree.view = ? AND tree.path = blob.path AND tree.blob = blob.id WHERE chunk.id IN ({})"
)
_SELECT_IN_VIEW = f"SELECT chunk.id, blob.path, chunk.start, chunk.digest{_IN_VIEW}"
_FIRST_CHUNK = "(SELECT id FROM chunk AS other WHERE other.blob = blob.id ORDER BY start LIMIT 1)"
# The names that the chunks of a content define are stored together, in the order of the chunks.
_SELECT_CANDIDATES = (
    "SELECT chunk.id, chunk.line, chunk.last, chunk.symbol, chunk.start, chunk.size, chunk.digest, blob.id, names,"
    f" {_FIRST_CHUNK}, blob.path, blob.digest, tree.size, tree.mtime_ns, tree.ctime_ns{_IN_VIEW}"
)

_SELECT_FIRST = "SELECT blob, min(id) FROM chunk WHERE blob IN ({}) GROUP BY blob"
_SELECT_EMPTY = (
    "SELECT blob.id, blob.path, blob.digest, tree.size, tree.mtime_ns, tree.ctime_ns FROM blob"
    " CROSS JOIN tree ON tree.view = ? AND tree.path = blob.path AND tree.blob = blob.id"
    " WHERE blob.id IN ({}) AND NOT EXISTS (SELECT 1 FROM chunk WHERE chunk.blob = blob.id)"
)


@dataclass(slots=True)
class IndexResults:
    """Results of a search."""

    chunks: list[RankedChunk]
    changed: bool = False
    complete: bool = False
    by_vectors: bool = False
    unavailable: str = ""
    incomplete: str = ""

    def explained(self) -> list[RankedChunk]:
        """Return the results; the `reasons` of each result say if embeddings were not used, or if some are missing."""
        note = f"without embeddings: {self.unavailable}" if self.unavailable else f"{self.incomplete}"
        if not note:
            return self.chunks
        return [chunk.model_copy(update={"reasons": (*chunk.reasons, note)}) for chunk in self.chunks]


def search(
    database: Connection,
    postings: Postings,
    view: View,
    query: WordQuery,
    limit: int | None,
    vectors: VectorSearch | None = None,
    shown: Callable[[str], bool] | None = None,
    depth: Depth = BROAD,
    evidence: Mapping[str, float] = NO_EVIDENCE,
) -> IndexResults | None:
    """Return the best results for a query among the chunks of a view; `None` if the index does not have the view.

    `vectors` is a search by embeddings, or the reason why it is not available. Only paths for which `shown` returns
    True are in the results. `depth` is the number of definitions that are shown of each file. `evidence` has the paths
    that similar commits changed, each with a value from 0 to 1.
    """
    log_remark(query)
    with postings.reading(database) as reader:
        number = number_of(database, view)
        if number is None:
            return None
        similar = vectors.search(database, number) if vectors is not None and vectors.search is not None else None
        weight, unavailable, incomplete = 0.0, "", ""
        if vectors is not None and similar is not None:
            weight, incomplete = VECTOR_WEIGHT if vectors.weight is None else vectors.weight, vectors.incomplete
        elif vectors is not None:
            unavailable = vectors.unavailable or "no chunk has an embedding"
        if query.long is not None:
            query = _with_rarest(query, query.long, reader)
        match = reader.match(query.weighted(dict.fromkeys(query.words, 1.0)))
        symbols = list(query.symbols)
        defined = {row for (row,) in select_in(database, "SELECT chunk FROM definition WHERE name IN ({})", symbols)}
        named = _find_named(database, number, query)
        # BM25 is 0 if a chunk of a content with such a name has no word of the query.
        named_chunks = {row: 0.0 for _, row in select_in(database, _SELECT_FIRST, named)} | dict(match.of_blobs(named))
        words = [*named_chunks.items()]
        if weight < 1:
            words += _word_pool(database, match, number, defined)
        worths = word_worths(query.words, match.having, match.total)
        files: dict[int, IndexedFile] = {}
        chunks = _read_candidates(database, view, number, files, dict(words), dict((similar or ()) if weight else ()))
        for blob, *of_file in select_in(database, _SELECT_EMPTY, named, [number]):
            file = files[blob] = _file_of(database, view, blob, *of_file)
            content = _StoredChunk(file, 0, 0, b"", None, ())
            chunks[ChunkCandidate(file.path, 1, 1, content, 0.0)] = content
        ranked = rank_candidates(
            query, list(chunks), worths=worths, vector_weight=weight, shown=shown, evidence=evidence
        )
        of_path = {chunk.path: content.file for chunk, content in chunks.items()}

        def source_of(candidate: ChunkCandidate) -> SourceText | None:
            check()
            return of_path[candidate.path].source()

        # Passages are chosen by their words, which count nothing if the weight of embeddings is 1.
        found = show_passages(query, ranked, source_of, limit, depth) if weight < 1 else ranked
        results: list[RankedChunk] = []
        for entry in islice(found, limit):
            known = chunks.get(entry.candidate)
            if (source := source_of(entry.candidate)) is not None:
                results.append(to_ranked_chunk(query, entry, source, None if known is None else known.symbol))
        changed = any(file.changed for file in files.values())
        return IndexResults(results, changed, len(chunks) < POOL_SIZE, similar is not None, unavailable, incomplete)


def _with_rarest(query: WordQuery, long: LongQuery, postings: PostingsReader) -> WordQuery:
    """Keep the words of a long query that tell most: those with the highest products of weight and rarity."""
    having = {word: number for word in long.spare if (number := postings.frequency(word))}
    worths = query.weighted(word_worths(having, having, postings.count))
    best = {*sorted(worths, key=lambda word: -worths[word])[:MAX_QUERY_WORDS]}
    return replace(query, words=tuple(word for word in long.weights if word in best)) if best else query


def _word_pool(database: Connection, match: WordMatches, view: int, defined: Collection[int]) -> Pool:
    """Return ids and BM25 of chunks of a view: the chunks with the highest BM25, then some chunks of `defined`.

    `defined` has the ids of the chunks that define a symbol of the query. Up to `POOL_SIZE` of them are added, if they
    have a word of the query. BM25 is computed from the chunks of all views; then the chunks of other views (files of
    other branches) are dropped. Chunks with the same score are sorted by path and start, so that the order in which
    files were indexed does not matter.
    """

    def locate(rows: Collection[int]) -> dict[int, tuple[bytes, int, bytes]]:
        """Map ids of chunks to path, start and digest; drop chunks that are not in the view."""
        check()
        return {
            row: (path if isinstance(path, bytes) else path.encode(), start, digest)
            for row, path, start, digest in select_in(database, _SELECT_IN_VIEW, list(rows), [view])
        }

    pool = best_rows(match.best, locate)
    known = {row for row, _ in pool}
    defining = locate([row for row in defined if row not in known])
    some = sorted(defining, key=defining.__getitem__)[:POOL_SIZE]
    blobs = {blob for (blob,) in select_in(database, "SELECT DISTINCT blob FROM chunk WHERE id IN ({})", some)}
    scores = dict(match.of_blobs(blobs))
    return [*pool, *((row, scores[row]) for row in some if row in scores)]


def _find_named(database: Connection, view: int, query: WordQuery) -> list[int]:
    """Return the ids of the contents of files whose name the query has, at most `POOL_SIZE`, the best names first."""
    names = names_in(query)
    found: list[tuple[float, str, int]] = []
    if names:
        like = " OR ".join(["path LIKE ? ESCAPE '!'"] * len(names.pieces))
        statement = f"SELECT path, blob FROM tree WHERE view = ? AND blob IS NOT NULL AND ({like})"  # noqa: S608
        pieces = [f"%{_LIKE_SIGN.sub('!', piece)}%" for piece in names.pieces]
        for stored, blob in database.execute(statement, (view, *pieces)):
            check()
            path = decode_text(stored)
            if weight := names.weight(path):
                found.append((-weight, path, blob))
    return [blob for _, _, blob in sorted(found)[:POOL_SIZE]]


@dataclass(slots=True)
class _StoredChunk:
    """Chunk of the index. The index does not store the text of a chunk; the text is read from the file when needed."""

    file: IndexedFile
    start: int
    size: int
    key: bytes
    symbol: str | None
    defined: Collection[str]
    _text: str | None = None

    def text(self) -> str | None:
        """Return the text; `None` if the file has changed, or cannot be read."""
        if self._text is None:
            check()
            self._text = self.file.text(self.start, self.size)
        return self._text

    def names(self) -> Collection[str]:
        """Return the names whose definitions begin in the chunk."""
        return self.defined


def _read_candidates(
    database: Connection,
    view: View,
    number: int,
    files: dict[int, IndexedFile],
    words: Mapping[int, float],
    similar: Mapping[int, float],
) -> dict[ChunkCandidate, _StoredChunk]:
    """Return the candidates (chunks to rank) with their `_StoredChunk`, and add the files of the chunks to `files`."""
    found: dict[ChunkCandidate, _StoredChunk] = {}
    for row, line, last, symbol, start, size, key, blob, names, first, *of_file in select_in(
        database, _SELECT_CANDIDATES, list({**words, **similar}), [number]
    ):
        file = files.get(blob) or files.setdefault(blob, _file_of(database, view, blob, *of_file))
        known = None if symbol is None else decode_text(symbol)
        every, place = names_of(names), int(row - first)
        defined = every[place].split(" ") if place < len(every) and every[place] else []
        content = _StoredChunk(file, start, size, key, known, defined)
        found[ChunkCandidate(file.path, line, last, content, words.get(row, 0.0), similar.get(row))] = content
    return found


def _file_of(database: Connection, view: View, blob: int, path: str | bytes, digest: bytes, *stamp: Any) -> IndexedFile:
    """Return the file of a content, with its definitions as the index stores them."""
    return indexed_file(view, path, digest, tuple(stamp), lambda text: code_of(database, blob, decode_text(path), text))
