"""Frozen models of the results of an index, and values that modules of the index exchange."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from pydantic import ValidatorFunctionWrapHandler, WrapValidator

from ripwrap._text import FsPath
from ripwrap.errors import EmbedReason, HintedText
from ripwrap.index.storage.tables import Sent
from ripwrap.models import Model


def _keep_hints(text: object, check: ValidatorFunctionWrapHandler) -> str:
    """Return a text with its hints; the usual validation of Pydantic would drop them."""
    return text if isinstance(text, HintedText) else check(text)


Messages: TypeAlias = tuple[Annotated[str, WrapValidator(_keep_hints)], ...]
"""Sentences, which may have hints."""

if TYPE_CHECKING:
    from sqlite3 import Connection

SkipReason: TypeAlias = Literal["binary", "unreadable"]


class Progress(Model, frozen=True):
    """Progress of a refresh: first of the files, then of the embedding of their texts.

    Attributes:
        files: Number of new or changed files that are done.
        total: Number of new or changed files.
        chunks: Number of chunks written.
        embedded: Number of texts embedded.
        to_embed: Number of texts that had no embedding at the start.
        elapsed: Seconds since the start.
    """

    files: int
    total: int
    chunks: int
    embedded: int = 0
    to_embed: int = 0
    elapsed: float = 0.0


class Skipped(Model, frozen=True):
    """Files that are not in the index.

    Attributes:
        reason: Reason: binary content, or unreadable.
        files: Number of files.
        example: Path of one of them.
    """

    reason: SkipReason
    files: int
    example: FsPath


class EmbeddingFailure(Model, frozen=True):
    """Texts that could not be embedded. Only words find them; the next refresh tries again to embed them.

    Attributes:
        reason: Kind of failure; see `EmbeddingError`.
        texts: Number of texts; equal chunks are one text.
        message: Error of the first text.
    """

    reason: EmbedReason
    texts: int
    message: str


class RefreshResult(Model, frozen=True):
    """Result of a refresh.

    Attributes:
        added: Number of new files.
        changed: Number of files with other content than before.
        removed: Number of files that are gone.
        unchanged: Number of files with the same content as before.
        skipped: Files that are not in the index, by reason. A binary file is read again after a change. Each refresh
            tries an unreadable file again.
        cut: Number of files of which only the first million bytes are indexed.
        chunks: Number of chunks written. Content that the index already has, e.g. from another branch, is not written
            again.
        seconds: Duration in seconds, from the listing of the files to the last text that was embedded.
        embedded: Number of texts embedded; equal chunks are one text.
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
    embedded: int = 0
    failed: tuple[EmbeddingFailure, ...] = ()


class IndexView(Model, frozen=True):
    """View of an index: the files of one branch, in one directory.

    Attributes:
        name: Branch; `"detached HEAD"` or `"no repository"` if there is none.
        root: Directory.
        options: Options of `Index` that chose the files, as JSON.
        files: Number of files, including skipped ones.
        chunks: Number of chunks of these files.
        changed_at: Time of the last refresh that wrote to the view.
        current: True if this is the view that is searched now.
        gone: True if the branch or directory does not exist any more; `prune()` removes the view.
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
        name: Model, as `provider:model`.
        dimension: Number of values in an embedding.
        vectors: Number of embeddings, of all views; equal chunks share one.
    """

    name: str
    dimension: int
    vectors: int


class IndexStatus(Model, frozen=True):
    """Status of an index, as of the last refresh.

    Attributes:
        built: True if the current view has been indexed, with any chunker.
        outdated: True if the next refresh rebuilds the index, because another chunker or version made it, or because it
            is damaged.
        files: Number of files of the current view with text in the index.
        chunks: Number of chunks of these files.
        bytes: Size of the index on disk, with all views.
        view: Name of the current view.
        views: All views.
        models: All embedding models that have embeddings in the index, including those that this `Index` does not use.
        location: Directory of the index.
        schema_version: Version of the tables.
        chunker: Name and version of the chunker that made the index. If there is no index, the chunker that will make
            it.
        model: Embedding model, as `provider:model`; `None` without an embedder.
        dimension: Number of values in a vector; `None` until it is known.
        lacking: Number of texts of the current view that have no embedding; 0 without an embedder.
        changed_at: Time of the last refresh that wrote to the current view; `None` if there was none.
        sent: Sentences that say which texts are sent to which address; empty without an embedder, because then nothing
            leaves the machine.
        sent_texts: Number of texts and queries that were sent to the model since the index was made, by all processes;
            a retry counts again.
        sent_characters: Number of characters of these texts and queries.
        messages: Notes, each with what to do.
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
    messages: Messages


class CheckResult(Model, frozen=True):
    """Result of checking an index.

    Attributes:
        ok: True if nothing is wrong.
        checked: Result of SQLite's own check: `"ok"`, or the damage.
        files: Number of files of all views.
        blobs: Number of contents of files.
        chunks: Number of chunks.
        indexed: Number of chunks in full-text search; equal to `chunks` in a sound index.
        orphans: Number of contents that no view has; `prune()` removes them.
        chunker: Name and version of the chunker; empty if there is no index, or it cannot be read.
        views: All views.
        models: All embedding models that have embeddings in the index.
        messages: Problems and notes, each with what to do.
    """

    ok: bool
    checked: str
    files: int
    blobs: int
    chunks: int
    indexed: int
    orphans: int
    messages: Messages
    chunker: str = ""
    views: tuple[IndexView, ...] = ()
    models: tuple[IndexedModel, ...] = ()


class PruneResult(Model, frozen=True):
    """Content that `Index.prune()` removed.

    Attributes:
        views: Names of the removed views, whose branch or directory is gone.
        blobs: Number of removed contents of files.
        chunks: Number of removed chunks.
        vectors: Number of removed embeddings.
        bytes: Bytes that were freed on disk.
    """

    views: tuple[str, ...]
    blobs: int
    chunks: int
    vectors: int
    bytes: int


Pool: TypeAlias = Sequence[tuple[int, float]]
"""Numbers of chunks with their scores, the best first. Scores of different pools are not comparable."""


@dataclass(frozen=True, slots=True)
class VectorSearch:
    """Ranking of a query by embeddings, and the reason if it is missing or incomplete.

    Attributes:
        search: Function that returns the pool of a view, with cosines, or `None` if the view has no vectors. This
            attribute itself is `None` if vectors cannot be searched.
        weight: Weight of embeddings in the score, from 0 to 1; `None` is the default.
        unavailable: Reason why vectors cannot be searched; empty if they can be.
        incomplete: Sentence about the texts that have no embedding yet; empty if all texts have one.
    """

    search: "Callable[[Connection, int], Pool | None] | None"
    weight: float | None = None
    unavailable: str = ""
    incomplete: str = ""


@dataclass(frozen=True, slots=True)
class EmbedderInfo:
    """An embedder as the status of an index shows it.

    Attributes:
        name: The model, as `provider:model`.
        dimension: Number of values in a vector; `None` until it is known.
        destination: Sentence about the destination of texts.
        sent: Numbers of texts and characters that were sent, but are not yet counted in the index.
    """

    name: str
    dimension: int | None
    destination: str
    sent: Sent
