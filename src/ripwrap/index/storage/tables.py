"""Rows of the tables of an index: views, their files, and the contents of files."""

import hashlib
import json
import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ripwrap._code.windows import Chunk
from ripwrap._ranking.definitions import DEFINITION_PREFIX
from ripwrap._ranking.document import SourceText
from ripwrap._ripgrep.command import Command
from ripwrap._text import raw_bytes, shown, text_of
from ripwrap.index.file_state import Stamp
from ripwrap.index.storage.database import decode_text, encode_text
from ripwrap.index.storage.postings import PostingsWriter, count_documents

if TYPE_CHECKING:
    from sqlite3 import Connection

_DIGEST_BYTES = 16
_DEFINED_NAME = re.compile(rf"(?:{DEFINITION_PREFIX}|#[ \t]*define[ \t]+)([^\W\d]\w*)")

WITHOUT_VECTOR = (
    "FROM tree CROSS JOIN chunk ON chunk.blob = tree.blob WHERE tree.view = ? AND NOT EXISTS"
    " (SELECT 1 FROM vec WHERE vec.model = ? AND vec.digest = chunk.digest AND length(vec.v) = ?)"
    " AND trim(chunk.text, ' ' || char(9, 10, 11, 12, 13)) <> ''"
)
"""SQL for chunks of a view without a vector, given view, model and bytes of a vector; blank chunks need none."""


@dataclass(frozen=True, slots=True)
class View:
    """View of an index: a folder, on a branch, with the options that choose its files.

    Attributes:
        root: Folder, as a real path.
        name: Branch; see `branches.view_of()`.
        options: Flags of rg, as a JSON list.
    """

    root: str
    name: str
    options: str

    @property
    def key(self) -> tuple[str | bytes, str, str | bytes]:
        """Key of the view in its table."""
        return encode_text(self.root), self.options, encode_text(self.name)

    @property
    def follows(self) -> bool:
        """True if links are followed."""
        return Command(tuple(json.loads(self.options)), self.root).follows


class Row(NamedTuple):
    """File of a view, as the index has it.

    Attributes:
        path: Path, relative to the root of the view.
        blob: Number of the content; `None` if the file is left out.
        note: `'binary'`, `'unreadable'` or `'cut'`; `None` if all of the file is indexed.
        size: Size in bytes; -1 if the next refresh must read the file.
        mtime_ns: Time of the last change of content, in nanoseconds.
        ctime_ns: Time of the last change of anything, in nanoseconds.
    """

    path: str
    blob: int | None
    note: str | None
    size: int
    mtime_ns: int
    ctime_ns: int

    @property
    def stamp(self) -> Stamp:
        """Stamp to compare with that of the file."""
        return self[3:]


class Model(NamedTuple):
    """The vectors of an embedding model.

    Attributes:
        dimension: Numbers of a vector; `None` if the index has no vectors of the model.
        generation: A number that changes with the vectors.
    """

    dimension: int | None
    generation: int | None


def stamps_digest_of(database: "Connection", number: int | None) -> bytes | None:
    """Return the digest of the stamps of a view's files; `None` if it is not known."""
    row = database.execute("SELECT stamps FROM view WHERE id = ?", (number,)).fetchone()
    return None if row is None else row[0]


def set_stamps_digest(database: "Connection", number: int, digest: bytes) -> None:
    """Set the digest of the stamps of a view's files, after the last change of its files."""
    database.execute("UPDATE view SET stamps = ? WHERE id = ?", (digest, number))


def generation_of(database: "Connection", view: View) -> int | None:
    """Return a number that changes with every refresh that writes; `None` if the view was never refreshed."""
    found = database.execute("SELECT generation FROM view WHERE root = ? AND options = ? AND name = ?", view.key)
    row = found.fetchone()
    return None if row is None else int(row[0])


def number_of(database: "Connection", view: View) -> int | None:
    """Return the number of a view in the tables; `None` if it was never refreshed."""
    found = database.execute("SELECT id FROM view WHERE root = ? AND options = ? AND name = ?", view.key).fetchone()
    return None if found is None else int(found[0])


def rows_of(database: "Connection", number: int | None) -> dict[str, Row]:
    """Return the files of a view, by path."""
    statement = "SELECT path, blob, note, size, mtime_ns, ctime_ns FROM tree WHERE view = ?"
    rows = {row[0]: row for row in map(Row._make, database.execute(statement, (number,)))}
    for path in [path for path in rows if isinstance(path, bytes)]:  # usually none
        row = rows.pop(path)
        rows[decode_text(path)] = row._replace(path=decode_text(path))
    return rows


def notes_of(database: "Connection", number: int | None) -> list[tuple[str, str]]:
    """Return the files of a view that have a note, and their notes."""
    found = database.execute("SELECT path, note FROM tree WHERE view = ? AND note IS NOT NULL", (number,))
    return [(decode_text(path), note) for path, note in found]


def rows_of_latest_view(database: "Connection", view: View) -> dict[str, Row]:
    """Return the files of the view that was refreshed last, if it is another one of the same folder and options."""
    found = database.execute(
        "SELECT id, name FROM view WHERE root = ? AND options = ? ORDER BY changed DESC LIMIT 1", view.key[:2]
    ).fetchone()
    return {} if found is None or found[1] == view.key[2] else rows_of(database, int(found[0]))


def mark_changed(database: "Connection", view: View) -> int:
    """Give a view a new generation and the present time, make it if it is missing, and return its number.

    The digest of its stamps is unknown then, until it is set after the changes.
    """
    database.execute(
        "INSERT INTO view (root, options, name, generation, changed) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET generation = excluded.generation, changed = excluded.changed, stamps = NULL",
        (*view.key, secrets.randbits(62), time.time_ns()),
    )
    number = number_of(database, view)
    assert number is not None  # noqa: S101 - the row was written above
    return number


def model_of(database: "Connection", name: str) -> Model:
    """Return the dimension and generation of a model's vectors."""
    row = database.execute("SELECT dimension, generation FROM model WHERE name = ?", (name,)).fetchone()
    return Model(None, None) if row is None else Model(int(row[0]), int(row[1]))


def find_blob(database: "Connection", path: str, digest: bytes) -> int | None:
    """Return the number of a content under a path; `None` if the index does not have it."""
    found = database.execute(
        "SELECT id FROM blob WHERE path = ? AND digest = ?", (encode_text(path), digest)
    ).fetchone()
    return None if found is None else int(found[0])


def add_blob(
    database: "Connection", postings: PostingsWriter, source: SourceText, digest: bytes, chunks: Sequence[Chunk]
) -> int:
    """Add the content of a file with its chunks, and return its number."""
    statement = "INSERT INTO blob (path, digest) VALUES (?, ?)"
    blob = int(database.execute(statement, (encode_text(source.path), digest)).lastrowid or 0)
    last = database.execute("SELECT seq FROM sqlite_sequence WHERE name = 'chunk'").fetchone()
    first = 1 if last is None else int(last[0]) + 1
    texts = [source.text[chunk.start : chunk.end] for chunk in chunks]
    stored_texts = texts if source.exact else [encode_text(text) for text in texts]
    database.executemany(
        "INSERT INTO chunk (id, blob, start, line, digest, text, symbol) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            (
                number,
                blob,
                chunk.start,
                chunk.start_line,
                _text_digest(text),
                text,
                chunk.symbol and encode_text(chunk.symbol),
            )
            for number, (chunk, text) in enumerate(zip(chunks, stored_texts, strict=True), first)
        ),
    )
    shown_texts = texts if source.exact else [text_of(raw_bytes(text)) for text in texts]
    database.executemany(
        "INSERT OR IGNORE INTO definition (name, chunk) VALUES (?, ?)",
        ((name, number) for number, text in enumerate(shown_texts, first) for name in _DEFINED_NAME.findall(text)),
    )
    postings.add(blob, first, shown(source.path), shown_texts)
    count_documents(database, len(chunks))
    return blob


def _text_digest(text: str | bytes) -> bytes:
    """Return the digest by which the vector of a text is found."""
    raw = text if isinstance(text, bytes) else text.encode()
    return hashlib.blake2b(raw, digest_size=_DIGEST_BYTES).digest()


def remove_unused(database: "Connection", blob: int) -> int:
    """Delete a content if no view has it; return the number of deleted chunks."""
    if database.execute("SELECT 1 FROM tree WHERE blob = ? LIMIT 1", (blob,)).fetchone():
        return 0
    chunks = "SELECT id FROM chunk WHERE blob = ?"
    database.execute(f"DELETE FROM definition WHERE chunk IN ({chunks})", (blob,))  # noqa: S608 - a constant
    removed = database.execute("DELETE FROM chunk WHERE blob = ?", (blob,)).rowcount
    if database.execute("DELETE FROM blob WHERE id = ?", (blob,)).rowcount:
        database.execute("INSERT INTO stale (blob) VALUES (?)", (blob,))
        count_documents(database, -removed)
    return removed
