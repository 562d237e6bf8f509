"""`Repositories`, which searches many directories (roots) with one call. `blocking.py` has its blocking twin."""

import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, TypeVar, Unpack

from ripwrap._operations.grep import GREP_LIMIT, GREP_TIMEOUT, grep_request
from ripwrap._operations.rank import RANK_LIMIT, RankingDeadline, rank_contents, rank_request
from ripwrap._ripgrep.command import files_query, plain_options
from ripwrap._ripgrep.page_collector import NO_LIMIT
from ripwrap._ripgrep.query import only_options
from ripwrap._ripgrep.runner import AsyncRunner
from ripwrap._signature import lists_options
from ripwrap.errors import named_paths
from ripwrap.options import VISIBLE_FILES, FileOptions, SearchOptions, check_limit, check_number, check_timeout
from ripwrap.repositories.base import ARGUMENTS, BaseRepositories, IndexSettings, Question, TermsQuestion, check_search
from ripwrap.repositories.collectors import EndedRoots, MatchesCollector, ShardPlanner, TermsCollector, add_error
from ripwrap.repositories.models import (
    RepositoriesRanking,
    RepositoriesResult,
    RootCount,
    RootError,
    RootFile,
    RootMatch,
)
from ripwrap.repositories.requests import (
    CountRequest,
    FilesRequest,
    MatchesRequest,
    SearchRequest,
    SizesRequest,
    TermsRequest,
)
from ripwrap.repositories.scheduler import OnRootsEnded, RootOrder, arrivals

if TYPE_CHECKING:
    from ripwrap.index.core import Index

T = TypeVar("T")
Out = TypeVar("Out")


class Repositories(BaseRepositories):
    """Many directories that are searched with one call, in this process or on the workers of an executor.

    A root is a directory with a name. Each result has the name of its root. If a root fails, the results have a
    `RootError` for it, and the search of the other roots continues. An error that concerns all roots, such as a pattern
    that does not compile, is raised. Without an executor, an error about a missing rg is also raised.

    ```python
    import asyncio

    import ripwrap


    async def main():
        repositories = ripwrap.Repositories("demo")
        result = await repositories.grep("TODO", per_root=1, context=0, glob="*.py")
        print(result)


    asyncio.run(main())
    ```

    ```text
    demo/shop/cart.py:5:    # TODO: taxes
    1 of 2 matches in 2 files of 1 root (1 root searched).
    ```

    Memory is bounded: at most `concurrency` roots are searched at a time, the search of the next root starts when one
    of these has ended, and searches pause until the caller takes their results. With an executor, each worker runs one
    rg at a time.
    """

    @named_paths
    def search(
        self,
        pattern: str | Sequence[str],
        *,
        per_root: int | None = None,
        limit: int | None = None,
        order: RootOrder = "arrival",
        timeout: float | None = None,
        on_progress: OnRootsEnded | None = None,
        **options: Unpack[SearchOptions],
    ) -> AsyncGenerator[RootMatch | RootError]:
        """Search all roots and yield each match as it is found, with the name of its root.

        With an executor, the matches of a root come after its search has ended, in path order. They come in pages of
        5,000; each further page needs a further search.

        Args:
            pattern: A regular expression (https://docs.rs/regex), or several, any of which may match.
            per_root: Maximum number of matches of a root.
            limit: Maximum number of matches of all roots.
            order: `arrival` yields matches of all roots as they are found. `root` yields all matches of the first root,
                then all matches of the second root, and so on.
            timeout: Seconds for each root, or with an executor for each page of a root; `None` is no limit. Matches
                that were found before the limit are yielded. With an executor, a page that reaches the limit is lost.
            on_progress: Function that is called with the number of roots that have ended, and the number of all roots.
            **options: rg's flags; see `SearchOptions`. Globs and paths are relative to each root.

        Raises:
            pydantic.ValidationError: An option is unknown or ill-typed.
            ValueError: A number is negative, `order` is unknown, `passthru` is passed, there is no pattern, or a
                pattern or option has a NUL.
            PatternError, GlobError, UnknownTypeError: rg rejects the pattern, a glob or a file type.
            BinaryError, CapabilityError: There is no rg, or it does not have an option; raised only without an
                executor.
            OSError: The file in `lease_folder` cannot be made; raised only with an executor.

        The call itself raises `ValidationError` and `ValueError`. The iteration raises the other errors.
        """
        patterns = check_search(pattern, options)
        request = SearchRequest(patterns, check_limit(per_root, "per_root"), plain_options(options))
        question = Question(
            self._tasks(request, timeout),
            lambda root, match, _: RootMatch.model_construct(None, **{**dict(match), "root": root}),
            limit,
            order,
            on_progress,
        )
        return self._stream(question)

    @named_paths
    def files(
        self,
        *,
        per_root: int | None = None,
        limit: int | None = None,
        order: RootOrder = "arrival",
        timeout: float | None = None,
        on_progress: OnRootsEnded | None = None,
        **options: Unpack[FileOptions],
    ) -> AsyncGenerator[RootFile | RootError]:
        """List the files of all roots; the files of each root come in path order, after its listing has ended.

        With `order="arrival"`, files of other roots may come between the files of a root. The arguments and errors have
        the same meaning as for `search()`.
        """
        files_query(os.curdir, (), options, ARGUMENTS[1:])
        tasks = self._tasks(FilesRequest(check_limit(per_root, "per_root"), plain_options(options)), timeout)
        question = Question(tasks, lambda root, path, _: RootFile(root=root, path=path), limit, order, on_progress)
        return self._stream(question)

    @named_paths
    def count(
        self,
        pattern: str | Sequence[str],
        *,
        order: RootOrder = "arrival",
        timeout: float | None = None,
        on_progress: OnRootsEnded | None = None,
        **options: Unpack[SearchOptions],
    ) -> AsyncGenerator[RootCount | RootError]:
        """Count the matching lines of all roots, and yield a `RootCount` for each root, even if no line matches.

        The arguments and errors have the same meaning as for `search()`.
        """
        tasks = self._tasks(CountRequest(check_search(pattern, options), plain_options(options)), timeout)
        question = Question(
            tasks,
            lambda root, counted, worker: RootCount(root=root, count=counted[0], files=counted[1], worker=worker),
            None,
            order,
            on_progress,
        )
        return self._stream(question)

    @named_paths
    async def grep(
        self,
        pattern: str | Sequence[str],
        *,
        per_root: int | None = 5,
        limit: int | None = GREP_LIMIT,
        timeout: float | None = GREP_TIMEOUT,  # noqa: ASYNC109 - see `ripwrap.grep()`
        shards: int = 1,
        on_progress: OnRootsEnded | None = None,
        **options: Unpack[SearchOptions],
    ) -> RepositoriesResult:
        """Search all roots and return a page of matches with their context, and the number of all matches.

        If there are more than `limit` matches, the page has the first match of each root, then the second match of each
        root, and so on.

        Args:
            pattern: A regular expression (https://docs.rs/regex), or several, any of which may match.
            per_root: Maximum number of matches of a root on the page; `None` is no limit.
            limit: Maximum number of matches on the page; `None` returns all matches, and holds them in memory.
            timeout: Seconds for each root, or for each shard; `None` is no limit. Matches that were found before the
                limit are returned.
            shards: Maximum number of parts (shards) of each root. The parts are searched separately, so that a large
                root can be searched by several workers. Roots are split by the sizes of the files, and the files of a
                directory stay together. The number of shards does not change the result.
            on_progress: Function that is called with the number of roots that have ended, and the number of all roots.
            **options: rg's flags; see `SearchOptions`. The default context is 2 lines.

        Raises the same errors as `search()`.
        """
        patterns, seconds = check_search(pattern, options), check_timeout(timeout)
        most, each = (
            NO_LIMIT if one is None else one for one in (check_limit(limit), check_limit(per_root, "per_root"))
        )
        each = min(most, each)
        grep_request(patterns, os.curdir, (), each, None, 0, seconds, options, explain=False)
        request = MatchesRequest(patterns, each, seconds, plain_options(options))
        collector = MatchesCollector(self._roots, pattern if isinstance(pattern, str) else patterns, each, most)
        tasks = self._tasks(request)
        if check_number(shards, "shards") > 1:  # replace the task of each root by the tasks of its shards
            planners = [ShardPlanner(task, request, shards) for task in tasks]
            sizes = SizesRequest(plain_options(only_options(options, FileOptions.__annotations__)))
            async with aclosing(arrivals(self._tasks(sizes, timeout), self._plan, "arrival")) as listed:
                async for size in listed:
                    if size.item is not None:
                        planners[size.number].take(size.item)
            tasks = [task for planner in planners for task in planner.tasks()]
        progress = EndedRoots(tasks, on_progress)
        async with aclosing(arrivals(tasks, self._plan, "arrival")) as found:
            async for arrival in found:
                root = tasks[arrival.number].root
                collector.take(root, arrival)
                if arrival.item is None and progress.end(arrival.number):
                    collector.end(root)
        return collector.result()

    @named_paths
    @lists_options(VISIBLE_FILES)
    async def rank(
        self,
        query: str,
        *,
        limit: int | None = RANK_LIMIT,
        timeout: float | None = None,  # noqa: ASYNC109 - of each root
        on_progress: OnRootsEnded | None = None,
        **options: Unpack[FileOptions],
    ) -> RepositoriesRanking:
        """Find the code in all roots that answers a question, or that defines a symbol; best results first.

        The result is the same as if all roots were subdirectories of one directory, and `ripwrap.rank()` searched this
        directory. First, the words of the query are counted in the files of each root. Then the best files of all roots
        are read and ranked together.

        Args:
            query: Words, e.g. "how are cookies stored", or a name, e.g. "CookieJar".
            limit: Maximum number of results; `None` returns all ranked chunks, a few hundred.
            timeout: Seconds for rg in each root; `None` is no limit.
            on_progress: Function that is called with the number of roots in which words were counted, and the number of
                all roots.
            **options: rg's flags; see `FileOptions`. Hidden files are searched only with `hidden=True`, and links are
                followed only with `follow=True`.

        Raises the same errors as `ripwrap.rank()`. Errors of a single root are not raised; they are in `errors` of the
        result.
        """
        request = rank_request(query, os.curdir, (), check_limit(limit), options, timeout=check_timeout(timeout))
        question = TermsQuestion(
            self._tasks(TermsRequest(query, request.timeout, plain_options(options))),
            TermsCollector(request.query),
            request.query,
            request.limit,
            plain_options(options),
        )
        errors: dict[str, list[RootError]] = {}
        progress = EndedRoots(question.tasks, on_progress)
        async with aclosing(arrivals(question.tasks, self._plan, "arrival")) as counted:
            async for arrival in counted:
                root = question.tasks[arrival.number].root
                if arrival.item is None:
                    progress.end(arrival.number)
                elif isinstance(arrival.item, RootError):
                    add_error(errors.setdefault(root.name, []), arrival.item)
                else:
                    question.terms.take(root, arrival.item)
        chosen = question.terms.choose()
        tasks = question.read_tasks(chosen)
        contents: dict[tuple[str, str], bytes] = {}
        async with aclosing(arrivals(tasks, self._plan, "arrival")) as files:
            async for file in files:
                root = tasks[file.number].root
                if isinstance(file.item, RootError):
                    add_error(errors.setdefault(root.name, []), file.item)
                elif file.item is not None:
                    path, raw = file.item
                    contents[root.name, path] = raw
        read = question.in_order(chosen, contents)
        deadline, worths = RankingDeadline(), question.terms.worths()
        runner = AsyncRunner(None)
        chunks = await runner.call(lambda: rank_contents(question.query, read, question.limit, deadline, worths))
        return RepositoriesRanking(
            chunks=tuple(map(question.terms.result, chunks)),
            errors=tuple(error for root in self._roots for error in errors.get(root.name, ())),
        )

    @named_paths
    def indexes(self, **settings: Unpack[IndexSettings]) -> "dict[str, Index]":
        """Return a dict from the name of each root to its index; nothing is read or built yet.

        Each index is stored in the user's cache on this machine, and its first search builds it. The indexes run the rg
        that was given to `Repositories`. The executor is not used; to make indexes on its workers, submit your own
        functions to it.

        Args:
            **settings: Settings of all indexes: `chunker`, `embedder`, `hybrid_weight`, `workers`; see `Index`.

        Raises the same errors as `Index()`.
        """
        from ripwrap.index.core import Index  # late: other operations do not need it

        return {root.name: Index(root.path, rg=self._plan.rg, **settings) for root in self._roots}

    async def _stream(self, question: Question[T, Out]) -> AsyncGenerator[Out | RootError]:
        if question.left == 0:
            return
        progress = EndedRoots(question.tasks, question.on_progress)
        async with aclosing(arrivals(question.tasks, self._plan, question.order)) as found:
            async for arrival in found:
                result = question.result(arrival)
                if result is None:
                    progress.end(arrival.number)
                    continue
                yield result
                if question.left == 0:
                    return
