"""Frozen models of the results of `Index`, and data that the modules of this package pass to each other."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from sqlite3 import Connection
from typing import Annotated, Literal, TypeAlias

from pydantic import ValidatorFunctionWrapHandler, WrapValidator

from ripwrap._text import FsPath
from ripwrap.errors import EmbedReason, HintedText
from ripwrap.index.storage.tables import Sent
from ripwrap.models import Model


def _keep_hints(text: object, check: ValidatorFunctionWrapHandler) -> str:
    """Validate a text, but return a `HintedText` unchanged: the validation of Pydantic would drop its hints."""
    return text if isinstance(text, HintedText) else check(text)


HintedSentence: TypeAlias = Annotated[str, WrapValidator(_keep_hints)]
"""Sentence, perhaps a `HintedText`: a text with hints that say what to do."""
HintedSentences: TypeAlias = tuple[HintedSentence, ...]

SkipReason: TypeAlias = Literal["binary", "unreadable"]


class Progress(Model, frozen=True):
    """Progress of a refresh, which first indexes files and then embeds their texts.

    Attributes:
        files: Number of new or changed files indexed so far.
        total: Number of all new or changed files.
        chunks: Number of chunks written so far.
        embedded: Number of texts embedded so far.
        to_embed: Number of texts that had no embedding when the refresh began to embed.
        elapsed: Seconds since the start of the refresh.
    """

    files: int
    total: int
    chunks: int
    embedded: int = 0
    to_embed: int = 0
    elapsed: float = 0.0


class Skipped(Model, frozen=True):
    """Files that are left out of the index for the same reason.

    Attributes:
        reason: `"binary"` for files with binary content, or `"unreadable"`.
        files: Number of files.
        example: Path of one of these files, relative to the root.
    """

    reason: SkipReason
    files: int
    example: FsPath


class EmbeddingFailure(Model, frozen=True):
    """Texts that could not be embedded for the same reason.

    Searches find these texts only by their words. The next refresh tries again to embed them.

    Attributes:
        reason: Kind of failure; see `EmbeddingError`.
        texts: Number of texts. Chunks (parts of files) with equal text count once.
        message: Error message for the first of these texts.
    """

    reason: EmbedReason
    texts: int
    message: str


class RefreshResult(Model, frozen=True):
    """Result of a refresh.

    The files are compared with the last refresh of the same branch. The first refresh of a branch compares them with
    the branch that was refreshed last, so a new branch with one changed file has one changed file. Files that are left
    out of the index, because they are binary or unreadable, are only in `skipped`.

    Attributes:
        added: Number of files that were not indexed before.
        changed: Number of files whose content has changed.
        removed: Number of files that are no longer indexed, because they were deleted, are ignored now, or have become
            binary or unreadable.
        unchanged: Number of files whose content has not changed.
        skipped: Files that are left out of the index, by reason. A refresh reads a binary file again only after the
            file has changed. Each refresh tries to read an unreadable file.
        cut: Number of files of which only the first million bytes are indexed.
        chunks: Number of chunks (parts of files) written. Content that the index already has, e.g. from another branch,
            is not written again.
        read: Number of files read. A file is read if its size or times differ from the last refresh.
        chunks_removed: Number of chunks removed, because no branch in the index has them any more.
        seconds: Duration in seconds, from the listing of the files to the last text that was embedded.
        embedded: Number of texts embedded. Chunks with equal text count once.
        failed: Texts that could not be embedded, by reason.
    """

    added: int
    changed: int
    removed: int
    unchanged: int
    skipped: tuple[Skipped, ...]
    cut: int
    chunks: int
    seconds: float
    read: int = 0
    chunks_removed: int = 0
    embedded: int = 0
    failed: tuple[EmbeddingFailure, ...] = ()


class IndexView(Model, frozen=True):
    """View of an index: the files that one set of options chooses in one directory, on one git branch.

    Attributes:
        name: Name of the branch; `"detached HEAD"` or `"no repository"` if there is no branch, and `"unknown branch"`
            if the branch cannot be read.
        root: Path of the directory.
        options: rg's flags that choose the files, as a JSON list.
        files: Number of files, including skipped files.
        chunks: Number of chunks of these files.
        changed_at: Time of the last refresh that found changes, and wrote them to the view.
        current: True if searches use this view now.
        gone: True if the branch or directory no longer exists. `prune()` then removes the view.
    """

    name: str
    root: FsPath
    options: str
    files: int
    chunks: int
    changed_at: datetime
    current: bool
    gone: bool


class IndexedModel(Model, frozen=True):
    """Embedding model that has embeddings in an index.

    Attributes:
        name: Name of the model, as `provider:model`.
        dimension: Number of values in an embedding.
        vectors: Number of stored embeddings of the model. Chunks with equal text share an embedding.
    """

    name: str
    dimension: int
    vectors: int


class IndexStatus(Model, frozen=True):
    """Status of an index after its last refresh.

    Attributes:
        built: True if the index has a view of the current branch with the options of this `Index`, even a view that
            another chunker made.
        outdated: True if the next refresh rebuilds the index, because another chunker or version made it, because it is
            damaged, or because it is in the project and this user did not make it.
        files: Number of files of the current branch that are indexed: files that are neither binary nor unreadable.
        chunks: Number of chunks of these files.
        bytes: Size of the index on disk in bytes, with all views and usearch's graphs of embeddings.
        view: Name of the current view, which is the name of the branch.
        views: All views in the index.
        models: All embedding models that have embeddings in the index, even models that this `Index` does not use.
        location: Path of the directory of the index.
        schema_version: Version of the database tables that this version of ripwrap uses.
        chunker: Name and version of the chunker that made the index. If there is no index, the chunker that the first
            refresh will use.
        model: Name of the embedding model, as `provider:model`; `None` without an embedder.
        dimension: Number of values in an embedding; `None` if it is not known yet, or without an embedder.
        lacking: Number of texts of the current branch that have no embedding; 0 without an embedder.
        changed_at: Time of the last refresh that found changes on the current branch; `None` if there was no such
            refresh.
        sent: Sentences that say which texts are sent to which address; empty without an embedder, because then nothing
            leaves the machine.
        sent_texts: Number of texts and queries that were sent to the model since the index was made, by all processes;
            a retry counts again.
        sent_characters: Number of characters of these texts and queries.
        messages: Sentences about problems, each with what to do next.
    """

    built: bool
    outdated: bool
    files: int
    chunks: int
    bytes: int
    view: str
    views: tuple[IndexView, ...]
    models: tuple[IndexedModel, ...]
    location: FsPath
    schema_version: int
    chunker: str
    model: str | None
    dimension: int | None
    lacking: int
    changed_at: datetime | None
    sent: tuple[str, ...]
    sent_texts: int = 0
    sent_characters: int = 0
    messages: HintedSentences


class CheckResult(Model, frozen=True):
    """Result of `Index.check()`.

    Attributes:
        ok: True if no damage was found, and the index can be read and trusted. There may still be messages, e.g. about
            deleted branches.
        checked: Result of SQLite's own check: `"ok"`, or a description of the damage, or of the error if the index
            cannot be read.
        files: Number of files of all views; a file that two branches have counts twice.
        blobs: Number of stored file contents. If several views have the same file, its content is stored once.
        chunks: Number of chunks.
        indexed: Number of chunks in full-text search; equal to `chunks` in an undamaged index.
        orphans: Number of stored file contents that belong to no view; `prune()` removes them.
        chunker: Name and version of the chunker; empty if there is no index, or it cannot be read.
        views: All views in the index.
        models: All embedding models that have embeddings in the index.
        messages: Sentences about problems, each with what to do next.
    """

    ok: bool
    checked: str
    files: int
    blobs: int
    chunks: int
    indexed: int
    orphans: int
    messages: HintedSentences
    chunker: str = ""
    views: tuple[IndexView, ...] = ()
    models: tuple[IndexedModel, ...] = ()


class PruneResult(Model, frozen=True):
    """Content that `Index.prune()` removed.

    Attributes:
        views: Names of the removed views, whose branch or directory is gone.
        blobs: Number of removed file contents.
        chunks: Number of removed chunks.
        vectors: Number of removed embeddings.
        bytes: Number of bytes that were freed on disk.
    """

    views: tuple[str, ...]
    blobs: int
    chunks: int
    vectors: int
    bytes: int


Pool: TypeAlias = Sequence[tuple[int, float]]
"""Chunks that a search has found: the id and score of each chunk, the best first. Scores of different searches cannot
be compared.
"""


@dataclass(frozen=True, slots=True)
class VectorSearch:
    """Function that searches for one query by embeddings, or the reason why there is no such function."""

    search: Callable[[Connection, int], Pool | None] | None
    weight: float | None = None
    unavailable: str = ""
    incomplete: str = ""


@dataclass(frozen=True, slots=True)
class EmbedderInfo:
    """Facts about an embedder, for the status of an index."""

    name: str
    dimension: int | None
    destination: str
    sent: Sent
