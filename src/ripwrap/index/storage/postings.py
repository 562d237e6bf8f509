"""Full-text search of chunks, with tantivy. The documents of tantivy are in a directory beside the database.

A document has the id of a chunk, the id of the file content that the chunk belongs to, and the words of the chunk, but
no text. Searches drop documents whose chunk is not in the database. Writes have this order, so that database and
documents are consistent even if a process is killed:

1. Documents of new contents are committed in tantivy, while this process holds the write lock of the database.
2. The transaction of the database is committed: it adds the new contents, and writes the ids of removed contents to the
table `stale`.
3. Documents of `stale` contents are deleted in tantivy, and then the rows of `stale`.

A process that is killed after step 1 leaves documents whose contents have higher ids than all contents in the database.
A process that is killed after step 2 leaves the documents of `stale` contents. The next refresh removes the leftover
documents of both kinds before it adds documents. No id is used twice, so a leftover document is never mistaken for the
document of another chunk.

An old index must rank results in the same way as a new index. But tantivy's BM25 counts deleted documents until it
merges their segment. Deleted documents would change three numbers. Two of these numbers determine the weight of a word:
the number of documents, and the number of documents with the word. This module computes the weight itself, without
deleted documents. The third number is the mean length of documents. This module keeps it constant: for each content it
adds documents that have only filler words and no chunk, so that the mean length of all documents of the content is
`_MEAN_WORDS`.
"""

import math
import re
import secrets
import sqlite3
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from sqlite3 import Connection
from typing import Any, Literal, cast

from ripwrap._ranking.scoring import PATH_WEIGHT
from ripwrap._ranking.word_query import is_unspaced, to_nfc
from ripwrap.errors import RipwrapError
from ripwrap.index.splitting import SplitText, fold, words_of
from ripwrap.index.storage.database import (
    BUSY,
    READONLY,
    DamageError,
    code_of,
    is_empty,
    last_id,
    write_transaction,
)
from ripwrap.index.storage.engine import (
    EngineFolder,
    EngineState,
    RebuildError,
    engine_errors,
    reading_state,
    remove_folder,
    tantivy,
)

POSTINGS_NAME = re.compile(r"(?:postings|trigrams)-[0-9a-f]{16}")
"""Pattern of the names of tantivy's directories, for full-text search and for trigrams. The names of the directories in
use are stored in the database.
"""

_SCORE_DIGITS = 3
"""Decimal places to which a score is rounded. Further places depend on the order in which 32-bit numbers are added."""
_MEAN_WORDS = 112
"""Mean length of documents in words, for BM25. The mean length of chunks with their paths is 90 to 130 words."""
_EXACT_WORDS = 40
"""Length of a document, in words, up to which tantivy stores every length without rounding."""
_FILLER = "\1"
"""Word that fills up documents to a given length. No text has this word."""
MIN_WASTE = 5_000
"""Minimum number of deleted documents at which the index is rebuilt, if at least half of all documents are deleted."""


def state_of(database: Connection) -> EngineState:
    """Return the state of full-text search."""
    row = database.execute("SELECT folder, state, documents FROM postings").fetchone()
    if row is None or not is_folder(row[0]):
        raise DamageError("the row about full-text search is damaged")
    return EngineState(*row)


def is_folder(name: object) -> bool:
    """Return True if a stored value is the name of a directory of tantivy."""
    return isinstance(name, str) and POSTINGS_NAME.fullmatch(name) is not None


def change_count(database: Connection, more: int, table: Literal["postings", "trigrams"] = "postings") -> None:
    """Add `more` to the number `documents` in the database.

    Also replace the random number `state`, by which other processes notice the change.
    """
    statement = f"UPDATE {table} SET documents = documents + ?, state = random() & 0x3fffffffffffffff"  # noqa: S608
    database.execute(statement, (more,))


class Postings:
    """Full-text search of an index. One thread at a time may use the object."""

    def __init__(self, folder: Path) -> None:
        """Set the directory of the index; nothing is opened yet."""
        self.min_waste: int = MIN_WASTE
        self._folder = folder
        self._opened: EngineFolder | None = None
        self._is_damaged = False  # set in another thread, so `check()` does not close the files itself
        self._last: tuple[tantivy.Searcher, EngineState, PostingsReader] | None = None

    def reset(self, database: Connection) -> None:
        """Make a new, empty directory for full-text search, in the transaction that deletes the content of the index.

        The old directory stays, because other processes may still read it.
        """
        name = f"postings-{secrets.token_hex(8)}"
        self._engine(name).make()
        database.execute("DELETE FROM stale")
        database.execute("DELETE FROM postings")
        database.execute("INSERT INTO postings VALUES (?, ?, 0)", (name, secrets.randbits(62)))

    @property
    def opened(self) -> str | None:
        """Name of the directory of full-text search that was opened last; `None` if none was opened."""
        return None if self._opened is None else self._opened.path.name

    def is_replaced(self, database: Connection, name: str | None) -> bool:
        """Return True if the database now names a directory of full-text search other than `name`."""
        found = database.execute("SELECT folder FROM postings").fetchone()
        return found is not None and found[0] != name

    def remove_others(self, database: Connection) -> None:
        """Remove directories of full-text search and of trigrams that are no longer in use.

        Rebuilds and killed processes leave such directories. While another process writes, nothing is removed.
        """
        with _transaction_if_free(database) as free:
            if free:
                names = "SELECT folder FROM postings UNION SELECT folder FROM trigrams"
                keep = [] if is_empty(database) else database.execute(names).fetchall()
                for path in self._folder.iterdir():
                    if POSTINGS_NAME.fullmatch(path.name) and (path.name,) not in keep:
                        with suppress(OSError):  # on Windows, while another process reads it
                            remove_folder(path)

    def close(self) -> None:
        """Close the files of full-text search."""
        self._opened = self._last = None

    @contextmanager
    def reading(self, database: Connection) -> "Generator[PostingsReader]":
        """Hold a transaction that reads, and yield a reader of the documents for the state that it sees."""
        opening = reading_state(database, state_of, lambda state: self._engine(state.folder).searcher())
        with opening as (state, searcher):
            # A new reader counts all documents, which takes milliseconds.
            if self._last is None or self._last[0] is not searcher or self._last[1] != state:
                self._last = searcher, state, PostingsReader(self._folder / state.folder, searcher, database)
            reader = self._last[2]
            if reader.count != state.documents:
                raise RebuildError("its full-text index and its database have different numbers of chunks")
            yield reader

    @contextmanager
    def writing(self, database: Connection, files: int) -> "Generator[PostingsWriter]":
        """Yield a writer of documents; commit them at the end of the block, and discard them after an error."""
        with ExitStack() as stack:
            yield PostingsWriter(self._engine(state_of(database).folder), database, files, stack)

    def clean(self, database: Connection) -> None:
        """Delete documents whose contents the database does not have.

        If another process is writing, nothing is deleted. That process, or a later call, deletes the documents.
        """
        with self.reading(database) as reader:
            if reader.is_clean and database.execute("SELECT 1 FROM stale").fetchone() is None:
                return
        with _transaction_if_free(database) as free:
            if free:
                with self.writing(database, 0) as writer:
                    writer.begin()

    def check(self, database: Connection) -> tuple[int, Exception | None]:
        """Read all files of full-text search, and return the number of chunks and `None`.

        If a file is damaged or cannot be read, return 0 and the error.
        """
        try:
            with Postings(self._folder).reading(database) as reader:
                return reader.count, None
        except RebuildError as error:
            self._is_damaged = True
            return 0, error
        except RipwrapError as error:
            return 0, error

    def _engine(self, name: str) -> EngineFolder:
        path = self._folder / name
        if self._is_damaged or self._opened is None or self._opened.path != path:
            self._is_damaged = False  # a new object verifies all files, also those whose size and time are as before
            self._opened = EngineFolder(path, _schema, {"words": _analyzer()})
        return self._opened


@contextmanager
def _transaction_if_free(database: Connection) -> Generator[bool]:
    """Hold a write transaction and yield True; yield False if another process writes, or the database is read-only."""
    with ExitStack() as stack:
        try:
            stack.enter_context(write_transaction(database, patience=0))
        except sqlite3.OperationalError as error:
            if code_of(error) not in (BUSY, READONLY):
                raise
            yield False
        else:
            yield True


class PostingsWriter:
    """Writer of documents of full-text search. It is opened when it is first used."""

    def __init__(self, engine: EngineFolder, database: Connection, files: int, stack: ExitStack) -> None:
        """Prepare to index a number of files, and to delete what killed processes have left; write nothing yet.

        `stack` commits the documents when it is closed, and discards them after an error.
        """
        self._stack = stack
        self._engine = engine
        self._database = database
        self._files = files
        self._writer: tantivy.IndexWriter | None = None
        self._left = _left_over(database)

    def add(self, blob: int, first: int, path: str, text: SplitText) -> None:
        """Add a document for each chunk of a file content."""
        writer = self.begin()
        lengths: list[int] = []
        words = f"{words_of(path)} " * round(PATH_WEIGHT)
        path_length = len(words.split())
        with engine_errors(self._engine.path, writing=True):
            for number, (of_chunk, length) in enumerate(zip(text.words, text.lengths, strict=True), first):
                lengths.append(next_length(path_length + length))
                filler = f" {_FILLER}" * (lengths[-1] - path_length - length)
                document = _document(blob, f"{words}{of_chunk}{filler}")
                document.add_integer("chunk", number)
                document.add_integer("is_chunk", 1)
                writer.add_document(document)
            for length in filling_lengths(lengths):
                document = _document(blob, f"{_FILLER} " * length)
                document.add_integer("is_chunk", 0)
                writer.add_document(document)

    def begin(self) -> "tantivy.IndexWriter":
        """Open the writer, and delete documents whose contents the database does not have."""
        if self._writer is None:
            self._writer = self._stack.enter_context(self._engine.writing(self._files))
            with engine_errors(self._engine.path, writing=True):
                self._writer.delete_documents_by_query(self._left)
            self._database.execute("DELETE FROM stale")
            change_count(self._database, 0)
        return self._writer


def _document(blob: int, words: str) -> "tantivy.Document":
    document = tantivy.Document()
    document.add_integer("blob", blob)
    document.add_text("words", words)
    return document


def next_length(words: int) -> int:
    """Return the smallest length of a document, not less than `words`, that tantivy stores without rounding.

    tantivy stores the length of a document in one byte, so it rounds lengths above `_EXACT_WORDS` down: the length
    minus 24 keeps only its four highest bits. When segments are merged, tantivy adds up rounded lengths
    (https://docs.rs/tantivy/latest/src/tantivy/fieldnorm/code.rs.html).
    """
    if words <= _EXACT_WORDS:
        return words
    step = 1 << (words - 24).bit_length() - 4
    return 24 + -(-(words - 24) // step) * step


def _last_length(words: int) -> int:
    """Return the largest length of a document, up to `words`, that tantivy stores without rounding."""
    if words <= _EXACT_WORDS:
        return words
    step = 1 << (words - 24).bit_length() - 4
    return 24 + (words - 24) // step * step


def filling_lengths(lengths: Sequence[int]) -> Iterator[int]:
    """Yield the lengths of filler documents, so that the mean of these lengths and of `lengths` is `_MEAN_WORDS`.

    tantivy stores each of these lengths without rounding; see `next_length()`.
    """
    lacking = len(lengths) * _MEAN_WORDS - sum(lengths)
    while lacking <= -_MEAN_WORDS:
        yield 0
        lacking += _MEAN_WORDS
    while lacking >= _MEAN_WORDS:  # each filler document adds at least 7/8 of the missing words
        yield (length := _last_length(_MEAN_WORDS + lacking))
        lacking -= length - _MEAN_WORDS
    if lacking:  # a longer document, whose length is rounded down, and a short one for the rest
        yield (length := _last_length(2 * _MEAN_WORDS + lacking))
        yield 2 * _MEAN_WORDS + lacking - length


class PostingsReader:
    """Reader of the documents of full-text search, for one state of the database."""

    def __init__(self, path: Path, searcher: "tantivy.Searcher", database: Connection) -> None:
        """Count the documents, and find out if some of them belong to no content in the database."""
        self._path = path
        self._searcher = searcher
        with engine_errors(path, writing=False):
            self._left = _left_over(database)
            self.is_clean: bool = not _count(searcher, self._left)
            chunks = tantivy.Query.term_query(_schema(), "is_chunk", 1)
            self.count: int = _count(searcher, chunks, None if self.is_clean else self._left)
        self._counted = searcher.doc_freq("is_chunk", 0) + searcher.doc_freq("is_chunk", 1)

    def check_waste(self, least: int) -> None:
        """Check how many deleted documents still take space, because tantivy has not merged their segments."""
        deleted = self._counted - self._searcher.num_docs
        if deleted >= least and deleted * 2 >= self._counted:
            raise RebuildError("its full-text index has too many deleted documents")

    def frequency(self, word: str) -> int:
        """Return about how many chunks have a word; chunks that were deleted may count, too."""
        terms = _analyzer().analyze(fold(to_nfc(word)))
        return min((self._searcher.doc_freq("words", term) for term in terms), default=0)

    def match(self, words: Mapping[str, float]) -> "WordMatches":
        """Return the documents that have at least one of the words; the BM25 of a word is multiplied by its weight."""
        left = None if self.is_clean else self._left
        return WordMatches(self._path, self._searcher, words, (self.count, self._counted), left)


class WordMatches:
    """Documents that have at least one of the words of a query."""

    def __init__(
        self,
        path: Path,
        searcher: "tantivy.Searcher",
        words: Mapping[str, float],
        sizes: tuple[int, int],
        left: "tantivy.Query | None",
    ) -> None:
        """Make tantivy's queries for the words, and count the documents that match.

        `sizes` are the numbers of documents that belong to chunks, and of all documents that tantivy counts. `left`
        finds documents whose contents the database does not have.
        """
        self._path = path
        self._searcher = searcher
        self._sizes = sizes
        self._left = left
        self.having: dict[str, int] = {}
        parts: list[tuple[tantivy.Occur, tantivy.Query]] = []
        with engine_errors(path, writing=False):
            for word, weight in words.items():
                query, self.having[word] = self._word_query(word)
                if weight != 1:
                    query = tantivy.Query.boost_query(query, weight)
                parts.append((tantivy.Occur.Should, query))
            self._query = tantivy.Query.boolean_query(parts)
            self.total: int = _count(searcher, self._query, left)

    def best(self, limit: int) -> list[tuple[int, float]]:
        """Return the ids of the chunks with the highest BM25, each with its BM25; the best chunk comes first."""
        if not self.total:
            return []
        return self._rows(self._query, min(limit, self.total))

    def of_blobs(self, blobs: Collection[int]) -> list[tuple[int, float]]:
        """Return the ids of the chunks that match and belong to contents with ids in `blobs`, each with its BM25."""
        if not blobs:
            return []
        some = tantivy.Query.boost_query(
            tantivy.Query.const_score_query(tantivy.Query.term_set_query(_schema(), "blob", list(blobs)), 0), 0
        )
        query = tantivy.Query.boolean_query([(tantivy.Occur.Must, some), (tantivy.Occur.Must, self._query)])
        with engine_errors(self._path, writing=False):
            count = _count(self._searcher, query, self._left)
        return self._rows(query, count) if count else []

    def _rows(self, query: "tantivy.Query", limit: int) -> list[tuple[int, float]]:
        with engine_errors(self._path, writing=False):
            if self._left is not None:
                query = _without(query, self._left)
            hits = self._searcher.search(query, limit=limit, count=True).hits
            numbers = self._searcher.fast_field_values("chunk", [address for _, address in hits])
        return [
            (int(number), round(score, _SCORE_DIGITS))
            for (score, _), number in zip(hits, numbers, strict=True)
            if number is not None
        ]

    def _word_query(self, word: str) -> "tuple[tantivy.Query, int]":
        """Return tantivy's query for a word, and the number of chunks that have the word."""
        schema, (count, counted) = _schema(), self._sizes
        if len(word) == 1 and is_unspaced(word):  # each character of such a script begins a word; see `fts_text()`
            query = tantivy.Query.regex_query(schema, "words", f"{word}.*")
            having = _count(self._searcher, query, self._left)
            return tantivy.Query.boost_query(query, _idf(count, having)), having
        terms = _analyzer().analyze(fold(to_nfc(word)))
        if len(terms) != 1:
            every = [tantivy.Query.term_query(schema, "words", term, "freq") for term in terms]
            query = tantivy.Query.boolean_query([(tantivy.Occur.Must, term) for term in every])
            return query, _count(self._searcher, query, self._left)
        query = tantivy.Query.term_query(schema, "words", terms[0], "freq")
        frequency = self._searcher.doc_freq("words", terms[0])
        is_exact = self._left is None and self._searcher.num_docs == counted  # no document is deleted
        having = frequency if is_exact else _count(self._searcher, query, self._left)
        return tantivy.Query.boost_query(query, _idf(count, having) / _idf(counted, frequency)), having


def _left_over(database: Connection) -> "tantivy.Query":
    """Return tantivy's query for leftover documents: their contents were removed from the database, or never added."""
    last = last_id(database, "blob")
    stale = [blob for (blob,) in database.execute("SELECT blob FROM stale")]
    schema = _schema()
    parts = [
        tantivy.Query.range_query(
            schema, "blob", tantivy.FieldType.Integer, last, include_lower=False, use_inverted_index=True
        ),
        *([tantivy.Query.term_set_query(schema, "blob", stale)] if stale else []),
    ]
    return tantivy.Query.boolean_query([(tantivy.Occur.Should, part) for part in parts])


def _without(query: "tantivy.Query", left: "tantivy.Query") -> "tantivy.Query":
    return tantivy.Query.boolean_query([(tantivy.Occur.Must, query), (tantivy.Occur.MustNot, left)])


def _count(searcher: "tantivy.Searcher", query: "tantivy.Query", left: "tantivy.Query | None" = None) -> int:
    """Return the number of documents that match, without deleted ones and those that the query `left` finds."""
    query = query if left is None else _without(query, left)
    return int(cast("Any", searcher.search(query, limit=1, count=True)).count)


def _idf(total: int, having: int) -> float:
    """Return the weight in tantivy's BM25 of a word that occurs in `having` of `total` documents."""
    return math.log(1 + (total - having + 0.5) / (having + 0.5))


@cache
def _schema() -> "tantivy.Schema":
    builder = tantivy.SchemaBuilder()
    builder.add_integer_field("chunk", fast=True)
    builder.add_integer_field("blob", indexed=True)
    builder.add_integer_field("is_chunk", indexed=True)  # 1 or 0
    builder.add_text_field("words", tokenizer_name="words", index_option="freq")
    return builder.build()


@cache
def _analyzer() -> "tantivy.TextAnalyzer":
    return tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).filter(tantivy.Filter.stemmer("english")).build()
