"""What differs between a tree of files and its view in the index, and the one transaction that makes them agree.

A file whose size and times are as they were is not read. Any other is read and hashed, and only content that is not yet
known under its path is cut into chunks. One that could not be read is tried each time, because what was in the way need
not show in its times; while it cannot be, it is as it was. After that, whatever no view has any more is removed, so
that what a search weighs is what is there: the index is then as a new one would be.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ripwrap._ranking.chunks import Chunk
from ripwrap._text import shown
from ripwrap.index.database import READONLY, check, checkpoint, code_of, reading, stored, writing
from ripwrap.index.files import Stamp, read, stamps_of, unreadable
from ripwrap.index.models import Progress, Refreshed, Skipped, SkipReason
from ripwrap.index.rows import (
    Row,
    View,
    add,
    content_of,
    generation_of,
    latest,
    number_of,
    numbered,
    remove_unused,
    rows_of,
)

if TYPE_CHECKING:
    from sqlite3 import Connection

_LOGGER = logging.getLogger("ripwrap")

_BATCH = 64  # Files after which progress is told.
_MANY = 2_000  # Chunks that leave a large log behind.
_NO_STAMP = (-1, 0, 0)  # Of a file that is tried whatever its times are.


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


@dataclass(slots=True)
class _Tally:
    added: int = 0
    changed: int = 0
    chunks: int = 0
    unreadable: dict[str, str] = field(default_factory=dict[str, str])
    touched: set[str] = field(default_factory=set[str])
    let_go: set[int] = field(default_factory=set[int])


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
    stamps, wrong = stamps_of(view.root, paths, follow=view.follows)
    with reading(database):
        generation = generation_of(database, view)
        known = rows_of(database, number_of(database, view))
    if generation != expected and not insist:
        return None
    tally = _Tally(unreadable=wrong)
    differing, gone = _differing(view, known, stamps, tally)
    if differing or gone or generation is None:
        try:
            with writing(database):
                if generation_of(database, view) != generation:
                    if not insist:
                        return None
                    known = rows_of(database, number_of(database, view))
                    differing, gone = _differing(view, known, stamps, tally)
                _write(database, view, chunker, known, stamps, sorted(differing), gone, tally, progress)
        except sqlite3.OperationalError as error:  # where nobody can write, what differs in its times alone need not be
            if gone or generation is None or code_of(error) != READONLY:
                raise
            if not all(_is_known(database, view, path, known.get(path)) for path in differing):
                raise
        if tally.chunks > _MANY:
            checkpoint(database)
    return _told(known, tally, len(gone), time.monotonic() - begun)


def _differing(
    view: View, known: Mapping[str, Row], stamps: Mapping[str, Stamp], tally: _Tally
) -> tuple[list[str], set[str]]:
    """The files that are to be read, and those that are no more."""
    differing: list[str] = []
    follow = view.follows
    for path, stamp in stamps.items():
        row = known.get(path)
        if row is not None and row.note == "unreadable":
            check()
            why = unreadable(view.root, path, follow=follow)
            if why is not None:
                tally.unreadable[path] = why
                continue
        elif row is not None and row.stamp == stamp:
            continue
        tally.unreadable.pop(path, None)
        differing.append(path)
    return differing, known.keys() - stamps.keys()


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
    before = latest(database, view)
    number = numbered(database, view)
    for done, path in enumerate(differing):
        if progress is not None and done % _BATCH == 0:
            progress(Progress(files=done, total=len(differing), chunks=tally.chunks))
        check()
        old = known.get(path)
        like = before.get(path)
        if like is not None and like.stamp == stamps[path]:  # on the branch before it was the same
            row: Row | None = like
        else:
            row = _row(database, view, path, chunker, tally)
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


def _row(database: "Connection", view: View, path: str, chunker: Chunker, tally: _Tally) -> Row | None:
    """A file as it is now, its content in the index; `None` if it is gone."""
    try:
        found = read(view.root, path, follow=view.follows)
    except FileNotFoundError:
        return None
    except OSError as error:
        tally.unreadable[path] = str(error.strerror)
        return Row(path, None, "unreadable", *_NO_STAMP)
    if found.source is None:
        return Row(path, None, "binary", *found.stamp)
    blob = content_of(database, path, found.digest)
    if blob is None:
        pieces = list(chunker.chunks_of(path, found.source.text))
        blob = add(database, found.source, found.digest, pieces)
        tally.chunks += len(pieces)
    return Row(path, blob, "cut" if found.cut else None, *found.stamp)


def _is_known(database: "Connection", view: View, path: str, row: Row | None) -> bool:
    """Whether a file is as the index has it, but for its times."""
    check()
    try:
        found = read(view.root, path, follow=view.follows)
    except OSError:  # the index has no such file, or nothing of it
        return row is None or row.note == "unreadable"
    if found.source is None:
        return row is not None and row.note == "binary"
    note = "cut" if found.cut else None
    return row is not None and (row.blob, row.note) == (content_of(database, path, found.digest), note)


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


def _told(known: Mapping[str, Row], tally: _Tally, gone: int, seconds: float) -> Refreshed:
    for path, why in sorted(tally.unreadable.items()):
        _LOGGER.warning("%s could not be read: %s", shown(path), why)
    binary = [row.path for row in known.values() if row.note == "binary"]
    left_out: tuple[tuple[SkipReason, Collection[str]], ...] = (("binary", binary), ("unreadable", tally.unreadable))
    return Refreshed(
        added=tally.added,
        changed=tally.changed,
        removed=gone,
        unchanged=len(known) - len(tally.touched),
        skipped=tuple(
            Skipped(reason=reason, files=len(paths), example=min(paths)) for reason, paths in left_out if paths
        ),
        cut=sum(row.note == "cut" for row in known.values()),
        chunks=tally.chunks,
        seconds=seconds,
    )
