"""Results of the tools that make, describe and check an index: frozen models."""

from collections.abc import Iterator
from datetime import datetime

from ripwrap._text import plural, shown, shown_path
from ripwrap.models import Model
from ripwrap.workspace.results import ToolResult


class IndexedRoot(Model, frozen=True):
    """Changes that `index_codebase()` made for one root.

    Attributes:
        root: Path of the root.
        added: Number of files that were not indexed before.
        changed: Number of files with changed content.
        removed: Number of files that are no longer indexed.
        unchanged: Number of files that did not change.
        skipped: Number of files that are left out because they are binary or cannot be read.
        chunks: Number of chunks (parts of files) that were written to the index.
        read: Number of files that were read.
        chunks_removed: Number of chunks that were removed from the index.
        seconds: Duration in seconds.
        pruned: Names of deleted branches whose content was removed from the index.
        embedded: Number of texts that were embedded; equal chunks are one text.
        failed: Reasons why texts were not embedded, each with the number of texts.
    """

    root: str
    added: int
    changed: int
    removed: int
    unchanged: int
    skipped: int
    chunks: int
    seconds: float
    pruned: tuple[str, ...]
    read: int = 0
    chunks_removed: int = 0
    embedded: int = 0
    failed: tuple[str, ...] = ()


class IndexCodebaseResult(ToolResult, frozen=True):
    """Result of `index_codebase()`.

    Attributes:
        roots: Changes for each root.
    """

    roots: tuple[IndexedRoot, ...]

    _entries = ("roots",)

    def _body(self) -> Iterator[str]:
        for one in self.roots:
            files = f"{one.added} new, {one.changed} changed, {one.removed} removed, {one.unchanged} unchanged"
            gone = f"; removed branches that are gone: {', '.join(map(shown, one.pruned))}" if one.pruned else ""
            embedded = f", {plural(one.embedded, 'text')} embedded" if one.embedded else ""
            chunks = f"{plural(one.chunks, 'chunk')} added, {one.chunks_removed} removed"
            yield f"{shown_path(one.root)}: {files}, {one.skipped} left out; {chunks}{embedded}{gone}"
            yield from (f"  {shown(why)}" for why in one.failed)


class RootStatus(Model, frozen=True):
    """State of the index of one root.

    Attributes:
        root: Path of the root.
        built: True if the index has the current branch of the root.
        outdated: True if another chunker or version of ripwrap made the index, or if the index is damaged.
            `index_codebase` rebuilds the index.
        files: Number of indexed files.
        chunks: Number of chunks (parts) of these files.
        bytes: Size of the index on disk in bytes, with all branches.
        branch: Current branch of the root.
        branches: Branches in the index.
        chunker: Name and version of the chunker, which splits files.
        model: Embedding model; `None` if the index has no embeddings.
        changed_at: Time of the last change of the index for the current branch; `None` if there was no change.
        lacking: Number of texts without an embedding.
        sent: Sentences that say which texts are sent to which address to be embedded; empty without a model.
        sent_texts: Number of texts and queries that were sent since the index was made; a retry counts again.
        sent_characters: Number of characters of these texts and queries.
        messages: Notes, each with what to do.
    """

    root: str
    built: bool
    outdated: bool
    files: int
    chunks: int
    bytes: int
    branch: str
    branches: tuple[str, ...]
    chunker: str
    model: str | None = None
    changed_at: datetime | None = None
    lacking: int = 0
    sent: tuple[str, ...] = ()
    sent_texts: int = 0
    sent_characters: int = 0
    messages: tuple[str, ...] = ()


class IndexStatusResult(ToolResult, frozen=True):
    """Result of `index_status()`.

    Attributes:
        roots: State of the index of each root.
    """

    roots: tuple[RootStatus, ...]

    _entries = ("roots",)

    def _body(self) -> Iterator[str]:
        for one in self.roots:
            name = f"{shown_path(one.root)} ({shown(one.branch)})"
            if one.built:
                changed = f", changed {one.changed_at:%Y-%m-%d %H:%M:%S} UTC" if one.changed_at else ""
                model = f", model {shown(one.model)}" if one.model else ""
                sizes = f"{plural(one.files, 'file')}, {plural(one.chunks, 'chunk')}, {one.bytes} bytes"
                yield f"{name}: {sizes}{model}{changed}"
            else:
                others = ", ".join(map(shown, one.branches))
                yield f"{name}: not built{f'; the index has {others}' if others else ''}"
            yield from (f"  embeddings: {shown(what)}" for what in one.sent)
            if one.sent_texts:
                yield f"  sent so far: {one.sent_characters:,} characters in {plural(one.sent_texts, 'text')}"
            if one.lacking:
                yield f"  without an embedding: {plural(one.lacking, 'text')}; index_codebase embeds them"
            yield from (f"  {shown(message)}" for message in one.messages)


class RootHealth(Model, frozen=True):
    """Health of the index of one root.

    Attributes:
        root: Path of the root.
        ok: True if no problem was found.
        files: Number of files in all branches.
        chunks: Number of chunks (parts of files) in all branches.
        indexed: Number of chunks that can be searched; equal to `chunks` in a sound index.
        orphans: Number of stored file contents that no branch uses.
        messages: Problems and notes, each with what to do.
    """

    root: str
    ok: bool
    files: int
    chunks: int
    indexed: int
    orphans: int = 0
    messages: tuple[str, ...] = ()


class IndexHealthResult(ToolResult, frozen=True):
    """Result of `index_health_check()`.

    Attributes:
        roots: Health of the index of each root.
    """

    roots: tuple[RootHealth, ...]

    _entries = ("roots",)

    def _body(self) -> Iterator[str]:
        for one in self.roots:
            yield f"{shown_path(one.root)}: {'sound' if one.ok else 'NOT sound'}, {plural(one.chunks, 'chunk')}"
            yield from (f"  {shown(message)}" for message in one.messages)
