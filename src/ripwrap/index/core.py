"""`Index`, the async index of a directory. The blocking twin is in `blocking.py`."""

from collections.abc import AsyncGenerator, Sequence
from types import TracebackType
from typing import Self, Unpack

import anyio
import anyio.to_thread

from ripwrap._operations.grep import GREP_LIMIT, GREP_TIMEOUT
from ripwrap._ripgrep.protocols import Runner
from ripwrap._ripgrep.runner import AsyncRunner, DeadlineRunner
from ripwrap._signature import lists_options
from ripwrap._system.concurrency import warn_deprecated
from ripwrap.errors import named_paths
from ripwrap.index.base import DEFAULT_LIMIT, BaseIndex, ProgressCallback
from ripwrap.index.models import CheckResult, IndexStatus, PruneResult, RefreshResult
from ripwrap.options import VISIBLE_FILES, SearchOptions, check_timeout
from ripwrap.results import GrepResult, RankedChunk


class Index(BaseIndex):
    """Stored index of the files of a directory. `search()` ranks results in the same way as `rank()`, but is faster.

    The index is stored in a separate directory, which the first refresh creates. `Index` needs tantivy, which the extra
    `index` installs. By default, each search first refreshes the index: changed files are read again, so that no result
    is stale. An index has views: a view lists the files that one set of options chooses on one git branch. If
    several branches have the same file, it is indexed once. A damaged index is rebuilt automatically, and so is an
    index that another chunker or an incompatible version of ripwrap made.

    Several tasks, threads and processes may use an index of the same directory at once. While one of them writes, the
    others see the previous state, or wait. If the call that writes is cancelled or interrupted, or its process is
    killed, the index keeps the previous state.

    With an embedder, searches also find chunks by meaning. By default, there is no embedder, and nothing leaves
    the machine.

    `async with Index(root) as index:` closes the index at the end of the block. Outside of such a block, call
    `aclose()`, or let the garbage collector close the index.
    """

    async def refresh(
        self,
        on_progress: ProgressCallback | None = None,
        *,
        rebuild: bool = False,
        anew: bool | None = None,
        progress: ProgressCallback | None = None,
    ) -> RefreshResult:
        """Update the index to the current files; create the index if it does not exist.

        A file whose size and times have not changed since the last refresh is not read. Files are decoded in the same
        way as by rg: by their byte order mark, or as UTF-8. Only the first million bytes of a file are indexed.
        Unreadable files are logged as warnings.

        The refresh of files is one transaction. If it is cancelled, it stops after the current file, and the index
        keeps its previous state. If another process is refreshing the index, this call waits for that process, and then
        has little or nothing to do.

        With an embedder, the call then embeds the texts of all chunks (parts of files) of the current branch that have
        no embedding; equal texts are embedded once. Embeddings are stored batch by batch, so that only unfinished
        batches can be lost. One process at a time embeds texts for an index and a model; other processes wait. The
        result has the number of texts that could not be embedded. Warnings give the reasons, and the next refresh tries
        these texts again.

        Args:
            on_progress: Function that is called in a worker thread, one call at a time: at the start, after every few
                files, after the last file, and after every batch of texts. If no file has changed, there are no
                calls for files. An exception in the function ends the refresh.
            rebuild: Delete the index first, with all embeddings and the views of all branches. This fixes any damage
                that `check()` finds.
            anew: Deprecated name of `rebuild`.
            progress: Deprecated name of `on_progress`.

        Raises:
            RipwrapError: The index cannot be written, or another program's database is in its place.
            FileNotFoundError: The directory does not exist.
            NotADirectoryError: The path is not a directory.
            BinaryNotFoundError: There is no rg.
            GlobError, UnknownTypeError, SearchError: rg rejects a glob or file type, or fails.
        """
        if anew is not None:
            warn_deprecated("anew= is deprecated; use rebuild=")
            rebuild = anew
        if progress is not None:
            warn_deprecated("progress= is deprecated; use on_progress=")
            on_progress = progress
        return await self._refresh(self._runner(), on_progress, rebuild=rebuild)

    async def search(
        self,
        query: str,
        *,
        limit: int | None = DEFAULT_LIMIT,
        refresh: bool = True,
        max_age: float | None = None,
        hybrid_weight: float | None = None,
    ) -> list[RankedChunk]:
        """Find the chunks (parts of files) that answer a question or define a name; the best chunks come first.

        This method uses the ranking of `rank()`. But `rank()` considers only the chunks of the 40 most promising files,
        and this method considers the chunks of all files. Results come from the current branch; the weight of a word
        depends on all branches in the index.

        With an embedder, a search that refreshes the index also embeds up to 128 texts of chunks that have no
        embedding; `refresh()` embeds all texts. If some texts still have no embedding, the `reasons` of each result say
        how many. The `reasons` also say if the embedder failed, so that only words were searched. A search tries each
        request to the embedder at most twice, for 20 seconds each; `refresh()` tries longer. For half a minute after a
        failure (`Limits.retry_search_after`), searches do not ask the embedder. The embeddings of the last 64 queries
        are cached in this process, so these queries are not sent again.

        Args:
            query: Words, e.g. "how are cookies stored", or a name, e.g. "CookieJar" or "where is CookieJar defined".
            limit: Maximum number of results; `None` returns all ranked chunks, a few hundred.
            refresh: Refresh the index first. If false, the search uses the state after the last refresh. Files that
                have changed since that refresh have no results, because the index does not store texts.
            max_age: Maximum age of the last refresh, in seconds. The search does not refresh the index if this object
                listed the files of the current branch less than `max_age` seconds ago. `None` refreshes each time.
            hybrid_weight: Weight of embeddings in the score, from 0 to 1; `None` is the `hybrid_weight` of this object.
                With 0, only words are searched, and nothing is sent: neither the query nor texts without an embedding.

        Raises:
            ValueError: The query has no word, `limit` or `max_age` is negative, `hybrid_weight` is out of range, or
                `hybrid_weight` is above 0 without an embedder.
            TypeError: `limit` is not an int, or `max_age` or `hybrid_weight` is not a number.
            RipwrapError: The index cannot be used; or `refresh` is false and there is no index yet of this branch, with
                these options and this chunker.

        If `refresh` is true, this method also raises the errors of `refresh()`.
        """
        found = await self._search_chunks(
            self._runner(), query, limit, refresh=refresh, max_age=max_age, hybrid_weight=hybrid_weight
        )
        return found.explained()

    @named_paths
    @lists_options(VISIBLE_FILES)
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
        """Search the directory for a regular expression; find the same matches as the function `grep()`, but faster.

        An index of trigrams (sequences of three bytes) tells which files may have a match, and rg searches only these
        files. The first call builds the index of trigrams, which takes less time than the first refresh. Later calls
        add only new and changed files.

        The call looks up the literals of the pattern: texts that matches must contain. For `foo.*bar`, every match
        contains `foo` and `bar`. For `foo|bar`, every match contains `foo` or `bar`. A literal has at least three
        bytes. If case is ignored, a literal has only ASCII characters. A pattern such as `[a-z]+` has no literal; rg
        then searches all files. rg also searches all files with the option `pcre2`, `engine`, `encoding` or
        `invert_match`. Binary and unreadable files, files in UTF-16, and files of more than 16 million bytes are always
        searched.

        `GrepResult.candidates` is the number of files that rg searched; `GrepResult.files_total` is the number of all
        files of the current branch in the index.

        Args:
            pattern: A regular expression (https://docs.rs/regex), or several, any of which may match.
            limit: Maximum number of matches on the page, over all files; `None` returns all matches, and holds them in
                memory.
            max_files: Maximum number of files on the page; `None` is no limit.
            offset: Number of matches before the page: the `next_offset` of the previous page.
            timeout: Seconds that rg may take to search, not counting the refresh; `None` is no limit. After that time
                rg is stopped, and the answer has the matches found so far.
            explain: If there is no match, explain why, as the function `grep()` does. The searches for the explanation
                do not use the index.
            refresh: Refresh the index first. If false, the call searches the files of the last refresh. Matches in
                files that have changed since that refresh may be missing.
            max_age: Do not refresh the index if its last refresh is younger than this number of seconds; see
                `search()`.
            **options: rg's flags; see `SearchOptions` and the function `grep()`. The call searches the files of the
                index. If options such as `glob` or `hidden` choose other files than the options of the index, rg
                searches without the index, and `candidates` and `files_total` are `None`.

        This method raises the errors of the function `grep()` and of `refresh()`, and `RipwrapError` if `refresh` is
        false and there is no index yet.
        """
        request = self._grep_request(pattern, limit, max_files, offset, timeout, options, explain=explain)
        return await self._grep(self._runner(), request, refresh=refresh, max_age=max_age)

    def watch(self) -> AsyncGenerator[RefreshResult]:
        """Refresh the index now, and again after each change of files or of the branch.

        A refresh starts half a second after the last change.

        The first item is the result of the first refresh. Another item follows for each later refresh that found
        changed files or another branch. Changes of ignored files, and changes behind symbolic links, are not reported.
        If files change without a pause, a refresh starts after ten seconds. This method needs the extra `watch`.

        Searches refresh the index themselves, so they do not need this method.

        To leave early, wrap the generator in `contextlib.aclosing`.

        Raises:
            RipwrapError: watchfiles is not installed, or the system's limit of watched directories is reached.

        The generator also raises the errors of `refresh()`. The iteration raises all these errors; the call of
        `watch()` raises none of them.
        """
        from ripwrap.index.watch import watch_folder  # late: few programs watch

        return watch_folder(self._root, self._store.folder, self.refresh)

    async def status(self) -> IndexStatus:
        """Return the state of the index after the last finished refresh, such as the number of files and chunks."""
        return await self._get_status(self._runner(lock=False))

    async def check(self) -> CheckResult:
        """Check the index for damage. The result lists the problems, and says what to do next.

        The check reads the whole database and the full-text search, which may take seconds. It does not wait for other
        processes.
        """
        return await self._check(self._runner(lock=False))

    async def prune(self) -> PruneResult:
        """Remove unused content from the index, such as the files of deleted branches, and free the space on disk.

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
        """Close the files of the index, and end the process that splits files. A later call opens the index again.

        This method waits until the calls of other tasks have ended, even if it is cancelled.
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
        return DeadlineRunner(AsyncRunner(self._rg), check_timeout(timeout), self._lock if lock else None)
