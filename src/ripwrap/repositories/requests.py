"""Requests for matches, files, counts or contents of one root, and the code that runs them; all can be pickled.

A request is run in an event loop of this process, or in an event loop that a worker (a process of an executor) starts
for it. A worker returns a long result in several pages.

When a call of `Repositories` ends, so do its tasks. An executor does not interrupt a running task, even if the future
of the task is cancelled. So each call has a file, the lease, which the calling process touches as long as the call
runs. Each task watches this file. The task and its rg end if the file is removed, because the call has then ended. They
also end if the file is not touched for `LEASE_SECONDS`, because the calling process has then ended or hangs.

A worker on another machine sees the file only if the directory is shared. A worker of Dask also checks whether Dask has
cancelled the task. Any other worker that does not see the file ends a task only at the time limit of the task.
"""

import os
import socket
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

import anyio

from ripwrap._operations.grep import grep_request, run_grep
from ripwrap._operations.rank import FileTerms, RankRequest, find_terms, rank_request, read_raw_files
from ripwrap._operations.search import search_messages
from ripwrap._ripgrep.command import files_query, search_query
from ripwrap._ripgrep.decoder import CountDecoder, PathDecoder
from ripwrap._ripgrep.page_collector import NO_LIMIT, ListingCollector
from ripwrap._ripgrep.protocols import Step
from ripwrap._ripgrep.query import Query
from ripwrap._ripgrep.runner import AsyncRunner
from ripwrap._system.concurrency import defer_interrupts
from ripwrap.binary.probe import format_version
from ripwrap.binary.resolver import Rg, resolve
from ripwrap.errors import GlobError, PatternError, RipwrapError, UnknownTypeError
from ripwrap.models import FileCount, Match, PathError
from ripwrap.options import FileOptions, SearchOptions, values_of
from ripwrap.places.items import Candidates
from ripwrap.repositories.models import Root, RootError, Worker, incomplete_error, root_error
from ripwrap.results import GrepResult

LEASE_SECONDS = 15.0
"""Seconds without a touch of the file, after which a task assumes that the calling process has ended."""
_TOUCH_INTERVAL = 1.0
_WATCH_INTERVAL = 0.1


@dataclass(frozen=True, slots=True)
class Lease:
    """File that exists as long as a call runs."""

    path: str
    host: str


@asynccontextmanager
async def hold_lease(folder: str | None = None) -> AsyncGenerator[Lease]:
    """Make the file of a call, touch it while the block runs, and remove it at the end."""
    where = tempfile.gettempdir() if folder is None else folder
    with defer_interrupts():
        descriptor, path = tempfile.mkstemp(prefix="ripwrap-lease-", dir=where)
        os.close(descriptor)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_touch, path)
            try:
                yield Lease(path, socket.gethostname())
            finally:
                group.cancel_scope.cancel()
    finally:
        with suppress(OSError):
            os.unlink(path)


async def _touch(path: str) -> None:
    while True:
        await anyio.sleep(_TOUCH_INTERVAL)
        with suppress(OSError):
            os.utime(path)


async def wait_for_lease(lease: Lease, seconds: float = LEASE_SECONDS) -> None:
    """Wait until the call has ended. On another machine that cannot see the file of the call, wait for ever."""
    if _touched(lease) is None and lease.host != socket.gethostname():
        await anyio.sleep_forever()
    # Compare modification times only with each other: the clock of a file server may differ from the local one.
    last, since = _touched(lease), time.monotonic()
    while last is not None and time.monotonic() - since < seconds:
        await anyio.sleep(_WATCH_INTERVAL)
        touched = _touched(lease)
        if touched != last:
            last, since = touched, time.monotonic()


async def wait_for_cancellation(is_cancelled: Callable[[], bool]) -> None:
    """Call `is_cancelled` repeatedly, and return when it returns True."""
    while not is_cancelled():  # noqa: ASYNC110 - Dask sets no event
        await anyio.sleep(_WATCH_INTERVAL)


def dask_cancellation() -> Callable[[], bool] | None:
    """Return a function that returns True if this task of Dask was cancelled or has ended.

    Outside of a task of Dask, return `None`.

    A running task that was cancelled has the state `cancelled` until it ends
    (https://distributed.dask.org/en/stable/worker-state.html, "Task states").
    """
    distributed: Any = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        worker = distributed.get_worker()
    except ValueError:  # this is not a thread of a worker
        return None
    key = worker.get_current_task()

    def is_cancelled() -> bool:
        state = worker.state.tasks.get(key)
        return state is None or state.state == "cancelled"

    return is_cancelled


def _touched(lease: Lease) -> int | None:
    try:
        return os.stat(lease.path).st_mtime_ns
    except FileNotFoundError:
        return None
    except OSError:
        return 0  # a file server that does not answer for a moment


PAGE_MATCHES = 5_000
"""Maximum number of matches in one page that a worker returns."""

QUESTION_ERRORS = (PatternError, GlobError, UnknownTypeError)
"""Errors that every root would have, because the pattern or an option is wrong; they end the call."""

ROOT_ERRORS = (OSError, RipwrapError)
"""Errors that are returned as the `RootError` of one root; they do not end the call."""

Item = TypeVar("Item", str, FileCount)
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class ResultPart(Generic[T_co]):
    """Part of the results of a request."""

    items: Sequence[T_co]
    errors: tuple[PathError, ...] = ()
    next_offset: int | None = None


class RootRequest(ABC, Generic[T_co]):
    """Request for matches, files, counts or contents of one root.

    Its options have no path objects, because another process may not be able to unpickle path objects.
    """

    __slots__ = ()

    @abstractmethod
    async def answer(self, cwd: str, rg: Rg, offset: int) -> ResultPart[T_co]:
        """Skip `offset` results, and return the next results; `items` is empty only if there are no more results."""

    async def stream(self, cwd: str, rg: Rg) -> AsyncGenerator[ResultPart[T_co]]:
        """Yield results in parts, as they are found; all in one part, unless a subclass has more."""
        yield await self.answer(cwd, rg, 0)


@dataclass(frozen=True, slots=True)
class SearchRequest(RootRequest[Match]):
    """Request for the matches of a root."""

    patterns: tuple[str, ...]
    limit: int | None
    options: SearchOptions
    page_matches: int = PAGE_MATCHES

    async def answer(self, cwd: str, rg: Rg, offset: int) -> ResultPart[Match]:
        """Search the whole root, and return a page of its matches in path order.

        Each page needs a new search. Pages in rg's own order could overlap, because this order may differ between
        searches.
        """
        left = self.page_matches if self.limit is None else min(self.page_matches, self.limit - offset)
        options: SearchOptions = {**self.options, "before_context": 0, "after_context": 0}
        request = grep_request(self.patterns, cwd, (), left, None, offset, None, options, explain=False)
        result = await run_grep(AsyncRunner(rg), request)
        items = [Match.model_construct(**dict(match)) for match in result.matches]
        more = result.next_offset is not None and (self.limit is None or result.next_offset < self.limit)
        return ResultPart(items, () if more else result.errors, result.next_offset if more else None)

    async def stream(self, cwd: str, rg: Rg) -> AsyncGenerator[ResultPart[Match]]:
        """Yield the matches in rg's order."""
        options: SearchOptions = {**self.options, "before_context": 0, "after_context": 0}
        messages = search_messages(self.patterns, cwd=cwd, limit=self.limit, rg=rg, **options)
        async with aclosing(messages) as found:
            async for message in found:
                if message.type == "match":
                    yield ResultPart((message,))
                elif message.type == "summary":
                    yield ResultPart((), message.errors)


@dataclass(frozen=True, slots=True)
class FilesRequest(RootRequest[str]):
    """Request for the files of a root, in path order."""

    limit: int | None
    options: FileOptions

    async def answer(self, cwd: str, rg: Rg, offset: int) -> ResultPart[str]:  # noqa: ARG002 - all of them
        """List the files."""
        most = NO_LIMIT if self.limit is None else self.limit
        listing = await _list(files_query(cwd, (), self.options), lambda: ListingCollector(PathDecoder(), most), rg)
        return ResultPart(listing.items(), listing.errors)


@dataclass(frozen=True, slots=True)
class SizesRequest(RootRequest["tuple[str, int]"]):
    """Request for the files of a root and their sizes in bytes, in path order.

    The size of a file is 0 if it cannot be found out, for example because the file was deleted.
    """

    options: FileOptions

    async def answer(self, cwd: str, rg: Rg, offset: int) -> ResultPart[tuple[str, int]]:  # noqa: ARG002 - all of them
        """List the files with their sizes."""
        listing = await _list(files_query(cwd, (), self.options), lambda: ListingCollector(PathDecoder()), rg)
        sizes = await AsyncRunner(rg).call(lambda: [(path, _size(cwd, path)) for path in listing.items()])
        return ResultPart(sizes, listing.errors)


@dataclass(frozen=True, slots=True)
class CountRequest(RootRequest["tuple[int, int]"]):
    """Request for the number of matching lines of a root, and the number of files with a matching line."""

    patterns: tuple[str, ...]
    options: SearchOptions

    async def answer(self, cwd: str, rg: Rg, offset: int) -> ResultPart[tuple[int, int]]:  # noqa: ARG002 - one
        """Count the lines."""
        query = search_query(self.patterns, cwd, (), self.options, "count")
        listing = await _list(query, lambda: ListingCollector(CountDecoder(), 0), rg)
        return ResultPart([(listing.counted, listing.total)], listing.errors)


@dataclass(frozen=True, slots=True)
class MatchesRequest(RootRequest[GrepResult]):
    """Request for a page of matches of a root, or of a shard (a part of the files of a root)."""

    patterns: tuple[str, ...]
    limit: int
    timeout: float | None
    options: SearchOptions
    files: tuple[str, ...] | None = None
    unreadable: tuple[PathError, ...] = field(default=(), repr=False)

    async def answer(self, cwd: str, rg: Rg, offset: int) -> ResultPart[GrepResult]:  # noqa: ARG002 - one page
        """Search and return the page."""
        request = grep_request(self.patterns, cwd, (), self.limit, None, 0, self.timeout, self.options, explain=False)
        if (files := self.files) is not None:
            # rg is given the directories of the files, so it detects binary files as in a search of a root.
            follow, iglob = self.options.get("follow") is not False, values_of(self.options, "iglob")
            request = request.within(Candidates(len(files), (), files, self.unreadable, None, follow, iglob))
        result = await run_grep(AsyncRunner(rg), request)
        return ResultPart([result], result.errors)


@dataclass(frozen=True, slots=True)
class TermsRequest(RootRequest[FileTerms]):
    """Request for the counts of a query's words in the files of a root."""

    query: str
    timeout: float | None
    options: FileOptions

    def request(self, cwd: str) -> RankRequest:
        """Return the checked request of `rank()`."""
        return rank_request(self.query, cwd, (), None, self.options, timeout=self.timeout)

    async def answer(self, cwd: str, rg: Rg, offset: int) -> ResultPart[FileTerms]:  # noqa: ARG002 - one
        """Count the words in each file."""
        errors: list[PathError] = []
        request = replace(self.request(cwd), report=errors.extend)
        return ResultPart([await find_terms(AsyncRunner(rg), request)], tuple(errors))


@dataclass(frozen=True, slots=True)
class ReadRequest(RootRequest["tuple[str, bytes]"]):
    """Request for the contents of files of a root, each cut to the size that ranking reads."""

    files: tuple[str, ...]
    options: FileOptions

    async def answer(self, cwd: str, rg: Rg, offset: int) -> ResultPart[tuple[str, bytes]]:  # noqa: ARG002 - all of them
        """Read the files."""
        query = files_query(cwd, (), self.options)
        return ResultPart(await AsyncRunner(rg).call(lambda: list(read_raw_files(query, self.files))))


async def _list(query: Query, collector: Callable[[], ListingCollector[Item]], rg: Rg) -> ListingCollector[Item]:
    return await AsyncRunner(rg).collect(Step(query, collector, None))


def _size(cwd: str, path: str) -> int:
    try:
        return os.stat(os.path.join(cwd, path)).st_size
    except OSError:
        return 0


@dataclass(frozen=True, slots=True)
class RootTask(Generic[T]):
    """Request about a root, in the form in which it is sent to a worker."""

    root: Root
    request: RootRequest[T]
    rg: str | None = None
    timeout: float | None = None
    lease: Lease | None = None
    offset: int = 0
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class ResultPage(Generic[T_co]):
    """Results that a worker returns for a task; the worker returns a long result in several pages."""

    items: Sequence[T_co] = ()
    error: RootError | None = None
    next_offset: int | None = None
    worker: Worker | None = None


def run_task(task: RootTask[Any]) -> ResultPage[Any]:
    """Run a task in a worker, and return a page of its results.

    If the call that sent the task ends first, the task and its rg are ended, too, unless this worker cannot notice the
    end (see `ripwrap.repositories.requests`).
    """
    return anyio.run(_run_task, task, dask_cancellation())


async def _run_task(task: RootTask[T], is_cancelled: Callable[[], bool] | None) -> ResultPage[T]:
    page: ResultPage[T] = ResultPage(error=root_error(task.root.name, TimeoutError("the call has ended")))
    wrong: Exception | None = None
    async with anyio.create_task_group() as group:

        async def end_after(wait: Awaitable[None]) -> None:
            await wait
            group.cancel_scope.cancel()

        if task.lease is not None:
            group.start_soon(end_after, wait_for_lease(task.lease))
        if is_cancelled is not None:
            group.start_soon(end_after, wait_for_cancellation(is_cancelled))
        try:
            page = await _answer(task)
        except QUESTION_ERRORS as error:  # raise it later: the task group would wrap it into an exception group
            wrong = error
        group.cancel_scope.cancel()
    if wrong is not None:
        raise wrong
    return page


async def _answer(task: RootTask[T]) -> ResultPage[T]:
    worker: Worker | None = None
    name = task.root.name
    try:
        binary = await resolve(task.rg)
        version = await AsyncRunner(task.rg).call(lambda: format_version(binary.version))
        worker = Worker(host=socket.gethostname(), pid=os.getpid(), rg=binary.path, rg_version=version)
        with fail_after(task.timeout):
            found = await task.request.answer(task.root.path, task.rg, task.offset)
    except QUESTION_ERRORS:
        raise
    except ROOT_ERRORS as error:
        return ResultPage(error=root_error(name, error, worker=worker), worker=worker)
    return ResultPage(tuple(found.items), incomplete_error(name, found.errors, worker), found.next_offset, worker)


@contextmanager
def fail_after(seconds: float | None) -> Generator[anyio.CancelScope]:
    """Cancel the block after a number of seconds; `None` is no limit. The deadline of the scope can be moved."""
    with anyio.move_on_after(seconds) as scope:
        yield scope
    if scope.cancelled_caught:
        raise TimeoutError(f"rg was stopped after timeout={seconds} seconds; allow more time")
