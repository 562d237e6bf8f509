"""Build, search, describe and check the indexes of the roots of a workspace.

An index has only files that the tools may show: no hidden, ignored or denied files, and no files outside of the roots.
"""

import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any

from ripwrap._ranking.passages import DEEP
from ripwrap._ranking.word_query import WordQuery
from ripwrap._ripgrep.literals import Required
from ripwrap._ripgrep.protocols import Runner
from ripwrap._ripgrep.runner import DeadlineRunner
from ripwrap._system.concurrency import in_thread
from ripwrap._text import as_utf8, plural, shown, shown_path
from ripwrap.errors import Hint, HintedText, spell
from ripwrap.index.base import BaseIndex, check_weight, weight_without_embedder_error
from ripwrap.index.embeddings.protocol import Destination, Embedder, Limits, describe, limits_of
from ripwrap.index.maintenance import Remedy, check_index, prune_views
from ripwrap.index.models import CheckResult, IndexStatus, RefreshResult
from ripwrap.index.models import Progress as Done
from ripwrap.index.search import IndexResults
from ripwrap.index.storage.database import DamageError, versions_of
from ripwrap.models import Model
from ripwrap.options import StrPath
from ripwrap.places.items import Candidates
from ripwrap.results import RankedChunk
from ripwrap.workspace.arguments import spell_as_argument
from ripwrap.workspace.history import CommitHistory
from ripwrap.workspace.redact import Redaction
from ripwrap.workspace.results import ToolResult
from ripwrap.workspace.scope import ReportProgress, Scope, Settings, scope_of_root

if TYPE_CHECKING:
    from ripwrap.index.embeddings.protocol import Vectors


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


class _RootIndex(BaseIndex):
    """Index of one root, with only the files that the tools may show."""

    def __init__(
        self,
        found: Scope,
        location: StrPath | None,
        embedder: Embedder | None,
        hybrid_weight: float | None,
        history: CommitHistory,
    ) -> None:
        self._history = history
        super().__init__(
            found.location.cwd, location=location, embedder=embedder, hybrid_weight=hybrid_weight, **found.options
        )
        self._depth = DEEP
        self._allowed = found.allowed
        self.is_guarded = "max_depth" in found.options
        self._unsound = False

    async def find(
        self, run: Runner, query: str, limit: int, seconds: float | None, shown: Callable[[str], bool]
    ) -> IndexResults:
        patience = None if seconds is None else seconds / 2  # keep half of the time for a ranking without embeddings
        run = DeadlineRunner(run, seconds, self._lock)
        return await self._search_chunks(run, query, limit, refresh=True, patience=patience, shown=shown)

    def _evidence(self, query: WordQuery) -> Mapping[str, float]:
        return self._history.evidence(str(self.root), query)

    async def candidates(self, run: Runner, required: Required, seconds: float | None) -> Candidates:
        return await self._candidates(DeadlineRunner(run, seconds, self._lock), required, None, refresh=True)

    async def refresh(
        self, run: Runner, progress: Callable[[Done], object] | None
    ) -> tuple[RefreshResult, tuple[str, ...]]:
        """Refresh the index; return the result, and the names of deleted branches that were removed from the index."""
        run = DeadlineRunner(run, None, self._lock)
        done = await self._refresh(run, progress, rebuild=self._unsound)
        await run.call(lambda: self._trigrams.update(self._current_view()))
        self._unsound = False
        return done, await run.call(lambda: prune_views(self._store))

    async def status(self, run: Runner) -> IndexStatus:
        status = await self._get_status(run)
        self._unsound = self._unsound or (status.outdated and not status.views)  # damaged
        return status

    async def check(self, run: Runner) -> tuple[CheckResult, Remedy]:
        result = await run.call(lambda: check_index(self._store, self._current_view()))
        self._unsound = result[1] == "rebuild"
        return result

    def is_built(self) -> bool:
        """Return True if the index was built for this root, on any branch, by the same versions of ripwrap's parts.

        A refresh is then quick.
        """
        view = self._current_view()

        def built(database: sqlite3.Connection) -> bool:
            found = database.execute("SELECT 1 FROM view WHERE root = ? AND options = ? LIMIT 1", view.key[:2])
            return found.fetchone() is not None and versions_of(database) == self._store.versions

        with suppress(sqlite3.Error, DamageError):  # treat a damaged index as one that was not built
            return bool(self._store.read_only(built))
        return False

    def allows(self, path: str) -> bool:
        """Return True if an answer may show a path, which is relative to the root."""
        return self._allowed is None or self._allowed(path)

    def close(self) -> None:
        self._close()

    def _without_own(self, paths: Sequence[str]) -> Sequence[str]:
        own = super()._without_own(paths)
        return own if self._allowed is None else [path for path in own if self.allows(path)]


class _MaskingEmbedder:
    """Embedder that masks the secrets in texts and queries, and passes them to another embedder."""

    def __init__(self, embedder: Embedder, redact: Redaction) -> None:
        self._embedder = embedder
        self._redact = redact
        self.name: str = embedder.name
        self.limits: Limits = limits_of(embedder)
        self.destination: Destination = describe(embedder)

    @property
    def dimension(self) -> int | None:
        return self._embedder.dimension

    async def embed(self, texts: Sequence[str], *, query: bool) -> "Vectors":
        masked = await in_thread(lambda: [self._redact(text).text for text in texts])
        return await self._embedder.embed(masked, query=query)


@dataclass(frozen=True, slots=True)
class IndexAnswer:
    """Results of the indexes for a query of `codebase_search`."""

    chunks: list[RankedChunk]
    by_vectors: bool
    notes: tuple[str, ...]


class Indexes:
    """Indexes of the roots of a workspace; each root has its own index."""

    def __init__(
        self,
        settings: Settings,
        location: StrPath | None,
        embedder: Embedder | None,
        hybrid_weight: float | None,
        history: CommitHistory,
    ) -> None:
        self._settings = settings
        self._history = history
        self._location = location
        self._embedder = embedder
        if settings.redact is not None and embedder is not None:
            self._embedder = _MaskingEmbedder(embedder, settings.redact)
        self._hybrid_weight = hybrid_weight
        self._made: dict[str, _RootIndex] = {}

    async def search(self, run: Runner, found: Scope, query: str, limit: int) -> IndexAnswer | None:
        """Return the best results of the indexes, or `None` if the files must be searched without indexes.

        The result is `None` if an index is not built. For a path below a root, it is also `None` if the index has
        only the upper levels (see `is_guarded`), or if too few results are below the path. For example, the index has
        no results below a hidden path.
        """
        begun = time.monotonic()
        location = found.location
        roots = self._settings.sandbox.roots if location.several else (location.cwd,)
        whole = location.several or location.name in (".", location.cwd)
        indexes = [self._of(root) for root in roots]
        if not whole and any(index.is_guarded for index in indexes):
            return None
        if not await run.call(lambda: all(index.is_built() for index in indexes)):
            return None
        answers: list[list[RankedChunk]] = []
        every, by_vectors = True, False
        notes: list[str] = []
        for index in indexes:
            left = None if found.timeout is None else found.timeout - (time.monotonic() - begun)

            def is_shown(path: str, index: _RootIndex = index) -> bool:
                # An index has no denied file, unless another program wrote it.
                return index.allows(path) and (whole or location.has(path))

            answer = await index.find(run, query, limit, left, is_shown)
            by_vectors = by_vectors or answer.by_vectors
            if answer.unavailable:
                notes.append(f"Ranked without embeddings: {answer.unavailable}.")
            elif answer.incomplete:
                notes.append(f"{spell(answer.incomplete, spell_as_argument)}.")
            prefix = "" if len(self._settings.sandbox.roots) == 1 else f"{index.root}/"
            every = every and answer.complete
            answers.append([one.model_copy(update={"path": f"{prefix}{one.path}"}) for one in answer.chunks])
        # Scores of different indexes are not comparable, so the results alternate.
        interleaved = [one for one in chain.from_iterable(zip_longest(*answers)) if one is not None]
        if not (whole or (every and interleaved) or len(interleaved) >= limit):
            return None
        return IndexAnswer(interleaved[:limit], by_vectors, tuple(dict.fromkeys(notes)))

    def close(self) -> None:
        """Close the indexes, and stop watching their roots; the next tool that uses an index opens it again."""
        for index in self._made.values():
            index.close()

    async def candidates(self, run: Runner, found: Scope, required: Required) -> Candidates | None:
        """Return the files that may have a match of a pattern, or `None` if all files must be searched.

        The result is `None` for a single file and for several roots. It is also `None` if the index is not built, has
        only the upper levels, or has no file below the path that may have a match.
        """
        location = found.location
        if location.several or location.is_file:
            return None
        index = self._of(location.cwd)
        if index.is_guarded or not await run.call(index.is_built):
            return None
        candidates = (await index.candidates(run, required, found.timeout)).below(location.paths[0])
        return candidates if candidates is None or found.allowed is None else candidates.only(found.allowed)

    def _of(self, root: str) -> _RootIndex:
        if root not in self._made:
            found = scope_of_root(self._settings, root)
            self._made[root] = _RootIndex(found, self._location, self._embedder, self._hybrid_weight, self._history)
        return self._made[root]

    def _all(self) -> list[tuple[str, _RootIndex]]:
        return [(root, self._of(root)) for root in self._settings.sandbox.roots]

    async def index_codebase(self, run: Runner, progress: ReportProgress | None = None) -> IndexCodebaseResult:
        """Make or refresh the index of each root."""
        roots: list[IndexedRoot] = []
        before = 0
        for root, index in self._all():
            so_far = before

            def report(done: Done, before: int = before) -> None:
                nonlocal so_far
                so_far = before + done.files + done.embedded
                if progress is not None:
                    progress(so_far)

            made, gone = await index.refresh(run, report)
            pruned = tuple(map(self._masked, gone))
            before = so_far
            same = set(IndexedRoot.model_fields) & set(RefreshResult.model_fields) - {"skipped", "failed"}
            skipped = sum(left_out.files for left_out in made.skipped)
            failed = tuple(f"{plural(one.texts, 'text')} not embedded: {one.message}" for one in made.failed)
            about = made.model_dump(include=same)
            roots.append(IndexedRoot(root=as_utf8(root), skipped=skipped, pruned=pruned, failed=failed, **about))
        read = sum(root.read for root in roots)
        seconds = sum(root.seconds for root in roots)
        message = f"The index is up to date: {plural(read, 'file')} read in {seconds:.1f} seconds."
        if any(root.failed for root in roots):
            message += " Texts that were not embedded are found by words only; index_codebase tries them again."
        return IndexCodebaseResult(**self._common(message), roots=tuple(roots))

    def _masked(self, text: str) -> str:
        """Return a name of a branch, or a message that may have one, with the secrets in it masked."""
        return text if self._settings.redact is None else self._settings.redact(text).text

    async def index_status(self, run: Runner) -> IndexStatusResult:
        """Return the status of the index of each root."""
        roots: list[RootStatus] = []
        for root, index in self._all():
            told = await index.status(run)
            same = set(RootStatus.model_fields) & set(IndexStatus.model_fields) - {"messages"}
            branches = tuple(sorted({self._masked(view.name) for view in told.views if view.root == root}))
            messages = tuple(self._masked(spell(message, spell_as_argument)) for message in told.messages)
            about = told.model_dump(include=same)
            roots.append(
                RootStatus(
                    root=as_utf8(root),
                    branch=self._masked(told.view),
                    branches=branches,
                    messages=messages,
                    **about,
                )
            )
        message = "codebase_search refreshes the index before it searches."
        if any(root.outdated or not root.built for root in roots):
            message = "index_codebase builds the indexes that are not built or are outdated."
        return IndexStatusResult(**self._common(message), roots=tuple(roots))

    async def index_health_check(self, run: Runner) -> IndexHealthResult:
        """Check the index of each root."""
        roots: list[RootHealth] = []
        needs_rebuild = False
        for root, index in self._all():
            told, remedy = await index.check(run)
            about = told.model_dump(include={"ok", "files", "chunks", "indexed", "orphans"})
            speller = _spell_as_command if remedy == "prune" else spell_as_argument
            messages = tuple(spell(message, speller) for message in told.messages)
            roots.append(RootHealth(root=as_utf8(root), messages=messages, **about))
            if not told.ok:
                needs_rebuild = needs_rebuild or remedy in ("rebuild", "refresh")
        message = "The messages say what to do."
        if all(root.ok for root in roots):
            noted = any(root.messages for root in roots)
            message = "Nothing is damaged. The messages say what can be improved." if noted else "Nothing is wrong."
        if needs_rebuild:
            message = "index_codebase rebuilds damaged indexes."
        return IndexHealthResult(**self._common(message), roots=tuple(roots))

    def _common(self, message: str) -> dict[str, Any]:
        location = self._settings.sandbox.locate(".")
        return {"root": as_utf8(location.cwd), "path": ".", "message": message}


def check_index_options(
    index: bool | StrPath, embedder: str | Embedder | None, hybrid_weight: float | None
) -> Embedder | None:
    """Check the options of an index, and return the embedder, or `None` if `embedder` is `None`. Nothing is sent."""
    check_weight(hybrid_weight)
    if embedder is None:
        if hybrid_weight is not None:
            raise weight_without_embedder_error()
        return None
    name = Hint("embedder", kind="correct")
    if index is False:
        raise ValueError(HintedText(name, " needs an index; pass ", Hint("index", True)))
    if isinstance(embedder, str) and embedder.strip() == "auto":
        instead = Hint("embedder", "wordllama")
        raise ValueError(HintedText(name, " must name the provider that may get the texts, got 'auto'; pass ", instead))
    from ripwrap.index.embeddings.registry import embedder as make_embedder  # loads an HTTP client

    return make_embedder(embedder)


def _spell_as_command(hint: Hint) -> str | None:
    """Return a hint as `spell_as_argument()` does, but the hint to call `prune()` as a command for the user's shell."""
    return "`ripwrap index prune`" if hint.target == "prune" else spell_as_argument(hint)
