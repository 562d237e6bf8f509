"""`Index`, the async index of a folder. `blocking.py` has its blocking twin."""

from collections.abc import AsyncGenerator, Sequence
from types import TracebackType
from typing import Self, Unpack

import anyio
import anyio.to_thread

from ripwrap._concurrency import warn_deprecated
from ripwrap._operations.grep import GREP_LIMIT, GREP_TIMEOUT
from ripwrap._ripgrep.runner import AsyncRunner, Runner
from ripwrap.index.base import DEFAULT_LIMIT, BaseIndex, ProgressCallback
from ripwrap.index.models import CheckResult, IndexStatus, PruneResult, RefreshResult
from ripwrap.options import SearchOptions
from ripwrap.results import GrepResult, RankedChunk


class Index(BaseIndex):
    """An index of a folder's files that answers as `rank()` does, and faster.

    The index is a folder, which the first refresh makes. It needs tantivy, which the extra `index` installs. Each
    search refreshes the index first: changed files are read again, so that no answer is stale. Each branch has a view
    of its own, and content that several branches have is stored once. A damaged index, or one of another version, is
    rebuilt automatically.

    Several tasks, threads and processes may use an index of the same folder at once: one writes, the others read the
    state before. A call that is cancelled, interrupted or killed leaves the state before.

    With an embedder, chunks are found by vectors, too. Without one, which is the default, nothing leaves the machine.

    Use it as `async with Index(root) as index:`, which closes the file in the end. Or call `aclose()`, or leave that to
    the garbage collector.
    """

    async def refresh(
        self, progress: ProgressCallback | None = None, *, rebuild: bool = False, anew: bool | None = None
    ) -> RefreshResult:
        """Bring the index up to date with the files; make it if there is none.

        A file with the same size and times as before is not read. Files that are not UTF-8 are indexed as rg reads
        them. The first million bytes of a file are indexed. Unreadable files are logged as warnings.

        All of it is one transaction. Cancelled, it ends within the time that a file takes, and leaves the state
        before. While another process refreshes the index, this call waits, and then has little or nothing to do.

        With an embedder, texts without a vector of its model are then embedded, equal texts once. Vectors are stored
        batch by batch, so that only batches under way can be lost. One process at a time embeds for an index and a
        model; the others wait. Failed texts are returned, logged as warnings, and tried again by the next refresh.

        Args:
            progress: Called in a worker thread, one call after another: at first, after every few files, after the last
                one, and after every batch of texts. An exception in it ends the refresh.
            rebuild: Delete the index first, with the views of all branches and all embeddings. This fixes whatever
                `check()` finds.
            anew: Deprecated name of `rebuild`.

        Raises:
            RipwrapError: The index cannot be written, or another program's database is in its place.
            FileNotFoundError: The folder does not exist.
            NotADirectoryError: The path is not a directory.
            BinaryNotFoundError: There is no rg.
            GlobError, UnknownTypeError, SearchError: rg cannot do this.
        """
        if anew is not None:
            warn_deprecated("anew= is deprecated; use rebuild=")
            rebuild = anew
        return await self._refresh(self._runner(), progress, rebuild=rebuild)

    async def search(
        self,
        query: str,
        *,
        limit: int | None = DEFAULT_LIMIT,
        refresh: bool = True,
        max_age: float | None = None,
        hybrid_weight: float | None = None,
    ) -> list[RankedChunk]:
        """Find the chunks that answer a question in words, or define a symbol, the best first.

        Chunks are ranked as by `rank()`, out of all files and not only out of the 40 most promising ones. The weight of
        a word is counted over all branches in the index; results are of the current branch alone.

        With an embedder, at most 128 texts without a vector are embedded first; `refresh()` embeds all. If some have no
        vector yet, or vectors are unavailable and words answer alone, the reasons of each result say so. An embedder
        that does not answer is tried for a moment only, and not again for half a minute; `refresh()` has more patience.
        The vectors of the last 64 queries are kept in this process, and such a query is not sent again.

        Args:
            query: Words, e.g. "how are cookies stored", or a name, e.g. "CookieJar"; "where is CookieJar defined" is
                one.
            limit: Maximum number of results; `None` gives all that are ranked, which are some hundred.
            refresh: Refresh first. If false, answers are as old as the last refresh, without the chunks of files that
                have changed since: the index does not store their text.
            max_age: Maximum age of the last refresh, in seconds. If this `Index` has listed the files of the same
                branch less than that ago, the search does not refresh. `None` refreshes each time.
            hybrid_weight: Weight of vectors in the score, from 0 to 1; `None` is that of the index. With 0, words alone
                answer, and nothing is sent: neither the query nor texts without a vector.

        Raises:
            ValueError: There is no word in the query, `limit` or `max_age` is negative, or `hybrid_weight` is out of
                range, or above 0 without an embedder.
            TypeError: `limit` is not an int, or `max_age` or `hybrid_weight` is not a number.
            RipwrapError: The index cannot be used, or with `refresh=False` was not made yet.

        With `refresh`, it raises what `refresh()` raises, too.
        """
        return await self._search(
            self._runner(), query, limit, refresh=refresh, max_age=max_age, hybrid_weight=hybrid_weight
        )

    async def grep(
        self,
        pattern: str | Sequence[str],
        *,
        limit: int | None = GREP_LIMIT,
        max_files: int | None = None,
        offset: int = 0,
        timeout: float | None = GREP_TIMEOUT,  # noqa: ASYNC109 - see `grep()`
        explain: bool = False,
        refresh: bool = True,
        max_age: float | None = None,
        **options: Unpack[SearchOptions],
    ) -> GrepResult:
        """Search the files for a regular expression as `grep()` does, with the same answer, and faster.

        An index of trigrams, sequences of three bytes, says which files may have a match, and rg searches only these
        files. The first call makes that index, at about 20 MB of text a second. Each later call adds new content.

        The call looks up the literals that every match contains: `foo` and `bar` for `foo.*bar`, and one of the two for
        `foo|bar`. A literal has at least three bytes, and only ASCII characters if case is ignored. A pattern such as
        `[a-z]+` has no literal, and neither has any pattern with `pcre2`, `engine`, `encoding` or `invert_match`; rg
        then searches all files. Binary and unreadable files, files in UTF-16, and files of more than 16 million bytes
        are always searched.

        `GrepResult.candidates` is the number of files that rg searched, and `files_total` the number of all files.

        Args:
            pattern: A regular expression (https://docs.rs/regex), or several, any of which may match.
            limit: Maximum number of matches on the page, over all files; `None` returns all and holds them in memory.
            max_files: Maximum number of files on the page; `None` is no limit.
            offset: Number of matches before the page: the `next_offset` of the previous page.
            timeout: Seconds that rg may take to search, without the refresh; `None` is no limit. The answer then has
                the matches found until then.
            explain: See `grep()`. The further searches that it makes search all files.
            refresh: Refresh first. If false, the files are those of the last refresh, and a match may be missing in a
                file that has changed since.
            max_age: See `search()`.
            **options: rg's flags; see `SearchOptions` and `grep()`. The files are those of the index. If the call
                chooses others, by `glob` or `hidden` for example, rg searches without the index, and `candidates` and
                `files_total` are `None`.

        Raises what `grep()` and `refresh()` raise, and `RipwrapError` if there is no index yet with `refresh=False`.
        """
        request = self._grep_request(pattern, limit, max_files, offset, timeout, options, explain=explain)
        return await self._grep(self._runner(), request, refresh=refresh, max_age=max_age)

    def watch(self) -> AsyncGenerator[RefreshResult]:
        """Refresh now, and again whenever files have changed, half a second after the last change.

        The first item is the result of the first refresh. Another one follows for each later refresh that found a
        difference, or another branch. Changes behind symbolic links, and of ignored files, are not reported; changes in
        a tree that is never quiet are reported after ten seconds. Needs the extra `watch`.

        Searches do not need this: they refresh the index themselves. But on Linux, searches with this `Index` list no
        files while the generator is open and nothing has changed. A search sees each change that was made before it
        began, even within that half second. Some changes are seen up to a minute late: those that are made through a
        memory mapping or through a hard link in another folder, and those below a folder that was mounted later.

        Each search still lists the files if the folder is on a network file system or has over 30,000 folders, if the
        index has unreadable files, or if `follow=True` or `include_git=True` is set.

        To leave early, wrap the generator in `contextlib.aclosing`.

        Raises:
            RipwrapError: watchfiles is not installed, or the system's limit of watched folders is reached.

        It raises what `refresh()` raises, too; all of it comes from iterating.
        """
        from ripwrap.index.watch import watch_folder

        return watch_folder(self._root, self._store.folder, self.refresh, self._watched)

    async def status(self) -> IndexStatus:
        """Return the state of the index after the last finished refresh."""
        return await self._get_status(self._runner(lock=False))

    async def check(self) -> CheckResult:
        """Check whether the index is sound, and say what to do if it is not.

        All of the index is read, which may take a second. No lock is waited for: while another process writes, the
        check of full-text search is left out.
        """
        return await self._check(self._runner(lock=False))

    async def prune(self) -> PruneResult:
        """Remove the views of deleted branches and worktrees and the content that no view has, and free its space.

        Raises:
            RipwrapError: The index cannot be written, or another program's database is in its place.
        """
        return await self._prune(self._runner())

    async def health(self) -> CheckResult:
        """Check the index; a deprecated name of `check()`."""
        warn_deprecated("health() is deprecated; use check()")
        return await self._check(self._runner(lock=False))

    async def gc(self) -> PruneResult:
        """Prune the index; a deprecated name of `prune()`."""
        warn_deprecated("gc() is deprecated; use prune()")
        return await self._prune(self._runner())

    async def aclose(self) -> None:
        """Close the file, and end the process that splits files; a later call opens them again.

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

    def _runner(self, *, lock: bool = True, timeout: float | None = None) -> Runner:
        return self._limited(AsyncRunner(self._rg), timeout, lock=lock)
