"""What differs between a tree of files and its view in the index, and the one transaction that makes them agree.

A file whose size and times are as they were is not read. Any other is read and hashed, and only content that is not yet
known under its path is cut into chunks. After that, whatever no view has any more is removed, so that what a search
weighs is what is there: the index is then as a new one would be.
"""

import hashlib
import logging
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ripwrap._ranking.chunks import Chunk
from ripwrap._ranking.tokens import spread
from ripwrap._source import MAX_FILE, Source, beginning, decoded, is_binary
from ripwrap._text import raw_bytes, shown, text_of
from ripwrap.index.database import READONLY, check, checkpoint, code_of, reading, restored, stored, writing
from ripwrap.index.models import Progress, Refreshed, Skipped, SkipReason

if TYPE_CHECKING:
    from sqlite3 import Connection

_LOGGER = logging.getLogger("ripwrap")

_FRESH_NS = 50_000_000
_COARSE_NS = 2_000_000_000
"""A file that changed so shortly before it was read may change again and keep its times: the clock of file systems goes
in steps of some milliseconds, and that of those that know whole milliseconds or less maybe of two seconds."""

_HEAD = 8_192  # Bytes in which most binary files have a NUL.
_BATCH = 64  # Files after which progress is told.
_DIGEST = 16  # Bytes.
_MANY = 2_000  # Chunks that leave a large log behind.

Stamp: TypeAlias = tuple[int, int, int]
"""Size, and the times of content and of anything, in nanoseconds."""


@dataclass(frozen=True, slots=True)
class Chunker:
    """What cuts files into chunks.

    Attributes:
        version: Names it and its version; if it differs from what the index was made with, that is made anew.
        chunks_of: The chunks of a file, given its path and text. They cover all of the text and are in the order of
            their start; they may overlap.
        close: Lets go of what that took; it may be called again afterwards.
    """

    version: str
    chunks_of: Callable[[str, str], Iterable[Chunk]]
    close: Callable[[], object] = lambda: None


@dataclass(frozen=True, slots=True)
class View:
    """Which view is meant: a folder, on a branch, with the options that choose its files."""

    root: str
    name: str
    options: str

    @property
    def key(self) -> tuple[str | bytes, str, str | bytes]:
        """What it is found by."""
        return stored(self.root), self.options, stored(self.name)


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


@dataclass(slots=True)
class _Read:
    """A file that was read: its stamp before that, its text unless it is binary, and whether that is all of it."""

    stamp: Stamp
    digest: bytes
    source: Source | None
    cut: bool


@dataclass(slots=True)
class _Tally:
    added: int = 0
    changed: int = 0
    chunks: int = 0
    unreadable: list[str] = field(default_factory=list[str])
    touched: set[str] = field(default_factory=set[str])
    let_go: set[int] = field(default_factory=set[int])


def generation_of(database: "Connection", view: View) -> int | None:
    """What changes with every refresh that writes; `None` if the view was never refreshed."""
    found = database.execute("SELECT generation FROM view WHERE root = ? AND options = ? AND name = ?", view.key)
    row = found.fetchone()
    return None if row is None else int(row[0])


def number_of(database: "Connection", view: View) -> int | None:
    """The view's number in the tables; `None` if it was never refreshed."""
    found = database.execute("SELECT id FROM view WHERE root = ? AND options = ? AND name = ?", view.key).fetchone()
    return None if found is None else int(found[0])


def refresh(
    database: "Connection",
    view: View,
    paths: Sequence[str],
    chunker: Chunker,
    expected: int | None,
    progress: Callable[[Progress], object] | None,
    *,
    insist: bool = False,
) -> Refreshed | None:
    """Make a view agree with the files that are listed.

    Args:
        database: The index.
        view: Which view.
        paths: Its files, relative to its root.
        chunker: What cuts files.
        expected: The generation of the view before the files were listed.
        progress: Told how far it is, in this thread.
        insist: Whether to go on although the view has changed since the files were listed.

    Returns:
        What was done; `None` if another process has refreshed the view since the files were listed, and nothing was.
    """
    import sqlite3

    begun = time.monotonic()
    stamps = _stamps(view.root, paths)
    with reading(database):
        generation = generation_of(database, view)
        known = rows_of(database, number_of(database, view))
    if generation != expected and not insist:
        return None
    tally = _Tally()
    differing, gone = _differing(known, stamps)
    if differing or gone or generation is None:
        try:
            with writing(database):
                if generation_of(database, view) != generation:
                    if not insist:
                        return None
                    known = rows_of(database, number_of(database, view))
                    differing, gone = _differing(known, stamps)
                _write(database, view, chunker, known, stamps, sorted(differing), gone, tally, progress)
        except sqlite3.OperationalError as error:  # where nobody can write, what differs in its times alone need not be
            if gone or generation is None or code_of(error) != READONLY:
                raise
            if not all(_is_known(database, view.root, path, known.get(path)) for path in differing):
                raise
        if tally.chunks > _MANY:
            checkpoint(database)
    return _told(known, tally, len(gone), time.monotonic() - begun)


def _differing(known: Mapping[str, Row], stamps: Mapping[str, Stamp]) -> tuple[list[str], set[str]]:
    """The files that are to be read, and those that are no more."""
    differing = [path for path, stamp in stamps.items() if (row := known.get(path)) is None or row[3:] != stamp]
    return differing, known.keys() - stamps.keys()


def rows_of(database: "Connection", number: int | None) -> dict[str, Row]:
    """The files of a view."""
    statement = "SELECT path, blob, note, size, mtime_ns, ctime_ns FROM tree WHERE view = ?"
    rows = {row[0]: row for row in map(Row._make, database.execute(statement, (number,)))}
    for path in [path for path in rows if isinstance(path, bytes)]:  # few are
        row = rows.pop(path)
        rows[restored(path)] = row._replace(path=restored(path))
    return rows


def _stamps(root: str, paths: Iterable[str]) -> dict[str, Stamp]:
    """What is told of each file that is still there, without reading it."""
    stamps: dict[str, Stamp] = {}
    prefix, look, is_file = os.path.join(root, ""), os.stat, stat.S_ISREG
    for path in paths:
        try:
            state = look(prefix + path)
        except OSError:
            continue
        if is_file(state.st_mode):  # whoever opens a pipe waits for who writes
            stamps[path] = (state.st_size, state.st_mtime_ns, state.st_ctime_ns)
    return stamps


def _stamp(state: os.stat_result) -> Stamp:
    return state.st_size, state.st_mtime_ns, state.st_ctime_ns


def _write(
    database: "Connection",
    view: View,
    chunker: Chunker,
    known: dict[str, Row],
    stamps: Mapping[str, Stamp],
    differing: Sequence[str],
    gone: Iterable[str],
    tally: _Tally,
    progress: Callable[[Progress], object] | None,
) -> None:
    """Write what differs; `known` is then what is known."""
    before = _latest(database, view)
    number = _numbered(database, view)
    for done, path in enumerate(differing):
        if progress is not None and done % _BATCH == 0:
            progress(Progress(files=done, total=len(differing), chunks=tally.chunks))
        check()
        old = known.get(path)
        like = before.get(path)
        if like is not None and like.stamp == stamps[path]:  # on the branch before it was the same
            row: Row | None = like
        else:
            row = _row(database, view.root, path, chunker, tally)
        _put(database, number, path, old, row, tally)
        if row is not None:
            known[path] = row
        elif old is not None:
            del known[path]
    for path in gone:
        _put(database, number, path, known.pop(path), None, tally)
    for blob in sorted(tally.let_go):
        check()
        remove_unused(database, blob)
    if progress is not None:
        progress(Progress(files=len(differing), total=len(differing), chunks=tally.chunks))


def _latest(database: "Connection", view: View) -> dict[str, Row]:
    """The files of the view that the folder had at last, if that is another one."""
    found = database.execute(
        "SELECT id, name FROM view WHERE root = ? AND options = ? ORDER BY changed DESC LIMIT 1", view.key[:2]
    ).fetchone()
    return {} if found is None or found[1] == view.key[2] else rows_of(database, int(found[0]))


def _numbered(database: "Connection", view: View) -> int:
    """The view's number, once it is noted that it is changed now."""
    database.execute(
        "INSERT INTO view (root, options, name, generation, changed) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET generation = excluded.generation, changed = excluded.changed",
        (*view.key, secrets.randbits(62), time.time_ns()),
    )
    number = number_of(database, view)
    assert number is not None  # noqa: S101 - it has just been put there
    return number


def _row(database: "Connection", root: str, path: str, chunker: Chunker, tally: _Tally) -> Row | None:
    """A file as it is now, its content in the index; `None` if it cannot be read, or is gone."""
    try:
        read = _read(root, path)
    except FileNotFoundError:
        return None
    except OSError as error:
        _LOGGER.warning("%s could not be read: %s", shown(path), error.strerror)
        tally.unreadable.append(path)
        return None
    if read.source is None:
        return Row(path, None, "binary", *read.stamp)
    blob = _known(database, path, read.digest)
    if blob is None:
        blob = _add(database, read, chunker, tally)
    return Row(path, blob, "cut" if read.cut else None, *read.stamp)


def _read(root: str, path: str) -> _Read:
    begun = time.time_ns()
    with open(os.path.join(root, path), "rb", buffering=0) as file:
        stamp = _stamp(os.fstat(file.fileno()))
        raw = file.read(_HEAD)
        if not is_binary(raw):
            while len(raw) <= MAX_FILE and (more := file.read(MAX_FILE + 1 - len(raw))):
                raw += more
    if max(stamp[1:]) > begun - (_FRESH_NS if stamp[2] % 1_000_000 else _COARSE_NS):
        stamp = (-1, *stamp[1:])  # so that it is read again
    whole = beginning(raw)
    digest = hashlib.blake2b(whole, digest_size=_DIGEST).digest()
    return _Read(stamp, digest, decoded(path, whole), len(whole) < len(raw))


def _is_known(database: "Connection", root: str, path: str, row: Row | None) -> bool:
    """Whether a file is as the index has it, but for its times."""
    check()
    try:
        read = _read(root, path)
    except OSError:  # the index has no such file
        return row is None
    if read.source is None:
        return row is not None and row.note == "binary"
    note = "cut" if read.cut else None
    return row is not None and (row.blob, row.note) == (_known(database, path, read.digest), note)


def _known(database: "Connection", path: str, digest: bytes) -> int | None:
    found = database.execute("SELECT id FROM blob WHERE path = ? AND digest = ?", (stored(path), digest)).fetchone()
    return None if found is None else int(found[0])


def _add(database: "Connection", read: _Read, chunker: Chunker, tally: _Tally) -> int:
    """Put the content of a file into the index."""
    source = read.source
    assert source is not None  # noqa: S101 - the caller has looked
    statement = "INSERT INTO blob (path, digest) VALUES (?, ?)"
    blob = int(database.execute(statement, (stored(source.path), read.digest)).lastrowid or 0)
    first = int(database.execute("SELECT coalesce(max(id), 0) + 1 FROM chunk").fetchone()[0])
    pieces = list(chunker.chunks_of(source.path, source.text))
    texts = [source.text[piece.start : piece.end] for piece in pieces]
    kept = texts if source.exact else [stored(text) for text in texts]
    database.executemany(
        "INSERT INTO chunk (id, blob, start, line, digest, text, symbol) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            (number, blob, piece.start, piece.start_line, digest_of(text), text, piece.symbol and stored(piece.symbol))
            for number, (piece, text) in enumerate(zip(pieces, kept, strict=True), first)
        ),
    )
    named = spread(shown(source.path))
    database.executemany(
        "INSERT INTO fts (rowid, path, body) VALUES (?, ?, ?)",
        ((number, named, _indexed(text)) for number, text in enumerate(kept, first)),
    )
    tally.chunks += len(pieces)
    return blob


def digest_of(text: str | bytes) -> bytes:
    """What an embedding of a chunk is found by."""
    raw = text if isinstance(text, bytes) else text.encode()
    return hashlib.blake2b(raw, digest_size=_DIGEST).digest()


def _indexed(text: str | bytes) -> str:
    """A chunk's text as full-text search has it."""
    return spread(text if isinstance(text, str) else text_of(raw_bytes(restored(text))))


def _put(database: "Connection", number: int, path: str, old: Row | None, row: Row | None, tally: _Tally) -> None:
    """Note what a file is now, and what that makes of it."""
    if row is None:
        database.execute("DELETE FROM tree WHERE view = ? AND path = ?", (number, stored(path)))
    else:
        database.execute(
            "INSERT OR REPLACE INTO tree (view, path, blob, note, size, mtime_ns, ctime_ns)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (number, stored(path), *row[1:]),
        )
        if old is None:
            tally.added += 1
            tally.touched.add(path)
        elif (old.blob, old.note) != (row.blob, row.note):
            tally.changed += 1
            tally.touched.add(path)
    if old is not None and old.blob is not None and (row is None or row.blob != old.blob):
        tally.let_go.add(old.blob)


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


def _told(known: Mapping[str, Row], tally: _Tally, gone: int, seconds: float) -> Refreshed:
    noted = [row for row in known.values() if row.note]
    binary = [row.path for row in noted if row.note == "binary"]
    left_out: tuple[tuple[SkipReason, list[str]], ...] = (("binary", binary), ("unreadable", tally.unreadable))
    return Refreshed(
        added=tally.added,
        changed=tally.changed,
        removed=gone,
        unchanged=len(known) - len(tally.touched),
        skipped=tuple(
            Skipped(reason=reason, files=len(paths), example=min(paths)) for reason, paths in left_out if paths
        ),
        cut=len(noted) - len(binary),
        chunks=tally.chunks,
        seconds=seconds,
    )
