"""Build, search, describe and check the indexes of the roots of a workspace.

An index has only files that the tools may show: no hidden, ignored or denied files, and no files outside of the roots.
"""

import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any

from ripwrap._ranking.passages import DEEP
from ripwrap._ranking.word_query import WordQuery
from ripwrap._ripgrep.literals import Required
from ripwrap._ripgrep.protocols import Runner
from ripwrap._ripgrep.runner import DeadlineRunner
from ripwrap._system.concurrency import in_thread
from ripwrap._text import as_utf8, plural
from ripwrap.errors import Hint, HintedText, spell
from ripwrap.index.base import BaseIndex, check_weight, weight_without_embedder_error
from ripwrap.index.embeddings.protocol import Destination, Embedder, Limits, describe, limits_of
from ripwrap.index.maintenance import Remedy, check_index, prune_views
from ripwrap.index.models import CheckResult, IndexStatus, RefreshResult
from ripwrap.index.models import Progress as Done
from ripwrap.index.search import IndexResults
from ripwrap.index.storage.database import DamageError, versions_of
from ripwrap.options import StrPath
from ripwrap.places.items import Candidates
from ripwrap.results import RankedChunk
from ripwrap.workspace.arguments import spell_as_argument
from ripwrap.workspace.commit_messages import CommitHistory
from ripwrap.workspace.index_results import (
    IndexCodebaseResult,
    IndexedRoot,
    IndexHealthResult,
    IndexStatusResult,
    RootHealth,
    RootStatus,
)
from ripwrap.workspace.redact import Redaction
from ripwrap.workspace.scope import ReportProgress, Scope, Settings, scope_of_root

if TYPE_CHECKING:
    from ripwrap.index.embeddings.protocol import Vectors


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
        """Return True if the index was built for this root, on any branch, by the same versions of ripwrap's parts."""
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
        whole = location.several or location.paths == (".",)
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

        The result is `None` for a single file and for several paths. It is also `None` if the index is not built, has
        only the upper levels, or has no file below the path that may have a match.
        """
        location = found.location
        if location.paths[1:] or location.is_file:
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
