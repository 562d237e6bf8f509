"""The indexes of a workspace's roots: searching in them, making them, and what is told of them.

An index has what the tools may show and nothing else: neither hidden nor ignored files, nor what lies outside of the
roots.
"""

import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any

from ripwrap._message import plural
from ripwrap._query import Progress
from ripwrap._ranking.score import POOL
from ripwrap._rg.collect import Plan, Work, within
from ripwrap._scope import Scope, Settings, scope
from ripwrap._text import shown
from ripwrap.answers import (
    IndexCodebaseResult,
    IndexedRoot,
    IndexHealthResult,
    IndexStatusResult,
    RootHealth,
    RootStatus,
    ToolResult,
)
from ripwrap.index.health import Remedy, health
from ripwrap.index.models import IndexHealth, IndexStatus, Refreshed
from ripwrap.index.models import Progress as Done
from ripwrap.index.plans import Plans
from ripwrap.index.rows import View
from ripwrap.index.schema import versions_of
from ripwrap.options import StrPath
from ripwrap.results import RankedChunk

if TYPE_CHECKING:
    from sqlite3 import Connection


class _Planned(Plans):
    """An index of what the tools may show.

    Attributes:
        railed: Whether it has less than there is, because its root is no place to read all of.
    """

    def __init__(self, found: Scope, location: StrPath | None) -> None:
        super().__init__(found.place.cwd, location=location, **found.options)
        self._allowed = found.allowed
        self.railed = "max_depth" in found.options
        self._unsound = False

    def searched(self, query: str, limit: int | None, seconds: float | None) -> Plan[list[RankedChunk]]:
        return within(self._searched(query, limit, first=True), seconds, self._lock)

    def refreshed(self, progress: Callable[[Done], object] | None) -> Plan[Refreshed]:
        plan = self._refreshed(progress)
        done = yield from within(self._anew(plan) if self._unsound else plan, None, self._lock)
        self._unsound = False
        return done

    def told(self) -> Plan[IndexStatus]:
        return self._told()

    def checked(self) -> Plan[tuple[IndexHealth, Remedy]]:
        told: tuple[IndexHealth, Remedy] = yield Work(lambda: health(self._store))
        self._unsound = told[1] == "anew"
        return told

    def is_built(self) -> bool:
        """Whether it was ever made for this root, be it on another branch: the rest is then soon done."""
        view = self._view()

        def built(database: "Connection") -> bool:
            found = database.execute("SELECT 1 FROM view WHERE root = ? AND options = ? LIMIT 1", view.key[:2])
            return found.fetchone() is not None and versions_of(database) == self._store.versions

        with suppress(sqlite3.Error):  # one that is damaged is none
            return bool(self._store.look(built))
        return False

    def _refresh(
        self,
        view: View,
        paths: Sequence[str],
        generation: int | None,
        progress: Callable[[Done], object] | None,
        *,
        insist: bool,
    ) -> Refreshed | None:
        try:
            return super()._refresh(view, paths, generation, progress, insist=insist)
        finally:
            self._chunker.close()  # a workspace is never closed, and its process would stay for a minute

    def _without_own(self, paths: Sequence[str]) -> Sequence[str]:
        own, allowed = super()._without_own(paths), self._allowed
        return own if allowed is None else [path for path in own if allowed(path)]


class Indexes:
    """One index for each root."""

    def __init__(self, settings: Settings, location: StrPath | None) -> None:
        self._settings = settings
        self._location = location
        self._made: dict[str, _Planned] = {}

    def plan(self, name: str, progress: Progress | None) -> Plan[ToolResult]:
        """What one of the tools does that are about the indexes alone."""
        if name == "index_codebase":
            return self._index_codebase(progress)
        return self._status() if name == "index_status" else self._health()

    def search(self, found: Scope, query: str, limit: int) -> Plan[list[RankedChunk] | None]:
        """The best places, as the caller's answer calls them; `None` if the indexes cannot tell.

        They cannot if one is not built, or if too few of the places that are ranked lie in the place that is asked for:
        what is hidden, or ignored, or too deep for a root such as the home directory, is in none, and may be named.

        Raises:
            RipwrapError, ValueError: As `Index.search()`.
            TimeoutError: They are not up to date within the time that the place has.
        """
        begun = time.monotonic()
        place = found.place
        roots = self._settings.sandbox.roots if place.several else (place.cwd,)
        whole = place.several or place.name in (".", place.cwd)
        indexes = [self._of(root) for root in roots]
        if not whole and any(index.railed for index in indexes):
            return None
        if not (yield Work(lambda: all(index.is_built() for index in indexes))):
            return None
        answers: list[list[RankedChunk]] = []
        every = True
        for index in indexes:
            left = None if found.timeout is None else found.timeout - (time.monotonic() - begun)
            places: list[RankedChunk] = yield from index.searched(query, limit if whole else None, left)
            prefix = "" if len(self._settings.sandbox.roots) == 1 else f"{index.root}/"
            every = every and len(places) < POOL
            inside = places if whole else [one for one in places if place.has(one.path)]
            answers.append([one.model_copy(update={"path": f"{prefix}{one.path}"}) for one in inside])
        # Scores of two indexes do not compare: they take turns.
        in_turn = [one for one in chain.from_iterable(zip_longest(*answers)) if one is not None]
        return in_turn[:limit] if whole or (every and in_turn) or len(in_turn) >= limit else None

    def _of(self, root: str) -> _Planned:
        if root not in self._made:
            with scope(self._settings, root, hidden=False, ignored=False) as found:
                self._made[root] = _Planned(found, self._location)
        return self._made[root]

    def _all(self) -> list[tuple[str, _Planned]]:
        return [(root, self._of(root)) for root in self._settings.sandbox.roots]

    def _index_codebase(self, progress: Progress | None) -> Plan[ToolResult]:
        roots: list[IndexedRoot] = []
        before = 0
        for root, index in self._all():
            files = before

            def report(done: Done, before: int = before) -> None:
                nonlocal files
                files = before + done.files
                if progress is not None:
                    progress(files)

            made = yield from index.refreshed(report)
            before = files
            about = made.model_dump(include={"added", "changed", "removed", "unchanged", "chunks", "seconds"})
            skipped = sum(left_out.files for left_out in made.skipped)
            roots.append(IndexedRoot(root=shown(root), skipped=skipped, **about))
        differing = sum(root.added + root.changed + root.removed for root in roots)
        seconds = sum(root.seconds for root in roots)
        said = f"The index is up to date: {plural(differing, 'file')} differed, in {seconds:.1f} seconds."
        return IndexCodebaseResult(**self._common(said), roots=tuple(roots))

    def _status(self) -> Plan[ToolResult]:
        roots: list[RootStatus] = []
        for root, index in self._all():
            told = yield from index.told()
            about = told.model_dump(include={"built", "files", "chunks", "bytes", "model", "changed_at", "sent"})
            branches = tuple(sorted({view.name for view in told.views if view.root == root}))
            roots.append(RootStatus(root=shown(root), branch=told.view, branches=branches, **about))
        missing = sum(not root.built for root in roots)
        said = "index_codebase makes what is not built." if missing else "codebase_search refreshes it by itself."
        return IndexStatusResult(**self._common(said), roots=tuple(roots))

    def _health(self) -> Plan[ToolResult]:
        roots: list[RootHealth] = []
        mends = False
        for root, index in self._all():
            told, remedy = yield from index.checked()
            about = told.model_dump(include={"ok", "files", "chunks", "indexed", "orphans", "messages"})
            roots.append(RootHealth(root=shown(root), **about))
            if not told.ok:
                mends = mends or remedy != "gc"
        said = "Nothing is wrong." if all(root.ok for root in roots) else "The messages say what mends it."
        if mends:
            said = "index_codebase makes anew what is not sound."
        return IndexHealthResult(**self._common(said), roots=tuple(roots))

    def _common(self, message: str) -> dict[str, Any]:
        place = self._settings.sandbox.place(".")
        return {"root": shown(place.cwd), "path": ".", "truncated": False, "next_offset": None, "message": message}
