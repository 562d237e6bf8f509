"""The index of a folder, as its users have it."""

from collections.abc import AsyncGenerator
from types import TracebackType
from typing import Self

import anyio

from ripwrap._rg.collect import Plan, carry_out
from ripwrap.index.models import Collected, IndexHealth, IndexStatus, Refreshed
from ripwrap.index.plans import LIMIT, Plans, Report, T
from ripwrap.results import RankedChunk


class Index(Plans):
    """An index of a folder's files, that answers as `rank()` does, and faster.

    It is a file, made by the first refresh. Each search refreshes it first: what has changed is read again, so that no
    answer is stale. Each branch has a view of its own, and content that several have is kept once. All of it can be
    made again, and is by itself if it is damaged or of another version.

    Several tasks, threads and processes may use an index of the same folder at once: one writes, the others read what
    there was before. One that is killed, or cancelled, leaves what there was before.

    With an embedder, chunks are found by vectors, too. Without one, which is the default, nothing leaves the machine.

    Use it as `async with Index(root) as index:`, which closes the file in the end; or without, and call `aclose()`, or
    leave that to the garbage collector.
    """

    async def refresh(self, progress: Report | None = None, *, anew: bool = False) -> Refreshed:
        """Make the index agree with the files that there are; if there is none, it is made.

        A file whose size and times are as they were is not read. What is not UTF-8 is indexed as rg reads it; of a file
        the first million bytes are. What could not be read is logged as a warning.

        All of it is one transaction. Cancelled, it ends within a file's time, and what was there before remains. If
        another process is at it, this waits for that, and then has little or nothing left to do.

        With an embedder, texts that have no vector of its model are then embedded, each once wherever it stands, and
        kept batch by batch: cancelled, it loses the batches under way. What fails is told, logged as a warning, and
        tried again by the next refresh.

        Args:
            progress: Called in a worker thread, one call after another: at first, after every few files, with the last
                one, and after every batch of texts. What it raises ends the refresh.
            anew: Whether to throw away what there is first, of all branches, embeddings among it. That mends whatever
                `health()` finds; cancelled, it leaves nothing, or what it has done until then.

        Raises:
            RipwrapError: The index cannot be written, or another program's database is in its place.
            FileNotFoundError: The folder does not exist.
            NotADirectoryError: It is not a directory.
            BinaryNotFoundError: There is no rg.
            GlobError, UnknownTypeError, SearchError: rg cannot do this.
        """
        plan = self._embedded(progress)
        return await self._in_turn(self._anew(plan) if anew else plan)

    async def search(self, query: str, *, limit: int | None = LIMIT, refresh: bool = True) -> list[RankedChunk]:
        """Find the places that answer a question in words, or define a symbol, the best first.

        Places are ranked as by `rank()`, out of all files and not only out of the 40 that promise most. How much a word
        is worth is counted over all branches that are indexed; places are those of the current one alone.

        If vectors cannot be had, words answer alone, and the reasons of each place say so. For new texts and the query
        an embedder is then tried for a moment only, and not again for half a minute; `refresh()` has more patience.

        Args:
            query: Words, e.g. "how are cookies stored", or a name, e.g. "CookieJar"; "where is CookieJar defined" is
                one.
            limit: How many places to give at most; `None` gives all that are ranked, which are some hundred.
            refresh: Whether to refresh first. If not, answers are as old as the last refresh.

        Raises:
            ValueError: There is no word in the query, or `limit` is negative.
            RipwrapError: The index cannot be used, or with `refresh=False` was not made yet.

        With `refresh`, it raises what `refresh()` raises, too.
        """
        return await self._in_turn(self._searched(query, limit, first=refresh))

    def watch(self) -> AsyncGenerator[Refreshed]:
        """Refresh now, and again whenever files have changed, half a second after the last change.

        The first item is what the first refresh did. One follows for each later refresh that found a difference, or
        another branch. Changes behind symbolic links, and of files that ignore rules leave out, are not told; those of
        a tree that is never quiet are told after ten seconds. Needs the extra `watch`.

        To leave early, wrap the generator in `contextlib.aclosing`. Searches need none of this: they refresh by
        themselves.

        Raises:
            RipwrapError: watchfiles is not there, or the system watches no more folders.

        It raises what `refresh()` raises, too; all of it comes from iterating.
        """
        from ripwrap.index.watch import watched

        return watched(self._root, self._store.folder, self.refresh)

    async def status(self) -> IndexStatus:
        """What there is, as of the last refresh; while one is running, as of that before it."""
        return await carry_out(self._told(), self._rg)

    async def health(self) -> IndexHealth:
        """Whether the index is sound, and what to do if it is not; all of it is read, which may take a second.

        It waits for nobody: while another process writes, full-text search is not asked what is wrong with it.
        """
        return await carry_out(self._checked(), self._rg)

    async def gc(self) -> Collected:
        """Remove the views of branches and worktrees that are no more, what no view has, and the space it took.

        Raises:
            RipwrapError: The index cannot be written, or another program's database is in its place.
        """
        return await self._in_turn(self._collected())

    async def aclose(self) -> None:
        """Close the file, and end the process that cuts files; a later call begins anew.

        It waits for calls of other tasks that are using the file, also when it is cancelled.
        """
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _in_turn(self, plan: Plan[T]) -> T:
        """The result of a plan, one at a time in each event loop, so that others find threads free.

        With an embedder, which may take its time, nobody waits for that: they share the store's own lock alone.
        """
        if self._semantic is not None:
            return await carry_out(plan, self._rg)
        async with self._lock():
            return await carry_out(plan, self._rg)
