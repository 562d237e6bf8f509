"""Store and delete embeddings in the database, and find the texts of a view that have no embedding."""

import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias

from ripwrap._text import raw_bytes, text_of
from ripwrap.index.embeddings.batching import Embedded, LengthError
from ripwrap.index.file_state import ChunkSpan
from ripwrap.index.storage.database import check, select_in, write_transaction
from ripwrap.index.storage.packages import Connection
from ripwrap.index.storage.tables import WITHOUT_VECTOR, EmbeddingModel, View, indexed_file, model_of, number_of

_CONTENTS = (
    "SELECT tree.path, blob.digest, (SELECT id FROM chunk WHERE blob = tree.blob ORDER BY start LIMIT 1), tree.blob"
    " FROM tree CROSS JOIN blob ON blob.id = tree.blob WHERE tree.view = ?"
)

_SELECT_MISSING = (
    f"SELECT chunk.digest, chunk.id, chunk.blob {WITHOUT_VECTOR} AND tree.blob IN ({{}})"
    " ORDER BY tree.path, chunk.start"
)

_CHUNKS = (
    "SELECT chunk.digest, chunk.start, chunk.at, chunk.size, blob.path, blob.digest, tree.size, tree.mtime_ns,"
    " tree.ctime_ns FROM chunk CROSS JOIN blob ON blob.id = chunk.blob"
    " CROSS JOIN tree ON tree.view = ? AND tree.path = blob.path AND tree.blob = blob.id WHERE chunk.id IN ({})"
    " ORDER BY blob.id, chunk.start"
)

IndexedContent: TypeAlias = tuple[str | bytes, bytes, int | None, int]
"""Content of a file: path, digest, id of the first chunk (the other chunks have the ids after it; `None` without
chunks), and id of the content. If two such values are equal, their chunks are equal, too.
"""


@dataclass(slots=True)
class Complete:
    """Record of the files whose texts all have embeddings of a model; valid until embeddings of the model change."""

    generation: int | None = None
    contents: set[IndexedContent] = field(default_factory=set[IndexedContent])
    view: int | None = None


def contents_of(database: Connection, number: int | None) -> set[IndexedContent]:
    """Return a `IndexedContent` tuple for each file of a view: its path, its digest and its ids, but not its text.

    A view is the files of a directory on a branch. The set is empty if `number`, the id of the view, is `None`.
    """
    return set(database.execute(_CONTENTS, (number,)))


def find_missing(
    database: Connection, number: int | None, model: str, dimension: int | None, complete: Complete
) -> dict[bytes, int]:
    """Find the texts of a view that have no embedding; map the digest of each text to the id of a chunk with this text.

    The texts are sorted by path and, within a file, by line.
    """
    contents = contents_of(database, number)
    complete.contents &= contents
    new = sorted(contents - complete.contents, key=lambda content: path_key(content[0]))
    found: dict[bytes, int] = {}
    incomplete: set[int] = set()
    blobs, before = [content[-1] for content in new], (number, model, 2 * (dimension or 0))
    for digest, chunk, blob in select_in(database, _SELECT_MISSING, blobs, before):
        found.setdefault(digest, chunk)
        incomplete.add(blob)
    complete.contents.update(content for content in new if content[-1] not in incomplete)
    return found


def texts_of(database: Connection, view: View, chunks: Sequence[int]) -> list[tuple[bytes, str]]:
    """Return the digest and text of each chunk in `chunks`, a list of ids.

    Deleted chunks, and chunks of changed files, are skipped.
    """
    texts: dict[bytes, str] = {}
    rows = select_in(database, _CHUNKS, chunks, (number_of(database, view),))
    for (path, of_file, *stamp), of_chunks in groupby(rows, itemgetter(4, 5, 6, 7, 8)):
        check()
        file = indexed_file(view, path, of_file, tuple(stamp))
        for digest, *span in map(itemgetter(0, 1, 2, 3), of_chunks):
            if (text := file.text(ChunkSpan(*span))) is not None:
                texts[digest] = text_of(raw_bytes(text))
    return list(texts.items())


def vectors_of(database: Connection, model: str, dimension: int, digests: Collection[bytes]) -> dict[bytes, bytes]:
    """Map digests of texts to the stored bytes of their vectors; skip vectors that do not have `dimension` numbers."""
    statement = "SELECT digest, v FROM vec WHERE model = ? AND length(v) = ? AND digest IN ({})"
    return dict(select_in(database, statement, list(digests), (model, 2 * dimension)))


def store_batch(
    database: Connection, model: str, batch: Embedded[bytes], *, replace: bool = False
) -> tuple[EmbeddingModel, EmbeddingModel]:
    """Store the vectors of a batch; return the model's row (dimension and generation) before and after."""
    from ripwrap.index.embeddings.vectors import pack  # late: numpy

    length = batch.vectors.shape[1]
    with write_transaction(database):
        before = model_of(database, model)
        if before.dimension not in (None, length):
            if not replace:  # another process has just stored vectors of the other length
                message = (
                    f"{model} answered with vectors of {length} numbers, but another process has stored vectors of "
                    f"{before.dimension}; use the same model settings in all processes"
                )
                raise LengthError(message, provider=model.partition(":")[0], length=length)
            _drop_model(database, model)
        now = EmbeddingModel(length, secrets.randbits(62))
        database.execute("INSERT OR REPLACE INTO model (name, dimension, generation) VALUES (?, ?, ?)", (model, *now))
        database.executemany(
            "INSERT OR REPLACE INTO vec (digest, model, v) VALUES (?, ?, ?)",
            ((digest, model, v) for digest, v in zip(batch.keys, pack(batch.vectors), strict=True)),
        )
    return before, now


def drop_model(database: Connection, model: str, dimension: int) -> None:
    """Delete all embeddings of a model if its vectors have `dimension` numbers."""
    with write_transaction(database):
        if model_of(database, model).dimension == dimension:
            _drop_model(database, model)


def drop_one(database: Connection, number: int | None, model: str) -> None:
    """Delete the embedding of one text of a view.

    The next refresh must then embed this text, and so notices that the embedder returns vectors of a new length.
    """
    statement = (
        "SELECT chunk.digest FROM tree CROSS JOIN chunk ON chunk.blob = tree.blob WHERE tree.view = ?"
        " AND EXISTS (SELECT 1 FROM vec WHERE vec.model = ? AND vec.digest = chunk.digest) LIMIT 1"
    )
    with write_transaction(database):
        row: tuple[bytes] | None = database.execute(statement, (number, model)).fetchone()
        if row is not None:
            database.execute("DELETE FROM vec WHERE digest = ? AND model = ?", (*row, model))
            database.execute("UPDATE model SET generation = ? WHERE name = ?", (secrets.randbits(62), model))


def _drop_model(database: Connection, model: str) -> None:
    database.execute("DELETE FROM vec WHERE model = ?", (model,))
    database.execute("DELETE FROM model WHERE name = ?", (model,))


def path_key(path: str | bytes) -> tuple[bool, bytes]:
    """Return the sort key of a path in SQLite's order: by bytes; paths that are not UTF-8 come last."""
    return isinstance(path, bytes), path if isinstance(path, bytes) else path.encode()
