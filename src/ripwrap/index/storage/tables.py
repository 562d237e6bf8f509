"""Rows of the tables of an index: views, their files, and the contents of files."""

import json
import secrets
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from sqlite3 import Connection
from typing import NamedTuple

from ripwrap._code.line_outline import guess_code
from ripwrap._code.outline import CodeNames
from ripwrap._ranking.passages import MAX_TEXT_CHARS
from ripwrap._text import as_utf8
from ripwrap.index.file_state import IndexedFile, Stamp
from ripwrap.index.splitting import SplitText
from ripwrap.index.storage.database import (
    IS_SENT,
    SENT_KEY,
    DamageError,
    decode_text,
    encode_text,
    last_id,
    to_integer,
)
from ripwrap.index.storage.postings import PostingsWriter, change_count

_MAX_CODE_BYTES = 16_000_000
"""Maximum size in bytes of the definitions of a content, which a file of `MAX_FILE_BYTES` does not reach."""

WITHOUT_VECTOR = (
    "FROM tree CROSS JOIN chunk ON chunk.blob = tree.blob WHERE tree.view = ? AND NOT EXISTS"
    " (SELECT 1 FROM vec WHERE vec.model = ? AND vec.digest = chunk.digest AND length(vec.v) = ?)"
)
"""SQL for the chunks of a view that have no embedding. Its parameters are the id of the view, the name of the model,
and the size of a vector in bytes.
"""


@dataclass(frozen=True, slots=True)
class View:
    """View of an index: a directory, on a branch, with the options that choose its files."""

    root: str
    name: str
    options: str

    @property
    def key(self) -> tuple[str | bytes, str, str | bytes]:
        """Key of the row of this view in the table `view`: root, options and name."""
        return encode_text(self.root), self.options, encode_text(self.name)

    @property
    def follows(self) -> bool:
        """True if symbolic links are followed."""
        return _follows(self.options)


def indexed_file(
    view: View,
    path: str | bytes,
    digest: bytes,
    stamp: Stamp,
    code_of: Callable[[str], CodeNames | None] = lambda _: None,
) -> IndexedFile:
    """Return the object that reads a file of a view; `path`, `digest` and `stamp` are the stored values."""
    return IndexedFile(view.root, decode_text(path), stamp, digest, code_of, follow=view.follows)


@lru_cache(maxsize=16)
def _follows(options: str) -> bool:
    return "--follow" in json.loads(options)


class Row(NamedTuple):
    """File of a view, in the state that the index stores."""

    path: str
    blob: int | None
    note: str | None
    size: int
    mtime_ns: int
    ctime_ns: int

    @property
    def stamp(self) -> Stamp:
        """Size and times in the index, to compare with the current size and times of the file."""
        return self[3:]


class Sent(NamedTuple):
    """Number of texts and number of characters that were sent to an embedding model; a retry counts again."""

    texts: int = 0
    characters: int = 0

    def plus(self, other: "Sent") -> "Sent":
        """Return the sum of this object and `other`: texts plus texts, and characters plus characters."""
        return Sent(self.texts + other.texts, self.characters + other.characters)


class EmbeddingModel(NamedTuple):
    """State of the embeddings of one model in an index."""

    dimension: int | None
    generation: int | None


def set_stamps_digest(database: Connection, number: int, stamps: bytes) -> None:
    """Store the digest of the paths, sizes and times of a view's files, after all changes of their rows."""
    database.execute("UPDATE view SET stamps = ? WHERE id = ?", (stamps, number))


def generation_of(database: Connection, view: View) -> int | None:
    """Return the generation of a view: a random number that each change replaces; `None` before the first refresh."""
    found = database.execute("SELECT generation FROM view WHERE root = ? AND options = ? AND name = ?", view.key)
    row = found.fetchone()
    return None if row is None else to_integer(row[0])


def number_of(database: Connection, view: View) -> int | None:
    """Return the id of a view in the tables; `None` if the view was never refreshed."""
    found = database.execute("SELECT id FROM view WHERE root = ? AND options = ? AND name = ?", view.key).fetchone()
    return None if found is None else int(found[0])


def rows_of(database: Connection, number: int | None) -> dict[str, Row]:
    """Return the stored rows of the files of a view, by path; empty if `number`, the id of the view, is `None`."""
    statement = "SELECT path, blob, note, size, mtime_ns, ctime_ns FROM tree WHERE view = ?"
    rows = (Row(decode_text(path), *others) for path, *others in database.execute(statement, (number,)))
    return {row.path: row for row in rows}


def notes_of(database: Connection, number: int | None) -> list[tuple[str, str]]:
    """Return the paths and notes of those files of a view that are `'binary'`, `'unreadable'` or `'cut'`; see `Row`."""
    found = database.execute("SELECT path, note FROM tree WHERE view = ? AND note IS NOT NULL", (number,))
    return [(decode_text(path), note) for path, note in found]


def rows_of_latest_view(database: Connection, view: View) -> dict[str, Row]:
    """Return the rows of the files, by path, of the view that changed last.

    Only views with the directory and the options of `view` count. The result is empty if the view that changed last is
    `view` itself, or if there is no such view.
    """
    found = database.execute(
        "SELECT id, name FROM view WHERE root = ? AND options = ? ORDER BY changed DESC LIMIT 1", view.key[:2]
    ).fetchone()
    return {} if found is None or found[1] == view.key[2] else rows_of(database, int(found[0]))


def mark_changed(database: Connection, view: View) -> int:
    """Give a view a new generation and the current time, and return the id of the view; make the view if it is missing.

    The stored digest of its files is removed. `set_stamps_digest()` sets it again after the changes.
    """
    database.execute(
        "INSERT INTO view (root, options, name, generation, changed) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET generation = excluded.generation, changed = excluded.changed,"
        " stamps = NULL",
        (*view.key, secrets.randbits(62), time.time_ns()),
    )
    number = number_of(database, view)
    assert number is not None  # noqa: S101 - the row was written above
    return number


def model_of(database: Connection, name: str) -> EmbeddingModel:
    """Return the dimension and generation of a model's embeddings."""
    row = database.execute("SELECT dimension, generation FROM model WHERE name = ?", (name,)).fetchone()
    return EmbeddingModel(None, None) if row is None else EmbeddingModel(to_integer(row[0]), to_integer(row[1]))


def sent_to(database: Connection, name: str) -> Sent:
    """Return how many texts and characters all processes have sent to a model since the index was made."""
    rows = dict(database.execute(f"SELECT key, CAST(value AS INTEGER) FROM meta WHERE {IS_SENT}"))  # noqa: S608 - a constant
    return Sent(*(to_integer(rows.get(key, 0)) for key in _sent_keys(name)))


def add_sent(database: Connection, name: str, sent: Sent) -> None:
    """Add to the numbers of texts and characters that were sent to a model; a write transaction must be open."""
    statement = (
        "INSERT INTO meta (key, value) VALUES (?, ?)"
        " ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + excluded.value"
    )
    database.executemany(statement, zip(_sent_keys(name), sent, strict=True))


def _sent_keys(name: str) -> tuple[str, str]:
    return f"{SENT_KEY}texts {name}", f"{SENT_KEY}characters {name}"


def find_blob(database: Connection, path: str, digest: bytes) -> int | None:
    """Return the id of the stored content with this path and digest; `None` if the index does not have the content."""
    found = database.execute(
        "SELECT id FROM blob WHERE path = ? AND digest = ?", (encode_text(path), digest)
    ).fetchone()
    return None if found is None else int(found[0])


def digests_of(database: Connection, path: str) -> list[bytes]:
    """Return the digests of the contents that the index has under a path."""
    rows = database.execute("SELECT digest FROM blob WHERE path = ?", (encode_text(path),))
    return [digest for (digest,) in rows if isinstance(digest, bytes)]


def add_blob(database: Connection, postings: PostingsWriter, path: str, digest: bytes, text: SplitText) -> int:
    """Add the content of a file to the index, with its chunks, and return the id of the content."""
    first = last_id(database, "chunk") + 1
    names = zlib.compress("\n".join(map(" ".join, text.names)).encode(), 1)
    code = zlib.compress(text.code.encode(), 1) if text.code else b""
    statement = "INSERT INTO blob (path, digest, names, code) VALUES (?, ?, ?, ?)"
    blob = int(database.execute(statement, (encode_text(path), digest, names, code)).lastrowid or 0)
    database.executemany(
        "INSERT INTO chunk (blob, id, start, size, line, last, digest, symbol) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (blob, number, *position[:-1], digest, position.symbol and encode_text(position.symbol))
            for number, (position, digest) in enumerate(zip(text.positions, text.digests, strict=True), first)
        ),
    )
    database.executemany(
        "INSERT INTO definition (name, chunk) VALUES (?, ?)",
        ((name, number) for number, names in enumerate(text.names, first) for name in names),
    )
    postings.add(blob, first, as_utf8(path), text)
    change_count(database, len(text.positions))
    return blob


def code_of(database: Connection, blob: int, path: str, text: str) -> CodeNames | None:
    """Return the definitions of a content, whose text is `text`, as they are stored, or guessed if there are none."""
    (stored,) = database.execute("SELECT code FROM blob WHERE id = ?", (blob,)).fetchone() or (None,)
    return (_code_of if len(text) <= MAX_TEXT_CHARS else _code_of.__wrapped__)(stored or b"", path, text)


@lru_cache(maxsize=64)
def _code_of(stored: bytes, path: str, text: str) -> CodeNames | None:
    if not stored:
        return guess_code(path, text)
    try:
        raw = zlib.decompressobj().decompress(stored, _MAX_CODE_BYTES)
        return CodeNames.of(json.loads(raw), text)
    except (zlib.error, ValueError, TypeError, RecursionError) as error:
        raise DamageError("a list of definitions is damaged") from error


@lru_cache(maxsize=2048)
def names_of(stored: bytes | None) -> list[str]:
    """Return the names that each chunk of a content defines, separated by blanks, as `add_blob()` compressed them."""
    try:
        return zlib.decompress(stored).decode().split("\n") if stored else []
    except (zlib.error, UnicodeDecodeError, TypeError) as error:
        raise DamageError("a list of names is damaged") from error


def remove_unused(database: Connection, blob: int) -> int:
    """Delete a stored file content, with its chunks, if no view uses it; return the number of deleted chunks."""
    if database.execute("SELECT 1 FROM tree WHERE blob = ? LIMIT 1", (blob,)).fetchone():
        return 0
    statement = (
        "SELECT min(chunk.id), max(chunk.id), names FROM blob JOIN chunk ON chunk.blob = blob.id WHERE blob.id = ?"
    )
    first, last, names = database.execute(statement, (blob,)).fetchone()
    database.executemany(
        "DELETE FROM definition WHERE name = ? AND chunk BETWEEN ? AND ?",
        ((name, first, last) for name in {name for line in names_of(names) for name in line.split(" ")}),
    )
    removed = database.execute("DELETE FROM chunk WHERE blob = ?", (blob,)).rowcount
    if database.execute("DELETE FROM blob WHERE id = ?", (blob,)).rowcount:
        database.execute("INSERT INTO stale (blob) VALUES (?)", (blob,))
        change_count(database, -removed)
    return removed
