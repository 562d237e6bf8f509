"""What the database keeps of vectors: how long a model's are, which texts of a view lack one, and what comes anew."""

import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ripwrap._fts import portions
from ripwrap._text import raw_bytes, text_of
from ripwrap.index.batches import Embedded, LengthError
from ripwrap.index.database import check, restored, writing

if TYPE_CHECKING:
    from sqlite3 import Connection

_CONTENTS = (
    "SELECT tree.path, blob.digest, (SELECT id FROM chunk WHERE blob = tree.blob ORDER BY start LIMIT 1), tree.blob"
    " FROM tree CROSS JOIN blob ON blob.id = tree.blob WHERE tree.view = ?"
)

LACKING = (
    "FROM tree CROSS JOIN chunk ON chunk.blob = tree.blob WHERE tree.view = ? AND NOT EXISTS"
    " (SELECT 1 FROM vec WHERE vec.model = ? AND vec.digest = chunk.digest AND length(vec.v) = ?)"
    " AND trim(chunk.text, ' ' || char(9, 10, 11, 12, 13)) <> ''"
)
"""Chunks of a view that have no vector of a model with so many bytes; what is blank needs none."""

Content: TypeAlias = tuple[str | bytes, bytes, int | None, int]
"""What a file of a view has: its path, the digest of all of it, the number of its first chunk, which the others follow,
and its own. As long as all of that is equal, so are its chunks."""


class Model(NamedTuple):
    """A model's vectors.

    Attributes:
        dimension: How many numbers one has; `None` if there are none.
        generation: Changes with them.
    """

    dimension: int | None
    generation: int | None


@dataclass(slots=True)
class Complete:
    """Contents whose texts all have vectors, as long as nobody else changes those.

    Attributes:
        generation: The model's, then.
        contents: The contents.
        view: The generation of the view that lacks nothing; `None` if none is known to.
    """

    generation: int | None = None
    contents: set[Content] = field(default_factory=set[Content])
    view: int | None = None


def model_of(database: "Connection", name: str) -> Model:
    """How long a model's vectors are, and what changes with them."""
    row = database.execute("SELECT dimension, generation FROM model WHERE name = ?", (name,)).fetchone()
    return Model(None, None) if row is None else Model(int(row[0]), int(row[1]))


def contents_of(database: "Connection", number: int | None) -> set[Content]:
    """What the files of a view have."""
    return set(database.execute(_CONTENTS, (number,)))


def lacking(
    database: "Connection", number: int | None, model: str, dimension: int | None, complete: Complete
) -> dict[bytes, int]:
    """Texts of a view that have no vector, each by its digest, with a chunk that has it, in the order of the files.

    Args:
        database: The index, in a transaction.
        number: The view's.
        model: The model's name.
        dimension: How long its vectors are.
        complete: What is not looked at, to which is added what has all.
    """
    contents = contents_of(database, number)
    complete.contents &= contents
    new = sorted(contents - complete.contents, key=lambda content: ordered(content[0]))
    found: dict[bytes, int] = {}
    incomplete: set[int] = set()
    for some in portions([content[-1] for content in new]):
        statement = (
            f"SELECT chunk.digest, chunk.id, chunk.blob {LACKING} AND tree.blob IN ({','.join('?' * len(some))})"
            " ORDER BY tree.path, chunk.start"
        )
        for digest, chunk, blob in database.execute(statement, (number, model, 2 * (dimension or 0), *some)):
            found.setdefault(digest, chunk)
            incomplete.add(blob)
    complete.contents.update(content for content in new if content[-1] not in incomplete)
    return found


def texts_of(database: "Connection", chunks: Sequence[int]) -> list[tuple[bytes, str]]:
    """The texts of some chunks by digest; of a chunk that is no more there is none."""
    texts: dict[bytes, str] = {}
    for some in portions(chunks):
        statement = f"SELECT digest, text FROM chunk WHERE id IN ({','.join('?' * len(some))})"  # noqa: S608 - marks
        for digest, kept in database.execute(statement, some):
            texts[digest] = kept if isinstance(kept, str) else text_of(raw_bytes(restored(kept)))
    return list(texts.items())


def vectors_of(database: "Connection", model: str, dimension: int, digests: Collection[bytes]) -> dict[bytes, bytes]:
    """The vectors of texts, as they are stored, by digest; those of another length are left out."""
    found: dict[bytes, bytes] = {}
    for some in portions(list(digests)):
        check()
        marks = ",".join("?" * len(some))
        statement = f"SELECT digest, v FROM vec WHERE model = ? AND length(v) = ? AND digest IN ({marks})"  # noqa: S608
        found.update(database.execute(statement, (model, 2 * dimension, *some)))
    return found


def keep(database: "Connection", model: str, batch: Embedded[bytes], *, anew: bool = False) -> tuple[Model, Model]:
    """Keep the vectors of a batch; what was kept of the model before, and is now.

    Args:
        database: The index.
        model: The model's name.
        batch: By the digests of texts.
        anew: Whether vectors of another length are thrown away for it.

    Raises:
        LengthError: There are vectors of another length, and they are not.
    """
    from ripwrap.index.vectors import pack

    length = batch.vectors.shape[1]
    with writing(database):
        before = model_of(database, model)
        if before.dimension not in (None, length):
            if not anew:  # by another process, a moment ago
                message = f"{model} answered with vectors of {length} numbers instead of {before.dimension}"
                raise LengthError(message, provider=model.partition(":")[0], length=length)
            _forget(database, model)
        now = Model(length, secrets.randbits(62))
        database.execute("INSERT OR REPLACE INTO model (name, dimension, generation) VALUES (?, ?, ?)", (model, *now))
        database.executemany(
            "INSERT OR REPLACE INTO vec (digest, model, v) VALUES (?, ?, ?)",
            ((digest, model, v) for digest, v in zip(batch.keys, pack(batch.vectors), strict=True)),
        )
    return before, now


def forget(database: "Connection", model: str, dimension: int) -> None:
    """Throw away a model's vectors, if they are of this length."""
    with writing(database):
        if model_of(database, model).dimension == dimension:
            _forget(database, model)


def doubt(database: "Connection", number: int | None, model: str) -> None:
    """Take its vector from a text of a view, so that the next refresh asks for one and sees how long it is."""
    statement = (
        "SELECT chunk.digest FROM tree CROSS JOIN chunk ON chunk.blob = tree.blob WHERE tree.view = ?"
        " AND EXISTS (SELECT 1 FROM vec WHERE vec.model = ? AND vec.digest = chunk.digest) LIMIT 1"
    )
    with writing(database):
        row: tuple[bytes] | None = database.execute(statement, (number, model)).fetchone()
        if row is not None:
            database.execute("DELETE FROM vec WHERE digest = ? AND model = ?", (*row, model))
            database.execute("UPDATE model SET generation = ? WHERE name = ?", (secrets.randbits(62), model))


def _forget(database: "Connection", model: str) -> None:
    database.execute("DELETE FROM vec WHERE model = ?", (model,))
    database.execute("DELETE FROM model WHERE name = ?", (model,))


def ordered(path: str | bytes) -> tuple[bool, bytes]:
    """As SQLite orders paths: by their bytes, those that are not UTF-8 at the end."""
    return isinstance(path, bytes), path if isinstance(path, bytes) else path.encode()
