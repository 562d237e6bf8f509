"""The indexes of the roots of a workspace: make, search, show and check them.

An index has only what the tools may show: no hidden or ignored files, and nothing outside the roots. A root is
watched from its first refresh on, if possible, so that a search lists no files while nothing changes.
"""

import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any

from ripwrap._operations.candidates import Candidates
from ripwrap._ranking.scoring import POOL_SIZE
from ripwrap._ripgrep.literals import Required
from ripwrap._ripgrep.runner import DeadlineRunner, Runner
from ripwrap._text import plural, shown
from ripwrap.errors import Hint, spell
from ripwrap.index.base import BaseIndex
from ripwrap.index.maintenance import Remedy, check_index, prune_views
from ripwrap.index.models import CheckResult, IndexStatus, RefreshResult
from ripwrap.index.models import Progress as Done
from ripwrap.index.storage.schema import versions_of
from ripwrap.options import StrPath
from ripwrap.results import RankedChunk
from ripwrap.workspace.grep_content import spell_as_argument
from ripwrap.workspace.results import (
    IndexCodebaseResult,
    IndexedRoot,
    IndexHealthResult,
    IndexStatusResult,
    RootHealth,
    RootStatus,
)
from ripwrap.workspace.scope import Progress, Scope, Settings, open_scope

if TYPE_CHECKING:
    from sqlite3 import Connection


class _RootIndex(BaseIndex):
    """Index of the files that the tools may show.

    Attributes:
        is_guarded: True if deep files are left out, because the root is a folder such as the home directory.
    """

    def __init__(self, found: Scope, location: StrPath | None) -> None:
        super().__init__(found.location.cwd, location=location, **found.options)
        self._allowed = found.allowed
        denied = found.denied
        if denied is not None:
            self._is_excluded = lambda path: not denied.allows(path)
        self.is_guarded = "max_depth" in found.options
        if not self.is_guarded:
            self._watches = 1  # watched until it is closed
        self._unsound = False

    async def search_chunks(
        self, run: Runner, query: str, limit: int | None, seconds: float | None
    ) -> list[RankedChunk]:
        return await self._search(DeadlineRunner(run, seconds, self._lock), query, limit, refresh=True)

    async def candidates(self, run: Runner, required: Required, seconds: float | None) -> Candidates:
        return await self._candidates(DeadlineRunner(run, seconds, self._lock), required, None, refresh=True)

    async def refresh(
        self, run: Runner, progress: Callable[[Done], object] | None
    ) -> tuple[RefreshResult, tuple[str, ...]]:
        """Refresh the index, and return the result with the names of the views that were removed."""
        run = DeadlineRunner(run, None, self._lock)
        if self._unsound:
            await run.call(self._delete)
        done = await self._refresh_files(run, progress)
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
        """Return whether the index was made for this root before, on any branch; a refresh is then quick."""
        view = self._current_view()

        def built(database: "Connection") -> bool:
            found = database.execute("SELECT 1 FROM view WHERE root = ? AND options = ? LIMIT 1", view.key[:2])
            return found.fetchone() is not None and versions_of(database) == self._store.versions

        with suppress(sqlite3.Error):  # a damaged index counts as none
            return bool(self._store.read_only(built))
        return False

    def allows(self, path: str) -> bool:
        """Return whether an answer may show a path, relative to the root."""
        return self._allowed is None or self._allowed(path)

    def close(self) -> None:
        self._close()

    def _without_own(self, paths: Sequence[str]) -> Sequence[str]:
        own = super()._without_own(paths)
        return own if self._allowed is None else [path for path in own if self.allows(path)]


class Indexes:
    """The indexes of the roots, one for each."""

    def __init__(self, settings: Settings, location: StrPath | None) -> None:
        self._settings = settings
        self._location = location
        self._made: dict[str, _RootIndex] = {}

    async def search(self, run: Runner, found: Scope, query: str, limit: int) -> list[RankedChunk] | None:
        """Return the best results of the indexes, or `None` if the files must be searched without them.

        The indexes cannot answer if one of them is not built. Nor can they answer for a subfolder, if too few results
        are in it: a caller may name a hidden, ignored or deep folder, which no index has.

        Args:
            run: Runs the calls.
            found: Scope of the search.
            query: Query.
            limit: Maximum number of results.

        Raises:
            RipwrapError, ValueError: See `Index.search()`.
            TimeoutError: The indexes were not up to date within the time limit of the scope.
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
        every = True
        for index in indexes:
            left = None if found.timeout is None else found.timeout - (time.monotonic() - begun)
            results = await index.search_chunks(run, query, limit if whole else None, left)
            prefix = "" if len(self._settings.sandbox.roots) == 1 else f"{index.root}/"
            every = every and len(results) < POOL_SIZE
            # An index has no denied file, unless another program has written it.
            allowed = [one for one in results if index.allows(one.path)]
            inside = allowed if whole else [one for one in allowed if location.has(one.path)]
            answers.append([one.model_copy(update={"path": f"{prefix}{one.path}"}) for one in inside])
        # Scores of two indexes do not compare, so the results alternate.
        interleaved = [one for one in chain.from_iterable(zip_longest(*answers)) if one is not None]
        return interleaved[:limit] if whole or (every and interleaved) or len(interleaved) >= limit else None

    def close(self) -> None:
        """Close the indexes, and stop watching their roots; a later call opens them again."""
        for index in self._made.values():
            index.close()

    async def candidates(self, run: Runner, found: Scope, required: Required) -> Candidates | None:
        """Return the files that may have the literals of a pattern, or `None` if all files must be searched.

        Args:
            run: Runs the calls.
            found: Scope of the search, with neither hidden nor ignored files.
            required: Literals of the pattern.

        Raises:
            RipwrapError: The index cannot be used.
            TimeoutError: The index was not up to date within the time limit of the scope.
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
            with open_scope(self._settings, root, hidden=False, ignored=False) as found:
                self._made[root] = _RootIndex(found, self._location)
        return self._made[root]

    def _all(self) -> list[tuple[str, _RootIndex]]:
        return [(root, self._of(root)) for root in self._settings.sandbox.roots]

    async def index_codebase(self, run: Runner, progress: Progress | None = None) -> IndexCodebaseResult:
        """Make or refresh the index of each root."""
        roots: list[IndexedRoot] = []
        before = 0
        for root, index in self._all():
            files = before

            def report(done: Done, before: int = before) -> None:
                nonlocal files
                files = before + done.files
                if progress is not None:
                    progress(files)

            made, pruned = await index.refresh(run, report)
            before = files
            about = made.model_dump(include={"added", "changed", "removed", "unchanged", "chunks", "seconds"})
            skipped = sum(left_out.files for left_out in made.skipped)
            roots.append(IndexedRoot(root=shown(root), skipped=skipped, pruned=pruned, **about))
        differing = sum(root.added + root.changed + root.removed for root in roots)
        seconds = sum(root.seconds for root in roots)
        message = f"The index is up to date: {plural(differing, 'file')} changed, in {seconds:.1f} seconds."
        return IndexCodebaseResult(**self._common(message), roots=tuple(roots))

    async def index_status(self, run: Runner) -> IndexStatusResult:
        """Return the status of the index of each root."""
        roots: list[RootStatus] = []
        for root, index in self._all():
            told = await index.status(run)
            same = set(RootStatus.model_fields) & set(IndexStatus.model_fields) - {"messages"}
            branches = tuple(sorted({view.name for view in told.views if view.root == root}))
            messages = tuple(spell(message, spell_as_argument) for message in told.messages)
            about = told.model_dump(include=same)
            roots.append(RootStatus(root=shown(root), branch=told.view, branches=branches, messages=messages, **about))
        message = "codebase_search refreshes the index first."
        if any(root.outdated or not root.built for root in roots):
            message = "index_codebase builds what is not built or is outdated."
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
            roots.append(RootHealth(root=shown(root), messages=messages, **about))
            if not told.ok:
                needs_rebuild = needs_rebuild or remedy != "prune"
        message = "Nothing is wrong." if all(root.ok for root in roots) else "The messages say what to do."
        if needs_rebuild:
            message = "index_codebase rebuilds damaged indexes."
        return IndexHealthResult(**self._common(message), roots=tuple(roots))

    def _common(self, message: str) -> dict[str, Any]:
        location = self._settings.sandbox.locate(".")
        return {"root": shown(location.cwd), "path": ".", "truncated": False, "next_offset": None, "message": message}


def _spell_as_command(hint: Hint) -> str | None:
    """Return a hint as a tool, or as a command for the user: `index_codebase` removes no vectors, `prune()` does."""
    return "`ripwrap index prune`" if hint.target == "prune" else spell_as_argument(hint)
