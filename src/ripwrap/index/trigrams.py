"""Index of the trigrams of files, for `Index.grep()`: it finds the files that may contain given literals (texts).

A trigram is a sequence of three bytes. A file that contains a literal has all trigrams of the literal. For each stored
content of a file, tantivy has a document with the id and the trigrams of the content. Each byte is read as a character
of Latin-1, with folded case (`_ripgrep/literals.py`). The column `trigrams` of the table `blob` tells which contents
have a document. The files that rg must search are called candidates. These files are always candidates:

- a file without a text in the index: binary or unreadable;
- a file that is larger than `MAX_WHOLE_BYTES`;
- a file with a NUL after the part that is indexed as text, or after a byte order mark of UTF-8;
- a file with a byte order mark of UTF-16, because rg decodes it before it searches;
- a file that changed before its trigrams were indexed, so that the content in the index can no longer be read;
- in a read-only index, a file whose trigrams are not indexed.

Documents are committed before the column `trigrams` is set. A process that is killed in between leaves documents
without a content, or a content with two documents. At worst, rg then searches a file without a match. The directory of
tantivy is made when it is first needed. It is rebuilt if it is damaged or documents are missing.
"""

import codecs
import logging
import secrets
import sqlite3
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from sqlite3 import Connection

from ripwrap._ripgrep.literals import AllOf, Required, fold
from ripwrap._system.safe_open import without_replaced
from ripwrap._text import shown
from ripwrap.errors import RipwrapError
from ripwrap.index.file_state import read_file
from ripwrap.index.storage.database import (
    DamageError,
    check,
    checkpoint,
    decode_text,
    read_transaction,
    select_in,
    write_transaction,
)
from ripwrap.index.storage.engine import EngineFolder, EngineState, RebuildError, engine_errors, reading_state, tantivy
from ripwrap.index.storage.postings import change_count, is_folder
from ripwrap.index.storage.store import Store
from ripwrap.index.storage.tables import View, number_of

_LOGGER = logging.getLogger("ripwrap")

_FILES_PER_TRANSACTION = 10_000
_MAX_TERMS = 64
"""Maximum number of trigrams of a literal that a search looks up."""
_MIN_WASTE = 2_000
"""Minimum number of documents of removed contents at which all documents are rebuilt, if at least half of all documents
belong to removed contents.
"""
_ATTEMPTS = 3
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_ANYTHING = b"any"
"""Literal of a search whose result is not used: a search for any literal first indexes the new contents of a view."""
_INDEXED, _NEVER = 1, -1
"""Values of the column `trigrams`: the content has a document, or never gets one; NULL before it was read."""

_SELECT_MISSING = (
    "SELECT blob.id, blob.path, blob.digest FROM blob CROSS JOIN tree ON tree.blob = blob.id AND tree.view = ?"
    " WHERE blob.trigrams IS NULL AND blob.id > ? ORDER BY blob.id LIMIT ?"
)
_SELECT_UNSURE = (
    "SELECT path FROM tree WHERE view = :view AND note IS NOT NULL AND blob IS NULL UNION"
    " SELECT tree.path FROM blob CROSS JOIN tree ON tree.blob = blob.id AND tree.view = :view"
    " WHERE blob.trigrams IS NULL UNION"
    " SELECT tree.path FROM blob CROSS JOIN tree ON tree.blob = blob.id AND tree.view = :view"
    " WHERE blob.trigrams < 0"
)
_SELECT_PATHS = "SELECT path FROM tree WHERE view = ? AND blob IN ({})"


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """Files of a view (the files of a directory on a branch) that may contain given literals."""

    total: int
    named: tuple[str, ...] | None
    unsure: tuple[str, ...]

    def without_replaced(self, view: View) -> "FoundFiles":
        """Return a copy without paths that are no longer regular files.

        rg would follow a link, and would wait for ever for the content of a pipe.
        """
        return replace(
            self,
            named=None if self.named is None else tuple(_not_replaced(view, self.named)),
            unsure=tuple(_not_replaced(view, self.unsure)),
        )


class Trigrams:
    """Index of the trigrams of files. One thread at a time may use the object."""

    def __init__(self, store: Store) -> None:
        """Set the store of the index; nothing is opened yet."""
        self._store = store
        self._opened: EngineFolder | None = None

    def find(self, view: View, required: Required | None) -> FoundFiles | None:
        """Return the files of a view that may have the required literals; first index new and changed files.

        Without `required`, every file may have a match, and nothing is indexed. The result is `None` if the index does
        not have the view.
        """
        return self._store.run(lambda database: self._find(database, view, required))

    def update(self, view: View) -> None:
        """Index the trigrams of new and changed files of a view. This method raises the errors of `find()`."""
        self.find(view, _ANYTHING)

    def prune(self, database: Connection) -> None:
        """Delete the trigrams of file contents that the index no longer has."""
        try:
            self._delete_unused(database)
        except RebuildError as error:
            self._reset(database, str(error))

    def close(self) -> None:
        """Close the files."""
        self._opened = None

    def _find(self, database: Connection, view: View, required: Required | None) -> FoundFiles | None:
        if required is None:
            with read_transaction(database):
                number = number_of(database, view)
                return None if number is None else FoundFiles(_count_files(database, number), None, ())
        for _ in range(_ATTEMPTS):
            try:
                if not self._store.is_read_only:
                    self._update(database, view)
                with self._reading(database) as searcher:
                    return _found_files(database, view, searcher, required)
            except RebuildError as error:
                if self._store.is_read_only:
                    return self._find(database, view, None)
                self._reset(database, str(error))
        folder = shown(str(self._store.folder))
        raise RipwrapError(f"the index of trigrams in {folder} was damaged {_ATTEMPTS} times in a row; check the disk")

    def _update(self, database: Connection, view: View) -> None:
        """Index the trigrams of the files of a view that have none yet, at most `_FILES_PER_TRANSACTION` at a time."""
        number, last = number_of(database, view), 0
        while database.execute(_SELECT_MISSING, (number, last, 1)).fetchone():
            with self._undone(database), write_transaction(database):
                # Another process may have indexed some of these contents in between.
                rows = database.execute(_SELECT_MISSING, (number, last, _FILES_PER_TRANSACTION)).fetchall()
                texts = ((blob, _read(view, decode_text(path), digest)) for blob, path, digest in rows)
                self._write(database, ((blob, text) for blob, text in texts if text is not None), len(rows))
                last = rows[-1][0] if rows else last
            self._store.postings.remove_others(database)

    @contextmanager
    def _undone(self, database: Connection) -> Generator[None]:
        """Delete the documents of the block if its transaction fails after they were committed, as on a full disk."""
        try:
            yield
        except sqlite3.Error:
            with suppress(sqlite3.Error, RipwrapError, RebuildError, DamageError):
                checkpoint(database)
                self._delete_unused(database)
            raise

    def _write(self, database: Connection, texts: Iterable[tuple[int, bytes]], files: int) -> None:
        """Write one document of trigrams for each content, and set the column `trigrams`."""
        marks: list[tuple[int, int]] = []
        engine: EngineFolder | None = None
        writer: tantivy.IndexWriter | None = None
        with ExitStack() as stack:
            for blob, text in texts:
                check()
                # A text after a byte order mark of UTF-8 may have a NUL; rg treats such a file as binary.
                marks.append((_NEVER if text.startswith(_UTF_16) or b"\0" in text else _INDEXED, blob))
                if marks[-1][0] == _NEVER:
                    continue
                if engine is None or writer is None:
                    engine = self._engine_to_write(database)
                    writer = stack.enter_context(engine.writing(files))
                with engine_errors(engine.path, writing=True):
                    document = tantivy.Document()
                    document.add_integer("blob", blob)
                    document.add_text("text", fold(text).decode("latin-1"))
                    writer.add_document(document)
        database.executemany("UPDATE blob SET trigrams = ? WHERE id = ?", marks)
        change_count(database, sum(value == _INDEXED for value, _ in marks), "trigrams")

    def _engine_to_write(self, database: Connection) -> EngineFolder:
        """Return tantivy's directory of trigrams, or a new one if it is missing or has too many unused documents."""
        state = _state_of(database)
        if state is not None:
            (used,) = database.execute("SELECT count(*) FROM blob WHERE trigrams > 0").fetchone()
            if state.documents - used < max(_MIN_WASTE, used):
                return self._engine(state.folder)
            _forget(database)
        name = f"trigrams-{secrets.token_hex(8)}"
        engine = self._engine(name)
        engine.make()
        database.execute("INSERT INTO trigrams VALUES (?, ?, 0)", (name, secrets.randbits(62)))
        return engine

    @contextmanager
    def _reading(self, database: Connection) -> "Generator[tantivy.Searcher | None]":
        """Hold a read transaction, and yield a searcher with the documents of the contents that are marked as indexed.

        If the database names no directory of trigrams, yield `None`. A content is marked after its document is added.
        """

        def open_searcher(state: EngineState | None) -> "tantivy.Searcher | None":
            return None if state is None else self._engine(state.folder).searcher()

        with reading_state(database, _state_of, open_searcher) as (state, searcher):
            if state is not None and searcher is not None and searcher.num_docs < state.documents:
                raise RebuildError("the trigrams of some files are missing")
            yield searcher

    def _delete_unused(self, database: Connection) -> None:
        if _state_of(database) is None:
            return
        with write_transaction(database):
            state = _state_of(database)
            if state is None:
                return
            engine = self._engine(state.folder)
            used = {blob for (blob,) in database.execute("SELECT id FROM blob WHERE trigrams > 0")}
            unused = set(_blobs_of(engine.searcher(), tantivy.Query.all_query())) - used
            if not unused:
                return
            with engine.writing(0) as writer, engine_errors(engine.path, writing=True):
                for blob in unused:
                    writer.delete_documents_by_term("blob", blob)
            change_count(database, engine.searcher().num_docs - state.documents, "trigrams")

    def _reset(self, database: Connection, why: str) -> None:
        """Delete all trigrams, so that they are indexed again, unless another process has already deleted them."""
        damaged = None if self._opened is None else self._opened.path.name
        with write_transaction(database):
            state = _state_of(database)
            if state is None or state.folder != damaged:
                return
            folder = shown(str(self._store.folder))
            _LOGGER.warning("the trigrams of the index in %s are rebuilt: %s", folder, why, extra={"note": True})
            _forget(database)
        self._opened = None
        self._store.postings.remove_others(database)

    def _engine(self, name: str) -> EngineFolder:
        path = self._store.folder / name
        if self._opened is None or self._opened.path != path:
            self._opened = EngineFolder(
                path, _schema, {"trigrams": tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.ngram(3, 3, False)).build()}
            )
        return self._opened


def _state_of(database: Connection) -> EngineState | None:
    row = database.execute("SELECT folder, state, documents FROM trigrams").fetchone()
    if row is None:
        lost = database.execute("SELECT 1 FROM blob WHERE trigrams > 0 LIMIT 1").fetchone() is not None
    else:
        lost = not (is_folder(row[0]) and isinstance(row[2], int))
    if lost:
        raise DamageError("the row about its trigrams is damaged")
    return None if row is None else EngineState(*row)


def _forget(database: Connection) -> None:
    """Mark all contents as not read yet, and remove the name of the trigrams' directory from the database."""
    database.execute("UPDATE blob SET trigrams = NULL WHERE trigrams IS NOT NULL")
    database.execute("DELETE FROM trigrams")


def _count_files(database: Connection, number: int) -> int:
    return int(database.execute("SELECT count(*) FROM tree WHERE view = ?", (number,)).fetchone()[0])


def _found_files(
    database: Connection, view: View, searcher: "tantivy.Searcher | None", required: Required
) -> FoundFiles | None:
    number = number_of(database, view)
    if number is None:
        return None
    unsure = {decode_text(path) for (path,) in database.execute(_SELECT_UNSURE, {"view": number})}
    blobs = [] if searcher is None else _blobs_of(searcher, _query(required))
    paths = (decode_text(path) for (path,) in select_in(database, _SELECT_PATHS, blobs, (number,)))
    named = [path for path in paths if path not in unsure]
    return FoundFiles(_count_files(database, number), tuple(sorted(named)), tuple(sorted(unsure)))


def _blobs_of(searcher: "tantivy.Searcher", query: "tantivy.Query") -> list[int]:
    """Return the ids of the contents (blobs) that a query finds, in ascending order."""
    limit = max(searcher.num_docs, 1)
    hits = searcher.search(query, limit, count=False, order_by_field="blob").hits
    return sorted({int(blob) for blob, _ in hits})


def _query(required: Required) -> "tantivy.Query":
    if isinstance(required, bytes):
        text = required.decode("latin-1")
        terms = dict.fromkeys(text[start : start + 3] for start in range(min(len(text) - 2, _MAX_TERMS)))
        parts = [tantivy.Query.term_query(_schema(), "text", term, index_option="basic") for term in terms]
        return tantivy.Query.boolean_query([(tantivy.Occur.Must, part) for part in parts])
    occur = tantivy.Occur.Must if isinstance(required, AllOf) else tantivy.Occur.Should
    return tantivy.Query.boolean_query([(occur, _query(part)) for part in required.parts])


@cache
def _schema() -> "tantivy.Schema":
    builder = tantivy.SchemaBuilder()
    builder.add_integer_field("blob", fast=True, indexed=True)
    builder.add_text_field("text", tokenizer_name="trigrams", index_option="basic")
    return builder.build()


def _not_replaced(view: View, paths: Iterable[str]) -> Iterator[str]:
    for path in without_replaced(view.root, paths, follow=view.follows):
        check()
        yield path


def _read(view: View, path: str, digest: bytes) -> bytes | None:
    """Return the bytes of a file; `None` if it is binary or unreadable, or if its digest is no longer `digest`."""
    with suppress(OSError):
        found = read_file(view.root, path, follow=view.follows)
        if found.digest == digest and found.source is not None:
            return b"\0" if found.whole is None else found.whole
    return None
