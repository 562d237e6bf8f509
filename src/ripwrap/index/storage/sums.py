"""Checksums of the rows of an index, which find damage that SQLite does not notice.

SQLite reads a changed byte in a row as another value, of any type. So the database stores two kinds of checksums. The
checksum of a view is made from its row and the rows of its files. The checksum of a content is made from its row, its
chunks and the names that they define. A process compares the checksum of a view before the first search in it, and the
checksum of a content when a search first finds one of its chunks. It compares them again if another process, or another
program, has changed the file. Numbers without a checksum, such as the number of documents, are compared with tantivy.
"""

import hashlib
import os
import sys
import zlib
from array import array
from collections.abc import Collection, Sequence
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Any

from ripwrap._ranking.fts import batches
from ripwrap._text import shown
from ripwrap.index.storage.database import DamageError, check, decode_text, select_in
from ripwrap.index.storage.packages import Connection

_SUM_BYTES = 16
_SELECT_ROWS = "SELECT path, blob, note, size, mtime_ns, ctime_ns FROM tree WHERE view = ? ORDER BY path"
_SELECT_VIEWS = "SELECT id, root, options, name, generation, changed, sum FROM view"
_COUNT_NOTES = "SELECT count(*) FROM tree INDEXED BY tree_note WHERE view = ? AND note IS NOT NULL"
_SELECT_LOST = (
    "SELECT tree.path FROM tree LEFT JOIN blob ON blob.id = tree.blob AND blob.path = tree.path"
    " WHERE tree.view = ? AND tree.blob IS NOT NULL AND blob.id IS NULL LIMIT 1"
)
# `trigrams` is the id of the content, or the negative id; see `schema.py`. The index has the same rows as the table.
_WRONG_MARKS = (
    "SELECT 1 FROM (SELECT id, trigrams FROM blob NOT INDEXED EXCEPT"
    " SELECT id, trigrams FROM blob INDEXED BY blob_trigrams WHERE trigrams IS NULL OR abs(trigrams) = id) LIMIT 1"
)
_SELECT_BLOBS = "SELECT id, path, digest, names, sum FROM blob WHERE id IN ({})"
_SELECT_CHUNKS = (
    "SELECT blob, id, start, at, size, line, last, digest, symbol FROM chunk WHERE blob IN ({}) ORDER BY blob, id"
)

StoredRow = tuple[Any, ...]
"""Row of the table `tree`: path, blob, note, size, mtime_ns, ctime_ns."""


def sum_of_view(database: Connection, number: int, rows: Sequence[StoredRow]) -> bytes:
    """Return the checksum of a view."""
    found = database.execute(f"{_SELECT_VIEWS} WHERE id = ?", (number,)).fetchone()
    if found is None:
        raise DamageError("a list of its files is missing")
    paths, blobs, notes, *stamps = [*zip(*rows, strict=True)] or [()] * 6
    digest = hashlib.blake2b(digest_size=_SUM_BYTES)
    try:
        for texts in (paths, [note or "" for note in notes]):
            digest.update("\0".join(texts).encode("utf-8", "surrogatepass") + b"\0")
        for numbers in ([-1 if blob is None else blob for blob in blobs], *stamps):
            column = array("q", numbers)
            if sys.byteorder == "big":
                column.byteswap()
            digest.update(column.tobytes())
    except (TypeError, OverflowError) as error:
        raise DamageError("a row of a file has a value of another type") from error
    return _sum_of_row(found) + digest.digest()


def _sum_of_row(row: StoredRow) -> bytes:
    """Return the checksum of a row of the table `view`, which begins the checksum of the view."""
    return hashlib.blake2b(ascii(row[:-1]).encode(), digest_size=_SUM_BYTES).digest()


def checked_rows(database: Connection, number: int | None) -> list[StoredRow]:
    """Return the rows of the files of a view, with decoded paths, after a comparison of the checksum of the view.

    The list is empty if `number`, the id of the view, is `None`.
    """
    if number is None:
        return []
    rows = database.execute(_SELECT_ROWS, (number,)).fetchall()
    if {type(path) for path, *_ in rows} - {str}:  # paths that are not UTF-8 are bytes
        rows = sorted(((decode_text(path), *others) for path, *others in rows), key=itemgetter(0))
    stored = database.execute("SELECT sum FROM view WHERE id = ?", (number,)).fetchone()
    if stored is None or sum_of_view(database, number, rows) != stored[0]:
        raise DamageError("the list of its files does not have the stored checksum")
    return rows


def sum_of_blob(path: str | bytes, digest: bytes, names: bytes, chunks: Sequence[StoredRow]) -> bytes:
    """Return the checksum of a content: of its row, and of the rows of its chunks in the order of their ids."""
    return hashlib.blake2b(ascii((path, digest, names, chunks)).encode(), digest_size=_SUM_BYTES).digest()


def compress_names(names: Sequence[Sequence[str]]) -> bytes:
    """Compress the names that each chunk of a content defines."""
    return zlib.compress("\n".join(map(" ".join, names)).encode(), 1)


@lru_cache(maxsize=2048)
def names_of(stored: bytes | None) -> tuple[tuple[str, ...], ...]:
    """Return the names that each chunk of a content defines, as `compress_names()` has compressed them."""
    if not stored:
        return ()
    try:
        return tuple(tuple(line.split(" ")) if line else () for line in zlib.decompress(stored).decode().split("\n"))
    except (zlib.error, UnicodeDecodeError, TypeError) as error:
        raise DamageError("a list of names is damaged") from error


class RowChecks:
    """Record of the rows that this process has compared with their checksums.

    One thread at a time may use the object.
    """

    def __init__(self, path: Path) -> None:
        """Set the path of the database."""
        self._path = path
        self._state: tuple[object, ...] = ()
        self._listed = False
        self._views: set[int] = set()
        self._blobs: set[int] = set()

    def check_view(self, database: Connection, number: int | None) -> None:
        """Compare the checksum of a view, unless this process has done so since the last change of the file.

        If `number`, the id of the view, is `None`, only the list of views is compared.
        """
        self._renew(database)
        self._check_list(database)
        if number is None or number in self._views:
            return
        rows = checked_rows(database, number)
        notes = sum(note is not None for _, _, note, *_ in rows)
        if database.execute(_COUNT_NOTES, (number,)).fetchone()[0] != notes:
            raise DamageError("the list of files with notes is incomplete")
        lost = database.execute(_SELECT_LOST, (number,)).fetchone()
        if lost is not None:
            raise DamageError(f"the content of {shown(decode_text(lost[0]))} is missing")
        if database.execute(_WRONG_MARKS).fetchone():
            raise DamageError("the marks of contents with trigrams are wrong")
        self._views.add(number)

    def _check_list(self, database: Connection) -> None:
        """Compare the rows of all views: a search would take a view with another name for one that is missing."""
        if self._listed:
            return
        views = database.execute(_SELECT_VIEWS).fetchall()
        if any(not isinstance(row[-1], bytes) or row[-1][:_SUM_BYTES] != _sum_of_row(row) for row in views):
            raise DamageError("the lists of files do not have the stored checksums")
        if database.execute("SELECT 1 FROM tree WHERE view NOT IN (SELECT id FROM view) LIMIT 1").fetchone():
            raise DamageError("files belong to no list")
        self._listed = True

    def check_chunks(self, database: Connection, chunks: Collection[int]) -> None:
        """Compare the checksums of the contents to which chunks belong."""
        self._renew(database)
        blobs = [blob for (blob,) in select_in(database, "SELECT blob FROM chunk WHERE id IN ({})", list(chunks))]
        if len(blobs) != len(chunks):
            raise DamageError("chunks are missing")
        self.check_blobs(database, set(blobs))

    def check_blobs(self, database: Connection, blobs: Collection[Any]) -> None:
        """Compare the checksums of contents, given by their ids."""
        for some in batches([blob for blob in blobs if blob not in self._blobs]):
            check()
            marks = ",".join("?" * len(some))
            chunks: dict[Any, list[StoredRow]] = {}
            for blob, *row in database.execute(_SELECT_CHUNKS.format(marks), some):
                chunks.setdefault(blob, []).append(tuple(row))
            rows = database.execute(_SELECT_BLOBS.format(marks), some).fetchall()
            if len(rows) != len(some):
                raise DamageError("the content of a file is missing")
            for blob, path, digest, names, stored in rows:
                if sum_of_blob(path, digest, names, chunks.get(blob, [])) != stored:
                    raise DamageError(f"the rows of {shown(decode_text(path))} do not have the stored checksum")
                self._blobs.add(blob)

    def check_everything(self, database: Connection) -> None:
        """Compare all rows, even those that were compared before, except contents that no view uses."""
        self._state = ()
        check_count(database)
        self.check_view(database, None)
        for (number,) in database.execute("SELECT id FROM view").fetchall():
            self.check_view(database, number)
        used = "SELECT DISTINCT blob FROM tree WHERE blob IS NOT NULL"
        self.check_blobs(database, [blob for (blob,) in database.execute(used).fetchall()])
        statement = "SELECT names, (SELECT min(id) FROM chunk WHERE chunk.blob = blob.id) FROM blob"
        right = stored = 0
        for names, first in database.execute(statement):
            right += sum(_mark(name, first + at) for at, some in enumerate(names_of(names)) for name in some)
        for name, chunk in database.execute("SELECT name, chunk FROM definition"):
            stored += _mark(name, chunk)
        if right != stored:
            raise DamageError("the names that files define are incomplete")

    def _renew(self, database: Connection) -> None:
        """Forget what was compared if the file was changed, or if the connection is another one."""
        try:
            status = os.stat(self._path)
        except OSError:
            stamp: tuple[int, ...] = ()
        else:
            stamp = status.st_size, status.st_mtime_ns
        state = id(database), database.execute("PRAGMA data_version").fetchone()[0], stamp
        if state != self._state:
            self._state = state
            self._listed = False
            self._views.clear()
            self._blobs.clear()


def check_count(database: Connection) -> None:
    """Compare the number of chunks with the number of documents in full-text search."""
    statement = "SELECT (SELECT count(*) FROM chunk), (SELECT sum(documents) FROM postings)"
    chunks, documents = database.execute(statement).fetchone()
    if chunks != documents:
        raise DamageError("full-text search and the database have different numbers of chunks")


def _mark(name: object, chunk: object) -> int:
    """Return a number for a row of the table `definition`; the sum of all numbers does not depend on their order."""
    return zlib.crc32(ascii((name, chunk)).encode())
