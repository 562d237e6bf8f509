"""Refresh a view of an index: compare files with their rows in the index, and write the differences in a transaction.

A view is the list of the files of a directory on one branch; each file is a row. A refresh first computes a digest of
the paths, sizes and times of all files. If the last refresh computed the same digest, nothing else is done. A file is
not read if its size and times are the same as in its row. Any other file is read and hashed, and is split into chunks
only if the index does not have this content under this path yet. Each refresh tries again to read an unreadable file,
because the times of the file may not change when the file becomes readable; until then, its row is kept. At the end,
contents that no view uses any more are removed, because full-text search would count them in its statistics. So an old
index ranks results in the same way as a new index with the same views; see `storage/postings.py`.
"""

import logging
import os
import shutil
import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from sqlite3 import Connection

from ripwrap._ranking.document import MAX_FILE_BYTES
from ripwrap._text import shown
from ripwrap.index.file_state import Stamp, Stamps, read_file, read_stamps, why_unreadable
from ripwrap.index.models import Progress, RefreshResult, Skipped, SkipReason
from ripwrap.index.splitting import SizedRequest, SplitFile, SplitRequest, Splitter
from ripwrap.index.storage.database import (
    READONLY,
    check,
    checkpoint,
    code_of,
    encode_text,
    write_transaction,
)
from ripwrap.index.storage.postings import Postings, PostingsReader, PostingsWriter
from ripwrap.index.storage.store import Store
from ripwrap.index.storage.tables import (
    Row,
    View,
    add_blob,
    digests_of,
    find_blob,
    generation_of,
    mark_changed,
    notes_of,
    number_of,
    remove_unused,
    rows_of,
    rows_of_latest_view,
    set_stamps_digest,
)

_LOGGER = logging.getLogger("ripwrap")

_FILES_PER_PROGRESS = 64
_CHUNKS_PER_CHECKPOINT = 2_000  # after this number of chunks, the write-ahead log is large
_LITTLE_BYTES = 16_000_000  # with less room on the disk, the log is emptied after each change
_PATH, _STAMP = attrgetter("path"), itemgetter(slice(3, None))  # path and stamp of a `Row`


@dataclass(slots=True)
class _Counts:
    """Counts of a refresh, and its unreadable files; a file without indexed content is neither new nor changed."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    read: int = 0
    chunks: int = 0
    chunks_removed: int = 0
    unreadable: dict[str, str] = field(default_factory=dict[str, str])
    released: set[int] = field(default_factory=set[int])

    def compare(self, before: Row | None, now: Row | None) -> None:
        """Count the difference between two states of a file; `None` is a file that is not listed."""
        was, has = before is not None and before.blob is not None, now is not None and now.blob is not None
        self.added += has and not was
        self.removed += was and not has
        if before is not None and now is not None and was and has:
            self.changed += (before.blob, before.note) != (now.blob, now.note)


def refresh(
    database: Connection,
    store: Store,
    view: View,
    paths: Sequence[str],
    splitter: Splitter,
    expected: int | None,
    progress: Callable[[Progress], object] | None,
    *,
    insist: bool = False,
) -> RefreshResult | None:
    """Update a view (the record of the files of a directory on a branch) to the listed files.

    `expected` is the generation of the view before the files were listed. If another process has refreshed the view
    since then, write nothing and return `None`, unless `insist` is true: then a file that is not in the list is removed
    only if it does not exist, because it may be newer than the list.
    """
    # Files are compared before the write lock is taken, so that a refresh without differences waits for no other
    # process. If the generation of the view has changed, another process has refreshed it, and the list of paths may be
    # stale. The caller then lists the files again; on its last attempt, it insists. All rows are written in one
    # transaction (https://sqlite.org/isolation.html): searches see the state before or after the transaction, even if
    # this process is killed.
    found, unreadable_paths = read_stamps(view.root, paths, follow=view.follows)
    counts, postings = _Counts(unreadable=unreadable_paths), store.postings
    with postings.reading(database) as reader:
        generation, number = generation_of(database, view), number_of(database, view)
        if generation != expected and not insist:
            return None
        stored = database.execute("SELECT stamps FROM view WHERE id = ?", (number,)).fetchone()
        unchanged = stored == (found.digest(),)
        notes = notes_of(database, number) if unchanged else []
        known = {} if unchanged else rows_of(database, number)
    if unchanged:
        _tidy(database, postings, reader, counts)
        return _make_result(len(found.paths), notes, counts)
    stamps = found.by_path()
    differing, gone = _find_differences(view, known, stamps, counts, outdated=generation != expected)
    if differing or gone or generation is None:
        try:
            with write_transaction(database), postings.writing(database, len(differing)) as writer:
                reader.check_waste(postings.min_waste)
                if generation_of(database, view) != generation:
                    if not insist:
                        return None
                    known = rows_of(database, number_of(database, view))
                    differing, gone = _find_differences(view, known, stamps, counts, outdated=True)
                _write_differences(
                    database, writer, view, splitter, known, stamps, sorted(differing), gone, counts, progress
                )
        except sqlite3.OperationalError as error:
            # A read-only index is still up to date if only the times of files differ.
            read_only = code_of(error) == READONLY and generation is not None and not gone
            if not (read_only and all(_has_same_content(database, view, path, known.get(path)) for path in differing)):
                raise
    _tidy(database, postings, reader, counts)
    if shutil.disk_usage(store.folder).free < _LITTLE_BYTES:
        checkpoint(database)
    notes = [(row.path, row.note) for row in known.values() if row.note is not None]
    return _make_result(len(known), notes, counts)


def _tidy(database: Connection, postings: Postings, reader: PostingsReader, counts: _Counts) -> None:
    """Empty the write-ahead log if it is long; delete documents of full-text search whose content was removed."""
    if counts.chunks > _CHUNKS_PER_CHECKPOINT:
        checkpoint(database)
    if counts.released or not reader.is_clean:
        postings.clean(database)


def _find_differences(
    view: View, known: Mapping[str, Row], stamps: Mapping[str, Stamp], counts: _Counts, *, outdated: bool
) -> tuple[list[str], set[str]]:
    """Compare files with their rows in the index; return the paths to read, and the paths that are gone.

    If `outdated` is true, rows may be newer than the list of files. A file that is not in the list then counts as gone
    only if it does not exist. If the file is ignored now, the next refresh removes its row.
    """
    differing: list[str] = []
    follow = view.follows
    for path, stamp in stamps.items():
        row = known.get(path)
        if row is not None and row.note == "unreadable":
            check()
            why = why_unreadable(view.root, path, follow=follow)
            if why is not None:
                counts.unreadable[path] = why
                continue
        elif row is not None and row.stamp == stamp:
            continue
        counts.unreadable.pop(path, None)
        differing.append(path)
    gone = known.keys() - stamps.keys()
    if outdated:
        gone = {path for path in gone if not os.path.lexists(os.path.join(view.root, path))}
    return differing, gone


def _write_differences(
    database: Connection,
    postings: PostingsWriter,
    view: View,
    splitter: Splitter,
    known: dict[str, Row],
    stamps: Mapping[str, Stamp],
    differing: Sequence[str],
    gone: Iterable[str],
    counts: _Counts,
    progress: Callable[[Progress], object] | None,
) -> None:
    """Write new, changed and deleted files to the index, and update the rows in `known`."""
    is_new = generation_of(database, view) is None
    previous_rows = rows_of_latest_view(database, view)
    number = mark_changed(database, view)
    # A file with the same stamp as on the previous branch is the same file.
    same = {
        path: row for path in differing if (row := previous_rows.get(path)) is not None and row.stamp == stamps[path]
    }
    to_read = [path for path in differing if path not in same]
    requests = (SizedRequest(SplitRequest(path, digests_of(database, path)), stamps[path][0]) for path in to_read)
    total = sum(min(stamps[path][0], MAX_FILE_BYTES) for path in to_read)
    with closing(splitter.split(view.root, requests, total, follow=view.follows)) as files:
        for done, path in enumerate(differing):
            if progress is not None and done % _FILES_PER_PROGRESS == 0:
                progress(Progress(files=done, total=len(differing), chunks=counts.chunks))
            check()
            old = known.get(path)
            before = previous_rows.pop(path, None) if is_new else old
            row = same[path] if path in same else _index_file(database, postings, path, next(files), counts)
            counts.compare(before, row)
            _write_row(database, number, path, old, row, counts)
            if row is not None:
                known[path] = row
            elif old is not None:
                del known[path]
    for path in gone:
        counts.compare(known[path], None)
        _write_row(database, number, path, known.pop(path), None, counts)
    for row in previous_rows.values() if is_new else ():
        counts.compare(row, None)
    for blob in sorted(counts.released):
        check()
        counts.chunks_removed += remove_unused(database, blob)
    # A row that must be checked again has a stamp that no file has, so the next refresh computes a different digest.
    rows = sorted(known.values(), key=_PATH)
    set_stamps_digest(database, number, Stamps.of([*map(_PATH, rows)], map(_STAMP, rows)).digest())
    if progress is not None:
        progress(Progress(files=len(differing), total=len(differing), chunks=counts.chunks))


def _index_file(
    database: Connection, postings: PostingsWriter, path: str, found: SplitFile, counts: _Counts
) -> Row | None:
    """Add the content of a file to the index, if it is new content."""
    if found.note == "gone":
        return None
    counts.read += 1
    if found.note == "unreadable":
        counts.unreadable[path] = found.why
    blob: int | None = None
    if found.note not in ("binary", "unreadable"):
        blob = find_blob(database, path, found.digest)
        if blob is None and found.text is not None:
            blob = add_blob(database, postings, path, found.digest, found.text)
            counts.chunks += len(found.text.positions)
    return Row(path, blob, found.note, *found.stamp)


def _has_same_content(database: Connection, view: View, path: str, row: Row | None) -> bool:
    """Return True if the index has the current content of a file; the times of the file are ignored."""
    check()
    try:
        found = read_file(view.root, path, follow=view.follows)
    except OSError:  # an unreadable file has no content
        return row is None or row.note == "unreadable"
    if found.source is None:
        return row is not None and row.note == "binary"
    note = "cut" if found.cut else None
    return row is not None and (row.blob, row.note) == (find_blob(database, path, found.digest), note)


def _write_row(database: Connection, number: int, path: str, old: Row | None, row: Row | None, counts: _Counts) -> None:
    """Write the row of a file, or delete it if `row` is `None`; note the content that the file no longer has."""
    if row is None:
        database.execute("DELETE FROM tree WHERE view = ? AND path = ?", (number, encode_text(path)))
    else:
        database.execute(
            "INSERT OR REPLACE INTO tree (view, path, blob, note, size, mtime_ns, ctime_ns)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (number, encode_text(path), *row[1:]),
        )
    if old is not None and old.blob is not None and (row is None or row.blob != old.blob):
        counts.released.add(old.blob)


def _make_result(files: int, notes: Sequence[tuple[str, str]], counts: _Counts) -> RefreshResult:
    """Return the result of a refresh, given the number of its files and those with a note; log the unreadable files."""
    for path, why in sorted(counts.unreadable.items()):
        _LOGGER.warning("could not read %s: %s", shown(path), why)
    binary = [path for path, note in notes if note == "binary"]
    left_out: tuple[tuple[SkipReason, Collection[str]], ...] = (("binary", binary), ("unreadable", counts.unreadable))
    return RefreshResult(
        added=counts.added,
        changed=counts.changed,
        removed=counts.removed,
        unchanged=files - sum(note != "cut" for _, note in notes) - counts.added - counts.changed,
        read=counts.read,
        skipped=tuple(
            Skipped(reason=reason, files=len(paths), example=min(paths)) for reason, paths in left_out if paths
        ),
        cut=sum(note == "cut" for _, note in notes),
        chunks=counts.chunks,
        chunks_removed=counts.chunks_removed,
        seconds=0.0,
    )
