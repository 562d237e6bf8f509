"""The tables of an index as a refresh has them: views, the files of each, and what these have in them."""

import hashlib
import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ripwrap._ranking.chunks import Chunk
from ripwrap._ranking.tokens import spread
from ripwrap._rg.argv import Command
from ripwrap._source import Source
from ripwrap._text import raw_bytes, shown, text_of
from ripwrap.index.database import restored, stored
from ripwrap.index.files import Stamp

if TYPE_CHECKING:
    from sqlite3 import Connection

_DIGEST = 16  # Bytes.


@dataclass(frozen=True, slots=True)
class View:
    """Which view is meant: a folder, on a branch, with the options that choose its files, as JSON."""

    root: str
    name: str
    options: str

    @property
    def key(self) -> tuple[str | bytes, str, str | bytes]:
        """What it is found by."""
        return stored(self.root), self.options, stored(self.name)

    @property
    def follows(self) -> bool:
        """Whether files behind links are among its files."""
        return Command(tuple(json.loads(self.options)), self.root).follows


class Row(NamedTuple):
    """A file of a view, as the index has it."""

    path: str
    blob: int | None
    note: str | None
    size: int
    mtime_ns: int
    ctime_ns: int

    @property
    def stamp(self) -> Stamp:
        """What is compared with the file."""
        return self[3:]


def generation_of(database: "Connection", view: View) -> int | None:
    """What changes with every refresh that writes; `None` if the view was never refreshed."""
    found = database.execute("SELECT generation FROM view WHERE root = ? AND options = ? AND name = ?", view.key)
    row = found.fetchone()
    return None if row is None else int(row[0])


def number_of(database: "Connection", view: View) -> int | None:
    """The view's number in the tables; `None` if it was never refreshed."""
    found = database.execute("SELECT id FROM view WHERE root = ? AND options = ? AND name = ?", view.key).fetchone()
    return None if found is None else int(found[0])


def rows_of(database: "Connection", number: int | None) -> dict[str, Row]:
    """The files of a view."""
    statement = "SELECT path, blob, note, size, mtime_ns, ctime_ns FROM tree WHERE view = ?"
    rows = {row[0]: row for row in map(Row._make, database.execute(statement, (number,)))}
    for path in [path for path in rows if isinstance(path, bytes)]:  # few are
        row = rows.pop(path)
        rows[restored(path)] = row._replace(path=restored(path))
    return rows


def latest(database: "Connection", view: View) -> dict[str, Row]:
    """The files of the view that the folder had at last, if that is another one."""
    found = database.execute(
        "SELECT id, name FROM view WHERE root = ? AND options = ? ORDER BY changed DESC LIMIT 1", view.key[:2]
    ).fetchone()
    return {} if found is None or found[1] == view.key[2] else rows_of(database, int(found[0]))


def numbered(database: "Connection", view: View) -> int:
    """The view's number, once it is noted that it is changed now."""
    database.execute(
        "INSERT INTO view (root, options, name, generation, changed) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET generation = excluded.generation, changed = excluded.changed",
        (*view.key, secrets.randbits(62), time.time_ns()),
    )
    number = number_of(database, view)
    assert number is not None  # noqa: S101 - it has just been put there
    return number


def content_of(database: "Connection", path: str, digest: bytes) -> int | None:
    """The number of a content that is known under its path."""
    found = database.execute("SELECT id FROM blob WHERE path = ? AND digest = ?", (stored(path), digest)).fetchone()
    return None if found is None else int(found[0])


def add(database: "Connection", source: Source, digest: bytes, pieces: Sequence[Chunk]) -> int:
    """Put the content of a file into the index, cut into pieces; its number."""
    statement = "INSERT INTO blob (path, digest) VALUES (?, ?)"
    blob = int(database.execute(statement, (stored(source.path), digest)).lastrowid or 0)
    first = int(database.execute("SELECT coalesce(max(id), 0) + 1 FROM chunk").fetchone()[0])
    texts = [source.text[piece.start : piece.end] for piece in pieces]
    kept = texts if source.exact else [stored(text) for text in texts]
    database.executemany(
        "INSERT INTO chunk (id, blob, start, line, digest, text, symbol) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            (number, blob, piece.start, piece.start_line, _digest_of(text), text, piece.symbol and stored(piece.symbol))
            for number, (piece, text) in enumerate(zip(pieces, kept, strict=True), first)
        ),
    )
    named = spread(shown(source.path))
    database.executemany(
        "INSERT INTO fts (rowid, path, body) VALUES (?, ?, ?)",
        ((number, named, _indexed(text)) for number, text in enumerate(kept, first)),
    )
    return blob


def _digest_of(text: str | bytes) -> bytes:
    """What an embedding of a chunk is found by."""
    raw = text if isinstance(text, bytes) else text.encode()
    return hashlib.blake2b(raw, digest_size=_DIGEST).digest()


def _indexed(text: str | bytes) -> str:
    """A chunk's text as full-text search has it."""
    return spread(text if isinstance(text, str) else text_of(raw_bytes(restored(text))))


def remove_unused(database: "Connection", blob: int) -> int:
    """Remove a content that no view has any more; how many chunks that were."""
    if database.execute("SELECT 1 FROM tree WHERE blob = ? LIMIT 1", (blob,)).fetchone():
        return 0
    found = database.execute("SELECT path FROM blob WHERE id = ?", (blob,)).fetchone()
    if found is None:
        return 0
    named = spread(shown(restored(found[0])))
    chunks = database.execute("SELECT id, text FROM chunk WHERE blob = ?", (blob,)).fetchall()
    # A table without content has to be told what it had.
    database.executemany(
        "INSERT INTO fts (fts, rowid, path, body) VALUES ('delete', ?, ?, ?)",
        ((number, named, _indexed(text)) for number, text in chunks),
    )
    database.execute("DELETE FROM chunk WHERE blob = ?", (blob,))
    database.execute("DELETE FROM blob WHERE id = ?", (blob,))
    return len(chunks)
