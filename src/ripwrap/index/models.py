"""What an index says of itself: frozen models."""

from datetime import datetime
from typing import Literal, TypeAlias

from pydantic import BaseModel

from ripwrap._text import FsPath
from ripwrap.errors import EmbedReason

SkipReason: TypeAlias = Literal["binary", "unreadable"]


class Progress(BaseModel, frozen=True):
    """How far a refresh is.

    Attributes:
        files: How many files are done, of those that are new or differ.
        total: How many there are of them.
        chunks: How many chunks were written.
        embedded: How many texts have got a vector, after the files.
        to_embed: How many had none.
    """

    files: int
    total: int
    chunks: int
    embedded: int = 0
    to_embed: int = 0


class Skipped(BaseModel, frozen=True):
    """Files that are not in the index.

    Attributes:
        reason: Why.
        files: How many.
        example: One of them.
    """

    reason: SkipReason
    files: int
    example: FsPath


class NotEmbedded(BaseModel, frozen=True):
    """Texts that have no vector yet; the next refresh asks for them again, and until then words alone find them.

    Attributes:
        reason: What went wrong; see `EmbeddingError`.
        texts: How many texts; chunks that are alike are one.
        message: The error of the first of them.
    """

    reason: EmbedReason
    texts: int
    message: str


class Refreshed(BaseModel, frozen=True):
    """What a refresh found and did.

    Attributes:
        added: How many files are new.
        changed: How many have other content than before.
        removed: How many are no longer there.
        unchanged: How many are as they were.
        skipped: What is left out, by reason; binary files are looked at again only when they change, and what could not
            be read each time.
        cut: How many files are in the index with their first million bytes alone.
        chunks: How many chunks were written; content that was known, e.g. from another branch, needs none.
        seconds: How long it took.
        embedded: How many texts have got a vector; chunks that are alike are one text.
        failed: Texts that have none yet, by reason.
    """

    added: int
    changed: int
    removed: int
    unchanged: int
    skipped: tuple[Skipped, ...]
    cut: int
    chunks: int
    seconds: float
    embedded: int = 0
    failed: tuple[NotEmbedded, ...] = ()


class IndexView(BaseModel, frozen=True):
    """The files of one branch, in one folder.

    Attributes:
        name: The branch; `"detached HEAD"` or `"no repository"` if there is none.
        root: The folder.
        options: The options of `Index` that chose its files, as JSON.
        files: How many files it has, those that are skipped among them.
        current: Whether searches look at this one now.
    """

    name: str
    root: FsPath
    options: str
    files: int
    current: bool


class IndexStatus(BaseModel, frozen=True):
    """What there is; nothing was refreshed for it.

    Attributes:
        built: Whether the current view was ever indexed.
        files: How many files the current view has text of.
        chunks: How many chunks that are.
        bytes: The size of the index on disk, of all its views.
        view: The name of the current view.
        views: All views.
        location: The folder that has the index.
        schema_version: The version of its tables.
        chunker: What cuts files into chunks.
        model: The embedding model, as `provider:model`; `None` if there is none.
        dimension: How many numbers its vectors have; `None` if that is not known yet.
        lacking: How many texts of the current view's chunks have no vector of it; 0 without a model.
        changed_at: When a refresh last had something to write into the current view.
        sent: What is sent to whom, in a sentence; empty without a model, because then nothing leaves the machine.
    """

    built: bool
    files: int
    chunks: int
    bytes: int
    view: str
    views: tuple[IndexView, ...]
    location: FsPath
    schema_version: int
    chunker: str
    model: str | None
    dimension: int | None
    lacking: int
    changed_at: datetime | None
    sent: tuple[str, ...]


class IndexHealth(BaseModel, frozen=True):
    """Whether an index is sound.

    Attributes:
        ok: Whether nothing is wrong.
        checked: What SQLite's own check says: `"ok"`, or what is damaged.
        files: How many entries all views have.
        blobs: How many contents of files there are.
        chunks: How many chunks.
        indexed: How many of them full-text search has; the same number if all is well.
        orphans: How many contents no view has; `gc()` removes them.
        messages: What is wrong, and what to do; what is only worth knowing, too.
    """

    ok: bool
    checked: str
    files: int
    blobs: int
    chunks: int
    indexed: int
    orphans: int
    messages: tuple[str, ...]


class Collected(BaseModel, frozen=True):
    """What `Index.gc()` removed.

    Attributes:
        views: The views that are gone, by name: their branch or folder is no more.
        blobs: How many contents of files.
        chunks: How many chunks.
        vectors: How many embeddings.
        bytes: By how much the index got smaller on disk.
    """

    views: tuple[str, ...]
    blobs: int
    chunks: int
    vectors: int
    bytes: int
